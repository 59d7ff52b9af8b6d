"""The notes of an ELF file, and where the symbols of a stripped one may be: what it says about its debug file.

Notes are found as the loader finds them: through PT_NOTE, never by section.

A debug file is the exception: its program headers are copies of those of its file, so its notes are found by section.
A debug file has the sections of its file at the same addresses, without their bytes (NOBITS), and the symbol table
that was stripped. MiniDebugInfo is a small debug file, compressed inside the file itself.

Source: System V ABI, chapter 5 (Note Section); gABI draft of 2018 for notes aligned to 8 bytes; UAPI specification
"ELF dlopen metadata"; GDB manual, "Debugging Information in Separate Files" and "Debugging information in a special
section"; DWARF 5, section 7.3.6 (supplementary object files), the standard form of `.gnu_debugaltlink`.
"""

import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from struct import Struct
from typing import Any, Final

from footprint.elf import abi
from footprint.elf.image import Buffer, Image, Section, read_image
from footprint.errors import InputError, UnsupportedError, UsageError
from footprint.members import NamedTuple
from footprint.system.files import StrPath

_NT_GNU_BUILD_ID: Final = 3
_NT_DLOPEN: Final = 0x407C0C0A
_GNU: Final = b"GNU\0"
_HEADERS: Final = {True: Struct("<III"), False: Struct(">III")}
# Notes take a few hundred bytes; of a larger claim only this much is read.
_MOST_NOTE_BYTES: Final = 1 << 16
_MOST_SECTIONS: Final = 64
# SHA-1 has 20 bytes, a UUID 16, and --build-id=0x... any number.
_MOST_ID_BYTES: Final = 64
_WORDS: Final = {True: Struct("<I"), False: Struct(">I")}
_MOST_LINK_BYTES: Final = 1 << 12
# The symbols of the largest browsers are half as large. A larger claim is not inflated further.
_MOST_MINI_BYTES: Final = 64 << 20
# What `xz -9` needs, and a reserve; a hostile stream may ask for 4 GiB.
_MOST_XZ_MEMORY_BYTES: Final = 80 << 20


