"""The command as a user runs it: what it prints, where to, and with which exit code."""

import contextlib
import errno
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from tests.elfwriter import RW, At, ElfFile, Section, Sym, write

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
CASE = ROOT / "tests" / "cases" / "condor_shadow"
SAMPLES = ROOT / "sample_binaries"
GOLDEN = Path(__file__).resolve().parent / "golden"

SLEEP = str(CORPUS / "smaps-sleep.txt")
NODE = str(CORPUS / "smaps-node.txt")
TWO_PROCESSES = str(CORPUS / "pmap-4.0.2-x-multi-pid.txt")
KERNEL_THREAD = str(CORPUS / "pmap-4.0.2-d-kthread.txt")
BASE = str(SAMPLES / "condor_shadow" / "base")
MASSIF = str(SAMPLES / "heap_by_function" / "massif.out")
PATIENCE_SECONDS = 120
KIB = 1024

# What decides on colours and widths stands in the environment: each test says what it wants of it.
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES", "TERM", "PYTHONIOENCODING"}},
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    "PYTHONUTF8": "1",
}
for _key in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONDEVMODE", "PYTHONWARNINGS"):
    ENVIRONMENT.pop(_key, None)

Captured = pytest.CaptureFixture[bytes]


def command_of(*words: str) -> list[str]:
    return [sys.executable, "-m", "footprint", *words]


