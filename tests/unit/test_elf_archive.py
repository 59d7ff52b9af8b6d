"""Static libraries: their members in order, under the names that GNU, BSD and thin archives give them."""

import tracemalloc
from contextlib import suppress

import pytest

from footprint.elf.archive import ArchiveMember, read_members
from footprint.elf.image import starts_like_archive
from footprint.errors import InputError
from tests.elfwriter import archive

MAGIC = b"!<arch>\n"


def members(data: bytes | memoryview) -> list[tuple[str, bytes | None]]:
    found = read_members(data, "libdemo.a")
    return [(each.name, None if each.data is None else bytes(each.data)) for each in found]


def header(name: str, size: int | str, end: str = "`\n") -> bytes:
    """Write the 60 bytes that stand before each member: name, date, owner, group, mode, size."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{size:<10}{end}".encode()


def refused(data: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        members(data)
    assert caught.value.file == "libdemo.a"
    return caught.value


# --- members and their names ------------------------------------------------------------------------------------------

ODD_AND_EVEN = [("short.o", b"odd"), ("a_name_longer_than_its_field.o", b"even"), ("last.o", b"again odd")]


@pytest.mark.parametrize("bsd", [False, True], ids=["gnu", "bsd"])
def test_members_come_in_their_order_with_all_their_bytes(*, bsd: bool) -> None:
    assert members(archive(ODD_AND_EVEN, bsd=bsd)) == ODD_AND_EVEN


def test_the_byte_that_pads_the_last_member_may_be_missing() -> None:
    assert members(archive(ODD_AND_EVEN).removesuffix(b"\n")) == ODD_AND_EVEN


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            archive([("caf_.o", b"it")]).replace(b"caf_", b"caf\xe9"),
            [("caf\udce9.o", b"it")],
            id="a name need not be text",
        ),
        pytest.param(
            archive([("same.o", b"one."), ("same.o", b"two.")]),
            [("same.o", b"one."), ("same.o", b"two.")],
            id="two members may have one name",
        ),
        pytest.param(MAGIC, [], id="an archive may be empty"),
        pytest.param(
            archive([("empty.o", b""), ("full.o", b"full")]),
            [("empty.o", b""), ("full.o", b"full")],
            id="a member may be empty",
        ),
    ],
)
def test_members_have_their_names_and_bytes(data: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert members(data) == expected


@pytest.mark.parametrize("index", ["/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64"])
def test_the_index_of_an_archive_is_no_member(index: str) -> None:
    assert members(MAGIC + header(index, 4) + bytes(4) + header("one.o/", 2) + b"it") == [("one.o", b"it")]


def test_the_index_of_macos_has_a_long_name_padded_with_zeros() -> None:
    index = header("#1/20", 24) + b"__.SYMDEF SORTED\0\0\0\0" + bytes(4)
    assert members(MAGIC + index + header("#1/12", 14) + b"one.o\0\0\0\0\0\0\0it") == [("one.o", b"it")]


@pytest.mark.parametrize("name", ["with space.o", "exactly_15_char", "exactly_16_chars", "dir/with/slashes.o", "x"])
@pytest.mark.parametrize("bsd", [False, True], ids=["gnu", "bsd"])
def test_a_name_comes_out_as_it_was_put_in(name: str, *, bsd: bool) -> None:
    assert members(archive([(name, b"it")], bsd=bsd)) == [(name, b"it")]


def test_long_names_are_found_by_their_place_in_the_member_that_holds_them() -> None:
    names = MAGIC + header("//", 20) + b"first_name/\nsecond/\n"
    assert members(names + header("/12", 2) + b"b." + header("/0", 2) + b"a.") == [
        ("second", b"b."),
        ("first_name", b"a."),
    ]


def test_a_long_name_beyond_the_names_is_empty() -> None:
    assert members(MAGIC + header("//", 4) + b"ab/\n" + header("/99", 2) + b"it") == [("", b"it")]


def test_a_bsd_name_cannot_be_longer_than_its_member() -> None:
    assert members(MAGIC + header("#1/99", 4) + b"abcd") == [("abcd", b"")]


def test_a_thin_archive_only_names_its_members() -> None:
    data = archive([("one.o", b"not in here"), ("folder/another_quite_long_name.o", b"nor this")], thin=True)
    assert members(data) == [("one.o", None), ("folder/another_quite_long_name.o", None)]


def test_the_index_of_a_thin_archive_stands_in_it() -> None:
    names = header("//", 8) + b"one.o/\n\n"
    assert members(b"!<thin>\n" + header("/", 4) + bytes(4) + names + header("/0", 4096)) == [("one.o", None)]


def test_a_member_of_an_archive_in_a_thin_archive_is_named_by_the_path_of_that_archive() -> None:
    # As `ar rcT outer.a sub/inner.a` writes it: the name at 0, the member at 190 of that file.
    names = header("//", 14) + b"sub/inner.a/\n\n"
    ((name, contents),) = members(b"!<thin>\n" + names + header("/0:190", 896))
    assert name.startswith("sub/inner.a")
    assert contents is None


def test_the_members_of_a_view_are_views_of_it() -> None:
    data = archive(ODD_AND_EVEN)
    for member in read_members(memoryview(data), "libdemo.a"):
        assert isinstance(member.data, memoryview)
        assert member.data.obj is data


@pytest.mark.parametrize(
    ("head", "is_archive"),
    [(b"!<arch>\n", True), (b"!<thin>\n", True), (b"!<arch>", False), (b"\x7fELF", False), (b"", False)],
)
def test_a_file_claims_to_be_an_archive_by_its_first_eight_bytes(head: bytes, *, is_archive: bool) -> None:
    assert starts_like_archive(head) == starts_like_archive(memoryview(head)) == is_archive


# --- damage -----------------------------------------------------------------------------------------------------------

FIRST = header("one.o/", 4) + b"good"
BEHIND_FIRST = len(MAGIC) + 60 + 4


@pytest.mark.parametrize(
    ("damaged", "offset", "cause"),
    [
        (header("two.o/", 4, end="??") + b"good", 0, "the header of an archive member is damaged"),
        (header("two.o/", 4)[:59], 0, "the header of an archive member is damaged"),
        (b"\n", 0, "the header of an archive member is damaged"),
        (header("two.o/", "four") + b"good", 48, "the size of an archive member is not a number"),
        (header("two.o/", "") + b"good", 48, "the size of an archive member is not a number"),
        (header("two.o/", "-4") + b"good", 48, "the size of an archive member is not a number"),
        (header("two.o/", "1_0") + b"good", 48, "the size of an archive member is not a number"),
        (header("two.o/", "0x4") + b"good", 48, "the size of an archive member is not a number"),
        (header("two.o/", 5) + b"good", 0, "an archive member of 5 bytes reaches beyond the end"),
        (header("two.o/", 9999999999), 0, "an archive member of 9999999999 bytes reaches beyond the end"),
    ],
)
def test_a_damaged_member_is_refused_where_it_stands(damaged: bytes, offset: int, cause: str) -> None:
    error = refused(MAGIC + FIRST + damaged)
    assert (error.offset, error.cause) == (BEHIND_FIRST + offset, cause)


def test_the_members_before_the_damage_are_given() -> None:
    found = read_members(MAGIC + FIRST + b"damage", "libdemo.a")
    assert next(found) == ArchiveMember("one.o", b"good")
    with pytest.raises(InputError):
        next(found)


def test_an_archive_cut_anywhere_gives_the_members_before_the_cut_and_then_an_error() -> None:
    data = archive([("one.o", b"good"), ("two.o", b"fine")])
    ends = {len(MAGIC): 0, BEHIND_FIRST: 1, len(data): 2}
    for cut in range(len(MAGIC), len(data) + 1):
        if cut in ends:
            assert len(members(data[:cut])) == ends[cut]
        else:
            refused(data[:cut])


def test_a_name_without_end_is_refused_where_its_member_stands() -> None:
    error = refused(MAGIC + header("//", 6) + b"endles" + header("/0", 2) + b"it")
    assert error.cause == "the name of an archive member has no end"
    assert error.offset == len(MAGIC) + 60 + 6


def test_a_name_without_end_is_not_copied_for_every_member() -> None:
    data = MAGIC + header("//", 200_000) + b"n" * 200_000 + header("/0", 0) * 1000
    tracemalloc.start()
    try:
        with suppress(InputError):
            members(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20
