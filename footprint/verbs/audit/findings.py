"""The audits with findings: of a program by its files, and of a live process together with its files."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import BUILT_IN
from footprint.attribution.process_audit import owner_rows
from footprint.attribution.program_prediction import predicted_audit
from footprint.elf.image import Image
from footprint.errors import FootprintError
from footprint.findings.registry import Fact, LedgerFacts, fact_of, find_all, rules_reading
from footprint.loader.system import Library
from footprint.loader.target import Environment
from footprint.members import replace
from footprint.model.audit import Audit
from footprint.model.costs import ObjectCost
from footprint.model.finding import Confidence, Finding, SearchedRule
from footprint.model.row import Evidence, Row, Total, weakest
from footprint.process.snapshot import Snapshot
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import images_of
from footprint.sources.programs import KeptPrograms, ProcessView, Programs, missing_notes, notes_of_files
from footprint.verbs.audit.process import RelocatedVariables, audit_of, files_of, with_files_told
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.findings.variables import Variables


_USUAL_PAGE_BYTES = 4096


def audit_program(target: str, request: AuditRequest) -> Audit:
    """Audit a program by its files; `target` is its path, as it sees it.

    If the answer is to be reproducible, nothing of this machine but the files goes into it: not its kernel, its
    calibrations, its page size, nor what this process was started with.

    Raises:
        AccessError: If the program cannot be opened.
        InputError: If it is no linked ELF file.
        UsageError: If the model needs a live process.
    """
    root, page_bytes, files = request.root, request.page_bytes, ElfFiles(request.debug, request.root)
    if request.is_reproducible:
        environment = Environment(cwd=os.getcwd())
        programs = Programs(
            root,
            environment,
            page_bytes=page_bytes or _USUAL_PAGE_BYTES,
            is_calibrated=False,
            open_file=files.opened,
        )
        constants, host = BUILT_IN, {}
    else:
        programs, system = Programs(root, page_bytes=page_bytes, open_file=files.opened), os.uname()
        constants = load_constants(system.release, system.machine)
        host = {"kernel": system.release, "machine": system.machine}
    graph = programs.graph(target)
    predicted = predicted_audit(
        graph,
        files,
        target=target,
        question=request.question,
        constants=constants,
        host=host,
        notes=(*notes_of_files(graph, target), *graph.notes, *missing_notes(graph)),
        has_page_maps=request.has_page_maps,
    )
    from footprint.verbs.duplicates.call import variables_in  # noqa: PLC0415 # debug information, which only findings need

    variables = variables_in(graph.objects[0].library.image, request.debug, files.opened)
    images = {linked.path: linked.library for linked in graph.objects}
    ledger = _ledger_facts(predicted, graph, files, images)
    findings, searched = _file_findings(graph, ledger, variables, request.doubtful_rules)
    objects = graph.object_costs(has_start=request.has_start)
    audited = replace(predicted, findings=findings, searched_rules=searched, objects=objects)
    return with_files_told(audited, files)


def audit_with_findings(snapshot: Snapshot, request: AuditRequest, files: ElfFiles, *, has_heap: bool = True) -> Audit:
    """Audit a live process and what it could do without, for which the symbols of all its files are read.

    Args:
        snapshot: The process.
        request: What is asked of it.
        files: What opens its files.
        has_heap: Whether the structures of its allocator and of its threads are read.

    Raises:
        AccessError: If the process is gone, or may not be read.
        InputError: If its program is no ELF file.
        UsageError: If the model does not fit.
    """
    from footprint.verbs.duplicates.call import variables_of  # noqa: PLC0415 # debug information, which only findings need

    pid = snapshot.pid or 0
    view = ProcessView.of(pid)
    audited = audit_of(
        snapshot,
        str(pid),
        request.question,
        files=files,
        has_page_maps=request.has_page_maps,
        has_heap=has_heap,
        has_whole_heap=True,
    )
    graph = Programs.of_process(snapshot, view, open_file=files.opened).graph_of(snapshot, view, audited.ledger)
    variables = variables_of(snapshot, request.debug, files.opened)
    called = _owner_names(audited.ledger, pid)
    images = {called(linked.path): linked.library for linked in graph.objects}
    ledger = _ledger_facts(audited, graph, files, images)
    findings, searched = _file_findings(graph, ledger, variables, request.doubtful_rules)
    made = [prediction for prediction in graph.predictions if prediction]
    totals = audited.totals._replace(
        startup_min=Total(sum(p.startup_min_bytes for p in made), weakest(p.evidence for p in made)),
        startup_max=Total(sum(p.startup_max_bytes for p in made), Evidence.PREDICTED),
    )
    notes = (*audited.notes, *graph.notes, *missing_notes(graph))
    return replace(
        audited,
        totals=totals,
        findings=tuple(
            replace(f, object=f.object and called(f.object), leaves=tuple(map(called, f.leaves))) for f in findings
        ),
        searched_rules=searched,
        notes=tuple(dict.fromkeys(notes)),
        objects=tuple(_renamed(object_cost, called) for object_cost in graph.object_costs(has_start=request.has_start)),
    )


_MOST_FINDINGS: Final = 500


def file_findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Search the program and the libraries of a live process, without the doubtful findings: the largest savings.

    Raises:
        AccessError: If the process is gone, or may not be read.
        InputError: If its program is no ELF file.
    """
    from footprint.verbs.duplicates.call import variables_of  # noqa: PLC0415 # as above

    pid = snapshot.pid or 0
    view = ProcessView.of(pid)
    files = files_of(snapshot, None)
    ledger = owner_rows(snapshot, images_of(snapshot, None, files.opened, files.images)[0])
    images = [image for _, image in files.images.values()]
    graph = Programs.of_process(snapshot, view, images=images).graph_of(snapshot, view, ledger)
    facts: dict[Fact, object] = {Fact.GRAPH: graph}
    if (variables := variables_of(snapshot, None, files.opened)) is not None:
        facts[Fact.VARIABLES] = variables
    called = _owner_names(ledger, pid)
    sure = [finding for finding in find_all(facts) if finding.confidence is not Confidence.LOW]
    largest = sorted(sure, key=lambda finding: -finding.saving_bytes)[:_MOST_FINDINGS]
    return tuple(replace(f, object=f.object and called(f.object), leaves=tuple(map(called, f.leaves))) for f in largest)


