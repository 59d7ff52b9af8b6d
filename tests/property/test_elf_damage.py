"""Hostile ELF files: whatever happens to one, it gives facts that add up or one clear error, quickly and in bounds."""

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.archive import read_members
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import read_image, starts_like_elf
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from tests.elfkinds import KINDS
from tests.elfwriter import (
    ET_DYN,
    ET_REL,
    PF_R,
    PF_W,
    PT_LOAD,
    RW,
    RX,
    SHN_COMMON,
    SHT_DYNSYM,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Segment,
    Sym,
    archive,
    patch,
    peek,
    write,
)
from tests.examples import examples
from tests.workcount import assert_linear, warm_up, work_of

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(
    path for path in (ROOT / "sample_binaries").glob("*/*") if path.is_file() and starts_like_elf(path.read_bytes()[:4])
)
in_all_classes_and_orders = pytest.mark.parametrize("kind", list(KINDS))
numbered_as_usual_and_extended = pytest.mark.parametrize("extended", [False, True], ids=["usual", "extended"])
MOST_MEMORY_BYTES = 64 << 20
MOST_WORK = 2
"""So many times the work of a sound file is that of a damaged one at most."""


def check(error: InputError, file: str) -> None:
    """Check that an error says what a person needs: which file, what is wrong, and where."""
    assert error.file == file
    assert error.cause
    assert error.offset is None or error.offset >= 0


def facts(data: bytes | memoryview) -> Contents | None:
    """Return what a file holds, checked to add up, or None where it is refused; any other exception fails the test."""
    try:
        contents = read_contents(read_image(data, "a file"))
    except InputError as error:
        check(error, "a file")
        return None
    for section in contents.sections:
        assert section.ranges.start == 0
        assert section.ranges.end == section.size_bytes
        at = 0
        for start, end, _ in section.ranges.pieces:
            assert at == start < end
            at = end
        assert at == section.size_bytes == section.named_bytes + sum(section.residue_bytes.values())
    return contents


@cache
def small(kind: str, *, extended: bool = False) -> bytes:
    """Write a shared object of some 2 KB with sections, segments and symbols of every kind that is looked at."""
    sections = [
        Section(".text", flags=RX, data=bytes(8)),
        Section(".tdata", flags=TLS, data=bytes(8), align=4),
        Section(".tbss", SHT_NOBITS, TLS, size=24, align=8),
        Section(".init_array", SHT_INIT_ARRAY, RW, [0]),
        Section(".data.rel.ro", flags=RW, data=bytes(16), align=8),
        Section(".data", flags=RW, data=bytes(40), align=16),
        Section(".bss", SHT_NOBITS, RW, size=100, align=32),
    ]
    symbols = [
        Sym("function", At(".text"), 8, STT_FUNC),
        Sym("tdata", At(".tdata"), 8, STT_TLS),
        Sym("tbss", At(".tbss", 4), 8, STT_TLS, STB_LOCAL),
        Sym("table", At(".data.rel.ro"), 16),
        Sym("data", At(".data", 3), 9, binding=STB_LOCAL),
        Sym("label", At(".data", 32), 0, STT_NOTYPE),
        Sym("bss", At(".bss"), 60),
        Sym("alias", At(".bss"), 60, binding=STB_WEAK),
        Sym("tentative", 4, 4, section=SHN_COMMON),
    ]
    file = ElfFile(**KINDS[kind], sections=sections, symbols=symbols, page_bytes=64, extended=extended, relro=[4, 5])
    return write(file)


def header_places(data: bytes) -> list[int]:
    """Return the places of all bytes of the ELF header, the program headers, the section headers and the symbols."""
    tables = [(0, peek(data, "e_ehsize"))]
    if peek(data, "e_phoff"):
        tables.append((peek(data, "e_phoff"), peek(data, "e_phnum") * peek(data, "e_phentsize")))
    if peek(data, "e_shoff"):
        tables.append((peek(data, "e_shoff"), peek(data, "e_shnum") * peek(data, "e_shentsize")))
        symbol_tables = [
            number
            for number in range(peek(data, "e_shnum"))
            if peek(data, "sh_type", number) in {SHT_SYMTAB, SHT_DYNSYM, SHT_SYMTAB_SHNDX}
        ]
        tables.extend((peek(data, "sh_offset", number), peek(data, "sh_size", number)) for number in symbol_tables)
    return [place for start, size in tables for place in range(start, min(start + size, len(data)))]


