"""What the protocol buffers of pprof say of a heap, and Go's text of the same."""

import gzip
from pathlib import Path

import pytest

import footprint
from footprint.attribution.heap_places import Binary
from footprint.attribution.heap_usage import heap_usage, name_frames, place_at
from footprint.cli import main
from footprint.elf.functions import read_functions
from footprint.elf.image import read_image
from footprint.errors import InputError, UnsupportedError
from footprint.heap.allocators import Allocators
from footprint.heap.formats import looks_like_profile, read_profile
from footprint.heap.profile import Frame, Module, Profile
from footprint.model.row import Evidence
from tests.calltrees import amounts_by_function, flat_amounts
from tests.pprofwriter import Call, Location, Map, Sample, message, number, packed, pprof

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"
# Allocated and in use, blocks before bytes, as Go has them.
GO = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))
MAIN = Location(0x401200, (Call("main", "a.c", 9),), 1)
# `small` was inlined into `large`.
LARGE = Location(0x401100, (Call("small", "a.h", 2), Call("large", "a.c", 5)), 1)
# The same function of a profile without mappings.
ALONE = MAIN._replace(mapping=0)
PROGRAM = Map(0x400000, 0x402000, 0, "/bin/a")


def read(text: bytes) -> Profile:
    return read_profile(text, "a text")


def corpus(name: str) -> Profile:
    return read_profile((CORPUS / name).read_bytes(), name)


def slugs(profile: Profile) -> list[str]:
    return [note.slug for note in profile.notes]


# --- the tables of a profile ------------------------------------------------------------------------------------------


def test_the_moment_the_run_and_inlined_functions_are_read() -> None:
    samples = [Sample((1, 2), (5, 500, 3, 300)), Sample((2,), (1, 40, 1, 40))]
    profile = read(pprof(GO, samples, (LARGE, MAIN), (PROGRAM,), comments=("by hand",)))
    assert (profile.format, profile.description, profile.has_own_allocator) == ("pprof", "by hand", True)
    assert profile.modules == (Module(0x400000, 0x402000, 0, "/bin/a"),)
    # The address belongs to the function that contains the inlined one.
    assert profile.frames[1:] == (
        Frame(None, "small", "a.h", 2, "/bin/a"),
        Frame(0x401100, "large", "a.c", 5, "/bin/a"),
        Frame(0x401200, "main", "a.c", 9, "/bin/a"),
    )
    (snapshot,), (tally,) = profile.snapshots, profile.tallies
    assert (snapshot.live_bytes, snapshot.time, tally.name) == (340, None, "allocated")
    assert snapshot.tree is not None
    assert flat_amounts(snapshot.tree) == {"small": (300, 3), "main": (40, 1)}
    assert flat_amounts(tally.tree) == {"small": (500, 5), "main": (40, 1)}
    assert amounts_by_function(snapshot.tree) == {"small": (300, 3), "large": (300, 3), "main": (340, 4)}
    assert profile.notes == ()


def test_a_location_without_functions_is_an_address_in_a_mapping() -> None:
    profile = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [Location(0x401100, mapping=1)], [PROGRAM]))
    assert profile.frames[1] == Frame(0x401100)
    assert profile.notes == ()
    profile = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [Location(0x401100)]))
    assert slugs(profile) == ["heap-no-modules"]


FILE = Path(__file__).resolve().parents[2] / "sample_binaries" / "heap_by_function" / "heap"
BUILD_ID = "af9385c0e0d64fc836ea18512b834e3d71c61a1d"
WHOLE = Map(0, (1 << 64) - 1, 0, "./heap", BUILD_ID)


@pytest.mark.parametrize(
    ("written_id", "is_given", "call"),
    [
        (BUILD_ID, True, (str(FILE), "main")),
        ("00" * 20, True, ("./heap", "[no symbol]")),
        (BUILD_ID, False, ("./heap", "[no symbol]")),
    ],
)
def test_addresses_of_a_file_are_named_by_the_file_with_the_build_id(
    written_id: str, call: tuple[str, str], *, is_given: bool
) -> None:
    # The range is the whole address space, as jemalloc_pprof writes it. `main` is at 0x519.
    mapping = WHOLE._replace(build_id=written_id)
    profile = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [Location(0x519 + 5, mapping=1)], [mapping]))
    assert profile.frames[1] == Frame(0x519 + 5, object="./heap")
    image = read_image(FILE.read_bytes(), str(FILE))
    binary = Binary(str(FILE), image, read_functions(image))
    named = name_frames(profile, "a text", Allocators(), [binary] if is_given else [])
    assert named.calls[1][:2] == call


