"""Laws of the slices of a part, against an oracle that asks every byte for its owner and every page for its bytes.

The pages have 16 bytes and the part has 12 of them, so that everything meets everything.
"""

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from footprint.attribution.owned_range import LoadedObject, OwnedRange
from footprint.attribution.symbol_ranges import PageNumbers, symbol_rows
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import read_image
from footprint.elf.symbols import Symbol
from footprint.model.row import Attribution, Evidence, MemoryKind, Row
from footprint.process.mappings import NO_COUNTERS, FileKey, Mapping
from footprint.process.pages import PageRange
from tests.elfwriter import (
    PF_R,
    PF_W,
    PT_LOAD,
    RO,
    RW,
    SHT_NOBITS,
    SHT_PROGBITS,
    STB_LOCAL,
    At,
    ElfFile,
    Section,
    Segment,
    Sym,
    write,
)

PAGE = 16
PAGES = 12
B = 0x7F0000000000
FIRST = 0x1000  # vaddrs of the sections; the part begins before, at, or behind it
TOP = FIRST + PAGES * PAGE

NAMES = st.sampled_from(["one", "two", "three"])


@dataclass(frozen=True)
class Case:
    """A part, its private pages, and the pages that relocations write; as numbers counted from the part's start."""

    file: ElfFile
    start: int
    end: int
    private: frozenset[int]
    swapped: frozenset[int]
    relocated: frozenset[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    borders = sorted(draw(st.sets(st.integers(FIRST, TOP), max_size=8)))
    sections: list[Section] = []
    symbols: list[Sym] = []
    for number, (start, end) in enumerate(zip(borders[0::2], borders[1::2], strict=False)):
        name = f".section{number}"
        flags, is_bss = draw(st.sampled_from([RW, RW, RO])), draw(st.booleans())
        size = end - start
        if is_bss and flags == RW:
            sections.append(Section(name, SHT_NOBITS, flags, size=size, addr=start, align=1))
        else:
            sections.append(Section(name, SHT_PROGBITS, flags, b"x" * size, addr=start, align=1))
        for variable in draw(st.lists(st.tuples(NAMES, st.integers(0, size - 1), st.integers(0, 40)), max_size=4)):
            symbol, at, length = variable
            symbols.append(Sym(symbol, At(name, at), min(length, size - at), binding=STB_LOCAL))
    # Each section in a segment of its own: nothing here is loaded, and the writer need not make room.
    segments = [Segment(PT_LOAD, PF_R | PF_W, [section.name]) for section in sections]
    first, past = sorted(draw(st.sets(st.integers(-2, PAGES + 2), min_size=2, max_size=2)))
    numbers = range(past - first)
    private = draw(st.frozensets(st.sampled_from(numbers)))
    swapped = frozenset(draw(st.sets(st.sampled_from(sorted(private))))) if private else frozenset()
    relocated = draw(st.frozensets(st.sampled_from(numbers)))
    file = ElfFile(sections=sections, segments=segments, symbols=symbols)
    return Case(file, FIRST + first * PAGE, FIRST + past * PAGE, private, swapped, relocated)


def ranges_of(case: Case) -> list[PageRange]:
    """Return the private pages as ranges: neighbours together where they are alike."""
    ranges: list[PageRange] = []
    for number in sorted(case.private):
        start, is_swapped = B + case.start + number * PAGE, number in case.swapped
        if ranges and ranges[-1].end_addr == start and ranges[-1].is_swapped == is_swapped:
            ranges[-1] = PageRange(ranges[-1].start_addr, start + PAGE, is_swapped)
        else:
            ranges.append(PageRange(start, start + PAGE, is_swapped))
    return ranges


def found_by_us(case: Case) -> tuple[list[Row], Contents]:
    image = read_image(write(case.file), "program")
    key = FileKey("08:01", 11, "/bin/program")
    loaded, contents = LoadedObject(key, image, B), read_contents(image)
    start, end = B + case.start, B + case.end
    mapping = Mapping(start, end, "rw-p", 0, key.device, key.inode, key.name, NO_COUNTERS)
    part = OwnedRange(mapping, start, end, key.name, MemoryKind.DATA, Attribution.PROGRAM_HEADERS, loaded)
    relocated = PageNumbers(sorted({start // PAGE + number for number in case.relocated}))
    return symbol_rows(part, contents, ranges_of(case), PAGE, relocated, Evidence.MEASURED), contents


Owner = tuple[str | None, str | None]
"""The section, and the variable in it: None where there is none."""


def owner_at(case: Case, contents: Contents, vaddr: int) -> Owner:
    for section in case.file.sections:
        start, size = section.addr or 0, section.size or len(section.data)
        if start <= vaddr < start + size:
            for one in contents.sections:
                if one.section.name == section.name:
                    owner = next(p.owner for p in one.ranges.pieces if p.start <= vaddr - start < p.end)
                    return section.name, owner.name if isinstance(owner, Symbol) else None
            return section.name, None
    return None, None


@dataclass
class Tally:
    """What an owner of single bytes has."""

    private_bytes: int = 0
    relocated_bytes: int = 0
    pages: frozenset[int] = frozenset()


def by_bytes(case: Case, contents: Contents) -> tuple[dict[Owner, Tally], dict[int, set[str]]]:
    """Ask every byte of every private page for its owner; and give the names that each page has."""
    tallies: dict[Owner, Tally] = defaultdict(Tally)
    names: dict[int, set[str]] = defaultdict(set)
    for number in case.private:
        for vaddr in range(case.start + number * PAGE, case.start + (number + 1) * PAGE):
            owner = owner_at(case, contents, vaddr)
            tally = tallies[owner]
            tally.private_bytes += 1
            tally.relocated_bytes += number in case.relocated
            tally.pages |= {number}
            if owner[1] is not None:
                names[number].add(owner[1])
    return tallies, names


@given(cases())
def test_each_variable_has_the_bytes_and_pages_that_asking_every_byte_gives(case: Case) -> None:
    found, contents = found_by_us(case)
    tallies, names = by_bytes(case, contents)
    ours: dict[Owner, tuple[int, int, int, int]] = {}
    for part in found:
        # What goes on behind the part is told with its size, even where nothing of it is private here.
        if part.symbol is not None and (part.bytes or 0):
            owner = (part.section, part.symbol)
            before = ours.get(owner, (0, 0, 0, 0))
            figures = (part.bytes or 0, part.relocated_bytes or 0, part.pages or 0, part.sole_pages)
            if part.bytes or 0:
                ours[owner] = tuple(a + b for a, b in zip(before, figures, strict=True))  # type: ignore[assignment]
            else:
                assert figures == (0, 0, 0, 0)
    theirs = {
        owner: (
            tally.private_bytes,
            tally.relocated_bytes,
            len(tally.pages),
            sum(names[page] == {owner[1]} for page in tally.pages),
        )
        for owner, tally in tallies.items()
        if owner[1] is not None
    }
    assert ours == theirs


@given(cases())
def test_what_no_variable_owns_adds_up_for_each_section_to_what_asking_every_byte_gives(case: Case) -> None:
    # Between sections the bytes go to the one before, in front of the first to it: so only sums over those are told.
    found, contents = found_by_us(case)
    tallies, _ = by_bytes(case, contents)
    outside = ("[rest of the last page]", "[padding between sections]", "[page shared with the section before]")
    ours: dict[Owner, int] = defaultdict(int)
    for one in found:
        if one.symbol is None and (one.bytes or 0):
            ours[None if one.name in outside else one.section, None] += one.bytes or 0
    assert ours == {owner: tally.private_bytes for owner, tally in tallies.items() if owner[1] is None}


@given(cases())
def test_private_bytes_are_the_ranges_and_mapped_bytes_the_part(case: Case) -> None:
    found, _ = found_by_us(case)
    assert sum((one.bytes or 0) for one in found) == len(case.private) * PAGE
    assert sum(one.mapped_bytes for one in found) == case.end - case.start


@given(cases())
def test_no_figure_of_a_slice_is_larger_than_what_it_is_part_of(case: Case) -> None:
    for part in found_by_us(case)[0]:
        assert 0 <= (part.relocated_bytes or 0) <= (part.bytes or 0) <= part.mapped_bytes
        assert 0 <= part.sole_pages <= (part.pages or 0) <= len(case.private)
        assert (part.bytes or 0) <= PAGE * ((part.pages or 0) + 1)
        assert part.mapped_bytes > 0
        assert part.name
        if part.symbol is None:
            assert part.sole_pages == 0
            # Of what has no name, what is private and what is not are lines of their own.
            assert (part.bytes or 0) in {0, part.mapped_bytes}


@given(cases())
def test_slices_come_in_the_order_of_their_sections_and_the_rest_behind_them(case: Case) -> None:
    result, _ = found_by_us(case)
    are_rest = [one.name == "[not private]" for one in result]
    assert are_rest == sorted(are_rest)
    order = [one.section for one in result if one.name != "[not private]" and one.section]
    assert order == sorted(order)
    rest = [(one.section, one.kind) for one in result if one.name == "[not private]"]
    assert len(rest) == len(set(rest))
    assert not any((one.bytes or 0) for one in result if one.name == "[not private]")


@given(cases())
def test_what_is_not_private_has_a_line_of_its_own_only_where_the_part_cuts_a_variable(case: Case) -> None:
    # The rest of it is in another part, and may be private there: together they are as large as it is.
    result, contents = found_by_us(case)
    cut = {
        (section.section.name, piece.owner.name)
        for section in contents.sections
        for piece in section.ranges.pieces
        if isinstance(piece.owner, Symbol)
        for border in (case.start, case.end)
        if piece.start < border - section.section.vaddr < piece.end
    }
    shown = {(one.section, one.name) for one in result if not (one.bytes or 0) and one.name != "[not private]"}
    assert shown <= cut


@given(cases())
def test_whether_a_page_is_in_memory_or_in_swap_changes_nothing(case: Case) -> None:
    all_in_memory = Case(case.file, case.start, case.end, case.private, frozenset(), case.relocated)
    assert found_by_us(case)[0] == found_by_us(all_in_memory)[0]
