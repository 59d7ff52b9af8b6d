"""`footprint libraries`: the objects of a program or process."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, part_name

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.verbs.libraries import call, graph, json, metrics, text
    from footprint.verbs.libraries.call import Libraries
else:
    call, graph, json, metrics, text = lazy_modules("footprint.verbs.libraries", "call graph json metrics text")

__all__ = ("libraries",)

ORDER = 50


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures graph report")
def libraries(
    target: Annotated[str, typer.Argument(help="A program or library, which is not run, or a PID.")],
    tree: Annotated[bool, typer.Option("--tree", help="Who brings whom in, instead of the load order.")] = False,
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="How many levels of the tree; all by default.", metavar="N")
    ] = None,
    why: Annotated[str | None, typer.Option("--why", help="By which chains this one comes in.", metavar="LIB")] = None,
    count: options.Count = 1,
    root: Annotated[
        str | None, typer.Option("--root", help="The directory that the program takes for /.", metavar="DIR")
    ] = None,
    page_size: options.PageSize = None,
    sort: Annotated[
        options.LibrarySort, typer.Option("--sort", help="The order of the table, the largest first.")
    ] = options.LibrarySort.LOAD,
    top: Annotated[int, typer.Option("--top", min=0, help="Rows of the table; 0 is all.", metavar="N")] = 0,
    fail_on: options.FailOn = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Show what each object of a program costs, and who uses it.

    \b
    footprint libraries /usr/bin/gdb
    footprint libraries --why libz.so.1 /usr/bin/gdb
    footprint libraries --sort retained --top 10 /usr/bin/gdb
    footprint libraries --format dot /usr/bin/gdb | dot -Tsvg -o gdb.svg
    """
    from footprint.units import parse_bytes

    def document(found: "Libraries") -> "Document":
        if why is not None:
            return text.chains_document(found, why)
        if tree:
            return text.tree_document(found, depth=depth, has_whole_names=output.has_whole_names)
        return text.libraries_document(found, sort=sort, top=top, has_whole_names=output.has_whole_names)

    answer: Answer[Libraries] = Answer(
        "libraries",
        "libraries",
        document=document,
        members=json.libraries_members,
        issues=_issues,
        figures=metrics.libraries_metrics,
        graph=graph.libraries_graph,
        has_page=True,
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
    found = call.libraries(target, count=count, root=root, page_bytes=page_bytes)
    return write_judged(answer, found, found.findings, conditions, f"libraries {found.target}", output, found.notes)


def _issues(found: "Libraries") -> "Issues":
    from footprint.findings.registry import Fact, rules_reading
    from footprint.formats.issues import issues_of_findings

    binary = found.graph.objects[0].path
    rules = [one.name for one in rules_reading({Fact.GRAPH})]
    return issues_of_findings(found.findings, found.target, count=found.count, binary=binary, rules=rules)
