"""What a user sees of two variants of a program, in the reports of `footprint whatif`."""

from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Facts, Heading, Paragraph
from footprint.units import counted
from footprint.verbs.whatif.result import Agreement, Compared, is_alike

__all__ = ("behaviour_blocks", "behaviour_sentence")

_SEEN: Final = {"stdout": "standard output", "stderr": "standard error", "ending": "its end"}
_END: Final = "[there is none]"


def behaviour_blocks(behaviour: Sequence[Compared], variants: tuple[str, str]) -> list[Block]:
    """List what a user sees of two variants, with the first line that differs; `variants` has their names."""
    return [
        Heading(f"What a user sees, {' and '.join(variants)}"),
        Facts(tuple(map(_seen, behaviour)), "result"),
        *(block for one in behaviour for block in _lines(one, variants)),
    ]


def _seen(one: Compared) -> tuple[str, str, str]:
    remark = (one.before or "") if one.size_bytes is None else counted(one.size_bytes, "byte")
    if one.verdict is Agreement.VARYING:
        remark = "differs between starts of one program, and so says nothing"
    elif one.verdict is Agreement.DIFFERENT:
        remark = "beyond what is kept of it" if one.before is one.after is None else f"from line {one.line} on"
        remark = f"{one.before}, then {one.after}" if one.size_bytes is None else remark
    return _SEEN[one.name], one.verdict.value, remark


def _lines(one: Compared, variants: tuple[str, str]) -> list[Block]:
    """Show the first line that differs."""
    if one.line is None:
        return []
    place = f"{_SEEN[one.name]}, line {one.line}"
    shown = zip(variants, (one.before, one.after), strict=True)
    return [Paragraph(f"{place}, {label}: {_END if line is None else line}") for label, line in shown]


def behaviour_sentence(behaviour: Sequence[Compared]) -> str:
    """Write whether a user sees a difference."""
    if not is_alike(behaviour):
        return "It does not behave as before."
    if any(one.verdict is Agreement.VARYING for one in behaviour):
        return "As far as that is steady, it behaves as before."
    return "It behaves as before."
