"""The ledger: every byte of a process in one row, whose sums are what the kernel counts.

The way of a byte is mapping -> range -> row. A mapping is cut into ranges with one owner each, by claims in this order:

1. The program headers of the objects, or the kernel's name for the mapping (`footprint.attribution.layout`).
2. The sections of the object that owns the range, then the symbols in each section
   (`footprint.attribution.symbol_ranges`).
3. What nothing claims has a name of its own that says why: `[padding between sections]`, `[not private]`.

The ranges of one owner, section and symbol become one row (`footprint.attribution.accounts`).
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from footprint.attribution.accounts import KnownSums
from footprint.attribution.kernel import KernelCost
from footprint.attribution.memory_files import ChargedFile, unmapped_rows
from footprint.attribution.owned_range import (
    CountsByKind,
    LoadedObject,
    MappingCounts,
    OwnedRange,
    by_mapping,
    clip,
    private_pages,
)
from footprint.attribution.symbol_ranges import PageNumbers, symbol_rows
from footprint.elf.contents import Contents
from footprint.elf.image import Image
from footprint.members import NamedTuple
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, weakest
from footprint.process.pages import PageRange, ranges_bytes

if TYPE_CHECKING:
    from footprint.attribution.live_ranges import HeapRanges


# Structures in the memory of the process divide such a range, whatever its mapping is.
_BY_STRUCTURES: Final = frozenset({Attribution.ALLOCATOR, Attribution.THREAD_VECTOR})


class Files(Protocol):
    """What the ledger asks of the files of a process."""

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        """Return what the writable sections of an object hold, or None where that cannot be read."""

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:
        """Return the numbers of the pages (addr divided by the page size) that relocations of an object write."""


def ledger_rows(  # noqa: PLR0913 # keyword-only
    ranges: Sequence[OwnedRange],
    counts: Sequence[MappingCounts],
    pages: Dict[int, Sequence[PageRange]] | None,
    files: Files | None,
    page_bytes: int,
    kernel: Iterable[KernelCost],
    *,
    has_untouched: bool = False,
    cache: "KnownRows | None" = None,
    heap: "HeapRanges | None" = None,
    charges: Iterable[ChargedFile] = (),
) -> tuple[Row, ...]:
    """Return the rows of a process, the largest first.

    Args:
        ranges: The ranges of all mappings, ascending, each with the object that owns it.
        counts: What the kernel counts in each mapping, in the same order.
        pages: The private pages of each mapping, by its start address; the counts decide for mappings without entry.
        files: The files of objects, read only where their symbols are needed; None for rows without symbols.
        page_bytes: The size of a page.
        kernel: What the kernel spends on the process: rows of the kind `kernel`.
        has_untouched: Whether variables without a private page have rows of their own.
        cache: The rows of ranges of other processes with the same `files`; those of this process are added.
        heap: Which addresses of the heap are free, where the allocator says so.
        charges: The files in memory: those that are open and not mapped have rows of their own.
    """
    mappings = list(by_mapping(ranges, counts))
    # Only the variables of objects that have private memory are worth rows of their own.
    touched = {p.loaded for some, counted in mappings if counted.private_bytes for p in some if p.loaded}
    cache = KnownRows() if cache is None else cache
    symbols = _Symbols(files, page_bytes, touched, has_untouched, cache.of_ranges, heap)
    parts, alike = _Parts([], []), _AlikeMappings()
    for within, counted in mappings:
        if len(within) == 1 and _image_of(within[0]) is None and within[0].attribution not in _BY_STRUCTURES:
            alike.add(within[0], counted)
        else:
            _add_mapping(parts, within, counted, pages, symbols)
    return cache.sums.add_up(
        parts.shared, chain(parts.sole, alike.rows(page_bytes), unmapped_rows(charges), map(kernel_row, kernel))
    )


class KnownRows:
    """The rows of the ranges of objects, by all that they depend on; and their sums in processes that are alike.

    Attributes:
        counts: What the kernel counts in their mappings.
    """

    def __init__(self) -> None:
        self.counts: CountsByKind = {}
        self.of_ranges: dict[Hashable, tuple[Image, list[Row]]] = {}
        self.sums = KnownSums()


class _Parts(NamedTuple):
    """The rows of a process: lists that other processes may have, too, and its own."""

    shared: list[list[Row]]
    sole: list[Row]


class _Symbols(NamedTuple):
    """What is needed to cut the ranges of objects among their sections and symbols."""

    files: Files | None
    page_bytes: int
    touched: Container[LoadedObject]
    has_untouched: bool
    row_cache: dict[Hashable, tuple[Image, list[Row]]]
    heap: "HeapRanges | None"


def _image_of(part: OwnedRange) -> Image | None:
    """Return the image whose sections a range is cut among; None where no ELF file owns it."""
    return None if part.loaded is None or part.kind is MemoryKind.SHARED else part.loaded.image


def _add_mapping(
    parts: _Parts,
    ranges: Sequence[OwnedRange],
    counts: MappingCounts,
    pages: Dict[int, Sequence[PageRange]] | None,
    symbols: _Symbols,
) -> None:
    """Add the rows of one mapping."""
    for part, counted, private in owned_parts(ranges, counts, pages):
        _add_range(parts, part, counted, private, symbols)


class OwnedPart(NamedTuple):
    """What one owner holds in a range of a mapping.

    Attributes:
        range: The range.
        counts: What the kernel counts in it.
        private: Its private pages; None where nothing says which of its pages these are.
    """

    range: OwnedRange
    counts: MappingCounts
    private: Sequence[PageRange] | None


def owned_parts(
    ranges: Sequence[OwnedRange], counts: MappingCounts, pages: Dict[int, Sequence[PageRange]] | None
) -> Iterator[OwnedPart]:
    """Divide what the kernel counts in a mapping among the ranges of the mapping."""
    private = private_pages(ranges[0].mapping, counts, pages)
    if not pages and counts.private_bytes == 0:
        # Without page bits, ranges in which nothing is private are not cut.
        private = None
    if private is None and len(ranges) > 1 and counts.private_bytes:
        yield OwnedPart(_merged(ranges), counts, None)
        return
    if counts.swap_share_bytes and private is not None:
        first, name = ranges[0], "[share of swapped pages that others have, too]"
        place = first._replace(end_addr=first.start_addr, loaded=None, attribution=Attribution.NAME, name=name)
        yield OwnedPart(place, counts._replace(private_bytes=counts.swap_share_bytes, shared_bytes=0), None)
    # Only the first range of a mapping has pages of a file: the others are memory without a file.
    shared_bytes = counts.shared_bytes
    for span in ranges:
        inside = None if private is None else clip(private, span.start_addr, span.end_addr)
        private_bytes = counts.private_bytes if inside is None else ranges_bytes(inside)
        # Most mappings have one range, which has all.
        is_whole = private_bytes == counts.private_bytes and shared_bytes == counts.shared_bytes
        of_range = counts if is_whole else counts._replace(private_bytes=private_bytes, shared_bytes=shared_bytes)
        yield OwnedPart(span, of_range, inside)
        shared_bytes = None if shared_bytes is None else 0


def _add_range(
    parts: _Parts, part: OwnedRange, counts: MappingCounts, private: Sequence[PageRange] | None, symbols: _Symbols
) -> None:
    """Add the rows of one range: one for each symbol where its private pages and the object's symbols are known."""
    loaded, image, page_bytes = part.loaded, _image_of(part), symbols.page_bytes
    if part.attribution is Attribution.THREAD_VECTOR and image is not None and private is not None:
        parts.shared.append(_thread_rows(part, image, counts, private, symbols))
        return
    if part.attribution is Attribution.ALLOCATOR and symbols.heap is not None and private is not None:
        parts.sole.extend(symbols.heap.rows(part, private, _row(part, counts, page_bytes)))
        return
    if loaded is None or image is None:
        parts.sole.append(_row(part, counts, page_bytes, name=part.name))
        return
    is_text = part.kind is MemoryKind.TEXT
    has_symbols = private is not None and bool(private or (loaded in symbols.touched and not is_text))
    key = page_bytes, _range_key(part, loaded, image, counts, private, has_symbols=has_symbols)
    kept = symbols.row_cache.get(key)
    if kept is None:
        # The image is kept with its rows: as long as it exists, no other image has its number.
        kept = symbols.row_cache[key] = (
            image,
            _object_rows(part, loaded, image, counts, private, symbols, has_symbols),
        )
    rows = kept[1]
    # Processes of one program have different pages of its text: by one row each they would all be of different kinds.
    if len(rows) == 1:
        parts.sole.extend(rows)
    else:
        parts.shared.append(rows)


