"""The range of an object cut among its sections and symbols, and the pages that each of them keeps private."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
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
    ranges = symbol_ranges(whole, contents, private, has_untouched=has_untouched)
    count = _PageCounter(_names_by_page(ranges, page_bytes), page_bytes, relocated_pages).count
    owner, facts = whole.owner, (whole.mapping.is_mapped_writable, evidence, whole.attribution)
    rows: list[tuple[object, ...]] = []
    untouched: dict[tuple[str | None, MemoryKind], int] = {}
    for _, start_addr, end_addr, _, kind, _, _, section, symbol, name, addrs, is_cut in ranges:
        mapped_bytes = end_addr - start_addr
        private_bytes = addrs[0][1] - addrs[0][0] if len(addrs) == 1 else sum([past - first for first, past in addrs])
        if mapped_bytes != private_bytes and (symbol is None or not (private_bytes or is_cut or has_untouched)):
            # A variable that continues in a neighbouring mapping may be private there, so it has a row.
            place = (section, kind)
            untouched[place] = untouched.get(place, 0) + mapped_bytes - private_bytes
            if not private_bytes:
                continue
            mapped_bytes = private_bytes
        counts = count(section, symbol, name, addrs)
        rows.append((owner, kind, section, symbol, name, private_bytes, mapped_bytes, 0, *counts, *facts))
    for (section, kind), mapped_bytes in untouched.items():
        rows.append((owner, kind, section, None, NOT_PRIVATE, 0, mapped_bytes, 0, 0, 0, 0, *facts))
    return records(Row, rows)


_SEVERAL: Final = ""


class _PageCounter:
    """Counts the pages of ranges that come in ascending order; ranges of one name that share a page count it once.

    A text may claim any amount of private memory, so only the first and the last page of a run of addresses are looked
    at one by one.
    """

    def __init__(self, names_by_page: dict[int, str], page_bytes: int, relocated_pages: PageNumbers) -> None:
        self._names_by_page = names_by_page
        self._page_bytes = page_bytes
        self._relocated_pages = relocated_pages
        self._asked_page, self._answer = -1, False
        self._last_pages: dict[tuple[str | None, str | None], int] = {}

    def count(self, section: str | None, symbol: str | None, name: str | None, private: _Addrs) -> tuple[int, int, int]:
        """Return the pages of a range, those of them without another name, and the bytes in relocated pages."""
        page_bytes, key, last_pages = self._page_bytes, (section, name), self._last_pages
        last_page = last_pages.get(key, -1)
        pages = sole_pages = relocated_bytes = 0
        for first, past in private:
            page, final = first // page_bytes, (past - 1) // page_bytes
            if page != last_page:
                pages += 1
                if symbol is not None and self._names_by_page[page] == symbol:
                    sole_pages += 1
            if page == final:
                if self._answer if self._asked_page == page else self._is_relocated(page):
                    relocated_bytes += past - first
            else:
                # Nothing else lies in the pages between.
                between = final - page - 1
                pages += between + 1
                if symbol is not None:
                    sole_pages += between + (self._names_by_page[final] == symbol)
                relocated_bytes += self._relocated_pages.count(page + 1, final) * page_bytes
                if self._is_relocated(page):
                    relocated_bytes += (page + 1) * page_bytes - first
                if self._is_relocated(final):
                    relocated_bytes += past - final * page_bytes
            last_page = final
        last_pages[key] = last_page
        return pages, sole_pages, relocated_bytes

    def _is_relocated(self, page: int) -> bool:
        """Return whether relocations write a page; most ranges lie in the page of the range before."""
        if self._asked_page != page:
            self._asked_page, self._answer = page, page in self._relocated_pages
        return self._answer


def _names_by_page(ranges: Iterable[OwnedRange], page_bytes: int) -> dict[int, str]:
    """Return the one name of the variables in each private page, or `_SEVERAL`.

    Pages in the middle of a variable are left out: nothing else lies in them.
    """
    names: dict[int, str] = {}
    for _, _, _, _, _, _, _, _, symbol, _, private, _ in ranges:
        if symbol is not None:
            for first, past in private:
                page, final = first // page_bytes, (past - 1) // page_bytes
                if names.setdefault(page, symbol) != symbol:
                    names[page] = _SEVERAL
                if final != page and names.setdefault(final, symbol) != symbol:
                    names[final] = _SEVERAL
    return names


# --- ranges -----------------------------------------------------------------------------------------------------------

_SectionOwner = tuple[str | None, SectionContents | str, MemoryKind | None]
_Sections = list[Claim[_SectionOwner]]
_BEYOND: Final = 1 << 64


def symbol_ranges(
    whole: OwnedRange, contents: Contents, private: Sequence[PageRange], *, has_untouched: bool = False
) -> list[OwnedRange]:
    """Cut the range of an object among its sections and symbols; the ranges cover it exactly, in ascending order.

    Neighbours without a private page are one range of their section, unless `has_untouched`.
    """
    mapping, _, _, owner, own_kind, attribution, loaded, *_ = whole
    ranges: list[tuple[object, ...]] = []
    place = 0
    first, past = _bounds(private, place)
    for start_addr, end_addr, section, section_kind, base_addr, pieces in _section_ranges(whole, contents):
        kind = section_kind or own_kind
        index, count = 0, len(pieces)
        while index < count:
            low, high, what = pieces[index]
            index += 1
            start, end = base_addr + low, base_addr + high
            is_cut = start < start_addr or end_addr < end
            if is_cut:
                start, end = max(start, start_addr), min(end, end_addr)
            # Both symbols and private pages ascend, so each is passed over once.
            while past <= start:
                place += 1
                first, past = _bounds(private, place)
            if isinstance(what, Symbol):
                symbol: str | None = what[0]
                name = what[0]
            else:
                symbol, name = None, what.label if isinstance(what, Residue) else what
            addrs: _Addrs = ()
            if first <= start and end <= past:
                addrs = ((start, end),)
            elif first < end:
                addrs = _private_addrs(private, place, start, end)
            elif not has_untouched and not (is_cut and symbol is not None):
                index = _behind_untouched(pieces, index, first - base_addr, end_addr - base_addr)
                name, symbol, end = NOT_PRIVATE, None, min(base_addr + pieces[index - 1].end, end_addr)
            ranges.append((mapping, start, end, owner, kind, attribution, loaded, section, symbol, name, addrs, is_cut))
    return records(OwnedRange, ranges)


def _behind_untouched(pieces: "_Pieces", index: int, private_start: int, end: int) -> int:
    """Return the index of the first piece from `index` on that reaches a private page, or is a symbol cut at `end`."""
    behind = bisect_right(pieces, private_start, index, key=_end_of)
    last = pieces[behind - 1]
    return behind - 1 if behind > index and last.end > end and isinstance(last.owner, Symbol) else behind


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


_Pieces = Sequence[Piece[Symbol | Residue] | Piece[str]]


def _section_ranges(
    whole: OwnedRange, contents: Contents
) -> Iterator[tuple[int, int, str | None, MemoryKind | None, int, _Pieces]]:
    """Cut a range among the sections.

    Returns:
        Of each section: its first address in the range and the one behind its last, its name, its kind where it has one
        of its own, its base address, and what it holds as offsets from that.
    """
    loaded = whole.loaded
    bias_addr, image = (loaded.bias_addr, loaded.image) if loaded else (0, None)
    start, end = whole.start_addr - bias_addr, whole.end_addr - bias_addr
    for first, past, (section, owner, kind) in partition(
        start, end, _sections_between(start, end, contents, image), _between_sections
    ).pieces:
        if isinstance(owner, SectionContents):
            base = owner.section.vaddr
            pieces: _Pieces = owner.ranges.pieces.between(first - base, past - base)
        else:
            base, pieces = first, [Piece(0, past - first, owner)]
        yield first + bias_addr, past + bias_addr, section, kind, base + bias_addr, pieces


def _end_of(piece: Piece[Symbol | Residue] | Piece[str] | Claim[_SectionOwner]) -> int:
    return piece.end


def _start_of(piece: Piece[Symbol | Residue] | Claim[_SectionOwner]) -> int:
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
    # In order, they seldom overlap.
    claims = sorted([claim for claim in claims if claim.start < claim.end], key=_start_of)
    if not claims:
        return []
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
