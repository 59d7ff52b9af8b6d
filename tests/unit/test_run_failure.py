"""How a run failed: a signal, an exit code, a moment that never came; also in audits of earlier versions."""

import json
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.model.over_time import RunFailure, RunFailureKind, failures_of_start, which_starts
from footprint.release.budget_file import parse_budgets
from footprint.verbs.check.call import proposal

SIGNAL, EXIT, MOMENT = RunFailureKind.SIGNAL, RunFailureKind.EXIT, RunFailureKind.MOMENT
SAVED = Path(__file__).resolve().parents[1] / "corpus" / "smaps-sleep.txt"


@pytest.mark.parametrize(
    ("exit_code", "signal", "wanted", "moment", "missed", "kinds"),
    [
        (0, None, "exit", "exit", 0, []),
        (None, None, "settled", "settled", 0, []),  # footprint ended it
        (1, None, "exit", "exit", 0, [EXIT]),
        (None, "SIGSEGV", "exit", "exit", 0, [SIGNAL]),
        (0, None, "output", "exit", 1, [MOMENT]),
        (None, None, "output", "output", 1, [MOMENT]),  # the timeout
        (0, None, "peak", "exit", 1, []),  # a peak that passed too quickly
        (None, "SIGABRT", "output", "exit", 1, [SIGNAL, MOMENT]),
    ],
)
def test_a_start_fails_by_its_end_or_its_moment(
    exit_code: int | None, signal: str | None, wanted: str, moment: str, missed: int, kinds: list[RunFailureKind]
) -> None:
    found = failures_of_start(
        2, exit_code=exit_code, signal=signal, wanted_moment=wanted, moment=moment, is_missed=bool(missed)
    )
    assert [(one.start, one.kind) for one in found] == [(2, kind) for kind in kinds]


def test_the_exit_code_of_success_can_be_another_one() -> None:
    def failures(exit_code: int) -> list[RunFailure]:
        found = failures_of_start(
            1, exit_code=exit_code, signal=None, wanted_moment="exit", moment="exit", is_missed=False, expected_exit=3
        )
        return list(found)

    assert failures(3) == []
    (found,) = failures(0)
    assert found == RunFailure(EXIT, 1, "it exited with 0, not with 3")


def saved_run(path: Path, **members: object) -> Path:
    """Save the audit of a text as if a program had been run for it."""
    from footprint import __version__
    from footprint.formats.audit_json import audit_members

    whole = audit_members(footprint.audit(SAVED), __version__)
    spread = {"min": 1, "median": 1, "max": 1}
    run = {"command": ["sleep"], "when": "output", "moment": "output", "starts": 1, "exit_code": None, "signal": None}
    run |= {"figures": {"private_bytes": spread, "per_process_bytes": spread}, "owners": [], "children": []}
    is_late = (run | members)["when"] == "2.5s" and (run | members)["moment"] == "exit"
    missed = {"slug": "moment-not-reached", "subject": "sleep", "detail": "it ended before"}
    whole["notes"] = [missed] if is_late else []
    path.write_text(json.dumps(whole | {"run": run | members, "verb": "run"}))
    return path


def test_a_saved_run_says_how_its_starts_failed(tmp_path: Path) -> None:
    failures = [{"kind": "signal", "start": 3, "detail": "SIGSEGV ended it"}]
    saved = saved_run(tmp_path / "run.json", failures=failures, peak=None)
    assert footprint.audit(saved).run_failures == (RunFailure(SIGNAL, 3, "SIGSEGV ended it"),)


