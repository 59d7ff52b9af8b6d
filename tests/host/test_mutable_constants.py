"""Tables that could be `const`: the source is changed as the finding says, built again and run."""

import re
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.model.finding import Confidence

SOURCE = """
#include <stdio.h>
#include <string.h>
int read_here[64] = {3, 1, 4, 1, 5, 9};
int looped[64] = {2, 7, 1, 8, 2, 8};
unsigned char font[2048] = {1, 2, 3};
struct point { int x, y; } points[16] = {{1, 2}, {3, 4}};
int passed_on[64] = {9, 8, 7};
int written[64] = {1, 1, 2, 3, 5, 8};
int by_pointer[64] = {9, 8, 7};
int filled[64] = {1};
int returned[64] = {1};
int stored[64] = {1};
int *kept;
#define NOINLINE __attribute__((noinline))
NOINLINE int *get(void) { return returned; }
NOINLINE int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
NOINLINE void add(int *p, int n) { for (int i = 0; i < n; i++) p[i] += n; }
NOINLINE int loop(void) { int s = 0; for (int i = 0; i < 64; i++) s += looped[i]; return s; }
NOINLINE void step(int n) { int *p = written; for (int i = 0; i < n; i++) *p++ += i; }
int main(int argc, char **argv) {
    step(argc); add(by_pointer, argc); memset(filled + argc, argc, 4); get()[argc]++;
    kept = stored; kept[argc] = argc;
    const struct point *p = &points[argc];
    printf("%d %d %d ", read_here[argc], loop(), sum(passed_on, argc));
    printf("%d %d %d\\n", font[argc * 7], p->x * p->y, argv[0][0]);
    printf("%d %d %d %d %d\\n", written[0], by_pointer[0], filled[argc], returned[argc], stored[argc]);
    return 0;
}
"""
CONSTANT = {"read_here", "looped", "font", "points", "passed_on"}
# In programs at fixed addresses, later releases of gcc than 12 join the writes of `step`, and then write from an
# address before the table on, which may mean others: without that none is sure.
JOINED_WRITES = " -fno-tree-vectorize"
WAYS = [
    (compiler, options + JOINED_WRITES * (compiler == "gcc" and "-no-pie" in options))
    for compiler in ("gcc", "clang")
    for options in ("-O0", "-O1", "-O2", "-O3 -march=x86-64-v3", "-Os", "-O2 -fno-pie -no-pie", "-O2 -g")
]


def built(folder: Path, source: str, compiler: str, options: str) -> Path:
    (folder / "x.c").write_text(source, encoding="ascii")
    words = [compiler, *options.split(), "-Wall", "-Werror", "-o", "x", "x.c"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "x"


def output(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def data_bytes(program: Path) -> int:
    (found,) = footprint.symbols(str(program), debug=None).files
    return next(section.size_bytes for section in found.sections if section.section.name == ".data")


@pytest.mark.parametrize(("compiler", "options"), WAYS)
def test_with_const_the_program_does_the_same_and_has_less_data(compiler: str, options: str, tmp_path: Path) -> None:
    program = built(tmp_path, SOURCE, compiler, options)
    before, data_before_bytes = output(program), data_bytes(program)
    found = [finding for finding in footprint.duplicates(str(program)).findings if finding.rule == "mutable-constant"]
    sure = {one.subject: one.size_bytes or 0 for one in found if one.confidence is Confidence.HIGH}
    assert sure.keys() <= CONSTANT
    # What a compiler keeps in a register that it spills is not followed.
    assert len(sure) >= (3 if options == "-O0" else 4), sure
    source = SOURCE
    for name in sure:
        source = re.sub(rf"^(.*\b{name}\[)", r"const \1", source, count=1, flags=re.MULTILINE)
    changed = built(tmp_path, source, compiler, options)
    assert output(changed) == before
    assert data_before_bytes - data_bytes(changed) >= sum(sure.values())
