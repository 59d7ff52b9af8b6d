"""`footprint init`: the files of a release gate."""

from typing import Annotated

import typer

__all__ = ("init",)

ORDER = 112


def init(
    program: Annotated[
        str | None, typer.Argument(help="The program to check; else the newest that was built here.")
    ] = None,
    folder: Annotated[str, typer.Option("--folder", help="The folder of the project.", metavar="DIR")] = ".",
    ci: Annotated[
        str | None,
        typer.Option("--ci", help="github or gitlab; the default is what the project shows.", metavar="NAME"),
    ] = None,
) -> None:
    """Write a budget file, a baseline and the workflow of a CI gate, from what the project has now.

    Asks nothing, runs nothing, and keeps the files that are there.

    \b
    footprint init
    footprint init build/server --ci gitlab
    """
    from footprint.verbs.init.call import init as write_gate
    from footprint.verbs.init.text import gate_text

    typer.echo(gate_text(write_gate(program, folder=folder, forge=ci)))
