"""The variables of some ELF files, with the copies among them: what the rules about variables read."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from footprint.elf.initialisers import SourceInitialiser, read_initialisers
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.findings.copies import CopiedVariable, Lines, PrivateOf, SearchedFile, find_copies, with_private_bytes
from footprint.findings.linked_twice import LinkedTwice, linked_twice

__all__ = ("FileVariables", "Variables", "file_variables")


class FileVariables(NamedTuple):
    """The variables of one file.

    Attributes:
        statics: Its variables.
        declared: Where the debug information says that each is declared.
        copies: What it holds several times, the largest waste first.
        private_of: Counts the private bytes of the file in a live process; None where no process was asked.
    """

    statics: Statics
    declared: Lines
    copies: tuple[CopiedVariable, ...]
    private_of: PrivateOf | None = None

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
        sources: tuple[SourceInitialiser, ...] = ()
        # If tables of the file are damaged, the rest of the answer stands.
        with suppress(FootprintError):
            sources = read_initialisers(statics)
        return SearchedFile(self.file, *counts, self.copies, debug_file, statics.initialisers, sources)


class Variables:
    """The variables of some files that are looked at together.

    Attributes:
        files: Each file.
    """

    def __init__(self, files: Sequence[FileVariables]) -> None:
        self.files = tuple(files)

    @cached_property
    def linked_twice(self) -> tuple[LinkedTwice, ...]:
        """What several of the files hold, or one file several times; the largest waste first."""
        files = self.files
        return linked_twice(
            [one.statics for one in files], [one.copies for one in files], [one.declared for one in files]
        )


def file_variables(
    statics: Statics, declared: Lines, groups: Sequence[Sequence[Symbol]], private_of: PrivateOf | None = None
) -> FileVariables:
    """Find the copies among the variables of one file, in the groups of those with one name.

    Raises:
        InputError: Where its relocations are damaged.
    """
    copies = find_copies(statics, declared, groups)
    if private_of is not None:
        copies = with_private_bytes(copies, private_of)
    return FileVariables(statics, declared, copies, private_of)
