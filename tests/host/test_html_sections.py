"""What follows the first section of the HTML report in a browser: pages, libraries, comparisons, heap profiles."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import footprint
from footprint.elf.names import shown_name
from footprint.formats.audit_json import audit_json, audit_members
from footprint.formats.saved_audit import read_audit
from footprint.html import page
from footprint.model.audit import Audit
from footprint.model.costs import Need, ObjectCost
from footprint.model.figures import FIGURES
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.row import MemoryKind
from footprint.release.compare import compare
from footprint.text.units import format_bytes, parse_bytes
from footprint.verbs.audit.html import audit_html
from footprint.verbs.diff.json import diff_html, diff_members
from footprint.verbs.heap.call import heap_profile
from footprint.verbs.heap.html import heap_html
from footprint.verbs.heap.json import heap_members
from tests.chromium import Tab
from tests.ledgers import ledger_row
from tests.massifwriter import ROOT as ALLOCATED
from tests.massifwriter import Line, Moment, massif
from tests.shownreports import (  # noqa: F401 # fixtures
    MASSIF,
    PMAP,
    ROOT,
    SLEEP,
    SMAPS,
    STAGES,
    VERSION,
    Show,
    browser_fixture,
    bytes_by_owner,
    heap_report,
    in_chromium,
    point_at_first_cell,
    process_fixture,
    program_fixture,
    rows_of,
    show_fixture,
    stages_compared,
    with_ledger,
)

# --- page by page -----------------------------------------------------------------------------------------------------


def test_the_page_map_has_a_cell_for_each_page_and_says_what_lies_in_it(show: Show, program: Audit) -> None:
    tab = show(audit_html(program, VERSION))
    maps = {page_map.owner: page_map for page_map in program.page_maps}
    assert tab.count("#object option") == len(maps)
    # The program itself: `answer.1` is a page of .bss, and written at start in no page but that.
    place = tab.js(
        "[...document.querySelectorAll('#object option')].findIndex((one) => one.textContent.includes('base'))"
    )
    tab.js(
        f"(() => {{ const one = document.querySelector('#object'); one.selectedIndex = {place};"
        " one.dispatchEvent(new Event('change')) })()"
    )
    map_of_base = next(one for owner, one in maps.items() if owner.endswith("/base"))
    cells = tab.js("[...document.querySelectorAll('#pages tbody tr')].map((one) => +one.children[1].textContent)")
    assert sum(cells) == sum(count for part in map_of_base.parts for _, count in part.runs)
    private = [part for part in map_of_base.parts if any(state >= PageState.PRIVATE for state, _ in part.runs)]
    first = private[0]
    tab.wait("document.querySelector('.cells').style.width")
    tab.js("document.querySelector('.cells').scrollIntoView({block: 'center'})")
    left, top = tab.js("(({x, y}) => [x, y])(document.querySelector('.cells').getBoundingClientRect())")
    x, y = tab.js("footprint.parts.pages.placeOf(0, 0)")
    tab.move_to(left + x, top + y)
    cell_text = tab.text("#cell")
    assert cell_text.startswith(f"{first.start_addr:#x} {first.runs[0][0].name.lower().replace('_', ' ')}")
    here = [
        variable.symbol
        for variable in map_of_base.variables or ()
        if variable.symbol
        and variable.addr < first.start_addr + program.page_bytes
        and first.start_addr < variable.addr + variable.size_bytes
    ]
    assert any(shown_name(name) in cell_text for name in here)
    tab.js("document.querySelector('.cells').focus()")
    tab.key("ArrowRight")
    assert tab.text("#cell").startswith(f"{first.start_addr + program.page_bytes:#x} ") or len(first.runs) == 1


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
    result: dict[str, list[str]] = tab.js(
        "(() => { const one = document.querySelector('#object');"
        " return Object.fromEntries([...one.options].map((option, place) => {"
        " one.selectedIndex = place; one.dispatchEvent(new Event('change'));"
        " return [option.textContent, [...document.querySelectorAll('#pages tr')].map((row) => row.textContent)];"
        " })) })()"
    )
    return result


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


@in_chromium
def test_private_pages_are_counted_in_view_on_a_phone_and_all_cells_are_on_paper(show: Show, process: Audit) -> None:
    states = (PageState.UNTOUCHED, PageState.SHARED, PageState.PRIVATE, PageState.RELOCATED)
    part = PagePart(0x7FFF00000000, MemoryKind.DATA, "rw-p", tuple((state, 9000) for state in states))
    audit = replace(process, page_maps=(PageMap("/lib/a.so", (part,), (), None),))
    tab = show(audit_html(audit, VERSION), width=400, height=800)
    assert tab.texts("#pages th") == ["part", "pages", "private", "relocated", "shared", "untouched"]
    rights = tab.js("[...document.querySelectorAll('#pages th')].map((one) => one.getBoundingClientRect().right)")
    assert max(rights[:4]) <= 400
    hidden = "(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)(document.querySelector('.cell-box'))"
    assert tab.js(hidden) > 0
    tab.ask("Emulation.setEmulatedMedia", media="print")
    tab.wait_for_layout()
    assert tab.js(hidden) == 0


def test_a_comparison_of_saved_audits_has_the_pages_that_came_and_went(show: Show, tmp_path: Path) -> None:
    paths = []
    for name in ("base", "sans_crypt"):
        audit = footprint.audit(str(STAGES / name), has_page_maps=True)
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(audit_json(audit, VERSION))
    live = stages_compared()
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
    result = tab.js(
        "(({tree}) => tree.names.map((name, node) => [tree.titles[node], node ? tree.titles[tree.parents[node]] : null,"
        " tree.columns[0].value(node), tree.columns[1].value(node), tree.columns[3].value(node)]).slice(1))"
        "(footprint.parts.libraries)"
    )
    unused = {path for finding in program.findings if finding.rule == "unused-library" for path in finding.leaves}
    assert unused
    assert {path: (parent, own, retained) for path, parent, own, retained, _ in result} == {
        one.path: (one.held_by, one.own_bytes, one.retained_bytes) for one in program.objects
    }
    assert {path for path, *_, mark in result if mark} == unused


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


# --- comparison -------------------------------------------------------------------------------------------------------


def test_a_comparison_shows_before_after_and_change(show: Show) -> None:
    result = stages_compared()
    tab = show(diff_html(result, VERSION))
    private = result.total("private")
    assert private is not None
    rows = rows_of(tab)
    delta = sum(change.delta_bytes for change in result.changes)
    assert private.delta_bytes == sum(one.delta_bytes for one in result.changes if one.kind is not MemoryKind.KERNEL)
    assert rows[0][1] == ("+" if delta > 0 else "") + format_bytes(delta)
    # Before and after are the sums of these rows only, so they are not called a total.
    assert rows[0][0] == "[what differs]"
    assert rows[0][2] == format_bytes(sum(change.old_bytes or 0 for change in result.changes))
    per_process = result.total("per_process")
    assert per_process is not None
    assert per_process.delta_bytes is not None
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(per_process.delta_bytes * 10_000)
    tab.type("#count", "7")
    assert tab.js("document.querySelector('#total').dataset.bytes") == str(per_process.delta_bytes * 7)
    for side, audit in (("before", result.old), ("after", result.new)):
        tab.click(f"button[data-value={side}]")
        tab.js("footprint.settled()")
        assert rows_of(tab)[0][1] == format_bytes(sum(row.bytes or 0 for row in audit.ledger))
        assert tab.count(".finding") == len(audit.findings)
        assert tab.count("#object option") == len(audit.page_maps)
    tab.click("button[data-value=change]")
    assert rows_of(tab) == rows


def test_the_figures_of_a_comparison_at_n_are_those_of_the_json(show: Show) -> None:
    def figures(at: int) -> dict[str, str]:
        rows = diff_members(footprint.diff(str(SLEEP), str(SMAPS), count=at), VERSION)["figures"]
        return {FIGURES[row["name"]].title: format_bytes(row["delta_at_count_bytes"]) for row in rows}

    tab = show(diff_html(footprint.diff(str(SLEEP), str(SMAPS), count=2000), VERSION))
    for count in (1, 7, 2000):
        tab.type("#count", str(count))
        table = "[aria-label='Figures before and after']"
        assert tab.texts(f"{table} th")[4] == f"at {count:,}"
        names, changes = (tab.texts(f"{table} td:nth-child({column})") for column in (1, 5))
        shown = {
            name: "0 B" if text == "-" else text.removeprefix("+") for name, text in zip(names, changes, strict=True)
        }
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
    both = stages_compared()
    assert "unused-library" in both.compared_rules
    tab = show(diff_html(both, VERSION))
    assert "Findings that are gone" in tab.texts("h2")


def test_a_live_process_that_was_not_searched_is_said_to_need_a_search_and_no_live_process(
    show: Show, process: Audit
) -> None:
    tab = show(audit_html(replace(process, is_live=True, searched_rules=()), VERSION))
    assert "footprint audit --findings looks" in tab.js("document.body.innerText")
    assert tab.texts("#answer code") == ["footprint audit --findings"]
    assert "needs the live process" not in tab.js("document.body.innerText")


def test_a_run_that_was_not_searched_does_not_lead_to_a_process_that_is_gone(show: Show, process: Audit) -> None:
    members = audit_members(replace(process, is_live=True, searched_rules=()), VERSION) | {"run": {}}
    tab = show(page("run", members, ()))
    assert tab.texts("#answer code") == ["footprint audit"]
    assert "the process that ran has ended" in tab.text("#answer")


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
    result = stages_compared()
    tab = show(diff_html(result, VERSION))
    names, sizes = (tab.texts(f".waterfall {cell}") for cell in ("th", "td:last-child"))
    main = result.total("per_process")
    assert main is not None
    assert (names[0], sizes[0]) == ("before", format_bytes(main.old.bytes or 0))
    assert (names[-1], sizes[-1]) == ("after", format_bytes(main.new.bytes or 0))
    steps = sorted((owner.delta_bytes for owner in result.owners if owner.delta_bytes), key=lambda size: -abs(size))
    assert sum(steps) == main.delta_bytes
    assert len(steps) <= 8
    assert sorted(sizes[1:-1]) == sorted(("+" if size > 0 else "") + format_bytes(size) for size in steps)


def test_a_comparison_of_virtual_sizes_shows_what_is_writable(show: Show) -> None:
    other = PMAP.with_name("pmap-d.sans-crypt.rw-only.txt")
    tab = show(diff_html(footprint.diff(str(PMAP), str(other)), VERSION))
    rows = rows_of(tab)
    # 972 K and 780 K, by the last lines of the texts.
    assert rows[0][:2] == ["[what differs]", "-192 KiB"]
    assert tab.text(".view .status").endswith(" 1000 KiB, grown and shrunk, in all: shares are of this.")
    before, after = (parse_bytes(text.replace(" ", "")) for text in rows[0][2:4])
    assert after - before == -192 * 1024


def private_pages(audit: Audit) -> dict[str, int]:
    return {
        page_map.owner.rsplit("/", 1)[-1]: sum(
            count for part in page_map.parts for state, count in part.runs if state >= PageState.PRIVATE
        )
        for page_map in audit.page_maps
    }


def test_the_change_has_the_objects_and_pages_that_came_and_went(show: Show) -> None:
    result = stages_compared()
    tab = show(diff_html(result, VERSION))
    rows = tab.js(
        "(({tree}) => tree.titles.slice(1)"
        ".map((title, place) => [title, ...tree.columns.map((one) => one.value(place + 1))]))"
        "(footprint.parts.libraries)"
    )
    old, now = ({one.name: one for one in audit.objects} for audit in (result.old, result.new))
    # The program is one object, though its file has another name.
    assert len(rows) == len((old | now).keys() - {"base"})
    gone = {title.rsplit("/", 1)[-1]: before for title, _, _, before, _, what in rows if what == "gone"}
    assert gone == {name: one.own_bytes for name, one in old.items() if name not in {*now, "base"}}
    assert set(gone) == {"libunused.so", "libunused_dep.so"}
    change = tab.js("footprint.parts.libraries.tree.columns[0].value(0)")
    assert change == sum(one.own_bytes for one in now.values()) - sum(one.own_bytes for one in old.values())
    before, after = private_pages(result.old), private_pages(result.new)
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
                path, path[1:], 8, 8, held_by[path], 0, tuple(Need(need, 1) for need in needs[path] if need in paths)
            )
            for path in paths
        )
        return replace(with_ledger(process, *(ledger_row(path, 8) for path in paths)), objects=objects)

    result = compare(audit("/p"), audit(*needs))
    tab = show(diff_html(result, VERSION))
    parents: dict[str, str] = tab.js(
        "(({tree}) => Object.fromEntries(tree.titles.map((title, node) => [title, tree.titles[tree.parents[node]]])))"
        "(footprint.parts.libraries)"
    )
    came_with = {owner.owner: owner.came_with for owner in result.owners if owner.is_new}
    assert came_with == {"/a": None, "/b": None, "/c": "/a", "/d": "/a"}
    assert {path: parents[path] for path in came_with} == {"/a": "/p", "/b": "/p", "/c": "/a", "/d": "/c"}


def test_pages_that_stayed_and_objects_that_are_not_known_are_told(show: Show, process: Audit) -> None:
    found = footprint.diff(str(STAGES / "base"), str(STAGES / "base"), has_page_maps=True)
    tab = show(diff_html(found, VERSION))
    assert tab.text("#pages .empty") == "Every object has the private pages that it had."
    tab = show(diff_html(compare(process, process), VERSION))
    assert tab.count("#pages, #libraries") == 0


# --- heap profiles ----------------------------------------------------------------------------------------------------


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


def test_a_heap_profile_begins_with_its_peak(show: Show) -> None:
    tab = show(heap_report())
    peak = heap_profile(str(MASSIF)).files[0]
    assert peak.snapshot is not None
    assert f"snapshot {peak.snapshot.number} " in tab.text("#ledger h2")
    assert tab.text(".tile.whole dd") == format_bytes(peak.total_bytes)
    assert shown_shares(tab) == shares_at("peak")


def test_a_profile_may_be_called_as_what_each_object_of_javascript_has(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constructor").write_bytes(MASSIF.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert show(heap_report("constructor")).count("#answer .warning") == 0


def test_a_click_into_the_time_chooses_the_tree_of_that_moment(show: Show) -> None:
    tab = show(heap_report())
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


def test_the_calls_of_a_moment_begin_with_main(show: Show) -> None:
    tab = show(heap_report())
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
    tab = show(heap_report(SERIES))
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
    tab = show(heap_report(SERIES))
    tab.wait("(({width}) => width)(document.querySelector('.chart').viewBox.baseVal) !== 800")
    tab.js("document.querySelector('.chart').scrollIntoView({block: 'center'})")
    left, top, width = tab.js(
        "(({x, y, width}) => [x, y, width])(document.querySelector('.chart').getBoundingClientRect())"
    )
    snapshots = {snapshot.number: snapshot.time or 0 for snapshot in heap_profile(SERIES).files[0].profile.snapshots}

    def place(number: int) -> float:
        return float(left + 76 + (width - 90) * snapshots[number] / max(snapshots.values()))

    tab.drag((place(63), top + 100), (place(31), top + 100))
    assert tab.text("#ledger h2").startswith("What grew from snapshot 31 ")
    assert "to snapshot 63 " in tab.text("#ledger h2")
    assert growth_shown(tab) == growth_between("31", "63")


def test_callers_and_callees_of_a_function_have_the_bytes_of_its_calls(show: Show) -> None:
    tab = show(heap_report(SERIES))
    calls = heap_members(heap_profile(SERIES).files, (), VERSION, by="tree")["calls"]
    by_node = {row["node"]: row for row in calls}
    name = "app::work(int)"
    tab.click("#ledger button[data-value=around]")
    tab.js(
        "(() => { const one = document.querySelector('#function');"
        f" one.selectedIndex = [...one.options].findIndex((each) => each.text.startsWith({json.dumps(name)}));"
        " one.dispatchEvent(new Event('change')) })()"
    )
    rows_of_function = [row for row in calls if row["name"] == name]
    callers: dict[str, int] = {}
    for row in rows_of_function:
        parent = by_node[row["parent"]]["name"]
        callers[parent] = callers.get(parent, 0) + row["bytes"]
    callees: dict[str, int] = {}
    for row in calls:
        if by_node.get(row["parent"]) in rows_of_function:
            callees[row["name"]] = callees.get(row["name"], 0) + row["bytes"]
    shown = (
        "(({tree}) => Object.fromEntries(tree.children[0].map((node) => [tree.names[node], tree.areas[node]])))"
        "(footprint.parts.%s)"
    )
    assert callers
    assert tab.js("footprint.parts.callers.tree.areas[0]") == sum(row["bytes"] for row in rows_of_function)
    assert tab.js(shown.replace("%s", "callers")) == callers
    if callees:
        assert tab.js(shown.replace("%s", "callees")) == callees


def test_what_was_counted_over_the_run_is_that_of_the_json(show: Show) -> None:
    result = heap_profile(str(MASSIF.parent / "dhat.json"), has_all_trees=True)
    tab = show(heap_html(result.files, result.notes, VERSION, result.findings))
    rows = tab.js(
        "(({tree}) => tree.titles.map((title, node) => [title, ...tree.columns.map((one) => one.value(node))])"
        ".filter((one, node) => !tree.children[node].length))(footprint.parts.totals)"
    )
    totals = heap_members(result.files, (), VERSION, by="function")["totals"]
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
