"""The audit of one process: totals, the ledger that explains them, and what N cost."""

from dataclasses import dataclass, field
from operator import sub
from typing import TYPE_CHECKING

from footprint.errors import Note, UnbalancedError
from footprint.model.object_cost import ObjectCost, were_symbols_read
from footprint.model.projection import Projection
from footprint.model.row import MemoryKind, Row, RowSums, sum_rows
from footprint.model.totals import Total, Totals

if TYPE_CHECKING:  # what few audits have
    from footprint.model.allocator_account import AllocatorAccount
    from footprint.model.finding import Finding, SearchedRule
    from footprint.model.group_member import GroupMember
    from footprint.model.heap_account import HeapAccount
    from footprint.model.mapping_cost import MappingCost
    from footprint.model.over_time import OverTime
    from footprint.model.page_map import PageMap
    from footprint.model.run_failure import RunFailure

__all__ = ("Audit",)


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
        findings: What the process could do without.
        debug_files: For owners that were stripped, the files from which the names of their variables are.
        objects: Its objects with what leaves with each, in load order; of programs, and of processes that are
            searched for findings or saved.
        page_maps: The pages of its objects one by one; only on request.
        mappings: What its mappings cost, one by one; only with `page_maps`, and never of a program.
        saved_in: The file from which a saved audit was read; None for a new one.
        heap: The heap as an allocator profile explains it; None where no profile was joined.
        allocator: The heap as the allocator of the live process accounts for it; None where that was not read.
        searched_rules: The rules that were run; empty where none was, and in audits that earlier versions saved.
        peak_bytes: The peak of the program that was run for this audit, with its descendants, or of the series that it
            is from; None where there is neither.
        run_failures: How the program failed that was run for this audit, in any of its starts.
        over_time: The figures of the series that it is from; None where it is from none.
        balanced: The totals and the rows that were found to add up: an audit with the same ones is not added up again.

    Raises:
        UnbalancedError: If the rows do not add up to the totals.
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
    mappings: "tuple[MappingCost, ...]" = ()
    saved_in: str | None = None
    heap: "HeapAccount | None" = None
    allocator: "AllocatorAccount | None" = None
    searched_rules: "tuple[SearchedRule, ...]" = ()
    peak_bytes: int | None = None
    run_failures: "tuple[RunFailure, ...]" = ()
    over_time: "OverTime | None" = None
    balanced: "tuple[Totals, tuple[Row, ...]] | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # What was made of another audit, such as one with more notes, has its rows and totals: they add up.
        if self.balanced is not None and self.balanced[0] is self.totals and self.balanced[1] is self.ledger:
            return
        totals, held = self.totals, sum_rows(self.ledger)
        spent = sum_rows([row for row in self.ledger if row.kind is MemoryKind.KERNEL])
        own = RowSums(*map(sub, held, spent))
        sums = (
            ("private", totals.private.bytes, own.private_bytes),
            ("mapped", totals.mapped.bytes, own.mapped_bytes),
            ("mapped writable", totals.mapped_writable.bytes, own.writable_bytes),
            ("shared once", totals.shared_once.bytes, own.shared_bytes),
            ("kernel", totals.kernel.bytes, spent.private_bytes),
        )
        for what, total_bytes, sum_bytes in sums:
            if total_bytes is not None and total_bytes != sum_bytes:
                raise UnbalancedError(
                    self.target, f"the rows hold {sum_bytes} {what} bytes, the total is {total_bytes}"
                )
        object.__setattr__(self, "balanced", (totals, self.ledger))

    # A group has the same properties: see `Audited`.

    @property
    def noun(self) -> str:
        """What reports call it."""
        return "process"

    @property
    def count(self) -> int:
        """How many of it its projection is for."""
        return self.projection.count

    @property
    def cost(self) -> Total:
        """What one more of it costs."""
        return self.totals.per_process

    @property
    def figures(self) -> dict[str, Total]:
        """Its figures in bytes, by their names."""
        return self.totals.figures

    @property
    def counts(self) -> dict[str, int]:
        """Its numbers of things, by the names of the figures."""
        return {"mapping_count": self.mapping_count}

    @property
    def members(self) -> "tuple[GroupMember, ...]":
        """A process has none."""
        return ()

    @property
    def is_searched(self) -> bool:
        """Whether its files were searched for findings."""
        return bool(self.searched_rules) or were_symbols_read(self.objects)
