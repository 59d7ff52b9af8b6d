"""`--fail-on`: which findings fail an answer, and that all its formats say so."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from footprint.cli import main

SAMPLES = Path(__file__).resolve().parents[2] / "sample_binaries"
BASE = str(SAMPLES / "condor_shadow" / "base")
Captured = pytest.CaptureFixture[str]


def ask(capsys: Captured, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, error = capsys.readouterr()
    return code, out, error


@pytest.mark.parametrize("verb", ["audit", "libraries"])
def test_a_finding_of_the_rule_fails_the_answer_and_its_last_line_names_it(capsys: Captured, verb: str) -> None:
    code, out, _ = ask(capsys, verb, BASE, "--fail-on", "unused-library")
    assert (code, out.splitlines()[-1]) == (1, "Failed: libunused.so (unused-library, high).")
    assert ask(capsys, verb, BASE, "--fail-on", "unused-library", "-q")[1] == out.splitlines()[-1] + "\n"
    # It is of confidence `high`, and no weaker confidence is asked for here.
    assert ask(capsys, verb, BASE, "--fail-on", "unused-library:proof")[0] == 0
    assert ask(capsys, verb, BASE, "--fail-on", "unused-library:high")[0] == 1
    assert ask(capsys, verb, BASE)[0] == 0


def test_several_rules_can_fail_and_doubtful_findings_are_searched_for(capsys: Captured) -> None:
    words = ("audit", BASE, "--fail-on", "large-static", "--fail-on", "unused-library")
    code, out, _ = ask(capsys, *words)
    failed = "libunused.so (unused-library, high), answer.0 (large-static, high), answer.1 (large-static, low)."
    assert (code, " ".join(out.split()).endswith(f"Failed: {failed}")) == (1, True)
    # What nothing refers to is sure.
    assert ask(capsys, "duplicates", BASE, "--fail-on", "large-static:high", "-q")[1] == (
        "Failed: answer.0 (large-static, high).\n"
    )


def test_all_formats_agree_on_what_fails(capsys: Captured) -> None:
    words = ("libraries", BASE, "--fail-on", "unused-library")
    answer = json.loads(ask(capsys, *words, "--json")[1])
    assert answer["failed"] == [{"rule": "unused-library", "subject": "libunused.so", "confidence": "high"}]
    assert "failed" not in json.loads(ask(capsys, "libraries", BASE, "--json")[1])
    (run,) = json.loads(ask(capsys, *words, "--format", "sarif")[1])["runs"]
    assert [one["ruleId"] for one in run["results"] if one["level"] == "error"] == ["unused-library"]
    tree = ET.fromstring(ask(capsys, *words, "--format", "junit")[1])  # noqa: S314 # what was just written
    assert len(list(tree.iter("failure"))) == 1
    passing = ask(capsys, *words[:-1], "unused-library:proof", "--format", "junit")
    assert passing[0] == 0
    assert not list(ET.fromstring(passing[1]).iter("failure"))  # noqa: S314 # the same
    assert "::error" in ask(capsys, *words, "--format", "github")[1]


def test_a_table_on_the_heap_fails_the_profile_by_rule_and_confidence(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES / "heap_by_function")
    words = ("heap", "dhat.json", "--binary", "heap", "--fail-on")
    code, out, _ = ask(capsys, *words, "heap-at-start", "-q")
    # The line is wrapped somewhere in the path.
    assert (code, "".join(out.split()).endswith("/heapload_parameters(heap-at-start,high).")) == (1, True)
    assert ask(capsys, *words, "heap-at-start:high")[0] == 1
    assert ask(capsys, *words, "heap-at-start:proof")[0] == 0
    assert ask(capsys, *words[:-1])[0] == 0
    answer = json.loads(ask(capsys, *words, "heap-at-start", "--json")[1])
    assert [(one["rule"], one["confidence"]) for one in answer["failed"]] == [("heap-at-start", "high")]
    tree = ET.fromstring(ask(capsys, *words, "heap-at-start", "--format", "junit")[1])  # noqa: S314 # just written
    assert len(list(tree.iter("failure"))) == 1
    (run,) = json.loads(ask(capsys, *words, "heap-at-start", "--format", "sarif")[1])["runs"]
    assert [one["ruleId"] for one in run["results"] if one["level"] == "error"] == ["heap-at-start"]


def test_a_rule_that_a_profile_cannot_show_and_several_profiles_are_wrong_use(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES / "heap_by_function")
    code, _, error = ask(capsys, "heap", "dhat.json", "--fail-on", "unused-library")
    assert (code, error) == (2, "footprint: --fail-on unused-library: `heap` searches for heap-at-start, heap-unused\n")
    code, _, error = ask(capsys, "heap", "dhat.json", "dhat.json", "--fail-on", "heap-at-start")
    assert code == 2
    assert "--fail-on is for one profile" in error


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("audit", BASE, "--fail-on", "unused-libary"), "did you mean 'unused-library'?"),
        (("audit", BASE, "--fail-on", "unused-library:sure"), "'sure' is none of proof, high"),
        (("audit", BASE, "--fail-on", "unused-library:"), "'' is none of proof, high"),
        (("libraries", BASE, "--fail-on", "large-static"), "`libraries` searches for "),
        (("audit", BASE, "--fail-on", "heap-at-start"), "`--heap` joins a profile"),
        (
            ("audit", "--all", str(SAMPLES), "--fail-on", "unused-library"),
            "--all ranks the programs of folders: --fail-on does not go with it",
        ),
        (
            ("audit", str(SAMPLES.parent / "tests/corpus/smaps-sleep.txt"), "--fail-on", "unused-library"),
            "was not looked into for that",
        ),
    ],
)
def test_what_is_not_searched_for_cannot_pass(capsys: Captured, words: tuple[str, ...], cause: str) -> None:
    code, out, error = ask(capsys, *words)
    assert (code, out) == (2, "")
    assert cause in error
