"""The functions of a file as instructions, with what it takes to follow an address through them. x86-64 only.

Knows of each function which instructions state addresses, which may be executed after which, what its local variables
are, and which registers its callers find unchanged. What cannot be decoded has no instructions.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from footprint.elf import abi
from footprint.elf.dynsym import asked_names
from footprint.elf.function_starts import FunctionStarts
from footprint.elf.functions import Functions
from footprint.elf.image import Image
from footprint.elf.symbols import Symbol
from footprint.elf.x86_code import RAX, RBP, RSP, Instruction, decoded

__all__ = ("Code", "CodeReader", "Held", "Place")

# rax, rcx, rdx, rsi, rdi, r8 to r11: a function may leave anything in them (System V ABI, 3.2.1).
_NOT_KEPT: Final = frozenset({0, 1, 2, 6, 7, 8, 9, 10, 11})
# A function without a size is one of the start-up code.
_UNSIZED_BYTES: Final = 256
_LARGEST_FUNCTION_BYTES: Final = 1 << 20
_PLT_ENTRY_BYTES: Final = 16
_MOST_STEPS_BACK: Final = 256
_MOST_CALLS_DEEP: Final = 3
# So many instructions.
_SOON: Final = 16
# Of a vector register.
_WIDEST_BYTES: Final = 64
_HIGHEST_LOCAL: Final = 1 << 31
_LONGEST_FORMAT_BYTES: Final = 1024
_FORMAT: Final = re.compile(rb"%[^%]")
# Numbers of eight bytes may be addresses.
_ADDRESS_FORMAT: Final = re.compile(rb"%[-+ #0'*\d.]*(?:p|[lqjzt]+[diouxX])")
# Where `push` writes to, from the stack pointer.
_PUSHED: Final = -8

Place = int | tuple[int, int]
"""What may hold an address: a register, or a local variable, by the register and distance that it is reached with."""
Held = frozenset[Place]


class Code:
    """The instructions of a function, which ascend.

    Attributes:
        function: The function.
        instructions: Its instructions by their vaddrs, as far as they could be decoded.
        vaddrs: Their vaddrs.
        end_vaddr: The end of them.
        is_whole: Whether all of the function could be decoded.
        frame: The register that local variables are reached with.
    """

    def __init__(
        self, function: Symbol, found: Sequence[Instruction], stated: Callable[[Instruction], Iterable[int]]
    ) -> None:
        """Take the instructions, and what returns the addresses that one states by itself."""
        self.function = function
        self.instructions = {one.vaddr: one for one in found}
        self.vaddrs = tuple(self.instructions)
        self.end_vaddr = found[-1].end_vaddr if found else function.vaddr
        self.is_whole = self.end_vaddr == function.vaddr + function.size_bytes
        self._stated = sorted((address, one.vaddr) for one in found for address in stated(one))
        stating = {vaddr for _, vaddr in self._stated}
        self._stops = [one.vaddr for one in found if one.jump is not None or one.vaddr in stating]
        self.frame, self._lowest_local = _locals(found)

    @property
    def stated(self) -> list[int]:
        """The addresses that its instructions state."""
        return [address for address, _ in self._stated]

    def stating(self, low: int, high: int) -> list[int]:
        """Return the instructions that state an address from `low` to `high`."""
        first = bisect_left(self._stated, (low, 0))
        return [vaddr for _, vaddr in self._stated[first : bisect_left(self._stated, (high + 1, 0))]]

    def next_stop(self, vaddr: int, held: Held = frozenset()) -> int:
        """Return the first instruction from one on that may matter to what holds an address; else the end.

        Such a one jumps, states an address by itself, or has a place that holds the address.
        """
        found = self.end_vaddr
        for vaddrs in (self._stops, *[self._having.get(place, ()) for place in held]):
            number = bisect_left(vaddrs, vaddr)
            if number < len(vaddrs) and vaddrs[number] < found:
                found = vaddrs[number]
        return found

    @cached_property
    def _having(self) -> Mapping[Place | None, Sequence[int]]:
        """By register or local variable the instructions that have it as an operand."""
        having: dict[Place | None, list[int]] = defaultdict(list)
        for vaddr, one in self.instructions.items():
            # What has a register twice is listed twice, which does no harm.
            for register in (one.register, one.other, one.base, one.scaled):
                if register is not None:
                    having[register].append(vaddr)
            if one.base == self.frame:
                for local in self.locals_of(one):
                    having[local].append(vaddr)
        return having

    @cached_property
    def ways(self) -> Mapping[int, Sequence[int]]:
        """By stop those that may be executed next, but for jumps by a table, where nothing holds an address."""
        ways: dict[int, list[int]] = {}
        for vaddr in self._stops:
            jump, ways[vaddr] = self.instructions[vaddr].jump, []
            if jump is None or jump.falls_through:
                ways[vaddr].append(self.next_stop(self.instructions[vaddr].end_vaddr))
            if jump is not None and jump.target in self.instructions and not jump.is_call:
                ways[vaddr].append(self.next_stop(jump.target or 0))
        return ways

    @cached_property
    def words(self) -> Mapping[int, set[int]]:
        """By register the vaddrs of the words that are loaded into it, also by way of another register."""
        words: dict[int, set[int]] = {}
        for one in self.instructions.values():
            if one.register is None or not one.copies or one.writes_memory or one.is_address:
                continue
            if one.memory is not None and {one.base, one.scaled} == {None}:
                words.setdefault(one.register, set()).add(one.memory)
            elif one.memory is None and one.other in words:
                words.setdefault(one.register, set()).update(words[one.other])
        return words

    @cached_property
    def before(self) -> Mapping[int, Sequence[int]]:
        """By vaddr of an instruction those that may be executed before it, but for jumps by a table."""
        found: dict[int, list[int]] = {}
        for vaddr, one in self.instructions.items():
            if one.jump is None or one.jump.falls_through:
                found.setdefault(one.end_vaddr, []).append(vaddr)
            if one.jump is not None and one.jump.target in self.instructions and not one.jump.is_call:
                found.setdefault(one.jump.target or 0, []).append(vaddr)
        return found

    def local(self, one: Instruction) -> Place | None:
        """Return the local variable that is the memory of an instruction; None where it is none that can be followed.

        A local variable whose address the function computes may be a part of what lies there.
        """
        if one.memory is None or one.base != self.frame or one.scaled is not None or one.is_address:
            return None
        is_local = one.memory < self._lowest_local and (self.frame == RBP or one.memory >= 0)
        return (self.frame, one.memory) if is_local else None

    def locals_of(self, one: Instruction) -> list[Place]:
        """Return the local variables that the memory of an instruction may cover: a vector register takes several."""
        if self.local(one) is None or one.memory is None:
            return []
        count = 1 if one.register is not None else _WIDEST_BYTES // 8
        return [(self.frame, one.memory + 8 * number) for number in range(count)]

    @cached_property
    def read_locals(self) -> frozenset[Place]:
        """The local variables that the function reads itself: others on its stack may be arguments of what it calls."""
        return frozenset(
            [local for one in self.instructions.values() if not one.writes_memory for local in self.locals_of(one)]
        )

    def is_index_added(self, one: Instruction) -> bool:
        """Return whether an index is added to the address that an instruction states, there or soon after."""
        if one.base is not None or one.scaled is not None:
            return True
        first = bisect_left(self.vaddrs, one.end_vaddr)
        for vaddr in self.vaddrs[first : first + _SOON]:
            later = self.instructions[vaddr]
            if one.register in {later.base, later.scaled} and None not in {later.base, later.scaled}:
                return True
            if one.register in {later.register, later.other} and not later.writes_memory and not later.compares:
                # `add`; any other instruction makes a copy, or forgets it.
                return not later.copies and not later.overwrites and later.immediate is None
        return False

    def is_set_last(self, end: Instruction, register: int) -> bool:
        """Return whether on one of the ways to an instruction a register is set, and not used after that."""
        todo, seen = [*self.before.get(end.vaddr, ())], set[int]()
        while todo and len(seen) < _MOST_STEPS_BACK:
            vaddr = todo.pop()
            one = self.instructions[vaddr]
            is_set = one.register == register and one.overwrites and not one.writes_memory
            if is_set and register not in {one.base, one.scaled}:
                return True
            if vaddr not in seen and register not in {one.register, one.other, one.base, one.scaled}:
                seen.add(vaddr)
                todo += self.before.get(vaddr, ())
        return False


def _locals(instructions: Iterable[Instruction]) -> tuple[int, int]:
    """Return the register that local variables are reached with, and the lowest distance whose address code has."""
    lowest, is_used, frame = {RSP: _HIGHEST_LOCAL, RBP: _HIGHEST_LOCAL}, False, RSP
    for one in instructions:
        if one.copies and one.other == RSP:
            frame, lowest[RSP] = (RBP, 0) if one.register == RBP else (frame, 0)
        elif (one.is_address or one.scaled is not None) and one.memory is not None and one.base in lowest:
            # An array that is reached by an index holds whatever any of its words holds.
            lowest[one.base] = min(lowest[one.base], one.memory)
        elif one.base == RSP:
            # What is pushed in between moves all others.
            is_pushed = one.memory == _PUSHED
            lowest[RSP] = 0 if is_pushed and is_used else lowest[RSP]
            is_used |= not is_pushed
    return frame, lowest[frame]


class CodeReader:
    """Reads the functions of a file; each is decoded once."""

    def __init__(self, image: Image, functions: Functions) -> None:
        self._image = image
        self._functions = functions
        self._known: dict[int, Code] = {}
        self._callees: dict[int, str] = {}
        self._changed: dict[int, frozenset[int]] = {}
        self._has_handlers = any(one.name.startswith(".gcc_except_table") for one in image.sections)
        self._starts = FunctionStarts(image) if self._has_handlers else None
        is_fixed = image.type == abi.ET_EXEC
        self._first = min([one.vaddr for one in image.loads], default=0) if is_fixed else 0
        self._end = max([one.vaddr + one.memory_bytes for one in image.loads], default=0) if is_fixed else 0

    def at(self, vaddr: int) -> Code | None:
        """Return the function that a vaddr lies in."""
        function = self._functions.at(vaddr)
        if function is None or function.size_bytes > _LARGEST_FUNCTION_BYTES:
            return None
        if not function.size_bytes:
            # It ends with its section: what follows `_init` are the entries of the PLT.
            code = [one for one in self._image.sections if one.flags & abi.SHF_EXECINSTR]
            ends = [one.vaddr + one.size_bytes for one in code if one.vaddr <= function.vaddr]
            size_bytes = min([_UNSIZED_BYTES, *[end - function.vaddr for end in ends if end > function.vaddr]])
            if vaddr >= function.vaddr + size_bytes:
                return None
            function = function._replace(size_bytes=size_bytes)
        known = self._known.get(function.vaddr)
        if known is None:
            found = [*self.instructions(function.vaddr, function.size_bytes)]
            known = self._known[function.vaddr] = Code(function, found, self.stated)
        return known

    def instructions(self, start: int, size_bytes: int) -> Iterator[Instruction]:
        """Decode code from a vaddr on, as far as it can be decoded; at most that of a large function."""
        size_bytes = min(size_bytes, _LARGEST_FUNCTION_BYTES)
        for segment in self._image.loads:
            if segment.vaddr <= start and start + size_bytes <= segment.vaddr + segment.file_bytes:
                raw = self._image.bytes_at(segment.offset + start - segment.vaddr, size_bytes, "a function")
                yield from decoded(raw, start)

    def stated(self, one: Instruction) -> list[int]:
        """Return the addresses that an instruction states by itself; an index may count from one."""
        found = [one.memory] if one.memory is not None and (one.base is None or self.is_address(one.memory)) else []
        return [*found, one.immediate] if one.immediate is not None and self.is_address(one.immediate) else found

    def is_address(self, number: int | None) -> bool:
        """Return whether a number is an address, in a program at a fixed address."""
        return number is not None and self._first <= number < self._end

    def may_catch(self, code: Code) -> bool:
        """Return whether a function may catch exceptions, or clean up after them."""
        return self._has_handlers and (not self._starts or self._starts.has_handlers(code.function.vaddr))

    def may_print_addresses(self, code: Code) -> bool:
        """Return whether a function states a format that may print an address (`%p`), or none that can be read."""
        formats = [text for vaddr in code.stated if _FORMAT.search(text := self._text(vaddr))]
        return not formats or any(map(_ADDRESS_FORMAT.search, formats))

    def _text(self, vaddr: int) -> bytes:
        """Return the begin of the text at a vaddr; nothing where none is."""
        for segment in self._image.loads:
            if segment.vaddr <= vaddr < segment.vaddr + segment.file_bytes:
                left = min(_LONGEST_FORMAT_BYTES, segment.vaddr + segment.file_bytes - vaddr)
                raw = self._image.bytes_at(segment.offset + vaddr - segment.vaddr, left, "a text")
                return bytes(raw).partition(b"\0")[0]
        return b""

    def changed_by(self, call: Instruction, depth: int = 0) -> frozenset[int]:
        """Return the registers that a call may leave with another value.

        gcc keeps values over calls of functions of the same source file in registers that these happen not to use.
        """
        target = None if call.jump is None else call.jump.target
        if target is None or depth > _MOST_CALLS_DEEP:
            return _NOT_KEPT
        if target not in self._changed:
            # What calls itself is taken to change all.
            self._changed[target] = _NOT_KEPT
            code = self.at(target)
            if code is not None and code.is_whole and target == code.function.vaddr:
                self._changed[target] = self._changed_in(code, depth)
        return self._changed[target]

    def is_unset(self, code: Code, call: Instruction, register: int) -> bool:
        """Return whether a register is left as an earlier call leaves it, on one of the ways to an instruction."""
        todo, seen = [*code.before.get(call.vaddr, ())], set[int]()
        while todo and len(seen) < _MOST_STEPS_BACK:
            vaddr = todo.pop()
            one = code.instructions[vaddr]
            if vaddr in seen or (one.register == register and not one.compares and not one.writes_memory):
                continue
            seen.add(vaddr)
            if one.jump is not None and one.jump.is_call and register in self.changed_by(one):
                return True
            todo += code.before.get(vaddr, ())
        return False

    def _changed_in(self, code: Code, depth: int) -> frozenset[int]:
        changed = {RAX, *[one.register for one in code.instructions.values() if one.register is not None]}
        for one in code.instructions.values():
            if one.jump is None or one.jump.is_end or one.jump.target in code.instructions:
                continue
            if changed >= _NOT_KEPT:
                break
            changed |= self.changed_by(one, depth + 1)
        return _NOT_KEPT & changed

    def name_of_callee(self, one: Instruction, code: Code | None = None) -> str:
        """Return the name of the function of another file that a jump or call leads to; "" where it is not known."""
        target = None if one.jump is None else one.jump.target
        if target is None:
            words = set() if one.memory is None or one.base is not None else {one.memory}
            if code is not None and one.memory is None and one.base is not None:
                words = code.words.get(one.base, set())
            names = {self._asked.get(word, "") for word in words}
            return names.pop() if len(names) == 1 else ""
        if target not in self._callees:
            # An entry of the PLT; in objects, a function that none of them defines.
            jumps = [each for each in self.instructions(target, _PLT_ENTRY_BYTES) if each.jump is not None]
            function = self._functions.at(target)
            name = "" if function is None else function.name
            self._callees[target] = self._asked.get(jumps[0].memory or 0, "") if jumps else name
        return self._callees[target]

    @cached_property
    def _asked(self) -> dict[int, str]:
        return asked_names(self._image)
