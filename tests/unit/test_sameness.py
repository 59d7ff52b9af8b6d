"""Which functions and tables of one file do the same: byte by byte, with what they refer to in turn."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from footprint.elf import abi
from footprint.elf.image import read_image
from footprint.elf.initial import Initials
from footprint.elf.sameness import Sameness
from footprint.elf.statics import read_statics
from tests.elfwriter import (
    DT_INIT,
    EM_AARCH64,
    EM_X86_64,
    ET_DYN,
    RO,
    RW,
    RX,
    SHT_RELA,
    STB_LOCAL,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)

TEXT, RODATA, OTHER_RODATA, DATA = 0x1000, 0x2000, 0x2800, 0x3000
RETURN = b"\xc3"
R_X86_64_RELATIVE = 8
TEXTS_ONLY = RO | abi.SHF_MERGE | abi.SHF_STRINGS


def call(at: int, target: int) -> bytes:
    """Return `call target` at an offset of the code: its displacement counts from the next instruction."""
    return b"\xe8" + (target - at - 5).to_bytes(4, "little", signed=True)


def load(at: int, vaddr: int) -> bytes:
    """Return `mov vaddr(%rip), %eax` at an offset of the code."""
    return b"\x8b\x05" + (vaddr - TEXT - at - 6).to_bytes(4, "little", signed=True)


def compare(
    *functions: bytes,
    rodata: bytes = bytes(64),
    machine: int = EM_X86_64,
    flags: int = RO,
    more: Sequence[Section] = (),
) -> list[bool]:
    """Return whether each function does the same as the one before; each begins at a multiple of 16."""
    text = b"".join(code.ljust(16, b"\x90") for code in functions)
    symbols = [
        Sym(f"f{n}", At(".text", 16 * n), len(code), STT_FUNC, STB_LOCAL) for n, code in enumerate(functions)
    ] + [Sym(f"table{n}", At(".rodata", 16 * n), 16, 1, STB_LOCAL) for n in range(2)]
    sections = [
        Section(".text", flags=RX, data=text, addr=TEXT),
        Section(".rodata", flags=flags, data=rodata, addr=RODATA, entsize=int(flags != RO)),
        Section(".data", flags=RW, data=bytes(64), addr=DATA),
        *more,
    ]
    file = ElfFile(sections=sections, symbols=symbols, type=ET_DYN, machine=machine)
    statics = read_statics(read_image(write(file), "program"))
    sameness = Sameness(statics, Initials(statics))
    places = [TEXT + 16 * n for n in range(len(functions))]
    return [sameness.of_functions(one, other) for one, other in pairwise(places)]


ADD_ONE, ADD_TWO = b"\x83\xc0\x01" + RETURN, b"\x83\xc0\x02" + RETURN


def test_the_same_code_is_the_same_and_other_code_is_not() -> None:
    assert compare(ADD_ONE, ADD_ONE, ADD_TWO, RETURN) == [True, False, False]


def test_calls_of_functions_that_do_the_same_are_the_same() -> None:
    callers = [call(0, 32) + RETURN, call(16, 48) + RETURN]
    # The displacements are equal, and what they lead to need not be.
    assert callers[0] == callers[1]
    assert compare(*callers, ADD_ONE, ADD_ONE)[0]
    assert not compare(*callers, ADD_ONE, ADD_TWO)[0]
    # A function that both call.
    assert compare(call(0, 32) + RETURN, call(16, 32) + RETURN, ADD_ONE)[0]


def test_functions_that_call_each_other_come_to_an_end() -> None:
    assert compare(call(0, 16) + RETURN, call(16, 0) + RETURN) == [True]


@pytest.mark.parametrize(
    ("rodata", "is_same"),
    [(bytes(range(16)) * 2, True), (bytes(range(16)) + bytes(16), False)],
)
def test_functions_that_read_tables_are_the_same_where_the_tables_are(rodata: bytes, *, is_same: bool) -> None:
    readers = [load(0, RODATA) + RETURN, load(16, RODATA + 16) + RETURN]
    assert compare(*readers, rodata=rodata) == [is_same]


def test_functions_with_state_of_their_own_are_not_the_same() -> None:
    assert compare(load(0, DATA) + RETURN, load(16, DATA + 16) + RETURN) == [False]
    assert compare(load(0, DATA) + RETURN, load(16, DATA) + RETURN) == [True]


@pytest.mark.parametrize(
    ("texts", "flags", "is_same"),
    [
        (b"red\0red\0", TEXTS_ONLY, True),
        (b"red\0rod\0", TEXTS_ONLY, False),
        # They may be texts of several parts.
        (b"red\0a\0red\0b\0", RO, False),
        # Wide characters: `a` and zeros may go on.
        (b"a\0b\0a\0c\0", RO, False),
    ],
)
def test_texts_without_a_symbol_are_compared_to_their_end(texts: bytes, flags: int, *, is_same: bool) -> None:
    rodata = bytes(32) + texts.ljust(32, b"\1")
    half = len(texts) // 2
    readers = [load(0, RODATA + 32) + RETURN, load(16, RODATA + 32 + half) + RETURN]
    assert compare(*readers, rodata=rodata, flags=flags) == [is_same]


def test_texts_of_two_sections_are_compared_each_in_its_own() -> None:
    other = Section(".rodata.str1.1", flags=TEXTS_ONLY, data=b"red\0", addr=OTHER_RODATA, entsize=1)
    readers = [load(0, RODATA + 32) + RETURN, load(16, OTHER_RODATA) + RETURN]
    assert compare(*readers, rodata=bytes(32) + b"red\0", flags=TEXTS_ONLY, more=[other]) == [True]
    assert compare(*readers, rodata=bytes(32) + b"rod\0", flags=TEXTS_ONLY, more=[other]) == [False]


def test_of_functions_that_may_catch_exceptions_nothing_is_known_without_their_tables() -> None:
    handlers = Section(".gcc_except_table", flags=RO, data=bytes(16), addr=0x4000)
    assert compare(ADD_ONE, ADD_ONE, more=[handlers]) == [False]


def test_a_label_inside_of_a_function_is_only_the_same_as_itself() -> None:
    jumps = [call(0, 34) + RETURN, call(16, 50) + RETURN]
    assert not compare(*jumps, ADD_ONE, ADD_ONE)[0]


def test_zeros_without_a_name_are_not_the_same_text() -> None:
    readers = [load(0, RODATA + 64) + RETURN, load(16, RODATA + 160) + RETURN]
    assert compare(*readers, rodata=bytes(256)) == [False]


def test_code_of_other_processors_is_not_read() -> None:
    assert compare(ADD_ONE, ADD_ONE, machine=EM_AARCH64) == [False]


# What has no name, and begins like a text.
NUMBERS = [(0x2020).to_bytes(4, "little") + one.to_bytes(4, "little") * 3 for one in (5, 6)]
FRACTIONS = [b"\xcd\xcc\xcc\x3d" + bytes([0, 0, one, 63]) * 3 for one in (128, 160)]
LONG_NUMBERS = [(0x2020).to_bytes(4, "little") + bytes(20) + one for one in (b"\5", b"\6")]
TEXTS = [b"alpha\0" + one * 10 for one in (b"b", b"c")]


@pytest.mark.parametrize(
    ("contents", "is_same"), [(NUMBERS, False), (FRACTIONS, False), (LONG_NUMBERS, False), (TEXTS, False)]
)
def test_numbers_without_a_name_are_not_taken_for_texts(contents: list[bytes], *, is_same: bool) -> None:
    one, other = (content.ljust(64, b"\0") for content in contents)
    loads = [load(0, RODATA + 32) + RETURN, load(16, RODATA + 96) + RETURN]
    assert compare(*loads, rodata=bytes(32) + one + other) == [is_same]
    assert compare(*loads, rodata=bytes(32) + one + one) == [True]


# `push %rbp; mov %rsp, %rbp`, and `mov %edi, -4(%rbp)`, which only a function without optimisation has there.
FRAME, ARGUMENT = b"\x55\x48\x89\xe5", b"\x89\x7d\xfc"


@pytest.mark.parametrize(
    ("second", "prologue", "is_same"),
    [
        # Each source file has a text of its own behind, to which code without optimisation refers.
        ((b"null\0", b"one\0"), FRAME + ARGUMENT, True),
        # It may be aligned.
        ((b"null\0\0\0\0", b"one\0"), FRAME + ARGUMENT, True),
        # What a compiler computed may lead into a text of several parts.
        ((b"null\0", b"one\0"), FRAME, False),
        ((b"nil\0\0", b"one\0"), FRAME + ARGUMENT, False),
        # Nothing refers to what is behind: it may be the second part.
        ((b"null\0", b"x one\0"), FRAME + ARGUMENT, False),
    ],
)
def test_a_text_without_a_symbol_ends_where_code_without_optimisation_refers_to_the_next(
    second: tuple[bytes, bytes], prologue: bytes, *, is_same: bool
) -> None:
    texts = b"null\0other\0".ljust(32, b"\0") + b"".join(second).ljust(32, b"\0")
    referred = [5, 32 + len(second[0]) + second[1].startswith(b"x ") * 2]
    assert tables_of_texts_are_same(texts, (0, 32), referred, prologue) == is_same


def tables_of_texts_are_same(
    texts: bytes, first: tuple[int, int], referred: Sequence[int], prologue: bytes, named: Sequence[int] = ()
) -> bool:
    """Return whether two variables are the same that point to texts without a symbol.

    Args:
        texts: The section of the texts; all else are offsets there.
        first: Where the variables point to.
        referred: What functions of their own load.
        prologue: How these functions begin.
        named: Where other variables begin, of one byte.
    """
    functions = []
    for number, offset in enumerate(referred):
        code = prologue + load(32 * number + len(prologue), RODATA + offset) + RETURN
        functions.append(code.ljust(32, b"\x90"))
    symbols = [Sym(f"f{n}", At(".text", 32 * n), 32, STT_FUNC, STB_LOCAL) for n in range(len(referred))]
    symbols += [Sym("table", At(".data.rel.ro", 8 * n), 8, 1, STB_LOCAL) for n in range(2)]
    symbols += [Sym("named", At(".rodata", offset), 1, 1, STB_LOCAL) for offset in named]
    sections = [
        Section(".text", flags=RX, data=b"".join(functions) or RETURN, addr=TEXT),
        Section(".rodata", flags=RO, data=texts, addr=RODATA),
        Section(".data.rel.ro", flags=RW, data=bytes(16), addr=DATA),
    ]
    relocations = [Rel(At(".data.rel.ro", 8 * n), R_X86_64_RELATIVE, addend=RODATA + at) for n, at in enumerate(first)]
    sections.append(Section(".rela.dyn", SHT_RELA, RO, relocations))
    file = ElfFile(sections=sections, symbols=symbols, type=ET_DYN, machine=EM_X86_64, dynamic=[Dyn(DT_INIT)])
    statics = read_statics(read_image(write(file), "program"))
    tables = [static for static in statics.statics if static.name == "table"]
    return Sameness(statics, Initials(statics), tables).of(*tables)


@pytest.mark.parametrize(
    ("texts", "second", "referred", "prologue", "is_same"),
    [
        # Each has one behind it that code without optimisation refers to; it may be aligned.
        (b"\0one\0" + b"\0\0\0\0two\0", 5, (1, 9), FRAME + ARGUMENT, True),
        # What a compiler computed may lead into a text of two parts.
        (b"\0one\0" + b"\0\0\0\0two\0", 5, (1, 9), FRAME, False),
        # Nothing refers to what is behind the second one.
        (b"\0one\0" + b"\0\0\0\0two\0", 5, (1, 10), FRAME + ARGUMENT, False),
        # The second one ends its section: behind it are 0, 3 and 31 zeros, and of 32 nothing is known.
        (b"\0one\0" + bytes(1), 5, (1,), FRAME + ARGUMENT, True),
        (b"\0one\0" + bytes(4), 5, (1,), FRAME + ARGUMENT, True),
        (b"\0one\0" + bytes(32), 5, (1,), FRAME + ARGUMENT, True),
        (b"\0one\0" + bytes(33), 5, (1,), FRAME + ARGUMENT, False),
    ],
)
def test_empty_texts_without_a_symbol_are_the_same_where_both_are_surely_whole(
    texts: bytes, second: int, referred: tuple[int, ...], prologue: bytes, *, is_same: bool
) -> None:
    assert tables_of_texts_are_same(texts, (0, second), referred, prologue) == is_same


@pytest.mark.parametrize(("padding", "is_same"), [(32, True), (33, False)])
def test_a_text_is_whole_before_a_symbol_that_is_behind_32_zeros_at_most(padding: int, *, is_same: bool) -> None:
    texts = b"null\0a" + b"null\0" + bytes(padding) + b"b"
    assert tables_of_texts_are_same(texts, (0, 6), (), b"", named=(5, 11 + padding)) == is_same
