"""The report of `footprint symbols`: variables, where they are declared, or what they add up to."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import chain, repeat
from operator import attrgetter, neg
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from footprint.attribution.source_groups import SourceGroups
from footprint.elf.contents import Contents, SectionContents, SectionKind
from footprint.elf.names import lacks_function, shown_name
from footprint.elf.origins import Origins, OriginShare
from footprint.elf.symbols import Symbol
from footprint.formats.document import (
    Block,
    Document,
    Fold,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    debug_file_blocks,
    note_blocks,
    rest_rows,
)
from footprint.text.escape import shortened
from footprint.text.units import counted
from footprint.verbs.options import OF_SOURCES, SymbolsBy
from footprint.verbs.symbols.call import FileSymbols

if TYPE_CHECKING:
    from footprint.dwarf.declared_variables import DeclaredVariables
    from footprint.dwarf.description import Declaration


_STRIPPED: Final = {
    ".dynsym": ", stripped: only exported names",
    ".gnu_debugdata": " and .dynsym, stripped: exported names and a few more",
}


def symbols_document(
    symbols: FileSymbols,
    *,
    by: SymbolsBy,
    order: str,
    top: int,
    has_whole_names: bool = False,
    groups: SourceGroups | None = None,
) -> Document:
    """Show what the writable memory of files holds.

    Args:
        symbols: The files.
        by: Whether to list variables, or what they add up to by file or section.
        order: The order of variables: `size`, `address` or `name`.
        top: How many rows a table has; 0 for all.
        has_whole_names: Whether to show linker names, whole paths and whole types.
        groups: How source files are grouped.
    """
    files, kinds = symbols.files, symbols.selection.kinds
    blocks = _one_file(files[0], kinds) if len(files) == 1 else _many_files(files, top, kinds)
    if by in OF_SOURCES:
        blocks += file_table(symbols.origins, top, groups)
    elif by is SymbolsBy.SECTION:
        blocks += section_table(symbols.origins, top)
    else:
        blocks += variables_table(symbols, order, top, is_whole=has_whole_names)
        if symbols.sources is not None:
            blocks += sources_paragraph(symbols)
    if symbols.selection.is_of_variables and not any(s.variables for contents in files for s in contents.sections):
        blocks.append(Paragraph("no variable passes the filters"))
    if stray_count := sum(contents.stray_count for contents in files):
        blocks.append(Paragraph(f"{stray_count} symbols say they lie in one of these sections, and do not: left out"))
    if len(files) > 1:
        debug_files = {contents.file: contents.debug_file for contents in files if contents.debug_file is not None}
        blocks += debug_file_blocks(debug_files, Names((), is_whole=True), is_whole=has_whole_names)
    return (*blocks, *note_blocks(symbols.notes), Verdict(_verdict(symbols)))


def _one_file(contents: Contents, kinds: Collection[SectionKind]) -> list[Block]:
    if not contents.sections:
        is_all = len(kinds) == len(SectionKind)
        missing = "no writable section" if is_all else f"nothing of the kind {', '.join(sorted(kinds))}"
        return [Heading(f"{contents.file}: {missing}")]
    return [Heading(f"{contents.file}: {_symbols_origin(contents)}"), _sections_table(contents.sections)]


def _many_files(files: Sequence[Contents], top: int, kinds: Collection[SectionKind]) -> list[Block]:
    """Show one line for each file, the largest first; the report of one file has its sections."""
    sized = [(sum(section.size_bytes for section in contents.sections), contents) for contents in files]
    holding = sorted(
        ((size_bytes, contents) for size_bytes, contents in sized if size_bytes),
        key=lambda item: (-item[0], item[1].file),
    )
    shown, rest = cut_at(holding, top)
    rows = [
        (
            f"{size_bytes:,}",
            f"{sum(section.named_bytes for section in contents.sections):,}",
            *(f"{size:,}" if (size := _size_of(contents, kind)) else "-" for kind in SectionKind),
            contents.file,
        )
        for size_bytes, contents in shown
    ]
    columns = ("bytes", "named", *SectionKind, "file")
    footer = rest_rows(len(rest), len(columns), f"{sum(size for size, _ in rest):,}")
    what = "writable memory" if len(kinds) == len(SectionKind) else f"memory of the kind {', '.join(sorted(kinds))}"
    heading = Heading(f"{len(files)} files, {len(holding)} of them with {what}")
    return [heading, Table(columns, tuple(rows), frozenset(), footer)] if rows else [heading]


def _size_of(contents: Contents, kind: SectionKind) -> int:
    return sum(section.size_bytes for section in contents.sections if section.kind is kind)


def _symbols_origin(contents: Contents) -> str:
    if contents.symbols_from is None:
        return "no symbol table"
    where = (
        f" of {contents.debug_file}" if contents.debug_file is not None else _STRIPPED.get(contents.symbols_from, "")
    )
    return f"{contents.symbol_count:,} symbols in {contents.symbols_from}{where}"


def _sections_table(sections: Sequence[SectionContents]) -> Table:
    rows = []
    for s in sections:
        named_bytes = s.named_bytes
        residue = ", ".join(f"{size:,} {cause.value}" for cause, size in s.residue_bytes.items())
        share = f"{named_bytes / s.size_bytes:.1%}"
        rows.append((f"{s.size_bytes:,}", f"{named_bytes:,}", share, s.kind.value, s.section.name, residue))
    return Table(
        ("bytes", "named", "share", "kind", "section", "without a name, and why"),
        tuple(rows),
        frozenset({3, 4}),
        fold=Fold.TEXT,
    )


def _verdict(symbols: FileSymbols) -> str:
    sections = [section for contents in symbols.files for section in contents.sections]
    total_bytes = sum(section.size_bytes for section in sections)
    named_bytes = sum(section.named_bytes for section in sections)
    namers = "Symbols and debug information" if any(source.named for source in symbols.sources or ()) else "Symbols"
    share = f" ({named_bytes / total_bytes:.1%})" if total_bytes else ""
    where = "" if len(symbols.files) == 1 else f" in {len(symbols.files)} files"
    return f"{namers} name {named_bytes:,} of {total_bytes:,} bytes of writable and thread-local memory{where}{share}."


# On a terminal of 80 columns that leaves some 30 for the name and the type.
_LONGEST_PLACE: Final = 28
_LONGEST_TYPE: Final = 60


def declared_place(declaration: "Declaration | None", *, is_whole: bool) -> str:
    """Return the file and line of a declaration; of a long path the last parts that fit, if not `is_whole`."""
    if declaration is None or declaration.defined_in is None:
        return "-"
    line = declaration.defined_at_line
    text = f"{declaration.defined_in}:{line}" if line else declaration.defined_in
    if is_whole or len(text) <= _LONGEST_PLACE:
        return text
    # A long file name loses its beginning too.
    start = len(text) - _LONGEST_PLACE + 3
    slash = text.find("/", start)
    return f"...{text[slash if slash >= 0 else start :]}"


def declared_words(
    sources: "DeclaredVariables",
    section: SectionContents,
    variable: Symbol,
    show: Callable[[str], str],
    *,
    is_whole: bool,
) -> str:
    """Return the words behind a name: the function that it is in, its type, and whether no symbol names it."""
    declaration = sources.of(section, variable)
    if declaration is None:
        return ""
    function, type_name = declaration.function, declaration.type_name or ""
    words = f" in {show(function)}" if function and lacks_function(variable.name, function) else ""
    if type_name:
        words += f": {type_name if is_whole else shortened(type_name, _LONGEST_TYPE)}"
    return f"{words}  (no symbol)" if sources.is_named_here(section, variable) else words


def sources_paragraph(symbols: FileSymbols) -> list[Block]:
    """Show for how many variables the line is known."""
    count = found_count = size_bytes = found_bytes = 0
    for contents, sources in zip(symbols.files, symbols.sources or (), strict=True):
        for section in contents.sections:
            has_line = {}
            for variable in section.variables:
                declaration = sources.of(section, variable)
                has_line[variable] = declaration is not None and bool(declaration.defined_at_line)
            count += len(has_line)
            found_count += sum(has_line.values())
            # Not by their sizes: one symbol can lie in another.
            for start, end, owner in section.ranges.pieces:
                if isinstance(owner, Symbol) and owner in has_line:
                    size_bytes += end - start
                    found_bytes += end - start if has_line[owner] else 0
    if not count:
        return []
    # Rounded down: 100 % is all of it.
    share = f" ({1000 * found_bytes // size_bytes / 10}%)" if size_bytes else ""
    text = f"Debug information tells the lines of {found_count:,} of {counted(count, 'variable')}, "
    return [Paragraph(f"{text}{found_bytes:,} of {size_bytes:,} bytes{share}.")]


class _Placed(NamedTuple):
    """A variable, the numbers of its file and of its section there, and the section."""

    file: int
    place: int
    section: SectionContents
    variable: Symbol


_NAME, _SIZE = attrgetter("name"), attrgetter("size_bytes")
# The columns that order the variables of a section, before those of its file and of its place there.
_ORDERS: Final[dict[str, Callable[[Sequence[Symbol]], tuple[Iterable[Any], ...]]]] = {
    "size": lambda variables: (map(neg, map(_SIZE, variables)), map(_NAME, variables)),
    "address": lambda _: (),
    "name": lambda variables: (map(_NAME, variables),),
}


def variables_table(symbols: FileSymbols, order: str, top: int, *, is_whole: bool) -> list[Block]:
    """List the variables of files by size, address or name.

    Args:
        symbols: The files.
        order: `size`, `address` or `name`.
        top: How many rows the table has; 0 for all.
        is_whole: Whether to show linker names, whole paths and whole types.
    """
    sections = [section for contents in symbols.files for section in contents.sections]
    count = sum(len(section.variables) for section in sections)
    if not count:
        return []
    # Only those that are shown need an order: a program has thousands.
    keys = chain.from_iterable(
        zip(*_ORDERS[order](s.variables), repeat(number), repeat(place), range(len(s.variables)), strict=False)
        for number, contents in enumerate(symbols.files)
        for place, s in enumerate(contents.sections)
    )
    shown = [_placed(symbols, *key[-3:]) for key in nsmallest(min(top or count, count), keys)]
    has_objects = any(origin.linker_map for origin in symbols.origins)
    headings = ["bytes", "section"]
    headings += ["object"] if has_objects else []
    headings += ["declared"] if symbols.sources is not None else []
    headings.append("variable")
    whole_bytes = sum([sum(map(_SIZE, section.variables)) for section in sections])
    rest_bytes = whole_bytes - sum(row.variable.size_bytes for row in shown)
    table = Table(
        tuple(headings),
        tuple(_cells(row, symbols, has_objects=has_objects, is_whole=is_whole) for row in shown),
        frozenset(range(1, len(headings) - 1)),
        rest_rows(count - len(shown), len(headings), f"{rest_bytes:,}"),
        Fold.WHOLE if is_whole else Fold.NAMES,
    )
    return [Heading("Variables"), table]


def _placed(symbols: FileSymbols, file: int, place: int, index: int) -> _Placed:
    section = symbols.files[file].sections[place]
    return _Placed(file, place, section, section.variables[index])


def _cells(placed: _Placed, symbols: FileSymbols, *, has_objects: bool, is_whole: bool) -> tuple[str, ...]:
    variable, section = placed.variable, placed.section
    show: Callable[[str], str] = str if is_whole else shown_name
    cells = [f"{variable.size_bytes:,}" if variable.size_bytes else "no size", section.section.name]
    if has_objects:
        file = symbols.origins[placed.file]
        cells.append(file.of(file.sections[placed.place], variable).label)
    text = show(variable.name)
    if variable.aliases:
        more = f" and {len(variable.aliases) - 3} more" if len(variable.aliases) > 3 else ""
        text += f"  (also {', '.join(map(show, variable.aliases[:3]))}{more})"
    if symbols.sources is not None:
        sources = symbols.sources[placed.file]
        cells.append(declared_place(sources.of(section, variable), is_whole=is_whole))
        text += declared_words(sources, section, variable, show, is_whole=is_whole)
    if len(symbols.files) > 1:
        text += f"  ({symbols.files[placed.file].file})"
    return (*cells, text)


def file_table(origins: Sequence[Origins], top: int, groups: SourceGroups | None = None) -> list[Block]:
    """Add up by the object, member or source file that the bytes came from, or by its group; else by its cause."""
    groups = groups or SourceGroups("file")
    shares = []
    for file in origins:
        for section in file.sections:
            for origin, share in file.shares(section).items():
                # Several files can have source files of one name, and lack them for one cause.
                is_shared = origin.object is None and len(origins) > 1 and groups.by == "file"
                label = groups.of(origin) or origin.label
                shares.append(
                    (f"{label}  ({file.contents.file})" if is_shared else label, section.contents.kind, share)
                )
    return _sums_table(groups.by, shares, top)


def section_table(origins: Sequence[Origins], top: int) -> list[Block]:
    """Add up by section, over all files."""
    shares = [
        (section.contents.section.name, section.contents.kind, share)
        for origin in origins
        for section in origin.sections
        for share in origin.shares(section).values()
    ]
    return _sums_table("section", shares, top)


def _sums_table(by: str, shares: Iterable[tuple[str, SectionKind, OriginShare]], top: int) -> list[Block]:
    """Add up shares by their labels, and list the sums, the largest first."""
    sizes: dict[str, Counter[SectionKind]] = {}
    named: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for label, kind, share in shares:
        sizes.setdefault(label, Counter())[kind] += share.size_bytes
        named[label] += share.named_bytes
        counts[label] += share.variable_count
    ordered = sorted(sizes.items(), key=lambda item: (-item[1].total(), item[0]))
    shown, rest = cut_at(ordered, top)
    rows = tuple(
        (
            f"{of_kind.total():,}",
            f"{named[label]:,}",
            f"{counts[label]:,}",
            *(f"{of_kind[kind]:,}" if of_kind[kind] else "-" for kind in SectionKind),
            label,
        )
        for label, of_kind in shown
    )
    headings = ("bytes", "named", "variables", *SectionKind, by)
    footer = rest_rows(len(rest), len(headings), f"{sum(of_kind.total() for _, of_kind in rest):,}")
    return [Heading(f"By {by}"), Table(headings, rows, frozenset(), footer)] if rows else []
