"""Audits that were saved are read back as they were, and damaged ones are refused."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import footprint
from footprint.attribution.page_maps import MOST_PAGES
from footprint.errors import InputError, UnsupportedError, UsageError
from footprint.formats.audit_json import audit_json
from footprint.formats.saved_audit import read_audit, reprojected
from footprint.json.answer import write
from footprint.model.audit import Audit
from footprint.model.costs import Spread
from footprint.model.heap_account import AllocatorAccount
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.projection import Model, Question
from footprint.model.row import MemoryKind
from footprint.sources.target import looks_like_audit

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / "sample_binaries" / "condor_shadow" / "base"
PMAP = ROOT / "tests" / "cases" / "condor_shadow" / "pmap-d.base.txt"
SMAPS = ROOT / "tests" / "corpus" / "smaps-python3.txt"

Json = dict[str, Any]


def saved(audit: Audit) -> bytes:
    return audit_json(audit, "1.2.3").encode()


@pytest.fixture(scope="module")
def stage() -> bytes:
    return saved(footprint.audit(str(STAGE), count=10_000))


@pytest.mark.parametrize("target", [STAGE, PMAP, SMAPS], ids=lambda path: path.name)
def test_a_saved_audit_is_written_again_byte_for_byte(target: Path) -> None:
    text = saved(footprint.audit(str(target), count=12))
    found = read_audit(text, "audit.json")
    assert saved(found.audit) == text
    assert found.audit.saved_in == "audit.json"
    assert (found.tool_version, found.spreads.start_count, found.spreads.private) == ("1.2.3", 1, None)


def test_a_finding_keeps_what_is_private_and_who_is_spared_and_older_ones_that_do_not_say_are_read(
    stage: bytes,
) -> None:
    whole = json.loads(stage)
    whole["findings"][0] |= {"saving_per": "thread", "private_bytes": 12}
    del whole["findings"][1]["saving_per"], whole["findings"][1]["private_bytes"]
    first, second, *_ = read_audit(json.dumps(whole).encode(), "audit.json").audit.findings
    assert (first.saving_per, first.private_bytes) == ("thread", 12)
    assert (second.saving_per, second.private_bytes) == ("process", None)


def test_what_an_object_needs_is_kept_and_older_audits_that_do_not_say_are_read(stage: bytes) -> None:
    program = read_audit(stage, "audit.json").audit.objects[0]
    # `nm -D` of libunused.so: nothing that base has undefined.
    assert program.needs is not None
    assert [need.symbol_count for need in program.needs if need.path.endswith("/libunused.so")] == [0]
    whole = json.loads(stage)
    del whole["objects"][0]["needs"]
    assert read_audit(json.dumps(whole).encode(), "audit.json").audit.objects[0] == program._replace(needs=None)
    whole["objects"][0]["needs"] = [{"path": "/lib/x.so", "symbol_count": -1}]
    with pytest.raises(InputError, match=r"`objects\[0\]\.needs\[0\]\.symbol_count` is not a size or count"):
        read_audit(json.dumps(whole).encode(), "audit.json")


def test_a_saved_run_keeps_how_far_its_starts_spread(stage: bytes) -> None:
    whole = json.loads(stage)
    figures = {"private_bytes": {"min": 1, "median": 2, "max": 4}, "per_process_bytes": None}
    whole["run"] = {
        "command": ["server"],
        "when": "exit",
        "moment": "exit",
        "starts": 5,
        "exit_code": 0,
        "signal": None,
    }
    whole["run"] |= {"figures": figures, "children": []}
    whole["verb"] = "run"
    found = read_audit(json.dumps(whole).encode(), "run.json")
    assert found.spreads.start_count == 5
    assert found.spreads.private == Spread(1, 2, 4)
    assert found.spreads.per_process is None
    # Runs of before have no owners.
    assert found.spreads.owners == {}
    whole["run"]["owners"] = [{"owner": "[heap]", "min": 3, "median": 4, "max": 5}]
    assert read_audit(json.dumps(whole).encode(), "run.json").spreads.owners == {"[heap]": Spread(3, 4, 5)}


def test_a_saved_audit_is_projected_to_another_number_with_its_own_terms() -> None:
    direct = footprint.audit(str(SMAPS), count=500)
    one = read_audit(saved(footprint.audit(str(SMAPS))), "a.json").audit
    assert reprojected(one, Question(500)).projection == direct.projection
    with pytest.raises(UsageError, match="the terms of the model exec"):
        reprojected(one, Question(2, model=Model.FORK))


def test_one_process_is_asked_of_an_audit_that_was_saved_with_many(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_bytes(saved(footprint.audit(str(SMAPS), count=7)))
    assert footprint.audit(path, count=1).projection == footprint.audit(str(SMAPS)).projection
    assert footprint.audit(path).projection.count == 7
    assert footprint.audit(path, count=1).projection.count == 1


ACCOUNT = AllocatorAccount("glibc", 1, 3, 1000, 48, 2048, 3096, 512, 0, 0, 1024, 0)._asdict()


def changed(text: bytes, change: Callable[[Json], object]) -> bytes:
    whole = json.loads(text)
    change(whole)
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda whole: whole["ledger"][0].update(bytes=-5), "`ledger[0].bytes` is not a size"),
        (lambda whole: whole["ledger"][0].update(mapped_bytes=1 << 70), "`ledger[0].mapped_bytes` is no"),
        (lambda whole: whole["ledger"][0].update(pages=1.5), "`ledger[0].pages` is not a size or count"),
        (lambda whole: whole["ledger"][0].update(is_writable=1), "`ledger[0].is_writable` is neither true nor false"),
        (lambda whole: whole["ledger"][0].update(owner=None), "`ledger[0].owner` is not a text"),
        (lambda whole: whole["ledger"][0].update(kind="quantum"), "'quantum', which this footprint does not know"),
        (lambda whole: whole["ledger"][0].pop("section"), "`ledger[0].section` is missing"),
        (lambda whole: whole.update(ledger={}), "`ledger` is not a list"),
        (lambda whole: whole.update(ledger=[7]), "`ledger[0]` is not an object"),
        (lambda whole: whole.pop("projection"), "`projection` is missing"),
        (lambda whole: whole["projection"].update(basis="hope"), "'hope', which this footprint does not know"),
        (lambda whole: whole["projection"].update(count=True), "`projection.count` is not a size or count"),
        (lambda whole: whole["totals"].update(private_bytes="7"), "`totals.private_bytes` is not a size or count"),
        (lambda whole: whole["totals"].update(evidence=None), "`totals.evidence` is not an object"),
        (lambda whole: whole["totals"].update(private_bytes=4096), "it was changed since it was written"),
        (lambda whole: whole.update(allocator=ACCOUNT | {"held_bytes": 1}), "the parts of `allocator`"),
        (lambda whole: whole["findings"][0].update(reasons=[1]), "`findings[0].reasons[0]` is not a text"),
        (lambda whole: whole["target"].update(is_live="no"), "`target.is_live` is neither true nor false"),
        (lambda whole: whole["target"].pop("name"), "`target.name` is missing"),
        (lambda whole: whole.update(host={"machine": "x86_64"}), "`host.kernel` is missing"),
        (lambda whole: whole.update(host={"kernel": "6.1", "machine": 64}), "`host` is not a text"),
        (lambda whole: whole.update(schema="other/1"), "it is not JSON that footprint writes"),
    ],
)
def test_a_damaged_audit_is_one_error_that_says_where(
    stage: bytes, change: Callable[[Json], object], cause: str
) -> None:
    damaged = changed(stage, change)
    for text in (damaged, write(json.loads(damaged)).encode()):
        with pytest.raises(InputError) as error:
            read_audit(text, "a.json")
        assert str(error.value).startswith("a.json: ")
        assert cause in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: whole["ledger"][0].update(kind="x" * 100_000),
        lambda whole: whole["projection"].update(basis="x" * 100_000),
    ],
)
def test_of_a_long_word_that_means_nothing_only_the_beginning_is_said(
    stage: bytes, change: Callable[[Json], object]
) -> None:
    with pytest.raises(InputError, match=r"'x{80}', which this footprint does not know"):
        read_audit(changed(stage, change), "a.json")


def test_the_audit_of_a_newer_footprint_is_refused_with_both_numbers(stage: bytes) -> None:
    newer = stage.replace(b'"footprint/1"', b'"footprint/2"')
    with pytest.raises(UnsupportedError, match="schema footprint/2; this footprint reads footprint/1"):
        read_audit(newer, "a.json")


def test_the_answer_of_another_verb_is_told_from_an_audit(stage: bytes) -> None:
    with pytest.raises(InputError, match="the answer of another verb"):
        read_audit(changed(stage, lambda whole: whole.pop("ledger")), "a.json")


def test_a_half_written_audit_is_an_error_with_the_offset(stage: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.json: offset 0x[0-9a-f]+: it is not valid JSON"):
        read_audit(stage[: len(stage) // 2], "a.json")


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b"[]",
        b"7",
        b"\xff\xfe{}",
        b'{"schema": ["footprint/1"]}',
        b'{"schema": "footprint/1", "pid": %b}' % (b"9" * 5000),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_other_json_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        read_audit(text, "a.json")


def test_an_audit_is_the_same_whatever_its_json_looks_like(stage: bytes) -> None:
    indented = json.dumps(json.loads(stage), indent=1).encode()
    found = read_audit(stage, "a.json")
    assert read_audit(indented, "a.json") == found


def test_a_ledger_inside_of_something_else_is_not_taken_for_that_of_the_audit(stage: bytes) -> None:
    inside = stage.replace(b'\n"ledger": [\n', b'\n"other": {"x": 1,\n"ledger": [\n').replace(b"\n],", b"\n]},", 1)
    with pytest.raises(InputError, match="the answer of another verb"):
        read_audit(inside, "a.json")


def test_a_ledger_that_ends_on_the_line_of_its_last_row_takes_nothing_else_along(stage: bytes) -> None:
    # The next list ends as a ledger does.
    place = stage.index(b"\n]", stage.index(b'\n"ledger": '))
    assert read_audit(stage[:place] + stage[place + 1 :], "a.json") == read_audit(stage, "a.json")


@pytest.mark.parametrize("number", [b"-1", b"NaN", b"0"])
def test_of_two_ledgers_the_last_one_counts(stage: bytes, number: bytes) -> None:
    place = stage.index(b'\n"projection": ')
    twice = stage[:place] + b'\n"ledger": ' + number + b"," + stage[place:]
    with pytest.raises(InputError, match="`ledger` is not a list"):
        read_audit(twice, "a.json")


def test_only_what_says_so_at_its_beginning_looks_like_an_audit(stage: bytes) -> None:
    assert looks_like_audit(stage)
    assert looks_like_audit(b'\n {\n "schema": "footprint/9"}')
    assert not looks_like_audit(b'{"schema": "other"}')
    assert not looks_like_audit(b"00400000-00401000 r-xp 00000000 08:01 7 /bin/x\n")


@given(data=st.data())
def test_a_damaged_byte_never_gives_anything_but_an_audit_or_our_error(stage: bytes, data: st.DataObject) -> None:
    text = bytearray(stage[:4000] + stage[-4000:] if data.draw(st.booleans()) else stage)
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        assert read_audit(bytes(text), "a.json").audit.saved_in == "a.json"


# --- page by page -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mapped() -> Audit:
    return footprint.audit(str(STAGE), has_page_maps=True)


def test_page_maps_are_read_where_they_are_asked_for_and_written_again_byte_for_byte(mapped: Audit) -> None:
    text = saved(mapped)
    found = read_audit(text, "audit.json", has_page_maps=True).audit
    assert saved(found) == text
    assert found.page_maps == tuple(one._replace(variables=None, omitted_variables=0) for one in mapped.page_maps)
    assert read_audit(text, "audit.json").audit.page_maps == ()


def test_an_audit_without_page_maps_does_not_speak_of_them(stage: bytes) -> None:
    assert b"page_maps" not in stage
    assert read_audit(stage, "audit.json", has_page_maps=True).audit.page_maps == ()


def one_map(**fields: Any) -> Json:  # noqa: ANN401 # what JSON holds
    """Return a page map of three pages, with other members where they are named."""
    part = {
        "start_addr": 0x7000,
        "kind": "data",
        "permissions": "rw-p",
        "states": ["private", "shared"],
        "page_counts": [1, 2],
    }
    sections = {"names": [".data"], "addrs": [0x7010], "size_bytes": [64]}
    whole: Json = {"owner": "/lib/a.so", "parts": [part], "sections": sections} | {
        "omitted_pages": 0,
        "omitted_sections": 0,
    }
    for key, value in fields.items():
        place = part if key in part else sections if key in sections else whole
        place[key] = value
    return whole


def with_maps(stage: bytes, *maps: Json) -> bytes:
    return changed(stage, lambda whole: whole.update(page_maps=list(maps)))


def test_a_page_map_tells_states_and_sections_and_no_variables(stage: bytes) -> None:
    (found,) = read_audit(with_maps(stage, one_map()), "a.json", has_page_maps=True).audit.page_maps
    runs = ((PageState.PRIVATE, 1), (PageState.SHARED, 2))
    part = PagePart(0x7000, MemoryKind.DATA, "rw-p", runs)
    assert found == PageMap("/lib/a.so", (part,), (Place(0x7010, 64, ".data", None),), None)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"owner": 7}, "`page_maps[0].owner` is not a text"),
        ({"parts": None}, "`page_maps[0].parts` is not a list"),
        ({"sections": []}, "`page_maps[0].sections` is not an object"),
        ({"start_addr": 1 << 64}, "`page_maps[0].parts[0].start_addr` is not an integer from 0 to"),
        ({"kind": "quantum"}, "'quantum', which this footprint does not know"),
        # They are shown beside addresses: no text of someone else's stands there.
        ({"permissions": "rw-p\u202e"}, "`page_maps[0].parts[0].permissions` is not a text of the form"),
        (
            {"states": ["private", "lost"]},
            "`page_maps[0].parts[0].states[1]` is 'lost', which",
        ),
        ({"states": ["private"]}, "`page_maps.parts.page_counts` is not as many as `states`"),
        ({"states": [], "page_counts": []}, "`page_maps[0].parts[0].states` is empty"),
        ({"page_counts": [1, 0]}, "`page_maps[0].parts[0].page_counts[1]` is not an integer from 1 to"),
        ({"page_counts": [1, True]}, "`page_maps[0].parts[0].page_counts[1]` is not an integer from 1 to"),
        ({"page_counts": [1, MOST_PAGES]}, "`page_maps` is of more than 1,048,576 pages"),
        ({"names": [], "addrs": [], "size_bytes": [1]}, "`page_maps.sections` is of columns that differ in length"),
        ({"addrs": [-1]}, "`page_maps[0].sections.addrs[0]` is not an integer from 0 to"),
        ({"names": [None]}, "`page_maps[0].sections.names[0]` is not a text"),
        (
            {"names": [""] * 100_001, "addrs": [0] * 100_001, "size_bytes": [1] * 100_001},
            "`page_maps` is of more than 1,048,576 pages, or 100,000 sections",
        ),
        ({"omitted_pages": 0.5}, "`page_maps[0].omitted_pages` is not a size or count"),
    ],
)
def test_a_damaged_page_map_is_one_error_and_only_where_it_is_read(stage: bytes, fields: Json, cause: str) -> None:
    text = with_maps(stage, one_map(**fields))
    with pytest.raises(InputError) as error:
        read_audit(text, "a.json", has_page_maps=True)
    assert str(error.value).startswith("a.json: it is damaged: ")
    assert cause in str(error.value)
    assert read_audit(text, "a.json").audit.page_maps == ()


def test_the_pages_of_all_maps_together_have_a_limit(stage: bytes) -> None:
    half = one_map(page_counts=[1, MOST_PAGES // 2 - 1])
    assert len(read_audit(with_maps(stage, half, half), "a.json", has_page_maps=True).audit.page_maps) == 2
    with pytest.raises(InputError, match=r"more than 1,048,576 pages"):
        read_audit(with_maps(stage, half, half, one_map()), "a.json", has_page_maps=True)


def test_pages_without_a_size_are_refused(stage: bytes) -> None:
    text = changed(with_maps(stage, one_map()), lambda whole: whole["target"].update(page_bytes=0))
    with pytest.raises(InputError, match=r"`target\.page_bytes` is not a page size"):
        read_audit(text, "a.json", has_page_maps=True)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(PageState), st.integers(1, 2_000)), min_size=1, max_size=9),
        min_size=1,
        max_size=9,
    )
)
def test_whatever_the_runs_each_page_is_read_back_in_its_state(mapped: Audit, runs_of_parts: list[Any]) -> None:
    parts = tuple(PagePart(0x7000, MemoryKind.DATA, "rw-p", tuple(runs)) for runs in runs_of_parts)
    audit = replace(mapped, page_maps=(PageMap("/lib/a.so", parts, (), None),))
    text = saved(audit)
    found = read_audit(text, "a.json", has_page_maps=True).audit
    assert found.page_maps == audit.page_maps
    assert saved(found) == text


@given(data=st.data())
def test_damaged_bytes_of_page_maps_give_an_audit_or_our_error(mapped: Audit, data: st.DataObject) -> None:
    text = bytearray(saved(mapped))
    start = text.index(b'"page_maps"')
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(start, len(text) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        found = read_audit(bytes(text), "a.json", has_page_maps=True).audit
        pages = sum(count for page_map in found.page_maps for part in page_map.parts for _, count in part.runs)
        assert pages <= MOST_PAGES
