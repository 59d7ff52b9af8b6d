"""A debug file that is installed between two audits changes no figure, and no row counts as added."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.cli import main

SOURCE = """
#include <stdio.h>
static int table[3000] = {1};
static char buffer[9000];
static const char *const names[] = {"red", "green"};
int main(int count, char **words) {
  buffer[count] = 1; table[count] = 3;
  printf("%d %d %s %s\\n", buffer[1], table[1], names[count & 1], words[0]);
}
"""


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "objcopy", "strip"))), reason="no compiler is installed")
def test_installing_the_debug_file_of_a_stripped_program_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, debug = tmp_path / "program", tmp_path / "debug"
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-Wl,--build-id", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    notes = subprocess.run(["readelf", "-n", str(program)], capture_output=True, text=True, check=True).stdout
    (build_id,) = re.findall("Build ID: ([0-9a-f]+)", notes)
    installed = debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    installed.parent.mkdir(parents=True)
    before, now = str(tmp_path / "before.json"), str(tmp_path / "now.json")
    subprocess.run(["objcopy", "--only-keep-debug", str(program), str(installed)], check=True)
    subprocess.run(["strip", str(program)], check=True)

    assert main(["audit", str(program), "--json", "-o", before]) == 0
    assert main(["audit", str(program), "--json", "-o", now, "--debug-dir", str(debug)]) == 0
    capsys.readouterr()
    named = {row["symbol"] for row in json.loads(Path(now).read_text())["ledger"]}
    assert {"table", "buffer", "names"} <= named
    assert "table" not in {row["symbol"] for row in json.loads(Path(before).read_text())["ledger"]}
    for one, other in ((before, now), (now, before)):
        found = footprint.diff(one, other)
        assert (found.changes, found.owners, found.new_findings, found.fixed_findings) == ((), (), (), ())
