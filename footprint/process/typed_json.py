"""A JSON document that somebody else made: its values are asked for by type, and any other refuses the document."""

import json
from collections.abc import Iterator
from typing import TypeGuard

from footprint.errors import InputError

__all__ = ("Fields", "parse_fields")


def parse_fields(text: bytes, source: str, name: str) -> "Fields":
    """Read a document that is one object.

    Args:
        text: The document.
        source: The file that it stands in, to use in messages.
        name: What it is called there.

    Raises:
        InputError: Where it is anything else.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"{name} is no JSON: {error}") from error
    return Fields(value, source, f"{name}: ")


class Fields:
    """A JSON object. What is asked for and is not there, or is of another type or range, raises an InputError."""

    def __init__(self, value: object, source: str, place: str) -> None:
        self._source = source
        self._place = place
        if not isinstance(value, dict):
            raise InputError(source, f"{place.rstrip(':. ')} is no object")
        self._values: dict[str, object] = value

    def text(self, key: str) -> str:
        """Give a text."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self._error(key, "text")
        return value

    def optional_text(self, key: str) -> str | None:
        """Give a text, or None where it is null or missing."""
        return None if self._values.get(key) is None else self.text(key)

    def number(self, key: str, most: int) -> int:
        """Give a whole number from 0 on."""
        value = self._values.get(key)
        if not _is_number(value, most):
            raise self._error(key, f"whole number from 0 to {most}")
        return value

    def optional_number(self, key: str, most: int) -> int | None:
        """Give a whole number from 0 on, or None where it is null or missing."""
        return None if self._values.get(key) is None else self.number(key, most)

    def numbers(self, key: str, most: int) -> tuple[int, ...]:
        """Give a list of whole numbers from 0 on."""
        values = self._list(key)
        numbers = tuple(value for value in values if _is_number(value, most))
        if len(numbers) < len(values):
            raise self._error(key, f"list of whole numbers from 0 to {most}")
        return numbers

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts."""
        values = self._list(key)
        texts = tuple(value for value in values if isinstance(value, str))
        if len(texts) < len(values):
            raise self._error(key, "list of texts")
        return texts

    def fields(self, key: str) -> "Fields":
        """Give an object."""
        return Fields(self._values.get(key), self._source, f"{self._place}{key}.")

    def each(self, key: str) -> Iterator["Fields"]:
        """Give the objects of a list."""
        for index, value in enumerate(self._list(key)):
            yield Fields(value, self._source, f"{self._place}{key}[{index}].")

    def _list(self, key: str) -> list[object]:
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self._error(key, "list")
        return value

    def _error(self, key: str, what: str) -> InputError:
        return InputError(self._source, f"{self._place}{key} is no {what}")


def _is_number(value: object, most: int) -> TypeGuard[int]:
    # True and False are numbers to Python, not to JSON.
    return type(value) is int and 0 <= value <= most
