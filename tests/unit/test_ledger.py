"""The ledger: what a process holds, under owner, section and symbol, adding up to the kernel's counters.

All figures are derived by hand from one small library, whose file offsets are its vaddrs:

    0x0000  headers                                                        mapped r-xp, 2 pages
    0x1000  .text
    0x2c00  .data.rel.ro  1024 bytes: `pointers`                           mapped r--p, 1 page, RELRO
    0x3000  .data         1536 bytes: `table` 1024, `flag` 4, 28 of padding, `words` 480
    0x3640  .bss          6656 bytes: `buffer` 6144, `last` 512            mapped rw-p, 1 page, up to 0x4000
    0x4000                the rest of .bss, up to 0x5040                   nameless, 2 pages, up to 0x6000
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from footprint.attribution.ledger import KnownRows
from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.process_audit import audit_snapshot
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import Image, read_image
from footprint.model.audit import Audit
from footprint.model.row import Evidence, Row
from footprint.process.mappings import Counters, FileKey, Mapping, MemoryMap
from footprint.process.snapshot import read_texts
from footprint.process.status import Status
from tests.elfwriter import (
    PF_R,
    PF_W,
    PF_X,
    PT_GNU_RELRO,
    PT_LOAD,
    RW,
    RX,
    SHT_NOBITS,
    At,
    ElfFile,
    Section,
    Segment,
    Sym,
    write,
)

PAGE = 4096
B = 0x7F0000000000
KEY = FileKey("08:01", 11, "/lib/library.so")

LIBRARY = ElfFile(
    sections=[
        Section(".text", flags=RX, data=bytes(0x100), addr=0x1000),
        Section(".data.rel.ro", flags=RW, data=b"p" * 1024, addr=0x2C00),
        Section(".data", flags=RW, data=b"t" * 1028 + bytes(28) + b"w" * 480, addr=0x3000, align=32),
        Section(".bss", SHT_NOBITS, RW, size=6656, addr=0x3640, align=64),
    ],
    segments=[
        Segment(PT_LOAD, PF_R | PF_X, [".text"], offset=0, vaddr=0),
        Segment(PT_LOAD, PF_R | PF_W, [".data.rel.ro", ".data", ".bss"], offset=0x2C00, vaddr=0x2C00),
        Segment(PT_GNU_RELRO, PF_R, [".data.rel.ro"]),
    ],
    symbols=[
        Sym("pointers", At(".data.rel.ro"), 1024),
        Sym("table", At(".data"), 1024),
        Sym("flag", At(".data", 1024), 4),
        Sym("words", At(".data", 1056), 480),
        Sym("buffer", At(".bss"), 6144),
        Sym("last", At(".bss", 6144), 512),
    ],
)


# --- how the tests say what they mean ---------------------------------------------------------------------------------


def counted(**pages: int) -> Counters:
    """Return the counters that smaps has, in pages; what is not told is 0."""
    told = dict.fromkeys(("Rss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty"), 0)
    told |= {"Anonymous": 0, "Swap": 0, "SwapPss": 0} | pages
    return Counters({key: place for place, key in enumerate(told)}, tuple(count * PAGE for count in told.values()))


def private(pages: int, of_the_file: int = 0) -> Counters:
    """Return the counters of a mapping in which some pages are this process's own, and some are of the file."""
    return counted(Rss=pages + of_the_file, Private_Dirty=pages, Shared_Clean=of_the_file, Anonymous=pages)


def mapped(
    start_addr: int, pages: int, permissions: str, counters: Counters, *, name: str = "", of: FileKey | None = None
) -> Mapping:
    device, inode, name = of or ("00:00", 0, name)
    offset = start_addr - B if of else 0
    return Mapping(start_addr, start_addr + pages * PAGE, permissions, offset, device, inode, name, counters)


def library(
    relro: int = 1, data: int = 1, bss: int = 2, behind: int = 0, bss_private: int | None = None
) -> list[Mapping]:
    """Return the mappings of the library, with so many pages written of each; `behind` pages merged with its .bss."""
    return [
        mapped(B, 2, "r-xp", private(0, 2), of=KEY),
        mapped(B + 0x2000, 1, "r--p", private(relro, 1 - relro), of=KEY),
        mapped(B + 0x3000, 1, "rw-p", private(data, 1 - data), of=KEY),
        mapped(B + 0x4000, 2 + behind, "rw-p", private(bss if bss_private is None else bss_private)),
    ]


