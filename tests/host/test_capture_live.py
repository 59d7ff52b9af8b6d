"""Captures of running programs: the same rows as the live process, which runs on as if nothing had been."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.errors import AccessError, Note, UnsupportedError, UsageError
from footprint.model.audit import Audit
from footprint.model.row import Attribution
from footprint.process.capture import read_capture, read_findings_of_capture
from footprint.process.origin import read_placement
from footprint.process.snapshot import Snapshot, read_process, with_address_spaces, with_held_files
from footprint.sources.process_files import images_of
from footprint.verbs.capture.call import capture
from tests.liveprocesses import DyingOS, resting, states, wait_until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="this kernel has no smaps")

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
TRIES = 20
# Before which of them a process may end.
SYSTEM_CALLS = frozenset({"open", "read", "pread", "listdir", "stat", "pidfd_open"})
# For each line that it is told it maps memory, and says so.
MAPPING = (
    "import mmap, sys\nkept = []\nfor _ in sys.stdin: kept.append(mmap.mmap(-1, 1 << 20)); print('done', flush=True)"
)
SPINNING = (
    "import threading\ndef spin():\n    while True: pass\nfor _ in range(3): threading.Thread(target=spin).start()"
)

Child = subprocess.Popen[bytes]
Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program, and kill it in the end."""
    children: list[Child] = []

    def start_one(*command: str | Path) -> Child:
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return children[-1]

    yield start_one
    for child in children:
        child.kill()
        child.communicate()


def start_python(start: Start, code: str) -> Child:
    """Start a Python that says `ready`, and then runs some code."""
    child = start(sys.executable, "-c", f"print('ready', flush=True)\n{code}")
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.fixture
def sleeper(start: Start) -> int:
    return resting(start("sleep", "3600").pid)


def stop(pid: int) -> int:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: states(pid) == {"T"}, f"process {pid} to stop")
    return pid


def read(path: Path) -> tuple[Snapshot, ...]:
    return read_capture(path.read_bytes(), str(path))


# --- the same facts ---------------------------------------------------------------------------------------------------


# A live process is read inside: what its allocator has, and where its threads have their variables.
INSIDE = {"[heap]", "[malloc arenas]", "[mapped blocks]", "[anonymous]", "[thread stacks]"}


def facts_of(audit: Audit) -> dict[str, object]:
    """Return what an audit says, but for where it was read."""
    names = ("pid", "command", "source", "mapping_count", "page_bytes", "host", "totals", "projection")
    found = {name: getattr(audit, name) for name in names} | {"notes": [(one.slug, one.detail) for one in audit.notes]}
    found["allocator"] = audit.allocator and audit.allocator._replace(captured_at=None)
    inside = [row for row in audit.ledger if row.owner in INSIDE or row.attribution is Attribution.THREAD_VECTOR]
    found["ledger"] = tuple(row for row in audit.ledger if row not in inside)
    found["inside"] = sum(row.bytes or 0 for row in inside), sum(row.mapped_bytes for row in inside)
    return found


