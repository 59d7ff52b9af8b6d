"""What parse_pmap reads, dialect by dialect, from texts of a few lines."""

import pytest

from footprint.errors import InputError
from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.pmap import parse_pmap
from footprint.process.pmap_lines import looks_like_pmap

KIB = 1024

DEVICE_HEADER = b"Address           Kbytes Mode  Offset           Device    Mapping\n"
DEVICE_ROWS = (
    b"00007f0000000000      16 r---- 0000000000002000 0fd:00001 libz.so.1\n"
    b"00007f0000004000       8 rw--- 0000000000000000 000:00000   [ anon ]\n"
    b"00007f0000006000       4 rw-s- 0000000010000000 103:00006 shm.bin\n"
    b"00007ffd00000000     132 rw--- 0000000000000000 000:00000   [ stack ]\n"
)
DEVICE_TOTALS = b"mapped: 160K    writeable/private: 140K    shared: 4K\n"
DEVICE = b"123:   /bin/program -v\n" + DEVICE_HEADER + DEVICE_ROWS + DEVICE_TOTALS

PLAIN = (
    b"123:   /bin/program\n"
    b"0000000000400000     16K r-x-- program\n"
    b"0000000000604000      8K rw---   [ anon ]\n"
    b" total               24K\n"
)

EXTENDED_HEADER = b"Address           Kbytes     RSS   Dirty Mode  Mapping\n"
EXTENDED_RULE = b"---------------- ------- ------- ------- \n"
EXTENDED = (
    b"123:   /bin/program\n" + EXTENDED_HEADER + b"0000000000400000      16      12       0 r-x-- program\n"
    b"0000000000604000       8       4       4 rw---   [ anon ]\n"
    + EXTENDED_RULE
    + b"total kB              24      16       4\n"
)

WIDE = (
    b"123:   /bin/program\n"
    b" Address Perm   Offset Device Inode Size Rss Pss Swap THPeligible Mapping\n"
    b"00400000 r-xp 00002000  fd:01    77   16  12   6    0           0 program\n"
    b"00604000 rw-s 00000000  00:00     0    8   4   4    8           1 \n"
    b"                                    ==== === === ==== =========== \n"
    b"                                      24  16  10    8           1 KB \n"
)

WIDEST = (
    b"123:   /bin/program\n"
    b" Address Perm   Offset Device Inode Size KernelPageSize Rss ProtectionKey        VmFlags Mapping\n"
    b"00400000 r-xp 00002000  fd:01    77   16              4  12             0 rd ex mr mw me sh\n"
    b"00604000 rw-p 00000000  00:00     0    8              4   4             3    rd wr mr mw \n"
    b"                                    ==== ============== === ============= \n"
    b"                                      24              8  16             3 KB \n"
)


def parse_one(text: bytes) -> MemoryMap:
    (memory,) = parse_pmap(text, "text")
    return memory


def slugs(memory: MemoryMap) -> list[str]:
    return [note.slug for note in memory.notes]


def names(memory: MemoryMap) -> list[str]:
    return [mapping.name for mapping in memory.mappings]


def counters(mapping: Mapping) -> dict[str, int]:
    return {key: mapping.counters.values[place] for key, place in mapping.counters.keys.items()}


def test_device_rows_have_addresses_sizes_modes_offsets_and_devices() -> None:
    memory = parse_one(DEVICE)

    assert (memory.dialect, memory.pid, memory.command) == ("pmap -d", 123, "/bin/program -v")
    assert memory.mappings == (
        Mapping(0x7F0000000000, 0x7F0000004000, "r--p", offset=0x2000, device="fd:01", name="libz.so.1"),
        Mapping(0x7F0000004000, 0x7F0000006000, "rw-p", offset=0, device="00:00", name=""),
        Mapping(0x7F0000006000, 0x7F0000007000, "rw-s", offset=0x10000000, device="103:06", name="shm.bin"),
        Mapping(0x7FFD00000000, 0x7FFD00021000, "rw-p", offset=0, device="00:00", name="[stack]"),
    )
    assert memory.footer == {"mapped": 160 * KIB, "writeable/private": 140 * KIB, "shared": 4 * KIB}
    assert memory.notes == ()


def test_rows_without_an_option_have_neither_offset_nor_counters() -> None:
    memory = parse_one(PLAIN)

    assert memory.dialect == "pmap"
    assert memory.mappings == (Mapping(0x400000, 0x404000, "r-xp", name="program"), Mapping(0x604000, 0x606000, "rw-p"))
    assert memory.footer == {"Kbytes": 24 * KIB}
    assert memory.notes == ()


