"""The prices of what a tick counts: kernel objects, open files, and files in memory.

A whole reading of a process prices each mapping and each open file. Between two readings a tick counts threads,
mappings and descriptors: what came since the reading has a usual price. Where the number of descriptors has changed,
the open files are read again, as seldom as their cost demands; else more seldom, as what they hold may have changed.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from footprint.attribution.kernel import KernelConstants, kernel_costs, open_file_bytes
from footprint.model.process_counters import ProcessCounters
from footprint.process.descriptions import OpenFile, read_own_open_files
from footprint.process.snapshot import Snapshot
from footprint.system.c_library import address_space_order
from footprint.verbs.watch.tick_files import HeldFile, TickFiles

# Reading open files takes at most this part of a processor, where their number has changed, and where it has not.
_SHARE, _SHARE_UNCHANGED = 0.002, 0.0002
# The price of a descriptor where no open file of the process is known.
_USUAL_DESCRIPTOR_BYTES: Final = 1024
_STACKS: Final = "[kernel stacks"
# A new process is compared with so many others that have as many page tables.
_MOST_COMPARED: Final = 8


class KernelPrices(NamedTuple):
    """What the kernel spent on a process when it was read as a whole, and what was counted then.

    Attributes:
        object_bytes: Its kernel objects.
        descriptor_bytes: The open files that it pays for.
        open_count: How many these are.
        thread_count: Its threads.
        mapping_count: Its mappings.
        descriptor_count: Its descriptors; None until the next tick has counted them.
    """

    object_bytes: int
    descriptor_bytes: int
    open_count: int
    thread_count: int
    mapping_count: int
    descriptor_count: int | None = None


def kernel_prices(
    snapshot: Snapshot, open_files: Sequence[OpenFile], constants: KernelConstants
) -> KernelPrices | None:
    """Compute what the kernel spends on a process as an audit does; None where that is not known."""
    mappings = snapshot.memory.mappings
    costs = kernel_costs(snapshot.status, len(mappings), constants, mappings, open_files)
    if not costs:
        return None
    sizes = {cost.name: cost.size_bytes for cost in costs if not cost.name.startswith(_STACKS)}
    del sizes["[page tables]"]
    descriptor_bytes = sizes.pop("[open descriptors]", 0)
    return KernelPrices(sum(sizes.values()), descriptor_bytes, len(open_files), snapshot.thread_count, len(mappings))


def _without_memory(counters: ProcessCounters) -> ProcessCounters:
    """Return the counters of a process whose address space counts with another one."""
    return counters._replace(private_bytes=0, page_table_bytes=0, shared_bytes=0, mapping_count=0)


class TickCosts:
    """Prices the counters of the processes of a watch.

    Args:
        constants: What the kernel spends on each thing.
        read_open_files: Reads the open files that each of some processes pays for.
    """

    def __init__(
        self,
        constants: KernelConstants,
        read_open_files: Callable[[Sequence[int]], Mapping[int, Sequence[OpenFile]]] = read_own_open_files,
    ) -> None:
        self._constants = constants
        self._read_open_files = read_open_files
        self._prices: dict[int, KernelPrices] = {}
        self._files = TickFiles()
        # Of processes of one address space, the first one of each other.
        self._firsts: dict[int, int] = {}
        self._next_open_files = 0.0
        self._next_contents = 0.0

    def learn(self, prices: Mapping[int, KernelPrices], files: Iterable[HeldFile], firsts: Mapping[int, int]) -> None:
        """Take over a whole reading.

        Args:
            prices: The prices of each process.
            files: The files in memory.
            firsts: Of each process that has the address space of an earlier one, that one.
        """
        self._prices |= prices
        self._firsts = dict(firsts)
        self._files.learn(files)

    def drop(self, pid: int) -> None:
        """Forget a process that has ended, or has executed another program."""
        self._prices.pop(pid, None)
        self._files.drop(pid)
        self._firsts = {other: first for other, first in self._firsts.items() if pid not in {other, first}}

    def priced(self, counters: Mapping[int, ProcessCounters], now: float) -> dict[int, ProcessCounters]:
        """Return the counters of processes with their prices."""
        for pid, counter in counters.items():
            prices = self._prices.get(pid)
            if prices is None:
                first = self._first_of_space(pid, counter, counters)
                if first is not None:
                    self._firsts[pid] = first
                # What a new process has open it inherited, until it is read.
                prices = self._first_prices(counter if first is None else _without_memory(counter))
            if prices.descriptor_count is None:
                prices = prices._replace(descriptor_count=counter.descriptor_count)
            self._prices[pid] = prices
        has_others = any(c.descriptor_count != self._prices[pid].descriptor_count for pid, c in counters.items())
        if now >= (self._next_open_files if has_others else self._next_contents):
            self._renew_open_files(counters, now)
        counters = {pid: _without_memory(c) if pid in self._firsts else c for pid, c in counters.items()}
        files_bytes = self._files.own_bytes(counters)
        return {pid: self._priced(self._prices[pid], counter, files_bytes[pid]) for pid, counter in counters.items()}

    def _first_of_space(self, pid: int, new: ProcessCounters, counters: Mapping[int, ProcessCounters]) -> int | None:
        """Find the process whose address space a new one has: until it executes a program, as after vfork(2)."""
        alike = [
            other
            for other, counted in counters.items()
            if other in self._prices and other not in self._firsts and counted.page_table_bytes == new.page_table_bytes
        ]
        for other in alike[:_MOST_COMPARED]:
            with suppress(OSError):
                if address_space_order(pid, other) == 0:
                    return other
        return None

    def _first_prices(self, counters: ProcessCounters) -> KernelPrices:
        constants = self._constants
        object_bytes = constants.process_bytes + counters.thread_count * constants.thread_bytes
        object_bytes += counters.mapping_count * constants.usual_mapping_bytes
        return KernelPrices(object_bytes, 0, 0, counters.thread_count, counters.mapping_count)

    def _renew_open_files(self, counters: Mapping[int, ProcessCounters], now: float) -> None:
        """Read what the processes have open."""
        began = time.thread_time()
        for pid, files in self._read_open_files(list(counters)).items():
            self._files.add_open(pid, files)
            self._prices[pid] = self._prices[pid]._replace(
                descriptor_bytes=sum([open_file_bytes(file, self._constants) for file in files]),
                open_count=len(files),
                descriptor_count=counters[pid].descriptor_count,
            )
        cost_seconds = time.thread_time() - began
        self._next_open_files = now + cost_seconds / _SHARE
        self._next_contents = now + cost_seconds / _SHARE_UNCHANGED

    def _priced(self, prices: KernelPrices, counters: ProcessCounters, files_bytes: int) -> ProcessCounters:
        constants = self._constants
        object_bytes = prices.object_bytes + (counters.thread_count - prices.thread_count) * constants.thread_bytes
        object_bytes += (counters.mapping_count - prices.mapping_count) * constants.usual_mapping_bytes
        each_bytes = prices.descriptor_bytes // prices.open_count if prices.open_count else _USUAL_DESCRIPTOR_BYTES
        more_count = counters.descriptor_count - (prices.descriptor_count or 0)
        return counters._replace(
            object_bytes=max(0, object_bytes),
            descriptor_bytes=max(0, prices.descriptor_bytes + more_count * each_bytes),
            memory_file_bytes=files_bytes,
        )
