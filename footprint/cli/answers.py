"""What `footprint audit` answers: about one process, or about several as one."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from footprint.errors import Note, UsageError
from footprint.report.document import Document

if TYPE_CHECKING:
    from footprint.audit.group import Group
    from footprint.verbs.debug_files import DebugSearch

__all__ = ("Answer", "about_folders", "about_group", "about_one")


class Answer(NamedTuple):
    """An answer that was not written yet: its notes, and how it is written."""

    notes: Sequence[Note]
    json: Callable[[str], str]
    report: Callable[..., Document]


def about_one(
    targets: Sequence[str],
    *,
    count: int,
    pid: int | None,
    root: str | None,
    page_bytes: int | None,
    findings: bool = False,
    heap: str | None = None,
    heap_at: str | None = None,
    allocators: Sequence[str] = (),
    binaries: Sequence[str] = (),
    debug: "DebugSearch | None",
    is_reproducible: bool = False,
) -> Answer:
    """Audit one process or text.

    Raises:
        UsageError: Where none is named.
    """
    from footprint.report.views.audit import audit_report
    from footprint.verbs import processes

    if targets and count == 1 and pid is None and (several := processes.captured(targets[0])):
        if heap is not None:
            raise UsageError(f"{targets[0]} holds several processes: choose one with --pid, --heap goes with one")
        from footprint.verbs import groups

        return _about(groups.group_of(several, root=root, debug=debug))
    if not targets:
        raise UsageError("name a process or a file; `footprint audit -h` shows what can be audited")
    found = processes.audit(
        targets[0],
        count=count,
        pid=pid,
        root=root,
        page_bytes=page_bytes,
        has_findings=findings,
        heap=heap,
        heap_at=heap_at,
        allocators=allocators,
        binaries=binaries,
        debug=debug,
        is_reproducible=is_reproducible,
    )

    def json(version: str) -> str:
        from footprint.report.json.audit import audit_json

        return audit_json(found, version)

    return Answer(found.notes, json, lambda **choices: audit_report(found, **choices))


def about_folders(folders: Sequence[str], *, count: int, root: str | None, page_bytes: int | None) -> Answer:
    """Rank the programs of some folders.

    Raises:
        UsageError: Where none is named, or one is no folder.
    """
    from footprint.report.json.survey import survey_json
    from footprint.report.views.survey import survey_report
    from footprint.verbs.survey import survey

    found = survey(*folders, count=count, root=root, page_bytes=page_bytes)
    return Answer(
        found.notes,
        lambda version: survey_json(found, version),
        lambda **choices: survey_report(found, top=choices["top"]),
    )


def about_group(
    targets: Sequence[str],
    tree: int | None,
    name: str | None,
    *,
    count: int,
    pid: int | None,
    root: str | None,
    debug: "DebugSearch | None",
) -> Answer:
    """Audit several live processes as one.

    Raises:
        UsageError: Where one of them is no PID, or a number of groups is asked for.
    """
    from footprint.verbs import groups

    strange = [target for target in targets if not (target.isascii() and target.isdigit() and len(target) < 11)]
    if strange:
        raise UsageError(f"{strange[0]} is no PID: several targets are several live processes")
    if count != 1:
        raise UsageError("-n goes with one process: a group is what it is")
    if pid is not None or root is not None:
        raise UsageError("--pid and --root go with a capture or a text, not with live processes")
    return _about(groups.audit_group([int(target) for target in targets], tree=tree, name=name, debug=debug))


def _about(group: "Group") -> Answer:
    from footprint.report.json.group import group_json
    from footprint.report.views.group import group_report

    return Answer(
        group.notes, lambda version: group_json(group, version), lambda **choices: group_report(group, **choices)
    )
