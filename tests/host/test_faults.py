"""A matrix of verbs and faults: each ends with one line and its exit code, and leaves nothing half done behind.

Half done are: a file that is neither the old nor a whole new one, a temporary file, a child, a stopped process.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from footprint.verbs.commands import verb_names
from tests.debugpairs import BUILD_ID_PATH, debug, stripped
from tests.liveprocesses import status_of, wait_until

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_binaries" / "unused_library"
PROFILE = ROOT / "tests" / "corpus" / "heap" / "massif-3.19-default.out"
SMAPS = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
BEFORE = b"what stood there before\n"
FINE, EXCEEDED, WRONG_USE, UNREADABLE, FAILED_RUN, BROKEN_PIPE = 0, 1, 2, 3, 5, 141

LIVE: Final = {
    "audit": "audit PID -o OUT",
    "audit --json": "audit PID --json -o OUT",
    "audit --html": "audit PID -q --no-debug-files --html OUT",
    "audit --heap": "audit PID --heap PROFILE -o OUT",
    "capture": "capture PID -o OUT",
    "capture --freeze": "capture PID --freeze -o OUT",
    "audit --by mapping": "audit --by mapping PID -o OUT",
    "libraries": "libraries PID -o OUT",
    "duplicates": "duplicates PID --no-debug-files -o OUT",
    "audit -n": "audit PID -n 3 -o OUT",
    "diff": "diff PID PID -o OUT",
    "run": "run -o OUT -- PROGRAM",
    "run --when settled": "run --when settled --timeout 3 -o OUT -- SLEEP",
    "run --when peak": "run --when peak -o OUT -- PROGRAM",
    "whatif": "whatif --drop libcrypt_like.so --starts 1 -o OUT -- LINKED",
    "watch": "watch PID --for 300ms --every 100ms -o OUT",
    "doctor": "doctor -o OUT",
}
"""Verbs that read something live."""
SAVED: Final = {
    "audit of a program": "audit PROGRAM -o OUT",
    "audit of a text": "audit SMAPS -o OUT",
    "symbols": "symbols --source --debug-dir DEBUG STRIPPED -o OUT",
    "heap": "heap PROFILE -o OUT",
    "check --propose": "check PROGRAM --propose -o OUT",
    "check --update-baseline": "check PROGRAM --config CONFIG --update-baseline",
    "trend --add": "trend --add PROGRAM --version 1 --history OUT",
    "explain": "explain unused-library",
    "fleet": "fleet DATASET libraries -o OUT",
}
"""Verbs that read files, and most of which write one."""
VERBS: Final = LIVE | SAVED
REWRITTEN: Final = "whatif --drop libcrypt_like.so --starts 1 -o OUT -- PROGRAM"
"""The copy of this program looks for its libraries in another folder than it did: LIEF rewrites it, in 0.4 s."""
each_verb = pytest.mark.parametrize("verb", VERBS)
each_live_verb = pytest.mark.parametrize("verb", LIVE)
WRITERS: Final = [verb for verb, words in VERBS.items() if {"OUT", "CONFIG"} & {*words.split()}]
each_writer = pytest.mark.parametrize("verb", WRITERS)


@dataclass(frozen=True)
class Ended:
    """How a command has ended: its exit code, and what it wrote."""

    code: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Place:
    """Where a command runs: folders for its answer, its temporary files and its inputs, and a process that it reads."""

    folder: Path
    temporary: Path
    pid: int
    inputs: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def words(self, verb: str) -> list[str]:
        given = {
            "PID": str(self.pid),
            "OUT": str(self.out),
            "PROGRAM": str(SAMPLES / "shadow"),
            "LINKED": str(self.inputs / "linked"),
            "STRIPPED": str(self.inputs / "stripped.so"),
            "DEBUG": str(self.inputs),
            "DATASET": str(self.inputs / "dataset"),
            "SLEEP": shutil.which("sleep") or "",
            "PROFILE": str(PROFILE),
            "SMAPS": str(SMAPS),
            "CONFIG": str(self.temporary.parent / "footprint.toml"),
        }
        words = [given.get(word, word) for word in VERBS.get(verb, verb).split()]
        return [*words, "600"] if words[-1] == given["SLEEP"] else words

    def run(
        self,
        verb: str,
        before: tuple[str, ...] = (),
        *,
        limit: Callable[[], None] | None = None,
        script: tuple[str, ...] = ("-m", "footprint"),
        stdout: int = subprocess.PIPE,
    ) -> Ended:
        """Run a command in a session of its own, and check that nothing of it is left."""
        began = subprocess.Popen(
            [*before, sys.executable, *script, *self.words(verb)],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(self.temporary.parent / "state")},
            start_new_session=True,
            preexec_fn=limit,  # noqa: PLW1509 # it only sets a limit
        )
        out, err = began.communicate(timeout=120)
        self.check_nothing_left(began.pid)
        return Ended(began.returncode, out or b"", err.decode())

    def check_nothing_left(self, session: int) -> None:
        # A child that was killed takes a moment to go.
        wait_until(lambda: not processes_of(session), "its children to go")
        assert not [path.name for path in self.folder.iterdir() if path.name not in {"out", "filler"}]
        assert list(self.temporary.iterdir()) == []
        status = status_of(self.pid)
        assert status["State"][0] in "SR"
        assert status["TracerPid"] == "0"


def processes_of(session: int) -> list[str]:
    """Return the processes of a session, zombies left out."""
    result = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue
        state, _, _, of = text.rpartition(") ")[2].split()[:4]
        if int(of) == session and state not in "ZX":
            result.append(text)
    return result


def check_told(ended: Ended, *codes: int) -> None:
    """Check that an error is one line, and the exit code one of these."""
    assert "Traceback" not in ended.err
    assert ended.code in codes, ended.err
    if ended.code not in {FINE, EXCEEDED, FAILED_RUN} and ended.code > 0:
        told = [line for line in ended.err.splitlines() if line.startswith("footprint: ")]
        assert len(told) == 1, ended.err


def check_whole(out: Path, ended: Ended, verb: str) -> None:
    """Check that a file is as before, or as a whole answer."""
    if verb == "explain":
        assert not out.exists()
    elif ended.code in {FINE, EXCEEDED, FAILED_RUN}:
        assert out.stat().st_size
    elif out.exists():
        assert out.read_bytes() in {b"", BEFORE}


@pytest.fixture(scope="module")
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "3600"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file with its debug file, a program that finds its libraries by their absolute path, and a dataset."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "stripped.so").write_bytes(stripped())
    (folder / BUILD_ID_PATH).parent.mkdir(parents=True)
    (folder / BUILD_ID_PATH).write_bytes(debug())
    (folder / "linked.c").write_text("int main(void) { return 0; }\n")
    found = [f"-Wl,--no-as-needed,-rpath,{SAMPLES}", f"-Wl,-rpath-link,{SAMPLES}", str(SAMPLES / "libcrypt_like.so")]
    subprocess.run(["gcc", "-o", folder / "linked", folder / "linked.c", *found], check=True)
    # Not in this process: DuckDB starts threads, and a process that has some adopts no children in later tests.
    words = ["scan", str(SAMPLES / "shadow"), "-o", str(folder / "dataset")]
    subprocess.run([sys.executable, "-m", "footprint", *words], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """Return the numbers of system calls by verb, as far as they are known."""
    return {}


@pytest.fixture
def place(tmp_path: Path, sleeping: int, inputs: Path) -> Place:
    folder, temporary = tmp_path / "answers", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    (tmp_path / "footprint.toml").write_text(f"baseline = '{folder}/out'\n[budgets]\nlibrary_count = 100\n")
    return Place(folder, temporary, sleeping, inputs)


# --- without any fault ------------------------------------------------------------------------------------------------


@each_verb
def test_without_a_fault_each_verb_is_fine(place: Place, verb: str, counts: dict[str, int]) -> None:
    ended = counted(place, verb, counts) if verb in LIVE else place.run(verb)
    check_told(ended, FINE)
    assert place.out.exists() == (verb in WRITERS)


def test_every_verb_has_its_faults() -> None:
    tried = {words.split()[0] for words in VERBS.values()} | {reader.split()[0] for reader in READERS} | {"scan"}
    assert tried == set(verb_names())


# --- where it writes --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """Mount a file system of 64 KiB at the folder of the answers."""
    options = ["-t", "tmpfs", "-o", "size=64k,mode=0777", "tmpfs", str(place.folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("namespaces or mounting are forbidden here")
    yield place.folder
    subprocess.run(["umount", str(place.folder)], check=True)


def fill(folder: Path) -> None:
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


@each_writer
def test_a_full_disk_is_told_and_the_file_that_was_there_remains(place: Place, small_disk: Path, verb: str) -> None:
    # The others read it first, or replace nothing.
    is_there = verb not in {"trend --add", "check --update-baseline", "check --propose"}
    if is_there:
        place.out.write_bytes(BEFORE)
    fill(small_disk)
    ended = place.run(verb)
    check_told(ended, UNREADABLE)
    assert "No space left on device" in ended.err or "full" in ended.err
    if is_there:
        assert place.out.read_bytes() == BEFORE
    else:
        assert not place.out.exists() or place.out.stat().st_size == 0


def test_a_project_on_a_full_disk_gets_no_half_files(small_disk: Path) -> None:
    fill(small_disk)
    words = ["check", "--init", str(SAMPLES / "shadow"), "--folder", str(small_disk), "--ci", "github"]
    done = subprocess.run([sys.executable, "-m", "footprint", *words], capture_output=True, text=True, check=False)
    check_told(Ended(done.returncode, b"", done.stderr), UNREADABLE)
    assert [path for path in small_disk.rglob("*") if path.is_file() and path.name != "filler"] == []


def test_a_dataset_on_a_full_disk_gets_no_half_files(small_disk: Path) -> None:
    fill(small_disk)
    words = ["scan", str(SAMPLES / "shadow"), "-o", str(small_disk / "fleet")]
    done = subprocess.run([sys.executable, "-m", "footprint", *words], capture_output=True, text=True, check=False)
    check_told(Ended(done.returncode, b"", done.stderr), UNREADABLE)
    assert "No space left on device" in done.stderr
    assert [path.name for path in small_disk.rglob("*") if path.is_file() and path.stat().st_size] == ["filler"]


def test_a_watch_goes_on_where_its_disk_is_full_and_tells_that_the_series_is_incomplete(
    place: Place, small_disk: Path
) -> None:
    # A link, because only its end tells `watch` that a series is wanted.
    series = place.temporary.parent / "series.fps"
    series.symlink_to(place.out)
    fill(small_disk)
    ended = place.run(f"watch PID --for 300ms --every 100ms -o {series}")
    assert ended.code == FINE, ended.err
    assert b"series-incomplete" in ended.out
    assert b"No space left on" in ended.out
    assert b"Kept in" not in ended.out
    assert place.out.stat().st_size == 0


@each_writer
def test_a_disk_that_may_only_be_read_is_told(place: Place, small_disk: Path, verb: str) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    ended = place.run(verb)
    check_told(ended, UNREADABLE)
    assert list(small_disk.iterdir()) == []


@each_writer
def test_a_folder_that_is_not_there_is_told(place: Place, verb: str) -> None:
    place.folder.rmdir()
    place.folder.symlink_to("nowhere")
    try:
        words = place.words(verb)
        done = subprocess.run([sys.executable, "-m", "footprint", *words], capture_output=True, check=False, cwd=ROOT)
        check_told(Ended(done.returncode, done.stdout, done.stderr.decode()), UNREADABLE)
    finally:
        place.folder.unlink()


@pytest.mark.parametrize("verb", ["run", "whatif", "run --when peak"])
def test_no_place_for_temporary_files_is_told_or_not_needed(place: Place, small_disk: Path, verb: str) -> None:
    fill(small_disk)
    folder = Place(place.temporary, place.folder, place.pid, place.inputs)
    (place.folder / "filler").rename(place.folder / "full")
    done = subprocess.run(
        [sys.executable, "-m", "footprint", *folder.words(verb)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(place.folder)},
    )
    check_told(Ended(done.returncode, done.stdout, done.stderr.decode()), FINE, UNREADABLE)
    assert [path.name for path in place.folder.iterdir()] == ["full"]


@each_verb
def test_a_standard_output_that_is_full_or_closed_is_told(place: Place, verb: str) -> None:
    is_elsewhere = "--html" in VERBS[verb] or "--history" in VERBS[verb]
    words = [word if is_elsewhere or word != str(place.out) else "-" for word in place.words(verb)]
    for redirection, codes in ((">/dev/full", (UNREADABLE,)), (">&-", (UNREADABLE,)), ("| true", (FINE, BROKEN_PIPE))):
        script = f'set -o pipefail; "$@" {redirection}; exit $?'
        command = ["bash", "-c", script, "bash", sys.executable, "-m", "footprint", *words]
        done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
        ended = Ended(done.returncode, b"", done.stderr.decode())
        assert "Traceback" not in ended.err
        assert ended.code != UNREADABLE or "standard output: " in ended.err, ended.err
        assert ended.code in (*codes, FINE) if "-q" in words or "capture" in verb else ended.code in codes, ended.err


# --- what it reads ----------------------------------------------------------------------------------------------------

READERS: Final = [
    *(
        "symbols",
        "libraries",
        "duplicates",
        "audit",
        "audit --by mapping",
        "heap",
        "audit -n 2",
        "check --config",
        "watch --replay",
    ),
    *("trend --add --version 1 --history {out}", "trend --history", "diff {smaps}"),
]


@pytest.mark.parametrize("reader", READERS)
def test_an_input_whose_reading_fails_is_one_line(place: Place, reader: str) -> None:
    # The first page of a process is never there: reading it is an error of input and output (EIO).
    words = reader.format(out=place.out, smaps=SMAPS).split()
    done = subprocess.run(
        [sys.executable, "-m", "footprint", *words, "/proc/self/mem"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    check_told(Ended(done.returncode, b"", done.stderr), WRONG_USE, UNREADABLE)
    assert not place.out.exists()


@each_live_verb
def test_a_process_that_does_not_exist_is_one_line(place: Place, verb: str) -> None:
    if "PID" not in VERBS[verb]:
        return
    words = [word if word != str(place.pid) else str((1 << 22) - 1) for word in place.words(verb)]
    done = subprocess.run([sys.executable, "-m", "footprint", *words], capture_output=True, text=True, check=False)
    check_told(Ended(done.returncode, b"", done.stderr), UNREADABLE)
    assert not place.out.exists()


# --- what the system grants -------------------------------------------------------------------------------------------


@each_verb
@pytest.mark.parametrize("most", [8, 20])
def test_few_descriptors_give_an_answer_or_one_line(place: Place, verb: str, most: int) -> None:
    ended = place.run(verb, limit=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
    check_told(ended, FINE, UNREADABLE, FAILED_RUN)
    check_whole(place.out, ended, verb)


# Not of a program that LIEF rewrites: it ends the process where its memory is short.
@each_verb
@pytest.mark.parametrize("most_mb", [48, 112])
def test_little_memory_gives_an_answer_or_one_line(place: Place, verb: str, most_mb: int) -> None:
    most = most_mb << 20
    ended = place.run(verb, limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
    check_told(ended, FINE, UNREADABLE, FAILED_RUN)
    check_whole(place.out, ended, verb)


# --- signals ----------------------------------------------------------------------------------------------------------

SIGNALS: Final = {"INT": (130, -signal.SIGINT), "TERM": (-signal.SIGTERM,), "KILL": (-signal.SIGKILL,)}
WITH_CHILDREN: Final = {"capture --freeze", "run", "run --when settled", "run --when peak", "whatif"}
"""Verbs that stop or start others: they are ended at more steps."""
_CALL: Final = re.compile(r"^[a-z_0-9]+\(", re.MULTILINE)


def counted(place: Place, verb: str, counts: dict[str, int]) -> Ended:
    """Run a verb, and keep how many system calls it made."""
    trace = place.temporary.parent / "trace"
    ended = place.run(verb, ("strace", "-qq", "-o", str(trace)))
    # Where many processes run, much of /proc is read, and strace counts to 65,535 at most.
    counts[verb] = min(len(_CALL.findall(trace.read_text(errors="replace"))), 65_535)
    return ended


def check_signals(place: Place, verb: str, name: str, counts: dict[str, int], step_count: int) -> None:
    if verb not in counts:
        counted(place, verb, counts)
    place.out.write_bytes(BEFORE)
    # The first calls are those of the interpreter, before any code of ours.
    for step in range(step_count):
        at = counts[verb] // 3 + (2 * counts[verb] // 3) * (step + 1) // (step_count + 1)
        inject = f"inject=all:signal={name}:when={at}"
        ended = place.run(verb, ("strace", "-qq", "-o", "/dev/null", "-e", inject))
        assert "Traceback" not in ended.err
        assert ended.code in (*SIGNALS[name], FINE), (at, ended)
        assert place.out.read_bytes() == BEFORE or ended.code == FINE, at
        place.out.write_bytes(BEFORE)


@each_live_verb
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_any_step_leaves_nothing_behind(place: Place, verb: str, name: str, counts: dict[str, int]) -> None:
    check_signals(place, verb, name, counts, step_count=6 if verb in WITH_CHILDREN else 2)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_while_a_program_is_rewritten_leaves_nothing_behind(
    place: Place, name: str, counts: dict[str, int]
) -> None:
    check_signals(place, REWRITTEN, name, counts, step_count=2)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_scan_that_is_killed_leaves_no_worker_and_no_semaphore(place: Place, name: str) -> None:
    words = [sys.executable, "-m", "footprint", "scan", "/usr/bin", "-o", str(place.folder / "out")]
    began = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(place.temporary)},
        start_new_session=True,
    )
    # The scan, the process that starts workers, and two of them.
    while len(processes_of(began.pid)) < 3:
        assert began.poll() is None
        time.sleep(0.05)
    # Semaphores with names are mapped files, which would stay.
    mapped = [Path(f"/proc/{text.split()[0]}/maps").read_text() for text in processes_of(began.pid)]
    assert not [text for text in mapped if "/sem.mp-" in text]
    os.kill(began.pid, getattr(signal, name))
    _, err = began.communicate(timeout=120)
    place.check_nothing_left(began.pid)
    assert (began.returncode, err) == (-getattr(signal, name), b"")


# --- others at the same time, and the clock ---------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["audit --json", "capture", "trend --add", "check --update-baseline", "audit --html"])
def test_many_writers_of_one_file_leave_one_whole_file(place: Place, verb: str) -> None:
    command = [sys.executable, "-m", "footprint", *place.words(verb)]
    begun = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(6)]
    for one in begun:
        _, err = one.communicate(timeout=120)
        assert (one.returncode, b"Traceback" in err) == (FINE, False), err
    assert [path.name for path in place.folder.iterdir()] == ["out"]
    if verb in {"audit --json", "check --update-baseline"}:
        assert json.loads(place.out.read_bytes())["schema"] == "footprint/1"
    elif verb == "trend --add":
        shown = subprocess.run(
            [sys.executable, "-m", "footprint", "trend", "--history", str(place.out), "--json"],
            capture_output=True,
            check=True,
        )
        assert json.loads(shown.stdout)["schema"] == "footprint/1"


JUMPING: Final = """
import itertools, sys, time
jumps = itertools.cycle([0, 10**9, -10**9, 3600, -86400 * 40000])
before = time.time
time.time = lambda: max(0.0, before() + next(jumps))
time.time_ns = lambda: int(time.time() * 1e9)
from footprint.__main__ command
""".replace("__main__ command", "__main__ import command\nsys.exit(command())")


@each_verb
def test_a_clock_that_jumps_changes_no_exit_code(place: Place, verb: str) -> None:
    ended = place.run(verb, script=("-c", JUMPING))
    check_told(ended, FINE)
