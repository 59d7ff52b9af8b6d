"""Decodes instructions of arm64 (AArch64, little-endian), as far as it takes to follow an address.

Each listed form is described with all general registers that it reads and writes. An instruction that accesses memory
twice, or moves its base, becomes several, a byte apart, each as simple as those of x86-64. What is not listed is a jump
to nowhere: what holds an address there is lost. The zero register is none; 31 is the stack pointer.

Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter C4 (encoding).
"""

from array import array
from collections.abc import Iterator
from functools import lru_cache
from sys import byteorder
from typing import Final

from footprint.elf.image import Buffer
from footprint.elf.instruction import FLAGS, Access, Instruction, Jump, Operation

PAGE_BYTES: Final = 4096
"""The scale of `adrp`, by which it differs from other moves of numbers."""
_SP: Final = 31
_ZERO: Final = 31
_LINK: Final = 30
_FLAG_BIT: Final = 1 << FLAGS
_ALL_BITS: Final = (1 << _ZERO) - 1
_WORD: Final = 4
# By the highest byte of an instruction: branches, `adr`, `adrp`, and loads of literals state a distance.
_RELATIVE: Final = frozenset(
    {
        *range(0x14, 0x18), *range(0x94, 0x98), *range(0x34, 0x38), *range(0xB4, 0xB8), 0x54,
        *range(0x10, 0x100, 0x20), *range(0x18, 0x100, 0x40), *range(0x1C, 0xDC, 0x40),
    }
)  # fmt: skip

_Parts = list[Instruction] | None


def decoded(code: Buffer, vaddr: int) -> Iterator[Instruction]:
    """Decode the instructions of code that begins at a vaddr, up to its end."""
    words = array("I", bytes(code[: len(code) & ~3]))
    if byteorder == "big":
        words.byteswap()
    make = tuple.__new__
    for word in words:
        if word >> 24 in _RELATIVE:
            yield from _decoded(word, vaddr)
        else:
            for start, end, members in _members(word):
                yield make(Instruction, (vaddr + start, vaddr + end) + members)  # noqa: RUF005 # it is quicker
        vaddr += _WORD


@lru_cache(maxsize=1 << 16)
def _members(word: int) -> list[tuple[int, int, tuple[object, ...]]]:
    """Return the parts of an instruction that states no distance: where each begins and ends, and what it does."""
    return [(insn.vaddr, insn.end_vaddr, insn[2:]) for insn in _decoded(word, 0)]


def _decoded(word: int, vaddr: int) -> list[Instruction]:
    kind = word >> 25 & 15
    if kind >> 1 == 4:
        parts = _of_number(word, vaddr)
    elif kind >> 1 == 5:
        parts = _branch(word, vaddr) or _system(word)
    elif kind & 5 == 4:
        parts = _of_memory(word, vaddr)
    elif kind & 7 == 5:
        parts = _of_registers(word)
    else:
        parts = _vector(word) if kind & 7 == 7 else None
    if parts is None:
        parts = [_part(jump=Jump(None, falls_through=False), reads=_ALL_BITS | _FLAG_BIT)]
    last = len(parts) - 1
    return [
        part._replace(vaddr=vaddr + number, end_vaddr=vaddr + (_WORD if number == last else number + 1))
        for number, part in enumerate(parts)
    ]


def _part(operation: Operation = Operation.OTHER, size_bytes: int = 8, **members: object) -> Instruction:
    return Instruction(0, _WORD, operation, size_bytes, **members)  # type: ignore[arg-type]


def _bits(*registers: int) -> int:
    """Return the bits of general registers, but for the zero register."""
    bits = 0
    for register in registers:
        bits |= 1 << register
    return bits & _ALL_BITS


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & (1 << bits) - 1


def _made(target: int, *sources: int, flags: int = 0, reads: int = 0) -> Instruction:
    """Return an instruction that makes a value of registers, in a way that tells addresses apart."""
    return _part(register=target, reads=_bits(*sources) | reads, writes=_bits(target) | flags)


def _address(target: int, base: int | None, memory: int, scaled: int | None = None, scale: int = 1) -> Instruction:
    """Return an instruction that adds to an address."""
    return _part(
        Operation.ADDRESS, memory=memory, base=base, scaled=scaled, scale=scale, register=target, writes=1 << target
    )


