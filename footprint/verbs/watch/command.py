"""`footprint watch`: processes over time."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.text.escape import printable
from footprint.text.units import parse_bytes, parse_rate, parse_seconds
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import (
    EXIT_PARTIAL,
    Answer,
    check_formats,
    complain,
    draws_blocks,
    emit,
    has_colour,
    has_screen,
    lazy_modules,
    write,
)

if TYPE_CHECKING:
    from footprint.series.timeline import Timeline
    from footprint.sources.target import ProcessChoice
    from footprint.verbs.options import OutputOptions
    from footprint.verbs.watch import call, json, metrics, result, session, text
    from footprint.verbs.watch.result import WatchResult
    from footprint.verbs.watch.session import WatchOptions
else:
    call, json, metrics, result, session, text = lazy_modules(
        "footprint.verbs.watch", "call json metrics result session text"
    )


SHARES_TERMINAL = True
ORDER = 25
NEEDS_RIGHTS = True
EXIT_GROWS = 1


@options.shared_options("html output format_ table json color quiet verbose strict", "figures trace report")
def watch(
    words: Annotated[
        list[str] | None, Argument(help="PIDs, or a program and its arguments after --.", metavar="PID... | CMD")
    ] = None,
    every: Annotated[str, Option("--every", help="The time between two ticks.", metavar="TIME")] = "1s",
    for_: Annotated[
        str | None, Option("--for", help="How long to watch; else until all have ended.", metavar="TIME")
    ] = None,
    keep: Annotated[
        str, Option("--keep", help="What the series may take: then it has fewer ticks.", metavar="SIZE")
    ] = "28MiB",
    replay: Annotated[
        str | None, Option("--replay", help="Show a series again that -o has kept.", metavar="FILE")
    ] = None,
    listen: Annotated[
        str | None,
        Option("--listen", help="Tell the figures of now by HTTP, as OpenMetrics.", metavar="HOST:PORT"),
    ] = None,
    fail_on_growth: Annotated[
        str | None,
        Option(
            "--fail-on-growth",
            help="Exit with 1 if it grows faster, such as 1MiB/h, or nobody can tell.",
            metavar="RATE",
        ),
    ] = None,
    accept: options.Accept = None,
    heap: options.Heap = None,
    heap_at: options.HeapAt = None,
    alloc_fn: options.AllocFns = None,
    binaries: options.Binaries = None,
    top: options.Top = 20,
    *,
    choice: "ProcessChoice",
    output: options.OutputOptions,
) -> int:
    """Watch processes over time: their cost, peak and growth.

    -o FILE.fps keeps what is seen; audit, diff, check and project read it. A program after -- is started, and watched
    with all that it starts.

    \b
    footprint watch 4711 --for 10m
    footprint watch --tree 4711 --every 5s -o server.fps
    footprint watch --for 1h --fail-on-growth 1MiB/h --unit nginx
    footprint watch -- make -j8
    footprint watch --replay server.fps --json
    footprint diff server.fps@start server.fps@end
    """
    series = output.file if output.file.endswith(".fps") else None
    if series is not None:
        output = output._replace(file="-")
    answer: Answer[WatchResult] = Answer(
        "watch",
        "samples",
        document=lambda outcome: text.watch_document(outcome, top=top, has_whole_names=output.has_whole_names),
        members=json.watch_members,
        figures=metrics.watch_metrics,
        trace=metrics.watch_trace,
        has_page=True,
    )
    check_formats(answer, output)
    most_per_second = None if fail_on_growth is None else parse_rate(fail_on_growth)
    from footprint.model.over_time import WatchGapKind, parse_accepted
    from footprint.series.growth import GrowthKind
    from footprint.verbs.audit.request import heap_request

    accepted = parse_accepted(accept or ())
    profile = heap_request(heap, options.one_moment(heap_at), alloc_fn or (), binaries or ())
    if profile is not None and replay is None and (any(choice) or len(words or []) != 1):
        raise UsageError("--heap goes with one process")
    if replay is not None:
        if words or any(choice) or series is not None:
            raise UsageError("--replay shows a series: it watches nothing else")
        timeline, name = call.replay(replay), replay
    else:
        how = session.WatchOptions(
            parse_seconds(every),
            None if for_ is None else parse_seconds(for_),
            series,
            parse_bytes(keep),
            listen=listen,
        )
        timeline = _watched(words or [], choice, how, output)
        name = timeline.began.target
    outcome = result.result_of(timeline, replay or _kept(series), most_per_second, profile, accepted)
    code = write(answer, outcome, f"watch {name}", output, outcome.notes)
    if outcome.fails is not None and (output.file != "-" or output.format is not options.Format.TEXT):
        complain(f"footprint: {printable(text.failure_text(outcome))}")
    if outcome.fails is not None:
        return EXIT_GROWS
    is_answer = for_ is not None and replay is None and series is None and output.file == "-"
    if is_answer and outcome.growth.kind is GrowthKind.UNKNOWN and WatchGapKind.TOO_SHORT not in accepted:
        complain("footprint: it was watched too short to tell whether it grows: --accept too-short passes that")
        return EXIT_PARTIAL
    return code


def _kept(series: str | None) -> str | None:
    """Return the file of a series if it has any record: a full disk takes none."""
    try:
        return series if series is not None and os.stat(series).st_size else None
    except OSError:
        return None


def _watched(words: Sequence[str], choice: "ProcessChoice", how: "WatchOptions", output: "OutputOptions") -> "Timeline":
    """Watch what was named; text has a line for each tick meanwhile, or is drawn anew on a terminal."""
    are_pids = [word.isascii() and word.isdigit() for word in words]
    is_command = bool(words) and not all(are_pids)
    if is_command and are_pids[0]:
        raise UsageError(f"{words[0]} is a PID, the rest is not: name PIDs, or a program after --")
    targets, command = ((), tuple(words)) if is_command else (words, ())
    if output.format is not options.Format.TEXT or output.file != "-" or output.is_quiet:
        return call.watched(targets, choice, command, how)
    # A program of its own has the terminal.
    if is_command or not has_screen():
        return call.watched(targets, choice, command, how._replace(on_tick=_print_tick))
    from footprint.verbs.watch.screen import Screen

    with Screen(has_colour=has_colour(output.color), has_blocks=draws_blocks("-")) as screen:
        return call.watched(targets, choice, command, how._replace(on_tick=screen.show, on_turn=screen.turn))


def _print_tick(timeline: "Timeline") -> None:
    emit(f"{text.tick_line(timeline)}\n", "-")
