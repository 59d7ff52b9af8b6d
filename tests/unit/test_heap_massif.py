"""What the texts of massif say, of every version of Valgrind, and of those who imitate it."""

import bz2
import gzip
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from footprint.errors import InputError, UnsupportedError
from footprint.heap import massif as massif_reader
from footprint.heap.call_tree_builder import read_label
from footprint.heap.formats import looks_like_profile, read_profile
from footprint.heap.massif import read_massif
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile
from footprint.system import decompression
from tests.calltrees import stack
from tests.heapjoins import end, moment
from tests.massifwriter import ROOT, Line, Moment, massif

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"

# Valgrind 3.19 on a program that keeps 300 bytes of one place and 30 of another.
TEXT = b"""\
desc: --threshold=20
cmd: ./program a b
time_unit: B
#-----------
snapshot=0
#-----------
time=0
mem_heap_B=0
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=empty
#-----------
snapshot=1
#-----------
time=336
mem_heap_B=330
mem_heap_extra_B=6
mem_stacks_B=16
heap_tree=peak
n2: 330 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 300 0x109161: filled (ten.c:4)
  n1: 300 0x109161: make (ten.c:5)
   n0: 300 0x109192: main (ten.c:8)
 n0: 30 in 2 places, all below massif's threshold (20.00%)
"""


def read(text: bytes) -> Profile:
    return read_profile(text, "a text")


def corpus(name: str) -> Profile:
    return read_profile((CORPUS / name).read_bytes(), name)


def slugs(profile: Profile) -> list[str]:
    return [note.slug for note in profile.notes]


def tree_of(profile: Profile, place: int) -> CallTree:
    tree = profile.snapshots[place].tree
    assert tree is not None
    return tree


# --- the whole of a small text ----------------------------------------------------------------------------------------


def test_the_header_tells_options_command_and_unit_of_time() -> None:
    profile = read(TEXT)
    assert (profile.format, profile.counted) == ("massif", Counted.HEAP)
    assert (profile.description, profile.command, profile.time_unit) == ("--threshold=20", "./program a b", "B")
    assert profile.notes == ()


def test_a_snapshot_tells_what_is_useful_extra_and_stack() -> None:
    first, second = read(TEXT).snapshots
    assert first == HeapSnapshot(0, 0, 0, 0, 0)
    assert second._replace(tree=None) == HeapSnapshot(1, 336, 330, 6, 16, is_peak=True)


def test_a_tree_goes_from_the_allocation_to_main() -> None:
    tree = tree_of(read(TEXT), 1)
    assert tree.parents.tolist() == [-1, 0, 1, 2, 0]
    assert tree.node_bytes.tolist() == [330, 300, 300, 300, 30]
    assert [tree.frame(node) for node in range(5)] == [
        Frame(label=ROOT),
        Frame(0x109161, "filled", "ten.c", 4),
        Frame(0x109161, "make", "ten.c", 5),
        Frame(0x109192, "main", "ten.c", 8),
        Frame(label="in 2 places, all below massif's threshold (20.00%)"),
    ]
    assert [frame.function for frame in stack(tree, 3)] == ["filled", "make", "main"]
    assert (tree.total_bytes, tree.total_blocks) == (330, None)
    assert tree.own_bytes() == [0, 0, 0, 300, 30]


def test_what_was_inlined_has_the_address_of_its_caller() -> None:
    assert tree_of(read(TEXT), 1).inlined_nodes() == bytearray([0, 1, 0, 0, 0])


def test_a_function_that_calls_itself_from_one_place_is_not_inlined() -> None:
    recursion = Line(8, "0x10: f (a.c:1)", (Line(8, "0x10: f (a.c:1)"),))
    profile = read(massif([Moment(0, 8, tree=Line(8, ROOT, (recursion,)), is_peak=True)]))
    assert tree_of(profile, 0).inlined_nodes() == bytearray(3)


