"""A program that is stopped before its own code runs: the kernel and the loader have done their part.

What programs cost before their own code runs is measured there: each is started often. Where the C library is known to
call main, they are also stopped there: constructors of the program have run then. Where several programs are compared,
they are started in turns, so that what else the machine does meets all of them.

Source: ptrace(2), getauxval(3), proc_pid_mem(5).
"""

import os
import signal
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from footprint.errors import AccessError
from footprint.model.costs import StartMeasurement
from footprint.process.maps_text import parse_maps
from footprint.process.start_counters import StartCounters, instruction_counter, read_counters, start_stage
from footprint.process.status import auxiliary_vector
from footprint.system.c_library import addr_of, buffer, ptrace

AT_ENTRY: Final = 9

_TRACEME: Final = 0
_CONT: Final = 7
_SETOPTIONS: Final = 0x4200
_SYSCALL: Final = 24
_EXITKILL: Final = 1 << 20
_MARKS_CALLS: Final = 1  # PTRACE_O_TRACESYSGOOD
_CALL_STOP: Final = signal.SIGTRAP | 0x80
# Eight bytes of ones are an instruction on no machine: the program stops there with a signal.
_NO_INSTRUCTION: Final = b"\xff" * 8
_FAULTS: Final = frozenset({signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP})
_PATIENCE_SECONDS: Final = 10.0
_SINGLE_STEP: Final = 9
_GETREGSET: Final = 0x4204
_NT_PRSTATUS: Final = 1
# By machine: the words of the registers, and which of them are the first argument and the program counter
# (user_regs_struct, user_pt_regs).
_REGISTERS: Final = {"x86_64": (27, 14, 16), "aarch64": (34, 0, 32)}
# From the entry point to the C library's function that calls main: glibc 12 to 20, musl some more.
_MOST_STEPS: Final = 200
_LONGEST_INSTRUCTION: Final = 15


class HeldProgram:
    """A stopped program that has not run its own code yet."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid = pid
        self._name = name
        with open(f"/proc/{pid}/auxv", "rb") as file:
            self._auxiliary = auxiliary_vector(file.read())

    def auxiliary(self, key: int) -> int:
        """Return an entry of its auxiliary vector, such as `AT_ENTRY`; 0 where there is none."""
        return self._auxiliary.get(key, 0)

    def run_to(self, addr: int, *, counts_calls: bool = False) -> int:
        """Run it until it reaches an address in its code. Writing the breakpoint makes that page private.

        Constructors get their signals until then: some try what a processor can.
        Return the number of its system calls until then, where they are counted; that is slow.

        Raises:
            AccessError: Where the program ends before that, or takes too long.
        """
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(addr)
            code = memory.read(len(_NO_INSTRUCTION))
            memory.seek(addr)
            memory.write(_NO_INSTRUCTION)
            stop_count, go_on = 0, _SYSCALL if counts_calls else _CONT
            ptrace(go_on, self.pid)
            patience_end = time.monotonic() + _PATIENCE_SECONDS
            while not self._stands_at(addr, stop := _next_stop(self.pid, self._name, patience_end)):
                stop_count += stop == _CALL_STOP
                ptrace(go_on, self.pid, 0 if stop == _CALL_STOP else stop)
            memory.seek(addr)
            memory.write(code)
        # A call stops the program when it begins and when it returns.
        return stop_count // 2

    def _stands_at(self, addr: int, stop: int) -> bool:
        """Return whether a stop is that of a breakpoint; where registers are not known, any fault is."""
        registers = _registers(self.pid) if stop in _FAULTS else None
        return stop in _FAULTS and (registers is None or registers[1] == addr)

    def find_main(self) -> int | None:
        """Step from the entry point, where it stands, to the call that gets the address of main, and return that.

        It is the first argument of __libc_start_main: the first one, at a jump, that is an address of the program's own
        code. None where there is no such call, and on processors whose registers are not known.
        """
        entry_addr, before_addr = self.auxiliary(AT_ENTRY), None
        with open(f"/proc/{self.pid}/maps", "rb") as file:
            mappings = parse_maps(file.read(), self._name).mappings
        code = next((range(m.start_addr, m.end_addr) for m in mappings if m.start_addr <= entry_addr < m.end_addr), ())
        for _ in range(_MOST_STEPS):
            registers = _registers(self.pid)
            if registers is None:
                return None
            argument, addr = registers
            is_jump = before_addr is not None and not 0 < addr - before_addr <= _LONGEST_INSTRUCTION
            if is_jump and argument in code and argument != entry_addr:
                return argument
            before_addr = addr
            ptrace(_SINGLE_STEP, self.pid)
            if _next_stop(self.pid, self._name) != signal.SIGTRAP:
                return None
        return None


def _registers(pid: int) -> tuple[int, int] | None:
    """Return the first argument and the program counter of a stopped program; None where they are not known."""
    word_count, argument, counter = _REGISTERS.get(os.uname().machine, (0, 0, 0))
    if not word_count:
        return None
    contents = buffer(bytes(8 * word_count))
    vector = buffer(struct.pack("NN", addr_of(contents), 8 * word_count))
    ptrace(_GETREGSET, pid, addr_of(vector), _NT_PRSTATUS)
    # A program of 32 bits has fewer.
    if struct.unpack("NN", bytes(memoryview(vector)))[1] != 8 * word_count:
        return None
    words = memoryview(contents).cast("B").cast("Q")
    return words[argument], words[counter]


@contextmanager
def held_at_start(program: str, environment: Mapping[str, str] | None = None) -> Iterator[HeldProgram]:
    """Start a program without arguments, stop it before its first instruction, and end it afterwards.

    It has our environment where none is named.

    Raises:
        AccessError: Where the program cannot be started or traced.
    """
    pid = os.fork()
    if pid == 0:
        _become(program, os.environ if environment is None else environment)
    try:
        try:
            if _next_stop(pid, program) != signal.SIGTRAP:
                raise AccessError(program, "it cannot be stopped at its start")
            ptrace(_SETOPTIONS, pid, _EXITKILL | _MARKS_CALLS)
            program_held = HeldProgram(pid, program)
        except OSError as error:
            raise AccessError(program, f"it cannot be stopped at its start: {error.strerror}") from error
        yield program_held
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@contextmanager
def folder_at_entry(program: str, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """Start a program, and open its folder in /proc where the loader is done and its own code begins.

    Raises:
        AccessError: Where the program cannot be started or traced.
    """
    with held_at_start(program, environment) as process:
        process.run_to(process.auxiliary(AT_ENTRY))
        folder = os.open(f"/proc/{process.pid}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield folder
        finally:
            os.close(folder)


def _become(program: str, environment: Mapping[str, str]) -> NoReturn:
    """Execute the program in the new process, traced, with /dev/null for input and output."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        ptrace(_TRACEME, 0)
        os.execve(program, [program], environment)  # noqa: S606 # the purpose of this module
    finally:
        os._exit(127)


def _next_stop(pid: int, name: str, patience_end: float = 0.0) -> int:
    """Wait until the program stops, some seconds unless an end is named, and return the signal that stopped it."""
    patience_end = patience_end or time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < patience_end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended and os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        if ended:
            raise AccessError(name, "it ended before it reached its own code")
        time.sleep(0.0005)
    raise AccessError(name, f"it did not reach its own code within {_PATIENCE_SECONDS:g} seconds")


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
