"""Where the keys of a TOML file stand: the standard library reads what they say, and not where."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

__all__ = ("has_deep_key", "key_lines")

Path = tuple[str, ...]

# Strings over several lines and on one, comments, line ends, what separates, and all else. Of a text that is TOML each
# string has its end, so nothing is looked at twice.
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''.*?'''|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"#[^\n]*|\n|[\[\]{}=]|[^\s\"'#\[\]{}=.]+|.",
    re.DOTALL,
)

# A key of 65 parts. Nothing is given back, a word is looked at from its beginning alone, and a text in quotes has few
# escapes: the cost is linear.
_DEEP_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]++|\\.){0,64}+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}",
)


def has_deep_key(text: str) -> bool:
    """Tell whether a text has a key of more parts than any that is needed: for long ones the reader takes for ever."""
    return _DEEP_KEY.search(text) is not None


def key_lines(text: str) -> Mapping[Path, int]:
    """Give the lines of the tables and keys of a text that is TOML, by their parts; of several of a name the first.

    What stands inside of `{ }` is on the line of its key.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    for line, tokens in _statements(text):
        if tokens[0] == "[":
            table = _names(tokens)
            found.setdefault(table, line)
        elif "=" in tokens:
            found.setdefault((*table, *_names(tokens[: tokens.index("=")])), line)
    return found


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Give the tokens of each key with its value, and of each heading, and the line on which it begins."""
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
    return tuple(_name(one) for one in tokens if one not in {"[", "]", "."})


def _name(token: str) -> str:
    if token.startswith("'"):
        return token[1:-1]
    # A text in quotes has escapes.
    return str(tomllib.loads(f"name = {token}")["name"]) if token.startswith('"') else token
