"""What the scan hands to its workers, and what they hand back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from footprint.errors import Note
from footprint.process.descriptions import OpenFile
from footprint.process.memory_files import FileKeepers
from footprint.process.origin import CaptureHost
from footprint.verbs.scan.inputs import Candidate, Copies, ScanPlace

_Each = TypeVar("_Each")


class Settings(NamedTuple):
    """What holds for a whole scan.

    Attributes:
        scan: Its name, which no other scan has.
        folder: Where parts are written, before they belong to the dataset.
        moment: Its time, in UTC.
        has_commands: Whether command lines are kept.
        copies: The copies of what is in stores, with their addresses there.
    """

    scan: str
    folder: str
    moment: datetime
    has_commands: bool
    copies: Copies = ()


class Identity(NamedTuple):
    """What a candidate is.

    Attributes:
        kind: `program`, `file`, `record` or `process`; `series` for one audit of a series; `other` for no input.
        key: The build-id, or the digest of the contents.
        name: The soname of an ELF file; "" for none.
        host: What a capture says of its host.
    """

    kind: str
    key: str
    name: str = ""
    host: CaptureHost = CaptureHost()


class Item(NamedTuple):
    """An input that is to be read.

    Attributes:
        candidate: The input.
        identity: What it is.
        has_new_file: Whether its ELF file is not in the dataset yet.
        package: The package that the file is from, and its version; None where unknown.
        pid: The live process that it is; None for a file.
        open_files: The open file descriptions that the live process pays for.
        keepers: Who keeps the files in memory of all live processes.
    """

    candidate: Candidate
    identity: Identity
    has_new_file: bool = False
    package: tuple[str, str] | None = None
    pid: int | None = None
    open_files: tuple[OpenFile, ...] = ()
    keepers: FileKeepers | None = None


class Task(NamedTuple, Generic[_Each]):
    """Work on some candidates, or on some inputs whose rows become one part of the dataset.

    Attributes:
        settings: What holds for the whole scan.
        name: Its name, which orders the tasks; of inputs the name of the part.
        items: The candidates or inputs.
        is_deadly: Whether a worker was killed twice with them; then they are not read, and each is a note.
    """

    settings: Settings
    name: str
    items: tuple[_Each, ...]
    is_deadly: bool = False

    def pieces(self) -> "tuple[Task[_Each], ...]":
        """Return its halves; of one item a task that does not read it, of that nothing."""
        if self.is_deadly:
            return ()
        if len(self.items) == 1:
            return (self._replace(name=f"{self.name}x", is_deadly=True),)
        middle = len(self.items) // 2
        return (
            self._replace(name=f"{self.name}a", items=self.items[:middle]),
            self._replace(name=f"{self.name}b", items=self.items[middle:]),
        )


class PartDone(NamedTuple):
    """A part that was written.

    Attributes:
        part: Its name.
        input_count: The number of its inputs.
        process_count: The number of its processes.
        program_count: The number of its programs.
        file_count: The number of its ELF files.
        row_count: The number of its rows of ledgers.
        notes: The first of its notes, those that are the same once.
        note_count: The number of its notes.
        unreadable_count: The number of inputs of which nothing could be read.
        mapped: Where the files are that its processes and programs map, by build-id.
        unread_files: The keys of new ELF files that could not be read.
    """

    part: str
    input_count: int
    process_count: int
    program_count: int
    file_count: int
    row_count: int
    notes: tuple[Note, ...]
    note_count: int
    unreadable_count: int
    mapped: Mapping[str, tuple[ScanPlace, str]]
    unread_files: tuple[str, ...]
