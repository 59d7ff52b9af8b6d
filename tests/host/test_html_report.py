"""The HTML report in a browser: with mouse and keyboard, it shows what the JSON has."""

import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.attribution.cost_models import project
from footprint.cli import main
from footprint.formats.audit_json import audit_json
from footprint.formats.document import Table
from footprint.model.audit import Audit
from footprint.model.figures import FIGURES
from footprint.model.finding import Confidence, Finding
from footprint.model.projection import Basis, FitLimit, LimitUnit, Projection, Question, Term
from footprint.model.row import Evidence
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.text.escape import printable
from footprint.text.units import format_bytes, parse_bytes
from footprint.verbs.audit.html import audit_html
from footprint.verbs.audit.summary import advice_blocks
from footprint.verbs.check.json import check_html, check_members
from footprint.verbs.diff.json import diff_html
from tests.chromium import Browser, Tab
from tests.ledgers import audit_of, ledger_row
from tests.shownreports import (  # noqa: F401 # fixtures
    AXE,
    PMAP,
    SMAPS,
    STAGES,
    VERSION,
    Show,
    assert_axe_finds_nothing,
    browser_fixture,
    bytes_by_owner,
    enter,
    heap_report,
    in_chromium,
    is_chromium,
    process_fixture,
    program_fixture,
    rows_of,
    settle,
    show_fixture,
    stages_compared,
    type_and_sort_at_once,
    with_ledger,
)

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


