"""`footprint scan`: programs, processes and captures of many hosts in one dataset."""

from typing import TYPE_CHECKING, Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import EXIT_UNREADABLE, Answer, check_formats, lazy_modules, write

if TYPE_CHECKING:
    from footprint.verbs.scan import answer, call
else:
    answer, call = lazy_modules("footprint.verbs.scan", "answer call")


ORDER = 145
NEEDS_RIGHTS = True


@options.shared_options("format_ table json color quiet strict")
def scan(
    dataset: Annotated[
        str, Option("-o", "--output", help="The folder of the dataset, or s3://, gs://, az://.", metavar="FOLDER")
    ],
    sources: Annotated[
        list[str] | None,
        Argument(help="Folders of programs, captures or packages, root file systems, container images, files."),
    ] = None,
    processes: Annotated[
        bool, Option("--processes", help="All processes of this machine, and their programs.")
    ] = False,
    root: options.Root = None,
    host: Annotated[
        str | None, Option("--host", help="The name of the host that all inputs are from.", metavar="NAME")
    ] = None,
    command_lines: Annotated[bool, Option("--command-lines", help="Keep the command lines of processes.")] = False,
    anonymous: Annotated[bool, Option("--anonymous", help="Keep digests in place of host names.")] = False,
    scheduler: Annotated[
        str | None,
        Option("--scheduler", help="Let a Dask cluster do the work: tcp://HOST:PORT.", metavar="ADDRESS"),
    ] = None,
    workers: Annotated[
        int | None,
        Option("--workers", min=1, max=1024, help="How many processes work; one a processor.", metavar="N"),
    ] = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Collect what programs and processes cost in one dataset.

    Nothing is read twice: a further scan adds what is new, and one that was interrupted goes on.

    \b
    footprint scan /usr -o fleet
    footprint scan --processes -o fleet
    footprint scan captures/ audits/ image.tar app.deb -o fleet
    footprint scan captures/ -o fleet --scheduler tcp://scheduler:8786
    """
    parts: Answer[call.Scanned] = Answer("scan", "scanned", answer.scan_document, answer.scan_members)
    check_formats(parts, output)
    named = sources or []
    scanned = call.scan(
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
    code = write(parts, scanned, f"scan {' '.join(named)}", output, scanned.notes)
    return EXIT_UNREADABLE if scanned.is_nothing_read else code
