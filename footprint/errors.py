"""The errors of footprint, as one tree.

FootprintError
├── InputError        the input cannot be read as what it claims to be: file, offset, cause
│   ├── UnsupportedError  it is valid, but footprint does not handle it
│   ├── LimitError        it makes more work than the limits allow
│   └── UnbalancedError   the rows made of it do not add up to its totals
├── AccessError       the system refuses: permission, or the process is gone
└── UsageError        the question is wrong: a bare "M", an unknown target

A problem that does not end the answer is a `Note`.
"""

from typing import Annotated, Any, Final

from footprint.members import NamedTuple, Pattern

_EMPTY_NAME: Final = "''"


class FootprintError(Exception):
    """The root of every error that footprint raises on purpose."""

    @property
    def detail(self) -> str:
        """What went wrong, without the name of the file."""
        return str(self)

    def renamed(self, before: str, after: str) -> "FootprintError":
        """Return the same error with another name in place of one."""
        members = {
            name: value.replace(before, after) if isinstance(value, str) else value
            for name, value in vars(self).items()
        }
        return _made_again(type(self), str(self).replace(before, after), members)

    def __reduce__(self) -> tuple[Any, ...]:
        # A process of a pool hands its errors over; most are made of other words than their text.
        return _made_again, (type(self), str(self), self.__dict__)


def _made_again(kind: type[FootprintError], text: str, members: dict[str, Any]) -> FootprintError:
    error = kind.__new__(kind, text)
    error.__dict__.update(members)
    return error


class InputError(FootprintError):
    """An input that cannot be read as what it claims to be.

    Attributes:
        file: The input's name, as the user gave it.
        offset: The offset of the damage in bytes, or None where the whole file is meant.
        cause: What is wrong there, in one clause.
    """

    def __init__(self, file: str, cause: str, offset: int | None = None) -> None:
        self.file = file
        self.offset = offset
        self.cause = cause
        place = "" if offset is None else f" offset {offset:#x}:"
        super().__init__(f"{file or _EMPTY_NAME}:{place} {cause}")

    @property
    def detail(self) -> str:
        """The offset in the file, and the cause."""
        return self.cause if self.offset is None else f"offset {self.offset:#x}: {self.cause}"


class UnsupportedError(InputError):
    """A valid input of a kind that footprint does not handle."""


class LimitError(InputError):
    """Input that makes more work than the limits of one answer allow."""

    def __init__(self, file: str, cause: str, name: str, more: str) -> None:
        super().__init__(file, f"{cause}; raise it with --limits {name}={more.replace(' ', '')}")


class UnbalancedError(InputError, ValueError):
    """Input whose rows do not add up to its totals: a defect of footprint, which damaged input can bring out."""


class AccessError(FootprintError):
    """The system refuses to let us read: a permission is missing, or the process has ended."""

    def __init__(self, subject: str, cause: str) -> None:
        self.subject = subject
        self.cause = cause
        super().__init__(f"{subject or _EMPTY_NAME}: {cause}")

    @property
    def detail(self) -> str:
        """The cause."""
        return self.cause


class UsageError(FootprintError):
    """A question that cannot be answered as it is."""


def cause_of(error: OSError | ValueError) -> str:
    """Return why the system refused a call, in a few words."""
    return getattr(error, "strerror", None) or str(error)


class Note(NamedTuple):
    """Something that the reader of a figure must know, and that did not stop the answer.

    Attributes:
        slug: A stable word for the kind of note, such as `text-truncated`; `docs/notes.md` explains each.
        subject: The file, mapping or object that the note is about.
        detail: What was found, and what footprint did about it.
    """

    slug: Annotated[str, Pattern("^[a-z0-9]+(-[a-z0-9]+)*$")]
    subject: str
    detail: str
