"""A recording of heaptrack, read in bulk, says what is read from it line by line."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.heap import heaptrack_events
from footprint.heap.formats import read_profile
from footprint.heap.heaptrack import read_heaptrack
from footprint.heap.profile import CallTree, Profile
from tests.examples import examples

SIZES = (0, 16, 16, 100, 4096)
HEAD = b"v 10400 3\nX ./a\ns 1 f\ni 1 0 1\n" + b"".join(
    b"t 1 %x\na %x %x\n" % (number, size, number + 1) for number, size in enumerate(SIZES)
)


class LineByLine:
    """What `read_profile` should find: the rules of a recording, without any speed."""

    def __init__(self, lines: list[bytes]) -> None:
        self.live, self.ever, self.temporary = Counter[int](), Counter[int](), Counter[int]()
        self.live_bytes = self.peak_bytes = self.time = self.skipped_count = 0
        self.at_peak, self.peak_time = Counter[int](), 0
        self.last: bytes | None = None
        for line in lines:
            self.read(line)

    def read(self, line: bytes) -> None:
        sign, _, rest = line.partition(b" ")
        try:
            number = int(rest, 16)
        except ValueError:
            number = -1
        if number < 0 or (sign != b"c" and number >= len(SIZES)):
            self.skipped_count += 1
            self.last = None
            return
        if sign == b"c":
            self.time = number
        elif sign == b"+":
            self.live[number] += 1
            self.ever[number] += 1
            self.live_bytes += SIZES[number]
            self.last = rest
            if self.live_bytes > self.peak_bytes:
                self.peak_bytes, self.peak_time, self.at_peak = self.live_bytes, self.time, self.live.copy()
        elif not self.live[number]:
            self.skipped_count += 1
            self.last = None
        else:
            self.live[number] -= 1
            self.live_bytes -= SIZES[number]
            self.temporary[number] += rest == self.last
            self.last = None


def blocks(tree: CallTree | None) -> Counter[int]:
    """Return the blocks of each class: that of class 0 has one call, that of class 1 two."""
    assert tree is not None
    assert tree.node_blocks is not None
    found = Counter[int]()
    for number, count in enumerate(tree.own_blocks() or ()):
        found[number - 1] += count
    return +found


def assert_equal(profile: Profile, expected: LineByLine) -> None:
    assert profile.peak is not None
    assert (profile.peak.live_bytes, profile.peak.time) == (expected.peak_bytes, expected.peak_time)
    assert blocks(profile.peak.tree) == +expected.at_peak
    assert profile.snapshots[-1].live_bytes == expected.live_bytes
    assert blocks(profile.snapshots[-1].tree) == +expected.live
    tallies = {tally.name: blocks(tally.tree) for tally in profile.tallies}
    assert tallies == {"allocated": +expected.ever, "temporary": +expected.temporary}
    unread = [note.detail for note in profile.notes if note.slug == "heap-lines-unread"]
    assert [detail.split()[0] for detail in unread] == ([str(expected.skipped_count)] if expected.skipped_count else [])


CLASSES = st.integers(0, len(SIZES) - 1)
EVENTS = st.one_of(
    CLASSES.map(lambda number: [b"+ %x" % number]),
    CLASSES.map(lambda number: [b"- %x" % number]),
    CLASSES.map(lambda number: [b"+ %x" % number, b"- %x" % number]),
    st.tuples(CLASSES, CLASSES).map(lambda two: [b"+ %x" % two[0], b"+ %x" % two[1], b"- %x" % two[1]]),
    st.integers(0, 99).map(lambda time: [b"c %x" % time]),
)
DAMAGED = st.sampled_from([[b"+ 9"], [b"- 9"], [b"+ x"], [b"- "], [b"+ -1"], [b"+ 9", b"- 9"], [b"- 00"], [b"+ 0X1"]])


@st.composite
def recordings(draw: st.DrawFn, of: st.SearchStrategy[list[bytes]]) -> list[bytes]:
    """Draw lines in which a few events are repeated, as in a loop."""
    runs = draw(st.lists(st.tuples(st.lists(of, max_size=8), st.integers(1, 12)), max_size=8))
    return [line for run, times in runs for _ in range(times) for event in run for line in event]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits so small that a short text reaches them."""
    for name, limit in (("_FEW_BLOCKS", 3), ("_LINES_OF_ITERATORS", (16, 64)), ("_LINES_AFTER_PEAK", 4)):
        monkeypatch.setattr(heaptrack_events, name, limit)


@examples(300)
@given(recordings(EVENTS), st.integers(1, 400))
def test_a_recording_says_what_its_lines_say(lines: list[bytes], piece_bytes: int) -> None:
    text = HEAD + b"\n".join(lines) + b"\n"
    pieces = (text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes))
    assert_equal(read_heaptrack(pieces, "a text"), LineByLine(lines))


@examples(300)
@given(recordings(EVENTS | DAMAGED))
def test_damaged_lines_are_left_out_of_a_recording(lines: list[bytes]) -> None:
    assert_equal(read_profile(HEAD + b"\n".join(lines), "a text"), LineByLine(lines))


def many_classes() -> Iterator[bytes]:
    for _ in range(20):
        for number in range(len(SIZES)):
            yield from (b"+ %x" % number, b"+ %x" % number, b"- %x" % number)


def test_more_classes_than_have_iterators_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heaptrack_events, "_MOST_ITERATED_CLASSES", 2)
    lines = list(many_classes())
    assert_equal(read_profile(HEAD + b"\n".join(lines), "a text"), LineByLine(lines))
