"""What is read from profiles of pprof is what `go tool pprof` reads, in total and per function."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.elf.names import shown_name
from footprint.heap.formats import read_profile
from footprint.heap.profile import CallTree, Profile
from tests.calltrees import amounts_by_function, flat_amounts
from tests.liveprocesses import wait_until

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"
ROW = re.compile(
    r"^ *(-?\d+)B? +[\d.]+% +[\d.]+% +(-?\d+)B? +[\d.]+%  (.+?)(?: \((?:partial-)?inline\))?$", re.MULTILINE
)
TOTAL = re.compile(r" of (\d+)B? total")


def go(*words: str | Path, cwd: Path) -> str:
    if shutil.which("go") is None:
        pytest.skip("go is missing")
    environment = os.environ | {"PPROF_TMPDIR": str(cwd)}
    done = subprocess.run(["go", *words], cwd=cwd, env=environment, capture_output=True, check=False, timeout=300)
    if done.returncode:
        pytest.fail(done.stderr.decode(errors="replace")[-500:])
    return done.stdout.decode()


def top(file: Path, kind: str, cwd: Path, *options: str | Path) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the total that pprof shows, and for each function what it has alone, and with all that it calls."""
    words = ["tool", "pprof", "-top", "-unit=B", "-nodefraction=0", "-nodecount=100000", f"-sample_index={kind}"]
    shown = go(*words, *options, file, cwd=cwd)
    total = TOTAL.search(shown)
    assert total is not None, shown
    return int(total[1]), {name: (int(flat), int(cum)) for flat, cum, name in ROW.findall(shown)}


