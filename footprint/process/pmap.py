"""The memory map of processes, as pmap prints it: any option, any version, any language, whole or in pieces.

Rows are known by their shape alone, because headers and totals are translated and people cut them off. Lines of no
known shape are counted in a note; the only errors are a text without any row, of which nothing says that it is whole,
and one with more other lines than any pmap prints.

Source: pmap.c of procps 2004 to 4.0.6, of toybox 0.4 to 0.8 and of busybox 1.17 to 1.37.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as AbstractMapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NamedTuple

from footprint.errors import InputError, Note
from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.pmap_columns import (
    BARE_KEYS,
    COMPACT_ROW,
    PmapTable,
    by_process,
    compact_kind,
    parse_columns,
    parse_compact,
)

__all__ = ("looks_like_pmap", "parse_pmap")

KIB = 1024
_LOOK_BYTES, _LOOK_LINES = 1 << 16, 40
_MOST_UNKNOWN_LINES = 1 << 16
_MOST_OTHER_LINES = 1 << 18  # head, header, rule and totals of more processes than one text is ever made of
_SHOWN_CHARS = 80
_PATH_BYTES = 900  # pmap reads lines of 1023 bytes; this much is surely left for the path
_WIDE_PATH_BYTES = 127
_COMMON_NAMES = frozenset({"", "[heap]", "[stack]", "[vdso]", "[vsyscall]", "[vvar]", "[vvar_vclock]"})

_BLANK_LINES = re.compile(rb"\s*\n")
# Swedish, Ukrainian and Georgian have a K of their own, some behind a space.
_UNIT = rb"[ ]?(?:[A-Za-z]|[\x80-\xff]{2,4})"
_WORDS = rb"[^\d$#|]"  # no digit, and none of the marks of a command line
# No group is possessive here, but bounded: Python 3.11.2, that of Debian 12, matches possessive groups wrongly.
_SHAPES = (
    ("row", "", COMPACT_ROW),
    ("row", "columns", re.compile(rb"[ \t]*+[0-9a-f]{8,16}[ \t]++[r-][w-][x-][sp](?:[ \t].*)?", re.DOTALL)),
    ("head", "", re.compile(rb"[ \t]*+(?P<pid>\d{1,10}):(?:(?P<gap> {1,3})(?P<command>.*))?", re.DOTALL)),
    ("rule", "", re.compile(rb"[ \t]*+(?:-{4,}(?:[ \t]++-{3,}){1,255}|=++(?:[ \t]++=++){0,255})\s*+")),
    ("totals", "columns", re.compile(rb"[ \t]*+(\d{1,20}(?:[ \t]++\d{1,20}){0,255})[ \t]++KB\s*+")),
    ("totals", "x", re.compile(_WORDS + rb"*[^\d\s$#|][ \t]++(\d{1,20}(?:[ \t]++(?:\d{1,20}|-)){2,3})\s*+")),
    ("totals", "default", re.compile(_WORDS + rb"*[^\d\s$#|][ \t]++(\d{1,20})" + _UNIT + rb"\s*+")),
    (
        "totals",
        "d",
        re.compile((_WORDS + rb"++(\d{1,20})" + _UNIT + rb"\s++") * 2 + _WORDS + rb"++(\d++)" + _UNIT + rb"\s*+"),
    ),
    ("header", "", re.compile(rb"\s*+(?:[^\d\s$#:/=|]++\s++){3}[^\d$#:/=|]*+")),
)
_HEADER_WORDS = (b"Kbytes", b" Rss ", b" Pss ", b" Size ")


class _Line(NamedTuple):
    """One line: what it is, and of which output."""

    what: str  # row, head, header, rule, totals or unknown
    kind: str  # default, d, x, other x (toybox, busybox) or columns
    text: bytes
    match: re.Match[bytes] | None = None
    is_open: bool = False  # the last line of a text that ends without a line end: it may be cut
    is_after_blank: bool = False  # blank lines themselves are left out: a text may hold millions


@dataclass(slots=True)
class _Block:
    """The lines of one process."""

    head: _Line | None = None
    header: bytes | None = None
    rows: list[_Line] = field(default_factory=list)
    totals: _Line | None = None
    has_rule: bool = False
    blanks_between_rows: int = 0
    unknown_lines: list[bytes] = field(default_factory=list)
    cut_line: bytes | None = None


def looks_like_pmap(text: bytes) -> bool:
    """Tell from the first lines whether a text is the output of some pmap.

    Source: procps, toybox and busybox pmap.c; see `parse_pmap`.
    """
    lines = list(islice(_lines(text[:_LOOK_BYTES]), _LOOK_LINES))
    if any(line.what == "row" or (line.what == "totals" and line.kind in {"d", "columns"}) for line in lines):
        return True
    # `12: text` is also what grep -n prints: a head without rows needs the spacing of procps, or totals after it.
    heads = [line.match for line in lines if line.match and line.what == "head"]
    return any(head["gap"] == b"   " and not head.string.startswith(b" ") for head in heads) or (
        bool(heads) and any(line.what in {"rule", "totals"} for line in lines)
    )


def parse_pmap(text: bytes, source: str) -> tuple[MemoryMap, ...]:
    """Read what pmap printed of one or more processes.

    Args:
        text: The output; also without its first line, its header or its totals, with lines picked out, sorted or cut.
        source: What to call the text in errors and notes.

    Returns:
        One map for each process, in the order of the text. `footer` holds the totals that the text tells, in bytes:
        `mapped`, `writeable/private`, `shared` of -d; `Kbytes` and the counters of the other compact outputs; the
        columns of -X and -XX. Counters are under the kernel's names, but for `Dirty` of procps -x, which is
        Private_Dirty and Shared_Dirty in one.

    Raises:
        InputError: There is no row in it, and nothing says that it is the whole text of a process without memory; or
            there are too many lines that are no rows.

    Source: procps pmap.c of 2004 (-d), 3.2.0 (default, -x), 3.3.2 (-x with RSS and Dirty), 3.3.4 (-X, -XX) to 4.0.6.
    """
    blocks = _blocks(_known_lines(text, source))
    maps: list[MemoryMap] = []
    totals_before: AbstractMapping[str, int] = {}
    for block in blocks:
        maps += _processes(block, source, totals_before)
        totals_before = maps[-1].footer or totals_before
    if not any(found.mappings for found in maps) and not any(map(_is_told_empty, blocks)):
        cut = next((block.cut_line for block in blocks if block.cut_line is not None), None)
        if cut is None:
            raise InputError(source, "no row of pmap in it")
        raise InputError(source, "the text ends before its first whole row", max(text.rfind(cut), 0))
    return tuple(maps)


def _known_lines(text: bytes, source: str) -> list[_Line]:
    """Classify all lines, as long as they may be those of some pmap."""
    lines: list[_Line] = []
    others = unknown = 0
    for line in _lines(text):
        lines.append(line)
        others += line.what != "row"
        unknown += line.what == "unknown"
        if unknown > _MOST_UNKNOWN_LINES or others > _MOST_OTHER_LINES:
            raise InputError(source, "more lines are no rows than any pmap prints")
    return lines


def _lines(text: bytes) -> Iterator[_Line]:
    """Classify every line but blank ones. Mail adds carriage returns to all lines; names hold them in few."""
    if 2 * text.count(b"\r\n") > text.count(b"\n"):
        text = text.replace(b"\r\n", b"\n")
    start = 0
    while start < len(text):
        blank = _BLANK_LINES.match(text, start)
        start = blank.end() if blank else start
        end = text.find(b"\n", start)
        line = text[start:] if end < 0 else text[start:end]
        # Spaces behind the last line end are no line either.
        if line.strip():
            yield _line(line, is_open=end < 0, is_after_blank=blank is not None)
        start += len(line) + 1


def _line(text: bytes, *, is_open: bool, is_after_blank: bool) -> _Line:
    for what, kind, shape in _SHAPES:
        if match := shape.fullmatch(text):
            if shape is not COMPACT_ROW:
                return _Line(what, kind, text, match, is_open, is_after_blank)
            kind_of_row = compact_kind(match)
            return _Line("row" if kind_of_row else "unknown", kind_of_row, text, match, is_open, is_after_blank)
    return _Line("unknown", "", text, None, is_open, is_after_blank)


def _blocks(lines: Sequence[_Line]) -> list[_Block]:
    """Part the lines by process. Where only one process is told of, they may stand in any order (`sort -k2n`)."""
    counts = Counter(line.what for line in lines)
    is_one = counts["head"] <= 1 and counts["totals"] <= 1
    block = _Block()
    blocks = [block]
    for place, line in enumerate(lines):
        if not is_one and _begins_process(line, block):
            block = _Block()
            blocks.append(block)
        if line.what == "row":
            block.blanks_between_rows += bool(block.rows) and line.is_after_blank
            block.rows.append(line)
        elif line.what == "head" and block.head is None:
            block.head = line
        elif line.what == "totals" and block.totals is None:
            block.totals = line
        elif line.what == "header" and block.header is None and _is_header(line, block, lines, place):
            block.header = line.text
        elif line.what == "rule":
            block.has_rule = True
        else:
            block.unknown_lines.append(line.text)
        if line.is_open and line.what in {"head", "header", "unknown"}:
            block.cut_line = line.text
    return [block for block in blocks if block.head or block.rows or block.totals] or blocks


def _begins_process(line: _Line, block: _Block) -> bool:
    if line.what == "head":
        return bool(block.head or block.rows or block.totals)
    return block.totals is not None and line.what in {"row", "totals", "header"}


def _is_header(line: _Line, block: _Block, lines: Sequence[_Line], place: int) -> bool:
    """Tell whether words are a header: they stand right before the first row, or they are the English words."""
    if any(word in line.text for word in _HEADER_WORDS):
        return True
    after = lines[place + 1].what if place + 1 < len(lines) else "row"
    return not block.rows and after in {"row", "rule", "totals"}


def _is_told_empty(block: _Block) -> bool:
    """Tell whether a block without rows is the whole text of a process: it is a head alone, or has totals."""
    if block.totals is not None:
        return bool(block.head or block.header or block.has_rule or block.totals.kind == "d")
    return block.head is not None and block.header is None and block.cut_line is None


def _processes(block: _Block, source: str, totals_before: AbstractMapping[str, int]) -> list[MemoryMap]:
    """Read one block: one process, or more where their heads were filtered away."""
    head = block.head.match if block.head else None
    pid = int(head["pid"]) if head else None
    command = (head["command"] or b"").decode("utf-8", "surrogateescape") if head else None
    subject = source if pid is None else f"{source}: pid {pid}"
    kind = _kind(block)
    rows = [line for line in block.rows if line.kind == kind]
    block.unknown_lines += [line.text for line in block.rows if line.kind != kind]
    if kind == "columns":
        table = parse_columns([line.text for line in rows], block.header)
    else:
        table = parse_compact([line.match for line in rows if line.match], kind)
    block.unknown_lines += table.unknown_lines
    _drop_cut_row(block, table)
    totals = _totals(block, kind, table)
    text_notes = tuple(_text_notes(block, table, command, subject))
    dialect = _dialect(block, kind, table)
    parts = by_process(table.mappings)
    maps = []
    for place, (mappings, dropped, cut_paths) in enumerate(parts, 1):
        is_last = place == len(parts)
        told = totals if is_last else {}
        notes = (
            *(text_notes if is_last else ()),
            *_row_notes(mappings, dropped, subject),
            *_name_notes(mappings, kind, cut_paths + _broken_paths(block), subject),
            *_totals_notes(mappings, told, kind, totals_before, subject),
        )
        maps.append(
            MemoryMap(
                dialect,
                tuple(mappings),
                pid=pid if place == 1 else None,
                command=command if place == 1 else None,
                footer=told,
                has_full_names=_has_full_names({mapping.name for mapping in mappings}),
                notes=notes,
            )
        )
    return maps


def _kind(block: _Block) -> str:
    """Give the output that most rows are of; without rows, the totals tell."""
    if block.rows:
        return Counter(line.kind for line in block.rows).most_common(1)[0][0]
    if block.totals is None or block.totals.match is None:
        return "default"
    cells = block.totals.match[1].split()
    return "other x" if block.totals.kind == "x" and len(cells) == 4 and b"-" not in cells else block.totals.kind


def _dialect(block: _Block, kind: str, table: PmapTable) -> str:
    if kind == "columns":
        return "pmap -XX" if table.is_everything else "pmap -X"
    option = {"default": "", "d": " -d"}.get(kind, " -x")
    first = next((line.match for line in block.rows if line.kind == kind), None)
    if first and len(first["mode"]) == 4 and kind in {"default", "other x"}:
        return "busybox pmap" + option
    head = block.head.match if block.head else None
    is_toybox = kind == "other x" or (
        kind == "default"
        and ((head and head["gap"] == b" ") or any(line.text.endswith(b"  [anon]") for line in block.rows))
    )
    return ("toybox pmap" if is_toybox else "pmap") + option


def _drop_cut_row(block: _Block, table: PmapTable) -> None:
    """Drop a last row without a line end, unless its name is surely whole: a common one, or that of the row above."""
    last = block.rows[-1] if block.rows else None
    if last is None or not last.is_open:
        return
    if table.lines and table.lines[-1] is last.text:
        file, *above = [(row.name, row.device, row.inode) for row in table.mappings[:-3:-1]]
        if (last.text.endswith(b"]") and file[0] in _COMMON_NAMES) or (file[0] and file in above):
            return
        del table.lines[-1], table.mappings[-1]
    else:
        block.unknown_lines.remove(last.text)
    block.cut_line = last.text


def _broken_paths(block: _Block) -> int:
    """Count blank lines among the rows: -xp breaks lines where a path is too long. Mail doubles all line ends."""
    return block.blanks_between_rows if 2 * block.blanks_between_rows < len(block.rows) else 0


def _has_full_names(names: set[str]) -> bool:
    """Tell whether paths are shown. procps 3.2.0 to 3.2.4 printed `/libc.so` for any path."""
    paths = {name for name in names if name.startswith("/")}
    if any("/" in path[1:] for path in paths):
        return True
    return sum(not path.endswith(" (deleted)") for path in paths) == 1


def _totals(block: _Block, kind: str, table: PmapTable) -> dict[str, int]:
    """Give the totals that the text tells. A line that does not fit the rows is not theirs."""
    if block.totals is None or block.totals.match is None:
        return {}
    cells = [cell for group in block.totals.match.groups() for cell in group.split()]
    names: tuple[str | None, ...] = ("Kbytes", *table.keys)
    if kind in {"d", "columns"}:
        names = ("mapped", "writeable/private", "shared") if kind == "d" else table.keys
    if kind == "x" and b"-" in cells:
        cells, names = cells[:1], names[:1]
    fits = block.totals.kind == kind.removeprefix("other ") and len(cells) == len(names) and b"-" not in cells
    told = dict(zip(names, map(int, cells), strict=True)) if fits else {}
    told_bytes = {name: told[name] * (1 if name in BARE_KEYS else KIB) for name in told if name is not None}
    if fits and (kind in {"default", "d", "columns"} or not block.totals.is_open):
        return told_bytes
    if fits and told_bytes == _sums(table.mappings, told_bytes):  # its last figure may be cut, but is not
        return told_bytes
    if block.totals.is_open:
        block.cut_line = block.totals.text
    else:
        block.unknown_lines.append(block.totals.text)
    block.totals = None
    return {}


def _text_notes(block: _Block, table: PmapTable, command: str | None, subject: str) -> Iterator[Note]:
    """Note what is odd about the text as a whole."""
    if block.cut_line is not None:
        detail = f"the last line has no line end; left out, because it may be cut: {_show(block.cut_line)}"
        yield Note("pmap-text-truncated", subject, detail)
    elif block.header is not None and block.totals is None:
        yield Note("pmap-text-truncated", subject, "there is a header but no line of totals: rows may be missing")
    unknown = [line for line in block.unknown_lines if line is not block.cut_line]
    if unknown:
        yield Note(
            "pmap-unknown-lines", subject, f"{len(unknown)} lines of no known shape; the first: {_show(unknown[0])}"
        )
    if not table.mappings:
        why = "it could not be read, or its rows were cut away"
        if command is not None and command.endswith("<defunct>"):
            why = "a process that has ended has none"
        elif command is not None and command.startswith("[") and command.endswith("]"):
            why = "a kernel thread has none"
        yield Note("pmap-no-rows", subject, f"the text shows no memory of the process: {why}")
    elif not table.has_sizes:
        yield Note("pmap-no-sizes", subject, "there is no column Size: where the mappings end is not known")
    if table.assumed and table.mappings:
        yield Note("pmap-columns-assumed", subject, table.assumed)


def _row_notes(mappings: Sequence[Mapping], dropped: int, subject: str) -> Iterator[Note]:
    if dropped:
        yield Note("pmap-rows-doubled", subject, f"{dropped} rows that repeat the row before them are left out")
    overlaps = [high for low, high in pairwise(mappings) if high.start_addr < low.end_addr]
    if overlaps:
        detail = f"{len(overlaps)} rows begin before the one above ends; the first: {overlaps[0].start_addr:x}"
        yield Note("pmap-rows-overlap", subject, detail)


def _name_notes(mappings: Sequence[Mapping], kind: str, cut_paths: int, subject: str) -> Iterator[Note]:
    """Note names that cannot be matched with files."""
    lossy = [name for mapping in mappings if _is_lossy(name := mapping.name, kind)]
    if lossy or cut_paths:
        first = f" (the first: {_show(lossy[0].encode('utf-8', 'surrogateescape'))})" if lossy else ""
        why = "pmap prints ? for what it cannot print, cuts long paths, and keeps what follows the last slash"
        yield Note("pmap-names-cut", subject, f"{len(lossy) + cut_paths} names are not as in /proc{first}: {why}")


def _is_lossy(name: str, kind: str) -> bool:
    longest = _WIDE_PATH_BYTES if kind == "columns" else _PATH_BYTES
    return (
        ("?" in name and kind != "columns")
        or (name.endswith("]") and "[" not in name)
        or (4 * len(name) >= longest and len(name.encode("utf-8", "surrogateescape")) >= longest)
    )


def _totals_notes(
    mappings: Sequence[Mapping], told: dict[str, int], kind: str, before: AbstractMapping[str, int], subject: str
) -> Iterator[Note]:
    """Compare the rows with the totals, and say why they differ. The rows are right in every case."""
    found = _sums(mappings, told)
    off = {key: told[key] - found[key] for key in told if told[key] != found[key]}
    if not off:
        return
    size = next(iter(told))
    shared = sum(mapping.size_bytes for mapping in mappings if mapping.is_shared)
    lower = any(excess < 0 for excess in off.values())
    causes = (
        (not mappings, "there are no rows (-x prints none on Linux before 2.6.26)"),
        (
            kind == "columns" and off.get(size) == before.get(size, 0) > 0,
            "the totals of the process before are in these, too (procps until 4.0.3)",
        ),
        (
            shared > 0 and off in ({"Kbytes": shared}, {"mapped": shared, "shared": shared}),
            "the totals have shared mappings twice (procps until 3.3.10)",
        ),
        (kind == "x" and size not in off and not lower, "with -A, RSS and Dirty have mappings below the range, too"),
        (not lower, "rows are missing: the text was filtered or cut"),
        (kind == "columns" and size not in off, "the process changed between the two times that pmap read it"),
        (True, "the rows are of another time or process than the totals"),
    )
    figures = "; ".join(f"{key}: rows {_amount(key, found[key])}, text {_amount(key, told[key])}" for key in off)
    cause = next(cause for is_it, cause in causes if is_it)
    yield Note("pmap-footer-differs", subject, f"{figures}: {cause}")


def _sums(mappings: Sequence[Mapping], told: dict[str, int]) -> dict[str, int]:
    """Add the rows up, under the names of the totals."""
    counters = mappings[0].counters.keys if mappings else {}
    columns = list(zip(*(mapping.counters.values for mapping in mappings), strict=False))
    sums = {key: sum(columns[place]) for key, place in counters.items() if place < len(columns)}
    size = sum(mapping.size_bytes for mapping in mappings)
    sums |= {"Kbytes": size, "mapped": size}
    sums["writeable/private"] = sum(mapping.size_bytes for mapping in mappings if mapping.is_mapped_writable)
    sums["shared"] = sum(mapping.size_bytes for mapping in mappings if mapping.is_shared)
    return {key: sums.get(key, 0) for key in told}


def _amount(key: str, value: int) -> str:
    return str(value) if key in BARE_KEYS else f"{value // KIB} K"


def _show(line: bytes) -> str:
    """Quote a line for a note, its control characters escaped."""
    text = line.decode("utf-8", "surrogateescape")
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")
