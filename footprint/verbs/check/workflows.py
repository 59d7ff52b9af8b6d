"""The files that run the gate in CI, as texts, and what they need to know of the project."""

import shlex
import stat
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from footprint.elf.abi import ET_EXEC, PT_INTERP
from footprint.elf.image import read_image
from footprint.errors import FootprintError, UsageError
from footprint.release.link_lines import project_files, repository_root
from footprint.system.files import open_input
from footprint.text.escape import printable

_MOST_CONFIG_BYTES: Final = 1 << 16
# By the file that a build starts from: the commands. The first that is there counts.
_BUILDS: Final = {
    "CMakeLists.txt": "cmake -B build && cmake --build build",
    "meson.build": "meson setup build && meson compile -C build",
    "Cargo.toml": "cargo build --release",
    "go.mod": "go build ./...",
    "configure": "./configure && make",
    "Makefile": "make",
    "makefile": "make",
    "GNUmakefile": "make",
}


class Forge(StrEnum):
    """Where the project is hosted, and its CI runs."""

    GITHUB = "github"
    GITLAB = "gitlab"


class Project(NamedTuple):
    """What was found in the folder of a project.

    Attributes:
        programs: The ELF programs that were built in it, the newest first; paths below the folder.
        build: The commands that build it; None if no known build file is there.
        forge: Where it is hosted; None if nothing says so.
        root: The root of its repository, which is the folder itself if it is in none.
        inside: The folder below the root; empty if it is the root.
    """

    programs: tuple[str, ...]
    build: str | None
    forge: Forge | None
    root: Path
    inside: str


def read_project(folder: Path) -> Project:
    """Find the programs, the build and the forge of a project. Nothing is run."""
    programs_found = [path for path in _executables(folder) if _is_program(path)]
    programs_found.sort(key=lambda path: (-path.stat().st_mtime, path))
    programs = tuple(str(path.relative_to(folder)) for path in programs_found)
    build = next((command for name, command in _BUILDS.items() if (folder / name).is_file()), None)
    whole, root = folder.resolve(), repository_root(folder)
    inside = "" if root == whole else str(whole.relative_to(root))
    return Project(programs, build, _forge(folder) or _forge(root), root, inside)


def _executables(folder: Path) -> Iterator[Path]:
    for path in project_files(folder):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & 0o111:
            yield path


def _is_program(path: Path) -> bool:
    """Return whether a file is an ELF program: no library, no object file."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
        image = read_image(open_input(str(path)), str(path))
        return image.type == ET_EXEC or image.segment(PT_INTERP) is not None
    except (OSError, FootprintError):
        return False


def _forge(folder: Path) -> Forge | None:
    if (folder / ".gitlab-ci.yml").is_file():
        return Forge.GITLAB
    if (folder / ".github").is_dir():
        return Forge.GITHUB
    try:
        with (folder / ".git" / "config").open("rb") as file:
            remotes = file.read(_MOST_CONFIG_BYTES)
    except OSError:
        return None
    return next((forge for forge in Forge if forge.encode() in remotes), None)


_GITHUB: Final = """\
# Checks what one process of {program} costs, on each change. Written by `footprint check --init`.
name: footprint{suffix}
on: [push, pull_request]

permissions:
  contents: read
  pull-requests: write # for the comment
  security-events: write # for upload-sarif
{inside}
jobs:
  footprint:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install footprint-audit
      - name: Build
        run: {build}
      - name: What one process may cost
        run: footprint check {quoted} --format github
{start}
      - name: What a running process may cost
        if: always() && hashFiles('{prefix}footprint-run.toml') != '' && hashFiles('{prefix}footprint-run.json') != ''
        run: footprint check footprint-run.json --config footprint-run.toml --format github
      - name: The same for code scanning and for a comment
        if: always()
        run: |
          footprint check {quoted} --format sarif -o footprint.sarif || true
          footprint check {quoted} --format markdown -o footprint-comment.md || true
      - uses: github/codeql-action/upload-sarif@v3
        if: always() && hashFiles('{prefix}footprint.sarif') != ''
        with:
          sarif_file: {prefix}footprint.sarif
      - name: One comment on the change, written anew each time
        if: always() && github.event_name == 'pull_request' && hashFiles('{prefix}footprint-comment.md') != ''
        env:
          GH_TOKEN: ${{{{ github.token }}}}
          COMMENTS: repos/${{{{ github.repository }}}}/issues/${{{{ github.event.number }}}}/comments
        run: |
          # Changes from forks may not comment: their figures are in the summary of the run.
          first="$(head -n 1 footprint-comment.md)"
          own='.[] | select(.body | startswith($first)) | .url'
          found="$(gh api --paginate "$COMMENTS" | jq -r --arg first "$first" "$own" | tail -n 1)"
          if [ -n "$found" ]; then
            gh api -X PATCH "$found" -F body=@footprint-comment.md || true
          else
            gh api -X POST "$COMMENTS" -F body=@footprint-comment.md || true
          fi
