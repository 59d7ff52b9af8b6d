"""The HTML report: it holds the whole answer, loads nothing, and shows foreign names as text."""

import base64
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.formats.audit_json import audit_members
from footprint.formats.document import Facts, Paragraph, Table, more
from footprint.html import MOST_EXACT, SCRIPT_PATH, STYLE_PATH, pack, payload, static_html
from footprint.model.audit import Audit
from footprint.model.row import Evidence, Row, Total
from footprint.text.escape import well_formed
from footprint.verbs.audit.html import audit_html
from footprint.verbs.diff.json import diff_html, diff_members
from footprint.verbs.heap.call import heap_profile
from footprint.verbs.heap.html import heap_html
from footprint.verbs.heap.json import heap_members
from tests.hostile import HOSTILE
from tests.ledgers import ledger_row
from tests.massifwriter import ROOT as ALLOCATED
from tests.massifwriter import Line, Moment, massif
from tests.reports import answers_of, decoded

ROOT = Path(__file__).resolve().parents[2]
STAGES = ROOT / "sample_binaries" / "condor_shadow"
SMAPS = ROOT / "tests" / "corpus" / "smaps-python3.txt"
NAMES = HOSTILE | {"10 KB": "n" * 10_240, "the end of a script element": "<!--<script>", "an event": "' onload='x'"}

Json = dict[str, Any]


def variable(owner: str, name: str, size_bytes: int) -> Row:
    return ledger_row(owner, size_bytes, symbol=name, name=name)


def with_names(audit: Audit, *names: str) -> Audit:
    """Add variables of these names and of size zero."""
    rows = [variable(f"/lib/{name}", name, 0) for name in names]
    return replace(audit, ledger=(*audit.ledger, *rows), target=names[0], command=names[1 % len(names)])


class Elements(HTMLParser):
    """Collects the elements of a report with their attributes, and its static text."""

    def __init__(self, report: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(report)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if not self.found or self.found[-1][0] not in {"script", "style"}:
            self.text += data


@pytest.fixture(scope="module")
def program() -> Audit:
    return footprint.audit(str(STAGES / "base"), count=10_000)


@pytest.fixture(scope="module")
def report(program: Audit) -> str:
    return audit_html(program, "1.2.3")


def test_the_report_holds_the_answer_that_json_gives(program: Audit, report: str) -> None:
    found = answers_of(report)
    assert found["kind"] == "audit"
    assert found["audit"] == audit_members(program, "1.2.3")


def test_the_report_of_a_comparison_holds_what_changed_and_both_audits() -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "sans_crypt"), count=10_000)
    answers = answers_of(diff_html(found, "1.2.3"))
    assert answers["kind"] == "diff"
    assert answers["diff"] == diff_members(found, "1.2.3")
    assert answers["old"] == audit_members(found.old, "1.2.3")
    assert answers["audit"] == audit_members(found.new, "1.2.3")


def test_the_report_of_a_heap_profile_holds_every_moment_that_has_a_call_tree() -> None:
    heaps = str(ROOT / "sample_binaries" / "heap_by_function" / "massif.out")
    found = heap_profile(heaps, has_all_trees=True)
    answers = answers_of(heap_html(found.files, found.notes, "1.2.3", found.findings))
    assert answers["heap"] == heap_members(found.files, found.notes, "1.2.3", by="tree", findings=found.findings)
    profile = found.files[0].profile
    told = sorted(one["moment"] for one in answers["moments"].values())
    assert told == sorted(profile.snapshots[place].number for place in profile.tree_places)
    for one in answers["moments"].values():
        assert sum(row["bytes"] for row in one["shares"]) == one["bytes"]
        assert sum(row["bytes"] for row in one["calls"] if row["parent"] == 0) == one["bytes"]


def growing(count: int, peak: int) -> bytes:
    """Write a profile with a call tree of three nodes at each of some moments."""
    return massif(
        [
            Moment(number, size, tree=Line(size, ALLOCATED, (line(size),)), is_peak=number == peak)
            for number in range(count)
            for size in [9000 if number == peak else 1000 + number]
        ]
    )


def line(size: int) -> Line:
    return Line(size, "0x11: load (in /lib/libload.so)", (Line(size, "0x20: main (in /bin/program)"),))


