"""`--html` as a user gives it: a report besides the answer, or instead of it, and never half of a report."""

import json
import re
import subprocess
from html import escape
from pathlib import Path

import pytest

from footprint.cli import main
from tests.reports import answers_of

ROOT = Path(__file__).resolve().parents[2]
SMAPS = str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
BASE = str(ROOT / "sample_binaries" / "condor_shadow" / "base")
MASSIF = str(ROOT / "sample_binaries" / "heap_by_function" / "massif.out")
SANS_CRYPT = str(ROOT / "sample_binaries" / "condor_shadow" / "sans_crypt")
# A name that at least one process has.

Captured = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize("words", [["audit", SMAPS], ["diff", BASE, SANS_CRYPT], ["heap", MASSIF]])
def test_a_report_is_written_beside_the_answer(capfdbinary: Captured, tmp_path: Path, words: list[str]) -> None:
    report = tmp_path / "report.html"
    assert main(words) == 0
    alone = capfdbinary.readouterr()
    assert main([*words, "--html", str(report)]) == 0
    assert capfdbinary.readouterr() == alone
    assert report.read_text().startswith("<!doctype html>")


def test_a_dash_writes_the_report_instead_of_the_answer(capfdbinary: Captured) -> None:
    for words in (["audit", SMAPS], ["diff", BASE, SANS_CRYPT], ["heap", MASSIF]):
        assert main([*words, "--html", "-"]) == 0
        out, error = capfdbinary.readouterr()
        assert error == b""
        assert out.startswith(b"<!doctype html>")
        assert out.endswith(b"</html>\n")


def test_a_saved_audit_has_the_report_of_its_process(capfdbinary: Captured, tmp_path: Path) -> None:
    saved = tmp_path / "audit.json"
    assert main(["audit", BASE, "-n", "7", "-o", str(saved)]) == 0
    assert main(["audit", str(saved), "--html", "-"]) == 0
    assert b"7 processes cost" in capfdbinary.readouterr().out


def test_only_the_json_of_an_audit_keeps_its_pages(capfdbinary: Captured, tmp_path: Path) -> None:
    saved, again = tmp_path / "audit.json", tmp_path / "again.json"
    assert main(["audit", BASE, "-o", str(saved)]) == 0
    assert main(["audit", BASE, "--json"]) == 0
    # What is redirected is what is saved, and what is read and saved again keeps them too.
    assert capfdbinary.readouterr().out == saved.read_bytes()
    assert main(["audit", str(saved), "-o", str(again)]) == 0
    assert again.read_bytes() == saved.read_bytes()
    owners = {one["owner"] for one in json.loads(saved.read_text())["page_maps"]}
    assert {owner.rsplit("/", 1)[-1] for owner in owners} >= {"base", "libunused.so"}
    assert main(["audit", BASE, "--format", "csv", "--table", "page_maps"]) == 2


@pytest.mark.parametrize("others", [[], [SANS_CRYPT]])
def test_damaged_pages_of_a_saved_audit_give_an_error_where_a_report_is_made(
    capfdbinary: Captured, tmp_path: Path, others: list[str]
) -> None:
    saved, report = tmp_path / "audit.json", tmp_path / "report.html"
    assert main(["audit", BASE, "-o", str(saved)]) == 0
    saved.write_text(re.sub(r'"page_counts": \[\d+', '"page_counts": [99999999', saved.read_text(), count=1))
    words = ["diff", str(saved), *others] if others else ["audit", str(saved)]
    assert main(words) == 0
    capfdbinary.readouterr()
    assert main([*words, "--html", str(report)]) == 3
    assert b"`page_maps` is of more than 1,048,576 pages" in capfdbinary.readouterr().err
    assert not report.exists()


def test_a_check_has_the_report_of_its_audit_and_its_exit_code(capfdbinary: Captured, tmp_path: Path) -> None:
    budgets, report = tmp_path / "footprint.toml", tmp_path / "report.html"
    for limit, code in (("1 KiB", 1), ("1 GiB", 0)):
        budgets.write_text(f'[budgets]\nper_process_bytes = "{limit}"\n')
        assert main(["check", BASE, "--config", str(budgets), "--html", str(report)]) == code
        assert (b"Exceeded: per_process_bytes" in capfdbinary.readouterr().out) == (code == 1)
        # What stands there without JavaScript.
        assert ("Exceeded: per_process_bytes" in report.read_text()) == (code == 1)
    assert main(["check", BASE, "--propose", "--html", str(report)]) == 2


def test_one_file_for_two_answers_is_refused(
    capfdbinary: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit", SMAPS, "--html", "report.html", "-o", "./report.html"]) == 2
    out, error = capfdbinary.readouterr()
    assert out == b""
    assert error.startswith(b"footprint: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--all", str(ROOT / "sample_binaries" / "condor_shadow")],
        ["symbols", BASE],
        ["libraries", BASE],
        ["duplicates", BASE],
        ["audit", "--by", "mapping", SMAPS],
        ["audit", SMAPS, BASE, "-n", "10"],
        ["trend", "--history", str(ROOT / "docs" / "examples" / "history.sqlite")],
    ],
)
def test_every_answer_of_more_than_a_screen_has_a_report_with_its_json_and_its_last_line(
    capfdbinary: Captured, words: list[str]
) -> None:
    assert main([*words, "--json"]) == 0
    answer = json.loads(capfdbinary.readouterr().out)
    assert main([*words, "--quiet"]) == 0
    last = " ".join(capfdbinary.readouterr().out.decode().split())
    assert main([*words, "--html", "-"]) == 0
    report = capfdbinary.readouterr().out.decode()
    found = answers_of(report)
    assert found["answer"] == answer
    assert [one["text"] for one in found["verdicts"]] == [last]
    assert escape(last) in report


def test_the_report_of_a_check_of_what_runs_has_its_findings(capfdbinary: Captured, tmp_path: Path) -> None:
    budgets = tmp_path / "footprint.toml"
    budgets.write_text('[budgets]\nper_process_bytes = "1 KiB"\n')
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            assert main(["check", str(child.pid), "--config", str(budgets), "--html", "-"]) == 1
        finally:
            child.kill()
    found = answers_of(capfdbinary.readouterr().out.decode())
    assert found["audit"]["target"]["is_live"]
    assert "unused-library" in {one["rule"] for one in found["audit"]["searched_rules"]}


@pytest.mark.parametrize("damage", ['"schema": "footprint/1"', '"private_bytes": '])
def test_a_damaged_audit_gives_an_error_and_no_report(capfdbinary: Captured, tmp_path: Path, damage: str) -> None:
    saved, report = tmp_path / "audit.json", tmp_path / "report.html"
    assert main(["audit", BASE, "-o", str(saved)]) == 0
    wrong = {'"schema": "footprint/1"': '"schema": "footprint/9"', '"private_bytes": ': '"private_bytes": -'}[damage]
    saved.write_text(saved.read_text().replace(damage, wrong, 1))
    assert main(["audit", str(saved), "--html", str(report)]) == 3
    out, error = capfdbinary.readouterr()
    assert out == b""
    assert error.startswith(f"footprint: {saved}: ".encode())
    assert not report.exists()


def test_a_report_that_cannot_be_written_is_an_error(capfdbinary: Captured, tmp_path: Path) -> None:
    assert main(["audit", SMAPS, "--html", str(tmp_path / "none" / "report.html")]) == 3
    out, error = capfdbinary.readouterr()
    assert out == b""
    assert b"none/report.html" in error
