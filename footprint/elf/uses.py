"""What code does with a variable: whether it reads it, writes it, compares its address, or hands the address on.

Each reference is followed through its function: from the instruction that computes the address of the variable along
every branch, and into the functions of the same file that it is passed to, as long as a register or a stack slot may
hold the address. What may happen to it there is listed in `footprint.elf.harmless`; other memory is not followed.
x86-64 and arm64 only.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final

from footprint.elf import contracts
from footprint.elf.code_reader import Code, CodeReader
from footprint.elf.functions import Functions
from footprint.elf.harmless import Holders, Step, Use, effect_of, slot_of, slot_place
from footprint.elf.image import Image
from footprint.elf.instruction import ARM64, COMPARISONS, FLAGS, RAX, Access, Instruction, Operation
from footprint.elf.parts import PartReads
from footprint.elf.references import Reference, ReferencedPlace, find_references
from footprint.elf.second_results import SecondResults
from footprint.members import NamedTuple

_MOST_STEPS: Final = 4096
_MOST_STEPS_AFTER: Final = 256
_MOST_DEPTH: Final = 16


class FoundUse(NamedTuple):
    """What was found of a variable.

    Attributes:
        use: What code does with it.
        function: The linker name of the function whose use was enough; None where no function is known, or none was.
        offset: The distance of the instruction from the start of that function; 0 where none is known.
    """

    use: Use
    function: str | None
    offset: int = 0


class Uses:
    """Knows what the code of a file does with some variables.

    Args:
        image: A file for which `can_find_references` is true.
        functions: Its functions.
        places: The variables, which ascend.
        starts: The first vaddrs of all variables, where an index may count from far before one.
        ends: The vaddrs behind variables, which do not mean the next one although they may be just before it.
        told: Further vaddrs that tables lead to.

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
        certain: Collection[int] = (),
    ) -> None:
        self._reader = CodeReader(image, functions)
        self._seconds = SecondResults(image, self._reader)
        self._ends = ends
        references_found = find_references(image, places, starts, reader=self._reader)
        for place, references in zip(places, references_found, strict=True):
            if any(place.start_vaddr <= vaddr < place.end_vaddr for vaddr in certain):
                references.append(Reference(0, is_sure=True))
        self._of = {place.start_vaddr: (place, refs) for place, refs in zip(places, references_found, strict=True)}
        self._ways: dict[int, list[_Follower]] = {}

    def of(
        self,
        vaddr: int,
        enough: Use,
        words: Mapping[int, int] | None = None,
        inner: Collection[int] = (),
        *,
        is_in_code: bool = False,
    ) -> FoundUse:
        """Return what code does with the variable at a vaddr, and which function does it.

        Args:
            vaddr: Its first byte.
            enough: The uses of which one is enough: others are then left out.
            words: Addresses that it holds, by their offsets, if what is done with these counts as done with it.
            inner: Where addresses lie in what these lead to, as distances from them.
            is_in_code: Whether only code counts, and not what holds the address.

        Raises:
            InputError: Where a table or segment is damaged.
        """
        place, references = self._of[vaddr]
        parts = PartReads(vaddr, words) if words else None
        # Of a table what is done with its own address is followed first: that tells which parts of it are read.
        targets = frozenset((words or {}).values())
        follower = _Follower(self._reader, self._seconds, place, self._ends, enough, targets, parts, is_followed=False)
        ways = self._ways[vaddr] = [follower]
        if words:
            parts = PartReads(None, inner) if inner else None
            ways.append(_Follower(self._reader, self._seconds, place, self._ends, enough, targets, parts))
        use = Use.UNUSED
        for follower in ways:
            for one in references:
                if one.is_end or (is_in_code and not one.vaddr):
                    continue
                use |= follower.use_of(one)
                if use & enough:
                    return self._found(use, one.vaddr if follower.enough_at is None else follower.enough_at)
            if follower.part is not None and Use.HANDED_ON & enough:
                return self._found(use | Use.HANDED_ON, follower.part)
        return FoundUse(use, None)

    def of_end(self, vaddr: int, enough: Use, *, is_start: bool) -> FoundUse:
        """Return what code does with the end of a variable, where nothing else leads there; after `of`.

        What follows the variable begins there. So what a function reads from there is no end, nor is what a table has
        where another variable follows (`is_start`), nor what is all that refers to that variable.
        """
        place, references = self._of[vaddr]
        ends = [one for one in references if one.is_end and (one.vaddr or not is_start)]
        if ends and is_start and self._are_of_next(place.end_vaddr, ends, enough):
            return FoundUse(Use.UNUSED, None)
        for follower in self._ways[vaddr]:
            for one in ends:
                use = follower.use_of_end(one)
                part = follower.part
                if use & enough or part is not None:
                    return self._found(use | Use.HANDED_ON, part or follower.enough_at or one.vaddr)
        return FoundUse(Use.UNUSED, None)

    def _are_of_next(self, vaddr: int, references: Sequence[Reference], enough: Use, depth: int = 0) -> bool:
        """Return whether references are all that there are to what begins at a vaddr: something refers to each.

        Without optimisation a function states an address each time that it needs it. What code does with the end of the
        next may be all that refers to that.
        """
        if vaddr not in self._of or depth > _MOST_DEPTH:
            return False
        place, its = self._of[vaddr]
        is_named = place.end_vaddr > vaddr + 1
        vaddrs = {one.vaddr for one in its if one.target >= vaddr and not one.is_end}
        vaddrs |= {one.vaddr for one in references}
        if depth or not is_named:
            # Tables refer to texts without a name that functions refer to as well.
            vaddrs.discard(0)
        codes = [self._reader.at(one) for one in vaddrs]
        is_once = len(vaddrs) == 1 or (is_named and codes == codes[:1] * len(codes) and _is_unoptimised(codes))
        if 0 in vaddrs or not is_once:
            return False
        follower = _Follower(self._reader, self._seconds, place, self._ends, enough, (), None)
        ends = [one for one in its if one.is_end and one.vaddr]
        is_told = any(follower.use_of_end(one) & enough for one in ends)
        return not is_told or self._are_of_next(place.end_vaddr, ends, enough, depth + 1)

    def _found(self, use: Use, vaddr: int) -> FoundUse:
        """Return a use by an instruction; 0 where none is known."""
        code = self._reader.at(vaddr) if vaddr else None
        if code is None:
            return FoundUse(use, None)
        number = bisect_right(code.vaddrs, vaddr) - 1
        offset = code.vaddrs[number] - code.function.vaddr if number >= 0 else 0
        return FoundUse(use, code.function.name or None, offset)

    def fixed_loads(self, vaddr: int) -> list[Instruction] | None:
        """Return the instructions that load fixed parts of a variable; None where code or a table has its address.

        Raises:
            InputError: Where a table or segment is damaged.
        """
        place, references = self._of[vaddr]
        loads = []
        for reference in [one for one in references if not one.is_end]:
            code = self._reader.at(reference.vaddr) if reference.vaddr else None
            if code is None:
                return None
            number = bisect_right(code.vaddrs, reference.vaddr) - 1
            insn = code.instructions.get(code.vaddrs[number]) if code.vaddrs else None
            if insn is None or not place.start_vaddr <= (insn.memory or 0) < place.end_vaddr:
                # The bytes of a doubtful reference may be a part of something else.
                stated = () if insn is None else code.stated_by(insn)
                if reference.is_sure or any(place.start_vaddr <= at < place.end_vaddr for at in stated):
                    return None
                continue
            if insn.operation is Operation.ADDRESS or (insn.base, insn.scaled) != (None, None):
                return None
            loads.append(insn)
        return loads


