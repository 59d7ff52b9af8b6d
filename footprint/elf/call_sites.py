"""Where the code of a linked file calls a function of another file, through the PLT. x86-64 and arm64 only."""

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.code_reader import CodeReader
from footprint.elf.dynsym import asked_names
from footprint.elf.functions import read_functions
from footprint.elf.image import Image, Section
from footprint.elf.references import ReferencedPlace, can_find_references, find_references

# `jmp *distance(%rip)`.
_JUMP_BY_WORD: Final = re.compile(rb"\xff\x25(?=.{4})", re.DOTALL)
_signed_word: Final = Struct("<i").unpack_from
# An entry of the PLT begins with its jump, or with up to 8 bytes before it (endbr64, bnd).
_ENTRY_BYTES: Final = 8
_MOST_ARM64_ENTRIES: Final = 4096


class CallSite(NamedTuple):
    """A call.

    Attributes:
        vaddr: The vaddr of its instruction.
        function: The name of the function that calls; "" where no symbol names it.
    """

    vaddr: int
    function: str


def call_sites(image: Image, name: str) -> tuple[CallSite, ...]:
    """Return the calls of a function of another file, ascending; none where the code is too large to be read.

    Raises:
        InputError: Where the file is damaged.
    """
    if not can_find_references(image):
        return ()
    reader = CodeReader(image, read_functions(image))
    slots = {vaddr for vaddr, requested in asked_names(image).items() if requested == name}
    entries = sorted({entry for slot in slots for entry in _entries(image, reader, slot)})
    places = [ReferencedPlace(entry, entry + 1, is_code=True) for entry in entries]
    sites = set[CallSite]()
    # On x86-64 a reference is where the displacement is.
    opcode_bytes = image.machine == abi.EM_X86_64
    for place, references in zip(places, find_references(image, places, reader=reader), strict=True):
        for reference in references:
            code = reader.at(reference.vaddr) if reference.vaddr else None
            if code is not None:
                jumps = code.instructions.jumps.items()
                sites |= {CallSite(at, code.function.name) for at, jump in jumps if jump.target == place.start_vaddr}
            elif reference.vaddr:
                sites.add(CallSite(reference.vaddr - opcode_bytes, ""))
    return tuple(sorted(sites))


def _entries(image: Image, reader: CodeReader, slot: int) -> Iterator[int]:
    """Yield the entries of the PLT that jump by a word of the offset table."""
    for section in image.sections:
        if section.name.startswith(".plt") and section.flags & abi.SHF_EXECINSTR and section.has_file_bytes:
            starts = _jumps_of_x86(image, section, slot) if image.machine == abi.EM_X86_64 else _starts(section)
            yield from [start for start in starts if reader.word_at(start) == slot]


def _jumps_of_x86(image: Image, section: Section, slot: int) -> Iterator[int]:
    raw = image.section_bytes(section)
    for match in _JUMP_BY_WORD.finditer(raw):
        at = match.start()
        if section.vaddr + at + 6 + _signed_word(raw, at + 2)[0] == slot:
            yield (section.vaddr + at) & -_ENTRY_BYTES


def _starts(section: Section) -> range:
    end_vaddr = section.vaddr + min(section.size_bytes, _MOST_ARM64_ENTRIES * _ENTRY_BYTES)
    return range(section.vaddr, end_vaddr, _ENTRY_BYTES)
