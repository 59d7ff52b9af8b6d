"""Processes of one address space: what is in it counts once."""

import os
from types import SimpleNamespace

import pytest

from footprint.attribution.address_spaces import count_address_spaces_once
from footprint.process import snapshot
from tests.groupmembers import heap, member


def test_the_second_process_of_an_address_space_has_only_what_the_kernel_spends_on_it() -> None:
    first, second, other = (
        member(pid, heap(60), pss_anon=60)[0]._replace(address_space_pid=space)
        for pid, space in ((1, 1), (2, 1), (3, 3))
    )
    (one, two, three), notes = count_address_spaces_once([first, second, other])
    assert (one, three, notes) == (first, other, [])
    assert two.memory.mappings == ()
    assert two.status is not None
    assert (two.status.page_table_bytes, two.status.thread_count) == (0, 1)
    assert [note.slug for note in two.notes] == ["address-space-shared"]


def test_of_two_processes_that_show_the_same_memory_and_were_not_compared_a_note_tells() -> None:
    first, second, other = (member(pid, heap(size), pss_anon=size)[0] for pid, size in ((1, 60), (2, 60), (3, 64)))
    found, notes = count_address_spaces_once([first, second, other])
    assert found == [first, second, other]
    assert [(note.slug, note.subject) for note in notes] == [("address-spaces-not-compared", "pid 2")]


def test_processes_of_one_place_are_found_by_the_order_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = {1: 7, 2: 3, 3: 7, 4: 9, 5: 3}
    monkeypatch.setattr(snapshot, "address_space_order", lambda one, other: spaces[one] - spaces[other])
    assert snapshot.first_of_address_spaces(dict.fromkeys(spaces, "place")) == {1: 1, 2: 2, 3: 1, 4: 4, 5: 2}
    assert snapshot.first_of_address_spaces({1: "here", 3: "there"}) == {1: 1, 3: 3}


def test_a_kernel_that_compares_nothing_is_an_error_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="none"))
    with pytest.raises(OSError, match="does not compare"):
        snapshot.address_space_order(1, 2)
    assert snapshot.first_of_address_spaces({1: "here", 3: "here"}) == {1: 1, 3: None}
