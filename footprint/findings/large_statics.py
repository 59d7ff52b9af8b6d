"""Rule `large-static`: big buffers among the variables, those that nothing refers to, and zeros that the file holds.

A buffer in .bss costs nothing until it is touched, and then a page at a time: what counts is whether anything uses it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from footprint.elf import shown_name
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.initial import Initials
from footprint.elf.reads import only_reads
from footprint.elf.references import Place, Reference, can_be_told, references_to
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.findings.duplicate_statics import Cost, Lines, PrivateOf, cost_of
from footprint.model.finding import Confidence, Finding, Location
from footprint.units import first_of, format_bytes

__all__ = ("RULE", "large_ones", "large_statics")

RULE: Final = "large-static"

_OF_BUFFER: Final = "it costs the pages of it that are touched"
_ASK_PROCESS: Final = f"{_OF_BUFFER}; `audit PID` tells how many those are"
_MOST_NAMED: Final = 3
_MOST_LOOKED_FOR: Final = 512
_MOST_INSTRUCTIONS: Final = 4096
# An index that begins at 1, or a table of tables whose both do, begins so far before a variable.
_MOST_BEFORE_BYTES: Final = 1024


def large_statics(
    statics: Statics, declared: Lines | None = None, *, least_bytes: int = 4096, private_of: PrivateOf | None = None
) -> tuple[Finding, ...]:
    """Find the writable variables of a page and more, the largest first.

    Args:
        statics: The variables of a file.
        declared: Where the debug information says that each is declared; None without.
        least_bytes: The size from which on a variable is large.
        private_of: Of a file of a live process, what counts its private bytes.
    """
    large = large_ones(statics, least_bytes)
    users = _users(statics, [one for one in large if can_be_told(statics.image, one.size_bytes)][:_MOST_LOOKED_FOR])
    initials = Initials(statics)
    initials.prepare(large)
    found = [_finding(one, statics, users, initials, declared or {}) for one in large]
    if private_of is None:
        return tuple(found)
    return tuple([_with_private_bytes(finding, one, private_of) for finding, one in zip(found, large, strict=True)])


def _with_private_bytes(finding: Finding, static: Symbol, private_of: PrivateOf) -> Finding:
    private_bytes = private_of([(static.vaddr, static.vaddr + static.size_bytes)])
    if private_bytes is None:
        return finding
    part = format_bytes(private_bytes) if private_bytes else "none"
    reasons = tuple(_OF_BUFFER if one == _ASK_PROCESS else one for one in finding.reasons)
    message = f"{finding.message}; {part} of it is private now"
    return replace(finding, message=message, reasons=reasons, private_bytes=private_bytes)


def large_ones(statics: Statics, least_bytes: int = 4096) -> list[Symbol]:
    """Give the writable variables from a size on, the largest first."""
    sections = statics.image.sections
    large = [
        one
        for one in statics.statics
        if one.size_bytes >= least_bytes and not one.is_tls and sections[one.section_index].is_writable
    ]
    return sorted(large, key=lambda one: (-one.size_bytes, one.name))


class _Users:
    """Who refers to each variable, where that can be told: functions, and whether a table or the loader does."""

    def __init__(
        self, alive: dict[int, tuple[str, ...]], dead: dict[int, tuple[str, ...]], told: set[int], read: set[int]
    ) -> None:
        self.alive = alive
        self.dead = dead
        self.told = told
        self.read = read


def _users(statics: Statics, large: Sequence[Symbol]) -> _Users:
    """Find the functions that refer to variables, and which of these nothing refers to."""
    nobody = _Users({}, {}, set(), set())
    if not large:
        return nobody
    ordered = sorted(large, key=lambda one: one.vaddr)
    starts = sorted(one.vaddr for one in statics.statics if not one.is_tls)
    try:
        places = [_place(one, starts) for one in ordered]
        found = references_to(statics.image, places, starts)
        exported = _exported(statics)
        by_function = {
            one.vaddr: _functions(statics, references) for one, references in zip(ordered, found, strict=True)
        }
        for vaddr in exported & by_function.keys():
            # Another object may use it.
            by_function[vaddr][None] = False
        read = {
            place.start_vaddr
            for place, references in zip(places, found, strict=True)
            if place.start_vaddr not in exported and _is_only_read(statics, place, references)
        }
        functions = sorted({one for users in by_function.values() for one in users if one}, key=lambda one: one.vaddr)
        code = [Place(one.vaddr, one.vaddr + one.size_bytes, is_code=True) for one in functions]
        called = {
            one.vaddr
            for one, references in zip(functions, references_to(statics.image, code), strict=True)
            # What refers to itself only is never begun.
            if one.vaddr in exported
            or any(not one.vaddr <= each.vaddr < one.vaddr + one.size_bytes for each in references)
        }
    except FootprintError:
        return nobody
    alive, dead = {}, {}
    for vaddr, users in by_function.items():
        # One that only may be meant keeps the variable alive, but is not named for it.
        named = {one: one.name if one and is_sure else "" for one, is_sure in users.items()}
        alive[vaddr] = tuple(sorted(name for one, name in named.items() if not one or one.vaddr in called))
        dead[vaddr] = tuple(sorted(name for one, name in named.items() if one and one.vaddr not in called))
    return _Users(alive, dead, set(by_function), read)


def _is_only_read(statics: Statics, place: Place, references: Sequence[Reference]) -> bool:
    """Tell whether each instruction that may lead to a variable surely only reads it, and nothing else leads there."""
    references = [one for one in references if not one.is_far]
    if not 0 < len(references) <= _MOST_INSTRUCTIONS:
        return False
    low, high = place.start_vaddr - place.before_bytes, place.end_vaddr + place.behind_bytes
    return all(one.vaddr and only_reads(statics.image, one.vaddr, low, high) for one in references)


def _functions(statics: Statics, references: Iterable[Reference]) -> dict[Symbol | None, bool]:
    """Give the functions in which references stand, and whether one of these is sure; None for code without a name."""
    found: dict[Symbol | None, bool] = {}
    for one in references:
        function = statics.function_at(one.vaddr) if one.vaddr else None
        found[function] = found.get(function, False) or one.is_sure
    return found


def _place(static: Symbol, starts: Sequence[int]) -> Place:
    """Give the addresses that may mean a variable: those before its first and behind its last, if no other has them."""
    number = bisect_left(starts, static.vaddr)
    before_bytes = min(_MOST_BEFORE_BYTES, static.vaddr - starts[number - 1] - 1) if number else _MOST_BEFORE_BYTES
    past_vaddr = static.vaddr + static.size_bytes
    is_followed = number + 1 < len(starts) and starts[number + 1] == past_vaddr
    return Place(
        static.vaddr, past_vaddr, is_code=False, before_bytes=max(0, before_bytes), behind_bytes=not is_followed
    )


def _exported(statics: Statics) -> frozenset[int]:
    """Give the addresses of the functions and variables that other objects can find."""
    return read_dynamic_symbols(statics.image).vaddrs(statics.image)


def _finding(
    static: Symbol,
    statics: Statics,
    users: _Users,
    initials: Initials,
    declared: Lines,
) -> Finding:
    name = shown_name(static.name)
    section = statics.image.sections[static.section_index]
    path = statics.image.file
    owner = path.rsplit("/", 1)[-1]
    message = f"{name} takes {format_bytes(static.size_bytes)} of {section.name} of {owner}"
    at = declared.get((False, static.vaddr))
    location = Location(at.file, at.line) if at else None
    alive, dead = users.alive.get(static.vaddr, ()), users.dead.get(static.vaddr, ())
    if static.vaddr in users.told and not alive:
        if dead:
            certain = [name for name in dead if name]
            whom = f"{_listed(certain)}, which nothing calls" if certain else "functions that nothing calls"
            message += f", only for {whom}"
            reason = "no code or table outside of these functions refers to it"
        else:
            message += ", and nothing refers to it"
            reason = "no code, table or relocation leads to it"
        return Finding(
            RULE,
            "dead-code",
            name,
            message,
            0,
            Confidence.HIGH,
            (reason,),
            "remove it, or link with -ffunction-sections -fdata-sections -Wl,--gc-sections",
            (),
            location,
            object_path=path,
        )
    named = tuple(one for one in alive if one)
    if named:
        message += f", for {_listed(named)}"
    initial = initials.of(static)
    if section.has_file_bytes and initial is not None and initial.raw is not None and initial.is_blank:
        reason = "all its bytes are zeros, and they are read from the file"
        remedy = "leave out its initialiser: in .bss it costs nothing until it is touched"
        sure = Confidence.HIGH
        return Finding(RULE, "zero-filled", name, message, 0, sure, (reason,), remedy, (), location, object_path=path)
    is_written_at_start = initials.is_relocated(static) or cost_of(statics.image, section) is not Cost.WHEN_TOUCHED
    if static.vaddr in users.read and section.has_file_bytes and not is_written_at_start:
        reason = "each instruction that leads to it only reads it, and no table or relocation does"
        remedy = "declare it `const`: in .rodata it is never private"
        likely = Confidence.MEDIUM
        return Finding(
            RULE, "could-be-const", name, message, 0, likely, (reason,), remedy, (), location, object_path=path
        )
    remedy = "make it as small as what is used of it, or allocate it when it is needed"
    reasons = (_ASK_PROCESS,)
    return Finding(RULE, "buffer", name, message, 0, Confidence.LOW, reasons, remedy, (), location, object_path=path)


def _listed(names: Sequence[str]) -> str:
    return first_of([*map(shown_name, names[:_MOST_NAMED]), *names[_MOST_NAMED:]], _MOST_NAMED)
