"""Instructions of x86-64 as footprint decodes them, compared with iced-x86: lengths, operands, reads and writes.

footprint may know fewer instructions, and may say that one reads more than it does. It must not say that one reads or
writes less, or that a register keeps nothing of its value where it may.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from footprint.elf.image import read_image
from footprint.elf.instruction import FLAGS, RSI, RSP, Access, Instruction, Operation
from footprint.elf.x86_shapes import Instructions

iced: Any = pytest.importorskip("iced_x86")
Decoded = Any  # iced-x86 has no types

VADDR = 0x400000
PREFIXES = ["", "66", "f2", "f3", "48", "41", "44", "42", "4f", "6648", "f248", "f34c", "67", "64", "f0", "40"]
MODRMS = bytes.fromhex("c0c8d1dae3ecf5fec7000d151c242c343c454c54838b949c7d656c74f8ffe0")
MNEMONICS = {number: name for name, number in vars(iced.Mnemonic).items() if isinstance(number, int)}
# Their addresses and stacks are no values: footprint leaves them out.
HINTS = ("PREFETCH", "CLDEMOTE", "XLAT")
STACK_USERS = {"CALL", "RET", "PUSH"}
STRINGS = ("STOS", "LODS", "SCAS", "CMPS", "MOVS")
MNEMONICS_OF = {
    Operation.MOVE: ("MOV", "PUSH", "POP"),
    Operation.MOVE_IF: ("CMOV",),
    Operation.EXTEND: ("MOVZX", "MOVSX"),
    Operation.ADDRESS: ("LEA",),
    Operation.ADD: ("ADD", "INC"),
    Operation.SUBTRACT: ("SUB", "DEC"),
    Operation.COMBINE: ("AND", "OR", "XOR"),
    Operation.COMPARE: ("CMP",),
    Operation.TEST: ("TEST",),
    Operation.SCALE: ("SHL", "SAL", "IMUL"),
    Operation.CLEAR: ("XOR", "SUB"),
    Operation.EXCHANGE: ("XCHG",),
    Operation.COPY_STRING: ("MOVS",),
    Operation.LEAVE: ("LEAVE",),
    Operation.OTHER: ("",),
}


def numbers_of_registers() -> dict[int, tuple[int, bool]]:
    """Return by the register of iced-x86 its number, and whether writing it leaves nothing of the whole."""
    names = ["RAX EAX AX AL AH", "RCX ECX CX CL CH", "RDX EDX DX DL DH", "RBX EBX BX BL BH"]
    names += ["RSP ESP SP SPL", "RBP EBP BP BPL", "RSI ESI SI SIL", "RDI EDI DI DIL"]
    names += [f"R{number} R{number}D R{number}W R{number}L" for number in range(8, 16)]
    return {
        getattr(iced.Register, name): (number, at < 2)
        for number, line in enumerate(names)
        for at, name in enumerate(line.split())
    }


REGISTERS = numbers_of_registers()
READS = {iced.OpAccess.READ, iced.OpAccess.COND_READ, iced.OpAccess.READ_WRITE, iced.OpAccess.READ_COND_WRITE}
WRITES = {iced.OpAccess.WRITE, iced.OpAccess.COND_WRITE, iced.OpAccess.READ_WRITE, iced.OpAccess.READ_COND_WRITE}
CERTAIN = {iced.OpAccess.WRITE, iced.OpAccess.READ_WRITE}
FLAG_BITS = [iced.RflagsBits.CF, iced.RflagsBits.ZF, iced.RflagsBits.SF, iced.RflagsBits.OF]


def difference(raw: bytes) -> str | None:
    """Return in what footprint differs from iced-x86 about an instruction; None where it agrees or does not know it."""
    ours = Instructions(raw, VADDR).get(VADDR)
    its = iced.Decoder(64, raw, ip=VADDR).decode()
    if ours is None or its.code == iced.Code.INVALID:
        return None
    name = MNEMONICS[its.mnemonic]
    if ours.end_vaddr - VADDR != its.len:
        return f"{name}: length {ours.end_vaddr - VADDR}, {its.len}"
    if name.startswith(HINTS):
        return None
    info = iced.InstructionInfoFactory().info(its)
    found = _of_registers(ours, info, name) or _of_memory(ours, its, info, name) or _of_flags(ours, its)
    if found is None and not name.startswith(MNEMONICS_OF[ours.operation]):
        found = f"is {ours.operation.name}"
    return None if found is None else f"{name}: {found}"


def _of_registers(ours: Instruction, info: Decoded, name: str) -> str | None:
    reads = writes = overwrites = 0
    for used in info.used_registers():
        number, is_whole = REGISTERS.get(used.register, (None, False))
        if number is not None:
            reads |= (used.access in READS) << number
            writes |= (used.access in WRITES) << number
            overwrites |= (is_whole and used.access in CERTAIN) << number
    leads = [number for number in (ours.base, ours.scaled) if number is not None]
    leads += [RSI] if ours.operation is Operation.COPY_STRING else []
    ours_reads = ours.reads | sum(1 << number for number in set(leads))
    ours_writes, gone = ours.writes, ours.writes & ~ours.reads & ~ours.keeps & 0xFFFF & ~(1 << RSP)
    if name in STACK_USERS or (ours.jump is not None and ours.jump.is_end):
        ours_reads, ours_writes = ours_reads | 1 << RSP, ours_writes | 1 << RSP
    if name.startswith(STRINGS):
        gone &= ~sum(1 << number for number in set(leads))  # they move on
    if reads & ~ours_reads:
        return f"reads {reads & ~ours_reads:#x}"
    if writes & ~ours_writes:
        return f"writes {writes & ~ours_writes:#x}"
    return f"keeps nothing of {gone & ~overwrites:#x}" if gone & ~overwrites else None


def _of_memory(ours: Instruction, its: Decoded, info: Decoded, name: str) -> str | None:
    has_operand = any(its.op_kind(number) == iced.OpKind.MEMORY for number in range(its.op_count))
    accesses = [memory.access for memory in info.used_memory()]
    if not (has_operand or name.startswith(STRINGS)) or name in STACK_USERS:
        return None
    if any(access in WRITES for access in accesses) and not ours.writes_memory:
        return "writes memory"
    if any(access in READS for access in accesses) and ours.access is Access.NONE:
        return "reads memory"
    if not has_operand or ours.memory is None:
        return None
    displacement = its.memory_displacement - (1 << 64 if its.memory_displacement >= 1 << 63 else 0)
    base, scaled = (REGISTERS.get(one, (None, False))[0] for one in (its.memory_base, its.memory_index))
    if (displacement, base, scaled) != (ours.memory, ours.base, ours.scaled):
        return "another address"
    if scaled is not None and its.memory_index_scale != ours.scale:
        return "another scale"
    size_bytes = iced.MemorySizeExt.size(its.memory_size) if its.memory_size else 0
    if ours.access is Access.WRITE and size_bytes != ours.size_bytes:
        return f"writes {size_bytes} bytes and not {ours.size_bytes}"
    return f"reads {size_bytes} bytes" if ours.access is Access.READ and size_bytes > ours.size_bytes else None


def _of_flags(ours: Instruction, its: Decoded) -> str | None:
    if any(its.rflags_read & one for one in (*FLAG_BITS, iced.RflagsBits.PF)) and not ours.reads >> FLAGS & 1:
        return "reads flags"
    sets = ours.writes >> FLAGS & 1 and not ours.reads >> FLAGS & 1
    return "leaves flags" if sets and not all(its.rflags_modified & one for one in FLAG_BITS) else None


def forms() -> Iterator[bytes]:
    """Return each opcode of the four maps, and of those with VEX, with many operands."""
    chosen = random.Random(1)  # noqa: S311 # the same in each run
    for prefix in map(bytes.fromhex, PREFIXES):
        for opcode in range(256):
            for modrm in MODRMS:
                for escape in (b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a"):
                    yield prefix + escape + bytes([opcode, modrm]) + chosen.randbytes(12)
    for which in (1, 2, 3):
        for ending in range(8):
            for opcode in range(256):
                for modrm in MODRMS:
                    second = chosen.randrange(8) << 5 | which
                    third = chosen.randrange(32) << 3 | ending
                    yield bytes([0xC4, second, third, opcode, modrm]) + chosen.randbytes(12)


def test_each_form_of_an_instruction_does_what_iced_says() -> None:
    found = {text for raw in forms() if (text := difference(raw)) is not None}
    assert not found


@pytest.mark.parametrize("file", ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"])
def test_the_instructions_of_libraries_do_what_iced_says(file: str) -> None:
    if not Path(file).exists():
        pytest.skip(f"{file} is not installed")
    data = Path(file).read_bytes()
    (section,) = (one for one in read_image(data, file).sections if one.name == ".text")
    code = data[section.offset : section.offset + section.size_bytes]
    starts = {one.ip: one.len for one in iced.Decoder(64, code, ip=0)}
    codes = {code[start : start + length] for start, length in starts.items()}
    assert len(codes) > 10_000
    found = {text for raw in codes if (text := difference(raw)) is not None}
    assert not found
