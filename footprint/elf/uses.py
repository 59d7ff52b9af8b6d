"""What code does with a variable: whether it reads it, writes it, compares its address, or hands the address on.

Each reference is followed through its function: from the instruction that computes the address of the variable along
every branch, and into the functions of the same file that it is passed to, as long as a register, or a local variable
of a function with a frame, may hold the address. Other memory is not followed: an address that is stored, returned, or
passed to another file counts as handed on, and what becomes of it is not known. Functions of the standard library that
only read what they are given are known by their names. x86-64 only.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntFlag
from functools import cached_property, reduce
from operator import or_
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.dynsym import asked_names
from footprint.elf.functions import Functions
from footprint.elf.image import Image
from footprint.elf.references import ReferencedPlace, find_references
from footprint.elf.symbols import Symbol
from footprint.elf.x86_code import Instruction, decoded

__all__ = ("Use", "find_uses")

_RAX: Final = 0
_RSP: Final = 4
_RBP: Final = 5
# rdi, rsi, rdx, rcx, r8, r9; and rbx, rsp, rbp, r12 to r15 (System V ABI, 3.2.1).
_ARGUMENTS: Final = (7, 6, 2, 1, 8, 9)
_KEPT_BY_CALLS: Final = frozenset({3, 4, 5, 12, 13, 14, 15})
_MOST_STEPS: Final = 4096
_MOST_STEPS_BACK: Final = 256
_MOST_DEPTH: Final = 16
# A function without a size is one of the start-up code.
_UNSIZED_BYTES: Final = 256
_LARGEST_FUNCTION_BYTES: Final = 1 << 20
_PLT_ENTRY_BYTES: Final = 16
_HIGHEST_LOCAL: Final = 1 << 31
# Where `push` writes to, from the stack pointer.
_PUSHED: Final = -8
# Functions of the standard libraries of C and C++ that read what they are given, and keep no address of it.
_READERS: Final = re.compile(
    r"(?:__)?(?:mem(?:cpy|move|pcpy|cmp|chr|rchr|mem)|bcmp|str(?:n?len|n?cmp|n?casecmp|n?cpy|n?cat|n?dup|coll|xfrm"
    r"|chr|rchr|str|casestr|chrnul|spn|cspn|pbrk)|stpn?cpy|wcs(?:len|cmp|cpy)|wmem(?:cpy|cmp)|(?:isoc\d+_)?strto\w+"
    r"|ato[fil]l?|f?put[sc]|fwrite|write|v?[fsd]?n?w?printf|v?snprintf|v?asprintf|(?:isoc\d+_)?v?[fs]?scanf|perror"
    r"|syslog|f?open(?:64)?|access|x?stat(?:64)?|getenv|assert_fail|err|errx|warnx?|error)(?:_chk)?\Z"
    r"|_ZS|_ZNK?S[abdiost]"
)
# Those that return a place in what they are given.
_FINDERS: Final = re.compile(r"(?:mem|str)(?:r?chr|chrnul|str|casestr|mem|pbrk)\Z")


class Use(IntFlag):
    """What code does with a variable."""

    UNUSED = 0
    """Nothing refers to it."""
    READ = 1
    """It is read, or its address is computed and nothing more."""
    COMPARED = 2
    """Its address is compared with another, or subtracted from one."""
    HANDED_ON = 4
    """Its address is stored, passed on or returned, or a reference could not be followed."""
    WRITTEN = 8
    """An instruction writes it: then nothing else is said."""


Place = int | tuple[int, int]
"""What may hold an address: a register, or a local variable, by the register and distance that it is reached with."""
Held = frozenset[Place]


def find_uses(
    image: Image,
    functions: Functions,
    places: Sequence[ReferencedPlace],
    starts: Collection[int] | None = None,
    words: Mapping[int, Collection[int]] | None = None,
) -> list[Use]:
    """Find what the code of a file does with each of some variables, which ascend.

    Args:
        image: A file for which `can_find_references` is true.
        functions: Its functions.
        places: The variables.
        starts: The first vaddrs of all variables, where an index may count from far before one.
        words: By first vaddr of a variable the addresses that it holds, where what is done with these counts, too.

    Raises:
        InputError: Where a table or segment is damaged.
    """
    reader = _CodeReader(image, functions)
    uses = []
    for place, references in zip(places, find_references(image, places, starts), strict=True):
        follower = _Follower(reader, place, (words or {}).get(place.start_vaddr, ()))
        use = Use.UNUSED
        for one in references:
            # What a table holds is read from there.
            use |= follower.use_of(one.vaddr) if one.vaddr else Use.READ | Use.HANDED_ON
            if Use.WRITTEN in use:
                use = Use.WRITTEN
                break
        uses.append(use)
    return uses


class _Code:
    """The instructions of a function, which ascend.

    Attributes:
        function: The function.
        instructions: Its instructions by their vaddrs, as far as they could be decoded.
        vaddrs: Their vaddrs.
        end_vaddr: The end of them.
        frame: The register that local variables are reached with.
        lowest_local: The lowest distance from it whose address the function computes: what lies above may be a part
            of something larger.
    """

    def __init__(self, reader: "_CodeReader", function: Symbol, found: Sequence[Instruction]) -> None:
        self.function = function
        self.instructions = {one.vaddr: one for one in found}
        self.vaddrs = tuple(self.instructions)
        self.end_vaddr = found[-1].end_vaddr if found else function.vaddr
        addresses = {one.vaddr: vaddr for one in found if (vaddr := reader.address_of(one)) is not None}
        self._addresses = sorted([(address, vaddr) for vaddr, address in addresses.items()])
        self._stops = [
            one.vaddr
            for one in found
            if one.jump is not None or one.vaddr in addresses or reader.is_address(one.immediate)
        ]
        self.frame, self.lowest_local = _locals(found)

    def computing(self, low: int, high: int) -> list[int]:
        """Return the instructions that compute or load an address by themselves, from `low` to `high`."""
        first = bisect_left(self._addresses, (low, 0))
        return [vaddr for _, vaddr in self._addresses[first : bisect_left(self._addresses, (high + 1, 0))]]

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
        for one in self.instructions.values():
            for register in (one.register, one.other, one.base, one.scaled):
                if register is not None:
                    having[register].append(one.vaddr)
            if (local := _local(self, one)) is not None:
                having[local].append(one.vaddr)
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
        """By register the vaddrs of the words that are loaded into it."""
        return _words(self.instructions.values())

    @cached_property
    def before(self) -> Mapping[int, Sequence[int]]:
        """By vaddr of an instruction those that may be executed before it, but for jumps by a table."""
        return _before(self.instructions)


def _locals(instructions: Iterable[Instruction]) -> tuple[int, int]:
    """Return the register that local variables are reached with, and the lowest distance whose address code has."""
    lowest, is_used, frame = {_RSP: _HIGHEST_LOCAL, _RBP: _HIGHEST_LOCAL}, False, _RSP
    for one in instructions:
        if one.copies and one.other == _RSP:
            frame, lowest[_RSP] = (_RBP, 0) if one.register == _RBP else (frame, 0)
        elif one.is_address and one.memory is not None and one.base in lowest:
            lowest[one.base] = min(lowest[one.base], one.memory)
        elif one.base == _RSP:
            # What is pushed in between moves all others.
            is_pushed = one.memory == _PUSHED
            lowest[_RSP] = 0 if is_pushed and is_used else lowest[_RSP]
            is_used |= not is_pushed
    return frame, lowest[frame]


def _words(instructions: Iterable[Instruction]) -> dict[int, set[int]]:
    """Return by register the vaddrs of the words that are loaded into it, also by way of another register."""
    words: dict[int, set[int]] = {}
    for one in instructions:
        if one.register is None or not one.copies or one.writes_memory or one.is_address:
            continue
        if one.memory is not None and {one.base, one.scaled} == {None}:
            words.setdefault(one.register, set()).add(one.memory)
        elif one.memory is None and one.other in words:
            words.setdefault(one.register, set()).update(words[one.other])
    return words


def _before(instructions: Mapping[int, Instruction]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for vaddr, one in instructions.items():
        if one.jump is None or one.jump.falls_through:
            found.setdefault(one.end_vaddr, []).append(vaddr)
        if one.jump is not None and one.jump.target in instructions and not one.jump.is_call:
            found.setdefault(one.jump.target or 0, []).append(vaddr)
    return found


class _CodeReader:
    """Reads functions; each is decoded once."""

    def __init__(self, image: Image, functions: Functions) -> None:
        self._image = image
        self._functions = functions
        self._known: dict[int, _Code] = {}
        self._callees: dict[int, str] = {}
        self.is_fixed = image.type == abi.ET_EXEC

    def at(self, vaddr: int) -> _Code | None:
        """Return the function that a vaddr lies in."""
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
        return _Code(self, function, [*self._instructions(function.vaddr, function.size_bytes)])

    def _instructions(self, start: int, size_bytes: int) -> Iterator[Instruction]:
        for segment in self._image.loads:
            if segment.vaddr <= start and start + size_bytes <= segment.vaddr + segment.file_bytes:
                raw = self._image.bytes_at(segment.offset + start - segment.vaddr, size_bytes, "a function")
                yield from decoded(raw, start)

    def address_of(self, one: Instruction) -> int | None:
        """Return the vaddr that an instruction puts into its register by itself; None where it does not."""
        if one.is_address and one.base is None and one.scaled is None:
            return one.memory
        is_number = self.is_fixed and one.copies and one.overwrites and one.other is None and one.memory is None
        return one.immediate if is_number else None

    def is_address(self, number: int | None) -> bool:
        """Return whether a number is an address, in a program at a fixed address."""
        if not self.is_fixed or number is None:
            return False
        return any(one.vaddr <= number < one.vaddr + one.memory_bytes for one in self._image.loads)

    def name_of_callee(self, one: Instruction, code: _Code) -> str:
        """Return the name of the function of another file that a jump or call leads to; "" where it is not known."""
        target = None if one.jump is None else one.jump.target
        if target is None:
            words = set() if one.memory is None or one.base is not None else {one.memory}
            if one.memory is None and one.base is not None:
                words = code.words.get(one.base, set())
            names = {self._asked.get(word, "") for word in words}
            return names.pop() if len(names) == 1 else ""
        if target not in self._callees:
            # An entry of the PLT; in objects, a function that none of them defines.
            jumps = [each for each in self._instructions(target, _PLT_ENTRY_BYTES) if each.jump is not None]
            function = self._functions.at(target)
            name = "" if function is None else function.name
            self._callees[target] = self._asked.get(jumps[0].memory or 0, "") if jumps else name
        return self._callees[target]

    @cached_property
    def _asked(self) -> dict[int, str]:
        return asked_names(self._image)


class _Result(NamedTuple):
    """What becomes of an address in a function, and whether the function may return it."""

    use: Use
    is_returned: bool


_NOTHING: Final = _Result(Use.UNUSED, is_returned=False)


class _Follower:
    """Follows the address of one variable through functions.

    Args:
        reader: Reads the functions.
        place: The variable.
        words: The addresses that it holds, where these count.
    """

    def __init__(self, reader: _CodeReader, place: ReferencedPlace, words: Collection[int] = ()) -> None:
        self._reader = reader
        self._words = words
        self._registers_of_words: set[tuple[int, int | None]] = set()
        self._low, self._high = place.start_vaddr - place.before_bytes, place.end_vaddr + place.after_bytes
        # The end of a loop may be the begin of the next variable.
        self._end = place.end_vaddr
        self._results: dict[tuple[int, Held], _Result] = {}
        self._visited: set[int] = set()

    def use_of(self, vaddr: int) -> Use:
        """Return what the reference at a vaddr of code does with the variable."""
        code = self._reader.at(vaddr)
        if code is None or vaddr >= code.end_vaddr:
            return Use.HANDED_ON
        found = code.instructions[code.vaddrs[bisect_right(code.vaddrs, vaddr) - 1]]
        if found.memory is not None and self._low <= found.memory < self._high:
            if found.writes_memory:
                return Use.WRITTEN
            return self._use_of_address(code, found) if found.is_address else Use.READ | self._use_of_word(code, found)
        if found.immediate is not None and self._low <= found.immediate < self._high:
            if found.compares or found.subtracts:
                return Use.COMPARED
            return self._use_of_address(code, found)
        if found.memory is not None and not {found.base, found.scaled} <= {None}:
            # `days[year - 1900]` in a program at a fixed address: another variable may be meant, or this one.
            if found.writes_memory or found.is_address:
                return Use.HANDED_ON
            return Use.READ | self._use_of_word(code, found)
        # The bytes of the reference are a part of something else.
        return Use.UNUSED

    def _use_of_address(self, code: _Code, found: Instruction) -> Use:
        """Return what becomes of the address that an instruction computes."""
        holder = _local(code, found) if found.writes_memory else found.register
        if holder is None:
            return Use.HANDED_ON
        count = len(code.computing(self._low, self._end))
        result = _NOTHING
        if count > 1:
            # Its begin and its end, which a loop compares: both are to be known.
            result = self._kept(code, code.function.vaddr, frozenset(), is_whole=True)
        if count <= 1 or found.vaddr not in self._visited:
            one = self._kept(code, found.end_vaddr, frozenset({holder}))
            result = _Result(result.use | one.use, result.is_returned or one.is_returned)
        return result.use | (Use.HANDED_ON if result.is_returned else Use.UNUSED) or Use.READ

    def _use_of_word(self, code: _Code, one: Instruction) -> Use:
        """Return what becomes of a word that an instruction reads, where words are addresses."""
        if not self._words or not one.is_wide or one.register is None:
            return Use.UNUSED
        if one.compares:
            return Use.COMPARED if one.immediate is None else Use.UNUSED
        if not one.copies:
            return Use.UNUSED
        self._registers_of_words.add((code.function.vaddr, one.register))
        follower = _Follower(self._reader, ReferencedPlace(0, 0, is_code=False))
        result = follower._follow(code, one.end_vaddr, frozenset({one.register}))
        # What it leads to may be read, written or called.
        return result.use & (Use.COMPARED | Use.HANDED_ON) | (Use.HANDED_ON if result.is_returned else Use.UNUSED)

    def _kept(self, code: _Code, start: int, held: Held, *, is_whole: bool = False, depth: int = 0) -> _Result:
        """Follow what holds the address, from an instruction on; once for each instruction."""
        key = start, held
        if key not in self._results:
            self._results[key] = _NOTHING
            self._results[key] = self._follow(code, start, held, is_whole=is_whole, depth=depth)
        return self._results[key]

    def _follow(self, code: _Code, start: int, first: Held, *, is_whole: bool = False, depth: int = 0) -> _Result:
        """Follow what holds the address, from an instruction on; `is_whole`: also where nothing holds it."""
        todo: list[tuple[int, Held]] = [(start, first)]
        seen: set[tuple[int, Held]] = set()
        passed: set[int] = set()
        use, is_returned = Use.UNUSED, False
        while todo:
            vaddr, held = todo.pop()
            if not held:
                todo += self._begins(code, vaddr, passed) if is_whole else ()
                continue
            if vaddr in code.instructions:
                vaddr = code.next_stop(vaddr, held)
            if (vaddr, held) in seen:
                continue
            seen.add((vaddr, held))
            self._visited.add(vaddr)
            one = code.instructions.get(vaddr)
            if one is None or len(seen) > _MOST_STEPS:
                # Behind the last instruction of a function a call does not return.
                is_end = vaddr == code.function.vaddr + code.function.size_bytes
                use |= Use.UNUSED if is_end else Use.HANDED_ON
                continue
            use |= self._use_at(one, held, code)
            if Use.WRITTEN in use:
                return _Result(Use.WRITTEN, is_returned=False)
            if one.jump is None:
                todo.append((one.end_vaddr, self._held_after(one, held, code)))
                continue
            if one.jump.target in code.instructions and not one.jump.is_call:
                todo.append((one.jump.target or 0, held))
            else:
                result = self._leave(one, held, code, depth)
                use |= result.use
                is_returned |= result.is_returned and not one.jump.is_call
                held = _held_after_call(held, result) if one.jump.is_call else held
            if one.jump.falls_through:
                todo.append((one.end_vaddr, held))
        return _Result(use, is_returned)

    def _begins(self, code: _Code, start: int, passed: set[int]) -> Iterator[tuple[int, Held]]:
        """Find where code from an instruction on comes to hold the address, but for the ways that were passed."""
        own = frozenset(code.computing(self._low, self._end))
        todo = [code.next_stop(start)]
        while todo:
            vaddr = todo.pop()
            if vaddr in passed or vaddr not in code.ways:
                continue
            passed.add(vaddr)
            if vaddr in own:
                self._visited.add(vaddr)
                one = code.instructions[vaddr]
                yield one.end_vaddr, self._held_after(one, frozenset(), code)
            else:
                todo += code.ways[vaddr]

    def _is_address(self, number: int | None) -> bool:
        """Return whether a number is the address of something else, in a program at a fixed address."""
        return number is not None and not self._low <= number <= self._end and self._reader.is_address(number)

    def _use_at(self, one: Instruction, held: Held, code: _Code) -> Use:
        """Return what an instruction does with the address that is held, and with the words that lie there."""
        use = _use_by(one, held, code)
        if one.register in held and (one.compares or one.subtracts) and self._is_address(one.immediate):
            use |= Use.COMPARED
        if self._words and not one.is_address and held.intersection((one.base, one.scaled)):
            use |= self._use_of_word(code, one)
        return use

    def _leave(self, one: Instruction, held: Held, code: _Code, depth: int) -> _Result:
        """Return what a call, a return, or a jump to another function does with what is held."""
        if one.jump is None or one.jump.is_end:
            return _Result(Use.UNUSED, is_returned=_RAX in held)
        target, passed = one.jump.target, _passed(one, held, code)
        is_of_word = one.memory is not None and {one.base, one.scaled} == {None}
        if target is None and not one.jump.is_call and not is_of_word:
            # A register or a table holds the target: it may lead to a part of the function.
            return _Result(Use.HANDED_ON if held else Use.UNUSED, is_returned=False)
        if not passed:
            return _NOTHING
        is_word = bool(held.intersection((one.base, one.scaled))) and one.memory is not None
        is_word |= one.memory is None and (code.function.vaddr, one.base) in self._registers_of_words
        targets = [target] if target is not None else [*self._words] if is_word else []
        callees = {
            each: callee for each in targets if (callee := self._reader.at(each)) and each in callee.instructions
        }
        if targets and len(callees) == len(targets) and depth < _MOST_DEPTH:
            results = [self._kept(callee, each, passed, depth=depth + 1) for each, callee in callees.items()]
            use, is_returned = reduce(or_, [one.use for one in results]), any(one.is_returned for one in results)
            # What keeps an address and returns one may return that of another copy: the caller can tell them apart.
            return _Result(use | Use.COMPARED if is_returned and Use.HANDED_ON in use else use, is_returned)
        name = self._reader.name_of_callee(one, code)
        if _READERS.match(name) is None:
            return _Result(Use.HANDED_ON, is_returned=False)
        return _Result(Use.READ, is_returned=_FINDERS.match(name) is not None)

    def _held_after(self, one: Instruction, held: Held, code: _Code) -> Held:
        """Return what may hold the address after an instruction."""
        if one.compares or not (held or one.is_address or one.copies):
            return held
        local = None if one.is_address else _local(code, one)
        if one.writes_memory:
            if local is None or not one.copies:
                return held
            return held | {local} if one.register in held else held - {local}
        if one.register is None or (one.overwrites and one.other == one.register):
            return held - {one.register}
        is_computed = one.is_address and bool(held.intersection((one.base, one.scaled)))
        vaddr = self._reader.address_of(one)
        is_own = vaddr is not None and self._low <= vaddr <= self._end
        if one.other in held or local in held or is_computed or is_own:
            return held | {one.register}
        return held - {one.register} if one.overwrites else held


def _passed(one: Instruction, held: Held, code: _Code) -> Held:
    """Return the registers that are held and may be arguments of a call, or of a jump to another function."""
    # The register that holds the target is no argument.
    passed = held.intersection(_ARGUMENTS) - ({one.base} if one.memory is None else set())
    for number, register in enumerate(_ARGUMENTS):
        if passed <= set(_ARGUMENTS[:number]):
            break
        if _is_clobbered(one, register, code):
            # Arguments are passed in order: there are no more of them.
            return passed.intersection(_ARGUMENTS[:number])
    return passed


def _is_clobbered(one: Instruction, register: int, code: _Code) -> bool:
    """Return whether a register is left as an earlier call leaves it, on one of the ways to an instruction."""
    todo, seen = [*code.before.get(one.vaddr, ())], set[int]()
    while todo and len(seen) < _MOST_STEPS_BACK:
        vaddr = todo.pop()
        before = code.instructions[vaddr]
        if vaddr in seen or (before.register == register and not before.compares and not before.writes_memory):
            continue
        seen.add(vaddr)
        if before.jump is not None and before.jump.is_call:
            return True
        todo += code.before.get(vaddr, ())
    return False


def _held_after_call(held: Held, result: _Result) -> Held:
    kept = frozenset([place for place in held if not isinstance(place, int) or place in _KEPT_BY_CALLS])
    return kept | {_RAX} if result.is_returned else kept


def _local(code: _Code, one: Instruction) -> Place | None:
    """Return the local variable that is the memory of an instruction; None where it is none that can be followed.

    A local variable whose address the function computes may be a part of what lies there.
    """
    if one.memory is None or one.base != code.frame or one.scaled is not None:
        return None
    is_local = one.memory < code.lowest_local and (code.frame == _RBP or one.memory >= 0)
    return (code.frame, one.memory) if is_local else None


def _use_by(one: Instruction, held: Held, code: _Code) -> Use:
    """Return what an instruction by itself does with the address that is held."""
    is_base = bool(held.intersection((one.base, one.scaled)))
    if is_base and one.writes_memory:
        return Use.WRITTEN
    use = Use.READ if is_base and not one.is_address else Use.UNUSED
    local = None if one.is_address else _local(code, one)
    second = one.other if one.memory is None else local
    if one.compares:
        # One with itself is a test for zero; two addresses in one variable are a test for its end.
        is_compared = one.is_wide and one.immediate is None and (one.register in held) != (second in held)
        # A part of the stack that cannot be followed may hold the end of the variable.
        is_of_stack = one.memory is not None and one.base == _RSP and local is None
        return use | (Use.HANDED_ON if is_of_stack else Use.COMPARED) if is_compared else use
    if one.subtracts:
        is_compared = one.is_wide and one.immediate is None and second in held and one.register not in held
        return use | (Use.COMPARED if is_compared else Use.UNUSED)
    is_stored = one.copies and one.writes_memory and one.register in held and local is None
    is_in_vector = one.copies and one.register is None and one.other in held
    is_pushed = local in held and one.register is None and not one.writes_memory and one.jump is None
    return use | Use.HANDED_ON if is_stored or is_in_vector or is_pushed else use
