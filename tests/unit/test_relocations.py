"""Which addresses the loader writes at start: every encoding of relocations, in view, and what damage to them gives."""

from collections.abc import Callable, Sequence
from typing import Literal

import pytest

from footprint.elf.image import read_image
from footprint.elf.relocations import pack_relative, relocated_pages, relocated_vaddrs
from footprint.errors import InputError
from tests.elfwriter import (
    DT_JMPREL,
    DT_NEEDED,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_REL,
    DT_RELA,
    DT_RELASZ,
    DT_RELR,
    DT_RELRSZ,
    DT_RELSZ,
    EM_MIPS,
    RO,
    RW,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    At,
    Dyn,
    ElfFile,
    Order,
    Piece,
    Rel,
    Section,
    Size,
    Sym,
    patch,
    peek,
    relr,
    write,
)

Bits = Literal[32, 64]

DT_ANDROID_REL, DT_ANDROID_RELSZ, DT_ANDROID_RELA, DT_ANDROID_RELASZ = range(0x6000000F, 0x60000013)
DT_ANDROID_RELR, DT_ANDROID_RELRSZ = 0x6FFFE000, 0x6FFFE001
R_X86_64_64, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE = 1, 7, 8

FILES: list[tuple[Bits, Order]] = [(64, "little"), (64, "big"), (32, "little"), (32, "big")]
four_kinds_of_file = pytest.mark.parametrize(("bits", "order"), FILES, ids=[f"{bits}-{order}" for bits, order in FILES])

DATA = Section(".data", flags=RW, data=bytes(0x100), addr=0x4000)


def addresses(image: bytes) -> list[int]:
    return list(relocated_vaddrs(read_image(image, "library.so")))


def library(
    *tables: Section, dynamic: Sequence[Dyn] = (), bits: Bits = 64, order: Order = "little", symbols: Sequence[Sym] = ()
) -> bytes:
    """Write a library of some tables; the tags of the first REL, RELA and RELR table are added."""
    return write(
        ElfFile(
            bits=bits,
            order=order,
            sections=[*tables, DATA],
            dynamic=[Dyn(DT_NEEDED, "libc.so.6"), *dynamic],
            dynamic_symbols=symbols,
        )
    )


def rela(*offsets: int, name: str = ".rela.dyn") -> Section:
    return Section(name, SHT_RELA, RO, [Rel(offset, R_X86_64_RELATIVE, addend=0x4000) for offset in offsets])


def rel(*offsets: int, name: str = ".rel.dyn") -> Section:
    return Section(name, SHT_REL, RO, [Rel(offset, R_X86_64_RELATIVE) for offset in offsets])


def plain(name: str, *pieces: Piece) -> Section:
    """Return a table whose type says nothing, so that only the tags in the test lead to it."""
    return Section(name, flags=RO, data=list(pieces), align=8)


# --- RELA and REL -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [rel, rela])
@four_kinds_of_file
def test_the_offset_of_each_entry_is_an_address_that_is_written(
    bits: Bits, order: Order, entries: Callable[..., Section]
) -> None:
    image = library(entries(0x4010, 0x4000, 0x4088), bits=bits, order=order)
    assert addresses(image) == [0x4010, 0x4000, 0x4088]


@four_kinds_of_file
def test_the_empty_entry_that_begins_a_table_of_mips_writes_nothing(bits: Bits, order: Order) -> None:
    table = Section(".rel.dyn", SHT_REL, RO, [Rel(0, 0), Rel(0x4010, 3)])
    image = write(
        ElfFile(bits=bits, order=order, machine=EM_MIPS, sections=[table, DATA], dynamic=[Dyn(DT_NEEDED, "libc.so.6")])
    )
    assert addresses(image) == [0x4010]