def test_a_failed_run_stays_one_when_its_audit_is_saved_again(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", moment="exit", signal="SIGABRT")
    again, thrice = tmp_path / "again.json", tmp_path / "thrice.json"
    footprint.save(footprint.audit(saved, count=100), again)
    footprint.save(footprint.audit(again), thrice)
    assert [run_failure.detail for run_failure in footprint.audit(thrice).run_failures] == ["SIGABRT ended it"]
    budgets = parse_budgets({"budgets": {"private_bytes": "1 GiB"}}, "footprint.toml")
    assert [failure.key for failure in footprint.check(thrice, budgets).failures] == ["run"]


def test_what_is_shown_or_compared_of_a_failed_run_says_so_once(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", moment="exit", signal="SIGABRT")
    again = tmp_path / "again.json"
    footprint.save(footprint.audit(saved), again)
    fine = saved_run(tmp_path / "fine.json")
    detail = "the figures are those of a run that failed: SIGABRT ended it"
    for notes in (footprint.audit(again).notes, footprint.diff(fine, saved).notes):
        assert [note.detail for note in notes if note.slug == "run-failed"] == [detail]


@pytest.mark.parametrize(
    ("members", "details"),
    [
        ({}, []),
        ({"signal": "SIGABRT"}, ["SIGABRT ended it"]),
        ({"when": "2.5s", "moment": "time"}, []),
        ({"when": "2.5s", "moment": "exit"}, ["it ended before the time at which to read it"]),
        ({"exit_code": 2, "when": "exit", "moment": "exit"}, ["it exited with 2, not with 0"]),
    ],
)
def test_in_a_file_of_an_earlier_version_the_end_of_the_median_start_decides(
    tmp_path: Path, members: dict[str, object], details: list[str]
) -> None:
    saved = saved_run(tmp_path / "run.json", **members)
    assert [run_failure.detail for run_failure in footprint.audit(saved).run_failures] == details


def test_a_failed_run_fails_a_budget_file_whose_subjects_never_came_into_being(tmp_path: Path) -> None:
    budgets = parse_budgets({"budgets": {"owners": {"[no such heap]": 1}}}, "footprint.toml")
    path = saved_run(tmp_path / "run.json", moment="exit", signal="SIGABRT")
    (failure,) = footprint.check(path, budgets).failures
    assert failure.key == "run"
    with pytest.raises(footprint.UsageError, match="there is no"):
        footprint.check(saved_run(tmp_path / "fine.json"), budgets)


def test_reviewers_read_that_the_run_failed_and_not_that_a_figure_is_too_large(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved_run(tmp_path / "run.json", moment="exit", signal="SIGABRT")
    (tmp_path / "footprint.toml").write_text('[budgets]\nprivate_bytes = "1 GiB"\n')
    assert main(["check", str(path), "--config", str(tmp_path / "footprint.toml"), "--format", "github"]) == 1
    (error,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("::error"))
    assert error.endswith("title=The program that was run failed%3A run.json::The run failed: SIGABRT ended it.")


@pytest.mark.parametrize(
    ("failed", "start_count", "text"),
    [([1], 1, ""), ([2], 3, " (start 2 of 3)"), ([1, 3], 3, " (2 of 3 starts)"), ([1, 2, 3], 3, " (3 starts)")],
)
def test_a_cause_names_the_starts_in_which_it_occurred(failed: list[int], start_count: int, text: str) -> None:
    assert which_starts(failed, start_count) == text


def test_a_check_names_the_one_start_of_several_that_failed(tmp_path: Path) -> None:
    failures = [{"kind": "signal", "start": 3, "detail": "SIGSEGV ended it"}]
    path = saved_run(tmp_path / "run.json", failures=failures, peak=None, starts=5)
    (failure,) = footprint.check(path, parse_budgets({"budgets": {"private_bytes": "1 GiB"}})).failures
    assert failure.contributors[0].name == "SIGSEGV ended it (start 3 of 5)"


def test_a_failed_run_is_no_baseline_and_proposes_no_budgets(tmp_path: Path) -> None:
    failed = saved_run(tmp_path / "failed.json", moment="exit", signal="SIGABRT")
    budgets = {"baseline": str(failed), "budgets": {"private_bytes": {"max_increase": 0}}}
    cause = r"failed\.json: it is of a run that failed \(SIGABRT ended it\)"
    with pytest.raises(footprint.InputError, match=cause):
        footprint.check(saved_run(tmp_path / "fine.json"), parse_budgets(budgets))
    with pytest.raises(footprint.InputError, match=cause):
        proposal(failed)
