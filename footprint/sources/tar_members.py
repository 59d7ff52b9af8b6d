"""The members of a tar archive, one after the other: ustar, with the long names of GNU tar and of pax.

Every size that a header claims is checked before it is used, and a header with a wrong checksum ends the archive with
an error. What the members are called is for the caller to judge.

Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; the manual of GNU tar, "Basic Tar
Format".
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from footprint.errors import InputError
from footprint.system.limits import draw_entries
from footprint.text.units import decimal

_BLOCK_BYTES: Final = 512
_MOST_NAME_BYTES: Final = 1 << 20
# No path is longer than 4,096 bytes: a name that is cut here stays one that no file can have.
MOST_PATH_BYTES: Final = 4097
# All names of a layer are in memory; those of an image with 500,000 files have 50 MB.
MOST_NAMES_BYTES: Final = 128 << 20
MOST_MEMBER_BYTES: Final = 1 << 50
_ZEROS: Final = bytes(_BLOCK_BYTES)
MEMBERS_A_DRAW: Final = 1024
# A member is one in its layer and one in the tree: a million take 750 MB.
ENTRIES_A_MEMBER: Final = 2


class MemberKind:
    """What a member is, by its type flag."""

    FILE: Final = frozenset({b"0", b"\0", b"7"})
    HARD_LINK: Final = frozenset({b"1"})
    SYMBOLIC_LINK: Final = frozenset({b"2"})
    FOLDER: Final = frozenset({b"5"})
    SPARSE: Final = frozenset({b"S"})


class LayerMember(NamedTuple):
    """One member of an archive: of tar, or as a member of cpio or zip would be in one.

    Attributes:
        name: Its path, as it stands there.
        type: Its type flag; `S` for sparse files, also for those of pax.
        link: What a link leads to.
        mode: The permission bits.
        changed_ns: When it was changed, in nanoseconds since 1970.
        offset: Where its data begins in the archive.
        size_bytes: The size of its data.
    """

    name: str
    type: bytes
    link: str
    mode: int
    changed_ns: int
    offset: int
    size_bytes: int


class ArchiveBytes(Protocol):
    """The bytes of an archive, read forward."""

    def read(self, size_bytes: int) -> bytes:
        """Read on; the result is shorter only at the end."""

    def skip_to(self, offset: int) -> bool:
        """Skip to an offset that was not read yet; return whether the archive is as long."""


class ViewedBytes:
    """An archive in memory, or a memory map of it: what is skipped is never read."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def read(self, size_bytes: int) -> bytes:
        """Read on."""
        piece = bytes(self._data[self._at : self._at + size_bytes])
        self._at += len(piece)
        return piece

    def skip_to(self, offset: int) -> bool:
        """Skip to an offset."""
        self._at = min(offset, len(self._data))
        return self._at == offset


class PiecedBytes:
    """An archive that comes in pieces, such as one that is decompressed on the way."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self._at = 0

    def read(self, size_bytes: int) -> bytes:
        """Read on."""
        parts = []
        while size_bytes and self._fill():
            part = self._piece[:size_bytes]
            parts.append(part)
            self._piece = self._piece[len(part) :]
            size_bytes -= len(part)
        data = b"".join(parts)
        self._at += len(data)
        return data

    def skip_to(self, offset: int) -> bool:
        """Skip to an offset."""
        while self._at < offset and self._fill():
            skipped = min(len(self._piece), offset - self._at)
            self._piece = self._piece[skipped:]
            self._at += skipped
        return self._at == offset

    def _fill(self) -> bool:
        """Take the next piece where this one is used up; return whether there is one."""
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._piece = memoryview(piece)
        return True


def members_of(archive: ArchiveBytes, source: str) -> Iterator[LayerMember]:
    """Return the members; the caller may read the data of each before it takes the next one.

    Raises:
        InputError: Where the archive is cut or damaged.
        LimitError: Where it has more members than the limits allow.
    """
    at, count, names_bytes = 0, 0, 0
    extended: dict[bytes, bytes] = {}
    for_all: dict[bytes, bytes] = {}
    while (header := archive.read(_BLOCK_BYTES)) and header != _ZEROS:
        if count % MEMBERS_A_DRAW == 0:
            draw_entries(ENTRIES_A_MEMBER * MEMBERS_A_DRAW, source)
        count += 1
        size_bytes, data_at = _checked_size(header, source, at), at + _BLOCK_BYTES
        flag = header[156:157]
        if flag in {b"x", b"g", b"L", b"K"}:
            if size_bytes > _MOST_NAME_BYTES:
                raise InputError(source, f"a header claims {size_bytes} bytes of names", at)
            data = archive.read(size_bytes)
            if len(data) < size_bytes:
                raise InputError(source, "the archive is cut", at)
            records = for_all if flag == b"g" else extended
            records |= _pax_records(data, source, at) if flag in b"xg" else {_LONG[flag]: data.rstrip(b"\0")}
        else:
            fields = {**for_all, **extended}
            extended = {}
            if flag == b"S":
                data_at += _skip_sparse_map(archive, header, source, at)
            size_bytes = _number(fields.get(b"size"), size_bytes, source, at)
            member = _member(header, fields, data_at, size_bytes, source)
            names_bytes += len(member.name) + len(member.link)
            if names_bytes > MOST_NAMES_BYTES:
                raise InputError(source, f"its names have more than {MOST_NAMES_BYTES >> 20} MiB", at)
            yield member
        at = data_at + -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
        if not archive.skip_to(at):
            raise InputError(source, "the archive is cut: a member is longer than it", data_at)
    if header and len(header) < _BLOCK_BYTES:
        raise InputError(source, "the archive is cut", at)


_LONG: Final = {b"L": b"path", b"K": b"linkpath"}


def _checked_size(header: bytes, source: str, at: int) -> int:
    """Return the size in a header whose checksum is right.

    Raises:
        InputError: Where it is not.
    """
    if len(header) < _BLOCK_BYTES:
        raise InputError(source, "the archive is cut", at)
    excess = sum(header) - sum(header[148:156]) + 8 * 0x20 - _octal(header[148:156], source, at)
    # Some old writers added up signed bytes; only names beyond ASCII make a difference.
    if excess and excess != 256 * sum(byte >> 7 for byte in header[:148] + header[156:]):
        raise InputError(source, "no header of a member, or a damaged one: its checksum is wrong", at)
    flag = header[156:157]
    if flag in MemberKind.HARD_LINK | MemberKind.SYMBOLIC_LINK | MemberKind.FOLDER | {b"3", b"4", b"6"}:
        # They have no data, whatever stands there.
        return 0
    size_bytes = _octal(header[124:136], source, at)
    if not 0 <= size_bytes <= MOST_MEMBER_BYTES:
        raise InputError(source, f"a member claims {size_bytes} bytes", at)
    return size_bytes


def _octal(field: bytes, source: str, at: int) -> int:
    """Read a number: octal digits, or two's complement where the first bit is set, as GNU tar writes large ones."""
    if field[0] in {0x80, 0xFF}:
        return int.from_bytes(field[1:], "big", signed=field[0] == 0xFF)
    digits = field.rstrip(b"\0 ").lstrip(b" ").partition(b"\0")[0]
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        raise InputError(source, "a damaged header: a number with other digits than octal ones", at)
    return int(digits, 8)


