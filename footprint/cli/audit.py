"""`footprint audit`: everything about one process."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("audit",)


def audit(
    target: options.Target,
    count: options.Count = 1,
    by: Annotated[options.By, typer.Option("--by", help="What to group the ledger by.")] = options.By.OWNER,
    top: options.Top = 20,
    pid: options.Pid = None,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Show where the memory of a process goes, and what N of it cost.

    By owner, section and symbol, adding up to what the kernel counts.

    \b
    footprint audit 4711 -n 10000
    pmap -d 4711 | footprint audit -
    """
    from footprint.cli.output import emit, emit_document, exit_code
    from footprint.verbs import processes

    found = processes.audit(target, count=count, pid=pid)
    if json or format_ is options.Format.JSON:
        from footprint.report.json.audit import audit_json

        emit(audit_json(found, __version__), output)
    else:
        from footprint.report.views.audit import audit_report

        document = audit_report(found, by=by.value, top=top, has_whole_names=verbose)
        emit_document(document, output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
