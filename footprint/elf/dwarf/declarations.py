"""Where variables are declared: file, line, unit, type and size, for variables known by their addresses.

Split units (`.dwo`) are asked for only where they own an address that is wanted; what dwz took out of several files is
followed where it is given. What is absent is said.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from footprint.elf.dwarf.codes import (
    DW_AT_ABSTRACT_ORIGIN,
    DW_AT_ARTIFICIAL,
    DW_AT_DECL_FILE,
    DW_AT_DECL_LINE,
    DW_AT_DWO_NAME,
    DW_AT_EXTERNAL,
    DW_AT_GNU_DWO_ID,
    DW_AT_GNU_DWO_NAME,
    DW_AT_INLINE,
    DW_AT_LANGUAGE,
    DW_AT_LINKAGE_NAME,
    DW_AT_MIPS_LINKAGE_NAME,
    DW_AT_NAME,
    DW_AT_SPECIFICATION,
    DW_AT_TYPE,
    DW_TAG_INLINED_SUBROUTINE,
    DW_TAG_SUBPROGRAM,
)
from footprint.elf.dwarf.lines import SourceFiles, compilation_folder
from footprint.elf.dwarf.locations import AddressTable, Location, Wanted
from footprint.elf.dwarf.proof import Found
from footprint.elf.dwarf.search import AddressProver, candidates
from footprint.elf.dwarf.types import Types
from footprint.elf.dwarf.units import DebugInfo, Entry, Unit
from footprint.elf.dwarf.walk import ways_to
from footprint.elf.image import PT_TLS, Image
from footprint.errors import InputError, Note

__all__ = ("Declaration", "Declarations", "read_declarations")

T = TypeVar("T")


_FUNCTIONS: Final = frozenset({DW_TAG_SUBPROGRAM, DW_TAG_INLINED_SUBROUTINE})
_DECLARED_INLINE: Final = frozenset({2, 3})

# C, C++ and Objective-C.
_LANGUAGES_WITH_HEADERS: Final = frozenset(
    {0x01, 0x02, 0x04, 0x0C, 0x10, 0x11, 0x15, 0x19, 0x1A, 0x1D, 0x21, 0x2A, 0x2B, 0x2C, 0x3A, 0x3E}
)
# An entry refers to its abstract origin, which refers to its specification; a longer way is a loop.
_LONGEST_WAY: Final = 8
# Variables of a header are declared by each unit that has them, and folded constants by many of one; a flood is damage.
_MOST_DECLARATIONS: Final = 1 << 12
_MOST_FOUND: Final = 1 << 18


class Declaration(NamedTuple):
    """What the debug information of one unit says of a variable.

    Attributes:
        name: The linker name where the compiler gives one (C++), else the name in the source.
        source_name: The name in the source.
        file: Where it is declared first, such as in its class: the path that the compiler saw, made absolute by the
            folder it ran in; bytes that are not UTF-8 as surrogates.
        line: The line there.
        defined_in: Where it is defined: the same, unless the compiler says otherwise.
        defined_at_line: The line there.
        unit: The source that the unit was compiled from; empty where several units share the declaration.
        type_name: How the type is written, without scopes.
        size_bytes: Of the type.
        is_in_header: Whether it is defined in a file that the unit includes, and not in the unit's own source.
        is_external: Whether other units may refer to it.
        is_artificial: Whether the compiler made it.
        function: For a variable in a function, if it was asked for, the linker name of that function.
        is_in_inline_function: Whether that function is declared inline.
    """

    name: str | None
    source_name: str | None
    file: str | None
    line: int | None
    defined_in: str | None
    defined_at_line: int | None
    unit: str
    type_name: str | None
    size_bytes: int | None
    is_in_header: bool
    is_external: bool
    is_artificial: bool
    function: str | None = None
    is_in_inline_function: bool = False


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
        self._files = SourceFiles()
        self._types = Types()
        self._by_place: dict[tuple[int, bool], dict[Declaration, None]] = {}
        self._found_left = _MOST_FOUND
        self._candidate_count = 0
        self._notes: dict[str, Note] = {}

    def read(self, alternate: Image | None, package: Image | None) -> Declarations:
        if self._image.is_relocatable:
            self._note("debug-info-unsupported", "the addresses of an object file are not known before it is linked")
            return self._answer()
        debug = DebugInfo(self._image, alternate=None if alternate is None else DebugInfo(alternate))
        if ".debug_info" not in debug.sections:
            self._note("debug-info-absent", "it has no .debug_info: it was compiled without -g, or stripped")
            return self._answer()
        addresses = AddressTable(debug, self._wanted)
        self._search(debug, debug.units, addresses)
        self._search_split(debug.units, addresses, package)
        if debug.lacks_alternate:
            self._note("debug-info-alternate", "what it shares with others stands in a file of dwz that is absent")
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
            self._note("debug-info-unsupported", f"units of version {version} were passed over")
        for note in debug.sections.notes:
            self._note(note.slug, note.detail)

    def _declare(self, unit: Unit, new: list[Found[Location]]) -> None:
        functions = dict(self._functions(unit, new)) if self._with_functions else {}
        for found in new:
            place = found.what.value, found.what.is_tls
            declarations = self._by_place.setdefault(place, {})
            self._found_left -= 1
            if len(declarations) >= _MOST_DECLARATIONS or self._found_left < 0:
                self._note("debug-info-damaged", "it declares variables more often than any compiler does")
                return
            try:
                declaration = self._declaration(found.entry)
            except InputError as error:
                self._damaged(error)
                continue
            if (function := functions.get(found.entry.offset)) is not None:
                name, is_inline = function
                declaration = declaration._replace(function=name, is_in_inline_function=is_inline)
            declarations[declaration] = None

    def _declaration(self, entry: Entry) -> Declaration:
        """Join what an entry says with what those say that it refers to: what it says itself comes first."""
        linkage_name = source_name = file = line = defined_in = defined_at_line = None
        source = ""
        type_name = size_bytes = None
        is_typed = is_external = is_artificial = False
        for one in _way(entry):
            unit, places = one.unit, one.places
            source = source or self._files.primary(unit)
            if linkage_name is None:
                linkage_name = _linkage_name(one)
            if source_name is None:
                source_name = unit.text(one, DW_AT_NAME)
            if (number := unit.number(one, DW_AT_DECL_FILE)) is not None:
                file = self._path(unit, number)
                defined_in = defined_in or file
            if (number := unit.number(one, DW_AT_DECL_LINE)) is not None:
                line = number
                defined_at_line = defined_at_line or line
            if not is_typed and DW_AT_TYPE in places:
                is_typed = True
                type_name, size_bytes = self._types.of(one)
            is_external = is_external or (DW_AT_EXTERNAL in places and bool(unit.number(one, DW_AT_EXTERNAL)))
            is_artificial = is_artificial or (DW_AT_ARTIFICIAL in places and bool(unit.number(one, DW_AT_ARTIFICIAL)))
        return Declaration(
            linkage_name or source_name,
            source_name,
            file,
            line,
            defined_in,
            defined_at_line,
            source,
            type_name,
            size_bytes,
            defined_in is not None and defined_in != source and _may_include(entry.unit),
            is_external,
            is_artificial,
        )

    def _path(self, unit: Unit, number: int) -> str | None:
        try:
            return self._files.path(unit, number)
        except InputError as error:
            self._damaged(error)
            return None

    def _functions(self, unit: Unit, found: list[Found[Location]]) -> Iterator[tuple[int, tuple[str, bool]]]:
        """Tell which of some entries are in functions, and in which."""
        try:
            for way in ways_to(unit, sorted(one.entry.offset for one in found)):
                for offset in reversed(way.parents):
                    parent = unit.entry(offset)
                    if parent.tag in _FUNCTIONS:
                        functions = list(_way(parent))
                        name = _first(map(_linkage_name, functions))
                        name = name or _first(one.unit.text(one, DW_AT_NAME) for one in functions)
                        inline = _first(one.unit.number(one, DW_AT_INLINE) for one in functions)
                        if name is not None:
                            yield way.offset, (name, inline in _DECLARED_INLINE)
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
            self._note("debug-info-split", f"{len(absent)} files of split units are absent, such as {absent[0]}")

    def _note(self, slug: str, detail: str) -> None:
        self._notes.setdefault(slug, Note(slug, self._image.file, detail))

    def _damaged(self, error: InputError) -> None:
        self._notes.setdefault("debug-info-damaged", Note("debug-info-damaged", error.file, error.detail))

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


def _may_include(unit: Unit) -> bool:
    """Tell whether the language of a unit has headers; other languages have modules of many files."""
    language = unit.number(unit.root, DW_AT_LANGUAGE)
    return language is None or language in _LANGUAGES_WITH_HEADERS


def _way(entry: Entry) -> Iterator[Entry]:
    """Give an entry, and what it refers to as its abstract origin or specification, one after the other."""
    target: Entry | None = entry
    for _ in range(_LONGEST_WAY):
        if target is None:
            return
        yield target
        attribute = DW_AT_SPECIFICATION if DW_AT_SPECIFICATION in target.places else DW_AT_ABSTRACT_ORIGIN
        target = target.unit.reference(target, attribute)


def _linkage_name(entry: Entry) -> str | None:
    for attribute in (DW_AT_LINKAGE_NAME, DW_AT_MIPS_LINKAGE_NAME):
        if attribute in entry.places:
            return entry.unit.text(entry, attribute)
    return None


def _first(values: Iterable[T | None]) -> T | None:
    """Give the first that is there."""
    return next((value for value in values if value is not None), None)
