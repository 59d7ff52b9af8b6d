"""Issues: findings and exceeded budgets as one list for reviewers, before a format writes them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from footprint.elf.names import shown_name
from footprint.errors import UsageError
from footprint.findings.registry import rule_named, rule_names
from footprint.formats.words import rule_page, without_links
from footprint.model.audit import Audit, program_path
from footprint.model.finding import Confidence, Finding, SourceLocation, listed_places
from footprint.model.row import file_name
from footprint.release.compare import Comparison, RowChange, covers
from footprint.release.matching import comparable_name, finding_key
from footprint.release.new_libraries import NewRoot, link_text, root_text
from footprint.text.escape import printable
from footprint.text.units import counted, format_bytes

BUDGET: Final = "budget-exceeded"
"""The rule of exceeded budgets, which are no findings."""
RUN_FAILED: Final = "run-failed"
"""The rule of programs that were run and failed, which no budget has to name."""
GROWN_VARIABLE: Final = "grown-variable"
"""The rule of variables that are new or grew, in a comparison."""
TOUCHED_VARIABLE: Final = "touched-variable"
"""The rule of variables as large as before, of which a process writes more."""
NEW_LIBRARY: Final = "new-library"
"""The rule of libraries that are new, in a comparison."""
# Title and page of the rules that are no findings.
_TEXTS: Final = {
    BUDGET: (
        "A figure is larger than its budget allows",
        (
            "**What it is.** A figure, a library or a number of findings is beyond a limit in the budget file.\n\n"
            "**Remedy.** Remove what grew, or raise the limit in the budget file, with a reason."
        ),
    ),
    RUN_FAILED: (
        "The program that was run failed",
        (
            "**What it is.** A signal ended the program, it exited with another code than expected, or it was not read "
            "at its moment. Its figures are those of a failure.\n\n"
            "**Remedy.** Mend the program, or accept the failure by name: `footprint run --allow`."
        ),
    ),
    GROWN_VARIABLE: (
        "A variable is new or grew",
        (
            "**What it is.** A variable of 1 KiB or more is new since the audit before, or grew by as much.\n\n"
            "**Remedy.** Make it smaller, or const, so that all processes share it."
        ),
    ),
    TOUCHED_VARIABLE: (
        "More of a variable is written",
        (
            "**What it is.** A variable is as large as before, and 1 KiB or more of it is private that was not in the "
            "audit before: this process writes pages of it that the other one did not.\n\n"
            "**Remedy.** Write less of it, or find what the process does now and did not do before."
        ),
    ),
    NEW_LIBRARY: (
        "A library is new, with all that it brings in",
        (
            "**What it is.** An object needs a library that was not there before. The libraries that this one needs "
            "came with it, and would leave with it.\n\n"
            "**Remedy.** Do without it, or load it only where it is used (dlopen)."
        ),
    ),
}
_WHAT: Final = "**What it is.** "
_OF_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/")


class RuleText(NamedTuple):
    """The text about a rule.

    Attributes:
        title: The title of the rule.
        what: What it finds, in a sentence or two.
        page: Its page of the documentation, in Markdown: what it is, why it costs, an example, the remedy.
    """

    title: str
    what: str
    page: str


def title_of(name: str) -> str:
    """Return the title of a rule; for an unknown rule, as in a saved audit, its name."""
    if name in _TEXTS:
        return _TEXTS[name][0]
    try:
        return rule_named(name).title
    except KeyError:
        return name


@cache
def rule_text(name: str) -> RuleText:
    """Return the text about a rule; its title stands in for a page that is not installed."""
    title = title_of(name)
    page = without_links(_TEXTS[name][1] if name in _TEXTS else rule_page(name))
    paragraph = page.partition("\n\n")[0]
    what = " ".join(paragraph.removeprefix(_WHAT).replace("`", "").split()) if paragraph.startswith(_WHAT) else title
    return RuleText(title, what, page or title)


class Level(StrEnum):
    """How much an issue matters, in the words of SARIF."""

    ERROR = "error"
    """A budget is exceeded, or a finding fails the answer."""
    WARNING = "warning"
    """A sure finding with a saving."""
    NOTE = "note"
    """Any other finding."""


class Issue(NamedTuple):
    """One issue.

    Attributes:
        rule: The rule, such as `unused-library`, or `budget-exceeded`.
        level: How much it matters.
        subject: A library, a variable or a budget.
        message: The issue in sentences.
        fingerprint: Identifies the issue from build to build; unique in the list.
        saving_bytes: The saving per process; for a budget, the bytes over its limit.
        confidence: The confidence of a finding; None for a budget.
        location: The place in the sources or in the budget file; None where that is not known.
        binary: The file to build differently, or else the file that was audited; "" for none.
        fails: Whether it fails a check.
        waiver: The reason of the waiver that lets it pass; None without a waiver.
        about_bytes: The saving of a finding, or the size that it is about.
        is_limit: Whether it is about a limit, and no finding.
    """

    rule: str
    level: Level
    subject: str
    message: str
    fingerprint: str
    saving_bytes: int
    confidence: Confidence | None
    location: SourceLocation | None
    binary: str
    fails: bool
    waiver: str | None = None
    about_bytes: int = 0
    is_limit: bool = False


class Issues(NamedTuple):
    """The issues of an answer.

    Attributes:
        name: The name of what was audited.
        issues: The issues, the most important first.
        passed: The budgets that are kept, or the rules that found nothing.
        summary: The result in one sentence.
        rules: The rules that were run, also those that found nothing.
        binary: The program that was audited; "" if there are several files or none.
    """

    name: str
    issues: tuple[Issue, ...]
    passed: tuple[str, ...]
    summary: str
    rules: tuple[str, ...] = ()
    binary: str = ""

    @property
    def of_project(self) -> "Issues":
        """Return the issues without notes on system libraries, which no change of the project removes."""
        kept = tuple([issue for issue in self.issues if not _is_note_on_system(issue, self.binary)])
        left_out = len(self.issues) - len(kept)
        summary = (
            f"{self.summary} {counted(left_out, 'note')} on system libraries left out." if left_out else self.summary
        )
        return self._replace(issues=kept, summary=summary)


def _is_note_on_system(issue: Issue, audited: str) -> bool:
    if issue.level is not Level.NOTE or issue.confidence is None:
        return False
    return audited not in {"", issue.binary} and issue.binary.startswith(_OF_SYSTEM)


def issues_of_findings(
    findings: Iterable[Finding],
    name: str,
    *,
    count: int = 1,
    binary: str = "",
    rules: Sequence[str] = (),
    others: Iterable[Issue] = (),
) -> Issues:
    """Make issues of findings.

    Args:
        findings: The findings.
        name: The name of what was audited.
        count: The number of processes for which messages name the saving.
        binary: The file of findings that name none.
        rules: The rules that were run.
        others: Issues that are no findings.
    """
    issues = ordered([*(finding_issue(item, binary, count, fails=_is_sure(item)) for item in findings), *others])
    sure = sum(issue.fails for issue in issues)
    reported = dict.fromkeys(issue.rule for issue in issues)
    summary = f"{counted(len(issues), 'finding')} in {name}" + (f", {sure} of them sure" if issues else "")
    return Issues(
        name,
        issues,
        tuple(rule for rule in rules if rule not in reported),
        f"{summary}.",
        tuple(dict.fromkeys([*rules, *reported])),
        binary,
    )


def issues_of_audit(audit: Audit) -> Issues:
    """Return the findings of an audit.

    Raises:
        UsageError: If it was not searched for findings.
    """
    rules = applied_rules(audit)
    if not rules:
        raise UsageError(
            f"{audit.saved_in or audit.target} was not searched for findings: audit the program, or the process with "
            "--findings"
        )
    return issues_of_findings(audit.findings, audit.target, count=audit.count, binary=program_path(audit), rules=rules)


def applied_rules(audit: Audit) -> list[str]:
    """Return the rules that were applied in an audit: only of these it is true that nothing else was found."""
    return [rule for rule in rule_names() if covers(audit, rule)]


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to a folder, if it is below that folder."""
    inside = path.removeprefix(folder.rstrip("/") + "/") if folder else path
    return inside.removeprefix("./")


