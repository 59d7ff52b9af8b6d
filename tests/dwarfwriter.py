"""Write DWARF: entries in, the bytes of the debug sections out, in both byte orders and all versions.

    unit = Unit(
        Die(TAG_COMPILE_UNIT, [(AT_NAME, STRP, "a.c"), (AT_COMP_DIR, STRING, "/src"), (AT_STMT_LIST, SEC_OFFSET, 0)], [
            Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int"),
            Die(TAG_VARIABLE, [(AT_NAME, STRING, "x"), (AT_TYPE, REF4, Ref("int")), (AT_LOCATION, EXPRLOC, Addr(8))]),
        ]),
        files=[("a.c", 0)],
    )
    elf = write(ElfFile(sections=[*sections([unit])]))

Each entry has an abbreviation of its own, unless it looks like one before it; abbreviations are numbered from
`first_code`. What is wrong in a file is written by giving wrong values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tests.elfwriter import SHT_REL, SHT_RELA, Order, Rel, Section

TAG_ARRAY, TAG_CLASS, TAG_FORMAL_PARAMETER, TAG_POINTER, TAG_COMPILE_UNIT = 0x01, 0x02, 0x05, 0x0F, 0x11
TAG_STRUCTURE, TAG_SUBROUTINE, TAG_TYPEDEF, TAG_SUBRANGE, TAG_BASE_TYPE, TAG_CONST = 0x13, 0x15, 0x16, 0x21, 0x24, 0x26
TAG_SUBPROGRAM, TAG_VARIABLE, TAG_NAMESPACE, TAG_MEMBER, TAG_CALL_SITE_PARAMETER = 0x2E, 0x34, 0x39, 0x0D, 0x49
AT_SIBLING, AT_LOCATION, AT_NAME, AT_BYTE_SIZE, AT_STMT_LIST, AT_LANGUAGE, AT_COMP_DIR = 1, 2, 3, 0x0B, 0x10, 0x13, 0x1B
AT_CONST_VALUE, AT_INLINE, AT_UPPER_BOUND, AT_ABSTRACT_ORIGIN, AT_COUNT = 0x1C, 0x20, 0x2F, 0x31, 0x37
AT_DECL_FILE, AT_DECL_LINE, AT_DECLARATION, AT_EXTERNAL, AT_SPECIFICATION, AT_TYPE = 0x3A, 0x3B, 0x3C, 0x3F, 0x47, 0x49
AT_LINKAGE_NAME, AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_CALL_VALUE = 0x6E, 0x72, 0x73, 0x7E
ADDR, BLOCK2, BLOCK4, DATA2, DATA4, DATA8, STRING, BLOCK, BLOCK1, DATA1, FLAG, SDATA = (
    1,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
STRP, UDATA, REF_ADDR, REF1, REF2, REF4, REF8, REF_UDATA, INDIRECT, SEC_OFFSET, EXPRLOC = (*range(14, 25),)
FLAG_PRESENT, STRX, ADDRX, DATA16, LINE_STRP, REF_SIG8, IMPLICIT_CONST, STRX1, STRX3 = (
    25,
    26,
    27,
    30,
    31,
    32,
    33,
    37,
    39,
)

_SIZES = {DATA1: 1, DATA2: 2, DATA4: 4, DATA8: 8, DATA16: 16, FLAG: 1, REF1: 1, REF2: 2, REF4: 4, REF8: 8, REF_SIG8: 8}
_SIZES |= {STRX1: 1, STRX3: 3, FLAG_PRESENT: 0, IMPLICIT_CONST: 0}
_BLOCKS = {BLOCK1: 1, BLOCK2: 2, BLOCK4: 4, BLOCK: 0, EXPRLOC: 0}


@dataclass(frozen=True, slots=True)
class Ref:
    """The place of an entry, by its label."""

    label: str


@dataclass(frozen=True, slots=True)
class Addr:
    """An expression: DW_OP_addr with a vaddr, and what stands behind it."""

    vaddr: int
    behind: bytes = b""


@dataclass(frozen=True, slots=True)
class Tls:
    """An expression: the offset of a thread-local variable, and the operation that makes an address of it."""

    offset: int
    operation: int = 0x9B


Value = int | str | bytes | Ref | Addr | Tls
Attribute = tuple[int, int, Value]


@dataclass(frozen=True, slots=True)
class Die:
    """An entry with those below it."""

    tag: int
    attributes: Sequence[Attribute] = ()
    children: Sequence["Die"] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, its line table (names of files, each with the number of its directory, and rows), and its addresses."""

    root: Die
    version: int = 5
    kind: int = 1
    directories: Sequence[str] = ("/src",)
    files: Sequence[tuple[str, int]] = ()
    addresses: Sequence[int] = ()
    first_code: int = 1
    rows: bytes = b""


