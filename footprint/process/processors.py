"""The processors that this process may use."""

import os
from math import ceil

from footprint.digits import decimal
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
        words = kernel_text(f"{mount}{own}/cpu.max").strip().partition(" ")
        quota_us, period_us = decimal(words[0]), decimal(words[2])
        if quota_us is not None and period_us:
            count = max(1, min(count, ceil(quota_us / period_us)))
        if own in {"/", ""}:
            return count
        own = os.path.dirname(own)
