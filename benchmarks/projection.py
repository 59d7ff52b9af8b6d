"""What one more process costs: our figure from one copy, the peers' figures, and what a memory cgroup is charged.

    python benchmarks/projection.py [--only NAME ...] [--fork] [--calibrated]

N copies of a program are started in a fresh memory cgroup, by a process inside it, so that the stacks and tables of the
copies are charged there too. When half of them are there and nothing changes any more, the charge is read; when all
are, again. The growth, divided by the copies in between, is the truth: files and libraries were charged before. It is
the sum of anonymous memory, page cache and kernel memory; the group's own sum (`charged`) contains up to 63 pages a CPU
that the kernel charges ahead.

Then each of these copies is audited, as if it were the only one. No two have the same figure: where the address space
lies is random, which moves page tables by a page or two, and threads that race do not allocate the same. `ours` is the
figure of the middle copy, `error` what it is off by, and `hits` the share of the copies whose own figure is within 2 %.
`model` is how far the mean of all figures is off: the error that is ours, and not the copy's. The other columns are of
the middle copy: what `pmap -d` calls `writeable/private`, RSS, PSS, and USS.

`--fork` does the same for 50 children of one parent that has touched 200 MB: idle, and after rewriting 10 % of it.
Footprint uses its built-in constants, unless `--calibrated` allows those of `footprint doctor --calibrate`.
"""

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import footprint
from footprint.process.cgroup import GroupUsage, Launcher, MemoryGroup, make_group

KIB = 1024
BOUND = 0.02
PATIENCE_SECONDS = 180
TOLERANCE = 1 / 2000

MAPPINGS_C = """
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 1000; i++) { /* neighbours differ, or the kernel would make one mapping of them */
        char *area = mmap(0, 8192, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (i % 2 == 0) *area = 1;
    }
    pause();
}
"""
# Without a C library, so that it builds where there is no 32-bit one.
I386_C = """
static volatile char area[64 * 4096];
void _start(void) {
    for (unsigned i = 0; i < sizeof area; i += 4096) area[i] = 1;
    for (;;) __asm__ volatile("int $0x80" : : "a"(29) : "memory"); /* pause */
}
"""
SERVER_GO = """
package main

import "net/http"

func main() { panic(http.ListenAndServe("127.0.0.1:0", nil)) }
"""
SLEEP_JAVA = """
class Sleep {
    public static void main(String[] words) throws Exception { Thread.sleep(3_600_000); }
}
"""
PARENT_PYTHON = """
import os, signal, sys, time
count, share = int(sys.argv[1]), float(sys.argv[2])
memory = bytearray(200_000_000)
for place in range(0, len(memory), 4096):
    memory[place] = 1
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
while True:
    signal.sigwait({signal.SIGUSR1})
    for _ in range(count):
        if os.fork() == 0:
            for place in range(0, int(len(memory) * share), 4096):
                memory[place] = 2
            while True:
                time.sleep(3600)
"""


class MissingError(Exception):
    """A program that is not available on this machine."""


@dataclass(frozen=True)
class Program:
    """A program, the number of copies, and how to build it."""

    name: str
    count: int
    command: Callable[[Path], list[str]]


@dataclass(frozen=True)
class Row:
    """The figures of one program, in bytes per process."""

    name: str
    count: int
    ours: list[int]
    writable: int
    resident: int
    proportional: int
    unique: int
    truth: float
    charged: float
    kernel: float


# --- the programs -----------------------------------------------------------------------------------------------------


def installed(*command: str) -> Callable[[Path], list[str]]:
    """Return a command whose program may be missing."""

    def find(_: Path) -> list[str]:
        if shutil.which(command[0]) is None:
            raise MissingError(f"{command[0]} is not installed")
        return list(command)

    return find


