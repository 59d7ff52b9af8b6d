"""Temporary allocations are those that heaptrack_print counts, and a recording tells whether it was cut."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

import footprint
from footprint.attribution.heap_totals import run_totals

SOURCE: Final = """
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline)) static
static void *volatile kept[4];
NOINLINE void one_by_one(void) { for (int i = 0; i < 1000; i++) { kept[0] = malloc(100 + i % 3); free(kept[0]); } }
NOINLINE void in_pairs(void) {
    for (int i = 0; i < 300; i++) { kept[0] = malloc(10); kept[1] = malloc(20); free(kept[1]); free(kept[0]); }
}
NOINLINE void held(void) { for (int i = 0; i < 50; i++) kept[2] = malloc(40); }
int main(int count, char **words) { one_by_one(); held(); in_pairs(); if (count > 1) _exit(0); return 0; }
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


def recorded(folder: Path, *words: str) -> str:
    """Record the program into the file `profile`; return what heaptrack_print says of it."""
    (folder / "main.c").write_text(SOURCE, encoding="utf-8")
    run(folder, "gcc", "-O1", "-fno-optimize-sibling-calls", "-o", "main", "main.c")
    run(folder, "heaptrack", "-o", "profile", "./main", *words)
    packed = next(path for path in folder.iterdir() if path.name.startswith("profile."))
    printed = run(folder, "heaptrack_print", packed.name)
    run(folder, "zstd" if packed.suffix == ".zst" else "gzip", "-qdf", packed.name)
    return printed


def test_temporary_blocks_of_each_function_are_those_of_heaptrack_print(tmp_path: Path) -> None:
    answer = recorded(tmp_path)
    printed = {function: (int(blocks), int(temporary)) for temporary, blocks, function in FOUND.findall(answer)}
    (usage,) = footprint.heap_profile(tmp_path / "profile").files
    found = {one.function: (one.allocated_blocks, one.temporary_blocks) for one in run_totals(usage)}
    assert {function: found[function] for function in EXPECTED} == EXPECTED
    # It lists no functions without temporary blocks.
    assert {function: printed[function] for function in ("one_by_one", "in_pairs")} == {
        function: EXPECTED[function] for function in ("one_by_one", "in_pairs")
    }


def test_heaptrack_print_takes_a_free_of_the_first_class_behind_another_free_for_temporary(tmp_path: Path) -> None:
    # It keeps the class of the last allocation, and 0 for none; 0 is also the class of the first allocation.
    total = re.search(r"^temporary memory allocations: (\d+)", recorded(tmp_path), re.MULTILINE)
    assert total is not None
    lines = (tmp_path / "profile").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    events = ["- ", *(line for line in lines if line[:2] in {"+ ", "- "})]
    mistaken = sum(event == "- 0" and before[:2] == "- " for before, event in pairwise(events))
    (usage,) = footprint.heap_profile(tmp_path / "profile").files
    assert sum(run_total.temporary_blocks or 0 for run_total in run_totals(usage)) == int(total[1]) - mistaken
    assert mistaken == 1


def test_a_recording_that_an_exit_cut_is_not_the_end_of_the_run(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, words in ((whole, ()), (cut, ("now",))):
        folder.mkdir()
        recorded(folder, *words)
    slugs = {
        folder: {note.slug for note in footprint.heap_profile(folder / "profile").notes} for folder in (whole, cut)
    }
    assert "heap-recording-cut" not in slugs[whole]
    assert "heap-recording-cut" in slugs[cut]
