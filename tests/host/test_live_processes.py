"""The ledger of running programs adds up to what the kernel, pmap and readelf say of the very same moment.

Each program is started, left to come to rest and stopped, so that every tool looks at the same memory.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.model.row import Attribution, Row
from tests.liveprocesses import private_bytes_between, states, status_of, wait_until

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup"), reason="Linux before 4.14 does not add up smaps itself"
)

KIB = 1024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

JAVA = """
class Sleep {
    public static void main(String[] words) throws Exception {
        System.out.println("ready");
        Thread.sleep(3_600_000);
    }
}
"""
# The command, and what it prints when it is where it will stay; "" for a program that says nothing.
PROGRAMS: dict[str, tuple[list[str], bytes]] = {
    "sleep": (["sleep", "3600"], b""),
    "python3": (
        [sys.executable, "-c", "import ssl, sqlite3, time; print('ready', flush=True); time.sleep(3600)"],
        b"ready",
    ),
    "node": (["node", "-e", "setInterval(() => {}, 1e6); console.log('ready')"], b"ready"),
    "java": (["java", "Sleep.java"], b"ready"),
    "gdb": (["gdb", "-q", "-nx"], b"(gdb) "),
}


@dataclass(frozen=True)
class Block:
    """A mapping with its counters, as the few lines below read it from smaps."""

    start_addr: int
    end_addr: int
    permissions: str
    offset: int
    inode: int
    name: str
    anonymous_bytes: int
    resident_bytes: int


@dataclass(frozen=True)
class Stopped:
    """A stopped program, and what was said of it while it stood still."""

    pid: int
    audit: Audit
    rollup: dict[str, int]
    blocks: list[Block]
    pmap: str
    status: dict[str, str]

    def rows(self) -> list[Row]:
        """Return the rows of the address space: all but those of the kernel's own memory."""
        return [row for row in self.audit.ledger if row.kind.value != "kernel"]


# --- starting, and reading /proc by other means -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], int]]:
    """Start a program, wait until it rests, and stop it; all are killed in the end."""
    children: list[subprocess.Popen[bytes]] = []
    folder = tmp_path_factory.mktemp("programs")
    (folder / "Sleep.java").write_text(JAVA, encoding="ascii")

    def start_one(program: str) -> int:
        command, said_at_rest = PROGRAMS[program]
        if shutil.which(command[0]) is None:
            pytest.skip(f"{program} is not installed")
        child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        children.append(child)
        assert child.stdout is not None
        said = b""
        while said_at_rest not in said:
            piece = os.read(child.stdout.fileno(), 4096)
            if not piece:
                pytest.skip(f"{program} does not run here: it ended with {child.wait()}")
            said += piece
        wait_until(lambda: rests(child.pid), f"{program} to rest")
        os.kill(child.pid, signal.SIGSTOP)
        wait_until(lambda: states(child.pid) <= {"T"}, f"{program} to stop")
        return child.pid

    yield start_one
    for child in children:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


def rests(pid: int) -> bool:
    """Return whether all threads of a process sleep, and nothing in its memory changes for a while."""
    before = rollup_of(pid)
    time.sleep(0.2)
    return states(pid) == {"S"} and rollup_of(pid) == before


def rollup_of(pid: int) -> dict[str, int]:
    """Return the kernel's sums that are the process's own: `Pss` and the like change when others come and go."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
        rows = re.findall(r"^(Rss|Anonymous|Pss_Anon|Swap): +(\d+) kB$", text.read(), re.MULTILINE)
    return {key: int(kib) * KIB for key, kib in rows}


def blocks_of(pid: int) -> list[Block]:
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="surrogateescape") as text:
        result = re.findall(
            r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ (\d+) *([^\n]*)\n"
            r"(?:[A-Z].*\n)*?Rss: +(\d+) kB\n(?:[A-Z].*\n)*?Anonymous: +(\d+) kB$",
            text.read(),
            re.MULTILINE,
        )
    return [
        Block(
            int(start, 16), int(end, 16), permissions, int(offset, 16), int(inode), name, int(kib) * KIB, int(rss) * KIB
        )
        for start, end, permissions, offset, inode, name, rss, kib in result
    ]


def look_at(pid: int) -> Stopped:
    """Audit a stopped process between two readings of the kernel's sums; should those differ, look again."""
    for _ in range(100):
        before = rollup_of(pid)
        audit = footprint.audit(pid)
        pmap = ""
        if shutil.which("pmap"):
            asked = ["pmap", "-d", str(pid)]
            pmap = subprocess.run(
                asked, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"}
            ).stdout.decode()
        found = Stopped(pid, audit, before, blocks_of(pid), pmap, status_of(str(pid)))
        # Only the kernel itself can have changed something: it merges pages into huge ones in its own time.
        if rollup_of(pid) == before:
            return found
    pytest.fail("the memory of a stopped process does not stay as it is")