def built(source: str, name: str, *compilers: list[str]) -> Callable[[Path], list[str]]:
    """Compile a source with the first available compiler; {} in its command is the file of the source."""

    def build(folder: Path) -> list[str]:
        (folder / name).write_text(source, encoding="ascii")
        program = str(folder / name.replace(".", "_"))
        environment = os.environ | {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        for compiler in compilers:
            command = [*compiler, "-o", program, name]
            if shutil.which(command[0]):
                done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
                if done.returncode == 0:
                    return [program]
        raise MissingError(f"{' or '.join(compiler[0] for compiler in compilers)} does not build it")

    return build


def java(folder: Path) -> list[str]:
    """Return the command of an idle JVM, with a compiled class where javac is available, else with the source."""
    installed("java")(folder)
    (folder / "Sleep.java").write_text(SLEEP_JAVA, encoding="ascii")
    if shutil.which("javac"):
        subprocess.run(["javac", "Sleep.java"], cwd=folder, check=True)
        return ["java", "-cp", str(folder), "Sleep"]
    return ["java", str(folder / "Sleep.java")]


PYTHON = "import ssl, sqlite3, asyncio, time; time.sleep(3600)"
FREESTANDING = ["-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"]
PROGRAMS = (
    Program("sleep", 300, installed("sleep", "3600")),
    Program("perl", 100, installed("perl", "-e", "sleep 3600")),
    Program("python3", 40, lambda _: [sys.executable, "-c", PYTHON]),
    Program("node", 16, installed("node", "-e", "setInterval(() => {}, 1e6)")),
    Program("java", 8, java),
    Program("go", 40, built(SERVER_GO, "server.go", ["go", "build"])),
    Program("c-1000", 40, built(MAPPINGS_C, "mappings.c", ["cc", "-O1"])),
    Program(
        "c-32bit", 200, built(I386_C, "i386.c", ["cc", "-m32", *FREESTANDING], ["i686-linux-gnu-gcc", *FREESTANDING])
    ),
)


# --- measuring --------------------------------------------------------------------------------------------------------


@contextmanager
def group_with_launcher() -> Iterator[tuple[MemoryGroup, Launcher]]:
    """Make a group with a launcher in it, and remove both at the end."""
    with ExitStack() as stack:
        group = stack.enter_context(make_group())
        yield group, stack.enter_context(Launcher(group))


def settled(group: MemoryGroup) -> GroupUsage:
    """Wait until a group is quiet."""
    return group.settled(PATIENCE_SECONDS, tolerance=TOLERANCE)


def measure(program: Program, folder: Path) -> Row:
    """Start copies of a program, and measure their cost.

    Raises:
        MissingError: Where it cannot be had, or does not stay.
    """
    command = program.command(folder)
    half = program.count // 2
    with group_with_launcher() as (group, launcher):
        pids = launcher.start(command, 2)
        settled(group)
        pids += launcher.start(command, half - 2)
        before = settled(group)
        new = launcher.start(command, program.count - half)
        after = settled(group)
        if not {*pids, *new} <= set(group.pids()):
            raise MissingError(f"it ends by itself: {' '.join(command)}")
        return row_of(program.name, new, before, after)


def measure_fork(name: str, share: float) -> Row:
    """Fork children of a large parent twice, and measure the cost of the second ones."""
    with group_with_launcher() as (group, launcher):
        parent, *_ = launcher.start([sys.executable, "-c", PARENT_PYTHON, "25", str(share)])
        settled(group)
        charges = []
        for _ in range(2):
            known = set(group.pids())
            os.kill(parent, signal.SIGUSR1)
            time.sleep(1)
            charges.append(settled(group))
        children = sorted(set(group.pids()) - known)
        if len(children) != 25:
            raise MissingError(f"{len(children)} of 25 children are there")
        return row_of(name, children, *charges)


def row_of(name: str, pids: Sequence[int], before: GroupUsage, after: GroupUsage) -> Row:
    """Audit each copy, and divide the growth of the group by their number."""
    costs = {pid: per_process_bytes(pid) for pid in pids}
    middle = sorted(pids, key=costs.__getitem__)[len(pids) // 2]
    rollup = rollup_of(middle)
    return Row(
        name,
        2 * len(pids),
        sorted(costs.values()),
        writable_bytes(middle),
        rollup["Rss"],
        rollup["Pss"],
        rollup["Private_Clean"] + rollup["Private_Dirty"],
        (after.used_bytes - before.used_bytes) / len(pids),
        (after.total_bytes - before.total_bytes) / len(pids),
        (after.kernel_bytes - before.kernel_bytes) / len(pids),
    )


def per_process_bytes(pid: int) -> int:
    """Read the cost of one more such process from footprint."""
    cost_bytes = footprint.audit(pid).totals.per_process.bytes
    if cost_bytes is None:
        raise MissingError("footprint cannot tell the cost")
    return cost_bytes


def rollup_of(pid: int) -> dict[str, int]:
    """Read the sums of the kernel."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
        return {key: int(value) * KIB for key, value in re.findall(r"^(\w+): +(\d+) kB$", text.read(), re.MULTILINE)}


def writable_bytes(pid: int) -> int:
    """Run `pmap -d`; where it is missing, our audit has the same figure."""
    if shutil.which("pmap"):
        text = subprocess.run(["pmap", "-d", str(pid)], capture_output=True, check=True, text=True).stdout
        if match := re.search(r"writeable/private: (\d+)K", text):
            return int(match.group(1)) * KIB
    return footprint.audit(pid).totals.mapped_writable.bytes or 0


# --- showing ----------------------------------------------------------------------------------------------------------

COLUMNS = (
    *("program", "N", "pmap-d", "RSS", "PSS", "USS"),
    *("ours", "truth", "error", "model", "hits", "charged", "kernel"),
)


def cells(row: Row) -> tuple[str, ...]:
    """Format the figures of a row, in KiB."""
    middle = row.ours[len(row.ours) // 2]
    hits = sum(abs(ours / row.truth - 1) <= BOUND for ours in row.ours) / len(row.ours)
    return (
        row.name,
        str(row.count),
        *(f"{size / KIB:,.0f}" for size in (row.writable, row.resident, row.proportional, row.unique)),
        f"{middle / KIB:,.1f}",
        f"{row.truth / KIB:,.1f}",
        f"{middle / row.truth - 1:+.2%}",
        f"{sum(row.ours) / len(row.ours) / row.truth - 1:+.2%}",
        f"{hits:.0%}",
        f"{row.charged / KIB:,.1f}",
        f"{row.kernel / KIB:,.1f}",
    )


def print_cells(texts: Sequence[str]) -> None:
    """Print a line of the table."""
    print(f"{texts[0]:<21}{texts[1]:>4}" + "".join(f"{text:>10}" for text in texts[2:]), flush=True)


def host() -> str:
    """Print the host."""
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
        huge_pages = re.findall(r"\[(\w+)\]", file.read())
    return f"Linux {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs, huge pages: {' '.join(huge_pages)}"


def jobs(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Return the programs to measure."""
    for program in PROGRAMS:
        if program.name in arguments.only or not (arguments.only or arguments.fork):
            yield program.name, partial(measure, program, folder)
    if arguments.fork:
        yield "fork, idle", partial(measure_fork, "fork, idle", 0)
        yield "fork, 10 % rewritten", partial(measure_fork, "fork, 10 % rewritten", 0.1)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print one line per program."""
    parser = argparse.ArgumentParser(description="our cost of one more process against a memory cgroup")
    parser.add_argument("--only", nargs="+", default=[], choices=[program.name for program in PROGRAMS])
    parser.add_argument("--fork", action="store_true", help="forked children of a large parent")
    parser.add_argument("--calibrated", action="store_true", help="with the constants of doctor --calibrate")
    arguments = parser.parse_args(words)
    # SIGTERM must not leave groups and processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.calibrated:
            os.environ["XDG_STATE_HOME"] = folder
        print(host(), "KiB a process", sep="; ")
        print_cells(COLUMNS)
        for name, job in jobs(arguments, Path(folder)):
            try:
                print_cells(cells(job()))
            except MissingError as reason:
                print(f"{name:<21}skipped: {reason}", flush=True)
            except footprint.AccessError as error:
                print(f"{name:<21}skipped: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
