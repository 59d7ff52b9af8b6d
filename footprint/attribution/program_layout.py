"""Where Linux places a program that was not started: its objects, what the loader allocates, and the stack.

Libraries are placed as the loader does, from the top down. The kernel draws the addresses of a process by chance from
wide spans; here they lie in the middle of these.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from footprint.attribution.counters import MappingCounts
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.object_prediction import Area, ObjectPrediction
from footprint.attribution.start_memory import StartMemory, start_memory
from footprint.elf.abi import ET_EXEC, PF_W, PF_X
from footprint.elf.image import Image
from footprint.errors import InputError, Note
from footprint.members import NamedTuple
from footprint.model.row import Evidence
from footprint.process.mapped_files import FileKey
from footprint.process.mappings import Mapping
from footprint.process.pages import PageRange


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
