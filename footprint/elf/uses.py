"""What code does with a variable: whether it only reads it, writes it, or hands its address on. x86-64 only.

Each reference is followed through its function: from the instruction that computes the address of the variable along
every branch, and into the functions of the same file that it is passed to, as long as a register may hold the address.
Memory is not followed: an address that is stored, returned, or passed to another file counts as handed on, and what
becomes of it is not known.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from footprint.elf.functions import Functions
from footprint.elf.image import Image
from footprint.elf.references import ReferencedPlace, find_references
from footprint.elf.symbols import Symbol
from footprint.elf.x86_code import Instruction, decoded

__all__ = ("Use", "find_uses")

# rdi, rsi, rdx, rcx, r8, r9; and rbx, rsp, rbp, r12 to r15 (System V ABI, 3.2.1).
_ARGUMENTS: Final[frozenset[int | None]] = frozenset({7, 6, 2, 1, 8, 9})
_KEPT_BY_CALLS: Final[frozenset[int | None]] = frozenset({3, 4, 5, 12, 13, 14, 15})
_RETURNED: Final = 0
_MOST_STEPS: Final = 4096
# A function without a size is one of the start-up code.
_UNSIZED_BYTES: Final = 256
_LARGEST_FUNCTION_BYTES: Final = 1 << 20


class Use(IntEnum):
    """What code does with a variable; of several uses the last one here counts."""

    UNUSED = 0
    """Nothing refers to it."""
    READ = 1
    """All references only read it."""
    HANDED_ON = 2
    """Its address is stored, passed on or returned, or a reference could not be followed."""
    WRITTEN = 3
    """An instruction writes it."""


def find_uses(image: Image, functions: Functions, places: Sequence[ReferencedPlace], starts: set[int]) -> list[Use]:
    """Find what the code of a file does with each of some variables, which ascend.

    Args:
        image: A file for which `can_find_references` is true.
        functions: Its functions.
        places: The variables.
        starts: The first vaddrs of all variables.

    Raises:
        InputError: Where a table or segment is damaged.
    """
    follower = _Follower(image, functions)
    uses = []
    for place, references in zip(places, find_references(image, places, starts), strict=True):
        use = Use.UNUSED
        for one in references:
            use = max(use, follower.use_of(one.vaddr, place) if one.vaddr else Use.HANDED_ON)
            if use is Use.WRITTEN:
                break
        uses.append(use)
    return uses


class _Code(NamedTuple):
    """The instructions of a function by their vaddrs, which ascend, and the end of those that could be decoded."""

    function: Symbol
    instructions: Mapping[int, Instruction]
    vaddrs: Sequence[int]
    end_vaddr: int


class _Follower:
    """Follows references through functions; each function is decoded once."""

    def __init__(self, image: Image, functions: Functions) -> None:
        self._image = image
        self._functions = functions
        self._known: dict[int, _Code] = {}

    def use_of(self, vaddr: int, place: ReferencedPlace) -> Use:
        """Return what the reference at a vaddr of code does with a variable."""
        code = self._code_at(vaddr)
        if code is None or vaddr >= code.end_vaddr:
            return Use.HANDED_ON
        found = code.instructions[code.vaddrs[bisect_right(code.vaddrs, vaddr) - 1]]
        low, high = place.start_vaddr - place.before_bytes, place.end_vaddr + place.after_bytes
        if found.memory is not None and low <= found.memory < high:
            if found.writes_memory:
                return Use.WRITTEN
            if not found.is_address:
                return Use.READ
        elif found.memory is not None and not {found.base, found.scaled} <= {None}:
            # `days[year - 1900]` in a program at a fixed address: another variable may be meant, or this one.
            return Use.HANDED_ON if found.writes_memory or found.is_address else Use.READ
        elif found.immediate is None or not low <= found.immediate < high:
            # The bytes of the reference are a part of something else.
            return Use.UNUSED
        elif found.register is None or found.writes_memory:
            return Use.HANDED_ON
        if found.register is None:
            return Use.HANDED_ON
        return self._follow(code, found, found.register)

    def _code_at(self, vaddr: int) -> _Code | None:
        function = self._functions.at(vaddr)
        if function is None or function.size_bytes > _LARGEST_FUNCTION_BYTES:
            return None
        if not function.size_bytes:
            function = function._replace(size_bytes=_UNSIZED_BYTES)
        known = self._known.get(function.vaddr)
        if known is None:
            known = self._known[function.vaddr] = self._decoded(function)
        return known

    def _decoded(self, function: Symbol) -> _Code:
        found: dict[int, Instruction] = {}
        start, end_vaddr = function.vaddr, function.vaddr + function.size_bytes
        for segment in self._image.loads:
            if segment.vaddr <= start and end_vaddr <= segment.vaddr + segment.file_bytes:
                raw = self._image.bytes_at(segment.offset + start - segment.vaddr, function.size_bytes, "a function")
                found = {one.vaddr: one for one in decoded(raw, start)}
        end_vaddr = found[max(found)].end_vaddr if found else start
        return _Code(function, found, tuple(found), end_vaddr)

    def _follow(self, code: _Code, first: Instruction, register: int) -> Use:
        """Follow a register that holds the address, from the instruction behind `first`."""
        todo: list[tuple[_Code, int, frozenset[int | None]]] = [(code, first.end_vaddr, frozenset({register}))]
        seen: set[tuple[int, frozenset[int | None]]] = set()
        use = Use.READ
        while todo:
            here, vaddr, held = todo.pop()
            if (vaddr, held) in seen:
                continue
            seen.add((vaddr, held))
            one = here.instructions.get(vaddr)
            if one is None or len(seen) > _MOST_STEPS:
                use = max(use, Use.HANDED_ON)
                continue
            if held.intersection((one.base, one.scaled)) and one.writes_memory:
                return Use.WRITTEN
            if _hands_on(one, held):
                use = Use.HANDED_ON
            held = _held_after(one, held)
            if one.jump is None:
                todo += [(here, one.end_vaddr, held)] if held else []
                continue
            target = self._led_to(here, one)
            passed = held if target is here or not one.jump.is_call else held & _ARGUMENTS
            if passed and target is not None:
                todo.append((target, one.jump.target or 0, passed))
            elif _leaves_with_it(one, held):
                use = Use.HANDED_ON
            held = held & _KEPT_BY_CALLS if one.jump.is_call else held
            if one.jump.falls_through and held:
                todo.append((here, one.end_vaddr, held))
        return use

    def _led_to(self, code: _Code, one: Instruction) -> _Code | None:
        """Return the function of this file that a jump or call leads to; None where that is not known."""
        target = None if one.jump is None else one.jump.target
        if target is None:
            return None
        found = code if target in code.instructions else self._code_at(target)
        return found if found is not None and target in found.instructions else None


def _hands_on(one: Instruction, held: frozenset[int | None]) -> bool:
    """Return whether an instruction stores a register that is held, or copies it to a vector register."""
    if not one.copies:
        return False
    return (one.writes_memory and one.register in held) or (one.register is None and one.other in held)


def _held_after(one: Instruction, held: frozenset[int | None]) -> frozenset[int | None]:
    """Return the registers that may hold the address after an instruction."""
    if one.register is None or one.writes_memory:
        return held
    if one.overwrites and one.other == one.register:
        return held - {one.register}
    takes = one.other in held or (one.is_address and bool(held.intersection((one.base, one.scaled))))
    if takes:
        return held | {one.register}
    return held - {one.register} if one.overwrites else held


def _leaves_with_it(one: Instruction, held: frozenset[int | None]) -> bool:
    """Return whether the address goes where it cannot be followed: to another file, or to the caller as the result."""
    if one.jump is None or not held:
        return False
    if one.jump.is_end:
        return _RETURNED in held
    # A register or a table holds the target of a jump without one: it may lead to a part of the function.
    is_within = one.jump.target is None and not one.jump.is_call
    return is_within or bool(held & _ARGUMENTS)