def test_extended_rows_count_resident_and_dirty_bytes() -> None:
    memory = parse_one(EXTENDED)

    assert memory.dialect == "pmap -x"
    assert [counters(mapping) for mapping in memory.mappings] == [
        {"Rss": 12 * KIB, "Dirty": 0},
        {"Rss": 4 * KIB, "Dirty": 4 * KIB},
    ]
    assert memory.footer == {"Kbytes": 24 * KIB, "Rss": 16 * KIB, "Dirty": 4 * KIB}
    assert memory.notes == ()


def test_a_dash_in_an_extended_row_is_a_counter_that_is_not_there() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b"Address           Kbytes     RSS    Anon  Locked Mode   Mapping\n"
        b"0000000000400000      16       -       -       - r-x--  program\n"
        b"0000000000604000       8       -       -       - rw---    [ anon ]\n"
        b"----------------  ------  ------  ------  ------\n"
        b"total kB              24       -       -       -\n"
    )

    assert memory.dialect == "pmap -x"
    assert [mapping.counters.get("Rss") for mapping in memory.mappings] == [None, None]
    assert memory.footer == {"Kbytes": 24 * KIB}
    assert names(memory) == ["program", ""]
    assert memory.notes == ()


def test_wide_rows_have_every_column_under_its_own_name() -> None:
    memory = parse_one(WIDE)

    assert memory.dialect == "pmap -X"
    first, second = memory.mappings
    assert first == Mapping(0x400000, 0x404000, "r-xp", 0x2000, "fd:01", 77, "program", first.counters, vm_flags=None)
    assert counters(first) == {"Size": 16 * KIB, "Rss": 12 * KIB, "Pss": 6 * KIB, "Swap": 0, "THPeligible": 0}
    assert counters(second) == {"Size": 8 * KIB, "Rss": 4 * KIB, "Pss": 4 * KIB, "Swap": 8 * KIB, "THPeligible": 1}
    assert (second.permissions, second.inode, second.name) == ("rw-s", 0, "")
    assert memory.footer == {"Size": 24 * KIB, "Rss": 16 * KIB, "Pss": 10 * KIB, "Swap": 8 * KIB, "THPeligible": 1}
    assert memory.notes == ()


def test_the_header_tells_flags_from_a_program_whose_name_looks_like_one() -> None:
    memory = parse_one(WIDEST)

    assert memory.dialect == "pmap -XX"
    assert [mapping.vm_flags for mapping in memory.mappings] == ["rd ex mr mw me", "rd wr mr mw"]
    assert names(memory) == ["sh", ""]
    assert memory.mappings[1].counters.get("ProtectionKey") == 3
    assert memory.footer["ProtectionKey"] == 3
    assert memory.notes == ()


def test_flags_are_read_where_the_header_is_two_columns_off() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b" Address Perm   Offset Device Inode Size Rss         VmFlagsMapping\n"
        b"00400000 r-xp 00002000  fd:01    77   16  12 rd ex mr mw  sh\n"
        b"00604000 rw-p 00000000  00:00     0    8   4       rd wr  \n"
        b"00606000 rw-p 00000000  00:00     0    8   4       rd wr  [heap]\n"
    )

    assert [mapping.vm_flags for mapping in memory.mappings] == ["rd ex mr mw", "rd wr", "rd wr"]
    assert names(memory) == ["sh", "", "[heap]"]


@pytest.mark.parametrize("blanks", [b" ", b"  ", b"   "])
def test_names_are_whole_where_the_header_has_flags_and_no_row_does(blanks: bytes) -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b" Address Perm   Offset Device Inode Size Rss VmFlagsMapping\n"
        b"00400000 r-xp 00002000  fd:01    77   16  12%bProgram\n"
        b"00604000 rw-p 00000000  00:00     0    8   4%b[heap]\n" % (blanks, blanks)
    )

    assert names(memory) == ["Program", "[heap]"]
    assert [mapping.vm_flags for mapping in memory.mappings] == ["", ""]


def test_a_header_in_two_words_a_column_is_no_counter() -> None:
    memory = parse_one(
        "123:   /bin/program\n"
        "   주  소 권  한 오프셋 장  치 I-노드 Size Rss 매  핑\n"
        "00400000 r-xp 00002000  fd:01       77   16  12 program\n"
        "00604000 rw-p 00000000  00:00        0    8   4 \n".encode()
    )

    assert [counters(mapping) for mapping in memory.mappings] == [
        {"Size": 16 * KIB, "Rss": 12 * KIB},
        {"Size": 8 * KIB, "Rss": 4 * KIB},
    ]
    assert names(memory) == ["program", ""]


def test_a_name_that_is_a_number_is_no_counter() -> None:
    memory = parse_one(WIDE.replace(b"0 program\n", b"0 12 34\n"))

    assert names(memory) == ["12 34", ""]
    assert memory.mappings[0].counters.get("THPeligible") == 0


