"""The memory of a process, by files in view: which pages are looked for, and how far."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint.process.pages import ProcessMemory
from footprint.process.status import auxiliary_vector

PAGE = 4096
PRESENT = (1 << 63).to_bytes(8, "little")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "mem").write_bytes(b"")
    with open(tmp_path / "pagemap", "wb") as file:
        for page in (1 << 20, 1 << 26):
            file.seek(page * 8)
            file.write(PRESENT)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_a_page_behind_a_hole_is_found(folder: int) -> None:
    with ProcessMemory(folder, PAGE) as memory:
        assert memory.skip(0, 1 << 40) == PAGE << 20


def test_a_hole_of_many_gib_is_not_looked_through_to_its_end(folder: int) -> None:
    # 16 TiB that a program maps and does not touch would take 20 seconds.
    with ProcessMemory(folder, PAGE) as memory:
        start = PAGE * ((1 << 20) + 1)
        assert memory.skip(start, 1 << 44) == 1 << 44
        # What was looked through counts for all holes together.
        assert memory.skip(0, 1 << 40) == 1 << 40


@pytest.mark.parametrize("word", ["Q", "I"])
@pytest.mark.parametrize("entries", [{9: 0x8048000}, {9: 0x8048000, 23: 1}])
def test_an_auxiliary_vector_has_the_words_of_its_program(word: str, entries: dict[int, int]) -> None:
    words = [number for entry in (entries | {0: 0}).items() for number in entry]
    assert auxiliary_vector(struct.pack(f"{len(words)}{word}", *words)) == entries | {0: 0}
