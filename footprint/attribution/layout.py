"""The owner of each mapping of a process: an object by its load address, its .bss, heap, stacks, shared memory.

The program headers decide where the file can be read. Where it cannot, the place beside a known mapping decides, and
the range says so (`Attribution.ADJACENCY`).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Final

from footprint.attribution.memory_files import memory_file_owner
from footprint.attribution.owned_range import LoadedObject, OwnedRange, RangeOwner, divide
from footprint.attribution.runtimes import JEMALLOC_HEAP, MIMALLOC_HEAP, flags_of, runtime_owners
from footprint.elf.abi import ET_EXEC, PT_GNU_RELRO
from footprint.elf.image import Image
from footprint.model.row import NAMELESS, Attribution, MemoryKind
from footprint.process.mappings import MEMORY_FILES, NO_STACKS, FileKey, Mapping, MemoryMap, ThreadStacks, file_key
from footprint.ranges import Claim

_MIB: Final = 1 << 20
# glibc reserves an arena aligned to its largest size, and makes it writable from the bottom as it grows.
_ARENA_BYTES: Final = 64 * _MIB
# Programs have four to ten loadable segments. All are compared with every mapping of the file.
_MOST_LOADS: Final = 128
# The largest page of Linux on usual processors: a segment is mapped up to the end of its last page.
_LARGEST_PAGE_BYTES: Final = 1 << 16
# How far the kernel moves the heap from the end of the program (arch_randomize_brk).
_HEAP_GAP_BYTES_64: Final = 1 << 30
_HEAP_GAP_BYTES_32: Final = 32 * _MIB
_USUAL_STACK_BYTES: Final = 8 * _MIB
# A stack is not larger (the JVM allows as much), nor what is behind an arena and merged with it: the guard of a stack.
_MOST_STACK_BYTES: Final = 1 << 30
_MOST_GUARD_BYTES: Final = _MIB
# The .bss of a library without its file: that of libcrypt has 156 KiB, arenas of Python have 256. A larger one is known
# only behind as much data in proportion.
_MOST_BSS_BYTES: Final = 192 << 10
_MOST_BSS_OF_DATA: Final = 16
_LEAST_ALIKE: Final = 3  # mappings behind guards that are stacks by their size
ARENAS: Final = "[malloc arenas]"
THREAD_STACKS: Final = "[thread stacks]"
_THREAD_STACK: Final = RangeOwner(THREAD_STACKS, MemoryKind.STACK, Attribution.STACK_POINTER)
_START: Final = itemgetter(0)
_KERNEL_NAMES: Final = frozenset(
    {
        *("[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[gate]", "[uprobes]"),
        *("[sigpage]", "[vectors]", "[kuser_helpers]"),
    }
)


def lay_out(
    memory: MemoryMap, images: Dict[FileKey, Image], page_bytes: int, thread_stacks: ThreadStacks = NO_STACKS
) -> tuple[OwnedRange, ...]:
    """Find the owner of each mapping, and cut mappings of several owners into ranges.

    `images` are the ELF files among the mapped files that could be read, `thread_stacks` what the threads beside the
    main one say.
    """
    mappings = memory.mappings
    objects = _objects(mappings, images)
    owner_of = _Owners(memory, objects, thread_stacks.pointers)
    bss = _bss_claims(mappings, objects, page_bytes)
    stacks: list[Claim[RangeOwner | None]] = [Claim(start, end, _THREAD_STACK) for start, end in thread_stacks.blocks]
    parts: list[OwnedRange] = []
    for index, mapping in enumerate(mappings):
        claims = _within(bss, mapping) if bss and objects[index] is None and _may_hold_bss(mapping) else []
        own_stacks = _within(stacks, mapping) if stacks and _may_hold_stacks(mapping) else []
        claims += own_stacks
        if mapping.size_bytes == 0 or not claims:
            part = owner_of(index, mapping, objects[index])
            if part.loaded is None and part.owner != ARENAS:
                parts.append(part)
            else:
                parts.extend(_limited(part))
            continue
        rest = owner_of(index, mapping, None)
        if own_stacks and rest.owner == THREAD_STACKS and "nh" not in flags_of(mapping):
            rest = rest._replace(owner=NAMELESS, kind=MemoryKind.ANONYMOUS, attribution=Attribution.NONE)
        parts += divide(rest, claims)
    return tuple(parts)


def has_too_many_segments(image: Image) -> bool:
    """Return whether a file has more loadable segments than any program: then its load address is not computed."""
    return len(image.loads) > _MOST_LOADS


def _limited(part: OwnedRange) -> Iterable[OwnedRange]:
    """Cut off what is beyond the end of an arena or of all segments of a file."""
    if part.owner != ARENAS or part.mapping.is_mapped_writable:
        return _within_segments(part)
    end_addr = -(-part.start_addr // _ARENA_BYTES) * _ARENA_BYTES
    if part.end_addr <= end_addr + _MOST_GUARD_BYTES:
        return (part,)
    beyond = OwnedRange(part.mapping, end_addr, part.end_addr, NAMELESS, MemoryKind.ANONYMOUS, Attribution.NONE, None)
    return (part._replace(end_addr=end_addr), beyond)


def _within_segments(part: OwnedRange) -> Iterable[OwnedRange]:
    """Cut off the addresses beyond all segments of the file: they belong to the file, but to no section."""
    loaded, start, end = part.loaded, part.start_addr, part.end_addr
    if loaded is None or loaded.image is None or not _is_in_use(part.mapping) or has_too_many_segments(loaded.image):
        return (part,)
    vaddrs = loaded.image.vaddrs
    lowest, highest = (loaded.bias_addr + vaddrs[0], loaded.bias_addr + vaddrs[1]) if vaddrs else (start, end)
    first = min(max(start, lowest // _LARGEST_PAGE_BYTES * _LARGEST_PAGE_BYTES), end)
    past = max(min(end, -(-highest // _LARGEST_PAGE_BYTES) * _LARGEST_PAGE_BYTES), first)
    if (first, past) == (start, end):
        return (part,)
    beyond = LoadedObject(loaded.key, None, 0)
    pieces = ((start, first, beyond), (first, past, loaded), (past, end, beyond))
    return [part._replace(start_addr=a, end_addr=b, loaded=owner) for a, b, owner in pieces if a < b]


def _within(claims: Sequence[Claim[RangeOwner | None]], mapping: Mapping) -> list[Claim[RangeOwner | None]]:
    """Return the claims, which are in ascending order, that reach into a mapping."""
    first = max(0, bisect_right(claims, mapping.start_addr, key=_START) - 1)
    past = bisect_left(claims, mapping.end_addr, key=_START)
    return [claim for claim in claims[first:past] if claim.end > mapping.start_addr]


def _may_hold_stacks(mapping: Mapping) -> bool:
    """Return whether the stack of a thread can lie in a mapping: in memory that has no name of another use."""
    is_private = mapping.is_mapped_writable and not mapping.is_shared and file_key(mapping) is None
    return is_private and not mapping.name.startswith(("[heap]", "[stack]"))


def _is_in_use(mapping: Mapping) -> bool:
    """Return whether a mapping loads a file. Debuggers, for instance, map files only to read them."""
    return mapping.is_mapped_writable or mapping.permissions[2] == "x"


def _may_hold_bss(mapping: Mapping) -> bool:
    """Return whether .bss can lie in a mapping without file. The kernel may merge it with a heap behind it."""
    return not mapping.is_shared and (not mapping.name or mapping.name[0] == "[")


def _objects(mappings: tuple[Mapping, ...], images: Dict[FileKey, Image]) -> list[LoadedObject | None]:
    """Return the object of each mapping, with its load address; None for mappings without file."""
    current: dict[FileKey, LoadedObject] = {}
    loaded_objects: list[LoadedObject | None] = []
    file: tuple[object, ...] = ()
    key, image = None, None
    for mapping in mappings:
        # The mappings of a file mostly lie side by side.
        if file != (file := mapping[4:7]):
            key = file_key(mapping)
            image = None if key is None else images.get(key)
        if key is None:
            loaded_objects.append(None)
            continue
        loaded = current.get(key)
        if image is None or mapping.offset is None:
            loaded = loaded or LoadedObject(key, None, 0)
        elif has_too_many_segments(image):
            loaded = loaded or LoadedObject(key, image, 0)
        else:
            biases = list(_biases(mapping, image))
            if not biases:
                # The file is mapped to be read, not loaded: its vaddrs say nothing about these addresses.
                loaded_objects.append(LoadedObject(key, None, 0))
                continue
            if loaded is None or loaded.bias_addr not in biases:
                loaded = LoadedObject(key, image, biases[0])
        current[key] = loaded
        loaded_objects.append(loaded)
    return loaded_objects


def _biases(mapping: Mapping, image: Image) -> Iterable[int]:
    """Return the load biases at which this mapping is part of the image; usually one.

    Two segments may share a page of the file. Then both are possible, and the other mappings of the object decide.
    """
    offset = mapping.offset or 0
    for segment in image.loads:
        # Offset and vaddr of a segment are congruent modulo the page size, so one page gives the bias.
        if segment.offset - offset < mapping.size_bytes and offset < segment.offset + max(segment.file_bytes, 1):
            bias_addr = mapping.start_addr - offset - (segment.vaddr - segment.offset)
            if bias_addr == 0 or image.type != ET_EXEC:
                yield bias_addr


def _bss_claims(
    mappings: Iterable[Mapping], objects: Iterable[LoadedObject | None], page_bytes: int
) -> list[Claim[RangeOwner | None]]:
    """Return the addresses that the program headers of each object claim behind its file pages (p_memsz > p_filesz)."""
    claims: list[Claim[RangeOwner | None]] = []
    in_use = [loaded for mapping, loaded in zip(mappings, objects, strict=True) if loaded and _is_in_use(mapping)]
    for loaded in dict.fromkeys(in_use):
        for segment in loaded.image.loads if loaded.image and not has_too_many_segments(loaded.image) else ():
            start = loaded.bias_addr + segment.vaddr
            file_end = start + segment.file_bytes
            begin = -(-file_end // page_bytes) if segment.file_bytes else start // page_bytes
            end = -(-(start + segment.memory_bytes) // page_bytes)
            if begin < end:
                owner = RangeOwner(loaded.key.name, MemoryKind.BSS, Attribution.PROGRAM_HEADERS, loaded)
                claims.append(Claim(begin * page_bytes, end * page_bytes, owner))
    return sorted(claims, key=lambda claim: claim.start)


class _Owners:
    """Finds the owner of a mapping that is one range."""

    def __init__(self, memory: MemoryMap, objects: list[LoadedObject | None], stack_addrs: tuple[int, ...]) -> None:
        self._mappings = memory.mappings
        self._objects = objects
        self._stack_addrs = sorted(stack_addrs)
        self._executable_keys = {
            loaded.key
            for mapping, loaded in zip(self._mappings, objects, strict=True)
            if loaded and (mapping.permissions[2] == "x" or ".so" in loaded.key.name)
        }
        self._read_keys = {loaded.key for loaded in objects if loaded and loaded.image}
        self._lowest = next((loaded for loaded in objects if loaded), None)
        self._heap_at = self._heap_by_place(memory)
        self._runtime_owners = runtime_owners(self._mappings, objects)

    def __call__(self, index: int, mapping: Mapping, loaded: LoadedObject | None) -> OwnedRange:
        if loaded is not None:
            kind, by = self._kind_of_file(index, mapping, loaded)
            return OwnedRange(mapping, mapping.start_addr, mapping.end_addr, loaded.key.name, kind, by, loaded)
        owner, kind, by = self._without_file(index, mapping)
        behind = self._objects[index - 1] if by is Attribution.ADJACENCY and kind is MemoryKind.BSS else None
        return OwnedRange(mapping, mapping.start_addr, mapping.end_addr, owner, kind, by, behind)

    def _kind_of_file(self, index: int, mapping: Mapping, loaded: LoadedObject) -> tuple[MemoryKind, Attribution]:
        if mapping.is_shared:
            return MemoryKind.SHARED, Attribution.NAME
        is_object = loaded.image is not None or loaded.key in self._executable_keys
        if not is_object:
            return MemoryKind.FILE, Attribution.NAME
        if mapping.is_mapped_writable:
            return MemoryKind.DATA, Attribution.NAME
        if loaded.image is not None:
            relro = loaded.image.segment(PT_GNU_RELRO)
            start = loaded.bias_addr + relro.vaddr if relro else 0
            if relro and start < mapping.end_addr and mapping.start_addr < start + relro.memory_bytes:
                return MemoryKind.RELRO, Attribution.PROGRAM_HEADERS
            return MemoryKind.TEXT, Attribution.NAME
        if mapping.permissions == "r--p" and self._is_relro_by_place(index):
            return MemoryKind.RELRO, Attribution.ADJACENCY
        return MemoryKind.TEXT, Attribution.NAME

    def _is_relro_by_place(self, index: int) -> bool:
        """Return whether a read-only mapping lies between code and writable data of its file, as RELRO does."""
        if not 0 < index < len(self._mappings) - 1:
            return False
        mapping, behind = self._mappings[index], self._mappings[index + 1]
        is_middle = self._objects[index - 1] == self._objects[index] == self._objects[index + 1]
        return is_middle and behind.start_addr == mapping.end_addr and behind.is_mapped_writable

    def _without_file(self, index: int, mapping: Mapping) -> tuple[str, MemoryKind, Attribution]:
        name = mapping.name
        if mapping.is_shared:
            return memory_file_owner(name), MemoryKind.SHARED, Attribution.NAME
        if name == "[heap]":
            return "[heap]", MemoryKind.HEAP, Attribution.NAME
        if name == "[stack]":
            return "[stack]", MemoryKind.STACK, Attribution.NAME
        if name.startswith(("[stack:", "[threadstack:", "[anon:stack_and_tls:", "[anon: stack_and_tls:")):
            return THREAD_STACKS, MemoryKind.STACK, Attribution.NAME
        if name in _KERNEL_NAMES:
            return name, MemoryKind.SHARED, Attribution.NAME
        if name:
            return name, MemoryKind.FILE if name.startswith(MEMORY_FILES) else MemoryKind.ANONYMOUS, Attribution.NAME
        return self._nameless(index, mapping)

    def _nameless(self, index: int, mapping: Mapping) -> tuple[str, MemoryKind, Attribution]:
        if index in self._runtime_owners:
            owner = self._runtime_owners[index]
            is_malloc = owner in {JEMALLOC_HEAP, MIMALLOC_HEAP}
            return owner, MemoryKind.HEAP if is_malloc else MemoryKind.ANONYMOUS, Attribution.SHAPE
        before = self._mappings[index - 1] if index else None
        is_behind = before is not None and before.end_addr == mapping.start_addr
        is_stack = is_behind and before is not None and self._is_stack_by_shape(mapping, before)
        is_stack = is_stack or _has_guards(mapping)
        # The kernel may have merged a stack with what is above it: a stack pointer alone does not tell where it ends.
        if self._holds_stack_pointer(mapping) and _may_be_stack(mapping) and (is_stack or "nh" in flags_of(mapping)):
            return THREAD_STACKS, MemoryKind.STACK, Attribution.STACK_POINTER
        if index == self._heap_at:
            return "[heap]", MemoryKind.HEAP, Attribution.ADJACENCY
        if is_behind and mapping.is_mapped_writable and before is not None:
            loaded = self._objects[index - 1]
            # Where the file was read, its program headers have claimed its .bss already, and other mappings of it (a
            # sanitizer maps its file as the shadow of constants) have none.
            is_object = loaded and loaded.key in self._executable_keys and loaded.key not in self._read_keys
            # Nothing is mapped between the program, which lies lowest, and its heap.
            may_be_bss = loaded == self._lowest or _may_be_bss_of(before, mapping)
            if loaded and is_object and before.permissions[0] == "r" and may_be_bss:
                return loaded.key.name, MemoryKind.BSS, Attribution.ADJACENCY
        if self._is_arena(index, mapping):
            return ARENAS, MemoryKind.HEAP, Attribution.SHAPE
        if is_stack:
            return THREAD_STACKS, MemoryKind.STACK, Attribution.SHAPE
        return NAMELESS, MemoryKind.ANONYMOUS, Attribution.NONE

    def _holds_stack_pointer(self, mapping: Mapping) -> bool:
        at = bisect_left(self._stack_addrs, mapping.start_addr)
        return at < len(self._stack_addrs) and self._stack_addrs[at] < mapping.end_addr

    def _is_arena(self, index: int, mapping: Mapping) -> bool:
        """Return whether it is an arena of glibc: an aligned reservation of which only the start is writable."""
        if mapping.is_mapped_writable:
            if mapping.start_addr % _ARENA_BYTES:
                return False
            behind = self._mappings[index + 1] if index + 1 < len(self._mappings) else None
            return _is_full_arena(mapping) or (behind is not None and _are_arena(mapping, behind))
        return index > 0 and mapping.permissions == "---p" and _are_arena(self._mappings[index - 1], mapping)

    def _is_stack_by_shape(self, mapping: Mapping, before: Mapping) -> bool:
        """Return whether it lies behind a guard page and is a stack by its flag (MAP_STACK) or its size.

        The size of stacks is the usual one, or what several mappings behind equal guards have: threads are made alike.
        """
        if not _is_guarded(mapping, before) or not _may_be_stack(mapping):
            return False
        sizes = mapping.size_bytes, before.size_bytes
        is_usual = sizes[0] in {_USUAL_STACK_BYTES, _USUAL_STACK_BYTES - sizes[1]}
        return is_usual or "nh" in flags_of(mapping) or self._guarded_counts[sizes] >= _LEAST_ALIKE

    @cached_property
    def _guarded_counts(self) -> Dict[tuple[int, int], int]:
        """Count the mappings behind a guard, by their size and the guard's."""
        return Counter(
            (mapping.size_bytes, before.size_bytes)
            for before, mapping in pairwise(self._mappings)
            if _is_guarded(mapping, before)
        )

    def _heap_by_place(self, memory: MemoryMap) -> int | None:
        """Find the heap in a pmap text, which calls it `[ anon ]`: the first memory behind the program, not too far."""
        if "pmap" not in memory.dialect or any(mapping.name == "[heap]" for mapping in self._mappings):
            return None
        program = self._program(memory)
        if program is None:
            return None
        last = max(index for index, loaded in enumerate(self._objects) if loaded == program)
        end_addr = self._mappings[last].end_addr
        is_wide = self._mappings[-1].end_addr > 1 << 32
        for index in range(last + 1, len(self._mappings)):
            mapping = self._mappings[index]
            if mapping.start_addr - end_addr > (_HEAP_GAP_BYTES_64 if is_wide else _HEAP_GAP_BYTES_32):
                return None
            if mapping.name or self._objects[index] is not None:
                return None
            if mapping.is_mapped_writable and mapping.start_addr != self._mappings[index - 1].end_addr:
                return index
        return None

    def _program(self, memory: MemoryMap) -> LoadedObject | None:
        """Find the program among the objects: by the command's name, else by where programs are linked to stand."""
        command = (memory.command or "").split(" ", 1)[0].rsplit("/", 1)[-1]
        by_place = None
        for mapping, loaded in zip(self._mappings, self._objects, strict=True):
            if loaded is None or loaded.key not in self._executable_keys:
                continue
            if command and loaded.key.name.rsplit("/", 1)[-1] == command:
                return loaded
            # 0x08048000 (i386), 0x400000 (x86-64), 0x55... and 0x56... (PIE on x86-64), 0xaaaa... (on aarch64).
            stands = mapping.start_addr in {0x08048000, 0x400000} or mapping.start_addr >> 40 in {
                0x55,
                0x56,
                0xAAAA >> 8,
            }
            if stands and by_place is None:
                by_place = loaded
        return by_place


