"""What code of arm64 refers to: the addresses that its instructions mean, and the targets of its jumps.

Only functions with an `adrp`, `adr` or literal that may lead near the places in question are decoded. An address that
is put where it is not followed counts for all that is near: code may reach the variables behind one from there.

Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter C4 (encoding).
"""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from typing import Final

from footprint.elf import abi, arm64_code
from footprint.elf.arm64_addresses import Lost
from footprint.elf.code_reader import CodeReader
from footprint.elf.image import Image
from footprint.elf.symbols import read_symbol_table
from footprint.elf.x86_shapes import ListedInstructions
from footprint.members import NamedTuple, lazy_pattern

# gcc reaches variables up to 4095 bytes behind an address, and 256 before it (TARGET_MAX_ANCHOR_OFFSET).
LOST_BEFORE_BYTES: Final = 4096
LOST_AFTER_BYTES: Final = 8192
_FIRST_BYTES: Final = {
    False: lazy_pattern(rb"[\x10\x30\x50\x70\x90\xb0\xd0\xf0\x18\x58\x98\x1c\x5c\x9c]"),
    # In a program at a fixed address `movk` may complete an address.
    True: lazy_pattern(rb"[\x10\x30\x50\x70\x90\xb0\xd0\xf0\x18\x58\x98\x1c\x5c\x9c\x72\xf2]"),
}
_JUMPS: Final = lazy_pattern(rb"[\x14-\x17\x94-\x97\x34-\x37\xb4-\xb7\x54]")
_MADE: Final = lazy_pattern(rb"[\x10\x30\x50\x70\x90\xb0\xd0\xf0\x91\x52\xd2\x72\xf2]")
# `ldr x17, [x16, #number]`, `add x16, x16, #number` and `br x17`: what a page is made for in entries of the PLT.
_PLT_ENTRY: Final = lazy_pattern(rb"\x11[\x02\x06\x0a\x0e].\xf9\x10[\x02\x06\x0a\x0e].\x91\x20\x02\x1f\xd6", re.DOTALL)
# The highest bytes of `movk`.
_COMPLETES: Final = frozenset({0x72, 0xF2})
_WINDOW_BYTES: Final = 1 << 10


class AddressInCode(NamedTuple):
    """An address that an instruction means.

    Attributes:
        target: The address.
        vaddr: The instruction.
        is_certain: Whether the instruction certainly means it.
        is_lost: Whether what is near may be reached from there in a way that is not followed.
    """

    target: int
    vaddr: int
    is_certain: bool = False
    is_lost: bool = False


def addresses_in_code(image: Image, reader: CodeReader, low: int, high: int) -> Iterator[AddressInCode]:
    """Find the addresses from `low` to `high` that code means, and those near them that are lost."""
    first, last = low - 2 * LOST_AFTER_BYTES, high + LOST_AFTER_BYTES
    variables = _Variables(image)
    for vaddr, raw in _code(image):
        past = 0
        for match in _FIRST_BYTES[image.type == abi.ET_EXEC].finditer(raw[3::4]):
            at = match.start() * 4
            if vaddr + at < past:
                continue
            (insn, *_) = arm64_code.decoded(raw[at : at + 4], vaddr + at)
            number = insn.memory if insn.immediate is None else insn.immediate
            if _PLT_ENTRY.match(raw, at + 4):
                continue
            if raw[at + 3] in _COMPLETES or (number is not None and first <= number <= last):
                past = yield from _of_function(reader, variables, vaddr + at, vaddr + len(raw), (low, high))


