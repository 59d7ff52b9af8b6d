"""A line on the terminal that says what a long answer is at. It is never in a pipe or a file.

A timer draws it, not a thread: a thread would keep the rights that `--drop-privileges` gives up. It is not drawn with
rich, which takes longer to import than most answers.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from footprint.system.limits import current_activity, is_main_thread
from footprint.text.escape import printable

# Shorter answers need no line.
_FIRST_SECONDS: Final = 1
_PAUSE_SECONDS: Final = 0.1
_ERASE: Final = "\r\x1b[K"
_drawn_chars = 0


def _has_line(*, is_quiet: bool) -> bool:
    is_terminal = not is_quiet and sys.stderr is not None and sys.stderr.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") != "dumb"


def _draw(text: str) -> None:
    # The handler of the timer may interrupt a write to `sys.stderr`, which cannot be entered twice.
    # NO_COLOR asks for no escape sequence: spaces erase, too.
    global _drawn_chars  # noqa: PLW0603 # the terminal has one line
    erase = f"\r{' ' * _drawn_chars}\r" if os.environ.get("NO_COLOR") else _ERASE
    _drawn_chars = len(text)
    os.write(2, f"{erase}{text}".encode("utf-8", "backslashreplace"))


@contextmanager
def activity_line() -> Iterator[None]:
    """Show what a block does, once it takes longer than a second, until the answer is written."""
    if not _has_line(is_quiet=False) or not is_main_thread():
        yield
        return
    from shutil import get_terminal_size  # noqa: PLC0415 # only on a terminal

    began_seconds = time.monotonic()

    def draw(*_: object) -> None:
        end = f"  {time.monotonic() - began_seconds:.0f} s"
        text = printable(current_activity())
        room = max(get_terminal_size().columns - len(end) - len("footprint ") - 1, 0)
        _draw(f"footprint {text if len(text) <= room else text[: room - 3] + '...'}{end}")

    before = signal.signal(signal.SIGALRM, draw)
    # System calls go on afterwards, also those that are made through ctypes.
    signal.siginterrupt(signal.SIGALRM, False)  # noqa: FBT003 # the parameter has no name
    signal.setitimer(signal.ITIMER_REAL, _FIRST_SECONDS, _PAUSE_SECONDS)
    try:
        yield
    finally:
        end_line()
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def end_line() -> None:
    """Erase the line, where there is one: what follows on the terminal begins there."""
    first_seconds, again_seconds = signal.setitimer(signal.ITIMER_REAL, 0)
    if again_seconds and first_seconds <= again_seconds:
        _draw("")


@contextmanager
def progress_line(*, is_quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows how many of all are done, on standard error; None where that is no terminal.

    The line is erased at the end.
    """
    if not _has_line(is_quiet=is_quiet):
        yield None
        return
    end_line()
    shown_seconds = 0.0

    def show(done_count: int, count: int) -> None:
        nonlocal shown_seconds
        now_seconds = time.monotonic()
        if now_seconds - shown_seconds >= _PAUSE_SECONDS:
            shown_seconds = now_seconds
            _draw(f"audit --all: {done_count:,} of {count:,} files")

    try:
        yield show
    finally:
        _draw("")
