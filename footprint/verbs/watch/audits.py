"""The whole audits of a watch: what is read in a moment, and joined with files later, and what each owner costs."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.attribution.address_spaces import count_address_spaces_once
from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import by_mapping, count_each
from footprint.elf.notes import STANDARD_PLACES
from footprint.errors import AccessError, FootprintError, Note, UnsupportedError
from footprint.model.audit import Audit
from footprint.model.projection import Question
from footprint.model.row import MemoryKind
from footprint.process.freezer import frozen
from footprint.process.snapshot import Snapshot, read_process, with_address_spaces, with_held_files
from footprint.series.growth import KeptMapping, largest_mappings
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import images_of
from footprint.system.limits import STANDARD, limited, time_limit
from footprint.verbs.audit.process import audit_of, files_of
from footprint.verbs.watch.tick_costs import HeldFile, KernelPrices, held_files, kernel_prices

_SHARED: Final = "[shared since a fork]"
_STACKS: Final = "[kernel stacks]"
# Stopping more takes longer than their peak lasts.
_MOST_STOPPED: Final = 16
_LONGEST_STOP_SECONDS: Final = 5.0
# All but the audits at the start, at the end and on request take at most this part of a processor, and what is free:
# for looks at what each owner holds, and for all of them.
_SHARE: Final = 0.002
_FREE_LOOK_SECONDS: Final = 0.15
_FREE_SECONDS: Final = 2.0
# While there is free time, looks take at most this part of a processor.
_FREE_PART: Final = 0.02
# A peak or a jump matters from this size on.
_STEP_BYTES: Final = 1 << 20
_STEP_SHARE: Final = 0.1
_JUMP_BYTES: Final = 4 << 20


def cost_of(audit: Audit) -> int:
    """Return what the processes of an audit cost; where that is not known, what its rows have."""
    cost_bytes = audit.cost.bytes
    return sum(row.bytes or 0 for row in audit.ledger) if cost_bytes is None else cost_bytes


def owner_costs(audit: Audit, shared_weights: Mapping[str, int]) -> Mapping[str, int]:
    """Add up what each owner costs. What the kernel spends is divided by its kinds.

    Args:
        audit: The audit.
        shared_weights: By owner, in which proportion the memory counts that processes of a group share since a fork.
    """
    costs: Counter[str] = Counter()
    for row in audit.ledger:
        if row.bytes:
            costs[_kernel_owner(row.name or row.owner) if row.kind is MemoryKind.KERNEL else row.owner] += row.bytes
    if audit.is_group:
        costs.update(_divided(audit.totals.cow_shared.bytes or 0, shared_weights))
    for file in audit.memory_files:
        costs[file.owner] += file.own_bytes
    return dict(+costs)


def _kernel_owner(name: str) -> str:
    # The row of one process has the number of its threads.
    return _STACKS if name.startswith(_STACKS[:-1]) else name


def _divided(whole_bytes: int, weights: Mapping[str, int]) -> Mapping[str, int]:
    """Divide bytes in proportion to weights; the owner with the largest one has what is left by rounding."""
    whole_weight = sum(weights.values())
    if not whole_weight:
        return {_SHARED: whole_bytes}
    parts = {owner: whole_bytes * weight // whole_weight for owner, weight in weights.items()}
    parts[max(weights, key=weights.__getitem__)] += whole_bytes - sum(parts.values())
    return parts


def shared_weights(snapshots: Sequence[Snapshot], files: ElfFiles) -> Mapping[str, int]:
    """Add up the proportional shares of what processes share since a fork, by its owner.

    A mapping with several owners counts for the largest. Of one that has pages of its file, too, the kernel adds the
    shares of both: they count up to its COW-shared size.
    """
    weights: Counter[str] = Counter()
    for snapshot in snapshots:
        counts = count_each(snapshot.memory.mappings, snapshot.pages)
        if not any(counted.cow_shared_bytes for counted in counts):
            continue
        images, _ = images_of(snapshot, None, files.opened, files.images)
        ranges = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
        for parts, counted in by_mapping(ranges, counts):
            if counted.cow_shared_bytes:
                counter = parts[0].mapping.counters.get
                private_bytes = (counted.private_bytes or 0) - (counter("Swap") or 0)
                share_bytes = min(counted.cow_shared_bytes, (counter("Pss") or 0) - private_bytes)
                largest = max(parts, key=lambda part: part.end_addr - part.start_addr)
                weights[largest.owner] += max(0, share_bytes)
    return dict(+weights)


class Joined(NamedTuple):
    """An audit, and what each owner costs in it."""

    audit: Audit
    owners: Mapping[str, int]


class Reading(NamedTuple):
    """What was read of processes: they may have gone on, or have ended, since.

    Attributes:
        join: Makes the audit of it.
        mappings: The private memory of the largest mappings, by their keys.
        prices: What the kernel spent on each process.
        files: The files in memory that they keep.
        firsts: Of each process that has the address space of an earlier one, that one.
        private_bytes: What is private of a process that is watched by itself, and shares memory since a fork.
    """

    join: Callable[[], Joined]
    mappings: Mapping[str, int]
    prices: Mapping[int, KernelPrices] = MappingProxyType({})
    files: Sequence[HeldFile] = ()
    firsts: Mapping[int, int] = MappingProxyType({})
    private_bytes: Mapping[int, int] = MappingProxyType({})


def is_there(pid: int) -> bool:
    """Return whether a process is there."""
    return os.path.exists(f"/proc/{pid}/maps")


class Audits:
    """Makes the audits of one watch; a file that was read for one of them is known to the next.

    Args:
        target: What is watched.
        is_one: Whether it is one process; else they are audited as a group.
        stops_at_peak: Whether the processes are stopped while they are read at a peak.
    """

    def __init__(self, target: str, *, is_one: bool, stops_at_peak: bool = False) -> None:
        self._target = target
        self._is_one = is_one
        self._stops_at_peak = stops_at_peak
        self._files: ElfFiles | None = None
        self.constants = load_constants(platform.release(), platform.machine())

    def read(self, pids: Sequence[int], is_peak: bool) -> Reading:  # noqa: FBT001 # as the engine calls it
        """Read processes as they are now.

        Raises:
            AccessError: If none of them can be read.
        """
        snapshots: list[Snapshot] = []
        notes: list[Note] = []
        stopped = [pid for pid in pids if pid != os.getpid()] if is_peak and self._stops_at_peak else []
        with limited(), frozen(stopped[:_MOST_STOPPED], _LONGEST_STOP_SECONDS):
            for pid in pids:
                try:
                    snapshots.append(read_process(pid))
                except UnsupportedError:
                    # It has just ended, and is a zombie.
                    continue
                except FootprintError as error:
                    if not is_there(pid):
                        # Its end is told as such.
                        continue
                    notes.append(Note("process-not-read", f"pid {pid}", f"{error.detail}; it is left out"))
        if not snapshots:
            raise AccessError(self._target, notes[0].detail if notes else "no process of it is there")
        kept = with_address_spaces(with_held_files(snapshots))
        counted, _ = count_address_spaces_once(kept)
        every = [(s.process_id, kernel_prices(s, s.open_files or (), self.constants)) for s in counted]
        prices = {number: price for number, price in every if number is not None and price is not None}
        mappings = largest_mappings(_private_bytes(kept))
        alone = _alone(kept) if self._is_one else {}
        # A process whose main thread has ended was read as another one of its threads.
        numbers = {s.pid: s.process_id or 0 for s in kept}
        spaces = [(s.process_id or 0, numbers.get(s.address_space_pid)) for s in kept]
        firsts = {pid: first for pid, first in spaces if first is not None and first != pid}
        return Reading(lambda: self._limited(kept, notes), mappings, prices, held_files(counted), firsts, alone)

    def _limited(self, snapshots: Sequence[Snapshot], notes: Sequence[Note]) -> Joined:
        """Make an audit within the limits of one answer."""
        with limited(), time_limit(STANDARD.seconds):
            return self._joined(snapshots, notes)

    def _joined(self, snapshots: Sequence[Snapshot], notes: Sequence[Note]) -> Joined:
        """Join what was read with the files; of a process that has ended since, the files at its paths."""
        snapshots = [s._replace(is_live=s.pid is not None and is_there(s.pid)) for s in snapshots]
        if self._files is None:
            self._files = files_of(snapshots[0], STANDARD_PLACES) if self._is_one else ElfFiles(STANDARD_PLACES)
        if self._is_one:
            (snapshot,) = snapshots
            audit = audit_of(snapshot, self._target, Question(), files=self._files)
            return Joined(audit, owner_costs(audit, {}))
        from footprint.verbs.audit.group import group_of  # noqa: PLC0415 # few watches are of groups

        group = group_of(snapshots, notes=notes, target=self._target, files=self._files)
        weights = shared_weights(snapshots, self._files) if group.totals.cow_shared.bytes else {}
        return Joined(group, owner_costs(group, weights))


def _alone(snapshots: Sequence[Snapshot]) -> Mapping[int, int]:
    """Add up the private memory of processes that share some since a fork."""
    sharing = [s for s in snapshots if s.rollup is not None and s.rollup.get("Pss_Anon") != s.rollup.get("Anonymous")]
    return {
        s.process_id or 0: sum(count.private_bytes or 0 for count in count_each(s.memory.mappings, s.pages))
        for s in sharing
    }


def _private_bytes(snapshots: Sequence[Snapshot]) -> Iterator[tuple[KeptMapping, int]]:
    """Return the anonymous memory of each mapping that only its process holds, swapped memory included."""
    for snapshot in snapshots:
        for mapping in snapshot.memory.mappings:
            swapped_bytes = mapping.counters.get("SwapPss") or 0
            kept = KeptMapping(snapshot.process_id or 0, mapping.start_addr, mapping.end_addr, mapping.name)
            yield kept, mapping.counters.private_bounds()[0] + swapped_bytes


class AuditMoment(StrEnum):
    """Why a whole audit is made."""

    START = "start"
    PEAK = "peak"
    """All processes hold clearly more than in any audit before."""
    GROWTH = "growth"
    """They hold clearly more than a tick before."""
    LAST = "last"
    """The last one before the end, which could not be audited."""
    END = "end"
    SIGNAL = "signal"
    """SIGUSR1, or a key."""


class AuditBudget:
    """How much processor time the audits may take that nobody asked for.

    Args:
        every_seconds: The time between two ticks.
    """

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._spent_seconds = 0.0
        self._last_cost_seconds = 0.0
        self._next_look = 0.0

    def spend(self, cost_seconds: float, now: float, *, whole_seconds: float, is_asked: bool) -> None:
        """Count a part of an audit; the next one may cost as much as the whole of this one."""
        self._last_cost_seconds = whole_seconds
        if not is_asked:
            self._spent_seconds += cost_seconds
        part = _FREE_PART if self._spent_seconds < _FREE_LOOK_SECONDS else _SHARE
        self._next_look = now + max(self._every_seconds, whole_seconds / part)

    def put_off(self, now: float) -> None:
        """Put the next look off, where one is not needed."""
        self._next_look = now + max(self._every_seconds, self._last_cost_seconds / _SHARE)

    def allows(self, now: float) -> bool:
        """Return whether one more is allowed at a moment that matters."""
        return self._has_left(_FREE_SECONDS, now)

    def _has_left(self, free_seconds: float, now: float) -> bool:
        return self._spent_seconds + self._last_cost_seconds <= free_seconds + _SHARE * now

    def is_look_due(self, now: float) -> bool:
        """Return whether it is time to see what each owner holds."""
        return now >= self._next_look and self._has_left(_FREE_LOOK_SECONDS, now)


class RiseStep(NamedTuple):
    """What decides on an audit at a tick.

    Attributes:
        audited_bytes: The most that an audit has seen.
        before_bytes: What all processes cost a tick before.
    """

    audited_bytes: int
    before_bytes: int

    def moment(self, now_bytes: int) -> AuditMoment | None:
        """Return the moment that this is; None for an ordinary one."""
        if now_bytes > self.audited_bytes + max(_STEP_BYTES, _STEP_SHARE * self.audited_bytes):
            return AuditMoment.PEAK
        if now_bytes > self.before_bytes + max(_JUMP_BYTES, _STEP_SHARE * self.before_bytes):
            return AuditMoment.GROWTH
        return None
