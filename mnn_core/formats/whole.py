"""Files that appear whole or not at all, and memory-mapped arrays that do not fill the memory."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from ..errors import ConversionError


class WholeFiles:
    """Writes files under other names beside their targets, and puts all of them in place at the end of a `with` block.

    If the block raises, no target is touched. Raises OSError as `open` does.
    """

    def __init__(self) -> None:
        self.files: list[tuple[Path, Path, BinaryIO]] = []

    def __enter__(self) -> WholeFiles:
        return self

    def open(self, target: Path) -> BinaryIO:
        """A new file that will be `target`; files are put in place in the order of these calls."""
        if target.is_dir():  # told before any other file is in its place
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        file = open(part, "wb")  # noqa: SIM115  (closed by __exit__)
        self.files.append((target, part, file))
        return file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            for _, _, file in self.files:
                file.close()
            if kind is None:
                for target, part, _ in self.files:
                    part.replace(target)
        finally:
            for _, part, _ in self.files:
                with contextlib.suppress(OSError):
                    part.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with WholeFiles() as files:
        files.open(Path(path)).write(text.encode("utf-8", errors="surrogateescape"))


def release(data: Any) -> None:
    """Gives the pages of a memory-mapped array, or a view of one, back to the system; they are read again if need be."""
    seen = 0
    while data is not None and seen < 16:
        if isinstance(data, mmap.mmap):
            if hasattr(mmap, "MADV_DONTNEED") and memoryview(data).readonly:  # others may have changes of their own
                data.madvise(mmap.MADV_DONTNEED)
            return
        data = data.obj if isinstance(data, memoryview) else data.base if isinstance(data, np.ndarray) else None
        seen += 1


def check_target(source: Any, target: Path) -> None:
    """Raises ConversionError for a target that is no name of a file, or the source of another kind itself."""
    if not target.name:
        raise ConversionError(f"the target {str(target)!r} is no name of a file")
    if target.is_dir():
        raise ConversionError(f"the target {str(target)!r} is a folder; give the name of a file")
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() not in (".mnn", ".json") and target.exists() \
            and target.resolve() == Path(source).resolve():
        raise ConversionError(f"the target {str(target)!r} is the source, which would be lost; give another name")
