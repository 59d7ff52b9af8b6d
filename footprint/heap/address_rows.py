"""The common parts of tcmalloc and jemalloc profiles: rows of amounts and addresses, and a memory map behind them."""

from collections.abc import Iterable, Iterator
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.modules import read_modules
from footprint.heap.profile import Counted, Frame, HeapSnapshot, Profile, Tally
from footprint.heap.sampling import scaled
from footprint.units import counted

__all__ = ("AddressRows",)

# The limit for rows and addresses together: far more than in any known profile.
_MOST_ADDRS: Final = 1 << 21
_FIGURES: Final = ("blocks in use", "bytes in use", "blocks ever allocated", "bytes ever allocated")


class AddressRows:
    """The rows of a profile: blocks and bytes in use, blocks and bytes ever allocated, and the call stack."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._stacks = CallTreeBuilder()
        self._places: dict[int, int] = {}
        self._ends: list[int] = []
        self._figures: list[tuple[int, ...]] = []
        self._addr_count = 0
        self.stray_count = 0

    def add(self, addrs: list[int], figures: Iterable[int]) -> None:
        """Add a row; the addresses are those of the calls, the innermost first.

        Raises:
            InputError: Where there are more rows than in any profile.
        """
        self._addr_count += 1 + len(addrs)
        if self._addr_count > _MOST_ADDRS:
            raise InputError(self._source, f"its first {len(self._ends):,} rows are more than any profile has")
        places = self._places
        self._ends.append(self._stacks.add([places.setdefault(addr, len(places) + 1) for addr in addrs]))
        self._figures.append(tuple(figures))

    def finish(
        self, name: str, kind: str, totals: list[int] | None, period_bytes: int | None, map_lines: Iterable[bytes]
    ) -> Profile:
        """Build the profile.

        Args:
            name: The format.
            kind: The kind of profile, as in its first line.
            totals: The sums of all rows, as printed in the profile.
            period_bytes: The mean distance of the samples; None where it is not sampled.
            map_lines: The lines below the heading of the memory map.
        """
        source = self._source
        modules, stray_count = read_modules(map_lines)
        self.stray_count += stray_count
        frames = (Frame(label="heap profile"), *(Frame(addr) for addr in self._places))
        period = period_bytes or 1
        live = [scaled(row[0], row[1], period, source) for row in self._figures]
        ever = [scaled(row[2], row[3], period, source) for row in self._figures]
        in_use, allocated = (
            self._stacks.tree(frames, self._ends, [row[1] for row in rows], [row[0] for row in rows], source)
            for rows in (live, ever)
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
            sample_period_bytes=period_bytes,
            notes=tuple(self._notes(totals, period_bytes, has_modules=bool(modules))),
        )

    def _notes(self, totals: list[int] | None, period_bytes: int | None, *, has_modules: bool) -> Iterator[Note]:
        source = self._source
        if self.stray_count:
            detail = f"{counted(self.stray_count, 'line')} of unknown form, left out"
            yield Note("heap-lines-unread", source, detail)
        if not has_modules:
            yield Note("heap-no-modules", source, "it lists no mappings: its addresses have no names")
        # A profile without cumulative figures has zeros in their place.
        sums = [sum(column) for column in zip(*self._figures, strict=True)] or [0] * 4
        if totals is not None and totals != sums:
            place = next(place for place in (1, 0, 3, 2) if totals[place] != sums[place])
            detail = (
                f"its rows add up to {sums[place]:,} {_FIGURES[place]}, but its first line says {totals[place]:,}: "
                f"rows are missing"
            )
            yield Note("heap-rows-missing", source, detail)
        if period_bytes is not None and period_bytes > 1:
            detail = f"it is sampled, one byte in {period_bytes:,} on average: all amounts are estimates"
            yield Note("heap-sampled", source, detail)
