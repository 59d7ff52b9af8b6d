"""Where the symbols of stripped files are looked for, as the user asks."""

import os
from collections.abc import Sequence
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


STANDARD_PLACES: Final = DebugSearch()


def debug_search(folders: Sequence[str], *, uses_servers: bool, is_off: bool) -> DebugSearch | None:
    """Return the search that the options of the command ask for; None if it is switched off.

    Raises:
        UsageError: Where they contradict each other, or a folder is none.
    """
    if not is_off:
        return check_search(DebugSearch(tuple(folders), uses_servers))
    if folders or uses_servers:
        raise UsageError("--no-debug-files goes with neither --debug-dir nor --debuginfod")
    return None


def check_search(search: DebugSearch) -> DebugSearch:
    """Raise a UsageError if one of the folders is none; else return the search."""
    for folder in search.folders:
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder")
    return search
