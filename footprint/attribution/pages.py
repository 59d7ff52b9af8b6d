"""Which section and symbol keeps which pages of an object private, and why those pages were written."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from footprint.attribution.layout import LoadedObject, Part
from footprint.elf import Contents, Image, Residue, SectionContents, Symbol
from footprint.model.row import MemoryKind
from footprint.process import PageRange
from footprint.ranges import Claim, Gap, Piece, partition

__all__ = ("PageNumbers", "Slice", "clip", "slices")


class Slice(NamedTuple):
    """What one owner has in a part of an object.

    Attributes:
        section: The section, or None where there is none.
        symbol: The linker name, or None where no symbol owns the bytes.
        name: What to show for it.
        kind: What the memory is for; None for what the part says.
        mapped_bytes: Its virtual size.
        private_bytes: How much of it lies in private pages.
        pages: The private pages that it lies in.
        sole_pages: Those of them in which nothing else has a name: they would be shared, or not there, without it.
        relocated_bytes: How much of it lies in private pages that relocations write at start.
    """

    section: str | None
    symbol: str | None
    name: str
    kind: MemoryKind | None
    mapped_bytes: int
    private_bytes: int
    pages: int
    sole_pages: int
    relocated_bytes: int


class PageNumbers(Container[int]):
    """Numbers of pages, ascending. Objects of one file that are loaded at several places share them, each shifted."""

    def __init__(self, numbers: Sequence[int], shift: int = 0) -> None:
        self._numbers = numbers
        self._shift = shift

    def __contains__(self, page: object) -> bool:
        return isinstance(page, int) and self.count(page, page + 1) > 0

    def count(self, first: int, past: int) -> int:
        """Count those from one number up to another."""
        numbers, shift = self._numbers, self._shift
        start = bisect_left(numbers, first - shift)
        return bisect_left(numbers, past - shift, start) - start


class _Span(NamedTuple):
    """Addresses of a part that lie in one section, with what it holds there as offsets from some address."""

    start_addr: int
    end_addr: int
    section: str | None
    kind: MemoryKind | None
    base_addr: int
    pieces: Sequence[Piece[Symbol | Residue] | Piece[str]]


def clip(ranges: Sequence[PageRange], start_addr: int, end_addr: int) -> list[PageRange]:
    """Give what of some ranges lies between two addresses."""
    return [
        PageRange(max(one.start_addr, start_addr), min(one.end_addr, end_addr), one.is_swapped)
        for one in ranges
        if one.start_addr < end_addr and start_addr < one.end_addr
    ]


def slices(
    part: Part,
    loaded: LoadedObject,
    contents: Contents,
    ranges: Sequence[PageRange],
    page_bytes: int,
    relocated_pages: Container[int],
    *,
    has_untouched: bool = False,
) -> list[Slice]:
    """Split a part of an object among its sections and symbols.

    The private bytes of the slices add up to the ranges, their mapped bytes to the part. What lies in no private page
    is one slice a section, or for variables one each.

    Args:
        part: The addresses.
        loaded: The object they belong to.
        contents: What its sections hold.
        ranges: The private pages among the addresses, ascending.
        page_bytes: The size of a page.
        relocated_pages: Numbers of the pages (addr divided by the page size) that relocations write.
        has_untouched: Whether variables that lie in no private page are told one by one.

    Raises:
        TypeError: Where those are neither a set nor `PageNumbers`.
    """
    if isinstance(relocated_pages, AbstractSet):
        relocated_pages = PageNumbers(sorted(relocated_pages))
    if not isinstance(relocated_pages, PageNumbers):
        raise TypeError("pages that cannot be counted but one by one may be too many")
    cut = _cut(_spans(part, loaded, contents), ranges, page_bytes)
    new = tuple.__new__  # makes a named tuple in half the time that its own constructor takes
    count = _Tally(_names_by_page(cut), page_bytes, relocated_pages).count
    found: list[Slice] = []
    untouched: dict[tuple[str | None, MemoryKind | None], int] = {}
    for symbol, name, section, kind, size_bytes, private_bytes, private, is_cut in cut:
        mapped_bytes = size_bytes
        if mapped_bytes != private_bytes and (symbol is None or not (private_bytes or is_cut or has_untouched)):
            # A variable keeps its whole size beside its private bytes, and where it goes on in a neighbouring mapping,
            # as it may be private there. Of all others the rest is of one kind.
            place = (section, kind)
            untouched[place] = untouched.get(place, 0) + mapped_bytes - private_bytes
            if not private_bytes:
                continue
            mapped_bytes = private_bytes
        pages, sole_pages, relocated_bytes = count(section, symbol, name, private)
        found.append(
            new(Slice, (section, symbol, name, kind, mapped_bytes, private_bytes, pages, sole_pages, relocated_bytes))
        )
    for (section, kind), mapped_bytes in untouched.items():
        found.append(Slice(section, None, "[not private]", kind, mapped_bytes, 0, 0, 0, 0))
    return found


# Ranges of addresses, each with the numbers of its first and last page.
_Runs = tuple[tuple[int, int, int, int], ...]
# The symbol of an owner, what to show for it, its section and kind, its bytes, the private ones of them, where those
# are, and whether it goes on in a neighbouring mapping. A plain tuple: a large library has ten thousand of them.
_Cut = tuple[str | None, str, str | None, MemoryKind | None, int, int, _Runs, bool]
_SectionOwner = tuple[str | None, SectionContents | str, MemoryKind | None]
_Sections = list[Claim[_SectionOwner]]
_SEVERAL: Final = ""
_BEYOND: Final = 1 << 64


class _Tally:
    """Counts the pages of the slices of a part, ascending; copies of one name in one page count it once.

    What is private may be as large as a text says: only the first and last page of a run are looked at.
    """

    def __init__(self, names_by_page: dict[int, str], page_bytes: int, relocated_pages: PageNumbers) -> None:
        self._names_by_page = names_by_page
        self._page_bytes = page_bytes
        self._relocated_pages = relocated_pages
        self._asked_page, self._answer = -1, False
        self._last_pages: dict[tuple[str | None, str], int] = {}

    def count(self, section: str | None, symbol: str | None, name: str, private: _Runs) -> tuple[int, int, int]:
        """Give the pages of one slice, those that it is alone in, and its bytes in those that relocations write."""
        page_bytes, key, last_pages = self._page_bytes, (section, name), self._last_pages
        last_page = last_pages.get(key, -1)
        pages = sole_pages = relocated_bytes = 0
        for first, past, page, final in private:
            if page != last_page:
                pages += 1
                if symbol is not None and self._names_by_page[page] == symbol:
                    sole_pages += 1
            if page == final:
                if self._answer if self._asked_page == page else self._is_relocated(page):
                    relocated_bytes += past - first
            else:
                # The pages between are this one's from end to end.
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
        """Tell whether relocations write a page; most slices lie in that of the one before."""
        if self._asked_page != page:
            self._asked_page, self._answer = page, page in self._relocated_pages
        return self._answer


def _cut(spans: Iterable[_Span], ranges: Sequence[PageRange], page_bytes: int) -> list[_Cut]:
    """Give each owner with what of it is private; both come ascending, so each is passed over once."""
    found: list[_Cut] = []
    place = 0
    first, past = _bounds(ranges, place)
    for start_addr, end_addr, section, kind, base_addr, pieces in spans:
        for low, high, owner in pieces:
            if isinstance(owner, Symbol):
                symbol = name = owner[0]
            else:
                symbol, name = None, owner.label if isinstance(owner, Residue) else owner
            start, end = base_addr + low, base_addr + high
            is_cut = start < start_addr or end_addr < end
            if is_cut:
                start, end = max(start, start_addr), min(end, end_addr)
            while past <= start:
                place += 1
                first, past = _bounds(ranges, place)
            size_bytes = end - start
            if first <= start and end <= past:
                runs: _Runs = ((start, end, start // page_bytes, (end - 1) // page_bytes),)
                found.append((symbol, name, section, kind, size_bytes, size_bytes, runs, is_cut))
                continue
            private = []
            at, begin, until = place, first, past
            while begin < end:
                private.append((max(start, begin), min(end, until)))
                at += 1
                begin, until = _bounds(ranges, at)
            private_bytes = sum([until - begin for begin, until in private])
            runs = tuple([(begin, until, begin // page_bytes, (until - 1) // page_bytes) for begin, until in private])
            found.append((symbol, name, section, kind, size_bytes, private_bytes, runs, is_cut))
    return found


def _bounds(ranges: Sequence[PageRange], place: int) -> tuple[int, int]:
    """Give the start and end of a range; behind the last one those of a range that nothing reaches."""
    return ranges[place][:2] if place < len(ranges) else (_BEYOND, _BEYOND)


def _names_by_page(cut: Iterable[_Cut]) -> dict[int, str]:
    """Give the one name of the variables in each private page, or that there are several.

    Pages in the midst of a variable are left out: nothing else lies in them.
    """
    names: dict[int, str] = {}
    for symbol, _, _, _, _, _, private, _ in cut:
        if symbol is not None:
            for _, _, page, final in private:
                if names.setdefault(page, symbol) != symbol:
                    names[page] = _SEVERAL
                if final != page and names.setdefault(final, symbol) != symbol:
                    names[final] = _SEVERAL
    return names


def _spans(part: Part, loaded: LoadedObject, contents: Contents) -> Iterator[_Span]:
    """Cut a part among the sections, and give what each of them holds."""
    bias_addr = loaded.bias_addr
    start, end = part.start_addr - bias_addr, part.end_addr - bias_addr
    for span in partition(start, end, _sections_between(start, end, contents, loaded.image), _between_sections).pieces:
        section, owner, kind = span.owner
        if isinstance(owner, SectionContents):
            base, pieces = owner.section.vaddr, owner.ranges.pieces
            first = bisect_right(pieces, span.start - base, key=_end_of)
            past = bisect_left(pieces, span.end - base, first, key=_start_of)
            held: Sequence[Piece[Symbol | Residue] | Piece[str]] = pieces[first:past]
        else:
            base, held = span.start, [Piece(0, span.end - span.start, owner)]
        yield _Span(span.start + bias_addr, span.end + bias_addr, section, kind, base + bias_addr, held)


def _end_of(piece: Piece[Symbol | Residue] | Claim[_SectionOwner]) -> int:
    return piece.end


def _start_of(piece: Piece[Symbol | Residue] | Claim[_SectionOwner]) -> int:
    return piece.start


# What a file says is worked out once for all its mappings, and forgotten with the file.
_KNOWN_SECTIONS: Final[WeakKeyDictionary[Image, tuple[Contents, _Sections]]] = WeakKeyDictionary()


def _sections_between(start: int, end: int, contents: Contents, image: Image | None) -> _Sections:
    """Give the sections that own something between two vaddrs, clipped to them; they share nothing."""
    known = _KNOWN_SECTIONS.get(image) if image else None
    if known is None or known[0] is not contents:
        known = contents, _disjoint_sections(_section_claims(contents, image))
        if image:
            _KNOWN_SECTIONS[image] = known
    sections = known[1]
    first = bisect_right(sections, start, key=_end_of)
    past = bisect_left(sections, end, first, key=_start_of)
    return [Claim(max(one.start, start), min(one.end, end), one.owner) for one in sections[first:past]]


def _disjoint_sections(claims: _Sections) -> _Sections:
    """Let the stronger of the claims that overlap win, wherever a part will begin."""
    if not claims:
        return []
    start, end = min(claim.start for claim in claims), max(claim.end for claim in claims)
    nobody: _SectionOwner = (None, "", None)
    pieces = partition(start, end, claims, lambda gap: [Piece(gap.start, gap.end, nobody)]).pieces
    return [Claim(piece.start, piece.end, piece.owner) for piece in pieces if piece.owner is not nobody]


def _section_claims(contents: Contents, image: Image | None) -> _Sections:
    """Give the addresses of the sections: of the writable ones with what they hold, of the others as a whole."""
    claims: list[Claim[_SectionOwner]] = []
    read: set[int] = set()
    for one in contents.sections:
        section = one.section
        read.add(section.index)
        # .tbss has no addresses of its own: those it claims are those of what follows it.
        if section.has_file_bytes or not section.is_tls:
            owner: _SectionOwner = (section.name, one, MemoryKind(one.kind.value))
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
