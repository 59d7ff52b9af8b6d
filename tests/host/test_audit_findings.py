"""`footprint audit --findings` and `footprint libraries` of live processes, in this root and in another."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.jsonschemas import WRITTEN

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_binaries" / "condor_shadow"

Captured = pytest.CaptureFixture[bytes]
Json = dict[str, Any]

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the sample is for x86-64")


@contextmanager
def started(*words: str | Path, **variables: str) -> Iterator[int]:
    """Start a program, and give its PID when it says that it is ready."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=os.environ | variables) as process:
        assert process.stdout is not None
        assert any(line == b"ready\n" for line in process.stdout), "it ended before it was ready"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def shadow() -> Iterator[int]:
    """Start the sample that needs a library and does not use it."""
    with started(SAMPLE / "base", "--wait") as pid:
        yield pid


def answered(capfdbinary: Captured, *words: str) -> Json:
    assert main([*words, "--json"]) == 0
    answer: Json = json.loads(capfdbinary.readouterr().out)
    WRITTEN.validate(answer)
    return answer


def test_a_live_process_is_told_what_it_could_do_without_when_that_is_asked_for(
    capfdbinary: Captured, shadow: int
) -> None:
    without = answered(capfdbinary, "audit", str(shadow))
    result = answered(capfdbinary, "audit", str(shadow), "--findings")

    assert without["findings"] == []
    (unused,) = [one for one in result["findings"] if one["rule"] == "unused-library"]
    # Both libraries have one page that the loader writes: the one that is unused, and the one that only it needs.
    assert (unused["subject"], unused["confidence"], unused["saving_bytes"]) == ("libunused.so", "high", 8192)
    # What leaves with what, and what is to be built otherwise, are owners of rows: also where /lib is a link.
    owners = {row["owner"] for row in result["ledger"]}
    assert {one["path"] for one in result["objects"]} <= owners
    assert {one["held_by"] for one in result["objects"]} <= {*owners, None}
    assert {need["path"] for one in result["objects"] for need in one["needs"]} <= owners
    assert {one["object"] for one in result["findings"]} <= {*owners, None}
    assert unused["object"] == str(SAMPLE / "base")
    assert [path.rsplit("/", 1)[-1] for path in unused["leaves"]] == ["libunused.so", "libunused_dep.so"]
    assert without["totals"]["floor_bytes"] is None
    assert result["totals"]["private_bytes"] == without["totals"]["private_bytes"]
    assert 0 < result["totals"]["floor_bytes"] <= result["totals"]["private_bytes"]
    assert result["totals"]["floor_bytes"] < result["totals"]["ceiling_bytes"]


@pytest.fixture
def shadow_elsewhere(tmp_path: Path) -> Iterator[int]:
    """Start the sample in a folder that it takes for `/`."""
    if os.geteuid() != 0:
        pytest.skip("only root changes the root of a process")
    interpreter = Path("/lib64/ld-linux-x86-64.so.2")
    libc = Path("/lib/x86_64-linux-gnu/libc.so.6")
    if not (interpreter.exists() and libc.exists()):
        pytest.skip("this system keeps its C library elsewhere")
    for file, place in ((interpreter, "lib64"), (libc, "lib/x86_64-linux-gnu")):
        (tmp_path / place).mkdir(parents=True)
        shutil.copy(file, tmp_path / place)
    for name in ("base", "libunused.so", "libunused_dep.so"):
        shutil.copy(SAMPLE / name, tmp_path)
    # Without /proc there, the loader does not know what `$ORIGIN` is.
    with started("chroot", tmp_path, "/base", "--wait", LD_LIBRARY_PATH="/") as pid:
        yield pid


def test_what_is_found_in_a_process_in_another_root_is_called_as_its_memory_is(
    capfdbinary: Captured, tmp_path: Path, shadow_elsewhere: int
) -> None:
    result = answered(capfdbinary, "audit", str(shadow_elsewhere), "--findings")
    copies = answered(capfdbinary, "duplicates", str(shadow_elsewhere), "--no-debug-files")

    program, owners = f"{tmp_path}/base", {row["owner"] for row in result["ledger"]}
    assert {need["path"] for one in result["objects"] for need in one["needs"]} <= owners
    assert "large-static" in {one["rule"] for one in result["findings"] if one["object"] == program}
    assert program in {one["file"] for one in copies["files"]} <= owners
    # Both count the same pages.
    (null_xaction,) = copies["duplicates"]
    symbol = "_ZN7classadL12NULL_XACTIONE"
    assert (null_xaction["file"], null_xaction["symbol"]) == (program, symbol)
    assert [null_xaction["private_bytes"]] == [row["bytes"] for row in result["ledger"] if row["symbol"] == symbol]
    assert "/proc/" not in json.dumps([result, copies])


def test_the_libraries_of_a_process_in_another_root_are_found_there(
    capfdbinary: Captured, shadow_elsewhere: int
) -> None:
    answer = answered(capfdbinary, "libraries", str(shadow_elsewhere))
    paths = [one["path"] for one in answer["libraries"]]
    # In load order, as the process itself calls them; libunused_dep.so comes with libunused.so, behind the C library.
    assert paths[:4] == ["/base", "/libunused.so", "/lib/x86_64-linux-gnu/libc.so.6", "/libunused_dep.so"]
    assert all(one["private_bytes"] for one in answer["libraries"])
