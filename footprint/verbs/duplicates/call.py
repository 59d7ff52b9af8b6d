"""`footprint.duplicates`: data that files hold several times over.

Where constants are declared whose address the debug information lacks: found by name, source file and size.

gcc writes no address for an array whose contents it knows. A line is used only where nothing else can be meant:
every source of the name that the symbol table gives has debug information, each declares the one line, and each has
one variable for it.
"""

import os
import posixpath
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from footprint.dwarf.declared_variables import declaration_of
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace, VariablePlaces
from footprint.elf import abi
from footprint.elf.archive import read_members
from footprint.elf.image import Buffer, Image, read_image, starts_like_archive, starts_like_elf
from footprint.elf.names import source_name
from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.elf.prelink import Prelinked, prelinked
from footprint.elf.statics import Statics, read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import AccessError, FootprintError, InputError, Note, UsageError
from footprint.findings.copies import Declared, Lines, SearchedFile, of_one_name
from footprint.findings.linked_twice import LinkedTwice, zeros_of_one_name
from footprint.findings.registry import Fact, find_all
from footprint.findings.variable_rules.large_static import large_ones
from footprint.findings.variable_rules.mutable_constant import constant_tables
from footprint.findings.variables import FileVariables, Variables, file_variables
from footprint.members import NamedTuple, dataclass
from footprint.model.finding import Finding
from footprint.process.mappings import FileOpener
from footprint.process.snapshot import Snapshot, read_process
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.sources.debug_information import DebugInformation
from footprint.sources.demanglers import learn_foreign_names
from footprint.sources.target import Named, process_of, script_error
from footprint.system.files import each_once, open_input

if TYPE_CHECKING:
    from footprint.sources.process_files import ProcessFiles


def declared_by_name(
    statics: Statics,
    lacking: Collection[Symbol],
    by_name: Mapping[str, Sequence[Declaration]],
    compiled: Sequence[str],
) -> dict[tuple[bool, int], Declared]:
    """Find where the variables `lacking` are declared, whose address the debug information lacks.

    `by_name` has the declarations without an address by their name in the source, `compiled` the source file of each
    unit with debug information.
    """
    file_counts = Counter(statics.units)
    compiled_counts = Counter(map(posixpath.basename, compiled))
    sources: dict[str, set[str]] = {}
    for path in compiled:
        sources.setdefault(posixpath.basename(path), set()).add(path)
    named = [(source_name(static.name), static) for static in lacking if static.unit is not None]
    counts = Counter((name, static.unit, static.size_bytes) for name, static in named)
    lines: dict[tuple[bool, int], Declared] = {}
    for name, static in named:
        unit = statics.units[static.unit or 0]
        if counts[name, static.unit, static.size_bytes] > 1 or file_counts[unit] > compiled_counts[unit]:
            continue
        fitting = [
            d for d in by_name.get(name, ()) if d.size_bytes == static.size_bytes and d.unit in sources.get(unit, ())
        ]
        places = {(d.defined_in, d.defined_at_line, d.is_in_header, d.type_name, d.alignment_bytes) for d in fitting}
        if len(places) == 1 and {d.unit for d in fitting} == sources.get(unit):
            file, line, is_in_header, type_name, alignment_bytes = places.pop()
            if file is not None and line is not None:
                declared = Declared(file, line, is_in_header, type_name=type_name, standard=fitting[0].standard)
                lines[static.is_tls, static.vaddr] = declared._replace(alignment_bytes=alignment_bytes)
    return lines