def test_the_snapshots_of_a_profile_share_their_frames() -> None:
    profile = read(massif([Moment(time, 8, tree=Line(8, ROOT, (Line(8, "0x10: f (a.c:1)"),))) for time in range(9)]))
    assert profile.frames == (Frame(label=ROOT), Frame(0x10, "f", "a.c", 1))
    assert all(tree_of(profile, place).frames is profile.frames for place in range(9))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_compressed_text_is_the_same_text(compress: object) -> None:
    assert callable(compress)
    assert read(compress(TEXT)) == read(TEXT)
    assert read(compress(TEXT[:200]) + compress(TEXT[200:])) == read(TEXT)
    assert looks_like_profile(compress(TEXT), "a text")


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "frame"),
    [
        ("0x401AB9F: ???", Frame(0x401AB9F)),
        ("0x401AB9F: ??? (in ???)", Frame(0x401AB9F)),
        ("0x401AB9F: ??? (in /usr/lib/ld.so)", Frame(0x401AB9F, object="/usr/lib/ld.so")),
        ("0x504DABB: (below main) (libc-start.c:220)", Frame(0x504DABB, "(below main)", "libc-start.c", 220)),
        ("0x1: f(int) (in /opt/a (old)/b.so)", Frame(1, "f(int)", object="/opt/a (old)/b.so")),
        ("0x1: f(int) (dir (old)/b.c:7)", Frame(1, "f(int)", "dir (old)/b.c", 7)),
        ("0x1: main::{lambda(int)#2}::operator()(int) const", Frame(1, "main::{lambda(int)#2}::operator()(int) const")),
        ("0x1: operator new(unsigned long)", Frame(1, "operator new(unsigned long)")),
        ("0x1: f(char (&) [3]) (a b.cc:12)", Frame(1, "f(char (&) [3])", "a b.cc", 12)),
        ("0x1: alloc::alloc (src/alloc.rs:88:14)", Frame(1, "alloc::alloc", "src/alloc.rs", 88)),
        ("0x1: f+16 (in /a.so)", Frame(1, "f+16", object="/a.so")),
        ("0xffff8000: lower (in /a.so)", Frame(0xFFFF8000, "lower", object="/a.so")),
        ("in 1 place, below massif's threshold (01.00%)", Frame(label="in 1 place, below massif's threshold (01.00%)")),
        ("", Frame(label="")),
    ],
)
def test_a_label_tells_address_function_and_place(label: str, frame: Frame) -> None:
    assert read_label(label) == frame


def test_names_that_are_not_utf_8_are_kept() -> None:
    profile = read(TEXT.replace(b"filled", b"fil\xffled"))
    assert profile.frames[1].function == "fil\udcffled"


# --- odd but whole ----------------------------------------------------------------------------------------------------


def test_a_command_line_may_hold_newlines_and_number_signs() -> None:
    command = "python3 -c 'import a # b\ntime_unit: x\ndesc: c'"
    profile = read(massif([Moment(0, 0)], command=command))
    assert profile.command == command
    assert profile.time_unit == "i"


def test_without_a_peak_the_profile_says_so() -> None:
    profile = read(massif([Moment(0, 0), Moment(5, 8)]))
    assert (profile.peak_index, profile.peak) == (None, None)
    assert slugs(profile) == ["heap-no-peak"]


def test_a_tree_may_have_no_bytes() -> None:
    profile = read(massif([Moment(0, 0, stack_bytes=3264, tree=Line(0, ROOT), is_peak=True)]))
    assert tree_of(profile, 0).node_bytes.tolist() == [0]
    assert profile.notes == ()


def test_sizes_beyond_four_gigabytes_are_kept() -> None:
    profile = read(massif([Moment(123667, 5021305210, 5021305211, 5021305212)]))
    assert profile.snapshots[0][2:5] == (5021305210, 5021305211, 5021305212)


def test_address_space_is_called_so() -> None:
    tree = Line(4096, "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.")
    profile = read(massif([Moment(0, 4096, tree=tree, is_peak=True)]))
    assert profile.counted == Counted.PAGES
    assert slugs(profile) == ["virtual-only"]


