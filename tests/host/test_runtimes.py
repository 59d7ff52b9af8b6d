"""Memory of real runtimes has its owner: the kernel's counters over the addresses that their sources name say how much.

The programs are built here: C with AddressSanitizer and ThreadSanitizer, a JVM with G1, and Go with 64 threads.
"""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.model.row import Attribution
from footprint.process.mappings import Mapping
from footprint.process.maps_text import parse_maps

HEAPS = (0x500000000000, 0x600000000000)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept[4];
static void *work(void *at) { *(char **)at = memset(malloc(100000), 1, 100000); sleep(1000); return 0; }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, &kept[i]);
    for (int i = 0; i < 4; i++) while (!*(char *volatile *)&kept[i]) usleep(1000);
    puts("ready");
    fflush(stdout);
    sleep(1000);
}
"""
JAVA = """
public class Kept {
    static byte[][] kept = new byte[64][];
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 64; i++) { kept[i] = new byte[1 << 20]; java.util.Arrays.fill(kept[i], (byte) 1); }
        System.out.println("ready");
        Thread.sleep(1000000);
    }
}
"""
GO = """
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

var kept [][]byte

func main() {
	for i := 0; i < 64; i++ {
		b := make([]byte, 1<<20)
		for j := range b {
			b[j] = 1
		}
		kept = append(kept, b)
	}
	var started sync.WaitGroup
	for i := 0; i < 64; i++ {
		started.Add(1)
		go func() {
			runtime.LockOSThread()
			ends := [2]int{}
			syscall.Pipe(ends[:])
			started.Done()
			syscall.Read(ends[0], make([]byte, 1))
		}()
	}
	started.Wait()
	time.Sleep(500 * time.Millisecond)
	var text []byte
	for asked := uint64(1); asked != 0; {
		// The answer may take memory by itself.
		var stats, after runtime.MemStats
		runtime.ReadMemStats(&stats)
		text, _ = json.Marshal(map[string]uint64{"heap": stats.HeapSys + stats.StackSys})
		fmt.Fprintln(os.Stderr, string(text))
		runtime.ReadMemStats(&after)
		asked = after.HeapSys + after.StackSys - stats.HeapSys - stats.StackSys
	}
	fmt.Println("ready", string(text))
	time.Sleep(1000 * time.Second)
}
"""


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


@contextmanager
def running(*command: str) -> Iterator[tuple[int, str]]:
    """Run a program until it says that it is ready, and yield its PID and the rest of that line."""
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        try:
            line = program.stdout.readline() if program.stdout is not None else ""
            if not line.startswith("ready"):
                pytest.skip(f"{command[0]} does not run here")
            yield program.pid, line.removeprefix("ready")
        finally:
            program.kill()


def built(folder: Path, compiler: str, *options: str) -> str:
    (folder / "threads.c").write_text(THREADS)
    path = str(folder / "threads")
    done = subprocess.run([compiler, *options, "-pthread", "-o", path, str(folder / "threads.c")], check=False)
    if done.returncode:
        pytest.skip(f"{compiler} {' '.join(options)} builds nothing here")
    return path


def mappings_of(pid: int, wanted: Callable[[Mapping], bool]) -> list[Mapping]:
    found = parse_maps(Path(f"/proc/{pid}/smaps").read_bytes(), "smaps").mappings
    return [mapping for mapping in found if not mapping.inode and not mapping.name and wanted(mapping)]


def spanning(mappings: list[Mapping], size_bytes: int) -> list[Mapping]:
    """Return the mappings side by side that have a size together, and little more."""
    run: list[Mapping] = []
    for mapping in mappings:
        if run and run[-1].end_addr != mapping.start_addr:
            if run[-1].end_addr - run[0].start_addr >= size_bytes:
                break
            run = []
        run.append(mapping)
    assert size_bytes <= run[-1].end_addr - run[0].start_addr < size_bytes + 4 * MIB
    return run


def anonymous_bytes(mappings: list[Mapping]) -> int:
    return sum(mapping.counters.get("Anonymous") or 0 for mapping in mappings)


def guard_bytes() -> int:
    """Return how much longer the mapping of a stack is by its guard: a mapping of its own up to glibc 2.41."""
    name, version = platform.libc_ver()
    kernel = platform.release().split("-")[0]
    is_merged = name == "glibc" and numbers(version) >= (2, 42) and numbers(kernel) >= (6, 13)
    return PAGE_BYTES if is_merged else 0


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def stacks(audit: Audit) -> tuple[int, int]:
    """Return the private and mapped bytes of the stacks of 8 MiB with the thread-local variables at their ends."""
    private_bytes, mapped_bytes = held(audit, "[thread stacks]")
    blocks = [row for row in audit.ledger if row.attribution is Attribution.THREAD_VECTOR]
    # The first thread has the same variables elsewhere.
    count = round(mapped_bytes / (8 * MIB))
    private_bytes += sum(row.bytes or 0 for row in blocks) * count // (count + 1)
    return private_bytes, mapped_bytes + sum(row.mapped_bytes for row in blocks) * count // (count + 1)


def held(audit: Audit, owner: str) -> tuple[int, int]:
    """Return the private and mapped memory of an owner."""
    rows = [row for row in audit.ledger if row.owner == owner]
    return sum(row.bytes or 0 for row in rows), sum(row.mapped_bytes for row in rows)


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        pytest.param("gcc", ("-fsanitize=address",), marks=needs("gcc")),
        pytest.param("gcc", ("-fsanitize=address", "-static-libasan"), marks=needs("gcc")),
        pytest.param("clang", ("-fsanitize=address",), marks=needs("clang")),
    ],
    ids=["gcc", "gcc, static", "clang"],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the addresses are those of x86-64")
def test_the_shadow_of_address_sanitizer_is_no_stack_and_its_heap_no_arena(
    compiler: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    with running(built(tmp_path, compiler, *options)) as (pid, _):
        # asan_mapping.h: shadow of each address a is at (a >> 3) + 0x7fff8000, so it ends at 0x10007fff8000.
        shadow = mappings_of(pid, lambda one: 0x7FFF7000 <= one.start_addr < 0x10007FFF8000)
        # sanitizer_allocator_primary64.h: the heap spans 4 TiB and begins at 0x5000... or 0x6000..., or anywhere in
        # later versions.
        heap = mappings_of(pid, lambda one: any(0 <= one.start_addr - begin < 4 * TIB + 8 * KIB for begin in HEAPS))
        heap = heap or spanning(mappings_of(pid, lambda one: one.start_addr >= 0x10007FFF8000), 4 * TIB)
        audit = footprint.audit(pid)
    assert held(audit, "[asan shadow]") == (anonymous_bytes(shadow), 0x10007FFF8000 - 0x7FFF7000)
    assert held(audit, "[asan heap]") == (anonymous_bytes(heap), sum(one.size_bytes for one in heap))
    private_bytes, mapped_bytes = stacks(audit)
    assert 0 < private_bytes < MIB
    # Four stacks of the usual size; clang's has a thread of its own.
    assert 32 * MIB <= mapped_bytes <= 48 * MIB
    assert held(audit, "[malloc arenas]") == (0, 0)


@needs("gcc")
def test_the_shadow_of_thread_sanitizer_is_no_stack(tmp_path: Path) -> None:
    with running(built(tmp_path, "gcc", "-fsanitize=thread")) as (pid, _):
        audit = footprint.audit(pid)
        each_bytes = 8 * MIB + guard_bytes()
        mappings = mappings_of(
            pid,
            # Neighbours may be one mapping; the sanitizer's own memory is without reserve.
            lambda one: (
                one.size_bytes % each_bytes == 0 and one.permissions == "rw-p" and " nr" not in (one.vm_flags or "")
            ),
        )
    assert held(audit, "[tsan shadow]")[1] > 10 * TIB
    private_bytes, mapped_bytes = stacks(audit)
    assert mapped_bytes == sum(one.size_bytes for one in mappings) >= 4 * each_bytes
    assert private_bytes == anonymous_bytes(mappings)
    assert held(audit, "[malloc arenas]") == (0, 0)


@needs("node")
def test_the_heap_of_v8_is_what_v8_counts(tmp_path: Path) -> None:
    script = tmp_path / "kept.js"
    script.write_text("""
        const kept = []; for (let i = 0; i < 400000; i++) kept.push({i});
        gc();
        const counted = require("v8").getHeapStatistics().total_physical_size;
        require("fs").writeFileSync(process.argv[2], String(counted));
        console.log("ready");
        setInterval(() => kept.length, 1e6);
    """)
    with running("node", "--expose-gc", str(script), str(tmp_path / "counted")) as (pid, _):
        audit = footprint.audit(pid)
        # Where V8 has Abseil (13 does), its locks have an arena of 17 * 64 KiB that no other library shares.
        locks = mappings_of(pid, lambda one: one.size_bytes == 17 * 64 * KIB)
    private_bytes, _ = held(audit, "[v8 heap]")
    assert private_bytes == pytest.approx(int((tmp_path / "counted").read_text()), rel=0.1)
    assert private_bytes > 10 * MIB
    # Hardly anything is left without a name.
    assert len(locks) <= 1
    assert held(audit, "[anonymous]")[0] < MIB + anonymous_bytes(locks)


@needs("java", "javac")
@pytest.mark.parametrize("collector", ["G1", "Serial", "Parallel"])
def test_the_heap_of_a_jvm_is_no_arena(collector: str, tmp_path: Path) -> None:
    (tmp_path / "Kept.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(tmp_path), str(tmp_path / "Kept.java")], check=True)
    log = tmp_path / "log"
    options = (
        f"-XX:+Use{collector}GC",
        "-Xmx256m",
        "-XX:ReservedCodeCacheSize=32m",
        f"-Xlog:gc+heap+coops=debug:{log}",
    )
    with running("java", *options, "-cp", str(tmp_path), "Kept") as (pid, _):
        audit = footprint.audit(pid)
        maps = parse_maps(Path(f"/proc/{pid}/maps").read_bytes(), "maps").mappings
        place = re.search(r"Heap address: 0x([0-9a-f]+), size: 256 MB", log.read_text())
        assert place is not None
        start = int(place[1], 16)
        low = mappings_of(pid, lambda one: start <= one.start_addr < start + 256 * MIB)
    assert start + 256 * MIB <= 4 * GIB
    private_bytes, mapped_bytes = held(audit, "[java heap]")
    # What its archive of classes maps into the heap is of a file, which has its own row.
    archive = [one for one in maps if one.name.endswith(".jsa") and start <= one.start_addr < start + 256 * MIB]
    assert mapped_bytes + sum(one.size_bytes for one in archive) == 256 * MIB
    assert private_bytes == anonymous_bytes(low) >= 64 * MIB
    # The heap of C has arenas in such a program as well; each of its threads may have one.
    assert held(audit, "[malloc arenas]")[0] < 32 * MIB


@needs("java", "javac", "jcmd")
@pytest.mark.parametrize(
    "options",
    [
        ("-Xmx100m",),
        ("-Xmx600m",),
        ("-Xmx100m", "-XX:-UseCompressedOops"),
        ("-Xms600m", "-Xmx1200m", "-XX:-UseCompressedClassPointers"),
    ],
)
def test_without_an_archive_the_classes_of_a_jvm_are_not_its_heap(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "Kept.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(tmp_path), str(tmp_path / "Kept.java")], check=True)
    tracked = ("-Xshare:off", "-XX:NativeMemoryTracking=summary", "-XX:+UseSerialGC", *options)
    with running("java", *tracked, "-cp", str(tmp_path), "Kept") as (pid, _):
        audit = footprint.audit(pid)
        info = subprocess.run(["jcmd", str(pid), "GC.heap_info"], capture_output=True, text=True, check=True).stdout
        starts = [int(start, 16) for start in re.findall(r"\[0x([0-9a-f]+),", info)]
        ends = [int(end, 16) for end in re.findall(r", 0x([0-9a-f]+)\)", info)]
        of_heap = mappings_of(pid, lambda one: min(starts) <= one.start_addr < max(ends))
    private_bytes, mapped_bytes = held(audit, "[java heap]")
    if max(ends) > 32 * GIB:
        assert (private_bytes, mapped_bytes) == (0, 0)
    else:
        # One piece of the classes may lie in a mapping with the heap.
        assert private_bytes == anonymous_bytes(of_heap)
        assert 0 <= mapped_bytes - (max(ends) - min(starts)) <= 64 * KIB


@needs("go")
@pytest.mark.parametrize("flags", ["", "-s -w"], ids=["with symbols", "stripped"])
def test_the_heap_of_a_go_program_is_no_stack_though_its_stacks_lie_there(flags: str, tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO)
    (tmp_path / "go.mod").write_text("module example\n\ngo 1.20\n")
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOCACHE": str(tmp_path / "cache")}
    command = ["go", "build", "-ldflags", flags, "-o", "program", "."]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    with running(str(tmp_path / "program")) as (pid, line):
        audit = footprint.audit(pid)
    writable = [row for row in audit.ledger if row.owner == "[go heap]" and row.is_writable]
    # runtime.MemStats: what the heap and the stacks in it have from the system.
    assert sum(row.mapped_bytes for row in writable) == json.loads(line)["heap"]
    assert 64 * MIB <= held(audit, "[go heap]")[0] <= 72 * MIB
    assert held(audit, "[thread stacks]") == (0, 0)


@needs("gcc")
def test_an_ordinary_program_has_its_stacks_and_arenas_as_before(tmp_path: Path) -> None:
    with running(built(tmp_path, "gcc")) as (pid, _):
        audit = footprint.audit(pid)
    assert stacks(audit)[1] == 4 * (8 * MIB + guard_bytes())
    private_bytes, mapped_bytes = held(audit, "[malloc arenas]")
    assert mapped_bytes == 4 * 64 * MIB
    assert 4 * 100_000 <= private_bytes <= 4 * 140 * KIB
