"""The wire format of protocol buffers: the fields of a message, and packed numbers.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from collections.abc import Iterator
from typing import Final

from footprint.errors import InputError

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_FIXED_BYTES: Final = {_FIXED_64: 8, _FIXED_32: 4}
_MOST_SHIFT: Final = 63
_64_BITS: Final = (1 << 64) - 1


class Wire:
    """The bytes of a message, which have other messages inside.

    Args:
        data: The whole message.
        source: Its name in errors.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self._data, self._source = data, source

    def __len__(self) -> int:
        """Return the size in bytes."""
        return len(self._data)

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the fields of the message in a range: the tag, the number or the start of the bytes, and their end.

        The tag is the number of the field and the wire type: `number << 3 | wire type`.

        Raises:
            InputError: Where a field is damaged, or reaches beyond the message.
        """
        data, at = self._data, start
        while at < end:
            begin = at
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = self._varint(begin, end)
            wire = tag & 7
            if wire in {_VARINT, _LENGTH}:
                if at < end and (value := data[at]) < 0x80:
                    at += 1
                else:
                    value, at = self._varint(at, end)
                if wire == _VARINT:
                    yield tag, value, at
                    continue
                begin, at = at, at + value
            elif wire in _FIXED_BYTES:
                begin, at = at, at + _FIXED_BYTES[wire]
            else:
                raise InputError(self._source, f"a field of unknown wire type {wire}", begin)
            if at > end:
                raise InputError(self._source, "a field that is longer than its message", begin)
            yield tag, begin, at

    def numbers(self, start: int, end: int) -> list[int]:
        """Return the packed numbers in a range.

        Raises:
            InputError: Where a number is cut, or longer than 64 bits.
        """
        packed = self._data[start:end]
        # Below 128 each number is one byte.
        if packed.isascii():
            return list(packed)
        values, value, shift = [], 0, 0
        for byte in packed:
            if byte < 0x80:
                values.append((value | byte << shift) & _64_BITS)
                value = shift = 0
            elif shift < _MOST_SHIFT:
                value |= (byte & 0x7F) << shift
                shift += 7
            else:
                raise InputError(self._source, "a number of more than 64 bits", start)
        if shift:
            raise InputError(self._source, "a number that is cut", end)
        return values

    def text(self, start: int, end: int) -> str:
        """Return the text in a range."""
        return self._data[start:end].decode("utf-8", "surrogateescape")

    def _varint(self, start: int, end: int) -> tuple[int, int]:
        value = shift = 0
        for at in range(start, min(end, start + 10)):
            byte = self._data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _64_BITS, at + 1
            shift += 7
        cause = "a number of more than 64 bits" if end - start >= 10 else "a number that is cut"
        raise InputError(self._source, cause, start)


def signed(value: int) -> int:
    """Convert a 64-bit number to a signed one."""
    return value - (1 << 64) if value >> 63 else value
