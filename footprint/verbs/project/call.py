"""`footprint.project` and `footprint.project_group`: what N cost, or how many fit."""

import os
import re
from collections.abc import Sequence
from typing import Final

from footprint.errors import UsageError
from footprint.files import StrPath
from footprint.model.audit import Audit
from footprint.model.group import Group, GroupQuestion
from footprint.series import USUAL_MOST
from footprint.sources.fit_limits import fit_limits, with_limits
from footprint.sources.target import (
    AuditFile,
    Capture,
    Named,
    ProcessChoice,
    Processes,
    SingleTarget,
    filled_snapshots,
    resolve,
    resolve_processes,
)
from footprint.verbs.audit.call import audit_any, audit_target
from footprint.verbs.audit.group import audit_processes
from footprint.verbs.audit.request import AuditRequest, question_of

__all__ = ("bits_of", "project", "project_group", "project_processes", "stored_group")

# Within a text of JSON, quotes are escaped: only a key looks like this.
_GROUP_KEY: Final = re.compile(rb'"group"\s*:')


def project(
    target: Named,
    *,
    count: int | None = None,
    memory_bytes: int | None = None,
    reserve_bytes: int = 0,
    limit: str | None = None,
    model: str | None = None,
    pid: int | None = None,
    root: StrPath | None = None,
) -> Audit:
    """Audit a process for its projection: the cost at `count`, or how many fit.

    Without a model, a live process that is a fork of its parent is projected as one of many workers, everything else as
    started copies. How many fit is also a matter of the limits on tasks, and of those of its control group.

    Args:
        target: What `audit` takes.
        count: How many processes.
        memory_bytes: The memory into which as many go as fit.
        reserve_bytes: The part of it that is left for others.
        limit: A control group whose limits count as well: its path, or `own` for that of the target.
        model: How they come about: `exec`, `fork`, `threads`.
        pid: Which process of a text or capture that holds several.
        root: What `audit` takes.

    Raises:
        UsageError: If it is not said how many, or said twice; and what `audit` raises.
    """
    _check(count, memory_bytes, reserve_bytes, limit)
    found = resolve(target, root=root, series_moment=USUAL_MOST)
    question = question_of(count or 1, memory_bytes, model)
    if count is None:
        question = with_limits(question._replace(reserve_bytes=reserve_bytes), found, limit)
    asked = AuditRequest(question, pid, None if root is None else str(root), has_question=True)
    return audit_target(found, asked).audit


def project_group(  # noqa: PLR0913 # all but the first are named
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
) -> Group:
    """Audit several processes for their projection: the cost of `count` groups, or how many groups or workers fit.

    Args:
        pids: The processes.
        tree: A process that is added with all its descendants.
        name: A name; all processes that have it are added.
        cgroup: The path of a control group; all processes in it and below it are added.
        unit: A unit of systemd; all its processes are added.
        container: The ID of a container; all its processes are added.
        count: How many groups.
        workers: The workers of each group; None for as many as there are.
        memory_bytes: The memory into which as many go as fit.
        reserve_bytes: The part of it that is left for others.
        limit: A control group whose limits count as well: its path, or `own` for that which was chosen, else the lowest
            one that holds all processes.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If no process is named, or it is not said how many.
    """
    target = resolve_processes(pids, ProcessChoice(tree, name, cgroup, unit, container))
    return project_processes(target, count, workers, memory_bytes, reserve_bytes, limit)


def stored_group(target: SingleTarget, pid: int | None, root: StrPath | None) -> Group | None:
    """Return the group that a capture or a saved audit holds; None where it is one process, or one is chosen.

    Raises:
        InputError: If it is damaged.
    """
    is_group = pid is None and (
        (isinstance(target, Capture) and len(filled_snapshots(target)) > 1)
        or (isinstance(target, AuditFile) and _GROUP_KEY.search(target.data) is not None)
    )
    if not is_group:
        return None
    is_capture = isinstance(target, Capture)
    asked = AuditRequest(root=None if root is None or not is_capture else os.fspath(root), debug=None)
    found = audit_any(target, asked).audit
    return found if isinstance(found, Group) else None


def project_processes(
    target: Processes | Group,
    count: int | None,
    workers: int | None,
    memory_bytes: int | None,
    reserve_bytes: int,
    limit: str | None,
) -> Group:
    """Audit the processes of a target for their projection; the arguments are those of `project_group`.

    A group that was audited already is projected anew.
    """
    if count is not None or workers is None or memory_bytes is not None or limit is not None:
        _check(count, memory_bytes, reserve_bytes, limit)
    question = GroupQuestion(count or 1, workers, memory_bytes, reserve_bytes)
    if memory_bytes is not None or limit is not None:
        pids, own_group = ((), None) if isinstance(target, Group) else (target.pids, target.control_group)
        limits = fit_limits(pids, limit, reserve_bytes, own_group=own_group)
        question = question._replace(limits=limits)
    if isinstance(target, Group):
        from footprint.formats.saved_group import regrouped  # noqa: PLC0415 # few are of groups

        return regrouped(target, question)
    return audit_processes(target, question, debug=None)


def bits_of(audit: Audit) -> int | None:
    """Return whether the program of an audit is one of 32 or 64 bits; None where its file cannot be read."""
    is_live = audit.is_live and audit.pid is not None and audit.saved_in is None
    try:
        with open(f"/proc/{audit.pid}/exe" if is_live else audit.target, "rb") as file:
            head = file.read(5)
    except (OSError, ValueError):
        return None
    return {b"\x7fELF\x01": 32, b"\x7fELF\x02": 64}.get(head)


def _check(count: int | None, memory_bytes: int | None, reserve_bytes: int, limit: str | None) -> None:
    is_fit = memory_bytes is not None or limit is not None
    if (count is None) != is_fit:
        only = ", not both" if is_fit else ""
        raise UsageError(f"say how many processes (-n), or how much memory they may take (--memory){only}")
    if reserve_bytes and not is_fit:
        raise UsageError("--reserve is left of a memory: say how much there is (--memory or --limit)")
