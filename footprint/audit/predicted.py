"""What an ELF object costs before it runs: the pages that the loader surely writes, and all that can ever be written.

A page that is written once is private from then on, by whatever it was written: pages are sets with causes, and sets of
one object are united, never added up.

Source: the start of programs in glibc 2.36 (elf/rtld.c, elf/dl-reloc.c, elf/get-dynamic-info.h), musl 1.2.3
(ldso/dynlink.c) and Linux 6.18 (fs/binfmt_elf.c), checked against the page bits of programs that stand at their start.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.elf import ET_EXEC, PT_GNU_RELRO, Image
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, read_dynamic
from footprint.elf.image import PF_W, PT_DYNAMIC, PT_INTERP, PT_TLS, Segment
from footprint.elf.machines import relocation_types
from footprint.elf.relocations import Relocations, relocations, relr_pages, symbol_and_type
from footprint.errors import InputError, Note
from footprint.evidence import Evidence

__all__ = ("Cause", "Libc", "Pages", "Predicted", "count_pages", "predict")

Pages = tuple[range, ...]
"""Numbers of pages (vaddr divided by the page size) as runs, ascending, none touching the next."""


class Cause(StrEnum):
    """Why a page is written before the program's own code runs."""

    RELATIVE = "relative"
    """A pointer into the object itself: tables of functions, of names, of objects with virtual functions."""
    RELR = "relr"
    """The same, in the packed encoding, which shrinks the file and no memory."""
    JUMP_SLOT = "jump-slot"
    """A slot of the PLT: even a lazy one is moved by the load address at start."""
    GLOB_DAT = "glob-dat"
    """An address in the GOT."""
    COPY = "copy"
    """An object of a library that the program took over."""
    ABSOLUTE = "absolute"
    """A pointer to a symbol that is looked up."""
    TLS = "tls"
    """Where a thread-local variable is."""
    IRELATIVE = "irelative"
    """The answer of a resolver of the object."""
    DYNAMIC = "dynamic"
    """Addresses in the dynamic section, which glibc moves in place."""
    GOT = "got"
    """What lazy binding needs to find its object."""
    PARTIAL_BSS = "partial-bss"
    """The rest of the last page of the file, which is zeroed to be the start of .bss."""
    DEBUG = "debug"
    """The entry of the dynamic section that tells debuggers where the objects are."""
    DONATED = "donated"
    """What is left of the last page: musl gives it to malloc."""
    LIBC_START = "libc-start"
    """The C library's own variables, by its first steps."""


class Libc(StrEnum):
    """Whose loader it is."""

    GLIBC = "glibc"
    MUSL = "musl"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Predicted:
    """What one object costs in each process that loads it.

    Attributes:
        page_bytes: The size of a page.
        floor: The pages that are surely written before the program's own code and constructors run.
        ceiling: The pages that can ever be written, those of RELRO included; the floor is a part of them.
        causes: The pages that each cause writes; the sets overlap.
        sole_pages: How many pages each cause writes that no other does: what would be saved without it.
        tls_bytes: The object's part of the block of each thread, in multiples of its alignment; glibc writes all of it.
        tls_align: The alignment of that part.
        mapping_count: How many mappings it makes, RELRO and .bss apart.
        mapped_bytes: The address space of these.
        notes: What was odd.
    """

    page_bytes: int
    floor: Pages
    ceiling: Pages
    causes: Mapping[Cause, Pages]
    sole_pages: Mapping[Cause, int]
    tls_bytes: int
    tls_align: int
    mapping_count: int
    mapped_bytes: int
    notes: tuple[Note, ...] = ()

    @property
    def evidence(self) -> Evidence:
        """Tell how its figures are known."""
        return Evidence.PREDICTED

    @property
    def floor_bytes(self) -> int:
        """Give the bytes of the floor."""
        return count_pages(self.floor) * self.page_bytes

    @property
    def ceiling_bytes(self) -> int:
        """Give the bytes of the ceiling."""
        return count_pages(self.ceiling) * self.page_bytes


def count_pages(pages: Pages) -> int:
    """Count the pages of some runs."""
    return sum([len(run) for run in pages])


