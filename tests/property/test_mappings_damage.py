"""Hostile memory maps: whatever happens to a text, it is read or refused, and what is read does not depend on how."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from footprint.errors import InputError
from footprint.process.mappings import Counters, Mapping, MemoryMap
from footprint.process.maps_text import parse_maps

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
# Flags last, a counter last, none at all.
SMAPS = (CORPUS / "smaps-static64.txt").read_bytes()
OLD_SMAPS = (CORPUS / "smaps-reconstructed-2.6.26.txt").read_bytes()
MAPS = (CORPUS / "maps-odd.txt").read_bytes()
TEXTS = st.sampled_from([SMAPS, OLD_SMAPS, MAPS])
BARE_KEYS = {"THPeligible", "ProtectionKey"}


def read(text: bytes) -> MemoryMap | None:
    """Return the map, or None where the text is refused; any other exception is a failed test."""
    try:
        return parse_maps(text, "a text")
    except InputError:
        return None


def written(mappings: tuple[Mapping, ...]) -> bytes:
    """Write mappings as show_map_vma, __show_smap and show_smap_vma_flags of fs/proc/task_mmu.c do."""
    lines: list[str] = []
    for mapping in mappings:
        ends = f"{mapping.start_addr:08x}-{mapping.end_addr:08x}"
        place = f"{ends} {mapping.permissions} {mapping.offset:08x} {mapping.device} {mapping.inode}"
        lines.append(f"{place:<72} {mapping.name}" if mapping.name else f"{place} ")
        for key, value in zip(mapping.counters.keys, mapping.counters.values, strict=True):
            label, amount = f"{key}: ".ljust(16), value if key in BARE_KEYS else value // 1024
            lines.append(f"{label}{amount:{24 - len(label)}}" + ("" if key in BARE_KEYS else " kB"))
        if mapping.vm_flags is not None:
            lines.append("VmFlags:" + "".join(f" {code}" for code in mapping.vm_flags.split()) + " ")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


# --- there and back -------------------------------------------------------------------------------------------------

NAMES = st.binary(max_size=40).filter(lambda name: b"\n" not in name and not name.startswith(b" "))
KEYS = st.from_regex(r"[A-Z][A-Za-z_]{0,14}", fullmatch=True).filter(lambda key: key not in {"Name", "VmFlags"})
AMOUNTS = st.integers(0, 1 << 40)


@st.composite
def memory_maps(draw: st.DrawFn) -> tuple[Mapping, ...]:
    """Draw mappings as any kernel might have them: one set of keys for all, as in every smaps, or none, as in maps."""
    keys = [*draw(st.lists(KEYS, max_size=5, unique=True)), *draw(st.sampled_from([(), tuple(sorted(BARE_KEYS))]))]
    has_flags = bool(keys) and draw(st.booleans())
    addrs = sorted(draw(st.lists(st.integers(0, (1 << 52) - 1), min_size=2, max_size=8, unique=True)))
    mappings = []
    for start, end in pairwise(addrs):
        amounts = [draw(AMOUNTS) * (1 if key in BARE_KEYS else 1024) for key in keys]
        mappings.append(
            Mapping(
                start << 12,
                end << 12,
                draw(st.from_regex(r"[r-][w-][x-][ps]", fullmatch=True)),
                draw(st.integers(0, (1 << 64) - 1)),
                draw(st.from_regex(r"[0-9a-f]{2,3}:[0-9a-f]{2,5}", fullmatch=True)),
                draw(st.integers(0, (1 << 64) - 1)),
                draw(NAMES).decode("utf-8", "surrogateescape"),
                Counters({key: place for place, key in enumerate(keys)}, tuple(amounts)),
                " ".join(draw(st.lists(st.from_regex(r"[a-z?][a-z?]", fullmatch=True), max_size=5)))
                if has_flags
                else None,
            )
        )
    return tuple(mappings)


@given(memory_maps())
def test_a_map_that_is_written_and_read_again_is_the_same(mappings: tuple[Mapping, ...]) -> None:
    assert parse_maps(written(mappings), "a text").mappings == mappings


@pytest.mark.parametrize("name", ["sleep", "odd", "node", "python3", "static64"])
def test_nothing_of_a_text_of_linux_6_18_is_lost_on_the_way_there_and_back(name: str) -> None:
    for kind in ("maps", "smaps", "smaps_rollup"):
        text = (CORPUS / f"{kind}-{name}.txt").read_bytes()
        assert written(parse_maps(text, name).mappings) == text


# --- damage ---------------------------------------------------------------------------------------------------------


@st.composite
def damaged_texts(draw: st.DrawFn) -> bytes:
    """Draw a text of the corpus with bytes replaced, taken out and put in."""
    text = bytearray(draw(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        lost_bytes = draw(st.sampled_from([0, 1, 1, 1, 4, 100, 2000]))
        text[at : at + lost_bytes] = draw(
            st.binary(max_size=4) | st.sampled_from([b"\n", b" ", b"0", b"f", b"-", b"\n0", b" kB\n"])
        )
    return bytes(text)


@given(damaged_texts())
@example(b"7fff00000000-7ffe00000000 rw-p 00000000 00:00 0 \n")
def test_a_damaged_text_is_read_or_refused_and_no_mapping_of_it_has_a_negative_size(text: bytes) -> None:
    memory = read(text)
    assert memory is None or all(mapping.size_bytes >= 0 for mapping in memory.mappings)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    memory = read(text)
    assert memory is None or memory.mappings or not text


@given(st.text("0123456789abcdef-rwxps: \nRskB\r\t", max_size=200))
def test_any_text_of_the_letters_of_a_map_is_read_or_refused(text: str) -> None:
    memory = read(text.encode())
    assert memory is None or memory.mappings or not text


def four_blocks(name: str) -> bytes:
    """Return four mappings of a text, .data, .bss and the heap among them: enough to cut it at every byte."""
    text = (CORPUS / name).read_bytes()
    starts = block_starts(text)
    return text[starts[4] : starts[8]]


def block_starts(text: bytes) -> list[int]:
    return [match.start() for match in re.finditer(rb"^[0-9a-f]+-[0-9a-f]+ ", text, re.MULTILINE)]


CUT_TEXTS = ["maps-static64.txt", "smaps-static64.txt", "smaps-reconstructed-2.6.14.txt", "smaps-reconstructed-5.0.txt"]


@pytest.mark.parametrize("name", CUT_TEXTS)
def test_a_text_cut_at_any_byte_has_the_mappings_before_the_cut_and_no_wrong_counter(name: str) -> None:
    text = four_blocks(name)
    whole = parse_maps(text, name).mappings
    for cut in range(block_starts(text)[1], len(text)):
        mappings = parse_maps(text[:cut], name).mappings
        last, same = mappings[-1], whole[len(mappings) - 1]
        assert mappings[:-1] == whole[: len(mappings) - 1]
        assert (last.start_addr, last.end_addr, last.permissions) == (same.start_addr, same.end_addr, same.permissions)
        assert same.name.startswith(last.name)
        counters = {key: last.counters.get(key) for key in last.counters.keys}  # a field, not a method
        assert counters == {key: same.counters.get(key) for key in counters}, text[:cut][-40:]


@pytest.mark.parametrize("name", CUT_TEXTS)
def test_a_cut_anywhere_but_between_two_mappings_is_noted(name: str) -> None:
    text = four_blocks(name)
    starts = block_starts(text)
    # Before the second mapping nothing tells how long a block is.
    for cut in set(range(starts[1] + 1, len(text))) - set(starts):
        slugs = [note.slug for note in parse_maps(text[:cut], name).notes]
        assert "maps-text-truncated" in slugs, text[:cut][-40:]


# --- pieces ---------------------------------------------------------------------------------------------------------


def in_pieces(text: bytes, cuts: list[int]) -> list[bytes]:
    return [text[start:end] for start, end in pairwise([0, *sorted(cuts), len(text)])]


CUTS = st.lists(st.integers(0, 9000), max_size=6)


@given(TEXTS, CUTS)
def test_pieces_of_any_size_give_the_facts_of_the_whole(text: bytes, cuts: list[int]) -> None:
    pieces = in_pieces(text, [min(cut, len(text)) for cut in cuts])
    assert b"".join(pieces) == text
    assert parse_maps(iter(pieces), "a text") == parse_maps(text, "a text")


@given(damaged_texts(), CUTS)
def test_pieces_of_a_damaged_text_give_the_facts_of_the_whole(text: bytes, cuts: list[int]) -> None:
    pieces = in_pieces(text, [min(cut, len(text)) for cut in cuts])
    try:
        memory = parse_maps(iter(pieces), "a text")
    except InputError:
        memory = None
    assert memory == read(text)
