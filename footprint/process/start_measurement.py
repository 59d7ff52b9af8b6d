"""What programs cost before their own code runs, measured: each is started often, and stopped at its entry point.

Where the C library is known to call main, they are also stopped there: constructors of the program have run then. Where
several programs are compared, they are started in turns, so that what else the machine does meets all of them.
"""

from collections.abc import Callable, Mapping, Sequence

from footprint.errors import AccessError
from footprint.model.costs import StartMeasurement
from footprint.process.held_program import AT_ENTRY, HeldProgram, held_at_start
from footprint.process.start_counters import StartCounters, instruction_counter, read_counters, start_stage


def measure_starts(variants: Sequence[Callable[[], str]], start_count: int) -> tuple[StartMeasurement, ...]:
    """Start programs in turns, without arguments, and measure what each costs up to its entry point, and up to main.

    Args:
        variants: Each prepares a program to be started, and returns its path.
        start_count: How often each is started.

    Raises:
        AccessError: Where one of them cannot be started, traced or read.
    """
    call_counts, distances = [], []
    for variant in variants:
        with held_at_start(variant()) as process:
            call_counts.append(process.run_to(process.auxiliary(AT_ENTRY), counts_calls=True))
            distances.append(_distance_of_main(process))
    starts: list[list[list[StartCounters]]] = [[] for _ in variants]
    for _ in range(start_count):
        for variant, distance, measured in zip(variants, distances, starts, strict=True):
            measured.append(_start(variant(), None, distance))
    measurements = []
    for measured, call_count in zip(starts, call_counts, strict=True):
        entry, *mains = [start_stage(stage) for stage in zip(*measured, strict=False)]
        measurement = StartMeasurement(*entry[:4], call_count, entry.instructions, mains[0] if mains else None)
        measurements.append(measurement)
    return tuple(measurements)


def start_once(program: str, variables: Mapping[str, str] | None = None) -> StartCounters:
    """Start a program, without arguments, and measure what it costs up to its entry point.

    `variables` is its environment; None for ours.

    Raises:
        AccessError: Where it cannot be started, traced or read.
    """
    return _start(program, variables, None)[0]


def _distance_of_main(process: HeldProgram) -> int | None:
    """Return how far main is behind the entry point, where the program stands; None where main is not reached."""
    try:
        main_addr = process.find_main()
        if main_addr is None:
            return None
        process.run_to(main_addr)
    except (AccessError, OSError):
        # Constructors may end the program, or wait for what only its arguments or input would bring.
        return None
    return main_addr - process.auxiliary(AT_ENTRY)


def _start(program: str, variables: Mapping[str, str] | None, distance: int | None) -> list[StartCounters]:
    """Start a program, and return what it costs up to its entry point, and up to main where that is known."""
    with held_at_start(program, variables) as process, instruction_counter(process.pid) as instructions:
        before, entry_addr = read_counters(process.pid, program), process.auxiliary(AT_ENTRY)
        process.run_to(entry_addr)
        stages = [read_counters(process.pid, program, instructions).since(before)]
        if distance is not None:
            process.run_to(entry_addr + distance)
            stages.append(read_counters(process.pid, program, instructions).since(before))
        return stages
