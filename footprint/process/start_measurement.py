"""What programs cost before their own code runs, measured: each is started often, and stopped at its entry point.

The kernel counts the processor time of a task in nanoseconds, and its page faults. Where several programs are compared,
they are started in turns, so that what else the machine does meets all of them.

Source: Documentation/scheduler/sched-stats.rst, proc_pid_stat(5).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from footprint.errors import AccessError
from footprint.model.costs import MeasuredRange, StartMeasurement
from footprint.process.held_program import AT_ENTRY, held_at_start


class _Counters(NamedTuple):
    """What the kernel has counted for a process."""

    processor_us: int
    minor_faults: int
    major_faults: int


def measure_starts(variants: Sequence[Callable[[], str]], start_count: int) -> tuple[StartMeasurement, ...]:
    """Start programs in turns, without arguments, and measure what each costs up to its entry point.

    Args:
        variants: Each prepares a program to be started, and returns its path.
        start_count: How often each is started.

    Raises:
        AccessError: Where one of them cannot be started, traced or read.
    """
    call_counts = []
    for variant in variants:
        with held_at_start(variant()) as process:
            call_counts.append(process.run_to(process.auxiliary(AT_ENTRY), counts_calls=True))
    starts: list[list[_Counters]] = [[] for _ in variants]
    for _ in range(start_count):
        for variant, measured in zip(variants, starts, strict=True):
            measured.append(start_once(variant()))
    return tuple(map(partial(_measurement, start_count), starts, call_counts))


def _measurement(start_count: int, measured: Sequence[_Counters], call_count: int) -> StartMeasurement:
    processor_us, minor_faults, major_faults = map(_range, zip(*measured, strict=True))
    return StartMeasurement(start_count, processor_us, minor_faults, major_faults, call_count)


def start_once(program: str, variables: Mapping[str, str] | None = None) -> _Counters:
    """Start a program, without arguments, and measure what it costs up to its entry point.

    `variables` is its environment; None for ours.

    Raises:
        AccessError: Where it cannot be started, traced or read.
    """
    with held_at_start(program, variables) as process:
        before = _counters(process.pid, program)
        process.run_to(process.auxiliary(AT_ENTRY))
        return _Counters(*[now - then for now, then in zip(_counters(process.pid, program), before, strict=True)])


def _counters(pid: int, program: str) -> _Counters:
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            processor_us = int(file.read().split()[0]) // 1000
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError as error:
        raise AccessError(program, f"what its start costs cannot be read: {error.strerror}") from error
    return _Counters(processor_us, int(fields[7]), int(fields[9]))


def _range(values: Sequence[int]) -> MeasuredRange:
    ordered = sorted(values)
    return MeasuredRange(ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])
