"""`footprint check`: budgets; exit code 1 where one is exceeded."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.model.audit import Audit
    from footprint.sources.target import SingleTarget

__all__ = ("check",)

ORDER = 110


def check(
    target: Annotated[str, typer.Argument(help="A saved audit, a PID, a program, a capture or a text.")],
    config: Annotated[
        str | None,
        typer.Option("--config", help="The budget file; else footprint.toml or pyproject.toml here.", metavar="FILE"),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write what is measured as the baseline, where all else holds.")
    ] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help="Write a first budget file from what is measured.")
    ] = False,
    root: options.Root = None,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    html: options.Html = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Check a process against budgets, and fail where one is exceeded.

    \b
    footprint check ./server --propose -o footprint.toml
    footprint check ./server
    footprint check audit.json --config budgets/server.toml
    footprint check ./server --html report.html
    """
    from footprint.errors import UsageError
    from footprint.sources.debug_files import debug_search
    from footprint.sources.target import resolve
    from footprint.verbs.check import call as verb
    from footprint.verbs.check.answer import CheckAnswer
    from footprint.verbs.output import emit, exit_code, output_options, write

    written = output_options(
        CheckAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet, html=html
    )
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    if propose:
        if update_baseline or config is not None or html is not None:
            raise UsageError("--propose writes a first budget file: not with --config, --update-baseline or --html")
        if output != "-" and os.path.exists(output):
            raise UsageError(f"{output} is there already: --propose writes a first budget file, and replaces none")
        emit(verb.proposal(target, root=root, debug=debug), output)
        return
    budgets = verb.load_budgets(config)
    judge = verb.check_for_baseline if update_baseline else verb.check
    named = resolve(target, root=root)
    checked = judge(named, budgets, root=root, debug=debug, has_page_maps=written.has_report)
    baseline = verb.baseline_path(budgets) if update_baseline else None
    if baseline is not None and not checked.failures:
        emit(_baseline(checked.audit, named), baseline)
    write(CheckAnswer(checked, target, baseline), written)
    raise typer.Exit(1 if checked.failures else exit_code(checked.audit.notes, is_strict=strict))


def _baseline(audit: "Audit", target: "SingleTarget") -> str:
    """Write what is kept to be compared, of a saved run with how far its starts differ.

    Where pages stand is left out: it differs from start to start.
    """
    from dataclasses import replace
    from json import loads

    from footprint.formats.audit_json import audit_json
    from footprint.formats.json import write
    from footprint.sources.target import AuditFile

    if not isinstance(target, AuditFile):
        return audit_json(replace(audit, page_maps=()), __version__)
    saved = loads(bytes(target.data))
    saved.pop("page_maps", None)
    return write(saved)
