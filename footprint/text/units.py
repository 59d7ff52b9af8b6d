"""Bytes to text and back; the only place that knows KiB from kB."""

import re
from collections.abc import Sequence
from typing import Final

from footprint.errors import UsageError

_MOST_DIGITS: Final = 19
"""Every number below 2^63 has at most so many digits."""


def decimal(text: str | bytes) -> int | None:
    """Return the number of a text of 1 to 19 ASCII digits; None for any other text.

    `int` alone takes signs, blanks, underscores and the digits of all scripts, `isdigit` takes superscripts that `int`
    refuses, and more than 4,300 digits raise a ValueError.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FACTORS: Final[dict[str, int]] = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("kmgtpe", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
# Of what is no size, which may be of any length.
_SHOWN_CHARS: Final = 80
_QUANTITY: Final = r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+]?[0-9]{1,2})?)\s*([A-Za-z]*)\s*"

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def format_us(time_us: int) -> str:
    """Format microseconds, as milliseconds from one on: 850 us, 1.25 ms."""
    return f"{time_us} us" if abs(time_us) < 1000 else f"{time_us / 1000:,.2f} ms"


def format_bytes(size_bytes: int) -> str:
    """Format a size in the largest binary unit that keeps it at 1 or above, with three or four significant digits.

    A whole number of units is written without a fraction: 995,328 is `972 KiB`, 9,953,280,000 is `9.27 GiB`.
    """
    sign = "-" if size_bytes < 0 else ""
    magnitude = abs(size_bytes)
    power = 0
    while magnitude >> (10 * (power + 1)) and power + 1 < len(_BINARY_UNITS):
        power += 1
    unit_bytes = 1 << (10 * power)
    if magnitude % unit_bytes == 0:
        return f"{sign}{magnitude // unit_bytes} {_BINARY_UNITS[power]}"
    quantity = magnitude / unit_bytes
    # Decided on the rounded figure: 999.96 is written 1000, not 1000.0.
    decimals = 2 if quantity < 9.995 else 1 if quantity < 999.95 else 0
    text = f"{quantity:.{decimals}f}"
    if text == "1024" and power + 1 < len(_BINARY_UNITS):
        # 1,048,575 bytes are 1023.999 KiB: the rounded text belongs to the next unit.
        return f"{sign}1.00 {_BINARY_UNITS[power + 1]}"
    return f"{sign}{text} {_BINARY_UNITS[power]}"


def counted(count: int, noun: str) -> str:
    """Format a number of things: `1 process`, `30,024 mappings`, `2 copies`."""
    return f"1 {noun}" if count == 1 else f"{count:,} {plural(noun)}"


def format_hours(hours: float) -> str:
    """Format a number of hours with three digits or more, without an exponent: `1,234`, `0.000125`."""
    exponent = int(f"{hours:.2e}".partition("e")[2])
    return f"{hours:,.{max(2 - exponent, 0)}f}"


def plural(noun: str) -> str:
    """Return the plural of a noun: `processes`, `mappings`, `copies`."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith('s') else 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def parse_bytes(text: str) -> int:
    """Read a size such as `32GiB`, `1.5 MB` or `4096`; MB is 10^6, MiB is 2^20.

    Raises:
        UsageError: For a bare `M` or `K`, which means 10^6 to some and 2^20 to others, and for anything else.
    """
    match = re.fullmatch(_QUANTITY, text)
    shown = text[:_SHOWN_CHARS]
    if match is None:
        raise UsageError(f"{shown!r} is not a size: write it like 32GiB, 500MB or 4096")
    number, unit = match.group(1), match.group(2).lower()
    if unit in {"k", "m", "g", "t", "p", "e"}:
        prefix = unit.upper()
        raise UsageError(f"{shown!r} is ambiguous: write {prefix}iB for powers of 1024 or {prefix}B for powers of 1000")
    factor = _FACTORS.get(unit)
    if factor is None:
        raise UsageError(f"{shown!r} has no unit that footprint knows: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB")
    if number.isdigit():
        return int(number) * factor
    from fractions import Fraction  # noqa: PLC0415 # a float has too few digits for a large memory

    return round(Fraction(number) * factor)


def parse_seconds(text: str) -> float:
    """Read a time such as `500ms`, `1s`, `10m`, `1h` or `1d`.

    Raises:
        UsageError: For anything else, a number without a unit included.
    """
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)\s*", text)
    if match is None or match.group(2) not in _SECONDS:
        raise UsageError(f"{text[:_SHOWN_CHARS]!r} is not a time: write it like 500ms, 1s, 10m or 1h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def parse_rate(text: str) -> float:
    """Read a rate such as `1MiB/h` or `64KiB/s`, in bytes a second.

    Raises:
        UsageError: For anything else.
    """
    size, slash, unit = text.partition("/")
    if not slash or unit.strip() not in _SECONDS:
        raise UsageError(f"{text[:_SHOWN_CHARS]!r} is not a rate: write it like 1MiB/h or 64KiB/s")
    return parse_bytes(size) / _SECONDS[unit.strip()]


def format_rate(bytes_per_second: float) -> str:
    """Format a rate by the hour."""
    return f"{format_bytes(round(3600 * bytes_per_second))}/h"


def format_minutes(seconds: float) -> str:
    """Format a time of a minute or more: `3 min 20 s`, `2 h 5 min`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes_left, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {name}" for place, (count, name) in enumerate(parts) if count or not place)
