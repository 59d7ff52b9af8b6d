"""Heap profiles of tcmalloc, jemalloc and Go as text: rows of amounts and calls, and a memory map behind them.

tcmalloc (gperftools) has heap profiles and heap samples; jemalloc before version 4 has its format, and `heap_v2/PERIOD`
since. Go has a line for each call (`/debug/pprof/heap?debug=1`).

Source: the documentation of pprof in gperftools 2.10; heap-profile-table.cc; jemalloc(3), `prof.dump`; src/prof_data.c
of jemalloc 5.3; runtime/pprof/pprof.go of Go 1.26; parseHeap in profile/legacy_profile.go of github.com/google/pprof.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, expm1
from typing import Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder
from footprint.heap.profile import GO_HEAP, Counted, Frame, HeapSnapshot, Module, Profile, Tally, sampled_notes
from footprint.members import lazy_pattern
from footprint.system.decompression import lines_of
from footprint.text.units import counted

# The limit for rows and addresses together: far more than in any known profile.
_MOST_ADDRS: Final = 1 << 21
_FIGURES: Final = ("blocks in use", "bytes in use", "blocks ever allocated", "bytes ever allocated")
_MAP_HEADING: Final = b"MAPPED_LIBRARIES:"
_MAPPING: Final = lazy_pattern(
    rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) +[r-][w-][x-][ps] +([0-9a-f]{1,16}) +"
    rb"[0-9a-f]{1,8}:[0-9a-f]{1,8} +[0-9]{1,20} *(.*)"
)


Estimate = Callable[[int, int, int], tuple[int, int]]
"""Estimates blocks and bytes from those of the samples, and their period."""
_AMOUNT: Final = rb" *([0-9]{1,18})"
_GPERFTOOLS_AMOUNTS: Final = _AMOUNT + rb":" + _AMOUNT + rb" *\[" + _AMOUNT + rb":" + _AMOUNT + rb"\] *@"
_GPERFTOOLS_HEADER: Final = lazy_pattern(rb"heap profile:" + _GPERFTOOLS_AMOUNTS + rb" ?([^/\s]*)(?:/([0-9]{1,18}))?")
_GPERFTOOLS_ROW: Final = lazy_pattern(_GPERFTOOLS_AMOUNTS + rb"((?: +(?:0x)?[0-9A-Fa-f]{1,16})*)\s*")
_JEMALLOC_HEADER: Final = lazy_pattern(rb"heap_v2/([0-9]{1,18})")
_JEMALLOC_STACK: Final = lazy_pattern(rb"@((?: 0x[0-9A-Fa-f]{1,16})*) *")
# One line for all threads, and one line per thread, which may have a name.
_JEMALLOC_AMOUNTS: Final = lazy_pattern(
    rb" *t(\*|[0-9]{1,20}): ([0-9]{1,18}): ([0-9]{1,18}) \[([0-9]{1,18}): ([0-9]{1,18})\](?: .*)?"
)
_GO_AMOUNTS: Final = rb"([0-9]{1,18}): ([0-9]{1,18}) \[([0-9]{1,18}): ([0-9]{1,18})\] @"
_GO_HEADER: Final = lazy_pattern(rb"heap profile: " + _GO_AMOUNTS + rb" heap/([0-9]{1,18})")
_GO_ROW: Final = lazy_pattern(_GO_AMOUNTS + rb"((?: 0x[0-9a-f]{1,16})*)\s*")
_GO_CALL: Final = lazy_pattern(rb"#\t+0x([0-9a-f]{1,16})(?:\t+([^\t]+)\+0x[0-9a-f]{1,16}\t+([^\t]+):([0-9]{1,9}))?\s*")
_GO_MARK: Final = lazy_pattern(rb"\n#\t+0x|\n# runtime\.MemStats")


def _estimate(block_count: int, size_bytes: int, period_bytes: int) -> tuple[int, int]:
    """Estimate blocks and bytes from samples.

    Sampling is a Poisson process: a block of mean size x is sampled with the probability 1 - exp(-x / period), so the
    number of blocks is the number of samples divided by that probability.
    """
    if not block_count or not size_bytes or period_bytes <= 1:
        return block_count, size_bytes
    factor = -1 / expm1(-size_bytes / block_count / period_bytes)
    return round(block_count * factor), round(size_bytes * factor)


class AddressRows:
    """The rows of a profile: blocks and bytes in use, blocks and bytes ever allocated, and the call stack.

    Args:
        pieces: The pieces of the text.
        source: Its name for messages.
        first_line: The pattern of the first line.
        estimate: Estimates what was sampled.

    Attributes:
        header: The match of the first line.

    Raises:
        InputError: Where the first line is damaged.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        source: str,
        first_line: re.Pattern[bytes],
        estimate: Estimate = _estimate,
    ) -> None:
        self._lines = (line for _, some in lines_of(pieces, source) for line in some)
        header = first_line.fullmatch(next(self._lines, b"").rstrip())
        if header is None:
            raise InputError(source, "the first line is not that of a heap profile", 0)
        self.header = header
        self._source, self._estimate = source, estimate
        self._stacks = CallTreeBuilder()
        self._places: dict[int | Frame, int] = {}
        self._ends: list[int] = []
        self._figures: list[tuple[int, ...]] = []
        self._addr_count = 0
        self._stray_count = 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines before the memory map."""
        for line in self._lines:
            if line.rstrip() == _MAP_HEADING:
                return
            yield line

    def add(self, calls: Sequence[int | Frame], figures: Iterable[int]) -> None:
        """Add a row with the addresses of its calls, or the calls with their names; the innermost first.

        Raises:
            InputError: Where there are more rows than in any profile.
        """
        self._addr_count += 1 + len(calls)
        if self._addr_count > _MOST_ADDRS:
            raise InputError(self._source, f"its first {len(self._ends):,} rows are more than any profile has")
        places = self._places
        self._ends.append(self._stacks.add([places.setdefault(call, len(places) + 1) for call in calls]))
        self._figures.append(tuple(figures))

    def skip(self, line: bytes) -> None:
        """Count a line of unknown form."""
        self._stray_count += bool(line.strip())

    def finish(
        self,
        name: str,
        kind: str,
        totals: list[int] | None,
        period_bytes: int | None,
        heap_owner: str | None = None,
    ) -> Profile:
        """Read the memory map, and build the profile.

        Args:
            name: The format.
            kind: The kind of profile, as in its first line.
            totals: The sums of all rows, as printed in the profile.
            period_bytes: The mean distance of the samples; None where it is not sampled.
            heap_owner: The runtime heap that it counts; None for the heap of malloc.
        """
        modules = tuple(self._modules())
        frames = (
            Frame(label="heap profile"),
            *(Frame(call) if isinstance(call, int) else call for call in self._places),
        )
        in_use, allocated = (
            self._stacks.tree(frames, self._ends, [row[1] for row in rows], [row[0] for row in rows], self._source)
            for rows in (self._scaled(first, period_bytes or 1) for first in (0, 2))
        )
        return Profile(
            name,
            # The growth profile of tcmalloc counts memory requested from the kernel.
            Counted.PAGES if kind.startswith("growth") else Counted.HEAP,
            description=kind or None,
            frames=frames,
            snapshots=(HeapSnapshot(0, None, in_use.total_bytes, tree=in_use),),
            tallies=(Tally("allocated", allocated),) if allocated.total_blocks else (),
            modules=modules,
            has_own_allocator=True,
            heap_owner=heap_owner,
            sample_period_bytes=period_bytes,
            notes=tuple(
                self._notes(
                    totals,
                    period_bytes,
                    has_names=bool(modules) or not any(isinstance(call, int) for call in self._places),
                )
            ),
        )

    def _modules(self) -> Iterator[Module]:
        for line in self._lines:
            fields = _MAPPING.fullmatch(line)
            if fields is None or (start_addr := int(fields[1], 16)) > (end_addr := int(fields[2], 16)):
                self.skip(line)
            else:
                yield Module(start_addr, end_addr, int(fields[3], 16), fields[4].decode("utf-8", "surrogateescape"))

    def _scaled(self, first: int, period_bytes: int) -> list[tuple[int, int]]:
        """Estimate the blocks and bytes of each row from its samples; these are the two figures from `first` on."""
        rows = [self._estimate(row[first], row[first + 1], period_bytes) for row in self._figures]
        if any(max(row) > MOST_AMOUNT for row in rows):
            raise InputError(self._source, "its samples scale to more than an address space")
        return rows

    def _is_unbiased_sum(self, totals: list[int], period_bytes: int) -> bool:
        """Return whether the rows add up once they are scaled, as those of jemalloc 5.3 do (`prof_unbias`).

        It writes into each line, the first one too, the samples that scale to its estimate. These are rounded to whole
        samples: each line is wrong by half a period.
        """
        _, whole_bytes = self._estimate(totals[0], totals[1], period_bytes)
        sum_bytes = sum(size_bytes for _, size_bytes in self._scaled(0, period_bytes))
        return period_bytes > 1 and abs(whole_bytes - sum_bytes) <= (len(self._figures) + 1) * period_bytes / 2

    def _notes(self, totals: list[int] | None, period_bytes: int | None, *, has_names: bool) -> Iterator[Note]:
        source = self._source
        if self._stray_count:
            detail = f"{counted(self._stray_count, 'line')} of unknown form, left out"
            yield Note("heap-lines-unread", source, detail)
        if not has_names:
            yield Note("heap-no-modules", source, "it lists no mappings: its addresses have no names")
        # A profile without cumulative figures has zeros in their place.
        sums = [sum(column) for column in zip(*self._figures, strict=True)] or [0] * 4
        if totals is not None and totals != sums and not self._is_unbiased_sum(totals, period_bytes or 1):
            place = next(place for place in (1, 0, 3, 2) if totals[place] != sums[place])
            detail = (
                f"its rows add up to {sums[place]:,} {_FIGURES[place]}, but its first line says {totals[place]:,}: "
                f"rows are missing"
            )
            yield Note("heap-rows-missing", source, detail)
        yield from sampled_notes(source, period_bytes)


def looks_like_gperftools(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return start.startswith(b"heap profile:")


def read_gperftools(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
        UnsupportedError: Where it was sampled in the way from before `heap_v2`.
    """
    rows = AddressRows(pieces, source, _GPERFTOOLS_HEADER)
    *totals, kind_text, period = rows.header.groups()
    kind = kind_text.decode("ascii", "replace")
    if period and kind == "heap":
        raise UnsupportedError(source, "samples from before `heap_v2`, whose scale is uncertain", 0)
    for line in rows.lines():
        if row := _GPERFTOOLS_ROW.fullmatch(line):
            *figures, addrs = row.groups()
            rows.add([int(addr, 16) for addr in addrs.split()], map(int, figures))
        else:
            rows.skip(line)
    return rows.finish(
        "gperftools", kind, [int(total) for total in totals], int(period) if period and kind == "heap_v2" else None
    )


