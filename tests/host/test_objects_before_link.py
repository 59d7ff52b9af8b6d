"""Copies in objects and archives before the link are those of the linked program."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

import footprint

HEADER = """
static int counts[64] = {1, 2, 3};
static const int constants[64] = {4, 5, 6};
static const char *const names[8] = {"red", "green", "blue"};
static int zeros[64];
int common_to_all[64];
"""
SOURCE = """
#include "h.h"
int use_UNIT(int i) { counts[i]++; zeros[i]++; return constants[i] + *names[i & 7] + counts[0] + zeros[i + 1]; }
const void *keep_UNIT[] = {counts, constants, names, zeros};
"""
MAIN = """
int use_a(int); int use_b(int); int use_c(int);
int main(int c, char **v) { return use_a(c) + use_b(c) + use_c(c); }
"""
UNITS = ("a", "b", "c")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "options", ["-O0", "-O2 -g", "-O2 -fdata-sections -ffunction-sections", "-Os -fno-pie -no-pie"]
)
def test_objects_have_the_copies_of_the_program(compiler: str, options: str, tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text(HEADER, encoding="ascii")
    for unit in UNITS:
        (tmp_path / f"{unit}.c").write_text(SOURCE.replace("UNIT", unit), encoding="ascii")
    (tmp_path / "main.c").write_text(MAIN, encoding="ascii")
    words = [compiler, *options.split(), "-fcommon"]
    names = [*UNITS, "main"]
    for name in names:
        subprocess.run([*words, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    objects = [f"{name}.o" for name in names]
    subprocess.run([*words, "-o", "program", *objects], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", "whole.a", *objects], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcT", "thin.a", *objects], cwd=tmp_path, check=True)
    linked = copies(tmp_path, "program")
    assert linked
    assert linked.keys() == {("counts", 256, 3), ("constants", 256, 3), ("names", 64, 3), ("zeros", 256, 3)}
    for targets in (objects, ["whole.a"], ["thin.a"]):
        assert copies(tmp_path, *targets) == linked


def copies(folder: Path, *targets: str) -> Counter[tuple[str, int, int]]:
    found = footprint.duplicates(*[str(folder / target) for target in targets])
    return Counter((copy.name, copy.size_bytes, copy.copy_count) for file in found.files for copy in file.copies)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_tables_of_functions_are_proof_only_where_these_use_the_same_things(compiler: str, tmp_path: Path) -> None:
    functions = {
        "called": "int NAME(int); static int f_called(int i) { return NAME(i) + 1; }",
        "counted": "static __thread int count; static int f_counted(int i) { return i + count++; }",
        "alike": "static int f_alike(int i) { return i * 3; }",
    }
    header = "\n".join(
        f"{text}\nstatic int (*const {name}[2])(int) = {{f_{name}, f_{name}}};" for name, text in functions.items()
    )
    (tmp_path / "tables.h").write_text(f"{header}\n")
    uses = " + ".join(f"{name}[i & 1](i)" for name in functions)
    for unit, defined in (("a", "first"), ("b", "second")):
        text = f'#define NAME {defined}\n#include "tables.h"\nint use_{unit}(int i) {{ return {uses}; }}\n'
        (tmp_path / f"{unit}.c").write_text(text)
    subprocess.run([compiler, "-g", "-O1", "-fPIC", "-c", "a.c", "b.c"], cwd=tmp_path, check=True)
    found = footprint.duplicates(str(tmp_path / "a.o"), str(tmp_path / "b.o")).files[0].copies
    assert {one.name: one.confidence.value for one in found} == {
        "called": "medium",
        "count": "medium",
        "counted": "medium",
        "alike": "proof",
    }
