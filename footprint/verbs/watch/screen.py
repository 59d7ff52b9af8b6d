"""A watch on a terminal: drawn anew at each tick, with keys. It is gone at the end, and the report follows."""

import os
import select
import shutil
import sys
import termios
import tty
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Self

from footprint.formats.document import Document, Facts, Heading, Paragraph, Table
from footprint.formats.text import sparkline
from footprint.series.moments import peak_of
from footprint.series.timeline import Timeline, WatchedProcess
from footprint.terminal import draw
from footprint.text.units import counted, format_bytes
from footprint.verbs.watch.text import command_text, duration_text, growth_text, peak_text, target_name, trend_word

_BEGIN: Final = "\x1b[?1049h\x1b[?25l"  # another screen, no cursor
_END: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST: Final = "\x1b[J"
_MOST_WIDE: Final = 40
_LEAST_ROWS: Final = 3
# The lines around the table of processes.
_OTHER_LINES: Final = 14


class SortKey(Enum):
    """What the processes are sorted by."""

    COST = "cost"
    PEAK = "peak"
    CHANGE = "change"
    PID = "pid"

    @property
    def next(self) -> "SortKey":
        """Return the one that the next press chooses."""
        every = list(SortKey)
        return every[(every.index(self) + 1) % len(every)]


def screen_document(timeline: Timeline, sort: SortKey, rows: int, *, has_blocks: bool) -> Document:
    """Show what is known now; at most `rows` processes."""
    shown = sorted(timeline.alive.values(), key=lambda p: _order(p, sort))[:rows]
    line = sparkline(timeline.course.values, _MOST_WIDE, has_blocks=has_blocks)
    growth = timeline.growth()
    owner = max(timeline.owners.items(), key=lambda item: item[1].values[-1:], default=None)
    facts = [
        ("cost now", format_bytes(timeline.sums.cost_bytes), line),
        ("peak", peak_text(peak_of(timeline)), f"at {duration_text(timeline.peak_ms)}"),
        ("trend", trend_word(growth), growth_text(growth, timeline.owner_growth())),
    ]
    if owner is not None and owner[1].values:
        facts.append(("top owner", format_bytes(owner[1].values[-1]), owner[0]))
    work = 100 * timeline.own_cpu_ms / max(1, timeline.ms)
    ended = f"{timeline.process_count - len(timeline.alive):,} ended"
    return (
        Heading(f"{target_name(timeline)}: {duration_text(timeline.ms)}"),
        Facts(tuple(facts)),
        Table(("cost", "peak", "change", "pid", "command"), tuple(map(_row, shown))),
        Paragraph(f"{counted(len(timeline.alive), 'process')}, {ended}; the watch takes {work:.1f} % of a processor."),
        Paragraph(f"s: sort (by {sort.value})  a: audit now  q: end"),
    )


def _order(process: WatchedProcess, sort: SortKey) -> tuple[int, int]:
    figures = {
        SortKey.COST: -process.cost_bytes,
        SortKey.PEAK: -process.peak_cost_bytes,
        SortKey.CHANGE: -_change(process),
        SortKey.PID: process.came.pid,
    }
    return figures[sort], process.came.number


def _change(process: WatchedProcess) -> int:
    values = process.course.values
    return values[-1] - values[0] if values else 0


def _row(process: WatchedProcess) -> tuple[str, ...]:
    change = _change(process)
    signed = "-" if not change else f"{'+' if change > 0 else ''}{format_bytes(change)}"
    sizes = format_bytes(process.cost_bytes), format_bytes(process.peak_cost_bytes)
    return (*sizes, signed, str(process.came.pid), command_text(process.came.command))


class Screen:
    """The terminal while a watch goes on; a context manager that leaves it as it was.

    Args:
        has_colour: Whether to draw with colours.
        has_blocks: Whether the terminal shows block characters.
    """

    def __init__(self, *, has_colour: bool, has_blocks: bool) -> None:
        self._has_colour = has_colour
        self._has_blocks = has_blocks
        self._sort = SortKey.COST
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        with suppress(termios.error):
            self._before = termios.tcgetattr(0)
            tty.setcbreak(0)
        self._write(_BEGIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_END)
        if self._before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def show(self, timeline: Timeline) -> None:
        """Draw what is known now."""
        size = shutil.get_terminal_size()
        rows = max(_LEAST_ROWS, size.lines - _OTHER_LINES)
        document = screen_document(timeline, self._sort, rows, has_blocks=self._has_blocks)
        text = draw(document, size.columns, has_colour=self._has_colour, has_blocks=self._has_blocks)
        lines = text.rstrip("\n").splitlines()[: size.lines - 1]
        self._write(_HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in lines) + _REST)

    def turn(self, timeline: Timeline) -> bool:
        """Read the keys, and return whether an audit is asked for.

        Raises:
            KeyboardInterrupt: If the end is asked for.
        """
        is_asked = False
        while self._before is not None and select.select([0], [], [], 0)[0]:
            key = os.read(0, 1)
            if key in {b"q", b""}:
                raise KeyboardInterrupt
            is_asked |= key == b"a"
            if key == b"s":
                self._sort = self._sort.next
                self.show(timeline)
        return is_asked

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
