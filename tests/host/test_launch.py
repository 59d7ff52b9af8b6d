"""Programs are started, held at the moment asked for, and ended with all that they started.

Each test runs something real and small; after each, nothing of it may be left.
"""

import ctypes
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from footprint.errors import AccessError, UsageError
from footprint.process.launch import Taken, launch
from footprint.process.launch.moment import Moment, When
from footprint.process.launch.tracee import Tracee
from tests.liveprocesses import is_ptrace_allowed

EXIT = Moment(When.EXIT)
SECONDS_OF_OURS = count(int(f"9{os.getpid():07d}00"))
"""How long the sleeping children of a test sleep: a number that nothing else on the machine has in its command."""


def pids_of(tasks: tuple[int, ...]) -> tuple[int, ...]:
    return tasks


pytestmark = pytest.mark.skipif(not is_ptrace_allowed(), reason="ptrace is not allowed here")


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def commands() -> Iterator[str]:
    """Yield the command line of each process on the machine."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                    yield file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


@pytest.fixture(autouse=True)
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave programs less time to settle and to end than a user has."""
    monkeypatch.setattr("footprint.process.launch.program._TERM_SECONDS", 0.3)
    monkeypatch.setattr("footprint.process.launch.moment._QUIET_SECONDS", 0.3)


@pytest.fixture(autouse=True)
def nap() -> Iterator[str]:
    """Yield a time to sleep that is this test's own, and see that in the end nothing sleeps, is open or changed."""
    seconds = str(next(SECONDS_OF_OURS))
    had_children = has_children()
    descriptors = os.listdir("/proc/self/fd")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield seconds
    assert had_children or not has_children()
    assert not [command for command in commands() if seconds in command]
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    is_subreaper = ctypes.c_int()
    ctypes.CDLL(None).prctl(37, ctypes.byref(is_subreaper), 0, 0, 0)
    assert not is_subreaper.value


def only_where_orphans_come_to_us() -> None:
    if threading.active_count() > 1 or has_children():
        pytest.skip("another thread or child of the test run keeps footprint from adopting orphans")


def states(task: int) -> set[str]:
    """Return the states of a process's threads."""
    found = set()
    for thread in os.listdir(f"/proc/{task}/task"):
        with open(f"/proc/{task}/task/{thread}/stat", "rb") as file:
            found.add(file.read().rpartition(b") ")[2][:1].decode())
    return found


def status(task: int, key: str) -> str:
    with open(f"/proc/{task}/status", encoding="utf-8", errors="replace") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith(key + ":"))


def kib(task: int, key: str) -> int:
    return int(status(task, key).removesuffix(" kB"))


# --- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "name"),
    [
        ("true", 0, None),
        ("exit 7", 7, None),
        ("exit 255", 255, None),
        ("kill -SEGV $$", None, "SIGSEGV"),
        ("kill -TERM $$", None, "SIGTERM"),
        ("kill -KILL $$", None, "SIGKILL"),
        ("kill -36 $$", None, f"SIGRTMIN+{36 - signal.SIGRTMIN}"),
    ],
)
def test_the_end_of_the_program_is_told(script: str, code: int | None, name: str | None) -> None:
    def private_kib(tasks: tuple[int, ...]) -> int:
        (task,) = tasks
        return kib(task, "RssAnon")

    taken = launch(["sh", "-c", script], EXIT, private_kib)
    assert (taken.exit_code, taken.signal, taken.when, taken.notes) == (code, name, When.EXIT, ())
    assert taken.answer > 0


