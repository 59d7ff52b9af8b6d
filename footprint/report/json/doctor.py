"""`doctor --json`."""

from footprint.audit.diagnosis import Diagnosis
from footprint.audit.kernel import KernelConstants
from footprint.report.escape import well_formed
from footprint.report.json.envelope import Json, envelope, note_rows, write

__all__ = ("doctor_json",)


def doctor_json(diagnosis: Diagnosis, version: str) -> str:
    """Write every check, and what the kernel spends on its objects."""
    checks = [
        {
            "name": check.name,
            "state": check.state.value,
            "meaning": well_formed(check.meaning),
            "cure": None if check.cure is None else well_formed(check.cure),
        }
        for check in diagnosis.checks
    ]
    return write(
        envelope(version, diagnosis.host, {"name": "host"})
        | {"checks": checks, "constants": _constants(diagnosis.constants), "notes": note_rows(diagnosis.notes)}
    )


def _constants(constants: KernelConstants) -> Json:
    members = constants._asdict()
    del members["notes"]
    return members | {"evidence": constants.evidence.value}
