"""The heap of a process by the functions that asked for it: the kernel's count joined with an allocator profile.

The profile is of another run, and its figures are never scaled. The heap that the kernel counts consists of the live
bytes of each function, what the allocator adds, what it keeps although it is free, and the difference of the two runs.
These add up to the byte. A profile has no addresses of blocks, so the last two have no ranges: they are differences by
nature, and `HeapAccount` says so.

Where the profile has more than the process holds, it is unknown which blocks are missing. Then each row has what
remains of it if all missing bytes were missing there, and the rest is a row of its own.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import Final, NamedTuple

from footprint.attribution.accounts import add_up
from footprint.attribution.heap_usage import HeapUsage, used_bytes
from footprint.errors import Note
from footprint.heap import Counted
from footprint.heap.allocators import Allocators
from footprint.heap.attribution import NO_STACK, add_up_shares, charged
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.heap_account import HeapAccount, Share
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.units import first_of, format_bytes

__all__ = ("BEYOND", "FREE", "NAMELESS", "NOT_TOLD", "OVERHEAD", "join_heap")

OVERHEAD: Final = "[allocator overhead]"
FREE: Final = "[free but resident]"
BEYOND: Final = "[heap beyond the profile]"
NAMELESS: Final = "[anonymous]"
NOT_TOLD: Final = "[heap, not told whose]"

_HEAP: Final = "[heap]"
_SEVERAL: Final = "[several of its functions]"
_NOT_PRIVATE: Final = "[mapped, not private]"
# What allocators call their memory where the kernel lets them: glibc 2.39, bionic, scudo, jemalloc.
_NAMED: Final = ("[anon: glibc: malloc", "[anon:libc_malloc", "[anon:scudo:", "[anon:jemalloc")
_MOST_NAMED: Final = 3
_LEAST_APART_BYTES: Final = 128 * 1024  # M_MMAP_THRESHOLD, as long as nothing so large was freed


def join_heap(audit: Audit, usage: HeapUsage, owners: Dict[str, str]) -> Audit:
    """Split the heap of an audit by the functions that asked for it; its totals and its projection do not change.

    `owners` has the owners in the ledger of objects that have another name in the profile.
    """
    shares = _shares(usage, owners)
    is_virtual = audit.totals.private.bytes is None
    profile, snapshot = usage.profile, usage.snapshot
    pool = _Pool(audit.ledger, profile.heap_owner, is_virtual=is_virtual)
    if snapshot is None:
        raise ValueError("a heap is joined with a profile of a moment")
    live_bytes, extra_bytes = sum(share.size_bytes for share in shares), snapshot.extra_bytes
    place = next(number for number, one in enumerate(profile.snapshots) if one is snapshot)
    peak_bytes = max(used_bytes(one) - (one.stack_bytes or 0) for one in profile.snapshots[: place + 1])
    is_joined = profile.counted is Counted.HEAP
    used = live_bytes + (extra_bytes or 0)
    maps_all = profile.has_own_allocator or _has_other_allocator(audit.ledger)
    large_bytes = used if maps_all else _large_bytes(usage)
    apart_bytes = min(pool.nameless_bytes, large_bytes, max(0, used - pool.held_bytes)) if is_joined else 0
    left_bytes = pool.held_bytes + apart_bytes - used if is_joined else 0
    free_bytes = min(max(0, left_bytes), max(0, peak_bytes - used))
    account = HeapAccount(
        file=usage.file,
        format=profile.format,
        command=profile.command,
        snapshot=snapshot.number,
        snapshot_count=len(profile.snapshots),
        is_peak=snapshot.is_peak,
        shares=shares,
        live_bytes=live_bytes,
        extra_bytes=extra_bytes,
        peak_bytes=max(peak_bytes, used),
        held_bytes=pool.held_bytes if is_joined else None,
        apart_bytes=apart_bytes,
        free_bytes=free_bytes,
        difference_bytes=left_bytes - free_bytes,
        evidence=weakest((Evidence.ESTIMATED, usage.evidence, *pool.evidence)),
    )
    notes = (*audit.notes, *usage.notes, *_notes(account, audit.ledger))
    rows = pool.split(account) if is_joined else audit.ledger
    return replace(audit, ledger=rows, heap=account, notes=tuple(dict.fromkeys(notes)))


def _shares(usage: HeapUsage, owners: Dict[str, str]) -> tuple[Share, ...]:
    """Return what each function asked for, with the owners of the ledger."""
    told = usage.attribution.shares if usage.attribution is not None else ()
    found = add_up_shares(share._replace(owner=owners.get(share.owner, share.owner)) for share in told)
    # A faulty profile has negative amounts for what it counted twice; a note says so.
    shares = [share for share in found if share.size_bytes > 0]
    live_bytes = usage.snapshot.live_bytes if usage.snapshot is not None else 0
    untold_bytes = live_bytes - sum(share.size_bytes for share in shares)
    return add_up_shares([*shares, *([Share(NO_STACK, NO_STACK, untold_bytes)] if untold_bytes > 0 else [])])


def _has_other_allocator(ledger: Iterable[Row]) -> bool:
    """Return whether the allocator of a process is not glibc's: all others take their memory from nameless mappings."""
    owners = {row.owner for row in ledger if row.owner.startswith("/")}
    return any(Allocators.has_object(owner) or "/ld-musl-" in owner for owner in owners)


