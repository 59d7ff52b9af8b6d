"""Packages: their files are those that the package manager would unpack, and nothing that they claim is believed."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.cli import main
from footprint.errors import FootprintError, InputError, LimitError, UnsupportedError
from footprint.process.mappings import open_regular
from footprint.sources.image_tree import RootTree
from footprint.sources.package_files import cpio_members, is_package, package_tree
from footprint.sources.tar_members import ViewedBytes
from footprint.store.parquet import open_dataset
from footprint.system.decompression import zstd_module
from footprint.system.limits import Limits, limited
from footprint.system.roots import enter_root, leave_tree, link_target
from footprint.verbs.scan.inputs import Lister, utc
from tests.fleets import scan_in_one_process

ROOT = Path(__file__).resolve().parents[2]
ELF = b"\x7fELF"
Entry = tuple[str, bytes | str]


def zstd(content: bytes) -> bytes:
    packed = zstd_module().compress(content)
    assert isinstance(packed, bytes)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": partial(lzma.compress, preset=0),  # the usual one takes 94 MB
    ".bz2": bz2.compress,
    ".zst": zstd,
}


# --- writers ----------------------------------------------------------------------------------------------------------


def tar(*entries: Entry) -> bytes:
    """Write an archive: bytes are a file, `-> T` a symbolic link, `= T` a hard link, `/` a folder."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, what in entries:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if isinstance(what, bytes):
                member.size = len(what)
                archive.addfile(member, io.BytesIO(what))
                continue
            kind, _, member.linkname = what.partition(" ")
            member.type = {"->": tarfile.SYMTYPE, "=": tarfile.LNKTYPE, "/": tarfile.DIRTYPE}[kind]
            archive.addfile(member)
    return written.getvalue()


