"""`footprint doctor`: what this host lets us read."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("doctor",)


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
    """Show what this host lets footprint read, what that means for the answers, and the cures.

    Calibrating holds /bin/true at its start, and starts small processes in a memory cgroup of its own, for some
    seconds; that takes root, or the right to make such groups.

    \b
    footprint doctor
    sudo footprint doctor --calibrate
    """
    from footprint.verbs.doctor import call as verb
    from footprint.verbs.output import Answer, chosen, write

    form = chosen("doctor", format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    if calibrate:
        verb.calibrate_libc()
        verb.calibrate()
    found = verb.doctor()

    def document() -> "Document":
        from footprint.verbs.doctor.text import doctor_report

        return doctor_report(found)

    def members() -> "Json":
        from footprint.verbs.doctor.json import doctor_members

        return doctor_members(found, __version__)

    write(Answer("doctor", document, members, "checks"), form)
