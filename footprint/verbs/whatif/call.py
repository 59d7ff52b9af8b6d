"""`footprint.whatif`: a program run with some of its libraries and without them."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import AccessError, Note, UsageError
from footprint.loader.target import Environment
from footprint.model.audit import Audit
from footprint.model.projection import Question
from footprint.process.launch.moment import When
from footprint.process.launch.own_process import interrupted_by_signals
from footprint.process.start_measurement import measure_starts
from footprint.sources.programs import Programs
from footprint.system.limits import begin_activity
from footprint.text.command_line import shown_words
from footprint.verbs.run.call import LEAST_STARTS, PER_NEEDS_COST, check_command, parse_moment, program_file
from footprint.verbs.run.result import median_start, private_memory
from footprint.verbs.whatif.copies import private_copies
from footprint.verbs.whatif.dropping import plan_dropping
from footprint.verbs.whatif.result import Agreement, Compared, Leaving, Trial, WhatIf, changes, compare
from footprint.verbs.whatif.trials import try_start


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
        costs = measure_starts(tuple(variants.values()), max(starts, LEAST_STARTS)) if has_start_cost else (None, None)
        owners = {os.path.realpath(o.library.real_path): o.path for o in graph.objects} | copies.originals
    moment_name = when if when_output is None else When.OUTPUT.value
    of_trials = [[trial.start for trial in variant] for variant in trials.values()]
    medians = [median_start(words, moment_name, starts_of, private_memory) for starts_of in of_trials]
    before, after = [ran.with_start_cost(cost, starts_a_day) for ran, cost in zip(medians, costs, strict=True)]
    behaviour = compare(original, trials[True], trials[False])
    numbers = sorted(dropping.leaving)
    leaving = tuple([Leaving(graph.objects[number].path, graph.cost_bytes([number])) for number in numbers])
    notes += (*graph.notes, *_copy_notes(words[0], behaviour), *_still_loaded(after.audit, owners, leaving))
    notes += (*before.notes, *after.notes)
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
        raise AccessError("the working directory", error.strerror or str(error)) from error
    variables, caller = os.environ, (os.getuid(), os.getgid())
    return Environment(variables.get("LD_LIBRARY_PATH", ""), variables.get("LD_PRELOAD", ""), cwd, caller=caller)


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
