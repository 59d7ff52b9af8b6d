"""The pages of one object, one by one."""

from enum import IntEnum
from typing import NamedTuple

from footprint.model.row import MemoryKind

__all__ = ("PageMap", "PagePart", "PageState", "Place")


class PageState(IntEnum):
    """What is known of a page."""

    UNTOUCHED = 0
    """The process has not touched it, or the kernel has taken it back."""
    NOT_PRIVATE = 1
    """It is not private; whether the process has it in memory is unknown."""
    SHARED = 2
    """It is in memory, and others may have it too: the file's own page, or one that is COW-shared since a fork."""
    PRIVATE = 3
    """Only this process holds it, because it wrote to it."""
    RELOCATED = 4
    """Private, and relocations write it at each start."""
    SWAPPED = 5
    """Only this process holds it, on a swap device."""
    UNKNOWN = 6
    """Page bits could not be read: only how many of its mapping are private is known."""

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
    variables: tuple[Place, ...] | None
    omitted_pages: int = 0
    omitted_sections: int = 0
    omitted_variables: int = 0