def test_callers_that_do_not_add_up_are_kept_and_told() -> None:
    tree = Line(100, ROOT, (Line(60, "0x1: f"), Line(30, "0x2: g")))
    profile = read(massif([Moment(0, 100, tree=tree, is_peak=True)]))
    assert tree_of(profile, 0).own_bytes() == [10, 60, 30]
    (note,) = profile.notes
    assert note.slug == "heap-tree-unbalanced"
    assert note.detail.endswith("first in snapshot 0 at line 1 of its tree, 90 of 100 bytes")


def test_callers_of_more_bytes_than_an_address_space_has_are_no_tree() -> None:
    # Each of 10 says that it has nearly all that 18 digits can tell: 2^63 is not ten times as much.
    most = 10**18 - 1
    tree = Line(most, ROOT, tuple(Line(most, f"0x{place}: f") for place in range(1, 11)))
    profile = read(massif([Moment(0, most, tree=tree, is_peak=True)]))
    assert profile.snapshots[0].tree is None
    assert slugs(profile) == ["heap-tree-unread"]


def test_a_last_tree_of_too_many_lines_was_not_cut() -> None:
    assert slugs(read(TEXT.replace(b"n2: 330", b"n1: 330"))) == ["heap-tree-unread"]
    assert slugs(read(TEXT.replace(b"n2: 330", b"n3: 330"))) == ["heap-text-truncated", "heap-tree-unread"]


def test_a_tree_of_other_bytes_than_its_snapshot_is_told() -> None:
    profile = read(massif([Moment(0, 101, tree=Line(100, ROOT), is_peak=True)]))
    (note,) = profile.notes
    assert note.slug == "heap-tree-unbalanced"
    assert note.detail.endswith("first in snapshot 0 at line 1 of its tree, 100 of 101 bytes")


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b" n0: 30", b" n1: 30"),
        (b"n2: 330", b"n1: 330"),
        (b"n2: 330", b"n3: 330"),
        (b"  n1: 300", b"   n1: 300"),
        (b" n1: 300 0x109161: filled", b"n1: 300 0x109161: filled"),
        (b"  n1: 300", b"  m1: 300"),
        (b"  n1: 300", b"  n1: -300"),
        (b"  n1: 300", b"  n1: 3" + b"0" * 30),
        (b"  n1: 300", b"\n  n1: 300"),
    ],
)
def test_a_damaged_tree_is_left_out_and_its_snapshot_kept(old: bytes, new: bytes) -> None:
    profile = read(TEXT.replace(old, new, 1))
    assert [snapshot.live_bytes for snapshot in profile.snapshots] == [0, 330]
    assert profile.peak_index == 1
    assert profile.snapshots[1].tree is None
    assert "heap-tree-unread" in slugs(profile)