def ar(*members: tuple[str, bytes]) -> bytes:
    parts = [b"!<arch>\n"]
    for name, data in members:
        parts.append(
            f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return b"".join(parts)


CONTROL = b"Package: app\nVersion: 1:2.0-1\nArchitecture: amd64\nDescription: one\n more\n"


def deb(*entries: Entry, ending: str = ".xz", control: bytes = CONTROL) -> bytes:
    pack = PACKERS[ending]
    return ar(
        ("debian-binary", b"2.0\n"),
        (f"control.tar{ending}", pack(tar(("./control", control)))),
        (f"data.tar{ending}", pack(tar(*entries))),
    )


def cpio_entry(name: str, mode: int, data: bytes = b"", *, inode: int = 1, links: int = 1) -> bytes:
    fields = inode, mode, 0, 0, links, 1_700_000_000, len(data), 0, 0, 0, 0, len(name) + 1, 0
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


TRAILER = cpio_entry("TRAILER!!!", 0)


def cpio(*entries: Entry) -> bytes:
    """Write an archive: bytes are a file, `-> T` a symbolic link, `= N` a name of inode N, `/` a folder."""
    parts = []
    for number, (name, what) in enumerate(entries):
        if isinstance(what, bytes):
            parts.append(cpio_entry(name, stat.S_IFREG | 0o755, what, inode=number))
        elif what.startswith("="):
            parts.append(cpio_entry(name, stat.S_IFREG | 0o755, inode=int(what[2:]), links=2))
        elif what.startswith("->"):
            parts.append(cpio_entry(name, stat.S_IFLNK | 0o777, what[3:].encode(), inode=number))
        else:
            parts.append(cpio_entry(name, stat.S_IFDIR | 0o755, inode=number))
    return b"".join(parts) + TRAILER


def rpm_header(values: dict[int, str | Sequence[str] | tuple[str, Sequence[int]]]) -> bytes:
    """Write a header: a string, strings, or the letter of `struct` and integers, by tag."""
    entries, store = [], bytearray()
    for tag, value in values.items():
        if isinstance(value, str):
            kind, count, data = 6, 1, value.encode() + b"\0"
        elif isinstance(value, tuple):
            letter, integers = value
            kind, count = {"H": 3, "I": 4, "Q": 5}[letter], len(integers)
            data = struct.pack(f">{count}{letter}", *integers)
            store += bytes(-len(store) % struct.calcsize(letter))
        else:
            kind, count, data = 8, len(value), b"".join(text.encode() + b"\0" for text in value)
        entries.append(struct.pack(">4I", tag, kind, len(store), count))
        store += data
    return struct.pack(">4s4xII", b"\x8e\xad\xe8\x01", len(entries), len(store)) + b"".join(entries) + bytes(store)


NAMED: dict[int, Any] = {1000: "app", 1001: "2.0", 1002: "1.fc40", 1003: ("I", [1]), 1022: "x86_64", 1124: "cpio"}


def rpm(payload: bytes, **more: Any) -> bytes:  # noqa: ANN401 # values of tags
    signature = rpm_header({1000: "x"})
    values = NAMED | {int(tag[1:]): value for tag, value in more.items()}
    lead = b"\xed\xab\xee\xdb\x03\0".ljust(96, b"\0")
    return lead + signature + bytes(-len(signature) % 8) + rpm_header(values) + payload


METADATA = b"Metadata-Version: 2.1\r\nName: app\r\nVersion: 2.0\r\n\r\nVersion: 3.0"


def wheel(*members: tuple[str, bytes], metadata: bytes | None = METADATA) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
        if metadata is not None:
            archive.writestr("app-2.0.dist-info/METADATA", metadata)
    return written.getvalue()


WHEEL_NAME = "app-2.0-cp311-cp311-manylinux_2_17_x86_64.whl"


def saved(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(tree: RootTree) -> list[str]:
    return [path for path, _ in tree.tree.elf_files()]


def content(tree: RootTree, path: str) -> bytes:
    return bytes(tree.tree.data(path))


# --- what is in them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", PACKERS)
def test_a_deb_has_the_files_of_its_second_archive(tmp_path: Path, ending: str) -> None:
    entries: list[Entry] = [
        ("./", "/"),
        ("./usr/bin/app", ELF + bytes(5000)),
        ("./usr/bin/other", "= ./usr/bin/app"),
        ("./usr/lib/libapp.so", "-> libapp.so.1"),
        ("./usr/lib/libapp.so.1", ELF + b"1"),
        ("./usr/share/doc/app", b"text"),
    ]
    path = saved(tmp_path / "app.deb", deb(*entries, ending=ending))
    assert is_package(path)
    tree = package_tree(path)
    assert (tree.name, tree.package) == ("app_1:2.0-1_amd64", ("app", "1:2.0-1"))
    assert names(tree) == ["/usr/bin/app", "/usr/lib/libapp.so.1"]
    assert content(tree, "/usr/bin/other") == ELF + bytes(5000)
    assert content(tree, "/usr/lib/libapp.so") == ELF + b"1"
    assert tree.tree.notes == []


@pytest.mark.parametrize("pack", PACKERS.values())
def test_an_rpm_has_the_files_of_its_archive(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    files = cpio(
        ("./usr/bin", "/"),
        ("./usr/bin/first", "= 3"),
        ("./usr/bin/second", "= 3"),
    ).removesuffix(TRAILER)
    files += cpio_entry("./usr/bin/app", stat.S_IFREG | 0o755, ELF + b"app", inode=3, links=3)
    files += cpio(("./usr/lib64/libapp.so", "-> libapp.so.1"), ("./usr/lib64/libapp.so.1", ELF + b"12"))
    tree = package_tree(saved(tmp_path / "app.rpm", rpm(pack(files))))
    assert (tree.name, tree.package) == ("app_1:2.0-1.fc40_x86_64", ("app", "1:2.0-1.fc40"))
    assert names(tree) == ["/usr/bin/app", "/usr/lib64/libapp.so.1"]
    assert [content(tree, f"/usr/bin/{name}") for name in ("app", "first", "second")] == [ELF + b"app"] * 3
    assert content(tree, "/usr/lib64/libapp.so") == ELF + b"12"
    assert stat.S_IMODE(tree.tree.stat("/usr/bin/app").st_mode) == 0o755
    assert tree.tree.notes == []


def listed_rpm(pieces: Sequence[tuple[int, bytes]], **more: Any) -> bytes:  # noqa: ANN401 # values of tags
    """Write an `.rpm` of version 6, whose archive has the numbers of files in the header in place of their names."""
    files = [("app", 0o100755, 7, 6), ("other", 0o100755, 7, 6), ("lib", 0o120777, 8, 3), ("share", 0o040755, 9, 4096)]
    base, modes, inodes, sizes = zip(*files, strict=True)
    values: dict[str, Any] = {
        "t1117": base,
        "t1116": ("I", [0, 0, 1, 1]),
        "t1118": ["/usr/bin/", "/usr/"],
        "t1030": ("H", modes),
        "t1034": ("I", [1_700_000_000] * 4),
        "t1096": ("I", inodes),
        "t5008": ("Q", sizes),
    }
    values = {tag: list(value) if tag == "t1117" else value for tag, value in values.items()} | more
    payload = b"".join(b"07070X" + b"%08x" % number + b"\0\0" + data + bytes(-len(data) % 4) for number, data in pieces)
    return rpm(gzip.compress(payload + TRAILER), **values)


PIECES = (0, b""), (1, ELF + b"ab"), (2, b"bin"), (3, b"")


def test_an_rpm_of_version_6_names_its_files_in_its_header(tmp_path: Path) -> None:
    tree = package_tree(saved(tmp_path / "app.rpm", listed_rpm(PIECES)))
    assert content(tree, "/usr/bin/app") == content(tree, "/usr/bin/other") == ELF + b"ab"
    assert content(tree, "/usr/lib/app") == ELF + b"ab"
    assert names(tree) == ["/usr/bin/app"] or names(tree) == ["/usr/bin/other"]


@pytest.mark.parametrize(
    ("pieces", "more", "cause"),
    [
        (((4, b""),), {}, "an entry for file 4 of 4"),
        (PIECES, {"t1116": ("I", [0, 0, 1, 2])}, "names a folder that is not there"),
        (PIECES, {"t1030": ("H", [0o100755])}, "differ in length"),
        (PIECES, {"t5008": ("Q", [1, 1 << 62, 3, 0])}, "a file that is as large"),
        (PIECES, {"t5008": ("Q", [1, 1 << 40, 3, 0])}, "the archive is cut"),
        (PIECES, {"t1117": ("I", [1])}, "no strings in tag 1117"),
        (PIECES, {"t1116": "text"}, "no numbers in tag 1116"),
        (PIECES, {"t1030": ("Q", [1 << 63] * 4)}, "a mode of more than"),
        (
            ((0, b""),),
            {
                "t1117": ["a"] * 40_000,
                "t1116": ("I", [0] * 40_000),
                "t1118": ["/" + "x" * 4000],
                "t1030": ("H", [0o100755] * 40_000),
                "t1034": ("I", [0] * 40_000),
                "t1096": ("I", range(40_000)),
                "t5008": ("Q", [0] * 40_000),
            },
            "names of more than 128 MiB",
        ),
    ],
)
def test_a_list_of_files_that_contradicts_itself_is_refused(
    tmp_path: Path, pieces: Sequence[tuple[int, bytes]], more: dict[str, Any], cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        package_tree(saved(tmp_path / "app.rpm", listed_rpm(pieces, **more)))


def test_a_wheel_has_the_members_of_its_zip_file(tmp_path: Path) -> None:
    tree = package_tree(saved(tmp_path / WHEEL_NAME, wheel(("app/_core.so", ELF + b"x"), ("app/__init__.py", b"pass"))))
    assert (tree.name, tree.package) == ("app_2.0_manylinux_2_17_x86_64", ("app", "2.0"))
    assert names(tree) == ["/app/_core.so"]
    assert content(tree, "/app/_core.so") == ELF + b"x"


def test_the_files_of_a_package_are_opened_by_its_path_while_it_is_entered(tmp_path: Path) -> None:
    path = saved(tmp_path / "app.deb", deb(("./usr/bin/app", ELF), ("./lib", "-> usr/lib")))
    tree = package_tree(path)
    enter_root(tree.root, tree.tree)
    assert open_regular(f"{tree.root}/usr/bin/app", None) == ELF
    assert link_target(f"{tree.root}/lib") == "usr/lib"
    leave_tree(tree.root)
    assert isinstance(open_regular(f"{tree.root}/usr/bin/app", None), str)


# --- what is hostile --------------------------------------------------------------------------------------------------

SOUND = {
    "app.deb": deb(("./usr/bin/app", ELF + b"abc"), ending=""),
    "packed.deb": deb(("./usr/bin/app", ELF + b"abc"), ending=".gz"),
    "app.rpm": rpm(cpio(("./usr/bin/app", ELF), ("./usr/bin/link", "-> app"))),
    "packed.rpm": rpm(gzip.compress(cpio(("./usr/bin/app", ELF)))),
    "listed.rpm": listed_rpm(PIECES),
    WHEEL_NAME: wheel(("app/_core.so", ELF)),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_package_that_is_cut_is_an_error(tmp_path: Path, name: str) -> None:
    data = SOUND[name]
    package_tree(saved(tmp_path / name, data))
    # Zeros at the end say nothing: the last blocks of tar, and what fills the last entry of cpio.
    ends = len(data) - {"app.deb": 10240, "app.rpm": 5}.get(name, 1)
    for size in {*range(0, ends, max(1, ends // 100)), ends}:
        with pytest.raises(FootprintError):
            package_tree(saved(tmp_path / name, data[:size]))


@pytest.mark.parametrize("name", SOUND)
def test_a_damaged_byte_is_an_error_or_another_package(tmp_path: Path, name: str) -> None:
    data = SOUND[name]
    for place in range(0, len(data), max(1, len(data) // 150)):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        try:
            tree = package_tree(saved(tmp_path / name, bytes(damaged)))
        except FootprintError:
            continue
        for path in names(tree):
            assert len(content(tree, path)) < 1000


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"nothing", "neither a .deb"),
        (b"", "neither a .deb"),
        (ar(("debian-binary", b"2.0\n")), "without the parts of a .deb"),
        (ar(("lib.o", ELF)), "without the parts of a .deb"),
        (
            ar(("debian-binary", b"2.0\n"), ("control.tar", tar(("md5sums", b""))), ("data.tar", tar())),
            "without `control`",
        ),
        (deb(control=b"Package: app\nVersion: 1\n"), "no field Architecture"),
        (rpm(b"").replace(b"\x8e\xad\xe8\x01", b"\x8e\xad\xe8\x02"), "no header of an .rpm"),
        (rpm(b"")[:96] + struct.pack(">4s4xII", b"\x8e\xad\xe8\x01", 0xFFFFFFFF, 0), "claims 4294967295 entries"),
        (rpm(b"")[:96] + struct.pack(">4s4xII", b"\x8e\xad\xe8\x01", 0, 0xFFFFFFFF), "and 4294967295 bytes"),
        (rpm(cpio(), t1000=("I", [1])), "no strings in tag 1000"),
        (
            rpm(cpio_entry("a", stat.S_IFREG, b"x").replace(b"00000001", b"ffffffff", 99) + TRAILER),
            "the archive is cut",
        ),
        (rpm(b"070701" + b" " * 104 + TRAILER), "an entry of it is damaged"),
        (rpm(b"070701" + b"f" * 104 + TRAILER), "claims a name of 4294967295 bytes"),
        (rpm(cpio_entry("a", stat.S_IFLNK, b"x" * 5000) + TRAILER), "claims a target of 5000 bytes"),
        (rpm(cpio(("a", ELF)).removesuffix(TRAILER)), "the archive is cut"),
        (rpm(b"\x5d\0\0" * 9), "no entry of cpio"),
        (wheel(metadata=None), "it is no .whl"),
        (wheel(metadata=b"\n\nName: app"), "no field Name"),
    ],
)
def test_what_is_no_package_is_an_error_with_its_cause(tmp_path: Path, data: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        package_tree(saved(tmp_path / "app.deb", data))


@pytest.mark.parametrize(
    "data",
    [rpm(b"", t1124="drpm"), rpm(b"\x5d\0\0", t1125="lzma"), ar(("debian-binary", b"2.0"), ("data.tar.lzma", b""))],
)
def test_what_is_packed_in_an_old_way_is_named(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnsupportedError, match="does not read"):
        package_tree(saved(tmp_path / "app.deb", data))


def test_an_entry_without_a_name_needs_the_header_of_an_rpm() -> None:
    with pytest.raises(InputError, match=r"only an \.rpm has"):
        list(cpio_members(ViewedBytes(b"07070X00000000" + TRAILER), "a.cpio"))


ESCAPES: list[Entry] = [
    ("../../etc/passwd", ELF),
    ("a/../../b", ELF),
    ("usr/lib", "-> /../../../../etc"),
    ("usr/lib/x", ELF),
    ("circle", "-> circle"),
    ("circle/x", ELF),
]


@pytest.mark.parametrize("data", [deb(*ESCAPES), rpm(cpio(*ESCAPES))])
def test_no_path_and_no_link_leads_out_of_a_package(tmp_path: Path, data: bytes) -> None:
    tree = package_tree(saved(tmp_path / "app.deb", data))
    # `usr/lib` leads to `/etc` of the package.
    assert names(tree) == ["/etc/x"]
    assert [note.subject for note in tree.tree.notes] == ["../../etc/passwd", "a/../../b", "circle/x"]


@pytest.mark.parametrize(
    "data",
    [
        deb(("./zeros", bytes(8 << 20)), ending=".zst"),
        rpm(zstd(cpio(("zeros", bytes(8 << 20))))),
        wheel(("zeros", bytes(8 << 20))),
    ],
)
def test_a_package_that_is_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("footprint.sources.image_tree._ANY_RATIO_BYTES", 1 << 20)
    monkeypatch.setattr("footprint.sources.image_tree._MOST_RATIO", 2)
    with pytest.raises(InputError, match=r"once decompressed|claim"):
        package_tree(saved(tmp_path / "app.deb", data))


@pytest.mark.parametrize(
    "data",
    [
        deb(*((f"{number}", "/") for number in range(3000))),
        rpm(gzip.compress(cpio(*((f"{number}", "/") for number in range(3000))))),
        listed_rpm(PIECES, t1117=["a"] * 3000),
        wheel(*((f"{number}/", b"") for number in range(3000))),
    ],
)
def test_the_members_of_a_package_come_from_the_budget(tmp_path: Path, data: bytes) -> None:
    path = saved(tmp_path / "app.deb", data)
    with limited(Limits(entry_count=2000)), pytest.raises(FootprintError, match="entries"):
        package_tree(path)


def test_the_budget_is_asked_before_the_directory_of_a_wheel_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = wheel(*((f"{number}/", b"") for number in range(2000)))
    # Its end record claims one member, which zipfile does not believe.
    data = data[:-14] + struct.pack("<HH", 1, 1) + data[-10:]
    assert len(zipfile.ZipFile(io.BytesIO(data)).infolist()) == 2001
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with limited(Limits(entry_count=4000)), pytest.raises(LimitError, match=r"spent 4,002 of 4,000 entries"):
        package_tree(saved(tmp_path / WHEEL_NAME, data))


def test_two_members_of_one_name_and_a_name_that_is_hidden_are_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        data = wheel(("a.so", ELF), ("a.so", ELF))
    with pytest.raises(InputError, match="two members"):
        package_tree(saved(tmp_path / WHEEL_NAME, data))


# --- as a source of a scan --------------------------------------------------------------------------------------------

PROGRAM = (ROOT / "sample_binaries" / "unused_library" / "shadow").read_bytes()
LIBRARY = (ROOT / "sample_binaries" / "unused_library" / "libcrypt_like.so").read_bytes()


def rows(dataset: Path, query: str) -> list[tuple[Any, ...]]:
    with open_dataset(str(dataset)) as connection:
        return connection.execute(query).fetchall()


def test_a_folder_of_packages_is_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan_in_one_process(monkeypatch)
    saved(tmp_path / "in" / "a.deb", deb(("./usr/bin/shadow", PROGRAM)))
    saved(tmp_path / "in" / "pool" / "b.rpm", rpm(cpio(("./usr/lib64/libcrypt_like.so", LIBRARY))))
    saved(tmp_path / "in" / WHEEL_NAME, wheel(("app/libcrypt_like.so", LIBRARY)))
    saved(tmp_path / "in" / "damaged.deb", b"!<arch>\n and nothing")
    saved(tmp_path / "in" / "disk.squashfs", b"hsqs" + bytes(2000))
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.program_count, done.unreadable_count) == (1, 0)
    assert sorted(note.slug for note in done.notes) == ["input-unreadable", "input-unreadable", "package-alone"]
    assert rows(tmp_path / "fleet", "SELECT DISTINCT host, kind FROM hosts ORDER BY host") == [
        ("app_1:2.0-1.fc40_x86_64", "package"),
        ("app_1:2.0-1_amd64", "package"),
        ("app_2.0_manylinux_2_17_x86_64", "package"),
    ]
    packages = "SELECT path, package, package_version FROM files WHERE is_program"
    assert rows(tmp_path / "fleet", packages) == [("/usr/bin/shadow", "app", "1:2.0-1")]
    again = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (again.input_count, again.known_count) == (0, done.input_count)


def test_each_package_of_a_folder_has_a_budget_of_its_own(tmp_path: Path) -> None:
    for number in range(4):
        control = CONTROL.replace(b"app", b"app%d" % number)
        saved(tmp_path / "in" / f"{number}.deb", deb(("./usr/bin/shadow", PROGRAM), ending=".gz", control=control))
    with limited(Limits(entry_count=9000)):
        done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.input_count, done.unreadable_count) == (4, 0)
    assert {note.slug for note in done.notes} == {"package-alone"}


@pytest.mark.parametrize(
    ("name", "data", "remedy"),
    [
        ("disk.img", b"hsqs" + bytes(2000), "unsquashfs"),
        ("disk", bytes(1080) + b"\x53\xef" + bytes(1000), "mount"),
        ("a.deb", b"!<arch>\n and nothing", "damaged"),
        ("a.whl", b"PK", "cut"),
    ],
)
def test_a_source_that_is_not_read_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, remedy: str
) -> None:
    assert main(["scan", str(saved(tmp_path / name, data)), "-o", str(tmp_path / "fleet")]) == 3
    printed = "".join(capsys.readouterr())
    assert remedy in printed
    assert "Nothing could be read: the note" in printed


def test_many_packages_hold_no_file_open(tmp_path: Path) -> None:
    for number in range(40):
        control = CONTROL.replace(b"app", b"app%d" % number)
        saved(tmp_path / "in" / f"{number}.deb", deb(("./usr/lib/lib.so", LIBRARY), ending=".gz", control=control))
    lister = Lister(utc(0), host=None, root=None, is_anonymous=False)
    counts = [len(os.listdir("/proc/self/fd")) for _ in lister.list([str(tmp_path / "in")])]
    assert len(counts) == 40
    assert max(counts) < counts[0] + 10
