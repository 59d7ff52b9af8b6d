"""Write a shared object as strip(1) leaves it, and the debug file that was made of it: one table of symbols, two files.

The object exports `shown` and keeps `hidden` and `of_thread` to itself. Its debug file has its sections at the same
addresses and, but for the notes, without their bytes.
"""

import lzma
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Literal

from tests.elfwriter import (
    RO,
    RW,
    SHT_NOBITS,
    SHT_NOTE,
    STB_LOCAL,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Note,
    Section,
    Sym,
    patch,
    peek,
    write,
)

BUILD_ID = bytes(range(0xA0, 0xA0 + 20))
IDENTITY = BUILD_ID.hex()
BUILD_ID_PATH = f".build-id/{IDENTITY[:2]}/{IDENTITY[2:]}.debug"

EXPORTED = [Sym("shown", At(".data"), 16)]
ALL = [
    *EXPORTED,
    Sym("hidden", At(".data", 16), 48, binding=STB_LOCAL),
    Sym("zeros", At(".bss"), 4096, binding=STB_LOCAL),
    Sym("of_thread", At(".tbss", 8), 8, STT_TLS, STB_LOCAL),
]
SECTIONS = [
    Section(".tbss", SHT_NOBITS, TLS, size=16, align=8),
    Section(".data", flags=RW, data=b"\1" * 64, align=16),
    Section(".bss", SHT_NOBITS, RW, size=4096, align=32),
]
NAMED_WHEN_STRIPPED = {"shown": 16}
NAMED_IN_ALL = {"shown": 16, "hidden": 48, "zeros": 4096, "of_thread": 8}


def _file(
    sections: Sequence[Section], symbols: Sequence[Sym], build_id: bytes, kind: dict[str, Any], before: int = 0
) -> bytes:
    # The note stands first, and so moves nothing that is compared, whatever it says.
    note = [Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", build_id)])] if build_id else []
    fillers = [Section(f".filler{number}") for number in range(before)]
    return write(
        ElfFile(
            **kind,
            sections=[*fillers, *note, *SECTIONS, *sections],
            symbols=symbols,
            dynamic_symbols=EXPORTED,
        )
    )


def whole(build_id: bytes = BUILD_ID, **kind: Any) -> bytes:  # noqa: ANN401 # what `ElfFile` takes
    """Write the object as the linker leaves it."""
    return _file((), ALL, build_id, kind)


def stripped(*more: Section, build_id: bytes = BUILD_ID, **kind: Any) -> bytes:  # noqa: ANN401 # what `ElfFile` takes
    """Write the object as strip(1) leaves it, with what it says of its debug file."""
    return _file(more, (), build_id, kind)


def debug(
    *more: Section,
    build_id: bytes = BUILD_ID,
    fillers: int = 0,
    symbols: Sequence[Sym] = ALL,
    **kind: Any,  # noqa: ANN401 # what `ElfFile` takes
) -> bytes:
    """Write its debug file; with fillers, its sections have other numbers than those of the object."""
    data = _file(more, symbols, build_id, kind, before=fillers)
    for name in (".data", ".dynamic", ".dynstr", ".dynsym", ".hash"):
        data = patch(data, "sh_type", SHT_NOBITS, name)
    return data


def link_to(name: str, file: bytes | int, order: Literal["little", "big"] = "little") -> Section:
    """Write the section that names a debug file and its checksum."""
    crc = file if isinstance(file, int) else zlib.crc32(file)
    text = name.encode() + b"\0"
    padded = text + bytes(-len(text) % 4)
    return Section(".gnu_debuglink", data=padded + struct.pack("<I" if order == "little" else ">I", crc), align=4)


def mini(file: bytes) -> Section:
    """Write the section that holds a small debug file, compressed."""
    return packed(lzma.compress(file))


def packed(content: bytes) -> Section:
    """Write the section that should hold a compressed file, with any content."""
    return Section(".gnu_debugdata", data=content)


def moved(data: bytes, section: str) -> bytes:
    """Move a section of a debug file to where the object does not have it."""
    return patch(data, "sh_addr", peek(data, "sh_addr", section) + 64, section)
