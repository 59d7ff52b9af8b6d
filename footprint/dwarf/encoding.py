"""How the entries of debug information are written: attributes, forms, layouts, and tables of abbreviations.

Source: DWARF 5, sections 7.5.3 to 7.5.6; GNU extensions for split DWARF and dwz.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from footprint.dwarf import dw
from footprint.dwarf.sections import DebugSection
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

T = TypeVar("T")

_SMALL_BYTES: Final = 1 << 16
_MOST_READS: Final = 6
_READS_FOR_FORGOTTEN: Final = 3


class Tables(Generic[T]):
    """The tables of a section, each read on first use.

    Tables may share their bytes, so the number of bytes that are read is limited. The newest tables are kept, up to a
    number of entries; a forgotten one is read again within the limit.
    """

    def __init__(self, section: DebugSection, most_kept: int) -> None:
        self.section = section
        self._most_kept = most_kept
        # Each table with the number of its entries.
        self._tables: dict[int, tuple[T, int]] = {}
        self._damaged: dict[int, InputError] = {}
        self._kept_count = 0
        self._left_bytes = _SMALL_BYTES + section.size_bytes * _MOST_READS

    def at(self, offset: int, read: "Callable[[Tables[T], int], tuple[T, int]]") -> T:
        """Return the table at an offset; `read` reads it, and returns it with the number of its entries."""
        table = self._tables.get(offset)
        if table is None:
            if offset in self._damaged:
                raise self._damaged[offset].with_traceback(None)
            try:
                table = read(self, offset)
            except InputError as error:
                self._damaged[offset] = error
                raise
            self._keep(offset, table)
        return table[0]

    def spend(self, size_bytes: int, offset: int) -> None:
        """Count bytes that are read for the table at an offset."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise self.section.damage("tables overlap too much", offset)

    def _keep(self, offset: int, new: tuple[T, int]) -> None:
        self._kept_count += new[1]
        while self._tables and self._kept_count > self._most_kept:
            if self._left_bytes < self.section.size_bytes * _READS_FOR_FORGOTTEN:
                break
            self._kept_count -= self._tables.pop(next(iter(self._tables)))[1]
        self._tables[offset] = new


