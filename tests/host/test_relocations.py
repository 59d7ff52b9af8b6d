"""The addresses that relocations write are those that readelf and pyelftools list, in the files of this machine."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from footprint.elf.image import read_image, starts_like_elf
from footprint.elf.relocations import relocated_vaddrs
from footprint.system.files import open_input

SAMPLES = Path(__file__).resolve().parents[2] / "sample_binaries"
LIBRARY_COUNT = 30


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return starts_like_elf(file.read(4))


@cache
def libraries() -> tuple[str, ...]:
    """Name libraries of this system from the whole alphabet, the C library and the loader among them."""
    folders = [Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH")), Path("/usr/lib64"), Path("/usr/lib")]
    folder = next(each for each in folders if each.is_dir())
    files = [path for path in sorted(folder.glob("*.so*")) if path.is_file() and not path.is_symlink()]
    found = [str(file) for file in files if is_elf(file)]
    step = max(1, len(found) // LIBRARY_COUNT)
    wanted = [name for name in found if re.search(r"/(libc|ld-linux[^/]*|libm|libstdc\+\+)\.so", name)]
    return tuple(dict.fromkeys([*found[::step][:LIBRARY_COUNT], *wanted]))


@cache
def files() -> tuple[str, ...]:
    """Name the files to compare: programs, libraries, the linked samples of all architectures."""
    programs = [
        shutil.which("node"),
        shutil.which("perl"),
        sys.executable,
        shutil.which("gdb"),
        shutil.which("go"),
        shutil.which("java"),
    ]
    resolved = [str(Path(path).resolve()) for path in programs if path]
    samples = [
        str(path)
        for path in sorted(SAMPLES.glob("*/*"))
        if path.is_file() and path.suffix not in {".o", ".a"} and is_elf(path)
    ]
    # Where the interpreter is a small program, its code is a library.
    library = Path(str(sysconfig.get_config_var("LIBDIR"))) / str(sysconfig.get_config_var("INSTSONAME"))
    more = [str(library.resolve())] if library.is_file() and is_elf(library) else []
    return tuple(path for path in [*resolved, *more, *samples, *libraries()] if is_elf(Path(path)))


def ours(path: str) -> list[int]:
    return sorted(relocated_vaddrs(read_image(open_input(path), path)))


def by_readelf(path: str) -> list[int]:
    """Read the offsets that `readelf -rW` lists, those of RELR among them; by the dynamic section (-D)."""

    def listed(options: str) -> str:
        command, environment = ["readelf", options, path], {**os.environ, "LC_ALL": "C"}
        return subprocess.run(command, capture_output=True, check=True, env=environment).stdout.decode(errors="replace")

    listing = listed("-rWD")
    # Old linkers leave DT_RELAENT out where all relocations are calls; later releases of readelf then list none.
    if "missing or corrupt dynamic tag" in listing:
        listing = listed("-rW")
    result: list[int] = []
    in_relr = False
    for line in listing.splitlines():
        if "elocation section" in line:
            in_relr = "'RELR'" in line or ".relr" in line
        elif in_relr:
            # An address a line; since 2.43 behind its index and its word, or behind blanks where it is of the same one.
            row = re.match(r"^(?:(?:\d+: +[0-9a-f]+)? +)?([0-9a-f]{8,16})(?: |$)", line)
            result += [int(row[1], 16)] if row else []
        elif row := re.match(r"^([0-9a-f]{8,16})  [0-9a-f]{8,16} ", line):
            result.append(int(row[1], 16))
    return sorted(result)


def by_pyelftools(path: str) -> list[int]:
    with open(path, "rb") as file:
        segment = next((s for s in ELFFile(file).iter_segments() if isinstance(s, DynamicSegment)), None)
        tables: Any = segment.get_relocation_tables() if segment else {}
        return sorted(int(each["r_offset"]) for table in tables.values() for each in table.iter_relocations())


def distinct(result: Iterable[int]) -> list[int]:
    return sorted(set(result))


@pytest.mark.parametrize("path", files(), ids=lambda path: Path(path).parent.name + "/" + Path(path).name)
def test_addresses_are_those_that_readelf_lists(path: str) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    assert distinct(ours(path)) == distinct(by_readelf(path))


# The large ones take pyelftools seconds each, and readelf has listed them.
@pytest.mark.parametrize(
    "path",
    [path for path in files() if Path(path).stat().st_size < 4 << 20],
    ids=lambda path: Path(path).parent.name + "/" + Path(path).name,
)
def test_addresses_are_those_that_pyelftools_reads(path: str) -> None:
    assert distinct(ours(path)) == distinct(by_pyelftools(path))


def test_among_the_files_compared_are_relocations_of_each_kind_that_linkers_here_write() -> None:
    kinds: set[str] = set()
    for path in files():
        with open(path, "rb") as file:
            dynamic = next((s for s in ELFFile(file).iter_segments() if isinstance(s, DynamicSegment)), None)
            kinds |= set(dynamic.get_relocation_tables()) if dynamic else set()
    assert kinds >= {"RELA", "JMPREL", "REL"}


@pytest.mark.parametrize("option", ["-z pack-relative-relocs", "-z nopack-relative-relocs"])
def test_a_table_of_pointers_is_relocated_whether_it_is_packed_or_not(option: str, tmp_path: Path) -> None:
    """300 pointers to themselves: 300 relocations, of 24 bytes each as RELA, or five bitmaps and an address as RELR."""
    if shutil.which("gcc") is None or shutil.which("readelf") is None:
        pytest.skip("gcc or readelf is not installed")
    source = tmp_path / "pointers.c"
    source.write_text("void *pointers[300] = {[0 ... 299] = (void *)pointers};\n", encoding="ascii")
    library = tmp_path / "pointers.so"
    link = f"-Wl,{option.replace(' ', ',')}"
    done = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-Bsymbolic", link, "-o", library, source], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this linker does not know {option}")
    listing = subprocess.run(["readelf", "-SW", library], capture_output=True, check=True).stdout
    if option == "-z pack-relative-relocs" and b".relr.dyn" not in listing:
        pytest.skip("this linker has not packed them")
    symbols = subprocess.run(["readelf", "-sW", library], capture_output=True, check=True).stdout.decode()
    place = re.search(r"^ *\d+: ([0-9a-f]+) +2400 OBJECT .* pointers$", symbols, re.MULTILINE)
    assert place is not None
    table = range(int(place[1], 16), int(place[1], 16) + 2400, 8)
    assert set(ours(str(library))) >= set(table)
    assert distinct(ours(str(library))) == distinct(by_readelf(str(library)))
