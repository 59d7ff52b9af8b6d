"""Build libraries that need no file: of some symbols and relocations; and bind them."""

from collections.abc import Mapping, Sequence
from typing import Any

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.loader.bindings import Binder, Bindings
from footprint.loader.link_map import Linked, LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import Library
from footprint.loader.target import Libc
from tests.elfwriter import DT_SONAME, RO, RW, SHT_RELA, STT_FUNC, At, Dyn, ElfFile, Rel, Section, Sym, write


def made(
    name: str,
    *symbols: Sym,
    asks: Mapping[str, int] | None = None,
    more: Sequence[Dyn] = (),
    **fields: Any,  # noqa: ANN401 # of a file
) -> Library:
    """Return a library of some symbols, and of one relocation of a type for each name in `asks`."""
    relocations = [Rel(At(".data"), kind, asked, 0) for asked, kind in (asks or {}).items()]
    tables = [Section(".rela.dyn", SHT_RELA, RO, relocations)] if relocations else []
    sections = [*tables, Section(".data", flags=RW, data=bytes(64)), *fields.pop("sections", ())]
    raw = write(ElfFile(sections=sections, dynamic=[Dyn(DT_SONAME, name), *more], dynamic_symbols=symbols, **fields))
    image = read_image(raw, name)
    return Library(name, image, read_linkage(image), 0o755, None, lambda *_: image)  # type: ignore[arg-type] # it never changes


def defined(name: str, kind: int = STT_FUNC, **fields: Any) -> Sym:  # noqa: ANN401 # any field of a symbol
    return Sym(name, At(".data", 8), 8, kind, **fields)


def link_map(*libraries: Library, libc: Libc = Libc.GLIBC) -> LinkMap:
    objects = tuple(Linked(library.real_path, library, FoundBy.DEFAULT, None, ()) for library in libraries)
    return LinkMap(objects, (), None, None, libc, None, ())


def bind(*libraries: Library, libc: Libc = Libc.GLIBC) -> Bindings:
    return Binder().bind(link_map(*libraries, libc=libc))
