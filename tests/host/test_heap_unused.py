"""Memory that nothing reads or writes: the remedy saves what the finding says, measured in the running program."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

import footprint
from footprint.model.finding import Confidence, Finding

COUNT: Final = 20_000
SOURCE: Final = f"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept[3][{COUNT}];
static void untouched(void) {{ for (int i = 0; i < {COUNT}; i++) kept[0][i] = malloc(200); }}
static void unread(void) {{ for (int i = 0; i < {COUNT}; i++) memset(kept[1][i] = malloc(200), i, 200); }}
static void used(void) {{ for (int i = 0; i < {COUNT}; i++) memset(kept[2][i] = malloc(200), i, 200); }}
int main(void) {{
    long sum = 0;
#ifndef WITHOUT_UNTOUCHED
    untouched();
#endif
#ifndef WITHOUT_UNREAD
    unread();
#endif
    used();
    for (int i = 0; i < {COUNT}; i++) for (int j = 0; j < 200; j++) sum += kept[2][i][j];
    return sum == 42;
}}
"""
SIZE_BYTES: Final = COUNT * 200


def build(folder: Path, name: str, *options: str) -> Path:
    for tool in ("gcc", "valgrind"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (folder / "main.c").write_text(SOURCE, encoding="utf-8")
    words = ["gcc", "-O0", "-g", *options, "-o", str(folder / name), str(folder / "main.c")]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    return folder / name


def findings(folder: Path, program: Path) -> dict[str, Finding]:
    words = ["valgrind", "--tool=dhat", f"--dhat-out-file={folder}/dhat.json", str(program)]
    done = subprocess.run(words, capture_output=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"DHAT fails here: {done.stderr.decode(errors='replace')[-200:]}")
    found = footprint.heap_profile(folder / "dhat.json", binaries=[program]).findings
    return {one.kind: one for one in found if one.rule == "heap-unused"}


def private_bytes(program: Path) -> int:
    """Return the private memory of the program at its end."""
    private = footprint.run([str(program)], when="exit").audit.totals.private.bytes
    assert private is not None
    return private


def test_what_is_not_used_is_found_at_its_line_and_its_removal_saves_what_was_said(tmp_path: Path) -> None:
    program = build(tmp_path, "whole")
    result = findings(tmp_path, program)
    assert result.keys() == {"untouched", "unread"}
    for kind, one in result.items():
        line = next(number for number, text in enumerate(SOURCE.splitlines(), 1) if f"void {kind}" in text)
        assert (one.location, one.saving_bytes) == (("main.c", line), SIZE_BYTES)
        assert one.confidence is Confidence.MEDIUM
        assert one.subject == f"{program} {kind}"
    before = private_bytes(program)
    for kind in result:
        remedied = build(tmp_path, f"without_{kind}", f"-DWITHOUT_{kind.upper()}")
        assert kind not in findings(tmp_path, remedied)
        saved_bytes = before - private_bytes(remedied)
        # glibc adds 8 bytes to each block, and the array of pointers is not touched either.
        assert SIZE_BYTES <= saved_bytes <= SIZE_BYTES + COUNT * 16 + 8192
