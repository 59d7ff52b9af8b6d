"""What we read from the programs and libraries of this machine is what size, readelf, nm, pyelftools and LIEF read."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from footprint.cli import main
from footprint.elf.contents import Contents, SectionKind, read_contents
from footprint.elf.image import Image, read_image, starts_like_elf
from footprint.elf.names import is_tame, shown_name
from footprint.elf.symbols import read_symbol_table, section_bases
from footprint.system.files import open_input

FLAG_LETTERS = {1: "W", 2: "A", 4: "X", 0x400: "T"}
SAMPLE_COUNT = 30
UNION_COUNT = 20

# The section sizes of the node for which these figures were taken, and how many of their bytes have a name.
NODE_SIZES = {".data": 124_096, ".bss": 182_736, ".tbss": 248}
NODE_NAMED = {".data": 121_991, ".bss": 170_991, ".tbss": 234}


# --- the files of this machine ----------------------------------------------------------------------------------------


@cache
def libraries() -> tuple[str, ...]:
    """Name all ELF shared libraries of the folder where this system keeps them."""
    folders = [Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH")), Path("/usr/lib64"), Path("/usr/lib")]
    folder = next(each for each in folders if each.is_dir())
    files = [path for path in sorted(folder.glob("**/*.so*")) if path.is_file() and not path.is_symlink()]
    return tuple(str(file) for file in files if is_elf(file))


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return starts_like_elf(file.read(4))


@cache
def program(name: str) -> str:
    """Return the path of a program, or skip the test where it is not there, or a script."""
    found = sys.executable if name == "python3" else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    path = Path(found).resolve()
    if not is_elf(path):
        pytest.skip(f"{path} is no ELF file")
    return str(path)


@cache
def everything() -> tuple[str, ...]:
    """Name all libraries, and the programs that are there."""
    found = []
    for name in ("node", "python3", "gdb", "git"):
        path = sys.executable if name == "python3" else shutil.which(name)
        if path is not None and is_elf(Path(path).resolve()):
            found.append(str(Path(path).resolve()))
    return (*found, *libraries())


def spread(paths: tuple[str, ...], count: int) -> list[str]:
    """Choose so many of some paths, evenly spread, those of more than 8 MiB left out."""
    small = [path for path in paths if os.stat(path).st_size < 8 << 20]
    return small[:: max(1, len(small) // count)][:count]


@cache
def image(path: str) -> Image:
    return read_image(open_input(path), path)


@cache
def contents(path: str) -> Contents:
    return read_contents(image(path))


def run(*command: str) -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, errors="replace").stdout


# --- sections ---------------------------------------------------------------------------------------------------------


def sizes_by_size(paths: tuple[str, ...]) -> dict[str, list[tuple[str, int, int]]]:
    """Return (name, size, address) of each section as `size -A` prints them; a name may hold spaces."""
    result: dict[str, list[tuple[str, int, int]]] = {}
    current: list[tuple[str, int, int]] = []
    for line in run("size", "-A", *paths).splitlines():
        if line.endswith("  :"):
            current = result.setdefault(line.removesuffix("  :"), [])
        elif match := re.fullmatch(r"(\S.*?) +(\d+) +(\d+)", line):
            current.append((match[1], int(match[2]), int(match[3])))
    return result


def test_every_writable_section_of_every_library_has_the_size_that_size_prints() -> None:
    printed = sizes_by_size(everything())
    assert len(printed) == len(everything())
    for path in everything():
        ours = Counter((one.name, one.size_bytes, one.vaddr) for one in image(path).sections if one.is_writable)
        assert ours - Counter(printed[path]) == Counter(), path
        accounted = Counter((one.section.name, one.size_bytes, one.section.vaddr) for one in contents(path).sections)
        assert accounted == Counter({each: count for each, count in ours.items() if each[1]}), path


# [number] name type address offset size entry flags link info align
SECTION_LINE = re.compile(
    r"  \[ *(\d+)\] (.*?) *(\S+) +([0-9a-f]{8,16}) ([0-9a-f]{6,}) ([0-9a-f]{6,}) ([0-9a-f]{2,}) +([A-Za-z]*)"
    r" +(\d+) +(\d+) +(\d+)"
)


def sections_by_readelf(paths: tuple[str, ...]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the fields of each section header as `readelf -SW` prints them."""
    result: dict[str, list[tuple[Any, ...]]] = {}
    current: list[tuple[Any, ...]] = []
    for line in run("readelf", "-SW", *paths).splitlines():
        if line.startswith("File: "):
            current = result.setdefault(line.removeprefix("File: "), [])
        elif match := SECTION_LINE.fullmatch(line):
            number, name, _, vaddr, offset, size, entry, flags, link, info, align = match.groups()
            figures = int(vaddr, 16), int(offset, 16), int(size, 16), int(entry, 16), int(link), int(info), int(align)
            current.append((int(number), name, *figures, {*flags} & {*"WAXT"}))
    return result


