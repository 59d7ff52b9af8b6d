"""What profiles of tcmalloc and jemalloc have in common: rows of amounts by addresses, and a map behind them."""

from collections.abc import Iterable
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.modules import read_modules
from footprint.heap.profile import Counted, Frame, HeapSnapshot, Profile, Tally
from footprint.heap.sampling import scaled
from footprint.units import counted

__all__ = ("AddressRows",)

# Far more than in any profile that was seen: rows, and the addresses of all of them.
_MOST_ADDRS: Final = 1 << 21
_FIGURES: Final = ("blocks in use", "bytes in use", "blocks ever allocated", "bytes ever allocated")


class AddressRows:
    """The rows of a profile: blocks and bytes in use, blocks and bytes ever allocated, and their stack."""

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
            InputError: Where there are more of them than in any profile.
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
        """Give the profile.

        Args:
            name: Its format.
            kind: What its first line calls it.
            totals: The figures of all rows together, as it says itself.
            period_bytes: Where it was sampled: how often.
            map_lines: What stands behind the heading of the map.
        """
        source, notes = self._source, []
        modules, stray_count = read_modules(map_lines)
        stray_count += self.stray_count
        if stray_count:
            detail = f"{counted(stray_count, 'line')} of no known shape, kept out"
            notes.append(Note("heap-lines-unread", source, detail))
        if not modules:
            notes.append(Note("heap-no-modules", source, "it lists no mappings: its addresses cannot be named"))
        # A profile without cumulative figures has zeros in their place.
        sums = [sum(column) for column in zip(*self._figures, strict=True)] or [0] * 4
        if totals is not None and totals != sums:
            place = next(place for place in (1, 0, 3, 2) if totals[place] != sums[place])
            detail = (
                f"its rows hold {sums[place]:,} {_FIGURES[place]}, and its first line says {totals[place]:,}: "
                f"rows are missing"
            )
            notes.append(Note("heap-rows-missing", source, detail))
        if period_bytes is not None and period_bytes > 1:
            detail = f"one byte in {period_bytes:,} was a reason to look at its block: all amounts are estimates"
            notes.append(Note("heap-sampled", source, detail))
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
            # tcmalloc's profile of growth is of what it asked the kernel for.
            Counted.PAGES if kind.startswith("growth") else Counted.HEAP,
            description=kind or None,
            frames=frames,
            snapshots=(HeapSnapshot(0, None, in_use.total_bytes, tree=in_use),),
            tallies=(Tally("allocated", allocated),) if allocated.total_blocks else (),
            modules=modules,
            sample_period_bytes=period_bytes,
            notes=tuple(notes),
        )
