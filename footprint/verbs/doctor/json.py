"""The JSON of `doctor`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.attribution.kernel import KernelConstants
from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.verbs.doctor.call import Check, Diagnosis

__all__ = ("DoctorJson", "doctor_members")


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
