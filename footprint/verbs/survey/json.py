"""`audit --all --json`."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.verbs.survey.result import Survey

__all__ = ("survey_members",)


def survey_members(survey: Survey, version: str) -> Json:
    """Give the programs of some folders, the costliest first."""
    target = {"folders": [well_formed(folder) for folder in survey.folders]}
    rows = [
        {
            "path": well_formed(one.path),
            "object_count": one.object_count,
            "floor_bytes": one.startup_min_bytes,
            "ceiling_bytes": one.startup_max_bytes,
            "start_bytes": one.start_bytes,
            "unused_bytes": one.unused_bytes,
            "unused": [well_formed(name) for name in one.unused],
            "is_complete": one.is_complete,
        }
        for one in survey.programs
    ]
    return envelope(version, {}, target) | {"count": survey.count, "programs": rows, "notes": note_rows(survey.notes)}
