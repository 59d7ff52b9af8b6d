"""Variables without an address, found by their names: constants whose values the compiler knows wherever they are used.

gcc gives an array that is constant no location, although it stands in the file. Its name does stand in the debug
information, as an offset into .debug_str or as a text, and is searched for and proved as addresses are.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from footprint.dwarf.codes import DW_AT_CONST_VALUE, DW_AT_LOCATION, DW_AT_NAME, DW_TAG_COMPILE_UNIT
from footprint.dwarf.describe import Declaration, Describer
from footprint.dwarf.forms import BLOCK_LENGTH_BYTES, DW_FORM_STRING, DW_FORM_STRP
from footprint.dwarf.lines import SourceFiles
from footprint.dwarf.proof import Candidates, Prover
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import DebugInfo, Entry
from footprint.dwarf.words import words_behind
from footprint.elf.image import Image
from footprint.errors import InputError

__all__ = ("compiled_sources", "declarations_by_name")

_MOST_DECLARATIONS: Final = 1 << 12
# So many of the last bytes of a name are searched for before it is looked at as a whole.
_TAIL_BYTES: Final = 3


def compiled_sources(image: Image) -> tuple[str, ...]:
    """Give the path of the source of each unit that was compiled, in their order; "" for one that cannot be told.

    Units that others share are left out.

    Raises:
        InputError: Where a section of debug information lies outside of the file, or cannot be decompressed.
    """
    files = SourceFiles()
    found = []
    for unit in DebugInfo(image).units():
        try:
            if unit.root.tag == DW_TAG_COMPILE_UNIT:
                found.append(files.primary(unit))
        except InputError:
            found.append("")
    return tuple(found)


def declarations_by_name(image: Image, names: Iterable[str]) -> dict[str, tuple[Declaration, ...]]:
    """Find where variables of some names are declared that have no address in the debug information.

    Args:
        image: The file with the debug information.
        names: As the source has them, without scopes: the debug information of such variables has no linker names.

    Raises:
        InputError: Where a section of debug information lies outside of the file, or cannot be decompressed.
    """
    wanted = {name.encode("utf-8", "surrogateescape"): name for name in names if name and "\0" not in name}
    found: dict[str, dict[Declaration, None]] = {}
    debug, describer, prover = DebugInfo(image), Describer(), _NameProver(frozenset(wanted.values()))
    for group in _candidates(debug, wanted):
        try:
            for entry, name in prover.proved(group):
                here = found.setdefault(name, {})
                if len(here) < _MOST_DECLARATIONS:
                    here[describer.declaration(entry)] = None
        except InputError:
            # What is damaged declares nothing; the search for addresses says so.
            continue
    return {name: tuple(declarations) for name, declarations in found.items() if declarations}


class _NameProver(Prover[str]):
    """Proves that a variable without an address has a wanted name."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(DW_AT_NAME, {DW_FORM_STRP: 0, DW_FORM_STRING: 0})
        self._names = names

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> str | None:
        del group
        is_there = DW_AT_NAME in entry.places and entry.at + entry.places[DW_AT_NAME][1] == place
        # A number is the value of a variable that was optimised away; contents are those of an array that stands there.
        if not is_there or DW_AT_LOCATION in entry.places or not _has_contents(entry):
            return None
        name = entry.unit.text(entry, DW_AT_NAME)
        return name if name in self._names else None


def _has_contents(entry: Entry) -> bool:
    value = entry.places.get(DW_AT_CONST_VALUE)
    return value is not None and value[0] in BLOCK_LENGTH_BYTES


def _candidates(debug: DebugInfo, wanted: dict[bytes, str]) -> Iterator[Candidates]:
    """Find where the names, or their offsets in .debug_str, stand."""
    section = debug.sections.get(".debug_info")
    texts = debug.sections.get(".debug_str")
    offsets = set(_texts(texts, wanted))
    places = set(_texts(section, wanted))
    for offset_bytes in debug.headers.offset_bytes:
        words = {offset.to_bytes(offset_bytes, section.order) for offset in offsets}
        places.update(words_behind(section, b"", words))
    for number, here in debug.headers.holding(sorted(places)):
        yield Candidates(debug.unit(number), here, {})


def _texts(section: DebugSection, names: Iterable[bytes]) -> Iterator[int]:
    """Find texts, also where one is the end of another: linkers let texts share their ends."""
    by_tail: dict[bytes, list[bytes]] = {}
    for name in names:
        by_tail.setdefault(name[-_TAIL_BYTES:], []).append(name)
    for size_bytes in range(1, _TAIL_BYTES + 1):
        tails = {tail for tail in by_tail if len(tail) == size_bytes}
        # One pass for all of them: there are as many as constants in a header.
        for end in words_behind(section, b"", {tail + b"\0" for tail in tails}):
            past = end + size_bytes
            for name in by_tail[bytes(section.data[end:past])]:
                at = past - len(name)
                if at >= 0 and section.data[at:past] == name:
                    yield at
