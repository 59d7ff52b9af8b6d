"""What refers to a vaddr of a linked file: its code, its tables, its relocations. x86-64 and arm64 only.

Code of x86-64 is not disassembled. Any four bytes count as a reference that lead to the vaddr as the displacement of an
instruction, or that are the vaddr itself in a program at a fixed address. So do eight bytes that are its distance from
the global offset table, as in the medium and large code models. So some references are found that are none, but none of
plain code is missed: what has no reference is certainly not referred to. A reference is sure only where the opcode
before the displacement determines the end of the instruction.

Source: Intel SDM volume 2, chapter 2 (RIP-relative addressing; the displacement may be followed by an immediate) and
appendix A (opcode maps).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from struct import Struct
from sys import maxsize
from typing import TYPE_CHECKING, Final

from footprint.elf import abi
from footprint.elf.dynamic import numbers, read_dynamic, words
from footprint.elf.functions import read_functions
from footprint.elf.image import Buffer, Image
from footprint.elf.relocations import relocated_words
from footprint.elf.symbols import Symbol
from footprint.members import NamedTuple, lazy_pattern

if TYPE_CHECKING:
    from footprint.elf.code_reader import CodeReader

# A search through all bytes of a larger program takes too long.
_MOST_CODE_BYTES: Final = 16 << 20
_MOST_ARM64_CODE_BYTES: Final = 8 << 20
# Any four bytes can be a displacement by chance. One in 32 of them follows bytes that look like an opcode.
_ALIKE_BY_CHANCE: Final = 32
_MOST_BY_CHANCE: Final = 0.05
_MOVE_NUMBER: Final = 0xB8
_MOVES: Final = frozenset({0x63, 0x88, 0x89, 0x8A, 0x8B, 0x8D})
_RIP_RELATIVE: Final = frozenset(range(0x05, 0x40, 8))
_CALL_OR_JUMP: Final = frozenset({0xE8, 0xE9})
# After 0F.
_JUMP_IF: Final = frozenset(range(0x80, 0x90))
_BEFORE_DISPLACEMENT: Final = b"[%s]" % re.escape(bytes(_RIP_RELATIVE | _CALL_OR_JUMP | _JUMP_IF))
_LONGEST_IMMEDIATE_BYTES: Final = 4
# Opcodes with an immediate after the displacement. For F6 and F7 the middle bits of ModRM decide (`test` or `not`).
_BYTE_IMMEDIATE: Final = frozenset({0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6})
_WORD_IMMEDIATE: Final = frozenset({0x69, 0x81, 0xC7})
_TEST_BYTE: Final = 0xF6
_TEST_WORD: Final = 0xF7
_WITHOUT_IMMEDIATE: Final = frozenset(
    {
        *(row + column for row in range(0, 0x40, 8) for column in range(4)),
        *(0x63, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8D, 0x8F),
        *(0xD0, 0xD1, 0xD2, 0xD3, _TEST_BYTE, _TEST_WORD, 0xFE, 0xFF, *range(0xD8, 0xE0)),
    }
)
_WITH_MODRM: Final = _BYTE_IMMEDIATE | _WORD_IMMEDIATE | _WITHOUT_IMMEDIATE
# As ModRM bytes these have a displacement, so they are not the last byte of the instruction before.
_NEVER_LAST: Final = frozenset({0x63, 0x69, 0x6B, *range(0x80, 0x90)}) & _WITH_MODRM
_REX: Final = 4
_PREFIXES: Final = frozenset({0x66, 0xF0, 0xF2, 0xF3})
_AFTER_0F_WITH_IMMEDIATE: Final = frozenset({0x0F, 0x70, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC6})
_OPERAND_SIZE: Final = 0x66
_VEX_2: Final = 0xC5
_VEX_3: Final = 0xC4
_EVEX: Final = 0x62
_XOP: Final = 0x8F
_SHORT_JUMPS: Final = frozenset({0xEB, 0xE0, 0xE1, 0xE2, 0xE3, *range(0x70, 0x80)})
# An index may count from a year, or from a letter of another alphabet.
_MOST_FAR_BYTES: Final = 1 << 17
# `movabs $imm64, %reg` with a number of 32 bits; the bytes may overlap what looks like another instruction. The search
# begins with the opcode: the prefix before it is a frequent byte.
_MOVE_WIDE: Final = lazy_pattern(rb"[\xb8-\xbf](?<=[\x48\x49].)(?=(.{4}(?:\0{4}|\xff{4})))", re.DOTALL)
# An index that begins at 1 refers to a vaddr before the variable; so do the two indexes of a table of tables.
_MOST_BEFORE_BYTES: Final = 1024
_RELOCATIONS: Final = frozenset({abi.SHT_RELA, abi.SHT_REL, abi.SHT_RELR})
# `lea distance(%rip), %reg`.
_LOAD_ADDRESS: Final = lazy_pattern(rb"\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=.{4})", re.DOTALL)
_LARGEST_TABLE_BYTES: Final = 1 << 14
_signed_word: Final = Struct("<i").unpack_from
_ENTRY_OFFSET: Final = 24
_FILE_HEADER_BYTES: Final = 64
_PROGRAM_HEADER_BYTES: Final = 56


class ReferencedPlace(NamedTuple):
    """A variable or function, as a half-open range of vaddrs. A reference to a function is one to its first byte.

    Attributes:
        start_vaddr: Its first byte.
        end_vaddr: The end of it.
        is_code: Whether it is a function.
        before_bytes: How far before a variable a vaddr may still mean it: `table[i - 1]` is reached from there.
        after_bytes: How far after a variable a vaddr may still mean it, as the end of a loop does.
    """

    start_vaddr: int
    end_vaddr: int
    is_code: bool
    before_bytes: int = 0
    after_bytes: int = 0


class Reference(NamedTuple):
    """A reference to a place.

    Attributes:
        vaddr: Where it is in the code; 0 where a table or the loader refers to the place.
        is_sure: Whether it refers to the place and to nothing else, provided that it is code.
        target: The vaddr that it refers to; where it is not sure, one of several.
        is_lost: Whether the place may be reached from there in a way that is not followed.
        is_end: Whether it can only mean what is behind the place.
    """

    vaddr: int
    is_sure: bool
    target: int = 0
    is_lost: bool = False
    is_end: bool = False


def place_of_variable(variable: Symbol, starts: Sequence[int]) -> ReferencedPlace:
    """Return the vaddrs that may mean a variable: also those before and just after it, up to other variables.

    `starts` has the vaddrs of all variables, ascending.
    """
    number = bisect_left(starts, variable.vaddr)
    before_bytes = min(_MOST_BEFORE_BYTES, variable.vaddr - starts[number - 1] - 1) if number else _MOST_BEFORE_BYTES
    end_vaddr = variable.vaddr + variable.size_bytes
    is_followed = number + 1 < len(starts) and starts[number + 1] == end_vaddr
    before_bytes = max(0, before_bytes)
    return ReferencedPlace(
        variable.vaddr, end_vaddr, is_code=False, before_bytes=before_bytes, after_bytes=not is_followed
    )


def can_find_references(image: Image, size_bytes: int = 1) -> bool:
    """Return whether references to a variable of this size can be told from bytes that look alike by chance."""
    if not image.is_64 or image.is_relocatable:
        return False
    if image.machine == abi.EM_AARCH64 and image.is_little:
        # Instructions are decoded there, and nothing looks alike by chance.
        return sum(load.file_bytes for load in image.loads if load.flags & abi.PF_X) <= _MOST_ARM64_CODE_BYTES
    if image.machine != abi.EM_X86_64:
        return False
    code_bytes = sum(load.file_bytes for load in image.loads if load.flags & abi.PF_X)
    by_chance = code_bytes * size_bytes / (1 << 32) / (1 if image.type == abi.ET_EXEC else _ALIKE_BY_CHANCE)
    return code_bytes <= _MOST_CODE_BYTES and by_chance <= _MOST_BY_CHANCE


def find_references(
    image: Image,
    places: Sequence[ReferencedPlace],
    starts: Collection[int] | None = None,
    *,
    most: int | None = None,
    reader: "CodeReader | None" = None,
) -> list[list[Reference]]:
    """Find the references to each place.

    Args:
        image: A file for which `can_find_references` is true.
        places: Ascending, without overlaps.
        starts: The first vaddrs of all variables, if the places are variables. In a program at a fixed address
            `days[year - 1900]` refers to a vaddr far before `days`: it may lie in another variable, but it is hardly
            the first byte of one.
        most: How many references of each place are enough, though more may be returned; all without it.
        reader: Reads the functions of the file; without it one is made where that takes it.
    """
    references: list[list[Reference]] = [[] for _ in places]
    if not places:
        return references
    finder = _Finder(places, references, starts, maxsize if most is None else most)
    is_fixed = image.type == abi.ET_EXEC
    headers_bytes = _FILE_HEADER_BYTES + _PROGRAM_HEADER_BYTES * len(image.segments)
    dynamic = read_dynamic(image)
    offset_tables = {s.vaddr for s in image.sections if s.name in {".got", ".got.plt"} and s.vaddr}
    if (vaddr := dynamic.get(abi.DT_PLTGOT)) is not None:
        offset_tables.add(vaddr)
    for segment in image.loads:
        # The headers of the file have the vaddrs of segments, which are no references.
        skipped_bytes = 0 if segment.offset else min(segment.file_bytes, headers_bytes)
        raw = image.bytes_at(segment.offset + skipped_bytes, segment.file_bytes - skipped_bytes, "a segment")
        if segment.flags & abi.PF_X and image.machine == abi.EM_X86_64:
            finder.search_code(raw, segment.vaddr + skipped_bytes, is_fixed=is_fixed)
            finder.search_distances(raw, segment.vaddr + skipped_bytes, offset_tables)
            continue
        for start, piece in _without_relocations(image, segment.vaddr + skipped_bytes, raw):
            finder.search_words(numbers(image, piece), range(start, start + len(piece), image.word_bytes))
            if is_fixed:
                finder.search_words(words(image, piece, 4), range(start, start + len(piece), 4))
    if image.machine == abi.EM_AARCH64:
        finder.search_arm64(image, reader or _code_reader(image))
    vaddrs, addends = relocated_words(image)
    finder.search_words(addends, vaddrs)
    entry = int.from_bytes(image.data[_ENTRY_OFFSET : _ENTRY_OFFSET + 8], "little")
    starts_of_program = [vaddr for vaddr in (entry, dynamic.get(abi.DT_INIT), dynamic.get(abi.DT_FINI)) if vaddr]
    finder.search_words(starts_of_program, [0] * len(starts_of_program))
    return references


def _code_reader(image: Image) -> "CodeReader":
    from footprint.elf.code_reader import CodeReader  # noqa: PLC0415 # its import takes 20,000,000 instructions

    return CodeReader(image, read_functions(image))


def distance_targets(image: Image, named: Container[int]) -> frozenset[int]:
    """Return what tables of distances lead to, as clang makes them of tables of addresses in code for any place.

    Such a table has no symbol, its address is stated by code (`lea`), and each four bytes are the distance from it to
    something else in the data of the file. `named` are the vaddrs that have symbols.
    """
    comment = next((section for section in image.sections if section.name == ".comment"), None)
    if image.type == abi.ET_EXEC or (comment is not None and b"clang" not in bytes(image.section_bytes(comment))):
        return frozenset()
    # Constants may lie in one segment with code.
    data = [s for s in image.sections if s.is_in_memory and not s.flags & abi.SHF_EXECINSTR and not s.is_tls]
    bases = set[int]()
    if image.machine == abi.EM_AARCH64 and data:
        from footprint.elf.arm64_references import addresses_in_code  # noqa: PLC0415 # other machines need none of it

        reader = _code_reader(image)
        first, end = min(s.vaddr for s in data), max(s.vaddr + s.size_bytes for s in data)
        bases |= {a.target for a in addresses_in_code(image, reader, first, end) if not a.is_lost}
    for segment in image.loads:
        if segment.flags & abi.PF_X and image.machine == abi.EM_X86_64:
            raw = image.bytes_at(segment.offset, segment.file_bytes, "a segment")
            for match in _LOAD_ADDRESS.finditer(raw):
                at = match.end()
                bases.add(segment.vaddr + at + 4 + _signed_word(raw, at)[0])
    targets = set[int]()
    for base in bases:
        holder = next((s for s in data if s.vaddr <= base < s.vaddr + s.size_bytes), None)
        if holder is None or not holder.has_file_bytes or base in named:
            continue
        left = min(_LARGEST_TABLE_BYTES, holder.vaddr + holder.size_bytes - base) & ~3
        raw = image.bytes_at(holder.offset + base - holder.vaddr, left, "a table of distances")
        for number, distance in enumerate(words(image, raw, 4)):
            target = base + distance - (1 << 32 if distance >> 31 else 0)
            is_inside = base <= target < base + 4 * number + 4
            if is_inside or not any(s.vaddr <= target < s.vaddr + s.size_bytes for s in data):
                break
            targets.add(target)
    return frozenset(targets)


def _without_relocations(image: Image, vaddr: int, raw: Buffer) -> Iterator[tuple[int, Buffer]]:
    """Return the parts of a segment, each with its vaddr, but for tables of relocations.

    These have the vaddrs of what the loader writes to.
    """
    start = 0
    for section in sorted(image.sections, key=lambda s: s.vaddr):
        first = section.vaddr - vaddr
        if section.type in _RELOCATIONS and section.is_in_memory and start <= first < len(raw):
            yield vaddr + start, raw[start:first]
            start = first + section.size_bytes
    yield vaddr + start, raw[start:]


def displacements(raw: Buffer) -> Iterator[tuple[int, Sequence[int]]]:
    """Return where code may hold a displacement of four bytes, each with the possible sizes of what follows it."""
    for match in re.finditer(b"(?=%s.{4})" % _BEFORE_DISPLACEMENT, raw, re.DOTALL):
        at = match.start() + 1
        before = raw[at - 1]
        if before in _RIP_RELATIVE:
            yield at, _immediate_sizes(raw, at - 1)[0]
        elif before in _CALL_OR_JUMP or _is_jump_if(raw, at):
            yield at, (0,)


class _Finder:
    """Adds to the references of each place those that it finds in code and tables."""

    def __init__(
        self,
        places: Sequence[ReferencedPlace],
        references: list[list[Reference]],
        starts: Collection[int] | None,
        most: int,
    ) -> None:
        self._places = places
        self._most = most
        self._variable_starts = frozenset(starts or ())
        self._far_bytes = 0 if starts is None else _MOST_FAR_BYTES
        self._references = references
        self._starts = [place.start_vaddr for place in places]
        self._before_bytes = max(place.before_bytes for place in places)
        self._low = places[0].start_vaddr - _LONGEST_IMMEDIATE_BYTES - self._before_bytes
        self._ends = [place.end_vaddr + place.after_bytes for place in places]
        self._high = max(self._ends)

    def search_words(self, words: Iterable[int], vaddrs: Iterable[int]) -> None:
        """Add each word that is a vaddr of a place, unless the place itself holds it; `vaddrs` says where each is."""
        low, high = self._places[0].start_vaddr, self._high
        inside = {word for word in words if low <= word < high}
        for vaddr, word in zip(vaddrs, words, strict=False) if inside else ():
            if word in inside:
                self._add(word, 0, (0,), holder=vaddr)

    def search_code(self, raw: Buffer, vaddr: int, *, is_fixed: bool) -> None:
        """Add the displacements and short jumps that lead to a place, and its vaddrs in code at a fixed address."""
        low, high = self._low, self._high
        third, fourth = _upper_bytes(low - vaddr - len(raw), high - vaddr)
        for match in re.finditer(b"%s(?=..%s%s)" % (_BEFORE_DISPLACEMENT, third, fourth), raw, re.DOTALL):
            at = match.end()
            (displacement,) = _signed_word(raw, at)
            target = vaddr + at + 4 + displacement
            if low <= target < high and self._is_asked(target):
                before = raw[at - 1]
                if before in _RIP_RELATIVE:
                    sizes, is_known = _immediate_sizes(raw, at - 1)
                    self._add(target, vaddr + at, sizes, is_known=is_known)
                elif before in _CALL_OR_JUMP or _is_jump_if(raw, at):
                    self._add(target, vaddr + at, (0,), is_known=False)
        if is_fixed:
            self._search_vaddrs(raw, vaddr)
        self._search_short_jumps(raw, vaddr)

    def search_arm64(self, image: Image, reader: "CodeReader") -> None:
        """Add the addresses that the code of arm64 means."""
        from footprint.elf import arm64_references  # noqa: PLC0415 # other machines need none of it

        for target, vaddr, is_certain, is_lost in arm64_references.addresses_in_code(
            image, reader, self._low, self._high
        ):
            if not is_lost:
                self._add(target, vaddr, (0,), is_known=is_certain)
                continue
            first = bisect_left(self._ends, target - arm64_references.LOST_BEFORE_BYTES)
            for number in range(first, bisect_left(self._starts, target + arm64_references.LOST_AFTER_BYTES)):
                self._references[number].append(Reference(vaddr, is_sure=False, target=target, is_lost=True))
        if any(place.is_code for place in self._places):
            for target, vaddr in arm64_references.jumps_in_code(image):
                self._add(target, vaddr, (0,), is_known=False)

    def _is_asked(self, target: int) -> bool:
        """Return whether a displacement may mean a place that has too few references yet."""
        number = bisect_right(self._starts, target + _LONGEST_IMMEDIATE_BYTES + self._before_bytes) - 1
        while number >= 0:
            if target < self._ends[number] and len(self._references[number]) < self._most:
                return True
            number = -1 if self._starts[number] <= target else number - 1
        return False

    def search_distances(self, raw: Buffer, vaddr: int, bases: Collection[int]) -> None:
        """Add each number that is the distance from a base to a place."""
        for match in _MOVE_WIDE.finditer(raw):
            distance = int.from_bytes(match[1], "little", signed=True)
            for base in bases:
                if self._low <= base + distance < self._high:
                    self._add(base + distance, vaddr + match.start(1), (0,), is_known=False)

    def _search_vaddrs(self, raw: Buffer, vaddr: int) -> None:
        """Add each four bytes of code that are a vaddr of a place."""
        low, high = self._low - self._far_bytes, self._high
        third, fourth = _upper_bytes(low, high)
        # The pattern begins with the third byte: the fourth is zero in most programs, and code is full of zeros.
        for match in re.finditer(b"%s(?=%s)" % (third, fourth), raw):
            at = match.start() - 2
            (target,) = _signed_word(raw, at) if at >= 0 else (low - 1,)
            if low <= target < high:
                is_far = target not in self._variable_starts and _is_indexed(raw, at)
                self._add(target, vaddr + at, (0,), far_bytes=self._far_bytes if is_far else 0)

    def _search_short_jumps(self, raw: Buffer, vaddr: int) -> None:
        """Add the jumps of two bytes to the start of a function; they reach 128 bytes."""
        for number, place in enumerate(self._places):
            at = place.start_vaddr - vaddr
            if place.is_code and 0 <= at < len(raw):
                for start in range(max(0, at - 129), min(len(raw) - 1, at + 127)):
                    distance = raw[start + 1] - 256 if raw[start + 1] > 127 else raw[start + 1]
                    if raw[start] in _SHORT_JUMPS and start + 2 + distance == at:
                        self._references[number].append(Reference(vaddr + start, is_sure=False))

    def _add(
        self,
        target: int,
        at: int,
        immediate_sizes: Sequence[int],
        *,
        is_known: bool = True,
        far_bytes: int = 0,
        holder: int = 0,
    ) -> None:
        """Add a reference to each place that a target may mean: the vaddr it leads to, if no immediate follows.

        An immediate moves the target further by its size. `is_known`: the bytes before are certainly an opcode.
        `far_bytes`: how far before a place a target may still mean it. `holder`: the vaddr of the word that refers.
        """
        slack_bytes = max(immediate_sizes)
        first = max(0, bisect_left(self._starts, target) - 1)
        past = bisect_left(self._starts, target + slack_bytes + max(self._before_bytes, far_bytes) + 1)
        for number in range(first, past):
            place = self._places[number]
            low = place.start_vaddr - max(place.before_bytes, far_bytes)
            high = place.start_vaddr + 1 if place.is_code else place.end_vaddr + place.after_bytes
            is_own = place.start_vaddr <= holder < place.end_vaddr
            if not is_own and any(low <= target + size < high for size in immediate_sizes):
                is_inside = (
                    place.start_vaddr <= target + min(immediate_sizes) and target + slack_bytes < place.end_vaddr
                )
                is_end = all(target + size >= place.end_vaddr for size in immediate_sizes)
                is_sure = is_inside and is_known
                self._references[number].append(Reference(at, is_sure, target + slack_bytes, is_end=is_end))


def _upper_bytes(low: int, high: int) -> tuple[bytes, bytes]:
    """Return patterns for the third and fourth byte of the numbers from `low` to `high`; some others match as well."""
    # 256 consecutive numbers have all low bytes that there are.
    third, fourth = ({n & 0xFF for n in range(low >> bits, (high >> bits) + 1)[:256]} for bits in (16, 24))
    return b"[%s]" % re.escape(bytes(third)), b"[%s]" % re.escape(bytes(fourth))


def _is_indexed(raw: Buffer, at: int) -> bool:
    """Return whether a register may be added to a displacement: the bytes before it are ModRM, or ModRM and SIB."""
    if at < 2:  # an opcode and ModRM
        return False
    before, last = raw[at - 2], raw[at - 1]
    if (before & 0xC7 == 0x04 and last & 7 == 5) or before & 0xC7 == 0x84:  # bits of ModRM and SIB
        return True
    # `b8` to `bf` move the number itself into a register, unless they are the ModRM of the byte before.
    return last & 0xC0 == 0x80 and last & 7 != 4 and (last < _MOVE_NUMBER or before in _MOVES)


def _is_jump_if(raw: Buffer, at: int) -> bool:
    """Return whether the opcode of a conditional jump comes before a displacement."""
    return at > 1 and raw[at - 2] == 0x0F and raw[at - 1] in _JUMP_IF


def _immediate_sizes(raw: Buffer, at: int) -> tuple[Sequence[int], bool]:
    """Return the possible sizes of an immediate after the displacement, by the opcode before the ModRM byte `at`.

    Where the bytes before the opcode may belong to it or not, the sizes for both are returned; for an unknown opcode
    all sizes. The second value says whether it is certainly an opcode: `89 f0 25 00 f0 00 00` is `mov`, and then `and`
    (25) with a number.
    """
    # The nearest byte first: the opcode, and its possible prefixes.
    opcode, *before = bytes(raw[max(0, at - 5) : at])[::-1] + bytes(max(0, 5 - at))
    sizes = set[int]()
    if opcode in _BYTE_IMMEDIATE or (opcode == _TEST_BYTE and raw[at] >> 3 & 7 < 2):
        sizes.add(1)
    elif opcode in _WORD_IMMEDIATE or (opcode == _TEST_WORD and raw[at] >> 3 & 7 < 2):
        sizes |= {2, 4} if _OPERAND_SIZE in before[:3] else {4}
    elif opcode in _WITHOUT_IMMEDIATE:
        sizes.add(0)
    if before[0] == 0x0F:
        sizes.add(1 if opcode in _AFTER_0F_WITH_IMMEDIATE else 0)
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
