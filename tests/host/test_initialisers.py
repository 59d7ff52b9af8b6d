"""What runs at start, by source file: its variables, and its heap against what mallinfo2 counts in the program."""

import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.elf.initialisers import SourceInitialiser
from footprint.findings.copies import Cost
from footprint.findings.variable_rules.duplicate_static import duplicate_findings

HEADER = """
#include <map>
#include <string>
static const std::string long_one("made at start, too long for the object itself");
static const std::string short_one("short");
static const std::map<std::string, int> numbers = {{"one", 1}, {"two with a long name indeed", 2}, {"three", 3}};
"""
SOURCE = """
int table_UNIT[100];
static int made_UNIT = table_UNIT[3] + 7;
int use_UNIT(int i) { return USE + made_UNIT; }
"""
USE = 'long_one[i] + short_one[0] + numbers.at("one")'
MAIN = """
#include <cstdio>
#include <malloc.h>
int use_a(int); int use_b(int); int use_c(int);
int main(int argc, char **argv) {
    // The library of C++ is loaded, and the heap begun, with and without the header.
    int *volatile kept = new int(argc), *volatile freed = new int(argc);
    // The lists of free blocks, too, which glibc 2.43 makes with the first block that is freed.
    delete freed;
    printf("%zu\\n", mallinfo2().uordblks);
    return argc > 5 ? use_a(argc) + use_b(argc) + use_c(argc) : 0;
}
"""


def built(folder: Path, options: str, *, header: bool, text: str = HEADER) -> Path:
    words = options.split()
    if header:
        (folder / "h.h").write_text(text, encoding="ascii")
        # gcc and clang look for what they compiled of a header by these names.
        suffix = "pch" if words[0] == "clang++" else "gch"
        subprocess.run([*words, "-x", "c++-header", "h.h", "-o", f"h.h.{suffix}"], cwd=folder, check=True)
    names = [f"{unit}.cc" for unit in "abc"]
    for unit, name in zip("abc", names, strict=True):
        (folder / name).write_text(
            SOURCE.replace("USE", USE if header else "i").replace("UNIT", unit), encoding="ascii"
        )
    subprocess.run([*words, *(["-include", "h.h"] if header else []), "-c", *names], cwd=folder, check=True)
    (folder / "m.cc").write_text(MAIN, encoding="ascii")
    objects = [f"{unit}.o" for unit in "abc"]
    subprocess.run([*words, "-o", "program", "m.cc", *objects], cwd=folder, check=True)
    return folder / "program"


def as_library(folder: Path, options: str) -> Path:
    """Link the same source files as a library, and the program to it."""
    words = [*options.split(), "-fPIC"]
    # clang refuses what it compiled of a header with other options.
    (folder / "h.h.pch").unlink(missing_ok=True)
    for unit in "abc":
        include = ["-include", "h.h"]
        subprocess.run([*words, *include, "-c", f"{unit}.cc", "-o", f"{unit}.pic.o"], cwd=folder, check=True)
    objects = [f"{unit}.pic.o" for unit in "abc"]
    subprocess.run([*words, "-shared", *objects, "-o", "libunits.so"], cwd=folder, check=True)
    link = ["m.cc", "-L.", "-lunits", "-Wl,-rpath,$ORIGIN", "-o", "linked"]
    subprocess.run([*words, *link], cwd=folder, check=True)
    return folder / "libunits.so"


