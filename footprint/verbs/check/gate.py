"""`footprint.init`: the files of a release gate, written from what a project consists of."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from footprint import __version__
from footprint.errors import AccessError, FootprintError, UsageError, cause_of
from footprint.formats.audit_json import audit_json
from footprint.model.figures import FIGURES
from footprint.release.budget import propose
from footprint.release.budget_file import Budgets
from footprint.sources.target import resolve
from footprint.system.files import StrPath
from footprint.system.whole_file import write_file
from footprint.text.escape import printable
from footprint.verbs.audit.call import audit_target
from footprint.verbs.audit.request import AuditRequest
from footprint.verbs.check.call import (
    BASELINE_FILE,
    BUDGET_FILE,
    PROJECT_FILE,
    check,
    growth_budgets,
    has_project_budgets,
    load_budgets,
)
from footprint.verbs.check.text import check_verdict
from footprint.verbs.check.workflows import Forge, read_project, run_command, workflow_file, workflow_text

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
    max_increase: str | None = None,
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
        max_increase: How much its cost may grow since the baseline, such as `5 %`; None for limits with a twentieth of
            room.

    Raises:
        AccessError: If a file cannot be written.
        InputError: If a budget file that is there cannot be read.
        UsageError: If there is no program, its name has a control character, the forge is unknown, there is no such
            moment, or there are arguments without one.
    """
    top = Path(folder)
    project = read_project(top)
    if program is None and not project.programs:
        raise UsageError(f"there is no program in {top}: build it first, or name it")
    name = project.programs[0] if program is None else os.path.relpath(program, top)
    if not name.isprintable():
        raise UsageError(f"{printable(name)}: a budget file cannot name this path: rename the file")
    # In the commands of CI it must not be an option.
    name = f"./{name}" if name.startswith("-") else name
    if forge not in {None, *Forge}:
        raise UsageError(f"{forge} is neither github nor gitlab")
    where = project.forge if forge is None else Forge(forge)
    run = _run(name, when, when_output, arguments)
    is_in_project = not (top / BUDGET_FILE).exists() and has_project_budgets(str(top / PROJECT_FILE))
    config = PROJECT_FILE if is_in_project else BUDGET_FILE
    there = load_budgets(top / config) if (top / config).exists() else None
    texts = _gate_texts(top, name, config, there, max_increase)
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


def _gate_texts(top: Path, name: str, config: str, there: Budgets | None, max_increase: str | None) -> dict[str, str]:
    """Write the budgets and the baseline of a program, as a budget file that is there asks for it, if it does."""
    request = AuditRequest(is_reproducible=there is None or there.is_reproducible)
    audit = replace(audit_target(resolve(top / name), request).audit, target=name)
    header, _, budgets = propose(audit).partition("\n") if max_increase is None else _growth_limits(max_increase)
    growth = "# The baseline is what it cost at the last release; after an agreed growth write it anew:\n"
    growth += f"#   footprint check {shlex.quote(name)} --update-baseline\n"
    texts = {config: f'{header}\n{growth}baseline = "{BASELINE_FILE}"\n{_SAME}{budgets}{_GROWTH}'}
    baseline = BASELINE_FILE if there is None else there.baseline
    return texts if baseline is None else texts | {baseline: audit_json(audit, __version__)}


def _growth_limits(max_increase: str) -> tuple[str, str, str]:
    """Write the limits on growth: their heading, and the tables.

    Raises:
        UsageError: If it is neither a share nor a size.
    """
    growth_budgets(max_increase)
    limits = "".join(
        f'{name} = {{ max_increase = "{" ".join(max_increase.split())}" }}  # {FIGURES[name].meaning}\n'
        for name in ("per_process_bytes", "ceiling_bytes")
    )
    heading = "# How much one process may grow. `footprint check` fails where one of these is exceeded."
    return heading, "\n", f"\n[budgets]\n{limits}"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AccessError(str(path), cause_of(error)) from error
    write_file(path, text.encode("utf-8", "surrogateescape"))


_MOST_OTHERS: Final = 3


def gate_text(gate: Gate) -> str:
    """Describe which files there are now, and what is left to do."""
    return "\n".join(map(printable, _lines(gate)))


def _lines(gate: Gate) -> Iterator[str]:
    yield f"The gate checks {gate.program}."
    others = [name for name in gate.programs if name != gate.program]
    if others:
        rest = f" and {len(others) - _MOST_OTHERS} more" if len(others) > _MOST_OTHERS else ""
        yield f"  Other programs here: {', '.join(others[:_MOST_OTHERS])}{rest}. To check another one, name it."
    files = gate.files + gate.kept
    width = max(map(len, files))
    workflow = gate.workflow
    meanings = {gate.budgets: "what one process may cost", workflow: "the check in CI"}
    for name in files:
        meaning = meanings.get(name, "what it costs now")
        yield f"  {'written' if name in gate.files else 'kept   '}  {name:<{width}}  {meaning}"
    yield "To do:"
    result = "passes now" if gate.problem is None else f"fails now: {gate.problem.rstrip('.')}"
    yield f"  footprint check {shlex.quote(gate.program)}    ({result})"
    yield f"  git add {shlex.join(files)}"
    if gate.forge is None:
        yield "  footprint check --init --ci github    (or gitlab: nothing here says where CI runs)"
    elif gate.build is None and workflow in gate.files:
        yield f"  write in {workflow} how the program is built: there is no build file that is known"
    if gate.run is not None:
        if workflow in gate.kept:
            yield f"  write into {workflow}, which was kept, the command of the next line"
        yield f"  {gate.run}"
        yield "  footprint check footprint-run.json --propose -o footprint-run.toml    (limits for what runs)"
    elif workflow in gate.files:
        yield f"  to start the program in CI as well, so that a crash or a hang fails: see the comment in {workflow}"
    if gate.forge is Forge.GITLAB and workflow is not None:
        yield f"  write in .gitlab-ci.yml: include: {{local: .gitlab/{os.path.basename(workflow)}}}"
