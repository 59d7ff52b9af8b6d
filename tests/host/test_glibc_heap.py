"""The heap of live processes against what their own malloc counts: mallinfo2, malloc_usable_size, malloc_trim."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import footprint
from footprint.elf.image import read_image
from footprint.elf.notes import build_id
from footprint.model.audit import Audit
from footprint.model.row import MemoryKind
from footprint.process.glibc.chunks import TCACHES
from footprint.process.glibc.words import LAYOUTS

SOURCE = r"""
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 200000 };
static void *blocks[MOST];
static int count;

static void keep(void *block, size_t size) { memset(block, 1, size); blocks[count++] = block; }
static void release(int place) { free(blocks[place]); blocks[place] = 0; }

/* Two of five are freed, in an order in which malloc joins some of them. */
static void fragmented(void) {
    for (int i = 0; i < 100000; i++) keep(malloc(10 + i * 31 % 700), 10);
    for (int i = 0; i < count; i++) if (i % 5 < 2) release(i);
}
static void nearly_all_freed(void) {
    for (int i = 0; i < 40000; i++) keep(malloc(1000), 1000);
    for (int i = 0; i < count; i++) if (i % 10000) release(i);
}
static void mapped(void) {
    for (int i = 0; i < 20; i++) keep(malloc(1000000 + i * 4096), 100000);
    keep(aligned_alloc(64, 3000000), 5000);
    keep(aligned_alloc(4096, 3000000), 5000);
    keep(aligned_alloc(1 << 21, 3 << 20), 5000);
    for (int i = 0; i < count; i += 4) release(i);
}
/* All sizes that threads and fastbins keep, more than they keep. */
static void cached(void) {
    for (int i = 0; i < 60000; i++) keep(malloc(1 + i * 8 % 1100), 1);
    for (int i = 0; i < 60000; i += 2) release(i);
}
static void *in_thread(void *unused) {
    void **own = malloc(20000 * sizeof *own);
    for (int i = 0; i < 20000; i++) memset(own[i] = malloc(16 + i * 37 % 900), 1, 8);
    for (int i = 0; i < 20000; i += 3) free(own[i]);
    *(volatile int *)unused = 1;
    for (;;) pause();
}
static void threads(void) {
    static volatile int is_done[3];
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, in_thread, (void *)&is_done[i]);
        while (!is_done[i]) usleep(1000);
    }
}
/* Its arenas have several heaps of 64 MiB (with 32 bits of 1 MiB). */
static void *many_in_thread(void *is_done) {
    for (int i = 0; i < 1500; i++) memset(malloc(100000), 1, 100);
    *(volatile int *)is_done = 1;
    for (;;) pause();
}
static void heaps(void) {
    static volatile int is_done;
    pthread_t thread;
    pthread_create(&thread, 0, many_in_thread, (void *)&is_done);
    while (!is_done) usleep(1000);
}
/* Another caller of sbrk(2): of part of a page, of nothing but zeros, and of numbers that look like sizes. */
static void parted(void) {
    for (int i = 0; i < 60000; i++) {
        keep(malloc(10 + i * 31 % 700), 10);
        if (i % 20000 == 10000) {
            size_t size = i == 10000 ? 1000 : 40000;
            size_t *other = sbrk(size);
            for (size_t place = 0; i == 50000 && place < size / 8; place++) other[place] = place;
        }
    }
    for (int i = 0; i < count; i++) if (i % 5 < 2) release(i);
}
/* The break cannot rise: something is mapped behind it, later also behind what is mapped instead. */
static void walled(void) {
    keep(malloc(100), 100);
    long end = ((long)sbrk(0) + 4095 & -4096L) + 200000 / 4096 * 4096;
    mmap((void *)end, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (int i = 0; i < 80000; i++) {
        keep(malloc(10 + i * 31 % 700), 10);
        if (i % 20000 == 0) mmap(0, 300000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (i % 20000 == 1) mmap(0, 300000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    for (int i = 0; i < count; i++) if (i % 5 < 2) release(i);
}
/* The lists of threads lie in chunks that are 16 bytes longer: what was left of these was too small to be split off. */
static void exhausted(void) {
    static volatile int is_done[40];
    static void *longer[40], *between[40];
    mallopt(M_ARENA_MAX, 1);
    for (int i = 0; i < 40; i++) { longer[i] = malloc(0x298); keep(malloc(100), 100); }
    for (int i = 0; i < 40; i++) free(longer[i]);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, in_thread, (void *)&is_done[i]);
        while (!is_done[i]) usleep(1000);
    }
}

static void told(int signal) {
    char text[200];
    size_t usable = 0, used = 0;
    if (signal) malloc_trim(0);
    for (int i = 0; i < count; i++) if (blocks[i]) { usable += malloc_usable_size(blocks[i]); used++; }
    struct mallinfo2 all = mallinfo2();
    int length = snprintf(text, sizeof text, "%zu %zu %zu %zu %zu %zu %zu\n", all.arena, all.hblks, all.hblkhd,
                          all.fordblks, all.fsmblks, usable, used);
    write(1, text, length);
}

int main(int argc, char **argv) {
    switch (argv[1][0]) {
    case 'f': fragmented(); break;
    case 'n': nearly_all_freed(); break;
    case 'm': mapped(); break;
    case 'c': cached(); break;
    case 't': threads(); break;
    case 'h': heaps(); break;
    case 'p': parted(); break;
    case 'w': walled(); break;
    case 'e': exhausted(); break;
    }
    signal(SIGUSR1, told);
    told(0);
    for (;;) pause();
}
"""
KINDS = {"64 bits": (), "static": ("-static",), "32 bits": ("-m32",)}
SHAPES = ("fragmented", "nearly all freed", "mapped", "cached", "threads", "heaps", "exhausted")
BUSY = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 20000 };
static void *busy(void *is_main) {
    unsigned state = 1, round = 0;
    void **blocks = calloc(COUNT, sizeof *blocks);
    for (;;) {
        state = state * 1103515245 + 12345;
        int place = (state >> 8) % COUNT;
        free(blocks[place]);
        blocks[place] = malloc(16 + (state >> 4) % 1500);
        memset(blocks[place], 1, 16);
        /* Its memory grows no more. */
        if (is_main && ++round == 2000000) write(1, "ready\n", 6);
    }
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, busy, 0);
    busy(&thread);
}
"""


class Counted(NamedTuple):
    """What the program's own malloc counts: the fields of mallinfo2, and its blocks of which it knows the addresses."""

    arena: int
    hblks: int
    hblkhd: int
    fordblks: int
    fsmblks: int
    usable_bytes: int
    block_count: int


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.confstr("CS_GNU_LIBC_VERSION") is None or shutil.which("gcc") is None:
        pytest.skip("needs gcc and glibc")
    return tmp_path_factory.mktemp("heaps")


def program(folder: Path, source: str, kind: str) -> Path:
    path = folder / f"{kind} {len(source)}"
    if not path.exists():
        words = ["gcc", "-O0", "-w", *KINDS[kind], "-x", "c", "-", "-o", str(path), "-pthread"]
        made = subprocess.run(words, input=source, text=True, capture_output=True, check=False)
        if made.returncode:
            pytest.skip(f"cannot compile for {kind}: {made.stderr[-200:]}")
    return path


def counted(process: "subprocess.Popen[str]") -> Counted:
    assert process.stdout is not None
    return Counted(*map(int, process.stdout.readline().split()))


def wait_until_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


@contextmanager
def running(path: Path, *words: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    own = dict(os.environ) | environment
    with subprocess.Popen([path, *words], stdout=subprocess.PIPE, text=True, env=own) as started:
        try:
            yield started
        finally:
            started.kill()


def heap_bytes(audit: Audit) -> int:
    return sum(row.bytes or 0 for row in audit.ledger if row.kind is MemoryKind.HEAP)


@pytest.mark.parametrize("kind", KINDS)
def test_what_twenty_threads_keep_in_longer_chunks_is_found(compiled: Path, kind: str) -> None:
    with running(program(compiled, SOURCE, kind), "exhausted") as process:
        counts = counted(process)
        audit = footprint.audit(process.pid)
    allocator = audit.allocator
    assert allocator is not None
    assert allocator.unread == ()
    assert allocator.held_bytes - allocator.mapped_block_bytes == counts.arena
    assert (allocator.mapped_block_count, allocator.mapped_block_bytes) == (counts.hblks, counts.hblkhd)
    # mallinfo2 takes what threads keep for live.
    kept_by_threads_bytes = allocator.cached_bytes - counts.fsmblks
    assert allocator.free_bytes - kept_by_threads_bytes == counts.fordblks
    assert allocator.live_bytes + allocator.overhead_bytes + allocator.free_bytes == allocator.held_bytes
    # Each of 20 threads freed a third of its blocks, more than it keeps: 7 of each size.
    assert kept_by_threads_bytes >= 20 * 7 * sum(range(32, 944, 16))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "other_bytes"), [("parted", 81_000), ("walled", 0)])
def test_a_heap_in_several_pieces_is_read_behind_what_parts_it(
    compiled: Path, shape: str, other_bytes: int, kind: str
) -> None:
    with running(program(compiled, SOURCE, kind), shape) as process:
        counts = counted(process)
        audit = footprint.audit(process.pid)
    allocator = audit.allocator
    assert allocator is not None
    assert allocator.unread == ()
    # malloc counts what another caller of sbrk got, and the bytes up to the next chunk, as its own.
    assert other_bytes <= counts.arena - allocator.held_bytes + allocator.mapped_block_bytes <= other_bytes + 3 * 16
    assert allocator.free_bytes - (allocator.cached_bytes - counts.fsmblks) == counts.fordblks
    early_count = allocator.live_block_count - counts.block_count
    assert 0 <= early_count <= (9 if kind == "static" else 0)
    assert 0 <= allocator.live_bytes - counts.usable_bytes <= 1000 * early_count
    assert sum(row.mapped_bytes for row in audit.ledger if row.name == "[free]") == allocator.free_bytes


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_of_the_heap_are_in_use_or_free_to_the_byte(compiled: Path, shape: str) -> None:
    with running(program(compiled, SOURCE, "64 bits"), shape) as process:
        counted(process)
        audit = footprint.audit(process.pid)
    allocator = audit.allocator
    assert allocator is not None
    rows = [row for row in audit.ledger if row.kind is MemoryKind.HEAP and row.name is not None]
    assert {row.attribution for row in rows} == {"allocator"}
    assert sum(row.mapped_bytes for row in rows) == allocator.held_bytes
    assert sum(row.mapped_bytes for row in rows if row.name == "[free]") == allocator.free_bytes
    assert sum(row.bytes or 0 for row in rows if row.name == "[free]") == allocator.free_private_bytes
    # Nothing that malloc has is anything else.
    assert heap_bytes(audit) == sum(row.bytes or 0 for row in rows)


@pytest.mark.parametrize("shape", ["fragmented", "nearly all freed", "cached", "threads", "parted", "walled"])
def test_malloc_trim_returns_the_whole_pages_that_are_predicted(compiled: Path, shape: str) -> None:
    with running(program(compiled, SOURCE, "64 bits"), shape) as process:
        counted(process)
        before = footprint.audit(process.pid)
        process.send_signal(signal.SIGUSR1)
        counted(process)
        after = footprint.audit(process.pid)
    assert before.allocator is not None
    assert after.allocator is not None
    saved_bytes = heap_bytes(before) - heap_bytes(after)
    assert saved_bytes == before.allocator.trimmable_bytes
    assert after.allocator.trimmable_bytes == 0
    # Of 40,000 blocks of 1,000 bytes four are left.
    assert saved_bytes > 30_000_000 or shape != "nearly all freed"


def test_a_process_that_allocates_all_the_time_has_a_heap_near_the_truth_or_a_note_says_why_not(compiled: Path) -> None:
    with running(program(compiled, BUSY, "64 bits")) as process:
        wait_until_ready(process)
        audits = [footprint.audit(process.pid) for _ in range(10)]
    for audit in audits:
        slugs = {note.slug for note in audit.notes}
        assert audit.allocator is not None
        assert bool(audit.allocator.unread) is ("allocator-unread" in slugs)
    told = [audit.allocator for audit in audits if audit.allocator is not None and not audit.allocator.unread]
    assert told
    # Each of two threads has 20,000 blocks.
    assert all(account.live_block_count <= 1.03 * 40_000 for account in told)


def test_a_stopped_process_is_of_one_moment(compiled: Path) -> None:
    exact = []
    with running(program(compiled, BUSY, "64 bits")) as process:
        wait_until_ready(process)
        for _ in range(10):
            os.kill(process.pid, signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            audit = footprint.audit(process.pid)
            os.kill(process.pid, signal.SIGCONT)
            assert "changed-while-read" not in {note.slug for note in audit.notes}
            if audit.allocator is not None and not audit.allocator.unread:
                exact.append(audit.allocator.live_block_count)
    # It may be stopped while it changes a chunk: this is seen. Each thread has 20,000 blocks, its list, and what malloc
    # and the thread need.
    assert len(exact) >= 7
    assert all(count <= 40_010 for count in exact)


def test_reading_a_heap_makes_no_page_of_it(compiled: Path) -> None:
    with running(program(compiled, SOURCE, "64 bits"), "mapped") as process:
        counted(process)
        first, second = (footprint.audit(process.pid) for _ in range(2))
    assert first.totals.private == second.totals.private
    assert first.totals.kernel == second.totals.kernel


def test_the_tunable_that_takes_tcaches_away_is_seen(compiled: Path) -> None:
    with running(
        program(compiled, SOURCE, "64 bits"), "cached", GLIBC_TUNABLES="glibc.malloc.tcache_count=0"
    ) as process:
        own = counted(process)
        account = footprint.audit(process.pid).allocator
    assert account is not None
    assert account.cached_bytes == own.fsmblks
    assert (account.live_bytes, account.live_block_count) == (own.usable_bytes, own.block_count)


def test_a_heap_that_was_nearly_all_freed_is_a_finding_that_malloc_trim_proves(compiled: Path) -> None:
    with running(program(compiled, SOURCE, "64 bits"), "nearly all freed") as process:
        counted(process)
        before = footprint.audit(process.pid, has_findings=True)
        process.send_signal(signal.SIGUSR1)
        counted(process)
        after = footprint.audit(process.pid, has_findings=True)
    (finding,) = [one for one in before.findings if one.rule == "free-heap"]
    assert finding.saving_bytes == heap_bytes(before) - heap_bytes(after)
    assert finding.confidence == "medium"
    assert "free-heap" not in {one.rule for one in after.findings}
    assert "free-heap" in {searched_rule.rule for searched_rule in after.searched_rules}


def test_the_layouts_are_those_of_the_debug_information_of_this_c_library() -> None:
    library = Path("/lib/x86_64-linux-gnu/libc.so.6")
    if not library.exists() or shutil.which("gdb") is None:
        pytest.skip("needs gdb, and glibc for x86-64 where Debian has it")
    identity = build_id(read_image(library.read_bytes(), str(library))) or ""
    debug = Path("/usr/lib/debug/.build-id", identity[:2], f"{identity[2:]}.debug")
    if not debug.exists():
        pytest.skip("needs the debug file of the C library")
    names = ("malloc_state", "malloc_par", "_heap_info", "tcache_perthread_struct")
    words = [part for name in names for part in ("-ex", f"ptype /o struct {name}")]
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", *words, debug], text=True, capture_output=True, check=True)
    text = done.stdout
    arena, parameters, heap, lists = (
        {
            member: int(offset)
            for offset, member in re.findall(r"/\* +(\d+) +\| +\d+ \*/[^;{]*?(\w+)(?:\[\d+\])?;", body)
        }
        for body in text.split("type = struct ")[1:]
    )
    sizes = [int(size) for size in re.findall(r"total size \(bytes\): +(\d+)", text)]
    layout = LAYOUTS[8]
    bins, fastbin_count = {arena_layout.bins_offset: arena_layout for arena_layout in layout.arenas}[arena["bins"]]
    assert arena["top"] == bins - 16
    # From 2.43 on there are no fastbins.
    assert arena.get("fastbinsY", arena["top"]) == bins - 8 * (fastbin_count + 2)
    behind = bins + 254 * 8 + 16
    assert [arena[name] for name in ("next", "system_mem", "max_system_mem")] == [behind, behind + 24, behind + 32]
    # Two words and half a word are between the four counts and the start of the heap.
    assert parameters["sbrk_base"] - parameters["mmapped_mem"] == 16
    assert parameters["mmapped_mem"] - parameters["n_mmaps"] == 20
    assert [heap[name] for name in ("ar_ptr", "prev", "size")] == [0, 8, 16]
    assert sizes[2] == layout.info_bytes[0]
    kept = {lists_layout.size_bytes(8): lists_layout for lists_layout in TCACHES}[sizes[3]]
    assert lists["entries"] == kept.list_count * kept.count_bytes
