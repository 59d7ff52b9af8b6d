"""Where the memory of a Linux process goes, and what N of them cost.

>>> import footprint
>>> audit = footprint.audit("pmap.txt", count=10_000)  # doctest: +SKIP
>>> audit.projection.total_bytes  # doctest: +SKIP
9953280000

The verbs are those of the command line; each returns frozen dataclasses. Nothing is read, and nothing heavy imported,
before one is called.
"""

# Type checkers read the names from `__init__.pyi`, so that nothing of them is loaded here.
__version__ = "0.1.0"

__all__ = (
    "AccessError",
    "Audit",
    "BudgetResult",
    "Budgets",
    "BuildComparison",
    "Captured",
    "Checked",
    "Comparison",
    "Confidence",
    "DebugSearch",
    "Diagnosis",
    "Duplicates",
    "Evidence",
    "Explanation",
    "FileSymbols",
    "Finding",
    "Fleet",
    "FootprintError",
    "Gate",
    "HeapProfiles",
    "History",
    "InputError",
    "Libraries",
    "MemoryKind",
    "Note",
    "OwnedMap",
    "OwnerChange",
    "Projection",
    "Recorded",
    "Row",
    "RowChange",
    "RunFailure",
    "RunResult",
    "Scanned",
    "Selection",
    "Survey",
    "Timeline",
    "Total",
    "Totals",
    "Trend",
    "UnsupportedError",
    "UsageError",
    "WhatIf",
    "__version__",
    "audit",
    "audit_group",
    "capture",
    "check",
    "compare_builds",
    "diff",
    "doctor",
    "duplicates",
    "explain",
    "fleet",
    "heap_profile",
    "init",
    "libraries",
    "load_budgets",
    "maps",
    "parse_budgets",
    "record",
    "replay",
    "run",
    "save",
    "scan",
    "survey",
    "symbols",
    "trend",
    "watch",
    "whatif",
)

# A name that is not here is the library call of a verb.
_HOMES = {
    "AccessError": "footprint.errors",
    "Audit": "footprint.model.audit",
    "BudgetResult": "footprint.release.budget",
    "Budgets": "footprint.release.budget_file",
    "BuildComparison": "footprint.verbs.whatif.result",
    "Captured": "footprint.process.capture",
    "Checked": "footprint.release.budget",
    "Comparison": "footprint.release.compare",
    "Confidence": "footprint.model.finding",
    "DebugSearch": "footprint.elf.notes",
    "Diagnosis": "footprint.verbs.doctor.call",
    "Duplicates": "footprint.verbs.duplicates.call",
    "Evidence": "footprint.model.row",
    "Explanation": "footprint.formats.words",
    "FileSymbols": "footprint.verbs.symbols.call",
    "Finding": "footprint.model.finding",
    "Fleet": "footprint.verbs.fleet.call",
    "FootprintError": "footprint.errors",
    "Gate": "footprint.verbs.check.gate",
    "HeapProfiles": "footprint.verbs.heap.call",
    "History": "footprint.release.history",
    "InputError": "footprint.errors",
    "Libraries": "footprint.verbs.libraries.call",
    "MemoryKind": "footprint.model.row",
    "Note": "footprint.errors",
    "OwnedMap": "footprint.verbs.audit.mappings",
    "OwnerChange": "footprint.release.compare",
    "Projection": "footprint.model.projection",
    "Recorded": "footprint.verbs.trend.recording",
    "Row": "footprint.model.row",
    "RowChange": "footprint.release.compare",
    "RunFailure": "footprint.model.over_time",
    "RunResult": "footprint.verbs.run.result",
    "Scanned": "footprint.verbs.scan.call",
    "Selection": "footprint.elf.selection",
    "Survey": "footprint.verbs.audit.survey_answer",
    "Timeline": "footprint.series.timeline",
    "Total": "footprint.model.row",
    "Totals": "footprint.model.row",
    "Trend": "footprint.release.history",
    "UnsupportedError": "footprint.errors",
    "UsageError": "footprint.errors",
    "WhatIf": "footprint.verbs.whatif.result",
    "audit_group": "footprint.verbs.audit.call",
    "compare_builds": "footprint.verbs.whatif.call",
    "explain": "footprint.formats.words",
    "heap_profile": "footprint.verbs.heap.call",
    "init": "footprint.verbs.check.gate",
    "load_budgets": "footprint.verbs.check.call",
    "maps": "footprint.verbs.audit.mappings",
    "parse_budgets": "footprint.release.budget_file",
    "record": "footprint.verbs.trend.recording",
    "replay": "footprint.verbs.watch.call",
    "save": "footprint.verbs.run.json",
    "survey": "footprint.verbs.audit.survey_answer",
    "trend": "footprint.verbs.trend.recording",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'footprint' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 # not for `import footprint` itself

    member = getattr(import_module(_HOMES.get(name, f"footprint.verbs.{name}.call")), name)
    if not isinstance(member, type):
        from footprint.system.limits import answer  # noqa: PLC0415 # as above

        member = answer(member)
    globals()[name] = member
    return member
