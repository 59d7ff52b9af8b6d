"""Reads command lines for an answer: without secrets, or names of programs only (`--no-command`).

Here is noted, too, whether an answer holds command lines: then only its owner may read the file. Everybody may read an
answer, but not every command line, so secrets are replaced:

| what is replaced by `***` | examples |
|---|---|
| the value behind `=` or `:` of a name with a secret word | `--password=x`, `PGPASSWORD=x`, `user=a;pwd=x`, `?sig=x` |
| the argument that follows an option with a secret word | `--password x`, `-api-key x` |
| the password in a URL, or the name where it has no password | `https://user:x@host/`, `https://x@host/` |
| what follows `Authorization:`, `Cookie:` or `Bearer` | `-H 'Authorization: Basic x'` |
| the password of `-u`, `--user`, and of `-U name%x` | `-u name:x`, `--user=name:x`, `-uname:x` |
| the short option of a program (`_SHORT_OPTIONS`) | `mysql -px`, `sshpass -p x`, `docker login -p x` |
| the last argument of `htpasswd -b` | `htpasswd -nb name x` |
| what has the form of a key of a known service | `AKIA...`, `ghp_...`, a JSON web token |

Names that end in `file`, `path`, `dir`, `stdin` or `prompt` hold no secret. What a program hides in another form stays.
Each character is looked at a fixed number of times, whatever the text: a stranger chooses it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final

from footprint.members import NamedTuple, lazy_pattern

_MOST_BYTES: Final = 4096


class _Policy:
    """Whether an answer may hold command lines, and whether it does."""

    def __init__(self, *, is_hidden: bool) -> None:
        self.is_hidden = is_hidden
        self.has_some = False


_policy: ContextVar[_Policy | None] = ContextVar("command lines", default=None)


@contextmanager
def command_lines(*, is_hidden: bool) -> Iterator[None]:
    """Decide whether the answer that is made meanwhile holds the names of programs only."""
    token = _policy.set(_Policy(is_hidden=is_hidden))
    try:
        yield
    finally:
        _policy.reset(token)


def has_command_lines() -> bool:
    """Return whether the answer that is being made holds command lines."""
    policy = _policy.get()
    return policy is not None and policy.has_some


def hides_command_lines() -> bool:
    """Return whether the answer holds names of programs only; else it is noted that it holds command lines."""
    policy = _policy.get()
    if policy is None:
        return False
    policy.has_some |= not policy.is_hidden
    return policy.is_hidden


def command_line(data: bytes) -> str:
    """Return the arguments of `/proc/PID/cmdline`, separated by spaces; nothing where the answer holds names only."""
    words = data[:_MOST_BYTES].rstrip(b"\0\n").decode("utf-8", "surrogateescape").split("\0")
    return "" if words == [""] or hides_command_lines() else _joined(tuple(words))


@lru_cache(maxsize=256)  # of thousands of processes, many have the same
def _joined(words: tuple[str, ...]) -> str:
    return " ".join(without_secrets(words))


def shown_command(text: str) -> str:
    """Return a command line that a file holds; its first word where the answer holds names only."""
    if not text:
        return ""
    return text.split(" ", 1)[0] if hides_command_lines() else without_secrets_in(text[:_MOST_BYTES])


def shown_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command that the user gives; the program where the answer holds names only."""
    program, *arguments = words
    return (program,) if hides_command_lines() else (program, *without_secrets(arguments, program))


