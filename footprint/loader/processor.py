"""The capabilities of a processor, under the names that loaders use."""

from typing import Final, NamedTuple

__all__ = ("Processor", "processor_of")

# Linux calls lzcnt abm, and sse3 pni.
_V2: Final = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3: Final = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_V4: Final = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_X86_LEVELS: Final = (("x86-64-v4", _V4), ("x86-64-v3", _V3), ("x86-64-v2", _V2))
# For Intel only; glibc 2.37 removed them except for $PLATFORM.
_HASWELL: Final = frozenset({"avx2", "bmi1", "bmi2", "abm", "movbe", "popcnt"})
_AVX512_1: Final = frozenset({"avx512bw", "avx512cd", "avx512dq", "avx512vl"})


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


def processor_of(cpuinfo: bytes) -> Processor:
    """Read /proc/cpuinfo of an x86-64 machine; for another machine the result is empty."""
    facts: dict[bytes, bytes] = {}
    for line in cpuinfo.partition(b"\n\n")[0].splitlines():
        name, _, value = line.partition(b":")
        facts[name.strip()] = value.strip()
    flags = frozenset(facts.get(b"flags", b"").decode("ascii", "replace").split())
    if "lm" not in flags:
        return Processor()
    levels = tuple([name for name, needed in _X86_LEVELS if needed <= flags])
    is_intel = facts.get(b"vendor_id") == b"GenuineIntel"
    platform = "haswell" if is_intel and flags >= _HASWELL else "x86_64"
    has_avx512 = is_intel and flags >= _AVX512_1
    return Processor(levels, platform, ("avx512_1", "x86_64") if has_avx512 else ("x86_64",))