def test_another_number_gives_what_the_command_gives_for_it(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    for count in (1, 2, 777, 10**12):
        tab.type("#count", str(count))
        expected = footprint.audit(str(SMAPS), count=count).projection
        assert tab.js("document.querySelector('#total').dataset.bytes") == str(expected.total_bytes)
        assert tab.text("#verdict").startswith(f"{count:,} process")


def test_what_is_no_number_of_processes_changes_nothing(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    for count in ("0", "-5", "1e3", "", "10000000000000", "1.5"):
        enter(tab, "#count", count)
        assert tab.js("document.querySelector('#total').dataset.bytes") == str(process.projection.total_bytes), count


def test_how_many_fit_is_what_the_command_says_for_that_memory(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    own = process.projection
    for memory in ("32GiB", "1 MiB", "500MB", "1.5GiB", "0", "4096"):
        tab.type("#memory", memory)
        expected = project(own.terms, own.basis, Question(memory_bytes=parse_bytes(memory)))
        assert tab.js("document.querySelector('#fit').dataset.count") == str(expected.count), memory


def test_how_many_fit_ends_at_the_first_limit_and_leaves_the_reserve(show: Show, process: Audit) -> None:
    own = process.projection
    limits = (FitLimit("pid_max", LimitUnit.TASKS, 32768, 768),)

    def asked(memory: str) -> Projection:
        question = Question(memory_bytes=parse_bytes(memory), reserve_bytes=1 << 30, limits=limits)
        return project(own.terms, own.basis, question, tasks=1)

    tab = show(audit_html(replace(process, projection=asked("32GiB")), VERSION))
    for memory in ("32GiB", "1025MiB", "1GiB", "1PiB"):
        enter(tab, "#memory", memory)
        first = asked(memory).limits[0]
        assert tab.js("document.querySelector('#fit').dataset.count") == str(first.count), memory
        assert tab.text("#fit").endswith("before pid_max is hit") is (first.name == "pid_max")


def test_the_report_of_a_live_process_knows_the_limits_on_tasks(
    show: Show, process: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = FitLimit("pid_max", LimitUnit.TASKS, 32768, 768, 3, 10_666)
    monkeypatch.setattr("footprint.verbs.audit.html.limits_of_more", lambda _: (limit,))
    tab = show(audit_html(process, VERSION))
    enter(tab, "#memory", "1PiB")
    assert tab.text("#fit") == "10,666 processes fit before pid_max is hit"


def test_what_is_no_size_is_said_to_be_none(show: Show, process: Audit) -> None:
    tab = show(audit_html(process, VERSION))
    for memory in ("32G", "much", "-1GiB", ""):
        enter(tab, "#memory", "1GiB")
        assert tab.text("#fit").endswith(" processes fit")
        enter(tab, "#memory", memory)
        assert tab.text("#fit") == "write a size like 32GiB or 500MB", memory


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
    # On to the headings: Name, Bytes, Of [total].
    tab.key("Tab", "Tab", "Tab", "Enter")
    assert tab.js("document.activeElement.parentElement.ariaSort") == "descending"
    assert tab.js("document.activeElement.textContent") == "Of [total]"
    tab.key("Enter")
    assert tab.js("document.activeElement.parentElement.ariaSort") == "ascending"


@in_chromium
def test_the_rows_are_copied_as_csv_with_figures_in_bytes(show: Show, process: Audit, browser: Browser) -> None:
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab = show(audit_html(process, VERSION))
    text = tab.js("footprint.parts.ledger.grid.csv()")
    first, total, *rows = text.split("\r\n")
    assert first.startswith("level 1,bytes,of [total],pages,mapped,evidence")
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


def test_grouped_by_mapping_nameless_memory_opens_into_what_is_known_of_each(show: Show) -> None:
    audit = footprint.audit(str(SMAPS), has_page_maps=True)
    others = [mapping for mapping in audit.mappings if mapping.owner != "[anonymous]"]
    first, second, *rest = (mapping for mapping in audit.mappings if mapping.owner == "[anonymous]")
    first = first._replace(has_guard=True, swapped_bytes=8192, name="[anon:pool]")
    third = rest[0]._replace(
        start_addr=None,
        end_addr=None,
        permissions=None,
        mapping_count=len(rest),
        bytes=sum(one.bytes or 0 for one in rest),
        mapped_bytes=sum(one.mapped_bytes for one in rest),
    )
    audit = replace(audit, mappings=(first, second, third, *others))
    tab = show(audit_html(audit, VERSION))
    tree = "footprint.parts.ledger.tree"
    for by in ("owner", "mapping"):
        tab.click(f"#ledger [data-value={by}]")
        tab.wait(f"document.querySelector('#ledger [data-value={by}][aria-pressed=true]') !== null")
        settle(tab)
        node = tab.js(f"{tree}.names.indexOf('[anonymous]')")
        tab.js(f"footprint.parts.ledger.picture.events.onclick({node})")
        tab.wait("document.querySelectorAll('#ledger .crumbs button').length === 2")
        assert tab.js(f"{tree}.children[{node}].map((one) => [{tree}.names[one], {tree}.areas[one]])") == [
            ["7fc6e96a6000-7fc6e99c7000 rw-p, [anon:pool], guard beside, 8 KiB swapped", first.bytes],
            ["7fc6e884c000-7fc6e8bb2000 rw-p", second.bytes],
            [f"[{len(rest)} smaller mappings]", third.bytes],
        ]
        # Each owner has as much as in the ledger; an owner of one mapping is one part with it.
        owners = tab.js(
            f"{tree}.children[0].map((one) => [{tree}.titles[one] ?? {tree}.names[one], {tree}.areas[one]])"
        )
        assert {re.sub(r" ([0-9a-f]+-|\[\d).*", "", name): size for name, size in owners} == bytes_by_owner(audit)
        tab.js("footprint.set('ledger.zoom', null)")


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
    assert tab.text("#ledger .tip").startswith("700 below 5%: 68.4 KiB 50.0%")
    tab.click_at(left + width * 0.75, top + 40)
    assert tab.texts("#ledger .crumbs button") == ["[total]", "700 below 5%"]
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


def with_six_dear_owners(process: Audit) -> Audit:
    """Return an audit with three owners more, that have what mappings without a name hold: six have 5 % or more."""
    nameless = next(row for row in process.ledger if row.owner == "[anonymous]")
    assert nameless.bytes is not None
    parts = [row for row in process.ledger if row is not nameless]
    for place, size_bytes in enumerate((3 << 20, 1 << 20, 1000 << 10)):
        parts.append(nameless._replace(owner=f"/opt/{place}.so", bytes=size_bytes, mapped_bytes=size_bytes))
    given = sum(row.bytes or 0 for row in parts[-3:])
    rest = nameless._replace(bytes=nameless.bytes - given, mapped_bytes=nameless.mapped_bytes - given)
    return replace(process, ledger=(rest, *parts))


def test_the_dearest_owners_have_what_each_and_n_of_them_cost(show: Show, process: Audit) -> None:
    process = with_six_dear_owners(process)
    tab = show(audit_html(process, VERSION))
    tab.type("#count", "3")
    sizes = sorted(filter(None, bytes_by_owner(process).values()), reverse=True)
    per_process, once = process.projection.per_process_bytes, process.projection.shared_once_bytes or 0
    assert sum(sizes) == per_process
    assert len([size for size in sizes if size < per_process / 20]) == 37
    dear = sizes[:5]
    rows = owners_shown(tab)
    rest = per_process - sum(dear)
    assert [row[1] for row in rows] == [*map(format_bytes, (*dear, rest)), "-", format_bytes(per_process)]
    assert [row[2] for row in rows] == [*(f"{size / per_process:.1%}" for size in (*dear, rest)), "", "100.0%"]
    assert [row[3] for row in rows] == [
        format_bytes(size) for size in (*(3 * size for size in dear), 3 * rest, once, 3 * per_process + once)
    ]
    assert [row[0] for row in rows[-3:]] == ["38 others, 37 below 5%", "paid once", "all"]
    shared: dict[str, int] = {}
    for row in process.ledger:
        shared[row.owner] = shared.get(row.owner, 0) + (row.shared_bytes or 0)
    owner, most = max(shared.items(), key=lambda item: item[1])
    assert tab.text("#sum").endswith(f" that all pay once, {format_bytes(most)} of it for {Path(owner).name}")


@in_chromium
def test_table_and_picture_have_the_same_shares_and_fold_the_same_owners(show: Show, process: Audit) -> None:
    process = with_six_dear_owners(process)
    tab = show(audit_html(process, VERSION))
    drawn = tab.js(
        "(({tree, picture}) => tree.children[0].filter((node) => !picture.others().includes(node))"
        ".map((node) => [tree.names[node], ...tree.columns.slice(0, 2).map((one) => one.text(node))]))"
        "(footprint.parts.ledger)"
    )
    folded = tab.js("footprint.parts.ledger.picture.others().length")
    dear = [row for row in drawn if row[1] != "-"]
    assert (len(dear), folded) == (6, 37)
    for count in ("1", "3", "1000"):
        tab.type("#count", count)
        rows = owners_shown(tab)
        assert [row[:3] for row in rows[:5]] == dear[:5]
        # The table has five owners.
        assert rows[5][0] == "38 others, 37 below 5%"


def test_what_saves_next_to_nothing_is_left_out_of_the_advice(show: Show, process: Audit) -> None:
    cost = process.projection.per_process_bytes
    findings = [
        Finding(rule, "k", f"s{place}", "it is so", size, Confidence.HIGH, (), remedy)
        for place, (rule, size, remedy) in enumerate(
            [("a", cost // 1000 + 1, "say `const`"), ("b", cost // 1001, "do b"), ("c", 72, "do c"), ("d", 0, "do d")]
        )
    ]
    tab = show(audit_html(replace(process, findings=tuple(findings)), VERSION))
    assert [text.endswith("high confidencesay const") for text in tab.texts(".savings li")] == [True, False]
    assert tab.texts(".savings code") == ["const"]
    assert tab.texts(".savings li")[1].endswith(": 2 more")
    tab = show(audit_html(replace(process, findings=tuple(findings[1:])), VERSION))
    advice = tab.text("#answer .two > div:last-child > div")
    assert advice.startswith(f"No saving is 0.1% of the cost or more.{format_bytes(cost // 1001 + 72)} each")
    assert advice.endswith(": 2 moreAll 3 findings")
    assert tab.count("#findings .finding") == 3


@in_chromium
def test_the_report_advises_what_the_text_does_in_its_order(show: Show, process: Audit) -> None:
    findings = [
        Finding(f"r{size}", "k", f"s{size}", "it is so", size << 20, Confidence.HIGH, (), f"do {size}", object=path)
        for size, path in [(1, "/srv/a"), (9, "/usr/lib/libc.so.6"), (4, "/srv/b"), (2, "/srv/c"), (3, "/srv/d")]
    ]
    audit = replace(process, findings=tuple(findings))
    shown = [text.split()[0] for text in show(audit_html(audit, VERSION)).texts(".savings li")]
    (table,) = (block for block in advice_blocks(audit) if isinstance(block, Table))
    assert shown == [row[0].split()[0] for row in (*table.rows, *table.footer)] == ["4", "3", "2", "1", "9"]


def test_findings_with_one_remedy_are_as_sure_as_the_least_sure_of_them(show: Show, process: Audit) -> None:
    findings = [
        Finding("a", "k", subject, "it is so", size, confidence, (), "do a")
        for subject, size, confidence in (("large", 1 << 20, Confidence.PROOF), ("small", 1 << 19, Confidence.MEDIUM))
    ]
    tab = show(audit_html(replace(process, findings=tuple(findings)), VERSION))
    assert tab.texts(".savings strong, .savings .evidence") == ["1.50 MiB", "medium confidence"]


@in_chromium
def test_an_audit_without_rows_costs_nothing_and_has_a_page(show: Show) -> None:
    audit = audit_of()
    terms = [Term("private memory", 0, is_once=False, evidence=Evidence.MEASURED)]
    tab = show(
        audit_html(replace(audit, projection=project(terms, Basis.PER_PROCESS, Question(7))), VERSION), width=400
    )
    assert tab.text("#verdict") == "7 processes cost 0 B"
    assert owners_shown(tab) == [["all", "0 B", "", "0 B"]]
    assert tab.text("#fit").endswith("any number fits")
    assert tab.js("document.documentElement.scrollWidth") == 400
    assert tab.text("#ledger .empty") == "The ledger is empty: no memory is known of it."


@in_chromium
def test_without_javascript_a_long_name_is_no_wider_than_a_phone(show: Show, process: Audit) -> None:
    tab = show(audit_html(replace(process, command="x" * 500, target="y" * 500), VERSION), width=400, script=False)
    assert tab.js("document.documentElement.scrollWidth") == 400


@in_chromium
def test_the_name_of_a_library_is_one_line_beside_its_figures_on_a_phone(show: Show) -> None:
    audit = audit_of(ledger_row("/usr/lib/libpython3.11.so.1.0", 7 << 20), ledger_row("/usr/bin/gdb", 3 << 20))
    terms = [Term("private memory", 10 << 20, is_once=False, evidence=Evidence.MEASURED)]
    question = project(terms, Basis.PER_PROCESS, Question(1000))
    tab = show(audit_html(replace(audit, projection=question), VERSION), width=400, height=800)
    name = "document.querySelector('.owners tbody td')"
    assert tab.js(f"{name}.textContent") == "libpython3.11.so.1.0"
    lines = f"const all = document.createRange(); all.selectNodeContents({name}); return all.getClientRects().length"
    assert tab.js(f"(() => {{ {lines} }})()") == 1


@in_chromium
def test_what_is_made_anew_leaves_no_listener_behind(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    tab.ask("Performance.enable")

    def listener_count() -> int:
        tab.ask("HeapProfiler.collectGarbage")
        found = {one["name"]: one["value"] for one in tab.ask("Performance.getMetrics")["metrics"]}
        return int(found["JSEventListeners"])

    def change(count: int) -> None:
        # Each makes the table of objects anew.
        for _ in range(count):
            for order in ("'needs'", "null"):
                tab.js(f"footprint.set('objects', {order})")
        tab.wait_for_layout()

    change(2)
    before = listener_count()
    change(50)
    assert listener_count() <= before


def test_a_share_is_rounded_as_in_the_text_and_a_long_name_leaves_room(show: Show) -> None:
    # 1 of 16 is 6.25 %, which Python writes as 6.2 %.
    name = f"/{'x' * 10_000}"
    audit = audit_of(ledger_row("/bin/program", 15 << 12), ledger_row(name, 1 << 12))
    terms = [Term("private memory", 16 << 12, is_once=False, evidence=Evidence.MEASURED)]
    tab = show(audit_html(replace(audit, projection=project(terms, Basis.PER_PROCESS, Question(1))), VERSION))
    assert owners_shown(tab) == [
        ["program", "60 KiB", f"{15 / 16:.1%}"],
        [f"{'x' * 40}…{'x' * 40}", "4 KiB", f"{1 / 16:.1%}"],
        ["all", "64 KiB", "100.0%"],
    ]


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
    first = tab.js("history.length")
    tab.type("#count", "77")
    tab.wait("location.hash === '#n=77'")
    tab.type("#ledger input[type=search]", "libc")
    tab.wait("location.hash === '#n=77&ledger.filter=libc'")
    before = tab.js("history.length")
    # Two clicks in one task: what changes at nearly the same time is one step, however slow the machine is.
    tab.js(
        "for (const one of ['[role=columnheader].c-mapped button', 'button[data-value=treemap]'])"
        " document.querySelector(`#ledger ${one}`).click()"
    )
    tab.wait("location.hash === '#n=77&ledger.filter=libc&ledger.sort=-mapped&ledger.shape=treemap'")
    assert tab.js("history.length") == before + 1
    settle(tab)
    rows, verdict = rows_of(tab), tab.text("#verdict")
    # A slow machine makes more than one step of keys that are typed.
    steps = tab.js("history.length") - first
    assert steps >= 3
    tab.js(f"history.go({-steps})")
    tab.wait("document.querySelector('#count').value === '10000'")
    tab.js(f"history.go({steps})")
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
        # On a slow machine the address may still hold the zoom: the way to where one is changes nothing.
        tab.wait("location.href === footprint.link()")
        tab.js(f"location.href = {json.dumps(link)}")
        tab.wait("footprint.get('ledger.zoom') !== null")
        assert tab.texts("#ledger .crumbs button")[-1] == name


@in_chromium
def test_a_click_zooms_to_the_second_of_two_parts_with_one_shortened_name(show: Show) -> None:
    half = "x" * 300
    rows = [
        ledger_row(f"/{half}{owner}{half}", size, symbol=symbol, name=symbol)
        for owner, size in (("a", 2 << 12), ("b", 1 << 12))
        for symbol in ("one", "two")
    ]
    tab = show(audit_html(with_ledger(audit_of(), *rows), VERSION))
    second = tab.js("footprint.parts.ledger.tree.children[0][1]")
    x, y = tab.js(
        "(({picture}) => { picture.element.scrollIntoView({block: 'center'});"
        " const {x, y} = picture.element.getBoundingClientRect();"
        f" const [left, top] = picture.placeOf({second}); return [x + left, y + top] }})(footprint.parts.ledger)"
    )
    tab.click_at(x, y)
    tab.wait(f"footprint.parts.ledger.picture.root === {second}")
    tab.wait("location.hash.includes('ledger.zoom=')")
    tab.reload()
    assert tab.js("footprint.parts.ledger.picture.root") == second


def test_the_contents_name_each_section_and_go_to_it(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    assert tab.texts(".contents a") == tab.texts("section[id] > h2")
    tab.click(".contents a:last-child")
    assert tab.js("document.querySelector('section:last-child').getBoundingClientRect().top < innerHeight")
    tab.wait("location.hash === '#at=origins'")


# --- findings, notes, JSON --------------------------------------------------------------------------------------------


def test_findings_tell_their_saving_at_the_chosen_number(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    saving = [finding.saving_bytes for finding in program.findings if finding.saving_bytes]
    assert saving
    tab.type("#count", "12345")
    told = tab.js("[...document.querySelectorAll('.finding .at-count')].map((one) => one.dataset.bytes)")
    # The table is grouped by rule.
    assert sorted(told, key=int) == [str(size * 12345) for size in sorted(saving)]
    assert tab.count(".finding") == min(100, len(program.findings))
    for finding in program.findings[:5]:
        # What stands between backticks is code.
        said = [printable(text).replace("`", "") for text in (finding.remedy, finding.message, finding.object_path)]
        assert any(all(part in text for part in said) for text in tab.texts(".finding"))


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
        [result.key, format_bytes(result.value), format_bytes(result.limit)] for result in checked.results
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


def test_nothing_is_wider_than_the_screen(browser: Browser, show: Show, program: Audit) -> None:
    for width in (2000, 400) if is_chromium(browser) else (2000,):
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


@in_chromium
@pytest.mark.parametrize("has_script", [True, False], ids=["script", "text"])
@pytest.mark.parametrize("kind", ["audit", "diff", "heap"])
def test_axe_finds_nothing(show: Show, program: Audit, kind: str, *, has_script: bool) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: npm ci in footprint/html/app")
    texts: dict[str, Callable[[], str]] = {
        "audit": lambda: audit_html(program, VERSION),
        "diff": lambda: diff_html(stages_compared(), VERSION),
        "heap": heap_report,
    }
    text = texts[kind]()
    if not has_script:
        # As browsers show it that run no script; axe itself is one.
        text = re.sub("<script>.*</script>", "", text, flags=re.DOTALL).replace("<html ", '<html data-ready="1" ')
    for dark in (False, True):
        assert_axe_finds_nothing(show(text, dark=dark))
