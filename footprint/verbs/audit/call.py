"""`footprint.audit` and `footprint.audit_group`: where memory goes, and what N cost."""

from collections.abc import Sequence
from contextlib import suppress

from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import FootprintError, UsageError
from footprint.model.audit import Audit, AuditRecord
from footprint.model.row import OF_OBJECTS
from footprint.process.mappings import OpenFiles
from footprint.process.snapshot import Snapshot
from footprint.sources.target import (
    AnyTarget,
    AuditFile,
    Capture,
    Named,
    Process,
    ProcessChoice,
    Processes,
    Program,
    Text,
    check_options,
    filled_snapshots,
    resolve,
    resolve_processes,
    snapshot_of,
)
from footprint.system.files import StrPath
from footprint.verbs.audit.request import AuditRequest, all_doubtful_rules, heap_request, request_of


def audit(  # noqa: PLR0913 # keyword-only
    target: Named,
    *,
    count: int | None = None,
    memory_bytes: int | None = None,
    reserve_bytes: int = 0,
    limit: str | None = None,
    model: str | None = None,
    workers: int | None = None,
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
        reserve_bytes: The part of it that is left for others.
        limit: A control group whose limits count as well: its path, or `own` for that of the target.
        model: How they come about: `exec` (started copies), `fork` (workers of one parent), `threads`; None for what a
            live process shows, where one of these is asked for: a fork of its parent is one of many workers, everything
            else a started copy.
        workers: The workers of each group, where the target is one; None for as many as there are.
        pid: Which process of a text or capture that holds several; without it, those of a capture are a group.
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
    request = request_of(
        count, memory_bytes, model, reserve_bytes=reserve_bytes, limit=limit, worker_count=workers
    )._replace(
        pid=pid,
        root=None if root is None else str(root),
        page_bytes=page_bytes,
        has_findings=has_findings,
        has_quick_findings=True,
        has_page_maps=has_page_maps,
        heap=heap_request(heap, heap_at, allocators, binaries),
        debug=debug,
        is_reproducible=is_reproducible,
        doubtful_rules=all_doubtful_rules(is_wanted=has_findings),
        has_objects=True,
    )
    request.check_standard_input(target)
    return audit_target(resolve(target, root=root, series_moment=request.series_moment), request).audit


def audit_group(  # noqa: PLR0913 # keyword-only
    pids: Sequence[int] = (),
    *,
    tree: int | None = None,
    name: str | None = None,
    cgroup: str | None = None,
    unit: str | None = None,
    container: str | None = None,
    count: int | None = None,
    workers: int | None = None,
    memory_bytes: int | None = None,
    reserve_bytes: int = 0,
    limit: str | None = None,
    has_findings: bool = False,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Audit:
    """Audit several processes: what each holds alone, and once what they share.

    Args:
        pids: The processes.
        tree: A process that is added with all its descendants.
        name: A name; all processes that have it are added.
        cgroup: The path of a control group; all processes in it and below it are added.
        unit: A unit of systemd; all its processes are added.
        container: The ID of a container; all its processes are added.
        count: How many such groups to project to; None for one.
        workers: The workers of each group; None for as many as there are.
        memory_bytes: Project to how many groups, or workers, fit into this instead.
        reserve_bytes: The part of it that is left for others.
        limit: A control group whose limits count as well: its path, or `own` for that which was chosen, else the lowest
            one that holds all processes.
        has_findings: Whether to search live processes for what they could do without, which takes some time.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If no process is named, or a file.
    """
    if isinstance(pids, str):  # type: ignore[unreachable] # whoever calls it without a type checker
        raise UsageError(f"{pids} is no list of PIDs: footprint.audit takes a capture or a saved audit of several")
    choice = ProcessChoice(tree, name, cgroup, unit, container)
    request = request_of(count, memory_bytes, reserve_bytes=reserve_bytes, limit=limit, worker_count=workers)._replace(
        has_findings=has_findings,
        has_quick_findings=True,
        debug=debug,
        doubtful_rules=all_doubtful_rules(is_wanted=has_findings),
        has_objects=True,
    )
    return audit_target(resolve_processes(pids, choice), request).audit


def audit_target(target: AnyTarget, request: AuditRequest) -> AuditRecord:
    """Audit a target that is resolved: several processes as one group, or else one process or program.

    A saved audit is read, with how far its starts differ; everything else is audited now, and is one start. A capture
    of several processes is a group, unless one of them is chosen.

    Raises:
        AccessError: If what is named is gone or may not be read, or a file cannot be opened.
        InputError: If a file is damaged, or has no mapping.
        UsageError: If an option does not go with the target, or a text holds several processes.
    """
    request = request.with_limits_of(target)
    if isinstance(target, AuditFile):
        from footprint.formats.saved_audit import read_saved  # noqa: PLC0415 # JSON

        saved = read_saved(target, has_page_maps=request.has_page_maps)
        check_options(target, request.options, is_group=saved.audit.is_group)
        return saved._replace(audit=_joined(_projected_anew(saved.audit, request), request))
    snapshots = filled_snapshots(target) if isinstance(target, Capture) and request.pid is None else ()
    check_options(target, request.options, is_group=len(snapshots) > 1)
    if isinstance(target, Program):
        from footprint.verbs.audit.findings import audit_program  # noqa: PLC0415 # the loader, which few processes need

        return AuditRecord(audit_program(target.name, request))
    if isinstance(target, Processes) or len(snapshots) > 1:
        return AuditRecord(_audit_several(target, snapshots, request))
    return AuditRecord(_audit_process(target, request))


def _projected_anew(audit: Audit, request: AuditRequest) -> Audit:
    """Project a saved audit as is asked; without a question it keeps its own projection."""
    if not request.has_question:
        return audit
    if not audit.is_group:
        from footprint.formats.saved_audit import reprojected  # noqa: PLC0415 # json

        return reprojected(audit, request.question)
    from footprint.attribution.families import reprojected_group  # noqa: PLC0415 # few audits are of groups

    return reprojected_group(audit, request.question)


def _audit_several(target: AnyTarget, snapshots: Sequence[Snapshot], request: AuditRequest) -> Audit:
    from footprint.verbs.audit.group import audit_processes, group_of  # noqa: PLC0415 # most targets are one process

    question = request.question
    if isinstance(target, Processes):
        search = request if request.has_findings else None
        return audit_processes(
            target,
            question,
            debug=request.debug,
            search=search,
            has_objects=request.has_objects,
            has_quick_findings=request.has_quick_findings,
        )
    return group_of(
        snapshots,
        root=request.root,
        debug=request.debug,
        question=question,
        target=target.name,
        has_quick_findings=request.has_quick_findings,
    )


def _audit_process(target: Process | Capture | Text, request: AuditRequest) -> Audit:
    from footprint.verbs.audit.process import audit_of, files_of  # noqa: PLC0415 # a saved audit needs no ledger

    snapshot = snapshot_of(target, request.pid)
    files = files_of(snapshot, request.debug, request.root)
    if isinstance(target, Process) and request.has_findings:
        from footprint.verbs.audit.findings import audit_with_findings  # noqa: PLC0415 # the same

        audit = audit_with_findings(snapshot, request, files)
    else:
        audit = audit_of(
            snapshot,
            target.name,
            request.question,
            root=request.root,
            files=files,
            has_page_maps=request.has_page_maps,
            has_heap=True,
            has_quick_findings=request.has_quick_findings,
        )
        if isinstance(target, Process) and request.has_objects:
            from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the same

            audit = with_objects(audit, snapshot, files)
    return _joined(audit, request, snapshot, files.opened)


def _joined(
    audit: Audit, req: AuditRequest, snapshot: Snapshot | None = None, open_file: OpenFiles | None = None
) -> Audit:
    """Join an audit with the allocator profile that is asked for."""
    if req.heap is None:
        return audit
    from footprint.verbs.audit.heap_account import with_heap  # noqa: PLC0415 # profiles, which few audits have

    return with_heap(audit, req.heap, snapshot=snapshot, root=req.root, debug=req.debug, open_file=open_file)


def with_objects_if_new(audit: "Audit", other: "Audit", target: object) -> "Audit":
    """Add to the audit of a live process what its objects bring in, if another audit lacks some of them.

    Without findings, no audit of a process reads that. A process that is gone by now stays without.
    """
    from footprint.release.matching import owner_names  # noqa: PLC0415 # what only comparisons need

    if audit.objects or not isinstance(target, Process) or audit.is_group:
        return audit
    owners = owner_names(audit, other)
    if all(row.owner in owners for row in audit.ledger if row.kind in OF_OBJECTS):
        return audit
    from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader, which few processes need
    from footprint.verbs.audit.process import files_of  # noqa: PLC0415 # a saved audit needs no ledger

    with suppress(FootprintError):
        snapshot = snapshot_of(target, None)
        return with_objects(audit, snapshot, files_of(snapshot, None))
    return audit
