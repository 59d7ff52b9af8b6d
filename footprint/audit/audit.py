"""The audit of one process: totals, the ledger that explains them, and what N cost."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from footprint.audit.kernel import BUILT_IN, KernelConstants, kernel_costs
from footprint.audit.layout import FileKey, Kind, file_key, lay_out
from footprint.audit.ledger import Files, Row, ledger_rows, sum_rows
from footprint.audit.measured import Held, held_by_each
from footprint.audit.models import project_process
from footprint.audit.projection import ONE, Projection, Question
from footprint.audit.totals import Totals, total_up
from footprint.elf import Image
from footprint.errors import Note
from footprint.evidence import Evidence
from footprint.process import Snapshot
from footprint.process.descriptors import NO_DESCRIPTORS, Descriptors
from footprint.units import format_bytes

if TYPE_CHECKING:
    from footprint.audit.finding import Finding
    from footprint.audit.heap_join import HeapAccount
    from footprint.audit.objects import ObjectCost
    from footprint.audit.page_maps import PageMap, Presence

__all__ = ("Audit", "audit_snapshot", "mapped_files", "program_name")


@dataclass(frozen=True)
class Audit:
    """Where the memory of one process goes. Plain data: it can be saved, and shown elsewhere.

    Attributes:
        target: What was audited, as the user named it.
        pid: The process, where known.
        command: Its command line or name.
        source: What was read: `smaps` (live or saved), `pmap -d`, ...
        is_live: Whether it was read from a running process.
        mapping_count: How many mappings it has.
        page_bytes: The size of a page.
        host: Kernel and machine, where known.
        totals: The figures of the whole.
        ledger: Rows that add up to them.
        projection: The cost at the count that was asked for.
        notes: What the reader of the figures must know.
        findings: What it could do without.
        debug_files: Of owners that were stripped, the files that the names of their variables are from.
        objects: Its objects with what leaves with each, in load order; empty where the files were not looked into for
            that: they are of programs, and of processes that are audited with findings.
        page_maps: The pages of its objects one by one; made, and read back, only where they were asked for.
        saved_in: The file that it was read back from; None where it was made now.
        heap: What an allocator profile says of its heap; None where none was joined.

    Raises:
        ValueError: Where the rows do not add up to the totals: a defect of footprint, never of the input.
    """

    target: str
    pid: int | None
    command: str
    source: str
    is_live: bool
    mapping_count: int
    page_bytes: int
    host: dict[str, str]
    totals: Totals
    ledger: tuple[Row, ...]
    projection: Projection
    notes: tuple[Note, ...]
    findings: "tuple[Finding, ...]" = ()
    debug_files: dict[str, str] = field(default_factory=dict)
    objects: "tuple[ObjectCost, ...]" = ()
    page_maps: "tuple[PageMap, ...]" = ()
    saved_in: str | None = None
    heap: "HeapAccount | None" = None

    def __post_init__(self) -> None:
        kernel, totals = Kind.KERNEL, self.totals
        own = sum_rows([row for row in self.ledger if row.kind is not kernel])
        spent = sum_rows([row for row in self.ledger if row.kind is kernel])
        sums = (
            ("private", totals.private.bytes, own.private_bytes),
            ("mapped", totals.mapped.bytes, own.mapped_bytes),
            ("mapped writable", totals.mapped_writable.bytes, own.writable_bytes),
            ("shared once", totals.shared_once.bytes, own.shared_bytes),
            ("kernel", totals.kernel.bytes, spent.private_bytes),
        )
        for what, total_bytes, sum_bytes in sums:
            if total_bytes is not None and total_bytes != sum_bytes:
                raise ValueError(f"the rows hold {sum_bytes} {what} bytes, the total is {total_bytes}")


def program_name(audit: Audit) -> str:
    """Give what program an audit is about, as far as it tells: the last part of its path."""
    words = audit.target if audit.source == "prediction" else audit.command.split(" ", 1)[0]
    return words.rsplit("/", 1)[-1]


def audit_snapshot(  # noqa: PLR0913 # all but the first three have their name
    snapshot: Snapshot,
    images: Dict[FileKey, Image],
    files: Files,
    *,
    target: str,
    question: Question = ONE,
    constants: KernelConstants = BUILT_IN,
    descriptors: Descriptors = NO_DESCRIPTORS,
    notes: tuple[Note, ...] = (),
    presence: "Presence | None" = None,
) -> Audit:
    """Join what the kernel says of a process with what its files say.

    Args:
        snapshot: The process.
        images: The ELF files among its mapped files that could be read.
        files: What its files say beside their headers.
        target: What the user called it.
        question: How many of it, in which model.
        constants: What its kernel spends on each process, thread, mapping.
        descriptors: What it has open.
        notes: What was odd about reading the files.
        presence: Which pages of a mapping the process has; page maps are made where it is given.
    """
    memory = snapshot.memory
    parts = lay_out(memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
    costs = partial(kernel_costs, constants=constants, mappings=memory.mappings, descriptors=descriptors)
    kernel = costs(snapshot.status, len(memory.mappings))
    held = held_by_each(memory.mappings, snapshot.pages)
    rows = ledger_rows(parts, held, snapshot.pages, files, snapshot.page_bytes, kernel)
    page_maps: tuple[PageMap, ...] = ()
    if presence is not None:
        from footprint.audit.page_maps import page_maps as map_pages  # noqa: PLC0415 # for a picture only

        page_maps = map_pages(parts, held, snapshot.pages, files, snapshot.page_bytes, presence)
    totals = total_up(memory, held, kernel)
    projection = project_process(
        totals,
        rows,
        kernel,
        status=snapshot.status,
        mapping_count=len(memory.mappings),
        costs=costs,
        question=question,
    )
    return Audit(
        target=target,
        pid=snapshot.pid,
        command=snapshot.command,
        source=memory.dialect,
        is_live=snapshot.is_live,
        mapping_count=len(memory.mappings),
        page_bytes=snapshot.page_bytes,
        host=snapshot.host,
        totals=totals,
        ledger=rows,
        projection=projection,
        notes=(*snapshot.notes, *constants.notes, *notes, *_notes(snapshot, rows, held, totals)),
        page_maps=page_maps,
    )


def _notes(snapshot: Snapshot, rows: tuple[Row, ...], held: list[Held], totals: Totals) -> list[Note]:
    """Say what the figures cannot tell by themselves."""
    notes = []
    source = snapshot.source
    uncertain_bytes = sum(one.uncertain_bytes for one in held)
    if uncertain_bytes and totals.shared_with_relatives.bytes and not _is_sole_holder(snapshot):
        detail = (
            f"up to {format_bytes(uncertain_bytes)} of the private memory may be shared with fork relatives: "
            "smaps does not tell which pages of a mapping are shared"
        )
        notes.append(Note("sharing-uncertain", source, detail))
    hugetlb_bytes = snapshot.memory.sum("Private_Hugetlb")
    if hugetlb_bytes:
        detail = f"{format_bytes(hugetlb_bytes)} of huge pages from the reserved pool are private, and in no total"
        notes.append(Note("hugetlb-apart", source, detail))
    if totals.private.bytes is None:
        relro_bytes = sum(row.mapped_bytes for row in rows if row.kind is Kind.RELRO)
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
        detail = "the text does not tell anonymous pages from those of files: dirty pages are taken for private ones"
        notes.append(Note("anonymous-unknown", source, detail))
    return notes


def _is_sole_holder(snapshot: Snapshot) -> bool:
    """Tell whether the kernel's sums say that every anonymous page is this process's alone."""
    rollup = snapshot.rollup
    proportional_bytes = rollup.get("Pss_Anon") if rollup else None
    return proportional_bytes is not None and rollup is not None and proportional_bytes == rollup.get("Anonymous")


def mapped_files(snapshot: Snapshot) -> dict[FileKey, int]:
    """Give the files of a process, each with the place of its first mapping."""
    found: dict[FileKey, int] = {}
    for index, mapping in enumerate(snapshot.memory.mappings):
        key = file_key(mapping)
        if key is not None and not mapping.is_shared:
            found.setdefault(key, index)
    return found
