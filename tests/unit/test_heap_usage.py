"""Which moment of a heap profile is meant, and what its figures are."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

import footprint
from footprint.attribution.heap_places import Binary
from footprint.attribution.heap_usage import HeapUsage, name_frames, place_at
from footprint.elf.functions import read_functions
from footprint.elf.image import read_image
from footprint.errors import AccessError, InputError, UsageError
from footprint.heap.allocators import Allocators
from footprint.heap.attribution import NO_SYMBOL
from footprint.heap.formats import read_profile
from footprint.heap.profile import Profile
from footprint.model.row import Evidence
from footprint.verbs.heap.call import program_of
from tests.massifwriter import ROOT, Line, Moment, massif

ROOT_FOLDER = Path(__file__).resolve().parents[2]
CORPUS = ROOT_FOLDER / "tests" / "corpus" / "heap"
SAMPLE = ROOT_FOLDER / "sample_binaries" / "heap_by_function"
PROGRAM = str(SAMPLE / "heap")
LIBRARY = "/srv/samples/heap_by_function/libtable.so"


def moments(unit: str = "ms") -> Profile:
    """Return a profile of five snapshots, of which 1, 3 and 4 have trees; 3 is the peak."""
    tree = Line(8, ROOT, (Line(8, "0x10: f (in /a.so)"),))
    text = massif(
        [
            Moment(0, 0),
            Moment(1000, 8, tree=tree),
            Moment(2000, 8),
            Moment(3000, 8, tree=tree, is_peak=True),
            Moment(4000, 8, tree=tree),
        ],
        time_unit=unit,
    )
    return read_profile(text, "a text")


@pytest.mark.parametrize(
    ("at", "unit", "place"),
    [
        (None, "ms", 3),
        ("peak", "ms", 3),
        ("end", "ms", 4),
        ("1", "ms", 1),
        ("2s", "ms", 1),
        ("2999ms", "ms", 1),
        ("3s", "ms", 3),
        ("1min", "ms", 4),
        ("0.5s", "ms", 1),
        ("3ki", "i", 3),
        ("3.00 kinstrs", "instrs", 3),
        ("3ki", "instrs", 3),
        ("3kµs", "µs", 3),
        ("2 KiB", "B", 1),
        ("3kB", "B", 3),
        ("3500s", "s", 3),
    ],
)
def test_a_moment_is_named_by_its_number_or_its_time(at: str | None, unit: str, place: int) -> None:
    assert place_at(moments(unit), at, "a text") == place


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("2", "snapshot 2 of a text has no call tree: those of 1, 3, 4 do"),
        ("9", "a text has no snapshot 9: the last one is 4"),
        ("2i", "'2i' is not a moment of a text: name the number of a snapshot, a time in ms, peak or end"),
        ("-1", "'-1' is not a moment"),
        ("1.5", "'1.5' is not a moment"),
        ("9" * 40, "is not a moment"),
        ("soon", "'soon' is not a moment"),
    ],
)
def test_what_is_no_moment_is_wrong_use(at: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        place_at(moments(), at, "a text")


def test_without_a_peak_the_largest_snapshot_with_a_tree_stands_for_it() -> None:
    tree = Line(8, ROOT)
    profile = read_profile(massif([Moment(0, 9), Moment(1, 7, tree=tree), Moment(2, 8, tree=tree)]), "a text")
    assert place_at(profile, None, "a text") == 2


def test_without_trees_a_time_is_refused_and_the_largest_snapshot_is_shown() -> None:
    profile = read_profile(massif([Moment(0, 9), Moment(1, 7, stack_bytes=5)]), "a text")
    assert place_at(profile, None, "a text") == 1
    with pytest.raises(UsageError, match="has no call tree at any moment"):
        place_at(profile, "1i", "a text")


# --- only the trees that are wanted -----------------------------------------------------------------------------------


def test_only_the_trees_that_are_wanted_are_built() -> None:
    text = gzip.decompress((CORPUS / "massif-3.19-inline.out.gz").read_bytes())
    whole = read_profile(text, "a text")
    chosen = read_profile(text, "a text", lambda profile: [profile.peak_index or 0, 5])
    assert chosen.tree_places == whole.tree_places == tuple(range(66))
    assert [place for place, snapshot in enumerate(chosen.snapshots) if snapshot.tree is not None] == [5, 63, 65]
    assert [one._replace(tree=None) for one in chosen.snapshots] == [one._replace(tree=None) for one in whole.snapshots]
    assert (chosen.command, chosen.time_unit, chosen.notes) == (whole.command, whole.time_unit, whole.notes)
    for place in (5, 63, 65):
        one, other = chosen.snapshots[place].tree, whole.snapshots[place].tree
        assert one is not None
        assert other is not None
        assert (one.parents, one.node_bytes) == (other.parents, other.node_bytes)
        assert [one.frame(node) for node in range(len(one))] == [other.frame(node) for node in range(len(other))]


@pytest.mark.parametrize(
    "path", [path for path in sorted(CORPUS.iterdir()) if "massif" in path.name], ids=lambda path: path.name
)
def test_what_is_wanted_is_what_is_read_without_choosing(path: Path) -> None:
    data = path.read_bytes()
    whole = read_profile(data, path.name)
    chosen = read_profile(data, path.name, lambda profile: range(len(profile.snapshots)))
    assert chosen.snapshots == whole.snapshots
    assert chosen.notes == whole.notes


def test_a_text_that_was_cut_says_so_whatever_is_wanted() -> None:
    text = (CORPUS / "massif-3.19-default.out").read_bytes()
    end = text.index(b"snapshot=63") + 900
    found = read_profile(text[:end], "a text", lambda _profile: [23])
    assert "heap-text-truncated" in {note.slug for note in found.notes}


# --- the sample, of which all is known --------------------------------------------------------------------------------


def only(*arguments: str, **options: object) -> HeapUsage:
    (usage,) = footprint.heap_profile(*arguments, **options).files  # type: ignore[arg-type] # as varied as the options
    return usage


def functions(usage: HeapUsage) -> list[tuple[str, str, int]]:
    assert usage.attribution is not None
    return [(share.owner, share.function, share.size_bytes) for share in usage.attribution.shares]


@pytest.mark.parametrize("name", ["massif.out", "dhat.json", "heaptrack.txt"])
def test_the_peak_of_the_sample_is_what_its_source_says(name: str) -> None:
    usage = only(str(SAMPLE / name), binaries=[PROGRAM])
    program = "/srv/samples/heap_by_function/heap" if name == "heaptrack.txt" else PROGRAM
    known = [row for row in functions(usage) if "libstdc++" not in row[0]]
    assert known == [
        (program, "load_parameters", 100_000),
        (LIBRARY, "table_new", 50_000),
        (program, "parse_file", 30_000),
    ]
    assert usage.snapshot is not None
    assert usage.snapshot.live_bytes == 180_000 + (72_704 if name == "heaptrack.txt" else 0)
    assert usage.evidence is Evidence.MEASURED
    assert usage.notes == ()


@pytest.mark.parametrize("name", ["dhat.json", "heaptrack.txt"])
def test_the_end_of_the_sample_has_no_more_of_what_was_freed(name: str) -> None:
    usage = only(str(SAMPLE / name), at="end", binaries=[PROGRAM])
    known = [(function, size) for owner, function, size in functions(usage) if "libstdc++" not in owner]
    assert known == [("load_parameters", 100_000), ("table_new", 50_000)]


def test_the_end_of_massif_is_its_last_tree() -> None:
    usage = only(str(SAMPLE / "massif.out"), at="end")
    assert usage.snapshot is not None
    assert (usage.snapshot.number, len(usage.profile.snapshots)) == (13, 14)


def test_where_the_end_has_no_tree_the_one_that_stands_for_it_is_told() -> None:
    usage = only(str(CORPUS / "massif-3.19-default.out"), at="end")
    assert usage.snapshot is not None
    assert usage.snapshot.number == 63
    note = next(note for note in usage.notes if note.slug == "heap-end-untold")
    assert note.detail.startswith("snapshot 63 (2.02 MiB live) is used for the end: it has the last call tree, and ")
    assert "snapshot 65 (120.8 KiB live) has none" in note.detail
    assert "heap-end-untold" not in {note.slug for note in only(str(SAMPLE / "massif.out"), at="end").notes}


def test_the_end_of_massif_is_unknown_without_an_xtree() -> None:
    usage = only(str(SAMPLE / "massif.out"), at="end")
    (note,) = (note for note in usage.notes if note.slug == "heap-end-unknown")
    assert "the last one (13) has 175.8 KiB live, and how much of that was freed afterwards is unknown" in note.detail
    xtree = only(str(CORPUS / "massif-3.19-xtmemory-full.ms.gz"), at="end")
    assert "heap-end-unknown" not in {note.slug for note in xtree.notes}


def test_massif_counts_what_the_allocator_adds() -> None:
    usage = only(str(SAMPLE / "massif.out"))
    assert usage.snapshot is not None
    assert (usage.snapshot.extra_bytes, usage.total_bytes) == (824, 180_824)


def test_the_only_function_with_lines_places_its_file_although_another_frame_names_the_file() -> None:
    # Valgrind names the object of a frame where it has no line: `_start`, the only one without, is below main.
    tree = Line(64, ROOT, (Line(64, "0x1084B0: load_parameters (heap.c:13)", (_below_main(64),)),))
    profile = read_profile(massif([Moment(1, 64, tree=tree)]), "a text")
    image = read_image((SAMPLE / "heap").read_bytes(), PROGRAM)
    calls = name_frames(profile, "a text", Allocators(), [Binary(PROGRAM, image, read_functions(image))]).calls
    assert calls[1][:2] == (PROGRAM, "load_parameters")


def _below_main(size_bytes: int) -> Line:
    return Line(size_bytes, f"0x1084A0: (below main) (in {PROGRAM})")


def test_without_the_program_its_functions_are_known_and_its_object_is_not(tmp_path: Path) -> None:
    usage = only(str(shutil.copy(SAMPLE / "massif.out", tmp_path)))
    only_lines = "[no object: lines only]"
    assert functions(usage)[0] == (only_lines, "load_parameters", 100_000)
    assert usage.attribution is not None
    assert usage.attribution.attributed_bytes == 50_000
    (note,) = usage.notes
    assert note.slug == "heap-objects-untold"
    assert "72.2% of the bytes" in note.detail


def test_the_program_of_the_command_tells_the_objects_where_it_fits(tmp_path: Path) -> None:
    # The command is `./heap`: the program lies beside the profile.
    profile = str(shutil.copy(SAMPLE / "massif.out", tmp_path))
    program = str(shutil.copy(SAMPLE / "heap", tmp_path))
    usage = only(profile)
    assert functions(usage)[0] == (program, "load_parameters", 100_000)
    (note,) = usage.notes
    assert (note.slug, note.detail) == (
        "heap-binary-taken",
        f"{program}, the program of its command, tells the objects of its functions: they have their addresses there",
    )


def test_another_program_at_the_place_of_the_command_is_not_taken(tmp_path: Path) -> None:
    profile = str(shutil.copy(SAMPLE / "massif.out", tmp_path))
    shutil.copy(ROOT_FOLDER / "sample_binaries" / "condor_shadow" / "base", tmp_path / "heap")
    usage = only(profile)
    assert functions(usage)[0][0] == "[no object: lines only]"
    assert [note.slug for note in usage.notes] == ["heap-binary-misfit", "heap-objects-untold"]
    assert (
        "/heap, the program of its command: it is of another build or process, or they fit at several"
        in usage.notes[0].detail
    )


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("tool --fast", "bin/tool"),
        ("./local tool", "profiles/local tool"),
        ("{root}/bin/tool", "bin/tool"),
        ("missing tool", None),
        ("data", None),
        ("", None),
    ],
)
def test_the_program_of_a_command_is_looked_for_as_a_shell_would(
    command: str, result: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin/tool", "profiles/local tool"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(0o755)
    (tmp_path / "bin" / "data").touch(0o644)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    program = program_of(command.format(root=tmp_path), str(tmp_path / "profiles"), None)
    assert program == result or (program is not None and os.path.samefile(program, tmp_path / (result or "")))


def test_another_program_is_not_taken_for_the_one_that_was_profiled() -> None:
    base = str(ROOT_FOLDER / "sample_binaries" / "condor_shadow" / "base")
    usage = only(str(SAMPLE / "massif.out"), binaries=[base])
    assert {row[0] for row in functions(usage)} == {LIBRARY, "[no object: lines only]"}
    assert "heap-binary-misfit" in {note.slug for note in usage.notes}


def test_a_binary_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"massif\.out"):
        only(str(SAMPLE / "massif.out"), binaries=[str(SAMPLE / "massif.out")])
    with pytest.raises(AccessError, match="No such file"):
        only(str(SAMPLE / "massif.out"), binaries=["/nowhere/program"])


def test_nothing_to_read_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="at least one heap profile"):
        footprint.heap_profile()


def test_of_several_profiles_one_that_cannot_be_read_is_a_note() -> None:
    found = footprint.heap_profile(str(SAMPLE / "massif.out"), str(SAMPLE / "heap"), "/nowhere", binaries=[PROGRAM])
    assert [usage.file for usage in found.files] == [str(SAMPLE / "massif.out")]
    assert [(note.slug, note.subject) for note in found.notes] == [
        ("file-unreadable", str(SAMPLE / "heap")),
        ("file-unreadable", "/nowhere"),
    ]
    with pytest.raises(InputError, match="nothing could be read"):
        footprint.heap_profile(str(SAMPLE / "heap"), "/nowhere")


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("massif-3.19-pages-as-heap.out", Evidence.VIRTUAL),
        ("massif-heaptrack1.4-detail1.out", Evidence.ESTIMATED),
        ("heapprofile-jemalloc5.3-sampled-ten.txt", Evidence.ESTIMATED),
        ("massif-3.19-default.out", Evidence.MEASURED),
    ],
)
def test_how_the_amounts_are_known(name: str, evidence: Evidence) -> None:
    assert only(str(CORPUS / name)).evidence is evidence


def test_what_was_only_counted_is_no_memory_of_a_moment() -> None:
    usage = only(str(CORPUS / "dhat-3.19-copy-ten.json"))
    assert (usage.snapshot, usage.tally) == (None, "copied")
    assert usage.attribution is not None
    assert usage.attribution.total_bytes == 285


def test_counts_of_blocks_in_an_xtree_are_not_taken_for_bytes() -> None:
    usage = only(str(CORPUS / "massif-3.19-xtmemory-full.ms.gz"))
    assert usage.attribution is not None
    assert [(share.size_bytes, share.block_count) for share in usage.attribution.shares] == [(123_456, 1)]


# --- files that are placed by their functions -------------------------------------------------------------------------


def test_places_without_a_name_are_named_by_the_file_where_its_functions_are_placed() -> None:
    # In libtable.so xmalloc is local: Valgrind would not know it, were its symbols in a debug file.
    text = (SAMPLE / "massif.out").read_text().replace("xmalloc (in", "??? (in")
    path = str(SAMPLE / "libtable.so")
    text = text.replace(LIBRARY, path)
    profile = read_profile(text.encode(), "a text", lambda known: [known.peak_index or 0])
    image = read_image(Path(path).read_bytes(), path)
    binary = Binary(path, image, read_functions(image))
    without, with_file = (name_frames(profile, "a text", Allocators(), some).calls for some in ((), (binary,)))
    assert (path, NO_SYMBOL) in {call[:2] for call in without}
    assert (path, "xmalloc") in {call[:2] for call in with_file}
    assert (path, NO_SYMBOL) not in {call[:2] for call in with_file}
