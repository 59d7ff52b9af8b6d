"""The peak of a program and all that it starts: how much, held by whom, when; and a second run that stops there."""

import glob
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from footprint.errors import AccessError, UsageError
from footprint.formats.text import plain
from footprint.model.over_time import Peak
from footprint.model.row import Evidence
from footprint.process.cgroup import make_group, read_memory_controller
from footprint.process.launch.moment import When
from footprint.process.launch.peak import PeakWatch
from footprint.verbs.run.call import run
from footprint.verbs.run.json import run_members, run_metrics
from footprint.verbs.run.result import RunResult
from footprint.verbs.run.text import run_document
from tests.liveprocesses import is_ptrace_allowed, wait_until

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not is_ptrace_allowed(), reason="ptrace is not allowed here")


def holding(size_mib: int, until: Path | None = None) -> list[str]:
    """Return a program that fills memory, keeps it until a file is there, if one is named, and frees it."""
    code = f"import os, time; kept = b'x' * ({size_mib} << 20)"
    if until is not None:
        code += f"; [time.sleep(0.01) for _ in range(6000) if not os.path.exists('{until}')]"
    return [sys.executable, "-ISc", f"{code}; del kept"]


def script(*commands: list[str], between: str = ";") -> list[str]:
    """Return a shell that runs programs, one after the other or at once."""
    words = [" ".join(f"'{word.replace(chr(39), chr(34))}'" for word in command) for command in commands]
    return ["sh", "-c", f"{between.join(words)}{'; wait' if between == '&' else '; true'}"]


def peak_of(ran: RunResult) -> Peak:
    assert ran.peak is not None
    return ran.peak


def has_group() -> bool:
    try:
        with make_group(keeps_limits=True):
            return True
    except AccessError:
        return False


needs_group = pytest.mark.skipif(not has_group(), reason="no memory cgroup can be made here")


@pytest.fixture
def when_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Path]:
    """Return what names a file that the first run makes once a look has seen so many processes hold so much."""
    file, look, begin, runs = tmp_path / "seen", PeakWatch.look, PeakWatch.begin, []

    def beginning(watch: PeakWatch, pid: int, *, adopter: int | None) -> None:
        runs.append(watch)
        file.unlink(missing_ok=True)
        begin(watch, pid, adopter=adopter)

    def until(count: int, size_mib: int) -> Path:
        def looking(watch: PeakWatch, *, is_forced: bool = False) -> None:
            look(watch, is_forced=is_forced)
            sizes = [holder.resident_bytes for holder in watch.result().holders]
            if len(runs) == 1 and sum(size >= size_mib * MIB for size in sizes) >= count:
                file.touch()

        monkeypatch.setattr(PeakWatch, "begin", beginning)
        monkeypatch.setattr(PeakWatch, "look", looking)
        return file

    return until


