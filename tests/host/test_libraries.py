"""`footprint libraries` of live processes: what each object holds, also where its file is gone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.jsonschemas import WRITTEN

Captured = pytest.CaptureFixture[str]


Json = dict[str, Any]


def answer(captured: Captured, *words: str, code: int = 0) -> str:
    assert main(["libraries", *words]) == code
    out, error = captured.readouterr()
    assert error == ""
    return out


def asked(captured: Captured, *words: str) -> Json:
    text = answer(captured, *words, "--json")
    assert text.isascii()
    found: Json = json.loads(text)
    assert [f"{error.instance_path}: {error.message}" for error in WRITTEN.iter_errors(found)] == []
    return found


@pytest.fixture
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as child:
        while Path(f"/proc/{child.pid}/exe").resolve().name != "sleep":
            pass
        yield child.pid
        child.kill()


@pytest.mark.skipif(not Path("/usr/bin/sleep").exists(), reason="sleep is missing")
def test_of_a_live_process_what_each_object_holds_is_measured(capfd: Captured, sleeping: int) -> None:
    while not any("libc" in line for line in Path(f"/proc/{sleeping}/maps").read_text().splitlines()):
        pass
    found = asked(capfd, str(sleeping))
    target, rows = found["target"], found["libraries"]
    assert (target["pid"], target["evidence"]) == (sleeping, "measured")
    mapped = {line.split()[-1] for line in Path(f"/proc/{sleeping}/maps").read_text().splitlines() if ".so" in line}
    assert {os.path.realpath(row["path"]) for row in rows[1:]} == {os.path.realpath(path) for path in mapped}
    assert all(row["private_bytes"] is not None for row in rows)
    text = answer(capfd, str(sleeping))
    assert text.startswith(f"pid {sleeping}: sleep: {len(rows)} objects, glibc; ")
    assert "private memory a process (measured)" in text


def _may_open_deleted_files() -> bool:
    """Return whether the files behind mappings can be opened here: it takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE."""
    return any(os.access(path, os.R_OK) for path in Path("/proc/self/map_files").glob("*"))


@pytest.mark.skipif(not _may_open_deleted_files(), reason="/proc/PID/map_files may not be read")
@pytest.mark.parametrize("replacement", [None, "libunused_dep.so"])
def test_files_that_were_deleted_or_replaced_since_are_still_those_of_the_process(
    capfd: Captured, tmp_path: Path, replacement: str | None
) -> None:
    shadow = Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow"
    for name in ("base", "libunused.so", "libunused_dep.so"):
        shutil.copy(shadow / name, tmp_path)
    with subprocess.Popen([tmp_path / "base", "--wait"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert any(line == b"ready\n" for line in child.stdout)
            before = asked(capfd, str(child.pid))
            for name in ("base", "libunused.so"):
                (tmp_path / name).unlink()
                if replacement is not None:
                    shutil.copy(shadow / replacement, tmp_path / name)
            after = asked(capfd, str(child.pid))
        finally:
            child.kill()
    assert [one["subject"] for one in after["findings"]] == ["libunused.so"]
    for table in ("libraries", "missing", "findings"):
        assert after[table] == before[table]


def test_a_library_that_a_process_opened_itself_is_among_its_objects(capfd: Captured) -> None:
    code = "import ctypes; ctypes.CDLL('libresolv.so.2'); print(flush=True); import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        try:
            rows = asked(capfd, str(child.pid))["libraries"]
            text = answer(capfd, str(child.pid))
        finally:
            child.kill()
    (opened,) = [row for row in rows if row["path"].endswith("/libresolv.so.2")]
    assert (opened["found_by"], opened["loader"]) == ("opened", None)
    (libc,) = [row for row in rows if row["soname"] == "libc.so.6"]
    assert {"libc.so.6"} <= {one["name"] for one in opened["needed"] if one["number"] == libc["number"]}
    assert "libresolv.so.2  [opened while running]\n" in text
