"""`footprint run`: a program started, taken at a moment, ended, and audited."""

from typing import TYPE_CHECKING, Annotated

from footprint.text.escape import printable
from footprint.verbs import options
from footprint.verbs.commands import Option
from footprint.verbs.output import EXIT_RUN_FAILED, Answer, LazyModule, check_formats, complain, lazy_modules, write

if TYPE_CHECKING:
    from footprint.formats import stacks
    from footprint.verbs.audit import html
    from footprint.verbs.run import call, json, text
    from footprint.verbs.run.result import RunResult
else:
    call, json, text = lazy_modules("footprint.verbs.run", "call json text")
    stacks = LazyModule("footprint.formats.stacks")
    html = LazyModule("footprint.verbs.audit.html")


ORDER = 20
NEEDS_RIGHTS = True
HAS_COMMAND = True
SHARES_TERMINAL = True


@options.shared_options("html output format_ table json color quiet verbose strict", "figures stacks report")
def run(
    command: options.Words,
    when: Annotated[str, Option("--when", help="exit, settled, peak, or a time such as 2.5s.")] = "exit",
    when_output: options.WhenOutput = None,
    timeout: options.Timeout = 60,
    starts: options.Starts = 1,
    follow: Annotated[bool, Option("--follow", help="Its child processes, too.")] = False,
    massif: Annotated[
        bool, Option("--massif", help="Run it once more under Valgrind's massif, to find who asked for its heap.")
    ] = False,
    massif_out: Annotated[
        str | None, Option("--massif-out", help="Where to keep massif's profile.", metavar="FILE")
    ] = None,
    massif_timeout: Annotated[
        float, Option("--massif-timeout", help="The longest time for that run.", metavar="SECONDS")
    ] = 600,
    start_cost: options.StartCost = False,
    expect_exit: options.ExpectExit = 0,
    allow: options.Allow = None,
    count: options.Count = 1,
    per: options.Per = None,
    by: Annotated[options.By, Option("--by", help="The grouping of the ledger.")] = options.By.OWNER,
    top: options.Top = 20,
    *,
    output: options.OutputOptions,
) -> int:
    """Start a program, and show where its memory is at a moment.

    Its output goes to standard error. The exit code is 5 if a signal ended it, if it exited with another code than 0
    (--expect-exit), or if it ended before the moment; --allow accepts this. `--when peak` runs it twice: first to find
    its peak, then to stop it there.

    \b
    footprint run -- ls -l
    footprint run --when settled --starts 5 -n 10000 -- ./server --port 8080
    footprint run --when peak -- ./build
    footprint run --start-cost -n 100000 --per day -- /usr/bin/gdb --version
    footprint run --massif --massif-out massif.out -- ./program
    footprint run --when-output 'listening on' --follow -- ./server
    """
    answer: Answer[RunResult] = Answer(
        "run",
        "ledger",
        document=lambda ran: text.run_document(ran, by=by.value, top=top, has_whole_names=output.has_whole_names),
        members=json.run_members,
        figures=json.run_metrics,
        stacks=lambda ran: stacks.ledger_stacks(ran.audit.ledger),
        has_page=True,
        page_data=lambda ran: html.first_screen(ran.audit),
    )
    check_formats(answer, output)
    count, starts_a_day = options.count_and_starts(count, per)
    from footprint.process.launch.own_process import interrupted_by_signals

    with interrupted_by_signals():
        ran = call.run(
            command,
            when=when,
            when_output=when_output,
            starts=starts,
            count=count,
            follow=follow,
            timeout_seconds=timeout,
            has_massif=massif or massif_out is not None,
            massif_out=massif_out,
            massif_seconds=massif_timeout,
            expect_exit=expect_exit,
            allow=allow or (),
            has_start_cost=start_cost,
            starts_a_day=starts_a_day,
        )
        code = write(answer, ran, f"run {ran.command[0]}", output, ran.notes)
    failures = ran.audit.run_failures
    if failures and output.file != "-":
        complain(f"footprint: {printable(text.failure_text(failures, ran.start_count))}")
    return EXIT_RUN_FAILED if failures else code
