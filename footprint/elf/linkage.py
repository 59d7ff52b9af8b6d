"""The linkage of an ELF file: the libraries that it needs, where the loader searches for them, and how it binds.

Source: System V ABI, chapter 5 (Dynamic Linking); elf.h of glibc for DT_FLAGS_1, DT_AUXILIARY and DT_FILTER.
"""

from dataclasses import dataclass
from typing import Final

from footprint.elf.dynamic import Dynamic, read_dynamic
from footprint.elf.image import PT_DYNAMIC, PT_INTERP, Image
from footprint.errors import InputError

__all__ = ("DF_1_NODEFLIB", "DF_1_PIE", "Linkage", "read_linkage")

DT_NEEDED: Final = 1
DT_SONAME: Final = 14
DT_RPATH: Final = 15
DT_SYMBOLIC: Final = 16
DT_RUNPATH: Final = 29
DT_FLAGS: Final = 30
DT_FLAGS_1: Final = 0x6FFFFFFB
DT_AUXILIARY: Final = 0x7FFFFFFD
DT_FILTER: Final = 0x7FFFFFFF

DF_SYMBOLIC: Final = 0x2
DF_1_NODEFLIB: Final = 0x800
DF_1_PIE: Final = 0x08000000

# The largest programs need some hundred libraries; a larger dynamic section is damage.
_MOST_DYNAMIC_BYTES: Final = 1 << 20
_MOST_INTERPRETER_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Linkage:
    """The linkage of one file, as its dynamic section states it.

    Attributes:
        soname: The name that other files use in DT_NEEDED.
        needed: The names of the libraries that it needs, in their order.
        rpath: The search path for them and for the libraries that they need in turn; ignored beside a runpath.
        runpath: The search path for them alone.
        interpreter: The loader that the kernel starts for it.
        filtees: The libraries that replace its definitions (DT_FILTER, DT_AUXILIARY), in their order: the name, and
            whether the library must exist, as with DT_FILTER.
        flags: DT_FLAGS.
        flags_1: DT_FLAGS_1.
        is_symbolic: Whether its symbols are looked up in itself first.
        is_dynamic: Whether it has a dynamic section.
    """

    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    interpreter: str | None
    filtees: tuple[tuple[str, bool], ...]
    flags: int
    flags_1: int
    is_symbolic: bool
    is_dynamic: bool


def read_linkage(image: Image) -> Linkage:
    """Read the linkage of a file; without a dynamic section it needs nothing."""
    segment = image.segment(PT_DYNAMIC)
    if segment is not None and segment.file_bytes > _MOST_DYNAMIC_BYTES:
        raise InputError(image.file, f"a dynamic section of {segment.file_bytes} bytes is too large", segment.offset)
    needed: list[int] = []
    filtees: list[tuple[int, bool]] = []
    dynamic = read_dynamic(image)
    for tag, value in dynamic.entries:
        if tag == DT_NEEDED:
            needed.append(value)
        elif tag in {DT_AUXILIARY, DT_FILTER}:
            filtees.append((value, tag == DT_FILTER))
    flags, flags_1 = dynamic.get(DT_FLAGS) or 0, dynamic.get(DT_FLAGS_1) or 0
    return Linkage(
        soname=_name(dynamic, DT_SONAME),
        needed=tuple([dynamic.names.at(value) for value in needed]),
        rpath=_name(dynamic, DT_RPATH),
        runpath=_name(dynamic, DT_RUNPATH),
        interpreter=_interpreter(image),
        filtees=tuple([(dynamic.names.at(value), must_exist) for value, must_exist in filtees]),
        flags=flags,
        flags_1=flags_1,
        is_symbolic=dynamic.get(DT_SYMBOLIC) is not None or bool(flags & DF_SYMBOLIC),
        is_dynamic=segment is not None,
    )


def _name(dynamic: Dynamic, tag: int) -> str | None:
    place = dynamic.get(tag)
    return None if place is None else dynamic.names.at(place)


def _interpreter(image: Image) -> str | None:
    segment = image.segment(PT_INTERP)
    if segment is None:
        return None
    raw = bytes(image.bytes_at(segment.offset, min(segment.file_bytes, _MOST_INTERPRETER_BYTES), "the interpreter"))
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
