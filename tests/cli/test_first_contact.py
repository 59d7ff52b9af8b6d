"""What a new user meets: the first screen, targets without a verb, mistakes, the help, a wait, a narrow terminal."""

import ast
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.formats.document import Facts, Table
from footprint.terminal import draw
from footprint.verbs.commands import verb_names
from footprint.verbs.options import PARTS
from footprint.verbs.welcome import Running, proposed, welcome

ROOT = Path(__file__).resolve().parents[2]
SLEEP = str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, error = capfd.readouterr()
    return code, out, error


def test_the_first_screen_shows_four_commands_for_this_machine() -> None:
    assert welcome(Running(4711, "agentd", "/usr/sbin/agentd", 100), 32) == (
        "Usage: footprint COMMAND [OPTIONS] [TARGET]...\n"
        "\n"
        "footprint shows where the memory of a Linux process goes, and what N of them\n"
        "cost. On this machine, for example:\n"
        "\n"
        "  footprint 4711\n"
        "      where the memory of agentd is\n"
        "  footprint audit 4711 --memory 32GiB\n"
        "      how many of them fit into this machine\n"
        "  footprint /usr/sbin/agentd\n"
        "      what a program costs before it runs, and what it does not need\n"
        "  footprint run -- ls -l\n"
        "      what a program holds when it ends\n"
        "\n"
        "`footprint -h` lists all commands, `footprint COMMAND -h` their options;\n"
        "`footprint doctor` shows what this machine lets footprint read.\n"
    )


def test_a_hostile_name_is_escaped_on_the_first_screen() -> None:
    assert "\x1b" not in welcome(Running(1, "\x1b[31mred", None, 0), 1)


def test_without_arguments_the_first_screen_is_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, error = call(capfd)
    assert (code, error) == (2, "")
    assert out.count("\n  footprint ") == 4


