"""Where variables are declared: file, line, unit, type and size, for variables known by their addresses or their names.

Split units (`.dwo`) are read only where they own an address that is wanted. The file of dwz is followed where it is
given. Notes name what is absent.

gcc gives a constant array no location, although it stands in the file. Its name stands in the debug information, as an
offset into .debug_str or as a text: entries of such variables are searched for by the codes of their abbreviations, and
proved as addresses are.
"""

import posixpath
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.description import Declaration, Describer, first, linkage_name, standard_of, way
from footprint.dwarf.encoding import BLOCK_LENGTH_BYTES, UnitFormat, abbreviation_with
from footprint.dwarf.lines import SourceFiles, compilation_folder
from footprint.dwarf.places import VariablePlace
from footprint.dwarf.proof import Candidates, ProvedEntry, Prover, ways_to
from footprint.dwarf.search import AddressProver, AddressTable, Wanted, candidates, indexed
from footprint.dwarf.units import DebugInfo, Entry, Unit
from footprint.elf import abi
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError, Note
from footprint.members import NamedTuple, lazy_pattern

_FUNCTIONS: Final = frozenset({dw.TAG_SUBPROGRAM, dw.TAG_INLINED_SUBROUTINE})
# What stands in these defines no function of the unit.
_WITHOUT_FUNCTIONS: Final = frozenset({dw.TAG_SUBPROGRAM, dw.TAG_ARRAY, dw.TAG_ENUMERATION, dw.TAG_SUBROUTINE})
_CLASSES: Final = frozenset({dw.TAG_CLASS, dw.TAG_STRUCTURE, dw.TAG_UNION})

# Fortran 77, 90, 95, 2003, 2008 and 2018.
_FORTRAN: Final = frozenset({0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D})

# Each unit declares the variables of its headers again. Large programs have one variable in a kilobyte of debug
# information; far more are damage.
_FEW_VARIABLES: Final = 1 << 16
_BYTES_PER_VARIABLE: Final = 128


class Declarations(NamedTuple):
    """The declarations of variables that were searched for.

    Attributes:
        by_place: The declarations of each variable that has any; several where several units declare it.
        notes: What is absent, damaged or not supported.
    """

    by_place: dict[VariablePlace, tuple[Declaration, ...]]
    notes: tuple[Note, ...]


def read_declarations(
    image: Image,
    places: Iterable[VariablePlace],
    *,
    alternate: Image | None = None,
    split: Callable[[str], Image | None] = lambda _: None,
    package: Image | None = None,
    with_functions: bool | Container[VariablePlace] = False,
    debug: DebugInfo | None = None,
) -> Declarations:
    """Find the declarations of variables by searching for their addresses.

    Args:
        image: The file with the debug information.
        places: The places of variables from the symbol table; in an object file those of `VariablePlaces`.
        alternate: The file that `.gnu_debugaltlink` names (dwz).
        split: Returns the file of a split unit (`.dwo`) by its path, or None.
        package: A file of split units of many sources (`.dwp`), which is searched before those.
        with_functions: Whether to find the function of each variable, or of those at some places: it needs a walk
            through their unit.
        debug: The debug information of the file, where it was opened before.

    Raises:
        InputError: Where a section of debug information lies outside of the file, or cannot be decompressed.
    """
    tls = image.segment(abi.PT_TLS)
    vaddrs, tls_offsets = set[int](), set[int]()
    for value, is_tls in places:
        (tls_offsets if is_tls else vaddrs).add(value)
    wanted = Wanted(frozenset(vaddrs), frozenset(tls_offsets), 0 if tls is None else tls.vaddr)
    reader = _Reader(image, wanted, split, with_functions=with_functions)
    return reader.read(DebugInfo(image) if debug is None else debug, alternate, package)


