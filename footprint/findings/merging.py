"""What stands against having one variable in place of its copies: after the remedy the program must do the same.

Copies can be one where all begin with the same contents, refer to the same things, and are never written. A line that
declares other things elsewhere depends on macros of the files that include it.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.initial import Initials
from footprint.elf.initialisers import listed_functions
from footprint.elf.names import normalised, shown_name
from footprint.elf.references import ReferencedPlace, can_find_references, find_references, place_of_variable
from footprint.elf.sameness import Sameness, is_constant, is_of_compiler
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.elf.uses import Use, Uses
from footprint.errors import FootprintError

__all__ = ("LEAST_TELLING_BYTES", "NOT_READ", "VARIES", "Merging", "Objection")

# Smaller variables often have the same contents by chance.
LEAST_TELLING_BYTES: Final = 16
# Compilers compute the address of `table[i - 1]` from one before the table.
_MOST_BEFORE_BYTES: Final = 16


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
_TYPE: Final = re.compile(r"(?:(?:const|volatile) )*(\w+)")
NOT_READ: Final = Objection(
    "the code that refers to it is not read: other processors than x86-64, or too much of it",
    "nothing compares its address",
)
_TELLING: Final = Use.COMPARED | Use.HANDED_ON | Use.WRITTEN


class Merging:
    """Knows what stands against one variable in place of several.

    Args:
        statics: The variables of a file.
        initials: Their initial contents.
        asked: The variables that will be asked about.
    """

    def __init__(self, statics: Statics, initials: Initials, asked: Iterable[Symbol]) -> None:
        self._statics = statics
        self._image = statics.image
        self._initials = initials
        self._sameness = Sameness(statics, initials)
        self._unused = _unused(statics, [one for one in asked if not self._is_constant(one)])

    def objection(self, copies: Sequence[Symbol]) -> Objection | None:
        """Return what stands against one variable in place of copies; None where nothing does."""
        if not all(is_of_compiler(self._image.sections[one.section_index]) for one in copies):
            return _COLLECTED
        if not all(self._sameness.of(copies[0], other) for other in copies[1:]):
            return _POINTS_ELSEWHERE
        are_constant = {self._is_constant(one) for one in copies}
        if len(are_constant) > 1:
            return _PARTLY_WRITTEN
        if are_constant == {False} and any(one.is_tls or one.vaddr not in self._unused for one in copies):
            return _WRITTEN
        initial = self._initials.of(copies[0])
        is_small = copies[0].size_bytes < LEAST_TELLING_BYTES
        is_blank = initial is not None and initial.is_blank
        return _IDENTITY if is_small and is_blank and self._is_constant(copies[0]) else None

    def objections_of_uses(self, groups: Sequence[Sequence[Symbol]]) -> list[Objection | None] | None:
        """Return what stands against each group of copies by what code does with their addresses.

        None where the code cannot be read.
        """
        asked = {one.vaddr: one for group in groups for one in group if not one.is_tls}
        if not asked or not can_find_references(self._image):
            return None
        own = [{} if any(one.is_tls for one in group) else self._own_places(group) for group in groups]
        starts = sorted({one.vaddr for one in self._statics.statics if not one.is_tls})
        ends = {one.vaddr + one.size_bytes for one in self._statics.statics}
        led_to = {vaddr: self._statics.variable_at(vaddr) for one in own for vaddr in one}
        ordered = sorted({**led_to, **asked}.items())
        places = [
            # Of what has no name only the address that the code states is known.
            ReferencedPlace(vaddr, vaddr + 1, is_code=False) if one is None else self._place(one, starts)
            for vaddr, one in ordered
        ]
        try:
            uses = Uses(self._image, self._statics.functions, places, ends=ends)
            return [self._objection_of_use(group, each, uses) for group, each in zip(groups, own, strict=True)]
        except FootprintError:
            # If other tables are damaged, any of them may be compared.
            return None

    def _own_places(self, group: Sequence[Symbol]) -> dict[int, set[int]]:
        """Find the places of `Sameness.own_places`, each variable by its first byte."""
        found: dict[int, set[int]] = {}
        for vaddr, words in self._sameness.own_places(group).items():
            variable = self._statics.variable_at(vaddr)
            found.setdefault(vaddr if variable is None else variable.vaddr, set()).update(words)
        return found

    def _place(self, one: Symbol, starts: Sequence[int]) -> ReferencedPlace:
        """Return the vaddrs that may mean a variable, from the start of its section on."""
        place, section = place_of_variable(one, starts), self._image.sections[one.section_index]
        before_bytes = min(place.before_bytes, _MOST_BEFORE_BYTES, max(0, one.vaddr - section.vaddr))
        return place._replace(before_bytes=before_bytes, after_bytes=0)

    def _objection_of_use(
        self, group: Sequence[Symbol], own: Mapping[int, Collection[int]], uses: Uses
    ) -> Objection | None:
        """Return what stands against copies by what code does with their addresses, and those that they lead to."""
        if any(one.is_tls for one in group):
            return _WRITTEN
        if any(self._is_argument(name) for name in {normalised(one.name) for one in group}):
            return _ARGUMENT
        if any(not one.is_local and one.name in self._exported for one in group):
            return _EXPORTED
        # Of constants without pointers, link-time optimisation keeps those apart whose addresses matter.
        if any(".lto_priv" in one.name and not own[one.vaddr] for one in group):
            return _COMPARED
        copies = {one.vaddr for one in group}
        for vaddr, words in own.items():
            # Whoever reads an address from one of these places is followed from there.
            use, function = uses.of(vaddr, _TELLING, words, is_in_code=vaddr not in copies)
            if use & _TELLING:
                found = _LEADS_TO if vaddr not in copies else _COMPARED if Use.COMPARED in use else _HANDED_ON
                named = found.reason if function is None else f"in {shown_name(function)}, {found.reason}"
                return found._replace(reason=named, function=function)
        return None

    def objection_of_type(self, type_name: str | None) -> Objection | None:
        """Return what stands against one type in place of those of several source files."""
        found = _TYPE.match(type_name or "")
        if found is None:
            return None
        # Only what is named after the type can differ with it: instances of templates, type names, vtables.
        name = f"12_GLOBAL__N_1{len(found[1])}{found[1]}".encode("utf-8", "surrogateescape")
        has_own = re.search(rb"\0_Z(?:T[ISV]N?|[^\0]*I[^\0]*N)%s[EI]" % re.escape(name), self._names)
        return None if has_own is None else _OF_TYPE

    def _is_argument(self, name: str) -> bool:
        """Return whether the linker name of an instance of a template has the name of a variable in it."""
        return name.startswith("_Z") and f"L{name}E".encode("utf-8", "surrogateescape") in self._names

    @cached_property
    def _exported(self) -> Container[str]:
        """The names that the loader finds in the file."""
        return read_dynamic_symbols(self._image).found

    @cached_property
    def _names(self) -> bytes:
        """All names of the symbol table."""
        found = next((one for one in self._image.sections if one.name == ".strtab" and one.has_file_bytes), None)
        return b"" if found is None else bytes(self._image.bytes_at(found.offset, found.size_bytes, found.name))

    def have_one_build(self, units: Iterable[Sequence[tuple[str, int]] | None]) -> bool:
        """Return whether the functions of some units are known and the same; each has a name and a vaddr."""
        others = iter(units)
        first = next(others, None)
        return first is not None and all(
            other is not None
            and [name for name, _ in first] == [name for name, _ in other]
            and all(self._sameness.of_functions(one, its) for (_, one), (_, its) in zip(first, other, strict=True))
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
                vaddr for one in numbers if one is not None for _, vaddr in self._statics.functions_of(one)
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
        places = [ReferencedPlace(vaddr, vaddr + 1, is_code=False) for vaddr in sorted(unit_of)]
        try:
            uses = Uses(self._image, self._statics.functions, places)
            told = {unit for vaddr, unit in unit_of.items() if uses.of(vaddr, _TELLING, is_in_code=True).use & _TELLING}
            return frozenset(told)
        except FootprintError:
            return frozenset(unit_of.values())

    @cached_property
    def _units_with_state(self) -> frozenset[int | None]:
        return frozenset([one.unit for one in self._statics.statics if not self._is_constant(one)])

    @cached_property
    def _called_by_loader(self) -> frozenset[int]:
        return frozenset(listed_functions(self._image, {abi.SHT_PREINIT_ARRAY, abi.SHT_INIT_ARRAY, abi.SHT_FINI_ARRAY}))

    def _is_constant(self, static: Symbol) -> bool:
        return is_constant(self._image, self._image.sections[static.section_index])


def _unused(statics: Statics, written: Iterable[Symbol]) -> frozenset[int]:
    """Return the vaddrs of the variables that no code, table or relocation refers to."""
    searched = [one for one in written if not one.is_tls and can_find_references(statics.image, one.size_bytes)]
    if not searched:
        return frozenset()
    starts = sorted(one.vaddr for one in statics.statics if not one.is_tls)
    ordered = sorted(searched, key=lambda one: one.vaddr)
    places = [place_of_variable(one, starts) for one in ordered]
    # If other tables are damaged, any of them may be used.
    with suppress(FootprintError):
        found = find_references(statics.image, places, starts, most=1)
        return frozenset([one.vaddr for one, references in zip(ordered, found, strict=True) if not references])
    return frozenset()
