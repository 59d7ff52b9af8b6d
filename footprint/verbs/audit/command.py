"""`footprint audit`: everything about one process, or several."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("audit",)

ORDER = 10


def audit(
    targets: options.Targets = None,
    count: options.Count = 1,
    tree: Annotated[int | None, typer.Option("--tree", help="A PID: with all that descend from it.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="All processes of this name.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Rank every program below the folders that are named.")] = False,
    findings: Annotated[
        bool, typer.Option("--findings", help="Search a process for what it could do without (a program always is).")
    ] = False,
    heap: options.Heap = None,
    heap_at: options.HeapAt = None,
    allocators: options.AllocFns = None,
    binaries: options.Binaries = None,
    by: Annotated[options.By, typer.Option("--by", help="What to group the ledger by.")] = options.By.OWNER,
    top: options.Top = 20,
    pid: options.Pid = None,
    root: options.Root = None,
    page_size: options.PageSize = None,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="For a program: the same answer for the same files, on any machine.")
    ] = False,
    html: options.Html = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Show where the memory of a process goes, and what N of it cost.

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
    from footprint.sources.debug_files import debug_search
    from footprint.units import parse_bytes
    from footprint.verbs.audit.answers import answer_class, answer_of, resolve_targets
    from footprint.verbs.audit.request import AuditRequest, heap_request, question_of
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write

    asked = AuditRequest(
        question_of(count, None, "exec"),
        pid=pid,
        root=root,
        page_bytes=None if page_size is None else parse_bytes(page_size),
        has_findings=findings,
        heap=heap_request(heap, heap_at, allocators or (), binaries or ()),
        debug=debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files),
        is_reproducible=reproducible,
    )
    target = resolve_targets(targets or (), asked, tree=tree, name=name, is_survey=all_)
    written = output_options(
        answer_class(target, asked), format_, output, is_json=json, table=table, color=color, is_quiet=quiet, html=html
    )
    answer = answer_of(target, asked, written, ViewOptions(by.value, top, verbose))
    write(answer, written)
    raise typer.Exit(exit_code(answer.found.notes, is_strict=strict))