@pytest.fixture(scope="module", params=list(PROGRAMS))
def stopped(request: pytest.FixtureRequest, start: Callable[[str], int]) -> Stopped:
    return look_at(start(request.param))


# --- the figures of the whole -----------------------------------------------------------------------------------------


def test_the_rows_add_up_to_the_anonymous_and_swapped_bytes_of_the_rollup(stopped: Stopped) -> None:
    private_bytes = stopped.rollup["Anonymous"] + stopped.rollup["Swap"]
    assert private_bytes > 0
    assert sum(row.bytes or 0 for row in stopped.rows()) == private_bytes
    assert stopped.audit.totals.private.bytes == private_bytes


def test_what_is_paid_once_is_the_resident_memory_that_is_not_anonymous(stopped: Stopped) -> None:
    # The rings of io_uring are memory of the kernel, which each process pays for itself.
    rings = sum(block.resident_bytes for block in stopped.blocks if block.name == "anon_inode:[io_uring]")
    assert stopped.audit.totals.shared_once.bytes == stopped.rollup["Rss"] - stopped.rollup["Anonymous"] - rings


def test_nothing_is_shared_with_relatives_where_there_are_none(stopped: Stopped) -> None:
    if "Pss_Anon" not in stopped.rollup:
        pytest.skip("Linux before 5.3 does not say how much anonymous memory is shared")
    assert stopped.rollup["Pss_Anon"] == stopped.rollup["Anonymous"]  # the kernel says so
    assert stopped.audit.totals.cow_shared.bytes == 0
    assert "sharing-uncertain" not in {note.slug for note in stopped.audit.notes}


def test_mapped_sizes_are_those_of_the_last_line_of_pmap(stopped: Stopped) -> None:
    if not stopped.pmap:
        pytest.skip("pmap is not installed")
    last = re.search(r"^mapped: (\d+)K +writeable/private: (\d+)K +shared: (\d+)K$", stopped.pmap, re.MULTILINE)
    assert last is not None
    totals = stopped.audit.totals
    figures = totals.mapped.bytes, totals.mapped_writable.bytes, totals.mapped_shared.bytes
    assert figures == tuple(int(kib) * KIB for kib in last.groups())


def test_the_rows_add_up_to_the_mapped_sizes(stopped: Stopped) -> None:
    totals = stopped.audit.totals
    assert sum(row.mapped_bytes for row in stopped.rows()) == totals.mapped.bytes
    assert sum(row.mapped_bytes for row in stopped.rows() if row.is_writable) == totals.mapped_writable.bytes


def test_page_tables_are_those_of_the_status(stopped: Stopped) -> None:
    page_tables = [row.bytes for row in stopped.audit.ledger if row.name == "[page tables]"]
    assert page_tables == [int(stopped.status["VmPTE"].removesuffix(" kB")) * KIB]


def test_each_thread_has_a_kernel_stack_of_16_kib(stopped: Stopped) -> None:
    threads = len(os.listdir(f"/proc/{stopped.pid}/task"))
    name = f"[kernel stacks of {threads} thread{'' if threads == 1 else 's'}]"
    assert [row.bytes for row in stopped.audit.ledger if row.name == name] == [threads * 16 * KIB]


def test_a_process_costs_its_private_memory_and_what_the_kernel_spends_on_it(stopped: Stopped) -> None:
    totals = stopped.audit.totals
    kernel_bytes = sum(row.bytes or 0 for row in stopped.audit.ledger if row.kind.value == "kernel")
    assert totals.kernel.bytes == kernel_bytes
    assert totals.per_process.bytes == stopped.rollup["Anonymous"] + stopped.rollup["Swap"] + kernel_bytes


