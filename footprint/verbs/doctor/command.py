"""`footprint doctor`: what this host lets us read."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.activity import begin
from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.verbs.doctor import call, json, text
    from footprint.verbs.doctor.call import Diagnosis
else:
    call, json, text = lazy_modules("footprint.verbs.doctor", "call json text")

__all__ = ("doctor",)

ORDER = 160
NEEDS_RIGHTS = True


@options.shared_options("output format_ table json color quiet")
def doctor(
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure the costs of the C library and the kernel first, and store them."),
    ] = False,
    *,
    output: options.OutputOptions,
) -> int:
    """Show what this host lets footprint know, and how to get more.

    Calibrating holds /bin/true at its start, and starts small processes in a memory cgroup of its own, for some
    seconds; that takes root, or the right to make such groups.

    \b
    footprint doctor
    sudo footprint doctor --calibrate
    """
    answer: Answer[Diagnosis] = Answer(
        "doctor",
        "checks",
        document=text.doctor_document,
        members=json.doctor_members,
    )
    check_formats(answer, output)
    if calibrate:
        begin("measures the C library")
        call.calibrate_libc()
        begin("measures what constructors of libraries write")
        call.calibrate_constructors()
        begin("measures what the kernel spends on a process")
        call.calibrate()
    return write(answer, call.doctor(), "doctor", output)
