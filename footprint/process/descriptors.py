"""The open descriptors of a process by kind: each uses kernel memory that no mapping shows.

Source: the links in `/proc/PID/fd`, proc_pid_fd(5).
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

__all__ = ("NO_DESCRIPTORS", "Descriptors", "count_descriptors", "read_descriptors")

# Standard input, output and error are shared with the parent.
_INHERITED_COUNT: Final = 3


class Descriptors(NamedTuple):
    """The number of open descriptors of each kind, without standard input, output and error.

    Attributes:
        file_count: Files, directories and devices.
        text_count: Files of /proc and /sys: after a read, each keeps a page of text.
        event_count: epoll, eventfd, timerfd and similar.
        pipe_count: Pipe ends.
        socket_count: Sockets.
    """

    file_count: int = 0
    text_count: int = 0
    event_count: int = 0
    pipe_count: int = 0
    socket_count: int = 0


NO_DESCRIPTORS: Final = Descriptors()


def read_descriptors(pid: int) -> Descriptors:
    """Count the open descriptors of a live process; all counts are 0 where they may not be read."""
    folder = f"/proc/{pid}/fd"
    links = []
    with suppress(OSError):
        for number in os.listdir(folder):
            if int(number) >= _INHERITED_COUNT:
                with suppress(FileNotFoundError):  # closed in the meantime
                    links.append(os.readlink(f"{folder}/{number}"))
    return count_descriptors(links)


def count_descriptors(links: Iterable[str]) -> Descriptors:
    """Count descriptors by the targets of their links in `/proc/PID/fd`."""
    counts = [0] * len(NO_DESCRIPTORS)
    for link in links:
        counts[_kind(link)] += 1
    return Descriptors(*counts)


def _kind(link: str) -> int:
    """Return the index of the kind in `Descriptors`."""
    if link.startswith("socket:"):
        return 4
    if link.startswith("pipe:"):
        return 3
    if link.startswith("anon_inode:"):
        return 2
    return 1 if link.startswith(("/proc/", "/sys/")) else 0
