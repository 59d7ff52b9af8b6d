"""`--format`: every verb in every format that it gives, and a refusal that lists them in every other."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from footprint.cli import main
from footprint.verbs.options import Format
from tests.elfwriter import RW, STB_LOCAL, At, ElfFile, Section, Sym, write
from tests.formats import (
    EVERY,
    FIGURES,
    GRAPH,
    ISSUES,
    PAGE,
    STACKS,
    TRACE,
    Captured,
    ask,
    check_every_format,
    check_format,
)
from tests.hostile import HOSTILE

ROOT = Path(__file__).resolve().parents[2]
BASE = "sample_binaries/condor_shadow/base"
SLEEP = "tests/corpus/smaps-sleep.txt"
UNUSED = "sample_binaries/unused_library/shadow"
MASSIF = "sample_binaries/heap_by_function/massif.out"
# The words of each verb, and what it gives.
VERBS = {
    "audit": (["audit", BASE], EVERY | ISSUES | FIGURES | STACKS | PAGE),
    "audit --all": (["audit", "--all", "sample_binaries/condor_shadow"], EVERY | FIGURES | PAGE),
    "audit of several": (["audit", "--tree", "PID"], EVERY | ISSUES | FIGURES | STACKS | PAGE),
    "symbols": (["symbols", BASE], EVERY | FIGURES | STACKS | PAGE),
    "libraries": (["libraries", BASE], EVERY | ISSUES | FIGURES | GRAPH | PAGE),
    "duplicates": (["duplicates", BASE], EVERY | ISSUES | FIGURES | PAGE),
    "audit --by mapping": (["audit", "--by", "mapping", SLEEP], EVERY | PAGE),
    "heap": (["heap", MASSIF], EVERY | ISSUES | FIGURES | STACKS | PAGE),
    "audit of several targets": (["audit", SLEEP, BASE, "-n", "10"], EVERY | PAGE),
    "diff": (["diff", "sample_binaries/condor_shadow/sans_answers", BASE], EVERY | ISSUES | FIGURES | PAGE),
    "doctor": (["doctor"], EVERY),
    "explain": (["explain"], EVERY),
    "check": (["check", BASE, "--config", "BUDGETS"], EVERY | ISSUES | FIGURES | PAGE),
    "trend --add": (["trend", "--add", BASE, "--history", "HISTORY", "--version", "1.0"], EVERY),
    "trend": (["trend", "--history", "docs/examples/history.sqlite"], EVERY | PAGE),
    "watch": (["watch", "--replay", "docs/examples/leak.fps"], EVERY | FIGURES | PAGE | TRACE),
}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture(scope="module")
def sleeping_pid() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child.pid
        child.kill()


@pytest.fixture(scope="module")
def budgets(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("budgets") / "footprint.toml"
    path.write_text('[budgets]\nper_process_bytes = "1 MiB"\nlibrary_count = 100\n')
    return str(path)


@pytest.mark.parametrize("format_", [one.value for one in Format])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_gives_a_format_or_says_which_it_gives(
    verb: str, format_: str, sleeping_pid: int, budgets: str, tmp_path: Path, capfdbinary: Captured
) -> None:
    words, given = VERBS[verb]
    here = {"PID": str(sleeping_pid), "BUDGETS": budgets, "HISTORY": str(tmp_path / "history.sqlite")}
    check_every_format(capfdbinary, verb, [here.get(word, word) for word in words], given, format_)


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.json", "json"),
        ("a.md", "markdown"),
        ("a.csv", "csv"),
        ("a.tsv", "tsv"),
        ("a.jsonl", "jsonl"),
        ("a.sarif", "sarif"),
        ("a.sarif.json", "sarif"),
        ("a.xml", "junit"),
        ("a.prom", "openmetrics"),
        ("a.folded", "folded"),
        ("a.speedscope.json", "speedscope"),
        ("a.pb.gz", "pprof"),
        ("a.html", "html"),
        ("a.txt", "text"),
    ],
)
def test_the_ending_of_a_file_tells_the_format(
    name: str, format_: str, tmp_path: Path, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The report has the minute in which it was made.
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    monkeypatch.setattr("footprint.html.datetime", SimpleNamespace(now=lambda _: noon))
    expected = ask(capfdbinary, "audit", BASE, "--format", format_)
    assert ask(capfdbinary, "audit", BASE, "-o", str(tmp_path / name)) == b""
    assert (tmp_path / name).read_bytes() == expected


def test_a_format_that_is_named_counts_more_than_the_ending(tmp_path: Path, capfdbinary: Captured) -> None:
    ask(capfdbinary, "audit", SLEEP, "--format", "text", "-o", str(tmp_path / "a.json"))
    assert (tmp_path / "a.json").read_bytes().startswith(b"footprint audit: ")
    ask(capfdbinary, "audit", SLEEP, "--json", "-o", str(tmp_path / "a.csv"))
    json.loads((tmp_path / "a.csv").read_bytes())


def test_a_check_that_fails_says_so_in_every_format_and_by_its_exit_code(
    tmp_path: Path, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toml = "footprint.toml"
    Path(toml).write_text("[budgets]\nper_process_bytes = 1\nlibrary_count = 100\n")
    for format_, part in (
        ("markdown", "**1 of 2 limits exceeded: per_process_bytes by "),
        ("csv", "\r\nper_process_bytes,"),
        ("sarif", '"level": "error"'),
        ("junit", 'name="per_process_bytes" file="'),
        (
            "github",
            f"::error file={toml},line=2,title=A figure is larger than its budget allows%3A per_process",
        ),
        ("gitlab", '"severity": "major"'),
        ("openmetrics", "\nfootprint_budgets_exceeded 1\n"),
    ):
        assert main(["check", str(ROOT / BASE), "--format", format_]) == 1
        out, error = capfdbinary.readouterr()
        assert error == b""
        check_format(format_, out)
        assert part in out.decode()


def test_two_formats_at_once_are_refused(capfdbinary: Captured) -> None:
    error = ask(capfdbinary, "audit", SLEEP, "--json", "--format", "csv", code=2)
    assert error == b"footprint: --json and --format csv contradict one another\n"


def test_an_ending_that_the_verb_does_not_give_is_refused_and_no_file_made(
    tmp_path: Path, capfdbinary: Captured
) -> None:
    error = ask(capfdbinary, "audit", "--by", "mapping", SLEEP, "-o", str(tmp_path / "a.sarif"), code=2)
    formats = b"it writes text, json, markdown, csv, tsv, jsonl, html"
    assert error == b"footprint: `audit --by mapping` does not write sarif: " + formats + b"\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--by", "mapping", "no such file", "--format", "sarif"],
        ["audit", "no such file", "nor this", "-n", "2", "--format", "sarif"],
        ["audit", "--all", "/no/such/folder", "--format", "sarif"],
    ],
)
def test_a_format_that_is_not_offered_is_refused_before_anything_is_looked_for(
    words: list[str], capfdbinary: Captured
) -> None:
    error = ask(capfdbinary, *words, code=2)
    assert b" does not write sarif: it writes text, json, markdown, csv, tsv, jsonl, " in error


def test_another_table_than_the_main_one_can_be_chosen(capfdbinary: Captured) -> None:
    ledger = ask(capfdbinary, "audit", BASE, "--format", "csv")
    assert ledger.startswith(b"owner,kind,section,")
    findings = ask(capfdbinary, "audit", BASE, "--format", "csv", "--table", "findings")
    assert findings.startswith(b"rule,kind,subject,")
    error = ask(capfdbinary, "audit", BASE, "--format", "csv", "--table", "symbols", code=2)
    assert b"no table 'symbols' in this answer: it has host, target, totals," in error
    error = ask(capfdbinary, "audit", BASE, "--format", "sarif", "--table", "findings", code=2)
    assert error == b"footprint: --table chooses among the tables of csv, tsv and jsonl; sarif has no tables\n"


def test_what_was_not_looked_into_for_findings_has_no_report_of_them(tmp_path: Path, capfdbinary: Captured) -> None:
    error = ask(capfdbinary, "audit", SLEEP, "--format", "sarif", code=2).decode()
    assert error == (
        f"footprint: {SLEEP} was not searched for findings: audit the program, or the process with --findings\n"
    )
    saved = str(tmp_path / "base.json")
    ask(capfdbinary, "audit", BASE, "-o", saved)
    found = json.loads(ask(capfdbinary, "audit", saved, "--format", "sarif"))
    # Which tables of the C library are written at its start depends on the machine.
    rules = {one["ruleId"] for one in found["runs"][0]["results"]} - {"relocated-tables"}
    assert rules == {"unused-library", "large-static", "duplicate-static"}


def test_a_live_process_is_looked_into_for_a_report_of_findings(sleeping_pid: int, capfdbinary: Captured) -> None:
    text = ask(capfdbinary, "audit", str(sleeping_pid), "--format", "junit").decode()
    assert 'classname="footprint.unused-library"' in text


def test_several_heap_profiles_are_no_one_profile(capfdbinary: Captured) -> None:
    for format_ in ("folded", "sarif"):
        error = ask(capfdbinary, "heap", MASSIF, MASSIF, "--format", format_, code=2)
        assert error.startswith(f"footprint: `heap of several` does not write {format_}: ".encode())


def test_a_table_on_the_heap_is_told_to_a_reviewer(capfdbinary: Captured) -> None:
    folder = "sample_binaries/heap_by_function"
    words = ["heap", f"{folder}/dhat.json", "--binary", f"{folder}/heap", "--format", "github"]
    assert main(words) == 0
    out, error = capfdbinary.readouterr()
    assert error == b""
    assert out.startswith(
        f"::warning file={folder}/Makefile,line=16,title=Memory of the allocator that is filled".encode()
    )
    assert b"load_parameters of heap asks for 100,000 bytes in 101 blocks" in out


def test_address_space_was_not_looked_into_for_tables(capfdbinary: Captured) -> None:
    pages = "tests/corpus/heap/massif-3.19-pages-as-heap.out"
    error = ask(capfdbinary, "heap", pages, "--format", "junit", code=2).decode()
    assert error == f"footprint: {pages} has no memory in use: nothing can be found in it\n"


def test_the_summary_of_a_step_is_added_to_the_file_that_github_names(
    tmp_path: Path, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("of another command\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    log = ask(capfdbinary, "audit", BASE, "--format", "github").decode()
    # The library has no line of its own there: two lines name it for this program, and one of them links the program.
    makefile = "sample_binaries/condor_shadow/Makefile"
    assert log.startswith(f"::warning file={makefile},line=31,title=A library that is needed by name")
    assert summary.read_text().startswith(f"of another command\n<!-- footprint: audit {BASE} -->\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    error = ask(capfdbinary, "audit", BASE, "--format", "github", code=3)
    assert error.endswith(b"none/summary.md: No such file or directory\n")


def test_a_summary_that_is_full_is_left_as_it_is_and_that_is_said(
    tmp_path: Path, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_bytes(bytes((1 << 20) - 100))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["audit", BASE, "--format", "github"]) == 0
    out, error = capfdbinary.readouterr()
    assert out.startswith(b"::warning ")
    assert error == b"footprint: the summary of the step is full: this report is not in it\n"
    assert summary.stat().st_size == (1 << 20) - 100


def test_the_commands_of_github_are_printed_also_where_the_summary_has_a_file(
    tmp_path: Path, capfdbinary: Captured
) -> None:
    log = ask(capfdbinary, "audit", BASE, "--format", "github", "-o", str(tmp_path / "summary.md"))
    assert log.startswith(b"::warning ")
    assert (tmp_path / "summary.md").read_text().startswith("<!-- footprint: ")


def test_a_binary_format_is_not_written_to_a_terminal(capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    error = ask(capfdbinary, "audit", SLEEP, "--format", "pprof", code=2)
    assert error == b"footprint: pprof cannot be printed: name a file with -o, such as profile.pb.gz\n"


def test_formats_for_programs_are_utf_8_whatever_the_terminal_is(tmp_path: Path) -> None:
    path = tmp_path / "caf\xe9"
    path.write_bytes(Path(BASE).read_bytes())
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "footprint", "symbols", str(path), "--format", "csv"]
    done = subprocess.run(words, env=environment, capture_output=True, check=True)
    assert "caf\xe9" in done.stdout.decode()


def test_text_loads_none_of_the_other_formats() -> None:
    words = "import sys, footprint.cli; footprint.cli.main(sys.argv[1:]); print([*sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", words, "audit", SLEEP], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = {name for name in done.stdout.split("'") if name.startswith("footprint.")}
    assert "footprint.formats.text" in loaded
    others = ("csv", "figures", "issues", "json", "junit", "markdown", "pprof", "sarif", "stacks", "tables")
    assert loaded.isdisjoint(f"footprint.formats.{name}" for name in others)


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a file with a variable of each hostile name that a symbol can have."""
    names = [name for name in HOSTILE.values() if name and "\0" not in name and "\ud800" not in name]
    symbols = [Sym(name, At(".data", 32 * at), 32, binding=STB_LOCAL) for at, name in enumerate(names)]
    data = bytes(range(1, 33)) * len(names)
    path = tmp_path_factory.mktemp("hostile") / "=cmd|'\x1b[31m\u202e`]]>::error::.so"
    path.write_bytes(write(ElfFile(sections=[Section(".data", flags=RW, data=data)], symbols=symbols)))
    return str(path)