@four_kinds_of_file
@pytest.mark.parametrize(
    ("kind", "table"),
    [(DT_RELA, rela(0x4020, 0x4028, name=".plt.table")), (DT_REL, rel(0x4020, 0x4028, name=".plt.table"))],
    ids=["rela", "rel"],
)
def test_the_table_of_the_plt_has_the_entries_that_dt_pltrel_says(
    bits: Bits, order: Order, kind: int, table: Section
) -> None:
    table = Section(table.name, flags=RO, data=table.data, align=8)
    tags = [Dyn(DT_JMPREL, At(".plt.table")), Dyn(DT_PLTRELSZ, Size(".plt.table")), Dyn(DT_PLTREL, kind)]
    assert addresses(library(table, dynamic=tags, bits=bits, order=order)) == [0x4020, 0x4028]


def test_a_relocation_against_a_symbol_writes_its_own_place_not_that_of_the_symbol() -> None:
    table = Section(".rela.dyn", SHT_RELA, RO, [Rel(0x4030, R_X86_64_64, "far_away", 0x77)])
    assert addresses(library(table, symbols=[Sym("far_away", At(".data", 8), 8)])) == [0x4030]


def test_addresses_of_the_upper_half_are_no_negative_numbers() -> None:
    assert addresses(library(rela(0xFFFF_FFFF_8000_0000))) == [0xFFFF_FFFF_8000_0000]
    assert addresses(library(rel(0x8000_4000), bits=32)) == [0x8000_4000]


def test_the_tables_of_all_kinds_come_one_behind_the_other() -> None:
    image = library(
        rela(0x4000),
        rel(0x4010),
        plain(".plt.table", rela(0x4020).data[0]),
        Section(".relr.dyn", SHT_RELR, RO, [0x4030]),
        dynamic=[Dyn(DT_JMPREL, At(".plt.table")), Dyn(DT_PLTRELSZ, Size(".plt.table")), Dyn(DT_PLTREL, DT_RELA)],
    )
    assert addresses(image) == [0x4000, 0x4010, 0x4020, 0x4030]


def test_where_dt_relasz_counts_the_table_of_the_plt_in_its_addresses_stand_twice() -> None:
    # Old linkers put .rela.plt behind .rela.dyn and let DT_RELASZ cover both; the loader allows for it.
    image = library(
        plain(".rela.dyn", *rela(0x4000, 0x4008, 0x4010, 0x4018).data),
        dynamic=[
            Dyn(DT_RELA, At(".rela.dyn")),
            Dyn(DT_RELASZ, 4 * 24),
            Dyn(DT_JMPREL, At(".rela.dyn", 2 * 24)),
            Dyn(DT_PLTRELSZ, 2 * 24),
            Dyn(DT_PLTREL, DT_RELA),
        ],
    )
    assert addresses(image) == [0x4000, 0x4008, 0x4010, 0x4018, 0x4010, 0x4018]
    assert set(addresses(image)) == {0x4000, 0x4008, 0x4010, 0x4018}


@pytest.mark.parametrize(("bits", "entry_bytes"), [(64, 24), (32, 12)])
def test_an_entry_that_the_size_cuts_is_none(bits: Bits, entry_bytes: int) -> None:
    table = plain(".rela.dyn", *rela(0x4000, 0x4008).data)
    tags = [Dyn(DT_RELA, At(".rela.dyn")), Dyn(DT_RELASZ, 2 * entry_bytes - 1)]
    assert addresses(library(table, dynamic=tags, bits=bits)) == [0x4000]


# --- where there is nothing -------------------------------------------------------------------------------------------


def test_a_file_that_is_not_linked_dynamically_has_none() -> None:
    assert addresses(write(ElfFile(sections=[DATA]))) == []


def test_a_dynamic_file_without_any_table_has_none() -> None:
    assert addresses(library()) == []


@pytest.mark.parametrize("tag", [DT_RELA, DT_REL, DT_JMPREL, DT_RELR, DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR])
def test_a_table_without_a_size_holds_nothing(tag: int) -> None:
    assert addresses(library(plain(".table", *rela(0x4000).data), dynamic=[Dyn(tag, At(".table"))])) == []


@pytest.mark.parametrize(
    "tag", [DT_RELASZ, DT_RELSZ, DT_PLTRELSZ, DT_RELRSZ, DT_ANDROID_RELSZ, DT_ANDROID_RELASZ, DT_ANDROID_RELRSZ]
)
def test_a_size_without_a_table_is_nothing(tag: int) -> None:
    assert addresses(library(dynamic=[Dyn(tag, 48)])) == []