def test_the_answer_is_of_one_moment(stopped: Stopped) -> None:
    assert "changed-while-read" not in {note.slug for note in stopped.audit.notes}
    assert stopped.audit.mapping_count == len(stopped.blocks)
    assert stopped.audit.is_live
    assert stopped.audit.pid == stopped.pid


# --- the figures of each file -----------------------------------------------------------------------------------------


def bss_ranges(blocks: list[Block]) -> list[tuple[int, int]]:
    """Return the pages behind the file bytes of each writable segment, by readelf and where the object is loaded."""
    name = blocks[0].name
    with open(name, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    listing = subprocess.run(["readelf", "-lW", name], capture_output=True, check=True).stdout.decode()
    loads = [
        [int(number, 16) for number in numbers]
        for numbers in re.findall(r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x(\w+) ", listing, re.MULTILINE)
    ]
    first_vaddr = next(vaddr for offset, vaddr, _, _ in loads if offset == 0)
    loaded_addr = next(block.start_addr for block in blocks if block.offset == 0) - first_vaddr
    ranges = []
    for _, vaddr, file_bytes, memory_bytes in loads:
        start = -(-(loaded_addr + vaddr + file_bytes) // PAGE_BYTES) * PAGE_BYTES
        end = -(-(loaded_addr + vaddr + memory_bytes) // PAGE_BYTES) * PAGE_BYTES
        if memory_bytes > file_bytes and start < end:
            ranges.append((start, end))
    return ranges


def by_file(blocks: list[Block]) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        if block.inode and block.permissions[3] == "p" and block.name.startswith("/"):
            found[block.name].append(block)
    return found


def test_the_rows_of_a_file_add_up_to_the_anonymous_bytes_of_its_mappings_and_its_bss(stopped: Stopped) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    ours: dict[str, int] = defaultdict(int)
    # Thread-local variables are a file's own, but lie in stacks and in the heap.
    for row in (row for row in stopped.rows() if row.attribution is not Attribution.THREAD_VECTOR):
        ours[row.owner] += row.bytes or 0
    theirs: dict[str, int] = {}
    merged: set[Block] = set()
    for name, blocks in by_file(stopped.blocks).items():
        theirs[name] = sum(block.anonymous_bytes for block in blocks)
        for start, end in bss_ranges(blocks):
            for block in stopped.blocks:
                inside_bytes = min(end, block.end_addr) - max(start, block.start_addr)
                if inside_bytes <= 0:
                    continue
                assert not block.inode
                if start <= block.start_addr and block.end_addr <= end:
                    theirs[name] += block.anonymous_bytes
                elif block.anonymous_bytes == block.end_addr - block.start_addr:
                    theirs[name] += inside_bytes
                elif any(owner.startswith("[merged: ") for owner in ours):
                    # The kernel merged it with a neighbour, and smaps does not tell whose the private pages are.
                    merged.add(block)
                else:
                    first_addr, past_addr = max(start, block.start_addr), min(end, block.end_addr)
                    theirs[name] += private_bytes_between(stopped.pid, first_addr, past_addr)
    assert {name: ours[name] for name in theirs} == theirs
    assert sum(theirs.values()) > 0
    in_merged_rows = sum(size_bytes for owner, size_bytes in ours.items() if owner.startswith("[merged: "))
    assert in_merged_rows == sum(block.anonymous_bytes for block in merged)


def test_every_file_that_is_mapped_privately_is_an_owner(stopped: Stopped) -> None:
    assert set(by_file(stopped.blocks)) <= {row.owner for row in stopped.rows()}


@pytest.mark.parametrize("name", ["[heap]", "[stack]"])
def test_heap_and_stack_are_what_the_kernel_calls_so(stopped: Stopped, name: str) -> None:
    blocks = [block for block in stopped.blocks if block.name == name]
    if name == "[heap]" and any(before.end_addr == blocks[0].start_addr for before in stopped.blocks):
        pytest.skip("the heap touches what stands before it: some of it may be the program's .bss")
    rows = [row for row in stopped.rows() if row.owner == name]
    assert sum(row.mapped_bytes for row in rows) == sum(block.end_addr - block.start_addr for block in blocks) > 0
    assert sum(row.bytes or 0 for row in rows) == sum(block.anonymous_bytes for block in blocks)