_HIDDEN: Final = "***"
_SECRET: Final = lazy_pattern(
    r"passw(?:or)?d|passphrase|pwd|secret(?!ary)|token(?!s|i[sz])|credential|masterauth|cookie(?![\w-])|-bearer"
    r"|(?:api|access|account|private|encryption|master|auth)[_-]?key"
    r"|(?<!by)(?<!com)pass(?:in|out)?(?![a-z-])|(?<![a-z])pw(?![a-z])",
    re.IGNORECASE,
)
# Each name that the pattern finds has one of these; no "i", whose other forms are equal for a pattern only.
_IN_SECRETS: Final = ("pass", "pw", "secret", "token", "credent", "masterauth", "cook", "bearer", "key")
_PLACES: Final = ("file", "path", "dir", "stdin", "prompt")
_FLAGS: Final = ("--no-", "--ask-")
_NAME: Final = lazy_pattern(r"(?<![\w.-])([\w.-]++)[\"']?[=:]\s*+")
_QUOTED: Final = lazy_pattern(r""""[^"\\]*+(?:\\.[^"\\]*+)*"|'[^']*+'""", re.DOTALL)
_VALUE_END: Final = lazy_pattern(r"[&;,][\w.-]++=|\s|\Z")
_HEADER: Final = lazy_pattern(r"((?<!\w)(?:authorization|cookie):\s*+|(?<!\w)bearer\s++)(?!\*)[^'\"]+", re.IGNORECASE)
_URL: Final = lazy_pattern(r"([a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/]+(?=@)", re.IGNORECASE)
_URL_NAME: Final = lazy_pattern(r"(https?://)[^\s/:@]++(?=@)", re.IGNORECASE)
_SIGNATURE: Final = lazy_pattern(r"([?&]sig(?:nature)?=)[^&\s\"']++", re.IGNORECASE)
_USERS: Final = ("-u", "-U", "--")
_USER: Final = lazy_pattern(r"-u|--(?:proxy-)?user", re.IGNORECASE)
_USER_IN_WORD: Final = lazy_pattern(r"(-u|--(?:proxy-)?user=)(?=[^:%=/]+[:%])(.+)", re.IGNORECASE | re.DOTALL)
_USER_AND_PASSWORD: Final = lazy_pattern(r"([^:%/]*+[:%])(?!//).+", re.DOTALL)
# A user and a group by their numbers, as in `docker run -u 1000:1000`.
_NUMBERS: Final = lazy_pattern(r"[0-9]+:[0-9]+")
_KEY: Final = lazy_pattern(
    r"(?<!\w)(?:A[KS]IA[0-9A-Z]{16}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|sk-[\w-]{20,}|(?<!-)eyJ[\w-]{8,}+\.[\w-]{8,}(?:\.[\w-]*)?)"
)
_LONG_OPTION: Final = lazy_pattern(r"--[A-Za-z][\w-]*(?:=.*)?", re.DOTALL)


class _ShortOption(NamedTuple):
    """An option whose value is a secret: in the same word, in the next one, or in either.

    Only the pattern of programs whose names may begin so is compiled.
    """

    initials: str
    programs: re.Pattern[str]
    option: str
    has_value_attached: bool
    has_value_following: bool


_SHORT_OPTIONS: Final = tuple(
    _ShortOption(initials, lazy_pattern(programs), option, "attached" in places, "following" in places)
    for initials, programs, option, places in (
        ("m7ur", r"(?:mysql|mariadb)[\w-]*|7z(?:[ar]|zs?)?|(?:un)?rar", "-p", "attached"),
        ("r", r"rar", "-hp", "attached"),
        ("smct", r"sshpass|mongo\w*|cqlsh|twine", "-p", "attached, following"),
        ("rv", r"(?:redis|valkey)-cli", "-a", "attached, following"),
        ("l", r"ldap\w+", "-w", "attached, following"),
        ("uzsbim", r"(?:un)?zip|sqlcmd|bcp|ipmitool|mosquitto_\w+", "-P", "attached, following"),
        ("lug", r"login|(?:user|group)(?:add|mod)", "-p", "attached, following"),  # docker login; the hash of useradd
        ("o", r"openssl", "-k", "following"),
        ("o", r"openssl", "-K", "following"),
    )
)
_HTPASSWD_IN_WORDS: Final = lazy_pattern(r"-[A-Za-z]*b[A-Za-z]*")


