"""Private copies of the files of a process, whose NEEDED entries can be switched off and on again.

A need is switched off in place: its entry in the dynamic section becomes one that loaders ignore. Nothing moves, so a
file with the need and one without it are the same in all else. New names of directories need room that no file has:
LIEF makes it by moving segments and adding one.

Source: System V ABI, chapter 5 (Dynamic Section); elf/get-dynamic-info.h of glibc and ldso/dynlink.c of musl for what
a loader passes over.
"""

import atexit
import gc
import os
import secrets
import struct
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.abi import DT_NEEDED, PT_DYNAMIC
from footprint.elf.dynamic import read_dynamic, read_linkage
from footprint.elf.image import Image, read_image
from footprint.errors import AccessError, InputError, Note, UsageError
from footprint.findings.graph_rules.unused_library import UnusedNeed, unused_needs
from footprint.findings.removal import Doubt, doubts, names_of
from footprint.loader.configuration import Tokens, expanded, parent
from footprint.loader.dependencies import LibraryRemoval
from footprint.loader.link_map import Linked, link
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.model.finding import Confidence
from footprint.system.whole_file import open_kept, write_file

# Between DT_LOOS and DT_HIOS, where no system has put a meaning.
_PASSED_OVER: Final = 0x6F00F00D
_MOST_REASONS: Final = 3


class Switch(NamedTuple):
    """A place in a file, and the bytes that switch a need on and off there."""

    offset: int
    on: bytes
    off: bytes


def need_switches(image: Image, names: frozenset[str]) -> tuple[Switch, ...]:
    """Find the places at which a file needs libraries of some names.

    Raises:
        InputError: If the dynamic section is damaged.
    """
    segment = image.segment(PT_DYNAMIC)
    if segment is None:
        return ()
    word = struct.Struct(("<" if image.is_little else ">") + ("Q" if image.is_64 else "I"))
    tags = [tag for tag, _ in read_dynamic(image).entries]
    places = [place for place, tag in enumerate(tags) if tag == DT_NEEDED]
    on, off = word.pack(DT_NEEDED), word.pack(_PASSED_OVER)
    return tuple(
        [
            Switch(segment.offset + 2 * word.size * place, on, off)
            for place, name in zip(places, read_linkage(image).needed, strict=True)
            if name in names
        ]
    )


def with_search_path(data: bytes, file: str, directories: bytes, *, is_runpath: bool) -> bytes:
    """Return a file that looks for its libraries in other directories.

    Args:
        data: The file.
        file: Its name, for errors.
        directories: The list, parted by colons.
        is_runpath: Whether it becomes its RUNPATH, else its RPATH.

    Raises:
        InputError: If LIEF cannot read it.
        UsageError: If LIEF is not installed.
    """
    try:
        import lief  # noqa: PLC0415 # 0.3 s and 10 MB, and most programs do without
    except ImportError:
        raise UsageError(
            f"{file} must look for its libraries elsewhere, and only LIEF can write that: "
            "pip install 'footprint-audit[whatif]'"
        ) from None
    lief.logging.disable()
    # The command freezes objects at exit, and LIEF would report them as leaks.
    atexit.register(gc.unfreeze)
    binary = lief.ELF.parse(data)
    if binary is None:
        raise InputError(file, "LIEF cannot read it, so its copy cannot be written")
    tag = lief.ELF.DynamicEntry.TAG.RUNPATH if is_runpath else lief.ELF.DynamicEntry.TAG.RPATH
    entry = lief.ELF.DynamicEntryRunPath if is_runpath else lief.ELF.DynamicEntryRpath
    # LIEF takes UTF-8 only, and a name of a directory may be any bytes.
    stand_in = secrets.token_hex(len(directories))[: len(directories)]
    binary.remove(tag)
    binary.add(entry(stand_in))
    return bytes(binary.write_to_bytes()).replace(stand_in.encode(), directories)


@dataclass(frozen=True, slots=True)
class Dropping:
    """The needs of a process that are dropped, and the result. Objects are numbered in load order.

    Attributes:
        heads: The libraries that were named.
        needs: The needs that are dropped.
        leaving: The objects that leave with them, the named ones included.
        without: The process without the needs.
        doubts: What may go wrong.
    """

    heads: frozenset[int]
    needs: frozenset[UnusedNeed]
    leaving: frozenset[int]
    without: LibraryRemoval
    doubts: tuple[str, ...]


