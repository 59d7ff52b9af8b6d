"""`footprint init`: the files of a release gate."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("init",)

ORDER = 112
NEEDS_RIGHTS = True


def init(
    program: Annotated[
        str | None, typer.Argument(help="The program to check; else the newest that was built here.")
    ] = None,
    folder: Annotated[str, typer.Option("--folder", help="The folder of the project.", metavar="DIR")] = ".",
    ci: Annotated[
        str | None,
        typer.Option("--ci", help="github or gitlab; the default is what the project shows.", metavar="NAME"),
    ] = None,
    when: Annotated[
        str | None,
        typer.Option("--when", help="Let CI start it, and read it then: exit, settled, or a time.", metavar="WHEN"),
    ] = None,
    when_output: options.WhenOutput = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="After --: the arguments with which CI starts it.")
    ] = None,
) -> None:
    """Write a budget file, a baseline and the workflow of a CI gate.

    Asks nothing, runs nothing, and keeps the files that are there. With --when or --when-output, CI starts the program
    five times as well, and fails if it crashes, exits with an error, or does not come up.

    \b
    footprint init
    footprint init build/server --ci gitlab
    footprint init build/server --when-output 'listening on' -- --port 8080
    """
    from footprint.verbs.init.call import init as write_gate
    from footprint.verbs.init.text import gate_text

    gate = write_gate(program, folder=folder, forge=ci, when=when, when_output=when_output, arguments=arguments or ())
    typer.echo(gate_text(gate))
