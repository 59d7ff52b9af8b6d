"""Issues for whoever reviews a change: JUnit XML, annotations of GitHub, and the Code Quality report of GitLab.

Of the format of Code Climate it is the subset that GitLab reads. GitHub shows workflow commands as annotations.
"""

import json
from collections import Counter
from collections.abc import Collection
from typing import Final

from footprint.formats.document import About
from footprint.formats.issues import BUDGET, Issue, Issues, Level, relative_path, title_of
from footprint.text.escape import printable, shortened
from footprint.text.units import counted

_LONGEST_NAME: Final = 1000
_LONGEST_MESSAGE: Final = 10_000
_MOST_CASES: Final = 10_000
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})
# GitHub shows so many annotations of each level for a step; the last of them counts the others.
_MOST_OF_A_KIND: Final = 10
_LONGEST_ANNOTATION: Final = 4000
_LONGEST_TITLE: Final = 250
_WORDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})
_SEVERITIES: Final = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
_LONGEST_DESCRIPTION: Final = 1000
_MOST_ISSUES: Final = 10_000


def junit(issues: Issues, about: About) -> str:
    """Format issues as one test suite: an issue that fails a check is a failure, a waived one is skipped.

    Other findings pass, with their text as output; so do kept budgets and rules that found nothing.
    """
    shown = issues.issues[:_MOST_CASES]
    seen: Counter[tuple[str, str]] = Counter()
    cases = [_passed(name, issues.rules) for name in issues.passed]
    for it in shown:
        # Some readers merge test cases with the same name.
        seen[it.rule, it.subject] += 1
        number = seen[it.rule, it.subject]
        cases.append(_case(it, it.subject if number == 1 else f"{shortened(it.subject, _LONGEST_NAME)} ({number})"))
    failures = sum(issue.fails for issue in shown)
    skipped = sum(issue.waiver is not None for issue in shown)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="footprint" tests="{len(cases)}" failures="{failures}" errors="0">',
        f'  <testsuite name="{_shown(about.name)}" {counts}>',
        *cases,
    ]
    summary = issues.summary
    if left_out := len(issues.issues) - len(shown):
        summary += f" {left_out} of them are left out here: those that save least."
    lines += [f"    <system-out>{_shown(summary, _LONGEST_MESSAGE)}</system-out>", "  </testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _passed(name: str, rules: Collection[str]) -> str:
    """Format the case of a rule that found nothing, or of a budget that is kept."""
    rule = name if name in rules else BUDGET
    return f'    <testcase classname="footprint.{rule}" name="{_shown(name)}"/>'


def _case(issue: Issue, name: str) -> str:
    file = ""
    if issue.location is not None:
        line = "" if issue.location.line is None else f' line="{issue.location.line}"'
        file = f' file="{_shown(issue.location.file)}"{line}'
    text = _shown(issue.message, _LONGEST_MESSAGE)
    if issue.fails:
        # Lists show only the message; the text follows below it.
        title = _shown(f"{title_of(issue.rule)}: {issue.subject}")
        inside = f'<failure type="{_shown(issue.rule)}" message="{title}">{text}</failure>'
    elif issue.waiver is not None:
        inside = f'<skipped message="{_shown(issue.waiver)}"/><system-out>{text}</system-out>'
    else:
        inside = f"<system-out>{text}</system-out>"
    start = f'    <testcase classname="footprint.{_shown(issue.rule)}" name="{_shown(name, _LONGEST_NAME + 9)}"{file}>'
    return f"{start}{inside}</testcase>"


def _shown(text: str, most: int = _LONGEST_NAME) -> str:
    # XML 1.0 cannot contain control characters, single surrogates and noncharacters.
    return printable(shortened(text, most)).translate(_ESCAPES)


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
    message = printable(shortened(issue.message, _LONGEST_ANNOTATION)).translate(_DATA)
    return f"::{word} {','.join(properties)}::{message}"


def _property(text: str) -> str:
    return printable(text).translate(_PROPERTY)


def gitlab(issues: Issues, about: About) -> str:
    """Format issues as a list, without waived ones: nobody has to act on these."""
    shown = [issue for issue in issues.of_project.issues if issue.waiver is None][:_MOST_ISSUES]
    return json.dumps([_entry(item, issues.name, about.folder) for item in shown], indent=1) + "\n"


def _entry(issue: Issue, target: str, folder: str) -> dict[str, object]:
    line = None if issue.location is None else issue.location.line
    file = issue.binary if issue.location is None else issue.location.file
    path = relative_path(file or target, folder)
    return {
        "description": printable(shortened(issue.message, _LONGEST_DESCRIPTION)),
        "check_name": printable(shortened(issue.rule, _LONGEST_NAME)),
        "fingerprint": issue.fingerprint,
        "severity": _SEVERITIES[issue.level],
        # GitLab refuses an entry without a line.
        "location": {"path": printable(shortened(path, _LONGEST_NAME)), "lines": {"begin": max(1, line or 1)}},
    }
