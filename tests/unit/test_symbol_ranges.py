"""Which symbol keeps which page private: parts, pages and contents as literals, figures by hand."""

from collections.abc import Collection, Iterable, Sequence

import pytest

from footprint.attribution.live_ranges import thread_rows
from footprint.attribution.owned_range import LoadedObject, OwnedRange, clip
from footprint.attribution.symbol_ranges import PageNumbers, symbol_rows
from footprint.elf.contents import read_contents
from footprint.elf.image import read_image
from footprint.model.row import Attribution, Evidence, MemoryKind, Row
from footprint.process.mappings import NO_COUNTERS, FileKey, Mapping
from footprint.process.pages import PageRange
from tests.elfwriter import (
    PF_R,
    PF_W,
    PT_GNU_RELRO,
    PT_LOAD,
    RO,
    RW,
    SHT_NOBITS,
    STB_LOCAL,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Segment,
    Sym,
    write,
)
from tests.ledgers import ledger_row

KIB, MIB = 1 << 10, 1 << 20
PAGE = 4096
B = 0x7F0000000000
"""Where the object is loaded: what is linked for vaddr 0x3000 stands at B + 0x3000."""


# --- how the tests say what they mean ---------------------------------------------------------------------------------


def program(*sections: Section, symbols: Iterable[Sym] = (), relro: Sequence[str] = ()) -> ElfFile:
    """Return a file of sections at the addresses that they say."""
    names = [section.name for section in sections]
    segments = [Segment(PT_LOAD, PF_R | PF_W, names), *([Segment(PT_GNU_RELRO, PF_R, relro)] if relro else [])]
    tls = [section.name for section in sections if section.flags == TLS]
    segments += [Segment(7, PF_R, tls)] if tls else []
    return ElfFile(sections=sections, segments=segments, symbols=list(symbols))


def pages(*numbers: int | tuple[int, int], size: int = PAGE) -> list[PageRange]:
    """Return private pages by their number behind B: one, or from one up to another."""
    pairs = [(number, number + 1) if isinstance(number, int) else number for number in numbers]
    return [PageRange(B + first * size, B + past * size) for first, past in pairs]


def cut(
    file: ElfFile,
    start: int,
    end: int,
    private: Sequence[PageRange],
    relocated: Collection[int] = (),
    kind: MemoryKind = MemoryKind.DATA,
    page_bytes: int = PAGE,
) -> list[Row]:
    """Cut the addresses from B + start to B + end; `relocated` are numbers of pages as the loader's addresses give."""
    image = read_image(write(file), "program")
    key = FileKey("08:01", 11, "/bin/program")
    loaded = LoadedObject(key, image, B)
    mapping = Mapping(B + start, B + end, "rw-p", start, key.device, key.inode, key.name, NO_COUNTERS)
    part = OwnedRange(mapping, B + start, B + end, key.name, kind, Attribution.PROGRAM_HEADERS, loaded)
    result = symbol_rows(
        part, read_contents(image), private, page_bytes, PageNumbers(sorted(relocated)), Evidence.MEASURED
    )
    # What holds for every answer.
    assert sum(one.bytes or 0 for one in result) == sum(one.end_addr - one.start_addr for one in private)
    assert sum(one.mapped_bytes for one in result) == end - start
    return result


def row(
    section: str,
    name: str,
    kind: MemoryKind,
    *,
    mapped_bytes: int,
    private_bytes: int = 0,
    pages: int = 0,
    sole_pages: int = 0,
) -> Row:
    """Return the row of a variable, or of what is in brackets."""
    symbol = None if name.startswith("[") else name
    return Row(
        owner="/bin/program",
        kind=kind,
        section=section,
        symbol=symbol,
        name=name,
        bytes=private_bytes,
        mapped_bytes=mapped_bytes,
        shared_bytes=0,
        pages=pages,
        sole_pages=sole_pages,
        relocated_bytes=0,
        is_writable=True,
        evidence=Evidence.MEASURED,
        attribution=Attribution.PROGRAM_HEADERS,
    )


def lines(result: Iterable[Row]) -> list[tuple[str | None, str, int]]:
    """Return section, name and private bytes of each row that has some."""
    return [(one.section, one.name or "", one.bytes) for one in result if one.bytes]