def _large_bytes(usage: HeapUsage) -> int:
    """Add up what may lie in blocks that glibc maps one by one: blocks of calls with a large mean size."""
    if usage.tree is None:
        return 0
    return sum(
        size_bytes
        for _, size_bytes, block_count in charged(usage.tree, usage.calls)
        if size_bytes // (block_count or 1) >= _LEAST_APART_BYTES
    )


def _notes(account: HeapAccount, ledger: Iterable[Row]) -> Iterable[Note]:
    if account.held_bytes is None:
        detail = "it counts address space (--pages-as-heap), also untouched memory: it is shown, and added to nothing"
        yield Note("heap-profile-virtual", account.file, detail)
    known = {row.owner for row in ledger}
    told = [share for share in account.shares if not share.owner.startswith("[")]
    strange = [share for share in told if share.owner not in known]
    strange_bytes = sum(share.size_bytes for share in strange)
    if strange_bytes * 2 > sum(share.size_bytes for share in told):
        objects = first_of(list(dict.fromkeys(share.owner for share in strange)), _MOST_NAMED)
        detail = f"objects that the process does not have allocated {format_bytes(strange_bytes)}: {objects}"
        yield Note("heap-profile-misfit", account.file, detail)


class _Line(NamedTuple):
    """A future row: its bytes, and the bytes that the profile has for it, for which it gets address space."""

    owner: str
    function: str | None
    size_bytes: int
    profiled_bytes: int


