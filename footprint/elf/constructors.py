"""The constructors and destructors of an object that are its own: code that runs when it is loaded and unloaded.

Each object also has one of both from the start-up files of the compiler, which do nothing of its own (`frame_dummy`,
`__do_global_dtors_aux`). Where their code is not known for a machine, one is assumed to be it.

Source: crtstuff.c and crti of gcc 6 to 12 and glibc 2.36, as they stand in the libraries of Debian.
"""

import re
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, numbers, read_dynamic
from footprint.elf.functions import FunctionStarts
from footprint.elf.image import Image
from footprint.elf.relocations import addends_at
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

# A jump to `register_tm_clones`, less than 512 bytes before. Until gcc 6 a check of a list for Java stands before it.
_FRAME_DUMMY: Final = {
    abi.EM_386: lazy_pattern(rb"(?:\xf3\x0f\x1e\xfb)?\xe9.[\xfe\xff]\xff\xff", re.DOTALL),
    abi.EM_PPC: lazy_pattern(rb"\x4b\xff[\xfe\xff].", re.DOTALL),
    abi.EM_S390: lazy_pattern(rb"\xc0\xf4\xff\xff\xff.", re.DOTALL),
    abi.EM_X86_64: lazy_pattern(
        rb"(?:\xf3\x0f\x1e\xfa|\x55\x48\x89\xe5\x5d|\x48\x8d\x3d.{4}\x48\x83\x3f\0\x75\x0b)?\xe9.[\xfe\xff]\xff\xff",
        re.DOTALL,
    ),
    abi.EM_AARCH64: lazy_pattern(rb"(?:\x5f\x24\x03\xd5|\x3f\x23\x03\xd5)?[\x80-\xff]\xff\xff\x17"),
}
# Calls `__gmon_start__`, which only profiled programs have; that of musl does nothing.
_INIT: Final = {
    abi.EM_X86_64: lazy_pattern(
        rb"(?:\xf3\x0f\x1e\xfa)?(?:\xc3|\x50\x58\xc3"
        rb"|\x48\x83\xec\x08\x48\x8b\x05.{4}\x48\x85\xc0\x74(?:\x02\xff\xd0|\x05\xe8.{4})\x48\x83\xc4\x08\xc3)",
        re.DOTALL,
    ),
    abi.EM_AARCH64: lazy_pattern(
        rb"(?:\x1f\x20\x03\xd5|[\x3f\x5f][\x23\x24]\x03\xd5)?\xfd\x7b\xbf\xa9\xfd\x03\0\x91"
        rb"(?:...[\x94-\x97])?\xfd\x7b\xc1\xa8(?:\xbf\x23\x03\xd5)?\xc0\x03\x5f\xd6",
        re.DOTALL,
    ),
}
# `__do_global_dtors_aux`: returns if it ran before, then asks for `__cxa_finalize`.
_DTORS_AUX: Final = {
    abi.EM_X86_64: lazy_pattern(rb"(?:\xf3\x0f\x1e\xfa)?\x80\x3d.{4}\0\x75.\x55?\x48\x83\x3d.{4}\0", re.DOTALL),
    abi.EM_AARCH64: lazy_pattern(
        rb"(?:[\x3f\x5f][\x23\x24]\x03\xd5)?\xfd\x7b.\xa9\xfd\x03\0\x91\xf3.\0\xf9...[\x90\xb0\xd0\xf0]\x60..\x39",
        re.DOTALL,
    ),
}
_FINI: Final = {
    abi.EM_386: lazy_pattern(
        rb"(?:\xf3\x0f\x1e\xfb)?\x53\x83\xec\x08\xe8.{4}\x81\xc3.{4}\x83\xc4\x08\x5b\xc3", re.DOTALL
    ),
    abi.EM_ARM: lazy_pattern(rb"\x08\x40\x2d\xe9\x08\x80\xbd\xe8"),
    abi.EM_X86_64: lazy_pattern(rb"(?:\xf3\x0f\x1e\xfa)?(?:\xc3|\x50\x58\xc3|\x48\x83\xec\x08\x48\x83\xc4\x08\xc3)"),
    abi.EM_AARCH64: lazy_pattern(
        rb"(?:\x1f\x20\x03\xd5|[\x3f\x5f][\x23\x24]\x03\xd5)?\xfd\x7b\xbf\xa9\xfd\x03\0\x91"
        rb"\xfd\x7b\xc1\xa8(?:\xbf\x23\x03\xd5)?\xc0\x03\x5f\xd6"
    ),
}
_MOST_CODE_BYTES: Final = 40
# LLVM has 600. The code of entries after this number is not read.
_MOST_ENTRIES: Final = 1 << 12


