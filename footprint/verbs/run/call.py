"""`footprint.run`: a program started, taken at a moment, ended, and audited."""

import math
import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from footprint.elf.notes import STANDARD_PLACES
from footprint.errors import AccessError, InputError, Note, UsageError, cause_of
from footprint.json.codec import like
from footprint.model.audit import Audit
from footprint.model.costs import StartMeasurement
from footprint.model.over_time import Peak, RunFailureKind
from footprint.model.projection import Question
from footprint.process.held_program import measure_starts
from footprint.process.launch import launch
from footprint.process.launch.moment import Ending, Moment, Streams, When
from footprint.process.snapshot import Snapshot, read_process
from footprint.sources.files import ElfFiles
from footprint.text.command_line import shown_words
from footprint.text.units import format_bytes
from footprint.verbs.audit.process import audit_of
from footprint.verbs.audit.request import HeapRequest
from footprint.verbs.run.result import Expected, RunResult, Start, median_start

_MOST_SECONDS: Final = 1e7
_MOST_STARTS: Final = 1000
_MOST_EXIT_CODE: Final = 255
_LEAST_STARTS: Final = 11  # that are measured up to the entry point
PER_NEEDS_COST: Final = "starts a day (--per) go with what each costs: --start-cost"
# The parts of the peak at which a run is stopped, one after the other, until one is near the peak. Where the first
# passes unseen, the kernel holds the next one.
_PEAK_SHARES: Final = (0.98, 0.95, 0.9)
_NEAR_PEAK: Final = 0.9
_PEAK_BYTES: Final = 4 << 20  # from this size on, a note says what of the peak is not in the audit
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|min)")
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0}


def run(  # noqa: PLR0913 # keyword-only
    command: Sequence[str],
    *,
    when: str = "exit",
    when_output: str | None = None,
    starts: int = 1,
    count: int = 1,
    follow: bool = False,
    timeout_seconds: float = 60,
    has_massif: bool = False,
    massif_out: str | None = None,
    massif_seconds: float = 600,
    expect_exit: int = 0,
    allow: Sequence[str] = (),
    has_start_cost: bool = False,
    starts_a_day: int | None = None,
) -> RunResult:
    """Start a program, take it at a moment, end it, and audit it.

    What it prints goes to standard error. At its exit its memory is as the program left it, after any clearing up of
    its own. What still runs after the moment is ended, the whole session: SIGTERM, after 3 seconds SIGKILL.

    Args:
        command: The program and its arguments.
        when: `exit`; `settled`, when its private memory has kept still for a second; a time such as `2.5s`; or `peak`:
            it is run once more, and taken near the peak of the first run, with all processes that it has started then.
        when_output: Take it when a line of its output matches this regular expression instead.
        starts: How often to start it, one after the other; the audit is that of the median.
        count: How many processes to project to.
        follow: Whether to audit the processes that it has started, too.
        timeout_seconds: After how long it is taken anyway where it does not settle, no line matches, or no peak comes.
        has_massif: Run it once more under Valgrind's massif, and split its heap by who asked for it.
        massif_out: Where to keep the profile of that run; None for nowhere.
        massif_seconds: After how long that run is ended.
        expect_exit: The exit code of success.
        allow: Failures to accept: `signal`, `exit`, `moment`, `child`, `memory`. All others are in `run_failures` of
            the audit, and fail `check` and `record`.
        has_start_cost: Whether it is started more often, without arguments, to measure what that costs up to its entry
            point and up to main: as often as `starts` says, and at least 11 times.
        starts_a_day: How many starts a day there are, to say what they take of a processor.

    Raises:
        AccessError: Where it cannot be started, read, or caught at its exit, or there is no Valgrind to run it under.
        UsageError: Where the words are no command or no moment.
    """
    words = check_command(command, starts)
    if starts_a_day is not None and not has_start_cost:
        raise UsageError(PER_NEEDS_COST)
    is_at_peak = when == When.PEAK and when_output is None
    moment = parse_moment("exit" if is_at_peak else when, when_output, timeout_seconds)
    if is_at_peak and (has_massif or massif_out is not None):
        raise UsageError("massif finds the peak of the heap by itself: leave out --when peak")
    if has_massif and not (math.isfinite(massif_seconds) and 0 < massif_seconds <= _MOST_SECONDS):
        raise UsageError(f"{massif_seconds} is not a number of seconds to wait for")
    if has_massif:
        from footprint.verbs.run.massif import valgrind  # noqa: PLC0415 # few runs are under it

        # Before anything is run.
        valgrind()
    elif massif_out is not None:
        raise UsageError("only a run under massif has a profile to keep (--massif)")
    expected = parse_expected(expect_exit, allow)
    path = program_file(words[0]) if has_start_cost else ""
    if is_at_peak:
        ran = _run_to_peak(words, Question(count), starts, timeout_seconds, expected)
    else:
        done = (
            start(words, moment, Question(count), has_family=follow, has_peak=True, has_objects=True)
            for _ in range(starts)
        )
        name = when if when_output is None else When.OUTPUT.value
        ran = median_start(shown_words(words), name, done, expected=expected)
        ran = replace(ran, notes=(*ran.notes, *_peak_notes(ran)))
    if has_start_cost:
        (cost,), cost_notes = start_costs_of(words[0], (lambda: path,), starts)
        ran = replace(ran.with_start_cost(cost, starts_a_day), notes=(*ran.notes, *cost_notes))
    return _with_massif(ran, words, moment, massif_seconds, massif_out) if has_massif else ran


