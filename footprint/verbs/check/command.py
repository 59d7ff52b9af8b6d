"""`footprint check`: budgets; exit code 1 if one is exceeded."""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

from footprint import __version__
from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import Answer, check_formats, emit, lazy_modules, write

if TYPE_CHECKING:
    from footprint.elf.notes import DebugSearch
    from footprint.model.audit import Audit
    from footprint.release.budget import Checked
    from footprint.sources.target import AnyTarget, ProcessChoice
    from footprint.verbs.check import call, gate, json, text
else:
    call, gate, json, text = lazy_modules("footprint.verbs.check", "call gate json text")


ORDER = 110


@options.shared_options("output format_ html table json color quiet strict", "issues figures report")
def check(
    targets: Annotated[
        list[str] | None,
        Argument(help="A saved audit, a PID, a program, a capture or a text; several PIDs are a group."),
    ] = None,
    config: Annotated[
        str | None,
        Option("--config", help="The budget file; else footprint.toml or pyproject.toml here.", metavar="FILE"),
    ] = None,
    update_baseline: Annotated[
        bool,
        Option("--update-baseline", help="Write the measured audit as the baseline, if all other limits hold."),
    ] = False,
    propose: Annotated[bool, Option("--propose", help="Write a first budget file from the measured figures.")] = False,
    max_increase: Annotated[
        str | None,
        Option(
            "--max-increase",
            help="How much the cost may grow since a baseline, without a budget file: 5 %, 64 KiB.",
            metavar="SHARE",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        Option(
            "--baseline",
            help="For --max-increase: a saved audit; else footprint-baseline.json, which --update-baseline writes.",
            metavar="FILE",
        ),
    ] = None,
    init: Annotated[
        bool, Option("--init", help="Write the files of a CI gate for a program; keep those that are there.")
    ] = False,
    folder: Annotated[
        str | None,
        Option("--folder", help="For --init: the folder of the project; else this one.", metavar="DIR"),
    ] = None,
    ci: Annotated[
        str | None,
        Option("--ci", help="For --init: github or gitlab; else what the project shows.", metavar="NAME"),
    ] = None,
    when: Annotated[
        str | None,
        Option(
            "--when", help="For --init: let CI start it, and read it then: exit, settled, or a time.", metavar="WHEN"
        ),
    ] = None,
    when_output: options.WhenOutput = None,
    accept: options.Accept = None,
    pid: options.Pid = None,
    root: options.Root = None,
    map_: options.LinkMap = None,
    *,
    choice: "ProcessChoice",
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """Check a process against budgets, and fail if one is exceeded.

    --max-increase needs no budget file: the first command below saves what it costs now in footprint-baseline.json, the
    second one fails where it costs more than 5 % more. Keep the baseline in the repository.

    --init writes the budgets, the baseline and the workflow of a CI gate. It runs nothing, and keeps the files that are
    there. With --when or --when-output, CI starts the program five times as well, with the arguments after --, and
    fails if it crashes, exits with an error, or does not come up.

    \b
    footprint check ./server --max-increase "5 %" --update-baseline
    footprint check ./server --max-increase "5 %"
    footprint check --init --max-increase "5 %"
    footprint check --init build/server --ci gitlab
    footprint check --init build/server --when-output ready -- --port 8080
    footprint check ./server --propose -o footprint.toml
    footprint check ./server
    footprint check audit.json --config budgets/server.toml
    footprint check ./server --html report.html
    footprint check --tree 4711 --config family.toml
    """
    from footprint.model.audit import lasting_name
    from footprint.model.over_time import parse_accepted
    from footprint.sources.target import NO_CHOICE, resolve_any

    named = targets or []
    of_gate = {"--folder": folder, "--ci": ci, "--when": when, "--when-output": when_output}
    if init:
        others = (propose, update_baseline, config, baseline, accept, pid, root, map_, output.html, choice != NO_CHOICE)
        if any(others) or output.format is not options.Format.TEXT or output.file != "-":
            raise UsageError(
                "--init writes the files of a gate: it goes with --folder, --ci, --max-increase and --when only"
            )
        written = gate.init(
            named[0] if named else None,
            folder=folder or ".",
            forge=ci,
            when=when,
            when_output=when_output,
            arguments=named[1:],
            max_increase=max_increase,
        )
        emit(gate.gate_text(written) + "\n", "-")
        return 0
    if refused := [option for option, value in of_gate.items() if value is not None]:
        raise UsageError(f"{refused[0]} goes with --init, which writes the files of a gate")
    if not named and choice == NO_CHOICE:
        raise UsageError("name what is checked; `footprint check -h` shows what can be")

    def name(checked: "Checked") -> str:
        return lasting_name(checked.audit, " ".join([*named, *choice.words]))

    answer: Answer[Checked] = Answer(
        "check",
        "budgets",
        document=text.check_document,
        members=json.check_members,
        issues=lambda checked: json.issues_of_check(checked, name(checked)),
        figures=json.check_metrics,
        report=json.check_html,
    )
    check_formats(answer, output)
    if propose:
        if update_baseline or config is not None or output.html is not None:
            raise UsageError("--propose writes a first budget file: not with --config, --update-baseline or --html")
        if output.file != "-" and os.path.exists(output.file):
            raise UsageError(f"{output.file} is there already: --propose writes a first budget file, and replaces none")
        target = resolve_any(named, choice, root=root)
        emit(call.proposal(target, pid=pid, root=root, debug=debug, room=max_increase), output.file)
        return 0
    budgets = call.budgets_of(config, max_increase, baseline)
    budgets = budgets._replace(accepted=budgets.accepted | parse_accepted(accept or ()))
    new_baseline = call.replaceable_baseline(budgets) if update_baseline else None
    judge = call.check_for_baseline if update_baseline else partial(call.check, map=map_)
    target = resolve_any(named, choice, root=root)
    checked = judge(target, budgets, pid=pid, root=root, debug=debug, has_page_maps=output.has_report)
    if new_baseline is not None and not checked.failures:
        from footprint.system.whole_file import write_file

        write_file(new_baseline, _baseline(checked.audit, target).encode(), replaces_input=True)
    answer = answer._replace(document=lambda checked: text.check_document(checked, baseline=new_baseline))
    code = write(answer, checked, f"check {name(checked)}", output, checked.notes)
    return 1 if checked.failures else code


def _baseline(audit: "Audit", target: "AnyTarget") -> str:
    """Describe what is kept to be compared, of a saved run with how far its starts differ.

    Where pages stand is left out: it differs from start to start.
    """
    from dataclasses import replace
    from json import loads

    from footprint.formats.audit_json import audit_json
    from footprint.formats.saved_audit import PLACES
    from footprint.json.answer import write as write_json
    from footprint.sources.target import AuditFile

    if not isinstance(target, AuditFile):
        kept = replace(audit, page_maps=(), mappings=())
        return audit_json(kept, __version__)
    saved = loads(bytes(target.data))
    for name in PLACES:
        saved.pop(name, None)
    return write_json(saved)
