"""`footprint.whatif` and `compare_builds`: a program run in turn without some libraries, or as another build."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.image import read_image
from footprint.errors import AccessError, Note, UsageError, cause_of
from footprint.loader.target import Environment
from footprint.model.audit import Audit
from footprint.model.projection import Question
from footprint.process.launch.moment import Moment, Streams, When, rereadable_input
from footprint.process.launch.own_process import interrupted_by_signals
from footprint.sources.programs import Programs, environment_of
from footprint.system.files import open_input
from footprint.system.limits import begin_activity
from footprint.text.command_line import shown_words
from footprint.verbs.run.call import (
    PER_NEEDS_COST,
    check_command,
    parse_expected,
    parse_moment,
    program_file,
    start,
    start_costs_of,
)
from footprint.verbs.run.result import median_start, private_memory
from footprint.verbs.whatif.copies import plan_dropping, private_copies
from footprint.verbs.whatif.result import (
    Agreement,
    BuildComparison,
    Compared,
    Leaving,
    Output,
    Trial,
    WhatIf,
    changes,
    compare,
    compare_trials,
)


def whatif(  # noqa: PLR0913 # all but the command have their name
    command: Sequence[str],
    *,
    drop: Sequence[str],
    when: str = "exit",
    when_output: str | None = None,
    starts: int = 3,
    count: int = 1,
    force: bool = False,
    timeout_seconds: float = 60,
    has_start_cost: bool = False,
    starts_a_day: int | None = None,
) -> WhatIf:
    """Run a program with some of its libraries and without them, and measure what is really saved.

    A copy of the program is run, in which the NEEDED entries of these libraries are switched on and off in turn. The
    original is not changed, and nothing is left behind. The output of both is compared and not shown. They read
    standard input if it is a file, else nothing.

    Args:
        command: The program and its arguments.
        drop: The libraries: sonames, file names, or paths.
        when: The moment to read the program at, as for `run`.
        when_output: Read it when a line of its output matches this regular expression instead.
        starts: How often to start each of the two.
        count: How many processes to project to.
        force: Whether to try it although something is bound from a library.
        timeout_seconds: Read it after this time if it does not settle, or if no line matches.
        has_start_cost: Whether both are started more often, to measure what that costs up to the entry point and main.
        starts_a_day: How many starts a day there are, to say what they take of a processor.

    Raises:
        AccessError: If the program cannot be copied, started, read, or stopped at its exit.
        InputError: If it cannot be loaded.
        UsageError: If the command or the moment is not valid, or if a library cannot be dropped.
    """
    words = check_command(command, starts)
    if starts_a_day is not None and not has_start_cost:
        raise UsageError(PER_NEEDS_COST)
    if isinstance(drop, str) or not drop:
        raise UsageError("say which libraries to drop, as a list of names")
    moment = parse_moment(when, when_output, timeout_seconds)
    environment = _environment()
    graph = _graph(_program(words), environment)
    dropping = plan_dropping(graph, drop, is_forced=force)
    question = Question(count)
    # The copies are removed in any case, also after a signal.
    with interrupted_by_signals(), private_copies(graph, dropping, environment) as copies:
        notes = copies.check()
        original = try_start(words, moment, question, None)
        variants = {is_on: partial(copies.switched, is_on=is_on) for is_on in (True, False)}
        trials = _trials(variants, lambda program: try_start(words, moment, question, program), starts)
        costs, cost_notes = start_costs_of(words[0], tuple(variants.values()), starts if has_start_cost else 0)
        owners = {os.path.realpath(o.library.real_path): o.path for o in graph.objects} | copies.originals
    moment_name = when if when_output is None else When.OUTPUT.value
    of_trials = [[trial.start for trial in variant] for variant in trials.values()]
    medians = [median_start(words, moment_name, starts_of, private_memory) for starts_of in of_trials]
    before, after = [ran.with_start_cost(cost, starts_a_day) for ran, cost in zip(medians, costs, strict=True)]
    behaviour = compare(original, trials[True], trials[False])
    numbers = sorted(dropping.leaving)
    leaving = tuple([Leaving(graph.objects[number].path, graph.cost_bytes([number])) for number in numbers])
    notes += (*graph.notes, *_copy_notes(words[0], behaviour), *_still_loaded(after.audit, owners, leaving))
    notes += (*before.notes, *after.notes, *cost_notes)
    return WhatIf(
        command=shown_words(words),
        dropped=tuple([graph.name(number) for number in sorted(dropping.heads)]),
        users=tuple([graph.name(number) for number in sorted({need.user for need in dropping.needs})]),
        leaving=leaving,
        thread_local_bytes=graph.thread_bytes(dropping.leaving) * before.start.snapshots[0].thread_count,
        original=original.start,
        before=before,
        after=after,
        changes=changes(before.audit, after.audit, owners, leaving),
        behaviour=behaviour,
        doubts=dropping.doubts,
        count=count,
        notes=tuple(dict.fromkeys(notes)),
    )


def _trials(
    variants: Mapping[bool, Callable[[], str]], run: Callable[[str], Trial], start_count: int
) -> dict[bool, list[Trial]]:
    """Start the variants in turn."""
    trials: dict[bool, list[Trial]] = {is_on: [] for is_on in variants}
    for number in range(start_count):
        begin_activity(f"starts both variants: {number + 1} of {start_count}")
        for is_on, prepared in variants.items():
            trials[is_on].append(run(prepared()))
    return trials


def _environment() -> Environment:
    try:
        cwd = os.getcwd()
    except OSError as error:
        raise AccessError("the working directory", cause_of(error)) from error
    return environment_of(os.environ, cwd)


def _program(words: tuple[str, ...]) -> str:
    """Find the file of a program, and refuse one whose copy would run differently."""
    path = program_file(words[0] if words else "")
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID) or _has_capabilities(path):
        raise UsageError(
            f"{path} runs with privileges of its own (set-user-ID or the like), which a copy would not have"
        )
    return path


def _has_capabilities(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _graph(path: str, environment: Environment) -> DependencyGraph:
    graph = Programs(environment=environment).graph(path)
    if graph.link_map.missing:
        library = graph.link_map.missing[0]
        raise AccessError(path, f"it does not start: it needs {library.name}, and {library.cause}")
    for failure in graph.start_failures:
        if failure.slug == "does-not-start":
            raise AccessError(failure.subject, f"{path} does not start: {failure.detail}")
    return graph


def _still_loaded(after: Audit, owners: Mapping[str, str], leaving: Sequence[Leaving]) -> list[Note]:
    """Return notes on dropped libraries that the program loads all the same."""
    loaded = {owners.get(row.owner, row.owner) for row in after.ledger}
    detail = "it was loaded nevertheless: something opens it, or a library that needs it, at run time"
    return [Note("still-loaded", linked.path, detail) for linked in leaving if linked.path in loaded]


def _copy_notes(name: str, behaviour: Sequence[Compared]) -> list[Note]:
    """Return a note if a copy with all libraries behaves differently from the original: then it shows little."""
    names = [part.name for part in behaviour if not part.is_as_original and part.verdict is not Agreement.VARYING]
    if not names:
        return []
    detail = f"a copy with all its libraries already differs ({', '.join(names)}): the program depends on its place"
    return [Note("copy-differs", name, detail)]


def compare_builds(  # noqa: PLR0913 # keyword-only
    command: Sequence[str],
    build: str,
    *,
    when: str = "exit",
    when_output: str | None = None,
    starts: int = 3,
    count: int = 1,
    timeout_seconds: float = 60,
    expect_exit: int = 0,
    allow: Sequence[str] = (),
    has_start_cost: bool = False,
    starts_a_day: int | None = None,
) -> BuildComparison:
    """Run a program and another build of it in turn, and measure what the other one saves or costs.

    Both are started as they are, with the same words (the other build, too, gets the name of the program as argv[0]),
    the same environment, and the same standard input: a file, else nothing. The output of both is compared and not
    shown.

    Args:
        command: The program and its arguments.
        build: The other build: a path, or a name that is searched in PATH.
        when: The moment to read both at, as for `run`.
        when_output: Read each when a line of its output matches this regular expression instead.
        starts: How often to start each of the two.
        count: How many processes to project to.
        timeout_seconds: Read it after this time if it does not settle, or if no line matches.
        expect_exit: The exit code of success.
        allow: Failures to accept: `signal`, `exit`, `moment`.
        has_start_cost: Whether both are started more often, to measure what that costs up to the entry point and main.
        starts_a_day: How many starts a day there are, to say what they take of a processor.

    Raises:
        AccessError: If one of them cannot be started, read, or stopped at its exit.
        InputError: If one of them is not an ELF file.
        UsageError: If the command or the moment is not valid, or if one of them is a script.
    """
    words = check_command(command, starts)
    if starts_a_day is not None and not has_start_cost:
        raise UsageError(PER_NEEDS_COST)
    expected = parse_expected(expect_exit, allow)
    moment = parse_moment(when, when_output, timeout_seconds)
    question = Question(count)
    paths = [program_file(name) for name in (words[0] if words else "", build)]
    machines = [_machine(path) for path in paths]
    trials: list[list[Trial]] = [[], []]
    with interrupted_by_signals():
        # Only to see whether its output is steady.
        original = try_start(words, moment, question, paths[0])
        for start in range(starts):
            begin_activity(f"starts both builds: {start + 1} of {starts}")
            trials[0].append(try_start(words, moment, question, paths[0], has_objects=True))
            try:
                trials[1].append(try_start(words, moment, question, paths[1], has_objects=True))
            except AccessError as error:
                remark = "" if machines[0] == machines[1] else f"; it is for another machine than {words[0]}"
                raise AccessError(build, f"{error.cause}{remark}") from error
        variants = [partial(str, path) for path in paths]
        costs, cost_notes = start_costs_of(words[0], variants, starts if has_start_cost else 0)
    moment_name = when if when_output is None else When.OUTPUT.value
    compared = compare_trials(shown_words(words), build, moment_name, original, *trials, count=count, expected=expected)
    before, after = [
        ran.with_start_cost(cost, starts_a_day)
        for ran, cost in zip((compared.before, compared.after), costs, strict=True)
    ]
    return replace(compared, before=before, after=after, notes=(*compared.notes, *cost_notes))


def _machine(path: str) -> tuple[int, bool]:
    """Return the machine of an ELF file, and whether it is of 64 bits."""
    image = read_image(open_input(path), path, with_sections=False)
    return image.machine, image.is_64


_MOST_HEAD_BYTES: Final = 1 << 20


def try_start(
    words: tuple[str, ...],
    moment: Moment,
    question: Question,
    executable: str | None,
    *,
    has_objects: bool = False,
) -> Trial:
    """Start a program once and record what it prints; the arguments are those of `footprint.verbs.run.call.start`."""
    output, errors = _Recorder(), _Recorder()
    streams = Streams(rereadable_input(), output.record, errors.record)
    done = start(words, moment, question, executable=executable, streams=streams, has_objects=has_objects)
    return Trial(done, output.recorded(), errors.recorded())


class _Recorder:
    """Records what a program prints: the beginning, and a hash of all of it."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def record(self, piece: bytes) -> None:
        self._head += piece[: _MOST_HEAD_BYTES - len(self._head)]
        self._hash.update(piece)
        self._size_bytes += len(piece)

    def recorded(self) -> Output:
        return Output(bytes(self._head), self._size_bytes, self._hash.digest())
