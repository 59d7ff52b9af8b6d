"""`maps --json`."""

from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.verbs.maps.result import OwnedMap

__all__ = ("maps_members",)


def maps_members(owned: OwnedMap, version: str) -> Json:
    """Give every mapping with its owners and all counters that the text has."""
    rows: list[Json] = []
    each = iter(owned.held)
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
        held = next(each)
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
                "vm_flags": None if mapping.vm_flags is None else well_formed(mapping.vm_flags),
                "unknown_lines": [well_formed(line) for line in mapping.unknown_lines],
            }
        )
    target = {
        "name": well_formed(owned.target),
        "pid": owned.pid,
        "command": well_formed(owned.command),
        "source": owned.memory.dialect,
    }
    tables = {"footer": dict(owned.memory.footer), "mappings": rows, "notes": note_rows(owned.notes)}
    return envelope(version, owned.host, target) | tables
