"""The units of debug information, and single entries read wherever they stand.

A unit is made when it is asked for: large programs have 100,000 of them, and few are of interest.

Source: DWARF 5, sections 7.5 (Format of Debugging Information) and 7.26 (String Offsets Table), and those of versions
2 to 4 where they differ.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from footprint.dwarf.encoding import (
    DW_AT_STR_OFFSETS_BASE,
    DW_FORM_FLAG_PRESENT,
    DW_FORM_GNU_REF_ALT,
    DW_FORM_GNU_STRP_ALT,
    DW_FORM_IMPLICIT_CONST,
    DW_FORM_LINE_STRP,
    DW_FORM_REF_ADDR,
    DW_FORM_REF_SIG8,
    DW_FORM_REF_SUP4,
    DW_FORM_REF_SUP8,
    DW_FORM_REF_UDATA,
    DW_FORM_SDATA,
    DW_FORM_STRING,
    DW_FORM_STRP,
    DW_FORM_STRP_SUP,
    LEB_FORMS,
    STRX_FORMS,
    Abbreviation,
    AbbreviationTables,
    EntryLayout,
    UnitFormat,
)
from footprint.dwarf.headers import ADDRESS_BYTES, DW_SECT_ABBREV, DW_SECT_STR_OFFSETS, Headers, Shifts, read_shifts
from footprint.dwarf.sections import DebugSection, DebugSections
from footprint.elf.image import Image
from footprint.errors import InputError

__all__ = ("DebugInfo", "Entry", "Unit")

DW_UT_TYPE: Final = 2
DW_UT_SKELETON: Final = 4
DW_UT_SPLIT_COMPILE: Final = 5
DW_UT_SPLIT_TYPE: Final = 6
_TYPE_UNITS: Final = frozenset({DW_UT_TYPE, DW_UT_SPLIT_TYPE})
_UNITS_WITH_ID: Final = frozenset({DW_UT_SKELETON, DW_UT_SPLIT_COMPILE})


_LOCAL_REFERENCES: Final = frozenset({0x11, 0x12, 0x13, 0x14, DW_FORM_REF_UDATA})
_ALTERNATE_REFERENCES: Final = frozenset({DW_FORM_GNU_REF_ALT, DW_FORM_REF_SUP4, DW_FORM_REF_SUP8})
_ALTERNATE_TEXTS: Final = frozenset({DW_FORM_GNU_STRP_ALT, DW_FORM_STRP_SUP})

# Compilers write some hundred bytes a unit, and thirty where its entries stand in a file of their own.
_FEW_UNITS: Final = 1 << 16
_BYTES_PER_UNIT: Final = 128


class Entry(NamedTuple):
    """One debugging information entry (DIE).

    Attributes:
        unit: The unit it stands in.
        offset: Where it begins, in its section.
        tag: DW_TAG_*.
        has_children: Whether entries below it follow.
        at: Where its attributes begin.
        end: Where they end.
        places: By attribute its form, and where it stands behind `at`; the value itself of an implicit constant.
    """

    unit: "Unit"
    offset: int
    tag: int
    has_children: bool
    at: int
    end: int
    places: dict[int, tuple[int, int]]


class Unit:
    """One unit of `.debug_info` or `.debug_types`, read on demand.

    Attributes:
        debug: The debug information of the file that it stands in.
        section: The section that it stands in.
        start: Where its header begins, in the section.
        first: Where its first entry begins.
        end: Where it ends.
        format: How its numbers are written.
        identity: The signature of a type unit, or what a skeleton and its split unit have in common; else None.
        type_at: Where the type of a type unit stands, in the section; else None.
        skeleton: For a split unit, the unit of the linked file that stands for it.
        shifts: For a unit of a package, where its parts of other sections begin.
    """

    __slots__ = (
        *("_abbreviations_at", "_root", "_str_offsets_base", "debug", "end", "first", "format"),
        *("identity", "section", "shifts", "skeleton", "start", "type_at"),
    )

    def __init__(
        self,
        debug: "DebugInfo",
        section: DebugSection,
        bounds: tuple[int, int, int],
        form: UnitFormat,
        abbreviations_at: int,
        identity: tuple[int | None, int | None],
        shifts: Shifts,
    ) -> None:
        self.debug = debug
        self.section = section
        self.start, self.first, self.end = bounds
        self.format = form
        self.identity, self.type_at = identity
        self.skeleton: Unit | None = None
        self.shifts = shifts
        self._abbreviations_at = abbreviations_at + shifts.get(DW_SECT_ABBREV, 0)
        self._root: Entry | None = None
        self._str_offsets_base: int | None = None

    @property
    def abbreviations(self) -> dict[int, Abbreviation]:
        """Give the abbreviations by their codes.

        Raises:
            InputError: Where there are none, or tables overlap beyond reason.
        """
        return self.debug.abbreviations.table(self._abbreviations_at)

    @property
    def table(self) -> tuple[UnitFormat, int]:
        """Give what units have in common whose entries are laid out alike."""
        return self.format, self._abbreviations_at

    @property
    def root(self) -> Entry:
        """Give the first entry, which describes the unit.

        Raises:
            InputError: Where it is damaged.
        """
        if self._root is None:
            self._root = self.entry(self.first)
        return self._root

    def layout(self, abbreviation: Abbreviation) -> EntryLayout:
        """Give how the entries of an abbreviation are laid out.

        Raises:
            InputError: Where it is damaged.
        """
        return self.format.layout(self.section, abbreviation.raw)

    def entry(self, offset: int) -> Entry:
        """Read the entry at an offset of the section.

        Raises:
            InputError: Where none can stand there.
        """
        if not self.first <= offset < self.end:
            raise self.section.damage("an entry lies outside of its unit", offset)
        code, at = self.section.data[offset], offset + 1
        if code >= 0x80:
            code, at = self.section.uleb(offset)
        abbreviation = self.abbreviations.get(code)
        if abbreviation is None:
            raise self.section.damage(f"no abbreviation {code}", offset)
        layout = self.layout(abbreviation)
        places = layout.places
        if layout.size_bytes is None:
            places, end = {}, at
            for attribute, form, constant, size_bytes in layout.steps:
                here = constant if form == DW_FORM_IMPLICIT_CONST else end - at
                places.setdefault(attribute, (form, here))
                end = self.format.end(self.section, form, end) if size_bytes is None else end + size_bytes
        else:
            end = at + layout.size_bytes
        if end > self.end:
            raise self.section.damage("an entry reaches beyond its unit", offset)
        return Entry(self, offset, abbreviation.tag, abbreviation.has_children, at, end, places)

    def number(self, entry: Entry, attribute: int) -> int | None:
        """Give a constant, flag, index or offset of an entry; None where it has none, or an expression instead.

        Raises:
            InputError: Where it is damaged.
        """
        place = entry.places.get(attribute)
        if place is None:
            return None
        form, at = place
        if form == DW_FORM_IMPLICIT_CONST:
            return at
        if form == DW_FORM_FLAG_PRESENT:
            return 1
        at += entry.at
        if form == DW_FORM_SDATA:
            return self.section.sleb(at)[0]
        if form in LEB_FORMS:
            return self.section.uleb(at)[0]
        size_bytes = self.format.size_bytes(form)
        return None if size_bytes is None else self.section.unsigned(at, size_bytes)

    def text(self, entry: Entry, attribute: int) -> str | None:
        """Give a text of an entry; None where it has none, or one that stands in a file that is absent.

        Raises:
            InputError: Where it is damaged.
        """
        place = entry.places.get(attribute)
        return None if place is None else self.text_of(self.section, self.format, place[0], entry.at + place[1])

    def text_of(self, section: DebugSection, written: UnitFormat, form: int, at: int) -> str | None:
        """Give the text that a form at some place stands for, such as in a line table, whose format may be another.

        Raises:
            InputError: Where it is damaged.
        """
        if form == DW_FORM_STRING:
            return section.text(at)[0]
        if form in LEB_FORMS:
            value = section.uleb(at)[0]
        else:
            size_bytes = written.size_bytes(form)
            if size_bytes is None:
                return None
            value = section.unsigned(at, size_bytes)
        if form in STRX_FORMS:
            return self._indexed_text(value)
        if form == DW_FORM_STRP:
            return self.debug.sections.get(".debug_str").text_at(value)
        if form == DW_FORM_LINE_STRP:
            return self.debug.sections.get(".debug_line_str").text_at(value)
        if form in _ALTERNATE_TEXTS:
            alternate = self.debug.needed_alternate()
            return None if alternate is None else alternate.sections.get(".debug_str").text_at(value)
        return None

    def _indexed_text(self, index: int) -> str:
        offsets = self.debug.sections.get(".debug_str_offsets")
        at = self.str_offsets_base + index * self.format.offset_bytes
        return self.debug.sections.get(".debug_str").text_at(offsets.unsigned(at, self.format.offset_bytes))

    @property
    def str_offsets_base(self) -> int:
        """Give where the unit's part of .debug_str_offsets begins; a split unit need not say so."""
        if self._str_offsets_base is None:
            # Reading the root's name must not ask for this again: the base itself is no text.
            base = self.number(self.root, DW_AT_STR_OFFSETS_BASE)
            if base is None:
                base = 0 if self.format.version < 5 else 2 * self.format.offset_bytes
            self._str_offsets_base = base + self.shifts.get(DW_SECT_STR_OFFSETS, 0)
        return self._str_offsets_base

    def reference(self, entry: Entry, attribute: int) -> Entry | None:
        """Read the entry that an attribute refers to; None where it has none, or it is in a file that is absent.

        Raises:
            InputError: Where it leads nowhere.
        """
        place = entry.places.get(attribute)
        value = self.number(entry, attribute)
        if place is None or value is None:
            return None
        form = place[0]
        if form in _LOCAL_REFERENCES:
            return self.entry(self.start + value)
        if form == DW_FORM_REF_ADDR:
            return self.debug.entry(value)
        if form in _ALTERNATE_REFERENCES:
            alternate = self.debug.needed_alternate()
            return None if alternate is None else alternate.entry(value)
        if form == DW_FORM_REF_SIG8:
            unit = self.debug.type_unit(value)
            return None if unit is None or unit.type_at is None else unit.entry(unit.type_at)
        return None


