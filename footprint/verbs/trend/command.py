"""`footprint trend`: how the figures of a program went over its releases."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, draws_blocks, write

if TYPE_CHECKING:
    from footprint.release.history import History
    from footprint.verbs.trend import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.trend", "call json text")

__all__ = ("trend",)

ORDER = 130


@options.shared_options("html output format_ table json color quiet strict", "report")
def trend(
    history: Annotated[str, typer.Option("--history", help="The file that record writes.", metavar="FILE")],
    program: Annotated[
        list[str] | None, typer.Option("--program", help="Only this program; repeatable.", metavar="NAME")
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Only this figure, such as per_process_bytes; repeatable.", metavar="FIGURE"),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option("--owner", help="The part of one owner: a file name, or such as [heap].", metavar="OWNER"),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only the newest releases.", metavar="N")] = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Show how the figures of each program went over releases.

    \b
    footprint trend --history footprint.sqlite
    footprint trend --history footprint.sqlite --figure private_bytes --last 20
    footprint trend --history footprint.sqlite --owner libssl.so.3 --json
    """
    answer: Answer[History] = Answer(
        "trend",
        "trends",
        document=lambda found: text.trend_document(found, has_blocks=draws_blocks(output.file)),
        members=json.trend_members,
        has_page=True,
    )
    check_formats(answer, output)
    found = call.trend(history, programs=program or (), figures=figure or (), owner=owner, last=last)
    return write(answer, found, f"trend {history}", output, found.notes)
