"""Which variables `footprint symbols` is asked for, and how it lists them."""

from collections.abc import Sequence
from functools import partial

from footprint import elf
from footprint.elf.selection import Selection, name_pattern
from footprint.errors import UsageError
from footprint.units import parse_bytes
from footprint.verbs.options import Sort, SymbolsBy, VariableKind
from footprint.verbs.symbols.call import FileSymbols
from footprint.verbs.symbols.text import Tables
from footprint.verbs.symbols.variables_text import file_table, origin_column, section_table, variables_table

__all__ = ("selection", "sort_order", "tables")


def selection(
    kinds: Sequence[VariableKind] | None, min_size: str | None, name: str | None, *, is_local: bool, is_global: bool
) -> Selection:
    """Return the variables that the options ask for.

    Raises:
        UsageError: Where a size or a regular expression is none, or where nothing can be as it is asked for.
    """
    if is_local and is_global:
        raise UsageError("choose one of --local and --global, or neither for all variables")
    return Selection(
        frozenset(map(elf.SectionKind, kinds or elf.SectionKind)),
        is_local if is_local or is_global else None,
        0 if min_size is None else parse_bytes(min_size),
        None if name is None else name_pattern(name),
    )


def sort_order(by: SymbolsBy, sort: Sort | None) -> Sort:
    """Return the order of the variables.

    Raises:
        UsageError: Where one is asked for, but no variables are listed.
    """
    if sort is not None and by is not SymbolsBy.SYMBOL:
        raise UsageError(f"--sort orders variables: the sums of --by {by.value} are always by size")
    return sort or Sort.SIZE


def tables(found: FileSymbols, by: SymbolsBy, sort: Sort, *, is_whole: bool = False) -> Tables:
    """Return the tables that the options ask for; `is_whole` leaves paths and types whole."""
    if by is SymbolsBy.FILE:
        return lambda _files, top, _show: file_table(found.origins, top)
    if by is SymbolsBy.SECTION:
        return lambda _files, top, _show: section_table(found.origins, top)
    columns = [origin_column(found.origins)] if any(one.linker_map for one in found.origins) else []
    if (sources := found.sources) is None:
        return partial(variables_table, order=sort.value, columns=columns)
    from footprint.verbs.symbols.sources_text import source_column, source_words, sources_paragraph

    columns.append(source_column(found.origins, sources, is_whole=is_whole))
    words = source_words(found.origins, sources, is_whole=is_whole)
    listed = partial(variables_table, order=sort.value, columns=columns, words=words)
    return lambda files, top, show: [*listed(files, top, show), *sources_paragraph(found.origins, sources)]
