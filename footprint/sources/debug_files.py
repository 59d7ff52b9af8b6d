"""The debug files of stripped objects: looked for where distributions put them, and believed only where they fit."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from footprint.elf.abi import SHT_SYMTAB
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import Buffer, Image, Section, read_image, starts_like_elf
from footprint.elf.notes import (
    STANDARD_PLACES,
    DebugImage,
    DebugLink,
    DebugSearch,
    alternate_link,
    build_id,
    build_id_place,
    candidates,
    debug_build_id,
    debug_link,
    is_stripped,
    matched_sections,
    mini_debug_image,
)
from footprint.errors import InputError, Note
from footprint.members import NamedTuple
from footprint.process.mappings import FileOpener, open_regular
from footprint.system.roots import path_inside

if TYPE_CHECKING:
    from footprint.sources.debuginfod import Servers

T = TypeVar("T")

STANDARD_FOLDER: Final = "/usr/lib/debug"
_CHUNK_BYTES: Final = 1 << 20
_MOST_CHECKED_BYTES: Final = 4 << 30


class DebugFiles:
    """Reads what files hold, by the symbols of their debug files where they have been stripped.

    Args:
        search: Where to look; None to look nowhere.
        root: A folder that the files take for `/`, where that is not this machine's: it is looked into as well.
        open_file: Opens a file; None for `open_regular`.

    Raises:
        UsageError: Where a folder is none, or servers are to be asked and none is known.
    """

    def __init__(
        self,
        search: DebugSearch | None = STANDARD_PLACES,
        root: str | None = None,
        open_file: FileOpener | None = None,
    ) -> None:
        self._open_file = open_file or open_regular
        self._is_on = search is not None
        search = search or STANDARD_PLACES
        if search.folders:
            search.check()
        self._folders = [os.path.abspath(folder) for folder in search.folders]
        # Asked once: where there is none, each object is spared as many questions as it has candidates there.
        if os.path.isdir(STANDARD_FOLDER):
            self._folders.append(STANDARD_FOLDER)
        self._root = None if root is None or root == "/" else root
        self._cache = _cache_folder()
        self._servers = _servers() if search.uses_servers else None

    def contents_of(self, image: Image, *paths: str) -> tuple[Contents, list[Note]]:
        """Read what the writable sections of a file hold, and what was odd about its debug files.

        Args:
            image: The file.
            paths: Its absolute paths; several where links lead to it.

        Raises:
            InputError: Where the file itself is damaged.
        """
        contents, _, notes = self.read(image, read_contents, *paths)
        return contents, notes

    def read(
        self, image: Image, reader: Callable[[Image, DebugImage | None], T], *paths: str
    ) -> tuple[T, DebugImage | None, list[Note]]:
        """Read something of a file, with the symbols of the first of its debug files that can be read.

        Give what was read, the symbols that it was read with (None where the file has its own, or none are found), and
        what was odd about debug files.

        Args:
            image: The file.
            reader: Reads it, with the symbols that were stripped from it where there are some.
            paths: Its absolute paths; several where links lead to it.

        Raises:
            InputError: Where the file itself is damaged.
        """
        if not self._is_on or not is_stripped(image):
            return reader(image, None), None, []
        notes: list[Note] = []
        try:
            for debug in self._debug_images(image, paths, notes):
                try:
                    contents = reader(image, debug)
                except InputError as error:
                    notes.append(_unreadable(image, error))
                    continue
                # What else stands where it was looked for first is of no interest any more.
                return contents, debug, _moved_note(image, debug) if debug.is_whole else notes
        except InputError as error:
            notes.append(_unreadable(image, error))
        return reader(image, None), None, notes

    def debug_info_of(self, image: Image, debug: DebugImage | None, *paths: str) -> tuple[Image | None, list[Note]]:
        """Return the file with the debug information of a file: itself or its debug file; None if there is none.

        Args:
            image: The file.
            debug: What `read` found its symbols in.
            paths: Its absolute paths; several where links lead to it.
        """
        if _has_debug_info(image):
            return image, []
        if debug is not None and debug.is_whole:
            return debug.image if _has_debug_info(debug.image) else None, []
        notes: list[Note] = []
        # Where it is stripped, all places have been looked at for its symbols.
        if self._is_on and not is_stripped(image):
            try:
                for other in self._debug_images(image, paths, notes):
                    if other.is_whole and _has_debug_info(other.image):
                        return other.image, _moved_note(image, other)
            except InputError as error:
                notes.append(_unreadable(image, error))
        return None, notes

    def alternate_of(self, debug: Image, *paths: str) -> tuple[Image | None, list[Note]]:
        """Return the file in which dwz put what the debug information of a file shares with others.

        Args:
            debug: The file with the debug information.
            paths: The absolute paths of the file that the debug information is of.
        """
        notes: list[Note] = []
        try:
            link = alternate_link(debug)
        except InputError as error:
            return None, [_unreadable(debug, error)]
        if link is None or not self._is_on:
            return None, notes
        folders = [os.path.dirname(path) for path in (self._real_path(debug.file), *paths)]
        places = [self._place(os.path.join(folder, link.path)) for folder in folders]
        places = [place for place in places if self._is_below(place, folders)]
        if not places:
            detail = f"{link.path} is looked for below its own folder and those of debug files only (--debug-dir)"
            notes.append(Note("debug-file-elsewhere", debug.file, detail))
        places += [f"{folder}/{place}" for folder in self._folders if (place := build_id_place(link.build_id))]
        places.append(_cached_path(self._cache, link.build_id))
        for path in dict.fromkeys(places):
            alternate = _regular_image(self._open_file, path, debug, notes)
            if alternate is None:
                continue
            if (identity := debug_build_id(alternate)) == link.build_id:
                return alternate, []
            actual = "no build-id" if identity is None else f"the build-id {identity}"
            detail = f"{path} has {actual}, {link.build_id} is asked for: it is not used"
            notes.append(Note("debug-file-differs", debug.file, detail))
        if self._servers is not None:
            path = _cached_path(self._cache, link.build_id)
            notes += self._servers.fetch(link.build_id, path)
            alternate = _regular_image(self._open_file, path, debug, notes)
            if alternate is not None and debug_build_id(alternate) == link.build_id:
                return alternate, notes
            # Else it would be taken for an answer the next time.
            with suppress(OSError):
                os.unlink(path)
        return None, notes

    def package_of(self, debug: Image, *paths: str) -> tuple[Image | None, list[Note]]:
        """Return the package of split units (`.dwp`) beside a file or its debug file."""
        notes: list[Note] = []
        for path in dict.fromkeys((*paths, debug.file)) if self._is_on else ():
            package = _regular_image(self._open_file, f"{path}.dwp", debug, notes)
            if package is not None:
                return package, notes
        return None, notes

    def split_of(self, debug: Image, path: str, *paths: str) -> tuple[Image | None, list[Note]]:
        """Return the file of a split unit (`.dwo`), where the compiler left it or beside the file.

        Args:
            debug: The file with the debug information.
            path: Where the compiler left it.
            paths: The absolute paths of the file that the debug information is of.
        """
        notes: list[Note] = []
        folders = dict.fromkeys(os.path.dirname(path) for path in (*paths, self._real_path(debug.file)))
        if not path.endswith(".dwo"):
            # A compiler gives it this ending; another path may be any file of this machine.
            return None, notes
        places = [self._place(path)] if os.path.isabs(path) else [os.path.join(folder, path) for folder in folders]
        places += [os.path.join(folder, os.path.basename(path)) for folder in (*folders, *self._folders)]
        for place in dict.fromkeys(places) if self._is_on else ():
            split = _regular_image(self._open_file, place, debug, notes)
            if split is not None:
                return split, notes
        return None, notes

    def symbols_of(self, image: Image, *paths: str) -> Image:
        """Return the file that names the functions of a file: itself, or its debug file if it is stripped.

        Args:
            image: The file.
            paths: Its absolute paths; several where links lead to it.
        """
        if self._is_on and is_stripped(image):
            with suppress(InputError):
                for debug in self._debug_images(image, paths, []):
                    if any(section.type == SHT_SYMTAB and section.has_file_bytes for section in debug.image.sections):
                        return debug.image
        return image

    def _debug_images(self, image: Image, paths: Sequence[str], notes: list[Note]) -> Iterator[DebugImage]:
        """Return the files with the symbols of a file, the fullest first; add a note on each that does not fit."""
        wanted = _Wanted(image, build_id(image), debug_link(image))
        for path in self._places(image, wanted.build_id, paths):
            debug = _fitting(self._open_file, path, wanted, notes)
            if debug is not None:
                yield DebugImage(debug)
        if self._servers is not None and wanted.build_id is not None:
            path = _cached_path(self._cache, wanted.build_id)
            notes += self._servers.fetch(wanted.build_id, path)
            debug = _fitting(self._open_file, path, wanted, notes)
            if debug is not None:
                yield DebugImage(debug)
            else:
                # Else it would be taken for an answer the next time.
                with suppress(OSError):
                    os.unlink(path)
        debug = mini_debug_image(image)
        if debug is not None:
            yield DebugImage(debug, is_whole=False)

    def _place(self, path: str) -> str:
        """Return where a path is that a file tells: in the root, if the file has another one."""
        if self._root is None or path.startswith(f"{self._root.rstrip('/')}/"):
            return path
        return path_inside(self._root, path)

    def _is_below(self, path: str, folders: Iterable[str]) -> bool:
        """Return whether a path that a file names stays, links followed, in its folders or in those of debug files.

        A stranger who wrote the file must not choose what is opened.
        """
        roots = [STANDARD_FOLDER if self._root is None else self._place(STANDARD_FOLDER), *self._folders, *folders]
        return os.path.realpath(path).startswith(tuple(f"{os.path.realpath(folder).rstrip('/')}/" for folder in roots))

    def _real_path(self, path: str) -> str:
        return os.path.realpath(path) if self._root is None else path

    def _places(self, image: Image, identity: str | None, paths: Sequence[str]) -> Iterator[str]:
        yield from dict.fromkeys(candidate for path in paths for candidate in candidates(image, path, self._folders))
        if identity is not None:
            yield _cached_path(self._cache, identity)
        if self._root is not None:
            for path in paths:
                for place in candidates(image, path, (STANDARD_FOLDER,)):
                    yield path_inside(self._root, place)


def _servers() -> "Servers":
    from footprint.sources.debuginfod import Servers  # noqa: PLC0415 # few ask servers

    return Servers()


def _cache_folder() -> str:
    """Return the folder in which the client of debuginfod keeps what servers sent."""
    home = os.path.expanduser("~")
    old = os.path.join(home, ".debuginfod_client_cache")
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    usual = old if os.path.isdir(old) else os.path.join(above, "debuginfod_client")
    return os.environ.get("DEBUGINFOD_CACHE_PATH") or usual


def _cached_path(folder: str, build_id: str) -> str:
    """Return the path that a debug file has in the cache."""
    return f"{folder}/{build_id}/debuginfo"


def absolute_paths(path: str) -> tuple[str, ...]:
    """Return a path as it was given and without links: the debug file may be beside either."""
    return tuple(dict.fromkeys((os.path.abspath(path), os.path.realpath(path))))


class _Wanted(NamedTuple):
    """The file whose symbols are looked for, and what tells its debug file from others."""

    image: Image
    build_id: str | None
    link: DebugLink | None

    def misfit(self, debug: Image) -> str:
        """Return why a file is not the debug file; nothing if it is."""
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


def _fitting(open_file: FileOpener, path: str, wanted: _Wanted, notes: list[Note]) -> Image | None:
    """Open a debug file; None where there is none, or it is another's, which is noted."""
    data = open_file(path, None)
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


def _regular_image(open_file: FileOpener, path: str, asking: Image, notes: list[Note]) -> Image | None:
    """Open an ELF file of which nothing is known yet; None where there is none, or it is damaged, which is noted."""
    data = open_file(path, None)
    if isinstance(data, str) or not starts_like_elf(data):
        return None
    try:
        return read_image(data, path)
    except InputError as error:
        notes.append(_unreadable(asking, error))
        return None


def _has_debug_info(image: Image) -> bool:
    return any(section.name in {".debug_info", ".zdebug_info"} and section.has_file_bytes for section in image.sections)


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
    return [section.name for section in image.sections if _is_wanted(section) and section.index not in matched]


def _moved_note(image: Image, debug: DebugImage) -> list[Note]:
    moved = ", ".join(_moved_sections(image, debug.image))
    detail = f"{debug.image.file} has {moved} at another place: its symbols are not used for these sections"
    return [Note("debug-file-differs", image.file, detail)] if moved else []


def _unreadable(image: Image, error: InputError) -> Note:
    return Note("debug-file-unreadable", image.file, f"{error}, it is not used")
