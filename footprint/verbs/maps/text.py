"""The report of `footprint maps`."""

from footprint.formats.document import Document, Heading, Table, Verdict
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.model.row import Attribution
from footprint.units import counted, format_bytes
from footprint.verbs.maps.call import OwnedMap

__all__ = ("maps_document",)


def maps_document(owned: OwnedMap, *, has_whole_names: bool = False) -> Document:
    """Write the owner of each mapping, and what it holds."""
    mappings = owned.memory.mappings
    names = Names((part.owner for part in owned.parts), is_whole=has_whole_names)
    has_counters = any(mapping.counters.keys for mapping in mappings)
    is_assumed = any(part.attribution.is_assumed for part in owned.parts)
    heading = "owner (* assumed from its place)" if is_assumed else "owner"
    columns = ("address", "KiB", *(("resident", "private") if has_counters else ()), "perm", "kind", heading)
    rows = []
    each = iter(owned.held)
    previous = None
    labels: dict[tuple[str, Attribution], str] = {}
    blank: tuple[str, ...] = ("", "") if has_counters else ()
    for part in owned.parts:
        mapping, start_addr, end_addr, owner, kind, attribution = part[:6]
        counters = blank
        if mapping is not previous:
            # A mapping of several owners has its counters once, on its first line.
            here = next(each)
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
        sums = (_kib(owned.memory.sum("Rss")), _kib(sum(one.private_bytes or 0 for one in owned.held)))
    footer = (("", str(mapped_bytes // 1024), *sums, "", "", "[total]"),)
    table = Table(columns, tuple(rows), frozenset({len(columns) - 3, len(columns) - 2}), footer)
    writable_bytes = sum(mapping.size_bytes for mapping in mappings if mapping.is_mapped_writable)
    amounts = f"{format_bytes(mapped_bytes)} mapped, {format_bytes(writable_bytes)} of it writable and private"
    pid = f"process {owned.pid}" if owned.pid is not None else owned.target
    title = Heading(f"footprint maps: {pid}{'  ' + owned.command if owned.command else ''}")
    return (
        title,
        table,
        *note_blocks(owned.notes, owned.target),
        Verdict(f"{counted(len(mappings), 'mapping')}, {amounts}."),
    )


def _kib(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else str(size_bytes // 1024)
