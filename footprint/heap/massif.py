"""The files of Valgrind's massif: `massif.out`, and XTree memory files, which have the same grammar.

It reads all versions since Valgrind 3.3, and exports of heaptrack. A damaged tree is left out with a note; its snapshot
keeps its figures.

Source: massif/ms_main.c and coregrind/m_xtree.c of Valgrind 3.3 to 3.28; heaptrack_print.cpp of heaptrack 1.4.

XTree memory files of Valgrind: their snapshots are not moments, but columns of figures for the same stacks.

`footprint run --massif` appends one to the file of massif, which has no snapshot at the end of the run.

Source: coregrind/m_xtmemory.c of Valgrind 3.13 to 3.28.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count, islice, repeat
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import MOST_AMOUNT, read_label
from footprint.heap.profile import CallTree, Counted, HeapSnapshot, Profile, Tally
from footprint.members import NamedTuple
from footprint.system.decompression import plain_pieces
from footprint.text.units import counted

# The root of a column names it: `totB : total allocated Bytes`.
COLUMN_LABEL: Final = re.compile(rb"[A-Za-z]{1,16}+ : ")
COLUMN_ROOT: Final = re.compile(rb"n[0-9]{1,9}+: [0-9]{1,18}+ " + COLUMN_LABEL.pattern)
_HEADING: Final = re.compile(r"([A-Za-z]{1,16}) : ")
# The column of bytes, the column of blocks, and our name for the pair; None for the memory in use.
_PAIRS: Final = (("curB", "curBk", None), ("totB", "totBk", "allocated"), ("totFdB", "totFdBk", "freed"))


def read_columns(snapshots: tuple[HeapSnapshot, ...]) -> tuple[tuple[HeapSnapshot, ...], tuple[Tally, ...]] | None:
    """Return the moments before an XTree with its one moment, and its tallies of the run; None without an XTree."""
    first = next((place for place, snapshot in enumerate(snapshots) if snapshot.tree and _heading(snapshot.tree)), None)
    if first is None:
        return None
    columns: dict[str, tuple[HeapSnapshot, CallTree]] = {}
    for snapshot in snapshots[first:]:
        if snapshot.tree is None:
            continue
        heading = _heading(snapshot.tree)
        if heading is None or heading in columns:
            return None
        columns[heading] = (snapshot, snapshot.tree)
    moments = list(snapshots[:first])
    tallies: list[Tally] = []
    for bytes_name, blocks_name, tally_name in _PAIRS:
        if bytes_name not in columns:
            continue
        snapshot, tree = columns.pop(bytes_name)
        if blocks_name in columns:
            tree = _joined(tree, columns.pop(blocks_name)[1])
        if tally_name is None:
            moments.append(HeapSnapshot(snapshot.number, snapshot.time, snapshot.live_bytes, tree=tree))
        else:
            tallies.append(Tally(tally_name, tree))
    tallies += [Tally(name, tree) for name, (_, tree) in columns.items()]
    return tuple(moments), tuple(tallies)


def _heading(tree: CallTree) -> str | None:
    match = _HEADING.match(tree.frame(0).label or "")
    return match and match[1]


def _joined(tree: CallTree, blocks: CallTree) -> CallTree:
    """Join a tree of bytes with the blocks of its stacks; the blocks of stacks that it has in a lump remain above."""
    steps: dict[tuple[int, int], int] = {}
    for node, step in enumerate(zip(tree.parents, tree.frame_indexes, strict=True)):
        steps.setdefault(step, node)
    counts = array("q", bytes(8 * len(tree)))
    counts[0] = blocks.total_bytes
    places = [0]
    nodes = zip(blocks.parents[1:], blocks.frame_indexes[1:], blocks.node_bytes[1:], strict=True)
    for parent, index, block_count in nodes:
        place = steps.get((places[parent], index), -1)
        places.append(place)
        if place > 0:
            counts[place] += block_count
    return CallTree(tree.frames, tree.parents, tree.frame_indexes, tree.node_bytes, counts)


_MARK: Final = b"#-----------\nsnapshot="
_HEAD: Final = re.compile(
    rb"#-----------\nsnapshot=([0-9]{1,9})\n#-----------\ntime=([0-9]{1,18}(?:\.[0-9]{1,18})?)\nmem_heap_B=([0-9]{1,18})\n"
    rb"mem_heap_extra_B=([0-9]{1,18})\nmem_stacks_B=([0-9]{1,18})\nheap_tree=(empty|detailed|peak)\n"
)
# Amounts with more digits do not fit into a column, and no process has them.
_NODE: Final = re.compile(rb"^( *+n[0-9]{1,9}+): ([0-9]{1,18}+) (.*+)\n", re.MULTILINE)
# heaptrack writes the header last. The command may contain newlines: only the line behind it ends it.
_HEADER: Final = re.compile(rb"(?:desc:([^\n]*)\n)?cmd:(.*)\ntime_unit: ?([^\n]*)\n", re.DOTALL)
_LAST_OF_HEADER: Final = b"time_unit: "
_NEXT: Final = b"\n#-----------\n"
_HEADER_STARTS: Final = (b"\ndesc:", b"\ncmd:")
_MOST_PENDING_BYTES: Final = 16 << 20
# Limits, far beyond any known file: the lines of one tree, the lines of all trees that are built, the labels of a
# program, and their text.
_MOST_NODES: Final = 1 << 21
_MOST_NODES_IN_ALL: Final = 1 << 24
_MOST_LABELS: Final = 1 << 19
_MOST_LABEL_BYTES: Final = 128 << 20
# A tree of more lines, each deeper than the one before, would be longer than 8 GB.
_TOO_DEEP: Final = 1 << 17
_BEGINNINGS_KEPT: Final = 1 << 14
_DEPTH_KEPT: Final = 1 << 10
# A peak is marked anew only where it is larger by this part.
_INACCURACY: Final = re.compile(r"--peak-inaccuracy=([0-9]{1,3}(?:\.[0-9]{1,9})?)(?: |$)")
_INACCURACY_PERCENT: Final = 1.0
_PAGES: Final = b"(page allocation syscalls)"


def looks_like_massif(start: bytes) -> bool:
    """Return whether the first bytes are those of a massif file."""
    return start.startswith(_MARK) or (start.startswith(b"desc:") and b"\ncmd:" in start)


def read_massif(pieces: Iterable[bytes], source: str, wanted: Collection[int] | None = None) -> Profile:
    """Read a massif file from the pieces of its text.

    Args:
        pieces: The text.
        source: Its name for messages.
        wanted: The indexes of the snapshots whose trees to build; None for all. Other trees are skipped at the speed of
            a memory search, and not checked.

    Raises:
        InputError: Where there is no snapshot.
    """
    return _read_whole(pieces, source, wanted).finish()


def read_massif_parts(
    text: memoryview | None,
    pieces: Callable[[], Iterable[bytes]],
    source: str,
    choose: Callable[[Profile], Collection[int]],
) -> Profile:
    """Read the snapshots of a massif file, then the trees that are chosen by the profile without its trees.

    Args:
        text: The text, of which only these trees are read again; None where it is compressed.
        pieces: Returns the pieces of the text, from its beginning.
        source: Its name for messages.
        choose: Takes the profile without its trees, and returns the indexes of the snapshots whose trees to build.

    Raises:
        InputError: Where there is no snapshot.
    """
    reader = _read_whole(pieces(), source, ())
    without_trees = reader.finish()
    # The trees of an XTree are columns of one table: all are needed.
    if without_trees.format == "xtree":
        return read_massif(pieces(), source)
    # The last tree shows whether the text was cut.
    wanted = {*choose(without_trees), *without_trees.detailed_places[-1:]}
    if text is not None and reader.read_trees(text, wanted):
        return reader.finish()
    return read_massif(pieces(), source, wanted)


def _read_whole(pieces: Iterable[bytes], source: str, wanted: Collection[int] | None) -> "_Reader":
    reader = _Reader(source, wanted)
    pending, offset = b"", 0
    for piece in pieces:
        text = pending + piece
        taken = reader.read(text, offset, is_last=False)
        pending, offset = text[taken:], offset + taken
        if len(pending) > _MOST_PENDING_BYTES:
            raise InputError(source, "no snapshot begins where one is expected", offset)
    if pending and not pending.endswith(b"\n"):
        # A label without its end would name another place.
        end = len(pending) if pending.endswith((b")", b"=empty")) else pending.rfind(b"\n") + 1
        pending = pending[:end] + b"\n" * (end == len(pending))
        reader.is_cut = True
    reader.read(pending, offset, is_last=True)
    return reader


class _Unbalanced(NamedTuple):
    """A line whose callers do not add up to its bytes."""

    node: int
    found_bytes: int
    told_bytes: int


class _Faults(NamedTuple):
    """The faults of a tree: whether it is broken, whether the text was cut within it, and the first unbalanced line."""

    is_broken: bool = False
    is_cut: bool = False
    unbalanced: _Unbalanced | None = None


class _Beginnings(dict[bytes, tuple[int, int]]):
    """The depth and the number of callers by the beginning of a line: a file has few different beginnings."""

    def __missing__(self, beginning: bytes) -> tuple[int, int]:
        depth = beginning.index(b"n")
        read = min(depth, _TOO_DEEP), int(beginning[depth + 1 :])
        if len(self) < _BEGINNINGS_KEPT and depth < _DEPTH_KEPT:
            self[beginning] = read
        return read


class _Tree:
    """The columns of one tree, and the last line at each depth; only the root of a tree that is not wanted.

    Which callers a line lacks is known when the next line at its depth, or the end, is read.
    """

    def __init__(self, number: int, start_offset: int, *, is_wanted: bool) -> None:
        self.number = number
        self.is_wanted = is_wanted
        # Where its lines begin and end in the text.
        self.start_offset = self.end_offset = start_offset
        self.parents = array("i")
        self.frame_indexes = array("i")
        self.node_bytes = array("q")
        # The parent of a line at each depth, how many of its callers are missing, and their bytes.
        self._path, self._missing, self._rest = [-1], [0], [0]
        self._most_missing = self._least_missing = 0
        self._is_balanced = True

    def add(self, parts: Sequence[bytes], beginnings: _Beginnings, labels: dict[bytes, int]) -> None:
        """Add lines to the tree: three parts each, with an empty one before it, as `_NODE.split` has them."""
        steps = list(map(beginnings.__getitem__, parts[1::4]))
        amounts = list(map(int, parts[2::4]))
        # An array takes a list faster than an iterator.
        self.frame_indexes.fromlist(list(map(labels.__getitem__, parts[3::4])))
        self.node_bytes.fromlist(amounts)
        path, missing, rest, parents = self._path, self._missing, self._rest, list[int]()
        # A line that is too deep gets the parent -1.
        more = max(steps)[0] + 2 - len(path)
        for column, none in ((path, -1), (missing, 0), (rest, 0)):
            column.extend(repeat(none, more))
        append = parents.append
        for node, ((depth, callers), amount) in enumerate(zip(steps, amounts, strict=True), len(self.parents)):
            append(path[depth])
            missing[depth] -= 1
            rest[depth] -= amount
            depth += 1  # noqa: PLW2901 # that of its callers
            if missing[depth] or rest[depth]:
                self._note_missing(missing[depth])
            path[depth] = node
            missing[depth] = callers
            rest[depth] = amount if callers else 0
        self.parents.fromlist(parents)

    def _note_missing(self, missing: int) -> None:
        """Note that a line has not its callers, or not their bytes."""
        self._most_missing = max(self._most_missing, missing)
        self._least_missing = min(self._least_missing, missing)
        self._is_balanced = False

    def faults(self) -> _Faults:
        """Check the tree: it has one root, and each line has its number of callers, which add up to its bytes."""
        if not self.is_wanted or not self.parents:
            return _Faults(is_broken=not self.parents, is_cut=not self.parents)
        for node, missing, rest_bytes in zip(self._path, self._missing, self._rest, strict=True):
            if node >= 0 and (missing or rest_bytes):
                self._note_missing(missing)
        # They are as long as the deepest line is indented, and a file may have many trees.
        self._path, self._missing, self._rest = [], [], []
        if self.parents.count(-1) != 1 or self._most_missing or self._least_missing:
            return _Faults(is_broken=True, is_cut=self._most_missing > 0)
        if self._is_balanced:
            return _Faults()
        rest = self.node_bytes.tolist()
        for parent, amount in zip(islice(self.parents, 1, None), islice(self.node_bytes, 1, None), strict=True):
            rest[parent] -= amount
        # Amounts that are counted several times may exceed the largest amount.
        if sum(map(abs, rest)) > MOST_AMOUNT:
            return _Faults(is_broken=True)
        node = next(node for node in sorted({*self.parents[1:]}) if rest[node])
        return _Faults(unbalanced=_Unbalanced(node, self.node_bytes[node] - rest[node], self.node_bytes[node]))


class _Reader:
    """Reads pieces that begin and end anywhere; `read` returns how far it got."""

    def __init__(self, source: str, wanted: Collection[int] | None) -> None:
        self._source = source
        self._wanted = wanted
        # The index of each label among the frames: the snapshots of a long run repeat few labels very often.
        self._labels = defaultdict[bytes, int](count().__next__)
        self._label_bytes = 0
        self._beginnings = _Beginnings()
        self._heads: list[tuple[HeapSnapshot, _Tree | None]] = []
        self._tree: _Tree | None = None
        self._header: tuple[str | None, str, str] | None = None
        self._broken_trees: list[int] = []
        self._strays: list[int] = []
        self._node_count = 0
        self._unbalanced: list[tuple[int, _Unbalanced]] = []
        # Where the snapshots of further files begin.
        self._starts: list[int] = []
        self._left_out_count = 0
        self._is_behind_header = False
        self.is_cut = False

    def read(self, text: bytes, offset: int, *, is_last: bool) -> int:
        position = 0
        while True:
            if self._tree is not None:
                position = self._read_nodes(self._tree, text, position)
                if position == len(text) and not is_last:
                    return position
                if text.find(b"\n", position) < 0 and not is_last:
                    return position  # the line is incomplete
                self._close(self._tree, offset + position, is_end=position == len(text))
                self._tree = None
            if head := _HEAD.match(text, position):
                self._begin(head, offset + head.end())
                position = head.end()
                continue
            following = text.find(_MARK, position + 1)
            if following < 0:
                if not is_last:
                    return position
                following = len(text)
            if following > position:
                self._read_other(text[position:following], offset + position, is_last=following == len(text))
            position = following
            if position == len(text):
                return position

    def _begin(self, head: re.Match[bytes], end_offset: int) -> None:
        number, time, live_bytes, extra_bytes, stack_bytes, kind = head.groups()
        moment, sizes = (
            float(time) if b"." in time else int(time),
            (int(live_bytes), int(extra_bytes), int(stack_bytes)),
        )
        snapshot = HeapSnapshot(int(number), moment, *sizes, is_peak=kind == b"peak")
        if self._is_behind_header and self._heads:
            self._starts.append(len(self._heads))
        self._is_behind_header = False
        self._heads.append((snapshot, None))
        if kind != b"empty":
            is_wanted = self._wanted is None or len(self._heads) - 1 in self._wanted
            self._tree = _Tree(snapshot.number, end_offset, is_wanted=is_wanted)

    def _read_nodes(self, tree: _Tree, text: bytes, position: int) -> int:
        """Add the lines of a tree; return where the first other line begins."""
        # The columns of an XTree are few, and all are needed.
        tree.is_wanted = tree.is_wanted or (not tree.parents and bool(COLUMN_ROOT.match(text, position)))
        if not tree.is_wanted:
            return self._pass_nodes(tree, text, position)
        mark = text.find(b"\n#", position) if b"#" in text else -1
        end = mark + 1 if mark >= 0 else text.rfind(b"\n", position) + 1
        if text.startswith(b"#", position) or end <= position:
            return position
        parts = _NODE.split(text[position:end])
        if any(parts[::4]):
            # Another line stands between these.
            end = position
            while line := _NODE.match(text, end):
                end = line.end()
            parts = _NODE.split(text[position:end])
        if len(parts) > 1:
            label_count = len(self._labels)
            tree.add(parts, self._beginnings, self._labels)
            self._label_bytes += sum(map(len, islice(reversed(self._labels), len(self._labels) - label_count)))
            self._node_count += len(parts) // 4
            self._check_bounds(tree)
        return end

    def _check_bounds(self, tree: _Tree) -> None:
        number = tree.number
        if len(tree.parents) > _MOST_NODES:
            raise InputError(self._source, f"the tree of snapshot {number} has more lines than any program has calls")
        if self._node_count > _MOST_NODES_IN_ALL:
            raise InputError(self._source, f"up to snapshot {number} its trees have more lines than fit into memory")
        if len(self._labels) > _MOST_LABELS or self._label_bytes > _MOST_LABEL_BYTES:
            raise InputError(self._source, f"by snapshot {number} it names more places than any program has")

    def _pass_nodes(self, tree: _Tree, text: bytes, position: int) -> int:
        """Add the root of a tree, and skip its other lines; return where the next part begins."""
        if not tree.parents:
            root = _NODE.match(text, position)
            if root is None or root[1].startswith(b" "):
                return position
            tree.parents.append(-1)
            tree.node_bytes.append(int(root[2]))
            self._add_label_of_root(tree, root[3])
            position = root.end()
        if text.startswith((b"#", b"desc:", b"cmd:"), position):
            return position
        mark = _next_part(text, position)
        if mark < 0 and self._header is None:
            mark = min((at for start in _HEADER_STARTS if (at := text.find(start, position)) >= 0), default=-1)
        end = mark + 1 if mark >= 0 else max(position, text.rfind(b"\n", position) + 1)
        last_line = max(position, text.rfind(b"\n", position, max(position, end - 1)) + 1)
        self._is_behind_header = text.startswith(_LAST_OF_HEADER, last_line, end)
        return end

    def _add_label_of_root(self, tree: _Tree, label: bytes) -> None:
        label_count = len(self._labels)
        tree.frame_indexes.append(self._labels[label])
        self._label_bytes += len(label) * (len(self._labels) - label_count)
        self._check_bounds(tree)

    def read_trees(self, text: memoryview, wanted: Collection[int]) -> bool:
        """Build trees from their places in the text; return whether all of them are sound.

        If not, the reader is of no use any more: only the text as a whole shows what is damaged.
        """
        if self._left_out_count:
            return False  # to leave out the other files twice would leave out more
        roots = tuple(self._labels)
        # The labels are in the order of the text.
        self._labels, self._label_bytes = defaultdict[bytes, int](count().__next__), 0
        for place, (head, tree) in enumerate(self._heads):
            if tree is None and place not in wanted:
                continue
            if tree is None or tree.is_wanted:
                return False
            if place not in wanted:
                self._add_label_of_root(tree, roots[tree.frame_indexes.pop()])
                continue
            built, rest = _Tree(tree.number, tree.start_offset, is_wanted=True), b""
            for piece in plain_pieces(text, tree.start_offset, tree.end_offset):
                lines = rest + piece
                rest = lines[self._read_nodes(built, lines, 0) :]
                # Damage would be split again with each piece.
                if b"\n" in rest or len(rest) > _MOST_PENDING_BYTES:
                    return False
            if rest or built.faults() != _Faults():
                return False
            self._heads[place] = (head, built)
        return True

    def _close(self, tree: _Tree, offset: int, *, is_end: bool) -> None:
        tree.end_offset = offset
        faults = tree.faults()
        if faults.is_broken:
            self.is_cut |= is_end and faults.is_cut
            self._broken_trees.append(offset)
            return
        unbalanced = faults.unbalanced
        head = self._heads[-1][0]
        if unbalanced is None and tree.node_bytes[0] != head.live_bytes:
            unbalanced = _Unbalanced(0, tree.node_bytes[0], head.live_bytes)
        if unbalanced is not None:
            self._unbalanced.append((head.number, unbalanced))
        self._heads[-1] = (head, tree)

    def _read_other(self, text: bytes, offset: int, *, is_last: bool) -> None:
        """Read a part that is not a snapshot: the header, at either end, or damage."""
        header = _HEADER.fullmatch(text)
        self._is_behind_header = header is not None
        if header is not None and self._header is None:
            description, command, unit = (
                None if part is None else part.strip().decode("utf-8", "surrogateescape") for part in header.groups()
            )
            self._header = (description, command or "", unit or "")
        elif header is not None:
            return
        elif is_last and text.startswith(_MARK[: len(text)]):
            self.is_cut = True
        else:
            self._strays.append(offset)

    def _leave_out_others(self) -> None:
        """Leave out the snapshots of files that follow the first one; keep how many files these are.

        An XTree that follows is of the same run; it numbers its snapshots anew, and its clock is another.
        """
        starts = self._starts
        if starts and self._is_column(starts[0]):
            last, end = self._heads[starts[0] - 1][0], starts[1] if len(starts) > 1 else len(self._heads)
            for place in range(starts.pop(0), end):
                head, tree = self._heads[place]
                self._heads[place] = (head._replace(number=last.number + 1 + head.number, time=last.time), tree)
        if starts:
            del self._heads[starts[0] :]
        self._left_out_count = len(starts)

    def _is_column(self, place: int) -> bool:
        tree = self._heads[place][1]
        return tree is not None and bool(COLUMN_LABEL.match(tuple(self._labels)[tree.frame_indexes[0]]))

    def finish(self) -> Profile:
        source = self._source
        if not self._heads:
            raise InputError(source, "no snapshot in the format of massif", 0)
        description, command, unit = self._header or (None, None, None)
        self._leave_out_others()
        frames = tuple(read_label(label.decode("utf-8", "surrogateescape")) for label in self._labels)
        detailed = tuple(place for place, (_, tree) in enumerate(self._heads) if tree is not None)
        roots = {tree.frame_indexes[0] for _, tree in self._heads if tree is not None}
        has_columns = any(_HEADING.match(frames[root].label or "") for root in roots)
        snapshots = tuple(
            head
            if tree is None or not (tree.is_wanted or has_columns)
            else head._replace(tree=CallTree(frames, tree.parents, tree.frame_indexes, tree.node_bytes))
            for head, tree in self._heads
        )
        tallies: tuple[Tally, ...] = ()
        xtree = read_columns(snapshots) if has_columns else None
        if xtree is not None:
            snapshots, tallies = xtree
        is_xtree = xtree is not None and len(snapshots) <= 1
        if is_xtree:
            detailed = ()
        elif has_columns:
            detailed = tuple(place for place, snapshot in enumerate(snapshots) if snapshot.tree is not None)
            unwanted = set(detailed).difference(detailed if self._wanted is None else self._wanted)
            snapshots = tuple(kept._replace(tree=None) if n in unwanted else kept for n, kept in enumerate(snapshots))
        snapshots, peak_index = _with_peak(snapshots, description or "")
        is_export = unit == "s"
        counts_pages = any(label.startswith(_PAGES) for label in self._labels)
        notes = list(self._notes())
        if is_export:
            detail = "heaptrack exported it: its trees omit bytes and mark no peak; read the recording itself"
            notes.append(Note("heap-export-lossy", source, detail))
        elif not is_xtree and peak_index is None and any(snapshot.live_bytes for snapshot in snapshots):
            detail = "no snapshot is marked as the peak: the largest one may be far below it"
            notes.append(Note("heap-no-peak", source, detail))
        if counts_pages:
            detail = "--pages-as-heap counts address space, including reserved memory that was never touched"
            notes.append(Note("virtual-only", source, detail))
        return Profile(
            "xtree" if is_xtree else "heaptrack massif" if is_export else "massif",
            Counted.PAGES if counts_pages else Counted.HEAP,
            command,
            description,
            unit,
            frames=frames,
            snapshots=snapshots,
            peak_index=peak_index,
            tallies=tallies,
            notes=tuple(notes),
            detailed_places=detailed,
            has_end=xtree is not None or is_export,
        )

    def _notes(self) -> Iterator[Note]:
        source = self._source
        if self.is_cut:
            yield Note("heap-text-truncated", source, "the text ends within a snapshot: the last snapshots are missing")
        if self._left_out_count:
            more = counted(self._left_out_count, "more profile")
            detail = f"{more} of massif in the same file, left out: each is a run of its own"
            yield Note("heap-profiles-left-out", source, detail)
        if self._strays:
            count, first = len(self._strays), self._strays[0]
            detail = (
                f"lines in {counted(count, 'place')} are not snapshots and are left out: the first at offset {first:#x}"
            )
            yield Note("heap-lines-unread", source, detail)
        if self._broken_trees:
            count, first = len(self._broken_trees), self._broken_trees[0]
            detail = (
                f"trees of {counted(count, 'snapshot')} are damaged and left out: the first before offset {first:#x}"
            )
            yield Note("heap-tree-unread", source, detail)
        if self._unbalanced:
            number, line = self._unbalanced[0]
            detail = (
                f"in the trees of {counted(len(self._unbalanced), 'snapshot')} callers do not add up to their callee: "
                f"first in snapshot {number} at line {line.node + 1} of its tree, {line.found_bytes:,} of "
                f"{line.told_bytes:,} bytes"
            )
            yield Note("heap-tree-unbalanced", source, detail)


def _next_part(text: bytes, position: int) -> int:
    """Return where the line end before the next `#-----------` is; -1 where there is none."""
    at = text.find(b"#", position)
    if at < 0 or text.startswith(_NEXT, at - 1):
        return max(-1, at - 1)
    # Names contain `#`, too. The search for a long text takes larger steps than that for a short one.
    return text.find(_NEXT, position)


def _with_peak(snapshots: tuple[HeapSnapshot, ...], description: str) -> tuple[tuple[HeapSnapshot, ...], int | None]:
    """Return the snapshots with the peak marked, and its index; None where massif marked none.

    Massif marks a peak only when a block is freed, so memory that grows until the end outgrows the mark.
    """
    marked = next((place for place, snapshot in enumerate(snapshots) if snapshot.is_peak), None)
    if marked is None:
        return snapshots, None
    # An XTree does not count the allocator's own bytes.
    has_extra = all(snapshot.extra_bytes is not None for snapshot in snapshots)
    sizes = [snapshot.used_bytes if has_extra else snapshot.live_bytes for snapshot in snapshots]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    option = _INACCURACY.search(description)
    percent = float(option[1]) if option else _INACCURACY_PERCENT
    if sizes[largest] <= sizes[marked] * (1 + percent / 100):
        return snapshots, marked
    return tuple(snapshot._replace(is_peak=place == largest) for place, snapshot in enumerate(snapshots)), largest
