"""ELF files rewritten: needs switched off, and other directories to look for libraries in.

A need is switched off in place: its entry in the dynamic section becomes one that loaders ignore. Nothing moves, so a
file with the need and one without it are the same in all else. New names of directories need room that no file has:
LIEF makes it by moving segments and adding one.

Source: System V ABI, chapter 5 (Dynamic Section); elf/get-dynamic-info.h of glibc and ldso/dynlink.c of musl for what
a loader passes over.
"""

import atexit
import gc
import secrets
import struct
from typing import Final, NamedTuple

from footprint.elf.abi import DT_NEEDED, PT_DYNAMIC
from footprint.elf.dynamic import read_dynamic
from footprint.elf.image import Image
from footprint.elf.linkage import read_linkage
from footprint.errors import InputError, UsageError

# Between DT_LOOS and DT_HIOS, where no system has put a meaning.
_PASSED_OVER: Final = 0x6F00F00D


class Switch(NamedTuple):
    """A place in a file, and the bytes that switch a need on and off there."""

    offset: int
    on: bytes
    off: bytes


def need_switches(image: Image, names: frozenset[str]) -> tuple[Switch, ...]:
    """Find the places at which a file needs libraries of some names.

    Raises:
        InputError: If the dynamic section is damaged.
    """
    segment = image.segment(PT_DYNAMIC)
    if segment is None:
        return ()
    word = struct.Struct(("<" if image.is_little else ">") + ("Q" if image.is_64 else "I"))
    tags = [tag for tag, _ in read_dynamic(image).entries]
    places = [place for place, tag in enumerate(tags) if tag == DT_NEEDED]
    on, off = word.pack(DT_NEEDED), word.pack(_PASSED_OVER)
    return tuple(
        [
            Switch(segment.offset + 2 * word.size * place, on, off)
            for place, name in zip(places, read_linkage(image).needed, strict=True)
            if name in names
        ]
    )


def with_search_path(data: bytes, file: str, directories: bytes, *, is_runpath: bool) -> bytes:
    """Return a file that looks for its libraries in other directories.

    Args:
        data: The file.
        file: Its name, for errors.
        directories: The list, parted by colons.
        is_runpath: Whether it becomes its RUNPATH, else its RPATH.

    Raises:
        InputError: If LIEF cannot read it.
        UsageError: If LIEF is not installed.
    """
    try:
        import lief  # noqa: PLC0415 # 0.3 s and 10 MB, and most programs do without
    except ImportError:
        raise UsageError(
            f"{file} must look for its libraries elsewhere, and only LIEF can write that: "
            "pip install 'footprint-audit[whatif]'"
        ) from None
    lief.logging.disable()
    # The command freezes objects at exit, and LIEF would report them as leaks.
    atexit.register(gc.unfreeze)
    binary = lief.ELF.parse(data)
    if binary is None:
        raise InputError(file, "LIEF cannot read it, so its copy cannot be written")
    tag = lief.ELF.DynamicEntry.TAG.RUNPATH if is_runpath else lief.ELF.DynamicEntry.TAG.RPATH
    entry = lief.ELF.DynamicEntryRunPath if is_runpath else lief.ELF.DynamicEntryRpath
    # LIEF takes UTF-8 only, and a name of a directory may be any bytes.
    stand_in = secrets.token_hex(len(directories))[: len(directories)]
    binary.remove(tag)
    binary.add(entry(stand_in))
    return bytes(binary.write_to_bytes()).replace(stand_in.encode(), directories)
