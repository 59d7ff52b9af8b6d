"""Nameless memory that belongs to a runtime, a sanitizer or an allocator: its place and the mapped files tell which.

Sources: runtime/malloc.go of Go 1.26; os_linux.cpp, compressedOops.hpp and metaspace.cpp of OpenJDK 17 and 25;
asan_mapping.h, tsan_platform.h and sanitizer_allocator_primary64.h of LLVM 19; pages.c of jemalloc 5.3; os.c of
mimalloc 2.0; platform-linux.cc of V8 11.3 and 13.6; erl_mseg.c of Erlang/OTP 25; zend_alloc.c of PHP 8.2.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from footprint.attribution.owned_range import LoadedObject
from footprint.elf.abi import ET_EXEC, PT_INTERP
from footprint.elf.image import Image
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern
from footprint.process.mappings import Mapping

JEMALLOC_HEAP: Final = "[jemalloc heap]"
MIMALLOC_HEAP: Final = "[mimalloc heap]"
ALLOCATOR_HEAPS: Final = {JEMALLOC_HEAP: "jemalloc", MIMALLOC_HEAP: "mimalloc"}
"""The memory of allocators whose structures are not read, and their names."""

_GO_SECTIONS: Final = frozenset({".go.buildinfo", ".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid"})
# Go reserves its heap in such pieces, aligned to their size: 64 bits, 32 bits.
_GO_ARENA_BYTES: Final = {True: 64 << 20, False: 4 << 20}
# Below this address the compressed pointers of a JVM reach the heap without a base; nothing else is placed there.
_JAVA_HEAP_END: Final = 32 << 30
# Where a heap ends that fits below it; the space for classes begins there, or ends lower.
_JAVA_SMALL_HEAP_END: Final = 4 << 30
# CompressedClassSpaceSize, where nobody sets it.
_JAVA_CLASSES_BYTES: Final = 1 << 30
_SANITIZER: Final = lazy_pattern(r"lib(?:clang_rt\.)?(asan|hwasan|msan|tsan)\b.*\.so.*")
_INIT: Final = {b"\0__asan_init\0": "asan", b"\0__tsan_init\0": "tsan", b"\0__msan_init\0": "msan"}
_NAMES: Final = (".dynstr", ".strtab")
_TEXTS: Final = (*_NAMES, ".rodata")
_PIECE_BYTES: Final = 1 << 17
# A sanitizer reserves terabytes; a program without one has no mapping like that.
_SANITIZER_BYTES: Final = 64 << 30


class _Allocator(NamedTuple):
    """An allocator that maps its memory without reserve (`nr`), which hardly any program does by itself.

    Attributes:
        owner: What its memory is called.
        library: How the names of its library begin.
        texts: A symbol, and the beginning of its messages, which a stripped file has, too.
        step_bytes: Its mappings start at a multiple of this.
    """

    owner: str
    library: str
    texts: tuple[bytes, ...]
    step_bytes: int


_ALLOCATORS: Final = (
    # The symbols have any prefix: `mallctl`, `je_mallctl`, `_rjem_mallctl`.
    _Allocator(JEMALLOC_HEAP, "libjemalloc", (b"mallctlnametomib\0", b"<jemalloc>: "), 4096),
    _Allocator(MIMALLOC_HEAP, "libmimalloc", (b"\0mi_malloc\0", b"\0mimalloc: "), 4 << 20),
)
# A symbol, and a line of its statistics, which a stripped file has, too.
_TCMALLOC_TEXTS: Final = (b"\0tc_malloc\0", b" Bytes in use by application\n")


class _Collector(NamedTuple):
    """A runtime that maps the memory of its garbage collector or allocator in a way of its own.

    Attributes:
        owner: What its memory is called.
        symbol: A symbol that the program exports, or one of its libraries.
        step_bytes: Its mappings begin at multiples of this.
        flags: Flags that they have; without any of these, they have no `nr` and `nh`, as all that mmap(2) makes.
        ends_at_step: Whether they end at multiples of it, too.
    """

    owner: str
    symbol: bytes
    step_bytes: int
    flags: frozenset[str] = frozenset()
    ends_at_step: bool = True


_COLLECTORS: Final = (
    # base/platform/platform-linux.cc: not copied by fork(2); up to V8 11, without reserve as well.
    _Collector("[v8 heap]", b"\0_ZN2v87Isolate", 4096, frozenset({"dc"})),
    _Collector("[beam heap]", b"\0enif_make_atom\0", 256 << 10),
    # Large blocks begin at a step, too, and end at any page; the kernel joins what lies side by side.
    _Collector("[php heap]", b"\0_emalloc\0", 2 << 20, ends_at_step=False),
)
# Where no flags are known, memory that starts and ends so is taken for that of such an allocator.
_ALLOCATOR_STEP_BYTES: Final = 1 << 20
_GLIBC_ARENA_BYTES: Final = 64 << 20
# Both begin with more. V8 maps pages of 256 KiB without reserve; its programs are large, and not searched for texts.
_LEAST_CHUNK_BYTES: Final = 2 << 20


def has_go(image: Image) -> bool:
    """Return whether a file has the runtime of Go, by its sections."""
    return any(section.name in _GO_SECTIONS for section in image.sections)


def runtime_owners(mappings: Sequence[Mapping], objects: Sequence[LoadedObject | None]) -> dict[int, str]:
    """Find the mappings that a runtime, sanitizer or allocator made for itself: their index and their owner."""
    loaded = dict.fromkeys(loaded for loaded in objects if loaded is not None)
    names = {item.key.name.rsplit("/", 1)[-1] for item in loaded}
    images = [item.image for item in loaded if item.image is not None]
    owners: dict[int, str] = {}
    if "libjvm.so" in names:
        has_archive = any(mapping.name.endswith(".jsa") for mapping in mappings)
        classes = _java_classes(mappings) if has_archive else _java_classes_above_heap(mappings)
        heap = {index for run in _runs(mappings) for index in _java_heap(mappings, run)} - classes
        owners.update(dict.fromkeys(heap, "[java heap]"))
    go = next((image for image in images if has_go(image)), None)
    if go is not None:
        arena_bytes = _GO_ARENA_BYTES[go.is_64]
        owners.update({index: "[go heap]" for run in _runs(mappings) for index in _go_heap(mappings, run, arena_bytes)})
    if any(mapping.end_addr - mapping.start_addr >= _SANITIZER_BYTES for mapping in mappings):
        sanitizer = _sanitizer(names, images)
        if sanitizer is not None:
            for run in _runs(mappings):
                owners.update(_sanitizer_memory(mappings, run, sanitizer))
    # Tens of thousands of mappings have few different flags.
    flags = {mapping.vm_flags for mapping in mappings} if images else set()
    for collector in _COLLECTORS if images else ():
        pages = [index for index in _collected(mappings, flags, collector) if index not in owners]
        # Only programs that have such mappings are searched for the symbol.
        if pages and any(_has_text(image, (collector.symbol,), (".dynstr",)) for image in images):
            owners.update(dict.fromkeys(pages, collector.owner))
    chunks = [index for index in _chunks(mappings) if index not in owners]
    is_large = any(mappings[index].size_bytes >= _LEAST_CHUNK_BYTES for index in chunks)
    allocator = _allocator(loaded) if is_large else None
    if allocator is not None:
        owners.update(
            {index: allocator.owner for index in chunks if not mappings[index].start_addr % allocator.step_bytes}
        )
    return owners


def _collected(mappings: Sequence[Mapping], flags: Collection[str | None], collector: _Collector) -> Iterator[int]:
    """Find the mappings that are made as a runtime makes them; none where the flags are not known."""
    is_made_so = collector.flags.issubset if collector.flags else {"nr", "nh"}.isdisjoint
    fitting = {text for text in flags if text is not None and is_made_so(_flags(text))}
    for index, mapping in enumerate(mappings) if fitting else ():
        if mapping.start_addr % collector.step_bytes or mapping.vm_flags not in fitting:
            continue
        is_nameless = not (mapping.name or mapping.inode or mapping.is_shared)
        before = mappings[index - 1] if index else mapping
        is_stack = before.end_addr == mapping.start_addr and before.permissions == "---p"  # behind its guard
        has_end = not (collector.ends_at_step and mapping.end_addr % collector.step_bytes)
        if is_nameless and has_end and (collector.flags or (mapping.is_mapped_writable and not is_stack)):
            yield index


def flags_of(mapping: Mapping) -> frozenset[str]:
    """Return the flags of a mapping (`VmFlags`); none where they are not known."""
    return _flags(mapping.vm_flags or "")


@lru_cache(maxsize=256)  # of 30,000 mappings most have the same flags
def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _runs(mappings: Sequence[Mapping]) -> Iterator[range]:
    """Return the runs of private mappings without file and name, each directly behind the other."""
    first = 0
    for index, mapping in enumerate(mappings):
        is_nameless = not mapping.name and not mapping.inode and not mapping.is_shared
        if not is_nameless or (index > first and mappings[index - 1].end_addr != mapping.start_addr):
            if first < index:
                yield range(first, index)
            first = index if is_nameless else index + 1
    if first < len(mappings):
        yield range(first, len(mappings))


def _java_heap(mappings: Sequence[Mapping], run: range) -> Iterator[int]:
    for index in run:
        mapping = mappings[index]
        if mapping.end_addr <= _JAVA_HEAP_END and mapping.permissions[2] != "x":
            yield index


def _java_classes(mappings: Sequence[Mapping]) -> set[int]:
    """Find what lies around the classes of an archive, which begin it: space for more classes, not the heap.

    The heap has the objects of the archive, which follow in the file.
    """
    firsts: dict[str, int] = {}
    for index, mapping in enumerate(mappings):
        if mapping.name.endswith(".jsa") and mapping.offset is not None:
            first = firsts.setdefault(mapping.name, index)
            if mapping.offset < (mappings[first].offset or 0):
                firsts[mapping.name] = index
    classes: set[int] = set()
    for first in firsts.values():
        start, end = first, first + 1
        while start and mappings[start - 1].end_addr == mappings[start].start_addr:
            start -= 1
        while end < len(mappings) and mappings[end].start_addr == mappings[end - 1].end_addr:
            end += 1
        files = [index for index in range(start, end) if mappings[index].name]
        # A heap directly beside it cannot be told apart.
        if files[-1] - files[0] == len(files) - 1:
            classes.update(range(start, end))
    return classes


def _java_classes_above_heap(mappings: Sequence[Mapping]) -> set[int]:
    """Find the space for classes of a JVM without an archive of them: directly above its heap, and its end is free.

    So are OpenJDK 8 and 11, and later ones without an archive, such as those that jlink makes. Where all of the heap is
    in use, the first classes share a mapping with it, which stays the heap's.
    """
    classes: set[int] = set()
    for run in _runs(mappings):
        end_addr, is_free = mappings[run[-1]].end_addr, mappings[run[-1]].permissions == "---p"
        start_addr = end_addr - _JAVA_CLASSES_BYTES
        first = next((m for m in map(mappings.__getitem__, run) if m.start_addr <= start_addr < m.end_addr), None)
        # Without compressed class pointers there is no such space, and a heap of generations has free parts as well.
        is_in_reach = end_addr <= _JAVA_HEAP_END and end_addr != _JAVA_SMALL_HEAP_END
        if is_in_reach and is_free and first is not None and first.is_mapped_writable:
            classes.update([index for index in run if mappings[index].start_addr >= start_addr])
    return classes


def _go_heap(mappings: Sequence[Mapping], run: range, arena_bytes: int) -> range:
    """Return a run that begins and ends as arenas do, else an empty one. Go reserves with no flag, glibc with `nr`."""
    ends = mappings[run[0]].start_addr, mappings[run[-1]].end_addr
    is_arena = not any(addr % arena_bytes for addr in ends)
    has_other = any(flags_of(mappings[index]) & {"nr", "nh"} for index in run)
    return run if is_arena and not has_other else range(0)


def _sanitizer(names: set[str], images: Sequence[Image]) -> str | None:
    """Find the sanitizer of a program: its library, or the symbol of the one that was linked into a file."""
    for name in sorted(names):
        library = _SANITIZER.fullmatch(name)
        if library is not None:
            return library.group(1)
    # Of most programs all symbols are looked for at once, and none is there.
    linked = [image for image in images if _has_text(image, (*_INIT,), _NAMES)]
    return next(
        (name for image in linked for symbol, name in _INIT.items() if _has_text(image, (symbol,), _NAMES)), None
    )


def _has_text(image: Image, texts: Sequence[bytes], sections: Sequence[str]) -> bool:
    """Return whether one of some texts is in one of some sections of a file, by pieces; a cut file has none."""
    try:
        contents = [image.section_bytes(section) for section in image.sections if section.name in sections]
    except InputError:
        return False
    starts = ((content, start) for content in contents for start in range(0, len(content), _PIECE_BYTES))
    most_bytes = _PIECE_BYTES + max(map(len, texts))
    pieces = (bytes(raw[start : start + most_bytes]) for raw, start in starts)
    return any(text in piece for piece in pieces for text in texts)


def _chunks(mappings: Sequence[Mapping]) -> Iterator[int]:
    """Find the mappings that can be those of an allocator: nameless, writable, without reserve, no arena of glibc."""
    for index, mapping in enumerate(mappings):
        if mapping.name or mapping.inode or mapping.is_shared or mapping.permissions[:3] != "rw-":
            continue
        if mapping.vm_flags is None:
            is_chunk = not (mapping.start_addr % _ALLOCATOR_STEP_BYTES or mapping.end_addr % _ALLOCATOR_STEP_BYTES)
        else:
            is_chunk = "nr" in flags_of(mapping)
        behind = mappings[index + 1] if index + 1 < len(mappings) else None
        has_rest = behind is not None and behind.start_addr == mapping.end_addr and behind.permissions == "---p"
        if is_chunk and not (has_rest and not mapping.start_addr % _GLIBC_ARENA_BYTES):
            yield index


def _allocator(loaded: Iterable[LoadedObject]) -> _Allocator | None:
    """Find the allocator of a process: its library, or the program that it was linked into."""
    images = []
    for item in loaded:
        name = item.key.name.rsplit("/", 1)[-1]
        for allocator in _ALLOCATORS:
            if name.startswith(allocator.library):
                return allocator
        images.append(item.image)
    programs = _programs(images)
    return next((a for image in programs for a in _ALLOCATORS if _has_text(image, a.texts, _TEXTS)), None)


def has_tcmalloc(images: Iterable[Image | None]) -> bool:
    """Return whether tcmalloc is linked into the program among the files of a process, which are in load order.

    It takes its memory from brk(2), so nothing of its mappings tells.
    """
    return any(_has_text(image, _TCMALLOC_TEXTS, _TEXTS) for image in _programs(images))


def _programs(images: Iterable[Image | None]) -> list[Image]:
    # A static program that can be moved has no interpreter, and no object is mapped before it.
    return [
        image
        for place, image in enumerate(images)
        if image is not None and (place == 0 or image.type == ET_EXEC or image.segment(PT_INTERP) is not None)
    ]


def _sanitizer_memory(mappings: Sequence[Mapping], run: range, sanitizer: str) -> Iterator[tuple[int, str]]:
    """Find the shadow, and what the allocator reserved, in a run."""
    size_bytes = mappings[run[-1]].end_addr - mappings[run[0]].start_addr
    shadows = {index for index in run if _is_shadow(mappings[index])}
    is_heap = size_bytes >= _SANITIZER_BYTES
    for index in run:
        if index in shadows:
            yield index, f"[{sanitizer} shadow]"
        elif is_heap:
            is_gap = not mappings[index].is_mapped_writable and bool({index - 1, index + 1} & shadows)
            yield index, f"[{sanitizer} shadow]" if is_gap else f"[{sanitizer} heap]"


def _is_shadow(mapping: Mapping) -> bool:
    """Return whether memory is mapped as shadow is: without reserve and huge pages, or too large for anything else."""
    if not mapping.is_mapped_writable:
        return False
    return flags_of(mapping) >= {"nr", "nh"} or mapping.size_bytes >= _SANITIZER_BYTES