# Traces have no names of variables: tests/unit/test_watch_formats.py has theirs.
@pytest.mark.parametrize("format_", [one.value for one in Format if one.value not in TRACE])
def test_a_file_of_hostile_names_comes_out_readable(format_: str, hostile_file: str, capfdbinary: Captured) -> None:
    verbs = ((ISSUES, "duplicates"), (PAGE, "audit"), (GRAPH, "libraries"))
    verb = next((verb for formats, verb in verbs if format_ in formats), "symbols")
    data = ask(capfdbinary, verb, hostile_file, "--format", format_)
    check_format(format_, data)
    if format_ != "pprof":
        text = data.decode()
        assert text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable()
        assert not any(line.startswith("=cmd") for line in text.splitlines())
        check_no_runner_commands(text, is_ours=format_ == "github")


def check_no_runner_commands(text: str, *, is_ours: bool = False) -> None:
    """Check that a runner of CI carries out nothing that a name says: it looks at each line of a log."""
    for line in text.splitlines():
        assert not re.search(r"##(\[|vso\[|teamcity\[)", line)
        if not (is_ours and line.startswith(("::error file=", "::warning file=", "::notice file="))):
            assert not line.lstrip().startswith("::")


@pytest.mark.parametrize("words", ["audit", "symbols", "duplicates", "libraries", "duplicates --format markdown"])
def test_no_line_of_a_report_is_a_command_for_a_runner(
    words: str, hostile_file: str, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    verb, *options = words.split()
    text = ask(capfdbinary, verb, hostile_file, *options).decode()
    assert verb != "symbols" or r"\x23#[error]x" in text
    check_no_runner_commands(text)
