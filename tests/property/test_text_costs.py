"""What a hostile text may cost: time and memory stay near those of its size, or it is refused early."""

import tracemalloc
from collections.abc import Callable

import pytest

from footprint.errors import InputError
from footprint.process import maps_text, pmap_lines
from footprint.process.mappings import MemoryMap
from footprint.process.maps_text import parse_maps
from footprint.process.pmap import parse_pmap
from tests.workcount import assert_linear

MIB = 1 << 20
TEXT_BYTES = 2 * MIB
# Without the caps these texts took hundreds of bytes a byte.
MOST_BYTES_EACH = 24

ROW = b"00400000      4K r-x-- a\n"
HEADER = b"100000000000-100000001000 rw-p 00000000 00:00 0 \n"


def refusal(read: Callable[[], object]) -> str:
    """Return the refusal; "" without one."""
    try:
        read()
    except InputError as error:
        return str(error)
    return ""


def most_bytes(read: Callable[[], object]) -> int:
    """Return the most memory at a time; watching it takes long."""
    tracemalloc.start()
    try:
        refusal(read)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def filled(begin: bytes, line: bytes, size: int = TEXT_BYTES) -> bytes:
    return begin + line * (size // len(line))


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b" \t\n", b" ", b"a ", b"\0", b"12 "])
def test_lines_of_pmap_that_say_nothing_cost_little(line: bytes) -> None:
    assert_linear(lambda size: filled(ROW, line, size), lambda text: parse_pmap(text, "a text"), 2 << 10)
    text = filled(ROW, line)
    assert most_bytes(lambda: parse_pmap(text, "a text")) < MOST_BYTES_EACH * len(text)


@pytest.mark.parametrize("line", [b"x\n", b"? no row\n", b"=\n", b"1:\n", b"a 1K\n"])
def test_a_text_of_more_lines_than_any_pmap_prints_is_refused(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (pmap_lines._MOST_UNKNOWN_LINES, pmap_lines._MOST_OTHER_LINES) == (1 << 16, 1 << 18)
    monkeypatch.setattr(pmap_lines, "_MOST_UNKNOWN_LINES", 1 << 12)
    monkeypatch.setattr(pmap_lines, "_MOST_OTHER_LINES", 1 << 14)
    text = ROW + line * ((1 << 14) + 1)
    assert "than any pmap prints" in refusal(lambda: parse_pmap(text, "a text"))
    assert_linear(
        lambda size: filled(ROW, line, size), lambda text: refusal(lambda: parse_pmap(text, "a text")), 2 << 10
    )


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        (HEADER + b"Size: 4 kB\n", b"\n"),
        (HEADER, b"x\n"),
        (b"", b"\n"),
        (b"", b"00000000-\n"),
        (b"", HEADER + b"\n" * 7500),
    ],
)
def test_a_text_of_more_lines_than_any_kernel_prints_is_refused(
    begin: bytes, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert maps_text._MOST_UNKNOWN_LINES == 1 << 16
    # An eighth of the lines, in an eighth of the text.
    monkeypatch.setattr(maps_text, "_MOST_UNKNOWN_LINES", 1 << 13)
    text = filled(begin, line, TEXT_BYTES // 8)
    assert "than any kernel prints" in refusal(lambda: parse_maps(text, "a text"))
    assert most_bytes(lambda: parse_maps(text, "a text")) < MOST_BYTES_EACH * len(text)
    assert_linear(
        lambda size: filled(begin, line[:99], size), lambda text: refusal(lambda: parse_maps(text, "a text")), 2 << 10
    )


def test_every_mapping_with_keys_of_its_own_costs_no_pattern_of_its_own() -> None:
    def with_keys(mapping_count: int) -> bytes:
        keys = (b"".join(b"A%d_%d: 1 kB\n" % (block, key) for key in range(20)) for block in range(mapping_count))
        return b"".join(HEADER + block for block in keys)

    assert_linear(with_keys, lambda text: parse_maps(text, "a text"), 100)
    assert len(parse_maps(with_keys(3000), "a text").mappings) == 3000


def test_a_block_of_many_keys_keeps_the_lines_beyond_the_first_as_they_stand() -> None:
    text = HEADER + b"".join(b"K%d: 1 kB\n" % key for key in range(1000))
    mapping = parse_maps(text, "a text").mappings[0]
    assert len(mapping.counters.keys) + len(mapping.unknown_lines) == 1000
    assert mapping.unknown_lines[-1] == "K999: 1 kB"


def test_lines_of_a_new_shape_in_each_of_very_many_mappings_are_kept() -> None:
    block = b"%x-%x rw-p 00000000 00:00 0 \nSize: 4 kB\nOfAKernelToCome: this that\n"
    text = b"".join(block % (at << 20, (at << 20) + 4096) for at in range(4096, 4096 + 70000))
    memory: MemoryMap = parse_maps(text, "a text")
    assert len(memory.mappings) == 70000
    assert all(mapping.unknown_lines == ("OfAKernelToCome: this that",) for mapping in memory.mappings)


@pytest.mark.parametrize("piece_bytes", [40, 4096, MIB])
def test_headers_are_found_behind_much_that_has_none(piece_bytes: int) -> None:
    second = HEADER.replace(b"1000", b"2000")
    text = HEADER + (b"j" * 1000 + b"\n") * 6000 + second + b"Rss: 4 kB\n"
    pieces = (text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes))
    memory = parse_maps(pieces, "a text")
    assert [mapping.start_addr for mapping in memory.mappings] == [0x100000000000, 0x200000000000]
    assert memory.mappings[1].counters.get("Rss") == 4096