@dataclass(frozen=True)
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
    files: tuple[SearchedFile, ...]
    linked_twice: tuple[LinkedTwice, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


def duplicates(*targets: Named, debug: DebugSearch | None = STANDARD_PLACES) -> Duplicates:
    """Find data that ELF files hold several times: within one file, and in several of the files.

    Args:
        targets: Files, or one PID: the files that this process has mapped. Objects (`.o`) and archives (`.a`) are taken
            together, as a linker would take them.
        debug: Where to look for the symbols and debug information of stripped ones; None for nowhere.

    Raises:
        AccessError: If the only file cannot be opened, or the process is gone.
        InputError: If the only file is no linked ELF file.
        UsageError: If nothing is named, or if no server for debug files is known.
    """
    if not targets:
        raise UsageError("name at least one ELF file, or a PID")
    named = process_of(targets[0]) if len(targets) == 1 else None
    process = None if named is None else _files_of(read_process(named.pid))
    paths = map(str, targets) if process is None else process.paths
    debug_files = DebugFiles(debug)
    files: list[Statics] = []
    objects: list[Image] = []
    notes: list[Note] = []
    reached = _reached(process)
    for path in each_once(paths, notes, reached):
        try:
            statics, unlinked, odd = _read(path, debug_files, reached)
            files += statics
            objects += unlinked
            notes += odd
        except FootprintError as error:
            if len(targets) == 1 and process is None:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    searched = _with_symbols(objects, notes) or objects
    wholes = [prelinked(alike, _name_of_objects(alike, targets)) for alike in _of_one_machine(searched)]
    files += [read_statics(whole.image) for whole in wholes]
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    variables = _variables_of(files, process, debug_files, notes, wholes)
    notes.extend(_symbol_notes(files))
    return Duplicates(
        tuple(map(str, targets)),
        None if named is None else named.pid,
        tuple(file.summary for file in variables.files),
        variables.linked_twice,
        find_all({Fact.VARIABLES: variables}),
        tuple(notes),
    )


def _with_symbols(objects: Iterable[Image], notes: list[Note]) -> list[Image]:
    """Return the objects with symbols; others that hold anything become notes: most are empty source files."""
    with_symbols = []
    for image in objects:
        if any(section.type == abi.SHT_SYMTAB for section in image.sections):
            with_symbols.append(image)
        elif any(section.is_in_memory and section.size_bytes for section in image.sections):
            notes.append(Note("no-source-files", image.file, "it has no symbol table: its variables are not known"))
    return with_symbols


def _name_of_objects(objects: Sequence[Image], targets: Sequence[Named]) -> str:
    """Return the name of objects as a whole: that of the only target, or of the first object."""
    if len(targets) == 1:
        return str(targets[0])
    first = objects[0].file
    return first if len(objects) == 1 else f"{first} and {len(objects) - 1} more"


def _of_one_machine(objects: Iterable[Image]) -> list[list[Image]]:
    """Group objects by machine: only those of one can become one file."""
    groups: dict[tuple[bool, bool, int], list[Image]] = {}
    for image in objects:
        groups.setdefault((image.is_64, image.is_little, image.machine), []).append(image)
    return list(groups.values())


def _variables_of(
    files: Sequence[Statics],
    process: "ProcessFiles | None",
    debug_files: DebugFiles,
    notes: list[Note],
    wholes: Iterable[Prelinked] = (),
) -> Variables:
    """Look up the declarations of the variables of some files, and find the copies among them.

    Raises:
        InputError: If the only file is damaged; of several, a damaged one becomes a note.
    """
    learn_foreign_names(static.name for file in files for static in file.statics)
    private = None if process is None else process.private_bytes([file.image for file in files])
    reached = _reached(process)
    variables: list[FileVariables] = []
    whole_of = {id(whole.image): whole for whole in wholes}
    for file, zeros in zip(files, zeros_of_one_name(files), strict=True):
        parts = _parts_of(file, whole_of.get(id(file.image)), debug_files, reached)
        groups = of_one_name(file)
        declared = _declared(file, [static for group in groups for static in group], zeros, parts, notes)
        private_of = None if private is None else partial(private.of, file.image)
        try:
            variables.append(file_variables(file, declared, groups, private_of))
        except FootprintError as error:
            if len(files) == 1:
                raise
            notes.append(Note("file-unreadable", file.image.file, error.detail))
    return Variables(variables)


def variables_in(image: Image, debug: DebugSearch | None, open_file: FileOpener) -> Variables | None:
    """Read the variables of one file; None if it is not linked, or damaged."""
    if image.is_relocatable:
        return None
    debug_files = DebugFiles(debug, open_file=open_file)
    try:
        return _variables_of([_statics(image, debug_files, image.file)[0]], None, debug_files, [])
    except FootprintError:
        # Only this part of the answer needs its symbols.
        return None


def variables_of(snapshot: Snapshot, debug: DebugSearch | None, open_file: FileOpener) -> Variables | None:
    """Read the variables of the files of a live process; None if its only file is damaged."""
    process, debug_files = _files_of(snapshot), DebugFiles(debug, open_file=open_file)
    files: list[Statics] = []
    for path in each_once(process.paths, [], process.reached):
        # The audit itself tells which files cannot be read.
        with suppress(FootprintError):
            files += _read(path, debug_files, process.reached, open_file)[0]
    try:
        return _variables_of(files, process, debug_files, [])
    except FootprintError:
        # Only this part of the answer needs their symbols.
        return None


def _files_of(snapshot: Snapshot) -> "ProcessFiles":
    from footprint.sources.process_files import ProcessFiles  # noqa: PLC0415 # most answers are of files alone

    return ProcessFiles(snapshot)


def _reached(process: "ProcessFiles | None") -> Callable[[str], str]:
    """Return a function from the name of a file to its path: a process may have another root directory."""
    return str if process is None else process.reached


def _read(
    path: str, debug_files: DebugFiles, reached: Callable[[str], str], open_file: FileOpener | None = None
) -> tuple[list[Statics], list[Image], list[Note]]:
    """Read a linked file, or the objects that a file is or holds."""
    # A file that the user names may be a pipe.
    data = open_input(reached(path)) if open_file is None else open_file(reached(path), None)
    if isinstance(data, str):
        raise AccessError(path, data)
    if starts_like_archive(data):
        objects, notes = _members(data, path)
        return [], objects, notes
    if bytes(data[:2]) == b"#!":
        raise script_error(path, bytes(data[:4096]))
    image = read_image(data, path)
    if image.is_relocatable:
        return [], [image], []
    statics, odd = _statics(image, debug_files, reached(path))
    return [statics], [], odd


def _members(data: Buffer, path: str) -> tuple[list[Image], list[Note]]:
    """Read the objects of an archive; what is none becomes a note."""
    objects: list[Image] = []
    notes: list[Note] = []
    for member in read_members(data, path):
        name = f"{path}({member.name})"
        try:
            contents = member.data
            if contents is None:
                contents = open_input(os.path.join(os.path.dirname(path), member.name))
            if starts_like_elf(contents) and (image := read_image(contents, name)).is_relocatable:
                objects.append(image)
            else:
                notes.append(Note("member-not-elf", name, "it is not an ELF object: skipped"))
        except FootprintError as error:
            notes.append(Note("file-unreadable", name, error.detail))
    return objects, notes


def _statics(image: Image, debug_files: DebugFiles, path: str) -> tuple[Statics, list[Note]]:
    statics, _, odd = debug_files.read(image, read_statics, *absolute_paths(path))
    return statics, odd


class _Part(NamedTuple):
    """A file with debug information for some of the variables: the file itself, or one of the objects of a whole.

    Attributes:
        information: The debug information.
        place_of: Returns the place of a variable there; None where the variable is not of this part.
    """

    information: DebugInformation
    place_of: Callable[[Symbol], VariablePlace | None]


def _parts_of(
    statics: Statics, whole: Prelinked | None, debug_files: DebugFiles, reached: Callable[[str], str]
) -> list[_Part]:
    if whole is not None:
        return [_object_part(whole, number, debug_files) for number in range(len(whole.objects))]
    paths = absolute_paths(reached(statics.image.file))
    information = DebugInformation(debug_files, statics.image, statics.debug, *paths)

    def place_of(symbol: Symbol) -> VariablePlace | None:
        return VariablePlace(symbol.vaddr, symbol.is_tls) if symbol.section_index in information.within else None

    return [_Part(information, place_of)]


@dataclass(frozen=True)
class _UnitFunctions:
    """Returns the functions of a unit when it is called: it takes a walk through the unit.

    Attributes:
        information: The debug information that has the unit.
        start: The start of the unit.
    """

    information: DebugInformation
    start: int

    def __call__(self) -> frozenset[tuple[str, int]] | None:
        return self.information.functions_of_unit(self.start)


def _object_part(whole: Prelinked, number: int, debug_files: DebugFiles) -> _Part:
    image = whole.objects[number]
    places = VariablePlaces(image)
    own_places = [place for place in whole.places if place.number == number]
    starts = [(own_place.is_tls, own_place.start_vaddr) for own_place in own_places]

    def place_of(symbol: Symbol) -> VariablePlace | None:
        at = bisect_right(starts, (symbol.is_tls, symbol.vaddr)) - 1
        place = own_places[at] if at >= 0 else None
        if place is None or place.is_tls != symbol.is_tls or not place.start_vaddr <= symbol.vaddr < place.end_vaddr:
            return None
        if place.section is None:
            return VariablePlace(places.commons[place.name], symbol.is_tls)
        return places.at(place.section, symbol.vaddr - place.start_vaddr)

    return _Part(DebugInformation(debug_files, image, None, *absolute_paths(image.file)), place_of)


_Place = tuple[bool, int]


def _declared(
    statics: Statics, several: Sequence[Symbol], zeros: Sequence[Symbol], parts: Sequence[_Part], notes: list[Note]
) -> Lines:
    """Look up where variables are declared that are large, may be const or copies, also of `zeros` of other files."""
    others = (*zeros, *large_ones(statics))
    wanted = {(other.is_tls, other.vaddr): other for other in (*several, *others, *constant_tables(statics))}
    if not wanted:
        return {}
    lines: dict[_Place, Declared] = {}
    for part in parts:
        within = {key: place for key, static in wanted.items() if (place := part.place_of(static)) is not None}
        names = {place: wanted[key].name for key, place in within.items()}
        by_place = part.information.declarations(within.values(), names)
        for key, place in within.items():
            declaration = declaration_of(wanted[key].name, by_place.get(place, ()))
            if declaration is not None and declaration.defined_in is not None:
                at = declaration.defined_in, declaration.defined_at_line, declaration.is_in_header
                is_own = not declaration.is_in_header and declaration.unit_start is not None
                functions = _UnitFunctions(part.information, declaration.unit_start or 0) if is_own else None
                entry = Declared(*at, declaration.function, declaration.type_name, declaration.standard, functions)
                lines[key] = entry._replace(alignment_bytes=declaration.alignment_bytes)
    lines |= _constants(statics, several, lines, parts)
    if several or others:
        # Variables that may be const are shown without a line, too.
        notes.extend(note for part in parts for note in part.information.notes)
    return lines


def _constants(
    statics: Statics, several: Sequence[Symbol], lines: Mapping[_Place, Declared], parts: Sequence[_Part]
) -> dict[_Place, Declared]:
    """Find the lines of constants that lack an address in some units, and the contents that they have there."""
    sections = statics.image.sections
    constants = {
        key: static
        for static in several
        if (key := (static.is_tls, static.vaddr)) not in lines or not sections[static.section_index].is_writable
    }
    lacking = [constant for key, constant in constants.items() if key not in lines]
    by_name: dict[str, tuple[Declaration, ...]] = {}
    compiled: list[str] = []
    for part in parts:
        names = [source_name(constant.name) for constant in constants.values()]
        named, sources = part.information.declarations_by_name(names, with_types=bool(lacking))
        compiled += sources
        for name, declarations in named.items():
            by_name[name] = (*by_name.get(name, ()), *declarations)
    lines_found = declared_by_name(statics, lacking, by_name, compiled)
    for key, constant in constants.items():
        at = lines_found.get(key) or lines.get(key)
        folded = at and _folded(source_name(constant.name), at, by_name)
        if at is not None and folded:
            lines_found[key] = at._replace(folded=folded)
    return lines_found


def _folded(name: str, at: Declared, by_name: Mapping[str, Sequence[Declaration]]) -> frozenset[bytes]:
    """Return the contents that the line of a constant has in units that need no address of it."""
    return frozenset(
        d.contents
        for d in by_name.get(name, ())
        if d.contents is not None and (d.defined_in, d.defined_at_line) == (at.file, at.line)
    )


def _symbol_notes(files: Sequence[Statics]) -> Iterable[Note]:
    for file in files:
        if file.is_stripped:
            yield Note("no-source-files", file.image.file, "it is stripped: only exported variables are known")
        elif not file.units:
            yield Note("no-source-files", file.image.file, "its symbols have no source files")
