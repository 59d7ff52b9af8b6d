"""`footprint libraries`: the objects of a program or process."""

from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.output import Answer, check_formats, lazy_modules, part_name

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.verbs.libraries import call, text
    from footprint.verbs.libraries.call import Libraries
else:
    call, text = lazy_modules("footprint.verbs.libraries", "call text")


ORDER = 50


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures graph report")
def libraries(
    target: Annotated[str, Argument(help="A program or library, which is not run, or a PID.")],
    tree: Annotated[bool, Option("--tree", help="Who brings whom in, instead of the load order.")] = False,
    depth: Annotated[
        int | None, Option("--depth", min=0, help="How many levels of the tree; all by default.", metavar="N")
    ] = None,
    why: Annotated[str | None, Option("--why", help="By which chains this one comes in.", metavar="LIB")] = None,
    count: options.Count = 1,
    per: options.Per = None,
    root: Annotated[
        str | None, Option("--root", help="The directory that the program takes for /.", metavar="DIR")
    ] = None,
    page_size: options.PageSize = None,
    sort: Annotated[
        options.LibrarySort,
        Option("--sort", help="The order of the table, the largest first; start adds the time at start, as -v does."),
    ] = options.LibrarySort.LOAD,
    top: Annotated[int, Option("--top", min=0, help="Rows of the table; 0 is all.", metavar="N")] = 0,
    fail_on: options.FailOn = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Show what each object of a program costs, and who uses it.

    \b
    footprint libraries /usr/bin/gdb
    footprint libraries --why libz.so.1 /usr/bin/gdb
    footprint libraries --sort retained --top 10 /usr/bin/gdb
    footprint libraries --sort start -n 100000 --per day /usr/bin/gdb
    footprint libraries --format dot /usr/bin/gdb | dot -Tsvg -o gdb.svg
    """
    from footprint.text.units import parse_bytes

    def document(libraries: "Libraries") -> "Document":
        if why is not None:
            return text.chains_document(libraries, why)
        if tree:
            return text.tree_document(libraries, depth=depth, has_whole_names=output.has_whole_names)
        return text.libraries_document(libraries, sort=sort, top=top, has_whole_names=output.has_whole_names)

    answer: Answer[Libraries] = Answer(
        "libraries",
        "libraries",
        document=document,
        members=call.libraries_members,
        issues=_issues,
        figures=call.libraries_metrics,
        graph=call.libraries_graph,
        has_page=True,
        page_data=call.libraries_page,
    )
    check_formats(answer, output)
    conditions = conditions_of(fail_on or (), "libraries", "graph")
    page_bytes = None if page_size is None else parse_bytes(page_size)
    if tree and why is not None:
        raise UsageError("choose one of --tree and --why")
    if depth is not None and not tree:
        raise UsageError("--depth is for --tree")
    if (tree or why is not None) and (top or sort is not options.LibrarySort.LOAD):
        raise UsageError("--sort and --top are for the table")
    if why is not None and part_name(output.format) != "document":
        raise UsageError("--why is for the text; the JSON has every relation")
    count, starts_a_day = options.count_and_starts(count, per)
    # The costs of a start take as long as a sixth of the rest: where they are shown, or judged.
    is_brief = part_name(output.format) == "document" and not (output.has_whole_names or output.html or conditions)
    has_start = sort is options.LibrarySort.START or per is not None or not is_brief
    result = call.libraries(
        target, count=count, root=root, page_bytes=page_bytes, has_start=has_start, starts_a_day=starts_a_day
    )
    return write_judged(answer, result, result.findings, conditions, f"libraries {result.target}", output, result.notes)


def _issues(libraries: "Libraries") -> "Issues":
    from footprint.findings.registry import Fact, rules_reading
    from footprint.formats.issues import issues_of_findings

    binary = libraries.graph.objects[0].path
    rules = [rule.name for rule in rules_reading({Fact.GRAPH})]
    return issues_of_findings(libraries.findings, libraries.target, count=libraries.count, binary=binary, rules=rules)
