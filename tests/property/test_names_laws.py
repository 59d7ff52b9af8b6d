"""Any text may be a linker name: its parts are the whole, and what is shown of it is bounded."""

import pycxxfilt
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.names import foreign_names, is_tame, normalised, shown_name, split_suffixes
from tests.examples import examples

SUFFIXES = [".0", ".12", ".cold", ".isra.0", ".lto_priv.3", ".llvm.77", ".localalias", ".x", "..", ".", "@V", "@@V_1.2"]
CPP = [
    "PF",
    "S_",
    "S0_",
    "S1_",
    "SA_",
    "T_",
    "T0_",
    "Dp",
    "1a",
    "2bc",
    "I",
    "E",
    "N",
    "J",
    "i",
    "v",
    "St",
    "K",
    "R",
    "Z",
]
RUST = [
    "B_",
    "B0_",
    "B3_",
    "Ba_",
    "C1a",
    "Nt",
    "Nv",
    "I",
    "E",
    "T",
    "FG_",
    "FGZZ_",
    "DG3_",
    "Kj1_",
    "L_",
    "u",
    "h",
    "R",
    "S",
]

texts = st.text(st.characters(codec="utf-8"), max_size=40)
surrogates = st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
suffixed = st.tuples(st.sampled_from(["x", "f.x", "_ZL1x", "_RNvC1a1b", "", "."]), st.lists(st.sampled_from(SUFFIXES)))
names = texts | surrogates | suffixed.map(lambda parts: parts[0] + "".join(parts[1]))
cpp = st.lists(st.sampled_from(CPP), max_size=60).map(lambda parts: "_Z1f" + "".join(parts))
rust = st.lists(st.sampled_from(RUST), max_size=60).map(lambda parts: "_RINvC1a1f" + "".join(parts) + "E")


@given(name=names)
def test_the_parts_of_a_name_are_the_whole(name: str) -> None:
    stem, suffixes = split_suffixes(name)
    assert stem + "".join(suffixes) == name
    assert all(suffix.startswith((".", "@")) for suffix in suffixes)
    assert bool(stem) is bool(name)


@given(name=names)
def test_what_was_split_cannot_be_split_further(name: str) -> None:
    assert split_suffixes(normalised(name)) == (normalised(name), ())


@examples(300)
@given(name=cpp | rust | names)
def test_what_is_shown_is_bounded(name: str) -> None:
    assert len(shown_name(name)) <= 8192 + 32 * len(name)
    assert foreign_names([name]).keys() <= {"D", "Swift"}


@examples(500)
@given(name=cpp | rust)
def test_what_is_tame_stays_short(name: str) -> None:
    if is_tame(name):
        try:
            shown = pycxxfilt.demangle(name) or ""
        except ValueError:
            return
        assert len(shown) < 1 << 24