def test_a_target_without_a_verb_is_audited(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    audited = call(capfd, "audit", SLEEP, "-n", "3")
    assert call(capfd, SLEEP, "-n", "3") == audited
    monkeypatch.chdir(ROOT / "tests" / "corpus")
    assert call(capfd, "smaps-sleep.txt", "-q") == call(capfd, "audit", "smaps-sleep.txt", "-q")
    assert call(capfd, "./missing") == (3, "", "footprint: ./missing: No such file or directory\n")
    assert call(capfd, "99999999999") == (2, "", "footprint: 99999999999 is not a process ID\n")


@pytest.mark.parametrize(
    ("line", "program"),
    [("#!/bin/sh", "/bin/sh"), ("#! /usr/bin/env -S A=b nothing-here -u", "nothing-here"), ("#!", "/bin/sh")],
)
@pytest.mark.parametrize("verb", ["audit", "libraries", "symbols", "duplicates"])
def test_of_a_script_the_program_is_named_that_runs_it(
    line: str, program: str, verb: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "start.sh"
    script.write_text(f"{line}\nexec agentd\n")
    told = f"footprint: {script}: it is a script of {program}: audit the program that runs it (footprint {program}), "
    assert call(capfd, verb, str(script)) == (3, "", f"{told}or the PID of a process that does\n")


@pytest.mark.parametrize(
    ("verb", "instead"),
    [
        ("heap", "`footprint 4711` shows the heap of a process, and `footprint 4711 --heap PROFILE` who asked for it"),
        ("symbols", "name its program, /proc/4711/exe, or list its files with `footprint libraries 4711`"),
    ],
)
def test_a_verb_that_reads_files_tells_what_to_do_with_a_process(
    verb: str, instead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(capfd, verb, "4711") == (2, "", f"footprint: 4711 is a PID, and no file has this name: {instead}\n")
    (tmp_path / "4711").write_bytes(b"a file")
    code, _, error = call(capfd, verb, "4711")
    assert (code, "PID" in error) == (3, False)


@pytest.mark.parametrize("verb", ["audit", "libraries"])
def test_of_a_program_that_is_named_with_its_root_the_name_below_it_is_shown(
    verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root = ROOT / "sample_binaries"
    path = f"{root}/condor_shadow/base"
    told = "there is no such file, or it cannot be read; below the root it is /condor_shadow/base"
    assert call(capfd, verb, "--root", str(root), path) == (3, "", f"footprint: {path}: {told}\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["audt", SLEEP], "No such command 'audt'. Did you mean 'audit'?\n"),
        (["audit", "--coutn", "3"], "No such option: --coutn. Did you mean '--count'?\n"),
        (["audit", "--zzzz"], "No such option: --zzzz\n"),
        (["lib", SLEEP], "footprint: no command is called lib; did you mean libraries?\n"),
        (["s"], "footprint: no command is called s; did you mean scan or symbols?\n"),
    ],
)
def test_a_mistyped_word_is_corrected(words: list[str], hint: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, error = call(capfd, *words)
    assert code == 2
    assert error.endswith(hint)


def test_the_name_of_a_program_is_no_command_and_both_questions_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "agentd"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, error = call(capfd, "agentd")
    assert (code, out) == (2, "")
    asked = f"`footprint {program}` audits this program, `footprint audit --name agentd` its processes"
    assert error == f"footprint: no command is called agentd: {asked}\n"


@pytest.mark.parametrize(
    ("word", "answer"),
    [("init", "check --init"), ("maps", "audit --by mapping"), ("project", "audit -n N"), ("record", "trend --add")],
)
def test_a_former_verb_names_what_answers_now(word: str, answer: str, capfd: pytest.CaptureFixture[str]) -> None:
    told = f"footprint: no command is called {word}: `footprint {answer}` does it\n"
    assert call(capfd, word, "4711") == call(capfd, "help", word) == (2, "", told)


def test_help_is_a_word_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert call(capfd, "help") == call(capfd, "-h")
    assert call(capfd, "help", "diff") == call(capfd, "diff", "-h")
    assert call(capfd, "version") == call(capfd, "--version")


@pytest.mark.parametrize("verb", ["", *verb_names()])
def test_each_help_fits_80_columns(
    verb: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = call(capfd, *filter(None, [verb]), "-h")[1]
    assert shown.startswith("Usage:")
    assert max(map(len, shown.splitlines())) <= 80
    assert "<int range>" not in shown
    # Nothing is cut.
    assert verb or "..." not in shown.split("Commands:")[1]


@pytest.mark.parametrize("verb", [verb for verb in verb_names() if verb != "capture"])
def test_the_help_shows_the_formats_that_the_answers_of_a_verb_have(
    verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """An answer names its parts where it is made, and each part has its formats."""
    source = (ROOT / "footprint" / "verbs" / verb / "command.py").read_text()
    calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
    made = [one for one in calls if ast.unparse(one.func).split("[")[0] in {"Answer", "answer._replace"}]
    parts = {keyword.arg for one in made for keyword in one.keywords}
    parts |= {"report"} if "has_page" in parts else set()
    shown = " ".join(call(capfd, verb, "-h")[1].split()).split("The format: ")[1].split(";")[0]
    every = ["text", "json", "markdown", "csv", "tsv", "jsonl"]
    assert shown.split(", ") == [*every, *(name.value for name, part in PARTS.items() if part in parts)]


def test_in_a_narrow_terminal_a_name_stands_whole_below_its_figures() -> None:
    table = Table(
        ("private", "pages", "section", "variable"),
        (("4.23 KiB", "2", ".data.rel.ro.local.of.a.long.name", "connection_pool_of_the_server"),),
        frozenset({2}),
        (("4.23 KiB", "", "", "[total]"),),
    )
    assert draw((table,), 60, has_colour=False).split("\n") == [
        "",
        "  private  pages  section",
        "    variable",
        " 4.23 KiB      2  .data.rel.ro.local.of.a.long.name",
        "    connection_pool_of_the_server",
        " 4.23 KiB",
        "    [total]",
        "",
        "",
    ]


def test_in_a_narrow_terminal_a_label_goes_on_below_its_beginning() -> None:
    facts = Facts((("  its objects, all written (startup maximum)", "292 KiB", "predicted"),))
    assert draw((facts,), 40, has_colour=False).split("\n") == [
        "    its objects,   292 KiB  predicted",
        "      all written",
        "      (startup",
        "      maximum)",
        "",
    ]


def test_in_a_narrow_terminal_a_long_remark_leaves_a_label_its_indent() -> None:
    facts = Facts((("  pages with relocations", "24 KiB", "written by the loader at start, before the program runs"),))
    shown = [line.rstrip() for line in draw((facts,), 60, has_colour=False).split("\n")]
    assert shown == [
        "    pages with relocations  24 KiB  written by the loader",
        "                                    at start, before the",
        "                                    program runs",
        "",
    ]


def test_the_process_that_is_proposed_runs_for_a_minute_or_is_the_oldest() -> None:
    short, large, small = (
        Running(1, "cc1", None, 900, 3),
        Running(2, "agentd", None, 500, 61),
        Running(3, "sh", None, 9, 9000),
    )
    assert proposed([short, large, small]) == large
    assert proposed([short, Running(4, "make", None, 1, 20)]) == Running(4, "make", None, 1, 20)
    assert proposed([]) is None
