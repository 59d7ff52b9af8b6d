"""The object and the function of each frame of a heap profile.

A profile names the object, or lists the mappings of its process, or has only addresses and names of functions
(massif's, where there is debug information). In the last case the symbols find the objects: an object was loaded at the
bias at which its functions have the addresses of the profile (`heap_places.py`). What lies between its functions
belongs to it too.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from footprint.attribution.heap_places import Binary, Placed, place_files
from footprint.elf.image import Image
from footprint.elf.names import shown_name, split_suffixes
from footprint.elf.notes import build_id
from footprint.errors import Note
from footprint.heap.allocators import REPLACEMENT, Allocators
from footprint.heap.attribution import BELOW_THRESHOLD, NO_SYMBOL, Call
from footprint.heap.profile import Frame, Module, Profile
from footprint.model.row import NAMELESS

_NO_OBJECT: Final = "[no object: none at this address]"
ONLY_LINES: Final = "[no object: lines only]"
_NOT_TOLD: Final = "[no object: the profile does not tell]"
_SEVERAL: Final = "[no object: several could be at this address]"
_LUMP: Final = re.compile(r"in [0-9]+ places?,")
_PAGE_BYTES: Final = 4096
_PF_X: Final = 1


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
    placed = place_files(profile.frames, binaries, name, notes) if binaries and not profile.modules else ()
    calls = tuple([_call(frame, modules, placed, allocators) for frame in profile.frames])
    return NamedFrames(calls, tuple(notes))


def _call(frame: Frame, modules: "_Modules", placed: Sequence[Placed], allocators: Allocators) -> Call:
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
        rule = allocators.rule_of(split_suffixes(shown_name(function))[0])
    return Call(owner or _NOT_TOLD, function or NO_SYMBOL, rule)


def _placed_at(frame: Frame, placed: Sequence[Placed]) -> tuple[str, str | None]:
    """Return the object and the function of a frame; a debug file may name more functions than the profile."""
    addr, owner = frame.addr or 0, frame.object
    here = [p for p in placed if p.start_addr <= addr < p.end_addr and owner in {None, p.binary.path}]
    if len(here) == 1 or (here and owner is not None):
        return here[0].binary.path, frame.function or here[0].name_at(addr)
    if here:
        return _SEVERAL, frame.function
    if owner is None:
        owner = ONLY_LINES if frame.file is not None else _NOT_TOLD
    return owner, frame.function


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
        self._given = {key: binary for binary in binaries for key in (_last(binary.path), build_id(binary.image))}

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
        return (path, None) if binary is None else (binary.path, binary.name_at(vaddr))

    def at(self, addr: int) -> tuple[str, str | None]:
        """Return the object at an address, and the function where its file names it."""
        last = bisect_right(self._starts, addr) - 1
        if last < 0 or addr >= self._modules[last].end_addr:
            return _NO_OBJECT, None
        module = self._modules[last]
        if not module.path.startswith("/"):
            return module.path or NAMELESS, None
        binary = self._binary(module)
        if binary is None:
            return module.path, None
        offset = addr - module.start_addr + module.offset
        for load in binary.image.loads:
            if load.offset <= offset < load.offset + load.file_bytes:
                return module.path, binary.name_at(offset - load.offset + load.vaddr)
        return module.path, None

    def _binary(self, module: Module) -> Binary | None:
        """Return the file of a mapping, also from another path; None where another file is at its path now."""
        if module.path not in self._binaries:
            binary = self._given.get(module.build_id or _last(module.path)) or self._opened(module.path)
            if binary is not None and not _fits(binary.image, module):
                detail = f"{module.path} is another file than the one that was mapped: its functions are not named"
                self._notes.append(Note("heap-binary-misfit", self._name, detail))
                binary = None
            elif binary is not None and module.has_file_addrs and not module.build_id:
                detail = f"{self._name} has no build-id to compare: functions are named by the file with that name"
                self._notes.append(Note("file-unverified", module.path, detail))
            self._binaries[module.path] = binary
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