def _moved(target: int, source: int, size_bytes: int = 8) -> Instruction:
    return _part(Operation.MOVE, size_bytes, register=target, other=source, reads=1 << source, writes=1 << target)


def _of_number(word: int, vaddr: int) -> _Parts:
    """Decode what has an immediate."""
    target, source, is_wide, which = word & 31, word >> 5 & 31, word >> 31, word >> 23 & 7
    if which < 2:
        distance = _signed(_field(word, 5, 19) << 2 | _field(word, 29, 2), 21)
        if not is_wide:
            return [_address(target, None, vaddr + distance)] if target != _ZERO else [_part()]
        page = (vaddr & -PAGE_BYTES) + distance * PAGE_BYTES
        return [
            _part(Operation.MOVE, register=target, immediate=page, scale=PAGE_BYTES, writes=_bits(target)),
        ]
    if which == 2:
        return _of_sum(word)
    if which == 4:
        is_and_with_flags = word >> 29 & 3 == 3
        written = 0 if is_and_with_flags else target == _SP and 1 << _SP
        made = _made(target, source, flags=_FLAG_BIT if is_and_with_flags else 0)
        return [made._replace(writes=made.writes | written)]
    if which == 5:
        shift, what = _field(word, 21, 2) * 16, word >> 29 & 3
        number = _field(word, 5, 16) << shift
        if what == 3:
            return [_made(target, target)._replace(immediate=number, scale=1 << shift)]
        number = ~number if what == 0 else number
        number = number if is_wide else number & 0xFFFFFFFF
        move = _part(Operation.MOVE, 8 if is_wide else 4, register=target, immediate=number, writes=_bits(target))
        return None if what == 1 else [move]
    if which == 6:
        if word & 0xFFFFFC00 == 0x93407C00 and _ZERO not in {source, target}:  # `sxtw`
            return [_moved(target, source, 4)._replace(operation=Operation.EXTEND)]
        return [_made(target, source, *([target] if word >> 29 & 3 == 1 else []))]
    return [_made(target, source, word >> 16 & 31)] if which == 7 else None


def _of_sum(word: int) -> _Parts:
    """Decode `add` and `sub` of an immediate."""
    target, source, is_wide = word & 31, word >> 5 & 31, word >> 31
    number = _field(word, 10, 12) << (12 if word >> 22 & 1 else 0)
    is_difference, sets_flags = word >> 30 & 1, word >> 29 & 1
    reads, writes = 1 << source, 1 << target
    if not sets_flags:
        if not number and is_wide and _SP in {source, target}:
            return [_moved(target, source)]
        # Four bytes of an address are none, but of which one is to be known.
        return [_address(target, source, -number if is_difference else number)._replace(size_bytes=4 << is_wide)]
    writes = _bits(target) | _FLAG_BIT
    if target == _ZERO and is_difference:
        return [
            _part(Operation.COMPARE, 4 << is_wide, register=source, immediate=number, reads=reads, writes=_FLAG_BIT)
        ]
    made = _part(register=target, immediate=number, reads=reads, writes=writes)
    if is_wide and target == source:
        return [made._replace(operation=Operation.SUBTRACT if is_difference else Operation.ADD)]
    return [made._replace(immediate=None)]


def _branch(word: int, vaddr: int) -> _Parts:
    register, first = word >> 5 & 31, word >> 24
    if first & 0x7C == 0x14:
        is_call = bool(word >> 31)
        target = vaddr + _signed(_field(word, 0, 26), 26) * 4
        return [_part(jump=Jump(target, falls_through=is_call, is_call=is_call), writes=is_call << _LINK)]
    tested = word & 31
    if first & 0x7E == 0x34:
        jump = Jump(vaddr + _signed(_field(word, 5, 19), 19) * 4, falls_through=True)
        insn = _part(size_bytes=4 << (word >> 31), reads=_bits(tested), jump=jump)
        return [insn if tested == _ZERO else insn._replace(operation=Operation.TEST, register=tested, other=tested)]
    if first & 0x7E == 0x36:
        return [_part(reads=_bits(tested), jump=Jump(vaddr + _signed(_field(word, 5, 14), 14) * 4, falls_through=True))]
    if first == 0x54:
        return [_part(reads=_FLAG_BIT, jump=Jump(vaddr + _signed(_field(word, 5, 19), 19) * 4, falls_through=True))]
    if word & 0xFFFFFFFF in {0xD65F03C0, 0xD65F0BFF, 0xD65F0FFF}:  # `ret`, and with a signature
        return [_part(jump=Jump(None, falls_through=False, is_end=True))]
    what = word & 0xFFFFFC1F
    is_signed = word & 0xFE9FF800 == 0xD61F0800 and word >> 21 & 3 < 2
    if what in {0xD61F0000, 0xD63F0000, 0xD65F0000} or is_signed:
        is_call = word >> 21 & 3 == 1
        jump = Jump(None, falls_through=is_call, is_call=is_call)
        # A signature is checked with a second register, or without one.
        reads = 1 << tested if is_signed and word >> 24 & 1 else 0
        return [_part(base=register, jump=jump, reads=reads, writes=is_call << _LINK)]
    return None


