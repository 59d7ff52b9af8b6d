"""The table of fuzz targets: of each reader of foreign input its name, its call, and the errors that it may raise.

A read that raises anything else, or runs for long, or takes much memory, is a defect. `fuzz/seeds.py` has the inputs
that each begins with, `fuzz/mutators.py` the ways in which they are damaged.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from contextvars import copy_context
from functools import cache, partial
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import footprint
from footprint.dwarf.code_lines import code_lines
from footprint.dwarf.declarations import declarations_by_name, read_declarations
from footprint.dwarf.places import VariablePlaces
from footprint.dwarf.units import DebugInfo
from footprint.elf.archive import read_members
from footprint.elf.constructors import own_constructors, own_destructors
from footprint.elf.contents import read_contents
from footprint.elf.dynamic import read_linkage
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.functions import read_functions
from footprint.elf.image import Image, read_image
from footprint.elf.linker_map import linked_libraries, read_linker_map
from footprint.elf.names import shown_name
from footprint.elf.notes import (
    DebugSearch,
    alternate_link,
    build_id,
    build_id_of_start,
    debug_link,
    mini_debug_image,
    optional_libraries,
)
from footprint.elf.relocations import relocated_pages, relocated_vaddrs, relocated_words, relr_pages, static_relocations
from footprint.elf.statics import read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError, InputError
from footprint.formats.audit_json import audit_json
from footprint.heap.formats import FORMATS, read_profile
from footprint.loader.link_map import link
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.process.capture import read_capture, read_findings_of_capture
from footprint.process.control_groups import parse_hierarchies, parse_membership
from footprint.process.descriptions import OpenFileKind, content_of_fdinfo, watches_of_fdinfo
from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.snapshot import read_texts
from footprint.process.status import parse_stat, parse_status
from footprint.process.text_capture import read_text_capture
from footprint.sources.images import container_images
from footprint.sources.package_files import package_tree
from footprint.verbs.commands import command_of, has_command, parameters_of, read_words

__all__ = ("FAMILIES", "FILES", "TARGETS", "Target")

FILES: Final = Path(__file__).resolve().parent / "files"
"""Sound files, beside which a target puts its damaged one."""
_PROGRAM: Final = FILES / "split.so"
_NAME: Final = "the input"
_PAGE_BYTES: Final = 4096


class Target(NamedTuple):
    """A reader to fuzz.

    Attributes:
        name: Its name; its seeds and kept findings are in folders of that name.
        read: Reads one input, as the verbs do.
        errors: What it may raise.
        mutator: How its inputs are damaged, besides at random: `elf`, `text`, `json`, `json_lines`, `zip` or `bytes`.
    """

    name: str
    read: Callable[[bytes], object]
    errors: type[FootprintError] = InputError
    mutator: str = "text"


@cache
def _folder() -> Path:
    """Return a folder for the inputs of targets that read files, in memory where the system has such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 # a folder of its own there
    folder = tempfile.mkdtemp(prefix="footprint-fuzz-", dir=place)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(FILES / "system", Path(folder) / "system")
    return Path(folder)


@cache
def _path(name: str) -> str:
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)


def _file(data: bytes, name: str = "input") -> str:
    path = _path(name)
    with open(path, "wb") as file:
        file.write(data)
    return path


@cache
def _sound_file(name: str) -> str:
    """Copy a sound file to the folder of the inputs, once."""
    return _file((FILES / name).read_bytes(), name)


def _each(calls: Iterable[Callable[[], object]]) -> None:
    """Call all of them: what one refuses is still read by the next."""
    for call in calls:
        with suppress(InputError):
            call()


@cache
def _saved_audit() -> str:
    """Save the audit of the sound program, once; to read it takes a fifth of the time of an audit."""
    found = footprint.audit(str(_PROGRAM), has_findings=True, is_reproducible=True)
    return _file(audit_json(found, footprint.__version__).encode(), "audit.json")


@cache
def _parsed(words: tuple[str, ...]) -> Callable[[], object]:
    """Read the words of a command once: only the input changes, not its path."""
    verb, *rest = words
    command = command_of(verb)
    values = read_words(parameters_of(command), rest, is_interspersed=not has_command(verb))
    assert values is not None, words
    return partial(command, **values)


