"""The units of debug information, and their entries, which can be read at any offset.

A unit is made on request: large programs have 100,000 of them, and few are of interest. Headers alone, and the index of
a package of split units (`.dwp`), tell where units start and end: most units are never decoded.

Source: DWARF 5, sections 7.5 (Format of Debugging Information), 7.26 (String Offsets Table) and 7.3.5 (DWARF Package
Files), and those of versions 2 to 4 where they differ.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.encoding import LEB_FORMS, STRX_FORMS, Abbreviation, EntryLayout, UnitFormat, abbreviation_tables
from footprint.dwarf.sections import DebugSection, DebugSections
from footprint.elf.image import Image
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

_HEADER_BYTES: Final = 16
_MOST_COLUMNS: Final = 16

Shifts = dict[int, int]
"""By the number of a section the start of the part of a unit in it."""


def read_shifts(sections: DebugSections) -> dict[tuple[str, int], Shifts]:
    """Return the parts of each unit of a package, by the section that holds it and by its start."""
    shifts_by_unit: dict[tuple[str, int], Shifts] = {}
    for name in (".debug_cu_index", ".debug_tu_index"):
        for shifts in _rows(sections.get(name)):
            for number, holder in ((dw.SECT_TYPES, ".debug_types"), (dw.SECT_INFO, ".debug_info")):
                if number in shifts:
                    shifts_by_unit[holder, shifts[number]] = shifts
                    break
    return shifts_by_unit


def _rows(index: DebugSection) -> list[Shifts]:
    if not index.size_bytes:
        return []
    column_count, unit_count, slot_count = (index.unsigned(at, 4) for at in (4, 8, 12))
    # After a hash table of signatures and their rows follow one row of section numbers and one row for each unit.
    columns_at = _HEADER_BYTES + slot_count * 12
    if column_count > _MOST_COLUMNS or columns_at + (unit_count + 1) * column_count * 4 > index.size_bytes:
        raise index.damage(f"{unit_count} units of {column_count} sections reach beyond its end", 4)
    words = [index.unsigned(columns_at + 4 * place, 4) for place in range((unit_count + 1) * column_count)]
    columns = words[:column_count]
    starts = range(column_count, len(words), column_count or 1)
    return [dict(zip(columns, words[start : start + column_count], strict=True)) for start in starts]


ADDRESS_BYTES: Final = frozenset({2, 4, 8})
_NOT_ZERO: Final = lazy_pattern(rb"[^\0]")
_LONGEST_LENGTH: Final = 0xFFFFFFF0
# The length, the version, the kind, and the size of an address: in version 5, and in earlier versions.
_HEADS: Final = {"little": Struct("<IHBB2xB"), "big": Struct(">IHBB2xB")}
# The smallest length of a unit of version 5 by its kind, of one of any other kind, and of earlier versions.
_LEAST_BYTES: Final = {1: 8, 3: 8, 4: 16, 5: 16}
_ENOUGH_BYTES: Final = 20
_OLD_LEAST_BYTES: Final = 7


class Headers:
    """The units of a section, ascending.

    Attributes:
        starts: The starts of their headers.
        ends: Their ends.
        address_bytes: The sizes of addresses that occur.
        offset_bytes: The sizes of offsets that occur.
        damage: The error in the first header that cannot be read; what follows it is left out.
    """

    def __init__(self, section: DebugSection, read: Callable[[int], tuple[tuple[int, int] | None, int]]) -> None:
        """Find the units of a section.

        `read` reads any header at an offset and checks it: it returns the sizes of offsets and addresses, or None for a
        unit to skip, and the end of the unit.
        """
        self.starts, self.ends = array("Q"), array("Q")
        self.address_bytes: set[int] = set()
        self.offset_bytes: set[int] = set()
        self.damage: InputError | None = None
        data, size_bytes = section.data, section.size_bytes
        head = _HEADS[section.order]
        unpack, head_bytes = head.unpack_from, head.size
        add_start, add_end, add_size = self.starts.append, self.ends.append, self.address_bytes.add
        at = 0
        while at < size_bytes:
            if at + head_bytes <= size_bytes:
                length_bytes, version, kind, new, old = unpack(data, at)
                address_bytes = new if version == 5 else old
                end = at + 4 + length_bytes
                # This is enough for the rest of the header.
                least = _LEAST_BYTES.get(kind, _ENOUGH_BYTES) if version == 5 else _OLD_LEAST_BYTES
                is_known = 2 <= version <= 5 and address_bytes in ADDRESS_BYTES
                if is_known and least <= length_bytes < _LONGEST_LENGTH and end <= size_bytes:
                    add_start(at)
                    add_end(end)
                    add_size(address_bytes)
                    at = end
                    continue
            # Linkers may pad with zeros, and a damaged file may have only zeros.
            filled = _NOT_ZERO.search(data, at)
            if filled is None:
                break
            at += (filled.start() - at) // 4 * 4
            try:
                sizes, end = read(at)
            except InputError as error:
                self.damage = error
                break
            if sizes is not None:
                add_start(at)
                add_end(end)
                self.offset_bytes.add(sizes[0])
                add_size(sizes[1])
            if end <= at:
                break
            at = end
        if self.starts:
            self.offset_bytes.add(4)

    def at(self, offset: int) -> int | None:
        """Return the number of the unit that an offset lies in; None where it lies in none."""
        place = bisect_right(self.starts, offset) - 1
        return place if place >= 0 and offset < self.ends[place] else None

    def holding(self, places: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Return the numbers of the units that hold some places, each with its places. The places ascend."""
        first = 0
        while first < len(places):
            number = bisect_right(self.starts, places[first]) - 1
            past = bisect_left(places, self.ends[number], first) if number >= 0 else first
            if past > first:
                yield number, places[first:past]
            first = max(past, first + 1)


