"""Cut a 64-bit little-endian ELF file after its last segment, so that no section header is left in it."""

import struct
import sys
from pathlib import Path

path = Path(sys.argv[1])
image = bytearray(path.read_bytes())
(phoff,) = struct.unpack_from("<Q", image, 0x20)  # e_phoff
phentsize, phnum = struct.unpack_from("<HH", image, 0x36)  # e_phentsize, e_phnum
end = phoff + phentsize * phnum
for entry in range(phoff, phoff + phentsize * phnum, phentsize):
    (offset,) = struct.unpack_from("<Q", image, entry + 0x08)  # p_offset
    (filesz,) = struct.unpack_from("<Q", image, entry + 0x20)  # p_filesz
    end = max(end, offset + filesz)
struct.pack_into("<Q", image, 0x28, 0)  # e_shoff
struct.pack_into("<HH", image, 0x3C, 0, 0)  # e_shnum, e_shstrndx
path.write_bytes(image[:end])
