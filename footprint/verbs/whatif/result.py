"""Two variants of a program, run in turn and compared: with and without some libraries, or another build of it."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from typing import Final, NamedTuple

from footprint.errors import Note
from footprint.members import Signed, json_members
from footprint.model.audit import ONE_START, Audit
from footprint.model.costs import Spread
from footprint.model.over_time import RunFailure
from footprint.model.row import MemoryKind
from footprint.release.compare import Comparison, OwnerChange
from footprint.release.compare import compare as compare_audits
from footprint.verbs.run.result import Expected, RunResult, Start, median_start, private_memory

_MOST_SHOWN_BYTES: Final = 200


class Output(NamedTuple):
    """What a program printed to one stream.

    Attributes:
        head: Its beginning.
        size_bytes: How much it was.
        digest: A hash of all of it.
    """

    head: bytes
    size_bytes: int
    digest: bytes


class Trial(NamedTuple):
    """One start of a variant, and what it printed."""

    start: Start
    output: Output
    errors: Output

    @property
    def ending(self) -> str:
        """Return how it ended."""
        start = self.start
        if start.signal is not None:
            return start.signal
        return "ended by footprint" if start.exit_code is None else f"exit code {start.exit_code}"

    @property
    def seen(self) -> dict[str, Output | str]:
        """Return all that a user sees of it, by name."""
        return {"stdout": self.output, "stderr": self.errors, "ending": self.ending}


class Agreement(StrEnum):
    """How two variants of a program compare; `varying` if the starts of one variant differ from each other."""

    EQUAL = "equal"
    DIFFERENT = "different"
    VARYING = "varying"


class Compared(NamedTuple):
    """One thing that a user sees of two variants of a program: with some libraries and without, or of two builds.

    Attributes:
        name: `stdout`, `stderr` or `ending`.
        verdict: How it compares.
        is_as_original: Whether the first variant shows what the program itself did at a start before: a copy with all
            libraries, or the program started again.
        size_bytes: How much the first variant printed; None for the ending.
        line: The number of the first line that differs, where one does.
        before: What it is of the first variant: how the program ended, or that line; None where there is none.
        after: The same of the second one.
    """

    name: str
    verdict: Agreement
    is_as_original: bool
    size_bytes: int | None
    line: int | None
    before: str | None
    after: str | None


class Leaving(NamedTuple):
    """An object that leaves the process.

    Attributes:
        path: Its path.
        predicted_bytes: Its startup minimum: pages that are surely written at start.
    """

    path: str
    predicted_bytes: int


@json_members("owner saved_bytes before_bytes after_bytes predicted_bytes")
class OwnerSaving(NamedTuple):
    """An owner whose private memory differs between the median starts.

    Attributes:
        owner: The object, or a name in brackets.
        before_bytes: Its private memory with the libraries.
        after_bytes: Its private memory without them.
        predicted_bytes: The prediction for an object that leaves; else null.
    """

    owner: str
    before_bytes: int
    after_bytes: int
    predicted_bytes: int | None

    @property
    def saved_bytes(self) -> Signed:
        """What is saved of its private memory; negative where it takes more."""
        return self.before_bytes - self.after_bytes


class Saving(NamedTuple):
    """A figure of the median starts, with the libraries and without, and the range of the difference.

    Attributes:
        before_bytes: With the libraries, or of the first build.
        after_bytes: Without, or of the second build.
        least_bytes: The smallest difference between a start before and a start after.
        most_bytes: The largest such difference.
    """

    before_bytes: int
    after_bytes: int
    least_bytes: int
    most_bytes: int

    @property
    def bytes(self) -> int:
        """Return what is saved."""
        return self.before_bytes - self.after_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoVariants:
    """Two variants of a program, run in turn with the same arguments.

    Attributes:
        command: The program and its arguments.
        before: The starts of the first variant.
        after: The starts of the second one.
        behaviour: What a user sees of both.
        notes: What was odd.
    """

    command: tuple[str, ...]
    before: RunResult
    after: RunResult
    behaviour: tuple[Compared, ...]
    notes: tuple[Note, ...]

    @property
    def private(self) -> Saving | None:
        """Private memory; None where it is not known."""
        totals = self.before.audit.totals, self.after.audit.totals
        return _saving(totals[0].private.bytes, totals[1].private.bytes, self.before.private, self.after.private)

    @property
    def per_process(self) -> Saving | None:
        """The cost of one process; None where it is not known."""
        before, after = self.before, self.after
        costs = before.audit.totals.per_process.bytes, after.audit.totals.per_process.bytes
        return _saving(*costs, before.per_process, after.per_process)

    @property
    def is_alike(self) -> bool:
        """Return whether no difference was seen that a user would notice."""
        return is_alike(self.behaviour)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf(TwoVariants):
    """A program run with some libraries and without them: copies of it, the same but for these.

    Attributes:
        dropped: The libraries, by the names they were needed by.
        users: The objects whose need of them was dropped.
        leaving: What leaves.
        thread_local_bytes: The thread-local variables of what leaves, in all threads of the median start.
        original: One start of the program itself, of which all else are copies.
        changes: Whose private memory differs between the median starts, the largest saving first; it adds up.
        doubts: What may go wrong elsewhere.
        count: How many processes to project to.
    """

    dropped: tuple[str, ...]
    users: tuple[str, ...]
    leaving: tuple[Leaving, ...]
    thread_local_bytes: int
    original: Start
    changes: tuple[OwnerSaving, ...]
    doubts: tuple[str, ...]
    count: int

    @property
    def predicted_bytes(self) -> int:
        """The bytes that are surely saved: what the leaving objects write at start, and at the start of each thread."""
        return sum([linked.predicted_bytes for linked in self.leaving]) + self.thread_local_bytes

    @property
    def kernel_bytes(self) -> int | None:
        """What the kernel saves of page tables and objects; None where that is not known."""
        if self.per_process is None or self.private is None:
            return None
        return self.per_process.bytes - self.private.bytes


def is_alike(behaviour: Iterable[Compared]) -> bool:
    """Return whether no difference was seen that a user would notice."""
    return all(part.verdict is not Agreement.DIFFERENT for part in behaviour)


def _saving(before: int | None, after: int | None, with_it: Spread | None, without: Spread | None) -> Saving | None:
    if before is None or after is None or with_it is None or without is None:
        return None
    return Saving(before, after, with_it.min - without.max, with_it.max - without.min)


def changes(
    before: Audit, after: Audit, owners: Mapping[str, str], leaving: Iterable[Leaving]
) -> tuple[OwnerSaving, ...]:
    """Find the owners whose private memory differs between two audits.

    Args:
        before: With the libraries.
        after: Without.
        owners: What to call an owner, where it is not as it is: copies by their originals.
        leaving: What leaves.
    """
    sizes = [_private_by_owner(audit, owners) for audit in (before, after)]
    predicted = {linked.path: linked.predicted_bytes for linked in leaving}
    savings = [
        OwnerSaving(owner, sizes[0].get(owner, 0), sizes[1].get(owner, 0), predicted.get(owner))
        for owner in {**sizes[0], **sizes[1], **predicted}
    ]
    differing = [s for s in savings if s.before_bytes != s.after_bytes or s.predicted_bytes is not None]
    return tuple(sorted(differing, key=lambda saving: (saving.after_bytes - saving.before_bytes, saving.owner)))


def _private_by_owner(audit: Audit, owners: Mapping[str, str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in audit.ledger:
        if row.kind is not MemoryKind.KERNEL:
            owner = owners.get(row.owner, row.owner)
            sums[owner] = sums.get(owner, 0) + (row.bytes or 0)
    return sums


def compare(original: Trial, before: Sequence[Trial], after: Sequence[Trial]) -> tuple[Compared, ...]:
    """Compare what a user sees of two variants.

    Args:
        original: A start of the program itself.
        before: The starts of a copy with all libraries, at least one.
        after: The starts of a copy without some.
    """
    return tuple(
        [
            _compared(name, first, [run_.seen[name] for run_ in before], [run_.seen[name] for run_ in after])
            for name, first in original.seen.items()
        ]
    )


def _compared(
    name: str, original: Output | str, before: Sequence[Output | str], after: Sequence[Output | str]
) -> Compared:
    usual, is_as_original = before[0], original == before[0]
    other = next((value for value in after if value != usual), usual)
    verdict = Agreement.DIFFERENT
    if other == usual and all(value == usual for value in before):
        verdict = Agreement.EQUAL
    elif not is_as_original or any(value != usual for value in before):
        verdict = Agreement.VARYING
    if isinstance(usual, str) or isinstance(other, str):
        return Compared(name, verdict, is_as_original, None, None, str(usual), str(other))
    where = _first_difference(usual.head, other.head) if verdict is Agreement.DIFFERENT else (None, None, None)
    return Compared(name, verdict, is_as_original, usual.size_bytes, *where)


def _first_difference(before: bytes, after: bytes) -> tuple[int | None, str | None, str | None]:
    """Return the number of the first line that differs, and both texts of it; None if it is beyond the heads."""
    pairs = zip_longest(before.splitlines(keepends=True), after.splitlines(keepends=True))
    for number, (line, other) in enumerate(pairs, start=1):
        if line != other:
            return number, _shown(line), _shown(other)
    return None, None, None


def _shown(line: bytes | None) -> str | None:
    if line is None:
        return None
    line = line.removesuffix(b"\n")
    return os.fsdecode(line if len(line) <= _MOST_SHOWN_BYTES else line[:_MOST_SHOWN_BYTES] + b"...")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildComparison(TwoVariants):
    """A program and another build of it, run with the same arguments.

    Attributes:
        build: The other build, as it was named.
        comparison: What differs between the median starts, by owner and symbol, and what is within the spread.
    """

    build: str
    comparison: Comparison

    @property
    def is_noise(self) -> bool | None:
        """Whether the starts of both overlap, so that the difference may be chance; None for one start of each."""
        total = self.comparison.total("per_process" if self.per_process else "private")
        return None if total is None else total.is_noise

    @property
    def sure_changes(self) -> tuple[OwnerChange, ...]:
        """The owners that differ by more than the starts of one build do."""
        return tuple([owner for owner in self.comparison.owners if owner.is_noise is False and owner.delta_bytes])

    @property
    def failures(self) -> tuple[tuple[RunFailure, ...], tuple[RunFailure, ...]]:
        """How starts of the program failed, and of the other build."""
        return self.before.audit.run_failures, self.after.audit.run_failures


def compare_trials(
    command: tuple[str, ...],
    build: str,
    when: str,
    original: Trial,
    before: Sequence[Trial],
    after: Sequence[Trial],
    *,
    count: int = 1,
    expected: Expected | None = None,
) -> BuildComparison:
    """Compare the starts of a program with those of another build of it.

    Args:
        command: The program and its arguments.
        build: The name of the other build.
        when: The moment that was asked for.
        original: A start of the program that is in no figure: what it shows anew each time says nothing of the build.
        before: The starts of the program, at least one.
        after: As many starts of the other build.
        count: How many processes to project to.
        expected: What counts as success.
    """
    ran, other = (
        median_start(command, when, [trial.start for trial in trials], private_memory, expected)
        for trials in (before, after)
    )
    other = _called(other, build)
    spreads = (ran.spreads, other.spreads) if len(before) > 1 else (ONE_START, ONE_START)
    comparison = compare_audits(ran.audit, other.audit, count, *spreads)
    own_notes = [note for trial in (ran, other) for note in trial.notes if note not in trial.audit.notes]
    return BuildComparison(
        command=command,
        build=build,
        before=ran,
        after=other,
        comparison=comparison,
        behaviour=compare(original, before, after),
        notes=tuple(dict.fromkeys((*comparison.notes, *own_notes))),
    )


def _called(ran: RunResult, build: str) -> RunResult:
    """Return the starts of the other build under its own name: they were made under the name of the program."""
    name, target = ran.command[0], shlex.join((build, *ran.command[1:]))

    def renamed(notes: Sequence[Note]) -> tuple[Note, ...]:
        subjects = {name: build, ran.audit.target: target}
        return tuple([note._replace(subject=subjects.get(note.subject, note.subject)) for note in notes])

    audit = replace(ran.audit, target=target, notes=renamed(ran.audit.notes))
    return replace(ran, start=replace(ran.start, audit=audit), notes=renamed(ran.notes))
