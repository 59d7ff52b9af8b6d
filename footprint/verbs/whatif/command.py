"""`footprint whatif`: a program run with some of its libraries and without them."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("whatif",)


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
    from footprint.verbs.output import Answer, chosen, exit_code, write
    from footprint.verbs.whatif.call import whatif as run_both

    form = chosen("whatif", format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
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

    def document() -> "Document":
        from footprint.verbs.whatif.text import whatif_report

        return whatif_report(found, top=top, has_whole_names=verbose)

    def members() -> "Json":
        from footprint.verbs.whatif.json import whatif_members

        return whatif_members(found, __version__)

    write(Answer(f"whatif {command[0]}", document, members, "changes"), form)
    raise typer.Exit(exit_code(found.notes, is_strict=strict) if found.is_alike else 1)
