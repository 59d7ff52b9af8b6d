"""The debug information of files: in themselves or their debug files, with what dwz and -gsplit-dwarf put elsewhere.

It has the source file of each row of a ledger whose owner is such a file.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from footprint.attribution.source_groups import SourceGroups
from footprint.dwarf.declarations import DefinedFunctions, compiled_sources, declarations_by_name, read_declarations
from footprint.dwarf.declared_variables import (
    NOTHING_DECLARED,
    DeclaredVariables,
    symbols_of_declarations,
    unnamed_places,
    variable_places,
)
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace, VariablePlaces
from footprint.dwarf.units import DebugInfo
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import Image, read_image
from footprint.elf.names import function_of_static, may_be_in_function
from footprint.elf.notes import DebugImage, DebugSearch, matched_sections
from footprint.errors import FootprintError, Note
from footprint.model.row import OF_OBJECTS, Row, is_file
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.system.files import open_input
from footprint.text.units import format_bytes

_Sources = dict[tuple[str | None, str | None], str]


class DebugInformation:
    """The debug information of one file.

    Args:
        files: Where debug files are looked for.
        image: The file.
        debug: The file that its symbols were read from, where that is another.
        paths: The absolute paths of the file.

    Attributes:
        image: The file that has the debug information; None where there is none.
        within: The numbers of the sections whose addresses it tells: a debug file can have others elsewhere.
        notes: What is odd about it, so far.
    """

    def __init__(self, files: DebugFiles, image: Image, debug: DebugImage | None, *paths: str) -> None:
        self.image, self.notes = files.debug_info_of(image, debug, *paths)
        self._files = files
        self._of = image
        self._symbols_of = debug
        self._paths = paths
        indexes = {section.index for section in image.sections}
        if self.image is None or self.image is image:
            self.within = frozenset(indexes)
        else:
            self.within = frozenset(section.index for section in matched_sections(image, self.image).values())
        if self.image is None:
            detail = "it has no .debug_info, and no debug file with one: it was compiled without -g, or stripped"
            self.notes.append(Note("debug-info-absent", self._of.file, detail))

    def declarations(
        self, places: Iterable[VariablePlace], names: Mapping[VariablePlace, str] | None = None
    ) -> dict[VariablePlace, tuple[Declaration, ...]]:
        """Return the declarations of the variables at some places; if they cannot be read, add a note.

        `names` has the linker names that are known: those of C++ contain the function of a static.
        """
        image, wanted = self.image, list(places)
        if image is None or not wanted:
            return {}
        alternate, odd = self._files.alternate_of(image, *self._paths)
        package, more = self._files.package_of(image, *self._paths)
        self.notes += odd + more
        try:
            read = read_declarations(
                image,
                wanted,
                alternate=alternate,
                split=self._split,
                package=package,
                debug=self._debug,
                with_functions=True if names is None else {place for place in wanted if _is_walked(names.get(place))},
            )
        except FootprintError as error:
            self.notes.append(Note("debug-info-damaged", self._of.file, f"{error}: no lines are shown"))
            return {}
        self.notes += read.notes
        for place, name in (names or {}).items():
            function = function_of_static(name) if name.startswith("_ZZ") else None
            if function is not None and place in read.by_place:
                read.by_place[place] = tuple(
                    [entry if entry.function else entry._replace(function=function) for entry in read.by_place[place]]
                )
        return read.by_place

    def declarations_by_name(
        self, names: Iterable[str], *, with_types: bool
    ) -> tuple[dict[str, tuple[Declaration, ...]], tuple[str, ...]]:
        """Return the declarations without an address that have some names, and the source of each unit."""
        wanted = set(names)
        if self._debug is None or not wanted:
            return {}, ()
        try:
            declarations = declarations_by_name(self._debug, wanted, with_types=with_types)
            return declarations, compiled_sources(self._debug) if declarations else ()
        except FootprintError:
            # What is damaged there, the search for addresses has said.
            return {}, ()

    def functions_of_unit(self, start: int) -> frozenset[tuple[str, int]] | None:
        """Return the functions that the unit at an offset defines, each with its vaddr; None where that is unknown."""
        return None if self._defined is None else self._defined.of(start)

    @cached_property
    def _defined(self) -> DefinedFunctions | None:
        return None if self._debug is None else DefinedFunctions(self._debug)

    @cached_property
    def _debug(self) -> DebugInfo | None:
        """The debug information of the file, opened once for all questions; None where it cannot be opened."""
        try:
            return None if self.image is None else DebugInfo(self.image)
        except FootprintError:
            # What is damaged there, the search for addresses says.
            return None

    def sources(self, contents: Contents) -> tuple[Contents, DeclaredVariables, list[Note]]:
        """Find where the variables of the file are declared, and name those that no symbol names.

        Returns what the file holds, the declarations, and what of them is absent, damaged, or another file's.

        Raises:
            InputError: Where the file is damaged.
        """
        if self.image is None:
            return contents, NOTHING_DECLARED, self.notes
        places = VariablePlaces(self._of)
        nameless, too_many = unnamed_places(places, contents, self.within)
        names = {places.of(variable): variable.name for section in contents.sections for variable in section.variables}
        declarations = self.declarations(variable_places(places, contents, self.within) | nameless, names)
        if too_many:
            detail = f"it was not searched for the {format_bytes(too_many)} without a symbol: they are too many"
            self.notes.append(Note("debug-info-unsearched", self._of.file, detail))
        more = symbols_of_declarations(places, contents, self.within, declarations)
        if more:
            contents = read_contents(self._of, self._symbols_of, more)
        named = frozenset(
            (section.section.index, variable.offset)
            for section in contents.sections
            for variable in section.variables
            if places.of(variable) in nameless
        )
        return contents, DeclaredVariables(places, declarations, named), self.notes

    def _split(self, path: str) -> Image | None:
        split, odd = self._files.split_of(self.image or self._of, path, *self._paths)
        self.notes += odd
        return split


def _is_walked(name: str | None) -> bool:
    """Return whether only a walk through its unit finds the function of a variable, where it has one."""
    return name is None or may_be_in_function(name)


if TYPE_CHECKING:
    from footprint.model.audit import Audit


def row_sources(
    audited: "Audit", groups: SourceGroups, debug: DebugSearch | None, root: str | None = None
) -> Callable[[Row], str | None]:
    """Return a function from rows to the groups of the source files that declare their variables.

    A file is read when the first of its rows is asked for; one that cannot be read declares nothing.
    """
    debug_files = DebugFiles(debug, root)
    pid = getattr(audited, "pid", None)
    folder = root or (f"/proc/{pid}/root" if pid else "")
    sources: dict[str, _Sources] = {}

    def source_of(row: Row) -> str | None:
        if row.symbol is None or row.kind not in OF_OBJECTS or not is_file(row.owner):
            return None
        if row.owner not in sources:
            sources[row.owner] = {}
            for path in (f"{folder}{row.owner}", row.owner):
                with suppress(FootprintError):
                    sources[row.owner] = _declared(path, debug_files)
                    break
        path_of = sources[row.owner].get((row.section, row.symbol))
        return None if path_of is None else groups.label(path_of)

    return source_of


def _declared(path: str, debug_files: DebugFiles) -> _Sources:
    """Return the source file of each variable of a file, by section and linker name."""
    image = read_image(open_input(path), path)
    paths = absolute_paths(path)
    contents, debug, _ = debug_files.read(image, read_contents, *paths)
    named, declared, _ = DebugInformation(debug_files, image, debug, *paths).sources(contents)
    sources: _Sources = {}
    for section in named.sections:
        for variable in section.variables:
            place = declared.of(section, variable)
            if place is not None and (source := place.defined_in or place.unit):
                sources[section.section.name, variable.name] = source
    return sources
