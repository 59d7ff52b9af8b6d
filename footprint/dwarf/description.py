"""The description of a variable: its entry joined with those that it refers to, and its type as C writes it.

The language standard that a unit was compiled for, as far as its debug information names it.

gcc names it in the producer: `GNU C++14 12.2.0 -O2`. clang has only the language, which is C++14 for every later one.

Source: DWARF 5, chapter 5 (Type Entries), section 7.12 (Source Languages), and the codes that were assigned since.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from footprint.dwarf import dw
from footprint.dwarf.lines import SourceFiles
from footprint.dwarf.units import Entry, Unit
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

T = TypeVar("T")
_KEYWORDS: Final = {0x02: "class", 0x04: "enum", 0x13: "struct", 0x17: "union"}
_QUALIFIERS: Final = {0x26: "const", 0x35: "volatile", 0x37: "restrict", 0x47: "_Atomic"}
_POINTERS: Final = {dw.TAG_POINTER: "*", dw.TAG_REFERENCE: "&", dw.TAG_RVALUE_REFERENCE: "&&"}
_NAMES_WITHOUT_SIZE: Final = frozenset({dw.TAG_TYPEDEF, *_QUALIFIERS})
# C89, C, C99, C11, C17 and C23: in these the keyword is part of the name.
_C_LANGUAGES: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E})
# Ada, Cobol, Fortran, Pascal, Modula, PL/I and Julia count from 1.
_LANGUAGES_FROM_1: Final = frozenset({3, 5, 6, 7, 8, 9, 0x0A, 0x0D, 0x0E, 0x0F, 0x17, 0x1F, 0x22, 0x23, 0x2D})
_LONGEST_TYPE: Final = 64
_MOST_CHILDREN: Final = 16
# All types of a large program together take a tenth of this.
_MOST_STEPS: Final = 1 << 21
_LONGEST_NAME: Final = 256
_ANY_ADDRESS: Final = (1 << 64) - 1
_OF_C: Final = {0x01: 1989, 0x02: None, 0x0C: 1999, 0x1D: 2011, 0x2C: 2017, 0x3E: 2023}
_OF_CXX: Final = {0x04: None, 0x19: 2003, 0x1A: 2011, 0x21: None, 0x2A: 2017, 0x2B: 2020, 0x3A: 2023}
_PRODUCER: Final = lazy_pattern(r"(?:GNU C| -std=(?:c|gnu|iso9899:))(\+\+)?(\d[\da-z])(?![\da-z])")
# What compilers called a standard before it was one.
_BEFORE_ITS_YEAR: Final = {"0x": 11, "1x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2x": 23, "2c": 26}
# C, C++ and Objective-C.
_LANGUAGES_WITH_HEADERS: Final = frozenset(
    {0x01, 0x02, 0x04, 0x0C, 0x10, 0x11, 0x15, 0x19, 0x1A, 0x1D, 0x21, 0x2A, 0x2B, 0x2C, 0x3A, 0x3E}
)
# An entry refers to its abstract origin, which refers to its specification. A longer chain is a circle.
_LONGEST_WAY: Final = 8


class VariableType(NamedTuple):
    """The name of a type, and its size; None where the debug information has none."""

    name: str | None
    size_bytes: int | None


_NO_TYPE: Final = VariableType(None, None)


class Types:
    """Reads types, each of them once."""

    def __init__(self) -> None:
        self._types: dict[tuple[Unit, int, int], VariableType] = {}
        self._steps_left = _MOST_STEPS

    def of(self, entry: Entry) -> VariableType:
        """Return the type that an entry refers to; a damaged type has neither name nor size."""
        unit = entry.unit
        try:
            key = unit, entry.places[dw.AT_TYPE][0], unit.number(entry, dw.AT_TYPE) or 0
            variable_type = self._types.get(key)
            if variable_type is None:
                target = unit.reference(entry, dw.AT_TYPE)
                variable_type = _NO_TYPE if target is None else VariableType(self._name(target), self._size(target))
                self._types[key] = variable_type
        except InputError:
            return _NO_TYPE
        return variable_type

    def _name(self, entry: Entry) -> str:
        """Return the name of a type as C writes it, built from the middle outwards."""
        around, qualifiers = "", ""
        base = "void"
        target: Entry | None = entry
        for _ in range(_LONGEST_TYPE):
            if target is None:
                break
            tag = target.tag
            if tag in _QUALIFIERS:
                if _QUALIFIERS[tag] not in qualifiers:
                    qualifiers += f"{_QUALIFIERS[tag]} "
            elif tag in _POINTERS:
                around = f"{_POINTERS[tag]}{qualifiers}{around}" if around else f"{_POINTERS[tag]}{qualifiers}".rstrip()
                qualifiers = ""
            elif tag in {dw.TAG_ARRAY, dw.TAG_SUBROUTINE}:
                if around.startswith(("*", "&")):
                    around = f"({around})"
                around += self._bounds(target) if tag == dw.TAG_ARRAY else self._parameters(target)
            else:
                base = self._base_name(target)
                break
            if len(around) > _LONGEST_NAME:
                break
            target = self._target(target, dw.AT_TYPE)
        name = qualifiers + base + (" " if around.startswith(("*", "&", "(")) else "") + around
        return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."

    def _base_name(self, entry: Entry) -> str:
        name = entry.unit.text(entry, dw.AT_NAME)
        keyword = _KEYWORDS.get(entry.tag)
        if name is None:
            return f"{keyword} {{...}}" if keyword else "?"
        if keyword and entry.unit.number(entry.unit.root, dw.AT_LANGUAGE) in _C_LANGUAGES:
            return f"{keyword} {name}"
        return name

    def _children(self, entry: Entry, tag: int) -> list[Entry]:
        """Return the first children of a tag; children of arrays and functions have no children."""
        children: list[Entry] = []
        at = entry.end
        while entry.has_children and len(children) < _MOST_CHILDREN and at < entry.unit.end:
            if entry.unit.section.data[at] == 0:
                break
            self._spend(entry)
            child = entry.unit.entry(at)
            if child.tag != tag or child.has_children:
                break
            children.append(child)
            at = child.end
        return children

    def _counts(self, entry: Entry) -> list[int | None]:
        """Return the number of elements of each dimension of an array; None where it is unknown."""
        counts: list[int | None] = []
        for child in self._children(entry, dw.TAG_SUBRANGE):
            unit = child.unit
            count = unit.number(child, dw.AT_COUNT)
            upper = unit.number(child, dw.AT_UPPER_BOUND)
            if count is None and upper is not None:
                lower = unit.number(child, dw.AT_LOWER_BOUND)
                if lower is None:
                    lower = int(unit.number(unit.root, dw.AT_LANGUAGE) in _LANGUAGES_FROM_1)
                form = child.places[dw.AT_UPPER_BOUND][0]
                size_bytes = unit.format.size_bytes(form) if form != dw.FORM_SDATA else None
                # The upper bound of an array without elements is -1, written as an unsigned number.
                is_empty = size_bytes is not None and size_bytes >= 4 and upper == (1 << 8 * size_bytes) - 1
                count = 0 if is_empty else upper - lower + 1
            counts.append(count)
        return counts

    def _bounds(self, entry: Entry) -> str:
        counts = self._counts(entry) or [None]
        return "".join("[]" if count is None else f"[{count}]" for count in counts)

    def _parameters(self, entry: Entry) -> str:
        """Return the parameters of a function, each by the name of its type; a function type is not expanded."""
        names = []
        for child in self._children(entry, dw.TAG_FORMAL_PARAMETER):
            target = self._target(child, dw.AT_TYPE)
            stars = ""
            for _ in range(_LONGEST_TYPE):
                if target is None or target.tag not in _POINTERS:
                    break
                stars = _POINTERS[target.tag] + stars
                target = self._target(target, dw.AT_TYPE)
            words = []
            for _ in range(_LONGEST_TYPE):
                if target is None or target.tag not in _QUALIFIERS:
                    break
                words.append(_QUALIFIERS[target.tag])
                target = self._target(target, dw.AT_TYPE)
            name = "void" if target is None else self._base_name(target)
            names.append(" ".join([*words, name + (f" {stars}" if stars else "")]))
        return f"({', '.join(names)})"

    def _size(self, entry: Entry) -> int | None:
        factor = 1
        target: Entry | None = entry
        for _ in range(_LONGEST_TYPE):
            if target is None:
                return None
            size_bytes = self._own_size(target)
            if size_bytes is not None:
                return _bounded(factor * size_bytes)
            attribute = dw.AT_TYPE
            if target.tag == dw.TAG_ARRAY:
                count = self._element_count(target)
                if count is None:
                    return None
                factor *= count
            elif dw.AT_SIGNATURE in target.places:
                attribute = dw.AT_SIGNATURE
            elif target.tag not in _NAMES_WITHOUT_SIZE:
                return None
            target = self._target(target, attribute)
        return None

    def _own_size(self, entry: Entry) -> int | None:
        """Return the size that a type states, or that its kind implies."""
        size_bytes = entry.unit.number(entry, dw.AT_BYTE_SIZE)
        if size_bytes is None and entry.tag in _POINTERS:
            return entry.unit.format.address_bytes
        stride = entry.unit.number(entry, dw.AT_BYTE_STRIDE)
        if size_bytes is None and entry.tag == dw.TAG_ARRAY and stride is not None:
            count = self._element_count(entry)
            return None if count is None else count * stride
        return size_bytes

    def _element_count(self, entry: Entry) -> int | None:
        """Return the number of elements of an array; None where a dimension has no bound, or where it is too large."""
        counts = self._counts(entry)
        product = 1
        for count in counts:
            if count is None:
                return None
            product *= count
        return product if counts and 0 <= product <= _ANY_ADDRESS else None

    def _target(self, entry: Entry, attribute: int) -> Entry | None:
        """Read the type that an entry refers to."""
        self._spend(entry)
        return entry.unit.reference(entry, attribute)

    def _spend(self, entry: Entry) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise entry.unit.section.damage("types refer to too many other types", entry.offset)


def _bounded(size_bytes: int) -> int | None:
    return size_bytes if 0 <= size_bytes <= _ANY_ADDRESS else None


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
