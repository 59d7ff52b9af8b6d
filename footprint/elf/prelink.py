"""Object files laid out as one file, before a linker does it: what is found in a linked file can be found in them.

Sections of one kind follow one another, as linkers put them. Of a group (COMDAT) and of a global name the first
definition counts. Pointers in data become relocations of the whole, and references in code of x86-64 lead where a
linker would lead them. What no object defines has a place of its own, so that different names stay different.

Source: System V ABI, chapters 4 (Sections, Symbols, Relocation) and 5 (Program Header); x86-64 supplement 1.0, 4.4.
"""

from collections.abc import Iterator, Sequence
from struct import Struct, calcsize
from typing import Final, Literal

from footprint.elf import abi
from footprint.elf.image import Image, Section, read_image
from footprint.elf.relocations import symbol_and_type
from footprint.elf.sameness import is_merged
from footprint.elf.symbols import COMMON, SymbolTable, symbol_table_in
from footprint.errors import InputError
from footprint.members import NamedTuple

_GROUPED: Final = 1
_PREFIXES: Final = (".data.rel.ro", ".data.rel", ".data", ".bss", ".rodata", ".text", ".tdata", ".tbss")
_TEXTS: Final = ".rodata.str1.1"
_UNDEFINED: Final = ".undefined"
# Few numbers in code are as large: those that are may be addresses.
_FIRST_VADDR: Final = 1 << 22
_PAGE_BYTES: Final = 4096
_UNDEFINED_BYTES: Final = 16
_LARGEST_ALIGN: Final = 1 << 16
_MOST_SECTIONS: Final = 0xFEFF
_KINDS: Final = frozenset({abi.STT_OBJECT, abi.STT_FUNC, abi.STT_TLS})
# R_X86_64_PC32, PLT32, GOTPCREL, GOTPCRELX, REX_GOTPCRELX; and 32, 32S.
_RELATIVE: Final = frozenset({2, 4, 9, 41, 42})
_OF_GOT: Final = frozenset({9, 41, 42})
_ABSOLUTE: Final = frozenset({10, 11})
_LOAD, _LOAD_ADDRESS = 0x8B, 0x8D
# `call *word(%rip)` and `jmp *word(%rip)`, and what linkers make of them: a direct call and jump behind a prefix.
_OF_WORD: Final = {b"\xff\x15": b"\x67\xe8", b"\xff\x25": b"\x67\xe9"}
_MOST_RELOCATIONS: Final = 1 << 22


class PlacedPart(NamedTuple):
    """Where a section of an object lies in the whole.

    Attributes:
        start_vaddr: Its start; for a thread-local section the offset in the block of a thread.
        end_vaddr: Its end.
        is_tls: Whether it is thread-local.
        number: The number of the object.
        section: The section of the object; None for a COMMON symbol.
        name: The name of the COMMON symbol, else "".
    """

    start_vaddr: int
    end_vaddr: int
    is_tls: bool
    number: int
    section: Section | None
    name: str = ""


class Prelinked(NamedTuple):
    """Objects laid out as one file.

    Attributes:
        image: The whole.
        objects: The objects, by their numbers.
        places: Where their sections lie, ascending, first those that are not thread-local.
    """

    image: Image
    objects: tuple[Image, ...]
    places: tuple[PlacedPart, ...]