def _is_guarded(mapping: Mapping, before: Mapping) -> bool:
    """Return whether nameless writable memory lies behind pages that nobody may touch, as a stack does."""
    if before.end_addr != mapping.start_addr or before.permissions != "---p" or before.name or mapping.name:
        return False
    return before.size_bytes <= _MOST_GUARD_BYTES and mapping.is_mapped_writable and not mapping.is_shared


def _has_guards(mapping: Mapping) -> bool:
    """Return whether memory for stacks (MAP_STACK) has guards in it, as from glibc 2.42 on: neighbours merge."""
    flags = flags_of(mapping)
    return "gu" in flags and "nh" in flags and not flags & {"nr", "dd"} and mapping.is_mapped_writable


def _may_be_bss_of(data: Mapping, mapping: Mapping) -> bool:
    """Return whether memory behind the data of an object can be its .bss: larger ones are rather of an allocator."""
    return mapping.size_bytes <= max(_MOST_BSS_BYTES, _MOST_BSS_OF_DATA * data.size_bytes)


def _may_be_stack(mapping: Mapping) -> bool:
    """Return whether memory can be a stack: of a sane size, and without the flags of a sanitizer's shadow."""
    return mapping.size_bytes <= _MOST_STACK_BYTES and not flags_of(mapping) & {"nr", "dd"}


