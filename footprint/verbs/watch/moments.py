"""The moments at which a watch makes a whole audit."""

from enum import StrEnum
from typing import Final, NamedTuple

# All but the audits at the start, at the end and on request take at most this part of a processor, and what is free:
# for looks at what each owner holds, and for all of them.
_SHARE: Final = 0.002
_FREE_LOOK_SECONDS: Final = 0.15
_FREE_SECONDS: Final = 2.0
# While there is free time, looks take at most this part of a processor.
_FREE_PART: Final = 0.02
# A peak or a jump matters from this size on.
_STEP_BYTES: Final = 1 << 20
_STEP_SHARE: Final = 0.1
_JUMP_BYTES: Final = 4 << 20


class AuditMoment(StrEnum):
    """Why a whole audit is made."""

    START = "start"
    PEAK = "peak"
    """All processes hold clearly more than in any audit before."""
    GROWTH = "growth"
    """They hold clearly more than a tick before."""
    LAST = "last"
    """The last one before the end, which could not be audited."""
    END = "end"
    SIGNAL = "signal"
    """SIGUSR1, or a key."""


class AuditBudget:
    """How much processor time the audits may take that nobody asked for.

    Args:
        every_seconds: The time between two ticks.
    """

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._spent_seconds = 0.0
        self._last_cost_seconds = 0.0
        self._next_look = 0.0

    def spend(self, cost_seconds: float, now: float, *, whole_seconds: float, is_asked: bool) -> None:
        """Count a part of an audit; the next one may cost as much as the whole of this one."""
        self._last_cost_seconds = whole_seconds
        if not is_asked:
            self._spent_seconds += cost_seconds
        part = _FREE_PART if self._spent_seconds < _FREE_LOOK_SECONDS else _SHARE
        self._next_look = now + max(self._every_seconds, whole_seconds / part)

    def put_off(self, now: float) -> None:
        """Put the next look off, where one is not needed."""
        self._next_look = now + max(self._every_seconds, self._last_cost_seconds / _SHARE)

    def allows(self, now: float) -> bool:
        """Return whether one more is allowed at a moment that matters."""
        return self._has_left(_FREE_SECONDS, now)

    def _has_left(self, free_seconds: float, now: float) -> bool:
        return self._spent_seconds + self._last_cost_seconds <= free_seconds + _SHARE * now

    def is_look_due(self, now: float) -> bool:
        """Return whether it is time to see what each owner holds."""
        return now >= self._next_look and self._has_left(_FREE_LOOK_SECONDS, now)


class RiseStep(NamedTuple):
    """What decides on an audit at a tick.

    Attributes:
        audited_bytes: The most that an audit has seen.
        before_bytes: What all processes cost a tick before.
    """

    audited_bytes: int
    before_bytes: int

    def moment(self, now_bytes: int) -> AuditMoment | None:
        """Return the moment that this is; None for an ordinary one."""
        if now_bytes > self.audited_bytes + max(_STEP_BYTES, _STEP_SHARE * self.audited_bytes):
            return AuditMoment.PEAK
        if now_bytes > self.before_bytes + max(_JUMP_BYTES, _STEP_SHARE * self.before_bytes):
            return AuditMoment.GROWTH
        return None
