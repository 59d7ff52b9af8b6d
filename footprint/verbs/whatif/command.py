"""`footprint whatif`: a program run with some of its libraries and without them."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.verbs.whatif import call, json, text
    from footprint.verbs.whatif.result import WhatIf
else:
    call, json, text = lazy_modules("footprint.verbs.whatif", "call json text")

__all__ = ("whatif",)

ORDER = 30
HAS_COMMAND = True


@options.shared_options()
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
    *,
    output: options.OutputOptions,
) -> int:
    """Run a program without a library that it needs for nothing, and measure what that saves.

    A private copy is patched. What it prints with and without is compared; exit code 1 says that it differs.

    \b
    footprint whatif --drop libm.so.6 --when settled -n 10000 -- ./server
    """
    answer: Answer[WhatIf] = Answer(
        "whatif",
        "changes",
        document=lambda found: text.whatif_document(found, top=top, has_whole_names=output.has_whole_names),
        members=json.whatif_members,
    )
    check_formats(answer, output)
    found = call.whatif(
        command,
        drop=drop,
        when=when,
        when_output=when_output,
        starts=starts,
        count=count,
        force=force,
        timeout_seconds=timeout,
    )
    code = write(answer, found, f"whatif {found.command[0]}", output, found.notes)
    return code if found.is_alike else 1