def test_what_stands_behind_the_end_of_the_dynamic_section_is_not_read() -> None:
    table = plain(".rela.dyn", *rela(0x4000).data)
    tags = [Dyn(0), Dyn(DT_RELA, At(".rela.dyn")), Dyn(DT_RELASZ, 24)]
    assert addresses(library(table, dynamic=tags)) == []


# --- RELR: addresses and bitmaps --------------------------------------------------------------------------------------


def relr_library(*words: int, bits: Bits = 64, order: Order = "little") -> bytes:
    return library(Section(".relr.dyn", SHT_RELR, RO, list(words)), bits=bits, order=order)


@four_kinds_of_file
def test_an_even_word_of_relr_is_an_address(bits: Bits, order: Order) -> None:
    assert addresses(relr_library(0x4000, 0x4100, bits=bits, order=order)) == [0x4000, 0x4100]


@pytest.mark.parametrize(("bits", "word_bytes"), [(64, 8), (32, 4)])
@pytest.mark.parametrize("order", ["little", "big"])
def test_an_odd_word_of_relr_marks_words_behind_the_address(bits: Bits, word_bytes: int, order: Order) -> None:
    # 0b1011 is the mark of a bitmap, and the first and the third word behind 0x4000.
    expected = [0x4000, 0x4000 + word_bytes, 0x4000 + 3 * word_bytes]
    assert addresses(relr_library(0x4000, 0b1011, bits=bits, order=order)) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            (0xFFFF_FFFF_FFFF_FFF0, 0b111),
            [0xFFFF_FFFF_FFFF_FFF0, 0xFFFF_FFFF_FFFF_FFF8, 0],
            id="a bitmap at the end of the address space wraps around as addresses do",
        ),
        pytest.param(
            (0x4000, 0b11, 0x5000, 0b101), [0x4000, 0x4008, 0x5000, 0x5010], id="an address behind a bitmap starts anew"
        ),
        pytest.param((0x4000, 1, 0b11), [0x4000, 0x4000 + 64 * 8], id="an empty bitmap only goes on"),
        pytest.param(
            # The last bit of the first bitmap, then the first bit of the second: neighbours, 63 and 64 words behind.
            (0x4000, 1 << 63 | 1, 0b11),
            [0x4000, 0x4000 + 63 * 8, 0x4000 + 64 * 8],
            id="a bitmap of a 64 bit file speaks of 63 words",
        ),
    ],
)
def test_a_bitmap_stands_for_the_words_behind_its_address(words: tuple[int, ...], expected: list[int]) -> None:
    assert addresses(relr_library(*words)) == expected


def test_a_bitmap_of_a_32_bit_file_speaks_of_31_words() -> None:
    image = relr_library(0x4000, 1 << 31 | 1, 0b11, bits=32)
    assert addresses(image) == [0x4000, 0x4000 + 31 * 4, 0x4000 + 32 * 4]


def test_a_full_bitmap_is_every_word() -> None:
    assert addresses(relr_library(0x4000, (1 << 64) - 1)) == [0x4000 + 8 * word for word in range(64)]
    assert addresses(relr_library(0x4000, (1 << 32) - 1, bits=32)) == [0x4000 + 4 * word for word in range(32)]


@pytest.mark.parametrize("bits", [64, 32])
def test_any_set_of_words_comes_back_from_its_encoding(bits: Bits) -> None:
    step = bits // 8
    places = [0x4000 + step * word for word in (0, 1, 2, 30, 31, 32, 62, 63, 64, 65, 126, 127, 128, 500, 501, 9000)]
    assert addresses(relr_library(*relr(places, bits), bits=bits)) == places


