"""The rows of pmap: from the cells of one process to its mappings.

There are two grammars. Compact rows (no option, `-d`, `-x`) have a shape of their own for each output. Wide rows (`-X`,
`-XX`, `-c`, `-C`) have one right-justified cell for every counter of smaps: no numeric cell is ever empty, so cells are
counted, which holds in every language and width; and the flags of all rows end at one column.

Source: pmap.c of procps 2004 to 4.0.6, toybox 0.4 to 0.8 and busybox 1.17 to 1.37; fs/proc/task_mmu.c of Linux 2.6.14
to 6.18 for the keys of smaps.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from footprint.process.mappings import Counters, Mapping

__all__ = ("BARE_KEYS", "COMPACT_ROW", "PmapTable", "by_process", "compact_kind", "parse_columns", "parse_compact")

KIB = 1024
_TOP_ADDR = 1 << 64
BARE_KEYS = frozenset({"ProtectionKey", "THPeligible"})  # numbers; all other keys are kB

# Georgian pads addresses to 27 digits. Until 3.3.6 and in busybox there are two spaces before the name.
COMPACT_ROW = re.compile(
    rb"""[ \t]*+ (?P<address>[0-9a-f]{8,64}) [ \t]++ (?P<kbytes>\d{1,20}) (?P<unit>K?)
    (?P<cells>(?:[ \t]++(?:\d{1,20}|-)(?=[ \t])){0,8}) [ \t]++
    (?P<mode>[r-][w-][x-](?:[s-][R-]|[sp])) (?=[ \t]|\Z)
    (?:[ \t]++ (?P<offset>[0-9a-f]{8,64}) [ \t]++ (?P<device>[0-9a-f]{3,8}:[0-9a-f]{5,8}) (?=[ \t]|\Z))?
    (?:[ \t](?P<tail>.*))?""",
    re.DOTALL | re.VERBOSE,
)
# The counters behind the size, by kind of row. What toybox and busybox call `Dirty` is Private_Dirty.
_COMPACT_KEYS = {"default": (), "d": (), "x": ("Rss", "Dirty"), "other x": ("Pss", "Private_Dirty", "Swap")}
# The two words of procps that are translated, in the languages it comes with; a word not here is kept as printed.
_ANONYMOUS = frozenset({"anon", "anôn", "vô danh", "анон"})
_STACK = frozenset({"stack", "stos", "stivă", "pila", "pile", "pilha", "ngăn xếp", "стек"})

_LEADING = {
    "Address": rb"([0-9a-f]{8,16})",
    "Perm": rb"([r-][w-][x-][sp])",
    "Offset": rb"([0-9a-f]{1,16})",
    "Device": rb"([0-9a-f]{1,8}:[0-9a-f]{1,8})",
    "Inode": rb"(\d{1,20})",
}
_CELL = rb"[ \t]++\d{1,20}(?=[ \t]|\Z)"
_FLAGS = re.compile(rb"[ \t]*[a-z?]{2}(?: [a-z?]{2})*(?=[ \t]|\Z)")

# What -X leaves out of the keys that -XX shows.
_NOT_IN_X = frozenset(
    {"AnonHugePages", "KernelPageSize", "MMUPageSize", "Private_Clean", "Private_Dirty", "Shared_Clean", "Shared_Dirty"}
)
# Which key a kernel put behind which; a key that was there already has moved.
_SMAPS_HISTORY = (
    ("2.6.14", "", "Size Rss Shared_Clean Shared_Dirty Private_Clean Private_Dirty"),
    ("2.6.22", "Private_Dirty", "Referenced"),
    ("2.6.25", "Rss", "Pss"),
    ("2.6.26", "Referenced", "Swap"),
    ("2.6.29", "Swap", "KernelPageSize MMUPageSize"),
    ("2.6.37", "Referenced", "Anonymous"),
    ("2.6.38", "MMUPageSize", "Locked"),
    ("2.6.39", "Anonymous", "AnonHugePages"),
    ("4.3", "Swap", "SwapPss"),
    ("4.4", "AnonHugePages", "Shared_Hugetlb Private_Hugetlb"),
    ("4.8", "AnonHugePages", "ShmemPmdMapped"),
    ("4.12", "Anonymous", "LazyFree"),
    ("4.19", "Size", "KernelPageSize MMUPageSize"),
    ("5.0", "Locked", "THPeligible"),
    ("5.4", "ShmemPmdMapped", "FilePmdMapped"),
    ("6.0", "Pss", "Pss_Dirty"),
    ("6.7", "Anonymous", "KSM"),
)
_LAST_WITHOUT_FLAGS = (2, 6, 39)  # these keys stayed until 4.2; VmFlags came in 3.8
_SINCE_PROTECTION_KEY = (4, 6)
# True of every mapping of every kernel, (smaller, larger): it tells key sets of equal length apart.
_NEVER_LARGER = (
    ("Rss", "Size"),
    ("Pss", "Rss"),
    ("Pss_Dirty", "Pss"),
    ("Referenced", "Rss"),
    ("Anonymous", "Rss"),
    ("LazyFree", "Anonymous"),
    ("AnonHugePages", "Rss"),
    ("SwapPss", "Swap"),
    ("Locked", "Pss"),
    ("MMUPageSize", "KernelPageSize"),
)
_RSS_PARTS = ("Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty")


@dataclass(frozen=True, slots=True)
class PmapTable:
    """The rows of one process.

    Attributes:
        mappings: In the order of the text.
        lines: The line of each mapping.
        unknown_lines: Rows that do not fit the others, or lie beyond the address space.
        keys: The key of each counter, None where it could not be told.
        has_flags: Whether the rows hold `VmFlags`.
        has_sizes: Whether sizes are told; without them no mapping has an end.
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
        """Tell -XX from -X: whether a column is there that -X leaves out."""
        return self.has_flags or not _NOT_IN_X.isdisjoint(self.keys)


