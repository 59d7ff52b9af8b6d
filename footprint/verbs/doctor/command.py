"""`footprint doctor`: what this host lets us read."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("doctor",)

ORDER = 160


def doctor(
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure first what the C library and the kernel spend, and keep it.")
    ] = False,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
) -> None:
    """Show what this host lets footprint read, what that means for the answers, and what would help.

    Calibrating holds /bin/true at its start, and starts small processes in a memory cgroup of its own, for some
    seconds; that takes root, or the right to make such groups.

    \b
    footprint doctor
    sudo footprint doctor --calibrate
    """
    from footprint.verbs.doctor import call as verb
    from footprint.verbs.doctor.answer import DoctorAnswer
    from footprint.verbs.output import output_options, write

    written = output_options(DoctorAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    if calibrate:
        verb.calibrate_libc()
        verb.calibrate()
    write(DoctorAnswer(verb.doctor()), written)
