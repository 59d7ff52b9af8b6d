"""The report of any answer in a browser: its last line, and its tables with the figures of the JSON."""

import json
import platform
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from footprint.formats.answer_table import page_columns
from footprint.formats.document import Verdict
from footprint.html import page
from footprint.model.figures import FIGURES
from footprint.model.over_time import ProcessCounters
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.release.compare import compare
from footprint.series.records import Began, Came, Ended, Record, Sampled, line_of
from footprint.text.units import format_bytes
from footprint.verbs.audit.survey_answer import ProgramRow
from footprint.verbs.check.json import check_html
from footprint.verbs.diff.json import diff_members
from tests.chromium import MISSING, Browser, Tab, launched
from tests.fleets import Holding, Member, write_fleet
from tests.ledgers import audit_of, ledger_row
from tests.shownreports import assert_axe_finds_nothing

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
    (["audit", "--by", "mapping", SMAPS], "mappings", "private_bytes"),
    (["audit", SMAPS, BASE, "-n", "7"], "targets", "projection.total_bytes"),
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
    assert [point.partition(": ")[0] for point in points] == [one["version"] for one in answer["releases"]]
    assert points[-1] == "1.4: 165.9 KiB"
    # On paper, too, a figure and its unit are one line.
    tab.ask("Emulation.setEmulatedMedia", media="print")
    tab.resize(720, 900)
    lines = (
        "[...document.querySelectorAll('#program-1 tbody td:nth-child(n+2):nth-child(-n+4)')].map((one) => {"
        " const range = document.createRange(); range.selectNodeContents(one); return range.getClientRects().length })"
    )
    assert set(tab.js(lines)) == {1}


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


def test_on_a_phone_a_chosen_row_tells_every_column_and_no_budget_scrolls_sideways(
    browser: Browser, tmp_path: Path
) -> None:
    row = {"path": "/usr/bin/tool", "at_start_bytes": 4096, "unused_bytes": 8192, "unused": ["libm.so.6"]}
    (tmp_path / "report.html").write_text(
        page("asked", {"programs": [row]}, (), page_columns(programs=ProgramRow)), encoding="utf-8"
    )
    tab = browser.open(tmp_path / "report.html", width=400, height=800)
    assert tab.text("#programs .status") == "Choose a row to read all of it."
    tab.js("document.querySelectorAll('#programs .rows .row')[1].click()")
    told = "/usr/bin/tool, at start 4 KiB, unused 8 KiB, unused libraries libm.so.6"
    assert tab.text("#programs .status").endswith(told)
    limits = parse_budgets({"budgets": {"private_bytes": 1, "mapping_count": 90}}, "footprint.toml")
    checked = check_audit(audit_of(ledger_row(f"/lib/{'x' * 90}.so", 4096)), limits, None, date(2026, 1, 1))
    (tmp_path / "report.html").write_text(check_html(checked, "1"), encoding="utf-8")
    tab = browser.open(tmp_path / "report.html", width=400, height=800)
    assert (
        tab.js("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('#budgets .wide'))")
        == 0
    )


