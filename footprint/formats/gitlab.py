"""Issues as GitLab's Code Quality report: the subset of Code Climate's format that GitLab reads."""

import json
from typing import Final

from footprint.formats.document import About
from footprint.formats.issues import Issue, Issues, Level, relative_path
from footprint.text.escape import printable, shortened

_SEVERITIES: Final = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
_LONGEST_MESSAGE: Final = 1000
_LONGEST_NAME: Final = 1000
_MOST_ISSUES: Final = 10_000


def gitlab(issues: Issues, about: About) -> str:
    """Format issues as a list, without waived ones: nobody has to act on these."""
    shown = [issue for issue in issues.of_project.issues if issue.waiver is None][:_MOST_ISSUES]
    return json.dumps([_entry(item, issues.name, about.folder) for item in shown], indent=1) + "\n"


def _entry(issue: Issue, target: str, folder: str) -> dict[str, object]:
    line = None if issue.location is None else issue.location.line
    file = issue.binary if issue.location is None else issue.location.file
    path = relative_path(file or target, folder)
    return {
        "description": printable(shortened(issue.message, _LONGEST_MESSAGE)),
        "check_name": printable(shortened(issue.rule, _LONGEST_NAME)),
        "fingerprint": issue.fingerprint,
        "severity": _SEVERITIES[issue.level],
        # GitLab refuses an entry without a line.
        "location": {"path": printable(shortened(path, _LONGEST_NAME)), "lines": {"begin": max(1, line or 1)}},
    }