def test_an_own_choice_of_columns_is_read_by_their_english_names() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b" Address Perm Size Pss Mapping\n"
        b"00400000 r-xp   16   6 program\n"
        b"              ==== === \n"
        b"                16   6 KB \n"
    )

    assert memory.mappings[0] == Mapping(
        0x400000, 0x404000, "r-xp", name="program", counters=memory.mappings[0].counters
    )
    assert counters(memory.mappings[0]) == {"Size": 16 * KIB, "Pss": 6 * KIB}
    assert memory.notes == ()


def test_wide_rows_without_sizes_keep_their_counters_and_say_that_they_have_no_end() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b" Address Flags  Offset Device Inode Rss Pss Description\n"
        b"00400000  r-xp 00002000  fd:01    77  12   6 /bin/program\n"
    )

    assert (memory.mappings[0].start_addr, memory.mappings[0].size_bytes) == (0x400000, 0)
    assert memory.mappings[0].counters.get("Rss") == 12 * KIB
    assert "pmap-no-sizes" in slugs(memory)


# Keys of Linux 5.4 to 5.19: Size Rss Pss Referenced Anonymous LazyFree ShmemPmdMapped FilePmdMapped Shared_Hugetlb
# Private_Hugetlb Swap SwapPss Locked THPeligible. With a protection key, 5.0 to 5.3 print as many.
def test_wide_rows_without_header_are_read_by_the_number_of_cells_and_say_so() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b"00400000 r-xp 00002000 fd:01 77 16 12 6 12 0 0 0 0 0 0 0 0 0 0 program\n"
        b"00604000 rw-p 00000000 00:00  0  8  4 4  4 4 0 0 0 0 0 8 8 4 1 \n"
    )

    assert memory.dialect == "pmap -X"
    assert memory.mappings[1].counters.get("SwapPss") == 8 * KIB
    assert memory.mappings[1].counters.get("Locked") == 4 * KIB
    assert memory.mappings[1].counters.get("THPeligible") == 1
    (note,) = memory.notes
    assert note.slug == "pmap-columns-assumed"
    assert "14 counters" in note.detail
    assert "Linux 5.4" in note.detail


def test_counters_that_could_as_well_be_others_are_left_out_and_named() -> None:
    memory = parse_one(
        b"00400000 r-xp 00002000 fd:01 77 16 12 6 12 0 0 0 0 0 0 0 0 0 0 program\n"
        b"00604000 rw-p 00000000 00:00  0  8  4 4  4 4 0 0 0 0 0 0 0 0 0 \n"
    )

    assert memory.mappings[1].counters.get("Pss") == 4 * KIB
    assert memory.mappings[1].counters.get("Locked") == 0
    assert memory.mappings[1].counters.get("FilePmdMapped") is None
    assert "left out because they have several possible keys: FilePmdMapped" in memory.notes[0].detail


def test_of_an_unknown_number_of_counters_only_the_size_is_read() -> None:
    cells = b" ".join([b"8"] * 40)
    memory = parse_one(b"00604000 rw-p 00000000 00:00  0 " + cells + b" rd wr \n")

    assert memory.mappings[0].size_bytes == 8 * KIB
    assert counters(memory.mappings[0]) == {"Size": 8 * KIB}
    assert memory.mappings[0].vm_flags == "rd wr"
    assert slugs(memory) == ["pmap-columns-assumed"]


@pytest.mark.parametrize(
    ("printed", "permissions"),
    [("r----", "r--p"), ("rw---", "rw-p"), ("rw-s-", "rw-s"), ("--x--", "--xp"), ("rwx--", "rwxp"), ("rw--R", "rw-p")],
)
def test_five_letter_modes_become_the_four_of_maps(printed: str, permissions: str) -> None:
    memory = parse_one(f"0000000000400000     16K {printed} program\n".encode())

    assert memory.mappings[0].permissions == permissions


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("  [ anon ]", ""),
        ("  [ stack ]", "[stack]"),
        ("  [ shmid=0x8802e ]", "[ shmid=0x8802e ]"),
        ("  [ vô danh ]", ""),
        ("  [ стек  ]", "[stack]"),
        ("  [ pile  ]", "[stack]"),
        ("  [ inconnu ]", "[ inconnu ]"),
        ("[heap]", "[heap]"),
        ("[ anon ]", "[ anon ]"),
        ("with space.so", "with space.so"),
        ("trailing space ", "trailing space "),
        ("gone too (deleted) (deleted)", "gone too (deleted) (deleted)"),
        (r"new\012line", r"new\012line"),
    ],
)
def test_two_spaces_before_a_bracket_mark_what_is_not_a_file(printed: str, name: str) -> None:
    memory = parse_one(f"0000000000400000     16K r---- {printed}\n0000000000600000      4K r---- file\n".encode())

    assert names(memory) == [name, "file"]


def test_names_that_are_not_utf_8_are_kept_as_surrogates() -> None:
    memory = parse_one(WIDE.replace(b"program\n", b"\xff\xfe.bin\n"))

    assert memory.mappings[0].name == "\udcff\udcfe.bin"


