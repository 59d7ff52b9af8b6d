"""`footprint symbols`: what the writable memory of ELF files holds."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from footprint.elf.contents import SectionKind
from footprint.elf.selection import Selection, name_pattern
from footprint.errors import UsageError
from footprint.text.units import parse_bytes
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.options import SymbolsBy
from footprint.verbs.output import Answer, LazyModule, check_formats, lazy_modules, write

if TYPE_CHECKING:
    from footprint.elf.notes import DebugSearch
    from footprint.formats import stacks
    from footprint.verbs import source_grouping as grouping
    from footprint.verbs.symbols import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.symbols", "call json text")
    stacks = LazyModule("footprint.formats.stacks")
    grouping = LazyModule("footprint.verbs.source_grouping")


ORDER = 40


class Sort(StrEnum):
    """The order of variables."""

    SIZE = "size"
    ADDRESS = "address"
    NAME = "name"


@options.shared_options("html output format_ table json color quiet verbose strict", "figures stacks report")
def symbols(
    files: Annotated[list[str], Argument(help="Programs, libraries, objects (.o) or archives (.a).")],
    map_: Annotated[
        str | None,
        Option("--map", help="The map of the link (-Wl,-Map=FILE): bfd, gold, lld, mold.", metavar="FILE"),
    ] = None,
    by: Annotated[options.SymbolsBy, Option("--by", help="The grouping of the sums.")] = options.SymbolsBy.SYMBOL,
    kind: Annotated[list[SectionKind] | None, Option("--kind", help="Only such memory; repeatable.")] = None,
    is_local: Annotated[bool, Option("--local", help="Only variables that one source file knows.")] = False,
    is_global: Annotated[bool, Option("--global", help="Only the others.")] = False,
    min_size: Annotated[
        str | None,
        Option("--min-size", help="Only variables of this size or more, such as 4KiB.", metavar="SIZE"),
    ] = None,
    name: Annotated[
        str | None, Option("--name", help="Only variables whose name matches, mangled or not.", metavar="REGEX")
    ] = None,
    source: Annotated[
        bool,
        Option("--source", help="Show the declaration and the type of each variable, from debug information."),
    ] = False,
    sort: Annotated[Sort | None, Option("--sort", help="The order of the variables; size.")] = None,
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
    order = sort_order(by, sort)
    groups = grouping.source_groups(by.value, prefix_map or (), components)

    answer: Answer[call.FileSymbols] = Answer(
        "symbols",
        "symbols",
        document=lambda result: text.symbols_document(
            result, by=by, order=order, top=top, has_whole_names=output.has_whole_names, groups=groups
        ),
        members=lambda read, version: json.symbols_members(read.origins, read.notes, version, read.sources, groups),
        figures=lambda result: json.symbols_metrics(result.origins),
        stacks=lambda result: stacks.symbol_stacks(result.files),
        has_page=True,
    )
    check_formats(answer, output)
    wanted = selection(kind, min_size, name, is_local=is_local, is_global=is_global)
    result = call.symbols(*files, map=map_, selection=wanted, debug=debug, source=source, by_source=groups is not None)
    return write(answer, result, f"symbols {' '.join(files)}", output, result.notes)


def selection(
    kinds: Sequence[SectionKind] | None, min_size: str | None, name: str | None, *, is_local: bool, is_global: bool
) -> Selection:
    """Return the variables that the options ask for.

    Raises:
        UsageError: If a size or a regular expression is not valid, or if two options contradict each other.
    """
    if is_local and is_global:
        raise UsageError("choose one of --local and --global, or neither for all variables")
    return Selection(
        frozenset(kinds or SectionKind),
        is_local if is_local or is_global else None,
        0 if min_size is None else parse_bytes(min_size),
        None if name is None else name_pattern(name),
    )


def sort_order(by: SymbolsBy, sort: Sort | None) -> Sort:
    """Return the order of the variables.

    Raises:
        UsageError: If an order is given, but no variables are listed.
    """
    if sort is not None and by is not SymbolsBy.SYMBOL:
        raise UsageError(f"--sort orders variables: the sums of --by {by.value} are always by size")
    return sort or Sort.SIZE
