"""What the kernel counts of a process from its start on: processor time, page faults, and instructions where it can.

Source: clock_getcpuclockid(3), proc_pid_stat(5), perf_event_open(2).
"""

import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from footprint.errors import AccessError
from footprint.model.costs import Spread, StartStage
from footprint.system.c_library import addr_of, buffer, system_call

# The number of perf_event_open(2).
_CALLS: Final = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241, "ppc64le": 319}
_ATTRIBUTE_BYTES: Final = 64
_COUNTED: Final = (0, 1)  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
_USER_ONLY: Final = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv
_CLOSE_ON_EXEC: Final = 8
_PROCESS_CLOCK: Final = 2


class StartCounters(NamedTuple):
    """What the kernel has counted for a process.

    Attributes:
        processor_us: The processor time of all its threads, in microseconds.
        minor_faults: The page faults that read nothing from a disk.
        major_faults: The page faults that did.
        instructions: The instructions that it ran itself; None where the kernel counts none.
    """

    processor_us: int
    minor_faults: int
    major_faults: int
    instructions: int | None = None

    def since(self, before: "StartCounters") -> "StartCounters":
        """Return what was added since other counters; instructions are counted from there."""
        return StartCounters(
            self.processor_us - before.processor_us,
            self.minor_faults - before.minor_faults,
            self.major_faults - before.major_faults,
            self.instructions,
        )


def read_counters(pid: int, name: str, instructions: int | None = None) -> StartCounters:
    """Read the counters of a process; `instructions` is what `instruction_counter` opened.

    Raises:
        AccessError: Where it is gone.
    """
    try:
        processor_us = time.clock_gettime_ns(~pid << 3 | _PROCESS_CLOCK) // 1000
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        counted = 0 if instructions is None else int.from_bytes(os.read(instructions, 8), "little")
    except OSError as error:
        raise AccessError(name, f"what its start costs cannot be read: {error.strerror}") from error
    # A counter that never had a place in the processor has counted nothing.
    return StartCounters(processor_us, int(fields[7]), int(fields[9]), counted or None)


@contextmanager
def instruction_counter(pid: int) -> Iterator[int | None]:
    """Count the instructions that a stopped process runs from now on; None where the kernel counts none for us."""
    kind, event = _COUNTED
    attribute = struct.pack("<IIQQQQQIIQ", kind, _ATTRIBUTE_BYTES, event, 0, 0, 0, _USER_ONLY, 0, 0, 0)
    number, memory = _CALLS.get(os.uname().machine), buffer(attribute)
    try:
        counter = None if number is None else system_call(number, addr_of(memory), pid, -1, -1, _CLOSE_ON_EXEC)
    except OSError:
        # No counter in this (virtual) machine, or perf_event_paranoid forbids it.
        counter = None
    try:
        yield counter
    finally:
        if counter is not None:
            os.close(counter)


def start_stage(starts: Sequence[StartCounters]) -> StartStage:
    """Return the ranges of what starts cost up to one point."""
    processor_us, minor_faults, major_faults = map(Spread.of, list(zip(*starts, strict=True))[:3])
    counts = [start.instructions for start in starts if start.instructions is not None]
    instructions = Spread.of(counts) if len(counts) == len(starts) else None
    return StartStage(len(starts), processor_us, minor_faults, major_faults, instructions)
