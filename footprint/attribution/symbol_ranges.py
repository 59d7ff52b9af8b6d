"""The range of an object cut among its sections and symbols, and the pages that each of them keeps private."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, islice, repeat
from operator import is_, is_not, itemgetter, le, sub
from typing import Any, Final
from weakref import WeakKeyDictionary

from footprint.attribution.owned_range import OwnedRange
from footprint.elf.contents import Contents, Residue, SectionContents
from footprint.elf.image import Image
from footprint.elf.symbols import Symbol
from footprint.members import records
from footprint.model.row import Evidence, MemoryKind, Row
from footprint.process.pages import PageRange
from footprint.ranges import Claim, Gap, Piece, partition

NOT_PRIVATE: Final = "[not private]"
"""The name of what lies in no private page."""

_NAME: Final = itemgetter(Symbol._fields.index("name"))
_Addrs = Sequence[tuple[int, int]]


class PageNumbers:
    """Numbers of pages, ascending. A file that is loaded at several places needs them once, with a shift for each."""

    def __init__(self, numbers: Sequence[int], shift: int = 0) -> None:
        self._numbers = numbers
        self._shift = shift

    def __contains__(self, page: int) -> bool:
        return self.count(page, page + 1) > 0

    def count(self, first: int, past: int) -> int:
        """Count the numbers from `first` on and below `past`."""
        numbers, shift = self._numbers, self._shift
        start = bisect_left(numbers, first - shift)
        return bisect_left(numbers, past - shift, start) - start


# --- rows -------------------------------------------------------------------------------------------------------------


def symbol_rows(
    whole: OwnedRange,
    contents: Contents,
    private: Sequence[PageRange],
    page_bytes: int,
    relocated_pages: PageNumbers,
    evidence: Evidence,
    *,
    has_untouched: bool = False,
) -> list[Row]:
    """Return the rows of the sections and symbols in a range of an object.

    The private bytes of the rows add up to `private`, their mapped bytes to the range. Of each section, all that is not
    private is one row, but a variable keeps its whole size together with its private bytes. Variables without a private
    page have rows of their own where `has_untouched`.
    """
    collected = _SymbolRows(whole, private, _PageCounter(page_bytes, relocated_pages), evidence, has_untouched)
    for span in _section_ranges(whole, contents):
        collected.add(span)
    return collected.rows()


class _SymbolRows:
    """Collects the rows of a range: its sections, their pieces and the private pages come in ascending order."""

    def __init__(
        self,
        whole: OwnedRange,
        private: Sequence[PageRange],
        counter: "_PageCounter",
        evidence: Evidence,
        has_untouched: bool,  # noqa: FBT001 # private
    ) -> None:
        self._owner = whole.owner
        self._kind = whole.kind
        self._private = private
        self._place = 0
        self._counter = counter
        self._facts = whole.mapping.is_mapped_writable, evidence, whole.attribution
        self._has_untouched = has_untouched
        self._rows: list[tuple[Any, ...]] = []
        self._untouched: dict[tuple[str | None, MemoryKind], int] = {}

    def add(self, span: "_SectionRange") -> None:
        """Add a row for each variable of a section, and one for all its nameless pieces of the same cause."""
        start_addr, end_addr, section, kind, base_addr, bounds, owners = span
        rows, private, place, count = self._rows, self._private, self._place, self._counter.count
        head, facts, has_untouched = (self._owner, kind or self._kind, section), self._facts, self._has_untouched
        last_pages, causes, page_bytes = self._counter.last_pages(section), _Causes(), self._counter.page_bytes
        first, past = _bounds(private, place)
        untouched_bytes = index = 0
        while index < len(owners):
            owner, start, end = owners[index], base_addr + bounds[index], base_addr + bounds[index + 1]
            index += 1
            is_cut = start < start_addr or end_addr < end
            if is_cut:
                start, end = max(start, start_addr), min(end, end_addr)
            # Each private range is passed over once.
            while past <= start:
                place += 1
                first, past = _bounds(private, place)
            symbol = owner.name if isinstance(owner, Symbol) else None
            # A variable that continues in a neighbouring mapping may be private there, so it has a row.
            if first >= end and not has_untouched and not (is_cut and symbol is not None):
                index = _behind_untouched(bounds, owners, index, first - base_addr, end_addr - base_addr)
                untouched_bytes += min(base_addr + bounds[index], end_addr) - start
                continue
            page_end = (start // page_bytes + 1) * page_bytes
            is_private = first <= start and not is_cut
            past_index = bisect_right(bounds, min(page_end, past, end_addr) - base_addr, index) - 1 if is_private else 0
            if past_index > index:
                piece_bounds, piece_owners = bounds[index - 1 : past_index + 1], owners[index - 1 : past_index]
                self._add_page(start // page_bytes, head, piece_bounds, piece_owners, causes)
                index = past_index
                continue
            name = symbol if symbol is not None else causes.label(owner)  # type: ignore[arg-type] # no symbol
            runs = _private_addrs(private, place, start, end)
            counts = [count(last_pages, name, symbol, len(rows), *run) for run in runs]
            private_bytes = sum([run_end - run_start for run_start, run_end in runs])
            pages, relocated_bytes = map(sum, zip(*counts, strict=True)) if counts else (0, 0)
            if symbol is None:
                untouched_bytes += end - start - private_bytes
                if private_bytes and causes.add(name, len(rows), private_bytes, pages, relocated_bytes):
                    rows.append(())
            else:
                rows.append((*head, symbol, symbol, private_bytes, end - start, 0, pages, 0, relocated_bytes, *facts))
        self._place = place
        for name, (number, size_bytes, *others) in causes.sums.items():
            rows[number] = (*head, None, name, size_bytes, size_bytes, 0, *others, *facts)
        if untouched_bytes:
            self._untouched[head[2], head[1]] = self._untouched.get((head[2], head[1]), 0) + untouched_bytes

    def _add_page(
        self, page: int, head: tuple[Any, ...], bounds: Sequence[int], owners: "_Owners", causes: "_Causes"
    ) -> None:
        """Add the pieces that lie in one private page."""
        last_pages, is_relocated = self._counter.last_pages(head[2]), self._counter.is_relocated(page)
        sizes = list(map(sub, islice(bounds, 1, None), bounds))
        first = 0
        for place in compress(range(len(owners)), map(is_not, map(type, owners), repeat(Symbol))):
            label = causes.label(owners[place])  # type: ignore[arg-type] # no symbol
            if label not in causes.sums:
                # Its row stands behind those of the variables before it.
                self._add_variables(page, head, owners[first:place], sizes[first:place])
                first = place
            size_bytes, pages = sizes[place], 1 if last_pages.get(label) != page else 0
            last_pages[label] = page
            if causes.add(label, len(self._rows), size_bytes, pages, size_bytes if is_relocated else 0):
                self._rows.append(())
        self._add_variables(page, head, owners[first:], sizes[first:])

    def _add_variables(self, page: int, head: tuple[Any, ...], owners: "_Owners", sizes: Sequence[int]) -> None:
        """Add the variables among the pieces of a private page by columns: each takes a quarter of the time so."""
        is_symbol = list(map(is_, map(type, owners), repeat(Symbol)))
        names, size_bytes = list(map(_NAME, compress(owners, is_symbol))), list(compress(sizes, is_symbol))
        last_pages, counter, pages = self._counter.last_pages(head[2]), self._counter, []
        for name in names:
            pages.append(1 if last_pages.get(name) != page else 0)
            last_pages[name] = page
        # These have different names: after the second one, the page has no sole variable.
        for number, name in islice(compress(enumerate(names, len(self._rows)), pages), 2):
            counter.claim(page, name, number)
        relocated = size_bytes if counter.is_relocated(page) else repeat(0)
        same, facts = map(repeat, head), map(repeat, self._facts)
        self._rows += zip(*same, names, names, size_bytes, size_bytes, repeat(0), pages, repeat(0), relocated, *facts)

    def rows(self) -> list[Row]:
        """Return the rows."""
        for (section, kind), mapped_bytes in self._untouched.items():
            sizes = 0, mapped_bytes, 0, 0, 0, 0
            self._rows.append((self._owner, kind, section, None, NOT_PRIVATE, *sizes, *self._facts))
        for number, sole_pages in self._counter.sole_pages().items():
            row = self._rows[number]
            self._rows[number] = (*row[:9], sole_pages, *row[10:])
        return records(Row, self._rows)


class _Causes:
    """The pieces of a section that have no name, added up by their cause.

    `sums` has the number of the row, then bytes, pages, sole pages and relocated bytes.
    """

    def __init__(self) -> None:
        self.sums: dict[str, list[int]] = {}
        self._labels: dict[int, str] = {}

    def label(self, owner: Residue | str) -> str:
        """Return the text for a cause; most pieces have the same few objects."""
        if isinstance(owner, str):
            return owner
        label = self._labels.get(id(owner))
        if label is None:
            label = self._labels[id(owner)] = owner.label
        return label

    def add(self, label: str, number: int, private_bytes: int, pages: int, relocated_bytes: int) -> bool:
        """Add the private part of a piece; return whether its cause is a new one, whose row has this number."""
        sums = self.sums.get(label)
        if sums is None:
            self.sums[label] = [number, private_bytes, pages, 0, relocated_bytes]
            return True
        sums[1] += private_bytes
        sums[2] += pages
        sums[4] += relocated_bytes
        return False


class _PageCounter:
    """Counts the pages of ranges that come in ascending order; ranges of one name that share a page count it once.

    A text may claim any amount of private memory, so only the first and the last page of a run of addresses are looked
    at one by one.
    """

    def __init__(self, page_bytes: int, relocated_pages: PageNumbers) -> None:
        self.page_bytes = page_bytes
        self._relocated_pages = relocated_pages
        self._asked_page, self._answer = -1, False
        self._last_pages: dict[str | None, dict[str, int]] = {}
        # The only variable in a page so far, and the numbers of its rows.
        self._page = -1
        self._name: str | None = None
        self._numbers: list[int] = []
        self._sole_pages: dict[int, int] = {}

    def last_pages(self, section: str | None) -> dict[str, int]:
        """Return the last page of each name in a section."""
        return self._last_pages.setdefault(section, {})

    def count(
        self, last_pages: dict[str, int], name: str, symbol: str | None, number: int, first: int, past: int
    ) -> tuple[int, int]:
        """Return the pages of private addresses that no range of the name has before, and the bytes in relocated pages.

        `number` is that of the row, where `symbol` is the name of a variable.
        """
        page_bytes = self.page_bytes
        page, final = first // page_bytes, (past - 1) // page_bytes
        pages = 0
        if last_pages.get(name) != page:
            pages = 1
            if symbol is not None:
                self.claim(page, symbol, number)
        last_pages[name] = final
        if page == final:
            is_relocated = self._answer if self._asked_page == page else self.is_relocated(page)
            return pages, past - first if is_relocated else 0
        # Nothing else lies in the pages between.
        between = final - page - 1
        if symbol is not None:
            self._sole_pages[number] = self._sole_pages.get(number, 0) + between
            self.claim(final, symbol, number)
        relocated_bytes = self._relocated_pages.count(page + 1, final) * page_bytes
        if self.is_relocated(page):
            relocated_bytes += (page + 1) * page_bytes - first
        if self.is_relocated(final):
            relocated_bytes += past - final * page_bytes
        return pages + between + 1, relocated_bytes

    def sole_pages(self) -> dict[int, int]:
        """Return the number of pages in which no other variable lies, by the number of the row."""
        self.claim(-1, "", 0)
        return self._sole_pages

    def claim(self, page: int, symbol: str, number: int) -> None:
        """Note that a variable lies in a page."""
        if page != self._page:
            for sole_number in self._numbers:
                self._sole_pages[sole_number] = self._sole_pages.get(sole_number, 0) + 1
            self._page, self._name, self._numbers = page, symbol, [number]
        elif self._name == symbol:
            self._numbers.append(number)
        else:
            self._name = None
            self._numbers.clear()

    def is_relocated(self, page: int) -> bool:
        """Return whether relocations write a page; most ranges lie in the page of the range before."""
        if self._asked_page != page:
            self._asked_page, self._answer = page, page in self._relocated_pages
        return self._answer


# --- ranges -----------------------------------------------------------------------------------------------------------

_SectionOwner = tuple[str | None, SectionContents | str, MemoryKind | None]
_Sections = list[Claim[_SectionOwner]]
_BEYOND: Final = 1 << 64


def _behind_untouched(bounds: Sequence[int], owners: "_Owners", index: int, private_start: int, end: int) -> int:
    """Return the index of the first piece from `index` on that reaches a private page, or is a symbol cut at `end`."""
    behind = bisect_right(bounds, private_start, index + 1) - 1
    is_cut = bounds[behind] > end and isinstance(owners[behind - 1], Symbol)
    return behind - 1 if behind > index and is_cut else behind


def _private_addrs(private: Sequence[PageRange], place: int, start: int, end: int) -> _Addrs:
    """Return the private addresses between two addresses; the page range at `place` is the first behind the start."""
    addrs = []
    first, past = _bounds(private, place)
    while first < end:
        addrs.append((max(start, first), min(end, past)))
        place += 1
        first, past = _bounds(private, place)
    return addrs


def _bounds(private: Sequence[PageRange], place: int) -> tuple[int, int]:
    """Return the start and end of a page range; behind the last one those of a range that nothing reaches."""
    return private[place][:2] if place < len(private) else (_BEYOND, _BEYOND)


_Owners = Sequence[Symbol | Residue] | Sequence[str]
_SectionRange = tuple[int, int, str | None, MemoryKind | None, int, Sequence[int], _Owners]
"""The part of a section in a range: its first address and the one behind its last, its name, its kind where it has
one of its own, its base address, and its pieces in columns: where each begins, as offsets from that, and its owner."""


def _section_ranges(whole: OwnedRange, contents: Contents) -> Iterator[_SectionRange]:
    """Cut a range among the sections."""
    loaded = whole.loaded
    bias_addr, image = (loaded.bias_addr, loaded.image) if loaded else (0, None)
    start, end = whole.start_addr - bias_addr, whole.end_addr - bias_addr
    for first, past, (section, owner, kind) in partition(
        start, end, _sections_between(start, end, contents, image), _between_sections
    ).pieces:
        if isinstance(owner, SectionContents):
            base = owner.section.vaddr
            pieces = owner.ranges.pieces.between(first - base, past - base)
            bounds, owners = pieces.bounds, pieces.owners
        else:
            base, bounds, owners = first, (0, past - first), (owner,)
        yield first + bias_addr, past + bias_addr, section, kind, base + bias_addr, bounds, owners


def _end_of(piece: Claim[_SectionOwner]) -> int:
    return piece.end


def _start_of(piece: Claim[_SectionOwner]) -> int:
    return piece.start


# The sections of a file, computed once for all its mappings, and dropped with the file.
_KNOWN_SECTIONS: Final[WeakKeyDictionary[Image, tuple[Contents, _Sections]]] = WeakKeyDictionary()


def _sections_between(start: int, end: int, contents: Contents, image: Image | None) -> _Sections:
    """Return the sections that own something between two vaddrs, clipped to these and without overlap."""
    sections_read = _KNOWN_SECTIONS.get(image) if image else None
    if sections_read is None or sections_read[0] is not contents:
        sections_read = contents, _disjoint_sections(_section_claims(contents, image))
        if image:
            _KNOWN_SECTIONS[image] = sections_read
    sections = sections_read[1]
    first = bisect_right(sections, start, key=_end_of)
    past = bisect_left(sections, end, first, key=_start_of)
    return [Claim(max(section.start, start), min(section.end, end), section.owner) for section in sections[first:past]]


def _disjoint_sections(claims: _Sections) -> _Sections:
    """Resolve overlaps: the stronger claim wins, whatever range is asked for later."""
    claims = sorted([claim for claim in claims if claim.start < claim.end], key=_start_of)
    # They seldom overlap.
    if all(map(le, map(_end_of, claims), map(_start_of, islice(claims, 1, None)))):
        return claims
    start, end = claims[0].start, max(claim.end for claim in claims)
    nobody: _SectionOwner = (None, "", None)
    pieces = partition(start, end, claims, lambda gap: [Piece(gap.start, gap.end, nobody)]).pieces
    return [Claim(piece.start, piece.end, piece.owner) for piece in pieces if piece.owner is not nobody]


def _section_claims(contents: Contents, image: Image | None) -> _Sections:
    """Return the addresses of the sections: the writable ones with their symbols, the others as a whole."""
    claims: list[Claim[_SectionOwner]] = []
    read: set[int] = set()
    for contents_of in contents.sections:
        section = contents_of.section
        read.add(section.index)
        # .tbss has no addresses of its own: the section behind it has the same.
        if section.has_file_bytes or not section.is_tls:
            owner: _SectionOwner = (section.name, contents_of, MemoryKind(contents_of.kind.value))
            claims.append(Claim(section.vaddr, section.vaddr + section.size_bytes, owner))
    for section in image.sections if image else ():
        if section.is_in_memory and section.index not in read and not section.is_tls:
            owner = (section.name, "[read-only section in a private page]", None)
            claims.append(Claim(section.vaddr, section.vaddr + section.size_bytes, owner, rank=1))
    return claims


def _between_sections(gap: Gap[_SectionOwner]) -> list[Piece[_SectionOwner]]:
    if gap.after is None:
        owner: _SectionOwner = (gap.before[0] if gap.before else None, "[rest of the last page]", None)
    elif gap.before is None:
        owner = (gap.after[0], "[page shared with the section before]", None)
    else:
        owner = (gap.before[0], "[padding between sections]", gap.before[2])
    return [Piece(gap.start, gap.end, owner)]