"""

_GITLAB: Final = """\
# Checks what one process of {program} costs, on each change. Written by `footprint check --init`.
footprint{suffix}:
  image: python:3.12
  script:
    - pip install footprint-audit
{inside}    - {build}
    - footprint check {quoted} --format junit -o footprint-junit.xml || true
    - footprint check {quoted} --format gitlab -o gl-code-quality-report.json || true
    - footprint check {quoted} --format gitlab-metrics -o footprint-metrics.txt || true
    - footprint check {quoted}
{start}
    - if [ -e footprint-run.toml ]; then footprint check footprint-run.json --config footprint-run.toml; fi
  artifacts:
    when: always
    reports:
      junit: {prefix}footprint-junit.xml
      codequality: {prefix}gl-code-quality-report.json
      metrics: {prefix}footprint-metrics.txt
"""

_GITHUB_START: Final = """\
      - name: The program starts, five times, without a crash or a hang
        run: {run}"""
_GITLAB_START: Final = "    - {run}"
_NOT_STARTED: Final = "To start the program, so that a crash or a hang fails: add its arguments, and when it is up."
_STARTS: Final = {Forge.GITHUB: _GITHUB_START, Forge.GITLAB: _GITLAB_START}
_TEXTS: Final = {Forge.GITHUB: _GITHUB, Forge.GITLAB: _GITLAB}
_FOLDERS: Final = {Forge.GITHUB: ".github/workflows", Forge.GITLAB: ".gitlab"}
_INSIDE: Final = {
    Forge.GITHUB: "\ndefaults:\n  run:\n    working-directory: {folder}\n",
    Forge.GITLAB: "    - cd {folder}\n",
}


def workflow_file(forge: Forge, folder: str = "") -> str:
    """Return the path of the workflow file of a folder of the repository, below its root: forges read none elsewhere.

    At GitLab it is a file of its own, which `.gitlab-ci.yml` includes, so that no file of the project is changed.
    """
    return f"{_FOLDERS[forge]}/footprint{_suffix(folder)}.yml"


def _suffix(folder: str) -> str:
    """Return what tells the gates of several folders apart; nothing for the root of the repository."""
    return f"-{folder.replace('/', '-')}" if folder else ""


def run_command(
    program: str, arguments: Sequence[str] = (), when: str | None = None, when_output: str | None = None
) -> str:
    """Return the command that starts a program, and fails if it crashes, exits with an error, or does not come up."""
    moment = ["--when", when or "settled"] if when_output is None else ["--when-output", when_output]
    path = program if "/" in program else f"./{program}"
    words = ["--starts", "5", *moment, "--timeout", "60", "-o", "footprint-run.json", "--", path, *arguments]
    return f"footprint run {shlex.join(words)}"


def workflow_text(forge: Forge, program: str, build: str | None, run: str | None = None, folder: str = "") -> str:
    """Return the workflow file.

    Args:
        forge: Where the project is hosted.
        program: The path of the program, below the folder of the project.
        build: The commands that build it; None if they are not known.
        run: The command that starts it; None if nobody said how: the file has it as a comment then.
        folder: The folder of the project, below the root of the repository; empty if it is the root.

    Raises:
        UsageError: If a path, or the command, has a meaning in a workflow file that no quotes of a shell take away.
    """
    if set(folder) - _PLAIN:
        raise UsageError(f"{printable(folder)}: a workflow file cannot name this folder: rename it")
    if not _is_plain(program):
        raise UsageError(f"{printable(program)}: a workflow file cannot name this path: rename the file")
    if run is not None and not _is_plain(run):
        raise UsageError(f"{printable(run)}: a workflow file cannot hold this command: write it as a script")
    quoted = "'" + program.replace("'", "'\\''") + "'" if set(program) - _PLAIN else program
    command = build or "exit 1 # write here how the program is built"
    start = _STARTS[forge].format(run=run or run_command(program))
    if run is None:
        margin = len(start) - len(start.lstrip())
        lines = (_NOT_STARTED, *(line[margin:] for line in start.splitlines()))
        start = "\n".join(f"{' ' * margin}# {line}" for line in lines)
    return _TEXTS[forge].format(
        program=" ".join(program.split()),
        quoted=quoted,
        build=command,
        start=start,
        suffix=_suffix(folder),
        prefix=f"{folder}/" if folder else "",
        inside=_INSIDE[forge].format(folder=folder) if folder else "",
    )


def _is_plain(text: str) -> bool:
    """Return whether a text stands in a line of YAML as it is."""
    return text.isprintable() and not any(sign in text for sign in _SIGNS)


# The signs of YAML in a line, and of the expressions of GitHub.
_SIGNS: Final = (": ", " #", "${{")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-")
