"""Memory of odd kinds: the private memory of each process is what its page bits, or the kernel's counters, show.

The oracle reads `/proc/PID/pagemap` (bits 63 present, 62 swapped, 61 of a file or shared, 58 a guard, which looks
swapped, 56 mapped once) and the `Anonymous` of smaps by itself.
"""

import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from tests.liveprocesses import states, wait_until

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
PRESENT, SWAPPED, OF_FILE, GUARD, EXCLUSIVE = 1 << 63, 1 << 62, 1 << 61, 1 << 58, 1 << 56

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="page frames and control groups need root")

SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 4 << 20 };

static char *map(int flags, int file) {
    char *place = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, file, 0);
    if (place == MAP_FAILED) { perror("mmap"); exit(1); }
    return place;
}

static char *anonymous(void) { return map(MAP_PRIVATE | MAP_ANONYMOUS, -1); }

static void *stay(void *size) {
    char stack[100000];
    memset(stack, 1, (size_t)size);
    for (;;) sleep(100 + stack[9]);
}

static char *aligned(void) {
    char *place = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    place = (char *)(((size_t)place + SIZE - 1) & ~((size_t)SIZE - 1));
    madvise(place, SIZE, MADV_HUGEPAGE);
    return place;
}

int main(int count, char **words) {
    char const *mode = count > 1 ? words[1] : "plain";
    volatile char sum = 0;
    if (!strcmp(mode, "anonymous")) memset(anonymous(), 1, SIZE);
    if (!strcmp(mode, "zero page")) { char *p = anonymous(); for (int i = 0; i < SIZE; i += 4096) sum += p[i]; }
    if (!strcmp(mode, "every other page")) { char *p = anonymous(); for (int i = 0; i < SIZE; i += 8192) p[i] = 1; }
    if (!strcmp(mode, "heap")) { char *p = malloc(SIZE); memset(p, 1, SIZE); sum += p[9]; }
    if (!strcmp(mode, "small blocks")) for (int i = 0; i < 20000; i++) memset(malloc(100), 1, 100);
    if (!strcmp(mode, "lazily freed")) { char *p = anonymous(); memset(p, 1, SIZE); madvise(p, SIZE / 2, MADV_FREE); }
    if (!strcmp(mode, "freed")) { char *p = anonymous(); memset(p, 1, SIZE); madvise(p, SIZE / 2, MADV_DONTNEED); }
    if (!strcmp(mode, "locked")) { char *p = anonymous(); mlock(p, SIZE); }
    if (!strcmp(mode, "protected")) { char *p = anonymous(); memset(p, 1, SIZE); mprotect(p, SIZE / 2, PROT_NONE); }
    if (!strcmp(mode, "moved")) mremap(memset(anonymous(), 1, SIZE), SIZE, 2 * SIZE, MREMAP_MAYMOVE);
    if (!strcmp(mode, "huge")) memset(aligned(), 1, SIZE);
    if (!strcmp(mode, "huge, split")) {
        char *p = aligned();
        memset(p, 1, SIZE);
        madvise(p + 4096, 4096, MADV_DONTNEED);
    }
    if (!strcmp(mode, "huge, released")) {
        char *p = memset(aligned(), 1, SIZE);
        for (int i = 0; i < SIZE; i += 2 << 20) madvise(p + i + 4096, (2 << 20) - 4096, MADV_DONTNEED);
    }
    if (!strcmp(mode, "shared")) memset(map(MAP_SHARED | MAP_ANONYMOUS, -1), 1, SIZE);
    if (!strcmp(mode, "System V")) memset(shmat(shmget(IPC_PRIVATE, SIZE, 0600), NULL, 0), 1, SIZE);
    if (!strcmp(mode, "memory file")) {
        int file = syscall(SYS_memfd_create, "odd", 0);
        if (ftruncate(file, SIZE)) return 1;
        memset(map(MAP_SHARED, file), 1, SIZE);
        memset(map(MAP_PRIVATE, file), 2, SIZE / 4);
    }
    if (!strcmp(mode, "deleted file")) {
        char name[] = "odd-XXXXXX";
        int file = mkstemp(name);
        if (ftruncate(file, SIZE)) return 1;
        unlink(name);
        char *p = map(MAP_PRIVATE, file);
        for (int i = 0; i < SIZE; i += 4096) sum += p[i];
        memset(p, 1, SIZE / 4);
    }
    if (!strcmp(mode, "threads"))
        for (long i = 1; i <= 20; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, stay, (void *)(i * 4500));
        }
    if (!strncmp(mode, "forked", 6)) {
        char *p = strcmp(mode, "forked, huge") ? anonymous() : aligned();
        memset(p, 1, SIZE);
        int ends[2];
        if (pipe(ends)) return 1;
        if (!fork()) {
            if (strcmp(mode, "forked, read")) memset(p, 2, SIZE / 4);
            close(ends[1]);
            close(ends[0]);
            for (;;) sleep(100);
        }
        close(ends[1]);
        if (read(ends[0], ends, 1)) return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) sleep(100);
}
"""
MODES = (
    "plain",
    "anonymous",
    "zero page",
    "every other page",
    "heap",
    "small blocks",
    "lazily freed",
    "freed",
    "locked",
    "protected",
    "moved",
    "huge",
    "huge, split",
    "shared",
    "System V",
    "memory file",
    "deleted file",
    "threads",
    "forked, read",
    "forked, written",
    "forked, huge",
)
BUILDS = {
    "dynamic": ["gcc", "-O1", "-pthread"],
    "static": ["gcc", "-O1", "-pthread", "-static"],
    "32 bit": ["gcc", "-O1", "-pthread", "-m32"],
    "musl": ["musl-gcc", "-O1", "-pthread"],
}
# Those whose memory does not depend on the build are tried with one.
ALL_BUILDS = frozenset({"plain", "heap", "small blocks", "threads", "forked, written", "huge", "memory file"})
CASES = [(build, mode) for build in BUILDS for mode in MODES if build == "dynamic" or mode in ALL_BUILDS]
RUNTIMES = {
    "python": [sys.executable, "-c", "x = [[n] * 9 for n in range(99999)]; print('ready', flush=True); input()"],
    "node": [
        "node",
        "-e",
        "globalThis.x = Array.from({length: 99999}, (_, n) => [n]); console.log('ready'); setInterval(() => 0, 1e6)",
    ],
    "perl": ["perl", "-e", "$| = 1; @x = map { [$_] } 1..99999; print qq(ready\\n); sleep 999"],
    "shell": ["sh", "-c", "echo ready; read x"],
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("odd")
    source = folder / "odd.c"
    source.write_text(SOURCE)
    built = {}
    for name, command in BUILDS.items():
        target = folder / name.replace(" ", "-")
        done = subprocess.run([*command, str(source), "-o", str(target)], capture_output=True, check=False)
        if done.returncode == 0:
            built[name] = target
    return built


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[bytes]"]]:
    children: list[subprocess.Popen[bytes]] = []
    yield children
    for child in children:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def start(children: list["subprocess.Popen[bytes]"], command: list[str], folder: Path) -> list[int]:
    """Start a program in a session of its own, and return its processes when it says that it is ready."""
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    found = subprocess.run(["pgrep", "-s", str(child.pid)], capture_output=True, check=True).stdout
    pids = [int(pid) for pid in found.split()]
    for pid in pids:
        wait_until(lambda: states(pid) == {"S"}, f"process {pid} to sleep")  # noqa: B023 # it is called here
    return pids


def bits_and_counters(pid: int) -> tuple[int, int, int]:
    """Return what page bits call private, and the least and most that the counters allow; hugetlb pages left out."""
    private = least = most = 0
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for mapping in Path(f"/proc/{pid}/smaps").read_text().split("\nVmFlags")[:-1]:
            rows = [line for line in mapping.split("\n") if ":" in line and line.split(":")[0].isidentifier()]
            counters = {row.split(":")[0]: int(row.split()[1]) * 1024 for row in rows if row.split()[1].isdigit()}
            if not counters.get("Anonymous") and not counters.get("Swap"):
                continue
            header = next(line for line in mapping.split("\n") if line and "-" in line.split(" ")[0])
            begin, end = (int(text, 16) for text in header.split(" ")[0].split("-"))
            shared = counters["Shared_Clean"] + counters["Shared_Dirty"]
            least += max(0, counters["Anonymous"] - shared)
            most += min(counters["Anonymous"], counters["Private_Clean"] + counters["Private_Dirty"])
            pagemap.seek(begin // PAGE_BYTES * 8)
            raw = pagemap.read((end - begin) // PAGE_BYTES * 8)
            for (entry,) in struct.iter_unpack("=Q", raw):
                if entry & GUARD:
                    assert not entry & (PRESENT | OF_FILE | EXCLUSIVE)
                elif entry & SWAPPED or (entry & PRESENT and not entry & OF_FILE and entry & EXCLUSIVE):
                    private += PAGE_BYTES
    return private, least, most


def quiet_audit(pid: int) -> tuple[footprint.Audit, int, int, int]:
    """Audit a process while its pages stay as they are: the kernel joins pages to huge ones at any time."""
    while True:
        before = bits_and_counters(pid)
        audit = footprint.audit(pid)
        if bits_and_counters(pid) == before:
            return audit, *before


def assert_is_exact(pid: int) -> None:
    audit, bits, least, most = quiet_audit(pid)
    private_bytes = audit.totals.private.bytes
    assert private_bytes is not None
    rows_bytes = sum(row.bytes or 0 for row in audit.ledger)
    assert rows_bytes + audit.totals.of_which.own_shared_bytes == audit.totals.per_process.bytes
    if least <= bits <= most:
        assert private_bytes == bits
    else:
        # A huge page that a fork has split: the bits of its first page stand for all.
        assert any(note.slug == "page-bits-differ" for note in audit.notes)
        assert least <= private_bytes <= most


@pytest.mark.parametrize(("build", "mode"), CASES)
def test_the_private_memory_is_that_of_the_page_bits(
    programs: dict[str, Path],
    started: list["subprocess.Popen[bytes]"],
    tmp_path: Path,
    build: str,
    mode: str,
) -> None:
    pids = start(started, [str(programs[build]), mode], tmp_path)
    assert len(pids) == (2 if mode.startswith("forked") else 1)
    for pid in pids:
        assert_is_exact(pid)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_private_memory_of_a_runtime_is_that_of_the_page_bits(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path, runtime: str
) -> None:
    if shutil.which(RUNTIMES[runtime][0]) is None:
        pytest.fail(f"{runtime} is not installed")
    (pid,) = start(started, RUNTIMES[runtime], tmp_path)
    assert_is_exact(pid)


def test_a_huge_page_that_is_released_in_part_is_told_as_far_as_nobody_maps_it(
    programs: dict[str, Path], started: list["subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel makes no transparent huge pages")
    (pid,) = start(started, [str(programs["dynamic"]), "huge, released"], tmp_path)
    # Two huge pages, of each of which one page is left.
    (note,) = [note for note in footprint.audit(pid).notes if note.slug == "huge-pages-released"]
    assert note.detail.startswith("3.99 MiB")


def test_a_java_program_has_the_private_memory_of_its_page_bits(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    (tmp_path / "Odd.java").write_text(
        'class Odd { public static void main(String[] a) throws Exception { System.out.println("ready"); '
        "Thread.sleep(999999); } }"
    )
    subprocess.run(["javac", "Odd.java"], cwd=tmp_path, check=True)
    (pid,) = start(started, ["java", "-XX:+UseG1GC", "-Xmx64m", "Odd"], tmp_path)
    assert_is_exact_as_it_changes(pid)


def test_a_go_program_has_the_private_memory_of_its_page_bits(
    started: list["subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    (tmp_path / "odd.go").write_text(
        'package main\nimport ("fmt"; "time")\nvar kept = make([]byte, 8<<20)\n'
        'func main() { for i := range kept { kept[i] = 1 }; fmt.Println("ready"); time.sleep() }\n'.replace(
            "time.sleep()", "time.Sleep(time.Hour)"
        )
    )
    environment = os.environ | {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "HOME": str(tmp_path)}
    subprocess.run(["go", "build", "-o", "odd", "odd.go"], cwd=tmp_path, env=environment, check=True)
    (pid,) = start(started, ["./odd"], tmp_path)
    assert_is_exact_as_it_changes(pid)


def assert_is_exact_as_it_changes(pid: int) -> None:
    """Compare while all threads stand still: a runtime works on in the background."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: states(pid) == {"T"}, f"process {pid} to stand still")
    assert_is_exact(pid)
