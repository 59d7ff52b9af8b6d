"""Which variables `footprint symbols` is asked for, and how it lists them."""

from collections.abc import Sequence
from functools import partial

from footprint import elf
from footprint.cli.options import Kind, Sort, SymbolsBy
from footprint.elf.selection import Selection, name_pattern
from footprint.report.views.symbols import Tables
from footprint.report.views.variables import file_table, origin_column, section_table, variables_table
from footprint.units import parse_bytes
from footprint.verbs.symbols import FileSymbols

__all__ = ("selection", "tables")


def selection(kinds: Sequence[Kind] | None, is_local: bool | None, min_size: str | None, name: str | None) -> Selection:
    """Give what the options ask for.

    Raises:
        UsageError: Where a size or a regular expression is none.
    """
    return Selection(
        frozenset(map(elf.Kind, kinds or elf.Kind)),
        is_local,
        0 if min_size is None else parse_bytes(min_size),
        None if name is None else name_pattern(name),
    )


def tables(found: FileSymbols, by: SymbolsBy, sort: Sort, *, is_whole: bool = False) -> Tables:
    """Give the tables that the options ask for; `is_whole` for paths and types that are not cut."""
    if by is SymbolsBy.FILE:
        return lambda _files, top, _show: file_table(found.origins, top)
    if by is SymbolsBy.SECTION:
        return lambda _files, top, _show: section_table(found.origins, top)
    columns = [origin_column(found.origins)] if any(one.linker_map for one in found.origins) else []
    if (sources := found.sources) is None:
        return partial(variables_table, order=sort.value, columns=columns)
    from footprint.report.views.sources import source_column, source_words, sources_paragraph

    columns.append(source_column(found.origins, sources, is_whole=is_whole))
    words = source_words(found.origins, sources, is_whole=is_whole)
    listed = partial(variables_table, order=sort.value, columns=columns, words=words)
    return lambda files, top, show: [*listed(files, top, show), *sources_paragraph(found.origins, sources)]
