"""`footprint.duplicates`: data that files hold several times over."""

from collections.abc import Iterable, Sequence

from footprint.audit.finding import Confidence, Finding
from footprint.elf import Image, read_image
from footprint.elf.dwarf import read_declarations
from footprint.elf.statics import Statics, read_statics
from footprint.errors import FootprintError, InputError, Note, UsageError
from footprint.files import open_input
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
from footprint.verbs.processes import process_number

__all__ = ("duplicates", "findings_in")


def duplicates(*targets: int | str) -> Duplicates:
    """Find what ELF files hold several times: each by itself, and those that are given together among one another.

    Args:
        targets: Files, or one PID: the files that this process has mapped.

    Raises:
        AccessError: Where the only file cannot be opened, or the process is gone.
        InputError: Where the only file is no linked ELF file.
        UsageError: Where nothing is named.
    """
    if not targets:
        raise UsageError("name at least one ELF file, or a PID")
    pid = process_number(targets[0]) if len(targets) == 1 else None
    paths = [str(target) for target in targets] if pid is None else _files_of(pid)
    files: list[Statics] = []
    notes: list[Note] = []
    for path in dict.fromkeys(paths):
        try:
            files.append(_read(path))
        except FootprintError as error:
            if len(targets) == 1 and pid is None:
                raise
            notes.append(Note("file-unreadable", path, error.detail))
    if not files and notes:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    lines = [_declared(one, notes) for one in files]
    found = [
        FileCopies(one.image.file, len(one.statics), len(one.units), find_copies(one, declared))
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
    declared = _declared(statics, [])
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


def _read(path: str) -> Statics:
    image = read_image(open_input(path), path)
    if image.is_relocatable:
        raise InputError(path, "it is not linked yet: only in a linked file there are copies to count")
    return read_statics(image)


def _declared(statics: Statics, notes: list[Note]) -> Lines:
    """Look up where the variables are declared that may be copies or are large."""
    wanted = {(one.is_tls, one.vaddr) for one in (*candidates(statics), *large_ones(statics))}
    if not wanted:
        return {}
    try:
        found = read_declarations(
            statics.image,
            [vaddr for is_tls, vaddr in wanted if not is_tls],
            [vaddr for is_tls, vaddr in wanted if is_tls],
        )
    except FootprintError as error:
        notes.append(Note("file-unreadable", statics.image.file, f"{error.detail}, no line of it is known"))
        return {}
    notes.extend(found.notes)
    lines: dict[tuple[bool, int], Declared] = {}
    for is_tls, by_place in ((False, found.by_vaddr), (True, found.by_tls_offset)):
        for vaddr, declarations in by_place.items():
            for one in declarations:
                if one.defined_in is not None:
                    declared = Declared(one.defined_in, one.defined_at_line, one.is_in_header)
                    lines.setdefault((is_tls, vaddr), declared)
    return lines


def _symbol_notes(files: Sequence[Statics]) -> Iterable[Note]:
    for one in files:
        if one.is_stripped:
            yield Note("no-source-files", one.image.file, "it is stripped: only what it exports can be told")
        elif not one.units:
            yield Note("no-source-files", one.image.file, "its symbols do not tell which source files they came from")