def test_too_many_call_trees_are_thinned_evenly_with_the_peak_and_both_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = tmp_path / "massif.out"
    profile.write_bytes(growing(82, peak=50))
    found = heap_profile(profile, has_all_trees=True)
    # Room for 24 trees: each fourth, 0 to 80, and the peak and the end beside them.
    monkeypatch.setattr("footprint.verbs.heap.html._MOST_NODES", 24 * 3)
    report = heap_html(found.files, found.notes, "1.2.3", found.findings)
    answers = answers_of(report)
    assert [one["moment"] for one in answers["moments"].values()] == sorted([*range(0, 82, 4), 50, 81])
    told = f"This report has 23 of 82 call trees of {profile}, evenly spread, with the peak and both ends"
    assert answers["left_out"] == {str(profile): f"{told}; `heap --at` shows each."}
    assert told in Elements(report).text


def test_call_trees_that_are_all_too_large_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    heaps = str(ROOT / "sample_binaries" / "heap_by_function" / "massif.out")
    found = heap_profile(heaps, has_all_trees=True)
    monkeypatch.setattr("footprint.verbs.heap.html._MOST_NODES", 0)
    report = heap_html(found.files, found.notes, "1.2.3", found.findings)
    count = len(found.files[0].profile.tree_places)
    warning = f"This report has 0 of {count} call trees"
    assert answers_of(report)["warning"].startswith(warning)
    assert warning in Elements(report).text


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"rows": []},
        {"rows": [{"a": "x", "b": 1}, {"a": None, "b": None}, {"a": "xy", "b": 2.5}]},
        {"rows": [{"a": "x"}, {"b": "y"}]},
        {"rows": [{"a": ["x", "y"], "b": {"c": True}}]},
        {"rows": [{"a": "abc\U0001f600d"}, {"a": "abc\U0001f601d"}, {"a": "abcd"}, {"a": ""}, {"a": "a\0b"}]},
        {"deep": {"rows": [{"a": "abc"}, {"a": "abd"}], "n": 3}},
    ],
)
def test_packed_tables_are_unpacked_as_they_were(answers: Json) -> None:
    assert decoded(payload(*pack(answers)[:2])) == answers


def test_nothing_is_fetched_and_nothing_runs_but_the_script_of_the_report(report: str) -> None:
    elements = Elements(report).found
    policy = next(found["content"] for tag, found in elements if found.get("http-equiv") == "Content-Security-Policy")
    script, style = (
        base64.b64encode(sha256(path.read_bytes()).digest()).decode() for path in (SCRIPT_PATH, STYLE_PATH)
    )
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{script}'",
        f"style-src 'sha256-{style}'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    assert not any({"src", "href", "srcset", "style"} & set(found) for _, found in elements)
    assert not any(name.startswith("on") for _, found in elements for name in found)
    assert {tag for tag, _ in elements}.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})


def test_our_own_code_and_style_are_small_and_do_not_take_text_for_code() -> None:
    script, style = SCRIPT_PATH.read_text(), STYLE_PATH.read_text()
    assert len(script) + len(style) <= 150_000
    assert script.isascii()
    assert "</script" not in script.lower()
    assert "</style" not in style.lower()
    for danger in (
        "eval(",
        "Function(",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "import(",
    ):
        assert danger not in script
    # The name of a kind of elements, which nobody looks up.
    assert re.findall(r"https?://[^\s\"']*", script) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in style
    assert "@import" not in style


def test_nothing_of_the_script_is_without_a_type() -> None:
    for path in SCRIPT_PATH.parent.glob("app/src/*.ts"):
        text = path.read_text(encoding="utf-8")
        assert (
            re.findall(r"(?:[:<|,(]\s*|\bas )any\b(?=\s*[;,)\[\]>=|&}]|$)|\bas unknown as\b", text, re.MULTILINE) == []
        )


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_hostile_name_is_text_wherever_it_stands(program: Audit, report: str, name: str) -> None:
    hostile = audit_html(with_names(program, name), "1.2.3")
    elements = Elements(hostile)
    plain = Elements(report)
    # The rows are more by one; no element is of another kind, and none has attributes of its own.
    assert {tag for tag, _ in elements.found} == {tag for tag, _ in plain.found}
    assert {tuple(found) for _, found in elements.found} == {tuple(found) for _, found in plain.found}
    assert "\0" not in hostile
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile
    assert answers_of(hostile)["audit"]["target"]["name"] == well_formed(name)


