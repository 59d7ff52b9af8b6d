"""`footprint audit`: everything about one process, or several."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.commands import Option
from footprint.verbs.output import Answer, check_formats, lazy_modules, part_name, write

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf
    from footprint.elf.notes import DebugSearch
    from footprint.formats import audit_json, issues, metrics, stacks
    from footprint.model.audit import Audit
    from footprint.sources import debug_information
    from footprint.sources.target import ProcessChoice
    from footprint.verbs import fail_on as judging
    from footprint.verbs import source_grouping
    from footprint.verbs.audit import (
        call,
        html,
        mappings,
        mappings_json,
        side_by_side_answer,
        summary,
        survey_answer,
        text,
    )
    from footprint.verbs.audit.mappings import OwnedMap
    from footprint.verbs.audit.request import AuditRequest
    from footprint.verbs.audit.survey_answer import Survey
else:
    audit_json, issues, metrics, stacks = lazy_modules("footprint.formats", "audit_json issues metrics stacks")
    judging, source_grouping = lazy_modules("footprint.verbs", "fail_on source_grouping")
    call, html, mappings, mappings_json, summary, text = lazy_modules(
        "footprint.verbs.audit", "call html mappings mappings_json summary text"
    )
    (debug_information,) = lazy_modules("footprint.sources", "debug_information")
    side_by_side_answer, survey_answer = lazy_modules("footprint.verbs.audit", "side_by_side_answer survey_answer")


ORDER = 10
_TOP = 20


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures stacks report")
def audit(
    targets: options.Targets = None,
    count: options.CountOrSaved = None,
    memory: options.Memory = None,
    reserve: Annotated[
        str | None, Option("--reserve", help="The part of the memory that is left for others.", metavar="SIZE")
    ] = None,
    limit: Annotated[
        str | None,
        Option("--limit", help="Show how many fit into a control group: its path, or own.", metavar="CGROUP"),
    ] = None,
    model: options.ModelOption = None,
    workers: Annotated[
        int | None,
        Option(
            "--workers", min=1, max=10**9, help="The workers of each group; else as many as there are.", metavar="N"
        ),
    ] = None,
    all_: Annotated[bool, Option("--all", help="Rank every program below the folders that are named.")] = False,
    findings: Annotated[
        bool,
        Option("--findings", help="Search a process for memory that it does not need (always for a program)."),
    ] = False,
    heap: options.Heap = None,
    heap_at: options.HeapAt = None,
    allocators: options.AllocFns = None,
    binaries: options.Binaries = None,
    by: Annotated[
        options.By, Option("--by", help="The grouping; mapping lists all of them, as pmap.")
    ] = options.By.OWNER,
    top: options.TopOfAll = None,
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
        bool, Option("--reproducible", help="For a program: the same answer for the same files, on any machine.")
    ] = False,
    output: options.OutputOptions,
) -> int:
    """Show where the memory of a process goes, and what N cost.

    By owner, section and symbol, adding up to what the kernel counts. Several processes are added up, with what they
    share counted once. N cost, or how many fit, is shown with every term, for started copies, for forked workers of one
    parent, or for threads.

    \b
    footprint audit 4711 -n 10000
    footprint audit /usr/bin/gdb
    footprint audit --all /usr/bin
    pmap -d 4711 | footprint audit -
    footprint audit --name nginx
    footprint audit 4711 --heap massif.out
    footprint audit 4711 --html report.html
    footprint audit smaps.txt --memory 32GiB --reserve 2GiB
    footprint audit --tree 4711 -n 10 --workers 64
    footprint audit --unit nginx.service --limit own
    footprint audit ./server32 ./server64 -n 10000
    """
    chosen = dict.fromkeys(choice.words, True)
    of_many = {"--memory": memory, "--limit": limit, "--model": model, "--workers": workers, **chosen}
    of_findings = {"--fail-on": fail_on, "--findings": findings, "--heap": heap}
    if by is options.By.MAPPING:
        # Before anything else is imported: it is as quick as pmap.
        others = {"-n": count, "--all": all_, "--top": top is not None, "--page-size": page_size, "--reserve": reserve}
        others |= {"--prefix-map": bool(prefix_map), "--components": components, "--reproducible": reproducible}
        others |= {"--heap-at": bool(heap_at), "--alloc-fn": bool(allocators), "--binary": bool(binaries)}
        _check_alone("--by mapping", "lists all mappings of one process", {**of_many, **of_findings, **others})
        return _audit_mappings(targets or [], pid, root, output)
    from footprint.model.audit import lasting_name
    from footprint.sources.target import NO_CHOICE, Process, Processes, Program, process_of, resolve_any
    from footprint.text.units import parse_bytes
    from footprint.verbs.audit.request import all_doubtful_rules, heap_request, request_of

    request = request_of(
        count,
        None if memory is None else parse_bytes(memory),
        None if model is None else model.value,
        reserve_bytes=0 if reserve is None else parse_bytes(reserve),
        limit=limit,
        worker_count=workers,
    )._replace(
        pid=pid,
        root=root,
        page_bytes=None if page_size is None else parse_bytes(page_size),
        has_findings=findings,
        has_quick_findings=True,
        heap=heap_request(heap, options.one_moment(heap_at), allocators or (), binaries or ()),
        debug=debug,
        is_reproducible=reproducible,
        doubtful_rules=all_doubtful_rules(is_wanted=findings),
    )
    named = targets or []
    conditions = judging.conditions_of(fail_on) if fail_on else ()
    if all_:
        _check_alone("--all", "ranks the programs of folders", {**of_many, "--fail-on": fail_on})
        return _audit_folders(named, request, _TOP if top is None else top, output)
    if not named and choice == NO_CHOICE:
        raise UsageError("name a process or a file; `footprint audit -h` shows what can be audited")
    if request.has_question and choice == NO_CHOICE and len(named) > 1 and not all(map(process_of, named)):
        _check_alone("several targets", "stand side by side", of_findings)
        return _audit_side_by_side(named, request, output)
    has_groups = by in options.OF_SOURCES or bool(prefix_map) or components is not None
    groups = source_grouping.source_groups(by.value, prefix_map or (), components) if has_groups else None

    def source_of(audit: "Audit") -> "SourceOf | None":
        return groups and debug_information.row_sources(audit, groups, debug, root)

    # Who asks for a table, for more, or for the heap, gets all that is known.
    has_all = by is not options.By.OWNER or top is not None or output.has_whole_names
    answer: Answer[Audit] = Answer(
        "audit",
        "sources" if groups else "ledger",
        document=lambda audited: (
            text.audit_document(
                audited,
                by=by.value,
                top=_TOP if top is None else top,
                has_whole_names=output.has_whole_names,
                source_of=source_of(audited),
            )
            if has_all or audited.heap is not None
            else summary.summary_document(audited)
        ),
        members=lambda audited, version: audit_json.written_members(audited, version, source_of(audited)),
        issues=issues.issues_of_audit,
        figures=metrics.audit_metrics,
        stacks=lambda audited: stacks.ledger_stacks(audited.ledger),
        report=html.audit_html,
    )
    check_formats(answer, output)
    for name in named:
        request.check_standard_input(name)
    target = resolve_any(named, choice, root=root, series_moment=request.series_moment)
    # What runs is searched for findings only if the user or the format asks for them.
    has_findings = isinstance(target, Process | Processes) and (
        part_name(output.format) == "issues" or output.has_report or bool(conditions)
    )
    request = request._replace(
        has_findings=request.has_findings or has_findings,
        has_page_maps=output.has_page_maps,
        has_objects=output.is_saved,
        has_start=output.is_saved or (isinstance(target, Program) and output.format is options.Format.JSON),
        doubtful_rules=request.doubtful_rules.union(c.name for c in conditions if c.counts_doubtful),
    )
    made = call.audit_target(target, request).audit
    name = f"audit {lasting_name(made)}"
    if not conditions:
        return write(answer, made, name, output, made.notes)
    from footprint.release.budget import check_counted

    check_counted(conditions, made)
    return judging.write_judged(answer, made, made.findings, conditions, name, output, made.notes)


def _check_alone(option: str, what: str, given: Mapping[str, object]) -> None:
    """Check that no option is given that does not go with another one, which does something else."""
    for name, value in given.items():
        if value:
            raise UsageError(f"{option} {what}: {name} does not go with it")


def _audit_side_by_side(named: Sequence[str], request: "AuditRequest", output: options.OutputOptions) -> int:
    from footprint.sources.target import resolve

    answer: Answer[list[tuple[Audit, int | None]]] = Answer(
        "audit of several targets",
        "targets",
        document=side_by_side_answer.side_by_side_document,
        members=side_by_side_answer.side_by_side_members,
        has_page=True,
    )
    check_formats(answer, output)
    audits = []
    for name in named:
        target = resolve(name, root=request.root, series_moment=request.series_moment)
        audits.append(call.audit_target(target, request).audit)
        if audits[-1].is_group:
            raise UsageError(f"{name} holds several processes: a group does not stand beside other targets")
    beside = [(audit, side_by_side_answer.bits_of(audit)) for audit in audits]
    return write(answer, beside, f"audit {' '.join(named)}", output, [note for audit in audits for note in audit.notes])


def _audit_mappings(named: Sequence[str], pid: int | None, root: str | None, output: options.OutputOptions) -> int:
    answer: Answer[OwnedMap] = Answer(
        "audit --by mapping",
        "mappings",
        document=lambda listed: mappings.maps_document(listed, has_whole_names=output.has_whole_names),
        members=mappings_json.maps_members,
        has_page=True,
    )
    check_formats(answer, output)
    if len(named) != 1:
        raise UsageError("--by mapping lists the mappings of one process: name one PID, capture or text")
    listed = mappings.maps(named[0], pid=pid, root=root)
    return write(answer, listed, f"audit {named[0]} --by mapping", output, listed.notes)


def _audit_folders(folders: Sequence[str], request: "AuditRequest", top: int, output: options.OutputOptions) -> int:
    from footprint.sources.target import Folders, check_options
    from footprint.verbs.progress import progress_line

    answer: Answer[Survey] = Answer(
        "audit --all",
        "programs",
        document=lambda survey: survey_answer.survey_document(survey, top=top),
        members=survey_answer.survey_members,
        figures=survey_answer.survey_metrics,
        has_page=True,
        page_data=survey_answer.survey_page,
    )
    check_formats(answer, output)
    check_options(Folders(" ".join(folders), tuple(folders)), request.options)
    with progress_line(is_quiet=output.is_quiet) as on_progress:
        survey = survey_answer.survey(
            *folders,
            count=request.question.count,
            root=request.root,
            page_bytes=request.page_bytes,
            on_progress=on_progress,
        )
    return write(answer, survey, f"audit --all {' '.join(survey.folders)}", output, survey.notes)
