"""Where the memory of a Linux process goes, and what N of them cost.

>>> import footprint
>>> audit = footprint.audit("pmap.txt", count=10_000)  # doctest: +SKIP
>>> audit.projection.total_bytes  # doctest: +SKIP
9953280000

The verbs are those of the command line; each returns frozen dataclasses. Nothing is read, and nothing heavy imported,
before one is called.
"""

TYPE_CHECKING = False  # what type checkers know: to import `typing` costs as much as to start Python

if TYPE_CHECKING:
    from typing import Any

    from footprint.elf.selection import Selection
    from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, UsageError
    from footprint.formats.words import explain
    from footprint.sources.debug_files import DebugSearch
    from footprint.verbs.audit.call import audit
    from footprint.verbs.audit.group import audit_group
    from footprint.verbs.capture.call import capture  # at run time __getattr__ does all this
    from footprint.verbs.check.call import check, load_budgets
    from footprint.verbs.diff.call import diff
    from footprint.verbs.doctor.call import doctor
    from footprint.verbs.duplicates.call import duplicates
    from footprint.verbs.heap.call import heap_profile
    from footprint.verbs.init.call import init
    from footprint.verbs.libraries.call import libraries
    from footprint.verbs.maps.call import maps
    from footprint.verbs.project.call import project, project_group
    from footprint.verbs.record.call import record
    from footprint.verbs.run.call import run
    from footprint.verbs.survey.call import survey
    from footprint.verbs.symbols.call import symbols
    from footprint.verbs.trend.call import trend
    from footprint.verbs.whatif.call import whatif

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
    "init",
    "libraries",
    "load_budgets",
    "maps",
    "project",
    "project_group",
    "record",
    "run",
    "survey",
    "symbols",
    "trend",
    "whatif",
)

# A name that is not here is the library call of a verb.
_HOMES = {
    "AccessError": "footprint.errors",
    "DebugSearch": "footprint.sources.debug_files",
    "FootprintError": "footprint.errors",
    "InputError": "footprint.errors",
    "Note": "footprint.errors",
    "Selection": "footprint.elf.selection",
    "UnsupportedError": "footprint.errors",
    "UsageError": "footprint.errors",
    "audit_group": "footprint.verbs.audit.group",
    "explain": "footprint.formats.words",
    "heap_profile": "footprint.verbs.heap.call",
    "load_budgets": "footprint.verbs.check.call",
    "project_group": "footprint.verbs.project.call",
}


def __getattr__(name: str) -> "Any":  # noqa: ANN401 # as varied as what the verbs are
    if name not in __all__:
        raise AttributeError(f"module 'footprint' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 # not for `import footprint` itself

    found = getattr(import_module(_HOMES.get(name, f"footprint.verbs.{name}.call")), name)
    globals()[name] = found
    return found
