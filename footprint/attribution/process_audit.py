"""The audit of one process: totals, the ledger that explains them, and what N cost."""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from functools import partial
from typing import TYPE_CHECKING

from footprint.attribution.cost_models import Costs, ForkParent, project_process
from footprint.attribution.kernel import (
    BUILT_IN,
    KernelConstants,
    KernelCost,
    inode_cost,
    kernel_costs,
    uncounted_notes,
)
from footprint.attribution.layout import ARENAS, THREAD_STACKS, lay_out
from footprint.attribution.ledger import Files, KnownRows, ledger_rows
from footprint.attribution.memory_files import (
    ChargedFile,
    count_with_files,
    file_notes,
    own_shared_bytes,
)
from footprint.attribution.owned_range import MappingCounts, OwnedRange, clip, private_swap
from footprint.elf.image import Image
from footprint.errors import InputError, Note
from footprint.model.audit import Audit
from footprint.model.projection import ONE, Model, Question
from footprint.model.row import Attribution, Evidence, MemoryKind, OfWhich, Row, Total, Totals, weakest
from footprint.process.descriptions import OpenFile, OpenFileKind
from footprint.process.mappings import FileKey, Mapping, MemoryMap
from footprint.process.snapshot import Snapshot
from footprint.text.units import format_bytes

if TYPE_CHECKING:
    from footprint.attribution.live_ranges import HeapRanges
    from footprint.attribution.page_maps import Presence
    from footprint.model.costs import MappingCost
    from footprint.model.heap_account import AllocatorAccount
    from footprint.model.page_map import PageMap
    from footprint.process.live_memory import LiveThreads


def total_up(
    memory: MemoryMap,
    counts: Sequence[MappingCounts],
    kernel: Sequence[KernelCost],
    charges: Sequence[ChargedFile] = (),
) -> Totals:
    """Add up what the mappings and the files in memory hold, and what the kernel spends on the process."""
    private, special = _private(counts), _of_which(memory, own_shared_bytes(charges))
    spent = Total(
        sum(cost.size_bytes for cost in kernel) if kernel else None, weakest(cost.evidence for cost in kernel)
    )
    unknown = Total(None, Evidence.PREDICTED)

    def mapped(mappings: Iterable[Mapping]) -> Total:
        return Total(sum(mapping.size_bytes for mapping in mappings) if is_told else None, Evidence.VIRTUAL)

    # smaps_rollup has no virtual sizes.
    is_told = memory.dialect != "smaps_rollup"
    cow_shared_bytes = sum(count.cow_shared_bytes for count in counts) if private.bytes is not None else None
    return Totals(
        private=private,
        kernel=spent,
        per_process=_per_process(private, spent, special.own_shared_bytes),
        shared_once=_shared_once(counts, charges, private.evidence),
        cow_shared=Total(cow_shared_bytes, private.evidence),
        mapped_writable=mapped(m for m in memory.mappings if m.is_mapped_writable),
        mapped_shared=mapped(m for m in memory.mappings if m.is_shared),
        mapped=mapped(memory.mappings),
        startup_min=unknown,
        startup_max=unknown,
        of_which=special,
    )


def _private(counts: Sequence[MappingCounts]) -> Total:
    present = [count for count in counts if count.private_bytes is not None]
    if counts and not present:
        return Total(None, Evidence.VIRTUAL)
    # In a truncated text a mapping may have no counters. A note says so, and the others are still known.
    return Total(sum(c.private_bytes or 0 for c in present), weakest(c.evidence for c in present))


def _shared_once(counts: Sequence[MappingCounts], charges: Sequence[ChargedFile], evidence: Evidence) -> Total:
    sizes = [count.shared_bytes for count in counts if count.shared_bytes is not None]
    sizes += [charge.cost.shared_bytes for charge in charges if not charge.file.mappings]
    # A page of a file on a disk that the process maps twice is counted twice.
    return Total(sum(sizes) if sizes or not counts else None, weakest((evidence, Evidence.DERIVED)))


