"""What each of N pays and what all pay once, in each of the three models of `footprint.attribution.cost_models`.

What N processes cost, or how many fit: arithmetic on what one costs, with every term shown.

There are three models. `exec`: N started copies, each with private memory of its own. `fork`: N workers of one parent,
which share with it the pages that none of them has written since. `threads`: N more threads in one process.
"""

from collections.abc import Callable, Sequence
from typing import Final

from footprint.attribution.kernel import KernelCost
from footprint.attribution.layout import ARENAS, THREAD_STACKS
from footprint.errors import UsageError
from footprint.members import NamedTuple
from footprint.model.projection import (
    FILES_TERM,
    Basis,
    FitLimit,
    LimitUnit,
    Model,
    Point,
    Projection,
    Question,
    Term,
    once_bytes,
)
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, Totals, rows_of_kind, weakest
from footprint.process.mappings import MEMORY_FILES
from footprint.process.status import Status


def how_many_fit(
    limits: Sequence[FitLimit],
    *,
    each_bytes: int,
    kept_bytes: int,
    cache_bytes: int,
    each_tasks: int,
    once_tasks: int = 0,
) -> tuple[FitLimit, ...]:
    """Compute how many fit into each limit, and return the limits in order: the one that is hit first comes first.

    Args:
        limits: The limits. Those on tasks are left out where it is unknown how many tasks one takes (0).
        each_bytes: What each costs.
        kept_bytes: What all pay once, and is kept in memory.
        cache_bytes: The page cache of their files.
        each_tasks: The threads of each.
        once_tasks: The threads that are there once.

    Raises:
        UsageError: If one costs nothing, so that any number would fit.
    """
    if each_bytes <= 0:
        raise UsageError("one more costs nothing by this input: any number fits")
    costs = {LimitUnit.BYTES: (each_bytes, kept_bytes, cache_bytes), LimitUnit.TASKS: (each_tasks, once_tasks, 0)}
    limits_met = []
    for limit in limits:
        unit_cost, kept, cache = costs[limit.unit]
        if unit_cost:
            counts = [max(0, (limit.most - limit.taken - once) // unit_cost) for once in (kept, kept + cache)]
            limits_met.append(limit._replace(each=unit_cost, count=counts[0], beside_cache_count=counts[1]))
    return tuple(sorted(limits_met, key=lambda limit: limit.count))


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
    once = [term.size_bytes for term in terms if term.is_once]
    limits = question.all_limits
    if limits:
        limits = how_many_fit(
            limits,
            each_bytes=each_bytes,
            kept_bytes=once_bytes(terms, is_page_cache=False),
            cache_bytes=once_bytes(terms, is_page_cache=True),
            each_tasks=tasks,
        )
    count = limits[0].count if limits else question.count
    if not limits and count < 1:
        raise UsageError(f"the number is {count}: it must be 1 or more")

    def for_all(size_bytes: int) -> int:
        return sum(once) + count * size_bytes if count else 0

    return Projection(
        count=count,
        per_process_bytes=each_bytes,
        shared_once_bytes=sum(once) if once else None,
        total_bytes=for_all(each_bytes),
        basis=basis,
        evidence=weakest(term.evidence for term in terms),
        model=question.model or Model.EXEC,
        terms=tuple(terms),
        points=tuple(Point(name, size_bytes, for_all(size_bytes), evidence) for name, size_bytes, evidence in moments),
        memory_bytes=question.memory_bytes,
        limits=limits,
    )


# Returns the kernel's cost of a process with a status and a number of mappings.
Costs = Callable[[Status | None, int], Sequence[KernelCost]]

# What a thread touches at its start where there is none to measure: its control block, and the top of its stack.
_ASSUMED_STACK_BYTES: Final = 12 * 1024
_ASSUMED_TABLE_BYTES: Final = 4 * 1024
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


def project_process(  # noqa: PLR0913 # keyword-only
    totals: Totals,
    ledger: Sequence[Row],
    kernel: Sequence[KernelCost],
    *,
    status: Status | None,
    mapping_count: int,
    costs: Costs,
    question: Question,
    parent: ForkParent | None = None,
    is_live: bool = False,
    thread_table_bytes: int | None = None,
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
        thread_table_bytes: The page tables of the stacks and arenas of its threads, for the threads model.

    Raises:
        UsageError: Where the model needs what the input does not contain.
    """
    reasons = parent.reasons if parent is not None and question.model is None else ()
    model = question.model or (Model.FORK if reasons else Model.EXEC)
    question = question._replace(model=model)
    tasks = (status.thread_count if status else None) or 0
    files = _files_terms(totals, ledger)
    if model is Model.EXEC:
        return project(*_exec_terms(totals, kernel, files), question, tasks=tasks)
    if status is None or not kernel or totals.private.bytes is None:
        raise UsageError(f"the {model.value} model needs a live process: a text does not show threads and page tables")
    if model is Model.THREADS:
        terms = _thread_terms(totals, ledger, kernel, status, costs, mapping_count, thread_table_bytes or 0)
        return project([*terms, *files], Basis.PER_PROCESS, question, tasks=1)
    if parent and files and (more_bytes := _files_bytes(parent.totals) - sum(file.size_bytes for file in files)) > 0:
        files[-1] = files[-1]._replace(size_bytes=files[-1].size_bytes + more_bytes)
    terms, moments = _fork_terms(totals, kernel, status, costs, mapping_count, parent, is_live=is_live)
    terms += files
    is_measured = any(name == "now" for name, _, _ in moments)
    basis = Basis.PER_PROCESS if is_measured else Basis.REWRITTEN
    return project(terms, basis, question, moments, tasks=tasks)._replace(reasons=reasons)


def _per_unit(name: str, size_bytes: int, evidence: Evidence) -> Term:
    return Term(name, size_bytes, is_once=False, evidence=evidence)


def _once(name: str, size_bytes: int, evidence: Evidence) -> Term:
    return Term(name, size_bytes, is_once=True, evidence=evidence)


def _exec_terms(totals: Totals, kernel: Sequence[KernelCost], files: Sequence[Term]) -> tuple[list[Term], Basis]:
    """Return the terms of started copies, from the best figure that the input contains."""
    private = totals.private
    if private.bytes is None:
        writable = _per_unit(
            "mapped writable memory", totals.mapped_writable.bytes or 0, totals.mapped_writable.evidence
        )
        return [writable], Basis.MAPPED_WRITABLE
    terms = [_per_unit("private memory", private.bytes, private.evidence)]
    special = totals.of_which
    # A started copy has for itself what is COW-shared now. What KSM merged, it merges again.
    cow_shared_bytes = max(0, (totals.cow_shared.bytes or 0) - special.ksm_bytes)
    if cow_shared_bytes:
        terms.append(_per_unit("memory shared with fork relatives", cow_shared_bytes, Evidence.ESTIMATED))
    if special.hugetlb_private_bytes:
        terms.append(_per_unit("huge pages of the reserved pool", special.hugetlb_private_bytes, Evidence.MEASURED))
    has_more = len(terms) > 1
    if special.own_shared_bytes:
        terms.append(_per_unit("shared memory of its own", special.own_shared_bytes, Evidence.DERIVED))
    terms.extend(_per_unit(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in kernel)
    terms += files
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
    single = costs(status._replace(thread_count=1), mapping_count)
    forked_bytes = sum(cost.size_bytes for cost in single)
    is_worker = cow_shared_bytes > 0 and (parent is not None or not is_live)
    anonymous_bytes = private_bytes + cow_shared_bytes
    terms: list[Term] = []
    if is_worker:
        terms.append(_per_unit("private memory of a worker", private_bytes, totals.private.evidence))
        if own_shared_bytes:
            terms.append(_per_unit("shared memory of its own", own_shared_bytes, Evidence.DERIVED))
        terms.extend(_per_unit(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in kernel)
        terms.extend(_parent_terms(totals, kernel_bytes, parent))
    else:
        # No worker is forked yet. The upper bound is a worker that rewrites everything.
        terms.append(_per_unit("everything rewritten", anonymous_bytes, Evidence.ESTIMATED))
        terms.append(_once("the parent", anonymous_bytes + own_shared_bytes + kernel_bytes, Evidence.ESTIMATED))
        terms.extend(_per_unit(cost.name.strip("[]"), cost.size_bytes, cost.evidence) for cost in single)
    moments = [("just forked", forked_bytes, Evidence.ESTIMATED)]
    if is_worker:
        moments.append(("now", private_bytes + own_shared_bytes + kernel_bytes, Evidence.ESTIMATED))
    moments.append(("everything rewritten", anonymous_bytes + forked_bytes, Evidence.ESTIMATED))
    return terms, tuple(moments)


def _files_terms(totals: Totals, ledger: Sequence[Row]) -> list[Term]:
    """Return what all map and pay once: memory that others have made and keep, and files, the last; none if unknown."""
    if totals.shared_once.bytes is None:
        return []
    memory_bytes = sum(
        row.shared_bytes or 0
        for row in rows_of_kind(ledger, MemoryKind.SHARED)
        if row.owner.startswith(("[shared anonymous]", *MEMORY_FILES))
    )
    kept_bytes = min(max(0, memory_bytes - totals.of_which.own_shared_bytes), _files_bytes(totals))
    evidence = totals.shared_once.evidence
    files = _once(FILES_TERM, _files_bytes(totals) - kept_bytes, evidence)._replace(is_page_cache=True)
    return [_once("shared memory of others", kept_bytes, evidence), files] if kept_bytes else [files]


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
    totals: Totals,
    ledger: Sequence[Row],
    kernel: Sequence[KernelCost],
    status: Status,
    costs: Costs,
    mapping_count: int,
    table_bytes: int,
) -> list[Term]:
    """Return the terms of more threads: the average of what the present threads have touched."""
    threads = status.thread_count or 1
    others = threads - 1
    rows = list(ledger)
    # Of the first thread, too.
    variables_bytes = sum(row.bytes or 0 for row in rows if row.attribution is Attribution.THREAD_VECTOR) // threads
    stacks = [row for row in rows if row.owner == THREAD_STACKS]
    # Those of threads that have ended are kept for others; of them nothing but their shape is known.
    stacks = [row for row in stacks if row.attribution is Attribution.STACK_POINTER] or stacks
    stacks_bytes = sum(row.bytes or 0 for row in stacks)
    arenas_bytes = sum(row.bytes or 0 for row in rows if row.owner == ARENAS)
    before = sum(cost.size_bytes for cost in costs(status, mapping_count))
    one_more = status._replace(thread_count=threads + 1)
    after = sum(cost.size_bytes for cost in costs(one_more, mapping_count + _MAPPINGS_A_THREAD))
    terms = []
    if others and stacks_bytes:
        terms.append(
            _per_unit(
                "stack and thread-local memory touched", stacks_bytes // others + variables_bytes, Evidence.DERIVED
            )
        )
    else:
        terms.append(_per_unit("stack and thread-local memory (assumed)", _ASSUMED_STACK_BYTES, Evidence.ESTIMATED))
    if others and arenas_bytes:
        terms.append(_per_unit("malloc arenas", arenas_bytes // others, Evidence.ESTIMATED))
    # The stack of one more thread, and where others have arenas its arena, lie in page tables of their own.
    table = ("page tables of a thread", table_bytes // others, Evidence.DERIVED) if others and table_bytes else None
    terms.append(_per_unit(*(table or ("page tables of a thread (assumed)", _ASSUMED_TABLE_BYTES, Evidence.ESTIMATED))))
    terms.append(_per_unit("kernel stack and objects of a thread", after - before, Evidence.ESTIMATED))
    process_bytes = (totals.private.bytes or 0) + totals.of_which.own_shared_bytes
    process_bytes += sum(cost.size_bytes for cost in kernel)
    terms.append(_once("the process as it is", process_bytes, totals.per_process.evidence))
    return terms
