"""The audit of a program that was not started: what a process of it would hold, as far as its files say.

The objects are laid out as a loader does it, from the top down. The kernel draws the addresses of a process by chance
from wide spans; here they lie in the middle of these. Each page that is surely written counts as private, and all else
is as in the audit of a process. So a prediction and a measurement have the same rows and can be compared.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from typing import TYPE_CHECKING, Final

from footprint.attribution.cost_models import project_process
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import KernelConstants, KernelCost, kernel_costs
from footprint.attribution.layout import lay_out
from footprint.attribution.ledger import Files, ledger_rows
from footprint.attribution.object_prediction import Area, ObjectPrediction
from footprint.attribution.owned_range import MappingCounts
from footprint.attribution.process_audit import total_up
from footprint.attribution.start_memory import StartMemory, start_memory
from footprint.elf.abi import ET_EXEC, PF_W, PF_X
from footprint.elf.image import Image
from footprint.errors import InputError, Note, UsageError
from footprint.members import NamedTuple
from footprint.model.audit import Audit
from footprint.model.projection import Model, Point, Projection, Question
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, Total, Totals, weakest
from footprint.process.mappings import FileKey, Mapping, MemoryMap
from footprint.process.pages import PageRange
from footprint.process.status import Status

# Where Linux puts a program of 64 and of 32 bits, the end of its libraries, and the end of its stack. The libraries end
# in the middle of what one page table spans, and far from the stack, as in most processes: then the process has as many
# page tables as most.
_SPACES: Final = {
    True: (0x555555554000, 0x7F7FF7F00000, 0x7FFFFFFF0000),
    False: (0x56550000, 0xF7F00000, 0xFFFF0000),
}
_LOWEST_ADDR: Final = 0x10000
_STACK_BYTES: Final = 132 * 1024
_HEAP_GAP_BYTES: Final = 1 << 22
_DEVICE: Final = "00:00"
# The kernel's [vvar], [vvar_vclock] and [vdso], and a second mapping of the loader.
_MORE_MAPPINGS: Final = 4
_TABLE_ENTRY_BYTES: Final = 8
_ADDRESS_BITS: Final = 48


class PlacedObject(NamedTuple):
    """An object of the program, and the bias at which it would be loaded."""

    path: str
    prediction: ObjectPrediction
    image: Image
    bias_addr: int


class ProgramLayout(NamedTuple):
    """The address space of a program as it would start.

    Attributes:
        objects: Its objects, each with its place.
        mappings: Its mappings, ascending.
        pages: By the start address of its mapping, the pages that are surely written at start.
        images: The files of the mappings.
        notes: The objects that are left out, and why.
    """

    objects: Sequence[PlacedObject]
    mappings: Sequence[Mapping]
    pages: dict[int, tuple[PageRange, ...]]
    images: dict[FileKey, Image]
    notes: Sequence[Note]

    def counts(self) -> list[MappingCounts]:
        """Return what the kernel would count in each mapping."""
        return [_counts(mapping, self.pages[mapping.start_addr]) for mapping in self.mappings]


def lay_out_program(graph: DependencyGraph) -> ProgramLayout:
    """Place the objects of a program, what the loader allocates, and the stack.

    Raises:
        InputError: Where no process could have the segments or the thread-local variables of the objects.
    """
    objects, notes = _placed_objects(graph)
    page_bytes = graph.page_bytes
    images: dict[FileKey, Image] = {}
    mappings: list[Mapping] = []
    pages: dict[int, tuple[PageRange, ...]] = {}
    for inode, (path, prediction, image, bias_addr) in enumerate(objects, 1):
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
    for mapping, private_bytes in _start_mappings(objects[0], start_memory(graph), page_bytes):
        mappings.append(mapping)
        pages[mapping.start_addr] = (PageRange(mapping.end_addr - private_bytes, mapping.end_addr),)
    mappings.sort(key=lambda m: m.start_addr)
    return ProgramLayout(objects, mappings, pages, images, notes)


def _placed_objects(graph: DependencyGraph) -> tuple[list[PlacedObject], list[Note]]:
    """Place each object that can be read, from the top down. An object without room is left out, with a note.

    Raises:
        InputError: Where there is no room for the program itself.
    """
    page_bytes = graph.page_bytes
    program = graph.objects[0]
    program_addr, top_addr, _ = [addr // page_bytes * page_bytes for addr in _SPACES[program.library.image.is_64]]
    objects: list[PlacedObject] = []
    notes: list[Note] = []
    taken = range(0)
    for number, (linked, prediction) in enumerate(zip(graph.objects, graph.predictions, strict=True)):
        areas = prediction.areas if prediction else ()
        first, past = (areas[0].pages.start * page_bytes, areas[-1].pages.stop * page_bytes) if areas else (0, 0)
        if number == 0:
            is_fixed = linked.library.image.type == ET_EXEC
            bias_addr = 0 if is_fixed else program_addr - first
            taken = range(bias_addr + first, bias_addr + past)
            if prediction is None:
                raise InputError(linked.path, next(note.detail for note in graph.notes if note.subject == linked.path))
            if not taken or taken.stop > top_addr:
                raise InputError(linked.path, "its segments do not fit into an address space")
        elif prediction is None or not areas:
            continue
        else:
            if top_addr - (past - first) < taken.stop and taken.start < top_addr:
                top_addr = taken.start
            bias_addr = top_addr - past
            if bias_addr + first < _LOWEST_ADDR:
                detail = "its segments do not fit beside those of the other objects: its cost is not known"
                notes.append(Note("file-unreadable", linked.path, detail))
                continue
            top_addr = bias_addr + first
        objects.append(PlacedObject(linked.path, prediction, linked.library.image, bias_addr))
    return objects, notes


def _start_mappings(program: PlacedObject, start: StartMemory, page_bytes: int) -> Iterator[tuple[Mapping, int]]:
    """Return the mappings that belong to no object, each with its private bytes, which lie at its end.

    Raises:
        InputError: Where the thread-local variables of the objects leave no room for the stack.
    """
    _, loader_addr, stack_end_addr = [addr // page_bytes * page_bytes for addr in _SPACES[program.image.is_64]]
    loader_end_addr = loader_addr + start.loader_bytes
    stack_addr = stack_end_addr - -(-max(_STACK_BYTES, start.stack_bytes) // page_bytes) * page_bytes
    # The heap has page tables of its own, wherever it is.
    heap_addr = loader_end_addr + _HEAP_GAP_BYTES
    if max(loader_end_addr, (heap_addr + start.heap_bytes) if start.heap_bytes else 0) > stack_addr:
        raise InputError(program.path, "the thread-local variables of its objects do not fit into an address space")
    loader = Mapping(loader_addr, loader_end_addr, "rw-p", 0, _DEVICE, 0, "[loader and thread block]")
    yield loader, start.loader_bytes
    yield Mapping(stack_addr, stack_end_addr, "rw-p", 0, _DEVICE, 0, "[stack]"), start.stack_bytes
    if start.heap_bytes:
        yield Mapping(heap_addr, heap_addr + start.heap_bytes, "rw-p", 0, _DEVICE, 0, "[heap]"), start.heap_bytes


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


def _counts(mapping: Mapping, pages: Sequence[PageRange]) -> MappingCounts:
    private_bytes = sum([page.end_addr - page.start_addr for page in pages])
    is_estimate = mapping.name.startswith("[")
    return MappingCounts(private_bytes, None, 0, 0, Evidence.ESTIMATED if is_estimate else Evidence.PREDICTED)


if TYPE_CHECKING:
    from footprint.model.page_map import PageMap


def predicted_audit(
    graph: DependencyGraph,
    files: Files,
    *,
    target: str,
    question: Question,
    constants: KernelConstants,
    host: dict[str, str],
    notes: tuple[Note, ...] = (),
    has_page_maps: bool = False,
) -> Audit:
    """Audit a program by its files.

    Raises:
        InputError: Where no process could have its segments.
        UsageError: For a model other than started copies.
    """
    if question.model not in {None, Model.EXEC}:
        raise UsageError(f"the {question.model} model needs a live process, not a file")
    page_bytes, layout = graph.page_bytes, lay_out_program(graph)
    memory, counts = MemoryMap("prediction", tuple(layout.mappings)), layout.counts()
    ranges = lay_out(memory, layout.images, page_bytes)
    kernel = _kernel(layout, page_bytes, constants)
    # Variables that nothing writes at start are rows as well: they may be written later, and two builds differ in them.
    rows = ledger_rows(ranges, counts, layout.pages, files, page_bytes, kernel, has_untouched=True)
    page_maps: tuple[PageMap, ...] = ()
    if has_page_maps:
        from footprint.attribution.page_maps import page_maps as map_pages  # noqa: PLC0415 # for a picture only

        page_maps = map_pages(ranges, counts, layout.pages, files, page_bytes)
    assumed = _assumed_row(layout.objects)
    if assumed is not None:
        rows = tuple(sorted((*rows, assumed), key=lambda row: -(row.bytes or 0)))
        counts.append(MappingCounts(assumed.bytes, None, 0, 0, Evidence.ESTIMATED))
    totals = _with_bounds(total_up(memory, counts, kernel), layout.objects)
    return Audit(
        target=target,
        pid=None,
        command="",
        source="prediction",
        is_live=False,
        mapping_count=len(layout.mappings) + _MORE_MAPPINGS,
        page_bytes=page_bytes,
        host=host,
        totals=totals,
        ledger=rows,
        projection=_projection(totals, rows, kernel, len(layout.mappings), question),
        notes=(*notes, *layout.notes, *constants.notes),
        page_maps=page_maps,
    )


def _kernel(layout: ProgramLayout, page_bytes: int, constants: KernelConstants) -> tuple[KernelCost, ...]:
    """Estimate what the kernel would spend."""
    mappings, pages = layout.mappings, layout.pages
    status = Status("", "", 1, _page_table_bytes(mappings, pages, page_bytes), has_memory=True)
    costs = kernel_costs(status, len(mappings) + _MORE_MAPPINGS, constants, mappings)
    # Counters would say which mappings are written; a prediction has none.
    written_bytes = sum(1 for mapping in mappings if pages[mapping.start_addr]) * constants.written_bytes
    return tuple(
        [
            KernelCost(
                cost.name, cost.size_bytes + (written_bytes if "objects" in cost.name else 0), Evidence.ESTIMATED
            )
            for cost in costs
        ]
    )


def _page_table_bytes(mappings: Sequence[Mapping], pages: Dict[int, Sequence[PageRange]], page_bytes: int) -> int:
    """Count the page tables for the pages that are written, and for the first and last page of each mapping."""
    touched = [range(addr, addr + 1) for mapping in mappings for addr in (mapping.start_addr, mapping.end_addr - 1)]
    touched += [range(span.start_addr, span.end_addr) for ranges in pages.values() for span in ranges]
    count, span_bytes = 0, page_bytes
    entry_count = page_bytes // _TABLE_ENTRY_BYTES
    # The top table is part of the constants of a process.
    while span_bytes * entry_count < 1 << _ADDRESS_BITS:
        span_bytes *= entry_count
        numbers = sorted([(span.start // span_bytes, (span.stop - 1) // span_bytes) for span in touched])
        reached = -1
        for first, last in numbers:
            count += max(0, last - max(first - 1, reached))
            reached = max(reached, last)
    return count * page_bytes


def _assumed_row(objects: Sequence[PlacedObject]) -> Row | None:
    """Return the row of the pages that the C library is assumed to write, where its own are not known."""
    for path, prediction, image, _ in objects:
        if prediction.assumed_pages:
            # The C library of a static program is a part of it, and can be measured in no other.
            is_static = image is objects[0].image
            name = "written by the first steps of the C library"
            return Row(
                owner=path,
                kind=MemoryKind.DATA,
                section=None,
                symbol=None,
                name=f"[{name}]" if is_static else f"[{name}: footprint doctor --calibrate]",
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


def _with_bounds(totals: Totals, objects: Sequence[PlacedObject]) -> Totals:
    """Return the totals with startup minimum and maximum; what is shared once a process runs is not known."""
    unknown = Total(None, Evidence.PREDICTED)
    minimum_bytes = sum(o.prediction.startup_min_bytes for o in objects)
    maximum_bytes = sum(o.prediction.startup_max_bytes for o in objects)
    return totals._replace(
        shared_once=unknown,
        cow_shared=unknown,
        startup_min=Total(minimum_bytes, weakest(o.prediction.evidence for o in objects)),
        startup_max=Total(maximum_bytes, Evidence.PREDICTED),
    )


def _projection(
    totals: Totals, rows: Sequence[Row], kernel: Sequence[KernelCost], mapping_count: int, question: Question
) -> Projection:
    """Compute the cost of started copies, and of one at its start and with every variable written."""
    projection = project_process(
        totals,
        rows,
        kernel,
        status=None,
        mapping_count=mapping_count,
        costs=lambda _status, _count: (),
        question=question,
    )
    started_bytes = projection.per_process_bytes
    written_bytes = started_bytes + (totals.startup_max.bytes or 0) - (totals.startup_min.bytes or 0)
    points = [
        Point(name, size_bytes, size_bytes * projection.count, Evidence.ESTIMATED)
        for name, size_bytes in (("just started", started_bytes), ("every variable written", written_bytes))
    ]
    return projection._replace(points=tuple(points))
