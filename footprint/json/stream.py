"""The members of a large JSON object, read from pieces of its text: few of its values are in memory at a time."""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from footprint.errors import InputError

# Text of short values takes up to 25 times as much in memory.
_MOST_VALUE_CHARS: Final = 8 << 20
# Each object and list has more text than this; a text of brackets alone would fill the memory.
_LEAST_BYTES_PER_BRACKET: Final = 12
_SPARE_BYTES: Final = 4096
# What is between the elements of a list, and how many characters of it belong to the element before: of a list on lines
# of their own, as Valgrind and footprint write it, and of objects or texts on one line.
_BETWEEN: Final = (("\n ,", 0), (",\n", 0), ("},{", 1), ('","', 1), ("}, {", 1), ('", "', 1))
_SPACE: Final = re.compile(r"[ \t\n\r]*")
# A comma or an end, and the character behind it.
_DELIMITER: Final = re.compile(r"[ \t\n\r]*([,}\]])[ \t\n\r]*(?=[^ \t\n\r])")


def parsed(text: bytes, file: str, what: str) -> Any:  # noqa: ANN401 # any JSON
    """Read a short JSON text, whose size is bounded by its reader.

    Args:
        text: The text.
        file: The file that it is from, for errors.
        what: What the text is, for errors.

    Raises:
        InputError: It is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(file, f"{what} is not JSON: {error}") from error


def parsed_object(text: bytes, file: str, what: str) -> dict[str, Any]:
    """Read a JSON object like `parsed`."""
    value = parsed(text, file, what)
    if not isinstance(value, dict):
        raise InputError(file, f"{what} is not an object")
    return value


class JsonStream:
    """A JSON object that is read member by member.

    Args:
        pieces: The pieces of the text.
        what: What the text should be, for messages.
        source: The name of the file, for messages.
        mend: Corrects a part of the text that was not read yet. Bytes that are not UTF-8 are kept where there is one,
            else they are an error.
    """

    def __init__(
        self, pieces: Iterable[bytes], what: str, source: str, mend: Callable[[str], str] | None = None
    ) -> None:
        self._pieces, self._what, self._source, self._mend = iter(pieces), what, source, mend
        self._decode = getincrementaldecoder("utf-8")("surrogateescape" if mend else "strict").decode
        # The scanner of the library, in C. It raises StopIteration where there is no value.
        self._scan: Any = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
        # The text that is not yet read starts at `_at`; `_offset` is that of the first character.
        self._text, self._at, self._offset = "", 0, 0
        self._read_bytes = self._bracket_count = 0
        self._batched = -1

    def members(
        self, lists: Collection[str], quick: Mapping[str, Callable[[str], object | None]] = MappingProxyType({})
    ) -> Iterator[tuple[str, Any]]:
        """Yield the key and the value of each member.

        Args:
            lists: The keys of lists that are an iterator of parts of the list, which must be used up.
            quick: By such a key what reads the text of some elements, without the brackets, in place of them; it
                returns None where the text is of another form.

        Raises:
            InputError: Where the text is damaged, or not an object.
        """
        if self._character() != "{":
            raise self._error("not an object", 0)
        self._at += 1
        is_open = self._character() != "}"
        self._at += not is_open
        while is_open:
            if self._character() != '"':
                raise self._error("Expecting property name enclosed in double quotes", self._at)
            key = self._value()
            if self._character() != ":":
                raise self._error("Expecting ':' delimiter", self._at)
            self._at += 1
            if key in lists and self._character() == "[":
                yield key, self._elements(quick.get(key))
            else:
                yield key, self._value()
            is_open = self._has_next("}")
        if self._character():
            raise self._error("Extra data", self._at)

    def _elements(self, quick: Callable[[str], object | None] | None) -> Iterator[Any]:
        self._at += 1
        if self._character() == "]":
            self._at += 1
            return
        is_open = True
        while is_open:
            batch, offset = self._batch(quick), self._offset
            some = batch if isinstance(batch, list) else []
            if batch is not some:
                yield batch
            # One by one, up to the one that is cut at the end of the text.
            while is_open and self._offset == offset:
                some.append(self._value())
                is_open = self._has_next("]")
            yield some

    def _batch(self, quick: Callable[[str], object | None] | None) -> object:
        """Return most elements of the text in memory, read at once; none where it is not seen what is between them."""
        if self._batched == self._offset:
            return []
        self._batched = self._offset
        text, start = self._text, self._at
        places = ((text.rfind(mark, start), mark, kept) for mark, kept in _BETWEEN)
        place, mark, kept = next((place for place in places if place[0] >= 0), (-1, "", 0))
        if place < 0:
            return []
        part = text[start : place + kept]
        batch = quick(part) if quick else None
        try:
            batch, length = (batch, 0) if batch is not None else self._scan(f"[{part}]", 0)
        # What is wrong is found where the elements are read one by one.
        except (StopIteration, ValueError, RecursionError):
            return []
        if 0 < length < len(part) + 2:
            return []
        self._at = place + len(mark) - kept
        return batch

    def _has_next(self, end: str) -> bool:
        """Step over a comma or the end; return whether it is a comma."""
        match = _DELIMITER.match(self._text, self._at)
        character = match[1] if match else self._character()
        if character not in {",", end}:
            raise self._error("Expecting ',' delimiter", self._at)
        self._at = match.end() if match else self._at + 1
        return character == ","

    def _value(self) -> Any:  # noqa: ANN401 # any JSON
        self._character()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except StopIteration as stop:
                error = self._error("Expecting value", stop.value)
            except json.JSONDecodeError as damage:
                error = self._error(*_cause_and_place(damage, self._text))
            except RecursionError as damage:
                raise self._error("a value is nested too deeply", self._at) from damage
            except ValueError as damage:
                raise self._error("a number has too many digits", self._at) from damage
            else:
                # A number may go on in the next piece.
                is_whole = end < len(self._text) and self._text[end] not in ".eE"
                if is_whole or self._text[end - 1] in '}]"' or not self._has_more():
                    self._at = end
                    return value
                continue
            # The value may be cut at the end of the piece.
            if len(self._text) - self._at > _MOST_VALUE_CHARS:
                raise self._error(f"a value has more than {_MOST_VALUE_CHARS:,} characters", self._at)
            if not self._has_more():
                raise error

    def _character(self) -> str:
        """Step over space; return the character behind it, "" at the end of the text."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._has_more():
                return ""

    def _has_more(self) -> bool:
        """Read on, as much as is left to read at least; return whether there was more."""
        rest = self._text[self._at :]
        parts, least_bytes = [rest], len(rest)
        is_read = False
        for piece in self._pieces:
            is_read = True
            parts.append(self._decode(piece))
            self._read_bytes += len(piece)
            # Twice as quick as two counts, where there are many.
            self._bracket_count += len(piece) - len(piece.translate(None, b"{["))
            if self._bracket_count * _LEAST_BYTES_PER_BRACKET > self._read_bytes + _SPARE_BYTES:
                raise InputError(self._source, f"it is not {self._what}: it is mostly brackets")
            least_bytes -= len(piece)
            if least_bytes <= 0:
                break
        else:
            last = self._decode(b"", final=True)
            is_read = is_read or bool(last)
            parts.append(last)
        self._offset += _byte_count(self._text[: self._at])
        text = "".join(parts)
        self._text, self._at = self._mend(text) if self._mend else text, 0
        return is_read

    def _error(self, cause: str, at: int) -> InputError:
        return InputError(self._source, f"it is not {self._what}: {cause}", self._offset + _byte_count(self._text[:at]))


def _cause_and_place(damage: json.JSONDecodeError, text: str) -> tuple[str, int]:
    """Return what is wrong, and where: what follows a trailing comma, also since Python 3.13, which names the comma."""
    if not damage.msg.startswith("Illegal trailing comma"):
        return damage.msg, damage.pos
    space = _SPACE.match(text, damage.pos + 1)
    is_list = damage.msg.endswith("array")
    cause = "Expecting value" if is_list else "Expecting property name enclosed in double quotes"
    return cause, space.end() if space else damage.pos


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
