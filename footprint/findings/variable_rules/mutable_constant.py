"""Rule `mutable-constant`: variables of `.data` that nothing writes, which `const` would move to shared memory.

A compiler makes a variable constant by itself where only its source file knows it. A table that others may use stays in
`.data`, between variables that are written: its pages become private with theirs.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.harmless import Use
from footprint.elf.image import Image
from footprint.elf.initial import Initials
from footprint.elf.names import shown_name, source_name
from footprint.elf.references import ReferencedPlace, can_find_references
from footprint.elf.sameness import is_constant, is_of_compiler
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.copies import ARTEFACT, Lines, PrivateOf
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.members import lazy_pattern
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.text.units import format_bytes

_LEAST_BYTES: Final = 64
_MOST_SEARCHED: Final = 4096
_MOST_BEFORE_BYTES: Final = 1024
# `kTable` and `TABLE_OF_ANYTHING`: how sources name constants.
_NAMED_CONSTANT: Final = lazy_pattern(r"k[A-Z]|[A-Z][A-Z0-9_]{2,}$")
_OF_NAME: Final = "its name is that of a constant"
_OF_PROCESS: Final = "no page of it is private in this process: nothing has written it yet"
_HANDED_ON: Final = "code passes its address on, and may write it there"
# So gfortran names the variables of modules, and rustc its own.
_REMEDIES: Final = (
    (lazy_pattern(r"__\w+_MOD_"), "give it the attribute `parameter`"),
    (lazy_pattern(r"_R[A-Z]|_ZN.+17h[0-9a-f]{16}E"), "declare it `static` without `mut`, `Cell` and atomics"),
    (lazy_pattern(""), "declare and define it `const`"),
)


def _find(variables: Variables) -> tuple[Finding, ...]:
    return variables.search(mutable_constants)


RULE: Final = Rule("mutable-constant", "A variable that nothing writes", (Fact.VARIABLES,), _find, rank=3)


def constant_tables(statics: Statics) -> list[Symbol]:
    """Return the variables that may be constant by where they lie and what they hold, the largest first.

    Those with pointers are left out: the loader writes them, also where they are `const`.
    """
    image = statics.image
    initials = Initials(statics)
    tables = []
    for static in statics.statics:
        section = image.sections[static.section_index]
        is_candidate = (
            static.size_bytes >= _LEAST_BYTES
            and not static.is_tls
            and section.has_file_bytes
            and not is_constant(image, section)
            and is_of_compiler(section)
            and not ARTEFACT.match(static.name)
        )
        if is_candidate and not initials.is_relocated(static):
            contents = initials.contents(static)
            if contents is not None and (contents.pointers or any(contents.raw or b"")):
                tables.append(static)
    return sorted(tables, key=lambda table: (-table.size_bytes, table.name))


def mutable_constants(
    statics: Statics, declared: Lines | None = None, private_of: PrivateOf | None = None
) -> tuple[Finding, ...]:
    """Find the variables of `.data` that nothing writes, the largest first.

    Raises:
        InputError: Where a table or segment of the file is damaged.
    """
    if not can_find_references(statics.image):
        return ()
    candidates = constant_tables(statics)
    if not candidates:
        return ()
    exported = read_dynamic_symbols(statics.image).vaddrs(statics.image)
    tables = [t for t in candidates if t.vaddr not in exported][:_MOST_SEARCHED]
    tables.sort(key=lambda table: table.vaddr)
    starts = sorted({static.vaddr for static in statics.statics if not static.is_tls})
    from footprint.elf.uses import Uses  # noqa: PLC0415 # its import takes 20,000,000 instructions

    uses = Uses(statics.image, statics.functions, _places(tables, starts, statics.image), set(starts))
    findings = []
    for table in tables:
        use = uses.of(table.vaddr, Use.WRITTEN).use
        private_bytes = None if private_of is None else private_of([(table.vaddr, table.vaddr + table.size_bytes)])
        graded = _graded(table, use, private_bytes)
        if graded is not None:
            findings.append(_finding(table, statics, declared or {}, private_bytes, *graded))
    return tuple(sorted(findings, key=lambda finding: (-(finding.size_bytes or 0), finding.subject)))


def _places(tables: Iterable[Symbol], starts: Sequence[int], image: Image) -> list[ReferencedPlace]:
    """Return the vaddrs that may mean each variable: `table[i - 1]` refers to one before it, but in its section."""
    places = []
    for table in tables:
        number, end_vaddr = bisect_left(starts, table.vaddr), table.vaddr + table.size_bytes
        before_bytes = min(_MOST_BEFORE_BYTES, table.vaddr - image.sections[table.section_index].vaddr)
        if number:
            before_bytes = min(before_bytes, table.vaddr - starts[number - 1] - 1)
        is_followed = number + 1 < len(starts) and starts[number + 1] == end_vaddr
        places.append(
            ReferencedPlace(
                table.vaddr, end_vaddr, is_code=False, before_bytes=max(0, before_bytes), after_bytes=not is_followed
            )
        )
    return places


def _graded(table: Symbol, use: Use, private_bytes: int | None) -> tuple[Confidence, tuple[str, ...]] | None:
    """Return how sure it is that nothing writes a variable, and why; None where something does, or may."""
    hints = (_OF_NAME,) if _NAMED_CONSTANT.match(source_name(table.name)) else ()
    if private_bytes == 0:
        hints = (_OF_PROCESS, *hints)
    if use and not use & (Use.HANDED_ON | Use.WRITTEN):
        return Confidence.HIGH, ("all code that refers to it only reads it", *hints)
    if Use.HANDED_ON in use and hints:
        return (Confidence.MEDIUM if private_bytes == 0 else Confidence.LOW), (*hints, _HANDED_ON)
    return None


def _finding(
    table: Symbol,
    statics: Statics,
    declared: Lines,
    private_bytes: int | None,
    confidence: Confidence,
    reasons: tuple[str, ...],
) -> Finding:
    name, path = shown_name(table.name), statics.image.file
    section = statics.image.sections[table.section_index].name
    at = declared.get((False, table.vaddr))
    message = f"{name} takes {format_bytes(table.size_bytes)} of {section} of {path.rsplit('/', 1)[-1]}, "
    message += "and nothing writes it" if confidence is Confidence.HIGH else "and may be constant"
    if private_bytes:
        message += f"; {format_bytes(private_bytes)} of it is private now"
    remedy = next(words for names, words in _REMEDIES if names.match(table.name))
    return Finding(
        RULE.name,
        "read-only" if confidence is Confidence.HIGH else "unwritten",
        name,
        message,
        private_bytes or 0,
        confidence,
        reasons,
        f"{remedy}: it then lies in .rodata, which all processes share",
        location=SourceLocation(at.file, at.line) if at else None,
        object=path,
        private_bytes=private_bytes,
        size_bytes=table.size_bytes,
    )
