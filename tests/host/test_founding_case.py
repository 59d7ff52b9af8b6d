"""The case that founded footprint: 107 source files include a header with NULL_XACTION, and each has its own.

All three constants of the header are sure, with and without optimisation and debug information, and the program does
the same with one of each.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import footprint
from footprint.findings.copies import CopiedVariable
from footprint.findings.variable_rules.duplicate_static import duplicate_findings
from footprint.model.finding import Confidence
from tests.host.random_headers import COMPILERS, missing_tool

COUNT = 107
STATES = "{1, 2, 4, 8, 16}"
NULL = '{"null", -1, 0}'
HEADER = f"""#include <stdio.h>
struct xaction {{ const char *name; int id; long when; }};
static const int XACTION_STATES[16] = {STATES};
static const int DEFAULT_INDENT = 4;
static const struct xaction NULL_XACTION = {NULL};
int kind(const struct xaction *x, const int *indent);
"""
# At -O0 each source file also has a text of its own, which lies behind that of NULL_XACTION.
SOURCE = (
    '#include "classad.h"\nint use_N(int i);\nint use_N(int i) {\n'
    '    printf("unit N has %d\\n", i);\n'
    "    return kind(&NULL_XACTION, &DEFAULT_INDENT) + XACTION_STATES[i & 15];\n}\n"
)
MAIN = "int kind(const struct xaction *x, const int *indent) { return x->id + x->name[1] + *indent; }\n"
NAMES = ("XACTION_STATES", "DEFAULT_INDENT", "NULL_XACTION")


def with_remedy(name: str, remedy: str, header: str) -> tuple[str, str]:
    """Return the header with the remedy for a constant, and what is defined in one source file."""
    (line,) = [one for one in header.splitlines() if f" {name}" in one and one.startswith("static")]
    declared = line.removeprefix("static ").partition(" = ")[0]
    if remedy.startswith("declare it `inline`"):
        return header.replace(line, line.replace("static", "inline")), ""
    assert "declare it `extern const`" in remedy
    return header.replace(line, f"extern {declared};"), f"{line.removeprefix('static ')}\n"


def built(folder: Path, command: Sequence[str], options: list[str], header: str, defined: str = "") -> Path:
    folder.mkdir()
    suffix = "cc" if command[0].endswith("++") else "c"
    (folder / "classad.h").write_text(header)
    for number in range(COUNT):
        (folder / f"{number}.{suffix}").write_text(
            SOURCE.replace("N)", f"{number})").replace("_N(", f"_{number}(").replace("unit N", f"unit {number}")
        )
    numbers = range(COUNT)
    declared = "".join(f"int use_{number}(int);\n" for number in numbers)
    calls = "".join(f"    sum += use_{number}(i);\n" for number in numbers)
    main = f"int main(int i, char **v) {{\n    int sum = 0;\n    (void)v;\n{calls}"
    main += '    printf("%d\\n", sum);\n    return 0;\n}\n'
    (folder / f"main.{suffix}").write_text(f'#include "classad.h"\n{defined}{MAIN}{declared}{main}')
    sources = [*(f"{number}.{suffix}" for number in numbers), f"main.{suffix}"]
    subprocess.run([*command, *options, *sources, "-o", "program"], cwd=folder, check=True, timeout=300)
    return folder / "program"


def copies(program: Path) -> dict[str, CopiedVariable]:
    return {copy.shown_name: copy for copy in footprint.duplicates(str(program)).files[0].copies}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(
    ("compiler", "language"),
    [("gcc", "c"), ("gcc", "c++"), ("clang", "c"), ("clang", "c++"), ("gcc arm64", "c"), ("clang arm64", "c++")],
)
def test_all_three_constants_are_sure_and_the_program_does_the_same_with_one_of_each(
    compiler: str, language: str, level: str, tmp_path: Path
) -> None:
    if missing := missing_tool(compiler):
        pytest.skip(f"{missing} is not installed")
    *commands, emulator = COMPILERS[compiler]
    command = commands[language == "c++"]
    options = ["-g", level, "-std=gnu11" if language == "c" else "-std=gnu++17"]
    program = built(tmp_path / "before", command, options, HEADER)
    with_lines = copies(program)
    assert {name: with_lines[name].confidence for name in NAMES} == dict.fromkeys(NAMES, Confidence.PROOF)
    bare = tmp_path / "before" / "bare"
    # `strip -g` would remove the names of the source files, too.
    subprocess.run(
        ["aarch64-linux-gnu-objcopy" if emulator else "objcopy", "--remove-section=.debug*", program, bare], check=True
    )
    without = copies(bare)
    assert {name: without[name].confidence for name in NAMES} == dict.fromkeys(NAMES, Confidence.HIGH)
    remedied = []
    for found in (with_lines, without):
        # gcc -O0 keeps those of main, which uses none.
        assert {found[name].copy_count for name in NAMES} == {COUNT + (compiler.startswith("gcc") and level == "-O0")}
        header, defined = HEADER, ""
        for name in NAMES:
            (finding,) = duplicate_findings([found[name]])
            header, more = with_remedy(name, finding.remedy, header)
            defined += more
        remedied.append((header, defined))
    assert remedied[0] == remedied[1]
    after = built(tmp_path / "after", command, options, *remedied[0])
    assert copies(after) == {}
    printed = [subprocess.run([*emulator, one], capture_output=True, check=True).stdout for one in (program, after)]
    assert printed[0] == printed[1]