class Files:
    """What the files say: that of the library, or nothing where it cannot be read."""

    def __init__(self, contents: Contents | None) -> None:
        self._contents = contents

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        return self._contents if loaded.image else None

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:  # noqa: ARG002 # a protocol
        return PageNumbers(())


def audited(
    mappings: Iterable[Mapping],
    file: ElfFile | None = LIBRARY,
    *,
    dialect: str = "smaps",
    rollup: Counters | None = None,
    status: Status | None = None,
    are_contents_readable: bool = True,
    command: str | None = None,
) -> Audit:
    """Audit literal mappings together with the library; with no file, none could be read."""
    text, *_ = read_texts(b"00001000-00002000 rw-p 00000000 00:00 0 \n", "text")
    memory = MemoryMap(dialect, tuple(mappings), command=command)
    snapshot = text._replace(memory=memory, rollup=rollup, status=status, page_bytes=PAGE, notes=())
    images: dict[FileKey, Image] = {KEY: read_image(write(file), "library.so")} if file else {}
    contents = read_contents(images[KEY]) if images and are_contents_readable else None
    return audit_snapshot(snapshot, images, Files(contents), target="text")


Line = tuple[str, str | None, str | None, int | None]


def lines(rows: Iterable[Row], owner: str = KEY.name) -> list[Line]:
    """Return kind, section, name and private bytes of the rows of an owner that hold something, by section and name."""
    found = [(row.kind.value, row.section, row.name, row.bytes) for row in rows if row.owner == owner and row.bytes]
    return sorted(found, key=lambda line: (line[1] or "", line[2] or ""))


def row_of(audit: Audit, name: str | None, section: str | None = None) -> Row:
    """Return the one row of a name, in one section where several have it."""
    found = [row for row in audit.ledger if row.name == name and section in {None, row.section}]
    assert len(found) == 1, found
    return found[0]


def private_bytes(audit: Audit) -> int:
    return sum(row.bytes or 0 for row in audit.ledger if row.kind.value != "kernel")


# --- to the symbol ----------------------------------------------------------------------------------------------------


def test_wholly_private_mappings_are_split_to_the_symbol_and_every_byte_has_its_row() -> None:
    audit = audited(library())
    assert lines(audit.ledger) == [
        ("bss", ".bss", "[rest of the last page]", 4032),  # 0x6000 - 0x5040
        ("bss", ".bss", "buffer", 6144),
        ("bss", ".bss", "last", 512),
        ("data", ".data", "[padding between sections]", 64),  # 0x3640 - 0x3600
        ("data", ".data", "[padding]", 28),
        ("data", ".data", "flag", 4),
        ("data", ".data", "table", 1024),
        ("data", ".data", "words", 480),
        ("relro", ".data.rel.ro", "[page shared with the section before]", 3072),  # 0x2c00 - 0x2000
        ("relro", ".data.rel.ro", "pointers", 1024),
    ]
    assert private_bytes(audit) == 4 * PAGE
    assert audit.totals.private.bytes == 4 * PAGE


def test_a_variable_in_two_mappings_is_one_row_with_the_pages_of_both() -> None:
    # buffer: 0x3640 to 0x4e40, so 2496 bytes in the page of .data and 3648 in the first page behind it.
    buffer = row_of(audited(library()), "buffer")
    assert (buffer.bytes, buffer.pages) == (2496 + 3648, 2)
    assert (buffer.symbol, buffer.owner, buffer.is_writable) == ("buffer", KEY.name, True)


def test_a_symbol_row_has_the_virtual_size_of_the_symbol_too() -> None:
    audit = audited(library())
    assert [row_of(audit, name).mapped_bytes for name in ("table", "flag", "last")] == [1024, 4, 512]
    assert sum(row.mapped_bytes for row in audit.ledger) == 6 * PAGE  # 2 of text, 1, 1, and 2


def test_copies_of_one_name_are_one_row_and_lie_in_as_many_pages_as_there_are() -> None:
    # 107 variables of 4 bytes, as a header's static makes them, from 0x4000 on: 428 bytes in one page.
    copies = replace(
        LIBRARY,
        symbols=[
            Sym("a_variable_with_a_longer_name", At(".data"), 4),
            *(Sym("NULL_XACTION", At(".bss", 0x4000 - 0x3640 + 4 * number), 4, binding=0) for number in range(107)),
        ],
    )
    row = row_of(audited(library(), copies), "NULL_XACTION")
    assert row.bytes == 428
    assert row.pages == 1


