"""The map that a linker writes (`-Wl,-Map=FILE`): the object that each piece of a linked file came from."""

from footprint.elf.linker_map.facts import Linker, LinkerMap, OutputSection, PlacedSection
from footprint.elf.linker_map.reader import read_linker_map

__all__ = ("Linker", "LinkerMap", "OutputSection", "PlacedSection", "read_linker_map")