def test_without_a_script_the_report_says_what_the_text_says(program: Audit, report: str) -> None:
    text = " ".join(Elements(report).text.split())
    assert f"{program.projection.count:,} processes cost" in text
    assert "per process" in text
    # 20 rows a table, as the text has, and every finding that saves something.
    for finding in program.findings:
        if finding.saving_bytes:
            assert " ".join(finding.message.split()) in text
    assert '<main id="static">' in report
    assert '<main id="app" hidden>' in report


def test_without_a_script_a_column_is_headed_by_what_stands_in_it_and_no_option_is_named() -> None:
    document = (
        Facts((("private", "8 KiB", "measured"),)),
        Facts((("most of it", "8 KiB", "/lib/liba.so"),)),
        Facts((("hosts", "3", ""),)),
        Facts((("standard output", "equal", "5 bytes"),), "result"),
        Paragraph("2 more save nothing: -v shows them."),
        Table(("size", "name"), (), footer=(("1 KiB", more(3)),)),
    )
    found = static_html(document)
    heads = [re.findall("<th>([^<]*)", one) for one in re.findall("<thead>(.*?)</thead>", found)]
    assert heads[:2] == [["what", "figure", "how it is known"], ["what", "figure", "detail"]]
    assert heads[2:4] == [["what", "figure"], ["what", "result", "detail"]]
    assert "2 more save nothing: with JavaScript this page shows them." in found
    assert "[3 more: with JavaScript this page shows all]" in found


def test_figures_that_a_browser_would_round_are_told() -> None:
    audit = footprint.audit(str(SMAPS))
    big = MOST_EXACT + 2
    row = variable("[big]", "big", big)._replace(bytes=None, is_writable=False)
    mapped = audit.totals.mapped.bytes
    assert mapped is not None
    totals = audit.totals._replace(mapped=Total(mapped + big, Evidence.VIRTUAL))
    report = audit_html(replace(audit, ledger=(*audit.ledger, row), totals=totals), "1.2.3")
    assert answers_of(report)["warning"].startswith("A browser rounds figures above 8 PiB: 2 figures of this report")
    assert "A browser rounds figures above 8 PiB: 2 figures" in Elements(report).text
    assert answers_of(audit_html(audit, "1.2.3"))["warning"] == ""


def test_inexact_figures_are_counted_wherever_they_stand() -> None:
    # Of 2**53 and 2**53 + 1 a double has only the first one; the page of `vsyscall` begins at a multiple of 4096.
    assert pack({"a": MOST_EXACT, "b": [{"c": MOST_EXACT + 2}, {"c": [-MOST_EXACT - 2]}], "d": True})[2] == 2
    assert pack({"c": [{"a": MOST_EXACT + 1, "b": 0xFFFFFFFFFF600000}]})[2] == 0


def test_an_empty_ledger_has_a_report() -> None:
    audit = footprint.audit(str(SMAPS))
    zero = Total(0, Evidence.MEASURED)
    totals = audit.totals._replace(
        private=zero, kernel=zero, per_process=zero, shared_once=zero, mapped_writable=zero, mapped=zero
    )
    assert answers_of(audit_html(replace(audit, ledger=(), totals=totals), "1"))["audit"]["ledger"] == []


def test_a_hundred_thousand_variables_make_less_than_3_mb(program: Audit) -> None:
    # Names as C++ has them: long, in namespaces, each its own.
    rows = [
        variable(f"/usr/lib/x86_64-linux-gnu/lib{number % 25}.so", name, 8 * (number * 2654435761 % 4093))._asdict()
        for number in range(100_000)
        for space in [f"space{number % 911}"]
        for name in [f"_ZN{len(space)}{space}12some_class_{number % 7919:x}8instanceE{number:x}"]
    ]
    data = payload(*pack({"audit": audit_members(program, "1") | {"ledger": rows}})[:2])
    assert len(data) + 150_000 < 3_000_000