@pytest.mark.parametrize("width", [1100, 400])
def test_programs_of_one_folder_are_told_apart_by_the_ends_of_their_paths(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    names = ["agentd", "collectord", "a_program_with_a_longer_name"]
    sizes = {f"{key}_bytes": 4096 for key in ("at_start", "floor", "ceiling", "unused")}
    rows = [{"path": f"/opt/a_vendor/a_product/version_12/bin/{name}", "object_count": 5, **sizes} for name in names]
    (tmp_path / "report.html").write_text(
        page("asked", {"programs": rows}, (), page_columns(programs=ProgramRow)), encoding="utf-8"
    )
    tab = browser.open(tmp_path / "report.html", width=width, height=800)
    # The last part of each path lies within its cell.
    seen = tab.js(
        "[...document.querySelectorAll('.rows .path')].map((cell) => {"
        " const node = cell.querySelector('.text').firstChild, range = document.createRange();"
        " range.setStart(node, node.data.lastIndexOf('/') + 1);"
        " range.setEnd(node, node.data.length);"
        " const [one, all] = [range, cell].map((at) => at.getBoundingClientRect());"
        " return one.left >= all.left && one.right <= all.right && one.top >= all.top && one.bottom <= all.bottom"
        " ? range.toString() : null })"
    )
    assert sorted(seen) == sorted(names)


def test_a_table_of_eight_figures_needs_no_scrolling_sideways_at_1100_pixels(browser: Browser, tmp_path: Path) -> None:
    row = {
        "saving_bytes": 8192, "each_bytes": 4096, "process_count": 2, "host_count": 1, "program_count": 1,
        "confidence": "high", "rule": "stub-library", "program": "/usr/bin/gdb", "library": "libpthread.so.0",
    }  # fmt: skip
    (tmp_path / "report.html").write_text(page("asked", {"rows": [row]}, ()), encoding="utf-8")
    tab = browser.open(tmp_path / "report.html", width=1100)
    cut = "[...document.querySelectorAll('.cell')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert tab.js("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('.grid'))") == 0
    assert tab.js(cut) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["libraries", BASE],
        ["diff", BASE, BASE],
        ["heap", str(SAMPLES / "heap_by_function" / "massif.out")],
        ["audit", SMAPS],
    ],
    ids=lambda words: str(words[0]),
)
def test_a_report_says_where_and_when_it_was_written(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    tab = shown(browser, tmp_path, words, capsys)
    written = rf"report written on {re.escape(platform.node())}, \d{{4}}-\d\d-\d\d \d\d:\d\d UTC$"
    assert re.search(written, tab.texts(".lead")[-1])


def test_what_fails_the_command_stands_on_the_first_screen(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", BASE, "--fail-on", "unused-library", "--quiet", "--html", str(tmp_path / "report.html")]) == 1
    verdict = " ".join(capsys.readouterr().out.split())
    assert "unused-library" in verdict
    tab = browser.open(tmp_path / "report.html", width=400, height=800)
    assert tab.text(".failure") == verdict
    assert tab.js("document.querySelector('.failure').getBoundingClientRect().bottom < innerHeight / 2")


def test_addresses_that_a_browser_has_exactly_are_saved_digit_by_digit(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smaps = Path(SMAPS).read_text() + "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\nSize: 4 kB\n"
    (tmp_path / "smaps").write_text(smaps)
    words = ["audit", "--by", "mapping", str(tmp_path / "smaps")]
    mappings = json.loads(asked([*words, "--json"], capsys))["mappings"]
    assert mappings[-1]["start_addr"] == 0xFFFFFFFFFF600000
    tab = shown(browser, tmp_path, words, capsys)
    assert tab.count(".warning") == 0
    tab.js(
        "(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " blob.text().then((text) => (window.saved = text)); return make.call(URL, blob) };"
        " HTMLAnchorElement.prototype.click = () => {} })()"
    )
    tab.click("#download")
    assert json.loads(tab.wait("window.saved"))["mappings"] == mappings


# --- processes over time ----------------------------------------------------------------------------------------------

LEAK = ["watch", "--replay", str(ROOT / "docs" / "examples" / "leak.fps")]
MIB = 1 << 20


def family(path: Path) -> list[str]:
    """Write the series of 30 processes, of which each lives 10 s and holds as many MiB as its number says."""
    records: list[Record] = [Began("family", 1_700_000_000, 1000, 0, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")]
    for second in range(40):
        if second < 30:
            records.append(Came(second * 1000, second + 1, 4000 + second, 1, f"worker {second + 1}"))
            size_bytes = (second + 1) * MIB
            figures = {second + 1: ProcessCounters(size_bytes, 0, 0, size_bytes, size_bytes, 1)}
            records.append(Sampled(second * 1000, figures, 0))
        if second >= 10:
            number = second - 9
            records.append(Ended(second * 1000, number, number * MIB, "taskstats", 0))
            records.append(Sampled(second * 1000 + 1, {}, 0))
    path.write_bytes(b"".join(map(line_of, records)))
    return ["watch", "--replay", str(path)]


def test_a_watch_compares_the_owners_of_two_moments_as_the_json_has_them(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = json.loads(asked([*LEAK, "--json"], capsys))["owner_layers"]
    tab = shown(browser, tmp_path, LEAK, capsys)
    assert tab.texts("#time .chart polygon title")[0] == "libleaking.so"
    assert tab.count("#time .chart .dot") == len(layers["moments"])
    assert tab.texts("#time .chart .peak + text") == ["peak 2.80 MiB", "audit: start"]
    for first, last in ((0, -1), (3, 7)):
        chosen = [layers["moments"][place] for place in (first, last)]
        for name, moment in zip(("before", "moment"), chosen, strict=True):
            tab.js(f"window.box = document.querySelector('#{name}'); box.value = {moment['ms']}; null")
            tab.js("box.dispatchEvent(new Event('change')); null")
        # What no owner holds is named, so that the parts add up to the cost; what is as before is left out.
        owner = [one["layer_bytes"][0] for one in chosen]
        kernel = [one["cost_bytes"] - sum(one["layer_bytes"]) - one["others_bytes"] for one in chosen]
        part = "window.footprint.parts.layers.tree"
        rows = tab.js(
            f"{part}.names.map((name, place) => [name, {part}.columns.map((one) => one.value(place))]).slice(1)"
        )
        expected = [[layers["names"][0], owner], ["page tables, kernel stacks", kernel]]
        assert sorted(rows) == [[name, [now - then, then, now]] for name, (then, now) in expected if now != then]
        assert kernel[0] > 0
    tab.resize(400, 800)
    cut = "[...document.querySelectorAll('#time .legend li')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.js(f"{cut}.map((one) => one.textContent)") == []
    assert tab.complaints() == []


def test_a_drag_over_a_watch_compares_the_moments_at_its_ends(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tab = shown(browser, tmp_path, LEAK, capsys)
    tab.js("document.querySelector('#time .chart').scrollIntoView()")
    dots = tab.js(
        "[...document.querySelectorAll('#time .dot')].map((one) => one.getBoundingClientRect())"
        ".map((box) => [box.x + box.width / 2, box.y + box.height / 2])"
    )
    tab.drag(tuple(dots[2]), tuple(dots[5]))
    chosen = tab.js("['before', 'moment'].map((name) => document.getElementById(name).selectedIndex)")
    assert chosen == [2, 5]


def test_a_family_has_a_span_for_each_of_its_largest_processes_and_one_for_the_rest(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = family(tmp_path / "family.fps")
    layers = json.loads(asked([*words, "--json"], capsys))["process_layers"]
    assert layers["names"][0] == "4029 worker 30"
    # At 29 s worker 20 has ended: 21 to 30 run.
    peak = next(one for one in layers["moments"] if one["ms"] == 29_001)
    assert sum(peak["layer_bytes"]) + peak["others_bytes"] == peak["cost_bytes"] == sum(range(21, 31)) * MIB
    tab = shown(browser, tmp_path, words, capsys)
    spans = tab.texts(".spans li")
    assert len(spans) == 21
    assert spans[0] == "4029 worker 30: peak resident 30 MiB, 29 s to 39 s"
    assert spans[-1] == "10 others: at most 10 MiB each, 0 ms to 19 s"
    widths = tab.js("[...document.querySelectorAll('.spans i')].map((one) => one.style.width)")
    # The chart ends with the last tick that has a process, at 38 s.
    assert [round(float(width.rstrip("%"))) for width in widths] == [24, *[26] * 19, 50]
    tab.resize(400, 800)
    assert tab.js("document.documentElement.scrollWidth") == 400
    assert tab.complaints() == []


def test_the_answer_about_a_fleet_has_the_rows_of_the_json(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = fleet(tmp_path / "fleet")
    rows = json.loads(asked([*words, "--json"], capsys))["rows"]
    assert [row["private_bytes"] for row in rows] == [4 * MIB, MIB]
    keys = list(rows[0])
    tab = shown(browser, tmp_path, words, capsys)
    assert tab.text("h1") == " ".join(words)
    assert tab.text("h2") == "What does each library cost, in all versions of it?"
    assert tab.text(".verdict") == " ".join(asked([*words, "--quiet"], capsys).split())
    assert tab.js("footprint.parts.rows.grid.csv().split('\\r\\n').slice(2, -1)") == [
        ",".join(str(row[key]) for key in (keys[-1], *keys[:-1]) if row[key] is not None) for row in rows
    ]
    tab.resize(400, 800)
    assert tab.js("document.documentElement.scrollWidth") == 400
    assert tab.complaints() == []


@pytest.mark.parametrize("per_process_bytes", [23_000, -5_000])
def test_the_report_of_whatif_says_what_any_number_saves(
    browser: Browser, tmp_path: Path, per_process_bytes: int
) -> None:
    path = tmp_path / "report.html"
    saving = {"count": 7, "per_process_bytes": per_process_bytes, "private_bytes": 16_384}
    path.write_text(page("whatif", {"whatif": {}, "saving": saving}, ()), encoding="utf-8")
    tab = browser.open(path)
    for count in (7, 1, 123_456):
        tab.js(f"window.footprint.set('n', '{count}')")
        assert int(tab.js("document.querySelector('#total').dataset.bytes")) == count * per_process_bytes
        size = format_bytes(count * abs(per_process_bytes))
        verb = ("saves", "costs") if count == 1 else ("save", "cost")
        assert tab.text("#verdict").endswith(f"{verb[0]} {size}" if per_process_bytes > 0 else f"{verb[1]} {size} more")


@pytest.mark.parametrize("is_failure", [False, True])
def test_another_build_that_failed_has_no_verdict_on_its_cost(
    browser: Browser, tmp_path: Path, *, is_failure: bool
) -> None:
    path = tmp_path / "report.html"
    before, after = (audit_of(ledger_row("[heap]", size)) for size in (8192, 4096))
    answer = diff_members(compare(before, after, count=7), "1")
    members = {"whatif": {}, "count": 7, "cost": answer["cost"], "figures": answer["figures"]}
    told = "agentd.new failed: it exited with 1" if is_failure else "A process of agentd.new costs 4 KiB less"
    path.write_text(page("whatif", members, (Verdict(told, is_failure=is_failure),)), encoding="utf-8")
    tab = browser.open(path)
    assert tab.texts("section .verdict") == [told, *([] if is_failure else ["7 processes cost 28 KiB less"])]
    assert tab.count("[aria-label='Figures before and after']") == 1


def test_what_owners_save_is_written_as_in_the_text_and_not_as_growth(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    rows = [
        {
            "owner": owner,
            "predicted_bytes": told,
            "saved_bytes": before - after,
            "before_bytes": before,
            "after_bytes": after,
        }
        for owner, told, before, after in (("/lib/liba.so", 8192, 12_288, 0), ("[heap]", None, 4096, 8192))
    ]
    path.write_text(page("whatif", {"whatif": {}, "changes": rows}, ()), encoding="utf-8")
    tab = browser.open(path)
    tree = "footprint.parts.changes.tree"
    assert tab.js(f"[1, 2].map((node) => {tree}.columns[0].text(node))") == ["12 KiB", "-4 KiB"]
    # The first row is the total.
    total = tab.js(f"{tree}.columns.map((one) => [one.label, one.text(0)])")
    assert total == [["Saved", "8 KiB"], ["Before", "16 KiB"], ["After", "8 KiB"], ["Predicted", "8 KiB"]]


def test_processes_side_by_side_have_their_programs_and_pids(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    commands = {4711: "/usr/sbin/nginx -g /etc/nginx.conf", 4712: "/usr/bin/python3 /srv/app.py"}
    targets = [{"target": {"name": str(pid), "command": command, "pid": pid}} for pid, command in commands.items()]
    rows = [target | {"projection": {"total_bytes": 8192}, "bits": 64} for target in targets]
    path.write_text(page("audit", {"targets": rows}, ()), encoding="utf-8")
    tab = browser.open(path)
    told = tab.js("footprint.parts.targets.grid.csv()").split("\r\n")[2:-1]
    assert [(row.split(",")[0], row.split(",")[2]) for row in told] == [
        (command, str(pid)) for pid, command in commands.items()
    ]


def fleet(folder: Path) -> list[str]:
    """Write a fleet of two processes, and return the words that ask which libraries cost most."""
    held = (Holding("/lib/liba.so", 2 * MIB), Holding("/lib/libb.so", MIB))
    write_fleet(folder, [Member("a", "/bin/x", held, 1), Member("b", "/bin/x", held[:1], 2)])
    return ["fleet", str(folder), "libraries"]


@pytest.mark.parametrize("written", [family, fleet], ids=["watch", "fleet"])
def test_axe_finds_nothing_in_the_report_of(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Callable[[Path], list[str]]
) -> None:
    path = tmp_path / "report.html"
    path.write_text(asked([*written(tmp_path / "family.fps"), "--html", "-"], capsys), encoding="utf-8")
    for dark in (False, True):
        assert_axe_finds_nothing(browser.open(path, dark=dark))
