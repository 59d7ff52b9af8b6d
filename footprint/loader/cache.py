"""The cache of ldconfig, /etc/ld.so.cache, in its three layouts: new, old, and both in one file.

Source: sysdeps/generic/dl-cache.h and elf/cache.c of glibc 2.36 describe the layouts.
"""

from collections.abc import Collection, Iterator
from struct import Struct
from typing import Final

from footprint.elf.image import StringTable
from footprint.errors import InputError
from footprint.members import NamedTuple, dataclass

_OLD_MAGIC: Final = b"ld.so-1.7.0"
_NEW_MAGIC: Final = b"glibc-ld.so.cache1.1"
_EXTENSION_MAGIC: Final = 0xEAA42174
_ORDER_FLAGS: Final = {"<": 2, ">": 3}
_HWCAPS_TAG: Final = 1
_NAMED_LEVEL: Final = 1 << 62
_ANY_ABI: Final = 1


class _Entry(NamedTuple):
    path: str
    level: str | None
    hwcap: int


@dataclass(frozen=True)
class Cache:
    """The entries of the cache for programs of one ABI.

    Attributes:
        entries: The entries of each requested name, in the order of the file.
    """

    entries: dict[str, list[_Entry]]

    def find(self, name: str, levels: tuple[str, ...], legacy_bits: int = 0) -> str | None:
        """Return the path for a name, or None.

        The levels of the processor come best first; its legacy bits are those of glibc 2.36 and older.
        """
        entries = self.entries.get(name, ())
        named = [(levels.index(entry.level), entry.path) for entry in entries if entry.level in levels]
        if named:
            # The level counts before the directory, so also before a plain file in an earlier directory.
            return min(named, key=lambda entry: entry[0])[1]
        return next((entry.path for entry in entries if entry.level is None and not entry.hwcap & ~legacy_bits), None)


class _Layout(NamedTuple):
    entry_count: Struct
    old_entry: Struct
    new_header: Struct
    new_entry: Struct
    extensions: Struct
    extension: Struct


_LAYOUTS: Final = {
    order: _Layout(
        Struct(order + "12xI"),
        Struct(order + "III"),
        Struct(order + "20xIIB3xI12x"),
        Struct(order + "IIIIQ"),
        Struct(order + "II"),
        Struct(order + "IIII"),
    )
    for order in "<>"
}


def read_cache(data: bytes, file: str, abis: Collection[int], *, is_little: bool) -> Cache:
    """Read the entries for one ABI.

    Args:
        data: The whole file.
        file: Its name, for messages.
        abis: The flags of the entries for this ABI.
        is_little: Whether the programs are little-endian.

    Raises:
        InputError: Where it is not a cache, has the other byte order, or is damaged.
    """
    order = "<" if is_little else ">"
    layout = _LAYOUTS[order]
    if data.startswith(_NEW_MAGIC):
        return _read_new(data, 0, file, abis, order)
    if not data.startswith(_OLD_MAGIC) or len(data) < layout.entry_count.size:
        raise InputError(file, "it is not a cache of ldconfig")
    count = layout.entry_count.unpack_from(data)[0]
    entries_end = layout.entry_count.size + count * layout.old_entry.size
    if entries_end > len(data):
        raise InputError(file, f"{count} entries reach beyond its end", 12)
    new_at = -(-entries_end // 8) * 8
    if data.startswith(_NEW_MAGIC, new_at):
        return _read_new(data, new_at, file, abis, order)
    strings = StringTable(data[entries_end:], file, entries_end, "names")
    entries: dict[str, list[_Entry]] = {}
    for flags, key, value in layout.old_entry.iter_unpack(data[layout.entry_count.size : entries_end]):
        if flags == _ANY_ABI or flags in abis:
            entries.setdefault(strings.at(key), []).append(_Entry(strings.at(value), None, 0))
    return Cache(entries)


def _read_new(data: bytes, start: int, file: str, abis: Collection[int], order: str) -> Cache:
    layout = _LAYOUTS[order]
    entries_at = start + layout.new_header.size
    if entries_at > len(data):
        raise InputError(file, "its header is cut", start)
    count, strings_bytes, flags, extensions_at = layout.new_header.unpack_from(data, start)
    if flags and flags & 3 != _ORDER_FLAGS[order]:
        raise InputError(file, "it has the other byte order, or is incomplete", start + 28)
    entries_end = entries_at + count * layout.new_entry.size
    if entries_end + strings_bytes > len(data):
        raise InputError(file, f"{count} entries and {strings_bytes} bytes of names reach beyond its end", start + 20)
    strings = StringTable(data[start:], file, start, "names")
    levels = list(_levels(data, extensions_at, strings, file, layout)) if extensions_at else []
    entries: dict[str, list[_Entry]] = {}
    for entry_flags, key, value, _, hwcap in layout.new_entry.iter_unpack(data[entries_at:entries_end]):
        if entry_flags != _ANY_ABI and entry_flags not in abis:
            continue
        level = None
        if hwcap & _NAMED_LEVEL:
            number = hwcap & 0xFFFFFFFF
            if number >= len(levels):
                continue
            level = levels[number]
        entries.setdefault(strings.at(key), []).append(_Entry(strings.at(value), level, hwcap))
    return Cache(entries)


def _levels(data: bytes, start: int, strings: StringTable, file: str, layout: _Layout) -> Iterator[str]:
    """Read the names of the instruction set levels; the entries refer to them by number."""
    if start + layout.extensions.size > len(data):
        raise InputError(file, "its extensions lie beyond its end", start)
    magic, count = layout.extensions.unpack_from(data, start)
    if magic != _EXTENSION_MAGIC:
        raise InputError(file, "its extensions do not begin as they should", start)
    at = start + layout.extensions.size
    if at + count * layout.extension.size > len(data):
        raise InputError(file, f"{count} extensions reach beyond its end", start)
    for tag, _, offset, size_bytes in layout.extension.iter_unpack(data[at : at + count * layout.extension.size]):
        if offset + size_bytes > len(data):
            raise InputError(file, "an extension reaches beyond its end", offset)
        if tag == _HWCAPS_TAG:
            words = Struct(layout.entry_count.format[0] + "I")
            for (place,) in words.iter_unpack(data[offset : offset + size_bytes // 4 * 4]):
                yield strings.at(place)
            return
