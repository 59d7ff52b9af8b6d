"""The audit of a program by its files: what a process of it surely writes at its start, and what it could save."""

import os
from dataclasses import replace

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import BUILT_IN
from footprint.attribution.program_prediction import predicted_audit
from footprint.errors import Note
from footprint.loader import Environment
from footprint.model.audit import Audit
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.programs import Programs, missing_notes
from footprint.verbs.audit.findings import file_findings
from footprint.verbs.audit.process import with_files_told
from footprint.verbs.audit.request import AuditRequest

__all__ = ("audit_program",)

_USUAL_PAGE_BYTES = 4096


def audit_program(target: str, asked: AuditRequest) -> Audit:
    """Audit a program by its files.

    Args:
        target: The path of the program, as it sees it.
        asked: What is asked. If the answer is to be reproducible, nothing of this machine but the files goes into it:
            not its kernel, its calibrations, its page size, nor what this process was started with.

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
    findings = file_findings(graph, found.ledger, variables)
    return with_files_told(replace(found, findings=findings, objects=graph.object_costs()), files)


def _library_note(graph: DependencyGraph, target: str) -> list[Note]:
    if graph.objects[0].library.is_program:
        return []
    detail = "it is a library: the figures are for a process with this library and its needs, without a program"
    return [Note("no-program", target, detail)]
