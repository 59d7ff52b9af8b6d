"""Which addresses the instructions of an arm64 function mean: an address takes several, which may stand far apart.

`adrp` makes the address of a page, others add to it. gcc also adds to the address of one variable to reach another
(`-fsection-anchors`). So the numbers that registers and stack slots hold are followed through the function, along all
ways. Where they are certain, an instruction is replaced by one that states the address by itself. Elsewhere it only may
mean some addresses.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from footprint.elf.arm64_code import PAGE_BYTES
from footprint.elf.instruction import ARM64, Access, Instruction, Jump, Operation
from footprint.members import NamedTuple

_Number = tuple[int, int]
"""A number, and where it comes from: four times a vaddr, and the marks below.

It stays the same where a constant is added to a register.
"""
_SEVERAL: Final = 1
"""It comes from an instruction that adds to one of several numbers."""
_INDEXED: Final = 2
"""An index was added, too."""
_Value = _Number | frozenset[_Number]
"""What a register or slot holds: one number for certain, or maybe one of several, or that and an index."""
Numbers = dict[int, _Value]
"""By register, or stack slot (negative), what it holds."""

# Added to addresses, to tell them from other numbers.
_ADDRESS: Final = 1 << 62
_LOWEST_ADDRESS: Final = 1 << 61
_MOST_NUMBERS: Final = 64
_MOST_OF_ONE: Final = 4
_MOST_INDEX: Final = 1 << 31
_WORD_BYTES: Final = 8
# What the linker's stubs change.
_CHANGED_BY_CALLS: Final = frozenset({16, 17, 30})
_OF_STACK: Final = frozenset({ARM64.stack, ARM64.frame})
_BY_REGISTER: Final = Jump(None, falls_through=False)
_MOST_ROUNDS: Final = 8


class _TooManyError(Exception):
    """A register may hold more addresses than are followed."""


class Lost(NamedTuple):
    """An address from where other variables may be reached in ways that are not followed.

    Attributes:
        address: The address.
        vaddr: The instruction.
        base: The address that an index and a number were added to, if it is only lost outside of that variable: the
            number may reach another one, or be a part of the index.
    """

    address: int
    vaddr: int
    base: int | None = None


class Resolved(NamedTuple):
    """The instructions of a function, with the addresses that they mean.

    Attributes:
        instructions: The instructions; what is certain to mean one address states it by itself.
        stated: The addresses that instructions mean, or may mean, each with the vaddr of one.
        lost: Addresses that an instruction leads to which is not sure to mean them.
        numbers: By register or slot all addresses that it ever holds.
    """

    instructions: list[Instruction]
    stated: list[tuple[int, int]]
    lost: list[Lost]
    numbers: Numbers

    @property
    def addresses(self) -> set[int]:
        """All addresses that a register or slot ever holds."""
        return {number - _ADDRESS for value in self.numbers.values() for number, _ in _several(value)}


class AddressResolver:
    """Finds the addresses that the instructions of a function mean: follows the numbers of the function through it.

    Args:
        instructions: The instructions, ascending, each behind the other.
        slots: By vaddr of an instruction the stack slot that its memory is.
        changed_by: Returns the registers that a call may change.
        is_address: Returns whether a number is an address, in a program at a fixed address.
        elsewhere: What registers hold in other parts of the function.
        entries: Where other parts lead to.
        may_catch: Whether what is called may throw, and this function goes on.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        slots: Mapping[int, int],
        changed_by: Callable[[Instruction], Collection[int]],
        is_address: Callable[[int], bool],
        elsewhere: Numbers,
        entries: Collection[int],
        *,
        may_catch: bool,
    ) -> None:
        self._all = instructions
        self._vaddrs = [instruction.vaddr for instruction in instructions]
        self._slots = slots
        self._changed_by = changed_by
        self._is_address = is_address
        self._ever: Numbers = {}
        join_numbers(self._ever, _doubtful(elsewhere))
        self._lost = set[Lost]()
        jumps = [(instruction.jump, instruction.base) for instruction in instructions if instruction.jump is not None]
        targets = {jump.target for jump, _ in jumps if not jump.is_call}
        # By the registers of the linker other functions are reached, and no tables.
        has_tables = any(jump == _BY_REGISTER and base not in _CHANGED_BY_CALLS for jump, base in jumps)
        # A handler, or a label of a table, may stand behind a call that does not return. An address by which another
        # variable is reached is the same on all ways there; if one holds the address of a variable, it is not followed
        # on such a way, but objected to.
        behind_calls = {i.end_vaddr for i in instructions[:-1] if i.jump is not None and i.jump.is_call}
        self._doubted = behind_calls if has_tables or may_catch else set[int]()
        self._entries = frozenset(entries)
        self._starts = {vaddr for vaddr in self._vaddrs if vaddr in targets} | self._doubted | self._entries
        self._at: dict[int, Numbers] = {}

    def resolved(self) -> Resolved:
        """Return what was found."""
        if not self._all:
            return Resolved([], [], [], {})
        with suppress(_TooManyError):
            for _ in range(_MOST_ROUNDS):
                # What is ever held may grow, and then all is to be gone through again.
                before = {**self._ever}
                self._walk_all()
                if before == self._ever:
                    return self._result()
        # That is too much to follow: it may mean all that is near.
        lost = [
            Lost(number, insn.vaddr)
            for insn in self._all
            if (number := insn.memory if insn.immediate is None else insn.immediate) is not None
            and (insn.scale == PAGE_BYTES or insn.base is None)
        ]
        return Resolved([], [], lost, self._ever)

    def _walk_all(self) -> None:
        self._at = {vaddr: {**self._ever} for vaddr in self._entries}
        self._at.setdefault(self._vaddrs[0], {})
        self._walk([*self._at])
        for number, vaddr in enumerate(self._vaddrs):
            jump = self._all[number - 1].jump if number else None
            if jump is not None and not jump.falls_through and vaddr not in self._at:
                # Only a table of jumps or a handler leads there.
                self._at[vaddr] = {**self._ever}
                self._walk([vaddr])

    def _walk(self, todo: list[int]) -> None:
        """Follow the numbers from some instructions on, until nothing changes."""
        while todo:
            number = bisect_left(self._vaddrs, todo.pop())
            numbers = {**self._at[self._vaddrs[number]]}
            while number < len(self._all):
                insn = self._all[number]
                jump = insn.jump
                self._execute(insn, numbers)
                if jump is not None and jump.target in self._starts and not jump.is_call:
                    self._reach(jump.target or 0, numbers, todo)
                if jump is not None and not jump.falls_through:
                    break
                number += 1
                if number < len(self._all) and self._vaddrs[number] in self._starts:
                    self._reach(self._vaddrs[number], numbers, todo)
                    break

    def _reach(self, vaddr: int, numbers: Numbers, todo: list[int]) -> None:
        before, numbers = self._at.get(vaddr), {**numbers}
        if vaddr in self._doubted:
            join_numbers(numbers, self._ever)
        if before is None:
            self._at[vaddr] = numbers
            todo.append(vaddr)
        elif join_numbers(before, numbers, is_way=True):
            todo.append(vaddr)

    def _execute(self, insn: Instruction, numbers: Numbers) -> None:
        """Change the numbers as an instruction does."""
        if insn.jump is not None:
            self._jump(insn, numbers)
        slot = self._slots.get(insn.vaddr)
        if slot is not None and insn.access in {Access.WRITE, Access.CHANGE}:
            value = self._get(insn.register, numbers) if _is_moved(insn) else None
            for place in range(slot - _WORD_BYTES + 1, slot + insn.size_bytes):
                numbers.pop(place, None)
            self._set(slot, value, numbers)
        if insn.writes:
            value = (
                None if insn.register is None or not insn.writes >> insn.register & 1 else self._value(insn, numbers)
            )
            if numbers:
                for register in [place for place in numbers if place >= 0 and insn.writes >> place & 1]:
                    del numbers[register]
            self._set(insn.register, value, numbers)

    def _set(self, place: int | None, value: _Value | None, numbers: Numbers) -> None:
        if place is not None and value:
            numbers[place] = value
            addresses = frozenset([pair for pair in _several(value) if pair[0] > _LOWEST_ADDRESS])
            if addresses:
                join_numbers(self._ever, {place: addresses})

    def _jump(self, insn: Instruction, numbers: Numbers) -> None:
        if insn.jump is None:
            return
        if insn.jump.is_call:
            changed = {*self._changed_by(insn), *_CHANGED_BY_CALLS}
            for register in [place for place in numbers if place in changed]:
                del numbers[register]

    def _get(self, place: int | None, numbers: Numbers) -> _Value | None:
        return None if place is None else numbers.get(place)

    def _value(self, insn: Instruction, numbers: Numbers) -> _Value | None:
        """Return the number that an instruction puts into its register."""
        operation = insn.operation
        if operation is Operation.ADDRESS:
            return self._sum(insn, numbers) if insn.size_bytes == _WORD_BYTES else None
        if operation is Operation.MOVE_IF:
            return _union(self._get(insn.register, numbers), self._get(insn.other, numbers))
        if operation is Operation.MOVE and insn.memory is None:
            if insn.immediate is None:
                return self._get(insn.other, numbers) if insn.size_bytes == _WORD_BYTES else None
            return self._number(insn.immediate, insn, is_page=insn.scale == PAGE_BYTES)
        if operation is Operation.MOVE:
            return self._get(self._slots.get(insn.vaddr), numbers) if insn.size_bytes == _WORD_BYTES else None
        if operation is Operation.SUBTRACT or operation is Operation.ADD:
            return _moved(self._get(insn.register, numbers), 0, insn.vaddr, is_indexed=True)
        if operation is Operation.OTHER and insn.immediate is not None:
            # `movk` sets two bytes of a number.
            value = self._get(insn.register, numbers)
            if value is not None and not isinstance(value, frozenset):
                number = value[0] - _ADDRESS if value[0] > _LOWEST_ADDRESS else value[0]
                return self._number(number & ~(0xFFFF * insn.scale) | insn.immediate, insn)
        return None

    def _number(self, number: int, insn: Instruction, *, is_page: bool = False) -> _Value:
        return number + (_ADDRESS if is_page or self._is_address(number) else 0), insn.vaddr << 2

    def _sum(self, insn: Instruction, numbers: Numbers) -> _Value | None:
        """Return the address that the memory operand of an instruction states."""
        memory = insn.memory or 0
        base, scaled = self._get(insn.base, numbers), self._get(insn.scaled, numbers)
        if insn.base is None:
            return None if insn.scaled is not None else (memory + _ADDRESS, insn.vaddr << 2)
        is_same = insn.base == insn.register and insn.operation is Operation.ADDRESS
        origin = None if is_same else insn.vaddr
        if insn.scaled is None:
            return _moved(base, memory, origin)
        if isinstance(base, tuple) and isinstance(scaled, tuple):
            index, number = scaled[0] * abs(insn.scale), base[0]
            if insn.scale and 0 <= scaled[0] < _MOST_INDEX:
                return _moved(base, memory + index, insn.vaddr)
            if insn.scale == 1 and 0 <= number < _MOST_INDEX:
                return _moved(scaled, memory + number, insn.vaddr)
        moved = _moved(base, memory, origin, is_indexed=True)
        return _union(moved, _moved(scaled, memory, insn.vaddr, is_indexed=True)) if insn.scale == 1 else moved

    def _result(self) -> Resolved:
        """Go through the function once more, and state what each instruction means."""
        resolved, stated = list[Instruction](), list[tuple[int, int]]()
        self._lost.clear()
        numbers: Numbers = {}
        has_reloads = any(
            insn.base in _OF_STACK and insn.access is Access.READ and insn.size_bytes >= _WORD_BYTES
            and insn.vaddr not in self._slots
            for insn in self._all
        )  # fmt: skip
        for insn in self._all:
            if insn.vaddr in self._at:
                numbers = {**self._at[insn.vaddr]}
            meant = self._meant(insn, numbers)
            self._lose(insn, numbers, has_reloads=has_reloads)
            if meant is not None and not isinstance(meant, frozenset):
                number = meant[0] - _ADDRESS
                stated.append((number, insn.vaddr))
                operation = Operation.ADDRESS if insn.access is Access.NONE else insn.operation
                reads = 0 if insn.access is Access.NONE else insn.reads
                resolved.append(
                    insn._replace(
                        operation=operation, memory=number, base=None, scaled=None, scale=1, immediate=None, reads=reads
                    )
                )
            else:
                resolved.append(insn)
                stated += {(number - _ADDRESS, insn.vaddr) for number, _ in meant or ()}
            self._execute(insn, numbers)
            if insn.jump is not None and not insn.jump.falls_through:
                numbers = {}
        return Resolved(resolved, stated, [*self._lost], self._ever)

    def _meant(self, insn: Instruction, numbers: Numbers) -> _Value | None:
        """Return the addresses that an instruction means by itself."""
        value: _Value | None = None
        if insn.memory is not None and insn.vaddr not in self._slots:
            value = self._sum(insn, numbers)
        elif insn.immediate is not None and insn.register is not None and insn.scale != PAGE_BYTES:
            is_number = insn.operation is Operation.MOVE or (insn.operation is Operation.OTHER and insn.memory is None)
            value = self._value(insn, numbers) if is_number else None
        if value is None or isinstance(value, frozenset):
            return value and frozenset([pair for pair in value if pair[0] > _LOWEST_ADDRESS])
        return value if value[0] > _LOWEST_ADDRESS else None

    def _lose(self, insn: Instruction, numbers: Numbers, *, has_reloads: bool) -> None:
        """Keep the addresses that compilers may get back from where nobody looks, and add to.

        These are vector registers, and the part of the stack that is not followed. What else is made of an address is
        no way to other variables: only the source does so.
        """
        if insn.memory and insn.base is not None:
            for number, origin in _several(self._get(insn.base, numbers)):
                if origin & _INDEXED and number > _LOWEST_ADDRESS:
                    self._lost.add(Lost(number + insn.memory - _ADDRESS, insn.vaddr, number - _ADDRESS))
        places: Iterable[int | None] = ()
        if insn.reads and not insn.writes and insn.operation is Operation.OTHER and insn.size_bytes == _WORD_BYTES:
            places = [place for place in numbers if place >= 0 and insn.reads >> place & 1 and insn.jump is None]
        elif _is_moved(insn) and insn.base in _OF_STACK and insn.vaddr not in self._slots and has_reloads:
            places = [insn.register]
        for place in places:
            for number, _ in _several(self._get(place, numbers)):
                if number > _LOWEST_ADDRESS:
                    self._lost.add(Lost(number - _ADDRESS, insn.vaddr))


