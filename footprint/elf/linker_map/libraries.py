"""The shared libraries that a map of GNU ld lists: the line that loads each, and what needed it.

    As-needed library included to satisfy reference by file (symbol)

    libz.so.1                     main.o (zlibVersion)     (with --as-needed; a long name has a line to itself)

    LOAD /usr/lib/x86_64-linux-gnu/libz.so

Headings are translated, so the reader does not use them. The maps of gold, lld and mold do not list libraries.

Source: binutils 2.40, its output.
"""

import re
from typing import Final, NamedTuple

from footprint.elf.image import Buffer
from footprint.elf.linker_map.facts import Linker
from footprint.elf.linker_map.gnu import linker_of_gnu
from footprint.errors import UnsupportedError

__all__ = ("LinkedLibrary", "linked_libraries")

_LINE: Final = re.compile(
    rb"(?m)^(?:LOAD ([^\n]{0,4096}\.so[.0-9]{0,64})\r?$"
    rb"|(\S{1,4096}\.so[.0-9]{0,64})(?: {1,64}|\r?\n {8,64})(\S{1,4096} \([^)\n]{1,4096}\))\r?$)"
)
_MOST_LIBRARIES: Final = 10_000


class LinkedLibrary(NamedTuple):
    """A shared library of a map.

    Attributes:
        line: The line that loads it, from 1; None if it is loaded by another name.
        needed_for: The first object that needs it, with the symbol; None if the map does not tell.
    """

    line: int | None
    needed_for: str | None


def linked_libraries(data: Buffer, file: str) -> dict[str, LinkedLibrary]:
    """Return by file name or soname the shared libraries of a map.

    Raises:
        UnsupportedError: If the map is not one of GNU ld.
    """
    if linker_of_gnu(data) is not Linker.BFD:
        raise UnsupportedError(file, "only GNU ld lists the shared libraries in its map (-Wl,-Map=FILE)")
    found: dict[str, LinkedLibrary] = {}
    line, counted_to = 1, 0
    for entry in _LINE.finditer(data):
        loaded, soname, user = entry.groups()
        line += bytes(data[counted_to : entry.start()]).count(b"\n")
        counted_to = entry.start()
        name = (loaded or soname).rsplit(b"/", 1)[-1].decode("utf-8", "surrogateescape")
        known = found.get(name, LinkedLibrary(None, None))
        if loaded is not None:
            found[name] = known if known.line else known._replace(line=line)
        else:
            found[name] = known if known.needed_for else known._replace(needed_for=user.decode("utf-8", "replace"))
        if len(found) >= _MOST_LIBRARIES:
            break
    return found