def test_a_relro_page_is_private_although_nobody_can_write_it() -> None:
    pointers = row_of(audited(library()), "pointers")
    assert (pointers.kind.value, pointers.bytes, pointers.is_writable) == ("relro", 1024, False)


def test_what_a_stripped_file_does_not_name_says_so() -> None:
    audit = audited(library(), replace(LIBRARY, symbols=[]))
    assert ("data", ".data", "[no symbol: stripped]", 1536) in lines(audit.ledger)
    assert private_bytes(audit) == 4 * PAGE


def test_what_a_symbol_table_does_not_name_says_so() -> None:
    audit = audited(library(), replace(LIBRARY, symbols=[Sym("table", At(".data"), 1024)]))
    assert ("bss", ".bss", "[no symbol]", 6656) in lines(audit.ledger)


def test_a_file_without_section_headers_is_split_as_far_as_its_segments_tell() -> None:
    stripped = write(LIBRARY)
    headless = read_image(stripped[:40] + bytes(8) + stripped[48:60] + bytes(4) + stripped[64:], "library.so")
    assert headless.sections == ()
    text, *_ = read_texts(b"00001000-00002000 rw-p 00000000 00:00 0 \n", "text")
    snapshot = text._replace(memory=MemoryMap("smaps", tuple(library())), notes=())
    audit = audit_snapshot(snapshot, {KEY: headless}, Files(read_contents(headless)), target="text")
    # The file's bytes of the writable segment: 0x2c00 to 0x3600; behind them 0x3600 to 0x5040.
    named = [row.bytes or 0 for row in audit.ledger if row.name == "[no section headers]"]
    assert sum(named) == 0x5040 - 0x2C00
    assert private_bytes(audit) == 4 * PAGE


def test_a_page_of_code_that_was_written_is_private_text() -> None:
    rewritten = [mapped(B, 2, "r-xp", private(2), of=KEY), *library()[1:]]
    audit = audited(rewritten)
    assert sum(row.bytes or 0 for row in audit.ledger if row.kind.value == "text") == 2 * PAGE


# --- where the kernel does not tell which pages are private -----------------------------------------------------------


def test_a_partly_private_mapping_stays_with_its_section() -> None:
    # One of the two pages of .bss behind the file is private: it may hold `buffer`, or `last` and what follows it.
    audit = audited(library(bss_private=1))
    assert ("bss", ".bss", None, PAGE) in lines(audit.ledger)
    # What lies in the page of .data is known to the byte as before.
    assert [row.bytes for row in audit.ledger if row.symbol == "buffer"] == [2496]
    assert private_bytes(audit) == 3 * PAGE


def test_a_partly_private_mapping_of_several_sections_names_them_and_why() -> None:
    longer = [
        *library()[:2],
        mapped(B + 0x3000, 2, "rw-p", private(1, 1), of=KEY),
        mapped(B + 0x5000, 1, "rw-p", private(1)),
    ]
    wide = replace(
        LIBRARY,
        sections=[
            *LIBRARY.sections[:2],
            Section(".data", flags=RW, data=b"d" * 0x1800, addr=0x3000),
            Section(".bss", SHT_NOBITS, RW, size=0x1800, addr=0x4800),
        ],
        symbols=[Sym("all", At(".data"), 0x1800)],
    )
    audit = audited(longer, wide)
    row = row_of(audit, "[1 of 2 pages private]")
    assert (row.section, row.symbol, row.bytes, row.mapped_bytes) == (".data+.bss", None, PAGE, 2 * PAGE)
    assert row.shared_bytes == PAGE


def test_a_mapping_of_which_nothing_is_private_has_its_sections_and_no_bytes() -> None:
    audit = audited(library(data=0, bss=0))
    rows = [row for row in audit.ledger if row.kind.value in {"data", "bss"}]
    assert {(row.section, row.bytes, row.mapped_bytes, row.shared_bytes) for row in rows} == {
        (".data+.bss", 0, PAGE, PAGE),
        (".bss", 0, 2 * PAGE, 0),
    }


def test_a_file_whose_symbols_cannot_be_read_stays_with_its_sections() -> None:
    audit = audited(library(), are_contents_readable=False)
    assert lines(audit.ledger) == [
        ("bss", ".bss", None, 2 * PAGE),
        ("data", ".data+.bss", "[1 of 1 pages private]", PAGE),
        ("relro", ".data.rel.ro", None, PAGE),
    ]


