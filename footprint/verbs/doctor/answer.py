"""The answer of `doctor`: its JSON and its report."""

from typing import Final, Literal, NamedTuple

from footprint.attribution.kernel import KernelConstants
from footprint.errors import Note
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import dataclass
from footprint.text.units import format_bytes
from footprint.verbs.doctor.call import Check, Diagnosis, State

# The checks that decide what can be known, the most important first.
_DECISIVE: Final = ("page bits", "CAP_SYS_PTRACE", "memory cgroup", "calibration", "constructors", "debug files")


def doctor_document(diagnosis: Diagnosis) -> Document:
    """Show what can be read on this host, what that means, and what would help."""
    kernel, machine = diagnosis.host.get("kernel", ""), diagnosis.host.get("machine", "")
    rows = tuple((check.name, check.state.value, check.meaning) for check in diagnosis.checks)
    return (
        Heading(f"footprint doctor: Linux {kernel} {machine}".rstrip()),
        Table(("what", "state", "what it means"), rows, frozenset({0, 1})),
        Paragraph(_count(diagnosis)),
        *_cures(diagnosis),
        Heading(f"What the kernel spends on a process, {diagnosis.constants.origin}"),
        _constants(diagnosis.constants),
        *note_blocks(diagnosis.notes),
        Verdict(_verdict(diagnosis)),
    )


def _cures(diagnosis: Diagnosis) -> list[Block]:
    lines = [Paragraph(f"{check.name}: {check.cure}") for check in diagnosis.checks if check.cure is not None]
    return [Heading("What would help"), *lines] if lines else []


def _constants(constants: KernelConstants) -> Facts:
    evidence = constants.evidence.value
    figures = (
        ("process", constants.process_bytes),
        ("thread", constants.thread_bytes),
        ("stack of a thread", constants.stack_bytes),
        ("mapping", constants.mapping_bytes),
        ("written mapping, besides", constants.written_bytes),
        ("mapped file", constants.file_bytes),
    )
    opened = ((f"open: {kind}", size_bytes) for kind, size_bytes in constants.open_file_bytes.items())
    return Facts(tuple((name, format_bytes(size_bytes), evidence) for name, size_bytes in (*figures, *opened)))


def _count(diagnosis: Diagnosis) -> str:
    short = [check.name for check in diagnosis.checks if check.state is not State.OK]
    count = len(diagnosis.checks)
    rest = f"; not {', '.join(short)}" if short else ""
    return f"{count - len(short)} of {count} checks are fine{rest}."


def _verdict(diagnosis: Diagnosis) -> str:
    """Return in one line what footprint can know here, and how to get more."""
    lacking = {check.name: check for check in diagnosis.checks if check.state is not State.OK}
    if not lacking:
        return f"All {len(diagnosis.checks)} checks are fine: figures are as exact as footprint can make them."
    whose = "your own processes" if "CAP_SYS_PTRACE" in lacking else "every process"
    depth = "by mapping" if "page bits" in lacking else "to the page and the variable"
    kernel = diagnosis.constants.evidence.value
    cures = dict.fromkeys(lacking[name].cure for name in _DECISIVE if name in lacking)
    more = "; ".join(cure for cure in cures if cure is not None)
    return f"Here footprint reads {whose} {depth}; kernel memory is {kernel}.{f' For more: {more}.' if more else ''}"


class HostTarget(NamedTuple):
    """The host that was looked at.

    Attributes:
        name: Always `host`.
    """

    name: Literal["host"] = "host"


@dataclass(frozen=True, kw_only=True)
class DoctorJson(Envelope):
    """What this host lets footprint read, and what the kernel spends on its objects.

    Attributes:
        target: The host.
        checks: The conditions that decide what footprint can answer.
        constants: The sizes of kernel objects.
        notes: What was odd.
    """

    verb: Literal["doctor"] = "doctor"
    target: HostTarget
    checks: tuple[Check, ...]
    constants: KernelConstants
    notes: tuple[Note, ...]


def doctor_members(diagnosis: Diagnosis, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        DoctorJson(
            tool=Tool("footprint", version),
            host=diagnosis.host,
            target=HostTarget(),
            checks=diagnosis.checks,
            constants=diagnosis.constants,
            notes=diagnosis.notes,
        )
    )
