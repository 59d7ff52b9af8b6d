"""Hostile linker maps: whatever happens to one, it gives facts or one clear error, quickly and in bounds."""

import tracemalloc
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.contents import read_contents
from footprint.elf.image import read_image
from footprint.elf.linker_map import linked_libraries, read_linker_map
from footprint.elf.origins import Origins
from footprint.errors import InputError
from tests.examples import examples
from tests.workcount import assert_linear

MAPS = Path(__file__).parents[1] / "corpus" / "linker_maps"
NAMES = sorted(path.stem for path in MAPS.glob("*.map"))
LLD_START = b"             VMA              LMA     Size Align Out     In      Symbol\n"
GNU_START = b"\n*default*        0x0000000000000000 0xffffffffffffffff\n"
GNU_START += b".data           0x0000000000004000 0x0000000010000000\n"


@cache
def sample(name: str) -> bytes:
    return (MAPS / f"{name}.map").read_bytes()


def refusal(data: bytes) -> InputError | None:
    try:
        read_linker_map(data, "a.map")
    except InputError as error:
        return error
    return None


def check(data: bytes, name: str) -> None:
    """Read a map, and cut the file of its origin by it: all bytes stay owned."""
    if error := refusal(data):
        assert error.file == "a.map"
        assert error.cause
        return
    linker_map = read_linker_map(data, "a.map")
    vaddrs = [one.vaddr for one in linker_map.sections]
    assert vaddrs == sorted(vaddrs)
    assert all(one.size_bytes > 0 for one in linker_map.sections)
    image = read_image((MAPS / f"{name}.so").read_bytes(), f"{name}.so")
    found = Origins(image, read_contents(image), (image.file, None), linker_map)
    for section in found.sections:
        assert sum(share.size_bytes for share in found.shares(section).values()) == section.contents.size_bytes
    assert all(note.subject == "a.map" for note in found.notes())


@given(st.sampled_from(NAMES), st.data())
@examples(150)
def test_a_map_that_is_cut_gives_what_was_there(name: str, data: st.DataObject) -> None:
    whole = sample(name)
    check(whole[: data.draw(st.integers(0, len(whole)))], name)


@given(st.sampled_from(NAMES), st.data())
@examples(250)
def test_a_map_with_bytes_changed_gives_facts_or_one_error(name: str, data: st.DataObject) -> None:
    damaged = bytearray(sample(name))
    places = st.integers(0, len(damaged) - 1)
    for at in data.draw(st.lists(places, min_size=1, max_size=20)):
        damaged[at] = data.draw(st.sampled_from(b"\0\n\r 0123456789abcdefx.:()*\xff"))
    check(bytes(damaged), name)


@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
@examples(60)
def test_a_map_with_lines_in_disorder_gives_facts_or_one_error(name: str, random: Random) -> None:
    lines = sample(name).split(b"\n")
    random.shuffle(lines)
    check(lines[0] + b"\n" + b"\n".join(lines), name)


@pytest.mark.parametrize("start", [LLD_START, GNU_START], ids=["columns", "gnu"])
@pytest.mark.parametrize(
    "line",
    [b" " * 4096, b"a" * 4096, b"a " * 2048, b" a" + b" " * 4000 + b"b", b" .d" + b" " * 60 + b"0x" + b"0" * 4000, b""],
    ids=["spaces", "letters", "words", "gap", "zeros", "empty"],
)
def test_the_cost_of_hostile_lines_is_linear(start: bytes, line: bytes) -> None:
    def lines(count: int) -> bytes:
        return start + b"    1000 1000 10 4 .data\n" + (line + b"\n") * count

    assert_linear(lines, lambda data: read_linker_map(data, "a.map"), 2_000 if not line else 4)


@pytest.mark.parametrize(
    ("start", "line"), [(LLD_START, b"1 "), (GNU_START, b" .data 0x1 0x1 a")], ids=["columns", "gnu"]
)
def test_one_line_of_many_megabytes_is_passed_over(start: bytes, line: bytes) -> None:
    def one_line(size: int) -> bytes:
        return start + b"    1000 1000 10 4 .data\n" + line * (size // len(line))

    def read_nothing(data: bytes) -> None:
        assert read_linker_map(data, "a.map").sections == ()

    assert_linear(one_line, read_nothing, 64 << 10)
    read_nothing(one_line(8_000_000))


def test_the_memory_of_a_map_is_that_of_what_was_asked_for() -> None:
    line = b"    1000 1000 10 4         a.o:(.text.f)\n"
    data = LLD_START + b"    1000 1000 10 4 .text\n" + line * 50_000 + b"    9000 9000 10 4 .data\n"
    tracemalloc.start()
    found = read_linker_map(data, "a.map", {".data"})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.sections == ()
    assert peak_bytes < 1 << 18


def test_a_map_of_more_sections_than_any_program_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.linker_map._MOST_ENTRIES", 1000)
    for line in (b"    1000 1000 10 4 .data\n", b"    1000 1000 10 4         a.o:(.data)\n"):
        error = refusal(LLD_START + b"    1000 1000 10 4 .data\n" + line * 1000)
        assert error is not None
        assert error.cause == "a map of more than 1,000 entries"
    assert refusal(LLD_START + b"    1000 1000 10 4 .data\n" * 1000) is None


@given(st.lists(st.sampled_from([b"LOAD ", b"/l/libz.so", b".1", b"\n", b" ", b"a.o", b"(f)", b"(", b"\0", b"\xff"])))
def test_the_libraries_of_whatever_map_have_lines_of_it(pieces: list[bytes]) -> None:
    data = GNU_START + b"".join(pieces)
    for name, (line, needed_for) in linked_libraries(data, "a.map").items():
        assert ".so" in name
        assert line is None or data.split(b"\n")[line - 1].startswith(b"LOAD ")
        assert line is not None or needed_for


def test_a_map_of_endless_lines_has_its_libraries_quickly() -> None:
    for piece in (b"LOAD a.so", b"\nLOAD ", b"a.so ", b"\na.so.1", b"a.so a.o (", b"\n" + b"a" * 4096):
        # Each line is read a bounded number of times.
        assert len(linked_libraries(GNU_START + piece * 20_000, "a.map")) <= 20_000