_TYPE_UNITS: Final = frozenset({dw.UT_TYPE, dw.UT_SPLIT_TYPE})
_UNITS_WITH_ID: Final = frozenset({dw.UT_SKELETON, dw.UT_SPLIT_COMPILE})


_LOCAL_REFERENCES: Final = frozenset({0x11, 0x12, 0x13, 0x14, dw.FORM_REF_UDATA})
_ALTERNATE_REFERENCES: Final = frozenset({dw.FORM_GNU_REF_ALT, dw.FORM_REF_SUP4, dw.FORM_REF_SUP8})
_ALTERNATE_TEXTS: Final = frozenset({dw.FORM_GNU_STRP_ALT, dw.FORM_STRP_SUP})

# Compilers write some hundred bytes for a unit, and thirty for the skeleton of a split unit.
_FEW_UNITS: Final = 1 << 16
_BYTES_PER_UNIT: Final = 128


class Entry(NamedTuple):
    """One debugging information entry (DIE).

    Attributes:
        unit: The unit that holds it.
        offset: Its start in the section.
        tag: DW_TAG_*.
        has_children: Whether its children follow.
        at: The start of its attributes.
        end: The end of its attributes.
        places: By attribute its form and its offset from `at`; for an implicit constant the value itself.
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
        debug: The debug information of its file.
        section: The section that holds it.
        start: The start of its header in the section.
        first: The start of its first entry.
        end: Its end.
        format: The format of its entries.
        abbreviations_at: The start of its table of abbreviations.
        identity: The signature of a type unit, or the number that a skeleton and its split unit share; else None.
        type_at: The offset of the type of a type unit in the section; else None.
        skeleton: For a split unit, the unit of the linked file that stands for it.
        shifts: For a unit of a package, the starts of its parts of other sections.
    """

    def __init__(  # noqa: PLR0913, PLR0917 # the fields of its header
        self,
        debug: "DebugInfo",
        section: DebugSection,
        start: int,
        first: int,
        end: int,
        form: UnitFormat,
        abbreviations_at: int,
        identity: int | None,
        type_at: int | None,
        shifts: Shifts,
    ) -> None:
        self.debug = debug
        self.section = section
        self.start = start
        self.first = first
        self.end = end
        self.format = form
        self.abbreviations_at = abbreviations_at
        self.identity = identity
        self.type_at = type_at
        self.shifts = shifts
        self.skeleton: Unit | None = None
        self._root: Entry | None = None
        self._str_offsets_base: int | None = None

    @property
    def abbreviations(self) -> dict[int, Abbreviation]:
        """The abbreviations by their codes."""
        return self.debug.abbreviations(self.abbreviations_at)

    @property
    def table(self) -> tuple[UnitFormat, int]:
        """The format and the offset of the abbreviations; units with the same have the same layouts."""
        return self.format, self.abbreviations_at

    @property
    def root(self) -> Entry:
        """The first entry, which describes the unit."""
        if self._root is None:
            self._root = self.entry(self.first)
        return self._root

    def layout(self, abbreviation: Abbreviation) -> EntryLayout:
        """Return the layout of the entries of an abbreviation."""
        return self.format.layout(self.section, abbreviation.raw)

    def entry(self, offset: int) -> Entry:
        """Read the entry at an offset of the section."""
        if not self.first <= offset < self.end:
            raise self.section.damage("an entry lies outside of its unit", offset)
        code, at = self.section.data[offset], offset + 1
        if code >= 0x80:
            code, at = self.section.uleb(offset)
        abbreviation = self.abbreviations.get(code)
        if abbreviation is None:
            raise self.section.damage(f"no abbreviation {code}", offset)
        layout = self.format.layout(self.section, abbreviation.raw)
        places = layout.places
        if layout.size_bytes is None:
            places, end = {}, at
            for attribute, form, constant, size_bytes in layout.steps:
                here = constant if form == dw.FORM_IMPLICIT_CONST else end - at
                places.setdefault(attribute, (form, here))
                end = self.format.end(self.section, form, end) if size_bytes is None else end + size_bytes
        else:
            end = at + layout.size_bytes
        if end > self.end:
            raise self.section.damage("an entry reaches beyond its unit", offset)
        return Entry(self, offset, abbreviation.tag, abbreviation.has_children, at, end, places)

    def number(self, entry: Entry, attribute: int) -> int | None:
        """Return a constant, flag, index or offset of an entry; None where it has none, or an expression instead."""
        place = entry.places.get(attribute)
        if place is None:
            return None
        form, at = place
        if form == dw.FORM_IMPLICIT_CONST:
            return at
        if form == dw.FORM_FLAG_PRESENT:
            return 1
        at += entry.at
        if form == dw.FORM_SDATA:
            return self.section.sleb(at)[0]
        if form in LEB_FORMS:
            return self.section.uleb(at)[0]
        size_bytes = self.format.size_bytes(form)
        return None if size_bytes is None else self.section.unsigned(at, size_bytes)

    def text(self, entry: Entry, attribute: int) -> str | None:
        """Return a text of an entry; None where it has none, or where the file with the text is absent."""
        place = entry.places.get(attribute)
        return None if place is None else self.text_of(self.section, self.format, place[0], entry.at + place[1])

    def text_of(self, section: DebugSection, written: UnitFormat, form: int, at: int) -> str | None:
        """Return the text of a form at an offset, such as in a line table, whose format may not be that of the unit."""
        if form == dw.FORM_STRING:
            return section.text(at)
        if form in LEB_FORMS:
            value = section.uleb(at)[0]
        else:
            size_bytes = written.size_bytes(form)
            if size_bytes is None:
                return None
            value = section.unsigned(at, size_bytes)
        if form in STRX_FORMS:
            return self._indexed_text(value)
        if form == dw.FORM_STRP:
            return self.debug.sections.get(".debug_str").text(value)
        if form == dw.FORM_LINE_STRP:
            return self.debug.sections.get(".debug_line_str").text(value)
        if form in _ALTERNATE_TEXTS:
            alternate = self.debug.needed_alternate()
            return None if alternate is None else alternate.sections.get(".debug_str").text(value)
        return None

    def _indexed_text(self, index: int) -> str:
        offsets = self.debug.sections.get(".debug_str_offsets")
        at = self.str_offsets_base + index * self.format.offset_bytes
        return self.debug.sections.get(".debug_str").text(offsets.unsigned(at, self.format.offset_bytes))

    @property
    def str_offsets_base(self) -> int:
        """The start of the part of the unit in .debug_str_offsets; a split unit need not state it."""
        if self._str_offsets_base is None:
            # This reads a number of the root entry, not a text: a text could need this base again.
            base = self.number(self.root, dw.AT_STR_OFFSETS_BASE)
            if base is None:
                base = 0 if self.format.version < 5 else 2 * self.format.offset_bytes
            self._str_offsets_base = base + self.shifts.get(dw.SECT_STR_OFFSETS, 0)
        return self._str_offsets_base

    def reference(self, entry: Entry, attribute: int) -> Entry | None:
        """Read the entry that an attribute refers to; None where it has none, or where the file with it is absent."""
        place = entry.places.get(attribute)
        value = self.number(entry, attribute)
        if place is None or value is None:
            return None
        form = place[0]
        if form in _LOCAL_REFERENCES:
            return self.entry(self.start + value)
        if form == dw.FORM_REF_ADDR:
            return self.debug.entry(value)
        if form in _ALTERNATE_REFERENCES:
            alternate = self.debug.needed_alternate()
            return None if alternate is None else alternate.entry(value)
        if form == dw.FORM_REF_SIG8:
            unit = self.debug.type_unit(value)
            return None if unit is None or unit.type_at is None else unit.entry(unit.type_at)
        return None


