"""How many threads this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def default_threads() -> int:
    """CPUs of the process's affinity mask, or of its cgroup's quota where that is less; at least 1."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cpus = os.cpu_count() or 1
    quota = cgroup_quota()
    return max(1, cpus if quota is None else min(cpus, quota))


def cgroup_quota(root: str = "/sys/fs/cgroup", groups: str = "/proc/self/cgroup") -> int | None:
    """CPUs that the control groups (v2 or v1) of this process grant, rounded up; None if they set no limit or cannot be read.

    root: where control groups are mounted. groups: the file that lists those of the process. Each group is limited by those
    that it lies in; inside a container the path may be that of the host and not exist here, then the mounted root counts.
    """
    granted = []
    for line in _words(groups, "\n") or ["0::/"]:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in {Path(root, controllers), Path(root, "cpu" if controllers else "")}:
            here = mount / path.strip("/")
            granted += [n for folder in (here, *here.parents) if folder.is_relative_to(mount) and (n := _grant(folder))]
    return min(granted, default=None)


def _grant(folder: Path) -> int | None:
    """CPUs granted by one group's files, of either version."""
    both = _words(folder / "cpu.max") or _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    try:
        quota, period = map(int, both)
    except ValueError:  # "max", or no such files
        return None
    return -(-quota // period) if quota > 0 and period > 0 else None


def _words(path: str | Path, separator: str | None = None) -> list[str]:
    """The words of a small file; none if it cannot be read."""
    try:
        return Path(path).read_text().strip().split(separator)
    except OSError:
        return []
