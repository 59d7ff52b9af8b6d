"""Where the code of a linked file calls a function of another file: through the PLT, or by its word of the GOT.

Compilers make the latter with -fno-plt. x86-64 and arm64 only.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.abi import relocation_types
from footprint.elf.code_reader import Code, CodeReader
from footprint.elf.dynamic import bytes_at_vaddr
from footprint.elf.dynsym import asked_names
from footprint.elf.functions import read_functions
from footprint.elf.image import Image, Section
from footprint.elf.instruction import ARM64, X86_64, Access, Convention, Operation
from footprint.elf.references import ReferencedPlace, can_find_references, find_references
from footprint.elf.relocations import relocations, symbols_and_types

# `jmp *distance(%rip)`.
_JUMP_BY_WORD: Final = re.compile(rb"\xff\x25(?=.{4})", re.DOTALL)
_signed_word: Final = Struct("<i").unpack_from
# `call *distance(%rip)` and `jmp *distance(%rip)`.
_CALLS_BY_WORD: Final = (b"\xff\x15", b"\xff\x25")
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

    None, too, where the file also takes the address of the function: who is called by that is not known.

    Raises:
        InputError: Where the file is damaged.
    """
    if not can_find_references(image):
        return ()
    reader, types = CodeReader(image, read_functions(image)), relocation_types(image.machine)
    slots = {vaddr for vaddr, requested in asked_names(image).items() if requested == name}
    kinds = {
        vaddr: kind
        for vaddrs, infos in relocations(image)
        for vaddr, kind in zip(vaddrs, symbols_and_types(image, infos)[1], strict=True)
        if vaddr in slots
    }
    if not types.jump_slot | types.glob_dat >= set(kinds.values()):
        return ()
    entries = {entry for slot in slots for entry in _entries(image, reader, slot)}
    words = {slot for slot, kind in kinds.items() if kind in types.glob_dat}
    places = [ReferencedPlace(vaddr, vaddr + 1, is_code=True) for vaddr in sorted(entries | words)]
    stubs = [range(s.vaddr, s.vaddr + s.size_bytes) for s in image.sections if s.name.startswith(".plt")]
    sites = set[CallSite]()
    # On x86-64 a reference is where the displacement is.
    opcode_bytes = image.machine == abi.EM_X86_64
    convention = X86_64 if image.machine == abi.EM_X86_64 else ARM64
    for place, references in zip(places, find_references(image, places, reader=reader), strict=True):
        is_word = place.start_vaddr in words
        for vaddr in [reference.vaddr for reference in references if reference.vaddr]:
            if is_word and any(vaddr in stub for stub in stubs):
                continue
            if code := reader.at(vaddr):
                calls = (
                    _calls_by_word(code, place.start_vaddr, convention)
                    if is_word
                    else {at for at, jump in code.instructions.jumps.items() if jump.target == place.start_vaddr}
                )
                if calls is None:
                    return ()
                sites |= {CallSite(at, code.function.name) for at in calls}
            elif not is_word:
                sites.add(CallSite(vaddr - opcode_bytes, ""))
            elif bytes(bytes_at_vaddr(image, vaddr - 2, 2, "a call")) in _CALLS_BY_WORD:
                sites.add(CallSite(vaddr - 2, ""))
    return tuple(sorted(sites))


def _calls_by_word(code: Code, word: int, convention: Convention) -> set[int] | None:
    """Return the calls and jumps to what a word has, also those by a register with it; None for any other use of it."""
    calls = set[int]()
    # The registers that have it, each with whether it was called by it.
    is_called: dict[int, bool] = {}
    for insn in code.instructions:
        is_by_word = insn.memory == word and insn.base is None and insn.access is Access.READ
        jump, register = insn.jump, insn.register
        if jump and jump.target is None and not jump.is_end and (is_by_word or insn.base in is_called):
            calls.add(insn.vaddr)
            if insn.base is not None:
                is_called[insn.base] = True
        elif any(insn.reads >> holder & 1 for holder in is_called):
            return None
        lost = convention.not_kept if jump and jump.is_call else [n for n in is_called if insn.writes >> n & 1]
        if not all(is_called.pop(holder, True) for holder in lost):
            return None
        if is_by_word and not jump:
            if insn.operation is not Operation.MOVE or register is None:
                return None
            is_called[register] = False
    return calls if all(is_called.values()) else None


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
