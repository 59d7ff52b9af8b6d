"""Rule `linked-twice`: one library, or one source file, that several objects of a process hold, or one object twice.

A static library that is part of the program and of a library has its tables twice, under the same names and with the
same contents. What appears together is one finding.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from footprint.audit.finding import Confidence, Finding
from footprint.elf import shown_name
from footprint.elf.initial import Initial, Initials
from footprint.elf.names import normalised
from footprint.elf.statics import Static, Statics
from footprint.errors import Note
from footprint.findings.duplicate_statics import ARTEFACT, LEAST_TELLING_BYTES, Copies, FileCopies, Origin
from footprint.units import counted, first_of, format_bytes

__all__ = ("RULE", "Duplicates", "LinkedTwice", "linked_twice", "linked_twice_findings")

RULE: Final = "linked-twice"

_LEAST_TOGETHER_BYTES: Final = 256
# The vtable and type of a class: of one that a header defines each library has its own, and that is nobody's mistake.
_OF_CLASS: Final = re.compile(r"_ZT[VTIS]")
_MOST_NAMED: Final = 3
_LONGEST_NAME: Final = 60
# Libraries that are often linked in, by source files or symbols that only they have together.
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


class LinkedTwice(NamedTuple):
    """What several files hold, or one file several times.

    Attributes:
        files: The files; one of them several times where it holds several.
        library: The library that it is, where it is a known one.
        units: Source files, where the symbol tables tell.
        names: The variables, the largest first.
        size_bytes: What one copy of all of them takes.
        copy_count: How many copies of them there are.
    """

    files: tuple[str, ...]
    library: str | None
    units: tuple[str, ...]
    names: tuple[str, ...]
    size_bytes: int
    copy_count: int

    @property
    def waste_bytes(self) -> int:
        """Give what all copies but one take."""
        return (self.copy_count - 1) * self.size_bytes


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What files hold several times.

    Attributes:
        targets: What was asked about.
        pid: The process, where one was.
        files: The copies in each file.
        linked_twice: What several of the files hold, or one several times over.
        findings: All of it with what it costs, and what to do.
        notes: What the reader must know.
    """

    targets: tuple[str, ...]
    pid: int | None
    files: tuple[FileCopies, ...]
    linked_twice: tuple[LinkedTwice, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


def linked_twice(files: Sequence[Statics], copies: Sequence[Sequence[Copies]]) -> tuple[LinkedTwice, ...]:
    """Find what is linked in several times, the largest first.

    Args:
        files: The variables of each file.
        copies: The copies within each of them.
    """
    found = [*_across(files), *(one for s, c in zip(files, copies, strict=True) for one in _within(s, c))]
    return tuple(sorted(found, key=lambda one: (-one.waste_bytes, one.files, one.names)))


def _within(statics: Statics, copies: Iterable[Copies]) -> Iterable[LinkedTwice]:
    """Put the copies of one file together that came of source files that were linked in several times."""
    by_count: dict[int, list[Copies]] = {}
    for one in copies:
        if one.origin is Origin.SOURCE and one.confidence is not Confidence.LOW:
            by_count.setdefault(len(one.copies), []).append(one)
    for count, group in by_count.items():
        units = tuple(dict.fromkeys(unit for one in group for unit in one.units))
        yield _found((statics.image.file,), units, [(one.size_bytes, one.name) for one in group], count)


_Held = list[tuple[int, Static]]


def _across(files: Sequence[Statics]) -> Iterable[LinkedTwice]:
    """Find the variables that several files hold with the same contents; those of the same files are one finding."""
    together: dict[tuple[int, ...], list[tuple[int, str, str | None]]] = {}
    for held in _same(files, _of_one_name(files)):
        number, static = held[0]
        unit = None if static.unit is None else files[number].units[static.unit]
        numbers = tuple(sorted({number for number, _ in held}))
        together.setdefault(numbers, []).append((static.size_bytes, normalised(static.name), unit))
    for numbers, group in together.items():
        if sum(size for size, _, _ in group) >= _LEAST_TOGETHER_BYTES:
            units = tuple(dict.fromkeys(unit for _, _, unit in group if unit))
            names = [(size, name) for size, name, _ in group]
            yield _found(tuple(files[number].image.file for number in numbers), units, names, len(numbers))


def _of_one_name(files: Sequence[Statics]) -> list[_Held]:
    """Give the variables of one name and size that stand in several files."""
    holders: dict[tuple[str, int], _Held] = {}
    for number, statics in enumerate(files):
        for static in statics.statics:
            if (
                static.size_bytes >= LEAST_TELLING_BYTES
                and not ARTEFACT.match(static.name)
                and not _OF_CLASS.match(static.name)
            ):
                holders.setdefault((normalised(static.name), static.size_bytes), []).append((number, static))
    return [held for held in holders.values() if len({number for number, _ in held}) > 1]


def _same(files: Sequence[Statics], several: Sequence[_Held]) -> Iterable[_Held]:
    """Give those of them that begin with the same contents."""
    initials = {number: Initials(files[number]) for number in {number for held in several for number, _ in held}}
    for number, one in initials.items():
        one.prepare([static for held in several for at, static in held if at == number])
    for held in several:
        by_contents: dict[Initial, _Held] = {}
        for number, static in held:
            initial = initials[number].of(static)
            if initial is not None and not initial.is_blank:
                by_contents.setdefault(initial, []).append((number, static))
        for same in by_contents.values():
            if len({number for number, _ in same}) > 1:
                yield same


def _found(files: tuple[str, ...], units: tuple[str, ...], sized: list[tuple[int, str]], count: int) -> LinkedTwice:
    sized.sort(key=lambda one: (-one[0], one[1]))
    names = tuple(name for _, name in sized)
    marks = {*units, *names}
    library = next((name for name, known in _KNOWN if len(marks & known) > 1), None)
    return LinkedTwice(files, library, units, names, sum(size for size, _ in sized), count)


def linked_twice_findings(found: Iterable[LinkedTwice]) -> tuple[Finding, ...]:
    """Say what is linked in several times, and what to do about it."""
    return tuple([_finding(one) for one in found])


def _finding(one: LinkedTwice) -> Finding:
    what = one.library or first_of(one.units or tuple(map(_short, one.names)), _MOST_NAMED)
    where = first_of([file.rsplit("/", 1)[-1] for file in one.files], _MOST_NAMED)
    number = counted(one.copy_count, "copy")
    tables = counted(len(one.names), "variable")
    message = f"{number} of {what}, in {where}: {tables} of {format_bytes(one.size_bytes)} each time"
    confidence = Confidence.HIGH if one.library or len(one.names) > 1 else Confidence.MEDIUM
    reason = "variables of the same names and contents that stand together"
    remedy = "link it once, as a shared library that all of them need" if len(one.files) > 1 else "link it only once"
    kind = "across-files" if len(one.files) > 1 else "within-file"
    return Finding(RULE, kind, what, message, 0, confidence, (reason,), remedy)


def _short(name: str) -> str:
    shown = shown_name(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 3]}..."