def _per_process(private: Total, kernel: Total, own_shared_bytes: int) -> Total:
    evidence = weakest((private.evidence, kernel.evidence))
    if private.bytes is None or kernel.bytes is None:
        return Total(None, evidence)
    return Total(private.bytes + kernel.bytes + own_shared_bytes, evidence)


def _of_which(memory: MemoryMap, own_bytes: int) -> OfWhich:
    swapped_bytes = sum([private_swap(m)[0] for m in memory.mappings if m.counters.get("Swap") and not m.is_shared])
    is_locked_told = not any(note.slug == "locked-unreliable" for note in memory.notes)
    lazy_free_bytes, locked_bytes, huge_page_bytes, ksm_bytes, hugetlb_private_bytes, hugetlb_shared_bytes = (
        memory.sums("LazyFree", "Locked", "AnonHugePages", "KSM", "Private_Hugetlb", "Shared_Hugetlb")
    )
    return OfWhich(
        swapped_bytes=swapped_bytes,
        lazy_free_bytes=lazy_free_bytes,
        locked_bytes=locked_bytes if is_locked_told else 0,
        huge_page_bytes=huge_page_bytes,
        ksm_bytes=ksm_bytes,
        hugetlb_private_bytes=hugetlb_private_bytes,
        hugetlb_shared_bytes=hugetlb_shared_bytes,
        own_shared_bytes=own_bytes,
    )


_TABLE_ENTRY_BYTES = 8
_MANY_WATCHES = 100  # of inotify: from here on, a note says what they keep in memory


def audit_snapshot(  # noqa: PLR0913 # keyword-only
    snapshot: Snapshot,
    images: Dict[FileKey, Image],
    files: Files,
    *,
    target: str,
    question: Question = ONE,
    constants: KernelConstants = BUILT_IN,
    notes: tuple[Note, ...] = (),
    presence: "Presence | None" = None,
    parent: ForkParent | None = None,
    known_rows: KnownRows | None = None,
    heap: "HeapRanges | None" = None,
    threads: "LiveThreads | None" = None,
) -> Audit:
    """Audit a process: join what the kernel counts with what its files contain.

    `images` are the ELF files among its mapped files that could be read, `parent` the process that it was forked from,
    where that was read, `heap` its heap as its allocator has it, `threads` where its threads have their variables. Page
    maps and the table of mappings are made where `presence` is given.

    Raises:
        InputError: Where a text has neither sizes nor counters of private memory.
    """
    memory = snapshot.memory
    counted, charges = count_with_files(snapshot, known_rows.counts if known_rows else None)
    parts = _cut(lay_out(memory, images, snapshot.page_bytes, snapshot.thread_stacks), threads, heap)
    costs = _costs_of(snapshot, constants)
    kernel = kernel_with_inodes(costs(snapshot.status, len(memory.mappings)), snapshot, charges, constants)
    rows = ledger_rows(
        parts, counted, snapshot.pages, files, snapshot.page_bytes, kernel, cache=known_rows, heap=heap, charges=charges
    )
    page_maps, mappings = _places(snapshot, parts, counted, files, presence) if presence else ((), ())
    totals = _totals(snapshot, counted, kernel, charges)
    projection = project_process(
        totals,
        rows,
        kernel,
        status=snapshot.status,
        mapping_count=len(memory.mappings),
        costs=costs,
        question=question,
        parent=parent,
        is_live=snapshot.is_live,
        thread_table_bytes=_thread_table_bytes(parts, snapshot) if question.model is Model.THREADS else None,
    )
    return Audit(
        target=target,
        pid=snapshot.process_id,
        command=snapshot.command,
        source=memory.dialect,
        is_live=snapshot.is_live,
        mapping_count=len(memory.mappings),
        page_bytes=snapshot.page_bytes,
        host=snapshot.host,
        totals=totals,
        ledger=rows,
        projection=projection,
        notes=(*snapshot.notes, *constants.notes, *notes, *_notes(snapshot, rows, counted, totals, charges)),
        page_maps=page_maps,
        mappings=mappings,
        allocator=heap.account(parts, snapshot.pages or {}) if heap else snapshot.captured_heap.account,
        memory_files=tuple([charge.cost for charge in charges]),
    )


