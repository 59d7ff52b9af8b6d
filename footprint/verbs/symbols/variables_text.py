"""The tables of `footprint symbols`: variables, or what they add up to by file or section."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from footprint.elf import Contents, SectionKind, Symbol
from footprint.elf.origins import Origins, OriginShare
from footprint.formats.document import Block, Heading, Table
from footprint.formats.sections.rest import cut_at, rest_rows

__all__ = ("Column", "Placed", "Words", "file_table", "origin_column", "section_table", "variables_table")

Show = Callable[[str], str]


class Placed(NamedTuple):
    """A variable and where it is: the number of its file, the number of its section there."""

    file: int
    section: int
    variable: Symbol


class Column(NamedTuple):
    """What else is told of each variable: a heading, and its cell."""

    heading: str
    cell: Callable[[Placed], str]


Words = Callable[[Placed, Show], str]
"""What is told of a variable besides its name, behind it."""

_ORDERS: Final[dict[str, Callable[[Placed], Any]]] = {
    "size": lambda one: (-one.variable.size_bytes, one.variable.name, one.file),
    "address": lambda one: (one.file, one.section, one.variable.offset),
    "name": lambda one: (one.variable.name, one.file, one.section, one.variable.offset),
}


def variables_table(
    files: Sequence[Contents],
    top: int,
    show: Show,
    *,
    order: str = "size",
    columns: Sequence[Column] = (),
    words: Words = lambda _one, _show: "",
) -> list[Block]:
    """List the variables of files by size, address or name; `top` rows, 0 for all."""
    placed = [
        Placed(number, place, variable)
        for number, contents in enumerate(files)
        for place, one in enumerate(contents.sections)
        for variable in one.variables
    ]
    if not placed:
        return []
    # Only those that are shown need an order: a program has thousands.
    shown = nsmallest(min(top or len(placed), len(placed)), placed, key=_ORDERS[order])
    rows = tuple(
        (
            f"{one.variable.size_bytes:,}" if one.variable.size_bytes else "no size",
            files[one.file].sections[one.section].section.name,
            *(column.cell(one) for column in columns),
            _variable_text(one.variable, show)
            + words(one, show)
            + (f"  ({files[one.file].file})" if len(files) > 1 else ""),
        )
        for one in shown
    )
    rest_bytes = sum(one.variable.size_bytes for one in placed) - sum(one.variable.size_bytes for one in shown)
    headings = ("bytes", "section", *(column.heading for column in columns), "variable")
    footer = rest_rows(len(placed) - len(shown), len(headings), f"{rest_bytes:,}")
    return [Heading("Variables"), Table(headings, rows, frozenset(range(1, len(headings) - 1)), footer)]


def origin_column(origins: Sequence[Origins]) -> Column:
    """Return the column with the object that each variable came from."""

    def cell(one: Placed) -> str:
        known = origins[one.file]
        return known.of(known.sections[one.section], one.variable).label

    return Column("object", cell)


def file_table(origins: Sequence[Origins], top: int) -> list[Block]:
    """Add up by the object, member or source file that the bytes came from; what has none stands by its cause."""
    totals: dict[str, _Sums] = {}
    for known in origins:
        for one in known.sections:
            for origin, share in known.shares(one).items():
                # Several files can have source files of one name, and lack them for one cause.
                is_shared = origin.object is None and len(origins) > 1
                label = f"{origin.label}  ({known.contents.file})" if is_shared else origin.label
                totals.setdefault(label, _Sums()).add(one.contents.kind, share)
    return _sums_table("By file", "file", totals, top)


def section_table(origins: Sequence[Origins], top: int) -> list[Block]:
    """Add up by section, over all files."""
    totals: dict[str, _Sums] = {}
    for known in origins:
        for one in known.sections:
            for share in known.shares(one).values():
                totals.setdefault(one.contents.section.name, _Sums()).add(one.contents.kind, share)
    return _sums_table("By section", "section", totals, top)


class _Sums:
    """What a row of a table adds up to."""

    def __init__(self) -> None:
        self.named_bytes = self.variable_count = 0
        self.by_kind: Counter[SectionKind] = Counter()

    def add(self, kind: SectionKind, share: OriginShare) -> None:
        self.by_kind[kind] += share.size_bytes
        self.named_bytes += share.named_bytes
        self.variable_count += share.variable_count


def _sums_table(title: str, heading: str, totals: Mapping[str, _Sums], top: int) -> list[Block]:
    ordered = sorted(totals.items(), key=lambda item: (-item[1].by_kind.total(), item[0]))
    shown, rest = cut_at(ordered, top)
    rows = tuple(
        (
            f"{sums.by_kind.total():,}",
            f"{sums.named_bytes:,}",
            f"{sums.variable_count:,}",
            *(f"{size:,}" if (size := sums.by_kind[kind]) else "-" for kind in SectionKind),
            label,
        )
        for label, sums in shown
    )
    headings = ("bytes", "named", "variables", *SectionKind, heading)
    footer = rest_rows(len(rest), len(headings), f"{sum(sums.by_kind.total() for _, sums in rest):,}")
    return [Heading(title), Table(headings, rows, frozenset(), footer)] if rows else []


def _variable_text(variable: Symbol, show: Show) -> str:
    shown = show(variable.name)
    if not variable.aliases:
        return shown
    aliases = ", ".join(map(show, variable.aliases[:3]))
    more = f" and {len(variable.aliases) - 3} more" if len(variable.aliases) > 3 else ""
    return f"{shown}  (also {aliases}{more})"
