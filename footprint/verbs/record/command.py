"""`footprint record`: the figures of a release, kept in a history."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import LazyModule, lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.sources.target import ProcessChoice
    from footprint.verbs.record import call, json
    from footprint.verbs.trend import text
else:
    call, json = lazy_modules("footprint.verbs.record", "call json")
    text = LazyModule("footprint.verbs.trend.text")

__all__ = ("record",)

ORDER = 120


@options.shared_options("output format_ table json color quiet strict")
def record(
    history: Annotated[
        str, typer.Option("--history", help="The file of the history; it is made if it does not exist.", metavar="FILE")
    ],
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="A saved audit; or a PID, a program, a capture or a text; several PIDs are a group."),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="The name of the release.", metavar="VERSION")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="Or the commit that was built.", metavar="COMMIT")
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", help="The name of the program; the default is that of its file.", metavar="NAME"),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="A date, or seconds since 1970; else the time of the file.", metavar="TIME"),
    ] = None,
    pid: options.Pid = None,
    *,
    choice: "ProcessChoice",
    output: options.OutputOptions,
) -> int:
    """Keep the figures of a release in a history, for trend.

    A release that is recorded again takes the place of the first.

    \b
    footprint record audit.json --history footprint.sqlite --version 1.4.0
    footprint record group.json --history f.sqlite --version 1.4 --program family
    footprint record ./server --history f.sqlite --commit "$(git rev-parse HEAD)"
    """
    from footprint.errors import UsageError
    from footprint.sources.target import NO_CHOICE, resolve_any

    answer: Answer[call.Recorded] = Answer(
        "record",
        "recorded",
        document=lambda made: text.record_document(
            made.recording.release, made.replaced, made.release_count, history, made.notes
        ),
        members=lambda made, version: json.record_members(
            made.recording, made.replaced, made.release_count, made.notes, history, version
        ),
    )
    check_formats(answer, output)
    named = targets or []
    if not named and choice == NO_CHOICE:
        raise UsageError("name what is recorded; `footprint record -h` shows what can be")
    target = resolve_any(named, choice) if choice != NO_CHOICE or len(named) > 1 else named[0]
    made = call.record(target, history, version=version, commit=commit, program=program, time=time, pid=pid)
    return write(answer, made, f"record {' '.join([*named, *choice.words])}", output, made.notes)