class _Result(NamedTuple):
    """What a function does with an address, and whether its result holds it at the ends of the function."""

    use: Use
    returns: frozenset[bool]


_NOTHING: Final = _Result(Use.UNUSED, frozenset())
_NEVER: Final = frozenset({False})
_ALWAYS: Final = frozenset({True})
_MAYBE: Final = frozenset({False, True})
_NOWHERE: Final[Holders] = frozenset()


class _Follower:
    """Follows the address of one variable through functions.

    Args:
        reader: Reads the functions.
        seconds: Knows which of them return a second value.
        place: The variable.
        ends: The vaddrs behind variables.
        enough: The uses of which one is enough.
        words: The addresses that it holds.
        parts: Takes what is read of it.
        is_followed: Whether those are followed like its own.

    Attributes:
        enough_at: The vaddr of the first instruction whose use is enough; None before one is met.
    """

    def __init__(
        self,
        reader: CodeReader,
        seconds: SecondResults,
        place: ReferencedPlace,
        ends: Collection[int],
        enough: Use,
        words: Collection[int],
        parts: PartReads | None,
        *,
        is_followed: bool = True,
    ) -> None:
        self._reader = reader
        self._convention = reader.convention
        self._seconds = seconds
        self._start = place.start_vaddr
        size_bytes = place.end_vaddr - place.start_vaddr
        self._size_bytes = size_bytes if size_bytes > 1 else None
        self._ends = ends
        self._words = words
        self._has_words = bool(words) and is_followed
        self._parts = parts
        self._enough = enough
        self.enough_at: int | None = None
        # The end of a loop may be the begin of the next variable.
        self._low, self._high = place.start_vaddr - place.before_bytes, place.end_vaddr
        self._results: dict[tuple[int, Holders], _Result] = {}
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
        insn = code.instructions[vaddr]
        if reference.is_lost:
            # The bytes that are read there are no matter, unless they may be an address.
            return Use.READ if insn.access is Access.READ and not self._words else Use.HANDED_ON
        if vaddr in self._visited:
            return Use.UNUSED
        if not self._is_own(insn, code):
            if insn.memory is not None and self._reader.is_address(insn.memory):
                # `days[year - 1900]` in a program at a fixed address: another variable may be meant, or this one.
                is_read = insn.access is Access.READ and not self._words
                return Use.READ if is_read else Use.HANDED_ON
            # The bytes of a doubtful reference are a part of something else.
            return Use.HANDED_ON if reference.is_sure else Use.UNUSED
        result = self._follow(code, code.function.vaddr, _NOWHERE)
        if vaddr not in self._visited and not result.use & self._enough:
            # Only a table of jumps leads there.
            other = self._follow(code, vaddr, _NOWHERE)
            result = _Result(result.use | other.use, result.returns | other.returns)
        return result.use | (Use.HANDED_ON if True in result.returns else Use.UNUSED) or Use.READ

    @property
    def part(self) -> int | None:
        """The vaddr of an instruction that may read a part of an address that it holds; None without one."""
        return None if self._parts is None else self._parts.of_part()

    def use_of_end(self, reference: Reference) -> Use:
        """Return what a reference to the end of the variable does with it, if nothing is read from there."""
        code = self._reader.at(reference.vaddr) if reference.vaddr else None
        if code is None or reference.vaddr >= code.end_vaddr:
            return Use.HANDED_ON
        vaddr = code.vaddrs[bisect_right(code.vaddrs, reference.vaddr) - 1]
        is_own = vaddr not in self._visited and self._is_own(code.instructions[vaddr], code)
        return self.use_of(reference) if is_own else Use.UNUSED

    def _is_own(self, insn: Instruction, code: Code) -> bool:
        """Return whether an instruction states an address of the variable; one before it counts with an index only."""
        stated = [vaddr for vaddr in code.stated_by(insn) if self._means(vaddr)]
        if stated == [self._high] and _is_read(code, insn.vaddr, self._high):
            # What begins there is read.
            return False
        return bool(stated) and (max(stated) >= self._start or code.is_index_added(insn))

    def _means(self, vaddr: int | None) -> bool:
        if vaddr is None or not self._low <= vaddr <= self._high:
            return False
        return vaddr >= self._start or vaddr not in self._ends

    def _kept(self, code: Code, start: int, holders: Holders, depth: int) -> _Result:
        """Follow what holds the address, from an instruction on; once for each instruction."""
        key = start, holders
        if key not in self._results:
            self._results[key] = _Result(Use.UNUSED, _MAYBE)
            self._results[key] = self._follow(code, start, holders, depth)
        return self._results[key]

    def _follow(self, code: Code, start: int, first: Holders, depth: int = 0) -> _Result:
        """Follow what holds the address, from an instruction on; if nothing does, from where something comes to."""
        stating = {at for at in code.stating(self._low, self._high) if self._is_own(code.instructions[at], code)}
        is_resumed = self._reader.may_resume(code)
        todo: list[tuple[int, Holders]] = [(start, first)]
        seen: set[tuple[int, Holders]] = set()
        passed: set[int] = set()
        use, returns, is_enough = Use.UNUSED, frozenset[bool](), False
        while todo and not is_enough:
            vaddr, holders = todo.pop()
            if not holders and vaddr not in stating:
                todo += () if first else self._begins(code, vaddr, stating, passed)
                continue
            if vaddr in code.instructions:
                vaddr = code.next_stop(vaddr, holders)
            if (vaddr, holders) in seen:
                continue
            seen.add((vaddr, holders))
            insn = code.instructions.get(vaddr)
            if insn is None or len(seen) > _MOST_STEPS:
                # Behind the last instruction of a function a call does not return. What is none goes on elsewhere.
                use |= Use.UNUSED if insn is None and code.is_whole and code.has_end else Use.HANDED_ON
                is_enough = bool(use & self._enough)
                continue
            if not first:
                self._visited.add(vaddr)
            step = self._step(insn, code, holders, is_own=vaddr in stating)
            result, ways = self._executed(step, holders, code, depth)
            returns |= result.returns
            todo += ways
            if is_resumed and any(place < 0 for _, after in ways for place in after):
                # What `setjmp` returns to a second time finds on the stack what was put there since.
                result = _Result(result.use | Use.HANDED_ON, result.returns)
            if result.use:
                # Flags are slow to combine, and most instructions add none.
                use |= result.use
                is_enough = bool(use & self._enough)
                if is_enough and self.enough_at is None:
                    self.enough_at = vaddr
        return _Result(use, returns)

    def _step(self, insn: Instruction, code: Code, holders: Holders, *, is_own: bool) -> Step:
        """Return an instruction with what is known of its operands."""
        is_own_memory = (
            is_own and self._means(insn.memory) and (insn.base is None or self._reader.is_address(insn.memory))
        )
        if is_own and insn.base is not None and self._convention is ARM64:
            # It may mean the variable by what its registers hold; if that is followed already, it is no other use.
            is_own_memory = holders.isdisjoint((insn.base, insn.scaled))
        return Step(
            insn,
            code.slot(insn),
            is_own_memory,
            is_own and self._means(insn.immediate),
            self._size_bytes,
            self._has_words,
        )

    def _executed(
        self, step: Step, holders: Holders, code: Code, depth: int
    ) -> tuple[_Result, list[tuple[int, Holders]]]:
        """Return what an instruction does with what is held, and where the function goes on."""
        effect, insn = effect_of(step, holders), step.instruction
        if self._parts is not None:
            self._parts.add(step, holders, code)
        if insn.jump is None:
            use = effect.use
            if insn.operation in COMPARISONS and not use & Use.COMPARED:
                use |= self._of_comparison(insn, code)
            result = _Result(use, frozenset()) if use else _NOTHING
            return result, [(insn.end_vaddr, after) for after in effect.holders]
        result, ways = self._jumped(step, holders, code, depth)
        return _Result(effect.use | result.use, result.returns) if effect.use else result, ways

    def _of_comparison(self, insn: Instruction, code: Code) -> Use:
        """Return the use by a comparison with zero or with another address in the variable."""
        if self._reader.tests_parity(code, insn):
            return Use.HANDED_ON
        if insn.operation is not Operation.COMPARE or insn.memory is not None or insn.immediate == 0:
            return Use.UNUSED
        # Where compilers know that both are in one variable they compare them: the next one begins at the end.
        are_ends = [self._high in each for each in self._reader.compared_numbers(code, insn)]
        return Use.COMPARED if sorted(are_ends) == [False, True] else Use.UNUSED

    def _jumped(
        self, step: Step, holders: Holders, code: Code, depth: int
    ) -> tuple[_Result, list[tuple[int, Holders]]]:
        """Return what a jump or call does with what is held, and where the function goes on."""
        insn = step.instruction
        if insn.jump is None:
            return _NOTHING, []
        if insn.jump.target in code.instructions and not insn.jump.is_call:
            falls = [(insn.end_vaddr, holders)] if insn.jump.falls_through else []
            return _NOTHING, [(insn.jump.target or 0, holders), *falls]
        if insn.jump.falls_through and not insn.jump.is_call:
            # A condition leads out of the function.
            return self._leave(step, holders, code, depth), [(insn.end_vaddr, holders)]
        result = self._leave(step, holders, code, depth)
        if not insn.jump.is_call:
            return result, []
        in_result = {self._convention.result}
        kept = holders - self._reader.changed_by(insn) - {FLAGS}
        after = [kept | in_result if is_held else kept for is_held in result.returns]
        # Where the call throws, which may be all that it does, a handler has what was held.
        is_caught = bool(kept) and self._reader.may_catch(code)
        ways = [(insn.end_vaddr, after_call) for after_call in after]
        return _Result(result.use | Use.HANDED_ON if is_caught else result.use, frozenset()), ways

    def _begins(
        self, code: Code, start: int, stating: Collection[int], passed: set[int]
    ) -> Iterator[tuple[int, Holders]]:
        """Find where code from an instruction on states the address, but for the ways that were passed."""
        todo, ways = [code.next_stop(start)], code.ways
        while todo:
            vaddr = todo.pop()
            if vaddr in passed or vaddr not in ways:
                continue
            passed.add(vaddr)
            if vaddr in stating:
                yield vaddr, _NOWHERE
            else:
                todo += ways[vaddr]

    def _leave(self, step: Step, holders: Holders, code: Code, depth: int) -> _Result:
        """Return what a call, a return, or a jump to another function does with what is held."""
        insn = step.instruction
        if insn.jump is None or insn.jump.is_end:
            # The second half of a structure, as of a std::string_view, is returned in another register.
            is_second = self._convention.second_result in holders and self._seconds.may_have(code)
            return _Result(Use.HANDED_ON if is_second else Use.UNUSED, frozenset({self._convention.result in holders}))
        target = insn.jump.target
        callee = None if target is None else self._reader.at(target)
        is_by_word = target is None and (step.is_own_memory or not holders.isdisjoint((insn.base, insn.scaled)))
        result = None if insn.jump.is_call else self._continued(insn, holders, callee, depth, is_by_word=is_by_word)
        if result is not None:
            return result
        # What the function does not read itself may be an argument on the stack; where it jumps, its own may be.
        slots = [slot_of(p) for p in holders if p < 0 and (not insn.jump.is_call or _is_unread(p, code))]
        on_stack = code.stack.passed(insn, slots) if slots else _NOWHERE
        contract = self._reader.contract_of(insn, code)
        if any(code.is_below_array(slot) for slot in slots):
            return _Result(Use.HANDED_ON, _MAYBE)
        if on_stack is None or (on_stack and contract is not None):
            return _Result(Use.HANDED_ON, _MAYBE)
        if contract is not None:
            return self._of_library(contract, insn, holders, code)
        targets = [] if target is None else [target]
        if is_by_word:
            targets = [word for word in self._words if self._reader.at(word) is not None]
        callees = [(w, callee) for w in targets if (callee := self._reader.at(w)) and w in callee.instructions]
        passed = _passed(self._reader, insn, holders, code, [callee for _, callee in callees])
        passed |= {slot_place(slot) for slot in on_stack}
        if not passed:
            return _Result(Use.UNUSED, _NEVER)
        is_lost = on_stack and any(
            at != callee.function.vaddr or not callee.stack.has_arguments for at, callee in callees
        )
        if not targets or len(callees) < len(targets) or depth >= _MOST_DEPTH or is_lost:
            return _Result(Use.HANDED_ON, _MAYBE)
        results = [self._kept(callee, at, passed, depth + 1) for at, callee in callees]
        use = reduce(or_, [result.use for result in results])
        return _Result(use, frozenset().union(*[result.returns for result in results]))

    def _continued(
        self, insn: Instruction, holders: Holders, callee: Code | None, depth: int, *, is_by_word: bool
    ) -> _Result | None:
        """Return what a jump out of a function does with what is held, if that may lead to another part of it."""
        target = None if insn.jump is None else insn.jump.target
        if callee is not None and target in callee.instructions and _is_part(callee, target):
            # What moves between the parts of a function takes its registers along.
            result = self._kept(callee, target or 0, frozenset([place for place in holders if place >= 0]), depth + 1)
            has_slots = any(place < 0 for place in holders)
            return _Result(result.use | Use.HANDED_ON, result.returns) if has_slots else result
        if target is None:
            # A register or a table holds the target, but for what leaves the file.
            may_be_part = not is_by_word and not self._reader.leaves_by_word(insn)
        else:
            may_be_part = callee is None and self._reader.word_at(target) is None
        # A function ends with the registers of its caller: with others it goes on.
        if may_be_part or any(0 <= place < FLAGS and place not in self._convention.not_kept for place in holders):
            return _Result(Use.HANDED_ON if holders else Use.UNUSED, _NEVER)
        return None

    def _of_library(self, contract: str, call: Instruction, holders: Holders, code: Code) -> _Result:
        """Return what a function whose contract is known does with what is held."""
        use, is_returned = Use.UNUSED, False
        letters, arguments = contract, self._convention.arguments
        if contracts.FORMAT in contract:
            before, _, _ = contract.partition(contracts.FORMAT)
            letters = before + contracts.READ + self._formatted(call, code, arguments[len(before)])
        for letter, register in zip(letters, arguments, strict=False):
            if register in holders:
                is_returned |= letter == contracts.READ_AND_RETURNED
                use |= _USES[letter]
                if letter == contracts.READ_AS_BYTES and self._words:
                    use |= Use.HANDED_ON
        return _Result(use, _ALWAYS if is_returned else _NEVER)

    def _formatted(self, call: Instruction, code: Code, register: int) -> str:
        """Return a letter for each argument of a call that its format, in a register, names."""
        formats = self._reader.formats(code, call, register)
        letters = [contracts.conversions(text) for text in formats or ()]
        count = len(self._convention.arguments)
        if not letters or None in letters:
            return contracts.NUMBER * count
        columns = [{letter[number : number + 1] for letter in letters if letter} for number in range(count)]
        return "".join(contracts.NUMBER if contracts.NUMBER in column else contracts.READ for column in columns)


