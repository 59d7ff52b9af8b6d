"""Escaping of foreign names: the name of a file may hold anything, terminal escape codes included."""

import re
from typing import Final

# Control characters, characters that change the direction of a line, characters without width, line separators,
# noncharacters, and single surrogates, which stand for bytes that are not UTF-8. It is a string, because few texts
# need it: the first of them pays for the compilation.
_UNSAFE: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
    # A command for a runner of CI, anywhere in a line of a log.
    r"|#(?=#(?:\[|vso\[|teamcity\[))"
)
_COMMAND_LINE: Final = r"^([^\S\n]*):(?=:)"
_SURROGATE: Final = "[\ud800-\udfff]"


def printable(text: str) -> str:
    r"""Replace each character that could control a terminal by an escape such as `\x1b`."""
    return text if is_printable(text) else re.sub(_UNSAFE, _escape, text)


def is_printable(text: str) -> bool:
    """Return whether a text has surely nothing to escape; it is asked of each row of a table."""
    return text.isascii() and text.isprintable() and "##" not in text


def runner_safe(text: str, *, is_json: bool) -> str:
    r"""Escape what a runner of CI would carry out when it reads a log: `##[...]`, and `::` at the begin of a line.

    Args:
        text: Whole lines, or a whole value of JSON, whose names are escaped already.
        is_json: Whether a reader of JSON sees `\u0023` as what it stands for; no line of JSON begins with `::`.

    Source: docs.github.com, "Workflow commands for GitHub Actions"; `ActionCommand.cs` of actions/runner; the logging
    commands of Azure Pipelines.
    """
    if is_json:
        # One character is searched for many times as quickly as two.
        return text.replace("##", r"\u0023\u0023") if "#" in text else text
    return re.sub(_COMMAND_LINE, r"\1\\x3a", text, flags=re.MULTILINE) if "::" in text else text


def shortened(text: str, most: int) -> str:
    """Cut a text to `most` characters; three dots show the cut."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shortened_name(name: str, most: int) -> str:
    """Leave out the middle of a name that is too long: the outermost namespace and the last names stay.

    A path, or a name that is too long without its namespaces, is cut at its beginning.
    """
    if len(name) <= most:
        return name
    parts = _split(name)
    if len(parts) > 2:
        end, *inner = reversed(parts[2:])
        for part in inner:
            if len(f"{parts[0]}::...::{part}::{end}") > most:
                break
            end = f"{part}::{end}"
        for kept in (f"{parts[0]}::...::{end}", f"...::{end}"):
            if len(kept) <= most:
                return kept
    return f"...{name[3 - most :]}"


def _split(name: str) -> list[str]:
    """Split a name of C++ into its parts; template arguments and parameters stay whole."""
    parts, depth, start = list[str](), 0, 0
    for at, character in enumerate(name):
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth -= 1
        elif depth == 0 and at >= start and name.startswith("::", at):
            parts.append(name[start:at])
            start = at + 2
    return [*parts, name[start:]]


def well_formed(text: str) -> str:
    r"""Format bytes that are not UTF-8 as `\xNN` and keep the rest, for formats that quote by themselves (JSON)."""
    return re.sub(_SURROGATE, _escape, text) if not text.isascii() else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
