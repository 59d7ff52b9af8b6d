"""Stacks as a profile of pprof: gzip over the protocol buffer `perftools.profiles.Profile`, written field by field."""

import zlib
from collections.abc import Iterable
from typing import Final

from footprint.formats.document import About
from footprint.formats.stacks import Stacks
from footprint.text.escape import printable

# The numbers of the fields of profile.proto that are written.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRINGS = 1, 2, 3, 4, 5, 6
_COMMENT, _DEFAULT_SAMPLE_TYPE = 13, 14
_VARINT: Final = 0
_LENGTH: Final = 2


def pprof(stacks: Stacks, about: About) -> bytes:
    """Format a profile; the most important measure is the default sample type, and stands last as is the custom."""
    strings = _Strings()
    # Objects and frames are numbered from 1; 0 means none.
    names = dict.fromkeys(frame.object for frame in stacks.frames if frame.object)
    objects = {name: number for number, name in enumerate(names, 1)}
    order = list(reversed(range(len(stacks.measures))))
    parts = []
    for place in order:
        measure = stacks.measures[place]
        value_type = _number(1, strings.place(measure.name)) + _number(2, strings.place(measure.unit))
        parts.append(_message(_SAMPLE_TYPE, value_type))
    for sample in stacks.samples:
        # pprof wants the innermost frame first.
        locations = _packed(1, [place + 1 for place in reversed(sample.frames)])
        parts.append(_message(_SAMPLE, locations + _packed(2, [sample.amounts[place] for place in order])))
    for name, number in objects.items():
        has_names = _number(7, 1) + _number(8, 1) + _number(9, 1)
        parts.append(_message(_MAPPING, _number(1, number) + _number(5, strings.place(name)) + has_names))
    for number, frame in enumerate(stacks.frames, 1):
        line = _number(1, number) + _number(2, frame.line)
        location = _number(1, number) + _number(2, objects.get(frame.object, 0)) + _number(3, frame.addr)
        parts.append(_message(_LOCATION, location + _message(4, line)))
        function = (
            _number(1, number)
            + _number(2, strings.place(frame.name))
            + _number(3, strings.place(frame.linker_name or frame.name))
            + _number(4, strings.place(frame.file))
        )
        parts.append(_message(_FUNCTION, function))
    parts.append(_number(_COMMENT, strings.place(f"footprint {about.version}: {about.name}")))
    parts.append(_number(_DEFAULT_SAMPLE_TYPE, strings.place(stacks.measures[0].name)))
    parts += [_message(_STRINGS, text) for text in strings.all]
    # gzip without the time: equal answers make equal files.
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(b"".join(parts)) + packer.flush()


class _Strings:
    """The table of strings; the first one is empty."""

    def __init__(self) -> None:
        self._places = {b"": 0}

    def place(self, text: str) -> int:
        return self._places.setdefault(printable(text).encode(), len(self._places))

    @property
    def all(self) -> Iterable[bytes]:
        return self._places


def _number(field: int, value: int) -> bytes:
    """Format an integer field; 0 is the default and is not written."""
    return _varint(field << 3 | _VARINT) + _varint(value) if value else b""


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))


def _message(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Format a varint: seven bits per byte, the lowest first; a negative number as 64-bit two's complement."""
    left = value & 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
