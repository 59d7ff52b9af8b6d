"""Packages as trees of files: `.deb`, `.rpm` and `.whl`, read without unpacking them.

A `.deb` is an archive of ar with two of tar, an `.rpm` has two headers before an archive of cpio, a `.whl` is a zip
file. What they claim is checked before it is used: sizes, numbers of files, and how far they shrink.

Sources: deb(5) of dpkg 1.21; RPM documentation, "RPM V4 Package format" and "V6 Package format"; cpio(5), "New ASCII
Format"; Python Packaging User Guide, "Binary distribution format".
"""

import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from hashlib import blake2b
from typing import Final, NamedTuple

from footprint.elf.archive import read_members
from footprint.elf.image import ARCHIVE_MAGIC
from footprint.errors import InputError, UnsupportedError
from footprint.process.bounded_zip import BoundedZip, ZipLimits
from footprint.sources.image_tree import (
    Layer,
    RootTree,
    bounded_pieces,
    kept_layer,
    most_unpacked_bytes,
    read_layer,
    tree_of_layers,
)
from footprint.sources.tar_members import (
    ENTRIES_A_MEMBER,
    MEMBERS_A_DRAW,
    MOST_MEMBER_BYTES,
    MOST_NAMES_BYTES,
    MOST_PATH_BYTES,
    ArchiveBytes,
    LayerMember,
    PiecedBytes,
    ViewedBytes,
    members_of,
    path_text,
)
from footprint.system.files import StrPath, is_compressed, open_input
from footprint.system.limits import draw_entries

_ENDINGS: Final = (".deb", ".udeb", ".ddeb", ".rpm", ".whl")
_SQUASHFS: Final = (b"hsqs", b"sqsh")
_EXT: Final = b"\x53\xef"
_EXT_MAGIC_AT: Final = 1080
_MOST_TEXT_BYTES: Final = 1 << 20
_LONGEST_FIELD: Final = 200
_LAYER_NUMBER: Final = -1
"""The only layer of a package; no device has a negative number."""


def is_package(path: StrPath) -> bool:
    """Return whether the name of a path is that of a package."""
    return os.fspath(path).endswith(_ENDINGS)


def package_tree(path: StrPath) -> RootTree:
    """Read a package, as the root of its files.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is damaged, or no package.
        LimitError: Where it makes more work than the limits allow.
        UnsupportedError: Where it is packed in a way that is not read.
    """
    path = os.fspath(path)
    data = memoryview(open_input(path))
    if bytes(data[: len(ARCHIVE_MAGIC)]) == ARCHIVE_MAGIC:
        (name, version, architecture), layer = _read_deb(data, path)
    elif bytes(data[: len(_LEAD)]) == _LEAD:
        (name, version, architecture), layer = _read_rpm(data, path)
    elif bytes(data[:2]) == b"PK":
        (name, version, architecture), layer = _read_wheel(data, path)
    else:
        raise InputError(path, "it is neither a .deb, nor an .rpm, nor a .whl", 0)
    whole_name = "_".join(filter(None, (name, version, architecture)))
    identity = blake2b(data, digest_size=16).hexdigest()
    tree = tree_of_layers([layer])
    return RootTree(whole_name, identity, architecture, os.path.realpath(path), tree, (name, version))


def unread_image(path: str) -> str | None:
    """Return why the image of a file system is not read, and what to do; None for another file.

    Raises:
        OSError: Where the file cannot be opened.
    """
    with open(path, "rb") as file:
        head = file.read(_EXT_MAGIC_AT + 2)
    if head.startswith(_SQUASHFS):
        return "an image of squashfs, which footprint does not read: unpack it with `unsquashfs -d FOLDER`, scan FOLDER"
    if head[_EXT_MAGIC_AT:] == _EXT:
        return "an image of ext2, ext3 or ext4, which footprint does not read: mount it read-only, and scan that folder"
    return None


def _fields(text: str, names: Sequence[str], path: str) -> list[str]:
    """Return fields of a text of lines `Name: value`, up to its first empty line."""
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    values = []
    for name in names:
        field = re.search(rf"^{name}:[ \t]*(\S[^\r\n]*)", head, re.MULTILINE | re.IGNORECASE)
        if field is None:
            raise InputError(path, f"its description has no field {name}")
        values.append(field[1].strip()[:_LONGEST_FIELD])
    return values


# --- .deb -------------------------------------------------------------------------------------------------------------


