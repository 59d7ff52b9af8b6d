"""Rule `linked-twice`: one library, or one source file, that several objects of a process hold, or one object twice."""

from collections.abc import Iterable
from typing import Final

from footprint.elf.names import shown_name
from footprint.findings.copies import Cost
from footprint.findings.linked_twice import LinkedTwice
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.model.finding import Finding
from footprint.text.units import counted, first_of, format_bytes

_MOST_NAMED: Final = 3
_LONGEST_NAME: Final = 60


def _find(variables: Variables) -> tuple[Finding, ...]:
    return linked_twice_findings(variables.linked_twice)


RULE: Final = Rule(
    "linked-twice", "A library or source file that a process holds several times", (Fact.VARIABLES,), _find, rank=1
)


def linked_twice_findings(libraries: Iterable[LinkedTwice]) -> tuple[Finding, ...]:
    """Return what is linked in several times, and what to do about it."""
    return tuple([_finding(library) for library in libraries])


def _finding(linked: LinkedTwice) -> Finding:
    what = linked.library or first_of(linked.units or tuple(map(_short, linked.names)), _MOST_NAMED)
    where = first_of([file.rsplit("/", 1)[-1] for file in linked.files], _MOST_NAMED)
    number = counted(linked.copy_count, "copy")
    tables = counted(len(linked.names), "variable")
    message = f"{number} of {what}, in {where}: {tables} of {format_bytes(linked.size_bytes)} each time"
    wastes = ", ".join(f"{format_bytes(size)} {cost.value}" for cost, size in linked.waste.items())
    message += f"; all but one take {wastes}"
    # Each process has at least one thread.
    saving_bytes = linked.waste.get(Cost.AT_START, 0) + linked.waste.get(Cost.PER_THREAD, 0)
    reason = "variables of the same names and contents that stand together"
    if len(linked.files) == 1:
        remedy = "link it only once"
    elif linked.units or linked.library:
        remedy = "link it once, as a shared library that all of them need"
    else:
        remedy = "let one of the files hold it, and the others use it from there"
    if not linked.is_one_build:
        remedy = f"make sure that one build of it does for all; then {remedy}"
    kind = "across-files" if len(linked.files) > 1 else "within-file"
    return Finding(
        RULE.name,
        kind,
        what,
        message,
        saving_bytes,
        linked.confidence,
        (reason,),
        remedy,
        saving_per="thread" if linked.waste.keys() == {Cost.PER_THREAD} else "process",
        object=linked.files[0] if len(linked.files) == 1 else None,
        size_bytes=sum(linked.waste.values()),
    )


def _short(name: str) -> str:
    shown = shown_name(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 3]}..."
