"""One ELF file: what it holds in memory, and under which names. Reads bytes that it is given; opens nothing.

All readers raise `InputError` where the bytes that they need are damaged, cut, or outside of the file. It names the
file, the offset and the cause.
"""

from footprint.elf.abi import ET_EXEC, PT_GNU_RELRO
from footprint.elf.archive import ArchiveMember, read_members, starts_like_archive
from footprint.elf.contents import Contents, Residue, ResidueCause, SectionContents, SectionKind, read_contents
from footprint.elf.image import Buffer, Image, Section, Segment, read_image, starts_like_elf
from footprint.elf.names import shown_name
from footprint.elf.relocations import relocated_vaddrs
from footprint.elf.symbols import Symbol

__all__ = (
    "ET_EXEC",
    "PT_GNU_RELRO",
    "ArchiveMember",
    "Buffer",
    "Contents",
    "Image",
    "Residue",
    "ResidueCause",
    "Section",
    "SectionContents",
    "SectionKind",
    "Segment",
    "Symbol",
    "read_contents",
    "read_image",
    "read_members",
    "relocated_vaddrs",
    "shown_name",
    "starts_like_archive",
    "starts_like_elf",
)
