"""What `footprint init` did, in words."""

import os
import shlex
from collections.abc import Iterator
from typing import Final

from footprint.formats.escape import printable
from footprint.verbs.init.call import Gate
from footprint.verbs.init.project import Forge

__all__ = ("gate_text",)

_MOST_OTHERS: Final = 3


def gate_text(gate: Gate) -> str:
    """Write which files there are now, and what is left to do."""
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
        yield "  footprint init --ci github    (or gitlab: nothing here says where CI runs)"
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
