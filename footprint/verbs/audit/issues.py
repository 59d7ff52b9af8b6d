"""The findings of an audit for reviewers: under which name, and by which rules it was searched."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.formats.issues import Issues, issues_of_findings
from footprint.model.audit import program_path
from footprint.release.compare import covers

if TYPE_CHECKING:
    from footprint.model.audit import Audit


def issues_of_audit(audit: "Audit") -> Issues:
    """Return the findings of an audit.

    Raises:
        UsageError: If it was not searched for findings.
    """
    rules, binary = applied_rules(audit), program_path(audit)
    return issues_of_findings(audit.findings, audit.target, count=audit.count, binary=binary, rules=rules)


def applied_rules(audit: "Audit") -> Sequence[str]:
    """Return the rules that were applied in an audit: only of these it is true that nothing else was found.

    Raises:
        UsageError: If there are none.
    """
    rules = [rule for rule in rule_names() if covers(audit, rule)]
    if not rules:
        raise UsageError(
            f"{audit.saved_in or audit.target} was not searched for findings: audit the program, or the process with "
            "--findings"
        )
    return rules
