"""What a process costs beside its own pages: page tables, kernel stacks, kernel objects.

The kernel counts page tables, threads and mappings. What each thread and mapping costs is a constant of the kernel's
build. A memory cgroup pays for each object its size in the slab cache and 8 bytes for its owner. The constants below
are such sizes, and were checked against the growth of a cgroup over programs of many kinds. The buffers of sockets and
pipes are in none of them.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.digits import decimal
from footprint.errors import Note
from footprint.members import json_members
from footprint.model.evidence import Evidence
from footprint.process import Mapping, Status
from footprint.process.descriptions import OpenFile, OpenFileKind

__all__ = (
    "BUILT_IN",
    "KernelConstants",
    "KernelCost",
    "KernelObjects",
    "built_in_constants",
    "count_objects",
    "kernel_costs",
    "open_file_bytes",
    "watch_of",
)


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

    @property
    def usual_mapping_bytes(self) -> int:
        """The cost of a mapping of which nothing is known: 2 in 5 are written, 6 share a file."""
        return self.mapping_bytes + 2 * self.written_bytes // 5 + self.file_bytes // 6


# Linux 6.18, x86-64, 2 CPUs, no page-table isolation, AVX-512. Slab sizes (/proc/slabinfo) and 8 bytes each: a thread
# is task_struct 5824 and pid 192; a mapping vm_area_struct 192, written anon_vma 104 and anon_vma_chain 64 more; a file
# filp 192; a process the top page table 4096, sighand 2112, mm 1600, signal 1152, files 704, and 600 of small ones.
BUILT_IN: Final = KernelConstants(
    stack_bytes=16 * 1024,
    process_bytes=10_300,
    thread_bytes=6_032,
    mapping_bytes=200,
    written_bytes=184,
    file_bytes=200,
    evidence=Evidence.ESTIMATED,
    origin="built in: Linux 6.18, x86-64",
)
_BUILT_IN_CPUS: Final = 2
# An open file description with the object behind it, on the same kernel, by a thousand of each (100 of those above 900
# bytes that are rare): what it holds (unread data, watches, rings) comes on top.
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
# Four counters of resident pages, a word of each for every CPU (Linux 6.2).
_CPU_BYTES: Final = 16
# arch/*/include/asm/thread_info.h: THREAD_SIZE.
_SMALL_STACKS: Final = frozenset({"i386", "i486", "i586", "i686", "armv6l", "armv7l", "armv8l", "riscv32"})


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
    own = [mapping for mapping in mappings if mapping.name != "[vsyscall]"]
    written_count = sum(1 for mapping in own if mapping.counters.get("Anonymous") or mapping.counters.get("Swap"))
    return KernelObjects(len(own), written_count, len({(one.device, one.inode) for one in own if one.inode}))


def built_in_constants(
    kernel: str, machine: str, *, cpu_count: int | None = None, is_isolated: bool = False
) -> KernelConstants:
    """Return the built-in constants, adapted to what is known of a host.

    Args:
        kernel: Its release, such as `6.1.0-37-amd64`.
        machine: What uname calls it.
        cpu_count: How many CPUs it may have, where known.
        is_isolated: Whether its page tables are isolated, which takes a second top page.
    """
    constants = BUILT_IN
    release = _release(kernel)
    if machine in _SMALL_STACKS or (machine == "x86_64" and release < (3, 15)):
        constants = constants._replace(stack_bytes=8 * 1024)
    process_bytes = constants.process_bytes
    if cpu_count is not None and release >= (6, 2):
        process_bytes += _CPU_BYTES * (cpu_count - _BUILT_IN_CPUS)
    # Before Linux 6.16 every process had this page, used or not.
    if machine == "x86_64" and (is_isolated or (4, 15) <= release < (6, 16)):
        process_bytes += 4096
    return constants._replace(process_bytes=process_bytes)


def _release(kernel: str) -> tuple[int, ...]:
    words = kernel.split("-", 1)[0].split(".")[:2]
    return tuple(decimal(word) or 0 for word in words)


def kernel_costs(
    status: Status | None,
    mapping_count: int,
    constants: KernelConstants = BUILT_IN,
    mappings: Sequence[Mapping] = (),
    open_files: Sequence[OpenFile] = (),
) -> tuple[KernelCost, ...]:
    """Return the parts of the kernel's cost of a process; none where threads and page tables are unknown.

    Args:
        status: Its threads and page tables.
        mapping_count: How many mappings it has.
        constants: What each thing costs.
        mappings: The mappings that are known; the others are assumed to be usual ones.
        open_files: The open file descriptions that it pays for, each once.
    """
    if status is None or status.page_table_bytes is None or status.thread_count is None:
        return ()
    threads = status.thread_count
    objects_bytes = constants.process_bytes + threads * constants.thread_bytes + _known_bytes(mappings, constants)
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
    return (*costs, *_open_file_costs(open_files, mappings, constants))


def watch_of(kind: OpenFileKind) -> str:
    """Return the name under which the price of a watch is kept."""
    return f"watch of {kind.value}"


def open_file_bytes(one: OpenFile, constants: KernelConstants) -> int:
    """Compute what the kernel spends on an open file and what it holds, but the pages of a memory file."""
    measured = constants.open_file_bytes
    size_bytes = measured.get(one.kind, _OPEN_FILE_BYTES[one.kind])
    if one.watch_count:
        size_bytes += one.watch_count * measured.get(watch_of(one.kind), _WATCH_BYTES[one.kind])
    return size_bytes if one.kind is OpenFileKind.MEMORY else size_bytes + one.content_bytes


def _open_file_costs(
    open_files: Sequence[OpenFile], mappings: Iterable[Mapping], constants: KernelConstants
) -> tuple[KernelCost, ...]:
    """Price open files, and add up the memory files that no mapping shows."""
    mapped = {one.inode for one in mappings if one.inode} if open_files else set()
    measured = constants.open_file_bytes
    open_bytes = sum([open_file_bytes(one, constants) for one in open_files])
    memory_files = [one for one in open_files if one.kind is OpenFileKind.MEMORY]
    unmapped_bytes = sum([one.content_bytes for one in memory_files if one.inode not in mapped])
    is_measured = all(one.kind in measured for one in open_files)
    named = (
        KernelCost("[open descriptors]", open_bytes, constants.evidence if is_measured else Evidence.ESTIMATED),
        KernelCost("[memory files that are not mapped]", unmapped_bytes, Evidence.MEASURED),
    )
    return tuple(cost for cost in named if cost.size_bytes)


def _known_bytes(mappings: Sequence[Mapping], constants: KernelConstants) -> int:
    """Compute the kernel's cost of the mappings that are known."""
    objects = count_objects(mappings)
    return (
        objects.mapping_count * constants.mapping_bytes
        + objects.written_count * constants.written_bytes
        + objects.file_count * constants.file_bytes
    )
