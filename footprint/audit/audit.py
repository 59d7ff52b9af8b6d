"""The audit of one process: totals, the ledger that explains them, and what N cost."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass

from footprint.audit.kernel import kernel_costs
from footprint.audit.layout import FileKey, Kind, file_key, lay_out
from footprint.audit.ledger import Files, Row, ledger_rows
from footprint.audit.measured import Held, held_by_each
from footprint.audit.projection import Basis, Projection, fitting, project
from footprint.elf import Image
from footprint.errors import Note
from footprint.evidence import Evidence, weakest
from footprint.process import Snapshot
from footprint.units import format_bytes

__all__ = ("Audit", "Total", "Totals", "audit_snapshot")


@dataclass(frozen=True, slots=True)
class Total:
    """A figure of the whole process with how it is known; `bytes` is None where the input cannot tell."""

    bytes: int | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of a whole process.

    Attributes:
        private: Resident or swapped anonymous memory that only this process holds.
        kernel: Page tables, kernel stacks, kernel objects.
        per_process: Both: what one more process costs.
        shared_once: Resident pages of files and shared memory, paid once per machine.
        shared_with_relatives: Anonymous memory that fork relatives hold too, or that KSM merged.
        mapped_writable: Virtual size of the private writable mappings: pmap's `writeable/private`.
        mapped_shared: Virtual size of the shared mappings: pmap's `shared`.
        mapped: Virtual size of all mappings.
        floor: Pages surely written at start, predicted from the files.
        ceiling: All pages that can ever be written, predicted from the files.
    """

    private: Total
    kernel: Total
    per_process: Total
    shared_once: Total
    shared_with_relatives: Total
    mapped_writable: Total
    mapped_shared: Total
    mapped: Total
    floor: Total
    ceiling: Total


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        own = [row for row in self.ledger if row.kind is not Kind.KERNEL]
        sums = (
            ("private", self.totals.private.bytes, sum(row.bytes or 0 for row in own)),
            ("mapped", self.totals.mapped.bytes, sum(row.mapped_bytes for row in own)),
            ("mapped writable", self.totals.mapped_writable.bytes, sum(r.mapped_bytes for r in own if r.is_writable)),
            ("shared once", self.totals.shared_once.bytes, sum(row.shared_bytes or 0 for row in own)),
            ("kernel", self.totals.kernel.bytes, sum(row.bytes or 0 for row in self.ledger if row.kind is Kind.KERNEL)),
        )
        for what, total_bytes, sum_bytes in sums:
            if total_bytes is not None and total_bytes != sum_bytes:
                raise ValueError(f"the rows hold {sum_bytes} {what} bytes, the total is {total_bytes}")


def audit_snapshot(
    snapshot: Snapshot,
    images: Dict[FileKey, Image],
    files: Files,
    *,
    target: str,
    count: int = 1,
    memory_bytes: int | None = None,
    notes: tuple[Note, ...] = (),
) -> Audit:
    """Join what the kernel says of a process with what its files say.

    Args:
        snapshot: The process.
        images: The ELF files among its mapped files that could be read.
        files: What its files say beside their headers.
        target: What the user called it.
        count: How many processes to project to.
        memory_bytes: Where given, `count` is how many fit into it instead.
        notes: What was odd about reading the files.
    """
    memory = snapshot.memory
    parts = lay_out(memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
    costs = kernel_costs(snapshot.status, len(memory.mappings))
    held = held_by_each(memory.mappings, snapshot.pages)
    rows = ledger_rows(parts, held, snapshot.pages, files, snapshot.page_bytes, costs)
    private = _private(held)
    kernel = Total(sum(cost.size_bytes for cost in costs) if costs else None, weakest(cost.evidence for cost in costs))
    mapped_writable_bytes = sum(mapping.size_bytes for mapping in memory.mappings if mapping.is_mapped_writable)
    shared_once = _shared_once(held, private.evidence)
    relatives_bytes = sum(one.relatives_bytes for one in held) if private.bytes is not None else None
    unknown = Total(None, Evidence.PREDICTED)
    totals = Totals(
        private=private,
        kernel=kernel,
        per_process=_both(private, kernel),
        shared_once=shared_once,
        shared_with_relatives=Total(relatives_bytes, private.evidence),
        mapped_writable=Total(mapped_writable_bytes, Evidence.VIRTUAL),
        mapped_shared=Total(sum(m.size_bytes for m in memory.mappings if m.is_shared), Evidence.VIRTUAL),
        mapped=Total(sum(mapping.size_bytes for mapping in memory.mappings), Evidence.VIRTUAL),
        floor=unknown,
        ceiling=unknown,
    )
    own_notes = (*snapshot.notes, *notes, *_notes(snapshot, rows, held, totals))
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
        projection=_project(totals, count, memory_bytes),
        notes=own_notes,
    )


def _private(held: list[Held]) -> Total:
    known = [one.private_bytes for one in held if one.private_bytes is not None]
    if len(known) < len(held):
        return Total(None, Evidence.VIRTUAL)
    return Total(sum(known), weakest(one.evidence for one in held))


def _shared_once(held: list[Held], evidence: Evidence) -> Total:
    known = [one.shared_bytes for one in held if one.shared_bytes is not None]
    # A page that the process maps twice is counted twice.
    return Total(sum(known) if len(known) == len(held) else None, weakest((evidence, Evidence.DERIVED)))


def _both(private: Total, kernel: Total) -> Total:
    if private.bytes is None or kernel.bytes is None:
        return Total(None, weakest((private.evidence, kernel.evidence)))
    return Total(private.bytes + kernel.bytes, weakest((private.evidence, kernel.evidence)))


def _project(totals: Totals, count: int, memory_bytes: int | None) -> Projection:
    """Multiply the best figure that the input gives."""
    choices = (
        (totals.per_process, Basis.PER_PROCESS),
        (totals.private, Basis.PRIVATE),
        (totals.mapped_writable, Basis.MAPPED_WRITABLE),
    )
    for total, basis in choices:
        if total.bytes is not None:
            once_bytes = totals.shared_once.bytes
            evidence = total.evidence if once_bytes is None else weakest((total.evidence, totals.shared_once.evidence))
            if memory_bytes is not None:
                return fitting(memory_bytes, total.bytes, once_bytes, basis, evidence)
            return project(count, total.bytes, once_bytes, basis, evidence)
    raise AssertionError("mapped writable is always known")


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