@pytest.mark.parametrize(
    ("vaddrs", "count", "words"),
    [
        ([], 0, 0),
        ([0x5000], 1, 1),
        ([0x5000, 0x5008], 2, 2),  # an address and a bitmap
        ([0x5000 + 8 * number for number in range(64)], 64, 2),  # 63 bits
        ([0x5000 + 8 * number for number in range(65)], 65, 3),
        ([0x5000, 0x5008 + 8 * 63], 2, 2),  # an empty bitmap is no word: another address
        ([0x5000, 0x5004, 0x5008], 3, 3),  # each between the words of the one before
        ([0x5001, 0x5008], 1, 1),
    ],
)
def test_the_size_of_a_table_that_is_packed_is_known_before(vaddrs: list[int], count: int, words: int) -> None:
    image = read_image(library(rela(*vaddrs)), "file")
    assert pack_relative(image) == (count, 8 * words)


def test_androids_own_tags_for_relr_are_the_same_encoding() -> None:
    tags = [Dyn(DT_ANDROID_RELR, At(".relr")), Dyn(DT_ANDROID_RELRSZ, Size(".relr"))]
    assert addresses(library(plain(".relr", 0x4000, 0b11), dynamic=tags)) == [0x4000, 0x4008]


def test_a_bitmap_at_the_end_of_a_32_bit_address_space_wraps_around_there() -> None:
    assert addresses(relr_library(0xFFFF_FFF8, 0b111, bits=32)) == [0xFFFF_FFF8, 0xFFFF_FFFC, 0]


# --- Android's packed tables ------------------------------------------------------------------------------------------

GROUPED_BY_INFO, GROUPED_BY_OFFSET_DELTA, GROUPED_BY_ADDEND, HAS_ADDEND = 1, 2, 4, 8
TOGETHER = GROUPED_BY_INFO | GROUPED_BY_OFFSET_DELTA


def leb(number: int) -> bytes:
    """Encode a signed LEB128 number: seven bits a byte, the low ones first; bit 6 of the last is the sign."""
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        if number == (-1 if byte & 0x40 else 0):
            return bytes([*out, byte])
        out.append(byte | 0x80)


def packed(*numbers: int, cut: int = 0, tag: int = DT_ANDROID_RELA, bits: Bits = 64) -> bytes:
    raw = b"APS2" + b"".join(map(leb, numbers))
    return packed_bytes(raw[: len(raw) - cut], tag, bits)


def packed_bytes(raw: bytes, tag: int = DT_ANDROID_RELA, bits: Bits = 64) -> bytes:
    return library(
        Section(".packed", flags=RO, data=raw), dynamic=[Dyn(tag, At(".packed")), Dyn(tag + 1, len(raw))], bits=bits
    )


def test_the_writer_of_numbers_here_writes_the_examples_of_the_dwarf_standard() -> None:
    examples = {2: b"\x02", -2: b"\x7e", 127: b"\xff\0", -127: b"\x81\x7f", 128: b"\x80\x01", -129: b"\xff\x7e"}
    assert {number: leb(number) for number in examples} == examples


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param(
            # 2 relocations behind 0x4000 (80 80 01); a group of 2; its entries 8 apart; info 0x17 for both.
            packed_bytes(b"APS2\x02\x80\x80\x01\x02\x03\x08\x17"),
            [0x4008, 0x4010],
            id="written byte by byte",
        ),
        pytest.param(
            # For each of two: how much further, and the info.
            packed(2, 0x4000, 2, 0, 0, 0x101, 0x18, 0x102),
            [0x4000, 0x4018],
            id="a group with nothing in common spells out each entry",
        ),
        pytest.param(
            packed(2, 0x4000, 2, GROUPED_BY_INFO | HAS_ADDEND, 0x17, 0, -5, 0x10, 1 << 40),
            [0x4000, 0x4010],
            id="addends of each entry are passed over",
        ),
        pytest.param(
            packed(3, 0x4000, 3, TOGETHER | GROUPED_BY_ADDEND | HAS_ADDEND, 8, 0x17, 0x1234),
            [0x4008, 0x4010, 0x4018],
            id="an addend that a group has in common stands at its head",
        ),
        pytest.param(
            # The flag of a common addend without that of addends at all: there is none to read.
            packed(2, 0x4000, 2, TOGETHER | GROUPED_BY_ADDEND, 8, 0x17),
            [0x4008, 0x4010],
            id="where no entry has an addend none stands at the head",
        ),
        pytest.param(
            packed(4, 0x4000, 2, TOGETHER, 8, 0x17, 2, GROUPED_BY_INFO, 0x18, 0x100, 0x20),
            [0x4008, 0x4010, 0x4110, 0x4130],
            id="a group goes on where the last one ended",
        ),
        pytest.param(
            packed(2, 0x4100, 2, GROUPED_BY_INFO, 0x17, -0x10, -0x20), [0x40F0, 0x40D0], id="addresses may go backwards"
        ),
        pytest.param(packed(0, 0x4000), [], id="no entry"),
    ],
)
def test_a_packed_table_has_these_addresses(image: bytes, expected: list[int]) -> None:
    assert addresses(image) == expected


