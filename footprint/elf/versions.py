"""Symbol versions of an ELF file: those that it defines, and those that it needs from other objects.

Source: Linux Standard Base Core 5.0, chapter 10.7 (Symbol Versioning); glibc 2.36, elf/dl-version.c, for what counts.
"""

from array import array
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, words
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError
from footprint.members import NamedTuple, dataclass, field

VERSION_INDEX: Final = 0x7FFF
"""The bits of a versym entry that are the index of the version."""
VERSION_HIDDEN: Final = 0x8000
"""The bit of a versym entry that hides a definition from references without a version."""

# An index has 15 bits. Entries are chained by distances, and may overlap in a damaged file: their number is limited.
_MOST_ENTRIES: Final = 1 << 15


class Version(NamedTuple):
    """The version that an index stands for; an unversioned definition does not satisfy a hidden one."""

    name: str
    is_hidden: bool


class NeededVersion(NamedTuple):
    """A version that the object of a name must define; a weak one may be missing."""

    file: str
    name: str
    is_weak: bool


@dataclass(frozen=True)
class Versions:
    """The versions of a file.

    Attributes:
        by_symbol: The versym entry of each dynamic symbol; None where the file has no versions.
        by_index: The version of each index, without the base version: that is the file itself, and matches no name.
        needed: The versions that it needs from other objects.
        defined: The names of the versions that it defines, the base version included.
        needed_by_index: Of the indexes those that stand for versions that it needs.
    """

    by_symbol: "array[int] | None"
    by_index: dict[int, Version]
    needed: tuple[NeededVersion, ...]
    defined: frozenset[str] = frozenset()
    needed_by_index: Mapping[int, NeededVersion] = field(default_factory=dict)

    @property
    def names_by_entry(self) -> dict[int, str | None]:
        """The names of the versions by versym entry; None for a definition without a version."""
        hidden = (0, VERSION_HIDDEN)
        names: dict[int, str | None] = {index | bit: None for index in (0, 1) for bit in hidden}
        return names | {index | bit: version.name for index, version in self.by_index.items() for bit in hidden}


class _Layout(NamedTuple):
    definition: Struct
    definition_name: Struct
    need: Struct
    need_name: Struct


_LAYOUTS: Final = {
    order == "<": _Layout(*(Struct(order + fields) for fields in ("HHHHIII", "II", "HHIII", "IHHII"))) for order in "<>"
}


def read_versions(dynamic: Dynamic, symbol_count: int) -> Versions:
    """Read the versions of a file with this dynamic section and number of dynamic symbols."""
    by_index: dict[int, Version] = {}
    needed: list[NeededVersion] = []
    needed_by_index: dict[int, NeededVersion] = {}
    defined: set[str] = set()
    for index, flags, name in _definitions(dynamic):
        defined.add(name)
        if not flags & abi.VER_FLG_BASE:
            by_index[index & VERSION_INDEX] = Version(name, is_hidden=False)
    for file, name, flags, index in _needs(dynamic):
        by_index[index & VERSION_INDEX] = Version(name, bool(index & VERSION_HIDDEN))
        needed.append(NeededVersion(file, name, bool(flags & abi.VER_FLG_WEAK)))
        needed_by_index[index & VERSION_INDEX] = needed[-1]
    by_symbol = _by_symbol(dynamic, symbol_count)
    return Versions(by_symbol, by_index, tuple(needed), frozenset(defined), needed_by_index)


def _by_symbol(dynamic: Dynamic, symbol_count: int) -> "array[int] | None":
    vaddr = dynamic.get(abi.DT_VERSYM)
    if not vaddr:
        return None
    return words(
        dynamic.image, bytes_at_vaddr(dynamic.image, vaddr, symbol_count * 2, "the table of symbol versions"), 2
    )


def _definitions(dynamic: Dynamic) -> Iterator[tuple[int, int, str]]:
    """Return (vd_ndx, vd_flags, name) of each version that is defined; its first name is its own."""
    image = dynamic.image
    layout = _LAYOUTS[image.is_little]
    what = "the table of defined versions"
    for raw, at in _chain(
        image, dynamic.get(abi.DT_VERDEF), dynamic.get(abi.DT_VERDEFNUM) or 0, layout.definition, what
    ):
        _, flags, index, name_count, _, name_distance, _ = layout.definition.unpack_from(raw, at)
        if name_count:
            (name, _) = _entry(image, raw, at + name_distance, layout.definition_name, what)
            yield index, flags, dynamic.names.at(name)


def _needs(dynamic: Dynamic) -> Iterator[tuple[str, str, int, int]]:
    """Return (file, name, vna_flags, vna_other) of each version that is needed."""
    image = dynamic.image
    layout = _LAYOUTS[image.is_little]
    what = "the table of needed versions"
    seen = 0
    for raw, at in _chain(image, dynamic.get(abi.DT_VERNEED), dynamic.get(abi.DT_VERNEEDNUM) or 0, layout.need, what):
        _, name_count, file, name_distance, _ = layout.need.unpack_from(raw, at)
        place = at + name_distance
        for _ in range(name_count):
            seen += 1
            if seen > _MOST_ENTRIES:
                raise InputError(image.file, f"{what} has more entries than there are versions")
            _, flags, index, name, distance = _entry(image, raw, place, layout.need_name, what)
            yield dynamic.names.at(file), dynamic.names.at(name), flags, index
            if not distance:
                break
            place += distance


def _chain(image: Image, vaddr: int | None, count: int, entry: Struct, what: str) -> Iterator[tuple[Buffer, int]]:
    """Return the entries of a table; the last field of each is the distance to the next, and 0 ends the table."""
    if not vaddr or not count:
        return
    raw = bytes_at_vaddr(image, vaddr, None, what)
    at = 0
    for _ in range(min(count, _MOST_ENTRIES)):
        distance = _entry(image, raw, at, entry, what)[-1]
        yield raw, at
        if not distance:
            return
        at += distance


def _entry(image: Image, raw: Buffer, at: int, entry: Struct, what: str) -> tuple[int, ...]:
    if at + entry.size > len(raw):
        raise InputError(image.file, f"{what} is cut, or its entries lie outside of it")
    return entry.unpack_from(raw, at)