def test_a_profile_without_build_ids_takes_a_given_file_by_its_name() -> None:
    profile = read(b"= Start\n@ ./heap:[0x51e] + 0x1000 0x64\n")
    image = read_image(FILE.read_bytes(), str(FILE))
    named = name_frames(profile, "a text", Allocators(), [Binary(str(FILE), image, read_functions(image))])
    assert named.calls[1][:2] == (str(FILE), "main")
    # Nothing shows that it is the same build.
    assert [(note.slug, note.subject) for note in named.notes] == [("file-unverified", "./heap")]
    assert name_frames(profile, "a text", Allocators()).calls[1].function == "[no symbol]"


def test_the_linker_name_of_a_function_is_its_name() -> None:
    location = Location(0x10, (Call("ns::f(int)", linker_name="_ZN2ns1fEi"),))
    assert read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [location])).frames[1].function == "_ZN2ns1fEi"


def test_unpacked_numbers_and_unknown_fields_are_read_over() -> None:
    sample = number(1, 1) + number(1, 2) + b"".join(number(2, amount) for amount in (2, 20, 1, 10))
    unknown = b"\x79" + bytes(8) + b"\x7d" + bytes(4) + message(20, b"later")
    text = pprof(GO, [], (LARGE, MAIN), [PROGRAM]) + message(2, sample + message(3, number(1, 4))) + unknown
    (snapshot,) = read(text).snapshots
    assert snapshot.tree is not None
    assert flat_amounts(snapshot.tree) == {"small": (10, 1)}


def test_a_profile_without_samples_is_empty() -> None:
    profile = read(pprof(GO, []))
    assert (profile.snapshots[0].live_bytes, profile.tallies[0].tree.total_blocks) == (0, 0)


@pytest.mark.parametrize(
    ("types", "live", "allocated"),
    [
        # tcmalloc, the lives of its blocks, and V8
        ([("objects", "count"), ("space", "bytes"), ("resident_space", "bytes")], (2, 1), None),
        ([("allocated_objects", "count"), ("allocated_space", "bytes"), ("deallocated_space", "bytes")], None, (2, 1)),
        # one type alone, Perfetto, footprint
        ([("inuse", "bytes")], (1, None), None),
        (
            [
                ("Total malloc count", "count"),
                ("Total malloc size", "bytes"),
                ("Unreleased malloc count", "count"),
                ("Unreleased malloc size", "bytes"),
            ],
            (4, 3),
            (2, 1),
        ),
        ([("live_blocks", "count"), ("live", "bytes")], (2, 1), None),
        # Datadog: Python, .NET and Ruby
        ([("alloc-samples", "count"), ("alloc-space", "bytes"), ("heap-space", "bytes")], (3, None), (2, 1)),
        ([("cpu-samples", "count"), ("inuse-space", "bytes")], (2, None), None),
        ([("heap-live-samples", "count"), ("heap-live-size", "bytes")], (2, 1), None),
        # profilers of Java
        ([("alloc_in_new_tlab_objects", "count"), ("alloc_in_new_tlab_bytes", "bytes")], None, (2, 1)),
        ([("allocations", "bytes")], None, (1, None)),
        ([("alloc_space", "bytes")], None, (1, None)),
    ],
)
def test_each_writer_has_its_names_for_the_same(
    types: list[tuple[str, str]], live: tuple[int, int | None] | None, allocated: tuple[int, int | None] | None
) -> None:
    # The amounts are 1, 2, 3 ...: their place.
    profile = read(pprof(types, [Sample((1,), tuple(range(1, len(types) + 1)))], [ALONE]))
    found = [tree for snapshot in profile.snapshots if (tree := snapshot.tree) is not None]
    assert [(tree.total_bytes, tree.total_blocks) for tree in found] == ([live] if live else [])
    totals = [(tally.tree.total_bytes, tally.tree.total_blocks) for tally in profile.tallies]
    assert totals == ([allocated] if allocated else [])


