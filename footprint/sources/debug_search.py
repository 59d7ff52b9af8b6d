"""Where the symbols of stripped files are looked for, as the user asks.

Options name the places; `debug_files` looks there, which few answers need.
"""

import os
from typing import Final

from footprint.errors import UsageError
from footprint.members import NamedTuple
from footprint.system.files import StrPath


class DebugSearch(NamedTuple):
    """Where to look for the symbols of stripped files.

    Attributes:
        folders: Folders with debug files, besides `/usr/lib/debug`, those beside the file, and debuginfod's cache.
        uses_servers: Whether to ask the servers of DEBUGINFOD_URLS for what is not there.
    """

    folders: tuple[StrPath, ...] = ()
    uses_servers: bool = False

    def check(self) -> None:
        """Raise a UsageError if one of the folders is none."""
        for folder in self.folders:
            if not os.path.isdir(folder):
                raise UsageError(f"{folder} is not a folder")


STANDARD_PLACES: Final = DebugSearch()
