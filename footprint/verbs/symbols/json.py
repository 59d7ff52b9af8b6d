"""`symbols --json`."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from footprint.elf import SectionContents, Symbol, shown_name
from footprint.elf.origins import ByteOrigin, Origins
from footprint.errors import Note
from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows

if TYPE_CHECKING:
    from footprint.dwarf.declared_variables import DeclaredVariables

__all__ = ("symbols_members",)

_BINDINGS: Final = {0: "local", 1: "global", 2: "weak", 10: "unique"}


def symbols_members(
    files: Sequence[Origins], notes: Sequence[Note], version: str, sources: "Sequence[DeclaredVariables] | None" = None
) -> Json:
    """Give what the writable memory of files holds: the variables, and the sections with what no symbol names.

    Where a variable is declared is written where it was asked for.
    """
    sections: list[Json] = []
    symbols: list[Json] = []
    origins: list[Json] = []
    for known, declared in zip_longest(files, sources or ()):
        contents = known.contents
        file = well_formed(contents.file)
        for cut, one in zip(known.sections, contents.sections, strict=True):
            section = well_formed(one.section.name)
            sections.append(
                {
                    "file": file,
                    "section": section,
                    "kind": one.kind.value,
                    "vaddr": one.section.vaddr,
                    "size_bytes": one.size_bytes,
                    "named_bytes": one.named_bytes,
                    "residue": {cause.value: size_bytes for cause, size_bytes in one.residue_bytes.items()},
                    "overlap_bytes": one.lost_bytes,
                    "symbols_from": contents.symbols_from,
                    "debug_file": None if contents.debug_file is None else well_formed(contents.debug_file),
                }
            )
            symbols.extend(
                {
                    "file": file,
                    "section": section,
                    "kind": one.kind.value,
                    "symbol": well_formed(variable.name),
                    "name": well_formed(shown_name(variable.name)),
                    "aliases": [well_formed(name) for name in variable.aliases],
                    "section_offset": variable.offset,
                    "size_bytes": variable.size_bytes,
                    "binding": _BINDINGS.get(variable.binding, str(variable.binding)),
                    **_names(known.of(cut, variable)),
                    **({} if declared is None else _declaration(declared, one, variable)),
                }
                for variable in one.variables
            )
            origins.extend(
                {"file": file, "section": section, "kind": one.kind.value}
                | _names(origin)
                | {"cause": origin.cause or None}
                | share._asdict()
                for origin, share in known.shares(cut).items()
            )
    symbols.sort(key=lambda row: (-row["size_bytes"], row["symbol"], row["file"]))
    origins.sort(key=lambda row: (row["file"], row["section"], -row["size_bytes"]))
    maps = [well_formed(known.linker_map.file) for known in files if known.linker_map]
    target = {"files": [well_formed(known.contents.file) for known in files], "map": maps[0] if maps else None}
    tables = {"sections": sections, "origins": origins, "symbols": symbols}
    return envelope(version, {}, target) | tables | {"notes": note_rows(notes)}


def _declaration(sources: "DeclaredVariables", section: SectionContents, variable: Symbol) -> Json:
    said = sources.of(section, variable)
    named_by = "debug information" if sources.is_named_here(section, variable) else "symbol"
    texts = (None,) * 3 if said is None else (said.defined_in, said.type_name, said.function)
    file, type_name, function = (None if text is None else well_formed(text) for text in texts)
    return {
        "declared_file": file,
        "declared_line": None if said is None else said.defined_at_line or None,
        "type": type_name,
        "function": function,
        "named_by": named_by,
    }


def _names(origin: ByteOrigin) -> Json:
    parts = {"object": origin.object, "member": origin.member, "unit": origin.unit}
    return {key: None if name is None else well_formed(name) for key, name in parts.items()}