def looks_like_jemalloc(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return start.startswith(b"heap_v2/")


def read_jemalloc(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
    """
    rows = AddressRows(pieces, source, _JEMALLOC_HEADER)
    totals: list[int] | None = None
    addrs: list[int] | None = None
    is_counted = False
    for line in rows.lines():
        if stack := _JEMALLOC_STACK.fullmatch(line):
            addrs, is_counted = [int(addr, 16) for addr in stack[1].split()], False
        elif amounts := _JEMALLOC_AMOUNTS.fullmatch(line):
            figures = [int(figure) for figure in amounts.groups()[1:]]
            if amounts[1] != b"*":
                continue
            if addrs is None:
                totals = figures
            elif not is_counted:
                rows.add(addrs, figures)
                is_counted = True
        else:
            rows.skip(line)
    return rows.finish("jemalloc", "heap_v2", totals, int(rows.header[1]))


def looks_like_go(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile: tcmalloc's has the same first line, and no calls."""
    return (
        start.startswith(b"heap profile:")
        and _GO_HEADER.match(start) is not None
        and _GO_MARK.search(start) is not None
    )


def read_go(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
    """
    rows = AddressRows(pieces, source, _GO_HEADER, _go_estimate)
    *totals, period = map(int, rows.header.groups())
    figures: list[int] | None = None
    addrs: list[int] = []
    calls: list[Frame] = []

    def add() -> None:
        if figures is not None:
            rows.add(calls or addrs, figures)
            calls.clear()

    for line in rows.lines():
        if call := _GO_CALL.fullmatch(line):
            calls.append(_go_frame(*call.groups()))
        elif row := _GO_ROW.fullmatch(line):
            add()
            *amounts, stack = row.groups()
            figures, addrs = [int(amount) for amount in amounts], [int(addr, 16) for addr in stack.split()]
        elif not line.startswith(b"#"):
            rows.skip(line)
    add()
    # Go writes twice the mean distance of its samples.
    return rows.finish("go", "heap", totals, max(1, period // 2), GO_HEAP)


def _go_estimate(block_count: int, size_bytes: int, period_bytes: int) -> tuple[int, int]:
    """Estimate blocks and bytes from samples, to the last digit as pprof does."""
    if not block_count or not size_bytes or period_bytes <= 1:
        return block_count, size_bytes
    mean_share = size_bytes / block_count / period_bytes
    # Where the difference is 0, pprof has no figure.
    scale = 1 / (1 - exp(-mean_share) or -expm1(-mean_share))
    return int(block_count * scale), int(size_bytes * scale)


def _go_frame(addr: bytes, function: bytes | None, file: bytes | None, line: bytes | None) -> Frame:
    if function is None or file is None or line is None:
        return Frame(int(addr, 16))
    name, path = (text.decode("utf-8", "surrogateescape") for text in (function, file))
    return Frame(int(addr, 16), name, path, int(line))