def _thread_rows(
    part: OwnedRange, image: Image, counts: MappingCounts, private: Sequence[PageRange], symbols: _Symbols
) -> list[Row]:
    """Return the rows of the variables of one thread: those of its threads are alike, and a process may have many."""
    page_bytes = symbols.page_bytes
    base_addr = part.start_addr // page_bytes * page_bytes
    pages = tuple([(start - base_addr, end - base_addr, swapped) for start, end, swapped in private])
    place = part.start_addr - base_addr, part.end_addr - base_addr
    key = page_bytes, id(image), place, part[3:6], part.mapping.is_mapped_writable, counts, pages
    rows_of_kind = symbols.row_cache.get(key)
    if rows_of_kind is None:
        from footprint.attribution.live_ranges import thread_rows  # noqa: PLC0415 # only a single live process needs it

        contents = symbols.files.contents_of(part.loaded) if symbols.files and part.loaded else None
        rows = thread_rows(part, contents, private, _row(part, counts, page_bytes), page_bytes)
        rows_of_kind = symbols.row_cache[key] = image, rows
    return rows_of_kind[1]


def _range_key(
    part: OwnedRange,
    loaded: LoadedObject,
    image: Image,
    counts: MappingCounts,
    private: Sequence[PageRange] | None,
    *,
    has_symbols: bool,
) -> Hashable:
    """Return all that the rows of a range depend on, wherever its object is loaded."""
    bias = loaded.bias_addr
    pages = None if private is None else tuple([(start - bias, end - bias, swapped) for start, end, swapped in private])
    place = (part.start_addr - bias, part.end_addr - bias, part.mapping.start_addr - bias, part.mapping.end_addr - bias)
    return id(image), loaded.key, place, part[3:6], part.mapping.permissions, counts, pages, has_symbols


