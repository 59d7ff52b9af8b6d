"""The HTML report in a browser: with mouse and keyboard, it shows what the JSON has."""

import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.attribution.projection import project
from footprint.cli import main
from footprint.elf import shown_name
from footprint.formats.audit_json import audit_json
from footprint.formats.escape import printable
from footprint.formats.saved_audit import read_audit
from footprint.model.audit import Audit
from footprint.model.audited import Audited
from footprint.model.evidence import Evidence
from footprint.model.figures import FIGURES
from footprint.model.finding import Confidence, Finding
from footprint.model.object_cost import Need, ObjectCost
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.projection import Basis, Question
from footprint.model.row import MemoryKind, Row
from footprint.model.totals import Total
from footprint.release.budget import check_audit, parse_budgets
from footprint.release.compare import compare
from footprint.units import format_bytes, parse_bytes
from footprint.verbs.audit.html import audit_html
from footprint.verbs.check.html import check_html
from footprint.verbs.check.json import check_members
from footprint.verbs.diff.html import diff_html
from footprint.verbs.diff.json import diff_members
from footprint.verbs.heap.call import heap_profile
from footprint.verbs.heap.html import heap_html
from footprint.verbs.heap.json import heap_members
from tests import chromium, firefox
from tests.chromium import Browser, Tab
from tests.ledgers import ledger_row
from tests.massifwriter import ROOT as ALLOCATED
from tests.massifwriter import Line, Moment, massif

ROOT = Path(__file__).resolve().parents[2]
STAGES = ROOT / "sample_binaries" / "condor_shadow"
PMAP = ROOT / "tests" / "cases" / "condor_shadow" / "pmap-d.base.txt"
SMAPS = ROOT / "tests" / "corpus" / "smaps-python3.txt"
SLEEP = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
MASSIF = ROOT / "sample_binaries" / "heap_by_function" / "massif.out"
AXE = ROOT / "footprint" / "html" / "app" / "node_modules" / "axe-core" / "axe.min.js"
VERSION = "1.2.3"

Show = Callable[..., Tab]
BROWSERS = {"chromium": chromium, "firefox": firefox}

