"""`footprint heap`: what allocator profiles say, by object and function."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from footprint.errors import UsageError
from footprint.verbs import options
from footprint.verbs.commands import Argument, Option
from footprint.verbs.fail_on import conditions_of, write_judged
from footprint.verbs.output import Answer, LazyModule, check_formats, lazy_modules

if TYPE_CHECKING:
    from footprint.attribution.heap_usage import HeapUsage
    from footprint.elf.notes import DebugSearch
    from footprint.formats import stacks
    from footprint.formats.issues import Issues
    from footprint.verbs.heap import call, html, json, text
else:
    call, html, json, text = lazy_modules("footprint.verbs.heap", "call html json text")
    stacks = LazyModule("footprint.formats.stacks")


ORDER = 80


class HeapBy(StrEnum):
    """What a heap profile is added up by."""

    OWNER = "owner"
    FUNCTION = "function"
    TREE = "tree"
    CALLERS = "callers"
    GROWTH = "growth"


class HeapSort(StrEnum):
    """The order of what a heap profile counts over the run; `footprint.attribution.heap_totals.ORDERS` explains it."""

    ALLOCATED = "allocated"
    BLOCKS = "blocks"
    TEMPORARY = "temporary"
    LIFETIME = "lifetime"
    READ = "read"
    WRITTEN = "written"
    LEAKED = "leaked"


@options.shared_options("html output format_ table json color quiet verbose strict", "issues figures stacks report")
def heap(
    files: Annotated[
        list[str],
        Argument(help="Profiles of massif, DHAT, heaptrack, pprof, Go, jemalloc and others.", metavar="FILE..."),
    ],
    at: Annotated[
        list[str] | None,
        Option("--at", help="The number of a snapshot, a time such as 1.5s, end, or peak.", metavar="MOMENT"),
    ] = None,
    by: Annotated[HeapBy, Option("--by", help="The grouping of the sums.")] = HeapBy.FUNCTION,
    sort: Annotated[
        HeapSort | None, Option("--sort", help="The order of the totals over the run, largest first.")
    ] = None,
    threshold: Annotated[
        float,
        Option("--threshold", min=0, max=100, help="Leave smaller calls out of a tree.", metavar="PERCENT"),
    ] = 1.0,
    allocators: options.AllocFns = None,
    has_allocators: Annotated[
        bool,
        Option("--allocators", help="List the functions that only pass memory on, and the rules that say so."),
    ] = False,
    binaries: options.Binaries = None,
    root: options.Root = None,
    top: options.Top = 20,
    fail_on: options.FailOn = None,
    *,
    debug: "DebugSearch | None",
    output: options.OutputOptions,
) -> int:
    """Show how much heap a program had, and which functions asked.

    Several profiles, or moments of one, are compared with the first.

    \b
    footprint heap massif.out
    footprint heap massif.out --at 63 --by callers
    footprint heap dhat.out --binary ./program
    footprint heap before.out after.out
    footprint heap massif.out@5 massif.out@peak
    footprint heap massif.out --html report.html
    """
    is_one = len(files) == 1
    binary = (binaries or [""])[0]
    view = text.HeapView(by.value, sort and sort.value, has_allocators, threshold, top, is_whole=output.has_whole_names)
    answer = comparison_answer("heap of several", view)
    if is_one:
        answer = answer._replace(
            verb="heap",
            issues=lambda profiles: _issues(profiles, binary),
            stacks=lambda profiles: stacks.heap_stacks(profiles.files[0]),
        )
    check_formats(answer, output)
    conditions = conditions_of(fail_on or (), "heap", "heap")
    if conditions and not is_one:
        raise UsageError("--fail-on is for one profile: several are compared, and not searched")
    # The bounds of the option let "nan" pass.
    if not 0 <= threshold <= 100:
        raise UsageError("--threshold is a number of percent")
    if not is_one and by not in {HeapBy.OWNER, HeapBy.FUNCTION}:
        raise UsageError(f"--by {by.value} shows one profile: compare several by owner or function")
    read = call.heap_profile(
        *files,
        at=options.one_moment(at),
        allocators=allocators or (),
        binaries=binaries or (),
        root=root,
        debug=debug,
        has_all_trees=output.has_report or by is HeapBy.GROWTH,
    )
    for usage in read.files if sort is not None else ():
        call.check_order(usage, view.sort or "")
    return write_judged(answer, read, read.findings, conditions, f"heap {' '.join(files)}", output, read.notes)


def comparison_answer(verb: str, view: "text.HeapView") -> "Answer[call.HeapProfiles]":
    """Return the parts of an answer about several heap profiles, which are compared with the first."""
    return Answer(
        verb,
        # The table of csv, tsv and jsonl.
        "totals" if view.sort else "heap",
        document=lambda profiles: text.heap_document(profiles.files, profiles.notes, profiles.findings, view),
        members=lambda profiles, version: json.heap_members(
            _by_file(profiles),
            profiles.notes,
            version,
            by=view.by,
            sort=view.sort,
            has_allocators=view.has_allocators,
            findings=profiles.findings,
        ),
        figures=lambda read: json.heap_metrics(_by_file(read)),
        report=lambda profiles, *about: html.heap_html(
            _by_file(profiles), profiles.notes, about[0], profiles.findings, *about[1:]
        ),
    )


def _by_file(profiles: "call.HeapProfiles") -> "tuple[HeapUsage, ...]":
    """Return the profiles for tables, which name them by file: one that is compared with itself is there once."""
    return tuple({file.file: file for file in profiles.files}.values())


def _issues(profiles: "call.HeapProfiles", binary: str) -> "Issues":
    from footprint.findings.registry import Fact, rules_reading
    from footprint.formats.issues import issues_of_findings
    from footprint.heap.profile import Counted

    usage = profiles.files[0]
    if usage.profile.counted is not Counted.HEAP:
        raise UsageError(f"{usage.file} has no memory in use: nothing can be found in it")
    rules = [rule.name for rule in rules_reading({Fact.HEAP})]
    return issues_of_findings(profiles.findings, usage.file, binary=binary, rules=rules)