# By size the forms of fixed size: flags, data1 to data16, ref1 to ref8, strx1 to strx4, addrx1 to addrx4.
_FORMS_BY_BYTES: Final = {
    0: (0x19, 0x21),
    1: (0x0B, 0x0C, 0x11, 0x25, 0x29),
    2: (0x05, 0x12, 0x26, 0x2A),
    3: (0x27, 0x2B),
    4: (0x06, 0x13, 0x1C, 0x28, 0x2C),
    8: (0x07, 0x14, 0x20, 0x24),
    16: (0x1E,),
}
_FIXED_BYTES: Final = {form: size_bytes for size_bytes, forms in _FORMS_BY_BYTES.items() for form in forms}
_OFFSET_FORMS: Final = (0x0E, 0x17, 0x1D, 0x1F, dw.FORM_GNU_REF_ALT, dw.FORM_GNU_STRP_ALT)
# udata, sdata, ref_udata, strx, addrx, loclistx, rnglistx, GNU_addr_index and GNU_str_index.
LEB_FORMS: Final = frozenset({0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
# The number of bytes of the length of a block; 0 where the length is LEB128.
BLOCK_LENGTH_BYTES: Final = {
    dw.FORM_BLOCK1: 1,
    dw.FORM_BLOCK2: 2,
    dw.FORM_BLOCK4: 4,
    dw.FORM_BLOCK: 0,
    dw.FORM_EXPRLOC: 0,
}
STRX_FORMS: Final = frozenset({dw.FORM_STRX, dw.FORM_GNU_STR_INDEX, 0x25, 0x26, 0x27, 0x28})
# Compilers write some twenty attributes for an entry, of two bytes each; a longer list is damage.
_LONGEST_LIST: Final = 1024


class AttributeStep(NamedTuple):
    """One attribute of a layout: `constant` is that of DW_FORM_implicit_const, `size_bytes` is None where it varies."""

    attribute: int
    form: int
    constant: int
    size_bytes: int | None


class EntryLayout(NamedTuple):
    """The attributes of the entries of one abbreviation.

    Attributes:
        steps: The attributes in their order.
        size_bytes: The size of all of them; None where it varies.
        places: By attribute its form and its offset after the code; with DW_FORM_implicit_const, its value.
            Complete only where the size does not vary.
    """

    steps: tuple[AttributeStep, ...]
    size_bytes: int | None
    places: dict[int, tuple[int, int]]


class UnitFormat:
    """The format of the entries of a unit: the version of DWARF, and the sizes of offsets and addresses."""

    def __init__(self, version: int, offset_bytes: int, address_bytes: int) -> None:
        self.version = version
        self.offset_bytes = offset_bytes
        self.address_bytes = address_bytes
        self._sizes = _FIXED_BYTES | dict.fromkeys(_OFFSET_FORMS, offset_bytes) | {dw.FORM_ADDR: address_bytes}
        self._sizes[dw.FORM_REF_ADDR] = address_bytes if version == 2 else offset_bytes
        self._layouts: dict[bytes, EntryLayout] = {}

    def size_bytes(self, form: int) -> int | None:
        """Return the size of a form; None where it varies."""
        return self._sizes.get(form)

    def layout(self, section: DebugSection, raw: bytes) -> EntryLayout:
        """Return the layout of a list of attributes and forms; many abbreviations share one."""
        read_layout = self._layouts.get(raw)
        if read_layout is None:
            read_layout = self._layouts[raw] = self._made(section, raw)
        return read_layout

    def _made(self, section: DebugSection, raw: bytes) -> EntryLayout:
        if len(raw) > _LONGEST_LIST:
            raise section.damage(f"an abbreviation of {len(raw)} bytes", 0)
        numbers = DebugSection(section.file, section.name, raw, section.order)
        steps: list[AttributeStep] = []
        places: dict[int, tuple[int, int]] = {}
        at, total = 0, 0
        is_fixed = True
        while at < len(raw):
            attribute, at = numbers.uleb(at)
            form, at = numbers.uleb(at)
            constant, at = numbers.sleb(at) if form == dw.FORM_IMPLICIT_CONST else (0, at)
            size_bytes = self._sizes.get(form)
            is_fixed = is_fixed and size_bytes is not None
            steps.append(AttributeStep(attribute, form, constant, size_bytes))
            # An attribute that occurs twice is damage; the first one counts.
            places.setdefault(attribute, (form, constant if form == dw.FORM_IMPLICIT_CONST else total))
            total += size_bytes or 0
        return EntryLayout(tuple(steps), total if is_fixed else None, places)

    def end(self, section: DebugSection, form: int, at: int) -> int:
        """Return the end of a value of a form."""
        size_bytes = self._sizes.get(form)
        if size_bytes is not None:
            return at + size_bytes
        if form in LEB_FORMS:
            return section.uleb(at)[1]
        if form == dw.FORM_STRING:
            return section.text_end(at)
        if form in BLOCK_LENGTH_BYTES:
            start, length_bytes = self.block(section, form, at)
            return start + length_bytes
        if form == dw.FORM_INDIRECT:
            inner, at = section.uleb(at)
            if inner not in {dw.FORM_INDIRECT, dw.FORM_IMPLICIT_CONST}:
                return self.end(section, inner, at)
        raise section.damage(f"the form {form:#x} is unknown", at)

    def block(self, section: DebugSection, form: int, at: int) -> tuple[int, int]:
        """Return the start of the bytes of a block, and their number."""
        length_bytes = BLOCK_LENGTH_BYTES[form]
        if length_bytes:
            return at + length_bytes, section.unsigned(at, length_bytes)
        size_bytes, start = section.uleb(at)
        return start, size_bytes


_LEB: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
# Code, tag and children of an abbreviation, then all its attributes as one group. Compilers write some twenty.
_MOST_ATTRIBUTES: Final = 512
# The attributes are not a possessive group: Python before 3.11.5 matches those wrongly (gh-106052).
_ABBREVIATION: Final = lazy_pattern(
    rb"(?!\x00)(%(leb)b)(%(leb)b)(.)((?:(?!\x00\x00)%(leb)b(?:\x21%(leb)b|(?!\x21)%(leb)b)){0,%(most)d})\x00\x00"
    % {b"leb": _LEB, b"most": _MOST_ATTRIBUTES},
    re.DOTALL,
)
_LONGEST_BYTES: Final = _MOST_ATTRIBUTES * 30
# The largest programs with all units in one (LTO) have some thousands.
_MOST_IN_TABLE: Final = 1 << 16
_MOST_KEPT: Final = 1 << 15
_LONGEST_WAY_BACK: Final = 1 << 10


class Abbreviation(NamedTuple):
    """The meaning of a code: a tag, whether children follow, and the bytes of the attributes in the table."""

    code: bytes
    tag: int
    has_children: bool
    raw: bytes


def abbreviation_tables(section: DebugSection) -> Callable[[int], dict[int, Abbreviation]]:
    """Return what returns the table of .debug_abbrev at an offset, by codes: units have their own, or all share one."""
    return partial(Tables[dict[int, Abbreviation]](section, _MOST_KEPT).at, read=_read_abbreviations)


def abbreviation_with(section: DebugSection, attribute_at: int, table_at: int) -> Abbreviation | None:
    """Return the abbreviation of a table that has an attribute at an offset of .debug_abbrev, or None."""
    low = max(table_at, attribute_at - _LONGEST_WAY_BACK)
    # Two zeros end an abbreviation, and none has two before its end.
    zeros = bytes(section.data[low:attribute_at]).rfind(b"\0\0")
    if zeros < 0 and low > table_at:
        return None
    match = _ABBREVIATION.match(section.data, low if zeros < 0 else low + zeros + 2)
    if match is None or not match.start(4) <= attribute_at < match.end(4):
        return None
    code, _, children, raw = match.groups()
    return Abbreviation(code, section.uleb(match.start(2))[0], children != b"\0", raw)


def _read_abbreviations(tables: Tables[dict[int, Abbreviation]], offset: int) -> tuple[dict[int, Abbreviation], int]:
    section = tables.section
    abbreviations: dict[int, Abbreviation] = {}
    # A regular expression takes no offset that is larger than an index.
    at = min(offset, section.size_bytes)
    while match := _ABBREVIATION.match(section.data, at):
        code, tag, children, raw = match.groups()
        number = code[0] if len(code) == 1 else section.uleb(at)[0]
        tag_number = tag[0] if len(tag) == 1 else section.uleb(at + len(code))[0]
        abbreviations.setdefault(number, Abbreviation(code, tag_number, children != b"\0", raw))
        tables.spend(match.end() - at, offset)
        at = match.end()
        if len(abbreviations) > _MOST_IN_TABLE:
            raise section.damage(f"more than {_MOST_IN_TABLE} abbreviations in one table", offset)
    if at < section.size_bytes and section.data[at] != 0:
        # The search for an end that does not exist counts, too.
        tables.spend(_LONGEST_BYTES, offset)
    if not abbreviations:
        raise section.damage("no abbreviations", offset)
    return abbreviations, len(abbreviations)
