"""A new format of heap profiles is one module, one line in the table, and one test."""

import gzip
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import footprint
from footprint import heap
from footprint.errors import InputError, UnsupportedError
from footprint.heap import formats
from footprint.heap.formats import FORMATS, HeapFormat, looks_like_profile, read_profile
from footprint.heap.profile import Counted, HeapSnapshot, Profile
from footprint.system import decompression

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"
TOY = b"toy heap\n4096\n"


def looks_like_toy(start: bytes) -> bool:
    return start.startswith(b"toy heap\n")


def read_toy(pieces: Iterable[bytes], source: str) -> Profile:
    text = b"".join(pieces)
    if not text.endswith(b"\n"):
        raise InputError(source, "the text is cut")
    return Profile("toy", Counted.HEAP, snapshots=(HeapSnapshot(0, None, int(text.split(b"\n")[1])),))


def test_every_module_that_reads_a_format_has_a_line_in_the_table() -> None:
    names = {name for _, name, _ in iter_modules(heap.__path__)} - {"formats"}
    modules = [import_module(f"footprint.heap.{name}") for name in names]
    readers = {name.removeprefix("looks_like_") for module in modules for name in vars(module) if "looks_like_" in name}
    assert {one.name.lower() for one in FORMATS} == readers


def test_a_format_with_a_line_in_the_table_is_read_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toy.heap"
    path.write_bytes(TOY)
    with pytest.raises(InputError, match=r"not a profile of massif, DHAT, heaptrack, .* NMT or LeakSanitizer"):
        footprint.heap_profile(str(path))
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, HeapFormat("toy", looks_like_toy, read_toy)))
    assert looks_like_profile(TOY, "toy")
    (file,) = footprint.heap_profile(str(path)).files
    assert file.profile.format == "toy"
    assert [snapshot.live_bytes for snapshot in file.profile.snapshots] == [4096]


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
def test_no_format_takes_the_profile_of_another(form: HeapFormat) -> None:
    for text in (b"", b"\0" * 64, b"desc", b"{}", b"v", b"heap", b"%PDF"):
        assert not form.looks_like(text)


@pytest.mark.parametrize(
    "name", ["massif-3.19-default.out", "heapprofile-jemalloc5.3-heap.txt", "heaptrack-1.4-ten.txt"]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_the_line_ends_of_a_terminal_change_no_profile(
    name: str, compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (CORPUS / name).read_bytes()
    terminal = compress(text.replace(b"\n", b"\r\n"))
    expected = read_profile(text, "x")
    assert read_profile(terminal, "x") == expected
    # Pieces end anywhere, also inside of an end of line.
    monkeypatch.setattr(decompression, "PIECE_BYTES", 101)
    assert read_profile(terminal, "x").snapshots == expected.snapshots


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"# callgrind format\n", "an XTree in callgrind's format"),
        (b"-" * 80 + b"\nCommand:  ./a\n", "the output of ms_print"),
        (b"--- symbol\nbinary=/a\n", "a profile that pprof or jeprof has rewritten"),
        (b"memray\0\x0d\0\0\0", "a recording of memray"),
        # compressed: a frame of LZ4
        (b"\x04\x22\x4d\x18\x40\x40\xc0\x36\x0c\0\0\xf9\x05memray\0\x0d\0", "a recording of memray"),
        (
            b"\x80\x05\x95M\x05\0\0\0\0\0\0\x8c\x0btracemalloc\x94\x8c\x08Snapshot",
            "a snapshot of tracemalloc is a pickle",
        ),
        (b'{"snapshot":{"meta":{"node_fields":["type"', "a heap snapshot of V8"),
        (b"goroutine profile: total 1\n", "a profile of Go, not of memory"),
        (b"--- mutex:\ncycles/second=1\n", "a profile of Go, not of memory"),
        (b"\0" * 8 + b"\3" + b"\0" * 15, "a CPU profile of gperftools"),
        (b"JAVA PROFILE 1.0.2\0", "a heap dump or flight recording of Java"),
        (b"PERFILE2", "a recording of perf"),
    ],
)
def test_what_is_not_read_is_refused_by_name(text: bytes, cause: str) -> None:
    assert not looks_like_profile(text, "a text")
    with pytest.raises(UnsupportedError, match=cause):
        read_profile(text, "a text")


@pytest.mark.parametrize(
    "name",
    [
        "massif-3.19-default.out",
        "heapprofile-jemalloc5.3-heap.txt",
        "heaptrack-1.4-ten.txt",
        "dhat-3.19-copy-ten.json",
    ],
)
@pytest.mark.parametrize(
    ("before", "count"),
    [
        (b"\xef\xbb\xbf", 0),  # a byte order mark, as editors of Windows write it
        (b"\n \n", 0),
        (b"Listening on port 80\n==7== Massif\n", 2),
        (b"\xef\xbb\xbf\nready\n", 1),
    ],
)
def test_a_profile_is_read_behind_a_mark_empty_lines_and_a_log(name: str, before: bytes, count: int) -> None:
    data = (CORPUS / name).read_bytes()
    profile, alone = read_profile(before + data, "a text"), read_profile(data, "a text")
    assert looks_like_profile(before + data, "a text")
    assert [snapshot[:5] for snapshot in profile.snapshots] == [snapshot[:5] for snapshot in alone.snapshots]
    assert [tally.tree.total_bytes for tally in profile.tallies] == [tally.tree.total_bytes for tally in alone.tallies]
    told = [note.detail.split(",")[0] for note in profile.notes if note.slug == "heap-lines-unread"]
    assert told == ([f"{count} line{'s' * (count > 1)} before the profile"] if count else [])


def test_a_tree_is_chosen_behind_a_log() -> None:
    data = b"a log\n" + (CORPUS / "massif-3.19-default.out").read_bytes()
    peak = read_profile(data, "a text", lambda profile: [profile.peak_index or 0]).peak
    assert peak is not None
    assert peak.tree is not None


@pytest.mark.parametrize(
    ("data", "cause"),
    [(b"", "the file is empty"), (b"v 10400 3\n", "an empty recording"), ("desc: x".encode("utf-16"), "UTF-16")],
)
def test_what_holds_no_profile_says_why(data: bytes, cause: str) -> None:
    with pytest.raises((InputError, UnsupportedError), match=cause):
        read_profile(data, "a text")
