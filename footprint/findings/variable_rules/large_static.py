"""Rule `large-static`: large writable variables, those that only dead code uses, and those whose zeros the file holds.

A buffer in .bss costs nothing until it is touched, and then one page at a time.
"""

from collections.abc import Container, Iterable
from contextlib import suppress
from typing import Final

from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import Image
from footprint.elf.initial import Initials
from footprint.elf.names import shown_name
from footprint.elf.references import Reference, ReferencedPlace, can_find_references, find_references, place_of_variable
from footprint.elf.sameness import is_of_compiler
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.findings.copies import Lines, PrivateOf
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.members import NamedTuple, replace
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.text.units import first_of, format_bytes

_OF_BUFFER: Final = "it costs the pages of it that are touched"
_ASK_PROCESS: Final = f"{_OF_BUFFER}; `audit PID` tells how many those are"
# gcc and clang make one for a static array. It walks the array from its end, which is where the next variable begins.
_DESTRUCTORS: Final = ("__tcf_", "__cxx_global_array_dtor")
_MOST_NAMED: Final = 3
_MOST_SEARCHED: Final = 512


def _find(variables: Variables) -> tuple[Finding, ...]:
    return variables.search(large_statics)


RULE: Final = Rule(
    "large-static", "A large variable that could be smaller or elsewhere", (Fact.VARIABLES,), _find, rank=2
)


class _Users(NamedTuple):
    """The users of a variable.

    Attributes:
        is_needed: Whether a function that something calls may use it, or a table, the loader or another object.
        is_referenced: Whether any code or table may refer to it.
        names: The functions that certainly refer to it; if it is needed, only those that something calls. Destructors
            that the compiler made are left out where there are others.
    """

    is_needed: bool
    is_referenced: bool
    names: tuple[str, ...]


def large_statics(
    statics: Statics, declared: Lines | None = None, private_of: PrivateOf | None = None
) -> tuple[Finding, ...]:
    """Find the writable variables of a page and more, the largest first."""
    large = large_ones(statics)
    users: dict[int, _Users] = {}
    # If other tables are damaged, the variables stand without their users.
    with suppress(FootprintError):
        users = _find_users(statics, large)
    initials = Initials(statics)
    initials.prepare(large)
    findings = [_finding(s, statics, users.get(s.vaddr), initials, declared or {}) for s in large]
    if private_of is None:
        return tuple(findings)
    return tuple([_with_private_bytes(finding, s, private_of) for finding, s in zip(findings, large, strict=True)])


def large_ones(statics: Statics, least_bytes: int = 4096) -> list[Symbol]:
    """Return the writable variables of at least this size, the largest first."""
    sections = statics.image.sections
    large = [
        static
        for static in statics.statics
        if static.size_bytes >= least_bytes and not static.is_tls and sections[static.section_index].is_writable
    ]
    return sorted(large, key=lambda static: (-static.size_bytes, static.name))


def _with_private_bytes(finding: Finding, static: Symbol, private_of: PrivateOf) -> Finding:
    private_bytes = private_of([(static.vaddr, static.vaddr + static.size_bytes)])
    if private_bytes is None:
        return finding
    part = format_bytes(private_bytes) if private_bytes else "none"
    reasons = tuple(_OF_BUFFER if reason == _ASK_PROCESS else reason for reason in finding.reasons)
    message = f"{finding.message}; {part} of it is private now"
    return replace(finding, message=message, reasons=reasons, private_bytes=private_bytes)


