"""Thread-local variables of live processes: their rows are what the programs themselves say of their addresses."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.model.row import Attribution, MemoryKind
from footprint.process.pages import ProcessMemory
from tests.liveprocesses import PAGE_BYTES, private_bytes_between

KIB = 1024
THREADS = 8
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the control block is that of x86"),
    pytest.mark.skipif(os.confstr("CS_GNU_LIBC_VERSION") is None, reason="programs here do not use glibc"),
]

# Each thread says where its variables are. `used` is written as far as its number, 4 KiB each.
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef LIBRARY
extern __thread char block[]; void *mine(void);
#else
__thread char block[40 * 1024]; static void *mine(void) { return block; }
#endif
static __thread char small[300] = "5";
static pthread_barrier_t all;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static void *body(void *p) {
    pthread_mutex_lock(&turn);
    printf("%p %p\\n", mine(), small); fflush(stdout);
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&all);
    if (p) pause();
    return p;
}
int main(void) {
    static pthread_t threads[THREADS - 1];
    pthread_barrier_init(&all, 0, THREADS);
    for (long i = 0; i < THREADS - 1; i++) pthread_create(&threads[i], 0, body, (void *)1);
    body(0);
    puts("ready"); fflush(stdout);
    pause();
}
"""
# All stacks lie in one mapping, as the kernel merges those of glibc 2.42 and later; the lowest thread never waits.
NEIGHBOURS = """
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
enum { SIZE = 8 << 20 };
static __thread char block[40 * 1024] = "5";
static pthread_barrier_t all;
static void *body(void *is_busy) {
    block[1] = 1;
    pthread_barrier_wait(&all);
    while (is_busy) block[2]++;
    pause();
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_attr_t given;
    char *stacks = mmap(0, SIZE * (THREADS - 1l), 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_attr_init(&given);
    pthread_barrier_init(&all, 0, THREADS);
    for (long i = 0; i < THREADS - 1; i++) {
        pthread_attr_setstack(&given, stacks + i * SIZE, SIZE);
        if (pthread_create(&thread, &given, body, (void *)(long)!i)) return 1;
    }
    pthread_barrier_wait(&all);
    puts("ready"); fflush(stdout);
    pause();
}
"""
LIBRARY = "__thread char block[40 * 1024]; void *mine(void) { return block; }\n"