def test_a_carriage_return_in_a_name_stays() -> None:
    memory = parse_one(WIDE.replace(b" program\n", b" carriage\rreturn.bin\r\n"))

    assert memory.mappings[0].name == "carriage\rreturn.bin\r"


def test_versions_that_print_two_spaces_before_names_give_the_same_names() -> None:
    memory = parse_one(
        b"123:   /bin/program\n"
        b"00400000     16K r-x--  /bin/program\n"
        b"00604000      8K rw---    [ anon ]\n"
        b"bf930000     84K rw---    [ stack ]\n"
    )

    assert names(memory) == ["/bin/program", "", "[stack]"]


def test_toybox_counts_proportional_private_dirty_and_swapped_bytes() -> None:
    memory = parse_one(
        b"123: program\n"
        b"Address           Kbytes     PSS   Dirty    Swap Mode  Mapping\n"
        b"0000000000400000      16       6       4       0 r-x-- program\n"
        b"0000000000604000       8       4       4       8 rw---   [anon]\n"
        b"00007ffe38381000     132      60      60       0 rw---   [stack]\n"
        b"----------------  ------  ------  ------  ------\n"
        b"total                156      70      68       8\n"
    )

    assert (memory.dialect, memory.command) == ("toybox pmap -x", "program")
    assert counters(memory.mappings[1]) == {"Pss": 4 * KIB, "Private_Dirty": 4 * KIB, "Swap": 8 * KIB}
    assert names(memory) == ["program", "", "[stack]"]
    assert memory.footer == {"Kbytes": 156 * KIB, "Pss": 70 * KIB, "Private_Dirty": 68 * KIB, "Swap": 8 * KIB}
    assert memory.notes == ()


def test_toybox_without_an_option() -> None:
    memory = parse_one(
        b"123: program\n"
        b"0000000000400000     16K r-x-- program\n"
        b"0000000000604000      8K rw---   [heap]\n"
        b"total                 24K\n"
    )

    assert memory.dialect == "toybox pmap"
    assert names(memory) == ["program", "[heap]"]
    assert memory.footer == {"Kbytes": 24 * KIB}


def test_busybox_prints_four_letters_and_whole_paths() -> None:
    memory = parse_one(
        b"123: program -v\n"
        b"Address\t\t  Kbytes     PSS   Dirty    Swap  Mode  Mapping\n"
        b"0000000000400000      16       6       4       0  r-xp  /bin/program\n"
        b"0000000000604000       8       4       4       8  rw-s    [ anon ]\n"
        b"00007ffe38381000     132      60      60       0  rw-p  [stack]\n"
        b"----------------  ------  ------  ------  ------\n"
        b"total\t\t     156      70      68       8\n"
    )

    assert memory.dialect == "busybox pmap -x"
    assert [mapping.permissions for mapping in memory.mappings] == ["r-xp", "rw-s", "rw-p"]
    assert names(memory) == ["/bin/program", "", "[stack]"]
    assert memory.footer["Private_Dirty"] == 68 * KIB
    assert memory.notes == ()


@pytest.mark.parametrize("totals", [b"mapped: 24K\n", b" total                24K\n"])
def test_busybox_without_an_option(totals: bytes) -> None:
    memory = parse_one(
        b"123: program\n0000000000400000      16K r-xp  /bin/program\n0000000000604000       8K rw-p  [heap]\n" + totals
    )

    assert memory.dialect == "busybox pmap"
    assert names(memory) == ["/bin/program", "[heap]"]
    assert memory.footer == {"Kbytes": 24 * KIB}


@pytest.mark.parametrize(
    "totals",
    [
        "mapped: 160K    writeable/private: 140K    shared: 4K",
        "mappé: 160K     inscriptible/privé: 140K   partagé: 4K",
        "mappat: 160 k    skrivbart/privat: 140 k    delat: 4 k",
        "пов'язано: 160К  записуване/приватне: 140К спільне: 4К",  # noqa: RUF001 - this K is not ours
        " ánhxạ: 160K     có thể ghi/riêng: 140K    chiasẻ: 4K",
    ],
)
def test_totals_are_known_by_their_shape_in_every_language(totals: str) -> None:
    text = DEVICE.replace(
        DEVICE_HEADER, "Adresse            kByte Modus Versatz          Gerät    Zuordnung\n".encode()
    )
    memory = parse_one(text.replace(DEVICE_TOTALS, f"{totals}\n".encode()))

    assert memory.footer == {"mapped": 160 * KIB, "writeable/private": 140 * KIB, "shared": 4 * KIB}
    assert memory.notes == ()


