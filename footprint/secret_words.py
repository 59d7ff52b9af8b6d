"""Replaces the secrets in command lines: everybody may read an answer, but not every command line.

| what is replaced by `***` | examples |
|---|---|
| the value behind `=` or `:` of a name with a secret word | `--db-password=x`, `PGPASSWORD=x`, `user=a;pwd=x` |
| the argument that follows an option with a secret word | `--password x`, `-api-key x` |
| the password in a URL | `https://user:x@host/` |
| what follows `Authorization:`, `Cookie:` or `Bearer` | `-H 'Authorization: Basic x'` |
| the password of `-u`, `--user` | `-u name:x` |
| the short option of a program (`_SHORT_OPTIONS`) | `mysql -px`, `sshpass -p x`, `redis-cli -a x` |
| what has the form of a key of a known service | `AKIA...`, `ghp_...`, a JSON web token |

Names that end in `file`, `path` or `dir` hold no secret. What a program hides in another form stays.
"""

import os
import re
from collections.abc import Sequence
from typing import Final

__all__ = ("without_secrets", "without_secrets_in")

_HIDDEN: Final = "***"
_SECRET: Final = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret(?!ary)|token(?!s|i[sz])|credential|(?:api|access|private)[_-]?key"
    r"|(?<!by)(?<!com)pass(?:in|out)?(?![a-z-])",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?<![\w.-])([\w.-]+)[\"']?[=:]\s*")
_QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'[^']*'"""
_NEXT_NAME: Final = r"(?=[&;,][\w.-]+=|$)"
_VALUE: Final = re.compile(rf"{_QUOTED}|\S*?(?:{_NEXT_NAME}|(?=\s))")
_ARGUMENT: Final = re.compile(rf"{_QUOTED}|.*?{_NEXT_NAME}", re.DOTALL)
_HEADER: Final = re.compile(r"((?<!\w)(?:authorization|cookie):\s*+|(?<!\w)bearer\s++)(?!\*)[^'\"]+", re.IGNORECASE)
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/]+(?=@)", re.IGNORECASE)
_USER: Final = re.compile(r"-u|--(?:proxy-)?user", re.IGNORECASE)
_KEY: Final = re.compile(
    r"(?<!\w)(?:A[KS]IA[0-9A-Z]{16}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|sk-[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
# The programs, the option, and whether the password may be the next argument, too.
_SHORT_OPTIONS: Final = (
    (re.compile(r"(?:mysql|mariadb)[\w-]*|7z[ar]?"), "-p", False),
    (re.compile(r"sshpass|mongo\w*"), "-p", True),
    (re.compile(r"(?:redis|valkey)-cli"), "-a", True),
    (re.compile(r"ldap\w+"), "-w", True),
    (re.compile(r"(?:un)?zip|sqlcmd|bcp"), "-P", True),
)


def without_secrets(words: Sequence[str], program: str = "") -> list[str]:
    """Return the arguments of a program with `***` in the place of secrets."""
    shown: list[str] = []
    before, option, may_follow = "", *_short_option(program)
    for word in words:
        if _announces(before, option if may_follow else "") and not word.startswith("-"):
            shown.append(_HIDDEN)
        elif _USER.fullmatch(before) and ":" in word:
            shown.append(f"{word.partition(':')[0]}:{_HIDDEN}")
        elif option and word.startswith(option) and word != option:
            shown.append(f"{option}{_HIDDEN}")
        else:
            shown.append(without_secrets_in(word, _ARGUMENT))
        before = word
        if found := _short_option(word)[0]:
            option, may_follow = found, _short_option(word)[1]
    return shown


def _short_option(program: str) -> tuple[str, bool]:
    name = os.path.basename(program)
    return next(((option, follows) for known, option, follows in _SHORT_OPTIONS if known.fullmatch(name)), ("", False))


def _announces(word: str, option: str) -> bool:
    """Return whether a secret follows a word."""
    return word.startswith("-") and (word == option or _is_secret(word))


def _is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and "=" not in name and not name.lower().endswith(("file", "path", "dir"))


def without_secrets_in(text: str, first: re.Pattern[str] = _VALUE) -> str:
    """Return a text with `***` in the place of secrets; `first` finds the value of its first name."""
    text = _HEADER.sub(rf"\1{_HIDDEN}", _URL.sub(rf"\1{_HIDDEN}", _KEY.sub(_HIDDEN, text)))
    shown, done = [], 0
    for name in _NAME.finditer(text):
        value = (_VALUE if name.start() else first).match(text, name.end())
        if name.start() >= done and _is_secret(name[1]) and value and value[0] and not value[0].startswith(_HIDDEN):
            shown += [text[done : name.end()], _HIDDEN]
            done = value.end()
    text = "".join([*shown, text[done:]])
    return " ".join(without_secrets(text.split(" "))) if " " in text else text
