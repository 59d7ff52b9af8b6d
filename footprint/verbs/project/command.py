"""`footprint project`: what N processes cost, or how many fit."""

from typing import TYPE_CHECKING

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.figures import Family
    from footprint.formats.json import Json

__all__ = ("project",)


def project(
    target: options.Target,
    count: options.OptionalCount = None,
    memory: options.Memory = None,
    model: options.ModelOption = options.Model.EXEC,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Say what N processes cost, or how many fit.

    With every term, for started copies, for forked workers of one parent, or for threads.

    \b
    footprint project 4711 -n 10000
    footprint project smaps.txt --memory 32GiB
    footprint project 4711 -n 50 --model fork
    """
    from footprint.units import parse_bytes
    from footprint.verbs.output import Answer, chosen, exit_code, write
    from footprint.verbs.project.call import project as verb

    form = chosen("project", format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    memory_bytes = None if memory is None else parse_bytes(memory)
    found = verb(target, count=count, memory_bytes=memory_bytes, model=model.value, pid=pid, root=root)

    def document() -> "Document":
        from footprint.verbs.audit.text import projection_report

        return projection_report(found)

    def members() -> "Json":
        from footprint.verbs.audit.json import projection_members

        return projection_members(found, __version__)

    def figures() -> "list[Family]":
        from footprint.formats.figures import projection_figures

        return projection_figures(found.projection, found.target)

    write(Answer(f"project {target}", document, members, "projection", figures=figures), form)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
