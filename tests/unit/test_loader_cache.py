"""The cache of ldconfig: three layouts, two byte orders, levels of processors, and damage."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.errors import InputError
from footprint.loader.search import Cache, read_cache
from tests.sysroot import Sysroot, loader_cache, old_loader_cache

X86_64, X32, I386 = 0x0303, 0x0803, 0x0003
V2, V3, V4 = "x86-64-v2", "x86-64-v3", "x86-64-v4"
NAMED = 1 << 62
TLS = 1 << 63

ENTRIES = [
    ("libz.so.1", "/lib/libz.so.1", X86_64),
    ("liba.so", "/x32/liba.so", X32),
    ("liba.so", "/lib/liba.so", X86_64),
]


def read(data: bytes, abi: int = X86_64, *, is_little: bool = True) -> Cache:
    return read_cache(data, "ld.so.cache", (abi,), is_little=is_little)


@pytest.mark.parametrize(
    "data",
    [
        loader_cache(ENTRIES),
        old_loader_cache(ENTRIES),
        old_loader_cache([], new=loader_cache(ENTRIES)),
        old_loader_cache([("liba.so", "/old/liba.so", X86_64)], new=loader_cache(ENTRIES)),
    ],
    ids=["new", "old", "new behind an empty old", "new behind an old"],
)
def test_a_name_is_found_for_its_kind_of_programs_in_each_layout(data: bytes) -> None:
    assert read(data).find("liba.so", ()) == "/lib/liba.so"
    assert read(data).find("libz.so.1", ()) == "/lib/libz.so.1"
    assert read(data).find("libz.so", ()) is None
    assert read(data, I386).find("liba.so", ()) is None


def test_an_entry_for_all_kinds_is_for_this_one_too() -> None:
    assert read(loader_cache([("liba.so", "/lib/liba.so", 1)])).find("liba.so", ()) == "/lib/liba.so"


def test_of_several_paths_the_first_counts() -> None:
    data = loader_cache([("liba.so", "/1/liba.so", X86_64), ("liba.so", "/2/liba.so", X86_64)])
    assert read(data).find("liba.so", ()) == "/1/liba.so"


def test_the_best_level_counts_before_all_directories() -> None:
    entries = [
        ("liba.so", "/1/liba.so", X86_64, 0),
        ("liba.so", "/2/v2/liba.so", X86_64, NAMED | 0),
        ("liba.so", "/3/v3/liba.so", X86_64, NAMED | 2 << 32 | 1),
    ]
    cache = read(loader_cache(entries, [V2, V3]))
    assert cache.find("liba.so", (V4, V3, V2)) == "/3/v3/liba.so"
    assert cache.find("liba.so", (V2,)) == "/2/v2/liba.so"
    assert cache.find("liba.so", ()) == "/1/liba.so"


def test_a_level_that_has_no_name_is_none() -> None:
    entries = [("liba.so", "/v9/liba.so", X86_64, NAMED | 7), ("liba.so", "/1/liba.so", X86_64, 0)]
    assert read(loader_cache(entries, [V2])).find("liba.so", (V2,)) == "/1/liba.so"


def test_old_capabilities_count_only_where_all_are_there() -> None:
    entries = [("liba.so", "/tls/liba.so", X86_64, TLS | 2), ("liba.so", "/1/liba.so", X86_64, 0)]
    cache = read(loader_cache(entries))
    assert cache.find("liba.so", (), TLS | 2 | 4) == "/tls/liba.so"
    assert cache.find("liba.so", (), TLS) == "/1/liba.so"
    assert cache.find("liba.so", ()) == "/1/liba.so"


def test_a_cache_of_the_other_byte_order_is_refused() -> None:
    big = loader_cache(ENTRIES, order=">")
    assert read(big, is_little=False).find("liba.so", ()) == "/lib/liba.so"
    with pytest.raises(InputError):
        read(big)
    with pytest.raises(InputError, match="byte order"):
        read(loader_cache(ENTRIES, flags=3))


def test_a_cache_that_does_not_tell_its_byte_order_is_taken_and_an_unfinished_one_is_not() -> None:
    assert read(loader_cache(ENTRIES, flags=0)).find("liba.so", ()) == "/lib/liba.so"
    with pytest.raises(InputError, match="incomplete"):
        read(loader_cache(ENTRIES, flags=1))


WHOLE = [
    loader_cache([*ENTRIES, ("liba.so", "/v2/liba.so", X86_64, NAMED)], [V2]),
    old_loader_cache(ENTRIES),
    old_loader_cache(ENTRIES, new=loader_cache(ENTRIES)),
]


@given(st.sampled_from(WHOLE), st.data())
def test_a_cache_cut_anywhere_is_refused_or_says_what_it_said(whole: bytes, data: st.DataObject) -> None:
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        entries = read(cut).entries
    except InputError:
        return
    # Only the old layout, which does not tell how long it is, can be cut where nothing is missing.
    assert {name: len(entry) for name, entry in entries.items()} == {"libz.so.1": 1, "liba.so": 1}


@given(st.sampled_from(WHOLE), st.data())
def test_a_damaged_cache_is_refused_or_read(whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        read(bytes(damaged)).find("liba.so", (V2,))


def test_a_number_of_entries_beyond_the_file_is_refused_before_anything_is_read() -> None:
    for data in (loader_cache(ENTRIES), old_loader_cache(ENTRIES)):
        at = 20 if data.startswith(b"glibc") else 12
        with pytest.raises(InputError, match="4294967295 entries"):
            read(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])


def test_names_that_overlap_beyond_reason_are_refused() -> None:
    data = loader_cache([(f"{'a' * 200_000}", "/p", X86_64)])
    count = 2_000
    entry = data[48:72]
    entries = b"".join(
        entry[:4] + (48 + 24 * count + place).to_bytes(4, "little") + entry[8:] for place in range(count)
    )
    with pytest.raises(InputError, match="overlap"):
        read(data[:20] + count.to_bytes(4, "little") + data[24:48] + entries + data[72:])


@pytest.mark.parametrize("damage", [loader_cache(ENTRIES, order=">"), loader_cache(ENTRIES)[:-1], b"", b"nonsense"])
def test_without_a_cache_that_can_be_used_there_is_a_note_and_the_directories(damage: bytes, sysroot: Sysroot) -> None:
    sysroot.file("/etc/ld.so.cache", damage)
    sysroot.program("liba.so")
    sysroot.library("/lib/liba.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/lib/liba.so"]
    assert [(note.slug, note.subject) for note in found.notes] == [("loader-cache", "/etc/ld.so.cache")]


@pytest.fixture
def sysroot(tmp_path_factory: pytest.TempPathFactory) -> Sysroot:
    made = Sysroot(tmp_path_factory.mktemp("root"))
    made.loader()
    return made