# By the number of a hint what it does with the link register, or with the scratch registers of the linker.
_SIGNED_LINK: Final = frozenset({7, *range(24, 32)})
_SIGNED_SCRATCH: Final = frozenset({8, 10, 12, 14})
_HINTS: Final = frozenset({*range(7), *range(16, 23), 32, 34, 36, 38})


def _system(word: int) -> _Parts:
    register, number = word & 31, _field(word, 5, 7)
    if word & 0xFFE0001F == 0xD4000001:  # `svc`
        return [_part(access=Access.CHANGE, reads=_ALL_BITS, writes=_ALL_BITS)]
    if word & 0xFFE0001F in {0xD4200000, 0xD4400000}:  # `brk` and `hlt`
        return [_part(jump=Jump(None, falls_through=False, is_end=True))]
    if word & 0xFFFFF01F == 0xD503201F:
        if number in _SIGNED_LINK:
            return [_part(reads=1 << _LINK | 1 << _SP, writes=1 << _LINK)]
        if number in _SIGNED_SCRATCH:
            return [_made(17, 16, 17)]
        return [_part()] if number in _HINTS else None
    if word & 0xFFFFF01F == 0xD503301F:  # barriers
        return [_part()]
    if word & 0xFFD00000 == 0xD5100000:  # `msr` and `mrs`
        bits = _bits(register)
        return [_part(reads=_FLAG_BIT | (0 if word >> 21 & 1 else bits), writes=_FLAG_BIT | (word >> 21 & 1 and bits))]
    if word & 0xFFF80000 == 0xD5080000:  # of caches; `dc zva` writes
        return [_part(memory=0, base=register, access=Access.CHANGE)] if register != _ZERO else [_part()]
    return None


def _of_registers(word: int) -> _Parts:
    """Decode what has registers alone as its operands."""
    target, first, second = word & 31, word >> 5 & 31, word >> 16 & 31
    which, is_wide = word >> 24 & 31, word >> 31
    if which == 0x0A:
        return _combined(word)
    if which == 0x0B:
        return _of_sum_of_registers(word)
    if which == 0x1A:
        return _of_flags_or_values(word)
    if which != 0x1B:
        return None
    addend, product = word >> 10 & 31, _field(word, 21, 3) << 1 | _field(word, 15, 1)
    if is_wide and product in {0, 2, 10} and _ZERO not in {addend, target} and first != _ZERO:
        return [_address(target, addend, 0, first, 0)._replace(reads=_bits(second))]
    return [_made(target, first, second, addend)]


def _combined(word: int) -> _Parts:
    """Decode `and`, `orr`, `eor` of registers, and `mov` and `tst`, which are such."""
    target, first, second = word & 31, word >> 5 & 31, word >> 16 & 31
    size_bytes, is_plain, what = 4 << (word >> 31), not word & 0x00E0FC00, word >> 29 & 3
    if is_plain and what == 1 and first == _ZERO and _ZERO not in {target, second}:
        return [_moved(target, second, size_bytes)]
    if is_plain and what == 3 and target == _ZERO and first == second != _ZERO:
        test = _part(Operation.TEST, size_bytes, register=first, other=first)
        return [test._replace(reads=1 << first, writes=_FLAG_BIT)]
    return [_made(target, first, second, flags=_FLAG_BIT if what == 3 else 0)]


