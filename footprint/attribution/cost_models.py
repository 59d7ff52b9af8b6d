"""What each of N pays and what all pay once, in each of the three models of `footprint.attribution.projection`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from footprint.attribution.kernel import KernelCost
from footprint.attribution.projection import project
from footprint.errors import UsageError
from footprint.model.evidence import Evidence
from footprint.model.projection import FILES_TERM, Basis, Model, Projection, Question, Term
from footprint.model.row import Attribution, Row
from footprint.model.totals import Totals
from footprint.process import Status

__all__ = ("ForkParent", "project_process")

# Returns the kernel's cost of a process with a status and a number of mappings.
Costs = Callable[[Status, int], Sequence[KernelCost]]

# What a thread touches at its start where there is none to measure: its control block, and the top of its stack.
_ASSUMED_STACK_BYTES: Final = 12 * 1024
_MAPPINGS_A_THREAD: Final = 2  # the stack and its guard


class ForkParent(NamedTuple):
    """The process from which the audited one was forked.

    Attributes:
        pid: Its PID.
        totals: Its figures, read at about the same time.
        reasons: What shows that the audited process is a fork of it.
    """

    pid: int
    totals: Totals
    reasons: tuple[str, ...]


def project_process(  # noqa: PLR0913 # all but the first three have their name
    totals: Totals,
    ledger: Iterable[Row],
    kernel: Sequence[KernelCost],
    *,
    status: Status | None,
    mapping_count: int,
    costs: Costs,
    question: Question,
    parent: ForkParent | None = None,
    is_live: bool = False,
) -> Projection:
    """Project one process to many. Without a model, the process is one of many workers where its parent is known.

    Args:
        totals: The figures of the process.
        ledger: Its rows.
        kernel: What the kernel spends on it.
        status: Its threads and page tables.
        mapping_count: How many mappings it has.
        costs: Computes what the kernel spends on one like it.
        question: How many, in which model.
        parent: The process that it was forked from, where that was read.
        is_live: Whether it was read from /proc: then a worker without a parent has none.

    Raises:
        UsageError: Where the model needs what the input does not contain.
    """
    reasons = parent.reasons if parent is not None and question.model is None else ()
    model = question.model or (Model.FORK if reasons else Model.EXEC)
    question = question._replace(model=model)
    tasks = (status.thread_count if status else None) or 0
    if model is Model.EXEC:
        return project(*_exec_terms(totals, kernel), question, tasks=tasks)
    if status is None or not kernel or totals.private.bytes is None:
        raise UsageError(f"the {model.value} model needs a live process: a text does not tell threads and page tables")
    if model is Model.THREADS:
        terms = _thread_terms(totals, ledger, status, costs, mapping_count)
        return project(terms, Basis.PER_PROCESS, question, tasks=1)
    terms, moments = _fork_terms(totals, kernel, status, costs, mapping_count, parent, is_live=is_live)
    is_measured = any(name == "now" for name, _, _ in moments)
    basis = Basis.PER_PROCESS if is_measured else Basis.REWRITTEN
    return project(terms, basis, question, moments, tasks=tasks)._replace(reasons=reasons)


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
        terms.append(_once(FILES_TERM, _files_bytes(totals), totals.shared_once.evidence))
    if has_more:
        return terms, Basis.STARTED_COPY
    return terms, Basis.PER_PROCESS if kernel else Basis.PRIVATE


def _fork_terms(
    totals: Totals,
    kernel: Sequence[KernelCost],
    status: Status,
    costs: Costs,
    mapping_count: int,
    parent: ForkParent | None,
    *,
    is_live: bool,
) -> tuple[list[Term], tuple[tuple[str, int, Evidence], ...]]:
    """Return the terms of forked workers: this process is one of them, or the parent that will fork them."""
    private_bytes = totals.private.bytes or 0
    cow_shared_bytes = _since_fork_bytes(totals)
    kernel_bytes = sum(cost.size_bytes for cost in kernel)
    own_shared_bytes = totals.of_which.own_shared_bytes
    files_bytes = max(_files_bytes(totals), _files_bytes(parent.totals) if parent else 0)
    single = costs(status._replace(thread_count=1), mapping_count)
    forked_bytes = sum(cost.size_bytes for cost in single)
    is_worker = cow_shared_bytes > 0 and (parent is not None or not is_live)
    anonymous_bytes = private_bytes + cow_shared_bytes
    terms: list[Term] = []
    if is_worker:
        terms.append(_each("private memory of a worker", private_bytes, totals.private.evidence))
        if own_shared_bytes:
            terms.append(_each("shared memory of its own", own_shared_bytes, Evidence.DERIVED))
        terms.extend(_each(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in kernel)
        terms.extend(_parent_terms(totals, kernel_bytes, parent))
    else:
        # No worker is forked yet. The upper bound is a worker that rewrites everything.
        terms.append(_each("everything rewritten", anonymous_bytes, Evidence.ESTIMATED))
        terms.append(_once("the parent", anonymous_bytes + own_shared_bytes + kernel_bytes, Evidence.ESTIMATED))
        terms.extend(_each(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in single)
    terms.append(_once(FILES_TERM, files_bytes, totals.shared_once.evidence))
    moments = [("just forked", forked_bytes, Evidence.ESTIMATED)]
    if is_worker:
        moments.append(("now", private_bytes + own_shared_bytes + kernel_bytes, Evidence.ESTIMATED))
    moments.append(("everything rewritten", anonymous_bytes + forked_bytes, Evidence.ESTIMATED))
    return terms, tuple(moments)


def _files_bytes(totals: Totals) -> int:
    """Return the resident pages of files and of shared memory that the process did not make for itself."""
    return max(0, (totals.shared_once.bytes or 0) - totals.of_which.own_shared_bytes)


def _since_fork_bytes(totals: Totals) -> int:
    """Return the anonymous memory that is shared since a fork, without the pages that KSM merged."""
    return max(0, (totals.cow_shared.bytes or 0) - totals.of_which.ksm_bytes)


def _parent_terms(totals: Totals, kernel_bytes: int, parent: ForkParent | None) -> list[Term]:
    """Return what the parent costs, and what all workers have from it."""
    cow_shared_bytes = _since_fork_bytes(totals)
    if parent is None:
        # From a text nobody can tell what the parent has for itself.
        alone_bytes = (totals.private.bytes or 0) + kernel_bytes
        return [
            _once("memory shared with its relatives", cow_shared_bytes, totals.private.evidence),
            _once("the parent, taken to be like this worker", alone_bytes, Evidence.ESTIMATED),
        ]
    # Some of what the parent shares this worker has rewritten, and some of what the worker shares the parent has.
    shared_bytes = max(cow_shared_bytes, _since_fork_bytes(parent.totals))
    alone_bytes = (parent.totals.private.bytes or 0) + parent.totals.of_which.own_shared_bytes
    return [
        _once("memory shared since the fork", shared_bytes, Evidence.DERIVED),
        _once(f"the parent {parent.pid}", alone_bytes, parent.totals.private.evidence),
        _once("kernel memory of the parent", parent.totals.kernel.bytes or 0, parent.totals.kernel.evidence),
    ]


def _thread_terms(
    totals: Totals, ledger: Iterable[Row], status: Status, costs: Costs, mapping_count: int
) -> list[Term]:
    """Return the terms of more threads: the average of what the present threads have touched."""
    threads = status.thread_count or 1
    others = threads - 1
    rows = list(ledger)
    # Of the first thread, too.
    variables_bytes = sum(row.bytes or 0 for row in rows if row.attribution is Attribution.THREAD_VECTOR) // threads
    stacks_bytes = sum(row.bytes or 0 for row in rows if row.owner == "[thread stacks]")
    arenas_bytes = sum(row.bytes or 0 for row in rows if row.owner == "[malloc arenas]")
    before = sum(cost.size_bytes for cost in costs(status, mapping_count))
    one_more = status._replace(thread_count=threads + 1)
    after = sum(cost.size_bytes for cost in costs(one_more, mapping_count + _MAPPINGS_A_THREAD))
    process_bytes = (totals.private.bytes or 0) + before
    terms = []
    if others and stacks_bytes:
        terms.append(
            _each("stack and thread-local memory touched", stacks_bytes // others + variables_bytes, Evidence.DERIVED)
        )
    else:
        terms.append(_each("stack and thread-local memory (assumed)", _ASSUMED_STACK_BYTES, Evidence.ESTIMATED))
    if others and arenas_bytes:
        terms.append(_each("malloc arenas", arenas_bytes // others, Evidence.ESTIMATED))
    terms.append(_each("kernel stack and objects of a thread", after - before, Evidence.ESTIMATED))
    terms.append(_once("the process as it is", process_bytes, totals.per_process.evidence))
    terms.append(_once(FILES_TERM, totals.shared_once.bytes or 0, totals.shared_once.evidence))
    return terms
