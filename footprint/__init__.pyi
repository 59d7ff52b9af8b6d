# The types of what `footprint` offers; `__init__.py` loads each name where it is first used.

from footprint.elf.notes import DebugSearch
from footprint.elf.selection import Selection
from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, UsageError
from footprint.formats.words import Explanation, explain
from footprint.model.audit import Audit
from footprint.model.finding import Confidence, Finding
from footprint.model.over_time import RunFailure
from footprint.model.projection import Projection
from footprint.model.row import Evidence, MemoryKind, Row, Total, Totals
from footprint.process.capture import Captured
from footprint.release.budget import BudgetResult, Checked
from footprint.release.budget_file import Budgets, parse_budgets
from footprint.release.compare import Comparison, OwnerChange, RowChange
from footprint.release.history import History, Trend
from footprint.series.timeline import Timeline
from footprint.verbs.audit.call import audit, audit_group
from footprint.verbs.audit.mappings import OwnedMap, maps
from footprint.verbs.audit.survey_answer import Survey, survey
from footprint.verbs.capture.call import capture
from footprint.verbs.check.call import check, load_budgets
from footprint.verbs.check.gate import Gate, init
from footprint.verbs.diff.call import diff
from footprint.verbs.doctor.call import Diagnosis, doctor
from footprint.verbs.duplicates.call import Duplicates, duplicates
from footprint.verbs.fleet.call import Fleet, fleet
from footprint.verbs.heap.call import HeapProfiles, heap_profile
from footprint.verbs.libraries.call import Libraries, libraries
from footprint.verbs.run.call import run
from footprint.verbs.run.json import save
from footprint.verbs.run.result import RunResult
from footprint.verbs.scan.call import Scanned, scan
from footprint.verbs.symbols.call import FileSymbols, symbols
from footprint.verbs.trend.recording import Recorded, record, trend
from footprint.verbs.watch.call import replay, watch
from footprint.verbs.whatif.call import compare_builds, whatif
from footprint.verbs.whatif.result import BuildComparison, WhatIf

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
__version__: str