class DebugInfo:
    """The debug information of one file.

    Attributes:
        sections: Its debug sections.
        abbreviations: The tables of abbreviations of its units.
        headers: Where the units of .debug_info stand.
        unknown_versions: Versions of units that were passed over.
        alternate: What dwz took out of several files, where it was given.
        lacks_alternate: Whether it was needed and not given.
    """

    def __init__(self, image: Image, *, alternate: "DebugInfo | None" = None, suffix: str = "") -> None:
        self.image = image
        self.sections = DebugSections(image, suffix=suffix)
        self.alternate = alternate
        self.lacks_alternate = False
        self.damage: InputError | None = None
        self.unknown_versions: set[int] = set()
        self._formats: dict[tuple[int, int, int], UnitFormat] = {}
        self.abbreviations = AbbreviationTables(self.sections.get(".debug_abbrev"))
        self._shifts = read_shifts(self.sections)
        self._units: dict[tuple[bool, int], Unit] = {}
        self.headers = self._headers(is_types=False)
        self._type_starts: dict[int, tuple[bool, int]] | None = None

    def unit(self, number: int) -> Unit:
        """Give a unit of .debug_info by its number in the headers."""
        return self._known_unit(self.headers.starts[number], is_types=False)

    def units(self) -> Iterator[Unit]:
        """Give the units of .debug_info in its order, unless they are more than any compiler makes."""
        most = _FEW_UNITS + self.sections.get(".debug_info").size_bytes // _BYTES_PER_UNIT
        for number in range(min(len(self.headers.starts), most)):
            yield self.unit(number)
        if len(self.headers.starts) > most:
            detail = f"{len(self.headers.starts)} units are more than any compiler makes; not all were looked into"
            self.damage = self.damage or InputError(self.image.file, f".debug_info: {detail}")

    def entry(self, offset: int) -> Entry:
        """Read the entry at an offset of .debug_info.

        Raises:
            InputError: Where none can stand there.
        """
        number = self.headers.at(offset)
        if number is None:
            raise self.sections.get(".debug_info").damage("a reference to no unit", offset)
        return self.unit(number).entry(offset)

    def type_unit(self, signature: int) -> Unit | None:
        """Give the type unit with a signature."""
        if self._type_starts is None:
            apart = self._headers(is_types=True)
            starts = [(False, start) for start in self.headers.starts]
            starts += [(True, start) for start in apart.starts]
            self._type_starts = {}
            for place in starts:
                if (identity := self._signature(*place)) is not None:
                    self._type_starts[identity] = place
        place_of_type = self._type_starts.get(signature)
        return None if place_of_type is None else self._known_unit(place_of_type[1], is_types=place_of_type[0])

    def needed_alternate(self) -> "DebugInfo | None":
        """Give the file of dwz, and remember that it was needed."""
        self.lacks_alternate = self.lacks_alternate or self.alternate is None
        return self.alternate

    def _signature(self, is_types: bool, start: int) -> int | None:  # noqa: FBT001 # it comes from a tuple
        """Give the signature of a type unit from its header."""
        section = self.sections.get(".debug_types" if is_types else ".debug_info")
        data = section.data
        is_long = data[start : start + 4] == b"\xff\xff\xff\xff"
        at = start + (12 if is_long else 4)
        offset_bytes = 8 if is_long else 4
        if section.unsigned(at, 2) < 5:
            return section.unsigned(at + 3 + offset_bytes, 8) if is_types else None
        return section.unsigned(at + 4 + offset_bytes, 8) if data[at + 2] in _TYPE_UNITS else None

    def _headers(self, *, is_types: bool) -> Headers:
        section = self.sections.get(".debug_types" if is_types else ".debug_info")

        def read(start: int) -> tuple[tuple[int, int] | None, int]:
            unit, end = self._unit(section, start, is_types=is_types)
            return None if unit is None else (unit.format.offset_bytes, unit.format.address_bytes), end

        headers = Headers(section, read)
        self.damage = self.damage or headers.damage
        return headers

    def _known_unit(self, start: int, *, is_types: bool) -> Unit:
        known = self._units.get((is_types, start))
        if known is None:
            section = self.sections.get(".debug_types" if is_types else ".debug_info")
            known, _ = self._unit(section, start, is_types=is_types)
            if known is None:
                raise section.damage("no unit", start)
            self._units[is_types, start] = known
        return known

    def _unit(self, section: DebugSection, start: int, *, is_types: bool) -> tuple[Unit | None, int]:
        """Read one header; gives where the unit ends, too."""
        number = section.unsigned
        length_bytes, offset_bytes = number(start, 4), 4
        at = start + 4
        if length_bytes == 0xFFFFFFFF:
            length_bytes, offset_bytes = number(at, 8), 8
            at += 8
        end = at + length_bytes
        if end > section.size_bytes:
            raise section.damage("a unit reaches beyond its end", start)
        if length_bytes < 2:
            return None, end  # zeros that align what follows
        version = number(at, 2)
        at += 2
        if not 2 <= version <= 5:
            self.unknown_versions.add(version)
            return None, end
        kind = DW_UT_TYPE if is_types else 1
        if version == 5:
            kind, address_bytes = number(at, 1), number(at + 1, 1)
            at += 2
        abbreviations_at = number(at, offset_bytes)
        at += offset_bytes
        if version < 5:
            address_bytes = number(at, 1)
            at += 1
        identity = type_at = None
        if kind in _TYPE_UNITS or (version == 5 and kind in _UNITS_WITH_ID):
            identity = number(at, 8)
            at += 8
        if kind in _TYPE_UNITS:
            type_at = start + number(at, offset_bytes)
            at += offset_bytes
        key = version, offset_bytes, address_bytes
        form = self._formats.get(key) or self._formats.setdefault(key, UnitFormat(*key))
        if address_bytes not in ADDRESS_BYTES:
            raise section.damage(f"a unit with addresses of {address_bytes} bytes", start)
        bounds = start, min(at, end), end
        shifts = self._shifts.get((is_types, start), {})
        return Unit(self, section, bounds, form, abbreviations_at, (identity, type_at), shifts), end
