"""What the kernel counts of a start: how its figures are read; that they are right is for host tests."""

import os

import pytest

from footprint.errors import AccessError
from footprint.process.start_counters import StartCounters, read_counters, start_stage


@pytest.mark.parametrize(("count", "shown"), [(1_234_567, 1_234_567), (0, None)])
def test_a_counter_without_a_place_in_the_processor_has_no_figure(count: int, shown: int | None) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, count.to_bytes(8, "little"))
        assert read_counters(os.getpid(), "this", reader).instructions == shown
    finally:
        os.close(reader)
        os.close(writer)


def test_what_cannot_be_read_names_the_program() -> None:
    with pytest.raises(AccessError, match="program: what its start costs cannot be read"):
        read_counters(1 << 22, "program")


def test_instructions_have_a_range_where_each_start_has_them() -> None:
    starts = [StartCounters(10 * count, 3, 0, count) for count in (7, 5, 9)]
    assert start_stage(starts).instructions == (5, 7, 9)
    assert start_stage([*starts, StartCounters(50, 3, 0)]).instructions is None
    assert start_stage(starts).processor_us == (50, 70, 90)
