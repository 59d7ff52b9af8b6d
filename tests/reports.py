"""Read the data of an HTML report, as its script does."""

import base64
import json
import re
import zlib
from typing import Any

__all__ = ("answers_of", "decoded")

Json = dict[str, Any]


def unpacked(value: Any, texts: list[str]) -> Any:  # noqa: ANN401 # JSON
    """Restore the rows of tables, as the script of the report does."""
    if not isinstance(value, dict):
        return value
    if set(value) != {"rows", "keys", "texts", "values"}:
        return {key: unpacked(member, texts) for key, member in value.items()}
    columns = value["values"] | {
        key: [None if place < 0 else texts[place] for place in places] for key, places in value["texts"].items()
    }
    return [{key: columns[key][row] for key in value["keys"]} for row in range(value["rows"])]


def decoded(data: str) -> Json:
    whole = json.loads(zlib.decompress(base64.b64decode(data)))
    texts: list[str] = []
    for shared, rest in zip(whole["texts"]["shared"], whole["texts"]["rests"], strict=True):
        texts.append((texts[-1] if texts else "")[:shared] + rest)
    found: Json = unpacked(whole["answers"], texts)
    return found


def answers_of(report: str) -> Json:
    found = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', report)
    assert found is not None
    return decoded(found[1])
