"""What looks at the memory of a program while it runs."""

from typing import Protocol

__all__ = ("Onlooker",)


class Onlooker(Protocol):
    """Is called between the events of a program; it decides how often."""

    def begin(self, pid: int, *, adopter: int | None) -> None:
        """Look at a process that is about to execute the program; its orphans become children of the adopter."""

    @property
    def seconds_to_look(self) -> float:
        """Return how long to wait for the next look."""

    def look(self, *, is_forced: bool = False) -> None:
        """Read the counters, but not too often."""

    def see(self, pid: int) -> object:
        """Read a process that is stopped at its exit."""

    def has_reached(self, peak_bytes: int) -> bool:
        """Return whether the program holds so much."""

    def largest(self) -> list[int]:
        """Find the processes that hold most, the largest first."""

    def let_go(self) -> None:
        """Hold the program no longer, where the kernel was asked to."""