@pytest.fixture
def no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no cgroup, as where one may not be made."""
    monkeypatch.setattr("footprint.process.launch.group_with_limits", lambda _opened: None)


@needs_group
def test_the_peak_of_a_program_that_frees_all_is_told_by_its_cgroup() -> None:
    ran = run(holding(100))
    peak = peak_of(ran)
    assert 100 * MIB <= peak.peak_bytes <= 116 * MIB
    assert peak.source in {"memory.peak", "memory.max_usage_in_bytes"}
    assert peak.evidence in {Evidence.MEASURED, Evidence.DERIVED}
    assert peak.holders[0].pid == ran.audit.pid
    assert ran.start.read_at_bytes < 20 * MIB
    assert ran.start.explained_bytes is not None
    assert ran.start.explained_bytes < 20 * MIB


@needs_group
def test_children_one_after_the_other_do_not_add_up(when_seen: Callable[[int, int], Path]) -> None:
    # What a child holds is read while it runs.
    ran = run(script(holding(60), holding(100, when_seen(1, 100)), holding(60)))
    peak = peak_of(ran)
    assert 100 * MIB <= peak.peak_bytes <= 125 * MIB
    assert "100 <<" in peak.holders[0].command
    assert peak.holders[0].resident_bytes >= 100 * MIB
    assert [note.slug for note in ran.notes] == ["freed-before-exit"]


@needs_group
def test_children_at_one_time_add_up(when_seen: Callable[[int, int], Path]) -> None:
    both = when_seen(2, 60)
    ran = run(script(holding(60, both), holding(60, both), between="&"))
    assert 120 * MIB <= peak_of(ran).peak_bytes <= 160 * MIB
    assert sum(holder.resident_bytes >= 60 * MIB for holder in peak_of(ran).holders) == 2


@needs_group
def test_page_cache_is_no_part_of_the_peak(tmp_path: Path) -> None:
    code = "import sys; f = open(sys.argv[1], 'wb'); [f.write(b'x' * (1 << 20)) for _ in range(200)]"
    peak = peak_of(run([sys.executable, "-ISc", code, str(tmp_path / "file")]))
    assert peak.peak_bytes <= 40 * MIB


@needs_group
@pytest.mark.parametrize("is_child", [False, True])
def test_what_the_kernel_kills_for_want_of_memory_is_told_with_its_owners(*, is_child: bool) -> None:
    code = "import time\nkept = []\nfor _ in range(400): kept.append(bytearray(1 << 20)); time.sleep(0.002)"
    command = [sys.executable, "-ISc", code]
    if is_child:
        command = ["sh", "-c", '"$@"; exit 7', "sh", *command]
    with make_group() as group:
        name = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
        Path(group.path, name).write_text(str(128 * MIB))
        enter = ["sh", "-c", f'echo $$ >{group.path}/cgroup.procs; exec "$@"', "sh"]
        footprint = [sys.executable, "-m", "footprint", "run", "--json", "--"]
        done = subprocess.run([*enter, *footprint, *command], capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    (failure, *_) = answer["run"]["failures"]
    assert failure["kind"] == "memory"
    assert failure["detail"].startswith(
        "the kernel killed a process that it" if is_child else "the kernel killed it for"
    )
    assert "128 MiB" in failure["detail"]
    assert answer["run"]["signal"] == (None if is_child else "SIGKILL")
    assert answer["run"]["peak"]["audited_bytes"] > 0.85 * answer["run"]["peak"]["peak_bytes"]
    owners = {row["owner"]: row["bytes"] for row in answer["ledger"]}
    assert owners["[mapped blocks]"] > 60 * MIB


@pytest.mark.usefixtures("no_group")
def test_without_a_cgroup_the_kernels_peak_of_the_process_is_told() -> None:
    ran = run(holding(100))
    peak = peak_of(ran)
    assert (peak.source, peak.evidence) == ("VmHWM", Evidence.DERIVED)
    assert 100 * MIB <= peak.peak_bytes <= 116 * MIB
    assert peak.holders[0].pid == ran.audit.pid


@pytest.mark.usefixtures("no_group")
@pytest.mark.parametrize("when", ["exit", "peak"])
def test_without_a_cgroup_the_audit_explains_the_peak_and_no_more(when: str) -> None:
    # `ls` maps a megabyte of files, and holds a fifth of it in memory of its own.
    ran = run(["ls", "/"], when=when)
    peak = peak_of(ran)
    assert peak.page_cache_bytes > peak.peak_bytes
    assert ran.start.explained_bytes is not None
    # Two starts differ by a few pages of stack and heap, whose places are chosen at random.
    assert ran.start.explained_bytes == pytest.approx(peak.peak_bytes, abs=16384)


@pytest.mark.usefixtures("no_group")
def test_without_a_cgroup_children_at_one_time_add_up(when_seen: Callable[[int, int], Path]) -> None:
    both = when_seen(2, 60)
    peak = peak_of(run(script(holding(60, both), holding(60, both), between="&")))
    assert (peak.source, peak.evidence) == ("VmRSS", Evidence.ESTIMATED)
    assert 120 * MIB <= peak.peak_bytes <= 160 * MIB


@pytest.mark.usefixtures("no_group")
def test_the_copy_of_footprint_that_becomes_the_program_is_no_part_of_the_peak() -> None:
    peak = peak_of(run(["true"]))
    assert peak.peak_bytes < 4 * MIB
    assert "true" in peak.holders[0].command


@pytest.mark.usefixtures("no_group")
def test_no_child_is_missed_when_they_are_followed() -> None:
    ran = run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; exit 3"], follow=True)
    assert peak_of(ran).process_count >= 11
    assert ran.start.exit_code == 3


def test_a_followed_process_stops_continues_and_is_ended_as_ever() -> None:
    code = "sleep 9876543 & kill -STOP $!; kill -CONT $!; kill -TERM $!; wait $!; exit $?"
    assert run(["sh", "-c", code], follow=True).start.exit_code == 128 + signal.SIGTERM


def test_the_second_run_is_stopped_near_the_peak_of_the_first(when_seen: Callable[[int, int], Path]) -> None:
    ran = run(script(holding(20), holding(100, when_seen(1, 100)), holding(20)), when="peak")
    assert (ran.when, ran.start.moment) == ("peak", When.PEAK)
    assert ran.start.read_at_bytes >= 0.9 * peak_of(ran).peak_bytes
    assert ran.audit.totals.private.bytes is not None
    assert ran.audit.totals.private.bytes >= 95 * MIB
    assert "100 <<" in ran.audit.command
    assert ran.start.explained_bytes is not None
    assert ran.start.explained_bytes >= 0.9 * peak_of(ran).peak_bytes
    (shell,) = ran.start.children
    assert shell.command.startswith("sh -c")


@needs_group
def test_a_peak_of_some_milliseconds_is_held_by_the_kernel() -> None:
    code = "kept = b'x' * (12 << 20); del kept"
    ran = run([sys.executable, "-ISc", code], when="peak")
    assert ran.start.read_at_bytes >= 0.88 * peak_of(ran).peak_bytes
    assert ran.start.explained_bytes is not None
    assert ran.start.explained_bytes >= 0.85 * peak_of(ran).peak_bytes


def test_a_peak_that_does_not_come_again_is_told(tmp_path: Path) -> None:
    code = (
        f"import os; seen = os.path.exists({str(tmp_path / 'seen')!r}); open({str(tmp_path / 'seen')!r}, 'w'); "
        "kept = b'x' * ((10 if seen else 100) << 20)"
    )
    ran = run([sys.executable, "-ISc", code], when="peak")
    assert "peak-missed" in [note.slug for note in ran.notes]
    assert peak_of(ran).peak_bytes >= 100 * MIB
    assert ran.start.read_at_bytes < 40 * MIB


AT_PEAK = [sys.executable, "-m", "footprint", "run", "--when", "peak", "--json", "--"]
READING = "import sys, time; kept = sys.stdin.buffer.read() * 40; time.sleep(0.5)"


def test_each_run_reads_a_file_as_input_from_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(2 * MIB))
    command = [
        sys.executable,
        "-m",
        "footprint",
        "run",
        "--when",
        "peak",
        "--json",
        "--",
        sys.executable,
        "-c",
        READING,
    ]
    with (tmp_path / "input").open("rb") as given:
        done = subprocess.run(command, stdin=given, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["run"]["peak"]["read_at_bytes"] >= 70 * MIB
    assert "peak-no-input" not in [note["slug"] for note in answer["notes"]]


def test_a_pipe_as_input_is_read_by_the_first_run_alone_and_a_note_says_so() -> None:
    # Without input it may not come near its peak again, which is a failure of its own.
    done = subprocess.run([*AT_PEAK, "cat"], input=b"x", capture_output=True, check=False)
    assert "peak-no-input" in [note["slug"] for note in json.loads(done.stdout)["notes"]]


def test_massif_finds_the_peak_by_itself() -> None:
    with pytest.raises(UsageError, match="massif finds the peak"):
        run(["true"], when="peak", has_massif=True)


def test_the_peak_is_in_every_form_of_the_answer() -> None:
    ran = run(holding(50))
    members: Any = run_members(ran, "1")
    assert members["run"]["peak"]["peak_bytes"] == peak_of(ran).peak_bytes
    assert members["run"]["peak"]["holders"][0]["pid"] == ran.audit.pid
    (family,) = [run_metric for run_metric in run_metrics(ran) if run_metric.name == "peak"]
    assert family.samples[0].value == peak_of(ran).peak_bytes


@needs_group
@pytest.mark.parametrize(
    ("read_at_percent", "explained_percent", "hint"),
    [(40, 30, "; --when peak explains it"), (100, 60, "; the kernel charges up to 63 pages"), (100, 95, "")],
)
def test_the_peak_is_advised_only_where_less_was_held(read_at_percent: int, explained_percent: int, hint: str) -> None:
    ran = run(["true"])
    peak = peak_of(ran)._replace(peak_bytes=round((ran.start.explained_bytes or 0) * 100 / explained_percent))
    start = replace(ran.start, read_at_bytes=peak.peak_bytes * read_at_percent // 100)
    text = " ".join(plain(run_document(replace(ran, start=start, peak=peak))).split())
    assert f"{explained_percent}.0 % of the peak{hint}" in text
    assert ("--when peak explains it" in text) is ("--when" in hint)


@needs_group
def test_a_killed_footprint_leaves_no_process_and_the_next_one_removes_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [sys.executable, "-m", "footprint", "run", "--", "sleep", "98765432"]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    controller = read_memory_controller()
    assert controller is not None
    pattern = [f"{parent}/footprint-{killed.pid}-*" for parent in controller.limiting_parents]

    def groups() -> list[str]:
        return [path for one in pattern for path in glob.glob(one)]

    def is_filled() -> bool:
        return any(Path(path, "cgroup.procs").read_text() for path in groups())

    wait_until(is_filled, "a process in the group")
    killed.kill()
    killed.wait()
    wait_until(lambda: not is_filled(), "the end of the group's processes")
    monkeypatch.setattr("footprint.process.cgroup._STALE_SECONDS", 0.0)
    with make_group(keeps_limits=True):
        assert groups() == []
