"""Stripped programs: each function that asked for memory is named by the address that `nm` told before."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

import footprint

SOURCE: Final = """
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline)) static
static char *keep[64];
NOINLINE void first(int i) { keep[i] = malloc(10000); memset(keep[i], 1, 10000); }
NOINLINE void second(int i) { keep[i] = malloc(20000); memset(keep[i], 1, 20000); }
NOINLINE void third(int i) { keep[i] = malloc(30000); memset(keep[i], 1, 30000); }
NOINLINE void group(int n) { for (int i = 0; i < n; i++) { first(3 * i); second(3 * i + 1); third(3 * i + 2); } }
int main(void) { group(10); return keep[3][5] - 1; }
"""
EXPECTED: Final = {"first": 100_000, "second": 200_000, "third": 300_000}
PROFILERS: Final = {
    # Its last detailed snapshot is the end: --detailed-freq=1 makes each one detailed.
    "massif": ["valgrind", "--tool=massif", "--threshold=0", "--detailed-freq=1", "--massif-out-file=profile"],
    "dhat": ["valgrind", "--tool=dhat", "--dhat-out-file=profile"],
    "heaptrack": ["heaptrack", "-o", "profile"],
}


def run(folder: Path, *words: str) -> str:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"{words[0]} fails here: {done.stderr[-200:]}")
    return done.stdout


@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
@pytest.mark.parametrize("profiler", PROFILERS)
def test_functions_without_symbols_are_named_by_where_they_start(profiler: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(SOURCE, encoding="utf-8")
    run(tmp_path, "gcc", "-O1", "-fno-optimize-sibling-calls", "-fpie", kind, "-o", "main", "main.c")
    symbols = [line.split() for line in run(tmp_path, "nm", "main").splitlines()]
    vaddrs = {words[2]: int(words[0], 16) for words in symbols if len(words) == 3}
    run(tmp_path, "strip", "main")
    run(tmp_path, *PROFILERS[profiler], "./main")
    if profiler == "heaptrack":
        packed = next(path for path in tmp_path.iterdir() if path.name.startswith("profile."))
        run(tmp_path, "zstd" if packed.suffix == ".zst" else "gzip", "-qdf", packed.name)
    (usage,) = footprint.heap_profile(tmp_path / "profile").files
    assert usage.attribution is not None
    found = {share.function: share.size_bytes for share in usage.attribution.shares if share.owner.endswith("/main")}
    if profiler == "massif":
        # A snapshot may be taken before the last block.
        assert found.keys() == {f"[function at {vaddrs[name]:#x}]" for name in EXPECTED}
    else:
        assert found == {f"[function at {vaddrs[name]:#x}]": size for name, size in EXPECTED.items()}
    # Another build at the path is not used: its calls are elsewhere.
    other = SOURCE.replace(
        "NOINLINE void first", "NOINLINE void zero(int i) { keep[i] = calloc(i, 3); }\nNOINLINE void first"
    )
    (tmp_path / "main.c").write_text(other.replace("group(10);", "group(10); zero(3);"), encoding="utf-8")
    run(tmp_path, "gcc", "-O1", "-fpie", kind, "-s", "-o", "main", "main.c")
    (usage,) = footprint.heap_profile(tmp_path / "profile").files
    assert usage.attribution is not None
    assert {share.function for share in usage.attribution.shares if share.owner.endswith("/main")} == {"[no symbol]"}
