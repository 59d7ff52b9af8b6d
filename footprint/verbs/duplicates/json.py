"""`duplicates --json`."""

from footprint.elf import shown_name
from footprint.findings.copies import CopiedVariable
from footprint.formats.escape import well_formed
from footprint.formats.findings_json import finding_rows
from footprint.formats.json import Json, envelope, note_rows
from footprint.verbs.duplicates.result import Duplicates

__all__ = ("duplicates_members",)


def duplicates_members(found: Duplicates, version: str, count: int) -> Json:
    """Give what files hold several times."""
    target = {"names": [well_formed(target) for target in found.targets], "pid": found.pid}
    twice = [
        {
            "files": [well_formed(file) for file in one.files],
            "library": one.library,
            "units": [well_formed(unit) for unit in one.units],
            "symbols": [well_formed(name) for name in one.names],
            "size_bytes": one.size_bytes,
            "copy_count": one.copy_count,
            "waste_bytes": one.waste_bytes,
            "waste_by_cost": {cost.value: size_bytes for cost, size_bytes in one.waste.items()},
        }
        for one in found.linked_twice
    ]
    return envelope(version, {}, target) | {
        "files": [
            {
                "file": well_formed(one.file),
                "variable_count": one.variable_count,
                "unit_count": one.unit_count,
                "debug_file": None if one.debug_file is None else well_formed(one.debug_file),
                "waste_bytes": sum(copies.waste_bytes for copies in one.copies),
                "initialiser_count": one.initialisers.function_count,
                "initialiser_bytes": one.initialisers.code_bytes,
            }
            for one in found.files
        ],
        "duplicates": [_row(one, file.file) for file in found.files for one in file.copies],
        "linked_twice": twice,
        "count": count,
        "findings": finding_rows(found.findings, count),
        "notes": note_rows(found.notes),
    }


def _row(one: CopiedVariable, file: str) -> Json:
    return {
        "file": well_formed(file),
        "symbol": well_formed(one.name),
        "name": well_formed(shown_name(one.name)),
        "section": well_formed(one.section),
        "size_bytes": one.size_bytes,
        "copy_count": len(one.copies),
        "waste_bytes": one.waste_bytes,
        "private_bytes": one.private_bytes,
        "cost": one.cost.value,
        "origin": one.origin.value,
        "confidence": one.confidence.value,
        "reasons": list(one.reasons),
        "units": [well_formed(unit) for unit in one.units],
        "function": None if one.function is None else well_formed(one.function),
        "vaddrs": [copy.vaddr for copy in one.copies],
        "location": None
        if one.location is None
        else {"file": well_formed(one.location.file), "line": one.location.line},
    }
