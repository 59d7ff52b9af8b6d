"""`footprint duplicates`: data that files hold several times over."""

from typing import TYPE_CHECKING, Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.output import Answer, check_formats

if TYPE_CHECKING:
    from footprint.elf.notes import DebugSearch
    from footprint.formats.issues import Issues

ORDER = 60


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures report")
def duplicates(
    targets: Annotated[list[str], Argument(help="ELF files, objects or archives, or one PID: all files that it runs.")],
    count: options.Count = 1,
    top: options.Top = 20,
    fail_on: options.FailOn = None,
    *,
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """Find data and libraries that a program has several times.

    What headers define, each source file that includes them has a copy of. Copies are told by their declaration,
    their contents and what they point to; the evidence is graded.

    \b
    footprint duplicates /usr/bin/node
    footprint duplicates 4711 -n 10000
    """
    from footprint.findings.registry import Fact, rules_reading
    from footprint.verbs.duplicates import answer, call

    def issues(result: call.Duplicates) -> "Issues":
        from footprint.formats.issues import issues_of_findings

        rules = [rule.name for rule in rules_reading({Fact.VARIABLES})]
        binary = result.files[0].file if result.files else ""
        issues_found = issues_of_findings(
            result.findings, " ".join(result.targets), count=count, binary=binary, rules=rules
        )
        # All files are named by the user: none of them is a library that only came along.
        return issues_found._replace(binary="")

    parts: Answer[call.Duplicates] = Answer(
        "duplicates",
        "duplicates",
        document=lambda result: answer.duplicates_document(
            result, count=count, top=top, has_linker_names=output.has_whole_names
        ),
        members=lambda result, version: answer.duplicates_members(result, version, count),
        issues=issues,
        figures=answer.duplicates_metrics,
        has_page=True,
    )
    check_formats(parts, output)
    conditions = conditions_of(fail_on or (), "duplicates", "variable")
    result = call.duplicates(*targets, debug=debug)
    name = f"duplicates {' '.join(result.targets)}"
    return write_judged(parts, result, result.findings, conditions, name, output, result.notes)
