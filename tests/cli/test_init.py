"""`footprint check --init`: a project without a gate has one after it, and the gate passes as long as nothing grows."""

import os
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from footprint.cli import main

SHADOW = Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow"
BASE = SHADOW / "base"

Captured = pytest.CaptureFixture[bytes]


def call(captured: Captured, *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, error = captured.readouterr()
    return code, out.decode(), error.decode()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project with a program that was built, and work in it."""
    (tmp_path / "build").mkdir()
    shutil.copy(BASE, tmp_path / "build" / "shadow")
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / ".github").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_gate_that_is_written_passes(capfdbinary: Captured, project: Path) -> None:
    code, out, error = call(capfdbinary, "check", "--init")
    assert (code, error) == (0, "")
    assert out.startswith("The gate checks build/shadow.\n  written  footprint.toml ")
    for name in ("footprint.toml", "footprint-baseline.json", ".github/workflows/footprint.yml"):
        assert (project / name).is_file()
        assert name in out
    code, out, _ = call(capfdbinary, "check", "build/shadow")
    assert code == 0
    assert out.rstrip().endswith("limits hold.")


def test_a_library_that_comes_later_fails(capfdbinary: Captured, project: Path) -> None:
    program = project / "build" / "shadow"
    shutil.copy(SHADOW / "sans_crypt", program)
    for library in SHADOW.glob("*.so"):
        shutil.copy(library, project / "build")
    assert call(capfdbinary, "check", "--init")[0] == 0
    shutil.copy(BASE, program)
    code, out, _ = call(capfdbinary, "check", "build/shadow")
    assert code == 1
    failed = [line.removeprefix("Exceeded: ") for line in out.splitlines() if line.startswith("Exceeded: ")]
    assert {"library_count", "libraries.allow_new"} <= set(failed)
    # Which of the two has less room depends on how much the C library of this machine writes at start.
    assert {"per_process_bytes", "private_bytes"} & set(failed)
    assert "libunused.so" in out


def test_the_workflow_builds_and_checks_the_program(capfdbinary: Captured, project: Path) -> None:
    call(capfdbinary, "check", "--init")
    text = (project / ".github/workflows/footprint.yml").read_text()
    assert "        run: make\n" in text
    assert "        run: footprint check build/shadow --format github\n" in text
    assert "${{ github.token }}" in text


@pytest.mark.parametrize(
    ("there", "command"),
    [
        ("CMakeLists.txt", "cmake -B build && cmake --build build"),
        ("Cargo.toml", "cargo build --release"),
        ("go.mod", "go build ./..."),
    ],
)
def test_the_build_is_that_of_the_project(capfdbinary: Captured, project: Path, there: str, command: str) -> None:
    (project / "Makefile").unlink()
    (project / there).touch()
    call(capfdbinary, "check", "--init", "--ci", "gitlab")
    assert f"    - {command}\n" in (project / ".gitlab/footprint.yml").read_text()


def test_without_a_known_build_file_the_workflow_says_what_to_write(capfdbinary: Captured, project: Path) -> None:
    (project / "Makefile").unlink()
    _, out, _ = call(capfdbinary, "check", "--init")
    assert "write in .github/workflows/footprint.yml how the program is built" in out
    assert "exit 1 # write here how the program is built" in (project / ".github/workflows/footprint.yml").read_text()


def test_the_forge_is_told_by_the_remote_of_git(capfdbinary: Captured, project: Path) -> None:
    (project / ".github").rmdir()
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text('[remote "origin"]\n\turl = git@gitlab.com:me/shadow.git\n')
    _, out, _ = call(capfdbinary, "check", "--init")
    assert ".gitlab/footprint.yml" in out
    assert "include: {local: .gitlab/footprint.yml}" in out


@pytest.mark.parametrize(
    ("forge", "workflow", "lines"),
    [
        (
            "github",
            ".github/workflows/footprint-services-web.yml",
            [
                "name: footprint-services-web",
                "    working-directory: services/web",
                "          sarif_file: services/web/footprint.sarif",
                "        if: always() && hashFiles('services/web/footprint.sarif') != ''",
            ],
        ),
        (
            "gitlab",
            ".gitlab/footprint-services-web.yml",
            ["footprint-services-web:", "    - cd services/web", "      junit: services/web/footprint-junit.xml"],
        ),
    ],
)
def test_the_workflow_of_a_folder_of_a_repository_is_in_its_root_where_the_forge_reads_it(
    capfdbinary: Captured,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    forge: str,
    workflow: str,
    lines: list[str],
) -> None:
    web = project / "services" / "web"
    web.mkdir(parents=True)
    (project / "build").rename(web / "build")
    (project / ".git").mkdir()
    monkeypatch.chdir(web)
    code, out, error = call(capfdbinary, "check", "--init", "--ci", forge)
    assert (code, error) == (0, "")
    assert f"  written  ../../{workflow}  the check in CI\n" in out
    assert f"git add footprint.toml footprint-baseline.json ../../{workflow}\n" in out
    assert ("include: {local: .gitlab/footprint-services-web.yml}" in out) == (forge == "gitlab")
    assert not set(lines) - set((project / workflow).read_text().splitlines())
    assert not (web / ".github").exists()


def test_where_nothing_says_who_runs_ci_the_rest_is_written(capfdbinary: Captured, project: Path) -> None:
    (project / ".github").rmdir()
    code, out, _ = call(capfdbinary, "check", "--init")
    assert code == 0
    assert "footprint check --init --ci github    (or gitlab" in out
    assert not (project / ".github").exists()
    call(capfdbinary, "check", "--init", "--ci", "github")
    assert (project / ".github/workflows/footprint.yml").is_file()


def test_ci_starts_the_program_if_init_is_told_when_it_is_up(capfdbinary: Captured, project: Path) -> None:
    words = ("--when-output", "listening on", "--", "--port", "80 80")
    code, out, _ = call(capfdbinary, "check", "--init", "build/shadow", *words)
    started = "footprint run --starts 5 --when-output 'listening on' --timeout 60 -o footprint-run.json -- build/shadow"
    assert code == 0
    assert f"\n  {started} --port '80 80'\n" in out
    text = (project / ".github/workflows/footprint.yml").read_text()
    assert f"\n        run: {started} --port '80 80'\n" in text
    assert (
        "write into .github/workflows/footprint.yml, which was kept"
        in call(capfdbinary, "check", "--init", "build/shadow", *words)[1]
    )
    call(capfdbinary, "check", "--init", "build/shadow", "--ci", "gitlab", "--when", "exit")
    text = (project / ".gitlab/footprint.yml").read_text()
    assert "\n    - footprint run --starts 5 --when exit --timeout 60 -o footprint-run.json -- build/shadow\n" in text


def test_a_program_that_nobody_said_how_to_start_is_started_in_a_comment(capfdbinary: Captured, project: Path) -> None:
    _, out, _ = call(capfdbinary, "check", "--init")
    assert "crash or a hang fails: see the comment in .github/workflows/footprint.yml" in out
    text = (project / ".github/workflows/footprint.yml").read_text()
    assert "      #   run: footprint run --starts 5 --when settled --timeout 60 -o footprint-run.json -- build/" in text


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--", "--port"], "arguments are for a program that CI starts: say when it is up, as with --when settled"),
        (["--when", "soon"], "'soon' is not a moment"),
        (["--when-output", "("], "'(' is not a regular expression"),
    ],
)
def test_a_start_that_cannot_be_is_wrong_use_and_nothing_is_written(
    capfdbinary: Captured, project: Path, words: list[str], cause: str
) -> None:
    code, _, error = call(capfdbinary, "check", "--init", "build/shadow", *words)
    assert code == 2
    assert cause in error
    assert not (project / "footprint.toml").exists()


def test_files_that_are_there_are_kept(capfdbinary: Captured, project: Path) -> None:
    (project / "footprint.toml").write_text("[budgets]\nlibrary_count = 9\n")
    code, out, _ = call(capfdbinary, "check", "--init")
    assert code == 0
    assert "kept     footprint.toml" in out
    assert (project / "footprint.toml").read_text() == "[budgets]\nlibrary_count = 9\n"
    # It names no baseline: nothing would read one.
    assert not (project / "footprint-baseline.json").exists()


def test_the_baseline_is_the_one_that_the_budget_file_names(capfdbinary: Captured, project: Path) -> None:
    text = 'baseline = "before.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }\n'
    (project / "footprint.toml").write_text(text)
    out = call(capfdbinary, "check", "--init")[1]
    assert "  written  before.json                      what it costs now\n" in out
    assert "footprint check build/shadow    (passes now)" in out


def test_budgets_of_a_python_project_are_kept(capfdbinary: Captured, project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.footprint.budgets]\nlibrary_count = 9\n")
    out = call(capfdbinary, "check", "--init")[1]
    (kept,) = (line.split() for line in out.splitlines() if "pyproject.toml  " in line)
    assert " ".join(kept) == "kept pyproject.toml what one process may cost"
    assert not (project / "footprint.toml").exists()
    assert call(capfdbinary, "check", "build/shadow")[0] == 0


def test_what_does_not_pass_now_is_told(capfdbinary: Captured, project: Path) -> None:
    (project / "footprint.toml").write_text("[budgets]\nlibrary_count = 1\n")
    out = call(capfdbinary, "check", "--init")[1]
    assert "check build/shadow    (fails now: 1 of 1 limit exceeded: library_count by 2, among them libc.so.6)\n" in out
    (project / "footprint.toml").write_text('baseline = "footprint-baseline.json"\n[libraries]\nallow_new = false\n')
    call(capfdbinary, "check", "--init")
    (project / "build" / "other").write_bytes(BASE.read_bytes())
    out = call(capfdbinary, "check", "--init", "build/other")[1]
    assert "check build/other    (fails now: footprint-baseline.json: it is a baseline of shadow, this is other)" in out


def test_a_budget_file_that_cannot_be_read_is_reported_before_anything_is_written(
    capfdbinary: Captured, project: Path
) -> None:
    (project / "footprint.toml").write_text("x = [")
    code, out, error = call(capfdbinary, "check", "--init")
    assert (code, out) == (3, "")
    assert error.startswith("footprint: footprint.toml: it is not TOML: ")
    assert not (project / ".github/workflows/footprint.yml").exists()


def test_the_build_is_to_be_written_in_the_workflow_also_where_other_files_are_kept(
    capfdbinary: Captured, project: Path
) -> None:
    (project / "Makefile").unlink()
    (project / "footprint.toml").write_text("[budgets]\nlibrary_count = 9\n")
    out = call(capfdbinary, "check", "--init")[1]
    assert "  write in .github/workflows/footprint.yml how the program is built: " in out


def test_of_several_programs_the_newest_is_checked_and_the_others_are_named(
    capfdbinary: Captured, project: Path
) -> None:
    older = project / "build" / "older"
    shutil.copy(BASE, older)
    os.utime(older, (1, 1))
    _, out, _ = call(capfdbinary, "check", "--init")
    assert out.startswith("The gate checks build/shadow.\n  Other programs here: build/older.")


def test_libraries_objects_scripts_and_hidden_folders_are_no_programs(capfdbinary: Captured, project: Path) -> None:
    (project / "build" / "shadow").unlink()
    (project / ".venv").mkdir()
    shutil.copy(BASE, project / ".venv" / "python")
    script = project / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    code, _, error = call(capfdbinary, "check", "--init")
    assert code == 2
    assert error == "footprint: there is no program in .: build it first, or name it\n"


def test_a_name_that_a_shell_would_split_is_quoted(capfdbinary: Captured, project: Path) -> None:
    odd = project / "build" / "my 'server'"
    (project / "build" / "shadow").rename(odd)
    call(capfdbinary, "check", "--init")
    text = (project / ".github/workflows/footprint.yml").read_text()
    assert """footprint check 'build/my '\\''server'\\''' --format github""" in text


@pytest.mark.parametrize("forge", ["github", "gitlab", None])
@pytest.mark.parametrize("name", ["a\nlibrary_count = 9999\n#", "a\rb", "a\x1b[31m", "a\udcffb", "a\u2028b"])
def test_a_name_that_would_be_more_than_a_line_is_refused(
    capfdbinary: Captured, project: Path, name: str, forge: str | None
) -> None:
    if forge is None:
        (project / ".github").rmdir()
    (project / "build" / "shadow").rename(project / "build" / name)
    code, _, error = call(capfdbinary, "check", "--init", *(("--ci", forge) if forge else ()))
    assert code == 2
    assert error.count("\n") == 1
    assert "rename the file" in error
    assert not (project / "footprint.toml").exists()


def test_a_program_with_the_name_of_an_option_is_checked_as_a_file(capfdbinary: Captured, project: Path) -> None:
    (project / "evil.toml").write_text("[budgets]\n")
    (project / "build" / "shadow").rename(project / "--config=evil.toml")
    assert call(capfdbinary, "check", "--init", "./--config=evil.toml", "--when", "settled")[0] == 0
    text = (project / ".github/workflows/footprint.yml").read_text()
    commands = [line.strip() for line in text.splitlines() if "evil.toml" in line and not line.startswith("#")]
    assert commands
    assert all("./--config=evil.toml" in command for command in commands)
    checked = next(shlex.split(line.removeprefix("run: footprint ")) for line in commands if "format github" in line)
    code, out, _ = call(capfdbinary, *checked[: checked.index("--format")])
    assert (code, out.rstrip().endswith("limits hold.")) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("check", "--init", "--ci", "jenkins"), 2, "jenkins is neither github nor gitlab"),
        (("check", "--init", "Makefile"), 3, "Makefile"),
        (("check", "--init", "missing"), 3, "missing"),
    ],
)
def test_wrong_use_is_one_line(
    capfdbinary: Captured, project: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    found, out, error = call(capfdbinary, *words)
    assert (found, out) == (code, "")
    assert error.count("\n") == 1
    assert message in error
    assert not (project / "footprint.toml").exists()


def test_a_gate_of_growth_limits_how_much_the_cost_may_grow(capfdbinary: Captured, project: Path) -> None:
    assert call(capfdbinary, "check", "--init", "--max-increase", "5%")[0] == 0
    written = tomllib.loads((project / "footprint.toml").read_text())
    assert written["budgets"] == {name: {"max_increase": "5%"} for name in ("per_process_bytes", "ceiling_bytes")}
    assert written["libraries"] == {"allow_new": False}
    code, out, _ = call(capfdbinary, "check", "build/shadow", "-q")
    assert (code, out) == (0, "All 3 limits hold.\n")


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--init", "--max-increase", "much"], "'much' is not a size"),
        (["--init", "--propose"], "--init writes the files of a gate: it goes with"),
        (["--init", "--json"], "--init writes the files of a gate: it goes with"),
        (["build/shadow", "--ci", "github"], "--ci goes with --init"),
    ],
)
@pytest.mark.usefixtures("project")
def test_the_gate_and_the_check_keep_their_options_apart(capfdbinary: Captured, words: list[str], refused: str) -> None:
    code, _, error = call(capfdbinary, "check", *words)
    assert code == 2
    assert refused in error
