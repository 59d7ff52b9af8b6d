"""`footprint watch`: what it prints, keeps and fails on; and the verbs that read what it kept."""

import errno
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator

from footprint.cli import main
from footprint.model.over_time import ProcessCounters
from footprint.process.kernel_events import KernelEvents
from footprint.series.file import read_series
from footprint.series.records import AuditKept, Began, Came, Closed, Ended, Record, Sampled, line_of
from footprint.verbs.watch import session

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "footprint" / "json" / "footprint-1.schema.json").read_text(encoding="utf-8"))
Captured = pytest.CaptureFixture[str]
MIB = 1 << 20

GROWING = """
import sys, time
held = []
print("ready", flush=True)
while True:
    held.append(bytearray(200_000))
    time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def grown() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-ISc", GROWING], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


@pytest.fixture
def growing() -> Iterator[int]:
    with grown() as pid:
        yield pid


class Kept(NamedTuple):
    """A series of a process that grows by 10 MB a second for a second, and what its watch printed."""

    path: Path
    pid: int
    printed: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    path = tmp_path_factory.mktemp("kept") / "x.fps"
    printed = path.with_name("printed.txt")
    with grown() as pid, printed.open("w") as out, redirect_stdout(out):
        words = [str(pid), "--for", "1s", "--every", "50ms", "-o", str(path), "--top", "3"]
        assert main(["watch", *words]) == 0
    return Kept(path, pid, " ".join(printed.read_text().split()))


@pytest.fixture
def kept(made: Kept, folder: Path) -> Kept:
    """Return the same, as a file of the current folder."""
    shutil.copy(made.path, folder)
    return made._replace(path=folder / "x.fps")


def footprint(capfd: Captured, *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, error = capfd.readouterr()
    return code, " ".join(out.split()), error


def series(path: Path, mib_at: dict[int, int], command: str = "server --port 80") -> str:
    """Write a series of one process that holds so many MiB at each second."""
    host = {"kernel": "6.18", "machine": "x86_64"}
    began = Began("4711", 1_700_000_000, 1000, 16384, host, "0.1.0")
    ticks = [
        Sampled(at * 1000, {1: ProcessCounters(mib * MIB, 0, 0, mib * MIB, mib * MIB, 0)}, at)
        for at, mib in mib_at.items()
    ]
    last_ms = max(mib_at) * 1000
    records: list[Record] = [began, Came(0, 1, 4711, 1, command), *ticks, Closed(last_ms, 10, 7, "polling")]
    path.write_bytes(b"".join(map(line_of, records)))
    return str(path)


def test_a_process_is_watched_for_a_time_and_the_series_is_kept(kept: Kept) -> None:
    assert re.search(r"^[0-9]+ ms cost [0-9.]+ MiB peak [0-9.]+ MiB 1 process ", kept.printed)
    assert f"footprint watch: {kept.pid} Watched for 1" in kept.printed
    assert "x.fps." in kept.printed
    assert re.search(r"trend [0-9.]+ GiB/h it grows", kept.printed)
    assert re.search(rf"{kept.pid} grows [0-9.]+ GiB/h \([0-9.]+ GiB/h to [0-9.]+ GiB/h\).*; its peak is", kept.printed)
    moments = [one.moment for one in read_series(kept.path.read_bytes(), "x.fps") if isinstance(one, AuditKept)]
    assert (moments[0], moments[-1]) == ("start", "end")


def test_a_kept_series_is_shown_audited_and_compared(kept: Kept, capfd: Captured) -> None:
    code, out, _ = footprint(capfd, "watch", "--replay", "x.fps", "--json")
    assert code == 0
    found = json.loads(out)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)] == []
    assert found["target"]["name"] == str(kept.pid)
    assert found["watch"]["tick_count"] >= 5
    assert found["processes"][0]["pid"] == kept.pid
    assert footprint(capfd, "audit", "x.fps@start", "-n", "10")[0] == 0
    code, out, _ = footprint(capfd, "diff", "x.fps@start", "x.fps@end")
    assert code == 0
    # Blocks from 128 KiB on have mappings of their own.
    assert re.search(r"\+[0-9.]+ MiB \+[0-9.]+ MiB .* \[anonymous\]", out)
    code, _, error = footprint(capfd, "audit", "x.fps@signal")
    assert code == 3
    assert "x.fps@signal: it has no audit of the moment 'signal': it has start (" in error


def test_a_command_is_watched_to_its_end_and_each_tick_is_one_line(capfd: Captured) -> None:
    child = "x = bytearray(50_000_000); import time; time.sleep(0.4); print('from the program')"
    code = main(["watch", "--every", "100ms", "-o", "x.fps", "--", sys.executable, "-ISc", child])
    out, error = capfd.readouterr()
    assert code == 0
    assert error == "from the program\n"
    # What it held is known, whatever this machine allows.
    peak = re.search(r"its peak is ([0-9.]+) MiB\.$", " ".join(out.split()))
    assert peak is not None
    assert 50_000_000 / (1 << 20) < float(peak[1]) < 90
    records = list(read_series(Path("x.fps").read_bytes(), "x.fps"))
    assert any(isinstance(record, Ended) for record in records)
    assert isinstance(records[-1], Closed)
    ticks = [line for line in out.splitlines() if "  cost " in line and "  peak " in line]
    # Those without a process have no line. On a slow machine two may have one text.
    assert 0 < len(ticks) <= sum(isinstance(record, Sampled) for record in records)
    assert not [line for line in ticks if line.endswith("0 processes")]


def test_a_command_that_fails_is_a_note(capfd: Captured) -> None:
    code, out, _ = footprint(capfd, "watch", "--", sys.executable, "-ISc", "raise SystemExit(3)")
    assert code == 0
    assert "command-failed" in out
    assert "it ended with exit code 3" in out


def test_a_command_that_does_not_exist_is_an_error(capfd: Captured) -> None:
    code, _, error = footprint(capfd, "watch", "--", "/nowhere/at-all")
    assert code == 3
    assert "/nowhere/at-all: it cannot be started: No such file or directory" in error


def test_without_rights_short_processes_are_counted_as_not_seen(
    growing: int, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: KernelEvents, **_options: object) -> None:
        raise PermissionError

    monkeypatch.setattr(KernelEvents, "__init__", refused)
    code, out, _ = footprint(capfd, "watch", "--tree", str(growing), "--for", "300ms", "--every", "100ms")
    # Nobody can tell whether it grows.
    assert code == 4
    assert re.search(r"starts not seen [0-9,]+ of [0-9,]+ on the whole machine; by looking: short ones may be", out)


def test_a_watch_that_was_too_short_does_not_pass_a_gate_unless_that_is_accepted(folder: Path, capfd: Captured) -> None:
    short = series(folder / "short.fps", {0: 10, 1: 11})
    code, out, _ = footprint(capfd, "watch", "--replay", short, "--fail-on-growth", "1GiB/h")
    assert code == 1
    assert out.endswith(
        "Failed: server 4711 was watched too short to tell whether it grows; its peak is at least 11 MiB. Not told: it "
        "was watched too short to tell whether it grows (--accept too-short accepts that)."
    )
    code, _, error = footprint(capfd, "watch", "--replay", short, "--fail-on-growth", "1GiB/h", "--json")
    assert (code, error) == (
        1,
        "footprint: it was watched too short to tell whether it grows (--accept too-short accepts that)\n",
    )
    words = ("watch", "--replay", short, "--fail-on-growth", "1GiB/h", "--accept")
    assert footprint(capfd, *words, "too-short")[0] == 0
    assert footprint(capfd, *words, "short")[0] == 2


def test_a_series_without_its_end_is_a_note_and_fails_a_gate(folder: Path, capfd: Captured) -> None:
    whole = Path(series(folder / "whole.fps", dict.fromkeys(range(20), 10)))
    cut = folder / "cut.fps"
    cut.write_bytes(whole.read_bytes().rpartition(b'{"closed"')[0][:-9])
    code, out, _ = footprint(capfd, "watch", "--replay", str(cut))
    assert code == 0
    assert f"series-cut: {cut}: it has no end: its watch was killed, or still goes on; it reaches to 18 s" in out
    assert footprint(capfd, "watch", "--replay", str(whole), "--fail-on-growth", "1MiB/h")[0] == 0
    assert footprint(capfd, "watch", "--replay", str(cut), "--fail-on-growth", "1MiB/h")[0] == 1
    accepted = ("--fail-on-growth", "1MiB/h", "--accept", "cut")
    assert footprint(capfd, "watch", "--replay", str(cut), *accepted)[0] == 0


def test_growth_beyond_a_rate_fails(folder: Path, capfd: Captured) -> None:
    leak = series(folder / "leak.fps", {at: 10 + at for at in range(60)})
    assert footprint(capfd, "watch", "--replay", leak, "--fail-on-growth", "1GiB/h")[0] == 1
    assert footprint(capfd, "watch", "--replay", leak, "--fail-on-growth", "4 GiB/h")[0] == 0
    code, _, error = footprint(capfd, "watch", "--replay", leak, "--fail-on-growth", "1MiB/s", "--json")
    assert code == 0  # 1 MiB/s is what it grows by, not more
    code, _, error = footprint(capfd, "watch", "--replay", leak, "--fail-on-growth", "60KiB/s", "--json")
    assert (code, error) == (1, "footprint: grows 3.52 GiB/h\n")
    plateau = series(folder / "plateau.fps", {at: 10 + min(at, 15) for at in range(60)})
    assert footprint(capfd, "watch", "--replay", plateau, "--fail-on-growth", "1B/h")[0] == 0


def test_a_report_has_no_escape_codes_of_foreign_names(folder: Path, capfd: Captured) -> None:
    path = series(folder / "x.fps", dict.fromkeys(range(20), 10), "\x1b[31mred\nline")
    first = Path(path).read_bytes().replace(b'"4711"', b'"\\u001b[31mx"', 1)
    Path(path).write_bytes(first + line_of(Came(19_500, 2, 4712, 1, "\x1b[2J")))
    for words in ([], ["--json"], ["--format", "csv"], ["--format", "openmetrics"], ["--format", "markdown"]):
        code = main(["watch", "--replay", path, *words])
        assert code == 0
        assert "\x1b" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "name what to watch"),
        (["1", "--", "true"], "name PIDs, or a program after --"),
        (["99999999999"], "not a PID|process ID"),
        (["1", "--every", "1"], "not a time"),
        (["1", "--every", "1ms"], "no time between two ticks"),
        (["1", "--for", "0s"], "no time to watch for"),
        (["1", "--keep", "5M"], "ambiguous"),
        (["1", "--listen", "9123"], "is no address to listen at"),
        (["1", "--fail-on-growth", "1MiB"], "not a rate"),
        (["1", "--fail-on-growth", "1MiB/year"], "not a rate"),
        (["--replay", "x.fps", "1"], "it watches nothing else"),
    ],
)
def test_wrong_words_are_wrong_use(words: list[str], cause: str, capfd: Captured) -> None:
    code, _, error = footprint(capfd, "watch", *words)
    assert code in {2, 3}
    assert re.search(cause, error)


def test_a_file_that_is_no_series_is_an_error(folder: Path, capfd: Captured) -> None:
    (folder / "x.fps").write_text("{}\n")
    code, _, error = footprint(capfd, "watch", "--replay", "x.fps")
    assert code == 3
    assert "x.fps: line 1 is no record of a series" in error


def test_a_kill_leaves_a_series_that_is_read(growing: int, folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "footprint", "watch", str(growing), "--every", "50ms", "-o", "x.fps"]
    path = folder / "x.fps"
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment) as watch:
        end = time.monotonic() + 60
        while (not path.exists() or path.read_bytes().count(b'"figures"') < 3) and time.monotonic() < end:
            time.sleep(0.02)
        watch.kill()
    records = list(read_series(path.read_bytes(), "x.fps"))
    assert isinstance(records[0], Began)
    assert sum(isinstance(record, Sampled) for record in records) >= 3


def test_a_terminal_is_drawn_anew_and_left_as_it_was(growing: int) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(slave)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    words = [sys.executable, "-m", "footprint", "watch", str(growing), "--every", "50ms"]
    seen = b""
    with subprocess.Popen(words, stdin=slave, stdout=slave, env=environment) as watch:
        for key, answer in ((b"s", b"s: sort (by peak)"), (b"q", b"its peak is")):
            end = time.monotonic() + 60
            while b"q: end" not in seen and time.monotonic() < end:
                seen += os.read(master, 65536)
            os.write(master, key)
            while answer not in seen and time.monotonic() < end:
                seen += os.read(master, 65536)
            assert answer in seen
    assert watch.returncode == 0
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1
    assert termios.tcgetattr(slave)[:6] == before[:6]
    os.close(slave)
    os.close(master)


def test_an_interrupt_ends_the_watch_with_its_report(growing: int) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "footprint", "watch", str(growing), "--every", "50ms"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as watch:
        assert watch.stdout is not None
        for _ in range(3):
            watch.stdout.readline()
        watch.send_signal(2)
        rest = watch.stdout.read()
    assert watch.returncode == 0
    assert "footprint watch:" in rest
    assert "its peak is" in rest


@pytest.mark.usefixtures("kept")
def test_budgets_limit_the_peak_the_growth_and_the_number_of_processes(folder: Path, capfd: Captured) -> None:
    (folder / "footprint.toml").write_text(
        "[budgets]\npeak_bytes = '1 GiB'\nusual_most_bytes = '1 GiB'\nmost_process_count = 1\n"
    )
    assert footprint(capfd, "check", "x.fps")[0] == 0
    (folder / "footprint.toml").write_text(
        "[budgets]\npeak_bytes = '4 MiB'\nhourly_growth_bytes = '1 MiB'\nmost_process_count = 0\n"
    )
    code, out, _ = footprint(capfd, "check", "x.fps")
    assert code == 1
    for name in ("peak_bytes", "hourly_growth_bytes", "most_process_count"):
        assert f"Exceeded: {name} " in out


@pytest.mark.usefixtures("kept")
def test_a_saved_audit_has_no_growth(folder: Path, capfd: Captured) -> None:
    assert footprint(capfd, "audit", "x.fps@start", "-o", "now.json")[0] == 0
    (folder / "footprint.toml").write_text("[budgets]\nhourly_growth_bytes = '1 MiB'\n")
    code, _, error = footprint(capfd, "check", "now.json")
    assert code == 2
    assert "only a series has it: make one with `footprint watch PID -o FILE.fps`" in error


@pytest.mark.usefixtures("kept")
def test_the_cost_of_n_is_that_of_ninety_five_percent_of_the_time(capfd: Captured) -> None:
    code, out, _ = footprint(capfd, "audit", "x.fps", "-n", "10")
    assert code == 0
    assert "x.fps@95%" in out
    assert "10 processes cost" in out


@pytest.mark.usefixtures("kept")
def test_a_profile_says_who_asked_for_the_heap_at_the_end(capfd: Captured) -> None:
    profile = str(ROOT / "sample_binaries" / "heap_by_function" / "massif.out")
    code, out, _ = footprint(capfd, "watch", "--replay", "x.fps", "--heap", profile)
    assert code == 0
    assert "massif.out" in out
    assert json.loads(footprint(capfd, "watch", "--replay", "x.fps", "--heap", profile, "--json")[1])["heap_account"]
    assert json.loads(footprint(capfd, "watch", "--replay", "x.fps", "--json")[1])["heap_account"] is None
    code, _, error = footprint(capfd, "watch", "--tree", "1", "--heap", profile)
    assert (code, error) == (2, "footprint: --heap goes with one process\n")


def test_a_clock_that_jumps_is_one_note_and_changes_no_time(
    growing: int, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = chain(repeat(0.0, 3), repeat(3600.0))
    monkeypatch.setattr(session, "_clock_difference", lambda: next(differences))
    code, out, _ = footprint(capfd, "watch", str(growing), "--for", "300ms", "--every", "50ms", "--accept", "too-short")
    assert code == 0
    assert out.count("clock-set") == 1
    assert "the clock was set by +3600 s: times here go on without it" in out
    assert re.search(r"Watched for ([3-9][0-9]{2} ms|[0-9.]+ s)", out)


@pytest.mark.parametrize(
    ("refused", "kept"),
    [(b"", None), (b'"closed"', "Kept in part in x.fps.")],
    ids=["from the start", "at the end"],
)
def test_a_full_disk_is_one_note_and_the_report_follows(
    refused: bytes, kept: str | None, growing: int, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if refused in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    code, out, _ = footprint(capfd, "watch", str(growing), "--for", "300ms", "--every", "100ms", "-o", "x.fps")
    assert code == 0
    assert out.count("series-incomplete") == 1
    assert "its peak is" in out
    assert kept in out if kept else "Kept" not in out
    code, out, _ = footprint(capfd, "watch", str(growing), "--for", "100ms", "--json", "-o", "y.fps")
    assert (code, json.loads(out)["target"]["series"]) == (0, "y.fps" if kept else None)
