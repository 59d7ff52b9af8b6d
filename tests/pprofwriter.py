"""Write the protocol buffer of pprof from values; a profile that is read from it must have them again."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Call(NamedTuple):
    """One function of a location, and where it was called from."""

    function: str
    file: str = ""
    line: int = 0
    linker_name: str = ""


class Location(NamedTuple):
    """An address, its functions (the innermost first), and the number of its mapping."""

    addr: int
    calls: tuple[Call, ...] = ()
    mapping: int = 0


class Map(NamedTuple):
    """A mapping; the first one has the number 1."""

    start_addr: int
    end_addr: int
    offset: int
    path: str
    build_id: str = ""


class Sample(NamedTuple):
    """The numbers of the locations, the innermost and 1 first, and one amount for each sample type."""

    locations: tuple[int, ...]
    amounts: tuple[int, ...]


def varint(value: int) -> bytes:
    left, found = value & (1 << 64) - 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    return message(field, b"".join(map(varint, values)))


def pprof(
    types: Sequence[tuple[str, str]],
    samples: Sequence[Sample],
    locations: Sequence[Location] = (),
    mappings: Sequence[Map] = (),
    *,
    period: tuple[str, str, int] | None = None,
    comments: Sequence[str] = (),
    default_type: str = "",
) -> bytes:
    """Write a whole profile, with the order of fields of most writers: the strings come last."""
    strings: dict[str, int] = {"": 0}

    def place(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def type_of(name: str, unit: str) -> bytes:
        return number(1, place(name)) + number(2, place(unit))

    functions: dict[Call, int] = {}
    parts = [message(1, type_of(*kind)) for kind in types]
    parts += [message(2, packed(1, sample.locations) + packed(2, sample.amounts)) for sample in samples]
    for place_of, mapping in enumerate(mappings, 1):
        start, end, offset, path, build_id = mapping
        fields = (place_of, start, end, offset, place(path), place(build_id))
        parts.append(message(3, b"".join(number(field, value) for field, value in enumerate(fields, 1))))
    for place_of, location in enumerate(locations, 1):
        body = number(1, place_of) + number(2, location.mapping) + number(3, location.addr)
        for call in location.calls:
            function = functions.setdefault(call._replace(line=0), len(functions) + 1)
            body += message(4, number(1, function) + number(2, call.line))
        parts.append(message(4, body))
    for call, place_of in functions.items():
        names = (place(call.function), place(call.linker_name or call.function), place(call.file))
        parts.append(message(5, b"".join(number(field, value) for field, value in enumerate((place_of, *names), 1))))
    if period is not None:
        parts += [message(11, type_of(*period[:2])), number(12, period[2])]
    parts += [number(13, place(text)) for text in comments]
    parts.append(number(14, place(default_type)))
    return b"".join([*parts, *(message(6, text.encode("utf-8", "surrogateescape")) for text in strings)])
