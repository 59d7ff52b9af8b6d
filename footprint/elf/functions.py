"""The functions of one ELF file: find the one that an address lies in, or the one with a name.

Names are decoded on request: a file has a hundred thousand functions, and profiles name a few hundred.

Unwind tables stay when symbols are stripped, and have where each function begins and ends. Only their index is read
(`.eh_frame_hdr`), and the entries that are asked for. A function that was split, as compilers split what runs rarely,
has an entry for each part.

Source: Linux Standard Base Core 5.0, chapter 10.6 (Exception Frames).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import compress, count
from struct import Struct, error
from sys import byteorder
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Image
from footprint.elf.symbols import Symbol, SymbolTable, fields_of_kind, read_symbol_table

_FUNCTION_TYPES: Final = frozenset({abi.STT_FUNC, abi.STT_GNU_IFUNC})
# Of several names of one place a global one is shown before a weak one, and that before a local one.
_BINDING_RANKS: Final = {abi.STB_GLOBAL: 0, abi.STB_WEAK: 1}
# Addresses of four bytes, relative to the index: the only encoding that linkers write there.
_ENCODINGS: Final = (0x03, 0x3B)
# By the low half of an encoding the size of an address; 0 is that of a word.
_SIZES: Final = {0x0: 0, 0x2: 2, 0x3: 4, 0x4: 8, 0xA: 2, 0xB: 4, 0xC: 8}
_FIRST_BYTES: Final = 8
_LONGEST_AUGMENTATION: Final = 16
_LONGEST_LEB: Final = 10


class Functions:
    """The functions that a symbol table defines, in the order of their addresses.

    Attributes:
        source: The table: `.symtab` or `.dynsym`; None where the file has neither.
    """

    def __init__(self, table: SymbolTable) -> None:
        """Remember a table; its functions are found on the first question."""
        self.source = table.source
        self._table = table
        # Bit 0 of an address on ARM selects the instruction set.
        self._mask = ~1 if table.image.machine == abi.EM_ARM else ~0
        self._vaddr_of = table.vaddrs.__getitem__ if self._mask == ~0 else self._vaddr

    @cached_property
    def _unsorted(self) -> list[int]:
        """The indexes of the functions in the order of the table."""
        kinds = self._table.kinds
        fields = {kind: fields_of_kind(self._table.image, kind) for kind in set(kinds)}
        functions = {k for k, (info, _, n) in fields.items() if info & 15 in _FUNCTION_TYPES and n != abi.SHN_UNDEF}
        return list(compress(count(), map(functions.__contains__, kinds)))

    @cached_property
    def _indexes(self) -> list[int]:
        return sorted(self._unsorted, key=self._vaddr_of)

    @cached_property
    def _vaddrs(self) -> list[int]:
        return list(map(self._vaddr_of, self._indexes))

    @property
    def starts(self) -> Collection[int]:
        """Their first vaddrs."""
        return frozenset(self._vaddrs)

    def _vaddr(self, index: int) -> int:
        return self._table.vaddrs[index] & self._mask

    def _of_one_place(self, first: int) -> list[int]:
        """Return the indexes of the names of the place that begins at a position, the best name first."""
        past = bisect_right(self._vaddrs, self._vaddrs[first], first)
        return sorted(self._indexes[first:past], key=self._rank)

    def _rank(self, index: int) -> tuple[bool, int, int, int, int]:
        """Return where a name stands among those of its place: one with a size first, then by its binding."""
        name, info, _, _, _, size_bytes = self._table.entry(index)
        return not size_bytes, _BINDING_RANKS.get(info >> 4, 2), size_bytes, name, index

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._unsorted)

    def __iter__(self) -> Iterator[Symbol]:
        """Return all of them."""
        first = 0
        while first < len(self._indexes):
            same = self._of_one_place(first)
            first += len(same)
            yield from map(self._symbol, same)

    def extents(self, words: Collection[str] | None = None) -> Iterator[tuple[str, int, int]]:
        """Yield the name, the vaddr and the size of each, in a quarter of the time that their symbols take.

        With `words` most of those are left out whose names begin with none of them.
        """
        indexes = self._indexes if words is None else self._beginning_like(words)
        names = self._table.names.all_at(map(self._table.name_offsets.__getitem__, indexes))
        return zip(names, map(self._vaddr_of, indexes), map(self._table.sizes.__getitem__, indexes), strict=True)

    def _beginning_like(self, words: Collection[str]) -> list[int]:
        """Return the indexes of the functions whose names have the first letters of a word."""
        raw_words = []
        for word in words:
            # JSON can have halves of characters, of which no file has a name.
            with suppress(UnicodeEncodeError):
                raw_words.append(word.encode("utf-8", "surrogateescape"))
        size_bytes = min(_FIRST_BYTES, min(map(len, raw_words), default=0))
        wanted = {word[:size_bytes] for word in raw_words}
        offsets = list(map(self._table.name_offsets.__getitem__, self._unsorted))
        is_like = map(wanted.__contains__, self._table.names.beginnings(offsets, size_bytes))
        return sorted(compress(self._unsorted, is_like), key=self._vaddr_of)

    def at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address lies in; of its names a global one, else any."""
        last = bisect_right(self._vaddrs, vaddr) - 1
        if last < 0:
            return None
        start = self._vaddrs[last]
        index = self._of_one_place(bisect_left(self._vaddrs, start))[0]
        # A label without a size reaches to the next one.
        size_bytes = self._table.sizes[index]
        if size_bytes and vaddr >= start + size_bytes:
            return None
        return self._symbol(index)

    def next_start(self, vaddr: int) -> int | None:
        """Return the first vaddr of the next function behind a vaddr."""
        number = bisect_right(self._vaddrs, vaddr)
        return self._vaddrs[number] if number < len(self._vaddrs) else None

    def _symbol(self, index: int) -> Symbol:
        return self._table.symbol(self._table.entry(index))._replace(vaddr=self._vaddr(index))


