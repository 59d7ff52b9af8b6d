"""The answers of `footprint audit`: about one process or program, about several processes, or about folders."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.errors import UsageError
from footprint.process import Snapshot
from footprint.sources.target import (
    Capture,
    Folders,
    Process,
    Processes,
    SingleTarget,
    Target,
    check_options,
    resolve,
    resolve_processes,
)
from footprint.verbs.audit.request import AuditRequest
from footprint.verbs.output import OutputOptions, ViewOptions

if TYPE_CHECKING:
    from footprint.verbs.audit.answer import AuditAnswer
    from footprint.verbs.audit.group_answer import GroupAnswer
    from footprint.verbs.survey.answer import SurveyAnswer

__all__ = ("answer_class", "answer_of", "resolve_targets")


def resolve_targets(
    targets: Sequence[str], asked: AuditRequest, *, tree: int | None, name: str | None, is_survey: bool
) -> Target:
    """Resolve what the command names, and check that its options go with that.

    Args:
        targets: The arguments.
        asked: What is asked.
        tree: The process that `--tree` names.
        name: The name that `--name` has.
        is_survey: Whether the arguments are folders (`--all`).

    Raises:
        AccessError: If a file cannot be opened, or there is no such process.
        UsageError: If nothing is named, or an option does not go with it.
    """
    is_family = tree is not None or name is not None
    target: Target
    if is_survey:
        if is_family:
            raise UsageError("--all goes with folders of programs; --tree and --name choose processes")
        target = Folders(" ".join(targets), tuple(targets))
    elif is_family or len(targets) > 1:
        target = resolve_processes(targets, tree=tree, name=name)
    elif not targets:
        raise UsageError("name a process or a file; `footprint audit -h` shows what can be audited")
    else:
        asked.check_standard_input(targets[0])
        target = resolve(targets[0], root=asked.root)
    check_options(target, asked.options)
    if asked.heap is not None and _several(target, asked):
        raise UsageError(f"{target.name} holds several processes: choose one with --pid, --heap goes with one")
    return target


def answer_class(target: Target, asked: AuditRequest) -> "type[AuditAnswer | GroupAnswer | SurveyAnswer]":
    """Return the class of the answer about a target."""
    if isinstance(target, Folders):
        from footprint.verbs.survey.answer import SurveyAnswer

        return SurveyAnswer
    if isinstance(target, Processes) or _several(target, asked):
        from footprint.verbs.audit.group_answer import GroupAnswer

        return GroupAnswer
    from footprint.verbs.audit.answer import AuditAnswer

    return AuditAnswer


def answer_of(
    target: Target, asked: AuditRequest, written: OutputOptions, view: ViewOptions
) -> "AuditAnswer | GroupAnswer | SurveyAnswer":
    """Audit a target.

    Args:
        target: The target.
        asked: What is asked.
        written: How the answer is written: formats of findings and the report need more than others.
        view: How the text looks.

    Raises:
        AccessError: If a process is gone or may not be read, or a file cannot be opened.
        InputError: If a file is damaged, or has no mapping.
        UsageError: If a folder is none.
    """
    if isinstance(target, Folders):
        from footprint.verbs.survey.answer import SurveyAnswer
        from footprint.verbs.survey.call import survey

        count = asked.question.count
        return SurveyAnswer(survey(*target.paths, count=count, root=asked.root, page_bytes=asked.page_bytes), view)
    if isinstance(target, Processes):
        from footprint.verbs.audit.group import audit_processes
        from footprint.verbs.audit.group_answer import GroupAnswer

        return GroupAnswer(audit_processes(target, debug=asked.debug), f"audit {target.name}", view)
    if several := _several(target, asked):
        from footprint.verbs.audit.group import group_of
        from footprint.verbs.audit.group_answer import GroupAnswer

        return GroupAnswer(group_of(several, root=asked.root, debug=asked.debug), f"audit {target.name}", view)
    return _single_answer(target, asked, written, view)


def _single_answer(
    target: SingleTarget, asked: AuditRequest, written: OutputOptions, view: ViewOptions
) -> "AuditAnswer":
    from footprint.verbs.audit.answer import AuditAnswer
    from footprint.verbs.audit.call import audit_target

    # A live process is searched for findings only if the user or the format asks for them.
    has_findings = isinstance(target, Process) and (written.member == "issues" or written.has_report)
    asked = asked._replace(has_findings=asked.has_findings or has_findings, has_page_maps=written.has_page_maps)
    return AuditAnswer(audit_target(target, asked).audit, view)


def _several(target: Target, asked: AuditRequest) -> tuple[Snapshot, ...]:
    """Return the processes of a capture of several, of which none is chosen; nothing for any other target."""
    if not isinstance(target, Capture) or asked.pid is not None or asked.question.count != 1:
        return ()
    filled = tuple(one for one in target.snapshots if one.memory.mappings)
    return filled if len(filled) > 1 else ()