def named(result: Iterable[Row], name: str) -> Row:
    here = [one for one in result if one.name == name]
    assert len(here) == 1, here
    return here[0]


# --- what the issue asks to be shown ----------------------------------------------------------------------------------

ONE_BUFFER = program(
    Section(".bss", SHT_NOBITS, RW, size=MIB, addr=0x10000, align=PAGE), symbols=[Sym("buffer", At(".bss"), MIB)]
)


def test_a_buffer_of_1_mib_of_which_two_pages_are_touched_is_8_kib_private_and_1_mib_mapped() -> None:
    found = cut(ONE_BUFFER, 0x10000, 0x110000, pages(0x13, 0xD8), kind=MemoryKind.BSS)
    assert found == [
        row(".bss", "buffer", MemoryKind.BSS, private_bytes=8 * KIB, mapped_bytes=1 * MIB, pages=2, sole_pages=2)
    ]


TWO_COUNTERS = program(
    Section(".data", flags=RW, data=b"\1".ljust(PAGE, b"\0") + b"\2" + bytes(7), addr=0x3000, align=PAGE),
    symbols=[Sym("hits", At(".data"), 8), Sym("misses", At(".data", PAGE), 8)],
)


def test_two_counters_of_8_bytes_4_kib_apart_cost_two_pages_each_alone_in_its_own() -> None:
    result = cut(TWO_COUNTERS, 0x3000, 0x5000, pages((3, 5)))
    assert lines(result) == [
        (".data", "hits", 8),
        (".data", "[padding]", 4088),
        (".data", "misses", 8),
        (".data", "[rest of the last page]", 4088),
    ]
    assert [(one.name, one.pages, one.sole_pages) for one in result if one.symbol] == [("hits", 1, 1), ("misses", 1, 1)]


def test_a_counter_that_nobody_wrote_costs_nothing_and_is_no_line() -> None:
    found = cut(TWO_COUNTERS, 0x3000, 0x5000, pages(4))
    assert lines(found) == [(".data", "misses", 8), (".data", "[rest of the last page]", 4088)]
    assert named(found, "[not private]") == row(".data", "[not private]", MemoryKind.DATA, mapped_bytes=PAGE)


def test_where_nothing_is_private_there_is_one_line_for_each_section() -> None:
    file = program(
        Section(".data", flags=RW, data=bytes(PAGE), addr=0x3000),
        Section(".bss", SHT_NOBITS, RW, size=PAGE, addr=0x4000),
        symbols=[Sym("first", At(".data"), 100), Sym("second", At(".bss"), 100)],
    )
    assert cut(file, 0x3000, 0x5000, []) == [
        row(".data", "[not private]", MemoryKind.DATA, mapped_bytes=PAGE),
        row(".bss", "[not private]", MemoryKind.BSS, mapped_bytes=PAGE),
    ]


# --- whose a page is --------------------------------------------------------------------------------------------------


def test_neighbours_in_one_page_share_it_and_none_of_them_is_alone() -> None:
    file = program(
        Section(".data", flags=RW, data=b"x" * PAGE, addr=0x3000),
        symbols=[Sym("first", At(".data"), 96), Sym("second", At(".data", 96), 4000)],
    )
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [(one.name, (one.bytes or 0), one.pages, one.sole_pages) for one in found] == [
        ("first", 96, 1, 0),
        ("second", 4000, 1, 0),
    ]


def test_a_variable_of_three_pages_is_alone_in_those_that_nothing_else_reaches_into() -> None:
    # big: 0x3000 to 0x5800, so in pages 3, 4 and 5; small lies behind it in page 5.
    file = program(
        Section(".data", flags=RW, data=b"x" * 0x3000, addr=0x3000),
        symbols=[Sym("big", At(".data"), 0x2800), Sym("small", At(".data", 0x2800), 0x800)],
    )
    found = cut(file, 0x3000, 0x6000, pages((3, 6)))
    assert [(one.name, one.pages, one.sole_pages) for one in found] == [("big", 3, 2), ("small", 1, 0)]


