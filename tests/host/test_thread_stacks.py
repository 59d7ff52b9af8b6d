"""Where the stacks of threads begin and end, against what the program that made them says."""

import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import footprint
from footprint.process.snapshot import read_process
from tests.liveprocesses import wait_until

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
PRESENT = 1 << 63
COMPILERS = {"glibc": ["gcc"], "glibc, static": ["gcc", "-static"], "musl": ["musl-gcc"]}

# One mapping: the stack of a thread of 1 MiB at its bottom, and 6 MiB of data above, as Linux before 6.7 merges them.
MERGED = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void *waiting(void *word) { char used[20000]; memset(used, 1, sizeof used); for (;;) sleep(100 + used[9]); }
int main(void) {
    char *place = mmap(0, 7 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(place + (1 << 20), 1, 6 << 20);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, place, 1 << 20);
    pthread_create(&thread, &attributes, waiting, 0);
    printf("%zx\\n", (size_t)place); fflush(stdout);
    for (;;) sleep(100);
}
"""
MANY = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *waiting(void *word) { pthread_barrier_wait(&all); for (;;) sleep(100); }
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&all, 0, 31);
    for (int number = 0; number < 30; number++) pthread_create(&thread, 0, waiting, 0);
    pthread_barrier_wait(&all);
    puts("ready"); fflush(stdout);
    for (;;) sleep(100);
}
"""


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[bytes]"]]:
    children: list[subprocess.Popen[bytes]] = []
    yield children
    for child in children:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdout:
            child.stdout.close()


def run(children: list["subprocess.Popen[bytes]"], command: list[str]) -> tuple[int, bytes]:
    """Start a program, and return its PID and the first line that it prints."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    children.append(child)
    assert child.stdout is not None
    return child.pid, child.stdout.readline()


def built(folder: Path, source: str, compiler: list[str]) -> list[str]:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is missing")
    (folder / "program.c").write_text(source, encoding="ascii")
    words = [*compiler, "-O1", "-w", "-pthread", "-o", str(folder / "program"), str(folder / "program.c")]
    subprocess.run(words, check=True)
    return [str(folder / "program")]


def present_bytes(pid: int, start_addr: int, end_addr: int) -> int:
    """Count what is in memory between two addresses, by the page bits."""
    first, past = start_addr // PAGE_BYTES, end_addr // PAGE_BYTES
    with open(f"/proc/{pid}/pagemap", "rb") as file:
        file.seek(8 * first)
        entries = struct.unpack(f"{past - first}Q", file.read(8 * (past - first)))
    return sum(PAGE_BYTES for entry in entries if entry & PRESENT)


@pytest.mark.parametrize("is_group", [False, True], ids=["alone", "in a group"])
def test_of_a_mapping_only_the_block_of_the_thread_is_its_stack(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path, *, is_group: bool
) -> None:
    pid, line = run(started, built(tmp_path, MERGED, COMPILERS["glibc"]))
    wait_until(lambda: len(read_process(pid).thread_stacks.pointers) == 1, "the thread to wait")
    place = int(line, 16)
    ledger = footprint.audit_group([pid]).ledger if is_group else footprint.audit(pid).ledger
    sizes = {owner: sum(row.bytes or 0 for row in ledger if row.owner == owner) for owner in {r.owner for r in ledger}}
    stack_bytes = present_bytes(pid, place, place + MIB)
    # Alone, the variables of the thread are the libraries' own; they lie in the last page of its stack.
    assert stack_bytes - PAGE_BYTES <= sizes["[thread stacks]"] <= stack_bytes < 40_000
    assert 6 * MIB <= sizes["[anonymous]"] <= 6 * MIB + 8 * PAGE_BYTES


@pytest.mark.parametrize("library", COMPILERS)
def test_each_thread_has_a_block_of_its_own_that_its_stack_pointer_is_in(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path, library: str
) -> None:
    pid, _ = run(started, built(tmp_path, MANY, COMPILERS[library]))
    wait_until(lambda: len(read_process(pid).thread_stacks.pointers) == 30, "30 threads to wait")
    pointers, blocks = read_process(pid).thread_stacks
    assert len(blocks) == 30
    for start_addr, end_addr in blocks:
        assert sum(start_addr <= pointer < end_addr for pointer in pointers) == 1
    assert all(end <= start for (_, end), (start, _) in pairwise(blocks))
    # The end of a block is the end of its mapping, unless the kernel merged it with what is above.
    ends = {mapping.end_addr for mapping in read_process(pid).memory.mappings}
    assert sum(end in ends for _, end in blocks) >= 1


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["node", "-e", "console.log(1); setInterval(() => {}, 1e6)"], id="node"),
        pytest.param(["java", "-Xmx64m", "Program.java"], id="java"),
    ],
)
def test_the_threads_of_a_runtime_say_where_their_stacks_are(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing")
    source = 'public class Program { public static void main(String[] a) throws Exception { System.out.println("1");'
    (tmp_path / "Program.java").write_text(f"{source} Thread.sleep(600000); }} }}", encoding="ascii")
    pid, _ = run(started, [word.replace("Program.java", str(tmp_path / "Program.java")) for word in command])
    pointers, blocks = read_process(pid).thread_stacks
    assert pointers
    assert all(any(start <= pointer < end for start, end in blocks) for pointer in pointers)
