"""What LeakSanitizer, mtrace, V8, malloc_info and a JVM say of a heap."""

import json
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.errors import InputError, UsageError
from footprint.heap.formats import read_profile
from footprint.heap.profile import WHOLE_FILE, Frame, Module, Profile
from tests.calltrees import amounts_by_function, flat_amounts

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus" / "heap"
SMAPS = ROOT / "tests" / "corpus" / "smaps-sleep.txt"


def read(text: bytes) -> Profile:
    return read_profile(text, "a text")


def corpus(name: str) -> Profile:
    return read_profile((CORPUS / name).read_bytes(), name)


def slugs(profile: Profile) -> list[str]:
    return [note.slug for note in profile.notes]


# --- LeakSanitizer ----------------------------------------------------------------------------------------------------

REPORT = b"""the program's own output
\x1b[1m\x1b[31m==42==ERROR: LeakSanitizer: detected memory leaks\x1b[1m\x1b[0m

Direct leak of 300 byte(s) in 3 object(s) allocated from:
    #0 0x10 in operator new(unsigned long) ../../src/new.cpp:99
    #1 0x20 in ns::make(int) /src/a b/main.cpp:7:3
    #2 0x30 in main (/bin/a+0x1030) (BuildId: 00aa11)

Indirect leak of 40 byte(s) in 1 object(s) allocated from:
    #0 0x10 in malloc ../../src/malloc.cpp:9
    #1 0x40  (/lib/b.so+0x2040) (BuildId: 22bb33)

SUMMARY: AddressSanitizer: 340 byte(s) leaked in 4 allocation(s).
"""


def test_the_leaks_of_a_report_are_a_tally_by_stack() -> None:
    profile = read(REPORT)
    assert (profile.format, profile.pid, profile.snapshots, profile.notes) == ("leaksanitizer", 42, (), ())
    (tally,) = profile.tallies
    assert (tally.name, tally.tree.total_bytes, tally.tree.total_blocks) == ("leaked", 340, 4)
    assert profile.frames[1:] == (
        Frame(0x10, "operator new(unsigned long)", "../../src/new.cpp", 99),
        Frame(0x20, "ns::make(int)", "/src/a b/main.cpp", 7),
        Frame(0x30, "main", object="/bin/a"),
        Frame(0x10, "malloc", "../../src/malloc.cpp", 9),
        # Without a function the address is that of the file.
        Frame(0x2040, object="/lib/b.so"),
    )
    assert profile.modules == (Module(0, WHOLE_FILE, 0, "/lib/b.so", "22bb33"),)
    assert amounts_by_function(tally.tree)["main"] == (300, 3)


def test_a_cut_report_has_a_note() -> None:
    assert slugs(read(REPORT[: REPORT.index(b"Indirect")])) == ["heap-rows-missing"]


def test_the_report_of_a_program_has_its_leaks() -> None:
    profile = corpus("leaksanitizer-gcc12-leaks.txt")
    # By `leaks.c`: 24 blocks of 1,000 bytes and 10 of 100; 300,000 bytes, and 5,000 of realloc.
    assert amounts_by_function(profile.tallies[0].tree)["make"] == (25_000, 34)
    assert amounts_by_function(profile.tallies[0].tree)["main"] == (305_000, 2)
    assert profile.notes == ()


def test_leaks_are_not_joined_with_a_process() -> None:
    with pytest.raises(UsageError, match="has no memory in use at a moment"):
        footprint.audit(SMAPS, heap=CORPUS / "leaksanitizer-gcc12-leaks.txt")


# --- mtrace -----------------------------------------------------------------------------------------------------------

TRACE = b"""= Start
@ ./a:(f+0x1f)[0x10] + 0x1000 0x64
@ ./a:[0x20] + 0x2000 0x32
@ ./a:[0x30] - 0x1000
@ /lib/c.so:(g+8c)[0x40] < 0x2000
@ /lib/c.so:(g+8c)[0x40] > 0x3000 0x4
@ [0x50] + 0x4000 0x0
@ [0x50] - 0x4000
= End
"""