def predict(
    image: Image, page_bytes: int, *, is_program: bool, libc: Libc = Libc.GLIBC, libc_start: Iterable[int] = ()
) -> Predicted:
    """Tell what an object costs before it runs. Damaged tables are a note, and what is known without them.

    Args:
        image: The object.
        page_bytes: The size of a page, a power of 2.
        is_program: Whether it is the program itself, and no library or loader.
        libc: Whose loader loads it.
        libc_start: For the C library the numbers of the pages that its first steps write, as calibrated.
    """
    notes: list[Note] = []
    written: dict[Cause, set[int]] = {Cause.LIBC_START: set(libc_start)}
    areas = _areas(image, page_bytes, has_holes=not is_program)
    ceiling = _runs_of_ranges([one.pages for one in areas if one.loaded_flags & PF_W])
    mapped = _runs_of_ranges([one.pages for one in areas if one.loaded_flags])
    try:
        for cause, pages in _written(image, page_bytes, libc, is_program=is_program):
            written.setdefault(cause, set()).update(pages)
    except InputError as error:
        detail = f"{error.detail}, not all that is written at its start is known"
        notes.append(Note("file-unreadable", image.file, detail))
    for segment in image.loads:
        if 1 < segment.align < page_bytes:
            detail = (
                f"its segments are aligned to {segment.align} bytes: with pages of {page_bytes} it cannot be loaded"
            )
            notes.append(Note("page-size-assumed", image.file, detail))
            break
    written = {cause: _inside(pages, mapped) for cause, pages in written.items()}
    causes = {cause: _runs(written[cause]) for cause in Cause if written.get(cause)}
    floor = _runs(set().union(*written.values()))
    tls = image.segment(PT_TLS)
    align = max(1, tls.align) if tls else 1
    return Predicted(
        page_bytes,
        floor,
        _runs_of_ranges([*ceiling, *floor]),
        MappingProxyType(causes),
        MappingProxyType(_sole_pages(written)),
        -(-tls.memory_bytes // align) * align if tls else 0,
        align,
        len(areas),
        sum([len(one.pages) for one in areas]) * page_bytes,
        tuple(notes),
    )


# --- sets of pages ----------------------------------------------------------------------------------------------------


def _runs(pages: Iterable[int]) -> Pages:
    runs: list[range] = []
    first = past = -1
    for page in sorted(pages):
        if page != past:
            if past >= 0:
                runs.append(range(first, past))
            first = page
        past = page + 1
    return (*runs, range(first, past)) if past >= 0 else ()


def _runs_of_ranges(ranges: Iterable[range]) -> Pages:
    """Unite runs of pages that may overlap."""
    runs: list[range] = []
    for one in sorted(ranges, key=lambda run: run.start):
        if runs and one.start <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, max(runs[-1].stop, one.stop))
        elif one:
            runs.append(one)
    return tuple(runs)


def _inside(pages: set[int], runs: Pages) -> set[int]:
    """Give what of some pages lies in runs: elsewhere a damaged table cannot write."""
    starts = [run.start for run in runs]
    return {page for page in pages if page in runs[bisect_right(starts, page) - 1]} if runs else set()


def _sole_pages(written: Mapping[Cause, set[int]]) -> dict[Cause, int]:
    only: dict[int, Cause | None] = {}
    for cause, pages in written.items():
        for page in pages:
            only[page] = None if page in only else cause
    counts = {cause: 0 for cause in Cause if written.get(cause)}
    for sole in only.values():
        if sole:
            counts[sole] += 1
    return counts


# --- what is written at start -----------------------------------------------------------------------------------------

EM_MIPS: Final = 8
EM_PPC64: Final = 21
EM_RISCV: Final = 243
EM_LOONGARCH: Final = 258

DT_PLTGOT: Final = 3
DT_HASH: Final = 4
DT_STRTAB: Final = 5
DT_SYMTAB: Final = 6
DT_RELA: Final = 7
DT_REL: Final = 17
DT_DEBUG: Final = 21
DT_JMPREL: Final = 23
DT_BIND_NOW: Final = 24
DT_FLAGS: Final = 30
DT_RELR: Final = 36
DT_GNU_HASH: Final = 0x6FFFFEF5
DT_VERSYM: Final = 0x6FFFFFF0
DT_FLAGS_1: Final = 0x6FFFFFFB
DF_BIND_NOW: Final = 8
DF_1_NOW: Final = 1

# What glibc moves in place by the load address (ADJUST_DYN_INFO).
_MOVED_TAGS: Final = frozenset(
    {DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_REL, DT_JMPREL, DT_RELR, DT_GNU_HASH, DT_VERSYM}
)
# There the dynamic section is read-only by the ABI (DL_RO_DYN_SECTION).
_FIXED_DYNAMIC: Final = frozenset({EM_MIPS, EM_RISCV})
# There the GOT of the PLT has no entry for the dynamic section before the two that lazy binding needs.
_GOT_WITHOUT_DYNAMIC: Final = frozenset({EM_PPC64, EM_RISCV, EM_LOONGARCH})
# A copied object claims a size, and many may claim the same pages.
_MOST_COPIED_PAGES: Final = 1 << 18


