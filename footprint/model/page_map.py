"""The pages of one object, one by one."""

from collections.abc import Sequence
from enum import IntEnum

from footprint.members import NamedTuple
from footprint.model.row import MemoryKind


class PageState(IntEnum):
    """What is known of a page."""

    UNTOUCHED = 0
    """Not in memory."""
    NOT_PRIVATE = 1
    """Not private; whether it is in memory is not known."""
    SHARED = 2
    """In memory, and perhaps of others too."""
    PRIVATE = 3
    """Only this process holds it."""
    RELOCATED = 4
    """Private, and written by relocations at each start."""
    SWAPPED = 5
    """Private, on a swap device."""
    UNKNOWN = 6
    """Page bits could not be read."""

    @property
    def word(self) -> str:
        """The name of the state in words."""
        return self.name.lower().replace("_", " ")


class PagePart(NamedTuple):
    """Neighbouring pages of an object that are mapped alike.

    Attributes:
        start_addr: Where they begin.
        kind: What they are for.
        permissions: Four letters as in `/proc/PID/maps`.
        runs: The states of the pages, in the order of their addresses, each with a number of pages.
    """

    start_addr: int
    kind: MemoryKind
    permissions: str
    runs: tuple[tuple[PageState, int], ...]


class Place(NamedTuple):
    """What lies at some addresses: a section, or in a section a variable, or why there is none.

    Attributes:
        addr: Where it begins.
        size_bytes: How long it is.
        section: The section.
        symbol: The linker name, or in brackets why there is none; None for a whole section.
    """

    addr: int
    size_bytes: int
    section: str
    symbol: str | None


class PageMap(NamedTuple):
    """The pages of one object.

    Attributes:
        owner: Its path, as the rows of the ledger have it.
        parts: Its pages, ascending.
        sections: Its sections, as far as they lie between the first of these pages and the last.
        variables: What lies in the writable sections; None in a saved audit.
        omitted_pages: The number of pages beyond the limit of an audit.
        omitted_sections: The number of sections beyond it.
        omitted_variables: The number of variables beyond it.
    """

    owner: str
    parts: tuple[PagePart, ...]
    sections: tuple[Place, ...]
    variables: Sequence[Place] | None
    omitted_pages: int = 0
    omitted_sections: int = 0
    omitted_variables: int = 0
