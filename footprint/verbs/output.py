"""Writing an answer: to standard output or a file, as text for people or in a format for another program."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from footprint import __version__
from footprint.errors import AccessError, Note, UsageError
from footprint.files import whole_file
from footprint.formats.document import About, Document, Verdict
from footprint.formats.text import plain
from footprint.verbs.options import Color, Format

if TYPE_CHECKING:
    from footprint.formats.json import Json

__all__ = ("Answer", "OutputOptions", "ViewOptions", "draws_blocks", "emit", "exit_code", "output_options", "write")

EXIT_PARTIAL = 4
_NARROWEST = 60


class Answer(Protocol):
    """What a verb found, before it is decided how it is written.

    Each member makes what some formats are written from, and is called only if such a format is wanted. Besides those
    below an answer may have `issues` (for reviewers), `figures` (values to watch over time), `stacks` (for viewers of
    profiles) and `report` (HTML): it is written in the formats that its members allow.

    Attributes:
        verb: The words that ask for it, such as `audit`.
        table: Which table of the JSON is the answer itself.
        name: What was asked, such as `audit ./server`.
    """

    verb: ClassVar[str]
    table: ClassVar[str]

    @property
    def name(self) -> str: ...  # noqa: D102 # explained above

    def document(self) -> Document:
        """Return the answer as headings, figures and tables."""
        ...

    def members(self) -> "Json":
        """Return the JSON."""
        ...


class ViewOptions(NamedTuple):
    """How the text of an answer looks.

    Attributes:
        by: What the ledger is grouped by.
        top: How many rows a table has; 0 for all.
        has_whole_names: Whether names and paths are shown whole.
    """

    by: str = "owner"
    top: int = 20
    has_whole_names: bool = False


class OutputOptions(NamedTuple):
    """In which format an answer is written, and where.

    Attributes:
        format: The format.
        output: The file, or `-`.
        table: Which table, if one was asked for.
        color: When text is drawn with colours.
        is_quiet: Whether text is the last line only.
        html: The file of the HTML report; `-` for standard output, instead of the answer; None for no report.
    """

    format: Format
    output: str
    table: str | None
    color: Color
    is_quiet: bool
    html: str | None = None

    @property
    def has_report(self) -> bool:
        """Return whether an HTML report is written: it shows more than the other formats."""
        return self.html is not None or self.format is Format.HTML

    @property
    def has_page_maps(self) -> bool:
        """Return whether the pages of objects are wanted: the report shows them, JSON keeps them for a later one."""
        return self.has_report or self.format is Format.JSON

    @property
    def member(self) -> str:
        """Return the member of an answer that the format is written from."""
        return _WRITERS[self.format].member


class _Writer(NamedTuple):
    """The function that writes a format: it is in a module below `footprint`, and takes one member of an answer."""

    member: str
    module: str
    function: str


_WRITERS: Final = {
    Format.TEXT: _Writer("document", "formats.text", "plain"),
    Format.JSON: _Writer("members", "formats.json", "write"),
    Format.MARKDOWN: _Writer("document", "formats.markdown", "markdown"),
    Format.CSV: _Writer("members", "formats.csv", "csv"),
    Format.TSV: _Writer("members", "formats.csv", "tsv"),
    Format.SARIF: _Writer("issues", "formats.sarif", "sarif"),
    Format.JUNIT: _Writer("issues", "formats.junit", "junit"),
    Format.GITHUB: _Writer("issues", "formats.github", "github"),
    Format.GITLAB: _Writer("issues", "formats.gitlab", "gitlab"),
    Format.OPENMETRICS: _Writer("figures", "formats.openmetrics", "openmetrics"),
    Format.GITLAB_METRICS: _Writer("figures", "formats.openmetrics", "gitlab_metrics"),
    Format.FOLDED: _Writer("stacks", "formats.folded", "folded"),
    Format.SPEEDSCOPE: _Writer("stacks", "formats.speedscope", "speedscope"),
    Format.PPROF: _Writer("stacks", "formats.pprof", "pprof"),
    Format.HTML: _Writer("report", "html", "html"),
}
_ENDINGS: Final = {
    ".sarif.json": Format.SARIF,
    ".speedscope.json": Format.SPEEDSCOPE,
    ".json": Format.JSON,
    ".md": Format.MARKDOWN,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".sarif": Format.SARIF,
    ".xml": Format.JUNIT,
    ".prom": Format.OPENMETRICS,
    ".folded": Format.FOLDED,
    ".pb.gz": Format.PPROF,
    ".html": Format.HTML,
}
_TABLES: Final = frozenset({Format.CSV, Format.TSV})


def exit_code(notes: Sequence[Note], *, is_strict: bool) -> int:
    """Return the exit code of an answer that has notes."""
    return EXIT_PARTIAL if is_strict and notes else 0


def output_options(
    answer: type[Answer],
    format_: Format | None,
    output: str,
    *,
    is_json: bool,
    table: str | None = None,
    color: Color = Color.AUTO,
    is_quiet: bool = False,
    html: str | None = None,
) -> OutputOptions:
    """Decide how an answer is written: as the options say, else as the ending of the file says.

    Raises:
        UsageError: If the answer cannot be written in that format, or two things are asked for at once.
    """
    if is_json and format_ not in {None, Format.JSON}:
        raise UsageError(f"--json and --format {format_} contradict one another")
    if is_json:
        format_ = Format.JSON
    if format_ is None:
        format_ = next((found for ending, found in _ENDINGS.items() if output.endswith(ending)), Format.TEXT)
    _check_offer(answer, answer.verb, format_)
    if table is not None and format_ not in _TABLES:
        raise UsageError(f"--table chooses among the tables of csv and tsv; {format_} holds what it holds")
    if format_ is Format.PPROF and output == "-" and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("pprof is no text: give it a file with -o, such as profile.pb.gz")
    if html is not None:
        _check_offer(answer, answer.verb, Format.HTML)
        if "-" not in {html, output} and os.path.realpath(html) == os.path.realpath(output):
            raise UsageError(f"{output} cannot hold both the report and the answer: name two files")
    return OutputOptions(format_, output, table, color, is_quiet, html)


def _check_offer(answer: Answer | type[Answer], name: str, format_: Format) -> None:
    """Check that an answer has the member that a format is written from.

    Raises:
        UsageError: If it has not.
    """
    if not hasattr(answer, _WRITERS[format_].member):
        known = [one.value for one, writer in _WRITERS.items() if hasattr(answer, writer.member)]
        raise UsageError(f"`{name}` does not give {format_}: it gives {', '.join(known)}")


def write(answer: Answer, options: OutputOptions) -> None:
    """Write an answer.

    Raises:
        AccessError: If a file cannot be written.
        UsageError: If this answer cannot be written in the format, or has no such table.
    """
    if options.html is not None:
        _check_offer(answer, answer.name, Format.HTML)
        emit(_made(answer, "report"), options.html)
        if options.html == "-":
            return
    if options.format is Format.TEXT:
        emit_document(answer.document(), options.output, options.color, is_quiet=options.is_quiet)
        return
    _check_offer(answer, answer.name, options.format)
    writer = _WRITERS[options.format]
    about = About(answer.name, __version__, os.getcwd(), options.table or answer.table)
    function = getattr(import_module(f"footprint.{writer.module}"), writer.function)
    written = function(_made(answer, writer.member), about)
    if options.format is Format.GITHUB:
        _summarise(answer, about, options.output)
        emit(written, "-")
    else:
        emit(written, options.output)


def _made(answer: Answer, member: str) -> Any:  # noqa: ANN401 # what the formats of the member take
    return getattr(answer, member)()


def _summarise(answer: Answer, about: About, output: str) -> None:
    """Write the report for the page of a step: into the file that was named, or added to the one that GitHub names.

    Raises:
        AccessError: Where it cannot be written.
    """
    from footprint.formats.markdown import SUMMARY_BYTES, markdown

    place = os.environ.get("GITHUB_STEP_SUMMARY", "") if output == "-" else ""
    if output == "-" and not place:
        return
    if output != "-":
        emit(markdown(answer.document(), about, SUMMARY_BYTES), output)
        return
    try:
        # What other commands of the step have written stands there already, and counts.
        left = SUMMARY_BYTES - (os.path.getsize(place) if os.path.exists(place) else 0)
        text = markdown(answer.document(), about, left).encode()
        if len(text) > left:
            # GitHub would throw all of it away.
            sys.stderr.write("footprint: the summary of the step is full: this report is not in it\n")
            return
        with open(place, "ab") as file:
            file.write(text)
    except OSError as error:
        raise AccessError(place, error.strerror or str(error)) from error


def emit_document(document: Document, output: str, color: Color, *, is_quiet: bool) -> None:
    """Write a report: drawn for a terminal, plain for everything else."""
    if is_quiet:
        document = tuple(block for block in document if isinstance(block, Verdict))
    is_terminal = output == "-" and sys.stdout is not None and sys.stdout.isatty()
    has_colour = _has_colour(color, os.environ, is_terminal=is_terminal)
    # A table drawn into a very narrow terminal loses its last column: plain text is wrapped by the terminal instead.
    if not is_quiet and (is_terminal or has_colour) and (width := _columns()) >= _NARROWEST:
        from footprint.terminal import draw  # a pipe needs no rich

        _emit_text(draw(document, width, has_colour=has_colour, has_blocks=_has_blocks(output)), output)
    else:
        _emit_text(plain(document).lstrip("\n"), output)


def draws_blocks(output: str) -> bool:
    """Return whether the output is a terminal that shows block characters."""
    return output == "-" and sys.stdout is not None and sys.stdout.isatty() and _has_blocks(output)


def _has_blocks(output: str) -> bool:
    """Return whether the output may have block characters: the kernel's console and old encodings do not show them."""
    if output != "-" or sys.stdout is None:
        return True
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM") not in {"linux", "dumb"}


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _has_colour(color: Color, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Decide on colours: the flag, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in {"", "0"} or environment.get("CLICOLOR_FORCE", "0") not in {"", "0"}:
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def emit(answer: str | bytes, output: str) -> None:
    """Write an answer to standard output (`-`), or to a file that is there whole or not at all; text as UTF-8.

    Raises:
        AccessError: Where it cannot be written.
    """
    data = answer if isinstance(answer, bytes) else answer.encode("utf-8", "backslashreplace")
    if output == "-":
        _write_out(data)
        return
    try:
        with whole_file(output) as file:
            file.write(data)
    except OSError as error:
        raise AccessError(output, error.strerror or str(error)) from error


def _emit_text(text: str, output: str) -> None:
    """Write text for people: on standard output in the encoding that it has."""
    encoding = "utf-8" if output != "-" or sys.stdout is None else sys.stdout.encoding or "utf-8"
    emit(text.encode(encoding, "backslashreplace"), output)


def _write_out(data: bytes) -> None:
    if sys.stdout is None:
        raise AccessError("standard output", "it is closed")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What could not be written would be tried again at exit, and complained of there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise AccessError("standard output", error.strerror or str(error)) from error
