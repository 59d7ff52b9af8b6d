"""`footprint symbols`: what the writable memory of ELF files holds."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import LazyModule, lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.formats import stacks
    from footprint.sources.debug_files import DebugSearch
    from footprint.verbs import source_grouping as grouping
    from footprint.verbs.symbols import call, json, metrics, selections, text
else:
    call, json, metrics, selections, text = lazy_modules("footprint.verbs.symbols", "call json metrics selections text")
    stacks = LazyModule("footprint.formats.stacks")
    grouping = LazyModule("footprint.verbs.source_grouping")

__all__ = ("symbols",)

ORDER = 40


@options.shared_options("html output format_ table json color quiet verbose strict", "figures stacks report")
def symbols(
    files: Annotated[list[str], typer.Argument(help="Programs, libraries, objects (.o) or archives (.a).")],
    map_: Annotated[
        str | None,
        typer.Option("--map", help="The map of the link (-Wl,-Map=FILE): bfd, gold, lld, mold.", metavar="FILE"),
    ] = None,
    by: Annotated[options.SymbolsBy, typer.Option("--by", help="The grouping of the sums.")] = options.SymbolsBy.SYMBOL,
    kind: Annotated[
        list[options.VariableKind] | None, typer.Option("--kind", help="Only such memory; repeatable.")
    ] = None,
    is_local: Annotated[bool, typer.Option("--local", help="Only variables that one source file knows.")] = False,
    is_global: Annotated[bool, typer.Option("--global", help="Only the others.")] = False,
    min_size: Annotated[
        str | None,
        typer.Option("--min-size", help="Only variables of this size or more, such as 4KiB.", metavar="SIZE"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Only variables whose name matches, mangled or not.", metavar="REGEX")
    ] = None,
    source: Annotated[
        bool,
        typer.Option("--source", help="Show the declaration and the type of each variable, from debug information."),
    ] = False,
    sort: Annotated[options.Sort | None, typer.Option("--sort", help="The order of the variables; size.")] = None,
    top: options.Top = 20,
    prefix_map: options.PrefixMap = None,
    components: options.Components = None,
    *,
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """List the variables of ELF files, largest first.

    Those in writable and thread-local memory, with the sums of each section and what no symbol explains.

    \b
    footprint symbols /usr/bin/python3
    footprint symbols --top 0 --json libfoo.so
    footprint symbols --map foo.map --by file foo
    footprint symbols --by dir --prefix-map /build/foo= foo
    footprint symbols --kind bss --min-size 1MiB libfoo.so
    footprint symbols --source /lib/x86_64-linux-gnu/libc.so.6
    """
    order = selections.sort_order(by, sort)
    groups = grouping.source_groups(by.value, prefix_map or (), components)

    answer: Answer[call.FileSymbols] = Answer(
        "symbols",
        "symbols",
        document=lambda found: text.symbols_document(
            found, by=by, order=order, top=top, has_whole_names=output.has_whole_names, groups=groups
        ),
        members=lambda found, version: json.symbols_members(found.origins, found.notes, version, found.sources, groups),
        figures=lambda found: metrics.symbols_metrics(found.origins),
        stacks=lambda found: stacks.symbol_stacks(found.files),
        has_page=True,
    )
    check_formats(answer, output)
    wanted = selections.selection(kind, min_size, name, is_local=is_local, is_global=is_global)
    found = call.symbols(*files, map=map_, selection=wanted, debug=debug, source=source, by_source=groups is not None)
    return write(answer, found, f"symbols {' '.join(files)}", output, found.notes)
