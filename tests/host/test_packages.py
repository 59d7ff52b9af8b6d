"""Packages that the tools of Debian build: their files are those that were put in."""

import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.sources.package_files import package_tree

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")

CONTROL = "Package: app\nVersion: 1:2.0-1\nArchitecture: amd64\nMaintainer: a <a@example.com>\nDescription: one\n"


@pytest.mark.parametrize("packer", ["none", "gzip", "xz", "zstd"])
def test_a_deb_of_dpkg_has_the_files_that_were_put_in(tmp_path: Path, packer: str) -> None:
    binaries, package = tmp_path / "root" / "usr" / "bin", tmp_path / "app.deb"
    binaries.mkdir(parents=True)
    program = Path("/bin/ls").read_bytes()
    (binaries / "app").write_bytes(program)
    (binaries / "app").chmod(0o755)
    (binaries / "other").hardlink_to(binaries / "app")
    (binaries / "link").symlink_to("app")
    (tmp_path / "root" / "DEBIAN").mkdir()
    (tmp_path / "root" / "DEBIAN" / "control").write_text(CONTROL)
    built = subprocess.run(
        ["dpkg-deb", f"-Z{packer}", "--root-owner-group", "-b", tmp_path / "root", package],
        capture_output=True,
        check=False,
    )
    if b"unknown compression" in built.stderr:
        pytest.skip(f"this dpkg-deb has no {packer}")
    assert built.returncode == 0, built.stderr
    tree = package_tree(package)
    assert (tree.name, tree.package) == ("app_1:2.0-1_amd64", ("app", "1:2.0-1"))
    assert [path for path, _ in tree.tree.elf_files()] == ["/usr/bin/app"]
    for name in ("app", "other", "link"):
        assert bytes(tree.tree.data(f"/usr/bin/{name}")) == program
    done = footprint.scan(package, output=tmp_path / "fleet", worker_count=1)
    assert (done.program_count, done.file_count, done.unreadable_count) == (1, 1, 0)