def test_a_trace_has_the_peak_the_end_and_what_was_allocated() -> None:
    profile = read(TRACE)
    peak, end = profile.snapshots
    assert (peak.live_bytes, peak.is_peak, end.live_bytes) == (150, True, 4)
    assert peak.tree is not None
    assert end.tree is not None
    assert flat_amounts(peak.tree) == {"f": (100, 1), 0x20: (50, 1)}
    assert flat_amounts(end.tree) == {"g": (4, 1)}
    assert flat_amounts(profile.tallies[0].tree) == {"f": (100, 1), 0x20: (50, 1), "g": (4, 1), 0x50: (0, 1)}
    assert profile.frames[1:] == (
        Frame(0x10, "f", object="./a"),
        Frame(0x20, object="./a"),
        Frame(0x40, "g", object="/lib/c.so"),
        Frame(0x50),
    )
    assert [module.path for module in profile.modules] == ["./a", "/lib/c.so"]
    assert profile.notes == ()


def test_releases_of_unseen_blocks_and_odd_lines_have_notes() -> None:
    profile = read(TRACE.replace(b"= End", b"@ ./a:[0x30] - 0x9000\nodd\n= End"))
    assert slugs(profile) == ["heap-lines-unread", "heap-attached-late"]
    # A block at the place of another one: that one was freed unseen.
    assert read(b"= Start\n@ [0x1] + 0x8 0x10\n@ [0x2] + 0x8 0x20\n").snapshots[1].live_bytes == 32


def test_the_trace_of_a_program_has_its_blocks() -> None:
    peak, end = corpus("mtrace-glibc2.36-leaks.txt").snapshots
    # By `leaks.c`: 24 of 1,000 bytes, 5,000, 300,000 and 10 of 100 are left.
    assert (peak.live_bytes, end.live_bytes) == (330_000, 330_000)
    assert end.tree is not None
    assert end.tree.total_blocks == 36


def test_more_allocations_than_in_any_trace_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.mtrace._MOST_EVENTS", 2)
    with pytest.raises(InputError, match="more than 2 allocations"):
        read(TRACE)


def test_more_callers_than_a_trace_may_have_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.mtrace._MOST_CALLERS", 2)
    text = b"= Start\n" + b"".join(b"@ ./x:[0x%x] + 0x%x 0x10\n" % (0x1000 + place, place) for place in range(1, 4))
    with pytest.raises(InputError, match="more than 2 places that allocate"):
        read_profile(text, "trace")


# --- V8 ---------------------------------------------------------------------------------------------------------------


def node(name: str, size_bytes: float, *children: dict[str, Any], url: str = "", line: int = -1) -> dict[str, Any]:
    call = {"functionName": name, "scriptId": "1", "url": url, "lineNumber": line, "columnNumber": 1}
    return {"callFrame": call, "selfSize": size_bytes, "id": 1, "children": list(children)}


def v8(head: dict[str, Any]) -> bytes:
    return json.dumps({"head": head, "samples": []}).encode()


def test_a_profile_of_v8_is_turned_so_that_the_function_that_asked_comes_first() -> None:
    inner = node("fill", 300, url="file:///srv/a.js", line=2)
    profile = read(v8(node("(root)", 0, node("", 40, inner), node("other", 5.5))))
    assert (profile.format, profile.heap_owner, profile.sample_period_bytes) == ("v8", "[v8 heap]", 0)
    assert profile.frames[1:] == (
        Frame(function="(anonymous)"),
        Frame(function="fill", file="/srv/a.js", line=3, object="/srv/a.js"),
        Frame(function="other"),
    )
    (snapshot,) = profile.snapshots
    assert snapshot.tree is not None
    # 5.5 is rounded to the even number.
    assert flat_amounts(snapshot.tree) == {"fill": (300, None), "(anonymous)": (40, None), "other": (6, None)}
    assert amounts_by_function(snapshot.tree)["(anonymous)"] == (340, None)
    assert slugs(profile) == ["heap-sampled"]


def test_the_profile_of_a_node_program_has_its_objects() -> None:
    profile = corpus("v8-node20-kept.heapprofile")
    assert profile.snapshots[0].tree is not None
    # 100,000 arrays of 50 numbers, 416 bytes each, and as many objects; estimated from samples.
    assert 40_000_000 < (flat_amounts(profile.snapshots[0].tree)["fill"][0]) < 60_000_000


@pytest.mark.parametrize(
    "text",
    [
        v8(node("(root)", -1)),
        v8(node("(root)", float("nan"))),
        v8({"callFrame": {}, "selfSize": 1, "children": []}),
        v8(node("(root)", 0))[:-2],
        b'{"head":{"callFrame":' + b"[" * 300,
    ],
)
def test_a_damaged_profile_of_v8_is_one_error(text: bytes) -> None:
    with pytest.raises(InputError, match="not the JSON of V8"):
        read(text)


