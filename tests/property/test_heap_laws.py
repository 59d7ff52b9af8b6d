"""Laws of heap profiles: what was written is read again, trees are conserved, and damage is one of our errors."""

import gzip
import tracemalloc
from array import array
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.errors import InputError
from footprint.heap.attribution import Call as NamedCall
from footprint.heap.attribution import attribute, charged
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.formats import read_profile
from footprint.heap.massif import read_massif
from footprint.heap.profile import CallTree, Frame, Profile
from footprint.system.decompression import PIECE_BYTES
from tests.calltrees import stack
from tests.examples import examples
from tests.massifwriter import ROOT, Line, Moment, lines_of, massif
from tests.pprofwriter import Call, Location, Map, Sample, message, number, packed, pprof
from tests.workcount import assert_linear

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"
TEXTS = {
    path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for path in sorted(CORPUS.iterdir())
    if path.suffix not in {".c", ".go", ".js", ".md", ".kcg"}
}
MIB = 1 << 20
# The starts of a report of leaks, and of a profile of pprof.
LEAK = b"==1==ERROR: LeakSanitizer: detected memory leaks\n"
SPACE = pprof([("space", "bytes")], [Sample((1,), (8,))], [Location(1)])


def read(text: bytes) -> Profile | None:
    """Return the profile, or None where the text is refused; any other exception is a failed test."""
    try:
        return read_profile(text, "a text")
    except InputError:
        return None


def trees(profile: Profile) -> list[CallTree]:
    of_snapshots = [snapshot.tree for snapshot in profile.snapshots if snapshot.tree is not None]
    return [*of_snapshots, *(tally.tree for tally in profile.tallies)]


def assert_sound(profile: Profile) -> None:
    """Hold what is true of every profile, however damaged its text."""
    assert profile.peak_index is None or profile.snapshots[profile.peak_index].is_peak
    for tree in trees(profile):
        assert tree.parents[0] == -1
        assert all(0 <= parent < node for node, parent in enumerate(tree.parents[1:], 1))
        assert max(tree.frame_indexes) < len(tree.frames)
        assert len(tree) == len(tree.frame_indexes) == len(tree.node_bytes)
        assert sum(tree.own_bytes()) == tree.total_bytes
        if "massif" not in profile.format and profile.format != "xtree":
            assert min(tree.own_bytes()) >= 0
            assert tree.node_blocks is None or min(tree.node_blocks) >= 0
        assert len(tree.inlined_nodes()) == len(tree)
    for snapshot in profile.snapshots:
        if snapshot.tree is not None and "massif" not in profile.format:
            assert snapshot.tree.total_bytes == snapshot.live_bytes


# --- there and back ---------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_characters="\n()", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name != "???"
)
LABELS = st.one_of(
    st.builds("0x{:X}: {}".format, st.integers(0, (1 << 64) - 1), NAMES),
    st.builds("0x{:X}: {} ({}:{})".format, st.integers(0, 1 << 48), NAMES, NAMES, st.integers(0, 10**6)),
    st.builds("0x{:X}: {}(int) (in {})".format, st.integers(0, 1 << 48), NAMES, NAMES),
    st.builds("in {} places, all below massif's threshold (1.00%)".format, st.integers(2, 900)),
)


@st.composite
def nodes(draw: st.DrawFn, label: str, depth: int = 0) -> Line:
    """Draw a tree in which callers add up."""
    callers = tuple(draw(nodes(draw(LABELS), depth + 1)) for _ in range(draw(st.integers(0, max(0, 3 - depth)))))
    size_bytes = sum(caller.size_bytes for caller in callers) if callers else draw(st.integers(0, 1 << 40))
    return Line(size_bytes, label, callers)


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    amounts = [draw(st.integers(0, 1 << 50)) for _ in range(3)]
    tree = draw(st.none() | nodes(ROOT))
    return Moment(amounts[0], tree.size_bytes if tree else amounts[1], amounts[2], amounts[0], tree)


COMMANDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(str.strip)


@given(st.lists(moments(), min_size=1, max_size=5), COMMANDS)
def test_what_massif_writes_is_read_again(written: list[Moment], command: str) -> None:
    profile = read_profile(massif(written, command=command), "a text")
    assert profile.command == command.encode().strip().decode()
    for moment, snapshot in zip(written, profile.snapshots, strict=True):
        assert snapshot[1:5] == moment[:4]
        assert (snapshot.tree and lines_of(snapshot.tree)) == moment.tree
    assert {note.slug for note in profile.notes} <= {"heap-no-peak"}
    assert_sound(profile)


CALLS = st.builds(Call, st.text(max_size=4), st.text(max_size=4), st.integers(0, 1 << 40), st.just(""))


@st.composite
def samples_of_pprof(draw: st.DrawFn) -> tuple[list[Location], list[Map], list[Sample]]:
    maps = draw(st.lists(st.builds(Map, *[st.integers(0, (1 << 64) - 1)] * 3, st.text(max_size=4)), max_size=2))
    addrs, calls = st.integers(0, (1 << 64) - 1), st.lists(CALLS, max_size=3).map(tuple)
    locations = draw(st.lists(st.builds(Location, addrs, calls, st.integers(0, len(maps))), min_size=1, max_size=4))
    numbers = st.lists(st.integers(1, len(locations)), max_size=4).map(tuple)
    amounts = st.tuples(*[st.integers(0, 1 << 50)] * 2)
    return locations, maps, draw(st.lists(st.builds(Sample, numbers, amounts), max_size=5))


@given(samples_of_pprof())
def test_what_pprof_writes_is_read_again(written: tuple[list[Location], list[Map], list[Sample]]) -> None:
    locations, maps, samples = written
    profile = read_profile(pprof([("objects", "count"), ("space", "bytes")], samples, locations, maps), "a text")
    assert_sound(profile)
    tree = profile.snapshots[0].tree
    assert tree is not None
    assert (tree.total_blocks, tree.total_bytes) == tuple(sum(one.amounts[at] for one in samples) for at in (0, 1))
    # Each path of a sample is a path of the tree, and ends where the sample has its bytes.
    ends: dict[tuple[tuple[str | None, int | None], ...], int] = {}
    for numbers, (_, size_bytes) in samples:
        calls = [call for one in numbers for call in (locations[one - 1].calls or (Call(""),))]
        path = tuple((call.function or None, call.line or None) for call in calls)
        ends[path] = ends.get(path, 0) + size_bytes
    found: dict[tuple[tuple[str | None, int | None], ...], int] = {}
    for node, size_bytes in enumerate(tree.own_bytes()):
        path = tuple((frame.function, frame.line) for frame in stack(tree, node))
        found[path] = found.get(path, 0) + size_bytes
    assert {path: size for path, size in found.items() if size} == {path: size for path, size in ends.items() if size}


