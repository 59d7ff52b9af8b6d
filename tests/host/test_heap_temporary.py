"""Temporary allocations are those that heaptrack_print counts."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

import footprint
from footprint.attribution.heap_totals import run_totals

SOURCE: Final = """
#include <stdlib.h>
#define NOINLINE __attribute__((noinline)) static
static void *volatile kept[4];
NOINLINE void one_by_one(void) { for (int i = 0; i < 1000; i++) { kept[0] = malloc(100 + i % 3); free(kept[0]); } }
NOINLINE void in_pairs(void) {
    for (int i = 0; i < 300; i++) { kept[0] = malloc(10); kept[1] = malloc(20); free(kept[1]); free(kept[0]); }
}
NOINLINE void held(void) { for (int i = 0; i < 50; i++) kept[2] = malloc(40); }
int main(void) { one_by_one(); in_pairs(); held(); return 0; }
"""
# Of each pair the second is freed right after it was allocated; then the first is freed, after another free.
EXPECTED: Final = {"one_by_one": (1000, 1000), "in_pairs": (600, 300), "held": (50, 0)}
FOUND: Final = re.compile(r"^(\d+) temporary allocations of (\d+) allocations in total .* from\n(\w+)$", re.MULTILINE)


def run(folder: Path, *words: str) -> str:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"{words[0]} fails here: {done.stderr[-200:]}")
    return done.stdout


def test_temporary_blocks_of_each_function_are_those_of_heaptrack_print(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(SOURCE, encoding="utf-8")
    run(tmp_path, "gcc", "-O1", "-fno-optimize-sibling-calls", "-o", "main", "main.c")
    run(tmp_path, "heaptrack", "-o", "profile", "./main")
    packed = next(one for one in tmp_path.iterdir() if one.name.startswith("profile."))
    printed = {
        function: (int(blocks), int(temporary))
        for temporary, blocks, function in FOUND.findall(run(tmp_path, "heaptrack_print", packed.name))
    }
    run(tmp_path, "zstd" if packed.suffix == ".zst" else "gzip", "-qdf", packed.name)
    (usage,) = footprint.heap_profile(tmp_path / "profile").files
    found = {one.function: (one.allocated_blocks, one.temporary_blocks) for one in run_totals(usage)}
    assert {function: found[function] for function in EXPECTED} == EXPECTED
    # It lists no functions without temporary blocks.
    assert {function: printed[function] for function in ("one_by_one", "in_pairs")} == {
        function: EXPECTED[function] for function in ("one_by_one", "in_pairs")
    }
