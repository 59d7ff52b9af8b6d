"""`footprint.duplicates`: data that files hold several times over."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from footprint.dwarf import VariablePlace
from footprint.dwarf.declared_variables import declaration_of
from footprint.elf import Image, read_image
from footprint.elf.names import source_name
from footprint.elf.statics import Statics, read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import AccessError, FootprintError, InputError, Note, UsageError
from footprint.files import open_input
from footprint.findings.copies import Declared, Lines, SearchedFile, candidates
from footprint.findings.declared_by_name import declared_by_name
from footprint.findings.linked_twice import LinkedTwice, zeros_of_one_name
from footprint.findings.registry import Fact, find_all
from footprint.findings.variable_rules.large_static import large_ones
from footprint.findings.variable_rules.mutable_constant import constant_tables
from footprint.findings.variables import FileVariables, Variables, file_variables
from footprint.model.finding import Finding
from footprint.process import Snapshot, read_process
from footprint.process.mapped_files import FileOpener
from footprint.sources.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch, absolute_paths
from footprint.sources.debug_information import DebugInformation
from footprint.sources.open_files import each_once
from footprint.sources.process_files import ProcessFiles
from footprint.sources.target import Named, process_of

__all__ = ("Duplicates", "duplicates", "variables_in", "variables_of")


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
    files: tuple[SearchedFile, ...]
    linked_twice: tuple[LinkedTwice, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


def duplicates(*targets: Named, debug: DebugSearch | None = STANDARD_PLACES) -> Duplicates:
    """Find data that ELF files hold several times: within one file, and in several of the files.

    Args:
        targets: Files, or one PID: the files that this process has mapped.
        debug: Where to look for the symbols and debug information of stripped ones; None for nowhere.

    Raises:
        AccessError: If the only file cannot be opened, or the process is gone.
        InputError: If the only file is no linked ELF file.
        UsageError: If nothing is named, or if no server for debug files is known.
    """
    if not targets:
        raise UsageError("name at least one ELF file, or a PID")
    named = process_of(targets[0]) if len(targets) == 1 else None
    process = None if named is None else ProcessFiles(read_process(named.pid))
    paths = map(str, targets) if process is None else process.paths
    debug_files = DebugFiles(debug)
    files: list[Statics] = []
    notes: list[Note] = []
    reached = _reached(process)
    for path in each_once(paths, notes, reached):
        try:
            statics, odd = _read(path, debug_files, reached)
            files.append(statics)
            notes += odd
        except FootprintError as error:
            if len(targets) == 1 and process is None:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    variables = _variables_of(files, process, debug_files, notes)
    notes.extend(_symbol_notes(files))
    return Duplicates(
        tuple(map(str, targets)),
        None if named is None else named.pid,
        tuple(one.summary for one in variables.files),
        variables.linked_twice,
        find_all({Fact.VARIABLES: variables}),
        tuple(notes),
    )


def _variables_of(
    files: Sequence[Statics], process: ProcessFiles | None, debug_files: DebugFiles, notes: list[Note]
) -> Variables:
    """Look up the declarations of the variables of some files, and find the copies among them.

    Raises:
        InputError: If the only file is damaged; of several, a damaged one becomes a note.
    """
    private = None if process is None else process.private_bytes([one.image for one in files])
    reached = _reached(process)
    found: list[FileVariables] = []
    for one, zeros in zip(files, zeros_of_one_name(files), strict=True):
        declared = _declared(one, zeros, debug_files, reached(one.image.file), notes)
        private_of = None if private is None else partial(private.of, one.image)
        try:
            found.append(file_variables(one, declared, private_of))
        except FootprintError as error:
            if len(files) == 1:
                raise
            notes.append(Note("file-unreadable", one.image.file, error.detail))
    return Variables(found)


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
    process, debug_files = ProcessFiles(snapshot), DebugFiles(debug, open_file=open_file)
    files: list[Statics] = []
    for path in each_once(process.paths, [], process.reached):
        # The audit itself tells which files cannot be read.
        with suppress(FootprintError):
            files.append(_read(path, debug_files, process.reached, open_file)[0])
    try:
        return _variables_of(files, process, debug_files, [])
    except FootprintError:
        # Only this part of the answer needs their symbols.
        return None


def _reached(process: ProcessFiles | None) -> Callable[[str], str]:
    """Return a function from the name of a file to its path: a process may have another root directory."""
    return str if process is None else process.reached


def _read(
    path: str, debug_files: DebugFiles, reached: Callable[[str], str], open_file: FileOpener | None = None
) -> tuple[Statics, list[Note]]:
    # A file that the user names may be a pipe.
    data = open_input(reached(path)) if open_file is None else open_file(reached(path), None)
    if isinstance(data, str):
        raise AccessError(path, data)
    image = read_image(data, path)
    if image.is_relocatable:
        raise InputError(path, "it is not linked: only a linked file has copies to count")
    return _statics(image, debug_files, reached(path))


def _statics(image: Image, debug_files: DebugFiles, path: str) -> tuple[Statics, list[Note]]:
    statics, _, odd = debug_files.read(image, read_statics, *absolute_paths(path))
    return statics, odd


def _declared(
    statics: Statics, zeros: Sequence[Symbol], debug_files: DebugFiles, path: str, notes: list[Note]
) -> Lines:
    """Look up where variables are declared that are large, may be const or copies, also of `zeros` of other files."""
    several = candidates(statics)
    others = (*zeros, *large_ones(statics), *constant_tables(statics))
    wanted = {(one.is_tls, one.vaddr): one for one in (*several, *others)}
    if not wanted:
        return {}
    image = statics.image
    information = DebugInformation(debug_files, image, statics.debug, *absolute_paths(path))
    within = {place: one for place, one in wanted.items() if one.section_index in information.within}
    found = information.declarations(VariablePlace(vaddr, is_tls) for is_tls, vaddr in within)
    lines: dict[tuple[bool, int], Declared] = {}
    for (is_tls, vaddr), static in within.items():
        said = declaration_of(static.name, found.get(VariablePlace(vaddr, is_tls), ()))
        if said is not None and said.defined_in is not None:
            place = said.defined_in, said.defined_at_line, said.is_in_header
            lines[is_tls, vaddr] = Declared(*place, said.function, said.type_name, said.standard)
    lacking = [one for one in several if (one.is_tls, one.vaddr) not in lines]
    by_name, compiled = information.declarations_by_name(source_name(one.name) for one in lacking)
    notes.extend(information.notes)
    return lines | declared_by_name(statics, lacking, by_name, compiled)


def _symbol_notes(files: Sequence[Statics]) -> Iterable[Note]:
    for one in files:
        if one.is_stripped:
            yield Note("no-source-files", one.image.file, "it is stripped: only exported variables are known")
        elif not one.units:
            yield Note("no-source-files", one.image.file, "its symbols have no source files")
