"""What a program reads and prints where it does not share the streams of who starts it."""

import os
import select
from collections.abc import Callable
from typing import NamedTuple

__all__ = ("Sink", "Streams", "pass_on")

Sink = Callable[[bytes], object]


class Streams(NamedTuple):
    """Where a program reads from, and who gets what it prints, piece by piece.

    Attributes:
        input_path: What it has as its standard input, opened at its start.
        output: Gets its standard output.
        errors: Gets its standard error.
    """

    input_path: str
    output: Sink
    errors: Sink


def pass_on(piece: bytes) -> None:
    """Write a piece of output to our standard error."""
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(2, rest) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(2, select.POLLOUT)
            poll.poll()
        except OSError:
            # Nobody reads it: the program runs on all the same.
            return
