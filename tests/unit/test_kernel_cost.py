"""What a process costs beside its own pages. The expected figures name the constants once more, in full."""

import os

import pytest

from footprint.attribution.kernel import (
    BUILT_IN,
    OBJECT_SIZES,
    KernelCost,
    KernelObjects,
    ObjectSizes,
    built_in_constants,
    count_objects,
    inode_cost,
    kernel_costs,
    uncounted_notes,
)
from footprint.attribution.memory_files import ChargedFile, charge_open
from footprint.model.row import Evidence
from footprint.process.descriptions import (
    DescriptionOwners,
    OpenFile,
    OpenFileKind,
    classify,
    content_of_fdinfo,
    watches_of_fdinfo,
)
from footprint.process.mappings import Counters, Mapping
from footprint.process.memory_files import MemoryFile
from footprint.process.status import NO_HOLDINGS, KernelHoldings, Status

KIB = 1024


def status_of(thread_count: int | None, page_table_bytes: int | None) -> Status:
    return Status("sleep", "S", thread_count, page_table_bytes, has_memory=True)


def mapping(name: str = "", *, inode: int = 0, anonymous_bytes: int = 0, swap_bytes: int = 0) -> Mapping:
    counters = Counters({"Anonymous": 0, "Swap": 1}, (anonymous_bytes, swap_bytes))
    return Mapping(0x1000, 0x2000, "rw-p", 0, "fe:00", inode, name, counters)


def objects_bytes(threads: int, mapping_count: int, **facts: object) -> int:
    return kernel_costs(status_of(threads, 0), mapping_count, **facts)[2].size_bytes  # type: ignore[arg-type] # see calls


# --- the parts --------------------------------------------------------------------------------------------------------


def test_a_process_costs_page_tables_kernel_stacks_and_kernel_objects() -> None:
    # 9,968 for the process + 6,032 for its one thread + 37 usual mappings of 306 = 27,322.
    assert kernel_costs(status_of(1, 44 * KIB), 37) == (
        KernelCost("[page tables]", 45_056, Evidence.MEASURED),
        KernelCost("[kernel stacks of 1 thread]", 16_384, Evidence.ESTIMATED),
        KernelCost("[kernel objects]", 27_322, Evidence.ESTIMATED),
    )


def test_each_thread_has_a_kernel_stack_of_16_kib_and_objects_of_its_own() -> None:
    # 9,968 + 7 * 6,032 + 93 * 306 = 9,968 + 42,224 + 28,458 = 80,650.
    _, stacks, objects = kernel_costs(status_of(7, 392 * KIB), 93)
    assert stacks == KernelCost("[kernel stacks of 7 threads]", 7 * 16 * KIB, Evidence.ESTIMATED)
    assert objects == KernelCost("[kernel objects]", 80_650, Evidence.ESTIMATED)


def test_objects_cost_their_size_in_the_slab_caches_of_linux_6_18_and_8_bytes_for_their_owner() -> None:
    # task_struct, with the state of a processor that has AVX-512, in whole lines of the cache; pid
    assert BUILT_IN.thread_bytes == 3_392 + (512 + 64 + 256 + 64 + 512 + 1_024) + 8 + 192 + 8
    assert BUILT_IN.mapping_bytes == 192 + 8  # vm_area_struct
    assert BUILT_IN.written_bytes == 104 + 8 + 64 + 8  # anon_vma, anon_vma_chain
    assert BUILT_IN.file_bytes == 192 + 8  # filp
    # The top page table, and mm_struct, signal_cache, sighand_cache, files_cache, fs_cache, cred.
    assert BUILT_IN.process_bytes == 4_096 + 1_600 + 1_152 + 2_112 + 704 + 64 + 192 + 6 * 8


def test_a_usual_mapping_is_written_in_two_cases_of_five_and_shares_its_file_with_five_others() -> None:
    # 200 + 2 * 184 / 5 + 200 / 6 = 200 + 73 + 33.
    assert BUILT_IN.usual_mapping_bytes == 306
    assert objects_bytes(1, 11) - objects_bytes(1, 10) == 306


def test_one_more_thread_costs_22_kib() -> None:
    def total_bytes(threads: int) -> int:
        return sum(cost.size_bytes for cost in kernel_costs(status_of(threads, 0), 10))

    assert total_bytes(3) - total_bytes(2) == 16_384 + 6_032


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="no status at all, as with a saved text"),
        pytest.param(status_of(None, 44 * KIB), id="no threads"),
        pytest.param(status_of(1, None), id="no page tables, as with kernel threads and zombies"),
    ],
)
def test_where_threads_or_page_tables_are_unknown_nothing_is_guessed(status: Status | None) -> None:
    assert kernel_costs(status, 37) == ()


