"""The files of a saved process: found below a folder or on this machine, and believed only as far as they are known."""

import os
from collections.abc import Hashable
from pathlib import Path

import pytest

import footprint
from footprint.elf.image import Image
from footprint.errors import Note, UsageError
from footprint.process.mappings import FileKey, MappedFile, Mapping, OpenFiles
from footprint.process.snapshot import FileFacts, Snapshot, read_process, read_texts
from footprint.sources.process_files import build_id_of, check_root, images_of, images_of_many, open_saved_file
from footprint.system.roots import path_inside
from tests.elfwriter import RW, SHT_NOBITS, ElfFile, Section, write

SECTIONS = [Section(".data", flags=RW, data=bytes(64)), Section(".bss", SHT_NOBITS, RW, size=4096)]
ELF = write(ElfFile(sections=SECTIONS, build_id=b"\x01\x23"))
OTHER_ELF = write(ElfFile(sections=SECTIONS, build_id=b"\x45\x67"))
PLAIN_ELF = write(ElfFile(sections=SECTIONS))
KNOWN = FileFacts(len(ELF), "0123")
NAMELESS = FileFacts(len(PLAIN_ELF), None)


def mapping_of(name: str, inode: int = 77) -> Mapping:
    return Mapping(0x400000, 0x401000, "r-xp", 0, "fe:00", inode, name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with the files of another machine: one with the build-id 0123, at /usr/lib/libdemo.so."""
    folder = tmp_path / "root"
    (folder / "usr/lib").mkdir(parents=True)
    (folder / "usr/lib/libdemo.so").write_bytes(ELF)
    return folder


def result(name: str, facts: FileFacts | None, root: Path | None, inode: int = 77) -> tuple[bytes, str]:
    """Return the bytes that were found, and how."""
    file = open_saved_file(mapping_of(name, inode), facts, None if root is None else str(root))
    assert isinstance(file, MappedFile), file
    return bytes(file.data), file.found_by


def missing(name: str, facts: FileFacts | None, root: Path | None, inode: int = 77) -> Note:
    note = open_saved_file(mapping_of(name, inode), facts, None if root is None else str(root))
    assert isinstance(note, Note), note
    assert note.subject == name
    return note


# --- below a folder ---------------------------------------------------------------------------------------------------


def test_a_file_below_the_folder_is_known_by_its_build_id(root: Path) -> None:
    assert result("/usr/lib/libdemo.so", KNOWN, root) == (ELF, "build-id")


def test_a_file_with_another_build_id_is_not_used_and_both_are_named(root: Path) -> None:
    (root / "usr/lib/libdemo.so").write_bytes(OTHER_ELF)
    note = missing("/usr/lib/libdemo.so", KNOWN, root)
    assert note.slug == "build-id-differs"
    place = f"{root}/usr/lib/libdemo.so"
    assert note.detail == (
        f"{place} has the build-id 4567, the process mapped one with 0123: it is another file, and is not used"
    )


@pytest.mark.parametrize("data", [PLAIN_ELF, ELF[:100], b"#!/bin/sh\n", b""])
def test_a_file_without_build_id_is_another_than_one_with_it(root: Path, data: bytes) -> None:
    (root / "usr/lib/libdemo.so").write_bytes(data)
    note = missing("/usr/lib/libdemo.so", KNOWN, root)
    assert note.slug == "build-id-differs"
    assert "has no build-id, the process mapped one with 0123" in note.detail


def test_a_file_that_the_capture_knows_no_build_id_of_is_taken_by_its_path(root: Path) -> None:
    (root / "usr/lib/libdemo.so").write_bytes(PLAIN_ELF)
    for facts in (NAMELESS, FileFacts(None, None), None):
        assert result("/usr/lib/libdemo.so", facts, root) == (PLAIN_ELF, "path below root")


def test_a_file_of_another_size_is_another_file(root: Path) -> None:
    note = missing("/usr/lib/libdemo.so", FileFacts(len(ELF) + 1, None), root)
    assert note.slug == "file-not-found"
    assert f"has {len(ELF)} bytes, the process mapped one with {len(ELF) + 1}" in note.detail


def test_a_file_that_is_not_there_is_said_not_to_be(root: Path) -> None:
    for facts in (KNOWN, NAMELESS, None):
        note = missing("/usr/lib/nowhere.so", facts, root)
        assert (note.slug, "No such file or directory" in note.detail) == ("file-not-found", True)


def test_a_file_that_is_on_this_machine_only_is_found_there_by_its_build_id(root: Path, tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(ELF)
    assert result(f"{tmp_path}/here.so", KNOWN, root) == (ELF, "build-id")


def test_with_a_folder_an_inode_of_this_machine_says_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(PLAIN_ELF)
    inode = os.stat(tmp_path / "here.so").st_ino
    assert missing(f"{tmp_path}/here.so", NAMELESS, root, inode).slug == "file-not-found"


def test_a_file_that_was_deleted_is_found_where_its_build_id_is(root: Path) -> None:
    assert result("/usr/lib/libdemo.so (deleted)", KNOWN, root) == (ELF, "build-id")
    assert missing("/usr/lib/libdemo.so (deleted)", NAMELESS, root).slug == "file-not-found"


def test_what_is_no_file_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for name in ("/pipe", "/usr", "/usr/lib/libdemo.so/more", "/nul\0byte", "/" + "x" * 5000):
        assert missing(name, KNOWN, root).slug == "file-not-found"


# --- on this machine --------------------------------------------------------------------------------------------------


def test_on_this_machine_a_file_with_the_build_id_is_the_file_whatever_its_inode(tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(ELF)
    assert result(f"{tmp_path}/here.so", KNOWN, None, inode=1) == (ELF, "build-id")


def test_on_this_machine_a_file_with_the_inode_and_another_build_id_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(OTHER_ELF)
    inode = os.stat(tmp_path / "here.so").st_ino
    assert missing(f"{tmp_path}/here.so", KNOWN, None, inode).slug == "build-id-differs"


def test_without_build_id_a_file_of_this_machine_is_known_by_its_inode(tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(PLAIN_ELF)
    inode = os.stat(tmp_path / "here.so").st_ino
    for facts in (NAMELESS, None):
        assert result(f"{tmp_path}/here.so", facts, None, inode) == (PLAIN_ELF, "inode")
        note = missing(f"{tmp_path}/here.so", facts, None, inode + 1)
        assert "another file has its path now" in note.detail


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/libdemo.so", "/usr/lib/libdemo.so"),
        ("usr/lib/libdemo.so", "/usr/lib/libdemo.so"),
        ("//usr/./lib//libdemo.so", "/usr/lib/libdemo.so"),
        ("/usr/lib/../lib/libdemo.so", "/usr/lib/libdemo.so"),
        ("/../../../../usr/lib", "/usr/lib"),
        ("/usr/../../etc/passwd", "/etc/passwd"),
        ("/lib/libdemo.so", "/usr/lib/libdemo.so"),
        ("/lib64/libdemo.so", "/usr/lib/libdemo.so"),
        ("/up/etc/passwd", "/etc/passwd"),
        ("/host/passwd", "/etc/passwd"),
        ("/chain/libdemo.so", "/usr/lib/libdemo.so"),
        ("/lib/../outside", "/usr/outside"),
        ("", ""),
        ("/", ""),
        ("/loop", None),
        ("/loop/libdemo.so", None),
    ],
)
def test_no_path_leads_out_of_the_folder(root: Path, path: str, expected: str | None) -> None:
    (root / "lib").symlink_to("usr/lib")
    (root / "lib64").symlink_to("/usr/lib")
    (root / "up").symlink_to("../../../../../../..")
    (root / "host").symlink_to("/etc")
    (root / "chain").symlink_to("/lib64/../lib")
    (root / "loop").symlink_to("loop")
    assert path_inside(str(root), path) == ("" if expected is None else f"{root}{expected}")


def test_a_link_that_leads_out_leads_to_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.so").write_bytes(ELF)
    (root / "absolute.so").symlink_to(tmp_path / "secret.so")
    (root / "relative.so").symlink_to("../secret.so")
    for name in ("/absolute.so", "/relative.so", "/../secret.so"):
        assert "No such file or directory" in missing(name, KNOWN, root).detail


def test_a_folder_that_is_none_is_wrong_use(root: Path) -> None:
    (text,) = read_texts(b"00400000-00401000 r-xp 00000000 fe:00 77 /usr/lib/libdemo.so\n", "maps.txt")
    check_root(None, text)
    check_root(str(root), text)
    for no_folder in (f"{root}/usr/lib/libdemo.so", f"{root}/nowhere", ""):
        with pytest.raises(UsageError, match="is not a folder"):
            check_root(no_folder, text)


def test_a_live_process_needs_no_folder(root: Path) -> None:
    with pytest.raises(UsageError, match="the files of a live process are its own"):
        check_root(str(root), read_process(os.getpid()))


def test_the_files_of_like_processes_are_found_once_and_those_of_others_each_for_itself() -> None:
    process, sets = read_process(os.getpid()), dict[Hashable, dict[FileKey, Image]]()

    def images(snapshot: Snapshot) -> dict[FileKey, Image]:
        return images_of_many(snapshot, sets, None, OpenFiles(), {})[0]

    assert images(process).keys() == images_of(process)[0].keys() > set()
    assert images(process) is images(process)
    ended = process._replace(pid=1 << 30)
    gone = [m._replace(name=f"{m.name} (deleted)", inode=m.inode + 1) for m in process.memory.mappings if m.inode]
    replaced = process._replace(memory=process.memory._replace(mappings=tuple(gone)))
    assert images(ended) == {}
    assert images(replaced).keys() == images_of(replaced)[0].keys() != images(process).keys()
    assert len(sets) == 1


# --- in an answer -----------------------------------------------------------------------------------------------------


def test_files_of_a_saved_text_below_a_folder_are_used_and_said_to_be_unverified(root: Path) -> None:
    maps = b"".join(
        b"%08x-%08x r-xp 00000000 fe:00 %d /usr/lib/lib%s.so\n" % (at << 20, (at << 20) + 4096, at, name)
        for at, name in ((16, b"demo"), (17, b"second"), (18, b"text"))
    )
    (root / "usr/lib/libsecond.so").write_bytes(PLAIN_ELF)
    (root / "usr/lib/libtext.so").write_text("INPUT(-ldemo)", encoding="ascii")
    (text,) = read_texts(maps, "maps.txt")
    images, notes = images_of(text, str(root))
    assert set(images) == {
        FileKey("fe:00", at, f"/usr/lib/lib{name}.so") for at, name in ((16, "demo"), (17, "second"))
    }
    (note,) = notes
    assert (note.slug, note.subject) == ("file-unverified", "/usr/lib/libdemo.so")
    assert "and 1 more below the given folder" in note.detail


def test_without_a_folder_the_files_of_a_saved_text_are_looked_for_here(tmp_path: Path) -> None:
    (tmp_path / "here.so").write_bytes(ELF)
    inode = os.stat(tmp_path / "here.so").st_ino
    (tmp_path / "maps.txt").write_text(
        f"00400000-00401000 r-xp 00000000 fe:00 {inode} {tmp_path}/here.so\n", encoding="utf-8"
    )
    found_notes = footprint.maps(str(tmp_path / "maps.txt")).notes
    assert not {"file-not-found", "file-unverified", "owners-by-adjacency"} & {note.slug for note in found_notes}


@pytest.mark.parametrize(
    ("data", "expected"), [(ELF, "0123"), (PLAIN_ELF, None), (ELF[:40], None), (b"", None), (b"text", None)]
)
def test_the_build_id_of_any_file_is_one_or_none(data: bytes, expected: str | None) -> None:
    assert build_id_of(data, "libdemo.so") == expected
