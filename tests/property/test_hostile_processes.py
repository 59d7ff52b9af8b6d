"""What a text or a file may claim costs neither time nor memory: a few lines are read in the time of a few lines."""

import os
import tracemalloc
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint import audit
from footprint.elf.image import read_image
from footprint.elf.relocations import relocated_pages, relocated_vaddrs
from footprint.errors import InputError
from tests.elfwriter import (
    DT_NEEDED,
    PF_R,
    PF_W,
    PT_LOAD,
    RO,
    RW,
    SHT_NOBITS,
    SHT_RELA,
    SHT_RELR,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Segment,
    Sym,
    write,
)
from tests.workcount import warm_up, work_of

PAGE = 4096
NEEDS = [Dyn(DT_NEEDED, "libc.so.6")]
"""With it the writer adds a dynamic section, which leads to the tables."""


def smaps(path: Path, *places: tuple[int, int], offset: int = 0) -> str:
    """Write mappings of a file, all of them private: address and size."""
    inode = os.stat(path).st_ino
    return "".join(
        f"{start:x}-{start + size:x} rw-p {offset:08x} 08:01 {inode} {path}\n"
        f"Size: {size >> 10} kB\nRss: {size >> 10} kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\n"
        f"Private_Clean: 0 kB\nPrivate_Dirty: {size >> 10} kB\nAnonymous: {size >> 10} kB\n"
        for start, size in places
    )


def library() -> bytes:
    """Write a library of a page that relocations write, and 16 pages of .bss with two variables."""
    return write(
        ElfFile(
            sections=[
                Section(".rela.dyn", SHT_RELA, RO, [Rel(0x4010, 8, addend=0x4000)]),
                Section(".data", flags=RW, data=bytes(PAGE - 0x400), addr=0x4000, align=PAGE),
                Section(".bss", SHT_NOBITS, RW, size=16 * PAGE, addr=0x5000),
            ],
            dynamic=NEEDS,
            symbols=[Sym("count", At(".bss"), 8), Sym("buffer", At(".bss", 8), 15 * PAGE)],
        )
    )


def assert_as_cheap(smaller: Path, larger: Path) -> None:
    """Check that a saved process costs no more than another one, of far fewer pages."""
    warm_up(lambda: audit(str(smaller)))
    few, many = work_of(lambda: audit(str(smaller))), work_of(lambda: audit(str(larger)))
    assert many.line_count < 1.1 * few.line_count


@pytest.mark.parametrize("size", [1 << 38, 1 << 46])
def test_a_mapping_as_large_as_the_address_space_costs_what_others_do(tmp_path: Path, size: int) -> None:
    path, text = tmp_path / "library.so", tmp_path / "smaps"
    path.write_bytes(library())
    data = next(section for section in read_image(library(), "library.so").sections if section.name == ".data")
    text.write_text(smaps(path, (0x100000000000, size), offset=data.offset), encoding="ascii")
    small = tmp_path / "small"
    # From 64 GiB on one may be of a sanitizer, whose marks are looked for then.
    small.write_text(smaps(path, (0x100000000000, 1 << 36), offset=data.offset), encoding="ascii")
    assert_as_cheap(small, text)
    found = audit(str(text))
    rows = [row for row in found.ledger if row.owner == str(path)]
    assert sum(row.bytes or 0 for row in rows) == size
    (buffer,) = [row for row in rows if row.symbol == "buffer"]
    assert (buffer.bytes, buffer.pages, buffer.sole_pages) == (15 * PAGE, 16, 15)
    assert sum(row.relocated_bytes or 0 for row in rows) == PAGE
    # What no program header maps is the file's, and of no section.
    assert sum(row.bytes or 0 for row in rows if row.section is None) > size - (1 << 20)


def saved_with_a_variable(folder: Path, size: int) -> Path:
    """Save a process that has a library with a variable of nearly a size in its .bss; return the text."""
    folder.mkdir()
    path, text = folder / "library.so", folder / "smaps"
    bss = Section(".bss", SHT_NOBITS, RW, size=size, addr=0x4000, align=PAGE)
    data = Section(".data", flags=RW, data=bytes(8), addr=0x3000, align=PAGE)
    segment = Segment(PT_LOAD, PF_R | PF_W, [".data", ".bss"])
    path.write_bytes(write(ElfFile(sections=[data, bss], segments=[segment], symbols=[Sym("all", At(".bss"), size)])))
    offset = next(one for one in read_image(path.read_bytes(), "library.so").sections if one.name == ".data").offset
    text.write_text(smaps(path, (0x100000000000, size), offset=offset), encoding="ascii")
    return text


