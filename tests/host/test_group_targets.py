"""A running family as a target: saved, read back, compared, checked, captured and recorded, by the command."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint.cli import main

FAMILY = "sleep 600 & sleep 600 & wait"


@pytest.fixture(scope="module")
def family() -> Iterator[int]:
    """Start a shell with two children, and return the PID of the shell."""
    with subprocess.Popen(["sh", "-c", FAMILY], start_new_session=True) as shell:
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        for _ in range(500):
            if len(pids := children.read_text().split()) == 2 and all(_is_sleep(pid) for pid in pids):
                break
            time.sleep(0.01)
        yield shell.pid
        os.killpg(shell.pid, signal.SIGKILL)


def _is_sleep(pid: str) -> bool:
    return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"


def told(capfd: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert main([*map(str, words)]) == code
    out, _ = capfd.readouterr()
    return out


def test_a_family_that_was_saved_is_shown_compared_and_projected_again(
    family: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "group.json"
    told(capfd, "audit", "--tree", family, "-o", saved)
    whole = json.loads(saved.read_text())
    assert len(whole["processes"]) == 3
    kernel = sum(row["bytes"] for row in whole["ledger"] if row["kind"] == "kernel")
    own = sum(row["bytes"] for row in whole["ledger"] if row["kind"] != "kernel")
    assert (own, kernel) == (whole["group"]["private_bytes"], whole["group"]["kernel_bytes"])
    assert own == sum(one["totals"]["private_bytes"] for one in whole["processes"])
    again = json.loads(told(capfd, "audit", saved, "--json"))
    assert again == whole
    many = json.loads(told(capfd, "audit", saved, "-n", 10, "--json"))["projection"]
    assert many["total_bytes"] == 10 * many["per_group_bytes"] + many["shared_once_bytes"]
    changes = json.loads(told(capfd, "diff", saved, "--tree", family, "--json"))
    assert [one["status"] for one in changes["members"]] == ["same"] * 3
    assert "One group costs as much as before" in told(capfd, "diff", saved, saved)


def test_a_family_keeps_its_budgets_and_grows_against_its_baseline(
    family: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    budgets = tmp_path / "family.toml"
    told(capfd, "check", "--tree", family, "--propose", "-o", budgets)
    told(capfd, "check", "--tree", family, "--config", budgets)
    text = '[budgets]\nprocess_count = {max = 3, max_increase = 0}\nper_group_bytes = "1 GiB"\n'
    budgets.write_text(f'baseline = "base.json"\n{text}')
    told(capfd, "check", "--tree", family, "--config", budgets, "--update-baseline")
    checked = json.loads(told(capfd, "check", "--tree", family, "--config", budgets, "--json"))
    assert [one["key"] for one in checked["budgets"]] == ["process_count", "process_count", "per_group_bytes"]
    assert checked["checks_failed"] == 0
    # A process has no budget of a group, and no baseline of one.
    told(capfd, "check", family, "--config", budgets, code=3)


def test_a_capture_of_a_family_is_a_group_for_every_verb_and_one_of_it_is_chosen_by_its_pid(
    family: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    children = Path(f"/proc/{family}/task/{family}/children").read_text().split()
    capture, history = tmp_path / "family.capture", tmp_path / "history.sqlite"
    told(capfd, "capture", family, *children, "-o", capture)
    assert told(capfd, "audit", capture, "-n", 5, "-q").startswith("5 groups of 2 ")
    assert told(capfd, "audit", capture, "-n", 5, "--workers", 3, "-q").startswith("5 groups of 3 ")
    assert "One group costs" in told(capfd, "diff", capture, "--tree", family)
    between = told(capfd, "diff", capture, capture, "--pid", children[0], "--pid", children[1], "-q")
    assert between.startswith("One process costs")
    assert told(capfd, "diff", capture, capture, "--pid", children[0], "-q").startswith("One process costs as much")
    told(capfd, "trend", "--add", capture, "--history", history, "--version", "1", "--program", "family")
    assert "per_group_bytes" in told(capfd, "trend", "--history", history)
    told(capfd, "trend", "--add", capture, "--pid", family, "--history", history, "--version", "2", "--program", "one")
    told(capfd, "diff", capture, family, code=2)


def test_the_findings_of_a_family_are_written_for_reviewers_each_once(
    family: int, capfd: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(told(capfd, "audit", "--tree", family, "--findings", "--json"))
    assert found["searched_rules"]
    keys = [
        (one["rule"], one["kind"], one["subject"], one["object"], str(one["location"])) for one in found["findings"]
    ]
    assert all(1 <= one["member_count"] <= 3 for one in found["findings"])
    assert len(set(keys)) == len(keys)
    sarif = json.loads(told(capfd, "audit", "--tree", family, "--format", "sarif"))
    assert sarif["version"] == "2.1.0"