def plan_dropping(graph: DependencyGraph, names: Sequence[str], *, is_forced: bool) -> Dropping:
    """Decide which needs are dropped so that some libraries leave.

    Args:
        graph: The process.
        names: The libraries: sonames, file names, or paths.
        is_forced: Whether to drop them although something is bound from them.

    Raises:
        UsageError: If a library is missing or cannot leave; the text says why.
    """
    heads = frozenset([_head(graph, name) for name in names])
    needs = _needs(graph, heads)
    unused = needs & unused_needs(graph)
    staying = heads - _leaving(graph, unused)
    if staying and not is_forced:
        raise UsageError(_use(graph, staying, unused))
    dropped = needs if is_forced else unused
    leaving = _leaving(graph, dropped)
    without = graph.without(dropped)
    doubts_found = doubts(graph, without, leaving)
    blocks = [d for d in doubts_found if d.is_fatal or (d.confidence is Confidence.BLOCKED and not is_forced)]
    if blocks:
        # --force does not help where the loader would refuse the program.
        hint = "" if any(block.is_fatal for block in blocks) else "; --force tries it anyway"
        raise UsageError(f"{names_of(graph, heads)} cannot be dropped: {_listed(blocks)}{hint}")
    # The needs of an object that leaves do not matter.
    kept = frozenset([need for need in dropped if need.user not in leaving])
    return Dropping(heads, kept, leaving, without, tuple([d.reason for d in doubts_found]))


def _use(graph: DependencyGraph, staying: frozenset[int], unused: frozenset[UnusedNeed]) -> str:
    """Describe who uses some libraries, so that they stay, and who needs them without using them."""
    needs = _needs(graph, staying)
    doubts_found = doubts(graph, graph.without(needs), _leaving(graph, needs))
    blocks = [d for d in doubts_found if d.confidence is Confidence.BLOCKED and not d.is_fatal]
    text = f"{names_of(graph, staying)} cannot be dropped: {_listed(blocks)}"
    if users := {need.user for need in unused if need.provider in staying}:
        need = "needs it without using it" if len(users) == 1 else "need it without using it"
        text += f"; {names_of(graph, users)} {need}, but it stays loaded, and nothing is saved"
    return text if any(d.is_fatal for d in doubts_found) else f"{text}; --force tries it anyway"


def _needs(graph: DependencyGraph, providers: frozenset[int]) -> frozenset[UnusedNeed]:
    return frozenset(
        [UnusedNeed(user, provider) for user, needed in enumerate(graph.needed) for provider in providers & {*needed}]
    )


def _head(graph: DependencyGraph, name: str) -> int:
    """Find the library of a name, and refuse one that no process can do without."""
    objects = graph.objects
    numbers = [number for number in range(len(objects)) if name in _names_of(graph, number)]
    if len(objects) == 1:
        raise UsageError(f"{objects[0].path} is a static program: it needs no library by name")
    if not numbers:
        path = objects[0].path
        raise UsageError(
            f"{name} is none of the {len(objects) - 1} libraries of {path}; `footprint libraries` shows them"
        )
    number = numbers[0]
    if number == 0:
        raise UsageError(f"{name} is the program itself")
    if objects[number].found_by is FoundBy.AUDIT:
        raise UsageError(f"{name} cannot be dropped: it watches the loader (DT_AUDIT), or is a copy for what does")
    loader = graph.link_map.interpreter_object
    is_loader = loader is not None and objects[number].library is loader.library
    if is_loader or graph.name(number).startswith("libc.so."):
        raise UsageError(f"{name} cannot be dropped: no program runs without the C library and the loader")
    if number in graph.roots:
        raise UsageError(f"{name} cannot be dropped: it is preloaded, and no object needs it by name")
    return number


def _names_of(graph: DependencyGraph, number: int) -> set[str]:
    linked = graph.objects[number]
    requested = {d.name for linked in graph.link_map.objects for d in linked.dependencies if d.place == number}
    return requested | {graph.name(number), linked.path, linked.path.rpartition("/")[2], linked.library.real_path}


def _leaving(graph: DependencyGraph, dropped: Collection[UnusedNeed]) -> frozenset[int]:
    kept = graph.remaining(lambda user, provider: UnusedNeed(user, provider) in dropped)
    return frozenset(range(len(graph.objects))) - kept


def _listed(doubts: Sequence[Doubt]) -> str:
    shown = [doubt.reason for doubt in doubts[:_MOST_REASONS]]
    rest = len(doubts) - len(shown)
    return "; ".join([*shown, *([f"and {rest} more"] if rest else [])])