def with_bytes(data: bytes, changes: dict[int, int]) -> bytes:
    changed = bytearray(data)
    for place, value in changes.items():
        changed[place % len(changed)] = value
    return bytes(changed)


# --- cut files, damaged headers ---------------------------------------------------------------------------------------


@in_all_classes_and_orders
@numbered_as_usual_and_extended
def test_a_file_that_ends_with_its_section_headers_is_refused_wherever_it_is_cut(kind: str, *, extended: bool) -> None:
    data = small(kind, extended=extended)
    assert facts(data) is not None
    assert [cut for cut in range(len(data)) if facts(data[:cut]) is not None] == []


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
@examples(15)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_sample_cut_anywhere_gives_facts_or_an_error(path: Path, share: float) -> None:
    data = path.read_bytes()
    found = facts(data[: int(share * len(data))])
    assert found is None or path.parent.name == "no_section_headers"


@in_all_classes_and_orders
def test_any_byte_of_any_header_or_symbol_may_be_another(kind: str) -> None:
    data = small(kind)
    warm_up(lambda: facts(data))
    most = MOST_WORK * work_of(lambda: facts(data)).line_count
    for place in header_places(data):
        for value in {0xFF, data[place] ^ 1, data[place] ^ 0x80} - {data[place]}:
            changed = with_bytes(data, {place: value})
            # Counting takes far longer.
            if (place + value) % 32 == 0:
                assert work_of(lambda changed=changed: facts(changed)).line_count <= most  # type: ignore[misc]
            else:
                facts(changed)


@examples(300)
@given(data=st.data())
def test_several_bytes_of_the_headers_of_any_file_may_be_others(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from([*KINDS, *(str(path) for path in SAMPLES)]))
    extended = data.draw(st.booleans())
    sound = small(file, extended=extended) if file in KINDS else Path(file).read_bytes()
    places = st.sampled_from(header_places(sound)) | st.integers(0, len(sound) - 1)
    facts(with_bytes(sound, data.draw(st.dictionaries(places, st.integers(0, 255), min_size=1, max_size=6))))


EXTREMES = [0, 1, 2, 0xFF00, 0xFFF2, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 62, 1 << 63, (1 << 64) - 1]
HEADER_FIELDS = ["e_phoff", "e_shoff", "e_phentsize", "e_phnum", "e_shentsize", "e_shnum", "e_shstrndx", "e_type"]
PROGRAM_FIELDS = ["p_type", "p_flags", "p_offset", "p_vaddr", "p_filesz", "p_memsz", "p_align"]
SECTION_FIELDS = [
    *("sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info"),
    *("sh_addralign", "sh_entsize"),
]


@st.composite
def files_with_extreme_fields(draw: st.DrawFn) -> bytes:
    """Draw a small file of which a few fields have the values at which arithmetic goes wrong."""
    sound = small(draw(st.sampled_from([*KINDS])), extended=draw(st.booleans()))
    count = peek(sound, "e_shnum") or peek(sound, "sh_size", 0)
    segment_count = min(peek(sound, "e_phnum"), 5)
    damaged = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        field = draw(st.sampled_from([*HEADER_FIELDS, *PROGRAM_FIELDS, *SECTION_FIELDS]))
        at = draw(st.integers(0, segment_count - 1 if field.startswith("p_") else count - 1))
        most = next(at_most for at_most in (64, 32, 16) if fits(sound, field, (1 << at_most) - 1))
        one = patch(sound, field, draw(st.sampled_from(EXTREMES)) % (1 << most), at)
        damaged = bytearray(new if new != old else now for old, new, now in zip(sound, one, damaged, strict=True))
    return bytes(damaged)


def fits(data: bytes, field: str, value: int) -> bool:
    try:
        patch(data, field, value)
    except Exception:  # noqa: BLE001 - struct.error and OverflowError
        return False
    return True


@examples(400)
@given(files_with_extreme_fields())
def test_any_fields_may_have_extreme_values(data: bytes) -> None:
    facts(data)


