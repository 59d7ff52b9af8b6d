"""The audit of a program that was not started: what a process of it would hold, as far as its files tell.

Its objects are laid out as a loader would, each page that is surely written counts as private, and the rest is the
audit of a process. So a prediction and a measurement have the same rows and can be compared.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.attribution.cost_models import project_process
from footprint.attribution.counters import MappingCounts
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import KernelConstants, KernelCost, kernel_costs
from footprint.attribution.layout import lay_out
from footprint.attribution.ledger import Files, ledger_rows
from footprint.attribution.object_prediction import Area, ObjectPrediction
from footprint.attribution.start_memory import StartMemory, start_memory
from footprint.attribution.totals import total_up
from footprint.elf import ET_EXEC, Image
from footprint.elf.image import PF_W, PF_X
from footprint.errors import InputError, Note, UsageError
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.finding import Finding
from footprint.model.projection import Model, Point, Projection, Question
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.model.totals import Total, Totals
from footprint.process import Mapping, MemoryMap, PageRange, Status
from footprint.process.mapped_files import FileKey

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap

__all__ = ("predicted_audit",)


class _Space(NamedTuple):
    """Where Linux puts a program, the end of its libraries, and the end of its stack: amid the places it draws from."""

    program_addr: int
    top_addr: int
    stack_addr: int


# The libraries end amid what one table spans, and far from the stack: most processes have as many tables then.
_SPACES: Final = {
    True: _Space(0x555555554000, 0x7F7FF7F00000, 0x7FFFFFFF0000),
    False: _Space(0x56550000, 0xF7F00000, 0xFFFF0000),
}
_LOWEST_ADDR: Final = 0x10000
_STACK_BYTES: Final = 132 * 1024
# [vvar], [vvar_vclock] and [vdso] are the kernel's, and mappings like others; what the loader has is two.
_MORE_MAPPINGS: Final = 4
_DEVICE: Final = "00:00"
_TABLE_ENTRY_BYTES: Final = 8
_ADDRESS_BITS: Final = 48


def predicted_audit(  # noqa: PLR0913 # all but the first two have their name
    graph: DependencyGraph,
    files: Files,
    *,
    target: str,
    question: Question,
    constants: KernelConstants,
    host: dict[str, str],
    findings: tuple[Finding, ...] = (),
    notes: tuple[Note, ...] = (),
    has_page_maps: bool = False,
) -> Audit:
    """Audit a program by its files.

    Args:
        graph: What it is made of.
        files: What its files say beside their headers.
        target: What the user called it.
        question: How many of it.
        constants: What the kernel spends on each process, thread, mapping.
        host: The kernel and machine of these constants.
        findings: What was found of its libraries.
        notes: What was odd.
        has_page_maps: Whether the pages of its objects are told one by one.

    Raises:
        InputError: Where no process could have its segments.
        UsageError: For a model other than started copies.
    """
    if question.model is not Model.EXEC:
        raise UsageError(f"the {question.model.value} model needs a live process, not a file")
    page_bytes = graph.page_bytes
    places, left_out = _places(graph)
    start = start_memory(graph)
    mappings, pages, images = _mappings(places, start, page_bytes)
    memory = MemoryMap("prediction", tuple(mappings))
    held = [_held(mapping, pages) for mapping in mappings]
    parts = lay_out(memory, images, page_bytes)
    kernel = _kernel(mappings, pages, page_bytes, constants)
    assumed = _assumed_row(places)
    # A variable that nothing writes at start may be written later, and is what two builds may differ in.
    rows = list(ledger_rows(parts, held, pages, files, page_bytes, kernel, has_untouched=True))
    page_maps: tuple[PageMap, ...] = ()
    if has_page_maps:
        from footprint.attribution.page_maps import page_maps as map_pages  # noqa: PLC0415 # for a picture only

        page_maps = map_pages(parts, held, pages, files, page_bytes)
    if assumed is not None:
        rows.append(assumed)
        rows.sort(key=lambda row: -(row.bytes or 0))
        held.append(MappingCounts(assumed.bytes, None, 0, 0, Evidence.ESTIMATED))
    totals = _with_bounds(total_up(memory, held, kernel), places)
    projection = project_process(
        totals,
        rows,
        kernel,
        status=None,
        mapping_count=len(mappings),
        costs=lambda _status, _count: (),
        question=question,
    )
    return Audit(
        target=target,
        pid=None,
        command="",
        source="prediction",
        is_live=False,
        mapping_count=len(mappings) + _MORE_MAPPINGS,
        page_bytes=page_bytes,
        host=host,
        totals=totals,
        ledger=tuple(rows),
        projection=_from_floor_to_ceiling(projection, totals),
        notes=(*notes, *left_out, *constants.notes),
        findings=findings,
        page_maps=page_maps,
    )


class _Place(NamedTuple):
    """An object, and the bias at which it would be loaded."""

    path: str
    prediction: ObjectPrediction
    image: Image
    bias_addr: int


def _places(graph: DependencyGraph) -> tuple[list[_Place], list[Note]]:
    """Give each object that can be read a place, from the top down; what finds none is left out, and noted.

    Raises:
        InputError: Where it is the program that finds none.
    """
    page_bytes = graph.page_bytes
    program = graph.objects[0]
    space = _SPACES[program.library.image.is_64]
    top_addr = space.top_addr // page_bytes * page_bytes
    places: list[_Place] = []
    notes: list[Note] = []
    taken = range(0)
    for number, (linked, prediction) in enumerate(zip(graph.objects, graph.predictions, strict=True)):
        areas = prediction.areas if prediction else ()
        first, past = (areas[0].pages.start * page_bytes, areas[-1].pages.stop * page_bytes) if areas else (0, 0)
        if number == 0:
            is_fixed = linked.library.image.type == ET_EXEC
            bias_addr = 0 if is_fixed else space.program_addr // page_bytes * page_bytes - first
            taken = range(bias_addr + first, bias_addr + past)
            if prediction is None or not taken or taken.stop > top_addr:
                raise InputError(linked.path, "no process could have the segments that it says")
        elif prediction is None or not areas:
            continue
        else:
            if top_addr - (past - first) < taken.stop and taken.start < top_addr:
                top_addr = taken.start
            bias_addr = top_addr - past
            if bias_addr + first < _LOWEST_ADDR:
                detail = "there is no room for its segments beside those of the others, what it costs is not known"
                notes.append(Note("file-unreadable", linked.path, detail))
                continue
            top_addr = bias_addr + first
        places.append(_Place(linked.path, prediction, linked.library.image, bias_addr))
    return places, notes


def _mappings(
    places: Sequence[_Place], start: StartMemory, page_bytes: int
) -> tuple[list[Mapping], dict[int, tuple[PageRange, ...]], dict[FileKey, Image]]:
    """Give the mappings of the process, which of their pages are private, and the files in them.

    Raises:
        InputError: Where its threads could not have the variables that its objects say.
    """
    mappings: list[Mapping] = []
    pages: dict[int, tuple[PageRange, ...]] = {}
    images: dict[FileKey, Image] = {}
    for inode, (path, prediction, image, bias_addr) in enumerate(places, 1):
        images[FileKey(_DEVICE, inode, path)] = image
        for area in prediction.areas:
            mapping = _mapping(area, path, inode, bias_addr, page_bytes)
            mappings.append(mapping)
            pages[mapping.start_addr] = tuple(
                [
                    PageRange(bias_addr + run.start * page_bytes, bias_addr + run.stop * page_bytes)
                    for run in _common(prediction.startup_min, area.pages)
                ]
            )
    space = _SPACES[places[0].image.is_64]
    loader_addr = space.top_addr // page_bytes * page_bytes
    stack_bytes = -(-max(_STACK_BYTES, start.stack_bytes) // page_bytes) * page_bytes
    stack_addr = space.stack_addr // page_bytes * page_bytes - stack_bytes
    if loader_addr + start.loader_bytes > stack_addr:
        raise InputError(places[0].path, "no process could have the thread-local variables that its objects say")
    for name, start_addr, size_bytes, private_bytes in (
        ("[loader and thread block]", loader_addr, start.loader_bytes, start.loader_bytes),
        ("[stack]", stack_addr, stack_bytes, start.stack_bytes),
    ):
        end_addr = start_addr + size_bytes
        mappings.append(Mapping(start_addr, end_addr, "rw-p", 0, _DEVICE, 0, name))
        pages[start_addr] = (PageRange(end_addr - private_bytes, end_addr),)
    mappings.sort(key=lambda one: one.start_addr)
    return mappings, pages, images


def _common(runs: Sequence[range], pages: range) -> Iterator[range]:
    for run in runs:
        both = range(max(run.start, pages.start), min(run.stop, pages.stop))
        if both:
            yield both


def _mapping(area: Area, path: str, inode: int, bias_addr: int, page_bytes: int) -> Mapping:
    start_addr, end_addr = (bias_addr + page * page_bytes for page in (area.pages.start, area.pages.stop))
    flags = area.flags
    permissions = f"{'r' if flags else '-'}{'w' if flags & PF_W else '-'}{'x' if flags & PF_X else '-'}p"
    if area.first_in_file is None:
        return Mapping(start_addr, end_addr, permissions, 0, _DEVICE, 0, "")
    # A hole between segments is mapped from the file too, from a place that nothing refers to.
    offset = max(area.first_in_file, 0) * page_bytes if flags else 1 << 48
    return Mapping(start_addr, end_addr, permissions, offset, _DEVICE, inode, path)


def _held(mapping: Mapping, pages: dict[int, tuple[PageRange, ...]]) -> MappingCounts:
    private_bytes = sum([one.end_addr - one.start_addr for one in pages[mapping.start_addr]])
    is_estimate = mapping.name.startswith("[")
    return MappingCounts(private_bytes, None, 0, 0, Evidence.ESTIMATED if is_estimate else Evidence.PREDICTED)


def _kernel(
    mappings: Sequence[Mapping], pages: dict[int, tuple[PageRange, ...]], page_bytes: int, constants: KernelConstants
) -> tuple[KernelCost, ...]:
    """Estimate what the kernel would spend."""
    status = Status("", "", 1, _page_table_bytes(mappings, pages, page_bytes), has_memory=True)
    costs = kernel_costs(status, len(mappings) + _MORE_MAPPINGS, constants, mappings)
    written_count = sum(1 for mapping in mappings if pages[mapping.start_addr])
    # Which mappings are written is told by counters that a prediction does not have.
    written_bytes = written_count * constants.written_bytes
    return tuple(
        [
            KernelCost(
                cost.name, cost.size_bytes + (written_bytes if "objects" in cost.name else 0), Evidence.ESTIMATED
            )
            for cost in costs
        ]
    )


def _page_table_bytes(mappings: Sequence[Mapping], pages: dict[int, tuple[PageRange, ...]], page_bytes: int) -> int:
    """Count the tables for the pages that are written, and for the beginning and end of what is only read."""
    touched = [range(addr, addr + 1) for one in mappings for addr in (one.start_addr, one.end_addr - 1)]
    touched += [range(one.start_addr, one.end_addr) for ranges in pages.values() for one in ranges]
    count, span_bytes = 0, page_bytes
    entry_count = page_bytes // _TABLE_ENTRY_BYTES
    # The top one is counted with the process.
    while span_bytes * entry_count < 1 << _ADDRESS_BITS:
        span_bytes *= entry_count
        numbers = sorted([(one.start // span_bytes, (one.stop - 1) // span_bytes) for one in touched])
        reached = -1
        for first, last in numbers:
            count += max(0, last - max(first - 1, reached))
            reached = max(reached, last)
    return count * page_bytes


def _assumed_row(places: Sequence[_Place]) -> Row | None:
    """Give what the C library writes in pages that are not known."""
    for path, prediction, _, _ in places:
        if prediction.assumed_pages:
            return Row(
                owner=path,
                kind=MemoryKind.DATA,
                section=None,
                symbol=None,
                name="[written by the first steps of the C library: footprint doctor --calibrate]",
                bytes=prediction.assumed_pages * prediction.page_bytes,
                mapped_bytes=0,
                shared_bytes=None,
                pages=prediction.assumed_pages,
                sole_pages=0,
                relocated_bytes=None,
                is_writable=True,
                evidence=Evidence.ESTIMATED,
                attribution=Attribution.PROGRAM_HEADERS,
            )
    return None


def _with_bounds(totals: Totals, places: Sequence[_Place]) -> Totals:
    """Put in how much is surely written, and how much can ever be."""
    startup_min_bytes = sum(one.prediction.startup_min_bytes for one in places)
    startup_max_bytes = sum(one.prediction.startup_max_bytes for one in places)
    evidence = weakest(one.prediction.evidence for one in places)
    unknown = Total(None, Evidence.PREDICTED)
    return totals._replace(
        shared_once=unknown,
        cow_shared=unknown,
        startup_min=Total(startup_min_bytes, evidence),
        startup_max=Total(startup_max_bytes, Evidence.PREDICTED),
    )


def _from_floor_to_ceiling(projection: Projection, totals: Totals) -> Projection:
    """Say what one costs at least, and at most as far as its objects go: heaps and stacks grow as they like."""
    each_bytes = projection.per_process_bytes
    rest_bytes = (totals.startup_max.bytes or 0) - (totals.startup_min.bytes or 0)
    points = tuple(
        [
            Point(name, size_bytes, size_bytes * projection.count, Evidence.ESTIMATED)
            for name, size_bytes in (
                ("just started", each_bytes),
                ("every variable written", each_bytes + rest_bytes),
            )
        ]
    )
    return Projection(
        projection.count,
        projection.per_process_bytes,
        projection.shared_once_bytes,
        projection.total_bytes,
        projection.basis,
        projection.evidence,
        projection.model,
        projection.terms,
        points,
        projection.memory_bytes,
    )
