"""What N processes cost, or how many fit: arithmetic on what one costs, with every term shown.

Three models. `exec`: N started copies, each with private memory of its own. `fork`: N workers of one parent, who share
with it what neither has written since. `threads`: N more threads in one process.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from footprint.errors import UsageError
from footprint.evidence import Evidence, weakest

__all__ = ("ONE", "Basis", "Model", "Point", "Projection", "Question", "Term", "project")


class Basis(StrEnum):
    """Which figure of one process is multiplied."""

    PER_PROCESS = "per process"
    """Private memory, page tables, kernel stacks and kernel objects."""
    STARTED_COPY = "started copy"
    """The same, and what a copy that is started by itself does not share with this one's relatives or mappings."""
    REWRITTEN = "everything rewritten"
    """What a forked worker costs at most."""
    PRIVATE = "private"
    """Private memory only: the input does not tell what the kernel spends on the process."""
    MAPPED_WRITABLE = "mapped writable"
    """Address space that may become private: an upper bound for the pages, without what the kernel spends."""


class Model(StrEnum):
    """How the N come about."""

    EXEC = "exec"
    """N copies are started, each by itself."""
    FORK = "fork"
    """N workers are forked from one parent."""
    THREADS = "threads"
    """N threads are made in one process."""


class Question(NamedTuple):
    """What to project a process to.

    Attributes:
        count: How many.
        memory_bytes: Where given, `count` is how many fit into it instead.
        model: How they come about.
    """

    count: int = 1  # type: ignore[assignment] # tuple.count is not missed
    memory_bytes: int | None = None
    model: Model = Model.EXEC


ONE: Final = Question()


class Term(NamedTuple):
    """One part of a cost.

    Attributes:
        name: What is paid for.
        size_bytes: How much.
        is_once: Whether all of the N pay it together, instead of each.
        evidence: How it is known.
    """

    name: str
    size_bytes: int
    is_once: bool
    evidence: Evidence


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


class Projection(NamedTuple):
    """The cost of `count` processes, or threads.

    Attributes:
        count: How many.
        per_process_bytes: What each costs, the terms that each pays added up; in the threads model, each thread.
        shared_once_bytes: What all of them pay once; None where unknown, and then not in the total.
        total_bytes: `shared_once_bytes + count * per_process_bytes`.
        basis: Which figure `per_process_bytes` is.
        evidence: How it is known; the weakest of its terms.
        model: How the N come about.
        terms: The parts of both.
        points: Moments in the life of a forked worker; empty in the other models.
        memory_bytes: The memory that was asked to be filled, where `count` is how many fit; else None.
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


def project(
    terms: Sequence[Term],
    basis: Basis,
    question: Question,
    moments: Sequence[tuple[str, int, Evidence]] = (),
) -> Projection:
    """Give the cost of many, or how many fit into some memory; none where not even one does.

    Args:
        terms: What each pays, and what all pay once. Without a term of the second kind, that part is unknown.
        basis: Which figure of one process the terms of the first kind add up to.
        question: How many, in which model.
        moments: Names, bytes and evidence of what a forked worker costs at moments of its life.

    Raises:
        UsageError: For a count below 1, or where one costs nothing, so that any number would fit.
    """
    each_bytes = sum(term.size_bytes for term in terms if not term.is_once)
    once = [term for term in terms if term.is_once]
    once_bytes = sum(term.size_bytes for term in once) if once else None
    count = question.count
    if question.memory_bytes is not None:
        if each_bytes <= 0:
            raise UsageError("one more costs nothing by this input: any number fits")
        count = max(0, (question.memory_bytes - (once_bytes or 0)) // each_bytes)
    elif count < 1:
        raise UsageError(f"the number is {count}: it must be 1 or more")

    def for_all(size_bytes: int) -> int:
        return (once_bytes or 0) + count * size_bytes if count else 0

    return Projection(
        count=count,
        per_process_bytes=each_bytes,
        shared_once_bytes=once_bytes,
        total_bytes=for_all(each_bytes),
        basis=basis,
        evidence=weakest(term.evidence for term in terms),
        model=question.model,
        terms=tuple(terms),
        points=tuple(Point(name, size_bytes, for_all(size_bytes), evidence) for name, size_bytes, evidence in moments),
        memory_bytes=question.memory_bytes,
    )
