"""`check` and `diff` of runs: they know how far the starts of a program differ."""

import json
from pathlib import Path

import pytest

from footprint.cli import main

Captured = pytest.CaptureFixture[str]


def test_a_baseline_of_a_saved_run_keeps_how_far_its_starts_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("footprint.toml").write_text(
        'baseline = "base.json"\n[budgets]\nprivate_bytes = { max = "1 GiB", max_increase = 0 }'
    )
    assert main(["run", "--starts", "3", "-o", "run.json", "--", "sleep", "0"]) == 0
    assert main(["check", "run.json", "--update-baseline"]) == 0
    assert Path("base.json").read_text() == Path("run.json").read_text()
    assert len(json.loads(Path("base.json").read_text())["run"]["owners"]) > 3


def test_owners_that_differ_as_much_from_start_to_start_are_told_as_noise(capsys: Captured, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    assert main(["run", "--starts", "2", "-o", str(old), "--", "sleep", "0"]) == 0
    whole = json.loads(old.read_text())
    spread = next(one for one in whole["run"]["owners"] if one["owner"] == "[stack]")
    assert spread["min"] <= spread["median"] <= spread["max"]
    # One page more, which a start of before had as well.
    spread["max"] = spread["median"] + 4096
    old.write_text(json.dumps(whole))
    next(row for row in whole["ledger"] if row["owner"] == "[stack]")["bytes"] += 4096
    for total in ("private_bytes", "per_process_bytes"):
        whole["totals"][total] += 4096
    new.write_text(json.dumps(whole))
    assert main(["diff", str(old), str(new)]) == 0
    assert "[stack]; within the spread of the starts" in capsys.readouterr().out