def test_of_many_sections_the_first_two_and_the_last_are_named() -> None:
    many = ElfFile(
        sections=[
            Section(".text", flags=RX, data=bytes(0x100), addr=0x1000),
            *(Section(f".data.{n}", flags=RW, data=b"d" * 64, addr=0x2000 + 64 * n) for n in range(6)),
        ]
    )
    mappings = [mapped(B, 2, "r-xp", private(0), of=KEY), mapped(B + 0x2000, 1, "rw-p", private(0, 1), of=KEY)]
    assert [row.section for row in audited(mappings, many).ledger if row.kind.value == "data"] == [
        ".data.0+.data.1+...+.data.5"
    ]


def test_a_mapping_that_was_merged_and_is_partly_private_is_a_row_of_all_its_owners() -> None:
    audit = audited(library(behind=3, bss_private=4))
    merged = [row for row in audit.ledger if row.owner.startswith("[merged: ")]
    assert [(row.owner, row.bytes, row.mapped_bytes) for row in merged] == [
        ("[merged: library.so + [anonymous]]", 4 * PAGE, 5 * PAGE)
    ]
    assert merged[0].name is not None
    assert "partly private" in merged[0].name
    assert "[anonymous]" not in {row.owner for row in audit.ledger}
    assert private_bytes(audit) == 6 * PAGE


def test_a_mapping_that_was_merged_and_is_wholly_private_is_split_exactly() -> None:
    audit = audited(library(behind=3, bss_private=5))
    assert [row.bytes for row in audit.ledger if row.owner == "[anonymous]"] == [3 * PAGE]
    assert ("bss", ".bss", "[rest of the last page]", 4032) in lines(audit.ledger)
    assert private_bytes(audit) == 7 * PAGE


def test_a_mapping_that_was_merged_and_is_not_touched_is_split_by_its_addresses() -> None:
    audit = audited(library(behind=3, bss_private=0))
    untouched = [(row.owner, row.bytes, row.mapped_bytes) for row in audit.ledger if row.bytes == 0 and row.is_writable]
    assert sorted(untouched) == [(KEY.name, 0, 2 * PAGE), ("[anonymous]", 0, 3 * PAGE)]


# --- how it is known --------------------------------------------------------------------------------------------------


def anonymous(addr: int, pages: int, counters: Counters, name: str = "") -> Mapping:
    return mapped(addr, pages, "rw-p", counters, name=name)


def test_what_is_one_counter_is_measured_and_what_is_computed_from_it_is_derived() -> None:
    audit = audited([*library(), anonymous(B + 0x100000, 3, private(2), "[heap]")])
    heap = next(row for row in audit.ledger if row.owner == "[heap]")
    assert (heap.bytes, heap.evidence) == (2 * PAGE, Evidence.MEASURED)
    assert row_of(audit, "table").evidence is Evidence.DERIVED
    assert audit.totals.private.evidence is Evidence.MEASURED


def test_a_row_is_as_weak_as_the_weakest_mapping_in_it() -> None:
    sure = anonymous(B, 4, private(2))
    # Half of what was swapped is a relative's: the share is what the kernel divides by the number of holders.
    shared_swap = anonymous(B + 0x100000, 4, counted(Rss=1, Private_Dirty=1, Anonymous=1, Swap=2, SwapPss=1))
    assert [row.evidence for row in audited([sure]).ledger] == [Evidence.MEASURED]
    both = audited([sure, shared_swap])
    assert [(row.owner, row.bytes, row.evidence) for row in both.ledger] == [
        ("[anonymous]", 4 * PAGE, Evidence.ESTIMATED)
    ]
    assert both.totals.private.evidence is Evidence.ESTIMATED


def test_an_assumed_owner_makes_its_bss_an_estimate() -> None:
    audit = audited(library(), None)
    bss = next(row for row in audit.ledger if row.kind.value == "bss")
    assert (bss.bytes, bss.evidence, bss.attribution.value) == (2 * PAGE, Evidence.ESTIMATED, "adjacency")
    # That the pages are private is the kernel's word all the same.
    assert audit.totals.private.evidence is Evidence.MEASURED


def test_a_text_without_anonymous_pages_gives_an_estimate_and_says_why() -> None:
    # pmap -x: Rss and Dirty are all there is.
    dirty = Counters({"Rss": 0, "Dirty": 1}, (3 * PAGE, 2 * PAGE))
    audit = audited([anonymous(B, 4, dirty, "[heap]")], None, dialect="pmap -x")
    assert [(row.bytes, row.evidence) for row in audit.ledger] == [(3 * PAGE, Evidence.ESTIMATED)]
    assert audit.totals.private.evidence is Evidence.ESTIMATED
    assert "anonymous-unknown" in {note.slug for note in audit.notes}


