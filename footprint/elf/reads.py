"""Whether what refers to a variable only reads it: told of single instructions, and of the few behind a `lea`. x86-64.

An instruction that is not known, a jump, a call, or an address that goes anywhere else: then it is not told. What is
told is sure as far as the bytes before the displacement are the instruction that they look like.

Source: Intel SDM volume 2, chapter 2 (instruction format) and appendix A (opcode maps).
"""

from typing import Final, NamedTuple

from footprint.elf.image import ET_EXEC, PF_X, Image

__all__ = ("only_reads",)

# What stands before an address in an instruction, and what is looked at behind it.
_MOST_BEFORE_BYTES: Final = 8
_MOST_BEHIND_BYTES: Final = 96
_MOST_STEPS: Final = 12
_LONGEST_FROM_OPCODE: Final = 12

_NONE: Final = -1
_RAX: Final = 0
_GROUP_5: Final = 0xFF
_CALLS_AND_JUMPS: Final = frozenset({2, 3, 4, 5})
_OPERAND_SIZE: Final = 0x66
_PREFIXES: Final = frozenset({_OPERAND_SIZE, 0xF2, 0xF3})
_TWO_BYTES: Final = 0x0F
_THREE_BYTES: Final = frozenset({0x38, 0x3A})
# The first bytes of the prefixes of other encodings, by how far they stand before the opcode: VEX, XOP, EVEX.
_OTHER_ENCODINGS: Final = {2: (0xC5,), 3: (0xC4, 0x8F), 4: (0x62,)}
_REX: Final = 4
_LEA: Final = 0x8D
_NOP: Final = 0x90
_PLAIN: Final = frozenset({_NOP, 0x98, 0x99})
_PUSHES: Final = frozenset(range(0x50, 0x58))
_POPS: Final = frozenset(range(0x58, 0x60))
_IMMEDIATES: Final = frozenset(range(0xB8, 0xC0))
_TEST_BYTE: Final = 0xF6
_TEST_WORD: Final = 0xF7
_BIT_TEST: Final = 0xBA
_BIT_TEST_READS: Final = 4
_ARITHMETIC: Final = frozenset(row + column for row in range(0, 0x40, 8) for column in range(4))
_MOVES: Final = frozenset({0x89, 0x8B, 0x63})
_ZEROING: Final = frozenset({0x31, 0x33})
_COMPARES: Final = frozenset({0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85})
_TO_REGISTER: Final = frozenset({*(one for one in _ARITHMETIC if one & 2), 0x63, 0x69, 0x6B, 0x8A, 0x8B})
# The middle of ModRM tells which instruction it is, and names no register.
_OF_MIDDLE: Final = frozenset({0x80, 0x81, 0x83, 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF})
# Opcodes with a ModRM byte, of one byte and of two behind 0F, with the bytes of their immediate.
_MODRM: Final = {
    **dict.fromkeys(_ARITHMETIC, 0),
    **dict.fromkeys((0x63, 0x84, 0x85, *range(0x88, 0x8C), _LEA, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF), 0),
    **dict.fromkeys((0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6), 1),
    **dict.fromkeys((0x69, 0x81, 0xC7), 4),
}
# Of those with registers of their own (SSE) only loads from memory.
_MODRM_0F: Final = {
    **dict.fromkeys((0x10, 0x28, 0x2A, 0x2C, 0x2D, 0x2E, 0x2F, 0x51, *range(0x54, 0x60), 0x6E, 0x6F), 0),
    **dict.fromkeys((*range(0x40, 0x50), 0xA3, 0xAF, 0xB6, 0xB7, 0xBE, 0xBF, 0xD4, 0xEF, 0xFA, 0xFE), 0),
    _BIT_TEST: 1,
}
# Those that only read their operand in memory; of those below the middle of ModRM tells.
_READS: Final = frozenset(
    {*(one for one in _ARITHMETIC if one & 2), 0x38, 0x39, 0x63, 0x69, 0x6B, 0x84, 0x85, 0x8A, 0x8B}
)
_READS_BY_MIDDLE: Final = {
    0x80: {7},
    0x81: {7},
    0x83: {7},
    0xF6: {0, 4, 5, 6, 7},
    0xF7: {0, 4, 5, 6, 7},
    0xFF: {2, 4, 6},
}
_READS_0F: Final = frozenset(_MODRM_0F) - {_BIT_TEST, 0xA3}
# They write all of the register that they name, of 32 bit and more: an address that it held is gone.
_LOADS: Final = frozenset({0x63, 0x69, 0x6B, 0x8B})
_LOADS_0F: Final = frozenset({0xAF, 0xB6, 0xB7, 0xBE, 0xBF})


