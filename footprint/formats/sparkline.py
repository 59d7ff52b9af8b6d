"""Values over time in one line."""

from collections.abc import Sequence
from typing import Final

__all__ = ("sparkline",)

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-~=+*#"


def sparkline(values: Sequence[int | None], width: int, *, has_blocks: bool) -> str:
    """Draw the newest values between the smallest and the largest of them; an unknown value is a gap.

    Args:
        values: The values.
        width: How many are drawn at most.
        has_blocks: Whether block characters can be shown; else ASCII.
    """
    shown = values[-width:]
    known = [value for value in shown if value is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    levels = _BLOCKS if has_blocks else _ASCII
    top = len(levels) - 1
    # What never changed is a line in the middle.
    return "".join(
        " " if value is None else levels[top // 2 if most == least else (value - least) * top // (most - least)]
        for value in shown
    )