def test_a_text_of_sizes_only_has_virtual_rows_without_private_bytes() -> None:
    nothing = Counters({}, ())
    audit = audited(
        [anonymous(B, 4, nothing, "[heap]"), mapped(B + 0x100000, 2, "r--p", nothing, name="[vvar]")], dialect="maps"
    )
    assert [(row.owner, row.bytes, row.mapped_bytes, row.shared_bytes) for row in audit.ledger] == [
        ("[heap]", None, 4 * PAGE, None),
        ("[vvar]", None, 2 * PAGE, None),
    ]
    assert {row.evidence for row in audit.ledger} == {Evidence.VIRTUAL}
    assert audit.totals.private.bytes is None
    assert audit.totals.mapped_writable.bytes == 4 * PAGE
    assert "virtual-only" in {note.slug for note in audit.notes}


def test_kernel_memory_is_rows_of_its_own_and_makes_the_cost_an_estimate() -> None:
    status = Status(name="sleep", state="T", thread_count=2, page_table_bytes=45_056, has_memory=True)
    audit = audited([anonymous(B, 4, private(2))], status=status)
    kernel = {row.name: (row.bytes, row.mapped_bytes) for row in audit.ledger if row.kind.value == "kernel"}
    assert kernel["[page tables]"] == (45_056, 0)
    assert kernel["[kernel stacks of 2 threads]"] == (32_768, 0)
    objects_bytes, _ = kernel["[kernel objects]"]
    assert audit.totals.kernel.bytes == 45_056 + 32_768 + (objects_bytes or 0)
    assert audit.totals.per_process.bytes == 2 * PAGE + audit.totals.kernel.bytes
    assert audit.totals.per_process.evidence is Evidence.ESTIMATED
    assert private_bytes(audit) == audit.totals.private.bytes == 2 * PAGE


# --- what is shared ---------------------------------------------------------------------------------------------------


def test_pages_of_files_are_paid_once_and_not_private() -> None:
    audit = audited(library(relro=0, data=0, bss=0))
    assert audit.totals.private.bytes == 0
    assert audit.totals.shared_once.bytes == 4 * PAGE  # 2 of text, RELRO and .data as the file has them
    assert sum(row.shared_bytes or 0 for row in audit.ledger) == 4 * PAGE


def test_anonymous_pages_that_a_relative_holds_too_are_not_private() -> None:
    # A parent and its child: of 10 pages 7 are shared, and 3 were written since.
    forked = counted(Rss=10, Anonymous=10, Shared_Dirty=7, Private_Dirty=3)
    audit = audited([anonymous(B, 10, forked)])
    assert audit.totals.private.bytes == 3 * PAGE
    assert audit.totals.cow_shared.bytes == 7 * PAGE
    assert "sharing-uncertain" not in {note.slug for note in audit.notes}


def test_where_file_pages_and_shared_pages_mix_it_is_noted_how_much_is_uncertain() -> None:
    # 2 pages of the file and 6 anonymous ones, 5 of them all are mapped by others: smaps does not say which.
    mixed = counted(Rss=8, Anonymous=6, Shared_Dirty=5, Private_Dirty=3)
    audit = audited([mapped(B, 8, "rw-p", mixed, of=KEY)], None)
    assert audit.totals.private.bytes == 3 * PAGE
    assert audit.totals.cow_shared.bytes == 3 * PAGE
    notes = [note.detail for note in audit.notes if note.slug == "sharing-uncertain"]
    assert len(notes) == 1
    assert "8 KiB" in notes[0]  # at least 6 - 5 = 1 page is surely private, so 2 of the 3 are not sure


def test_swapped_pages_are_private_and_those_of_shared_memory_are_not() -> None:
    swapped = counted(Rss=1, Anonymous=1, Private_Dirty=1, Swap=2, SwapPss=2)
    segment = counted(Rss=1, Shared_Dirty=1, Swap=3, SwapPss=3)
    audit = audited(
        [anonymous(B, 4, swapped), mapped(B + 0x100000, 4, "rw-s", segment, name="/SYSV00000000 (deleted)")]
    )
    assert audit.totals.private.bytes == 3 * PAGE
    assert audit.totals.shared_once.bytes == PAGE


