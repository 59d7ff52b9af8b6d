"""A file that is truncated while it is mapped is one error, and the rest of the answer goes on.

Each case is a process of its own: without the guard, the kernel would end it with SIGBUS.
"""

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import os, sys, signal, zlib
from footprint.errors import InputError
from footprint.system.files import open_input
from footprint.system.files import guard_maps
path = sys.argv[1]
with open(path, "wb") as file:
    file.write(b"x" * (9 << 20))
"""


def run(code: str, path: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", START + code, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_reading_what_is_gone_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    code = """
with guard_maps():
    data = open_input(path)
    os.truncate(path, 100_000)
    try:
        zlib.crc32(data)
        print("no error")
    except InputError as error:
        print(error)
    # What is left, and other files, can still be read.
    print(bytes(data[:3]), bytes(data[-3:]))
    other = open_input(sys.executable)
    print(bytes(other[1:4]))
"""
    path = tmp_path / "file"
    said = f"{path}: it was truncated while footprint read it\nb'xxx' b'\\x00\\x00\\x00'\nb'ELF'\n"
    assert run(code, path) == (0, said)


def test_of_two_files_each_has_its_error(tmp_path: Path) -> None:
    code = """
with open(path + "2", "wb") as file:
    file.write(b"y" * (9 << 20))
with guard_maps():
    for one in (path, path + "2"):
        data = open_input(one)
        os.truncate(one, 0)
        try:
            data[5 << 20]
            print("no error")
        except InputError as error:
            print(os.path.basename(error.file))
"""
    assert run(code, tmp_path / "file") == (0, "file\nfile2\n")


@pytest.mark.parametrize("before", ["", "import faulthandler; faulthandler.enable()\n"], ids=["alone", "faulthandler"])
def test_a_fault_elsewhere_ends_the_process_as_before(tmp_path: Path, before: str) -> None:
    code = """
import mmap
with guard_maps():
    guarded = open_input(path)
    descriptor = os.open(path, os.O_RDONLY)
    other = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    os.truncate(path, 0)
    other[5 << 20]
"""
    ended, said = run(before + code, tmp_path / "file")
    assert (ended, "Bus error" in said) == (-7, bool(before))


def test_afterwards_the_handlers_are_what_they_were(tmp_path: Path) -> None:
    code = """
before = signal.getsignal(signal.SIGURG)
with guard_maps():
    open_input(path)
    assert signal.getsignal(signal.SIGURG) != before
print(signal.getsignal(signal.SIGURG) == before, flush=True)
os.kill(os.getpid(), signal.SIGBUS)
"""
    assert run(code, tmp_path / "file") == (-7, "True\n")
