"""The heap of a process by who asked for it: each row, to the byte, and what does not fit."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

import footprint
from footprint.attribution.heap_join import join_heap
from footprint.attribution.heap_usage import heap_usage, name_frames
from footprint.errors import UsageError
from footprint.formats.audit_json import audit_json
from footprint.formats.document import Names, Paragraph, Table, Verdict
from footprint.formats.saved_audit import read_audit
from footprint.heap.allocators import Allocators
from footprint.heap.formats import read_profile
from footprint.model.heap_account import AllocatorAccount
from footprint.model.row import Attribution, Evidence
from footprint.process.live_memory import other_allocator_note
from footprint.release.compare import compare
from footprint.verbs.audit.heap_account_text import heap_account_blocks
from footprint.verbs.audit.text import audit_document
from tests.heapjoins import KIB, PROGRAM, Area, end, heap_rows, moment, process, profiled, sums
from tests.massifwriter import Line, Moment
from tests.pprofwriter import Call, Location, Map, Sample, pprof

PMAP = Path(__file__).resolve().parents[2] / "tests" / "cases" / "condor_shadow" / "pmap-d.base.txt"
HEAP = Area("[heap]", 132, 100)
LIBC = Area("/lib/libc.so.6", 4, 0)
LIBRARY = "/lib/libtable.so"


def test_the_heap_is_what_was_asked_for_and_what_the_allocator_adds_and_keeps_and_what_the_runs_differ_by() -> None:
    # 60,000 and 20,000 live, 500 of the allocator; 10,000 more were live before; 100 KiB = 102,400 are held.
    before = moment((PROGRAM, "load", 90_000), time=1, extra_bytes=500)
    now = moment((PROGRAM, "load", 60_000), (LIBRARY, "table_new", 20_000), time=2, extra_bytes=500)
    joined = join_heap(process(HEAP), profiled(before, now), {})
    assert heap_rows(joined) == [
        (PROGRAM, "load", 60_000, 60_000),
        (LIBRARY, "table_new", 20_000, 20_000),
        ("[heap beyond the profile]", None, 11_900, 11_900),
        ("[free but resident]", None, 10_000, 10_000),
        ("[allocator overhead]", None, 500, 500),
        ("[heap]", "[mapped, not private]", 0, 32 * KIB),
    ]
    account = joined.heap
    assert account is not None
    assert (account.held_bytes, account.apart_bytes, account.free_bytes) == (102_400, 0, 10_000)
    assert (account.live_bytes, account.extra_bytes, account.difference_bytes) == (80_000, 500, 11_900)
    assert account.peak_bytes == 90_500
    assert joined.totals == process(HEAP).totals


def test_where_the_profile_has_more_each_row_has_what_is_left_if_all_of_it_is_missing_there() -> None:
    # 102,400 are held, 120,000 profiled: 17,600 are missing, of one function or several.
    now = moment((PROGRAM, "load", 70_000), (LIBRARY, "one", 30_000), (LIBRARY, "other", 20_000))
    joined = join_heap(process(HEAP), profiled(now), {})
    assert heap_rows(joined) == [
        (PROGRAM, "load", 52_400, 70_000),
        (LIBRARY, "[several of its functions]", 17_600, 17_600),
        ("[heap, not told whose]", None, 17_600, 17_600),
        (LIBRARY, "one", 12_400, 27_568),  # the address space of the heap, 135,168 bytes, ends here
        (LIBRARY, "other", 2_400, 2_400),
    ]
    assert joined.heap is not None
    assert joined.heap.difference_bytes == -17_600
    assert sums(joined) == sums(process(HEAP))


def test_blocks_that_glibc_maps_apart_are_looked_for_in_nameless_memory() -> None:
    # 128 KiB is the least that it maps apart: the table may be, the rest may not.
    here = process(HEAP, Area("", 400, 300))
    now = moment((PROGRAM, "table", 200_000), (PROGRAM, "rest", 50_000))
    joined = join_heap(here, profiled(now), {})
    assert joined.heap is not None
    assert (joined.heap.apart_bytes, joined.heap.difference_bytes) == (250_000 - 102_400, 0)
    assert sums(joined) == {"heap": 250_000, "anonymous": 300 * KIB - 147_600}
    (nameless,) = (row for row in joined.ledger if row.owner == "[anonymous]")
    assert (nameless.bytes, nameless.mapped_bytes) == (300 * KIB - 147_600, 400 * KIB - 147_600)
    assert (nameless.evidence, nameless.pages) == (Evidence.ESTIMATED, None)


def test_small_blocks_are_in_no_nameless_memory_of_glibc() -> None:
    here = process(HEAP, Area("", 400, 300))
    now = moment(*((PROGRAM, f"small{number}", 50_000) for number in range(5)))
    joined = join_heap(here, profiled(now), {})
    assert joined.heap is not None
    assert (joined.heap.apart_bytes, joined.heap.difference_bytes) == (0, 102_400 - 250_000)
    assert sums(joined) == sums(here)


def test_arenas_and_what_allocators_name_are_heap() -> None:
    here = process(
        Area("[anon: glibc: malloc]", 64, 8), Area("[anon:scudo:primary]", 64, 4), Area("[anon:other]", 64, 4)
    )
    joined = join_heap(here, profiled(moment((PROGRAM, "f", 12 * KIB))), {})
    assert joined.heap is not None
    assert (joined.heap.held_bytes, joined.heap.difference_bytes) == (12 * KIB, 0)
    assert sums(joined) == {"heap": 12 * KIB, "anonymous": 4 * KIB}


def test_a_profile_of_go_is_joined_with_the_heap_of_go_alone() -> None:
    process_of_go = process(HEAP, Area("", 400, 300))
    rows = [row._replace(owner="[go heap]") if row.owner == "[anonymous]" else row for row in process_of_go.ledger]
    here = replace(process_of_go, ledger=tuple(rows))
    types = (("inuse_objects", "count"), ("inuse_space", "bytes"))
    calls = Location(0x401000, (Call("main.load", "/src/main.go", 3),), 1)
    text = pprof(types, [Sample((1,), (2, 200_000))], [calls], [Map(0x400000, 0x402000, 0, PROGRAM)])
    profile = read_profile(text, "heap.pb.gz")
    usage = heap_usage("heap.pb.gz", profile, 0, name_frames(profile, "", Allocators()))
    joined = join_heap(here, usage, {})
    # 300 KiB = 307,200 are private in the heap of Go; the heap of malloc stays as it was.
    assert heap_rows(joined) == [
        (PROGRAM, "main.load", 200_000, 200_000),
        ("[heap beyond the profile]", None, 107_200, 107_200),
        ("[heap]", None, 100 * KIB, 132 * KIB),
        ("[go heap]", "[mapped, not private]", 0, 100 * KIB),
    ]
    assert joined.heap is not None
    assert (joined.heap.held_bytes, joined.heap.apart_bytes) == (307_200, 0)
    assert joined.totals == here.totals
    # No profile of massif is of use there.
    blocks = heap_account_blocks(joined.heap, None, Names((), is_whole=True), 20, nameless_bytes=KIB, is_measured=True)
    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert any("[anonymous], 1 KiB, is no part of it: what the runtime has for itself" in text for text in texts)
    assert not any("massif" in text for text in texts)


def test_a_profile_of_go_is_not_joined_with_a_process_of_another_language() -> None:
    go = PMAP.parents[2] / "corpus" / "heap" / "pprof-go1.26-kept.pb.gz"
    with pytest.raises(UsageError, match="counts the go heap, and no memory of the process is known as that"):
        footprint.audit(PMAP, heap=go)


def test_each_part_is_estimated_and_the_whole_measured() -> None:
    joined = join_heap(process(HEAP), profiled(moment((PROGRAM, "load", 60_000))), {})
    rows = [row for row in joined.ledger if row.kind.value == "heap"]
    assert {row.evidence for row in rows} == {Evidence.ESTIMATED}
    assert {row.attribution for row in rows} == {Attribution.PROFILE}
    assert {row.symbol for row in rows} == {"load", None}
    assert joined.totals.private.evidence is process(HEAP).totals.private.evidence


def test_objects_are_called_as_the_ledger_calls_them_and_strange_ones_are_told() -> None:
    usage = profiled(moment(("/other/program", "load", 60_000)))
    joined = join_heap(process(HEAP), usage, {"/other/program": PROGRAM})
    assert heap_rows(joined)[0][:2] == (PROGRAM, "load")
    assert [note.slug for note in joined.notes if note.slug.startswith("heap-profile")] == []
    strange = join_heap(process(HEAP), usage, {})
    (note,) = (note for note in strange.notes if note.slug == "heap-profile-misfit")
    assert note.detail == "objects that the process does not have allocated 58.6 KiB: /other/program"


def test_a_profile_of_address_space_is_shown_and_added_to_nothing() -> None:
    heading = "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc."
    tree = Line(1 << 30, heading, (Line(1 << 30, f"0x10: mmap_all (in {PROGRAM})"),))
    usage = profiled(Moment(1, 1 << 30, tree=tree), description="--pages-as-heap=yes")
    joined = join_heap(process(HEAP), usage, {})
    assert joined.ledger == process(HEAP).ledger
    assert joined.heap is not None
    assert (joined.heap.held_bytes, joined.heap.live_bytes) == (None, 1 << 30)
    assert joined.heap.evidence is Evidence.VIRTUAL
    assert "heap-profile-virtual" in {note.slug for note in joined.notes}


def test_of_a_text_with_virtual_sizes_the_mapped_heap_is_split() -> None:
    # The founding audit: 396 K of heap, of which Massif told 335.8 KB; 60 K are left, and named.
    plain = footprint.audit(str(PMAP))
    usage = profiled(moment((PROGRAM, "param", 300_000), (PROGRAM, "rest", 43_859), is_peak=True))
    joined = join_heap(plain, usage, {})
    assert heap_rows(joined) == [
        (PROGRAM, "param", None, 300_000),
        ("[heap beyond the profile]", None, None, 396 * KIB - 343_859),
        (PROGRAM, "rest", None, 43_859),
    ]
    assert {row.evidence for row in joined.ledger if row.kind.value == "heap"} == {Evidence.VIRTUAL}
    assert joined.totals == plain.totals


def test_the_rows_are_read_back_and_shown_again() -> None:
    now = moment((PROGRAM, "load", 70_000), (LIBRARY, "one", 30_000), (LIBRARY, "other", 20_000))
    joined = join_heap(process(HEAP), profiled(now), {})
    text = audit_json(joined, "1")
    found = read_audit(text.encode(), "saved.json").audit
    assert (found.heap, found.ledger) == (joined.heap, joined.ledger)
    assert audit_json(found, "1") == text


def test_two_of_them_are_compared_by_function() -> None:
    old = join_heap(process(HEAP), profiled(moment((PROGRAM, "load", 60_000))), {})
    new = join_heap(process(HEAP), profiled(moment((PROGRAM, "load", 70_000))), {})
    changes = [(change.owner, change.name, change.delta_bytes) for change in compare(old, new).changes]
    assert changes == [(PROGRAM, "load", 10_000), ("[heap beyond the profile]", None, -10_000)]


def test_functions_that_ask_for_as_much_are_not_one_that_was_renamed() -> None:
    old = join_heap(process(HEAP), profiled(moment((PROGRAM, "load", 60_000))), {})
    new = join_heap(process(HEAP), profiled(moment((PROGRAM, "read", 60_000))), {})
    found = {(change.name, change.status.value, change.delta_bytes) for change in compare(old, new).changes}
    assert found == {("load", "removed", -60_000), ("read", "added", 60_000)}


def test_the_table_adds_up_to_the_heap_with_what_is_missing_as_a_negative_row() -> None:
    joined = join_heap(process(HEAP), profiled(moment((PROGRAM, "load", 110_000), extra_bytes=400)), {})
    assert joined.heap is not None
    blocks = heap_account_blocks(joined.heap, None, Names((), is_whole=True), 20, nameless_bytes=0, is_measured=True)
    (table,) = (block for block in blocks if isinstance(block, Table))
    amounts = [int(row[0].replace(",", "")) for row in (*table.rows, *table.footer)]
    assert amounts == [110_000, 400, -8_000, 102_400]
    assert any("7.81 KiB more than is held" in block.text for block in blocks if isinstance(block, Paragraph))


def test_chance_alone_is_within_the_error_of_a_sampled_profile() -> None:
    # As allocators sample: a block of x bytes with the probability 1 - exp(-x / period), counted as x divided by it.
    period_bytes, chance = 1024, random.Random(41)  # noqa: S311 # it is repeatable
    sizes = [chance.choice((16, 100, 300)) for _ in range(1000)]
    probabilities = [1 - math.exp(-size / period_bytes) for size in sizes]

    def estimate() -> float:
        pairs = zip(sizes, probabilities, strict=True)
        return sum(size / probability for size, probability in pairs if chance.random() < probability)

    joined = join_heap(process(Area("[heap]", 400, 300)), profiled(moment((PROGRAM, "small", sum(sizes)))), {})
    assert joined.heap is not None
    assert joined.heap.sampling_error_bytes is None
    heap = replace(joined.heap, sample_period_bytes=period_bytes)
    assert heap.sampling_error_bytes is not None
    off = sum(abs(estimate() - sum(sizes)) > heap.sampling_error_bytes for _ in range(400))
    assert 0 < off <= 400 // 20


def test_an_allocator_that_names_none_of_its_memory_is_not_explained_as_glibc() -> None:
    here = process(Area("", 400, 300), Area("/lib/libjemalloc.so.2", 4, 4))
    joined = join_heap(here, profiled(moment((PROGRAM, "small", 50_000))), {})
    assert joined.heap is not None
    assert (joined.heap.held_bytes, joined.heap.apart_bytes) == (0, 50_000)
    blocks = heap_account_blocks(joined.heap, None, Names((), is_whole=True), 20, nameless_bytes=0, is_measured=True)
    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert texts[0].startswith("Its allocator gives its memory no name and uses no [heap], as jemalloc does")
    assert not any("glibc" in text for text in texts)


def test_the_overhead_is_that_of_the_allocator_of_the_process_where_blocks_are_counted() -> None:
    # 100 blocks of 130 bytes: glibc has 144 for each, jemalloc 160. Valgrind itself would say 24 bytes more for each.
    before = moment((PROGRAM, "load", 90_000), extra_bytes=8_000)
    usage = profiled(before, *end((PROGRAM, "load", 13_000, 100)))
    for area, allocator, added_bytes in (
        (HEAP, "glibc", 1_400),
        (Area("[anon:jemalloc_pg]", 132, 100), "jemalloc", 3_000),
    ):
        account = join_heap(process(area, LIBC), usage, {}).heap
        assert account is not None
        assert (account.live_bytes, account.extra_bytes, account.allocator) == (13_000, added_bytes, allocator)
        # 98,000 were in use before; as massif counts no blocks there, it may be 8,000 more. 102,400 are held.
        assert account.peak_bytes == 98_000
        assert (account.free_bytes, account.difference_bytes) == (102_400 - 13_000 - added_bytes, 0)


def test_an_allocator_that_a_note_names_has_its_model_and_so_has_glibc_of_32_bits() -> None:
    # 100 blocks of 130 bytes: tcmalloc has 146 for each, glibc 144, and of 12 bytes glibc has 32, with 32 bits 16.
    usage = profiled(*end((PROGRAM, "load", 13_000, 100)))
    linked = process(HEAP, LIBC)
    named = replace(linked, notes=(*linked.notes, other_allocator_note("tcmalloc", "a text")))
    account = join_heap(named, usage, {}).heap
    assert account is not None
    assert (account.allocator, account.extra_bytes) == ("tcmalloc", 1_600)
    small = profiled(*end((PROGRAM, "load", 1_200, 100)))
    found = [join_heap(linked, small, {}, word_bytes).heap for word_bytes in (8, 4)]
    assert [one.extra_bytes for one in found if one is not None] == [2_000, 400]


@pytest.mark.parametrize(("name", "has_apart"), [("glibc", False), ("musl", True)])
def test_the_account_of_a_capture_names_the_allocator_and_has_no_ranges(name: str, *, has_apart: bool) -> None:
    # 110,000 in 500 blocks of 220 bytes are more than the heap has; musl maps them where nothing has a name.
    captured = AllocatorAccount(
        name, 1, 90, 11_000, 1_400, 90_000, 102_400, 0, 0, 0, 90_000, 0, captured_at="2026-11-27T19:40:00Z"
    )
    here = replace(process(HEAP, Area("", 1000, 800)), allocator=captured)
    account = join_heap(here, profiled(*end((PROGRAM, "load", 110_000, 500))), {}).heap
    assert account is not None
    assert (account.allocator, account.is_free_measured, account.apart_bytes > 0) == (name, False, has_apart)


def test_the_allocator_of_a_static_program_is_unknown_so_it_has_no_model() -> None:
    account = join_heap(process(HEAP), profiled(*end((PROGRAM, "load", 13_000, 100))), {}).heap
    assert account is not None
    assert (account.extra_bytes, account.allocator) == (None, None)


def test_large_blocks_are_apart_though_the_heap_has_room_for_them() -> None:
    # 50,000 of 102,400 are in use; two blocks of 100,000 are less than glibc maps, two of 200,000 have 49 pages each.
    here = process(HEAP, Area("", 1000, 800), LIBC)
    small = join_heap(here, profiled(*end((PROGRAM, "f", 50_000, 500))), {}).heap
    large = join_heap(here, profiled(*end((PROGRAM, "f", 50_000, 500), (PROGRAM, "g", 400_000, 2))), {}).heap
    assert small is not None
    assert large is not None
    assert (small.apart_bytes, large.apart_bytes) == (0, 2 * 49 * 4096)
    assert large.difference_bytes == small.difference_bytes


def test_what_the_arenas_of_threads_keep_is_free_up_to_all_that_was_allocated() -> None:
    # Never more than 40,000 at once, but 70,000 over the run: 50,000 freed at 90,000 of massif's time, 20,000 live.
    one, other = moment((PROGRAM, "one", 40_000), time=40_000), moment((PROGRAM, "other", 30_000), time=110_000)
    usage = profiled(one, other, *end((PROGRAM, "other", 24_000, 1000)), time_unit="B")
    alone = join_heap(process(HEAP, LIBC), usage, {}).heap
    with_threads = join_heap(process(HEAP, LIBC, Area("[stack:77]", 8, 8)), usage, {}).heap
    assert alone is not None
    assert with_threads is not None
    assert (alone.free_bytes, with_threads.free_bytes) == (40_000 - 32_000, 70_000 - 32_000)
    for account, before in ((alone, "39.1 KiB were in use"), (with_threads, "other blocks were freed")):
        blocks = heap_account_blocks(account, None, Names((), is_whole=True), 20, nameless_bytes=0, is_measured=True)
        texts = [block.text for block in blocks if isinstance(block, Paragraph)]
        assert any(f"[free but resident]: before this moment {before}, and" in text for text in texts)


def test_the_last_line_names_the_object_that_asked_for_the_most_though_its_function_has_no_name() -> None:
    joined = join_heap(process(HEAP), profiled(moment((PROGRAM, "???", 60_000), (PROGRAM, "load", 20_000))), {})
    (verdict,) = [block.text for block in audit_document(joined) if isinstance(block, Verdict)]
    assert verdict.endswith("100 KiB of each is heap; [no symbol] of program asked for the most, 58.6 KiB.")


def test_beyond_the_profile_the_text_says_what_the_allocator_has_as_live() -> None:
    own = AllocatorAccount("glibc", 1, 90, 91_000, 1_400, 10_000, 102_400, 0, 0, 0, 10_000, 0)
    joined = join_heap(replace(process(HEAP, LIBC), allocator=own), profiled(*end((PROGRAM, "load", 13_000, 100))), {})
    texts = [block.text for block in audit_document(joined) if isinstance(block, Paragraph)]
    (text,) = [text for text in texts if text.startswith("[heap beyond the profile]")]
    assert text == (
        "[heap beyond the profile]: 76.2 KiB that the profile does not explain (profile 12.7 KiB live, allocator "
        "88.9 KiB live): what this run did otherwise than the profiled one."
    )


def test_what_the_allocator_itself_has_as_free_is_free_whatever_the_profile_had_at_its_peak() -> None:
    # 102,400 are held: 90,000 free, and of 13,000 profiled bytes with 1,400 beside them 2,000 are missing.
    here = process(HEAP, LIBC)
    of_glibc = AllocatorAccount("glibc", 1, 90, 11_000, 1_400, 90_000, 102_400, 0, 0, 0, 90_000, 0)
    usage = profiled(*end((PROGRAM, "load", 13_000, 100)))
    joined = join_heap(replace(here, allocator=of_glibc), usage, {})
    account = joined.heap
    assert account is not None
    assert account.is_free_measured
    assert (account.extra_bytes, account.free_bytes, account.difference_bytes) == (1_400, 90_000, -2_000)
    assert sums(joined) == sums(here)
    blocks = heap_account_blocks(account, of_glibc, Names((), is_whole=True), 20, nameless_bytes=0, is_measured=True)
    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    (text,) = [text for text in texts if text.startswith("The profile has 1.95 KiB more")]
    assert "more than is held (profile 12.7 KiB live, allocator 10.7 KiB live): memory" in text
    assert "the model of its blocks adds more than they have, or the runs differ" in text
    unread = join_heap(here, usage, {}).heap
    assert unread is not None
    assert (unread.is_free_measured, unread.free_bytes, unread.difference_bytes) == (False, 0, 102_400 - 14_400)


def test_a_profile_that_does_not_count_the_calls_of_the_allocator_is_told() -> None:
    usage = profiled(*end((PROGRAM, "f", 1_000, 10)))
    here = process(Area("[anon:jemalloc_pg]", 4096, 4096))
    note = next(note for note in join_heap(here, usage, {}).notes if note.slug == "heap-profile-blind")
    assert note.detail.startswith("[anon:jemalloc_pg] has 4 MiB, the profile 1.09 KiB at its peak: ")
    static = process(HEAP, Area("", 4096, 4096))
    assert "heap-profile-blind" in {note.slug for note in join_heap(static, usage, {}).notes}
    dynamic = process(HEAP, LIBC, Area("", 4096, 4096))
    assert "heap-profile-blind" not in {note.slug for note in join_heap(dynamic, usage, {}).notes}
    assert "heap-profile-blind" not in {note.slug for note in join_heap(process(HEAP), usage, {}).notes}


def test_an_account_that_does_not_add_up_is_a_defect() -> None:
    joined = join_heap(process(HEAP), profiled(moment((PROGRAM, "f", 10))), {})
    assert joined.heap is not None
    with pytest.raises(ValueError, match="are 102401 bytes, it has 102400"):
        replace(joined.heap, difference_bytes=joined.heap.difference_bytes + 1)
    with pytest.raises(ValueError, match="do not add up to its live bytes"):
        replace(joined.heap, shares=())
