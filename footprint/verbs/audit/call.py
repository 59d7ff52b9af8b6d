"""`footprint.audit`: where the memory of a process goes, and what N of it cost."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from footprint.errors import FootprintError, UnsupportedError, UsageError
from footprint.files import StrPath
from footprint.model.audit import Audit
from footprint.model.row import OF_OBJECTS
from footprint.process import Snapshot
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.open_files import OpenFiles
from footprint.sources.target import (
    AnyTarget,
    AuditFile,
    Capture,
    Named,
    Process,
    Processes,
    Program,
    SingleTarget,
    check_options,
    filled_snapshots,
    resolve,
    snapshot_of,
)
from footprint.verbs.audit.request import AuditRequest, all_doubtful_rules, heap_request, question_of
from footprint.verbs.audit.saved import AuditedTarget, read_saved

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("audit", "audit_any", "audit_target", "with_objects_if_new")


def audit(  # noqa: PLR0913 # all but the target are named
    target: Named,
    *,
    count: int | None = None,
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
        count: How many processes to project to; None for one, and for what a saved audit was saved with.
        memory_bytes: Project to how many fit into this instead, or meet another limit of a live process before.
        model: How they come about: `exec` (started copies), `fork` (workers of one parent), `threads`; None for what a
            live process shows.
        pid: Which process of a text or capture that holds several.
        root: The folder with the files of the other machine, for captures and texts; for a program, its `/`.
        page_bytes: The size of a page, for a program of another machine.
        has_findings: Whether to search a live process for what it could do without, which takes some time. A program
            is always searched; with this, its doubtful findings on variables are kept, too.
        has_page_maps: Whether to list the pages of its objects, and its mappings, for a picture; a saved audit has
            those it was saved with.
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
        has_objects=True,
        has_question=count is not None or memory_bytes is not None or model != "exec",
    )
    asked.check_standard_input(target)
    found = resolve(target, root=root)
    if memory_bytes is not None:
        from footprint.sources.fit_limits import with_limits  # noqa: PLC0415 # few ask how many fit

        asked = asked._replace(question=with_limits(asked.question, found))
    return audit_target(found, asked).audit


def audit_any(target: AnyTarget, asked: AuditRequest) -> "AuditedTarget[Audited]":
    """Audit a target that is resolved: several processes as one group, or else one process or program.

    A capture of several processes is a group, unless one of them is chosen.

    Raises:
        AccessError: If what is named is gone or may not be read, or a file cannot be opened.
        InputError: If a file is damaged, or has no mapping.
        UsageError: If an option does not go with the target.
    """
    if isinstance(target, AuditFile):
        check_options(target, asked.options)
        saved = read_saved(target, asked)
        if isinstance(saved.audit, Audit):
            return saved._replace(audit=_joined(saved.audit, asked))
        if asked.heap is not None:
            raise UsageError(f"{target.name} is a group of processes: --heap goes with one process")
        return saved
    if isinstance(target, Processes) or (
        isinstance(target, Capture) and asked.pid is None and len(filled_snapshots(target)) > 1
    ):
        from footprint.verbs.audit.group import audit_group_target  # noqa: PLC0415 # most targets are one process

        return AuditedTarget(audit_group_target(target, asked))
    return audit_target(target, asked)


def audit_target(target: SingleTarget, asked: AuditRequest) -> AuditedTarget[Audit]:
    """Audit a target that is resolved, and that is one process or program.

    A saved audit is read, with how far its starts differ; everything else is audited now, and is one start.

    Raises:
        AccessError: If the process is gone or may not be read, or a file cannot be opened.
        InputError: If a file is damaged, or has no mapping.
        UnsupportedError: If it is a saved group.
        UsageError: If an option does not go with the target, or a file holds several processes.
    """
    check_options(target, asked.options)
    if isinstance(target, AuditFile):
        saved = read_saved(target, asked)
        if not isinstance(saved.audit, Audit):
            raise UnsupportedError(target.name, "it is about several processes: name the saved audit of one")
        return AuditedTarget(_joined(saved.audit, asked), saved.spreads, saved.tool_version)
    if isinstance(target, Program):
        from footprint.verbs.audit.findings import audit_program  # noqa: PLC0415 # the loader, which few processes need

        return AuditedTarget(audit_program(target.name, asked))
    from footprint.verbs.audit.process import audit_of, files_of  # noqa: PLC0415 # a saved audit needs no ledger

    snapshot = snapshot_of(target, asked.pid)
    files = files_of(snapshot, asked.debug, asked.root)
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
            has_heap=True,
        )
        if isinstance(target, Process) and asked.has_objects:
            from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the same

            audit = with_objects(audit, snapshot, files)
    return AuditedTarget(_joined(audit, asked, snapshot, files.opened))


def _joined(
    found: Audit, asked: AuditRequest, snapshot: Snapshot | None = None, open_file: OpenFiles | None = None
) -> Audit:
    """Join an audit with the allocator profile that is asked for."""
    if asked.heap is None:
        return found
    from footprint.verbs.audit.heap_account import with_heap  # noqa: PLC0415 # profiles, which few audits have

    return with_heap(found, asked.heap, snapshot=snapshot, root=asked.root, debug=asked.debug, open_file=open_file)


def with_objects_if_new(found: "Audited", other: "Audited", target: object) -> "Audited":
    """Add to the audit of a live process what its objects bring in, if another audit lacks some of them.

    Without findings, no audit of a process reads that. A process that is gone by now stays without.
    """
    from footprint.release.matching import owner_names  # noqa: PLC0415 # what only comparisons need

    if found.objects or not isinstance(target, Process) or not isinstance(found, Audit):
        return found
    known = owner_names(found, other)
    if all(row.owner in known for row in found.ledger if row.kind in OF_OBJECTS):
        return found
    from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader, which few processes need
    from footprint.verbs.audit.process import files_of  # noqa: PLC0415 # a saved audit needs no ledger

    with suppress(FootprintError):
        snapshot = snapshot_of(target, None)
        return with_objects(found, snapshot, files_of(snapshot, None))
    return found