@pytest.mark.parametrize("tag", [DT_ANDROID_REL, DT_ANDROID_RELA])
@pytest.mark.parametrize("bits", [64, 32])
def test_both_tags_of_packed_tables_are_read_in_both_classes(tag: int, bits: Bits) -> None:
    image = packed(2, 0x4000, 2, GROUPED_BY_INFO | GROUPED_BY_OFFSET_DELTA, 8, 0x17, tag=tag, bits=bits)
    assert addresses(image) == [0x4008, 0x4010]


def test_a_number_of_ten_bytes_is_the_longest() -> None:
    far = 0xFFFF_FFFF_8000_0000 - (1 << 64)  # as a signed number, which takes fewer
    assert addresses(packed(1, far, 1, GROUPED_BY_INFO, 0x17, 8)) == [0xFFFF_FFFF_8000_0008]
    eight_in_ten_bytes = b"\x88" + 8 * b"\x80" + b"\0"
    assert addresses(packed_bytes(b"APS2\x01" + leb(0x4000) + b"\x01\x01\x17" + eight_in_ten_bytes)) == [0x4008]


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_packed_table_that_does_not_begin_as_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"^library\.so: packed relocations do not begin with APS2$"):
        addresses(packed_bytes(b"APR1\0\0"))


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_packed_table_that_is_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(InputError, match="packed relocations are cut"):
        addresses(packed(3, 0x40, 3, GROUPED_BY_INFO, 0x17, 8, 8, 8, cut=cut))


def test_a_packed_number_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="packed relocations are cut"):
        addresses(packed_bytes(b"APS2" + 64 * b"\x80"))


@pytest.mark.parametrize("count", [-1, 1 << 40, (1 << 62) - 1])
def test_a_count_that_no_file_has_is_refused_before_anything_is_made_of_it(count: int) -> None:
    with pytest.raises(InputError, match=f"{count} packed relocations are more than any file has"):
        addresses(packed(count, 0x4000, 1, GROUPED_BY_INFO, 0x17, 8))


@pytest.mark.parametrize("size", [0, -1, 3, 1 << 60])
def test_a_group_that_is_empty_or_larger_than_what_is_left_is_refused(size: int) -> None:
    # A group of none, again and again, would never end.
    with pytest.raises(InputError, match=f"a group of {size} packed relocations among 2"):
        addresses(packed(2, 0x4000, size, GROUPED_BY_INFO | GROUPED_BY_OFFSET_DELTA, 8, 0x17))


@pytest.mark.parametrize("size_tag", [DT_RELASZ, DT_RELSZ, DT_PLTRELSZ, DT_RELRSZ])
@pytest.mark.parametrize("size_bytes", [1 << 20, 1 << 40, (1 << 64) - 8])
def test_a_table_longer_than_its_segment_is_refused(size_tag: int, size_bytes: int) -> None:
    tag = {DT_RELASZ: DT_RELA, DT_RELSZ: DT_REL, DT_PLTRELSZ: DT_JMPREL, DT_RELRSZ: DT_RELR}[size_tag]
    tags = [Dyn(tag, At(".table")), Dyn(size_tag, size_bytes)]
    with pytest.raises(InputError, match=rf"of {size_bytes} bytes at vaddr 0x\w+ is in no segment"):
        addresses(library(plain(".table", *rela(0x4000).data), dynamic=tags))


