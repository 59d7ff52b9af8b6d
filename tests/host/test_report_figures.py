"""Every figure of the HTML report is that of the JSON, at any number of processes: laws over generated answers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footprint.attribution.cost_models import project
from footprint.attribution.group import group_up
from footprint.formats.audit_json import audit_members
from footprint.formats.document import Verdict
from footprint.html import page
from footprint.model.audit import Audit
from footprint.model.cost_parts import cost_parts
from footprint.model.figures import FIGURES
from footprint.model.finding import Advice, Confidence, Finding, SearchedRule
from footprint.model.projection import Basis, Model, Question, Term, cost_at
from footprint.model.row import Evidence
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.release.compare import Comparison, compare
from footprint.text.units import format_bytes
from footprint.verbs.audit.html import audit_html
from footprint.verbs.audit.summary import advice_about
from footprint.verbs.check.json import check_html, check_members
from footprint.verbs.diff.json import diff_html, diff_members
from footprint.verbs.diff.text import diff_document
from footprint.verbs.heap.call import heap_profile
from footprint.verbs.heap.html import heap_html
from footprint.verbs.heap.json import heap_members
from tests.chromium import MISSING, Browser, Tab, launched
from tests.groupmembers import TEXT, file, heap, member
from tests.ledgers import audit_of, ledger_row
from tests.massifwriter import ROOT as ALLOCATED
from tests.massifwriter import Line, Moment, massif

pytestmark = pytest.mark.skipif(MISSING, reason="chromium is missing")

Json = dict[str, Any]

SIZES = st.integers(0, 1 << 34)
# The page takes from 1 to 10^12; a comparison is looked at seven times the number, too.
COUNTS = st.integers(1, 10**12 // 7)
HOSTILE_NAME = "/lib/<img src=x onerror='x'>\u202e\x1b[2J`$(x)`\n&amp;.so"
OWNERS = ("/bin/program", "/lib/liba.so", HOSTILE_NAME, f"/lib/{'n' * (1 << 16)}.so", "[heap]", "[anonymous]")
# Each example is a page of the browser.
FEW = settings(max_examples=12, deadline=None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


class Shown:
    """A report in the browser."""

    def __init__(self, browser: Browser, folder: Path, text: str) -> None:
        path = folder / "report.html"
        path.write_text(text, encoding="utf-8")
        self.tab: Tab = browser.open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.tab.close()

    def at(self, count: int) -> None:
        self.tab.js(f"window.footprint.set('n', '{count}')")

    def exact(self, selector: str) -> int | None:
        found = self.tab.js(f"document.querySelector({json.dumps(selector)})?.dataset.bytes ?? null")
        return None if found is None else int(found)

    def rows(self, label: str) -> list[list[str]]:
        """Return the texts of a table by its label."""
        found: list[list[str]] = self.tab.js(
            f"[...document.querySelectorAll('[aria-label={json.dumps(label)}] tbody tr')]"
            ".map((row) => [...row.children].map((one) => one.textContent))"
        )
        return found

    def top(self, name: str) -> list[str]:
        """Return the texts of the first row of a tree table: the whole."""
        tree = f"window.footprint.parts[{json.dumps(name)}].tree"
        found: list[str] = self.tab.js(f"{tree}.columns.map((column) => column.text(0))")
        return found


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    return Finding(
        rule="large-static",
        kind="large",
        subject=draw(st.sampled_from(["table", "cache", "buffer"])),
        message="it is large",
        saving_bytes=draw(st.integers(0, 1 << 30)),
        confidence=draw(st.sampled_from([Confidence.PROOF, Confidence.MEDIUM, Confidence.BLOCKED])),
        reasons=(),
        remedy=f"make it smaller: {HOSTILE_NAME}",
        object=draw(st.sampled_from(OWNERS)),
    )


@st.composite
def audits(draw: st.DrawFn) -> Audit:
    """Return an audit with random rows, findings, and parts of its cost that each pays or all pay once."""
    rows = [
        ledger_row(owner, draw(SIZES), symbol=f"s{place}", name=f"s{place}")
        for place, owner in enumerate(draw(st.lists(st.sampled_from(OWNERS), min_size=1, max_size=6)))
    ]
    audit = audit_of(*rows, findings=draw(st.lists(findings(), max_size=3)))
    parts = draw(st.lists(st.tuples(SIZES, st.booleans()), max_size=3))
    terms = [
        Term("private memory", sum(row.bytes or 0 for row in rows), is_once=False, evidence=Evidence.MEASURED),
        *(Term(f"part {place}", size, once, Evidence.DERIVED) for place, (size, once) in enumerate(parts)),
    ]
    projection = project(terms, Basis.PER_PROCESS, Question(draw(COUNTS), model=draw(st.sampled_from(Model))))
    return replace(audit, projection=projection, searched_rules=(SearchedRule("large-static"),))


def at_count(audit: Audit, count: int) -> Audit:
    own = audit.projection
    return replace(audit, projection=project(own.terms, own.basis, Question(count, model=own.model)))


def numbers(answer: Audit | Comparison, another: int) -> tuple[int, ...]:
    return (answer.count, 1, another)


def assert_costs(shown: Shown, projection: Json, each_bytes: int) -> None:
    """Compare the first screen with a projection."""
    assert shown.exact("#total") == projection["total_bytes"]
    assert shown.exact("#each") == each_bytes
    terms = [term["size_bytes"] for term in projection["terms"]]
    assert [
        int(one) for one in shown.tab.js("[...document.querySelectorAll('.part')].map((one) => one.dataset.bytes)")
    ] == terms
    # Without a ledger the parts of the cost stand there.
    whole = (shown.rows("Who costs most") or shown.rows(shown.tab.text("#answer .two h3")))[-1]
    assert whole[:2] == ["all", format_bytes(each_bytes)]
    assert whole[3:] == ([format_bytes(projection["total_bytes"])] if projection["count"] > 1 else [])


def assert_payers(shown: Shown, audit: Audit, count: int) -> None:
    """Compare who costs most with the parts in Python, which add up to the projection."""
    parts = cost_parts(audit)
    assert sum(one.at_count(count) for one in parts) == cost_at(audit.projection.terms, count)
    dear = sorted((one for one in parts if one.each_bytes), key=lambda one: -one.each_bytes)
    rows = shown.rows("Who costs most")[:-1]
    for part, row in list(zip(dear, rows, strict=False))[:1]:
        assert row[1] == format_bytes(part.each_bytes)
        assert row[3:] == ([format_bytes(count * part.each_bytes)] if count > 1 else [])
    shares = [float(row[2].rstrip("%").lstrip("<")) for row in rows if row[2]]
    assert all(share <= 100 for share in shares)


def assert_savings(shown: Shown, rows: list[Json], count: int, advice: Advice | None = None) -> None:
    told = shown.tab.js("[...document.querySelectorAll('#findings .at-count')].map((one) => one.dataset.bytes)")
    saved = [row["saving_at_count_bytes"] for row in rows if row["saving_bytes"]]
    assert sorted(map(int, told)) == (sorted(saved) if count > 1 else [])
    if len(saved) > 1:
        added = sum(row["added_bytes"] for row in rows)
        many = f", {format_bytes(added * count)} in {count:,}" if count > 1 else ""
        line = f"All of them together save at most {format_bytes(added)}{many}:"
        assert shown.tab.text("#together").startswith(line)
    # The rows and their order are those of the text.
    sizes = [saving.saving_bytes for saving in advice.savings] if advice else []
    sizes += [advice.rest_bytes] if advice and advice.rest_count else []
    sizes += [advice.packaged_bytes] if advice and advice.packaged_count else []
    for item, best in zip(shown.tab.texts(".savings li"), sizes, strict=True):
        many = f", {format_bytes(best * count)} in {count:,}" if count > 1 else ""
        assert item.startswith(f"{format_bytes(best)} each{many}: ")


@FEW
@given(audit=audits(), another=COUNTS, memory_bytes=st.integers(1, 1 << 50))
def test_the_figures_of_an_audit_are_those_of_the_json_and_as_many_fit(
    browser: Browser, folder: Path, audit: Audit, another: int, memory_bytes: int
) -> None:
    with Shown(browser, folder, audit_html(audit, "1")) as shown:
        for count in numbers(audit, another):
            shown.at(count)
            answer = audit_members(at_count(audit, count), "1")
            assert_costs(shown, answer["projection"], answer["projection"]["per_process_bytes"])
            assert_payers(shown, audit, count)
            assert_savings(shown, answer["findings"], count, advice_about(audit))
        shown.tab.js(f"window.footprint.set('memory', '{memory_bytes}')")
        told = shown.tab.js("document.querySelector('#fit').dataset.count")
        if audit.projection.per_process_bytes:
            fit = project(audit.projection.terms, Basis.PER_PROCESS, Question(memory_bytes=memory_bytes))
            assert told == str(fit.count)
        else:
            assert told == "any"


@FEW
@given(audit=audits(), another=COUNTS)
def test_the_figures_of_a_run_are_those_of_the_json(browser: Browser, folder: Path, audit: Audit, another: int) -> None:
    with Shown(browser, folder, page("asked", audit_members(audit, "1"), ())) as shown:
        for count in numbers(audit, another):
            shown.at(count)
            answer = audit_members(at_count(audit, count), "1")
            assert_costs(shown, answer["projection"], answer["projection"]["per_process_bytes"])
            assert_savings(shown, answer["findings"], count)


@FEW
@given(audit=audits())
def test_the_sums_of_the_rows_of_a_ledger_and_of_those_that_a_filter_finds_are_those_of_python(
    browser: Browser, folder: Path, audit: Audit
) -> None:
    held: dict[str, int] = {}
    for row in audit.ledger:
        held[row.owner] = held.get(row.owner, 0) + (row.bytes or 0)
    beside = [one.each_bytes for one in cost_parts(audit) if not one.is_owner and one.each_bytes]
    has_owners = any(cost_part.is_owner for cost_part in cost_parts(audit))
    expected = [*held.values(), *(beside if has_owners else [])]
    with Shown(browser, folder, audit_html(audit, "1")) as shown:
        tree = 'window.footprint.parts["ledger"].tree'
        assert sorted(shown.tab.js(f"{tree}.children[0].map((node) => {tree}.areas[node])")) == sorted(expected)
        assert shown.tab.js(f"{tree}.areas[0]") == sum(expected)
        for word in ("liba", "s0", "program"):
            shown.tab.js(f"window.footprint.set('ledger.filter', '{word}')")
            shown.tab.js("window.footprint.settled()")
            found = sum(row.bytes or 0 for row in audit.ledger if word in row.owner or word in (row.symbol or ""))
            if sum(expected):
                assert shown.tab.text("#ledger .found-sum").startswith(f"{format_bytes(found)} in all, ")


CELLS = st.tuples(st.integers(-(1 << 40), 1 << 40), st.integers(0, 1 << 40), st.integers(0, 10**6))


@FEW
@given(table=st.sampled_from(["rows", "changes", "owner_changes", "growth"]), cells=st.lists(CELLS, min_size=1))
def test_the_figures_of_a_table_of_any_answer_are_those_of_the_json(
    browser: Browser, folder: Path, table: str, cells: list[tuple[int, int, int]]
) -> None:
    # The tables of fleet, whatif, watch and run; those of other verbs are in tests/host/test_answer_reports.py.
    keys = {"growth": ("bytes_per_hour", "first_bytes")}.get(table, ("delta_bytes", "old_bytes"))
    rows: list[Json] = [
        {keys[0]: delta, keys[1]: old, "row_count": count, "owner": f"/lib/{place}.so"}
        for place, (delta, old, count) in enumerate(cells)
    ]
    with Shown(browser, folder, page("asked", {table: rows}, ())) as shown:
        tree = f"window.footprint.parts[{json.dumps(table)}].tree"
        columns = shown.tab.js(f"{tree}.columns.map((one) => one.key)")
        found = shown.tab.js(
            f"{tree}.names.map((_, node) => {tree}.columns.map((one) => [one.value(node), one.text(node)])).slice(1)"
        )
        assert set(keys) <= set(columns)
        for row, own in zip(rows, found, strict=True):
            told = dict(zip(columns, own, strict=True))
            delta = row[keys[0]]
            assert told[keys[0]] == [delta, f"{'+' if delta > 0 else ''}{format_bytes(delta)}" if delta else "-"]
            assert told[keys[1]] == [row[keys[1]], format_bytes(row[keys[1]]) if row[keys[1]] else "-"]
            if table == "rows":
                assert told["row_count"] == [row["row_count"], f"{row['row_count']:,}"]


@FEW
@given(old=audits(), new=audits(), another=COUNTS)
def test_the_figures_of_a_comparison_are_those_of_the_json(
    browser: Browser, folder: Path, old: Audit, new: Audit, another: int
) -> None:
    result = compare(old, new, count=another)
    with Shown(browser, folder, diff_html(result, "1")) as shown:
        for count in (another, 1, 7 * another):
            shown.at(count)
            answer = diff_members(result._replace(count=count), "1")
            figures = answer["figures"]
            told = {row[0]: row[4].removeprefix("+") for row in shown.rows("Figures before and after")}
            assert told == {
                FIGURES[figure["name"]].title: format_bytes(delta) if (delta := figure["delta_at_count_bytes"]) else "-"
                for figure in figures
            }
            before, now = (at_count(side, count).projection for side in (old, new))
            main = next(figure for figure in figures if figure["name"] == "per_process_bytes")
            # Where the processes start in other ways, and where one side does not know what all pay once, only one is.
            is_known = before.model is now.model and (before.shared_once_bytes is None) is (
                now.shared_once_bytes is None
            )
            change = now.total_bytes - before.total_bytes if is_known else main["delta_at_count_bytes"]
            assert (answer["cost"] is not None) is is_known
            assert shown.exact("#total") == change
            if is_known:
                assert answer["cost"]["delta_at_count_bytes"] == change
            text = diff_document(result._replace(count=count))[-1]
            assert isinstance(text, Verdict)
            if count > 1 and (change or main["delta_bytes"]):
                size = (
                    f"{format_bytes(abs(change))} {'more' if change > 0 else 'less'}" if change else "as much as before"
                )
                assert f", {count:,} of them {size}" in text.text
                assert size in shown.tab.text("#verdict")


@FEW
@given(
    members=st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(0, 1 << 16)), min_size=1, max_size=4),
    count=COUNTS,
    another=COUNTS,
)
def test_the_figures_of_a_group_are_those_of_the_json(
    browser: Browser, folder: Path, members: list[tuple[int, int]], count: int, another: int
) -> None:
    processes = [
        member(pid, heap(kib), file(TEXT, min(text, 256)), pss_anon=kib) for pid, (kib, text) in enumerate(members, 1)
    ]
    group = group_up(processes, question=Question(count))
    with Shown(browser, folder, audit_html(group, "1")) as shown:
        for number in numbers(group, another):
            shown.at(number)
            answer = audit_members(group_up(processes, question=Question(number)), "1")["projection"]
            assert_costs(shown, answer, answer["per_group_bytes"])
            parts = cost_parts(group)
            assert any(part.is_owner for part in parts)
            assert sum(part.at_count(number) for part in parts) == answer["total_bytes"]
            assert format_bytes(answer["per_worker_bytes"]) in shown.tab.text("#worker")


@FEW
@given(audit=audits(), limit=SIZES, another=COUNTS)
def test_the_figures_of_a_check_are_those_of_the_json(
    browser: Browser, folder: Path, audit: Audit, limit: int, another: int
) -> None:
    limits = {"per_process_bytes": limit, "total_at_count_bytes": limit, "mapping_count": 3}
    told = {"at_processes": another, "budgets": limits}
    checked = check_audit(audit, parse_budgets(told, "footprint.toml"), None, date(2026, 1, 1))
    value_by_key = {one["key"]: one["value"] for one in check_members(checked, "1")["budgets"]}
    with Shown(browser, folder, check_html(checked, "1")) as shown:
        # The page opens at the number of the budgets, and its first line has their figure.
        assert shown.exact("#total") == value_by_key["total_at_count_bytes"]
        for count in numbers(audit, another):
            shown.at(count)
            projection = audit_members(at_count(audit, count), "1")["projection"]
            assert_costs(shown, projection, projection["per_process_bytes"])
            # What budgets are about does not depend on the number that the reader chooses.
            rows = {row[0]: row[1:3] for row in shown.rows("Budgets")}
            for one in check_members(checked, "1")["budgets"]:
                is_size = one["unit"] == "bytes"
                assert rows[one["key"]] == [
                    format_bytes(size) if is_size else f"{size:,}" for size in (one["value"], one["limit"])
                ]


@FEW
@given(moments=st.lists(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=4), min_size=1, max_size=4))
def test_the_figures_of_a_heap_profile_are_those_of_the_json(
    browser: Browser, folder: Path, moments: list[list[int]]
) -> None:
    profile = folder / "massif.out"
    trees = [
        Line(
            sum(sizes),
            ALLOCATED,
            tuple(Line(size, f"0x1{place}: f{place} (in /lib/a.so)") for place, size in enumerate(sizes)),
        )
        for sizes in moments
    ]
    profile.write_bytes(massif([Moment(time, tree.size_bytes, tree=tree) for time, tree in enumerate(trees)]))
    found = heap_profile(profile, has_all_trees=True)
    answer = heap_members(found.files, found.notes, "1", by="function")
    with Shown(browser, folder, heap_html(found.files, found.notes, "1", found.findings)) as shown:
        chosen = answer["profiles"][0]
        assert shown.top("ledger")[0] == format_bytes(chosen["tree_bytes"])
        for snapshot in answer["snapshots"]:
            shown.tab.js(f"window.footprint.set('moment', '{snapshot['number']}')")
            assert shown.top("ledger")[0] == format_bytes(snapshot["live_bytes"])
