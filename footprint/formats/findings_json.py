"""The rows of `findings`."""

from collections.abc import Iterable

from footprint.formats.escape import well_formed
from footprint.formats.json import Json
from footprint.model.finding import Finding

__all__ = ("finding_rows",)


def finding_rows(findings: Iterable[Finding], count: int) -> list[Json]:
    """Give the table of findings, with what each saves in so many processes."""
    return [
        {
            "rule": one.rule,
            "kind": one.kind,
            "subject": well_formed(one.subject),
            "message": well_formed(one.message),
            "saving_bytes": one.saving_bytes,
            "saving_at_count_bytes": one.saving_bytes * count,
            "saving_per": "thread" if one.is_per_thread else "process",
            "private_bytes": one.private_bytes,
            "confidence": one.confidence.value,
            "reasons": [well_formed(reason) for reason in one.reasons],
            "remedy": well_formed(one.remedy),
            "leaves": [well_formed(path) for path in one.leaves],
            "object": well_formed(one.object_path) or None,
            "location": None
            if one.location is None
            else {"file": well_formed(one.location.file), "line": one.location.line},
        }
        for one in findings
    ]
