"""The JSON of `run`: an audit, and how the program was run. Saved audits of `run` are read by the same types."""

from typing import Annotated, Literal, NamedTuple

from footprint.formats.audit_json import AuditJson
from footprint.members import LATER, NOT_EMPTY, Bounds, Later, Pattern, Positive, dataclass
from footprint.model.costs import DailyStarts, Spread, StartMeasurement
from footprint.model.over_time import Peak, RunFailure
from footprint.model.row import MemoryKind


class RunFigures(NamedTuple):
    """The figures of all starts of a program.

    Attributes:
        private_bytes: The private memory; null where it is not known.
        per_process_bytes: The cost of one process; null where it is not known.
        peak_bytes: The peak; null where it was not measured, for `--when peak`, and in files of earlier versions.
    """

    private_bytes: Spread | None
    per_process_bytes: Spread | None
    peak_bytes: Annotated[Spread | None, LATER]


class OwnerSpread(NamedTuple):
    """The private memory of one owner over several starts, with what the kernel spends.

    Attributes:
        owner: The object, or a name in brackets.
        min: The smallest value.
        median: The value of the start in the middle.
        max: The largest value.
    """

    owner: str
    min: int
    median: int
    max: int


class KindSpread(NamedTuple):
    """The memory of one kind over several starts: private, or what the kernel spends.

    Attributes:
        kind: What the memory is for.
        min: The smallest value.
        median: The value of the start in the middle.
        max: The largest value.
    """

    kind: MemoryKind
    min: int
    median: int
    max: int


class RunChild(NamedTuple):
    """A process that the program had started, and that was alive at the moment.

    Attributes:
        pid: The process.
        command: Its command line.
        private_bytes: Its private memory; null where it is not known.
        per_process_bytes: The cost of one more such process; null where it is not known.
    """

    pid: int | None
    command: str
    private_bytes: int | None
    per_process_bytes: int | None


# As `process.launch` has it; importing that takes longer than reading a small audit.
MomentWord = Literal["exit", "settled", "time", "output", "peak"]


class RunMembers(NamedTuple):
    """How a program was run; the rest of the answer is the audit of the median start.

    Attributes:
        command: The program and its arguments.
        when: The moment that was asked for: `exit`, `settled`, `output`, `peak`, or a time.
        moment: The moment at which the program was really read.
        starts: The number of starts.
        exit_code: The exit code of the median start; null where a signal or footprint ended it.
        signal: The name of the signal that ended it; null where none did.
        figures: How far the starts differ in the whole.
        owners: How far the starts differ, by owner; empty for a single start.
        kinds: How far the starts differ, by kind of memory; empty for a single start.
        retained: How far the starts differ in what leaves with each object; empty for a single start.
        children: The child processes at the moment, where they were asked for; with `--when peak` all processes but
            the one that held most, of which the rest of the answer is.
        peak: The peak; null in files of earlier versions.
        failures: How its starts failed; null in files of earlier versions.
        start_cost: What its starts cost up to the entry point; null where that was not measured.
        daily: What the starts of `--per` take each day; null without it.
    """

    command: Annotated[tuple[str, ...], NOT_EMPTY]
    when: Annotated[str, Pattern("^(exit|settled|output|peak|[0-9.]+(ms|s|min))$")]
    moment: MomentWord
    starts: Positive
    exit_code: Annotated[int, Bounds(0, 256)] | None
    signal: Annotated[str, Pattern("^SIG.*$")] | None
    figures: RunFigures
    owners: Annotated[tuple[OwnerSpread, ...], Later(())]
    kinds: Annotated[tuple[KindSpread, ...], Later(())]
    retained: Annotated[tuple[OwnerSpread, ...], Later(())]
    children: tuple[RunChild, ...]
    peak: Annotated[Peak | None, LATER]
    failures: Annotated[tuple[RunFailure, ...] | None, LATER]
    start_cost: Annotated[StartMeasurement | None, LATER]
    daily: Annotated[DailyStarts | None, LATER]


@dataclass(frozen=True, kw_only=True)
class RunJson(AuditJson):
    """The audit of the median start of a program that was run.

    Attributes:
        run: How the program was run.
    """

    verb: Annotated[Literal["run"], Later("run")] = "run"  # type: ignore[assignment] # an answer of its own
    run: RunMembers