def with_objects(audit: Audit, snapshot: Snapshot, files: ElfFiles, kept: KeptPrograms | None = None) -> Audit:
    """Add to the audit of a live process what each of its objects costs with all that it brings in.

    Symbols are not read for it. A process that is gone by now, or that is no ELF program, stays without. `kept` are the
    readers of earlier processes of a group.
    """
    pid = snapshot.pid or 0
    try:
        view = ProcessView.of(pid)
        programs = Programs.of_process(snapshot, view, open_file=files.opened, kept=kept)
        graph = programs.graph_of(snapshot, view, audit.ledger, is_bound=False)
    except FootprintError:
        return audit
    called = _owner_names(audit.ledger, pid)
    return replace(audit, objects=tuple(_renamed(object_cost, called) for object_cost in graph.object_costs()))


def _renamed(cost: ObjectCost, called: Callable[[str], str]) -> ObjectCost:
    """Name an object, and all that it speaks of, as `called` does."""
    return cost._replace(
        path=called(cost.path),
        held_by=None if cost.held_by is None else called(cost.held_by),
        needs=None if cost.needs is None else tuple([need._replace(path=called(need.path)) for need in cost.needs]),
    )


def _owner_names(ledger: Iterable[Row], pid: int) -> Callable[[str], str]:
    """Return a function that names an object as the ledger does: the loader may have followed a symbolic link to it."""
    owners = {row.owner for row in ledger}
    root = f"/proc/{pid}/root"

    @cache
    def called(path: str) -> str:
        inside = path.removeprefix(root)
        if not inside or inside in owners:
            return inside
        try:
            real = os.path.realpath(root + inside).removeprefix(root)
        except OSError:  # the process ended: Python 3.11 reads a link that was there before
            return inside
        # Where nothing but this process has that root, its links lead out of it.
        real = real if real in owners else os.path.realpath(inside)
        return real if real in owners else inside

    return called


def _ledger_facts(
    audit: Audit, graph: DependencyGraph, files: ElfFiles, libraries: Mapping[str, Library]
) -> LedgerFacts:
    """Return what rules read of a ledger; `libraries` has the files of its owners."""

    def image_of(owner: str) -> Image | None:
        return libraries[owner].image if owner in libraries else None

    variables = RelocatedVariables(files, image_of, graph.page_bytes)
    return LedgerFacts(audit.ledger, graph.page_bytes, audit.allocator, variables.page_count)


def _file_findings(
    graph: DependencyGraph, ledger: LedgerFacts, variables: "Variables | None", doubtful_rules: frozenset[str]
) -> tuple[tuple[Finding, ...], tuple[SearchedRule, ...]]:
    """Run the rules that read files; return their findings, the largest saving first, and which rules were run.

    Doubtful findings on variables are left out, except those of `doubtful_rules`, and those of variables whose private
    bytes are known: these the process itself shows. If all files are stripped, their variables count as not searched.
    """
    facts: dict[Fact, object] = {Fact.GRAPH: graph, Fact.LEDGER: ledger}
    if variables is not None:
        facts[Fact.VARIABLES] = variables
    findings, left_out = [], Counter[str]()
    for finding in find_all(facts):
        is_doubtful = finding.confidence is Confidence.LOW and finding.private_bytes is None
        if is_doubtful and fact_of(finding.rule) is Fact.VARIABLES and finding.rule not in doubtful_rules:
            left_out[finding.rule] += 1
        else:
            findings.append(finding)
    if variables is not None and all(file.statics.is_stripped for file in variables.files):
        del facts[Fact.VARIABLES]
    searched = tuple(SearchedRule(rule.name, left_out[rule.name]) for rule in rules_reading(facts.keys()))
    return tuple(sorted(findings, key=lambda finding: -finding.saving_bytes)), searched