@examples(200)
@given(st.integers(0, 300), st.integers(0, 255), st.booleans(), st.booleans())
def test_an_archive_may_be_damaged_anywhere(place: int, value: int, thin: bool, bsd: bool) -> None:  # noqa: FBT001
    data = archive([("one.o", b"12345"), ("a_name_longer_than_its_field.o", b"6789")], thin=thin, bsd=bsd)
    names: list[str] = []
    try:
        names.extend(member.name for member in read_members(with_bytes(data, {place: value}), "lib.a"))
    except InputError as error:
        check(error, "lib.a")
    assert len(names) <= len(data) // 60


# --- laws of the symbols ----------------------------------------------------------------------------------------------

SIZES = {".data": 96, ".bss": 200, ".tdata": 40, ".tbss": 64}
NAMES = st.sampled_from(["a", "b", "bb", "table", "$d", ".L1", "", "_end", "__bss_start", "caf\udce9"])


@st.composite
def symbols(draw: st.DrawFn) -> Sym:
    section = draw(st.sampled_from(list(SIZES)))
    is_thread_local = section in {".tdata", ".tbss"}
    offset = draw(st.integers(-8, SIZES[section] + 8) | st.sampled_from([1 << 20, -(1 << 20)]))
    size = draw(st.integers(0, 40) | st.just(0) | st.sampled_from([SIZES[section], (1 << 32) - 1]))
    symbol_type = STT_TLS if is_thread_local else draw(st.sampled_from([STT_OBJECT, STT_NOTYPE, STT_FUNC]))
    binding = draw(st.sampled_from([STB_LOCAL, STB_GLOBAL, STB_WEAK, 10]))
    return Sym(draw(NAMES), At(section, offset), size, symbol_type, binding)


@st.composite
def programs(draw: st.DrawFn) -> ElfFile:
    contents = draw(st.sampled_from([bytes(96), b"\1" * 96, bytes(50) + b"\1" + bytes(45)]))
    aligns = [draw(st.sampled_from([1, 4, 8, 16, 64])) for _ in SIZES]
    sections = [
        Section(".tdata", flags=TLS, data=bytes(40), align=aligns[0]),
        Section(".tbss", SHT_NOBITS, TLS, size=64, align=aligns[1]),
        Section(".data", flags=RW, data=contents, align=aligns[2]),
        Section(".bss", SHT_NOBITS, RW, size=200, align=aligns[3]),
    ]
    found = draw(st.lists(symbols(), max_size=12))
    kind = KINDS[draw(st.sampled_from([*KINDS]))]
    return ElfFile(**kind, type=draw(st.sampled_from([ET_REL, ET_DYN])), sections=sections, symbols=found)


def asked_ranges(file: ElfFile, section: str) -> set[tuple[int, int]]:
    """Return the ranges of a section that symbols with a size ask for, cut at the end of the section."""
    return {
        (symbol.value.plus, min(symbol.value.plus + symbol.size, SIZES[section]))
        for symbol in file.symbols
        if isinstance(symbol.value, At) and symbol.value.section == section
        if symbol.size and 0 <= symbol.value.plus < SIZES[section]
    }


@examples(200)
@given(programs())
def test_a_byte_is_named_exactly_where_a_symbol_with_a_size_lies_over_it(file: ElfFile) -> None:
    found = facts(write(file))
    assert found is not None
    assert {section.section.name for section in found.sections} == set(SIZES)
    for one in found.sections:
        asked = {at for start, end in asked_ranges(file, one.section.name) for at in range(start, end)}
        named = {at for start, end, owner in one.ranges.pieces if isinstance(owner, Symbol) for at in range(start, end)}
        assert named == asked
        assert one.named_bytes == len(asked)


@examples(200)
@given(programs())
def test_what_symbols_ask_for_is_what_they_get_and_what_they_lose_to_others(file: ElfFile) -> None:
    found = facts(write(file))
    assert found is not None
    for part in found.sections:
        variables = {(each.offset, min(each.offset + each.size_bytes, part.size_bytes)) for each in part.variables}
        asked = asked_ranges(file, part.section.name)
        assert {(start, end) for start, end in variables if end > start} == asked
        sized = [variable for variable in part.variables if variable.size_bytes]
        total = sum(min(each.size_bytes, part.size_bytes - each.offset) for each in sized)
        assert total == part.named_bytes + part.lost_bytes


