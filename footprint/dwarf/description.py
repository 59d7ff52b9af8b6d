"""The description of a variable: its entry joined with the entries that this one refers to.

The language standard that a unit was compiled for, as far as its debug information names it.

gcc names it in the producer: `GNU C++14 12.2.0 -O2`. clang has only the language, which is C++14 for every later one.

Source: DWARF 5, section 7.12 (Source Languages), and the language codes that were assigned since.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from footprint.dwarf import dw
from footprint.dwarf.lines import SourceFiles
from footprint.dwarf.types import Types
from footprint.dwarf.units import Entry, Unit
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern


class LanguageStandard(NamedTuple):
    """A standard of C or C++; they are ordered by what a header that several units include may use.

    Attributes:
        is_cxx: Whether the language is C++.
        year: The year of the standard; None where it is not known.
    """

    is_cxx: bool
    year: int | None

    @property
    def label(self) -> str:
        """The name of the standard: `C++17`, `C11`, `C++`."""
        return f"{'C++' if self.is_cxx else 'C'}{'' if self.year is None else f'{self.year % 100:02}'}"

    @property
    def lacks_inline_variables(self) -> bool:
        """Whether it surely has no inline variables, which came with C++17."""
        return not self.is_cxx or (self.year is not None and self.year < 2017)


_OF_C: Final = {0x01: 1989, 0x02: None, 0x0C: 1999, 0x1D: 2011, 0x2C: 2017, 0x3E: 2023}
_OF_CXX: Final = {0x04: None, 0x19: 2003, 0x1A: 2011, 0x21: None, 0x2A: 2017, 0x2B: 2020, 0x3A: 2023}
_PRODUCER: Final = lazy_pattern(r"(?:GNU C| -std=(?:c|gnu|iso9899:))(\+\+)?(\d[\da-z])(?![\da-z])")
# What compilers called a standard before it was one.
_BEFORE_ITS_YEAR: Final = {"0x": 11, "1x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2x": 23, "2c": 26}


def standard_of(unit: Unit) -> LanguageStandard | None:
    """Return the standard that a unit was compiled for; None for other languages than C and C++.

    Raises:
        InputError: Where the root of the unit is damaged.
    """
    language = unit.number(unit.root, dw.AT_LANGUAGE)
    is_cxx = language in _OF_CXX
    if language is None or not (is_cxx or language in _OF_C):
        return None
    for cxx, digits in reversed(_PRODUCER.findall(unit.text(unit.root, dw.AT_PRODUCER) or "")):
        year = _BEFORE_ITS_YEAR.get(digits) or (int(digits) if digits.isdecimal() else None)
        if year is not None and bool(cxx) == is_cxx:
            return LanguageStandard(is_cxx, year + (1900 if year > 80 else 2000))
    return LanguageStandard(is_cxx, (_OF_CXX if is_cxx else _OF_C)[language])


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
    """Describes variables, without types where these do not matter, and keeps the files and types that many share.

    Attributes:
        damage: The first error in the name of a file, or in a reference of an entry.
    """

    def __init__(self, *, with_types: bool = True) -> None:
        self.damage: InputError | None = None
        self._with_types = with_types
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
        for passed_entry in passed:
            unit, places = passed_entry.unit, passed_entry.places
            source = source or self._files.primary(unit)
            if linker_name is None:
                linker_name = linkage_name(passed_entry)
            if source_name is None:
                source_name = unit.text(passed_entry, dw.AT_NAME)
            if (number := unit.number(passed_entry, dw.AT_DECL_FILE)) is not None:
                file = self._path(unit, number)
                defined_in = defined_in or file
            if (number := unit.number(passed_entry, dw.AT_DECL_LINE)) is not None:
                line = number
                defined_at_line = defined_at_line or line
            if self._with_types and not is_typed and dw.AT_TYPE in places:
                is_typed = True
                type_name, size_bytes = self._types.of(passed_entry)
            if alignment_bytes is None:
                alignment_bytes = unit.number(passed_entry, dw.AT_ALIGNMENT)
            is_external = is_external or (dw.AT_EXTERNAL in places and bool(unit.number(passed_entry, dw.AT_EXTERNAL)))
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
