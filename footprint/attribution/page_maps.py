"""The pages of each object one by one: which are private, shared or untouched, why, and what lies in them.

The ledger adds all of this up. Only a picture needs single pages, so an audit has them only on request. Saved audits
omit the variables: their names would make the file half as large again, and the ledger has them too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from functools import cached_property
from itertools import chain, islice, repeat, starmap
from operator import sub
from typing import Final, overload

from footprint.attribution.ledger import Files
from footprint.attribution.owned_range import LoadedObject, MappingCounts, OwnedRange, by_mapping, clip, private_pages
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents, Residue, SectionContents
from footprint.elf.symbols import Symbol
from footprint.members import records
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.row import Attribution
from footprint.process.mappings import Mapping
from footprint.process.pages import PageRange
from footprint.ranges import Piece

Presence = Callable[[Mapping], Sequence[PageRange] | None]
"""Returns the pages of a mapping that the process has in memory; None where that is unknown."""

MOST_PAGES: Final = 1 << 20
"""Of all maps of an audit: 4 GiB of small pages. No picture has as many cells."""
MOST_SECTIONS: Final = 100_000
"""Of all maps of an audit."""
_MOST_VARIABLES: Final = 200_000


def not_looked_at(_mapping: Mapping) -> None:
    """Return None for each mapping: texts and predictions do not say which pages are in memory."""


def page_maps(
    parts: Sequence[OwnedRange],
    counts: Sequence[MappingCounts],
    pages: Dict[int, Sequence[PageRange]] | None,
    files: Files,
    page_bytes: int,
    presence: Presence = not_looked_at,
) -> tuple[PageMap, ...]:
    """Return the page maps of the objects whose files could be read, in the order of their addresses.

    The other parameters are those of `footprint.attribution.ledger.ledger_rows`.
    """
    parts_of_objects: dict[LoadedObject, list[tuple[OwnedRange, MappingCounts]]] = {}
    for parts_of_mapping, counted in by_mapping(parts, counts):
        for part in parts_of_mapping:
            # A thread's variables are no part of the file's own mappings.
            is_of_thread = part.attribution is Attribution.THREAD_VECTOR
            if part.loaded is not None and part.loaded.image is not None and not is_of_thread:
                parts_of_objects.setdefault(part.loaded, []).append((part, counted))
    reader = _Reader(pages, files, page_bytes, presence)
    return tuple([reader.map_of(loaded, ours) for loaded, ours in parts_of_objects.items()])


class _Reader:
    """Makes the page maps of objects, up to the limits of an audit."""

    def __init__(
        self,
        pages: Dict[int, Sequence[PageRange]] | None,
        files: Files,
        page_bytes: int,
        presence: Presence,
    ) -> None:
        self._pages = pages
        self._files = files
        self._page_bytes = page_bytes
        self._presence = presence
        self._pages_left = MOST_PAGES
        self._sections_left = MOST_SECTIONS
        self._variables_left = _MOST_VARIABLES

    def map_of(self, loaded: LoadedObject, parts: Sequence[tuple[OwnedRange, MappingCounts]]) -> PageMap:
        shown: list[PagePart] = []
        omitted_pages = 0
        relocated = self._files.relocated_pages_of(loaded, self._page_bytes)
        for part, counted in parts:
            page_count = -(-part.size_bytes // self._page_bytes)
            runs = _joined(self._states(part, counted, relocated, page_count)) if page_count <= self._pages_left else ()
            # A range that begins in the middle of a page has a cell for its part of the page.
            told_count = sum([count for _, count in runs])
            if not 0 < told_count <= self._pages_left:
                omitted_pages += page_count
                continue
            self._pages_left -= told_count
            shown.append(PagePart(part.start_addr, part.kind, part.mapping.permissions, runs))
        contents = self._files.contents_of(loaded) if shown else None
        sections = list(self._sections(loaded, contents, shown))
        variables = _Variables(loaded, contents, self._variables_left)
        told_sections = sections[: self._sections_left]
        self._sections_left -= len(told_sections)
        self._variables_left -= len(variables)
        return PageMap(
            parts[0][0].owner,
            tuple(shown),
            tuple(told_sections),
            variables,
            omitted_pages,
            len(sections) - len(told_sections),
            variables.omitted_count,
        )

    def _states(
        self, part: OwnedRange, counts: MappingCounts, relocated: PageNumbers, page_count: int
    ) -> Iterator[tuple[PageState, int]]:
        """Return the states of the pages of a range, each with a number of neighbouring pages."""
        size, mapping = self._page_bytes, part.mapping
        ranges = private_pages(mapping, counts, self._pages)
        if ranges is None:
            yield PageState.UNKNOWN, page_count
            return
        present = self._presence(mapping)
        at = part.start_addr
        for run in clip(ranges, part.start_addr, part.end_addr):
            yield from self._between(present, at, run.start_addr)
            if run.is_swapped:
                yield PageState.SWAPPED, -(-(run.end_addr - run.start_addr) // size)
            else:
                for page in range(run.start_addr // size, -(-run.end_addr // size)):
                    yield PageState.RELOCATED if page in relocated else PageState.PRIVATE, 1
            at = run.end_addr
        yield from self._between(present, at, part.end_addr)

    def _between(
        self, present: Sequence[PageRange] | None, start_addr: int, end_addr: int
    ) -> Iterator[tuple[PageState, int]]:
        """Return the states of pages that are not private."""
        size = self._page_bytes
        if present is None:
            yield PageState.NOT_PRIVATE, -(-(end_addr - start_addr) // size)
            return
        at = start_addr
        for run in clip(present, start_addr, end_addr):
            yield PageState.UNTOUCHED, (run.start_addr - at) // size
            yield PageState.SHARED, -(-(run.end_addr - run.start_addr) // size)
            at = run.end_addr
        yield PageState.UNTOUCHED, -(-(end_addr - at) // size)

    def _sections(self, loaded: LoadedObject, contents: Contents | None, parts: Sequence[PagePart]) -> Iterator[Place]:
        """Return the sections, clipped to the pages that are shown."""
        if loaded.image is None or not parts:
            return
        first_addr, last = parts[0].start_addr, parts[-1]
        end_addr = last.start_addr + self._page_bytes * sum([count for _, count in last.runs])
        read = {c.section.index for c in contents.sections} if contents else set()
        others = [
            section
            for section in loaded.image.sections
            if section.is_in_memory and section.index not in read and not section.is_tls and section.size_bytes
        ]
        for section in (*(contents_of_section.section for contents_of_section in _read_sections(contents)), *others):
            addr = section.vaddr + loaded.bias_addr
            start, end = max(addr, first_addr), min(addr + section.size_bytes, end_addr)
            if start < end:
                yield Place(start, end - start, section.name, None)


def _read_sections(contents: Contents | None) -> Iterator[SectionContents]:
    """Return the sections that hold variables; not .tbss, which each thread has elsewhere."""
    for section in contents.sections if contents else ():
        if not section.section.is_tls or section.section.has_file_bytes:
            yield section


class _Variables(Sequence[Place]):
    """What lies in the sections of an object that hold variables, up to a limit.

    The places are made for the first who reads one: JSON has none of them.
    """

    def __init__(self, loaded: LoadedObject, contents: Contents | None, most: int) -> None:
        self._sections = [
            (c.section.vaddr + loaded.bias_addr, c.section.name, c.ranges.pieces)
            for c in _read_sections(contents)
            if c.ranges.pieces
        ]
        self.omitted_count = max(sum([len(pieces) for *_, pieces in self._sections]) - most, 0)
        self._most = most

    def __len__(self) -> int:
        return sum([len(pieces) for *_, pieces in self._sections]) - self.omitted_count

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | Sequence[Place]:
        return self._places[index]

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._places == tuple(other)

    def __hash__(self) -> int:
        return hash(self._places)

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return tuple(islice(chain.from_iterable(starmap(_places_of, self._sections)), self._most))


def _places_of(start_addr: int, section: str, pieces: Sequence[Piece[Symbol | Residue]]) -> list[Place]:
    # By columns: there may be 100,000 of them.
    starts, ends, owners = zip(*pieces, strict=True)
    addrs = map(start_addr.__add__, starts)
    symbols = [owner.name if isinstance(owner, Symbol) else owner.label for owner in owners]
    return records(Place, zip(addrs, map(sub, ends, starts), repeat(section), symbols))


def _joined(runs: Iterable[tuple[PageState, int]]) -> tuple[tuple[PageState, int], ...]:
    """Join neighbours of one state."""
    states: list[tuple[PageState, int]] = []
    for state, count in runs:
        if count <= 0:
            continue
        if states and states[-1][0] is state:
            states[-1] = (state, states[-1][1] + count)
        else:
            states.append((state, count))
    return tuple(states)