class PrivateCopies:
    """The copies of a program, and of those of its libraries that need a dropped library.

    The loader finds a copy of a library through the first object that needs the library. That object must be a copy
    too, and so on up to the program. Both variants are the same files: only the NEEDED entries change between starts.

    Args:
        folder: An empty directory for the copies.
        graph: The process.
        dropping: What is dropped.
        environment: The environment of the loader.
    """

    def __init__(self, folder: str, graph: DependencyGraph, dropping: Dropping, environment: Environment) -> None:
        self._graph = graph
        self._dropping = dropping
        self._environment = environment
        self._library_folder = os.path.join(folder, "lib")
        self._switches: list[tuple[str, tuple[Switch, ...]]] = []
        self.program = os.path.join(folder, "bin", os.path.basename(graph.objects[0].path))
        self.originals: dict[str, str] = {}
        for path in (self.program, self._library_folder + os.sep):
            os.mkdir(os.path.dirname(path), 0o700)
        users = {need.user for need in dropping.needs}
        copied = self._with_requesters({0} | users)
        requesters = {graph.objects[number].loader for number in copied}
        for number in sorted(copied):
            self._copy(number, has_copies=number in requesters)

    def _with_requesters(self, numbers: set[int]) -> set[int]:
        patched = set(numbers)
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            requester = self._graph.objects[number].loader
            if requester is None and number != 0:
                name = self._graph.name(number)
                raise UsageError(f"{name} is preloaded, and a copy of it would not be: it needs what is dropped")
            if requester is not None and requester not in patched:
                patched.add(requester)
                waiting.append(requester)
        return patched

    def _copy(self, number: int, *, has_copies: bool) -> None:
        linked = self._graph.objects[number]
        path = self._path_of_copy(number)
        data = bytes(linked.library.image.data)
        linkage = linked.library.linkage
        is_runpath = linkage.runpath is not None
        before = linkage.runpath if is_runpath else linkage.rpath
        after = self._resolved(before, linked, is_program=number == 0)
        if has_copies:
            after = self._library_folder if after is None else f"{self._library_folder}:{after}"
        if after is not None and after != before:
            data = with_search_path(data, linked.path, os.fsencode(after), is_runpath=is_runpath)
        write_file(path, data)
        os.chmod(path, 0o700)
        self.originals[path] = linked.path
        dropped = {need.provider for need in self._dropping.needs if need.user == number}
        names = frozenset([dependency.name for dependency in linked.dependencies if dependency.place in dropped])
        self._switches.append((path, need_switches(read_image(data, linked.path, with_sections=False), names)))

    def _path_of_copy(self, number: int) -> str:
        """Return the path of the copy of a library, under the name that the first object needs it by."""
        if number == 0:
            return self.program
        objects = self._graph.objects
        requester = objects[number].loader or 0
        name = next(dependency.name for dependency in objects[requester].dependencies if dependency.place == number)
        if "/" in name:
            raise UsageError(f"{objects[requester].path} needs {name} by its path, so a copy of it would not be loaded")
        return os.path.join(self._library_folder, name)

    def _resolved(self, directories: str | None, linked: Linked, *, is_program: bool) -> str | None:
        """Return the search directories of the original without $ORIGIN: the copy is in another directory."""
        path = os.path.join(self._environment.cwd, linked.path)
        origin = parent(os.path.realpath(path) if is_program else path)
        if directories is None or expanded(directories, Tokens(None, "", "")) is not None:
            return directories
        if ":" in origin:
            raise UsageError(f"{linked.path} looks for libraries beside itself, and a list cannot name {origin}")
        return expanded(directories, Tokens(origin, "$LIB", "$PLATFORM"))

    def switched(self, *, is_on: bool) -> str:
        """Switch the NEEDED entries as `switch` does, and return the program."""
        self.switch(is_on=is_on)
        return self.program

    def switch(self, *, is_on: bool) -> None:
        """Switch the NEEDED entries on or off, while no copy runs.

        Raises:
            AccessError: If a copy runs.
        """
        for path, switches in self._switches:
            try:
                with open(open_kept(path), "r+b") as file:
                    for entry in switches:
                        file.seek(entry.offset)
                        file.write(entry.on if is_on else entry.off)
            except OSError as error:
                raise AccessError(self.originals[path], f"its copy cannot be changed: {error.strerror}") from error

    def check(self) -> tuple[Note, ...]:
        """Check that the copies load the libraries that the originals do, and would do without the needs.

        Raises:
            InputError: If they load others.
        """
        without = self._dropping.without
        for is_on, expected in ((True, self._graph.link_map), (False, without.link_map)):
            self.switch(is_on=is_on)
            self._compare([linked.path for linked in expected.objects], self._loaded())
        if without.swapped is None:
            return ()
        detail = "without the needs its libraries are loaded in another order: symbols may come from other libraries"
        return (Note("load-order-differs", self._graph.objects[0].path, detail),)

    def _loaded(self) -> list[str]:
        # A new `System`, because another one may have read the files before they changed.
        link_map = link(System(), self.program, self._environment)
        return [self.originals.get(linked.path, linked.path) for linked in link_map.objects]

    def _compare(self, expected: list[str], loaded: list[str]) -> None:
        if loaded != expected:
            program = self._graph.objects[0].path
            strange = sorted({*expected} ^ {*loaded}) or loaded
            raise InputError(program, f"its copy would not load the same libraries, but for {', '.join(strange)}")


@contextmanager
def private_copies(graph: DependencyGraph, dropping: Dropping, environment: Environment) -> Iterator[PrivateCopies]:
    """Make the copies, and remove them at the end.

    Raises:
        AccessError: If they cannot be written.
        UsageError: If they could not be run, or if the loader would not find them.
    """
    with tempfile.TemporaryDirectory(prefix="footprint-", dir=os.path.realpath(tempfile.gettempdir())) as folder:
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise UsageError(f"no program can run in {parent(folder)}: set TMPDIR to a directory that allows it")
        try:
            copies = PrivateCopies(folder, graph, dropping, environment)
        except OSError as error:
            raise AccessError(folder, f"the copies cannot be written: {error.strerror}") from error
        yield copies