class _Reader:
    """One search through a file and the files that it refers to."""

    def __init__(
        self,
        image: Image,
        wanted: Wanted,
        split: Callable[[str], Image | None],
        *,
        with_functions: bool | Container[VariablePlace],
    ) -> None:
        self._image = image
        self._wanted = wanted
        self._split = split
        self._with_functions = with_functions
        self._prover = AddressProver(wanted)
        self._describer = Describer()
        self._by_place: dict[VariablePlace, tuple[Declaration] | dict[Declaration, None]] = {}
        self._found_left = _FEW_VARIABLES
        self._notes: dict[str, Note] = {}

    def read(self, debug: DebugInfo, alternate: Image | None, package: Image | None) -> Declarations:
        if alternate is not None:
            debug.alternate = self._opened(alternate)
        if ".debug_info" not in debug.sections:
            detail = "it has no .debug_info: it was compiled without -g, or stripped"
            self._note(Note("debug-info-absent", self._image.file, detail))
            return self._answer()
        addresses = AddressTable(debug, self._wanted)
        self._search(debug, candidates(debug, self._wanted, addresses))
        self._search_shared(debug)
        self._search_split(addresses, package)
        if self._describer.damage is not None:
            self._damaged(self._describer.damage)
        if debug.lacks_alternate:
            detail = "the file of dwz that holds the parts shared with other files is absent"
            self._note(Note("debug-info-alternate", self._image.file, detail))
        return self._answer()

    def _search(self, debug: DebugInfo, groups: Iterable[Candidates]) -> None:
        self._found_left += debug.sections.get(".debug_info").size_bytes // _BYTES_PER_VARIABLE
        for group in groups:
            self._declare(group.unit, self._new(group))
            if self._found_left <= 0:
                detail = "it has more declarations of variables than a compiler writes; the others are left out"
                self._note(Note("debug-info-damaged", self._image.file, detail))
                break
        if debug.damage is not None:
            self._damaged(debug.damage)
        for version in sorted(debug.unknown_versions):
            self._note(Note("debug-info-unsupported", self._image.file, f"units of version {version} were skipped"))
        for note in debug.sections.notes:
            self._note(note)

    def _new(self, group: Candidates) -> Iterator[ProvedEntry[VariablePlace]]:
        """Return the variables of a unit; of a variable in inlined copies of a function, only the first."""
        seen: set[tuple[int, int]] = set()
        try:
            for variable in self._prover.proved(group):
                origin = group.unit.number(variable.entry, dw.AT_ABSTRACT_ORIGIN)
                if origin is not None:
                    if (variable.what.value, origin) in seen:
                        continue
                    seen.add((variable.what.value, origin))
                yield variable
                self._found_left -= 1
                if self._found_left <= 0:
                    break
        except InputError as error:
            self._damaged(error)

    def _declare(self, unit: Unit, new: Iterable[ProvedEntry[VariablePlace]]) -> None:
        functions: dict[int, str] = {}
        walked = self._with_functions
        if unit.number(unit.root, dw.AT_LANGUAGE) in _FORTRAN:
            new = self._with_common_blocks(unit, list(new))
        if walked:
            new = list(new)
            inner = [entry for entry in new if isinstance(walked, bool) or entry.what in walked]
            functions = dict(self._functions(unit, inner)) if inner else {}
        for variable in new:
            try:
                declaration = self._describer.declaration(variable.entry)
            except InputError as error:
                self._damaged(error)
                continue
            start = unit.start if unit.skeleton is None and unit.debug.image is self._image else None
            declaration = declaration._replace(function=functions.get(variable.entry.offset), unit_start=start)
            self._keep(variable.what, declaration)

    def _keep(self, place: VariablePlace, declaration: Declaration) -> None:
        """Keep a declaration of a place, once. Most places have one: a dict for each of 100,000 would be large."""
        kept = self._by_place.get(place)
        if kept is None:
            self._by_place[place] = (declaration,)
        elif isinstance(kept, dict):
            kept[declaration] = None
        elif declaration not in kept:
            self._by_place[place] = {kept[0]: None, declaration: None}

    def _functions(self, unit: Unit, variables: Iterable[ProvedEntry[VariablePlace]]) -> Iterator[tuple[int, str]]:
        """Return the functions of entries that lie in functions, by the offset of the entry."""
        function_by_parent: dict[int, str | None] = {}
        places = sorted(variable.entry.offset for variable in variables)
        try:
            for offset, parents in ((there.offset, there.parents) for there in ways_to(unit, places)):
                for parent in reversed(parents):
                    if parent not in function_by_parent:
                        function_by_parent[parent] = _function(unit.entry(parent))
                    if (function := function_by_parent[parent]) is not None:
                        yield offset, function
                        break
        except InputError as error:
            self._damaged(error)

    def _with_common_blocks(
        self, unit: Unit, variables: Sequence[ProvedEntry[VariablePlace]]
    ) -> list[ProvedEntry[VariablePlace]]:
        """Add the COMMON blocks of Fortran that variables lie in: a symbol has the name of the block."""
        of_entry, blocks = {entry.entry.offset: entry.what for entry in variables}, list[ProvedEntry[VariablePlace]]()
        try:
            for way_to in ways_to(unit, sorted(of_entry)):
                if way_to.parents and (block := unit.entry(way_to.parents[-1])).tag == dw.TAG_COMMON_BLOCK:
                    blocks.append(ProvedEntry(block, of_entry[way_to.offset]))
        except InputError as error:
            self._damaged(error)
        return [*variables, *blocks]

    def _search_shared(self, debug: DebugInfo) -> None:
        """Search the units that dwz moved to a file of their own for thread-locals: those have no address.

        Another file may have a thread-local at the same offset there, in a unit that this file does not import.
        """
        left = self._wanted.tls_offsets.difference(place.value for place in self._by_place if place.is_tls)
        if not left or not any(section.name == ".gnu_debugaltlink" for section in debug.image.sections):
            return
        try:
            imported = _imported(debug)
        except InputError as error:
            self._damaged(error)
            return
        if debug.alternate is not None:
            wanted = Wanted(frozenset(), left, 0)
            groups = candidates(debug.alternate, wanted, AddressTable(debug.alternate, wanted))
            self._search(debug.alternate, (group for group in groups if group.unit.start in imported))

    def _search_split(self, addresses: AddressTable, package: Image | None) -> None:
        """Search the split units of all skeletons that own a wanted address."""
        skeletons: list[tuple[str, int | None, Unit]] = []
        for unit in addresses.units:
            try:
                name = unit.text(unit.root, dw.AT_DWO_NAME) or unit.text(unit.root, dw.AT_GNU_DWO_NAME)
                if name is not None and addresses.indexes(unit):
                    path = posixpath.normpath(posixpath.join(compilation_folder(unit), name))
                    skeletons.append((path, _identity(unit), unit))
            except InputError as error:
                self._damaged(error)
        if not skeletons:
            return
        packed = None if package is None else self._opened(package, ".dwo")
        by_identity = {} if packed is None else {_identity(unit): unit for unit in packed.units()}
        absent = []
        by_path: dict[str, dict[int | None, Unit]] = {}
        for path, identity, skeleton in skeletons:
            split_unit = by_identity.get(identity)
            if split_unit is None:
                if path not in by_path:
                    apart = self._opened(self._split(path), ".dwo")
                    units = [] if apart is None else list(apart.units())
                    by_path[path] = {_identity(unit): unit for unit in reversed(units)}
                split_unit = by_path[path].get(identity)
            if split_unit is None:
                absent.append(path)
            else:
                split_unit.skeleton = skeleton
                # A split unit holds no address, because the linker does not relocate it: only indexes are searched.
                self._search(split_unit.debug, indexed(split_unit, addresses))
        if absent:
            detail = f"{len(absent)} files of split units are absent or of another build, such as {absent[0]}"
            self._note(Note("debug-info-split", self._image.file, detail))

    def _opened(self, image: Image | None, suffix: str = "") -> DebugInfo | None:
        """Read a file that the debug information refers to; a damaged file counts as absent."""
        try:
            return None if image is None else DebugInfo(image, suffix=suffix)
        except InputError as error:
            self._damaged(error)
            return None

    def _note(self, note: Note) -> None:
        self._notes.setdefault(note.slug, note)

    def _damaged(self, error: InputError) -> None:
        self._note(Note("debug-info-damaged", error.file, error.detail))

    def _answer(self) -> Declarations:
        declarations_by_place = {
            place: tuple(declarations) for place, declarations in sorted(self._by_place.items(), key=itemgetter(0))
        }
        return Declarations(declarations_by_place, tuple(self._notes.values()))


