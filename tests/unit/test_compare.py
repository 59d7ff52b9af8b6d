"""What changed between two audits: each row paired with what it was, and noise of a build is no change."""

from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import footprint
from footprint.errors import Note, UsageError
from footprint.formats.issues import Level, growth_issues
from footprint.formats.text import plain
from footprint.model.audit import Audit, Spreads
from footprint.model.costs import Need, ObjectCost, Spread
from footprint.model.finding import Confidence, Finding
from footprint.model.row import Attribution, Evidence, MemoryKind, Row
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.release.compare import Comparison, RowChange, RowStatus, compare
from footprint.release.matching import comparable_name
from footprint.release.new_libraries import NewRoot
from footprint.verbs.diff.text import diff_document
from tests.ledgers import audit_of, ledger_row

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"
SMAPS = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
KIB = 1024


def variable(
    symbol: str,
    size_bytes: int,
    private_bytes: int | None = 0,
    owner: str = "/bin/server",
    section: str = ".bss",
    kind: MemoryKind = MemoryKind.BSS,
) -> Row:
    evidence = Evidence.VIRTUAL if private_bytes is None else Evidence.DERIVED
    pages = None if private_bytes is None else -(-private_bytes // 4096)
    return ledger_row(
        owner,
        size_bytes,
        kind=kind,
        section=section,
        symbol=symbol,
        name=symbol,
        bytes=private_bytes,
        pages=pages,
        evidence=evidence,
        attribution=Attribution.NAME,
    )


def memory(owner: str, size_bytes: int, name: str | None = None, kind: MemoryKind = MemoryKind.ANONYMOUS) -> Row:
    return variable("", size_bytes, size_bytes, owner, "", kind)._replace(symbol=None, name=name, section=None)


def changes(result: Comparison) -> list[tuple[str, str | None, int, int]]:
    return [
        (one.status.value, one.symbol or one.name, one.delta_bytes, one.mapped_delta_bytes) for one in result.changes
    ]


def test_what_is_as_before_is_counted_and_not_shown() -> None:
    one = audit_of(variable("table", 4 * KIB, 4 * KIB), memory("[heap]", 8 * KIB))
    found = compare(one, one)
    assert (found.changes, found.owners, found.same_count) == ((), (), 2)


def test_a_variable_that_grew_that_is_new_and_that_is_gone_are_told_the_largest_change_first() -> None:
    old = audit_of(variable("grew", 100, 100), variable("gone", 50, 50))
    new = audit_of(variable("grew", 300, 300), variable("new", 70, 70))
    assert changes(compare(old, new)) == [
        ("changed", "grew", 200, 200),
        ("added", "new", 70, 70),
        ("removed", "gone", -50, -50),
    ]


def test_of_three_statics_of_one_name_the_one_that_grew_is_one_row() -> None:
    # The ledger has one row for the statics of one name in a section: all of them together.
    old = audit_of(variable("cache", 3 * 64, 3 * 64), variable("other", 64, 64))
    new = audit_of(variable("cache", 64 + 64 + 4096, 64 + 64 + 4096), variable("other", 64, 64))
    assert changes(compare(old, new)) == [("changed", "cache", 4096 - 64, 4096 - 64)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("counter.1234", "counter.99"),
        ("helper.constprop.0", "helper"),
        ("state.lto_priv.0", "state.lto_priv.7"),
        ("_ZZZ4mainENKUlvE_clEvE4seen", "_ZZZ4mainENKUlvE0_clEvE4seen"),
        ("_ZZ4mainE4seen", "_ZZ4mainE4seen_0"),
        ("_ZZ4mainE4seen_1", "_ZZ4mainE4seen__12_"),
        ("_ZN4core3fmt17h0123456789abcdefE", "_ZN4core3fmt17hfedcba9876543210E"),
        ("_RNvCs1234_7mycrate3FOO", "_RNvCsabcdefg_7mycrate3FOO"),
        ("_ZN3FooUt_E", "_ZN3FooUt0_E"),
    ],
)
def test_what_compilers_number_anew_is_the_same_variable(old: str, new: str) -> None:
    assert comparable_name(old) == comparable_name(new)
    found = compare(audit_of(variable(old, 64, 64)), audit_of(variable(new, 64, 64)))
    assert (found.changes, found.same_count) == ((), 1)