@pytest.mark.parametrize(
    "totals",
    [
        " total  24K",
        " gesamt  24K",
        " totalt  24 k",
        " загалом  24 К",  # noqa: RUF001 - this K is not ours
        " სულ  24კ",
    ],
)
def test_the_one_total_is_known_by_its_shape_in_every_language(totals: str) -> None:
    memory = parse_one(PLAIN.replace(b" total               24K", totals.encode()))

    assert memory.footer == {"Kbytes": 24 * KIB}
    assert memory.notes == ()


def test_georgian_pads_addresses_beyond_sixteen_digits() -> None:
    memory = parse_one(
        "123:   sleep\n"
        "მისამართი კბაიტი     RSS ბინძური რეჟიმი მიბმა\n"
        "000000000000000562b9bddb000                188     188                     0              r---- sleep\n"
        "----------------                       ------- -------               ------- \n"
        "სულ კბ                          188     188                   0\n".encode()
    )

    assert memory.mappings == (
        Mapping(0x562B9BDDB000, 0x562B9BE0A000, "r--p", name="sleep", counters=memory.mappings[0].counters),
    )
    assert memory.footer == {"Kbytes": 188 * KIB, "Rss": 188 * KIB, "Dirty": 0}
    assert memory.notes == ()


def test_a_translated_header_may_push_the_columns_apart() -> None:
    memory = parse_one(
        "Адреса     кбайтів Режим Зміщення Пристрій Відповідність\n"
        "0000562b9bddb000            188      r---- 0000000000001000        0fe:00000 bash\n"
        "пов'язано: 188К  записуване/приватне: 0К спільне: 0К\n".encode()  # noqa: RUF001 - this K is not ours
    )

    assert memory.mappings == (Mapping(0x562B9BDDB000, 0x562B9BE0A000, "r--p", 0x1000, "fe:00", name="bash"),)
    assert memory.notes == ()


def test_each_process_has_a_map_of_its_own() -> None:
    first, second = parse_pmap(DEVICE + DEVICE.replace(b"123:", b"456:"), "text")

    assert (first.pid, second.pid) == (123, 456)
    assert first.mappings == second.mappings
    assert first.footer == second.footer
    assert first.notes == second.notes == ()


def test_processes_whose_first_lines_were_cut_off_end_with_their_totals() -> None:
    first, second = parse_pmap((DEVICE_HEADER + DEVICE_ROWS + DEVICE_TOTALS) * 2, "text")

    assert (first.pid, second.pid) == (None, None)
    assert len(first.mappings) == len(second.mappings) == 4
    assert first.notes == second.notes == ()


def test_a_process_that_could_not_be_read_has_no_mappings() -> None:
    first, second = parse_pmap(b"1:   /sbin/init\n" + PLAIN, "text")

    assert (first.pid, first.command, first.mappings) == (1, "/sbin/init", ())
    assert slugs(first) == ["pmap-no-rows"]
    assert first.notes[0].subject == "text: pid 1"
    assert len(second.mappings) == 2


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"2:   [kthreadd]\n", "a kernel thread has none"),
        (b"11843:   [odd] <defunct>\n", "a process that has ended has none"),
        (b"1:   /sbin/init\n", "it could not be read"),
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b" total                0K\n",
        DEVICE_HEADER + b"mapped: 0K    writeable/private: 0K    shared: 0K\n",
        EXTENDED_HEADER + EXTENDED_RULE + b"total kB               0       0       0\n",
    ],
)
def test_a_process_without_memory_has_a_note_that_says_why(head: bytes, why: str, rest: bytes) -> None:
    memory = parse_one(head + rest)

    assert memory.mappings == ()
    assert not any(memory.footer.values())
    assert slugs(memory) == ["pmap-no-rows"]
    assert why in memory.notes[0].detail


def test_the_last_line_of_pmap_alone_still_tells_its_totals() -> None:
    memory = parse_one(DEVICE_TOTALS)

    assert (memory.dialect, memory.mappings) == ("pmap -d", ())
    assert memory.footer["writeable/private"] == 140 * KIB
    assert slugs(memory) == ["pmap-no-rows", "pmap-footer-differs"]


@pytest.mark.parametrize("second_size", [b"16", b" 0"])
def test_rows_printed_twice_with_zeros_are_dropped(second_size: bytes) -> None:
    row = b"0000000000400000      16      12       0 r-x-- program\n"
    text = EXTENDED.replace(row, row + row.replace(b"16      12", second_size + b"       0"))
    memory = parse_one(text)

    assert memory.mappings == parse_one(EXTENDED).mappings
    assert slugs(memory) == ["pmap-rows-doubled"]
    assert memory.notes[0].detail.startswith("1 rows")


def test_of_a_path_read_as_two_lines_the_second_row_has_the_true_name() -> None:
    memory = parse_one(
        b"00007f0000000000       8K rw--- LLLLLLLL\n"
        b"00007f0000000000       8K rw--- deep file name at the end.bin\n"
        b"00007f0000002000       8K rw--- replaced.bin (deleted)\n"
    )

    assert names(memory) == ["deep file name at the end.bin", "replaced.bin (deleted)"]
    assert slugs(memory) == ["pmap-rows-doubled", "pmap-names-cut"]


