"""Which object each piece of a linked file came from, as the linker's own map says (`-Wl,-Map=FILE`)."""

from footprint.elf.linker_map.facts import Linker, LinkerMap, OutputSection, PlacedSection
from footprint.elf.linker_map.reader import read_linker_map

__all__ = ("Linker", "LinkerMap", "OutputSection", "PlacedSection", "read_linker_map")