def captured_heap(
    snapshot: Snapshot, images: Dict[FileKey, Image], heap: "HeapRanges | None"
) -> "tuple[AllocatorAccount | None, frozenset[str]]":
    """Compute the account of the allocator of a process as its audit would, and return the owners of its memory."""
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
    parts = heap.cut(parts) if heap else parts
    account = heap.account(parts, snapshot.pages or {}) if heap else None
    return account, frozenset([part.owner for part in parts])


def _costs_of(snapshot: Snapshot, constants: KernelConstants) -> Costs:
    """Return what computes the kernel's cost of a process with what this one has, and any threads and page tables."""
    return partial(
        kernel_costs,
        constants=constants,
        mappings=snapshot.memory.mappings,
        open_files=snapshot.open_files or (),
        timer_count=snapshot.kernel_holdings.timer_count,
    )


def kernel_with_inodes(
    kernel: Sequence[KernelCost], snapshot: Snapshot, charges: Sequence[ChargedFile], constants: KernelConstants
) -> Sequence[KernelCost]:
    """Add the inodes of the files in memory that belong to a process to the parts of its kernel's cost, if known."""
    inodes = inode_cost(charges, snapshot.page_bytes, constants)
    return (*kernel, inodes) if kernel and inodes.size_bytes else kernel


