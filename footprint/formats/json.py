"""What every JSON answer has, and how it is written."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from footprint.errors import Note
from footprint.formats.escape import well_formed

__all__ = ("SCHEMA_PATH", "Json", "envelope", "note_rows", "write")

SCHEMA: Final = "footprint/1"
SCHEMA_PATH: Final = Path(__file__).with_name("footprint-1.schema.json")

Json = dict[str, Any]


def envelope(version: str, host: dict[str, str], target: Json) -> Json:
    """Give the members that every answer begins with."""
    return {"schema": SCHEMA, "tool": {"name": "footprint", "version": version}, "host": host, "target": target}


def note_rows(notes: Iterable[Note]) -> list[Json]:
    """Give the table of notes."""
    return [
        {"slug": note.slug, "subject": well_formed(note.subject), "detail": well_formed(note.detail)} for note in notes
    ]


def write(envelope: Json, _about: object = None) -> str:
    """Write one row of a table a line: a table of 30,000 rows stays quick to write, and can be read by eye."""
    encode = json.JSONEncoder(separators=(", ", ": ")).encode
    members = []
    for key, value in envelope.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(map(encode, value)) + "\n]"
        else:
            text = encode(value)
        members.append(f"{encode(key)}: {text}")
    return "{" + ",\n".join(members) + "}\n"
