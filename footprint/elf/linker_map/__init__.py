"""The map that a linker writes (`-Wl,-Map=FILE`): where each piece of a linked file came from, and its libraries."""

from footprint.elf.linker_map.facts import Linker, LinkerMap, OutputSection, PlacedSection
from footprint.elf.linker_map.libraries import LinkedLibrary, linked_libraries
from footprint.elf.linker_map.reader import read_linker_map

__all__ = (
    "LinkedLibrary",
    "Linker",
    "LinkerMap",
    "OutputSection",
    "PlacedSection",
    "linked_libraries",
    "read_linker_map",
)
