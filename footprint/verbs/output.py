"""Writing an answer: to standard output or a file, as text for people or in a format for another program."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from footprint import __version__
from footprint.errors import AccessError, Note, UsageError, cause_of
from footprint.formats.document import About, Document, Verdict
from footprint.formats.text import WIDTH, plain
from footprint.members import NamedTuple
from footprint.text.command_line import has_command_lines
from footprint.text.escape import runner_safe
from footprint.verbs.options import PARTS, Color, Format, OutputOptions

if TYPE_CHECKING:
    from footprint.formats.dot import Digraph
    from footprint.formats.issues import Issues
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.perfetto import Trace
    from footprint.formats.stacks import Stacks
    from footprint.json.answer import Json


class LazyModule:
    """A module that is imported when one of its functions is called.

    A type checker reads an ordinary import beside it, under `if TYPE_CHECKING`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 # as the function
            return getattr(import_module(self._name), function)(*arguments, **named)

        return called


def lazy_modules(package: str, names: str) -> list[LazyModule]:
    """Return some modules of a package; `names` has spaces between them."""
    return [LazyModule(f"{package}.{name}") for name in names.split()]


EXIT_UNREADABLE = 3
EXIT_PARTIAL = 4
EXIT_RUN_FAILED = 5
_NARROWEST = 60
_LEAST_PLAIN = 40
_MOST_DIGITS = 5


_Found = TypeVar("_Found")


class Answer(NamedTuple, Generic[_Found]):
    """The parts that the formats of a verb's answer are written from.

    Each is a function of what the verb found, the JSON and the report also of the version of footprint, the report of
    `failure` as well, and is called only if such a format is asked for. The answer can be written in the formats whose
    part it has.

    Attributes:
        verb: The words that ask for it, such as `audit`.
        table: The table of the JSON that is the answer itself.
        document: The answer as headings, figures and tables.
        members: The JSON.
        issues: The findings, for reviewers.
        figures: The values to watch over time.
        stacks: The sizes of stacks, for viewers of profiles.
        report: The HTML report, where it shows more than the JSON.
        graph: Nodes and edges.
        trace: What happened over time.
        has_page: Whether the HTML report shows the document and the tables of the JSON.
        page_data: What this page shows beside them.
        failure: Why the command fails, where its report does not tell it by itself.
    """

    verb: str
    table: str
    document: Callable[[_Found], Document]
    members: Callable[[_Found, str], "Json"]
    issues: Callable[[_Found], "Issues"] | None = None
    figures: Callable[[_Found], "list[MetricFamily]"] | None = None
    stacks: Callable[[_Found], "Stacks"] | None = None
    report: Callable[[_Found, str, str], str] | None = None
    graph: Callable[[_Found], "Digraph"] | None = None
    trace: Callable[[_Found], "Trace"] | None = None
    has_page: bool = False
    page_data: Callable[[_Found], "Json"] | None = None
    failure: str = ""

    def has(self, part: str) -> bool:
        """Return whether the formats of a part can be written."""
        return getattr(self, part) is not None or (part == "report" and self.has_page)


# The function that writes each format, in a module below `footprint`; it takes one part of an answer.
_WRITERS: Final = {
    Format.TEXT: ("formats.text", "plain"),
    Format.JSON: ("json.answer", "pieces"),
    Format.MARKDOWN: ("formats.markdown", "markdown"),
    Format.CSV: ("formats.csv", "csv"),
    Format.TSV: ("formats.csv", "tsv"),
    Format.JSONL: ("formats.csv", "jsonl"),
    Format.SARIF: ("formats.sarif", "sarif"),
    Format.JUNIT: ("formats.reviews", "junit"),
    Format.GITHUB: ("formats.reviews", "github"),
    Format.GITLAB: ("formats.reviews", "gitlab"),
    Format.OPENMETRICS: ("formats.metrics", "openmetrics"),
    Format.GITLAB_METRICS: ("formats.metrics", "gitlab_metrics"),
    Format.FOLDED: ("formats.stacks", "folded"),
    Format.SPEEDSCOPE: ("formats.stacks", "speedscope"),
    Format.PPROF: ("formats.stacks", "pprof"),
    Format.DOT: ("formats.dot", "dot"),
    Format.PERFETTO: ("formats.perfetto", "perfetto"),
    Format.HTML: ("html", "html"),
}
_JSON_FORMATS: Final = {
    Format.JSON,
    Format.JSONL,
    Format.SARIF,
    Format.GITLAB,
    Format.SPEEDSCOPE,
    Format.PERFETTO,
}
# Other programs of the host read them: collectors of metrics, reviewers.
_WITHOUT_COMMANDS: Final = {"issues", "figures", "stacks", "graph"}