def _is_sure(finding: Finding) -> bool:
    return finding.confidence.is_sure and finding.saving_bytes > 0


def finding_issue(finding: Finding, binary: str, count: int, *, fails: bool) -> Issue:
    """Make an issue of a finding.

    Args:
        finding: The finding.
        binary: The file of the finding, if it names none.
        count: The number of processes for which the message names the saving.
        fails: Whether the issue fails a check.
    """
    level = Level.WARNING if _is_sure(finding) else Level.NOTE
    saves = f"It {finding.saving_verb} {format_bytes(finding.saving_bytes)} a {finding.noun}"
    saving = saves if finding.saving_bytes else ""
    if saving and finding.member_count is not None:
        saving += f", in {counted(finding.member_count, 'process')} of it"
    if saving and count > 1:
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}"
    why = f"{finding.confidence.value.capitalize()}: {'; '.join(finding.reasons)}" if finding.reasons else ""
    sentences = (finding.message, saving, why, f"Remedy: {finding.remedy}")
    message = " ".join(f"{sentence.rstrip('.')}." for sentence in sentences if sentence)
    key = (*finding_key(finding), binary.rsplit("/", 1)[-1])
    return Issue(
        finding.rule,
        level,
        finding.subject,
        message,
        fingerprint(key),
        finding.saving_bytes,
        finding.confidence,
        finding.location,
        finding.object_path or binary,
        fails,
        about_bytes=finding.about_bytes,
    )


