"""The heap of live processes by who asked for it: what the kernel counts, to the byte, with real profiles."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.model.audit import Audit

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_binaries" / "heap_by_function"
PYTHON = os.path.realpath(sys.executable)
SCRIPT = "import json, ssl; print('ready', flush=True); input()"


@pytest.fixture(autouse=True, scope="module")
def _valgrind() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")


@contextmanager
def running(command: Sequence[str]) -> Iterator[int]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # Then it waits, which touches a page or two.
        before = -1
        while before != (before := smaps_anonymous(process.pid, "")):
            time.sleep(0.2)
        yield process.pid
        process.kill()


def by_kind(audit: Audit) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row in audit.ledger:
        sums[row.kind.value] += row.bytes or 0
    return sums


def smaps_anonymous(pid: int, name: str) -> int:
    """Add up what the kernel counts in mappings of a name."""
    total, is_in = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8").splitlines():
        if "-" in line.split(" ")[0]:
            is_in = line.endswith(name)
        elif is_in and line.startswith("Anonymous:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("massif") / "massif.out"
    words = ["valgrind", "-q", "--tool=massif", "--threshold=0", "--detailed-freq=1", "--max-snapshots=40"]
    words += ["--peak-inaccuracy=0", f"--massif-out-file={path}", PYTHON, "-c", SCRIPT]
    done = subprocess.run(words, input=b"\n", capture_output=True, check=False, timeout=240)
    if done.returncode or not path.exists():
        pytest.skip(f"valgrind fails here: {done.stderr.decode(errors='replace')[-200:]}")
    return path


@pytest.mark.parametrize("at", ["peak", "end"])
def test_the_heap_of_a_live_python_is_told_to_the_byte(profile: Path, at: str) -> None:
    with running([PYTHON, "-c", SCRIPT]) as pid:
        plain = footprint.audit(pid)
        joined = footprint.audit(pid, heap=str(profile), heap_at=at)
        counted = smaps_anonymous(pid, "[heap]")
    account = joined.heap
    assert account is not None
    assert joined.totals.private == plain.totals.private
    assert by_kind(joined)["heap"] == account.total_bytes
    assert by_kind(joined)["heap"] - by_kind(plain)["heap"] == account.apart_bytes
    assert by_kind(plain)["anonymous"] - by_kind(joined)["anonymous"] == account.apart_bytes
    # One thread: its only arena is the heap that the kernel knows. The allocator tells which blocks it maps beside it.
    mapped_bytes = sum(row.bytes or 0 for row in plain.ledger if row.owner == "[mapped blocks]")
    assert account.held_bytes == counted + mapped_bytes
    assert account.total_bytes == account.profiled_bytes + account.free_bytes + account.difference_bytes
    # Who asked is known, and called as the kernel calls it.
    told = sum(share.size_bytes for share in account.shares if not share.owner.startswith("["))
    assert told >= 0.99 * account.live_bytes
    owners = {row.owner for row in plain.ledger}
    assert {share.owner for share in account.shares if not share.owner.startswith("[")} <= owners
    # What was live is what massif says.
    text = profile.read_text(encoding="utf-8", errors="replace").split("#-----------\nsnapshot=")
    (snapshot,) = (part for part in text if part.startswith(f"{account.snapshot}\n"))
    assert f"mem_heap_B={account.live_bytes}\nmem_heap_extra_B={account.extra_bytes}\n" in snapshot


def test_a_profile_and_a_capture_say_the_same_as_a_profile_and_the_process(profile: Path, tmp_path: Path) -> None:
    capture = tmp_path / "python.zip"
    with running([PYTHON, "-c", SCRIPT]) as pid:
        live = footprint.audit(pid, heap=str(profile), heap_at="peak").heap
        footprint.capture(pid, output=str(capture))
        saved = footprint.audit(str(capture), heap=str(profile), heap_at="peak").heap
    assert live is not None
    assert saved is not None
    # The allocator of the live process can be read: what it maps is held there, and taken for apart in the capture.
    assert live.is_free_measured
    read = {"held_bytes", "apart_bytes", "free_bytes", "is_free_measured", "difference_bytes"}
    for member in fields(live):
        if member.name not in read:
            assert getattr(saved, member.name) == getattr(live, member.name)
    assert saved.held_bytes is not None
    assert live.held_bytes is not None
    assert saved.held_bytes <= live.held_bytes <= saved.total_bytes


def test_the_sample_is_run_plainly_and_under_massif(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    kept = tmp_path / "kept.out"
    code = main(["run", "--massif", "--massif-out", str(kept), "--json", "--", str(SAMPLE / "heap")])
    out, error = capfdbinary.readouterr()
    assert (code, error) == (0, b"")
    account = json.loads(out)["heap_account"]
    # 102 blocks: glibc has chunks of 816, 1,008 and 50,016 bytes for 800, 992 and 50,000.
    assert (account["live_bytes"], account["extra_bytes"], account["allocator"]) == (150_000, 102 * 16, "glibc")
    assert [(one["owner"], one["symbol"], one["bytes"]) for one in account["shares"]] == [
        (str(SAMPLE / "heap"), "load_parameters", 100_000),
        (str(SAMPLE / "libtable.so"), "table_new", 50_000),
    ]
    # Of the table one byte is written: its pages are not there, all others are.
    assert account["difference_bytes"] < 0
    assert kept.read_bytes().startswith(b"desc: ")
    again = footprint.heap_profile(str(kept), at="end").files[0]
    assert again.snapshot is not None
    assert again.snapshot.live_bytes == 150_000


def test_a_script_that_becomes_the_program_is_profiled_as_the_program(tmp_path: Path) -> None:
    # As the shims of pyenv do: what a process becomes by exec is still it, and has its number.
    script = tmp_path / "shim"
    script.write_text(f'#!/bin/sh\nexec "{SAMPLE / "heap"}"\n', encoding="utf-8")
    script.chmod(0o755)
    ran = footprint.run([str(script)], has_massif=True)
    assert ran.audit.heap is not None
    assert ran.audit.heap.command == str(SAMPLE / "heap")
    assert ran.audit.heap.live_bytes == 150_000
    assert "heap-profile-misfit" not in {note.slug for note in ran.notes}


def test_massif_ends_with_a_program_that_does_not() -> None:
    ran = footprint.run(
        [PYTHON, "-c", "print('ready', flush=True); import time; time.sleep(1000)"],
        when_output="ready",
        has_massif=True,
        massif_seconds=200,
    )
    assert ran.audit.heap is not None
    assert ran.audit.heap.live_bytes > 100_000
    assert [note.slug for note in ran.notes if note.slug.startswith("massif")] == []


def test_a_run_under_massif_that_takes_too_long_is_cut_off() -> None:
    # Plainly it has no time to sleep; under Valgrind the environment says that it has.
    code = "import os, time; time.sleep(1000 if 'valgrind' in os.environ.get('LD_PRELOAD', '') else 0)"
    ran = footprint.run([PYTHON, "-c", code], has_massif=True, massif_seconds=6)
    assert "massif-cut-off" in {note.slug for note in ran.notes}
    assert ran.audit.heap is not None


def test_a_profiled_program_that_ended_before_its_moment_is_joined_at_its_peak() -> None:
    # By itself it is taken at a line of its output; under Valgrind it gives back its memory, and ends without the line.
    script = (
        "import os, time; held = bytearray(1 << 19)\n"
        "if 'valgrind' not in os.environ.get('LD_PRELOAD', ''): print('ready', flush=True); time.sleep(1000)"
    )
    ran = footprint.run([PYTHON, "-c", script], when_output="ready", has_massif=True)
    assert ran.audit.heap is not None
    assert ran.audit.heap.live_bytes > 1 << 19
