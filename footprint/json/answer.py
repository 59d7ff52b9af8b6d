"""The members that every JSON answer has, and how an answer is written."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal

from footprint.members import NamedTuple, dataclass

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


class LargeTable(NamedTuple):
    """A table of an answer whose rows are made when they are written, since it may have a million.

    Attributes:
        rows: Returns the rows, as lists of plain JSON data.
        texts: Returns the same rows as JSON texts.
    """

    rows: Callable[[], Iterable[list[Json]]]
    texts: Callable[[], Iterable[Iterable[str]]]


def in_memory(members: Json) -> Json:
    """Return the members with each large table as a list, for a format that needs all rows at once."""
    return {
        key: list(chain.from_iterable(value.rows())) if isinstance(value, LargeTable) else value
        for key, value in members.items()
    }


def write(members: Json, about: object = None) -> str:
    """Format an answer with each row of a table on its own line.

    A table of 30,000 rows is written quickly this way, and people can read it.
    """
    return "".join(pieces(members, about))


def pieces(members: Json, _about: object = None) -> Iterator[str]:
    """Return the same answer in pieces: a large one is never whole in memory."""
    encode = json.JSONEncoder(separators=(", ", ": ")).encode
    before = "{"
    for key, value in members.items():
        yield f"{before}{encode(key)}: "
        before = ",\n"
        if isinstance(value, LargeTable):
            yield from _rows(value.texts())
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield from _rows([map(encode, value)])
        else:
            yield encode(value)
    yield "}\n"


def _rows(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    before = "[\n  "
    for part in parts:
        if text := ",\n  ".join(part):
            yield before
            yield text
            before = ",\n  "
    yield "[]" if before.startswith("[") else "\n]"
