"""Reads `/proc/PID/cmdline` as a text without secrets: everybody may read an answer, but not every command line.

| what is replaced by `***` | examples |
|---|---|
| the value behind `=` or `:` of a name with a secret word | `--db-password=x`, `PGPASSWORD=x`, `user=a;pwd=x` |
| the argument that follows an option with a secret word | `--password x`, `-api-key x` |
| the password in a URL | `https://user:x@host/` |
| what follows `Authorization:` or `Bearer` | `-H 'Authorization: Basic x'` |
| the password of `-u`, `--user` | `-u name:x` |

Names that end in `file`, `path` or `dir` hold no secret. What a program hides in another form stays.
"""

import re
from typing import Final

__all__ = ("command_line",)

_MOST_BYTES: Final = 4096
_HIDDEN: Final = "***"
_SECRET: Final = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|(?:api|access|private)[_-]?key", re.IGNORECASE
)
_NAME: Final = re.compile(r"(?<![\w.-])([\w.-]+)[\"']?[=:]\s*")
_VALUE: Final = re.compile(r"[^\s&;,]*")
_HEADER: Final = re.compile(r"((?<!\w)authorization:\s*|(?<!\w)bearer\s+).+", re.IGNORECASE)
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_USER: Final = re.compile(r"-u|--(?:proxy-)?user", re.IGNORECASE)


def command_line(data: bytes) -> str:
    """Return the arguments of a process, separated by spaces, with secrets replaced."""
    shown: list[str] = []
    before = ""
    for word in data[:_MOST_BYTES].rstrip(b"\0\n").decode("utf-8", "surrogateescape").split("\0"):
        if before.startswith("-") and _is_secret(before) and not word.startswith("-"):
            shown.append(_HIDDEN)
        elif _USER.fullmatch(before) and ":" in word:
            shown.append(f"{word.partition(':')[0]}:{_HIDDEN}")
        else:
            shown.append(_without_secrets(word))
        before = word
    return " ".join(shown)


def _is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and "=" not in name and not name.lower().endswith(("file", "path", "dir"))


def _without_secrets(word: str) -> str:
    word = _HEADER.sub(rf"\1{_HIDDEN}", _URL.sub(rf"\1{_HIDDEN}", word))
    shown, done = [], 0
    for name in _NAME.finditer(word):
        value = _VALUE.match(word, name.end())
        if name.start() >= done and _is_secret(name[1]) and value and value[0]:
            shown += [word[done : name.end()], _HIDDEN]
            done = value.end()
    return "".join([*shown, word[done:]])
