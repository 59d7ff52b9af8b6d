"""Container images of Debian's packages: a scan of each is that of the same tree unpacked."""

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

from footprint import scan
from footprint.store.parquet import open_dataset
from footprint.system.decompression import zstd_module

if shutil.which("dpkg") is None:
    pytest.skip("dpkg is not installed", allow_module_level=True)

MOMENT = datetime(2026, 11, 23, 12)  # noqa: DTZ001 # UTC, as in the dataset
BASE = ("libc6", "libc-bin", "libselinux1", "libpcre2-8-0", "libacl1", "libattr1", "libgmp10", "libtinfo6", "libcrypt1")
# What a process of a program, or a file, costs; not when and where it was read.
COMPARED = {
    "programs": "path, file, object_count, startup_min_bytes, startup_max_bytes, start_bytes, unused_bytes, "
    "doubtful_bytes, is_complete",
    "libraries": "program, path, name, build_id, startup_min_bytes, startup_max_bytes, retained_bytes, needed_by",
    "findings": "program, rule, kind, subject, object_path, saving_bytes, confidence, message, remedy, leaves",
    "files": "file, name, is_program, machine, size_bytes, text_bytes, data_bytes, relro_bytes, bss_bytes, tls_bytes",
    "variables": "file, section, symbol, name, size_bytes, variable_count, is_writable",
}


def _paths(package: str) -> list[str]:
    """Return the files and links of an installed package that matter to its programs."""
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = ("/usr/lib/", "/usr/bin/", "/usr/sbin/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/ld.so.conf")
    return [path for path in listed if path.startswith(wanted) and os.path.lexists(path) and not os.path.isdir(path)]


class Tree:
    """A tree of files on the disk, and the layers of an image which has the same files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layers: list[bytes] = []
        for merged in ("bin", "sbin", "lib", "lib64"):
            (folder / "usr" / merged).mkdir(parents=True, exist_ok=True)
            (folder / merged).symlink_to(f"usr/{merged}")

    def add(self, paths: list[str], *, deleted: tuple[str, ...] = (), opaque: str = "", linked: str = "") -> None:
        """Put a layer of files of this machine on top, which deletes and links some of those below."""
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
            if not self.layers:
                for merged in ("bin", "sbin", "lib", "lib64"):
                    archive.add(self.folder / merged, merged)
            for path in deleted:
                archive.addfile(tarfile.TarInfo(f"{os.path.dirname(path)}/.wh.{os.path.basename(path)}"))
                (self.folder / path).unlink()
            if opaque:
                archive.addfile(tarfile.TarInfo(f"{opaque}/.wh..wh..opq"))
                shutil.rmtree(self.folder / opaque)
            for path in paths:
                if not os.path.lexists(self.folder / path.lstrip("/")):
                    archive.add(path, path.lstrip("/"), recursive=False)
            if linked:
                member = archive.gettarinfo(f"/{linked}", f"{linked}-linked")
                member.type, member.linkname, member.size = tarfile.LNKTYPE, linked, 0
                archive.addfile(member)
        self.layers.append(written.getvalue())
        with tarfile.open(fileobj=io.BytesIO(self.layers[-1])) as archive:
            members = [
                one for one in archive if "/.wh." not in one.name and not os.path.lexists(self.folder / one.name)
            ]
            if hasattr(tarfile, "tar_filter"):
                archive.extractall(self.folder, members, filter="tar")
            else:  # Python 3.11.2 of Debian 12
                archive.extractall(self.folder, members)  # noqa: S202 # layers of Debian's own packages

    def save(self, path: Path) -> Path:
        """Write the image as `docker save` does, each layer compressed in another way."""
        ways = (bytes, gzip.compress, zstd_module().compress)
        names = [f"{number}/layer.tar" for number in range(len(self.layers))]
        contents = {
            name: ways[place % 3](one) for place, (name, one) in enumerate(zip(names, self.layers, strict=True))
        }
        manifest = [{"Config": "c.json", "RepoTags": ["debian:1"], "Layers": names}]
        contents |= {"c.json": b"{}", "manifest.json": json.dumps(manifest).encode()}
        with tarfile.open(path, "w") as archive:
            for name, content in contents.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return path


def _tables(source: Path, output: Path) -> dict[str, list[tuple[object, ...]]]:
    scan(source, output=output, host="debian", worker_count=1, moment=MOMENT)
    with open_dataset(str(output)) as dataset:
        return {
            name: dataset.execute(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall()  # of the test
            for name, columns in COMPARED.items()
        }


@pytest.mark.parametrize(
    ("package", "deleted", "linked"),
    [
        ("bash", "usr/bin/getconf", "usr/bin/bash"),
        ("perl-base", "usr/bin/locale", "usr/bin/perl"),
        ("grep", "usr/bin/iconv", "usr/bin/grep"),
    ],
)
def test_a_scan_of_an_image_is_that_of_its_tree_unpacked(
    tmp_path: Path, package: str, deleted: str, linked: str
) -> None:
    tree = Tree(tmp_path / "debian")
    tree.add([path for base in BASE for path in _paths(base)])
    tree.add(["/etc/ld.so.conf"], deleted=(deleted,), opaque="usr/lib/x86_64-linux-gnu/gconv")
    found = [path if path.startswith("/usr") else f"/usr{path}" for path in _paths(package)]
    tree.add(found, linked=linked)
    unpacked = _tables(tree.folder, tmp_path / "of-the-tree")
    of_image = _tables(tree.save(tmp_path / "debian.tar"), tmp_path / "of-the-image")
    for name, rows in unpacked.items():
        assert of_image[name] == rows, name
    programs = {row[0] for row in unpacked["programs"]}
    assert f"/{deleted}" not in programs
    assert f"/{linked}" in programs
    assert f"/{linked}-linked" not in programs  # the same file by another name
