"""What refers to an address: instructions byte by byte, tables, relocations, the loader; and what only seems to."""

from typing import Any

import pytest

from footprint.elf.image import read_image
from footprint.elf.references import Reference, ReferencedPlace, can_find_references, find_references
from tests.elfwriter import (
    DT_FINI,
    DT_INIT,
    EM_RISCV,
    ET_DYN,
    ET_EXEC,
    ET_REL,
    RW,
    RX,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_RELA,
    Dyn,
    ElfFile,
    Rel,
    Section,
    write,
)

TEXT, DATA, BSS = 0x401000, 0x403000, 0x404000
BUFFER = ReferencedPlace(BSS, BSS + 0x1000, is_code=False)
R_X86_64_RELATIVE = 8


def program(code: bytes = b"", *sections: Section, data: bytes = bytes(64), **what: Any) -> bytes:  # noqa: ANN401 # of ElfFile
    own = [
        Section(".text", flags=RX, data=code + bytes(64), addr=TEXT),
        Section(".data", flags=RW, data=data, addr=DATA),
        Section(".bss", SHT_NOBITS, RW, size=0x2000, addr=BSS),
    ]
    return write(ElfFile(**{"type": ET_DYN, "sections": [*sections, *own], **what}))


def references(image: bytes, *places: ReferencedPlace) -> list[list[Reference]]:
    return find_references(read_image(image, "program"), places or [BUFFER])


def result(image: bytes, *places: ReferencedPlace) -> list[list[int]]:
    return [[one.vaddr for one in reference] for reference in references(image, *places)]


def leading_to(target: int, opcode: str, behind: str = "") -> bytes:
    """Return an instruction whose displacement leads to an address; an immediate may stand behind it."""
    before, after = bytes.fromhex(opcode), bytes.fromhex(behind)
    past = TEXT + len(before) + 4 + len(after)
    return before + (target - past).to_bytes(4, "little", signed=True) + after


# --- code that may stand anywhere -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "behind"),
    [
        ("48 8d 05", ""),  # lea rax, [rip + buffer]
        ("4c 8d 3d", ""),  # lea r15, [rip + buffer]
        ("8b 05", ""),  # mov eax, [rip + buffer]
        ("c6 05", "01"),  # mov byte [rip + buffer], 1
        ("66 c7 05", "01 00"),  # mov word [rip + buffer], 1
        ("c7 05", "01 00 00 00"),  # mov dword [rip + buffer], 1
    ],
)
def test_an_instruction_that_leads_there_is_a_reference_whatever_stands_behind(opcode: str, behind: str) -> None:
    code = leading_to(BSS, opcode, behind)
    assert result(program(code)) == [[TEXT + len(bytes.fromhex(opcode))]]


def test_a_search_for_one_reference_of_each_place_finds_those_of_all_places() -> None:
    neighbour = ReferencedPlace(BSS + 0x1000, BSS + 0x1010, is_code=False)
    # lea rax, [rip + buffer]; lea rax, [rip + buffer]; lea rax, [rip + neighbour]
    code = b"".join(leading_to(target, "48 8d 05") for target in (BSS, BSS - 7, BSS + 0x1000 - 14))
    image = read_image(program(code), "program")
    every = find_references(image, [BUFFER, neighbour])
    one = find_references(image, [BUFFER, neighbour], most=1)
    assert [[each.vaddr - TEXT for each in its] for its in every] == [[3, 10], [17]]
    assert [[each.vaddr - TEXT for each in its] for its in one] == [[3], [17]]


