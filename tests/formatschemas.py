"""What the readers of some formats ask of a file, as strict as what is written."""

from pathlib import Path
from typing import Final

from xmlschema import XMLSchema

__all__ = ("GITLAB_SCHEMA", "JUNIT_SCHEMA", "SPEEDSCOPE_SCHEMA")

JUNIT_SCHEMA: Final = XMLSchema(Path(__file__).with_name("junit.xsd"))
_TEXT: Final = {"type": "string", "minLength": 1}
# What GitLab's documentation lists: each entry has these five, and the path is relative to the root of the repository.
GITLAB_SCHEMA: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "description": _TEXT,
            "check_name": _TEXT,
            "fingerprint": _TEXT,
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "not": {"pattern": r"^\./"}},
                    "lines": {
                        "type": "object",
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                        "required": ["begin"],
                        "additionalProperties": False,
                    },
                },
                "required": ["path", "lines"],
                "additionalProperties": False,
            },
        },
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
    },
}

# What speedscope's description of its format asks of a file with sampled profiles.
SPEEDSCOPE_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"},
        "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "integer", "minimum": 0},
        "shared": {
            "type": "object",
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "integer", "minimum": 1},
                            "col": {"type": "integer", "minimum": 1},
                        },
                        "required": ["name"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["frames"],
            "additionalProperties": False,
        },
        "profiles": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "type": {"const": "sampled"},
                    "name": {"type": "string"},
                    "unit": {"enum": ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]},
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "samples": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
                    },
                    "weights": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
                },
                "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["$schema", "shared", "profiles"],
    "additionalProperties": False,
}

# What the Trace Event Format asks of the events that are written: names, counters, spans and instants.
_TRACE_TEXT: Final = {"type": "string"}
_TRACE_TIME: Final = {"type": "integer", "minimum": 0}
_TRACE_PLACE: Final = {"pid": {"type": "integer"}, "tid": {"type": "integer"}, "name": _TRACE_TEXT}
TRACE_SCHEMA: Final = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object", "additionalProperties": _TRACE_TEXT},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "properties": {
                            **_TRACE_PLACE,
                            "ph": {"const": "M"},
                            "args": {"type": "object", "properties": {"name": _TRACE_TEXT}, "required": ["name"]},
                        },
                        "required": ["ph", "pid", "tid", "name", "args"],
                        "additionalProperties": False,
                    },
                    {
                        "properties": {
                            **_TRACE_PLACE,
                            "ph": {"const": "C"},
                            "ts": _TRACE_TIME,
                            "args": {"type": "object", "additionalProperties": {"type": "integer"}},
                        },
                        "required": ["ph", "pid", "tid", "name", "ts", "args"],
                        "additionalProperties": False,
                    },
                    {
                        "properties": {
                            **_TRACE_PLACE,
                            "ph": {"const": "X"},
                            "ts": _TRACE_TIME,
                            "dur": {"type": "integer", "minimum": 1},
                            "args": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
                        },
                        "required": ["ph", "pid", "tid", "name", "ts", "dur", "args"],
                        "additionalProperties": False,
                    },
                    {
                        "properties": {**_TRACE_PLACE, "ph": {"const": "i"}, "ts": _TRACE_TIME, "s": {"const": "g"}},
                        "required": ["ph", "pid", "tid", "name", "ts", "s"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
    },
}