@pytest.mark.parametrize(
    ("first", "other"),
    [("table_1", "table_2"), ("buffer1", "buffer2"), ("_ZN3a1xE", "_ZN3b1xE"), ("_Z1xILi1EE", "_Z1xILi2EE")],
)
def test_numbers_that_the_source_has_given_tell_variables_apart(first: str, other: str) -> None:
    assert comparable_name(first) != comparable_name(other)


def test_numbered_statics_are_paired_by_their_sizes_first() -> None:
    old = audit_of(variable("seen.1", 64, 64), variable("seen.2", 128, 128))
    new = audit_of(variable("seen.7", 128, 128), variable("seen.8", 64, 64), variable("seen.9", 32, 32))
    assert changes(compare(old, new)) == [("added", "seen.9", 32, 32)]


def test_a_large_buffer_under_another_name_is_renamed() -> None:
    old = audit_of(variable("old_buffer", 4096, 4096), variable("kept", 8, 8))
    new = audit_of(variable("new_buffer", 4096, 4096), variable("kept", 8, 8))
    found = compare(old, new)
    assert changes(found) == [("renamed", "new_buffer", 0, 0)]
    assert found.changes[0].before == ("/bin/server", ".bss", "old_buffer")


def test_a_buffer_of_the_same_size_is_not_renamed_where_its_files_say_that_it_is_another() -> None:
    old, new = audit_of(variable("buffer", 4096)), audit_of(variable("scratch", 4096))
    pairs_compared = []

    def is_same(before: Row, now: Row) -> bool:
        pairs_compared.append((before.symbol, now.symbol))
        return False

    assert [change.status for change in compare(old, new).changes] == [RowStatus.RENAMED]
    found = compare(old, new, is_same=is_same)
    assert {(change.status, change.symbol) for change in found.changes} == {
        (RowStatus.REMOVED, "buffer"),
        (RowStatus.ADDED, "scratch"),
    }
    assert pairs_compared == [("buffer", "scratch")]


def test_small_variables_and_those_of_which_several_could_be_meant_are_not_called_renamed() -> None:
    small = compare(audit_of(variable("a", 8, 8)), audit_of(variable("b", 8, 8)))
    assert sorted(change.status for change in small.changes) == [RowStatus.ADDED, RowStatus.REMOVED]
    olds = [variable(name, 4096, 4096) for name in ("a", "b")]
    several = compare(audit_of(*olds), audit_of(variable("c", 4096, 4096)))
    assert sorted(one.status for one in several.changes) == [RowStatus.ADDED, RowStatus.REMOVED, RowStatus.REMOVED]


def test_a_variable_in_another_section_or_library_is_moved() -> None:
    old = audit_of(
        variable("table", 4096, 4096, section=".data", kind=MemoryKind.DATA), variable("zlib_tables", 512, 512)
    )
    new = audit_of(variable("table", 4096, 0), variable("zlib_tables", 512, 512, owner="/lib/libz.so.1"))
    found = compare(old, new)
    assert changes(found) == [("moved", "table", -4096, 0), ("moved", "zlib_tables", 0, 0)]
    assert [change.before for change in found.changes] == [
        ("/bin/server", ".data", "table"),
        ("/bin/server", ".bss", "zlib_tables"),
    ]


