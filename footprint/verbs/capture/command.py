"""`footprint capture`: processes in one file, to be audited elsewhere."""

from typing import Annotated

from footprint.verbs import options
from footprint.verbs.capture import LONGEST_STOP_SECONDS
from footprint.verbs.commands import Argument, Option

ORDER = 140


def capture(
    pids: Annotated[list[int] | None, Argument(help="PIDs.", min=1, max=(1 << 31) - 1)] = None,
    output: Annotated[
        str | None, Option("-o", "--output", help="Where to write; - is standard output.", metavar="FILE")
    ] = None,
    script: Annotated[
        bool, Option("--script", help="Print a shell script that captures on machines without footprint.")
    ] = False,
    freeze: Annotated[bool, Option("--freeze", help="Stop each process while it is read.")] = False,
    together: Annotated[bool, Option("--together", help="With --freeze: stop all of them at one moment.")] = False,
    longest_stop: Annotated[
        float, Option("--longest-stop", help="How long they may be stopped.", metavar="SECONDS")
    ] = LONGEST_STOP_SECONDS,
    anonymous: Annotated[bool, Option("--anonymous", help="Leave out the name of this host.")] = False,
    findings: Annotated[
        bool, Option("--findings", help="Search their programs and libraries, for the savings of a fleet.")
    ] = False,
    quiet: Annotated[bool, Option("-q", "--quiet", help="Print nothing if all went well.")] = False,
    strict: options.Strict = False,
) -> int:
    """Save what the kernel says of processes for another machine.

    One file with their mappings, counters and private pages, and the build-ids of the files they map. Every verb takes
    it as its target. Only its owner may read it: it may hold command lines.

    \b
    footprint capture 4711 -o web.capture
    footprint capture $(pgrep nginx) --freeze --together -o nginx.capture
    footprint capture --script | kubectl exec -i web-0 -- sh -s -- -t 1 > web.fpc
    """
    from footprint.errors import UsageError
    from footprint.text.escape import printable
    from footprint.text.units import format_bytes
    from footprint.verbs.capture.call import capture as capture_processes
    from footprint.verbs.capture.call import capture_script
    from footprint.verbs.output import complain, emit, exit_code

    if script:
        if pids or freeze or together or findings:
            raise UsageError("--script captures nothing now: name the processes when the script runs")
        emit(capture_script(is_anonymous=anonymous), output or "-")
        return 0
    if not pids:
        raise UsageError("name at least one process")
    if output is None:
        raise UsageError("name the file to write with -o; -o - is standard output")
    done = capture_processes(
        *pids,
        output=output,
        freeze=freeze,
        together=together,
        longest_stop_seconds=longest_stop,
        anonymous=anonymous,
        findings=findings,
    )
    for note in done.notes:
        complain(printable(f"footprint: {note.slug}: {note.subject}: {note.detail}"))
    if not quiet:
        count = len(done.pids)
        processes = "1 process" if count == 1 else f"{count:,} processes"
        what = f"{processes} with {done.mapping_count:,} mappings in {format_bytes(done.size_bytes)}"
        where = "standard output" if output == "-" else output
        complain(printable(f"footprint: wrote {what} to {where}"))
    return exit_code(done.notes, is_strict=strict)
