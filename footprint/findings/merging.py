"""What stands against having one variable in place of its copies: after the remedy the program must do the same.

Copies can be one where all begin with the same contents, refer to the same things, and are never written. A line that
declares other things elsewhere depends on macros of the files that include it.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from footprint.elf import abi
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.harmless import Use
from footprint.elf.initial import Initials
from footprint.elf.initialisers import listed_functions
from footprint.elf.names import normalised, shown_name
from footprint.elf.references import (
    ReferencedPlace,
    can_find_references,
    distance_targets,
    find_references,
    place_of_variable,
)
from footprint.elf.sameness import Sameness, is_constant, is_of_compiler
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.members import NamedTuple, lazy_pattern

if TYPE_CHECKING:
    from footprint.elf.uses import FoundUse, Uses

# Smaller variables often have the same contents by chance.
LEAST_TELLING_BYTES: Final = 16
# Compilers compute the address of `table[i - 1]` from one before the table.
_MOST_BEFORE_BYTES: Final = 16
# The end of one copy alone is told from nothing that becomes the same.
_LEAST_ENDS: Final = 2


class Objection(NamedTuple):
    """Why one variable may not do in place of its copies.

    Attributes:
        reason: The reason.
        check: What to make sure of before the remedy; empty where the remedy says it.
        function: The linker name of the function that uses the address; None where none is known.
    """

    reason: str
    check: str
    function: str | None = None


_WRITTEN: Final = Objection(
    "code may write to each of them, and with one of them all source files would share what is written",
    "",
)
_PARTLY_WRITTEN: Final = Objection(
    "some source files write their copy, and some only read theirs: these would see what the others write", ""
)
_POINTS_ELSEWHERE: Final = Objection(
    "what they point to is not the same in each source file, or cannot be compared",
    "what it points to does the same in all source files",
)
VARIES: Final = Objection(
    "the line declares other things in other source files, by their macros",
    "the macros of all source files make the same of it",
)
_IDENTITY: Final = Objection(
    "it is a small constant of zeros, which some programs only need for its address",
    "nothing compares its address",
)


_COLLECTED: Final = Objection(
    "the source names the section that they lie in, and code may go through all that lies there",
    "nothing goes through the section that they lie in",
)


_COMPARED: Final = Objection(
    "code compares its address, or one that it holds: with one in place of all another answer is possible",
    "no source file needs an address of its own",
)
_HANDED_ON: Final = Objection(
    "code stores or passes on its address, and what it is compared with there was not seen",
    "nothing compares its address",
)
_LEADS_TO: Final = Objection(
    "code compares, stores or passes on the address of what it leads to, which each source file has for itself",
    "nothing compares the addresses of what it leads to",
)
_END: Final = Objection(
    "code compares, stores or passes on the address behind it, which may be its end or what follows it",
    "nothing compares the address of its end",
)
_ARGUMENT: Final = Objection(
    "its address is an argument of a template, and each source file has instances of its own",
    "no instance of a template that it is an argument of has a state",
)
_EXPORTED: Final = Objection(
    "other files may look for it by name, and compare its address", "no other file compares its address"
)
_OF_TYPE: Final = Objection(
    "its type is in an unnamed namespace, and templates or type names tell those of source files apart",
    "its type may be one for all source files, outside of the unnamed namespace",
)
_TYPE: Final = lazy_pattern(r"(?:(?:const|volatile) )*(\w+)")
NOT_READ: Final = Objection(
    "the code that refers to it is not read: other processors than x86-64 and arm64, or too much of it",
    "nothing compares its address",
)
_FOLDED: Final = Objection(
    "code only reads fixed parts of it: where compilers know these, they may leave out more code than one in place of"
    " all saves",
    "the program does not grow by it",
)
_TELLING: Final = Use.COMPARED | Use.HANDED_ON | Use.WRITTEN


class Merging:
    """Knows what stands against one variable in place of several.

    Args:
        statics: The variables of a file.
        initials: Their initial contents.
        asked: The variables that will be asked about.
    """

    def __init__(self, statics: Statics, initials: Initials, candidates: Sequence[Symbol]) -> None:
        self._statics = statics
        self._image = statics.image
        self._initials = initials
        self._sameness = Sameness(statics, initials, candidates)
        self._unused = _unused(statics, [candidate for candidate in candidates if not self._is_constant(candidate)])
        self._uses: Uses | None = None

    def objection(self, copies: Sequence[Symbol]) -> Objection | None:
        """Return what stands against one variable in place of copies; None where nothing does."""
        if not all(is_of_compiler(self._image.sections[copy.section_index]) for copy in copies):
            return _COLLECTED
        if not all(self._sameness.of(copies[0], other) for other in copies[1:]):
            return _POINTS_ELSEWHERE
        are_constant = {self._is_constant(copy) for copy in copies}
        if len(are_constant) > 1:
            return _PARTLY_WRITTEN
        if are_constant == {False} and any(copy.is_tls or copy.vaddr not in self._unused for copy in copies):
            return _WRITTEN
        initial = self._initials.of(copies[0])
        is_small = copies[0].size_bytes < LEAST_TELLING_BYTES
        is_blank = initial is not None and initial.is_blank
        return _IDENTITY if is_small and is_blank and self._is_constant(copies[0]) else None

    def objections_of_uses(self, groups: Sequence[Sequence[Symbol]]) -> list[Objection | None] | None:
        """Return what stands against each group of copies by what code does with their addresses.

        None where the code cannot be read.
        """
        by_vaddr = {static.vaddr: static for group in groups for static in group if not static.is_tls}
        if not by_vaddr or not can_find_references(self._image):
            return None
        places_of_groups = [{} if any(c.is_tls for c in group) else self._own_places(group) for group in groups]
        starts = sorted({static.vaddr for static in self._statics.statics if not static.is_tls})
        ends = {static.vaddr + static.size_bytes for static in self._statics.statics}
        targets = distance_targets(self._image, set(starts))
        led_to = {
            vaddr: self._statics.variable_at(vaddr) for places_of_group in places_of_groups for vaddr in places_of_group
        }
        from footprint.elf.uses import Uses  # noqa: PLC0415 # its import takes 20,000,000 instructions

        # What follows one begins at its end.
        behind = {v.vaddr + v.size_bytes for v in [*by_vaddr.values(), *led_to.values()] if v is not None}
        following = {vaddr: self._statics.variable_at(vaddr) for vaddr in behind if self._begins_something(vaddr)}
        ordered = sorted({**following, **led_to, **by_vaddr}.items())
        places = [
            # Of what has no name only the address that the code states is known.
            ReferencedPlace(vaddr, vaddr + 1, is_code=False) if variable is None else self._place(variable, starts)
            for vaddr, variable in ordered
        ]
        try:
            uses = self._uses = Uses(self._image, self._statics.functions, places, ends=ends, certain=targets)
            return [
                self._objection_of_use(group, led, uses) for group, led in zip(groups, places_of_groups, strict=True)
            ]
        except FootprintError:
            # If other tables are damaged, any of them may be compared.
            return None

    def _own_places(self, group: Sequence[Symbol]) -> dict[int, set[int]]:
        """Find the places of `Sameness.own_places`, each variable by its first byte."""
        places_by_vaddr: dict[int, set[int]] = {}
        for vaddr, words in self._sameness.own_places(group).items():
            variable = self._statics.variable_at(vaddr)
            places_by_vaddr.setdefault(vaddr if variable is None else variable.vaddr, set()).update(words)
        return places_by_vaddr

    def _place(self, variable: Symbol, starts: Sequence[int]) -> ReferencedPlace:
        """Return the vaddrs that may mean a variable, from the start of its section on."""
        place, section = place_of_variable(variable, starts), self._image.sections[variable.section_index]
        before_bytes = min(place.before_bytes, _MOST_BEFORE_BYTES, max(0, variable.vaddr - section.vaddr))
        return place._replace(before_bytes=before_bytes, after_bytes=1)

    def _objection_of_use(
        self, group: Sequence[Symbol], places: Mapping[int, Collection[int]], uses: "Uses"
    ) -> Objection | None:
        """Return what stands against copies by what code does with their addresses, and those that they lead to."""
        if any(c.is_tls for c in group):
            return _WRITTEN
        if any(self._is_argument(name) for name in {normalised(copy.name) for copy in group}):
            return _ARGUMENT
        if any(not c.is_local and c.name in self._exported for c in group):
            return _EXPORTED
        # Of constants without pointers, link-time optimisation keeps those apart whose addresses matter.
        if any(".lto_priv" in c.name and not places[c.vaddr] for c in group):
            return _COMPARED
        copies = {copy.vaddr for copy in group}
        # Whoever reads an address from one of these places is followed from there.
        words_by_vaddr = {vaddr: self._words(vaddr, targets) for vaddr, targets in places.items()}
        inner = self._inner_words(words_by_vaddr)
        for vaddr, words in words_by_vaddr.items():
            use, function, offset = uses.of(vaddr, _TELLING, words, inner, is_in_code=vaddr not in copies)
            # What holds an address has a symbol, or is not read.
            use |= Use.UNUSED if set(places[vaddr]) <= {vaddr, *words.values()} else Use.HANDED_ON
            if use & _TELLING:
                kind = _LEADS_TO if vaddr not in copies else _COMPARED if Use.COMPARED in use else _HANDED_ON
                named = kind.reason if function is None else f"in {shown_name(function)}+{offset:#x}, {kind.reason}"
                return kind._replace(reason=named, function=function)
        return self._objection_of_ends(copies, uses) or self._objection_of_ends(places.keys() - copies, uses)

    def _objection_of_ends(self, vaddrs: Collection[int], uses: "Uses") -> Objection | None:
        """Return what stands against copies by what code does with what is behind them.

        One that is told cannot be another's.
        """
        uses_of_ends: list[FoundUse] = []
        for vaddr in sorted(vaddrs):
            variable = self._statics.variable_at(vaddr)
            end = vaddr if variable is None else variable.vaddr + variable.size_bytes
            is_start = variable is None or self._begins_something(end)
            use = uses.of_end(vaddr, _TELLING, is_start=is_start)
            uses_of_ends += [use] if use.use & _TELLING else []
            if len(uses_of_ends) == _LEAST_ENDS:
                break
        else:
            return None
        (_, function, offset), reason = uses_of_ends[0], _END.reason
        named = reason if function is None else f"in {shown_name(function)}+{offset:#x}, {reason}"
        return _END._replace(reason=named, function=function)

    def _begins_something(self, vaddr: int) -> bool:
        """Return whether a variable begins at a vaddr, or a constant without a name."""
        symbol, section = self._statics.symbol_at(vaddr), self._initials.section_at(vaddr)
        if symbol is not None or section is None or not section.has_file_bytes:
            return symbol is not None and not symbol[1]
        return bytes(self._image.bytes_at(section.offset + vaddr - section.vaddr, 1, section.name)) != b"\0"

    def _words(self, vaddr: int, targets: Collection[int]) -> dict[int, int]:
        """Return which of some addresses a variable holds, by their offsets."""
        variable = self._statics.variable_at(vaddr)
        contents = None if variable is None else self._initials.contents(variable)
        pointers = {} if contents is None else contents.pointers
        return {at: target for at, target in pointers.items() if isinstance(target, int) and target in targets}

    def _inner_words(self, words_by_vaddr: Mapping[int, Mapping[int, int]]) -> frozenset[int]:
        """Return where the variables that some addresses lead to hold some, as distances from those addresses."""
        distances = set[int]()
        for target in {target for words in words_by_vaddr.values() for target in words.values()}:
            variable = self._statics.variable_at(target)
            if variable is not None:
                distances.update(variable.vaddr + at - target for at in words_by_vaddr.get(variable.vaddr, ()))
        return frozenset(distances)

    def objection_of_type(self, type_name: str | None) -> Objection | None:
        """Return what stands against one type in place of those of several source files."""
        match = _TYPE.match(type_name or "")
        if match is None:
            return None
        # Only what is named after the type can differ with it: instances of templates, type names, vtables.
        name = f"12_GLOBAL__N_1{len(match[1])}{match[1]}".encode("utf-8", "surrogateescape")
        has_own = re.search(rb"\0_Z(?:T[ISV]N?|[^\0]*I[^\0]*N)%s[EI]" % re.escape(name), self._names)
        return None if has_own is None else _OF_TYPE

    def objection_of_text(self, copies: Sequence[Symbol]) -> Objection | None:
        """Return what stands against taking the contents out of the header; after `objections_of_uses`.

        Compilers compute what they know of a constant: where no code adds an index to it, they may have done so.
        """
        initial = self._initials.of(copies[0])
        is_blank = initial is None or initial.is_blank
        for copy in copies:
            loads = None if self._uses is None else self._uses.fixed_loads(copy.vaddr)
            # A scalar is loaded from a fixed place only where compilers do not optimise, and compute nothing.
            if loads is not None and (
                is_blank or any(load.register is None and not load.compares_memory for load in loads)
            ):
                return _FOLDED
        return None

    def _is_argument(self, name: str) -> bool:
        """Return whether the linker name of an instance of a template has the name of a variable in it."""
        return name.startswith("_Z") and f"L{name}E".encode("utf-8", "surrogateescape") in self._names

    @cached_property
    def _exported(self) -> Container[str]:
        """The names that the loader finds in the file."""
        return read_dynamic_symbols(self._image).defined

    @cached_property
    def _names(self) -> bytes:
        """All names of the symbol table."""
        names = next((s for s in self._image.sections if s.name == ".strtab" and s.has_file_bytes), None)
        return b"" if names is None else bytes(self._image.bytes_at(names.offset, names.size_bytes, names.name))

    def have_one_build(self, units: Iterable[Sequence[tuple[str, int]] | None]) -> bool:
        """Return whether the functions of some units are known and the same; each has a name and a vaddr."""
        others = iter(units)
        first = next(others, None)
        return first is not None and all(
            other is not None
            and [name for name, _ in first] == [name for name, _ in other]
            and all(self._sameness.of_functions(f, its) for (_, f), (_, its) in zip(first, other, strict=True))
            for other in others
        )

    def do_the_same_once(self, units: Iterable[int | None]) -> bool:
        """Return whether source files keep nothing that they write, and run nothing at start and end.

        Linked once in place of several times, they would count, register or write once.
        """
        numbers = set(units)
        return (
            None not in numbers
            and numbers.isdisjoint(self._units_with_state)
            and self._called_by_loader.isdisjoint(
                vaddr for number in numbers if number is not None for _, vaddr in self._statics.functions_of(number)
            )
        )

    def units_of_told_functions(self, units: Iterable[int]) -> frozenset[int]:
        """Return the source files of which code compares, stores or passes on the address of a local function.

        Functions in tables are those that the tables lead to. Where the code cannot be read, it may be all of them.
        """
        unit_of = {vaddr: unit for unit in units for _, vaddr in self._statics.functions_of(unit)}
        if not unit_of:
            return frozenset()
        if not can_find_references(self._image):
            return frozenset(unit_of.values())
        from footprint.elf.uses import Uses  # noqa: PLC0415 # its import takes 20,000,000 instructions

        places = [ReferencedPlace(vaddr, vaddr + 1, is_code=False) for vaddr in sorted(unit_of)]
        try:
            uses = Uses(self._image, self._statics.functions, places)
            telling = {
                unit for vaddr, unit in unit_of.items() if uses.of(vaddr, _TELLING, is_in_code=True).use & _TELLING
            }
            return frozenset(telling)
        except FootprintError:
            return frozenset(unit_of.values())

    @cached_property
    def _units_with_state(self) -> frozenset[int | None]:
        return frozenset([static.unit for static in self._statics.statics if not self._is_constant(static)])

    @cached_property
    def _called_by_loader(self) -> frozenset[int]:
        return frozenset(listed_functions(self._image, {abi.SHT_PREINIT_ARRAY, abi.SHT_INIT_ARRAY, abi.SHT_FINI_ARRAY}))

    def _is_constant(self, static: Symbol) -> bool:
        return is_constant(self._image, self._image.sections[static.section_index])


def _unused(statics: Statics, written: Iterable[Symbol]) -> frozenset[int]:
    """Return the vaddrs of the variables that no code, table or relocation refers to."""
    searched = [s for s in written if not s.is_tls and can_find_references(statics.image, s.size_bytes)]
    if not searched:
        return frozenset()
    starts = sorted(static.vaddr for static in statics.statics if not static.is_tls)
    ordered = sorted(searched, key=lambda static: static.vaddr)
    places = [place_of_variable(static, starts) for static in ordered]
    # If other tables are damaged, any of them may be used.
    with suppress(FootprintError):
        uses = find_references(statics.image, places, starts, most=1)
        return frozenset([static.vaddr for static, references in zip(ordered, uses, strict=True) if not references])
    return frozenset()
