"""The wide rows of pmap (`-X`, `-XX`, `-c`, `-C`): one right-justified cell for every counter of smaps.

No numeric cell is ever empty, so counting the cells works in every language and width. The flags of all rows end at
one column.

Source: pmap.c of procps 3.3.4 to 4.0.6.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from footprint.process.mappings import Counters, Mapping
from footprint.process.pmap_rows import KIB, TOP_ADDR, PmapTable, is_majority, maps_device, surely_whole
from footprint.process.smaps_keys import BARE_KEYS, assume_keys, known_keys

__all__ = ("parse_columns",)

_LEADING: Final = {
    "Address": rb"([0-9a-f]{8,16})",
    "Perm": rb"([r-][w-][x-][sp])",
    "Offset": rb"([0-9a-f]{1,16})",
    "Device": rb"([0-9a-f]{1,8}:[0-9a-f]{1,8})",
    "Inode": rb"(\d{1,20})",
}
_CELL: Final = rb"[ \t]++\d{1,20}(?=[ \t]|\Z)"
_FLAGS: Final = re.compile(rb"[ \t]*[a-z?]{2}(?: [a-z?]{2})*(?=[ \t]|\Z)")


class _Layout(NamedTuple):
    """The columns of a text.

    Attributes:
        leading: The columns before the counters.
        keys: The key of each counter; None where it is unknown.
        has_flags: Whether `VmFlags` follow the counters.
        flags_end: The length of the flags behind the counters.
        name_start: The index of the name behind the counters.
    """

    leading: list[str]
    keys: tuple[str | None, ...]
    has_flags: bool
    flags_end: int
    name_start: int


class _Row(NamedTuple):
    """One row: the leading cells, the counters, and the flags and name behind them."""

    line: bytes
    leading: tuple[bytes, ...]
    counts: list[int]
    tail: bytes


def parse_columns(lines: Sequence[bytes], header: bytes | None) -> PmapTable:
    """Read the wide rows of one process.

    Args:
        lines: Lines that begin with an address and a mode, without their line ends.
        header: The header line; None where there is none (`-q`, or rows selected with grep).

    Source: procps pmap.c, `print_extended_maps`, of 3.3.4 to 4.0.6.
    """
    leading, named_keys, has_flags = _header_columns(header)
    start = b"[ \t]*" + b"[ \t]+".join(_LEADING[name] for name in leading)
    width = len(named_keys) if has_flags else _cell_count(lines, start, named_keys)
    shape = re.compile(b"(?s)" + start + b"((?:" + _CELL + b"){%d})(?:[ \t](.*))?" % width)
    matches = [match for match in map(shape.fullmatch, lines) if match]
    unknown = [line for line in lines if not shape.fullmatch(line)] if len(matches) < len(lines) else []
    cell_group = len(leading) + 1
    rows = [
        _Row(
            match.string,
            match.groups(),
            [int(cell) for cell in match[cell_group].split()],
            match[cell_group + 1] or b"",
        )
        for match in matches
    ]
    tails = surely_whole([row.tail for row in rows])
    if header is None:
        has_flags = is_majority(_FLAGS.match(tail) is not None for tail in tails)
        keys, assumed = assume_keys(list(zip(*(row.counts for row in rows), strict=True)), width, has_flags=has_flags)
    else:
        last = {key: place for place, key in enumerate(named_keys[:width])}
        keys = tuple(key if last[key] == place else None for place, key in enumerate(named_keys[:width]))
        assumed = ""
    flags_end, gap = _flags_end(tails, header) if has_flags else (0, 0)
    layout = _Layout(leading, keys, has_flags, flags_end, flags_end + gap)
    table = PmapTable([], [], unknown, keys, has_flags, "Size" in keys, assumed)
    _add_mappings(table, rows, layout)
    return table


def _add_mappings(table: PmapTable, rows: Sequence[_Row], layout: _Layout) -> None:
    """Add the mapping of each row; a row that is too short or beyond the address space is an unknown line."""
    keys, leading, flags_end = layout.keys, layout.leading, layout.flags_end
    factors = [(place, 1 if key in BARE_KEYS else KIB) for place, key in enumerate(keys) if key is not None]
    shared_keys = {key: place for place, key in enumerate(key for key in keys if key is not None)}
    size_place = keys.index("Size") if "Size" in keys else None
    offset, device, inode = (leading.index(name) if name in leading else None for name in ("Offset", "Device", "Inode"))
    devices: dict[bytes, str] = {}
    flag_sets: dict[bytes, str] = {}
    for line, cells, counts, tail in rows:
        start_addr = int(cells[0], 16)
        end_addr = start_addr + (counts[size_place] * KIB if size_place is not None else 0)
        if end_addr > TOP_ADDR or max(counts, default=0) > TOP_ADDR // KIB or len(tail) < flags_end:
            table.unknown_lines.append(line)
            continue
        flags = tail[:flags_end]
        if layout.has_flags and flags not in flag_sets:
            flag_sets[flags] = " ".join(flags.decode("ascii", "replace").split())
        if device is not None and cells[device] not in devices:
            devices[cells[device]] = maps_device(cells[device])
        mapping = Mapping(
            start_addr,
            end_addr,
            cells[1].decode(),
            None if offset is None else int(cells[offset], 16),
            None if device is None else devices[cells[device]],
            None if inode is None else int(cells[inode]),
            tail[layout.name_start :].decode("utf-8", "surrogateescape"),
            Counters(shared_keys, tuple([counts[place] * factor for place, factor in factors])),
            flag_sets[flags] if layout.has_flags else None,
        )
        table.mappings.append(mapping)
        table.lines.append(line)


def _header_columns(header: bytes | None) -> tuple[list[str], list[str], bool]:
    """Return the leading columns, the words from the first key on, and whether flags follow them."""
    if header is None:
        return list(_LEADING), [], False
    # procps 3.3.10 prints no space between `VmFlags` and `Mapping`.
    before, flags, _ = header.partition(b"VmFlags")
    words = before.decode("utf-8", "surrogateescape").split()
    first = next((place for place, word in enumerate(words) if word in known_keys()), len(words))
    # An rc file (-c, -C) may omit columns; then only English names show which.
    some = [name for name in _LEADING if name in words[:first]]
    leading = some if first < len(_LEADING) and some[:2] == ["Address", "Perm"] else list(_LEADING)
    return leading, words[first:], bool(flags)


def _cell_count(lines: Sequence[bytes], start: bytes, named_keys: Sequence[str]) -> int:
    """Return the number of numeric cells in most rows: one name may be a number, but not most names.

    The last words of a header are the name of the last column: one word, two or none. There the rows decide.
    """
    least = max((place for place, key in enumerate(named_keys, 1) if key in known_keys()), default=0)
    shape = re.compile(start + b"((?:" + _CELL + b"){0,255})")
    counts = Counter(len(match[match.re.groups].split()) for match in map(shape.match, surely_whole(lines)) if match)
    likely = [count for count in counts if not named_keys or least <= count <= len(named_keys)]
    return max(likely, key=lambda count: (counts[count], -count), default=least)


def _flags_end(tails: Sequence[bytes], header: bytes | None) -> tuple[int, int]:
    """Return where the flags of all rows end, and the number of spaces before the name (2 in procps 3.3.10)."""
    before, flags, _ = (header or b"").partition(b"VmFlags")
    end = len(before) - len(before.rstrip()) + len(flags) - 1
    if not all(_FLAGS.fullmatch(tail[:end]) and tail[end : end + 1].isspace() for tail in tails):
        # No header, or a header that is not aligned (off by two columns in procps 3.3.10): use the end in most rows.
        ends = Counter(match.end() for match in map(_FLAGS.match, tails) if match)
        end = ends.most_common(1)[0][0] if ends else 0
    rests = [tail[end:] for tail in tails if tail[end:].strip()]
    return end, 2 if is_majority(rest.startswith(b"  ") for rest in rests) else 1
