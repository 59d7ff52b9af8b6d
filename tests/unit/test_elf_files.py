"""The files of an answer: each is opened once, and what was read of one serves all processes that have it."""

import subprocess
import sys
from pathlib import Path

import pytest

from footprint.attribution.owned_range import LoadedObject
from footprint.elf.image import read_image
from footprint.process.mappings import FileKey, OpenFiles
from footprint.sources.files import ElfFiles
from tests.elfwriter import RW, At, ElfFile, Section, Sym, write

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_binaries" / "condor_shadow" / "base"

# Opening is an audit event of Python, but below the root of a process. A hook stays for good, so the answer is made in
# a process of its own.
COUNT = """
import collections, os, sys
counts = collections.Counter()
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith("/"):
        with_root = arguments[0].removeprefix(f"/proc/{sys.argv[1]}/root")
        counts[os.path.realpath(with_root)] += 1
import footprint
from footprint.system import roots
def open_in_root(folder, path, flags, open_there=roots._open_in_root):
    counts[os.path.realpath(path)] += not flags & os.O_PATH
    return open_there(folder, path, flags)
roots._open_in_root = open_in_root
sys.addaudithook(hook)
target = sys.argv[1]
footprint.audit(int(target) if target.isdigit() else target, has_findings=True)
for path, count in list(counts.items()):
    with open(path, "rb") if os.path.isfile(path) else open(os.devnull, "rb") as file:
        if file.read(4) == b"\\x7fELF":
            print(count, path)
"""


def opened(target: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, target], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True
    )
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return {path: int(count) for count, path in rows}


def test_each_file_and_debug_file_of_a_process_is_opened_once() -> None:
    process = subprocess.Popen(["sleep", "1000"])
    try:
        counts = opened(str(process.pid))
    finally:
        process.kill()
        process.wait()
    assert len(counts) >= 3  # the program, the loader and the C library
    assert set(counts.values()) == {1}


def test_each_file_of_a_program_is_opened_once() -> None:
    counts = opened(str(SAMPLE))
    # The first bytes say that it is a program.
    assert counts.pop(str(SAMPLE)) == 2
    assert set(counts.values()) <= {1}


def test_a_file_is_the_same_object_by_each_of_its_paths_until_it_changes(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"one")
    link.symlink_to(file)
    open_file = OpenFiles()
    first = open_file(str(file))
    assert open_file(str(link)) is first
    file.write_bytes(b"three")
    assert bytes(open_file(str(file))) == b"three"  # type: ignore[arg-type] # no error text
    assert open_file(str(tmp_path / "nothing")) == "No such file or directory"


@pytest.mark.parametrize("has_build_id", [True, False])
def test_contents_serve_processes_of_several_hosts_by_build_id(*, has_build_id: bool) -> None:
    data = SAMPLE.read_bytes()
    if not has_build_id:
        data = data.replace(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", b"\x04\0\0\0\x14\0\0\0\x04\0\0\0GNU\0")
    files = ElfFiles(None)
    images = [read_image(bytes(bytearray(data)), name) for name in ("/usr/bin/base", "/opt/base")]
    keys = [FileKey(device, inode, "/usr/bin/base") for device, inode in (("08:01", 7), ("fe:00", 99))]
    first, second = (files.contents_of(LoadedObject(key, image, 0)) for key, image in zip(keys, images, strict=True))
    assert first is not None
    assert (first is second) is has_build_id


def test_files_of_one_build_id_and_size_that_name_their_variables_otherwise_are_told_apart() -> None:
    # A build-id is made of what is loaded: a new name of the same length leaves it as it is.
    def file(name: str) -> ElfFile:
        table = Section(".data", flags=RW, data=bytes(8))
        return ElfFile(sections=[table], symbols=[Sym(name, At(".data"), 8)], build_id=b"\1" * 20)

    files = ElfFiles()
    names = []
    for number, name in enumerate(["first", "other", "first"]):
        image = read_image(write(file(name)), "/lib/liba.so")
        found = files.contents_of(LoadedObject(FileKey("fe:01", number, "/lib/liba.so"), image, 0))
        assert found is not None
        names.append([variable.name for part in found.sections for variable in part.variables])
    assert names == [["first"], ["other"], ["first"]]