class _Instruction(NamedTuple):
    """An instruction that is known.

    Attributes:
        opcode: Its opcode; behind 0F with 0x0F00 added.
        opcode_at: Where that stands.
        register: The register that ModRM names, and what else the middle of that byte means.
        other: The other register, where the operand is no memory.
        base: The register that an address in memory begins with, or none.
        scaled: The register that is added to that, or none.
        address_at: Where a displacement or immediate of four bytes stands that may be an address; None without.
        is_relative: Whether that counts from the end of the instruction.
        is_wide: Whether it has REX.W: registers of 64 bit.
        is_short: Whether it has the prefix for registers of 16 bit.
        past: Where the next one begins.
    """

    opcode: int
    opcode_at: int
    register: int
    other: int
    base: int
    scaled: int
    address_at: int | None
    is_relative: bool
    is_wide: bool
    is_short: bool
    past: int

    @property
    def is_memory(self) -> bool:
        """Tell whether the operand is in memory."""
        return self.other == _NONE

    @property
    def reads(self) -> bool:
        """Tell whether it only reads its operand in memory."""
        opcode = self.opcode & 0xFF
        if self.opcode > 0xFF:
            return opcode in _READS_0F or (opcode == _BIT_TEST and self.register & 7 == _BIT_TEST_READS)
        return opcode in _READS or self.register & 7 in _READS_BY_MIDDLE.get(opcode, ())

    @property
    def loads(self) -> bool:
        """Tell whether it writes all of the register that it names."""
        opcodes = _LOADS_0F if self.opcode > 0xFF else _LOADS
        return self.opcode & 0xFF in opcodes and not self.is_short


def only_reads(image: Image, vaddr: int, start_vaddr: int, end_vaddr: int) -> bool:
    """Tell whether an instruction surely writes nothing to a variable.

    Args:
        image: A file of which `can_be_told` is true.
        vaddr: Where the address or displacement stands in the code.
        start_vaddr: The first address that is taken for the variable.
        end_vaddr: The address behind the last one.

    Raises:
        InputError: Where a segment lies outside of the file.
    """
    segment = next(
        (one for one in image.loads if one.flags & PF_X and one.vaddr <= vaddr < one.vaddr + one.file_bytes), None
    )
    if segment is None:
        return False
    first = max(segment.vaddr, vaddr - _MOST_BEFORE_BYTES)
    past = min(segment.vaddr + segment.file_bytes, vaddr + _MOST_BEHIND_BYTES)
    code = bytes(image.bytes_at(segment.offset + first - segment.vaddr, past - first, "code"))
    at = vaddr - first
    is_fixed = image.type == ET_EXEC and start_vaddr <= int.from_bytes(code[at : at + 4], "little") < end_vaddr
    readings = []
    for start in range(at):
        # The bytes before an opcode belong to it where they can.
        if start and (code[start - 1] in _PREFIXES or code[start - 1] >> 4 == _REX):
            continue
        one = _decode(code, start)
        if one and one.address_at == at and one.is_relative is not is_fixed:
            readings.append(one)
    # An opcode of two bytes is not taken for one of its second byte alone.
    longer = {one.opcode_at + 1 for one in readings if one.opcode > 0xFF}
    readings = [one for one in readings if one.opcode_at not in longer]
    return bool(readings) and all(_only_reads(code, one) for one in readings)


def _only_reads(code: bytes, first: _Instruction) -> bool:
    """Tell whether an instruction only reads what it leads to, and those behind it what they take from there."""
    if _may_be_other(code, first):
        return False
    if first.opcode not in _IMMEDIATES and first.opcode != _LEA:
        return first.is_memory and first.reads
    if first.opcode == _LEA and not first.is_wide:
        return False
    held: set[int] | None = {first.register}
    at = first.past
    for _ in range(_MOST_STEPS):
        one = _decode(code, at)
        held = None if one is None or held is None else _after(one, held)
        if one is None or not held:
            return held is not None
        at = one.past
    return False


def _may_be_other(code: bytes, one: _Instruction) -> bool:
    """Tell whether bytes before an opcode may make another instruction of it."""
    before = code[: one.opcode_at]
    if before[-1:] == bytes([_TWO_BYTES]) or (before[-2:-1] == bytes([_TWO_BYTES]) and before[-1] in _THREE_BYTES):
        return True
    # VEX and the like take the place of 0F.
    return any(len(before) >= far and before[-far] in firsts for far, firsts in _OTHER_ENCODINGS.items())


