"""What we read from profiles is what ms_print, heaptrack_print, pprof and jeprof read, and what programs really did."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from footprint.heap.formats import read_profile
from footprint.heap.profile import CallTree, Counted, HeapSnapshot, Profile
from tests.calltrees import stack

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"
# 50 blocks of 1000 bytes; then 25 of them and one of 7777.
PROGRAM = CORPUS / "ten.c"
PEAK_BYTES, END_BYTES, EVER_BYTES = 50_000, 32_777, 57_777
# Where the programs below find what they preload.
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def needed(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def library(name: str) -> str:
    for folder in LIBRARY_FOLDERS:
        if os.path.exists(found := f"{folder}/{name}"):
            return found
    pytest.skip(f"{name} is not installed")


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | {"LC_ALL": "C"} | environment, capture_output=True, check=False, timeout=120
    )
    if done.returncode:
        pytest.skip(f"{words[0]} fails here: {done.stderr.decode(errors='replace')[-200:]}")
    return done.stdout.decode(errors="surrogateescape")


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program whose allocations are known."""
    needed("gcc")
    folder = tmp_path_factory.mktemp("ten")
    options = ["-g", "-O1", "-fno-builtin-malloc", "-fno-optimize-sibling-calls"]
    run("gcc", *options, PROGRAM, "-o", "ten", cwd=folder)
    return folder / "ten"


def read(path: Path) -> Profile:
    return read_profile(path.read_bytes(), path.name)


def functions(tree: CallTree | None, node: int) -> list[str | None]:
    assert tree is not None
    return [frame.function for frame in stack(tree, node)]


# --- ms_print ---------------------------------------------------------------------------------------------------------

ROW = re.compile(r"^ +(\d+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)$", re.MULTILINE)
# The line of a tree: how deep, its bytes, and its label up to the first `#`, where ms_print cuts it.
NODE = re.compile(r"^((?:->|[| ] )*)[\d.]+% \(([\d,]+)B\) ([^#\n]*)", re.MULTILINE)


def as_shown(text: str) -> tuple[list[tuple[int, ...]], list[list[tuple[int, str]]]]:
    """Return the table of snapshots that ms_print shows, and its trees."""
    table = [tuple(int(cell.replace(",", "")) for cell in row) for row in ROW.findall(text)]
    parts = re.split(r"^-{80}$", text, flags=re.MULTILINE)
    shown = [[(int(size.replace(",", "")), label.strip()) for _, size, label in NODE.findall(part)] for part in parts]
    return table, [tree for tree in shown if tree]


def as_read(snapshots: tuple[HeapSnapshot, ...]) -> tuple[list[tuple[int, ...]], list[list[tuple[int, str]]]]:
    """Return the same of what was read."""
    from tests.massifwriter import label

    table: list[tuple[int, ...]] = []
    for snapshot in snapshots:
        parts = (snapshot.live_bytes, snapshot.extra_bytes or 0, snapshot.stack_bytes or 0)
        table.append((snapshot.number, int(snapshot.time or 0), sum(parts), *parts))
    trees = [
        [
            (snapshot.tree.node_bytes[node], label(snapshot.tree.frame(node)).partition("#")[0].strip())
            for node in range(len(snapshot.tree))
        ]
        for snapshot in snapshots
        if snapshot.tree is not None
    ]
    return table, trees


@pytest.mark.parametrize(
    "name",
    [
        "massif-3.19-default.out",
        "massif-3.19-inline.out.gz",
        "massif-3.19-noheap.out",
        "massif-3.19-pages-as-heap.out",
        "massif-3.19-stacks.out.gz",
        "massif-3.19-time-ms.out",
    ],
)
def test_ms_print_shows_the_same_table_and_trees(name: str, tmp_path: Path) -> None:
    import gzip

    needed("ms_print")
    raw = (CORPUS / name).read_bytes()
    path = tmp_path / "massif.out"
    path.write_bytes(gzip.decompress(raw) if name.endswith(".gz") else raw)
    # Nothing of a tree is hidden below a threshold of ms_print's own.
    table, trees = as_shown(run("ms_print", "--threshold=0", path, cwd=tmp_path))
    found_table, found_trees = as_read(read(path).snapshots)
    assert table == found_table
    assert len(trees) == len(found_trees)
    for shown, found_tree in zip(trees, found_trees, strict=True):
        assert shown == found_tree


# --- programs of which everything is known ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "peak_bytes"),
    [
        (["--peak-inaccuracy=0.0"], PEAK_BYTES),
        (["--peak-inaccuracy=0.0", "--stacks=yes"], PEAK_BYTES),
        (["--peak-inaccuracy=0.0", "--time-unit=B", "--detailed-freq=1"], PEAK_BYTES),
        (["--peak-inaccuracy=0.0", "--alloc-fn=make", "--alloc-fn=filled"], PEAK_BYTES),
        (["--heap=no", "--stacks=yes"], None),
        (["--pages-as-heap=yes"], None),
    ],
)
def test_massif_of_a_program(ten: Path, tmp_path: Path, options: list[str], peak_bytes: int | None) -> None:
    needed("valgrind")
    file = tmp_path / "massif.out"
    run("valgrind", "--tool=massif", f"--massif-out-file={file}", *options, ten, "a", "b #c\nd", cwd=tmp_path)
    profile = read(file)
    assert profile.command == f"{ten} a b #c\nd"
    assert profile.description is not None
    assert all(option in profile.description for option in options)
    assert (profile.counted == Counted.PAGES) == ("--pages-as-heap=yes" in options)
    if peak_bytes is None:
        return
    peak = profile.peak
    assert peak is not None
    assert (peak.live_bytes, peak.tree is not None) == (peak_bytes, True)
    assert peak.tree is not None
    names = functions(peak.tree, len(peak.tree) - 1)
    assert names[-1] == "main"
    assert ("make" in names) == ("--alloc-fn=make" not in options)
    assert profile.notes == ()