def test_a_variable_as_large_as_the_address_space_costs_what_others_do(tmp_path: Path) -> None:
    size = 1 << 45
    text = saved_with_a_variable(tmp_path / "large", size)
    assert_as_cheap(saved_with_a_variable(tmp_path / "small", 1 << 30), text)
    found = audit(str(text))
    (row,) = [row for row in found.ledger if row.symbol == "all"]
    assert (row.bytes, row.pages) == (size - PAGE, size // PAGE - 1)
    assert row.sole_pages == row.pages


def test_thousands_of_segments_are_not_gone_through_for_each_mapping(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    segment = Segment(PT_LOAD, PF_R | PF_W, offset=0, vaddr=0, filesz=PAGE, memsz=2 * PAGE)

    def saved(mapping_count: int, segment_count: int) -> Path:
        data = Section(".data", flags=RW, data=bytes(8))
        path.write_bytes(write(ElfFile(sections=[data], segments=[segment] * segment_count)))
        text = tmp_path / "smaps"
        places = [(0x100000000000 + (number << 21), PAGE) for number in range(mapping_count)]
        text.write_text(smaps(path, *places), encoding="ascii")
        return text

    def work(mapping_count: int, segment_count: int) -> int:
        text = saved(mapping_count, segment_count)
        return work_of(lambda: audit(str(text))).line_count

    work(3, 20)  # what is imported is no work of the input
    many_segments, many_mappings, many = work(3, 20_000), work(300, 20), work(300, 20_000)
    assert many <= 1.1 * (many_segments + many_mappings)
    found = audit(str(saved(300, 20_000)))
    assert found.totals.private.bytes == 300 * PAGE
    told = [note for note in found.notes if note.slug == "file-unreadable"]
    assert [note.detail for note in told] == [
        "20000 segments to load are more than any program has, its symbols get no rows of their own"
    ]


def full_bitmaps(count: int) -> bytes:
    """Write a library whose RELR table says 63 addresses with each word."""
    words = array("Q", [0x4000] + [(1 << 64) - 1] * count).tobytes()
    return with_relr(words)


def with_relr(words: bytes) -> bytes:
    return write(ElfFile(sections=[Section(".relr.dyn", SHT_RELR, RO, words)], dynamic=NEEDS))


def test_a_table_of_bitmaps_costs_the_memory_of_its_pages() -> None:
    image = read_image(full_bitmaps(200_000), "library.so")
    tracemalloc.start()
    try:
        found = relocated_pages(image, PAGE)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 0x4000 and its word, then 63 words for each bitmap.
    assert found == tuple(range(4, (0x4000 + 8 + 200_000 * 63 * 8 - 8) // PAGE + 1))
    assert peak_bytes < 16 << 20


def test_more_addresses_than_any_file_has_are_refused() -> None:
    with pytest.raises(InputError, match="more than 8388608 relocations are more than any file has"):
        relocated_vaddrs(read_image(full_bitmaps(200_000), "library.so"))


def test_more_pages_than_any_file_has_are_refused() -> None:
    words = array("Q", range(0, PAGE * (1 << 18) + PAGE, PAGE)).tobytes()
    image = read_image(with_relr(words), "library.so")
    with pytest.raises(InputError, match="relocations in more than 262144 pages are more than any file has"):
        relocated_pages(image, PAGE)


WORDS = st.one_of(
    st.integers(0, 1 << 20).map(lambda number: number * 2),
    st.integers(0, (1 << 64) - 1).map(lambda number: number | 1),
    st.sampled_from([1, (1 << 64) - 1, 1 << 63 | 1, 3, (1 << 64) - 8]),
)


@given(st.lists(WORDS, max_size=40), st.sampled_from([4096, 16384, 65536]), st.lists(st.integers(0, (1 << 64) - 1)))
def test_the_pages_are_those_of_the_addresses(words: list[int], page_bytes: int, offsets: list[int]) -> None:
    rela = Section(".rela.dyn", SHT_RELA, RO, [Rel(offset, 8, addend=1) for offset in offsets])
    relr = Section(".relr.dyn", SHT_RELR, RO, array("Q", words).tobytes())
    image = read_image(write(ElfFile(sections=[rela, relr], dynamic=NEEDS)), "library.so")
    assert len(relocated_vaddrs(image)) >= len(offsets) + sum(word % 2 == 0 for word in words)
    expected = sorted({vaddr // page_bytes for vaddr in relocated_vaddrs(image)})
    assert list(relocated_pages(image, page_bytes)) == expected


@given(st.lists(WORDS.map(lambda word: word & 0xFFFFFFFF), max_size=40))
def test_the_pages_are_those_of_the_addresses_in_a_file_of_32_bits(words: list[int]) -> None:
    relr = Section(".relr.dyn", SHT_RELR, RO, array("I", words).tobytes())
    image = read_image(write(ElfFile(bits=32, sections=[relr], dynamic=NEEDS)), "library.so")
    expected = sorted({vaddr // PAGE for vaddr in relocated_vaddrs(image)})
    assert list(relocated_pages(image, PAGE)) == expected
