"""`footprint.compare_builds`: a program and another build of it, run in turn and compared."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from footprint.elf.image import read_image
from footprint.errors import AccessError, UsageError
from footprint.model.projection import Question
from footprint.process.launch.moment import When
from footprint.process.launch.own_process import interrupted_by_signals
from footprint.process.start_measurement import measure_starts
from footprint.system.files import open_input
from footprint.system.limits import begin_activity
from footprint.text.command_line import shown_words
from footprint.verbs.run.call import (
    LEAST_STARTS,
    PER_NEEDS_COST,
    check_command,
    parse_expected,
    parse_moment,
    program_file,
)
from footprint.verbs.whatif.build_comparison import BuildComparison, compare_trials
from footprint.verbs.whatif.result import Trial
from footprint.verbs.whatif.trials import try_start


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
        costs = measure_starts(variants, max(starts, LEAST_STARTS)) if has_start_cost else (None, None)
    moment_name = when if when_output is None else When.OUTPUT.value
    compared = compare_trials(shown_words(words), build, moment_name, original, *trials, count=count, expected=expected)
    before, after = [
        ran.with_start_cost(cost, starts_a_day)
        for ran, cost in zip((compared.before, compared.after), costs, strict=True)
    ]
    return replace(compared, before=before, after=after)


def _machine(path: str) -> tuple[int, bool]:
    """Return the machine of an ELF file, and whether it is of 64 bits."""
    image = read_image(open_input(path), path, with_sections=False)
    return image.machine, image.is_64
