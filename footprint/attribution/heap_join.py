"""The heap of a process by the functions that asked for it: the kernel's count joined with an allocator profile.

The profile is of another run, and its figures are never scaled. The heap that the kernel counts consists of the live
bytes of each function, what the allocator adds, what it keeps although it is free, and the difference of the two runs.
These add up to the byte. A profile has no addresses of blocks, so the last two have no ranges: they are differences by
nature, and `HeapAccount` says so.

Where the profile has more than the process holds, it is unknown which blocks are missing. Then each row has what
remains of it if all missing bytes were missing there, and the rest is a row of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from operator import itemgetter
from typing import Final, NamedTuple, TypeGuard

from footprint.attribution.accounts import add_up
from footprint.attribution.allocator_models import GLIBC, GLIBC_32, JEMALLOC, MIMALLOC, MUSL, TCMALLOC, AllocatorModel
from footprint.attribution.heap_usage import HeapUsage, heap_share
from footprint.attribution.live_ranges import MUSL_HEAP
from footprint.attribution.runtimes import JEMALLOC_HEAP, MIMALLOC_HEAP
from footprint.errors import Note
from footprint.heap.attribution import NO_STACK, add_up_shares, charged
from footprint.heap.profile import CallTree, Counted, HeapSnapshot, Profile
from footprint.members import replace
from footprint.model.audit import Audit
from footprint.model.heap_account import AllocatorAccount, HeapAccount, HeapShare, Share
from footprint.model.row import NAMELESS, Attribution, Evidence, MemoryKind, Row, weakest
from footprint.process.live_memory import other_allocator
from footprint.text.command_line import shown_command
from footprint.text.units import first_of, format_bytes

OVERHEAD: Final = "[allocator overhead]"
FREE: Final = "[free but resident]"
BEYOND: Final = "[heap beyond the profile]"
NOT_TOLD: Final = "[heap, not told whose]"

_HEAP: Final = "[heap]"
_SEVERAL: Final = "[several of its functions]"
_NOT_PRIVATE: Final = "[mapped, not private]"
# The memory that is recognised as that of another allocator.
_OWN_HEAPS: Final = {
    JEMALLOC_HEAP: JEMALLOC,
    "[anon:jemalloc": JEMALLOC,
    MIMALLOC_HEAP: MIMALLOC,
    MUSL_HEAP: MUSL,
}
_MODELS: Final = {model.name: model for model in (GLIBC, JEMALLOC, MIMALLOC, MUSL, TCMALLOC)}
_BLIND: Final = 10  # a profile with a tenth of it does not count the calls of this allocator
_LEAST_BLIND_BYTES: Final = 1 << 20
_LIBC: Final = re.compile(r"libc(?:\.so\.6|-2\.[0-9.]+\.so)(?: \(deleted\))?")
_LIBRARIES: Final = re.compile(
    r"(?:^|/)lib(jemalloc|mimalloc|tcmalloc)[^/]*$|(?:^|/)ld-(musl)-[^/]*$|linux-(musl)[^/]*/libc\.so(?: \(deleted\))?$"
)
_OF_THREADS: Final = frozenset({"[malloc arenas]", "[thread stacks]"})
_MOST_NAMED: Final = 3
_LEAST_APART_BYTES: Final = 128 * 1024  # M_MMAP_THRESHOLD, as long as nothing so large was freed


def join_heap(audit: Audit, usage: HeapUsage, owners: Dict[str, str], word_bytes: int = 8) -> Audit:
    """Split the heap of an audit by the functions that asked for it; its totals and its projection do not change.

    Args:
        audit: A process.
        usage: The profile at a moment.
        owners: The owners in the ledger of objects that have another name in the profile.
        word_bytes: The size of a pointer of the process.
    """
    shares = _shares(usage, owners)
    is_virtual = audit.totals.private.bytes is None
    profile, snapshot = usage.profile, usage.snapshot
    pool = _Pool(audit.ledger, profile.heap_owner, is_virtual=is_virtual)
    if snapshot is None:
        raise ValueError("a heap is joined with a profile of a moment")
    is_joined = profile.counted is Counted.HEAP
    allocator = _allocator(audit, profile) if is_joined else _Allocator(None, maps_all=False)
    model = GLIBC_32 if allocator.model is GLIBC and word_bytes == 4 else allocator.model
    live_bytes, extra_bytes = sum(share.size_bytes for share in shares), _extra_bytes(snapshot, model)
    used = live_bytes + (extra_bytes or 0)
    peak_bytes, peak_most_bytes, allocated_bytes = _peak(profile, snapshot, model)
    # What was read from the process: its mapped blocks are in the pool.
    measured = audit.allocator if _has_rows(audit.allocator) and audit.allocator.allocator == allocator.name else None
    apart_bytes = _apart_bytes(pool, usage, allocator, used) if is_joined and measured is None else 0
    left_bytes = pool.held_bytes + apart_bytes - used if is_joined else 0
    has_threads = any(row.owner in _OF_THREADS for row in audit.ledger)
    # Each arena keeps what its threads had at a peak of their own.
    most_bytes = max(peak_most_bytes, allocated_bytes if has_threads else 0, used)
    free_bytes = measured.free_private_bytes if measured is not None else min(max(0, left_bytes), most_bytes - used)
    account = HeapAccount(
        file=usage.file,
        format=profile.format,
        command=None if profile.command is None else shown_command(profile.command),
        snapshot=snapshot.number,
        snapshot_count=len(profile.snapshots),
        is_peak=snapshot.is_peak,
        has_end=profile.has_end,
        shares=tuple(map(heap_share, shares)),
        live_bytes=live_bytes,
        extra_bytes=extra_bytes,
        is_extra_modelled=model is not None and _blocks(snapshot) is not None,
        allocator=allocator.name,
        peak_bytes=max(peak_bytes, used),
        held_bytes=pool.held_bytes if is_joined else None,
        apart_bytes=apart_bytes,
        free_bytes=free_bytes,
        is_free_measured=measured is not None,
        difference_bytes=left_bytes - free_bytes,
        evidence=weakest((Evidence.ESTIMATED, usage.evidence, *pool.evidence)),
        sample_period_bytes=profile.sample_period_bytes,
    )
    notes = (*audit.notes, *usage.notes, *_notes(account, audit.ledger))
    rows = pool.split(account) if is_joined else audit.ledger
    return replace(audit, ledger=rows, heap=account, notes=tuple(dict.fromkeys(notes)))


def _shares(usage: HeapUsage, owners: Dict[str, str]) -> tuple[Share, ...]:
    """Return what each function asked for, with the owners of the ledger."""
    listed = usage.attribution.shares if usage.attribution is not None else ()
    added_up = add_up_shares(share._replace(owner=owners.get(share.owner, share.owner)) for share in listed)
    # A faulty profile has negative amounts for what it counted twice; a note says so.
    shares = [share for share in added_up if share.size_bytes > 0]
    live_bytes = usage.snapshot.live_bytes if usage.snapshot is not None else 0
    untold_bytes = live_bytes - sum(share.size_bytes for share in shares)
    return add_up_shares([*shares, *([Share(NO_STACK, NO_STACK, untold_bytes)] if untold_bytes > 0 else [])])


class _Allocator(NamedTuple):
    """The allocator of a process.

    Attributes:
        name: Its name, where it is known.
        model: Its block sizes, where there is a model.
        maps_all: Whether its memory is not recognised, but lies in nameless mappings.
    """

    name: str | None
    model: AllocatorModel | None = None
    maps_all: bool = False


def _has_rows(account: AllocatorAccount | None) -> TypeGuard[AllocatorAccount]:
    """Return whether the ledger has what an allocator says: a capture has its sums alone."""
    return account is not None and account.captured_at is None


def _allocator(audit: Audit, profile: Profile) -> _Allocator:
    """Find the allocator by the memory that was recognised as its own, or else by its library, or by a note."""
    ledger, account = audit.ledger, audit.allocator
    if profile.heap_owner is not None:
        return _Allocator(profile.heap_owner)
    owners = Counter[str]()
    for row in ledger:
        if _is_heap(row, None):
            owners[row.owner] += row.bytes or row.mapped_bytes
    largest = next((owner for owner, _ in owners.most_common(1)), "")
    for start, model in _OWN_HEAPS.items():
        if largest.startswith(start):
            return _Allocator(model.name, model)
    names = [match for row in ledger if (match := _LIBRARIES.search(row.owner))]
    name = next(filter(None, names[0].groups())) if names else other_allocator(audit.notes)
    read_name = None if account is None else account.allocator
    if name is None and read_name == MUSL.name:
        name = read_name
    if name is not None and not (name == read_name and _has_rows(account)):
        return _Allocator(name, _MODELS.get(name), maps_all=True)
    if profile.has_own_allocator:
        return _Allocator(None, maps_all=True)
    # A static program may have any.
    if read_name is None and any(_LIBC.fullmatch(row.owner.rsplit("/", 1)[-1]) for row in ledger):
        read_name = GLIBC.name
    return _Allocator(read_name, _MODELS.get(read_name or ""))


def _blocks(snapshot: HeapSnapshot) -> CallTree | None:
    """Return the call tree of a snapshot if it counts blocks."""
    return snapshot.tree if snapshot.tree is not None and snapshot.tree.total_blocks is not None else None


def _extra_bytes(snapshot: HeapSnapshot, model: AllocatorModel | None) -> int | None:
    """Return what the allocator adds: by its model where blocks are counted, else what the profile says."""
    tree = _blocks(snapshot)
    return snapshot.extra_bytes if model is None or tree is None else model.added_bytes(tree)


def _peak(profile: Profile, moment: HeapSnapshot, model: AllocatorModel | None) -> tuple[int, int, int]:
    """Return the most memory that was in use up to a moment, with what the allocator adds.

    Then the most that it may have been, where the blocks of that moment are not counted; and all that was allocated
    over the run, 0 where the profile does not say.
    """
    place = next(number for number, snapshot in enumerate(profile.snapshots) if snapshot is moment)
    before = profile.snapshots[: place + 1]
    used = [before_peak.live_bytes + (_extra_bytes(before_peak, model) or 0) for before_peak in before]
    used_bytes, peak = max(zip(used, before, strict=True), key=itemgetter(0))
    # How many blocks massif had at a peak is unknown. Valgrind adds at least 8 bytes to each, and glibc up to 8 more.
    is_unknown = model is not None and _blocks(moment) is not None and _blocks(peak) is None
    most_bytes = used_bytes + ((peak.extra_bytes or 0) if is_unknown else 0)
    tree = _allocated(profile)
    allocated_bytes = 0
    if tree is not None:
        allocated_bytes = tree.total_bytes + ((model.added_bytes(tree) if model is not None else None) or 0)
    elif profile.time_unit == "B" and profile.format == "massif":
        # Its time is what was allocated and freed.
        allocated_bytes = max((int(s.time or 0) + size) // 2 for size, s in zip(used, before, strict=True))
    return used_bytes, most_bytes, allocated_bytes


def _allocated(profile: Profile) -> CallTree | None:
    return next((tally.tree for tally in profile.tallies if tally.name == "allocated"), None)


def _apart_bytes(pool: "_Pool", usage: HeapUsage, allocator: _Allocator, used: int) -> int:
    """Return how much of the nameless memory belongs to the heap: blocks that are mapped each on its own.

    Large blocks whose number is known are surely there. Others may be, if the heap holds less than is in use.
    """
    model, tree = allocator.model, usage.tree
    mapped_bytes = model.mapped_bytes(tree, _allocated(usage.profile)) if model is not None and tree is not None else 0
    has_own_heap = not allocator.maps_all and model in {JEMALLOC, MIMALLOC}
    large_bytes = used if allocator.maps_all else 0 if has_own_heap else _large_bytes(usage)
    return min(pool.nameless_bytes, max(mapped_bytes, min(large_bytes, max(0, used - pool.held_bytes))))


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
    # Where the allocator is unknown, its memory may have no name.
    owners = (*_OWN_HEAPS, *(() if account.allocator else (NAMELESS,)))
    unseen = [row for row in ledger if row.owner.startswith(owners) and row.is_writable]
    unseen_bytes = sum(row.bytes or 0 for row in unseen)
    if account.held_bytes is not None and unseen_bytes > max(_LEAST_BLIND_BYTES, _BLIND * account.peak_bytes):
        sizes = f"{format_bytes(unseen_bytes)}, the profile {format_bytes(account.peak_bytes)} at its peak"
        detail = f"{unseen[0].owner} has {sizes}: it may not count the calls of an allocator that is linked in"
        yield Note("heap-profile-blind", account.file, detail)
    owners_of_rows = {row.owner for row in ledger}
    of_objects = [share for share in account.shares if not share.owner.startswith("[")]
    strange = [share for share in of_objects if share.owner not in owners_of_rows]
    strange_bytes = sum(share.size_bytes for share in strange)
    if strange_bytes * 2 > sum(share.size_bytes for share in of_objects):
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
    return row.is_heap and row.is_writable


def _is_nameless(row: Row) -> bool:
    return row.kind is MemoryKind.ANONYMOUS and row.owner == NAMELESS and row.is_writable


def _lines(account: HeapAccount) -> list[_Line]:
    """Return the lines of the heap; they add up to its bytes."""
    missing = max(0, -account.difference_bytes)
    by_owner: dict[str, list[HeapShare]] = {}
    for share in account.shares:
        by_owner.setdefault(share.owner, []).append(share)
    if account.extra_bytes:
        by_owner.setdefault(OVERHEAD, []).append(HeapShare(OVERHEAD, None, OVERHEAD, account.extra_bytes, None))
    lines = []
    for owner, shares in by_owner.items():
        rest = [_Line(owner, share.function, max(0, share.size_bytes - missing), share.size_bytes) for share in shares]
        least_bytes = max(0, sum(share.size_bytes for share in shares) - missing)
        lines += rest
        lines.append(_Line(owner, _SEVERAL, least_bytes - sum(line.size_bytes for line in rest), 0))
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
