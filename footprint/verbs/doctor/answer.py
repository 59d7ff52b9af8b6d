"""What `footprint doctor` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.doctor.diagnosis import Diagnosis

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("DoctorAnswer",)


@dataclass(frozen=True)
class DoctorAnswer:
    """What this host allows. The attribute `found` has the checks."""

    verb: ClassVar = "doctor"
    table: ClassVar = "checks"
    found: Diagnosis
    name: str = "doctor"

    def document(self) -> "Document":
        from footprint.verbs.doctor.text import doctor_report

        return doctor_report(self.found)

    def members(self) -> "Json":
        from footprint.verbs.doctor.json import doctor_members

        return doctor_members(self.found, __version__)