def test_huge_pages_of_the_reserved_pool_are_noted_and_in_no_total() -> None:
    huge = counted(Private_Hugetlb=512)
    audit = audited([anonymous(B, 512, huge)])
    assert audit.totals.private.bytes == 0
    assert ["2 MiB" in note.detail for note in audit.notes if note.slug == "hugetlb-apart"] == [True]


# --- the whole --------------------------------------------------------------------------------------------------------


def test_rows_come_the_largest_first_and_equal_ones_by_name() -> None:
    audit = audited(
        [
            anonymous(B, 1, private(1), "[anon:b]"),
            anonymous(B + 0x10000, 3, private(3), "[anon:c]"),
            anonymous(B + 0x20000, 1, private(1), "[anon:a]"),
            anonymous(B + 0x30000, 2, private(1), "[anon:d]"),
        ]
    )
    assert [row.owner for row in audit.ledger] == ["[anon:c]", "[anon:d]", "[anon:a]", "[anon:b]"]


def test_mappings_of_one_owner_and_kind_are_one_row() -> None:
    audit = audited([anonymous(B + 0x10000 * n, 2, private(n)) for n in range(3)])
    assert [(row.owner, row.bytes, row.mapped_bytes, row.pages) for row in audit.ledger] == [
        ("[anonymous]", 3 * PAGE, 6 * PAGE, 3)
    ]


def test_a_file_that_is_loaded_twice_is_one_owner_with_the_bytes_of_both() -> None:
    second = 0x100000
    again = [
        mapping._replace(start_addr=mapping.start_addr + second, end_addr=mapping.end_addr + second)
        for mapping in library()
    ]
    once, twice = audited(library()), audited([*library(), *again])
    assert [(name, size_bytes) for _, _, name, size_bytes in lines(twice.ledger)] == [
        (name, 2 * (size_bytes or 0)) for _, _, name, size_bytes in lines(once.ledger)
    ]


def test_two_files_of_one_name_in_different_folders_are_two_owners() -> None:
    other = FileKey("08:01", 12, "/opt/library.so")
    mappings = [
        mapped(B, 1, "rw-p", private(1), of=KEY),
        mapped(B + 0x10000, 1, "rw-p", private(1), of=other),
    ]
    assert {row.owner for row in audited(mappings, None).ledger} == {"/lib/library.so", "/opt/library.so"}


def test_rows_that_processes_of_one_file_share_are_not_taken_from_one_with_other_pages() -> None:
    data = Section(".data", flags=RW, data=bytes(16 * PAGE), addr=0x10000)
    load = Segment(PT_LOAD, PF_R | PF_W, [".data"], offset=0x10000, vaddr=0x10000)
    file = ElfFile(sections=[data], segments=[load], symbols=[Sym("table", At(".data"), 16 * PAGE)])
    image = read_image(write(file), "library.so")
    text, *_ = read_texts(b"00001000-00002000 rw-p 00000000 00:00 0 \n", "text")
    memory = MemoryMap("smaps", (mapped(B + 0x10000, 16, "rw-p", private(16), of=KEY),))
    known = KnownRows()
    result = []
    for page_bytes in (PAGE, 16 * PAGE):
        snapshot = text._replace(memory=memory, page_bytes=page_bytes, notes=())
        files = Files(read_contents(image))
        audit = audit_snapshot(snapshot, {KEY: image}, files, target="text", known_rows=known)
        result.append(row_of(audit, "table"))
    assert [(row.bytes, row.pages, row.sole_pages) for row in result] == [(16 * PAGE, 16, 16), (16 * PAGE, 1, 1)]


def test_an_audit_whose_rows_do_not_add_up_cannot_be_made() -> None:
    audit = audited(library())
    with pytest.raises(ValueError, match=r"the rows hold \d+ private bytes, the total is 16384"):
        replace(audit, ledger=audit.ledger[1:])
    with pytest.raises(ValueError, match="the rows hold"):
        replace(audit, ledger=(*audit.ledger, audit.ledger[0]))


def sums(audit: Audit) -> Sequence[int | None]:
    totals = audit.totals
    return totals.private.bytes, totals.mapped_writable.bytes, totals.mapped.bytes, totals.shared_once.bytes


def test_what_is_known_of_the_files_changes_no_total() -> None:
    mappings = [*library(behind=3, bss_private=4), anonymous(B + 0x100000, 3, private(2), "[heap]")]
    known, unread = audited(mappings), audited(mappings, None)
    assert sums(known) == sums(unread) == sums(audited(mappings, are_contents_readable=False))
    assert known.ledger != unread.ledger