def test_in_predictions_a_variable_of_unchanged_size_in_other_pages_is_shifted() -> None:
    old = audit_of(variable("table", 4096, 100), source="prediction")
    new = audit_of(variable("table", 4096, 900), source="prediction")
    assert changes(compare(old, new)) == [("shifted", "table", 800, 0)]
    measured = compare(audit_of(variable("table", 4096, 100)), audit_of(variable("table", 4096, 900)))
    assert changes(measured) == [("changed", "table", 800, 0)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/build/1/lib/libz.so.1", "/build/2/lib/libz.so.1"),
        ("/lib/libssl.so.3.0.1", "/lib/libssl.so.3.0.2"),
        ("/lib/libc-2.31.so", "/lib/libc-2.36.so"),
        ("/usr/lib/_ssl.cpython-311-x86_64-linux-gnu.so", "/usr/lib/_ssl.cpython-312-x86_64-linux-gnu.so"),
        ("/opt/old/server", "/opt/new/server-next"),
        ("server", "server2"),
        ("/bin/server (deleted)", "/bin/server"),
    ],
)
def test_a_file_elsewhere_or_of_another_version_is_the_same_owner(old: str, new: str) -> None:
    found = compare(audit_of(variable("x", 64, 64, owner=old)), audit_of(variable("x", 64, 128, owner=new)))
    assert changes(found) == [("changed", "x", 64, 0)]
    assert [(owner.owner, owner.old_owner, owner.is_gone) for owner in found.owners] == [(new, old, False)]


def test_another_file_that_is_only_mapped_is_another_one() -> None:
    old, new = (audit_of(memory(path, 4096, kind=MemoryKind.FILE)) for path in ("/data/old.db", "/data/new.db"))
    assert {(owner.owner, owner.is_gone) for owner in compare(old, new).owners} == {
        ("/data/old.db", True),
        ("/data/new.db", False),
    }


def test_libraries_of_one_stem_are_not_confused() -> None:
    old = audit_of(variable("x", 64, 64, owner="/a/libz.so.1"), variable("y", 64, 64, owner="/b/libz.so.1"))
    new = audit_of(variable("x", 64, 64, owner="/c/libz.so.1"))
    found = compare(old, new)
    assert {(owner.owner, owner.is_new, owner.is_gone) for owner in found.owners} == {
        ("/a/libz.so.1", False, True),
        ("/b/libz.so.1", False, True),
        ("/c/libz.so.1", True, False),
    }


def test_a_library_that_left_with_another_says_so() -> None:
    paths = ("/bin/server", "/l/libcrypt.so", "/l/libfree.so", "/l/libfree_too.so")
    holders = (None, None, "/l/libcrypt.so", "/l/libfree.so")
    rows = [variable("x", 64, 64, owner=path) for path in paths]
    objects = tuple(ObjectCost(path, "", 0, 0, holder, 0) for path, holder in zip(paths, holders, strict=True))
    found = compare(replace(audit_of(*rows), objects=objects), audit_of(rows[0]))
    assert [(owner.owner, owner.left_with) for owner in found.owners] == [
        ("/l/libcrypt.so", None),
        ("/l/libfree.so", "/l/libcrypt.so"),
        ("/l/libfree_too.so", "/l/libcrypt.so"),
    ]


def test_new_libraries_are_told_by_what_brought_them() -> None:
    # The server now needs libcurl and libz; libssl came with libcurl, libcrypto with libssl, and both need libm.
    needs = {
        "/bin/server": ("libcurl", "libz"),
        "libcurl": ("libssl", "libm"),
        "libssl": ("libcrypto",),
        "libz": ("libm",),
        "libcrypto": (),
        "libm": (),
    }
    holders = {"libssl": "libcurl", "libcrypto": "libssl"}
    retained = {"libcurl": 3 * KIB, "libssl": 2 * KIB}
    path_of = {name: name if "/" in name else f"/l/{name}.so" for name in needs}
    objects = tuple(
        ObjectCost(
            path_of[name],
            Path(path_of[name]).name,
            KIB,
            retained.get(name, KIB),
            path_of[holders[name]] if name in holders else None,
            0,
            tuple(Need(path_of[one], 1) for one in needed),
        )
        for name, needed in needs.items()
    )
    rows = [variable("x", KIB, KIB, owner=path) for path in path_of.values()]
    result = compare(audit_of(rows[0]), replace(audit_of(*rows), objects=objects))
    assert result.roots == (
        # libm came with libcurl, too, and does not leave with it: libz needs it as well.
        NewRoot("/l/libcurl.so", "libcurl.so", ("/bin/server",), 3, 3 * KIB, delta_bytes=4 * KIB, brought_count=4),
        NewRoot("/l/libz.so", "libz.so", ("/bin/server",), 1, KIB, delta_bytes=KIB),
    )
    assert {owner.owner: owner.came_with for owner in result.owners} == {
        "/l/libcurl.so": None,
        "/l/libz.so": None,
        "/l/libssl.so": "/l/libcurl.so",
        "/l/libcrypto.so": "/l/libcurl.so",
        "/l/libm.so": "/l/libcurl.so",
    }
    text = plain(diff_document(result))
    assert "+4 KiB          4  libcurl.so, which server now needs" in text
    assert "libcrypto.so  (came with libcurl.so)" in text
    assert "[5 variables of new libraries]" in text