def test_a_blank_line_among_the_rows_is_a_path_that_was_too_long() -> None:
    rows = b"".join(b"00007f000000%d000       4       4       4 rw--- /x/%d\n" % (place, place) for place in range(4))
    memory = parse_one(rows.replace(b"/x/1\n", b"/end/of a long path\n\n"))

    assert len(memory.mappings) == 4
    assert slugs(memory) == ["pmap-names-cut"]


@pytest.mark.parametrize(("blank_count", "broken"), [(2, ["pmap-names-cut"]), (3, [])])
def test_as_many_blank_lines_as_half_of_the_rows_are_line_ends_that_were_doubled(
    blank_count: int, broken: list[str]
) -> None:
    rows = [b"00007f000000%d000       4       4       4 rw--- /x/%d\n" % (place, place) for place in range(6)]
    memory = parse_one(b"\n".join(rows[: blank_count + 1]) + b"".join(rows[blank_count + 1 :]))

    assert len(memory.mappings) == 6
    assert slugs(memory) == broken


@pytest.mark.parametrize(("char_count", "cut"), [(224, []), (225, ["pmap-names-cut"])])
def test_a_name_of_900_bytes_may_be_cut_however_few_its_characters_are(char_count: int, cut: list[str]) -> None:
    name = "\N{GRINNING FACE}" * char_count
    memory = parse_one(PLAIN.replace(b"r-x-- program", f"r-x-- {name}".encode()))

    assert names(memory)[0] == name
    assert slugs(memory) == cut


def test_names_that_pmap_could_not_print_are_noted_once() -> None:
    memory = parse_one(DEVICE.replace(b"libz.so.1", b"??.so").replace(b"shm.bin", b"data]"))

    assert names(memory)[::2] == ["??.so", "data]"]
    (note,) = memory.notes
    assert note.slug == "pmap-names-cut"
    assert note.detail.startswith("2 names differ from those in /proc (the first: '??.so')")


def test_rows_picked_out_with_grep_do_not_reach_the_totals() -> None:
    kept = b"".join(line for line in DEVICE.splitlines(keepends=True) if b" rw" in line or line.startswith(b"mapped"))
    memory = parse_one(kept)

    assert len(memory.mappings) == 3
    (note,) = memory.notes
    assert note.slug == "pmap-footer-differs"
    assert note.detail == "mapped: rows 144 K, text 160 K: rows are missing: the text was filtered or cut"


def test_rows_alone_are_enough() -> None:
    memory = parse_one(DEVICE_ROWS)

    assert (memory.pid, memory.command, memory.footer) == (None, None, {})
    assert len(memory.mappings) == 4
    assert memory.notes == ()


def test_totals_with_shared_mappings_twice_are_explained() -> None:
    text = EXTENDED.replace(b"rw---   [ anon ]", b"rw-s- shared").replace(
        b"total kB              24", b"total kB              32"
    )
    memory = parse_one(text)

    assert sum(mapping.size_bytes for mapping in memory.mappings) == 24 * KIB
    assert memory.footer["Kbytes"] == 32 * KIB
    assert "shared mappings twice" in memory.notes[0].detail


def test_totals_of_a_range_are_explained() -> None:
    memory = parse_one(EXTENDED.replace(b"24      16       4\n", b"24    9016    8004\n"))

    (note,) = memory.notes
    assert note.detail == (
        "Rss: rows 16 K, text 9016 K; Dirty: rows 4 K, text 8004 K: "
        "with -A, RSS and Dirty include mappings below the range"
    )


def test_totals_that_hold_those_of_the_process_before_are_explained() -> None:
    doubled = b"                                      48  32  20   16           2 KB \n"
    second = WIDE.replace(WIDE.splitlines(keepends=True)[-1], doubled)
    first, kernel_thread, last = parse_pmap(WIDE + b"2:   [kthreadd]\n" + second, "text")

    assert first.notes == ()
    assert slugs(kernel_thread) == ["pmap-no-rows"]
    (note,) = last.notes
    assert note.slug == "pmap-footer-differs"
    assert "Size: rows 24 K, text 48 K" in note.detail
    assert "the totals include those of the process before" in note.detail


def test_totals_smaller_than_the_rows_are_of_something_else() -> None:
    memory = parse_one(PLAIN.replace(b"24K", b"20K"))

    assert memory.notes[0].detail == (
        "Kbytes: rows 24 K, text 20 K: the rows are of another time or process than the totals"
    )


def test_a_row_that_is_cut_becomes_a_note() -> None:
    memory = parse_one(DEVICE_ROWS[:-20])

    assert len(memory.mappings) == 3
    (note,) = memory.notes
    assert note.slug == "pmap-text-truncated"
    assert "00007ffd00000000     132 rw---" in note.detail


