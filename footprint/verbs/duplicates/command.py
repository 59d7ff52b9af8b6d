"""`footprint duplicates`: data that files hold several times over."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats

if TYPE_CHECKING:
    from footprint.formats.issues import Issues
    from footprint.sources.debug_files import DebugSearch
    from footprint.verbs.duplicates import call, json, metrics, text
    from footprint.verbs.duplicates.call import Duplicates
else:
    call, json, metrics, text = lazy_modules("footprint.verbs.duplicates", "call json metrics text")

__all__ = ("duplicates",)

ORDER = 60


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures report")
def duplicates(
    targets: Annotated[
        list[str], typer.Argument(help="ELF files, objects or archives, or one PID: all files that it runs.")
    ],
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
    answer: Answer[Duplicates] = Answer(
        "duplicates",
        "duplicates",
        document=lambda found: text.duplicates_document(
            found, count=count, top=top, has_linker_names=output.has_whole_names
        ),
        members=lambda found, version: json.duplicates_members(found, version, count),
        issues=lambda found: _issues(found, count),
        figures=metrics.duplicates_metrics,
        has_page=True,
    )
    check_formats(answer, output)
    conditions = conditions_of(fail_on or (), "duplicates", "variable")
    found = call.duplicates(*targets, debug=debug)
    name = f"duplicates {' '.join(found.targets)}"
    return write_judged(answer, found, found.findings, conditions, name, output, found.notes)


def _issues(found: "Duplicates", count: int) -> "Issues":
    from footprint.findings.registry import Fact, rules_reading
    from footprint.formats.issues import issues_of_findings

    rules = [one.name for one in rules_reading({Fact.VARIABLES})]
    binary = found.files[0].file if found.files else ""
    issues = issues_of_findings(found.findings, " ".join(found.targets), count=count, binary=binary, rules=rules)
    # All files are named by the user: none of them is a library that only came along.
    return issues._replace(binary="")