def test_what_has_no_name_takes_no_page_from_the_variable_beside_it() -> None:
    file = program(Section(".data", flags=RW, data=b"x" * PAGE, addr=0x3000), symbols=[Sym("flag", At(".data", 8), 1)])
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert lines(found) == [(".data", "[no symbol]", 8 + 4087), (".data", "flag", 1)]
    assert (named(found, "flag").pages, named(found, "flag").sole_pages) == (1, 1)
    assert named(found, "[no symbol]").sole_pages == 0


def test_what_has_no_name_counts_its_page_once_however_often_it_lies_there() -> None:
    file = program(Section(".data", flags=RW, data=b"x" * PAGE, addr=0x3000), symbols=[Sym("flag", At(".data", 8), 1)])
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [one.pages for one in found if one.name == "[no symbol]"] == [1]


def test_a_variable_in_another_section_takes_the_page_too() -> None:
    # One page: the end of .data and the beginning of .bss.
    file = program(
        Section(".data", flags=RW, data=b"x" * 16, addr=0x3000, align=16),
        Section(".bss", SHT_NOBITS, RW, size=PAGE - 16, addr=0x3010),
        symbols=[Sym("count", At(".data"), 16), Sym("buffer", At(".bss"), PAGE - 16)],
    )
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [(one.section, one.name, one.sole_pages) for one in found] == [(".data", "count", 0), (".bss", "buffer", 0)]


COPIES = program(
    Section(".bss", SHT_NOBITS, RW, size=2 * PAGE, addr=0x3000, align=4),
    # Four copies in the page 3, two in the page 4, as a header's static makes them.
    symbols=[Sym("NULL_XACTION", At(".bss", at), 4, binding=STB_LOCAL) for at in (0, 4, 8, 12, 4096, 4100)],
)


def test_copies_of_one_name_count_each_page_once_and_share_it_with_nobody() -> None:
    found = [one for one in cut(COPIES, 0x3000, 0x5000, pages((3, 5))) if one.symbol == "NULL_XACTION"]
    assert len(found) == 6
    assert sum(one.bytes or 0 for one in found) == 24
    assert sum(one.pages or 0 for one in found) == 2
    assert sum(one.sole_pages for one in found) == 2


def test_a_copy_across_the_border_of_two_pages_counts_only_the_second_of_them_anew() -> None:
    file = program(
        Section(".bss", SHT_NOBITS, RW, size=2 * PAGE, addr=0x3000),
        symbols=[Sym("copy", At(".bss", at), 16, binding=STB_LOCAL) for at in (PAGE - 24, PAGE - 8, PAGE + 8)],
    )
    found = [one for one in cut(file, 0x3000, 0x5000, pages((3, 5))) if one.symbol]
    assert [one.pages for one in found] == [1, 1, 0]


def test_of_a_variable_in_private_and_other_pages_only_the_private_ones_count() -> None:
    # 0x3800 to 0x6800: the second half of page 3, pages 4 and 5, the first half of page 6. Private: 3 and 5.
    file = program(
        Section(".bss", SHT_NOBITS, RW, size=0x4000, addr=0x3000), symbols=[Sym("wide", At(".bss", 0x800), 0x3000)]
    )
    wide = named(cut(file, 0x3000, 0x7000, pages(3, 5)), "wide")
    assert (wide.bytes, wide.mapped_bytes, wide.pages, wide.sole_pages) == (0x800 + 0x1000, 0x3000, 2, 2)


# --- what is no variable ----------------------------------------------------------------------------------------------


def test_heads_gaps_and_tails_have_names_of_their_own() -> None:
    # The mapping begins 256 bytes before .data.rel.ro, whose page the loader writes; between the sections are 64 bytes.
    file = program(
        Section(".data.rel.ro", flags=RW, data=b"p" * 0x80, addr=0x3100),
        Section(".data", flags=RW, data=b"d" * 0x40, addr=0x31C0, align=64),
        symbols=[Sym("pointers", At(".data.rel.ro"), 0x80), Sym("words", At(".data"), 0x40)],
        relro=[".data.rel.ro"],
    )
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [(one.section, one.name, one.kind, one.bytes) for one in found] == [
        (".data.rel.ro", "[page shared with the section before]", MemoryKind.DATA, 0x100),
        (".data.rel.ro", "pointers", MemoryKind.RELRO, 0x80),
        (".data.rel.ro", "[padding between sections]", MemoryKind.RELRO, 0x40),
        (".data", "words", MemoryKind.DATA, 0x40),
        (".data", "[rest of the last page]", MemoryKind.DATA, 0x1000 - 0x200),
    ]


