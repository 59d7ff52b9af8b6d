"""The texts that name directories: what their tokens stand for, and how they fall apart into a list.

Source: ld.so(8), "Rpath token expansion", and elf/dl-load.c of glibc for what it leaves open.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ("Tokens", "directories", "expanded", "parent", "plain")

# The longest name counts: $LIBX and $LIB_ are no tokens, and stay as they are.
_TOKEN: Final = re.compile(r"\$(?:(ORIGIN|PLATFORM|LIB)(?![A-Za-z0-9_])|\{(ORIGIN|PLATFORM|LIB)\})")


class Tokens(NamedTuple):
    """What the tokens stand for in the names of one object; None where that is not known."""

    origin: str | None
    lib: str | None
    platform: str | None


def expanded(text: str, tokens: Tokens) -> str | None:
    """Replace the tokens in a name; None where one of them stands for nothing."""
    if "$" not in text:
        return text
    values = {"ORIGIN": tokens.origin, "LIB": tokens.lib, "PLATFORM": tokens.platform}
    found = {match[1] or match[2] for match in _TOKEN.finditer(text)}
    if any(values[name] is None for name in found):
        return None
    return _TOKEN.sub(lambda match: values[match[1] or match[2]] or "", text)


def directories(text: str, separators: str, expand: Callable[[str], str | None]) -> tuple[str, ...]:
    """Give the directories of a list as prefixes of paths: each ends with a slash, and the working directory is "".

    Args:
        text: The list; an empty one has no element, though `:` has two empty ones.
        separators: The characters that part it.
        expand: What an element stands for; None leaves it out.
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
    """Give the directory that a path names its file in."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def plain(path: str) -> str:
    """Take `.` and `..` out of an absolute path, by its text alone."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in {"", "."}:
            names.append(name)
    return "/" + "/".join(names)
