"""What constructors of libraries write before a program's own code runs, as it was measured once for each library.

A library was measured in a process that has only it and what it needs, so its figures hold in every process that has
it. Where the program, or a library before it, takes over what was measured, the figures are left out: another malloc
has another heap, and a variable that is taken over (by a copy relocation, too) lies in other pages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.object_prediction import WriteCause, with_written
from footprint.loader.system import Library

__all__ = ("ConstructorWrites", "with_constructors")


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
    graph: DependencyGraph, known: Mapping[str, ConstructorWrites], identify: Callable[[Library], str]
) -> DependencyGraph:
    """Add what constructors write to the predictions of a program.

    `known` has the measured libraries by build-id; `identify` returns the build-id of a file.
    """
    if not known or not graph.bindings.symbols:
        return graph
    identities = [identify(one.library) for one in graph.objects]
    allocator = _allocator(graph)
    found = [
        one
        for identity in identities[1:]
        if (one := known.get(identity))
        and one.page_bytes <= graph.page_bytes
        # A library that was measured with another malloc than that of the C library has written pages of it.
        and (allocator is None or identities[allocator] in one.pages)
    ]
    predictions = list(graph.predictions)
    for number, prediction in enumerate(predictions):
        pages = {
            page * one.page_bytes // graph.page_bytes for one in found for page in one.pages.get(identities[number], ())
        }
        if number and pages and prediction is not None:
            predictions[number] = with_written(prediction, WriteCause.CONSTRUCTOR, _kept(graph, number, pages))
    return replace(graph, predictions=tuple(predictions), heap_bytes=_heap_bytes(found, graph.page_bytes))


def _allocator(graph: DependencyGraph) -> int | None:
    """Return the object whose malloc all others use; None where it is that of the C library."""
    definitions = [(place, one) for place, one in enumerate(graph.bindings.symbols) if "malloc" in one.found]
    number = next((place for place, one in definitions if one.found["malloc"] not in one.canonical_plt_entries), None)
    if number is None or (graph.objects[number].library.linkage.soname or "").startswith("libc.so."):
        return None
    return number


def _kept(graph: DependencyGraph, number: int, pages: set[int]) -> set[int]:
    """Return the pages without those of variables that a library defines, and finds in another object."""
    if number >= len(graph.bindings.symbols):
        return pages
    symbols = graph.bindings.symbols[number]
    names = {
        reference.name
        for provider, places in graph.bindings.providers[number].items()
        if provider != number
        for place in places
        if (reference := symbols.references[place]).is_defined
    }
    areas = symbols.areas(graph.objects[number].library.image, names)
    size = graph.page_bytes
    return {
        page for page in pages if not any(one.start < (page + 1) * size and page * size < one.stop for one in areas)
    }


def _heap_bytes(found: Sequence[ConstructorWrites], page_bytes: int) -> int:
    """Return the bytes of the heap that constructors have written, in whole pages."""
    size_bytes = sum([one.heap_bytes for one in found])
    if not size_bytes:
        return 0
    size_bytes += max([one.heap_head_bytes for one in found])
    size_bytes -= sum([one.untouched_pages * one.page_bytes for one in found])
    return max(1, -(-size_bytes // page_bytes)) * page_bytes