def read_functions(image: Image) -> Functions:
    """Read the functions that the best symbol table of a file defines."""
    return Functions(read_symbol_table(image))


class FunctionStarts:
    """The functions of a file by its unwind tables; none where it has no index, or one of unknown form."""

    def __init__(self, image: Image) -> None:
        """Remember the file; the index is read on the first question."""
        self._image = image
        self._encodings: dict[int, tuple[int, bool]] = {}

    def __bool__(self) -> bool:
        """Return whether the file has an index."""
        return bool(self._table[0])

    def at(self, vaddr: int) -> tuple[int, int] | None:
        """Return the first address of the function, or the part of one, that an address lies in, and that past it."""
        starts, entries, base = self._table
        place = bisect_right(starts, vaddr - base) - 1
        if place < 0:
            return None
        start = base + starts[place]
        try:
            size_bytes = self._size_of(base + entries[place])
        except (error, IndexError):
            return None
        return (start, start + size_bytes) if vaddr < start + size_bytes else None

    def has_handlers(self, vaddr: int) -> bool:
        """Return whether the function that begins at an address catches exceptions or cleans up after them, or may."""
        starts, entries, base = self._table
        place = bisect_right(starts, vaddr - base) - 1
        if place < 0 or starts[place] != vaddr - base:
            return True
        try:
            return self._form_of(base + entries[place])[2]
        except (error, IndexError):
            return True

    @cached_property
    def _table(self) -> "tuple[array[int], array[int], int]":
        """The beginnings of the functions and the places of their entries, both relative to the third: the index."""
        image, none = self._image, array("i")
        segment = image.segment(abi.PT_GNU_EH_FRAME)
        data = b"" if segment is None else bytes(image.data[segment.offset : segment.offset + segment.file_bytes])
        if segment is None or len(data) < 12:
            return none, none, 0
        version, pointer, *encodings = data[:4]
        if version != 1 or _SIZES.get(pointer & 0xF) != 4 or tuple(encodings) != _ENCODINGS:
            return none, none, 0
        count = int.from_bytes(data[8:12], "little" if image.is_little else "big")
        table = array("i", data[12 : 12 + 8 * min(count, (len(data) - 12) // 8)])
        if image.is_little != (byteorder == "little"):
            table.byteswap()
        return table[::2], table[1::2], segment.vaddr

    def _size_of(self, vaddr: int) -> int:
        """Read the size of a function from its entry."""
        offset, encoding, _ = self._form_of(vaddr)
        address_bytes = _SIZES.get(encoding & 0xF, -1) or self._image.word_bytes
        letter = {2: "H", 4: "I", 8: "Q"}[address_bytes] if address_bytes > 0 else ""
        return int(self._struct(letter).unpack_from(self._image.data, offset + 8 + address_bytes)[0])

    def _form_of(self, vaddr: int) -> tuple[int, int, bool]:
        """Return the offset of an entry, how it writes addresses, and whether it has a table of handlers."""
        word = self._struct("I")
        offset = self._offset(vaddr)
        if not 0 <= offset < len(self._image.data):
            raise IndexError(offset)
        length, back = (word.unpack_from(self._image.data, offset + step)[0] for step in (0, 4))
        if not 0 < length < 0xFFFFFFFF:
            raise IndexError(offset)
        return offset, *self._encoding(offset + 4 - back)

    def _encoding(self, offset: int) -> tuple[int, bool]:
        """Return how the entries that share a common part write addresses, and whether they have tables of handlers."""
        if offset not in self._encodings:
            self._encodings[offset] = self._read_encoding(offset)
        return self._encodings[offset]

    def _read_encoding(self, offset: int) -> tuple[int, bool]:
        if offset < 0:
            raise IndexError(offset)
        data = self._image.data
        version, place = data[offset + 8], offset + 9
        letters = bytes(data[place : place + _LONGEST_AUGMENTATION]).partition(b"\0")[0]
        if not letters.startswith(b"z"):
            return 0, b"L" in letters
        place += len(letters) + 1
        for _ in range(2):  # the factors of code and data
            place = self._after_leb(place)
        place = self._after_leb(place) if version > 1 else place + 1  # the register of the return address
        place = self._after_leb(place)  # the length of what follows
        for letter in letters[1:].decode("latin-1"):
            if letter == "R":
                return data[place], b"L" in letters
            if letter == "P":
                place += 1 + (_SIZES.get(data[place] & 0xF, 0) or self._image.word_bytes)
            elif letter == "L":
                place += 1
        return 0, b"L" in letters

    def _after_leb(self, place: int) -> int:
        for step in range(place, place + _LONGEST_LEB):
            if not self._image.data[step] & 0x80:
                return step + 1
        raise IndexError(place)

    def _offset(self, vaddr: int) -> int:
        for load in self._image.loads:
            if load.vaddr <= vaddr < load.vaddr + load.file_bytes:
                return vaddr - load.vaddr + load.offset
        raise IndexError(vaddr)

    def _struct(self, letter: str) -> Struct:
        return Struct(("<" if self._image.is_little else ">") + letter)