def test_what_is_read_is_there_while_it_is_read_and_gone_after() -> None:
    taken = launch(["true"], EXIT, lambda tasks: (tasks, os.readlink(f"/proc/{tasks[0]}/exe")))
    tasks, path = taken.answer
    assert tasks == (taken.pid,)
    assert os.path.basename(path) in {"true", "coreutils", "busybox"}
    assert not os.path.exists(f"/proc/{taken.pid}")


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (["/nonexistent/program"], "No such file or directory"),
        (["no-such-program-anywhere"], "No such file or directory"),
        (["/"], "Permission denied"),
        (["/dev/null"], "Permission denied"),
    ],
)
def test_what_cannot_be_started_says_why(command: list[str], cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(AccessError, match=cause) as caught:
        launch(command, EXIT, pids_of)
    assert caught.value.subject == command[0]


def test_what_is_killed_before_its_start_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    seize = Tracee.seize

    def killed(tracee: Tracee) -> None:
        seize(tracee)
        os.kill(tracee.task, signal.SIGKILL)

    monkeypatch.setattr(Tracee, "seize", killed)
    for when in (When.EXIT, When.PEAK, When.SETTLED):
        with pytest.raises(AccessError, match="SIGKILL ended it before its memory could be read"):
            launch(["true"], Moment(when), pids_of)


def test_a_file_that_is_no_program_says_so(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "text")
    with open(path, "w", encoding="ascii") as file:
        file.write("no program")
    os.chmod(path, 0o700)
    with pytest.raises(AccessError, match="Exec format error"):
        launch([path], EXIT, pids_of)


@pytest.mark.parametrize("command", [[], [""], ["true", "a\0b"]])
def test_no_command_is_wrong_use(command: list[str]) -> None:
    with pytest.raises(UsageError):
        launch(command, EXIT, pids_of)


# --- the exit, whatever leads to it -----------------------------------------------------------------------------------


def test_the_last_image_of_a_program_that_execs_is_taken() -> None:
    taken = launch(["sh", "-c", 'exec sh -c "exec sleep 0"'], EXIT, lambda tasks: status(tasks[0], "Name"))
    assert taken.answer in {"sleep", "coreutils", "busybox"}


THREADS = (
    "import ctypes, os, threading, time\n"
    "for _ in range(5): threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
)


@pytest.mark.parametrize(
    ("code", "thread_count", "exit_code"),
    [
        ("os._exit(3)", 6, 3),
        ("threading.Thread(target=os._exit, args=(4,)).start(); time.sleep(3600)", 7, 4),
        ("os.kill(os.getpid(), 9)", 6, None),
        ("os.abort()", 6, None),
    ],
)
def test_all_threads_are_still_there_at_the_exit(code: str, thread_count: int, exit_code: int | None) -> None:
    taken = launch(python(THREADS + code), EXIT, lambda tasks: int(status(tasks[0], "Threads")))
    assert (taken.answer, taken.exit_code) == (thread_count, exit_code)


@pytest.mark.parametrize(
    "code",
    [
        "os.execvp('sleep', ['sleep', '0'])",
        "threading.Thread(target=os.execvp, args=('sleep', ['sleep', '0'])).start(); time.sleep(3600)",
    ],
)
def test_a_program_with_threads_may_exec(code: str) -> None:
    taken = launch(python(THREADS + code), EXIT, lambda tasks: (status(tasks[0], "Threads"), kib(tasks[0], "RssAnon")))
    assert taken.answer[0] == "1"
    assert taken.answer[1] < 1024
    assert taken.exit_code == 0


def test_threads_that_end_before_do_not_stand_for_the_program() -> None:
    code = (
        "import threading, os\n"
        "for _ in range(50): t = threading.Thread(target=int); t.start(); t.join()\n"
        "kept = bytearray(8 << 20); os._exit(0)"
    )
    assert launch(python(code), EXIT, lambda tasks: kib(tasks[0], "RssAnon")).answer >= 8192


def test_the_memory_is_found_where_the_first_thread_has_left() -> None:
    code = (
        "import ctypes, threading, time\n"
        "kept = bytearray(8 << 20)\n"
        "threading.Thread(target=time.sleep, args=(0.1,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    taken = launch(python(code), EXIT, lambda tasks: (tasks[0], kib(tasks[0], "RssAnon")))
    task, private_kib = taken.answer
    assert task != taken.pid
    assert private_kib >= 8192


def test_what_was_given_back_before_the_exit_is_noted() -> None:
    taken = launch(python("import os; b = bytearray(32 << 20); del b; os._exit(0)"), EXIT, pids_of)
    assert [note.slug for note in taken.notes] == ["freed-before-exit"]


# --- a traced program runs as any other -------------------------------------------------------------------------------


def test_signals_reach_the_program() -> None:
    code = "import os, signal; signal.signal(10, lambda *_: os._exit(9)); os.kill(os.getpid(), 10); signal.pause()"
    assert launch(python(code), EXIT, pids_of).exit_code == 9


def test_a_program_may_stop_and_be_continued() -> None:
    script = "(while ! grep -q '^State:.[tT]' /proc/$$/status; do :; done; kill -CONT $$) & kill -STOP $$; exit 3"
    assert launch(["sh", "-c", script], EXIT, pids_of).exit_code == 3


def test_the_program_leads_a_session_and_ignores_no_signal() -> None:
    def facts(tasks: tuple[int, ...]) -> tuple[int, str, str]:
        return os.getsid(tasks[0]), status(tasks[0], "SigIgn"), status(tasks[0], "SigBlk")

    taken = launch(["sleep", "0"], EXIT, facts)
    session, ignored, blocked = taken.answer
    of_python = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert session == taken.pid
    assert int(ignored, 16) == int(status(os.getpid(), "SigIgn"), 16) & ~of_python
    assert blocked == status(os.getpid(), "SigBlk")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the system call is that of x86-64")
def test_a_process_that_is_cloned_without_a_signal_is_no_thread(nap: str) -> None:
    code = (
        "import ctypes, os, time\n"
        f"if ctypes.CDLL(None).syscall(56, 0, 0, 0, 0, 0) == 0: os.execvp('sleep', ['sleep', '{nap}'])\n"
        "os._exit(5)"
    )
    taken = launch(python(code), EXIT, lambda tasks: status(tasks[0], "Threads"))
    assert (taken.answer, taken.exit_code) == ("1", 5)


# --- other moments ----------------------------------------------------------------------------------------------------


def test_before_the_exit_the_whole_family_stands_still(nap: str) -> None:
    taken = launch(
        ["sh", "-c", f"sleep {nap} & sleep {nap} & echo ready; wait"],
        Moment(When.OUTPUT, pattern=re.compile(b"ready")),
        lambda tasks: [states(task) for task in tasks],
        has_family=True,
    )
    assert len(taken.answer) == 3
    assert all(each <= {"T", "t"} for each in taken.answer)
    assert (taken.when, taken.exit_code, taken.signal, taken.notes) == (When.OUTPUT, None, None, ())


def test_a_time_counts_from_the_start(nap: str) -> None:
    taken = launch(["sleep", nap], Moment(When.TIME, 0.1), lambda tasks: states(tasks[0]))
    assert taken.answer <= {"T", "t"}
    assert (taken.when, taken.notes) == (When.TIME, ())


def test_a_program_with_threads_stands_still() -> None:
    code = "import threading\ndef spin():\n  while True: pass\n"
    code += "for _ in range(3): threading.Thread(target=spin).start()\nprint('ready', flush=True)"
    taken = launch(python(code), Moment(When.OUTPUT, pattern=re.compile(b"ready")), lambda tasks: states(tasks[0]))
    assert taken.answer <= {"T", "t"}
    assert taken.when is When.OUTPUT


def test_memory_that_keeps_still_has_settled(nap: str) -> None:
    taken = launch(["sleep", nap], Moment(When.SETTLED), pids_of)
    assert (taken.when, taken.notes) == (When.SETTLED, ())


def test_memory_that_does_not_settle_is_taken_anyway(nap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.process.launch.moment._QUIET_SECONDS", 3600)
    taken = launch(["sleep", nap], Moment(When.SETTLED, 0.2), pids_of)
    assert taken.when is When.SETTLED
    assert [note.slug for note in taken.notes] == ["moment-not-reached"]


@pytest.mark.parametrize(
    "moment", [Moment(When.TIME, 3600), Moment(When.SETTLED, 3600), Moment(When.OUTPUT, 3600, re.compile(b"never"))]
)
def test_a_program_that_ends_before_is_taken_at_its_exit(moment: Moment) -> None:
    taken = launch(["sh", "-c", "echo this; exit 6"], moment, lambda tasks: kib(tasks[0], "RssAnon"))
    assert taken.answer > 0
    assert (taken.when, taken.exit_code) == (When.EXIT, 6)
    assert [note.slug for note in taken.notes] == ["moment-not-reached"]


@pytest.mark.parametrize(
    ("code", "pattern"),
    [
        ("os.write(1, b'one\\ntwo\\n')", b"^two$"),
        ("os.write(2, b'one\\ntwo\\n')", b"^two$"),
        ("os.write(1, b'prompt> ')", b"> $"),
        ("os.write(1, b'\\xff\\xfe\\r\\n')", b"^\xff\xfe$"),
        ("os.close(1); os.write(2, b'still here\\n')", b"here"),
        ("os.write(1, b'z' * (10 << 20)); os.write(1, b'MARK\\n')", b"MARK"),
        ("[os.write(1, b'%d\\n' % n) for n in range(200_000)]", b"^199999$"),
    ],
)
def test_a_line_of_output_is_the_moment(
    code: str, pattern: bytes, nap: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = python(f"import os; {code}; os.execvp('sleep', ['sleep', '{nap}'])")
    taken = launch(command, Moment(When.OUTPUT, 3600, re.compile(pattern)), pids_of)
    assert (taken.when, taken.notes) == (When.OUTPUT, ())
    output, error = capfdbinary.readouterr()
    assert not output
    assert re.search(pattern, error.replace(b"\r\n", b"\n"), re.MULTILINE)


def test_half_a_line_is_no_line(nap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.process.launch.moment._PROMPT_SECONDS", 3600)
    code = f"import os, time; os.write(1, b'ready'); os.write(1, b' not\\n'); os.execvp('sleep', ['sleep', '{nap}'])"
    taken = launch(python(code), Moment(When.OUTPUT, 0.5, re.compile(b"^ready$")), pids_of)
    assert [note.slug for note in taken.notes] == ["moment-not-reached"]


def test_output_is_passed_on_whole(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    code = "import os; os.write(1, b'abcdefgh' * (1 << 17)); os.write(2, b'!')"
    launch(python(code), Moment(When.OUTPUT, 3600, re.compile(b"never")), pids_of)
    output, error = capfdbinary.readouterr()
    assert not output
    assert sorted(error) == sorted(b"abcdefgh" * (1 << 17) + b"!")
    launch(["echo", "at the exit"], EXIT, pids_of)
    assert capfdbinary.readouterr() == (b"", b"at the exit\n")


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "sleep {nap} & sleep {nap} & exit 4",
        "setsid sleep {nap} & exit 4",
        "(setsid sleep {nap} &); exit 4",
        "trap '' TERM; sleep {nap} & exit 4",
        "(trap '' TERM; (sleep {nap} &)); exit 4",
    ],
)
def test_what_the_program_leaves_behind_is_ended(script: str, nap: str) -> None:
    only_where_orphans_come_to_us()
    assert launch(["sh", "-c", script.format(nap=nap)], EXIT, pids_of).exit_code == 4


@pytest.mark.parametrize("before", ["", "trap '' TERM; ", "trap 'echo end; exit' TERM; "])
def test_the_program_is_ended_whatever_it_does_about_it(before: str, nap: str) -> None:
    taken = launch(["sh", "-c", f"{before}while :; do sleep {nap}; done"], Moment(When.TIME, 0.1), pids_of)
    assert (taken.exit_code, taken.signal) == (None, None)


@pytest.mark.parametrize("moment", [EXIT, Moment(When.TIME, 0.1)])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_while_it_is_read_leaves_nothing_behind(error: type[BaseException], moment: Moment, nap: str) -> None:
    def fail(_tasks: tuple[int, ...]) -> None:
        raise error

    with pytest.raises(error):
        launch(["sh", "-c", f"sleep {nap} & sleep 0.3"], moment, fail)


def test_an_interrupt_while_it_runs_leaves_nothing_behind(nap: str) -> None:
    script = f"trap '' TERM; sleep {nap} & kill -INT {os.getpid()}; sleep {nap}"
    with pytest.raises(KeyboardInterrupt):
        launch(["sh", "-c", script], EXIT, pids_of)


def test_an_interrupt_while_it_is_ended_leaves_nothing_behind(nap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.process.launch.program._TERM_SECONDS", 60)
    script = f"trap 'kill -INT {os.getpid()}' TERM; sleep {nap} & echo ready; while :; do wait; done"
    with pytest.raises(KeyboardInterrupt):
        launch(["sh", "-c", script], Moment(When.OUTPUT, pattern=re.compile(b"ready")), pids_of)


def test_a_family_is_found_in_other_sessions_too(nap: str, tmp_path: os.PathLike[str]) -> None:
    only_where_orphans_come_to_us()
    pipe = os.path.join(tmp_path, "pipe")
    os.mkfifo(pipe)
    daemon = f"sleep {nap} & echo up > {pipe}; wait"
    script = f'sleep {nap} & (setsid sh -c "{daemon}" &); read -r _ < {pipe}; exit 1'
    taken = launch(["sh", "-c", script], EXIT, lambda tasks: (tasks, [states(task) for task in tasks]), has_family=True)
    tasks, found = taken.answer
    assert len(tasks) == 4
    assert tasks[0] == taken.pid
    assert all(each <= {"T", "t"} for each in found)


# --- around it --------------------------------------------------------------------------------------------------------


def in_a_thread(ask: Callable[[], Taken[int]]) -> Taken[int]:
    """Run something in a thread of its own, where no signal tells of children."""
    answers: list[Taken[int]] = []
    thread = threading.Thread(target=lambda: answers.append(ask()))
    thread.start()
    thread.join()
    return answers[0]


def test_it_runs_beside_the_main_thread(nap: str) -> None:
    code = (
        "import threading, os\nfor _ in range(20): t = threading.Thread(target=int); t.start(); t.join()\nos._exit(2)"
    )
    taken = in_a_thread(lambda: launch(python(code), EXIT, lambda tasks: kib(tasks[0], "RssAnon")))
    assert taken.answer > 0
    assert taken.exit_code == 2
    in_a_thread(lambda: launch(["sh", "-c", f"sleep {nap} & exit"], EXIT, len))


def test_other_children_are_let_alone(nap: str) -> None:
    other = subprocess.Popen(["sh", "-c", "read -r _; exit 11"], stdin=subprocess.PIPE)
    taken = launch(["sh", "-c", f"sleep {nap} & exit 1"], EXIT, pids_of)
    assert taken.exit_code == 1
    assert other.poll() is None
    other.communicate(b"\n")
    assert other.returncode == 11


@pytest.fixture
def no_ptrace(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Tracee, "seize", refuse)


@pytest.mark.usefixtures("no_ptrace")
def test_without_ptrace_there_is_no_exit_to_take_it_at() -> None:
    with pytest.raises(AccessError, match=r"its exit cannot be caught .*: take it when settled, or after a time"):
        launch(["true"], EXIT, pids_of)
    with pytest.raises(AccessError, match="it ended, exit code 3, before its memory could be read"):
        launch(["sh", "-c", "exit 3"], Moment(When.TIME, 3600), pids_of)


@pytest.mark.usefixtures("no_ptrace")
def test_without_ptrace_there_are_other_moments(nap: str) -> None:
    moments = (Moment(When.TIME, 0.2), Moment(When.SETTLED), Moment(When.OUTPUT, 3600, re.compile(b"ready")))
    for moment in moments:
        taken = launch(
            ["sh", "-c", f"sleep {nap} & echo ready; sleep {nap}"],
            moment,
            lambda tasks: set.union(*map(states, tasks)),
            has_family=True,
        )
        assert (taken.answer, taken.when, taken.notes) == ({"T"}, moment.when, ())
