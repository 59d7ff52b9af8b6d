"""What code does with a variable: whether it reads it, writes it, compares its address, or hands the address on.

Each reference is followed through its function: from the instruction that computes the address of the variable along
every branch, and into the functions of the same file that it is passed to, as long as a register, or a local variable
of a function with a frame, may hold the address. Other memory is not followed: an address that is stored, returned, or
passed to another file counts as handed on, and what becomes of it is not known. Functions of the standard library that
only read what they are given are known by their names. x86-64 only.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from footprint.elf.functions import Functions
from footprint.elf.image import Image
from footprint.elf.references import Reference, ReferencedPlace, find_references
from footprint.elf.x86_code import RAX, RSP, Instruction
from footprint.elf.x86_functions import Code, CodeReader, Held

__all__ = ("FoundUse", "Use", "Uses")

_RDX: Final = 2
_RSI: Final = 6
_RDI: Final = 7
# rdi, rsi, rdx, rcx, r8, r9 (System V ABI, 3.2.1).
_ARGUMENTS: Final = (_RDI, _RSI, 2, 1, 8, 9)
_MOST_STEPS: Final = 4096
_MOST_DEPTH: Final = 16
# Functions of the standard libraries of C and C++ that read what they are given, and keep no address of it.
_READERS: Final = re.compile(
    r"(?:__)?(?:mem(?:cpy|move|pcpy|cmp|chr|rchr|mem)|bcmp|str(?:n?len|n?cmp|n?casecmp|n?cpy|n?cat|n?dup|coll|xfrm"
    r"|chr|rchr|str|casestr|chrnul|spn|cspn|pbrk)|stpn?cpy|wcs(?:len|cmp|cpy)|wmem(?:cpy|cmp)"
    r"|ato[fil]l?|f?put[sc]|fwrite|write|v?[fsd]?n?w?printf|v?snprintf|v?asprintf|perror"
    r"|syslog|f?open(?:64)?|access|x?stat(?:64)?|getenv|assert_fail|err|errx|warnx?|error)(?:_chk)?\Z"
    # Those that take a text, and copy or print it. All others may keep an address: a facet has that of its table.
    r"|_ZNK?S(?:[sb]|t7__cxx1112basic_string|t3__112basic_string)(?!.*(?:_Alloc_hider|7_M_dataE))"
    r"|_ZStls\w+PK(?:[cahw]|S\d*_)\Z|_ZSt16__ostream_insert\w+\Z|_ZNS(?:o|t13basic_ostreamIw\w+E)5writeE\w+\Z"
    r"|_ZSt\d+__throw_\w+\Z|_ZNSt\d+(?:runtime|logic|range|overflow|underflow|domain|length)_errorC[12]EPKc\Z"
    r"|_ZNSt(?:12out_of_range|16invalid_argument)C[12]EPKc\Z|_ZNSt1[34]basic_[io]?f\w+(?:4open|C[12])EPKcSt\w+\Z"
    r"|_ZSt11_Hash_bytesPKvmm\Z"
)
_PRINTERS: Final = re.compile(r"(?:__)?(?:\w*printf|v?(?:errx?|warnx?|syslog)|error)(?:_chk)?\Z")
# Those that write to the first of what they are given.
_COPIERS: Final = re.compile(
    r"(?:__)?(?:mem(?:cpy|move|pcpy)|strn?c(?:py|at)|stpn?cpy|wcscpy|wmemcpy|v?sn?w?printf|v?asprintf)(?:_chk)?\Z"
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
    """An instruction writes it."""


class FoundUse(NamedTuple):
    """What was found of a variable.

    Attributes:
        use: What code does with it.
        function: The linker name of the function whose use was enough; None where no function is known, or none was.
    """

    use: Use
    function: str | None


class Uses:
    """Knows what the code of a file does with some variables.

    Args:
        image: A file for which `can_find_references` is true.
        functions: Its functions.
        places: The variables, which ascend.
        starts: The first vaddrs of all variables, where an index may count from far before one.
        ends: The vaddrs behind variables, which do not mean the next one although they may be just before it.

    Raises:
        InputError: Where a table or segment is damaged.
    """

    def __init__(
        self,
        image: Image,
        functions: Functions,
        places: Sequence[ReferencedPlace],
        starts: Collection[int] | None = None,
        ends: Collection[int] = (),
    ) -> None:
        self._reader = CodeReader(image, functions)
        self._ends = ends
        found = find_references(image, places, starts)
        self._of = {place.start_vaddr: (place, each) for place, each in zip(places, found, strict=True)}

    def of(self, vaddr: int, enough: Use, words: Collection[int] = (), *, is_in_code: bool = False) -> FoundUse:
        """Return what code does with the variable at a vaddr, and which function does it.

        Args:
            vaddr: Its first byte.
            enough: The uses of which one is enough: others are then left out.
            words: Addresses that it holds, if what is done with these counts as done with the variable.
            is_in_code: Whether only code counts, and not what holds the address.

        Raises:
            InputError: Where a table or segment is damaged.
        """
        place, references = self._of[vaddr]
        follower = _Follower(self._reader, place, self._ends, enough, words)
        use = Use.UNUSED
        for one in references:
            if is_in_code and not one.vaddr:
                continue
            use |= follower.use_of(one)
            if use & enough:
                at = one.vaddr if follower.enough_at is None else follower.enough_at
                code = self._reader.at(at) if at else None
                return FoundUse(use, None if code is None else code.function.name or None)
        return FoundUse(use, None)


class _Result(NamedTuple):
    """What a function does with an address, and whether rax holds it at the ends of the function."""

    use: Use
    returns: frozenset[bool]


_NEVER: Final = frozenset({False})
_ALWAYS: Final = frozenset({True})
_MAYBE: Final = frozenset({False, True})
_NOWHERE: Final[Held] = frozenset()


class _Follower:
    """Follows the address of one variable through functions.

    Args:
        reader: Reads the functions.
        place: The variable.
        ends: The vaddrs behind variables.
        enough: The uses of which one is enough.
        words: The addresses that it holds, where they are followed like its own.

    Attributes:
        enough_at: The vaddr of the first instruction whose use is enough; None before one is met.
    """

    def __init__(
        self,
        reader: CodeReader,
        place: ReferencedPlace,
        ends: Collection[int],
        enough: Use,
        words: Collection[int],
    ) -> None:
        self._reader = reader
        self._start = place.start_vaddr
        self._ends = ends
        self._words = words
        self._enough = enough
        self.enough_at: int | None = None
        # The end of a loop may be the begin of the next variable.
        self._low, self._high = place.start_vaddr - place.before_bytes, place.end_vaddr
        self._results: dict[tuple[int, Held], _Result] = {}
        self._visited: set[int] = set()

    def use_of(self, reference: Reference) -> Use:
        """Return what a reference does with the variable."""
        if not reference.vaddr:
            # What a table holds is read from there; compilers leave only addresses inside of a variable in tables.
            return Use.READ | Use.HANDED_ON if reference.is_sure else Use.UNUSED
        code = self._reader.at(reference.vaddr)
        if code is None or reference.vaddr >= code.end_vaddr:
            return Use.HANDED_ON
        vaddr = code.vaddrs[bisect_right(code.vaddrs, reference.vaddr) - 1]
        if vaddr in self._visited:
            return Use.UNUSED
        one = code.instructions[vaddr]
        if not self._is_own(one, code):
            if one.memory is not None and self._reader.is_address(one.memory):
                # `days[year - 1900]` in a program at a fixed address: another variable may be meant, or this one.
                is_read = not one.writes_memory and not one.is_address and not self._words
                return Use.READ if is_read else Use.HANDED_ON
            # The bytes of a doubtful reference are a part of something else.
            return Use.HANDED_ON if reference.is_sure else Use.UNUSED
        found = self._follow(code, code.function.vaddr, _NOWHERE)
        if vaddr not in self._visited and not found.use & self._enough:
            # Only a table of jumps leads there.
            other = self._follow(code, vaddr, _NOWHERE)
            found = _Result(found.use | other.use, found.returns | other.returns)
        return found.use | (Use.HANDED_ON if True in found.returns else Use.UNUSED) or Use.READ

    def _is_own(self, one: Instruction, code: Code) -> bool:
        """Return whether an instruction states an address of the variable; one before it counts with an index only."""
        stated = [vaddr for vaddr in self._reader.stated(one) if self._means(vaddr)]
        return bool(stated) and (max(stated) >= self._start or code.is_index_added(one))

    def _means(self, vaddr: int | None) -> bool:
        if vaddr is None or not self._low <= vaddr <= self._high:
            return False
        return vaddr >= self._start or vaddr not in self._ends

    def _kept(self, code: Code, start: int, held: Held, depth: int) -> _Result:
        """Follow what holds the address, from an instruction on; once for each instruction."""
        key = start, held
        if key not in self._results:
            self._results[key] = _Result(Use.UNUSED, _MAYBE)
            self._results[key] = self._follow(code, start, held, depth)
        return self._results[key]

    def _follow(self, code: Code, start: int, first: Held, depth: int = 0) -> _Result:
        """Follow what holds the address, from an instruction on; if nothing does, from where something comes to."""
        own = {each for each in code.stating(self._low, self._high) if self._is_own(code.instructions[each], code)}
        todo: list[tuple[int, Held]] = [(start, first)]
        seen: set[tuple[int, Held]] = set()
        passed: set[int] = set()
        use, returns = Use.UNUSED, frozenset[bool]()
        while todo and not use & self._enough:
            vaddr, held = todo.pop()
            if not held and vaddr not in own:
                todo += () if first else self._begins(code, vaddr, own, passed)
                continue
            if vaddr in code.instructions:
                vaddr = code.next_stop(vaddr, held)
            if (vaddr, held) in seen:
                continue
            seen.add((vaddr, held))
            one = code.instructions.get(vaddr)
            if one is None or len(seen) > _MOST_STEPS:
                # Behind the last instruction of a function a call does not return.
                use |= Use.UNUSED if one is None and code.is_whole else Use.HANDED_ON
                continue
            if not first:
                self._visited.add(vaddr)
            use |= self._use_by(one, held, code, is_own=vaddr in own)
            if one.jump is None:
                todo += [(one.end_vaddr, each) for each in self._held_after(one, held, code, is_own=vaddr in own)]
            else:
                result, ways = self._jumped(one, held, code, depth)
                use, returns = use | result.use, returns | result.returns
                todo += ways
            if use & self._enough and self.enough_at is None:
                self.enough_at = vaddr
        return _Result(use, returns)

    def _jumped(self, one: Instruction, held: Held, code: Code, depth: int) -> tuple[_Result, list[tuple[int, Held]]]:
        """Return what a jump or call does with what is held, and where the function goes on."""
        if one.jump is None:
            return _Result(Use.UNUSED, frozenset()), []
        after, ways, result = [held], [], _Result(Use.UNUSED, frozenset())
        if one.jump.target in code.instructions and not one.jump.is_call:
            ways = [(one.jump.target or 0, held)]
        else:
            result = self._leave(one, held, code, depth)
        if one.jump.is_call:
            kept = held - self._reader.changed_by(one) - {RAX}
            after = [kept | {RAX} if is_held else kept for is_held in result.returns]
            # Where the call throws, a handler has what was held.
            is_caught = any(after) and self._reader.may_catch(code)
            result = _Result(result.use | (Use.HANDED_ON if is_caught else Use.UNUSED), frozenset())
        return result, [*ways, *[(one.end_vaddr, each) for each in after if one.jump.falls_through]]

    def _begins(self, code: Code, start: int, own: Collection[int], passed: set[int]) -> Iterator[tuple[int, Held]]:
        """Find where code from an instruction on states the address, but for the ways that were passed."""
        todo = [code.next_stop(start)]
        while todo:
            vaddr = todo.pop()
            if vaddr in passed or vaddr not in code.ways:
                continue
            passed.add(vaddr)
            if vaddr in own:
                yield vaddr, _NOWHERE
            else:
                todo += code.ways[vaddr]

    def _use_by(self, one: Instruction, held: Held, code: Code, *, is_own: bool) -> Use:
        """Return what an instruction by itself does with the address, and with the words that lie there."""
        use = Use.UNUSED
        if self._reaches(one, held, is_own=is_own) and not one.is_address:
            if one.writes_memory:
                return Use.WRITTEN
            use = Use.READ | self._use_of_words(one)
        second = one.other if one.memory is None else code.local(one)
        if one.compares or one.subtracts:
            # One with itself is a test for zero; two addresses in one variable are a test for its end.
            is_number = one.immediate is not None
            is_compared = (
                is_own != (one.register in held)
                if is_number and self._reader.is_address(one.immediate)
                else (one.is_wide and not is_number and (one.register in held) != (second in held))
            )
            return use | (Use.COMPARED if is_compared else Use.UNUSED)
        if one.jump is not None:
            return use
        is_stored = one.copies and one.writes_memory and second is None and (one.register in held or is_own)
        is_in_vector = one.copies and one.register is None and one.memory is None and one.other in held
        is_loaded = one.register is None and not one.writes_memory and not held.isdisjoint(code.locals_of(one))
        is_mixed = one.mixes and not held.isdisjoint((one.register, one.other))
        is_moved = one.other == _RSI and one.writes_memory and _RSI in held and bool(self._words)
        return use | Use.HANDED_ON if is_stored or is_in_vector or is_loaded or is_mixed or is_moved else use

    def _reaches(self, one: Instruction, held: Held, *, is_own: bool) -> bool:
        """Return whether the memory of an instruction is that of the variable, or of a word in it."""
        is_of_own = is_own and self._means(one.memory)
        return is_of_own or not held.isdisjoint((one.base, one.scaled))

    def _use_of_words(self, one: Instruction) -> Use:
        """Return what an instruction that reads the variable does with words there, but for loading them."""
        if not self._words or one.jump is not None:
            return Use.UNUSED
        if one.compares:
            return Use.COMPARED if one.is_wide and one.immediate is None else Use.UNUSED
        is_used = one.register is None or (one.is_wide and not one.copies and not one.overwrites)
        return Use.HANDED_ON if is_used else Use.UNUSED

    def _held_after(self, one: Instruction, held: Held, code: Code, *, is_own: bool) -> list[Held]:
        """Return what may hold the address after an instruction; several where one of them is certain."""
        if one.compares or not (held or is_own):
            return [held]
        local = code.local(one)
        if one.writes_memory:
            if local is None or not one.copies:
                return [held]
            return [held | {local} if one.register in held or is_own else held - {local}]
        if one.register is None or (one.overwrites and not one.copies and one.other == one.register):
            return [held - {one.register}]
        if one.swaps:
            return [held | {one.register, one.other or 0} if not held.isdisjoint((one.register, one.other)) else held]
        reaches = self._reaches(one, held, is_own=is_own)
        is_stated = is_own and not (reaches and not one.is_address)
        is_word = bool(self._words) and reaches and one.copies and one.is_wide
        if one.other in held or local in held or is_stated or is_word or (reaches and one.is_address):
            # A conditional move may leave the register as it was.
            return [held | {one.register}] if one.overwrites or not one.copies else [held | {one.register}, held]
        return [held - {one.register} if one.overwrites else held]

    def _leave(self, one: Instruction, held: Held, code: Code, depth: int) -> _Result:
        """Return what a call, a return, or a jump to another function does with what is held."""
        if one.jump is None or one.jump.is_end:
            # The second half of a structure, as of a std::string_view, is returned in rdx.
            is_second = _RDX in held and code.is_set_last(one, _RDX)
            return _Result(Use.HANDED_ON if is_second else Use.UNUSED, frozenset({RAX in held}))
        target = one.jump.target
        callee = None if target is None else self._reader.at(target)
        if not one.jump.is_call:
            if callee is not None and target in callee.instructions and _is_part(callee, target):
                # What moves between the parts of a function takes all along.
                is_one_frame = callee.frame == code.frame or not any(isinstance(place, tuple) for place in held)
                result = self._kept(callee, target or 0, held, depth + 1)
                return result if is_one_frame else _Result(result.use | Use.HANDED_ON, result.returns)
            is_by_word = one.memory is not None and {one.base, one.scaled} == {None}
            if target is None and not is_by_word and held.isdisjoint((one.base, one.scaled)):
                # A register or a table holds the target: it may lead to a part of the function.
                return _Result(Use.HANDED_ON if held else Use.UNUSED, _NEVER)
        if code.frame == RSP and any(isinstance(place, tuple) and place not in code.read_locals for place in held):
            return _Result(Use.HANDED_ON, _MAYBE)
        passed = _passed(self._reader, one, held, code)
        if not passed:
            return _Result(Use.UNUSED, _NEVER)
        name = self._reader.name_of_callee(one, code)
        if _PRINTERS.match(name) is not None and self._reader.may_print_addresses(code):
            return _Result(Use.HANDED_ON, _NEVER)
        is_by_word = target is None and not held.isdisjoint((one.base, one.scaled))
        targets = (
            [target]
            if target is not None
            else [each for each in self._words if self._reader.at(each) is not None]
            if is_by_word
            else []
        )
        callees = [
            (each, callee) for each in targets if (callee := self._reader.at(each)) and each in callee.instructions
        ]
        if targets and len(callees) == len(targets) and depth < _MOST_DEPTH:
            results = [self._kept(callee, each, passed, depth + 1) for each, callee in callees]
            return _Result(
                reduce(or_, [one.use for one in results]), frozenset().union(*[one.returns for one in results])
            )
        return self._of_library(name, passed)

    def _of_library(self, name: str, passed: Held) -> _Result:
        """Return what a function of another file does with what it is given."""
        if _READERS.match(name) is None:
            return _Result(Use.HANDED_ON, _MAYBE)
        if _COPIERS.match(name) is not None:
            if _RDI in passed:
                return _Result(Use.WRITTEN, _ALWAYS)
            # What is copied holds the words that lie there.
            is_copied = self._words and "mem" in name
            return _Result(Use.READ | Use.HANDED_ON if is_copied else Use.READ, _NEVER)
        is_found = _RDI in passed and _FINDERS.match(name) is not None
        return _Result(Use.READ, _ALWAYS if is_found else _NEVER)


def _is_part(code: Code, vaddr: int | None) -> bool:
    """Return whether a jump to a vaddr of a function leads into the middle of one, or to what was split off one."""
    return vaddr != code.function.vaddr or ".cold" in code.function.name


def _passed(reader: CodeReader, one: Instruction, held: Held, code: Code) -> Held:
    """Return the registers that are held and may be arguments of a call, or of a jump to another function."""
    # The register that holds the target is no argument.
    passed = held.intersection(_ARGUMENTS) - ({one.base} if one.memory is None else set())
    for number, register in enumerate(_ARGUMENTS):
        if passed <= set(_ARGUMENTS[:number]):
            break
        if reader.is_unset(code, one, register):
            # Arguments are passed in order: there are no more of them.
            return passed.intersection(_ARGUMENTS[:number])
    return passed
