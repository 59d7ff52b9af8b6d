"""The facts that a loader knows before it reads a program: its directories, the processor, the caller's choices.

The directories are constants in each build of ld.so. They are read from the file without running it.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import compress, product
from typing import Final

from footprint.errors import FootprintError
from footprint.loader.configuration import parent
from footprint.loader.system import FileKind, Library, System
from footprint.members import NamedTuple, dataclass


class Libc(StrEnum):
    """The C library whose rules a loader follows."""

    GLIBC = "glibc"
    MUSL = "musl"
    OTHER = "other"


@dataclass(frozen=True)
class Environment:
    """The choices of the caller of a program.

    Attributes:
        library_path: LD_LIBRARY_PATH.
        preload: LD_PRELOAD.
        cwd: The working directory.
        hwcaps: The best instruction set level of the processor, such as `x86-64-v3`; `baseline` for none. None uses
            the processor of this machine where the program is for it.
        platform: The value of `$PLATFORM`; None as for `hwcaps`.
        is_secure: Whether secure-execution mode applies; None takes it from the set-user-ID and set-group-ID bits.
        caller: The user and the group of the caller, for these bits; None for any that do not own the program.
        uses_cache: Whether ld.so.cache is used; False as with `--inhibit-cache`.
        binds_now: Whether all calls are bound at start (LD_BIND_NOW); glibc asks for it in secure-execution mode, too.
    """

    library_path: str = ""
    preload: str = ""
    cwd: str = "/"
    hwcaps: str | None = None
    platform: str | None = None
    is_secure: bool | None = None
    caller: tuple[int, int] | None = None
    uses_cache: bool = True
    binds_now: bool = False


class Abi(NamedTuple):
    """One ABI: programs of one class, byte order and machine can have several.

    Attributes:
        cache_flags: The flags of its libraries in the cache of ldconfig; None where unknown.
        interpreter: The path of its glibc loader.
        triplet: The name of its directories on multiarch systems.
        platform: The value of `$PLATFORM` where it does not depend on the processor.
        levels: Its instruction set levels, best first.
    """

    cache_flags: int | None
    interpreter: str
    triplet: str
    platform: str | None = None
    levels: tuple[str, ...] = ()


class Loader(NamedTuple):
    """The loader of a program: its path or None, its C library, and its ABI."""

    path: str | None
    libc: Libc
    abi: Abi


# Linux calls lzcnt abm, and sse3 pni.
_V2: Final = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3: Final = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_V4: Final = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVEL_FLAGS: Final = (("x86-64-v4", _V4), ("x86-64-v3", _V3), ("x86-64-v2", _V2))
# For Intel only; glibc 2.37 removed them except for $PLATFORM.
_HASWELL: Final = frozenset({"avx2", "bmi1", "bmi2", "abm", "movbe", "popcnt"})
_AVX512_1: Final = frozenset({"avx512bw", "avx512cd", "avx512dq", "avx512vl"})
_X86_64: Final = 62
_X86_LEVELS: Final = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
# By class (is 64), byte order (is little) and machine.
_ABIS: Final[dict[tuple[bool, bool, int], tuple[Abi, ...]]] = {
    (True, True, _X86_64): (Abi(0x0303, "/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu", "x86_64", _X86_LEVELS),),
    (False, True, _X86_64): (Abi(0x0803, "/libx32/ld-linux-x32.so.2", "x86_64-linux-gnux32", "x86_64", _X86_LEVELS),),
    (False, True, 3): (Abi(0x0003, "/lib/ld-linux.so.2", "i386-linux-gnu", "i686"),),
    (True, True, 183): (Abi(0x0A03, "/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu", "aarch64"),),
    (False, True, 40): (
        Abi(0x0903, "/lib/ld-linux-armhf.so.3", "arm-linux-gnueabihf", "v7l"),
        Abi(0x0B03, "/lib/ld-linux.so.3", "arm-linux-gnueabi", "v7l"),
    ),
    (False, True, 8): (Abi(0x0003, "/lib/ld.so.1", "mipsel-linux-gnu"),),
    (True, True, 8): (Abi(0x0703, "/lib64/ld.so.1", "mips64el-linux-gnuabi64"),),
    (True, True, 21): (Abi(0x0503, "/lib64/ld64.so.2", "powerpc64le-linux-gnu", None, ("power10", "power9")),),
    (True, False, 21): (Abi(0x0503, "/lib64/ld64.so.1", "powerpc64-linux-gnu"),),
    (True, False, 22): (Abi(0x0403, "/lib/ld64.so.1", "s390x-linux-gnu", None, ("z16", "z15", "z14", "z13")),),
    (True, True, 243): (
        Abi(0x1003, "/lib/ld-linux-riscv64-lp64d.so.1", "riscv64-linux-gnu"),
        Abi(0x0F03, "/lib/ld-linux-riscv64-lp64.so.1", "riscv64-linux-gnu"),
    ),
    (True, True, 258): (Abi(0x1203, "/lib64/ld-linux-loongarch-lp64d.so.1", "loongarch64-linux-gnu"),),
}
_UNKNOWN_ABI: Final = Abi(None, "", "")

# SYSTEM_DIRS of glibc: absolute paths, each with a slash and a null byte at its end. Nothing marks the start of the
# first one: on armhf it follows code. So search for the end of one and the paths behind it: that is quick, too.
_FURTHER_DIRECTORIES: Final = re.compile(rb"/\0((?:/(?:[\w.+-]{1,64}/){1,12}\0)+)")
_FIRST_DIRECTORY: Final = re.compile(rb"(?:/[\w.+-]{1,64}){1,12}\Z")
_LONGEST_DIRECTORY_BYTES: Final = 256
_RELEASE: Final = re.compile(rb"release version (\d{1,4})\.(\d{1,4})")
_LAST_LEGACY_RELEASE: Final = (2, 36)
_LEGACY_BITS: Final = {"tls": 1 << 63, "x86_64": 1 << 1, "avx512_1": 1 << 2, "haswell": 1 << 50}
_MOST_LOADER_BYTES: Final = 8 << 20


class Processor(NamedTuple):
    """The facts about a processor that a loader uses.

    Attributes:
        levels: Its instruction set levels, best first.
        platform: AT_PLATFORM, or the name that glibc uses instead for an Intel processor.
        capabilities: The further subdirectories that glibc 2.36 and older search.
    """

    levels: tuple[str, ...] = ()
    platform: str | None = None
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """The facts that a loader knows before it reads a program.

    Attributes:
        libc: The C library whose rules it follows.
        abi: The ABI of its programs.
        path: Its path, as in programs; None where there is none.
        library: The file of the loader; None where it is missing.
        system_directories: The directories that it searches last, each with a slash at its end.
        lib: The value of `$LIB`.
        platform: The value of `$PLATFORM`.
        levels: The instruction set levels of the processor, best first.
        subdirectories: The subdirectories that it searches in each directory before the directory itself.
        legacy_bits: The capabilities of the processor as in the cache up to glibc 2.36.
    """

    libc: Libc
    abi: Abi
    path: str | None
    library: Library | None
    system_directories: tuple[str, ...]
    lib: str
    platform: str | None
    levels: tuple[str, ...]
    subdirectories: tuple[str, ...]
    legacy_bits: int


def target_of(system: System, kind: FileKind, loader: Loader, environment: Environment) -> Target:
    """Collect the facts that a loader knows."""
    path, libc, abi = loader
    file = system.file(path) if path else None
    library = file if isinstance(file, Library) else None
    system_directories = _carved_directories(library) or _usual_directories(system, abi, path)
    processor = _processor(system, abi, kind, environment)
    is_legacy = libc is Libc.GLIBC and _has_legacy_directories(library)
    legacy = ("tls", *([processor.platform] if processor.platform else []), *processor.capabilities)
    return Target(
        libc=libc,
        abi=abi,
        path=path,
        library=library,
        system_directories=system_directories,
        lib=system_directories[0].strip("/"),
        platform=processor.platform,
        levels=processor.levels,
        subdirectories=(
            *(f"glibc-hwcaps/{level}/" for level in processor.levels),
            *(_chains(legacy) if is_legacy else ()),
        ),
        legacy_bits=sum(_LEGACY_BITS.get(name, 0) for name in legacy) if is_legacy else 0,
    )


def loader_of(system: System, program: Library) -> Loader:
    """Find the loader of a program; for a library alone, the loader of the C library that it needs."""
    candidates = _ABIS.get(program.kind, (_UNKNOWN_ABI,))
    interpreter = program.linkage.interpreter
    if interpreter is not None:
        name = interpreter.rpartition("/")[2]
        libc = Libc.MUSL if name.startswith("ld-musl-") else Libc.GLIBC if name.startswith("ld") else Libc.OTHER
        return Loader(
            interpreter, libc, next((file for file in candidates if file.interpreter == interpreter), candidates[0])
        )
    needs_musl = any(name == "libc.so" or name.startswith("libc.musl-") for name in program.linkage.needed)
    if not needs_musl:
        for candidate in candidates:
            if isinstance(system.file(candidate.interpreter), Library):
                return Loader(candidate.interpreter, Libc.GLIBC, candidate)
    musl = [f"/lib/{name}" for name in system.names("/lib") if name.startswith("ld-musl-")]
    for path in musl:
        loader = system.file(path)
        if isinstance(loader, Library) and loader.kind == program.kind:
            return Loader(path, Libc.MUSL, candidates[0])
    needs_glibc = "libc.so.6" in program.linkage.needed
    return Loader(None, Libc.MUSL if needs_musl else Libc.GLIBC if needs_glibc else Libc.OTHER, candidates[0])


def _carved_directories(loader: Library | None) -> tuple[str, ...]:
    data = _bytes_of(loader)
    lists = []
    for further in _FURTHER_DIRECTORIES.finditer(data):
        end = further.start()
        first = _FIRST_DIRECTORY.search(data, max(end - _LONGEST_DIRECTORY_BYTES, 0), end)
        if first:
            lists.append(first[0] + b"/\0" + further[1])
    # glibc contains the list twice. Bytes of code before one copy can look like a part of its first path.
    return tuple(min(lists, key=len, default=b"").decode("ascii").split("\0")[:-1])


def _usual_directories(system: System, abi: Abi, loader_path: str | None) -> tuple[str, ...]:
    """Guess the directories where the loader does not contain them."""
    if abi.triplet and (system.is_directory(f"/lib/{abi.triplet}") or system.is_directory(f"/usr/lib/{abi.triplet}")):
        return (f"/lib/{abi.triplet}/", f"/usr/lib/{abi.triplet}/", "/lib/", "/usr/lib/")
    home = parent(loader_path) if loader_path else "/lib"
    return ("/lib64/", "/usr/lib64/") if home.endswith("/lib64") else ("/lib/", "/usr/lib/")


def _has_legacy_directories(loader: Library | None) -> bool:
    """Return whether a loader is of glibc 2.36 or older; one without a release text is of 2.32 or older."""
    match = _RELEASE.search(_bytes_of(loader))
    return loader is not None and (match is None or (int(match[1]), int(match[2])) <= _LAST_LEGACY_RELEASE)


def _bytes_of(loader: Library | None) -> bytes:
    try:
        return bytes(loader.image.data[:_MOST_LOADER_BYTES]) if loader else b""
    except FootprintError:
        return b""


def _processor(system: System, abi: Abi, kind: FileKind, environment: Environment) -> Processor:
    """Return the processor for the program: that of this machine, unless the caller names one or it does not fit."""
    if environment.hwcaps is None and kind.machine == _X86_64 and system.machine == "x86_64":
        processor = processor_of(system.cpuinfo)
    else:
        all_levels = abi.levels
        levels = all_levels[all_levels.index(environment.hwcaps) :] if environment.hwcaps in all_levels else ()
        processor = Processor(levels, abi.platform, ("x86_64",) if kind.machine == _X86_64 else ())
    return processor._replace(platform=environment.platform or processor.platform)


def processor_of(cpuinfo: bytes) -> Processor:
    """Read /proc/cpuinfo of an x86-64 machine; for another machine the result is empty."""
    facts: dict[bytes, bytes] = {}
    for line in cpuinfo.partition(b"\n\n")[0].splitlines():
        name, _, value = line.partition(b":")
        facts[name.strip()] = value.strip()
    flags = frozenset(facts.get(b"flags", b"").decode("ascii", "replace").split())
    if "lm" not in flags:
        return Processor()
    levels = tuple([name for name, needed in _LEVEL_FLAGS if needed <= flags])
    is_intel = facts.get(b"vendor_id") == b"GenuineIntel"
    platform = "haswell" if is_intel and flags >= _HASWELL else "x86_64"
    has_avx512 = is_intel and flags >= _AVX512_1
    return Processor(levels, platform, ("avx512_1", "x86_64") if has_avx512 else ("x86_64",))


def _chains(names: tuple[str, ...]) -> Iterator[str]:
    """Yield the subdirectories that glibc 2.36 and older search: each subset of the names, in their order."""
    for choice in product((True, False), repeat=len(names)):
        if any(choice):
            yield "/".join(compress(names, choice)) + "/"