@examples(200)
@given(programs(), st.randoms(use_true_random=False))
def test_the_order_of_symbols_changes_nothing(file: ElfFile, order: random.Random) -> None:
    shuffled = list(file.symbols)
    order.shuffle(shuffled)
    other = ElfFile(
        bits=file.bits,
        order=file.order,
        machine=file.machine,
        type=file.type,
        sections=file.sections,
        symbols=shuffled,
    )
    assert facts(write(other)) == facts(write(file))


# --- what hostile files cost ------------------------------------------------------------------------------------------


def with_endless_names(count: int, name_bytes: bytes) -> bytes:
    """Write an object of a .bss whose symbols have names that begin one byte after the other, and all end together."""
    name = (name_bytes * (1 << 20)).decode("utf-8", "surrogateescape")
    found = [Sym(1 + number, At(".bss", number), 1) for number in range(count)]
    sections = [Section(".bss", SHT_NOBITS, RW, size=count + 1)]
    return write(ElfFile(type=ET_REL, sections=sections, symbols=[*found, Sym(name, At(".bss", count), 1)]))


def with_long_section_names(count: int, *, step: int) -> bytes:
    """Write an object of so many sections, whose names begin so many bytes after each other in a text without end."""
    names = Section(".names", SHT_STRTAB, data=b"n" * (4096 + count))
    sections = [names, *(Section(".bss", SHT_NOBITS, RW, size=1) for _ in range(count))]
    sound = write(ElfFile(type=ET_REL, sections=sections))
    data, start = bytearray(sound), peek(sound, "e_shoff") + 2 * 64
    for number in range(count):
        place = start + 64 * number
        data[place : place + 4] = (number * step).to_bytes(4, "little")
    return patch(bytes(data), "e_shstrndx", 1)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: with_endless_names(60, b"n"), id="symbol names that share one text"),
        pytest.param(lambda: with_endless_names(60, b"\xff"), id="symbol names that share one text, not UTF-8"),
        pytest.param(lambda: with_long_section_names(20_000, step=0), id="section names that are one"),
        pytest.param(lambda: with_long_section_names(20_000, step=1), id="section names that share one text"),
    ],
)
def test_a_file_of_a_megabyte_costs_no_more_than_64(make: Any) -> None:  # noqa: ANN401
    data = make()
    assert len(data) < 2 << 20
    tracemalloc.start()
    try:
        facts(memoryview(data))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < MOST_MEMORY_BYTES


def test_the_largest_sizes_cost_no_more_than_others() -> None:
    sections = [Section(".bss", SHT_NOBITS, RW, size=64), Section(".tbss", SHT_NOBITS, TLS, size=64)]
    found = [
        Sym("a", At(".bss"), (1 << 64) - 1),
        Sym("b", At(".bss", 1), 1 << 63),
        Sym("c", At(".tbss"), 1 << 62, STT_TLS),
    ]
    data = write(ElfFile(sections=sections, symbols=found))
    data = patch(patch(data, "sh_size", 1 << 63, ".bss"), "sh_size", 1 << 63, ".tbss")
    tracemalloc.start()
    try:
        assert facts(data) is not None
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


def nested_symbols(count: int) -> bytes:
    """Write an object with so many symbols, each inside the one before it."""
    found = [Sym("", At(".bss", number), 2 * (count - number)) for number in range(count)]
    return write(ElfFile(type=ET_REL, sections=[Section(".bss", SHT_NOBITS, RW, size=2 * count)], symbols=found))


def many_segments_without_sections(count: int) -> bytes:
    segment = Segment(PT_LOAD, PF_R | PF_W, offset=0, vaddr=0, filesz=1, memsz=2)
    data = write(ElfFile(segments=[segment] * count))
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        data = patch(data, field, 0)
    return data


def many_segments_and_sections(count: int) -> bytes:
    sections = [Section(".bss", SHT_NOBITS, RW, size=1)] * count
    return write(ElfFile(sections=sections, segments=[Segment(PT_LOAD)] * count))