# --- mappings that are known ------------------------------------------------------------------------------------------

KNOWN = (
    mapping("/bin/sleep", inode=7),
    mapping("/bin/sleep", inode=7, anonymous_bytes=4_096),
    mapping("/lib/libc.so.6", inode=9),
    mapping("[heap]", anonymous_bytes=8_192),
    mapping("[stack]", swap_bytes=4_096),
)


def test_written_mappings_are_those_with_anonymous_or_swapped_pages_and_files_count_once() -> None:
    assert count_objects(KNOWN) == KernelObjects(mapping_count=5, written_count=3, file_count=2)


def test_the_page_of_old_system_calls_is_no_object_of_the_process() -> None:
    assert count_objects([*KNOWN, mapping("[vsyscall]")]) == count_objects(KNOWN)


def test_known_mappings_cost_what_they_are() -> None:
    # 5 mappings of 200 + 3 written ones of 184 + 2 files of 200 = 1,952.
    assert objects_bytes(1, 5, mappings=KNOWN) == 9_968 + 6_032 + 1_952


def test_mappings_beyond_the_known_ones_are_usual_ones() -> None:
    assert objects_bytes(1, 7, mappings=KNOWN) - objects_bytes(1, 5, mappings=KNOWN) == 2 * 306


# --- open files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("/var/log/server.log", OpenFileKind.FILE),
        ("/memfd:shared (deleted)", OpenFileKind.MEMORY),
        ("/proc/4711/mountinfo", OpenFileKind.TEXT),
        ("/sys/fs/cgroup/cpu.max", OpenFileKind.TEXT),
        ("anon_inode:[eventpoll]", OpenFileKind.EPOLL),
        ("anon_inode:inotify", OpenFileKind.INOTIFY),
        ("anon_inode:[io_uring]", OpenFileKind.RING),
        ("anon_inode:[timerfd]", OpenFileKind.EVENT),
        ("pipe:[366287]", OpenFileKind.PIPE),
        ("socket:[366379]", OpenFileKind.SOCKET),
        ("/dev/pts/3", OpenFileKind.TERMINAL),
    ],
)
def test_the_link_of_a_descriptor_shows_what_it_is(link: str, kind: OpenFileKind) -> None:
    assert classify(link) is kind


def test_watches_and_rings_are_read_from_fdinfo() -> None:
    head = b"pos:\t0\nflags:\t02\nmnt_id:\t17\nino:\t1038\n"
    watches = head + b"tfd:       14 events:       19\ntfd:       15 events:       19\n"
    assert watches_of_fdinfo(OpenFileKind.EPOLL, watches) == 2
    marks = head + b"inotify wd:2 ino:3c4a3\ninotify wd:1 ino:3c4a2\n"
    assert watches_of_fdinfo(OpenFileKind.INOTIFY, marks) == 2
    assert content_of_fdinfo(watches) == content_of_fdinfo(marks) == 0
    # 64 submissions of 64 bytes are a page; 64 + 128 * 16 + 64 * 4 bytes of rings another; 4 lists of 64 bytes.
    rings = head + b"SqMask:\t0x3f\nSqHead:\t0\nCqMask:\t0x7f\n"
    assert content_of_fdinfo(rings) == 4096 + 4096 + 256
    # 64 + 512 * 16 + 64 * 4 bytes take four pages: a power of two; one list for 32 completions.
    assert content_of_fdinfo(rings.replace(b"0x7f", b"0x1ff")) == 4096 + 4 * 4096 + 16 * 64


def test_open_files_are_a_part_of_their_own_and_always_estimated() -> None:
    calibrated = BUILT_IN._replace(evidence=Evidence.DERIVED)
    files = [
        OpenFile(3, OpenFileKind.FILE, 1, 10),
        OpenFile(4, OpenFileKind.PIPE, 2, 20, content_bytes=2_064 + 4_096),
        OpenFile(5, OpenFileKind.UNIX, 3, 30, content_bytes=6_400),
    ]
    *_, cost = kernel_costs(status_of(1, 0), 0, calibrated, open_files=files)
    assert cost == KernelCost("[open descriptors]", 201 + 201 + 2_064 + 4_096 + 2_401 + 6_400, Evidence.ESTIMATED)