def test_a_profile_of_v8_is_not_joined_with_the_heap_of_malloc() -> None:
    with pytest.raises(UsageError, match="counts the v8 heap, and no memory of the process is known as that"):
        footprint.audit(SMAPS, heap=CORPUS / "v8-node20-kept.heapprofile")


# --- totals without callers -------------------------------------------------------------------------------------------

INFO = b"""<malloc version="1">
<heap nr="0">
<sizes>
  <size from="17" to="32" total="64" count="2"/>
</sizes>
<total type="fast" count="2" size="64"/>
<total type="rest" count="1" size="936"/>
<system type="current" size="5000"/>
<system type="max" size="9000"/>
<aspace type="total" size="5000"/>
</heap>
<heap nr="1">
<total type="fast" count="0" size="0"/>
<total type="rest" count="1" size="100"/>
<system type="current" size="400"/>
</heap>
<total type="fast" count="2" size="64"/>
<total type="rest" count="2" size="1036"/>
<total type="mmap" count="3" size="70000"/>
<system type="current" size="5400"/>
</malloc>
"""


def test_malloc_info_has_what_is_in_use_in_each_arena() -> None:
    profile = read(INFO)
    (snapshot,) = profile.snapshots
    assert snapshot.tree is not None
    assert flat_amounts(snapshot.tree) == {
        "arena 0": (4000, None),
        "arena 1": (300, None),
        "blocks from mmap": (70_000, None),
    }
    assert {frame.object for frame in profile.frames[1:]} == {"[malloc]"}
    assert slugs(profile) == ["heap-no-callers"]
    assert (
        "1.07 KiB are free of the 5.27 KiB that the arenas have, and 3 blocks came from mmap" in profile.notes[0].detail
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [(INFO[:-20], "it is cut"), (INFO.replace(b'"5000"', b'"500"'), "more free bytes than it has")],
)
def test_a_damaged_malloc_info_is_one_error(text: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        read(text)


NMT = b"""42:

Native Memory Tracking:

(Omitting categories weighting less than 1KB)

Total: reserved=900KB, committed=500KB
       malloc: 49KB #63

-                 Java Heap (reserved=600KB, committed=300KB)
                            (mmap: reserved=600KB, committed=300KB)

-                     Class (reserved=100KB, committed=60KB)
                            (classes #2530)
                            (malloc=9KB #3939) (at peak)
                            (mmap: reserved=90KB, committed=50KB)

-                    Thread (reserved=50KB, committed=20KB)
                            (stack: reserved=40KB, committed=10KB)
                            (malloc=30KB #118) (peak=38KB #122)
                            (arena=5KB #36) (peak=914KB #34)

-    Native Memory Tracking (reserved=5KB, committed=5KB)
                            (malloc=1KB #20) (at peak)
                            (tracking overhead=4KB)
"""


def test_native_memory_of_a_jvm_is_what_it_has_from_malloc() -> None:
    profile = read(NMT)
    assert (profile.format, profile.pid) == ("nmt", 42)
    (snapshot,) = profile.snapshots
    assert snapshot.tree is not None
    assert flat_amounts(snapshot.tree) == {
        "Class": (9 * 1024, None),
        "Thread": (35 * 1024, None),
        "Native Memory Tracking": (5 * 1024, None),
    }
    assert {frame.object for frame in profile.frames[1:]} == {"[JVM]"}
    assert "360 KiB that the JVM maps itself" in profile.notes[0].detail
    # With the scale of bytes, and inside of a longer report.
    plain = NMT.replace(b"KB", b"") + b"\nDetails:\n\n[0x1] f()+0x1\n    (malloc=9 type=Class #1)\n"
    assert read(plain).snapshots[0].live_bytes == 49


def test_the_native_memory_of_a_real_jvm_adds_up_to_its_line() -> None:
    text = (CORPUS / "nmt-openjdk17.txt").read_text()
    told_kib = int(text.partition("malloc: ")[2].partition("KB")[0])
    # Each category is rounded to KiB.
    profile = corpus("nmt-openjdk17.txt")
    assert abs(profile.snapshots[0].live_bytes // 1024 - told_kib) <= len(profile.frames)


def test_native_memory_without_its_total_is_refused() -> None:
    with pytest.raises(InputError, match="without a total and categories"):
        read(NMT[: NMT.index(b"Total")])
