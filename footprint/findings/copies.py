"""Copies of one variable in a file: data that exists once for each source file, such as what a header defines.

Names prove little: half of the statics of one name are different things. Variables count as copies where the debug
information says that one line of a header declares them all, or where they begin with the same bytes and point to the
same things.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Annotated, Final

from footprint.dwarf.description import LanguageStandard
from footprint.elf import abi
from footprint.elf.dynamic import read_dynamic
from footprint.elf.image import Image, Section
from footprint.elf.initial import Initial, Initials, Target
from footprint.elf.initialisers import SourceInitialiser
from footprint.elf.names import normalised, shown_name, source_name
from footprint.elf.sameness import is_constant, is_in_relro, is_merged
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.merging import LEAST_TELLING_BYTES, NOT_READ, VARIES, Merging, Objection
from footprint.findings.neighbours import Neighbours
from footprint.members import Address, Bounds, NamedTuple, json_members, lazy_pattern
from footprint.model.finding import Confidence, SourceLocation

# Symbols that compilers make for themselves, such as the type of a class, and what glibc lists in sets: each of them
# must stay where it is.
ARTEFACT: Final = re.compile(
    r"(?:CSWTCH|C|__const|__compound_literal|switch\.table|reltable|DW\.ref)\.|\.L|__elf_set_"
    r"|_ZT[VTISC]|(?:_ZZ.*E\d+)?__(?:func|FUNCTION|PRETTY_FUNCTION)__"
    r"|completed(?:\.|$)|(?:__TMC_END__|__frame_dummy_init_array_entry|__do_global_dtors_aux_fini_array_entry|__dso_handle"
    r"|__FRAME_END__|__EH_FRAME_BEGIN__|__CTOR_|__DTOR_|__JCR_|__exidx_|_nl_current_.*_used)"
)
# A variable in no namespace, or in one without a name, has a plain name if other source files can see it.
_OF_FILE: Final = lazy_pattern(r"_ZL\d+|_ZN12_GLOBAL__N_1\d+(?=\w+E$)")
# What link-time optimisation adds to a name, but for the number of a static of a function in C.
_OF_LTO: Final = lazy_pattern(r"\.(?:lto_priv|llvm)\.\d+")
_OF_NAMESPACE: Final = (
    "the same name in the same namespace, with the same contents, in source files that have more constants in common"
)
_OF_ORDER: Final = "the same name and contents beside two more constants, in one order in three or more source files"
_STREAM_INIT: Final = "_ZStL8__ioinit"
# gcc and clang order the words differently: `long unsigned int` and `unsigned long`.
_INTEGER: Final = lazy_pattern(r"\b(?:(?:long|short|unsigned|int)\b ?)+")
_OF_C: Final = lazy_pattern(r"\b(?:(?:struct|union|enum) (?=\w)|_Bool\b)")
_NO_YEAR: Final = 9999
# A type of these words only is of the language or its library, or gcc has dropped its name.
PLAIN_TYPE: Final = lazy_pattern(
    r"(?:\b(?:const|volatile|unsigned|signed|void|char|short|int|long|float|double|bool|_Bool)\b|[*&\[\](),\s\d]"
    r"|\b(?:u?int(?:_fast|_least)?\d+|u?int(?:ptr|max)|s?size|ptrdiff|wchar|char(?:8|16|32))_t\b)*"
)
# Compilers align tables by themselves up to this.
_OWN_ALIGNMENT: Final = 32
_BOUNDS: Final = lazy_pattern(r"\[\d*\]")
# The bounds of an array stand in the middle of its type: `int (*const [2])(int)`, but not `int (*)[2]`.
_ARRAY: Final = lazy_pattern(r"[^\[\]()]*(?:\([^\[\]()]*)*((?:\[\d+\])+)")
_GUARD: Final = "_ZGV"
THREAD_GUARD: Final = "__tls_guard"
# Of what begins as zeros, two source files may each have their own.
_MANY_UNITS: Final = 3
_OF_GUARD: Final = "they guard copies of what is made at its first use"
# A C++ name: what stands before its parts, and one part, which is a length and so many characters.
_NESTING: Final = lazy_pattern(r"(?:Z|N[rVK]*|T[VTIS]|St)*")
_NAMELESS: Final = "_GLOBAL__N_"
_NAMED_PART: Final = lazy_pattern(r"(?P<mark>L?)(?P<length>[1-9]\d{0,3})")
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
    "file symbol=name name=shown_name section size_bytes copy_count waste_bytes waste_by_cost=waste heap_bytes "
    "private_bytes cost "
    "origin confidence reasons address_used_in units function standard=standard_label vaddrs location"
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
        waste: The size of all copies but one, by when it costs private memory, with the heap that their initialisers
            take at start. Where the copies lie in several sections, it is the most expensive one that stays.
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
        objection: What stands against having one in place of all; None where nothing does.
        is_one_build: Whether the source file was compiled the same way each time.
        does_the_same_once: Whether that source file, linked once, would do the same: it writes to no variable of its
            own, runs nothing at start, and no code tells its constants or functions apart.
        has_namesake: Whether another variable, which is no copy, has the name that one for all would have.
        type_name: The type as the source has it; None where it is not known.
        alignment_bytes: The alignment above that of compilers that one of the copies may have; None without one.
        is_of_both_languages: Whether source files of C and of C++ include the header.
        is_in_library: Whether the file is a shared library, which exports what no attribute hides.
        heap_bytes: The part of the waste that is heap, at least: what the initialisers of all copies but one take.
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
    objection: Objection | None = None
    is_one_build: bool = False
    does_the_same_once: bool = False
    has_namesake: bool = False
    type_name: str | None = None
    alignment_bytes: int | None = None
    is_of_both_languages: bool = False
    is_in_library: bool = False
    heap_bytes: int = 0

    @property
    def is_cxx(self) -> bool:
        """Whether all source files are C++."""
        is_named = self.name.startswith("_Z") if self.standard is None else self.standard.is_cxx
        return is_named and not self.is_of_both_languages

    @property
    def standard_label(self) -> str | None:
        """Return the oldest language standard of the source files, such as `C++14`; None where it is not known."""
        return None if self.standard is None else self.standard.label

    @property
    def shown_name(self) -> str:
        """Return the name to show."""
        return shown_name(self.name)

    @property
    def address_used_in(self) -> str | None:
        """Return the linker name of the function that may tell the copies apart; None where none is known."""
        return None if self.objection is None else self.objection.function

    @property
    def bounds(self) -> str:
        """Return the bounds of an array, such as `[4]`; "" where it is none, or where that is not known."""
        array = None if self.type_name is None else _ARRAY.match(self.type_name)
        return "" if array is None else array[1]

    @property
    def is_in_function(self) -> bool:
        """Return whether they are statics of a function, or the guards of such."""
        return self.origin is CopyOrigin.GUARD or self.function is not None or _is_of_function(self.copies)

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
        """Return the size of all copies but one, and the heap of their initialisers."""
        return sum(self.waste.values())

    @property
    def is_counted(self) -> bool:
        """Return whether sums count it: it is `proof` or `high`, and no initialiser of <iostream>."""
        return self.confidence.is_sure and self.origin is not CopyOrigin.STREAM_INIT

    @property
    def vaddrs(self) -> tuple[Address, ...]:
        """Return the link-time address of each copy; for a thread-local its offset in the block of the thread."""
        return tuple([copy.vaddr for copy in self.copies])


@json_members(
    "file variable_count unit_count debug_file waste_bytes initialiser_count initialiser_bytes "
    "initialisers=source_initialisers"
)
class SearchedFile(NamedTuple):
    """One file that was searched.

    Attributes:
        file: The file.
        variable_count: The number of its variables and constants.
        unit_count: The number of its source files.
        copies: The variables that it holds several times, the largest waste first.
        debug_file: The file that its symbols are from; None where it has them itself.
        initialiser_count: The functions that make variables at start; most C++ headers with variables need one.
        initialiser_bytes: The size of their code.
        source_initialisers: Each function that runs at start, those with the most heap first.
    """

    file: str
    variable_count: int
    unit_count: int
    copies: tuple[CopiedVariable, ...]
    debug_file: str | None = None
    initialiser_count: int = 0
    initialiser_bytes: int = 0
    source_initialisers: tuple[SourceInitialiser, ...] = ()

    @property
    def waste_bytes(self) -> int:
        """Return the size of all copies in it but one of each, as far as sums count them."""
        return sum([copies.waste_bytes for copies in self.copies if copies.is_counted])


class Declared(NamedTuple):
    """Where a variable is declared.

    Attributes:
        file: The source file or header.
        line: The line in it.
        is_in_header: Whether the file is another one than the one that was compiled.
        function: The linker name of the function that the variable is a static of; None for other variables.
        type_name: The type as the source has it; None where it is not known.
        standard: The language standard of the source file; None where it is not known.
        functions: Returns all functions of the unit, each with its vaddr; None for variables of headers.
        folded: The contents that the line has in units that need no address of it.
        alignment_bytes: The alignment that the source asks for; None where it asks for none.
    """

    file: str
    line: int | None
    is_in_header: bool
    function: str | None = None
    type_name: str | None = None
    standard: LanguageStandard | None = None
    functions: Callable[[], frozenset[tuple[str, int]] | None] | None = None
    folded: frozenset[bytes] = frozenset()
    alignment_bytes: int | None = None


Lines = Mapping[tuple[bool, int], Declared]
"""Where each variable is declared, by whether it is thread-local and by its vaddr."""


def find_copies(
    statics: Statics, declared: Lines | None = None, groups: Sequence[Sequence[Symbol]] | None = None
) -> tuple[CopiedVariable, ...]:
    """Find the copies in one file, the largest waste first.

    `groups` is what `of_one_name` returns, where it is known.
    """
    groups = of_one_name(statics) if groups is None else groups
    candidates = [static for group in groups for static in group]
    initials = Initials(statics)
    initials.prepare(candidates)
    lines = {**(declared or {})}
    lines.update(_guard_lines(statics, groups, lines))
    merging = Merging(statics, initials, candidates)
    neighbours = Neighbours(statics, initials, candidates, ARTEFACT.match)
    varying, is_library = _varying(groups, initials, lines), _is_library(statics.image)
    file = _File(statics, initials, lines, merging, neighbours, varying, is_library)
    copied = [v for group in groups for v in _of_group(group, file)]
    copied = _with_uses(copied, merging)
    copied = _with_those_beside(copied, merging)
    if copied:
        names = Counter(_name_of_one(static.name) for static in statics.statics)
        copied = [v._replace(has_namesake=names[_name_of_one(v.name)] > len(v.copies)) for v in copied]
    return tuple(sorted(copied, key=_largest_waste))


def _with_uses(copied: Sequence[CopiedVariable], merging: Merging) -> list[CopiedVariable]:
    """Lower the confidence in copies whose addresses the program may tell apart."""
    sure = [v for v in copied if v.is_counted]
    objections = merging.objections_of_uses([variable.copies for variable in sure])
    graded = {}
    for variable, by_use in zip(sure, [NOT_READ] * len(sure) if objections is None else objections, strict=True):
        objection = by_use or merging.objection_of_type(variable.type_name)
        if objection is None and not variable.is_cxx and variable.waste.keys() == {Cost.SHARED}:
            # The remedy of C takes the contents out of the header.
            objection = merging.objection_of_text(variable.copies)
        if objection is not None:
            reasons = *variable.reasons, objection.reason
            graded[id(variable)] = variable._replace(confidence=Confidence.MEDIUM, reasons=reasons, objection=objection)
    return [graded.get(id(v), v) for v in copied]


def _with_those_beside(copied: Sequence[CopiedVariable], merging: Merging) -> list[CopiedVariable]:
    """Find the source files not to be linked only once: code may tell other copies in them, or functions, apart."""
    doubted: dict[int, list[frozenset[int]]] = {}
    for v in copied:
        units = _known_units(v)
        if not v.confidence.is_sure and len(units) > 1:
            for unit in units:
                doubted.setdefault(unit, []).append(units)

    def has_doubt(units: frozenset[int]) -> bool:
        return any(len(units & those) > 1 for unit in units for those in doubted.get(unit, ()))

    is_once = [v.does_the_same_once and not has_doubt(_known_units(v)) for v in copied]
    units_asked = frozenset().union(*[_known_units(v) for v, is_asked in zip(copied, is_once, strict=True) if is_asked])
    units_told = merging.units_of_told_functions(units_asked)
    return [
        v._replace(does_the_same_once=is_asked and units_told.isdisjoint(_known_units(v)))
        for v, is_asked in zip(copied, is_once, strict=True)
    ]


def _known_units(variable: CopiedVariable) -> frozenset[int]:
    return frozenset([copy.unit for copy in variable.copies if copy.unit is not None])


def _name_of_one(name: str) -> str:
    """Return the linker name that a variable has when other source files can see it."""
    name = normalised(name)
    return name[len(match[0]) :] if (match := _OF_FILE.match(name)) else name


_Line = tuple[str, int | None, str]


class _File(NamedTuple):
    """A file that is searched for copies.

    Attributes:
        statics: Its variables.
        initials: Their initial contents.
        lines: The lines that declare them.
        merging: Knows what stands against one variable in place of several.
        neighbours: Knows what source files have in common.
        varying: The lines, each with a name, that declare different things in different source files.
        is_library: Whether it is a shared library.
    """

    statics: Statics
    initials: Initials
    lines: Lines
    merging: Merging
    neighbours: Neighbours
    varying: frozenset[_Line]
    is_library: bool


def _is_library(image: Image) -> bool:
    if image.type != abi.ET_DYN or image.segment(abi.PT_DYNAMIC) is None or image.segment(abi.PT_INTERP) is not None:
        return False
    return not (read_dynamic(image).get(abi.DT_FLAGS_1) or 0) & abi.DF_1_PIE


PrivateOf = Callable[[Iterable[tuple[int, int]]], int | None]
"""Counts the private bytes in ranges of vaddrs of a file in a live process; None where that is not known."""


def with_private_bytes(copies: Iterable[CopiedVariable], private_of: PrivateOf) -> tuple[CopiedVariable, ...]:
    """Add to copies in a live process how many of their bytes are private; thread-locals stay as they are."""
    return tuple(
        v
        if v.cost is Cost.PER_THREAD
        else v._replace(private_bytes=private_of([(copy.vaddr, copy.vaddr + copy.size_bytes) for copy in v.copies]))
        for v in copies
    )


def with_heap(copies: Iterable[CopiedVariable], heap_of: Mapping[int, int]) -> tuple[CopiedVariable, ...]:
    """Add to copies the heap that their initialisers take at start, which `heap_of` has by vaddr of a variable."""
    with_heap_bytes = []
    for variable in copies:
        is_made = variable.is_mutable and variable.cost is not Cost.PER_THREAD
        # The copy that stays may be the one that takes most.
        heap_bytes = sum(sorted(heap_of.get(copy.vaddr, 0) for copy in variable.copies)[:-1]) if is_made else 0
        waste = dict(variable.waste)
        if heap_bytes:
            waste[Cost.AT_START] = waste.get(Cost.AT_START, 0) + heap_bytes
        with_heap_bytes.append(
            variable._replace(waste=waste, heap_bytes=heap_bytes, cost=max(waste, key=waste.__getitem__))
        )
    return tuple(sorted(with_heap_bytes, key=_largest_waste))


def _largest_waste(variable: CopiedVariable) -> tuple[int, int, str]:
    return -variable.waste_bytes, -len(variable.copies), variable.name


def of_one_name(statics: Statics) -> list[list[Symbol]]:
    """Group the variables that may be copies, as they share their names in the source: their lines are worth a look."""
    groups: dict[tuple[str, bool, bool], list[Symbol]] = {}
    for static in statics.statics:
        is_own = static.is_local or ".lto_priv" in static.name or _is_of_template(static, statics)
        if is_own and not ARTEFACT.match(static.name) and not is_merged(statics.image.sections[static.section_index]):
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
    return is_constant(statics.image, statics.image.sections[static.section_index])


def _alike(group: Iterable[Symbol]) -> dict[tuple[str, int, int], list[Symbol]]:
    """Group variables by linker name, size and section."""
    groups: dict[tuple[str, int, int], list[Symbol]] = {}
    for static in group:
        groups.setdefault((normalised(static.name), static.size_bytes, static.section_index), []).append(static)
    return groups


def _varying(groups: Iterable[Sequence[Symbol]], initials: Initials, lines: Lines) -> frozenset[_Line]:
    """Find the lines that declare other contents, sizes, types or alignments in other source files."""
    of_line: dict[_Line, list[tuple[Symbol, Declared]]] = {}
    for group in groups:
        name = source_name(group[0].name)
        for static in group:
            if (at := lines.get((static.is_tls, static.vaddr))) is not None:
                of_line.setdefault((at.file, at.line, name), []).append((static, at))
    varying_lines = set()
    for line, declared in of_line.items():
        things: dict[int, Counter[tuple[int, Initial | None]]] = {}
        for number, (static, _) in enumerate(declared):
            initial = initials.of(static)
            thing = static.size_bytes, None if initial is None or initial.is_blank else initial
            things.setdefault(-1 - number if static.unit is None else static.unit, Counter())[thing] += 1
        # A source file may use only some of the things that a macro declares in one line.
        most = max(things.values(), key=Counter.total)
        types = {_type_words(at.type_name) for _, at in declared} - {None}
        alignments = {at.alignment_bytes for _, at in declared}
        if len(types) > 1 or len(alignments) > 1 or not all(thing <= most for thing in things.values()):
            varying_lines.add(line)
        # Contents with addresses are in no unit's debug information.
        raws = {initials.of(static) for static, _ in declared}
        if any(at.folded - {raw.raw for raw in raws if raw is not None} for _, at in declared):
            varying_lines.add(line)
    return frozenset(varying_lines)


def _alignment(copies: Iterable[Symbol], sections: Sequence[Section]) -> int | None:
    """Return the largest alignment above that of compilers that one of the copies may have."""
    # The lowest bit that is set in a vaddr is the alignment of it.
    places = [min(sections[copy.section_index].align, copy.vaddr & -copy.vaddr) for copy in copies]
    alignment = max(places)
    return alignment if alignment > _OWN_ALIGNMENT else None


def _of_group(group: Sequence[Symbol], file: _File) -> Iterable[CopiedVariable]:
    """Find the copies among the variables of one name in the source."""
    by_line, _ = _lines_of(group, file.lines)
    for at, same in by_line:
        yield from _by_line(same, at, file)
    for (name, _, _), alike in _alike(group).items():
        if len(alike) > 1 and not _is_of_template(alike[0], file.statics):
            yield from _without_line(name, alike, file)


def _without_line(name: str, group: Sequence[Symbol], file: _File) -> Iterable[CopiedVariable]:
    """Find the copies among the variables of one name, size and section that have no known line."""
    if name == _STREAM_INIT:
        reason = "its constructor runs for each of them at start"
        yield _copies(name, group, file, CopyOrigin.STREAM_INIT, Confidence.HIGH, (reason,))
        return
    if name == THREAD_GUARD:
        reason = "each source file with thread-local variables that are made at their first use has one"
        yield _copies(name, group, file, CopyOrigin.GUARD, Confidence.LOW, (reason,))
        return
    by_line, left = _lines_of(group, file.lines)
    with_line: Declared | None = None
    if left and len(by_line) == 1:
        # Some source files may have no debug information: compare their variables with one that has it.
        ((at, same),) = by_line
        if at.is_in_header and at.function is None:
            with_line, left = at, [same[0], *left]
    by_contents: dict[Initial, list[Symbol]] = {}
    for static in left:
        initial = file.initials.of(static)
        if initial is not None:
            by_contents.setdefault(initial, []).append(static)
    for initial, same in by_contents.items():
        if len(same) > 1:
            yield from _by_contents(name, same, initial, file, with_line if same[0] is left[0] else None)


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
            # A source file that is compiled twice may name its functions by macros.
            function = at.function and (source_name(at.function) if at.is_in_header else "")
            key = at._replace(
                function=function,
                type_name=_type_words(at.type_name),
                standard=None,
                functions=None,
                folded=frozenset(),
                alignment_bytes=None,
            )
            by_line.setdefault(key, []).append(static)
            first_at = first.setdefault(key, at)
            first[key] = first_at._replace(standard=_older(first_at.standard, at.standard))
    typed = {key._replace(type_name=None): key for key in by_line if key.type_name is not None}
    joined: dict[Declared, list[Symbol]] = {}
    for key, same in by_line.items():
        # A variable without a known type has that of the others.
        joined.setdefault(typed.get(key, key), []).extend(same)
    return [(first[key], same) for key, same in joined.items()], left


def _older(first: LanguageStandard | None, other: LanguageStandard | None) -> LanguageStandard | None:
    """Return the standard with less in it: C before C++, and the earlier year."""
    present = [standard for standard in (first, other) if standard is not None]
    return min(present, key=lambda s: (s.is_cxx, s.year or _NO_YEAR), default=None)


def _type_words(type_name: str | None) -> str | None:
    """Return a type in a form that is the same in C and C++, for all compilers, and for all bounds of an array."""
    return type_name and _INTEGER.sub(_integer_words, _BOUNDS.sub("[]", _OF_C.sub(_in_cxx, type_name)))


def _in_cxx(of_c: re.Match[str]) -> str:
    return "bool" if of_c[0] == "_Bool" else ""


def _integer_words(words_match: re.Match[str]) -> str:
    words = sorted(word for word in words_match[0].split() if word != "int")
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
    line_of_guard = {}
    for guard in guards:
        name = _guarded(guard)
        # Link-time optimisation drops the source file; if all have one line, it is that line.
        places = of_unit.get((name, guard.unit)) or of_all.get(name) or set()
        if len(places) == 1:
            line_of_guard[guard.is_tls, guard.vaddr] = next(iter(places))
    return line_of_guard


def _guarded(guard: Symbol) -> str:
    return f"_Z{normalised(guard.name).removeprefix(_GUARD)}"


def _by_line(same: Sequence[Symbol], at: Declared, file: _File) -> Iterable[CopiedVariable]:
    """Find the copies among the variables that one line declares."""
    name = normalised(same[0].name)
    if len(same) < 2 or name in {_STREAM_INIT, THREAD_GUARD}:
        return
    origin = CopyOrigin.HEADER if at.is_in_header else CopyOrigin.SOURCE
    where = f"one line of a {'header' if at.is_in_header else 'source file'} declares them all"
    is_template = at.is_in_header and at.file.endswith(_SOURCES)
    if is_template:
        # glibc compiles one getXXbyYY.c into `gethostbyname` and others, each with a buffer of its own.
        where = "one line declares them all, but of a source file that others include"
    reasons: tuple[str, ...] = (where,)
    if name.startswith(_GUARD):
        origin, reasons = (CopyOrigin.GUARD if at.is_in_header else origin), (_OF_GUARD, where)
    is_varying = (at.file, at.line, source_name(name)) in file.varying
    for copies in (same_bytes for alike in _by_bytes(same, file.initials) for same_bytes in _one_of_each_unit(alike)):
        if len(copies) > 1:
            objection = VARIES if is_varying else file.merging.objection(copies)
            confidence = Confidence.LOW if is_template else Confidence.MEDIUM if objection else Confidence.PROOF
            why = (*reasons, objection.reason) if objection else reasons
            copied = _copies(normalised(copies[0].name), copies, file, origin, confidence, why, at)
            is_one_build = not at.is_in_header and _is_one_build(copies, file)
            is_same_once = is_one_build and file.merging.do_the_same_once(copy.unit for copy in copies)
            copied = copied._replace(function=at.function, objection=objection)
            copied = copied._replace(is_one_build=is_one_build, does_the_same_once=is_same_once)
            standards = [file.lines[copy.is_tls, copy.vaddr].standard for copy in copies]
            is_of_both = {standard.is_cxx for standard in standards if standard is not None} == {False, True}
            yield _as_joined(copied._replace(is_of_both_languages=is_of_both))


def _is_one_build(copies: Sequence[Symbol], file: _File) -> bool:
    """Return whether a source file that is linked in several times defines the same functions each time."""
    functions_of = [file.lines[copy.is_tls, copy.vaddr].functions for copy in copies]
    # Most units differ from the first one that they are compared with: the others are not read.
    defined = (None if functions is None else functions() for functions in functions_of)
    return file.merging.have_one_build(None if functions is None else sorted(functions) for functions in defined)


def _by_bytes(same: Iterable[Symbol], initials: Initials) -> list[list[Symbol]]:
    """Group the variables of one line by the contents that they begin with; those of one size stay together.

    A macro can declare several things in one line. An array can have
    another bound in each source file: of two that begin alike, the shorter one is a part of the longer one.
    """
    by_bytes: dict[tuple[int, bytes, tuple[tuple[int, Target], ...]], list[Symbol]] = {}
    for static in same:
        initial = initials.of(static)
        # Zeros in .bss equal zeros in the file.
        raw = b"" if initial is None or initial.raw is None else initial.raw
        targets = () if initial is None else initial.targets
        by_bytes.setdefault((static.size_bytes, raw.rstrip(b"\0"), targets), []).append(static)
    groups, left = [], list[tuple[bytes, Symbol]]()
    for (_, raw, _), alike in sorted(by_bytes.items(), key=lambda item: item[0][:2]):
        if len(alike) > 1:
            groups.append(alike)
        elif left and raw.startswith(left[-1][0]):
            left.append((raw, alike[0]))
        else:
            groups.append([static for _, static in left])
            left = [(raw, alike[0])]
    return [*groups, [static for _, static in left]]


_OTHER_SIZES: Final = "the bound of the array differs between source files, and so the sizes of the copies do"


def _as_joined(copied: CopiedVariable) -> CopiedVariable:
    """Lower the confidence in copies that differ in size."""
    if len({copy.size_bytes for copy in copied.copies}) == 1:
        return copied
    return copied._replace(confidence=Confidence.LOW, reasons=(*copied.reasons, _OTHER_SIZES))


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
    name: str, same: Sequence[Symbol], initial: Initial, file: _File, at: Declared | None
) -> Iterable[CopiedVariable]:
    """Grade copies that share only name and contents; `at` is the line of the first one, where known."""
    units = {static.unit for static in same if static.unit is not None}
    is_told = all(static.unit is not None for static in same)
    if is_told and len(units) == 1:
        # They are statics of two functions of one source file.
        return
    is_guard = name.startswith(_GUARD)
    scope = _scope(f"_Z{name.removeprefix(_GUARD)}" if is_guard else name)
    if initial.is_blank and scope is Scope.UNKNOWN and (not is_told or _is_of_function(same)):
        # `x.3` of three functions may be three variables.
        return
    # A source file that is linked in twice shows as two files of one name, a header as files of several names.
    is_same_source = at is None and len(units) > 1 and len({file.statics.units[unit] for unit in units}) == 1
    functions = [file.statics.functions_of(unit) for unit in units] if is_same_source else []
    is_one_build = is_same_source and all(functions) and file.merging.have_one_build(functions)
    origin = CopyOrigin.SOURCE if is_same_source else CopyOrigin.GUARD if is_guard else CopyOrigin.HEADER
    objection = file.merging.objection(same)
    confidence, reason = Confidence.LOW, _doubt(same, initial, objection)
    if initial.is_blank and objection is None and scope is Scope.NAMESPACE and len(units) >= _MANY_UNITS:
        confidence, reason = Confidence.HIGH, "the same name in the same namespace, and nothing refers to any of them"
    elif reason is None and is_one_build:
        confidence, reason = Confidence.HIGH, "source files of one name, with the same local functions"
    elif reason is None and is_same_source:
        reason = "source files of one name, which hold different functions"
    elif reason is None and at is not None:
        confidence = Confidence.MEDIUM if scope is Scope.UNKNOWN else Confidence.HIGH
        reason = "the same name and contents"
    elif reason is None and scope is Scope.NAMESPACE and _is_of_header(same, file):
        confidence, reason = Confidence.HIGH, _OF_NAMESPACE
    elif _has_one_order(same, initial, objection, file):
        confidence, reason = Confidence.HIGH, _OF_ORDER
    reasons: tuple[str, ...] = (reason or "two source files may have the same name and contents without a header",)
    reasons = (_OF_GUARD, *reasons) if is_guard else reasons
    if at is not None:
        reasons = (*reasons, "a header declares one of them, and the others have no debug information")
    copied = _copies(name, same, file, origin, confidence, reasons, at)
    is_same_once = is_one_build and file.merging.do_the_same_once(units)
    yield copied._replace(objection=objection, is_one_build=is_one_build, does_the_same_once=is_same_once)


def _is_of_header(same: Sequence[Symbol], file: _File) -> bool:
    units = {file.statics.units[static.unit] for static in same if static.unit is not None}
    return len(units) > 1 and not _is_of_function(same) and file.neighbours.speak_for(same)


def _has_one_order(same: Sequence[Symbol], initial: Initial, objection: Objection | None, file: _File) -> bool:
    are_constants = objection is None and not initial.is_blank and not _is_of_function(same)
    return are_constants and len({s.unit for s in same}) == len(same) and file.neighbours.have_one_order(same)


def _is_of_function(same: Iterable[Symbol]) -> bool:
    # `x.3` by gcc, `function.x` by clang.
    return any(static.name.startswith("_ZZ") or "." in _OF_LTO.sub("", static.name) for static in same)


def _doubt(same: Sequence[Symbol], initial: Initial, objection: Objection | None) -> str | None:
    """Return why variables without a known line may not be copies; None where only their name can tell."""
    if initial.is_blank:
        return "they begin as zeros, so only the name speaks for it"
    if objection is not None:
        return objection.reason
    return "so few bytes are often the same by chance" if same[0].size_bytes < LEAST_TELLING_BYTES else None


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


def _copies(
    name: str,
    same: Sequence[Symbol],
    file: _File,
    origin: CopyOrigin,
    confidence: Confidence,
    reasons: tuple[str, ...],
    at: Declared | None = None,
) -> CopiedVariable:
    image, statics, initials = file.statics.image, file.statics, file.initials
    units = tuple(dict.fromkeys(statics.units[s.unit] for s in same if s.unit is not None))
    costs = [
        (
            cost_of(image, image.sections[s.section_index], is_relocated=initials.is_relocated(s)),
            s.size_bytes,
        )
        for s in same
    ]
    # The copy that stays is the most expensive one, so the saving is a lower bound.
    costs.sort(key=lambda item: (DEAREST_FIRST.index(item[0]), -item[1]))
    waste: dict[Cost, int] = {}
    for cost, size_bytes in costs[1:]:
        waste[cost] = waste.get(cost, 0) + size_bytes
    return CopiedVariable(
        image.file,
        name,
        max(static.size_bytes for static in same),
        "+".join(dict.fromkeys(image.sections[static.section_index].name for static in same)),
        max(waste, key=waste.__getitem__),
        waste,
        origin,
        tuple(same),
        units,
        confidence,
        reasons,
        None if at is None else SourceLocation(at.file, at.line),
        is_mutable=any(not is_constant(image, image.sections[static.section_index]) for static in same),
        standard=None if at is None else at.standard,
        type_name=None if at is None else at.type_name,
        alignment_bytes=_alignment(same, image.sections),
        is_in_library=file.is_library,
    )


def cost_of(image: Image, section: Section, *, is_relocated: bool = False) -> Cost:
    """Return when a variable becomes private memory, by its section and by whether relocations write it."""
    if section.is_tls:
        return Cost.PER_THREAD
    if is_relocated:
        return Cost.AT_START
    if not section.is_writable:
        return Cost.SHARED
    is_written_at_start = is_in_relro(image, section) or section.name.startswith(".data.rel")
    return Cost.AT_START if is_written_at_start else Cost.WHEN_TOUCHED
