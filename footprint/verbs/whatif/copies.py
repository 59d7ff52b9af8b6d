"""Private copies of the files of a process, whose NEEDED entries can be switched off and on again."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.image import read_image
from footprint.errors import AccessError, InputError, Note, UsageError
from footprint.loader.configuration import Tokens, expanded, parent
from footprint.loader.link_map import Linked, link
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.system.whole_file import open_kept, write_file
from footprint.verbs.whatif.dropping import Dropping
from footprint.verbs.whatif.rewrite import Switch, need_switches, with_search_path


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