class DebugInfo:
    """The debug information of one file.

    Attributes:
        sections: Its debug sections.
        abbreviations: Returns the table of abbreviations at an offset.
        headers: The starts and ends of the units of .debug_info.
        unknown_versions: The versions of units that were skipped.
        alternate: The file of dwz with the parts that several files share, where it was given.
        lacks_alternate: Whether that file was needed and not given.
    """

    def __init__(self, image: Image, *, alternate: "DebugInfo | None" = None, suffix: str = "") -> None:
        self.image = image
        self.sections = DebugSections(image, suffix=suffix)
        self.alternate = alternate
        self.lacks_alternate = False
        self.damage: InputError | None = None
        self.unknown_versions: set[int] = set()
        self._formats: dict[tuple[int, int, int], UnitFormat] = {}
        self.abbreviations = abbreviation_tables(self.sections.get(".debug_abbrev"))
        self._shifts = read_shifts(self.sections)
        self._units: dict[tuple[str, int], Unit] = {}
        self.headers = self._headers(".debug_info")
        self._type_starts: dict[int, tuple[str, int]] | None = None

    def unit(self, number: int) -> Unit:
        """Return a unit of .debug_info by its number in the headers."""
        return self._known_unit(".debug_info", self.headers.starts[number])

    def units(self) -> Iterator[Unit]:
        """Return the units of .debug_info in order, up to a limit that no compiler reaches."""
        most = _FEW_UNITS + self.sections.get(".debug_info").size_bytes // _BYTES_PER_UNIT
        for number in range(min(len(self.headers.starts), most)):
            yield self.unit(number)
        if len(self.headers.starts) > most:
            detail = f"{len(self.headers.starts)} units are more than any compiler makes; not all were read"
            self.damage = self.damage or InputError(self.image.file, f".debug_info: {detail}")

    def entry(self, offset: int) -> Entry:
        """Read the entry at an offset of .debug_info."""
        number = self.headers.at(offset)
        if number is None:
            raise self.sections.get(".debug_info").damage("a reference to an offset outside of all units", offset)
        return self.unit(number).entry(offset)

    def type_unit(self, signature: int) -> Unit | None:
        """Return the type unit with a signature."""
        if self._type_starts is None:
            self._type_starts = {}
            for name, headers in ((".debug_info", self.headers), (".debug_types", self._headers(".debug_types"))):
                for start in headers.starts:
                    unit, _ = self._unit(name, start)
                    if unit is not None and unit.type_at is not None and unit.identity is not None:
                        self._type_starts[unit.identity] = name, start
        place = self._type_starts.get(signature)
        return None if place is None else self._known_unit(*place)

    def needed_alternate(self) -> "DebugInfo | None":
        """Return the file of dwz, and record that it was needed."""
        self.lacks_alternate = self.lacks_alternate or self.alternate is None
        return self.alternate

    def _headers(self, name: str) -> Headers:
        def read(start: int) -> tuple[tuple[int, int] | None, int]:
            unit, end = self._unit(name, start)
            return None if unit is None else (unit.format.offset_bytes, unit.format.address_bytes), end

        headers = Headers(self.sections.get(name), read)
        self.damage = self.damage or headers.damage
        return headers

    def _known_unit(self, name: str, start: int) -> Unit:
        read_unit = self._units.get((name, start))
        if read_unit is None:
            read_unit, _ = self._unit(name, start)
            if read_unit is None:
                raise self.sections.get(name).damage("no unit", start)
            self._units[name, start] = read_unit
        return read_unit

    def _unit(self, name: str, start: int) -> tuple[Unit | None, int]:
        """Read one header of the section with a name, and return the unit and its end."""
        section = self.sections.get(name)
        number = section.unsigned
        length_bytes, offset_bytes, at = section.initial_length(start)
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
        kind = dw.UT_TYPE if name == ".debug_types" else 1
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
        shifts = self._shifts.get((name, start), {})
        abbreviations_at += shifts.get(dw.SECT_ABBREV, 0)
        first = min(at, end)
        return Unit(self, section, start, first, end, form, abbreviations_at, identity, type_at, shifts), end
