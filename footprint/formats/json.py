"""The members that every JSON answer has, and how an answer is written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

__all__ = ("SCHEMA_PATH", "Envelope", "Json", "Tool", "write")

SCHEMA_PATH: Final = Path(__file__).with_name("footprint-1.schema.json")

Json = dict[str, Any]


class Tool(NamedTuple):
    """The program that wrote the answer.

    Attributes:
        name: Always `footprint`.
        version: Its version.
    """

    name: Literal["footprint"]
    version: str


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """The members that an answer begins with.

    Attributes:
        schema: The name and number of the format. Added members keep the number, a change of meaning raises it.
        tool: The program that wrote the answer.
        verb: The verb that gave the answer.
        host: The `kernel` release and the `machine` of the host; empty where they are not known or do not matter.
    """

    schema: Literal["footprint/1"] = "footprint/1"
    tool: Tool
    verb: str
    host: Mapping[str, str]


def write(members: Json, _about: object = None) -> str:
    """Write an answer with each row of a table on its own line.

    A table of 30,000 rows is written quickly this way, and people can read it.
    """
    encode = json.JSONEncoder(separators=(", ", ": ")).encode
    texts = []
    for key, value in members.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(map(encode, value)) + "\n]"
        else:
            text = encode(value)
        texts.append(f"{encode(key)}: {text}")
    return "{" + ",\n".join(texts) + "}\n"
