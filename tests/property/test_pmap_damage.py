"""What holds for any damage to the output of pmap: no false row, no silent loss, and none but our errors."""

import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.errors import InputError
from footprint.process.mappings import MemoryMap
from footprint.process.pmap import parse_pmap
from footprint.process.pmap_lines import looks_like_pmap
from tests.examples import examples

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = (
    "pmap-3.3.0-default-sleep.txt",
    "pmap-3.3.0-x-sleep.txt",
    "pmap-3.3.10-XX-sleep.txt",
    "pmap-3.3.10-x-sleep.txt",
    "pmap-4.0.2-X-sleep.txt",
    "pmap-4.0.2-XX-static64.txt",
    "pmap-4.0.2-d-sleep.txt",
    "pmap-4.0.2-d-static64.txt",
    "pmap-4.0.2-default-static64.txt",
    "pmap-4.0.2-x-static64.txt",
    "pmap-4.0.2-x-zombie.txt",
    "pmap-toybox-x-node.txt",
)
# Blocks of one process each that do not count on one another; -X totals hold those of the process before.
INDEPENDENT = tuple(file for file in FILES if "-X" not in file)


@cache
def read(file: str) -> bytes:
    return (CORPUS / file).read_bytes()


@cache
def whole(file: str) -> MemoryMap:
    (memory,) = parse_pmap(read(file), "text")
    return memory


def parse(text: bytes) -> tuple[MemoryMap, ...]:
    """Parse what may be damaged, where one error is allowed."""
    try:
        return parse_pmap(text, "text")
    except InputError:
        return ()


def check(maps: tuple[MemoryMap, ...]) -> None:
    """Check what holds for every memory map."""
    for memory in maps:
        starts = [mapping.start_addr for mapping in memory.mappings]
        assert starts == sorted(starts)
        for mapping in memory.mappings:
            assert 0 <= mapping.start_addr <= mapping.end_addr <= 1 << 64
            assert re.fullmatch("[r-][w-][x-][sp]", mapping.permissions)
            assert len(mapping.counters.values) == len(mapping.counters.keys)
        noted = any(note.slug == "pmap-footer-differs" for note in memory.notes)
        size = memory.footer.get("Kbytes", memory.footer.get("mapped", memory.footer.get("Size")))
        assert noted or size in {None, sum(mapping.size_bytes for mapping in memory.mappings)}
        slugs = [note.slug for note in memory.notes]
        assert len(slugs) == len(set(slugs))


@given(st.sampled_from(FILES), st.data())
def test_a_text_cut_anywhere_gives_only_rows_of_the_whole(file: str, data: st.DataObject) -> None:
    text = read(file)
    end = data.draw(st.integers(0, len(text)))
    maps = parse(text[:end])

    check(maps)
    rows = list(chain.from_iterable(memory.mappings for memory in maps))
    assert rows == list(whole(file).mappings[: len(rows)])
    # Of the lines that are whole, none is lost; rows of 3.3.10 -x are printed twice.
    complete = sum(re.match(rb"\s*[0-9a-f]{8,16} ", line) is not None for line in text[:end].split(b"\n")[:-1])
    assert len(rows) >= (complete + 1) // 2 if "3.3.10-x" in file else len(rows) >= complete


@given(st.sampled_from(["pmap-4.0.2-Xq-odd.txt", "pmap-4.0.2-XXq-odd.txt"]), st.data())
def test_a_text_without_header_cut_anywhere_gives_only_figures_of_the_whole(file: str, data: st.DataObject) -> None:
    text = read(file)
    for memory in parse(text[: data.draw(st.integers(0, len(text)))]):
        for row, of_whole in zip(memory.mappings, whole(file).mappings, strict=False):
            assert row[:7] == of_whole[:7]
            assert row.vm_flags == of_whole.vm_flags
            for key in row.counters.keys:
                assert row.counters.get(key) == of_whole.counters.get(key)


