"""Issues as workflow commands of GitHub Actions, which it shows as annotations."""

from typing import Final

from footprint.formats.document import About
from footprint.formats.issues import Issue, Issues, Level, relative_path, title_of
from footprint.text.escape import printable, shortened
from footprint.text.units import counted

# GitHub shows so many annotations of each level for a step; the last of them counts the others.
_MOST_OF_A_KIND: Final = 10
_LONGEST_MESSAGE: Final = 4000
_LONGEST_TITLE: Final = 250
_WORDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def github(issues: Issues, about: About) -> str:
    """Format issues as `::error`, `::warning` and `::notice`, and the summary as the last line."""
    lines = []
    issues = issues.of_project
    for level, word in _WORDS.items():
        of_kind = [issue for issue in issues.issues if issue.level is level]
        shown = of_kind if len(of_kind) <= _MOST_OF_A_KIND else of_kind[: _MOST_OF_A_KIND - 1]
        lines += [_command(word, issue, about.folder) for issue in shown]
        if rest := len(of_kind) - len(shown):
            text = f"{counted(rest, 'issue')} more of this kind: the summary of the step has them"
            lines.append(f"::{word} title=footprint::{text}")
    # A line of the log that GitHub does not read as a command, whatever it contains.
    lines.append(f"footprint: {printable(issues.summary)}")
    return "\n".join(lines) + "\n"


def _command(word: str, issue: Issue, folder: str) -> str:
    properties = []
    if issue.location is not None:
        properties.append(f"file={_property(relative_path(issue.location.file, folder))}")
        if issue.location.line is not None:
            properties.append(f"line={issue.location.line}")
    elif issue.binary:
        properties.append(f"file={_property(relative_path(issue.binary, folder))}")
    title = shortened(f"{title_of(issue.rule)}: {issue.subject}", _LONGEST_TITLE)
    properties.append(f"title={_property(title)}")
    message = printable(shortened(issue.message, _LONGEST_MESSAGE)).translate(_DATA)
    return f"::{word} {','.join(properties)}::{message}"


def _property(text: str) -> str:
    return printable(text).translate(_PROPERTY)
