"""What an ELF object costs before it runs: the pages that the loader surely writes, and all that can ever be written.

A page is private from its first write on, whatever the cause. So the pages of each cause are a set, and the sets of one
object are united, never added up.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from footprint.attribution.startup_writes import WriteCause, static_start_pages, written_pages
from footprint.elf.abi import PF_W, PT_DYNAMIC, PT_GNU_RELRO, PT_INTERP, PT_TLS
from footprint.elf.image import Image, Segment
from footprint.errors import InputError, Note
from footprint.loader.target import Libc
from footprint.members import NamedTuple, dataclass, replace
from footprint.model.row import Evidence

Pages = tuple[range, ...]
"""Numbers of pages (vaddr divided by the page size) as ascending runs; no two runs touch."""


class Area(NamedTuple):
    """Neighbouring pages that are mapped alike.

    Attributes:
        pages: The pages.
        flags: PF_R, PF_W, PF_X; 0 for a hole between segments of a library, which is kept reserved.
        loaded_flags: The flags before RELRO makes pages read-only.
        first_in_file: The first page of the file that is mapped; None for memory that starts as zeros.
    """

    pages: range
    flags: int
    loaded_flags: int
    first_in_file: int | None


@dataclass(frozen=True)
class LibcStart:
    """The pages that a C library writes in itself at its start, beside those that relocations write.

    Attributes:
        pages: The numbers of these pages, where they are known.
        page_bytes: The size of these pages.
        count: The number of these pages.
        origin: Where the figures come from, to show.
        notes: What was odd about getting it.
    """

    pages: tuple[int, ...]
    page_bytes: int
    count: int
    origin: str
    notes: tuple[Note, ...] = ()

    @property
    def is_assumed(self) -> bool:
        """Whether only the number of pages is known, from another library."""
        return len(self.pages) < self.count


UNKNOWN_LIBC: Final = LibcStart((), 0, 4, "built in: glibc 2.36, x86-64")
"""What is assumed for a C library that was not calibrated."""
STATIC_LIBC: Final = LibcStart((), 0, 4, UNKNOWN_LIBC.origin)
"""What the glibc inside a static program writes at least: settings of the machine in RELRO, streams, its .bss."""
STATIC_PIE_LIBC: Final = LibcStart((), 0, 1, UNKNOWN_LIBC.origin)
"""The same in a static program that moves: relocations write RELRO and most of its .data, too."""


@dataclass(frozen=True)
class ObjectPrediction:
    """What one object costs in each process that loads it.

    Attributes:
        page_bytes: The size of a page.
        startup_min: The pages that are surely written before the program's own code runs; those of constructors only
            where they were measured.
        startup_max: The pages that can ever be written, including RELRO; `startup_min` is a part of them.
        causes: The pages that each cause writes; the sets overlap.
        assumed_pages: The number of further pages that the C library is assumed to write in itself.
        tls_bytes: The object's part of the block of each thread, in multiples of its alignment; glibc writes all of it.
        areas: The mappings of the object; RELRO and .bss are mappings of their own.
        notes: What was odd.
    """

    page_bytes: int
    startup_min: Pages
    startup_max: Pages
    causes: Mapping[WriteCause, Pages]
    tls_bytes: int
    areas: tuple[Area, ...]
    assumed_pages: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def evidence(self) -> Evidence:
        """How its figures are known."""
        return Evidence.ESTIMATED if self.assumed_pages else Evidence.PREDICTED

    @property
    def mapping_count(self) -> int:
        """The number of its mappings."""
        return len(self.areas)

    @property
    def mapped_bytes(self) -> int:
        """The address space that it takes."""
        return sum([len(area.pages) for area in self.areas]) * self.page_bytes

    @property
    def startup_min_bytes(self) -> int:
        """The bytes of `startup_min` and of the assumed pages."""
        return (count_pages(self.startup_min) + self.assumed_pages) * self.page_bytes

    @property
    def startup_max_bytes(self) -> int:
        """The bytes of `startup_max`."""
        return count_pages(self.startup_max) * self.page_bytes


# Each entry of a table of relocations can name a page. The largest programs write some ten thousand pages.
_MOST_PAGES: Final = 1 << 18


def count_pages(pages: Pages) -> int:
    """Count the pages of some runs."""
    return sum([len(run) for run in pages])


def predict(
    image: Image, page_bytes: int, *, is_program: bool, libc: Libc = Libc.GLIBC, libc_start: LibcStart | None = None
) -> ObjectPrediction:
    """Predict what an object costs before it runs. A damaged table becomes a note, and the rest is predicted.

    For the C library itself, `libc_start` has the pages that it writes at its start.

    Raises:
        InputError: Where its segments are not in the order that the ABI demands.
    """
    notes = list(libc_start.notes) if libc_start else []
    written: dict[WriteCause, set[int]] = {}
    # A static program of musl leaves RELRO writable.
    is_static = is_program and image.segment(PT_INTERP) is None
    has_relro = libc is not Libc.MUSL or not is_static
    areas = _areas(image, page_bytes, has_holes=not is_program, has_relro=has_relro)
    startup_max = _united([area.pages for area in areas if area.loaded_flags & PF_W])
    mapped = _united([area.pages for area in areas if area.loaded_flags])
    try:
        _gather(written_pages(image, page_bytes, libc, is_program=is_program), written, image)
        if is_static and written.get(WriteCause.IRELATIVE):
            # Only the start-up code of glibc calls the resolver functions of a static program.
            of_relocations = set().union(*written.values())
            _gather(static_start_pages(image, page_bytes), written, image)
            start = STATIC_PIE_LIBC if image.segment(PT_DYNAMIC) else STATIC_LIBC
            named_count = len(written.get(WriteCause.LIBC_START, set()) - of_relocations)
            libc_start = replace(start, count=start.count - named_count) if named_count < start.count else None
    except InputError as error:
        detail = f"{error.detail}: some pages that are written at its start are not known"
        notes.append(Note("file-unreadable", image.file, detail))
    if libc_start is not None and not libc_start.is_assumed and libc_start.page_bytes <= page_bytes:
        written[WriteCause.LIBC_START] = {page * libc_start.page_bytes // page_bytes for page in libc_start.pages}
        libc_start = None
    if any(1 < segment.align < page_bytes for segment in image.loads):
        detail = f"its segments are aligned to less than {page_bytes} bytes: with such pages it could not be loaded"
        notes.append(Note("page-size-assumed", image.file, detail))
    written = {cause: _inside(pages, mapped) for cause, pages in written.items()}
    causes = {cause: _united(map(_run, written[cause])) for cause in WriteCause if written.get(cause)}
    startup_min = _united(map(_run, set().union(*written.values())))
    startup_max = _united([*startup_max, *startup_min])
    most_assumed = count_pages(startup_max) - count_pages(startup_min)
    tls = image.segment(PT_TLS)
    align = max(1, tls.align) if tls else 1
    return ObjectPrediction(
        page_bytes,
        startup_min,
        startup_max,
        MappingProxyType(causes),
        -(-tls.memory_bytes // align) * align if tls else 0,
        tuple(areas),
        min(libc_start.count, most_assumed) if libc_start else 0,
        tuple(notes),
    )


def with_written(prediction: ObjectPrediction, cause: WriteCause, pages: set[int]) -> ObjectPrediction:
    """Return a prediction with more pages that are surely written; pages that cannot be are left out."""
    added = _united(map(_run, _inside(pages, prediction.startup_max)))
    return replace(
        prediction,
        startup_min=_united([*prediction.startup_min, *added]),
        causes=MappingProxyType({**prediction.causes, cause: added}),
    )


def _gather(parts: Iterable[tuple[WriteCause, set[int]]], written: dict[WriteCause, set[int]], image: Image) -> None:
    """Add pages to those of their cause; pages that were found before an error remain."""
    for cause, pages in parts:
        pages_so_far = written.setdefault(cause, set())
        pages_so_far |= pages
        if len(pages_so_far) > _MOST_PAGES:
            raise InputError(image.file, "more pages are written at start than any program has")


# --- sets of pages ----------------------------------------------------------------------------------------------------


def _run(page: int) -> range:
    return range(page, page + 1)


def _united(ranges: Iterable[range]) -> Pages:
    """Unite runs of pages that may overlap."""
    runs: list[range] = []
    for span in sorted(ranges, key=lambda run: run.start):
        if runs and span.start <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, max(runs[-1].stop, span.stop))
        elif span:
            runs.append(span)
    return tuple(runs)


def _inside(pages: set[int], runs: Pages) -> set[int]:
    """Return the pages that lie in runs: a damaged table can write nowhere else."""
    starts = [run.start for run in runs]
    return {page for page in pages if page in runs[bisect_right(starts, page) - 1]} if runs else set()


# --- what is mapped ---------------------------------------------------------------------------------------------------


def _areas(image: Image, page_bytes: int, *, has_holes: bool, has_relro: bool) -> list[Area]:
    """Return the mappings of an object; those of RELRO become read-only.

    Raises:
        InputError: Where the segments are not in the order that the ABI demands.
    """
    areas: list[Area] = []
    for segment in image.loads:
        for area in _segment_areas(segment, page_bytes):
            before = areas[-1].pages if areas else area.pages
            if areas and before.stop > area.pages.start:
                # Where segments share a page, the later mapping wins.
                areas[-1] = areas[-1]._replace(pages=range(before.start, area.pages.start))
            elif areas and has_holes and before.stop < area.pages.start:
                areas.append(Area(range(before.stop, area.pages.start), 0, 0, -1))
            areas.append(area)
    relro = image.segment(PT_GNU_RELRO)
    if relro is not None and has_relro:
        # Up to the last whole page.
        protected = range(relro.vaddr // page_bytes, (relro.vaddr + relro.memory_bytes) // page_bytes)
        areas = [part for area in areas for part in _protected(area, protected)]
    merged: list[Area] = []
    for area in areas:
        if merged and _are_one(merged[-1], area):
            merged[-1] = merged[-1]._replace(pages=range(merged[-1].pages.start, area.pages.stop))
        elif area.pages:
            merged.append(area)
    if any(piece.pages.stop > after.pages.start for piece, after in pairwise(merged)):
        raise InputError(image.file, "its loadable segments overlap, or their addresses do not ascend")
    return merged


def _segment_areas(segment: Segment, page_bytes: int) -> Iterator[Area]:
    first = segment.vaddr // page_bytes
    past_file = -(-(segment.vaddr + segment.file_bytes) // page_bytes) if segment.file_bytes else first
    past = -(-(segment.vaddr + segment.memory_bytes) // page_bytes)
    flags = segment.flags & 7
    if first < past_file:
        yield Area(range(first, past_file), flags, flags, segment.offset // page_bytes)
    if past_file < past:
        yield Area(range(past_file, past), flags, flags, None)


def _protected(area: Area, protected: range) -> Iterator[Area]:
    """Cut an area at the ends of RELRO."""
    first, past = area.pages.start, area.pages.stop
    start = min(max(first, protected.start), past)
    stop = max(min(past, protected.stop), start)
    for begin, end, kept in ((first, start, ~0), (start, stop, ~PF_W), (stop, past, ~0)):
        if begin < end:
            at = None if area.first_in_file is None else area.first_in_file + begin - first
            yield Area(range(begin, end), area.flags & kept, area.loaded_flags, at)


def _are_one(before: Area, area: Area) -> bool:
    """Return whether the kernel makes one mapping of two neighbours."""
    at = None if before.first_in_file is None else before.first_in_file + len(before.pages)
    are_alike = (before.flags, before.loaded_flags) == (area.flags, area.loaded_flags)
    return are_alike and before.pages.stop == area.pages.start and at == area.first_in_file