def test_blocks_of_tcmalloc_by_their_number_are_those_that_were_allocated() -> None:
    # Its profiles of the heap and of allocations have the same sample types.
    types = [("objects", "count"), ("space", "bytes")]
    profile = read(pprof(types, [Sample((1,), (3, 300))], [ALONE], default_type="objects"))
    assert profile.snapshots == ()
    assert [(tally.name, tally.tree.total_bytes, tally.tree.total_blocks) for tally in profile.tallies] == [
        ("allocated", 300, 3)
    ]
    in_use = read(pprof(types, [Sample((1,), (3, 300))], [ALONE], default_type="space"))
    assert (in_use.snapshots[0].live_bytes, in_use.tallies) == (300, ())


def test_a_sampled_profile_is_an_estimate_and_is_not_scaled_again() -> None:
    profile = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [ALONE], period=("space", "bytes", 524288)))
    assert (profile.sample_period_bytes, profile.snapshots[0].live_bytes) == (524288, 8)
    assert slugs(profile) == ["heap-sampled"]
    exact = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [ALONE], period=("space", "bytes", 1)))
    assert exact.notes == ()
    timed = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [ALONE], period=("cpu", "nanoseconds", 10)))
    assert timed.sample_period_bytes is None
    # jemalloc_pprof does not write the period of its samples.
    untold = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [ALONE], period=("space", "bytes", 0)))
    assert (untold.sample_period_bytes, slugs(untold)) == (0, ["heap-sampled"])
    assert place_at(untold, None, "a text") == 0
    assert heap_usage("a text", untold, 0, name_frames(untold, "a text", Allocators())).evidence is Evidence.ESTIMATED


@pytest.mark.parametrize(
    ("file", "owner"), [("main.go", "[go heap]"), ("app.js", "[v8 heap]"), ("app.ts", "[v8 heap]"), ("a.c", None)]
)
def test_the_heap_of_a_runtime_is_known_by_the_files(file: str, owner: str | None) -> None:
    profile = read(pprof(GO, [Sample((1,), (1, 8, 1, 8))], [Location(1, (Call("f", file),))]))
    assert profile.heap_owner == owner


# --- what is not memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        ([("samples", "count"), ("cpu", "nanoseconds")], "a CPU profile"),
        ([("contentions", "count"), ("delay", "nanoseconds")], "a profile of waiting for locks"),
        ([("goroutine", "count")], "a profile of goroutines"),
        ([("private", "bytes"), ("mapped", "bytes")], "an account of a process"),
        ([("wall", "nanoseconds")], "a profile of something else"),
        ([], "a profile of something else"),
    ],
)
def test_a_profile_of_something_else_is_refused_by_name(types: list[tuple[str, str]], kind: str) -> None:
    text = pprof(types, [], period=("cpu", "nanoseconds", 10))
    assert looks_like_profile(text, "a text")
    with pytest.raises(UnsupportedError, match=f"{kind}, not of the memory of an allocator: its samples count"):
        read(text)


def test_the_difference_of_two_profiles_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a negative amount"):
        read(pprof(GO, [Sample((1,), (0, 0, -1, -8))], [ALONE]))


# --- damage -----------------------------------------------------------------------------------------------------------

SOUND = pprof(GO, [Sample((1,), (1, 8, 1, 8))], [MAIN], [PROGRAM])


