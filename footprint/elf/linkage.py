"""The linkage of an ELF file: the libraries that it needs, where the loader searches for them, and how it binds.

Source: System V ABI, chapter 5 (Dynamic Linking); elf.h of glibc for DT_FLAGS_1, DT_AUXILIARY and DT_FILTER.
"""

from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import Dynamic, read_dynamic
from footprint.elf.image import Image
from footprint.errors import InputError
from footprint.members import dataclass

# The largest programs need some hundred libraries; a larger dynamic section is damage.
_MOST_DYNAMIC_BYTES: Final = 1 << 20
_MOST_INTERPRETER_BYTES: Final = 4096
_HASH_STYLES: Final = {(False, False): "none", (False, True): "gnu", (True, False): "sysv", (True, True): "both"}


@dataclass(frozen=True)
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
        flags_1: DT_FLAGS_1.
        binds_now: Whether the loader binds its calls at start (DT_BIND_NOW, DF_BIND_NOW, DF_1_NOW).
        is_symbolic: Whether its symbols are looked up in itself first.
        is_dynamic: Whether it has a dynamic section.
        has_relr: Whether it has relative relocations in packed form (DT_RELR).
        auditors: The libraries that watch the loader for it (DT_AUDIT, then DT_DEPAUDIT), parted by colons.
        hash_style: What its symbols are found by, in the linker's words: `gnu`, `sysv` (DT_HASH), `both` or `none`.
    """

    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    interpreter: str | None
    filtees: tuple[tuple[str, bool], ...]
    flags_1: int
    binds_now: bool
    is_symbolic: bool
    is_dynamic: bool
    has_relr: bool
    auditors: tuple[str, ...]
    hash_style: str


def read_linkage(image: Image) -> Linkage:
    """Read the linkage of a file; without a dynamic section it needs nothing."""
    segment = image.segment(abi.PT_DYNAMIC)
    if segment is not None and segment.file_bytes > _MOST_DYNAMIC_BYTES:
        raise InputError(image.file, f"a dynamic section of {segment.file_bytes} bytes is too large", segment.offset)
    needed: list[int] = []
    filtees: list[tuple[int, bool]] = []
    dynamic = read_dynamic(image)
    for tag, value in dynamic.entries:
        if tag == abi.DT_NEEDED:
            needed.append(value)
        elif tag in {abi.DT_AUXILIARY, abi.DT_FILTER}:
            filtees.append((value, tag == abi.DT_FILTER))
    flags, flags_1 = dynamic.get(abi.DT_FLAGS) or 0, dynamic.get(abi.DT_FLAGS_1) or 0
    return Linkage(
        soname=_name(dynamic, abi.DT_SONAME),
        needed=tuple([dynamic.names.at(value) for value in needed]),
        rpath=_name(dynamic, abi.DT_RPATH),
        runpath=_name(dynamic, abi.DT_RUNPATH),
        interpreter=_interpreter(image),
        filtees=tuple([(dynamic.names.at(value), must_exist) for value, must_exist in filtees]),
        flags_1=flags_1,
        binds_now=dynamic.get(abi.DT_BIND_NOW) is not None or bool(flags & abi.DF_BIND_NOW or flags_1 & abi.DF_1_NOW),
        is_symbolic=dynamic.get(abi.DT_SYMBOLIC) is not None or bool(flags & abi.DF_SYMBOLIC),
        is_dynamic=segment is not None,
        has_relr=bool(dynamic.get(abi.DT_RELR)),
        auditors=tuple([text for tag in (abi.DT_AUDIT, abi.DT_DEPAUDIT) if (text := _name(dynamic, tag))]),
        hash_style=_HASH_STYLES[bool(dynamic.get(abi.DT_HASH)), bool(dynamic.get(abi.DT_GNU_HASH))],
    )


def _name(dynamic: Dynamic, tag: int) -> str | None:
    place = dynamic.get(tag)
    return None if place is None else dynamic.names.at(place)


def _interpreter(image: Image) -> str | None:
    segment = image.segment(abi.PT_INTERP)
    if segment is None:
        return None
    raw = bytes(image.bytes_at(segment.offset, min(segment.file_bytes, _MOST_INTERPRETER_BYTES), "the interpreter"))
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