def _read_deb(data: memoryview, path: str) -> tuple[list[str], Layer]:
    parts: dict[str, memoryview] = {}
    for member in read_members(data, path):
        kind = member.name.partition(".tar")[0]
        if member.data is None:
            break
        if kind not in parts:
            parts[kind] = memoryview(member.data)
            if kind in {"control", "data"} and member.name.endswith(".lzma"):
                raise UnsupportedError(path, f"{member.name} is compressed with lzma, which footprint does not read")
        if len(parts.keys() & {"control", "data"}) == 2:
            break
    if not bytes(parts.get("debian-binary", b"")[:2]) == b"2." or "control" not in parts or "data" not in parts:
        raise InputError(path, "an archive of ar without the parts of a .deb")
    described = _fields(_control(parts["control"], path), ("Package", "Version", "Architecture"), path)
    return described, read_layer(parts["data"], _LAYER_NUMBER, path)


def _control(data: memoryview, path: str) -> str:
    archive: ArchiveBytes = PiecedBytes(bounded_pieces(data, path)) if is_compressed(data) else ViewedBytes(data)
    for member in members_of(archive, path):
        if member.name.removeprefix("./") == "control":
            return archive.read(min(member.size_bytes, _MOST_TEXT_BYTES)).decode("utf-8", "replace")
    raise InputError(path, "a .deb without `control`, which says what it is")


# --- .rpm -------------------------------------------------------------------------------------------------------------

_LEAD: Final = b"\xed\xab\xee\xdb"
_LEAD_BYTES: Final = 96
_HEADER: Final = struct.Struct(">4s4xII")
_HEADER_MAGIC: Final = b"\x8e\xad\xe8\x01"
_ENTRY: Final = struct.Struct(">4I")
_MOST_ENTRIES: Final = 0xFFFF
_MOST_STORE_BYTES: Final = 0x0FFF_FFFF
_STRINGS: Final = frozenset({6, 8, 9})
_INTEGERS: Final = {3: "H", 4: "I", 5: "Q"}
_NAME, _VERSION, _RELEASE, _EPOCH, _ARCHITECTURE = 1000, 1001, 1002, 1003, 1022
_SIZES, _MODES, _TIMES, _INODES = 1028, 1030, 1034, 1096
_FOLDER_NUMBERS, _BASE_NAMES, _FOLDERS, _LONG_SIZES = 1116, 1117, 1118, 5008
_PAYLOAD_FORMAT, _COMPRESSOR = 1124, 1125


class _RpmHeader:
    """A header of an `.rpm`: values by tag.

    Attributes:
        end: The offset behind it.
    """

    def __init__(self, data: memoryview, offset: int, path: str) -> None:
        self._path = path
        if len(data) < offset + _HEADER.size:
            raise InputError(path, "the package is cut in its headers", offset)
        magic, count, store_bytes = _HEADER.unpack_from(data, offset)
        if magic != _HEADER_MAGIC:
            raise InputError(path, "no header of an .rpm, or a damaged one", offset)
        store_at = offset + _HEADER.size + count * _ENTRY.size
        self.end = store_at + store_bytes
        if count > _MOST_ENTRIES or store_bytes > _MOST_STORE_BYTES or self.end > len(data):
            raise InputError(path, f"a header claims {count} entries and {store_bytes} bytes", offset)
        entries = _ENTRY.iter_unpack(data[offset + _HEADER.size : store_at])
        self._entries = {tag: (kind, at, size) for tag, kind, at, size in entries}
        self._store = data[store_at : self.end]

    def texts(self, tag: int) -> list[bytes]:
        """Return the strings of a tag."""
        kind, at, count = self._entries.get(tag, (8, 0, 0))
        if kind not in _STRINGS or count > len(self._store):
            raise InputError(self._path, f"the header has no strings in tag {tag}")
        draw_entries(count, self._path)
        return bytes(self._store[at:]).split(b"\0", count)[:count] if count else []

    def text(self, tag: int) -> str:
        """Return the string of a tag; "" where it is not there."""
        return next(iter(self.texts(tag)), b"")[:_LONGEST_FIELD].decode("utf-8", "replace")

    def numbers(self, tag: int) -> tuple[int, ...]:
        """Return the numbers of a tag; none where it is not there."""
        kind, at, count = self._entries.get(tag, (4, 0, 0))
        if kind not in _INTEGERS or at + count * struct.calcsize(_INTEGERS[kind]) > len(self._store):
            raise InputError(self._path, f"the header has no numbers in tag {tag}")
        draw_entries(count, self._path)
        return struct.unpack_from(f">{count}{_INTEGERS[kind]}", self._store, at)