def test_what_a_library_holds_that_several_roots_brought_came_with_a_root() -> None:
    # a and b need c, which nothing but the program holds; c needs d.
    needs = {"/p": ("/a", "/b"), "/a": ("/c",), "/b": ("/c",), "/c": ("/d",), "/d": ()}
    held_by = {"/p": None, "/a": "/p", "/b": "/p", "/c": "/p", "/d": "/c"}
    objects = tuple(
        ObjectCost(path, path[1:], KIB, KIB, held_by[path], 0, tuple(Need(one, 1) for one in needed))
        for path, needed in needs.items()
    )
    rows = [variable("x", KIB, KIB, owner=path) for path in needs]
    found = compare(audit_of(rows[0]), replace(audit_of(*rows), objects=objects))
    assert {owner.owner: owner.came_with for owner in found.owners} == {"/a": None, "/b": None, "/c": "/a", "/d": "/a"}
    assert {root.owner for root in found.roots} == {"/a", "/b"}


def test_of_another_program_no_library_is_the_cause() -> None:
    objects = tuple(ObjectCost(path, path, 0, 0, None, 0, ()) for path in ("/bin/other", "/l/libz.so"))
    new = replace(audit_of(*(variable("x", 64, 64, owner=one.path) for one in objects)), objects=objects)
    assert compare(audit_of(memory("[heap]", 64)), new).roots == ()


def test_objects_that_claim_to_hold_each_other_are_no_trouble() -> None:
    paths = ("/l/a.so", "/l/b.so")
    objects = tuple(ObjectCost(path, "", 0, 0, holder, 0) for path, holder in zip(paths, paths[::-1], strict=True))
    rows = [variable("x", 64, 64, owner=path) for path in paths]
    found = compare(replace(audit_of(*rows), objects=objects), audit_of())
    assert [owner.left_with for owner in found.owners] == ["/l/b.so", "/l/a.so"]


def test_a_name_that_counts_something_is_the_same_row_with_another_count() -> None:
    old = audit_of(memory("[kernel]", 0, "[kernel stacks of 7 threads]"))
    new = audit_of(memory("[kernel]", 0, "[kernel stacks of 8 threads]"))
    assert compare(old, new).same_count == 1


def test_findings_of_the_same_thing_in_another_folder_are_neither_new_nor_gone() -> None:
    def finding(subject: str) -> Finding:
        return Finding("large-static", "dead-code", subject, "", 0, Confidence.LOW, (), "")

    old = audit_of(findings=[finding("/old/server"), finding("x"), finding("table.lto_priv.0")])
    new = audit_of(findings=[finding("/new/server"), finding("y"), finding("y"), finding("table.lto_priv.3")])
    found = compare(old, new)
    assert [new_finding.subject for new_finding in found.new_findings] == ["y", "y"]
    assert [fixed_finding.subject for fixed_finding in found.fixed_findings] == ["x"]


def test_a_note_says_which_side_it_is_of_where_both_say_another_thing_of_one_subject() -> None:
    def noted(*notes: Note) -> Audit:
        return replace(audit_of(), notes=notes)

    both, apart = Note("library-missing", "libx.so", "absent"), Note("file-not-found", "liby.so", "deleted")
    peaks = [Note("freed-before-exit", "server", f"{size} MiB at the peak") for size in (16, 18)]
    found = compare(noted(both, peaks[0]), noted(both, peaks[1], apart))
    assert found.notes == (
        both,
        peaks[0]._replace(subject="server, before"),
        peaks[1]._replace(subject="server, now"),
        apart,
    )


