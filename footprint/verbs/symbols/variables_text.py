"""The tables of `footprint symbols`: variables, or what they add up to by file or section."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from itertools import chain, repeat
from operator import attrgetter, neg
from typing import Any, Final, NamedTuple

from footprint.attribution.source_groups import SourceGroups
from footprint.elf.contents import SectionContents, SectionKind
from footprint.elf.names import shown_name
from footprint.elf.origins import Origins, OriginShare
from footprint.elf.symbols import Symbol
from footprint.formats.document import Block, Fold, Heading, Table
from footprint.formats.report_parts import cut_at, rest_rows
from footprint.verbs.symbols.call import FileSymbols
from footprint.verbs.symbols.sources_text import declared_place, declared_words


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
