"""A report as JSON, schema `footprint/1`: integers are bytes, additions keep the number, a change of meaning raises it.

The schema stands beside this file and ships in the package.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from footprint.audit.audit import Audit, Total
from footprint.audit.layout import OwnedMap
from footprint.audit.ledger import Row
from footprint.audit.measured import held_bytes
from footprint.audit.projection import Projection
from footprint.elf import Contents, shown_name
from footprint.errors import Note
from footprint.report.escape import well_formed

__all__ = ("SCHEMA_PATH", "audit_json", "maps_json", "projection_json", "symbols_json")

SCHEMA: Final = "footprint/1"
SCHEMA_PATH: Final = Path(__file__).with_name("footprint-1.schema.json")
_BINDINGS: Final = {0: "local", 1: "global", 2: "weak", 10: "unique"}

Json = dict[str, Any]


def audit_json(audit: Audit, version: str) -> str:
    """Write a whole audit."""
    return _write(
        _envelope(version, audit.host, _audit_target(audit))
        | {
            "totals": _totals(audit),
            "ledger": [_row(row) for row in audit.ledger],
            "projection": _projection(audit.projection),
            "findings": [],
            "notes": _notes(audit.notes),
        }
    )


def projection_json(audit: Audit, version: str) -> str:
    """Write what N processes cost, with the totals it is made of."""
    return _write(
        _envelope(version, audit.host, _audit_target(audit))
        | {
            "totals": _totals(audit),
            "projection": _projection(audit.projection),
            "notes": _notes(audit.notes),
        }
    )


def symbols_json(files: Sequence[Contents], notes: Sequence[Note], version: str) -> str:
    """Write what the writable memory of files holds: the variables, and the sections with what no symbol names."""
    sections: list[Json] = []
    symbols: list[Json] = []
    for contents in files:
        file = well_formed(contents.file)
        for one in contents.sections:
            section = well_formed(one.section.name)
            sections.append(
                {
                    "file": file,
                    "section": section,
                    "kind": one.kind.value,
                    "vaddr": one.section.vaddr,
                    "size_bytes": one.size_bytes,
                    "named_bytes": one.named_bytes,
                    "residue": {cause.value: size_bytes for cause, size_bytes in one.residue_bytes.items()},
                    "overlap_bytes": one.overlap.lost_bytes,
                    "symbols_from": contents.symbols_from,
                }
            )
            symbols.extend(
                {
                    "file": file,
                    "section": section,
                    "kind": one.kind.value,
                    "symbol": well_formed(variable.name),
                    "name": well_formed(shown_name(variable.name)),
                    "aliases": [well_formed(name) for name in variable.aliases],
                    "section_offset": variable.offset,
                    "size_bytes": variable.size_bytes,
                    "binding": _BINDINGS.get(variable.binding, str(variable.binding)),
                }
                for variable in one.variables
            )
    symbols.sort(key=lambda row: (-row["size_bytes"], row["symbol"], row["file"]))
    target = {"files": [well_formed(contents.file) for contents in files]}
    return _write(_envelope(version, {}, target) | {"sections": sections, "symbols": symbols, "notes": _notes(notes)})


def maps_json(owned: OwnedMap, version: str) -> str:
    """Write every mapping with its owners and all counters that the text has."""
    rows: list[Json] = []
    previous = None
    for part in owned.parts:
        mapping = part.mapping
        owner = {
            "owner": well_formed(part.owner),
            "kind": part.kind.value,
            "start_addr": part.start_addr,
            "end_addr": part.end_addr,
            "attribution": part.attribution.value,
        }
        if mapping is previous:
            rows[-1]["owners"].append(owner)
            continue
        previous = mapping
        held = held_bytes(mapping)
        rows.append(
            {
                "start_addr": mapping.start_addr,
                "end_addr": mapping.end_addr,
                "permissions": mapping.permissions,
                "offset": mapping.offset,
                "device": mapping.device,
                "inode": mapping.inode,
                "name": well_formed(mapping.name),
                "owners": [owner],
                "private_bytes": held.private_bytes,
                "shared_bytes": held.shared_bytes,
                "evidence": held.evidence.value,
                "counters": dict(zip(mapping.counters.keys, mapping.counters.values, strict=False)),
                "vm_flags": mapping.vm_flags,
                "unknown_lines": [well_formed(line) for line in mapping.unknown_lines],
            }
        )
    target = {
        "name": well_formed(owned.target),
        "pid": owned.pid,
        "command": well_formed(owned.command),
        "source": owned.memory.dialect,
    }
    tables = {"footer": owned.memory.footer, "mappings": rows, "notes": _notes(owned.notes)}
    return _write(_envelope(version, {}, target) | tables)


def _envelope(version: str, host: dict[str, str], target: Json) -> Json:
    return {"schema": SCHEMA, "tool": {"name": "footprint", "version": version}, "host": host, "target": target}


def _audit_target(audit: Audit) -> Json:
    return {
        "name": well_formed(audit.target),
        "pid": audit.pid,
        "command": well_formed(audit.command),
        "source": audit.source,
        "is_live": audit.is_live,
        "mapping_count": audit.mapping_count,
        "page_bytes": audit.page_bytes,
    }


def _totals(audit: Audit) -> Json:
    totals = audit.totals
    named: dict[str, Total] = {
        "private_bytes": totals.private,
        "kernel_bytes": totals.kernel,
        "per_process_bytes": totals.per_process,
        "shared_once_bytes": totals.shared_once,
        "shared_with_relatives_bytes": totals.shared_with_relatives,
        "mapped_writable_bytes": totals.mapped_writable,
        "mapped_shared_bytes": totals.mapped_shared,
        "mapped_bytes": totals.mapped,
        "floor_bytes": totals.floor,
        "ceiling_bytes": totals.ceiling,
    }
    figures: Json = {name: total.bytes for name, total in named.items()}
    evidence = {name: total.evidence.value for name, total in named.items() if total.bytes is not None}
    return figures | {"evidence": evidence}


def _row(row: Row) -> Json:
    shown = shown_name(row.symbol) if row.symbol is not None else row.name
    return {
        "owner": well_formed(row.owner),
        "kind": row.kind.value,
        "section": None if row.section is None else well_formed(row.section),
        "symbol": None if row.symbol is None else well_formed(row.symbol),
        "name": None if shown is None else well_formed(shown),
        "bytes": row.bytes,
        "mapped_bytes": row.mapped_bytes,
        "shared_bytes": row.shared_bytes,
        "pages": row.pages,
        "is_writable": row.is_writable,
        "evidence": row.evidence.value,
        "attribution": row.attribution.value,
    }


def _projection(projection: Projection) -> Json:
    return {
        "count": projection.count,
        "per_process_bytes": projection.per_process_bytes,
        "shared_once_bytes": projection.shared_once_bytes,
        "total_bytes": projection.total_bytes,
        "basis": projection.basis.value,
        "memory_bytes": projection.memory_bytes,
        "evidence": projection.evidence.value,
    }


def _notes(notes: Iterable[Note]) -> list[Json]:
    return [
        {"slug": note.slug, "subject": well_formed(note.subject), "detail": well_formed(note.detail)} for note in notes
    ]


def _write(envelope: Json) -> str:
    """Write one row of a table a line: a table of 30,000 rows stays quick to write, and can be read by eye."""
    encode = json.JSONEncoder(separators=(", ", ": ")).encode
    members = []
    for key, value in envelope.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(map(encode, value)) + "\n]"
        else:
            text = encode(value)
        members.append(f"{encode(key)}: {text}")
    return "{" + ",\n".join(members) + "}\n"
