"""Which variables `footprint symbols` is asked for, and in which order."""

from collections.abc import Sequence

from footprint import elf
from footprint.elf.selection import Selection, name_pattern
from footprint.errors import UsageError
from footprint.units import parse_bytes
from footprint.verbs.options import Sort, SymbolsBy, VariableKind

__all__ = ("selection", "sort_order")


def selection(
    kinds: Sequence[VariableKind] | None, min_size: str | None, name: str | None, *, is_local: bool, is_global: bool
) -> Selection:
    """Return the variables that the options ask for.

    Raises:
        UsageError: If a size or a regular expression is not valid, or if two options contradict each other.
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
        UsageError: If an order is given, but no variables are listed.
    """
    if sort is not None and by is not SymbolsBy.SYMBOL:
        raise UsageError(f"--sort orders variables: the sums of --by {by.value} are always by size")
    return sort or Sort.SIZE
