"""`footprint diff`: what grew between two targets."""

from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.output import Answer, check_formats, lazy_modules, write

if TYPE_CHECKING:
    from footprint.elf.notes import DebugSearch
    from footprint.formats.issues import Issues
    from footprint.release.compare import Comparison
    from footprint.sources.target import ProcessChoice
    from footprint.verbs.diff import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.diff", "call json text")


ORDER = 100


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures report")
def diff(
    old: Annotated[str, Argument(help="The one before: a saved audit, a PID, a program, a capture, a profile.")],
    new: Annotated[list[str] | None, Argument(help="The one now, of the same kind; several PIDs are a group.")] = None,
    count: options.OptionalCount = None,
    top: options.Top = 20,
    binaries: options.Binaries = None,
    pid: Annotated[
        list[int] | None,
        Option("--pid", help="Which process of captures and texts; twice for one of each side."),
    ] = None,
    root: options.Root = None,
    map_: options.LinkMap = None,
    *,
    choice: "ProcessChoice",
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """Show what grew, per owner and variable, and at N processes.

    What only a build numbers anew, or another folder, is no change. A saved group is compared with the processes that
    --tree and the like choose.

    \b
    footprint diff before.json after.json -n 10000
    footprint diff ./old/server ./new/server
    footprint diff 4711 4712
    footprint diff group.json --tree 4711
    footprint diff massif.out.1 massif.out.2
    footprint diff before.json after.json --html change.html
    """
    from footprint.model.audit import lasting_name
    from footprint.sources.target import NO_CHOICE, resolve, resolve_any

    answer: Answer[Comparison] = Answer(
        "diff",
        "diff",
        document=lambda comparison: text.diff_document(comparison, top=top, has_whole_names=output.has_whole_names),
        members=json.diff_members,
        issues=_issues,
        figures=json.diff_metrics,
        report=json.diff_html,
    )
    check_formats(answer, output)
    now = new or []
    if not now and choice == NO_CHOICE:
        raise UsageError("name two: the one before, and the one now")
    targets = resolve(old, root=root), resolve_any(now, choice, root=root)
    profiles = call.diff_profiles(
        *targets, binaries=binaries or (), root=root, debug=debug, has_all_trees=output.has_report
    )
    if profiles is not None:
        from footprint.verbs.heap.command import comparison_answer
        from footprint.verbs.heap.text import HeapView

        if count is not None:
            raise UsageError("-n goes with processes and programs: a profile is of one run")
        if map_ is not None:
            raise UsageError("--map goes with processes and programs: a profile says nothing about libraries")
        name = f"diff {old} {' '.join(now)}"
        view = HeapView(top=top, is_whole=output.has_whole_names)
        return write(comparison_answer(name, view), profiles, name, output, profiles.notes)
    comparison = call.diff(
        *targets, count=count, pids=pid or (), root=root, debug=debug, has_page_maps=output.has_report, map=map_
    )
    name = f"diff {lasting_name(comparison.old)} {lasting_name(comparison.new)}"
    return write(answer, comparison, name, output, comparison.notes)


def _issues(diff: "Comparison") -> "Issues":
    from footprint.formats.issues import Level, growth_issues, issues_of_findings
    from footprint.model.audit import lasting_name, program_path

    name, binary, grown = lasting_name(diff.new), program_path(diff.new), growth_issues(diff, Level.NOTE)
    return issues_of_findings(
        diff.new_findings, name, count=diff.count, binary=binary, rules=diff.compared_rules, others=grown
    )
