"""Read the data of an HTML report, as its script does."""

import base64
import json
import re
import zlib
from itertools import accumulate
from typing import Any

__all__ = ("answers_of", "decoded")

Json = dict[str, Any]


def unpacked(value: Any, texts: list[str | None]) -> Any:  # noqa: ANN401 # JSON
    """Restore the rows of tables, as the script of the report does."""
    if not isinstance(value, dict):
        return value
    if set(value) != {"rows", "keys", "texts", "steps", "values", "runs", "text_runs"}:
        return {key: unpacked(member, texts) for key, member in value.items()}
    columns = value["values"] | {key: list(accumulate(steps)) for key, steps in value["steps"].items()}
    columns |= {key: repeated(*runs) for key, runs in value["runs"].items()}
    columns |= {key: [texts[number] for number in repeated(*runs)] for key, runs in value["text_runs"].items()}
    columns |= {key: [texts[number] for number in accumulate(steps)] for key, steps in value["texts"].items()}
    return [{key: columns[key][row] for key in value["keys"]} for row in range(value["rows"])]


def repeated(values: list[Any], counts: list[int]) -> list[Any]:
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def decoded(data: str) -> Json:
    answers, texts = map(json.loads, zlib.decompress(base64.b64decode(data)).splitlines())
    found: Json = unpacked(answers, texts)
    return found


def answers_of(report: str) -> Json:
    match = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', report)
    assert match is not None
    return decoded(match[1])
