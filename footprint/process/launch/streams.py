"""The input and output of a program that does not share our streams."""

import os
import select
from collections.abc import Callable
from typing import NamedTuple

__all__ = ("Sink", "Streams", "pass_on")

Sink = Callable[[bytes], object]


class Streams(NamedTuple):
    """The input file of a program, and the receivers of its output.

    Attributes:
        input_path: The file for its standard input, opened at its start.
        output: Called with each piece of its standard output.
        errors: Called with each piece of its standard error.
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
            # Nobody reads it; the program keeps running.
            return
