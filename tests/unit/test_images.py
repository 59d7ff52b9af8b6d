"""Container images: their files are those that a container of the image sees."""

import gzip
import io
import json
import os
import stat
import tarfile
import tracemalloc
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from footprint.errors import AccessError, FootprintError, InputError, Note
from footprint.process.mappings import open_regular
from footprint.sources.image_tree import RootTree
from footprint.sources.images import container_images, is_image
from footprint.sources.tar_members import ViewedBytes, members_of
from footprint.system.decompression import zstd_module
from footprint.system.limits import Limits, limited
from footprint.system.roots import folder_names, link_target, stat_path

ELF = b"\x7fELF"
Entry = tuple[str, bytes | str]


def layer(*entries: Entry, format_: int = tarfile.PAX_FORMAT) -> bytes:
    """Write a layer: bytes are a file, `-> T` a symbolic link, `= T` a hard link, `/` a folder, `|` a pipe."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=format_) as archive:
        for name, what in entries:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if isinstance(what, bytes):
                member.size = len(what)
                archive.addfile(member, io.BytesIO(what))
                continue
            kind, _, member.linkname = what.partition(" ")
            member.type = {"->": tarfile.SYMTYPE, "=": tarfile.LNKTYPE, "/": tarfile.DIRTYPE, "|": tarfile.FIFOTYPE}[
                kind
            ]
            archive.addfile(member)
    return written.getvalue()


def layout(folder: Path, *layers: bytes, name: str = "app:1") -> Path:
    """Write an OCI layout with one image."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes) -> dict[str, object]:
        digest = sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": "any", "digest": f"sha256:{digest}", "size": len(data)}

    config = blob(json.dumps({"os": "linux", "architecture": "arm64"}).encode())
    manifest = blob(json.dumps({"config": config, "layers": [blob(one) for one in layers]}).encode())
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    (folder / "index.json").write_text(json.dumps({"manifests": [manifest]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def docker_save(path: Path, *layers: bytes) -> Path:
    """Write an archive as `docker save` did before version 25."""
    entries: list[Entry] = [(f"{number}/layer.tar", one) for number, one in enumerate(layers)]
    manifest = [{"Config": "c.json", "RepoTags": ["app:1"], "Layers": [name for name, _ in entries]}]
    entries += [
        ("c.json", b'{"os": "linux", "architecture": "amd64"}'),
        ("manifest.json", json.dumps(manifest).encode()),
    ]
    path.write_bytes(layer(*entries))
    return path


def only_image(path: Path) -> RootTree:
    notes: list[Note] = []
    (found,) = container_images(path, notes)
    assert notes == list(found.tree.notes)
    return found


def names(image: RootTree) -> list[str]:
    return [path for path, _ in image.tree.elf_files()]


def data(image: RootTree, path: str) -> bytes:
    found = open_regular(image.root + path, None)
    assert not isinstance(found, str), found
    return bytes(found)


def zstd(content: bytes) -> bytes:
    packed = zstd_module().compress(content)
    assert isinstance(packed, bytes)
    return packed


# --- what a container sees --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstd])
def test_a_layer_is_read_whether_it_is_compressed_or_not(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    content = layer(
        ("usr/bin/app", ELF + b"x" * 100_000), ("usr/bin/script", b"#!/bin/sh"), ("etc/ld.so.conf", b"/opt")
    )
    image = only_image(layout(tmp_path / "image", packed(content)))
    assert (image.name, image.platform) == ("app:1", "linux/arm64")
    assert names(image) == ["/usr/bin/app"]
    assert data(image, "/usr/bin/app") == ELF + b"x" * 100_000
    assert data(image, "/etc/ld.so.conf") == b"/opt"


def test_an_archive_of_docker_save_has_the_same_files(tmp_path: Path) -> None:
    archive = docker_save(tmp_path / "app.tar", layer(("a", ELF)), gzip.compress(layer(("b", ELF))))
    packed = tmp_path / "app.tar.gz"
    packed.write_bytes(gzip.compress(archive.read_bytes()))
    for path in (archive, packed):
        assert is_image(path)
        assert names(only_image(path)) == ["/a", "/b"]


def test_a_whiteout_deletes_a_name_of_the_layers_below(tmp_path: Path) -> None:
    lower = layer(("bin/a", ELF), ("bin/b", ELF), ("opt/x/y/c", ELF), ("opt/z", ELF))
    upper = layer(("bin/.wh.a", b""), ("opt/.wh.x", b""))
    assert names(only_image(layout(tmp_path / "image", lower, upper))) == ["/bin/b", "/opt/z"]


def test_an_opaque_folder_hides_what_lies_below_and_nothing_of_its_own_layer(tmp_path: Path) -> None:
    lower = layer(("lib/old.so", ELF), ("lib/sub/old.so", ELF))
    for order in (1, -1):
        entries: Sequence[Entry] = [("lib/.wh..wh..opq", b""), ("lib/new.so", ELF), ("lib/sub/new.so", ELF)][::order]
        image = only_image(layout(tmp_path / f"image{order}", lower, layer(*entries)))
        assert names(image) == ["/lib/new.so", "/lib/sub/new.so"]


def test_a_name_that_is_deleted_and_made_again_in_one_layer_is_there(tmp_path: Path) -> None:
    lower = layer(("opt/app/old", ELF), ("opt/app/kept", ELF))
    upper = layer(("opt/.wh.app", b""), ("opt/app", "/"), ("opt/app/new", ELF))
    assert names(only_image(layout(tmp_path / "image", lower, upper))) == ["/opt/app/new"]


def test_an_opaque_folder_in_the_place_of_a_link_leaves_the_target_of_the_link_alone(tmp_path: Path) -> None:
    lower = layer(("usr/lib/a.so", ELF), ("lib", "-> usr/lib"))
    upper = layer(("lib", "/"), ("lib/.wh..wh..opq", b""), ("lib/b.so", ELF))
    assert names(only_image(layout(tmp_path / "image", lower, upper))) == ["/lib/b.so", "/usr/lib/a.so"]


def test_hard_links_are_one_file_also_across_layers(tmp_path: Path) -> None:
    lower = layer(("bin/perl", ELF + b"5"), ("bin/perl5", "= bin/perl"))
    image = only_image(layout(tmp_path / "image", lower, layer(("bin/camel", "= bin/perl5"), ("bin/.wh.perl", b""))))
    assert names(image) == ["/bin/camel"]
    assert data(image, "/bin/perl5") == ELF + b"5"
    assert stat_path(f"{image.root}/bin/camel").st_ino == stat_path(f"{image.root}/bin/perl5").st_ino


def test_links_are_followed_inside_the_image(tmp_path: Path) -> None:
    image = only_image(
        layout(
            tmp_path / "image",
            layer(("usr/lib/libc.so.6", ELF), ("lib", "-> usr/lib"), ("up", "-> ../../../../lib"), ("abs", "-> /lib")),
            layer(("lib/libm.so.6", ELF), ("loop", "-> loop")),
        )
    )
    # The entry of the upper layer goes where the link of the lower one leads.
    assert names(image) == ["/usr/lib/libc.so.6", "/usr/lib/libm.so.6"]
    for path in ("/lib", "/up", "/abs"):
        assert data(image, f"{path}/libm.so.6") == ELF
        assert sorted(folder_names(image.root + path)) == ["libc.so.6", "libm.so.6"]
    assert link_target(f"{image.root}/up") == "../../../../lib"
    assert link_target(f"{image.root}/lib/libc.so.6") is None
    with pytest.raises(OSError, match="symbolic links"):
        stat_path(f"{image.root}/loop")


def test_a_file_in_the_place_of_a_folder_hides_it(tmp_path: Path) -> None:
    image = only_image(layout(tmp_path / "image", layer(("a/b", ELF), ("c", ELF)), layer(("a", ELF), ("c/d", ELF))))
    # A file below a file is left out: no file system can have it.
    assert names(image) == ["/a", "/c"]
    assert [(note.slug, note.subject) for note in image.tree.notes] == [("image-entry-left-out", "c/d")]


def test_several_images_share_a_layer_and_are_told_apart_by_name(tmp_path: Path) -> None:
    base = layer(("lib/libc.so", ELF))
    folder = layout(tmp_path / "image", base, layer(("bin/a", ELF)), name="a:1")
    other = layout(tmp_path / "other", base, layer(("bin/b", ELF)), name="b:1")
    for blob in (other / "blobs" / "sha256").iterdir():
        blob.replace(folder / "blobs" / "sha256" / blob.name)
    manifests = [json.loads((one / "index.json").read_text())["manifests"][0] for one in (folder, other)]
    (folder / "index.json").write_text(json.dumps({"manifests": manifests}))
    first, second = container_images(folder, [])
    assert (names(first), names(second)) == (["/bin/a", "/lib/libc.so"], ["/bin/b", "/lib/libc.so"])
    facts = [stat_path(f"{one.root}/lib/libc.so") for one in (first, second)]
    assert facts[0].st_dev == facts[1].st_dev


def test_long_names_of_gnu_tar_and_of_pax_are_read(tmp_path: Path) -> None:
    long = "/".join(["x" * 90] * 5)
    for format_ in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        content = layer((f"{long}/app", ELF), (f"{long}/ü", f"-> {long}"), format_=format_)
        image = only_image(layout(tmp_path / str(format_), content))
        assert names(image) == [f"/{long}/app"]
        assert link_target(f"{image.root}/{long}/ü") == long


# --- hostile images ---------------------------------------------------------------------------------------------------


def test_paths_that_lead_out_of_the_image_are_left_out_with_a_note(tmp_path: Path) -> None:
    content = layer(
        ("../../etc/passwd", ELF), ("a/../../b", ELF), ("/bin/app", ELF), ("x/.wh...", b""), ("in", "= ../out")
    )
    image = only_image(layout(tmp_path / "image", content))
    assert names(image) == ["/bin/app"]
    assert [note.subject for note in image.tree.notes] == ["../../etc/passwd", "a/../../b", "in"]


def test_a_link_to_a_file_of_this_machine_leads_to_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(ELF)
    image = only_image(layout(tmp_path / "image", layer(("s", f"-> {secret}"), ("p", "-> /proc/self/exe"))))
    for name in ("s", "p"):
        assert isinstance(open_regular(f"{image.root}/{name}", None), str)


def test_devices_and_pipes_are_no_regular_files(tmp_path: Path) -> None:
    image = only_image(layout(tmp_path / "image", layer(("dev/null", ELF)), layer(("dev/null", "|"))))
    assert not stat.S_ISREG(stat_path(f"{image.root}/dev/null").st_mode)
    assert open_regular(f"{image.root}/dev/null", None) == "it is not a regular file"


def test_a_sparse_file_is_left_out_with_a_note(tmp_path: Path) -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("sparse")
        member.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(member)
        member = tarfile.TarInfo("app")
        member.size = 4
        archive.addfile(member, io.BytesIO(ELF))
    image = only_image(layout(tmp_path / "image", written.getvalue()))
    assert names(image) == ["/app"]
    assert "sparse" in image.tree.notes[0].detail


def test_a_damaged_layer_is_a_note_and_the_other_images_are_read(tmp_path: Path) -> None:
    good = layer(("app", ELF * 1000))
    header = bytearray(good)
    header[0] ^= 1
    huge = bytearray(good)
    huge[124:136] = b"77777777777\0"
    huge[148:156] = b"%06o\0 " % (sum(huge[:148]) + 8 * 32 + sum(huge[156:512]))
    damaged = {
        "checksum is wrong": bytes(header),
        "longer than it": bytes(huge),
        "it is cut": zstd(good)[:-8],
        "end-of-stream": gzip.compress(good)[:-12],
        "the archive is cut": good[:700],
        "CRC": gzip.compress(good)[:-8] + bytes(8),
    }
    for number, (cause, content) in enumerate(damaged.items()):
        notes: list[Note] = []
        assert list(container_images(layout(tmp_path / str(number), content), notes)) == []
        assert [(note.slug, note.subject) for note in notes] == [("image-unreadable", "app:1")]
        assert cause in notes[0].detail, cause


def test_a_layer_that_shrinks_as_no_layer_does_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.sources.image_tree._ANY_RATIO_BYTES", 1 << 20)
    notes: list[Note] = []
    assert list(container_images(layout(tmp_path / "image", zstd(layer(("zeros", bytes(8 << 20))))), notes)) == []
    assert "no layer shrinks so far" in notes[0].detail


def test_names_of_a_layer_cannot_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = layer(("a" * 100_000, b""), ("b", f"-> {'c' * 100_000}"))
    first, second = members_of(ViewedBytes(archive), "layer")
    # One byte more than a path may have: no file has this name.
    assert (len(first.name), len(second.link)) == (4097, 4097)
    monkeypatch.setattr("footprint.sources.tar_members.MOST_NAMES_BYTES", 8 << 10)
    notes: list[Note] = []
    assert not list(container_images(docker_save(tmp_path / "image.tar", archive), notes))
    assert notes[0].detail.endswith("its names have more than 0 MiB")


def test_records_for_all_members_that_mean_nothing_here_are_not_kept() -> None:
    def records(number: int) -> bytes:
        keys = {f"SCHILY.xattr.{number}.{key}": "v" * 1000 for key in range(100)}
        return tarfile.TarInfo.create_pax_global_header(keys)

    archive = b"".join(records(number) for number in range(100)) + layer(("file", b"x"))
    tracemalloc.start()
    (found,) = members_of(ViewedBytes(archive), "layer")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.name == "file"
    assert len(archive) > 10_000_000 > 10 * peak_bytes


def test_folders_that_no_layer_names_come_from_the_budget(tmp_path: Path) -> None:
    deep = layer(*[(f"{number}/{'a/' * 1000}x", b"") for number in range(6)])
    notes: list[Note] = []
    with limited(Limits(entry_count=5000)):
        assert not list(container_images(docker_save(tmp_path / "image.tar", deep), notes))
    assert [note.slug for note in notes] == ["image-unreadable"]
    assert "raise it with --limits entries=" in notes[0].detail


def test_what_is_no_image_is_one_error(tmp_path: Path) -> None:
    texts = {
        "index.json": [
            '{"manifests": 1}',
            "[",
            '{"manifests": [{"digest": "sha256:../../etc/passwd"}]}',
            "[" * 100_000,
        ],
        "manifest.json": ["{}", '[{"Layers": [7]}]'],
    }
    for name, contents in texts.items():
        for number, text in enumerate(contents):
            folder = tmp_path / f"{name}{number}"
            folder.mkdir()
            (folder / name).write_text(text)
            notes: list[Note] = []
            try:
                assert list(container_images(folder, notes)) == []
                assert notes
            except InputError:
                pass
    for content in (b"", b"not a tar", layer(("a", b"b"))):
        path = tmp_path / "none.tar"
        path.write_bytes(content)
        with pytest.raises(FootprintError):
            list(container_images(path, []))
    with pytest.raises(AccessError):
        list(container_images(tmp_path / "missing.tar", []))


def test_reading_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    image = only_image(layout(tmp_path / "image", gzip.compress(layer(("app", ELF)))))
    assert data(image, "/app") == ELF
    assert os.listdir(place) == []
