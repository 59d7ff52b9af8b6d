"""What can go wrong, as one tree.

FootprintError
├── InputError        the input cannot be read as what it claims to be: file, offset, cause
│   └── UnsupportedError  it is valid, but footprint does not handle it
├── AccessError       the system refuses: permission, or the process is gone
└── UsageError        the question itself is wrong: a bare "M", an unknown target

A thing that goes wrong without ending the answer is a `Note`.
"""

from typing import NamedTuple

__all__ = ("AccessError", "FootprintError", "InputError", "Note", "UnsupportedError", "UsageError")


class FootprintError(Exception):
    """The root of every error that footprint raises on purpose."""

    @property
    def detail(self) -> str:
        """Give what went wrong without saying again in which file."""
        return str(self)


class InputError(FootprintError):
    """An input that cannot be read as what it claims to be.

    Attributes:
        file: The input's name, as the user gave it.
        offset: Where in the file the damage is, in bytes, or None where the whole file is meant.
        cause: What is wrong there, in one clause.
    """

    def __init__(self, file: str, cause: str, offset: int | None = None) -> None:
        self.file = file
        self.offset = offset
        self.cause = cause
        place = file if offset is None else f"{file}: offset {offset:#x}"
        super().__init__(f"{place}: {cause}")

    @property
    def detail(self) -> str:
        """Give the place in the file and the cause."""
        return self.cause if self.offset is None else f"offset {self.offset:#x}: {self.cause}"


class UnsupportedError(InputError):
    """A valid input of a kind that footprint does not handle."""


class AccessError(FootprintError):
    """The system does not let us read: a permission is missing, or the process has ended."""

    def __init__(self, subject: str, cause: str) -> None:
        self.subject = subject
        self.cause = cause
        super().__init__(f"{subject}: {cause}")

    @property
    def detail(self) -> str:
        """Give the cause."""
        return self.cause


class UsageError(FootprintError):
    """A question that cannot be answered as it was put."""


class Note(NamedTuple):
    """Something the reader of a figure must know, that did not stop the answer.

    Attributes:
        slug: A stable word for the kind of note, such as `text-truncated`; `docs/notes.md` explains each.
        subject: What it is about: a file, a mapping, an object.
        detail: What was found, and what was done about it.
    """

    slug: str
    subject: str
    detail: str
