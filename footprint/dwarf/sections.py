"""The debug sections of one file, decompressed where necessary, and read a number or a text at a time.

The sections of an object file have its relocations applied.

Source: System V ABI, chapter 4 (Compressed Sections); DWARF 5, section 7.6 (Variable Length Data).
"""

import zlib
from struct import Struct
from typing import Final, Literal

from footprint.dwarf.relocator import Relocator
from footprint.elf.image import Buffer, Image, Section, StringTable
from footprint.errors import InputError, Note, UnsupportedError
from footprint.system.decompression import zstd_module

SHF_COMPRESSED: Final = 0x800
ELFCOMPRESS_ZLIB: Final = 1
ELFCOMPRESS_ZSTD: Final = 2
_CHDR: Final = {
    (True, True): Struct("<I4xQ8x"),
    (True, False): Struct(">I4xQ8x"),
    (False, True): Struct("<II4x"),
    (False, False): Struct(">II4x"),
}
_OLD_HEADER: Final = Struct(">4sQ")
# A header claims the size of its section after decompression: debug information grows by a factor of 3 to 20.
_MOST_BYTES: Final = 2 << 30
_MOST_RATIO: Final = 64
_SMALL_BYTES: Final = 1 << 16

_UNSPLIT: Final = frozenset({".debug_cu_index", ".debug_tu_index"})

_LONGEST_LEB: Final = 10

Order = Literal["little", "big"]


class DebugSection:
    """The bytes of one section, with its numbers and texts; reading beyond its end raises an InputError."""

    __slots__ = ("_texts", "data", "file", "name", "order", "size_bytes")

    def __init__(self, file: str, name: str, data: Buffer, order: Order) -> None:
        self.file = file
        self.name = name
        self.data = data
        self.order: Order = order
        self.size_bytes = len(data)
        self._texts = StringTable(data, file, None, f"texts of {name}")

    def damage(self, cause: str, at: int) -> InputError:
        """Return the error for damage at an offset in the section, which may be compressed in the file."""
        return InputError(self.file, f"{self.name}: {cause} at {at:#x}")

    def unsigned(self, at: int, size_bytes: int) -> int:
        """Return a number of fixed size."""
        if not 0 <= at <= self.size_bytes - size_bytes:
            raise self.damage("a number reaches beyond its end", at)
        return int.from_bytes(self.data[at : at + size_bytes], self.order)

    def uleb(self, at: int) -> tuple[int, int]:
        """Return an unsigned LEB128 number and its end."""
        if 0 <= at < self.size_bytes and (byte := self.data[at]) < 0x80:
            return byte, at + 1
        number = 0
        for place in range(max(at, 0), min(at + _LONGEST_LEB, self.size_bytes)):
            byte = self.data[place]
            number |= (byte & 0x7F) << 7 * (place - at)
            if byte < 0x80:
                return number, place + 1
        raise self.damage("a number has no end", at)

    def sleb(self, at: int) -> tuple[int, int]:
        """Return a signed LEB128 number and its end."""
        number, end = self.uleb(at)
        bits = 7 * (end - at)
        return number - (number >> bits - 1 << bits), end

    def text(self, at: int) -> str:
        """Return a text that a zero byte ends; bytes that are not UTF-8 as surrogates."""
        return self._texts.at(at)

    def text_end(self, at: int) -> int:
        """Return the offset after a text."""
        return self._texts.end(at) + 1

    def initial_length(self, at: int) -> tuple[int, int, int]:
        """Return the length that begins a unit or a table, the size of its offsets, and the offset after the length."""
        length_bytes = self.unsigned(at, 4)
        return (self.unsigned(at + 4, 8), 8, at + 12) if length_bytes == 0xFFFFFFFF else (length_bytes, 4, at + 4)


