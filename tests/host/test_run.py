"""Programs that are run show the memory that they are known to have, as the library and the command tell it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint import save
from footprint.errors import UsageError
from footprint.process.launch.moment import When
from footprint.sources.target import AuditFile
from footprint.verbs.audit.call import audit_target
from footprint.verbs.audit.request import AuditRequest
from footprint.verbs.run.call import run
from footprint.verbs.run.result import RunResult
from tests.liveprocesses import is_ptrace_allowed

ROOT = Path(__file__).parents[2]
MIB = 1 << 20


pytestmark = pytest.mark.skipif(not is_ptrace_allowed(), reason="ptrace is not allowed here")


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import os, time; {code}"]


def private_bytes(ran: RunResult) -> int:
    known = ran.audit.totals.private.bytes
    assert known is not None
    return known


def slugs(ran: RunResult) -> list[str]:
    return [note.slug for note in ran.notes]


# --- the library ------------------------------------------------------------------------------------------------------


def test_a_program_that_exits_at_once_shows_what_it_had() -> None:
    without = run(python("os._exit(3)"))
    with_more = run(python("kept = b'x' * (32 << 20); os._exit(3)"))
    grown_bytes = private_bytes(with_more) - private_bytes(without)
    # Where the stack and the heap begin moves some pages from one start to the next.
    assert abs(grown_bytes - 32 * MIB) <= MIB // 8
    assert private_bytes(with_more) >= 32 * MIB
    assert (with_more.start.exit_code, with_more.start.signal, with_more.start.moment) == (3, None, When.EXIT)
    assert with_more.notes == ()
    assert with_more.audit.is_live
    assert with_more.audit.command.startswith(sys.executable)


def test_what_a_program_clears_up_itself_is_not_there_and_said() -> None:
    ran = run(python("kept = b'x' * (32 << 20)"))
    assert private_bytes(ran) < 32 * MIB
    assert slugs(ran) == ["freed-before-exit"]


def test_threads_at_the_exit_are_paid_for() -> None:
    code = "import threading; [threading.Thread(target=time.sleep, args=(99,), daemon=True).start() for _ in range(7)]"
    names = [row.name for row in run(python(f"{code}; os._exit(0)")).audit.ledger]
    assert any(name is not None and "8 threads" in name for name in names)


def test_the_cost_of_many_is_projected() -> None:
    ran = run(["true"], count=1000)
    assert ran.audit.projection.count == 1000


def test_the_audit_is_that_of_the_median_start(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    code = (
        f"path = {str(counter)!r}; turn = os.path.getsize(path) if os.path.exists(path) else 0; "
        "open(path, 'a').write('.'); kept = b'x' * ((24, 8, 40, 16, 32)[turn] << 20); os._exit(turn)"
    )
    ran = run(python(code), starts=5)
    assert ran.start_count == 5
    assert ran.start.exit_code == 0
    assert slugs(ran) == ["starts-differ"]
    for spread, total in (
        (ran.private, ran.audit.totals.private.bytes),
        (ran.per_process, ran.audit.totals.per_process.bytes),
    ):
        assert spread is not None
        assert spread.median == total
        assert 15 * MIB <= spread.median - spread.min <= 17 * MIB
        assert 15 * MIB <= spread.max - spread.median <= 17 * MIB


def test_of_two_starts_the_lower_is_shown(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    script = f"printf . >> {counter}; exit $(wc -c < {counter})"
    ran = run(["sh", "-c", script], starts=2)
    assert ran.private is not None
    assert ran.private.min == ran.private.median
    assert ran.start.exit_code in {1, 2}


def test_a_settled_program_has_what_it_has_allocated() -> None:
    ran = run(python("kept = b'x' * (16 << 20); time.sleep(3600)"), when="settled")
    assert private_bytes(ran) >= 16 * MIB
    assert (ran.start.exit_code, ran.start.signal, ran.start.moment) == (None, None, When.SETTLED)


def test_a_line_of_output_tells_when() -> None:
    code = "kept = b'x' * (16 << 20); os.write(2, b'listening\\n'); time.sleep(3600)"
    ran = run(python(code), when_output="^listening$")
    assert private_bytes(ran) >= 16 * MIB
    assert (ran.when, ran.start.moment) == ("output", When.OUTPUT)


def test_the_family_is_audited_too() -> None:
    code = (
        "kept = b'x' * (8 << 20)\n"
        "if os.fork() == 0:\n"
        "    more = b'y' * (4 << 20); os.write(1, b'ready\\n'); time.sleep(3600)\n"
        "time.sleep(3600)"
    )
    ran = run(python(code), when_output="ready", follow=True)
    (child,) = ran.start.children
    assert child.pid != ran.audit.pid
    assert [(snapshot.pid, audit) for snapshot, audit in ran.start.members] == [
        (ran.audit.pid, ran.audit),
        (child.pid, child),
    ]
    assert child.totals.private.bytes is not None
    assert 4 * MIB <= child.totals.private.bytes < 8 * MIB
    cow_shared_bytes = child.totals.cow_shared.bytes
    assert cow_shared_bytes is not None
    assert cow_shared_bytes >= 8 * MIB


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="list of words"):
        run("ls -l")
    with pytest.raises(UsageError, match="1 to 1000 times"):
        run(["true"], starts=0)
    with pytest.raises(UsageError, match="not a moment"):
        run(["true"], when="soon")


# --- the command ------------------------------------------------------------------------------------------------------


def footprint(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "footprint", "run", *words]
    return subprocess.run(command, env=environment, input=given, capture_output=True, check=False, timeout=60)


def answer(*words: str) -> dict[str, Any]:
    done = footprint("--json", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_json_tells_how_it_ran() -> None:
    result = answer(
        "--expect-exit", "4", "--starts", "3", "-n", "10", "--", "sh", "-c", "echo out; echo err >&2; exit 4"
    )
    how = result["run"]
    assert how["command"] == ["sh", "-c", "echo out; echo err >&2; exit 4"]
    assert {key: how[key] for key in ("when", "moment", "starts", "exit_code", "signal", "children")} == {
        "when": "exit",
        "moment": "exit",
        "starts": 3,
        "exit_code": 4,
        "signal": None,
        "children": [],
    }
    figures = result["totals"] | {"peak_bytes": how["peak"]["peak_bytes"]}
    assert how["figures"].keys() == {"private_bytes", "per_process_bytes", "peak_bytes"}
    for key, spread in how["figures"].items():
        assert spread["min"] <= spread["median"] <= spread["max"]
        assert spread["min"] <= figures[key] <= spread["max"]
    # The start that is shown is the one whose cost is the median; its private memory need not be the median of those.
    assert result["totals"]["per_process_bytes"] == how["figures"]["per_process_bytes"]["median"]
    assert sum(row["bytes"] for row in result["ledger"]) == result["totals"]["per_process_bytes"]
    assert result["projection"]["count"] == 10


def test_the_outputs_are_kept_apart() -> None:
    done = footprint("-q", "--", "sh", "-c", "cat; echo error >&2; kill -9 $$", given=b"from standard input\n")
    assert done.returncode == 5
    assert done.stderr == b"from standard input\nerror\n"
    assert done.stdout == b"The run failed: SIGKILL ended it.\n"


def test_a_failure_is_told_also_where_the_answer_goes_to_a_file(tmp_path: Path) -> None:
    done = footprint("-o", str(tmp_path / "run.json"), "--", "sh", "-c", "kill -SEGV $$")
    assert (done.returncode, done.stdout) == (5, b"")
    assert done.stderr == b"footprint: The run failed: SIGSEGV ended it\n"


def test_the_report_says_how_it_ran() -> None:
    text = footprint("--", "sh", "-c", "kill -SEGV $$").stdout.decode()
    assert text.startswith("footprint run: sh -c 'kill -SEGV $$'\n")
    assert "Taken at its exit, ended by SIGSEGV." in text
    text = footprint(
        "--starts", "2", "--when", "100ms", "--follow", "--", "sh", "-c", "sleep 99 & wait"
    ).stdout.decode()
    assert "The median of 2 starts, taken at the time asked for, then ended by footprint." in text
    assert "Over 2 starts" in text
    assert text.splitlines()[-1].startswith("One process costs ")


def test_the_program_has_options_of_its_own() -> None:
    assert answer("--expect-exit", "3", "sh", "-c", "exit 3")["run"]["exit_code"] == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["/nonexistent/program"], 3),
        (["--", "/"], 3),
        (["--when", "soon", "--", "true"], 2),
        (["--when-output", "(", "--", "true"], 2),
        (["--starts", "0", "--", "true"], 2),
        ([], 2),
        (["--expect-exit", "256", "--", "true"], 2),
        (["--allow", "crash", "--", "true"], 2),
        (["--strict", "--allow", "moment", "--when", "1min", "--", "true"], 4),
    ],
)
def test_exit_codes_are_those_of_every_verb(words: list[str], code: int) -> None:
    done = footprint(*words)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 4)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_footprint_and_the_program(number: signal.Signals) -> None:
    script = "(setsid sleep 3600 &); sleep 3600 & echo ready; wait"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "footprint", "run", "--", "sh", "-c", script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stderr is not None
        first = started.stderr.readline()
        started.send_signal(number)
        # The end of its output comes when no process has it open any more.
        rest = started.communicate(timeout=60)
    assert (first, *rest) == (b"ready\n", b"", b"")
    assert started.returncode == (130 if number is signal.SIGINT else -number)


@pytest.mark.parametrize("closed", ["2>&-", "0<&-", "0<&- 2>&-"])
def test_closed_descriptors_are_no_obstacle(closed: str) -> None:
    program = ["sh", "-c", "echo lost; readlink /proc/self/fd/0; exit 0"]
    words = shlex.join([sys.executable, "-m", "footprint", "run", "-q", "--", *program])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith(b"One process costs ")
    assert b"pipe" not in done.stderr


# --- a program that fails ---------------------------------------------------------------------------------------------

ABORTS = ["sh", "-c", "kill -ABRT $$"]
NEVER_READY = ["sh", "-c", "echo starting"]


@pytest.mark.parametrize(
    ("options", "command", "cause"),
    [
        ([], ABORTS, "SIGABRT ended it"),
        (["--when-output", "ready"], ABORTS, "SIGABRT ended it"),
        (["--when-output", "ready"], NEVER_READY, "it ended before it printed the line that was waited for"),
        (
            ["--when-output", "ready", "--timeout", "0.5"],
            ["sleep", "99"],
            "the time was over before it printed the line",
        ),
        ([], ["sh", "-c", "exit 1"], "it exited with 1, not with 0"),
        (["--expect-exit", "1"], ["true"], "it exited with 0, not with 1"),
        (["--when", "settled"], ["true"], "it ended before its memory had settled"),
    ],
)
def test_a_run_that_failed_fails_run_check_record_and_the_baseline(
    tmp_path: Path, options: list[str], command: list[str], cause: str
) -> None:
    saved, budgets = tmp_path / "run.json", tmp_path / "footprint.toml"
    budgets.write_text('baseline = "baseline.json"\n[budgets]\nper_process_bytes = "1 GiB"\n')
    assert footprint(*options, "-o", str(saved), "--", *command).returncode == 5
    for words, code in (
        (["check", str(saved), "--config", str(budgets)], 1),
        (["check", str(saved), "--config", str(budgets), "--update-baseline"], 1),
        (["trend", "--add", str(saved), "--history", str(tmp_path / "history.sqlite"), "--version", "1"], 3),
    ):
        done = verb(*words)
        assert done.returncode == code, done.stderr
        assert cause in " ".join((done.stdout + done.stderr).decode().split())
    assert not (tmp_path / "baseline.json").exists()
    for form in ("sarif", "junit", "github", "gitlab", "markdown"):
        done = verb("check", str(saved), "--config", str(budgets), "--format", form)
        assert done.returncode == 1
        assert cause in done.stdout.decode().replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (["--allow", "signal"], ABORTS),
        (["--allow", "exit"], ["sh", "-c", "exit 1"]),
        (["--expect-exit", "1"], ["sh", "-c", "exit 1"]),
        (["--when-output", "ready", "--allow", "moment"], NEVER_READY),
        (["--when-output", "ready", "--allow", "moment", "--allow", "signal"], ABORTS),
        (["--when-output", "starting"], ["sh", "-c", "echo starting; sleep 99"]),
    ],
)
def test_a_failure_that_is_allowed_or_expected_fails_nothing(
    tmp_path: Path, options: list[str], command: list[str]
) -> None:
    saved, budgets = tmp_path / "run.json", tmp_path / "footprint.toml"
    budgets.write_text('[budgets]\nper_process_bytes = "1 GiB"\n')
    assert footprint(*options, "-o", str(saved), "--", *command).returncode == 0
    assert verb("check", str(saved), "--config", str(budgets)).returncode == 0


def test_one_start_of_several_that_crashes_fails_the_run(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo >> {count}; [ $(wc -l < {count}) != 2 ] || kill -SEGV $$"
    found = run(["sh", "-c", script], starts=3)
    assert [(one.start, one.detail) for one in found.audit.run_failures] == [(2, "SIGSEGV ended it")]


def test_a_process_that_it_started_fails_the_run_by_a_crash_where_it_is_followed() -> None:
    # SIGTERM is how servers end their workers.
    command = ["sh", "-c", "sh -c 'kill -ABRT $$'; sh -c 'kill -TERM $$'; exit 0"]
    (failure,) = run(command, follow=True).audit.run_failures
    assert failure == ("child", 1, "SIGABRT ended sh, which it started")
    assert run(command, follow=True, allow=["child"]).audit.run_failures == ()
    assert run(command).audit.run_failures == ()


def verb(*words: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "footprint", *words]
    return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)


def test_a_saved_run_has_the_spreads_of_the_run(tmp_path: Path) -> None:
    ran = run(["sh", "-c", "exit"], starts=3)
    save(ran, tmp_path / "run.json")
    saved = audit_target(AuditFile("run.json", (tmp_path / "run.json").read_bytes()), AuditRequest())
    assert saved.spreads == ran.spreads
    assert saved.spreads.start_count == 3
