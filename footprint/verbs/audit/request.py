"""What is asked of an audit, beside the target."""

import os
from collections.abc import Sequence

from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import UsageError
from footprint.members import NamedTuple
from footprint.model.projection import ONE, Model, Question
from footprint.series import USUAL_MOST
from footprint.sources.target import AnyTarget, Named
from footprint.system.files import StrPath


class HeapRequest(NamedTuple):
    """The profile that a heap is split by.

    Attributes:
        path: An allocator profile, of another run of the same program.
        at: Which moment of it, as `footprint.heap_profile` has it; None for its end.
        allocators: More functions that only hand memory on.
        binaries: Programs, with the libraries that they need, and libraries of the process, beside its own files.
        called: The name of the profile in reports; None for its path.
    """

    path: str
    at: str | None = None
    allocators: tuple[str, ...] = ()
    binaries: tuple[str, ...] = ()
    called: str | None = None


class AuditRequest(NamedTuple):
    """What is asked of an audit. The attributes are the arguments of `footprint.audit`, and five more.

    Attributes:
        has_quick_findings: Whether to search a process for what its ledger shows by itself, if for nothing else.
        doubtful_rules: The rules about variables whose doubtful findings are wanted, too.
        has_objects: Whether a live process is wanted with what each of its objects brings in, so that a later
            comparison can tell what came with what.
        has_start: Whether the objects have what the loader does for each at start.
        has_question: Whether the question was asked: a saved audit else keeps its own.
    """

    question: Question = ONE
    pid: int | None = None
    root: str | None = None
    page_bytes: int | None = None
    has_findings: bool = False
    has_quick_findings: bool = False
    has_page_maps: bool = False
    heap: HeapRequest | None = None
    debug: DebugSearch | None = STANDARD_PLACES
    is_reproducible: bool = False
    doubtful_rules: frozenset[str] = frozenset()
    has_objects: bool = False
    has_start: bool = False
    has_question: bool = False
    limit: str | None = None

    def with_limits_of(self, target: AnyTarget) -> "AuditRequest":
        """Return the request with the limits that more of the target would meet, if it asks how many fit."""
        if self.question.memory_bytes is None and self.limit is None:
            return self
        from footprint.sources.fit_limits import with_limits  # noqa: PLC0415 # few ask how many fit

        return self._replace(question=with_limits(self.question, target, self.limit))

    @property
    def series_moment(self) -> str | None:
        """The moment of a series whose cost N are projected from; None for the last one, if nobody asks for N."""
        return USUAL_MOST if self.has_question else None

    @property
    def options(self) -> list[str]:
        """The options of the command that ask for this, of those that do not go with every target."""
        given = {
            "-n": self.question.count != 1,
            "--pid": self.pid is not None,
            "--root": self.root is not None,
            "--page-size": self.page_bytes is not None,
            "--reproducible": self.is_reproducible,
            "--findings": self.has_findings,
            "--heap": self.heap is not None,
            "--model": self.has_question and self.question.model is not None,
            "--workers": self.question.worker_count is not None,
        }
        return [option for option, is_given in given.items() if is_given]

    def check_standard_input(self, target: Named) -> None:
        """Check that standard input is not both the target and the profile of its heap.

        Raises:
            UsageError: If it is.
        """
        if self.heap is not None and self.heap.path == target == "-":
            raise UsageError("standard input can be the process or the profile of its heap, not both")


def all_doubtful_rules(*, is_wanted: bool) -> frozenset[str]:
    """Return all rules about variables if their doubtful findings are wanted, else none."""
    if not is_wanted:
        return frozenset()
    from footprint.findings.registry import Fact, rule_names  # noqa: PLC0415 # few audits need their names

    return frozenset(rule_names(Fact.VARIABLES))


def request_of(
    count: int | None = None,
    memory_bytes: int | None = None,
    model: str | None = None,
    *,
    reserve_bytes: int = 0,
    limit: str | None = None,
    worker_count: int | None = None,
) -> AuditRequest:
    """Return the request for the cost of N, or for how many fit; without an argument, for one more started copy.

    Raises:
        UsageError: If there is no such model, or if how many is said twice.
    """
    is_fit = memory_bytes is not None or limit is not None
    if is_fit and count is not None:
        raise UsageError("say how many processes (-n), or how much memory they may take (--memory, --limit), not both")
    if reserve_bytes and not is_fit:
        raise UsageError("--reserve is a part of a memory: name the memory with --memory or --limit")
    has_question = is_fit or any(value is not None for value in (count, model, worker_count))
    if model is not None and model not in set(Model):
        raise UsageError(f"{model!r} is not a model: choose exec, fork or threads")
    # One process is what a started copy costs; how many more come about is seen at the process.
    default = None if has_question else Model.EXEC
    question = Question(
        1 if count is None else count,
        memory_bytes,
        Model(model) if model else default,
        reserve_bytes,
        worker_count=worker_count,
    )
    return AuditRequest(question, has_question=has_question, limit=limit)


def heap_request(
    path: StrPath | None, at: str | None, allocators: Sequence[str], binaries: Sequence[StrPath]
) -> HeapRequest | None:
    """Return the profile that the options of the command name; None if they name none.

    Raises:
        UsageError: If options for a profile are given without one.
    """
    if path is not None:
        return HeapRequest(os.fspath(path), at, tuple(allocators), tuple([os.fspath(binary) for binary in binaries]))
    if at is not None or allocators or binaries:
        raise UsageError("the moment, allocators and binaries need an allocator profile of the heap (--heap)")
    return None
