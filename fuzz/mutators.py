"""Damage inputs at the places that their readers believe: fields of ELF tables, numbers and lines of texts, members.

A mutator takes an input, the most bytes that it may return, and a source of chance; it returns another input. The same
chance gives the same input.
"""

import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final, Literal

__all__ = ("MUTATORS", "Mutator", "mutated")

Mutator = Callable[[bytes, int, Random], bytes]

_EDGES: Final = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0xFFF, 0x1000, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF, 0x10000)
_WIDE_EDGES: Final = tuple(
    (1 << bits) + step for bits in (20, 31, 32, 40, 47, 48, 52, 62, 63, 64) for step in (-1, 0, 1)
)
_MOST_DAMAGES: Final = 4


def mutated(data: bytes, most_bytes: int, random: Random, mutator: Mutator) -> bytes:
    """Damage an input at one to four places."""
    for _ in range(random.randint(1, _MOST_DAMAGES)):
        data = mutator(data, most_bytes, random)[:most_bytes]
    return data


def _number(random: Random) -> int:
    return random.choice(_EDGES if random.random() < 0.5 else _WIDE_EDGES)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _damage_bytes(data: bytes, _most_bytes: int, random: Random) -> bytes:
    if not data:
        return bytes(random.randrange(256) for _ in range(random.randint(1, 64)))
    at = random.randrange(len(data))
    size = min(random.choice((1, 1, 2, 4, 8, 16, 64, 4096)), len(data) - at)
    kind = random.randrange(8)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + size :]
    if kind == 2:
        return data[:at] + data[at : at + size] * random.choice((2, 3, 100)) + data[at + size :]
    if kind == 3:
        return _with_number(data, at, random.choice((1, 2, 4, 8)), random)
    if kind == 4:
        source = random.randrange(len(data))
        piece = data[source : source + size]
        return data[:at] + piece + data[at + len(piece) :]
    changed = bytearray(data)
    for place in range(at, at + min(size, 4)):
        changed[place] = random.randrange(256) if random.random() < 0.5 else changed[place] ^ 1 << random.randrange(8)
    return bytes(changed)


def _with_number(data: bytes, at: int, size_bytes: int, random: Random, *, is_little: bool = True) -> bytes:
    """Write a number at an edge of some type, or one near to what was there."""
    order: Literal["little", "big"] = "little" if is_little else "big"
    field = data[at : at + size_bytes]
    was = int.from_bytes(field, order)
    kind = random.randrange(4)
    number = (_number(random), was + random.choice((-8, -1, 1, 8)), len(data) - random.randrange(16), was << 1)[kind]
    number &= (1 << 8 * len(field)) - 1
    return data[:at] + number.to_bytes(len(field), order) + data[at + len(field) :]


# --- ELF --------------------------------------------------------------------------------------------------------------

# Of each table: the sizes of the fields of an entry, in 32 and in 64 bits.
_HEADER: Final = ((2, 2, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2), (2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2))
_PROGRAM: Final = ((4, 4, 4, 4, 4, 4, 4, 4), (4, 4, 8, 8, 8, 8, 8, 8))
_SECTION: Final = ((4, 4, 4, 4, 4, 4, 4, 4, 4, 4), (4, 4, 8, 8, 8, 8, 4, 4, 8, 8))
_SYMBOL: Final = ((4, 4, 4, 1, 1, 2), (4, 1, 1, 2, 8, 8))
_DYNAMIC: Final = ((4, 4), (8, 8))
_REL: Final = ((4, 4), (8, 8))
_RELA: Final = ((4, 4, 4), (8, 8, 8))
_ENTRIES: Final = {2: _SYMBOL, 11: _SYMBOL, 6: _DYNAMIC, 4: _RELA, 9: _REL}
"""The entries of a section by its type: symbols, the dynamic section, relocations."""


def _damage_elf(data: bytes, most_bytes: int, random: Random) -> bytes:
    """Damage a field of a table, an entry of it, or the bytes of a section; else any bytes."""
    with suppress(struct.error, IndexError, ValueError):
        start = data.find(b"\x7fELF")
        if start >= 0 and random.random() < 0.85:
            return data[:start] + _damage_tables(data[start:], random)
    return _damage_bytes(data, most_bytes, random)


