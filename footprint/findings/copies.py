"""Copies of one variable in a file: data that exists once for each source file, such as what a header defines.

Names prove little: half of the statics of one name are different things. Variables count as copies where the debug
information says that one line of a header declares them all, or where they begin with the same bytes and point to the
same things.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Annotated, Final, NamedTuple

from footprint.dwarf.standards import LanguageStandard
from footprint.elf import PT_GNU_RELRO, Image, abi, shown_name
from footprint.elf.image import Section
from footprint.elf.initial import Initial, Initials
from footprint.elf.names import normalised, source_name
from footprint.elf.statics import NO_INITIALISERS, Initialisers, Statics
from footprint.elf.symbols import Symbol
from footprint.members import Address, Bounds, json_members
from footprint.model.finding import CONFIDENCES, Confidence, SourceLocation

__all__ = (
    "ARTEFACT",
    "DEAREST_FIRST",
    "LEAST_TELLING_BYTES",
    "THREAD_GUARD",
    "UNNAMED",
    "CopiedVariable",
    "CopyOrigin",
    "Cost",
    "Declared",
    "Lines",
    "PrivateOf",
    "candidates",
    "cost_of",
    "find_copies",
    "is_mutable",
    "with_private_bytes",
)

# Symbols that compilers make for themselves, and what glibc lists in sets: each of them must stay where it is.
ARTEFACT: Final = re.compile(
    r"(?:CSWTCH|C|__const|__compound_literal|switch\.table|reltable|DW\.ref)\.|\.L|__elf_set_"
    r"|(?:_ZZ.*E\d+)?__(?:func|FUNCTION|PRETTY_FUNCTION)__"
    r"|completed(?:\.|$)|(?:__TMC_END__|__frame_dummy_init_array_entry|__do_global_dtors_aux_fini_array_entry|__dso_handle"
    r"|__FRAME_END__|__EH_FRAME_BEGIN__|__CTOR_|__DTOR_|__JCR_|__exidx_|_nl_current_.*_used)"
)
# Smaller variables often have the same contents by chance.
LEAST_TELLING_BYTES: Final = 16
_STREAM_INIT: Final = "_ZStL8__ioinit"
# gcc and clang order the words differently: `long unsigned int` and `unsigned long`.
_INTEGER: Final = re.compile(r"\b(?:(?:long|short|unsigned|int)\b ?)+")
_NO_YEAR: Final = 9999
_BOUNDS: Final = re.compile(r"\[\d*\]")
# `x.3`, a static of a function in C, with the suffix that link-time optimisation adds.
_FUNCTION_STATIC: Final = re.compile(r"[^.]+\.\d+(?:\.(?:lto_priv|llvm)\.\d+)*$")
_GUARD: Final = "_ZGV"
THREAD_GUARD: Final = "__tls_guard"
_OF_GUARD: Final = "they guard copies of what is made at its first use"
# A C++ name: what stands before its parts, and one part, which is a length and so many characters.
_NESTING: Final = re.compile(r"(?:Z|N[rVK]*|T[VTIS]|St)*")
_NAMELESS: Final = "_GLOBAL__N_"
_NAMED_PART: Final = re.compile(r"(?P<mark>L?)(?P<length>[1-9]\d{0,3})")
UNNAMED: Final = "12_GLOBAL__N_1"
# A file that includes one of these sources changes it with macros.
_SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".C", ".m", ".mm")


class Cost(StrEnum):
    """When the memory of copies becomes private."""

    AT_START = "private at start"
    """The loader writes it in every process."""
    WHEN_TOUCHED = "private when touched"
    PER_THREAD = "per thread"
    SHARED = "shared only"
    """Pages of the file, paid once per machine."""


DEAREST_FIRST: Final = (Cost.AT_START, Cost.PER_THREAD, Cost.WHEN_TOUCHED, Cost.SHARED)


class CopyOrigin(StrEnum):
    """Where copies come from."""

    HEADER = "header"
    """A header defines the variable: each source file that includes the header has its own."""
    SOURCE = "same source"
    """One source file is linked in several times."""
    GUARD = "guard"
    """The flag of a static that is initialised at its first use."""
    STREAM_INIT = "stream initialiser"
    """The initialiser that <iostream> leaves in each source file, with libstdc++ before 13."""


@json_members(
    "file symbol=name name=shown_name section size_bytes copy_count waste_bytes waste_by_cost=waste private_bytes cost "
    "origin confidence reasons units function standard=standard_label vaddrs location"
)
class CopiedVariable(NamedTuple):
    """One thing that a file holds several times.

    Attributes:
        file: The file.
        name: The linker name, without what tells the copies apart; of the first copy where namespaces or template
            arguments differ.
        size_bytes: The size of each copy; of the largest one where they differ.
        section: The section that the copies are in; several are joined by `+`.
        cost: When the copies cost private memory; where that differs, when the largest part of the waste does.
        waste: The size of all copies but one, by when it costs private memory. Where the copies lie in several
            sections, it is the most expensive one that stays.
        origin: Why there are copies.
        copies: The symbol of each copy.
        units: The source files that the copies came from, as far as they are known.
        confidence: How sure it is that they are copies.
        reasons: Why it is as sure as it is.
        location: The place of the definition in the source code; None where it is not known.
        function: The linker name of the function whose statics they are; None where there is none.
        private_bytes: The private memory of all copies in the live process; None where that is not known.
        is_mutable: Whether the program can write one of the copies.
        standard: The oldest language standard of the source files; None where the debug information names none.
    """

    file: str
    name: str
    size_bytes: int
    section: str
    cost: Cost
    waste: Mapping[Cost, int]
    origin: CopyOrigin
    copies: tuple[Symbol, ...]
    units: tuple[str, ...]
    confidence: Confidence
    reasons: tuple[str, ...]
    location: SourceLocation | None
    function: str | None = None
    private_bytes: int | None = None
    is_mutable: bool = False
    standard: LanguageStandard | None = None

    @property
    def standard_label(self) -> str | None:
        """Return the oldest language standard of the source files, such as `C++14`; None where it is not known."""
        return None if self.standard is None else self.standard.label

    @property
    def shown_name(self) -> str:
        """Return the name to show."""
        return shown_name(self.name)

    @property
    def copy_count(self) -> Annotated[int, Bounds(2)]:
        """Return the number of copies."""
        return len(self.copies)

    @property
    def name_count(self) -> int:
        """Return the number of their linker names: more than one where namespaces or template arguments differ."""
        return len({normalised(copy.name) for copy in self.copies})

    @property
    def waste_bytes(self) -> int:
        """Return the size of all copies but one."""
        return sum(self.waste.values())

    @property
    def vaddrs(self) -> tuple[Address, ...]:
        """Return the link-time address of each copy; for a thread-local its offset in the block of the thread."""
        return tuple([copy.vaddr for copy in self.copies])


@json_members("file variable_count unit_count debug_file waste_bytes initialiser_count initialiser_bytes")
class SearchedFile(NamedTuple):
    """One file that was searched.

    Attributes:
        file: The file.
        variable_count: The number of its variables and constants.
        unit_count: The number of its source files.
        copies: The variables that it holds several times, the largest waste first.
        debug_file: The file that its symbols are from; None where it has them itself.
        initialisers: The functions that make variables at start; most C++ headers with variables need one.
    """

    file: str
    variable_count: int
    unit_count: int
    copies: tuple[CopiedVariable, ...]
    debug_file: str | None = None
    initialisers: Initialisers = NO_INITIALISERS

    @property
    def waste_bytes(self) -> int:
        """Return the size of all copies in it but one of each."""
        return sum([copies.waste_bytes for copies in self.copies])

    @property
    def initialiser_count(self) -> int:
        """Return the number of functions that make variables at start."""
        return self.initialisers.function_count

    @property
    def initialiser_bytes(self) -> int:
        """Return the size of their code."""
        return self.initialisers.code_bytes


class Declared(NamedTuple):
    """Where a variable is declared.

    Attributes:
        file: The source file or header.
        line: The line in it.
        is_in_header: Whether the file is another one than the one that was compiled.
        function: The linker name of the function that the variable is a static of; None for other variables.
        type_name: The type as the source has it; None where it is not known.
        standard: The language standard of the source file; None where it is not known.
    """

    file: str
    line: int | None
    is_in_header: bool
    function: str | None = None
    type_name: str | None = None
    standard: LanguageStandard | None = None


Lines = Mapping[tuple[bool, int], Declared]
"""Where each variable is declared, by whether it is thread-local and by its vaddr."""


def find_copies(statics: Statics, declared: Lines | None = None) -> tuple[CopiedVariable, ...]:
    """Find the copies in one file, the largest waste first."""
    several = _groups(statics)
    initials = Initials(statics)
    initials.prepare(static for group in several for static in group)
    lines = {**(declared or {})}
    lines.update(_guard_lines(statics, several, lines))
    found = [one for group in several for one in _of_group(group, statics, initials, lines)]
    return tuple(sorted(found, key=lambda one: (-one.waste_bytes, -len(one.copies), one.name)))


PrivateOf = Callable[[Iterable[tuple[int, int]]], int | None]
"""Counts the private bytes in ranges of vaddrs of a file in a live process; None where that is not known."""


def with_private_bytes(copies: Iterable[CopiedVariable], private_of: PrivateOf) -> tuple[CopiedVariable, ...]:
    """Add to copies in a live process how many of their bytes are private; thread-locals stay as they are."""
    return tuple(
        one
        if one.cost is Cost.PER_THREAD
        else one._replace(private_bytes=private_of([(each.vaddr, each.vaddr + each.size_bytes) for each in one.copies]))
        for one in copies
    )


def candidates(statics: Statics) -> list[Symbol]:
    """Return the variables that share their name in the source with others: those whose declaration is worth a look."""
    return [static for group in _groups(statics) for static in group]


def _groups(statics: Statics) -> list[list[Symbol]]:
    """Group the variables that may be copies by their names in the source."""
    groups: dict[tuple[str, bool, bool], list[Symbol]] = {}
    for static in statics.statics:
        is_own = static.is_local or ".lto_priv" in static.name or _is_of_template(static, statics)
        if is_own and not ARTEFACT.match(static.name):
            key = (source_name(static.name), static.name.startswith(_GUARD), static.is_tls)
            groups.setdefault(key, []).append(static)
    return [group for group in groups.values() if len(group) > 1]


def _is_of_template(static: Symbol, statics: Statics) -> bool:
    """Return whether a variable is a constant of a template: each instance has one, and no program can tell.

    What is written is another variable in each instance. Vtables and names of types are the compiler's.
    """
    is_instance = static.binding in {abi.STB_WEAK, abi.STB_GNU_UNIQUE} and static.size_bytes >= LEAST_TELLING_BYTES
    if not is_instance or not static.name.startswith(("_ZN", "_ZZN", "_ZZ")) or "I" not in static.name:
        return False
    return not is_mutable(statics.image, statics.image.sections[static.section_index])


def _alike(group: Iterable[Symbol]) -> dict[tuple[str, int, int], list[Symbol]]:
    """Group variables by linker name, size and section."""
    groups: dict[tuple[str, int, int], list[Symbol]] = {}
    for static in group:
        groups.setdefault((normalised(static.name), static.size_bytes, static.section_index), []).append(static)
    return groups


def _of_group(
    group: Sequence[Symbol], statics: Statics, initials: Initials, declared: Lines
) -> Iterable[CopiedVariable]:
    """Find the copies among the variables of one name in the source."""
    by_line, _ = _lines_of(group, declared)
    for at, same in by_line:
        yield from _by_line(same, at, statics, initials)
    for (name, _, _), alike in _alike(group).items():
        if len(alike) > 1 and not _is_of_template(alike[0], statics):
            yield from _without_line(name, alike, statics, initials, declared)


def _without_line(
    name: str, group: Sequence[Symbol], statics: Statics, initials: Initials, declared: Lines
) -> Iterable[CopiedVariable]:
    """Find the copies among the variables of one name, size and section that have no known line."""
    if name == _STREAM_INIT:
        reason = "its constructor runs for each of them at start"
        yield _copies(name, group, statics, initials, CopyOrigin.STREAM_INIT, Confidence.HIGH, (reason,))
        return
    if name == THREAD_GUARD:
        reason = "each source file with thread-local variables that are made at their first use has one"
        yield _copies(name, group, statics, initials, CopyOrigin.GUARD, Confidence.LOW, (reason,))
        return
    by_line, left = _lines_of(group, declared)
    known: Declared | None = None
    if left and len(by_line) == 1:
        # Some source files may have no debug information: compare their variables with one that has it.
        ((at, same),) = by_line
        if at.is_in_header and at.function is None:
            known, left = at, [same[0], *left]
    by_contents: dict[Initial, list[Symbol]] = {}
    for static in left:
        initial = initials.of(static)
        if initial is not None:
            by_contents.setdefault(initial, []).append(static)
    for initial, same in by_contents.items():
        if len(same) > 1:
            yield from _by_contents(name, same, initial, statics, initials, known if same[0] is left[0] else None)


def _lines_of(group: Iterable[Symbol], declared: Lines) -> tuple[list[tuple[Declared, list[Symbol]]], list[Symbol]]:
    """Group variables by the line and type that declare them, and list those without a known line.

    Namespaces, template arguments and bounds of arrays may differ.
    """
    left: list[Symbol] = []
    by_line: dict[Declared, list[Symbol]] = {}
    first: dict[Declared, Declared] = {}
    for static in group:
        if (at := declared.get((static.is_tls, static.vaddr))) is None:
            left.append(static)
        else:
            function = at.function and source_name(at.function)
            key = at._replace(function=function, type_name=_type_words(at.type_name), standard=None)
            by_line.setdefault(key, []).append(static)
            known = first.setdefault(key, at)
            first[key] = known._replace(standard=_older(known.standard, at.standard))
    typed = {key._replace(type_name=None): key for key in by_line if key.type_name is not None}
    joined: dict[Declared, list[Symbol]] = {}
    for key, same in by_line.items():
        # A variable without a known type has that of the others.
        joined.setdefault(typed.get(key, key), []).extend(same)
    return [(first[key], same) for key, same in joined.items()], left


def _older(one: LanguageStandard | None, other: LanguageStandard | None) -> LanguageStandard | None:
    """Return the standard with less in it: C before C++, and the earlier year."""
    known = [each for each in (one, other) if each is not None]
    return min(known, key=lambda each: (each.is_cxx, each.year or _NO_YEAR), default=None)


def _type_words(type_name: str | None) -> str | None:
    """Return a type in a form that is the same for all compilers, and for all bounds of an array."""
    return type_name and _INTEGER.sub(_integer_words, _BOUNDS.sub("[]", type_name))


def _integer_words(found: re.Match[str]) -> str:
    words = sorted(word for word in found[0].split() if word != "int")
    return f"{' '.join(words or ['int'])} "


def _guard_lines(
    statics: Statics, groups: Iterable[Sequence[Symbol]], declared: Lines
) -> dict[tuple[bool, int], Declared]:
    """Find for each guard the line of the variable that it guards: guards have no line themselves."""
    guards = [static for group in groups for static in group if static.name.startswith(_GUARD)]
    if not guards or not declared:
        return {}
    names = {_guarded(static) for static in guards}
    of_unit: dict[tuple[str, int | None], set[Declared]] = {}
    of_all: dict[str, set[Declared]] = {}
    for static in statics.statics:
        if (name := normalised(static.name)) in names and (at := declared.get((static.is_tls, static.vaddr))):
            of_unit.setdefault((name, static.unit), set()).add(at)
            of_all.setdefault(name, set()).add(at)
    found = {}
    for guard in guards:
        name = _guarded(guard)
        # Link-time optimisation drops the source file; if all have one line, it is that line.
        places = of_unit.get((name, guard.unit)) or of_all.get(name) or set()
        if len(places) == 1:
            found[guard.is_tls, guard.vaddr] = next(iter(places))
    return found


def _guarded(guard: Symbol) -> str:
    return f"_Z{normalised(guard.name).removeprefix(_GUARD)}"


def _by_line(same: Sequence[Symbol], at: Declared, statics: Statics, initials: Initials) -> Iterable[CopiedVariable]:
    """Find the copies among the variables that one line declares."""
    if len(same) < 2 or normalised(same[0].name) in {_STREAM_INIT, THREAD_GUARD}:
        return
    name = normalised(same[0].name)
    origin = CopyOrigin.HEADER if at.is_in_header else CopyOrigin.SOURCE
    confidence = Confidence.PROOF
    where = "one line of a header declares them all" if at.is_in_header else "one line of a source file does"
    if at.is_in_header and at.file.endswith(_SOURCES):
        # glibc compiles one getXXbyYY.c into `gethostbyname` and others, each with a buffer of its own.
        confidence, where = Confidence.LOW, "one line declares them all, but of a source file that others include"
    reasons: tuple[str, ...] = (where,)
    if name.startswith(_GUARD):
        origin, reasons = (CopyOrigin.GUARD if at.is_in_header else origin), (_OF_GUARD, where)
    for copies in (one for alike in _by_bytes(same, initials) for one in _one_of_each_unit(alike)):
        if len(copies) > 1:
            found = _copies(normalised(copies[0].name), copies, statics, initials, origin, confidence, reasons, at)
            yield _as_joined(found, statics)._replace(function=at.function)


def _by_bytes(same: Iterable[Symbol], initials: Initials) -> list[list[Symbol]]:
    """Group the variables of one line by the bytes that they begin with; those of one size stay together.

    A macro can declare several things in one line, and what these point to may have several names. An array can have
    another bound in each source file: of two that begin alike, the shorter one is a part of the longer one.
    """
    by_bytes: dict[tuple[int, bytes], list[Symbol]] = {}
    for static in same:
        initial = initials.of(static)
        # Zeros in .bss equal zeros in the file.
        raw = b"" if initial is None or initial.raw is None else initial.raw
        by_bytes.setdefault((static.size_bytes, raw.rstrip(b"\0")), []).append(static)
    groups, left = [], list[tuple[bytes, Symbol]]()
    for (_, raw), alike in sorted(by_bytes.items(), key=lambda item: item[0]):
        if len(alike) > 1:
            groups.append(alike)
        elif left and raw.startswith(left[-1][0]):
            left.append((raw, alike[0]))
        else:
            groups.append([static for _, static in left])
            left = [(raw, alike[0])]
    return [*groups, [static for _, static in left]]


_OTHER_SIZES: Final = "the bound of the array differs between source files, and so the sizes of the copies do"
_WRITTEN: Final = "some source files write their copy, and some only read theirs: these would see what the others write"


def _as_joined(found: CopiedVariable, statics: Statics) -> CopiedVariable:
    """Lower the confidence in copies that differ in size, or that only some source files write."""
    image, copies = statics.image, found.copies
    reasons, confidence = found.reasons, found.confidence
    if len({one.size_bytes for one in copies}) > 1:
        confidence, reasons = Confidence.LOW, (*reasons, _OTHER_SIZES)
    elif len({is_mutable(image, image.sections[one.section_index]) for one in copies}) > 1:
        confidence, reasons = max(confidence, Confidence.MEDIUM, key=CONFIDENCES.index), (*reasons, _WRITTEN)
    return found._replace(confidence=confidence, reasons=reasons)


def _one_of_each_unit(same: Sequence[Symbol]) -> Iterable[list[Symbol]]:
    """Split the variables of one line into sets of copies: a macro can declare several variables in one line."""
    layers: list[list[Symbol]] = []
    counts: dict[int, int] = {}
    for static in same:
        number = 0
        if static.unit is not None:
            number = counts.get(static.unit, 0)
            counts[static.unit] = number + 1
        if number == len(layers):
            layers.append([])
        layers[number].append(static)
    return layers


def _by_contents(
    name: str, same: Sequence[Symbol], initial: Initial, statics: Statics, initials: Initials, at: Declared | None
) -> Iterable[CopiedVariable]:
    """Grade copies that share only name and contents; `at` is the line of the first one, where known."""
    files = {static.unit for static in same if static.unit is not None}
    is_told = all(static.unit is not None for static in same)
    if is_told and len(files) == 1:
        # They are statics of two functions of one source file.
        return
    is_guard = name.startswith(_GUARD)
    scope = _scope(f"_Z{name.removeprefix(_GUARD)}" if is_guard else name)
    reasons: tuple[str, ...]
    if initial.is_blank:
        if scope is Scope.UNKNOWN and (not is_told or any(_FUNCTION_STATIC.match(static.name) for static in same)):
            # `x.3` of three functions may be three variables.
            return
        confidence = Confidence.MEDIUM if scope is Scope.NAMESPACE else Confidence.LOW
        reasons = ("they begin as zeros, so only the name speaks for it",)
    elif scope is not Scope.UNKNOWN and same[0].size_bytes >= LEAST_TELLING_BYTES:
        confidence, reasons = Confidence.HIGH, (_same_scope(scope),)
    elif len(files) > 1 or scope is not Scope.UNKNOWN:
        confidence, reasons = Confidence.MEDIUM, ("the same name and contents, of several source files",)
    else:
        confidence, reasons = Confidence.LOW, ("the same name and contents, but from source files that are not told",)
    # A source file that is linked in twice shows as two files of one name, a header as files of several names.
    is_same_source = at is None and len(files) > 1 and len({statics.units[unit] for unit in files}) == 1
    origin = CopyOrigin.SOURCE if is_same_source else CopyOrigin.GUARD if is_guard else CopyOrigin.HEADER
    reasons = (_OF_GUARD, *reasons) if is_guard else reasons
    if at is not None:
        reasons = (*reasons, "a header declares one of them, and the others have no debug information")
    yield _copies(name, same, statics, initials, origin, confidence, reasons, at)


class Scope(Enum):
    """The scope that the name of a variable with internal linkage shows."""

    NAMESPACE = "a namespace with a name"
    GLOBAL = "no namespace, or one without a name"
    UNKNOWN = "it does not say"


def _scope(name: str) -> Scope:
    """Read the scope from a C++ linker name, up to the first part that is no plain name.

    A variable with internal linkage has an L before its name: `_ZL5table`, `_ZN2nsL5tableE`.
    """
    if not name.startswith("_Z"):
        return Scope.UNKNOWN
    nesting = _NESTING.match(name, 2)[0]  # type: ignore[index] # it matches the empty string too
    at = 2 + len(nesting)
    is_internal = "Z" in nesting
    scopes = ["std"] if "St" in nesting else []
    while (part := _NAMED_PART.match(name, at)) is not None and not part["mark"]:
        at = part.end() + int(part["length"])
        scopes.append(name[part.end() : at])
    if not is_internal and part is None:
        # The last part is the name of the variable itself.
        del scopes[-1:]
        is_internal = any(scope.startswith(_NAMELESS) for scope in scopes)
        if not is_internal:
            return Scope.UNKNOWN
    return Scope.NAMESPACE if any(not scope.startswith(_NAMELESS) for scope in scopes) else Scope.GLOBAL


def _same_scope(scope: Scope) -> str:
    where = "in the same namespace" if scope is Scope.NAMESPACE else "that only its own source file knows"
    return f"the same name {where}, with the same contents"


def _copies(
    name: str,
    same: Sequence[Symbol],
    statics: Statics,
    initials: Initials,
    origin: CopyOrigin,
    confidence: Confidence,
    reasons: tuple[str, ...],
    at: Declared | None = None,
) -> CopiedVariable:
    image = statics.image
    units = tuple(dict.fromkeys(statics.units[one.unit] for one in same if one.unit is not None))
    costs = [
        (cost_of(image, image.sections[one.section_index], is_relocated=initials.is_relocated(one)), one.size_bytes)
        for one in same
    ]
    # The copy that stays is the most expensive one, so the saving is a lower bound.
    costs.sort(key=lambda item: (DEAREST_FIRST.index(item[0]), -item[1]))
    waste: dict[Cost, int] = {}
    for cost, size_bytes in costs[1:]:
        waste[cost] = waste.get(cost, 0) + size_bytes
    return CopiedVariable(
        image.file,
        name,
        max(one.size_bytes for one in same),
        "+".join(dict.fromkeys(image.sections[one.section_index].name for one in same)),
        max(waste, key=waste.__getitem__),
        waste,
        origin,
        tuple(same),
        units,
        confidence,
        reasons,
        None if at is None else SourceLocation(at.file, at.line),
        is_mutable=any(is_mutable(image, image.sections[one.section_index]) for one in same),
        standard=None if at is None else at.standard,
    )


def is_mutable(image: Image, section: Section) -> bool:
    """Return whether the program can write a section: the loader seals others."""
    relro = image.segment(PT_GNU_RELRO)
    is_sealed = relro is not None and relro.vaddr <= section.vaddr < relro.vaddr + relro.memory_bytes
    return section.is_writable and not is_sealed and not section.name.startswith(".data.rel.ro")


def cost_of(image: Image, section: Section, *, is_relocated: bool = False) -> Cost:
    """Return when a variable becomes private memory, by its section and by whether relocations write it."""
    if section.is_tls:
        return Cost.PER_THREAD
    if is_relocated:
        return Cost.AT_START
    if not section.is_writable:
        return Cost.SHARED
    relro = image.segment(PT_GNU_RELRO)
    is_relro = relro is not None and relro.vaddr <= section.vaddr < relro.vaddr + relro.memory_bytes
    return Cost.AT_START if is_relro or section.name.startswith(".data.rel") else Cost.WHEN_TOUCHED