@pytest.mark.parametrize(
    ("opcode", "behind"),
    [
        ("48 8d 05", ""),  # lea rax, [rip + neighbour]
        ("89 05", ""),  # mov [rip + neighbour], eax
        ("0f b6 05", ""),  # movzx eax, byte [rip + neighbour]
        ("ff 05", ""),  # inc dword [rip + neighbour]
        ("f6 1d", ""),  # neg byte [rip + neighbour]
        ("80 3d", "00"),  # cmp byte [rip + neighbour], 0
        ("83 0d", "01"),  # or dword [rip + neighbour], 1
        ("f6 05", "01"),  # test byte [rip + neighbour], 1
        ("0f ba 2d", "03"),  # bts dword [rip + neighbour], 3
        ("81 3d", "00 01 00 00"),  # cmp dword [rip + neighbour], 256
        ("48 c7 05", "00 00 00 00"),  # mov qword [rip + neighbour], 0
        ("69 05", "00 01 00 00"),  # imul eax, [rip + neighbour], 256
    ],
)
def test_what_leads_to_the_byte_before_is_no_reference_whatever_stands_behind(opcode: str, behind: str) -> None:
    assert result(program(b"\x90" * 5 + leading_to(BSS - 1 - 5, opcode, behind))) == [[]]
    (one,) = references(program(b"\x90" * 5 + leading_to(BSS - 5, opcode, behind)))[0]
    assert one.is_sure


@pytest.mark.parametrize(
    ("opcode", "behind"),
    [
        ("66 0f 3a 22 05", "01"),  # pinsrd xmm0, [rip + buffer], 1: or `and`, behind 0f 3a
        ("c5 f9 70 05", "01"),  # vpshufd xmm0, [rip + buffer], 1
        ("c4 e3 79 02 05", "01"),  # vpblendd xmm0, xmm0, [rip + buffer], 1
        ("62 f1 7d 08 70 05", "01"),  # vpshufd xmm0{k0}, [rip + buffer], 1
        ("66 c7 05", "01 00"),  # mov word [rip + buffer], 1: or of 32 bit, behind something that ends with 66
    ],
)
def test_where_the_opcode_does_not_tell_it_may_lead_there(opcode: str, behind: str) -> None:
    first, last = (references(program(leading_to(BSS + at, opcode, behind)))[0] for at in (0, 0xFFF))
    assert [len(first), len(last)] == [1, 1]
    assert not (first[0].is_sure and last[0].is_sure)


@pytest.mark.parametrize(
    "opcode",
    [
        "89 f0 25",  # mov eax, esi; and eax, ...
        "8b 03 25",  # mov eax, [rbx]; and eax, ...
        "89 c7 05",  # mov edi, eax; add eax, ...
        "31 c0 05",  # xor eax, eax; add eax, ...
        "48 89 c6 05",  # mov rsi, rax; add eax, ...
        "0c 05",  # no opcode that has a ModRM byte
    ],
)
def test_a_number_that_is_added_or_masked_with_is_no_sure_reference(opcode: str) -> None:
    ((one,),) = references(program(b"\x90" * 5 + leading_to(BSS + 64, opcode)))
    assert not one.is_sure


def test_from_beside_it_nothing_is_sure() -> None:
    place = BUFFER._replace(before_bytes=8, after_bytes=1)
    for target, is_sure in ((BSS - 8, False), (BSS, True), (BSS + 0xFFF, True), (BSS + 0x1000, False)):
        reference = Reference(TEXT + 3, is_sure, target, is_end=target == BSS + 0x1000)
        assert references(program(leading_to(target, "48 8d 05")), place) == [[reference]]


def test_the_last_byte_is_referred_to_and_the_one_behind_it_is_not() -> None:
    assert result(program(leading_to(BSS + 0xFFF, "48 8d 05"))) == [[TEXT + 3]]
    assert result(program(leading_to(BSS + 0x1000, "48 8d 05"))) == [[]]


def test_a_displacement_behind_no_instruction_is_none() -> None:
    assert result(program(leading_to(BSS, "48 8d 00"))) == [[]]


def test_an_address_in_code_that_may_stand_anywhere_is_none() -> None:
    assert result(program(BSS.to_bytes(4, "little"))) == [[]]


def test_what_an_index_from_one_reaches_is_before_a_variable() -> None:
    code = leading_to(BSS - 8, "48 8d 05")
    assert result(program(code)) == [[]]
    assert result(program(code), BUFFER._replace(before_bytes=8)) == [[TEXT + 3]]


