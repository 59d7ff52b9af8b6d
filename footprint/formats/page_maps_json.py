"""The member `page_maps` of an audit: the pages of objects one by one, without the variables in them.

The names of the variables would be as long as the ledger. The runs of pages and the sections stand as columns, which is
half as long as rows.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal, get_args

from footprint.errors import InputError
from footprint.members import NOT_EMPTY, Address, Bounds, NamedTuple, Pattern
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.row import MemoryKind

_RunLength = Annotated[int, Bounds(1, 1 << 64)]
PageWord = Literal["untouched", "not private", "shared", "private", "relocated", "swapped", "unknown"]


class PagePartRow(NamedTuple):
    """Neighbouring pages of an object that are mapped alike.

    Attributes:
        start_addr: The address of the first page.
        kind: What the pages are for.
        permissions: Four letters, as in `/proc/PID/maps`.
        states: The states of the pages in order, one for each run of pages in the same state. `shared` pages are in
            memory, perhaps of other processes too; `relocated` pages are private because relocations write them at each
            start; whether `not private` pages are in memory was not looked at; the page bits of `unknown` pages could
            not be read.
        page_counts: The number of pages in each run; as many as `states`.
    """

    start_addr: Address
    kind: MemoryKind
    permissions: Annotated[str, Pattern("^[r-][w-][x-][ps]$")]
    states: Annotated[tuple[PageWord, ...], NOT_EMPTY]
    page_counts: Annotated[tuple[_RunLength, ...], NOT_EMPTY]


class PageSections(NamedTuple):
    """The sections of an object as columns, as far as they lie between its first page and its last.

    Attributes:
        names: The names.
        addrs: The addresses; as many as `names`.
        size_bytes: The sizes; as many as `names`.
    """

    names: tuple[str, ...]
    addrs: tuple[Address, ...]
    size_bytes: tuple[Address, ...]


class PageMapRow(NamedTuple):
    """The pages of one object.

    Attributes:
        owner: The path of the object, as the ledger has it.
        parts: The pages, in ascending order.
        sections: The sections that lie in them.
        omitted_pages: The number of pages that are left out: all maps together have at most 1,048,576.
        omitted_sections: The number of sections that are left out: all maps together have at most 100,000.
    """

    owner: str
    parts: tuple[PagePartRow, ...]
    sections: PageSections
    omitted_pages: int
    omitted_sections: int


def page_map_rows(maps: Sequence[PageMap]) -> tuple[PageMapRow, ...]:
    """Return the table of page maps, one row an object."""
    return tuple(
        [
            PageMapRow(
                page_map.owner,
                tuple([_part_row(part) for part in page_map.parts]),
                PageSections(
                    tuple([place.section for place in page_map.sections]),
                    tuple([place.addr for place in page_map.sections]),
                    tuple([place.size_bytes for place in page_map.sections]),
                ),
                page_map.omitted_pages,
                page_map.omitted_sections,
            )
            for page_map in maps
        ]
    )


def _part_row(part: PagePart) -> PagePartRow:
    words: tuple[PageWord, ...] = tuple([_WORDS[state] for state, _ in part.runs])
    return PagePartRow(part.start_addr, part.kind, part.permissions, words, tuple([count for _, count in part.runs]))


_WORDS: Final[dict[PageState, PageWord]] = dict(zip(sorted(PageState), get_args(PageWord), strict=True))
_STATES: Final = {word: state for state, word in _WORDS.items()}


def page_maps_of(rows: Sequence[PageMapRow], file: str) -> Iterable[PageMap]:
    """Read page maps; each of their pages becomes a cell of the report, so their number has a limit.

    Raises:
        InputError: Columns differ in length, or the maps have more pages or sections than footprint writes.
    """
    if not rows:
        return
    from footprint.attribution.page_maps import MOST_PAGES, MOST_SECTIONS  # noqa: PLC0415 # few audits are drawn

    page_count = section_count = 0
    for row in rows:
        if any(len(part.states) != len(part.page_counts) for part in row.parts):
            raise InputError(file, "it is damaged: `page_maps.parts.page_counts` is not as many as `states`")
        if len(set(map(len, row.sections))) > 1:
            raise InputError(file, "it is damaged: `page_maps.sections` is of columns that differ in length")
        page_count += sum([sum(part.page_counts) for part in row.parts])
        section_count += len(row.sections.names)
        if page_count > MOST_PAGES or section_count > MOST_SECTIONS:
            limits = f"{MOST_PAGES:,} pages, or {MOST_SECTIONS:,} sections"
            raise InputError(file, f"it is damaged: `page_maps` is of more than {limits}")
        names, addrs, sizes = row.sections
        yield PageMap(
            owner=row.owner,
            parts=tuple([_part_of(part) for part in row.parts]),
            sections=tuple([Place(*place, None) for place in zip(addrs, sizes, names, strict=True)]),
            variables=None,
            omitted_pages=row.omitted_pages,
            omitted_sections=row.omitted_sections,
        )


def _part_of(row: PagePartRow) -> PagePart:
    runs = zip(map(_STATES.__getitem__, row.states), row.page_counts, strict=True)
    return PagePart(row.start_addr, row.kind, row.permissions, tuple(runs))
