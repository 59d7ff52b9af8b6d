"""Where answers go: standard output or a file, plain or drawn."""

import os
import sys
from collections.abc import Mapping, Sequence

from footprint.cli.options import Color, Format
from footprint.errors import AccessError, Note
from footprint.files import whole_file
from footprint.report.document import Document, Verdict
from footprint.report.text import draw, plain

__all__ = ("draws_blocks", "emit", "emit_document", "exit_code", "wants_json")

EXIT_PARTIAL = 4
_NARROWEST = 60


def exit_code(notes: Sequence[Note], *, is_strict: bool) -> int:
    """Give the exit code of an answer that has notes."""
    return EXIT_PARTIAL if is_strict and notes else 0


def wants_json(format_: Format, output: str, *, is_asked: bool) -> bool:
    """Tell whether an answer is to be JSON: where it is asked for, or goes to a file of that name."""
    return is_asked or format_ is Format.JSON or output.endswith(".json")


def emit_document(document: Document, output: str, color: Color, *, is_quiet: bool) -> None:
    """Write a report: drawn for a terminal, plain for everything else."""
    if is_quiet:
        document = tuple(block for block in document if isinstance(block, Verdict))
    is_terminal = output == "-" and sys.stdout is not None and sys.stdout.isatty()
    has_colour = _has_colour(color, os.environ, is_terminal=is_terminal)
    # A table drawn into a very narrow terminal loses its last column: plain text is wrapped by the terminal instead.
    if not is_quiet and (is_terminal or has_colour) and (width := _columns()) >= _NARROWEST:
        emit(draw(document, width, has_colour=has_colour, has_blocks=_has_blocks(output)), output)
    else:
        emit(plain(document).lstrip("\n"), output)


def draws_blocks(output: str) -> bool:
    """Tell whether what is written goes to a terminal that shows blocks."""
    return output == "-" and sys.stdout is not None and sys.stdout.isatty() and _has_blocks(output)


def _has_blocks(output: str) -> bool:
    """Tell whether what is written may hold blocks: the kernel's own console, and old encodings, do not show them."""
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


def emit(text: str, output: str) -> None:
    """Write text to standard output (`-`), or to a file that is there whole or not at all.

    Raises:
        AccessError: Where the file cannot be written.
    """
    if output == "-":
        _write_out(text)
        return
    try:
        with whole_file(output) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise AccessError(output, error.strerror or str(error)) from error


def _write_out(text: str) -> None:
    if sys.stdout is None:
        raise AccessError("standard output", "it is closed")
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.buffer.write(text.encode(encoding, "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What could not be written would be tried again at exit, and complained of there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise AccessError("standard output", error.strerror or str(error)) from error