def _of_flags_or_values(word: int) -> _Parts:
    """Decode what has a carry or a condition, or is made of one or two values."""
    target, first, second = word & 31, word >> 5 & 31, word >> 16 & 31
    group, number, sets_flags = word >> 21 & 7, _field(word, 10, 6), word >> 29 & 1
    parts: _Parts = None
    if group == 0 and not number:  # `adc` and `sbc`
        parts = [_made(target, first, second, reads=_FLAG_BIT, flags=_FLAG_BIT if sets_flags else 0)]
    elif group == 2 and sets_flags:  # `ccmp`
        sources = [first] if word >> 11 & 1 else [first, second]
        parts = [_part(reads=_bits(*sources) | _FLAG_BIT, writes=_FLAG_BIT)]
    elif group == 4 and not sets_flags:
        parts = _choice(word)
    elif group == 6 and not sets_flags and not word >> 30 & 1:
        parts = [_made(target, first, second)] if number in {2, 3, *range(8, 12), *range(16, 24)} else None
    elif group == 6 and not sets_flags and ((second == 0 and number < 9) or (second == 1 and number < 18)):
        # Signatures of addresses are made of these.
        parts = [_made(target, first, *[target] * second)]
    return parts


def _choice(word: int) -> _Parts:
    """Decode `csel` and its relatives."""
    target, first, second = word & 31, word >> 5 & 31, word >> 16 & 31
    is_plain = word >> 31 and not word & 0x40000C00
    if not is_plain or target == _ZERO or _ZERO in {first, second} or first == second:
        return [_made(target, first, second, reads=_FLAG_BIT)]
    kept, other = (second, first) if second == target else (first, second)
    choice = _moved(target, other)
    choice = choice._replace(operation=Operation.MOVE_IF, reads=choice.reads | 1 << target | _FLAG_BIT)
    return [choice] if kept == target else [_moved(target, kept), choice]


def _of_sum_of_registers(word: int) -> _Parts:
    """Decode `add` and `sub` of registers; the second is shifted or extended."""
    target, first, second = word & 31, word >> 5 & 31, word >> 16 & 31
    is_wide, is_difference, sets_flags = word >> 31, word >> 30 & 1, word >> 29 & 1
    is_extended = word >> 21 & 1
    flags = _FLAG_BIT if sets_flags else 0
    has_stack = is_extended and (first == _SP or (target == _SP and not sets_flags))
    made = _made(target, first, second, flags=flags)
    if has_stack:
        reads = made.reads | (1 << _SP if first == _SP else 0)
        made = made._replace(reads=reads, writes=1 << target if not sets_flags else made.writes)
    is_plain = not word & 0x00E0FC00
    if sets_flags and target == _ZERO and is_difference and is_plain and first != _ZERO:
        compare = _part(Operation.COMPARE, 4 << is_wide, register=first, reads=made.reads, writes=_FLAG_BIT)
        return [compare._replace(immediate=0) if second == _ZERO else compare._replace(other=second)]
    is_certain = is_wide and not has_stack and _ZERO not in {target, first, second}
    if not is_certain:
        if is_wide and has_stack and not is_difference and not sets_flags and second != _ZERO:
            return [_address(target, first, 0, second, 0)]
        return [made._replace(size_bytes=4 << is_wide)]
    if not is_difference and not sets_flags:
        if not is_extended:
            return [_address(target, first, 0, second, 0 if word >> 22 & 3 else 1 << _field(word, 10, 6))]
        kind, scale = _field(word, 13, 3), 1 << _field(word, 10, 3)
        return [_address(target, first, 0, second, {2: -scale, 6: -scale, 3: scale, 7: scale}.get(kind, 0))]
    if is_plain and (target == first or (target != second and not sets_flags)):
        operation = Operation.SUBTRACT if is_difference else Operation.ADD
        changed = made._replace(operation=operation, other=second, reads=1 << target | 1 << second)
        return [changed] if target == first else [_moved(target, first), changed]
    return [made]


