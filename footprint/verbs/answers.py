"""What verbs answer, with every way of showing it: about one process or several, programs, and what is between two."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from footprint import __version__
from footprint.errors import Note, UsageError
from footprint.verbs.output import Answer

if TYPE_CHECKING:
    from footprint.findings.linked_twice import Duplicates
    from footprint.formats.document import Document
    from footprint.formats.figures import Family
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.stacks import Stacks
    from footprint.model.audit import Audit
    from footprint.model.group import Group
    from footprint.process import Snapshot
    from footprint.release.budget import Checked
    from footprint.release.compare import Comparison
    from footprint.sources.debug_files import DebugSearch
    from footprint.sources.target import Capture, Processes, SingleTarget
    from footprint.verbs.audit.request import AuditRequest
    from footprint.verbs.heap.call import HeapProfiles
    from footprint.verbs.libraries.result import Libraries

__all__ = (
    "HeapLooks",
    "Looks",
    "about_check",
    "about_diff",
    "about_duplicates",
    "about_folders",
    "about_group",
    "about_heap",
    "about_libraries",
    "about_one",
)

Noted = tuple[Answer, Sequence[Note]]


class Looks(NamedTuple):
    """How a report is to look: by what, how many rows a table, and whether names are whole."""

    by: str
    top: int
    is_whole: bool


def about_one(target: "SingleTarget", asked: "AuditRequest", looks: Looks) -> Noted:
    """Audit one target; a capture of several processes, of which none is chosen, is a group."""
    from footprint.sources.target import Capture

    if isinstance(target, Capture) and asked.question.count == 1 and asked.pid is None:
        several = tuple(one for one in target.snapshots if one.memory.mappings)
        if len(several) > 1:
            return _about_capture(target, several, asked, looks)
    from footprint.verbs.audit.call import audit_target

    found = audit_target(target, asked).audit
    return _of_audit(found, looks), found.notes


def _about_capture(target: "Capture", several: "Sequence[Snapshot]", asked: "AuditRequest", looks: Looks) -> Noted:
    from footprint.sources.target import check_options
    from footprint.verbs.audit.group import group_of

    if asked.heap is not None:
        raise UsageError(f"{target.name} holds several processes: choose one with --pid, --heap goes with one")
    check_options(target, asked.options)
    return _of_group(group_of(several, root=asked.root, debug=asked.debug), f"audit {target.name}", looks)


def _of_audit(found: "Audit", looks: Looks) -> Answer:
    name = f"audit {_lasting_name(found)}"

    def document() -> "Document":
        from footprint.verbs.audit.text import audit_report

        return audit_report(found, by=looks.by, top=looks.top, has_whole_names=looks.is_whole)

    def members() -> "Json":
        from footprint.verbs.audit.json import audit_members

        return audit_members(found, __version__)

    def issues() -> "Issues":
        from footprint.formats.issues import issues_of_findings

        rules, count = _applied_rules(found), found.projection.count
        return issues_of_findings(found.findings, found.target, count=count, binary=_program_of(found), rules=rules)

    def figures() -> "list[Family]":
        from footprint.formats.figures import audit_figures

        return audit_figures(found)

    def stacks() -> "Stacks":
        from footprint.formats.stacks import ledger_stacks

        return ledger_stacks(found.ledger)

    def report() -> str:
        from footprint.verbs.audit.html import audit_html

        return audit_html(found, __version__)

    return Answer(name, document, members, "ledger", issues, figures, stacks, report)


def _lasting_name(audit: "Audit", given: str | None = None) -> str:
    """Give a name that stays from run to run, which bots and code scanning go by: of a process that of its program."""
    from footprint.model.audit import program_name

    name = program_name(audit) if audit.is_live and audit.saved_in is None else ""
    return name or given or audit.saved_in or audit.target


def _applied_rules(audit: "Audit") -> list[str]:
    """Give the rules that an audit was looked into for: of the others, that nothing was found would not be true.

    Raises:
        UsageError: Where there are none.
    """
    from footprint.formats.rules import FINDING_RULES
    from footprint.release.compare import was_looked_into

    rules = [rule for rule in FINDING_RULES if was_looked_into(audit, rule)]
    if not rules:
        raise UsageError(
            f"{audit.saved_in or audit.target} was not looked into for findings: audit the program, or the process "
            "with --findings"
        )
    return rules


def _program_of(audit: "Audit") -> str:
    """Give the path of the program; "" where it is not known."""
    if audit.source == "prediction":
        return audit.target
    return audit.objects[0].path if audit.objects else ""


def about_folders(
    folders: Sequence[str], *, count: int, root: str | None, page_bytes: int | None, looks: Looks
) -> Noted:
    """Rank the programs of some folders.

    Raises:
        UsageError: Where none is named, or one is no folder.
    """
    from footprint.verbs.survey.call import survey

    found = survey(*folders, count=count, root=root, page_bytes=page_bytes)

    def document() -> "Document":
        from footprint.verbs.survey.text import survey_report

        return survey_report(found, top=looks.top)

    def members() -> "Json":
        from footprint.verbs.survey.json import survey_members

        return survey_members(found, __version__)

    def figures() -> "list[Family]":
        from footprint.formats.figures import survey_figures

        return survey_figures(found)

    answer = Answer(f"audit --all {' '.join(folders)}", document, members, "programs", figures=figures)
    return answer, found.notes


def about_group(target: "Processes", *, debug: "DebugSearch | None", looks: Looks) -> Noted:
    """Audit several live processes as one."""
    from footprint.verbs.audit.group import audit_processes

    return _of_group(audit_processes(target, debug=debug), f"audit {target.name}", looks)


def _of_group(group: "Group", name: str, looks: Looks) -> Noted:
    def document() -> "Document":
        from footprint.verbs.audit.group_text import group_report

        return group_report(group, by=looks.by, top=looks.top, has_whole_names=looks.is_whole)

    def members() -> "Json":
        from footprint.verbs.audit.group_json import group_members

        return group_members(group, __version__)

    def figures() -> "list[Family]":
        from footprint.formats.figures import group_figures

        return group_figures(group)

    def stacks() -> "Stacks":
        from footprint.formats.stacks import ledger_stacks

        return ledger_stacks(group.ledger)

    return Answer(name, document, members, "ledger", figures=figures, stacks=stacks), group.notes


def about_diff(found: "Comparison", *, top: int, is_whole: bool) -> Answer:
    """Give what changed between two audits."""
    old, new = map(_lasting_name, (found.old, found.new))

    def document() -> "Document":
        from footprint.verbs.diff.text import diff_report

        return diff_report(found, top=top, has_whole_names=is_whole)

    def members() -> "Json":
        from footprint.verbs.diff.json import diff_members

        return diff_members(found, __version__)

    def issues() -> "Issues":
        from footprint.formats.issues import issues_of_findings

        before = _applied_rules(found.old)
        rules = [one for one in _applied_rules(found.new) if one in before]
        binary = _program_of(found.new)
        return issues_of_findings(found.new_findings, new, count=found.count, binary=binary, rules=rules)

    def figures() -> "list[Family]":
        from footprint.formats.figures import diff_figures

        return diff_figures(found)

    def report() -> str:
        from footprint.verbs.diff.html import diff_html

        return diff_html(found, __version__)

    return Answer(f"diff {old} {new}", document, members, "diff", issues, figures, report=report)


def about_libraries(found: "Libraries", *, why: str | None, top: int, is_tree: bool, is_whole: bool) -> Answer:
    """Give the objects of a program; `why` for the chains to one of them instead."""

    def document() -> "Document":
        from footprint.verbs.libraries.text import chains_report, libraries_report

        if why is not None:
            return chains_report(found, why)
        return libraries_report(found, top=top, is_tree=is_tree, has_whole_names=is_whole)

    def members() -> "Json":
        from footprint.verbs.libraries.json import libraries_members

        return libraries_members(found, __version__)

    def issues() -> "Issues":
        from footprint.formats.issues import issues_of_findings

        binary = found.graph.objects[0].path
        rules = ("unused-library", "underlinked")
        return issues_of_findings(found.findings, found.target, count=found.count, binary=binary, rules=rules)

    def figures() -> "list[Family]":
        from footprint.formats.figures import libraries_figures

        return libraries_figures(found)

    return Answer(f"libraries {found.target}", document, members, "libraries", issues, figures)


def about_duplicates(found: "Duplicates", *, count: int, top: int, is_whole: bool) -> Answer:
    """Give what files hold several times."""
    names = " ".join(found.targets)

    def document() -> "Document":
        from footprint.verbs.duplicates.text import duplicates_report

        return duplicates_report(found, count=count, top=top, has_linker_names=is_whole)

    def members() -> "Json":
        from footprint.verbs.duplicates.json import duplicates_members

        return duplicates_members(found, __version__, count)

    def issues() -> "Issues":
        from footprint.formats.issues import issues_of_findings

        rules = ("duplicate-static", "linked-twice", "large-static")
        binary = found.files[0].file if found.files else ""
        return issues_of_findings(found.findings, names, count=count, binary=binary, rules=rules)

    def figures() -> "list[Family]":
        from footprint.formats.figures import duplicates_figures

        return duplicates_figures(found)

    return Answer(f"duplicates {names}", document, members, "duplicates", issues, figures)


class HeapLooks(NamedTuple):
    """How a report of heap profiles is to look: by what, from which share of it, how many rows, with whole names."""

    by: str
    threshold_percent: float
    top: int
    is_whole: bool


def about_heap(found: "HeapProfiles", name: str, looks: HeapLooks, *, binary: str = "") -> Answer:
    """Give what allocator profiles say; several are compared. `binary` is the program, where it was named."""
    # Tables go by the name of the file: one that is compared with itself is told once in them.
    files = tuple({one.file: one for one in found.files}.values())

    def document() -> "Document":
        from footprint.verbs.heap.text import heap_report

        return heap_report(
            found.files,
            found.notes,
            found.findings,
            by=looks.by,
            threshold_percent=looks.threshold_percent,
            top=looks.top,
            is_whole=looks.is_whole,
        )

    def members() -> "Json":
        from footprint.verbs.heap.json import heap_members

        return heap_members(files, found.notes, __version__, by=looks.by, findings=found.findings)

    def issues() -> "Issues":
        from footprint.findings.heap_at_start import RULE
        from footprint.formats.issues import issues_of_findings
        from footprint.heap import Counted

        usage = found.files[0]
        if usage.profile.counted is not Counted.HEAP:
            raise UsageError(f"{usage.file} says nothing of memory in use: there is nothing to find in it")
        return issues_of_findings(found.findings, usage.file, binary=binary, rules=(RULE,))

    def figures() -> "list[Family]":
        from footprint.formats.figures import heap_figures

        return heap_figures(files)

    def stacks() -> "Stacks":
        from footprint.formats.stacks import heap_stacks

        return heap_stacks(found.files[0])

    def report() -> str:
        from footprint.verbs.heap.html import heap_html

        return heap_html(files, found.notes, __version__, found.findings)

    return Answer(name, document, members, "heap", issues, figures, stacks, report)


def about_check(checked: "Checked", target: str, *, baseline: str | None) -> Answer:
    """Give which budgets are exceeded; `baseline` is what was just written."""
    name = _lasting_name(checked.audit, target)

    def document() -> "Document":
        from footprint.verbs.check.text import check_report

        return check_report(checked, baseline=baseline)

    def members() -> "Json":
        from footprint.verbs.check.json import check_members

        return check_members(checked, __version__)

    def issues() -> "Issues":
        from footprint.formats.issues import issues_of_check

        return issues_of_check(checked, name)

    def figures() -> "list[Family]":
        from footprint.formats.figures import check_figures

        return check_figures(checked)

    def report() -> str:
        from footprint.verbs.check.html import check_html

        return check_html(checked, __version__)

    return Answer(f"check {name}", document, members, "budgets", issues, figures, report=report)