def test_watches_cost_their_slab_sizes_of_linux_6_18() -> None:
    files = [
        OpenFile(3, OpenFileKind.EPOLL, 1, 10, watch_count=2),
        OpenFile(4, OpenFileKind.INOTIFY, 1, 10, watch_count=3),
    ]
    *_, cost = kernel_costs(status_of(1, 0), 0, open_files=files)
    assert cost.size_bytes == 397 + 2 * 238 + 983 + 3 * 86


def test_measured_prices_of_open_files_and_watches_are_used_and_are_derived() -> None:
    measured = {"file": 300, "epoll": 500, "watch of epoll": 200}
    calibrated = BUILT_IN._replace(evidence=Evidence.DERIVED, open_file_bytes=measured)
    files = [OpenFile(3, OpenFileKind.FILE, 1, 10), OpenFile(4, OpenFileKind.EPOLL, 1, 11, watch_count=7)]
    *_, cost = kernel_costs(status_of(1, 0), 0, calibrated, open_files=files)
    assert (cost.size_bytes, cost.evidence) == (300 + 500 + 7 * 200, "derived")
    other = OpenFile(5, OpenFileKind.TCP, 1, 12)
    *_, cost = kernel_costs(status_of(1, 0), 0, calibrated, open_files=[*files, other])
    assert (cost.size_bytes, cost.evidence) == (300 + 500 + 7 * 200 + 3_617, "estimated")


def test_a_process_without_open_files_of_its_own_has_no_such_part() -> None:
    assert len(kernel_costs(status_of(1, 0), 0)) == 3


def test_a_table_of_more_than_64_descriptors_costs_a_pointer_and_two_bits_each() -> None:
    table = status_of(1, 0)._replace(descriptor_slot_count=1024)
    small = status_of(1, 0)._replace(descriptor_slot_count=64)
    costs = [kernel_costs(status, 0)[2].size_bytes for status in (table, small)]
    assert costs[0] - costs[1] == 1024 * 8 + 1024 // 4


def test_a_socket_that_several_processes_have_is_charged_to_the_first() -> None:
    owners = DescriptionOwners()
    shared, own = OpenFile(7, OpenFileKind.TCP, 8, 100), OpenFile(8, OpenFileKind.TCP, 8, 101)
    assert owners.charged_to(1000, [shared]) == (shared,)
    assert owners.charged_to(1001, [shared, own]) == (own,)


def test_the_two_ends_of_a_pipe_are_two_descriptions_with_one_content() -> None:
    owners = DescriptionOwners()
    reading = OpenFile(4, OpenFileKind.PIPE, 2, 20, content_bytes=2_064)
    writing = OpenFile(5, OpenFileKind.PIPE, 2, 20, is_write_only=True, content_bytes=2_064)
    assert owners.charged_to(1000, [reading]) == (reading,)
    assert owners.charged_to(1001, [writing]) == (writing._replace(content_bytes=0),)


# --- constants of other kernels ---------------------------------------------------------------------------------------


def test_only_the_page_tables_are_measured_and_the_rest_is_known_as_its_constants_are() -> None:
    assert [cost.evidence for cost in kernel_costs(status_of(2, 0), 1)] == ["measured", "estimated", "estimated"]
    calibrated = BUILT_IN._replace(evidence=Evidence.DERIVED)
    assert [cost.evidence for cost in kernel_costs(status_of(2, 0), 1, calibrated)] == [
        "measured",
        "derived",
        "derived",
    ]


def test_costs_follow_the_constants() -> None:
    constants = BUILT_IN._replace(stack_bytes=8_192, process_bytes=10_000, thread_bytes=1_000)
    _, stacks, objects = kernel_costs(status_of(3, 0), 0, constants)
    assert (stacks.size_bytes, objects.size_bytes) == (3 * 8_192, 13_000)


@pytest.mark.parametrize(
    ("kernel", "machine", "expected_bytes"),
    [
        ("6.18.44", "x86_64", 16_384),
        ("2.6.32-754.el6.x86_64", "x86_64", 8_192),
        ("6.12.0-rpi", "aarch64", 16_384),
        ("6.1.0-37-686", "i686", 8_192),
        ("6.6.20", "armv7l", 8_192),
    ],
)
def test_kernel_stacks_are_16_kib_but_8_for_32_bits_and_on_x86_64_before_linux_3_15(
    kernel: str, machine: str, expected_bytes: int
) -> None:
    assert built_in_constants(kernel, machine).stack_bytes == expected_bytes


