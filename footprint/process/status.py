"""`/proc/PID/status`: the state, threads and page tables of a process.

Source: fs/proc/array.c and task_mmu.c of Linux 2.6.14 to 6.18; proc_pid_status(5).

`/proc/PID/stat`: the name, state, parent, session and start time of a process or thread.

Source: do_task_stat in fs/proc/array.c of Linux 2.6.14 to 6.18; proc_pid_stat(5).

Processes that belong together: a process with its descendants, or all processes of one name.

Source: proc_pid_stat(5).

What a process has in the kernel beside memory and open files: timers, and things whose size no file of /proc tells.

Source: proc_pid_timers(5), proc_pid_status(5), proc_tid_children(5), proc_pid_ns(5), proc_sysvipc(5).

`/proc/PID/auxv`: what the kernel told the program at its start.

Source: proc_pid_auxv(5), getauxval(3).
"""

import os
import signal
import sys
from contextlib import suppress
from typing import Final

from footprint.errors import AccessError, UsageError
from footprint.members import ContentBytes, KernelCount, NamedTuple
from footprint.text.units import decimal

_STILL: Final = frozenset("TtZX")
# Indexes of the fields behind the name, which is the second field.
_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING, _STACK, _THREADS = 1, 3, 6, 19, 28, 25, 17
_EXITING: Final = 0x4  # PF_EXITING
_SIGNALED: Final = 0x400  # PF_SIGNALED
# The errors of /proc for a process that has ended, or that we may not see (hidepid).
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)


class Stat(NamedTuple):
    """The fields of a stat line that footprint needs.

    Attributes:
        name: The name of the task, cut by the kernel to 15 bytes.
        state: One letter: `R` running, `S` sleeping, `T` stopped, `t` traced, `Z` zombie, `X` dead, ...
        parent_pid: The PID of the parent.
        session: The session ID.
        flags: The flags of the kernel (PF_...).
        start_ticks: The start time, in clock ticks since boot.
        pending: The pending signals below 33, as a bit mask.
        stack_addr: The beginning of the stack of its program; 0 where that may not be read.
        thread_count: The number of its threads.
    """

    name: bytes
    state: str
    parent_pid: int
    session: int
    flags: int
    start_ticks: int
    pending: int
    stack_addr: int = 0
    thread_count: int = 1

    @property
    def has_ended(self) -> bool:
        """Whether it is a zombie; a process whose main thread alone has ended (pthread_exit) is none."""
        return self.state in "ZX" and self.thread_count < 2

    @property
    def has_only_other_threads(self) -> bool:
        """Whether its main thread has ended, or is at its exit (pthread_exit), and there are others."""
        return self.is_dead and self.thread_count > 1

    @property
    def is_still(self) -> bool:
        """Whether it is stopped, traced or ended: it neither runs nor can be woken."""
        return self.state in _STILL

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, or is too far in its exit for ptrace to stop it there."""
        return self.state in "ZX" or bool(self.flags & _EXITING)

    @property
    def is_killed(self) -> bool:
        """Whether a signal ends it, or SIGKILL is pending, as for the other threads of a process that exits."""
        return bool(self.flags & _SIGNALED or self.pending >> (signal.SIGKILL - 1) & 1)


def parse_stat(line: bytes) -> Stat | None:
    """Read a stat line; return None where the text has another form."""
    # The name is in parentheses and may contain any character, parentheses included.
    before, end, after = line.rpartition(b") ")
    words = after.split() if end else []
    try:
        numbers = [int(words[index]) for index in (_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING, _STACK, _THREADS)]
    except (IndexError, ValueError):
        return None
    return Stat(before.partition(b"(")[2], words[0].decode("ascii", "replace"), *numbers)


def read_stat(pid: int, thread: int | None = None) -> Stat | None:
    """Read the stat line of a process or of one of its threads; return None where it has ended."""
    folder = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    try:
        with open(f"{folder}/stat", "rb") as file:
            return parse_stat(file.read())
    except _GONE:
        return None


def processes() -> dict[int, Stat]:
    """Read the stat lines of all processes, by ascending PID."""
    pids = sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}


def stands_still(pid: int) -> bool:
    """Return whether every thread of a process is stopped, traced or ended."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return True
    stats = (read_stat(pid, int(thread)) for thread in threads)
    return all(stat is None or stat.is_still for stat in stats)


class Status(NamedTuple):
    """The fields of a status text that an audit needs; None where the text lacks one.

    Attributes:
        name: The name of the main thread, cut by the kernel to 15 bytes.
        state: One letter: `R` running, `S` sleeping, `T` stopped, `Z` zombie, ...
        thread_count: The number of threads.
        page_table_bytes: The page tables, without the top level.
        has_memory: Whether the process has an address space; kernel threads and zombies have none.
        descriptor_slot_count: The length of its table of descriptors.
        parent_pid: The PID of its parent.
        user_id: The real user ID, whose processes are counted against RLIMIT_NPROC.
        filter_count: The number of its seccomp filters (Linux 5.9).
    """

    name: str
    state: str
    thread_count: int | None
    page_table_bytes: int | None
    has_memory: bool
    descriptor_slot_count: int | None = None
    parent_pid: int | None = None
    user_id: int | None = None
    filter_count: int = 0


