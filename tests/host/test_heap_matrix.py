"""Twenty shapes of heap with each allocator and way to link it, against what the program itself counts."""

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import footprint
from footprint.model.audit import Audit

SOURCE = Path(__file__).with_name("heap_shapes.c")
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GLIBC_VERSION = tuple(int(part) for part in platform.libc_ver()[1].split(".") if part.isdigit())
SHAPES = (
    *("small", "fragmented", "nearly all freed", "large", "zero", "ended threads", "live threads", "large arenas"),
    *("mapped", "cached", "aligned", "untouched", "zeroed", "grown", "shrunk", "around the threshold"),
    *("freed from the end", "waves", "forked", "pages"),
)


class Kind(NamedTuple):
    """An allocator, and how it comes into the program."""

    allocator: str
    words: tuple[str, ...] = ()
    compiler: str = "gcc"
    linked: str | None = None
    preloaded: str | None = None


GLIBC = {
    "glibc": Kind("glibc", ("-DMALLINFO",)),
    "glibc, static": Kind("glibc", ("-DMALLINFO", "-static")),
    "glibc, 32 bits": Kind("glibc", ("-DMALLINFO", "-m32")),
}
MUSL = {
    "musl": Kind("musl", compiler="musl-gcc"),
    "musl, static": Kind("musl", ("-static",), "musl-gcc"),
    "musl, static, not at a fixed address": Kind("musl", ("-static-pie", "-fPIE"), "musl-gcc"),
}
MIMALLOC = "libmimalloc.so.3" if (LIBRARIES / "libmimalloc.so.3").exists() else "libmimalloc.so.2"
OTHERS = {
    "jemalloc, preloaded": Kind("jemalloc", preloaded="libjemalloc.so.2"),
    "tcmalloc, preloaded": Kind("tcmalloc", preloaded="libtcmalloc_minimal.so.4"),
    "mimalloc, preloaded": Kind("mimalloc", preloaded=MIMALLOC),
    "jemalloc, linked": Kind("jemalloc", linked="libjemalloc.a"),
    "tcmalloc, linked": Kind("tcmalloc", linked="libtcmalloc_minimal.a"),
    "mimalloc, linked": Kind("mimalloc", linked="libmimalloc.so"),
    "jemalloc, static": Kind("jemalloc", ("-static",), linked="libjemalloc.a"),
    "tcmalloc, static": Kind("tcmalloc", ("-static",), linked="libtcmalloc_minimal.a"),
    "tcmalloc, static and stripped": Kind("tcmalloc", ("-static", "-s"), linked="libtcmalloc_minimal.a"),
}


class Counted(NamedTuple):
    """What the program knows: of mallinfo2 only with glibc."""

    pid: int
    asked_bytes: int
    usable_bytes: int
    block_count: int
    arena: int
    hblks: int
    hblkhd: int
    fordblks: int
    fsmblks: int


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes")


def program(folder: Path, kind: Kind) -> Path:
    name = "-".join((kind.compiler, *kind.words, kind.linked or ""))
    path = folder / name
    for library in (kind.linked, kind.preloaded):
        if library is not None and not (LIBRARIES / library).exists():
            pytest.skip(f"needs {library}")
    if path.exists():
        return path
    if shutil.which(kind.compiler) is None:
        pytest.skip(f"needs {kind.compiler}")
    linked = []
    if kind.linked is not None:
        # As whole as it is: in a program that calls only malloc, its other functions would be left out.
        whole = ["-Wl,--whole-archive", "-Wl,--no-as-needed", str(LIBRARIES / kind.linked), "-Wl,--no-whole-archive"]
        linked = [*whole, "-lstdc++", "-lm", "-ldl"]
    words = [kind.compiler, "-O0", "-w", *kind.words, str(SOURCE), "-o", str(path), "-pthread", *linked]
    made = subprocess.run(words, text=True, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"cannot compile: {made.stderr[-200:]}")
    return path