def _number(text: bytes | None, otherwise: int, source: str, at: int) -> int:
    """Read a size of pax; it has up to 16 digits."""
    if text is None:
        return otherwise
    if not text.isdigit() or len(text) > 16 or int(text) > MOST_MEMBER_BYTES:
        raise InputError(source, f"a member claims {text[:20]!r} bytes", at)
    return int(text)


_SPARSE: Final = b"GNU.sparse."
_KEYS: Final = frozenset({b"path", b"linkpath", b"size", b"mtime", b"GNU.sparse.name"})


def _pax_records(data: bytes, source: str, at: int) -> dict[bytes, bytes]:
    """Read records of the form `LENGTH KEY=VALUE` and a line feed, where LENGTH counts all of it.

    Only those that matter are kept: records for all members could fill the memory. One `GNU.sparse.` stands for the
    others of sparse files.
    """
    records = {}
    place = 0
    while place < len(data):
        space = data.find(b" ", place, place + 8)
        digits = data[place:space] if space > 0 else b""
        end = place + (decimal(digits) or 0)
        key, is_pair, value = data[space + 1 : end - 1].partition(b"=")
        if not place < end <= len(data) or not is_pair or data[end - 1 : end] != b"\n":
            raise InputError(source, "a damaged record of pax", at)
        if key in _KEYS:
            records[key] = value
        elif key.startswith(_SPARSE):
            records[_SPARSE] = b""
        place = end
    return records


def _skip_sparse_map(archive: ArchiveBytes, header: bytes, source: str, at: int) -> int:
    """Skip the blocks between the header of a sparse file and its data; return their size."""
    size_bytes, is_more = 0, header[482]
    while is_more:
        block = archive.read(_BLOCK_BYTES)
        if len(block) < _BLOCK_BYTES:
            raise InputError(source, "the archive is cut", at)
        draw_entries(1, source)
        size_bytes += _BLOCK_BYTES
        is_more = block[504]
    return size_bytes


def _member(header: bytes, fields: dict[bytes, bytes], data_at: int, size_bytes: int, source: str) -> LayerMember:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0]
    # GNU tar has times and sparse maps in the place of the prefix, and another magic.
    if prefix and header[257:263] == b"ustar\0":
        name = prefix + b"/" + name
    is_sparse = any(key.startswith(_SPARSE) for key in fields)
    at = data_at - _BLOCK_BYTES
    return LayerMember(
        path_text(fields.get(b"GNU.sparse.name", fields.get(b"path", name))),
        b"S" if is_sparse else header[156:157],
        path_text(fields.get(b"linkpath", header[157:257].partition(b"\0")[0])),
        _octal(header[100:108], source, at) & 0o7777,
        _time_ns(fields.get(b"mtime"), _octal(header[136:148], source, at)),
        data_at,
        size_bytes,
    )


def _time_ns(text: bytes | None, seconds: int) -> int:
    """Read a time of pax: seconds with up to nine digits behind the point; the header has whole seconds."""
    whole, _, parts = (text or b"").partition(b".")
    if whole.lstrip(b"-").isdigit() and len(whole) < 12 and (not parts or parts.isdigit()):
        below = int(parts[:9].ljust(9, b"0"))
        return int(whole) * 10**9 + (-below if whole.startswith(b"-") else below)
    return max(-(1 << 33), min(seconds, 1 << 33)) * 10**9


def path_text(name: bytes) -> str:
    """Return a path of an archive as text."""
    return name[:MOST_PATH_BYTES].decode("utf-8", "surrogateescape")