def run(*words: str, stdin: bytes = b"", cwd: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the command in a process of its own, into pipes."""
    return subprocess.run(
        command_of(*words),
        input=stdin,
        cwd=cwd,
        env=ENVIRONMENT | environment,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def call(captured: Captured, *words: str) -> tuple[int, str, str]:
    """Run the command in this process, which is quicker; give its exit code, answers and errors."""
    code = main(words)
    out, error = captured.readouterr()
    return code, out.decode(), error.decode()


def answer(captured: Captured, *words: str) -> str:
    code, out, error = call(captured, *words)
    assert (code, error) == (0, ""), (words, error)
    return out


def assert_is_one_line(error: str) -> None:
    assert error.startswith("footprint: ")
    assert error.endswith("\n")
    assert error.count("\n") == 1
    assert "Traceback" not in error


# --- every verb, as text and as JSON ----------------------------------------------------------------------------------

VERBS = [
    (["audit", SLEEP], "footprint audit: ", {"totals", "ledger", "projection", "findings"}),
    (["audit", "--by", "mapping", SLEEP], "footprint audit --by mapping: ", {"mappings", "footer"}),
    (["audit", SLEEP, BASE, "-n", "10"], "footprint audit: 2 targets side by side", {"targets"}),
    (["symbols", BASE], f"{BASE}: ", {"sections", "symbols"}),
    (["duplicates", BASE], f"{BASE}: ", {"files", "duplicates", "linked_twice", "findings"}),
    (["heap", MASSIF], f"{MASSIF}: ", {"profiles", "snapshots", "owners", "heap", "calls"}),
]
IDS = [words[0] for words, _, _ in VERBS]


@pytest.mark.parametrize(("words", "begin", "tables"), VERBS, ids=IDS)
def test_every_verb_answers_in_text_and_in_json(
    capfdbinary: Captured, words: list[str], begin: str, tables: set[str]
) -> None:
    text = answer(capfdbinary, *words)
    assert text.startswith(begin)
    assert text.endswith(".\n")
    printed = answer(capfdbinary, *words, "--json")
    assert answer(capfdbinary, *words, "--format", "json") == printed
    found = json.loads(printed)
    assert tables <= set(found)
    assert found["schema"] == "footprint/1"
    assert found["tool"] == {"name": "footprint", "version": footprint.__version__}


@pytest.mark.parametrize(("words", "begin", "tables"), VERBS, ids=IDS)
def test_the_call_and_the_command_say_the_same_and_a_pipe_gets_plain_text(
    capfdbinary: Captured, words: list[str], begin: str, tables: set[str]
) -> None:
    done = run(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == answer(capfdbinary, *words)
    assert done.stdout.startswith(begin.encode())
    assert b"\x1b" not in done.stdout
    assert tables


def test_the_version_is_the_packages(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, "--version") == f"footprint {footprint.__version__}\n"


def test_help_names_every_verb_and_each_verb_has_its_own(capfdbinary: Captured) -> None:
    shown = answer(capfdbinary, "--help")
    for verb in ("audit", "symbols", "libraries", "check"):
        assert re.search(rf"^  {verb} ", shown, re.MULTILINE)
        assert answer(capfdbinary, verb, "-h").startswith(f"Usage: footprint {verb} ")


def test_without_a_verb_the_help_is_shown_and_the_use_is_wrong(capfdbinary: Captured) -> None:
    code, out, error = call(capfdbinary)
    assert code == 2
    assert "Usage: footprint" in out + error


# --- exit codes and errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("line 1\nline 2"), RecursionError("too deep"), KeyError("a")])
def test_a_defect_is_one_line_and_exit_code_70(
    error: Exception, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("footprint.attribution.process_audit.total_up", fail)
    code, out, errors = call(capfdbinary, "audit", SLEEP)
    assert (code, out, errors.count("\n")) == (70, "", 1)
    assert errors.startswith(f"footprint: a defect of footprint: {type(error).__name__}: ")
    code, out, errors = call(capfdbinary, "--debug", "audit", SLEEP)
    assert (code, out) == (70, "")
    assert errors.startswith("Traceback (most recent call last):\n")
    assert "in audit_snapshot" in errors


def test_a_python_without_ctypes_is_no_defect() -> None:
    # A process of its own, which may lose its rights.
    code = "import sys; sys.modules['_ctypes'] = None; from footprint.cli import main; sys.exit(main())"
    words = [
        sys.executable,
        "-c",
        code,
        "symbols",
        "--drop-privileges",
        str(ROOT / "sample_binaries/unused_library/shadow"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    text = "footprint: this Python was built without _ctypes, through which footprint calls the kernel\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/proc/1/stat"), "/proc/1/stat: Too many open files"),
        (OSError(errno.ENOSPC, "No space left on device"), "the system refuses: No space left on device"),
    ],
)
def test_an_error_of_the_system_is_no_defect(
    error: OSError, text: str, capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("footprint.attribution.process_audit.total_up", fail)
    assert call(capfdbinary, "audit", SLEEP) == (3, "", f"footprint: {text}\n")


def test_an_error_of_an_input_needs_no_more_of_python_than_its_answer_does() -> None:
    # Whoever gave up its rights may not be able to read the library of the interpreter any more.
    code = "import sys; from footprint.cli import main; main(['audit', 'missing']); print('traceback' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"


def test_an_error_of_an_input_has_a_traceback_only_where_it_is_asked_for(capfdbinary: Captured) -> None:
    assert call(capfdbinary, "audit", "missing") == (3, "", "footprint: missing: No such file or directory\n")
    code, out, told = call(capfdbinary, "--debug", "audit", "missing")
    assert (code, out) == (3, "")
    assert told.startswith("Traceback")
    assert told.endswith("footprint: missing: No such file or directory\n")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["audit", "--by", "mapping"], "name one PID, capture or text"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["audit", SLEEP, "--frobnicate"], "No such option: --frobnicate"),
        (["audit", "--by", "mapping", SLEEP, SLEEP], "name one PID, capture or text"),
        (["audit", "--by", "mapping", SLEEP, "--top", "3"], "--top does not go with it"),
        (["audit", "--by", "mapping", SLEEP, "--reserve", "1GiB"], "--reserve does not go with it"),
        (["audit", "--by", "mapping", SLEEP, "--alloc-fn", "xmalloc"], "--alloc-fn does not go with it"),
        (["audit", SLEEP, "-n", "0"], "0 is not in the range"),
        (["audit", SLEEP, "-n", "1e4"], "'1e4' is not a valid int"),
        (["audit", SLEEP, "-n", "1000000000001"], "is not in the range"),
        (["audit", SLEEP, "--top", "-1"], "-1 is not in the range"),
        (["audit", SLEEP, "--by", "colour"], "'colour' is not one of"),
        (["audit", SLEEP, "--format", "yaml"], "'yaml' is not one of"),
        (["audit", SLEEP, "--color", "sometimes"], "'sometimes' is not one of"),
        (["audit", "--by", "mapping", SLEEP, "--pid", "me"], "'me' is not a valid int"),
        (["symbols"], "Missing argument"),
    ],
)
def test_options_that_cannot_be_are_wrong_use(capfdbinary: Captured, words: list[str], cause: str) -> None:
    code, out, error = call(capfdbinary, *words)
    assert (code, out) == (2, "")
    assert cause in error.splitlines()[-1]
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (
            ["audit", "--by", "mapping", BASE],
            "is a program, which has no mappings: name a process, a capture or a text",
        ),
        (["audit", "0"], "0 is not a process ID"),
        (["audit", "2147483648"], "2147483648 is not a process ID"),
        (["audit", TWO_PROCESSES], "holds 2 processes: choose one with --pid (11837, 11842)"),
        (["audit", SLEEP, "-n", "1", "--memory", "1GiB"], "say how many processes (-n), or how much memory"),
        (["audit", SLEEP, "--memory", "32G"], "'32G' is ambiguous: write GiB for powers of 1024 or GB for"),
        (["audit", SLEEP, "--memory", "much"], "'much' is not a size: write it like 32GiB"),
        (["audit", SLEEP, "-o", ""], "--output needs the name of a file: it is empty"),
        (["audit", SLEEP, "--html", ""], "--html needs the name of a file: it is empty"),
        (["capture", "1", "-o", ""], "--output needs the name of a file: it is empty"),
        (["symbols", BASE, "--map", ""], "--map needs the name of a file: it is empty"),
        (
            ["audit", SLEEP, "--html", "-n", "100"],
            "--html needs a value, and -n is an option (a file of that name is ./-n)",
        ),
        (["audit", SLEEP, "-o", "--json"], "--output needs a value, and --json is an option"),
        (["audit", BASE, "--root", ""], "--root needs the name of a folder: it is empty"),
    ],
)
def test_a_question_that_cannot_be_answered_is_wrong_use_in_one_line(
    capfdbinary: Captured, words: list[str], cause: str
) -> None:
    code, out, error = call(capfdbinary, *words)
    assert (code, out) == (2, "")
    assert_is_one_line(error)
    assert cause in error


def test_a_text_of_one_process_at_two_moments_is_no_choice_of_processes(capfdbinary: Captured, tmp_path: Path) -> None:
    two = Path(TWO_PROCESSES).read_bytes()
    first = two[: two.index(b"11842:")]
    once, again = tmp_path / "once", tmp_path / "again"
    once.write_bytes(first + first)
    again.write_bytes(first + two)
    more_than_once = "holds process 11837 more than once: save one text for each moment\n"
    for words in ([str(once)], [str(once), "--pid", "11837"], [str(again), "--pid", "11837"]):
        assert call(capfdbinary, "audit", *words) == (2, "", f"footprint: {words[0]} {more_than_once}")
    assert "holds 2 processes: choose one with --pid (11837, 11842)" in call(capfdbinary, "audit", str(again))[2]
    assert call(capfdbinary, "audit", str(again), "--pid", "11842")[0] == 0


def test_a_folder_is_no_target_and_the_error_says_what_takes_one(capfdbinary: Captured, tmp_path: Path) -> None:
    code, _, error = call(capfdbinary, "audit", str(tmp_path))
    assert (code, error) == (
        3,
        f"footprint: {tmp_path}: it is a directory; `footprint audit --all` ranks the programs in one\n",
    )


@pytest.mark.parametrize("verb", ["audit", "audit --by mapping", "symbols"])
@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("/no/such/file", "/no/such/file: No such file or directory"),
        ("", "No such file or directory"),
        ("/", "/: it is a directory"),
        ("/dev/zero", "/dev/zero: it is neither a file nor a pipe"),
        ("/dev/null", "/dev/null: it is neither a file nor a pipe"),
        (f"{SLEEP}/below", "Not a directory"),
    ],
)
def test_a_target_that_cannot_be_opened_is_one_line(capfdbinary: Captured, verb: str, target: str, cause: str) -> None:
    code, out, error = call(capfdbinary, *verb.split(), target)
    assert (code, out) == (3, "")
    assert_is_one_line(error)
    assert cause in error


@pytest.mark.parametrize(
    ("verb", "text", "cause"),
    [
        ("audit", b"", "the file is empty: kernel threads and zombies have no mappings"),
        ("audit", b"a recipe\nfor soup\n", "neither maps, smaps nor pmap output"),
        ("audit", bytes(100), "neither maps, smaps nor pmap output"),
        ("audit", b"\x1f\x8b\x08\x00" + bytes(100), "the compressed data is damaged"),
        ("symbols", b"", "the file is empty"),
        ("symbols", b"a recipe\n", "not an ELF file"),
        ("symbols", b"\x7fELF", "offset 0x4: the file is cut: its header needs at least 52 bytes"),
        ("symbols", b"\x7fELF\x02\x01\x01" + bytes(9), "offset 0x10: the file is cut: its header needs 64 bytes"),
        ("symbols", b"\x7fELF\x03\x01\x01" + bytes(60), "offset 0x4: ELF class 3 with byte order 1 is not defined"),
    ],
)
def test_a_file_of_another_kind_or_a_damaged_one_is_one_line_that_names_it(
    capfdbinary: Captured, tmp_path: Path, verb: str, text: bytes, cause: str
) -> None:
    path = tmp_path / "input"
    path.write_bytes(text)
    code, out, error = call(capfdbinary, verb, str(path))
    assert (code, out) == (3, "")
    assert_is_one_line(error)
    assert error.startswith(f"footprint: {path}: ")
    assert cause in error


def test_a_process_that_a_text_does_not_hold_is_one_line(capfdbinary: Captured) -> None:
    code, out, error = call(capfdbinary, "audit", TWO_PROCESSES, "--pid", "4711")
    assert (code, out) == (3, "")
    assert_is_one_line(error)
    assert "no mapping of process 4711 in it" in error


def test_the_text_of_a_kernel_thread_has_no_mapping(capfdbinary: Captured) -> None:
    code, _, error = call(capfdbinary, "audit", KERNEL_THREAD)
    assert code == 3
    assert_is_one_line(error)
    assert "no mapping in it: kernel threads, zombies and processes that ended have none" in error


def test_processes_that_a_text_does_not_number_are_not_said_to_have_numbers(
    capfdbinary: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "pmap"
    path.write_bytes(re.sub(rb"^\d+:.*\n", b"", Path(TWO_PROCESSES).read_bytes(), flags=re.MULTILINE))
    code, _, error = call(capfdbinary, "audit", str(path))
    assert code == 2
    assert_is_one_line(error)
    assert "holds 2 processes" in error
    assert "None" not in error


def test_a_text_that_is_cut_behind_the_head_of_a_mapping_still_tells_what_the_others_hold(
    capfdbinary: Captured, tmp_path: Path
) -> None:
    whole = Path(SLEEP).read_text(encoding="utf-8")
    path = tmp_path / "smaps"
    path.write_text(whole[: whole.index("[stack]\n") + len("[stack]\n")], encoding="utf-8")
    found = json.loads(answer(capfdbinary, "audit", str(path), "--json"))
    assert "maps-text-truncated" in {note["slug"] for note in found["notes"]}
    kib = re.findall(r"^Anonymous: +(\d+) kB$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert found["totals"]["private_bytes"] == sum(map(int, kib)) * KIB > 0


def test_a_number_longer_than_any_process_id_is_wrong_use() -> None:
    done = run("audit", "9" * 5000)
    assert done.returncode == 2
    assert_is_one_line(done.stderr.decode())


def test_one_file_of_several_that_cannot_be_read_is_a_note(capfdbinary: Captured) -> None:
    code, out, error = call(capfdbinary, "symbols", BASE, "/no/such/file")
    assert (code, error) == (0, "")
    assert "file-unreadable: /no/such/file: " in out
    assert call(capfdbinary, "symbols", BASE, "/no/such/file", "--strict")[0] == 4
    assert call(capfdbinary, "symbols", "/no/such/file", "/no/other/file")[0] == 3


def test_strict_makes_notes_an_exit_code_and_changes_nothing_else(capfdbinary: Captured) -> None:
    plain = answer(capfdbinary, "audit", SLEEP)
    assert "kernel-memory-unknown: " in plain
    assert call(capfdbinary, "audit", SLEEP, "--strict") == (4, plain, "")
    without_notes = answer(capfdbinary, "symbols", BASE)
    assert call(capfdbinary, "symbols", BASE, "--strict") == (0, without_notes, "")


def open_for_writing(path: Path, reader: "subprocess.Popen[bytes]") -> int:
    """Open a named pipe as soon as somebody reads it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and reader.poll() is None:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        time.sleep(0.01)
    pytest.fail("nobody reads the pipe")


def interrupt(child: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """Interrupt a process until it ends, as a user does: what comes right before Python waits goes unheard."""
    for _ in range(PATIENCE_SECONDS // 5):
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=5)
    pytest.fail("it does not end")


@pytest.mark.parametrize(
    "written", [b"", b"00400000-00401000 r-xp 00000000 08:01 7   /bin/x\n"], ids=["nothing", "half"]
)
def test_an_interrupt_while_a_pipe_is_read_ends_the_command_quietly(tmp_path: Path, written: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        command_of("audit", str(pipe)),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        writer = open_for_writing(pipe, child)
        os.write(writer, written)
        out, error = interrupt(child)
        os.close(writer)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 130
    assert out == b""
    assert error.strip() == b""


@pytest.mark.parametrize(
    "words",
    [
        ["audit", SLEEP],
        ["audit", "--by", "mapping", NODE, "--json"],
        ["symbols", BASE, "-q"],
        ["--version"],
        ["--help"],
    ],
    ids=["text", "json", "one line", "version", "help"],
)
def test_a_reader_that_has_left_is_no_error_to_speak_of(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_of(*words),
        env=ENVIRONMENT,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words", [["audit", SLEEP], ["audit", "--by", "mapping", SLEEP, "--json"]], ids=["text", "json"]
)
def test_a_full_disk_behind_standard_output_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command_of(*words),
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 3
    assert_is_one_line(done.stderr.decode())
    assert b"No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("redirection", "words"), [(">&-", ["audit", SLEEP]), ("<&-", ["audit", "-"])], ids=["output", "input"]
)
def test_a_stream_that_is_closed_is_one_line(redirection: str, words: list[str]) -> None:
    line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *command_of(*words)]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 3
    assert_is_one_line(done.stderr.decode())


def test_the_first_screen_is_no_defect_where_standard_output_is_closed() -> None:
    line = ["sh", "-c", 'exec "$@" >&-', "sh", *command_of()]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (2, b"")


# --- where answers go, and where questions come from ------------------------------------------------------------------


@pytest.mark.parametrize("words", [words for words, _, _ in VERBS], ids=IDS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_an_output_file_holds_what_would_be_printed(
    capfdbinary: Captured, tmp_path: Path, words: list[str], form: str
) -> None:
    path = tmp_path / "answer"
    printed = answer(capfdbinary, *words, "--format", form)
    assert answer(capfdbinary, *words, "--format", form, "-o", str(path)) == ""
    assert path.read_text(encoding="utf-8") == printed
    assert os.listdir(tmp_path) == ["answer"]


def test_a_minus_as_output_file_is_standard_output(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, "audit", SLEEP, "-o", "-") == answer(capfdbinary, "audit", SLEEP)


def test_an_output_file_is_as_readable_as_any_new_file(capfdbinary: Captured, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    answer(capfdbinary, "audit", SLEEP, "-o", str(tmp_path / "answer"))
    assert (tmp_path / "answer").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_an_output_file_is_replaced_by_an_answer_and_kept_where_there_is_none(
    capfdbinary: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "answer"
    path.write_text("the old answer", encoding="utf-8")
    assert call(capfdbinary, "audit", "/no/such/file", "-o", str(path))[0] == 3
    assert path.read_text(encoding="utf-8") == "the old answer"
    answer(capfdbinary, "audit", SLEEP, "-o", str(path))
    assert path.read_text(encoding="utf-8").startswith("footprint audit: ")


@pytest.mark.parametrize(
    "words",
    [
        ["symbols", BASE, "{own}", "-o", "{link}"],
        ["symbols", "{link}", "-o", "{other_name}"],
        ["audit", "{link}", "--html", "{own}"],
        ["diff", "{own}", BASE, "-o", "{own}"],
        ["check", "{link}", "--config", "{budgets}", "--html", "{budgets}"],
    ],
)
def test_an_output_that_is_an_input_is_refused_and_stays(
    capfdbinary: Captured, tmp_path: Path, words: list[str]
) -> None:
    file, link, other_name, budgets = (tmp_path / name for name in ("own", "link", "other name", "footprint.toml"))
    file.write_bytes(Path(BASE).read_bytes())
    link.symlink_to(file)
    other_name.hardlink_to(file)
    budgets.write_text("[budgets]\nlibrary_count = 100\n", encoding="utf-8")
    given = [word.format(own=file, link=link, other_name=other_name, budgets=budgets) for word in words]
    code, out, error = call(capfdbinary, *given)
    assert (code, out) == (2, "")
    assert_is_one_line(error)
    assert f"{given[-1]} is what this answer was made from" in error
    assert file.read_bytes() == Path(BASE).read_bytes()
    assert budgets.read_text(encoding="utf-8").startswith("[budgets]")


@pytest.mark.parametrize("place", ["no/such/folder/answer", ""], ids=["no folder", "a folder"])
def test_an_output_file_that_cannot_be_written_is_one_line(capfdbinary: Captured, tmp_path: Path, place: str) -> None:
    code, out, error = call(capfdbinary, "audit", SLEEP, "-o", str(tmp_path / place))
    assert (code, out) == (3, "")
    assert_is_one_line(error)
    assert os.listdir(tmp_path) == []


def test_an_output_file_that_cannot_be_written_to_its_end_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        command_of("audit", "--by", "mapping", NODE, "--json", "-o", str(tmp_path / "answer")),
        env=ENVIRONMENT,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 3
    assert_is_one_line(done.stderr.decode())
    assert os.listdir(tmp_path) == []


def test_an_output_device_is_written_and_not_replaced(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, "audit", SLEEP, "-o", os.devnull) == ""
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize(
    "name", ["smaps-sleep.txt", "maps-sleep.txt", "pmap-4.0.2-d-sleep.txt", "pmap-4.0.2-XX-sleep.txt"]
)
@pytest.mark.parametrize("target", ["-", "/dev/stdin"])
def test_a_minus_as_target_is_standard_input(capfdbinary: Captured, name: str, target: str) -> None:
    text = (CORPUS / name).read_bytes()
    from_pipe = json.loads(run("audit", target, "--json", stdin=text).stdout)
    from_file = json.loads(answer(capfdbinary, "audit", str(CORPUS / name), "--json"))
    assert from_pipe["target"].pop("name") == ("standard input" if target == "-" else target)
    from_file["target"].pop("name")
    for found in (from_pipe, from_file):
        for note in found["notes"]:
            del note["subject"]
    assert from_pipe == from_file


def test_a_minus_is_standard_input_also_beside_a_folder_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "-").mkdir()
    done = run("audit", "-", stdin=(CORPUS / "smaps-sleep.txt").read_bytes(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_elf_file_can_come_from_a_pipe() -> None:
    done = run("symbols", "-", "--json", stdin=Path(BASE).read_bytes())
    assert done.returncode == 0
    assert {"answer.0", "ConfigTab"} <= {row["symbol"] for row in json.loads(done.stdout)["symbols"]}


# --- the options that choose ------------------------------------------------------------------------------------------


def test_pid_chooses_a_process_of_a_text_that_holds_several(capfdbinary: Captured) -> None:
    result = [
        json.loads(answer(capfdbinary, "audit", TWO_PROCESSES, "--json", "--pid", pid)) for pid in ("11837", "11842")
    ]
    assert [one["target"]["pid"] for one in result] == [11837, 11842]
    listed = [
        json.loads(answer(capfdbinary, "audit", "--by", "mapping", TWO_PROCESSES, "--json", "--pid", pid))
        for pid in ("11837", "11842")
    ]
    assert [len(one["mappings"]) for one in listed] == [one["target"]["mapping_count"] for one in result]
    # Counted in the text with grep -c: rows below the first head and below the second.
    # A third process, a kernel thread, has none.
    rows = re.split(r"^\d+:.*$", Path(TWO_PROCESSES).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:3]
    assert [len(re.findall(r"^[0-9a-f]{16} ", part, re.MULTILINE)) for part in rows] == [
        one["target"]["mapping_count"] for one in result
    ]


def table_rows(text: str, heading: str) -> list[str]:
    """Return the lines of the table under a heading, without its column heads."""
    _, _, below = text.partition(f"\n{heading}")
    return below.partition("\n\n")[0].splitlines()[2:]


def test_top_is_how_many_rows_a_table_has_and_zero_is_all(capfdbinary: Captured) -> None:
    heading = "Where the private memory is"
    everything = table_rows(answer(capfdbinary, "audit", NODE, "--top", "0"), heading)
    three = table_rows(answer(capfdbinary, "audit", NODE, "--top", "3"), heading)
    assert three[:3] == everything[:3]
    assert three[3].endswith(f"[{len(everything) - 1 - 3} more: --top 0 shows all]")
    assert three[4].split("  ")[-1] == everything[-1].split("  ")[-1] == "[total]"
    assert len(three) == 5


def test_top_applies_to_symbols_too(capfdbinary: Captured) -> None:
    everything = answer(capfdbinary, "symbols", BASE, "--top", "0")
    two = answer(capfdbinary, "symbols", BASE, "--top", "2")
    assert "shows all]" not in everything
    assert "answer.0" in two
    assert "pe_user" not in two
    assert "shows all]" in two


@pytest.fixture
def foreign_smaps(tmp_path: Path) -> str:
    """Return the smaps of a sleep whose files are surely not on this machine."""
    path = tmp_path / "smaps"
    path.write_bytes(Path(SLEEP).read_bytes().replace(b"/usr/", b"/nowhere/"))
    return str(path)


@pytest.mark.parametrize("by", ["owner", "kind", "section", "symbol"])
def test_by_groups_the_same_bytes_otherwise(capfdbinary: Captured, foreign_smaps: str, by: str) -> None:
    text = answer(capfdbinary, "audit", foreign_smaps, "--by", by, "--top", "0")
    *rows, total = table_rows(text, f"Where the private memory is, by {by}")
    assert total.split()[:2] == ["108", "KiB"]  # Anonymous of smaps_rollup-sleep.txt: 108 kB
    shown = [re.match(r" *(?:(\d+) KiB|-) ", row) for row in rows]
    assert sum(int(found[1] or 0) for found in shown if found) == 108
    assert None not in shown


def test_by_kind_names_kinds_and_by_section_names_owner_and_section(capfdbinary: Captured, foreign_smaps: str) -> None:
    text = answer(capfdbinary, "audit", foreign_smaps, "--by", "kind")
    kinds = {row.rsplit("  ", 1)[1].removesuffix(" *") for row in table_rows(text, "Where the private memory is")}
    assert {"data", "bss", "relro", "text", "heap", "stack", "anonymous", "[total]"} <= kinds
    # Without the files, sections are not known: the kind stands in their place.
    text = answer(capfdbinary, "audit", foreign_smaps, "--by", "section")
    assert re.search(r"  libc\.so\.6  \[data\]$", text, re.MULTILINE)


@pytest.mark.parametrize("words", [words for words, _, _ in VERBS], ids=IDS)
def test_quiet_is_the_last_paragraph_alone(capfdbinary: Captured, words: list[str]) -> None:
    text = answer(capfdbinary, *words)
    assert answer(capfdbinary, *words, "-q") == text.rsplit("\n\n", 1)[1]


def test_verbose_shows_whole_paths_and_linker_names(capfdbinary: Captured) -> None:
    assert re.search(r"  libc\.so\.6(?: \*)?$", answer(capfdbinary, "audit", SLEEP), re.MULTILINE)
    assert re.search(r"  /\S+/libc\.so\.6(?: \*)?$", answer(capfdbinary, "audit", SLEEP, "-v"), re.MULTILINE)
    assert "classad::NULL_XACTION" in answer(capfdbinary, "symbols", BASE, "--top", "0")
    assert "_ZN7classadL12NULL_XACTIONE" in answer(capfdbinary, "symbols", BASE, "--top", "0", "-v")


def test_audit_and_project_give_one_cost(capfdbinary: Captured) -> None:
    audited = json.loads(answer(capfdbinary, "audit", NODE, "-n", "200", "--json"))
    projected = json.loads(answer(capfdbinary, "audit", NODE, "-n", "200", "--json"))
    assert audited["projection"] == projected["projection"]
    assert audited["totals"] == projected["totals"]
    cost = projected["projection"]
    assert cost["total_bytes"] == cost["shared_once_bytes"] + 200 * cost["per_process_bytes"]


def test_as_many_fit_as_the_memory_holds_and_not_one_more(capfdbinary: Captured) -> None:
    cost = json.loads(answer(capfdbinary, "audit", NODE, "--memory", "32GiB", "--json"))["projection"]
    # The page cache of their files takes nothing of it, and fewer fit beside that.
    each_bytes, (limit,) = cost["per_process_bytes"], cost["limits"]
    for count, free_bytes in (
        (cost["count"], 32 * 2**30),
        (limit["beside_cache_count"], 32 * 2**30 - cost["shared_once_bytes"]),
    ):
        assert count * each_bytes <= free_bytes < (count + 1) * each_bytes
    assert f"{cost['count']:,} processes fit into 32 GiB" in answer(
        capfdbinary, "audit", NODE, "--memory", "32GiB", "-q"
    )


# --- the case of the condor_shadow ------------------------------------------------------------------------------------

CASES = {
    "condor_shadow-base": ["audit", "pmap-d.base.txt", "-n", "10000"],
    "condor_shadow-sans-crypt": ["audit", "pmap-d.sans-crypt.rw-only.txt", "-n", "10000"],
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_of_the_case_is_this_to_the_letter(name: str) -> None:
    done = run(*CASES[name], cwd=CASE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_the_case_maps_10092_k_of_which_972_are_writable_and_none_is_shared() -> None:
    text = run(*CASES["condor_shadow-base"], cwd=CASE).stdout.decode()
    facts = [line for line in text.splitlines() if line.startswith("  mapped")]
    assert [re.findall(r"\b\d+K\b", line) for line in facts] == [["972K"], ["0K"], ["10092K"]]
    assert "70 mappings" in text
    assert "10,000 processes cost 9.27 GiB, 972 KiB each" in text  # 972 * 1024 * 10,000 / 2^30 = 9.2697


def test_the_case_has_the_owners_that_were_told_by_hand() -> None:
    text = run(*CASES["condor_shadow-base"], "--top", "0", cwd=CASE).stdout.decode()
    rows = re.findall(r"^ +(\d+) KiB +[\d.]+% .*  (\S+)(?: \*)?$", text, re.MULTILINE)
    writable_kib = {owner: int(kib) for kib, owner in rows}
    assert writable_kib["[heap]"] == 396
    assert writable_kib["[stack]"] == 84
    assert writable_kib["libcrypt-2.11.1.so"] == 4 + 156  # with the memory behind it
    assert writable_kib["libstdc++.so.6.0.13"] == 8 + 24
    assert writable_kib["libcrypto.so.1.0.0"] == 80 + 12
    assert writable_kib["libfreebl3.so"] == 4 + 16
    assert writable_kib["libc-2.11.1.so"] == 4 + 12
    assert writable_kib["condor_shadow-base"] == 8 + 12
    assert writable_kib.pop("[total]") == sum(writable_kib.values()) == 972


def test_without_the_unused_library_the_case_maps_780_k_writable() -> None:
    text = run(*CASES["condor_shadow-sans-crypt"], cwd=CASE).stdout.decode()
    assert "780K" in text
    assert "10,000 processes cost 7.44 GiB, 780 KiB each" in text  # 780 * 1024 * 10,000 / 2^30 = 7.4387
    assert "libcrypt-" not in text
    assert "libfreebl3" not in text


# --- how it looks -----------------------------------------------------------------------------------------------------

SMALL_TEXTS = sorted(
    path.name
    for path in CORPUS.glob("*.txt")
    if path.name.startswith(("maps-", "smaps-", "pmap-")) and not re.search("kthread|zombie|missing|multi", path.name)
)


@pytest.mark.parametrize("name", SMALL_TEXTS)
def test_running_text_stays_within_80_columns(capfdbinary: Captured, name: str) -> None:
    for words in (["audit", "-n", "10000"], ["audit", "--memory", "1GiB"], ["audit", "--by", "mapping"]):
        text = answer(capfdbinary, words[0], str(CORPUS / name), *words[1:])
        origin, *_, last = text.split("\n\n")
        notes = re.findall(r"^Notes\n((?:  .*\n)+)", text, re.MULTILINE)
        running = [*origin.splitlines()[1:], *last.splitlines(), *"".join(notes).splitlines()]
        if "mapping" in words:
            running = [*last.splitlines(), *"".join(notes).splitlines()]
        assert [line for line in running if len(line) > 80 and " " in line.strip()] == []


def in_a_terminal(*words: str, columns: int = 80, **environment: str) -> str:
    """Run the command with a terminal for its output; give what it draws."""
    terminal, end = pty.openpty()
    command = command_of(*words)
    environment = {"TERM": "xterm-256color", "COLUMNS": str(columns)} | environment
    with subprocess.Popen(command, env=ENVIRONMENT | environment, stdout=end, stderr=subprocess.PIPE) as child:
        os.close(end)
        drawn = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # Linux says EIO where the other end was closed
                break
            if not piece:
                break
            drawn += piece
        assert child.wait(PATIENCE_SECONDS) == 0, child.stderr and child.stderr.read()
    os.close(terminal)
    return drawn.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [words for words, _, _ in VERBS], ids=IDS)
def test_a_terminal_gets_colours_and_lines_that_fit_into_it(words: list[str]) -> None:
    drawn = in_a_terminal(*words)
    assert "\x1b[" in drawn
    assert [line for line in re.sub(r"\x1b\[[0-9;]*m", "", drawn).splitlines() if len(line) > 80] == []


def test_no_color_takes_the_colours_from_a_terminal() -> None:
    assert "\x1b" not in in_a_terminal("audit", SLEEP, TERM="dumb")
    assert "\x1b" not in in_a_terminal("audit", SLEEP, "--color", "never")
    assert "\x1b[" in in_a_terminal("audit", SLEEP, NO_COLOR="")  # as no-color.org has it: empty is not set


def test_color_always_gives_colours_to_a_pipe_and_wins_over_no_color() -> None:
    assert b"\x1b[" in run("audit", SLEEP, "--color", "always", NO_COLOR="1").stdout


def test_force_color_gives_colours_to_a_pipe() -> None:
    assert b"\x1b[" in run("audit", SLEEP, FORCE_COLOR="1").stdout
    assert b"\x1b" not in run("audit", SLEEP, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_json_and_one_line_have_no_colours_in_a_terminal_either() -> None:
    assert "\x1b" not in in_a_terminal("audit", SLEEP, "--json")
    assert "\x1b" not in in_a_terminal("audit", SLEEP, "-q")


def test_colours_do_not_change_what_is_said() -> None:
    coloured, plain = in_a_terminal("audit", SLEEP), in_a_terminal("audit", SLEEP, NO_COLOR="1")
    assert "\x1b" not in plain
    assert re.sub(r" +(?=\n)", "", re.sub(r"\x1b\[[0-9;]*m", "", coloured)) == plain


def test_a_name_that_the_encoding_of_the_output_does_not_have_is_escaped(tmp_path: Path) -> None:
    smaps = tmp_path / "smaps"
    smaps.write_text("00400000-00401000 r-xp 00000000 08:01 7   /bin/grün\n", encoding="utf-8")
    assert "grün" in run("audit", str(smaps)).stdout.decode()
    done = run("audit", str(smaps), PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"gr\xfcn" in done.stdout


# --- hostile names ----------------------------------------------------------------------------------------------------

# As a kernel shows them: escape codes, marks that turn a line around, what has no width, bytes that are not UTF-8.
HOSTILE = "/opt/\x1b[2J\x1b]0;title\x07\u202egnp.\u2066exe\u2069\u2028\x9b31m\x00\x7f\r".encode() + b"\xff\xfe.so"
SHOWN = r"\x1b[2J\x1b]0;title\x07\u202egnp.\u2066exe\u2069\u2028\x9b31m\x00\x7f\x0d\xff\xfe.so"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@pytest.fixture
def hostile_smaps(tmp_path: Path) -> str:
    path = tmp_path / "smaps"
    path.write_bytes(
        b"00400000-00402000 r-xp 00000000 08:01 7   %s\nRss: 8 kB\nAnonymous: 0 kB\n"
        b"Shared_Clean: 8 kB\nShared_Dirty: 0 kB\nVmFlags: rd \xff\x1b[1m \n"
        b"00402000-00403000 rw-p 00002000 08:01 7   %s\nRss: 4 kB\nAnonymous: 4 kB\n"
        b"Shared_Clean: 0 kB\nShared_Dirty: 0 kB\n\x1b[1m\xff odd line\nVmFlags: rd wr \n" % (HOSTILE, HOSTILE)
    )
    return str(path)


@pytest.fixture
def hostile_elf(tmp_path: Path) -> str:
    name = os.fsdecode(HOSTILE.replace(b"\0", b""))
    path = tmp_path / os.fsdecode(b"lib\x1b[1m\n\xff.so")
    sections = [Section(f".{name}", flags=RW, data=b"x" * 64)]
    path.write_bytes(write(ElfFile(sections=sections, symbols=[Sym(name, At(f".{name}"), 64)])))
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ["audit"],
        ["audit", "-v", "--by", "symbol"],
        ["audit", "--by", "mapping"],
        ["audit", "--by", "mapping", "-v"],
        ["audit", "-n", "2"],
    ],
)
def test_hostile_names_come_out_escaped(
    capfdbinary: Captured, hostile_smaps: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = answer(capfdbinary, words[0], hostile_smaps, *words[1:])
    assert UNSAFE.findall(text) == []
    assert SHOWN in text


def test_hostile_symbols_come_out_escaped(capfdbinary: Captured, hostile_elf: str) -> None:
    text = answer(capfdbinary, "symbols", hostile_elf, "-v")
    assert UNSAFE.findall(text) == []
    assert SHOWN.replace(r"\x00", "") in text
    assert r"lib\x1b[1m\x0a\xff.so" in text


def test_hostile_names_come_out_escaped_in_a_terminal(hostile_smaps: str, hostile_elf: str) -> None:
    for words in (["audit", "--by", "mapping", hostile_smaps], ["symbols", hostile_elf]):
        drawn = in_a_terminal(*words, NO_COLOR="1")
        assert UNSAFE.findall(drawn) == []
        assert r"\x1b[2J" in drawn


def test_a_hostile_name_of_a_target_comes_out_escaped(
    capfdbinary: Captured, hostile_smaps: str, tmp_path: Path
) -> None:
    hostile = tmp_path / os.fsdecode(b"\x1b[31mred\n\xff")
    code, _, error = call(capfdbinary, "audit", str(hostile))
    assert code == 3
    assert_is_one_line(error)
    assert r"\x1b[31mred\x0a\xff: No such file or directory" in error
    shutil.copy(hostile_smaps, hostile)
    assert UNSAFE.findall(answer(capfdbinary, "audit", str(hostile))) == []


def test_runs_of_spaces_in_a_name_are_shown_as_they_are(capfdbinary: Captured, tmp_path: Path) -> None:
    path = tmp_path / "maps"
    path.write_bytes(b"00400000-00402000 rw-p 00000000 08:01 7   /opt/two  spaces    four.so\n")
    for words in (["audit"], ["audit", "--by", "section"], ["audit", "--by", "symbol"], ["audit", "--by", "mapping"]):
        assert "  two  spaces    four.so" in answer(capfdbinary, words[0], str(path), *words[1:])
    assert "  /opt/two  spaces    four.so" in answer(capfdbinary, "audit", str(path), "-v")


def strings_of(result: object) -> Iterator[str]:
    if isinstance(result, str):
        yield result
    elif isinstance(result, dict):
        for key, value in result.items():
            yield key
            yield from strings_of(value)
    elif isinstance(result, Sequence):
        for value in result:
            yield from strings_of(value)


@pytest.mark.parametrize("verb", ["audit", "audit --by mapping", "symbols"])
def test_hostile_names_are_text_in_json(capfdbinary: Captured, hostile_smaps: str, hostile_elf: str, verb: str) -> None:
    target = hostile_elf if verb == "symbols" else hostile_smaps
    out = answer(capfdbinary, *verb.split(), target, "--json")
    assert out.isascii()
    found = list(strings_of(json.loads(out)))
    # No half of a surrogate pair, which no UTF-8 has: a byte that is not UTF-8 is shown as \xff.
    assert [text for text in found if re.search("[\ud800-\udfff]", text)] == []
    assert any(r"\xff\xfe.so" in text for text in found)