def _after(one: _Instruction, held: set[int]) -> set[int] | None:
    """Give which registers hold an address into the variable behind an instruction; None where it may write there."""
    opcode = one.opcode
    if opcode == _NOP:
        return held
    if opcode in _PUSHES:
        return None if one.register in held else held
    if opcode in _IMMEDIATES or opcode in _POPS:
        return held - {one.register}
    if opcode in _PLAIN:
        return None if _RAX in held else held
    if opcode == _GROUP_5 and one.register & 7 in _CALLS_AND_JUMPS:
        return None
    return _after_memory(one, held) if one.is_memory else _after_registers(one, held)


def _after_memory(one: _Instruction, held: set[int]) -> set[int] | None:
    is_into = bool({one.base, one.scaled} & held)
    if one.opcode == _LEA:
        return held | {one.register} if is_into else held - {one.register}
    if one.reads:
        return held - {one.register} if one.loads else held
    # What is written elsewhere must not be such an address.
    is_address = one.opcode not in _OF_MIDDLE and one.register in held
    return None if is_into or is_address else held


def _after_registers(one: _Instruction, held: set[int]) -> set[int] | None:
    opcode = one.opcode
    if opcode in _COMPARES:
        return held
    if opcode in _OF_MIDDLE or opcode > 0xFF:
        if one.other in held:
            return None
        return held - {one.register} if opcode > 0xFF and one.loads else held
    to, source = (one.register, one.other) if opcode in _TO_REGISTER else (one.other, one.register)
    if opcode in _ZEROING and to == source:
        return held - {to}
    if source in held:
        # A copy, or a sum.
        return held | {to}
    return held - {to} if opcode in _MOVES and not one.is_short else held


def _decode(code: bytes, start: int) -> _Instruction | None:
    """Read the instruction at a place; None for those that are not known."""
    at = start
    while at < len(code) and code[at] in _PREFIXES:
        at += 1
    is_short = _OPERAND_SIZE in code[start:at]
    rex = code[at] if at < len(code) and code[at] >> 4 == _REX else 0
    at += rex > 0
    # So that no byte of the instruction lies behind the end.
    if len(code) - at < _LONGEST_FROM_OPCODE:
        return None
    opcode_at = at
    is_long = code[at] == _TWO_BYTES
    opcode = code[at] << 8 | code[at + 1] if is_long else code[at]
    immediate_bytes = _MODRM_0F.get(opcode & 0xFF) if is_long else _MODRM.get(opcode)
    at += 2 if is_long else 1
    new = _Instruction(
        opcode=opcode,
        opcode_at=opcode_at,
        register=opcode & 7 | (rex & 1) << 3,
        other=_NONE,
        base=_NONE,
        scaled=_NONE,
        address_at=None,
        is_relative=False,
        is_wide=bool(rex & 8),
        is_short=is_short,
        past=at,
    )
    return _without_modrm(new) if immediate_bytes is None else _with_modrm(new, code, rex, immediate_bytes)


def _with_modrm(new: _Instruction, code: bytes, rex: int, immediate_bytes: int) -> _Instruction:
    """Read what stands behind the opcode: ModRM, SIB, displacement, immediate."""
    at = new.past
    modrm = code[at]
    at += 1
    mode, rest = modrm >> 6, modrm & 7
    if new.opcode in {_TEST_BYTE, _TEST_WORD} and modrm >> 3 & 7 < 2:
        immediate_bytes = 1 if new.opcode == _TEST_BYTE else 4
    if immediate_bytes == 4 and new.is_short:
        immediate_bytes = 2
    new = new._replace(register=modrm >> 3 & 7 | (rex & 4) << 1)
    base, scaled = rest | (rex & 1) << 3, _NONE
    if mode == 3:
        return new._replace(other=base, past=at + immediate_bytes)
    displacement_bytes = (0, 1, 4)[mode]
    is_relative = mode == 0 and rest == 5
    if rest == 4:
        sib = code[at]
        at += 1
        rest = sib & 7
        base = rest | (rex & 1) << 3
        scaled = sib >> 3 & 7 | (rex & 2) << 2
        # That number means that there is none.
        scaled = _NONE if scaled == 4 else scaled
    if mode == 0 and rest == 5:
        base, displacement_bytes = _NONE, 4
    return new._replace(
        base=base,
        scaled=scaled,
        address_at=at if displacement_bytes == 4 else None,
        is_relative=is_relative,
        past=at + displacement_bytes + immediate_bytes,
    )


def _without_modrm(new: _Instruction) -> _Instruction | None:
    opcode, at = new.opcode, new.past
    if opcode in _IMMEDIATES:
        return None if new.is_wide or new.is_short else new._replace(address_at=at, past=at + 4)
    return new if opcode in _PLAIN or opcode in _PUSHES or opcode in _POPS else None
