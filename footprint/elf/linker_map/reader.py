"""The reader of linker maps, which finds the linker from the text of the map."""

from collections.abc import Container

from footprint.elf.image import Buffer
from footprint.elf.linker_map.columns import collect_columns, dialect_of_columns
from footprint.elf.linker_map.facts import Collector, LinkerMap
from footprint.elf.linker_map.gnu import collect_gnu, linker_of_gnu
from footprint.errors import InputError

__all__ = ("read_linker_map",)

_HEADER_BYTES = 4096


def read_linker_map(data: Buffer, file: str, output_sections: Container[str] | None = None) -> LinkerMap:
    """Read the map of GNU ld, gold, lld or mold, in time linear in its length.

    Args:
        data: The map; for a large file a view of a memory map, which is not copied.
        file: Its name.
        output_sections: The names of the output sections of interest; None for all.

    Raises:
        InputError: Where it is not a map, has no section, or has more entries than any program.
    """
    if not data:
        raise InputError(file, "the file is empty")
    collector = Collector(file, output_sections)
    if dialect := dialect_of_columns(bytes(data[:_HEADER_BYTES])):
        linker = collect_columns(data, dialect, collector)
    elif gnu := linker_of_gnu(data):
        linker = gnu
        collect_gnu(data, collector)
    else:
        raise InputError(file, "not a map of GNU ld, gold, lld or mold", 0)
    if not collector.outputs:
        raise InputError(file, f"a map of {linker} that places no section", len(data))
    return collector.result(linker, is_cut=data[-1] != ord("\n"))
