"""Several processes as one group."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from footprint.errors import Note, UnbalancedError
from footprint.members import Signed
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.finding import Finding, SearchedRule
from footprint.model.group_member import GroupMember
from footprint.model.object_cost import ObjectCost
from footprint.model.over_time import OverTime
from footprint.model.projection import FitLimit, Model, Term
from footprint.model.row import MemoryKind, Row
from footprint.model.totals import Total

__all__ = ("AS_IT_IS", "CgroupComparison", "CgroupRow", "Group", "GroupProjection", "GroupQuestion", "ProcessClass")


class GroupQuestion(NamedTuple):
    """What to project a group to.

    Attributes:
        count: The number of groups.
        worker_count: The workers of each group; None for as many as there are.
        memory_bytes: Where given, the numbers that fit into it are computed instead.
        reserve_bytes: The part of the memory that is left for others.
        limits: Other limits, for the number that fits.
    """

    count: int = 1  # type: ignore[assignment] # tuple.count is not missed
    worker_count: int | None = None
    memory_bytes: int | None = None
    reserve_bytes: int = 0
    limits: tuple[FitLimit, ...] = ()


AS_IT_IS: Final = GroupQuestion()


class ProcessClass(NamedTuple):
    """Processes of a group that are alike: the same program, title and kind of parent.

    What each costs includes its descendants. Memory that it shares with its parent is not part of it.

    Attributes:
        command: The command of the last of them.
        pids: The processes.
        parent_pids: Their parents in the group; empty where these are not in the group.
        model: How they start.
        reasons: What shows that they start so.
        each_bytes: What one more of them costs: the median.
        least_bytes: What the cheapest costs.
        most_bytes: What the most expensive costs.
        all_bytes: What all of them cost.
        task_count: The threads of each, its descendants included: the mean, rounded up.
        terms: The parts of `each_bytes`.
        evidence: How the cost is known.
    """

    command: str
    pids: tuple[int, ...]
    parent_pids: tuple[int, ...]
    model: Model
    reasons: tuple[str, ...]
    each_bytes: int
    least_bytes: int
    most_bytes: int
    all_bytes: int
    task_count: int
    terms: tuple[Term, ...]
    evidence: Evidence

    @property
    def noun(self) -> str:
        """What reports call one of them."""
        return "worker" if self.parent_pids or self.model is Model.FORK else "process"


class GroupProjection(NamedTuple):
    """The cost of `count` groups, each with `worker_count` workers.

    Attributes:
        count: The number of groups.
        worker_count: The workers of each group.
        per_worker_bytes: The marginal worker: what one more worker in a group costs.
        per_group_bytes: The marginal group: what one more group of so many workers costs.
        shared_once_bytes: The files that all groups map, paid once.
        total_bytes: `shared_once_bytes + count * per_group_bytes`.
        evidence: How the total is known.
        model: How the workers start.
        terms: The parts of the cost of a group, and what all groups pay once.
        memory_bytes: The memory that was asked to be filled, where `count` is how many groups fit; else None.
        limits: The limits on how many groups fit, the one that is hit first at the beginning.
        worker_limits: The limits on how many workers fit into a single group, in the same order.
    """

    count: int  # type: ignore[assignment] # tuple.count is not missed
    worker_count: int
    per_worker_bytes: int
    per_group_bytes: int
    shared_once_bytes: int
    total_bytes: int
    evidence: Evidence
    model: Model
    terms: tuple[Term, ...]
    memory_bytes: int | None = None
    limits: tuple[FitLimit, ...] = ()
    worker_limits: tuple[FitLimit, ...] = ()


class CgroupRow(NamedTuple):
    """One kind of memory: what the processes of a control group hold, and what the kernel charges to it.

    Attributes:
        name: The kind.
        audited_bytes: What the processes hold; null where no process shows it.
        charged_bytes: What is charged.
        difference_bytes: What is charged beyond what the processes hold.
        cause: What can make the difference.
    """

    name: str
    audited_bytes: int | None
    charged_bytes: int
    difference_bytes: Signed
    cause: str


class CgroupComparison(NamedTuple):
    """A group of processes beside the counters of their control group.

    Attributes:
        path: The path of the control group.
        version: 1 or 2.
        total_bytes: The charge of the kernel; the `charged_bytes` of all rows add up to it.
        slab_bytes: The part of the kernel memory for kernel objects; null where the kernel does not tell.
        rows: The kinds of memory.
    """

    path: str
    version: int
    total_bytes: int
    slab_bytes: int | None
    rows: tuple[CgroupRow, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Where the memory of several processes goes. Plain data: it can be saved, and shown elsewhere.

    Attributes:
        target: What was audited, as the user named it.
        members: The processes, each with its own figures.
        private: The private memory of all processes.
        kernel: What the kernel spends on all processes.
        shared_between: Anonymous memory that several of them have shared since a fork, counted once.
        own_shared: Shared memory that they made and that nobody else maps, each page once.
        per_group: These four: what one more group of them costs.
        shared_once: Resident pages of files and of shared memory that others have too, each counted once.
        ledger: The rows of all, those of one owner, section and symbol added up; `bytes` add up to `private`,
            those of the kernel to `kernel`.
        notes: What the reader must know, with the process it is about.
        classes: The processes that are alike, the workers first.
        projection: What many groups cost; None where the cost of a process is unknown.
        cgroup: The counters of the control group that the processes are; None where none was named.
        host: Kernel and machine, where known.
        task_count: Their threads.
        debug_files: For owners that were stripped, the files that the names of their variables are from.
        findings: What they could do without, each once; `saving_bytes` is the saving of all members that have it.
        searched_rules: The rules that were run for all of them.
        objects: Their objects, each once with the sums over the members; where they were searched or saved.
        saved_in: The file from which a saved group was read; None for a new one.
        over_time: The figures of the series that it is from; None where it is from none.
        audits: The whole audit of each process; empty for a saved group, which has the sum of their ledgers.

    Raises:
        UnbalancedError: If the rows do not add up to the totals.
    """

    target: str
    members: tuple[GroupMember, ...]
    private: Total
    kernel: Total
    shared_between: Total
    own_shared: Total
    per_group: Total
    shared_once: Total
    ledger: tuple[Row, ...]
    notes: tuple[Note, ...]
    classes: tuple[ProcessClass, ...] = ()
    projection: GroupProjection | None = None
    cgroup: CgroupComparison | None = None
    host: dict[str, str] = field(default_factory=dict)
    task_count: int = 0
    debug_files: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    searched_rules: tuple[SearchedRule, ...] = ()
    objects: tuple[ObjectCost, ...] = ()
    saved_in: str | None = None
    audits: tuple[Audit, ...] = ()
    over_time: "OverTime | None" = None

    def __post_init__(self) -> None:
        for is_kernel, total in ((False, self.private), (True, self.kernel)):
            sum_bytes = sum(row.bytes or 0 for row in self.ledger if (row.kind is MemoryKind.KERNEL) is is_kernel)
            if total.bytes is not None and sum_bytes != total.bytes:
                raise UnbalancedError(self.target, f"the rows hold {sum_bytes} bytes, the total is {total.bytes}")

    # A process has the same properties: see `Audited`.

    @property
    def pid(self) -> None:
        """A group is no single process."""
        return None

    @property
    def command(self) -> str:
        """The command line or name of the parent of the workers, else of the first process."""
        parents = self.classes[0].parent_pids if self.classes else ()
        first = [*(one for one in self.members if one.pid in parents), *self.members][:1]
        return first[0].command if first else ""

    @property
    def source(self) -> str:
        """What was read of the processes."""
        return ", ".join(dict.fromkeys(member.source for member in self.members))

    @property
    def is_live(self) -> bool:
        """Whether they were read from running processes."""
        return any(member.is_live for member in self.members)

    @property
    def mapping_count(self) -> int:
        """How many mappings all have."""
        return sum(member.mapping_count for member in self.members)

    @property
    def page_bytes(self) -> int:
        """The size of a page."""
        return self.members[0].page_bytes if self.members else 0

    @property
    def noun(self) -> str:
        """What reports call it."""
        return "group"

    @property
    def count(self) -> int:
        """How many groups its projection is for."""
        return self.projection.count if self.projection else 1

    @property
    def cost(self) -> Total:
        """What one more group costs."""
        return self.per_group

    @property
    def figures(self) -> dict[str, Total]:
        """Its figures in bytes, by their names."""
        workers = self.classes[0] if self.classes else None
        each = Total(None, Evidence.ESTIMATED) if workers is None else Total(workers.each_bytes, workers.evidence)
        return {
            "per_group_bytes": self.per_group,
            "private_bytes": self.private,
            "shared_between_bytes": self.shared_between,
            "own_shared_bytes": self.own_shared,
            "kernel_bytes": self.kernel,
            "per_worker_bytes": each,
            "shared_once_bytes": self.shared_once,
        }

    @property
    def counts(self) -> dict[str, int]:
        """Its numbers of things, by the names of the figures."""
        return {"process_count": len(self.members), "mapping_count": self.mapping_count}

    @property
    def is_searched(self) -> bool:
        """Whether the files of its processes were searched for findings."""
        return bool(self.searched_rules)

    @property
    def page_maps(self) -> tuple[()]:
        """The pages of several processes are no one picture."""
        return ()

    @property
    def heap(self) -> None:
        """A profile of a heap is of one process."""
        return None

    @property
    def peak_bytes(self) -> int | None:
        """The peak of the series that it is from; no program is run for a group."""
        return None if self.over_time is None else self.over_time.peak_bytes

    @property
    def run_failures(self) -> tuple[()]:
        """Nothing was run for a group."""
        return ()
