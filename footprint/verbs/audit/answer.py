"""What `footprint audit` answers about one process or program, in each form that it can be written in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.errors import UsageError
from footprint.model.audit import Audit, program_name
from footprint.verbs.output import ViewOptions

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.stacks import Stacks

__all__ = ("AuditAnswer", "applied_rules", "lasting_name", "program_path")


@dataclass(frozen=True)
class AuditAnswer:
    """The audit of one process or program.

    Attributes:
        found: The audit.
        view: How the text looks.
    """

    verb: ClassVar = "audit"
    table: ClassVar = "ledger"
    found: Audit
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"audit {lasting_name(self.found)}"

    def document(self) -> "Document":
        from footprint.verbs.audit.text import audit_report

        view = self.view
        return audit_report(self.found, by=view.by, top=view.top, has_whole_names=view.has_whole_names)

    def members(self) -> "Json":
        from footprint.formats.audit_json import audit_members

        return audit_members(self.found, __version__)

    def issues(self) -> "Issues":
        from footprint.formats.issues import issues_of_findings

        found = self.found
        rules, count = applied_rules(found), found.projection.count
        return issues_of_findings(found.findings, found.target, count=count, binary=program_path(found), rules=rules)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.audit.metrics import audit_metrics

        return audit_metrics(self.found)

    def stacks(self) -> "Stacks":
        from footprint.formats.stacks import ledger_stacks

        return ledger_stacks(self.found.ledger)

    def report(self) -> str:
        from footprint.verbs.audit.html import audit_html

        return audit_html(self.found, __version__)


def lasting_name(audit: Audit, given: str | None = None) -> str:
    """Return a name that stays the same from run to run: for a live process that of its program."""
    name = program_name(audit) if audit.is_live and audit.saved_in is None else ""
    return name or given or audit.saved_in or audit.target


def applied_rules(audit: Audit) -> Sequence[str]:
    """Return the rules that were applied in an audit: only of these it is true that nothing else was found.

    Raises:
        UsageError: If there are none.
    """
    from footprint.findings.registry import rule_names
    from footprint.release.compare import covers

    rules = [rule for rule in rule_names() if covers(audit, rule)]
    if not rules:
        raise UsageError(
            f"{audit.saved_in or audit.target} was not searched for findings: audit the program, or the process with "
            "--findings"
        )
    return rules


def program_path(audit: Audit) -> str:
    """Return the path of the program; "" if it is not known."""
    if audit.source == "prediction":
        return audit.target
    return audit.objects[0].path if audit.objects else ""