@given(st.sampled_from(FILES), st.data())
def test_a_text_cut_inside_a_row_says_so(file: str, data: st.DataObject) -> None:
    text = read(file)
    row_ends = [match.end() for match in re.finditer(rb"^ *[0-9a-f]{8,16} .*", text, re.MULTILINE)]
    if not row_ends:
        return
    end = data.draw(st.sampled_from(row_ends)) - data.draw(st.integers(1, 9))
    maps = parse(text[:end])

    slugs = {note.slug for memory in maps for note in memory.notes}
    assert not maps or "pmap-text-truncated" in slugs


@given(st.sampled_from(FILES), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6))
def test_a_text_with_other_bytes_gives_maps_or_our_error(file: str, changes: list[tuple[float, int]]) -> None:
    text = bytearray(read(file))
    for place, byte in changes:
        text[int(place * len(text))] = byte

    check(parse(bytes(text)))
    looks_like_pmap(bytes(text))


@given(st.sampled_from(FILES), st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40))
def test_a_text_with_a_piece_replaced_gives_maps_or_our_error(
    file: str, first: float, second: float, piece: bytes
) -> None:
    text = read(file)
    start, end = sorted((int(first * len(text)), int(second * len(text))))

    check(parse(text[:start] + piece + text[end:]))


@given(st.lists(st.tuples(st.sampled_from(FILES), st.integers(0, 99)), max_size=12))
def test_lines_of_several_outputs_in_one_text_give_maps_or_our_error(places: list[tuple[str, int]]) -> None:
    lines = [read(file).splitlines(keepends=True) for file, _ in places]
    text = b"".join(line[place % len(line)] for line, (_, place) in zip(lines, places, strict=True))

    check(parse(text))
    looks_like_pmap(text)


@given(st.sampled_from(FILES), st.integers(0, 60))
def test_an_error_names_the_text_and_the_place(file: str, size: int) -> None:
    text = read(file)[:size]
    try:
        maps = parse_pmap(text, "a text")
    except InputError as error:
        named, offset = error.file, error.offset
    else:
        assert maps
        return

    assert named == "a text"
    assert offset is None or text[offset:] == text.rpartition(b"\n")[2]


@given(st.binary(max_size=300) | st.text("0123456789abcdefKrwxp-s: \n", max_size=300).map(str.encode))
@examples(300)
def test_any_bytes_give_maps_or_our_error(text: bytes) -> None:
    check(parse(text))
    looks_like_pmap(text)


@given(st.permutations(INDEPENDENT))
@examples(30)
def test_what_is_read_of_a_process_does_not_depend_on_the_others(files: list[str]) -> None:
    maps = parse_pmap(b"".join(map(read, files)), "text")

    assert maps == tuple(map(whole, files))


@given(st.permutations([file for file in FILES if "-X" in file]))
def test_rows_of_wide_outputs_do_not_depend_on_the_processes_before(files: list[str]) -> None:
    maps = parse_pmap(b"".join(map(read, files)), "text")

    assert [memory.mappings for memory in maps] == [whole(file).mappings for file in files]


@pytest.mark.parametrize("file", FILES)
def test_line_ends_of_mail_clients_change_nothing(file: str) -> None:
    assert parse_pmap(read(file).replace(b"\n", b"\r\n"), "text") == (whole(file),)


@given(st.sampled_from(FILES), st.integers(1, 12))
def test_indentation_changes_nothing(file: str, width: int) -> None:
    indented = re.sub(rb"^", b" " * width, read(file).removesuffix(b"\n"), flags=re.MULTILINE) + b"\n"

    assert parse_pmap(indented, "text") == (whole(file),)


@given(st.sampled_from(FILES), st.data())
def test_the_order_of_the_lines_of_one_process_changes_no_row(file: str, data: st.DataObject) -> None:
    lines = data.draw(st.permutations(read(file).splitlines(keepends=True)))
    (memory,) = parse_pmap(b"".join(lines), "text")

    assert memory.mappings == whole(file).mappings
    assert memory.footer == whole(file).footer
