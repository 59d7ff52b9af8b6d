"""What footprint does now: whoever does it says so, and the command shows it to those who wait."""

__all__ = ("begin", "current")

_now = ""


def begin(text: str) -> None:
    """Set what footprint does from now on, such as `reads /usr/bin/gdb`."""
    global _now  # noqa: PLW0603 # one command does one thing at a time
    _now = text


def current() -> str:
    """Return what footprint does now; empty before the first of it."""
    return _now
