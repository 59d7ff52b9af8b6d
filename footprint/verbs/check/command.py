"""`footprint check`: budgets; exit code 1 if one is exceeded."""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, emit, write
from footprint.whole_file import write_file

if TYPE_CHECKING:
    from footprint.model.audited import Audited
    from footprint.release.budget import Checked
    from footprint.sources.debug_files import DebugSearch
    from footprint.sources.target import AnyTarget, ProcessChoice
    from footprint.verbs.check import call, html, issues, json, metrics, text
else:
    call, html, issues, json, metrics, text = lazy_modules(
        "footprint.verbs.check", "call html issues json metrics text"
    )

__all__ = ("check",)

ORDER = 110


@options.shared_options("output format_ html table json color quiet strict", "issues figures report")
def check(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="A saved audit, a PID, a program, a capture or a text; several PIDs are a group."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", help="The budget file; else footprint.toml or pyproject.toml here.", metavar="FILE"),
    ] = None,
    update_baseline: Annotated[
        bool,
        typer.Option("--update-baseline", help="Write the measured audit as the baseline, if all other limits hold."),
    ] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help="Write a first budget file from the measured figures.")
    ] = False,
    pid: options.Pid = None,
    root: options.Root = None,
    map_: options.LinkMap = None,
    *,
    choice: "ProcessChoice",
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """Check a process against budgets, and fail if one is exceeded.

    \b
    footprint check ./server --propose -o footprint.toml
    footprint check ./server
    footprint check audit.json --config budgets/server.toml
    footprint check ./server --html report.html
    footprint check --tree 4711 --config family.toml
    """
    from footprint.model.audited_names import lasting_name
    from footprint.sources.target import NO_CHOICE, resolve_any

    named = targets or []
    if not named and choice == NO_CHOICE:
        raise UsageError("name what is checked; `footprint check -h` shows what can be")

    def name(found: "Checked") -> str:
        return lasting_name(found.audit, " ".join([*named, *choice.words]))

    answer: Answer[Checked] = Answer(
        "check",
        "budgets",
        document=text.check_document,
        members=json.check_members,
        issues=lambda found: issues.issues_of_check(found, name(found)),
        figures=metrics.check_metrics,
        report=html.check_html,
    )
    check_formats(answer, output)
    if propose:
        if update_baseline or config is not None or output.html is not None:
            raise UsageError("--propose writes a first budget file: not with --config, --update-baseline or --html")
        if output.file != "-" and os.path.exists(output.file):
            raise UsageError(f"{output.file} is there already: --propose writes a first budget file, and replaces none")
        emit(call.proposal(resolve_any(named, choice, root=root), pid=pid, root=root, debug=debug), output.file)
        return 0
    budgets = call.load_budgets(config)
    baseline = call.replaceable_baseline(budgets) if update_baseline else None
    judge = call.check_for_baseline if update_baseline else partial(call.check, map=map_)
    target = resolve_any(named, choice, root=root)
    checked = judge(target, budgets, pid=pid, root=root, debug=debug, has_page_maps=output.has_report)
    if baseline is not None and not checked.failures:
        write_file(baseline, _baseline(checked.audit, target).encode(), replaces_input=True)
    answer = answer._replace(document=lambda found: text.check_document(found, baseline=baseline))
    code = write(answer, checked, f"check {name(checked)}", output, checked.notes)
    return 1 if checked.failures else code


def _baseline(audit: "Audited", target: "AnyTarget") -> str:
    """Write what is kept to be compared, of a saved run with how far its starts differ.

    Where pages stand is left out: it differs from start to start.
    """
    from dataclasses import replace
    from json import loads

    from footprint.formats.json import write as write_json
    from footprint.formats.saved_audit import PLACES
    from footprint.model.audit import Audit
    from footprint.sources.target import AuditFile
    from footprint.verbs.audit.either import audited_members

    if not isinstance(target, AuditFile):
        kept = replace(audit, page_maps=(), mappings=()) if isinstance(audit, Audit) else audit
        return write_json(audited_members(kept, __version__))
    saved = loads(bytes(target.data))
    for name in PLACES:
        saved.pop(name, None)
    return write_json(saved)
