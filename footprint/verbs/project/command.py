"""`footprint project`: what N processes cost, or how many fit."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.formats import group_json
    from footprint.model.audit import Audit
    from footprint.model.group import Group
    from footprint.sources.target import ProcessChoice, Processes
    from footprint.verbs.audit import group_text, metrics
    from footprint.verbs.audit import text as audit_text
    from footprint.verbs.output import Answer
    from footprint.verbs.project import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.project", "call json text")
    (group_json,) = lazy_modules("footprint.formats", "group_json")
    group_text, metrics, audit_text = lazy_modules("footprint.verbs.audit", "group_text metrics text")

__all__ = ("project",)

ORDER = 90


@options.shared_options("html output format_ table json color quiet strict", "figures report")
def project(
    targets: options.Targets = None,
    count: options.OptionalCount = None,
    memory: options.Memory = None,
    reserve: Annotated[
        str | None, typer.Option("--reserve", help="The part of the memory that is left for others.", metavar="SIZE")
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option("--limit", help="Show how many fit into a control group: its path, or own.", metavar="CGROUP"),
    ] = None,
    model: options.ModelOption = None,
    *,
    choice: "ProcessChoice",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=10**9, help="The workers of each group; else as many as there are.", metavar="N"
        ),
    ] = None,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.OutputOptions,
) -> int:
    """Show what N processes cost, or how many fit.

    With every term, for started copies, for forked workers of one parent, or for threads. A process with its workers
    is a group: shown are one more worker, one more group, and N groups.

    \b
    footprint project 4711 -n 10000
    footprint project smaps.txt --memory 32GiB --reserve 2GiB
    footprint project 4711 -n 50 --model fork
    footprint project --tree 4711 -n 10 --workers 64
    footprint project --unit nginx.service --limit own
    footprint project ./server32 ./server64 -n 10000
    """
    from footprint.errors import UsageError
    from footprint.series import USUAL_MOST
    from footprint.sources.target import NO_CHOICE, resolve, resolve_processes
    from footprint.units import parse_bytes

    memory_bytes = None if memory is None else parse_bytes(memory)
    reserve_bytes = 0 if reserve is None else parse_bytes(reserve)
    named = targets or []
    if choice != NO_CHOICE:
        if model is not None or pid is not None or root is not None:
            raise UsageError(f"--model, --pid and --root go with one target, not with {choice.words[0]}")
        check_formats(_group_answer(), output)
        return _project_group(
            resolve_processes(named, choice), (count, workers, memory_bytes, reserve_bytes, limit), output
        )
    if not named:
        raise UsageError("name a process or a program; `footprint project -h` shows what can be projected")
    stored = (
        call.stored_group(resolve(named[0], root=root, series_moment=USUAL_MOST), pid, root)
        if len(named) == 1
        else None
    )
    if stored is not None:
        if model is not None:
            raise UsageError(f"--model goes with one process; {named[0]} holds several")
        check_formats(_group_answer(), output)
        return _project_group(stored, (count, workers, memory_bytes, reserve_bytes, limit), output)
    if workers is not None:
        raise UsageError("--workers goes with a group: --tree, --name, --cgroup, --unit or --container")
    single, several = _answers()
    check_formats(single if len(named) == 1 else several, output)
    found = [
        call.project(
            target,
            count=count,
            memory_bytes=memory_bytes,
            reserve_bytes=reserve_bytes,
            limit=limit,
            model=None if model is None else model.value,
            pid=pid,
            root=root,
        )
        for target in named
    ]
    name = f"project {' '.join(named)}"
    if len(found) == 1:
        return write(single, found[0], name, output, found[0].notes)
    beside = [(audit, call.bits_of(audit)) for audit in found]
    return write(several, beside, name, output, [note for audit in found for note in audit.notes])


def _answers() -> "tuple[Answer[Audit], Answer[list[tuple[Audit, int | None]]]]":
    """Return the answer about one target, and that about several."""
    from footprint.verbs.output import Answer

    return (
        Answer(
            "project",
            "projection",
            document=audit_text.projection_document,
            members=json.project_members,
            figures=lambda found: metrics.projection_metrics(found.projection, found.target),
            has_page=True,
        ),
        Answer(
            "project of several",
            "targets",
            document=text.side_by_side_document,
            members=json.side_by_side_members,
            has_page=True,
        ),
    )


def _group_answer() -> "Answer[Group]":
    from footprint.verbs.output import Answer

    return Answer(
        "project of a group",
        "projection",
        document=group_text.group_projection_document,
        members=group_json.group_projection_members,
        figures=metrics.audit_metrics,
        has_page=True,
    )


def _project_group(
    target: "Processes | Group",
    asked: tuple[int | None, int | None, int | None, int, str | None],
    output: options.OutputOptions,
) -> int:
    found = call.project_processes(target, *asked)
    return write(_group_answer(), found, f"project {found.target}", output, found.notes)