def start_costs_of(
    name: str, variants: Sequence[Callable[[], str]], starts: int
) -> tuple[tuple[StartMeasurement | None, ...], tuple[Note, ...]]:
    """Measure what the starts of programs cost; None for each where `starts` is 0.

    The programs have run by then, and their audits are made: where one cannot be held at its start, there is a note.
    """
    try:
        if starts:
            return measure_starts(variants, max(starts, _LEAST_STARTS)), ()
    except AccessError as error:
        note = Note("start-not-measured", name, f"what its starts cost is not known: {error.cause}")
        return (None,) * len(variants), (note,)
    return (None,) * len(variants), ()


def _peak_notes(ran: RunResult) -> list[Note]:
    """Return a note where most of the peak is not in the audit, unless the program itself has one."""
    explained_bytes = ran.start.explained_bytes
    if ran.peak is None or explained_bytes is None or any(note.slug == "freed-before-exit" for note in ran.notes):
        return []
    if ran.peak.peak_bytes - explained_bytes <= max(_PEAK_BYTES, explained_bytes // 10):
        return []
    sizes = f"{format_bytes(ran.peak.peak_bytes)} at the peak, {format_bytes(explained_bytes)} in the audit"
    detail = f"it and the processes that it started held {sizes}: the rest was freed before; --when peak explains it"
    return [Note("freed-before-exit", ran.command[0], detail)]


def program_file(name: str) -> str:
    """Return the absolute path of a program; a name without a slash is searched in PATH.

    Raises:
        AccessError: If there is none, or if it may not be executed.
        UsageError: If it is a script, or if the name is empty.
    """
    if not name:
        raise UsageError("say which program to run")
    path_found = shutil.which(name)
    if path_found is None:
        raise AccessError(name, _missing_cause(name))
    path = os.path.abspath(path_found)
    try:
        with open(path, "rb") as file:
            head = file.read(2)
    except OSError as error:
        raise AccessError(path, cause_of(error)) from error
    if head == b"#!":
        raise UsageError(f"{path} is a script: run the program in its first line, with the script as its argument")
    return path


def _missing_cause(name: str) -> str:
    """Return why a name is no program."""
    if not os.path.exists(name):
        return "there is no such program"
    if not os.path.isfile(name):
        return "it is not a file"
    return "it is not executable" if "/" in name else f"it is not in PATH: write ./{name}"


def parse_expected(exit_code: int, allow: Sequence[str]) -> Expected:
    """Read what counts as success.

    Raises:
        UsageError: Where it is no exit code, or a failure has another name.
    """
    if not 0 <= exit_code <= _MOST_EXIT_CODE:
        raise UsageError(f"{exit_code} is not an exit code: they are 0 to {_MOST_EXIT_CODE}")
    names = [kind.value for kind in RunFailureKind]
    unknown = [name for name in allow if name not in names]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a failure that can be allowed: {', '.join(names)}")
    return Expected(exit_code, frozenset(map(RunFailureKind, allow)))


def _run_to_peak(
    words: tuple[str, ...], question: Question, starts: int, timeout_seconds: float, expected: Expected
) -> RunResult:
    """Run a program to find its peak, and run it again to take it there."""
    input_offset = _input_offset()
    first = launch(words, Moment(When.TIME, timeout_seconds), len, has_family=True, has_peak=True)
    peak = first.peak
    if peak is None or not peak.peak_bytes:
        raise AccessError(words[0], "its memory cannot be counted")
    done = (_near_peak(words, first, peak, question, timeout_seconds, input_offset) for _ in range(starts))
    ran = median_start(shown_words(words), When.PEAK.value, done, expected=expected)
    if input_offset is None:
        detail = "standard input can be read once: only the first run had it; give it as a file"
        ran = replace(ran, notes=(*ran.notes, Note("peak-no-input", words[0], detail)))
    if first.when is When.TIME:
        detail = f"it still ran after {timeout_seconds:g} s: its peak is that of this time (--timeout)"
        ran = replace(ran, notes=(*ran.notes, Note("peak-cut-off", words[0], detail)))
    at_peak = replace(ran.start, audit=replace(ran.audit, peak_bytes=peak.peak_bytes))
    return replace(ran, start=at_peak, peaks=None, peak=peak)


def _input_offset() -> int | None:
    """Return where our standard input is read next; 0 for a terminal, None for a pipe, which can be read once."""
    try:
        if stat.S_ISREG(mode := os.fstat(0).st_mode):
            return os.lseek(0, 0, os.SEEK_CUR)
    except OSError:
        return 0
    return None if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else 0


def _near_peak(
    words: tuple[str, ...],
    first: Ending,
    peak: Peak,
    question: Question,
    timeout_seconds: float,
    input_offset: int | None,
) -> Start:
    """Start a program and take it near the peak of its first run.

    One that passes too quickly is held by the kernel at a lower mark. Version 1 of control groups refuses kernel memory
    to what it holds: what fails there, and did not in the first run, is left out.
    """
    best: Start | None = None
    for share in _PEAK_SHARES:
        is_held = share != _PEAK_SHARES[0]
        moment = Moment(When.PEAK, timeout_seconds, peak_bytes=int(share * peak.peak_bytes), is_held=is_held)
        with suppress(OSError):
            os.lseek(0, input_offset or 0, os.SEEK_SET)
        try:
            ran = start(words, moment, question, has_family=True, has_peak=True, has_objects=True)
        except AccessError:
            if is_held:
                continue
            raise
        has_own_end = (ran.exit_code, ran.signal) in {(None, None), (first.exit_code, first.signal)}
        if is_held and not (has_own_end and set(ran.crashes) <= set(first.crashes)):
            continue
        if best is None or ran.read_at_bytes > best.read_at_bytes:
            best = ran
        if best.moment is When.PEAK and best.read_at_bytes >= _NEAR_PEAK * peak.peak_bytes:
            return best
    if best is None:
        raise ValueError("no start was asked for")
    part = 100 * best.read_at_bytes / peak.peak_bytes
    detail = f"of {len(_PEAK_SHARES)} runs the best was stopped at {part:.0f} % of the peak of the first one"
    return replace(best, notes=(*best.notes, Note("peak-missed", words[0], detail)))


def _with_massif(
    ran: RunResult, words: tuple[str, ...], moment: Moment, limit_seconds: float, kept_as: str | None
) -> RunResult:
    """Run the program once more, and split the heap of the run that is shown by its profile."""
    from footprint.verbs.audit.heap_account import with_heap  # noqa: PLC0415 # profiles, which few runs have
    from footprint.verbs.run.massif import profiled_by_massif  # noqa: PLC0415 # the same

    with profiled_by_massif(words, moment, limit_seconds, kept_as) as profiled:
        named = kept_as or "massif's run of it"
        # It has ended: its files are those of these paths that are the same.
        snapshot = ran.start.snapshots[0]._replace(is_live=False)
        request = HeapRequest(profiled.path, at=profiled.at, called=named)
        joined = with_heap(ran.audit, request, snapshot=snapshot, debug=STANDARD_PLACES)
    # All but those of the profile are told already.
    added = [note for note in joined.notes if note not in ran.audit.notes]
    notes = tuple(dict.fromkeys((*ran.notes, *profiled.notes, *added)))
    return replace(ran, start=replace(ran.start, audit=joined), notes=notes)


def check_command(command: Sequence[str], starts: int) -> tuple[str, ...]:
    """Return the words of a command, and check that it can be started so often.

    Raises:
        UsageError: Where it is no list of words, or the number is out of reason.
    """
    if isinstance(command, str):
        raise UsageError("pass the command as a list of words: no shell runs it")
    if not 1 <= starts <= _MOST_STARTS:
        raise UsageError(f"a program can be started 1 to {_MOST_STARTS} times, not {starts}")
    return tuple(command)


def parse_moment(when: str, when_output: str | None, timeout_seconds: float) -> Moment:
    """Read a moment: `exit`, `settled` or a time such as `2.5s`; or an expression to find in the output.

    Raises:
        UsageError: For anything else, and for both at once.
    """
    if not (math.isfinite(timeout_seconds) and 0 < timeout_seconds <= _MOST_SECONDS):
        raise UsageError(f"{timeout_seconds} is not a number of seconds to wait for")
    if when_output is not None:
        if when != When.EXIT:
            raise UsageError(f"choose one moment: {when}, or when it prints {when_output!r}")
        try:
            return Moment(When.OUTPUT, timeout_seconds, re.compile(os.fsencode(when_output)))
        except re.error as error:
            raise UsageError(f"{when_output!r} is not a regular expression: {error}") from error
    if when in {When.EXIT, When.SETTLED}:
        return Moment(When(when), timeout_seconds)
    duration = _DURATION.fullmatch(when)
    if duration is None:
        raise UsageError(f"{when!r} is not a moment: write exit, settled, or a time such as 2.5s, 500ms or 1min")
    seconds = float(duration.group(1)) * _UNIT_SECONDS[duration.group(2)]
    if seconds > _MOST_SECONDS:
        raise UsageError(f"{when!r} is too long to wait for")
    return Moment(When.TIME, seconds)


def start(
    words: tuple[str, ...],
    moment: Moment,
    question: Question,
    *,
    has_family: bool = False,
    executable: str | None = None,
    streams: Streams | None = None,
    has_peak: bool = False,
    has_objects: bool = False,
) -> Start:
    """Start a program once, take it at a moment, end it, and audit it; the arguments are those of `launch`.

    With `has_objects`, what the objects of each process bring in is part of its audit.
    """
    if has_objects:
        from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader
    name = shlex.join(shown_words(words))
    notes: list[Note] = []

    def read(tasks: tuple[int, ...]) -> list[tuple[Snapshot, Audit]]:
        members = []
        files = ElfFiles()
        for index, task in enumerate(tasks):
            try:
                # Its files are opened here too: while it is held, there is a way to each.
                snapshot = read_process(task)
                called = name if index == 0 else str(task)
                audit = audit_of(snapshot, called, question, files=files, has_heap=True)
                members.append((snapshot, with_objects(audit, snapshot, files) if has_objects else audit))
            except (AccessError, InputError) as error:
                if index == 0:
                    raise
                notes.append(Note("process-not-read", f"pid {task}", f"{error.detail}; it is left out"))
        return members

    taken = launch(
        words, moment, read, has_family=has_family, executable=executable, streams=streams, has_peak=has_peak
    )
    members = taken.answer
    if taken.when is When.PEAK:
        members = sorted(members, key=lambda member: -(member[1].totals.per_process.bytes or 0))
    (_, main), *others = members
    return like(
        Start,
        taken,
        audit=main,
        children=tuple(audit for _, audit in others),
        snapshots=tuple(snapshot for snapshot, _ in members),
        moment=taken.when,
        wanted_moment=moment.when,
        notes=(*taken.notes, *notes),
    )
