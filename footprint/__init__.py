"""Where the memory of a Linux process goes, and what N of them cost.

>>> import footprint
>>> audit = footprint.audit("pmap.txt", count=10_000)  # doctest: +SKIP
>>> audit.projection.total_bytes  # doctest: +SKIP
9953280000

The verbs are those of the command line; each returns frozen dataclasses. Nothing is read, and nothing heavy imported,
before one is called.
"""

import importlib
from typing import TYPE_CHECKING, Any

# The verb `footprint.audit` has the name of the package that does its work. The package is imported first and its name
# taken back, because importing it later would put the module where the verb stands.
import footprint.audit
from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, UsageError

if TYPE_CHECKING:
    from footprint.elf.selection import Selection
    from footprint.verbs.capture import capture  # at run time __getattr__ does all this
    from footprint.verbs.check import check, load_budgets
    from footprint.verbs.debug_files import DebugSearch
    from footprint.verbs.diff import diff
    from footprint.verbs.doctor import doctor
    from footprint.verbs.duplicates import duplicates
    from footprint.verbs.groups import audit_group
    from footprint.verbs.heap import heap_profile
    from footprint.verbs.history import record, trend
    from footprint.verbs.processes import audit, maps, project  # noqa: TC004 # `audit` is a package here only
    from footprint.verbs.programs import libraries
    from footprint.verbs.run import run
    from footprint.verbs.survey import survey
    from footprint.verbs.symbols import symbols
    from footprint.verbs.whatif import whatif
    from footprint.words import explain

__version__ = "0.1.0"

__all__ = (
    "AccessError",
    "DebugSearch",
    "FootprintError",
    "InputError",
    "Note",
    "Selection",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "audit",
    "audit_group",
    "capture",
    "check",
    "diff",
    "doctor",
    "duplicates",
    "explain",
    "heap_profile",
    "libraries",
    "load_budgets",
    "maps",
    "project",
    "record",
    "run",
    "survey",
    "symbols",
    "trend",
    "whatif",
)

_HOMES = {
    "DebugSearch": "footprint.verbs.debug_files",
    "Selection": "footprint.elf.selection",
    "audit": "footprint.verbs.processes",
    "audit_group": "footprint.verbs.groups",
    "capture": "footprint.verbs.capture",
    "check": "footprint.verbs.check",
    "diff": "footprint.verbs.diff",
    "load_budgets": "footprint.verbs.check",
    "doctor": "footprint.verbs.doctor",
    "duplicates": "footprint.verbs.duplicates",
    "explain": "footprint.words",
    "heap_profile": "footprint.verbs.heap",
    "libraries": "footprint.verbs.programs",
    "maps": "footprint.verbs.processes",
    "project": "footprint.verbs.processes",
    "record": "footprint.verbs.history",
    "run": "footprint.verbs.run",
    "survey": "footprint.verbs.survey",
    "symbols": "footprint.verbs.symbols",
    "trend": "footprint.verbs.history",
    "whatif": "footprint.verbs.whatif",
}

if not TYPE_CHECKING:
    del audit, footprint


def __getattr__(name: str) -> Any:  # noqa: ANN401 # as varied as what the verbs are
    if name not in _HOMES:
        raise AttributeError(f"module 'footprint' has no attribute {name!r}")
    verb = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = verb
    return verb
