"""A limit on the processor time of what a user's own pattern makes us do: some patterns take for ever on some names."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from footprint.errors import UsageError

__all__ = ("time_limit",)


@contextmanager
def time_limit(seconds: float, cause: str) -> Iterator[None]:
    """Stop a block after so much processor time of this process; `re` checks for signals while it matches.

    Only the main thread gets signals: in another one nothing is limited.

    Raises:
        UsageError: With the cause, where it takes longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: object) -> None:
        raise UsageError(cause)

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)