def _of_function(
    reader: CodeReader, variables: "_Variables", vaddr: int, end: int, wanted: tuple[int, int]
) -> Generator[AddressInCode, None, int]:
    """Find the addresses that the function at a vaddr means, or code there that has no name; return its end."""
    low, high = wanted
    function = reader.function_at(vaddr)
    if function is not None:
        code = reader.at(vaddr)
        listed = ListedInstructions(()) if code is None else code.instructions
        stated, lost = ([], []) if code is None else ([*code.stated_pairs], [*code.lost])
        end = function.vaddr + function.size_bytes
    else:
        end = min(end, reader.next_function(vaddr) or end, vaddr + _WINDOW_BYTES)
        meant = reader.meant(vaddr, end - vaddr)
        listed, stated = ListedInstructions(meant.instructions), meant.stated
        # What is left at the end of the window is not followed.
        lost = meant.lost + [Lost(number, vaddr) for number in meant.addresses if end == vaddr + _WINDOW_BYTES]
    for address, at in stated:
        if low <= address < high:
            yield AddressInCode(address, at, is_certain=listed[at].base is None)
    for address, at, base in lost:
        is_near = low - LOST_AFTER_BYTES <= address < high + LOST_BEFORE_BYTES
        if is_near and (base is None or not variables.has_both(base, address)):
            yield AddressInCode(address, at, is_lost=True)
    return end


class _Variables:
    """Knows the variables of a file that have names."""

    def __init__(self, image: Image) -> None:
        table = read_symbol_table(image)
        extents = {table.vaddrs[index]: table.sizes[index] for index in table.of_types({abi.STT_OBJECT})}
        self._starts = sorted(extents)
        self._sizes = [extents[start] for start in self._starts]

    def has_both(self, first: int, second: int) -> bool:
        """Return whether two addresses lie in one variable."""
        number = bisect_right(self._starts, first) - 1
        return number >= 0 and self._starts[number] <= second < self._starts[number] + self._sizes[number]


def jumps_in_code(image: Image) -> Iterator[tuple[int, int]]:
    """Find the targets of the jumps and calls of code, each with the vaddr of the instruction."""
    for vaddr, raw in _code(image):
        for match in _JUMPS.finditer(raw[3::4]):
            at = match.start() * 4
            (insn, *_) = arm64_code.decoded(raw[at : at + 4], vaddr + at)
            if insn.jump is not None and insn.jump.target is not None:
                yield insn.jump.target, insn.vaddr


def possible_addresses(image: Image) -> set[int]:
    """Return all addresses in code that code may state: each page of one instruction with each rest of another.

    In a program at a fixed address also what `movz` and `movk` may make.
    """
    pages, rests, highs, lows, whole = (set[int]() for _ in range(5))
    for vaddr, raw in _code(image):
        for match in _MADE.finditer(raw[3::4]):
            at = match.start() * 4
            (insn, *_) = arm64_code.decoded(raw[at : at + 4], vaddr + at)
            if insn.immediate is None:
                # `add` with a base, or `adr`.
                (rests if insn.base is not None else whole).add(insn.memory or 0)
            elif insn.scale == arm64_code.PAGE_BYTES:
                pages.add(insn.immediate)
            elif image.type == abi.ET_EXEC:
                (highs if insn.immediate >> 16 else lows).add(insn.immediate)
    code = [(vaddr, vaddr + len(raw)) for vaddr, raw in _code(image)]
    pages = {page for page in pages if any(start - arm64_code.PAGE_BYTES < page < end for start, end in code)}
    highs = {high for high in highs if any(start - (1 << 16) < high < end for start, end in code)}
    return (
        whole
        | {page + rest for page in pages for rest in rests if not rest & 3}
        | {high + low for high in highs for low in {0, *lows} if not low & 3}
    )


def _code(image: Image) -> Iterator[tuple[int, bytes]]:
    """Return the code of a file, each part with its vaddr; segments hold constants as well."""
    sections = [section for section in image.sections if section.flags & abi.SHF_EXECINSTR and section.has_file_bytes]
    for section in sections:
        yield section.vaddr, bytes(image.bytes_at(section.offset, section.size_bytes & ~3, "code"))
    for segment in image.loads:
        if segment.flags & abi.PF_X and not sections:
            yield segment.vaddr, bytes(image.bytes_at(segment.offset, segment.file_bytes & ~3, "a segment"))