def test_a_kernel_stack_of_arm64_is_at_least_a_page() -> None:
    # arch/arm64/include/asm/memory.h: THREAD_SHIFT is PAGE_SHIFT where that is larger than 14.
    sizes = [built_in_constants("6.1", "aarch64", page_bytes=kib * KIB).stack_bytes for kib in (4, 16, 64)]
    assert sizes == [16 * KIB, 16 * KIB, 64 * KIB]
    assert built_in_constants("6.1", "ppc64le", page_bytes=64 * KIB).stack_bytes == 16 * KIB


def test_the_sizes_of_debian_12_and_13_are_built_in() -> None:
    # 6.1 on a processor with AVX and without AVX-512: task_struct 5,696 + 832 in whole lines, pid 128.
    old = built_in_constants("6.1.0-56-amd64", "x86_64", has_avx512=False)
    assert (old.thread_bytes, old.mapping_bytes, old.file_bytes) == (6_528 + 8 + 128 + 8, 152 + 8, 256 + 8)
    new = built_in_constants("6.12.118+deb13-amd64", "x86_64")
    assert (new.mapping_bytes, new.origin) == (176 + 8 + 40 + 8, "built in: Linux 6.12, x86-64")
    assert built_in_constants("6.1.0-50-arm64", "aarch64").origin == "built in: Linux 6.1, aarch64"


@pytest.mark.parametrize(
    ("kernel", "is_isolated", "more_bytes"),
    [
        pytest.param("6.18.44", False, 0, id="since 6.16 there is a second top page only where it is used"),
        pytest.param("6.18.44", True, 4_096, id="and there it is"),
        pytest.param("6.1.0-37-amd64", False, 4_096, id="before, always"),
        pytest.param("4.14.336", False, 0, id="but not before isolation came with 4.15"),
        pytest.param("strange", False, 0, id="a release without numbers"),
    ],
)
def test_isolated_page_tables_have_a_second_top_page(kernel: str, is_isolated: bool, more_bytes: int) -> None:  # noqa: FBT001 # a case
    sizes = OBJECT_SIZES[(6, 18), "x86_64"]
    constants = built_in_constants(kernel, "x86_64", is_isolated=is_isolated, sizes=sizes)
    assert constants.process_bytes - BUILT_IN.process_bytes == more_bytes


@pytest.mark.parametrize(("kernel", "more_bytes"), [("6.18.44", 126 * 16), ("5.15.0", 0)])
def test_each_cpu_has_counters_of_each_process_since_linux_6_2(kernel: str, more_bytes: int) -> None:
    few, many = (built_in_constants(kernel, "aarch64", cpu_count=count) for count in (2, 128))
    assert many.process_bytes - few.process_bytes == more_bytes


def test_a_thread_costs_less_where_the_processor_has_less_state_to_keep() -> None:
    # 3,392 + 832 is 66 lines of 64 bytes; AVX-512 has 1,600 bytes more.
    without = built_in_constants("6.18.44", "x86_64", has_avx512=False)
    assert without.thread_bytes == 66 * 64 + 8 + 192 + 8 == BUILT_IN.thread_bytes - 1_600


def test_sizes_that_the_kernel_tells_are_prices_as_they_are_and_the_origin_says_so() -> None:
    sizes = ObjectSizes(5_888, 128, 200, 80, 64, 256, 1_000, 1_100, 2_000, 700, 60, 180, vma_lock=40)
    constants = built_in_constants("6.12.0", "x86_64", sizes=sizes)
    assert constants.thread_bytes == 5_888 + 128 + 2 * 8
    assert constants.mapping_bytes == 200 + 40 + 2 * 8  # Linux 6.4 to 6.14 have a lock beside each mapping
    assert (constants.written_bytes, constants.file_bytes) == (80 + 64 + 2 * 8, 256 + 8)
    assert constants.process_bytes == 2 * 4_096 + 1_000 + 1_100 + 2_000 + 700 + 60 + 180 + 6 * 8
    assert constants.origin == "from the slab sizes of this kernel"


def test_the_nearest_older_kernel_of_the_table_stands_for_one_that_is_not_in_it() -> None:
    assert built_in_constants("6.18.44", "x86_64").origin == "built in: Linux 6.18, x86-64"
    for kernel, machine in (("6.99.1", "x86_64"), ("2.6.32", "x86_64"), ("6.18.1", "aarch64")):
        assert "which stands for this kernel" in built_in_constants(kernel, machine).origin
    assert built_in_constants("2.6.32", "x86_64").origin.startswith(f"built in: Linux {oldest()}, x86-64")


def oldest() -> str:
    major, minor = min(release for release, machine in OBJECT_SIZES if machine == "x86_64")
    return f"{major}.{minor}"