def _imported(debug: DebugInfo) -> set[int]:
    """Return the starts of the units in the file of dwz that the units of a file import, by themselves or by others."""
    todo, imported = list(debug.units()), set[int]()
    while todo:
        unit = todo.pop()
        at = unit.root.end
        # dwz writes the imports of a unit before all else.
        while at < unit.end and unit.section.data[at] != 0:
            entry = unit.entry(at)
            if entry.tag != dw.TAG_IMPORTED_UNIT:
                break
            target, at = unit.reference(entry, dw.AT_IMPORT), entry.end
            if target is not None and target.unit.debug is not debug and target.unit.start not in imported:
                imported.add(target.unit.start)
                todo.append(target.unit)
    return imported


def _identity(unit: Unit) -> int | None:
    """Return the number that only a skeleton and its split unit share; None where it is damaged."""
    try:
        return unit.number(unit.root, dw.AT_GNU_DWO_ID) if unit.identity is None else unit.identity
    except InputError:
        return None


def _function(entry: Entry) -> str | None:
    """Return the name of a function; None for other entries, and without a name."""
    if entry.tag not in _FUNCTIONS:
        return None
    entries = list(way(entry))
    return first(map(linkage_name, entries)) or first(entry.unit.text(entry, dw.AT_NAME) for entry in entries)


