"""What the verb heap shows is what ms_print, heaptrack_print, pprof and jeprof show, by function and call."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.attribution.heap_usage import HeapUsage
from footprint.cli import main
from footprint.heap.attribution import attribute

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus" / "heap"
SAMPLE = ROOT / "sample_binaries" / "heap_by_function"
MASSIF = [
    CORPUS / "massif-3.19-default.out",
    CORPUS / "massif-3.19-inline.out.gz",
    CORPUS / "massif-3.19-pages-as-heap.out",
    CORPUS / "massif-3.19-stacks.out.gz",
    CORPUS / "massif-3.19-time-ms.out",
    SAMPLE / "massif.out",
]
# The line of a tree of ms_print: how deep, its share, its bytes, and its label.
NODE = re.compile(r"^((?:->|[| ] )*)([\d.]+)% \(([\d,]+)B\) (.*)$", re.MULTILINE)
LABEL = re.compile(r"0x([0-9A-F]+): (.*?)(?: \((?:in (.*)|[^()]*:\d+)\))?")
CONSUMED = re.compile(r"^([\d.]+)K peak memory consumed over \d+ calls from\n(\w+)$", re.MULTILINE)
Node = tuple[int, str, int, str]


def needed(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def library(name: str) -> str:
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        if os.path.exists(found := f"{folder}/{name}"):
            return found
    pytest.skip(f"{name} is not installed")


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | {"LC_ALL": "C"} | environment, capture_output=True, check=False, timeout=240
    )
    if done.returncode:
        pytest.skip(f"{words[0]} fails here: {done.stderr.decode(errors='replace')[-200:]}")
    return done.stdout.decode(errors="surrogateescape")


def plain(path: Path, folder: Path) -> Path:
    if path.suffix != ".gz":
        return path
    (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder / path.stem


def usage_of(path: Path | str, **options: object) -> HeapUsage:
    (usage,) = footprint.heap_profile(str(path), **options).files  # type: ignore[arg-type] # as varied as the options
    return usage


# --- ms_print ---------------------------------------------------------------------------------------------------------


def peak_tree(path: Path, folder: Path) -> list[Node]:
    """Return the tree that ms_print shows of the peak: depth, share, bytes and label of each line."""
    text = run("ms_print", "--threshold=0", path, cwd=folder)
    peak = re.search(r"(\d+) \(peak\)", text)
    assert peak is not None
    # Each tree stands behind the row of its snapshot.
    row = re.search(rf"^ +{peak[1]} +[\d,]+ .*\n", text, re.MULTILINE)
    assert row is not None
    tree = text[row.end() :].partition("-" * 80)[0]
    return [
        (len(indent) // 2, share, int(size.replace(",", "")), label)
        for indent, share, size, label in NODE.findall(tree)
    ]


def by_function(tree: list[Node]) -> Counter[tuple[str, str]]:
    """Add up the bytes of a tree by object and function of the innermost call: of those inlined into it, none."""
    sums: Counter[tuple[str, str]] = Counter()
    stack: list[str] = []
    for place, (depth, _, size_bytes, label) in enumerate(tree):
        del stack[depth:]
        stack.append(label)
        below = 0
        for other in tree[place + 1 :]:
            if other[0] <= depth:
                break
            below += other[2] if other[0] == depth + 1 else 0
        own_bytes = size_bytes - below
        if own_bytes:
            sums[innermost(stack[1:])] += own_bytes
    return sums


def innermost(stack: list[str]) -> tuple[str, str]:
    match = LABEL.fullmatch(stack[0])
    if match is None:
        return "lump", ""
    for label in stack[1:]:
        other = LABEL.fullmatch(label)
        if other is None or other[1] != match[1]:
            break
        match = other
    return match[3] or "", match[2]


@pytest.mark.parametrize("path", MASSIF, ids=lambda path: path.name)
def test_bytes_by_function_are_those_of_ms_prints_tree(path: Path, tmp_path: Path) -> None:
    needed("ms_print")
    shown = by_function(peak_tree(plain(path, tmp_path), tmp_path))
    # ms_print reads no other file.
    usage = usage_of(path, root="/nowhere")
    assert usage.tree is not None
    # ms_print passes nothing over.
    result: Counter[tuple[str, str]] = Counter()
    for share in attribute(usage.tree, [call._replace(rule="") for call in usage.calls]).shares:
        owner = "lump" if "threshold" in share.owner else "" if share.owner.startswith("[") else share.owner
        function = "" if owner == "lump" else "???" if share.function == "[no symbol]" else share.function
        # ms_print cuts a line at the first number sign.
        result[owner, function.partition("#")[0]] += share.size_bytes
    assert result == shown
    assert sum(shown.values()) == usage.tree.total_bytes


@pytest.mark.parametrize("path", MASSIF, ids=lambda path: path.name)
def test_the_tree_of_all_calls_has_the_bytes_and_shares_of_ms_prints(
    path: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    needed("ms_print")
    monkeypatch.setenv("COLUMNS", "1000")
    shown = peak_tree(plain(path, tmp_path), tmp_path)[1:]
    assert main(["heap", str(path), "--by", "callers", "-v", "--threshold", "0", "--top", "0"]) == 0
    text = capfdbinary.readouterr().out.decode()
    tree = text[text.index("Who asked for it") :].partition("\n\n")[0]
    rows = [line.split(None, 2) for line in tree.splitlines()[2:]]
    # ms_print fills shares up to 05.80%, and cuts a line at the first number sign.
    assert Counter((row[0], row[1].zfill(6), row[2].partition("#")[0].strip()) for row in rows) == Counter(
        (f"{size:,}", f"{share}%", label.strip()) for _, share, size, label in shown if size
    )


def test_names_with_number_signs_are_whole_where_ms_print_cuts_them(tmp_path: Path) -> None:
    needed("ms_print")
    path = CORPUS / "massif-3.19-cmd-hash.out.gz"
    usage = usage_of(path)
    assert usage.attribution is not None
    names = {share.function for share in usage.attribution.shares}
    cut = [name for name in names if "{lambda(int)#2}" in name]
    assert cut
    text = gzip.decompress(path.read_bytes()).replace(b"\nline desc: fake", b"")
    (tmp_path / "massif.out").write_bytes(text)
    shown = run("ms_print", "--threshold=0", tmp_path / "massif.out", cwd=tmp_path)
    assert "{lambda(int)" in shown
    assert not any(name in shown for name in cut)


# --- recordings of a program that is known ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program whose allocations are known, without debug information: nothing shows as inlined then."""
    needed("gcc")
    folder = tmp_path_factory.mktemp("ten")
    options = ["-O1", "-fno-builtin-malloc", "-fno-optimize-sibling-calls"]
    run("gcc", *options, CORPUS / "ten.c", "-o", "ten", cwd=folder)
    return folder / "ten"