def test_the_section_headers_of_every_library_are_those_that_readelf_prints() -> None:
    printed = sections_by_readelf(everything())
    assert len(printed) == len(everything())
    for path in everything():
        ours = [
            (
                *(section.index, section.name, section.vaddr, section.offset, section.size_bytes, section.entry_bytes),
                *(section.link, section.info, section.align),
                {letter for bit, letter in FLAG_LETTERS.items() if section.flags & bit},
            )
            for section in image(path).sections
        ]
        assert ours == printed[path], path


def relro_by_readelf(paths: tuple[str, ...]) -> dict[str, set[str]]:
    """Name the sections that lie wholly in PT_GNU_RELRO, as the second of the two lists of `readelf -lW` has them."""
    result: dict[str, set[str]] = {}
    for text in run("readelf", "-lW", *paths).split("\nFile: ")[1:]:
        path, _, rest = text.partition("\n")
        types = re.findall(r"^  ([A-Z_0-9]+|<unknown>:.*?) +0x[0-9a-f]+ 0x[0-9a-f]+ 0x", rest, re.MULTILINE)
        mapped = re.findall(r"^   (\d\d) +(.*?) *$", rest, re.MULTILINE)
        result[path] = {name for number, names in mapped if types[int(number)] == "GNU_RELRO" for name in names.split()}
    return result


def test_the_sections_that_become_read_only_are_those_that_readelf_maps_to_relro() -> None:
    printed = relro_by_readelf(everything())
    assert len(printed) == len(everything())
    assert any(printed.values())
    wrong = {}
    for path in everything():
        sections = [section for section in contents(path).sections if section.kind is not SectionKind.TLS]
        ours = {section.section.name for section in sections if section.kind is SectionKind.RELRO}
        theirs = printed[path] & {section.section.name for section in sections}
        if ours != theirs:
            wrong[path] = ours ^ theirs
    assert wrong == {}


# --- symbols ----------------------------------------------------------------------------------------------------------


def symbols_in_writable_sections(path: str) -> Counter[tuple[str, int, int]]:
    """Return (name, value, size) of each symbol in a writable or thread-local section, as we read them."""
    wanted = [(section.index, section) for section in image(path).sections if section.is_writable or section.is_tls]
    found = read_symbol_table(image(path)).variables(section_bases(image(path), wanted))
    return Counter((one.name, one.vaddr, one.size_bytes) for one in found)


def is_wanted(image: Image, number: Any) -> bool:  # noqa: ANN401 - what an oracle takes for a section number
    return (
        isinstance(number, int)
        and 0 < number < len(image.sections)
        and (image.sections[number].is_writable or image.sections[number].is_tls)
    )


def symbols_by_pyelftools(path: str) -> Counter[tuple[str, int, int]]:
    with Path(path).open("rb") as file:
        elf: Any = ELFFile(file)
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        return Counter(
            (each.name, each["st_value"], each["st_size"])
            for each in (table.iter_symbols() if table else ())
            if is_wanted(image(path), each["st_shndx"]) and each["st_info"]["type"] not in {"STT_SECTION", "STT_FILE"}
        )


def symbols_by_lief(path: str) -> Counter[tuple[str, int, int]]:
    lief: Any = pytest.importorskip("lief")
    binary, types = lief.ELF.parse(path), lief.ELF.Symbol.TYPE
    return Counter(
        (str(symtab_symbol.name), symtab_symbol.value, symtab_symbol.size)
        for symtab_symbol in (list(binary.symtab_symbols) or list(binary.dynamic_symbols))
        if is_wanted(image(path), symtab_symbol.shndx) and symtab_symbol.type not in {types.SECTION, types.FILE}
    )


@pytest.mark.parametrize("oracle", [symbols_by_pyelftools, symbols_by_lief], ids=["pyelftools", "lief"])
def test_the_symbols_in_writable_sections_are_those_that_another_reader_gives(oracle: Any) -> None:  # noqa: ANN401
    paths = spread(libraries(), SAMPLE_COUNT)
    seen = 0
    for path in paths:
        ours = symbols_in_writable_sections(path)
        seen += ours.total()
        assert ours == oracle(path), path
    assert seen > 0