def test_findings_are_not_new_where_the_other_side_was_not_looked_into() -> None:
    result = Finding("unused-library", "direct", "libx.so", "", 0, Confidence.HIGH, (), "")
    with_findings, without = audit_of(findings=[result]), audit_of()
    looked_into = replace(without, objects=(ObjectCost("/bin/x", "x", 0, 0, None, 0),))
    for old, new in ((without, with_findings), (with_findings, without)):
        comparison = compare(old, new)
        assert comparison.new_findings == comparison.fixed_findings == ()
        assert "Findings are not compared: " in " ".join(plain(diff_document(comparison)).split())
    assert compare(looked_into, with_findings).new_findings == (result,)
    assert "not compared" not in plain(diff_document(compare(without, without)))


def test_findings_of_a_profile_are_compared_where_both_sides_have_one_and_those_of_files_where_both_were_read() -> None:
    table = Finding("heap-at-start", "filled-once", "libx.so fill", "", 0, Confidence.HIGH, (), "")
    unused = Finding("unused-library", "direct", "libx.so", "", 0, Confidence.HIGH, (), "")
    account = cast("Any", object())  # only that there is one matters
    with_profile = replace(audit_of(findings=[table]), heap=account)
    with_files = audit_of(findings=[unused])
    comparison = compare(with_profile, with_files)
    assert comparison.new_findings == comparison.fixed_findings == ()
    text = " ".join(plain(diff_document(comparison)).split())
    assert "Findings are not compared: " in text
    assert "Findings on the heap are not compared: " in text
    both = replace(with_files, findings=(unused, table), heap=account)
    assert compare(replace(audit_of(), heap=account), both).new_findings == (table,)
    assert compare(both, with_files).fixed_findings == ()


def test_a_change_within_the_spread_of_the_starts_is_called_noise() -> None:
    old, new = audit_of(memory("[heap]", 100)), audit_of(memory("[heap]", 120))

    def is_noise(most_bytes: int) -> bool | None:
        spreads = Spreads(private=Spread(90, 100, most_bytes)), Spreads(private=Spread(115, 120, 130))
        total = compare(old, new, 1, *spreads).total("private")
        return total and total.is_noise

    assert is_noise(116) is True
    assert is_noise(110) is False
    total = compare(old, new).total("private")
    assert total is not None
    assert total.is_noise is None


def test_an_owner_that_changed_within_the_spread_of_the_starts_is_called_noise() -> None:
    old = audit_of(memory("[heap]", 100), memory("[stack]", 10))
    new = audit_of(memory("[heap]", 120), memory("[anonymous]", 30), memory("[stack]", 10))
    before = Spreads(owners={"[heap]": Spread(90, 100, 116), "[stack]": Spread(10, 10, 10)})
    now = Spreads(owners={"[heap]": Spread(115, 120, 130), "[anonymous]": Spread(30, 30, 30)})
    assert {owner.owner: owner.is_noise for owner in compare(old, new, 1, before, now).owners} == {
        "[heap]": True,
        # No start of the old one has it.
        "[anonymous]": False,
    }
    # It was measured once before.
    assert {owner.is_noise for owner in compare(old, new, 1, Spreads(), now).owners} == {None}


def test_where_only_virtual_sizes_are_known_the_change_is_that_of_what_is_mapped() -> None:
    found = compare(audit_of(variable("x", 64, None)), audit_of(variable("x", 96, 96)))
    assert [(change.old_bytes, change.new_bytes, change.delta_bytes) for change in found.changes] == [(None, None, 32)]


def test_a_prediction_and_a_measurement_are_not_compared() -> None:
    with pytest.raises(UsageError, match="predicted from its files"):
        footprint.diff(str(SHADOW / "base"), str(SMAPS))


