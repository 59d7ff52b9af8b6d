"""`footprint.symbols`: what the writable memory of ELF files holds."""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from footprint.elf.archive import read_members
from footprint.elf.contents import Contents, SectionContents, read_contents
from footprint.elf.image import Buffer, Image, read_image, starts_like_archive, starts_like_elf
from footprint.elf.linker_map import read_linker_map
from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.elf.origins import Origins, PathOf
from footprint.elf.selection import EVERYTHING, Selection
from footprint.elf.symbols import Symbol
from footprint.errors import AccessError, FootprintError, InputError, Note, UsageError
from footprint.process.mappings import open_regular
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.sources.demanglers import learn_foreign_names
from footprint.sources.target import check_no_process, script_error
from footprint.system.files import StrPath, each_once, open_input
from footprint.system.limits import time_limit
from footprint.text.units import counted

if TYPE_CHECKING:
    from footprint.dwarf.declared_variables import DeclaredVariables
    from footprint.elf.notes import DebugImage


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
        sources: Where the variables of each of `files` are declared; None where that was not asked for.
    """

    files: tuple[Contents, ...]
    notes: tuple[Note, ...]
    origins: tuple[Origins, ...] = ()
    selection: Selection = EVERYTHING
    sources: "tuple[DeclaredVariables, ...] | None" = None


def symbols(
    *paths: StrPath,
    map: StrPath | None = None,  # noqa: A002 # as the option is called
    selection: Selection = EVERYTHING,
    debug: DebugSearch | None = STANDARD_PLACES,
    source: bool = False,
    by_source: bool = False,
) -> FileSymbols:
    """Read what the writable and thread-local sections of ELF files hold, objects and archives included.

    Of several files or members, those that cannot be read become notes.

    Args:
        paths: The files.
        map: The linker's map of the one linked file: it tells the object that each variable came from.
        selection: Which variables are asked for.
        debug: Where to look for the symbols of stripped ones; None for nowhere.
        source: Whether to tell where each variable is declared, and to name what only debug information names.
        by_source: Whether the origins of bytes are the source files that declare them, as far as debug information
            tells.

    Raises:
        AccessError: If the only file or the map cannot be opened.
        InputError: If the only file is not ELF or is damaged, or if the map is not a linker map.
        UsageError: If no file is given, if a map is given with several files, if no server for debug files is known,
            or if the pattern takes too long.
    """
    if not paths:
        raise UsageError("name at least one ELF file")
    if map is not None and len(paths) > 1:
        raise UsageError("a linker map belongs to one linked file: name only this file")
    reader = _Reader(
        DebugFiles(debug), None if map is None else os.fspath(map), has_sources=source or by_source, by_source=by_source
    )
    files, notes = reader.files, reader.notes
    for path in each_once([os.fspath(path) for path in paths], notes):
        try:
            reader.read(path)
        except FootprintError as error:
            if len(paths) == 1:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    learn_foreign_names(
        variable.name for file in files for section in file.contents.sections for variable in section.variables
    )
    notes += [note for file in files for note in file.notes()]
    if by_source and not source:
        # What has no debug information stands by that cause in the sums.
        notes[:] = [note for note in notes if note.slug != "debug-info-absent"]
    slow = f"--name: the pattern takes more than {MOST_MATCHING_SECONDS} seconds on these names: write a simpler one"
    with time_limit(MOST_MATCHING_SECONDS, UsageError(slow)) if selection.pattern else nullcontext():
        chosen = tuple(file.selected(selection) for file in files)
    sources = tuple(reader.sources) if source else None
    return FileSymbols(tuple(f.contents for f in chosen), tuple(notes), chosen, selection, sources)


def _is_linker_script(head: bytes) -> bool:
    return head.startswith(b"/*") and any(word in head for word in (b"GROUP", b"INPUT", b"OUTPUT_FORMAT"))


def _open_member(folder: str, name: str) -> Buffer:
    """Open a member of a thin archive, which is a file elsewhere.

    Raises:
        AccessError: Where it cannot be opened, is no regular file, or lies elsewhere by an absolute path.
    """
    if os.path.isabs(name) and os.path.commonpath((folder, os.path.normpath(name))) != folder:
        raise AccessError(name, "a thin archive names it outside of its own folder: name the file itself")
    data = open_regular(os.path.join(folder, name), None)
    if isinstance(data, str):
        raise AccessError(name, data)
    return data


class _Reader:
    """Reads files one after the other; `sources` has one entry for each of `files`."""

    def __init__(self, debug_files: DebugFiles, map_path: str | None, *, has_sources: bool, by_source: bool) -> None:
        self.files: list[Origins] = []
        self.sources: list[DeclaredVariables] = []
        self.notes: list[Note] = []
        self._debug_files = debug_files
        self._map_path = map_path
        self._has_sources = has_sources
        self._by_source = by_source

    def read(self, path: str) -> None:
        check_no_process(
            path, f"name its program, /proc/{path}/exe, or list its files with `footprint libraries {path}`"
        )
        data = open_input(path)
        if bytes(data[:2]) == b"#!":
            raise script_error(path, bytes(data[:4096]))
        if _is_linker_script(bytes(data[:4096])):
            raise InputError(path, "a linker script, which names the files to read instead")
        if starts_like_archive(data):
            if self._map_path is not None:
                raise UsageError(f"{path} is an archive, which is not linked: it has no map")
            self._read_archive(path, data)
            return
        image = read_image(data, path)
        paths = absolute_paths(path)
        contents, debug, odd = self._debug_files.read(image, read_contents, *paths)
        self.notes += odd
        linker_map = None
        if self._map_path is not None:
            names = {section.section.name for section in contents.sections}
            linker_map = read_linker_map(open_input(self._map_path), self._map_path, names)
        if self._has_sources:
            contents, odd = self._with_sources(image, contents, debug, *paths)
            self.notes += odd
        self.files.append(Origins(image, contents, (path, None), linker_map, self._path_of()))

    def _path_of(self) -> PathOf | None:
        """Return a function from the variables of the file that was read last to the source files that declare them."""
        if not self._by_source:
            return None
        declared = self.sources[-1]

        def path_of(section: SectionContents, variable: Symbol) -> str | None:
            declaration = declared.of(section, variable)
            return None if declaration is None else declaration.defined_in or declaration.unit or None

        return path_of

    def _with_sources(
        self, image: Image, contents: Contents, debug: "DebugImage | None", *paths: str
    ) -> tuple[Contents, list[Note]]:
        # Debug information is nothing that the other answers wait for.
        from footprint.sources.debug_information import DebugInformation  # noqa: PLC0415

        contents, sources, odd = DebugInformation(self._debug_files, image, debug, *paths).sources(contents)
        self.sources.append(sources)
        return contents, odd

    def _read_archive(self, path: str, data: Buffer) -> None:
        count = len(self.files)
        lacking_count = repeated_count = 0
        seen: set[str] = set()
        for member in read_members(data, path):
            name = f"{path}({member.name})"
            try:
                contents = member.data
                if contents is None:
                    if member.name in seen:
                        repeated_count += 1
                        continue
                    seen.add(member.name)
                    contents = _open_member(os.path.dirname(os.path.abspath(path)), member.name)
                if starts_like_elf(contents):
                    image = read_image(contents, name)
                    contents_read = read_contents(image)
                    if self._has_sources:
                        contents_read, odd = self._with_sources(image, contents_read, None)
                        others = [note for note in odd if note.slug != "debug-info-absent"]
                        lacking_count += len(others) < len(odd)
                        self.notes += others
                    self.files.append(Origins(image, contents_read, (path, member.name), path_of=self._path_of()))
                else:
                    detail = "it is not an ELF object (LTO bytecode, or a text): skipped"
                    self.notes.append(Note("member-not-elf", name, detail))
            except FootprintError as error:
                self.notes.append(Note("file-unreadable", name, error.detail))
        if repeated_count:
            detail = f"it names files again ({counted(repeated_count, 'time')}): each is counted once"
            self.notes.append(Note("file-repeated", path, detail))
        if lacking_count:
            detail = f"{lacking_count} of its {len(self.files) - count} objects have no .debug_info"
            self.notes.append(Note("debug-info-absent", path, detail))
