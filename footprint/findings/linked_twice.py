"""What is linked in several times: one library or source file that several files hold, or one file several times.

A static library that is part of the program and of a library has its tables twice, under the same names and with the
same contents. Variables that appear together are one `LinkedTwice`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

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
from footprint.members import NOT_EMPTY, Bounds, NamedTuple, json_members
from footprint.model.finding import Confidence

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
    twice = [
        *_across(files, lines or [{}] * len(files)),
        *(variable for s, c in zip(files, copies, strict=True) for variable in _within(s, c)),
    ]
    return tuple(sorted(twice, key=lambda v: (-v.waste_bytes, v.files, v.names)))


class _Repeated(NamedTuple):
    """A variable that exists several times, with the cost of each copy."""

    name: str
    size_bytes: int
    unit: str | None
    costs: tuple[Cost, ...]


def _within(statics: Statics, copies: Iterable[CopiedVariable]) -> Iterable[LinkedTwice]:
    """Join the copies of one file that come from source files that were linked in several times.

    Of source files that were compiled with other macros only a known library counts: both may be needed.
    """
    of_source = [copy for copy in copies if copy.origin is CopyOrigin.SOURCE]
    same = [v for v in of_source if v.is_one_build]
    sure = [copied for copied in same if copied.confidence is not Confidence.LOW]
    # Equal zeros prove nothing, but where their source files are there twice, so are they.
    proven = {numbers for copied in sure if None not in (numbers := _unit_numbers(copied))}
    doubted = [copied for copied in same if copied.confidence is Confidence.LOW and _unit_numbers(copied) in proven]
    # The symbol table names no source file of global functions, which may differ.
    is_sure = all(copied.location is not None and copied.does_the_same_once for copied in sure)
    yield from [copied._replace(is_one_build=is_sure) for copied in _joined(statics, [*sure, *doubted])]
    others = _joined(statics, [c for c in of_source if not c.is_one_build])
    yield from [other._replace(is_one_build=False) for other in others if other.library is not None]


def _joined(statics: Statics, copies: Iterable[CopiedVariable]) -> Iterable[LinkedTwice]:
    by_count: dict[int, list[CopiedVariable]] = {}
    for copy in copies:
        by_count.setdefault(len(copy.copies), []).append(copy)
    for count, group in by_count.items():
        units = tuple(dict.fromkeys(unit for copied in group for unit in copied.units))
        variables = [_Repeated(c.name, c.size_bytes, None, (c.cost,) * count) for c in group]
        yield _repeated((statics.image.file,), units, variables, count)


def _unit_numbers(copies: CopiedVariable) -> frozenset[int | None]:
    return frozenset([copy.unit for copy in copies.copies])


_Holders = list[tuple[int, Symbol]]


def zeros_of_one_name(files: Sequence[Statics]) -> list[list[Symbol]]:
    """Return for each file its local variables without contents whose name and size another file has, too.

    Only the lines that declare them show whether they are copies.
    """
    locals_of: list[list[Symbol]] = [[] for _ in files]
    for holders in _of_one_name(files):
        for number, static in holders:
            if static.is_local and not files[number].image.sections[static.section_index].has_file_bytes:
                locals_of[number].append(static)
    return locals_of


def _across(files: Sequence[Statics], lines: Sequence[Lines]) -> Iterable[LinkedTwice]:
    """Find the variables that several files hold with the same contents; those of the same files are one result."""
    together: dict[tuple[int, ...], list[_Repeated]] = {}
    blank: dict[tuple[int, ...], list[_Repeated]] = {}
    several = _of_one_name(files)
    initials = {number: Initials(files[number]) for number in {number for holders in several for number, _ in holders}}
    for number, initials_of in initials.items():
        initials_of.prepare([static for hs in several for at, static in hs if at == number])
    for holders, is_blank in _same(initials, several, lines):
        by_number = dict(reversed(holders))
        numbers = tuple(sorted(by_number))
        own_units = {None if static.unit is None else files[number].units[static.unit] for number, static in holders}
        # Variables from source files of several names may come from a header. For zeros, all source files must be
        # known.
        names = own_units if is_blank else own_units - {None}
        unit = next(iter(names)) if len(names) == 1 else None
        costs = tuple(_cost(files[number], by_number[number], initials[number]) for number in numbers)
        static = holders[0][1]
        shared = _Repeated(normalised(static.name), static.size_bytes, unit, costs)
        (blank if is_blank else together).setdefault(numbers, []).append(shared)
    for numbers, group in together.items():
        if sum(v.size_bytes for v in group) >= _LEAST_TOGETHER_BYTES:
            units = tuple(dict.fromkeys(v.unit for v in group if v.unit))
            zeros = [v for v in blank.get(numbers, ()) if v.unit in units]
            twice = _repeated(
                tuple(files[number].image.file for number in numbers), units, [*group, *zeros], len(numbers)
            )
            # What its functions do in each file is not compared, and each may keep a state of its own.
            yield twice._replace(is_one_build=False)


def _cost(statics: Statics, static: Symbol, initials: Initials) -> Cost:
    section = statics.image.sections[static.section_index]
    return cost_of(statics.image, section, is_relocated=initials.is_relocated(static))


def _of_one_name(files: Sequence[Statics]) -> list[_Holders]:
    """Return the variables of one name and size that several files hold."""
    if len(files) < 2:
        return []
    holders: dict[tuple[str, int], _Holders] = {}
    for number, statics in enumerate(files):
        for static in statics.statics:
            if static.size_bytes >= LEAST_TELLING_BYTES and not ARTEFACT.match(static.name):
                holders.setdefault((normalised(static.name), static.size_bytes), []).append((number, static))
    return [holder for holder in holders.values() if _is_of_several(holder)]


def _same(
    initials: Mapping[int, Initials], several: Sequence[_Holders], lines: Sequence[Lines]
) -> Iterable[tuple[_Holders, bool]]:
    """Return those that begin with the same contents, and whether only zeros speak for it.

    Zeros that one line declares are the same variable.
    """
    for holders in several:
        by_contents: dict[Initial | None, _Holders] = {}
        for number, static in holders:
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


def _of_one_line(holders: _Holders, lines: Sequence[Lines]) -> list[_Holders]:
    """Return the local variables of several files that one line declares, for each such line."""
    by_line: dict[tuple[str, int | None], _Holders] = {}
    for number, static in holders:
        if static.is_local and (at := lines[number].get((static.is_tls, static.vaddr))) is not None:
            by_line.setdefault((at.file, at.line), []).append((number, static))
    return [on_line for on_line in by_line.values() if _is_of_several(on_line)]


def _is_of_several(holders: _Holders) -> bool:
    return len({number for number, _ in holders}) > 1


def _repeated(files: tuple[str, ...], units: tuple[str, ...], variables: list[_Repeated], count: int) -> LinkedTwice:
    variables.sort(key=lambda variable: (-variable.size_bytes, variable.name))
    names = tuple(variable.name for variable in variables)
    marks = {*units, *names}
    library = next((name for name, marks_of in _KNOWN if len(marks & marks_of) > 1), None)
    waste: Counter[Cost] = Counter()
    for variable in variables:
        # The copy that stays is the most expensive one, so the saving is a lower bound.
        for cost in sorted(variable.costs, key=DEAREST_FIRST.index)[1:]:
            waste[cost] += variable.size_bytes
    ordered = {cost: waste[cost] for cost in DEAREST_FIRST if waste[cost]}
    return LinkedTwice(files, library, units, names, sum(variable.size_bytes for variable in variables), count, ordered)
