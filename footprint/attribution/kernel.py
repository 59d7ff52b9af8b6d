"""What a process costs beside its own pages: page tables, kernel stacks, kernel objects.

The kernel counts page tables, threads and mappings. `footprint.attribution.kernel` has what each thread and
mapping costs. The buffers of sockets and pipes are in none of these prices.

What the kernel spends on each process, thread, mapping and file: prices made of the sizes of its objects.

A memory cgroup pays for each object its size in the slab cache and 8 bytes for its owner. These sizes differ by the
kernel's version and build, and that of a thread by the processor. They were checked against the growth of a cgroup over
programs of many kinds.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from footprint.errors import Note
from footprint.members import NamedTuple, json_members
from footprint.model.row import Evidence
from footprint.process.descriptions import OpenFile, OpenFileKind, device_name
from footprint.process.mappings import Mapping
from footprint.process.status import KernelHoldings, Status
from footprint.text.units import counted, decimal, format_bytes

if TYPE_CHECKING:
    from footprint.attribution.memory_files import ChargedFile


@json_members(
    "stack_bytes process_bytes thread_bytes mapping_bytes written_bytes file_bytes evidence origin open_file_bytes"
)
class KernelConstants(NamedTuple):
    """What the kernel spends on each thing, in bytes.

    Attributes:
        stack_bytes: The kernel stack of a thread.
        process_bytes: Address space, signal and file tables, credentials, and the top page of the page tables.
        thread_bytes: The task with its FPU state, and its number.
        mapping_bytes: A mapping.
        written_bytes: What a mapping with anonymous pages has besides: its reverse map.
        file_bytes: An open file; each mapped file is one.
        evidence: How they are known.
        origin: Where they are from, to show.
        open_file_bytes: What an open file of each kind costs, and a watch, as measured on this kernel; empty where that
            was not measured.
        notes: What was odd about getting them.
        timer_bytes: A POSIX timer.
        index_node_bytes: A node of the index of a file in memory.
    """

    stack_bytes: int
    process_bytes: int
    thread_bytes: int
    mapping_bytes: int
    written_bytes: int
    file_bytes: int
    evidence: Evidence
    origin: str
    open_file_bytes: Dict[str, int] = MappingProxyType({})
    notes: tuple[Note, ...] = ()
    timer_bytes: int = 392
    index_node_bytes: int = 592

    @property
    def usual_mapping_bytes(self) -> int:
        """The cost of a mapping of which nothing is known: 2 in 5 are written, 6 share a file."""
        return self.mapping_bytes + 2 * self.written_bytes // 5 + self.file_bytes // 6


class ObjectSizes(NamedTuple):
    """Sizes of kernel objects in bytes, by the names of their slab caches: `/sys/kernel/slab/NAME/slab_size`.

    `task_struct` has the state of the processor at its end (arch/x86/kernel/fpu). `vma_lock` is a cache of Linux 6.4 to
    6.14.
    """

    task_struct: int
    pid: int
    vm_area_struct: int
    anon_vma: int
    anon_vma_chain: int
    filp: int
    mm_struct: int
    signal_cache: int
    sighand_cache: int
    files_cache: int
    fs_cache: int
    cred: int
    vma_lock: int = 0
    posix_timers_cache: int = 384
    radix_tree_node: int = 584


_OF_6_1: Final = ObjectSizes(
    task_struct=5696,
    pid=128,
    vm_area_struct=152,
    anon_vma=104,
    anon_vma_chain=64,
    filp=256,
    mm_struct=1152,
    signal_cache=1152,
    sighand_cache=2112,
    files_cache=704,
    fs_cache=64,
    cred=192,
)
OBJECT_SIZES: Final = {
    ((6, 1), "x86_64"): _OF_6_1,
    ((6, 1), "aarch64"): _OF_6_1._replace(task_struct=4160, mm_struct=960),
    ((6, 12), "x86_64"): _OF_6_1._replace(vm_area_struct=176, filp=192, mm_struct=1408, vma_lock=40),
    ((6, 18), "x86_64"): _OF_6_1._replace(task_struct=3392, pid=192, vm_area_struct=192, filp=192, mm_struct=1600),
}
"""Sizes by the release and machine of a kernel, as read there; `task_struct` is `object_size` less the processor state.