class Priority(StrEnum):
    """How much an object needs a library that it opens at run time, from the most to the least."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"
    SUGGESTED = "suggested"


class OptionalLibrary(NamedTuple):
    """A library that an object may open at run time, as its note states (`.note.dlopen`).

    Attributes:
        sonames: Its names; the object opens the first that exists.
        priority: How much the object needs it.
        feature: The feature that needs it, in one word; empty where the note has none.
        description: The purpose; empty where the note has none.
    """

    sonames: tuple[str, ...]
    priority: Priority
    feature: str
    description: str


class _Note(NamedTuple):
    owner: bytes
    type: int
    text: bytes


def build_id(image: Image) -> str | None:
    """Return the build-id as hexadecimal digits; None where there is none, or where the notes before it are damaged."""
    return _build_id(_all_notes(image))


def build_id_of_start(start: bytes) -> str | None:
    """Return the build-id of a file of which only the first bytes are known; None where they do not hold it."""
    try:
        return build_id(read_image(start, "the first bytes of a file", with_sections=False))
    except InputError:
        return None


def debug_build_id(image: Image) -> str | None:
    """Return the build-id of a debug file, which is that of its file."""
    sections = islice((section for section in image.sections if section.type == abi.SHT_NOTE), _MOST_SECTIONS)
    return _build_id(note for s in sections for note in _notes(image, s.offset, s.size_bytes, s.align))


def optional_libraries(image: Image) -> tuple[OptionalLibrary, ...]:
    """Return the libraries that an object may open at run time, as its notes state."""
    libraries: list[OptionalLibrary] = []
    for note in _all_notes(image):
        if note.type == _NT_DLOPEN and note.owner == b"FDO\0":
            try:
                libraries += [_optional_library(entry) for entry in _entries_of(note.text)]
            except (ValueError, RecursionError) as error:
                raise InputError(image.file, f"its note of libraries to open is damaged: {error}") from error
    return tuple(libraries)


def _build_id(notes: Iterable[_Note]) -> str | None:
    for note in notes:
        if note.type == _NT_GNU_BUILD_ID and note.owner == _GNU and 0 < len(note.text) <= _MOST_ID_BYTES:
            return note.text.hex()
    return None


def _entries_of(text: bytes) -> list[Any]:
    import json  # noqa: PLC0415 # few files have such a note

    entries = json.loads(text.rstrip(b"\0"))
    if not isinstance(entries, list):
        raise ValueError("it is not a list")  # noqa: TRY004 # the file is wrong, not the caller
    return entries


def _optional_library(entry: object) -> OptionalLibrary:
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")  # noqa: TRY004 # the file is wrong, not the caller
    sonames = entry.get("soname")
    texts = [entry.get(key, "") for key in ("feature", "description")]
    if not isinstance(sonames, list) or not sonames or not all(isinstance(text, str) for text in [*sonames, *texts]):
        raise ValueError("an entry has no names, or values that are not text")
    return OptionalLibrary(tuple(sonames), Priority(entry.get("priority", Priority.RECOMMENDED)), texts[0], texts[1])


def _all_notes(image: Image) -> Iterator[_Note]:
    for segment in image.segments:
        if segment.type == abi.PT_NOTE:
            yield from _notes(image, segment.offset, segment.file_bytes, segment.align)


def _notes(image: Image, offset: int, size_bytes: int, align: int) -> Iterator[_Note]:
    """Return the notes of a part of the file, up to the first that reaches beyond the part or the file."""
    raw = bytes(image.data[offset : offset + min(size_bytes, _MOST_NOTE_BYTES)])
    header = _HEADERS[image.is_little]
    align = 8 if align == 8 else 4
    at = 0
    while at + header.size <= len(raw):
        owner_bytes, text_bytes, note_type = header.unpack_from(raw, at)
        owner_at = at + header.size
        text_at = _up(owner_at + owner_bytes, align)
        if text_at + text_bytes > len(raw):
            return
        yield _Note(raw[owner_at : owner_at + owner_bytes], note_type, raw[text_at : text_at + text_bytes])
        at = _up(text_at + text_bytes, align)


def _up(offset: int, align: int) -> int:
    return -(-offset // align) * align


class DebugLink(NamedTuple):
    """The debug file that `.gnu_debuglink` names.

    Attributes:
        name: Its name, without a folder.
        crc: The CRC-32 of all its bytes.
    """

    name: str
    crc: int


class AlternateLink(NamedTuple):
    """The file that `.gnu_debugaltlink` names: dwz moved into it what several debug files have in common.

    Attributes:
        path: Its path, absolute or relative to the folder of the file.
        build_id: Its build-id as hexadecimal digits.
    """

    path: str
    build_id: str


class DebugImage(NamedTuple):
    """Where the symbols of a stripped file were found.

    Attributes:
        image: The file that has them; its name is the one to show.
        is_whole: Whether it has all symbols of the file; MiniDebugInfo has functions, and little else.
    """

    image: Image
    is_whole: bool = True


def is_stripped(image: Image) -> bool:
    """Return whether a linked file has sections, but no symbol table of its own for them."""
    kinds = {section.type for section in image.sections if section.size_bytes}
    return not image.is_relocatable and abi.SHT_SYMTAB not in kinds and bool(kinds - {abi.SHT_NULL})


def debug_link(image: Image) -> DebugLink | None:
    """Return the file name and checksum in `.gnu_debuglink`; None where there is none, or no usable name."""
    raw = _named_bytes(image, ".gnu_debuglink")
    name, end, _ = raw.partition(b"\0")
    crc_at = -(-(len(name) + 1) // 4) * 4
    text = name.decode("utf-8", "surrogateescape")
    # The tool that writes the section removes the folder; a name with a folder may lead anywhere.
    if not end or crc_at + 4 > len(raw) or "/" in text or text in {"", ".", ".."}:
        return None
    return DebugLink(text, _WORDS[image.is_little].unpack_from(raw, crc_at)[0])


def alternate_link(image: Image) -> AlternateLink | None:
    """Return the path and build-id in `.gnu_debugaltlink`; None where there is none."""
    path, _, identity = _named_bytes(image, ".gnu_debugaltlink").partition(b"\0")
    return AlternateLink(path.decode("utf-8", "surrogateescape"), identity.hex()) if path and identity else None


def candidates(image: Image, path: str, debug_dirs: Sequence[str]) -> list[str]:
    """Return the paths where the debug file of a stripped file may be, the most certain first, without opening any."""
    paths: list[str] = []
    identity = build_id(image)
    if identity is not None and (place := build_id_place(identity)):
        paths += [f"{folder}/{place}" for folder in debug_dirs]
    link = debug_link(image)
    if link is not None:
        folder = posixpath.dirname(path).rstrip("/")
        paths += [f"{folder}/{link.name}", f"{folder}/.debug/{link.name}"]
        paths += [f"{debug_dir}{folder}/{link.name}" for debug_dir in debug_dirs]
        paths += [f"{debug_dir}/{link.name}" for debug_dir in debug_dirs]
    # A link of a file to itself leads to the stripped file again.
    return [candidate for candidate in dict.fromkeys(paths) if candidate != path]


def build_id_place(identity: str) -> str | None:
    """Return the path of the debug file of a build-id in a folder of them; None for a build-id that is too short."""
    return f".build-id/{identity[:2]}/{identity[2:]}.debug" if len(identity) > 2 else None


def mini_debug_image(image: Image) -> Image | None:
    """Return the ELF file that is compressed in `.gnu_debugdata`; None where there is none.

    Raises:
        InputError: Where it is damaged, or inflates to more than the limit.
        UnsupportedError: Where this Python was built without lzma.
    """
    section = _section(image, ".gnu_debugdata")
    if section is None:
        return None
    name = f"{image.file}({section.name})"
    return read_image(_inflated(image.section_bytes(section), name), name)


def _inflated(compressed: Buffer, name: str) -> bytes:
    try:
        import lzma  # noqa: PLC0415 # few files have MiniDebugInfo, and some builds of Python have no lzma
    except ImportError as error:
        raise UnsupportedError(name, "this Python has no lzma, which is needed to read it") from error
    inflater = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_MEMORY_BYTES)
    try:
        inflated = inflater.decompress(compressed[:_MOST_MINI_BYTES], max_length=_MOST_MINI_BYTES)
    except lzma.LZMAError as error:
        raise InputError(name, f"it cannot be inflated: {error}") from error
    if not inflater.eof:
        is_cut = len(inflated) < _MOST_MINI_BYTES
        raise InputError(name, "it is cut" if is_cut else f"it inflates to more than {_MOST_MINI_BYTES} bytes")
    return inflated


def matched_sections(image: Image, debug: Image) -> dict[int, Section]:
    """Return the sections of a file by their numbers in its debug file: those of the same name, address and size."""
    places = {(s.name, s.vaddr, s.size_bytes): s for s in image.sections if s.is_in_memory}
    return {
        s.index: section
        for s in debug.sections
        if s.is_in_memory and (section := places.get((s.name, s.vaddr, s.size_bytes))) is not None
    }


def _section(image: Image, name: str) -> Section | None:
    return next((section for section in image.sections if section.name == name and section.has_file_bytes), None)


def _named_bytes(image: Image, name: str) -> bytes:
    """Return the first bytes of a section, which hold a name and little more; nothing where the file has none."""
    section = _section(image, name)
    if section is None:
        return b""
    return bytes(image.bytes_at(section.offset, min(section.size_bytes, _MOST_LINK_BYTES), f"section {section.index}"))


class DebugSearch(NamedTuple):
    """Where to look for the symbols of stripped files.

    Attributes:
        folders: Folders with debug files, besides `/usr/lib/debug`, those beside the file, and debuginfod's cache.
        uses_servers: Whether to ask the servers of DEBUGINFOD_URLS for what is not there.
    """

    folders: tuple[StrPath, ...] = ()
    uses_servers: bool = False

    def check(self) -> None:
        """Raise a UsageError if one of the folders is none."""
        for folder in self.folders:
            if not os.path.isdir(folder):
                raise UsageError(f"{folder} is not a folder")


STANDARD_PLACES: Final = DebugSearch()
