"""Finds the inputs of a scan: programs and libraries, captures, texts, saved audits, series, and live processes."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final, NamedTuple

from footprint.errors import AccessError, FootprintError, Note, UsageError, cause_of
from footprint.process.origin import CaptureHost, read_memory
from footprint.sources.image_tree import RootTree
from footprint.sources.images import container_images, is_image
from footprint.sources.package_files import is_package, package_tree, unread_image
from footprint.store.audits import digest
from footprint.system.limits import limited
from footprint.system.roots import path_inside, stat_path

# Folders with these are trees of programs: a search of their hundred thousand texts for captures would find none.
_OF_PROGRAMS: Final = frozenset({"bin", "sbin", "lib", "lib64", "libexec", "usr"})
_RECORD: Final = re.compile(
    r"\.(?:capture|footprint|jsonl?|s?maps|pmap|txt|fps)(?:\.(?:gz|xz|zst|bz2))?\Z", re.IGNORECASE
)
_LIBRARY: Final = re.compile(r"\.so(?:\.[\w.]+)?\Z")
# Nine of ten files of a root file system: to ask the kernel for the mode of each would take most of a second scan.
_DATA: Final = re.compile(
    r"\.(?:pyi?|pyc|h|hpp|hh|inc|c|cc|cpp|[cm]?js|[cm]?ts|map|json|html?|css|xml|md|rst|txt|gz|xz|bz2|zip|jar|class|png|"
    r"svg|gif|jpe?g|ttf|otf|woff2?|mo|po|a|o|la|pc|cmake|ko|pm|pl|pod|rb|go|rs|java|el|elc|vim|tcl|m4|list|md5sums|yml|"
    r"yaml|toml|ini|conf|service|desktop|dat|db|bin|log|csv|tmpl|test|pem|crt|patch|diff)\Z"
)


_DISK_IMAGE: Final = re.compile(r"\.(?:squashfs|sq(?:fs|sh|uash)|sfs|snap|ext[234]|img|raw)\Z")


Copies = tuple[tuple[str, str], ...]
"""The paths of copies of what is in object stores, each with its address there."""


class ScanPlace(NamedTuple):
    """What an input tells about.

    Attributes:
        host: The name of the host, image or root file system, or its digest.
        kind: `host`, `image`, `package` or `folder`.
        root: The folder that its programs take for `/`; None for that of this machine.
        image: The path of the container image or package that the root is in; None where it is a folder.
        memory_bytes: The memory of the host; None where unknown.
        available_bytes: What further processes could have; None where unknown.
        processor_count: Its processors; None where unknown.
        package: The name and the version of the package that it is; None for others.
    """

    host: str
    kind: str
    root: str | None = None
    image: str | None = None
    memory_bytes: int | None = None
    available_bytes: int | None = None
    processor_count: int | None = None
    package: tuple[str, str] | None = None


class Candidate(NamedTuple):
    """A file that may be an input.

    Attributes:
        place: What it tells about.
        path: Its path; of a program that in its root.
        input: The name of the input in the dataset.
        state: Size, time of change and inode, as text.
        moment: When it was written, in UTC; of a program the time of the scan.
        is_elf: Whether it may be a program or library; else a capture, a text or a saved answer.
        is_executable: Whether it may be run.
    """

    place: ScanPlace
    path: str
    input: str
    state: str
    moment: datetime
    is_elf: bool
    is_executable: bool

    @property
    def opened(self) -> str:
        """The path by which it is opened from here."""
        return f"{self.place.root or ''}{self.path}" if self.is_elf else self.path


def trees_in(source: str, notes: list[Note]) -> Iterator[RootTree]:
    """Return the trees of a container image or a package; that of a package is not entered as a root.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is damaged.
        LimitError: Where it makes more work than the limits allow.
    """
    if not is_package(source) or os.path.isdir(source):
        yield from container_images(source, notes)
        return
    # A folder may have thousands of packages: each is an input of its own.
    with limited():
        tree = package_tree(source)
    notes += tree.tree.notes
    yield tree


class Lister:
    """Lists the inputs of sources.

    Args:
        moment: The time of the scan, in UTC.
        host: The name of the host that all inputs are from; None where the sources tell.
        root: The folder that programs take for `/`; None for that of this machine.
        is_anonymous: Whether digests take the place of the names of hosts.
        copies: The copies of what is in stores, with their addresses there.

    Attributes:
        notes: What could not be listed, with the host.
    """

    def __init__(
        self, moment: datetime, *, host: str | None, root: str | None, is_anonymous: bool, copies: Copies = ()
    ) -> None:
        self.notes: list[tuple[str, Note]] = []
        self._moment = moment
        self._host = host
        self._root = None if root is None else os.path.realpath(root)
        self._is_anonymous = is_anonymous
        self._copies = copies
        self._place_of = cache(self._record_place)
        self._seen: set[tuple[int, int]] = set()
        self._sources: list[str] = []

    @property
    def has_host(self) -> bool:
        """Whether the name of the host of all inputs was given."""
        return self._host is not None

    def called(self, name: str) -> str:
        """Return the name of a host in the dataset."""
        shown = _as_text(name) or "unknown"
        return digest("host", shown)[:16] if self._is_anonymous else shown

    @property
    def this_host(self) -> ScanPlace:
        """This machine."""
        total, available = read_memory("/proc/meminfo")
        name = self.called(self._host or os.uname().nodename)
        return ScanPlace(name, "host", None, None, total, available, os.cpu_count())

    def list(self, sources: Sequence[str]) -> Iterator[Candidate]:
        """Yield the candidates of some sources.

        Raises:
            AccessError: If a source does not exist.
            UsageError: If a source is not below the root.
        """
        self._sources = [os.path.realpath(source) for source in sources]
        for source in sources:
            if not os.path.exists(source):
                raise AccessError(source, "no such file or folder")
            if os.path.isdir(source) and not is_image(source):
                yield from self._of_folder(source)
            elif is_image(source) or is_package(source):
                yield from self._of_image(source)
            else:
                yield from self._of_file(source)

    def _of_file(self, source: str) -> Iterator[Candidate]:
        if self._sees_unread_image(source, os.path.basename(source)):
            return
        with open(source, "rb") as file:
            is_elf = file.read(4) == b"\x7fELF"
        item = self._elf(source, self._program_place(source)) if is_elf else None
        item = item or self._record(source, os.path.basename(source).partition(".")[0], os.path.dirname(source))
        if item is not None:
            yield item

    def _sees_unread_image(self, path: str, host: str) -> bool:
        """Note an image of a file system that is not read; return whether it is one."""
        cause = unread_image(path) if os.path.isfile(path) else None
        if cause is not None:
            self._add_note(self.called(self._host or host), Note("input-unreadable", path, cause), path)
        return cause is not None

    def _of_image(self, source: str) -> Iterator[Candidate]:
        notes: list[Note] = []
        try:
            for image in trees_in(source, notes):
                kind, name = "package" if image.package else "image", self.called(self._host or image.name)
                place = ScanPlace(name, kind, image.root, source, package=image.package)
                for path, facts in image.tree.elf_files():
                    is_executable = bool(facts.st_mode & 0o111)
                    yield Candidate(place, path, _as_text(path), image.identity, self._moment, True, is_executable)  # noqa: FBT003
        except FootprintError as error:
            notes.append(Note("input-unreadable", source, error.detail))
        name = self.called(self._host or os.path.basename(with_addresses(source, self._copies)))
        for note in notes:
            self._add_note(name, note, source)

    def _add_note(self, host: str, note: Note, path: str) -> None:
        shown = digest(os.path.abspath(path))[:16] if self._is_anonymous else path
        texts = [with_addresses(text.replace(path, shown), self._copies) for text in note]
        self.notes.append((host, Note(*texts)))

    def _of_folder(self, source: str) -> Iterator[Candidate]:
        names = {*os.listdir(source), os.path.basename(os.path.abspath(source))}
        has_records = not names & _OF_PROGRAMS
        # The files of captures may be anywhere else.
        is_below_root = self._root is None or _is_below(os.path.realpath(source), self._root)
        place = self._program_place(source) if is_below_root or not has_records else None

        def refused(error: OSError) -> None:
            note = Note("file-unreadable", str(error.filename), f"{cause_of(error)}, it is left out")
            self._add_note((place or self.this_host).host, note, note.subject)

        for folder, folders, files in os.walk(source, onerror=refused):
            folders.sort()
            for name in folders:
                self._see_folder(folder, name, place or self.this_host)
            for name in sorted(files):
                path = os.path.join(folder, name)
                if has_records and is_package(name):
                    yield from self._of_image(path)
                    continue
                candidate = None
                try:
                    if has_records and _RECORD.search(name):
                        first = os.path.relpath(folder, source).split(os.sep)[0]
                        candidate = self._record(path, name.partition(".")[0] if first == "." else first, source)
                    elif not (_DISK_IMAGE.search(name) and self._sees_unread_image(path, name)):
                        candidate = None if _DATA.search(name) else self._elf(path, place)
                except OSError as error:
                    refused(error)
                if candidate is not None:
                    yield candidate

    def _see_folder(self, folder: str, name: str, place: ScanPlace) -> None:
        """Note a link to a folder that is in none of the sources: links are not followed, so that nothing is twice."""
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return
        root = place.root or ""
        inside = os.path.realpath(folder).removeprefix(root)
        target = path_inside(root, f"{inside}/{name}") if root else os.path.realpath(path)
        if target and not any(_is_below(target, source) for source in self._sources):
            detail = "it leads to a folder that is in no source, and is not followed: name that folder, too"
            self._add_note(place.host, Note("link-not-followed", path, detail), path)

    def _program_place(self, source: str) -> ScanPlace:
        """Return the place of the programs of a folder: with `usr` in it, it is a root file system."""
        whole = os.path.realpath(source)
        root = self._root
        if root is None and whole != "/" and os.path.isdir(os.path.join(whole, "usr")):
            root = whole
        if root is None:
            return self.this_host
        if not _is_below(whole, root):
            raise UsageError(f"{source} is not below {root}")
        name = self._host or os.path.basename(with_addresses(root, self._copies))
        return ScanPlace(self.called(name), "folder", root.rstrip("/"))

    def _elf(self, path: str, place: ScanPlace | None) -> Candidate | None:
        if place is None:
            return None
        facts = os.lstat(path)
        is_executable = bool(facts.st_mode & 0o111)
        if not stat.S_ISREG(facts.st_mode) or not (is_executable or _LIBRARY.search(path)):
            return None
        if (facts.st_dev, facts.st_ino) in self._seen:
            return None
        self._seen.add((facts.st_dev, facts.st_ino))
        inside = os.path.realpath(path)[len(place.root or "") :]
        return Candidate(place, inside, _as_text(inside), _state_of(facts), self._moment, True, is_executable)  # noqa: FBT003

    def mapped(self, place: ScanPlace, path: str) -> Candidate | None:
        """Return a file that a process or program maps, as a candidate; None where it is not there."""
        root = place.root or ""
        try:
            whole = path_inside(root, path) if root else os.path.realpath(path)
            facts = stat_path(whole)
        except (OSError, ValueError, FootprintError):
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        inner_path = whole.removeprefix(root)
        # Without a state, the file is an input of its own once a folder with it is scanned.
        is_executable = bool(facts.st_mode & 0o111)
        place = place if root else self.this_host
        return Candidate(place, inner_path, _as_text(inner_path), "", self._moment, True, is_executable)  # noqa: FBT003

    def _record(self, path: str, host: str, source: str) -> Candidate | None:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return None
        name = self._host or host
        place = self._place_of(name, os.path.join(source, name, "meminfo"))
        whole = os.path.abspath(path)
        shown = f"{place.host}/{digest(whole)[:16]}" if self._is_anonymous else _as_text(whole)
        shown = with_addresses(shown, self._copies)
        return Candidate(place, whole, shown, _state_of(facts), utc(facts.st_mtime), False, False)  # noqa: FBT003

    def located(self, candidate: Candidate, host: CaptureHost) -> Candidate:
        """Return a capture with the host and the moment that it has itself, where no other host was named."""
        place, shown = candidate.place, candidate.input
        if host.name and self._host is None:
            place = place._replace(host=self.called(host.name))
            shown = f"{place.host}/{shown.rpartition('/')[2]}" if self._is_anonymous else shown
        if host.memory_bytes is not None:
            place = place._replace(
                memory_bytes=host.memory_bytes,
                available_bytes=host.available_bytes,
                processor_count=host.processor_count,
            )
        return candidate._replace(place=place, input=shown, moment=moment_of(host) or candidate.moment)

    def _record_place(self, host: str, meminfo: str) -> ScanPlace:
        total, available = read_memory(meminfo)
        return ScanPlace(self.called(host), "host", self._root, None, total, available)


def with_addresses(text: str, copies: Copies) -> str:
    """Return a text with the addresses of what is in stores in place of the paths of its copies."""
    for copy, address in copies:
        text = text.replace(copy, address)
    return text


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath((root, path)) == root


def _as_text(name: str) -> str:
    """Return a name of a file as the dataset has it, which holds UTF-8 only."""
    return name.encode("utf-8", "backslashreplace").decode()


def utc(seconds: float) -> datetime:
    """Return a time since 1970 as UTC, without a zone as the dataset has it."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def moment_of(host: CaptureHost) -> datetime | None:
    """Return when a capture was made, in UTC; None where it does not say so."""
    try:
        return datetime.strptime(host.captured_at or "", "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 # UTC, as in the dataset
    except ValueError:
        return None


def _state_of(facts: os.stat_result) -> str:
    return f"{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ino}"


def file_state(path: str) -> str:
    """Return the state of a file as `Candidate` has it; "" where it does not exist."""
    try:
        return _state_of(os.stat(path))
    except (OSError, ValueError):
        return ""