def heap_bytes(program: Path) -> int:
    return int(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


def initialisers(program: Path) -> tuple[SourceInitialiser, ...]:
    (file,) = footprint.duplicates(str(program)).files
    return file.source_initialisers


@pytest.mark.parametrize("options", ["g++ -O2", "clang++ -O2", "g++ -O2 -fno-pie -no-pie", "g++ -Os"])
def test_the_heap_of_headers_is_what_the_program_takes_more_with_them(options: str, tmp_path: Path) -> None:
    without = heap_bytes(built(tmp_path, options, header=False))
    program = built(tmp_path, options, header=True)
    result = {initialiser.unit: initialiser for initialiser in initialisers(program)}
    assert result.keys() == {"a.cc", "b.cc", "c.cc"}
    # The string of 46 bytes in a chunk of 64, three nodes of 72 in chunks of 80, and a key of 27 in one of 48.
    assert [one.heap_bytes for one in result.values()] == [64 + 3 * 80 + 48] * 3
    # The list is made of temporary strings: the chunk of one stays in the cache of the thread.
    assert heap_bytes(program) - without == 3 * (64 + 3 * 80 + 48) + 48
    for one in result.values():
        names = {name.removesuffix("B5cxx11") for name in one.variables}
        assert {"_ZL8long_one", "_ZL9short_one", "_ZL7numbers"} <= names
        assert one.destructor_count == 3


@pytest.mark.parametrize("options", ["g++ -std=c++17 -O2", "clang++ -std=c++17 -O2", "g++ -std=c++17 -O2 -no-pie"])
def test_the_heap_of_inline_variables_is_taken_once(options: str, tmp_path: Path) -> None:
    """Each source file has code that makes them, and a guard that only the first one finds open."""
    without = heap_bytes(built(tmp_path, options, header=False))
    program = built(tmp_path, options, header=True, text=HEADER.replace("static const", "inline const"))
    taken = sum(initialiser.heap_bytes or 0 for initialiser in initialisers(program))
    assert taken == 64 + 3 * 80 + 48
    assert heap_bytes(program) - without == taken + 48


@pytest.mark.parametrize("options", ["g++ -g -O2", "clang++ -g -O2"])
def test_the_heap_of_all_copies_but_one_is_in_their_waste_also_in_a_library(options: str, tmp_path: Path) -> None:
    without = heap_bytes(built(tmp_path, options, header=False))
    program = built(tmp_path, options, header=True)
    library = as_library(tmp_path, options)
    for path, run in ((program, program), (library, tmp_path / "linked")):
        (file,) = footprint.duplicates(str(path)).files
        copies = {copy.name.removesuffix("B5cxx11"): copy for copy in file.copies}
        strings, maps = copies["_ZL8long_one"], copies["_ZL7numbers"]
        # All that the program takes for the three source files, but for the temporary string of one key.
        assert heap_bytes(run) - without - 48 == sum(one.heap_bytes for one in (strings, maps)) * 3 // 2
        assert (strings.heap_bytes, maps.heap_bytes) == (2 * 64, 2 * (3 * 80 + 48))
        assert maps.waste == {Cost.WHEN_TOUCHED: 2 * 48, Cost.AT_START: maps.heap_bytes}
        assert [one.heap_bytes for one in file.source_initialisers] == [64 + 3 * 80 + 48] * 3
        (finding,) = duplicate_findings([maps])
        assert finding.saving_bytes == maps.heap_bytes
        assert "at least 576 B of it is heap that their initialisers take" in finding.message


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_without_optimisation_the_parts_of_a_source_file_are_one(compiler: str, tmp_path: Path) -> None:
    found = {one.unit: one for one in initialisers(built(tmp_path, f"{compiler} -O0", header=True))}
    assert found.keys() == {"a.cc", "b.cc", "c.cc"}
    for one in found.values():
        assert one.destructor_count == 3
        assert (one.heap_bytes or 0) >= 64
        assert any(name.startswith("_ZL6made_") for name in one.variables)


def test_constructors_that_a_program_names_are_listed(tmp_path: Path) -> None:
    text = (
        "int table[64]; __attribute__((constructor)) void prepare(void) { table[3] = 1; } int main(void) { return 0; }"
    )
    (tmp_path / "x.c").write_text(text, encoding="ascii")
    subprocess.run(["gcc", "-O2", "-o", "x", "x.c"], cwd=tmp_path, check=True)
    (one,) = initialisers(tmp_path / "x")
    assert (one.name, one.variables, one.written_bytes, one.heap_bytes) == ("prepare", ("table",), 256, 0)
