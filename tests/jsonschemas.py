"""Validate JSON with the schema, made as strict as what is written: members that older files may lack are required."""

import copy
import json
from typing import Any, Final

from jsonschema import Draft202012Validator

from footprint.formats.json import SCHEMA_PATH

__all__ = ("READ", "WRITTEN")

Json = dict[str, Any]

_LATER: Final = "Not in what earlier versions wrote."
_TABLES: Final = {"audit": ("objects", "heap_account"), "heap": ("tallies",)}


def _strict(schema: Json) -> Json:
    found = copy.deepcopy(schema)
    for answer in found["oneOf"]:
        tables = _TABLES.get(answer["title"], ())
        assert all(found["properties"][table]["$comment"] == _LATER for table in tables)
        answer["required"] += tables
    for part in [*found["properties"].values(), *found["$defs"].values()]:
        _require(part)
    return found


def _require(part: object) -> None:
    """Require the members of all objects in a part of a schema that were added later."""
    if isinstance(part, list):
        for one in part:
            _require(one)
    elif isinstance(part, dict):
        members = part.get("properties")
        if isinstance(members, dict) and "required" in part:
            part["required"] += [name for name, one in members.items() if one.get("$comment") == _LATER]
        for one in part.values():
            _require(one)


_SCHEMA: Final = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
READ: Final = Draft202012Validator(_SCHEMA)
"""What any version wrote."""
WRITTEN: Final = Draft202012Validator(_strict(_SCHEMA))
"""What this version writes."""
