"""The file tree of a container image: its layers on top of each other, read without unpacking them.

A layer that is not compressed stays where it is, and files are views of its memory map. Of a compressed layer only what
an answer can need is kept: ELF files, and small files, in a temporary file without a name.

Source: OCI Image Format Specification 1.1, "Image Layer Filesystem Changeset".
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

from footprint.elf.image import starts_like_elf
from footprint.errors import AccessError, InputError, Note, cause_of
from footprint.sources.tar_members import ArchiveBytes, LayerMember, MemberKind, PiecedBytes, ViewedBytes, members_of
from footprint.system.decompression import PIECE_BYTES, unpacked_pieces
from footprint.system.files import is_compressed, map_descriptor
from footprint.system.limits import draw_entries
from footprint.text.units import format_bytes

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
# Folders in which old versions of Docker kept the state of a file system.
_AUFS: Final = ".wh..wh."
_MOST_LINKS: Final = 40
_LONGEST_PATH: Final = 4096
# The cache of the loader, lists of packages, linker scripts.
_MOST_SMALL_BYTES: Final = 4 << 20
_SMALL_FOLDERS: Final = ("etc/", "lib/", "usr/lib/", "usr/local/lib/", "var/lib/", "opt/")
_MOST_NOTES: Final = 20
# gzip shrinks zeros by a factor of 1032, zstd by any; layers shrink by 2 to 10.
_MOST_RATIO: Final = 200
_ANY_RATIO_BYTES: Final = 1 << 30

MembersOf = Callable[[ArchiveBytes, str], Iterator[LayerMember]]


class Layer(NamedTuple):
    """What a layer changes, in its order.

    Attributes:
        members: Its members, each with its data; None for the data of what is no file, or was not kept.
        number: A number that no other layer of the answer has.
        source: Its name for errors and notes.
    """

    members: tuple[tuple[LayerMember, memoryview | None], ...]
    number: int
    source: str


@dataclass(slots=True, eq=False)
class _File:
    """A regular file, or another thing that has no names below it; hard links are the same object."""

    facts: os.stat_result
    data: memoryview | None = None


@dataclass(slots=True, eq=False)
class _Link:
    target: str


@dataclass(slots=True, eq=False)
class _Folder:
    facts: os.stat_result
    nodes: "dict[str, _Node]" = field(default_factory=dict)


_Node = _File | _Link | _Folder
_UNNAMED: Final = os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, *(0,) * 6), {"st_mtime_ns": 0})
"""The facts of a folder that no layer names."""


def read_layer(data: memoryview, number: int, source: str, read_members: MembersOf = members_of) -> Layer:
    """Read a layer, compressed or not.

    Args:
        data: All of it.
        number: A number that no other layer of the answer has.
        source: Its name for errors and notes.
        read_members: Returns its members; those of tar where nothing else is given.

    Raises:
        AccessError: Where the temporary file cannot be written.
        InputError: Where it is cut or damaged.
        LimitError: Where it makes more work than the limits allow.
    """
    if not is_compressed(data):
        members = [
            (member, data[member.offset : member.offset + member.size_bytes] if _is_file(member) else None)
            for member in read_members(ViewedBytes(data), source)
        ]
        return Layer(tuple(members), number, source)
    archive = PiecedBytes(bounded_pieces(data, source))

    def contents() -> Iterator[tuple[LayerMember, ArchiveBytes]]:
        for member in read_members(archive, source):
            yield member, archive
        # The checksum of the compressed data stands at its end.
        archive.skip_to(1 << 62)

    return kept_layer(contents(), number, source)


def kept_layer(contents: Iterable[tuple[LayerMember, ArchiveBytes]], number: int, source: str) -> Layer:
    """Read a layer whose members come one after the other, each with what its data is read from.

    Raises:
        AccessError: Where the temporary file cannot be written.
        InputError: Where it is cut or damaged.
        LimitError: Where it makes more work than the limits allow.
    """
    try:
        with tempfile.TemporaryFile(prefix="footprint-") as spool:
            places = [
                (member, _keep(archive, member, spool) if _is_file(member) else None) for member, archive in contents
            ]
            spool.flush()
            kept = memoryview(map_descriptor(spool.fileno(), source))
    except OSError as error:
        raise AccessError(tempfile.gettempdir(), cause_of(error)) from error
    views = ((member, None if place is None else kept[place[0] : place[0] + place[1]]) for member, place in places)
    return Layer(tuple(views), number, source)


def _is_file(member: LayerMember) -> bool:
    return member.type in MemberKind.FILE and not member.name.endswith("/")


def most_unpacked_bytes(packed_bytes: int) -> int:
    """Return how many bytes may come out of a layer of a size: what is more is a bomb."""
    return max(_ANY_RATIO_BYTES, packed_bytes * _MOST_RATIO)


def bounded_pieces(data: memoryview, source: str) -> Iterator[bytes]:
    """Decompress a layer; its pieces are not kept, so only a bomb is refused.

    Raises:
        InputError: Where it is damaged, or shrinks further than layers do.
    """
    most_bytes = most_unpacked_bytes(len(data))
    total_bytes = 0
    for piece in unpacked_pieces(data, source):
        total_bytes += len(piece)
        if total_bytes > most_bytes:
            raise InputError(source, f"more than {format_bytes(most_bytes)} once decompressed: no layer shrinks so far")
        yield piece


def _keep(archive: ArchiveBytes, member: LayerMember, spool: IO[bytes]) -> tuple[int, int] | None:
    """Copy a file to the temporary file if an answer can need it, and return where it lies."""
    head = archive.read(min(4, member.size_bytes))
    is_small = member.size_bytes <= _MOST_SMALL_BYTES and member.name.lstrip("./").startswith(_SMALL_FOLDERS)
    if not starts_like_elf(head) and not is_small:
        return None
    at = spool.tell()
    left_bytes = member.size_bytes - spool.write(head)
    while left_bytes and (piece := archive.read(min(left_bytes, PIECE_BYTES))):
        left_bytes -= spool.write(piece)
    return at, member.size_bytes


def tree_of_layers(layers: list[Layer]) -> "ImageTree":
    """Return the tree of an image, whose layers are given from the lowest to the highest."""
    tree = ImageTree()
    for layer in layers:
        tree.apply(layer)
    return tree


class ImageTree:
    """The files of an image, as a process in a container of it sees them.

    Attributes:
        notes: What was left out of the tree.
    """

    def __init__(self) -> None:
        self._top = _Folder(_UNNAMED)
        self.notes: list[Note] = []
        self._left_out_count = 0
        # The names of the layer that is being applied: whiteouts do not concern them.
        self._added: set[tuple[_Folder, str]] = set()

    # --- what `footprint.system.roots` asks ---------------------------------------------------------------------------

    def stat(self, path: str) -> os.stat_result:
        """Return the facts of what a path leads to."""
        node = self._node_at(path)
        if isinstance(node, _Link):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return node.facts

    def target(self, path: str) -> str | None:
        """Return the target of a symbolic link; None for what is no link, or is not there."""
        folder, _, name = path.rstrip("/").rpartition("/")
        try:
            above = self._node_at(folder)
        except OSError:
            return None
        node = above.nodes.get(name) if isinstance(above, _Folder) else None
        return node.target if isinstance(node, _Link) else None

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        node = self._node_at(path)
        if not isinstance(node, _Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return list(node.nodes)

    def data(self, path: str) -> memoryview:
        """Return what a regular file holds."""
        node = self._node_at(path)
        if not isinstance(node, _File) or not stat.S_ISREG(node.facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if node.data is None:
            raise OSError(errno.ENODATA, "it was not kept: it is no ELF file")
        return node.data

    # --- the files ----------------------------------------------------------------------------------------------------

    def elf_files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Return the path and the facts of each ELF file, a file with several names once.

        The order is that of `os.walk`: the files of a directory by name, then what lies below its folders.
        """
        seen: set[int] = set()
        waiting = [("", self._top)]
        while waiting:
            place, folder = waiting.pop()
            names = sorted(folder.nodes)
            for name in names:
                node = folder.nodes[name]
                if isinstance(node, _File) and node.data is not None and id(node) not in seen:
                    seen.add(id(node))
                    if starts_like_elf(bytes(node.data[:4])):
                        yield f"{place}/{name}", node.facts
            below = ((name, folder.nodes[name]) for name in reversed(names))
            waiting += [(f"{place}/{name}", node) for name, node in below if isinstance(node, _Folder)]

    def apply(self, layer: Layer) -> None:
        """Put a layer on top: what it deletes is deleted from the layers below, never from itself."""
        self._added = set()
        for member, data in layer.members:
            names = _names(member.name)
            if names is None:
                self._leave_out(layer, member, "its path leads out of the image, or is longer than a path can be")
            elif any(name.startswith(_AUFS) for name in names[:-1]):
                continue
            elif not names or not names[-1].startswith(_WHITEOUT):
                self._add(layer, names, member, data)
            elif isinstance(folder := self._walk(names[:-1], is_made=False), _Folder):
                hidden = folder.nodes if names[-1] == _OPAQUE else [names[-1].removeprefix(_WHITEOUT)]
                self._hide([(folder, name) for name in hidden])

    def _hide(self, waiting: list[tuple[_Folder, str]]) -> None:
        """Delete names that are of the layers below; of a folder that is also of this layer, what lies below it."""
        while waiting:
            folder, name = waiting.pop()
            if (folder, name) not in self._added:
                folder.nodes.pop(name, None)
            elif isinstance(node := folder.nodes.get(name), _Folder):
                waiting += [(node, name) for name in node.nodes]

    def _add(self, layer: Layer, names: list[str], member: LayerMember, data: memoryview | None) -> None:
        number = (layer.number, member.offset)
        if member.type in MemberKind.FOLDER or (member.type in MemberKind.FILE and member.name.endswith("/")):
            facts = _facts(stat.S_IFDIR | member.mode, *number, 0, member.changed_ns)
            self._add_folder(names, facts, layer, member)
            return
        folder = self._made_parent(names)
        if folder is None or not names:
            self._leave_out(layer, member, "a file or a circle of links is where its folder would be")
            return
        node: _Node | None
        if member.type in MemberKind.HARD_LINK:
            target = _names(member.link)
            above = None if not target else self._walk(target[:-1], is_made=False)
            node = above.nodes.get(target[-1]) if target and isinstance(above, _Folder) else None
            if node is None or isinstance(node, _Folder):
                self._leave_out(layer, member, "it is a hard link to no file of the image")
                return
        elif member.type in MemberKind.SYMBOLIC_LINK:
            node = _Link(member.link)
        elif member.type in MemberKind.FILE:
            node = _File(_facts(stat.S_IFREG | member.mode, *number, member.size_bytes, member.changed_ns), data)
        elif member.type in MemberKind.SPARSE:
            self._leave_out(layer, member, "it is a sparse file, which footprint does not read")
            node = _File(_facts(stat.S_IFREG | member.mode, *number, 0, member.changed_ns))
        else:
            # A device or a pipe hides what the layers below have there.
            node = _File(_facts(stat.S_IFIFO | member.mode, *number, 0, member.changed_ns))
        folder.nodes[names[-1]] = node
        self._added.add((folder, names[-1]))

    def _add_folder(self, names: list[str], facts: os.stat_result, layer: Layer, member: LayerMember) -> None:
        if not names:
            self._top.facts = facts
            return
        folder = self._made_parent(names)
        if folder is None:
            self._leave_out(layer, member, "a file or a circle of links is where its folder would be")
            return
        if isinstance(existing := folder.nodes.get(names[-1]), _Folder):
            existing.facts = facts
        else:
            folder.nodes[names[-1]] = _Folder(facts)
        self._added.add((folder, names[-1]))

    def _leave_out(self, layer: Layer, member: LayerMember, cause: str) -> None:
        self._left_out_count += 1
        if self._left_out_count < _MOST_NOTES:
            self.notes.append(Note("image-entry-left-out", member.name, f"{cause} ({layer.source})"))
        else:
            rest = f"{self._left_out_count - _MOST_NOTES + 1} more entries"
            self.notes[_MOST_NOTES - 1 :] = [Note("image-entry-left-out", rest, "they are left out of the image, too")]

    # --- paths --------------------------------------------------------------------------------------------------------

    def _node_at(self, path: str) -> _Node:
        """Follow a path to its end.

        Raises:
            OSError: Where it leads nowhere, or follows more links than the kernel does.
        """
        node = self._walk(path.split("/"), is_made=False)
        if isinstance(node, int):
            raise OSError(node, os.strerror(node))
        return node

    def _made_parent(self, names: list[str]) -> _Folder | None:
        """Return the folder of a new entry; folders that no layer names are made, as tar makes them."""
        node = self._walk(names[:-1], is_made=True)
        return node if isinstance(node, _Folder) else None

    def _walk(self, names: list[str], *, is_made: bool) -> _Node | int:
        """Follow names from the top and links in between; return the errno where that fails."""
        above: list[_Node] = [self._top]
        waiting = _steps(names)
        links = 0
        while waiting:
            name = waiting.pop()
            folder = above[-1]
            if not isinstance(folder, _Folder):
                return errno.ENOTDIR
            if name == "..":
                del above[max(1, len(above) - 1) :]
                continue
            node = folder.nodes.get(name)
            if is_made:
                if node is None:
                    draw_entries(1, "the folders of an image")
                    node = folder.nodes[name] = _Folder(_UNNAMED)
                self._added.add((folder, name))
            elif node is None:
                return errno.ENOENT
            if isinstance(node, _Link):
                links += 1
                if links > _MOST_LINKS or len(node.target) > _LONGEST_PATH:
                    return errno.ELOOP
                if node.target.startswith("/"):
                    del above[1:]
                waiting += _steps(node.target.split("/"))
            else:
                above.append(node)
        return above[-1]