def test_a_part_in_which_no_section_lies_is_one_line_without_section() -> None:
    found = cut(TWO_COUNTERS, 0x8000, 0xA000, pages((8, 10)))
    assert lines(found) == [(None, "[rest of the last page]", 2 * PAGE)]


def test_a_read_only_section_in_a_private_page_says_so() -> None:
    # A breakpoint, or a text relocation: code that was written.
    file = program(
        Section(".rodata", flags=RO, data=b"r" * 0x800, addr=0x3000),
        Section(".data", flags=RW, data=b"d" * 0x800, addr=0x3800),
        symbols=[Sym("table", At(".rodata"), 0x800), Sym("words", At(".data"), 0x800)],
    )
    assert lines(cut(file, 0x3000, 0x4000, pages(3))) == [
        (".rodata", "[read-only section in a private page]", 0x800),
        (".data", "words", 0x800),
    ]


def test_the_template_of_thread_locals_is_memory_of_the_object_and_what_is_beyond_it_is_not() -> None:
    # .tbss has addresses that are those of .data behind it: nothing of it is there.
    file = program(
        Section(".tdata", flags=TLS, data=b"t" * 16, addr=0x3000),
        Section(".tbss", SHT_NOBITS, TLS, size=0x400, addr=0x3010),
        Section(".data", flags=RW, data=b"d" * 0xFE0, addr=0x3020, align=32),
        symbols=[
            Sym("per_thread", At(".tdata"), 16, STT_TLS),
            Sym("zero_per_thread", At(".tbss"), 0x400, STT_TLS),
            Sym("words", At(".data"), 0xFE0),
        ],
    )
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [(one.section, one.name, one.kind, one.bytes) for one in found] == [
        (".tdata", "per_thread", MemoryKind.TLS, 16),
        (".tdata", "[padding between sections]", MemoryKind.TLS, 16),
        (".data", "words", MemoryKind.DATA, 0xFE0),
    ]


def test_the_variables_of_a_thread_lie_in_its_block_as_in_their_template() -> None:
    file = program(
        Section(".tdata", flags=TLS, data=b"t" * 16, addr=0x3000),
        Section(".tbss", SHT_NOBITS, TLS, size=32, addr=0x3010),
        symbols=[Sym("set", At(".tdata"), 16, STT_TLS), Sym("zero", At(".tbss"), 32, STT_TLS)],
    )
    image = read_image(write(file), "/lib/libx.so")
    at = B + PAGE - 16
    mapping = Mapping(B, B + 2 * PAGE, "rw-p", 0, "00:00", 0, "")
    loaded = LoadedObject(FileKey("08:01", 7, "/lib/libx.so"), image, B)
    block = OwnedRange(mapping, at, at + 64, "/lib/libx.so", MemoryKind.TLS, Attribution.NAME, loaded)
    # The first page is private, the second is not.
    found = thread_rows(block, read_contents(image), pages(0), ledger_row("/lib/libx.so", 64), PAGE)
    assert [(one.section, one.name, one.bytes, one.mapped_bytes) for one in found] == [
        (".tdata of threads", "set", 16, 16),
        (".tbss of threads", "zero", 0, 32),
        (None, "[padding between sections]", 0, 16),
    ]


def test_the_tables_of_the_linker_and_symbols_without_size_are_named_as_such() -> None:
    file = program(
        Section(".got", flags=RW, data=bytes(0x100), addr=0x3000),
        Section(".data", flags=RW, data=b"d" * 0xF00, addr=0x3100),
        symbols=[Sym("label", At(".data", 0xE00), 0), Sym("words", At(".data"), 0xE00)],
    )
    assert lines(cut(file, 0x3000, 0x4000, pages(3))) == [
        (".got", "[linker table]", 0x100),
        (".data", "words", 0xE00),
        (".data", "[symbol without size: label]", 0x100),
    ]


