"""The HTML report of real programs, of hostile, huge and empty answers, and of 100,000 rows."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.formats.audit_json import audit_json
from footprint.model.audit import Audit
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.release.compare import compare
from footprint.text.units import format_bytes
from footprint.verbs.audit.html import audit_html
from footprint.verbs.audit.summary import advice_about
from footprint.verbs.check.json import check_html
from footprint.verbs.diff.json import diff_html
from tests.chromium import Browser, Tab
from tests.ledgers import ledger_row
from tests.shownreports import (  # noqa: F401 # fixtures
    VERSION,
    Show,
    assert_axe_finds_nothing,
    browser_fixture,
    bytes_by_owner,
    enter,
    is_chromium,
    point_at_first_cell,
    process_fixture,
    program_fixture,
    rows_of,
    settle,
    show_fixture,
    type_and_sort_at_once,
    with_ledger,
)

# --- real programs ----------------------------------------------------------------------------------------------------


# Each program writes a line when it has started, and waits.
PROGRAMS = {
    "node": ["node", "-e", "console.log(); setInterval(() => {}, 1e6)"],
    "gdb": ["gdb", "-q", "-nx", "-ex", "echo up\\n"],
    # It has 36 threads and more: those of the garbage collector are there from the beginning.
    "java": [
        *["java", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=24", "-XX:-UseDynamicNumberOfGCThreads"],
        *["sun.security.tools.keytool.Main", "-genkeypair", "-keystore", "/nowhere"],
    ],
}


JAVA_THREADS = 36
SHARED_WITH_RELATIVES = "memory shared with fork relatives"


@cache
def audited(name: str) -> tuple[Audit, str]:
    """Return the audit of a program or of a process of it, and the report of it: both browsers show the same one."""
    if name not in PROGRAMS:
        audit = footprint.audit(str(shutil.which("gdb")), count=1000, has_page_maps=True)
    else:
        pipe = subprocess.PIPE
        with subprocess.Popen(PROGRAMS[name], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as child:
            assert child.stdout is not None
            assert child.stdout.read(1)
            # A process may change between two audits: report and JSON are made from one.
            audit = footprint.audit(child.pid, count=1000, has_findings=True, has_page_maps=True)
            thread_count = len(os.listdir(f"/proc/{child.pid}/task"))
            assert name != "java" or thread_count >= JAVA_THREADS
            child.kill()
    return audit, audit_html(audit, VERSION)


@pytest.mark.parametrize("name", ["gdb, not run", *PROGRAMS])
def test_a_real_program_and_a_live_process_are_shown_as_their_json_tells(
    browser: Browser, show: Show, name: str
) -> None:
    found = shutil.which(name.split(",", maxsplit=1)[0])
    if found is None:
        pytest.skip(f"{name} is missing")
    audit, text = audited(name)
    tab = show(text)
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(audit.projection.total_bytes)
    owners = bytes_by_owner(audit)
    # Memory that it shares with a process which it was forked from, or has forked, is in its cost and in no row.
    shared = [term.size_bytes for term in audit.projection.terms if term.name == SHARED_WITH_RELATIVES]
    assert rows_of(tab)[0][1] == format_bytes(sum(owners.values()) + sum(shared))
    assert tab.count("#object option") == len(audit.page_maps)
    assert tab.js("footprint.parts.libraries.tree.size") == len(audit.objects) + 1
    answer = json.loads(audit_json(audit, VERSION))
    sizes = tab.js(
        "(({tree}) => Object.fromEntries(tree.children[0].map((node) =>"
        " [tree.titles[node] ?? tree.names[node], tree.columns[0].value(node)])))"
        "(footprint.parts.ledger)"
    )
    assert sorted(sizes.values()) == sorted([*owners.values(), *shared])
    # An owner with a single row has the name of the row behind its own.
    assert {name: size for name, size in sizes.items() if name in owners} == {
        name: size for name, size in owners.items() if name in sizes
    }
    savings = [bool(one["saving_bytes"]) for one in answer["findings"]]
    assert tab.count("section > .findings .finding .subject") == min(100, savings.count(True))
    others = savings.count(False)
    assert tab.count("details .finding .subject") == min(100, others)
    # Only the visible rows are elements.
    assert tab.count("details[open] .finding") == (others if others <= 6 else 0)
    # axe looks at the document, which is the same one in both.
    if is_chromium(browser):
        assert_axe_finds_nothing(tab)


# The texts that are seen before the reader scrolls, in their order. A text that is cut is not seen.
READ = """(() => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.data.trim() || !text.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNode(text);
    let [left, top, right, bottom] = [0, 0, innerWidth, innerHeight];
    for (let box = text.parentElement; box; box = box.parentElement) {
      const { overflowX, clipPath } = getComputedStyle(box);
      if (overflowX === "visible" && clipPath === "none") continue;
      const seen = box.getBoundingClientRect();
      [left, top] = [Math.max(left, seen.left), Math.max(top, seen.top)];
      [right, bottom] = [Math.min(right, seen.right), Math.min(bottom, seen.bottom)];
    }
    const isSeen = [...range.getClientRects()].every((one) =>
      one.left >= left - 1 && one.top >= top - 1 && one.right <= right + 1 && one.bottom <= bottom + 1);
    if (isSeen) found.push(text.data);
  }
  return found.join(" ").replace(/\\s+/g, " ");
})()"""


def costs_shown(audit: Audit) -> tuple[str, str, str]:
    """Return the cost, the dearest owner and the best saving of what the user builds, as the report has to say them."""
    noun = audit.noun
    # A JVM may share memory with a child of the moment: one more copy, which has none, costs more than it does now.
    cost = (audit.cost.bytes if audit.is_group else audit.projection.per_process_bytes) or 0
    payers = bytes_by_owner(audit)
    if audit.is_group:
        payers["shared between them"] = audit.totals.cow_shared.bytes or 0
    dearest, dearest_bytes = max(payers.items(), key=lambda item: item[1])
    advice = advice_about(audit)
    if advice.savings:
        best = advice.savings[0]
        step = re.escape(best.step.replace("`", ""))
        saving = rf"{re.escape(format_bytes(best.saving_bytes))} each[^(]*\({best.rule}\) (proof|\w+ confidence) {step}"
    else:
        size = re.escape(format_bytes(advice.packaged_bytes))
        saving = rf"{size} each.*: by rebuilding {advice.packaged_count} files? of packages"
    return (
        f"One more {noun} costs {format_bytes(cost)}",  # where it shares memory now, that follows
        f"{Path(dearest).name} {format_bytes(dearest_bytes)} {dearest_bytes / cost:.1%} ",
        saving,
    )


@pytest.fixture(scope="module", name="answers")
def answers_fixture(browser: Browser) -> dict[str, tuple[Audit, str]]:
    """Return audits and their reports: of gdb, a JVM with 36 threads, Chromium with its processes, a failed check."""
    gdb, _ = audited("gdb")
    assert isinstance(gdb, Audit)
    budgets = parse_budgets({"budgets": {"per_process_bytes": "1 MiB"}}, "<b>.toml")
    failed = check_audit(gdb, budgets, None, date(2026, 1, 1))
    found: dict[str, tuple[Audit, str]] = {name: audited(name) for name in ("gdb", "java")}
    found["failed check"] = (gdb, check_html(failed, VERSION))
    if is_chromium(browser):
        group = footprint.audit_group(tree=browser.pid, has_findings=True, count=100, debug=None)
        found["chromium"] = (group, audit_html(group, VERSION))
    return found


def test_cost_culprit_and_remedy_are_read_without_scrolling(
    browser: Browser, show: Show, answers: dict[str, tuple[Audit, str]]
) -> None:
    # Firefox has no window as narrow as the second one.
    for width, height in ((1440, 900), (400, 800))[: 2 if is_chromium(browser) else 1]:
        for name, (audit, text) in answers.items():
            read = show(text, width=width, height=height).js(READ)
            cost, culprit, remedy = costs_shown(audit)
            assert cost in read, (name, read)
            rest = read[read.index(cost) :]
            assert culprit in rest, (name, culprit, rest)
            assert re.search(remedy, rest[rest.index(culprit) :]), (name, remedy, rest)
            if name == "failed check":
                assert "exceeded: per_process_bytes by " in read[: read.index(cost)]


# --- hostile, huge, empty ---------------------------------------------------------------------------------------------


def test_hostile_names_are_shown_as_text_and_nothing_of_them_runs(show: Show, process: Audit) -> None:
    names = [
        "</script><script>document.title='taken'</script>",
        "<img src=x onerror=\"document.title='taken'\">",
        "\u202egnp.exe",
        "a\0b",
        "n" * 10_240,
    ]
    rows = [ledger_row(name, section=name, symbol=name, name=name) for name in names]
    audit = replace(process, ledger=(*process.ledger, *rows), command=names[0], target=names[1])
    tab = show(audit_html(audit, VERSION))
    assert not tab.js("document.title").startswith("taken")
    assert tab.count("#app img, #app script") == 0
    tab.click("#ledger .tools button:nth-of-type(1)")
    tab.type("#ledger input[type=search]", "<")
    settle(tab)
    assert names[0] in [row[0] for row in rows_of(tab)]
    tab.type("#ledger input[type=search]", "gnp")
    settle(tab)
    assert "\\u202egnp.exe" in [row[0] for row in rows_of(tab)]
    tab.type("#ledger input[type=search]", "nnnn")
    settle(tab)
    assert max(len(row[0]) for row in rows_of(tab)) < 500
    assert tab.js("document.documentElement.scrollWidth <= innerWidth")


def marked(value: Any, key: str = "") -> Any:  # noqa: ANN401 # JSON
    """Put a mark that reverses the direction of text, and a NUL, into every free text."""
    if isinstance(value, dict):
        return {name: marked(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [marked(member, key) for member in value]
    is_word = key in {
        "schema",
        "verb",
        "kind",
        "part",
        "evidence",
        "attribution",
        "basis",
        "model",
        "confidence",
        "saving_per",
    }
    is_word = (
        is_word or key in {"states", "permissions"} or key.endswith("_bytes") or value in {"prediction", "footprint"}
    )
    return f"\u202e\0{value}" if isinstance(value, str) and not is_word else value


def test_no_text_of_a_saved_audit_turns_the_direction_of_a_line(show: Show, program: Audit, tmp_path: Path) -> None:
    saved = tmp_path / "audit.json"
    saved.write_text(json.dumps(marked(json.loads(audit_json(program, VERSION)))))
    audit = footprint.audit(str(saved), has_page_maps=True)
    for tab in (show(audit_html(audit, VERSION)), show(diff_html(compare(program, audit), VERSION))):
        for button in ("before", "after", "needs"):
            tab.js(f"document.querySelectorAll('button[data-value={button}]').forEach((one) => one.click())")
        told = point_at_first_cell(tab)
        assert " \\u202e\\x00" in told
        assert told.endswith(": its variables are not saved")
        texts = tab.js(
            "[document.title, document.body.textContent, ...[...document.querySelectorAll('*')].flatMap("
            "(one) => [...one.attributes].map((each) => each.value))]"
        )
        assert "\\u202e" in "".join(texts)
        assert [text[:80] for text in texts if "\u202e" in text or "\0" in text] == []


def test_an_empty_ledger_and_huge_figures_are_told(show: Show, process: Audit) -> None:
    tab = show(audit_html(with_ledger(process), VERSION))
    assert tab.text("#ledger .empty") == "The ledger is empty: no memory is known of it."
    tab = show(audit_html(with_ledger(process, ledger_row("[big]", (1 << 63) - 1)), VERSION))
    assert "A browser rounds figures above 8 PiB" in tab.text("#notes .warning")
    assert rows_of(tab)[0][1] == "8 EiB"


# --- a hundred thousand rows ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large_report(process: Audit) -> str:
    """Write the report of 100,000 variables in 25 objects, once for both browsers."""
    rows = [
        ledger_row(f"/lib/lib{number % 25}.so", 8, section=".data", symbol=name, name=name)
        for number in range(100_000)
        for name in [f"variable_{number}"]
    ]
    return audit_html(with_ledger(process, *rows), VERSION)


def test_a_hundred_thousand_rows_are_scrolled_to_their_end(show: Show, large_report: str) -> None:
    tab = show(large_report)
    tab.click("#ledger .view > .tools:not(:first-child) button:nth-of-type(1)")
    assert tab.js("document.querySelector('#ledger [role=treegrid]').ariaRowCount") == str(100_000 + 25 + 25 + 2)
    assert tab.count("#ledger .rows .row") < 100
    tab.js("(() => { const one = document.querySelector('#ledger [role=treegrid]'); one.focus() })()")
    tab.key("End")
    # The last of all rows comes into view.
    count = tab.js("footprint.parts.ledger.grid.rows.shown.length")
    tab.wait(f"document.querySelector('#ledger .rows .row[aria-rowindex=\"{count + 1}\"]') !== null")
    assert rows_of(tab)[-1][0].startswith("variable_")
    tab.type("#ledger input[type=search]", "variable_99999")
    settle(tab)
    assert [row[0] for row in rows_of(tab)][-1] == "variable_99999"


@pytest.fixture(scope="module")
def crowded_report(process: Audit) -> str:
    """Write the report of 100,000 variables in one section."""
    # The order of the numbers is neither that of the sizes nor that of the names.
    rows = [
        ledger_row("/lib/libmany.so", 8 * (number * 31 % 1009), section=".data", symbol=name, name=name)
        for number in range(100_000)
        for name in [f"variable_{number * 7919 % 100_003}"]
    ]
    return audit_html(with_ledger(process, *rows), VERSION)


@pytest.fixture
def crowded(show: Show, crowded_report: str) -> Tab:
    """Open the report of 100,000 variables in one section, with the section open."""
    tab = show(crowded_report)
    tab.click("#ledger .view > .tools:not(:first-child) button:nth-of-type(1)")
    return tab


def column_of(tab: Tab, place: int) -> list[str]:
    """Return a column of all rows below the section, from the CSV that the report copies."""
    text = tab.js("footprint.parts.ledger.grid.csv()")
    return [row.split(",")[place] for row in text.split("\r\n")[4:-1]]


def test_a_hundred_thousand_names_of_one_section_are_sorted(crowded: Tab) -> None:
    assert len(column_of(crowded, 2)) == 100_000
    for heading, place, kind in (("name", 2, str), ("bytes", 3, int)):
        for _ in range(2):
            crowded.click(f"#ledger [role=columnheader].c-{heading} button")
            settle(crowded)
            order = crowded.js(f"document.querySelector('#ledger [role=columnheader].c-{heading}').ariaSort")
            found = [kind(text) for text in column_of(crowded, place)]
            assert found == sorted(found, reverse=order == "descending")


def test_rows_stay_while_a_table_is_busy_and_it_says_so(crowded: Tab) -> None:
    before = column_of(crowded, 2)[:100]
    grid = "document.querySelector('#ledger [role=treegrid]')"
    name = "#ledger [role=columnheader].c-name"
    assert crowded.js(
        f"(() => {{ document.querySelector('{name} button').click();"
        f" return [{grid}.ariaBusy, document.querySelector('{name}').ariaSort] }})()"
    ) == ["true", "none"]
    settle(crowded)
    assert crowded.js(f"document.querySelector('{name}').ariaSort") == "ascending"
    assert column_of(crowded, 2)[:100] == sorted(column_of(crowded, 2))[:100] != before


def test_what_is_typed_or_chosen_last_is_what_is_shown(crowded: Tab) -> None:
    type_and_sort_at_once(crowded, ["variable", "variable_4", "", "VARIABLE_4711"], ["name", "mapped", "name", "bytes"])
    settle(crowded)
    numbers = [number for number in range(100_003) if str(number).startswith("4711")]
    assert crowded.text("#ledger .found") == f"{len(numbers)} names"
    assert set(column_of(crowded, 2)) == {f"variable_{number}" for number in numbers}
    sizes = [int(size) for size in column_of(crowded, 3)]
    assert sizes == sorted(sizes, reverse=True)
    assert crowded.js("[...document.querySelectorAll('#ledger [aria-sort]')].map((one) => one.ariaSort)") == [
        "none",
        "descending",
        *["none"] * 4,
    ]
    enter(crowded, "#ledger input[type=search]", "")
    assert crowded.js("document.querySelector('#ledger [role=treegrid]').ariaRowCount") == str(100_000 + 4)


def filter_and(tab: Tab, text: str, act: str) -> None:
    """Filter, and act on the view of the ledger before the browser can do anything else."""
    tab.js(
        "(() => { const field = document.querySelector('#ledger input[type=search]');"
        f" field.value = {json.dumps(text)}; field.dispatchEvent(new Event('input'));"
        " const buttons = [...document.querySelectorAll('#ledger .tools button')];"
        f" const button = (text) => buttons.find((one) => one.textContent === text); {act} }})()"
    )
    settle(tab)


def test_a_busy_table_does_with_the_rows_that_were_asked_for_what_is_chosen_meanwhile(crowded: Tab) -> None:
    crowded.js(
        "window.copied = null;"
        " navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }"
    )
    filter_and(crowded, "variable_4711", "button('Copy as CSV').click()")
    # The heading, the total, the file, its section, and the rows with the name; an empty string after the last line.
    count = sum(str(number).startswith("4711") for number in range(100_003))
    assert len(crowded.wait("window.copied").split("\r\n")) == 4 + count + 1
    crowded.wait("document.querySelector('#ledger .found').textContent === 'The rows copied'")
    # All of it is closed when it shows what was asked for.
    filter_and(crowded, "variable_471", "button('Close all').click()")
    crowded.wait("document.querySelectorAll('#ledger .rows .row').length === 2")
    assert [row[0] for row in rows_of(crowded)] == ["[total]", "libmany.so"]
    # The filter has not found the largest part: a click on it clears the filter.
    filter_and(
        crowded,
        "variable_4711",
        "const { tree, picture } = footprint.parts.ledger; picture.events.onclick(tree.names.indexOf('variable_1'));",
    )
    crowded.wait("document.querySelector('#ledger input[type=search]').value === ''")
    selected = crowded.wait("document.querySelector('#ledger [role=row][aria-selected=true]')?.textContent")
    assert "variable_1" in selected
