"""What is linked in several times: one library or source file that several files hold, or one file several times.

A static library that is part of the program and of a library has its tables twice, under the same names and with the
same contents. Variables that appear together are one `LinkedTwice`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from footprint.elf.initial import Initial, Initials
from footprint.elf.names import normalised
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.copies import (
    ARTEFACT,
    DEAREST_FIRST,
    CopiedVariable,
    CopyOrigin,
    Cost,
    Lines,
    cost_of,
)
from footprint.findings.merging import LEAST_TELLING_BYTES
from footprint.members import NOT_EMPTY, Bounds, json_members
from footprint.model.finding import Confidence

__all__ = ("LinkedTwice", "linked_twice", "zeros_of_one_name")

_LEAST_TOGETHER_BYTES: Final = 256
# Libraries that are often linked in statically, with source files or symbols that no other library has together.
_KNOWN: Final = (
    (
        "zlib",
        frozenset({"crc32.c", "trees.c", "inflate.c", "deflate.c", "crc_table", "static_ltree", "inflate_copyright"}),
    ),
    ("expat", frozenset({"xmltok.c", "xmlparse.c", "xmlrole.c"})),
    ("sqlite", frozenset({"sqlite3.c", "sqlite3_version"})),
    ("libpng", frozenset({"pngrtran.c", "pngset.c", "png_sRGB_table"})),
    ("lz4", frozenset({"lz4.c", "lz4hc.c"})),
    ("zstd", frozenset({"zstd_compress.c", "zstd_decompress.c", "ZSTD_defaultCParameters"})),
    ("brotli", frozenset({"dictionary.c", "_kBrotliContextLookupTable", "kBrotliDictionary"})),
    ("libjpeg", frozenset({"jdhuff.c", "jcmarker.c", "jpeg_natural_order"})),
)


@json_members("files library units symbols=names size_bytes copy_count waste_bytes waste_by_cost=waste")
class LinkedTwice(NamedTuple):
    """Data that several files hold, or one file several times.

    Attributes:
        files: The files; a single one where it holds the data several times.
        library: The library that the data belongs to; None where it is not a known one.
        units: The source files, as far as the symbol tables name them.
        names: The linker names of the variables, the largest first.
        size_bytes: The size of one copy of all of them.
        copy_count: The number of copies.
        waste: The waste by when it costs private memory; it adds up to `waste_bytes`.
        is_one_build: Whether one does for all: it was compiled the same way each time, writes to no variable of its
            own, and runs nothing at start. Of several files that is not known.
    """

    files: Annotated[tuple[str, ...], NOT_EMPTY]
    library: str | None
    units: tuple[str, ...]
    names: tuple[str, ...]
    size_bytes: int
    copy_count: Annotated[int, Bounds(2)]
    waste: Mapping[Cost, int]
    is_one_build: bool = True

    @property
    def waste_bytes(self) -> int:
        """Return the size of all copies but one."""
        return (self.copy_count - 1) * self.size_bytes

    @property
    def confidence(self) -> Confidence:
        """Return how sure it is that it can be linked only once."""
        is_sure = self.is_one_build and (self.library is not None or len(self.names) > 1)
        return Confidence.HIGH if is_sure else Confidence.MEDIUM


def linked_twice(
    files: Sequence[Statics], copies: Sequence[Sequence[CopiedVariable]], lines: Sequence[Lines] = ()
) -> tuple[LinkedTwice, ...]:
    """Find what is linked in several times, the largest first.

    Args:
        files: The variables of each file.
        copies: The copies in each file.
        lines: The lines that declare the variables of each file, as far as they are known.
    """
    found = [
        *_across(files, lines or [{}] * len(files)),
        *(one for s, c in zip(files, copies, strict=True) for one in _within(s, c)),
    ]
    return tuple(sorted(found, key=lambda one: (-one.waste_bytes, one.files, one.names)))


class _One(NamedTuple):
    """A variable that exists several times, with the cost of each copy."""

    name: str
    size_bytes: int
    unit: str | None
    costs: tuple[Cost, ...]


def _within(statics: Statics, copies: Iterable[CopiedVariable]) -> Iterable[LinkedTwice]:
    """Join the copies of one file that come from source files that were linked in several times.

    Of source files that were compiled with other macros only a known library counts: both may be needed.
    """
    of_source = [one for one in copies if one.origin is CopyOrigin.SOURCE]
    same = [one for one in of_source if one.is_one_build]
    sure = [one for one in same if one.confidence is not Confidence.LOW]
    # Equal zeros prove nothing, but where their source files are there twice, so are they.
    proven = {numbers for one in sure if None not in (numbers := _unit_numbers(one))}
    doubted = [one for one in same if one.confidence is Confidence.LOW and _unit_numbers(one) in proven]
    # The symbol table names no source file of global functions, which may differ.
    is_sure = all(one.location is not None and one.does_the_same_once for one in sure)
    yield from [one._replace(is_one_build=is_sure) for one in _joined(statics, [*sure, *doubted])]
    others = _joined(statics, [one for one in of_source if not one.is_one_build])
    yield from [one._replace(is_one_build=False) for one in others if one.library is not None]


def _joined(statics: Statics, copies: Iterable[CopiedVariable]) -> Iterable[LinkedTwice]:
    by_count: dict[int, list[CopiedVariable]] = {}
    for one in copies:
        by_count.setdefault(len(one.copies), []).append(one)
    for count, group in by_count.items():
        units = tuple(dict.fromkeys(unit for one in group for unit in one.units))
        variables = [_One(one.name, one.size_bytes, None, (one.cost,) * count) for one in group]
        yield _found((statics.image.file,), units, variables, count)


def _unit_numbers(copies: CopiedVariable) -> frozenset[int | None]:
    return frozenset([one.unit for one in copies.copies])


_Held = list[tuple[int, Symbol]]


def zeros_of_one_name(files: Sequence[Statics]) -> list[list[Symbol]]:
    """Return for each file its local variables without contents whose name and size another file has, too.

    Only the lines that declare them show whether they are copies.
    """
    found: list[list[Symbol]] = [[] for _ in files]
    for held in _of_one_name(files):
        for number, static in held:
            if static.is_local and not files[number].image.sections[static.section_index].has_file_bytes:
                found[number].append(static)
    return found


def _across(files: Sequence[Statics], lines: Sequence[Lines]) -> Iterable[LinkedTwice]:
    """Find the variables that several files hold with the same contents; those of the same files are one result."""
    together: dict[tuple[int, ...], list[_One]] = {}
    blank: dict[tuple[int, ...], list[_One]] = {}
    several = _of_one_name(files)
    initials = {number: Initials(files[number]) for number in {number for held in several for number, _ in held}}
    for number, one in initials.items():
        one.prepare([static for held in several for at, static in held if at == number])
    for held, is_blank in _same(initials, several, lines):
        by_number = dict(reversed(held))
        numbers = tuple(sorted(by_number))
        own_units = {None if static.unit is None else files[number].units[static.unit] for number, static in held}
        # Variables from source files of several names may come from a header. For zeros, all source files must be
        # known.
        names = own_units if is_blank else own_units - {None}
        unit = next(iter(names)) if len(names) == 1 else None
        costs = tuple(_cost(files[number], by_number[number], initials[number]) for number in numbers)
        static = held[0][1]
        shared = _One(normalised(static.name), static.size_bytes, unit, costs)
        (blank if is_blank else together).setdefault(numbers, []).append(shared)
    for numbers, group in together.items():
        if sum(one.size_bytes for one in group) >= _LEAST_TOGETHER_BYTES:
            units = tuple(dict.fromkeys(one.unit for one in group if one.unit))
            zeros = [one for one in blank.get(numbers, ()) if one.unit in units]
            found = _found(tuple(files[number].image.file for number in numbers), units, [*group, *zeros], len(numbers))
            # What its functions do in each file is not compared, and each may keep a state of its own.
            yield found._replace(is_one_build=False)


def _cost(statics: Statics, static: Symbol, initials: Initials) -> Cost:
    section = statics.image.sections[static.section_index]
    return cost_of(statics.image, section, is_relocated=initials.is_relocated(static))


def _of_one_name(files: Sequence[Statics]) -> list[_Held]:
    """Return the variables of one name and size that several files hold."""
    if len(files) < 2:
        return []
    holders: dict[tuple[str, int], _Held] = {}
    for number, statics in enumerate(files):
        for static in statics.statics:
            if static.size_bytes >= LEAST_TELLING_BYTES and not ARTEFACT.match(static.name):
                holders.setdefault((normalised(static.name), static.size_bytes), []).append((number, static))
    return [held for held in holders.values() if _is_of_several(held)]


def _same(
    initials: Mapping[int, Initials], several: Sequence[_Held], lines: Sequence[Lines]
) -> Iterable[tuple[_Held, bool]]:
    """Return those that begin with the same contents, and whether only zeros speak for it.

    Zeros that one line declares are the same variable.
    """
    for held in several:
        by_contents: dict[Initial | None, _Held] = {}
        for number, static in held:
            initial = initials[number].of(static)
            if initial is not None:
                # Zeros in .bss equal zeros in the file.
                by_contents.setdefault(None if initial.is_blank else initial, []).append((number, static))
        for initial, same in by_contents.items():
            of_line = [] if initial is not None else _of_one_line(same, lines)
            for proven in of_line:
                yield proven, False
            if not of_line and _is_of_several(same):
                yield same, initial is None


def _of_one_line(held: _Held, lines: Sequence[Lines]) -> list[_Held]:
    """Return the local variables of several files that one line declares, for each such line."""
    by_line: dict[tuple[str, int | None], _Held] = {}
    for number, static in held:
        if static.is_local and (at := lines[number].get((static.is_tls, static.vaddr))) is not None:
            by_line.setdefault((at.file, at.line), []).append((number, static))
    return [one for one in by_line.values() if _is_of_several(one)]


def _is_of_several(held: _Held) -> bool:
    return len({number for number, _ in held}) > 1


def _found(files: tuple[str, ...], units: tuple[str, ...], variables: list[_One], count: int) -> LinkedTwice:
    variables.sort(key=lambda one: (-one.size_bytes, one.name))
    names = tuple(one.name for one in variables)
    marks = {*units, *names}
    library = next((name for name, known in _KNOWN if len(marks & known) > 1), None)
    waste: Counter[Cost] = Counter()
    for one in variables:
        # The copy that stays is the most expensive one, so the saving is a lower bound.
        for cost in sorted(one.costs, key=DEAREST_FIRST.index)[1:]:
            waste[cost] += one.size_bytes
    ordered = {cost: waste[cost] for cost in DEAREST_FIRST if waste[cost]}
    return LinkedTwice(files, library, units, names, sum(one.size_bytes for one in variables), count, ordered)
