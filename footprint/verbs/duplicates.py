"""`footprint.duplicates`: data that files hold several times over."""

from collections.abc import Iterable, Sequence

from footprint.audit.finding import Confidence, Finding
from footprint.elf import Image, read_image
from footprint.elf.sources import Place, said_of
from footprint.elf.statics import Statics, read_statics
from footprint.errors import FootprintError, InputError, Note, UsageError
from footprint.files import open_input
from footprint.findings.declared_by_name import declared_by_name, source_name
from footprint.findings.duplicate_statics import (
    Declared,
    FileCopies,
    Lines,
    candidates,
    duplicate_findings,
    find_copies,
)
from footprint.findings.large_statics import large_ones, large_statics
from footprint.findings.linked_twice import Duplicates, linked_twice, linked_twice_findings
from footprint.process import read_process
from footprint.verbs.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch, absolute_paths
from footprint.verbs.debug_information import DebugInformation
from footprint.verbs.processes import process_number

__all__ = ("duplicates", "findings_in")


def duplicates(*targets: int | str, debug: DebugSearch | None = STANDARD_PLACES) -> Duplicates:
    """Find what ELF files hold several times: each by itself, and those that are given together among one another.

    Args:
        targets: Files, or one PID: the files that this process has mapped.
        debug: Where to look for the symbols and debug information of stripped ones; None for nowhere.

    Raises:
        AccessError: Where the only file cannot be opened, or the process is gone.
        InputError: Where the only file is no linked ELF file.
        UsageError: Where nothing is named, or no server for debug files is known that are to be asked for.
    """
    if not targets:
        raise UsageError("name at least one ELF file, or a PID")
    pid = process_number(targets[0]) if len(targets) == 1 else None
    paths = [str(target) for target in targets] if pid is None else _files_of(pid)
    debug_files = DebugFiles(debug)
    files: list[Statics] = []
    notes: list[Note] = []
    for path in dict.fromkeys(paths):
        try:
            statics, odd = _read(path, debug_files)
            files.append(statics)
            notes += odd
        except FootprintError as error:
            if len(targets) == 1 and pid is None:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    lines = [_declared(one, debug_files, notes) for one in files]
    found = [
        FileCopies(
            one.image.file,
            len(one.statics),
            len(one.units),
            find_copies(one, declared),
            None if one.debug is None else one.debug.image.file,
        )
        for one, declared in zip(files, lines, strict=True)
    ]
    notes.extend(_symbol_notes(files))
    twice = linked_twice(files, [one.copies for one in found])
    findings = [finding for one in found for finding in duplicate_findings(one.copies, one.file)]
    findings += linked_twice_findings(twice)
    for one, declared in zip(files, lines, strict=True):
        findings += large_statics(one, declared)
    return Duplicates(tuple(map(str, targets)), pid, tuple(found), twice, tuple(findings), tuple(notes))


def findings_in(image: Image) -> tuple[Finding, ...]:
    """Find what one file holds several times, and its large variables that nothing needs; without those doubted.

    Raises:
        InputError: Where its symbols or relocations are damaged.
    """
    if image.is_relocatable:
        return ()
    statics = read_statics(image)
    declared = _declared(statics, DebugFiles(None), [])
    copies = find_copies(statics, declared)
    findings = (
        *duplicate_findings(copies, image.file),
        *linked_twice_findings(linked_twice([statics], [copies])),
        *large_statics(statics, declared),
    )
    return tuple([one for one in findings if one.confidence is not Confidence.LOW])


def _files_of(pid: int) -> list[str]:
    """Give the ELF files that a process runs, as they are reached from here."""
    mappings = read_process(pid).memory.mappings
    names = [one.name for one in mappings if one.inode and one.permissions[2] == "x" and one.name.startswith("/")]
    return [f"/proc/{pid}/root{name}" for name in dict.fromkeys(names)]


def _read(path: str, debug_files: DebugFiles) -> tuple[Statics, list[Note]]:
    image = read_image(open_input(path), path)
    if image.is_relocatable:
        raise InputError(path, "it is not linked yet: only in a linked file there are copies to count")
    statics, _, odd = debug_files.read(image, read_statics, *absolute_paths(path))
    return statics, odd


def _declared(statics: Statics, debug_files: DebugFiles, notes: list[Note]) -> Lines:
    """Look up where the variables are declared that may be copies or are large."""
    several = candidates(statics)
    wanted = {(one.is_tls, one.vaddr): one for one in (*several, *large_ones(statics))}
    if not wanted:
        return {}
    image = statics.image
    information = DebugInformation(debug_files, image, statics.debug, *absolute_paths(image.file))
    within = {place: one for place, one in wanted.items() if one.section_index in information.within}
    found = information.declarations(Place(vaddr, is_tls) for is_tls, vaddr in within)
    lines: dict[tuple[bool, int], Declared] = {}
    for (is_tls, vaddr), static in within.items():
        said = said_of(static.name, found.get(Place(vaddr, is_tls), ()))
        if said is not None and said.defined_in is not None:
            declared = Declared(said.defined_in, said.defined_at_line, said.is_in_header, said.function)
            lines[is_tls, vaddr] = declared
    lacking = [one for one in several if (one.is_tls, one.vaddr) not in lines]
    by_name, compiled = information.declarations_by_name(map(source_name, lacking))
    notes.extend(information.notes)
    return lines | declared_by_name(statics, lacking, by_name, compiled)


def _symbol_notes(files: Sequence[Statics]) -> Iterable[Note]:
    for one in files:
        if one.is_stripped:
            yield Note("no-source-files", one.image.file, "it is stripped: only what it exports can be told")
        elif not one.units:
            yield Note("no-source-files", one.image.file, "its symbols do not tell which source files they came from")
