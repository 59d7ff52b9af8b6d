"""The audit of one process: totals, the ledger that explains them, and what N cost."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from footprint.attribution.cost_models import ForkParent, project_process
from footprint.attribution.counters import MappingCounts, count_each
from footprint.attribution.kernel import BUILT_IN, KernelConstants, KernelCost, kernel_costs
from footprint.attribution.layout import lay_out
from footprint.attribution.ledger import Files, KnownRows, ledger_rows
from footprint.attribution.owned_range import OwnedRange
from footprint.attribution.shared_memory import shared_memory_notes
from footprint.attribution.thread_ranges import ThreadRanges
from footprint.attribution.totals import total_up
from footprint.elf import Image
from footprint.errors import InputError, Note
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.projection import ONE, Question
from footprint.model.row import MemoryKind, Row
from footprint.model.totals import Totals
from footprint.process import Snapshot
from footprint.process.descriptions import OpenFile, OpenFileKind
from footprint.process.mapped_files import FileKey
from footprint.units import format_bytes

if TYPE_CHECKING:
    from footprint.attribution.heap_ranges import HeapRanges
    from footprint.attribution.page_maps import Presence
    from footprint.model.mapping_cost import MappingCost
    from footprint.model.page_map import PageMap
    from footprint.process.live_threads import LiveThreads

__all__ = ("audit_snapshot", "owner_rows")


_MANY_WATCHES = 100  # of inotify: from here on, a note says what they keep in memory


def audit_snapshot(  # noqa: PLR0913 # all but the first three have their name
    snapshot: Snapshot,
    images: Dict[FileKey, Image],
    files: Files,
    *,
    target: str,
    question: Question = ONE,
    constants: KernelConstants = BUILT_IN,
    open_files: Sequence[OpenFile] = (),
    notes: tuple[Note, ...] = (),
    presence: "Presence | None" = None,
    parent: ForkParent | None = None,
    known_rows: KnownRows | None = None,
    heap: "HeapRanges | None" = None,
    threads: "LiveThreads | None" = None,
) -> Audit:
    """Audit a process: join what the kernel counts with what its files contain.

    `images` are the ELF files among its mapped files that could be read, `open_files` the open file descriptions that
    it pays for, `parent` the process that it was forked from, where that was read, `heap` its heap as its allocator
    has it, `threads` where its threads have their variables. Page maps and the table of mappings are made where
    `presence` is given.

    Raises:
        InputError: Where a text has neither sizes nor counters of private memory.
    """
    memory = snapshot.memory
    parts = _cut(lay_out(memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs), threads, heap)
    costs = partial(kernel_costs, constants=constants, mappings=memory.mappings, open_files=open_files)
    kernel = costs(snapshot.status, len(memory.mappings))
    held = count_each(memory.mappings, snapshot.pages)
    rows = ledger_rows(parts, held, snapshot.pages, files, snapshot.page_bytes, kernel, known=known_rows, heap=heap)
    page_maps, mappings = _places(snapshot, parts, held, files, presence) if presence else ((), ())
    totals = _totals(snapshot, held, kernel)
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
        notes=(*snapshot.notes, *constants.notes, *notes, *_notes(snapshot, rows, held, totals, open_files)),
        page_maps=page_maps,
        mappings=mappings,
        allocator=heap.account(parts, snapshot.pages or {}) if heap else None,
    )


def owner_rows(snapshot: Snapshot, images: Dict[FileKey, Image]) -> tuple[Row, ...]:
    """Return the rows of a process by owner and mapping: no symbols are read, no kernel memory is counted."""
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
    held = count_each(snapshot.memory.mappings, snapshot.pages)
    return ledger_rows(parts, held, snapshot.pages, None, snapshot.page_bytes, ())


def _places(
    snapshot: Snapshot,
    parts: Sequence[OwnedRange],
    held: Sequence[MappingCounts],
    files: Files,
    presence: "Presence",
) -> "tuple[tuple[PageMap, ...], tuple[MappingCost, ...]]":
    """Return the page maps of the objects of a process, and what its mappings cost."""
    from footprint.attribution.mapping_costs import mapping_costs  # noqa: PLC0415 # for a picture only
    from footprint.attribution.page_maps import page_maps  # noqa: PLC0415 # the same

    found = page_maps(parts, held, snapshot.pages, files, snapshot.page_bytes, presence)
    return found, mapping_costs(parts, held, snapshot.pages)


def _totals(snapshot: Snapshot, held: list[MappingCounts], kernel: Sequence[KernelCost]) -> Totals:
    totals = total_up(snapshot.memory, held, kernel)
    if totals.private.bytes is None and totals.mapped.bytes is None:
        raise InputError(snapshot.source, "it has no counter that says what the process costs")
    return totals


def _cut(
    parts: tuple[OwnedRange, ...], threads: "LiveThreads | None", heap: "HeapRanges | None"
) -> tuple[OwnedRange, ...]:
    """Cut the ranges of a process by the structures in its memory."""
    parts = ThreadRanges(threads, parts).cut(parts) if threads else parts
    return heap.cut(parts) if heap else parts


def _notes(
    snapshot: Snapshot,
    rows: tuple[Row, ...],
    held: list[MappingCounts],
    totals: Totals,
    open_files: Sequence[OpenFile],
) -> list[Note]:
    """Return notes for what the figures do not show by themselves."""
    notes = []
    source = snapshot.source
    uncertain_bytes = sum(one.uncertain_bytes for one in held)
    if uncertain_bytes and totals.cow_shared.bytes and not _is_sole_holder(snapshot):
        detail = (
            f"up to {format_bytes(uncertain_bytes)} of the private memory may be shared with fork relatives: "
            "smaps does not say which pages of a mapping are shared"
        )
        notes.append(Note("sharing-uncertain", source, detail))
    hugetlb_bytes = snapshot.memory.sum("Private_Hugetlb")
    if hugetlb_bytes:
        detail = f"{format_bytes(hugetlb_bytes)} of huge pages from the reserved pool are private, and in no total"
        notes.append(Note("hugetlb-apart", source, detail))
    notes.extend(shared_memory_notes(snapshot.memory.mappings, source))
    notes.extend(_open_file_notes(open_files, source))
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
    watch_count = sum(one.watch_count for one in open_files if one.kind is OpenFileKind.INOTIFY)
    if watch_count >= _MANY_WATCHES:
        detail = (
            f"its {watch_count} watches of inotify keep as many inodes in kernel memory, about 1 KiB each: those are "
            "paid once, however many processes watch the same files, and are in no figure"
        )
        notes.append(Note("watched-inodes", source, detail))
    unread_count = sum(one.is_unread for one in open_files)
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
