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


def cgroup_quota(root: str = "/sys/fs/cgroup") -> int | None:
    """CPUs that the control group (v2 or v1) grants, rounded up; None if it sets no limit or cannot be read."""
    def numbers(name: str) -> list[str]:
        try:
            return Path(root, name).read_text().split()
        except OSError:
            return []

    quota, period = (*numbers("cpu.max"), "", "")[:2]
    if not quota:
        quota, period = (*numbers("cpu/cpu.cfs_quota_us"), "")[0], (*numbers("cpu/cpu.cfs_period_us"), "")[0]
    try:
        granted, per = int(quota), int(period)
    except ValueError:
        return None
    return -(-granted // per) if granted > 0 and per > 0 else None
