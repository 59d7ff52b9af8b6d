"""A new format of heap profiles is one module, one line in the table, and one test."""

import gzip
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import footprint
from footprint import decompression, heap
from footprint.errors import InputError
from footprint.heap import Counted, HeapSnapshot, Profile, formats, looks_like_profile
from footprint.heap.formats import FORMATS, HeapFormat

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
    names = [name for _, name, _ in iter_modules(heap.__path__)]
    readers = {name for name in names if hasattr(import_module(f"footprint.heap.{name}"), f"looks_like_{name}")}
    assert {one.name.lower() for one in FORMATS} == readers


def test_a_format_with_a_line_in_the_table_is_read_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toy.heap"
    path.write_bytes(TOY)
    with pytest.raises(InputError, match="not a profile of massif, DHAT, heaptrack, Go, gperftools, jemalloc or pprof"):
        footprint.heap_profile(str(path))
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, HeapFormat("toy", looks_like_toy, read_toy)))
    assert looks_like_profile(TOY, "toy")
    (file,) = footprint.heap_profile(str(path)).files
    assert file.profile.format == "toy"
    assert [snapshot.live_bytes for snapshot in file.profile.snapshots] == [4096]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_no_format_takes_the_profile_of_another(one: HeapFormat) -> None:
    for text in (b"", b"\0" * 64, b"desc", b"{}", b"v", b"heap", b"%PDF"):
        assert not one.looks_like(text)


@pytest.mark.parametrize(
    "name", ["massif-3.19-default.out", "heapprofile-jemalloc5.3-heap.txt", "heaptrack-1.4-ten.txt"]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_the_line_ends_of_a_terminal_change_no_profile(
    name: str, compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (CORPUS / name).read_bytes()
    terminal = compress(text.replace(b"\n", b"\r\n"))
    expected = heap.read_profile(text, "x")
    assert heap.read_profile(terminal, "x") == expected
    # Pieces end anywhere, also inside of an end of line.
    monkeypatch.setattr(decompression, "PIECE_BYTES", 101)
    assert heap.read_profile(terminal, "x").snapshots == expected.snapshots
