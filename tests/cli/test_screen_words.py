"""`footprint explain` knows every word that a screen prints: the headings of tables and the labels of figures."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.errors import UsageError
from footprint.formats.document import Document, Facts, Table
from footprint.formats.words import explain
from footprint.verbs import output

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = "sample_binaries"
BASE = f"{SAMPLES}/condor_shadow/base"
SLEEP = "tests/corpus/smaps-sleep.txt"
MASSIF = f"{SAMPLES}/heap_by_function/massif.out"
DHAT = f"{SAMPLES}/heap_by_function/dhat.json"
LEAK = "docs/examples/leak.fps"
SCREENS = [
    ["audit", BASE],
    ["audit", "PID", "-n", "1000"],
    ["audit", "PID", "-v", "--findings", "-n", "3"],
    ["audit", SLEEP, "--memory", "1GiB"],
    ["audit", "--all", f"{SAMPLES}/condor_shadow"],
    ["audit", "--tree", "PID", "-n", "4"],
    ["audit", "--by", "mapping", SLEEP],
    ["audit", SLEEP, BASE, "-n", "10"],
    ["symbols", BASE],
    ["libraries", BASE],
    ["libraries", "PID"],
    ["duplicates", BASE],
    ["heap", MASSIF],
    ["heap", DHAT],
    ["heap", MASSIF, MASSIF],
    ["diff", f"{SAMPLES}/condor_shadow/sans_answers", BASE, "-n", "10"],
    ["doctor"],
    ["check", BASE, "--config", "BUDGETS"],
    ["trend", "--history", "docs/examples/history.sqlite"],
    ["watch", "--replay", LEAK],
]
# The golden outputs have their headings above the figures: words that are two spaces apart.
GOLDENS = sorted((ROOT / "tests" / "cli" / "golden").glob("*.txt"))
# Words that no screen of this machine shows, and that a user of others may read.
ELSEWHERE = [
    "pid_max",
    "when touched",
    "spread",
    "reproducible",
    "cost",
    "users",
    "beyond",
    "kernel stacks of 7 threads",
    "shared memory of their own",
]


def labels(document: Document) -> Iterator[str]:
    """Return the headings of the tables of a document, and the labels of its figures."""
    for block in document:
        if isinstance(block, Table):
            yield from block.columns
        elif isinstance(block, Facts):
            yield from (label.strip() for label, _, _ in block.rows)


@pytest.fixture(scope="module")
def waiting_pid() -> Iterator[str]:
    """Start a process that waits: what the files of this one are called depends on the tests before."""
    code = "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield str(child.pid)
        child.communicate(b"\n")


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_each_heading_and_each_label_of_a_screen_is_explained(
    words: list[str], waiting_pid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    budgets = tmp_path / "footprint.toml"
    budgets.write_text('[budgets]\nper_process_bytes = "1 KiB"\nlibrary_count = 100\n')
    shown: list[str] = []
    monkeypatch.setattr(output, "emit_document", lambda document, *_, **__: shown.extend(labels(document)))
    here = {"PID": waiting_pid, "BUDGETS": str(budgets)}
    assert main([here.get(word, word) for word in words]) in {0, 1}
    assert shown
    assert unexplained(shown) == []


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda path: path.stem)
def test_each_heading_of_a_golden_output_is_explained(golden: Path) -> None:
    lines = golden.read_text().splitlines()
    # A line of words that are far apart, above one that begins with a figure.
    headings = [
        line
        for line, below in pairwise(lines)
        if re.fullmatch(r" {2,}\S.*  \S.*", line) and not re.search(r"\d|:", line) and re.match(r" *[\d-]", below)
    ]
    assert unexplained([word for line in headings for word in re.split(r" {2,}", line.strip())]) == []


@pytest.mark.parametrize("word", ELSEWHERE)
def test_words_of_other_machines_are_explained(word: str) -> None:
    assert explain(word)[0].text


@pytest.mark.parametrize(("word", "near"), [("startup minn", "startup min"), ("kernel object", "kernel objects")])
def test_a_word_that_is_nearly_right_leads_to_the_right_one(word: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean .*{near}"):
        explain(word)


def unexplained(words: list[str]) -> list[str]:
    """Return the words that are not known."""
    unknown = []
    # A number as a heading is a count that was asked for.
    for word in dict.fromkeys(word for word in words if word and not word.isdecimal()):
        try:
            explain(word)
        except UsageError:
            unknown.append(word)
    return unknown