def _run(data: bytes, commands: Sequence[str], name: str = "input") -> None:
    """Run the command on an input, without its output: one of these, which the input itself decides."""
    words = commands[crc32(data) % len(commands)].split()
    path = _file(data, f"system/{name}")
    given = {"INPUT": path, "/INPUT": f"/{name}", "SYSTEM": _path("system"), "PROGRAM": str(_PROGRAM)}
    if "AUDIT" in words:
        given["AUDIT"] = _saved_audit()
    call = _parsed(tuple(given.get(word, word) for word in words))
    with redirect_stdout(TextIOWrapper(BytesIO(), "utf-8")), redirect_stderr(StringIO()):
        code = call()
    assert code is None or isinstance(code, int)
    assert code is None or 0 <= code < 5, code


# --- ELF and debug information ----------------------------------------------------------------------------------------

_OF_IMAGES: Final[tuple[Callable[[Image], object], ...]] = (
    read_dynamic_symbols,
    build_id,
    optional_libraries,
    relocated_vaddrs,
    partial(relocated_pages, page_bytes=_PAGE_BYTES),
    partial(relr_pages, page_bytes=_PAGE_BYTES),
    lambda image: list(static_relocations(image)),
    relocated_words,
    read_linkage,
    own_constructors,
    own_destructors,
    read_statics,
    read_functions,
    debug_link,
    alternate_link,
    mini_debug_image,
)


def _read_elf(data: bytes) -> None:
    image = read_image(data, _NAME)
    _each(partial(call, image) for call in (_check_contents, *_OF_IMAGES))


def _check_contents(image: Image) -> None:
    for section in read_contents(image).sections:
        assert section.ranges.end == section.size_bytes == section.named_bytes + sum(section.residue_bytes.values())


_OF_PROGRAMS: Final = (
    "symbols --source INPUT",
    "symbols --by file --format json INPUT",
    "libraries --root SYSTEM /INPUT",
    "libraries --root SYSTEM --tree /INPUT",
    "libraries --root SYSTEM --format dot /INPUT",
    "duplicates INPUT",
    "audit --root SYSTEM --findings -v /INPUT",
    "audit --root SYSTEM --findings --html - /INPUT",
    "audit --root SYSTEM --by symbol --format csv /INPUT",
    "audit --root SYSTEM -n 7 /INPUT",
)


def _variables(image: Image) -> tuple[Symbol, ...]:
    return tuple(variable for section in read_contents(image).sections for variable in section.variables)


def _read_dwarf(data: bytes) -> None:
    image = read_image(data, _NAME)
    variables = _variables(image)
    places = VariablePlaces(image)
    wanted = [places.of(variable) for variable in variables]
    _each(
        (
            partial(read_declarations, image, wanted, with_functions=True),
            lambda: declarations_by_name(DebugInfo(image), [variable.name for variable in variables]),
            lambda: code_lines(image, read_functions(image).starts),
        )
    )


def _read_beside(data: bytes, sound: str, name: str) -> None:
    """Read a sound file with a damaged one beside it."""
    _file(data, name)
    assert footprint.symbols(_sound_file(sound), source=True, debug=DebugSearch((str(_folder()),))).files


def _read_archive(data: bytes) -> None:
    for member in read_members(data, _NAME):
        with suppress(InputError):
            read_contents(read_image(member.data or b"", member.name))
    _run(data, ("symbols --source INPUT", "symbols --by file INPUT"))


def _read_linker_map(data: bytes) -> None:
    _each((partial(read_linker_map, data, _NAME), partial(linked_libraries, data, _NAME)))


# --- the loader -------------------------------------------------------------------------------------------------------


def _read_loader(data: bytes, name: str) -> None:
    """Find the libraries of a program whose system has this cache, or this configuration."""
    root = _folder() / name.replace("/", "-")
    if not root.exists():
        shutil.copytree(FILES / "system", root)
    place = root / name
    place.write_bytes(data)
    with suppress(FootprintError):
        link(System(str(root)), "/bin/program", Environment(hwcaps="baseline"))


