"""What /proc/cpuinfo says in the words of loaders."""

import pytest

from footprint.loader.target import processor_of

V1 = "fpu sse sse2 lm"
V2 = f"{V1} cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


def cpuinfo(flags: str, vendor: str = "AuthenticAMD") -> bytes:
    first = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n\n"
    return (first + "processor\t: 1\nflags\t\t: none\n").encode()


@pytest.mark.parametrize(
    ("flags", "levels"),
    [
        (V1, ()),
        (V2, ("x86-64-v2",)),
        (V3, ("x86-64-v3", "x86-64-v2")),
        (V4, ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
        (V4.replace("movbe", ""), ("x86-64-v2",)),
    ],
)
def test_a_level_is_there_when_all_of_its_flags_are(flags: str, levels: tuple[str, ...]) -> None:
    assert processor_of(cpuinfo(flags)).levels == levels


def test_only_a_processor_of_intel_has_a_name_of_its_own() -> None:
    assert processor_of(cpuinfo(V3)).platform == "x86_64"
    assert processor_of(cpuinfo(V3, "GenuineIntel")).platform == "haswell"
    assert processor_of(cpuinfo(V4, "GenuineIntel")).capabilities == ("avx512_1", "x86_64")


@pytest.mark.parametrize("text", [b"", b"Features : fp asimd\n", b"flags : \xff\xfe\n"])
def test_of_any_other_machine_nothing_is_known(text: bytes) -> None:
    assert processor_of(text).levels == ()
    assert processor_of(text).platform is None