# --- The founding audit, stage by stage -------------------------------------------------------------------------------


def of_variables(comparison: Comparison) -> list[RowChange]:
    return [
        change for change in comparison.changes if change.symbol is not None and change.status is not RowStatus.SHIFTED
    ]


def test_each_stage_of_the_founding_audit_shows_what_went() -> None:
    stages = ("base", "sans_answers", "sans_null_xaction", "sans_crypt")
    paths = [str(SHADOW / stage) for stage in stages]
    buffers, headers, library = (footprint.diff(old, new, count=10_000) for old, new in pairwise(paths))
    # Two buffers of 4,096 bytes; gcc numbers the other statics of their file anew.
    assert {(one.status, one.symbol, one.mapped_delta_bytes) for one in of_variables(buffers)} == {
        (RowStatus.REMOVED, "answer.0", -4096),
        (RowStatus.REMOVED, "answer.1", -4096),
    }
    assert [fixed_finding.subject for fixed_finding in buffers.fixed_findings] == ["answer.0"]
    # 107 copies of 4 bytes.
    assert [(variable.symbol, variable.mapped_delta_bytes) for variable in of_variables(headers)] == [
        ("_ZN7classadL12NULL_XACTIONE", -428)
    ]
    assert [fixed_finding.rule for fixed_finding in headers.fixed_findings] == ["duplicate-static"]
    # The library, and the one that only it brought in; 160 + 24 KiB of writable memory, as in 2010.
    gone = [owner for owner in library.owners if owner.is_gone]
    assert {(Path(one.owner).name, one.left_with and Path(one.left_with).name) for one in gone} == {
        ("libunused.so", None),
        ("libunused_dep.so", "libunused.so"),
    }
    writable, private = library.total("mapped_writable"), library.total("private")
    assert writable is not None
    assert private is not None
    assert writable.delta_bytes == -184 * KIB
    # 4 KiB of each of them, and one page of the loader's lists.
    assert private.delta_bytes == -12 * KIB
    assert library.count == 10_000


def test_the_texts_of_the_founding_audit_show_what_it_found_in_writable_memory() -> None:
    texts = ROOT / "tests" / "cases" / "condor_shadow"
    result = footprint.diff(str(texts / "pmap-d.base.txt"), str(texts / "pmap-d.sans-crypt.rw-only.txt"), count=10_000)
    writable = result.total("mapped_writable")
    # Both from the last lines of pmap: 972 K and 780 K, a fifth less.
    assert writable is not None
    assert (writable.old.bytes, writable.new.bytes) == (972 * KIB, 780 * KIB)
    assert sum(owner.delta_bytes for owner in result.owners) == -192 * KIB
    (crypt,) = (owner for owner in result.owners if "libcrypt-" in owner.owner)
    assert (crypt.is_gone, crypt.delta_bytes) == (True, -160 * KIB)


# --- Laws -------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "seen.1", "seen.2", "_ZZ1fE1x", "_ZZ1fE1x_0", "buffer", "pool"])
OWNERS = st.sampled_from(["/bin/one", "/bin/two", "/lib/libz.so.1", "/lib/libz.so.1.2", "[heap]"])
SIZES = st.sampled_from([8, 64, 256, 4096])


@st.composite
def audits(draw: st.DrawFn) -> Audit:
    rows = {}
    for _ in range(draw(st.integers(0, 8))):
        owner, name, section = draw(OWNERS), draw(NAMES), draw(st.sampled_from([".bss", ".data"]))
        size_bytes = draw(SIZES)
        rows[owner, name, section] = variable(name, size_bytes, draw(st.integers(0, size_bytes)), owner, section)
    return audit_of(*rows.values(), source=draw(st.sampled_from(["smaps", "prediction"])))