# --- code at a fixed address ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", range(5))
def test_an_address_in_code_at_a_fixed_place_is_a_reference_at_any_byte(before: int) -> None:
    code = b"\xbf" * before + BSS.to_bytes(4, "little")
    assert result(program(code, type=ET_EXEC)) == [[TEXT + before]]


def test_an_address_of_four_bytes_in_data_at_a_fixed_place_is_a_reference() -> None:
    assert result(program(data=bytes(4) + BSS.to_bytes(4, "little"), type=ET_EXEC)) == [[0]]


# --- calls and jumps --------------------------------------------------------------------------------------------------

FUNCTION = ReferencedPlace(TEXT + 0x20, TEXT + 0x30, is_code=True)


@pytest.mark.parametrize("opcode", ["e8", "e9", "0f 84", "48 8d 3d"], ids=["call", "jmp", "je", "lea"])
def test_a_call_or_a_jump_refers_to_the_beginning_of_a_function(opcode: str) -> None:
    code = leading_to(FUNCTION.start_vaddr, opcode)
    assert result(program(code), FUNCTION) == [[TEXT + len(bytes.fromhex(opcode))]]


@pytest.mark.parametrize("opcode", ["e8", "e9", "0f 84"])
def test_what_looks_like_a_jump_into_a_variable_is_not_sure(opcode: str) -> None:
    ((one,),) = references(program(leading_to(BSS, opcode)))
    assert not one.is_sure


def test_a_scaled_index_before_a_displacement_is_no_jump() -> None:
    # lea rdx, [rax * 4 + 0x...]: its SIB byte is 85
    assert result(program(leading_to(BSS, "48 8d 14 85"))) == [[]]


def test_a_jump_into_the_middle_is_no_call() -> None:
    assert result(program(leading_to(FUNCTION.start_vaddr + 1, "e9")), FUNCTION) == [[]]


@pytest.mark.parametrize("opcode", ["eb", "74", "e3"], ids=["jmp", "je", "jrcxz"])
def test_short_jumps_count_forwards_and_backwards(opcode: str) -> None:
    forwards = bytes.fromhex(opcode) + (0x20 - 2).to_bytes(1, "little")
    assert result(program(forwards), FUNCTION) == [[TEXT]]
    backwards = bytes(0x40) + bytes.fromhex(opcode) + (0x20 - 0x42).to_bytes(1, "little", signed=True)
    assert result(program(backwards), FUNCTION) == [[TEXT + 0x40]]


# --- tables, relocations, the loader ----------------------------------------------------------------------------------


def test_a_pointer_in_place_is_a_reference() -> None:
    assert result(program(data=bytes(8) + BSS.to_bytes(8, "little"))) == [[0]]


def test_an_addend_of_a_relocation_is_a_reference() -> None:
    table = Section(".rela.dyn", SHT_RELA, 2, [Rel(DATA, R_X86_64_RELATIVE, addend=BSS + 8)])
    assert result(program(b"", table, dynamic=[Dyn(DT_INIT, 0)])) == [[0]]


@pytest.mark.parametrize("tag", [DT_INIT, DT_FINI])
def test_what_the_loader_calls_is_referred_to(tag: int) -> None:
    (vaddrs,) = result(program(dynamic=[Dyn(tag, FUNCTION.start_vaddr)]), FUNCTION)
    assert set(vaddrs) == {0}


def test_the_entry_is_referred_to() -> None:
    assert result(program(entry=FUNCTION.start_vaddr), FUNCTION) == [[0]]


def test_a_constructor_is_referred_to() -> None:
    array = Section(".init_array", SHT_INIT_ARRAY, RW, [FUNCTION.start_vaddr], addr=DATA - 16)
    assert result(program(b"", array), FUNCTION) == [[0]]


# --- which of several, and where it cannot be told --------------------------------------------------------------------


