"""Which constructors are an object's own: those of the compiler's start-up files are told by their code."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from footprint.elf.constructors import own_constructors, own_destructors
from footprint.elf.image import read_image
from footprint.elf.initialisers import read_initialisers
from footprint.elf.statics import read_statics
from footprint.errors import InputError
from tests.elfwriter import (
    DT_FINI,
    DT_FINI_ARRAY,
    DT_FINI_ARRAYSZ,
    DT_INIT,
    DT_INIT_ARRAY,
    DT_INIT_ARRAYSZ,
    DT_NEEDED,
    EM_386,
    EM_AARCH64,
    EM_ARM,
    EM_PPC,
    EM_RISCV,
    EM_S390,
    EM_X86_64,
    RO,
    RW,
    RX,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_RELA,
    SHT_RELR,
    STB_LOCAL,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Piece,
    Rel,
    Section,
    Size,
    Sym,
    write,
)

DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ = 32, 33
R_X86_64_RELATIVE = 8
ENDBR64 = b"\xf3\x0f\x1e\xfa"
JUMP_BACK = b"\xe9\x77\xff\xff\xff"
OWN = b"\x55\x48\x89\xe5\xc3"
CRTI = b"\x48\x83\xec\x08\x48\x8b\x05\xc5\x2f\x00\x00\x48\x85\xc0\x74\x02\xff\xd0\x48\x83\xc4\x08\xc3"

# In .text, at 0x1000: what looks like frame_dummy at 0, a function at 0x40.
TEXT = 0x1000


def text(dummy: bytes) -> Section:
    return Section(".text", flags=RX, data=dummy.ljust(0x40, b"\x90") + OWN.ljust(0x40, b"\x90"), addr=TEXT)


FINI = b"\x48\x83\xec\x08\x48\x83\xc4\x08\xc3"
DTORS_AUX = b"\x80\x3d\xc1\x2e\0\0\0\x75\x2b\x55\x48\x83\x3d\xa6\x2e\0\0\0\x48\x89\xe5"
DTORS_AUX_ARM = bytes.fromhex("fd7bbea9fd030091f30b00f9130100b060a24039")


def ended(
    entries: Sequence[Piece],
    code: bytes = DTORS_AUX,
    dynamic: Sequence[Dyn] = (),
    **more: Any,  # noqa: ANN401 # fields of ElfFile
) -> int:
    """Count the own destructors of a file whose first function has this code."""
    array = [Section(".fini_array", SHT_FINI_ARRAY, RW, entries, addr=0x4000)] if entries else []
    tags = [Dyn(DT_FINI_ARRAY, At(".fini_array")), Dyn(DT_FINI_ARRAYSZ, Size(".fini_array"))] if entries else []
    file = ElfFile(sections=[text(code), *array], dynamic=[Dyn(DT_NEEDED, "libc.so.6"), *tags, *dynamic], **more)
    return own_destructors(read_image(write(file), "library.so"))


def own(
    entries: Sequence[Piece],
    dummy: bytes = ENDBR64 + JUMP_BACK,
    tables: Sequence[Section] = (),
    dynamic: Sequence[Dyn] = (),
    **more: Any,  # noqa: ANN401 # fields of ElfFile
) -> int:
    array = [Section(".init_array", SHT_INIT_ARRAY, RW, entries, addr=0x4000)] if entries else []
    sections = [text(dummy), *tables, *array]
    file = ElfFile(sections=sections, dynamic=[Dyn(DT_NEEDED, "libc.so.6"), *dynamic], **more)
    return own_constructors(read_image(write(file), "library.so"))


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "count"),
    [
        pytest.param([TEXT + 0x40, TEXT], 1, id="those with a priority stand before it"),
        pytest.param([TEXT], 0, id="the compiler s own constructor is none"),
        pytest.param([TEXT + 0x40], 1, id="another one counts"),
        pytest.param([TEXT, TEXT + 0x40, TEXT + 0x40], 2, id="all others count"),
    ],
)
def test_each_but_the_compiler_s_own_constructor_counts(table: list[int], count: int) -> None:
    assert own(table) == count


def test_it_is_one_however_often_its_code_is_there() -> None:
    assert own([TEXT, TEXT]) == 1


def test_without_a_table_there_are_none() -> None:
    assert own([]) == 0
    assert own_constructors(read_image(write(ElfFile(sections=[text(OWN)])), "program")) == 0


@pytest.mark.parametrize(
    ("machine", "bits", "order", "code", "is_dummy"),
    [
        pytest.param(EM_X86_64, 64, "little", JUMP_BACK, True, id="x86-64"),
        pytest.param(EM_X86_64, 64, "little", b"\x55\x48\x89\xe5\x5d" + JUMP_BACK, True, id="with a frame pointer"),
        pytest.param(
            EM_X86_64, 64, "little", b"\x48\x8d\x3d\xd9\x39\x20\0\x48\x83\x3f\0\x75\x0b" + JUMP_BACK, True, id="gcc 5"
        ),
        pytest.param(EM_X86_64, 64, "little", b"\xe9\x77\xff\xfe\xff", False, id="a jump far back"),
        pytest.param(EM_X86_64, 64, "little", b"\xe9\x77\0\0\0", False, id="a jump ahead"),
        pytest.param(EM_386, 32, "little", b"\xe9\x5b\xff\xff\xff", True, id="i386"),
        pytest.param(EM_386, 32, "little", b"\xf3\x0f\x1e\xfb\xe9\x5b\xff\xff\xff", True, id="i386 with endbr32"),
        pytest.param(EM_AARCH64, 64, "little", b"\xdc\xff\xff\x17", True, id="aarch64"),
        pytest.param(EM_AARCH64, 64, "little", b"\x5f\x24\x03\xd5\xdc\xff\xff\x17", True, id="aarch64 with bti"),
        pytest.param(EM_AARCH64, 64, "little", b"\xfd\x7b\xbf\xa9\0\x02\x80\xd2", False, id="looks for LSE atomics"),
        pytest.param(EM_S390, 64, "big", b"\xc0\xf4\xff\xff\xff\xbc\x07\x07", True, id="s390x"),
        pytest.param(EM_PPC, 32, "big", b"\x4b\xff\xff\x60", True, id="powerpc"),
    ],
)
def test_it_is_known_by_its_code(machine: int, bits: int, order: str, code: bytes, *, is_dummy: bool) -> None:
    assert own([TEXT], code, machine=machine, bits=bits, order=order) == (0 if is_dummy else 1)


def test_where_its_code_is_not_known_one_of_several_is_taken_for_it() -> None:
    assert own([TEXT], machine=EM_RISCV) == 0
    assert own([TEXT, TEXT + 0x40], machine=EM_RISCV) == 1


# --- where the entries stand ------------------------------------------------------------------------------------------


def test_a_relocation_says_what_the_file_does_not() -> None:
    words: list[Piece] = [0, 0]
    addends = [Rel(0x4000, R_X86_64_RELATIVE, addend=TEXT + 0x40), Rel(0x4008, R_X86_64_RELATIVE, addend=TEXT)]
    others = [Rel(0x3FF8, R_X86_64_RELATIVE, addend=7), Rel(0x4010, R_X86_64_RELATIVE, addend=7)]
    table = Section(".rela.dyn", SHT_RELA, RO, [others[0], *addends, others[1]])
    assert own(words, tables=[table]) == 1
    assert own(words) == 2


def test_packed_relocations_leave_it_in_place() -> None:
    assert own([TEXT], tables=[Section(".relr.dyn", SHT_RELR, RO, [0x4000])]) == 0


# --- other ways to run code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [CRTI, ENDBR64 + CRTI, b"\xc3", b"\x50\x58\xc3"])
def test_the_start_up_files_own_dt_init_does_nothing(code: bytes) -> None:
    assert own([], code, dynamic=[Dyn(DT_INIT, TEXT)]) == 0


def test_any_other_dt_init_is_a_constructor() -> None:
    assert own([TEXT], dynamic=[Dyn(DT_INIT, TEXT + 0x40)]) == 1
    # OpenSSL's has a call of its own between the two halves.
    assert own([], CRTI[:18] + b"\xe8\x09\xb6\x16\0" + CRTI[18:], dynamic=[Dyn(DT_INIT, TEXT)]) == 1
    assert own([], dynamic=[Dyn(DT_INIT, TEXT + 0x40)], machine=EM_RISCV) == 0


def test_what_runs_even_before_counts() -> None:
    tags = [Dyn(DT_PREINIT_ARRAY, 0x4000), Dyn(DT_PREINIT_ARRAYSZ, 16)]
    assert own([TEXT], dynamic=tags) == 2
    assert own([TEXT], dynamic=tags[1:]) == 0


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_table_beyond_the_file_is_an_error() -> None:
    with pytest.raises(InputError, match="the table of constructors"):
        own([], dynamic=[Dyn(DT_INIT_ARRAY, 0x4000), Dyn(DT_INIT_ARRAYSZ, 1 << 40)])


@pytest.mark.parametrize("vaddr", [0, TEXT + 0x7F, 0x999999, (1 << 64) - 1])
def test_an_entry_that_leads_nowhere_counts(vaddr: int) -> None:
    assert own([vaddr]) == 1


def test_the_address_of_the_table_may_come_from_anywhere() -> None:
    assert own([TEXT, TEXT], dynamic=[Dyn(DT_INIT_ARRAY, At(".init_array")), Dyn(DT_INIT_ARRAYSZ, 8)]) == 0


# --- destructors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "count"),
    [
        pytest.param([], 0, id="there is no table"),
        pytest.param([TEXT], 0, id="the compiler s own destructor is none"),
        pytest.param([TEXT + 0x40], 1, id="another one counts"),
        pytest.param([TEXT, TEXT + 0x40, TEXT + 0x40], 2, id="all others count"),
    ],
)
def test_each_but_the_compiler_s_own_destructor_counts(table: list[int], count: int) -> None:
    assert ended(table) == count


@pytest.mark.parametrize(
    ("machine", "code", "is_usual"),
    [
        pytest.param(EM_X86_64, DTORS_AUX, True, id="x86-64"),
        pytest.param(EM_X86_64, ENDBR64 + DTORS_AUX, True, id="x86-64 with endbr64"),
        pytest.param(EM_X86_64, DTORS_AUX[:7] + b"\x75\x2b\x55\x48\x89\xe5", False, id="a flag of its own"),
        pytest.param(EM_AARCH64, DTORS_AUX_ARM, True, id="aarch64"),
        pytest.param(EM_AARCH64, b"\x3f\x23\x03\xd5" + DTORS_AUX_ARM, True, id="aarch64 with paciasp"),
        pytest.param(EM_AARCH64, DTORS_AUX_ARM[:12] + b"\0\0\0\x94", False, id="it calls a function"),
    ],
)
def test_the_compiler_s_own_destructor_is_known_by_its_code(machine: int, code: bytes, *, is_usual: bool) -> None:
    assert ended([TEXT], code, machine=machine) == (0 if is_usual else 1)


@pytest.mark.parametrize(
    ("code", "count"),
    [(FINI, 0), (ENDBR64 + FINI, 0), (b"\xc3", 0), (FINI[:4] + b"\xe8\xc3\xf1\xff\xff" + FINI[4:], 1)],
)
def test_a_function_for_the_end_counts_unless_it_does_nothing(code: bytes, count: int) -> None:
    assert ended([], code, [Dyn(DT_FINI, TEXT)]) == count


@pytest.mark.parametrize(
    ("machine", "bits", "code"),
    [
        pytest.param(EM_386, 32, "5383ec08e8f3feffff81c3a72e000083c4085bc3", id="i386"),
        pytest.param(EM_ARM, 32, "08402de90880bde8", id="arm"),
        pytest.param(EM_AARCH64, 64, "1f2003d5fd7bbfa9fd030091fd7bc1a8c0035fd6", id="aarch64"),
    ],
)
def test_the_usual_function_for_the_end_is_known_by_its_code(machine: int, bits: int, code: str) -> None:
    assert ended([], bytes.fromhex(code), [Dyn(DT_FINI, TEXT)], machine=machine, bits=bits) == 0
    assert ended([], OWN, [Dyn(DT_FINI, TEXT)], machine=machine, bits=bits) == 1


# --- what the code of an initialiser writes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "bits", "variables"),
    [
        (EM_X86_64, 64, ("count",)),
        # Addresses of x32 have 32 bits; the same bytes are other instructions of arm64.
        (EM_X86_64, 32, ()),
        (EM_AARCH64, 64, ()),
    ],
)
def test_code_is_read_where_it_is_that_of_x86_64(
    machine: int, bits: Literal[32, 64], variables: tuple[str, ...]
) -> None:
    # movl $1, count(%rip); ret
    code = bytes.fromhex("c705f62f000001000000c3")
    sections = [
        Section(".text", flags=RX, data=code, addr=0x1000),
        Section(".bss", SHT_NOBITS, RW, size=16, addr=0x4000),
    ]
    symbols = [
        Sym("_GLOBAL__sub_I_x.cc", At(".text"), len(code), STT_FUNC, STB_LOCAL),
        Sym("count", At(".bss"), 4, binding=STB_LOCAL),
    ]
    file = ElfFile(machine=machine, bits=bits, sections=sections, symbols=symbols)
    (initialiser,) = read_initialisers(read_statics(read_image(write(file), "program")))
    assert initialiser.variables == variables
