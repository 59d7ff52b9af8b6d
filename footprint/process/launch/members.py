"""The processes that belong to a program, also those that left its session."""

import os

from footprint.process.stat import Stat, processes

__all__ = ("Members",)


class Members:
    """A program, its session, and all descendants of every process seen there.

    Args:
        pid: The program, which leads its session.
        adopts: Whether its orphans become our children, and we have no other children.
    """

    def __init__(self, pid: int, *, adopts: bool) -> None:
        self._pid = pid
        self._adopts = adopts
        self._start_ticks: dict[int, int] = {}

    def alive(self, *, is_gone: bool) -> dict[int, Stat]:
        """Return the living ones. Once the program is gone, its PID may be that of another process."""
        table = processes()
        own = {pid for pid, ticks in self._start_ticks.items() if pid in table and table[pid].start_ticks == ticks}
        own.update(pid for pid, stat in table.items() if stat.session == self._pid)
        if not is_gone:
            own.add(self._pid)
        parents = own | {os.getpid()} if self._adopts else set(own)
        while found := {pid for pid, stat in table.items() if stat.parent_pid in parents} - own:
            own |= found
            parents |= found
        self._start_ticks = {pid: table[pid].start_ticks for pid in own if pid in table}
        return {pid: table[pid] for pid in self._start_ticks if table[pid].state not in "ZX"}
