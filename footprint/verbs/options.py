"""The options that mean the same with every verb."""

from enum import StrEnum
from typing import Annotated

import typer

from footprint.model.projection import Model

__all__ = (
    "AllocFns",
    "Binaries",
    "By",
    "Color",
    "ColorOption",
    "Count",
    "DebugDirs",
    "Debuginfod",
    "Format",
    "FormatOption",
    "Heap",
    "HeapAt",
    "HeapBy",
    "Html",
    "Json",
    "Memory",
    "ModelOption",
    "NoDebugFiles",
    "OptionalCount",
    "Output",
    "PageSize",
    "Pid",
    "Quiet",
    "Root",
    "Sort",
    "Starts",
    "Strict",
    "SymbolsBy",
    "Table",
    "Target",
    "Targets",
    "Timeout",
    "Top",
    "VariableKind",
    "Verbose",
    "When",
    "WhenOutput",
    "Words",
)


class Format(StrEnum):
    """What an answer is written as."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"
    TSV = "tsv"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"
    OPENMETRICS = "openmetrics"
    GITLAB_METRICS = "gitlab-metrics"
    FOLDED = "folded"
    SPEEDSCOPE = "speedscope"
    PPROF = "pprof"
    HTML = "html"


class Color(StrEnum):
    """When text is drawn with colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class By(StrEnum):
    """What the ledger is grouped by."""

    OWNER = "owner"
    KIND = "kind"
    SECTION = "section"
    SYMBOL = "symbol"


class SymbolsBy(StrEnum):
    """What variables are added up by."""

    SYMBOL = "symbol"
    FILE = "file"
    SECTION = "section"


class HeapBy(StrEnum):
    """What a heap profile is added up by."""

    OWNER = "owner"
    FUNCTION = "function"
    TREE = "tree"
    CALLERS = "callers"


class VariableKind(StrEnum):
    """The kinds of memory that variables lie in; `footprint.elf.SectionKind` explains them."""

    DATA = "data"
    BSS = "bss"
    RELRO = "relro"
    TLS = "tls"


class Sort(StrEnum):
    """The order of variables."""

    SIZE = "size"
    ADDRESS = "address"
    NAME = "name"


Target = Annotated[str, typer.Argument(help="A PID, a capture, or a text of maps, smaps or pmap; - is standard input.")]
Targets = Annotated[
    list[str] | None,
    typer.Argument(
        help="A PID, a program, a capture, or a text of maps, smaps or pmap; - is standard input. Or several PIDs."
    ),
]
Count = Annotated[int, typer.Option("-n", "--count", min=1, max=10**12, help="How many processes to project to.")]
OptionalCount = Annotated[int | None, typer.Option("-n", "--count", min=1, max=10**12, help="How many processes.")]
Memory = Annotated[
    str | None, typer.Option("--memory", help="Show how many processes fit into this, such as 32GiB.", metavar="SIZE")
]
ModelOption = Annotated[
    Model, typer.Option("--model", help="N started copies, N forked workers of one parent, or N more threads.")
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root", help="Where the files of the other machine are: of captures, saved texts, programs.", metavar="DIR"
    ),
]
PageSize = Annotated[
    str | None, typer.Option("--page-size", help="Predict for pages of this size, such as 16KiB.", metavar="SIZE")
]
Words = Annotated[list[str], typer.Argument(help="The program and its arguments, after --.", metavar="CMD...")]
When = Annotated[str, typer.Option("--when", help="exit, settled, or a time such as 2.5s.")]
WhenOutput = Annotated[
    str | None, typer.Option("--when-output", help="When a line of its output matches.", metavar="REGEX")
]
Timeout = Annotated[
    float, typer.Option("--timeout", help="The longest time to wait for that moment.", metavar="SECONDS")
]
Starts = Annotated[int, typer.Option("--starts", min=1, max=1000, help="Start it K times.", metavar="K")]
DebugDirs = Annotated[
    list[str] | None,
    typer.Option(
        "--debug-dir", help="Another folder with debug files, besides /usr/lib/debug; repeatable.", metavar="DIR"
    ),
]
Debuginfod = Annotated[
    bool, typer.Option("--debuginfod", help="Ask the servers of DEBUGINFOD_URLS for missing debug files.")
]
NoDebugFiles = Annotated[
    bool, typer.Option("--no-debug-files", help="Show only the names that are in the files themselves.")
]
AllocFns = Annotated[
    list[str] | None,
    typer.Option(
        "--alloc-fn",
        help="A function that only passes memory on, or the beginning of names (pool_*); repeatable.",
        metavar="NAME",
    ),
]
Heap = Annotated[
    str | None,
    typer.Option("--heap", help="An allocator profile of the same program, to split its heap by.", metavar="FILE"),
]
HeapAt = Annotated[
    str | None,
    typer.Option(
        "--heap-at", help="The moment of the profile: a snapshot, a time, peak, or end (default).", metavar="MOMENT"
    ),
]
Binaries = Annotated[
    list[str] | None,
    typer.Option(
        "--binary",
        help="A program or library of the process, to find the objects of functions; repeatable.",
        metavar="FILE",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Html = Annotated[
    str | None,
    typer.Option("--html", help="Write the HTML report as well, one file for any browser.", metavar="FILE"),
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="The format of the answer; else the ending of the output file decides."),
]
Table = Annotated[
    str | None, typer.Option("--table", help="The table of the answer that csv and tsv write.", metavar="NAME")
]
Output = Annotated[str, typer.Option("-o", "--output", help="Where to write; - is standard output.", metavar="FILE")]
Top = Annotated[int, typer.Option("--top", min=0, help="Rows a table; 0 is all.")]
ColorOption = Annotated[Color, typer.Option("--color", help="Colours and tables drawn for a terminal.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the last line, which has the main result.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Whole paths and linker names.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if notes say that the answer is partial.")]
Pid = Annotated[int | None, typer.Option("--pid", help="Which process of a text or capture that holds several.")]
