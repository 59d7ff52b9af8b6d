"""What two libraries were linked with: only some of it does the same when both share it, and no figure tells which."""

import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.findings.variable_rules.linked_twice import linked_twice_findings
from footprint.model.finding import Confidence

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler is installed")

_TABLES = "static const int table[64] = {1, 2, 3, 4, 5}; static const short more[64] = {9, 8, 7};"
_MAIN = """#include <stdio.h>
int one(int); int two(int);
int main(void) { printf("%d", one(1)); printf(" %d\\n", two(1)); return 0; }
"""


def printed(folder: Path, name: str, *objects: str) -> bytes:
    subprocess.run(["gcc", "main.c", *objects, "-Wl,-rpath,$ORIGIN", "-o", name], cwd=folder, check=True)
    return subprocess.check_output([folder / name])


@pytest.mark.parametrize(
    ("body", "second", "shares_well"),
    [
        ("return sum(k);", [], True),
        ("static int count; return sum(k) + count++;", [], False),
        ("return sum(k) * FACTOR;", ["-DFACTOR=7"], False),
    ],
)
def test_what_is_linked_into_two_libraries_is_not_sure_to_do_for_both(
    tmp_path: Path,
    body: str,
    second: list[str],
    shares_well: bool,  # noqa: FBT001 # a parameter
) -> None:
    (tmp_path / "shared.c").write_text(
        f"{_TABLES}\n#ifndef FACTOR\n#define FACTOR 3\n#endif\nstatic __attribute__((noinline)) int sum(int k) {{"
        " int s = 0; for (int i = 0; i < 64; i++) s += table[(i * k) & 63] + more[(i + k) & 63]; return s; }\n"
        f"int next(int k); int next(int k) {{ {body} }}\n"
    )
    (tmp_path / "main.c").write_text(_MAIN)
    for name, options in (("one", []), ("two", second)):
        (tmp_path / f"{name}.c").write_text(f"int next(int); int {name}(int k) {{ return next(k); }}")
        hidden = ["-g", "-O1", "-fPIC", "-fvisibility=hidden", *options]
        subprocess.run(["gcc", *hidden, "-c", "shared.c", "-o", f"{name}-shared.o"], cwd=tmp_path, check=True)
        words = ["gcc", "-g", "-O1", "-shared", "-fPIC", f"{name}.c", f"{name}-shared.o", "-o", f"lib{name}.so"]
        subprocess.run(words, cwd=tmp_path, check=True)
    both = str(tmp_path / "libone.so"), str(tmp_path / "libtwo.so")
    (found,) = footprint.duplicates(*both).linked_twice
    assert found.confidence is Confidence.MEDIUM
    (finding,) = linked_twice_findings([found])
    assert finding.remedy.startswith(
        "make sure that one build of it does for all; then link it once, as a shared library"
    )

    # The remedy: one shared library that both need.
    before = printed(tmp_path, "before", "libone.so", "libtwo.so")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "shared.c", "-o", "libshared.so"], cwd=tmp_path, check=True)
    for name in ("one", "two"):
        words = ["gcc", "-shared", "-fPIC", f"{name}.c", "libshared.so", "-Wl,-rpath,$ORIGIN", "-o", f"lib{name}.so"]
        subprocess.run(words, cwd=tmp_path, check=True)
    assert (printed(tmp_path, "after", "libone.so", "libtwo.so", "libshared.so") == before) == shares_well
