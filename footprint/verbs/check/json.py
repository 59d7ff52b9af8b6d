"""`check --json`."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.release.budget import Checked, Result
from footprint.verbs.audit.json import process_target, totals_json

__all__ = ("check_members",)


def check_members(checked: Checked, version: str) -> Json:
    """Give what became of each limit."""
    audit = checked.audit
    return envelope(version, audit.host, process_target(audit)) | {
        "budget_file": well_formed(checked.budgets.file),
        "count": checked.budgets.at_processes,
        "totals": totals_json(audit),
        "checks_failed": len(checked.failures),
        "budgets": [_result(one) for one in checked.results],
        "notes": note_rows(audit.notes),
    }


def _result(one: Result) -> Json:
    waiver = one.waiver
    return {
        "key": well_formed(one.key),
        "value": one.value,
        "limit": one.limit,
        "unit": "things" if one.is_count else "bytes",
        "is_exceeded": one.is_exceeded,
        "fails": one.fails,
        "grew_from": one.grew_from,
        "contributors": [{"name": well_formed(name), "size_bytes": size} for name, size in one.contributors],
        "waiver": None
        if waiver is None
        else {
            "reason": well_formed(waiver.reason),
            "expires": waiver.expires.isoformat(),
            "is_expired": one.is_expired,
        },
        "remark": one.remark,
        "line": one.line,
    }
