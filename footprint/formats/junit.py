"""Issues as JUnit XML: one test case for each budget or finding."""

from collections import Counter
from collections.abc import Collection
from typing import Final

from footprint.formats.document import About
from footprint.formats.issues import BUDGET, Issue, Issues, title_of
from footprint.text.escape import printable, shortened

_LONGEST_NAME: Final = 1000
_LONGEST_MESSAGE: Final = 10_000
_MOST_CASES: Final = 10_000
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


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