def _is_unoptimised(codes: Sequence[Code | None]) -> bool:
    return bool(codes) and codes[0] is not None and codes[0].is_unoptimised


def _is_read(code: Code, vaddr: int, address: int) -> bool:
    """Return whether code reads or writes from an address on that an instruction states, before it adds to it."""
    first = code.instructions[vaddr]
    is_memory = first.memory == address and first.base is None and first.scaled is None
    if is_memory and first.access is not Access.NONE:
        return True
    is_number = first.operation is Operation.MOVE and first.memory is None and first.immediate == address
    if first.register is None or not (is_number or (is_memory and first.operation is Operation.ADDRESS)):
        return False
    todo, seen = [(first.end_vaddr, first.register)], set[tuple[int, int]]()
    while todo and len(seen) < _MOST_STEPS_AFTER:
        at, register = key = todo.pop()
        insn = code.instructions.get(at)
        if insn is None or key in seen:
            continue
        seen.add(key)
        if insn.base == register and insn.scaled is None and (insn.memory or 0) >= 0 and insn.access is not Access.NONE:
            return True
        is_copied = insn.other == register and insn.memory is None and insn.operation is Operation.MOVE
        if is_copied and insn.register is not None:
            todo.append((insn.end_vaddr, insn.register))
        if insn.writes >> register & 1 or (insn.jump is not None and insn.jump.is_call):
            continue
        todo += [(insn.end_vaddr, register)] if insn.jump is None or insn.jump.falls_through else []
        todo += [(insn.jump.target, register)] if insn.jump is not None and insn.jump.target is not None else []
    return False