def flat(text: str) -> dict[str, int]:
    """Return what pprof and jeprof show as asked for by each function itself."""
    rows = re.findall(r"^ +(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+% (.*)$", text, re.MULTILINE)
    return {name: int(size) for size, name in rows if int(size)}


def test_a_profile_of_tcmalloc_is_symbolised_as_pprof_does(ten: Path, tmp_path: Path) -> None:
    needed("google-pprof")
    run(ten, cwd=tmp_path, LD_PRELOAD=library("libtcmalloc.so.4"), HEAPPROFILE=str(tmp_path / "heap"))
    file = max(tmp_path.glob("heap.*.heap"))
    usage = usage_of(file)
    assert usage.attribution is not None
    found = {(share.owner, share.function): share.size_bytes for share in usage.attribution.shares}
    shown = flat(run("google-pprof", "--text", "--show_bytes", "--inuse_space", ten, file, cwd=tmp_path))
    assert found[str(ten), "make"] == shown["make"] == 32_777
    assert sum(found.values()) == sum(shown.values())


def test_a_profile_of_jemalloc_is_symbolised_as_jeprof_does(ten: Path, tmp_path: Path) -> None:
    needed("jeprof")
    options = f"prof:true,prof_final:true,prof_prefix:{tmp_path}/heap,lg_prof_sample:0"
    run(ten, cwd=tmp_path, LD_PRELOAD=library("libjemalloc.so.2"), MALLOC_CONF=options)
    files = list(tmp_path.glob("heap.*.heap"))
    if not files:
        pytest.skip("this jemalloc was built without its profiler")
    usage = usage_of(files[0])
    assert usage.attribution is not None
    found = {(share.owner, share.function): share.size_bytes for share in usage.attribution.shares}
    shown = flat(run("jeprof", "--text", "--show_bytes", "--inuse_space", ten, files[0], cwd=tmp_path))
    # Its size classes are 1024 and 8192.
    assert found[str(ten), "make"] == shown["make"] == 25 * 1024 + 8192
    assert sum(found.values()) == sum(shown.values())


def test_a_recording_of_heaptrack_has_the_peak_of_heaptrack_print_by_function(ten: Path, tmp_path: Path) -> None:
    needed("heaptrack", "heaptrack_print", "zstd")
    run("heaptrack", "-o", tmp_path / "recording", ten, cwd=tmp_path)
    (file,) = tmp_path.glob("recording.*")
    run("zstd", "-dq", file, "-o", tmp_path / "inflated", cwd=tmp_path)
    shown = run("heaptrack_print", "-f", file, "-p", "1", "-a", "0", "-T", "0", "-l", "0", cwd=tmp_path)
    consumed = {function: float(size) for size, function in CONSUMED.findall(shown)}
    usage = usage_of(tmp_path / "inflated")
    assert usage.attribution is not None
    found = {(share.owner, share.function): share.size_bytes for share in usage.attribution.shares}
    assert found[str(ten), "make"] == 50_000
    assert consumed["make"] == 50.0
    total = re.search(r"peak heap memory consumption: ([\d.]+)K", shown)
    assert total is not None
    assert round(usage.attribution.total_bytes / 1000, 2) == float(total[1])


# --- real programs ----------------------------------------------------------------------------------------------------


def real_programs() -> Iterator[tuple[str, list[str]]]:
    yield "python", [sys.executable, "-c", "import json, ssl"]
    yield "git", ["git", "--no-pager", "log", "-n", "50"]
    yield "sample", [str(SAMPLE / "heap")]


@pytest.mark.parametrize(("name", "words"), list(real_programs()), ids=[name for name, _ in real_programs()])
def test_the_object_of_99_percent_of_the_peak_is_known(name: str, words: list[str], tmp_path: Path) -> None:
    needed("valgrind", words[0])
    file = tmp_path / "massif.out"
    # What is below massif's threshold cannot be attributed: none is.
    options = ["--tool=massif", f"--massif-out-file={file}", "--threshold=0"]
    run("valgrind", "-q", *options, *words, cwd=ROOT)
    program = os.path.realpath(shutil.which(words[0]) or words[0])
    usage = usage_of(file, binaries=[program])
    assert usage.attribution is not None
    known = usage.attribution.attributed_bytes / usage.attribution.total_bytes
    assert known >= 0.99, (name, usage.attribution.owners)
    assert usage.tree is not None
    assert usage.attribution.total_bytes == usage.tree.total_bytes
