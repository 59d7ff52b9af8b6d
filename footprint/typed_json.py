"""A JSON document from an untrusted source: a value of another type than the requested one is an error."""

import json
from collections.abc import Iterator
from typing import TypeGuard

from footprint.errors import InputError

__all__ = ("Fields", "parse_fields")


def parse_fields(text: bytes, source: str, name: str) -> "Fields":
    """Read a JSON document whose top level is an object.

    Args:
        text: The document.
        source: The file that holds the document, for messages.
        name: The name of the document within that file.

    Raises:
        InputError: Where it is not JSON, or not an object.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"{name} is not JSON: {error}") from error
    return Fields(value, source, f"{name}: ")


class Fields:
    """A JSON object. Every method raises an InputError where the value is missing, or of another type or range."""

    def __init__(self, value: object, source: str, place: str) -> None:
        self._source = source
        self._place = place
        if not isinstance(value, dict):
            raise InputError(source, f"{place.rstrip(':. ')} is not an object")
        self._values: dict[str, object] = value

    def has(self, key: str) -> bool:
        """Return whether there is a value."""
        return key in self._values

    def text(self, key: str) -> str:
        """Return a string."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a string, or None where it is null or missing."""
        return None if self._values.get(key) is None else self.text(key)

    def number(self, key: str, most: int) -> int:
        """Return an integer from 0 to `most`."""
        value = self._values.get(key)
        if not _is_number(value, most):
            raise self.error(key, f"an integer from 0 to {most}")
        return value

    def optional_number(self, key: str, most: int) -> int | None:
        """Return an integer from 0 to `most`, or None where it is null or missing."""
        return None if self._values.get(key) is None else self.number(key, most)

    def numbers(self, key: str, most: int) -> tuple[int, ...]:
        """Return a list of integers from 0 to `most`."""
        values = self._list(key)
        numbers = tuple(value for value in values if _is_number(value, most))
        if len(numbers) < len(values):
            raise self.error(key, f"a list of integers from 0 to {most}")
        return numbers

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self._list(key)
        texts = tuple(value for value in values if isinstance(value, str))
        if len(texts) < len(values):
            raise self.error(key, "a list of strings")
        return texts

    def numbers_by_key(self, key: str, most: int) -> dict[str, int]:
        """Return an object whose values are integers from 0 to `most`."""
        values = self._object(key)
        numbers = {one: value for one, value in values.items() if _is_number(value, most)}
        if len(numbers) < len(values):
            raise self.error(key, f"an object of integers from 0 to {most}")
        return numbers

    def lists_of_numbers(self, key: str, most: int) -> dict[str, list[int]]:
        """Return an object whose values are lists of integers from 0 to `most`."""
        found: dict[str, list[int]] = {}
        for one, values in self._object(key).items():
            numbers = [value for value in values if _is_number(value, most)] if isinstance(values, list) else None
            if numbers is None or len(numbers) < len(values):  # type: ignore[arg-type] # a list, where there are numbers
                raise self.error(key, f"an object of lists of integers from 0 to {most}")
            found[one] = numbers
        return found

    def fields(self, key: str) -> "Fields":
        """Return an object."""
        return Fields(self._values.get(key), self._source, f"{self._place}{key}.")

    def truth(self, key: str) -> bool:
        """Return a truth value."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def each(self, key: str, *, is_optional: bool = False) -> Iterator["Fields"]:
        """Return the objects of a list, one after the other; of an optional list that is missing none."""
        if is_optional and key not in self._values:
            return
        for index, value in enumerate(self._list(key)):
            yield Fields(value, self._source, f"{self._place}{key}[{index}].")

    def _list(self, key: str) -> list[object]:
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self.error(key, "a list")
        return value

    def _object(self, key: str) -> dict[str, object]:
        value = self._values.get(key)
        if not isinstance(value, dict):
            raise self.error(key, "an object")
        return value

    def error(self, key: str, what: str) -> InputError:
        """Return the error for a value that is something else."""
        return InputError(self._source, f"{self._place}{key} is not {what}")


def _is_number(value: object, most: int) -> TypeGuard[int]:
    # bool is a subclass of int in Python, but not a number in JSON.
    return type(value) is int and 0 <= value <= most
