"""What code does with the address of a constant of a header: with each remedy the programs print what they printed.

`benchmarks/remedies.py uses` tries all compilers and options; these are two ways of them.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.model.finding import Confidence
from tests.host.address_uses import ALONE, kinds_for, program_of_kinds, program_of_uses
from tests.host.random_headers import COMPILERS, built, missing_tool, sure_of

PROGRAM_KINDS = 12


@pytest.mark.parametrize(
    ("compiler", "options", "is_cxx"),
    [
        ("gcc", "-O2", False),
        ("gcc", "-O2", True),
        ("clang", "-O1 -fno-pie -no-pie", False),
        ("clang", "-O1 -fno-pie -no-pie", True),
        ("gcc arm64", "-O2", False),
        ("gcc arm64", "-O2", True),
        ("gcc arm64", "-Os -fPIC", False),
        ("clang arm64", "-O0", False),
    ],
)
def test_no_remedy_changes_what_a_program_prints_that_uses_addresses(
    compiler: str, options: str, tmp_path: Path, *, is_cxx: bool
) -> None:
    if missing := missing_tool(compiler):
        pytest.skip(f"{missing} is not installed")
    sure_count = 0
    for first in range(0, len(kinds_for(compiler, is_cxx=is_cxx)), PROGRAM_KINDS):
        program = program_of_uses(compiler, options, first, PROGRAM_KINDS, is_cxx=is_cxx)
        before = built(program, tmp_path / f"before_{first}")
        remedies = sure_of(program, tmp_path / f"before_{first}" / "program")
        sure_count += len(remedies)
        if remedies:
            assert built(program, tmp_path / f"after_{first}", remedies) == before, [
                program.items[number].use for number, _ in remedies
            ]
    assert sure_count


@pytest.mark.parametrize("options", ["-O0", "-O1 -fno-pie -no-pie", "-O2", "-O2 -fPIC", "-Os"])
@pytest.mark.parametrize("compiler", ["gcc", "clang", "gcc arm64"])
def test_what_is_behind_a_copy_may_be_its_end_where_that_is_told(compiler: str, options: str, tmp_path: Path) -> None:
    if missing := missing_tool(compiler):
        pytest.skip(f"{missing} is not installed")
    for number, kind in enumerate(ALONE):
        program = program_of_kinds(compiler, options, [kind])
        before = built(program, tmp_path / f"before_{number}")
        remedies = sure_of(program, tmp_path / f"before_{number}" / "program")
        if remedies:
            assert built(program, tmp_path / f"after_{number}", remedies) == before, kind


TABLES = """
static const int first[8] = {100, 2, 3}, second[8] = {7, 8, 9};
extern const int *known;
static inline const int *chosen(int i) {
    switch (i & 3) {
    case 0: return first;
    case 1: return second;
    case 2: return first + 1;
    default: return second + 2;
    }
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_table_of_distances_leads_to_constants_without_their_addresses(compiler: str, tmp_path: Path) -> None:
    if missing := missing_tool(compiler):
        pytest.skip(f"{missing} is not installed")
    (tmp_path / "tables.h").write_text(TABLES)
    for number in range(2):
        use = (
            f"int use_{number}(int i) {{ const int *p = chosen(i); int r = p[1] + (p == known); known = p; return r; }}"
        )
        (tmp_path / f"{number}.c").write_text(f'#include "tables.h"\n{use}\n')
    main = "const int *known; int use_0(int), use_1(int); int main(int c, char **v) { return use_0(c) + use_1(c); }"
    (tmp_path / "main.c").write_text(main)
    words = [*COMPILERS[compiler][0], "-w", "-g", "-O2", "-fPIC", "0.c", "1.c", "main.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=120)
    found = footprint.duplicates(str(tmp_path / "program")).files[0].copies
    assert {one.name: one.confidence for one in found} == dict.fromkeys(("first", "second"), Confidence.MEDIUM)


WIDE = """
static int (*const table[2])(int);
static int of_text(int i) { return L"wide text TAIL"[i % 14]; }
static int of_choice(int i) {
    switch (i) {
    case 1: return 71;
    case 2: return 13;
    case 3: return 99;
    case 4: return 8;
    case 5: return U;
    default: return 0;
    }
}
static int of_array(int i) { const int t[40] = {100, 2, 3, [39] = U + 5}; return t[i % 40]; }
static int (*const table[2])(int) = {FUNCTION, FUNCTION};
"""


@pytest.mark.parametrize("function", ["of_text", "of_choice", "of_array"])
@pytest.mark.parametrize(("compiler", "level"), [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O0"), ("clang", "-O2")])
def test_what_has_no_symbol_is_compared_to_its_end(compiler: str, level: str, function: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    for number in range(2):
        text = WIDE.replace("FUNCTION", function).replace("TAIL", "ab"[number]).replace("U", str(number + 40))
        use = f"int use_{number}(int i); int use_{number}(int i) {{ return table[i & 1](i); }}\n"
        (tmp_path / "header.h").write_text(text)
        (tmp_path / f"{number}.c").write_text(f"{text}{use}")
    main = "int use_0(int), use_1(int); int main(int c, char **v) { return use_0(c) + use_1(c); }"
    (tmp_path / "main.c").write_text(main)
    words = [compiler, "-w", level, "0.c", "1.c", "main.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=120)
    found = footprint.duplicates(str(tmp_path / "program")).files[0].copies
    assert not [one.name for one in found if one.name == "table" and one.confidence.is_sure]


def test_a_function_of_the_project_is_not_that_of_the_c_library_that_has_its_name(tmp_path: Path) -> None:
    library = (
        "static const void *known; int access(const char *p, int n) { int r = p == known; known = p; return r + n; }"
    )
    (tmp_path / "own.c").write_text(library)
    (tmp_path / "header.h").write_text(
        'static const char name[24] = "a name of a file";\nint access(const char *, int);\n'
    )
    for number in range(2):
        use = f"int use_{number}(int i); int use_{number}(int i) {{ return access(name, i) + name[i & 7]; }}\n"
        (tmp_path / f"{number}.c").write_text(f'#include "header.h"\n{use}')
    main = "int use_0(int), use_1(int); int main(int c, char **v) { return use_0(c) + use_1(c); }"
    (tmp_path / "main.c").write_text(main)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "own.c", "-o", "libown.so"], cwd=tmp_path, check=True, timeout=120)
    for name, own in (("own", ["-L.", "-lown"]), ("libc", [])):
        words = ["gcc", "-w", "-g", "-O2", "0.c", "1.c", "main.c", *own, "-o", name]
        subprocess.run(words, cwd=tmp_path, check=True, timeout=120)
    graded = {
        name: [copy.confidence for copy in footprint.duplicates(str(tmp_path / name)).files[0].copies]
        for name in ("own", "libc")
    }
    assert graded == {"own": [Confidence.MEDIUM], "libc": [Confidence.PROOF]}


EIGHT = "int a, int b, int c, int d, int e, int f, int g, const int *p"
SUM = "a + b + c + d + e + f"
SHARED = "__attribute__((weak, noinline))"
FILL = f"{SHARED} void fill(int *all, int n) {{ all[1] = n; all[n & 31] = 3; }}\n"
ASKS = f"{SHARED} int asks({EIGHT}) {{ return {SUM} + p[g & 7]; }}\n"
ON_STACK = [
    f"{SHARED} int asked({EIGHT}) {{ return {SUM} + p[g & 7]; }}",
    FILL + f"{SHARED} int asked({EIGHT}) {{ int all[32]; fill(all, {SUM}); return all[b] + p[g & 7]; }}",
    ASKS + f"{SHARED} int asked({EIGHT}) {{ return asks(f, e, d, c, b, a, g, p + 1); }}",
]


@pytest.mark.parametrize(("compiler", "options"), [("gcc", "-O1"), ("gcc", "-Os -fPIC"), ("clang", "-O2")])
@pytest.mark.parametrize("functions", ON_STACK, ids=["plain", "with-variables", "passed-on"])
def test_an_address_is_followed_where_it_is_an_argument_on_the_stack(
    functions: str, compiler: str, options: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "thing.h").write_text(f"static const int thing[10] = {{100, 2, 3}};\n{functions}\n")
    for number in range(3):
        use = f'#include "thing.h"\nint use_{number}(int i) {{ return asked(i, 1, 2, 3, 4, 5, i, thing); }}\n'
        (tmp_path / f"unit_{number}.c").write_text(use)
    calls = " + ".join(f"use_{number}(i)" for number in range(3))
    declared = "".join(f"int use_{number}(int);" for number in range(3))
    (tmp_path / "main.c").write_text(f"{declared} int main(int i, char **v) {{ (void)v; return {calls}; }}\n")
    names = ["main.c", *[f"unit_{number}.c" for number in range(3)]]
    subprocess.run([compiler, "-g", *options.split(), "-o", "program", *names], cwd=tmp_path, check=True)
    copies = footprint.duplicates(str(tmp_path / "program")).files[0].copies
    assert [(copy.name, copy.confidence) for copy in copies] == [("thing", Confidence.PROOF)]