_MOST_DECLARATIONS: Final = 1 << 12


def compiled_sources(debug: DebugInfo) -> tuple[str, ...]:
    """Return the path of the source of each compiled unit, in order; "" for a unit whose source is unknown.

    Units that others share are left out.
    """
    files = SourceFiles()
    sources = []
    for unit in debug.units():
        try:
            if unit.root.tag == dw.TAG_COMPILE_UNIT:
                sources.append(files.primary(unit))
        except InputError:
            sources.append("")
    return tuple(sources)


class DefinedFunctions:
    """The functions that the units of a file define; a unit is read when it is asked for."""

    def __init__(self, debug: DebugInfo) -> None:
        self._debug = debug
        self._cached: dict[int, frozenset[tuple[str, int]] | None] = {}

    def of(self, start: int) -> frozenset[tuple[str, int]] | None:
        """Return the functions of the unit that starts at an offset, each with its vaddr.

        Return None where there is no unit, where it is damaged, and where it does not state vaddrs in place.
        """
        if start not in self._cached:
            self._cached[start] = self._read(start)
        return self._cached[start]

    def _read(self, start: int) -> frozenset[tuple[str, int]] | None:
        number = self._debug.headers.at(start)
        if number is None:
            return None
        functions = set()
        try:
            for name, vaddr in _defined_functions(self._debug.unit(number)):
                if vaddr is None:
                    return None
                functions.add((name, vaddr))
        except InputError:
            return None
        return frozenset(functions)


def _defined_functions(unit: Unit) -> Iterator[tuple[str, int | None]]:
    # Classes of C and C++ only declare their functions: the unit or a namespace defines them.
    skipped = _WITHOUT_FUNCTIONS if standard_of(unit) is None else _WITHOUT_FUNCTIONS | _CLASSES
    # By code the sizes of entries that are only passed over, where these do not vary.
    at, sizes = unit.first, {0: 1}
    while at < unit.end:
        code = unit.section.data[at]
        if code in sizes and at + sizes[code] <= unit.end:
            at += sizes[code]
            continue
        entry = unit.entry(at)
        at = entry.end
        if entry.tag not in skipped:
            if code < 0x80 and unit.layout(unit.abbreviations[code]).size_bytes is not None:
                sizes[code] = at - entry.offset
            continue
        if entry.tag == dw.TAG_SUBPROGRAM and (dw.AT_LOW_PC in entry.places or dw.AT_RANGES in entry.places):
            place = entry.places.get(dw.AT_LOW_PC)
            is_in_place = place is not None and place[0] == dw.FORM_ADDR
            yield _function(entry) or "", unit.number(entry, dw.AT_LOW_PC) if is_in_place else None
        sibling = unit.number(entry, dw.AT_SIBLING) if entry.has_children else None
        at = max(at, unit.start + (sibling or 0))


