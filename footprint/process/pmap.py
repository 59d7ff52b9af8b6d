"""The memory maps in a pmap output: of any option, version and language, whole or in parts.

Lines of unknown form are counted in a note. The only errors are a text without any row that is not surely whole, and a
text with more other lines than any pmap prints.

Source: pmap.c of procps 2004 to 4.0.6, of toybox 0.4 to 0.8 and of busybox 1.17 to 1.37.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as AbstractMapping
from itertools import pairwise
from typing import Final

from footprint.errors import InputError, Note
from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.pmap_lines import PmapBlock, read_blocks
from footprint.process.pmap_rows import KIB, PmapTable, ProcessRows, by_process, parse_columns, parse_compact
from footprint.process.smaps_keys import BARE_KEYS
from footprint.text.units import decimal

_SHOWN_CHARS: Final = 80
_PATH_BYTES: Final = 900  # pmap reads lines of 1023 bytes: at least this much is left for the path
_WIDE_PATH_BYTES: Final = 127
_COMMON_NAMES: Final = frozenset({"", "[heap]", "[stack]", "[vdso]", "[vsyscall]", "[vvar]", "[vvar_vclock]"})


def parse_pmap(text: bytes, source: str) -> tuple[MemoryMap, ...]:
    """Read the pmap output for one or more processes.

    Args:
        text: The output, also without its first line, header or totals, and with lines selected, sorted or cut.
        source: The name of the text, for errors and notes.

    Returns:
        One map per process, in the order of the text. `footer` holds the totals of the text in bytes: `mapped`,
        `writeable/private` and `shared` of -d; `Kbytes` and the counters of the other compact outputs; the columns of
        -X and -XX. Counters have the names of the kernel, except `Dirty` of procps -x, which is the sum of
        Private_Dirty and Shared_Dirty.

    Raises:
        InputError: Where there is no row, and the text is not surely the whole output.

    Source: procps pmap.c of 2004 (-d), 3.2.0 (default, -x), 3.3.2 (-x with RSS and Dirty), 3.3.4 (-X, -XX) to 4.0.6.
    """
    blocks = read_blocks(text, source)
    maps: list[MemoryMap] = []
    totals_before: AbstractMapping[str, int] = {}
    for block in blocks:
        maps += _maps_of(block, source, totals_before)
        totals_before = maps[-1].footer or totals_before
    if not any(memory_map.mappings for memory_map in maps) and not any(block.is_whole_without_rows for block in blocks):
        cut = next((block.cut_line for block in blocks if block.cut_line is not None), None)
        if cut is None:
            raise InputError(source, "no row of pmap in it")
        raise InputError(source, "the text ends before its first whole row", max(text.rfind(cut), 0))
    return tuple(maps)


def _maps_of(block: PmapBlock, source: str, totals_before: AbstractMapping[str, int]) -> list[MemoryMap]:
    """Read one block: one process, or several where their first lines were filtered out."""
    head = block.head.match if block.head else None
    pid = int(head["pid"]) if head else None
    command = (head["command"] or b"").decode("utf-8", "surrogateescape") if head else None
    subject = source if pid is None else f"{source}: pid {pid}"
    kind = block.kind
    table = _table(block, kind)
    _drop_cut_row(block, table)
    totals = _totals(block, kind, table)
    text_notes = tuple(_text_notes(block, table, command, subject))
    dialect = _dialect(block, kind, table)
    parts = by_process(table.mappings)
    maps = []
    for place, part in enumerate(parts, 1):
        is_last = place == len(parts)
        printed = totals if is_last else {}
        notes = (
            *(text_notes if is_last else ()),
            *_row_notes(part, subject),
            *_name_notes(part.mappings, kind, part.renamed_count + block.broken_path_count, subject),
            *_totals_notes(part.mappings, printed, kind, totals_before, subject),
        )
        is_first = place == 1
        maps.append(
            MemoryMap(
                dialect,
                tuple(part.mappings),
                pid=pid if is_first else None,
                command=command if is_first else None,
                footer=printed,
                notes=notes,
            )
        )
    return maps


def _table(block: PmapBlock, kind: str) -> PmapTable:
    """Read the rows of one kind; rows of another kind are unknown lines."""
    rows = [line for line in block.rows if line.kind == kind]
    block.unknown_lines += [line.text for line in block.rows if line.kind != kind]
    if kind == "columns":
        table = parse_columns([line.text for line in rows], block.header)
    else:
        table = parse_compact([line.match for line in rows if line.match], kind)
    block.unknown_lines += table.unknown_lines
    return table


def _dialect(block: PmapBlock, kind: str, table: PmapTable) -> str:
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


def _drop_cut_row(block: PmapBlock, table: PmapTable) -> None:
    """Drop a last row without a line end, unless its name is surely whole: common, or that of the row before."""
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


def _totals(block: PmapBlock, kind: str, table: PmapTable) -> dict[str, int]:
    """Return the totals of the text in bytes. A line of totals that does not fit the rows is an unknown line."""
    if block.totals is None or block.totals.match is None:
        return {}
    cells = [cell for group in block.totals.match.groups() for cell in group.split()]
    names: tuple[str | None, ...] = ("Kbytes", *table.keys)
    if kind in {"d", "columns"}:
        names = ("mapped", "writeable/private", "shared") if kind == "d" else table.keys
    if kind == "x" and b"-" in cells:
        cells, names = cells[:1], names[:1]
    numbers = [number for number in map(decimal, cells) if number is not None]
    fits = block.totals.kind == kind.removeprefix("other ") and len(cells) == len(numbers) == len(names)
    printed = dict(zip(names, numbers, strict=True)) if fits else {}
    in_bytes = {name: value * (1 if name in BARE_KEYS else KIB) for name, value in printed.items() if name is not None}
    if fits and (kind in {"default", "d", "columns"} or not block.totals.is_open):
        return in_bytes
    if fits and in_bytes == _sums(table.mappings, in_bytes):  # its last figure could be cut, but is right
        return in_bytes
    if block.totals.is_open:
        block.cut_line = block.totals.text
    else:
        block.unknown_lines.append(block.totals.text)
    block.totals = None
    return {}


# --- notes ------------------------------------------------------------------------------------------------------------


def _text_notes(block: PmapBlock, table: PmapTable, command: str | None, subject: str) -> Iterator[Note]:
    """Yield notes about the text as a whole."""
    if block.cut_line is not None:
        detail = f"the last line has no line end; it may be cut and is left out: {_quoted(block.cut_line)}"
        yield Note("pmap-text-truncated", subject, detail)
    elif block.header is not None and block.totals is None:
        yield Note("pmap-text-truncated", subject, "there is a header but no line of totals: rows may be missing")
    unknown = [line for line in block.unknown_lines if line is not block.cut_line]
    if unknown:
        detail = f"{len(unknown)} lines have no known form; the first: {_quoted(unknown[0])}"
        yield Note("pmap-unknown-lines", subject, detail)
    if not table.mappings:
        why = "it could not be read, or its rows were removed"
        if command is not None and command.endswith("<defunct>"):
            why = "a process that has ended has none"
        elif command is not None and command.startswith("[") and command.endswith("]"):
            why = "a kernel thread has none"
        yield Note("pmap-no-rows", subject, f"the text shows no memory of the process: {why}")
    elif not table.has_sizes:
        yield Note("pmap-no-sizes", subject, "there is no column Size: the ends of the mappings are unknown")
    if table.assumed and table.mappings:
        yield Note("pmap-columns-assumed", subject, table.assumed)


def _row_notes(part: ProcessRows, subject: str) -> Iterator[Note]:
    if part.repeated_count:
        yield Note("pmap-rows-doubled", subject, f"{part.repeated_count} rows that repeat the row before are left out")
    overlaps = [high for low, high in pairwise(part.mappings) if high.start_addr < low.end_addr]
    if overlaps:
        detail = f"{len(overlaps)} rows begin before the row above ends; the first: {overlaps[0].start_addr:x}"
        yield Note("pmap-rows-overlap", subject, detail)


def _name_notes(mappings: Sequence[Mapping], kind: str, cut_path_count: int, subject: str) -> Iterator[Note]:
    """Yield a note about names that differ from those in /proc."""
    lossy = [name for mapping in mappings if _is_lossy(name := mapping.name, kind)]
    if lossy or cut_path_count:
        first = f" (the first: {_quoted(lossy[0].encode('utf-8', 'surrogateescape'))})" if lossy else ""
        why = "pmap prints ? for what it cannot print, cuts long paths, and keeps what follows the last slash"
        yield Note(
            "pmap-names-cut", subject, f"{len(lossy) + cut_path_count} names differ from those in /proc{first}: {why}"
        )


def _is_lossy(name: str, kind: str) -> bool:
    longest = _WIDE_PATH_BYTES if kind == "columns" else _PATH_BYTES
    return (
        ("?" in name and kind != "columns")
        or (name.endswith("]") and "[" not in name)
        or (4 * len(name) >= longest and len(name.encode("utf-8", "surrogateescape")) >= longest)
    )


def _totals_notes(
    mappings: Sequence[Mapping], printed: dict[str, int], kind: str, before: AbstractMapping[str, int], subject: str
) -> Iterator[Note]:
    """Yield a note where the totals differ from the sums of the rows, with the cause. The rows are always right."""
    sums = _sums(mappings, printed)
    off = {key: printed[key] - sums[key] for key in printed if printed[key] != sums[key]}
    if not off:
        return
    size = next(iter(printed))
    shared = sum(mapping.size_bytes for mapping in mappings if mapping.is_shared)
    is_less = any(excess < 0 for excess in off.values())
    causes = (
        (not mappings, "there are no rows (-x prints none on Linux before 2.6.26)"),
        (
            kind == "columns" and off.get(size) == before.get(size, 0) > 0,
            "the totals include those of the process before (procps until 4.0.3)",
        ),
        (
            shared > 0 and off in ({"Kbytes": shared}, {"mapped": shared, "shared": shared}),
            "the totals count shared mappings twice (procps until 3.3.10)",
        ),
        (kind == "x" and size not in off and not is_less, "with -A, RSS and Dirty include mappings below the range"),
        (not is_less, "rows are missing: the text was filtered or cut"),
        (kind == "columns" and size not in off, "the process changed between the two times that pmap read it"),
        (True, "the rows are of another time or process than the totals"),
    )
    figures = "; ".join(f"{key}: rows {_amount(key, sums[key])}, text {_amount(key, printed[key])}" for key in off)
    cause = next(cause for is_it, cause in causes if is_it)
    yield Note("pmap-footer-differs", subject, f"{figures}: {cause}")


def _sums(mappings: Sequence[Mapping], printed: dict[str, int]) -> dict[str, int]:
    """Add up the rows, under the names of the totals."""
    counters = mappings[0].counters.keys if mappings else {}
    columns = list(zip(*(mapping.counters.values for mapping in mappings), strict=False))
    sums = {key: sum(columns[place]) for key, place in counters.items() if place < len(columns)}
    size = sum(mapping.size_bytes for mapping in mappings)
    sums |= {"Kbytes": size, "mapped": size}
    sums["writeable/private"] = sum(mapping.size_bytes for mapping in mappings if mapping.is_mapped_writable)
    sums["shared"] = sum(mapping.size_bytes for mapping in mappings if mapping.is_shared)
    return {key: sums.get(key, 0) for key in printed}


def _amount(key: str, value: int) -> str:
    return str(value) if key in BARE_KEYS else f"{value // KIB} K"


def _quoted(line: bytes) -> str:
    """Quote a line for a note, with its control characters escaped."""
    text = line.decode("utf-8", "surrogateescape")
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")
