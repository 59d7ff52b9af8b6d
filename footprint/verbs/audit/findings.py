"""The audits with findings: of a program by its files, and of a live process together with its files."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import BUILT_IN
from footprint.attribution.program_prediction import predicted_audit
from footprint.elf import Image
from footprint.errors import FootprintError, Note
from footprint.findings.registry import Fact, LedgerFacts, fact_of, find_all, rules_reading
from footprint.loader import Environment, Library
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.finding import Confidence, Finding, SearchedRule
from footprint.model.object_cost import ObjectCost
from footprint.model.totals import Total
from footprint.process import Snapshot
from footprint.process.descriptions import OpenFile
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.programs import ProcessView, Programs, missing_notes
from footprint.sources.relocated_variables import RelocatedVariables
from footprint.verbs.audit.process import audit_of, with_files_told
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.findings.variables import Variables

__all__ = ("audit_program", "audit_with_findings", "with_objects")

_USUAL_PAGE_BYTES = 4096


def audit_program(target: str, asked: AuditRequest) -> Audit:
    """Audit a program by its files; `target` is its path, as it sees it.

    If the answer is to be reproducible, nothing of this machine but the files goes into it: not its kernel, its
    calibrations, its page size, nor what this process was started with.

    Raises:
        AccessError: If the program cannot be opened.
        InputError: If it is no linked ELF file.
        UsageError: If the model needs a live process.
    """
    root, page_bytes, files = asked.root, asked.page_bytes, ElfFiles(asked.debug, asked.root)
    if asked.is_reproducible:
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
    found = predicted_audit(
        graph,
        files,
        target=target,
        question=asked.question,
        constants=constants,
        host=host,
        notes=(*_library_note(graph, target), *graph.notes, *missing_notes(graph)),
        has_page_maps=asked.has_page_maps,
    )
    from footprint.verbs.duplicates.call import variables_in  # noqa: PLC0415 # debug information, which only findings need

    variables = variables_in(graph.objects[0].library.image, asked.debug, files.opened)
    images = {one.path: one.library for one in graph.objects}
    ledger = _ledger_facts(found, graph, files, images)
    findings, searched = _file_findings(graph, ledger, variables, asked.doubtful_rules)
    told = replace(found, findings=findings, searched_rules=searched, objects=graph.object_costs())
    return with_files_told(told, files)


def _library_note(graph: DependencyGraph, target: str) -> list[Note]:
    if graph.objects[0].library.is_program:
        return []
    detail = "it is a library: the figures are for a process with this library and its needs, without a program"
    return [Note("no-program", target, detail)]


def audit_with_findings(
    snapshot: Snapshot, asked: AuditRequest, files: ElfFiles, open_files: Sequence[OpenFile] | None = None
) -> Audit:
    """Audit a live process and what it could do without, for which the symbols of all its files are read.

    Args:
        snapshot: The process.
        asked: What is asked of it.
        files: What opens its files.
        open_files: The open file descriptions that it pays for; read from the process without it.

    Raises:
        AccessError: If the process is gone, or may not be read.
        InputError: If its program is no ELF file.
        UsageError: If the model does not fit.
    """
    from footprint.verbs.duplicates.call import variables_of  # noqa: PLC0415 # debug information, which only findings need

    pid = snapshot.pid or 0
    view = ProcessView.of(pid)
    found = audit_of(
        snapshot,
        str(pid),
        asked.question,
        files=files,
        has_page_maps=asked.has_page_maps,
        open_files=open_files,
        has_heap=open_files is None,
        has_whole_heap=True,
    )
    graph = Programs.of_process(snapshot, view, open_file=files.opened).graph_of(snapshot, view, found.ledger)
    variables = variables_of(snapshot, asked.debug, files.opened)
    called = _owner_names(found, pid)
    images = {called(one.path): one.library for one in graph.objects}
    ledger = _ledger_facts(found, graph, files, images)
    findings, searched = _file_findings(graph, ledger, variables, asked.doubtful_rules)
    known = [one for one in graph.predictions if one]
    totals = found.totals._replace(
        startup_min=Total(sum(one.startup_min_bytes for one in known), weakest(one.evidence for one in known)),
        startup_max=Total(sum(one.startup_max_bytes for one in known), Evidence.PREDICTED),
    )
    notes = (*found.notes, *graph.notes, *missing_notes(graph))
    return replace(
        found,
        totals=totals,
        findings=tuple(
            replace(one, object_path=called(one.object_path), leaves=tuple(map(called, one.leaves))) for one in findings
        ),
        searched_rules=searched,
        notes=tuple(dict.fromkeys(notes)),
        objects=tuple(_renamed(one, called) for one in graph.object_costs()),
    )


def with_objects(found: Audit, snapshot: Snapshot, files: ElfFiles) -> Audit:
    """Add to the audit of a live process what each of its objects costs with all that it brings in.

    Symbols are not read for it. A process that is gone by now, or that is no ELF program, stays without.
    """
    pid = snapshot.pid or 0
    try:
        view = ProcessView.of(pid)
        programs = Programs.of_process(snapshot, view, open_file=files.opened)
        graph = programs.graph_of(snapshot, view, found.ledger, is_bound=False)
    except FootprintError:
        return found
    called = _owner_names(found, pid)
    return replace(found, objects=tuple(_renamed(one, called) for one in graph.object_costs()))


def _renamed(one: ObjectCost, called: Callable[[str], str]) -> ObjectCost:
    """Name an object, and all that it speaks of, as `called` does."""
    return one._replace(
        path=called(one.path),
        held_by=None if one.held_by is None else called(one.held_by),
        needs=None if one.needs is None else tuple([need._replace(path=called(need.path)) for need in one.needs]),
    )


def _owner_names(found: Audit, pid: int) -> Callable[[str], str]:
    """Return a function that names an object as the ledger does: the loader may have followed a symbolic link to it."""
    owners = {row.owner for row in found.ledger}
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
    found, left_out = [], Counter[str]()
    for one in find_all(facts):
        is_doubtful = one.confidence is Confidence.LOW and one.private_bytes is None
        if is_doubtful and fact_of(one.rule) is Fact.VARIABLES and one.rule not in doubtful_rules:
            left_out[one.rule] += 1
        else:
            found.append(one)
    if variables is not None and all(one.statics.is_stripped for one in variables.files):
        del facts[Fact.VARIABLES]
    searched = tuple(SearchedRule(rule.name, left_out[rule.name]) for rule in rules_reading(facts.keys()))
    return tuple(sorted(found, key=lambda one: -one.saving_bytes)), searched
