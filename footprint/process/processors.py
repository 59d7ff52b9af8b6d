"""The processors that this process may use."""

import os
from math import ceil

from footprint.process.control_groups import UNIFIED, kernel_text, parse_membership

__all__ = ("usable_processor_count",)


def usable_processor_count(mount: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> int:
    """Return how many processors this process may keep busy: those it may run on, within the quotas of its cgroups.

    Args:
        mount: Where cgroups of version 2 are mounted.
        membership: The file that says in which of them this process is.
    """
    count = len(os.sched_getaffinity(0))
    own = parse_membership(kernel_text(membership)).get(UNIFIED, "/")
    while True:
        # The quota of a group holds for the groups inside it, too.
        quota, _, period = kernel_text(f"{mount}{own}/cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            count = max(1, min(count, ceil(int(quota) / int(period))))
        if own in {"/", ""}:
            return count
        own = os.path.dirname(own)
