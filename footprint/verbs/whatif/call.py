"""`footprint.whatif`: a program run with some of its libraries and without them."""

import os
import stat
from collections.abc import Mapping, Sequence

from footprint.activity import begin
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.command_line import shown_words
from footprint.errors import AccessError, Note, UsageError
from footprint.loader import Environment
from footprint.model.audit import Audit
from footprint.model.projection import Question
from footprint.process.launch import When, interrupted_by_signals
from footprint.sources.programs import Programs
from footprint.verbs.run.call import check_command, parse_moment
from footprint.verbs.run.result import median_start, private_memory
from footprint.verbs.whatif.copies import private_copies
from footprint.verbs.whatif.dropping import plan_dropping
from footprint.verbs.whatif.result import Agreement, Compared, Leaving, Trial, WhatIf, changes, compare
from footprint.verbs.whatif.trials import program_file, try_start

__all__ = ("whatif",)


def whatif(
    command: Sequence[str],
    *,
    drop: Sequence[str],
    when: str = "exit",
    when_output: str | None = None,
    starts: int = 3,
    count: int = 1,
    force: bool = False,
    timeout_seconds: float = 60,
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

    Raises:
        AccessError: If the program cannot be copied, started, read, or stopped at its exit.
        InputError: If it cannot be loaded.
        UsageError: If the command or the moment is not valid, or if a library cannot be dropped.
    """
    words = check_command(command, starts)
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
        trials: dict[bool, list[Trial]] = {True: [], False: []}
        for start in range(starts):
            begin(f"starts both variants: {start + 1} of {starts}")
            for is_on, found in trials.items():
                copies.switch(is_on=is_on)
                found.append(try_start(words, moment, question, copies.program))
        owners = {os.path.realpath(one.library.real_path): one.path for one in graph.objects} | copies.originals
    asked = when if when_output is None else When.OUTPUT.value
    before, after = [
        median_start(words, asked, [one.start for one in found], private_memory) for found in trials.values()
    ]
    behaviour = compare(original, trials[True], trials[False])
    leaving = tuple(
        [Leaving(graph.objects[number].path, graph.cost_bytes([number])) for number in sorted(dropping.leaving)]
    )
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


def _environment() -> Environment:
    try:
        cwd = os.getcwd()
    except OSError as error:
        raise AccessError("the working directory", error.strerror or str(error)) from error
    return Environment(os.environ.get("LD_LIBRARY_PATH", ""), os.environ.get("LD_PRELOAD", ""), cwd)


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
        one = graph.link_map.missing[0]
        raise AccessError(path, f"it does not start: it needs {one.name}, and {one.cause}")
    for failure in graph.start_failures:
        if failure.slug == "does-not-start":
            raise AccessError(failure.subject, f"{path} does not start: {failure.detail}")
    return graph


def _still_loaded(after: Audit, owners: Mapping[str, str], leaving: Sequence[Leaving]) -> list[Note]:
    """Write notes on dropped libraries that the program loads all the same."""
    loaded = {owners.get(row.owner, row.owner) for row in after.ledger}
    detail = "it was loaded nevertheless: something opens it, or a library that needs it, at run time"
    return [Note("still-loaded", one.path, detail) for one in leaving if one.path in loaded]


def _copy_notes(name: str, behaviour: Sequence[Compared]) -> list[Note]:
    """Write a note if a copy with all libraries behaves differently from the original: then it shows little."""
    names = [one.name for one in behaviour if not one.is_as_original and one.verdict is not Agreement.VARYING]
    if not names:
        return []
    detail = f"a copy with all its libraries already differs ({', '.join(names)}): the program depends on its place"
    return [Note("copy-differs", name, detail)]
