"""Matching by a user's pattern is given up in time, and leaves the signals of the caller as they were."""

import re
import signal
import threading

import pytest

from footprint.errors import UsageError
from footprint.verbs.time_limit import time_limit


def test_a_match_that_would_take_for_ever_is_given_up() -> None:
    with pytest.raises(UsageError, match="too slow"), time_limit(0.1, "too slow"):
        re.search("(a+)+$", "a" * 64 + "b")


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_afterwards_the_signal_and_the_timer_are_what_they_were(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGVTALRM, handler)
    try:
        with time_limit(60, "too slow"):
            assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
        assert signal.getsignal(signal.SIGVTALRM) == handler
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_in_another_thread_nothing_is_limited() -> None:
    found: list[bool] = []

    def match() -> None:
        with time_limit(60, "too slow"):
            found.append(signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0))

    thread = threading.Thread(target=match)
    thread.start()
    thread.join()
    assert found == [True]