def test_each_place_gets_its_own() -> None:
    first, second = (
        ReferencedPlace(BSS, BSS + 0x100, is_code=False),
        ReferencedPlace(BSS + 0x100, BSS + 0x200, is_code=False),
    )
    code = leading_to(BSS + 0xFF, "48 8d 05")
    assert result(program(code), first, second._replace(before_bytes=1)) == [[TEXT + 3], [TEXT + 3]]
    assert result(program(leading_to(BSS + 0x100, "48 8d 05")), first, second) == [[], [TEXT + 3]]


def test_nothing_is_asked_and_nothing_is_found() -> None:
    assert find_references(read_image(program(), "program"), []) == []


@pytest.mark.parametrize(
    ("what", "is_told"),
    [({}, True), ({"machine": EM_RISCV}, False), ({"bits": 32}, False), ({"type": ET_REL}, False)],
)
def test_only_linked_files_of_one_machine_can_find_references(what: dict[str, Any], *, is_told: bool) -> None:
    assert can_find_references(read_image(program(**what), "program")) is is_told


def test_chance_decides_how_much_can_find_references() -> None:
    # Of 2^20 bytes of code, one in 2^32 leads to a byte by chance, and one in 32 of these would be an instruction:
    # 0.05 x 2^32 x 32 / 2^20 = 6,553 bytes, less what the headers in the same segment take.
    image = read_image(program(bytes(2**20)), "program")
    assert can_find_references(image, 6_500)
    assert not can_find_references(image, 6_554)


# --- distances from the global offset table (medium and large code model) ---------------------------------------------

GOT = 0x402F00


def moving(distance: int, opcode: str = "48 b8") -> bytes:
    """Return `movabs rax, distance`."""
    return bytes.fromhex(opcode) + distance.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize("name", [".got", ".got.plt"])
@pytest.mark.parametrize("opcode", ["48 b8", "49 bb"])
def test_a_distance_from_the_global_offset_table_is_a_reference(name: str, opcode: str) -> None:
    table = Section(name, flags=RW, data=bytes(24), addr=GOT)
    assert result(program(moving(BSS - GOT, opcode), table)) == [[TEXT + 2]]
    assert result(program(moving(BSS + 0xFFF - GOT, opcode), table)) == [[TEXT + 2]]
    assert not references(program(moving(BSS - GOT, opcode), table))[0][0].is_sure
    assert result(program(moving(BSS - 1 - GOT, opcode), table)) == [[]]
    assert result(program(moving(BSS + 0x1000 - GOT, opcode), table)) == [[]]
    assert result(program(moving(BSS - GOT, opcode))) == [[]]


def test_a_distance_may_go_back() -> None:
    table = Section(".got", flags=RW, data=bytes(24), addr=GOT)
    place = ReferencedPlace(GOT - 0x100, GOT - 0x80, is_code=False)
    assert result(program(moving(-0x100), table), place) == [[TEXT + 2]]


# --- an index that counts from far away -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "is_found"),
    [
        ("8b 04 bd", True),  # mov eax, [rdi*4 + days - 7600]
        ("8b 87", True),  # mov eax, [rdi + days - 7600]
        ("8b 84 bb", True),  # mov eax, [rbx + rdi*4 + days - 7600]
        ("8b bf", True),  # mov edi, [rdi + days - 7600]
        ("c3 bf", False),  # mov edi, days - 7600
    ],
)
def test_in_a_program_at_a_fixed_place_an_index_may_count_from_far_before(opcode: str, is_found: bool) -> None:  # noqa: FBT001 # of the table
    before = bytes.fromhex(opcode)
    code = before + (BSS - 7600).to_bytes(4, "little")
    place = TEXT + len(before)
    image = read_image(program(code, type=ET_EXEC), "program")
    expected = [Reference(place, is_sure=False, target=BSS - 7600)] * is_found
    assert find_references(image, [BUFFER], [BSS]) == [expected]
    # Where another variable begins there, that is meant.
    assert find_references(image, [BUFFER], [BSS, BSS - 7600]) == [[]]
    assert find_references(image, [BUFFER]) == [[]]
