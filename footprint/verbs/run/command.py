"""`footprint run`: a program started, taken at a moment, ended, and audited."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.formats.escape import printable
from footprint.verbs import options
from footprint.verbs.lazy import LazyModule, lazy_modules
from footprint.verbs.output import EXIT_RUN_FAILED, Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.formats import stacks
    from footprint.verbs.audit import html
    from footprint.verbs.run import call, json, metrics, text
    from footprint.verbs.run.result import RunResult
else:
    call, json, metrics, text = lazy_modules("footprint.verbs.run", "call json metrics text")
    stacks = LazyModule("footprint.formats.stacks")
    html = LazyModule("footprint.verbs.audit.html")

__all__ = ("run",)

ORDER = 20
NEEDS_RIGHTS = True
HAS_COMMAND = True
SHARES_TERMINAL = True


@options.shared_options("html output format_ table json color quiet verbose strict", "figures stacks report")
def run(
    command: options.Words,
    when: Annotated[str, typer.Option("--when", help="exit, settled, peak, or a time such as 2.5s.")] = "exit",
    when_output: options.WhenOutput = None,
    timeout: options.Timeout = 60,
    starts: options.Starts = 1,
    follow: Annotated[bool, typer.Option("--follow", help="Its child processes, too.")] = False,
    massif: Annotated[
        bool, typer.Option("--massif", help="Run it once more under Valgrind's massif, to find who asked for its heap.")
    ] = False,
    massif_out: Annotated[
        str | None, typer.Option("--massif-out", help="Where to keep massif's profile.", metavar="FILE")
    ] = None,
    massif_timeout: Annotated[
        float, typer.Option("--massif-timeout", help="The longest time for that run.", metavar="SECONDS")
    ] = 600,
    expect_exit: options.ExpectExit = 0,
    allow: options.Allow = None,
    count: options.Count = 1,
    by: Annotated[options.By, typer.Option("--by", help="The grouping of the ledger.")] = options.By.OWNER,
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
    footprint run --massif --massif-out massif.out -- ./program
    footprint run --when-output 'listening on' --follow -- ./server
    """
    answer: Answer[RunResult] = Answer(
        "run",
        "ledger",
        document=lambda found: text.run_document(found, by=by.value, top=top, has_whole_names=output.has_whole_names),
        members=json.run_members,
        figures=metrics.run_metrics,
        stacks=lambda found: stacks.ledger_stacks(found.audit.ledger),
        has_page=True,
        page_data=lambda found: html.payers(found.audit),
    )
    check_formats(answer, output)
    found = call.run(
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
    )
    code = write(answer, found, f"run {found.command[0]}", output, found.notes)
    failures = found.audit.run_failures
    if failures and output.file != "-":
        typer.echo(f"footprint: {printable(text.failure_text(failures, found.start_count))}", err=True)
    return EXIT_RUN_FAILED if failures else code