@pytest.mark.parametrize(
    ("rest", "cause"),
    [
        (message(2, b"x" * 9)[:-1], r"offset 0x\w+: a field that is longer than its message"),
        (b"\x12", "a number that is cut"),
        (b"\x60" + b"\xff" * 10, "a number of more than 64 bits"),
        (b"\x63", "unknown wire type 3"),
        (message(2, message(1, b"\x80") + packed(2, (0, 0, 0, 0))), "a number that is cut"),
        (message(2, message(1, b"\x80" * 10 + b"\1") + packed(2, (0, 0, 0, 0))), "a number of more than 64 bits"),
        (message(2, packed(1, (7,)) + packed(2, (0, 0, 0, 0))), "no location 7"),
        (message(2, packed(1, (1,)) + packed(2, (1, 2))), "2 amounts of 4 sample types"),
        (message(4, number(1, 2) + number(2, 9)), "no mapping 9"),
        (message(4, number(1, 2) + message(4, number(1, 9))), "no function 9"),
        (message(4, number(1, 1)), "location 1 is there twice, or has no number"),
        (message(5, number(1, 1)), "function 1 is there twice, or has no number"),
        (message(3, b""), "mapping 0 is there twice, or has no number"),
        (
            message(5, number(1, 5) + number(2, 99)) + message(4, number(1, 2) + message(4, number(1, 5))),
            r"offset 0x\w+: no string 99",
        ),
        (message(2, packed(1, (1,)) + packed(2, (0, 0, 1, 1 << 62))) * 2, "more than an address space"),
    ],
)
def test_damage_is_one_error_with_its_cause(rest: bytes, cause: str) -> None:
    assert read(SOUND).snapshots[0].live_bytes == 8
    with pytest.raises(InputError, match=cause):
        read(SOUND + rest)


def test_more_inlined_calls_than_bytes_are_refused() -> None:
    deep = Location(1, tuple(Call("f") for _ in range(300)))
    with pytest.raises(InputError, match="more calls than any profile has"):
        read(pprof(GO, [Sample((1,) * 200, (1, 8, 1, 8))], [deep]))


def test_a_profile_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.heap.pprof._MOST_BYTES", len(SOUND) - 1)
    with pytest.raises(UnsupportedError, match="too long to hold in memory"):
        read(SOUND)


# --- Go ---------------------------------------------------------------------------------------------------------------

GO_TEXT = b"""heap profile: 3: 1300 [10: 30000] @ heap/2
1: 300 [6: 20000] @ 0x11 0x31
#\t0x10\tmain.f+0x0\t/src/a.go:3
#\t0x30\tmain.main+0x20\t/src/a.go:9

2: 1000 [4: 10000] @ 0x21 0x31

# runtime.MemStats
# Alloc = 4734040
# BySize is gone: 7
"""


def test_the_text_of_go_has_its_calls() -> None:
    profile = read(GO_TEXT)
    assert (profile.format, profile.heap_owner, profile.sample_period_bytes) == ("go", "[go heap]", 1)
    assert profile.frames[1:] == (
        Frame(0x10, "main.f", "/src/a.go", 3),
        Frame(0x30, "main.main", "/src/a.go", 9),
        Frame(0x21),
        Frame(0x31),
    )
    assert profile.snapshots[0].tree is not None
    assert flat_amounts(profile.snapshots[0].tree) == {"main.f": (300, 1), 0x21: (1000, 2)}
    assert flat_amounts(profile.tallies[0].tree) == {"main.f": (20000, 6), 0x21: (10000, 4)}
    assert slugs(profile) == ["heap-no-modules"]


def test_the_text_of_go_is_scaled_by_half_of_its_figure() -> None:
    profile = read(GO_TEXT.replace(b"heap/2", b"heap/1048576"))
    assert profile.sample_period_bytes == 524288
    assert profile.snapshots[0].tree is not None
    # As pprof scales it: 300 / (1 - exp(-300 / 524288)) and 1000 / (1 - exp(-500 / 524288)), rounded down.
    assert flat_amounts(profile.snapshots[0].tree) == {"main.f": (524438, 1748), 0x21: (1049076, 2098)}


def test_the_text_of_go_is_scaled_to_the_last_digit_as_pprof_scales_it() -> None:
    # 6144 / (1 - exp(-1024 / 524288)) is 3,148,801 but for 7e-8: pprof is above it, the exact formula below.
    profile = read(b"heap profile: 6: 6144 [0: 0] @ heap/1048576\n6: 6144 [0: 0] @ 0x10\n#\t0x10\tf+0x0\ta.go:3\n")
    assert profile.snapshots[0].live_bytes == 3_148_801
    # A probability that is 0 in pprof's formula.
    with pytest.raises(InputError, match="scale to more than an address space"):
        read(b"heap profile: 9: 1 [0: 0] @ heap/900000000000000000\n9: 1 [0: 0] @ 0x10\n#\t0x10\tf+0x0\ta.go:3\n")


