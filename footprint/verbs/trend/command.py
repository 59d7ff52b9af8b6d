"""`footprint trend`: how the figures of a program went over its releases, and one more release (`--add`)."""

from typing import TYPE_CHECKING, Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import Answer, check_formats, draws_blocks, lazy_modules, write

if TYPE_CHECKING:
    from footprint.release.history import History
    from footprint.sources.target import ProcessChoice
    from footprint.verbs.trend import answer as parts
    from footprint.verbs.trend import recording
else:
    parts, recording = lazy_modules("footprint.verbs.trend", "answer recording")


ORDER = 130


@options.shared_options("html output format_ table json color quiet strict", "report")
def trend(
    history: Annotated[
        str, Option("--history", help="The file of the history; --add makes it if it is missing.", metavar="FILE")
    ],
    targets: Annotated[
        list[str] | None,
        Argument(help="For --add: a saved audit, a PID, a program, a capture or a text; several PIDs are a group."),
    ] = None,
    add: Annotated[bool, Option("--add", help="Keep the figures of a release in the history.")] = False,
    version: Annotated[
        str | None, Option("--version", help="The name of the release that is added.", metavar="VERSION")
    ] = None,
    commit: Annotated[str | None, Option("--commit", help="Or the commit that was built.", metavar="COMMIT")] = None,
    time: Annotated[
        str | None,
        Option("--time", help="Its date, or seconds since 1970; else the time of the file.", metavar="TIME"),
    ] = None,
    program: Annotated[
        list[str] | None,
        Option(
            "--program",
            help="Only this program; repeatable. With --add, its name, else that of its file.",
            metavar="NAME",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        Option("--figure", help="Only this figure, such as per_process_bytes; repeatable.", metavar="FIGURE"),
    ] = None,
    owner: Annotated[
        str | None,
        Option("--owner", help="The part of one owner: a file name, or such as [heap].", metavar="OWNER"),
    ] = None,
    last: Annotated[int | None, Option("--last", min=1, help="Only the newest releases.", metavar="N")] = None,
    pid: options.Pid = None,
    *,
    choice: "ProcessChoice",
    output: options.OutputOptions,
) -> int:
    """Show how the figures of each program went over releases.

    With --add, a release is added; one that is added again takes the place of the first.

    \b
    footprint trend --history footprint.sqlite
    footprint trend --history footprint.sqlite --figure private_bytes --last 20
    footprint trend --history footprint.sqlite --owner libssl.so.3 --json
    footprint trend --add audit.json --history footprint.sqlite --version 1.4.0
    footprint trend --add group.json --history f.db --version 1.4 --program family
    footprint trend --add ./server --history f.db --commit "$(git rev-parse HEAD)"
    """
    from footprint.errors import UsageError

    named = [*(targets or ()), *choice.words]
    of_view = {"--figure": figure, "--owner": owner, "--last": last}
    of_release = {"a target": named, "--version": version, "--commit": commit, "--time": time, "--pid": pid}
    refused = [name for name, value in (of_view if add else of_release).items() if value]
    if refused:
        raise UsageError(f"{refused[0]} {'does not go' if add else 'goes'} with --add, which adds a release")
    if not add:
        answer: Answer[History] = Answer(
            "trend",
            "trends",
            document=lambda history: parts.trend_document(history, has_blocks=draws_blocks(output.file)),
            members=parts.trend_members,
            has_page=True,
        )
        check_formats(answer, output)
        result = recording.trend(history, programs=program or (), figures=figure or (), owner=owner, last=last)
        return write(answer, result, f"trend {history}", output, result.notes)
    if not named:
        raise UsageError("name what is added; `footprint trend -h` shows what can be")
    if program and len(program) > 1:
        raise UsageError("a release is of one program: give --program once with --add")
    return _add(targets or [], choice, (history, version, commit, program[0] if program else None, time, pid), output)


def _add(
    targets: list[str],
    choice: "ProcessChoice",
    release: tuple[str, str | None, str | None, str | None, str | None, int | None],
    output: options.OutputOptions,
) -> int:
    from footprint.sources.target import NO_CHOICE, resolve_any

    history, version, commit, program, time, pid = release
    answer: Answer[recording.Recorded] = Answer(
        "trend --add",
        "recorded",
        document=lambda made: parts.record_document(made, history),
        members=lambda made, version: parts.record_members(made, history, version),
    )
    check_formats(answer, output)
    target = resolve_any(targets, choice) if choice != NO_CHOICE or len(targets) > 1 else targets[0]
    made = recording.record(target, history, version=version, commit=commit, program=program, time=time, pid=pid)
    return write(answer, made, f"trend --add {' '.join([*targets, *choice.words])}", output, made.notes)
