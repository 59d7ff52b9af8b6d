"""The report of `footprint symbols`."""

from collections.abc import Collection, Sequence
from typing import Final

from footprint.attribution.source_groups import SourceGroups
from footprint.elf.contents import Contents, SectionContents, SectionKind
from footprint.formats.document import Block, Document, Fold, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.formats.report_parts import Names, cut_at, debug_file_blocks, rest_rows
from footprint.verbs.options import SymbolsBy
from footprint.verbs.symbols.call import FileSymbols
from footprint.verbs.symbols.sources_text import sources_paragraph
from footprint.verbs.symbols.variables_text import file_table, section_table, variables_table

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
    if by.is_of_sources:
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
