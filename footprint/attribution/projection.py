"""What N processes cost, or how many fit: arithmetic on what one costs, with every term shown.

There are three models. `exec`: N started copies, each with private memory of its own. `fork`: N workers of one parent,
which share with it the pages that none of them has written since. `threads`: N more threads in one process.
"""

from collections.abc import Sequence

from footprint.attribution.limits import how_many_fit, memory_limit
from footprint.errors import UsageError
from footprint.model.evidence import Evidence, weakest
from footprint.model.projection import Basis, Model, Point, Projection, Question, Term

__all__ = ("project",)


def project(
    terms: Sequence[Term],
    basis: Basis,
    question: Question,
    moments: Sequence[tuple[str, int, Evidence]] = (),
    *,
    tasks: int = 0,
) -> Projection:
    """Compute the cost of N, or the N that fits into some memory; 0 where not even one fits.

    Args:
        terms: What each pays, and what all pay once. Without a term of the second kind, that part is unknown.
        basis: Which figure of one process the terms of the first kind add up to.
        question: How many, in which model.
        moments: Names, bytes and evidence of what a forked worker costs at moments of its life.
        tasks: The threads of each; 0 where unknown.

    Raises:
        UsageError: For a count below 1, or where one costs nothing, so that any number would fit.
    """
    each_bytes = sum(term.size_bytes for term in terms if not term.is_once)
    once = [term for term in terms if term.is_once]
    once_bytes = sum(term.size_bytes for term in once) if once else None
    limits = question.limits
    if question.memory_bytes is not None:
        limits = (memory_limit(question.memory_bytes, question.reserve_bytes), *limits)
    if limits:
        limits = how_many_fit(limits, each_bytes=each_bytes, once_bytes=once_bytes or 0, each_tasks=tasks)
    count = limits[0].count if limits else question.count
    if not limits and count < 1:
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
        model=question.model or Model.EXEC,
        terms=tuple(terms),
        points=tuple(Point(name, size_bytes, for_all(size_bytes), evidence) for name, size_bytes, evidence in moments),
        memory_bytes=question.memory_bytes,
        limits=limits,
    )
