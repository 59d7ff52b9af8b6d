"""`footprint.audit`: where the memory of a process goes, and what N of it cost."""

from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

from footprint import __version__
from footprint.errors import FootprintError
from footprint.files import StrPath
from footprint.model.audit import Audit
from footprint.model.projection import ONE
from footprint.model.row import OF_OBJECTS
from footprint.model.spread import ONE_START, Spreads
from footprint.process import Snapshot
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.demanglers import learn_told_names
from footprint.sources.open_files import OpenFiles
from footprint.sources.target import (
    AuditFile,
    Named,
    Process,
    Program,
    SingleTarget,
    check_options,
    resolve,
    snapshot_of,
)
from footprint.verbs.audit.process import audit_of, files_of
from footprint.verbs.audit.request import AuditRequest, all_doubtful_rules, heap_request, question_of

__all__ = ("AuditedTarget", "audit", "audit_target", "with_objects_if_new")


class AuditedTarget(NamedTuple):
    """An audit, and how it came about.

    Attributes:
        audit: The audit; of a saved `run` that of the median start.
        spreads: How far the starts of a saved `run` differ.
        tool_version: The footprint that made it.
    """

    audit: Audit
    spreads: Spreads = ONE_START
    tool_version: str = __version__


def audit(  # noqa: PLR0913 # all but the target are named
    target: Named,
    *,
    count: int = 1,
    memory_bytes: int | None = None,
    model: str | None = "exec",
    pid: int | None = None,
    root: StrPath | None = None,
    page_bytes: int | None = None,
    has_findings: bool = False,
    has_page_maps: bool = False,
    heap: StrPath | None = None,
    heap_at: str | None = None,
    allocators: Sequence[str] = (),
    binaries: Sequence[StrPath] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
    is_reproducible: bool = False,
) -> Audit:
    """Audit a process: where its memory goes, and what `count` of it cost.

    Args:
        target: A PID; the path of a program or library, which is not run; or that of a saved audit, a capture, or a
            saved `maps`, `smaps` or `pmap` text (`-` is standard input).
        count: How many processes to project to.
        memory_bytes: Project to how many fit into this instead.
        model: How they come about: `exec` (started copies), `fork` (workers of one parent), `threads`; None for what a
            live process shows.
        pid: Which process of a text or capture that holds several.
        root: The folder with the files of the other machine, for captures and texts; for a program, its `/`.
        page_bytes: The size of a page, for a program of another machine.
        has_findings: Whether to search a live process for what it could do without, which takes some time. A program
            is always searched; with this, its doubtful findings on variables are kept, too.
        has_page_maps: Whether to list the pages of its objects, for a picture; a saved audit has those it was saved
            with.
        heap: An allocator profile of another run of the same program, by which the heap is split.
        heap_at: Which moment of it: the number of a snapshot, a time with its unit, `peak` or `end`; None for its end.
        allocators: More functions that only hand memory on, for `heap`.
        binaries: Programs and libraries of the process, for `heap`, if its own files are not available.
        debug: Where to look for the symbols of stripped files; None for nowhere.
        is_reproducible: Whether the same program gives the same answer on any machine.

    Raises:
        AccessError: If the process is gone or may not be read, or a file cannot be opened.
        InputError: If the target is none of these, or has no mapping.
        UsageError: If an option does not go with the target.
    """
    asked = AuditRequest(
        question_of(count, memory_bytes, model),
        pid,
        None if root is None else str(root),
        page_bytes,
        has_findings,
        has_page_maps,
        heap_request(heap, heap_at, allocators, binaries),
        debug,
        is_reproducible,
        all_doubtful_rules(is_wanted=has_findings),
    )
    asked.check_standard_input(target)
    return audit_target(resolve(target, root=root), asked).audit


def audit_target(target: SingleTarget, asked: AuditRequest) -> AuditedTarget:
    """Audit a target that is resolved.

    A saved audit is read, with how far its starts differ; everything else is audited now, and is one start.

    Raises:
        AccessError: If the process is gone or may not be read, or a file cannot be opened.
        InputError: If a file is damaged, or has no mapping.
        UsageError: If an option does not go with the target.
    """
    check_options(target, asked.options)
    if isinstance(target, Program):
        from footprint.verbs.audit.findings import audit_program  # noqa: PLC0415 # the loader, which few processes need

        return AuditedTarget(audit_program(target.name, asked))
    snapshot: Snapshot | None = None
    open_file: OpenFiles | None = None
    if isinstance(target, AuditFile):
        found = _read_saved(target, asked)
    else:
        snapshot = snapshot_of(target, asked.pid)
        files = files_of(snapshot, asked.debug, asked.root)
        open_file = files.opened
        if isinstance(target, Process) and asked.has_findings:
            from footprint.verbs.audit.findings import audit_with_findings  # noqa: PLC0415 # the same

            audit = audit_with_findings(snapshot, asked, files)
        else:
            audit = audit_of(
                snapshot,
                target.name,
                asked.question,
                root=asked.root,
                files=files,
                has_page_maps=asked.has_page_maps,
            )
        found = AuditedTarget(audit)
    if asked.heap is None:
        return found
    from footprint.verbs.audit.heap_account import with_heap  # noqa: PLC0415 # profiles, which few audits have

    joined = with_heap(
        found.audit, asked.heap, snapshot=snapshot, root=asked.root, debug=asked.debug, open_file=open_file
    )
    return found._replace(audit=joined)


def with_objects_if_new(found: Audit, other: Audit, target: SingleTarget) -> Audit:
    """Add to the audit of a live process what its objects bring in, if another audit lacks some of them.

    Without findings, no audit of a process reads that. A process that is gone by now stays without.
    """
    from footprint.release.matching import owner_names  # noqa: PLC0415 # what only comparisons need

    if found.objects or not isinstance(target, Process):
        return found
    known = owner_names(found, other)
    if all(row.owner in known for row in found.ledger if row.kind in OF_OBJECTS):
        return found
    from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader, which few processes need

    with suppress(FootprintError):
        return with_objects(found, target)
    return found


def _read_saved(target: AuditFile, asked: AuditRequest) -> AuditedTarget:
    from footprint.formats.saved_audit import read_audit, reprojected  # noqa: PLC0415 # json

    saved = read_audit(target.data, target.name, has_page_maps=asked.has_page_maps)
    named = map(attrgetter("symbol", "name"), saved.audit.ledger)
    learn_told_names({symbol: name for symbol, name in named if symbol and name and symbol != name})
    found = saved.audit if asked.question == ONE else reprojected(saved.audit, asked.question)
    return AuditedTarget(found, saved.spreads, saved.tool_version)