def _is_moved(insn: Instruction) -> bool:
    """Return whether an instruction stores a whole register."""
    return insn.operation is Operation.MOVE and insn.access is Access.WRITE and insn.size_bytes == _WORD_BYTES


def _several(value: _Value | None) -> Collection[_Number]:
    return () if value is None else value if isinstance(value, frozenset) else (value,)


def _doubtful(numbers: Numbers) -> Numbers:
    """Return the addresses of some places as what these may hold."""
    limits = {place: _limited(_several(value)) for place, value in numbers.items()}
    return {place: value for place, value in limits.items() if value}


def _union(first: _Value | None, second: _Value | None) -> _Value | None:
    """Return what one of two ways leaves."""
    if first == second or (isinstance(first, tuple) and isinstance(second, tuple) and first[0] == second[0]):
        return first
    return _limited([*sorted(_several(first)), *sorted(_several(second))])


def _moved(value: _Value | None, distance: int, vaddr: int | None, *, is_indexed: bool = False) -> _Value | None:
    """Return a value with a number added, or an index, by an instruction; without its vaddr in place."""
    if isinstance(value, tuple):
        number, origin = value[0] + distance, value[1] if vaddr is None else vaddr << 2
        return _limited([(number, origin | _INDEXED)]) if is_indexed else (number, origin)
    kind = _INDEXED if is_indexed else 0
    return _limited(
        [
            (number + distance, origin | kind if vaddr is None else vaddr << 2 | origin & _INDEXED | kind | _SEVERAL)
            for number, origin in sorted(_several(value))
        ]
    )


