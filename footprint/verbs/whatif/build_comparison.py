"""A program and another build of it: two variants, run in turn and compared."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from footprint.errors import Note
from footprint.model.audit import ONE_START
from footprint.model.run_failure import RunFailure
from footprint.release.compare import Comparison, OwnerChange, compare
from footprint.verbs.run.result import Expected, RunResult, median_start, private_memory
from footprint.verbs.whatif.result import Trial, TwoVariants
from footprint.verbs.whatif.result import compare as compare_behaviour


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
    comparison = compare(ran.audit, other.audit, count, *spreads)
    own_notes = [note for trial in (ran, other) for note in trial.notes if note not in trial.audit.notes]
    return BuildComparison(
        command=command,
        build=build,
        before=ran,
        after=other,
        comparison=comparison,
        behaviour=compare_behaviour(original, before, after),
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