def parse_status(text: bytes) -> Status:
    """Read a status text; a missing key is None."""
    rows: dict[bytes, bytes] = {}
    for line in text.split(b"\n"):
        key, colon, value = line.partition(b":")
        if colon:
            rows.setdefault(key, value.strip())
    page_tables = _bytes(rows.get(b"VmPTE"))
    if page_tables is not None:
        # Linux 4.0 to 4.14 counts the second level separately.
        page_tables += _bytes(rows.get(b"VmPMD")) or 0
    return Status(
        rows.get(b"Name", b"").decode("utf-8", "surrogateescape"),
        rows.get(b"State", b"")[:1].decode("ascii", "replace"),
        _count(rows.get(b"Threads")),
        page_tables,
        b"VmSize" in rows,
        _count(rows.get(b"FDSize")),
        _count(rows.get(b"PPid")),
        _count(rows.get(b"Uid", b"").partition(b"\t")[0], most_digits=10),
        _count(rows.get(b"Seccomp_filters")) or 0,
    )


def _count(value: bytes | None, most_digits: int = 9) -> int | None:
    return int(value) if value and value.isdigit() and len(value) <= most_digits else None


def _bytes(value: bytes | None) -> int | None:
    size = decimal((value or b"").removesuffix(b" kB"))
    return None if size is None else size * 1024


def auxiliary_vector(data: bytes) -> dict[int, int]:
    """Return the entries of an auxiliary vector by their key, as `/proc/PID/auxv` has them."""
    # In 32 bits a value stands where the upper half of the first key would be.
    is_64 = int.from_bytes(data[:8], sys.byteorder) < 1 << 32
    entry_bytes = 16 if is_64 else 8
    words = memoryview(data[: len(data) // entry_bytes * entry_bytes]).cast("Q" if is_64 else "I").tolist()
    return dict(zip(words[::2], words[1::2], strict=True))


def descendants(pid: int) -> tuple[int, ...]:
    """Return the PIDs of a process and its descendants, parents first.

    Raises:
        AccessError: Where there is no such process.
    """
    table = processes()
    children: dict[int, list[int]] = {}
    for member, stat in table.items():
        children.setdefault(stat.parent_pid, []).append(member)
    if pid not in table:
        raise AccessError(f"pid {pid}", "no such process")
    family = [pid]
    for member in family:
        family.extend(children.get(member, ()))
    return tuple(family)


def named(name: str) -> tuple[int, ...]:
    """Return the PIDs of all other processes whose task name, or file name of argv[0], is this one.

    Raises:
        AccessError: Where there is none.
        UsageError: Where the name is empty.
    """
    if not name:
        raise UsageError("the name of a process cannot be empty")
    wanted = os.fsencode(name)
    own_pid = os.getpid()
    pids = tuple(pid for pid, stat in processes().items() if pid != own_pid and wanted in {stat.name, _argv0_name(pid)})
    if not pids:
        raise AccessError(name, "no process has this name")
    return pids


def _argv0_name(pid: int) -> bytes:
    """Return the file name in argv[0] of a process; empty where it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read(1 << 16)
    except OSError:
        return b""
    return command.partition(b"\0")[0].rpartition(b"/")[2]


_MOST_TEXT_BYTES = 1 << 24


class KernelHoldings(NamedTuple):
    """What a process has in the kernel.

    Attributes:
        timer_count: POSIX timers (timer_create).
        zombies: The PIDs of children that have ended, and that it has not waited for.
        filter_count: Seccomp filters, without those that its parent has, too.
        has_own_network: Whether it has a network namespace that its parent is not in.
        queue_bytes: Messages in SysV queues that it was the last to send to.
    """

    timer_count: KernelCount = 0
    zombies: tuple[KernelCount, ...] = ()
    filter_count: KernelCount = 0
    has_own_network: bool = False
    queue_bytes: ContentBytes = 0


NO_HOLDINGS = KernelHoldings()


def read_kernel_holdings(folder: int, pid: int, status: Status) -> KernelHoldings:
    """Read what a live process has; what may not be read counts as nothing.

    Args:
        folder: Its directory in /proc.
        pid: Its PID.
        status: Its status.
    """
    parent = status.parent_pid or 0
    filter_count = status.filter_count
    if filter_count:
        filter_count -= parse_status(_read(f"/proc/{parent}/status")).filter_count
    has_own_network = False
    with suppress(OSError):
        namespace = os.stat("ns/net", dir_fd=folder).st_ino
        has_own_network = os.stat(f"/proc/{parent}/ns/net").st_ino != namespace
    return KernelHoldings(
        timer_count=sum([line.startswith(b"ID:") for line in _read("timers", folder).split(b"\n")]),
        zombies=tuple(_zombies(folder)),
        filter_count=max(0, filter_count),
        has_own_network=has_own_network,
        queue_bytes=_queue_bytes(pid),
    )


def _zombies(folder: int) -> list[int]:
    """Return the children of all threads that have ended."""
    children: list[bytes] = []
    with suppress(OSError):
        task = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            for thread in os.listdir(task):
                children += _read(f"{thread}/children", task).split()
        finally:
            os.close(task)
    pids = [pid for word in children if (pid := decimal(word))]
    return [pid for pid in pids if (stat := read_stat(pid)) is not None and stat.has_ended]


def _queue_bytes(pid: int) -> int:
    """Add up the messages in the SysV queues of this IPC namespace that a process was the last to send to."""
    # key msqid perms cbytes qnum lspid lrpid ...
    rows = [line.split() for line in _read("/proc/sysvipc/msg").split(b"\n")[1:]]
    return sum([decimal(row[3]) or 0 for row in rows if len(row) > 5 and decimal(row[5]) == pid])


def _read(path: str, folder: int | None = None) -> bytes:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        try:
            pieces = []
            while piece := os.read(descriptor, 1 << 16):
                pieces.append(piece)
                if len(pieces) << 12 > _MOST_TEXT_BYTES:
                    break
            return b"".join(pieces)
        finally:
            os.close(descriptor)
    return b""