def declarations_by_name(
    debug: DebugInfo, names: Iterable[str], *, with_types: bool = True
) -> dict[str, tuple[Declaration, ...]]:
    """Find the declarations of variables that have no address in the debug information, by their names.

    Args:
        debug: The debug information of the file.
        names: The names in the source, without scopes: the debug information of such variables has no linker names.
        with_types: Whether their types matter.
    """
    wanted = {name.encode("utf-8", "surrogateescape"): name for name in names if name and "\0" not in name}
    declarations_by_name: dict[str, dict[Declaration, None]] = {}
    describer, prover = Describer(with_types=with_types), _NameProver(frozenset(wanted.values()))
    for group in _candidates(debug, wanted):
        try:
            for entry, name in prover.proved(group):
                here = declarations_by_name.setdefault(name, {})
                if len(here) < _MOST_DECLARATIONS:
                    here[describer.declaration(entry)._replace(contents=_contents(entry))] = None
        except InputError:
            # A damaged unit declares nothing; the search for addresses has a note of it.
            continue
    return {name: tuple(declarations) for name, declarations in declarations_by_name.items() if declarations}


class _NameProver(Prover[str]):
    """Proves that a variable without an address has a wanted name."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(dw.AT_NAME, {dw.FORM_STRP: 0, dw.FORM_STRING: 0})
        self._names = names

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> str | None:
        del group
        is_there = dw.AT_NAME in entry.places and entry.at + entry.places[dw.AT_NAME][1] == place
        # A constant value of a variable that was optimised away is a number; that of an array in the file is a block.
        if not is_there or dw.AT_LOCATION in entry.places or not _has_contents(entry):
            return None
        name = entry.unit.text(entry, dw.AT_NAME)
        return name if name in self._names else None


def _has_contents(entry: Entry) -> bool:
    value = entry.places.get(dw.AT_CONST_VALUE)
    return value is not None and value[0] in BLOCK_LENGTH_BYTES


def _contents(entry: Entry) -> bytes:
    form, at = entry.places[dw.AT_CONST_VALUE]
    section = entry.unit.section
    start, length_bytes = entry.unit.format.block(section, form, entry.at + at)
    return bytes(section.data[start : start + length_bytes])


# An attribute DW_AT_const_value with the form of a block, in the bytes of an abbreviation.
_BLOCK_OF_CONTENTS: Final = lazy_pattern(
    b"%c(?=[%s])" % (dw.AT_CONST_VALUE, re.escape(bytes(sorted(BLOCK_LENGTH_BYTES)))), re.DOTALL
)


def _candidates(debug: DebugInfo, wanted: Collection[bytes]) -> Iterator[Candidates]:
    """Find the places of the wanted names in entries that have contents in place of an address.

    Few abbreviations do, and few units have one: their codes are searched for.
    """
    section = debug.sections.get(".debug_abbrev")
    with_contents = array("Q", (match.start() for match in _BLOCK_OF_CONTENTS.finditer(section.data)))
    if not with_contents:
        return
    names = _Names(debug, wanted)
    units = list(debug.units())
    ends = dict(pairwise([*sorted({unit.abbreviations_at for unit in units}), section.size_bytes]))
    # gcc lets type units share the abbreviations of the larger unit that uses the types.
    unit_bytes: dict[tuple[UnitFormat, int], int] = {}
    for unit in units:
        unit_bytes[unit.table] = max(unit_bytes.get(unit.table, 0), unit.end - unit.start)
    patterns: dict[tuple[UnitFormat, int], list[_Named]] = {}
    for unit in units:
        at, end = (bisect_left(with_contents, start) for start in (unit.abbreviations_at, ends[unit.abbreviations_at]))
        if at == end:
            continue
        try:
            if unit.table not in patterns:
                patterns[unit.table] = list(_named_contents(unit, unit_bytes[unit.table], with_contents[at:end]))
            places = sorted({place for named in patterns[unit.table] for place in names.places(unit, named)})
        except InputError:
            # A damaged unit declares nothing; the search for addresses has a note of it.
            continue
        if places:
            yield Candidates(unit, places, {})


class _Named(NamedTuple):
    """The entries of an abbreviation with a name and contents: a pattern that finds them, and where the name stands.

    Attributes:
        pattern: Matches the code of an entry.
        name_at: The offset of the name in the entry.
        form: The form of the name.
    """

    pattern: re.Pattern[bytes]
    name_at: int
    form: int


def _named_contents(unit: Unit, unit_bytes: int, places: Iterable[int]) -> Iterator[_Named]:
    """Return the entries of variables with a name and contents; `places` has where abbreviations have contents."""
    section = unit.debug.sections.get(".debug_abbrev")
    abbreviations = (abbreviation_with(section, place, unit.abbreviations_at) for place in places)
    for abbreviation in dict.fromkeys(
        kept for kept in abbreviations if kept is not None and kept.tag == dw.TAG_VARIABLE
    ):
        at: int | None = len(abbreviation.code)
        name: int | None = None
        ahead, forms = b"", dict[int, int]()
        for attribute, form, _, size_bytes in unit.layout(abbreviation).steps:
            forms[attribute] = form
            if attribute == dw.AT_NAME and at is not None:
                name = at
            at = None if at is None or size_bytes is None else at + size_bytes
            if at is not None and size_bytes:
                ahead += _shape(unit, unit_bytes, form, size_bytes)
        has_contents = forms.get(dw.AT_CONST_VALUE) in BLOCK_LENGTH_BYTES and dw.AT_LOCATION not in forms
        if has_contents and name is not None and forms[dw.AT_NAME] in {dw.FORM_STRP, dw.FORM_STRING}:
            # No match can begin within a code: only its last byte is below 0x80.
            pattern = _compiled(re.escape(abbreviation.code) + b"(?=%s)" % ahead)
            yield _Named(pattern, name, forms[dw.AT_NAME])


@lru_cache(maxsize=1 << 12)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern; the cache of `re` is too small for the tables of a large program."""
    return re.compile(pattern, re.DOTALL)