def test_what_a_stripped_file_does_not_name_is_one_line_with_its_cause() -> None:
    file = program(Section(".data", flags=RW, data=b"d" * PAGE, addr=0x3000))
    assert lines(cut(file, 0x3000, 0x4000, pages(3))) == [(".data", "[no symbol: stripped]", PAGE)]


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "private", "expected"),
    [
        (0x10000, 0x20000, pages((0x10, 0x20)), [(".bss", "buffer", 0x10000)]),
        (0x80000, 0x90000, pages(0x85), [(".bss", "buffer", PAGE)]),
        (
            0x100000,
            0x120000,
            pages((0x10F, 0x111)),
            [(".bss", "buffer", PAGE), (".bss", "[rest of the last page]", PAGE)],
        ),
    ],
    ids=["its beginning", "its middle", "its end"],
)
def test_a_part_shows_what_of_a_variable_lies_in_it(
    start: int, end: int, private: list[PageRange], expected: list[tuple[str, str, int]]
) -> None:
    found = cut(ONE_BUFFER, start, end, private)
    assert lines(found) == expected
    assert named(found, "buffer").mapped_bytes == min(end, 0x110000) - start


@pytest.mark.parametrize(("start", "end"), [(0x10000, 0x20000), (0x80000, 0x90000), (0x100000, 0x110000)])
def test_a_variable_that_goes_on_in_another_part_is_told_here_though_nothing_of_it_is_private(
    start: int, end: int
) -> None:
    """Both parts together show it as large as it is, wherever its private pages lie."""
    assert cut(ONE_BUFFER, start, end, []) == [
        row(".bss", "buffer", MemoryKind.BSS, mapped_bytes=end - start),
    ]


def test_a_variable_that_ends_where_the_part_ends_goes_on_nowhere() -> None:
    assert [one.name for one in cut(ONE_BUFFER, 0x10000, 0x110000, [])] == ["[not private]"]


def test_pages_in_memory_and_pages_in_swap_are_private_alike() -> None:
    ranges = [PageRange(B + 0x3000, B + 0x4000), PageRange(B + 0x4000, B + 0x5000, is_swapped=True)]
    file = program(
        Section(".bss", SHT_NOBITS, RW, size=2 * PAGE, addr=0x3000), symbols=[Sym("buffer", At(".bss"), 2 * PAGE)]
    )
    assert cut(file, 0x3000, 0x5000, ranges) == [
        row(".bss", "buffer", MemoryKind.BSS, private_bytes=2 * PAGE, mapped_bytes=2 * PAGE, pages=2, sole_pages=2)
    ]


def test_pages_are_as_large_as_the_machine_has_them() -> None:
    size = 64 * KIB
    file = program(
        Section(".data", flags=RW, data=b"d" * 24, addr=size),
        symbols=[Sym("first", At(".data"), 8), Sym("second", At(".data", 16), 8)],
    )
    found = cut(file, size, 2 * size, pages(1, size=size), page_bytes=size)
    assert [(one.name, (one.bytes or 0), one.pages) for one in found] == [
        ("first", 8, 1),
        ("[no symbol]", 8, 1),
        ("second", 8, 1),
        ("[rest of the last page]", size - 24, 1),
    ]


def test_the_slices_come_in_the_order_of_their_addresses_and_what_is_not_private_last() -> None:
    file = program(
        Section(".data", flags=RW, data=b"d" * 0x3000, addr=0x3000),
        symbols=[Sym("z", At(".data"), 8), Sym("a", At(".data", 8), 8), Sym("m", At(".data", 0x2000), 8)],
    )
    found = cut(file, 0x3000, 0x6000, pages(3, 5))
    assert [one.name for one in found] == ["z", "a", "[no symbol]", "m", "[not private]"]


