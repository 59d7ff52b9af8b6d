"""`footprint.maps`: every mapping of a process with its owner."""

from dataclasses import dataclass

from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import MappingCounts, OwnedRange, count_each
from footprint.errors import Note
from footprint.formats.document import Document, Heading, Names, Table, Verdict, note_blocks
from footprint.model.row import Attribution
from footprint.process.mappings import MemoryMap
from footprint.sources.process_files import images_of
from footprint.sources.target import Named, check_options, resolve, snapshot_of
from footprint.system.files import StrPath
from footprint.text.units import counted, format_bytes


@dataclass(frozen=True, slots=True)
class OwnedMap:
    """The mappings of a process with their owners.

    Attributes:
        target: What the user called it.
        memory: The mappings.
        counts: What each of them holds, in their order.
        parts: Each with its owner; a mapping of several owners is several parts.
        pid: The process, where known.
        command: Its command line or name.
        host: Kernel and machine, where known.
        notes: What was odd.
    """

    target: str
    memory: MemoryMap
    counts: tuple[MappingCounts, ...]
    parts: tuple[OwnedRange, ...]
    pid: int | None
    command: str
    host: dict[str, str]
    notes: tuple[Note, ...]


def maps(target: Named, *, pid: int | None = None, root: StrPath | None = None) -> OwnedMap:
    """Return the mappings of a process, each with its owner. The arguments and errors are those of `audit`."""
    resolved = resolve(target)
    given = {"--pid": pid is not None, "--root": root is not None}
    check_options(resolved, [option for option, is_given in given.items() if is_given])
    snapshot = snapshot_of(resolved, pid)
    images, notes = images_of(snapshot, None if root is None else str(root))
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
    return OwnedMap(
        target=resolved.name,
        memory=snapshot.memory,
        counts=tuple(count_each(snapshot.memory.mappings, snapshot.pages)),
        parts=parts,
        pid=snapshot.process_id,
        command=snapshot.command,
        host=snapshot.host,
        notes=(*snapshot.notes, *notes),
    )


def maps_document(owned: OwnedMap, *, has_whole_names: bool = False) -> Document:
    """Show the owner of each mapping, and what it holds."""
    mappings = owned.memory.mappings
    names = Names((part.owner for part in owned.parts), is_whole=has_whole_names)
    has_counters = any(mapping.counters.keys for mapping in mappings)
    is_assumed = any(part.attribution.is_assumed for part in owned.parts)
    heading = "owner (* assumed from its place)" if is_assumed else "owner"
    columns = ("address", "KiB", *(("resident", "private") if has_counters else ()), "perm", "kind", heading)
    rows = []
    counts = iter(owned.counts)
    previous = None
    labels: dict[tuple[str, Attribution], str] = {}
    blank: tuple[str, ...] = ("", "") if has_counters else ()
    for part in owned.parts:
        mapping, start_addr, end_addr, owner, kind, attribution = part[:6]
        counters = blank
        if mapping is not previous:
            # A mapping of several owners has its counters once, on its first line.
            here = next(counts)
            if has_counters:
                counters = (_kib(mapping.counters.get("Rss")), _kib(here.private_bytes))
            previous = mapping
        label = labels.get((owner, attribution))
        if label is None:
            label = names.owner(owner) + (" *" if attribution.is_assumed else "")
            labels[owner, attribution] = label
        size = str((end_addr - start_addr) // 1024)
        rows.append((f"{start_addr:x}", size, *counters, mapping.permissions, kind, label))
    mapped_bytes = sum(mapping.size_bytes for mapping in mappings)
    sums: tuple[str, ...] = ()
    if has_counters:
        sums = (_kib(owned.memory.sum("Rss")), _kib(sum(c.private_bytes or 0 for c in owned.counts)))
    footer = (("", str(mapped_bytes // 1024), *sums, "", "", "[total]"),)
    table = Table(columns, tuple(rows), frozenset({len(columns) - 3, len(columns) - 2}), footer)
    writable_bytes = sum(mapping.size_bytes for mapping in mappings if mapping.is_mapped_writable)
    amounts = f"{format_bytes(mapped_bytes)} mapped, {format_bytes(writable_bytes)} of it writable and private"
    pid = f"process {owned.pid}" if owned.pid is not None else owned.target
    title = Heading(f"footprint audit --by mapping: {pid}{'  ' + owned.command if owned.command else ''}")
    return (
        title,
        table,
        *note_blocks(owned.notes, owned.target),
        Verdict(f"{counted(len(mappings), 'mapping')}, {amounts}."),
    )


def _kib(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else str(size_bytes // 1024)