@given(old=audits(), new=audits())
def test_changes_add_up_to_the_difference_of_the_totals(old: Audit, new: Audit) -> None:
    result = compare(old, new)
    for name, deltas in (
        ("private", [change.delta_bytes for change in result.changes]),
        ("mapped", [change.mapped_delta_bytes for change in result.changes]),
        ("private", [owner.delta_bytes for owner in result.owners]),
    ):
        total = result.total(name)
        assert total is not None
        assert sum(deltas) == total.delta_bytes
    assert result.same_count + sum((change.status is not RowStatus.ADDED) for change in result.changes) == len(
        old.ledger
    )


@st.composite
def virtual_audits(draw: st.DrawFn) -> Audit:
    rows = draw(audits()).ledger
    return audit_of(
        *(row._replace(bytes=None, pages=None, is_writable=draw(st.booleans())) for row in rows), source="pmap -d"
    )


@given(old=virtual_audits(), new=virtual_audits())
def test_where_only_virtual_sizes_are_known_changes_add_up_to_that_of_mapped_writable(old: Audit, new: Audit) -> None:
    found = compare(old, new)
    total = found.total("mapped_writable")
    assert total is not None
    assert sum(change.delta_bytes for change in found.changes) == total.delta_bytes
    assert sum(owner.delta_bytes for owner in found.owners) == total.delta_bytes


@given(old=audits(), new=audits(), data=st.data())
def test_the_order_of_rows_changes_no_sum_and_the_way_back_undoes_it(
    old: Audit, new: Audit, data: st.DataObject
) -> None:
    there, back = compare(old, new), compare(new, old)
    assert there.same_count == back.same_count
    assert sum(change.delta_bytes for change in there.changes) == -sum(change.delta_bytes for change in back.changes)
    mixed = replace(new, ledger=tuple(data.draw(st.permutations(new.ledger))))
    assert len(compare(old, mixed).changes) == len(there.changes)


@given(audit=audits())
def test_nothing_changes_between_an_audit_and_itself(audit: Audit) -> None:
    found = compare(audit, audit)
    assert (found.changes, found.owners, found.same_count) == ((), (), len(audit.ledger))


def test_a_baseline_of_another_machine_or_c_library_is_told() -> None:
    arm, intel = (
        audit_of(variable("_rtld_global", 64, 64, owner=f"/lib/{name}"))
        for name in ("ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2")
    )
    (note,) = compare(arm, intel).notes
    assert note.slug == "loaders-differ"
    assert note.detail == (
        "ld-linux-aarch64.so.1 started it before, ld-linux-x86-64.so.2 does now: "
        "the machine or the C library is another one, and most figures differ by that alone"
    )
    limits = parse_budgets({"budgets": {"per_process_bytes": {"max_increase": "1 MiB"}}}, "footprint.toml")
    assert check_audit(intel, limits, arm, date(2026, 11, 23)).notes == (note,)
    assert compare(intel, intel).notes == compare(intel, audit_of(variable("a", 1, 1))).notes == ()


def test_that_one_side_alone_knows_the_variables_of_threads_is_said() -> None:
    """As of a capture and its own process; with such rows on both sides, or unchanged ones, nothing is to be said."""
    block = variable("block", 64, 64, section=".tbss of threads")._replace(kind=MemoryKind.TLS)
    blind, seeing = audit_of(variable("a", 1, 1)), audit_of(variable("a", 1, 1), block)
    for old, new in ((blind, seeing), (seeing, blind)):
        (note,) = compare(old, new).notes
        assert (note.slug, note.subject) == ("thread-locals-of-one-side", blind.target)
    more = audit_of(block._replace(symbol="more", name="more"))
    assert compare(seeing, more).notes == compare(blind, blind).notes == ()


def residue(size_bytes: int, name: str = "[no symbol: stripped]", section: str = ".bss") -> Row:
    return variable("", size_bytes, size_bytes, section=section)._replace(symbol=None, name=name)


