"""`footprint audit`: everything about one process, or several."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, part_name, write

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf
    from footprint.formats import stacks
    from footprint.model.audited import Audited
    from footprint.sources.debug_files import DebugSearch
    from footprint.sources.target import ProcessChoice
    from footprint.verbs import source_grouping
    from footprint.verbs.audit import call, either, html, issues, metrics, row_sources
    from footprint.verbs.audit.request import AuditRequest
    from footprint.verbs.survey import call as survey_call
    from footprint.verbs.survey import json as survey_json
    from footprint.verbs.survey import metrics as survey_metrics
    from footprint.verbs.survey import text as survey_text
    from footprint.verbs.survey.call import Survey
else:
    (stacks,) = lazy_modules("footprint.formats", "stacks")
    (source_grouping,) = lazy_modules("footprint.verbs", "source_grouping")
    call, either, html, issues, metrics, row_sources = lazy_modules(
        "footprint.verbs.audit", "call either html issues metrics row_sources"
    )
    survey_call, survey_json, survey_metrics, survey_text = lazy_modules(
        "footprint.verbs.survey", "call json metrics text"
    )

__all__ = ("audit",)

ORDER = 10


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures stacks report")
def audit(
    targets: options.Targets = None,
    count: options.CountOrSaved = None,
    all_: Annotated[bool, typer.Option("--all", help="Rank every program below the folders that are named.")] = False,
    findings: Annotated[
        bool,
        typer.Option("--findings", help="Search a process for memory that it does not need (always for a program)."),
    ] = False,
    heap: options.Heap = None,
    heap_at: options.HeapAt = None,
    allocators: options.AllocFns = None,
    binaries: options.Binaries = None,
    by: Annotated[options.By, typer.Option("--by", help="The grouping of the ledger.")] = options.By.OWNER,
    top: options.Top = 20,
    fail_on: options.FailOn = None,
    pid: options.Pid = None,
    root: options.Root = None,
    page_size: options.PageSize = None,
    prefix_map: options.PrefixMap = None,
    components: options.Components = None,
    *,
    choice: "ProcessChoice",
    debug: "DebugSearch | None",
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="For a program: the same answer for the same files, on any machine.")
    ] = False,
    output: options.OutputOptions,
) -> int:
    """Show where the memory of a process goes, and what N cost.

    By owner, section and symbol, adding up to what the kernel counts. Several processes are added up, with what they
    share counted once.

    \b
    footprint audit 4711 -n 10000
    footprint audit /usr/bin/gdb
    footprint audit --all /usr/bin
    pmap -d 4711 | footprint audit -
    footprint audit --name nginx
    footprint audit 4711 --heap massif.out
    footprint audit 4711 --html report.html
    """
    from footprint.model.audited_names import lasting_name
    from footprint.sources.target import NO_CHOICE, Process, Processes, check_options, resolve_any
    from footprint.units import parse_bytes
    from footprint.verbs.audit.request import AuditRequest, all_doubtful_rules, heap_request, question_of

    asked = AuditRequest(
        question_of(count, None, "exec"),
        pid=pid,
        root=root,
        page_bytes=None if page_size is None else parse_bytes(page_size),
        has_findings=findings,
        heap=heap_request(heap, options.one_moment(heap_at), allocators or (), binaries or ()),
        debug=debug,
        is_reproducible=reproducible,
        doubtful_rules=all_doubtful_rules(is_wanted=findings),
        has_question=count is not None,
    )
    named = targets or []
    conditions = conditions_of(fail_on or ())
    if all_:
        if conditions:
            raise UsageError("--all searches for no findings: --fail-on goes with one program or process")
        if choice != NO_CHOICE:
            raise UsageError(f"--all goes with folders of programs; {choice.words[0]} chooses processes")
        return _audit_folders(named, asked, top, output)
    if not named and choice == NO_CHOICE:
        raise UsageError("name a process or a file; `footprint audit -h` shows what can be audited")
    groups = source_grouping.source_groups(by.value, prefix_map or (), components)

    def source_of(found: "Audited") -> "SourceOf | None":
        return groups and row_sources.row_sources(found, groups, debug, root)

    answer: Answer[Audited] = Answer(
        "audit",
        "sources" if groups else "ledger",
        document=lambda found: either.audited_document(
            found,
            by=by.value,
            top=top,
            has_whole_names=output.has_whole_names,
            source_of=source_of(found),
        ),
        members=lambda found, version: either.audited_members(found, version, source_of(found)),
        issues=issues.issues_of_audit,
        figures=metrics.audit_metrics,
        stacks=lambda found: stacks.ledger_stacks(found.ledger),
        report=html.audit_html,
    )
    check_formats(answer, output)
    for one in named:
        asked.check_standard_input(one)
    target = resolve_any(named, choice, root=root)
    check_options(target, asked.options)
    # What runs is searched for findings only if the user or the format asks for them.
    has_findings = isinstance(target, Process | Processes) and (
        part_name(output.format) == "issues" or output.has_report or bool(conditions)
    )
    asked = asked._replace(
        has_findings=asked.has_findings or has_findings,
        has_page_maps=output.has_page_maps,
        has_objects=output.is_saved,
        doubtful_rules=asked.doubtful_rules.union(one.name for one in conditions if one.counts_doubtful),
    )
    found = call.audit_any(target, asked).audit
    if conditions:
        from footprint.release.budget import check_counted

        check_counted(conditions, found)
    return write_judged(answer, found, found.findings, conditions, f"audit {lasting_name(found)}", output, found.notes)


def _audit_folders(folders: Sequence[str], asked: "AuditRequest", top: int, output: options.OutputOptions) -> int:
    from footprint.sources.target import Folders, check_options
    from footprint.verbs.progress import progress_line

    answer: Answer[Survey] = Answer(
        "audit --all",
        "programs",
        document=lambda found: survey_text.survey_document(found, top=top),
        members=survey_json.survey_members,
        figures=survey_metrics.survey_metrics,
        has_page=True,
    )
    check_formats(answer, output)
    check_options(Folders(" ".join(folders), tuple(folders)), asked.options)
    with progress_line("audit --all", is_quiet=output.is_quiet) as on_progress:
        found = survey_call.survey(
            *folders,
            count=asked.question.count,
            root=asked.root,
            page_bytes=asked.page_bytes,
            on_progress=on_progress,
        )
    return write(answer, found, f"audit --all {' '.join(found.folders)}", output, found.notes)