def _vector(word: int) -> _Parts:
    """Decode an instruction of vectors and fractions: most have no general registers."""
    target, source = word & 31, word >> 5 & 31
    if word & 0x5F200000 == 0x1E000000 or word & 0x5F20FC00 == 0x1E200000:  # to and from integers
        is_read = word >> 16 & 7 in {2, 3, 7}
        if word & 0x001F0000 == 0x001E0000:  # `fjcvtzs`
            return [_part(writes=_bits(target) | _FLAG_BIT)]
        return [_part(size_bytes=4 << (word >> 31), reads=_bits(source)) if is_read else _part(writes=_bits(target))]
    if word & 0x9FE08400 == 0x0E000400 and not word >> 29 & 1:  # `dup`, `ins`, `smov`, `umov`
        what = word >> 11 & 15
        size_bytes = 8 if _field(word, 16, 4) == 8 else 4
        return [
            _part(
                size_bytes=size_bytes,
                reads=_bits(source) if what in {1, 3} else 0,
                writes=_bits(target) if what in {5, 7} else 0,
            )
        ]
    if word & 0x5F203C00 == 0x1E202000:  # `fcmp`
        return [_part(writes=_FLAG_BIT)]
    if word & 0x5F200400 == 0x1E200400 and not word >> 31:  # `fccmp`, `fcsel`
        return [_part(reads=_FLAG_BIT, writes=0 if word >> 11 & 1 else _FLAG_BIT)]
    return [_part()]


def _of_memory(word: int, vaddr: int) -> _Parts:
    """Decode loads and stores."""
    base, target = word >> 5 & 31, word & 31
    is_vector = bool(word >> 26 & 1)
    if word & 0x3B000000 == 0x18000000:
        kind = word >> 30
        memory = vaddr + _signed(_field(word, 5, 19), 19) * 4
        if not is_vector and kind == 3:
            return [_part()]
        size_bytes = 4 << kind if is_vector else (4, 8, 4)[kind]
        return [_load(target, size_bytes, None, memory, is_vector=is_vector, is_extended=not is_vector and kind == 2)]
    if word & 0x3A000000 == 0x28000000:
        return _pair(word)
    if word & 0x3B000000 in {0x38000000, 0x39000000}:
        return _single(word)
    if word & 0xBE000000 == 0x0C000000:
        return _structures(word)
    if word & 0x3F000000 == 0x08000000:
        second, size_bytes = word >> 10 & 31, 1 << (word >> 30)
        if word & 0x00A00000 == 0x00800000:  # `ldar`, `stlr`
            if word >> 22 & 1:
                return [_load(target, size_bytes, base, 0, is_extended=size_bytes < 4)]
            return [_store(target, size_bytes, base, 0)]
        changed = _bits(target, word >> 16 & 31, *([second] if word >> 21 & 1 else []))
        # `casp` names the first register of each of two pairs.
        changed |= changed << 1 & _ALL_BITS if word & 0x80A00000 == 0x00200000 else 0
        return [_part(Operation.OTHER, 16, memory=0, base=base, access=Access.CHANGE, reads=changed, writes=changed)]
    return None


def _load(
    target: int,
    size_bytes: int,
    base: int | None,
    memory: int,
    *,
    is_vector: bool = False,
    is_extended: bool = False,
) -> Instruction:
    insn = _part(size_bytes=size_bytes, memory=memory, base=base, access=Access.READ)
    if is_vector or target == _ZERO:
        return insn
    operation = Operation.EXTEND if is_extended else Operation.MOVE
    return insn._replace(operation=operation, register=target, writes=1 << target)


def _store(target: int, size_bytes: int, base: int, memory: int, *, is_vector: bool = False) -> Instruction:
    insn = _part(size_bytes=size_bytes, memory=memory, base=base, access=Access.WRITE)
    if is_vector:
        return insn
    register = None if target == _ZERO else target
    return insn._replace(operation=Operation.MOVE, register=register, reads=_bits(target))


def _accessed(
    word: int, target: int, size_bytes: int, memory: int, *, is_load: bool, is_vector: bool, is_extended: bool = False
) -> Instruction:
    base = word >> 5 & 31
    if is_load:
        return _load(target, size_bytes, base, memory, is_vector=is_vector, is_extended=is_extended)
    return _store(target, size_bytes, base, memory, is_vector=is_vector)