def fingerprint(parts: Iterable[str]) -> str:
    """Compute the fingerprint of an issue."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def ordered(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Sort issues by importance, and number those with the same fingerprint.

    Limits stay in their order, before everything else of their level.
    """
    levels = list(Level)

    def importance(issue: Issue) -> tuple[object, ...]:
        rank = (False,) if issue.is_limit else (True, -issue.saving_bytes, issue.rule, issue.subject)
        return (levels.index(issue.level), *rank)

    ordered = sorted(issues, key=importance)
    seen: dict[str, int] = {}
    numbered = []
    for issue in ordered:
        number = seen[issue.fingerprint] = seen.get(issue.fingerprint, 0) + 1
        numbered.append(
            issue._replace(
                fingerprint=f"{issue.fingerprint}:{number}",
                subject=printable(issue.subject),
                message=printable(issue.message),
            )
        )
    return tuple(numbered)


def growth_issues(comparison: Comparison, level: Level) -> Iterator[Issue]:
    """Return an issue for each root of the new libraries, and for each variable that grew."""
    for root in comparison.roots:
        yield _of_root(root, comparison, level)
    for grown in comparison.grown_variables:
        yield _of_variable(grown, comparison.count, level)


def root_sentence(root: NewRoot) -> str:
    """Describe which library brought how many others, and where it is linked; what they cost is said beside it."""
    link = link_text(root)
    return f"Came with {root_text(root)}: {root.libraries_text}.{f' It {link}.' if link else ''}"


def _of_root(root: NewRoot, comparison: Comparison, level: Level) -> Issue:
    brought = [file_name(owner.owner) for owner in comparison.owners if owner.came_with == root.owner]
    message = f"{root_sentence(root)} They add {format_bytes(root.delta_bytes)} of private memory to each process."
    if root.brought_count == 1:
        message = message.replace(" They add ", " It adds ")
    if brought:
        message += f" It brought {', '.join(brought[:5])}{f' and {len(brought) - 5} more' if len(brought) > 5 else ''}."
    user = root.needed_by[0] if root.needed_by else ""
    key = fingerprint((NEW_LIBRARY, root.name))
    return Issue(
        NEW_LIBRARY, level, root.name, message, key, max(0, root.delta_bytes), None, root.location, user, fails=False
    )


def _of_variable(row: RowChange, count: int, level: Level) -> Issue:
    name, owner = shown_name(row.symbol or ""), file_name(row.owner)
    message = f"{name} of {owner} has {format_bytes(row.new_mapped_bytes)} in {row.section or 'memory'}"
    is_as_large = row.old_mapped_bytes == row.new_mapped_bytes
    rule = TOUCHED_VARIABLE if is_as_large else GROWN_VARIABLE
    if is_as_large:
        message += ", as before, and more of it is written."
    else:
        message += (
            f", and had {format_bytes(row.old_mapped_bytes)} before." if row.old_mapped_bytes else ", and is new."
        )
    if row.delta_bytes > 0:
        kind = "writable" if row.old_bytes is None or row.new_bytes is None else "private"
        message += f" It adds {format_bytes(row.delta_bytes)} of {kind} memory to each process"
        message += f", {format_bytes(row.delta_bytes * count)} to {count:,}." if count > 1 else "."
    if row.possible_locations:
        message += f" Its copies are declared at {listed_places(row.possible_locations, 'and')}."
    key = fingerprint((rule, comparable_name(row.symbol or ""), owner))
    return Issue(rule, level, name, message, key, row.growth_bytes, None, row.location, row.owner, fails=False)
