"""Who owns each mapping: by program headers, by the kernel's names, by stack pointer, by shape, by adjacency."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from footprint.attribution.layout import has_too_many_segments, lay_out
from footprint.attribution.owned_range import LoadedObject, OwnedRange
from footprint.elf.image import Image, read_image
from footprint.model.row import Attribution, MemoryKind
from footprint.process.mappings import FileKey, Mapping, MemoryMap, ThreadStacks, file_key
from tests.elfwriter import (
    ET_EXEC,
    PF_R,
    PF_W,
    PF_X,
    PT_LOAD,
    RO,
    RW,
    RX,
    SHT_NOBITS,
    ElfFile,
    Section,
    Segment,
    write,
)

PAGE = 4096
MIB = 1 << 20
B = 0x7F0000000000  # where a library is loaded: its bias
LIBRARY = FileKey("08:01", 11, "/lib/library.so")
OTHER = FileKey("08:01", 12, "/lib/other.so")
PROGRAM = FileKey("08:01", 10, "/bin/program")


def mapped(
    start_addr: int, pages: float, permissions: str, offset: int = 0, key: FileKey | None = None, **more: str | None
) -> Mapping:
    """Return a mapping of a file, or of none."""
    device, inode, name = key or ("00:00", 0, more.get("name") or "")
    end_addr = start_addr + int(pages * PAGE)
    return Mapping(start_addr, end_addr, permissions, offset, device, inode, name, vm_flags=more.get("flags"))


def image(file: ElfFile) -> Image:
    return read_image(write(file), "file")


def library(**sections: int) -> ElfFile:
    """Return a library whose file offsets are its vaddrs: code, RELRO, a page of .data, two of .bss.

    vaddr 0x0000 headers, 0x1000 .text | 0x2000 .data.rel.ro | 0x3000 .data | 0x4000 .bss up to 0x6000
    """
    return ElfFile(
        relro=[".data.rel.ro"],
        sections=[
            Section(".text", flags=RX, data=bytes(0x100), addr=0x1000),
            Section(".data.rel.ro", flags=RW, data=bytes(0x1000), addr=0x2000),
            Section(".data", flags=RW, data=bytes(sections.get("data", 0x1000)), addr=0x3000),
            Section(".bss", SHT_NOBITS, RW, size=sections.get("bss", 0x2000), addr=sections.get("at", 0x4000)),
        ],
    )


def loaded(bias: int = B, key: FileKey = LIBRARY) -> list[Mapping]:
    """Return the mappings of that library as the loader leaves them, without its .bss."""
    return [
        mapped(bias, 2, "r-xp", 0, key),
        mapped(bias + 0x2000, 1, "r--p", 0x2000, key),
        mapped(bias + 0x3000, 1, "rw-p", 0x3000, key),
    ]


def parts_of(
    mappings: Iterable[Mapping],
    *keys: FileKey,
    file: ElfFile | None = None,
    stacks: Iterable[int] = (),
    blocks: Iterable[tuple[int, int]] = (),
) -> list[OwnedRange]:
    """Lay out mappings; each of the keys is a file that could be read, by default that library."""
    images = dict.fromkeys(keys, image(file or library()))
    return list(lay_out(MemoryMap("smaps", tuple(mappings)), images, PAGE, ThreadStacks(tuple(stacks), tuple(blocks))))


def owners(parts: Iterable[OwnedRange]) -> list[tuple[str, str, str]]:
    return [(part.owner, part.kind.value, part.attribution.value) for part in parts]


def ranges(parts: Iterable[OwnedRange]) -> list[tuple[int, int]]:
    return [(part.start_addr, part.end_addr) for part in parts]


# --- by program headers -----------------------------------------------------------------------------------------------


def test_each_mapping_of_an_object_is_what_its_program_headers_say() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p")], LIBRARY)
    assert owners(parts) == [
        ("/lib/library.so", "text", "name"),
        ("/lib/library.so", "relro", "program headers"),
        ("/lib/library.so", "data", "name"),
        ("/lib/library.so", "bss", "program headers"),
    ]
    assert {part.loaded.bias_addr for part in parts if part.loaded} == {B}


def test_bss_is_found_in_a_nameless_mapping() -> None:
    bss = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p")], LIBRARY)[-1]
    assert (bss.owner, bss.kind, bss.size_bytes) == ("/lib/library.so", MemoryKind.BSS, 2 * PAGE)


def test_bss_that_was_merged_with_its_neighbour_is_clipped_to_its_memory_size() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 5, "rw-p")], LIBRARY)[3:]
    assert owners(parts) == [("/lib/library.so", "bss", "program headers"), ("[anonymous]", "anonymous", "none")]
    assert ranges(parts) == [(B + 0x4000, B + 0x6000), (B + 0x6000, B + 0x9000)]


def test_bss_begins_at_the_first_page_that_no_byte_of_the_file_is_in() -> None:
    # .data ends at 0x3800 and .bss follows at once: 0x3800 to 0x5800 is bss, of which 0x4000 to 0x6000 is anonymous.
    file = library(data=0x800, at=0x3800)
    parts = parts_of([*loaded(), mapped(B + 0x4000, 3, "rw-p")], LIBRARY, file=file)[2:]
    assert [part.kind for part in parts] == [MemoryKind.DATA, MemoryKind.BSS, MemoryKind.ANONYMOUS]
    assert ranges(parts) == [(B + 0x3000, B + 0x4000), (B + 0x4000, B + 0x6000), (B + 0x6000, B + 0x7000)]


def test_a_bss_in_several_mappings_is_one_in_each() -> None:
    # A page of it was made read-only: the kernel has split the mapping.
    parts = parts_of([*loaded(), mapped(B + 0x4000, 1, "r--p"), mapped(B + 0x5000, 1, "rw-p")], LIBRARY)[3:]
    assert owners(parts) == [("/lib/library.so", "bss", "program headers")] * 2


def test_what_the_program_headers_do_not_claim_is_not_bss() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p"), mapped(B + 0x6000, 1, "r--p")], LIBRARY)
    assert owners(parts)[4:] == [("[anonymous]", "anonymous", "none")]


def test_a_library_without_bss_claims_nothing_behind_it() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p")], LIBRARY, file=library(bss=0))
    assert owners(parts)[3:] == [("[anonymous]", "anonymous", "none")]


def test_relro_is_what_its_program_header_covers_where_it_shows_as_read_only() -> None:
    writable_yet = [mapped(B, 2, "r-xp", 0, LIBRARY), mapped(B + 0x2000, 2, "rw-p", 0x2000, LIBRARY)]
    assert [part.kind for part in parts_of(writable_yet, LIBRARY)] == [MemoryKind.TEXT, MemoryKind.DATA]
    assert [part.kind for part in parts_of(loaded(), LIBRARY)] == [MemoryKind.TEXT, MemoryKind.RELRO, MemoryKind.DATA]


def test_an_object_without_relro_has_read_only_text_only() -> None:
    parts = parts_of(loaded(), LIBRARY, file=replace(library(), relro=[]))
    assert [part.kind for part in parts] == [MemoryKind.TEXT, MemoryKind.TEXT, MemoryKind.DATA]


# Code in the file up to 0x2800, data from there on, one page further in memory: both segments have the page at 0x2000.
SHARED_PAGE = ElfFile(
    sections=[
        Section(".text", flags=RX, data=bytes(0x1800), addr=0x1000),
        Section(".data", flags=RW, data=bytes(0x400), addr=0x3800),
        Section(".bss", SHT_NOBITS, RW, size=0x1000, addr=0x3C00),
    ],
    segments=[
        Segment(PT_LOAD, PF_R | PF_X, [".text"], offset=0, vaddr=0),
        Segment(PT_LOAD, PF_R | PF_W, [".data", ".bss"], offset=0x2800, vaddr=0x3800),
    ],
)


def test_of_two_segments_that_share_a_page_of_the_file_the_other_mappings_decide_which_it_is() -> None:
    mappings = [
        mapped(B, 3, "r-xp", 0, LIBRARY),
        mapped(B + 0x3000, 1, "rw-p", 0x2000, LIBRARY),  # as code it would be at a bias of B + 0x1000
        mapped(B + 0x4000, 1, "rw-p"),
    ]
    parts = parts_of(mappings, LIBRARY, file=SHARED_PAGE)
    assert [part.kind for part in parts] == [MemoryKind.TEXT, MemoryKind.DATA, MemoryKind.BSS]
    assert {part.loaded.bias_addr for part in parts if part.loaded} == {B}


def test_a_fixed_program_is_where_it_was_linked_to_be() -> None:
    fixed = ElfFile(
        type=ET_EXEC,
        sections=[
            Section(".text", flags=RX, data=bytes(0x100), addr=0x401000),
            Section(".data", flags=RW, data=bytes(0x1000), addr=0x402000),
            Section(".bss", SHT_NOBITS, RW, size=0x2000, addr=0x403000),
        ],
    )
    mappings = [
        mapped(0x400000, 2, "r-xp", 0, PROGRAM),
        mapped(0x402000, 1, "rw-p", 0x2000, PROGRAM),
        mapped(0x403000, 2, "rw-p"),
    ]
    parts = parts_of(mappings, PROGRAM, file=fixed)
    assert owners(parts)[2] == ("/bin/program", "bss", "program headers")
    assert {part.loaded.bias_addr for part in parts if part.loaded} == {0}


def test_a_file_that_is_loaded_twice_has_two_biases_and_two_bss() -> None:
    second = B + 0x100000
    mappings = [
        *loaded(B),
        mapped(B + 0x4000, 2, "rw-p"),
        *loaded(second),
        mapped(second + 0x4000, 3, "rw-p"),
    ]
    parts = parts_of(mappings, LIBRARY)
    assert [part.loaded.bias_addr for part in parts if part.kind is MemoryKind.BSS and part.loaded] == [B, second]
    assert ranges(parts)[-2:] == [(second + 0x4000, second + 0x6000), (second + 0x6000, second + 0x7000)]
    assert parts[-1].kind is MemoryKind.ANONYMOUS


def test_a_heap_that_was_merged_with_the_bss_of_the_program_is_cut_where_the_bss_ends() -> None:
    parts = parts_of([*loaded(key=PROGRAM), mapped(B + 0x4000, 10, "rw-p", name="[heap]")], PROGRAM)[3:]
    assert owners(parts) == [("/bin/program", "bss", "program headers"), ("[heap]", "heap", "name")]
    assert ranges(parts) == [(B + 0x4000, B + 0x6000), (B + 0x6000, B + 0xE000)]


def test_shared_memory_at_the_addresses_of_a_bss_is_not_the_bss() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-s", name="/SYSV00000000 (deleted)")], LIBRARY)
    assert owners(parts)[3:] == [("/SYSV00000000 (deleted)", "shared", "name")]


@pytest.mark.parametrize(
    ("name", "owner"), [("anon_inode:[x]", "anon_inode:[x]"), ("", "/lib/library.so"), ("[heap]", "/lib/library.so")]
)
def test_private_memory_at_the_addresses_of_a_bss_is_the_bss_where_it_has_no_name_or_one_of_the_kernel(
    name: str, owner: str
) -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p", name=name)], LIBRARY)
    assert [found for found, _, _ in owners(parts)[3:]] == [owner]


def test_a_shared_object_that_is_only_read_owns_nothing_behind_its_mapping() -> None:
    # As a debugger or a linker maps it: the whole file, from its start. What is behind is somebody else's memory.
    whole_file = mapped(B, 4, "r--p", 0, LIBRARY)
    parts = parts_of([whole_file, mapped(B + 0x4000, 2, "rw-p")], LIBRARY)
    assert owners(parts)[1:] == [("[anonymous]", "anonymous", "none")]


def test_a_fixed_program_that_is_only_read_owns_nothing_where_it_would_be_loaded() -> None:
    fixed = ElfFile(
        type=ET_EXEC,
        sections=[
            Section(".text", flags=RX, data=bytes(0x100), addr=0x401000),
            Section(".bss", SHT_NOBITS, RW, size=0x100000, addr=0x402000),
        ],
    )
    # The process is another program at 0x400000, which reads this one as data.
    mappings = [
        mapped(0x400000, 2, "r-xp", 0, PROGRAM),
        mapped(0x410000, 4, "rw-p", name="[heap]"),
        mapped(B, 2, "r--p", 0, OTHER),
    ]
    parts = parts_of(mappings, OTHER, file=fixed)
    assert owners(parts)[1] == ("[heap]", "heap", "name")
    assert parts[2].loaded == LoadedObject(OTHER, None, 0)


def test_a_mapping_of_no_bytes_is_one_part_like_any_other() -> None:
    # The kernel makes none; a damaged text may show one, here within the addresses of a .bss.
    mappings = [*loaded(), mapped(B + 0x4000, 1, "rw-p"), mapped(B + 0x5000, 0, "rw-p"), mapped(B + 0x5000, 1, "rw-p")]
    parts = parts_of(mappings, LIBRARY)
    assert [part.mapping for part in parts] == mappings


# --- by name ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("permissions", "name", "owner", "kind"),
    [
        ("rw-p", "[heap]", "[heap]", "heap"),
        ("rw-p", "[stack]", "[stack]", "stack"),
        ("rw-p", "[stack:4712]", "[thread stacks]", "stack"),  # Linux 3.4 to 4.4
        ("rw-p", "[anon:stack_and_tls:4712]", "[thread stacks]", "stack"),  # Android
        ("r-xp", "[vdso]", "[vdso]", "shared"),
        ("r--p", "[vvar]", "[vvar]", "shared"),
        ("--xp", "[vsyscall]", "[vsyscall]", "shared"),
        ("rw-p", "[anon:scudo:primary]", "[anon:scudo:primary]", "anonymous"),
        ("rw-s", "/SYSV0000002a (deleted)", "/SYSV0000002a (deleted)", "shared"),
        ("rw-s", "/dev/zero (deleted)", "[shared anonymous]", "shared"),
        ("rw-p", "/dev/zero", "/dev/zero", "file"),
        ("rw-s", "/memfd:wayland (deleted)", "/memfd:wayland (deleted)", "shared"),
        ("rw-s", "/dev/shm/segment", "/dev/shm/segment", "shared"),  # noqa: S108 # read, not written
        ("rw-p", "/memfd:jit (deleted)", "/memfd:jit (deleted)", "file"),
        ("rw-s", "anon_inode:[io_uring]", "anon_inode:[io_uring]", "shared"),
        ("rw-s", "socket:[4711]", "socket:[4711]", "shared"),
    ],
)
def test_memory_that_is_no_file_on_a_disk_goes_by_its_name(permissions: str, name: str, owner: str, kind: str) -> None:
    mapping = Mapping(B, B + PAGE, permissions, 0, "00:01", 0 if name[0] == "[" else 99, name)
    assert file_key(mapping) is None
    assert owners(parts_of([mapping])) == [(owner, kind, "name")]


def test_nameless_shared_memory_is_shared() -> None:
    assert owners(parts_of([mapped(B, 1, "rw-s")])) == [("[shared anonymous]", "shared", "name")]


def test_a_file_that_holds_no_program_is_a_file() -> None:
    data = FileKey("08:01", 20, "/var/lib/data.db")
    assert owners(parts_of([mapped(B, 1, "rw-p", 0, data)])) == [("/var/lib/data.db", "file", "name")]


def test_a_file_that_is_mapped_shared_is_shared_whatever_it_holds() -> None:
    assert owners(parts_of([mapped(B, 4, "rw-s", 0, LIBRARY)], LIBRARY)) == [("/lib/library.so", "shared", "name")]


def test_a_file_on_disk_is_told_by_device_inode_and_name() -> None:
    assert file_key(mapped(B, 1, "r-xp", 0, LIBRARY)) == LIBRARY
    assert file_key(mapped(B, 1, "rw-p")) is None
    # pmap does not tell device and inode: the name has to do.
    assert file_key(Mapping(B, B + PAGE, "r-xp", name="library.so")) == FileKey(None, None, "library.so")


def test_an_object_that_cannot_be_read_is_told_by_its_code() -> None:
    mappings = [mapped(B, 2, "r-xp", 0, PROGRAM), mapped(B + 0x2000, 1, "rw-p", 0x2000, PROGRAM)]
    assert [part.kind for part in parts_of(mappings)] == [MemoryKind.TEXT, MemoryKind.DATA]


# --- stacks and arenas ------------------------------------------------------------------------------------------------

GUARD = mapped(B, 1, "---p")
STACK_FLAGS = "rd wr mr mw me ac nh"  # MAP_STACK since Linux 6.7
ARENA = 64 * MIB
A = 0x7F0010000000  # a multiple of 64 MiB


def test_a_mapping_made_for_stacks_that_a_stack_pointer_is_in_is_a_stack() -> None:
    mappings = [mapped(B + place, 4, "rw-p", flags=STACK_FLAGS) for place in (0, 0x10000, 0x20000)]
    stacks = [B + 0x23FFF, B]  # the last byte of the third, the first of the first
    assert owners(parts_of(mappings, stacks=stacks)) == [
        ("[thread stacks]", "stack", "stack pointer"),
        ("[anonymous]", "anonymous", "none"),
        ("[thread stacks]", "stack", "stack pointer"),
    ]


def test_a_stack_pointer_alone_does_not_tell_where_a_stack_ends() -> None:
    # Linux before 6.7 merges a stack with what is above it: all of it may be anything.
    mapping = mapped(B, 1700, "rw-p", flags="rd wr mr mw me ac")
    assert owners(parts_of([mapping], stacks=[B + 15 * PAGE])) == [("[anonymous]", "anonymous", "none")]


def test_the_block_of_a_thread_is_its_stack_and_the_rest_of_the_mapping_is_not() -> None:
    merged = mapped(B + PAGE, 2047 + 1500, "rw-p", flags="rd wr mr mw me ac")
    block = (B, B + 2048 * PAGE)  # with its guard
    parts = parts_of([GUARD, merged], stacks=[B + 2000 * PAGE], blocks=[block])
    assert owners(parts) == [
        ("[anonymous]", "anonymous", "none"),
        ("[thread stacks]", "stack", "stack pointer"),
        ("[anonymous]", "anonymous", "none"),
    ]
    assert ranges(parts)[1:] == [(B + PAGE, block[1]), (block[1], merged.end_addr)]


def test_stacks_that_are_blocks_of_the_heap_stay_in_the_heap() -> None:
    heap = mapped(B, 33, "rw-p", name="[heap]")
    assert owners(parts_of([heap], blocks=[(B + PAGE, B + 17 * PAGE)])) == [("[heap]", "heap", "name")]


def test_three_mappings_of_one_size_behind_equal_guards_are_stacks_by_their_shape() -> None:
    def stacks(count: int) -> list[Mapping]:
        places = [B + number * 2561 * PAGE for number in range(count)]
        pairs = [(mapped(at, 1, "---p"), mapped(at + PAGE, 2560, "rw-p")) for at in places]  # 10 MiB each
        return [one for pair in pairs for one in pair]

    assert owners(parts_of(stacks(3)))[1::2] == [("[thread stacks]", "stack", "shape")] * 3
    assert owners(parts_of(stacks(2)))[1::2] == [("[anonymous]", "anonymous", "none")] * 2


def test_a_stack_pointer_at_the_end_of_a_mapping_is_not_in_it() -> None:
    assert owners(parts_of([mapped(B, 4, "rw-p")], stacks=[B + 4 * PAGE])) == [("[anonymous]", "anonymous", "none")]


def test_memory_behind_a_guard_that_was_asked_for_as_a_stack_is_one_by_its_shape() -> None:
    parts = parts_of([GUARD, mapped(B + PAGE, 16, "rw-p", flags="rd wr mr mw me ac nh")])
    assert owners(parts)[1] == ("[thread stacks]", "stack", "shape")
    assert parts[1].attribution.is_assumed


def test_memory_behind_a_guard_of_the_usual_size_is_a_stack_by_its_shape() -> None:
    # 8 MiB with the guard or without it.
    for pages in (2048, 2047):
        assert owners(parts_of([GUARD, mapped(B + PAGE, pages, "rw-p")]))[1] == ("[thread stacks]", "stack", "shape")


@pytest.mark.parametrize(
    "mappings",
    [
        [GUARD, mapped(B + PAGE, 16, "rw-p", flags="rd wr mr mw me ac")],
        [mapped(B, 1, "r--p"), mapped(B + PAGE, 2048, "rw-p", flags="rd wr nh")],
        [GUARD, mapped(B + 2 * PAGE, 2048, "rw-p", flags="rd wr nh")],
        [GUARD, mapped(B + PAGE, 2048, "r--p", flags="rd nh")],
    ],
    ids=["of another size", "no guard", "the guard is elsewhere", "not writable"],
)
def test_memory_of_another_shape_is_no_stack(mappings: list[Mapping]) -> None:
    assert owners(parts_of(mappings))[1] == ("[anonymous]", "anonymous", "none")


def test_an_arena_is_an_aligned_reservation_that_is_writable_from_its_start() -> None:
    grown = [mapped(A, 33, "rw-p"), mapped(A + 33 * PAGE, ARENA // PAGE - 33, "---p")]
    assert owners(parts_of(grown)) == [("[malloc arenas]", "heap", "shape")] * 2
    full = [mapped(A, ARENA // PAGE, "rw-p")]
    assert owners(parts_of(full)) == [("[malloc arenas]", "heap", "shape")]


def test_the_reservation_of_an_arena_may_have_merged_with_a_guard_behind_it() -> None:
    mappings = [mapped(A, 33, "rw-p"), mapped(A + 33 * PAGE, ARENA // PAGE - 33 + 1, "---p")]
    assert owners(parts_of(mappings)) == [("[malloc arenas]", "heap", "shape")] * 2


@pytest.mark.parametrize(
    "mappings",
    [
        [mapped(A + PAGE, 33, "rw-p"), mapped(A + 34 * PAGE, ARENA // PAGE, "---p")],
        [mapped(A, 33, "rw-p"), mapped(A + 33 * PAGE, ARENA // PAGE - 34, "---p")],
        [mapped(A, 33, "rw-p"), mapped(A + 34 * PAGE, ARENA // PAGE, "---p")],
        [mapped(A, 33, "rw-p"), mapped(A + 33 * PAGE, ARENA // PAGE, "r--p")],
        [mapped(A, 33, "rw-p")],
    ],
    ids=["not aligned", "reserved too little", "not adjacent", "not reserved", "nothing behind it"],
)
def test_memory_of_another_shape_is_no_arena(mappings: list[Mapping]) -> None:
    assert {owner for owner, _, _ in owners(parts_of(mappings))} == {"[anonymous]"}


# Flags of real mappings of Linux 6.18: an arena of glibc, the heap of a JVM, the shadow of AddressSanitizer.
ARENA_FLAGS, HEAP_FLAGS, SHADOW_FLAGS = "rd wr mr mw me nr", "rd wr mr mw me ac", "rd wr mr mw me nr dd nh"
RESERVED_FLAGS = "mr mw me nr"


def test_an_arena_ends_after_64_mib_whatever_is_reserved_behind_it() -> None:
    reserved = mapped(A + 33 * PAGE, 3 * ARENA // PAGE, "---p", flags=RESERVED_FLAGS)
    parts = parts_of([mapped(A, 33, "rw-p", flags=ARENA_FLAGS), reserved])
    assert [(part.owner, part.end_addr - part.start_addr) for part in parts] == [
        ("[malloc arenas]", 33 * PAGE),
        ("[malloc arenas]", ARENA - 33 * PAGE),
        ("[anonymous]", 2 * ARENA + 33 * PAGE),
    ]


def test_arenas_that_merged_are_arenas() -> None:
    grown = mapped(A, ARENA // PAGE + 33, "rw-p", flags=ARENA_FLAGS)
    rest = mapped(grown.end_addr, ARENA // PAGE - 33, "---p", flags=RESERVED_FLAGS)
    assert owners(parts_of([grown, rest])) == [("[malloc arenas]", "heap", "shape")] * 2
    full = mapped(A, 2 * ARENA // PAGE, "rw-p", flags=ARENA_FLAGS)
    assert owners(parts_of([full])) == [("[malloc arenas]", "heap", "shape")]


@pytest.mark.parametrize(
    ("writable_mib", "reserved_mib", "flags"),
    [(40, 24, HEAP_FLAGS), (64, 64, HEAP_FLAGS), (378, 646, HEAP_FLAGS), (378, 646, None), (8, 1016, None)],
)
def test_memory_that_another_runtime_committed_is_no_arena(
    writable_mib: int, reserved_mib: int, flags: str | None
) -> None:
    writable = mapped(A, writable_mib * MIB // PAGE, "rw-p", flags=flags)
    reserved = mapped(writable.end_addr, reserved_mib * MIB // PAGE, "---p", flags=flags and RESERVED_FLAGS)
    assert {owner for owner, _, _ in owners(parts_of([writable, reserved]))} == {"[anonymous]"}


def test_stacks_that_merged_with_their_guards_in_them_are_stacks_without_a_stack_pointer() -> None:  # glibc 2.42
    merged = mapped(B, 4 * 2049, "rw-p", flags="rd wr mr mw me gu ac nh")
    assert owners(parts_of([merged])) == [("[thread stacks]", "stack", "shape")]
    for flags in ("rd wr mr mw me gu ac", "rd wr mr mw me ac nh", "rd wr mr mw me nr gu dd nh"):
        assert owners(parts_of([merged._replace(vm_flags=flags)]))[0][0] == "[anonymous]"
    reserved = merged._replace(permissions="---p", vm_flags="mr mw me gu nh")
    assert owners(parts_of([reserved]))[0][0] == "[anonymous]"


def test_no_stack_has_gigabytes_or_the_flags_of_a_shadow() -> None:
    large = mapped(B + PAGE, (1 << 31) // PAGE, "rw-p", flags="rd wr mr mw me ac nh")
    assert owners(parts_of([GUARD, large], stacks=[B + 2 * PAGE]))[1][0] == "[anonymous]"
    shadow = mapped(B + PAGE, 2048, "rw-p", flags=SHADOW_FLAGS)
    assert owners(parts_of([GUARD, shadow], stacks=[B + 2 * PAGE]))[1][0] == "[anonymous]"


# --- language runtimes and sanitizers ---------------------------------------------------------------------------------

TIB = 1 << 40


def test_with_a_jvm_nameless_memory_below_32_gib_is_its_heap() -> None:
    library = FileKey("08:01", 13, "/usr/lib/jvm/lib/server/libjvm.so")
    heap = [mapped(0xC0000000, 378 * MIB // PAGE, "rw-p", flags=HEAP_FLAGS), mapped(0xD7A00000, 512, "---p")]
    other = mapped(0x800000000, 512, "rw-p", flags=HEAP_FLAGS)
    assert owners(parts_of([*heap, other, mapped(B, 1, "r-xp", 0, library)]))[:3] == [
        ("[java heap]", "anonymous", "shape"),
        ("[java heap]", "anonymous", "shape"),
        ("[anonymous]", "anonymous", "none"),
    ]
    assert "[java heap]" not in {owner for owner, _, _ in owners(parts_of([*heap, other]))}


def test_the_space_for_classes_of_a_jvm_is_not_its_heap_though_it_lies_below_32_gib() -> None:  # OpenJDK 25
    library = FileKey("08:01", 13, "/usr/lib/jvm/lib/server/libjvm.so")
    archive = FileKey("08:01", 14, "/usr/lib/jvm/lib/server/classes.jsa")
    classes = [
        mapped(0x9B000000, 1, "---p"),
        mapped(0x9B001000, 0xD91, "rw-p", 0x1000, archive),
        mapped(0x9BD92000, 0x26E, "---p"),
        mapped(0x9C000000, 16, "rw-p", flags=HEAP_FLAGS),
        mapped(0x9C010000, 0x3FFF0, "---p"),
    ]
    heap = [
        mapped(0xF0000000, 0xFE00, "rw-p", flags=HEAP_FLAGS),
        mapped(0xFFE00000, 0x122, "rw-p", 0xDC5000, archive),
        mapped(0xFFF22000, 0xDE, "rw-p", flags=HEAP_FLAGS),
    ]
    jvm = mapped(B, 1, "r-xp", 0, library)
    named = [owner for owner, _, _ in owners(parts_of([*classes, *heap, jvm]))]
    assert named[:5] == ["[anonymous]", archive.name, *["[anonymous]"] * 3]
    assert named[5:8] == ["[java heap]", archive.name, "[java heap]"]
    # One behind the other cannot be told apart.
    moved = [one._replace(start_addr=one.start_addr - 0x14000000, end_addr=one.end_addr - 0x14000000) for one in heap]
    named = [owner for owner, _, _ in owners(parts_of([*classes, *moved, jvm]))]
    assert set(named[:8]) == {"[java heap]", archive.name}


@pytest.mark.parametrize("heap_start", [0xFC000000, 0x100000000], ids=["-Xmx64m", "-XX:-UseCompressedOops"])
def test_without_an_archive_the_space_for_classes_lies_above_the_heap(heap_start: int) -> None:
    # OpenJDK 17, -Xshare:off -XX:+UseSerialGC; the JVM says (VM.native_memory) that the classes begin at 4 GiB. Without
    # compressed pointers the heap lies elsewhere. Of the classes 64 KiB lie in one mapping with the heap.
    library = FileKey("08:01", 13, "/usr/lib/jvm/lib/server/libjvm.so")
    ends = [0x100010000, 0x100020000, 0x100030000, 0x100040000, 0x100080000, 0x140000000]
    starts = [heap_start, *ends]
    rows = [
        mapped(start, (end - start) // PAGE, "---p" if place % 2 else "rw-p", flags=HEAP_FLAGS)
        for place, (start, end) in enumerate(zip(starts, ends, strict=False))
    ]
    named = [owner for owner, _, _ in owners(parts_of([*rows, mapped(B, 1, "r-xp", 0, library)]))]
    first = "[java heap]" if heap_start < 1 << 32 else "[anonymous]"
    assert named[:6] == [first, *["[anonymous]"] * 5]


def test_the_second_generation_of_a_jvm_without_a_space_for_classes_is_its_heap() -> None:
    # OpenJDK 17, -Xshare:off -XX:-UseCompressedClassPointers -XX:+UseSerialGC -Xms600m -Xmx1200m: GC.heap_info says
    # that the heap ends at 4 GiB. What lies 1 GiB below its end is of the first generation.
    library = FileKey("08:01", 13, "/usr/lib/jvm/lib/server/libjvm.so")
    places = [0xB5000000, 0xC4A70000, 0xCE000000, 0xED4CF000, 1 << 32]
    rows = [
        mapped(start, (end - start) // PAGE, permissions, flags=HEAP_FLAGS)
        for (start, end), permissions in zip(pairwise(places), ("rw-p", "---p", "rw-p", "---p"), strict=True)
    ]
    named = [owner for owner, _, _ in owners(parts_of([*rows, mapped(B, 1, "r-xp", 0, library)]))]
    assert named[:4] == ["[java heap]"] * 4


def test_arenas_of_a_go_program_are_its_heap_though_stacks_of_threads_lie_there() -> None:
    go = ElfFile(sections=[Section(".gopclntab", flags=RX, data=bytes(0x100), addr=0x1000)])
    heap_addr = 0x4DA10000000
    mappings = [
        mapped(0x400000, 2, "r-xp", 0, PROGRAM),
        mapped(heap_addr, 48 * MIB // PAGE, "---p", flags="mr mw me"),
        mapped(heap_addr + 48 * MIB, 8 * MIB // PAGE, "rw-p", flags=HEAP_FLAGS),
        mapped(heap_addr + 56 * MIB, 8 * MIB // PAGE, "---p", flags="mr mw me"),
        mapped(B, 16, "rw-p", flags=HEAP_FLAGS),
    ]
    stacks = [heap_addr + 50 * MIB]
    found = owners(parts_of(mappings, PROGRAM, file=go, stacks=stacks))
    assert [owner for owner, _, _ in found] == ["/bin/program", *["[go heap]"] * 3, "[anonymous]"]
    block = (heap_addr + 49 * MIB, heap_addr + 51 * MIB)
    assert owners(parts_of(mappings, PROGRAM, stacks=stacks, blocks=[block]))[3][0] == "[thread stacks]"


def test_the_shadow_of_a_sanitizer_and_its_heap_are_told_apart() -> None:
    sanitizer = FileKey("08:01", 13, "/usr/lib/libasan.so.8.0.0")
    # asan_mapping.h: the shadow of x86-64 begins at 0x7fff8000, the heap at 0x600000000000.
    mappings = [
        mapped(0x7FFF7000, 65537, "rw-p", flags=SHADOW_FLAGS),
        mapped(0x8FFF8000, 2 * TIB // PAGE, "---p", flags=RESERVED_FLAGS),
        mapped(0x8FFF8000 + 2 * TIB, 14 * TIB // PAGE, "rw-p", flags=SHADOW_FLAGS),
        mapped(0x600000000000, 16, "rw-p", flags=HEAP_FLAGS),
        mapped(0x600000010000, 4 * TIB // PAGE, "---p", flags=RESERVED_FLAGS),
        mapped(B, 1, "r-xp", 0, sanitizer),
        GUARD._replace(start_addr=B + PAGE, end_addr=B + 2 * PAGE),
        mapped(B + 2 * PAGE, 2048, "rw-p", flags="rd wr mr mw me ac nh"),
    ]
    found = [owner for owner, _, _ in owners(parts_of(mappings))]
    assert found[:5] == [*["[asan shadow]"] * 3, *["[asan heap]"] * 2]
    assert found[-1] == "[thread stacks]"


def linked_with(*, symbol: bytes = b"", message: bytes = b"") -> ElfFile:
    """Return a program with a string table and read-only data of these texts."""
    texts = [
        Section(".strtab", data=b"\0" + symbol + b"\0"),
        Section(".rodata", flags=RO, data=message + b"\0", addr=0x402000),
    ]
    return ElfFile(type=ET_EXEC, sections=[Section(".text", flags=RX, data=bytes(0x100), addr=0x401000), *texts])


@pytest.mark.parametrize(
    ("program", "owner"),
    [
        pytest.param(linked_with(symbol=b"_rjem_mallctlnametomib"), "[jemalloc heap]", id="as Rust links it"),
        pytest.param(linked_with(message=b"<jemalloc>: Error"), "[jemalloc heap]", id="stripped"),
        pytest.param(linked_with(symbol=b"mi_malloc"), "[mimalloc heap]", id="mimalloc"),
    ],
)
def test_memory_without_reserve_is_that_of_the_allocator_that_a_program_was_linked_with(
    program: ElfFile, owner: str
) -> None:
    text, arena = mapped(0x400000, 2, "r-xp", 0, PROGRAM), mapped(B, 17 * MIB // PAGE, "rw-p", flags=ARENA_FLAGS)
    by_itself = mapped(B + 64 * MIB, 4 * MIB // PAGE, "rw-p", flags=HEAP_FLAGS)
    found = owners(parts_of([text, arena, by_itself], PROGRAM, file=program))
    assert found[1:] == [(owner, "heap", "shape"), ("[anonymous]", "anonymous", "none")]
    assert owners(parts_of([text, arena], PROGRAM))[1][0] == "[anonymous]"


def test_memory_without_reserve_is_that_of_the_allocator_that_is_preloaded() -> None:
    library = FileKey("08:01", 13, "/usr/lib/libmimalloc.so.2.0")
    # 96 MiB at a multiple of 64 MiB, which would be arenas of glibc else.
    heap = mapped(0x3ABF8000000, 128 * MIB // PAGE, "rw-p", flags=ARENA_FLAGS)
    assert owners(parts_of([heap, mapped(B, 1, "r-xp", 0, library)]))[0] == ("[mimalloc heap]", "heap", "shape")
    assert owners(parts_of([heap]))[0][0] == "[malloc arenas]"


@pytest.mark.parametrize(("gap_bytes", "owner"), [(0, "[malloc arenas]"), (PAGE, "[mimalloc heap]")])
def test_an_arena_of_glibc_has_its_reserve_right_behind_it(gap_bytes: int, owner: str) -> None:
    library = FileKey("08:01", 13, "/usr/lib/libmimalloc.so.2.0")
    heap = mapped(0x3ABF8000000, 32 * MIB // PAGE, "rw-p", flags=ARENA_FLAGS)
    rest = mapped(heap.end_addr + gap_bytes, 32 * MIB // PAGE, "---p", flags=RESERVED_FLAGS)
    assert owners(parts_of([heap, rest, mapped(B, 1, "r-xp", 0, library)]))[0][0] == owner


# --- texts without files ----------------------------------------------------------------------------------------------


def test_nameless_memory_right_behind_the_data_of_an_unread_library_is_assumed_to_be_its_bss() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p")])
    assert owners(parts) == [
        ("/lib/library.so", "text", "name"),
        ("/lib/library.so", "relro", "adjacency"),
        ("/lib/library.so", "data", "name"),
        ("/lib/library.so", "bss", "adjacency"),
    ]
    assert [part.attribution.is_assumed for part in parts] == [False, True, False, True]


@pytest.mark.parametrize(("pages", "kind"), [(48, "bss"), (49, "anonymous")])
def test_more_than_192_kib_behind_a_page_of_data_is_not_taken_for_bss_of_a_library(pages: int, kind: str) -> None:
    program = [mapped(B - 0x100000, 1, "r-xp", 0, PROGRAM), mapped(B - 0xFF000, 1, "rw-p", 0x1000, PROGRAM)]
    parts = parts_of([*program, *loaded(), mapped(B + 0x4000, pages, "rw-p")])
    assert parts[-1].kind.value == kind


def test_all_that_lies_behind_the_data_of_the_program_may_be_its_bss() -> None:
    assert owners(parts_of([*loaded(key=PROGRAM), mapped(B + 0x4000, 4096, "rw-p")]))[3][1] == "bss"


@pytest.mark.parametrize(
    "behind",
    [mapped(B + 0x5000, 2, "rw-p"), mapped(B + 0x4000, 2, "r--p"), mapped(B + 0x4000, 2, "---p")],
    ids=["not adjacent", "read-only", "reserved"],
)
def test_what_is_no_writable_neighbour_is_not_taken_for_bss(behind: Mapping) -> None:
    assert owners(parts_of([*loaded(), behind]))[3] == ("[anonymous]", "anonymous", "none")


def test_memory_behind_a_file_that_holds_no_code_is_not_taken_for_bss() -> None:
    data = FileKey("08:01", 20, "/var/lib/data.db")
    parts = parts_of([mapped(B, 1, "rw-p", 0, data), mapped(B + PAGE, 1, "rw-p")])
    assert owners(parts)[1] == ("[anonymous]", "anonymous", "none")


def test_memory_behind_a_library_that_was_read_is_what_its_program_headers_say_and_no_more() -> None:
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p")], LIBRARY, file=library(bss=0))
    assert owners(parts)[3] == ("[anonymous]", "anonymous", "none")


def test_memory_behind_another_mapping_of_a_library_that_was_read_is_no_bss() -> None:
    # ThreadSanitizer maps a part of its own file that is not loaded; a block of thread-local variables came behind it.
    constants = mapped(B + 0x100000, 1, "r--p", 0x777000, LIBRARY)
    parts = parts_of([*loaded(), mapped(B + 0x4000, 2, "rw-p"), constants, mapped(B + 0x101000, 1, "rw-p")], LIBRARY)
    assert owners(parts)[3][1] == "bss"
    assert owners(parts)[5] == ("[anonymous]", "anonymous", "none")


def test_read_only_memory_is_taken_for_relro_only_between_code_and_data_of_its_file() -> None:
    without_data = loaded()[:2]
    assert owners(parts_of(without_data))[1] == ("/lib/library.so", "text", "name")
    with_gap = [loaded()[0], loaded()[1], mapped(B + 0x4000, 1, "rw-p", 0x3000, LIBRARY)]
    assert owners(parts_of(with_gap))[1] == ("/lib/library.so", "text", "name")


def pmap(*mappings: Mapping, command: str | None = None, dialect: str = "pmap -d") -> list[OwnedRange]:
    rows = tuple(mapping._replace(inode=None) for mapping in mappings)
    return list(lay_out(MemoryMap(dialect, rows, command=command), {}, PAGE))


P = 0x08048000  # where programs of i386 are linked to stand
I386 = FileKey("08:01", None, "program")
TEXT, DATA = mapped(P, 16, "r-xp", 0, I386), mapped(P + 16 * PAGE, 1, "rw-p", 16 * PAGE, I386)
HEAP = mapped(P + 100 * PAGE, 99, "rw-p")
STACK = mapped(0xBF930000, 21, "rw-p", name="[stack]")


def test_pmap_does_not_name_the_heap_and_it_is_the_first_memory_behind_the_program() -> None:
    parts = pmap(TEXT, DATA, HEAP, STACK)
    assert owners(parts)[2:] == [("[heap]", "heap", "adjacency"), ("[stack]", "stack", "name")]


def test_the_bss_of_the_program_is_not_its_heap() -> None:
    bss = mapped(P + 17 * PAGE, 3, "rw-p")
    parts = pmap(TEXT, DATA, bss, HEAP, STACK)
    assert owners(parts)[2:4] == [("program", "bss", "adjacency"), ("[heap]", "heap", "adjacency")]


def test_the_program_is_told_by_the_command_where_pmap_prints_it() -> None:
    # A position-independent program stands anywhere; without the command nothing tells it from a library.
    pie = [mapped(0x80000000, 16, "r-xp", 0, I386), mapped(0x80010000, 1, "rw-p", 0x10000, I386)]
    behind = mapped(0x80100000, 33, "rw-p")
    assert owners(pmap(*pie, behind, STACK))[2] == ("[anonymous]", "anonymous", "none")
    assert owners(pmap(*pie, behind, STACK, command="/usr/bin/program --wait"))[2] == ("[heap]", "heap", "adjacency")


@pytest.mark.parametrize(
    ("mappings", "dialect"),
    [
        ([TEXT, DATA, mapped(P + 65 * MIB, 99, "rw-p"), STACK], "pmap -d"),
        ([TEXT, DATA, mapped(P + 50 * PAGE, 1, "r-xp", 0, OTHER), HEAP, STACK], "pmap -d"),
        ([TEXT, DATA, HEAP, STACK], "smaps"),
    ],
    ids=["too far", "a library in between", "a text that names the heap"],
)
def test_other_memory_behind_the_program_is_not_taken_for_its_heap(mappings: list[Mapping], dialect: str) -> None:
    assert "[heap]" not in {part.owner for part in pmap(*mappings, dialect=dialect)}


def test_a_heap_that_has_its_name_is_the_only_one() -> None:
    named = mapped(P + 300 * PAGE, 1, "rw-p", name="[heap]")
    assert [part.owner for part in pmap(TEXT, DATA, HEAP, named, STACK)][2:4] == ["[anonymous]", "[heap]"]


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_process_is_laid_out_whole_and_in_order() -> None:
    mappings = [
        *loaded(key=PROGRAM),
        mapped(B + 0x4000, 10, "rw-p", name="[heap]"),
        *loaded(B + 0x100000),
        mapped(B + 0x104000, 5, "rw-p"),
        mapped(B + 0x200000, 21, "rw-p", name="[stack]"),
    ]
    parts = parts_of(mappings, PROGRAM, LIBRARY)
    for mapping in mappings:
        at = mapping.start_addr
        for part in [part for part in parts if part.mapping is mapping]:
            assert part.start_addr == at
            at = part.end_addr
        assert at == mapping.end_addr
    assert [part.start_addr for part in parts] == sorted(part.start_addr for part in parts)


def test_only_shape_and_adjacency_are_assumptions() -> None:
    assert {by.value for by in Attribution if by.is_assumed} == {"shape", "adjacency"}


# --- beyond the segments ----------------------------------------------------------------------------------------------


def test_what_a_mapping_has_of_a_file_beyond_its_segments_is_the_files_and_no_objects() -> None:
    # The .bss ends at 0x6000; up to the end of its largest possible page, 0x10000, the mapping may be the loader's.
    parts = parts_of([mapped(B + 0x3000, 0x40, "rw-p", 0x3000, LIBRARY)], LIBRARY)
    assert ranges(parts) == [(B + 0x3000, B + 0x10000), (B + 0x10000, B + 0x43000)]
    assert owners(parts) == [("/lib/library.so", "data", "name")] * 2
    assert [bool(part.loaded and part.loaded.image) for part in parts] == [True, False]


def test_what_a_mapping_has_of_a_file_before_its_segments_is_the_files_and_no_objects() -> None:
    sections = [Section(".data", flags=RW, data=bytes(PAGE), addr=0x40000, align=PAGE)]
    file = ElfFile(sections=sections, segments=[Segment(PT_LOAD, PF_R | PF_W, [".data"])])
    offset = image(file).loads[0].offset
    parts = parts_of([mapped(B - 0x80000 + offset // PAGE * PAGE, 0x100, "rw-p", 0, LIBRARY)], LIBRARY, file=file)
    assert [bool(part.loaded and part.loaded.image) for part in parts] == [True, False]
    assert parts[0].end_addr == parts[1].start_addr


def test_a_file_that_is_mapped_whole_to_be_read_is_one_part() -> None:
    # As debuggers do: nothing is loaded there.
    assert len(parts_of([mapped(B, 0x40, "r--p", 0, LIBRARY)], LIBRARY)) == 1


def test_a_file_of_more_segments_than_any_program_has_is_not_laid_out() -> None:
    def with_segments(count: int) -> ElfFile:
        segment = Segment(PT_LOAD, PF_R | PF_W, offset=0, vaddr=0, filesz=PAGE, memsz=3 * PAGE)
        return ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], segments=[segment] * count)

    mappings = [mapped(B, 1, "rw-p", 0, LIBRARY), mapped(B + PAGE, 2, "rw-p")]
    assert has_too_many_segments(image(with_segments(129)))
    assert not has_too_many_segments(image(with_segments(128)))
    assert [part.kind for part in parts_of(mappings, LIBRARY, file=with_segments(128))] == [
        MemoryKind.DATA,
        MemoryKind.BSS,
    ]
    assert [part.kind for part in parts_of(mappings, LIBRARY, file=with_segments(129))] == [
        MemoryKind.DATA,
        MemoryKind.ANONYMOUS,
    ]


V8_FLAGS = "rd wr mr mw me dc nr"


@pytest.mark.parametrize(
    ("symbol", "owner", "addr", "page_count", "flags"),
    [
        pytest.param(b"_ZN2v87Isolate3NewE", "[v8 heap]", 0x10D857140000, 64, V8_FLAGS, id="V8"),
        pytest.param(
            bytes(131_066) + b"_ZN2v87Isolate3NewE",
            "[v8 heap]",
            0x10D857140000,
            64,
            V8_FLAGS,
            id="V8, the name over the end of the piece of 128 KiB that is searched at once",
        ),
        pytest.param(b"_ZN2v87Isolate3NewE", "[v8 heap]", 0x2194F00000, 64, "rd wr mr mw me dc ac", id="V8 13"),
        pytest.param(b"enif_make_atom", "[beam heap]", 0x7F9D7EA00000, 1024, HEAP_FLAGS, id="BEAM"),
        pytest.param(b"_emalloc", "[php heap]", 0x7F9D7EA00000, 513, HEAP_FLAGS, id="PHP"),
    ],
)
def test_what_a_runtime_collects_is_named_by_its_library_and_its_shape(
    symbol: bytes, owner: str, addr: int, page_count: int, flags: str
) -> None:
    names = Section(".dynstr", flags=RO, data=b"\0" + symbol + b"\0", addr=0x402000)
    program = ElfFile(type=ET_EXEC, sections=[Section(".text", flags=RX, data=bytes(0x100), addr=0x401000), names])
    text, pages = mapped(0x400000, 2, "r-xp", 0, PROGRAM), mapped(addr, page_count, "rw-p", flags=flags)
    assert owners(parts_of([text, pages], PROGRAM, file=program))[1] == (owner, "anonymous", "shape")
    # Each alone proves nothing: another program, another shape, flags that are not known, a stack behind its guard.
    assert owners(parts_of([text, pages], PROGRAM))[1][0] == "[anonymous]"
    other = pages._replace(start_addr=addr + PAGE) if flags is HEAP_FLAGS else pages._replace(vm_flags=HEAP_FLAGS)
    for mappings in ([text, other], [text, pages._replace(vm_flags=None)]):
        assert owners(parts_of(mappings, PROGRAM, file=program))[1][0] == "[anonymous]"
    if flags is HEAP_FLAGS:
        guard = GUARD._replace(start_addr=addr - PAGE, end_addr=addr)
        assert owner not in {found for found, _, _ in owners(parts_of([text, guard, pages], PROGRAM, file=program))}
