"""The private bytes of parts of a file in a live process: of a variable, or of the copies of one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from operator import attrgetter
from typing import Final, NamedTuple

from footprint.attribution.counters import count_each
from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import by_mapping, clip, private_pages
from footprint.elf import Image
from footprint.process import PageRange, Snapshot, ranges_bytes
from footprint.process.mapped_files import FileKey

__all__ = ("PrivateBytes",)


class _Placed(NamedTuple):
    """A range of vaddrs of a file that is loaded at one place; its private pages, or None where these are not known."""

    start_vaddr: int
    end_vaddr: int
    bias_addr: int
    private: Sequence[PageRange] | None


class PrivateBytes:
    """Counts private bytes by the vaddrs of files of a process; `images` are the files that will be asked for."""

    def __init__(self, snapshot: Snapshot, images: Dict[FileKey, Image]) -> None:
        self._placed: Final[dict[int, list[_Placed]]] = {}
        # As long as these are kept, no other image has the id of one of them.
        self._images = tuple(images.values())
        counts = count_each(snapshot.memory.mappings, snapshot.pages)
        parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
        for own, counted in by_mapping(parts, counts):
            of_objects = [(one, one.loaded, one.loaded.image) for one in own if one.loaded and one.loaded.image]
            private = private_pages(own[0].mapping, counted, snapshot.pages) if of_objects else ()
            for part, loaded, image in of_objects:
                start, end = part.start_addr - loaded.bias_addr, part.end_addr - loaded.bias_addr
                self._placed.setdefault(id(image), []).append(_Placed(start, end, loaded.bias_addr, private))

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
                    if one.private is None:
                        return None
                    is_met = True
                    total_bytes += _bytes_between(one.private, first + one.bias_addr, past + one.bias_addr)
            if not is_met:
                return None
        return total_bytes


def _bytes_between(private: Sequence[PageRange], start_addr: int, end_addr: int) -> int:
    first = bisect_right(private, start_addr, key=attrgetter("end_addr"))
    past = bisect_left(private, end_addr, first, key=attrgetter("start_addr"))
    return ranges_bytes(clip(private[first:past], start_addr, end_addr))
