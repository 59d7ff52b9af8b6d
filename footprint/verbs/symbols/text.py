"""The report of `footprint symbols`."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from footprint.elf import Contents, SectionContents, SectionKind, shown_name
from footprint.errors import Note
from footprint.formats.document import Block, Document, Fold, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.debug_files import debug_file_blocks
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.verbs.symbols.variables_text import variables_table

__all__ = ("Tables", "symbols_document")

Tables = Callable[[Sequence[Contents], int, Callable[[str], str]], list[Block]]

_STRIPPED: Final = {
    ".dynsym": ", stripped: only exported names",
    ".gnu_debugdata": " and .dynsym, stripped: exported names and a few more",
}


def symbols_document(
    files: Sequence[Contents],
    notes: Sequence[Note] = (),
    *,
    top: int = 20,
    has_linker_names: bool = False,
    kinds: Collection[SectionKind] = tuple(SectionKind),
    tables: Tables = variables_table,
    is_selected: bool = False,
    namers: str = "Symbols",
) -> Document:
    """Write what the writable memory of files holds.

    Args:
        files: What each holds.
        notes: What the reader must know.
        top: How many rows a table has, 0 for all.
        has_linker_names: Whether to show names as the linker has them.
        kinds: The kinds of memory that were asked for.
        tables: In which order variables are listed, or by what else they are added up.
        is_selected: Whether some variables were asked for and others not.
        namers: What the names are from.
    """
    show = (lambda name: name) if has_linker_names else shown_name
    blocks = _one_file(files[0], kinds) if len(files) == 1 else _many_files(files, top, kinds)
    blocks.extend(one if has_linker_names else _folded(one) for one in tables(files, top, show))
    if is_selected and not any(one.variables for contents in files for one in contents.sections):
        blocks.append(Paragraph("no variable fits what was asked for: the filters leave none"))
    if stray_count := sum(contents.stray_count for contents in files):
        blocks.append(Paragraph(f"{stray_count} symbols say they lie in one of these sections, and do not: left out"))
    if len(files) > 1:
        debug_files = {contents.file: contents.debug_file for contents in files if contents.debug_file is not None}
        names = Names((), is_whole=True)
        blocks.extend(debug_file_blocks(debug_files, names, is_whole=has_linker_names))
    blocks.extend(note_blocks(notes))
    return (*blocks, Verdict(_symbols_verdict(files, namers)))


def _folded(block: Block) -> Block:
    """Shorten the names of variables to the width of the text; paths stay whole, so that they can be copied."""
    if isinstance(block, Table) and block.columns[-1] == "variable":
        return block._replace(fold=Fold.NAMES)
    return block


def _one_file(contents: Contents, kinds: Collection[SectionKind]) -> list[Block]:
    missing = (
        "no writable section" if len(kinds) == len(SectionKind) else f"nothing of the kind {', '.join(sorted(kinds))}"
    )
    heading = Heading(f"{contents.file}: {_symbols_origin(contents) if contents.sections else missing}")
    return [heading, _sections_table(contents.sections)] if contents.sections else [heading]


def _many_files(files: Sequence[Contents], top: int, kinds: Collection[SectionKind]) -> list[Block]:
    """Write one line for each file, the largest first; the report of one file has its sections."""
    sized = [(sum(one.size_bytes for one in contents.sections), contents) for contents in files]
    holding = sorted(
        ((size_bytes, contents) for size_bytes, contents in sized if size_bytes),
        key=lambda item: (-item[0], item[1].file),
    )
    shown, rest = cut_at(holding, top)
    rows = [
        (
            f"{size_bytes:,}",
            f"{sum(one.named_bytes for one in contents.sections):,}",
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
    return sum(one.size_bytes for one in contents.sections if one.kind is kind)


def _symbols_origin(contents: Contents) -> str:
    if contents.symbols_from is None:
        return "no symbol table"
    where = (
        f" of {contents.debug_file}" if contents.debug_file is not None else _STRIPPED.get(contents.symbols_from, "")
    )
    return f"{contents.symbol_count:,} symbols in {contents.symbols_from}{where}"


def _sections_table(sections: Sequence[SectionContents]) -> Table:
    rows = []
    for one in sections:
        named_bytes = one.named_bytes
        residue = ", ".join(f"{size:,} {cause.value}" for cause, size in one.residue_bytes.items())
        share = f"{named_bytes / one.size_bytes:.1%}"
        rows.append((f"{one.size_bytes:,}", f"{named_bytes:,}", share, one.kind.value, one.section.name, residue))
    return Table(
        ("bytes", "named", "share", "kind", "section", "without a name, and why"),
        tuple(rows),
        frozenset({3, 4}),
        fold=Fold.TEXT,
    )


def _symbols_verdict(files: Sequence[Contents], namers: str) -> str:
    total_bytes = sum(one.size_bytes for contents in files for one in contents.sections)
    named_bytes = sum(one.named_bytes for contents in files for one in contents.sections)
    share = f" ({named_bytes / total_bytes:.1%})" if total_bytes else ""
    where = "" if len(files) == 1 else f" in {len(files)} files"
    return f"{namers} name {named_bytes:,} of {total_bytes:,} bytes of writable and thread-local memory{where}{share}."
