"""`footprint doctor`: what this host lets us read."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("doctor",)


def doctor(
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure first what the C library and the kernel spend, and keep it.")
    ] = False,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
) -> None:
    """Show what this host lets footprint read, what that means for the answers, and the cures.

    Calibrating holds /bin/true at its start, and starts small processes in a memory cgroup of its own, for some
    seconds; that takes root, or the right to make such groups.

    \b
    footprint doctor
    sudo footprint doctor --calibrate
    """
    from footprint.cli.output import emit, emit_document, wants_json
    from footprint.verbs import doctor as verb

    if calibrate:
        verb.calibrate_libc()
        verb.calibrate()
    found = verb.doctor()
    if wants_json(format_, output, is_asked=json):
        from footprint.report.json.doctor import doctor_json

        emit(doctor_json(found, __version__), output)
    else:
        from footprint.report.views.doctor import doctor_report

        emit_document(doctor_report(found), output, color, is_quiet=quiet)