def _read_rpm(data: memoryview, path: str) -> tuple[list[str], Layer]:
    signature_end = _RpmHeader(data, _LEAD_BYTES, path).end
    header = _RpmHeader(data, signature_end + -signature_end % 8, path)
    form, compressor = header.text(_PAYLOAD_FORMAT) or "cpio", header.text(_COMPRESSOR)
    if form != "cpio" or compressor == "lzma":
        packed = f" compressed with {compressor}" if compressor else ""
        raise UnsupportedError(path, f"its files are in {form}{packed}, which footprint does not read", header.end)
    epoch = "".join(f"{number}:" for number in header.numbers(_EPOCH)[:1])
    version = f"{epoch}{header.text(_VERSION)}-{header.text(_RELEASE)}"
    layer = read_layer(data[header.end :], _LAYER_NUMBER, path, partial(cpio_members, header=header))
    return [header.text(_NAME), version, header.text(_ARCHITECTURE)], layer


class _CpioEntry(NamedTuple):
    """An entry of cpio; what the header of an `.rpm` tells of a file is the same."""

    name: str
    mode: int
    inode: int
    link_count: int
    seconds: int
    size_bytes: int

    def member(self, type_: bytes, data_at: int, link: str = "") -> LayerMember:
        """Return it as a member of tar would be."""
        changed_ns = self.seconds * 10**9
        return LayerMember(self.name, type_, link, self.mode & 0o7777, changed_ns, data_at, self.size_bytes)


_CPIO: Final = frozenset({b"070701", b"070702"})
_STRIPPED: Final = b"07070X"
_MAGIC_BYTES: Final = 6
_TRAILER: Final = "TRAILER!!!"


def cpio_members(archive: ArchiveBytes, source: str, header: _RpmHeader | None = None) -> Iterator[LayerMember]:
    """Return the members of an archive of cpio; the caller may read the data of each before it takes the next one.

    Args:
        archive: The archive.
        source: Its name for errors.
        header: The header of the `.rpm` that it is in: entries may be numbers of files there.

    Raises:
        InputError: Where the archive is cut or damaged.
        LimitError: Where it has more members than the limits allow.
    """
    at = count = names_bytes = 0
    listed = cache(lambda: _listed_entries(header, source))
    # Of the names of one file the last has its data.
    nameless: dict[int, list[LayerMember]] = {}
    while True:
        if count % MEMBERS_A_DRAW == 0:
            draw_entries(ENTRIES_A_MEMBER * MEMBERS_A_DRAW, source)
        count += 1
        entry, data_at = _read_entry(archive, at, listed, source)
        if entry.name == _TRAILER:
            break
        names_bytes += len(entry.name)
        if names_bytes > MOST_NAMES_BYTES or entry.size_bytes > MOST_MEMBER_BYTES:
            raise InputError(source, f"names of more than {MOST_NAMES_BYTES >> 20} MiB, or a file that is as large", at)
        if not archive.skip_to(data_at):
            raise InputError(source, "the archive is cut", at)
        yield from _members(entry, archive, data_at, nameless, source)
        at = data_at + (entry.size_bytes + 3) // 4 * 4
        if not archive.skip_to(at):
            raise InputError(source, "the archive is cut: an entry is longer than it", data_at)
    for members in nameless.values():
        yield from _linked(members[0]._replace(type=b"0"), members[1:])


def _read_entry(
    archive: ArchiveBytes, at: int, listed: Callable[[], list[_CpioEntry]], source: str
) -> tuple[_CpioEntry, int]:
    """Read an entry, and return where its data begins."""
    magic = archive.read(_MAGIC_BYTES)
    if magic == _STRIPPED:
        (number,) = _hexadecimal(archive.read(8), 1, source, at)
        entries = listed()
        if number >= len(entries):
            raise InputError(source, f"an entry for file {number} of {len(entries)}", at)
        return entries[number], at + 16
    if magic not in _CPIO:
        is_cut = len(magic) < _MAGIC_BYTES
        raise InputError(source, "the archive is cut" if is_cut else "no entry of cpio, or a damaged one", at)
    fields = _hexadecimal(archive.read(104), 13, source, at)
    inode, mode, links, seconds, size_bytes, name_bytes = *fields[:2], *fields[4:7], fields[11]
    if not 0 < name_bytes <= MOST_PATH_BYTES:
        raise InputError(source, f"an entry claims a name of {name_bytes} bytes", at)
    name = path_text(archive.read(name_bytes).partition(b"\0")[0])
    return _CpioEntry(name, mode, inode, links, seconds, size_bytes), at + (110 + name_bytes + 3) // 4 * 4


def _members(
    entry: _CpioEntry, archive: ArchiveBytes, data_at: int, nameless: dict[int, list[LayerMember]], source: str
) -> Iterator[LayerMember]:
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFREG and entry.link_count > 1 and entry.size_bytes == 0:
        nameless.setdefault(entry.inode, []).append(entry.member(b"1", data_at))
    elif kind == stat.S_IFREG:
        yield from _linked(entry.member(b"0", data_at), nameless.pop(entry.inode, []))
    elif kind == stat.S_IFLNK:
        if entry.size_bytes >= MOST_PATH_BYTES:
            raise InputError(source, f"a link claims a target of {entry.size_bytes} bytes", data_at)
        yield entry.member(b"2", data_at, path_text(archive.read(entry.size_bytes)))
    else:
        yield entry.member(b"5" if kind == stat.S_IFDIR else b"6", data_at)