def _damage_tables(data: bytes, random: Random) -> bytes:
    is_64, is_little = data[4] == 2, data[5] != 2
    tables = list(_tables(data, is_64=is_64, is_little=is_little))
    kind = random.randrange(10)
    sections = [(at, size) for at, size, fields in tables if not fields and size]
    if kind < 3 and sections:
        # What a section holds: notes, hashes, versions, debug information.
        at, size = random.choice(sections)
        place = at + random.randrange(size)
        if random.random() < 0.5:
            return _with_number(data, place, random.choice((1, 2, 4, 8)), random, is_little=is_little)
        inside = _damage_bytes(data[at : at + size], size, random)[:size].ljust(size, b"\0")
        return data[:at] + inside + data[at + size :]
    at, size, fields = random.choice([table for table in tables if table[2]])
    entry_bytes = sum(fields)
    count = max(1, size // entry_bytes)
    entry = at + random.randrange(min(count, 4096)) * entry_bytes
    if kind == 3:
        # An entry over another one, of this table or of any.
        source = at + random.randrange(min(count, 4096)) * entry_bytes
        return data[:entry] + data[source : source + entry_bytes] + data[entry + entry_bytes :]
    number = random.randrange(len(fields))
    place = entry + sum(fields[:number])
    return _with_number(data, place, fields[number], random, is_little=is_little)


def _tables(data: bytes, *, is_64: bool, is_little: bool) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Find the tables of a file: offset, size, and the sizes of the fields of an entry; none for other sections."""
    order = "<" if is_little else ">"
    yield 16, 48 if is_64 else 36, _HEADER[is_64]
    word = "Q" if is_64 else "I"
    program_at, section_at = struct.unpack_from(f"{order}2{word}", data, 32 if is_64 else 28)
    program_count, _, section_count = struct.unpack_from(f"{order}3H", data, 56 if is_64 else 44)
    if program_count and program_at < len(data):
        yield program_at, program_count * sum(_PROGRAM[is_64]), _PROGRAM[is_64]
    if section_count and section_at < len(data):
        entry_bytes = sum(_SECTION[is_64])
        yield section_at, section_count * entry_bytes, _SECTION[is_64]
        for number in range(min(section_count, 512)):
            at = section_at + number * entry_bytes
            kind = struct.unpack_from(f"{order}I", data, at + 4)[0]
            offset, size = struct.unpack_from(f"{order}2{word}", data, at + (24 if is_64 else 16))
            if kind != 8 and 0 < size <= len(data) and offset < len(data):
                yield offset, size, _ENTRIES[kind][is_64] if kind in _ENTRIES else ()


# --- texts ------------------------------------------------------------------------------------------------------------

_NUMBER: Final = re.compile(rb"0[xX][0-9a-fA-F]{1,40}|[0-9a-f]{5,40}|[0-9]{1,40}")
_WORD: Final = re.compile(rb"[^\s,:;=()\[\]{}\"'<>]{1,80}")
_ODD_WORDS: Final = (
    *(b"", b"-1", b"+1", b"1e400", b"-0", b"NaN", b"Infinity", b"nan", b"0x", b"null", b"true", b"[]", b"{}", b'""'),
    *(
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1b[31m",
        b"\r",
        b"\t",
        b" ",
        b"%s%n",
        b"../../x",
        b"/dev/null",
        b"[rollup]",
    ),
    *(b"9" * 5000, b"(" * 2000, b"[" * 2000, b"a" * 5000, "\u0663".encode(), "\u2028".encode(), b"1_000", b"\xc2\xb2"),
)


def _damage_text(data: bytes, most_bytes: int, random: Random) -> bytes:
    """Damage lines, numbers or words of a text; else any bytes."""
    kind = random.randrange(10)
    if kind < 4:
        return _damage_lines(data, most_bytes, random)
    if kind < 8:
        found = _some(_NUMBER if kind < 6 else _WORD, data, random)
        if found is not None:
            return data[: found.start()] + _other_word(found[0], data, random) + data[found.end() :]
    return _damage_bytes(data, most_bytes, random)


def _some(pattern: re.Pattern[bytes], data: bytes, random: Random) -> re.Match[bytes] | None:
    """Find a match behind some place."""
    return pattern.search(data, random.randrange(len(data))) if data else None


def _other_word(word: bytes, data: bytes, random: Random) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return random.choice(_ODD_WORDS)
    if kind == 1 and (other := _some(_WORD, data, random)):
        return other[0]
    number = _number(random) if kind == 2 else random.randrange(1 << random.choice((4, 8, 16, 32, 48)))
    is_hex = len(word) > 4 or word[:1] in b"abcdef"
    text = b"%x" % number if is_hex else b"%d" % number
    if word[:2].lower() == b"0x":
        return b"0x%x" % number
    return b"-" + text if kind == 3 and random.random() < 0.2 else text


def _damage_lines(data: bytes, most_bytes: int, random: Random) -> bytes:
    lines = data.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(8)
    if kind == 0:
        del lines[at : at + random.choice((1, 1, 2, 10))]
    elif kind == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 2:
        lines.insert(at, lines[other])
    elif kind == 3:
        lines = lines[:at]
    elif kind == 4:
        lines[at] = lines[at][: random.randrange(len(lines[at]) + 1)]
    elif kind == 5:
        lines[at] += lines[other]
    elif kind == 6:
        # Seldom many: one input of them takes as long as a hundred others.
        count = min(random.choice((2, 5, 10, 10, 20, 50, 100, 5000)), max(1, most_bytes // (len(lines[at]) + 1)))
        lines[at : at + 1] = [lines[at]] * count
    else:
        start, end = sorted((at, other))
        lines = lines[:start] + lines[end:]
    return b"\n".join(lines)


# --- JSON -------------------------------------------------------------------------------------------------------------

_ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1 << 63, 1 << 64, 10**400, 0.5, -0.0, 1e308, "", "\0", "\ud800", "x" * 5000, [], {}),
    *([[]], [None], {"": None}, {"x": 1}, "[heap]", "\u202e", "measured", "0x10"),
)


def _damage_json(data: bytes, most_bytes: int, random: Random) -> bytes:
    """Replace, drop, repeat or move a value of a JSON document; else damage it as a text."""
    if random.random() < 0.3:
        return _damage_text(data, most_bytes, random)
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        return _damage_text(data, most_bytes, random)
    whole = {"": document}
    parent, key = _some_place(whole, random)
    kind = random.randrange(6)
    if kind == 0 and isinstance(parent, list):
        del parent[key]
    elif kind == 0 and parent is not whole:
        parent[f"{key}x"] = parent.pop(key)
    elif kind == 1 and parent is not whole:
        del parent[key]
    elif kind == 2 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif kind == 3:
        other, place = _some_place(whole, random)
        # A value may not contain itself.
        parent[key] = json.loads(json.dumps(other[place]))
    elif isinstance(parent[key], int) and random.random() < 0.7:
        parent[key] += random.choice((-4096, -1, 1, 4096))
    else:
        parent[key] = random.choice(_ODD_VALUES)
    return json.dumps(whole.get("")).encode(errors="surrogatepass")


def _damage_json_lines(data: bytes, most_bytes: int, random: Random) -> bytes:
    """Damage one of the JSON documents that stand in a line each; else their order."""
    if random.random() < 0.3:
        return _damage_text(data, most_bytes, random)
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = _damage_json(lines[at], most_bytes, random)
    return b"\n".join(lines)


def _some_place(whole: dict[str, Any], random: Random) -> tuple[Any, Any]:
    """Walk into a document to some value; return what contains it, and its key."""
    parent: Any = whole
    key: Any = ""
    while True:
        value = parent[key]
        if not isinstance(value, (dict, list)) or not value or random.random() < 0.1:
            return parent, key
        parent = value
        key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))


# --- archives of members ----------------------------------------------------------------------------------------------


def _damage_zip(data: bytes, most_bytes: int, random: Random) -> bytes:
    """Damage a member of a ZIP file, with its checksum made right again; else any bytes."""
    if random.random() < 0.2:
        return _damage_bytes(data, most_bytes, random)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    except Exception:  # noqa: BLE001 # zipfile raises what it likes
        return _damage_bytes(data, most_bytes, random)
    if not members:
        return _damage_bytes(data, most_bytes, random)
    at = random.randrange(len(members))
    name, content = members[at]
    kind = random.randrange(12)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members.append((name, content))
    elif kind == 2:
        members[at] = (_damage_text(name.encode(), most_bytes, random).decode(errors="replace")[:200], content)
    else:
        damage = _damage_json if content.startswith((b"{", b"[")) else _damage_text
        members[at] = (name, damage(content, most_bytes, random))
    return _zip(members)


def _zip(members: list[tuple[str, bytes]]) -> bytes:
    written = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # a name that is there twice is damage, too
        for name, content in members:
            # Without the clock, so that the same chance gives the same file.
            archive.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


MUTATORS: Final[dict[str, Mutator]] = {
    "bytes": _damage_bytes,
    "elf": _damage_elf,
    "text": _damage_text,
    "json": _damage_json,
    "json_lines": _damage_json_lines,
    "zip": _damage_zip,
}
"""The mutators by the name that a target has for its own."""
