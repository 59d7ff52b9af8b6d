"""Descriptors of a process that the kernel does not show."""

import os

import pytest

from footprint.process.descriptions import read_open_files


def test_of_a_process_whose_descriptors_are_refused_only_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def refused(path: str) -> str:
        requests.append(path)
        raise PermissionError(path)

    monkeypatch.setattr(os, "listdir", lambda _: ["0", "1", "2", "5", "3", "4"])
    monkeypatch.setattr(os, "readlink", refused)
    assert read_open_files(1) == ()
    assert requests == ["/proc/1/fd/3"]


def test_a_descriptor_that_was_closed_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    closed_number, open_number = os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_RDONLY)
    readlink = os.readlink
    try:

        def read_link(path: str) -> str:
            if path.endswith(f"/{closed_number}"):
                raise FileNotFoundError(path)
            return readlink(path)

        monkeypatch.setattr(os, "readlink", read_link)
        descriptors = {file.descriptor for file in read_open_files(os.getpid())}
    finally:
        os.close(closed_number)
        os.close(open_number)
    assert closed_number not in descriptors
    assert open_number in descriptors
