"""Several processes as one group: what their audit has that the audit of one process does not have."""

from typing import Annotated, NamedTuple

from footprint.members import Later, Signed
from footprint.model.projection import Model, Term
from footprint.model.row import Evidence


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
        is_helper: Whether they only serve the main program of the group, and are of another program than that.
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
    is_helper: Annotated[bool, Later(False)] = False  # noqa: FBT003 # what older files have

    @property
    def noun(self) -> str:
        """What reports call one of them."""
        return "worker" if self.parent_pids or self.model is Model.FORK else "process"


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