def _finding(static: Symbol, statics: Statics, users: _Users | None, initials: Initials, declared: Lines) -> Finding:
    name = shown_name(static.name)
    section = statics.image.sections[static.section_index]
    path = statics.image.file
    at = declared.get((False, static.vaddr))
    initial = initials.of(static)
    if users is not None and not users.is_needed:
        kind, confidence = "dead-code", Confidence.HIGH
        reason = "no code, table or relocation refers to it"
        if users.is_referenced:
            reason = "no code or table outside of these functions refers to it"
        remedy = "remove it, or link with -ffunction-sections -fdata-sections -Wl,--gc-sections"
    elif (
        is_of_compiler(section)
        and section.has_file_bytes
        and initial is not None
        and initial.raw is not None
        and initial.is_blank
    ):
        kind, confidence = "zero-filled", Confidence.HIGH
        reason = "all its bytes are zeros, and they are read from the file"
        remedy = "leave out its initialiser: in .bss it costs nothing until it is touched"
    else:
        kind, confidence, reason = "buffer", Confidence.LOW, _ASK_PROCESS
        remedy = "make it as small as what is used of it, or allocate it when it is needed"
    size = format_bytes(static.size_bytes)
    return Finding(
        RULE.name,
        kind,
        name,
        message=f"{name} takes {size} of {section.name} of {path.rsplit('/', 1)[-1]}{_purpose(users)}",
        saving_bytes=0,
        confidence=confidence,
        reasons=(reason,),
        remedy=remedy,
        location=SourceLocation(at.file, at.line) if at else None,
        object=path,
        size_bytes=static.size_bytes,
    )


def _purpose(users: _Users | None) -> str:
    """Return the words that name the users of a variable, to follow the message."""
    if users is None:
        return ""
    names = users.names
    listed = first_of([*map(shown_name, names[:_MOST_NAMED]), *names[_MOST_NAMED:]], _MOST_NAMED)
    if users.is_needed:
        return f", for {listed}" if names else ""
    if not users.is_referenced:
        return ", and nothing refers to it"
    return f", only for {listed}, which nothing calls" if names else ", only for functions that nothing calls"


def _find_users(statics: Statics, large: Iterable[Symbol]) -> dict[int, _Users]:
    """Find the users of variables, by the vaddr of each variable; those with unknown users are left out.

    Raises:
        InputError: Where a table or segment is damaged.
    """
    searched = [s for s in large if can_find_references(statics.image, s.size_bytes)][:_MOST_SEARCHED]
    if not searched:
        return {}
    starts = sorted(static.vaddr for static in statics.statics if not static.is_tls)
    searched.sort(key=lambda s: s.vaddr)
    places = [place_of_variable(static, starts) for static in searched]
    users_found = [_functions(statics, r) for r in find_references(statics.image, places, starts)]
    exported = read_dynamic_symbols(statics.image).vaddrs(statics.image)
    called = _called(statics.image, {user for users in users_found for user in users if user is not None}, exported)
    users: dict[int, _Users] = {}
    sections = statics.image.sections
    for static, place, functions in zip(searched, places, users_found, strict=True):
        # All variables of a section that the source names may be reached from its start.
        is_exported = place.start_vaddr in exported or not is_of_compiler(sections[static.section_index])
        is_needed = is_exported or any(function is None or function in called for function in functions)
        names = [
            function.name
            for function, is_sure in functions.items()
            if function is not None and is_sure and (function in called or not is_needed)
        ]
        named = [name for name in names if not name.startswith(_DESTRUCTORS)] or names
        users[place.start_vaddr] = _Users(is_needed, is_exported or bool(functions), tuple(sorted(named)))
    return users


def _functions(statics: Statics, references: Iterable[Reference]) -> dict[Symbol | None, bool]:
    """Return the functions that hold references, and whether one of these is sure; None for anything else."""
    sure_by_function: dict[Symbol | None, bool] = {}
    for reference in references:
        function = statics.functions.at(reference.vaddr) if reference.vaddr else None
        if function is not None and not function.size_bytes:
            # The code of a label without a size may be reached from the code before it.
            function = None
        sure_by_function[function] = sure_by_function.get(function, False) or reference.is_sure
    return sure_by_function


def _called(image: Image, functions: Iterable[Symbol], exported: Container[int]) -> frozenset[Symbol]:
    """Return the functions that other objects can find, or that something outside of them refers to."""
    ordered = sorted(functions, key=lambda function: function.vaddr)
    places = [ReferencedPlace(f.vaddr, f.vaddr + f.size_bytes, is_code=True) for f in ordered]
    return frozenset(
        [
            function
            for function, place, references in zip(ordered, places, find_references(image, places), strict=True)
            if function.vaddr in exported
            or any(not place.start_vaddr <= reference.vaddr < place.end_vaddr for reference in references)
        ]
    )
