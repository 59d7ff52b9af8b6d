"""`footprint.symbols`: what the writable memory of ELF files holds."""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from footprint.elf import Contents, read_contents, read_image, read_members, starts_like_archive, starts_like_elf
from footprint.elf.linker_map import LinkerMap, read_linker_map
from footprint.elf.origins import Origins
from footprint.elf.selection import EVERYTHING, Selection
from footprint.errors import FootprintError, InputError, Note, UsageError
from footprint.files import open_input
from footprint.verbs.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch
from footprint.verbs.demanglers import learn_foreign_names
from footprint.verbs.given_files import each_once
from footprint.verbs.time_limit import time_limit

__all__ = ("FileSymbols", "symbols")

# All names of node take a tenth of a second, by patterns of the usual kind.
MOST_MATCHING_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class FileSymbols:
    """What the writable memory of some files holds.

    Attributes:
        files: One entry a file; an archive has one a member.
        notes: Files or members that could not be read, where others could.
        origins: From which object or source file the bytes of each of `files` came.
        selection: Which variables were asked for.
    """

    files: tuple[Contents, ...]
    notes: tuple[Note, ...]
    origins: tuple[Origins, ...] = ()
    selection: Selection = EVERYTHING


def symbols(
    *paths: str,
    map: str | None = None,  # noqa: A002 # as the option is called
    selection: Selection = EVERYTHING,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> FileSymbols:
    """Give what the writable and thread-local sections of ELF files hold, objects and archives included.

    Of several files or members, those that cannot be read become notes.

    Args:
        paths: The files.
        map: The linker's map of the one linked file: it tells the object that each variable came from.
        selection: Which variables are asked for.
        debug: Where to look for the symbols of stripped ones; None for nowhere.

    Raises:
        AccessError: Where the only file cannot be opened, or the map.
        InputError: Where the only file is no ELF file, or is damaged, or the map is none.
        UsageError: Where no file is given, or a map with several, or no server for debug files is known that are to be
            asked for, or where the pattern takes too long.
    """
    if not paths:
        raise UsageError("name at least one ELF file")
    if map is not None and len(paths) > 1:
        raise UsageError("a linker map is of one linked file: name that alone")
    debug_files = DebugFiles(debug)
    files: list[Origins] = []
    notes: list[Note] = []
    for path in each_once(paths, notes):
        try:
            _read_symbols(path, map, debug_files, files, notes)
        except FootprintError as error:
            if len(paths) == 1:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    learn_foreign_names(
        variable.name for one in files for section in one.contents.sections for variable in section.variables
    )
    notes += [note for one in files for note in one.notes()]
    slow = f"--name: the pattern takes more than {MOST_MATCHING_SECONDS} seconds on these names: write a simpler one"
    with time_limit(MOST_MATCHING_SECONDS, slow) if selection.pattern else nullcontext():
        chosen = tuple(one.selected(selection) for one in files)
    return FileSymbols(tuple(one.contents for one in chosen), tuple(notes), chosen, selection)


def _is_linker_script(head: bytes) -> bool:
    return head.startswith(b"/*") and any(word in head for word in (b"GROUP", b"INPUT", b"OUTPUT_FORMAT"))


def _absolute_paths(path: str) -> dict[str, None]:
    """Give a path as it was given and as it is, where links lead to it: its debug file may stand beside either."""
    return dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))


def _read_symbols(
    path: str, map_path: str | None, debug_files: DebugFiles, files: list[Origins], notes: list[Note]
) -> None:
    data = open_input(path)
    if _is_linker_script(bytes(data[:4096])):
        raise InputError(path, "a linker script, which names the files to read instead")
    if not starts_like_archive(data):
        image = read_image(data, path)
        found, odd = debug_files.contents_of(image, *_absolute_paths(path))
        notes += odd
        linker_map = None if map_path is None else _read_map(map_path, found)
        files.append(Origins(image, found, (path, None), linker_map))
        return
    if map_path is not None:
        raise UsageError(f"{path} is an archive, which is not linked: it has no map")
    for member in read_members(data, path):
        name = f"{path}({member.name})"
        try:
            contents = member.data
            if contents is None:
                contents = open_input(os.path.join(os.path.dirname(path), member.name))
            if starts_like_elf(contents):
                image = read_image(contents, name)
                files.append(Origins(image, read_contents(image), (path, member.name)))
            else:
                notes.append(Note("member-not-elf", name, "it is no ELF object (LTO bytecode, or a text), skipped"))
        except FootprintError as error:
            notes.append(Note("file-unreadable", name, error.detail))


def _read_map(path: str, contents: Contents) -> LinkerMap:
    return read_linker_map(open_input(path), path, {one.section.name for one in contents.sections})
