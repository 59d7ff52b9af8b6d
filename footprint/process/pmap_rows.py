"""The compact rows of pmap (no option, `-d`, `-x`), and what all rows have in common.

Each output has a row of its own form, so a row is recognised without a header.

Source: pmap.c of procps 2004 to 4.0.6, toybox 0.4 to 0.8 and busybox 1.17 to 1.37.

The wide rows of pmap (`-X`, `-XX`, `-c`, `-C`): one right-justified cell for every counter of smaps.

No numeric cell is ever empty, so counting the cells works in every language and width. The flags of all rows end at
one column.

Source: pmap.c of procps 3.3.4 to 4.0.6.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from footprint.process.mappings import Counters, Mapping
from footprint.process.smaps_keys import BARE_KEYS, NOT_IN_X, assume_keys, known_keys

KIB: Final = 1024
TOP_ADDR: Final = 1 << 64

# Georgian pads addresses to 27 digits. procps until 3.3.6 and busybox print two spaces before the name.
COMPACT_ROW: Final = re.compile(
    rb"""[ \t]*+ (?P<address>[0-9a-f]{8,64}) [ \t]++ (?P<kbytes>\d{1,20}) (?P<unit>K?)
    (?P<cells>(?:[ \t]++(?:\d{1,20}|-)(?=[ \t])){0,8}) [ \t]++
    (?P<mode>[r-][w-][x-](?:[s-][R-]|[sp])) (?=[ \t]|\Z)
    (?:[ \t]++ (?P<offset>[0-9a-f]{8,64}) [ \t]++ (?P<device>[0-9a-f]{3,8}:[0-9a-f]{5,8}) (?=[ \t]|\Z))?
    (?:[ \t](?P<tail>.*))?""",
    re.DOTALL | re.VERBOSE,
)
# The counters behind the size, by kind of row. The column `Dirty` of toybox and busybox is Private_Dirty.
_COMPACT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "default": (),
    "d": (),
    "x": ("Rss", "Dirty"),
    "other x": ("Pss", "Private_Dirty", "Swap"),
}
# The two words that procps translates, in all its languages. A word that is not here is kept as printed.
_ANONYMOUS: Final = frozenset({"anon", "anôn", "vô danh", "анон"})
_STACK: Final = frozenset({"stack", "stos", "stivă", "pila", "pile", "pilha", "ngăn xếp", "стек"})


@dataclass(frozen=True, slots=True)
class PmapTable:
    """The rows of one process.

    Attributes:
        mappings: In the order of the text.
        lines: The line of each mapping.
        unknown_lines: Rows of another form than the others, or beyond the address space.
        keys: The key of each counter; None where it is unknown.
        has_flags: Whether the rows hold `VmFlags`.
        has_sizes: Whether the rows hold sizes; without them no mapping has an end.
        assumed: How the keys were found where no header names them, else "".
    """

    mappings: list[Mapping]
    lines: list[bytes]
    unknown_lines: list[bytes]
    keys: tuple[str | None, ...]
    has_flags: bool = False
    has_sizes: bool = True
    assumed: str = ""

    @property
    def is_everything(self) -> bool:
        """Return whether a column is there that pmap -X omits: it is the output of -XX."""
        return self.has_flags or not NOT_IN_X.isdisjoint(self.keys)


class ProcessRows(NamedTuple):
    """The mappings of one process without repeated rows.

    Attributes:
        mappings: In the order of addresses.
        repeated_count: The repeated rows that were left out.
        renamed_count: Those of them that had another name.
    """

    mappings: list[Mapping]
    repeated_count: int
    renamed_count: int


def compact_kind(row: re.Match[bytes]) -> str:
    """Return the kind of a compact row; "" where its parts do not fit together, as in a damaged row.

    Source: procps pmap.c of 3.2.0 (-x with `-` cells), 3.3.2 (-x with figures); toybox and busybox pmap.c (other -x).
    """
    cells = row["cells"].split()
    if row["unit"]:
        return "" if cells or row["device"] else "default"
    if row["device"]:
        return "" if cells else "d"
    if len(cells) == 3:
        return "x" if b"-" in cells else "other x"
    return "x" if len(cells) == 2 else ""


def parse_compact(rows: Sequence[re.Match[bytes]], kind: str) -> PmapTable:
    """Read the compact rows of one process, all of one kind.

    Source: procps pmap.c of 2004 to 4.0.6; toybox and busybox pmap.c.
    """
    shared_keys = {key: place for place, key in enumerate(_COMPACT_KEYS[kind])}
    table = PmapTable([], [], [], _COMPACT_KEYS[kind])
    tails = [row["tail"] or b"" for row in rows]
    lead = int(is_majority(tail.startswith(b" ") and not tail.startswith(b"  [") for tail in surely_whole(tails)))
    for row, tail in zip(rows, tails, strict=True):
        start_addr = int(row["address"], 16)
        end_addr = start_addr + int(row["kbytes"]) * KIB
        cells = row["cells"].split()
        values = () if b"-" in cells else tuple(int(cell) * KIB for cell in cells)
        if end_addr > TOP_ADDR or max(values, default=0) > TOP_ADDR:
            table.unknown_lines.append(row.string)
            continue
        mode = row["mode"].decode()
        mapping = Mapping(
            start_addr,
            end_addr,
            mode[:3] + ("s" if mode[3] == "s" else "p"),
            offset=int(row["offset"], 16) if row["offset"] else None,
            device=maps_device(row["device"]) if row["device"] else None,
            name=_name(tail[lead:].decode("utf-8", "surrogateescape")),
            counters=Counters(shared_keys if values else {}, values),
        )
        table.mappings.append(mapping)
        table.lines.append(row.string)
    return table


def _name(printed: str) -> str:
    """Return the name of a row: two spaces before a bracket mark a mapping that is not a file."""
    if not (printed.startswith("  [") and printed.endswith("]")):
        return printed
    word = printed[3:-1].strip()
    if word in _ANONYMOUS:
        return ""
    return "[stack]" if word in _STACK else printed[2:]


def maps_device(printed: bytes) -> str:
    """Return `major:minor` as /proc/PID/maps prints it: hexadecimal, at least two digits each."""
    major, minor = printed.split(b":")
    return f"{int(major, 16):02x}:{int(minor, 16):02x}"


def surely_whole(rows: Sequence[bytes]) -> Sequence[bytes]:
    """Return the rows that show the common form: all but the last, which may be cut, unless it is the only one."""
    return rows[:-1] or rows


def is_majority(answers: Iterable[bool]) -> bool:
    """Return whether most answers are True."""
    counts = Counter(answers)
    return counts[True] > counts[False]


def by_process(mappings: list[Mapping]) -> list[ProcessRows]:
    """Sort rows by address, without repeated rows.

    Rows that are out of order and overlap belong to several processes, whose first lines were filtered out.

    Source: procps pmap.c until 3.3.12: it takes `SwapPss` for `Swap` (-x), and reads a path over 1023 bytes as two
    lines.
    """
    descents = [place for place, (low, high) in enumerate(pairwise(mappings), 1) if high.start_addr < low.start_addr]
    if not descents:
        return [_without_repeated(mappings)]
    # Repeated rows go behind the originals: their counters are zero, and sometimes their sizes.
    in_order = sorted(mappings, key=lambda row: (row.start_addr, -row.end_addr, not any(row.counters.values)))
    if not any(_is_overlap(low, high) for low, high in pairwise(in_order)):
        return [_without_repeated(in_order)]
    return [_without_repeated(mappings[start:end]) for start, end in pairwise([0, *descents, len(mappings)])]


def _is_overlap(low: Mapping, high: Mapping) -> bool:
    """Return whether two rows cannot be of one process. A row of zeros may be a repeated row that sorting moved."""
    is_zero = high.counters.values and not any(high.counters.values)
    return high.start_addr < low.end_addr and not (is_zero and _is_repeated(low, high))


def _is_repeated(row: Mapping, other: Mapping) -> bool:
    """Return whether the other row repeats a row, with the same counters or with zeros."""
    return (
        other.start_addr == row.start_addr
        and other.size_bytes in {row.size_bytes, 0}
        and (not any(other.counters.values) or other.counters.values == row.counters.values)
    )


def _without_repeated(mappings: Sequence[Mapping]) -> ProcessRows:
    kept: list[Mapping] = []
    renamed_count = 0
    for mapping in mappings:
        if not kept or not _is_repeated(kept[-1], mapping):
            kept.append(mapping)
        elif mapping.name != kept[-1].name:
            # A path of more than 1023 bytes was read as two lines; the second one has the true end of the path.
            renamed_count += 1
            if mapping.size_bytes and mapping.counters.values == kept[-1].counters.values:
                kept[-1] = mapping
    return ProcessRows(kept, len(mappings) - len(kept), renamed_count)


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
        if not ends:
            return 0, min([len(tail) - len(tail.lstrip(b" ")) for tail in tails if tail.strip()], default=0)
        end = ends.most_common(1)[0][0]
    rests = [tail[end:] for tail in tails if tail[end:].strip()]
    return end, 2 if is_majority(rest.startswith(b"  ") for rest in rests) else 1
