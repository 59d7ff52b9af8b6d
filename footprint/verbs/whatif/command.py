"""`footprint whatif`: a program run with some of its libraries and without them."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("whatif",)

ORDER = 30
HAS_COMMAND = True


def whatif(
    command: options.Words,
    drop: Annotated[list[str], typer.Option("--drop", help="A library that nobody uses; repeatable.", metavar="LIB")],
    when: options.When = "exit",
    when_output: options.WhenOutput = None,
    timeout: options.Timeout = 60,
    starts: options.Starts = 3,
    force: Annotated[bool, typer.Option("--force", help="Although something is bound from it.")] = False,
    count: options.Count = 1,
    top: options.Top = 20,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Run a program without a library that it needs for nothing, and measure what that saves.

    A private copy is patched. What it prints with and without is compared; exit code 1 says that it differs.

    \b
    footprint whatif --drop libm.so.6 --when settled -n 10000 -- ./server
    """
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write
    from footprint.verbs.whatif.answer import WhatIfAnswer
    from footprint.verbs.whatif.call import whatif as run_both

    written = output_options(WhatIfAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = run_both(
        command,
        drop=drop,
        when=when,
        when_output=when_output,
        starts=starts,
        count=count,
        force=force,
        timeout_seconds=timeout,
    )
    write(WhatIfAnswer(found, ViewOptions(top=top, has_whole_names=verbose)), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict) if found.is_alike else 1)
