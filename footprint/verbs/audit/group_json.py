"""`audit --json` for several processes."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.model.group import Group
from footprint.verbs.audit.json import debug_file_rows, process_target, row_json, totals_json

__all__ = ("group_members",)


def group_members(group: Group, version: str) -> Json:
    """Give what several processes cost together, and each for itself."""
    host = group.audits[0].host if group.audits else {}
    target: Json = {"pids": [audit.pid for audit in group.audits]}
    totals = {
        "private_bytes": group.private,
        "kernel_bytes": group.kernel,
        "shared_between_bytes": group.shared_between,
        "per_group_bytes": group.per_group,
        "shared_once_bytes": group.shared_once,
    }
    figures: Json = {name: total.bytes for name, total in totals.items()}
    figures["evidence"] = {name: total.evidence.value for name, total in totals.items() if total.bytes is not None}
    processes = [process_target(audit) | {"totals": totals_json(audit)} for audit in group.audits]
    tables: Json = {
        "group": figures,
        "processes": processes,
        "ledger": [row_json(row) for row in group.ledger],
        "debug_files": debug_file_rows(group.debug_files),
        "notes": note_rows(group.notes),
    }
    return envelope(version, {key: well_formed(value) for key, value in host.items()}, target) | tables
