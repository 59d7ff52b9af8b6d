"""`footprint audit` of N as a user runs it: several targets side by side, what fits, and what does not go together."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("sample_binaries/condor_shadow/base", "sample_binaries/condor_shadow/sans_answers")
SLEEP = "tests/corpus/smaps-sleep.txt"


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "footprint", "audit", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def answered(*words: str) -> dict[str, Any]:
    done = run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_several_programs_stand_side_by_side() -> None:
    found = answered(*PROGRAMS, "-n", "100")
    assert [one["target"]["name"] for one in found["targets"]] == list(PROGRAMS)
    assert [one["bits"] for one in found["targets"]] == [64, 64]
    for one in found["targets"]:
        projection = one["projection"]
        assert projection["total_bytes"] == 100 * projection["per_process_bytes"]


def test_the_table_of_programs_has_one_line_each_and_names_the_cheapest_last() -> None:
    done = run(*PROGRAMS, "-n", "100")
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(line.endswith(PROGRAMS) for line in done.stdout.splitlines()) >= 2
    assert f"{PROGRAMS[1]} costs least" in done.stdout


def test_a_reserve_leaves_room_for_fewer() -> None:
    whole = answered(SLEEP, "--memory", "1GiB")["projection"]
    less = answered(SLEEP, "--memory", "1GiB", "--reserve", "512MiB")["projection"]
    half = answered(SLEEP, "--memory", "512MiB")["projection"]
    assert less["count"] == half["count"] < whole["count"]
    assert [(one["name"], one["taken"]) for one in less["limits"]] == [("memory", 512 << 20)]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ((SLEEP, "-n", "2", "--memory", "1GiB"), "how much memory they may take (--memory, --limit), not both"),
        ((SLEEP, "-n", "2", "--reserve", "1GiB"), "--reserve is a part of a memory"),
        ((SLEEP, "-n", "2", "--workers", "3"), "--workers goes with a group"),
        ((SLEEP, "--limit", "own"), "only a live process has a control group of its own"),
        (
            ("--tree", "1", "-n", "2", "--model", "fork"),
            "--model goes with a live process, a program, a capture, a saved text or a saved audit",
        ),
        (("--container", "nginx", "-n", "2"), "at least 12 hexadecimal digits"),
        (("--unit", "a", "--container", "0123456789ab", "-n", "2"), "choose one of --cgroup, --unit and --container"),
        (PROGRAMS, "several targets must be live processes"),
        ((*PROGRAMS, "-n", "2", "--findings"), "--findings does not go with it"),
        ((), "name a process or a file"),
    ],
)
def test_what_does_not_go_together_is_refused(words: tuple[str, ...], cause: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert cause in done.stderr


def test_what_all_pay_once_is_not_called_private_memory() -> None:
    (shown,) = re.findall(r"in all +(.*?)\n\n", run("tests/corpus/smaps-node.txt", "-n", "200").stdout, re.DOTALL)
    terms = r": 200 x [\d.]+ MiB of private memory \+ [\d.]+ MiB once, kernel memory not counted$"
    assert re.search(terms, " ".join(shown.split()))


def test_what_fits_says_once_which_memory_is_multiplied() -> None:
    shown = run("tests/corpus/smaps-node.txt", "--memory", "32GiB").stdout
    fits, cost = re.findall(r"^  (?:processes|their cost)  .*$", shown, re.MULTILINE)
    assert "derived, kernel memory not counted" in fits
    assert " of private memory + " in cost