def _object_rows(
    part: OwnedRange,
    loaded: LoadedObject,
    image: Image,
    counts: MappingCounts,
    private: Sequence[PageRange] | None,
    symbols: _Symbols,
    has_symbols: bool,  # noqa: FBT001 # private
) -> list[Row]:
    """Return the rows of a range of an object."""
    is_text, page_bytes = part.kind is MemoryKind.TEXT, symbols.page_bytes
    files = symbols.files if has_symbols else None
    contents = files.contents_of(loaded) if files else None
    if files and private is not None and contents is not None:
        relocated_pages = files.relocated_pages_of(loaded, page_bytes)
        evidence = weakest((_evidence(part, counts), Evidence.DERIVED))
        has_untouched = symbols.has_untouched
        rows = symbol_rows(part, contents, private, page_bytes, relocated_pages, evidence, has_untouched=has_untouched)
        if counts.shared_bytes:
            shared = counts._replace(private_bytes=0, evidence=evidence)
            rows.append(_row(part, shared, page_bytes, name="[shared pages]")._replace(mapped_bytes=0))
        return rows
    if is_text:
        return [_row(part, counts, page_bytes)]
    section, name = _section_names(part, loaded, image), None
    if counts.private_bytes and section and "+" in section:
        name = f"[{counts.private_bytes // page_bytes} of {part.size_bytes // page_bytes} pages private]"
    return [_row(part, counts, page_bytes, section=section, name=name)]


