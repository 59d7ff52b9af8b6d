"""Which variables compilers' code only reads: what the sources write to, or let go, is never said to be constant."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import footprint

# What each variable is used for; each is of a page and more, and none is `const`.
SOURCE = """
typedef unsigned long size_t;
struct pair { int a; int b; };
int read_by_number[2000] = {1, 2, 3};
int read_at_places[2000] = {1, 2, 3};
char read_as_bytes[8000] = "abc";
double read_as_doubles[1000] = {1.5};
struct pair read_as_pairs[1000] = {{1, 2}};
int written_by_number[2000] = {1, 2, 3};
int written_at_a_place[2000] = {1, 2, 3};
struct pair incremented[1000] = {{1, 2}};
char cleared_bit[8000] = "abc";
float written_as_vectors[2000] = {1.5f};
int passed[2000] = {1, 2, 3};
int kept_in_a_pointer[2000] = {1, 2, 3};
int returned[2000] = {1, 2, 3};
int in_a_table[2000] = {1, 2, 3};
char swapped[8000] = "abc";
int written_by_an_index_from_one[2000] = {1, 2, 3};
static int *pointer;
int *table[] = {0, in_a_table, 0};
void take(int *);
int number(int i) { return read_by_number[i]; }
int places(void) { return read_at_places[5] + read_at_places[7]; }
int bytes(int i) { return read_as_bytes[i]; }
double doubles(int i) { return read_as_doubles[i] * 2; }
int pairs(int i) { return read_as_pairs[i].a + read_as_pairs[i].b; }
void write_by_number(int i) { written_by_number[i] = 5; }
void write_at_a_place(void) { written_at_a_place[5] = 5; }
void increment(int i) { incremented[i].b++; }
void clear_bit(int i) { cleared_bit[i] &= ~4; }
void vectors(float by) { for (int i = 0; i < 2000; i++) written_as_vectors[i] *= by; }
void pass(void) { take(passed); }
void keep(void) { pointer = kept_in_a_pointer; }
int *give(void) { return returned; }
void of_table(int i) { table[i][3] = 1; }
char swap(int i, char c) { return __atomic_exchange_n(&swapped[i], c, __ATOMIC_SEQ_CST); }
void from_one(int i) { written_by_an_index_from_one[i - 1] = 5; }
int through(int i) { return pointer[i]; }
"""
FUNCTIONS = re.findall(r"^[a-z]+ \\*?([a-z_]+)\(.*{", SOURCE, re.MULTILINE)
MAIN = f"""
int {", ".join(f"{name}()" for name in FUNCTIONS)};
void *all[] = {{ {", ".join(FUNCTIONS)} }};
void take(int *at) {{ at[3] = 4; }}
int main(int count, char **words) {{ return all[count] != words; }}
"""
READ = {"read_by_number", "read_at_places", "read_as_bytes", "read_as_doubles", "read_as_pairs"}


@pytest.mark.parametrize("place", [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]], ids=["pie", "fixed"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-Os", "-O3 -mavx2"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_what_is_written_or_let_go_is_never_said_to_be_constant(
    compiler: str, level: str, place: list[str], tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "source.c").write_text(SOURCE)
    (tmp_path / "main.c").write_text(MAIN)
    words = [compiler, "-w", *level.split(), *place, "-o", "program", "main.c", "source.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(words)} fails: {done.stderr[:300]}")
    found = footprint.duplicates(str(tmp_path / "program"))
    kinds = {one.subject: one.kind for one in found.findings if one.rule == "large-static"}
    assert len(kinds) == SOURCE.count("000] =")
    constant = {name for name, kind in kinds.items() if kind == "could-be-const"}
    assert "read_at_places" in constant
    assert constant <= READ