_USES: Final = {
    contracts.READ: Use.READ,
    contracts.READ_AS_BYTES: Use.READ,
    contracts.READ_AND_RETURNED: Use.READ,
    contracts.WRITTEN: Use.WRITTEN,
    contracts.NUMBER: Use.HANDED_ON,
}


def _is_unread(place: int, code: Code) -> bool:
    """Return whether a stack slot holds a whole address, and the function does not read it itself."""
    slot = slot_of(place)
    return place == slot_place(slot) and slot not in code.read_slots


def _is_part(code: Code, vaddr: int | None) -> bool:
    """Return whether a jump to a vaddr of a function leads into the middle of one, or to what was split off one."""
    return vaddr != code.function.vaddr or ".cold" in code.function.name


def _passed(reader: CodeReader, insn: Instruction, holders: Holders, code: Code, callees: Sequence[Code]) -> Holders:
    """Return the registers that are held and may be arguments of a call, or of a jump to another function.

    `callees` are the functions that it leads to, as far as they are in the file.
    """
    # The register that holds the target is no argument.
    arguments = reader.convention.arguments
    passed = holders.intersection(arguments) - ({insn.base} if insn.memory is None else set())
    for number, register in enumerate(arguments):
        if passed <= set(arguments[:number]):
            break
        if reader.is_unset(code, insn, register):
            # Arguments are passed in order, but one without a value, such as an empty std::optional, is left as it is.
            before = passed.intersection(arguments[:number])
            passed = before | {each for each in passed - before if reader.is_set_for(code, insn, each)}
            break
    if all(place in passed or not 0 <= place < FLAGS for place in holders):
        return passed
    # What a function reads is an argument, whatever its convention is; it may leave others to those that it calls.
    taken = holders & frozenset().union(*[callee.taken for callee in callees])
    if reader.convention is not ARM64 and any(RAX in callee.taken for callee in callees):
        # One whose number of arguments varies reads all that may be some.
        taken -= frozenset(arguments)
    return passed | taken