def _limited(numbers: Iterable[_Number]) -> frozenset[_Number] | None:
    """Return the addresses among some numbers.

    Of those with one origin only the first stays: the others are what a loop makes of it.
    """
    addresses = set[_Number]()
    counts: dict[int, int] = {}
    for number, origin in numbers:
        count = counts.get(origin, 0)
        if (
            number > _LOWEST_ADDRESS
            and count < (_MOST_OF_ONE if origin & _SEVERAL else 1)
            and (number, origin) not in addresses
        ):
            counts[origin] = count + 1
            addresses.add((number, origin))
    if len(addresses) > _MOST_NUMBERS:
        raise _TooManyError
    return frozenset(addresses) or None


def join_numbers(target: Numbers, numbers: Numbers, *, is_way: bool = False) -> bool:
    """Add what may be held; return whether that is new. Of a way, what only one of both has is not certain any more."""
    is_new = False
    for place in (target.keys() | numbers.keys()) if is_way else numbers.keys():
        before, other = target.get(place), numbers.get(place)
        if not is_way and isinstance(before, tuple) and all(number == before[0] for number, _ in _several(other)):
            continue
        after = _union(before, other) if before != other else before
        if after == before:
            continue
        is_new = True
        if after is None:
            del target[place]
        else:
            target[place] = after
    return is_new
