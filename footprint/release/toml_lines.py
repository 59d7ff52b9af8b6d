"""Read TOML, and find the lines of its keys: the standard library does not return them."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from footprint.errors import InputError

Path = tuple[str, ...]

# Strings of several lines and of one, comments, line ends, separators, and everything else. In valid TOML each string
# has its end, so the expression never goes back.
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''.*?'''|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"#[^\n]*|\n|[\[\]{}=]|[^\s\"'#\[\]{}=.]+|.",
    re.DOTALL,
)

_MOST_PARTS: Final = 64
_BETWEEN_KEYS: Final = frozenset("=,[]{}#")


def read_toml(data: bytes, file: str) -> tuple[dict[str, Any], str]:
    """Parse TOML, and return it together with its text.

    Raises:
        InputError: If it is no TOML, or has a key that would take very long.
    """
    try:
        text = data.decode()
        if has_deep_key(text):
            raise InputError(file, "a key in it has more than 64 parts")
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:
        # A TOML error tells line and column; bytes that are no UTF-8 tell their place.
        raise InputError(file, f"it is not TOML: {error}") from error


def has_deep_key(text: str) -> bool:
    """Return whether a text has a key of very many parts: `tomllib` needs very long for these."""
    return any(line.count(".") >= _MOST_PARTS and _is_deep(line) for line in text.split("\n"))


def _is_deep(line: str) -> bool:
    """Return whether a line has a key of too many parts; a string in quotes is one part."""
    quote, is_escaped = "", False
    dot_count, has_part, has_ended = 0, False, False
    for character in line:
        if is_escaped:
            is_escaped = False
        elif quote:
            is_escaped = character == "\\" and quote == '"'
            quote = "" if character == quote else quote
        elif character == ".":
            dot_count = dot_count + 1 if has_part else 0
            has_part = has_ended = False
            # Another part follows the last dot.
            if dot_count == _MOST_PARTS:
                return True
        elif character in " \t":
            has_ended = has_part
        else:
            quote = character if character in "\"'" else ""
            is_apart = has_ended or character in _BETWEEN_KEYS
            dot_count = 0 if is_apart else dot_count
            has_part, has_ended = character not in _BETWEEN_KEYS, False
    return False


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the lines of the tables and keys of a TOML text, by their parts; the first line of repeated keys.

    The contents of `{ }` are on the line of their key.
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    for line, tokens in _statements(text):
        if tokens[0] == "[":
            table = _names(tokens)
            lines.setdefault(table, line)
        elif "=" in tokens:
            lines.setdefault((*table, *_names(tokens[: tokens.index("=")])), line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Return the tokens of each key with its value, and of each heading, with the line where it begins."""
    tokens: list[str] = []
    line, begin, depth = 1, 1, 0
    for match in _TOKEN.finditer(text):
        word = match.group()
        if word == "\n" and not depth:
            if tokens:
                yield begin, tokens
            tokens = []
        elif word.strip() and not word.startswith("#"):
            if not tokens:
                begin = line
            tokens.append(word)
            depth += (word in {"[", "{"}) - (word in {"]", "}"})
        line += word.count("\n")
    if tokens:
        yield begin, tokens


def _names(tokens: Iterable[str]) -> Path:
    return tuple(_name(token) for token in tokens if token not in {"[", "]", "."})


def _name(token: str) -> str:
    if token.startswith("'"):
        return token[1:-1]
    # A string in double quotes has escapes.
    return str(tomllib.loads(f"name = {token}")["name"]) if token.startswith('"') else token