@pytest.mark.parametrize(
    "last",
    [
        b"0000000000604000      8K rw---",
        b"0000000000604000      8K rw--- ",
        b"0000000000604000      8K rw---   [ ano",
        b"0000000000604000      8K rw--- prog",
        b"0000000000604000      8",
    ],
)
def test_a_last_row_whose_name_may_be_cut_is_left_out(last: bytes) -> None:
    memory = parse_one(b"0000000000400000     16K r-x-- program\n" + last)

    assert names(memory) == ["program"]
    assert slugs(memory) == ["pmap-text-truncated"]


@pytest.mark.parametrize(
    "last", [b"0000000000604000      8K rw---   [ anon ]", b"0000000000604000      8K rw--- program"]
)
def test_a_last_row_that_only_lacks_its_line_end_stays(last: bytes) -> None:
    memory = parse_one(b"0000000000400000     16K r-x-- program\n" + last)

    assert len(memory.mappings) == 2
    assert memory.notes == ()


def test_a_total_that_may_be_cut_is_not_believed() -> None:
    whole = EXTENDED.removesuffix(b"\n")
    assert parse_one(whole).footer == {"Kbytes": 24 * KIB, "Rss": 16 * KIB, "Dirty": 4 * KIB}

    cut = parse_one(whole.replace(b"16       4\n-", b"16      44\n-")[:-9] + b" 1")
    assert cut.footer == {}
    assert slugs(cut) == ["pmap-text-truncated"]
    assert len(cut.mappings) == 2


