"""The options that mean the same with every verb."""

import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

from footprint.errors import UsageError
from footprint.members import NamedTuple
from footprint.model.projection import Model
from footprint.verbs.commands import Argument, Option, Parameter, parameters_of

if TYPE_CHECKING:
    from footprint.elf.notes import DebugSearch
    from footprint.sources.target import ProcessChoice


class Format(StrEnum):
    """What an answer is written as."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"
    OPENMETRICS = "openmetrics"
    GITLAB_METRICS = "gitlab-metrics"
    FOLDED = "folded"
    SPEEDSCOPE = "speedscope"
    PPROF = "pprof"
    DOT = "dot"
    PERFETTO = "perfetto"
    HTML = "html"


# The part of an answer that each format is written from, where it is not one that every answer has.
PARTS: Final = {
    Format.SARIF: "issues",
    Format.JUNIT: "issues",
    Format.GITHUB: "issues",
    Format.GITLAB: "issues",
    Format.OPENMETRICS: "figures",
    Format.GITLAB_METRICS: "figures",
    Format.FOLDED: "stacks",
    Format.SPEEDSCOPE: "stacks",
    Format.PPROF: "stacks",
    Format.DOT: "graph",
    Format.PERFETTO: "trace",
    Format.HTML: "report",
}


class Color(StrEnum):
    """When text is drawn with colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


# What `--by` has of source files.
OF_SOURCES: Final = frozenset({"file", "dir", "component"})


class By(StrEnum):
    """What the ledger is grouped by."""

    OWNER = "owner"
    KIND = "kind"
    SECTION = "section"
    SYMBOL = "symbol"
    FILE = "file"
    DIR = "dir"
    COMPONENT = "component"
    MAPPING = "mapping"


class SymbolsBy(StrEnum):
    """What variables are added up by."""

    SYMBOL = "symbol"
    FILE = "file"
    DIR = "dir"
    COMPONENT = "component"
    SECTION = "section"


class LibrarySort(StrEnum):
    """The order of the objects of a process."""

    LOAD = "load"
    RETAINED = "retained"
    FLOOR = "floor"
    START = "start"
    USERS = "users"
    NAME = "name"


