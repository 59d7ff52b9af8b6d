"""`run --json`: the audit of the median start, and how the program ran."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, note_rows
from footprint.model.audit import Audit
from footprint.model.spread import Spread
from footprint.verbs.audit.json import audit_members
from footprint.verbs.run.result import RunResult

__all__ = ("run_members", "spread_json")


def run_members(ran: RunResult, version: str) -> Json:
    """Give what a run gave."""
    return audit_members(ran.audit, version) | {"notes": note_rows(ran.notes), "run": _run(ran)}


def _run(ran: RunResult) -> Json:
    return {
        "command": [well_formed(word) for word in ran.command],
        "when": ran.when,
        "moment": ran.start.moment.value,
        "starts": ran.start_count,
        "exit_code": ran.start.exit_code,
        "signal": ran.start.signal,
        "figures": {"private_bytes": spread_json(ran.private), "per_process_bytes": spread_json(ran.per_process)},
        "owners": [{"owner": well_formed(owner)} | _sizes(spread) for owner, spread in ran.owners.items()],
        "children": [_child(child) for child in ran.start.children],
    }


def spread_json(spread: Spread | None) -> Json | None:
    """Give a figure over several starts."""
    return None if spread is None else _sizes(spread)


def _sizes(spread: Spread) -> Json:
    return {"min": spread.min_bytes, "median": spread.median_bytes, "max": spread.max_bytes}


def _child(child: Audit) -> Json:
    return {
        "pid": child.pid,
        "command": well_formed(child.command),
        "private_bytes": child.totals.private.bytes,
        "per_process_bytes": child.totals.per_process.bytes,
    }
