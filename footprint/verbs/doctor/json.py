"""`doctor --json`."""

from footprint.attribution.kernel import KernelConstants
from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.verbs.doctor.diagnosis import Diagnosis

__all__ = ("doctor_members",)


def doctor_members(diagnosis: Diagnosis, version: str) -> Json:
    """Give every check, and what the kernel spends on its objects."""
    checks = [
        {
            "name": check.name,
            "state": check.state.value,
            "meaning": well_formed(check.meaning),
            "cure": None if check.cure is None else well_formed(check.cure),
        }
        for check in diagnosis.checks
    ]
    return envelope(version, diagnosis.host, {"name": "host"}) | {
        "checks": checks,
        "constants": _constants(diagnosis.constants),
        "notes": note_rows(diagnosis.notes),
    }


def _constants(constants: KernelConstants) -> Json:
    members = constants._asdict()
    del members["notes"]
    return members | {"evidence": constants.evidence.value}
