"""What a process has open, by kind: each descriptor is kernel memory that no mapping shows.

Source: the links in `/proc/PID/fd`, proc_pid_fd(5).
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

__all__ = ("NO_DESCRIPTORS", "Descriptors", "count_descriptors", "read_descriptors")

# Standard input, output and error are those of whoever started it: opened once for many.
_GIVEN_COUNT: Final = 3


class Descriptors(NamedTuple):
    """How many descriptors of each kind are open, standard input, output and error left out.

    Attributes:
        file_count: Files, folders and devices.
        text_count: Files of /proc and /sys, which keep a page of text once they were read.
        event_count: Epoll, eventfd, timers and the like.
        pipe_count: Ends of pipes.
        socket_count: Sockets.
    """

    file_count: int = 0
    text_count: int = 0
    event_count: int = 0
    pipe_count: int = 0
    socket_count: int = 0


NO_DESCRIPTORS: Final = Descriptors()


def read_descriptors(pid: int) -> Descriptors:
    """Count what a live process has open; nothing where that may not be read."""
    folder = f"/proc/{pid}/fd"
    links = []
    with suppress(OSError):
        for number in os.listdir(folder):
            if int(number) >= _GIVEN_COUNT:
                with suppress(FileNotFoundError):  # closed meanwhile
                    links.append(os.readlink(f"{folder}/{number}"))
    return count_descriptors(links)


def count_descriptors(links: Iterable[str]) -> Descriptors:
    """Count descriptors by what their links say."""
    counts = [0] * len(NO_DESCRIPTORS)
    for link in links:
        counts[_kind(link)] += 1
    return Descriptors(*counts)


def _kind(link: str) -> int:
    """Give the place in `Descriptors`."""
    if link.startswith("socket:"):
        return 4
    if link.startswith("pipe:"):
        return 3
    if link.startswith("anon_inode:"):
        return 2
    return 1 if link.startswith(("/proc/", "/sys/")) else 0