class Period(StrEnum):
    """The time in which so many starts are made."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


_PERIODS_A_DAY: Final = {Period.SECOND: 86_400, Period.MINUTE: 1_440, Period.HOUR: 24, Period.DAY: 1}


def count_and_starts(count: int, per: Period | None) -> tuple[int, int | None]:
    """Return the number of processes to project to, and of starts a day: with `--per`, `-n` is that of starts."""
    return (count, None) if per is None else (1, count * _PERIODS_A_DAY[per])


class OutputOptions(NamedTuple):
    """In which format an answer is written, and where.

    Attributes:
        format: The format.
        file: The file, or `-`.
        table: Which table, if one was asked for.
        color: When text is drawn with colours.
        is_quiet: Whether text is the last line only.
        html: The file of the HTML report; `-` for standard output, instead of the answer; None for no report.
        has_whole_names: Whether names and paths are shown whole.
        is_strict: Whether notes that the answer is partial change the exit code.
    """

    format: Format
    file: str
    table: str | None
    color: Color
    is_quiet: bool
    html: str | None
    has_whole_names: bool
    is_strict: bool

    @property
    def has_report(self) -> bool:
        """Return whether an HTML report is written: it shows more than the other formats."""
        return self.html is not None or self.format is Format.HTML

    @property
    def has_page_maps(self) -> bool:
        """Return whether pages of objects and mappings are wanted: the report shows them, JSON keeps them for later."""
        return self.has_report or self.format is Format.JSON

    @property
    def is_saved(self) -> bool:
        """Return whether the answer is kept in a file that verbs read again."""
        return self.format is Format.JSON and self.file != "-"


Targets = Annotated[
    list[str] | None,
    Argument(
        help="A PID, a program, a capture, or a text of maps, smaps or pmap; - is standard input. Or several PIDs."
    ),
]
Count = Annotated[
    int, Option("-n", "--count", min=1, max=10**12, help="How many processes to project to.", metavar="N")
]
CountOrSaved = Annotated[
    int | None,
    Option(
        "-n",
        "--count",
        min=1,
        max=10**12,
        help="Project to N processes or groups; else to one, or to as many as a saved audit was saved with.",
        metavar="N",
    ),
]
OptionalCount = Annotated[
    int | None, Option("-n", "--count", min=1, max=10**12, help="How many processes.", metavar="N")
]
Memory = Annotated[
    str | None, Option("--memory", help="Show how many processes fit into this, such as 32GiB.", metavar="SIZE")
]
ModelOption = Annotated[
    Model | None,
    Option("--model", help="N started copies, N forked workers of one parent, or N more threads; else what is seen."),
]
Root = Annotated[
    str | None,
    Option(
        "--root", help="Where the files of the other machine are: of captures, saved texts, programs.", metavar="DIR"
    ),
]
LinkMap = Annotated[
    str | None,
    Option(
        "--map", help="The map that GNU ld wrote of the program now (-Wl,-Map=FILE): where it links.", metavar="FILE"
    ),
]
PageSize = Annotated[
    str | None, Option("--page-size", help="Predict for pages of this size, such as 16KiB.", metavar="SIZE")
]
Words = Annotated[list[str], Argument(help="The program and its arguments, after --.", metavar="CMD...")]
When = Annotated[str, Option("--when", help="exit, settled, or a time such as 2.5s.")]
WhenOutput = Annotated[str | None, Option("--when-output", help="When a line of its output matches.", metavar="REGEX")]
Timeout = Annotated[float, Option("--timeout", help="The longest time to wait for that moment.", metavar="SECONDS")]
Starts = Annotated[int, Option("--starts", min=1, max=1000, help="Start it K times.", metavar="K")]
StartCost = Annotated[
    bool, Option("--start-cost", help="Measure what each start costs up to the entry point and main, too.")
]
Per = Annotated[
    Period | None,
    Option("--per", help="-n are starts, so many in this time: show the processor hours that they take each day."),
]
ExpectExit = Annotated[int, Option("--expect-exit", help="The exit code of success.", metavar="CODE")]
Accept = Annotated[
    list[str] | None,
    Option(
        "--accept",
        help="Pass what a watch cannot tell: too-short, lower-bound, no-audit, cut, not-watched; repeatable.",
        metavar="GAP",
    ),
]
Allow = Annotated[
    list[str] | None,
    Option(
        "--allow", help="Accept this failure: signal, exit, moment, child or memory; repeatable.", metavar="FAILURE"
    ),
]
AllocFns = Annotated[
    list[str] | None,
    Option(
        "--alloc-fn",
        help="A function that only passes memory on, or the beginning of names (pool_*); repeatable.",
        metavar="NAME",
    ),
]
Heap = Annotated[
    str | None,
    Option("--heap", help="An allocator profile of the same program, to split its heap by.", metavar="FILE"),
]
HeapAt = Annotated[
    list[str] | None,
    Option(
        "--heap-at", help="The moment of the profile: a snapshot, a time, peak, or end (default).", metavar="MOMENT"
    ),
]
Binaries = Annotated[
    list[str] | None,
    Option(
        "--binary",
        help="A program or library of the process, to find the objects of functions; repeatable.",
        metavar="FILE",
    ),
]
FailOn = Annotated[
    list[str] | None,
    Option(
        "--fail-on",
        help="Exit with 1 if a finding of this rule is found, such as unused-library:high; repeatable.",
        metavar="RULE[:CONFIDENCE]",
    ),
]
PrefixMap = Annotated[
    list[str] | None,
    Option("--prefix-map", help="Replace the beginning of source paths; repeatable.", metavar="OLD=NEW"),
]
Components = Annotated[
    str | None,
    Option("--components", help="A TOML file that maps folders to components.", metavar="FILE"),
]
Top = Annotated[int, Option("--top", min=0, help="Rows a table; 0 is all.", metavar="N")]
TopOfAll = Annotated[
    int | None, Option("--top", min=0, help="Rows a table, and every section; 0 is all rows.", metavar="N")
]
Strict = Annotated[bool, Option("--strict", help="Exit with 4 if notes say that the answer is partial.")]
Pid = Annotated[int | None, Option("--pid", help="Which process of a text or capture that holds several.")]


def one_moment(given: list[str] | None) -> str | None:
    """Return the moment of a profile; None where none is given.

    Raises:
        UsageError: Where several are given.
    """
    if given and len(given) > 1:
        raise UsageError(f"choose one moment of a profile: {' or '.join(given)}")
    return given[0] if given else None


def debug_search(
    debug_dir: Annotated[
        list[str] | None,
        Option(
            "--debug-dir", help="Another folder with debug files, besides /usr/lib/debug; repeatable.", metavar="DIR"
        ),
    ] = None,
    debuginfod: Annotated[
        bool, Option("--debuginfod", help="Ask the servers of DEBUGINFOD_URLS for missing debug files.")
    ] = False,
    no_debug_files: Annotated[
        bool, Option("--no-debug-files", help="Show only the names that are in the files themselves.")
    ] = False,
) -> "DebugSearch | None":
    """Return the search that the options ask for; None if it is switched off.

    Raises:
        UsageError: Where they contradict each other, or a folder is none.
    """
    if no_debug_files:
        if debug_dir or debuginfod:
            raise UsageError("--no-debug-files goes with neither --debug-dir nor --debuginfod")
        return None
    from footprint.elf.notes import DebugSearch

    search = DebugSearch(tuple(debug_dir or ()), debuginfod)
    if search.folders:
        search.check()
    return search


_ENDINGS: Final = {
    ".sarif.json": Format.SARIF,
    ".speedscope.json": Format.SPEEDSCOPE,
    ".perfetto.json": Format.PERFETTO,
    ".json": Format.JSON,
    ".md": Format.MARKDOWN,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".jsonl": Format.JSONL,
    ".sarif": Format.SARIF,
    ".xml": Format.JUNIT,
    ".prom": Format.OPENMETRICS,
    ".folded": Format.FOLDED,
    ".pb.gz": Format.PPROF,
    ".dot": Format.DOT,
    ".gv": Format.DOT,
    ".html": Format.HTML,
}


def _output_options(
    html: Annotated[
        str | None,
        Option("--html", help="Write the HTML report as well, one file for any browser.", metavar="FILE"),
    ] = None,
    output: Annotated[
        str, Option("-o", "--output", help="Where to write; - is standard output.", metavar="FILE")
    ] = "-",
    format_: Annotated[
        Format | None,
        Option("--format", help="The format: {}; else the ending of the output file decides.", metavar="NAME"),
    ] = None,
    table: Annotated[
        str | None,
        Option("--table", help="The table of the answer that csv, tsv and jsonl write.", metavar="NAME"),
    ] = None,
    json: Annotated[bool, Option("--json", help="Short for --format json.")] = False,
    color: Annotated[Color, Option("--color", help="Colours and tables drawn for a terminal.")] = Color.AUTO,
    quiet: Annotated[bool, Option("-q", "--quiet", help="Only the last line, which has the main result.")] = False,
    verbose: Annotated[bool, Option("-v", "--verbose", help="Whole paths and linker names.")] = False,
    strict: Strict = False,
) -> OutputOptions:
    """Decide how an answer is written: as the options say, else as the ending of the file says.

    Raises:
        UsageError: If two things are asked for at once, or the format cannot be written there.
    """
    if json and format_ not in {None, Format.JSON}:
        raise UsageError(f"--json and --format {format_} contradict one another")
    if json:
        format_ = Format.JSON
    if format_ is None:
        format_ = next((form for ending, form in _ENDINGS.items() if output.endswith(ending)), Format.TEXT)
    if table is not None and format_ not in {Format.CSV, Format.TSV, Format.JSONL}:
        raise UsageError(f"--table chooses among the tables of csv, tsv and jsonl; {format_} has no tables")
    if format_ is Format.PPROF and output == "-" and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("pprof cannot be printed: name a file with -o, such as profile.pb.gz")
    if html is not None and "-" not in {html, output} and os.path.realpath(html) == os.path.realpath(output):
        raise UsageError(f"{output} cannot hold both the report and the answer: name two files")
    return OutputOptions(format_, output, table, color, quiet, html, verbose, strict)


def _process_choice(
    tree: Annotated[int | None, Option("--tree", help="A PID: with all that descend from it.")] = None,
    name: Annotated[str | None, Option("--name", help="All processes of this name.")] = None,
    cgroup: Annotated[
        str | None, Option("--cgroup", help="All processes of a control group, by its path.", metavar="PATH")
    ] = None,
    unit: Annotated[str | None, Option("--unit", help="All processes of a systemd unit.", metavar="NAME")] = None,
    container: Annotated[
        str | None,
        Option("--container", help="All processes of a container: its ID, 12 digits at least.", metavar="ID"),
    ] = None,
) -> "ProcessChoice":
    """Return which processes the options choose."""
    from footprint.sources.target import ProcessChoice  # only for the verbs that have these options

    return ProcessChoice(tree, name, cgroup, unit, container)


_Command = Callable[..., Any]
_SHARED: Final = {
    parameter.name: parameter
    for make in (_process_choice, debug_search, _output_options)
    for parameter in parameters_of(make)
}


def shared_options(
    output: str = "output format_ table json color quiet verbose strict", parts: str = ""
) -> Callable[[_Command], _Command]:
    """Put options that many verbs share in the place of a few parameters of a command.

    The parameter `output` becomes the options for output, which the command gets as one `OutputOptions`; the parameter
    `debug`, where there is one, those for debug files, which it gets as one `DebugSearch`; the parameter `choice` those
    that choose processes, which it gets as one `ProcessChoice`.

    Args:
        output: The output options of the verb, in the order of its help; parameters of `_output_options`.
        parts: The parts of its answers, besides those that every answer has: they decide on its formats.
    """
    formats = [form for form in Format if form not in PARTS or PARTS[form] in parts.split()]
    makers: dict[str, tuple[Callable[..., Any], list[str]]] = {
        "choice": (_process_choice, ["tree", "name", "cgroup", "unit", "container"]),
        "debug": (debug_search, ["debug_dir", "debuginfod", "no_debug_files"]),
        "output": (_output_options, output.split()),
    }

    def changed(command: _Command) -> _Command:
        parameters = []
        used = {}
        for parameter in parameters_of(command):
            if parameter.name in makers:
                used[parameter.name] = makers[parameter.name]
                parameters += [
                    _SHARED[name] if name != "format_" else _format_option(formats)
                    for name in makers[parameter.name][1]
                ]
            else:
                parameters.append(parameter)

        @wraps(command)
        def called(**given: Any) -> Any:  # noqa: ANN401 # as the command
            for parameter, (make, names) in used.items():
                given[parameter] = make(**{name: given.pop(name) for name in names if name in given})
            return command(**given)

        called.parameters = parameters  # type: ignore[attr-defined]
        called.formats = formats  # type: ignore[attr-defined] # for the completions
        return called

    return changed


def _format_option(formats: Sequence[Format]) -> Parameter:
    """Return the option of the format, with the formats of one verb in its help."""
    shared = _SHARED["format_"]
    option = Option(*shared.declared.names, help=shared.declared.help.format(", ".join(formats)), metavar="NAME")
    return Parameter(shared.name, shared.type, option, shared.default)