def compact_kind(row: re.Match[bytes]) -> str:
    """Give the kind of a compact row, "" where its parts do not go together (as in a damaged row).

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
    lead = int(_most(tail.startswith(b" ") and not tail.startswith(b"  [") for tail in _whole(tails)))
    for row, tail in zip(rows, tails, strict=True):
        start_addr = int(row["address"], 16)
        end_addr = start_addr + int(row["kbytes"]) * KIB
        cells = row["cells"].split()
        values = () if b"-" in cells else tuple(int(cell) * KIB for cell in cells)
        if end_addr > _TOP_ADDR or max(values, default=0) > _TOP_ADDR:
            table.unknown_lines.append(row.string)
            continue
        mode = row["mode"].decode()
        mapping = Mapping(
            start_addr,
            end_addr,
            mode[:3] + ("s" if mode[3] == "s" else "p"),
            offset=int(row["offset"], 16) if row["offset"] else None,
            device=_device(row["device"]) if row["device"] else None,
            name=_compact_name(tail[lead:].decode("utf-8", "surrogateescape")),
            counters=Counters(shared_keys if values else {}, values),
        )
        table.mappings.append(mapping)
        table.lines.append(row.string)
    return table


def parse_columns(rows: Sequence[bytes], header: bytes | None) -> PmapTable:
    """Read the wide rows of one process.

    Args:
        rows: Lines that begin with an address and a mode, without their line ends.
        header: The header line; None where there is none (`-q`, or rows picked out with grep).

    Source: procps pmap.c, `print_extended_maps`, of 3.3.4 to 4.0.6.
    """
    leading, told, has_flags = _header_keys(header)
    start = b"[ \t]*" + b"[ \t]+".join(_LEADING[name] for name in leading)
    width = len(told) if has_flags else _cell_count(rows, start, told)
    shape = re.compile(b"(?s)" + start + b"((?:" + _CELL + b"){%d})(?:[ \t](.*))?" % width)
    matches = [match for match in map(shape.fullmatch, rows) if match]
    unknown = [row for row in rows if not shape.fullmatch(row)] if len(matches) < len(rows) else []
    numbers = [[int(cell) for cell in match[len(leading) + 1].split()] for match in matches]
    tails = [match[len(leading) + 2] or b"" for match in matches]
    last = {key: place for place, key in enumerate(told[:width])}
    keys = tuple(key if last[key] == place else None for place, key in enumerate(told[:width]))
    assumed = ""
    if header is None:
        has_flags = _most(_FLAGS.match(tail) is not None for tail in _whole(tails))
        keys, assumed = _assume_keys(list(zip(*numbers, strict=True)), width, has_flags=has_flags)
    edge, gap = _flags_edge(_whole(tails), header) if has_flags else (0, 0)

    kept = [place for place, key in enumerate(keys) if key is not None]
    factors = [(place, 1 if keys[place] in BARE_KEYS else KIB) for place in kept]
    shared_keys = {key: place for place, key in enumerate(key for key in keys if key is not None)}
    size_place = keys.index("Size") if "Size" in keys else None
    fields = {name: place for place, name in enumerate(leading)}
    offset, place_of_device, inode = fields.get("Offset"), fields.get("Device"), fields.get("Inode")
    table = PmapTable([], [], unknown, keys, has_flags, size_place is not None, assumed)
    devices: dict[bytes, str] = {}
    flag_sets: dict[bytes, str] = {}
    for match, counts, tail in zip(matches, numbers, tails, strict=True):
        cells = match.groups()
        start_addr = int(cells[0], 16)
        end_addr = start_addr + (counts[size_place] * KIB if size_place is not None else 0)
        if end_addr > _TOP_ADDR or max(counts, default=0) > _TOP_ADDR // KIB or len(tail) < edge:
            unknown.append(match.string)
            continue
        flags = tail[:edge]
        if has_flags and flags not in flag_sets:
            flag_sets[flags] = " ".join(flags.decode("ascii", "replace").split())
        if place_of_device is not None and cells[place_of_device] not in devices:
            devices[cells[place_of_device]] = _device(cells[place_of_device])
        mapping = Mapping(
            start_addr,
            end_addr,
            cells[1].decode(),
            None if offset is None else int(cells[offset], 16),
            None if place_of_device is None else devices[cells[place_of_device]],
            None if inode is None else int(cells[inode]),
            tail[edge + gap :].decode("utf-8", "surrogateescape"),
            Counters(shared_keys, tuple([counts[place] * factor for place, factor in factors])),
            flag_sets[flags] if has_flags else None,
        )
        table.mappings.append(mapping)
        table.lines.append(match.string)
    return table


def by_process(mappings: list[Mapping]) -> list[tuple[list[Mapping], int, int]]:
    """Put rows in the order of addresses, without repetitions.

    Rows that are out of order and overlap are of several processes, whose first lines were filtered away.

    Returns:
        For each process its mappings, how many rows were left out, and in how many of these the name was another.

    Source: procps pmap.c until 3.3.12: `SwapPss` taken for `Swap` (-x), paths over 1023 bytes read as two lines.
    """
    descents = [place for place, (low, high) in enumerate(pairwise(mappings), 1) if high.start_addr < low.start_addr]
    if not descents:
        return [_without_doubles(mappings)]
    # Repetitions stand behind their rows: they have zeros for the counters, and some for the size.
    in_order = sorted(mappings, key=lambda row: (row.start_addr, -row.end_addr, not any(row.counters.values)))
    if not any(_is_overlap(low, high) for low, high in pairwise(in_order)):
        return [_without_doubles(in_order)]
    return [_without_doubles(mappings[start:end]) for start, end in pairwise([0, *descents, len(mappings)])]


def _whole(rows: Sequence[bytes]) -> Sequence[bytes]:
    """Give the rows that tell how all are printed: the last may be cut, and decides nothing where there are others."""
    return rows[:-1] or rows


def _most(answers: Iterable[bool]) -> bool:
    counts = Counter(answers)
    return counts[True] > counts[False]


def _compact_name(printed: str) -> str:
    """Give the name of a row: two spaces before a bracket mark what is not a file."""
    if not (printed.startswith("  [") and printed.endswith("]")):
        return printed
    word = printed[3:-1].strip()
    if word in _ANONYMOUS:
        return ""
    return "[stack]" if word in _STACK else printed[2:]


def _is_overlap(low: Mapping, high: Mapping) -> bool:
    """Tell whether two rows cannot be of one process; rows of zeros may be repetitions that were sorted away."""
    is_of_zeros = high.counters.values and not any(high.counters.values)
    return high.start_addr < low.end_addr and not (is_of_zeros and _is_double(low, high))


def _is_double(row: Mapping, other: Mapping) -> bool:
    """Tell whether a row repeats the one before it, with the same counters or none."""
    return (
        other.start_addr == row.start_addr
        and other.size_bytes in {row.size_bytes, 0}
        and (not any(other.counters.values) or other.counters.values == row.counters.values)
    )


def _without_doubles(mappings: Sequence[Mapping]) -> tuple[list[Mapping], int, int]:
    """Drop repeated rows; give what is left, how many were dropped, and for how many the names differed."""
    kept: list[Mapping] = []
    renamed = 0
    for mapping in mappings:
        if not kept or not _is_double(kept[-1], mapping):
            kept.append(mapping)
        elif mapping.name != kept[-1].name:
            # A path of more than 1023 bytes was read as two lines; the second has the true end of the path.
            renamed += 1
            if mapping.size_bytes and mapping.counters.values == kept[-1].counters.values:
                kept[-1] = mapping
    return kept, len(mappings) - len(kept), renamed


def _device(printed: bytes) -> str:
    """Give `major:minor` as /proc/PID/maps does: hex, of two digits or as many as it needs."""
    major, minor = printed.split(b":")
    return f"{int(major, 16):02x}:{int(minor, 16):02x}"


def _header_keys(header: bytes | None) -> tuple[list[str], list[str], bool]:
    """Give the leading columns, the words from the first key on, and whether flags follow them."""
    if header is None:
        return list(_LEADING), [], False
    # procps 3.3.10 prints no space between `VmFlags` and `Mapping`.
    before, flags, _ = header.partition(b"VmFlags")
    words = before.decode("utf-8", "surrogateescape").split()
    first = next((place for place, word in enumerate(words) if word in _known_keys()), len(words))
    # A rc file (-c, -C) may leave columns out; then only English names tell which.
    some = [name for name in _LEADING if name in words[:first]]
    leading = some if first < len(_LEADING) and some[:2] == ["Address", "Perm"] else list(_LEADING)
    return leading, words[first:], bool(flags)


def _cell_count(rows: Sequence[bytes], start: bytes, told: Sequence[str]) -> int:
    """Count the numeric cells of most rows: a name may be a number, too, but not most names.

    The last words of a header are the name of the last column, one or two or none: there, rows decide.
    """
    least = max((place for place, key in enumerate(told, 1) if key in _known_keys()), default=0)
    shape = re.compile(start + b"((?:" + _CELL + b"){0,255})")
    counts = Counter(len(match[match.re.groups].split()) for match in map(shape.match, _whole(rows)) if match)
    likely = [count for count in counts if not told or least <= count <= len(told)]
    return max(likely, key=lambda count: (counts[count], -count), default=least)


def _flags_edge(tails: Sequence[bytes], header: bytes | None) -> tuple[int, int]:
    """Give where the flags of all rows end, and how many spaces stand before the name (2 in procps 3.3.10)."""
    before, flags, _ = (header or b"").partition(b"VmFlags")
    edge = len(before) - len(before.rstrip()) + len(flags) - 1
    if not all(_FLAGS.fullmatch(tail[:edge]) and tail[edge : edge + 1].isspace() for tail in tails):
        # No header, or one that stands elsewhere, by two columns in procps 3.3.10: where the flags of most rows end.
        ends = Counter(match.end() for match in map(_FLAGS.match, tails) if match)
        edge = ends.most_common(1)[0][0] if ends else 0
    rests = [tail[edge:] for tail in tails if tail[edge:].strip()]
    return edge, 2 if _most(rest.startswith(b"  ") for rest in rests) else 1


@cache
def _smaps_keys() -> dict[str, tuple[str, ...]]:
    """Give the keys of smaps in order, under the first kernel that had them."""
    by_kernel = {}
    keys: list[str] = []
    for kernel, behind, added in _SMAPS_HISTORY:
        new = added.split()
        keys = [key for key in keys if key not in new]
        place = keys.index(behind) + 1 if behind else 0
        keys[place:place] = new
        by_kernel[kernel] = tuple(keys)
        if _version(kernel) >= _SINCE_PROTECTION_KEY:
            by_kernel[f"{kernel} with protection keys"] = (*keys, "ProtectionKey")
    by_kernel["4.6 with protection keys"] = (*by_kernel["4.4"], "ProtectionKey")
    return by_kernel


@cache
def _known_keys() -> frozenset[str]:
    return frozenset().union(*_smaps_keys().values())


def _version(kernel: str) -> tuple[int, ...]:
    return tuple(int(part) for part in kernel.partition(" ")[0].split("."))


def _assume_keys(
    columns: Sequence[tuple[int, ...]], width: int, *, has_flags: bool
) -> tuple[tuple[str | None, ...], str]:
    """Find the keys of rows without a header by their number, and by what is true of every mapping."""
    scores = {
        (kernel, keys): sum(_impossible(dict(zip(keys, columns, strict=True))))
        for kernel, keys in _key_sets(has_flags=has_flags)
        if len(keys) == len(columns)
    }
    if not scores:
        keys = ("Size", *(None,) * (width - 1)) if width else ()
        return keys, f"no header, and no known kernel has {width} counters: only the first, Size, is read"
    best = [candidate for candidate, score in scores.items() if score == min(scores.values())]
    kernel, newest = max(best, key=lambda candidate: _version(candidate[0]))
    # A key is sure when every possible set has it with these very figures.
    sure = tuple(
        key if all(key in other and columns[other.index(key)] == columns[place] for _, other in best) else None
        for place, key in enumerate(newest)
    )
    doubtful = [key for key, kept in zip(newest, sure, strict=True) if kept is None]
    left_out = f"; left out, because they could as well be others: {', '.join(doubtful)}" if doubtful else ""
    return sure, f"no header: the {width} counters are taken for those of Linux {kernel} or later{left_out}"


def _key_sets(*, has_flags: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the key sets that -X and -XX can have printed."""
    for kernel, keys in _smaps_keys().items():
        if has_flags and _version(kernel) >= _LAST_WITHOUT_FLAGS:
            yield kernel, keys
        if not has_flags:
            yield kernel, tuple(key for key in keys if key not in _NOT_IN_X)
            if _version(kernel) <= _LAST_WITHOUT_FLAGS:
                yield kernel, keys


def _impossible(columns: dict[str, tuple[int, ...]]) -> Iterator[bool]:
    """Tell of each row and each law whether it is broken."""
    for small, large in _NEVER_LARGER:
        if small in columns and large in columns:
            yield from (less > more for less, more in zip(columns[small], columns[large], strict=True))
    if all(key in columns for key in _RSS_PARTS):
        parts = zip(*(columns[key] for key in _RSS_PARTS), strict=True)
        yield from (sum(part) != rss for part, rss in zip(parts, columns["Rss"], strict=True))
    if "THPeligible" in columns:
        yield from (value > 1 for value in columns["THPeligible"])
    if "KernelPageSize" in columns:
        yield from (value == 0 for value in columns["KernelPageSize"])