def test_dhat_of_a_program_and_its_xtree(ten: Path, tmp_path: Path) -> None:
    needed("valgrind")
    file, tree_file = tmp_path / "dhat.json", tmp_path / "xtmemory.ms"
    run("valgrind", "--tool=dhat", f"--dhat-out-file={file}", ten, cwd=tmp_path)
    dhat = read(file)
    assert [snapshot.live_bytes for snapshot in dhat.snapshots] == [PEAK_BYTES, END_BYTES]
    options = ["--xtree-memory=full", f"--xtree-memory-file={tree_file}"]
    run("valgrind", "--tool=memcheck", *options, ten, cwd=tmp_path)
    xtree = read(tree_file)
    assert [snapshot.live_bytes for snapshot in xtree.snapshots] == [END_BYTES]
    assert (xtree.format, xtree.notes) == ("xtree", ())
    totals = [{each.name: (each.tree.total_bytes, each.tree.total_blocks) for each in p.tallies} for p in (dhat, xtree)]
    assert totals[0]["allocated"] == totals[1]["allocated"] == (EVER_BYTES, 51)
    assert totals[1]["freed"] == (EVER_BYTES - END_BYTES, 25)


def test_heaptrack_of_a_program(ten: Path, tmp_path: Path) -> None:
    needed("heaptrack", "heaptrack_print")
    run("heaptrack", "-o", tmp_path / "recording", ten, cwd=tmp_path)
    (file,) = tmp_path.glob("recording.*")
    if file.suffix == ".zst":
        needed("zstd")
        run("zstd", "-dq", file, "-o", tmp_path / "inflated", cwd=tmp_path)
    else:
        (tmp_path / "inflated").write_bytes(file.read_bytes())
    profile = read(tmp_path / "inflated")
    shown = run("heaptrack_print", "-f", file, "-p", "0", "-a", "0", "-T", "0", "-l", "0", cwd=tmp_path)
    calls = re.search(r"calls to allocation functions: (\d+)", shown)
    assert calls is not None
    assert profile.tallies[0].tree.total_blocks == int(calls[1])
    assert profile.peak is not None
    # libstdc++ keeps a block of its own for emergencies, where it is loaded.
    other_bytes = profile.peak.live_bytes - PEAK_BYTES
    assert other_bytes in {0, 72704, 73728}
    assert profile.snapshots[-1].live_bytes == END_BYTES
    peak_shown = re.search(r"peak heap memory consumption: ([\d.]+)K", shown)
    assert peak_shown is not None
    assert round(profile.peak.live_bytes / 1000, 2) == float(peak_shown[1])

    run("heaptrack_print", "-f", file, "-M", tmp_path / "massif.out", cwd=tmp_path)
    export = read(tmp_path / "massif.out")
    assert export.format == "heaptrack massif"
    assert max(snapshot.live_bytes for snapshot in export.snapshots) <= profile.peak.live_bytes


def shown_bytes(text: str) -> int:
    """Return the total that pprof and jeprof show above their table."""
    total = re.search(r"^Total: (\d+) B$", text, re.MULTILINE)
    assert total is not None, text
    return int(total[1])


def test_gperftools_of_a_program(ten: Path, tmp_path: Path) -> None:
    needed("google-pprof")
    tcmalloc = library("libtcmalloc.so.4")
    run(ten, cwd=tmp_path, LD_PRELOAD=tcmalloc, HEAPPROFILE=str(tmp_path / "heap"))
    file = max(tmp_path.glob("heap.*.heap"))
    profile = read(file)
    for option, tree in (
        ("--inuse_space", profile.snapshots[0].tree),
        ("--alloc_space", profile.tallies[0].tree),
    ):
        shown = run("google-pprof", "--text", "--show_bytes", option, ten, file, cwd=tmp_path)
        assert tree is not None
        assert tree.total_bytes == shown_bytes(shown)
    assert profile.tallies[0].tree.total_bytes >= EVER_BYTES
    assert str(ten) in {module.path for module in profile.modules}
    assert profile.notes == ()


@pytest.mark.parametrize("period_exponent", [0, 10])
def test_jemalloc_of_a_program(ten: Path, tmp_path: Path, period_exponent: int) -> None:
    needed("jeprof")
    jemalloc = library("libjemalloc.so.2")
    options = f"prof:true,prof_final:true,prof_prefix:{tmp_path}/heap,lg_prof_sample:{period_exponent}"
    run(ten, cwd=tmp_path, LD_PRELOAD=jemalloc, MALLOC_CONF=options)
    files = list(tmp_path.glob("heap.*.heap"))
    if not files:
        pytest.skip("this jemalloc was built without its profiler")
    profile = read(files[0])
    assert profile.sample_period_bytes == 1 << period_exponent
    assert str(ten) in {module.path for module in profile.modules}
    shown = shown_bytes(run("jeprof", "--text", "--show_bytes", "--inuse_space", ten, files[0], cwd=tmp_path))
    # Each stack is rounded: by us to the nearest byte, by jeprof when it prints.
    assert abs(profile.snapshots[0].live_bytes - shown) <= len(profile.frames)
    if period_exponent == 0:
        # Its size classes are 1024 and 8192.
        tree: Any = profile.snapshots[0].tree
        addrs = [module for module in profile.modules if module.path == str(ten)]
        own = sum(
            size
            for node, size in enumerate(tree.own_bytes())
            if any(m.start_addr <= (f.addr or 0) < m.end_addr for f in stack(tree, node) for m in addrs)
        )
        assert own == 25 * 1024 + 8192
