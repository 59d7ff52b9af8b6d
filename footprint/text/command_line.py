"""Reads command lines for an answer: without secrets, or names of programs only (`--no-command`).

Here is noted, too, whether an answer holds command lines: then only its owner may read the file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final

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
    from footprint.text.secret_words import without_secrets  # noqa: PLC0415 # its patterns take 3 ms

    return " ".join(without_secrets(words))


def shown_command(text: str) -> str:
    """Return a command line that a file holds; its first word where the answer holds names only."""
    if not text:
        return ""
    from footprint.text.secret_words import without_secrets_in  # noqa: PLC0415 # the same

    return text.split(" ", 1)[0] if hides_command_lines() else without_secrets_in(text[:_MOST_BYTES])


def shown_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command that the user gives; the program where the answer holds names only."""
    from footprint.text.secret_words import without_secrets  # noqa: PLC0415 # the same

    program, *arguments = words
    return (program,) if hides_command_lines() else (program, *without_secrets(arguments, program))