def as_top(tree: CallTree, place: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the same of a tree: of its bytes (0) or blocks (1)."""
    flat, cum = flat_amounts(tree), amounts_by_function(tree)
    total = (tree.total_bytes, tree.total_blocks)[place] or 0
    rows: dict[str, tuple[int, int]] = {}
    for name, amounts in cum.items():
        own = flat.get(name, (0, 0))[place] or 0
        rows[shown_name(str(name))] = (own, amounts[place] or 0)
    return total, {name: row for name, row in rows.items() if any(row)}


TREES: dict[str, tuple[Callable[[Profile], CallTree | None], int]] = {
    "inuse_space": (lambda profile: profile.snapshots[0].tree, 0),
    "inuse_objects": (lambda profile: profile.snapshots[0].tree, 1),
    "alloc_space": (lambda profile: profile.tallies[0].tree, 0),
    "alloc_objects": (lambda profile: profile.tallies[0].tree, 1),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program of Go."""
    folder = tmp_path_factory.mktemp("kept")
    go("build", "-o", "kept", str(CORPUS / "kept.go"), cwd=folder)
    return folder


@pytest.fixture(scope="module", params=[1, 4096, 524288])
def profiled(request: pytest.FixtureRequest, kept: Path) -> Path:
    """Return a folder with the profiles of a run, sampled at some rate."""
    folder = kept / str(request.param)
    folder.mkdir()
    subprocess.run(["./kept", str(request.param), folder], cwd=kept, stdin=subprocess.DEVNULL, check=True, timeout=60)
    return folder


@pytest.mark.parametrize("kind", TREES)
def test_a_heap_profile_of_go_is_that_of_pprof(profiled: Path, kind: str) -> None:
    file = profiled / "heap.pb.gz"
    choose, place = TREES[kind]
    tree = choose(read_profile(file.read_bytes(), file.name))
    assert tree is not None
    assert as_top(tree, place) == top(file, kind, profiled)


@pytest.mark.parametrize("kind", TREES)
def test_the_text_of_go_is_that_of_pprof_with_its_symbols(profiled: Path, kind: str) -> None:
    file = profiled / "heap.txt"
    choose, place = TREES[kind]
    tree = choose(read_profile(file.read_bytes(), file.name))
    assert tree is not None
    total, rows = as_top(tree, place)
    shown_total, shown = top(file, kind, profiled, profiled.parent / "kept")
    assert total == shown_total
    # Go leaves its own functions out of the lines of a stack, and pprof does not know which functions were inlined
    # from addresses alone. What both name has the same bytes.
    both = {name for name in rows if name in shown}
    assert {name for name in rows if name.startswith("main.") and "inlined" not in name} <= both
    assert {name: rows[name][1] for name in both} == {name: shown[name][1] for name in both}


@pytest.mark.parametrize("name", ["pprof-go1.26-kept.pb.gz", "pprof-go1.26-kept-sampled.pb.gz"])
def test_the_profiles_of_the_corpus_are_those_of_pprof(name: str, tmp_path: Path) -> None:
    tree = read_profile((CORPUS / name).read_bytes(), name).snapshots[0].tree
    assert tree is not None
    assert as_top(tree, 0) == top(CORPUS / name, "inuse_space", tmp_path)


def test_a_profile_of_jemalloc_pprof_has_the_addresses_of_pprof(tmp_path: Path) -> None:
    file = CORPUS / "pprof-jemalloc_pprof0.9.pb.gz"
    profile = read_profile(file.read_bytes(), file.name)
    tree = profile.snapshots[0].tree
    assert tree is not None
    # Without the files of that machine pprof names a function by its address and object.
    total, shown = top(file, "inuse_space", tmp_path, "-addresses", "-symbolize=none")
    assert total == tree.total_bytes
    sums = {int(name.split()[0], 16): row for name, row in shown.items()}
    _, rows = as_top(tree, 0)
    assert {int(name): row for name, row in rows.items()} == sums


@pytest.mark.parametrize(
    "name", ["massif-3.19-default.out", "dhat-3.19-heap.json", "heaptrack-1.4-ten.txt", "pprof-go1.26-kept.pb.gz"]
)
def test_what_footprint_writes_is_read_by_both_alike(name: str, tmp_path: Path) -> None:
    file = tmp_path / "own.pb.gz"
    assert main(["heap", str(CORPUS / name), "--format", "pprof", "-o", str(file)]) == 0
    profile = read_profile(file.read_bytes(), file.name)
    tree = profile.snapshots[0].tree
    assert tree is not None
    assert as_top(tree, 0) == top(file, "live", tmp_path, "-symbolize=demangle=full")


def test_the_profiles_of_processor_time_and_goroutines_are_refused_by_name(kept: Path, tmp_path: Path) -> None:
    subprocess.run(["./kept", "1", tmp_path], cwd=kept, stdin=subprocess.DEVNULL, check=True, timeout=60)
    for name in ("cpu.pb.gz", "goroutine.pb.gz"):
        assert main(["heap", str(tmp_path / name)]) == 3


def test_the_heap_of_a_live_program_of_go_is_split_by_its_functions(kept: Path, tmp_path: Path) -> None:
    words = ["./kept", "1", str(tmp_path)]
    with subprocess.Popen(words, cwd=kept, stdin=subprocess.PIPE) as process:
        try:
            file = tmp_path / "goroutine.pb.gz"  # the last one that it writes
            wait_until(lambda: file.exists() and file.stat().st_size > 0, "the profiles")
            before = footprint.audit(process.pid)
            after = footprint.audit(process.pid, heap=tmp_path / "heap.pb.gz")
        finally:
            process.kill()
    account = after.heap
    assert account is not None
    held = sum(row.bytes or 0 for row in before.ledger if row.owner == "[go heap]")
    assert held > 1 << 20
    # A page or two are touched between the two.
    assert abs((account.held_bytes or 0) - held) < 1 << 20
    blocks = next(share for share in account.shares if share.function == "main.blocks")
    # 3,000 blocks of 1,024 bytes; the runtime may allocate a block of its own below this function.
    _, functions = top(tmp_path / "heap.pb.gz", "inuse_space", tmp_path)
    assert blocks.size_bytes == functions["main.blocks"][0] >= 3_072_000
    own_bytes = (after.totals.private.bytes or 0) + (after.totals.kernel.bytes or 0)
    assert sum(row.bytes or 0 for row in after.ledger) == own_bytes
