"""Whether two places of one linked file hold the same: their bytes, and all that these refer to.

Names prove nothing here: `handle` of one source file may do something else than `handle` of another. So the contents of
variables and the code of functions are compared byte by byte. References may differ where they lead to places that are
the same in turn. What cannot be compared counts as different: memory that the program may write, code for other
processors than x86-64, and functions that catch exceptions or clean up after them. A constant without a name ends where
the next symbol is, the next place that code or a table refers to, or the section.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from footprint.elf import abi
from footprint.elf.functions import FunctionStarts
from footprint.elf.image import Buffer, Image, Section
from footprint.elf.initial import Initials
from footprint.elf.references import ReferencedPlace, can_find_references, displacements, find_references
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

_MOST_PLACES: Final = 1 << 12
_LARGEST_BYTES: Final = 1 << 20
_LONGEST_TEXT_BYTES: Final = 1 << 16
# Compilers put less zeros between two constants: they align them by themselves up to this.
_MOST_PADDING_BYTES: Final = 32
_MOST_TEXTS: Final = 1 << 14
# `push %rbp`, `mov %rsp, %rbp`, and a store of the first argument: so begins a function that no compiler optimised.
_UNOPTIMISED: Final = lazy_pattern(
    rb"(?:\xf3\x0f\x1e\xfa)?\x55\x48\x89\xe5\x53?(?:\x48(?:\x83\xec.|\x81\xec.{4}))?"
    rb"(?:\x48?\x89[\x7d\xbd]|[\xf2\xf3]\x0f\x11[\x45\x85])",
    re.DOTALL,
)
# On arm64 `stp x29, x30, [sp, #-number]!` and `mov x29, sp`, or `sub sp, sp, #number`, and such a store.
_OF_STACK: Final = b"[%s]" % re.escape(bytes(range(3, 256, 4)))
_UNOPTIMISED_ARM64: Final = lazy_pattern(
    rb"(?:\x3f\x23\x03\xd5|\x5f\x24\x03\xd5)?(?:\xfd\x7b[\x80-\xbf]\xa9\xfd\x03\0\x91(?:\xf3%b[\0-\x3f]\xf9)?"
    rb"|\xff%b.\xd1(?:\xfd\x7b.\xa9\xfd%b.\x91)?)"
    rb"(?:\xe0%b[\0-\x3f][\xb9\xf9\x39\x79\xbd\xfd]|\xa0.[\x10-\x1f][\xb8\xf8\x38\x78\xbc\xfc])" % ((_OF_STACK,) * 4),
    re.DOTALL,
)
_LONGEST_PROLOGUE_BYTES: Final = 24
# Where compilers put variables by themselves.
_OF_COMPILER: Final = lazy_pattern(r"\.(?:l?rodata|l?data|l?bss|rdata|s(?:data|bss)2?|tdata|tbss)(?:\.|$)|COMMON$")

Pair = tuple[int, int]


def is_constant(image: Image, section: Section) -> bool:
    """Return whether the program cannot write to a section after its start: it is read-only, or RELRO."""
    if section.is_tls:
        return False
    return not section.is_writable or is_in_relro(image, section) or section.name.startswith(".data.rel.ro")


def is_in_relro(image: Image, section: Section) -> bool:
    """Return whether the loader makes a section read-only after it has relocated it."""
    relro = image.segment(abi.PT_GNU_RELRO)
    return relro is not None and relro.vaddr <= section.vaddr < relro.vaddr + relro.memory_bytes


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
        asked: The variables that will be asked about.
    """

    def __init__(self, statics: Statics, initials: Initials, seeds: Iterable[Symbol] = ()) -> None:
        self._statics = statics
        self._seeds = seeds
        self._image = statics.image
        self._initials = initials
        self._can_read_code = self._image.machine == abi.EM_X86_64 and self._image.is_64
        self._functions = FunctionStarts(self._image)
        self._has_handlers = any(section.name.startswith(".gcc_except_table") for section in self._image.sections)
        self._needed: dict[Pair, list[Pair] | None] = {}
        self._edges: dict[int, tuple[list[int], frozenset[int]]] = {}

    def of(self, first: Symbol, second: Symbol) -> bool:
        """Return whether two variables begin with the same contents and refer to the same things."""
        return self._are_same(self._of_data(first, second))

    def own_places(self, copies: Sequence[Symbol]) -> dict[int, set[int]]:
        """Find the copies, and what they lead to and other copies have others for: variables, functions and texts.

        Returns by vaddr of each which addresses of such places it holds itself.
        """
        places_by_vaddr: dict[int, set[int]] = {copy.vaddr: set() for copy in copies}
        for other in copies[1:]:
            begin, needed = (copies[0].vaddr, other.vaddr), self._of_data(copies[0], other)
            led_to = {pair: self._needed[pair] for pair in self._reached(needed) or ()}
            for pair, leads_to in ((begin, needed), *led_to.items()):
                # What code states is found in the code.
                is_code = pair != begin and self._is_code_at(pair[0])
                holds = [] if is_code else [pair for pair in leads_to or () if pair[0] != pair[1]]
                for side, vaddr in enumerate(pair):
                    places_by_vaddr.setdefault(vaddr, set()).update(hold[side] for hold in holds)
        return places_by_vaddr

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
        if sections[0] is None or sections[1] is None or not all(self._is_fixed(section) for section in sections):
            return None
        left, other = places
        if left is None or other is None:
            is_same = left is other and self._is_same_unnamed(sections[0], first, sections[1], second)
            return [] if is_same else None
        if first - left.vaddr != second - other.vaddr or left.size_bytes != other.size_bytes:
            return None
        if first != left.vaddr:
            # An address inside of a function is a label: the code that uses it must be the one that has it.
            return None if _is_code(left.section) else [(left.vaddr, other.vaddr)]
        if not 0 < left.size_bytes <= _LARGEST_BYTES or _is_code(left.section) != _is_code(other.section):
            return None
        if _is_code(left.section):
            return self._of_code(left, other)
        return self._of_data(*(_symbol(place) for place in (left, other)))

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
        left, other = (self._initials.contents(static) for static in (first, second))
        if left is None or other is None or first.size_bytes != second.size_bytes:
            return None
        if (left.raw or bytes(first.size_bytes)) != (other.raw or bytes(first.size_bytes)):
            return None
        if left.pointers.keys() != other.pointers.keys():
            return None
        pairs: list[Pair] = []
        for at, target in left.pointers.items():
            its = other.pointers[at]
            if isinstance(target, int) and isinstance(its, int):
                pairs.append((target, its))
            elif target != its:
                return None
        return pairs

    def _of_code(self, first: _Place, second: _Place) -> list[Pair] | None:
        """Compare the code of two functions, and return the places that it refers to."""
        size_bytes = first.size_bytes
        left, other = (self._bytes(place.section, place.vaddr, size_bytes) for place in (first, second))
        if left is None or other is None or not self._can_read_code:
            return None
        if any(map(self._may_catch, (first.vaddr, second.vaddr))):
            # Which exceptions they catch stands in tables.
            return None
        pairs: list[Pair] = []
        compared = set[int]()
        for at, sizes in displacements(left):
            targets = [
                (first.vaddr + at + 4 + size + _signed(left, at), second.vaddr + at + 4 + size + _signed(other, at))
                for size in sizes
            ]
            pair = self._meant(targets, first, second)
            if pair is not None:
                compared.update(range(at, at + 4))
                pairs.append(pair)
        for at in range(size_bytes):
            if left[at] != other[at] and at not in compared:
                start = self._absolute(left, other, at)
                if start is None:
                    return None
                compared.update(range(start, start + 4))
                pairs.append((_unsigned(left, start), _unsigned(other, start)))
        return pairs

    def _may_catch(self, vaddr: int) -> bool:
        return self._has_handlers and (not self._functions or self._functions.has_handlers(vaddr))

    def _meant(self, targets: Iterable[Pair], first: _Place, second: _Place) -> Pair | None:
        """Return the pair of targets that an instruction leads to; None where it leads nowhere."""
        in_file = [pair for pair in targets if any(self._initials.section_at(vaddr) for vaddr in pair)]
        for left, other in in_file:
            is_inside = 0 <= left - first.vaddr < first.size_bytes
            if left == other or (is_inside and left - first.vaddr == other - second.vaddr):
                return left, left
        return in_file[0] if in_file else None

    def _absolute(self, left: Buffer, other: Buffer, at: int) -> int | None:
        """Return where vaddrs of four bytes begin that hold a byte, in a program at a fixed address."""
        if self._image.type != abi.ET_EXEC:
            return None
        for start in range(max(0, at - 3), min(at, len(left) - 4) + 1):
            if all(self._initials.section_at(_unsigned(raw, start)) for raw in (left, other)):
                return start
        return None

    def _is_same_unnamed(self, its: Section, first: int, others: Section, second: int) -> bool:
        if any(_is_code(section) or section.is_writable for section in (its, others)):
            return False
        if _holds_texts(its) and _holds_texts(others):
            text = self._text(its, first)
            return bool(text) and text == self._text(others, second)
        if {first, second} <= self._whole_texts:
            return self._text(its, first) == self._text(others, second)
        extents = self._extent_of_unnamed(its, first), self._extent_of_unnamed(others, second)
        left, other = self._bytes(its, first, extents[0]), self._bytes(others, second, extents[1])
        if left is None or other is None or not any(left) or max(extents) > _LARGEST_BYTES:
            return False
        common_bytes, padding = min(extents), max(left, other, key=len)[min(extents) :]
        return left[:common_bytes] == other[:common_bytes] and not any(padding) and len(padding) < _MOST_PADDING_BYTES

    def _extent_of_unnamed(self, section: Section, vaddr: int) -> int:
        """Return how far what lies at a vaddr may reach: to the next symbol, to what is referred to, or to the end."""
        if section.index not in self._edges:
            self._edges[section.index] = self._edges_of(section)
        edges, doubtful = self._edges[section.index]
        for number in range(bisect_right(edges, vaddr), len(edges)):
            raw = self._bytes(section, vaddr, edges[number] - vaddr) or b""
            text = raw.rstrip(b"\0")
            if edges[number] not in doubtful or text == raw or b"\0" in text:
                return edges[number] - vaddr
        return section.vaddr + section.size_bytes - vaddr

    def _edges_of(self, section: Section) -> tuple[list[int], frozenset[int]]:
        """Return where something begins in a section, and what of that may be in the middle of a text of two parts.

        Optimised code may state the address of the second part.
        """
        start, end = section.vaddr, section.vaddr + section.size_bytes
        edges, doubtful = {static.vaddr for static in self._statics.statics if start <= static.vaddr < end}, set[int]()
        if can_find_references(self._image):
            (references,) = find_references(self._image, [ReferencedPlace(start, end, is_code=False)])
            for reference in references:
                if reference.is_sure:
                    (edges if self._is_unoptimised(reference.vaddr) else doubtful).add(reference.target)
        return sorted(edges | doubtful), frozenset(doubtful - edges)

    @cached_property
    def _whole_texts(self) -> frozenset[int]:
        """The texts without a symbol that variables point to and that end with their zero byte: something follows.

        Without optimisation compilers leave equal texts apart. A reference into a text of two parts is one that they
        computed, so the function that has it must not be optimised.
        """
        sure, behind = set[int](), dict[int, int]()
        for text, section in islice(self._texts(), _MOST_TEXTS):
            start = text + len(self._text(section, text) or b"") + 1
            left = min(_MOST_PADDING_BYTES, section.vaddr + section.size_bytes - start)
            raw = self._bytes(section, start, left) or b""
            padding = len(raw) - len(raw.lstrip(b"\0"))
            ends = range(start, start + padding + 1)
            if padding == left < _MOST_PADDING_BYTES or any(self._statics.extent_at(end) for end in ends):
                sure.add(text)
            else:
                behind.update(dict.fromkeys(ends, text))
        if behind and can_find_references(self._image):
            places = [ReferencedPlace(at, at + 1, is_code=False) for at in sorted(behind)]
            for place, references in zip(places, find_references(self._image, places), strict=True):
                if any(reference.is_sure and self._is_unoptimised(reference.vaddr) for reference in references):
                    sure.add(behind[place.start_vaddr])
        return frozenset(sure)

    def _texts(self) -> Iterator[tuple[int, Section]]:
        """Return the places without a symbol that variables point to, and their sections."""
        for static in self._seeds:
            contents = self._initials.contents(static)
            for target in () if contents is None else contents.pointers.values():
                section = self._initials.section_at(target) if isinstance(target, int) else None
                if isinstance(target, int) and section is not None and self._statics.extent_at(target) is None:
                    yield target, section

    def _is_unoptimised(self, vaddr: int) -> bool:
        """Return whether a reference is in a function that is not optimised, or in a table (vaddr 0)."""
        function = self._statics.functions.at(vaddr) if vaddr else None
        section = None if function is None else self._initials.section_at(function.vaddr)
        if function is None or section is None:
            return not vaddr
        size_bytes = min(_LONGEST_PROLOGUE_BYTES, function.size_bytes)
        pattern = _UNOPTIMISED_ARM64 if self._image.machine == abi.EM_AARCH64 else _UNOPTIMISED
        return pattern.match(self._bytes(section, function.vaddr, size_bytes) or b"") is not None

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
