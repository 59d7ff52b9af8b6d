"""The types of variables: their names as C writes them, and their sizes.

Source: DWARF 5, chapter 5 (Type Entries) and section 7.12 (Source Languages).
"""

from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.units import Entry, Unit
from footprint.errors import InputError
from footprint.members import NamedTuple

_KEYWORDS: Final = {0x02: "class", 0x04: "enum", 0x13: "struct", 0x17: "union"}
_QUALIFIERS: Final = {0x26: "const", 0x35: "volatile", 0x37: "restrict", 0x47: "_Atomic"}
_POINTERS: Final = {dw.TAG_POINTER: "*", dw.TAG_REFERENCE: "&", dw.TAG_RVALUE_REFERENCE: "&&"}
_NAMES_WITHOUT_SIZE: Final = frozenset({dw.TAG_TYPEDEF, *_QUALIFIERS})
# C89, C, C99, C11, C17 and C23: in these the keyword is part of the name.
_C_LANGUAGES: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E})
# Ada, Cobol, Fortran, Pascal, Modula, PL/I and Julia count from 1.
_LANGUAGES_FROM_1: Final = frozenset({3, 5, 6, 7, 8, 9, 0x0A, 0x0D, 0x0E, 0x0F, 0x17, 0x1F, 0x22, 0x23, 0x2D})

_LONGEST_WAY: Final = 64
_MOST_CHILDREN: Final = 16
# All types of a large program together take a tenth of this.
_MOST_STEPS: Final = 1 << 21
_LONGEST_NAME: Final = 256
_ANY_ADDRESS: Final = (1 << 64) - 1


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
        for _ in range(_LONGEST_WAY):
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
            for _ in range(_LONGEST_WAY):
                if target is None or target.tag not in _POINTERS:
                    break
                stars = _POINTERS[target.tag] + stars
                target = self._target(target, dw.AT_TYPE)
            words = []
            for _ in range(_LONGEST_WAY):
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
        for _ in range(_LONGEST_WAY):
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
