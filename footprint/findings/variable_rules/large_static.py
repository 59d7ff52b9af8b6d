"""Rule `large-static`: large writable variables, among them those whose zeros the file holds.

A buffer in .bss costs nothing until it is touched, and then one page at a time.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from footprint.elf import shown_name
from footprint.elf.initial import Initials
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.findings.copies import Lines, PrivateOf
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.units import format_bytes

__all__ = ("RULE", "large_ones", "large_statics")

_OF_BUFFER: Final = "it costs the pages of it that are touched"
_ASK_PROCESS: Final = f"{_OF_BUFFER}; `audit PID` tells how many those are"


def _find(variables: Variables) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for file in variables.files:
        # If the relocations of large variables are damaged, the rest of the answer stands.
        with suppress(FootprintError):
            found += large_statics(file.statics, file.declared, private_of=file.private_of)
    return tuple(found)


RULE: Final = Rule(
    "large-static", "A large variable that could be smaller or elsewhere", (Fact.VARIABLES,), _find, rank=2
)


def large_statics(
    statics: Statics, declared: Lines | None = None, *, private_of: PrivateOf | None = None
) -> tuple[Finding, ...]:
    """Find the writable variables of a page and more, the largest first.

    Args:
        statics: The variables of a file.
        declared: Where the debug information says that each is declared; None without.
        private_of: Counts the private bytes of the file in a live process.
    """
    large = large_ones(statics)
    initials = Initials(statics)
    initials.prepare(large)
    found = [_finding(one, statics, initials, declared or {}) for one in large]
    if private_of is None:
        return tuple(found)
    return tuple([_with_private_bytes(finding, one, private_of) for finding, one in zip(found, large, strict=True)])


def large_ones(statics: Statics, least_bytes: int = 4096) -> list[Symbol]:
    """Return the writable variables of at least this size, the largest first."""
    sections = statics.image.sections
    large = [
        one
        for one in statics.statics
        if one.size_bytes >= least_bytes and not one.is_tls and sections[one.section_index].is_writable
    ]
    return sorted(large, key=lambda one: (-one.size_bytes, one.name))


def _with_private_bytes(finding: Finding, static: Symbol, private_of: PrivateOf) -> Finding:
    private_bytes = private_of([(static.vaddr, static.vaddr + static.size_bytes)])
    if private_bytes is None:
        return finding
    part = format_bytes(private_bytes) if private_bytes else "none"
    reasons = tuple(_OF_BUFFER if one == _ASK_PROCESS else one for one in finding.reasons)
    message = f"{finding.message}; {part} of it is private now"
    return replace(finding, message=message, reasons=reasons, private_bytes=private_bytes)


def _finding(static: Symbol, statics: Statics, initials: Initials, declared: Lines) -> Finding:
    name = shown_name(static.name)
    section = statics.image.sections[static.section_index]
    path = statics.image.file
    at = declared.get((False, static.vaddr))
    initial = initials.of(static)
    if section.has_file_bytes and initial is not None and initial.raw is not None and initial.is_blank:
        kind, confidence = "zero-filled", Confidence.HIGH
        reason = "all its bytes are zeros, and they are read from the file"
        remedy = "leave out its initialiser: in .bss it costs nothing until it is touched"
    else:
        kind, confidence, reason = "buffer", Confidence.LOW, _ASK_PROCESS
        remedy = "make it as small as what is used of it, or allocate it when it is needed"
    return Finding(
        RULE.name,
        kind,
        name,
        message=f"{name} takes {format_bytes(static.size_bytes)} of {section.name} of {path.rsplit('/', 1)[-1]}",
        saving_bytes=0,
        confidence=confidence,
        reasons=(reason,),
        remedy=remedy,
        location=SourceLocation(at.file, at.line) if at else None,
        object_path=path,
    )