def _is_full_arena(mapping: Mapping) -> bool:
    """Return whether it can be arenas that are writable to their ends. Neighbours merge."""
    if mapping.start_addr % _ARENA_BYTES or mapping.size_bytes % _ARENA_BYTES or not mapping.size_bytes:
        return False
    return mapping.size_bytes == _ARENA_BYTES if mapping.vm_flags is None else _is_reserved_by_glibc(mapping)


def _are_arena(writable: Mapping, reserved: Mapping) -> bool:
    """Return whether two neighbours are an arena: the part that is writable, and the rest of its reservation.

    The kernel may have merged the writable part with arenas before it, and the rest with what is reserved behind it.
    """
    is_place = writable.is_mapped_writable and not writable.start_addr % _ARENA_BYTES and not writable.name
    is_rest = not reserved.name and reserved.permissions == "---p" and reserved.start_addr == writable.end_addr
    arena_end_addr = -(-writable.end_addr // _ARENA_BYTES) * _ARENA_BYTES
    if not is_place or not is_rest or not writable.end_addr < arena_end_addr <= reserved.end_addr:
        return False
    if writable.vm_flags is not None and reserved.vm_flags is not None:
        return _is_reserved_by_glibc(writable) == ("nr" in flags_of(reserved)) and not _is_too_large(writable)
    return not _is_too_large(writable) and reserved.end_addr <= arena_end_addr + _MOST_GUARD_BYTES


def _is_too_large(writable: Mapping) -> bool:
    """Return whether memory is more than one arena, and nothing says that it is several."""
    return writable.size_bytes > _ARENA_BYTES and not _is_reserved_by_glibc(writable)


def _is_reserved_by_glibc(mapping: Mapping) -> bool:
    """Return whether memory has the flag with which glibc reserves arenas, and none that it never uses."""
    return "nr" in flags_of(mapping) and not flags_of(mapping) & {"nh", "dd"}