def _thread_table_bytes(parts: Sequence[OwnedRange], snapshot: Snapshot) -> int:
    """Return the size of the page tables, of the lowest level, in which stacks and arenas of threads have pages."""
    page_bytes = snapshot.page_bytes
    spanned_bytes = page_bytes * (page_bytes // _TABLE_ENTRY_BYTES)
    tables: set[int] = set()
    for part in parts:
        if part.owner == ARENAS or (part.owner == THREAD_STACKS and part.attribution is Attribution.STACK_POINTER):
            pages = (snapshot.pages or {}).get(part.mapping.start_addr)
            # Without page bits: a stack is touched from its end on, an arena from its start.
            likely = part.start_addr if part.owner == ARENAS else part.end_addr - 1
            touched = [(likely, likely + 1)] if pages is None else clip(pages, part.start_addr, part.end_addr)
            for start, end, *_ in touched:
                tables.update(range(start // spanned_bytes, -(-end // spanned_bytes)))
    return len(tables) * page_bytes


def owner_rows(snapshot: Snapshot, images: Dict[FileKey, Image]) -> tuple[Row, ...]:
    """Return the rows of a process by owner and mapping: no symbols are read, no kernel memory is counted."""
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
    counts, charges = count_with_files(snapshot)
    return ledger_rows(parts, counts, snapshot.pages, None, snapshot.page_bytes, (), charges=charges)


def _places(
    snapshot: Snapshot,
    parts: Sequence[OwnedRange],
    counts: Sequence[MappingCounts],
    files: Files,
    presence: "Presence",
) -> "tuple[tuple[PageMap, ...], tuple[MappingCost, ...]]":
    """Return the page maps of the objects of a process, and what its mappings cost."""
    from footprint.attribution.mapping_costs import mapping_costs  # noqa: PLC0415 # for a picture only
    from footprint.attribution.page_maps import page_maps  # noqa: PLC0415 # the same

    maps = page_maps(parts, counts, snapshot.pages, files, snapshot.page_bytes, presence)
    return maps, mapping_costs(parts, counts, snapshot.pages)


def _totals(
    snapshot: Snapshot, counts: list[MappingCounts], kernel: Sequence[KernelCost], charges: Sequence[ChargedFile]
) -> Totals:
    totals = total_up(snapshot.memory, counts, kernel, charges)
    if totals.private.bytes is None and totals.mapped.bytes is None:
        raise InputError(snapshot.source, "it has no counter that says what the process costs")
    return totals


def _cut(
    parts: tuple[OwnedRange, ...], threads: "LiveThreads | None", heap: "HeapRanges | None"
) -> tuple[OwnedRange, ...]:
    """Cut the ranges of a process by the structures in its memory."""
    if threads:
        from footprint.attribution.live_ranges import ThreadRanges  # noqa: PLC0415 # only a single live process has them

        parts = ThreadRanges(threads, parts).cut(parts)
    return heap.cut(parts) if heap else parts


def _notes(
    snapshot: Snapshot,
    rows: tuple[Row, ...],
    counts: list[MappingCounts],
    totals: Totals,
    charges: Sequence[ChargedFile],
) -> list[Note]:
    """Return notes for what the figures do not show by themselves."""
    notes = []
    source = snapshot.source
    uncertain_bytes = sum(count.uncertain_bytes for count in counts)
    if uncertain_bytes and totals.cow_shared.bytes and not _is_sole_holder(snapshot):
        detail = (
            f"up to {format_bytes(uncertain_bytes)} of the private memory may be shared with fork relatives: "
            "smaps does not say which pages of a mapping are shared"
        )
        notes.append(Note("sharing-uncertain", source, detail))
    hugetlb_bytes = totals.of_which.hugetlb_private_bytes
    if hugetlb_bytes:
        detail = f"{format_bytes(hugetlb_bytes)} of huge pages from the reserved pool are private, and in no total"
        notes.append(Note("hugetlb-apart", source, detail))
    notes.extend(file_notes(snapshot.memory.mappings, charges, source))
    notes.extend(_open_file_notes(snapshot.open_files or (), source))
    notes.extend(uncounted_notes([snapshot.kernel_holdings], source))
    if totals.private.bytes is None:
        relro_bytes = sum(row.mapped_bytes for row in rows if row.kind is MemoryKind.RELRO)
        if relro_bytes:
            detail = (
                f"{format_bytes(relro_bytes)} between code and data of their files show as `r--`: most likely RELRO, "
                "written by the loader and private, but in neither `writeable/private` nor mapped writable"
            )
            notes.append(Note("relro-not-counted", source, detail))
        detail = "only virtual sizes are known: pages that were never touched cost nothing, so this is an upper bound"
        notes.append(Note("virtual-only", source, detail))
    elif totals.kernel.bytes is None:
        detail = "page tables, kernel stacks and kernel objects are not known from a text, and not in the cost"
        notes.append(Note("kernel-memory-unknown", source, detail))
    if totals.private.evidence is Evidence.ESTIMATED:
        detail = "the text does not separate anonymous pages from pages of files: dirty pages count as private"
        notes.append(Note("anonymous-unknown", source, detail))
    return notes


def _open_file_notes(open_files: Sequence[OpenFile], source: str) -> list[Note]:
    """Return notes for what the prices of open files leave out."""
    notes = []
    watch_count = sum(open_file.watch_count for open_file in open_files if open_file.kind is OpenFileKind.INOTIFY)
    if watch_count >= _MANY_WATCHES:
        detail = (
            f"its {watch_count} watches of inotify keep as many inodes in kernel memory, about 1 KiB each: those are "
            "paid once, however many processes watch the same files, and are in no figure"
        )
        notes.append(Note("watched-inodes", source, detail))
    unread_count = sum(open_file.is_unread for open_file in open_files)
    if unread_count:
        detail = (
            f"nothing shows what {unread_count} of its sockets and pipes hold (pidfd_getfd): their unread data is in "
            "no figure, and the kind of some sockets may not be known"
        )
        notes.append(Note("open-files-unread", source, detail))
    return notes


def _is_sole_holder(snapshot: Snapshot) -> bool:
    """Return whether the kernel's sums show that this process shares no anonymous page."""
    rollup = snapshot.rollup
    proportional_bytes = rollup.get("Pss_Anon") if rollup else None
    return proportional_bytes is not None and rollup is not None and proportional_bytes == rollup.get("Anonymous")
