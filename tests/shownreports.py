"""Reports in a browser: the fixtures of the tests that open them, and what several of these tests do and read."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.model.row import Evidence, Row, Total
from footprint.release.compare import Comparison
from footprint.verbs.heap.call import heap_profile
from footprint.verbs.heap.html import heap_html
from tests import chromium, firefox
from tests.chromium import Browser, Tab

ROOT: Final = Path(__file__).resolve().parents[1]
STAGES: Final = ROOT / "sample_binaries" / "condor_shadow"
PMAP: Final = ROOT / "tests" / "cases" / "condor_shadow" / "pmap-d.base.txt"
SMAPS: Final = ROOT / "tests" / "corpus" / "smaps-python3.txt"
MASSIF: Final = ROOT / "sample_binaries" / "heap_by_function" / "massif.out"
SLEEP: Final = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
VERSION: Final = "1.2.3"
AXE: Final = ROOT / "footprint" / "html" / "app" / "node_modules" / "axe-core" / "axe.min.js"

Show = Callable[..., Tab]
BROWSERS: Final = {"chromium": chromium, "firefox": firefox}

# For a test that asks Chromium's own protocol, wants a window that is narrower than Firefox has one, or asks for what
# no browser does in its own way.
in_chromium = pytest.mark.parametrize("browser", ["chromium"], indirect=True)


@pytest.fixture(name="browser", scope="module", params=BROWSERS)
def browser_fixture(request: pytest.FixtureRequest) -> Iterator[Browser]:
    module: Any = BROWSERS[request.param]
    if module.MISSING:
        pytest.skip(f"{request.param} is missing")
    with module.launched() as found:
        yield found


def is_chromium(browser: object) -> bool:
    """Return whether this is Chromium: only there a window may be narrow, and it alone is asked for its document."""
    return isinstance(browser, Browser)


@pytest.fixture(name="show")
def show_fixture(browser: Browser, tmp_path: Path) -> Iterator[Show]:
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


@pytest.fixture(name="program", scope="session")
def program_fixture() -> Audit:
    return footprint.audit(str(STAGES / "base"), count=10_000, has_page_maps=True)


@pytest.fixture(name="process", scope="session")
def process_fixture() -> Audit:
    return footprint.audit(str(SMAPS), count=10_000)


@cache
def stages_compared() -> Comparison:
    """Compare the program with the one that has lost a library."""
    return footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"), count=10_000, has_page_maps=True)


@cache
def heap_report(profile: str = str(MASSIF)) -> str:
    """Write the report of a heap profile with all its call trees."""
    found = heap_profile(profile, has_all_trees=True)
    return heap_html(found.files, found.notes, VERSION, found.findings)


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


def type_and_sort_at_once(tab: Tab, texts: list[str], columns: list[str]) -> None:
    """Change the filter and the order several times before the browser can do anything else."""
    tab.js(
        "(() => { const field = document.querySelector('#ledger input[type=search]');"
        f" for (field.value of {json.dumps(texts)}) field.dispatchEvent(new Event('input'));"
        f" for (const name of {json.dumps(columns)})"
        " document.querySelector(`#ledger [role=columnheader].c-${name} button`).click() })()"
    )