def _pair(word: int) -> _Parts:
    """Decode `ldp` and `stp`: two accesses, and a move of the base before or after them."""
    what, base, targets = word >> 30, word >> 5 & 31, (word & 31, word >> 10 & 31)
    is_vector, is_load, index = bool(word >> 26 & 1), bool(word >> 22 & 1), word >> 23 & 3
    if what == 3 or (what == 1 and not is_vector and not (is_load and index)):
        return None
    size_bytes = 4 << what if is_vector else (4, 4, 8)[what]
    distance = _signed(_field(word, 15, 7), 7) * size_bytes
    memory = 0 if index == 1 else distance
    parts = [
        _accessed(
            word,
            target,
            size_bytes,
            memory + number * size_bytes,
            is_load=is_load,
            is_vector=is_vector,
            is_extended=is_load and what == 1,
        )
        for number, target in enumerate(targets)
    ]
    if is_load and not is_vector and targets[0] == base:
        parts.reverse()
    return parts if index in {0, 2} else [*parts, _address(base, base, distance)]


def _single(word: int) -> _Parts:
    """Decode the loads and stores of one register."""
    base, target, scaled = word >> 5 & 31, word & 31, word >> 16 & 31
    is_vector, size, what = bool(word >> 26 & 1), word >> 30, word >> 22 & 3
    shift = size | (what & 2) << 1 if is_vector else size
    is_load = bool(what & 1) if is_vector else what > 0
    if is_vector and what & 2 and size:
        return None
    is_hint = not is_vector and size == 3 and what == 2  # `prfm`
    has_index, mode = word >> 21 & 1, word >> 10 & 3
    if word >> 24 & 1:
        memory, mode, has_index = _field(word, 10, 12) << shift, 0, 0
    else:
        memory = _signed(_field(word, 12, 9), 9)
    if has_index and mode == 0 and not is_vector:
        return _atomic(word, size)
    if (not is_vector and size >= 2 and what == 3) or (has_index and mode != 2) or (not has_index and mode == 2):
        return None
    if is_hint:
        return [_part()] if mode in {0, 2} else None
    insn = _accessed(
        word,
        target,
        1 << shift,
        0 if has_index or mode == 1 else memory,
        is_load=is_load,
        is_vector=is_vector,
        is_extended=what > 1 or size < 2,
    )
    if has_index:
        kind, scale = _field(word, 13, 3), 1 << (shift if word >> 12 & 1 else 0)
        if kind not in {2, 3, 6, 7}:
            return None
        if scaled != _ZERO:
            insn = insn._replace(scaled=scaled, scale=scale if kind & 1 else -scale)
        return [insn]
    return [insn, _address(base, base, memory)] if mode in {1, 3} else [insn]


def _atomic(word: int, size: int) -> _Parts:
    base, target, source = word >> 5 & 31, word & 31, word >> 16 & 31
    if word & 0x00FFFC00 == 0x00BFC000:  # `ldapr`
        return [_load(target, 1 << size, base, 0, is_extended=size < 2)]
    if word & 0x0000F000 > 0x00008000:
        return None
    changed = _bits(target, source)
    return [_part(size_bytes=1 << size, memory=0, base=base, access=Access.CHANGE, reads=changed, writes=_bits(target))]


# By the number of a structure load how many registers it has.
_REGISTERS: Final = {0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}


def _structures(word: int) -> _Parts:
    """Decode the loads and stores of vectors that `ld1` to `st4` name."""
    base, index, is_load, is_long = word >> 5 & 31, word >> 16 & 31, bool(word >> 22 & 1), word >> 30 & 1
    is_moved, what, size = word >> 23 & 1, word >> 12 & 15, word >> 10 & 3
    if word >> 24 & 1:
        shift = what >> 2 & 3
        shift = size if shift == 3 else 3 if shift == 2 and size & 1 else shift
        size_bytes = ((what >> 1 & 1) * 2 + (word >> 21 & 1) + 1) << shift
    else:
        if what not in _REGISTERS or word >> 21 & 1:
            return None
        size_bytes = _REGISTERS[what] * (8 << is_long)
    if not is_moved and index:
        return None
    insn = _accessed(word, _ZERO, size_bytes, 0, is_load=is_load, is_vector=True)
    if not is_moved:
        return [insn]
    return [insn, _address(base, base, size_bytes) if index == _ZERO else _address(base, base, 0, index)]
