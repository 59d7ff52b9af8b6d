"""Build a small system below a directory: libraries, a loader, links, texts."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from footprint.loader.link_map import LinkMap, link
from footprint.loader.system import System
from footprint.loader.target import Environment
from tests.elfwriter import (
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    RO,
    RW,
    Dyn,
    ElfFile,
    Order,
    Section,
    write,
)

GLIBC = "/lib64/ld-linux-x86-64.so.2"
MULTIARCH = ("/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib/", "/usr/lib/")


class Kind(TypedDict, total=False):
    """For which machine a file is, and what it is."""

    bits: Literal[32, 64]
    order: Order
    machine: int
    type: int


class Facts(Kind, total=False):
    """How a file is linked."""

    soname: str
    rpath: str
    runpath: str
    more: Sequence[Dyn]


class Wishes(TypedDict, total=False):
    """What the caller decides: the fields of an Environment."""

    library_path: str
    preload: str
    cwd: str
    hwcaps: str
    is_secure: bool
    caller: tuple[int, int]
    uses_cache: bool


def linked(
    needed: Iterable[str] = (),
    *,
    soname: str | None = None,
    rpath: str | None = None,
    runpath: str | None = None,
    interpreter: str | None = None,
    more: Sequence[Dyn] = (),
    texts: bytes = b"",
    **kind: Unpack[Kind],
) -> bytes:
    """Return an ELF file that says how it is linked; `texts` are what else stands in it."""
    tagged = [(DT_SONAME, soname), (DT_RPATH, rpath), (DT_RUNPATH, runpath)]
    dynamic = [Dyn(DT_NEEDED, name) for name in needed] + [Dyn(tag, text) for tag, text in tagged if text is not None]
    sections = [Section(".data", flags=RW, data=bytes(8)), Section(".rodata", flags=RO, data=texts or b"\0")]
    if interpreter is not None:
        sections.append(Section(".interp", flags=RO, data=interpreter.encode() + b"\0"))
    return write(ElfFile(sections=sections, dynamic=[*dynamic, *more] or [Dyn(DT_SONAME, "")], **kind))


@dataclass(frozen=True)
class Sysroot:
    """A root directory; paths are as seen from it."""

    root: Path

    def file(self, path: str, data: bytes) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def symlink(self, path: str, target: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def library(self, path: str, *needed: str, **facts: Unpack[Facts]) -> None:
        self.file(path, linked(needed, **facts))

    def program(
        self, *needed: str, path: str = "/bin/program", interpreter: str = GLIBC, **facts: Unpack[Facts]
    ) -> None:
        self.file(path, linked(needed, interpreter=interpreter, **facts))

    def loader(
        self,
        directories: Sequence[str] = MULTIARCH,
        *,
        release: str = "2.41",
        path: str = GLIBC,
        before: bytes = b"\0",
        **kind: Unpack[Kind],
    ) -> None:
        """Write a loader; `before` are the bytes in front of its directories."""
        texts = "".join(f"{each}\0" for each in (*directories, f"stable release version {release}.\n")).encode()
        self.file(path, linked(soname=path.rpartition("/")[2], texts=before + texts, **kind))

    def link(self, path: str = "/bin/program", **wishes: Unpack[Wishes]) -> LinkMap:
        """Find what a program consists of, on a processor without any extension."""
        wishes.setdefault("hwcaps", "baseline")
        return link(System(str(self.root)), path, Environment(**wishes))

    def paths(self, path: str = "/bin/program", **wishes: Unpack[Wishes]) -> list[str]:
        """Return the paths of all objects behind the program."""
        return [each.path for each in self.link(path, **wishes).objects[1:]]


def loader_cache(
    entries: Sequence[tuple[str, str, int] | tuple[str, str, int, int]],
    levels: Sequence[str] = (),
    *,
    order: str = "<",
    flags: int | None = None,
) -> bytes:
    """Return a cache of the new layout: of each entry the name, the path, the flags, and hwcap (0)."""
    start, strings, places = 48 + 24 * len(entries), b"", {}
    for text in [*(text for entry in entries for text in entry[:2]), *levels]:
        places[text] = start + len(strings)
        strings += text.encode("utf-8", "surrogateescape") + b"\0"
    extensions = start + len(strings) if levels else 0
    flags = (2 if order == "<" else 3) if flags is None else flags
    header = struct.pack(order + "20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(entries), len(strings), flags, extensions)
    body = b"".join(
        struct.pack(order + "IIIIQ", entry[2], places[entry[0]], places[entry[1]], 0, entry[3] if len(entry) > 3 else 0)
        for entry in entries
    )
    if not levels:
        return header + body + strings
    table = struct.pack(f"{order}{len(levels)}I", *(places[level] for level in levels))
    heads = struct.pack(order + "6I", 0xEAA42174, 1, 1, 0, extensions + 24, len(table))
    return header + body + strings + heads + table


def old_loader_cache(entries: Sequence[tuple[str, str, int]], new: bytes = b"") -> bytes:
    """Return a cache of the old layout, with one of the new layout behind it where that is given."""
    end = 16 + 12 * len(entries)
    strings, places = b"", {}
    for text in [text for entry in entries for text in entry[:2]]:
        places[text] = len(strings)
        strings += text.encode() + b"\0"
    body = b"".join(struct.pack("<III", flags, places[name], places[path]) for name, path, flags in entries)
    head = struct.pack("<12sI", b"ld.so-1.7.0", len(entries))
    return head + body + (bytes(-end % 8) + new if new else strings)
