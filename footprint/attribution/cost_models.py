"""What each of N pays and what all pay once, in each of the three models of `footprint.attribution.projection`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from footprint.attribution.kernel import KernelCost
from footprint.attribution.projection import project
from footprint.errors import UsageError
from footprint.model.evidence import Evidence
from footprint.model.projection import Basis, Model, Projection, Question, Term
from footprint.model.row import Row
from footprint.model.totals import Totals
from footprint.process import Status

__all__ = ("project_process",)

# Returns the kernel's cost of a process with a status and a number of mappings.
Costs = Callable[[Status, int], Sequence[KernelCost]]

# What a thread touches at its start where there is none to measure: its control block, and the top of its stack.
_ASSUMED_STACK_BYTES: Final = 12 * 1024
_MAPPINGS_A_THREAD: Final = 2  # the stack and its guard


def project_process(
    totals: Totals,
    ledger: Iterable[Row],
    kernel: Sequence[KernelCost],
    *,
    status: Status | None,
    mapping_count: int,
    costs: Costs,
    question: Question,
) -> Projection:
    """Project one process to many.

    Raises:
        UsageError: Where the model needs what the input does not contain.
    """
    model = question.model
    if model is Model.EXEC:
        return project(*_exec_terms(totals, kernel), question)
    if status is None or not kernel or totals.private.bytes is None:
        raise UsageError(f"the {model.value} model needs a live process: a text does not tell threads and page tables")
    if model is Model.THREADS:
        terms = _thread_terms(totals, ledger, status, costs, mapping_count)
        return project(terms, Basis.PER_PROCESS, question)
    terms, moments = _fork_terms(totals, kernel, status, costs, mapping_count)
    is_measured = any(name == "now" for name, _, _ in moments)
    return project(terms, Basis.PER_PROCESS if is_measured else Basis.REWRITTEN, question, moments)


def _each(name: str, size_bytes: int, evidence: Evidence) -> Term:
    return Term(name, size_bytes, is_once=False, evidence=evidence)


def _once(name: str, size_bytes: int, evidence: Evidence) -> Term:
    return Term(name, size_bytes, is_once=True, evidence=evidence)


def _exec_terms(totals: Totals, kernel: Sequence[KernelCost]) -> tuple[list[Term], Basis]:
    """Return the terms of started copies, from the best figure that the input contains."""
    private = totals.private
    if private.bytes is None:
        writable = _each("mapped writable memory", totals.mapped_writable.bytes or 0, totals.mapped_writable.evidence)
        return [writable], Basis.MAPPED_WRITABLE
    terms = [_each("private memory", private.bytes, private.evidence)]
    special = totals.of_which
    # A started copy has for itself what is COW-shared now. What KSM merged, it merges again.
    cow_shared_bytes = max(0, (totals.cow_shared.bytes or 0) - special.ksm_bytes)
    if cow_shared_bytes:
        terms.append(_each("memory shared with fork relatives", cow_shared_bytes, Evidence.ESTIMATED))
    if special.hugetlb_private_bytes:
        terms.append(_each("huge pages of the reserved pool", special.hugetlb_private_bytes, Evidence.MEASURED))
    has_more = len(terms) > 1
    if special.own_shared_bytes:
        terms.append(_each("shared memory of its own", special.own_shared_bytes, Evidence.DERIVED))
    terms.extend(_each(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in kernel)
    if totals.shared_once.bytes is not None:
        once_bytes = max(0, totals.shared_once.bytes - special.own_shared_bytes)
        terms.append(_once("files and shared memory", once_bytes, totals.shared_once.evidence))
    if has_more:
        return terms, Basis.STARTED_COPY
    return terms, Basis.PER_PROCESS if kernel else Basis.PRIVATE


def _fork_terms(
    totals: Totals, kernel: Sequence[KernelCost], status: Status, costs: Costs, mapping_count: int
) -> tuple[list[Term], tuple[tuple[str, int, Evidence], ...]]:
    """Return the terms of forked workers: this process is one of them, or the parent that will fork them."""
    private_bytes = totals.private.bytes or 0
    # Pages that KSM merged are not shared since a fork.
    cow_shared_bytes = max(0, (totals.cow_shared.bytes or 0) - totals.of_which.ksm_bytes)
    kernel_bytes = sum(cost.size_bytes for cost in kernel)
    single = costs(status._replace(thread_count=1), mapping_count)
    forked_bytes = sum(cost.size_bytes for cost in single)
    rewritten_bytes = private_bytes + cow_shared_bytes + forked_bytes
    is_worker = cow_shared_bytes > 0
    terms: list[Term] = []
    if is_worker:
        terms.append(_each("private memory of a worker", private_bytes, totals.private.evidence))
        terms.append(_once("memory shared with its relatives", cow_shared_bytes, totals.private.evidence))
        terms.extend(_each(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in kernel)
        terms.append(
            _once("the parent, taken to be like this worker", private_bytes + kernel_bytes, Evidence.ESTIMATED)
        )
    else:
        # No worker is forked yet. The upper bound is a worker that rewrites everything.
        terms.append(_each("everything rewritten", private_bytes, Evidence.ESTIMATED))
        terms.append(_once("the parent", private_bytes + kernel_bytes, Evidence.ESTIMATED))
        terms.extend(_each(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in single)
    terms.append(_once("files and shared memory", totals.shared_once.bytes or 0, totals.shared_once.evidence))
    moments = [("just forked", forked_bytes, Evidence.ESTIMATED)]
    if is_worker:
        moments.append(("now", private_bytes + kernel_bytes, Evidence.ESTIMATED))
    moments.append(("everything rewritten", rewritten_bytes, Evidence.ESTIMATED))
    return terms, tuple(moments)


def _thread_terms(
    totals: Totals, ledger: Iterable[Row], status: Status, costs: Costs, mapping_count: int
) -> list[Term]:
    """Return the terms of more threads: the average of what the present threads have touched."""
    threads = status.thread_count or 1
    others = threads - 1
    rows = list(ledger)
    stacks_bytes = sum(row.bytes or 0 for row in rows if row.owner == "[thread stacks]")
    arenas_bytes = sum(row.bytes or 0 for row in rows if row.owner == "[malloc arenas]")
    before = sum(cost.size_bytes for cost in costs(status, mapping_count))
    one_more = status._replace(thread_count=threads + 1)
    after = sum(cost.size_bytes for cost in costs(one_more, mapping_count + _MAPPINGS_A_THREAD))
    process_bytes = (totals.private.bytes or 0) + before
    terms = []
    if others and stacks_bytes:
        terms.append(_each("stack and thread-local memory touched", stacks_bytes // others, Evidence.DERIVED))
    else:
        terms.append(_each("stack and thread-local memory (assumed)", _ASSUMED_STACK_BYTES, Evidence.ESTIMATED))
    if others and arenas_bytes:
        terms.append(_each("malloc arenas", arenas_bytes // others, Evidence.ESTIMATED))
    terms.append(_each("kernel stack and objects of a thread", after - before, Evidence.ESTIMATED))
    terms.append(_once("the process as it is", process_bytes, totals.per_process.evidence))
    terms.append(_once("files and shared memory", totals.shared_once.bytes or 0, totals.shared_once.evidence))
    return terms
