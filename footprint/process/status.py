"""`/proc/PID/status`: the state, threads and page tables of a process.

Source: fs/proc/array.c and task_mmu.c of Linux 2.6.14 to 6.18; proc_pid_status(5).
"""

from typing import NamedTuple

from footprint.digits import decimal

__all__ = ("Status", "parse_status")


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
    """

    name: str
    state: str
    thread_count: int | None
    page_table_bytes: int | None
    has_memory: bool
    descriptor_slot_count: int | None = None
    parent_pid: int | None = None
    user_id: int | None = None


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
    )


def _count(value: bytes | None, most_digits: int = 9) -> int | None:
    return int(value) if value and value.isdigit() and len(value) <= most_digits else None


def _bytes(value: bytes | None) -> int | None:
    size = decimal((value or b"").removesuffix(b" kB"))
    return None if size is None else size * 1024
