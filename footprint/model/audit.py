"""The audit of one process, or of several as a group: totals, the ledger that explains them, and what N cost."""

from collections.abc import Mapping, Sequence
from math import comb
from operator import sub
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from footprint import __version__
from footprint.errors import Note, UnbalancedError
from footprint.members import NamedTuple, dataclass, field
from footprint.model.costs import ObjectCost, Spread, were_symbols_read
from footprint.model.projection import FitLimit, Projection
from footprint.model.row import (
    Evidence,
    MemoryKind,
    OfWhich,
    Row,
    RowSums,
    Total,
    Totals,
    rows_of_kind,
    sum_rows,
    weakest,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs  # what type checkers know

    from footprint.model.costs import MappingCost, MemoryFileCost, StartMeasurement
    from footprint.model.finding import Finding, SearchedRule
    from footprint.model.group import CgroupComparison, ProcessClass
    from footprint.model.heap_account import AllocatorAccount, HeapAccount
    from footprint.model.over_time import OverTime, RunFailure
    from footprint.model.page_map import PageMap


@dataclass(frozen=True)
class ProcessTarget:
    """The process, program or group that an answer is about.

    Attributes:
        name: The target, as the user named it.
        pid: The process; null where it is not known, and for a group.
        command: The command line or the name of the process, of a group that of the first.
        source: What was read: `smaps`, `pmap -d`, `prediction`, ...
        is_live: Whether it was read from a running process.
        mapping_count: The number of mappings.
        page_bytes: The size of a page.
    """

    name: str
    pid: int | None
    command: str
    source: str
    is_live: bool
    mapping_count: int
    page_bytes: int


@dataclass(frozen=True)
class GroupMember(ProcessTarget):
    """One process of a group, without its ledger.

    Attributes:
        totals: Its own figures.
    """

    totals: Totals


class WorkerProjection(NamedTuple):
    """What the projection of a group says of its workers; 0 where their cost is unknown.

    Attributes:
        count: The workers of each group.
        each_bytes: The marginal worker: what one more worker in a group costs.
        limits: The limits on how many workers fit into a single group, the one that is hit first at the beginning.
    """

    count: int = 0  # type: ignore[assignment] # tuple.count is not missed
    each_bytes: int = 0
    limits: "tuple[FitLimit, ...]" = ()


class GroupFacts(NamedTuple):
    """What the audit of several processes has beside what that of one has. One process has no members.

    Attributes:
        members: The processes, each with its own figures.
        own_shared: Files in memory that nobody else keeps, each once with all that it holds.
        classes: The processes that are alike, the workers first.
        task_count: Their threads.
        workers: What the projection says of the workers.
        cgroup: The counters of the control group that the processes are; None where none was named.
        audits: The whole audit of each process; empty for a saved group, which has the sum of their ledgers.
    """

    members: tuple[GroupMember, ...] = ()
    own_shared: Total = Total(0, Evidence.DERIVED)
    classes: "tuple[ProcessClass, ...]" = ()
    task_count: int = 0
    workers: WorkerProjection = WorkerProjection()
    cgroup: "CgroupComparison | None" = None
    audits: "tuple[Audit, ...]" = ()


ALONE: Final = GroupFacts()
"""What one process has of this: nothing."""


@dataclass(frozen=True)
class Audit:
    """Where the memory of a process goes, or of several as a group. Plain data: it can be saved, and shown elsewhere.

    Attributes:
        target: What was audited, as the user named it.
        pid: The process, where known; None for a group.
        command: Its command line or name; of a group that of the parent of its workers, else of its first process.
        source: What was read: `smaps` (live or saved), `pmap -d`, ...
        is_live: Whether it was read from a running process.
        mapping_count: How many mappings it has.
        page_bytes: The size of a page.
        host: Kernel and machine, where known.
        totals: The figures of the whole. Of a group `per_process` is what one more group costs, `cow_shared` what its
            processes share since a fork, counted once, and `shared_once` what others have, too.
        ledger: Rows that add up to them; of a group those of one owner, section and symbol added up.
        projection: The cost at the count that was asked for. That of a group without terms is unknown.
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
        start_cpu_us: The processor time of a start up to the entry point, in microseconds: the median; None where that
            was not measured.
        run_failures: How the program failed that was run for this audit, in any of its starts.
        over_time: The figures of the series that it is from; None where it is from none.
        memory_files: What its files in memory cost; none in audits that earlier versions saved.
        group: What only the audit of several processes has.
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
    start_cpu_us: int | None = None
    run_failures: "tuple[RunFailure, ...]" = ()
    over_time: "OverTime | None" = None
    memory_files: "tuple[MemoryFileCost, ...]" = ()
    group: GroupFacts = ALONE
    balanced: "tuple[Totals, tuple[Row, ...]] | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # What was made of another audit, such as one with more notes, has its rows and totals: they add up.
        if self.balanced is not None and self.balanced[0] is self.totals and self.balanced[1] is self.ledger:
            return
        totals, all_sums = self.totals, sum_rows(self.ledger)
        spent = sum_rows(rows_of_kind(self.ledger, MemoryKind.KERNEL))
        own_sums = RowSums(*map(sub, all_sums, spent))
        sums = (
            ("private", totals.private.bytes, own_sums.private_bytes),
            ("mapped", totals.mapped.bytes, own_sums.mapped_bytes),
            ("mapped writable", totals.mapped_writable.bytes, own_sums.writable_bytes),
            ("shared once", totals.shared_once.bytes, own_sums.shared_bytes),
            ("kernel", totals.kernel.bytes, spent.private_bytes),
        )
        # Processes of a group share what they map: the sums of their rows are no figures of the group.
        for what, total_bytes, sum_bytes in (sums[0], sums[-1]) if self.is_group else sums:
            if total_bytes is not None and total_bytes != sum_bytes:
                raise UnbalancedError(
                    self.target, f"the rows hold {sum_bytes} {what} bytes, the total is {total_bytes}"
                )
        object.__setattr__(self, "balanced", (totals, self.ledger))

    @property
    def is_group(self) -> bool:
        """Whether it is of several processes, or of one as a group of one."""
        return bool(self.group.members)

    @property
    def noun(self) -> str:
        """What reports call it."""
        return "group" if self.is_group else "process"

    @property
    def count(self) -> int:
        """How many of it its projection is for."""
        return self.projection.count

    @property
    def cost(self) -> Total:
        """What one more of it costs."""
        return self.totals.per_process

    @property
    def cost_projection(self) -> Projection | None:
        """What as many as were asked about cost; None where it is unknown what one of it costs."""
        return None if self.cost.bytes is None or not self.projection.terms else self.projection

    @property
    def figures(self) -> dict[str, Total]:
        """Its figures in bytes, by their names."""
        totals, group = self.totals, self.group
        if not self.is_group:
            return totals.figures
        worker = group.classes[0] if group.classes else None
        return {
            "per_group_bytes": totals.per_process,
            "private_bytes": totals.private,
            "shared_between_bytes": totals.cow_shared,
            "own_shared_bytes": group.own_shared,
            "kernel_bytes": totals.kernel,
            "per_worker_bytes": Total(worker and worker.each_bytes, worker.evidence if worker else Evidence.ESTIMATED),
            "shared_once_bytes": totals.shared_once,
        }

    @property
    def counts(self) -> dict[str, int]:
        """Its numbers of things, by the names of the figures."""
        process_count = {"process_count": len(self.members)} if self.is_group else {}
        return {**process_count, "mapping_count": self.mapping_count}

    @property
    def members(self) -> "tuple[GroupMember, ...]":
        """The processes of a group; none of a single process."""
        return self.group.members

    @property
    def is_searched(self) -> bool:
        """Whether its files were searched for findings."""
        return bool(self.searched_rules) or (not self.is_group and were_symbols_read(self.objects))


class GroupSums(NamedTuple):
    """The figures of several processes together.

    Attributes:
        private: The private memory of all processes.
        kernel: What the kernel spends on all processes.
        shared_between: Anonymous memory that several of them have shared since a fork, counted once.
        own_shared: Files in memory that nobody else keeps, each once with all that it holds.
        per_group: These four: what one more group of them costs.
        shared_once: Resident pages of files and of shared memory that others have too, each counted once.
    """

    private: Total
    kernel: Total
    shared_between: Total
    own_shared: Total
    per_group: Total
    shared_once: Total


def sum_totals(totals: Sequence[Total]) -> Total:
    """Add up a figure of several processes; it is unknown where that of one is."""
    sizes = [total.bytes for total in totals if total.bytes is not None]
    size_bytes = sum(sizes) if len(sizes) == len(totals) else None
    return Total(size_bytes, weakest(total.evidence for total in totals))


def audit_of_group(target: str, sums: GroupSums, group: GroupFacts, **others: Any) -> Audit:  # noqa: ANN401 # fields
    """Return the audit of several processes: the command is that of the parent of the workers, else of the first.

    Args:
        target: What was audited, as the user named it.
        sums: Their figures together.
        group: What only several processes have.
        others: The other fields of `Audit`.
    """
    members = group.members
    parents = group.classes[0].parent_pids if group.classes else ()
    first = [*(member for member in members if member.pid in parents), *members][:1]
    of_which = zip(*(member.totals.of_which for member in members), strict=True)
    unknown = Total(None, Evidence.PREDICTED)
    return Audit(
        target=target,
        pid=None,
        command=first[0].command if first else "",
        source=", ".join(dict.fromkeys(member.source for member in members)),
        is_live=any(member.is_live for member in members),
        mapping_count=sum(member.mapping_count for member in members),
        page_bytes=members[0].page_bytes if members else 0,
        totals=Totals(
            private=sums.private,
            kernel=sums.kernel,
            per_process=sums.per_group,
            shared_once=sums.shared_once,
            cow_shared=sums.shared_between,
            mapped_writable=sum_totals([member.totals.mapped_writable for member in members]),
            mapped_shared=sum_totals([member.totals.mapped_shared for member in members]),
            mapped=sum_totals([member.totals.mapped for member in members]),
            startup_min=unknown,
            startup_max=unknown,
            of_which=OfWhich(*map(sum, of_which))._replace(own_shared_bytes=sums.own_shared.bytes or 0),
        ),
        group=group,
        **others,
    )


NO_MEMORY: Final = Spread(0, 0, 0)
"""What a run holds of what none of its starts has."""


def overlap(spread: Spread, other: Spread) -> bool:
    """Return whether the starts of two runs overlap, so that their difference may be chance."""
    return spread.min <= other.max and other.min <= spread.max


def separation_confidence(count: int, other: int) -> float:
    """Compute how sure it is that two groups of starts differ, if all of one lie above all of the other.

    If nothing had changed, each order of the starts would be as likely as any other, and only one choice of `count`
    among all of them is the upper group.
    """
    return 1 - 1 / comb(count + other, count)


class Spreads(NamedTuple):
    """How much the starts of a run differ: in all, and by owner in private memory.

    Attributes:
        private: Private memory.
        per_process: The cost of one process.
        owners: The private memory of each owner, with what the kernel spends.
        start_count: The number of starts.
        peak: The peak of the program with its descendants.
        kinds: The memory of each kind.
        retained: For each object the private memory of all that leaves with it.
        start_cpu: The processor time of a start up to the entry point, in microseconds.
        start_cpu_count: The number of starts that this was measured in.
    """

    private: Spread | None = None
    per_process: Spread | None = None
    owners: Mapping[str, Spread] = MappingProxyType({})
    start_count: int = 1
    peak: Spread | None = None
    kinds: Mapping[str, Spread] = MappingProxyType({})
    retained: Mapping[str, Spread] = MappingProxyType({})
    start_cpu: Spread | None = None
    start_cpu_count: int = 1


def start_spread(measurement: "StartMeasurement | None") -> tuple[Spread | None, int]:
    """Return how far the processor time of starts up to the entry point differs, and the number of starts."""
    if measurement is None:
        return None, 1
    return measurement.processor_us, measurement.start_count


ONE_START: Final[Spreads] = Spreads()


class AuditRecord(NamedTuple):
    """An audit, and how it came about.

    Attributes:
        audit: The audit; of a saved `run` that of the median start.
        spreads: How far the starts of a saved `run` differ.
        tool_version: The footprint that made it.
    """

    audit: "Audit"
    spreads: Spreads = ONE_START
    tool_version: str = __version__


def is_audited(subject: object) -> "TypeIs[Audit]":
    """Return whether something is an audit or a group that was made already, and no target."""
    return hasattr(subject, "ledger")


def is_reproducible(audit: "Audit") -> bool:
    """Return whether an audit is a prediction without what the machine adds, as with `audit --reproducible`."""
    return audit.source == "prediction" and not audit.host


def program_name(audit: "Audit") -> str:
    """Return the name of the audited program: the last part of its path, as far as the audit has it."""
    return _last_part(audit.target) if audit.source == "prediction" else _program(audit.command)


def program_names(audit: "Audit") -> list[str]:
    """Return the names of the programs of a group, each once, that of its workers' parent first."""
    commands = [audit.command, *(member.command for member in audit.members)]
    return list(dict.fromkeys(filter(None, map(_program, commands))))


def _program(command: str) -> str:
    # Some programs write their title over their command: `nginx: master process nginx`.
    return _last_part(command.split(" ", 1)[0].rstrip(":"))


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def program_path(audit: "Audit") -> str:
    """Return the path of the program; "" if it is not known."""
    if audit.source == "prediction":
        return audit.target
    return audit.objects[0].path if audit.objects else ""


def lasting_name(audit: "Audit", given: str | None = None) -> str:
    """Return a name that stays the same from run to run: for a live process that of its program."""
    name = program_name(audit) if audit.is_live and audit.saved_in is None else ""
    return name or given or audit.saved_in or audit.target
