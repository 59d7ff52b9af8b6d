"""Where variables are declared: file, line, unit, type and size, for variables known by their addresses.

Split units (`.dwo`) are asked for only where they own an address that is wanted; what dwz took out of several files is
followed where it is given. What is absent is said.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from footprint.elf.dwarf.codes import (
    DW_AT_ABSTRACT_ORIGIN,
    DW_AT_DWO_NAME,
    DW_AT_GNU_DWO_ID,
    DW_AT_GNU_DWO_NAME,
    DW_AT_INLINE,
    DW_AT_NAME,
    DW_TAG_INLINED_SUBROUTINE,
    DW_TAG_SUBPROGRAM,
)
from footprint.elf.dwarf.describe import Declaration, Describer, first, linkage_name, way
from footprint.elf.dwarf.lines import compilation_folder
from footprint.elf.dwarf.locations import AddressTable, Location, Wanted
from footprint.elf.dwarf.proof import Found
from footprint.elf.dwarf.search import AddressProver, candidates
from footprint.elf.dwarf.units import DebugInfo, Unit
from footprint.elf.dwarf.walk import ways_to
from footprint.elf.image import PT_TLS, Image
from footprint.errors import InputError, Note

__all__ = ("Declarations", "read_declarations")


_FUNCTIONS: Final = frozenset({DW_TAG_SUBPROGRAM, DW_TAG_INLINED_SUBROUTINE})
_DECLARED_INLINE: Final = frozenset({2, 3})

# Variables of a header are declared by each unit that has them, and folded constants by many of one; a flood is damage.
_MOST_DECLARATIONS: Final = 1 << 12
_MOST_FOUND: Final = 1 << 18


class Declarations(NamedTuple):
    """What the debug information of a file says of some variables.

    Attributes:
        by_vaddr: The declarations of each variable that has some: several where several units have it.
        by_tls_offset: The same for thread-local variables.
        candidate_count: How many places were looked at.
        notes: What is absent, damaged or not handled.
    """

    by_vaddr: dict[int, tuple[Declaration, ...]]
    by_tls_offset: dict[int, tuple[Declaration, ...]]
    candidate_count: int
    notes: tuple[Note, ...]


def read_declarations(
    image: Image,
    vaddrs: Iterable[int],
    tls_offsets: Iterable[int] = (),
    *,
    alternate: Image | None = None,
    split: Callable[[str], Image | None] = lambda _: None,
    package: Image | None = None,
    with_functions: bool = False,
) -> Declarations:
    """Find where variables are declared, by searching for their addresses.

    Args:
        image: The file with the debug information.
        vaddrs: Where variables are, as the symbol table has it.
        tls_offsets: Where thread-local variables are in the block of a thread.
        alternate: The file that `.gnu_debugaltlink` names (dwz).
        split: Gives the file of a split unit (`.dwo`) by its path, or None.
        package: A file of split units of many sources (`.dwp`), which is looked into before those.
        with_functions: Whether to tell in which function a variable is, which takes a walk through its unit.

    Raises:
        InputError: Where a section of debug information lies outside of the file, or cannot be decompressed.
    """
    tls = image.segment(PT_TLS)
    wanted = Wanted(frozenset(vaddrs), frozenset(tls_offsets), 0 if tls is None else tls.vaddr)
    reader = _Reader(image, wanted, split, with_functions=with_functions)
    return reader.read(alternate, package)


class _Reader:
    """One search through a file and what it refers to."""

    def __init__(
        self, image: Image, wanted: Wanted, split: Callable[[str], Image | None], *, with_functions: bool
    ) -> None:
        self._image = image
        self._wanted = wanted
        self._split = split
        self._with_functions = with_functions
        self._prover = AddressProver(wanted)
        self._describer = Describer()
        self._by_place: dict[tuple[int, bool], dict[Declaration, None]] = {}
        self._found_left = _MOST_FOUND
        self._candidate_count = 0
        self._notes: dict[str, Note] = {}

    def read(self, alternate: Image | None, package: Image | None) -> Declarations:
        if self._image.is_relocatable:
            self._note(
                Note(
                    "debug-info-unsupported",
                    self._image.file,
                    "the addresses of an object file are not known before it is linked",
                )
            )
            return self._answer()
        debug = DebugInfo(self._image, alternate=None if alternate is None else DebugInfo(alternate))
        if ".debug_info" not in debug.sections:
            self._note(
                Note(
                    "debug-info-absent",
                    self._image.file,
                    "it has no .debug_info: it was compiled without -g, or stripped",
                )
            )
            return self._answer()
        addresses = AddressTable(debug, self._wanted)
        self._search(debug, debug.units, addresses)
        self._search_split(debug.units, addresses, package)
        if self._describer.damage is not None:
            self._damaged(self._describer.damage)
        if debug.lacks_alternate:
            self._note(
                Note(
                    "debug-info-alternate",
                    self._image.file,
                    "what it shares with others stands in a file of dwz that is absent",
                )
            )
        return self._answer()

    def _search(self, debug: DebugInfo, units: Sequence[Unit], addresses: AddressTable) -> None:
        for group in candidates(debug, units, self._wanted, addresses):
            self._candidate_count += len(group.places)
            seen: set[tuple[int, int | None]] = set()
            new: list[Found[Location]] = []
            try:
                for found in self._prover.proved(group):
                    unit, entry = group.unit, found.entry
                    # A variable of a function is declared once for each place where the function was inlined.
                    origin = unit.number(entry, DW_AT_ABSTRACT_ORIGIN)
                    if origin is None or (found.what.value, origin) not in seen:
                        seen.add((found.what.value, origin))
                        new.append(found)
            except InputError as error:
                self._damaged(error)
            self._declare(group.unit, new)
        if debug.damage is not None:
            self._damaged(debug.damage)
        for version in sorted(debug.unknown_versions):
            self._note(Note("debug-info-unsupported", self._image.file, f"units of version {version} were passed over"))
        for note in debug.sections.notes:
            self._note(note)

    def _declare(self, unit: Unit, new: list[Found[Location]]) -> None:
        functions = dict(self._functions(unit, new)) if self._with_functions else {}
        for found in new:
            place = found.what.value, found.what.is_tls
            declarations = self._by_place.setdefault(place, {})
            self._found_left -= 1
            if len(declarations) >= _MOST_DECLARATIONS or self._found_left < 0:
                self._note(
                    Note(
                        "debug-info-damaged",
                        self._image.file,
                        "it declares variables more often than any compiler does",
                    )
                )
                return
            try:
                declaration = self._describer.declaration(found.entry)
            except InputError as error:
                self._damaged(error)
                continue
            if (function := functions.get(found.entry.offset)) is not None:
                name, is_inline = function
                declaration = declaration._replace(function=name, is_in_inline_function=is_inline)
            declarations[declaration] = None

    def _functions(self, unit: Unit, found: list[Found[Location]]) -> Iterator[tuple[int, tuple[str, bool]]]:
        """Tell which of some entries are in functions, and in which."""
        try:
            for found_way in ways_to(unit, sorted(one.entry.offset for one in found)):
                for offset in reversed(found_way.parents):
                    parent = unit.entry(offset)
                    if parent.tag in _FUNCTIONS:
                        functions = list(way(parent))
                        name = first(map(linkage_name, functions))
                        name = name or first(one.unit.text(one, DW_AT_NAME) for one in functions)
                        inline = first(one.unit.number(one, DW_AT_INLINE) for one in functions)
                        if name is not None:
                            yield found_way.offset, (name, inline in _DECLARED_INLINE)
                        break
        except InputError as error:
            self._damaged(error)

    def _search_split(self, units: Iterable[Unit], addresses: AddressTable, package: Image | None) -> None:
        """Search the split units of all skeletons that own a wanted address."""
        skeletons: list[tuple[str, int | None, Unit]] = []
        for unit in units:
            try:
                name = unit.text(unit.root, DW_AT_DWO_NAME) or unit.text(unit.root, DW_AT_GNU_DWO_NAME)
                if name is not None and addresses.indexes(unit):
                    path = posixpath.normpath(posixpath.join(compilation_folder(unit), name))
                    skeletons.append((path, _identity(unit), unit))
            except InputError as error:
                self._damaged(error)
        if not skeletons:
            return
        packed = None if package is None else DebugInfo(package, suffix=".dwo")
        by_identity = {} if packed is None else {_identity(unit): unit for unit in packed.units}
        absent = []
        for path, identity, skeleton in skeletons:
            found = by_identity.get(identity)
            if found is None and (image := self._split(path)) is not None:
                apart = DebugInfo(image, suffix=".dwo")
                found = next((unit for unit in apart.units if _identity(unit) == identity), None)
            if found is None:
                absent.append(path)
            else:
                found.skeleton = skeleton
                self._search(found.debug, [found], addresses)
        if absent:
            self._note(
                Note(
                    "debug-info-split",
                    self._image.file,
                    f"{len(absent)} files of split units are absent, such as {absent[0]}",
                )
            )

    def _note(self, note: Note) -> None:
        self._notes.setdefault(note.slug, note)

    def _damaged(self, error: InputError) -> None:
        self._note(Note("debug-info-damaged", error.file, error.detail))

    def _answer(self) -> Declarations:
        found: tuple[dict[int, tuple[Declaration, ...]], dict[int, tuple[Declaration, ...]]] = {}, {}
        for (value, is_tls), declarations in sorted(self._by_place.items()):
            if declarations:
                found[is_tls][value] = tuple(declarations)
        return Declarations(*found, self._candidate_count, tuple(self._notes.values()))


def _identity(unit: Unit) -> int | None:
    """Give what a skeleton and its split unit have in common, and no other; None where it is damaged."""
    try:
        return unit.number(unit.root, DW_AT_GNU_DWO_ID) if unit.identity is None else unit.identity
    except InputError:
        return None