def _read_container_image(data: bytes) -> None:
    """Read the images of an archive; a header of tar has a checksum, which is put right."""
    checked = bytearray(data)
    for at in range(0, len(checked) - 511, 512):
        if checked[at + 257 : at + 262] == b"ustar":
            checked[at + 148 : at + 156] = b"%06o\0 " % (
                sum(checked[at : at + 148] + checked[at + 156 : at + 512]) + 256
            )
    path = _file(bytes(checked), "image.tar")

    def read() -> None:
        for image in container_images(path, []):
            for found, _ in image.tree.elf_files():
                image.tree.data(found)

    copy_context().run(read)


def _read_package(data: bytes) -> None:
    """Read a package, as what its first bytes say that it is."""
    tree = package_tree(_file(data, "package.whl")).tree
    for found, _ in tree.elf_files():
        tree.data(found)


# --- processes --------------------------------------------------------------------------------------------------------


_OF_PROCESSES: Final = (
    "audit --root SYSTEM INPUT",
    "audit --root SYSTEM --by symbol -v INPUT",
    "audit --root SYSTEM --format json INPUT",
    "audit --root SYSTEM --html - INPUT",
    "audit --root SYSTEM --by mapping INPUT",
    "audit --root SYSTEM -n 100 INPUT",
    "audit --root SYSTEM --memory 1GiB INPUT",
    "diff --root SYSTEM INPUT INPUT",
)


def _read_memory_text(data: bytes) -> None:
    """Read a text of `maps`, `smaps`, `smaps_rollup` or pmap; audit it, with the files that it names."""
    with suppress(InputError):
        read_texts(data, _NAME)
    _run(data, _OF_PROCESSES)


def _read_capture(data: bytes) -> None:
    with suppress(InputError):
        read_capture(data, _NAME)
        read_findings_of_capture(data, _NAME)
    _run(data, _OF_PROCESSES)


def _read_text_capture(data: bytes) -> None:
    with suppress(InputError):
        read_text_capture(data, _NAME, build_id_of_start)
    _run(data, _OF_PROCESSES)


def _read_kernel_texts(data: bytes) -> None:
    """Read what other files of /proc say of a process."""
    parse_status(data)
    for line in data.split(b"\n"):
        parse_stat(line)
    text = data.decode(errors="surrogateescape")
    parse_hierarchies(text)
    parse_membership(text)
    content_of_fdinfo(data)
    for kind in OpenFileKind:
        watches_of_fdinfo(kind, data)


class _Memory:
    """The memory of a process: its pages by number."""

    def __init__(self, data: bytes) -> None:
        size = 8 + _PAGE_BYTES
        self.pages = {
            int.from_bytes(data[at : at + 8], "little") >> 12: data[at + 8 : at + size]
            for at in range(0, len(data) - size + 1, size)
        }

    def read(self, addr: int, size_bytes: int) -> bytes:
        found = bytearray()
        number = addr // _PAGE_BYTES
        while len(found) < size_bytes + addr % _PAGE_BYTES and number in self.pages:
            found += self.pages[number]
            number += 1
        return bytes(found[addr % _PAGE_BYTES : addr % _PAGE_BYTES + size_bytes])

    def skip(self, addr: int, end_addr: int) -> int:
        there = [page << 12 for page in self.pages if addr < (page + 1) << 12 and page << 12 < end_addr]
        return max(addr, min(there)) if there else end_addr


def _read_process_heap(data: bytes) -> None:
    """Read the heap of a process from pages that are preceded by their addresses; the first page is that of libc."""
    memory = _Memory(data)
    if not memory.pages:
        return
    libc_addr = next(iter(memory.pages)) << 12
    for word_bytes in (8, 4):
        read_glibc_heap(
            memory,
            word_bytes,
            [(libc_addr, libc_addr + _PAGE_BYTES)],
            [(0x7F2000000000, 0x7F2000000000 + 64 * _PAGE_BYTES)],
            page_bytes=_PAGE_BYTES,
            most_chunks=1000,
        )


# --- what footprint and its users keep --------------------------------------------------------------------------------


