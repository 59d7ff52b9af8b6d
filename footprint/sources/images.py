"""Container images: OCI layouts, and the archives of `docker save`.

Both are files that name one another: an index names manifests, a manifest names a configuration and layers. Nothing
of what they name is believed before it was found, and each layer is read once, whichever images share it.

Sources: OCI Image Format Specification 1.1, "Image Layout", "Image Index", "Image Manifest"; Docker Image
Specification v1.2, "Combined Image JSON + Filesystem Changeset Format".
"""

import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, cause_of
from footprint.json.stream import parsed
from footprint.sources.image_tree import Layer, RootTree, read_layer, tree_of_layers
from footprint.sources.tar_members import MemberKind, ViewedBytes, members_of
from footprint.system.decompression import unpacked_pieces
from footprint.system.files import StrPath, is_compressed, map_descriptor, open_input
from footprint.system.roots import enter_root
from footprint.text.units import format_bytes

_MOST_JSON_BYTES: Final = 4 << 20
_MOST_IMAGES: Final = 1000
_MOST_LAYERS: Final = 1000
_MOST_DEPTH: Final = 4
_MOST_ARCHIVE_BYTES: Final = 64 << 30
_DIGEST: Final = re.compile(r"(sha256|sha512):([0-9a-f]{64,128})")
_REFERENCES: Final = "io.containerd.image.name", "org.opencontainers.image.ref.name"
_ATTESTATION: Final = "vnd.docker.reference.type"


class _Named(NamedTuple):
    """What a manifest says of an image."""

    name: str
    identity: str
    platform: str
    layers: tuple[tuple[str, int | None], ...]


_Opener = Callable[[str], memoryview | None]


def is_image(path: StrPath) -> bool:
    """Return whether a path is an OCI layout, or an archive that may hold an image."""
    path = os.fspath(path)
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "oci-layout")) and os.path.isfile(os.path.join(path, "index.json"))
    return path.endswith((".tar", ".tar.gz", ".tgz", ".tar.zst"))


def container_images(path: StrPath, notes: list[Note]) -> Iterator[RootTree]:
    """Read the images of an OCI layout or an archive, one after the other, and enter each as a root.

    Args:
        path: The folder of the layout, or the archive of a layout or of `docker save`.
        notes: Where an image that cannot be read is noted, and what is left out of others.

    Raises:
        AccessError: Where the source cannot be opened.
        InputError: Where it is damaged, or holds no image.
        LimitError: Where it makes more work than the limits allow.
    """
    path = os.fspath(path)
    open_member = _folder_opener(path) if os.path.isdir(path) else _archive_opener(path)
    named = list(_named_images(open_member, path, notes))
    if not named:
        raise InputError(path, "it holds no image")
    layers_by_member: dict[str, Layer] = {}
    whole = os.path.realpath(path)
    for named_image in named:
        try:
            layers = [_layer(open_member, member, size, layers_by_member, path) for member, size in named_image.layers]
            tree = tree_of_layers(layers)
        except (InputError, AccessError) as error:
            notes.append(Note("image-unreadable", named_image.name, str(error)))
            continue
        notes += tree.notes
        root = f"{whole}:{named_image.name}".replace("/..", "/ ..") if len(named) > 1 else whole
        enter_root(root, tree)
        yield RootTree(named_image.name, named_image.identity, named_image.platform, root, tree)


def _layer(open_member: _Opener, member: str, size_bytes: int | None, layers: dict[str, Layer], path: str) -> Layer:
    if member not in layers:
        data = open_member(member)
        if data is None:
            raise InputError(path, f"its layer {member} is missing")
        if size_bytes is not None and len(data) != size_bytes:
            raise InputError(path, f"its layer {member} has {len(data)} bytes, and should have {size_bytes}")
        # Negative: no device has such a number.
        layers[member] = read_layer(data, -1 - len(layers), f"{path}: {member}")
    return layers[member]


# --- the files of a layout --------------------------------------------------------------------------------------------


def _folder_opener(path: str) -> _Opener:
    whole = os.path.realpath(path)
    enter_root(whole)

    def open_member(name: str) -> memoryview | None:
        try:
            return memoryview(open_input(f"{whole}/{name}"))
        except AccessError:
            return None

    return open_member


def _archive_opener(path: str) -> _Opener:
    """Return what opens the members of an archive; a later member of a name replaces an earlier one, as in tar."""
    data = memoryview(open_input(path))
    if is_compressed(data):
        data = _decompressed(data, path)
    places: dict[str, tuple[int, int] | str] = {}
    for member in members_of(ViewedBytes(data), path):
        name = posixpath.normpath(member.name)
        if member.type in MemberKind.FILE:
            places[name] = member.offset, member.size_bytes
        elif member.type in MemberKind.HARD_LINK | MemberKind.SYMBOLIC_LINK:
            # Old versions of Docker write a layer that comes twice as a link.
            above = posixpath.dirname(name) if member.type in MemberKind.SYMBOLIC_LINK else ""
            places[name] = posixpath.normpath(posixpath.join(above, member.link))

    def open_member(name: str) -> memoryview | None:
        place = places.get(posixpath.normpath(name))
        if isinstance(place, str):
            place = places.get(place)
        return None if place is None or isinstance(place, str) else data[place[0] : place[0] + place[1]]

    return open_member


