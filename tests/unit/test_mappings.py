"""The kernel's texts of one process, rule by rule: maps, smaps and smaps_rollup."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint.errors import InputError
from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.maps_text import BlockCache, looks_like_maps, parse_maps, parse_rollup
from footprint.process.snapshot import read_texts

LIBC = b"7fcea8129000-7fcea812b000 rw-p 001d3000 fe:00 326269                     /usr/lib/libc.so.6\n"
NAMELESS = b"7fcea812b000-7fcea8138000 rw-p 00000000 00:00 0 \n"
STACK = b"7ffd046bc000-7ffd046dd000 rw-p 00000000 00:00 0                          [stack]\n"
BLOCK = b"Size:                132 kB\nRss:                1234 kB\nVmFlags: rd wr \n"


def read(text: bytes) -> MemoryMap:
    return parse_maps(text, "a text")


def one(text: bytes) -> Mapping:
    (mapping,) = read(text).mappings
    return mapping


def named(name: bytes) -> bytes:
    return b"7fcea7f51000-7fcea7f53000 r--s 00000000 fe:00 10076422                   " + name + b"\n"


def counters(mapping: Mapping) -> dict[str, int | None]:
    return {key: mapping.counters.get(key) for key in mapping.counters.keys}  # a field, not a method


def slugs(memory: MemoryMap) -> list[str]:
    return [note.slug for note in memory.notes]


# --- the header line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        pytest.param(
            LIBC,
            (0x7FCEA8129000, 0x7FCEA812B000, "rw-p", 0x1D3000, "fe:00", 326269, "/usr/lib/libc.so.6"),
            id="64 bits",
        ),
        pytest.param(
            # Addresses have 8 digits, and names begin in column 49.
            b"08048000-08089000 r-xp 00000000 03:01 104219     /bin/tcsh\n",
            (0x08048000, 0x08089000, "r-xp", 0, "03:01", 104219, "/bin/tcsh"),
            id="32 bits",
        ),
        pytest.param(
            b"08048000-08089000 r-xp 00000000 03:01 104219 /bin/tcsh\n",
            (0x08048000, 0x08089000, "r-xp", 0, "03:01", 104219, "/bin/tcsh"),
            id="one space before the name",
        ),
        pytest.param(
            b"0808c000-08146000 rwxp 00000000 00:00 0 \n",
            (0x0808C000, 0x08146000, "rwxp", 0, "00:00", 0, ""),
            id="no name",
        ),
        pytest.param(
            b"0808c000-08146000 rwxp 00000000 00:00 0\n",
            (0x0808C000, 0x08146000, "rwxp", 0, "00:00", 0, ""),
            id="no name, and an editor removed the last space",
        ),
        pytest.param(
            b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
            (0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "--xp", 0, "00:00", 0, "[vsyscall]"),
            id="the end of the address space",
        ),
        pytest.param(
            b"7fcea7f2d000-7fcea7f2f000 rw-s 123456780000 103:06 18446744073709551615 /srv/sparse offset.bin\n",
            (0x7FCEA7F2D000, 0x7FCEA7F2F000, "rw-s", 0x123456780000, "103:06", 2**64 - 1, "/srv/sparse offset.bin"),
            id="wide fields shift the name",
        ),
        pytest.param(
            b"080bf000-081b7000 rw-p 080bf000 00:00 0          [heap]\n",
            (0x080BF000, 0x081B7000, "rw-p", 0x080BF000, "00:00", 0, "[heap]"),
            id="before Linux 2.6.25 anonymous memory has an offset",
        ),
    ],
)
def test_a_header_line_has_range_permissions_offset_device_inode_and_name(
    line: bytes, fields: tuple[int, int, str, int, str, int, str]
) -> None:
    found = one(line)
    assert found[:7] == fields
    assert found.size_bytes == fields[1] - fields[0]


def test_maps_without_counters_have_none_not_zero() -> None:
    memory = read(LIBC + NAMELESS)
    assert memory.dialect == "maps"
    assert memory.mappings[0].counters.get("Rss") is None
    assert memory.mappings[0].vm_flags is None
    assert memory.notes == ()


def test_blanks_before_amounts_are_not_kept() -> None:
    def pieces() -> Iterator[bytes]:
        for number in range(1, 100):
            header = b"%08x-%08x rw-p 00000000 00:00 0 \n" % (number << 12, number + 1 << 12)
            yield header + b"Size: 4 kB\nRss:%b%d kB\n" % (b" " * 100_000, number)

    tracemalloc.start()
    memory = parse_maps(pieces(), "smaps")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [mapping.counters.get("Rss") for mapping in memory.mappings] == [number << 10 for number in range(1, 100)]
    # The text and its bodies, which are kept, take 10 MB each.
    assert most_bytes < 21_000_000


def test_mappings_stand_in_the_order_of_the_text() -> None:
    assert [mapping.name for mapping in read(LIBC + NAMELESS + STACK).mappings] == ["/usr/lib/libc.so.6", "", "[stack]"]


@pytest.mark.parametrize(
    ("permissions", "is_shared", "is_mapped_writable"),
    [
        ("rw-p", False, True),
        ("rw-s", True, False),
        ("r-xp", False, False),
        ("---p", False, False),
        ("-w-p", False, True),
    ],
)
def test_only_private_writable_mappings_count_into_mapped_writable(
    permissions: str,
    is_shared: bool,  # noqa: FBT001 # a column of the table
    is_mapped_writable: bool,  # noqa: FBT001 # the same
) -> None:
    mapping = one(NAMELESS.replace(b"rw-p", permissions.encode()))
    assert mapping.is_shared is is_shared
    assert mapping.is_mapped_writable is is_mapped_writable


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        b"[heap]",
        b"[stack:12345]",
        b"[anon:dalvik-/data/misc/shared relro]",
        b"/srv/odd/[heap]",
        b"/memfd:close)paren [x] (deleted)",
        b"/memfd: (deleted)",
        b"anon_inode:[io_uring]",
        b"socket:[147834]",
        b"/SYSV1234abcd (deleted)",
        b'/srv/odd/colon:equals=comma,quote"semi;',
        b"/srv/odd/two  spaces",
        b"/srv/odd/trailing space ",
        b"/srv/odd/trailing spaces   ",
        b"/srv/odd/tab\there.bin",
        b"/srv/odd/carriage\rreturn.bin",
        b"/srv/odd/return at the end\r",
        b"/srv/odd/\x0b\x0c\x1c\x1d\x1e.bin",
        b"/srv/odd/Rss:                   4 kB",
        b"/srv/odd/7fcea8129000-7fcea812b000 rw-p 00000000 00:00 0 ",
        "/srv/üñï-文字-ö".encode(),
        pytest.param("/srv/\x85\u2028\u2029.bin".encode(), id="only a line feed ends a line, whatever Unicode says"),
        # A file called new<LF>line and one called new\012line print alike.
        pytest.param(b"/srv/new\\012line.bin", id="an escaped line feed stays escaped because a backslash is not"),
        pytest.param(b"/srv/gone.bin (deleted)", id="a deleted file, because a file may be called so"),
        pytest.param(b"/srv/gone too (deleted) (deleted)", id="a deleted file whose name ends so"),
    ],
)
def test_a_name_is_kept_as_it_stands(name: bytes) -> None:
    memory = read(named(name) + STACK)
    assert [mapping.name for mapping in memory.mappings] == [name.decode(), "[stack]"]


def test_a_name_that_is_not_utf_8_keeps_its_bytes() -> None:
    name = one(named(b"/srv/\xff\xfe\x85-not-utf8.bin")).name
    assert name == "/srv/\udcff\udcfe\udc85-not-utf8.bin"
    assert name.encode("utf-8", "surrogateescape") == b"/srv/\xff\xfe\x85-not-utf8.bin"


# --- blocks of smaps ------------------------------------------------------------------------------------------------


def test_counters_are_in_bytes_and_in_the_order_of_the_text() -> None:
    memory = read(LIBC + b"Size:                  8 kB\nRss:                   4 kB\nPrivate_Dirty:         0 kB\n")
    assert memory.dialect == "smaps"
    assert list(counters(memory.mappings[0]).items()) == [("Size", 8192), ("Rss", 4096), ("Private_Dirty", 0)]


def test_a_sum_is_over_the_mappings_that_have_the_counter() -> None:
    memory = read(LIBC + b"Rss:                   4 kB\n" + NAMELESS + b"Pss:                   1 kB\n" + STACK + BLOCK)
    assert memory.sum("Rss") == (4 + 1234) * 1024
    assert memory.sum("Pss") == 1024
    assert memory.sum("Swap") == 0


def test_a_counter_that_the_text_does_not_have_is_none_where_one_that_is_zero_is_zero() -> None:
    mapping = one(LIBC + b"Rss:                   0 kB\n")
    assert mapping.counters.get("Rss") == 0
    assert mapping.counters.get("Pss") is None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            b"Shared_Hugetlb:     2048 kB\nPrivate_Hugetlb:    2048 kB\nPrivate_Hugetlb2: 12345678 kB\n",
            {
                "Shared_Hugetlb": 2 << 20,
                "Private_Hugetlb": 2 << 20,
                "Private_Hugetlb2": 12345678 * 1024,
            },
            id="a key of 16 letters touches its value no more than others",
        ),
        pytest.param(b"ProtectionKey:        15\n", {"ProtectionKey": 15}, id="a protection key is a bare number"),
        *(
            pytest.param(
                b"Rss:                   4 kB\n" + line,
                {"Rss": 4096, "THPeligible": 1},
                id=f"THPeligible is a bare number: {line!r}",
            )
            for line in (b"THPeligible:    1\n", b"THPeligible:           1\n")
        ),
    ],
)
def test_a_counter_is_in_bytes_or_a_bare_number(lines: bytes, expected: dict[str, int]) -> None:
    assert counters(one(LIBC + lines)) == expected


def test_keys_that_no_kernel_has_yet_are_kept_with_and_without_unit() -> None:
    text = LIBC + b"Rss:                   4 kB\nAnonHugePteMap:       12 kB\nFuture_Count(v2):      7\n"
    memory = read(text)
    assert counters(memory.mappings[0]) == {"Rss": 4096, "AnonHugePteMap": 12288, "Future_Count(v2)": 7}
    assert memory.notes == ()


def test_a_key_that_only_some_mappings_have_is_none_in_the_others() -> None:
    # Linux 3.5 to 3.19 print Nonlinear so.
    key = b"Rss:                   4 kB\n"
    nonlinear = b"Nonlinear:             8 kB\n"
    memory = read(LIBC + key + NAMELESS + key + nonlinear + STACK + key)
    assert [mapping.counters.get("Nonlinear") for mapping in memory.mappings] == [None, 8192, None]
    assert [mapping.counters.get("Rss") for mapping in memory.mappings] == [4096] * 3


def test_a_key_that_only_the_mapping_before_the_last_has_does_not_make_the_last_one_cut() -> None:
    key = b"Rss:                   4 kB\n"
    nonlinear = b"Nonlinear:             8 kB\n"
    assert read(LIBC + key + NAMELESS + key + nonlinear + STACK + key).notes == ()


def test_flags_are_codes_between_single_spaces() -> None:
    assert one(LIBC + b"Rss:                   4 kB\nVmFlags: rd wr mr mw me ac \n").vm_flags == "rd wr mr mw me ac"


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        pytest.param(b"VmFlags: rd ?? zz \n", "rd ?? zz", id="codes without a name"),
        pytest.param(b"VmFlags: rd mr pad=4kB\n", "rd mr pad=4kB", id="Android's padding"),
        pytest.param(b"VmFlags: \n", "", id="none"),
        pytest.param(b"VmFlags:\n", "", id="none, as qemu prints it"),
    ],
)
def test_flags_of_any_kind_are_kept(line: bytes, flags: str) -> None:
    memory = read(LIBC + b"Rss:                   4 kB\n" + line)
    assert memory.mappings[0].vm_flags == flags
    assert memory.notes == ()


def test_android_names_anonymous_memory_in_a_line_of_its_own() -> None:
    mapping = one(NAMELESS + b"Name:           [anon:libc_malloc]\nRss:                   4 kB\n")
    assert mapping.name == "[anon:libc_malloc]"
    assert counters(mapping) == {"Rss": 4096}


def test_where_both_lines_have_a_name_the_header_is_believed() -> None:
    mapping = one(STACK + b"Name:           [anon:other]\nRss:                   4 kB\n")
    assert mapping.name == "[stack]"


def test_blocks_with_and_without_a_name_line_may_alternate() -> None:
    key = b"Rss:                   4 kB\n"
    memory = read(LIBC + key + NAMELESS + b"Name:           [anon:x y]\n" + key + STACK + key)
    assert [mapping.name for mapping in memory.mappings] == ["/usr/lib/libc.so.6", "[anon:x y]", "[stack]"]
    assert [counters(mapping) for mapping in memory.mappings] == [{"Rss": 4096}] * 3


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"words without a colon", id="no key"),
        pytest.param(b"Rss:                  many kB", id="no number"),
        pytest.param(b"Rss:                   4 MB", id="another unit"),
        pytest.param(b"Rss:                  -4 kB", id="a negative number"),
        pytest.param(b"Rss:", id="no value"),
        pytest.param(b"", id="blank"),
        pytest.param(b"\xff\x00Rss", id="binary"),
        pytest.param(b"5 words that begin with a hex digit", id="a digit first"),
        pytest.param(b"every word of this begins with a letter", id="a hex letter first"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"Size:                  8 kB\n"])
def test_a_line_of_a_block_in_no_known_shape_is_kept_with_its_mapping(before: bytes, line: bytes) -> None:
    memory = read(LIBC + before + line + b"\nAnonymous:             4 kB\n" + STACK)
    assert memory.mappings[0].unknown_lines == (line.decode("utf-8", "surrogateescape"),)
    assert memory.mappings[0].counters.get("Anonymous") == 4096
    assert memory.mappings[1].name == "[stack]"
    assert "maps-unknown-lines" in slugs(memory)


def test_the_second_of_two_lines_with_one_key_is_kept_as_it_stands() -> None:
    mapping = one(LIBC + b"Rss:                   4 kB\nRss:                   8 kB\n")
    assert counters(mapping) == {"Rss": 4096}
    assert mapping.unknown_lines == ("Rss:                   8 kB",)


def test_the_second_of_two_lines_of_flags_is_kept_as_it_stands() -> None:
    mapping = one(LIBC + b"VmFlags: rd \nVmFlags: wr \n")
    assert mapping.vm_flags == "rd"
    assert mapping.unknown_lines == ("VmFlags: wr ",)


def test_a_line_before_the_first_mapping_is_left_out_and_named_in_a_note() -> None:
    memory = read(b"$ cat /proc/self/maps\n" + LIBC)
    assert len(memory.mappings) == 1
    assert slugs(memory) == ["maps-unknown-lines"]
    assert "'$ cat /proc/self/maps'" in memory.notes[0].detail


# --- locked memory --------------------------------------------------------------------------------------------------


def test_locked_that_equals_pss_where_no_flag_says_locked_is_called_unreliable() -> None:
    block = b"Pss:                  12 kB\nLocked:               12 kB\nVmFlags: rd mr \n"
    memory = read(LIBC + block + STACK + block)
    assert slugs(memory) == ["locked-unreliable"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            b"Pss:                  12 kB\nLocked:               12 kB\nVmFlags: rd mr lo \n",
            b"Pss:                  12 kB\nLocked:               12 kB\nVmFlags: rd mr lo \n",
            id="locked that equals pss where a flag says locked is right",
        ),
        pytest.param(
            b"Pss:                  12 kB\nLocked:               12 kB\nVmFlags: rd mr lo \n",
            b"Pss:                  12 kB\nLocked:                0 kB\nVmFlags: rd mr \n",
            id="one unlocked mapping without locked bytes shows that the kernel counts right",
        ),
        pytest.param(
            b"Pss:                  12 kB\nLocked:               12 kB\n",
            b"Pss:                  12 kB\nLocked:               12 kB\n",
            id="before linux 3 8 no flag tells whether locked that equals pss is right",
        ),
    ],
)
def test_locked_is_believed(first: bytes, second: bytes) -> None:
    assert read(LIBC + first + STACK + second).notes == ()


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"", [], [b""]])
def test_an_empty_text_has_no_mappings_as_kernel_threads_and_zombies_have_none(text: bytes | list[bytes]) -> None:
    memory = parse_maps(text, "a text")
    assert memory.mappings == ()
    assert memory.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", id="a binary"),
        pytest.param(b"Name:\tsleep\nState:\tS (sleeping)\nVmRSS:\t    1808 kB\n", id="status"),
        pytest.param(b"16916:   node\n0000000000400000   4212K r---- node\n total   728496K\n", id="pmap"),
        pytest.param(b"Rss:                   4 kB\nPss:                   4 kB\n", id="a block without its header"),
        pytest.param("55d0-55d1 rw-p 00000000 00:00 0\n".encode("utf-16"), id="UTF-16"),
        pytest.param(b"\n", id="a blank line"),
        pytest.param(b"x", id="one letter"),
        pytest.param(b"7FCEA8129000-7FCEA812B000 rw-p 001d3000 fe:00 0 \n", id="upper-case digits"),
        pytest.param(b"7fcea8129000-7fcea812b000 rw-q 001d3000 fe:00 0 \n", id="another permission"),
    ],
)
def test_a_text_that_is_something_else_is_refused(text: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.file == "a text"
    assert caught.value.offset == 0
    assert str(caught.value) == "a text: offset 0x0: no line is a mapping as in /proc/PID/maps or smaps"


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"", id="behind the header"),
        pytest.param(b"Siz", id="in a key"),
        pytest.param(b"Size:", id="behind a colon"),
        pytest.param(b"Size:                13", id="in a number"),
        pytest.param(b"Size:                132 k", id="in the unit"),
        pytest.param(b"Size:                132 kB", id="before a line end"),
        pytest.param(b"Size:                132 kB\n", id="behind a line"),
        pytest.param(b"Size:                132 kB\nRss:                1234 kB\nVmFla", id="in the word VmFlags"),
        pytest.param(b"Size:                132 kB\nRss:                1234 kB\nVmFlags: rd w", id="in the flags"),
    ],
)
def test_a_text_that_ends_within_a_block_says_so_and_has_no_wrong_counter(rest: bytes) -> None:
    memory = read(LIBC + BLOCK + STACK + rest)
    whole = {"Size": 132 * 1024, "Rss": 1234 * 1024}
    assert "maps-text-truncated" in slugs(memory)
    assert counters(memory.mappings[0]) == whole
    assert counters(memory.mappings[1]).items() <= whole.items()


@pytest.mark.parametrize("digits", [b"1", b"12", b"123", b"1234"])
def test_the_last_counter_of_a_cut_text_is_not_taken_without_its_unit(digits: bytes) -> None:
    # Before Linux 3.8 no flags stand behind the last counter.
    memory = read(LIBC + b"Rss:                1234 kB\n" + STACK + b"Rss:                " + digits)
    assert memory.mappings[1].counters.get("Rss") is None
    assert "maps-text-truncated" in slugs(memory)


def test_a_text_whose_last_line_end_is_missing_keeps_its_last_counter() -> None:
    memory = read(LIBC + b"Rss:                1234 kB\n" + STACK + b"Rss:                1234 kB")
    assert memory.mappings[1].counters.get("Rss") == 1234 * 1024
    assert slugs(memory) == ["maps-text-truncated"]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"7ffd", id="in the first address"),
        pytest.param(b"7ffd046bc000-7ffd046d", id="in the second"),
        pytest.param(b"7ffd046bc000-7ffd046dd000 r", id="in the permissions"),
        pytest.param(b"7ffd046bc000-7ffd046dd000 rw-p 000", id="in the offset"),
        pytest.param(b"7ffd046bc000-7ffd046dd000 rw-p 00000000 00:", id="in the device"),
    ],
)
def test_a_text_that_ends_within_a_header_has_one_mapping_less_and_says_so(rest: bytes) -> None:
    memory = read(LIBC + NAMELESS + rest)
    assert [mapping.name for mapping in memory.mappings] == ["/usr/lib/libc.so.6", ""]
    assert "maps-text-truncated" in slugs(memory)


def test_a_text_that_ends_within_a_name_has_the_mapping_and_says_so() -> None:
    memory = read(NAMELESS + STACK[:-4])
    assert memory.mappings[1].name == "[sta"
    assert slugs(memory) == ["maps-text-truncated"]


def test_a_text_that_begins_within_a_block_has_the_mappings_behind_it_and_says_so() -> None:
    memory = read(b"                1234 kB\nVmFlags: rd wr \n" + STACK + BLOCK)
    assert [mapping.name for mapping in memory.mappings] == ["[stack]"]
    assert slugs(memory) == ["maps-unknown-lines"]


@pytest.mark.parametrize("lost_digits", [5, 8, 11])
def test_a_header_that_lost_the_beginning_of_its_address_is_no_mapping_from_a_low_address(lost_digits: int) -> None:
    # The kernel prints eight digits at least.
    memory = read(LIBC[lost_digits:] + STACK)
    assert [mapping.start_addr for mapping in memory.mappings] == [0x7FFD046BC000]
    assert slugs(memory) == ["maps-unknown-lines"]


def test_a_mapping_that_ends_before_it_starts_is_noted_and_never_has_a_negative_size() -> None:
    memory = read(LIBC + b"7fff00000000-7ffe00000000 rw-p 00000000 00:00 0 \n")
    assert all(mapping.size_bytes >= 0 for mapping in memory.mappings)
    assert memory.notes != ()


def test_the_maps_of_two_processes_in_one_text_are_noted() -> None:
    memory = read(LIBC + STACK + LIBC + STACK)
    assert len(memory.mappings) == 4
    assert slugs(memory) == ["maps-not-ascending"]
    assert "0x7fcea8129000" in memory.notes[0].detail


def test_mappings_that_overlap_are_noted() -> None:
    assert slugs(read(LIBC + NAMELESS.replace(b"7fcea812b000-", b"7fcea812a000-"))) == ["maps-not-ascending"]


def test_the_source_is_the_subject_of_a_note() -> None:
    assert parse_maps(LIBC + LIBC, "saved.txt").notes[0].subject == "saved.txt"


# --- pieces ---------------------------------------------------------------------------------------------------------

WHOLE = LIBC + BLOCK + NAMELESS + BLOCK + named(b"/srv/carriage\rreturn ") + BLOCK + STACK + BLOCK


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 100, 300, 1000])
def test_a_text_read_in_pieces_gives_what_the_whole_gives(piece_bytes: int) -> None:
    pieces = [WHOLE[at : at + piece_bytes] for at in range(0, len(WHOLE), piece_bytes)]
    assert parse_maps(iter(pieces), "a text") == read(WHOLE)
    assert len(read(WHOLE).mappings) == 4


def test_pieces_may_be_empty() -> None:
    assert parse_maps([b"", WHOLE[:200], b"", WHOLE[200:], b""], "a text") == read(WHOLE)


def test_a_text_read_after_those_of_other_processes_gives_what_it_gives_alone() -> None:
    moved = WHOLE.replace(b"7fcea8129000-7fcea812b000", b"7fcea8128000-7fcea812a000").replace(b"[stack]", b"[heap]")
    cut = WHOLE[: -len(b"VmFlags: rd wr \n")]
    cache = BlockCache()
    for text in (WHOLE, moved, WHOLE, cut, LIBC + STACK + LIBC, moved):
        assert parse_maps(text, "a text", cache) == read(text)
    ascending = LIBC + BLOCK + NAMELESS + BLOCK + STACK + BLOCK
    (first, *_), (again, *_) = (parse_maps(ascending, "a text", cache).mappings for _ in range(2))
    assert first.counters is again.counters


# --- the rollup -----------------------------------------------------------------------------------------------------

ROLLUP = b"55780acfb000-7ffd046dd000 ---p 00000000 00:00 0                          [rollup]\n"


def test_a_rollup_is_the_counters_of_its_one_mapping() -> None:
    sums = parse_rollup(ROLLUP + b"Rss:               21640 kB\nSwapPss:               0 kB\n", "a text")
    assert sums is not None
    assert (sums.get("Rss"), sums.get("SwapPss"), sums.get("Size")) == (21640 * 1024, 0, None)


def test_keys_that_begin_alike_are_different_keys() -> None:
    keys = b"Pss:                8645 kB\nPss_Dirty:          8267 kB\nPss_Anon:           8161 kB\n"
    sums = parse_rollup(ROLLUP + keys, "a text")
    assert sums is not None
    assert (sums.get("Pss"), sums.get("Pss_Dirty"), sums.get("Pss_Anon")) == (8645 << 10, 8267 << 10, 8161 << 10)


def test_the_rollup_of_an_address_space_without_mappings_begins_and_ends_at_0() -> None:
    header = b"00000000-00000000 ---p 00000000 00:00 0                                  [rollup]\n"
    sums = parse_rollup(header + b"Rss:                   0 kB\n", "a text")
    assert sums is not None
    assert sums.get("Rss") == 0


def test_an_empty_rollup_is_that_of_a_process_without_memory() -> None:
    assert parse_rollup(b"", "a text") is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"Rss:               21640 kB\n", id="no header"),
        pytest.param(LIBC + BLOCK + STACK + BLOCK, id="smaps"),
        pytest.param(LIBC + BLOCK, id="smaps of one mapping"),
    ],
)
def test_a_rollup_that_is_some_other_text_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        parse_rollup(text, "a text")


# --- recognition ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LIBC, id="maps"),
        pytest.param(STACK + BLOCK, id="smaps"),
        pytest.param(ROLLUP, id="a rollup"),
        pytest.param(b"$ cat /proc/1/smaps\n\n" + LIBC, id="with a line of the shell"),
        pytest.param(b"Rss:                1234 kB\nVmFlags: rd wr \n" + STACK, id="begun within a block"),
        pytest.param(LIBC[:-1], id="without line end"),
        pytest.param(named(b"/srv/" + b"L" * 5000), id="a name longer than what is looked at"),
    ],
)
def test_a_text_with_a_header_among_its_first_lines_looks_like_maps(text: bytes) -> None:
    assert looks_like_maps(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"Name:\tsleep\n", id="status"),
        pytest.param(b"0000000000400000   4212K r---- node\n", id="pmap"),
        pytest.param(b"\n" * 6 + LIBC, id="a header too far below"),
    ],
)
def test_other_texts_do_not_look_like_maps(text: bytes) -> None:
    assert not looks_like_maps(text)


# --- the rollups of several processes -------------------------------------------------------------------------------


def rollup_text(anonymous_kb: int) -> bytes:
    return ROLLUP + b"Rss:     %d kB\nAnonymous:  %d kB\nSwap: 0 kB\n" % (9000 + anonymous_kb, anonymous_kb)


@pytest.mark.parametrize(
    ("first", "second", "pids"),
    [
        pytest.param(b"", b"", [1, 2], id="cat /proc/*/smaps_rollup"),
        pytest.param(b"", b"---\n", [1, 2], id="a line"),
        pytest.param(
            b"==> /proc/4711/smaps_rollup <==\n", b"\n==> /proc/12/smaps_rollup <==\n", [4711, 12], id="tail -n +1"
        ),
        pytest.param(b"PID 4711:\n", b"PID 12:\n", [4711, 12], id="echo"),
        pytest.param(b"pid: 4711\n", b"pid: 12\n", [4711, 12], id="as a key"),
        pytest.param(b"4711\n", b"\n12\n", [4711, 12], id="a number"),
        pytest.param(b"=== 4711 ===\n", b"=== 12 ===\n", [4711, 12], id="a heading"),
        pytest.param(b"worker 7\n", b"worker 8\n", [1, 2], id="a name"),
        pytest.param(b"4711\n", b"4711\n", [1, 2], id="one process twice"),
    ],
)
def test_rollups_one_after_the_other_are_several_processes(first: bytes, second: bytes, pids: list[int]) -> None:
    texts = read_texts(first + rollup_text(100) + second + rollup_text(200), "a text")
    assert [one.pid for one in texts] == pids
    assert [one.memory.sum("Anonymous") for one in texts] == [100 * 1024, 200 * 1024]
    assert [one.memory.sum("Rss") for one in texts] == [9100 * 1024, 9200 * 1024]
    assert all(len(one.memory.mappings) == 1 and one.memory.mappings[0].size_bytes == 0 for one in texts)
    is_numbered = pids == [1, 2]
    assert all(("rollup-numbered" in {note.slug for note in one.notes}) is is_numbered for one in texts)


def test_one_rollup_is_one_process_and_smaps_with_a_rollup_behind_it_is_no_pool() -> None:
    assert [text.pid for text in read_texts(b"4711\n" + rollup_text(100), "a text")] == [None]
    smaps = b"55780acfb000-55780acfc000 rw-p 00000000 00:00 0\nRss: 4 kB\n"
    assert len(read_texts(smaps + rollup_text(100) + rollup_text(100), "a text")) == 1


def test_the_rollups_of_a_pool_as_they_were_pasted_are_two_processes() -> None:
    found = read_texts(Path("tests/cases/texts/two-rollups.txt").read_bytes(), "a text")
    assert [one.memory.sum("Anonymous") for one in found] == [11_544 * 1024, 14_688 * 1024]