def _shape(unit: Unit, unit_bytes: int, form: int, size_bytes: int) -> bytes:
    """Return a pattern of a value: the first bytes of offsets are zeros, as far as what they lead to is small."""
    sizes = {
        dw.FORM_STRP: unit.debug.sections.get(".debug_str").size_bytes,
        dw.FORM_REF4: unit_bytes,
    }
    if form not in sizes or unit.section.order != "little":
        return b".{%d}" % size_bytes
    used_bytes = max(1, (sizes[form].bit_length() + 7) // 8)
    # All ones: source files of about one size share their patterns.
    most = (1 << (sizes[form] >> 8 * (used_bytes - 1)).bit_length()) - 1
    if used_bytes > size_bytes:
        return b".{%d}" % size_bytes
    top = b"[\\0-%s]" % re.escape(bytes([most]))
    return b".{%d}%s\\0{%d}" % (used_bytes - 1, top, size_bytes - used_bytes)


class _Names:
    """Finds wanted names in what may be entries of an abbreviation; the same offsets of names occur in many units."""

    def __init__(self, debug: DebugInfo, wanted: Collection[bytes]) -> None:
        self._wanted = wanted
        self._longest_bytes = max(map(len, wanted), default=0) + 1
        self._texts = debug.sections.get(".debug_str").data
        self._cached: dict[bytes, bool] = {}

    def places(self, unit: Unit, named: _Named) -> Iterator[int]:
        """Return the places of wanted names in a unit."""
        data, wanted_by_offset, name_at, order = unit.section.data, self._cached, named.name_at, unit.section.order
        matches = named.pattern.finditer(data, unit.first, unit.end)
        if named.form == dw.FORM_STRING:
            yield from [at for match in matches if self._is_wanted(data, at := match.start() + name_at)]
            return
        offset_bytes = unit.format.offset_bytes
        for match in matches:
            at = match.start() + name_at
            offset = bytes(data[at : at + offset_bytes])
            if offset not in wanted_by_offset:
                wanted_by_offset[offset] = self._is_wanted(self._texts, int.from_bytes(offset, order))
            if wanted_by_offset[offset]:
                yield at

    def _is_wanted(self, data: Buffer, start: int) -> bool:
        return bytes(data[start : start + self._longest_bytes]).partition(b"\0")[0] in self._wanted
