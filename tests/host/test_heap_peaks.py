"""What massif leaves out, on real programs: the peak of memory that only grows, and the objects of an XTree."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

import footprint

HERE: Final = Path(__file__).resolve().parent


def built(folder: Path, source: str, compiler: str, *options: str) -> str:
    for tool in (compiler, "valgrind"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program = folder / Path(source).stem
    subprocess.run([compiler, *options, "-o", program, HERE / source], check=True, timeout=240)
    return str(program)


def massif(folder: Path, program: str, *options: str) -> str:
    path = str(folder / "massif.out")
    words = ["valgrind", "-q", "--tool=massif", f"--massif-out-file={path}", *options, program]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=240)
    return path


def test_the_peak_is_the_largest_snapshot_and_its_missing_tree_is_told(tmp_path: Path) -> None:
    path = massif(tmp_path, built(tmp_path, "stale_peak.c", "gcc", "-g", "-O1"))
    sizes = [
        int(line[11:]) for line in Path(path).read_text(encoding="utf-8").splitlines() if line[:11] == "mem_heap_B="
    ]
    for name, at in ((path, None), (path, "peak"), (f"{path}@peak", None)):
        (usage,) = footprint.heap_profile(name, at=at).files
        peak = usage.profile.peak
        assert peak is not None
        assert peak is usage.profile.untold_peak
        assert peak.live_bytes == max(sizes)
        assert usage.snapshot is not None
        assert usage.snapshot.live_bytes < 100_000
        assert not usage.snapshot.is_peak
        assert "heap-peak-untold" in {note.slug for note in usage.notes}


def test_the_remedy_of_a_missing_tree_names_who_asked_for_the_peak(tmp_path: Path) -> None:
    path = massif(tmp_path, built(tmp_path, "stale_peak.c", "gcc", "-g", "-O1"), "--detailed-freq=1")
    (usage,) = footprint.heap_profile(path).files
    assert usage.snapshot is usage.profile.peak
    assert usage.attribution is not None
    largest = usage.attribution.shares[0]
    assert largest.function == "late"
    assert largest.size_bytes > 2_000_000
    assert "heap-peak-untold" not in {note.slug for note in usage.notes}


def test_a_program_with_a_long_main_is_placed_by_all_its_addresses(tmp_path: Path) -> None:
    program = built(tmp_path, "large_main.cpp", "g++", "-g", "-O1")
    massif(tmp_path, program, "--xtree-memory=full", "--xtree-memory-file=tree.ms")
    (usage,) = footprint.heap_profile(tmp_path / "tree.ms", binaries=[program]).files
    assert usage.attribution is not None
    assert {share.owner for share in usage.attribution.shares} == {program}
    # 100 blocks of 2000 * i + 1 bytes, and 50 of 5000.
    assert {share.function: share.size_bytes for share in usage.attribution.shares} == {
        "cstuff()": sum(2000 * number + 1 for number in range(100)),
        "aligned()": 50 * 5000,
    }


def test_a_program_whose_only_caller_is_a_long_main_is_placed_by_the_call(tmp_path: Path) -> None:
    # The one address fits at each page of main; at one of them it follows a call.
    steps = "".join(f"    sum = sum * 3 + {number};\n" for number in range(900))
    text = f"#include <stdlib.h>\nint main(void) {{\n    volatile long sum = 1;\n    void *volatile kept;\n{steps}"
    text += f"    kept = malloc(50000);\n{steps}    return kept == 0;\n}}\n"
    (tmp_path / "long.c").write_text(text, encoding="utf-8")
    program = built(tmp_path, str(tmp_path / "long.c"), "gcc", "-g", "-O0")
    path = massif(tmp_path, program, "--detailed-freq=1")
    (usage,) = footprint.heap_profile(path, binaries=[program]).files
    assert usage.attribution is not None
    assert [share[:3] for share in usage.attribution.shares] == [(program, "main", 50_000)]
