"""The report of any answer in a browser: its last line, and its tables with the figures of the JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from footprint.model.figures import FIGURES
from footprint.units import format_bytes
from tests.chromium import MISSING, Browser, Tab, launched

pytestmark = pytest.mark.skipif(MISSING, reason="chromium is missing")

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_binaries"
BASE = str(SAMPLES / "condor_shadow" / "base")
SMAPS = str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
HISTORY = str(ROOT / "docs" / "examples" / "history.sqlite")

# The words, the table of the JSON, and the column that stands first in the report.
TABLES = [
    (["audit", "--all", str(SAMPLES / "condor_shadow")], "programs", "at_start_bytes"),
    (["symbols", BASE], "symbols", "size_bytes"),
    (["symbols", BASE], "sections", "size_bytes"),
    (["libraries", BASE], "libraries", "retained_bytes"),
    (["duplicates", BASE], "duplicates", "waste_bytes"),
    (["maps", SMAPS], "mappings", "private_bytes"),
    (["project", SMAPS, BASE, "-n", "7"], "targets", "projection.total_bytes"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


def asked(words: list[str], captured: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints."""
    assert main(words) == 0
    return captured.readouterr().out


def shown(browser: Browser, tmp_path: Path, words: list[str], captured: pytest.CaptureFixture[str]) -> Tab:
    path = tmp_path / "report.html"
    path.write_text(asked([*words, "--html", "-"], captured), encoding="utf-8")
    return browser.open(path)


def values_of(rows: list[dict[str, Any]], column: str) -> list[int]:
    """Return the values of a member, of rows that are objects also those within them."""
    found: list[Any] = rows
    for key in column.split("."):
        found = [row[key] for row in found]
    return found


@pytest.mark.parametrize(("words", "table", "column"), TABLES, ids=[f"{one[0][0]}-{one[1]}" for one in TABLES])
def test_a_table_has_every_row_of_the_json_and_its_bytes(
    browser: Browser,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    table: str,
    column: str,
) -> None:
    rows = json.loads(asked([*words, "--json"], capsys))[table]
    if not rows:
        pytest.fail(f"{words} has no {table}: the test needs some")
    tab = shown(browser, tmp_path, words, capsys)
    part = f"window.footprint.parts[{json.dumps(table)}].tree"
    leaves = f"{part}.children.map((below, node) => below.length || !node ? -1 : node).filter((node) => node > 0)"
    told = tab.js(f"{leaves}.map((node) => {part}.columns[0].value(node))")
    assert sorted(told) == sorted(values_of(rows, column))
    texts = tab.js(f"{leaves}.map((node) => {part}.columns[0].text(node))")
    assert sorted(texts) == sorted(format_bytes(size) if size else "-" for size in values_of(rows, column))
    assert tab.complaints() == []


def test_a_trend_has_a_line_for_each_figure_and_its_largest_step(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = json.loads(asked(["trend", "--history", HISTORY, "--json"], capsys))
    tab = shown(browser, tmp_path, ["trend", "--history", HISTORY], capsys)
    rows = tab.js(
        "[...document.querySelectorAll('#program-1 tbody tr')]"
        ".map((row) => [...row.children].map((one) => one.textContent))"
    )
    assert [row[0] for row in rows] == [FIGURES[one["figure"]].title for one in answer["trends"]]
    assert rows[0][1:4] == ["180.4 KiB", "165.9 KiB", "-14.5 KiB"]
    assert rows[0][5] == "-14.3 KiB with 1.4, libunused.so -4 KiB"
    # A point tells its release and its value.
    points = tab.texts("#program-1 tbody tr:first-child circle title")
    assert [one.partition(": ")[0] for one in points] == [one["version"] for one in answer["releases"]]
    assert points[-1] == "1.4: 165.9 KiB"


@pytest.mark.parametrize(
    "words",
    [["audit", "--all", str(SAMPLES / "condor_shadow")], ["trend", "--history", HISTORY], ["libraries", BASE]],
)
def test_the_last_line_of_the_text_stands_first_also_on_a_phone(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    last = " ".join(asked([*words, "--quiet"], capsys).split())
    tab = shown(browser, tmp_path, words, capsys)
    tab.resize(400, 800)
    assert tab.text(".verdict") == last
    assert tab.js("document.querySelector('.verdict').getBoundingClientRect().bottom < innerHeight")
    assert tab.js("document.documentElement.scrollWidth") == 400
