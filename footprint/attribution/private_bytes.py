"""The private bytes of parts of a file in a live process: of a variable, or of the copies of one."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from itertools import accumulate
from typing import Final, NamedTuple

from footprint.attribution.counters import count_each
from footprint.attribution.layout import lay_out
from footprint.elf import Image
from footprint.process import PageRange, Snapshot
from footprint.process.mapped_files import FileKey

__all__ = ("PrivateBytes",)


class _Placed(NamedTuple):
    """A range of vaddrs of a file that is loaded at one place, with the private pages in it.

    `is_known` is False where neither page bits nor counters say which pages are private.
    """

    start_vaddr: int
    end_vaddr: int
    bias_addr: int
    is_known: bool
    starts: Sequence[int]
    ends: Sequence[int]
    bytes_before: Sequence[int]

    def until(self, vaddr: int) -> int:
        """Count the private bytes up to a vaddr."""
        addr = vaddr + self.bias_addr
        index = bisect_right(self.starts, addr) - 1
        return self.bytes_before[index] + min(addr, self.ends[index]) - self.starts[index] if index >= 0 else 0


class PrivateBytes:
    """Counts private bytes by the vaddrs of files.

    Args:
        snapshot: The process.
        images: The files that will be asked for.
    """

    def __init__(self, snapshot: Snapshot, images: Dict[FileKey, Image]) -> None:
        self._placed: Final[dict[int, list[_Placed]]] = {}
        # As long as these are kept, no other image has the id of one of them.
        self._images = tuple(images.values())
        mappings = snapshot.memory.mappings
        held = {
            one.start_addr: what.private_bytes
            for one, what in zip(mappings, count_each(mappings, snapshot.pages), strict=True)
        }
        for part in lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs):
            loaded, mapping = part.loaded, part.mapping
            if loaded is None or loaded.image is None:
                continue
            ranges = snapshot.pages.get(mapping.start_addr) if snapshot.pages else None
            private_bytes = held[mapping.start_addr]
            if ranges is None and private_bytes == 0:
                ranges = ()
            elif ranges is None and private_bytes == mapping.size_bytes:
                ranges = (PageRange(mapping.start_addr, mapping.end_addr),)
            sizes = [one.end_addr - one.start_addr for one in ranges or ()]
            self._placed.setdefault(id(loaded.image), []).append(
                _Placed(
                    part.start_addr - loaded.bias_addr,
                    part.end_addr - loaded.bias_addr,
                    loaded.bias_addr,
                    ranges is not None,
                    [one.start_addr for one in ranges or ()],
                    [one.end_addr for one in ranges or ()],
                    list(accumulate(sizes, initial=0)),
                )
            )

    def of(self, image: Image, spans: Iterable[tuple[int, int]]) -> int | None:
        """Count the private bytes in some half-open ranges of vaddrs, at all places where the file is loaded.

        Returns:
            The bytes; None where the file is not loaded, or where nothing says which of its pages are private.
        """
        placed = self._placed.get(id(image), ())
        total_bytes = 0
        for start, end in spans:
            is_met = False
            for one in placed:
                first, past = max(start, one.start_vaddr), min(end, one.end_vaddr)
                if first < past:
                    if not one.is_known:
                        return None
                    is_met = True
                    total_bytes += one.until(past) - one.until(first)
            if not is_met:
                return None
        return total_bytes