def _linked(file: LayerMember, names: Sequence[LayerMember]) -> Iterator[LayerMember]:
    yield file
    for member in names:
        yield member._replace(link=file.name)


def _hexadecimal(digits: bytes, count: int, source: str, at: int) -> tuple[int, ...]:
    """Read numbers of eight hexadecimal digits."""
    try:
        return struct.unpack(f">{count}I", bytes.fromhex(digits.decode("ascii")))
    except (ValueError, struct.error):
        raise InputError(source, "the archive is cut, or an entry of it is damaged", at) from None


def _listed_entries(header: _RpmHeader | None, source: str) -> list[_CpioEntry]:
    """Return the files of an `.rpm` as its header has them, where its archive has their numbers alone."""
    if header is None:
        raise InputError(source, "an entry without a name, which only an .rpm has")
    folders = header.texts(_FOLDERS)
    names, numbers = header.texts(_BASE_NAMES), header.numbers(_FOLDER_NUMBERS)
    sizes = header.numbers(_LONG_SIZES) or header.numbers(_SIZES)
    modes, times, inodes = (header.numbers(tag) for tag in (_MODES, _TIMES, _INODES))
    if len({len(column) for column in (names, numbers, sizes, modes, times, inodes)}) > 1:
        raise InputError(source, "the columns of its list of files differ in length")
    if any(number >= len(folders) for number in numbers):
        raise InputError(source, "its list of files names a folder that is not there")
    if any(mode > 0xFFFF for mode in modes):
        raise InputError(source, "its list of files has a mode of more than 16 bits")
    # A folder stands once in the list, and is a part of the name of each file in it.
    if sum(len(folders[number]) + len(name) for number, name in zip(numbers, names, strict=True)) > MOST_NAMES_BYTES:
        raise InputError(source, f"its list of files has names of more than {MOST_NAMES_BYTES >> 20} MiB")
    last = {inode: place for place, inode in enumerate(inodes)}
    counts: dict[int, int] = {}
    for inode in inodes:
        counts[inode] = counts.get(inode, 0) + 1
    rows = zip(numbers, names, modes, inodes, times, sizes, strict=True)
    return [
        _CpioEntry(
            path_text(folders[number] + name),
            mode,
            inode,
            counts[inode],
            seconds,
            # Folders have a size in the list, and no data.
            size if (stat.S_ISREG(mode) and last[inode] == place) or stat.S_ISLNK(mode) else 0,
        )
        for place, (number, name, mode, inode, seconds, size) in enumerate(rows)
    ]


# --- .whl -------------------------------------------------------------------------------------------------------------

_MOST_WHEEL_BYTES: Final = 16 << 30
_MOST_WHEEL_DIRECTORY_BYTES: Final = 64 << 20
# Deflate shrinks no further; how much comes out in all is bounded.
_DEFLATE_RATIO: Final = 1032


def _read_wheel(data: memoryview, path: str) -> tuple[list[str], Layer]:
    most_bytes = min(most_unpacked_bytes(len(data)), _MOST_WHEEL_BYTES)
    sizes = _MOST_WHEEL_BYTES, most_bytes, most_bytes, _MOST_WHEEL_DIRECTORY_BYTES
    archive = BoundedZip(data, path, ZipLimits(*sizes, _DEFLATE_RATIO, ENTRIES_A_MEMBER))
    described = [name for name in archive.members if name.endswith(".dist-info/METADATA") and name.count("/") == 1]
    if not described:
        raise InputError(path, "a zip file without `.dist-info/METADATA`: it is no .whl")
    text = archive.read(described[0], _MOST_TEXT_BYTES).decode("utf-8", "replace")
    platform = os.path.basename(path).removesuffix(".whl").rpartition("-")[2][:_LONGEST_FIELD]

    def contents() -> Iterator[tuple[LayerMember, ArchiveBytes]]:
        for name, member in archive.members.items():
            is_folder = name.endswith("/")
            mode = (member.external_attr >> 16) & 0o7777 or 0o644
            number = member.header_offset
            packed = LayerMember(name, b"5" if is_folder else b"0", "", mode, 0, number, member.file_size)
            yield packed, PiecedBytes(archive.pieces(name))

    return [*_fields(text, ("Name", "Version"), path), platform], kept_layer(contents(), _LAYER_NUMBER, path)
