"""The schema of the JSON, as strict as what is written: with each member that older files may lack, and no others."""

import copy
import json
from typing import Any, Final

from jsonschema_rs import Draft202012Validator

from footprint.formats.words import SCHEMA_PATH

__all__ = ("READ", "WRITTEN")

Json = dict[str, Any]

_LATER: Final = "Not in what earlier versions wrote."


def _strict(schema: Json) -> Json:
    found = copy.deepcopy(schema)
    for part in found["$defs"].values():
        part["additionalProperties"] = False
        part["required"] += [name for name, one in part["properties"].items() if one.get("$comment") == _LATER]
    return found


_SCHEMA: Final = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
READ: Final = Draft202012Validator(_SCHEMA)
"""What any version wrote."""
WRITTEN: Final = Draft202012Validator(_strict(_SCHEMA))
"""What this version writes."""