def build(
    folder: Path, *options: str, library: bool = False, source: str = PROGRAM, thread_count: int = THREADS
) -> Path:
    (folder / "program.c").write_text(source)
    program = folder / "program"
    words = [
        "gcc",
        "-O1",
        f"-DTHREADS={thread_count}",
        "-o",
        str(program),
        str(folder / "program.c"),
        "-pthread",
        *options,
    ]
    if library:
        (folder / "blocks.c").write_text(LIBRARY)
        shared = ["gcc", "-O1", "-fPIC", "-shared", "-Wl,-soname,libblocks.so", *options]
        subprocess.run([*shared, "-o", folder / "libblocks.so", folder / "blocks.c"], check=True)
        words += ["-DLIBRARY", "-Wl,--no-as-needed", f"-L{folder}", "-lblocks", f"-Wl,-rpath,{folder}"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc {' '.join(options)} does not work here: {done.stderr[:200]}")
    return program


@contextmanager
def started(program: Path) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Start a program, and yield its PID and the addresses of the two variables of each thread."""
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        places = []
        for line in child.stdout:
            if line == "ready\n":
                break
            first, second = line.split()
            places.append((int(first, 16), int(second, 16)))
        try:
            yield child.pid, places
        finally:
            child.kill()


def held(audit: Audit, symbol: str) -> tuple[str, int, int]:
    """Return the owner of a variable, and its private and mapped bytes in all threads."""
    rows = [one for one in audit.ledger if one.attribution is Attribution.THREAD_VECTOR and one.symbol == symbol]
    (owner,) = {Path(row.owner).name for row in rows}
    return owner, sum(row.bytes or 0 for row in rows), sum(row.mapped_bytes for row in rows)


def private_within(pid: int, start_addr: int, end_addr: int) -> int:
    """Count the bytes between two addresses that lie in private pages."""
    pages = range(start_addr // PAGE_BYTES * PAGE_BYTES, end_addr, PAGE_BYTES)
    private = [page for page in pages if private_bytes_between(pid, page, page + PAGE_BYTES)]
    return sum(min(page + PAGE_BYTES, end_addr) - max(page, start_addr) for page in private)


@pytest.mark.parametrize("options", [[], ["-static"], ["-m32"], ["-static-pie"]], ids=["usual", "static", "32", "pie"])
def test_each_thread_local_variable_has_its_bytes_in_each_thread(tmp_path: Path, options: list[str]) -> None:
    with started(build(tmp_path, *options)) as (pid, places):
        audit = footprint.audit(pid)
        assert len(places) == THREADS
        expected = [
            sum(private_within(pid, at, at + size) for at in starts)
            for starts, size in zip(zip(*places, strict=True), (40 * KIB, 300), strict=True)
        ]
    assert held(audit, "block") == ("program", expected[0], THREADS * 40 * KIB)
    assert held(audit, "small") == ("program", expected[1], THREADS * 300)
    # glibc writes all of them when it makes a thread; in a static program the first one has untouched zeros.
    if "-static" not in " ".join(options):
        assert expected == [THREADS * 40 * KIB, THREADS * 300]
    assert (
        sum(one.bytes or 0 for one in audit.ledger if one.kind is not MemoryKind.KERNEL) == audit.totals.private.bytes
    )


@pytest.mark.parametrize("options", [[], ["-m32"]], ids=["64", "32"])
def test_the_variables_of_a_library_are_its_own(tmp_path: Path, options: list[str]) -> None:
    with started(build(tmp_path, *options, library=True)) as (pid, _):
        audit = footprint.audit(pid)
    assert held(audit, "block") == ("libblocks.so", THREADS * 40 * KIB, THREADS * 40 * KIB)
    assert held(audit, "small") == ("program", THREADS * 300, THREADS * 300)


@pytest.mark.parametrize("thread_count", [4, 30])
def test_stacks_that_the_kernel_merged_have_the_variables_of_each_thread(tmp_path: Path, thread_count: int) -> None:
    with started(build(tmp_path, source=NEIGHBOURS, thread_count=thread_count)) as (pid, _):
        assert held(footprint.audit(pid), "block")[2] == thread_count * 40 * KIB


def test_what_more_threads_cost_has_their_variables(tmp_path: Path) -> None:
    with started(build(tmp_path)) as (pid, _):
        projection = footprint.audit(pid, count=10, model="threads").projection
    (term,) = [one for one in projection.terms if "thread-local" in one.name]
    # The 40 KiB, and the touched end of a stack.
    assert 40 * KIB <= term.size_bytes <= 56 * KIB


def test_mappings_that_are_most_likely_no_stacks_are_not_read_where_all_threads_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = "static void __attribute__((constructor)) many(void) { for (int i = 0; i < 2000; i++) {\n"
    many += "char *p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); *p = 1; mprotect(p + 4096, 4096, 0); } }\n"
    monkeypatch.setattr(f"{__name__}.PROGRAM", "#include <sys/mman.h>\n" + many + PROGRAM)
    looked: list[int] = []
    skip = ProcessMemory.skip

    def counted(self: ProcessMemory, addr: int, end_addr: int) -> int:
        looked.append(addr)
        return skip(self, addr, end_addr)

    monkeypatch.setattr(ProcessMemory, "skip", counted)
    with started(build(tmp_path)) as (pid, _):
        audit = footprint.audit(pid)
    assert held(audit, "small") == ("program", THREADS * 300, THREADS * 300)
    assert len(looked) < 1000


PLUGINS = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *body(void *p) { puts("ready"); fflush(stdout); pause(); return p; }
int main(void) {
    void *a = dlopen("./liba.so", RTLD_NOW), *b = dlopen("./libb.so", RTLD_NOW);
    dlopen("./libthird.so", RTLD_NOW);
    dlclose(a); dlclose(b);
    // The numbers of both are free: the first one takes that of liba.so.
    if (!dlopen("./libb.so", RTLD_NOW) || !dlopen("./liba.so", RTLD_NOW)) return 1;
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    pause();
}
"""


def test_libraries_that_were_opened_again_have_their_own_variables(tmp_path: Path) -> None:
    sizes = {"liba": 48, "libb": 96, "libthird": 144}
    for name, size_bytes in sizes.items():
        source = f'__thread char of_{name}[{size_bytes}] __attribute__((tls_model("initial-exec"))); char *mine(void) '
        (tmp_path / f"{name}.c").write_text(source + f"{{ return of_{name}; }}\n")
        command = ["gcc", "-O1", "-fPIC", "-shared", "-o", f"{name}.so", f"{name}.c"]
        subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "program.c").write_text(PLUGINS)
    subprocess.run(["gcc", "-O1", "-o", "program", "program.c", "-pthread", "-ldl"], check=True, cwd=tmp_path)
    with subprocess.Popen([tmp_path / "program"], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        audit = footprint.audit(child.pid)
        child.kill()
    for name, size_bytes in sizes.items():
        assert held(audit, f"of_{name}") == (f"{name}.so", size_bytes, size_bytes)
