"""Whether two places of one linked file hold the same: their bytes, and all that these refer to.

Names prove nothing here: `handle` of one source file may do something else than `handle` of another. So the contents of
variables and the code of functions are compared byte by byte. References may differ where they lead to places that are
the same in turn. What cannot be compared counts as different: memory that the program may write, code for other
processors than x86-64, functions that catch exceptions or clean up after them, and most constants without a name.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.function_starts import FunctionStarts
from footprint.elf.image import Buffer, Image, Section
from footprint.elf.initial import Initials
from footprint.elf.references import displacements
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import InputError

__all__ = ("Sameness", "is_constant", "is_merged", "is_of_compiler")

_MOST_PLACES: Final = 1 << 12
_LARGEST_BYTES: Final = 1 << 20
_LONGEST_TEXT_BYTES: Final = 1 << 16
# So much of what follows a text is compared where it may belong to the text.
_UNTOLD_BYTES: Final = 64
# Where compilers put variables by themselves.
_OF_COMPILER: Final = re.compile(r"\.(?:l?rodata|l?data|l?bss|rdata|s(?:data|bss)2?|tdata|tbss)(?:\.|$)|COMMON$")

Pair = tuple[int, int]


def is_constant(image: Image, section: Section) -> bool:
    """Return whether the program cannot write to a section after its start: it is read-only, or RELRO."""
    if section.is_tls:
        return False
    relro = image.segment(abi.PT_GNU_RELRO)
    is_relro = relro is not None and relro.vaddr <= section.vaddr < relro.vaddr + relro.memory_bytes
    return not section.is_writable or is_relro or section.name.startswith(".data.rel.ro")


def is_merged(section: Section) -> bool:
    """Return whether a linker makes one of all constants in a section that are the same; only objects have such."""
    return section.name.startswith(".rodata.cst")


def is_of_compiler(section: Section) -> bool:
    """Return whether a compiler chose a section; in one that the source names, code may find all that lies there."""
    return _OF_COMPILER.match(section.name) is not None


class _Place(NamedTuple):
    """The function or variable at a vaddr."""

    vaddr: int
    size_bytes: int
    section: Section


class Sameness:
    """Compares variables of one file.

    Args:
        statics: The variables of the file.
        initials: Their initial contents.
    """

    def __init__(self, statics: Statics, initials: Initials) -> None:
        self._statics = statics
        self._image = statics.image
        self._initials = initials
        self._can_read_code = self._image.machine == abi.EM_X86_64 and self._image.is_64
        self._functions = FunctionStarts(self._image)
        self._has_handlers = any(one.name.startswith(".gcc_except_table") for one in self._image.sections)
        self._needed: dict[Pair, list[Pair] | None] = {}

    def of(self, first: Symbol, second: Symbol) -> bool:
        """Return whether two variables begin with the same contents and refer to the same things."""
        return self._are_same(self._of_data(first, second))

    def own_places(self, copies: Sequence[Symbol]) -> dict[int, set[int]]:
        """Find the copies, and what they lead to and other copies have others for: variables, functions and texts.

        Returns by vaddr of each which addresses of such places it holds itself.
        """
        found: dict[int, set[int]] = {one.vaddr: set() for one in copies}
        for other in copies[1:]:
            begin, needed = (copies[0].vaddr, other.vaddr), self._of_data(copies[0], other)
            led_to = {pair: self._needed[pair] for pair in self._reached(needed) or ()}
            for pair, leads_to in ((begin, needed), *led_to.items()):
                # What code states is found in the code.
                is_code = pair != begin and self._is_code_at(pair[0])
                holds = [] if is_code else [one for one in leads_to or () if one[0] != one[1]]
                for side, vaddr in enumerate(pair):
                    found.setdefault(vaddr, set()).update(one[side] for one in holds)
        return found

    def of_functions(self, first_vaddr: int, second_vaddr: int) -> bool:
        """Return whether the functions at two vaddrs have the same code, and refer to the same things."""
        return self._are_same([(first_vaddr, second_vaddr)])

    def _are_same(self, todo: list[Pair] | None) -> bool:
        return self._reached(todo) is not None

    def _reached(self, todo: list[Pair] | None) -> set[Pair] | None:
        """Return the pairs of different places that some pairs lead to; None where one of them is not the same."""
        if todo is None:
            return None
        todo, seen = [*todo], set[Pair]()
        while todo:
            pair = todo.pop()
            if pair[0] == pair[1] or pair in seen:
                continue
            seen.add(pair)
            if pair not in self._needed:
                self._needed[pair] = self._compare(*pair)
            needed = self._needed[pair]
            if needed is None or len(seen) > _MOST_PLACES:
                return None
            todo += needed
        return seen

    def _compare(self, first: int, second: int) -> list[Pair] | None:
        """Return the further places that must be the same for two to be; None where these differ by themselves."""
        places = [self._place(vaddr) for vaddr in (first, second)]
        sections = [self._initials.section_at(vaddr) for vaddr in (first, second)]
        if sections[0] is None or sections[1] is None or not all(self._is_fixed(one) for one in sections):
            return None
        one, other = places
        if one is None or other is None:
            is_same = one is other and self._is_same_text(sections[0], first, sections[1], second)
            return [] if is_same else None
        if first - one.vaddr != second - other.vaddr or one.size_bytes != other.size_bytes:
            return None
        if first != one.vaddr:
            # An address inside of a function is a label: the code that uses it must be the one that has it.
            return None if _is_code(one.section) else [(one.vaddr, other.vaddr)]
        if not 0 < one.size_bytes <= _LARGEST_BYTES or _is_code(one.section) != _is_code(other.section):
            return None
        if _is_code(one.section):
            return self._of_code(one, other)
        return self._of_data(*(_symbol(each) for each in (one, other)))

    def _is_fixed(self, section: Section | None) -> bool:
        # Constants that the file holds: what objects leave undefined, and what the loader copies, may be anything.
        return section is not None and section.has_file_bytes and is_constant(self._image, section)

    def _is_code_at(self, vaddr: int) -> bool:
        section = self._initials.section_at(vaddr)
        return section is not None and _is_code(section)

    def _place(self, vaddr: int) -> _Place | None:
        extent = self._statics.extent_at(vaddr)
        section = None if extent is None else self._initials.section_at(extent[0])
        return None if extent is None or section is None else _Place(*extent, section)

    def _of_data(self, first: Symbol, second: Symbol) -> list[Pair] | None:
        """Compare the bytes of two variables, and return the places that their pointers lead to."""
        one, other = (self._initials.contents(static) for static in (first, second))
        if one is None or other is None or first.size_bytes != second.size_bytes:
            return None
        if (one.raw or bytes(first.size_bytes)) != (other.raw or bytes(first.size_bytes)):
            return None
        if one.pointers.keys() != other.pointers.keys():
            return None
        pairs: list[Pair] = []
        for at, target in one.pointers.items():
            its = other.pointers[at]
            if isinstance(target, int) and isinstance(its, int):
                pairs.append((target, its))
            elif target != its:
                return None
        return pairs

    def _of_code(self, first: _Place, second: _Place) -> list[Pair] | None:
        """Compare the code of two functions, and return the places that it refers to."""
        size_bytes = first.size_bytes
        one, other = (self._bytes(each.section, each.vaddr, size_bytes) for each in (first, second))
        if one is None or other is None or not self._can_read_code:
            return None
        if any(map(self._may_catch, (first.vaddr, second.vaddr))):
            # Which exceptions they catch stands in tables.
            return None
        pairs: list[Pair] = []
        told = set[int]()
        for at, sizes in displacements(one):
            targets = [
                (first.vaddr + at + 4 + size + _signed(one, at), second.vaddr + at + 4 + size + _signed(other, at))
                for size in sizes
            ]
            found = self._meant(targets, first, second)
            if found is not None:
                told.update(range(at, at + 4))
                pairs.append(found)
        for at in range(size_bytes):
            if one[at] != other[at] and at not in told:
                start = self._absolute(one, other, at)
                if start is None:
                    return None
                told.update(range(start, start + 4))
                pairs.append((_unsigned(one, start), _unsigned(other, start)))
        return pairs

    def _may_catch(self, vaddr: int) -> bool:
        return self._has_handlers and (not self._functions or self._functions.has_handlers(vaddr))

    def _meant(self, targets: Iterable[Pair], first: _Place, second: _Place) -> Pair | None:
        """Return the pair of targets that an instruction leads to; None where it leads nowhere."""
        in_file = [pair for pair in targets if any(self._initials.section_at(vaddr) for vaddr in pair)]
        for one, other in in_file:
            is_inside = 0 <= one - first.vaddr < first.size_bytes
            if one == other or (is_inside and one - first.vaddr == other - second.vaddr):
                return one, one
        return in_file[0] if in_file else None

    def _absolute(self, one: Buffer, other: Buffer, at: int) -> int | None:
        """Return where vaddrs of four bytes begin that hold a byte, in a program at a fixed address."""
        if self._image.type != abi.ET_EXEC:
            return None
        for start in range(max(0, at - 3), min(at, len(one) - 4) + 1):
            if all(self._initials.section_at(_unsigned(raw, start)) for raw in (one, other)):
                return start
        return None

    def _is_same_text(self, its: Section, first: int, others: Section, second: int) -> bool:
        if any(_is_code(one) or one.is_writable for one in (its, others)):
            return False
        one = self._text(its, first)
        if not one or one != self._text(others, second):
            return False
        if _holds_texts(its) and _holds_texts(others):
            return True
        # It may be the begin of numbers, of wide characters, or of a text of several parts.
        ends = (its.vaddr + its.size_bytes - first, others.vaddr + others.size_bytes - second)
        size_bytes = min(len(one) + _UNTOLD_BYTES, *ends)
        return self._bytes(its, first, size_bytes) == self._bytes(others, second, size_bytes)

    def _text(self, section: Section, vaddr: int) -> bytes | None:
        """Return the text at a vaddr up to its zero byte; None where it has none."""
        left = min(_LONGEST_TEXT_BYTES, section.vaddr + section.size_bytes - vaddr)
        raw = self._bytes(section, vaddr, left)
        end = -1 if raw is None else raw.find(b"\0")
        return None if raw is None or end < 0 else raw[:end]

    def _bytes(self, section: Section, vaddr: int, size_bytes: int) -> bytes | None:
        start = vaddr - section.vaddr
        if not section.has_file_bytes or not 0 <= start <= start + size_bytes <= section.size_bytes:
            return None
        try:
            return bytes(self._image.bytes_at(section.offset + start, size_bytes, section.name))
        except InputError:
            return None


def _symbol(place: _Place) -> Symbol:
    section = place.section
    offset = place.vaddr - section.vaddr
    return Symbol("", place.vaddr, place.size_bytes, abi.STT_OBJECT, abi.STB_LOCAL, section.index, offset)


def _holds_texts(section: Section) -> bool:
    """Return whether a section holds only texts, each up to its zero byte: linkers merge those."""
    return bool(section.flags & abi.SHF_STRINGS) and section.entry_bytes == 1


def _is_code(section: Section) -> bool:
    return bool(section.flags & abi.SHF_EXECINSTR)


def _signed(raw: Buffer, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], "little", signed=True)


def _unsigned(raw: Buffer, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], "little")
