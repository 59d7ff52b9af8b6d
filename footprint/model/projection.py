"""The cost of N processes, or how many fit."""

from enum import StrEnum
from typing import Final, NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("ONE", "Basis", "Model", "Point", "Projection", "Question", "Term")


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
