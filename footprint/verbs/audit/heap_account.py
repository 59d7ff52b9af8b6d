"""The heap of an audit by who asked for it: reads the profile, and the files of the process where it needs them."""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from footprint.attribution.heap_join import join_heap
from footprint.attribution.heap_places import Binary
from footprint.attribution.heap_usage import HeapUsage
from footprint.elf.functions import FunctionStarts, read_functions
from footprint.elf.image import read_image, starts_like_elf
from footprint.elf.notes import DebugSearch
from footprint.errors import FootprintError, Note, UsageError
from footprint.findings.registry import Fact, HeapFacts, LedgerFacts, find_all
from footprint.heap.allocators import Allocators
from footprint.heap.profile import Counted, Profile
from footprint.members import replace
from footprint.model.audit import Audit
from footprint.model.finding import Finding
from footprint.model.row import MemoryKind
from footprint.process.mappings import (
    FileKey,
    FileOpener,
    Mapping,
    OpenFiles,
    file_key,
    open_mapped_file,
    word_bytes_of,
)
from footprint.process.snapshot import Snapshot
from footprint.sources.debug_files import DebugFiles
from footprint.sources.process_files import open_saved_file
from footprint.system.files import open_input
from footprint.verbs.audit.request import HeapRequest
from footprint.verbs.heap.call import BinaryFiles, read_usages

_AT_END: Final = "end"
_LONGEST_PATH: Final = 4096


def with_heap(
    audit: Audit,
    request: HeapRequest,
    *,
    snapshot: Snapshot | None,
    root: str | None = None,
    debug: DebugSearch | None,
    open_file: FileOpener | None = None,
) -> Audit:
    """Split the heap of an audit by who asked for it, and tell what of it could be constant.

    Args:
        audit: A process.
        request: By what.
        snapshot: The process, for profiles that name functions and no objects; None for a saved audit.
        root: A folder in which its files are, where it is not live.
        debug: Where to look for the symbols of stripped files.
        open_file: Opens a file; None to open all anew.

    Raises:
        AccessError: Where the profile cannot be opened, or one of the binaries.
        InputError: Where it is none, or damaged, or one of the binaries is none.
        UsageError: Where it has no such moment or says nothing of memory in use, or the audit has a heap already or is
            no process's.
    """
    if audit.source == "prediction":
        raise UsageError(f"--heap goes with a process; {audit.saved_in} is the saved audit of a program")
    if audit.heap is not None:
        raise UsageError(f"the heap of this audit is split already, by {audit.heap.file}")
    open_file = open_file or OpenFiles()
    files = _ProcessFiles(snapshot, request.binaries, root, debug, open_file)
    allocators = Allocators(request.allocators)
    data = open_input(request.path)
    name = request.called or request.path
    moment = (name, request.at or _AT_END)
    (usage,) = read_usages(name, data, [moment], allocators, files.binaries, files.opened)
    if usage.snapshot is None or usage.profile.counted not in {Counted.HEAP, Counted.PAGES}:
        raise UsageError(f"{usage.file} has no memory in use at a moment, so it cannot be joined with a process")
    owners_of_ledger = {row.owner for row in audit.ledger}
    heap_owner = usage.profile.heap_owner
    if heap_owner is not None and heap_owner not in owners_of_ledger:
        raise UsageError(f"{usage.file} counts the {heap_owner[1:-1]}, and no memory of the process is known as that")
    owners = _owners(usage, owners_of_ledger)
    word_bytes = 8 if snapshot is None else word_bytes_of(snapshot.memory.mappings)
    joined = join_heap(audit, usage, owners, word_bytes)
    held_bytes = _held_bytes(joined, owners, usage)
    facts = {Fact.HEAP: HeapFacts(usage, held_bytes), Fact.LEDGER: LedgerFacts(joined.ledger, audit.page_bytes)}
    findings = (*audit.findings, *(_as_called(finding, owners) for finding in find_all(facts, Fact.HEAP)))
    ordered = tuple(sorted(findings, key=lambda finding: -finding.saving_bytes))
    return replace(joined, findings=ordered, notes=tuple(dict.fromkeys((*joined.notes, *files.notes))))


