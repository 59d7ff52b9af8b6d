"""The functions of a file as instructions, with what it takes to follow an address through them. x86-64 and arm64 only.

Knows of each function which instructions state addresses, which may be executed after which, what its local variables
are, and which registers its callers find unchanged. What cannot be decoded has no instructions.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from struct import Struct
from typing import Final

from footprint.elf import abi
from footprint.elf.arm64_addresses import AddressResolver, Lost, Numbers, Resolved, join_numbers
from footprint.elf.arm64_code import decoded
from footprint.elf.contracts import function_contract, is_library_version, is_reserved
from footprint.elf.dynsym import asked_names, library_names, read_dynamic_symbols
from footprint.elf.functions import Functions, FunctionStarts
from footprint.elf.harmless import Holders, slot_of
from footprint.elf.image import Buffer, Image
from footprint.elf.instruction import ARM64, FLAGS, RBP, X86_64, Access, Convention, Instruction, Operation
from footprint.elf.symbols import Symbol
from footprint.elf.x86_shapes import JUMPS, NUMBERED, PADDING, STATES, Instructions, ListedInstructions
from footprint.members import lazy_pattern

# x0 and the link register; R_AARCH64_TLSDESC.
_CHANGED_BY_TLS_CALL: Final = frozenset({0, 30})
_TLS_DESCRIPTORS: Final = frozenset({1031})
_COLD: Final = ".cold"
_RETURNING_TWICE: Final = frozenset(
    {"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "_sigsetjmp", "__sigsetjmp", "getcontext", "vfork", "__vfork"}
)
# A function without a size is one of the start-up code.
_UNSIZED_BYTES: Final = 256
_LARGEST_FUNCTION_BYTES: Final = 1 << 20
_REGISTER: Final = 63  # of the numbers in `Holders` the bits that name a register
_PLT_ENTRY_BYTES: Final = 16
_LONGEST_PLT_ENTRY_BYTES: Final = 24
_PLT_BITS: Final = 1 << 16 | 1 << 17
_MOST_STEPS_BACK: Final = 256
_MOST_CALLS_DEEP: Final = 3
# So many instructions.
_SOON: Final = 16
_FIRST: Final = 6
# `jp`, `setp`, `cmovp` and their opposites, and what reads all flags.
_PARITY: Final = lazy_pattern(rb"[\x7a\x7b\x9c\x9f]|[\x40-\x4f\x66]*\x0f[\x4a\x4b\x8a\x8b\x9a\x9b]", re.DOTALL)
_HIGHEST: Final = 1 << 62
_LOWEST: Final = -_HIGHEST
# Where a frame is whose distance from the return address is not known.
_SOMEWHERE: Final = -(1 << 32)
_WORD_BYTES: Final = 8
# To look a member up takes longer than a comparison.
_ADDRESS, _MOVE, _NONE, _READ = Operation.ADDRESS, Operation.MOVE, Access.NONE, Access.READ
_ARGUMENTS_BYTES: Final = 1024
# Compilers compute the address of `array[i - 1]` from one before the array.
_MOST_BEFORE_BYTES: Final = 32
_LONGEST_FORMAT_BYTES: Final = 1024
_LARGEST_TABLE_BYTES: Final = 1 << 13
# Where `push` writes to, from the stack pointer.
_PUSHED: Final = -8


class Stack:
    """Where the stack pointer stands in a function, and which of its local variables nothing else can reach.

    A slot is the negative distance of its first byte from the end of the arguments on the stack, of which so many bytes
    are taken into account. A local variable whose address the function computes may be a part of what lies there, and
    so may all above it.

    Args:
        instructions: The instructions of the function.
        start: The first one.
        convention: Which registers the stack and its frames have.
    """

    def __init__(self, instructions: Instructions | ListedInstructions, start: int, convention: Convention) -> None:
        self._instructions = instructions
        self._top, self._base = convention.stack, convention.frame
        self._of_stack = frozenset({self._top, self._base})
        self._bits = 1 << self._top | 1 << self._base
        self._walked = instructions.marked(self._bits | JUMPS)
        self._reaching = [instructions[vaddr] for vaddr in instructions.marked(self._bits)]
        self._frame_vaddr = 0
        self._frame: int | None = None
        self._depths: dict[int, int | None] = {}
        self._is_regular = True
        self._highest = _LOWEST
        self.places = set[int]()
        self._walk([(start, 0)])
        at_jumps = {
            self._depths[vaddr]
            for vaddr, jump in instructions.jumps.items()
            if (jump.is_call or jump.target is None) and vaddr in self._depths
        } - {0}
        if len(at_jumps) == 1:
            # Tables of jumps, and what throws, lead to where the stack pointer stands as at all calls.
            depth = at_jumps.pop()
            labels = [self._behind(vaddr) for vaddr, jump in instructions.jumps.items() if not jump.falls_through]
            for vaddr in sorted([*self._walked, *labels]):
                if vaddr not in self._depths:
                    self._walk([(vaddr, depth)])
        self._lowest = self._lowest_reached()

    @cached_property
    def has_arguments(self) -> bool:
        """Whether the arguments on the stack are reached by slots only."""
        # The variables of a function are no part of its arguments, but what is added to their addresses may lead there.
        # On arm64 such arguments are not followed.
        return (
            self._base == RBP
            and self._lowest > _LOWEST
            and self._highest < -_MOST_BEFORE_BYTES
            and not (self.places and any(self._leads_to_arguments(one) for one in self._instructions))
        )

    def _leads_to_arguments(self, insn: Instruction) -> bool:
        """Return whether an instruction adds to a register what lies between a variable of the function and them."""
        if insn.register in self._of_stack:
            return False
        number = insn.immediate if insn.operation is Operation.ADD else None
        if insn.operation is Operation.SUBTRACT and insn.immediate is not None:
            number = -insn.immediate
        if insn.memory is not None and insn.base is not None and insn.base not in self._of_stack:
            number = insn.memory
        return number is not None and any(
            -_MOST_BEFORE_BYTES <= place + number < _ARGUMENTS_BYTES for place in self.places
        )

    def _behind(self, vaddr: int) -> int:
        """Return what follows an instruction and the padding behind it."""
        vaddrs, marks = self._instructions.vaddrs, self._instructions.marks
        number = bisect_right(vaddrs, vaddr)
        while number < len(vaddrs) and marks[number] & PADDING:
            number += 1
        return vaddrs[number] if number < len(vaddrs) else self._instructions.end_vaddr

    @cached_property
    def slots(self) -> Mapping[int, int]:
        """By vaddr of an instruction the slot that its memory begins with, where it is one to be followed."""
        slots = {}
        for insn in self._reaching:
            if insn.base in self._of_stack and insn.access is not _NONE and insn.scaled is None:
                place = self._place(insn)
                past = _HIGHEST if place is None else place + max(insn.size_bytes, 1)
                if place is not None and insn.access is _READ:
                    # That of fractions and vectors is the largest that it may be.
                    past = place + min(max(insn.size_bytes, 1), _WORD_BYTES)
                is_argument = place is not None and place >= _WORD_BYTES and self.has_arguments
                if place is not None and past <= (_ARGUMENTS_BYTES if is_argument else min(self._lowest, 0)):
                    slots[insn.vaddr] = place - _ARGUMENTS_BYTES
        return slots

    def passed(self, call: Instruction, slots: Iterable[int]) -> frozenset[int] | None:
        """Return what some slots are for the function that a call or jump leads to: those that may be its arguments.

        None where that is not known.
        """
        if self._base != RBP:
            return None
        depth, arguments = self._depths.get(call.vaddr), set()
        is_call = call.jump is not None and call.jump.is_call
        if depth and not is_call:
            # A function that ends has no local variables: it goes on in a part of it.
            return None
        for slot in slots:
            # What lies above the return address is for the function itself.
            if depth is None or (is_call and slot >= _WORD_BYTES - _ARGUMENTS_BYTES):
                is_known = depth is not None
            else:
                passed = slot - depth + (_WORD_BYTES if is_call else 0)
                is_known = passed < 0
                arguments.update([passed] if passed >= _WORD_BYTES - _ARGUMENTS_BYTES else [])
            if not is_known:
                return None
        return frozenset(arguments)

    def _place(self, insn: Instruction) -> int | None:
        origin = self._frame if insn.base == self._base else self._depths.get(insn.vaddr)
        return None if origin is None or insn.memory is None else origin + insn.memory

    def _walk(self, todo: list[tuple[int, int | None]]) -> None:
        """Follow the stack pointer along all ways."""
        walked, instructions, jumps = self._walked, self._instructions, self._instructions.jumps
        while todo:
            start, depth = todo.pop()
            if start not in instructions:
                continue
            first = bisect_left(walked, start)
            if first < len(walked) and walked[first] != start:
                self._depths.setdefault(start, depth)
            for number in range(first, len(walked)):
                vaddr = walked[number]
                if vaddr in self._depths:
                    self._is_regular &= self._depths[vaddr] == depth
                    break
                self._depths[vaddr] = depth
                jump = jumps.get(vaddr)
                if jump is None:
                    insn = instructions[vaddr]
                    depth = self._after(insn, depth) if insn.writes & self._bits else depth
                    continue
                if jump.target is not None and not jump.is_call:
                    todo.append((jump.target, depth))
                if not jump.falls_through:
                    break

    def _after(self, insn: Instruction, depth: int | None) -> int | None:
        """Return where the stack pointer stands after an instruction; None where that is not known."""
        is_wide = insn.size_bytes == 8
        if self._is_frame(insn) and is_wide:
            frame = None if depth is None else depth + (insn.memory or 0)
            self._is_regular &= self._frame in {None, frame}
            self._frame = frame if frame is not None else _SOMEWHERE
            self._frame_vaddr = max(self._frame_vaddr, insn.vaddr)
        if not insn.writes >> self._top & 1:
            return depth
        if insn.operation is Operation.LEAVE:
            return None if self._frame is None else self._frame + 8
        if insn.operation is _MOVE and insn.other == self._base:
            return self._frame
        if insn.operation is _ADDRESS and insn.base in self._of_stack and insn.scaled is None:
            origin = self._frame if insn.base == self._base else depth
            return None if origin is None or insn.memory is None else origin + insn.memory
        if depth is None or not is_wide:
            return None
        if insn.register == self._top:
            step = {Operation.ADD: 1, Operation.SUBTRACT: -1}.get(insn.operation)
            return None if insn.immediate is None or step is None else depth + step * insn.immediate
        return depth + (8 if insn.operation is _MOVE and insn.access is _READ else -8)

    def _is_frame(self, insn: Instruction) -> bool:
        """Return whether an instruction makes the frame pointer an address on the stack."""
        is_copied = insn.operation is _MOVE and insn.other == self._top
        # rbp is a register like others where it is a sum.
        is_sum = self._base != RBP and insn.operation is _ADDRESS and insn.base == self._top
        return insn.register == self._base and (is_copied or is_sum)

    def _lowest_reached(self) -> int:
        """Return the lowest place whose address the function computes; lower ones are reached by their names only."""
        lowest = _HIGHEST
        for insn in self._reaching:
            is_address, is_value = insn.operation is _ADDRESS, (insn.reads | insn.writes) & self._bits
            if not (is_address or is_value) and insn.scaled is None and self._depths.get(insn.vaddr) is not None:
                continue
            reached = self._lowest_value(insn)
            if insn.base == self._top or (insn.base == self._base and self._frame is not None):
                place = self._place(insn)
                is_of_stack = is_address and (insn.register in {self._top, None} or self._is_frame(insn))
                if (is_address or insn.scaled is not None or place is None) and not is_of_stack:
                    reached = _LOWEST if place is None else min(reached, place)
                    # An index may lead from before an array of addresses to one that is an argument.
                    is_far = insn.scaled is not None and (is_address or insn.size_bytes >= _WORD_BYTES)
                    self._highest = _HIGHEST if is_far else self._highest
            if self._frame is not None and (insn.scaled == self._base or self._is_other(insn)):
                return _LOWEST
            if reached < _HIGHEST:
                self._highest = max(self._highest, reached)
                self.places.add(reached)
            lowest = min(lowest, reached)
        is_certain = self._is_regular and (lowest == _HIGHEST or not self._goes_back())
        return lowest if is_certain else _LOWEST

    def _goes_back(self) -> bool:
        """Return whether the end of an array of addresses on the stack may lead to those before it."""
        frame = self._base if self._frame is not None else self._top
        leading = {self._top, frame}
        steps, count = frozenset({_ADDRESS, Operation.ADD, Operation.SUBTRACT}), 0
        moves = [m for m in self._instructions.kinds.values() if m.operation is _MOVE or m.operation in steps]
        sources = defaultdict[int, set[int | None]](set)
        for m in moves:
            if m.register is not None and not m.writes_memory:
                sources[m.register].update((m.base, m.scaled) if m.operation is _ADDRESS else (m.other,))
        while count < len(leading):
            count = len(leading)
            leading.update([register for register, those in sources.items() if not those.isdisjoint(leading)])
        leading -= {self._top, frame}
        reads = [move for move in moves if move.access is _READ and move.size_bytes == _WORD_BYTES]
        # By an index, or by a register that steps back itself.
        indexes = {read.scaled for read in reads if read.base in self._of_stack} - {None}
        bases = {read.base for read in reads if read.scaled is None} & leading
        stepping = indexes | bases
        for m in self._instructions.of_kinds(lambda m: m.register in stepping and m.operation in steps):
            number = m.memory if m.operation is _ADDRESS and m.base == m.register else m.immediate
            step = -(number or 0) if m.operation is Operation.SUBTRACT else number or 0
            if m.access is _NONE and step < 0 and (m.register in indexes or not step % _WORD_BYTES):
                return True
        return False

    def _is_other(self, insn: Instruction) -> bool:
        """Return whether an instruction makes rbp something else than the frame."""
        is_restored = insn.operation is Operation.LEAVE or (insn.operation is _MOVE and insn.base == self._top)
        return bool(insn.writes >> self._base & 1) and not is_restored and not self._is_frame(insn)

    def _lowest_value(self, insn: Instruction) -> int:
        """Return the lowest place that an instruction leads to which reads the stack pointer as a value."""
        frame = self._frame
        if insn.reads >> self._top & 1 and insn.writes >> self._top & 1 == 0:
            depth = self._depths.get(insn.vaddr)
            if insn.operation is not _MOVE or insn.memory is not None or depth is None:
                return _HIGHEST if insn.jump is not None else _LOWEST
            return _HIGHEST if insn.register == self._base else depth
        if frame is not None and insn.reads >> self._base & 1 and insn.operation is not Operation.LEAVE:
            if insn.operation is _MOVE and insn.memory is None:
                return _HIGHEST if insn.register == self._top else frame
            # That of the caller is kept on the stack.
            is_kept = insn.memory == _PUSHED or insn.vaddr < self._frame_vaddr
            return _HIGHEST if insn.base == self._top and is_kept else _LOWEST
        return _HIGHEST


def _is_plain_move(insn: Instruction) -> bool:
    """Return whether an instruction copies to a register: from another, from a vaddr, or a number."""
    has_base = insn.base is not None or insn.scaled is not None
    return insn.operation is _MOVE and not has_base and not insn.writes_memory


class Code:
    """The instructions of a function, which ascend.

    Attributes:
        function: The function.
        instructions: Its instructions by their vaddrs, as far as they could be decoded.
        vaddrs: Their vaddrs.
        end_vaddr: The end of them.
        is_whole: Whether all of the function could be decoded, and all jumps in it lead to instructions.
        lost: Addresses from where it may reach variables in ways that are not followed.
    """

    def __init__(
        self,
        function: Symbol,
        instructions: Instructions | ListedInstructions,
        stated: Iterable[tuple[int, int]],
        convention: Convention,
        lost: Sequence[Lost] = (),
    ) -> None:
        """Take the instructions, the addresses that they state, each with the vaddr of one, and those that are lost."""
        self.function = function
        self.lost = lost
        self._convention = convention
        self._of_stack = frozenset({convention.stack, convention.frame})
        self.instructions = instructions
        self.vaddrs = instructions.vaddrs
        self.end_vaddr = instructions.end_vaddr
        self._stated = sorted(stated)
        self._jumps = instructions.jumps
        is_whole = self.end_vaddr == function.vaddr + function.size_bytes
        self._stops = sorted({*self._jumps, *[vaddr for _, vaddr in self._stated]})
        for jump in self._jumps.values():
            if jump.target is not None and function.vaddr <= jump.target < self.end_vaddr:
                is_whole &= jump.target in instructions
        self.is_whole = is_whole

    @property
    def stated(self) -> list[int]:
        """The addresses that its instructions state."""
        return [address for address, _ in self._stated]

    @property
    def stated_pairs(self) -> Sequence[tuple[int, int]]:
        """The addresses that its instructions state, ascending, each with the vaddr of the instruction."""
        return self._stated

    def stated_by(self, insn: Instruction) -> Sequence[int]:
        """Return the addresses that an instruction states, or may mean."""
        return self._stated_by.get(insn.vaddr, ())

    @cached_property
    def _stated_by(self) -> Mapping[int, Sequence[int]]:
        addresses: dict[int, list[int]] = defaultdict(list)
        for address, vaddr in self._stated:
            addresses[vaddr].append(address)
        return addresses

    @cached_property
    def has_end(self) -> bool:
        """Whether nothing goes on behind its last instruction, but for a call that may return, and padding."""
        for vaddr in reversed(self.vaddrs):
            insn = self.instructions[vaddr]
            if insn.jump is not None:
                return insn.jump.is_call or not insn.jump.falls_through
            if insn.reads or insn.writes or insn.memory is not None:
                return False
        return False

    def stating(self, low: int, high: int) -> list[int]:
        """Return the instructions that state an address from `low` to `high`."""
        first = bisect_left(self._stated, (low, 0))
        return [vaddr for _, vaddr in self._stated[first : bisect_left(self._stated, (high + 1, 0))]]

    def instruction_at(self, vaddr: int) -> Instruction | None:
        """Return the instruction that a byte belongs to; None where none does."""
        number = bisect_right(self.vaddrs, vaddr) - 1
        insn = None if number < 0 else self.instructions[self.vaddrs[number]]
        return None if insn is None or vaddr >= insn.end_vaddr else insn

    def next_stop(self, vaddr: int, holders: Holders = frozenset()) -> int:
        """Return the first instruction from one on that may matter to what holds an address; else the end.

        Such a one jumps, states an address by itself, or has a place that holds the address.
        """
        number = bisect_left(self._stops, vaddr)
        end = self._stops[number] if number < len(self._stops) else self.end_vaddr
        if not holders:
            return end
        registers = 0
        for place in holders:
            if place >= 0:
                registers |= 1 << (place & _REGISTER)
                continue
            for word in range(slot_of(place) >> 3, (slot_of(place) + 7 >> 3) + 1):
                vaddrs = self._having_slot.get(word, ())
                number = bisect_left(vaddrs, vaddr)
                end = min(end, vaddrs[number]) if number < len(vaddrs) else end
        # It is near: an index of all by their operands takes longer.
        marks = self.instructions.marks
        for number in range(bisect_left(self.vaddrs, vaddr), bisect_left(self.vaddrs, end)):
            if marks[number] & registers:
                return self.vaddrs[number]
        return end

    @cached_property
    def _having_slot(self) -> Mapping[int, Sequence[int]]:
        """The instructions that have words of the stack as an operand, by the number of each word."""
        having: dict[int, list[int]] = defaultdict(list)
        for vaddr, slot in self.slots.items():
            for key in range(slot >> 3, ((slot + self.instructions[vaddr].size_bytes - 1) >> 3) + 1):
                having[key].append(vaddr)
        return having

    @cached_property
    def ways(self) -> Mapping[int, Sequence[int]]:
        """By stop those that may be executed next, but for jumps by a table, where nothing holds an address."""
        ways: dict[int, list[int]] = {}
        for vaddr, following in zip(self._stops, [*self._stops[1:], self.end_vaddr], strict=True):
            jump = self._jumps.get(vaddr)
            ways[vaddr] = [following] if jump is None or jump.falls_through else []
            if jump is not None and jump.target in self.instructions and not jump.is_call:
                ways[vaddr].append(self.next_stop(jump.target or 0))
        return ways

    @cached_property
    def words(self) -> Mapping[int, set[int]]:
        """By register the vaddrs of the words that are loaded into it, also by way of another register."""
        words: dict[int, set[int]] = {}
        for move in self.instructions.of_kinds(_is_plain_move):
            if move.register is None:
                continue
            if move.memory is not None:
                words.setdefault(move.register, set()).add(move.memory)
            elif move.other in words:
                words.setdefault(move.register, set()).update(words[move.other])
        return words

    def before(self, vaddr: int) -> list[int]:
        """Return the instructions that may be executed before one, but for jumps by a table."""
        jumping = self._jumping.get(vaddr, [])
        number = bisect_left(self.vaddrs, vaddr) - 1
        if number < 0:
            return jumping
        jump = self._jumps.get(self.vaddrs[number])
        return [self.vaddrs[number], *jumping] if jump is None or jump.falls_through else jumping

    @cached_property
    def _jumping(self) -> Mapping[int, list[int]]:
        """By target the jumps that lead there."""
        sources: dict[int, list[int]] = defaultdict(list)
        for vaddr, jump in self._jumps.items():
            if jump.target is not None and not jump.is_call:
                sources[jump.target].append(vaddr)
        return sources

    def slot(self, insn: Instruction) -> int | None:
        """Return the stack slot that the memory of an instruction begins with; None where it is none to be followed."""
        return self.slots.get(insn.vaddr) if insn.base in self._of_stack else None

    @cached_property
    def slots(self) -> Mapping[int, int]:
        """By vaddr of an instruction the stack slot that its memory begins with, where it is one to be followed."""
        return self.stack.slots

    @cached_property
    def stack(self) -> Stack:
        """Where its stack pointer stands."""
        return Stack(self.instructions, self.function.vaddr, self._convention)

    @cached_property
    def read_slots(self) -> frozenset[int]:
        """The stack slots that the function reads: others may be arguments of what it calls."""
        # It may also take an argument from the stack that is not needed any more.
        reading = [self.instructions[vaddr] for vaddr in self.slots]
        return frozenset(
            [
                self.slots[insn.vaddr]
                for insn in reading
                if insn.access is not Access.WRITE and not insn.writes >> self._convention.stack & 1
            ]
        )

    def is_below_array(self, slot: int) -> bool:
        """Return whether a slot may be an element of an array whose end the function computes: it reads none of it."""
        ends = [place - _ARGUMENTS_BYTES for place in self.stack.places]
        return any(
            slot < end <= slot + _ARGUMENTS_BYTES and not any(slot <= one < end for one in self.read_slots)
            for end in ends
        )

    @cached_property
    def is_unoptimised(self) -> bool:
        """Whether it stores its arguments in its frame at once."""
        first, frame = [self.instructions[vaddr] for vaddr in self.vaddrs[:_FIRST]], self._convention.frame
        has_frame = any(one.register == frame and one.other == self._convention.stack for one in first)
        bases = {frame} if has_frame else self._of_stack - {RBP}
        stores = [one for one in first if one.access is Access.WRITE and one.base in bases]
        is_stored = any(one.register in self._convention.arguments for one in stores)
        return is_stored and (has_frame or self._convention is ARM64)

    @cached_property
    def taken(self) -> frozenset[int]:
        """The registers that it reads itself before it sets them: its arguments, and with `regcall` others."""
        marks = reduce(or_, self.instructions.marks, 0)
        given = {register for register in range(FLAGS) if marks >> register & 1} - {self._convention.stack}
        taken = set[int]()
        todo, seen = [(self.function.vaddr, frozenset(given))], dict[int, frozenset[int]]()
        while todo:
            vaddr, unset = todo.pop()
            vaddr = self.next_stop(vaddr, unset)
            insn, older = self.instructions.get(vaddr), seen.get(vaddr, frozenset())
            if insn is None or unset <= older | taken:
                continue
            seen[vaddr] = older | unset
            # What is kept for the caller is stored at once.
            is_kept = insn.operation is _MOVE and insn.access is Access.WRITE and insn.base in self._of_stack
            kept = {insn.register} - self._convention.not_kept if is_kept else set[int]()
            taken |= {place for place in unset - kept if insn.reads >> place & 1 or place in {insn.base, insn.scaled}}
            unset = frozenset([register for register in unset if not insn.writes >> register & 1])
            if insn.jump is not None and insn.jump.is_call:
                unset -= self._convention.not_kept
            if insn.jump is None or insn.jump.falls_through:
                todo.append((insn.end_vaddr, unset))
            if insn.jump is not None and insn.jump.target is not None and not insn.jump.is_call:
                todo.append((insn.jump.target, unset))
        return frozenset(taken)

    def is_index_added(self, insn: Instruction) -> bool:
        """Return whether an index is added to the address that an instruction states, there or soon after."""
        if insn.base is not None or insn.scaled is not None:
            return True
        first = bisect_left(self.vaddrs, insn.end_vaddr)
        for vaddr in self.vaddrs[first : first + _SOON]:
            later = self.instructions[vaddr]
            if insn.register in {later.base, later.scaled} and None not in {later.base, later.scaled}:
                return True
            if insn.register is not None and (later.reads | later.writes) >> insn.register & 1:
                # Any other instruction makes a copy, or forgets it.
                is_sum = later.operation is Operation.ADD and not later.writes_memory
                return is_sum and later.immediate is None
        return False

    def constants(self, end: Instruction, register: int, labels: Container[int]) -> frozenset[int] | None:
        """Return the numbers that a register may have before an instruction; None where one of them is not known.

        `labels` are the instructions that tables of jumps lead to.
        """
        todo, seen, constants = (
            [(earlier, register) for earlier in self.before(end.vaddr)],
            set[tuple[int, int]](),
            set[int](),
        )
        if not todo or end.vaddr in labels:
            return None
        while todo:
            vaddr, wanted = todo.pop()
            if (vaddr, wanted) in seen:
                continue
            seen.add((vaddr, wanted))
            insn = self.instructions[vaddr]
            is_call = insn.jump is not None and insn.jump.is_call
            if is_call or insn.writes >> wanted & 1:
                number = _number_of(insn) if insn.register == wanted and not is_call else None
                if number is not None:
                    constants.add(number)
                    continue
                is_copied = insn.operation is _MOVE and insn.memory is None and insn.size_bytes == 8
                if is_call or not is_copied or insn.other is None or insn.register != wanted:
                    return None
                wanted = insn.other
            before = self.before(vaddr)
            if not before or len(seen) > _MOST_STEPS_BACK or vaddr in labels:
                return None
            todo += [(earlier, wanted) for earlier in before]
        return frozenset(constants)


def _number_of(insn: Instruction) -> int | None:
    """Return the number that an instruction puts into its register, where that is known."""
    if insn.operation is _ADDRESS and insn.base is None and insn.scaled is None:
        return insn.memory
    is_number = insn.operation is _MOVE and insn.memory is None and insn.size_bytes >= 4
    return insn.immediate if is_number else None


class CodeReader:
    """Reads the functions of a file; each is decoded once.

    Attributes:
        convention: What its functions use the registers for.
        starts: The first vaddrs of the functions.
    """

    def __init__(self, image: Image, functions: Functions) -> None:
        self._image = image
        self._functions = functions
        self.starts = functions.starts
        self.convention = ARM64 if image.machine == abi.EM_AARCH64 else X86_64
        self._codes: dict[int, Code] = {}
        self._plain_by_vaddr: dict[int, Code] = {}
        self._callees: dict[int, str] = {}
        self._contracts: dict[int, str | None] = {}
        self._changed: dict[int, frozenset[int]] = {}
        self._resumed: dict[int, bool] = {}
        self._unset: dict[tuple[int, int], bool] = {}
        self._has_handlers = any(section.name.startswith(".gcc_except_table") for section in image.sections)
        self._starts = FunctionStarts(image) if self._has_handlers else None
        is_fixed = image.type == abi.ET_EXEC
        self._first = min([load.vaddr for load in image.loads], default=0) if is_fixed else 0
        self._end = max([load.vaddr + load.memory_bytes for load in image.loads], default=0) if is_fixed else 0

    def at(self, vaddr: int) -> Code | None:
        """Return the function that a vaddr lies in."""
        code = self._codes.get(vaddr)
        if code is not None:
            return code
        function = self.function_at(vaddr)
        if function is None:
            return None
        if function.vaddr not in self._codes:
            self._codes[function.vaddr] = self._code(function)
        return self._codes[function.vaddr]

    def next_function(self, vaddr: int) -> int | None:
        """Return the first vaddr of the next function behind a vaddr."""
        return self._functions.next_start(vaddr)

    def function_at(self, vaddr: int) -> Symbol | None:
        """Return the function that a vaddr lies in, as a symbol with a size."""
        function = self._functions.at(vaddr)
        if function is None or function.size_bytes > _LARGEST_FUNCTION_BYTES:
            return None
        if not function.size_bytes:
            # It ends with its section, or at the next: what follows `_init` are the entries of the PLT.
            code = [section for section in self._image.sections if section.flags & abi.SHF_EXECINSTR]
            ends = [part.vaddr + part.size_bytes for part in code if part.vaddr <= function.vaddr]
            ends.append(self.next_function(function.vaddr) or 0)
            size_bytes = min([_UNSIZED_BYTES, *[end - function.vaddr for end in ends if end > function.vaddr]])
            if vaddr >= function.vaddr + size_bytes:
                return None
            function = function._replace(size_bytes=size_bytes)
        return function

    def _code(self, function: Symbol) -> Code:
        """Read a function."""
        if self.convention is ARM64:
            meant = self._resolved(function)
            return Code(function, ListedInstructions(meant.instructions), meant.stated, ARM64, meant.lost)
        instructions = self.instructions(function.vaddr, function.size_bytes)
        stating = instructions.marked(NUMBERED if self._end else STATES)
        stated = [(address, at) for at in stating for address in self._stated(instructions[at])]
        return Code(function, instructions, stated, X86_64)

    def _plain(self, function: Symbol) -> Code:
        """Return a function, on arm64 without the addresses that its instructions mean."""
        if self.convention is X86_64:
            return self._codes.get(function.vaddr) or self._codes.setdefault(function.vaddr, self._code(function))
        plain = self._plain_by_vaddr.get(function.vaddr)
        if plain is None:
            listed = ListedInstructions(self._decoded(function.vaddr, function.size_bytes))
            plain = self._plain_by_vaddr[function.vaddr] = Code(function, listed, (), ARM64)
        return plain

    def _resolved(self, function: Symbol, *, is_part: bool = False) -> Resolved:
        """Return the instructions of a function of arm64 with what they mean.

        What was split off a function goes on with the numbers of it, and the function with those of the parts.
        """
        elsewhere: Numbers = {}
        entries = set[int]()
        for other in () if is_part else self._parts.get(function.name, ()):
            join_numbers(elsewhere, self._resolved(other, is_part=True).numbers)
            entries |= {j.target for j in self._plain(other).instructions.jumps.values() if j.target is not None}
        plain = self._plain(function)
        may_catch = self.may_catch(plain)
        instructions = [*plain.instructions]
        entries = {entry for entry in entries if entry in plain.instructions}
        resolver = AddressResolver(
            instructions, plain.slots, self.changed_by, self.is_address, elsewhere, entries, may_catch=may_catch
        )
        return resolver.resolved()

    def meant(self, start: int, size_bytes: int) -> Resolved:
        """Return the instructions of arm64 from a vaddr on, with the addresses that they mean."""
        decoded = self._decoded(start, size_bytes)
        return AddressResolver(decoded, {}, self.changed_by, self.is_address, {}, (), may_catch=False).resolved()

    @cached_property
    def _parts(self) -> Mapping[str, Sequence[Symbol]]:
        """By name of a function what was split off it, and by name of such a part what it was split off."""
        parts: dict[str, list[Symbol]] = defaultdict(list)
        names = next((s for s in self._image.sections if s.name == ".strtab" and s.has_file_bytes), None)
        if names is None or _COLD.encode() not in bytes(self._image.section_bytes(names)):
            return parts
        for part in [function for function in self._functions if _COLD in function.name]:
            parts[part.name.partition(_COLD)[0]].append(part)
        for function in self._functions:
            for name in {part.name for part in parts.get(function.name, ()) if _COLD not in function.name}:
                parts[name].append(function)
        return parts

    def instructions(self, start: int, size_bytes: int) -> Instructions | ListedInstructions:
        """Decode code from a vaddr on, as far as it can be decoded; at most that of a large function."""
        if self.convention is ARM64:
            return ListedInstructions(self.meant(start, size_bytes).instructions)
        return Instructions(self._bytes(start, size_bytes), start)

    def _decoded(self, start: int, size_bytes: int) -> list[Instruction]:
        return [*decoded(self._bytes(start, size_bytes), start)]

    def _bytes(self, start: int, size_bytes: int) -> Buffer:
        size_bytes = min(size_bytes, _LARGEST_FUNCTION_BYTES)
        for segment in self._image.loads:
            if segment.vaddr <= start and start + size_bytes <= segment.vaddr + segment.file_bytes:
                return self._image.bytes_at(segment.offset + start - segment.vaddr, size_bytes, "a function")
        return b""

    def _stated(self, insn: Instruction) -> Sequence[int]:
        """Return the addresses that an instruction states by itself; an index may count from one."""
        if not self._end:
            return () if insn.memory is None or insn.base is not None else (insn.memory,)
        stated = (
            [insn.memory] if insn.memory is not None and (insn.base is None or self.is_address(insn.memory)) else []
        )
        return [*stated, insn.immediate] if insn.immediate is not None and self.is_address(insn.immediate) else stated

    def is_address(self, number: int | None) -> bool:
        """Return whether a number is an address, in a program at a fixed address."""
        return number is not None and self._first <= number < self._end

    def may_catch(self, code: Code) -> bool:
        """Return whether a function may catch exceptions, or clean up after them."""
        return self._has_handlers and (not self._starts or self._starts.has_handlers(code.function.vaddr))

    def may_resume(self, code: Code) -> bool:
        """Return whether a function may go on a second time where it was: it calls `setjmp`, or has such a label."""
        start = code.function.vaddr
        if start not in self._resumed:
            has_label = any(vaddr != start and vaddr in code.instructions for vaddr in code.stated)
            jumps = code.instructions.jumps.items() if self._names_what_returns_twice and not has_label else ()
            calls = [code.instructions[vaddr] for vaddr, jump in jumps if jump.is_call]
            self._resumed[start] = has_label or any(
                not _RETURNING_TWICE.isdisjoint(self._names_of(call, code)) for call in calls
            )
        return self._resumed[start]

    @cached_property
    def _names_what_returns_twice(self) -> bool:
        """Whether a function that may return a second time is named anywhere; names may be ends of others."""
        tables = [s for s in self._image.sections if s.name in {".strtab", ".dynstr"} and s.has_file_bytes]
        texts = [bytes(self._image.section_bytes(table)) for table in tables]
        return not texts or any(name.encode() in text for name in _RETURNING_TWICE for text in texts)

    def _names_of(self, call: Instruction, code: Code) -> set[str]:
        """Return the names that the function has which a call leads to, as far as they are known."""
        target = None if call.jump is None else call.jump.target
        function = None if target is None else self._functions.at(target)
        names = {self._requested_names.get(word, "") for word in self._words_of(call, code)}
        return names if function is None else names | {function.name}

    def formats(self, code: Code, call: Instruction, register: int) -> list[bytes] | None:
        """Return the texts that a register may lead to at a call; None where one of them is not known."""
        places = code.constants(call, register, self._labels(code))
        texts = [self._text(vaddr) for vaddr in places or ()]
        return None if not texts or None in texts else [text for text in texts if text is not None]

    def _text(self, vaddr: int) -> bytes | None:
        """Return the text at a vaddr that the program cannot change; None where none is."""
        raw = self._constant_bytes(vaddr, _LONGEST_FORMAT_BYTES)
        text, end, _ = raw.partition(b"\0")
        return text if end else None

    def _constant_bytes(self, vaddr: int, most: int) -> bytes:
        for segment in self._image.loads:
            if segment.vaddr <= vaddr < segment.vaddr + segment.file_bytes and not segment.is_writable:
                left = min(most, segment.vaddr + segment.file_bytes - vaddr)
                return bytes(self._image.bytes_at(segment.offset + vaddr - segment.vaddr, left, "a constant"))
        return b""

    def _labels(self, code: Code) -> Container[int]:
        """Return where the tables of jumps of a function lead to: distances from a table, or vaddrs at fixed ones."""
        jumps = [jump for jump in code.instructions.jumps.items() if jump[1].target is None]
        if all(jump.is_call or jump.is_end or self.leaves_by_word(code.instructions[vaddr]) for vaddr, jump in jumps):
            return ()
        if self.convention is ARM64:
            return range(1 << 64)
        labels = set[int]()
        for table in {vaddr for vaddr in code.stated if vaddr not in code.instructions}:
            raw = self._constant_bytes(table, _LARGEST_TABLE_BYTES)
            distances = Struct(f"<{len(raw) // 4}i").unpack_from(raw)
            for targets in ((table + d for d in distances), Struct(f"<{len(raw) // 8}Q").unpack_from(raw)):
                for target in targets:
                    if target not in code.instructions and not self._is_cold(code, target):
                        break
                    labels.add(target)
        return labels or range(1 << 64)

    def _is_cold(self, code: Code, vaddr: int) -> bool:
        function = self._functions.at(vaddr)
        return function is not None and function.name == f"{code.function.name}.cold"

    def changed_by(self, call: Instruction, depth: int = 0) -> frozenset[int]:
        """Return the registers that no caller expects to find unchanged after a call.

        gcc keeps values over calls of functions of the same source file in registers that these happen not to use.
        """
        target = None if call.jump is None else call.jump.target
        if target is None and self._has_tls_calls:
            # What finds a thread-local keeps all but the result and the link register.
            return _CHANGED_BY_TLS_CALL
        if target is None:
            return self.convention.not_kept
        if depth > _MOST_CALLS_DEEP:
            return frozenset()
        if target not in self._changed:
            # What calls itself is taken to change all, as gcc takes it.
            self._changed[target] = self.convention.not_kept
            function = self.function_at(target)
            code = None if function is None else self._plain(function)
            if code is not None and code.is_whole and target == code.function.vaddr:
                self._changed[target] = self._changed_in(code, depth)
            elif self.word_at(target) is None and len(self._bytes(target, 1)):
                self._changed[target] = frozenset()
        return self._changed[target]

    @cached_property
    def _has_tls_calls(self) -> bool:
        """Whether code may call functions that find thread-locals and keep the registers that others change."""
        types = read_dynamic_symbols(self._image).relocation_types
        return self.convention is ARM64 and not types.isdisjoint(_TLS_DESCRIPTORS)

    def is_unset(self, code: Code, call: Instruction, register: int) -> bool:
        """Return whether a register is left as an earlier call leaves it, on one of the ways to an instruction.

        That of a result never is: the result may be an argument where it is.
        """
        if register in {self.convention.result, self.convention.second_result}:
            return False
        key = call.vaddr, register
        if key not in self._unset:
            self._unset[key] = self._is_left(code, call, register)
        return self._unset[key]

    def _is_left(self, code: Code, call: Instruction, register: int) -> bool:
        todo, seen = [*code.before(call.vaddr)], set[int]()
        while todo and len(seen) < _MOST_STEPS_BACK:
            vaddr = todo.pop()
            insn = code.instructions[vaddr]
            is_set = insn.writes >> register & 1 and not (insn.jump is not None and insn.jump.is_call)
            if vaddr in seen or is_set:
                continue
            seen.add(vaddr)
            if insn.jump is not None and insn.jump.is_call and register in self.changed_by(insn):
                return True
            todo += code.before(vaddr)
        return False

    def is_set_for(self, code: Code, call: Instruction, register: int) -> bool:
        """Return whether a register is set for a call alone: nothing uses it between what sets it and the call."""
        todo, seen = [*code.before(call.vaddr)], set[int]()
        while todo and len(seen) < _MOST_STEPS_BACK:
            vaddr = todo.pop()
            insn = code.instructions[vaddr]
            if vaddr in seen or insn.writes >> register & 1:
                continue
            is_copied = insn.operation is _MOVE and insn.memory is None
            if not is_copied and (insn.reads >> register & 1 or register in {insn.base, insn.scaled}):
                return False
            seen.add(vaddr)
            todo += code.before(vaddr)
        return True

    def _changed_in(self, code: Code, depth: int) -> frozenset[int]:
        written = reduce(or_, [insn.writes for insn in code.instructions.kinds.values()], 0)
        changed = {number for number in range(FLAGS + 1) if written >> number & 1}
        for vaddr, jump in code.instructions.jumps.items():
            insn = code.instructions[vaddr]
            # A table of jumps leads on within the function.
            is_table = jump.target is None and not jump.is_call and not self.leaves_by_word(insn)
            if jump.is_end or jump.target in code.instructions or is_table:
                continue
            if changed >= self.convention.not_kept:
                break
            changed |= self.changed_by(insn, depth + 1)
        return self.convention.not_kept & changed - self._restored(code)

    def _restored(self, code: Code) -> frozenset[int]:
        """Return the registers that a function puts on the stack and takes from it, as those of `preserve_most` do."""
        stack, written, saved = 1 << self.convention.stack, 0, set[int]()
        for vaddr in code.vaddrs:
            insn = code.instructions[vaddr]
            if insn.jump is not None:
                break
            is_push = insn.operation is _MOVE and insn.access is Access.WRITE and insn.writes == stack
            if is_push and insn.register in self.convention.not_kept and not written >> insn.register & 1:
                saved.add(insn.register)
            written |= insn.writes
        if not saved:
            return frozenset()
        taking = [code.instructions[vaddr] for vaddr in code.instructions.marked(stack)]
        taking = [insn for insn in taking if insn.access is _READ and insn.writes & stack]
        return frozenset([insn.register for insn in taking if insn.register in saved])

    def tests_parity(self, code: Code, insn: Instruction) -> bool:
        """Return whether the parity of a comparison, which that of an address is, may be asked for behind it."""
        todo, seen = [insn.end_vaddr], set[int]()
        while todo and self.convention is X86_64:
            vaddr = todo.pop()
            later = code.instructions.get(vaddr)
            if later is None or vaddr in seen or len(seen) > _SOON:
                continue
            seen.add(vaddr)
            if later.reads >> FLAGS & 1 and _PARITY.match(self._bytes(vaddr, later.end_vaddr - vaddr)):
                return True
            if later.writes >> FLAGS & 1:
                continue
            todo += [] if later.jump is not None and not later.jump.falls_through else [later.end_vaddr]
            todo += [] if later.jump is None or later.jump.target is None or later.jump.is_call else [later.jump.target]
        return False

    def compared_numbers(self, code: Code, insn: Instruction) -> list[frozenset[int]]:
        """Return what the operands of a comparison may be, as far as all of that is known."""
        labels = self._labels(code)
        numbers = [
            code.constants(insn, register, labels) for register in (insn.register, insn.other) if register is not None
        ]
        numbers += [] if insn.immediate is None else [frozenset({insn.immediate})]
        return [values for values in numbers if values is not None]

    def contract_of(self, insn: Instruction, code: Code) -> str | None:
        """Return what the function of a library does that a jump or call leads to, by `function_contract`.

        None where its library is not known, or the contract is not listed.
        """
        target = None if insn.jump is None else insn.jump.target
        if target is None:
            return self._contract(insn, code)
        if target not in self._contracts:
            self._contracts[target] = self._contract(insn, code)
        return self._contracts[target]

    def _contract(self, insn: Instruction, code: Code) -> str | None:
        words = self._words_of(insn, code)
        target = None if insn.jump is None else insn.jump.target
        if target is not None and not words and not self.instructions(target, 1).vaddrs:
            # In objects, a function that none of them defines.
            function = self._functions.at(target)
            return function_contract(function.name) if function is not None and is_reserved(function.name) else None
        contracts = {function_contract(self._library_names[word]) for word in words if word in self._library_names}
        is_known = len(contracts) == 1 and all(word in self._library_names for word in words)
        return contracts.pop() if is_known else None

    @staticmethod
    def leaves_by_word(insn: Instruction) -> bool:
        """Return whether the target of a jump or call is a word that its memory operand states by itself."""
        return insn.memory is not None and insn.base is None and insn.scaled is None

    def _words_of(self, insn: Instruction, code: Code) -> set[int]:
        """Return the words of the offset table by which a jump or call may leave the file."""
        target = None if insn.jump is None else insn.jump.target
        if target is not None:
            word = self.word_at(target)
            return set() if word is None else {word}
        if insn.memory is not None:
            return {insn.memory} if insn.base is None and insn.scaled is None else set()
        return code.words.get(insn.base, set()) if insn.base is not None else set()

    def word_at(self, target: int) -> int | None:
        """Return the word of the offset table by which an entry of the PLT leaves the file; None if it is none."""
        word: int | None = None
        for insn in self.instructions(target, _LONGEST_PLT_ENTRY_BYTES):
            if insn.jump is not None and not insn.jump.is_call:
                return insn.memory if insn.base is None else word
            # On arm64 a scratch register has the word. What sets others, or memory, is no entry of the PLT.
            if insn.writes & ~_PLT_BITS or insn.writes_memory:
                return None
            word = insn.memory if insn.access is _READ and insn.base is None else word
        return None

    def name_of_callee(self, insn: Instruction) -> str:
        """Return the name of the function of another file that a jump or call leads to; "" where it is not known."""
        target = None if insn.jump is None else insn.jump.target
        if target is None:
            return "" if insn.memory is None or insn.base is not None else self._requested_names.get(insn.memory, "")
        if target not in self._callees:
            # An entry of the PLT; in objects, a function that none of them defines.
            jumps = [i for i in self.instructions(target, _PLT_ENTRY_BYTES) if i.jump is not None]
            function = self._functions.at(target)
            name = "" if function is None else function.name
            self._callees[target] = self._requested_names.get(jumps[0].memory or 0, "") if jumps else name
        return self._callees[target]

    @cached_property
    def _requested_names(self) -> dict[int, str]:
        return asked_names(self._image)

    @cached_property
    def _library_names(self) -> dict[int, str]:
        """By word of the offset table the function of glibc or libstdc++ that the loader puts there."""
        return library_names(self._image, is_library_version)
