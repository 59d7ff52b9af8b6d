"""Stacks as a file of speedscope (https://www.speedscope.app/file-format-schema.json)."""

import json
from typing import Any, Final

from footprint.formats.document import About
from footprint.formats.stacks import Stacks
from footprint.text.escape import printable

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_UNITS: Final = {"bytes": "bytes", "count": "none"}


def speedscope(stacks: Stacks, about: About) -> str:
    """Format one profile for each measure, the most important first."""
    frames: list[dict[str, Any]] = []
    for frame in stacks.frames:
        entry: dict[str, Any] = {"name": printable(frame.name)}
        if frame.file or frame.object:
            # speedscope colours frames by their file: the object stands in for an unknown source file.
            entry["file"] = printable(frame.file or frame.object)
        if frame.file and frame.line:
            entry["line"] = frame.line
        frames.append(entry)
    profiles = [_profile(stacks, place, about.name) for place in range(len(stacks.measures))]
    head = {
        "$schema": SCHEMA,
        "name": printable(about.name),
        "exporter": f"footprint@{about.version}",
        "activeProfileIndex": 0,
    }
    members = [*head.items(), ("shared", {"frames": frames}), ("profiles", profiles)]
    return "{" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in members) + "}\n"


def _profile(stacks: Stacks, place: int, name: str) -> dict[str, Any]:
    measure = stacks.measures[place]
    shown = [sample for sample in stacks.samples if sample.amounts[place]]
    weights = [sample.amounts[place] for sample in shown]
    return {
        "type": "sampled",
        "name": f"{measure.name}: {printable(name)}",
        "unit": _UNITS[measure.unit],
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [list(sample.frames) for sample in shown],
        "weights": weights,
    }
