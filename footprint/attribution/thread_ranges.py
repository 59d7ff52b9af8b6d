"""The thread-local variables of a live process, in each of its threads: ranges of the stacks that libraries own.

A thread has the block of each library that the program started with at the top of its stack, the first thread at the
start of the heap. The vector of the thread says where; the file of the library says which variables are in it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from footprint.attribution.owned_range import LoadedObject, OwnedRange, RangeOwner, divide
from footprint.elf.abi import PT_TLS
from footprint.elf.contents import Contents, SectionKind
from footprint.elf.symbols import Symbol
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, weakest
from footprint.process.pages import PageRange
from footprint.ranges import Claim, Gap, Piece, partition

if TYPE_CHECKING:
    from footprint.process.glibc.threads import LinkEntry
    from footprint.process.live_memory import LiveThreads


_Variable = tuple[str | None, str | None, str]


class ThreadRanges:
    """The thread-local blocks of a process.

    Args:
        threads: Where the blocks are.
        ranges: The ranges of the process, which tell whose they are.
    """

    def __init__(self, threads: "LiveThreads", ranges: Sequence[OwnedRange]) -> None:
        modules = _modules(threads.entries, ranges)
        claims = [claim for v in threads.vectors for claim in _claims(v.tcb_addr, v.block_addrs, modules)]
        self._claims = sorted(claims, key=lambda claim: claim.start)
        self._starts = [claim.start for claim in self._claims]

    def cut(self, ranges: Sequence[OwnedRange]) -> tuple[OwnedRange, ...]:
        """Cut ranges where a thread has its variables: these parts are the library's."""
        cut_ranges: list[OwnedRange] = []
        for part in ranges:
            first = bisect_right(self._starts, part.start_addr - 1)
            inner = self._claims[first : bisect_right(self._starts, part.end_addr - 1)]
            if not inner or part.loaded is not None or inner[-1].end > part.end_addr:
                cut_ranges.append(part)
                continue
            cut_ranges += divide(part, inner)
        return tuple(cut_ranges)


def thread_rows(
    block: OwnedRange, contents: Contents | None, private: Sequence[PageRange], whole: Row, page_bytes: int
) -> list[Row]:
    """Divide the row of a block among the variables of its library; `private` are its private pages.

    The mapped bytes of the rows add up to the block, the private bytes to `private`.
    """
    evidence = weakest((whole.evidence, Evidence.DERIVED))
    tls = block.loaded.image.segment(PT_TLS) if block.loaded and block.loaded.image else None
    if contents is None or tls is None:
        return [whole._replace(evidence=evidence)]
    claims: list[Claim[_Variable]] = []
    for part in contents.sections:
        if part.kind is SectionKind.TLS:
            start_addr = block.start_addr + part.section.vaddr - tls.vaddr
            for start, end, owner in part.ranges.pieces:
                symbol, name = (owner.name, owner.name) if isinstance(owner, Symbol) else (None, owner.label)
                # The file has the first contents of .tdata in a section of that name, which has rows of its own.
                place = f"{part.section.name} of threads"
                claims.append(Claim(start_addr + start, start_addr + end, (place, symbol, name)))
    rows = []
    for start, end, (section, symbol, name) in partition(block.start_addr, block.end_addr, claims, _padding).pieces:
        runs = [(max(first, start), min(past, end)) for first, past, _ in private if first < end and start < past]
        rows.append(
            whole._replace(
                section=section,
                symbol=symbol,
                name=name,
                bytes=sum([past - first for first, past in runs]),
                mapped_bytes=end - start,
                shared_bytes=None if whole.shared_bytes is None else 0,
                pages=sum([-(-past // page_bytes) - first // page_bytes for first, past in runs]),
                sole_pages=sum([max(0, past // page_bytes - -(-first // page_bytes)) for first, past in runs]),
                relocated_bytes=0,
                evidence=evidence,
            )
        )
    return rows


def _padding(gap: Gap[_Variable]) -> list[Piece[_Variable]]:
    return [Piece(gap.start, gap.end, (None, None, "[padding between sections]"))]


def _modules(entries: "Sequence[LinkEntry]", ranges: Sequence[OwnedRange]) -> dict[int, LoadedObject]:
    """Return the objects that have thread-local variables by the number of their module, as far as it is known."""
    starts = [span.start_addr for span in ranges]
    objects: dict[int, LoadedObject] = {}
    for entry in entries:
        addr = entry.section_addr
        part = ranges[max(0, bisect_right(starts, addr) - 1)]
        # The vdso has no file and no thread-local variables.
        if part.loaded is None or part.loaded.image is None or not part.start_addr <= addr < part.end_addr:
            continue
        tls = part.loaded.image.segment(PT_TLS)
        if tls is not None and tls.memory_bytes:
            number = entry.module_number(tls.vaddr, tls.file_bytes, tls.memory_bytes, tls.align)
            if number is not None:
                objects[number] = part.loaded
    return objects


def _claims(
    tcb_addr: int, block_addrs: Sequence[int | None], modules: Mapping[int, LoadedObject]
) -> Iterator[Claim[RangeOwner | None]]:
    """Return the blocks of one thread, if they fit the files: aligned, below the control block, and apart."""
    claims: list[Claim[RangeOwner | None]] = []
    for number, addr in enumerate(block_addrs, 1):
        loaded = modules.get(number)
        tls = loaded.image.segment(PT_TLS) if loaded and loaded.image else None
        if addr is None or loaded is None or tls is None:
            continue
        if (addr - tls.vaddr) % max(tls.align, 1) or addr + tls.memory_bytes > tcb_addr:
            return
        owner = RangeOwner(loaded.key.name, MemoryKind.TLS, Attribution.THREAD_VECTOR, loaded)
        claims.append(Claim(addr, addr + tls.memory_bytes, owner))
    claims.sort(key=lambda claim: claim.start)
    if all(claim.end <= behind.start for claim, behind in pairwise(claims)):
        yield from claims
