"""`footprint doctor`: what this host lets us read."""

from typing import Annotated

from footprint.system.limits import begin_activity
from footprint.verbs import options
from footprint.verbs.declared import Option
from footprint.verbs.output import Answer, check_formats, write

ORDER = 160
NEEDS_RIGHTS = True


@options.shared_options("output format_ table json color quiet")
def doctor(
    calibrate: Annotated[
        bool,
        Option("--calibrate", help="Measure the costs of the C library and the kernel first, and store them."),
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
    from footprint.verbs.doctor import answer, call

    parts: Answer[call.Diagnosis] = Answer(
        "doctor",
        "checks",
        document=answer.doctor_document,
        members=answer.doctor_members,
    )
    check_formats(parts, output)
    if calibrate:
        from footprint.sources import calibration, constructor_calibration, libc_calibration

        begin_activity("measures the C library")
        libc_calibration.calibrate_libc()
        begin_activity("measures what constructors of libraries write")
        constructor_calibration.calibrate_constructors()
        begin_activity("measures what the kernel spends on a process")
        calibration.calibrate()
    return write(parts, call.doctor(), "doctor", output)