def test_an_empty_text_of_go_is_empty_and_a_cut_one_has_a_note() -> None:
    empty = read(b"heap profile: 0: 0 [0: 0] @ heap/1048576\n\n# runtime.MemStats\n# Alloc = 1\n")
    assert empty.snapshots[0].live_bytes == 0
    cut = read(GO_TEXT[: GO_TEXT.index(b"2: 1000")])
    assert (slugs(cut), cut.snapshots[0].live_bytes) == (["heap-rows-missing"], 300)


def test_the_profiles_of_a_go_program_have_its_blocks() -> None:
    # 3,000 blocks of 1,000 bytes take 1,024 each; 70,000 bytes take 73,728; 5,000 slices of 24 bytes take 122,880.
    profile = corpus("pprof-go1.26-kept.pb.gz")
    assert profile.snapshots[0].tree is not None
    flat = flat_amounts(profile.snapshots[0].tree)
    assert flat["main.blocks"] == (3_072_000, 3000)
    assert flat["main.inlined"] == (73_728, 1)
    assert flat["main.main"] == (122_880, 1)
    # 300 blocks of 4,096 bytes were freed again.
    assert flat_amounts(profile.tallies[0].tree)["main.dropped"] == (300 * 4096, 300)
    assert (profile.snapshots[0].live_bytes, profile.heap_owner, profile.notes) == (3_279_760, "[go heap]", ())
    assert [module.path for module in profile.modules] == ["/opt/kept/kept", "[vdso]", "[vsyscall]"]
    sampled = corpus("pprof-go1.26-kept-sampled.pb.gz")
    assert (sampled.snapshots[0].live_bytes, sampled.sample_period_bytes) == (3_459_055, 4096)
    text = corpus("heapprofile-go1.26-kept-sampled.txt.gz")
    assert text.sample_period_bytes == 4096
    assert text.snapshots[0].tree is not None
    assert flat_amounts(text.snapshots[0].tree)["main.blocks"] == (3_240_517, 3164)


def test_the_profile_of_a_rust_program_has_its_blocks_at_addresses_of_files() -> None:
    profile = corpus("pprof-jemalloc_pprof0.9.pb.gz")
    # 10,000,000 and 2,400,000 bytes, in size classes of 5,120 and 896, estimated from samples.
    assert (profile.snapshots[0].live_bytes, profile.has_own_allocator, profile.heap_owner) == (12_707_576, True, None)
    assert {frame.object for frame in profile.frames[1:]} == {"./target/release/jp", "/lib/x86_64-linux-gnu/libc.so.6"}
    assert profile.modules[1].build_id == "76bbfe07557a1b6f29dc4134b9d18f664c236358"


# --- our own ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "massif-3.19-default.out",
        "dhat-3.19-heap.json",
        "heaptrack-1.4-ten.txt",
        "heapprofile-jemalloc5.3-heap.txt",
        "pprof-go1.26-kept.pb.gz",
    ],
)
def test_what_footprint_writes_is_read_again(name: str, tmp_path: Path) -> None:
    file = tmp_path / "heap.pb.gz"
    assert main(["heap", str(CORPUS / name), "--format", "pprof", "-o", str(file)]) == 0
    (before,) = footprint.heap_profile(str(CORPUS / name)).files
    (after,) = footprint.heap_profile(str(file)).files
    assert before.tree is not None
    assert after.tree is not None
    assert (after.tree.total_bytes, after.tree.total_blocks) == (before.tree.total_bytes, before.tree.total_blocks)
    assert gzip.decompress(file.read_bytes()).startswith(b"\x0a")
    assert before.attribution is not None
    assert after.attribution is not None
    # A call without a name is named by the file that it is in.
    told = [share for share in before.attribution.shares if not share.function.startswith("[")]
    found = [share for share in after.attribution.shares if not share.function.startswith("[")]
    assert sorted((one.function, one.size_bytes) for one in told) == sorted(
        (one.function, one.size_bytes) for one in found
    )
