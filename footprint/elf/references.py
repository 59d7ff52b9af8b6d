"""What refers to an address of a linked file: its code, its tables, its relocations. x86-64 only.

Code is not disassembled: wherever four bytes would lead to the address as the displacement of an instruction, or are
the address itself in a program at a fixed place, or eight are its distance from the global offset table, as in the
medium and large code models, that counts as a reference. So some are found that are none, but none
of plain code is missed: that nothing refers to something is told on the safe side. Sure are only those where the opcode
before them tells where the instruction ends, and that end leads into what is asked about.

Source: Intel SDM volume 2, chapter 2 (RIP-relative addressing; the displacement may be followed by an immediate) and
appendix A (opcode maps).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from footprint.elf.dynamic import numbers, read_dynamic, words
from footprint.elf.image import ET_EXEC, PF_X, Image
from footprint.elf.relocations import addend_column

__all__ = ("EM_X86_64", "Place", "Reference", "can_be_told", "references_to")

EM_X86_64: Final = 62

# Looking at each byte of very large programs takes longer than anybody waits.
_MOST_CODE_BYTES: Final = 16 << 20
# By chance any four bytes lead anywhere. Of displacements one in 32 stands where an instruction would have one.
_ALIKE_BY_CHANCE: Final = 32
_MOST_BY_CHANCE: Final = 0.05
_MOVE_NUMBER: Final = 0xB8
_MOVES: Final = frozenset({0x63, 0x88, 0x89, 0x8A, 0x8B, 0x8D})
_RIP_RELATIVE: Final = frozenset(range(0x05, 0x40, 8))
_CALL_OR_JUMP: Final = frozenset({0xE8, 0xE9})
# Behind 0F.
_JUMP_IF: Final = frozenset(range(0x80, 0x90))
# What no displacement stands behind is passed over faster by a pattern than by a loop.
_BEFORE_DISPLACEMENT: Final = b"[%s]" % re.escape(bytes(_RIP_RELATIVE | _CALL_OR_JUMP | _JUMP_IF))
_LONGEST_IMMEDIATE_BYTES: Final = 4
# Whether an immediate stands behind the displacement, by the opcode; of `test` and `not` the middle of ModRM tells.
_BYTE_IMMEDIATE: Final = frozenset({0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6})
_WORD_IMMEDIATE: Final = frozenset({0x69, 0x81, 0xC7})
_TEST_BYTE: Final = 0xF6
_TEST_WORD: Final = 0xF7
_OF_MEMORY: Final = frozenset(
    {
        *(row + column for row in range(0, 0x40, 8) for column in range(4)),
        *(0x63, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8D, 0x8F),
        *(0xD0, 0xD1, 0xD2, 0xD3, _TEST_BYTE, _TEST_WORD, 0xFE, 0xFF, *range(0xD8, 0xE0)),
    }
)
_WITH_MODRM: Final = _BYTE_IMMEDIATE | _WORD_IMMEDIATE | _OF_MEMORY
# As a ModRM byte, none of these would be the last of its instruction.
_NEVER_LAST: Final = frozenset({0x63, 0x69, 0x6B, *range(0x80, 0x90)}) & _WITH_MODRM
_REX: Final = 4
_PREFIXES: Final = frozenset({0x66, 0xF0, 0xF2, 0xF3})
_BEHIND_0F_WITH_IMMEDIATE: Final = frozenset({0x0F, 0x70, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC6})
_OPERAND_SIZE: Final = 0x66
_VEX_2: Final = 0xC5
_VEX_3: Final = 0xC4
_EVEX: Final = 0x62
_XOP: Final = 0x8F
_SHORT_JUMPS: Final = frozenset({0xEB, 0xE0, 0xE1, 0xE2, 0xE3, *range(0x70, 0x80)})
# An index counts from some year, or from a letter of another alphabet.
_MOST_FAR_BYTES: Final = 1 << 17
# `movabs $imm64, %reg`, of which 32 bits tell all: it may stand within what looks like another.
_MOVE_WIDE: Final = re.compile(rb"(?=[\x48\x49][\xb8-\xbf](.{4}(?:\0{4}|\xff{4})))", re.DOTALL)
_DT_PLTGOT: Final = 3
_DT_INIT: Final = 12
_DT_FINI: Final = 13
_ENTRY_OFFSET: Final = 24
_FILE_HEADER_BYTES: Final = 64
_PROGRAM_HEADER_BYTES: Final = 56


class Place(NamedTuple):
    """Something that may be referred to; the addresses are half-open. Of code only its first address counts.

    Of a variable `before_bytes` say how far before it an address may still mean it: `table[i - 1]` is reached from the
    element before the first; and `behind_bytes` how far behind it, as the end of a loop does.
    """

    start_vaddr: int
    end_vaddr: int
    is_code: bool
    before_bytes: int = 0
    behind_bytes: int = 0


class Reference(NamedTuple):
    """What refers to a place.

    Attributes:
        vaddr: Where it stands; 0 for what the loader or a table refers to.
        is_sure: Whether it leads there and nowhere else, if it is code at all.
        is_far: Whether it leads there only if an index counts from far away, and most likely elsewhere.
    """

    vaddr: int
    is_sure: bool
    is_far: bool = False


def can_be_told(image: Image, size_bytes: int = 1) -> bool:
    """Tell whether what refers to so many bytes of a file can be told from what looks so by chance."""
    if image.machine != EM_X86_64 or not image.is_64 or image.is_relocatable:
        return False
    code_bytes = sum(one.file_bytes for one in image.loads if one.flags & PF_X)
    by_chance = code_bytes * size_bytes / (1 << 32) / (1 if image.type == ET_EXEC else _ALIKE_BY_CHANCE)
    return code_bytes <= _MOST_CODE_BYTES and by_chance <= _MOST_BY_CHANCE


def references_to(
    image: Image, places: Sequence[Place], starts: Collection[int] | None = None
) -> list[list[Reference]]:
    """Give for each place what refers to it.

    Args:
        image: A file of which `can_be_told` is true.
        places: Ascending, none overlapping another.
        starts: Where all variables begin, if the places are variables: in a program at a fixed place
            `days[year - 1900]` leads far before one, into another perhaps, but hardly to where one begins.

    Raises:
        InputError: Where a table or segment lies outside of the file.
    """
    found: list[list[Reference]] = [[] for _ in places]
    if not places:
        return found
    finder = _Finder(places, found, starts)
    headers_bytes = _FILE_HEADER_BYTES + _PROGRAM_HEADER_BYTES * len(image.segments)
    dynamic = read_dynamic(image)
    offset_tables = {one.vaddr for one in image.sections if one.name in {".got", ".got.plt"} and one.vaddr}
    if (vaddr := dynamic.get(_DT_PLTGOT)) is not None:
        offset_tables.add(vaddr)
    for segment in image.loads:
        # The headers of the file, which tell where segments begin, refer to nothing.
        skipped_bytes = 0 if segment.offset else min(segment.file_bytes, headers_bytes)
        raw = image.bytes_at(segment.offset + skipped_bytes, segment.file_bytes - skipped_bytes, "a segment")
        if segment.flags & PF_X:
            finder.look_at_code(raw, segment.vaddr + skipped_bytes, is_fixed=image.type == ET_EXEC)
            finder.look_at_distances(raw, segment.vaddr + skipped_bytes, offset_tables)
        else:
            finder.look_at_words(numbers(image, raw))
            if image.type == ET_EXEC:
                finder.look_at_words(words(image, raw, 4))
    finder.look_at_words(addend_column(image))
    entry = int.from_bytes(image.data[_ENTRY_OFFSET : _ENTRY_OFFSET + 8], "little")
    finder.look_at_words([vaddr for vaddr in (entry, dynamic.get(_DT_INIT), dynamic.get(_DT_FINI)) if vaddr])
    return found


class _Finder:
    def __init__(self, places: Sequence[Place], found: list[list[Reference]], starts: Collection[int] | None) -> None:
        self._places = places
        self._begins = frozenset(starts or ())
        self._far_bytes = 0 if starts is None else _MOST_FAR_BYTES
        self._found = found
        self._starts = [one.start_vaddr for one in places]
        self._before_bytes = max(one.before_bytes for one in places)
        self._low = places[0].start_vaddr - _LONGEST_IMMEDIATE_BYTES - self._before_bytes
        self._high = max(one.end_vaddr + one.behind_bytes for one in places)

    def look_at_words(self, words: Iterable[int]) -> None:
        """Take every word that is an address of a place for a reference."""
        low, high = self._places[0].start_vaddr, self._high
        for word in {word for word in words if low <= word < high}:
            self._note(word, 0, (0,))

    def look_at_code(self, raw: bytes | memoryview, vaddr: int, *, is_fixed: bool) -> None:
        """Take every four bytes that lead to a place for a reference."""
        low, high = self._low, self._high
        third, fourth = _upper_bytes(low - vaddr - len(raw), high - vaddr)
        for match in re.finditer(b"%s(?=..%s%s)" % (_BEFORE_DISPLACEMENT, third, fourth), raw, re.DOTALL):
            at = match.end()
            target = vaddr + at + 4 + _word_at(raw, at)
            if low <= target < high:
                before = raw[at - 1]
                if before in _RIP_RELATIVE:
                    sizes, is_known = _immediate_sizes(raw, at - 1)
                    self._note(target, vaddr + at, sizes, is_known=is_known)
                elif before in _CALL_OR_JUMP or _is_jump_if(raw, at):
                    self._note(target, vaddr + at, (0,), is_known=False)
        if is_fixed:
            self._look_at_addresses(raw, vaddr)
        self._short_jumps(raw, vaddr)

    def _look_at_addresses(self, raw: bytes | memoryview, vaddr: int) -> None:
        """Take every four bytes in code that are an address of a place for a reference."""
        low, high = self._low - self._far_bytes, self._high
        third, fourth = _upper_bytes(low, high)
        # The third first: the fourth is a zero in most programs, of which code is full.
        for match in re.finditer(b"%s(?=%s)" % (third, fourth), raw):
            at = match.start() - 2
            target = _word_at(raw, at) if at >= 0 else low - 1
            if low <= target < high:
                is_far = target not in self._begins and _is_indexed(raw, at)
                self._note(target, vaddr + at, (0,), far_bytes=self._far_bytes if is_far else 0)

    def look_at_distances(self, raw: bytes | memoryview, vaddr: int, bases: Collection[int]) -> None:
        """Take every distance from a base to a place for a reference."""
        for match in _MOVE_WIDE.finditer(raw):
            distance = int.from_bytes(match[1], "little", signed=True)
            for base in bases:
                if self._low <= base + distance < self._high:
                    self._note(base + distance, vaddr + match.start(1), (0,), is_known=False)

    def _short_jumps(self, raw: bytes | memoryview, vaddr: int) -> None:
        """Look for jumps of two bytes, which reach 128 bytes, to the beginning of code."""
        for number, place in enumerate(self._places):
            at = place.start_vaddr - vaddr
            if place.is_code and 0 <= at < len(raw):
                for start in range(max(0, at - 129), min(len(raw) - 1, at + 127)):
                    distance = raw[start + 1] - 256 if raw[start + 1] > 127 else raw[start + 1]
                    if raw[start] in _SHORT_JUMPS and start + 2 + distance == at:
                        self._found[number].append(Reference(vaddr + start, is_sure=False))

    def _note(
        self, target: int, at: int, immediate_sizes: Sequence[int], *, is_known: bool = True, far_bytes: int = 0
    ) -> None:
        """Take what leads to an address, or some bytes behind it: one number where the opcode tells, else several."""
        slack_bytes = max(immediate_sizes)
        first = max(0, bisect_right(self._starts, target) - 1)
        past = bisect_left(self._starts, target + slack_bytes + max(self._before_bytes, far_bytes) + 1)
        for number in range(first, past):
            place = self._places[number]
            near = place.start_vaddr - place.before_bytes
            low = min(near, place.start_vaddr - far_bytes)
            high = place.start_vaddr + 1 if place.is_code else place.end_vaddr + place.behind_bytes
            hits = [low <= target + size < high for size in immediate_sizes]
            if any(hits):
                is_within = (
                    place.start_vaddr <= target + min(immediate_sizes) and target + slack_bytes < place.end_vaddr
                )
                is_far = target + max(immediate_sizes) < near
                self._found[number].append(Reference(at, is_within and is_known, is_far))


def _upper_bytes(low: int, high: int) -> tuple[bytes, bytes]:
    """Give patterns of the upper two bytes that words from `low` to `high` have; some other words have them, too."""
    # Of 256 numbers in a row the lower bytes are all that there are.
    third, fourth = ({n & 0xFF for n in range(low >> bits, (high >> bits) + 1)[:256]} for bits in (16, 24))
    return b"[%s]" % re.escape(bytes(third)), b"[%s]" % re.escape(bytes(fourth))


def _word_at(raw: bytes | memoryview, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], "little", signed=True)


def _is_indexed(raw: bytes | memoryview, at: int) -> bool:
    """Tell whether a register may be added to a displacement, by the bytes before it: ModRM, or ModRM and SIB."""
    if at < 2:  # an opcode and ModRM
        return False
    before, last = raw[at - 2], raw[at - 1]
    if (before & 0xC7 == 0x04 and last & 7 == 5) or before & 0xC7 == 0x84:  # bits of ModRM and SIB
        return True
    # `b8` to `bf` move the number itself into a register, unless they are the ModRM of the byte before.
    return last & 0xC0 == 0x80 and last & 7 != 4 and (last < _MOVE_NUMBER or before in _MOVES)


def _is_jump_if(raw: bytes | memoryview, at: int) -> bool:
    """Tell whether a displacement stands behind the opcode of a conditional jump."""
    return at > 1 and raw[at - 2] == 0x0F and raw[at - 1] in _JUMP_IF


def _immediate_sizes(raw: bytes | memoryview, at: int) -> tuple[Sequence[int], bool]:
    """Tell how many bytes may follow the displacement behind a ModRM byte, by the opcode before that.

    Where bytes before the opcode may belong to it or not, both are told; where the opcode is unknown, all are. Also
    tells whether it is known to be one: `89 f0 25 00 f0 00 00` moves, and then masks (25) with what stands behind.
    """
    # The nearest first: the opcode, and what may be its prefixes.
    opcode, *before = bytes(raw[max(0, at - 5) : at])[::-1] + bytes(max(0, 5 - at))
    sizes = set[int]()
    if opcode in _BYTE_IMMEDIATE or (opcode == _TEST_BYTE and raw[at] >> 3 & 7 < 2):
        sizes.add(1)
    elif opcode in _WORD_IMMEDIATE or (opcode == _TEST_WORD and raw[at] >> 3 & 7 < 2):
        sizes |= {2, 4} if _OPERAND_SIZE in before[:3] else {4}
    elif opcode in _OF_MEMORY:
        sizes.add(0)
    if before[0] == 0x0F:
        sizes.add(1 if opcode in _BEHIND_0F_WITH_IMMEDIATE else 0)
    if before[:2] == [0x3A, 0x0F]:
        sizes.add(1)
    if before[1] == _VEX_2 or before[2] == _VEX_3 or before[3] == _EVEX:
        sizes |= {0, 1}
    if before[2] == _XOP:
        sizes |= {0, 1, 4}
    prefix_count = 1 if before[0] >> 4 == _REX or before[0] in _PREFIXES else 0
    is_known = before[0] == 0x0F or opcode in _NEVER_LAST
    is_known |= opcode in _WITH_MODRM and before[prefix_count] not in _WITH_MODRM
    return tuple(sizes) or (0, 1, 2, 4), bool(sizes) and is_known