def _owners(usage: HeapUsage, owners_: set[str]) -> dict[str, str]:
    """Return the names that the ledger has for the objects of a profile, if they differ.

    Links may lead to one file by several paths, as `/lib` is a link to `/usr/lib`; pmap shows the last part of a path.
    """
    real = {_real(owner): owner for owner in sorted(owners_) if owner.startswith("/")}
    shares = usage.attribution.shares if usage.attribution is not None else ()
    profiled = {share.owner for share in shares if share.owner.startswith("/")}
    owners = {}
    for owner in profiled - owners_:
        path = _real(owner)
        names = (real.get(path), *(last for place in (path, owner) if (last := place.rpartition("/")[2]) in owners_))
        name = next(filter(None, names), None)
        if name is not None:
            owners[owner] = name
    return owners


def _as_called(finding: Finding, owners: dict[str, str]) -> Finding:
    """Call the object of a finding as the ledger does."""
    path = finding.object_path
    name = owners.get(path, path)
    return replace(finding, subject=finding.subject.replace(path, name, 1), object=name or None)


def _real(path: str) -> str:
    """Follow the links of a path; a profile may call something a path that is none."""
    if len(path) > _LONGEST_PATH or "\0" in path:
        return path
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _held_bytes(joined: Audit, owners: dict[str, str], usage: HeapUsage) -> dict[tuple[str, str], int] | None:
    """Return how much private memory each function of the profile has."""
    if joined.heap is None or joined.heap.held_bytes is None or joined.totals.private.bytes is None:
        return None
    sizes = {
        (row.owner, row.symbol): row.bytes or 0 for row in joined.ledger if row.kind is MemoryKind.HEAP and row.symbol
    }
    shares = usage.attribution.shares if usage.attribution is not None else ()
    return {
        (share.owner, share.function): sizes.get((owners.get(share.owner, share.owner), share.function), 0)
        for share in shares
    }


class _ProcessFiles:
    """The files with code of a process, read when a profile leaves them untold."""

    def __init__(
        self,
        snapshot: Snapshot | None,
        given: Sequence[str],
        root: str | None,
        debug: DebugSearch | None,
        open_file: FileOpener,
    ) -> None:
        self._snapshot, self._root, self._open_file = snapshot, root, open_file
        self._others = BinaryFiles(root, debug, open_file)
        self._debug_files = DebugFiles(debug, root, open_file)
        # Those that the user names are to be there, whether they are needed or not.
        self._given = self._others.with_needed(given)

    @property
    def notes(self) -> list[Note]:
        """Return notes on what could not be read."""
        return self._others.notes

    def binaries(self, profile: Profile) -> Sequence[Binary]:
        """Return the files of the process, if a profile has addresses that it does not assign to objects."""
        is_untold = any(
            frame.addr is not None and (frame.object is None or frame.function is None) for frame in profile.frames
        )
        # Mappings name their files by a path, which another machine or container has not, or by a build-id.
        if not is_untold or (profile.modules and not any(module.build_id for module in profile.modules)):
            return ()
        return [
            *self._mapped_binaries.values(),
            *(binary for binary in self._given if binary.path not in self._mapped_binaries),
        ]

    def opened(self, path: str) -> Binary | None:
        """Return the file at a path of the profile: that of the process, if it has one."""
        return self._mapped_binaries[path] if path in self._mapped_binaries else self._others.opened(path)

    @cached_property
    def _mapped_binaries(self) -> dict[str, Binary]:
        binaries: dict[str, Binary] = {}
        met: set[FileKey] = set()
        snapshot = self._snapshot
        if snapshot is None:
            return binaries
        for mapping in snapshot.memory.mappings:
            key = file_key(mapping)
            if key is None or key in met or mapping.permissions[2] != "x" or mapping.inode is None:
                continue
            met.add(key)
            binary = self._binary(mapping, snapshot)
            if binary is not None:
                binaries[binary.path] = binary
        return binaries

    def _binary(self, mapping: Mapping, snapshot: Snapshot) -> Binary | None:
        if snapshot.is_live:
            opened = open_mapped_file(mapping, snapshot.pid, self._open_file)
        else:
            facts = snapshot.files.get((mapping.device, mapping.inode, mapping.name))
            opened = open_saved_file(mapping, facts, self._root, self._open_file)
        # The audit itself tells which files cannot be had.
        if isinstance(opened, Note) or not starts_like_elf(opened.data):
            return None
        try:
            image = read_image(opened.data, mapping.name)
            functions = read_functions(self._debug_files.symbols_of(image, mapping.name))
            return Binary(mapping.name, image, functions, FunctionStarts(image))
        except FootprintError as error:
            self.notes.append(Note("file-unreadable", mapping.name, f"{error.detail}, its functions are not named"))
            return None