class Operand(NamedTuple):
    """An address or an offset of thread-local storage that was written, and where: what relocations are for."""

    section: str
    at: int
    size_bytes: int
    value: int
    is_tls: bool


@dataclass
class _Writer:
    order: Order
    bits: Literal[32, 64]
    is_64: bool
    strings: dict[str, int] = field(default_factory=dict)
    text: bytearray = field(default_factory=lambda: bytearray(1))
    info: bytearray = field(default_factory=bytearray)
    abbreviations: bytearray = field(default_factory=bytearray)
    lines: bytearray = field(default_factory=bytearray)
    addresses: bytearray = field(default_factory=bytearray)
    labels: dict[str, tuple[int, int]] = field(default_factory=dict)  # where it stands, and where its unit begins
    pending: list[tuple[int, int, str, bool]] = field(default_factory=list)
    codes: dict[tuple[object, ...], int] = field(default_factory=dict)
    operands: list[Operand] = field(default_factory=list)

    def number(self, value: int, size_bytes: int) -> bytes:
        return (value % (1 << 8 * size_bytes)).to_bytes(size_bytes, self.order)

    def offset(self, value: int) -> bytes:
        return self.number(value, 8 if self.is_64 else 4)

    def length(self, contents: bytes) -> bytes:
        return (b"\xff" * 4 if self.is_64 else b"") + self.offset(len(contents)) + contents

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.text)
            self.text += text.encode("utf-8", "surrogateescape") + b"\0"
        return self.strings[text]

    def unit(self, unit: Unit) -> None:
        start, table = len(self.info), len(self.abbreviations)
        self.codes = {}
        word = bytes([self.bits // 8])
        head = self.number(unit.version, 2)
        head += bytes([unit.kind]) + word + self.offset(table) if unit.version >= 5 else self.offset(table) + word
        first = start + (12 if self.is_64 else 4)
        self.info += bytes(first - start) + head
        self.die(unit, unit.root, start)
        self.abbreviations.append(0)
        self.info[start:first] = self.length(bytes(self.info[first:]))[: first - start]
        self.lines += self.length(self.line_table(unit))
        if unit.addresses:
            words = b"".join(self.number(address, self.bits // 8) for address in unit.addresses)
            self.addresses += self.length(self.number(5, 2) + word + b"\0" + words)
            first = len(self.addresses) - len(words)
            for number, address in enumerate(unit.addresses):
                at = first + number * (self.bits // 8)
                self.operands.append(Operand(".debug_addr", at, self.bits // 8, address, is_tls=False))

    def die(self, unit: Unit, die: Die, start: int) -> None:
        if die.label:
            self.labels[die.label] = len(self.info), start
        self.info += uleb(self.code(unit, die))
        for _, form, value in die.attributes:
            self.value(form, value)
        for child in die.children:
            self.die(unit, child, start)
        if die.children:
            self.info.append(0)

    def code(self, unit: Unit, die: Die) -> int:
        """Return the code of the abbreviation of an entry, which is written where there is none like it."""
        fields = [(name, form, value if form == IMPLICIT_CONST else 0) for name, form, value in die.attributes]
        key = die.tag, bool(die.children), *fields
        if key not in self.codes:
            self.codes[key] = unit.first_code + len(self.codes)
            self.abbreviations += uleb(self.codes[key]) + uleb(die.tag) + bytes([bool(die.children)])
            for name, form, value in fields:
                self.abbreviations += uleb(name) + uleb(form)
                self.abbreviations += sleb(value) if form == IMPLICIT_CONST and isinstance(value, int) else b""
            self.abbreviations += b"\0\0"
        return self.codes[key]

    def value(self, form: int, value: Value) -> None:
        match value:
            case Ref(label):
                size_bytes = _SIZES.get(form) or len(self.offset(0))
                self.pending.append((len(self.info), size_bytes, label, form == REF_ADDR))
                self.info += bytes(size_bytes)
            case Addr(vaddr, behind):
                size_bytes = self.bits // 8
                self.block(form, b"\3" + self.number(vaddr, size_bytes) + behind)
                at = len(self.info) - size_bytes - len(behind)
                self.operands.append(Operand(".debug_info", at, size_bytes, vaddr, is_tls=False))
            case Tls(offset, operation):
                code, size_bytes = (b"\x0e", 8) if self.bits == 64 else (b"\x0c", 4)
                self.block(form, code + self.number(offset, size_bytes) + bytes([operation]))
                at = len(self.info) - size_bytes - 1
                self.operands.append(Operand(".debug_info", at, size_bytes, offset, is_tls=True))
            case bytes():
                self.block(form, value)
            case str() if form == STRING:
                self.info += value.encode("utf-8", "surrogateescape") + b"\0"
            case str():
                self.info += self.offset(self.string(value))
            case int():
                self.info += self.integer(form, value)

    def integer(self, form: int, value: int) -> bytes:
        if form in {UDATA, STRX, ADDRX, REF_UDATA}:
            return uleb(value)
        if form == SDATA:
            return sleb(value)
        if form == ADDR:
            return self.number(value, self.bits // 8)
        return self.number(value, _SIZES[form]) if form in _SIZES else self.offset(value)

    def block(self, form: int, contents: bytes) -> None:
        length_bytes = _BLOCKS[form]
        self.info += self.number(len(contents), length_bytes) if length_bytes else uleb(len(contents))
        self.info += contents

    def line_table(self, unit: Unit) -> bytes:
        """Write a line table."""
        body = bytes([1, *([1] if unit.version >= 4 else []), 1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
        if unit.version >= 5:
            body += b"\1" + uleb(1) + uleb(STRING) + uleb(len(unit.directories))
            body += b"".join(text.encode() + b"\0" for text in unit.directories)
            body += (
                b"\3" + uleb(1) + uleb(STRP) + uleb(2) + uleb(UDATA) + uleb(5) + uleb(DATA16) + uleb(len(unit.files))
            )
            for name, directory in unit.files:
                body += self.offset(self.string(name)) + uleb(directory) + bytes(16)
        else:
            body += b"".join(text.encode() + b"\0" for text in unit.directories) + b"\0"
            body += b"".join(name.encode() + b"\0" + uleb(place) + b"\0\0" for name, place in unit.files) + b"\0"
        before = self.number(unit.version, 2) + (bytes([self.bits // 8, 0]) if unit.version >= 5 else b"")
        return before + self.offset(len(body)) + body + unit.rows

    def resolve(self) -> None:
        for at, size_bytes, label, is_global in self.pending:
            place, start = self.labels[label]
            self.info[at : at + size_bytes] = self.number(place - (0 if is_global else start), size_bytes)


def sections(
    units: Sequence[Unit], *, order: Order = "little", bits: Literal[32, 64] = 64, is_64: bool = False
) -> list[Section]:
    """Return the debug sections of some units, for a file of a byte order and class; `is_64` is 64-bit DWARF."""
    return _written(units, _Writer(order, bits, is_64))


def _written(units: Sequence[Unit], writer: _Writer) -> list[Section]:
    for unit in units:
        writer.unit(unit)
    writer.resolve()
    result = {
        ".debug_info": writer.info,
        ".debug_abbrev": writer.abbreviations,
        ".debug_line": writer.lines,
        ".debug_str": writer.text,
        ".debug_addr": writer.addresses,
    }
    return [Section(name, data=bytes(data)) for name, data in result.items() if data]


def object_sections(
    units: Sequence[Unit],
    symbol_of: Callable[[Operand], tuple[str, int]],
    types: tuple[int, int],
    *,
    order: Order = "little",
    bits: Literal[32, 64] = 64,
    has_addends: bool = True,
) -> list[Section]:
    """Return the debug sections of some units as they stand in an object file, and the relocations of their addresses.

    Args:
        units: With any addresses.
        symbol_of: Gives the symbol that stands for an address, and what is to be added to that.
        types: The types of relocation for an address, and for an offset of thread-local storage.
        order: The byte order.
        bits: The class.
        has_addends: Whether the relocations have them (SHT_RELA); else they stand in the debug sections.
    """
    writer = _Writer(order, bits, is_64=False)
    plain = _written(units, writer)
    contents = {one.name: bytearray(one.data) for one in plain if isinstance(one.data, bytes)}
    tables: dict[str, list[Rel]] = {}
    for operand in writer.operands:
        symbol, addend = symbol_of(operand)
        # Where the relocation has an addend, what stands in the section is of no meaning.
        in_place = 0x55 if has_addends else addend
        contents[operand.section][operand.at : operand.at + operand.size_bytes] = writer.number(
            in_place, operand.size_bytes
        )
        own = addend if has_addends else None
        tables.setdefault(operand.section, []).append(Rel(operand.at, types[operand.is_tls], symbol, own))
    prefix, kind = (".rela", SHT_RELA) if has_addends else (".rel", SHT_REL)
    relocated = [Section(name, data=bytes(data)) for name, data in contents.items()]
    return [*relocated, *(Section(prefix + name, kind, data=rels, info=name) for name, rels in tables.items())]


def uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sleb(value: int) -> bytes:
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])
