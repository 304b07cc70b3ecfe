"""How many CPU cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = _CGROUPS) -> int:
    """Returns the cores this process may keep busy, at least 1.

    The smaller of the CPU affinity and the container's CPU quota, rounded down: llama.cpp collapses when it has
    more threads than free cores.

    Args:
        cgroups: Where the control groups are mounted.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity call
        cores = os.cpu_count() or 1
    quota = _quota(cgroups)
    return max(1, cores if quota is None else min(cores, int(quota)))


def _quota(cgroups: Path) -> float | None:
    """Returns the CPU quota in cores, or None where there is none."""
    try:
        quota, period = (cgroups / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            quota = (cgroups / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (cgroups / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    try:
        cores = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):  # "max": no quota
        return None
    return cores if cores > 0 else None