class RootTree(NamedTuple):
    """The tree of a container image or a package, which is a root: `Programs(tree.root)` reads its programs.

    Attributes:
        name: The tag of an image, or its digest where it has none; of a package name, version and architecture.
        identity: The digest that stands for all that is in it.
        platform: Such as `linux/arm64`; empty where it is not known.
        root: The root by which its files are opened, for `enter_root`; a text that begins with the path of the source.
        tree: Its files.
        package: The name and the version of a package; None for an image.
    """

    name: str
    identity: str
    platform: str
    root: str
    tree: ImageTree
    package: tuple[str, str] | None = None


def _names(path: str) -> list[str] | None:
    """Split the path of a member; return None for one that leads out of the image, or is too long."""
    names = [name for name in path.split("/") if name not in {"", "."}]
    return None if ".." in names or len(path) > _LONGEST_PATH or "\0" in path else names


def _steps(names: list[str]) -> list[str]:
    """Return the names of a path that lead somewhere, the first one last."""
    return [name for name in reversed(names) if name not in {"", "."}]


def _facts(mode: int, device: int, inode: int, size_bytes: int, changed_ns: int) -> os.stat_result:
    seconds = changed_ns // 10**9
    return os.stat_result(
        (mode, inode, device, 1, 0, 0, size_bytes, seconds, seconds, seconds), {"st_mtime_ns": changed_ns}
    )