def test_names_that_a_debug_file_adds_are_no_change() -> None:
    # 1,000 bytes without a name are 600 + 380 with one, and 20 between them; both sides know `exported`.
    exported, changed = variable("exported", 64, 64), variable("exported", 96, 96)
    old = audit_of(exported, residue(1000))
    new = audit_of(exported, variable("table", 600, 600), variable("cache", 380, 380), residue(20, "[padding]"))
    for one, other in ((old, new), (new, old)):
        found = compare(one, other)
        assert (found.changes, found.owners, found.unevenly_named) == ((), (), ("/bin/server",))
        assert [(note.slug, note.subject) for note in found.notes] == [("symbols-of-one-side", "/bin/server")]
    grown = audit_of(changed, variable("table", 700, 700), variable("cache", 380, 380), residue(20, "[padding]"))
    assert changes(compare(old, grown)) == [
        ("changed", "[no symbol: stripped]", 100, 100),
        ("changed", "exported", 32, 32),
    ]


def test_a_file_that_is_stripped_on_both_sides_loses_no_names() -> None:
    old = audit_of(residue(1000), residue(100, section=".data"))
    new = audit_of(residue(1000), variable("exported", 100, 100, section=".data"))
    assert compare(old, new).unevenly_named == ()


def test_findings_on_variables_that_only_a_debug_file_names_are_not_new() -> None:
    def finding(rule: str) -> Finding:
        return Finding(rule, "symbol", "table", "", 4096, Confidence.HIGH, (), "", object="/bin/server")

    library = finding("unused-library")
    old = audit_of(residue(1000), findings=[replace(library, subject="libz.so.1")])
    new = audit_of(variable("table", 1000, 1000), findings=[finding("duplicate-static"), library])
    assert [(one.rule, one.subject) for one in compare(old, new).new_findings] == [("unused-library", "table")]


# --- new, or only touched now -----------------------------------------------------------------------------------------


def measured(build_id: str | None, not_private_bytes: int, **symbols: int) -> Audit:
    """Return the audit of a library whose .bss has variables that are touched, and bytes that are not."""
    library = "/lib/libc.so.6"
    row = ledger_row(library, kind=MemoryKind.BSS, section=".bss")
    rest = row._replace(name="[not private]", mapped_bytes=not_private_bytes)
    rows = [row._replace(symbol=name, bytes=size, mapped_bytes=size) for name, size in symbols.items()]
    own = ObjectCost(library, "libc.so.6", KIB, KIB, None, 0, (), build_id)
    return replace(audit_of(*rows, rest), objects=(own,))


def statuses(old: Audit, new: Audit) -> dict[str | None, RowStatus]:
    found = compare(old, new)
    assert sum(change.mapped_delta_bytes for change in found.changes) == (
        (new.totals.mapped.bytes or 0) - (old.totals.mapped.bytes or 0)
    )
    return {change.symbol: change.status for change in found.changes if change.symbol is not None}


def test_a_variable_of_an_unchanged_file_is_touched_now_and_not_new() -> None:
    old, new = measured("a1", 8 * KIB, lock=64), measured("a1", 4 * KIB, lock=64, traced_file=4 * KIB)
    assert statuses(old, new) == {"traced_file": RowStatus.TOUCHED}
    (issue,) = growth_issues(compare(old, new), Level.NOTE)
    assert issue.rule == "touched-variable"
    assert issue.message == (
        "traced_file of libc.so.6 has 4 KiB in .bss, as before, and more of it is written. "
        "It adds 4 KiB of private memory to each process."
    )
    # The other way it is there as well, and no longer written.
    assert statuses(new, old) == {"traced_file": RowStatus.CHANGED}


@pytest.mark.parametrize("build_id", ["b2", None])
def test_a_variable_of_another_build_is_new_where_its_section_grew_by_as_much(build_id: str | None) -> None:
    old = measured("a1", 8 * KIB, lock=64)
    assert statuses(old, measured(build_id, 8 * KIB, lock=64, cache=4 * KIB)) == {"cache": RowStatus.ADDED}
    assert statuses(old, measured(build_id, 4 * KIB, lock=64, cache=4 * KIB)) == {"cache": RowStatus.TOUCHED}


def test_what_is_larger_than_all_that_was_not_touched_is_new() -> None:
    old, new = measured(None, KIB), measured(None, 0, table=4 * KIB)
    assert statuses(old, new) == {"table": RowStatus.ADDED}
