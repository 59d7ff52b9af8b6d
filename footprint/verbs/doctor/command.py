"""`footprint doctor`: what this host lets us read."""

from typing import Annotated

from footprint.errors import AccessError
from footprint.system.limits import begin_activity
from footprint.text.escape import printable
from footprint.verbs import options
from footprint.verbs.commands import Option
from footprint.verbs.output import Answer, check_formats, complain, write

ORDER = 160
NEEDS_RIGHTS = True


@options.shared_options("output format_ table json color quiet")
def doctor(
    calibrate: Annotated[
        bool,
        Option("--calibrate", help="Measure the costs of the C library, a start and the kernel first, and store them."),
    ] = False,
    *,
    output: options.OutputOptions,
) -> int:
    """Show what this host lets footprint know, and how to get more.

    Calibrating starts programs and ends them before their own code runs, for at most a minute, and small processes in
    a memory cgroup of its own; the latter takes root, or the right to make such groups.

    \b
    footprint doctor
    sudo footprint doctor --calibrate
    """
    from footprint.verbs.doctor import call

    parts: Answer[call.Diagnosis] = Answer(
        "doctor",
        "checks",
        document=call.doctor_document,
        members=call.doctor_members,
    )
    check_formats(parts, output)
    if calibrate:
        _calibrate()
    return write(parts, call.doctor(), "doctor", output)


def _calibrate() -> None:
    """Measure all that can be measured; who may not make a memory cgroup may well start programs.

    Raises:
        AccessError: The first one, behind all measurements.
    """
    from footprint.sources import kernel_calibration, start_calibration, startup_write_calibration

    errors = []
    for activity, measure in (
        ("measures the C library", startup_write_calibration.calibrate_libc),
        ("measures what constructors of libraries write", startup_write_calibration.calibrate_constructors),
        ("measures what the kernel spends on a process", kernel_calibration.calibrate),
    ):
        begin_activity(activity)
        try:
            measure()
        except AccessError as error:
            errors.append(error)
    begin_activity("measures what a start takes")
    try:
        fit = start_calibration.calibrate_starts()
        for left_out in fit.left_out if fit else ():
            complain(f"footprint: {printable(str(left_out))}; the program is left out")
    except AccessError as error:
        # On a busy machine the times may say nothing: the built-in prices stay.
        complain(f"footprint: {printable(str(error))}")
    if errors:
        raise errors[0]
