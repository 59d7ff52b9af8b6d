"""The debug files of stripped objects: looked for where distributions put them, and believed only where they fit."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from footprint.elf import Buffer, Contents, Image, Section, read_contents, read_image, starts_like_elf
from footprint.elf.debugfiles import (
    DebugImage,
    DebugLink,
    candidates,
    debug_link,
    is_stripped,
    matched_sections,
    mini_debug_image,
)
from footprint.elf.image import SHT_SYMTAB
from footprint.elf.notes import build_id, debug_build_id
from footprint.errors import InputError, Note, UsageError
from footprint.process.mapped_files import open_regular
from footprint.verbs.debuginfod import Servers, cache_folder, cached_path
from footprint.verbs.saved_files import path_inside

__all__ = ("STANDARD_FOLDER", "STANDARD_PLACES", "DebugFiles", "DebugSearch", "debug_search")

STANDARD_FOLDER: Final = "/usr/lib/debug"
_CHUNK_BYTES: Final = 1 << 20
_MOST_CHECKED_BYTES: Final = 4 << 30


class DebugSearch(NamedTuple):
    """Where to look for the symbols of stripped files.

    Attributes:
        folders: Folders with debug files, besides `/usr/lib/debug`, those beside the file, and debuginfod's cache.
        uses_servers: Whether to ask the servers of DEBUGINFOD_URLS for what is not there.
    """

    folders: tuple[str, ...] = ()
    uses_servers: bool = False


STANDARD_PLACES: Final = DebugSearch()


def debug_search(folders: Sequence[str], *, uses_servers: bool, is_off: bool) -> DebugSearch | None:
    """Give the search that the options of the command ask for; None where they ask for none.

    Raises:
        UsageError: Where they contradict each other, or a folder is none.
    """
    if not is_off:
        return _check(DebugSearch(tuple(folders), uses_servers))
    if folders or uses_servers:
        raise UsageError("--no-debug-files goes with neither --debug-dir nor --debuginfod")
    return None


def _check(search: DebugSearch) -> DebugSearch:
    for folder in search.folders:
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is no folder")
    return search


class DebugFiles:
    """Reads what files hold, by the symbols of their debug files where they have been stripped.

    Args:
        search: Where to look; None to look nowhere.
        root: A folder that the files take for `/`, where that is not this machine's: it is looked into as well.

    Raises:
        UsageError: Where a folder is none, or servers are to be asked and none is known.
    """

    def __init__(self, search: DebugSearch | None = STANDARD_PLACES, root: str | None = None) -> None:
        self._is_on = search is not None
        search = search or STANDARD_PLACES
        _check(search)
        self._folders = [os.path.abspath(folder) for folder in search.folders]
        # Asked once: where there is none, each object is spared as many questions as it has candidates there.
        if os.path.isdir(STANDARD_FOLDER):
            self._folders.append(STANDARD_FOLDER)
        self._root = root
        self._cache = cache_folder()
        self._servers = Servers() if search.uses_servers else None

    def contents_of(self, image: Image, *paths: str) -> tuple[Contents, list[Note]]:
        """Read what the writable sections of a file hold, and what was odd about its debug files.

        Args:
            image: The file.
            paths: Its absolute paths; several where links lead to it.

        Raises:
            InputError: Where the file itself is damaged.
        """
        if not self._is_on or not is_stripped(image):
            return read_contents(image), []
        notes: list[Note] = []
        try:
            for debug in self._debug_images(image, paths, notes):
                try:
                    found = read_contents(image, debug)
                except InputError as error:
                    notes.append(_unreadable(image, error))
                    continue
                # What else stands where it was looked for first is of no interest any more.
                return found, _moved_note(image, debug) if debug.is_whole else notes
        except InputError as error:
            notes.append(_unreadable(image, error))
        return read_contents(image), notes

    def symbols_of(self, image: Image, *paths: str) -> Image:
        """Give the file that names the functions of a file: itself, or its debug file where it has been stripped.

        Args:
            image: The file.
            paths: Its absolute paths; several where links lead to it.
        """
        if self._is_on and is_stripped(image):
            with suppress(InputError):
                for debug in self._debug_images(image, paths, []):
                    if any(one.type == SHT_SYMTAB and one.has_file_bytes for one in debug.image.sections):
                        return debug.image
        return image

    def _debug_images(self, image: Image, paths: Sequence[str], notes: list[Note]) -> Iterator[DebugImage]:
        """Give where the symbols of a file are, the fullest first; note what claims to be such a place, and is none."""
        wanted = _Wanted(image, build_id(image), debug_link(image))
        for path in self._places(image, wanted.build_id, paths):
            debug = _fitting(path, wanted, notes)
            if debug is not None:
                yield DebugImage(debug)
        if self._servers is not None and wanted.build_id is not None:
            path = cached_path(self._cache, wanted.build_id)
            notes += self._servers.fetch(wanted.build_id, path)
            debug = _fitting(path, wanted, notes)
            if debug is not None:
                yield DebugImage(debug)
            else:
                # Else it would be taken for an answer the next time.
                with suppress(OSError):
                    os.unlink(path)
        debug = mini_debug_image(image)
        if debug is not None:
            yield DebugImage(debug, is_whole=False)

    def _places(self, image: Image, identity: str | None, paths: Sequence[str]) -> Iterator[str]:
        yield from dict.fromkeys(one for path in paths for one in candidates(image, path, self._folders))
        if identity is not None:
            yield cached_path(self._cache, identity)
        if self._root is not None:
            for path in paths:
                for place in candidates(image, path, (STANDARD_FOLDER,)):
                    yield path_inside(self._root, place)


class _Wanted(NamedTuple):
    """The file whose symbols are looked for, and what tells its debug file from others."""

    image: Image
    build_id: str | None
    link: DebugLink | None

    def misfit(self, debug: Image) -> str:
        """Say why a file is not the debug file; nothing where it is."""
        identity = debug_build_id(debug)
        if self.build_id is not None and identity is not None:
            if identity != self.build_id:
                return f"has the build-id {identity}, the file has {self.build_id}"
        elif self.link is None:
            return "has no build-id to know it by"
        elif len(debug.data) > _MOST_CHECKED_BYTES:
            return "is too large to be checked"
        elif (crc := _crc(debug.data)) != self.link.crc:
            return f"has the CRC {crc:08x}, the file asks for {self.link.crc:08x}"
        if (debug.is_64, debug.machine) != (self.image.is_64, self.image.machine):
            return "is for another machine"
        if len(_moved_sections(self.image, debug)) == sum(map(_is_wanted, self.image.sections)):
            return "has none of its sections at their places"
        return ""


def _fitting(path: str, wanted: _Wanted, notes: list[Note]) -> Image | None:
    """Open a debug file; None where there is none, or it is another's, which is noted."""
    data = open_regular(path, None)
    if isinstance(data, str) or not starts_like_elf(data):
        # debuginfod's client keeps an empty file where no server knew of one.
        return None
    try:
        debug = read_image(data, path)
    except InputError as error:
        notes.append(_unreadable(wanted.image, error))
        return None
    # Without symbols it is most likely the file itself, to which its link may well lead by another name.
    if is_stripped(debug):
        return None
    cause = wanted.misfit(debug)
    if cause:
        notes.append(Note("debug-file-differs", wanted.image.file, f"{path} {cause}: it is not used"))
        return None
    return debug


def _crc(data: Buffer) -> int:
    import zlib  # noqa: PLC0415 # most files have a build-id

    crc = 0
    for at in range(0, len(data), _CHUNK_BYTES):
        crc = zlib.crc32(data[at : at + _CHUNK_BYTES], crc)
    return crc


def _is_wanted(section: Section) -> bool:
    return section.is_writable and section.size_bytes > 0


def _moved_sections(image: Image, debug: Image) -> list[str]:
    """Name the sections of a file that its debug file does not have, or has elsewhere."""
    matched = {section.index for section in matched_sections(image, debug).values()}
    return [one.name for one in image.sections if _is_wanted(one) and one.index not in matched]


def _moved_note(image: Image, debug: DebugImage) -> list[Note]:
    moved = ", ".join(_moved_sections(image, debug.image))
    detail = f"{debug.image.file} has {moved} elsewhere: its symbols are not used for these"
    return [Note("debug-file-differs", image.file, detail)] if moved else []


def _unreadable(image: Image, error: InputError) -> Note:
    return Note("debug-file-unreadable", image.file, f"{error}, it is not used")