@given(st.sampled_from(sorted(name for name in TEXTS if "massif" in name)), st.data())
def test_in_which_pieces_a_text_comes_changes_nothing(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    assert read_massif(pieces, name) == read_massif([text], name)


def test_a_text_of_many_pieces_is_read_as_one() -> None:
    text = TEXTS["massif-3.19-inline.out.gz"]
    one = text[text.index(b"#-----------\nsnapshot=60") : text.index(b"#-----------\nsnapshot=61")]
    many = text[: text.index(b"#")] + one * (3 * PIECE_BYTES // len(one))
    profile = read_profile(many, "a text")
    assert {lines_of(tree) for tree in trees(profile)} == {lines_of(trees(profile)[0])}
    assert len(profile.snapshots) == 3 * PIECE_BYTES // len(one)


@pytest.mark.parametrize("name", TEXTS)
def test_the_corpus_is_sound_and_conserved(name: str) -> None:
    profile = read_profile(TEXTS[name], name)
    assert_sound(profile)
    if profile.format != "heaptrack massif":
        for tree in trees(profile):
            assert min(tree.own_bytes()) >= 0


STACKS = st.lists(st.tuples(st.lists(st.integers(1, 4), max_size=5), st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(STACKS, st.randoms(use_true_random=False))
def test_the_order_of_stacks_changes_no_amount(rows: list[tuple[list[int], int, int]], random: object) -> None:
    def amounts(some: list[tuple[list[int], int, int]]) -> dict[tuple[int, ...], tuple[int, int]]:
        stacks = CallTreeBuilder()
        ends = [stacks.add(frames) for frames, _, _ in some]
        tree = stacks.tree((), ends, [row[1] for row in some], [row[2] for row in some], "a text")
        assert tree.node_blocks is not None
        result = {}
        for node in range(len(tree)):
            at, path = node, []
            while at > 0:
                path.append(tree.frame_indexes[at])
                at = tree.parents[at]
            result[tuple(path)] = (tree.node_bytes[node], tree.node_blocks[node])
        return result

    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert amounts(shuffled) == amounts(rows)
    assert amounts(rows)[()] == (sum(row[1] for row in rows), sum(row[2] for row in rows))


@given(STACKS)
def test_a_node_has_the_amounts_of_all_stacks_through_it(rows: list[tuple[list[int], int, int]]) -> None:
    stacks = CallTreeBuilder()
    ends = [stacks.add(frames) for frames, _, _ in rows]
    tree = stacks.tree((), ends, [row[1] for row in rows], [row[2] for row in rows], "a text")
    assert tree.node_blocks is not None
    paths: list[list[int]] = [[]]
    for node in range(1, len(tree)):
        paths.append([*paths[tree.parents[node]], tree.frame_indexes[node]])
        assert paths[node] not in paths[:node]
    for path, size_bytes, block_count in zip(paths, tree.node_bytes, tree.node_blocks, strict=True):
        through = [row for row in rows if row[0][: len(path)] == path]
        assert (size_bytes, block_count) == (sum(row[1] for row in through), sum(row[2] for row in through))
    assert [paths[end] for end in ends] == [row[0] for row in rows]


@given(STACKS, st.sets(st.integers(1, 4)))
def test_a_tree_of_stacks_is_charged_as_the_same_tree_of_nodes(
    rows: list[tuple[list[int], int, int]], allocators: set[int]
) -> None:
    stacks = CallTreeBuilder()
    ends = stacks.add_all(array("i", chain.from_iterable(row[0] for row in rows)), [len(row[0]) for row in rows])
    frames = tuple(Frame(addr=addr) for addr in (0, 1, 1, 2, 3))  # 1 may be inlined into 2, or 2 into 1
    tree = stacks.tree(frames, ends, [row[1] for row in rows], [row[2] for row in rows], "a text")
    calls = [NamedCall("lib", f"f{place}", "rule" if place in allocators else "") for place in range(5)]
    nodes = CallTree(frames, tree.parents, tree.frame_indexes, tree.node_bytes, tree.node_blocks)
    assert (tree, tree.own_bytes(), tree.own_blocks()) == (nodes, nodes.own_bytes(), nodes.own_blocks())
    assert attribute(tree, calls) == attribute(nodes, calls)
    assert sorted(charged(tree, calls)) == sorted(charged(nodes, calls))


# --- damage -----------------------------------------------------------------------------------------------------------


@examples(300)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_a_damaged_text_is_read_or_refused(name: str, data: st.DataObject) -> None:
    text = bytearray(TEXTS[name][: 20 * 1024])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        lost_bytes = data.draw(st.sampled_from([0, 1, 1, 4, 100]))
        text[at : at + lost_bytes] = data.draw(
            st.binary(max_size=4)
            | st.sampled_from([b"\n", b" ", b"9" * 30, b"-1", b"\n#", b"ffffffffffffffff", b"\\ud800"])
        )
    profile = read(bytes(text))
    if profile is not None:
        assert_sound(profile)


@given(
    st.sampled_from([b"", b"desc: ", b"v 1 3\n", b"heap profile: ", b"heap_v2/", b"{", b"\x1f\x8b", SPACE]),
    st.binary(max_size=99),
)
def test_any_bytes_are_read_or_refused(start: bytes, rest: bytes) -> None:
    profile = read(start + rest)
    assert profile is None or profile.format in {"heaptrack", "pprof"}


@given(st.integers(0, len(gzip.compress(TEXTS["massif-3.19-default.out"], mtime=0)) - 1), st.integers(0, 255))
def test_damaged_compression_is_read_or_refused(at: int, byte: int) -> None:
    text = bytearray(gzip.compress(TEXTS["massif-3.19-default.out"], mtime=0))
    text[at] = byte
    read(bytes(text))
    read(bytes(text[:at]))


# --- what a hostile text may cost -------------------------------------------------------------------------------------

HEAD = massif([Moment(0, 0)])
SNAPSHOT = massif([Moment(0, 8, tree=Line(8, ROOT))])
SNAPSHOT = SNAPSHOT[SNAPSHOT.index(b"#") :]
RECORDS = b"v 1 3\ns 1 f\ni 1 0 1\nt 1 0\n"
# Where the depth of calls is bounded: the first size is beyond that bound.
SMALLER_BYTES = {"a recursion": 32 << 10, "deep calls": 32 << 10, "calls without a frame": 32 << 10}
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "snapshots": lambda size: HEAD + SNAPSHOT * (size // len(SNAPSHOT)),
    "marks": lambda size: HEAD + b"#-----------\nsnapshot=\n" * (size // 24),
    "strays": lambda size: HEAD + b"n\n#-\n" * (size // 5),
    "newlines": lambda size: HEAD + b"\n" * size,
    "one line": lambda size: HEAD + b"x" * size,
    "an indent": lambda size: SNAPSHOT + b" " * size + b"n0: 1 x\n",
    "roots": lambda size: SNAPSHOT + b"n0: 1 x\n" * (size // 8),
    "a label of parentheses": lambda size: SNAPSHOT + b"n0: 1 0x1: " + b" (a:1" * (size // 5) + b")\n",
    "many labels": lambda size: SNAPSHOT + b"".join(b"n0: 1 0x%X: f\n" % n for n in range(size // 20)),
    "a recursion": lambda size: RECORDS + b"".join(b"t 1 %x\na 1 %x\n" % (n, n) for n in range(1, size // 24)),
    "deep calls": lambda size: (
        RECORDS + b"".join(b"i %x 0 1\nt %x %x\na 1 %x\n" % (n, n, n, n) for n in range(1, size // 40))
    ),
    "calls without a frame": lambda size: (
        RECORDS + b"i x\n" + b"".join(b"t 2 %x\na 1 %x\n" % (n, n) for n in range(1, size // 24))
    ),
    "an address of many frames": lambda size: (
        RECORDS
        + b"i 2 0"
        + b" 1 0 0" * (size // 12)
        + b"\n"
        + b"".join(b"t 2 %x\na 1 %x\n" % (n, n) for n in range(1, size // 48))
    ),
    "one trace": lambda size: RECORDS + b"a 1 1\n+ 0\n" * (size // 10),
    "a long stack": lambda size: b"heap profile: 1: 1 [0: 0] @\n 1: 1 [0: 0] @" + b" 0x1" * (size // 4),
    "braces": lambda size: b'{"dhatFileVersion":' + b"[" * size,
    "points": lambda size: b'{"dhatFileVersion":2,"pps":[' + b'{"fs":[]},' * (size // 10) + b"{}]}",
    "long points": lambda size: (
        b'{"dhatFileVersion":2,"pps":[' + b'{"fs":[0],"tb":1000000000,"tbk":1},' * (size // 34) + b"{}]}"
    ),
    "fs": lambda size: b'{"dhatFileVersion":2' + b'"fs":]' * (size // 6),
    "locations": lambda size: SPACE + b"".join(message(4, number(1, n)) for n in range(2, size // 6)),
    "empty strings": lambda size: SPACE + b"\x32\x00" * (size // 2),
    "empty samples": lambda size: SPACE + b"\x12\x02\x10\x01" * (size // 4),
    "a location of many calls": lambda size: (
        SPACE
        + message(4, number(1, 2) + b"\x22\x00" * (size // 4))
        + message(2, packed(1, [1] * (size // 4)) + packed(2, [1]))
    ),
    "a trace of one block": lambda size: b"= Start\n" + b"@ [0x1] + 0x1 0x1\n" * (size // 18),
    "callers": lambda size: b"= Start\n" + b"".join(b"@ [0x%x] + 0x%x 0x1\n" % (n, n) for n in range(size // 24)),
    "leaks": lambda size: LEAK + b"Direct leak of 1 byte(s) in 1 object(s)\n    #0 0x1 in f a.c:1\n" * (size // 72),
    "a leak of many calls": lambda size: (
        LEAK + b"Direct leak of 1 byte(s) in 1 object(s)\n" + b"    #0 0x1 in f (/a+0x1)\n" * (size // 25)
    ),
    "a caller of parentheses": lambda size: b"= Start\n@ " + b":(" * (size // 2) + b" + 0x1 0x1\n",
    "a call of dots": lambda size: (
        LEAK + b"Direct leak of 1 byte(s) in 1 object(s)\n    #0 0x1 in f " + b"." * size + b" (\n"
    ),
    "a call of spaces": lambda size: (
        LEAK + b"Direct leak of 1 byte(s) in 1 object(s)\n    #0 0x1 in f" + b" (a" * (size // 3) + b"\n"
    ),
    "a call of Go": lambda size: (
        b"heap profile: 1: 1 [0: 0] @ heap/2\n1: 1 [0: 0] @ 0x1\n#\t0x1\n#\t0x1\tf" + b"+0x1\ta:" * (size // 7) + b"\n"
    ),
    "spaces before native memory": lambda size: b"1:" + b" " * size,
    "nodes of V8": lambda size: b'{"head":{"callFrame":' + b'{"children":[' * (size // 13),
    "long nodes of V8": lambda size: b'{"head":{"callFrame":' + b'{"selfSize":1000000,"children":[' * (size // 32),
    "arenas": lambda size: (
        b"<malloc version=" + b'<heap nr="1"><system type="current" size="1"/></heap>' * (size // 50) + b"</malloc>\n"
    ),
    "categories": lambda size: b"Native Memory Tracking:\n" + b"- A (reserved=1, committed=1)\n" * (size // 30),
    "a text of Go": lambda size: (
        b"heap profile: 1: 1 [0: 0] @ heap/2\n" + b"1: 1 [0: 0] @ 0x1\n#\t0x1\n" * (size // 24)
    ),
    "a compressed text": lambda size: gzip.compress(HEAD + b"\n" * (size * 8)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_costs_work_and_memory_near_its_size(kind: str) -> None:
    def read_or_refuse(text: bytes) -> None:
        try:
            profile = read_profile(text, "a text")
        except InputError as error:
            is_unknown = "not a profile of" in error.cause
            assert is_unknown == (kind == "spaces before native memory"), "its reader did not see it"
        else:
            assert profile.peak_index is None or profile.peak is not None

    assert_linear(HOSTILE[kind], read_or_refuse, SMALLER_BYTES.get(kind, 8 << 10))
    text = HOSTILE[kind](MIB // 16)
    tracemalloc.start()
    try:
        read_or_refuse(text)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB + 200 * len(text)
    finally:
        tracemalloc.stop()
