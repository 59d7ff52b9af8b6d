"""`footprint.init`: the files of a release gate, written from what a project consists of."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from footprint import __version__
from footprint.errors import AccessError, FootprintError, UsageError
from footprint.files import StrPath
from footprint.formats.audit_json import audit_json
from footprint.release.budget import Budgets, propose
from footprint.sources.target import resolve
from footprint.verbs.audit.call import audit_target
from footprint.verbs.audit.request import AuditRequest
from footprint.verbs.check.call import check, has_project_budgets, load_budgets
from footprint.verbs.check.text import check_verdict
from footprint.verbs.init.project import Forge, read_project
from footprint.verbs.init.workflows import run_command, workflow_file, workflow_text
from footprint.whole_file import write_file

__all__ = ("Gate", "init")

_BUDGETS: Final = "footprint.toml"
_PROJECT: Final = "pyproject.toml"
_BASELINE: Final = "footprint-baseline.json"
_SAME: Final = "reproducible = true  # the same answer for the same files, on any machine\n"
_GROWTH: Final = """
[libraries]
allow_new = false  # a library that the baseline lacks fails
"""


class Gate(NamedTuple):
    """The gate that was written.

    Attributes:
        program: The program that it checks, as a path below the folder.
        programs: All programs that were found; it is the newest of them if none was named.
        files: The files that were written.
        kept: The files that were there already, and were left as they are.
        build: The commands with which CI builds the program; None if they must be added by hand.
        forge: Where CI runs; None if nothing said so, and no workflow file was written.
        budgets: The budget file: one of the files, or the one that was there already.
        workflow: The workflow file, in the root of the repository, which may be above the folder: one of the files, or
            one that was there already; None where nothing said where CI runs.
        problem: Why the check does not pass now, as a file that was kept may ask for less; None if it passes.
        run: The command with which CI starts the program; None if nobody said when it is up.
    """

    program: str
    programs: tuple[str, ...]
    files: tuple[str, ...]
    kept: tuple[str, ...]
    build: str | None
    forge: Forge | None
    budgets: str
    workflow: str | None = None
    problem: str | None = None
    run: str | None = None


def init(
    program: StrPath | None = None,
    *,
    folder: StrPath = ".",
    forge: str | None = None,
    when: str | None = None,
    when_output: str | None = None,
    arguments: Sequence[str] = (),
) -> Gate:
    """Write a budget file, a baseline, and the workflow file of CI. A file that is there is kept, and nothing is run.

    The budgets are what the program costs now by its files, with some room; the same on any machine with the same
    libraries.

    Args:
        program: The program to check; None for the newest one that was built below the folder.
        folder: The folder of the project.
        forge: `github` or `gitlab`; None for what the project says.
        when: When the program is up, as for `run`: CI starts it then, and fails if it crashes or does not come up.
        when_output: The same by a line of its output.
        arguments: The arguments with which CI starts it.

    Raises:
        AccessError: If a file cannot be written.
        InputError: If a budget file that is there cannot be read.
        UsageError: If there is no program, the forge is unknown, there is no such moment, or there are arguments
            without one.
    """
    top = Path(folder)
    project = read_project(top)
    if program is None and not project.programs:
        raise UsageError(f"there is no program in {top}: build it first, or name it")
    name = project.programs[0] if program is None else os.path.relpath(program, top)
    if forge not in {None, *Forge}:
        raise UsageError(f"{forge} is neither github nor gitlab")
    where = project.forge if forge is None else Forge(forge)
    run = _run(name, when, when_output, arguments)
    config = _PROJECT if not (top / _BUDGETS).exists() and has_project_budgets(str(top / _PROJECT)) else _BUDGETS
    texts = _gate_texts(top, name, config, load_budgets(top / config) if (top / config).exists() else None)
    workflow = None
    if where is not None:
        workflow = workflow_file(where, project.inside)
        if project.inside:
            workflow = os.path.relpath(project.root / workflow, top)
        texts[workflow] = workflow_text(where, name, project.build, run, project.inside)
    kept = tuple(path for path in texts if (top / path).exists())
    written = tuple(path for path in texts if path not in kept)
    for path in written:
        _write(top / path, texts[path])
    problem = _problem(top / name, top / config)
    return Gate(name, project.programs, written, kept, project.build, where, config, workflow, problem, run)


def _run(program: str, when: str | None, when_output: str | None, arguments: Sequence[str]) -> str | None:
    """Return the command with which CI starts the program; None if nobody said when it is up.

    Raises:
        UsageError: If there is no such moment, or if arguments are given without one.
    """
    if when is None and when_output is None:
        if arguments:
            raise UsageError("arguments are for a program that CI starts: say when it is up, as with --when settled")
        return None
    from footprint.verbs.run.call import parse_moment  # noqa: PLC0415 # few gates start their program

    parse_moment("exit" if when in {None, "peak"} else when or "", when_output, 60)
    return run_command(program, arguments, when, when_output)


def _problem(program: Path, config: Path) -> str | None:
    """Return why the check of a program does not pass; None if it does."""
    try:
        checked = check(resolve(program), load_budgets(config))
    except FootprintError as error:
        return str(error)
    return check_verdict(checked) if checked.failures else None


def _gate_texts(top: Path, name: str, config: str, told: Budgets | None) -> dict[str, str]:
    """Write the budgets and the baseline of a program, as a budget file that is there asks for it, if it does."""
    asked = AuditRequest(is_reproducible=told is None or told.is_reproducible)
    audit = replace(audit_target(resolve(top / name), asked).audit, target=name)
    header, _, budgets = propose(audit).partition("\n")
    growth = "# The baseline is what it cost at the last release; after an agreed growth write it anew:\n"
    growth += f"#   footprint check {shlex.quote(name)} --update-baseline\n"
    texts = {config: f'{header}\n{growth}baseline = "{_BASELINE}"\n{_SAME}{budgets}{_GROWTH}'}
    baseline = _BASELINE if told is None else told.baseline
    return texts if baseline is None else texts | {baseline: audit_json(audit, __version__)}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AccessError(str(path), error.strerror or str(error)) from error
    write_file(path, text.encode("utf-8", "surrogateescape"))
