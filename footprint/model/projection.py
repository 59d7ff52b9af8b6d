"""The cost of N processes, or the N that fits into some memory."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final

from footprint.members import Later, NamedTuple, json_members
from footprint.model.row import Evidence


class Basis(StrEnum):
    """The figure of one process that is multiplied."""

    PER_PROCESS = "per process"
    """Private memory, page tables, kernel stacks and kernel objects."""
    STARTED_COPY = "started copy"
    """The same, and what a started copy has for itself where this process shares it."""
    REWRITTEN = "everything rewritten"
    """The most that a forked worker can cost."""
    PRIVATE = "private"
    """Private memory only: the input does not contain what the kernel spends on the process."""
    MAPPED_WRITABLE = "mapped writable"
    """Address space that may become private: an upper bound for the pages, without what the kernel spends."""

    @property
    def phrase(self) -> str:
        """The words that follow the figure in a sentence."""
        return _PHRASES[self]


class Model(StrEnum):
    """How the N processes start."""

    EXEC = "exec"
    """N copies are started, each with exec."""
    FORK = "fork"
    """N workers are forked from one parent."""
    THREADS = "threads"
    """N threads are made in one process."""

    @property
    def nouns(self) -> tuple[str, str]:
        """The words for one of the N, and for all of them."""
        return _NOUNS[self]


_PHRASES: Final = {
    Basis.PER_PROCESS: "",
    Basis.STARTED_COPY: ", with what it shares now",
    Basis.REWRITTEN: " at most, if everything is rewritten",
    Basis.PRIVATE: " of private memory, kernel memory not counted",
    Basis.MAPPED_WRITABLE: " of mapped writable memory, an upper bound",
}
_NOUNS: Final = {
    Model.EXEC: ("process", "processes"),
    Model.FORK: ("worker", "workers"),
    Model.THREADS: ("thread", "threads"),
}


class LimitUnit(StrEnum):
    """What a limit counts."""

    BYTES = "bytes"
    TASKS = "tasks"
    """Threads; a process is one at least."""


class FitLimit(NamedTuple):
    """A limit on how many fit.

    Attributes:
        name: What the limit is, such as `pid_max` or `memory.max of /system.slice/nginx.service`.
        unit: What it counts.
        most: The limit.
        taken: What is not available: the reserve, or the tasks of others.
        each: What one process, or one group, takes of it.
        count: How many fit.
        beside_cache_count: How many fit beside the page cache of their files. More must read from the disk again what
            the kernel drops, and start slowly.
    """

    name: str
    unit: LimitUnit
    most: int
    taken: int
    each: int = 0
    count: int = 0  # type: ignore[assignment] # tuple.count is not missed
    beside_cache_count: Annotated[int, Later(0)] = 0


class Question(NamedTuple):
    """What to project a process or a group to.

    Attributes:
        count: The number of processes or groups.
        memory_bytes: Where given, the number that fits into it is computed instead.
        model: How they start; None for what the process shows, or for a group.
        reserve_bytes: The part of the memory that is left for others.
        limits: Other limits, for the number that fits.
        worker_count: The workers of each group; None for as many as there are.
    """

    count: int = 1  # type: ignore[assignment] # tuple.count is not missed
    memory_bytes: int | None = None
    model: Model | None = Model.EXEC
    reserve_bytes: int = 0
    limits: tuple[FitLimit, ...] = ()
    worker_count: int | None = None

    @property
    def all_limits(self) -> tuple[FitLimit, ...]:
        """Return the limits, the memory first."""
        if self.memory_bytes is None:
            return self.limits
        return (FitLimit("memory", LimitUnit.BYTES, self.memory_bytes, self.reserve_bytes), *self.limits)


ONE: Final = Question()
FILES_TERM: Final = "files and shared memory"
"""The name of the term for the files that all map, which are page cache."""


class Term(NamedTuple):
    """One part of a cost.

    Attributes:
        name: What is paid for.
        size_bytes: How much.
        is_once: Whether all of the N pay it once together, and not each of them.
        evidence: How it is known.
        is_page_cache: Whether it is page cache: the kernel drops it where memory is short, so it takes nothing from a
            limit.
    """

    name: str
    size_bytes: int
    is_once: bool
    evidence: Evidence
    is_page_cache: Annotated[bool, Later(False)] = False  # noqa: FBT003 # what older files have


def cost_at(terms: Iterable[Term], count: int) -> int:
    """Compute what `count` cost together: what each pays so many times, and what all pay once."""
    return sum(term.size_bytes * (1 if term.is_once else count) for term in terms)


def once_bytes(terms: Iterable[Term], *, is_page_cache: bool) -> int:
    """Compute what all of the N pay once: page cache, or all that is kept in memory."""
    return sum(term.size_bytes for term in terms if term.is_once and term.is_page_cache is is_page_cache)


class Point(NamedTuple):
    """The cost of one of the N at some moment of its life, and of all of them; for the fork model.

    Attributes:
        name: `just forked`, `now`, `everything rewritten`.
        each_bytes: What one worker costs then.
        total_bytes: What N of them and their parent cost.
        evidence: How it is known.
    """

    name: str
    each_bytes: int
    total_bytes: int
    evidence: Evidence


@json_members(
    "count per_process_bytes shared_once_bytes total_bytes basis memory_bytes evidence model reasons terms points"
    " limits"
)
class Projection(NamedTuple):
    """The cost of `count` processes, or threads.

    Attributes:
        count: The number of processes.
        per_process_bytes: The cost of each, the sum of the terms that each pays; of each thread in the threads model.
        shared_once_bytes: What all of them pay once; None where unknown, and then not in the total.
        total_bytes: `shared_once_bytes + count * per_process_bytes`.
        basis: Which figure `per_process_bytes` is.
        evidence: How it is known; the weakest of its terms.
        model: How the N start.
        terms: The parts of both.
        points: Moments in the life of a forked worker; empty in the other models.
        memory_bytes: The memory that was asked to be filled, where `count` is how many fit; else None.
        reasons: What shows that they start so; empty where the model was chosen by the user.
        limits: The limits on how many fit, the one that is hit first at the beginning; empty where `count` was given.
    """

    count: int  # type: ignore[assignment] # tuple.count is not missed
    per_process_bytes: int
    shared_once_bytes: int | None
    total_bytes: int
    basis: Basis
    evidence: Evidence
    model: Model = Model.EXEC
    terms: tuple[Term, ...] = ()
    points: tuple[Point, ...] = ()
    memory_bytes: int | None = None
    reasons: Annotated[tuple[str, ...], Later(())] = ()
    limits: Annotated[tuple[FitLimit, ...], Later(())] = ()


UNKNOWN: Final = Projection(1, 0, None, 0, Basis.PER_PROCESS, Evidence.VIRTUAL)
"""The projection of a group whose cost is unknown: it has no terms."""
