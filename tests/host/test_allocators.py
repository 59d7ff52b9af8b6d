"""The heap of programs that count it themselves: live, overhead and free bytes, with four allocators."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import footprint
from footprint.model.heap_account import HeapAccount

SOURCE = Path(__file__).with_name("allocations.c")
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
# As whole as it is: in a program that calls only malloc, its other functions would be left out.
JEMALLOC = ["-Wl,--whole-archive", str(LIBRARIES / "libjemalloc.a"), "-Wl,--no-whole-archive", "-lm", "-lstdc++"]
OTHER = "another allocator"  # a second word of the program


class Case(NamedTuple):
    """A way to allocate, and the allocator: linked in, preloaded, or that of glibc."""

    way: str
    linked: str | None = None
    preloaded: str | None = None


CASES = {
    "fragmented": Case("fragmented"),
    "nearly all freed": Case("freed"),
    "threads": Case("threads"),
    "mapped blocks": Case("mapped"),
    "static jemalloc": Case("fragmented", linked="libjemalloc.a"),
    "preloaded jemalloc": Case("fragmented", preloaded="libjemalloc.so.2"),
    "preloaded mimalloc": Case("fragmented", preloaded="libmimalloc.so.2"),
    "preloaded tcmalloc": Case("fragmented", preloaded="libtcmalloc_minimal.so.4"),
}


class Counted(NamedTuple):
    """The process of a case, what it counts, and profiles of other runs of it."""

    pid: int
    command: list[str]
    live_bytes: int
    overhead_bytes: int
    free_bytes: int
    profiles: dict[str, str]


@pytest.fixture(scope="module", params=list(CASES))
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("allocations")
    for library in (case.linked, case.preloaded):
        if library is not None and not (LIBRARIES / library).exists():
            pytest.skip(f"{library} is not installed")
    for tool in ("gcc", "valgrind"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program = folder / "allocations"
    linked = ["-rdynamic", *JEMALLOC] if case.linked else []
    subprocess.run(["gcc", "-O1", "-g", "-o", program, SOURCE, *linked, "-lpthread", "-ldl"], check=True)
    command = [str(program), case.way, *([OTHER] if case.linked or case.preloaded else [])]
    if case.preloaded:
        command = ["/usr/bin/env", f"LD_PRELOAD={LIBRARIES / case.preloaded}", *command]
    profiles = {"massif": str(folder / "massif.out"), "dhat": str(folder / "dhat.out")}
    for tool, path in profiles.items():
        words = ["valgrind", "-q", f"--tool={tool}", "--trace-children=yes", f"--{tool}-out-file={path}", *command]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=240)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        own = json.loads(process.stdout.readline())
        # mimalloc has no counter of what is free: what was freed, with as much beside it as what is live has.
        freed_bytes = own["freed"] * (own["live"] + own["overhead"]) // own["live"]
        free_bytes = freed_bytes if case.preloaded and "mimalloc" in case.preloaded else own["free"]
        yield Counted(process.pid, command, own["live"], own["overhead"], free_bytes, profiles)
        process.kill()


def check(account: HeapAccount | None, counted: Counted) -> None:
    """Compare an account with what the program counts itself: within 3 %."""
    assert account is not None
    assert account.live_bytes == pytest.approx(counted.live_bytes, rel=0.03)
    assert account.extra_bytes is not None
    if account.allocator == "tcmalloc":
        # It counts as free what is left of the pages of its size classes, and can never be used.
        assert account.extra_bytes > counted.overhead_bytes
        beside_bytes = counted.overhead_bytes + counted.free_bytes
        assert account.extra_bytes + account.free_bytes == pytest.approx(beside_bytes, rel=0.03)
    else:
        assert account.extra_bytes == pytest.approx(counted.overhead_bytes, rel=0.03)
        assert account.free_bytes == pytest.approx(counted.free_bytes, rel=0.03)
    assert abs(account.difference_bytes) <= 0.03 * account.total_bytes


def test_a_run_under_massif_tells_what_the_program_counts_and_its_profile_fits_the_live_process(
    counted: Counted, tmp_path: Path
) -> None:
    kept = tmp_path / "massif.out"
    ran = footprint.run(counted.command, has_massif=True, massif_out=str(kept))
    check(ran.audit.heap, counted)
    assert [note.slug for note in ran.notes if note.slug.startswith("heap")] == []
    check(footprint.audit(counted.pid, heap=str(kept)).heap, counted)


def test_dhat_tells_what_the_live_process_counts(counted: Counted) -> None:
    audit = footprint.audit(counted.pid, heap=counted.profiles["dhat"])
    check(audit.heap, counted)
    assert [note.slug for note in audit.notes if note.slug.startswith("heap")] == []


def test_a_file_of_massif_alone_is_right_or_says_that_the_end_is_unknown(counted: Counted) -> None:
    audit = footprint.audit(counted.pid, heap=counted.profiles["massif"])
    assert "heap-end-unknown" in {note.slug for note in audit.notes}
    assert audit.heap is not None
    assert not audit.heap.has_end