PROGRAMS = {
    "sleep": ["sleep", "3600"],
    "python": [
        sys.executable,
        "-c",
        "import ssl, sqlite3, threading, time; t = threading.Timer(3600, print); t.start()",
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_audit_of_a_capture_is_that_of_the_live_process_row_by_row(
    start: Start, tmp_path: Path, program: str
) -> None:
    pid = resting(start(*PROGRAMS[program]).pid)
    while True:
        # Only the kernel itself can change a process that rests: it merges pages in its own time.
        before = facts_of(footprint.audit(pid))
        capture(pid, output=str(tmp_path / "file.capture"), freeze=True)
        saved = facts_of(footprint.audit(str(tmp_path / "file.capture")))
        if facts_of(footprint.audit(pid)) == before:
            break
    for name, fact in before.items():
        assert saved[name] == fact, name
    assert saved["notes"] == []
    assert saved["allocator"] is not None


def read_together(pid: int) -> Snapshot:
    """Read a process with what it has open, as for an audit of several."""
    (snapshot,) = with_address_spaces(with_held_files([read_process(pid)]))
    return snapshot


def test_a_snapshot_that_is_read_back_is_the_one_that_was_read(sleeper: int, tmp_path: Path) -> None:
    stop(sleeper)
    left_out = {
        "source",
        "is_live",
        "files",
        "found_memory_files",
        "captured_heap",
        "capture_host",
        "placement",
    }
    # Another process that maps the same files, and ends before the second look, changes the shares (Pss) in between.
    different = ["it never stood still"]
    for _ in range(TRIES):
        live = read_together(sleeper)
        capture(sleeper, output=str(tmp_path / "file.capture"))
        (saved,) = read(tmp_path / "file.capture")
        if read_together(sleeper) != live:
            continue
        different = [
            name for name in Snapshot._fields if name not in left_out and getattr(saved, name) != getattr(live, name)
        ]
        assert {*different} <= {"memory", "rollup"}  # what has shares
        if not different:
            break
    assert different == []
    assert saved.placement == read_placement(sleeper)
    assert saved.capture_host is not None
    assert saved.capture_host.name == os.uname().nodename
    assert saved.capture_host.processor_count == os.cpu_count()
    assert not saved.is_live
    assert saved.status is not None
    assert saved.status.state == "T"


def test_the_mappings_of_a_capture_have_their_owners(sleeper: int, tmp_path: Path) -> None:
    capture(sleeper, output=str(tmp_path / "file.capture"), freeze=True)
    saved, live = footprint.maps(str(tmp_path / "file.capture")), footprint.maps(sleeper)
    assert [part[1:6] for part in saved.parts] == [part[1:6] for part in live.parts]
    assert saved.notes == ()


def test_build_ids_and_sizes_are_those_of_readelf_and_of_the_files(start: Start, tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is missing")
    pid = resting(start(*PROGRAMS["python"]).pid)
    capture(pid, output=str(tmp_path / "file.capture"))
    (saved,) = read(tmp_path / "file.capture")
    known_count = 0
    for (_, inode, path), facts in saved.files.items():
        assert (os.stat(path).st_ino, os.stat(path).st_size) == (inode, facts.size_bytes)
        told = subprocess.run(["readelf", "-n", path], capture_output=True, check=False).stdout.decode()
        match = re.search(r"Build ID: ([0-9a-f]+)", told)
        assert facts.build_id == (match and match[1])
        known_count += match is not None
    assert known_count or not any(".so" in path for _, _, path in saved.files)


def test_thirty_thousand_mappings_are_written_and_read(start: Start, tmp_path: Path) -> None:
    if int(Path("/proc/sys/vm/max_map_count").read_bytes()) < 32_000:
        pytest.skip("this machine allows fewer mappings")
    code = (
        "import ctypes, mmap\n"
        "area = mmap.mmap(-1, 30_000 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "start = ctypes.addressof(ctypes.c_char.from_buffer(area))\n"
        "for page in range(0, 30_000, 2):\n"
        "    area[page * mmap.PAGESIZE] = 1\n"
        "    ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + page * mmap.PAGESIZE), ctypes.c_size_t(1), 0)\n"
        "print('done', flush=True); input()"
    )
    child = start_python(start, code)
    assert child.stdout is not None
    assert child.stdout.readline() == b"done\n"
    done = capture(child.pid, output=str(tmp_path / "file.capture"), freeze=True)
    assert done.mapping_count > 30_000
    (saved,) = read(tmp_path / "file.capture")
    assert len(saved.memory.mappings) == done.mapping_count
    assert saved.pages is None or len(saved.pages) > 15_000
    assert done.size_bytes == os.stat(tmp_path / "file.capture").st_size < 4 << 20


# --- standing still ---------------------------------------------------------------------------------------------------


def test_a_frozen_process_stands_still_while_it_is_read_and_runs_on_afterwards(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start_python(start, SPINNING)
    wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 4, "its threads to spin")
    seen = []

    def reading(pid: int, *words: object) -> Snapshot:
        seen.append(states(pid))
        return read_process(pid, *words)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr("footprint.process.capture.read_process", reading)
    capture(child.pid, output=str(tmp_path / "file.capture"), freeze=True)
    assert seen == [{"t"}]
    wait_until(lambda: "R" in states(child.pid), "its threads to spin on")
    manifest = json.loads(members(tmp_path / "file.capture")["footprint-capture.json"])
    assert [process["is_frozen"] for process in manifest["processes"]] == [True]


def members(path: Path) -> dict[str, bytes]:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(("together", "stopped"), [(False, [1, 1, 1]), (True, [3, 3, 3])])
def test_processes_are_stopped_one_after_the_other_or_all_together(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: list[int], *, together: bool
) -> None:
    pids = [resting(start("sleep", "3600").pid) for _ in range(3)]
    seen = []

    def reading(pid: int, *words: object) -> Snapshot:
        assert states(pid) == {"t"}
        seen.append(sum(states(one) == {"t"} for one in pids))
        return read_process(pid, *words)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr("footprint.process.capture.read_process", reading)
    capture(*pids, output=str(tmp_path / "file.capture"), freeze=True, together=together)
    assert seen == stopped


def test_a_process_that_was_stopped_before_stays_so(sleeper: int, tmp_path: Path) -> None:
    stop(sleeper)
    capture(sleeper, output=str(tmp_path / "file.capture"), freeze=True)
    assert states(sleeper) == {"T"}


KILLED = """
import os, signal, sys, footprint, footprint.process.capture as module
path, how, *pids = sys.argv[1:]
count = 0
def reading(pid, *words, read=module.read_process):
    global count
    count += 1
    if count == (len(pids) + 1) // 2:
        print("reading", flush=True)
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
    return read(pid, *words)
module.read_process = reading
footprint.capture(*map(int, pids), output=path, freeze=True, together=how == "together", longest_stop_seconds=60)
"""


@pytest.fixture
def killed_while_it_holds(tmp_path: Path) -> Callable[..., None]:
    """Return a function that kills a capture (SIGKILL) in the middle, after something is done meanwhile."""

    def run(pids: list[int], how: str, meanwhile: Callable[[], object]) -> None:
        command = [sys.executable, "-c", KILLED, str(tmp_path / "file.capture"), how, *map(str, pids)]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline() == b"reading\n"
            meanwhile()
            child.stdin.close()
            assert child.wait() == -signal.SIGKILL

    return run


@pytest.mark.parametrize("how", ["together", "one by one"])
def test_where_footprint_is_killed_two_hundred_processes_run_on(
    start: Start, killed_while_it_holds: Callable[..., None], how: str
) -> None:
    code = (
        "import os\n"
        "for _ in range(199): print(os.posix_spawnp('sleep', ['sleep', '600'], os.environ), flush=True)\n"
        "input()"
    )
    parent = start_python(start, code)
    assert parent.stdout is not None
    pids = [parent.pid, *(int(parent.stdout.readline()) for _ in range(199))]
    try:
        wait_until(lambda: all(states(pid) == {"S"} for pid in pids), "all to sleep")
        held: list[int] = []
        killed_while_it_holds(pids, how, lambda: held.extend(pid for pid in pids if states(pid) == {"t"}))
        assert len(held) == (200 if how == "together" else 1)
        wait_until(lambda: all(states(pid) == {"S"} for pid in pids), "all to run on")
    finally:
        for pid in pids[1:]:
            os.kill(pid, signal.SIGKILL)


def test_where_footprint_is_killed_the_signals_that_came_meanwhile_arrive(
    start: Start, killed_while_it_holds: Callable[..., None]
) -> None:
    code = (
        "import signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('got it', flush=True))\n"
        "print('set', flush=True); input()"
    )
    child = start_python(start, code)
    assert child.stdout is not None
    assert child.stdout.readline() == b"set\n"
    killed_while_it_holds([child.pid], "together", lambda: child.send_signal(signal.SIGUSR1))
    assert child.stdout.readline() == b"got it\n"


def test_where_footprint_is_killed_threads_run_on_and_a_stopped_process_stays_stopped(
    start: Start, sleeper: int, killed_while_it_holds: Callable[..., None]
) -> None:
    child = start_python(start, SPINNING)
    wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 4, "its threads to spin")
    stop(sleeper)
    seen: list[set[str]] = []
    killed_while_it_holds([child.pid, sleeper], "together", lambda: seen.append(states(child.pid)))
    assert seen == [{"t"}]
    wait_until(lambda: "R" in states(child.pid) and "t" not in states(child.pid), "its threads to spin on")
    assert states(sleeper) == {"T"}


def test_a_process_is_stopped_no_longer_than_asked_for(
    sleeper: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(pid: int, *words: object) -> Snapshot:
        found = read_process(pid, *words)  # type: ignore[arg-type] # as it was called
        wait_until(lambda: states(pid) == {"S"}, "it to run on while it is read")
        return found

    monkeypatch.setattr("footprint.process.capture.read_process", reading)
    done = capture(sleeper, output=str(tmp_path / "file.capture"), freeze=True, longest_stop_seconds=0.3)
    assert [note for note in done.notes if note.slug == "not-frozen"] == [
        Note("not-frozen", f"pid {sleeper}", "it was held for 0.3 s, the longest stop: it was read while it ran")
    ]
    manifest = json.loads(members(tmp_path / "file.capture")["footprint-capture.json"])
    assert [process["is_frozen"] for process in manifest["processes"]] == [False]


def test_a_process_that_a_debugger_traces_is_read_as_it_goes_on_and_that_is_noted(sleeper: int, tmp_path: Path) -> None:
    code = (
        "import sys, time; from footprint.process import freezer as stops\n"
        "pid = int(sys.argv[1]); stops.interrupt(pid)\n"
        "while open(f'/proc/{pid}/stat').read().split()[2] != 't': time.sleep(0.01)\n"
        "stops.cont(pid); print('traced', flush=True); input()\n"
    )
    command = [sys.executable, "-c", code, str(sleeper)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"traced\n"
        wait_until(lambda: states(sleeper) == {"S"}, "it to run on")
        done = capture(sleeper, output=str(tmp_path / "file.capture"), freeze=True)
        detail = f"process {tracer.pid} traces it, such as a debugger: it was read while it ran"
        assert done.notes == (Note("not-frozen", f"pid {sleeper}", detail),)
        tracer.kill()


@pytest.mark.parametrize(
    "options",
    [
        {"together": True},
        {"freeze": True, "longest_stop_seconds": 0},
        {"freeze": True, "longest_stop_seconds": float("nan")},
        {"freeze": True, "longest_stop_seconds": 3601},
    ],
)
def test_a_stop_without_end_or_without_freeze_is_wrong_use(
    sleeper: int, tmp_path: Path, options: dict[str, float]
) -> None:
    with pytest.raises(UsageError, match=r"only with freeze|the longest stop must be"):
        capture(sleeper, output=str(tmp_path / "file.capture"), **options)  # type: ignore[arg-type] # the cases
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("together", [False, True])
def test_after_an_error_every_process_runs_on(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    pids = [resting(start("sleep", "3600").pid) for _ in range(2)]
    monkeypatch.setattr("footprint.process.capture.parse_stat", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        capture(*pids, output=str(tmp_path / "file.capture"), freeze=True, together=together)
    wait_until(lambda: all(states(pid) == {"S"} for pid in pids), "both to run on")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP])
def test_a_signal_that_ends_footprint_is_put_off_until_the_process_runs_on(
    sleeper: int, tmp_path: Path, number: signal.Signals
) -> None:
    code = (
        "import os, signal, sys, footprint.process.capture as module, footprint.verbs.capture.call as verb\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # nohup ignores it
        "def reading(*words, read=module.read_process):\n"
        f"    os.kill(os.getpid(), {number.value})\n"
        "    print('still here', flush=True)\n"
        "    return read(*words)\n"
        "module.read_process = reading\n"
        "verb.capture(int(sys.argv[1]), output=sys.argv[2], freeze=True)\n"
    )
    command = [sys.executable, "-c", code, str(sleeper), str(tmp_path / "file.capture")]
    # In a process group of its own, whose parent is in another: the kernel ignores SIGTSTP in an orphaned group, and
    # the suite itself is in one where `setsid`, `nohup` or cron has started it.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"still here\n"
        if number is signal.SIGTSTP:
            wait_until(lambda: states(child.pid) <= {"T", "Z"}, "footprint to stop")
        else:
            assert child.wait() == -number
        wait_until(lambda: states(sleeper) == {"S"}, "it to run on")
        child.kill()
    assert not (tmp_path / "file.capture").exists()


def test_footprint_does_not_stop_itself(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot stop its own process"):
        capture(os.getpid(), output=str(tmp_path / "file.capture"), freeze=True)
    assert capture(os.getpid(), output=str(tmp_path / "file.capture")).pids == (os.getpid(),)


def test_a_process_that_does_not_stop_is_read_as_it_goes_on_and_that_is_noted(
    sleeper: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint.process.freezer._is_moving", lambda *_: True)
    done = capture(sleeper, output=str(tmp_path / "file.capture"), freeze=True, longest_stop_seconds=0.1)
    assert [note.slug for note in done.notes] == ["not-frozen"]
    assert [note.slug for note in footprint.audit(str(tmp_path / "file.capture")).notes] == ["not-frozen"]


def test_mappings_that_come_while_a_process_is_read_are_noted(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start_python(start, MAPPING)
    resting(child.pid)

    def reading(pid: int, *words: object) -> Snapshot:
        process = read_process(pid, *words)  # type: ignore[arg-type] # as it was called
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"map\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"done\n"
        return process

    monkeypatch.setattr("footprint.process.capture.read_process", reading)
    done = capture(child.pid, output=str(tmp_path / "file.capture"))
    assert [note.slug for note in done.notes] == ["changed-while-read"]
    assert re.match(r"its mappings changed while it was read: of \d+ \d+ are", done.notes[0].detail)
    assert footprint.audit(str(tmp_path / "file.capture")).notes == done.notes


# --- which processes --------------------------------------------------------------------------------------------------


def test_several_processes_stand_in_one_capture_each_once(start: Start, tmp_path: Path) -> None:
    pids = [resting(start("sleep", "3600").pid) for _ in range(3)]
    path = tmp_path / "file.capture"
    done = capture(*pids, pids[0], output=str(path), freeze=True)
    assert done.pids == tuple(pids)
    assert [one.pid for one in read(path)] == pids
    assert done.mapping_count == sum(len(one.memory.mappings) for one in read(path))
    for pid in pids:
        assert footprint.audit(str(path), pid=pid).pid == pid
        assert states(pid) == {"S"}
    assert [member.pid for member in footprint.audit(str(path)).members] == pids


@pytest.mark.parametrize("freeze", [False, True])
def test_of_several_processes_those_that_cannot_be_read_are_noted(
    sleeper: int, tmp_path: Path, *, freeze: bool
) -> None:
    gone = int(Path("/proc/sys/kernel/pid_max").read_bytes())  # the first number that no process is given
    done = capture(gone, sleeper, output=str(tmp_path / "file.capture"), freeze=freeze)
    assert done.pids == (sleeper,)
    assert [(note.slug, note.subject) for note in done.notes] == [("process-not-read", f"pid {gone}")]
    found = footprint.audit(str(tmp_path / "file.capture"))
    assert found.pid == sleeper
    assert f"pid {gone}" in [note.subject for note in found.notes if note.slug == "process-not-read"]


@pytest.mark.parametrize("freeze", [False, True])
def test_where_no_process_can_be_read_there_is_no_file(tmp_path: Path, *, freeze: bool) -> None:
    gone = int(Path("/proc/sys/kernel/pid_max").read_bytes())
    for pids in ([gone], [gone, gone + 1]):
        with pytest.raises(AccessError, match=f"pid {gone}: .*no such process"):
            capture(*pids, output=str(tmp_path / "file.capture"), freeze=freeze)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("freeze", [False, True])
def test_kernel_threads_and_zombies_have_nothing_to_capture(start: Start, tmp_path: Path, *, freeze: bool) -> None:
    zombie = start("true").pid
    wait_until(lambda: states(zombie) == {"Z"}, "true to end")
    with pytest.raises(UnsupportedError, match="is a zombie"):
        capture(zombie, output=str(tmp_path / "file.capture"), freeze=freeze)
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_bytes() == b"kthreadd\n":
        with pytest.raises(UnsupportedError, match="kthreadd is a kernel thread"):
            capture(2, output=str(tmp_path / "file.capture"), freeze=freeze)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pid", [0, -1, 1 << 31])
def test_what_is_no_process_id_is_wrong_use(tmp_path: Path, pid: int) -> None:
    with pytest.raises(UsageError, match="is not a process ID"):
        capture(pid, output=str(tmp_path / "file.capture"))
    with pytest.raises(UsageError, match="name at least one process"):
        capture(output=str(tmp_path / "file.capture"))


@pytest.mark.parametrize("freeze", [False, True])
def test_a_process_that_is_killed_before_any_call_is_an_error_or_a_whole_capture(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, freeze: bool
) -> None:
    path = tmp_path / "file.capture"
    for calls in range(1000):
        child = start("sleep", "3600")

        def kill(child: Child = child) -> None:
            child.kill()
            child.wait()

        dying = DyingOS(calls, SYSTEM_CALLS, kill)
        for module in ("snapshot", "mappings", "pages", "freezer"):
            monkeypatch.setattr(f"footprint.process.{module}.os", dying)
        monkeypatch.setattr("footprint.process.pages.ioctl", dying.before(ioctl))
        try:
            capture(child.pid, output=str(path), freeze=freeze)
        except (AccessError, UnsupportedError):
            assert list(tmp_path.iterdir()) == []
        else:
            assert len(read(path)) == 1
            path.unlink()
        monkeypatch.undo()
        if dying.calls_left >= 0:
            break
    else:
        pytest.fail("a capture of a small process takes more than 1000 calls")


# --- its files, elsewhere ---------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(start: Start, tmp_path: Path) -> tuple[Snapshot, Path, str]:
    """Return a process whose program is gone from its path, a folder that has all its files, and the program's path."""
    program = shutil.which("sleep") or ""
    path = tmp_path / "bin" / "doze"
    path.parent.mkdir()
    shutil.copy(program, path)
    pid = resting(start(path, "3600").pid)
    capture(pid, output=str(tmp_path / "file.capture"), freeze=True)
    (saved,) = read(tmp_path / "file.capture")
    if saved.files[identity(saved, str(path))].build_id is None:
        pytest.skip("the programs of this machine have no build-ids")
    for _, _, name in saved.files:
        copy = Path(f"{tmp_path}/root{name}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, copy)
    path.unlink()
    return saved, tmp_path / "root", str(path)


def identity(snapshot: Snapshot, path: str) -> tuple[str | None, int | None, str]:
    return next(file for file in snapshot.files if file[2] == path)


def test_a_program_that_is_not_on_this_machine_is_found_below_the_folder(elsewhere: tuple[Snapshot, Path, str]) -> None:
    saved, root, path = elsewhere
    images, notes = images_of(saved)
    assert [(note.slug, note.subject) for note in notes] == [("file-not-found", path)]
    assert path not in {key.name for key in images}
    images, notes = images_of(saved, str(root))
    assert notes == ()
    assert path in {key.name for key in images}


def test_another_program_in_its_place_is_refused_by_its_build_id(elsewhere: tuple[Snapshot, Path, str]) -> None:
    saved, root, path = elsewhere
    shutil.copy(shutil.which("cat") or "", f"{root}{path}")
    images, notes = images_of(saved, str(root))
    assert [(note.slug, note.subject) for note in notes] == [("build-id-differs", path)]
    assert path not in {key.name for key in images}
    shutil.copy(f"{root}{path}", path)
    assert [note.slug for note in images_of(saved)[1]] == ["build-id-differs"]


def test_the_program_at_its_path_again_is_known_by_its_build_id_whatever_its_inode(
    elsewhere: tuple[Snapshot, Path, str],
) -> None:
    saved, root, path = elsewhere
    Path(path).with_name("other").write_bytes(b"")  # so that it does not get its old inode back
    shutil.copy(f"{root}{path}", path)
    assert images_of(saved)[1] == ()


# --- who reads it -----------------------------------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user may write to; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # noqa: S103 # that is what it is for
        yield Path(folder)


def test_an_ordinary_user_captures_its_own_processes_and_no_others(open_folder: Path) -> None:
    # Everything is imported, and used once, before the change of user, who may not read the interpreter's own files.
    code = (
        "import json, os, subprocess, sys, footprint\n"
        "from footprint.errors import AccessError\n"
        "from footprint.verbs.capture.call import capture\n"
        "path, other = sys.argv[1:]\n"
        "capture(os.getpid(), output=path); footprint.audit(path); os.unlink(path)\n"
        f"if os.geteuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "child = subprocess.Popen(['sleep', '3600'])\n"
        "try:\n"
        "    done = capture(child.pid, output=path, freeze=True)\n"
        "    audit = footprint.audit(path)\n"
        "    with open(f'/proc/{child.pid}/stat') as text: state = text.read().rpartition(') ')[2][0]\n"
        "finally:\n"
        "    child.kill(); child.wait()\n"
        "errors = []\n"
        "for freeze in (False, True):\n"
        "    try: capture(int(other), output=path + '2', freeze=freeze)\n"
        "    except AccessError as error: errors.append(str(error))\n"
        "print(json.dumps([audit.mapping_count, audit.totals.private.bytes, state, errors, os.listdir('.')]))\n"
    )
    other = os.getpid() if os.geteuid() == 0 else 1
    if os.stat(f"/proc/{other}").st_uid == os.geteuid() != 0:
        pytest.skip("this user owns process 1, too")
    done = subprocess.run(
        [sys.executable, "-c", code, str(open_folder / "file.capture"), str(other)],
        cwd=open_folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    mapping_count, private_bytes, state, errors, files = json.loads(done.stdout)
    assert mapping_count > 5
    assert private_bytes > 0
    assert state in "RSD"
    assert errors == [
        f"pid {other}: permission denied: only its own user or root (CAP_SYS_PTRACE) may read its memory",
        f"pid {other}: permission denied: only its own user or root (CAP_SYS_PTRACE) may read its memory",
    ]
    assert files == ["file.capture"]


def test_only_its_owner_may_read_the_file(sleeper: int, tmp_path: Path) -> None:
    path = tmp_path / "file.capture"
    path.write_bytes(b"what stood there before")
    path.chmod(0o666)
    capture(sleeper, output=str(path))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_an_error(sleeper: int, tmp_path: Path) -> None:
    for output in (f"{tmp_path}/nowhere/file.capture", str(tmp_path)):
        with pytest.raises(AccessError, match=r"No such file or directory|Is a directory"):
            capture(sleeper, output=output)
    assert list(tmp_path.iterdir()) == []


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[bytes]:
    code = "import sys, footprint.cli; sys.exit(footprint.cli.main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, env=environment, capture_output=True, check=False
    )


def test_the_command_says_on_standard_error_what_it_wrote(sleeper: int, tmp_path: Path) -> None:
    done = run("capture", str(sleeper), "-o", "file.capture", "--freeze", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    (saved,) = read(tmp_path / "file.capture")
    count = len(saved.memory.mappings)
    expected = rf"footprint: wrote 1 process with {count} mappings in [0-9.]+ KiB to file.capture\n"
    assert re.fullmatch(expected, done.stderr.decode())
    assert run("capture", str(sleeper), "-q", "-o", "file.capture", cwd=tmp_path).stderr == b""


def test_a_capture_goes_to_standard_output_where_asked(sleeper: int) -> None:
    done = run("capture", str(sleeper), "-o", "-")
    assert done.returncode == 0
    assert [one.pid for one in read_capture(done.stdout, "standard output")] == [sleeper]
    assert done.stderr.decode().endswith(" to standard output\n")


def test_the_command_without_a_file_or_a_process_is_wrong_use(sleeper: int) -> None:
    for words in (["capture", str(sleeper)], ["capture", "-o", "file"], ["capture", "0", "-o", "file"]):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, b"")
    assert run("capture", "4194305", "-o", os.devnull).returncode == 3


def test_notes_are_told_and_strict_makes_them_an_exit_code(sleeper: int, tmp_path: Path) -> None:
    gone = Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii").strip()
    for words, code in (([], 0), (["--strict"], 4)):
        done = run("capture", gone, str(sleeper), "-o", tmp_path / "file.capture", *words)
        assert done.returncode == code
        assert done.stderr.decode().startswith(f"footprint: process-not-read: pid {gone}: no such process\n")


def test_a_link_in_a_container_does_not_lead_to_a_file_of_the_host(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root")
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.write_text('image="of the host"\n')
    (root / "run").mkdir(parents=True)
    (root / "run" / ".containerenv").symlink_to(outside)
    code = f"import os; os.chroot({str(root)!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        led_out = read_placement(child.pid)
        (root / "run" / "inside").write_text('image="of the container"\n')
        (root / "run" / ".containerenv").unlink()
        (root / "run" / ".containerenv").symlink_to("/run/inside")
        stayed_in = read_placement(child.pid)
        child.communicate(b"\n")
    assert led_out.image is None
    assert stayed_in.image == "of the container"


def test_the_findings_of_a_capture_are_those_of_the_live_process_and_reach_the_fleet_without_its_files(
    start: Start, tmp_path: Path
) -> None:
    source = tmp_path / "main.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    (tmp_path / "unused.c").write_text("char table[40000] = {1};\nint unused(void) { return table[0]; }\n")
    library, program = tmp_path / "libunused.so", tmp_path / "program"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "unused.c"], check=True)
    flags = ["-Wl,--no-as-needed", f"-L{tmp_path}", "-lunused", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["gcc", "-O1", "-o", program, source, *flags], check=True)
    pids = [resting(start(program).pid) for _ in range(2)]
    captured = tmp_path / "captures" / "x.capture"
    captured.parent.mkdir()
    capture(*pids, output=captured, findings=True)
    live = [finding for finding in footprint.libraries(pids[0]).findings if finding.subject == "libunused.so"]
    found = read_findings_of_capture(captured.read_bytes(), str(captured))
    assert found.keys() == set(pids)
    for pid in pids:
        assert [finding for finding in found[pid] if finding.subject == "libunused.so"] == live
    assert live[0].saving_bytes > 0
    library.unlink()
    program.unlink()
    footprint.scan(captured, output=tmp_path / "fleet", worker_count=1)
    answer = footprint.fleet(tmp_path / "fleet", "unused")
    row = dict(zip(answer.result.columns, answer.result.rows[0], strict=True))
    assert (row["subject"], row["saving_bytes"]) == ("libunused.so", 2 * live[0].saving_bytes)
    assert answer.notes == ()


def test_a_process_that_ends_before_it_is_searched_is_captured_without_findings(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = start("sleep", "3600"), start("sleep", "3600")
    pids = [resting(child.pid) for child in (first, second)]
    store = footprint.process.capture._Writer.store_findings

    def after_its_end(*words: Any) -> list[Note]:  # noqa: ANN401 # as the method
        first.kill()
        first.wait()
        return store(*words)

    monkeypatch.setattr("footprint.process.capture._Writer.store_findings", after_its_end)
    captured = tmp_path / "x.capture"
    assert [note.slug for note in capture(*pids, output=captured, findings=True).notes] == ["process-not-searched"]
    assert len(read(captured)) == 2
    assert read_findings_of_capture(captured.read_bytes(), str(captured)).keys() == {pids[1]}