class _Part:
    """One section of the whole."""

    def __init__(self, name: str, section: Section | None) -> None:
        self.name = name
        self.flags = abi.SHF_ALLOC if section is None else section.flags & ~abi.SHF_GROUP
        self.is_blank = True
        self.size_bytes = 0
        self.vaddr = 0
        self.contents: list[tuple[int, int, Section | None, str, int]] = []

    def add(self, number: int, section: Section | None, size_bytes: int, align: int, name: str = "") -> None:
        step = max(1, min(align, _LARGEST_ALIGN))
        start = -(-self.size_bytes // step) * step
        self.contents.append((start, number, section, name, size_bytes))
        self.size_bytes = start + size_bytes
        if section is not None:
            self.is_blank = self.is_blank and not section.has_file_bytes
            self.flags |= section.flags & abi.SHF_WRITE


def prelinked(objects: Sequence[Image], file: str) -> Prelinked:
    """Lay out objects of one machine as one file, whose name is `file`.

    Raises:
        InputError: Where a table of an object is damaged, or where the objects do not fit together.
    """
    layout = _Layout(objects, file)
    data = _Writer(layout).written()
    places = sorted(layout.places, key=lambda place: (place.is_tls, place.start_vaddr))
    return Prelinked(read_image(memoryview(data), file), tuple(objects), tuple(places))


def _part_name(section: Section) -> str:
    """Return the name of the section of a linked file that takes a section of an object."""
    if _holds_texts(section):
        return _TEXTS
    if is_merged(section):
        return section.name
    return next((prefix for prefix in _PREFIXES if (section.name + ".").startswith(prefix + ".")), section.name)


class _Layout:
    """Where everything lies, and what each name means."""

    def __init__(self, objects: Sequence[Image], file: str) -> None:
        self.objects = objects
        self.file = file
        self.parts: dict[str, _Part] = {}
        self.tables = [_symbols(o) for o in objects]
        self.globals: dict[str, tuple[int, int, int, int]] = {}
        """By name the vaddr, size, st_info and part number of each global symbol."""
        self.undefined: dict[str, int] = {}
        self._place_sections()
        self._place_commons()
        order = {part.name: number for number, part in enumerate(sorted(self.parts.values(), key=_order), 1)}
        self.ordered = sorted(self.parts.values(), key=lambda part: order[part.name])
        self._give_vaddrs()
        self.tls_vaddr = min((s.vaddr for s in self.ordered if s.flags & abi.SHF_TLS), default=0)
        self.starts: dict[tuple[int, int], tuple[int, int]] = {}
        self.commons: dict[str, int] = {}
        self.places: list[PlacedPart] = []
        for number, part in enumerate(self.ordered, 1):
            is_tls = bool(part.flags & abi.SHF_TLS)
            for offset, owner, section, name, size_bytes in part.contents:
                start = part.vaddr + offset
                shown = start - self.tls_vaddr if is_tls else start
                self.places.append(PlacedPart(shown, shown + size_bytes, is_tls, owner, section, name))
                if section is None:
                    self.commons[name] = start
                else:
                    self.starts[owner, section.index] = start, number
        self._define_globals()
        self.undefined_vaddr = -(-self.end_vaddr // _PAGE_BYTES) * _PAGE_BYTES

    def _place_sections(self) -> None:
        seen: set[str] = set()
        left = 2 * sum(len(o.data) for o in self.objects)
        for number, image in enumerate(self.objects):
            dropped = _dropped(image, self.tables[number], seen)
            for section in image.sections:
                if not section.is_in_memory or not section.size_bytes or section.index in dropped:
                    continue
                if section.name.startswith((".eh_frame", ".note")):
                    continue
                left -= section.size_bytes if section.has_file_bytes else 0
                if left < 0:
                    raise InputError(image.file, "its sections hold more bytes than the file", section.offset)
                name = _part_name(section)
                part = self.parts.setdefault(name, _Part(name, section))
                if name != _TEXTS:
                    part.flags &= ~(abi.SHF_MERGE | abi.SHF_STRINGS)
                part.add(number, section, section.size_bytes, section.align)
        if len(self.parts) > _MOST_SECTIONS:
            raise InputError(self.file, f"{len(self.parts)} names of sections are more than any program has")

    def _place_commons(self) -> None:
        sizes: dict[str, tuple[int, int, int]] = {}
        for number, table in enumerate(self.tables):
            for index, (_, _, _, st_shndx, value, size_bytes) in _entries(table):
                if table.section_index(index, st_shndx) == COMMON:
                    name = table.name(index)
                    _, known_bytes, align = sizes.get(name, (number, 0, 1))
                    sizes[name] = number, max(known_bytes, size_bytes), max(align, value)
        for name, (number, size_bytes, align) in sizes.items():
            part = self.parts.setdefault(".bss", _Part(".bss", None))
            part.flags |= abi.SHF_WRITE
            part.add(number, None, size_bytes, align, name)

    def _give_vaddrs(self) -> None:
        vaddr, word_bytes = _FIRST_VADDR, self.objects[0].word_bytes
        for part in self.ordered:
            part.vaddr = vaddr = -(-vaddr // _PAGE_BYTES) * _PAGE_BYTES
            vaddr += part.size_bytes
        if vaddr >= 1 << (8 * word_bytes - 2):
            raise InputError(self.file, "its sections are larger than the address space")
        self.end_vaddr = vaddr

    def _define_globals(self) -> None:
        for number, table in enumerate(self.tables):
            for index, (_, info, _, st_shndx, value, size_bytes) in _entries(table):
                place = self.starts.get((number, table.section_index(index, st_shndx)))
                if info >> 4 != abi.STB_LOCAL and place is not None:
                    self.globals.setdefault(table.name(index), (place[0] + value, size_bytes, info, place[1]))
        bss = next((number for number, part in enumerate(self.ordered, 1) if part.name == ".bss"), 0)
        for name, vaddr in self.commons.items():
            size_bytes = next(p.end_vaddr - p.start_vaddr for p in self.places if p.name == name)
            self.globals.setdefault(name, (vaddr, size_bytes, abi.STB_GLOBAL << 4 | abi.STT_OBJECT, bss))

    def target(self, number: int, index: int) -> int:
        """Return the vaddr that a symbol of an object means; one of its own where no object defines it."""
        table = self.tables[number]
        if not 0 < index < len(table):
            return 0
        _, info, _, st_shndx, value, _ = table.entry(index)
        place = self.starts.get((number, table.section_index(index, st_shndx)))
        if place is not None and info >> 4 == abi.STB_LOCAL:
            return place[0] + value
        name = table.name(index)
        if name in self.globals:
            return self.globals[name][0]
        if place is not None:
            return place[0] + value
        at = self.undefined.setdefault(name, len(self.undefined))
        return self.undefined_vaddr + at * _UNDEFINED_BYTES


def _holds_texts(section: Section) -> bool:
    return section.name.startswith(".rodata") and bool(section.flags & abi.SHF_STRINGS) and section.entry_bytes == 1


def _order(part: _Part) -> tuple[bool, bool, bool, str]:
    """Put thread-local parts together, those with bytes first, and what has none at the end."""
    is_tls = bool(part.flags & abi.SHF_TLS)
    return bool(part.flags & abi.SHF_WRITE), not is_tls, part.is_blank, part.name


def _symbols(image: Image) -> SymbolTable:
    for section in image.sections:
        if section.type == abi.SHT_SYMTAB and section.size_bytes:
            return symbol_table_in(image, section)
    raise InputError(image.file, "it has no symbol table")


def _entries(table: SymbolTable) -> Iterator[tuple[int, tuple[int, int, int, int, int, int]]]:
    indexes = range(len(table))
    return zip(indexes, table.entries(indexes), strict=True)


def _dropped(image: Image, table: SymbolTable, seen: set[str]) -> set[int]:
    """Return the sections of groups that an object before has, too."""
    dropped: set[int] = set()
    order = _byte_order(image)
    for section in image.sections:
        if section.type != abi.SHT_GROUP or not 0 < section.info < len(table):
            continue
        raw = bytes(image.section_bytes(section))
        words = [int.from_bytes(raw[at : at + 4], order) for at in range(0, len(raw) // 4 * 4, 4)]
        name = table.name(section.info)
        if words and words[0] & _GROUPED:
            dropped.update(words[1:] if name in seen else ())
            seen.add(name)
    return dropped


class _Writer:
    """Writes the whole as an ELF file."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        first = layout.objects[0]
        self._is_64 = first.is_64
        self._order = "<" if first.is_little else ">"
        self._first = first
        self._relocations: list[tuple[int, int]] = []
        self._is_fixed = False

    def written(self) -> bytearray:
        """Return the bytes of the file."""
        layout = self._layout
        contents = [self._contents(part) for part in layout.ordered]
        word = "Q" if self._is_64 else "I"
        size_bytes = 8 if self._is_64 else 4
        mask = (1 << 8 * size_bytes) - 1
        relocations = b"".join(
            self._pack(f"{word}{word}{word}", vaddr, 8, target & mask) for vaddr, target in self._relocations
        )
        undefined_bytes = len(layout.undefined) * _UNDEFINED_BYTES
        names, symbols, local_count = self._symbols()
        word_count = len(symbols) // self._first.symbol_bytes
        dynamic_symbols = symbols[: self._first.symbol_bytes] + symbols[local_count * self._first.symbol_bytes :]
        dynamic_count = word_count - local_count + 1
        tables: list[tuple[str, int, bytes, int]] = [
            (".rela.dyn", abi.SHT_RELA, relocations, abi.DT_RELA),
            (".dynstr", 3, names, abi.DT_STRTAB),
            (".dynsym", abi.SHT_DYNSYM, dynamic_symbols, abi.DT_SYMTAB),
            # One bucket: nobody looks a name up by it, but it holds the number of symbols.
            (".hash", 5, self._pack("III", 1, dynamic_count, 0) + bytes(4 * dynamic_count), abi.DT_HASH),
        ]
        vaddr = -(-(layout.undefined_vaddr + undefined_bytes) // _PAGE_BYTES) * _PAGE_BYTES
        entries, dynamic_rows = [(abi.DT_RELASZ, len(relocations)), (abi.DT_STRSZ, len(names))], []
        for name, kind, data, tag in tables:
            entries.append((tag, vaddr))
            dynamic_rows.append((name, kind, abi.SHF_ALLOC, vaddr, data, len(data)))
            vaddr += -(-len(data) // 16) * 16
        dynamic = b"".join(self._pack(f"{word}{word}", *entry) for entry in (*entries, (0, 0)))
        rows: list[tuple[str, int, int, int, bytes | bytearray, int]] = [
            (part.name, 8 if part.is_blank else 1, part.flags, part.vaddr, data, part.size_bytes)
            for part, data in zip(layout.ordered, contents, strict=True)
        ]
        rows += [
            (_UNDEFINED, abi.SHT_NOBITS, abi.SHF_ALLOC, layout.undefined_vaddr, b"", undefined_bytes),
            *dynamic_rows,
            (".dynamic", abi.SHT_DYNAMIC, abi.SHF_ALLOC, vaddr, dynamic, len(dynamic)),
            (".symtab", abi.SHT_SYMTAB, 0, 0, symbols, len(symbols)),
            (".strtab", 3, 0, 0, names, len(names)),
        ]
        return self._file(rows, local_count)

    def _pack(self, form: str, *values: object) -> bytes:
        return Struct(self._order + form).pack(*values)

    def _contents(self, part: _Part) -> bytearray:
        """Return the bytes of a part with its relocations applied."""
        if part.is_blank:
            return bytearray()
        data = bytearray(part.size_bytes)
        for offset, number, section, _, size_bytes in part.contents:
            image = self._layout.objects[number]
            if section is None or not section.has_file_bytes:
                continue
            data[offset : offset + size_bytes] = image.section_bytes(section)
            for table in image.sections:
                if table.type in {abi.SHT_RELA, abi.SHT_REL} and table.info == section.index:
                    self._relocate(table, number, data, offset, part)
        return data

    def _relocate(self, table: Section, number: int, data: bytearray, base: int, part: _Part) -> None:
        image = self._layout.objects[number]
        has_addend = table.type == abi.SHT_RELA
        word = "Q" if self._is_64 else "I"
        form = Struct(self._order + word + word + ((word.lower()) if has_addend else ""))
        raw = image.section_bytes(table)
        is_code = bool(part.flags & abi.SHF_EXECINSTR)
        for entry in form.iter_unpack(raw[: len(raw) // form.size * form.size]):
            at, info, addend = (*entry, 0)[:3]
            symbol, kind = symbol_and_type(image, info)
            target = self._layout.target(number, symbol)
            if is_code or kind in _ABSOLUTE | _RELATIVE:
                self._refer(data, base + at, target + addend, kind, part)
            elif base + at + image.word_bytes <= len(data):
                if not has_addend:
                    addend = int.from_bytes(data[base + at : base + at + image.word_bytes], _byte_order(image))
                self._relocations.append((part.vaddr + base + at, target + addend))
        if len(self._relocations) > _MOST_RELOCATIONS:
            raise InputError(image.file, "more relocations than any program has", table.offset)

    def _refer(self, data: bytearray, at: int, target: int, kind: int, part: _Part) -> None:
        """Write a reference of x86-64, as a linker does; other machines are not searched for references.

        Where a linker would write the place of a thread-local variable, the vaddr tells it from others.
        """
        if self._first.machine != abi.EM_X86_64 or not kind or not 0 <= at <= len(data) - 4:
            return
        if kind in _RELATIVE:
            if kind in _OF_GOT and at >= 2 and data[at - 2] == _LOAD:
                data[at - 2] = _LOAD_ADDRESS
            if kind in _OF_GOT and at >= 2 and bytes(data[at - 2 : at]) in _OF_WORD:
                data[at - 2 : at] = _OF_WORD[bytes(data[at - 2 : at])]
            target -= part.vaddr + at
        self._is_fixed |= kind in _ABSOLUTE
        data[at : at + 4] = (target & 0xFFFFFFFF).to_bytes(4, "little")

    def _symbols(self) -> tuple[bytes, bytes, int]:
        """Return the table of names, that of symbols, and the number of local ones."""
        layout, names = self._layout, _Names()
        symbols = [self._symbol(0, 0, 0, 0, 0)]
        for number, table in enumerate(layout.tables):
            file = layout.objects[number].file.rpartition("(")[2].removesuffix(")").rpartition("/")[2]
            has_file = False
            for index, (_, info, _, st_shndx, value, size_bytes) in _entries(table):
                kind = info & 15
                if kind == abi.STT_FILE:
                    has_file = True
                    symbols.append(self._symbol(names.add(table.name(index)), info, 0xFFF1, 0, 0))
                place = layout.starts.get((number, table.section_index(index, st_shndx)))
                if info >> 4 != abi.STB_LOCAL or kind not in _KINDS or place is None:
                    continue
                if not has_file:
                    has_file = True
                    symbols.append(self._symbol(names.add(file), abi.STT_FILE, 0xFFF1, 0, 0))
                base = layout.tls_vaddr if kind == abi.STT_TLS else 0
                symbols.append(
                    self._symbol(names.add(table.name(index)), info, place[1], place[0] + value - base, size_bytes)
                )
        local_count = len(symbols)
        for name, (vaddr, size_bytes, info, part) in layout.globals.items():
            base = layout.tls_vaddr if info & 15 == abi.STT_TLS else 0
            symbols.append(self._symbol(names.add(name), info, part, vaddr - base, size_bytes))
        undefined = len(layout.ordered) + 1
        for name, at in layout.undefined.items():
            vaddr = layout.undefined_vaddr + at * _UNDEFINED_BYTES
            symbols.append(
                self._symbol(names.add(name), abi.STB_GLOBAL << 4 | abi.STT_FUNC, undefined, vaddr, _UNDEFINED_BYTES)
            )
        return bytes(names.data), b"".join(symbols), local_count

    def _symbol(self, name: int, info: int, section: int, value: int, size_bytes: int) -> bytes:
        # A damaged value can lie outside of its section, even before it.
        if self._is_64:
            return self._pack("IBBHQQ", name, info, 0, section, value % (1 << 64), size_bytes)
        return self._pack("IIIBBH", name, value % (1 << 32), size_bytes, info, 0, section)

    def _file(self, rows: Sequence[tuple[str, int, int, int, bytes | bytearray, int]], local_count: int) -> bytearray:
        header_form = "16sHHIQQQIHHHHHH" if self._is_64 else "16sHHIIIIIHHHHHH"
        segment_form = "IIQQQQQQ" if self._is_64 else "IIIIIIII"
        names = _Names()
        header_bytes = calcsize(f"{self._order}{header_form}")
        loads = [
            row for row in rows if row[2] & abi.SHF_ALLOC and row[5] and not (row[1] == 8 and row[2] & abi.SHF_TLS)
        ]
        segment_count = len(loads) + 2
        out = bytearray(header_bytes + segment_count * calcsize(f"{self._order}{segment_form}"))
        offsets = []
        for _, _, _, _, data, _ in rows:
            out += bytes(-len(out) % 16)
            offsets.append(len(out))
            out += data
        headers = [self._section(0, 0, 0, 0, 0, 0, 0, 0, 0)]
        for number, ((name, kind, flags, vaddr, _, size_bytes), offset) in enumerate(
            zip(rows, offsets, strict=True), 1
        ):
            link, info, entry_bytes = 0, 0, int(name == _TEXTS)
            if kind == abi.SHT_DYNSYM:
                link, info, entry_bytes = number - 1, 1, self._first.symbol_bytes
            if kind == abi.SHT_SYMTAB:
                link, info, entry_bytes = number + 1, local_count, self._first.symbol_bytes
            headers.append(
                self._section(names.add(name), kind, flags, vaddr, offset, size_bytes, link, info, entry_bytes)
            )
        name_offset = len(out)
        headers.append(self._section(names.add(".shstrtab"), 3, 0, 0, name_offset, len(names.data), 0, 0, 0))
        out += names.data
        section_offset = len(out)
        out += b"".join(headers)
        segments = [self._segment(1, row, offset) for row, offset in zip(rows, offsets, strict=True) if row in loads]
        dynamic = next(number for number, row in enumerate(rows) if row[1] == abi.SHT_DYNAMIC)
        segments.append(self._segment(2, rows[dynamic], offsets[dynamic]))
        segments.append(self._tls_segment(rows, offsets))
        ident = bytes(self._first.data[:7]) + bytes(9)
        sizes = (header_bytes, len(segments[0]), len(segments), len(headers[0]), len(headers), len(headers) - 1)
        # Code that holds addresses themselves can only be linked for a fixed address.
        kind_of_file = abi.ET_EXEC if self._is_fixed else abi.ET_DYN
        header = self._pack(
            header_form, ident, kind_of_file, self._first.machine, 1, 0, header_bytes, section_offset, 0, *sizes
        )
        out[:header_bytes] = header
        out[header_bytes : header_bytes + len(segments) * len(segments[0])] = b"".join(segments)
        return out

    def _section(self, name: int, kind: int, flags: int, vaddr: int, offset: int, *rest: int) -> bytes:
        size_bytes, link, info, entry_bytes = rest
        form = "IIQQQQIIQQ" if self._is_64 else "IIIIIIIIII"
        return self._pack(form, name, kind, flags, vaddr, offset, size_bytes, link, info, 1, entry_bytes)

    def _segment(self, kind: int, row: tuple[str, int, int, int, bytes | bytearray, int], offset: int) -> bytes:
        _, _, flags, vaddr, data, size_bytes = row
        access = 4 | (2 if flags & abi.SHF_WRITE else 0) | (1 if flags & abi.SHF_EXECINSTR else 0)
        return self._packed_segment(kind, access, offset, vaddr, len(data), size_bytes)

    def _tls_segment(
        self, rows: Sequence[tuple[str, int, int, int, bytes | bytearray, int]], offsets: Sequence[int]
    ) -> bytes:
        tls_rows = [(row, offset) for row, offset in zip(rows, offsets, strict=True) if row[2] & abi.SHF_TLS]
        if not tls_rows:
            return self._packed_segment(0, 0, 0, 0, 0, 0)
        (first, offset), (last, _) = tls_rows[0], tls_rows[-1]
        return self._packed_segment(7, 4, offset, first[3], len(first[4]), last[3] + last[5] - first[3])

    def _packed_segment(
        self, kind: int, access: int, offset: int, vaddr: int, file_bytes: int, size_bytes: int
    ) -> bytes:
        if self._is_64:
            return self._pack("IIQQQQQQ", kind, access, offset, vaddr, vaddr, file_bytes, size_bytes, 1)
        return self._pack("IIIIIIII", kind, offset, vaddr, vaddr, file_bytes, size_bytes, access, 1)


class _Names:
    """A table of names."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, name: str) -> int:
        start = len(self.data)
        self.data += name.encode("utf-8", "surrogateescape") + b"\0"
        return start


def _byte_order(image: Image) -> Literal["little", "big"]:
    return "little" if image.is_little else "big"
