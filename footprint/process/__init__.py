"""Readers of the kernel's data about a process: mappings, counters, and saved texts of them."""

from footprint.process.mapped_files import MappedFile, open_mapped_file
from footprint.process.mappings import Counters, Mapping, MemoryMap
from footprint.process.maps_text import parse_maps, parse_rollup
from footprint.process.pages import PageRange, ranges_bytes
from footprint.process.snapshot import Snapshot, looks_like_memory_text, read_process, read_texts
from footprint.process.status import Status

__all__ = (
    "Counters",
    "MappedFile",
    "Mapping",
    "MemoryMap",
    "PageRange",
    "Snapshot",
    "Status",
    "looks_like_memory_text",
    "open_mapped_file",
    "parse_maps",
    "parse_rollup",
    "ranges_bytes",
    "read_process",
    "read_texts",
)
