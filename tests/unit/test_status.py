"""What `/proc/PID/status` says of threads, page tables, and what kind of task it is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.process.status import Status, parse_status

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
KIB = 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            b"Name:\tnode\nState:\tS (sleeping)\nVmSize:\t  728492 kB\nVmPTE:\t     392 kB\nThreads:\t7\n",
            Status("node", "S", 7, 392 * KIB, has_memory=True),
            id="a status has name state threads page tables and memory",
        ),
        pytest.param(
            b"Name:\tkthreadd\nState:\tS (sleeping)\nThreads:\t1\n",
            Status("kthreadd", "S", 1, None, has_memory=False),
            id="a kernel thread has no memory and no page tables",
        ),
        pytest.param(b"", Status("", "", None, None, has_memory=False), id="an empty text tells nothing"),
    ],
)
def test_a_text_of_status_is_read(text: bytes, expected: Status) -> None:
    assert parse_status(text) == expected


@pytest.mark.parametrize(
    ("text", "expected_bytes"),
    [
        pytest.param(
            b"VmSize:\t  728492 kB\nVmPTE:\t     392 kB\nVmPMD:\t      16 kB\n",
            408 * KIB,
            id="linux 4 0 to 4 14 count the second level of page tables apart",
        ),
        pytest.param(b"VmPMD:\t      16 kB\n", None, id="without page tables the second level alone tells nothing"),
        *(
            pytest.param(b"VmPTE:\t" + value + b"\n", None, id=f"page tables without a size are unknown: {value!r}")
            for value in (b"", b"many kB", b"-4 kB", b"4 MB", b"9" * 20 + b" kB")
        ),
    ],
)
def test_page_tables_are_the_sum_of_both_levels(text: bytes, expected_bytes: int | None) -> None:
    assert parse_status(text).page_table_bytes == expected_bytes


@pytest.mark.parametrize("state", ["R (running)", "D (disk sleep)", "T (stopped)", "t (tracing stop)", "Z (zombie)"])
def test_the_state_is_its_letter(state: str) -> None:
    assert parse_status(f"State:\t{state}\n".encode()).state == state[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"with space", "with space"),
        (b"a:b", "a:b"),
        (b"odd\\nname", "odd\\nname"),
        (b"\xff\xfe", "\udcff\udcfe"),
        ("naïve".encode(), "naïve"),
        (b"cr\rhere", "cr\rhere"),
        (b"\xc2\x85", "\x85"),
    ],
)
def test_a_name_is_kept_whatever_bytes_it_has(name: bytes, expected: str) -> None:
    status = parse_status(b"Name:\t" + name + b"\nVmSize:\t       4 kB\nThreads:\t1\n")
    assert (status.name, status.thread_count, status.has_memory) == (expected, 1, True)


def test_the_first_of_two_rows_with_one_key_counts() -> None:
    assert parse_status(b"Threads:\t7\nThreads:\t9\n").thread_count == 7


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"many", id="a word"),
        pytest.param(b"-1", id="a negative number"),
        pytest.param(b"9" * 10, id="more threads than there can be"),
        pytest.param("٣".encode(), id="another script's digit"),
    ],
)
def test_a_thread_count_that_is_no_count_is_unknown(value: bytes) -> None:
    assert parse_status(b"Threads:\t" + value + b"\n").thread_count is None


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (
            "android-libmeminfo-status",
            Status(
                "system_server",
                "S",
                218,
                3740 * KIB,
                has_memory=True,
                descriptor_slot_count=1024,
                parent_pid=1071,
                user_id=1000,
            ),
        ),
        (
            "node",
            Status("node", "S", 7, 392 * KIB, has_memory=True, descriptor_slot_count=256, parent_pid=1, user_id=0),
        ),
        ("odd", Status("odd", "S", 4, 100 * KIB, has_memory=True, descriptor_slot_count=256, parent_pid=1, user_id=0)),
        (
            "python3",
            Status("python3", "S", 1, 92 * KIB, has_memory=True, descriptor_slot_count=256, parent_pid=1, user_id=0),
        ),
        (
            "sleep",
            Status("sleep", "S", 1, 44 * KIB, has_memory=True, descriptor_slot_count=256, parent_pid=15061, user_id=0),
        ),
        (
            "static64",
            Status(
                "bit64static", "S", 2, 36 * KIB, has_memory=True, descriptor_slot_count=256, parent_pid=1, user_id=0
            ),
        ),
        (
            "kthread",
            Status("kthreadd", "S", 1, None, has_memory=False, descriptor_slot_count=64, parent_pid=0, user_id=0),
        ),
        ("zombie", Status("odd", "Z", 1, None, has_memory=False, descriptor_slot_count=0, parent_pid=11837, user_id=0)),
    ],
)
def test_the_texts_of_real_processes_are_read(process: str, expected: Status) -> None:
    assert parse_status((CORPUS / f"status-{process}.txt").read_bytes()) == expected


@given(
    st.binary(max_size=200) | st.binary(max_size=40).map(lambda value: b"Threads:\t" + value + b"\nVmPTE:\t" + value)
)
def test_any_bytes_are_read_without_an_error(text: bytes) -> None:
    status = parse_status(text)
    assert status.thread_count is None or status.thread_count >= 0
    assert status.page_table_bytes is None or status.page_table_bytes >= 0
