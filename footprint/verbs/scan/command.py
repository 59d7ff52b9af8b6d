"""`footprint scan`: programs, processes and captures of many hosts in one dataset."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.verbs.scan import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.scan", "call json text")

__all__ = ("scan",)

ORDER = 145
NEEDS_RIGHTS = True


@options.shared_options("format_ table json color quiet strict")
def scan(
    dataset: Annotated[
        str, typer.Option("-o", "--output", help="The folder of the dataset; it is made or added to.", metavar="FOLDER")
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="Folders of programs or captures, root file systems, container images, files."),
    ] = None,
    processes: Annotated[
        bool, typer.Option("--processes", help="All processes of this machine, and their programs.")
    ] = False,
    root: options.Root = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The name of the host that all inputs are from.", metavar="NAME")
    ] = None,
    command_lines: Annotated[
        bool, typer.Option("--command-lines", help="Keep the command lines of processes.")
    ] = False,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Keep digests in place of host names.")] = False,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", help="Let a Dask cluster do the work: tcp://HOST:PORT.", metavar="ADDRESS"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, max=1024, help="How many processes work; one a processor.", metavar="N"),
    ] = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Collect what programs and processes cost in one dataset.

    Nothing is read twice: a further scan adds what is new, and one that was interrupted goes on.

    \b
    footprint scan /usr -o fleet
    footprint scan --processes -o fleet
    footprint scan captures/ audits/ image.tar -o fleet
    footprint scan captures/ -o fleet --scheduler tcp://scheduler:8786
    """
    answer: Answer[call.Scanned] = Answer("scan", "scanned", text.scan_document, json.scan_members)
    check_formats(answer, output)
    named = sources or []
    found = call.scan(
        *named,
        output=dataset,
        processes=processes,
        root=root,
        host=host,
        command_lines=command_lines,
        anonymous=anonymous,
        scheduler=scheduler,
        worker_count=workers,
    )
    return write(answer, found, f"scan {' '.join(named)}", output, found.notes)
