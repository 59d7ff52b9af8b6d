"""Laws of attribution: nothing is lost or counted twice, whatever the stacks, and damage is one of our errors."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import footprint
from footprint.attribution.heap_places import Binary
from footprint.attribution.heap_usage import heap_usage, name_frames
from footprint.elf.functions import read_functions
from footprint.elf.image import read_image
from footprint.errors import FootprintError, InputError
from footprint.formats.text import plain
from footprint.heap.allocators import Allocators
from footprint.heap.attribution import callees, callers
from footprint.heap.formats import read_profile
from footprint.heap.massif import read_massif
from footprint.heap.profile import CallTree, Profile
from footprint.json.answer import write
from footprint.terminal import draw
from footprint.verbs.heap.json import heap_members
from footprint.verbs.heap.text import HeapView, heap_document
from tests.examples import examples
from tests.massifwriter import ROOT, Line, Moment, massif

FOLDER = Path(__file__).resolve().parents[2]
CORPUS = FOLDER / "tests" / "corpus" / "heap"
TEXTS = {
    path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for folder in (CORPUS, FOLDER / "sample_binaries" / "heap_by_function")
    for path in sorted(folder.iterdir())
    if path.name.startswith(("massif", "dhat", "heap", "xt")) and path.suffix not in {".c", ".kcg", ""}
}
LABELS = st.sampled_from(
    [
        "0x10: malloc (in /a.so)",
        "0x10: append (a.c:3)",
        "0x11: xmalloc (in /a.so)",
        "0x11: load (in /a.so)",
        "0x12: load (in /b.so)",
        "0x13: ??? (in /b.so)",
        "0x14: ??? (in /b.so)",
        "0x15: ???",
        "in 3 places, all below massif's threshold (1.00%)",
    ]
)


@st.composite
def nodes(draw: st.DrawFn, label: str, depth: int = 0) -> Line:
    """Draw a tree in which callers add up, or leave something out."""
    below = tuple(draw(nodes(draw(LABELS), depth + 1)) for _ in range(draw(st.integers(0, max(0, 4 - depth)))))
    own_bytes = draw(st.integers(0, 1 << 30)) if not below or draw(st.booleans()) else 0
    return Line(own_bytes + sum(one.size_bytes for one in below), label, below)


def ends(tree: CallTree) -> int:
    return sum(tree.own_bytes())


@examples(300)
@given(st.text(st.sampled_from("<>()[]{}&*, :~sa0"), max_size=40), st.sampled_from(["", "std::", "<alloc::", "void "]))
def test_every_name_is_or_is_no_allocation_function(name: str, before: str) -> None:
    allocators = Allocators(["pool_*"])
    assert isinstance(allocators.rule_of(before + name), str)
    assert allocators.rule_of(f"pool_{name}") == "--alloc-fn"


@examples(150)
@given(nodes(ROOT))
def test_every_byte_has_one_function_in_every_view(root: Line) -> None:
    profile = read_profile(massif([Moment(0, root.size_bytes, tree=root, is_peak=True)]), "a text")
    usage = heap_usage("a text", profile, 0, name_frames(profile, "a text", Allocators()))
    assert usage.attribution is not None
    assert usage.tree is not None
    total_bytes = root.size_bytes
    assert sum(share.size_bytes for share in usage.attribution.shares) == total_bytes
    assert sum(share.size_bytes for share in usage.attribution.owners) == total_bytes
    assert len({(share.owner, share.function) for share in usage.attribution.shares}) == len(usage.attribution.shares)
    for grown in (callers(usage.tree, usage.calls), callees(usage.tree, usage.calls)):
        assert grown.total_bytes == ends(grown) == total_bytes
        assert min(grown.own_bytes()) >= 0
    shares = {(share.owner, share.function): share.size_bytes for share in usage.attribution.shares}
    grown = callers(usage.tree, usage.calls)
    first: dict[tuple[str | None, str | None], int] = {}
    for node in range(1, len(grown)):
        if grown.parents[node] == 0:
            frame = grown.frame(node)
            first[frame.object, frame.function] = first.get((frame.object, frame.function), 0) + grown.node_bytes[node]
    # Who asked stands first in the tree of callers.
    rest_bytes = total_bytes - sum(first.values())
    assert {place: size for place, size in first.items() if size} == {
        place: size for place, size in shares.items() if "no call stack" not in place[0]
    }
    assert rest_bytes == sum(size for place, size in shares.items() if "no call stack" in place[0])


def shown(profile: Profile, name: str) -> None:
    """Show a profile in every way; whatever it holds, that works."""
    named = name_frames(profile, name, Allocators())
    places = [*profile.tree_places, None]
    for place in {places[0], places[len(places) // 2], places[-1]}:
        usage = heap_usage(name, profile, place, named)
        if usage.attribution is not None and usage.tree is not None:
            assert sum(share.size_bytes for share in usage.attribution.shares) == usage.tree.total_bytes
        for by in ("function", "tree", "callers"):
            document = heap_document([usage], usage.notes, view=HeapView(by, threshold_percent=0))
            assert plain(document).isprintable() or "\n" in plain(document)
            assert draw(document, 80, has_colour=False)
        heap_document([usage, usage], usage.notes)
        write(heap_members([usage], usage.notes, "0", by="callers"))


@pytest.mark.parametrize("name", TEXTS)
def test_every_profile_of_the_corpus_can_be_shown_in_every_way(name: str) -> None:
    shown(read_profile(TEXTS[name], name), name)


@examples(150)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_a_profile_that_is_cut_anywhere_is_shown_or_refused(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    end = data.draw(st.integers(0, len(text)))
    try:
        profile = read_profile(text[:end], "a text", lambda known: known.tree_places[-1:])
    except FootprintError:
        return
    shown(profile, "a text")


@examples(150)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_a_profile_with_other_bytes_in_it_is_shown_or_refused(name: str, data: st.DataObject) -> None:
    text = bytearray(TEXTS[name])
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(text) - 1))
        junk = data.draw(st.binary(min_size=1, max_size=6))
        text[place : place + len(junk)] = junk
    try:
        profile = read_profile(bytes(text), "a text")
    except FootprintError:
        return
    shown(profile, "a text")


@given(st.sampled_from(sorted(name for name in TEXTS if "massif" in name and "xtm" not in name)), st.data())
def test_in_which_pieces_a_text_comes_changes_nothing_of_what_is_wanted(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    wanted = data.draw(st.sets(st.integers(0, 70), max_size=2))
    whole = read_massif([text], name)
    found = read_massif(pieces, name, wanted)
    assert found == read_massif([text], name, wanted)
    assert (found.command, found.time_unit, found.tree_places) == (whole.command, whole.time_unit, whole.tree_places)
    assert [snapshot[:5] for snapshot in found.snapshots] == [snapshot[:5] for snapshot in whole.snapshots]
    assert {place for place, snapshot in enumerate(found.snapshots) if snapshot.tree} == wanted & set(whole.tree_places)


DAMAGE = (
    b"",
    b"\n",
    b"\n#",
    b"\n#-----------\n",
    b" ",
    b"n1: 5 f\n",
    b"heap_tree=empty\n",
    b"\ndesc: a\ncmd: b\ntime_unit: i\n",
)


@given(st.sampled_from(sorted(name for name in TEXTS if "massif" in name and "xtm" not in name)), st.data())
def test_trees_are_read_from_their_places_as_with_the_whole_text(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    start = data.draw(st.integers(text.index(b"heap_tree"), len(text)))
    end = data.draw(st.sampled_from((start, start + 1, start + 200, text.find(b"\n", start) + 1 or start, len(text))))
    text = text[:start] + data.draw(st.sampled_from(DAMAGE)) + text[end:] + data.draw(st.sampled_from((b"", text)))
    step, wanted = data.draw(st.integers(1, 9)), set[int]()

    def choose(profile: Profile) -> set[int]:
        wanted.update(profile.detailed_places[::step], profile.detailed_places[-1:])
        return wanted

    try:
        found = read_profile(text, name, choose)
    except InputError:
        return
    if found.format != "xtree":
        assert found == read_massif([text], name, wanted)


def test_the_library_call_says_the_same_of_each_moment_as_the_whole_profile() -> None:
    path = str(FOLDER / "sample_binaries" / "heap_by_function" / "massif.out")
    whole = read_profile(Path(path).read_bytes(), path)
    for place in whole.tree_places:
        (usage,) = footprint.heap_profile(path, at=str(whole.snapshots[place].number)).files
        tree = whole.snapshots[place].tree
        assert tree is not None
        assert usage.attribution is not None
        assert usage.attribution.total_bytes == tree.total_bytes


@examples(150)
@given(st.data())
def test_a_damaged_binary_names_functions_or_is_refused(data: st.DataObject) -> None:
    folder = FOLDER / "sample_binaries" / "heap_by_function"
    binary = bytearray((folder / data.draw(st.sampled_from(["heap", "libtable.so"]))).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(binary) - 1))
        junk = data.draw(st.binary(min_size=1, max_size=8))
        binary[place : place + len(junk)] = junk
    try:
        image = read_image(bytes(binary[: data.draw(st.integers(0, len(binary)))]), "a file")
        functions = read_functions(image)
    except InputError:
        return
    profile = read_profile(TEXTS["massif.out"], "a text")
    known = [Binary("/a/file", image, functions)]
    usage = heap_usage("a text", profile, 13, name_frames(profile, "a text", Allocators(), known))
    assert usage.attribution is not None
    assert sum(share.size_bytes for share in usage.attribution.shares) == 180_000