@contextmanager
def running(path: Path, kind: Kind, shape: str) -> Iterator[Counted]:
    environment = dict(os.environ)
    if kind.preloaded is not None:
        environment["LD_PRELOAD"] = str(LIBRARIES / kind.preloaded)
    with subprocess.Popen(
        [path, shape], stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as started:
        try:
            assert started.stdout is not None
            yield Counted(*map(int, started.stdout.readline().split()))
        finally:
            # One shape has a child.
            os.killpg(started.pid, signal.SIGKILL)


def unread(audit: Audit) -> list[str]:
    return [note.detail for note in audit.notes if note.slug == "allocator-unread"]


def check(audit: Audit, block_count: int, live_bytes: int) -> None:
    """Compare an account with what the program knows of its blocks, and with the ledger."""
    allocator = audit.allocator
    assert allocator is not None
    assert (allocator.unread, unread(audit)) == ((), [])
    # Standard output, threads and a static C library have some blocks of their own.
    assert 0 <= allocator.live_block_count - block_count <= 12
    assert 0 <= allocator.live_bytes - live_bytes <= 8192
    assert allocator.live_bytes + allocator.overhead_bytes + allocator.free_bytes == allocator.held_bytes
    named = [row for row in audit.ledger if row.name in {"[in use]", "[free]"}]
    assert sum(row.bytes or 0 for row in named if row.name == "[free]") == allocator.free_private_bytes
    # Nothing that the program wrote is anything else.
    nameless = sum(row.bytes or 0 for row in audit.ledger if row.owner in {"[anonymous]", "[heap]"} and not row.name)
    assert nameless <= 192 << 10


@pytest.mark.parametrize("kind", GLIBC)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_heap_of_glibc_is_what_malloc_counts(folder: Path, shape: str, kind: str) -> None:
    with running(program(folder, GLIBC[kind]), GLIBC[kind], shape) as process:
        audit = footprint.audit(process.pid)
    check(audit, process.block_count, process.usable_bytes)
    account = audit.allocator
    assert account is not None
    assert account.held_bytes - account.mapped_block_bytes == process.arena
    # glibc 2.43 counts two words too many for each block that mremap(2) resizes: there are less than 256 of them here.
    assert process.hblkhd % PAGE_BYTES == 0 or GLIBC_VERSION >= (2, 43)
    mapped_bytes = process.hblkhd - process.hblkhd % PAGE_BYTES
    assert (account.mapped_block_count, account.mapped_block_bytes) == (process.hblks, mapped_bytes)
    # mallinfo2 takes what threads keep for live.
    assert account.free_bytes - (account.cached_bytes - process.fsmblks) == process.fordblks


@pytest.mark.parametrize("kind", MUSL)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_live_bytes_of_musl_are_what_was_asked_for(folder: Path, shape: str, kind: str) -> None:
    with running(program(folder, MUSL[kind]), MUSL[kind], shape) as own:
        audit = footprint.audit(own.pid)
    check(audit, own.block_count, own.asked_bytes)
    assert audit.allocator is not None
    assert audit.allocator.allocator == "musl"


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("shape", ["fragmented", "mapped", "live threads"])
def test_an_allocator_that_is_not_read_is_named(folder: Path, shape: str, kind: str) -> None:
    with running(program(folder, OTHERS[kind]), OTHERS[kind], shape) as own:
        audit = footprint.audit(own.pid)
    (detail,) = unread(audit)
    assert detail.startswith(f"{OTHERS[kind].allocator} allocates for it, whose structures are not read")
    # Beside it, the C library's own malloc has next to nothing.
    assert audit.allocator is None or audit.allocator.held_bytes <= 0.03 * own.usable_bytes


@pytest.mark.parametrize("kind", ["musl", "musl, static"])
@pytest.mark.parametrize("shape", ["small", "fragmented", "large"])
def test_a_profile_of_the_same_calls_is_joined_with_musl_without_a_difference(
    folder: Path, shape: str, kind: str
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    profile = folder / f"{shape}.dhat"
    if not profile.exists():
        # Valgrind does not count the calls of a static program.
        command = [str(program(folder, GLIBC["glibc"])), shape, "end"]
        words = ["valgrind", "-q", "--tool=dhat", f"--dhat-out-file={profile}", *command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C"}, timeout=240)
    with running(program(folder, MUSL[kind]), MUSL[kind], shape) as own:
        audit = footprint.audit(own.pid, heap=str(profile), heap_at="end")
    assert audit.heap is not None
    assert audit.heap.allocator == "musl"
    assert audit.heap.live_bytes == pytest.approx(own.asked_bytes, rel=0.01)
    assert abs(audit.heap.difference_bytes) <= 0.03 * audit.heap.total_bytes