class _Tables(NamedTuple):
    """Where functions stand that the loader calls, and the code of those from the compiler's start-up files."""

    function: int
    usual_function: dict[int, re.Pattern[bytes]]
    array: int
    array_size: int
    usual_entry: dict[int, re.Pattern[bytes]]


_AT_START: Final = _Tables(abi.DT_INIT, _INIT, abi.DT_INIT_ARRAY, abi.DT_INIT_ARRAYSZ, _FRAME_DUMMY)
_BEFORE_START: Final = _AT_START._replace(array=abi.DT_PREINIT_ARRAY, array_size=abi.DT_PREINIT_ARRAYSZ)
_AT_END: Final = _Tables(abi.DT_FINI, _FINI, abi.DT_FINI_ARRAY, abi.DT_FINI_ARRAYSZ, _DTORS_AUX)


def own_constructors(image: Image) -> int:
    """Count the constructors of a dynamic object beyond those of the compiler's start-up files."""
    dynamic = read_dynamic(image)
    count = (dynamic.get(abi.DT_PREINIT_ARRAYSZ) or 0) // image.word_bytes if dynamic.get(abi.DT_PREINIT_ARRAY) else 0
    return count + _count_own(dynamic, _AT_START)


def own_destructors(image: Image) -> int:
    """Count the destructors of a dynamic object beyond those of the compiler's start-up files."""
    return _count_own(read_dynamic(image), _AT_END)


def initialisers(image: Image) -> tuple[int, int]:
    """Return the number of functions that the loader calls at start, and the bytes of code of those of known size."""
    dynamic = read_dynamic(image)
    entries = [*_entries(dynamic, _BEFORE_START), *_entries(dynamic, _AT_START)]
    if function := dynamic.get(_AT_START.function):
        entries.append(function)
    starts = FunctionStarts(image)
    ranges = [starts.at(vaddr) for vaddr in entries[:_MOST_ENTRIES]] if starts else []
    return len(entries), sum([span[1] - span[0] for span in ranges if span])


def _count_own(dynamic: Dynamic, tables: _Tables) -> int:
    image = dynamic.image
    usual = tables.usual_function.get(image.machine)
    function = dynamic.get(tables.function)
    count = int(bool(function and usual and not usual.match(_code_at(image, function))))
    entries = _entries(dynamic, tables)
    usual = tables.usual_entry.get(image.machine)
    if usual is None:
        return count + max(0, len(entries) - 1)
    has_usual = any(usual.match(_code_at(image, vaddr)) for vaddr in entries[:_MOST_ENTRIES])
    return count + len(entries) - has_usual


def _entries(dynamic: Dynamic, tables: _Tables) -> list[int]:
    """Return the vaddrs of the functions in the array: from the relocations of the array, or from its bytes."""
    image, first = dynamic.image, dynamic.get(tables.array) or 0
    what = "the table of constructors or destructors"
    entries = numbers(image, dynamic.table(tables.array, tables.array_size, what)).tolist()
    if 0 in entries[:_MOST_ENTRIES]:
        for vaddr, addend in addends_at(image, range(first, first + len(entries) * image.word_bytes)).items():
            entries[(vaddr - first) // image.word_bytes] = addend
    return entries


def _code_at(image: Image, vaddr: int) -> bytes:
    """Return the code at a vaddr, up to the end of its segment; nothing where no segment maps the vaddr."""
    for segment in image.loads:
        left_bytes = segment.vaddr + segment.file_bytes - vaddr
        if segment.vaddr <= vaddr and left_bytes > 0:
            try:
                return bytes(bytes_at_vaddr(image, vaddr, min(left_bytes, _MOST_CODE_BYTES), "a constructor"))
            except InputError:
                break
    return b""