@pytest.mark.parametrize("vaddr", [0x10_0000, 1 << 40, (1 << 64) - 8])
@pytest.mark.parametrize(
    ("tag", "size_tag"), [(DT_RELA, DT_RELASZ), (DT_RELR, DT_RELRSZ), (DT_ANDROID_RELA, DT_ANDROID_RELASZ)]
)
def test_a_table_at_an_address_of_no_segment_is_refused(vaddr: int, tag: int, size_tag: int) -> None:
    with pytest.raises(InputError, match=f"of 24 bytes at vaddr {vaddr:#x} is in no segment"):
        addresses(library(dynamic=[Dyn(tag, vaddr), Dyn(size_tag, 24)]))


def test_a_table_in_bss_has_no_bytes_in_the_file_and_is_refused() -> None:
    bss = Section(".bss", 8, RW, size=0x1000)
    file = ElfFile(sections=[DATA, bss], dynamic=[Dyn(DT_RELA, At(".bss")), Dyn(DT_RELASZ, 24)])
    with pytest.raises(InputError, match=r"a table of relocations of 24 bytes at vaddr 0x\w+ is in no segment"):
        addresses(write(file))


def test_a_table_whose_segment_reaches_beyond_the_file_is_refused() -> None:
    image = library(rela(0x4000))
    load = next(index for index in range(peek(image, "e_phnum")) if peek(image, "p_type", index) == 1)
    moved = patch(image, "p_offset", len(image) - 8, load)
    with pytest.raises(InputError, match="reaches beyond the end of the file"):
        addresses(moved)


def test_a_dynamic_section_beyond_the_file_is_refused() -> None:
    image = library(rela(0x4000))
    dynamic = next(index for index in range(peek(image, "e_phnum")) if peek(image, "p_type", index) == 2)
    for size_bytes in (len(image), 1 << 62):
        with pytest.raises(InputError, match=r"the dynamic section of .* reaches beyond the end of the file"):
            addresses(patch(image, "p_filesz", size_bytes, dynamic))


# --- pages ------------------------------------------------------------------------------------------------------------


@four_kinds_of_file
def test_the_pages_of_all_tables_come_together_each_once(bits: Bits, order: Order) -> None:
    # RELA: the pages 4 and 2; REL: 4 again; RELR: the last word of page 5, and by its bitmap the first words of page 6.
    word = bits // 8
    image = library(
        rela(0x4010, 0x2000),
        rel(0x4020),
        Section(".relr.dyn", SHT_RELR, RO, [0x6000 - word, 0b111]),
        bits=bits,
        order=order,
    )
    assert relocated_pages(read_image(image, "library.so"), 0x1000) == (2, 4, 5, 6)
    assert relocated_pages(read_image(image, "library.so"), 0x10000) == (0,)


def test_of_a_bitmap_across_the_border_of_two_pages_only_those_with_a_bit_count() -> None:
    def pages(bitmap: int) -> tuple[int, ...]:
        image = library(Section(".relr.dyn", SHT_RELR, RO, [0x4FF0, bitmap << 1 | 1]))
        return relocated_pages(read_image(image, "library.so"), 0x1000)

    # The bitmap begins at 0x4FF8: bit 0 is the last word of page 4, bit 1 the first of page 5.
    assert pages(0b01) == (4,)
    assert pages(0b10) == (4, 5)  # 0x4FF0 itself is in page 4
    assert pages(0) == (4,)


def test_a_bitmap_whose_first_bits_are_empty_does_not_write_the_page_it_begins_in() -> None:
    # Without an address before it, a bitmap begins at 0: eight that are empty, and one with only its last bit.
    image = library(Section(".relr.dyn", SHT_RELR, RO, [*[1] * 8, 1 << 63 | 1]))
    assert addresses(image) == [(8 * 63 + 62) * 8]
    assert relocated_pages(read_image(image, "library.so"), 0x1000) == (1,)