# --- what else the kernel holds ---------------------------------------------------------------------------------------


def test_timers_are_a_part_of_their_own_at_the_size_of_their_slab_cache() -> None:
    *_, cost = kernel_costs(status_of(1, 0), 0, timer_count=2000)
    assert cost == KernelCost("[POSIX timers]", 2000 * (384 + 8), Evidence.ESTIMATED)


def files_of(*page_counts: int, descriptors: tuple[int, ...] = (5,)) -> list[ChargedFile]:
    sizes = [page_count * 4_096 for page_count in page_counts]
    return [charge_open(MemoryFile(("00:01", 9), "/memfd:x", size, (), descriptors)) for size in sizes]


@pytest.mark.parametrize(
    ("page_counts", "node_count"),
    [([0], 0), ([1], 0), ([2], 1), ([64], 1), ([65], 2 + 1), ([65_536], 1_024 + 16 + 1), ([1] * 500, 0), ([2, 3], 2)],
)
def test_the_index_of_each_file_in_memory_is_a_tree_of_nodes_with_64_places(
    page_counts: list[int], node_count: int
) -> None:
    assert inode_cost(files_of(*page_counts), 4_096, BUILT_IN).size_bytes == node_count * (584 + 8)


def test_the_inode_of_a_file_in_memory_that_no_descriptor_holds_has_what_its_price_has_beside_the_open_file() -> None:
    closed = files_of(*[1] * 500, descriptors=())
    assert inode_cost(closed, 4_096, BUILT_IN).size_bytes == 500 * (1_159 - 200)
    measured = BUILT_IN._replace(open_file_bytes={OpenFileKind.MEMORY: 1_300})
    assert inode_cost(closed[:1], 4_096, measured).size_bytes == 1_300 - 200


def test_a_segment_has_an_open_file_and_a_structure_of_its_own_beside_the_file_of_its_mapping() -> None:
    # 500 segments of one page: the kernel memory of the cgroup grew by 1,834 bytes each, of which a mapping has 400.
    segment = charge_open(MemoryFile(("SYSV", 9), "/SYSV00000000 (deleted)", 4_096, (), ()))
    assert inode_cost([segment], 4_096, BUILT_IN).size_bytes == 959 + 200 + 256 + 8


def test_a_file_that_is_open_and_mapped_has_one_open_file() -> None:
    # 500 memfds of one page: the kernel memory of the cgroup grew by as much open as closed.
    mapped = [mapping("/memfd:x (deleted)", inode=9), mapping("/memfd:x (deleted)", inode=9), mapping("/x", inode=7)]
    device = os.makedev(0xFE, 0)
    same, other = (OpenFile(5, OpenFileKind.MEMORY, device, inode) for inode in (9, 8))
    closed_bytes = objects_bytes(1, 3, mappings=mapped)
    assert objects_bytes(1, 3, mappings=mapped, open_files=[other]) == closed_bytes
    assert objects_bytes(1, 3, mappings=mapped, open_files=[same, same, other]) == closed_bytes - 200
    assert objects_bytes(1, 3, mappings=mapped, open_files=[same._replace(device=0)]) == closed_bytes


def test_a_bpf_map_costs_what_its_fdinfo_tells() -> None:
    text = b"pos:\t0\nflags:\t02000002\nmap_type:\t2\nmax_entries:\t1\nmemlock:\t1052928\nmap_id:\t3\n"
    assert classify("anon_inode:bpf-map") is OpenFileKind.BPF
    assert content_of_fdinfo(text) == 1_052_928
    file = OpenFile(3, OpenFileKind.BPF, 1, 10, content_bytes=1_052_928)
    *_, cost = kernel_costs(status_of(1, 0), 0, open_files=[file])
    assert cost == KernelCost("[open descriptors]", 201 + 1_052_928, Evidence.ESTIMATED)


def test_what_has_no_size_is_counted_in_one_note_and_a_zombie_once() -> None:
    first = KernelHoldings(timer_count=9, zombies=(7, 8), filter_count=1, has_own_network=True)
    second = KernelHoldings(zombies=(8,), filter_count=49, queue_bytes=5_000)
    (note,) = uncounted_notes([first, second], "the group")
    assert note.slug == "kernel-memory-not-counted"
    assert note.detail == (
        "2 zombies, 50 seccomp filters, 1 network namespace, 4.88 KiB in SysV message queues: not in the cost, "
        "because the kernel does not say how much memory they take"
    )
    assert uncounted_notes([NO_HOLDINGS, KernelHoldings(timer_count=9)], "a process") == []