def test_nm_prints_the_same_sizes_for_the_variables_of_node() -> None:
    path = program("node")
    mapped = [section for section in contents(path).sections if section.kind is not SectionKind.TLS]
    ours = {
        (one.section.vaddr + variable.offset, variable.size_bytes, name)
        for one in mapped
        for variable in one.variables
        if variable.size_bytes
        for name in (variable.name, *variable.aliases)
    }
    ranges = [range(one.section.vaddr, one.section.vaddr + one.size_bytes) for one in mapped]
    printed = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [a-zA-Z] (.*)$", run("nm", "-S", path), re.MULTILINE)
    lines = {(int(value, 16), int(size, 16), name) for value, size, name in printed}
    theirs = {line for line in lines if line[1] and any(line[0] in span for span in ranges)}
    assert ours == theirs
    if not ours:
        pytest.skip("this node has no symbols of variables")


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "file",
    [
        *("sample_binaries/arch_i386/variables.so", "sample_binaries/arch_powerpc/variables.so"),
        "tests/corpus/linker_maps/mold-32.so",
    ],
)
def test_text_and_json_have_the_variables_of_32_bit_files_with_the_sizes_that_nm_prints(
    file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(ROOT / file)
    assert main(["symbols", "--top", "0", "-v", path]) == 0
    rows = re.findall(r"^ +([\d,]+)  \S+ +(\S+)$", capfd.readouterr().out.partition("\nVariables\n")[2], re.MULTILINE)
    assert main(["symbols", "--json", path]) == 0
    listed = json.loads(capfd.readouterr().out)["symbols"]
    printed = re.findall(r"^[0-9a-f]{8} ([0-9a-f]{8}) [bBdDgGsSV] (.*)$", run("nm", "-S", path), re.MULTILINE)
    theirs = sorted((int(size, 16), name) for size, name in printed)
    assert len(theirs) >= 11
    assert sorted((one["size_bytes"], one["symbol"]) for one in listed if one["size_bytes"]) == theirs
    assert sorted((int(size.replace(",", "")), name) for size, name in rows) == theirs


def test_so_many_bytes_of_the_sections_of_node_have_a_name() -> None:
    found = {section.section.name: section for section in contents(program("node")).sections}
    sizes = {name: found[name].size_bytes if name in found else 0 for name in NODE_SIZES}
    if sizes != NODE_SIZES:
        pytest.skip(f"this node is another one: its sections have {sizes} bytes, not {NODE_SIZES}")
    assert {name: found[name].named_bytes for name in NODE_NAMED} == NODE_NAMED


def named_bytes_by_readelf(path: str) -> Counter[int]:
    """Count by section number the bytes that lie in the range of a symbol, from what `readelf` prints alone."""
    sections = {one[0]: one for one in sections_by_readelf((path, path))[path] if one[-1] >= {*"WA"} and one[4]}
    tls_vaddr = min((section[2] for section in sections.values() if "T" in section[-1]), default=0)
    tables = re.split(r"^Symbol table '(.*)' contains", run("readelf", "-sW", path), flags=re.MULTILINE)
    text = dict(zip(tables[1::2], tables[2::2], strict=True))
    line = re.compile(r"^ *\d+: ([0-9a-f]+) +(\w+) (\w+) +\w+ +\w+ .*? *(\d+) (?:\S.*)?$", re.MULTILINE)
    ranges: dict[int, list[tuple[int, int]]] = {number: [] for number in sections}
    for value, size, kind, number in line.findall(text.get(".symtab") or text.get(".dynsym") or ""):
        if int(number) in sections and kind not in {"SECTION", "FILE"}:
            start = int(value, 16) + (tls_vaddr if kind == "TLS" else 0)
            ranges[int(number)].append((start, start + int(size, 0)))
    named: Counter[int] = Counter()
    for number, span in ranges.items():
        at, end_of_section = sections[number][2], sections[number][2] + sections[number][4]
        for start, end in sorted(span):
            named[number] += max(0, min(end, end_of_section) - max(start, at))
            at = max(at, min(end, end_of_section))
    return +named


def test_the_named_bytes_of_a_section_are_the_union_of_the_ranges_of_its_symbols() -> None:
    node = [path for path in everything() if Path(path).name == "node"]
    for path in [*node, *spread(libraries(), UNION_COUNT)]:
        ours = Counter({section.section.index: section.named_bytes for section in contents(path).sections})
        assert +ours == named_bytes_by_readelf(path), path


def test_every_byte_of_every_library_has_an_owner_and_no_symbol_is_astray() -> None:
    strays = {path: contents(path).stray_count for path in everything() if contents(path).stray_count}
    assert strays == {}
    for path in everything():
        for one in contents(path).sections:
            assert one.named_bytes + sum(one.residue_bytes.values()) == one.size_bytes, (path, one.section.name)


def test_a_name_is_shown_as_it_is_only_where_it_would_expand_or_another_demangler_leaves_it_too() -> None:
    names = {
        variable.name
        for path in everything()
        for section in contents(path).sections
        for variable in section.variables
        if variable.name.startswith(("_Z", "_R"))
    }
    if not names:
        pytest.skip("no library here is written in C++ or Rust")
    # Names whose references expand beyond bounds are not demangled. Names in C may begin with `_Z` or `_R`, too.
    # The demangler of LLVM does not know `_Float32x` and its like (DF32x), which others do from binutils 2.41 on.
    names = {name for name in names if not re.search(r"DF\d+x", name)}
    as_they_are = sorted(name for name in names if shown_name(name) == name and is_tame(name))
    assert shown_by_cxxfilt(["_Zero", "_ZN1a1bE"]) == ["_Zero", "a::b"]
    assert shown_by_cxxfilt(as_they_are) == as_they_are


def shown_by_cxxfilt(names: list[str]) -> list[str]:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    text = "".join(f"{name}\n" for name in names)
    return subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