# For a test that asks Chromium's own protocol, or wants a window that is narrower than Firefox has one.
in_chromium = pytest.mark.parametrize("browser", ["chromium"], indirect=True)


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    module: Any = BROWSERS[request.param]
    if module.MISSING:
        pytest.skip(f"{request.param} is missing")
    with module.launched() as found:
        yield found


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Open reports; afterwards no error may be logged, and nothing but the file may have been requested."""
    opened: list[Tab] = []

    def shown(text: str, **how: Any) -> Tab:  # noqa: ANN401 # what Browser.open takes
        path = tmp_path / f"report{len(opened)}.html"
        path.write_text(text, encoding="utf-8")
        opened.append(browser.open(path, **how))
        return opened[-1]

    yield shown
    for tab in opened:
        assert tab.complaints() == []
        assert [url for url in tab.requests() if not url.startswith(("file:", "blob:"))] == []
        tab.close()


@pytest.fixture(scope="module")
def program() -> Audit:
    return footprint.audit(str(STAGES / "base"), count=10_000, has_page_maps=True)


@pytest.fixture(scope="module")
def process() -> Audit:
    return footprint.audit(str(SMAPS), count=10_000)


def rows_of(tab: Tab, grid: str = "#ledger") -> list[list[str]]:
    """Return the visible rows of a tree table, from top to bottom."""
    found: list[list[str]] = tab.js(
        f"[...document.querySelectorAll('{grid} .rows .row')]"
        ".sort((one, other) => one.ariaRowIndex - other.ariaRowIndex)"
        ".map((row) => [...row.children].map((cell) => cell.querySelector('.text').textContent))"
    )
    return found


def settle(tab: Tab) -> None:
    """Wait until no table is filtering or sorting."""
    tab.wait("!document.querySelector('[aria-busy]')")


def enter(tab: Tab, selector: str, text: str) -> None:
    """Set the text of a field, also one that cannot be typed."""
    tab.js(
        f"(() => {{ const one = document.querySelector('{selector}'); one.value = {json.dumps(text)};"
        " one.dispatchEvent(new Event('input')) })()"
    )


def with_ledger(audit: Audit, *rows: Row) -> Audit:
    """Return an audit with these rows as its ledger, and the totals that they add up to."""
    size_bytes = sum(row.mapped_bytes for row in rows)
    whole, nothing = Total(size_bytes, Evidence.DERIVED), Total(0, Evidence.DERIVED)
    totals = audit.totals._replace(
        private=whole, per_process=whole, mapped=whole, mapped_writable=whole, kernel=nothing, shared_once=nothing
    )
    return replace(audit, ledger=rows, totals=totals, findings=(), objects=())


def bytes_by_owner(audit: Audit) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in audit.ledger:
        found[row.owner] = found.get(row.owner, 0) + (row.bytes or 0)
    return found


def assert_axe_finds_nothing(tab: Tab) -> None:
    if not AXE.exists():
        return
    tab.js(AXE.read_text(encoding="utf-8") + "; null")
    found = tab.js(
        "axe.run(document, {resultTypes: ['violations']}).then((all) => all.violations.map((one) =>"
        " [one.id, one.impact, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))"
    )
    assert found == []


# --- the answer -------------------------------------------------------------------------------------------------------


def test_the_strip_tells_the_cost_in_its_parts_as_the_projection_has_them(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    projection = process.projection
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(projection.total_bytes)
    assert tab.text("#total") == format_bytes(projection.total_bytes)
    assert tab.js("document.querySelector('#each').dataset.bytes") == str(projection.per_process_bytes)
    assert tab.js("[...document.querySelectorAll('.part')].map((one) => one.dataset.bytes)") == [
        str(term.size_bytes) for term in projection.terms
    ]
    assert tab.texts(".tile .evidence") == [
        projection.evidence.value,
        *(term.evidence.value for term in projection.terms),
    ]


def test_all_totals_are_there_with_how_each_is_known(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    totals = json.loads(audit_json(process, VERSION))["totals"]
    tab.click(".totals summary")
    assert tab.js(
        "[...document.querySelectorAll('.totals tbody tr')]"
        ".map((row) => [...row.children].map((one) => one.textContent))"
    )[: len(totals["evidence"])] == [
        [figure.title, format_bytes(totals[name]), totals["evidence"][name]]
        for name, figure in FIGURES.items()
        if name in totals["evidence"]
    ]


@pytest.mark.parametrize("count", [1, 2, 777, 10**12])
def test_another_number_gives_what_the_command_gives_for_it(show: Show, process: Audit, count: int) -> None:
    tab = show(audit_html(process, VERSION))
    tab.type("#count", str(count))
    expected = footprint.audit(str(SMAPS), count=count).projection
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(expected.total_bytes)
    assert tab.text("#verdict").startswith(f"{count:,} process")


@pytest.mark.parametrize("count", ["0", "-5", "1e3", "", "10000000000000", "1.5"])
def test_what_is_no_number_of_processes_changes_nothing(show: Show, process: Audit, count: str) -> None:
    tab = show(audit_html(process, VERSION))
    enter(tab, "#count", count)
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(process.projection.total_bytes)


@pytest.mark.parametrize("memory", ["32GiB", "1 MiB", "500MB", "1.5GiB", "0", "4096"])
def test_how_many_fit_is_what_the_command_says_for_that_memory(show: Show, process: Audit, memory: str) -> None:
    tab = show(audit_html(process, VERSION))
    tab.type("#memory", memory)
    own = process.projection
    expected = project(own.terms, own.basis, Question(memory_bytes=parse_bytes(memory)))
    assert tab.js("document.querySelector('#fit').dataset.count") == str(expected.count)


@pytest.mark.parametrize("memory", ["32G", "much", "-1GiB", ""])
def test_what_is_no_size_is_said_to_be_none(show: Show, process: Audit, memory: str) -> None:
    tab = show(audit_html(process, VERSION))
    enter(tab, "#memory", memory)
    assert tab.text("#fit") == "write a size like 32GiB or 500MB"


def test_the_slider_and_the_number_go_together_by_keyboard(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    tab.js("document.querySelector('#count-slider').focus()")
    tab.key("Home")
    assert tab.js("document.querySelector('#count').value") == "1"
    tab.key("End")
    assert tab.js("document.querySelector('#count').value") == str(10**12)
    assert tab.text("#verdict").startswith("1,000,000,000,000 processes cost")


def test_sizes_are_written_as_everywhere_in_footprint(show: Show, process: Audit) -> None:
    # 1.125 KiB is a tie: it goes to the even digit; 1,048,575 bytes are of the next unit.
    sizes = [
        0,
        1,
        1023,
        1024,
        1152,
        1176,
        10_235,
        995_328,
        1_023_999,
        1_048_575,
        9_953_280_000,
        2**53,
        2**60 + 2**57,
        10**25,
    ]
    terms = (process.projection.terms[0]._replace(size_bytes=1),)
    audit = replace(process, projection=project(terms, process.projection.basis, Question(1)))
    tab = show(audit_html(audit, VERSION))
    for size in sizes[1:]:
        if size <= 10**12:
            tab.type("#count", str(size))
            assert tab.text("#total") == format_bytes(size)


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_begins_with_the_owners_and_their_bytes(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    rows = rows_of(tab)
    owners = sorted(bytes_by_owner(process).items(), key=lambda item: -item[1])
    total = sum(size for _, size in owners)
    assert rows[0][:3] == ["[total]", format_bytes(total), "100.0%"]
    assert [row[1] for row in rows[1:6]] == [format_bytes(size) for _, size in owners[:5]]
    assert rows[1][2] == f"{owners[0][1] / total:.1%}"
    assert tab.js("document.querySelector('#ledger [role=treegrid]').ariaRowCount") == str(len(owners) + 2)


def test_a_click_on_a_triangle_opens_an_owner_and_another_one_closes_it(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    before = rows_of(tab)
    tab.click("#ledger .row[aria-expanded=false] .twist")
    opened = rows_of(tab)
    assert len(opened) > len(before)
    tab.click("#ledger .row[aria-level='2'][aria-expanded=true] .twist")
    assert rows_of(tab) == before


def test_typing_into_the_filter_shows_what_is_called_so_with_its_section_and_owner(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.type("#ledger input[type=search]", "Answer.")
    settle(tab)
    rows = rows_of(tab)
    expected = [row for row in audit_json_rows(program) if "answer." in f"{row['name']}\n{row['symbol']}".lower()]
    assert expected
    assert tab.text("#ledger .found") == f"{len(expected)} name{'s' if len(expected) > 1 else ''}"
    shown = [row[0] for row in rows if "answer." in row[0].lower()]
    assert len(shown) == min(len(expected), len(rows) - 3)
    assert rows[0][0] == "[total]"
    tab.type("#ledger input[type=search]", "no such name at all")
    settle(tab)
    assert [row[0] for row in rows_of(tab)] == ["[total]"]


def test_an_owner_that_is_found_opens_to_all_that_lies_in_it(show: Show, process: Audit) -> None:
    rows = [ledger_row("/lib/libfound.so", 8, section=".data", symbol=name, name=name) for name in ("one", "two")]
    tab = show(audit_html(with_ledger(process, *rows, ledger_row("/lib/libother.so", 8)), VERSION))
    tab.type("#ledger input[type=search]", "LIBFOUND")
    settle(tab)
    tab.click("#ledger .view > .tools:not(:first-child) button:nth-of-type(1)")
    assert [row[0] for row in rows_of(tab)] == ["[total]", "libfound.so", ".data", "one", "two"]
    assert tab.text("#ledger .found") == "1 name"


def test_of_two_filters_and_orders_at_once_the_second_is_shown(show: Show, process: Audit) -> None:
    rows = [ledger_row(f"/lib/lib{name}.so", size) for name, size in (("one", 8), ("two", 16), ("twin", 24))]
    tab = show(audit_html(with_ledger(process, *rows), VERSION))
    type_and_sort_at_once(tab, ["one", "tw"], ["bytes", "name"])
    settle(tab)
    assert [row[0] for row in rows_of(tab)] == ["[total]", "libtwin.so", "libtwo.so"]
    assert tab.text("#ledger .found") == "2 names"


def test_what_is_typed_into_the_filter_is_no_pattern(show: Show, process: Audit) -> None:
    names = ["operator*(a[0], b?) + {c}", "a|b", "^x$", "back\\slash"]
    rows = [ledger_row("/lib/libc.so", 8, section=".data", symbol=name, name=name) for name in (*names, "a.b", "x")]
    tab = show(audit_html(with_ledger(process, *rows), VERSION))
    for name in names:
        tab.type("#ledger input[type=search]", name)
        settle(tab)
        assert [row[0] for row in rows_of(tab)][3:] == [name]
    tab.type("#ledger input[type=search]", ".*")
    settle(tab)
    assert [row[0] for row in rows_of(tab)] == ["[total]"]


def audit_json_rows(audit: Audit) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(audit_json(audit, VERSION))["ledger"]
    return found


def test_a_heading_sorts_and_sorts_the_other_way_again(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    heading = "#ledger [role=columnheader].c-mapped button"
    tab.click(heading)
    settle(tab)
    assert tab.js(f"document.querySelector('{heading}').parentElement.ariaSort") == "descending"
    mapped: dict[str, int] = {}
    for row in process.ledger:
        mapped[row.owner] = mapped.get(row.owner, 0) + row.mapped_bytes
    ordered = sorted(mapped.values(), reverse=True)
    assert [row[4] for row in rows_of(tab)[1:6]] == [format_bytes(size) for size in ordered[:5]]
    tab.click(heading)
    settle(tab)
    assert tab.js(f"document.querySelector('{heading}').parentElement.ariaSort") == "ascending"
    tab.click("#ledger [role=columnheader].c-name button")
    settle(tab)
    names = [row[0] for row in rows_of(tab)[1:]]
    assert names == sorted(names)


def test_the_keyboard_alone_reaches_every_row_and_opens_and_zooms(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.js("document.querySelector('#ledger input[type=search]').focus()")
    grid = "document.querySelector('#ledger [role=treegrid]')"
    for _ in range(8):
        tab.key("Tab")
        if tab.js(f"document.activeElement === {grid}"):
            break
    assert tab.js(f"document.activeElement === {grid}")

    def active() -> Any:  # noqa: ANN401 # JSON
        return tab.js(
            f"(() => {{ const one = document.getElementById({grid}.getAttribute('aria-activedescendant'));"
            " return [one.querySelector('.text').textContent, one.ariaLevel, one.ariaExpanded] })()"
        )

    assert active()[:2] == ["[total]", "1"]
    tab.key("ArrowDown")
    owner, level, expanded = active()
    assert (level, expanded) == ("2", "false")
    tab.key("ArrowRight")
    assert active() == [owner, "2", "true"]
    tab.key("ArrowRight")
    assert active()[1] == "3"
    tab.key("ArrowLeft", "ArrowLeft")
    if active()[0] == owner:
        assert active() == [owner, "2", "false"]
    tab.key("Home", "ArrowDown", "Enter")
    assert tab.texts("#ledger .crumbs button") == ["[total]", owner]
    tab.key("End")
    assert active()[0] == rows_of(tab)[-1][0]
    tab.key("PageUp", "PageDown", "Home")
    assert active()[0] == "[total]"
    # On to the headings: Name, Private, Share.
    tab.key("Tab", "Tab", "Tab", "Enter")
    assert tab.js("document.activeElement.parentElement.ariaSort") == "descending"
    assert tab.js("document.activeElement.textContent") == "Share"
    tab.key("Enter")
    assert tab.js("document.activeElement.parentElement.ariaSort") == "ascending"


@in_chromium
def test_the_rows_are_copied_as_csv_with_figures_in_bytes(show: Show, process: Audit, browser: Browser) -> None:
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab = show(audit_html(process, VERSION))
    text = tab.js("footprint.parts.ledger.grid.csv()")
    first, total, *rows = text.split("\r\n")
    assert first.startswith("level 1,bytes,share,pages,mapped,evidence")
    sizes = bytes_by_owner(process)
    assert total.split(",")[:2] == ["[total]", str(sum(sizes.values()))]
    assert [int(row.split(",")[-5]) for row in rows if row] == sorted(sizes.values(), reverse=True)
    tab.js(
        "window.copied = null;"
        " navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }"
    )
    tab.click("#ledger .view > .tools:not(:first-child) button:last-of-type")
    assert tab.wait("window.copied") == text


def test_a_name_that_a_spreadsheet_would_take_for_a_formula_gets_an_apostrophe(show: Show, process: Audit) -> None:
    row = ledger_row('=HYPERLINK("x"),1')
    tab = show(audit_html(replace(process, ledger=(*process.ledger, row)), VERSION))
    assert '"\'=HYPERLINK(""x""),1",' in tab.js("footprint.parts.ledger.grid.csv()")


# --- the picture ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["icicle", "treemap", "sunburst"])
def test_a_picture_and_the_table_go_together(show: Show, process: Audit, shape: str) -> None:
    tab = show(audit_html(process, VERSION))
    tab.click(f"#ledger button[data-value={shape}]")
    view = "footprint.parts.ledger"
    # The largest owner that has parts, and its place in the picture.
    node = tab.js(
        f"{view}.tree.children[0].filter((one) => {view}.tree.children[one].length)"
        f".sort((one, other) => {view}.tree.areas[other] - {view}.tree.areas[one])[0]"
    )
    name = tab.js(f"{view}.tree.names[{node}]")
    tab.js("document.querySelector('#ledger canvas').scrollIntoView({block: 'center'})")
    left, top = tab.js("(({x, y}) => [x, y])(document.querySelector('#ledger canvas').getBoundingClientRect())")
    x, y = tab.js(f"{view}.picture.placeOf({node})")
    tab.move_to(left + x, top + y)
    assert tab.text("#ledger .status").startswith(f"{name}, ")
    assert tab.texts("#ledger .row.hover .c-name .text") == [name]
    tab.click_at(left + x, top + y)
    assert tab.texts("#ledger .crumbs button") == ["[total]", name]
    assert tab.texts("#ledger .rows .row[aria-selected=true] .c-name .text") == [name]
    assert f"{shape} of {name}" in tab.js("document.querySelector('#ledger canvas').ariaLabel")
    tab.click("#ledger .crumbs button")
    assert tab.texts("#ledger .crumbs button") == ["[total]"]


def test_what_is_estimated_is_hatched(show: Show) -> None:
    tab = show(audit_html(footprint.audit(str(PMAP)), VERSION))
    names = tab.js(
        "(({tree}) => tree.names.filter((_, node) => tree.hatched[node] && tree.parents[node] === 0))"
        "(footprint.parts.ledger)"
    )
    # The owners that are assumed from their place; the text marks them with a star.
    assert "[heap]" in names
    assert "libcrypt-2.11.1.so" in names
    assert "[stack]" not in names


def test_parts_thinner_than_a_line_have_their_colour(show: Show, process: Audit) -> None:
    # Half of the picture, about 570 pixels, for 700 parts; each is below 5 %, so they stand together until a click.
    rows = [ledger_row(f"/lib/lib{number}.so", 100) for number in range(700)]
    tab = show(audit_html(with_ledger(process, ledger_row("[large]", 70_000), *rows), VERSION))
    left, top, width = tab.js(
        "(({x, y, width}) => [x, y, width])(document.querySelector('#ledger canvas').getBoundingClientRect())"
    )
    tab.move_to(left + width * 0.75, top + 40)
    assert tab.text("#ledger .tip").startswith("700 others: 68.4 KiB 50.0%")
    tab.click_at(left + width * 0.75, top + 40)
    assert tab.texts("#ledger .crumbs button") == ["[total]", "700 others"]
    red, green, blue = tab.js(
        "(({picture: {element}}) => { const {width, height} = element;"
        " const {data} = element.getContext('2d').getImageData(width * 0.6, 40, width * 0.3, 20);"
        " return [0, 1, 2].map((part) => data.filter((_, place) => place % 4 === part)"
        ".reduce((sum, one) => sum + one, 0) * 4 / data.length) })(footprint.parts.ledger)"
    )
    # Data is #d25a1e, the ground white.
    assert (red, green, blue) == pytest.approx((0xD2, 0x5A, 0x1E), abs=60)


# --- the first screen -------------------------------------------------------------------------------------------------


def test_at_one_there_is_one_cost_and_the_picture_adds_up_to_it(show: Show, process: Audit) -> None:
    relatives = process.projection.terms[0]._replace(name="memory shared with fork relatives", size_bytes=4096)
    projection = project((*process.projection.terms, relatives), Basis.STARTED_COPY, Question(1))
    tab = show(audit_html(replace(process, projection=projection), VERSION))
    cost = format_bytes(projection.per_process_bytes)
    assert tab.js("document.querySelector('#verdict').hidden")
    assert tab.text("#one").startswith(f"One more process costs {cost}, with what it shares now")
    assert owners_shown(tab)[-1] == ["all", cost, "100.0%"]
    assert tab.js("footprint.parts.ledger.tree.areas[0]") == projection.per_process_bytes
    assert tab.js("footprint.parts.ledger.tree.names").count("memory shared with fork relatives") == 1


def owners_shown(tab: Tab) -> list[list[str]]:
    """Return the table of the dearest owners on the first screen."""
    found: list[list[str]] = tab.js(
        "[...document.querySelectorAll('#answer .two tbody tr')]"
        ".map((row) => [...row.children].map((one) => one.textContent))"
    )
    return found


def test_the_dearest_owners_have_what_each_and_n_of_them_cost(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    tab.type("#count", "3")
    shared: dict[str, int] = {}
    for row in process.ledger:
        shared[row.owner] = shared.get(row.owner, 0) + (row.shared_bytes or 0)
    costs = {owner: 3 * each + shared[owner] for owner, each in bytes_by_owner(process).items()}
    total = process.projection.shared_once_bytes or 0
    total += 3 * process.projection.per_process_bytes
    assert sum(costs.values()) == total
    dear = sorted((size for size in costs.values() if size >= total / 20), reverse=True)[:5]
    rows = owners_shown(tab)
    assert [row[3] for row in rows] == [format_bytes(size) for size in (*dear, total - sum(dear), total)]
    assert rows[0][2] == f"{dear[0] / total:.1%}"
    assert rows[-2][0] == f"{sum(1 for size in costs.values() if size) - len(dear)} others"


@pytest.mark.parametrize(
    ("browser", "width", "height"),
    [("chromium", 1440, 900), ("chromium", 400, 800), ("firefox", 1440, 900)],
    indirect=["browser"],
)
def test_cost_culprit_and_remedy_are_on_the_first_screen(show: Show, program: Audit, width: int, height: int) -> None:
    told = {"budgets": {"per_process_bytes": "1 KiB"}}
    checked = check_audit(program, parse_budgets(told, "<b>.toml"), None, date(2026, 1, 1))
    tab = show(check_html(checked, VERSION), width=width, height=height)
    assert tab.text(".failure").startswith("Budget exceeded: per_process_bytes is ")
    first = max(program.findings, key=lambda one: one.saving_bytes)
    assert first.remedy in tab.text(".savings li")
    for part in (".failure", "#one", "#verdict", "#answer .two table", ".savings"):
        bottom = tab.js(f"document.querySelector('{part}').getBoundingClientRect().bottom")
        assert bottom <= height


def test_the_report_names_program_host_and_date(show: Show) -> None:
    audit = footprint.audit(os.getpid())
    tab = show(audit_html(audit, VERSION))
    name = Path(audit.command.split(" ")[0]).name
    assert tab.text("h1") == f"{name}, process {os.getpid()}"
    assert tab.js("document.title") == f"footprint: {name}, process {os.getpid()}"
    assert re.search(rf"on {re.escape(platform.node())}, Linux .*, \d{{4}}-\d\d-\d\d ", tab.texts(".lead")[-1])


# --- the state in the address -----------------------------------------------------------------------------------------


def test_the_address_keeps_what_was_chosen_and_the_way_back_undoes_it(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.type("#count", "77")
    tab.wait("location.hash === '#n=77'")
    tab.type("#ledger input[type=search]", "libc")
    tab.wait("location.hash === '#n=77&ledger.filter=libc'")
    tab.click("#ledger [role=columnheader].c-mapped button")
    tab.click("#ledger button[data-value=treemap]")
    tab.wait("location.hash === '#n=77&ledger.filter=libc&ledger.sort=-mapped&ledger.shape=treemap'")
    settle(tab)
    rows, verdict = rows_of(tab), tab.text("#verdict")
    tab.js("history.go(-3)")
    tab.wait("document.querySelector('#count').value === '10000'")
    tab.js("history.go(3)")
    tab.wait("document.querySelector('#count').value === '77'")
    settle(tab)
    tab.reload()
    assert tab.js("document.querySelector('#count').value") == "77"
    settle(tab)
    assert (rows_of(tab), tab.text("#verdict")) == (rows, verdict)
    assert tab.js("document.querySelector('#ledger canvas').dataset.shape") == "treemap"
    assert tab.text("#ledger [data-value=treemap][aria-pressed=true]") == "Treemap"


def test_an_address_that_is_none_of_the_report_shows_what_was_asked_for(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    before = rows_of(tab)
    tab.js("location.hash = '#n=0&ledger.zoom=no/such&ledger.sort=-none&side=%zz&at=nowhere&ledger.shape=cube'")
    tab.wait("footprint.get('at') === 'nowhere'")
    settle(tab)
    assert rows_of(tab) == before
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(program.projection.total_bytes)


def test_a_path_in_the_address_zooms_to_it(show: Show, process: Audit) -> None:
    names = ["a/b = c", "\U0001f418" * 201]
    rows = [
        ledger_row("/lib/libmany.so", 8, section=section, symbol=name, name=name) for name in names for section in names
    ]
    tab = show(audit_html(with_ledger(process, *rows), VERSION))
    for place in range(2):
        tab.js("footprint.parts.ledger.grid.openAll(true)")
        node = f"footprint.parts.ledger.tree.children[1][{place}]"
        name = tab.js(f"footprint.parts.ledger.tree.names[{node}]")
        tab.js(f"footprint.parts.ledger.grid.events.onopen({node})")
        assert tab.texts("#ledger .crumbs button")[-1] == name
        link = tab.js("footprint.link()")
        tab.js("footprint.set('ledger.zoom', null)")
        assert tab.texts("#ledger .crumbs button") == ["[total]"]
        tab.js(f"location.href = {json.dumps(link)}")
        tab.wait("footprint.get('ledger.zoom') !== null")
        assert tab.texts("#ledger .crumbs button")[-1] == name


def test_the_contents_name_each_section_and_go_to_it(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    assert tab.texts(".contents a") == tab.texts("section[id] > h2")
    tab.click(".contents a:last-child")
    assert tab.js("document.querySelector('section:last-child').getBoundingClientRect().top < innerHeight")
    tab.wait("location.hash === '#at=origins'")


# --- findings, notes, JSON --------------------------------------------------------------------------------------------


def test_findings_tell_their_saving_at_the_chosen_number(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    saving = [one.saving_bytes for one in program.findings if one.saving_bytes]
    assert saving
    tab.type("#count", "12345")
    told = tab.js("[...document.querySelectorAll('.finding .at-count')].map((one) => one.dataset.bytes)")
    # The table is grouped by rule.
    assert sorted(told, key=int) == [str(size * 12345) for size in sorted(saving)]
    assert tab.count(".finding") == min(100, len(program.findings))
    for one in program.findings[:5]:
        told = (printable(one.remedy), printable(one.message), printable(one.object_path))
        assert any(all(part in text for part in told) for text in tab.texts(".finding"))


def test_findings_stand_by_rule_and_one_opens_in_place(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    saving = sorted((one for one in program.findings if one.saving_bytes), key=lambda one: -one.saving_bytes)
    rules = tab.texts("section > .findings .rule th")
    assert [text.split(",")[0] for text in rules] == list(dict.fromkeys(one.rule for one in saving))
    button = "section > .findings .finding button"
    assert not tab.js("document.querySelector('section > .findings .finding dl').checkVisibility()")
    tab.click(button)
    assert tab.js("document.querySelector('section > .findings .finding dl').checkVisibility()")
    tab.wait("location.hash.includes('finding=')")
    tab.reload()
    assert tab.text("section > .findings [aria-expanded=true]") == tab.text(button)
    tab.click("section > .findings th:nth-child(1) button")
    first = tab.texts("section > .findings .finding .subject")[0]
    assert first == min((one.subject for one in saving), key=str)


def test_what_several_findings_would_free_counts_once(show: Show, process: Audit) -> None:
    rows = [ledger_row(path, 8192) for path in ("/lib/a.so", "/lib/b.so", "/lib/c.so")]
    audit = with_ledger(process, *rows)

    def finding(rule: str, subject: str, saving_bytes: int, *leaves: str) -> Finding:
        return Finding(
            rule, rule, subject, "found", saving_bytes, Confidence.HIGH, (), "do it", leaves, object_path=subject
        )

    findings = (
        # a.so and b.so leave together; the tables of b.so leave with it, and c.so holds no more than 8 KiB.
        finding("unused-library", "/lib/a.so", 16384, "/lib/a.so", "/lib/b.so"),
        finding("unused-library", "/lib/b.so", 8192, "/lib/b.so"),
        finding("relocated-tables", "/lib/b.so", 4096),
        finding("relocated-tables", "/lib/c.so", 8192),
        finding("large-static", "/lib/c.so", 4096),
    )
    tab = show(audit_html(replace(audit, findings=findings), VERSION))
    assert tab.text("#together strong") == "24 KiB"


def test_the_json_that_the_report_saves_is_that_of_the_command(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.js(
        "(() => { window.saved = []; const make = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text));"
        " return make.call(URL, blob) };"
        " HTMLAnchorElement.prototype.click = function () { window.named = this.download } })()"
    )
    tab.click("#download")
    text = tab.wait("window.saved[0]")
    assert json.loads(text) == json.loads(audit_json(program, VERSION))
    assert text.count("\n") == audit_json(program, VERSION).count("\n")
    assert tab.js("window.named").endswith(".json")


def test_sizes_that_are_only_virtual_are_not_called_nothing(show: Show) -> None:
    audit = footprint.audit(str(PMAP))
    tab = show(audit_html(audit, VERSION))
    writable = sum(row.mapped_bytes for row in audit.ledger if row.is_writable)
    # pmap's own last line: 972K writeable/private.
    assert writable == 972 * 1024
    assert tab.texts(".section:last-child td")[-1] == "972 KiB"


def test_notes_and_origins_are_told(show: Show) -> None:
    audit = footprint.audit(str(PMAP))
    tab = show(audit_html(audit, VERSION))
    assert [text.split(" ")[0] for text in tab.texts("#notes li")] == [note.slug for note in audit.notes]
    assert "pmap -d" in tab.texts(".facts dd")


# --- page by page -----------------------------------------------------------------------------------------------------


def test_the_page_map_has_a_cell_for_each_page_and_says_what_lies_in_it(show: Show) -> None:
    audit = footprint.audit(str(STAGES / "base"), has_page_maps=True)
    tab = show(audit_html(audit, VERSION))
    maps = {one.owner: one for one in audit.page_maps}
    assert tab.count("#object option") == len(maps)
    # The program itself: `answer.1` is a page of .bss, and written at start in no page but that.
    place = tab.js(
        "[...document.querySelectorAll('#object option')].findIndex((one) => one.textContent.includes('base'))"
    )
    tab.js(
        f"(() => {{ const one = document.querySelector('#object'); one.selectedIndex = {place};"
        " one.dispatchEvent(new Event('change')) })()"
    )
    program = next(one for owner, one in maps.items() if owner.endswith("/base"))
    cells = tab.js("[...document.querySelectorAll('#pages tbody tr')].map((one) => +one.children[1].textContent)")
    assert sum(cells) == sum(count for part in program.parts for _, count in part.runs)
    private = [part for part in program.parts if any(state >= PageState.PRIVATE for state, _ in part.runs)]
    first = private[0]
    tab.wait("document.querySelector('.cells').style.width")
    tab.js("document.querySelector('.cells').scrollIntoView({block: 'center'})")
    left, top = tab.js("(({x, y}) => [x, y])(document.querySelector('.cells').getBoundingClientRect())")
    x, y = tab.js("footprint.parts.pages.placeOf(0, 0)")
    tab.move_to(left + x, top + y)
    told = tab.text("#cell")
    assert told.startswith(f"{first.start_addr:#x} {first.runs[0][0].name.lower().replace('_', ' ')}")
    here = [
        one.symbol
        for one in program.variables or ()
        if one.symbol
        and one.addr < first.start_addr + audit.page_bytes
        and first.start_addr < one.addr + one.size_bytes
    ]
    assert any(shown_name(name) in told for name in here)
    tab.js("document.querySelector('.cells').focus()")
    tab.key("ArrowRight")
    assert tab.text("#cell").startswith(f"{first.start_addr + audit.page_bytes:#x} ") or len(first.runs) == 1


def test_pages_that_are_private_without_being_told_apart_are_said_to_be_so(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    drawn = private_pages(program)
    for owner, size in bytes_by_owner(program).items():
        name = owner.rsplit("/", 1)[-1]
        if name not in drawn:
            continue
        tab.js(
            "(() => { const one = document.querySelector('#object'); one.selectedIndex ="
            f" [...one.options].findIndex((each) => each.textContent.includes({json.dumps(name + ':')}));"
            " one.dispatchEvent(new Event('change')) })()"
        )
        if size > drawn[name] * program.page_bytes:
            assert tab.text("#pages .remark").startswith(f"The table above has {format_bytes(size)} of it")
        else:
            assert tab.count("#pages .remark") == 0


def cells_of(tab: Tab) -> dict[str, list[str]]:
    """Return the table of parts of each object in the list: pages, and how many are in each state."""
    found: dict[str, list[str]] = tab.js(
        "(() => { const one = document.querySelector('#object');"
        " return Object.fromEntries([...one.options].map((option, place) => {"
        " one.selectedIndex = place; one.dispatchEvent(new Event('change'));"
        " return [option.textContent, [...document.querySelectorAll('#pages tr')].map((row) => row.textContent)];"
        " })) })()"
    )
    return found


def point_at_first_cell(tab: Tab) -> str:
    """Choose the first object, point at its first page, and return the line about it."""
    tab.js(
        "(() => { const one = document.querySelector('#object'); one.selectedIndex = 0;"
        " one.dispatchEvent(new Event('change')) })()"
    )
    tab.wait("document.querySelector('.cells').style.width")
    tab.js("document.querySelector('.cells').scrollIntoView({block: 'center'})")
    left, top = tab.js("(({x, y}) => [x, y])(document.querySelector('.cells').getBoundingClientRect())")
    x, y = tab.js("footprint.parts.pages.placeOf(0, 0)")
    tab.move_to(left + x, top + y)
    return tab.text("#cell")


def test_the_report_of_a_saved_audit_has_the_same_pages_and_says_that_variables_are_not_saved(
    show: Show, program: Audit
) -> None:
    text = audit_json(program, VERSION).encode()
    live = show(audit_html(program, VERSION))
    saved = show(audit_html(read_audit(text, "audit.json", has_page_maps=True).audit, VERSION))
    assert cells_of(saved) == cells_of(live) != {}
    assert saved.texts("#pages .legend li") == live.texts("#pages .legend li")
    told, told_live = point_at_first_cell(saved), point_at_first_cell(live)
    place, _, untold = told.partition(": ")
    assert untold == "its variables are not saved"
    # The text before the variables is the same: address, state, sections.
    assert told_live.startswith(f"{place}: ")
    assert "not its variables" in saved.texts("#pages .remark")[-1]
    assert not any("not its variables" in text for text in live.texts("#pages .remark"))


def test_a_section_of_several_pages_tells_how_many_of_them_are_private(show: Show, process: Audit) -> None:
    # Four pages of data, then one of .bss; .data reaches into the first three, .tail lies in the fourth.
    runs = ((PageState.PRIVATE, 1), (PageState.NOT_PRIVATE, 1), (PageState.RELOCATED, 2))
    parts = (
        PagePart(0x10000, MemoryKind.DATA, "rw-p", runs),
        PagePart(0x14000, MemoryKind.BSS, "rw-p", ((PageState.PRIVATE, 1),)),
    )
    sections = (
        Place(0x10010, 0x2100, ".data", None),
        Place(0x13000, 0x20, ".tail", None),
        Place(0x13F00, 0x200, ".bss", None),
    )
    audit = replace(process, page_maps=(PageMap("/lib/a.so", parts, sections, None, 0, 7),))
    tab = show(audit_html(audit, VERSION))
    assert "data rw-p .data (2 of 3 pages private): its variables" in point_at_first_cell(tab)
    tab.js("document.querySelector('.cells').focus()")
    tab.key("ArrowRight", "ArrowRight", "ArrowRight")
    assert "0x13000 relocated data rw-p .tail, .bss (2 of 2 pages private): its" in tab.text("#cell")
    assert "7 more names are left out." in tab.texts("#pages p")


def test_a_comparison_of_saved_audits_has_the_pages_that_came_and_went(show: Show, tmp_path: Path) -> None:
    paths = []
    for name in ("base", "sans_crypt"):
        audit = footprint.audit(str(STAGES / name), has_page_maps=True)
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(audit_json(audit, VERSION))
    live = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"), has_page_maps=True)
    saved = footprint.diff(str(paths[0]), str(paths[1]), has_page_maps=True)
    tabs = [show(diff_html(one, VERSION)) for one in (live, saved)]
    # The three views: change, before, after.
    for side in ("before", "after"):
        for tab in tabs:
            tab.click(f"button[data-value={side}]")
        assert cells_of(tabs[0]) == cells_of(tabs[1]) != {}
    for tab in tabs:
        tab.click("button[data-value=change]")
    assert cells_of(tabs[0]) == cells_of(tabs[1]) != {}
    assert point_at_first_cell(tabs[1]).endswith(": its variables are not saved")


# --- libraries --------------------------------------------------------------------------------------------------------


def test_libraries_stand_below_what_they_would_leave_with(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    found = tab.js(
        "(({tree}) => tree.names.map((name, node) => [tree.titles[node], node ? tree.titles[tree.parents[node]] : null,"
        " tree.columns[0].value(node), tree.columns[1].value(node), tree.columns[3].value(node)]).slice(1))"
        "(footprint.parts.libraries)"
    )
    unused = {path for one in program.findings if one.rule == "unused-library" for path in one.leaves}
    assert unused
    assert {path: (parent, own, retained) for path, parent, own, retained, _ in found} == {
        one.path: (one.held_by, one.own_bytes, one.retained_bytes) for one in program.objects
    }
    assert {path for path, *_, mark in found if mark} == unused


def test_needs_stand_below_who_has_them_and_those_that_are_not_used_are_marked(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.click("#libraries button[data-value=needs]")
    tree = "(({tree}) => tree.names.map((_, node) => [%s]))(footprint.parts.libraries)"
    found = tab.js(
        tree % "node ? tree.titles[tree.parents[node]] : null, tree.titles[node],"
        " tree.columns[2].value(node), tree.columns[3].value(node)"
    )
    edges = {(user, path): (count, mark.split(",")[0]) for user, path, count, mark in found if user is not None}
    assert {edge: count for edge, (count, _) in edges.items()} == {
        (one.path, need.path): need.symbol_count for one in program.objects for need in one.needs or ()
    }
    unused = {
        (user.rsplit("/", 1)[-1], path.rsplit("/", 1)[-1])
        for (user, path), (_, mark) in edges.items()
        if mark == "unused"
    }
    # `readelf -d` has the needs; main of base.c calls nothing of the library.
    assert ("base", "libunused.so") in unused
    tab.click("#libraries .view > .tools button:nth-of-type(1)")
    assert "unused" in [row[4] for row in rows_of(tab, "#libraries")]


def test_needs_that_go_in_a_circle_end(show: Show, process: Audit) -> None:
    objects = tuple(
        ObjectCost(path, path[1:], 8, 8, None, 0, (Need(needed, 1), Need("/c", 0)))
        for path, needed in (("/a", "/b"), ("/b", "/a"))
    )
    last = ObjectCost("/c", "c", 8, 8, None, 0, (Need("/not there", None), Need("/c", None)))
    tab = show(audit_html(replace(process, objects=(*objects, last)), VERSION))
    tab.click("#libraries button[data-value=needs]")
    tab.click("#libraries .view > .tools button:nth-of-type(1)")
    assert [row[0] for row in rows_of(tab, "#libraries")] == ["[all objects]", "a", "b", "a", "c", "c", "c"]


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_budgets_stand_behind_the_answer_as_the_command_tells_them(show: Show, program: Audit) -> None:
    told = {"budgets": {"per_process_bytes": "1 KiB", "mapped_bytes": "1 GiB", "symbols": {"answer.1": "4 KiB"}}}
    checked = check_audit(program, parse_budgets(told, "<b>.toml"), None, date(2026, 1, 1))
    tab = show(check_html(checked, VERSION))
    rows = tab.js(
        "[...document.querySelectorAll('#budgets tbody tr')]"
        ".map((row) => [...row.children].map((one) => one.textContent))"
    )
    assert [row[:3] for row in rows] == [
        [one.key, format_bytes(one.value), format_bytes(one.limit)] for one in checked.results
    ]
    assert [row[4] for row in rows] == ["exceeded", *["holds"] * (len(rows) - 1)]
    assert tab.text("#budgets p").startswith("1 of ")
    tab.js(
        "(() => { window.saved = []; const make = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text));"
        " return make.call(URL, blob) }; HTMLAnchorElement.prototype.click = function () {} })()"
    )
    tab.click("#download")
    assert json.loads(tab.wait("window.saved[0]")) == json.loads(json.dumps(check_members(checked, VERSION)))


def test_the_report_of_a_check_has_the_pages_of_its_audit(show: Show, program: Audit, tmp_path: Path) -> None:
    budgets, audit, report = (tmp_path / name for name in ("footprint.toml", "audit.json", "report.html"))
    budgets.write_text('[budgets]\nper_process_bytes = "1 GiB"\n')
    audit.write_text(audit_json(program, VERSION))
    for target in (STAGES / "base", audit):
        assert main(["check", str(target), "--config", str(budgets), "--html", str(report)]) == 0
        assert show(report.read_text()).count("#object option") == len(program.page_maps)


# --- comparison -------------------------------------------------------------------------------------------------------


def test_a_comparison_shows_before_after_and_change(show: Show) -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"), count=10_000, has_page_maps=True)
    tab = show(diff_html(found, VERSION))
    private = found.total("private")
    assert private is not None
    rows = rows_of(tab)
    delta = sum(one.delta_bytes for one in found.changes)
    assert private.delta_bytes == sum(one.delta_bytes for one in found.changes if one.kind is not MemoryKind.KERNEL)
    assert rows[0][1] == ("+" if delta > 0 else "") + format_bytes(delta)
    # Before and after are the sums of these rows only, so they are not called a total.
    assert rows[0][0] == "[what differs]"
    assert rows[0][2] == format_bytes(sum(one.old_bytes or 0 for one in found.changes))
    per_process = found.total("per_process")
    assert per_process is not None
    assert per_process.delta_bytes is not None
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(per_process.delta_bytes * 10_000)
    tab.type("#count", "7")
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(per_process.delta_bytes * 7)
    for side, audit in (("before", found.old), ("after", found.new)):
        tab.click(f"button[data-value={side}]")
        assert rows_of(tab)[0][1] == format_bytes(sum(row.bytes or 0 for row in audit.ledger))
        assert tab.count(".finding") == len(audit.findings)
        assert tab.count("#object option") == len(audit.page_maps)
    tab.click("button[data-value=change]")
    assert rows_of(tab) == rows


@pytest.mark.parametrize("count", [1, 7, 2000])
def test_the_figures_of_a_comparison_at_n_are_those_of_the_json(show: Show, count: int) -> None:
    def figures(at: int) -> dict[str, str]:
        rows = diff_members(footprint.diff(str(SLEEP), str(SMAPS), count=at), VERSION)["figures"]
        return {FIGURES[row["name"]].title: format_bytes(row["delta_at_count_bytes"]) for row in rows}

    tab = show(diff_html(footprint.diff(str(SLEEP), str(SMAPS), count=2000), VERSION))
    tab.type("#count", str(count))
    table = "[aria-label='Figures before and after']"
    assert tab.texts(f"{table} th")[4] == f"at {count:,}"
    names, changes = (tab.texts(f"{table} td:nth-child({column})") for column in (1, 5))
    shown = {name: "0 B" if text == "-" else text.removeprefix("+") for name, text in zip(names, changes, strict=True)}
    assert shown == figures(count)
    # The machine pays shared memory once, for any number of processes.
    once = FIGURES["shared_once_bytes"].title
    assert shown[once] == figures(1)[once] == "9.43 MiB"


def test_findings_are_not_compared_where_one_side_was_not_looked_into(show: Show) -> None:
    found = footprint.diff(str(SLEEP), str(SMAPS))
    assert found.compared_rules == ()
    tab = show(diff_html(found, VERSION))
    assert tab.text("#findings p").startswith("They are not compared")
    assert "Findings that are new" not in tab.texts("h2")
    both = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"))
    assert "unused-library" in both.compared_rules
    tab = show(diff_html(both, VERSION))
    assert "Findings that are gone" in tab.texts("h2")


def test_a_live_process_that_was_not_searched_is_said_to_need_a_search_and_no_live_process(
    show: Show, process: Audit
) -> None:
    tab = show(audit_html(replace(process, is_live=True, searched_rules=()), VERSION))
    assert "`footprint audit --findings` looks" in tab.js("document.body.innerText")
    assert "needs the live process" not in tab.js("document.body.innerText")


def test_two_profiles_show_what_grew_between_them(show: Show, tmp_path: Path) -> None:
    files = []
    for name, sizes in (("old", (100, 50)), ("new", (70, 400))):
        lines = [Line(size, f"0x1{place}: f{place} (in /lib/a.so)") for place, size in enumerate(sizes)]
        files.append(tmp_path / name)
        files[-1].write_bytes(massif([Moment(1, sum(sizes), tree=Line(sum(sizes), ALLOCATED, tuple(lines)))]))
    found = heap_profile(*files, has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    assert [row[:4] for row in rows_of(tab, "#change")] == [
        ["[what differs]", "+320 B", "150 B", "470 B"],
        ["a.so", "+320 B", "150 B", "470 B"],
        ["f1", "+350 B", "50 B", "400 B"],
        ["f0", "-30 B", "100 B", "70 B"],
    ]


def test_the_steps_from_before_to_after_add_up(show: Show) -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"))
    tab = show(diff_html(found, VERSION))
    names, sizes = (tab.texts(f".waterfall {cell}") for cell in ("th", "td:last-child"))
    main = found.total("per_process")
    assert main is not None
    assert (names[0], sizes[0]) == ("before", format_bytes(main.old.bytes or 0))
    assert (names[-1], sizes[-1]) == ("after", format_bytes(main.new.bytes or 0))
    steps = sorted((one.delta_bytes for one in found.owners if one.delta_bytes), key=lambda size: -abs(size))
    assert sum(steps) == main.delta_bytes
    assert len(steps) <= 8
    assert sorted(sizes[1:-1]) == sorted(("+" if size > 0 else "") + format_bytes(size) for size in steps)


def test_a_comparison_of_virtual_sizes_shows_what_is_writable(show: Show) -> None:
    other = PMAP.with_name("pmap-d.sans-crypt.rw-only.txt")
    tab = show(diff_html(footprint.diff(str(PMAP), str(other)), VERSION))
    rows = rows_of(tab)
    # 972 K and 780 K, by the last lines of the texts.
    assert rows[0][:2] == ["[what differs]", "-192 KiB"]
    assert tab.text(".view .status").endswith(" 1000 KiB, grown and shrunk, in all.")
    before, after = (parse_bytes(text.replace(" ", "")) for text in rows[0][2:4])
    assert after - before == -192 * 1024


def private_pages(audit: Audited) -> dict[str, int]:
    return {
        one.owner.rsplit("/", 1)[-1]: sum(
            count for part in one.parts for state, count in part.runs if state >= PageState.PRIVATE
        )
        for one in audit.page_maps
    }


def test_the_change_has_the_objects_and_pages_that_came_and_went(show: Show) -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"), has_page_maps=True)
    tab = show(diff_html(found, VERSION))
    rows = tab.js(
        "(({tree}) => tree.titles.slice(1)"
        ".map((title, place) => [title, ...tree.columns.map((one) => one.value(place + 1))]))"
        "(footprint.parts.libraries)"
    )
    old, now = ({one.name: one for one in audit.objects} for audit in (found.old, found.new))
    # The program is one object, though its file has another name.
    assert len(rows) == len((old | now).keys() - {"base"})
    gone = {title.rsplit("/", 1)[-1]: before for title, _, _, before, _, what in rows if what == "gone"}
    assert gone == {name: one.own_bytes for name, one in old.items() if name not in {*now, "base"}}
    assert set(gone) == {"libunused.so", "libunused_dep.so"}
    change = tab.js("footprint.parts.libraries.tree.columns[0].value(0)")
    assert change == sum(one.own_bytes for one in now.values()) - sum(one.own_bytes for one in old.values())
    before, after = private_pages(found.old), private_pages(found.new)
    for text in tab.texts("#object option"):
        name, _, figures = text.partition(": pages +")
        more, _, less = figures.partition(" -")
        mine = "sans_crypt" if name.endswith("sans_crypt") else name
        assert int(more) - int(less) == after.get(mine, 0) - before.get("base" if mine == "sans_crypt" else mine, 0)
    tab.js(
        "(() => { const one = document.querySelector('#object');"
        " one.selectedIndex = [...one.options].findIndex((each) => each.textContent.startsWith('libunused.so'));"
        " one.dispatchEvent(new Event('change')) })()"
    )
    tab.js("document.querySelector('.cells').focus()")
    tab.key("ArrowRight", "ArrowLeft")
    assert "private only before relro" in tab.text("#cell")


def test_new_objects_stand_below_the_library_that_they_came_with(show: Show, process: Audit) -> None:
    # Both new libraries of the program need a third one, so that the program holds it; it needs a fourth one.
    needs = {"/p": ("/a", "/b"), "/a": ("/c",), "/b": ("/c",), "/c": ("/d",), "/d": ()}
    held_by = {"/p": None, "/a": "/p", "/b": "/p", "/c": "/p", "/d": "/c"}

    def audit(*paths: str) -> Audit:
        objects = tuple(
            ObjectCost(
                path, path[1:], 8, 8, held_by[path], 0, tuple(Need(one, 1) for one in needs[path] if one in paths)
            )
            for path in paths
        )
        return replace(with_ledger(process, *(ledger_row(path, 8) for path in paths)), objects=objects)

    found = compare(audit("/p"), audit(*needs))
    tab = show(diff_html(found, VERSION))
    parents: dict[str, str] = tab.js(
        "(({tree}) => Object.fromEntries(tree.titles.map((title, node) => [title, tree.titles[tree.parents[node]]])))"
        "(footprint.parts.libraries)"
    )
    came_with = {one.owner: one.came_with for one in found.owners if one.is_new}
    assert came_with == {"/a": None, "/b": None, "/c": "/a", "/d": "/a"}
    assert {path: parents[path] for path in came_with} == {"/a": "/p", "/b": "/p", "/c": "/a", "/d": "/c"}


def test_pages_that_stayed_and_objects_that_are_not_known_are_told(show: Show, process: Audit) -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "base"), has_page_maps=True)
    tab = show(diff_html(found, VERSION))
    assert tab.text("#pages .empty") == "Every object has the private pages that it had."
    tab = show(diff_html(compare(process, process), VERSION))
    assert tab.count("#pages, #libraries") == 0


# --- heap profiles ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heap() -> str:
    found = heap_profile(str(MASSIF), has_all_trees=True)
    return heap_html(found.files, found.notes, VERSION, found.findings)


def shares_at(moment: str) -> dict[str, int]:
    """Return the bytes of each object at a moment, by `heap --json`."""
    found = heap_profile(str(MASSIF), at=moment)
    return {row["owner"]: row["bytes"] for row in heap_members(found.files, (), VERSION, by="owner")["owners"]}


def shown_shares(tab: Tab) -> dict[str, int]:
    found: dict[str, int] = tab.js(
        "(({tree}) => Object.fromEntries("
        "tree.children[0].map((node) => [tree.titles[node], tree.columns[0].value(node)])))"
        "(footprint.parts.ledger)"
    )
    return found


def test_a_heap_profile_begins_with_its_peak(show: Show, heap: str) -> None:
    tab = show(heap)
    peak = heap_profile(str(MASSIF)).files[0]
    assert peak.snapshot is not None
    assert f"snapshot {peak.snapshot.number} " in tab.text("#ledger h2")
    assert tab.text(".tile.whole dd") == format_bytes(peak.total_bytes)
    assert shown_shares(tab) == shares_at("peak")


def test_a_click_into_the_time_chooses_the_tree_of_that_moment(show: Show, heap: str) -> None:
    tab = show(heap)
    profile = heap_profile(str(MASSIF)).files[0].profile
    first = profile.snapshots[profile.tree_places[0]].number
    tab.wait("(({width}) => width)(document.querySelector('.chart').viewBox.baseVal) !== 800")
    tab.js("document.querySelector('.chart').scrollIntoView({block: 'center'})")
    left, top, width = tab.js(
        "(({x, y, width}) => [x, y, width])(document.querySelector('.chart').getBoundingClientRect())"
    )
    time = profile.snapshots[profile.tree_places[0]].time
    last = profile.snapshots[-1].time
    assert time is not None
    assert last is not None
    tab.click_at(left + 76 + (width - 90) * time / last, top + 200)
    assert f"snapshot {first} " in tab.text("#ledger h2")
    assert shown_shares(tab) == shares_at(str(first))


def test_the_calls_of_a_moment_begin_with_main(show: Show, heap: str) -> None:
    tab = show(heap)
    tab.click("#ledger button[data-value=calls]")
    rows = rows_of(tab)
    found = heap_profile(str(MASSIF))
    calls = heap_members(found.files, (), VERSION, by="tree")["calls"]
    outermost = [row for row in calls if row["parent"] == 0]
    assert rows[0][1] == format_bytes(sum(row["bytes"] for row in outermost))
    names = tab.js("(({tree}) => tree.children[0].map((node) => tree.names[node]))(footprint.parts.ledger)")
    assert names == [row["name"] for row in outermost]


SERIES = str(ROOT / "tests" / "corpus" / "heap" / "massif-3.19-default.out")


def growth_shown(tab: Tab) -> dict[str, int]:
    found: dict[str, int] = tab.js(
        "(({tree}) => Object.fromEntries(tree.titles.map((title, node) => [title, tree.columns[0].value(node)])"
        ".filter((one, node) => node && !tree.children[node].length)))(footprint.parts.ledger)"
    )
    return found


def growth_between(first: str, last: str) -> dict[str, int]:
    """Return by how much the bytes of each function differ, by `heap FILE@FIRST FILE@LAST --json`."""
    found = heap_profile(f"{SERIES}@{first}", f"{SERIES}@{last}")
    sizes: dict[str, int] = {}
    for row in heap_members(found.files, (), VERSION, by="function")["heap"]:
        sign = 1 if row["file"] == f"{SERIES}@{last}" else -1
        name = row["symbol"] or row["name"]
        sizes[name] = sizes.get(name, 0) + sign * row["bytes"]
    return {name: size for name, size in sizes.items() if size}


def test_two_moments_of_one_profile_are_one_profile_with_what_grew_between_them(show: Show) -> None:
    found = heap_profile(f"{SERIES}@15", f"{SERIES}@peak", has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    assert tab.text("#ledger h2").startswith("What grew from snapshot 15 ")
    assert "to snapshot 63 " in tab.text("#ledger h2")
    assert growth_shown(tab) == growth_between("15", "peak")
    assert tab.count("#file") == 0


def test_another_moment_can_be_compared_with_each_moment(show: Show) -> None:
    found = heap_profile(SERIES, has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    choose = (
        "(() => {{ const select = document.querySelector('#before');"
        "select.selectedIndex = [...select.options].findIndex((one) => one.text.startsWith('{}'));"
        "select.dispatchEvent(new Event('change')); }})()"
    )
    tab.js(choose.format("snapshot 31 "))
    assert growth_shown(tab) == growth_between("31", "peak")
    tab.js(choose.format("no other moment"))
    assert tab.text("#ledger h2").startswith("Who asked for it, snapshot 63 ")


def test_a_drag_over_the_time_compares_the_moments_at_its_ends(show: Show) -> None:
    found = heap_profile(SERIES, has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    tab.wait("(({width}) => width)(document.querySelector('.chart').viewBox.baseVal) !== 800")
    tab.js("document.querySelector('.chart').scrollIntoView({block: 'center'})")
    left, top, width = tab.js(
        "(({x, y, width}) => [x, y, width])(document.querySelector('.chart').getBoundingClientRect())"
    )
    snapshots = {one.number: one.time or 0 for one in found.files[0].profile.snapshots}

    def place(number: int) -> float:
        return float(left + 76 + (width - 90) * snapshots[number] / max(snapshots.values()))

    tab.drag((place(63), top + 100), (place(31), top + 100))
    assert tab.text("#ledger h2").startswith("What grew from snapshot 31 ")
    assert "to snapshot 63 " in tab.text("#ledger h2")
    assert growth_shown(tab) == growth_between("31", "63")


def test_callers_and_callees_of_a_function_have_the_bytes_of_its_calls(show: Show) -> None:
    found = heap_profile(SERIES, has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    calls = heap_members(found.files, (), VERSION, by="tree")["calls"]
    by_node = {row["node"]: row for row in calls}
    name = "app::work(int)"
    tab.click("#ledger button[data-value=around]")
    tab.js(
        "(() => { const one = document.querySelector('#function');"
        f" one.selectedIndex = [...one.options].findIndex((each) => each.text.startsWith({json.dumps(name)}));"
        " one.dispatchEvent(new Event('change')) })()"
    )
    own = [row for row in calls if row["name"] == name]
    callers: dict[str, int] = {}
    for row in own:
        parent = by_node[row["parent"]]["name"]
        callers[parent] = callers.get(parent, 0) + row["bytes"]
    callees: dict[str, int] = {}
    for row in calls:
        if by_node.get(row["parent"]) in own:
            callees[row["name"]] = callees.get(row["name"], 0) + row["bytes"]
    shown = (
        "(({tree}) => Object.fromEntries(tree.children[0].map((node) => [tree.names[node], tree.areas[node]])))"
        "(footprint.parts.%s)"
    )
    assert callers
    assert tab.js("footprint.parts.callers.tree.areas[0]") == sum(row["bytes"] for row in own)
    assert tab.js(shown.replace("%s", "callers")) == callers
    if callees:
        assert tab.js(shown.replace("%s", "callees")) == callees


def test_what_was_counted_over_the_run_is_that_of_the_json(show: Show) -> None:
    found = heap_profile(str(MASSIF.parent / "dhat.json"), has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    rows = tab.js(
        "(({tree}) => tree.titles.map((title, node) => [title, ...tree.columns.map((one) => one.value(node))])"
        ".filter((one, node) => !tree.children[node].length))(footprint.parts.totals)"
    )
    totals = heap_members(found.files, (), VERSION, by="function")["totals"]
    fields = (
        "symbol",
        "allocated_bytes",
        "allocated_blocks",
        "lifetime",
        "read_bytes",
        "written_bytes",
        "leaked_bytes",
    )
    assert sorted(rows) == sorted([row[field] for field in fields] for row in totals)
    # Massif counts nothing over the run.
    massif = heap_profile(SERIES)
    assert show(heap_html(massif.files, massif.notes, VERSION, massif.findings)).count("#totals") == 0


def test_units_that_a_program_declared_are_no_bytes(show: Show) -> None:
    found = heap_profile(str(ROOT / "tests" / "corpus" / "heap" / "dhat-3.19-ad-hoc.json"), has_all_trees=True)
    tree = found.files[0].tree
    assert tree is not None
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    assert rows_of(tab)[0][1] == f"{tree.total_bytes:,}"


@pytest.mark.parametrize("name", ["dhat-3.19-empty.json", "massif-3.19-empty-noalloc.out", "massif-3.19-noheap.out"])
def test_a_profile_without_trees_says_so(show: Show, name: str) -> None:
    found = heap_profile(str(ROOT / "tests" / "corpus" / "heap" / name), has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    assert tab.count("#ledger .empty") == 1


def test_several_profiles_are_chosen_by_name(show: Show) -> None:
    names = [str(MASSIF), str(MASSIF.with_name("dhat.json"))]
    found = heap_profile(*names, has_all_trees=True)
    tab = show(heap_html(found.files, found.notes, VERSION, found.findings))
    assert tab.texts("#file option") == names
    tab.js(
        "(() => { const one = document.querySelector('#file'); one.selectedIndex = 1;"
        " one.dispatchEvent(new Event('change')) })()"
    )
    assert "dhat" in tab.texts(".facts dd")


def test_a_heap_that_was_joined_is_shown_by_who_asked_for_it(show: Show) -> None:
    audit = footprint.audit(str(SMAPS), heap=str(MASSIF))
    assert audit.heap is not None
    tab = show(audit_html(audit, VERSION))
    owners: dict[str, int] = {}
    for share in audit.heap.shares:
        owners[share.owner] = owners.get(share.owner, 0) + share.size_bytes
    shown = tab.js(
        "(({tree}) => Object.fromEntries("
        "tree.children[0].map((node) => [tree.titles[node], tree.columns[0].value(node)])))"
        "(footprint.parts.heap)"
    )
    assert shown == owners
    assert format_bytes(audit.heap.live_bytes) in tab.texts("#heap td")


# --- real programs ----------------------------------------------------------------------------------------------------


# Each program writes a line when it has started, and waits.
PROGRAMS = {
    "node": ["node", "-e", "console.log(); setInterval(() => {}, 1e6)"],
    "gdb": ["gdb", "-q", "-nx", "-ex", "echo up\\n"],
    "java": ["java", "sun.security.tools.keytool.Main", "-genkeypair", "-keystore", "/nowhere"],
}


@pytest.mark.parametrize("name", ["gdb, not run", *PROGRAMS])
def test_a_real_program_and_a_live_process_are_shown_as_their_json_tells(show: Show, name: str) -> None:
    found = shutil.which(name.split(",", maxsplit=1)[0])
    if found is None:
        pytest.skip(f"{name} is missing")
    if name not in PROGRAMS:
        audit = footprint.audit(found, count=1000, has_page_maps=True)
    else:
        pipe = subprocess.PIPE
        with subprocess.Popen(PROGRAMS[name], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as child:
            assert child.stdout is not None
            assert child.stdout.read(1)
            # A process may change between two audits: report and JSON are made from one.
            audit = footprint.audit(child.pid, count=1000, has_findings=True, has_page_maps=True)
            child.kill()
    tab = show(audit_html(audit, VERSION))
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(audit.projection.total_bytes)
    assert rows_of(tab)[0][1] == format_bytes(sum(row.bytes or 0 for row in audit.ledger))
    assert tab.count("#object option") == len(audit.page_maps)
    assert tab.js("footprint.parts.libraries.tree.size") == len(audit.objects) + 1
    told = json.loads(audit_json(audit, VERSION))
    sizes = tab.js(
        "(({tree}) => Object.fromEntries(tree.children[0].map((node) =>"
        " [tree.titles[node] ?? tree.names[node], tree.columns[0].value(node)])))"
        "(footprint.parts.ledger)"
    )
    owners = bytes_by_owner(audit)
    assert sorted(sizes.values()) == sorted(owners.values())
    # An owner with a single row has the name of the row behind its own.
    assert {name: size for name, size in sizes.items() if name in owners} == {
        name: size for name, size in owners.items() if name in sizes
    }
    savings = [bool(one["saving_bytes"]) for one in told["findings"]]
    assert tab.count("section > .findings .finding .subject") == min(100, savings.count(True))
    others = savings.count(False)
    assert tab.count("details .finding .subject") == min(100, others)
    # Only the visible rows are elements.
    assert tab.count("details[open] .finding") == (others if others <= 6 else 0)
    assert_axe_finds_nothing(tab)


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
    is_word = key in {"schema", "verb", "kind", "evidence", "attribution", "basis", "model", "confidence", "saving_per"}
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


# --- who has no script, a small screen, other eyes --------------------------------------------------------------------


@in_chromium
def test_without_javascript_the_totals_the_largest_rows_and_the_findings_are_there(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION), script=False)
    found = tab.ask("DOM.getDocument", depth=-1)
    text = tab.ask("DOM.getOuterHTML", nodeId=found["root"]["nodeId"])["outerHTML"]
    shown = re.sub(r"<(style|script).*?</\1>", "", text, flags=re.DOTALL)
    assert "per process" in shown
    assert "[total]" in shown
    assert "unused-library" in shown


def test_a_report_whose_data_is_damaged_shows_the_text_and_says_so(
    browser: Browser, tmp_path: Path, program: Audit
) -> None:
    path = tmp_path / "damaged.html"
    path.write_text(re.sub('(id="data">)[^<]{100}', r"\1", audit_html(program, VERSION)), encoding="utf-8")
    tab = browser.open(path)
    assert tab.js("document.documentElement.dataset.ready") == "failed"
    assert tab.text("#static .warning").startswith("The report could not be drawn in this browser")
    assert "unused-library" in tab.js("document.body.innerText")
    tab.close()


def test_on_paper_the_report_is_what_the_reader_set(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.type("#count", "77")
    tab.ask("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.querySelector('#static')).display") == "none"
    assert tab.js("getComputedStyle(document.querySelector('#app')).display") == "block"
    text = tab.js("document.querySelector('#app').innerText")
    expected = project(program.projection.terms, program.projection.basis, Question(77))
    assert f"77 processes cost {format_bytes(expected.total_bytes)}" in text
    assert "unused-library" in text
    # No row is behind an edge that only the screen can scroll.
    grid = "document.querySelector('#ledger [role=treegrid]')"
    tab.wait(f"{grid}.scrollHeight <= {grid}.clientHeight")
    assert tab.count("#ledger .rows .row") == min(200, int(tab.js(f"{grid}.ariaRowCount")) - 1)


@pytest.mark.parametrize(
    ("browser", "width"), [("chromium", 400), ("chromium", 2000), ("firefox", 2000)], indirect=["browser"]
)
def test_nothing_is_wider_than_the_screen(show: Show, program: Audit, width: int) -> None:
    tab = show(audit_html(program, VERSION), width=width)
    assert tab.js("document.documentElement.scrollWidth") <= width


@in_chromium
def test_headings_are_whole_on_a_small_screen(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION), width=400)
    for button in ("held", "needs"):
        tab.click(f"#libraries button[data-value={button}]")
        # The heading of the sorted column ends with a mark.
        cut = tab.js(
            "[...document.querySelectorAll('[role=columnheader]')].filter((one) => { one.firstElementChild.click();"
            " return one.scrollWidth > one.clientWidth }).map((one) => one.textContent)"
        )
        assert cut == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("has_script", [True, False], ids=["script", "text"])
@pytest.mark.parametrize("kind", ["audit", "diff", "heap"])
def test_axe_finds_nothing(show: Show, program: Audit, heap: str, kind: str, *, has_script: bool, dark: bool) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: npm ci in footprint/html/app")
    texts = {
        "audit": lambda: audit_html(program, VERSION),
        "diff": lambda: diff_html(footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt")), VERSION),
        "heap": lambda: heap,
    }
    text = texts[kind]()
    if not has_script:
        # As browsers show it that run no script; axe itself is one.
        text = re.sub("<script>.*</script>", "", text, flags=re.DOTALL).replace("<html ", '<html data-ready="1" ')
    tab = show(text, dark=dark)
    assert_axe_finds_nothing(tab)


# --- a hundred thousand rows ------------------------------------------------------------------------------------------


def test_a_hundred_thousand_rows_are_scrolled_to_their_end(show: Show, process: Audit) -> None:
    rows = [
        ledger_row(f"/lib/lib{number % 25}.so", 8, section=".data", symbol=name, name=name)
        for number in range(100_000)
        for name in [f"variable_{number}"]
    ]
    tab = show(audit_html(with_ledger(process, *rows), VERSION))
    tab.click("#ledger .view > .tools:not(:first-child) button:nth-of-type(1)")
    assert tab.js("document.querySelector('#ledger [role=treegrid]').ariaRowCount") == str(100_000 + 25 + 25 + 2)
    assert tab.count("#ledger .rows .row") < 100
    tab.js("(() => { const one = document.querySelector('#ledger [role=treegrid]'); one.focus() })()")
    tab.key("End")
    time.sleep(0.1)
    last = rows_of(tab)[-1]
    assert last[0].startswith("variable_")
    tab.type("#ledger input[type=search]", "variable_99999")
    settle(tab)
    assert [row[0] for row in rows_of(tab)][-1] == "variable_99999"


@pytest.fixture
def crowded(show: Show, process: Audit) -> Tab:
    """Open the report of 100,000 variables in one section, with the section open."""
    # The order of the numbers is neither that of the sizes nor that of the names.
    rows = [
        ledger_row("/lib/libmany.so", 8 * (number * 31 % 1009), section=".data", symbol=name, name=name)
        for number in range(100_000)
        for name in [f"variable_{number * 7919 % 100_003}"]
    ]
    tab = show(audit_html(with_ledger(process, *rows), VERSION))
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


def type_and_sort_at_once(tab: Tab, texts: list[str], columns: list[str]) -> None:
    """Change the filter and the order several times before the browser can do anything else."""
    tab.js(
        "(() => { const field = document.querySelector('#ledger input[type=search]');"
        f" for (field.value of {json.dumps(texts)}) field.dispatchEvent(new Event('input'));"
        f" for (const name of {json.dumps(columns)})"
        " document.querySelector(`#ledger [role=columnheader].c-${name} button`).click() })()"
    )


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


def test_what_is_copied_from_a_busy_table_are_the_rows_that_were_asked_for(crowded: Tab) -> None:
    crowded.js(
        "window.copied = null;"
        " navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }"
    )
    filter_and(crowded, "variable_4711", "button('Copy as CSV').click()")
    # The heading, the total, the file, its section, and the rows with the name; an empty string after the last line.
    count = sum(str(number).startswith("4711") for number in range(100_003))
    assert len(crowded.wait("window.copied").split("\r\n")) == 4 + count + 1
    crowded.wait("document.querySelector('#ledger .found').textContent === 'The rows copied'")


def test_all_of_a_busy_table_is_closed_when_it_shows_what_was_asked_for(crowded: Tab) -> None:
    filter_and(crowded, "variable_4711", "button('Close all').click()")
    assert [row[0] for row in rows_of(crowded)] == ["[total]", "libmany.so"]


def test_a_part_that_is_chosen_while_a_table_is_busy_is_shown(crowded: Tab) -> None:
    # The filter has not found the largest part: a click on it clears the filter.
    filter_and(
        crowded,
        "variable_4711",
        "const { tree, picture } = footprint.parts.ledger; picture.events.onclick(tree.names.indexOf('variable_1'));",
    )
    crowded.wait("document.querySelector('#ledger input[type=search]').value === ''")
    selected = crowded.wait("document.querySelector('#ledger [role=row][aria-selected=true]')?.textContent")
    assert "variable_1" in selected
