"""Foreign names made safe to show: a file may be called anything, escape codes included."""

import re
from typing import Final

__all__ = ("printable", "shortened", "well_formed")

# Control characters, what turns the direction of a line, what has no width, line separators, and single surrogates,
# which stand for bytes that are not UTF-8; and what is no character. Compiled where a text is not ASCII, as few are.
_UNSAFE: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_SURROGATE: Final = "[\ud800-\udfff]"


def printable(text: str) -> str:
    r"""Write every character that could do something to a terminal as an escape such as `\x1b`."""
    return text if text.isascii() and text.isprintable() else re.sub(_UNSAFE, _escape, text)


def shortened(text: str, most: int) -> str:
    """Cut a text that is longer than some number of characters, and show that it was."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def well_formed(text: str) -> str:
    r"""Write bytes that are not UTF-8 as `\xNN`, and leave the rest: for formats with quoting of their own (JSON)."""
    return re.sub(_SURROGATE, _escape, text) if not text.isascii() else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