def test_a_damaged_tree_is_not_read_on_from_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind the damage was split again with each piece: a tree of 15 MB took 11 seconds."""
    monkeypatch.setattr(decompression, "_PLAIN_PIECE_BYTES", 1 << 8)
    pieces: list[bytes] = []

    def kept(text: memoryview, start: int, end: int) -> Iterator[bytes]:
        for piece in decompression.plain_pieces(text, start, end):
            pieces.append(piece)
            yield piece

    monkeypatch.setattr(massif_reader, "plain_pieces", kept)
    lines = tuple(Line(1, f"0x2: f{number} (in /p)") for number in range(100))
    text = massif([Moment(1, 100, tree=Line(100, ROOT, lines))])
    for whole, most_pieces in ((text, len(text)), (text.replace(b" n0: ", b" damage\n n0: ", 1), 1)):
        pieces.clear()
        profile = read_profile(whole, "a text", lambda profile: profile.detailed_places)
        assert profile == read(whole)
        assert 0 < len(pieces) <= most_pieces


def test_a_damaged_snapshot_is_left_out() -> None:
    third = TEXT[TEXT.index(b"#") :].replace(b"snapshot=1", b"snapshot=3")
    profile = read(TEXT.replace(b"mem_heap_B=0", b"mem_heap_B=x") + third)
    assert [snapshot.number for snapshot in profile.snapshots] == [1, 0, 3]
    assert slugs(profile) == ["heap-lines-unread"]


@pytest.mark.parametrize("kept", range(TEXT.index(b"snapshot=1"), len(TEXT) - 1, 7))
def test_a_cut_text_keeps_what_is_whole_and_says_so(kept: int) -> None:
    profile = read(TEXT[:kept])
    assert profile.snapshots[0] == HeapSnapshot(0, 0, 0, 0, 0)
    assert all(snapshot.tree is None for snapshot in profile.snapshots)
    assert "heap-text-truncated" in slugs(profile)


def test_a_last_line_without_its_end_is_whole_where_it_shows() -> None:
    profile = read(TEXT[:-1])
    assert len(tree_of(profile, 1)) == 5
    assert slugs(profile) == ["heap-text-truncated"]


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"desc: a\ncmd: b\ntime_unit: i\n", b"desc: a\n\nheap_tree=empty\n", b"\x1f\x8b", b"BZh9", b"{}"],
)
def test_what_is_no_profile_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        read(text)


def test_a_tree_of_more_lines_than_any_program_has_calls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.massif._MOST_NODES", 4)
    with pytest.raises(InputError, match="the tree of snapshot 1 has more lines"):
        read(TEXT)


def test_trees_of_more_lines_than_memory_should_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.massif._MOST_NODES_IN_ALL", 9)
    again = TEXT + TEXT[TEXT.index(b"#-----------\nsnapshot=1") :].replace(b"snapshot=1", b"snapshot=2")
    with pytest.raises(InputError, match="up to snapshot 2 its trees have more lines"):
        read(again)
    # Those that are passed over take no memory.
    assert read_profile(again, "a text", lambda _: [2]).snapshots[2].tree is not None


@pytest.mark.parametrize("bound", ["_MOST_LABELS", "_MOST_LABEL_BYTES"])
def test_more_places_than_any_program_has_are_refused(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"footprint.heap.massif.{bound}", 4)
    with pytest.raises(InputError, match="by snapshot 1 it names more places than any program has"):
        read(TEXT)


def test_a_deep_line_of_one_tree_takes_no_memory_for_all_others() -> None:
    header, snapshot = TEXT[: TEXT.index(b"#---")], TEXT[TEXT.rindex(b"#-----------\nsnapshot") : TEXT.index(b"n2: ")]
    trees = [b" " * (1 if number else 131_072) + b"n0: 330 0x1: f (a.c:1)\n" for number in range(60)]
    text = header + b"".join([snapshot + b"n1: 330 all\n" + tree for tree in trees])
    tracemalloc.start()
    try:
        profile = read_massif([text], "a text")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(profile.snapshots) == 60
    assert peak_bytes < 16 << 20


def test_the_places_of_trees_that_are_passed_over_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.massif._MOST_LABEL_BYTES", 4)
    with pytest.raises(InputError, match="by snapshot 1 it names more places than any program has"):
        read_profile(TEXT, "a text", lambda _: [])


def test_damaged_compression_is_refused() -> None:
    whole = gzip.compress(TEXT * 1000)
    for text in (whole[:-20], whole[:99] + b"\0\0\0\0" + whole[103:]):
        with pytest.raises(InputError, match="compressed data is damaged"):
            read(text)


def test_texts_that_were_made_of_profiles_are_named() -> None:
    with pytest.raises(UnsupportedError, match=r"\*\.ms"):
        corpus("xtmemory-3.19-allocs.kcg")
    with pytest.raises(UnsupportedError, match="output of ms_print"):
        read(b"-" * 80 + b"\nCommand:            ./heap\n")


# --- the corpus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count", "peak", "live_bytes", "extra_bytes", "stack_bytes"),
    [
        ("massif-3.19-cmd-hash.out.gz", 66, 63, 2114524, 12748, 0),
        ("massif-3.19-default.out", 66, 63, 2114524, 12748, 0),
        ("massif-3.19-inline.out.gz", 66, 63, 2114524, 12748, 0),
        ("massif-3.19-pages-as-heap.out", 70, 65, 155848704, 0, 0),
        ("massif-3.19-stacks.out.gz", 88, 86, 2114220, 12732, 560),
        ("massif-3.19-time-ms.out", 65, 27, 2114524, 12748, 0),
    ],
)
def test_the_peaks_of_the_corpus(
    name: str, count: int, peak: int, live_bytes: int, extra_bytes: int, stack_bytes: int
) -> None:
    profile = corpus(name)
    assert (len(profile.snapshots), profile.peak_index) == (count, peak)
    assert profile.snapshots[peak][2:5] == (live_bytes, extra_bytes, stack_bytes)
    tree = tree_of(profile, peak)
    assert tree.total_bytes == live_bytes
    assert set(slugs(profile)) <= {"virtual-only"}


def test_profiles_without_a_heap_have_no_peak_and_no_tree() -> None:
    empty, no_heap = corpus("massif-3.19-empty-noalloc.out"), corpus("massif-3.19-noheap.out")
    assert [len(profile.snapshots) for profile in (empty, no_heap)] == [1, 87]
    assert all(not snapshot.tree for profile in (empty, no_heap) for snapshot in profile.snapshots)
    assert no_heap.snapshots[-1].stack_bytes == 688


def test_the_odd_command_of_the_corpus_is_whole() -> None:
    assert corpus("massif-3.19-cmd-hash.out.gz").command == "./heap #not a comment two words new\nline desc: fake"


def test_an_xtree_is_one_snapshot_and_what_was_counted_over_the_run() -> None:
    profile = corpus("massif-3.19-xtmemory-full.ms.gz")
    assert profile.format == "xtree"
    ((number, time, live_bytes, *_),) = profile.snapshots
    assert (number, time, live_bytes) == (0, 433, 123456)
    tree = tree_of(profile, 0)
    assert (len(tree), tree.total_bytes, tree.total_blocks) == (218, 123456, 1)
    totals = {tally.name: (tally.tree.total_bytes, tally.tree.total_blocks) for tally in profile.tallies}
    assert totals == {"allocated": (2315468, 876), "freed": (2192012, 875)}
    assert profile.notes == ()


@pytest.mark.parametrize("wanted", [None, (1,), (0, 1)])
def test_an_xtree_behind_the_snapshots_of_massif_is_their_end(wanted: tuple[int, ...] | None) -> None:
    before = moment(("/bin/program", "f", 900), is_peak=True)
    columns = end(("/bin/program", "f", 300, 3), ("/bin/program", "g", 0, 2))
    profile = read_massif([massif([before, *columns])], "a text", wanted)
    assert (profile.format, profile.has_end, profile.peak_index, profile.tree_places) == ("massif", True, 0, (0, 1))
    assert [(one.number, one.live_bytes, one.extra_bytes) for one in profile.snapshots] == [(0, 900, 0), (1, 300, None)]
    assert (tree_of(profile, 1).total_blocks, profile.notes) == (5, ())
    assert not read_massif([massif([before])], "a text").has_end


def test_blocks_of_stacks_that_are_a_lump_of_bytes_are_counted_above() -> None:
    # Valgrind has stacks of no bytes in one line, and their blocks in lines of their own.
    curb, curbk = end(("/bin/program", "f", 300, 3), ("/bin/program", "g", 0, 2))
    assert curb.tree is not None
    lump = Line(300, "curB : ", (curb.tree.callers[0], Line(0, "in 1 place, all below massif's threshold (0.00%)")))
    profile = read_massif([massif([curb._replace(tree=lump), curbk])], "a text")
    assert tree_of(profile, 0).own_blocks() == [2, 3, 0]


def test_the_export_of_heaptrack_is_kept_and_its_faults_are_told() -> None:
    profile = corpus("massif-heaptrack1.4-detail1.out")
    assert (profile.format, profile.description, profile.time_unit) == ("heaptrack massif", "heaptrack", "s")
    assert (len(profile.snapshots), profile.snapshots[0].time, profile.snapshots[0].live_bytes) == (52, 0.467, 316639)
    assert slugs(profile) == ["heap-tree-unbalanced", "heap-export-lossy"]


# --- the peak, and what massif marks as the peak ----------------------------------------------------------------------


def grown(tree: Line | None, *, description: str = "(none)", last_bytes: int = 5000) -> bytes:
    """Return a profile whose mark is at 100 bytes, and whose last snapshot is larger."""
    early = Line(100, ROOT, (Line(100, "0x1: early (in /p)"),))
    return massif(
        [Moment(0, 0), Moment(1, 100, 8, 0, early, is_peak=True), Moment(9, last_bytes, 16, 0, tree)], description
    )


def test_a_snapshot_that_is_larger_than_the_marked_one_is_the_peak() -> None:
    profile = read(grown(Line(5000, ROOT, (Line(5000, "0x2: late (in /p)"),))))
    assert (profile.peak_index, [snapshot.is_peak for snapshot in profile.snapshots]) == (2, [False, False, True])
    assert profile.untold_peak is None
    assert stack(tree_of(profile, 2), 1)[0].function == "late"


def test_of_a_peak_without_a_call_tree_nobody_knows_who_asked_for_it() -> None:
    profile = read(grown(None))
    assert profile.peak_index == 2
    assert profile.untold_peak is profile.snapshots[2]
    assert profile.untold_peak.used_bytes == 5016


@pytest.mark.parametrize(
    ("description", "last_bytes", "peak_index"),
    [
        ("(none)", 92, 1),
        ("(none)", 93, 1),  # 109 bytes in use: a percent more than 108
        ("(none)", 94, 2),
        ("--peak-inaccuracy=0", 93, 2),
        ("--peak-inaccuracy=50.0 --depth=3", 140, 1),
    ],
)
def test_the_mark_counts_as_far_as_massif_is_accurate(description: str, last_bytes: int, peak_index: int) -> None:
    assert read(grown(None, description=description, last_bytes=last_bytes)).peak_index == peak_index


# --- several files in one ---------------------------------------------------------------------------------------------


def test_of_several_files_in_one_the_first_is_read() -> None:
    text, alone = TEXT + grown(None) + TEXT, read(TEXT)
    # At each end of a piece, and whether the trees are built or skipped.
    for wanted, cut in product((None, ()), range(len(TEXT) - 20, len(TEXT) + 70)):
        pieces = read_massif([text[:cut], text[cut:]], "a text", wanted)
        assert [snapshot[:5] for snapshot in pieces.snapshots] == [snapshot[:5] for snapshot in alone.snapshots]
    profile = read(text)
    assert [snapshot._replace(tree=None) for snapshot in profile.snapshots] == [
        snapshot._replace(tree=None) for snapshot in alone.snapshots
    ]
    assert [(note.slug, note.detail.split(":")[0]) for note in profile.notes] == [
        ("heap-profiles-left-out", "2 more profiles of massif in the same file, left out")
    ]


def test_of_several_files_without_trees_the_first_is_read_once() -> None:
    text = TEXT[: TEXT.index(b"#-----------\nsnapshot=1")]
    profile = read_profile(text * 2, "a text", lambda profile: profile.detailed_places)
    assert profile.snapshots == read(text).snapshots
    assert "heap-profiles-left-out" in slugs(profile)


def test_an_xtree_behind_its_profile_is_the_end_of_the_run() -> None:
    xtree = massif(
        [Moment(7, 5, tree=Line(5, "curB : currently allocated Bytes")), Moment(7, 1, tree=Line(1, "curBk : blocks"))],
        "xtree.produce_report",
        time_unit="ms",
    )
    profile = read(TEXT + xtree + TEXT)
    assert [(snapshot.number, snapshot.time, snapshot.live_bytes) for snapshot in profile.snapshots] == [
        (0, 0, 0),
        (1, 336, 330),
        (2, 336, 5),
    ]
    assert slugs(profile) == ["heap-profiles-left-out"]
