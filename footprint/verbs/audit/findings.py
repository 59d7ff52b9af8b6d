"""The findings of an audit: what a program or a process could do without."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, LedgerFacts, fact_of, find_all
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.finding import Confidence, Finding
from footprint.model.object_cost import ObjectCost
from footprint.model.row import Row
from footprint.model.totals import Total
from footprint.process import Snapshot
from footprint.sources.files import ElfFiles
from footprint.sources.programs import ProcessView, Programs, missing_notes
from footprint.verbs.audit.process import audit_of
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.findings.variables import Variables

__all__ = ("audit_with_findings", "file_findings")


def file_findings(
    graph: DependencyGraph, ledger: tuple[Row, ...], variables: "Variables | None"
) -> tuple[Finding, ...]:
    """Run the rules that read files, without the doubtful findings on variables; the largest saving first.

    A variable whose private bytes are known is never doubtful: the process itself shows them.
    """
    facts: dict[Fact, object] = {Fact.GRAPH: graph, Fact.LEDGER: LedgerFacts(ledger, graph.page_bytes)}
    if variables is not None:
        facts[Fact.VARIABLES] = variables
    found = [
        one
        for one in find_all(facts)
        if one.confidence is not Confidence.LOW
        or one.private_bytes is not None
        or fact_of(one.rule) is not Fact.VARIABLES
    ]
    return tuple(sorted(found, key=lambda one: -one.saving_bytes))


def audit_with_findings(snapshot: Snapshot, asked: AuditRequest, files: ElfFiles) -> Audit:
    """Audit a live process and what it could do without, for which the symbols of all its files are read.

    Args:
        snapshot: The process.
        asked: What is asked.
        files: What opens its files.

    Raises:
        AccessError: If the process is gone, or may not be read.
        InputError: If its program is no ELF file.
        UsageError: If the model does not fit.
    """
    from footprint.verbs.duplicates.call import variables_of  # noqa: PLC0415 # debug information, which only findings need

    pid = snapshot.pid or 0
    view = ProcessView.of(pid)
    found = audit_of(snapshot, str(pid), asked.question, files=files, has_page_maps=asked.has_page_maps)
    graph = Programs.of_process(snapshot, view, open_file=files.opened).graph_of(snapshot, view, found.ledger)
    findings = file_findings(graph, found.ledger, variables_of(snapshot, asked.debug, files.opened))
    known = [one for one in graph.predictions if one]
    totals = found.totals._replace(
        startup_min=Total(sum(one.startup_min_bytes for one in known), weakest(one.evidence for one in known)),
        startup_max=Total(sum(one.startup_max_bytes for one in known), Evidence.PREDICTED),
    )
    called = _owner_names(found, pid)
    notes = (*found.notes, *graph.notes, *missing_notes(graph))
    return replace(
        found,
        totals=totals,
        findings=tuple(
            replace(one, object_path=called(one.object_path), leaves=tuple(map(called, one.leaves))) for one in findings
        ),
        notes=tuple(dict.fromkeys(notes)),
        objects=tuple(_renamed(one, called) for one in graph.object_costs()),
    )


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
        real = os.path.realpath(root + inside).removeprefix(root)
        # Where nothing but this process has that root, its links lead out of it.
        real = real if real in owners else os.path.realpath(inside)
        return real if real in owners else inside

    return called