def _written(image: Image, page_bytes: int, libc: Libc, *, is_program: bool) -> Iterator[tuple[Cause, set[int]]]:
    """Give the pages that are written, by cause; a cause may come several times.

    Raises:
        InputError: Where a table is damaged.
    """
    for segment in image.loads:
        end = segment.vaddr + segment.file_bytes
        has_bss = segment.memory_bytes > segment.file_bytes and segment.is_writable
        if has_bss and end % page_bytes:
            yield Cause.PARTIAL_BSS, {end // page_bytes}
    dynamic = read_dynamic(image)
    yield from _written_for_loader(image, page_bytes, dynamic, libc, is_program=is_program)
    yield Cause.RELR, relr_pages(image, page_bytes)
    types = _Types(image, dynamic)
    for found in relocations(image):
        yield from types.written(found, page_bytes)


def _written_for_loader(
    image: Image, page_bytes: int, dynamic: Dynamic, libc: Libc, *, is_program: bool
) -> Iterator[tuple[Cause, set[int]]]:
    """Give what the loader notes for itself in the dynamic section and the GOT."""
    segment = image.segment(PT_DYNAMIC)
    word_bytes = 8 if image.is_64 else 4
    if segment is None:
        return
    is_fixed = image.machine in _FIXED_DYNAMIC or image.type == ET_EXEC or not segment.is_writable
    values = [segment.vaddr + (2 * index + 1) * word_bytes for index in range(len(dynamic.entries))]
    for vaddr, (tag, _) in zip(values, dynamic.entries, strict=True):
        if tag in _MOVED_TAGS and libc is Libc.GLIBC and not is_fixed:
            yield Cause.DYNAMIC, {vaddr // page_bytes}
        elif tag == DT_DEBUG and is_program and segment.is_writable:
            yield Cause.DEBUG, {vaddr // page_bytes}
    got = dynamic.get(DT_PLTGOT)
    is_lazy = not (
        (dynamic.get(DT_FLAGS) or 0) & DF_BIND_NOW
        or (dynamic.get(DT_FLAGS_1) or 0) & DF_1_NOW
        or dynamic.get(DT_BIND_NOW) is not None
    )
    is_linked_at_start = not is_program or image.segment(PT_INTERP) is not None
    if got and dynamic.get(DT_JMPREL) and is_lazy and libc is Libc.GLIBC and is_linked_at_start:
        first = got + (0 if image.machine in _GOT_WITHOUT_DYNAMIC else word_bytes)
        yield Cause.GOT, {first // page_bytes, (first + word_bytes) // page_bytes}


class _Types:
    """Tells the causes of relocations by their types, and how far each writes."""

    def __init__(self, image: Image, dynamic: Dynamic) -> None:
        self._image = image
        self._symbols_vaddr = dynamic.get(DT_SYMTAB)
        self._left_pages = _MOST_COPIED_PAGES
        self._word_bytes = 8 if image.is_64 else 4
        self._types = types = relocation_types(image.machine)
        self._causes = {
            **dict.fromkeys(types.relative, Cause.RELATIVE),
            **dict.fromkeys(types.jump_slot, Cause.JUMP_SLOT),
            **dict.fromkeys(types.glob_dat, Cause.GLOB_DAT),
            **dict.fromkeys(types.copy, Cause.COPY),
            **dict.fromkeys(types.irelative, Cause.IRELATIVE),
            **dict.fromkeys(types.tls, Cause.TLS),
            0: None,
        }

    def written(self, found: Relocations, page_bytes: int) -> Iterator[tuple[Cause, set[int]]]:
        """Give the pages that some relocations write, by cause."""
        causes = {info: self._cause(info) for info in set(found.infos)}
        shift = page_bytes.bit_length() - 1
        # An address that lies across two pages counts for its first: linkers align them.
        pairs = set(zip([vaddr >> shift for vaddr in found.vaddrs], map(causes.__getitem__, found.infos), strict=True))
        for page, cause in pairs:
            if cause:
                yield cause, {page}
        wide = {info: width for info, cause in causes.items() if cause and (width := self._width(info, cause))}
        for vaddr, info in zip(found.vaddrs, found.infos, strict=True) if wide else ():
            cause = causes[info]
            if cause and info in wide:
                pages = range(vaddr >> shift, (vaddr + wide[info] - 1 >> shift) + 1)
                self._left_pages -= len(pages)
                if self._left_pages < 0:
                    raise InputError(self._image.file, "the copied objects are larger than any program has")
                yield cause, set(pages)

    def _cause(self, info: int) -> Cause | None:
        symbol, kind = symbol_and_type(self._image, info)
        # MIPS has one type for both.
        return self._causes.get(kind, Cause.ABSOLUTE if symbol else Cause.RELATIVE)

    def _width(self, info: int, cause: Cause) -> int:
        """Give how many bytes are written where that is not one word, else 0."""
        symbol, kind = symbol_and_type(self._image, info)
        if kind in self._types.tls_descriptor:
            return 2 * self._word_bytes
        if cause is not Cause.COPY or not self._symbols_vaddr:
            return 0
        entry_bytes = self._image.symbol_bytes
        vaddr = self._symbols_vaddr + symbol * entry_bytes
        entry = bytes_at_vaddr(self._image, vaddr, entry_bytes, "the symbol of a copied object")
        return self._image.symbol_at(entry, 0)[5]


# --- what is mapped ---------------------------------------------------------------------------------------------------


class _Area(NamedTuple):
    """Neighbouring pages that are mapped alike.

    Attributes:
        pages: The pages.
        flags: PF_R, PF_W, PF_X; 0 for a hole between segments of a library, which is kept reserved.
        loaded_flags: Those before RELRO.
        first_in_file: The page of the file that is mapped first; None for memory that begins as zeros.
    """

    pages: range
    flags: int
    loaded_flags: int
    first_in_file: int | None


def _areas(image: Image, page_bytes: int, *, has_holes: bool) -> list[_Area]:
    """Give the mappings that an object makes, RELRO made read-only."""
    areas: list[_Area] = []
    for segment in image.loads:
        for area in _segment_areas(segment, page_bytes):
            before = areas[-1].pages if areas else area.pages
            if areas and before.stop > area.pages.start:
                # Segments that share a page: what is mapped later wins.
                areas[-1] = areas[-1]._replace(pages=range(before.start, area.pages.start))
            elif areas and has_holes and before.stop < area.pages.start:
                areas.append(_Area(range(before.stop, area.pages.start), 0, 0, -1))
            areas.append(area)
    relro = image.segment(PT_GNU_RELRO)
    if relro is not None:
        # Up to the last whole page.
        protected = range(relro.vaddr // page_bytes, (relro.vaddr + relro.memory_bytes) // page_bytes)
        areas = [part for area in areas for part in _protected(area, protected)]
    merged: list[_Area] = []
    for area in areas:
        if merged and _are_one(merged[-1], area):
            merged[-1] = merged[-1]._replace(pages=range(merged[-1].pages.start, area.pages.stop))
        elif area.pages:
            merged.append(area)
    return merged


def _segment_areas(segment: Segment, page_bytes: int) -> Iterator[_Area]:
    first = segment.vaddr // page_bytes
    past_file = -(-(segment.vaddr + segment.file_bytes) // page_bytes) if segment.file_bytes else first
    past = -(-(segment.vaddr + segment.memory_bytes) // page_bytes)
    flags = segment.flags & 7
    if first < past_file:
        yield _Area(range(first, past_file), flags, flags, segment.offset // page_bytes)
    if past_file < past:
        yield _Area(range(past_file, past), flags, flags, None)


def _protected(area: _Area, protected: range) -> Iterator[_Area]:
    """Cut an area at the ends of RELRO."""
    first, past = area.pages.start, area.pages.stop
    start = min(max(first, protected.start), past)
    stop = max(min(past, protected.stop), start)
    for begin, end, kept in ((first, start, ~0), (start, stop, ~PF_W), (stop, past, ~0)):
        if begin < end:
            at = None if area.first_in_file is None else area.first_in_file + begin - first
            yield _Area(range(begin, end), area.flags & kept, area.loaded_flags, at)


def _are_one(before: _Area, area: _Area) -> bool:
    """Tell whether the kernel makes one mapping of two neighbours."""
    at = None if before.first_in_file is None else before.first_in_file + len(before.pages)
    are_alike = (before.flags, before.loaded_flags) == (area.flags, area.loaded_flags)
    return are_alike and before.pages.stop == area.pages.start and at == area.first_in_file
