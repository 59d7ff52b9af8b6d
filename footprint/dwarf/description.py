"""The description of a variable: its entry joined with the entries that this one refers to."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from footprint.dwarf import dw
from footprint.dwarf.lines import SourceFiles
from footprint.dwarf.standards import LanguageStandard, standard_of
from footprint.dwarf.types import Types
from footprint.dwarf.units import Entry, Unit
from footprint.errors import InputError

__all__ = ("Declaration", "Describer", "first", "linkage_name", "way")

T = TypeVar("T")

# C, C++ and Objective-C.
_LANGUAGES_WITH_HEADERS: Final = frozenset(
    {0x01, 0x02, 0x04, 0x0C, 0x10, 0x11, 0x15, 0x19, 0x1A, 0x1D, 0x21, 0x2A, 0x2B, 0x2C, 0x3A, 0x3E}
)
# An entry refers to its abstract origin, which refers to its specification. A longer chain is a circle.
_LONGEST_WAY: Final = 8


class Declaration(NamedTuple):
    """The declaration of a variable in one unit.

    Attributes:
        name: The linker name where the compiler states one (C++), else the name in the source.
        source_name: The name in the source.
        file: The file of the first declaration, such as in its class: the path that the compiler saw, joined with the
            folder it ran in; bytes that are not UTF-8 as surrogates.
        line: The line there.
        defined_in: The file of the definition: the same, unless the compiler states another.
        defined_at_line: The line there.
        unit: The source file of the unit; empty where several units share the declaration.
        type_name: The type as the source writes it, without scopes.
        size_bytes: The size of the type.
        is_in_header: Whether it is defined in a file that the unit includes, and not in the source file of the unit.
        is_external: Whether other units may refer to it.
        function: For a variable in a function, where requested, the linker name of that function.
        standard: The standard of C or C++ that the unit was compiled for; None for other languages.
        contents: The contents of a constant without an address, where the compiler states them.
        alignment_bytes: The alignment that the source asks for; None where it asks for none.
        unit_start: The start of the unit in .debug_info of the file; None for a unit of another file.
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
    function: str | None = None
    standard: LanguageStandard | None = None
    alignment_bytes: int | None = None
    unit_start: int | None = None
    contents: bytes | None = None


class Describer:
    """Describes variables, and keeps the files and types that many of them share.

    Attributes:
        damage: The first error in the name of a file, or in a reference of an entry.
    """

    def __init__(self) -> None:
        self.damage: InputError | None = None
        self._files = SourceFiles()
        self._types = Types()
        self._standards: dict[Unit, LanguageStandard | None] = {}

    def declaration(self, entry: Entry) -> Declaration:
        """Join an entry with the entries that it refers to; its own attributes come first."""
        linker_name = source_name = file = line = defined_in = defined_at_line = None
        source = ""
        type_name = size_bytes = alignment_bytes = None
        is_typed = is_external = False
        passed = tuple(way(entry))
        if len(passed) == _LONGEST_WAY and self.damage is None:
            self.damage = entry.unit.section.damage("its references form a circle", entry.offset)
        for one in passed:
            unit, places = one.unit, one.places
            source = source or self._files.primary(unit)
            if linker_name is None:
                linker_name = linkage_name(one)
            if source_name is None:
                source_name = unit.text(one, dw.AT_NAME)
            if (number := unit.number(one, dw.AT_DECL_FILE)) is not None:
                file = self._path(unit, number)
                defined_in = defined_in or file
            if (number := unit.number(one, dw.AT_DECL_LINE)) is not None:
                line = number
                defined_at_line = defined_at_line or line
            if not is_typed and dw.AT_TYPE in places:
                is_typed = True
                type_name, size_bytes = self._types.of(one)
            if alignment_bytes is None:
                alignment_bytes = unit.number(one, dw.AT_ALIGNMENT)
            is_external = is_external or (dw.AT_EXTERNAL in places and bool(unit.number(one, dw.AT_EXTERNAL)))
        return Declaration(
            linker_name or source_name,
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
            standard=self._standard(entry.unit),
            alignment_bytes=alignment_bytes,
        )

    def _standard(self, unit: Unit) -> LanguageStandard | None:
        if unit not in self._standards:
            self._standards[unit] = standard_of(unit) or (standard_of(unit.skeleton) if unit.skeleton else None)
        return self._standards[unit]

    def _path(self, unit: Unit, number: int) -> str | None:
        try:
            return self._files.path(unit, number)
        except InputError as error:
            self.damage = self.damage or error
            return None


def _may_include(unit: Unit) -> bool:
    """Return whether the language of a unit has headers; other languages have modules of many files."""
    language = unit.number(unit.root, dw.AT_LANGUAGE)
    return language is None or language in _LANGUAGES_WITH_HEADERS


def way(entry: Entry) -> Iterator[Entry]:
    """Return an entry, then the chain of its abstract origins and specifications."""
    target: Entry | None = entry
    for _ in range(_LONGEST_WAY):
        if target is None:
            return
        yield target
        attribute = dw.AT_SPECIFICATION if dw.AT_SPECIFICATION in target.places else dw.AT_ABSTRACT_ORIGIN
        target = target.unit.reference(target, attribute)


def linkage_name(entry: Entry) -> str | None:
    """Return the linker name that an entry itself states."""
    for attribute in (dw.AT_LINKAGE_NAME, dw.AT_MIPS_LINKAGE_NAME):
        if attribute in entry.places:
            return entry.unit.text(entry, attribute)
    return None


def first(values: Iterable[T | None]) -> T | None:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)
