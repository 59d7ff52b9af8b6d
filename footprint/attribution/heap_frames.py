"""The object and the function of each frame of a heap profile.

A profile names the object, or lists the mappings of its process, or has only addresses and names of functions
(massif's, where there is debug information). In the last case the symbols find the objects: an object was loaded at the
bias at which its functions have the addresses of the profile. What lies between its functions belongs to it too.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from footprint.elf import ET_EXEC, Image, shown_name
from footprint.elf.functions import Functions
from footprint.elf.names import split_suffixes
from footprint.elf.notes import build_id
from footprint.errors import InputError, Note
from footprint.heap.allocators import REPLACEMENT, Allocators
from footprint.heap.attribution import BELOW_THRESHOLD, NO_SYMBOL, Call
from footprint.heap.profile import Frame, Module, Profile
from footprint.units import first_of

__all__ = ("NO_SYMBOL", "ONLY_LINES", "Binary", "NamedFrames", "name_frames")

_NO_OBJECT: Final = "[no object: none at this address]"
ONLY_LINES: Final = "[no object: lines only]"
_NOT_TOLD: Final = "[no object: the profile does not tell]"
_SEVERAL: Final = "[no object: several could be at this address]"
_ANONYMOUS: Final = "[anonymous]"
_LUMP: Final = re.compile(r"in [0-9]+ places?,")
_PAGE_BYTES: Final = 4096
_PF_X: Final = 1
# No function is longer than this, and no more votes are needed to find a bias.
_MOST_PAGES: Final = 256
_MOST_VOTES: Final = 1 << 18


class Binary(NamedTuple):
    """One file with code.

    Attributes:
        path: Its path, by which its bytes are charged.
        image: The file.
        functions: Its functions, from its debug file where it has one.
    """

    path: str
    image: Image
    functions: Functions


class NamedFrames(NamedTuple):
    """The object and function of each frame of a profile, and what was odd about finding them."""

    calls: tuple[Call, ...]
    notes: tuple[Note, ...]


def name_frames(
    profile: Profile,
    name: str,
    allocators: Allocators,
    binaries: Sequence[Binary] = (),
    opened: Callable[[str], Binary | None] = lambda _path: None,
) -> NamedFrames:
    """Find the object and the function of each frame of a profile; `name` is its name in messages.

    `binaries` are the files of the process, for frames whose object the profile does not name. `opened` returns the
    file at a path that the profile lists as mapped, or None where it cannot be read.
    """
    notes: list[Note] = []
    modules = _Modules(profile.modules, binaries, opened, name, notes)
    placed = _placed(profile.frames, binaries, name, notes) if binaries and not profile.modules else ()
    calls = tuple([_call(frame, modules, placed, allocators) for frame in profile.frames])
    return NamedFrames(calls, tuple(notes))


def _call(frame: Frame, modules: "_Modules", placed: "Sequence[_Placed]", allocators: Allocators) -> Call:
    if frame.label is not None:
        return Call(BELOW_THRESHOLD, BELOW_THRESHOLD) if _LUMP.match(frame.label) else Call(_NOT_TOLD, frame.label)
    owner, function = frame.object, frame.function
    if frame.addr is not None:
        if owner is None and modules.is_known:
            # A stack holds return addresses. The call before one may be the last instruction of its function.
            owner, function = modules.at(frame.addr - 1)
        elif owner is not None and function is None and modules.has_file(owner):
            owner, function = modules.in_file(owner, frame.addr - 1)
        elif placed and (owner is None or function is None):
            owner, function = _placed_at(frame, placed)
        elif owner is None and frame.file is not None:
            owner = ONLY_LINES
    rule = REPLACEMENT if owner is not None and allocators.has_object(owner) else ""
    if function is not None and not rule:
        rule = allocators.rule_of(split_suffixes(shown_name(function)).stem)
    return Call(owner or _NOT_TOLD, function or NO_SYMBOL, rule)


# --- profiles that list mappings --------------------------------------------------------------------------------------


class _Modules:
    """The mappings of the process, and the functions in them."""

    def __init__(
        self,
        modules: Iterable[Module],
        binaries: Sequence[Binary],
        opened: Callable[[str], Binary | None],
        name: str,
        notes: list[Note],
    ) -> None:
        self._files = {module.path: module for module in modules if module.has_file_addrs}
        self._modules = sorted(module for module in modules if not module.has_file_addrs)
        self._starts = [module.start_addr for module in self._modules]
        self._opened, self._name, self._notes = opened, name, notes
        self._binaries: dict[str, Binary | None] = {}
        # By their names, for profiles without build-ids.
        self._given = {key: one for one in binaries for key in (_last(one.path), build_id(one.image))}

    @property
    def is_known(self) -> bool:
        """Whether the profile lists any mappings with addresses of the process."""
        return bool(self._modules)

    def has_file(self, path: str) -> bool:
        """Return whether the profile has addresses of a file instead of the process."""
        return path in self._files

    def in_file(self, path: str, vaddr: int) -> tuple[str, str | None]:
        """Return the object of such an address, and the function where its file names it."""
        binary = self._binary(self._files[path])
        return (path, None) if binary is None else (binary.path, _name_at(binary, vaddr))

    def at(self, addr: int) -> tuple[str, str | None]:
        """Return the object at an address, and the function where its file names it."""
        last = bisect_right(self._starts, addr) - 1
        if last < 0 or addr >= self._modules[last].end_addr:
            return _NO_OBJECT, None
        module = self._modules[last]
        if not module.path.startswith("/"):
            return module.path or _ANONYMOUS, None
        binary = self._binary(module)
        if binary is None:
            return module.path, None
        offset = addr - module.start_addr + module.offset
        for load in binary.image.loads:
            if load.offset <= offset < load.offset + load.file_bytes:
                return module.path, _name_at(binary, offset - load.offset + load.vaddr)
        return module.path, None

    def _binary(self, module: Module) -> Binary | None:
        """Return the file of a mapping, also from another path; None where another file is at its path now."""
        if module.path not in self._binaries:
            found = self._given.get(module.build_id or _last(module.path)) or self._opened(module.path)
            if found is not None and not _fits(found.image, module):
                detail = f"{module.path} is another file than the one that was mapped: its functions are not named"
                self._notes.append(Note("heap-binary-misfit", self._name, detail))
                found = None
            self._binaries[module.path] = found
        return self._binaries[module.path]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _fits(image: Image, module: Module) -> bool:
    """Return whether a file has the build-id of a mapping, or the loader would map its code like this mapping."""
    if module.build_id or module.has_file_addrs:
        return not module.build_id or module.build_id == build_id(image)
    size_bytes = module.end_addr - module.start_addr
    for load in image.loads:
        start = load.offset // _PAGE_BYTES * _PAGE_BYTES
        end = -(-(load.offset + load.file_bytes) // _PAGE_BYTES) * _PAGE_BYTES
        # A part of a segment may have been mapped again, for instance into huge pages.
        if load.flags & _PF_X and start <= module.offset and module.offset + size_bytes <= end:
            return True
    return False


def _name_at(binary: Binary, vaddr: int) -> str | None:
    try:
        function = binary.functions.at(vaddr)
    except InputError:
        return None
    return None if function is None else function.name


# --- profiles with addresses and names --------------------------------------------------------------------------------


class _Placed(NamedTuple):
    """A file, and where its code was loaded; the range is half-open."""

    start_addr: int
    end_addr: int
    bias_addr: int
    binary: Binary


def _placed_at(frame: Frame, placed: Sequence[_Placed]) -> tuple[str, str | None]:
    """Return the object and the function of a frame; a debug file may name more functions than the profile."""
    addr, owner = frame.addr or 0, frame.object
    here = [one for one in placed if one.start_addr <= addr < one.end_addr and owner in {None, one.binary.path}]
    if len(here) == 1 or (here and owner is not None):
        return here[0].binary.path, frame.function or _name_at(here[0].binary, addr - here[0].bias_addr)
    if here:
        return _SEVERAL, frame.function
    if owner is None:
        owner = ONLY_LINES if frame.file is not None else _NOT_TOLD
    return owner, frame.function


def _placed(frames: Sequence[Frame], binaries: Sequence[Binary], name: str, notes: list[Note]) -> list[_Placed]:
    """Find where files were loaded, from the addresses of their functions."""
    named: dict[str | None, dict[str, set[int]]] = {}
    for frame in frames:
        if frame.addr is not None and frame.function is not None:
            wanted = named.setdefault(frame.object, {})
            wanted.setdefault(_plain(frame.function), set()).add(frame.addr)
    found = []
    for binary in binaries:
        # A frame with a source line has no object, although others of the same file have one.
        wanted = {**named.get(None, {}), **named.get(binary.path, {})}
        bias_addr = _bias(binary, wanted, is_demangled=False)
        if bias_addr is None and any("::" in name or "(" in name for name in wanted):
            bias_addr = _bias(binary, wanted, is_demangled=True)
        if bias_addr is None:
            continue
        code = [load for load in binary.image.loads if load.flags & _PF_X]
        found += [
            _Placed(bias_addr + load.vaddr, bias_addr + load.vaddr + load.memory_bytes, bias_addr, binary)
            for load in code
        ]
    if None in named and not found:
        files = first_of([binary.path for binary in binaries], 1)
        detail = f"none of its functions has its address in {files}: they are of another build, or of another process"
        notes.append(Note("heap-binary-misfit", name, detail))
    return found


def _bias(binary: Binary, wanted: dict[str, set[int]], *, is_demangled: bool) -> int | None:
    """Return the bias of a file that most of its functions agree on; None where another bias has half as many votes.

    A bias is a number of whole pages, so most functions allow one bias or none.
    """
    votes = Counter(islice(_votes(binary, wanted, is_demangled=is_demangled), _MOST_VOTES))
    if binary.image.type == ET_EXEC:
        return 0 if votes[0] else None
    best = votes.most_common(2)
    if not best or (len(best) == 2 and best[1][1] * 2 > best[0][1]):
        return None
    return best[0][0]


def _votes(binary: Binary, wanted: dict[str, set[int]], *, is_demangled: bool) -> Iterator[int]:
    """Yield the biases at which a function of the file has an address of the profile."""
    for function, vaddr, size_bytes in _named(binary, is_demangled=is_demangled):
        for addr in wanted.get(function, ()):
            nearest = (addr - vaddr) // _PAGE_BYTES * _PAGE_BYTES
            for step in range(min(size_bytes // _PAGE_BYTES, _MOST_PAGES) + 1):
                bias_addr = nearest - step * _PAGE_BYTES
                if bias_addr + vaddr <= addr < bias_addr + vaddr + size_bytes:
                    yield bias_addr


def _named(binary: Binary, *, is_demangled: bool) -> Iterator[tuple[str, int, int]]:
    """Return the functions of a file under the names that profiles use.

    Most programs have functions of C, and few are enough. So names of C++, which are many, are rarely demangled.
    """
    try:
        for name, vaddr, size_bytes, *_ in binary.functions:
            if name.startswith(("_Z", "_R")) != is_demangled or not size_bytes:
                continue
            yield _plain(shown_name(name)) if is_demangled else name.partition("@")[0], vaddr, size_bytes
    except InputError:
        return


def _plain(name: str) -> str:
    """Remove the spaces of a name: demanglers differ in where they put them."""
    return name.replace(" ", "")
