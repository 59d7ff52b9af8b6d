"""Which files in memory belong to some processes, and what each costs them.

A file in memory costs what it holds, once, however many of its pages are mapped and how often. It belongs to the
processes that keep it: if no other process maps it or holds it open, a copy of them makes its own. The descendants of
a process belong to it here: it starts them, and what it shares with them a copy shares with its own.

A name in a file system keeps a file as well. A program nearly always makes such a file for itself, but a copy may open
the same one: that is an assumption, and a note states it. A file of tmpfs that a process only reads is a file like any.
A buffer of the kernel belongs to those who alone map it, but for what the prices of open descriptors have of it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from footprint.attribution.owned_range import CountsByKind, MappingCounts, count_each
from footprint.errors import Note
from footprint.members import NamedTuple
from footprint.model.costs import MemoryFileCost
from footprint.model.row import Attribution, Evidence, MemoryKind, Row
from footprint.process.mappings import Mapping
from footprint.process.memory_files import SHARED_ANONYMOUS, FileIdentity, FileKeepers, MemoryFile
from footprint.process.snapshot import Snapshot
from footprint.text.units import first_of, format_bytes

_MOST_KEEPERS: Final = 10
_MOST_NAMED: Final = 3


def memory_file_owner(name: str) -> str:
    """Return the owner of the memory of a file in memory, by its name."""
    return "[shared anonymous]" if name in {"", SHARED_ANONYMOUS} else name


class ChargedFile(NamedTuple):
    """A file in memory, and what of it is charged to some processes.

    Attributes:
        file: The file, as the first of them has it.
        cost: What it costs them.
        least_bytes: What is surely theirs, where it is not certain that nobody else keeps the file.
        huge_bytes: The part of it that is mapped by huge pages, as the process with the most of them has it.
    """

    file: MemoryFile
    cost: MemoryFileCost
    least_bytes: int
    huge_bytes: int


def charge_files(snapshots: Sequence[Snapshot], *, is_partial: bool = False) -> tuple[ChargedFile, ...]:
    """Decide which files in memory belong to some processes, and compute what each costs them, counted once.

    Where nobody looked who keeps the files, the shares of the mappings decide (`Pss`).

    Args:
        snapshots: The processes.
        is_partial: Whether others of them could not be read.
    """
    by_identity: dict[FileIdentity, list[MemoryFile]] = {}
    for snapshot in snapshots:
        for memory_file in snapshot.memory_files:
            by_identity.setdefault(memory_file.identity, []).append(memory_file)
    if not by_identity:
        return ()
    pids = frozenset[int]().union(*(snapshot.pids for snapshot in snapshots))
    keepers = next((snapshot.keepers for snapshot in snapshots if snapshot.keepers), None)
    return tuple([_charge(same, pids, keepers, is_partial=is_partial) for same in by_identity.values()])


def charge_open(file: MemoryFile) -> ChargedFile:
    """Charge a file that a process has just opened: nobody has looked who else keeps it."""
    return _charge([file], (), None, is_partial=False)


class _FileUsage(NamedTuple):
    """What some processes have of one file.

    Attributes:
        size_bytes: What it holds; None where that could not be read.
        share_bytes: The shares of its pages.
        sole_bytes: Its pages that are mapped once.
        resident_bytes: Its pages that are mapped, at least.
        swapped_bytes: Its pages that are swapped out.
        is_mapped_elsewhere: Whether the shares show that others map it.
        is_mapped_twice: Whether some of its pages have several mappings.
        priced_bytes: What the prices of open descriptors have of it.
    """

    size_bytes: int | None
    share_bytes: int
    sole_bytes: int
    resident_bytes: int
    swapped_bytes: int
    is_mapped_elsewhere: bool
    is_mapped_twice: bool
    priced_bytes: int

    @classmethod
    def of(cls, same: Sequence[MemoryFile]) -> "_FileUsage":
        sizes = [file.size_bytes for file in same if file.size_bytes is not None]
        whole = same[0] if len(same) == 1 else same[0]._replace(mappings=tuple(m for f in same for m in f.mappings))
        sole_bytes, resident_bytes, share_bytes = whole.sole_bytes, whole.resident_bytes, whole.proportional_bytes
        # A child does not inherit the ring of perf: each process has its own, and all have one inode.
        size_bytes = sum(sizes) if whole.is_kernel_buffer else max(sizes, default=0)
        return cls(
            size_bytes if sizes else None,
            share_bytes,
            sole_bytes,
            resident_bytes,
            whole.swapped_bytes,
            whole.is_mapped_elsewhere,
            sole_bytes < resident_bytes,
            sum([file.priced_bytes for file in same]),
        )

    @property
    def most_bytes(self) -> int:
        """What the file holds, as far as that is known."""
        return max(self.size_bytes or 0, self.share_bytes + self.swapped_bytes, self.resident_bytes)


def _charge(
    same: Sequence[MemoryFile], pids: Collection[int], keepers: FileKeepers | None, *, is_partial: bool
) -> ChargedFile:
    """Charge one file, as each of some processes has it."""
    usage, first = _FileUsage.of(same), same[0]
    others = keepers.others(first.identity, pids) if keepers else ()
    least_bytes, evidence = usage.sole_bytes, Evidence.MEASURED
    if first.is_kernel_buffer:
        share_bytes = _bytes_by_shares(usage, is_one=len(same) == 1, is_partial=is_partial)
        descendants = keepers.pids.get(first.identity, frozenset()).difference(pids) if keepers and not others else ()
        own_bytes, least_bytes = _buffer_bytes(usage, share_bytes, keepers if descendants else None)
        evidence = Evidence.MEASURED if own_bytes == usage.sole_bytes else Evidence.DERIVED
    elif others or not any(file.is_written or not file.has_name for file in same):
        own_bytes = least_bytes = 0
    elif keepers is None:
        own_bytes = least_bytes = _bytes_by_shares(usage, is_one=len(same) == 1, is_partial=is_partial)
        evidence = Evidence.DERIVED
        if not first.is_only_mapped and not usage.is_mapped_elsewhere and own_bytes < usage.most_bytes:
            # What none of its mappings has was most likely written to it.
            own_bytes, evidence = usage.most_bytes, Evidence.ESTIMATED
    elif not keepers.unread_count or usage.share_bytes >= (usage.size_bytes or usage.most_bytes):
        own_bytes = least_bytes = usage.most_bytes
    else:
        evidence = Evidence.ESTIMATED
        own_bytes = usage.share_bytes if usage.is_mapped_elsewhere else usage.most_bytes
    cost = MemoryFileCost(
        owner=memory_file_owner(first.name),
        size_bytes=usage.most_bytes,
        own_bytes=own_bytes,
        shared_bytes=max(own_bytes, usage.resident_bytes - usage.priced_bytes),
        mapped_bytes=sum(mapping.size_bytes for file in same for mapping in file.mappings),
        mapping_count=sum(len(file.mappings) for file in same),
        descriptor_count=sum(len(file.descriptors) for file in same),
        keeper_pids=others[:_MOST_KEEPERS],
        evidence=evidence,
    )
    return ChargedFile(first, cost, least_bytes, max(file.huge_bytes for file in same))


def _buffer_bytes(usage: _FileUsage, share_bytes: int, keepers: FileKeepers | None) -> tuple[int, int]:
    """Compute what of a buffer of the kernel belongs to some processes, and what of that surely does.

    Args:
        usage: What they have of it.
        share_bytes: What is theirs by the shares of their mappings; the kernel rounds each share down.
        keepers: Who was looked at, where only descendants of theirs map it, too.
    """
    sure_bytes = max(usage.size_bytes or 0, share_bytes, usage.sole_bytes)
    most_bytes = sure_bytes
    if not usage.is_mapped_elsewhere:
        sure_bytes = most_bytes = max(sure_bytes, usage.resident_bytes)
    elif keepers:
        most_bytes = max(sure_bytes, usage.share_bytes if keepers.unread_count else usage.resident_bytes)
        sure_bytes = sure_bytes if keepers.unread_count else most_bytes
    return max(0, most_bytes - usage.priced_bytes), max(0, sure_bytes - usage.priced_bytes)


def _bytes_by_shares(usage: _FileUsage, *, is_one: bool, is_partial: bool) -> int:
    """Compute what belongs to some processes by the shares of their mappings.

    The shares of all who map a page add up to the page. They are never less than what one mapping has, unless others
    map the file as well. What was only allocated, or touched by a process that has ended, is theirs where they are seen
    to share the file.
    """
    if usage.is_mapped_elsewhere:
        share_bytes = usage.sole_bytes if is_one else usage.share_bytes
    else:
        share_bytes = usage.share_bytes + usage.swapped_bytes
        if usage.is_mapped_twice or not usage.resident_bytes:
            share_bytes = max(share_bytes, usage.size_bytes or 0)
    return max(share_bytes, usage.resident_bytes) if is_partial else share_bytes


def own_shared_bytes(charges: Iterable[ChargedFile]) -> int:
    """Add up what of some files belongs to the processes."""
    return sum([charge.cost.own_bytes for charge in charges])


def count_with_files(
    snapshot: Snapshot, kinds: CountsByKind | None = None
) -> tuple[list[MappingCounts], tuple[ChargedFile, ...]]:
    """Count what each mapping holds, and charge the files in memory of a process.

    Of a file in memory its first mapping has all, as its pages count once. `kinds` are those of `count_each`.
    """
    mappings, charges = snapshot.memory.mappings, charge_files([snapshot])
    counts = count_each(mappings, snapshot.pages, kinds)
    if charges:
        places = {id(mapping): place for place, mapping in enumerate(mappings)}
        for charge in charges:
            shared_bytes = charge.cost.shared_bytes
            for mapping in charge.file.mappings:
                place = places[id(mapping)]
                if counts[place].shared_bytes is not None:
                    counts[place] = counts[place]._replace(shared_bytes=shared_bytes)
                    shared_bytes = 0
    return counts, charges


def unmapped_rows(charges: Iterable[ChargedFile]) -> list[Row]:
    """Return the rows of the files in memory that are open and not mapped."""
    return [
        Row(
            owner=charge.cost.owner,
            kind=MemoryKind.SHARED,
            section=None,
            symbol=None,
            name="[open, not mapped]",
            bytes=0,
            mapped_bytes=0,
            shared_bytes=charge.cost.shared_bytes,
            pages=0,
            sole_pages=0,
            relocated_bytes=None,
            is_writable=False,
            evidence=charge.cost.evidence,
            attribution=Attribution.NAME,
        )
        for charge in charges
        if not charge.file.mappings
    ]


def file_notes(mappings: Iterable[Mapping], charges: Sequence[ChargedFile], source: str) -> list[Note]:
    """Return notes for what may be counted for each copy or once, and for what cannot be read."""
    notes = []
    paid = [charge for charge in charges if charge.cost.own_bytes]
    if named := [c for c in paid if c.file.has_name]:
        size = format_bytes(own_shared_bytes(named))
        detail = f"counted for each copy; if copies open the same name, each costs {size} less"
        notes.append(Note("shared-memory-of-whom", source, f"{size} of {_names(named)} that only it keeps is {detail}"))
    in_memory = {id(mapping) for charge in charges for mapping in charge.file.mappings}
    if files := [mapping for mapping in mappings if _is_sole_file(mapping) and id(mapping) not in in_memory]:
        size = format_bytes(sum(map(_sole_bytes, files)))
        names = first_of(list(dict.fromkeys(file.name for file in files)), _MOST_NAMED)
        detail = f"counted once; if each copy maps a file of its own, each costs {size} more"
        notes.append(Note("shared-memory-of-whom", source, f"{size} of {names} that only it maps is {detail}"))
    if doubtful := [c for c in paid if c.least_bytes < c.cost.own_bytes]:
        size, least = format_bytes(own_shared_bytes(doubtful)), format_bytes(sum(c.least_bytes for c in doubtful))
        detail = (
            f"{size} of {_names(doubtful)} counts as its own, though others may keep it, too, who were not looked at: "
            f"{least} of it is surely its own"
        )
        notes.append(Note("memory-file-keepers-unknown", source, detail))
    if unread := [c for c in paid if c.file.size_bytes is None and c.cost.size_bytes < c.file.extent_bytes]:
        detail = (
            f"what {_names(unread)} holds cannot be read: {format_bytes(sum(file.cost.size_bytes for file in unread))} "
            f"that was touched here counts, of {format_bytes(sum(file.file.extent_bytes for file in unread))} mapped"
        )
        notes.append(Note("memory-file-size-unknown", source, detail))
    return notes


def _names(charges: Iterable[ChargedFile]) -> str:
    return first_of(list(dict.fromkeys(charge.cost.owner for charge in charges)), _MOST_NAMED)


def _is_sole_file(mapping: Mapping) -> bool:
    """Return whether a file is mapped shared that is no device, and nobody else has mapped some of its pages."""
    return (
        mapping.is_shared and bool(mapping.inode) and not mapping.name.startswith("/dev/") and _sole_bytes(mapping) > 0
    )


def _sole_bytes(mapping: Mapping) -> int:
    count = mapping.counters.get
    return (count("Private_Clean") or 0) + (count("Private_Dirty") or 0)
