"""Hold programs at their start, and read which of their pages are private, object by object.

A program is held where its constructors are about to run (the loader calls `_dl_debug_state` for debuggers once all is
relocated), and where its own code begins; then it is ended. It never runs any of it, but constructors of libraries.
"""

import ctypes
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from footprint.attribution.object_prediction import ObjectPrediction
from footprint.elf.abi import ET_EXEC
from footprint.elf.image import Image, read_image, starts_like_elf
from footprint.process.held_program import AT_ENTRY, HeldProgram, held_at_start
from footprint.process.mappings import Mapping as Area
from footprint.process.maps_text import parse_maps
from footprint.process.pages import PageReader
from footprint.system.files import open_input

PAGE = os.sysconf("SC_PAGE_SIZE")
PTRACE_SINGLESTEP = 9
AT_BASE = 7


def is_elf(path: Path) -> bool:
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return starts_like_elf(file.read(4))


@cache
def image_of(path: str) -> Image:
    return read_image(open_input(path), path)


def numbers(pages: Iterable[range]) -> set[int]:
    return {page for run in pages for page in run}


class Seen(NamedTuple):
    """A program that stood still: its mappings, and its private pages, by addr divided by the page size."""

    mappings: Sequence[Area]
    private: frozenset[int]

    def objects(self) -> Mapping[str, int]:
        """Return the objects, each with its load address in pages; what else is mapped is not executable."""
        names = {one.name for one in self.mappings if one.permissions[2] == "x" and one.name.startswith("/")}
        firsts = {one.name: one.start_addr // PAGE for one in reversed(self.mappings) if one.name in names}
        return {
            name: 0 if image_of(name).type == ET_EXEC else first - image_of(name).loads[0].vaddr // PAGE
            for name, first in firsts.items()
        }

    def written(self, name: str, prediction: ObjectPrediction) -> set[int]:
        """Return the pages of an object that are private, of those that can be written at all."""
        bias = self.objects()[name]
        return {page for page in numbers(prediction.startup_max) if page + bias in self.private}

    def count_mappings(self, name: str) -> int:
        image, bias = image_of(name), self.objects()[name] * PAGE
        first = image.loads[0].vaddr // PAGE * PAGE + bias
        past = image.loads[-1].vaddr + image.loads[-1].memory_bytes + bias
        return sum(mapping.start_addr < past and first < mapping.end_addr for mapping in self.mappings)


def look(program: HeldProgram) -> Seen:
    folder = os.open(f"/proc/{program.pid}", os.O_RDONLY)
    try:
        mappings = parse_maps(Path(f"/proc/{program.pid}/smaps").read_bytes(), "smaps").mappings
        with PageReader(folder, PAGE) as reader:
            ranges = [one for area in mappings if area.name[:2] != "[v" for one in reader.read(area)]
    finally:
        os.close(folder)
    return Seen(mappings, frozenset(addr // PAGE for span in ranges for addr in range(*span[:2], PAGE)))


@cache
def vaddr_of(path: str, symbol: str, table: str = ".symtab") -> int | None:
    with open(path, "rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(table)
        found = symbols.get_symbol_by_name(symbol) if symbols else None
        return int(found[0]["st_value"]) if found else None


def step(program: HeldProgram) -> None:
    libc = ctypes.CDLL(None)
    assert libc.ptrace(PTRACE_SINGLESTEP, program.pid, None, None) == 0
    os.waitpid(program.pid, 0)


def run_to_constructors(program: HeldProgram, path: str) -> None:
    """Run the program until it is linked: the loader stops once before it loads anything, and once when all is ready.

    Raises:
        LookupError: Where it does not stop for debuggers.
    """
    loader = re.search(rb"/lib[^\0]*ld-linux[^\0]*", bytes(image_of(path).data[:0x1000]))
    vaddr = vaddr_of(os.path.realpath(os.fsdecode(loader[0])), "_dl_debug_state", ".dynsym") if loader else None
    if vaddr is None:
        raise LookupError("no loader that stops for debuggers")
    addr = program.auxiliary(AT_BASE) + vaddr
    program.run_to(addr)
    step(program)
    program.run_to(addr)


def at_start(path: str) -> tuple[Seen, Seen]:
    """Return a program before its constructors, and where its own code begins."""
    with held_at_start(path) as held:
        run_to_constructors(held, path)
        linked = look(held)
        step(held)
        held.run_to(held.auxiliary(AT_ENTRY))
        return linked, look(held)