_OF_AUDITS: Final = (
    "audit INPUT",
    "audit --format sarif INPUT",
    "audit --html - INPUT",
    "audit --by symbol --format csv INPUT",
    "audit -n 3 INPUT",
    "diff INPUT INPUT",
)
_OF_SERIES: Final = (
    "watch --replay INPUT",
    "watch --json --replay INPUT",
    "audit INPUT",
    "audit -n 3 INPUT",
    "diff INPUT INPUT",
)
_OF_BUDGETS: Final = (
    "check --config INPUT AUDIT",
    "check --format junit --config INPUT AUDIT",
    "check --config INPUT PROGRAM",
)
_OF_HISTORIES: Final = ("trend --history INPUT", "trend --format csv --history INPUT", "trend --last 1 --history INPUT")


def _read_names(data: bytes) -> None:
    for line in data.decode(errors="surrogateescape").split("\n"):
        shown_name(line)


_OF_PROFILES: Final = (
    "heap --root SYSTEM INPUT",
    "heap --root SYSTEM --by tree INPUT",
    "heap --root SYSTEM --by callers -v INPUT",
    "heap --root SYSTEM --format json INPUT",
    "heap --root SYSTEM --format pprof INPUT",
    "heap --root SYSTEM --html - INPUT",
)


def _read_profile(data: bytes) -> None:
    with suppress(InputError):
        read_profile(data, _NAME)
    _run(data, _OF_PROFILES)


_HEAP_MUTATORS: Final = {"DHAT": "json", "V8": "json", "pprof": "bytes"}

FAMILIES: Final = {
    "names": (Target("names", _read_names),),
    "archives": (
        Target("archive", _read_archive, FootprintError, "elf"),
        Target("container_image", _read_container_image, FootprintError, mutator="bytes"),
        Target("package", _read_package, FootprintError, mutator="bytes"),
    ),
    "DWARF": (
        Target("dwarf", _read_dwarf, mutator="elf"),
        Target("dwarf_split", partial(_read_beside, sound="split.so", name="split.dwo"), mutator="elf"),
        Target("dwarf_package", partial(_read_beside, sound="split.so", name="split.so.dwp"), mutator="elf"),
        Target("dwarf_dwz", partial(_read_beside, sound="dwz.so", name="dwz.sup"), mutator="elf"),
        Target(
            "debug_file",
            partial(
                _read_beside, sound="stripped.so", name=".build-id/a0/a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3.debug"
            ),
            mutator="elf",
        ),
    ),
    "ELF": (
        Target("elf", _read_elf, mutator="elf"),
        Target("program", partial(_run, commands=_OF_PROGRAMS), FootprintError, "elf"),
        Target("linker_map", _read_linker_map),
    ),
    "captures and saved audits": (
        Target("capture", _read_capture, FootprintError, "zip"),
        Target("text_capture", _read_text_capture, FootprintError),
        Target("saved_audit", partial(_run, commands=_OF_AUDITS, name="input.json"), FootprintError, "json"),
        Target("series", partial(_run, commands=_OF_SERIES, name="input.fps"), FootprintError, "json_lines"),
    ),
    "configuration": (
        Target("budgets", partial(_run, commands=_OF_BUDGETS, name="footprint.toml"), FootprintError),
        Target("history", partial(_run, commands=_OF_HISTORIES), FootprintError, "bytes"),
    ),
    "kernel texts": (
        Target("kernel_texts", _read_kernel_texts),
        Target("process_heap", _read_process_heap, mutator="bytes"),
        Target("maps", _read_memory_text, FootprintError),
        Target("smaps", _read_memory_text, FootprintError),
        Target("pmap", _read_memory_text, FootprintError),
    ),
    "profiles": tuple(
        Target(f"heap_{one.name.lower()}", _read_profile, FootprintError, _HEAP_MUTATORS.get(one.name, "text"))
        for one in FORMATS
    ),
    "loader files": (
        Target("loader_cache", partial(_read_loader, name="etc/ld.so.cache"), mutator="bytes"),
        Target("loader_configuration", partial(_read_loader, name="etc/ld.so.conf")),
    ),
}
"""The targets by the family of readers that they belong to; the quick ones come first."""

TARGETS: Final = {target.name: target for family in FAMILIES.values() for target in family}
"""All targets by name."""