def _row(
    part: OwnedRange, counts: MappingCounts, page_bytes: int, section: str | None = None, name: str | None = None
) -> Row:
    """Return the row of a range that is not cut among symbols."""
    private_bytes = counts.private_bytes
    return Row(
        owner=part.owner,
        kind=part.kind,
        section=section,
        symbol=None,
        name=name,
        bytes=private_bytes,
        mapped_bytes=part.size_bytes,
        shared_bytes=counts.shared_bytes,
        pages=None if private_bytes is None else -(-private_bytes // page_bytes),
        sole_pages=0,
        relocated_bytes=None,
        is_writable=part.mapping.is_mapped_writable,
        evidence=_evidence(part, counts),
        attribution=part.attribution,
    )


def _evidence(part: OwnedRange, counts: MappingCounts) -> Evidence:
    """Return how the bytes of a range are known: the kernel counts them, but their owner may be assumed."""
    is_assumed = part.kind is MemoryKind.BSS and part.attribution.is_assumed
    return weakest((counts.evidence, Evidence.ESTIMATED)) if is_assumed else counts.evidence


def _merged(ranges: Sequence[OwnedRange]) -> OwnedRange:
    """Return the range of a mapping of several owners of which only some pages are private: nobody knows which."""
    first, last = ranges[0], ranges[-1]
    owners = " + ".join(dict.fromkeys(span.owner.rsplit("/", 1)[-1] for span in ranges))
    return first._replace(
        end_addr=last.end_addr,
        owner=f"[merged: {owners}]",
        kind=MemoryKind.ANONYMOUS,
        loaded=None,
        name="[one mapping of several owners, partly private: page bits would tell whose]",
    )


def _section_names(part: OwnedRange, loaded: LoadedObject, image: Image) -> str | None:
    """Return the names of the sections in a range, in the order of their addresses, joined by `+`."""
    start, end = part.start_addr - loaded.bias_addr, part.end_addr - loaded.bias_addr
    names = [
        section.name
        for section in image.sections
        if section.is_in_memory
        and not (section.is_tls and not section.has_file_bytes)
        and section.size_bytes
        and section.vaddr < end
        and start < section.vaddr + section.size_bytes
    ]
    if len(names) > 4:
        names = [*names[:2], "...", names[-1]]
    return "+".join(names) or None


def kernel_row(cost: KernelCost) -> Row:
    """Return the row of one part of what the kernel spends."""
    return Row(
        owner="[kernel]",
        kind=MemoryKind.KERNEL,
        section=None,
        symbol=None,
        name=cost.name,
        bytes=cost.size_bytes,
        mapped_bytes=0,
        shared_bytes=0,
        pages=None,
        sole_pages=0,
        relocated_bytes=None,
        is_writable=False,
        evidence=cost.evidence,
        attribution=Attribution.NAME,
    )


class _AlikeMappings:
    """Mappings of one range that differ only in address and size: one row for all of them.

    A process with 30,000 mappings has few kinds of them. To count these is quicker than to make a row of each.
    """

    def __init__(self) -> None:
        self._alike: dict[
            tuple[str, MemoryKind, Attribution, str, int], tuple[OwnedRange, MappingCounts, list[int]]
        ] = {}

    def add(self, part: OwnedRange, counts: MappingCounts) -> None:
        """Add a mapping."""
        # The same counts are the same object (`counters.count_each`).
        key = (part.owner, part.kind, part.attribution, part.mapping.permissions, id(counts))
        self._alike.setdefault(key, (part, counts, []))[2].append(part.end_addr - part.start_addr)

    def rows(self, page_bytes: int) -> Iterator[Row]:
        """Return a row for each kind of mapping."""
        for part, counts, sizes in self._alike.values():
            row, times = _row(part, counts, page_bytes), len(sizes)
            yield row._replace(
                bytes=None if row.bytes is None else row.bytes * times,
                mapped_bytes=sum(sizes),
                shared_bytes=None if row.shared_bytes is None else row.shared_bytes * times,
                pages=None if row.pages is None else row.pages * times,
            )
