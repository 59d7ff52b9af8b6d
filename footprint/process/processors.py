"""The processors that this process may use."""

import os
from math import ceil

__all__ = ("usable_processor_count",)


def usable_processor_count(mount: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> int:
    """Return how many processors this process may keep busy: those it may run on, within the quotas of its cgroups.

    Args:
        mount: Where cgroups of version 2 are mounted.
        membership: The file that says in which of them this process is.
    """
    count = len(os.sched_getaffinity(0))
    own = next((line[3:] for line in _text(membership).splitlines() if line.startswith("0::")), "/")
    while True:
        # The quota of a group holds for the groups inside it, too.
        quota, _, period = _text(f"{mount}{own}/cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            count = max(1, min(count, ceil(int(quota) / int(period))))
        if own in {"/", ""}:
            return count
        own = os.path.dirname(own)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
