"""What is asked of an audit, beside the target."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from footprint.errors import UsageError
from footprint.files import StrPath
from footprint.model.projection import ONE, Model, Question
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.target import Named

__all__ = ("AuditRequest", "HeapRequest", "all_doubtful_rules", "heap_request", "question_of")


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
    """What is asked of an audit. The attributes are the arguments of `footprint.audit`, and three more.

    Attributes:
        doubtful_rules: The rules about variables whose doubtful findings are wanted, too.
        has_objects: Whether a live process is wanted with what each of its objects brings in, so that a later
            comparison can tell what came with what.
        has_question: Whether the question was asked: a saved audit else keeps its own.
    """

    question: Question = ONE
    pid: int | None = None
    root: str | None = None
    page_bytes: int | None = None
    has_findings: bool = False
    has_page_maps: bool = False
    heap: HeapRequest | None = None
    debug: DebugSearch | None = STANDARD_PLACES
    is_reproducible: bool = False
    doubtful_rules: frozenset[str] = frozenset()
    has_objects: bool = False
    has_question: bool = False

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


def question_of(count: int | None, memory_bytes: int | None, model: str | None) -> Question:
    """Return the question that the options of the command ask; None of a count is one process.

    Raises:
        UsageError: If there is no such model.
    """
    try:
        return Question(1 if count is None else count, memory_bytes, None if model is None else Model(model))
    except ValueError:
        raise UsageError(f"{model!r} is not a model: choose exec, fork or threads") from None


def heap_request(
    path: StrPath | None, at: str | None, allocators: Sequence[str], binaries: Sequence[StrPath]
) -> HeapRequest | None:
    """Return the profile that the options of the command name; None if they name none.

    Raises:
        UsageError: If options for a profile are given without one.
    """
    if path is not None:
        return HeapRequest(os.fspath(path), at, tuple(allocators), tuple([os.fspath(one) for one in binaries]))
    if at is not None or allocators or binaries:
        raise UsageError("the moment, allocators and binaries need an allocator profile of the heap (--heap)")
    return None
