"""`trend --json`."""

from datetime import UTC, datetime

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.model.figures import FIGURES
from footprint.release.history import History, Release, Trend

__all__ = ("release_row", "trend_members")


def trend_members(found: History, version: str) -> Json:
    """Give the releases of each program, and how its figures went."""
    releases = [release_row(one) for of_one in found.releases.values() for one in of_one]
    return envelope(version, {}, {"history": well_formed(found.file)}) | {
        "releases": releases,
        "trends": [_trend(one) for one in found.trends],
        "notes": note_rows(found.notes),
    }


def release_row(one: Release) -> Json:
    """Give a release as a row."""
    return {
        "program": well_formed(one.program),
        "version": well_formed(one.version),
        "is_commit": one.is_commit,
        "time": datetime.fromtimestamp(one.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": well_formed(one.source),
        "tool_version": well_formed(one.tool_version),
    }


def _trend(one: Trend) -> Json:
    step = one.largest_step
    return {
        "program": well_formed(one.program),
        "figure": one.figure,
        "owner": None if one.owner is None else well_formed(one.owner),
        "unit": FIGURES[one.figure].unit.value,
        "values": list(one.values),
        "first": one.first,
        "last": one.last,
        "change": one.change,
        "largest_step": None
        if step is None
        else {
            "before": well_formed(step.before),
            "after": well_formed(step.after),
            "delta": step.delta,
            "owner": None if step.owner is None else well_formed(step.owner),
            "owner_delta": step.owner_delta,
        },
    }