def test_a_header_without_totals_means_that_rows_may_be_missing() -> None:
    memory = parse_one(DEVICE.removesuffix(DEVICE_TOTALS))

    assert len(memory.mappings) == 4
    assert slugs(memory) == ["pmap-text-truncated"]


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"", None),
        (b"\n\n", None),
        (b"pmap: no such process\n", None),
        (b"12", 0),
        (DEVICE[:100], 89),
        (b"0000000000400000     16K r-", 0),
        (b"123:   /bin/program\n" + DEVICE_HEADER, None),
        (b"123:   /bin/prog", 0),
        (b" total 24K\n", None),
    ],
)
def test_a_text_without_a_row_is_an_error_unless_it_is_whole(text: bytes, offset: int | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_pmap(text, "text")

    assert (caught.value.file, caught.value.offset) == ("text", offset)


def test_prompts_and_indentation_do_no_harm() -> None:
    indented = b"".join(b"    " + line for line in DEVICE.splitlines(keepends=True))
    memory = parse_one(b"$ pmap -d 123\n" + indented)

    assert memory.mappings == parse_one(DEVICE).mappings
    assert memory.footer == parse_one(DEVICE).footer
    (note,) = memory.notes
    assert (note.slug, note.detail) == (
        "pmap-unknown-lines",
        "1 lines have no known form; the first: '$ pmap -d 123'",
    )


@pytest.mark.parametrize("text", [DEVICE, PLAIN, EXTENDED, WIDE, WIDEST])
def test_line_ends_of_mail_clients_change_nothing(text: bytes) -> None:
    assert parse_pmap(text.replace(b"\n", b"\r\n"), "text") == parse_pmap(text, "text")


def test_control_characters_of_unknown_lines_are_shown_escaped() -> None:
    memory = parse_one(PLAIN + b"\x1b[31m!\xff\n")

    assert memory.notes[0].detail == r"1 lines have no known form; the first: '\x1b[31m!\udcff'"


def test_rows_of_another_output_are_unknown_lines() -> None:
    memory = parse_one(PLAIN.replace(b" total", b"0000000000800000       8       4       4 rw---   [ anon ]\n total"))

    assert len(memory.mappings) == 2
    assert slugs(memory) == ["pmap-unknown-lines"]


def test_sorted_rows_of_one_process_are_put_in_order() -> None:
    by_size = sorted(DEVICE.splitlines(keepends=True), key=lambda line: line[17:25], reverse=True)
    memory = parse_one(b"".join(by_size))

    assert memory.mappings == parse_one(DEVICE).mappings
    assert memory.footer == parse_one(DEVICE).footer
    assert memory.notes == ()


def test_sorted_rows_that_were_printed_twice_are_dropped_all_the_same() -> None:
    rows = (
        b"0000000000400000      16       0       0 r-x-- program\n"
        b"0000000000604000       8       0       0 rw---   [ anon ]\n"
        b"0000000000604000       8       4       4 rw---   [ anon ]\n"
        b"0000000000400000      16      12       0 r-x-- program\n"
    )
    memory = parse_one(rows)

    assert memory.mappings == parse_one(EXTENDED).mappings
    assert slugs(memory) == ["pmap-rows-doubled"]


def test_rows_that_overlap_out_of_order_are_of_several_processes() -> None:
    first, second = parse_pmap(DEVICE_ROWS + DEVICE_ROWS, "text")

    assert first.mappings == second.mappings
    assert len(first.mappings) == 4


def test_rows_that_overlap_in_order_are_kept_and_noted() -> None:
    memory = parse_one(PLAIN.replace(b" 16K", b"9016K"))

    assert [mapping.size_bytes for mapping in memory.mappings] == [9016 * KIB, 8 * KIB]
    assert slugs(memory) == ["pmap-rows-overlap", "pmap-footer-differs"]


@pytest.mark.parametrize(
    "row",
    [
        b"fffffffffffff000       8K rw--- beyond\n",
        b"10000000000000000      4K rw--- beyond\n",
        b"0000000000800000 99999999999999999999K rw--- beyond\n",
        b"0000000000800000       4 99999999999999999999       4 rw--- beyond\n",
        b"0000000000800000 " + b"1" * 5000 + b"K rw--- beyond\n",
        b"00800000 rw-p 00000000 00:00 0 99999999999999999999 0 beyond\n",
    ],
)
def test_a_row_beyond_the_address_space_is_an_unknown_line(row: bytes) -> None:
    memory = parse_one(PLAIN + row)

    assert len(memory.mappings) == 2
    assert slugs(memory) == ["pmap-unknown-lines"]


def test_the_last_page_of_the_address_space_is_a_row() -> None:
    memory = parse_one(b"ffffffffff600000       4K --x--   [ anon ]\nfffffffffffff000       4K --x--   [ anon ]\n")

    assert memory.mappings[1].end_addr == 1 << 64
    assert memory.notes == ()


@pytest.mark.parametrize(
    "line",
    [
        b" " * (1 << 20),
        b"1" * (1 << 20),
        b"-" * (1 << 20),
        b"a " * (1 << 19) + b"1",
        b"total kB " + b"1 " * (1 << 19) + b"x",
        b"0000000000800000 " + b"- " * (1 << 19) + b"rw--- x",
        b"0000000000800000 rw-p " + b"0 " * (1 << 19),
    ],
    ids=["spaces", "digits", "dashes", "words", "totals", "cells", "wide cells"],
)
def test_a_line_of_a_megabyte_costs_no_more_than_reading_it(line: bytes) -> None:
    memory = parse_one(PLAIN + line + b"\n")

    assert len(memory.mappings) == 2


def test_a_header_of_a_megabyte_costs_no_more_than_reading_it() -> None:
    keys = " ".join(f"Key{'x' * (place % 50)}{'y' * (place // 50 % 50)}" for place in range(1 << 15))
    header = f"Address Perm Offset Device Inode Size {keys} VmFlags Mapping\n"
    memory = parse_one(
        b"123:   /bin/program\n" + header.encode() + b"00604000 rw-p 0 0:0 0 8 4 rd wr x\n" + DEVICE_ROWS
    )

    assert len(memory.mappings) == 4


def test_a_column_told_twice_is_counted_once() -> None:
    memory = parse_one(WIDE.replace(b"Pss", b"Rss"))

    assert counters(memory.mappings[0]) == {"Size": 16 * KIB, "Rss": 6 * KIB, "Swap": 0, "THPeligible": 0}


def test_a_name_of_a_megabyte_is_a_name() -> None:
    memory = parse_one(PLAIN.replace(b"program\n0", b"x" * (1 << 20) + b"\n0"))

    assert len(memory.mappings[0].name) == 1 << 20
    assert slugs(memory) == ["pmap-names-cut"]


@pytest.mark.parametrize(
    "text",
    [
        DEVICE,
        PLAIN,
        EXTENDED,
        WIDE,
        WIDEST,
        DEVICE_ROWS,
        DEVICE_TOTALS,
        b"$ pmap 123\n" + PLAIN,
        b"2:   [kthreadd]\n",
        b"2: kthreadd\ntotal                  0K\n",
        PLAIN.replace(b"\n", b"\r\n"),
    ],
)
def test_pmap_is_known_by_its_first_lines(text: bytes) -> None:
    assert looks_like_pmap(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x7fELF\x02\x01\x01" + bytes(57),
        b'{"schema": "footprint/1"}\n',
        b"00400000-00404000 r-xp 00002000 fd:01 77                 /bin/program\nSize:                 16 kB\n",
        b"0000000000001139 0000000000000026 T main\n",
        b"desc: (none)\ncmd: ./a\ntime_unit: i\n#-----------\nsnapshot=0\n",
        b"heap profile:      1:     8 [     1:     8] @ heapprofile\n     1:     8 [     1:     8] @ 0x401000\n",
        b"12: def main() -> None:\n",
        b"Name:\tprogram\nPid:\t123\nVmSize:\t    2924 kB\n",
    ],
)
def test_other_texts_are_not_taken_for_pmap(text: bytes) -> None:
    assert not looks_like_pmap(text)
