"""What constructors of libraries write before a program's own code runs, as it was measured once for each library.

A library was measured in a process that has only it and what it needs, so its figures hold in every process that has
it. Where the program, or a library before it, takes over what was measured, the figures are left out: another malloc
has another heap, and a variable that is taken over (by a copy relocation, too) lies in other pages.
"""

from collections.abc import Callable, Mapping, Sequence

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.object_prediction import with_written
from footprint.attribution.startup_writes import WriteCause
from footprint.loader.system import Library
from footprint.members import NamedTuple, replace


class ConstructorWrites(NamedTuple):
    """What the constructors of a library write.

    Attributes:
        page_bytes: The size of the pages below.
        pages: The pages that they and those of what the library needs have written, by the build-id of the object.
        heap_bytes: By how much the heap is longer than for what the library needs.
        untouched_pages: The pages of these bytes that nothing has written.
        heap_head_bytes: What malloc keeps for itself at the beginning of the heap.
    """

    page_bytes: int
    pages: Mapping[str, tuple[int, ...]]
    heap_bytes: int
    untouched_pages: int
    heap_head_bytes: int


def with_constructors(
    graph: DependencyGraph, measured: Mapping[str, ConstructorWrites], identify: Callable[[Library], str]
) -> DependencyGraph:
    """Add what constructors write to the predictions of a program.

    `measured` has the measured libraries by build-id; `identify` returns the build-id of a file.
    """
    if not measured or not graph.bindings.symbols:
        return graph
    identities = [identify(linked.library) for linked in graph.objects]
    allocator = _allocator(graph)
    writes = [
        library_writes
        for identity in identities[1:]
        if (library_writes := measured.get(identity))
        and library_writes.page_bytes <= graph.page_bytes
        # A library that was measured with another malloc than that of the C library has written pages of it.
        and (allocator is None or identities[allocator] in library_writes.pages)
    ]
    predictions = list(graph.predictions)
    for number, prediction in enumerate(predictions):
        pages = {
            page * write.page_bytes // graph.page_bytes
            for write in writes
            for page in write.pages.get(identities[number], ())
        }
        if number and pages and prediction is not None:
            predictions[number] = with_written(prediction, WriteCause.CONSTRUCTOR, _kept(graph, number, pages))
    return replace(graph, predictions=tuple(predictions), heap_bytes=_heap_bytes(writes, graph.page_bytes))


def _allocator(graph: DependencyGraph) -> int | None:
    """Return the object whose malloc all others use; None where it is that of the C library."""
    definitions = [(place, symbol) for place, symbol in enumerate(graph.bindings.symbols) if "malloc" in symbol.defined]
    number = next((place for place, s in definitions if s.defined["malloc"] not in s.canonical_plt_entries), None)
    if number is None or (graph.objects[number].library.linkage.soname or "").startswith("libc.so."):
        return None
    return number


def _kept(graph: DependencyGraph, number: int, pages: set[int]) -> set[int]:
    """Return the pages without those of variables that a library defines, and finds in another object."""
    if number >= len(graph.bindings.symbols):
        return pages
    symbols = graph.bindings.symbols[number]
    names = {
        symbols.reference_names[place]
        for provider, places in graph.bindings.providers[number].items()
        if provider != number
        for place in places
        if symbols.kind(place).is_defined
    }
    areas = symbols.areas(graph.objects[number].library.image, names)
    size = graph.page_bytes
    return {
        page for page in pages if not any(area.start < (page + 1) * size and page * size < area.stop for area in areas)
    }


def _heap_bytes(writes: Sequence[ConstructorWrites], page_bytes: int) -> int:
    """Return the bytes of the heap that constructors have written, in whole pages."""
    size_bytes = sum([write.heap_bytes for write in writes])
    if not size_bytes:
        return 0
    size_bytes += max([write.heap_head_bytes for write in writes])
    size_bytes -= sum([write.untouched_pages * write.page_bytes for write in writes])
    return max(1, -(-size_bytes // page_bytes)) * page_bytes
