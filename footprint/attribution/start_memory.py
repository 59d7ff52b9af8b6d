"""The private memory of a process at its start that belongs to no object: the stack, and what the loader allocates.

The loader of glibc allocates a few blocks for each object, and never frees them. Their sizes follow from the files: the
version table grows with the versions of an object, the names with its path. Programs of one size in objects differ by
a factor of 1.5 there, so a mean per object fails for programs with many objects.

Source: elf/dl-object.c, elf/dl-deps.c, elf/dl-version.c, elf/dl-lookup.c, elf/dl-minimal-malloc.c of glibc 2.36. The
figures were compared with 779 programs of Debian 12 (x86-64, 3 to 70 objects), held where their constructors are about
to run: the loader's part is within 2.2 pages of each, its standard deviation is 0.4 pages. The stack has 2 to 4 pages.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.startup_writes import WriteCause
from footprint.elf.abi import PT_INTERP, PT_TLS
from footprint.loader.target import Libc
from footprint.members import NamedTuple

_STACK_BYTES: Final = 12 * 1024
# That of musl, and of programs without a C library, whose first steps have small frames.
_SMALL_STACK_BYTES: Final = 8 * 1024
# The thread block of a static program of glibc: `struct pthread`, room for libraries that are opened later, alignment.
_STATIC_BLOCK_BYTES: Final = 2_304 + 1_664 + 64
# The first thread of musl has its block in musl's .bss, where thread-local variables fit into its 16 words.
_MUSL_TLS_BYTES: Final = 128
_MUSL_BLOCK_BYTES: Final = 200
# What the loader has once: search paths, the head of the thread block, the table of thread-local blocks.
_LOADER_BYTES: Final = 4_700
# `struct link_map` with its soname, its entry in the list of search scopes, and its entry for unwinding.
_LINK_MAP_BYTES: Final = 1_340
_NEED_BYTES: Final = 16  # two pointers for each direct need
_VERSION_BYTES: Final = 24  # `struct r_found_version`, for each index of a version
# The table of unique symbols (STB_GNU_UNIQUE) has one of these sizes, and grows when it is three quarters full. The
# loader does not free the smaller one.
_UNIQUE_TABLE_SIZES: Final = (31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521)
_UNIQUE_BYTES: Final = 32
# A block that does not fit into the rest of a page begins a new page: 6 % are lost.
_LOSS_PERCENT: Final = 6


class StartMemory(NamedTuple):
    """The private memory of a process at its start that belongs to no object, in whole pages.

    Attributes:
        stack_bytes: The stack.
        loader_bytes: What the loader allocates, and the thread block.
        heap_bytes: What constructors allocate and write, where `doctor --calibrate` measured them.
    """

    stack_bytes: int
    loader_bytes: int
    heap_bytes: int = 0


def start_memory(graph: DependencyGraph) -> StartMemory:
    """Estimate the stack, and what the loader allocates for the objects of a program and for their thread-locals."""
    if not _has_glibc_loader(graph):
        return _without_glibc_loader(graph)
    blocks_bytes = 0
    unique: set[str] = set()
    for number, (linked, prediction) in enumerate(zip(graph.objects, graph.predictions, strict=True)):
        if prediction is None:
            continue
        version_count = 0
        # The loader that no object needs has no symbols here.
        if number < len(graph.bindings.symbols):
            symbols = graph.bindings.symbols[number]
            version_count = max(symbols.versions.by_index, default=-1) + 1
            unique |= symbols.unique & symbols.requested.keys()
        # The loader keeps the path, and the folder that it is in.
        blocks_bytes += _LINK_MAP_BYTES + 2 * len(linked.path)
        blocks_bytes += _NEED_BYTES * len(graph.needed[number]) + _VERSION_BYTES * version_count
    blocks_bytes += blocks_bytes * _LOSS_PERCENT // 100
    loader_bytes = _LOADER_BYTES + blocks_bytes + _unique_tables_bytes(len(unique)) + _thread_block_bytes(graph)
    return _in_pages(graph, _STACK_BYTES, loader_bytes)


def _has_glibc_loader(graph: DependencyGraph) -> bool:
    """Return whether a loader starts the program that is not musl's: others are taken to be like glibc's."""
    is_static = graph.objects[0].library.image.segment(PT_INTERP) is None
    return graph.link_map.libc is not Libc.MUSL and not is_static


def _without_glibc_loader(graph: DependencyGraph) -> StartMemory:
    """Estimate the same for a static program, and for one of musl: the lists of its loader are in memory of objects."""
    program = graph.predictions[0]
    if program is not None and WriteCause.IRELATIVE in program.causes:
        return _in_pages(graph, _STACK_BYTES, _STATIC_BLOCK_BYTES + program.tls_bytes)
    tls_bytes = sum([prediction.tls_bytes for prediction in graph.predictions if prediction])
    block_bytes = _MUSL_BLOCK_BYTES + _thread_block_bytes(graph) if tls_bytes > _MUSL_TLS_BYTES else 0
    # The first page of its heap describes the blocks.
    heap_bytes = graph.page_bytes if graph.objects[0].library.image.segment(PT_INTERP) else 0
    return _in_pages(graph, _SMALL_STACK_BYTES, heap_bytes + block_bytes)


def _in_pages(graph: DependencyGraph, *sizes_bytes: int) -> StartMemory:
    stack_bytes, loader_bytes = [-(-size // graph.page_bytes) * graph.page_bytes for size in sizes_bytes]
    return StartMemory(stack_bytes, loader_bytes, graph.heap_bytes)


def _unique_tables_bytes(count: int) -> int:
    """Return the bytes of the table for some unique symbols, and of the smaller tables that it had before."""
    size_bytes = 0
    for size in _UNIQUE_TABLE_SIZES if count else ():
        size_bytes += size * _UNIQUE_BYTES
        if count * 4 < size * 3:
            break
    return size_bytes


def _thread_block_bytes(graph: DependencyGraph) -> int:
    """Return what the first thread has of thread-local variables: glibc's loader writes all of them.

    musl and the start-up code of static programs write only those that are not zero.
    """
    predicted = zip(graph.objects, graph.predictions, strict=True)
    if graph.link_map.libc is Libc.GLIBC:
        return sum([p.tls_bytes for _, p in predicted if p])
    segments = [linked.library.image.segment(PT_TLS) for linked, p in predicted if p]
    return sum([segment.file_bytes for segment in segments if segment])