def without_secrets(words: Sequence[str], program: str = "") -> list[str]:
    """Return the arguments of a program with `***` in the place of secrets."""
    shown: list[str] = []
    before, options = "", _short_options(program)
    for word in words:
        prefix = next((it.option for it in options if it.has_value_attached and word.startswith(it.option)), word)
        if _announces(before, options) and not _LONG_OPTION.fullmatch(word):
            shown.append(_HIDDEN)
        elif before.startswith(_USERS) and _USER.fullmatch(before) and "://" not in word:
            shown.append(_without_password(word))
        elif prefix != word:
            shown.append(prefix + _HIDDEN)
        elif word.startswith(_USERS) and (user := _USER_IN_WORD.fullmatch(word)):
            shown.append(user[1] + _without_password(user[2]))
        else:
            shown.append(without_secrets_in(word, is_argument=True))
        before = word
        options = _short_options(word) or options
    if _has_last_password([program, *words]):
        shown[-1] = _HIDDEN
    return shown


def _short_options(program: str) -> tuple[_ShortOption, ...]:
    name = os.path.basename(program)
    initial = name[:1] or " "
    return tuple([it for it in _SHORT_OPTIONS if initial in it.initials and it.programs.fullmatch(name)])


def _announces(word: str, options: tuple[_ShortOption, ...]) -> bool:
    """Return whether a secret follows a word."""
    is_short = any(option.has_value_following and word == option.option for option in options)
    return is_short or (word.startswith("-") and not word.startswith(_FLAGS) and _is_secret(word))


def _is_secret(name: str) -> bool:
    # To compile the pattern costs 6,000,000 instructions, and most names have none of these texts.
    has_some = any(map(name.casefold().__contains__, _IN_SECRETS))
    return has_some and bool(_SECRET.search(name)) and "=" not in name and not name.lower().endswith(_PLACES)


def _without_password(user: str) -> str:
    """Return a user without the password behind `:` or `%`; a user and a group by their numbers stay."""
    return user if _NUMBERS.fullmatch(user) else _USER_AND_PASSWORD.sub(rf"\1{_HIDDEN}", user, count=1)


def _has_last_password(words: Sequence[str]) -> bool:
    """Return whether the last word is a password, as of `htpasswd -b FILE NAME PASSWORD`."""
    start = next((place for place, word in enumerate(words) if os.path.basename(word) == "htpasswd"), len(words))
    return len(words) > start + 2 and any(_HTPASSWD_IN_WORDS.fullmatch(word) for word in words[start + 1 : -1])


def without_secrets_in(text: str, *, is_argument: bool = False) -> str:
    """Return a text with `***` in the place of secrets.

    Args:
        text: The text.
        is_argument: Whether it is a whole argument: what follows a name at its beginning is then one value.
    """
    is_url, is_query = "://" in text, "?" in text or "&" in text
    for pattern, may_match in ((_URL, is_url), (_URL_NAME, is_url), (_SIGNATURE, is_query), (_HEADER, True)):
        if may_match:
            text = pattern.sub(rf"\1{_HIDDEN}", text)
    text = _KEY.sub(_HIDDEN, text)
    shown, done = [], 0
    for start, end in _values(text, is_argument=is_argument):
        shown += [text[done:start], _HIDDEN]
        done = end
    text = "".join([*shown, text[done:]])
    return " ".join(without_secrets(text.split(" "))) if " " in text else text


def _values(text: str, *, is_argument: bool) -> Iterator[tuple[int, int]]:
    """Yield where the values of secret names stand; only they are searched for their end, once each."""
    end = 0
    for name in _NAME.finditer(text):
        start = name.end()
        if name.start() < end or not _is_secret(name[1]) or text.startswith(_HIDDEN, start):
            continue
        if is_argument and name.start() == 0:
            end = len(text)
        else:
            quoted = _QUOTED.match(text, start)
            value_end = quoted or _VALUE_END.search(text, start)
            end = len(text) if value_end is None else value_end.end() if quoted else value_end.start()
        if end > start:
            yield start, end