That state is in the kernel's log: `x86/fpu: ... context size is 2472 bytes`, without what is for KVM only.
"""
# XSAVE, as the kernel keeps it for each thread: x87 and SSE, a header, AVX, and three parts of AVX-512.
_STATE_BYTES: Final = 512 + 64 + 256
_AVX512_BYTES: Final = 64 + 512 + 1024
_CACHE_LINE_BYTES: Final = 64
_OWNER_BYTES: Final = 8  # struct obj_cgroup *
_TOP_PAGE_BYTES: Final = 4096
# Four counters of resident pages, a word of each for every CPU (Linux 6.2).
_CPU_BYTES: Final = 16
_USUAL_CPUS: Final = 2
# arch/*/include/asm/thread_info.h: THREAD_SIZE.
_SMALL_STACKS: Final = frozenset({"i386", "i486", "i586", "i686", "armv6l", "armv7l", "armv8l", "riscv32"})


def built_in_constants(
    kernel: str,
    machine: str,
    *,
    page_bytes: int = 4096,
    cpu_count: int | None = None,
    is_isolated: bool = False,
    has_avx512: bool = True,
    sizes: ObjectSizes | None = None,
) -> KernelConstants:
    """Return the constants of a kernel without a measurement: from the sizes of its objects, else from a table.

    Args:
        kernel: Its release, such as `6.1.0-37-amd64`.
        machine: What uname calls it.
        page_bytes: The size of a page: the stack of a thread of arm64 is at least one page.
        cpu_count: How many CPUs it may have, where known.
        is_isolated: Whether its page tables are isolated, which takes a second top page.
        has_avx512: Whether its x86 processor has AVX-512; server processors of this decade do.
        sizes: The sizes that it tells itself; None for those of the table.
    """
    release = _release(kernel)
    origin = "from the slab sizes of this kernel"
    if sizes is None:
        sizes, origin = _from_table(release, machine)
        state_bytes = _STATE_BYTES + (_AVX512_BYTES if has_avx512 else 0)
        # The cache aligns its objects to lines of the processor's cache.
        task_bytes = -(-(sizes.task_struct + state_bytes) // _CACHE_LINE_BYTES) * _CACHE_LINE_BYTES
        sizes = sizes._replace(task_struct=task_bytes)
    of_process = (sizes.mm_struct, sizes.signal_cache, sizes.sighand_cache, sizes.files_cache, sizes.fs_cache)
    top_page_count = 1
    # Before Linux 6.16 every process had a second one, used or not.
    if machine == "x86_64" and (is_isolated or (4, 15) <= release < (6, 16)):
        top_page_count = 2
    process_bytes = top_page_count * _TOP_PAGE_BYTES + _charged_bytes(*of_process, sizes.cred)
    if cpu_count is not None and release >= (6, 2):
        process_bytes += _CPU_BYTES * (cpu_count - _USUAL_CPUS)
    has_small_stacks = machine in _SMALL_STACKS or (machine == "x86_64" and release < (3, 15))
    return KernelConstants(
        stack_bytes=max((8 if has_small_stacks else 16) * 1024, page_bytes if machine == "aarch64" else 0),
        process_bytes=process_bytes,
        thread_bytes=_charged_bytes(sizes.task_struct, sizes.pid),
        mapping_bytes=_charged_bytes(sizes.vm_area_struct, sizes.vma_lock),
        written_bytes=_charged_bytes(sizes.anon_vma, sizes.anon_vma_chain),
        file_bytes=_charged_bytes(sizes.filp),
        evidence=Evidence.ESTIMATED,
        origin=origin,
        timer_bytes=_charged_bytes(sizes.posix_timers_cache),
        index_node_bytes=_charged_bytes(sizes.radix_tree_node),
    )


def _charged_bytes(*sizes_bytes: int) -> int:
    return sum([size_bytes + _OWNER_BYTES for size_bytes in sizes_bytes if size_bytes])


def _from_table(release: tuple[int, ...], machine: str) -> tuple[ObjectSizes, str]:
    """Return the sizes of the nearest release that is not newer, of this machine if any, and where they are from."""
    releases = sorted(key for key in OBJECT_SIZES if key[1] == machine) or sorted(OBJECT_SIZES)
    nearest = max([key for key in releases if key[0] <= release], default=releases[0])
    (major, minor), of_machine = nearest
    origin = f"built in: Linux {major}.{minor}, {of_machine.replace('_', '-')}"
    if nearest != (release, machine):
        origin += ", which stands for this kernel, as its own sizes are not known"
    return OBJECT_SIZES[nearest], origin


def _release(kernel: str) -> tuple[int, ...]:
    words = kernel.split("-", 1)[0].split(".")[:2]
    return tuple(decimal(word) or 0 for word in words)


BUILT_IN: Final = built_in_constants("6.18", "x86_64")


# An open file description with the object behind it, on Linux 6.18, x86-64, by a thousand of each (100 of those above
# 900 bytes that are rare): what it holds (unread data, watches, rings) comes on top.
_OPEN_FILE_BYTES: Final = {
    OpenFileKind.FILE: 201,
    OpenFileKind.TEXT: 4_473,
    OpenFileKind.MEMORY: 1_159,
    OpenFileKind.PIPE: 201,
    OpenFileKind.TERMINAL: 1_639,
    OpenFileKind.EVENT: 401,
    OpenFileKind.PROCESS: 205,
    OpenFileKind.EPOLL: 397,
    OpenFileKind.INOTIFY: 983,
    OpenFileKind.FANOTIFY: 2_007,
    OpenFileKind.RING: 1_071,
    OpenFileKind.BPF: 201,
    OpenFileKind.UNIX: 2_401,
    OpenFileKind.TCP: 3_617,
    OpenFileKind.UDP: 2_593,
    OpenFileKind.SOCKET: 1_245,
}
# An entry of an epoll with its place in a wait queue; a mark of inotify with its number: slab sizes of the same kernel.
_WATCH_BYTES: Final = {OpenFileKind.EPOLL: 238, OpenFileKind.INOTIFY: 86}
# The table of up to 64 descriptors is part of a process; a larger one has a pointer and two bits for each (fs/file.c).
_EMBEDDED_SLOTS: Final = 64
_SLOT_BYTES: Final = 8.25
_INDEX_PLACES: Final = 64
# struct shmid_kernel of a SysV segment, which has an open file of its own beside those of its mappings.
_SEGMENT_BYTES: Final = 256 + _OWNER_BYTES


class KernelCost(NamedTuple):
    """One part of what the kernel spends on a process."""

    name: str
    size_bytes: int
    evidence: Evidence


class KernelObjects(NamedTuple):
    """The kernel objects of some mappings: mappings, those with anonymous pages, and the files that they keep open."""

    mapping_count: int
    written_count: int
    file_count: int


def count_objects(mappings: Iterable[Mapping]) -> KernelObjects:
    """Count the kernel objects of some mappings."""
    # All processes have the same [vsyscall] page, so it is an object of none.
    counted = [mapping for mapping in mappings if mapping.name != "[vsyscall]"]
    written_count = sum(1 for mapping in counted if mapping.counters.get("Anonymous") or mapping.counters.get("Swap"))
    return KernelObjects(len(counted), written_count, len({(m.device, m.inode) for m in counted if m.inode}))


def kernel_costs(
    status: Status | None,
    mapping_count: int,
    constants: KernelConstants = BUILT_IN,
    mappings: Sequence[Mapping] = (),
    open_files: Sequence[OpenFile] = (),
    timer_count: int = 0,
) -> tuple[KernelCost, ...]:
    """Return the parts of the kernel's cost of a process; none where threads and page tables are unknown.

    Args:
        status: Its threads and page tables.
        mapping_count: How many mappings it has.
        constants: What each thing costs.
        mappings: The mappings that are known; the others are assumed to be usual ones.
        open_files: The open file descriptions that it pays for, each once.
        timer_count: How many POSIX timers it has.
    """
    if status is None or status.page_table_bytes is None or status.thread_count is None:
        return ()
    threads = status.thread_count
    objects_bytes = constants.process_bytes + threads * constants.thread_bytes
    objects_bytes += _known_bytes(mappings, open_files, constants)
    objects_bytes += max(0, mapping_count - len(mappings)) * constants.usual_mapping_bytes
    if (status.descriptor_slot_count or 0) > _EMBEDDED_SLOTS:
        objects_bytes += int((status.descriptor_slot_count or 0) * _SLOT_BYTES)
    costs = (
        KernelCost("[page tables]", status.page_table_bytes, Evidence.MEASURED),
        KernelCost(
            f"[kernel stacks of {threads} {'thread' if threads == 1 else 'threads'}]",
            threads * constants.stack_bytes,
            constants.evidence,
        ),
        KernelCost("[kernel objects]", objects_bytes, constants.evidence),
    )
    timers = KernelCost("[POSIX timers]", timer_count * constants.timer_bytes, constants.evidence)
    return (*costs, *((timers,) if timer_count else ()), *_open_file_costs(open_files, constants))


INODES: Final = "[inodes and indexes of shared memory]"


def inode_cost(charges: "Iterable[ChargedFile]", page_bytes: int, constants: KernelConstants) -> KernelCost:
    """Compute what the kernel spends on the files in memory that belong to some processes, beside their pages.

    The price of a descriptor has the inode of its file; that of a mapped file has only the open file. The index of a
    file is a tree, by which the kernel finds its pages. A node has 64 places, for pages or for nodes of the level below
    (include/linux/xarray.h); it is charged to the same control group as the pages. Files with holes have more nodes;
    one page needs none, nor do huge pages that are mapped as a whole. Buffers of the kernel have no inode of their own.
    A SysV segment has a structure and an open file besides.
    """
    open_bytes = constants.open_file_bytes.get(OpenFileKind.MEMORY, _OPEN_FILE_BYTES[OpenFileKind.MEMORY])
    size_bytes = 0
    for charge in charges:
        cost = charge.cost
        if cost.own_bytes and not charge.file.is_kernel_buffer:
            size_bytes += 0 if cost.descriptor_count else max(0, open_bytes - constants.file_bytes)
            size_bytes += _SEGMENT_BYTES + constants.file_bytes if charge.file.is_segment else 0
            entry_count = max(0, cost.own_bytes - charge.huge_bytes) // page_bytes
            while entry_count > 1:
                entry_count = -(-entry_count // _INDEX_PLACES)
                size_bytes += entry_count * constants.index_node_bytes
    return KernelCost(INODES, size_bytes, Evidence.ESTIMATED)


def uncounted_notes(holdings: Sequence[KernelHoldings], source: str) -> list[Note]:
    """Return one note for all kernel memory of some processes that no file of /proc tells the size of."""
    queue_bytes = sum([holding.queue_bytes for holding in holdings])
    kinds = (
        (len({pid for holding in holdings for pid in holding.zombies}), "zombie"),
        (sum([holding.filter_count for holding in holdings]), "seccomp filter"),
        (sum([holding.has_own_network for holding in holdings]), "network namespace"),
    )
    parts = [counted(count, noun) for count, noun in kinds if count]
    parts += [f"{format_bytes(queue_bytes)} in SysV message queues"] if queue_bytes else []
    detail = f"{', '.join(parts)}: not in the cost, because the kernel does not say how much memory they take"
    return [Note("kernel-memory-not-counted", source, detail)] if parts else []


def watch_of(kind: OpenFileKind) -> str:
    """Return the name under which the price of a watch is kept."""
    return f"watch of {kind.value}"


def usual_price_bytes(name: str) -> int:
    """Return the built-in price of an open file of a kind, or of a watch, by the name under which it is kept."""
    prices = {kind.value: price for kind, price in _OPEN_FILE_BYTES.items()}
    return (prices | {watch_of(kind): price for kind, price in _WATCH_BYTES.items()})[name]


def open_file_bytes(file: OpenFile, constants: KernelConstants) -> int:
    """Compute what the kernel spends on an open file and what it holds, but for the pages of a file in memory."""
    measured = constants.open_file_bytes
    size_bytes = measured.get(file.kind, _OPEN_FILE_BYTES[file.kind])
    if file.watch_count:
        size_bytes += file.watch_count * measured.get(watch_of(file.kind), _WATCH_BYTES[file.kind])
    return size_bytes if file.kind is OpenFileKind.MEMORY else size_bytes + file.content_bytes


def _open_file_costs(open_files: Sequence[OpenFile], constants: KernelConstants) -> tuple[KernelCost, ...]:
    """Price open files."""
    open_bytes = sum([open_file_bytes(open_file, constants) for open_file in open_files])
    is_measured = all(open_file.kind in constants.open_file_bytes for open_file in open_files)
    evidence = constants.evidence if is_measured else Evidence.ESTIMATED
    return (KernelCost("[open descriptors]", open_bytes, evidence),) if open_bytes else ()


def _known_bytes(mappings: Sequence[Mapping], open_files: Sequence[OpenFile], constants: KernelConstants) -> int:
    """Compute the kernel's cost of the mappings that are known."""
    objects = count_objects(mappings)
    # A mapping keeps the open file that it was made from: where that is open, its price has it.
    opened = {(device_name(file.device), file.inode) for file in open_files if file.device}
    both_count = len(opened.intersection([(m.device, m.inode) for m in mappings])) if opened else 0
    return (
        objects.mapping_count * constants.mapping_bytes
        + objects.written_count * constants.written_bytes
        + (objects.file_count - both_count) * constants.file_bytes
    )
