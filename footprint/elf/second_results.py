"""Whether a function may return a second value in rdx or x1, as one that returns a structure of two words does.

Code alone does not tell: the register may hold an address at the end of a function that only used it as a scratch
register. But its callers tell, where all of them are known: none of them reads it before it is set again.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from struct import Struct
from typing import Final

from footprint.elf import abi, contracts
from footprint.elf.arm64_code import PAGE_BYTES
from footprint.elf.arm64_references import addresses_in_code, jumps_in_code, possible_addresses
from footprint.elf.code_reader import Code, CodeReader
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import Image
from footprint.elf.instruction import ARM64, Instruction
from footprint.elf.relocations import relocated_words
from footprint.members import lazy_pattern

_MOST_STEPS: Final = 512
_MOST_DEPTH: Final = 8
_MOST_FUNCTIONS: Final = 512
_SHORT_BYTES: Final = 130
_ENTRY_OFFSET: Final = 24
_CALLS: Final = lazy_pattern(rb"(?:[\xe8\xe9]|\x0f[\x80-\x8f])(?=.{4})", re.DOTALL)
# `lea function(%rip), %reg`.
_ADDRESSES: Final = lazy_pattern(rb"\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=.{4})", re.DOTALL)
_signed_word: Final = Struct("<i").unpack_from
_START: Final = "main"
"""The C library calls it, and returns what is in eax alone."""


class SecondResults:
    """Knows which functions of a file may return a second value.

    Args:
        image: The file.
        reader: Reads its functions.
    """

    def __init__(self, image: Image, reader: CodeReader) -> None:
        self._image = image
        self._reader = reader
        self._is_arm64 = reader.convention is ARM64
        self._register = reader.convention.second_result
        arguments = reader.convention.arguments
        # It is that of an argument, too.
        self._before = arguments[: arguments.index(self._register)]
        self._cached: dict[int, bool] = {}

    def may_have(self, code: Code) -> bool:
        """Return whether a caller of a function may read the register after it, or may be one that is not known."""
        start = code.function.vaddr
        if start not in self._cached:
            # Callers that return what the function returns, and what they return.
            returning, count = {start: code}, 0
            while count < len(returning):
                callee = [*returning.values()][count]
                count += 1
                is_known = self._cached.get(callee.function.vaddr)
                if (
                    is_known
                    or count > _MOST_FUNCTIONS
                    or (is_known is None and self._is_read_by_callers(callee, returning))
                ):
                    self._cached[start] = True
                    return True
            self._cached.update(dict.fromkeys(returning, False))
        return self._cached[start]

    def _is_read_by_callers(self, code: Code, returning: dict[int, Code]) -> bool:
        """Return whether a caller may read the register; those that may return it are added to `returning`."""
        start = code.function.vaddr
        if code.function.name == _START:
            return False
        if start in self._taken or self._is_stated(start) or not (self._is_complete or code.function.is_local):
            return True
        sites = [*self._sites.get(start, ()), *(() if self._is_arm64 else self._short_jumps(start))]
        # What nothing calls may be called from where nobody looks. A caller that nothing calls returns to nobody.
        is_caller = next(iter(returning)) != start
        return not (sites or is_caller) or any(self._is_read_by_caller(site, start, returning) for site in sites)

    @cached_property
    def _is_complete(self) -> bool:
        """Whether it is a whole program or library: objects are called from others that are not known."""
        entry = int.from_bytes(self._image.data[_ENTRY_OFFSET : _ENTRY_OFFSET + 8], "little")
        return bool(entry) or self._image.segment(abi.PT_DYNAMIC) is not None

    def _is_read_by_caller(self, site: int, target: int, returning: dict[int, Code]) -> bool:
        """Return whether what calls or jumps to a function, where bytes at a vaddr look like it, may read it."""
        code = self._reader.at(site)
        insn = None if code is None else code.instruction_at(site)
        if code is None or insn is None:
            return True
        if insn.jump is None or insn.jump.target != target:
            return not code.is_whole
        if insn.jump.is_call:
            return self._is_read_from(code, insn.end_vaddr, returning)
        returning.setdefault(code.function.vaddr, code)
        return False

    def _is_read_from(self, code: Code, start: int, returning: dict[int, Code], depth: int = 0) -> bool:
        """Return whether the register may be read before it is set, by code from an instruction on."""
        todo, seen = [start], set[int]()
        while todo:
            vaddr = todo.pop()
            if vaddr in seen:
                continue
            seen.add(vaddr)
            insn = code.instructions.get(vaddr)
            if insn is None:
                if code.is_whole:
                    continue
                return True
            if (
                insn.reads >> self._register & 1
                or self._register in {insn.base, insn.scaled}
                or len(seen) > _MOST_STEPS
            ):
                return True
            if insn.jump is not None and (insn.jump.is_call or insn.jump.target not in code.instructions):
                if self._is_read_beyond(code, insn, returning, depth):
                    return True
            elif insn.jump is not None:
                todo.append(insn.jump.target or 0)
            is_set = insn.writes >> self._register & 1 or (
                insn.jump is not None and insn.jump.is_call and self._register in self._reader.changed_by(insn)
            )
            todo += [] if is_set or (insn.jump is not None and not insn.jump.falls_through) else [insn.end_vaddr]
        return False

    def _is_read_beyond(self, code: Code, insn: Instruction, returning: dict[int, Code], depth: int) -> bool:
        """Return whether a call, a return or a jump out of a function may read the register where it leads to."""
        if insn.jump is None or insn.jump.is_end:
            returning.setdefault(code.function.vaddr, code)
            return False
        contract = self._reader.contract_of(insn, code)
        if contract is not None:
            return self._takes_it(contract, insn, code)
        target = insn.jump.target
        callee = None if target is None else self._reader.at(target)
        if target is not None and callee is not None and target in callee.instructions and depth <= _MOST_DEPTH:
            return self._is_read_from(callee, target, returning, depth + 1)
        # Arguments are passed in order: behind one that is not set it is none.
        is_none = insn.jump.is_call and any(self._reader.is_unset(code, insn, register) for register in self._before)
        return not is_none

    def _takes_it(self, contract: str, call: Instruction, code: Code) -> bool:
        """Return whether a function whose contract is known takes an argument in the register."""
        count = len(self._before)
        before = contract.find(contracts.FORMAT)
        if before < 0 or len(contract) > count:
            return len(contract) > count
        # `printf` takes as many arguments as its format names, and leaves the others alone.
        texts = self._reader.formats(code, call, self._before[before])
        letters = [contracts.conversions(text) for text in texts or ()]
        return not letters or any(letter is None or before + 1 + len(letter) > count for letter in letters)

    @cached_property
    def _sites(self) -> Mapping[int, Sequence[int]]:
        """By target the vaddrs where code may call or jump."""
        sites: dict[int, list[int]] = defaultdict(list)
        starts = self._reader.starts
        if self._is_arm64:
            for target, vaddr in jumps_in_code(self._image):
                if target in starts:
                    sites[target].append(vaddr)
            return sites
        for vaddr, raw in self._code:
            for match in _CALLS.finditer(raw):
                at = match.end()
                target = vaddr + at + 4 + _signed_word(raw, at)[0]
                # Most jumps lead to other places of their function.
                if target in starts:
                    sites[target].append(vaddr + match.start())
        return sites

    @cached_property
    def _taken(self) -> AbstractSet[int]:
        """The addresses that relocations and `lea` make, and those of functions that other files may call."""
        image = self._image
        taken = set(relocated_words(image)[1]) | read_dynamic_symbols(image).vaddrs(image)
        if self._is_arm64:
            # What may be stated is quick to tell, and what is takes longer.
            possible = possible_addresses(image).intersection(self._reader.starts)
            if possible:
                for made in addresses_in_code(image, self._reader, min(possible), max(possible) + 1):
                    taken.update(range(made.target, made.target + PAGE_BYTES, 4) if made.is_lost else (made.target,))
            return taken
        for vaddr, raw in self._code:
            for match in _ADDRESSES.finditer(raw):
                at = match.end()
                taken.add(vaddr + at + 4 + _signed_word(raw, at)[0])
        return taken

    @cached_property
    def _code(self) -> list[tuple[int, bytes]]:
        loads = [load for load in self._image.loads if load.flags & abi.PF_X]
        return [(load.vaddr, bytes(self._image.bytes_at(load.offset, load.file_bytes, "a segment"))) for load in loads]

    def _is_stated(self, vaddr: int) -> bool:
        """Return whether a number anywhere in a program at a fixed address is the vaddr."""
        if self._image.type != abi.ET_EXEC:
            return False
        word = vaddr.to_bytes(4, "little")
        return any(
            word in bytes(self._image.bytes_at(load.offset, load.file_bytes, "a segment")) for load in self._image.loads
        )

    def _short_jumps(self, target: int) -> list[int]:
        """Return the vaddrs near a function from where two bytes may jump to it."""
        vaddrs = []
        for vaddr, raw in self._code:
            at = target - vaddr
            for start in range(max(0, at - _SHORT_BYTES), min(len(raw) - 1, at + _SHORT_BYTES)):
                distance = raw[start + 1] - 256 if raw[start + 1] > 127 else raw[start + 1]
                if start + 2 + distance == at and (raw[start] == 0xEB or raw[start] >> 4 == 7):
                    vaddrs.append(vaddr + start)
        return vaddrs
