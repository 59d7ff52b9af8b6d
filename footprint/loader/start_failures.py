"""Why a loader would refuse a program whose libraries are all there: versions, undefined symbols, relocations.

Source: elf/dl-version.c, elf/dl-lookup.c and sysdeps/*/dl-machine.h of glibc 2.36; ldso/dynlink.c and arch/*/reloc.h of
musl.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from footprint.elf.abi import EM_386, EM_AARCH64, EM_X86_64, relocation_types
from footprint.elf.dynsym import SymbolReference
from footprint.errors import Note
from footprint.loader.bindings import Bindings
from footprint.loader.link_map import LinkMap, places_by_name
from footprint.loader.target import Libc

_RELR_VERSION: Final = "GLIBC_ABI_DT_RELR"
_MOST_NAMED: Final = 3
# The types that a loader applies; it ends the program at any other one. Those of other machines were not tried.
_APPLIED_TYPES: Final = {
    (Libc.GLIBC, EM_X86_64): frozenset({0, 1, 2, 5, 6, 7, 8, 10, 16, 17, 18, 32, 33, 36, 37, 38}),
    (Libc.GLIBC, EM_386): frozenset({0, 1, 2, 5, 6, 7, 8, 14, 35, 36, 37, 38, 41, 42}),
    (Libc.GLIBC, EM_AARCH64): frozenset({0, 257, 258, *range(1024, 1033)}),
    (Libc.MUSL, EM_X86_64): frozenset({0, 1, 2, 5, 6, 7, 8, 16, 17, 18, 36}),
}


def start_failures(link_map: LinkMap, bindings: Bindings) -> tuple[Note, ...]:
    """Find what makes the loader end a program at its start, or at a call; missing libraries are not repeated."""
    if link_map.missing or bindings.notes or link_map.libc is Libc.OTHER:
        return ()
    failures = [] if link_map.libc is Libc.MUSL else [*_versions(link_map, bindings), *_relr(link_map, bindings)]
    failures += _rejected(link_map, bindings)
    # A library alone may leave symbols to its program.
    if link_map.objects[0].library.is_program:
        failures += _undefined(link_map, bindings)
    return tuple(failures)


def _versions(link_map: LinkMap, bindings: Bindings) -> Iterator[Note]:
    """Find versions that an object needs of another one, and that this one does not define."""
    objects = link_map.objects
    places = places_by_name(objects)
    places |= {need.name: need.place for linked in objects for need in linked.dependencies if need.place is not None}
    for linked, symbols in zip(objects, bindings.symbols, strict=True):
        lacking: dict[str, list[str]] = {}
        for version in symbols.versions.needed:
            place = places.get(version.file)
            defined = None if place is None else bindings.symbols[place].versions.defined
            # The loader only warns of a file without any versions.
            is_lacking = not defined if place is None else bool(defined) and version.name not in (defined or ())
            if is_lacking and not (version.is_weak and place is not None):
                lacking.setdefault(version.file, []).append(version.name)
        for file, names in lacking.items():
            is_there = file in places
            detail = f"{file} does not define version {_listed(names)}" if is_there else f"{file} is not loaded"
            yield Note("does-not-start", linked.path, f"it checks versions at its start, and {detail}")


def _relr(link_map: LinkMap, bindings: Bindings) -> Iterator[Note]:
    """Find objects with relative relocations (DT_RELR) that the C library refuses, or does not know."""
    libc = next((n for n, other in enumerate(link_map.objects) if other.library.linkage.soname == "libc.so.6"), None)
    if libc is None:
        return
    is_known = _RELR_VERSION in bindings.symbols[libc].versions.defined
    for linked, symbols in zip(link_map.objects, bindings.symbols, strict=True):
        linkage, needed = linked.library.linkage, symbols.versions.needed
        if not linkage.has_relr or any(version.name == _RELR_VERSION for version in needed):
            continue
        if not is_known:
            yield Note("does-not-start", linked.path, "it has RELR relocations, which glibc applies from 2.36 on")
        elif needed and any(name.startswith("libc.so.") for name in linkage.needed):
            detail = f"it has RELR relocations, and does not need version {_RELR_VERSION}: the loader refuses it"
            yield Note("does-not-start", linked.path, f"{detail}; link it with -Wl,-z,pack-relative-relocs")


def _rejected(link_map: LinkMap, bindings: Bindings) -> Iterator[Note]:
    """Find relocations of types that the loader does not apply; lazily it knows only calls in DT_JMPREL."""
    for linked, symbols in zip(link_map.objects, bindings.symbols, strict=True):
        machine = linked.library.kind.machine
        applied = _APPLIED_TYPES.get((link_map.libc, machine))
        if applied is None:
            continue
        rejected = symbols.relocation_types - applied
        types = relocation_types(machine)
        is_lazy = link_map.libc is Libc.GLIBC and not (link_map.binds_now or linked.library.linkage.binds_now)
        calls = symbols.jump_types - (types.jump_slot | types.irelative | types.tls_descriptor)
        if rejected or (is_lazy and calls):
            where = "" if rejected else " in its table of calls (DT_JMPREL)"
            numbers = _listed([f"{kind:#x}" for kind in sorted(rejected or calls)])
            detail = f"it has relocations of type {numbers}{where}, which the loader refuses"
            yield Note("does-not-start", linked.path, detail)


def _undefined(link_map: LinkMap, bindings: Bindings) -> Iterator[Note]:
    """Find references that no object provides, and that are not weak: what `ldd -r` prints."""
    is_eager = link_map.libc is Libc.MUSL or link_map.binds_now
    for linked, symbols, places in zip(link_map.objects, bindings.symbols, bindings.undefined, strict=True):
        references = [symbols.reference(place) for place in sorted(places)]
        lazy = [] if is_eager or linked.library.linkage.binds_now else [use for use in references if use.is_call]
        now = [use for use in references if use not in lazy]
        if now:
            yield Note("does-not-start", linked.path, f"no object defines {_names(now)}, which it refers to")
        if lazy:
            detail = f"no object defines {_names(lazy)}: the program ends where it calls that"
            yield Note("symbol-undefined", linked.path, detail)


def _names(references: Sequence[SymbolReference]) -> str:
    return _listed([f"{use.name}@{use.version.name}" if use.version else use.name for use in references])


def _listed(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    rest = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])} and {rest} more" if rest > 0 else ", ".join(names)
