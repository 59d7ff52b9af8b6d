"""The variables of some ELF files, with the copies among them: what the rules about variables read."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from footprint.elf.initialisers import SourceInitialiser, read_initialisers
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.findings.copies import (
    CopiedVariable,
    Lines,
    PrivateOf,
    SearchedFile,
    find_copies,
    with_heap,
    with_private_bytes,
)
from footprint.findings.linked_twice import LinkedTwice, linked_twice
from footprint.members import NamedTuple
from footprint.model.finding import Finding


class FileVariables(NamedTuple):
    """The variables of one file.

    Attributes:
        statics: Its variables.
        declared: Where the debug information says that each is declared.
        copies: What it holds several times, the largest waste first.
        private_of: Counts the private bytes of the file in a live process; None where no process was asked.
        initialisers: The functions that run at start; None where they were not read.
    """

    statics: Statics
    declared: Lines
    copies: tuple[CopiedVariable, ...]
    private_of: PrivateOf | None = None
    initialisers: tuple[SourceInitialiser, ...] | None = None

    @property
    def file(self) -> str:
        """Return the path of the file."""
        return self.statics.image.file

    @property
    def summary(self) -> SearchedFile:
        """Return the copies with the counts that a report shows beside them."""
        statics = self.statics
        debug_file = None if statics.debug is None else statics.debug.image.file
        counts = len(statics.statics), len(statics.units)
        sources = _initialisers(statics) if self.initialisers is None else self.initialisers
        return SearchedFile(self.file, *counts, self.copies, debug_file, *statics.initialisers, sources)


def _initialisers(statics: Statics) -> tuple[SourceInitialiser, ...]:
    # If tables of the file are damaged, the rest of the answer stands.
    with suppress(FootprintError):
        return read_initialisers(statics)
    return ()


class Variables:
    """The variables of some files that are looked at together.

    Attributes:
        files: Each file.
    """

    def __init__(self, files: Sequence[FileVariables]) -> None:
        self.files = tuple(files)

    def search(self, find: Callable[[Statics, Lines, PrivateOf | None], tuple[Finding, ...]]) -> tuple[Finding, ...]:
        """Return what is found in each file; where tables of one are damaged, the rest of the answer stands."""
        findings: list[Finding] = []
        for file in self.files:
            with suppress(FootprintError):
                findings += find(file.statics, file.declared, file.private_of)
        return tuple(findings)

    @cached_property
    def linked_twice(self) -> tuple[LinkedTwice, ...]:
        """What several of the files hold, or one file several times; the largest waste first."""
        files = self.files
        return linked_twice(
            [file.statics for file in files], [file.copies for file in files], [file.declared for file in files]
        )


def file_variables(
    statics: Statics, declared: Lines, groups: Sequence[Sequence[Symbol]], private_of: PrivateOf | None = None
) -> FileVariables:
    """Find the copies among the variables of one file, in the groups of those with one name.

    Raises:
        InputError: Where its relocations are damaged.
    """
    copies, initialisers = find_copies(statics, declared, groups), None
    if any(copy.is_mutable for copy in copies):
        initialisers = _initialisers(statics)
        heap_of: Counter[int] = Counter()
        for initialiser in initialisers:
            heap_of.update(initialiser.heap_of)
        copies = with_heap(copies, heap_of)
    if private_of is not None:
        copies = with_private_bytes(copies, private_of)
    return FileVariables(statics, declared, copies, private_of, initialisers)