def test_of_two_names_of_the_same_bytes_each_byte_has_one_owner() -> None:
    # inner lies within outer, which comes first and is longer: it has them all.
    file = program(
        Section(".data", flags=RW, data=b"d" * PAGE, addr=0x3000),
        symbols=[Sym("outer", At(".data"), PAGE), Sym("inner", At(".data", 64), 64)],
    )
    found = cut(file, 0x3000, 0x4000, pages(3))
    assert [(one.name, (one.bytes or 0), one.sole_pages) for one in found] == [("outer", PAGE, 1)]


# --- why a page was written -------------------------------------------------------------------------------------------

POINTERS = program(
    Section(".data.rel.ro", flags=RW, data=b"p" * 0x1800, addr=0x3000),
    Section(".data", flags=RW, data=b"d" * 0x1800, addr=0x4800),
    symbols=[Sym("pointers", At(".data.rel.ro"), 0x1800), Sym("words", At(".data"), 0x1800)],
    relro=[".data.rel.ro"],
)


def test_bytes_in_a_page_that_relocations_write_say_so() -> None:
    # pointers: pages 3 and half of 4; words: the other half of 4, and 5. Relocations write page 4.
    found = cut(POINTERS, 0x3000, 0x6000, pages((3, 6)), relocated={B // PAGE + 4})
    assert [(one.name, (one.bytes or 0), one.relocated_bytes) for one in found] == [
        ("pointers", 0x1800, 0x800),
        ("words", 0x1800, 0x800),
    ]


def test_a_page_that_relocations_write_and_that_is_not_private_does_not_count() -> None:
    found = cut(POINTERS, 0x3000, 0x6000, pages(5), relocated={B // PAGE + 4})
    assert [(one.name, one.relocated_bytes) for one in found if (one.bytes or 0)] == [("words", 0)]


def test_a_remainder_in_a_relocated_page_is_relocated_with_it() -> None:
    found = cut(TWO_COUNTERS, 0x3000, 0x5000, pages((3, 5)), relocated={B // PAGE + 4})
    assert [(one.name, one.relocated_bytes) for one in found] == [
        ("hits", 0),
        ("[padding]", 0),
        ("misses", 8),
        ("[rest of the last page]", 4088),
    ]


def test_the_pages_of_a_large_run_are_counted_without_looking_at_each() -> None:
    # 2^46 bytes from the middle of a page on; relocations write its first page, two in its midst, its last and others.
    size = 1 << 46
    file = program(
        Section(".bss", SHT_NOBITS, RW, size=size, addr=0x3000),
        symbols=[Sym("first", At(".bss"), 0x800), Sym("all", At(".bss", 0x800), size - 0x1000)],
    )
    last = (0x3000 + size) // PAGE - 1
    relocated = {B // PAGE + number for number in (2, 3, 77, 1 << 30, last, last + 1)}
    found = named(cut(file, 0x3000, 0x3000 + size, pages((3, last + 1)), relocated, MemoryKind.BSS), "all")
    assert (found.bytes, found.pages, found.sole_pages) == (size - 0x1000, size // PAGE, size // PAGE - 1)
    assert found.relocated_bytes == 0x800 + 2 * PAGE + 0x800


def test_numbers_of_pages_are_counted_and_found_where_the_object_stands() -> None:
    here = PageNumbers((3, 4, 9), 100)
    assert [here.count(*pair) for pair in ((0, 200), (103, 104), (104, 109), (105, 109), (110, 120))] == [3, 1, 1, 0, 0]
    assert [page in here for page in (102, 103, 104, 105, 109)] == [False, True, True, False, True]
    assert 0 not in PageNumbers(())


# --- clipping ---------------------------------------------------------------------------------------------------------


def test_ranges_are_clipped_to_what_lies_between_two_addresses() -> None:
    ranges = [PageRange(0, 100), PageRange(100, 200, is_swapped=True), PageRange(300, 400)]
    assert clip(ranges, 50, 350) == [PageRange(50, 100), PageRange(100, 200, is_swapped=True), PageRange(300, 350)]


@pytest.mark.parametrize(("start", "end"), [(200, 300), (400, 500), (150, 150)])
def test_between_addresses_where_there_is_no_range_nothing_is_left(start: int, end: int) -> None:
    found = clip([PageRange(0, 100), PageRange(100, 200), PageRange(300, 400)], start, end)
    assert [one for one in found if one.start_addr < one.end_addr] == []
