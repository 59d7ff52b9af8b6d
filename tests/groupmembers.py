"""Processes of a group, from texts of their memory that a test writes."""

from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.process_audit import audit_snapshot
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents
from footprint.model.audit import Audit
from footprint.process.mappings import Counters
from footprint.process.snapshot import Snapshot, read_texts
from footprint.process.status import Status

KIB = 1 << 10

HEAP = "55550000-55600000 rw-p 00000000 00:00 0 [heap]"
TEXT = "40000000-40040000 r-xp 00000000 08:01 11 /usr/bin/server"
MORE_TEXT = "40040000-40080000 r--p 00040000 08:01 11 /usr/bin/server"
OTHER_TEXT = "50000000-50040000 r-xp 00000000 08:01 12 /usr/lib/libother.so"
SEGMENT = "7f000000-7f100000 rw-s 00000000 00:01 77 /dev/zero (deleted)"

Member = tuple[Snapshot, Audit]


class NoFiles:
    """Files that say nothing."""

    def contents_of(self, loaded: LoadedObject) -> Contents | None:  # noqa: ARG002 # a protocol
        return None

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:  # noqa: ARG002 # a protocol
        return PageNumbers(())


def block(header: str, **kib: int) -> bytes:
    """Write a mapping of smaps; what is not told is 0."""
    keys = ("Size", "Rss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Anonymous")
    figures = dict.fromkeys((*keys, "Swap", "SwapPss"), 0) | {"Size": size_kib(header)} | kib
    return f"{header}\n".encode() + b"".join(f"{key}: {figure} kB\n".encode() for key, figure in figures.items())


def size_kib(header: str) -> int:
    start, end = header.split(" ", 1)[0].split("-")
    return (int(end, 16) - int(start, 16)) // KIB


def heap(private: int, shared: int = 0, swapped: int = 0) -> bytes:
    """Write a heap of anonymous pages, in KiB: this process's own, shared since a fork, and in swap."""
    anonymous = private + shared
    resident = {"Rss": anonymous, "Anonymous": anonymous, "Private_Dirty": private, "Shared_Dirty": shared}
    return block(HEAP, **resident, Swap=swapped, SwapPss=swapped)


def file(header: str, resident: int) -> bytes:
    return block(header, Rss=resident, Shared_Clean=resident)


def member(
    pid: int,
    *blocks: bytes,
    pss_anon: int | None = None,
    page_tables: int = 40,
    threads: int = 1,
    parent: int | None = None,
    command: str = "",
) -> Member:
    """Return a process as its text says; `pss_anon` is its proportional share of anonymous memory, in KiB."""
    text, *_ = read_texts(b"".join(blocks), "smaps")
    rollup = None if pss_anon is None else Counters({"Pss_Anon": 0}, (pss_anon * KIB,))
    status = Status("server", "S", threads, page_tables * KIB, has_memory=True, parent_pid=parent)
    snapshot = text._replace(pid=pid, source=f"pid {pid}", rollup=rollup, status=status, command=command)
    return snapshot, audit_snapshot(snapshot, {}, NoFiles(), target=str(pid))