def zeros_between_two_variables(size: int) -> bytes:
    """Write a .data with a variable at each end of its first half: are the zeros between them padding?"""
    sections = [Section(".data", flags=RW, data=bytes(size), align=2 * size)]
    found = [Sym("a", At(".data"), 1), Sym("b", At(".data", size // 2), 1)]
    return write(ElfFile(type=ET_REL, sections=sections, symbols=found))


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (nested_symbols, 2_000),
        (many_segments_without_sections, 2_000),
        (many_segments_and_sections, 1_500),
        (zeros_between_two_variables, 1 << 20),
    ],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else "",
)
def test_the_work_to_read_does_not_grow_with_the_square_of_what_is_read(
    make: Callable[[int], bytes], size: int
) -> None:
    def read(data: bytes) -> None:
        assert facts(memoryview(data)) is not None

    assert_linear(make, read, size)


# A file may be far longer than what was ever written of it, at no cost to who made it.
SPARSE_BYTES = 256 << 20
READ_IN_CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
from footprint.elf.contents import read_contents
from footprint.elf.image import read_image
from footprint.errors import InputError
from footprint.system.files import open_input
try:
    read_contents(read_image(open_input(sys.argv[1]), "a file"))
except InputError as error:
    print("refused")
else:
    print("read")
"""


def sparse_section_names() -> Iterator[tuple[int, bytes]]:
    data = write(ElfFile(sections=[Section(".bss", SHT_NOBITS, RW, size=1)]))
    yield 0, patch(patch(data, "sh_size", SPARSE_BYTES, ".shstrtab"), "sh_offset", 0, ".shstrtab")


def sparse_section_headers() -> Iterator[tuple[int, bytes]]:
    data = write(ElfFile(sections=[]))
    yield 0, patch(patch(patch(data, "e_shoff", 4096), "e_shnum", 0), "e_shstrndx", 0)
    yield 4096 + 32, ((SPARSE_BYTES - 4096) // 64).to_bytes(8, "little")


def sparse_section_numbers() -> Iterator[tuple[int, bytes]]:
    sections = [Section(".bss", SHT_NOBITS, RW, size=1)]
    data = write(ElfFile(type=ET_REL, sections=sections, symbols=[Sym("a", At(".bss"), 1)], extended=True))
    yield 0, patch(patch(data, "sh_offset", 0, ".symtab_shndx"), "sh_size", SPARSE_BYTES, ".symtab_shndx")


def sparse_symbols() -> Iterator[tuple[int, bytes]]:
    sections = [Section(".bss", SHT_NOBITS, RW, size=1)]
    data = write(ElfFile(type=ET_REL, sections=sections, symbols=[Sym("a", At(".bss"), 1)]))
    yield 0, patch(data, "sh_size", SPARSE_BYTES - 8192, ".symtab")


def sparse_symbol_names() -> Iterator[tuple[int, bytes]]:
    sections = [Section(".bss", SHT_NOBITS, RW, size=1000)]
    found = [Sym(1 + number, At(".bss", number), 1) for number in range(1000)]
    data = write(ElfFile(type=ET_REL, sections=sections, symbols=found))
    yield 0, patch(patch(data, "sh_offset", 1 << 20, ".strtab"), "sh_size", SPARSE_BYTES - (1 << 20), ".strtab")
    yield 1 << 20, b"n" * (1 << 20)


def sparse_data() -> Iterator[tuple[int, bytes]]:
    found = [Sym("a", At(".data"), 1), Sym("b", At(".data", 1 << 20), 1)]
    sections = [Section(".data", SHT_PROGBITS, RW, bytes(8), align=2 << 20)]
    data = write(ElfFile(type=ET_REL, sections=sections, symbols=found))
    yield 0, patch(data, "sh_size", SPARSE_BYTES - (8 << 20), ".data")


@pytest.mark.parametrize(
    "make",
    [
        sparse_section_names,
        sparse_section_headers,
        sparse_section_numbers,
        sparse_symbols,
        sparse_symbol_names,
        sparse_data,
    ],
    ids=lambda make: make.__name__.replace("_", " "),
)
def test_a_sparse_file_is_read_or_refused_without_being_copied(make: Any, tmp_path: Path) -> None:  # noqa: ANN401
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for place, part in make():
            file.seek(place)
            file.write(part)
        file.truncate(SPARSE_BYTES)
    limit_bytes = SPARSE_BYTES + 2 * MOST_MEMORY_BYTES
    command = [sys.executable, "-c", READ_IN_CHILD, str(path), str(limit_bytes)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr[-500:]
    assert run.stdout in {"read\n", "refused\n"}
