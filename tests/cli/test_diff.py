"""`footprint diff`: of what kinds of targets, and what it says at N processes."""

import gzip
import json
from pathlib import Path

import pytest

import footprint
from footprint.cli import main

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"
HEAP = ROOT / "tests" / "corpus" / "heap"
MASSIF = str(HEAP / "massif-3.19-default.out")
Captured = pytest.CaptureFixture[str]


def diff(capsys: Captured, *words: str) -> tuple[int, str, str]:
    code = main(["diff", *words])
    return code, *capsys.readouterr()


def test_allocator_profiles_are_compared_as_heap_does(capsys: Captured) -> None:
    other = str(HEAP / "massif-3.19-time-ms.out")
    code, out, _ = diff(capsys, MASSIF, other)
    assert main(["heap", MASSIF, other]) == code == 0
    assert out == capsys.readouterr().out
    code, out, _ = diff(capsys, MASSIF, other, "--json")
    assert [one["file"] for one in json.loads(out)["profiles"]] == [MASSIF, other]


def test_what_heap_is_told_of_profiles_diff_is_told_too(capsys: Captured, tmp_path: Path) -> None:
    sample = SHADOW.parent / "heap_by_function"
    words = [str(sample / "massif.out"), str(sample / "dhat.json"), "--binary", str(sample / "heap")]
    pages = [tmp_path / f"{verb}.html" for verb in ("heap", "diff")]
    for verb, page in zip(("heap", "diff"), pages, strict=True):
        assert main([verb, *words, "--html", str(page)]) == 0
    first, second = (line for line in capsys.readouterr().out.split("2 profiles\n")[1:])
    assert first == second
    assert "[no object" not in first
    # All but the time at which it was made.
    assert abs(pages[0].stat().st_size - pages[1].stat().st_size) < 64
    told = (2, "footprint: --binary is for allocator profiles, and neither side is one\n")
    assert diff(capsys, str(SHADOW / "base"), str(SHADOW / "base"), "--binary", str(SHADOW / "base"))[::2] == told


def test_a_profile_is_compared_with_a_profile_and_nothing_else(capsys: Captured, tmp_path: Path) -> None:
    code, _, error = diff(capsys, str(SHADOW / "base"), MASSIF)
    assert (code, error.count("\n")) == (2, 1)
    assert f"{MASSIF} is an allocator profile, {SHADOW / 'base'} is none" in error
    assert diff(capsys, MASSIF, MASSIF, "-n", "10")[0] == 2
    assert "does not write speedscope" in diff(capsys, MASSIF, MASSIF, "--format", "speedscope")[2]
    assert diff(capsys, MASSIF, "nowhere")[::2] == (3, "footprint: nowhere: No such file or directory\n")
    # Its compressed text ends in the middle.
    damaged = tmp_path / "dhat.json.gz"
    damaged.write_bytes(gzip.compress((HEAP / "dhat-3.19-heap.json").read_bytes())[:-40])
    code, _, error = diff(capsys, MASSIF, str(damaged))
    assert (code, error.count("\n")) == (3, 1)
    assert str(damaged) in error


def test_each_change_is_told_for_one_process_and_for_n(capsys: Captured) -> None:
    stages = [str(SHADOW / name) for name in ("sans_null_xaction", "sans_crypt")]
    code, out, _ = diff(capsys, *stages, "-n", "10000")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    # 184 KiB a process, as in 2010: 184 * 10,000 / 2^20 = 1.75 GiB.
    assert ["-184", "KiB", "-46.0%", "-1.75", "GiB"] in [
        line[:5] for line in lines if line[-3:-1] == ["mapped", "writable"]
    ]
    # 4 KiB of each of the two libraries: 40,000 KiB = 39.1 MiB.
    assert ["-4", "KiB", "-39.1", "MiB", "-168", "KiB", "4", "KiB", "0", "B", "libunused.so", "(gone)"] in lines
    assert "at 10,000" not in diff(capsys, *stages)[1]


def test_what_is_paid_once_is_not_paid_n_times(capsys: Captured) -> None:
    texts = [str(ROOT / "tests" / "corpus" / f"smaps-{name}.txt") for name in ("sleep", "python3")]
    code, out, _ = diff(capsys, *texts, "-n", "1000", "--json")
    figures = {one["name"]: one for one in json.loads(out)["figures"]}
    assert code == 0
    shared, private = figures["shared_once_bytes"], figures["private_bytes"]
    assert shared["delta_at_count_bytes"] == shared["delta_bytes"] != 0
    assert private["delta_at_count_bytes"] == 1000 * private["delta_bytes"]


def test_a_program_is_predicted_as_the_saved_audit_it_is_compared_with(tmp_path: Path) -> None:
    base = str(SHADOW / "base")
    footprint.save(footprint.audit(base, is_reproducible=True), tmp_path / "before.json")
    for sides in ((tmp_path / "before.json", base), (base, tmp_path / "before.json")):
        found = footprint.diff(*sides)
        assert (found.old.host, found.new.host, found.changes) == ({}, {}, ())


def test_a_baseline_of_another_kind_of_prediction_is_refused(tmp_path: Path) -> None:
    base, path = str(SHADOW / "base"), tmp_path / "before.json"
    told = {"baseline": str(path), "budgets": {"private_bytes": {"max_increase": 0}}}
    footprint.save(footprint.audit(base, is_reproducible=True), path)
    assert footprint.check(base, footprint.parse_budgets(told | {"reproducible": True})).failures == ()
    with pytest.raises(footprint.InputError, match="predicted with `reproducible = true`, and this without it"):
        footprint.check(base, footprint.parse_budgets(told))
