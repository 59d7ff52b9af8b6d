"""`whatif --json`: what a program saves without some libraries, and whether it behaves as before."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.model.spread import Spread
from footprint.verbs.audit.json import process_target
from footprint.verbs.run.json import spread_json
from footprint.verbs.whatif.result import Compared, OwnerChange, WhatIf

__all__ = ("whatif_members",)


def whatif_members(found: WhatIf, version: str) -> Json:
    """Give both variants and what is between them."""
    audit = found.before.audit
    saving = found.per_process or found.private
    return envelope(version, audit.host, process_target(audit)) | {
        "whatif": _whatif(found),
        "changes": [_change(one) for one in found.changes],
        "behaviour": [_compared(one) for one in found.behaviour],
        "saving": {
            "predicted_bytes": found.predicted_bytes,
            "private_bytes": None if found.private is None else found.private.bytes,
            "kernel_bytes": found.kernel_bytes,
            "per_process_bytes": None if found.per_process is None else found.per_process.bytes,
            "count": found.count,
            "total_bytes": None if saving is None else found.count * saving.bytes,
        },
        "notes": note_rows(found.notes),
    }


def _whatif(found: WhatIf) -> Json:
    return {
        "command": [well_formed(word) for word in found.command],
        "dropped": [well_formed(name) for name in found.dropped],
        "users": [well_formed(name) for name in found.users],
        "leaves": [{"path": well_formed(one.path), "predicted_bytes": one.predicted_bytes} for one in found.leaving],
        "when": found.before.when,
        "moment": found.before.start.moment.value,
        "starts": found.before.start_count,
        "is_alike": found.is_alike,
        "original_private_bytes": found.original.audit.totals.private.bytes,
        "doubts": [well_formed(reason) for reason in found.doubts],
        "figures": {
            "private_bytes": _both(found.before.private, found.after.private),
            "per_process_bytes": _both(found.before.per_process, found.after.per_process),
        },
    }


def _both(before: Spread | None, after: Spread | None) -> Json:
    return {"before": spread_json(before), "after": spread_json(after)}


def _change(one: OwnerChange) -> Json:
    return {
        "owner": well_formed(one.owner),
        "before_bytes": one.before_bytes,
        "after_bytes": one.after_bytes,
        "predicted_bytes": one.predicted_bytes,
    }


def _compared(one: Compared) -> Json:
    return {
        "name": one.name,
        "verdict": one.verdict.value,
        "is_as_original": one.is_as_original,
        "size_bytes": one.size_bytes,
        "line": one.line,
        "before": None if one.before is None else well_formed(one.before),
        "after": None if one.after is None else well_formed(one.after),
    }
