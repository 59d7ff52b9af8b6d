"""The memory map of one process: its mappings, and the kernel's counters of each.

Source: proc_pid_maps(5), proc_pid_smaps(5).
"""

from collections.abc import Mapping as AbstractMapping
from types import MappingProxyType
from typing import Final

from footprint.errors import Note
from footprint.members import NamedTuple


class Counters(NamedTuple):
    """The counters of one mapping, in bytes, under the kernel's own names (`Rss`, `Private_Dirty`, ...).

    The mappings of a text share one `keys`, so a counter costs one slot. A missing counter is None, never 0.

    Attributes:
        keys: The index of each counter in `values`, in the order of the text.
        values: Bytes; for a key without unit (`THPeligible`, `ProtectionKey`) the plain number.
    """

    keys: dict[str, int]
    values: tuple[int, ...]

    def get(self, key: str) -> int | None:
        """Return one counter, or None where the text lacks it."""
        place = self.keys.get(key)
        return None if place is None else self.values[place]

    def private_bounds(self) -> tuple[int, int]:
        """Compute the least and the most anonymous resident bytes that these counters allow to be private."""
        resident_bytes, anonymous_bytes = self.get("Rss"), self.get("Anonymous") or 0
        if resident_bytes is not None:
            # A text may contain any figures. Anonymous bytes are part of the resident bytes.
            anonymous_bytes = min(anonymous_bytes, resident_bytes)
        many_times_bytes = (self.get("Shared_Clean") or 0) + (self.get("Shared_Dirty") or 0)
        once_bytes = (self.get("Private_Clean") or 0) + (self.get("Private_Dirty") or 0)
        return max(0, anonymous_bytes - many_times_bytes), min(anonymous_bytes, once_bytes)

    def swap_share_bytes(self) -> int | None:
        """Return the share of swapped pages (`SwapPss`), where others have some of these as well; else None."""
        share_bytes = self.get("SwapPss")
        return share_bytes if share_bytes is not None and share_bytes < (self.get("Swap") or 0) else None


NO_COUNTERS: Final = Counters({}, ())


class Mapping(NamedTuple):
    """One mapping (VMA) of a process. The address range is half-open.

    Attributes:
        start_addr: First address of the mapping.
        end_addr: First address behind it.
        permissions: Four letters as in maps: `rw-p`; the last one is `s` for a shared mapping.
        offset: The offset of the mapping in its file, in bytes; None where the text lacks it.
        device: `major:minor` in hexadecimal as printed; None where the text lacks it.
        inode: The inode number; 0 for anonymous memory, None where the text lacks it.
        name: The name column as printed (bytes that are not UTF-8 as surrogates); "" for a mapping without a name.
        counters: The counters of the kernel.
        vm_flags: The two-letter codes of `VmFlags`, separated by spaces; None where the text lacks them.
        unknown_lines: Lines of the block that have no known form, as printed.
    """

    start_addr: int
    end_addr: int
    permissions: str
    offset: int | None = None
    device: str | None = None
    inode: int | None = None
    name: str = ""
    counters: Counters = NO_COUNTERS
    vm_flags: str | None = None
    unknown_lines: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Return the virtual size."""
        return self.end_addr - self.start_addr

    @property
    def is_shared(self) -> bool:
        """Return whether other processes see writes to it (MAP_SHARED)."""
        return self.permissions[3] == "s"

    @property
    def is_mapped_writable(self) -> bool:
        """Return whether it is writable and private, as counted in `writeable/private` of pmap."""
        return self.permissions[1] == "w" and self.permissions[3] == "p"


class MemoryMap(NamedTuple):
    """All mappings of one process at one moment, from one text.

    Attributes:
        dialect: The kind of text: `maps`, `smaps`, `pmap`, `pmap -d`, `pmap -x`, `pmap -X`, `toybox pmap`, ...
        mappings: In the order of the text, which is the order of addresses.
        pid: The process ID, where the text has it.
        command: Its command line or name as printed, where the text has it.
        footer: The totals at the end of the text, in bytes, under the names of its columns; empty without totals.
        notes: Oddities of the text.
    """

    dialect: str
    mappings: tuple[Mapping, ...]
    pid: int | None = None
    command: str | None = None
    footer: AbstractMapping[str, int] = MappingProxyType({})
    notes: tuple[Note, ...] = ()

    def sum(self, key: str) -> int:
        """Add up one counter over all mappings that have it."""
        total = 0
        for counters in [mapping.counters for mapping in self.mappings]:
            place = counters.keys.get(key)
            if place is not None:
                total += counters.values[place]
        return total


StackBlock = tuple[int, int]
"""The first address of the block of a stack, and the first behind it."""


class ThreadStacks(NamedTuple):
    """What the threads other than the first say.

    Attributes:
        pointers: The stack pointers of those that wait in the kernel; a running thread has none to read.
        blocks: The blocks that are known, ascending.
    """

    pointers: tuple[int, ...] = ()
    blocks: tuple[StackBlock, ...] = ()


NO_STACKS: Final = ThreadStacks()
"""Of a process with one thread, and of one that is not known."""