def _decompressed(data: memoryview, path: str) -> memoryview:
    """Decompress an archive into a temporary file without a name: the manifest can come after the layers."""
    size_bytes = 0
    most_bytes = min(_MOST_ARCHIVE_BYTES, max(1 << 30, 200 * len(data)))
    try:
        with tempfile.TemporaryFile(prefix="footprint-") as spool:
            for piece in unpacked_pieces(data, path):
                size_bytes += spool.write(piece)
                if size_bytes > most_bytes:
                    raise InputError(path, f"more than {format_bytes(most_bytes)} once decompressed")
            spool.flush()
            return memoryview(map_descriptor(spool.fileno(), path))
    except OSError as error:
        raise AccessError(tempfile.gettempdir(), cause_of(error)) from error


# --- manifests --------------------------------------------------------------------------------------------------------


def _named_images(open_member: _Opener, path: str, notes: list[Note]) -> Iterator[_Named]:
    """Return what the manifests say, those of `docker save` first: they have the tags."""
    saved = open_member("manifest.json")
    if saved is not None:
        for entry in _list(_json(saved, f"{path}: manifest.json"), path)[:_MOST_IMAGES]:
            layers = [str(layer) for layer in _list(_member(entry, "Layers"), path)[:_MOST_LAYERS]]
            configuration = str(_member(entry, "Config") or "")
            tags = _member(entry, "RepoTags")
            name = str(tags[0]) if isinstance(tags, list) and tags else configuration.rpartition("/")[2]
            identity = configuration.rpartition("/")[2].removesuffix(".json")
            platform = _platform(open_member(configuration), path)
            yield _Named(name, identity, platform, tuple((layer, None) for layer in layers))
        return
    index = open_member("index.json")
    if index is None:
        raise InputError(path, "it has neither an index.json nor a manifest.json: it is no container image")
    for count, named in enumerate(_of_index(_json(index, f"{path}: index.json"), open_member, path, notes, 0)):
        if count == _MOST_IMAGES:
            raise InputError(path, f"it names more than {_MOST_IMAGES} images")
        yield named


def _of_index(
    index: object, open_member: _Opener, path: str, notes: list[Note], depth: int, above: str = ""
) -> Iterator[_Named]:
    """Follow an index to the manifests of images; what they name that is not there becomes a note."""
    for descriptor in _list(_member(index, "manifests"), path)[:_MOST_IMAGES]:
        annotations = _member(descriptor, "annotations")
        digest = str(_member(descriptor, "digest"))
        name = next((str(value) for key in _REFERENCES if (value := _member(annotations, key))), above or digest)
        try:
            if _member(annotations, _ATTESTATION) is not None:
                continue
            content = _json(_blob(open_member, descriptor, path), path)
            if _member(content, "manifests") is not None:
                if depth == _MOST_DEPTH:
                    raise InputError(path, f"its indexes are nested deeper than {_MOST_DEPTH} times")
                yield from _of_index(content, open_member, path, notes, depth + 1, name)
                continue
            layers = [_descriptor(layer, path) for layer in _list(_member(content, "layers"), path)[:_MOST_LAYERS]]
            configuration = _descriptor(_member(content, "config"), path)[0]
            platform = _platform(open_member(configuration), path)
            if depth and platform:
                name = f"{name} ({platform})"
            yield _Named(name, configuration.rpartition("/")[2], platform, tuple(layers))
        except FootprintError as error:
            notes.append(Note("image-unreadable", name, str(error)))


def _blob(open_member: _Opener, descriptor: object, path: str) -> memoryview:
    member, size_bytes = _descriptor(descriptor, path)
    data = open_member(member)
    if data is None:
        raise InputError(path, f"{member} is missing, which its index names")
    if size_bytes is not None and len(data) != size_bytes:
        raise InputError(path, f"{member} has {len(data)} bytes, and should have {size_bytes}")
    return data


def _descriptor(descriptor: object, path: str) -> tuple[str, int | None]:
    """Return the name of what a descriptor names, and its size.

    Raises:
        InputError: Where it has no digest.
        UnsupportedError: Where what it names is encrypted.
    """
    digest = _DIGEST.fullmatch(str(_member(descriptor, "digest")))
    if digest is None:
        raise InputError(path, f"a descriptor without digest: {_member(descriptor, 'digest')!r:.80}")
    if "+encrypted" in str(_member(descriptor, "mediaType")):
        raise UnsupportedError(path, f"{digest[0]} is encrypted")
    size = _member(descriptor, "size")
    return f"blobs/{digest[1]}/{digest[2]}", size if isinstance(size, int) else None


def _platform(configuration: memoryview | None, path: str) -> str:
    if configuration is None:
        return ""
    values = _json(configuration, path)
    parts = [_member(values, key) for key in ("os", "architecture", "variant")]
    return "/".join(part for part in parts if isinstance(part, str) and part)


def _json(data: memoryview, source: str) -> object:
    if len(data) > _MOST_JSON_BYTES:
        raise InputError(source, f"JSON of {len(data)} bytes: manifests have at most {_MOST_JSON_BYTES}")
    return parsed(bytes(data), source, "a manifest of it")


def _member(value: object, key: str) -> Any:  # noqa: ANN401 # what JSON holds
    return value.get(key) if isinstance(value, dict) else None


def _list(value: object, path: str) -> list[object]:
    if not isinstance(value, list):
        raise InputError(path, "a manifest without a list where it needs one")
    return value