class _Pool:
    """The rows of a ledger that are the heap, and the nameless rows that may be heap in part."""

    def __init__(self, ledger: Sequence[Row], heap_owner: str | None, *, is_virtual: bool) -> None:
        self._is_virtual, self._owner = is_virtual, heap_owner or _HEAP
        # A runtime has its heap in mappings of its own, and nothing of it elsewhere.
        self._heap = [row for row in ledger if _is_heap(row, heap_owner)]
        self._nameless = [row for row in ledger if _is_nameless(row) and not heap_owner]
        # The ledger has the largest first.
        taken = {*self._heap, *self._nameless}
        self._others = [row for row in ledger if row not in taken]
        self.held_bytes = sum(map(self._size, self._heap))
        self.nameless_bytes = sum(map(self._size, self._nameless))

    @property
    def evidence(self) -> set[Evidence]:
        """How the rows of the heap are known."""
        return {row.evidence for row in self._heap}

    def _size(self, row: Row) -> int:
        return row.mapped_bytes if self._is_virtual else row.bytes or 0

    def split(self, account: HeapAccount) -> tuple[Row, ...]:
        """Return the ledger with its heap split, and without the nameless memory that belongs to the heap."""
        rows = list(self._others)
        mapped_bytes = sum(row.mapped_bytes for row in self._heap)
        left = account.apart_bytes
        for row in self._nameless:
            taken = min(left, self._size(row))
            left -= taken
            mapped_taken = min(taken, row.mapped_bytes)
            mapped_bytes += mapped_taken
            rows.append(self._less(row, taken, mapped_taken))
        rows += self._rows(_lines(account), mapped_bytes, account.evidence)
        return add_up(rows)

    def _less(self, row: Row, taken: int, mapped_taken: int) -> Row:
        if not taken:
            return row
        mapped_bytes = row.mapped_bytes - mapped_taken
        if self._is_virtual or row.bytes is None:
            return row._replace(mapped_bytes=mapped_bytes)
        evidence = weakest((row.evidence, Evidence.ESTIMATED))
        return row._replace(bytes=row.bytes - taken, mapped_bytes=mapped_bytes, pages=None, evidence=evidence)

    def _rows(self, lines: Sequence[_Line], mapped_bytes: int, evidence: Evidence) -> Iterable[Row]:
        if self._is_virtual:
            yield from (_row(line, None, line.size_bytes, None, evidence) for line in lines if line.size_bytes)
            return
        shared = [row.shared_bytes for row in self._heap if row.shared_bytes is not None]
        # Address space goes first to bytes that are surely there, then to bytes that were only asked for.
        spaces = [0] * len(lines)
        for wanted in ([line.size_bytes for line in lines], [line.profiled_bytes for line in lines]):
            for place, size_bytes in enumerate(wanted):
                more = min(max(0, size_bytes - spaces[place]), mapped_bytes)
                spaces[place] += more
                mapped_bytes -= more
        for line, space in zip(lines, spaces, strict=True):
            if line.size_bytes or space:
                yield _row(line, line.size_bytes, space, 0, evidence)
        if mapped_bytes or any(shared):
            yield _row(_Line(self._owner, _NOT_PRIVATE, 0, 0), 0, mapped_bytes, sum(shared), evidence)


def _is_heap(row: Row, heap_owner: str | None) -> bool:
    if heap_owner is not None:
        return row.owner == heap_owner and row.is_writable
    is_named = row.kind is MemoryKind.ANONYMOUS and row.owner.startswith(_NAMED)
    return (row.kind is MemoryKind.HEAP or is_named) and row.is_writable


def _is_nameless(row: Row) -> bool:
    return row.kind is MemoryKind.ANONYMOUS and row.owner == NAMELESS and row.is_writable


def _lines(account: HeapAccount) -> list[_Line]:
    """Return the lines of the heap; they add up to its bytes."""
    missing = max(0, -account.difference_bytes)
    by_owner: dict[str, list[Share]] = {}
    for share in account.shares:
        by_owner.setdefault(share.owner, []).append(share)
    if account.extra_bytes:
        by_owner.setdefault(OVERHEAD, []).append(Share(OVERHEAD, OVERHEAD, account.extra_bytes))
    lines = []
    for owner, shares in by_owner.items():
        own = [_Line(owner, share.function, max(0, share.size_bytes - missing), share.size_bytes) for share in shares]
        least_bytes = max(0, sum(share.size_bytes for share in shares) - missing)
        lines += own
        lines.append(_Line(owner, _SEVERAL, least_bytes - sum(line.size_bytes for line in own), 0))
    lines += [
        _Line(FREE, None, account.free_bytes, 0),
        _Line(BEYOND, None, max(0, account.difference_bytes), 0),
    ]
    rest_bytes = account.total_bytes - sum(line.size_bytes for line in lines)
    return [*lines, _Line(NOT_TOLD, None, rest_bytes, 0)]


def _row(line: _Line, size_bytes: int | None, mapped_bytes: int, shared_bytes: int | None, evidence: Evidence) -> Row:
    function = None if line.function == line.owner else line.function
    is_symbol = function is not None and not function.startswith("[")
    return Row(
        owner=line.owner,
        kind=MemoryKind.HEAP,
        section=None,
        symbol=function if is_symbol else None,
        name=function,
        bytes=size_bytes,
        mapped_bytes=mapped_bytes,
        shared_bytes=shared_bytes,
        pages=None,
        sole_pages=0,
        relocated_bytes=None,
        is_writable=True,
        evidence=evidence,
        attribution=Attribution.PROFILE,
    )
