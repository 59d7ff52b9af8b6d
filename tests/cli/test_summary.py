"""What `audit` says without options: cost, dearest owners, what to do, on one screen; and that lines fit."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.formats.document import Fold, Table
from footprint.formats.text import plain

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
BASE = str(ROOT / "sample_binaries" / "condor_shadow" / "base")
TEXTS = sorted(str(path) for path in CORPUS.glob("smaps-*.txt") if path.stem not in {"smaps-kthread", "smaps-zombie"})

Captured = pytest.CaptureFixture[bytes]


def answer(captured: Captured, *words: str) -> str:
    assert main(words) == 0
    return captured.readouterr().out.decode()


def parts(text: str) -> dict[str, list[str]]:
    """Return the lines below each heading."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return {lines[0]: lines[1:] for lines in blocks}


@pytest.fixture(scope="module", name="live_pid")
def live_pid_fixture() -> Iterator[str]:
    command = [sys.executable, "-c", "import json, socket, sqlite3; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield str(process.pid)
        process.kill()


@pytest.mark.parametrize("words", [[one] for one in (*TEXTS, BASE, "PID")] + [[BASE, "-n", "10000"]])
def test_a_screen_of_40_lines_answers_first_and_v_shows_all(
    capfdbinary: Captured, words: list[str], live_pid: str
) -> None:
    words = [word.replace("PID", live_pid) for word in words]
    text = answer(capfdbinary, "audit", *words)
    assert len(text.splitlines()) <= 40, text
    # A path is never split.
    assert [line for line in text.splitlines()[1:] if len(line) > 80 and "/" not in line] == []
    whole = answer(capfdbinary, "audit", *words, "-v")
    assert len(whole.splitlines()) > len(text.splitlines())


def test_the_eight_dearest_owners_are_listed_and_the_others_are_one_line(capfdbinary: Captured) -> None:
    rows = parts(answer(capfdbinary, "audit", str(CORPUS / "smaps-node.txt")))["Where the private memory is, by owner"]
    assert len(rows) == 1 + 8 + 1 + 1
    # How many libraries of it are on this machine decides how many owners there are.
    everything = answer(capfdbinary, "audit", str(CORPUS / "smaps-node.txt"), "--top", "0")
    owner_count = len(parts(everything)["Where the private memory is, by owner"]) - 2
    assert owner_count >= 15
    assert rows[-2].endswith(f"[{owner_count - 8} more: --top 0 shows all]")


def test_each_owner_takes_one_line_however_long_its_name_is() -> None:
    rows = (
        ("1.00 MiB", "_pydantic_core.cpython-311-x86_64-linux-gnu.so"),
        ("4 KiB", "/srv/app/releases/2026-11-27/lib.so"),
    )
    table = Table(("private", "owner"), rows, frozenset(), (), Fold.ONE_LINE)
    assert plain((table,), 40).splitlines()[1:] == [
        "  1.00 MiB  _pydantic_core.cpython-31...",
        "     4 KiB  ...eleases/2026-11-27/lib.so",
    ]


def test_a_program_is_told_what_to_do_with_what_it_saves_at_n(capfdbinary: Captured) -> None:
    lines = parts(answer(capfdbinary, "audit", BASE, "-n", "10000"))["What to do"]
    assert re.split(r" {2,}", lines[0])[-3:] == ["saves", "in 10,000", "remedy"]
    text = " ".join(" ".join(lines).split())
    assert "8 KiB 78.1 MiB drop -lunused from the link of base, or write -Wl,--as-needed before it there" in text
    assert "(unused-library, high: libunused.so)" in text
    # What a search has found already needs no search.
    assert "--findings" not in text


def test_a_live_process_is_searched_for_what_is_quick_and_the_rest_has_its_command(capfdbinary: Captured) -> None:
    lines = parts(answer(capfdbinary, "audit", str(os.getpid())))["What to do"]
    search = f"Not searched: unused libraries, copies (footprint audit --findings {os.getpid()})"
    assert search in " ".join(lines)
    # What was not searched for may be there.
    assert "Nothing of its own" not in " ".join(lines)


def test_no_term_of_the_projection_stands_twice(capfdbinary: Captured) -> None:
    for words in ([BASE, "-n", "100"], [str(CORPUS / "smaps-node.txt"), "-n", "200"], [str(os.getpid()), "-n", "3"]):
        text = answer(capfdbinary, "audit", *words, "-v")
        facts = re.findall(r"(?m)^ +(private memory|page tables|kernel objects|open descriptors) {2,}\S", text)
        assert len(facts) == len(set(facts)) > 0


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_tree_of_libraries_stays_within_the_columns(
    capfdbinary: Captured, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = answer(capfdbinary, "libraries", "--tree", BASE)
    assert max(map(len, text.splitlines()[1:])) <= int(columns)
