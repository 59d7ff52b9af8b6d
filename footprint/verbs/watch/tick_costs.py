"""The prices of what a tick counts: kernel objects, open files, and files in memory.

A whole reading of a process prices each mapping and each open file. Between two readings a tick counts threads,
mappings and descriptors: what came since the reading has a usual price. Where the number of descriptors has changed,
the open files are read again, as seldom as their cost demands; else more seldom, as what they hold may have changed.

A whole reading also finds the files in memory that some processes keep, and decides whose they are. A tick asks each of
them for its size again, which costs a microsecond or two. Shared memory that is none of them is only known to grow: by
the counter of a process.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from footprint.attribution.kernel import KernelConstants, inode_cost, kernel_costs, open_file_bytes
from footprint.attribution.memory_files import ChargedFile, charge_files, charge_open
from footprint.model.over_time import ProcessCounters
from footprint.process.descriptions import OpenFile, OpenFileKind, device_name, held_bytes, read_own_open_files
from footprint.process.memory_files import FileIdentity, MemoryFile
from footprint.process.snapshot import Snapshot, address_space_order

# The largest ones are asked at each tick, the others at each whole reading.
_MOST_ASKED: Final = 100


class HeldFile(NamedTuple):
    """A file in memory that processes keep.

    Attributes:
        charge: What it is, and what of it the processes pay for.
        pid: The process that pays for it.
        paths: Where it can be looked at.
    """

    charge: ChargedFile
    pid: int
    paths: tuple[str, ...]

    @property
    def identity(self) -> FileIdentity:
        """What tells it from others."""
        return self.charge.file.identity

    @property
    def size_bytes(self) -> int:
        """What it holds."""
        return self.charge.cost.size_bytes

    def grown_to(self, size_bytes: int) -> "HeldFile":
        """Return it with another size, of which the processes pay for the same part."""
        cost = self.charge.cost
        own_bytes = cost.own_bytes * size_bytes // cost.size_bytes if cost.size_bytes else 0
        if cost.own_bytes >= cost.size_bytes:
            own_bytes = size_bytes
        cost = cost._replace(size_bytes=size_bytes, own_bytes=own_bytes)
        return self._replace(charge=self.charge._replace(cost=cost))


def held_files(snapshots: Sequence[Snapshot]) -> list[HeldFile]:
    """Return the files in memory that some processes keep, as an audit charges them."""
    places: dict[FileIdentity, tuple[int, tuple[str, ...]]] = {}
    for snapshot in snapshots:
        for file in snapshot.memory_files:
            folder = f"/proc/{snapshot.pid}"
            ranges = [f"{folder}/map_files/{mapping.start_addr:x}-{mapping.end_addr:x}" for mapping in file.mappings]
            paths = (*(f"{folder}/fd/{number}" for number in file.descriptors[:1]), *ranges[:1])
            # What no file system counts (memfd_secret) cannot be asked for: it stays as the mappings have it.
            places.setdefault(file.identity, (snapshot.process_id or 0, () if file.size_bytes is None else paths))
    return [
        HeldFile(charge, *places[charge.file.identity])
        for charge in charge_files(snapshots)
        # What others keep may be theirs however much it grows.
        if charge.cost.own_bytes or not charge.cost.keeper_pids
    ]


class TickFiles:
    """Follows the files in memory of the processes of a watch."""

    def __init__(self) -> None:
        self._files: dict[FileIdentity, HeldFile] = {}
        # What was known at the last whole reading.
        self._sizes: dict[FileIdentity, int] = {}
        self._touched: dict[int, int] = {}
        self._is_just_read = False

    def learn(self, files: Iterable[HeldFile]) -> None:
        """Take over the files of a whole reading of all processes."""
        self._files = {file.identity: file for file in files}
        self._sizes = {file.identity: file.size_bytes for file in self._files.values()}
        self._touched = {}
        self._is_just_read = True

    def add_open(self, pid: int, open_files: Iterable[OpenFile]) -> None:
        """Add files in memory that a process has opened since: they are its own as far as is known."""
        for file in open_files:
            identity = (device_name(file.device), file.inode)
            if file.kind is OpenFileKind.MEMORY and identity not in self._files:
                path = f"/proc/{pid}/fd/{file.descriptor}"
                memory_file = MemoryFile(identity, file.name, file.content_bytes, (), (file.descriptor,))
                charge = charge_open(memory_file)
                self._files[identity] = HeldFile(charge, pid, (path,))
                self._sizes[identity] = 0

    def drop(self, pid: int) -> None:
        """Forget what a process pays for that has ended."""
        self._files = {identity: file for identity, file in self._files.items() if file.pid != pid}

    def own_bytes(self, counters: Mapping[int, ProcessCounters]) -> dict[int, int]:
        """Return what each process pays for files in memory now."""
        largest = sorted(self._files.values(), key=lambda file: -file.size_bytes)[:_MOST_ASKED]
        for f in () if self._is_just_read else largest:
            size_bytes = _size_now(f)
            if size_bytes is not None and size_bytes != f.size_bytes:
                self._files[f.identity] = f.grown_to(size_bytes)
        self._is_just_read = False
        sizes = dict.fromkeys(counters, 0)
        for file in self._files.values():
            if file.pid in sizes:
                sizes[file.pid] += file.charge.cost.own_bytes
        self._add_unknown(sizes, counters)
        return sizes

    def charges(self) -> dict[int, list[ChargedFile]]:
        """Return the files that each process pays for."""
        charges: dict[int, list[ChargedFile]] = {}
        for file in self._files.values():
            charges.setdefault(file.pid, []).append(file.charge)
        return charges

    def _add_unknown(self, sizes: dict[int, int], counters: Mapping[int, ProcessCounters]) -> None:
        """Add shared memory that was touched since the last whole reading, and is in none of the files."""
        known_bytes = sum(max(0, file.size_bytes - self._sizes[file.identity]) for file in self._files.values())
        touched = {
            pid: counter.shared_bytes - self._touched.setdefault(pid, counter.shared_bytes) - known_bytes
            for pid, counter in counters.items()
        }
        # Relatives may have touched the same.
        pid = max(touched, key=touched.__getitem__, default=None)
        if pid is not None and touched[pid] > 0:
            sizes[pid] += touched[pid]


def _size_now(file: HeldFile) -> int | None:
    """Ask a file for its size: 0 where its process has let go of it, None where it may not be looked at."""
    is_gone = bool(file.paths)
    for path in file.paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            is_gone = False
            continue
        # A SysV segment is none of a device.
        is_same = (device_name(status.st_dev), status.st_ino) == file.identity
        if is_same or not (file.identity[0] or "").startswith("00:"):
            return held_bytes(path, status)
    return 0 if is_gone else None


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
    timer_count = snapshot.kernel_holdings.timer_count
    costs = kernel_costs(snapshot.status, len(mappings), constants, mappings, open_files, timer_count)
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
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
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
        charges = self._files.charges()
        return {
            pid: self._priced(self._prices[pid], counter, files_bytes[pid], charges.get(pid, ()))
            for pid, counter in counters.items()
        }

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

    def _priced(
        self, prices: KernelPrices, counters: ProcessCounters, files_bytes: int, charges: Sequence[ChargedFile]
    ) -> ProcessCounters:
        constants = self._constants
        object_bytes = prices.object_bytes + (counters.thread_count - prices.thread_count) * constants.thread_bytes
        object_bytes += (counters.mapping_count - prices.mapping_count) * constants.usual_mapping_bytes
        object_bytes += inode_cost(charges, self._page_bytes, constants).size_bytes
        each_bytes = prices.descriptor_bytes // prices.open_count if prices.open_count else _USUAL_DESCRIPTOR_BYTES
        more_count = counters.descriptor_count - (prices.descriptor_count or 0)
        return counters._replace(
            object_bytes=max(0, object_bytes),
            descriptor_bytes=max(0, prices.descriptor_bytes + more_count * each_bytes),
            memory_file_bytes=files_bytes,
        )