def part_name(format_: Format) -> str:
    """Return the name of the part of an answer that a format is written from."""
    if format_ in {Format.TEXT, Format.MARKDOWN}:
        return "document"
    return PARTS.get(format_, "members")


def exit_code(notes: Sequence[Note], *, is_strict: bool) -> int:
    """Return the exit code of an answer that has notes."""
    return EXIT_PARTIAL if is_strict and notes else 0


def check_formats(answer: Answer[Any], options: OutputOptions) -> None:
    """Check that an answer can be written as the options say; a verb does so before it computes anything.

    Raises:
        UsageError: If it cannot.
    """
    for format_ in (options.format, *((Format.HTML,) if options.html is not None else ())):
        if not answer.has(part_name(format_)):
            names = [form.value for form in Format if answer.has(part_name(form))]
            raise UsageError(f"`{answer.verb}` does not write {format_}: it writes {', '.join(names)}")


def write(answer: Answer[_Found], result: _Found, name: str, options: OutputOptions, notes: Sequence[Note] = ()) -> int:
    """Write an answer, and return the exit code of the command.

    Args:
        answer: The parts of the answer.
        result: What the verb found.
        name: What was asked, such as `audit ./server`.
        options: How it is written.
        notes: The notes of the answer.

    Raises:
        AccessError: If a file cannot be written.
        UsageError: If this answer cannot be written in the format, or has no such table.
    """
    check_formats(answer, options)
    if options.html is not None:
        emit(_part(answer, "report", result, name), options.html, _mode("report"))
    if options.html != "-":
        _write_answer(answer, result, name, options)
    return exit_code(notes, is_strict=options.is_strict)


def _write_answer(answer: Answer[_Found], result: _Found, name: str, options: OutputOptions) -> None:
    if options.format is Format.TEXT:
        emit_document(answer.document(result), options.file, options.color, is_quiet=options.is_quiet)
        return
    part = part_name(options.format)
    module, name_of_function = _WRITERS[options.format]
    about = About(name, __version__, os.getcwd(), options.table or answer.table)
    function = getattr(import_module(f"footprint.{module}"), name_of_function)
    content = _part(answer, part, result, name)
    if part == "issues":
        from footprint.release.link_lines import repository_root
        from footprint.verbs.issue_places import placed_issues  # build files of the project

        content, about = placed_issues(content, about.folder), about._replace(folder=str(repository_root(about.folder)))
    written = function(content, about)
    if not isinstance(written, bytes) and options.format not in {Format.GITHUB, Format.HTML}:
        pieces = [written] if isinstance(written, str) else written
        written = (runner_safe(piece, is_json=options.format in _JSON_FORMATS) for piece in pieces)
    if options.format is Format.GITHUB:
        _summarise(lambda: answer.document(result), about, options.file)
        emit(written, "-")
    else:
        emit(written, options.file, _mode(part))


def _part(answer: Answer[_Found], name: str, result: _Found, name_of_page: str) -> Any:  # noqa: ANN401 # what formats of it take
    part = getattr(answer, name)
    if part is None:
        from footprint.html import page  # few answers are reports

        more = None if answer.page_data is None else answer.page_data(result)
        return page(name_of_page, answer.members(result, __version__), answer.document(result), more)
    if name == "report":
        return part(result, __version__, answer.failure)
    return part(result, __version__) if name == "members" else part(result)


