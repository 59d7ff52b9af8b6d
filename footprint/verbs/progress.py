"""A line on the terminal that says how far a long answer is. It is never in a pipe or a file."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ("progress_line",)

_PAUSE_SECONDS: Final = 0.1
_ERASE: Final = "\r\x1b[K"


@contextmanager
def progress_line(verb: str, *, is_quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows how many of all are done, on standard error; None where that is no terminal.

    The line is erased at the end.
    """
    stream = sys.stderr
    if is_quiet or stream is None or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    shown_seconds = 0.0

    def show(done_count: int, count: int) -> None:
        nonlocal shown_seconds
        now_seconds = time.monotonic()
        if now_seconds - shown_seconds >= _PAUSE_SECONDS:
            shown_seconds = now_seconds
            stream.write(f"{_ERASE}{verb}: {done_count:,} of {count:,} files")
            stream.flush()

    try:
        yield show
    finally:
        stream.write(_ERASE)
        stream.flush()
