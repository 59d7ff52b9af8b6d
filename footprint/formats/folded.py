"""Stacks as folded lines, `outer;inner 4096`, the input of flame graphs."""

from typing import Final

from footprint.formats.document import About
from footprint.formats.escape import printable
from footprint.formats.stacks import Stacks

__all__ = ("folded",)

_SEPARATOR: Final = ";"


def folded(stacks: Stacks, _about: About) -> str:
    """Write one line per stack with its amount of the first measure; stacks with amount 0 are left out."""
    names = [printable(frame.name).replace(_SEPARATOR, ":") or "[no name]" for frame in stacks.frames]
    sums: dict[str, int] = {}
    for sample in stacks.samples:
        if amount := sample.amounts[0]:
            stack = _safe(_SEPARATOR.join([names[place] for place in sample.frames]))
            sums[stack] = sums.get(stack, 0) + amount
    return "".join(f"{stack} {amount}\n" for stack, amount in sums.items())


def _safe(line: str) -> str:
    """Return a line that is neither a comment nor a command to a CI log."""
    return f"\\x{ord(line[0]):02x}{line[1:]}" if line.startswith(("#", "::")) else line