class DebugSections:
    """The debug sections of one file by their names, each decompressed on first use."""

    def __init__(self, image: Image, *, suffix: str = "") -> None:
        self._image = image
        self._suffix = suffix
        self._sections: dict[str, DebugSection] = {}
        self._by_name: dict[str, list[Section]] = {}
        for section in image.sections:
            if section.has_file_bytes:
                self._by_name.setdefault(section.name, []).append(section)
        self.notes: list[Note] = []
        self._relocator: Relocator | None = None

    def __contains__(self, name: str) -> bool:
        return any(key in self._by_name for key in self._names(name))

    def get(self, name: str) -> DebugSection:
        """Return a section such as `.debug_info`; an empty one where the file has none, or of unknown compression."""
        section = self._sections.get(name)
        if section is None:
            sections = next((self._by_name[key] for key in self._names(name) if key in self._by_name), [])
            data: Buffer = b""
            try:
                if len(sections) == 1:
                    data = self._bytes(sections[0])
                elif sections:
                    data = self._joined(sections)
            except UnsupportedError as error:
                self.notes.append(Note("debug-info-unsupported", self._image.file, error.detail))
            shown = sections[0].name if sections else name
            section = DebugSection(self._image.file, shown, data, "little" if self._image.is_little else "big")
            self._sections[name] = section
        return section

    def _joined(self, sections: list[Section]) -> bytes:
        """Join sections of one name: each type unit of a split unit has its own until a package joins them."""
        data = bytearray()
        for section in sections:
            data += self._bytes(section)
            # Headers may claim the same bytes repeatedly.
            if len(data) > min(_MOST_BYTES, len(self._image.data) * _MOST_RATIO):
                raise InputError(self._image.file, f"sections {section.name} overlap too much", section.offset)
        return bytes(data)

    def _bytes(self, section: Section) -> Buffer:
        data = _contents(self._image, section)
        if not self._image.is_relocatable:
            return data
        if self._relocator is None:
            self._relocator = Relocator(self._image, self._bases(), self.notes)
        return self._relocator.applied(section, data)

    def _bases(self) -> dict[int, int]:
        """Return by section index the start of a section in the joined sections of its name."""
        bases: dict[int, int] = {}
        for sections in self._by_name.values():
            if sections[0].name.startswith((".debug", ".zdebug")):
                at = 0
                for section in sections:
                    bases[section.index] = at
                    at += _claim(self._image, section)[1]
        return bases

    def _names(self, name: str) -> tuple[str, ...]:
        # The indexes of a package have no suffix.
        return name + self._suffix, name.replace(".debug", ".zdebug") + self._suffix, *_UNSPLIT.intersection({name})


def _claim(image: Image, section: Section) -> tuple[int | None, int, Buffer]:
    """Return the compression of a section, None where it has none, its claimed size without it, and its bytes."""
    raw = image.section_bytes(section)
    if section.flags & SHF_COMPRESSED:
        header = _CHDR[image.is_64, image.is_little]
        if len(raw) < header.size:
            raise InputError(image.file, f"section {section.index}: its compression header is cut", section.offset)
        kind, size_bytes = header.unpack_from(raw)
        return kind, size_bytes, raw[header.size :]
    if section.name.startswith(".zdebug"):
        mark, size_bytes = _OLD_HEADER.unpack_from(raw) if len(raw) >= _OLD_HEADER.size else (b"", 0)
        return ELFCOMPRESS_ZLIB if mark == b"ZLIB" else 0, size_bytes, raw[_OLD_HEADER.size :]
    return None, len(raw), raw


def _contents(image: Image, section: Section) -> Buffer:
    kind, size_bytes, raw = _claim(image, section)
    if kind is None:
        return raw
    if size_bytes > min(_MOST_BYTES, _SMALL_BYTES + len(raw) * _MOST_RATIO):
        cause = f"section {section.index}: {len(raw)} compressed bytes claim to be {size_bytes}"
        raise InputError(image.file, cause, section.offset)
    if kind not in {ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD}:
        raise UnsupportedError(image.file, f"section {section.index}: unknown compression {kind}", section.offset)
    inflate = _unzlib if kind == ELFCOMPRESS_ZLIB else _unzstd
    try:
        data = inflate(raw, size_bytes)
    except ImportError as error:
        cause = f"section {section.index}: zstd needs Python 3.14 or the package backports.zstd"
        raise UnsupportedError(image.file, cause, section.offset) from error
    except ValueError as error:
        raise InputError(image.file, f"section {section.index}: {error}", section.offset) from error
    if len(data) != size_bytes:
        cause = f"section {section.index} claims {size_bytes} bytes, and has {'more' if data else 'none'}"
        raise InputError(image.file, cause, section.offset)
    return data


def _unzlib(raw: Buffer, size_bytes: int) -> bytes:
    """Inflate up to one byte more than the claimed size: that shows a false claim, and limits its cost."""
    try:
        return zlib.decompressobj().decompress(raw, size_bytes + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _unzstd(raw: Buffer, size_bytes: int) -> bytes:
    zstd = zstd_module()
    try:
        data: bytes = zstd.ZstdDecompressor().decompress(raw, size_bytes + 1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    return data
