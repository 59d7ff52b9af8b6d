"""Lists of directories in ELF files and environment variables: tokens and separators.

Source: ld.so(8), "Rpath token expansion", and elf/dl-load.c of glibc for what it leaves open.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ("Tokens", "directories", "expanded", "parent", "plain")

# The longest name counts: $LIBX and $LIB_ are not tokens, and stay unchanged.
_TOKEN: Final = re.compile(r"\$(?:(ORIGIN|PLATFORM|LIB)(?![A-Za-z0-9_])|\{(ORIGIN|PLATFORM|LIB)\})")


class Tokens(NamedTuple):
    """The values of the tokens for one object; None where unknown."""

    origin: str | None
    lib: str | None
    platform: str | None


def expanded(text: str, tokens: Tokens) -> str | None:
    """Replace the tokens in a name; return None where one of them has no value."""
    if "$" not in text:
        return text
    values = {"ORIGIN": tokens.origin, "LIB": tokens.lib, "PLATFORM": tokens.platform}
    found = {match[1] or match[2] for match in _TOKEN.finditer(text)}
    if any(values[name] is None for name in found):
        return None
    return _TOKEN.sub(lambda match: values[match[1] or match[2]] or "", text)


def directories(text: str, separators: str, expand: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the directories of a list as path prefixes: each ends with a slash, and the working directory is "".

    Args:
        text: The list; an empty text has no element, but `:` has two empty ones.
        separators: The separator characters.
        expand: Expands the tokens of an element; None removes the element.
    """
    if not text:
        return ()
    found: dict[str, None] = {}
    for element in re.split(f"[{separators}]", text):
        if not element:
            found[""] = None
            continue
        directory = expand(element)
        if directory:
            found[directory.rstrip("/") + "/"] = None
    return tuple(found)


def parent(path: str) -> str:
    """Return the directory part of a path."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def plain(path: str) -> str:
    """Remove `.` and `..` from an absolute path, without looking at the file system."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in {"", "."}:
            names.append(name)
    return "/" + "/".join(names)
