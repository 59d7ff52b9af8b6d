"""What `footprint init` did, in words."""

from collections.abc import Iterator
from typing import Final

from footprint.formats.escape import printable
from footprint.verbs.init.call import Gate
from footprint.verbs.init.project import Forge

__all__ = ("gate_text",)

_MOST_OTHERS: Final = 3
_MEANINGS: Final = {"footprint.toml": "what one process may cost", "footprint-baseline.json": "what it costs now"}


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
    for name in files:
        meaning = _MEANINGS.get(name, "the check in CI")
        yield f"  {'written' if name in gate.files else 'kept   '}  {name:<{width}}  {meaning}"
    yield "To do:"
    yield f"  footprint check {gate.program}    (passes now)"
    yield f"  git add {' '.join(files)}"
    if gate.forge is None:
        yield "  footprint init --ci github    (or gitlab: nothing here says where CI runs)"
    elif gate.build is None:
        yield f"  write in {files[-1]} how the program is built: there is no build file that is known"
    if gate.forge is Forge.GITLAB:
        yield "  write in .gitlab-ci.yml: include: {local: .gitlab/footprint.yml}"