def _summarise(document: Callable[[], Document], about: About, output: str) -> None:
    """Write the report for the page of a step: into the file that was named, or added to the one that GitHub names.

    Raises:
        AccessError: Where it cannot be written.
    """
    from footprint.formats.markdown import SUMMARY_BYTES, markdown

    place = os.environ.get("GITHUB_STEP_SUMMARY", "") if output == "-" else ""
    if output == "-" and not place:
        return
    if output != "-":
        emit(markdown(document(), about, SUMMARY_BYTES), output, _mode("document"))
        return
    try:
        # What other commands of the step have written stands there already, and counts.
        left = SUMMARY_BYTES - (os.path.getsize(place) if os.path.exists(place) else 0)
        text = markdown(document(), about, left).encode()
        if len(text) > left:
            # GitHub would throw all of it away.
            complain("footprint: the summary of the step is full: this report is not in it")
            return
        from footprint.system.whole_file import open_kept

        with open(open_kept(place, mode=0o666), "ab") as file:
            file.write(text)
    except OSError as error:
        raise AccessError(place, cause_of(error)) from error


def complain(line: str) -> None:
    """Write a line on standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


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
        _emit_text(plain(document, _plain_width(is_terminal=is_terminal)).lstrip("\n"), output)


def has_colour(color: Color) -> bool:
    """Return whether text on the terminal has colours."""
    return _has_colour(color, os.environ, is_terminal=sys.stdout is not None and sys.stdout.isatty())


def has_screen() -> bool:
    """Return whether somebody sits at a terminal that can be drawn anew."""
    # A screen is drawn anew by escape sequences, which NO_COLOR asks not to write.
    if os.environ.get("NO_COLOR"):
        return False
    are_terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    return are_terminals and os.environ.get("TERM", "dumb") != "dumb" and _columns() >= _NARROWEST


def draws_blocks(output: str) -> bool:
    """Return whether the output is a terminal that shows block characters."""
    return output == "-" and sys.stdout is not None and sys.stdout.isatty() and _has_blocks(output)


def _has_blocks(output: str) -> bool:
    """Return whether the output may have block characters: the kernel's console and old encodings do not show them."""
    if output != "-" or sys.stdout is None:
        return True
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM") not in {"linux", "dumb"}


def _plain_width(*, is_terminal: bool) -> int:
    """Return the width of plain text: the terminal's, else COLUMNS, else 80 columns."""
    if is_terminal:
        return max(_columns(), _LEAST_PLAIN)
    given = os.environ.get("COLUMNS", "")
    return max(int(given), _LEAST_PLAIN) if given.isascii() and given.isdigit() and len(given) < _MOST_DIGITS else WIDTH


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


def emit(answer: str | bytes | Iterable[str], output: str, mode: int = 0o666) -> None:
    """Write an answer to standard output (`-`), or to a file that is there whole or not at all; text as UTF-8.

    `mode` are the permissions of a new file, less those that the umask takes.

    Raises:
        AccessError: Where it cannot be written.
    """
    parts = [answer] if isinstance(answer, str | bytes) else answer
    data = (part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace") for part in parts)
    if sys.stderr is not None and sys.stderr.isatty():
        from footprint.verbs.progress import end_line

        end_line()
    if output == "-":
        _write_out(data)
    else:
        from footprint.system.whole_file import write_file

        write_file(output, data, mode=mode)


def _mode(part: str) -> int:
    """Return the permissions of a new file: only its owner may read command lines."""
    return 0o600 if part not in _WITHOUT_COMMANDS and has_command_lines() else 0o666


def _emit_text(text: str, output: str) -> None:
    """Write text for people: on standard output in the encoding that it has."""
    encoding = "utf-8" if output != "-" or sys.stdout is None else sys.stdout.encoding or "utf-8"
    emit(runner_safe(text, is_json=False).encode(encoding, "backslashreplace"), output, _mode("document"))


def _write_out(data: Iterable[bytes]) -> None:
    if sys.stdout is None:
        raise AccessError("standard output", "it is closed")
    try:
        sys.stdout.buffer.writelines(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What could not be written would be tried again at exit, and complained of there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise AccessError("standard output", cause_of(error)) from error
