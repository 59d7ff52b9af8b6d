# ruff: noqa: D102 # the docstring of the class says what each is
"""What the audit of a process and that of a group have in common: what is compared, checked, recorded and shown."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from footprint.errors import Note
    from footprint.model.finding import Finding, SearchedRule
    from footprint.model.group import GroupProjection
    from footprint.model.group_member import GroupMember
    from footprint.model.heap_account import HeapAccount
    from footprint.model.object_cost import ObjectCost
    from footprint.model.over_time import OverTime
    from footprint.model.page_map import PageMap
    from footprint.model.projection import Projection
    from footprint.model.row import Row
    from footprint.model.run_failure import RunFailure
    from footprint.model.totals import Total


__all__ = ("Audited",)


class Audited(Protocol):
    """An `Audit` or a `Group`.

    Attributes:
        target: What was audited, as the user named it.
        pid: The process; None where it is not known, and of a group.
        command: The command line or name; of a group that of the parent of its workers, else of its first process.
        source: What was read: `smaps`, `prediction`, ...
        is_live: Whether it was read from what runs.
        mapping_count: The number of mappings.
        page_bytes: The size of a page.
        host: Kernel and machine, where known.
        saved_in: The file that it was read from; None for a new one.
        noun: What reports call it: `process` or `group`.
        count: How many of it its projection is for.
        cost: What one more of it costs.
        figures: Its figures in bytes, by their names.
        counts: Its numbers of things, by the names of the figures.
        ledger: The rows that add up to its private memory and to its kernel memory.
        projection: What as many as were asked about cost; None where the cost of a group is unknown.
        members: The processes of a group; none of a single process.
        notes: What the reader of the figures must know.
        is_searched: Whether its files were searched for findings.
        searched_rules: The rules that were run.
        findings: What it could do without.
        objects: Its objects with what leaves with each; where it was searched or saved.
        debug_files: For owners that were stripped, the files that the names of their variables are from.
        page_maps: The pages of its objects one by one; only on request, and never of a group.
        heap: The heap as an allocator profile explains it; None where no profile was joined.
        peak_bytes: The peak of the program that was run for it, with its descendants, or of the series that it is from;
            None where there is neither.
        over_time: The figures of the series that it is from; None where it is from none.
        run_failures: How the program failed that was run for it.
    """

    @property
    def target(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def command(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def is_live(self) -> bool: ...

    @property
    def mapping_count(self) -> int: ...

    @property
    def page_bytes(self) -> int: ...

    @property
    def host(self) -> dict[str, str]: ...

    @property
    def saved_in(self) -> str | None: ...

    @property
    def noun(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def cost(self) -> "Total": ...

    @property
    def figures(self) -> "dict[str, Total]": ...

    @property
    def counts(self) -> dict[str, int]: ...

    @property
    def ledger(self) -> "tuple[Row, ...]": ...

    @property
    def projection(self) -> "Projection | GroupProjection | None": ...

    @property
    def members(self) -> "tuple[GroupMember, ...]": ...

    @property
    def notes(self) -> "tuple[Note, ...]": ...

    @property
    def is_searched(self) -> bool: ...

    @property
    def searched_rules(self) -> "tuple[SearchedRule, ...]": ...

    @property
    def findings(self) -> "tuple[Finding, ...]": ...

    @property
    def objects(self) -> "tuple[ObjectCost, ...]": ...

    @property
    def debug_files(self) -> dict[str, str]: ...

    @property
    def page_maps(self) -> "tuple[PageMap, ...]": ...

    @property
    def heap(self) -> "HeapAccount | None": ...

    @property
    def run_failures(self) -> "tuple[RunFailure, ...]": ...

    @property
    def peak_bytes(self) -> int | None: ...

    @property
    def over_time(self) -> "OverTime | None": ...
