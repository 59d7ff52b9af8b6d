"""The formats of heap profiles: each is recognised by its first bytes."""

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.address_rows import (
    looks_like_go,
    looks_like_gperftools,
    looks_like_jemalloc,
    read_go,
    read_gperftools,
    read_jemalloc,
)
from footprint.heap.dhat import looks_like_dhat, read_dhat
from footprint.heap.heaptrack import looks_like_heaptrack, read_heaptrack
from footprint.heap.leaksanitizer import looks_like_leaksanitizer, read_leaksanitizer
from footprint.heap.malloc_info import looks_like_malloc_info, read_malloc_info
from footprint.heap.massif import looks_like_massif, read_massif, read_massif_parts
from footprint.heap.mtrace import looks_like_mtrace, read_mtrace
from footprint.heap.nmt import looks_like_nmt, read_nmt
from footprint.heap.pprof import looks_like_pprof, read_pprof
from footprint.heap.profile import Buffer, Profile
from footprint.heap.v8 import looks_like_v8, read_v8
from footprint.members import NamedTuple, lazy_pattern, replace
from footprint.system.decompression import pieces_of
from footprint.text.units import counted


class HeapFormat(NamedTuple):
    """One format of heap profiles.

    Attributes:
        name: The name for messages.
        looks_like: Returns whether the first bytes of a text are those of this format.
        read: Reads a profile from the pieces of its text and the name for messages.
    """

    name: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Iterable[bytes], str], Profile]


FORMATS: Final = (
    HeapFormat("massif", looks_like_massif, read_massif),
    HeapFormat("DHAT", looks_like_dhat, read_dhat),
    HeapFormat("heaptrack", looks_like_heaptrack, read_heaptrack),
    # The first line of Go's text is one of gperftools' too.
    HeapFormat("Go", looks_like_go, read_go),
    HeapFormat("gperftools", looks_like_gperftools, read_gperftools),
    HeapFormat("jemalloc", looks_like_jemalloc, read_jemalloc),
    HeapFormat("pprof", looks_like_pprof, read_pprof),
    HeapFormat("V8", looks_like_v8, read_v8),
    HeapFormat("mtrace", looks_like_mtrace, read_mtrace),
    HeapFormat("malloc_info", looks_like_malloc_info, read_malloc_info),
    HeapFormat("NMT", looks_like_nmt, read_nmt),
    # The report may be anywhere in the output of a program.
    HeapFormat("LeakSanitizer", looks_like_leaksanitizer, read_leaksanitizer),
)
"""All formats. A new one is a module with these two functions, and a line here."""

# Those that other text may precede. LeakSanitizer's is found anywhere, and pprof's is no text.
_BEHIND_TEXT: Final = tuple(form for form in FORMATS if form.name not in {"pprof", "LeakSanitizer"})
_MOST_LINES_BEFORE: Final = 1000
_START_BYTES: Final = 1 << 12
_LONGEST_LINE: Final = 80

# Files that are not read, by their first bytes: what they are, and what to do instead.
_REFUSED: Final = tuple(
    (lazy_pattern(start, re.DOTALL), cause)
    for start, cause in (
        (rb"\xff\xfe|\xfe\xff", "a text in UTF-16: `iconv -f UTF-16 -t UTF-8` makes it one that can be read"),
        (rb"# callgrind format", "an XTree in callgrind's format: Valgrind writes massif's to a file named `*.ms`"),
        (rb"-{80}\nCommand:", "the output of ms_print: read the file that it was made from"),
        (rb"--- symbol\n", "a profile that pprof or jeprof has rewritten: read the one that it was made from"),
        (
            rb"(?:\x04\x22\x4d\x18.{1,24})?memray\0",
            "a recording of memray: `memray table` shows it; footprint reads a recording of `heaptrack python3 ...`",
        ),
        (
            rb"\x80[\x02-\x05].{0,32}tracemalloc",
            (
                "a snapshot of tracemalloc is a pickle, which can run code, so it is not opened: Python shows it with "
                "`tracemalloc.Snapshot.load(FILE).statistics('lineno')`; footprint reads `heaptrack python3 ...`"
            ),
        ),
        (
            rb'\{"snapshot":\{"meta"',
            (
                "a heap snapshot of V8, which has objects and no calls: Chrome's developer tools show it; footprint "
                "reads the sampled profile of `node --heap-prof`"
            ),
        ),
        (
            rb"(?:goroutine|threadcreate) profile: |--- (?:contention|mutex):",
            "a profile of Go, not of memory: that one is at `/debug/pprof/heap`",
        ),
        (rb"\0{8}\x03\0{7}\0{8}", "a CPU profile of gperftools, not of memory: HEAPPROFILE writes that one"),
        (rb"PERFILE2", "a recording of perf, not of memory"),
        (
            rb"JAVA PROFILE 1|FLR\0",
            (
                "a heap dump or flight recording of Java, whose objects are in Java's own heap: tools of the JDK read "
                "it; footprint reads `jcmd PID VM.native_memory`"
            ),
        ),
    )
)


def looks_like_profile(data: Buffer, name: str) -> bool:
    """Return whether a file is a heap profile that footprint can read, compressed or not.

    Raises:
        InputError: Where it is compressed, and its first bytes are damaged.
        UnsupportedError: Where this Python cannot decompress it.
    """
    return _format_of(_opened(data, name).start) is not None


def read_profile(data: Buffer, name: str, choose: Callable[[Profile], Collection[int]] | None = None) -> Profile:
    """Read a heap profile of any format.

    Args:
        data: The file, also compressed with gzip, bzip2 or zstd.
        name: Its name for messages.
        choose: For massif only: takes the profile without its trees, and returns the indexes of the snapshots whose
            trees to build. To read one of 1,000 trees takes a tenth of the time. Other formats have few trees, which
            are all built.

    Raises:
        InputError: Where no format fits, or the file is so damaged that nothing is left.
        UnsupportedError: Where the variant of its format is not supported.
    """
    text = _opened(data, name)
    if not text.start:
        raise InputError(name, "the file is empty: the profiler recorded nothing, or was killed before it wrote", 0)
    heap_format = _format_of(text.start)
    if heap_format is None:
        for begin, cause in _REFUSED:
            if begin.match(text.start):
                raise UnsupportedError(name, cause, 0)
        *others, last = [form.name for form in FORMATS]
        raise InputError(name, f"not a profile of {', '.join(others)} or {last}", 0)
    if choose is None or heap_format.looks_like is not looks_like_massif:
        profile = heap_format.read(text.pieces, name)
    else:
        # Its places are those of the file, where nothing was unpacked, replaced or left out.
        plain = memoryview(data) if bytes(data[: len(text.start)]) == text.start else None
        profile = read_massif_parts(plain, lambda: _opened(data, name).pieces, name, choose)
    return replace(profile, notes=(*_lines_before(text.before, name), *profile.notes))


def _lines_before(before: bytes, name: str) -> Iterator[Note]:
    if lines := [line for line in before.split(b"\n") if line.strip()]:
        first = lines[0][:_LONGEST_LINE].decode("utf-8", "replace")
        detail = f"{counted(len(lines), 'line')} before the profile, left out: {first!r}"
        yield Note("heap-lines-unread", name, detail)


def _format_of(start: bytes) -> HeapFormat | None:
    return next((form for form in FORMATS if form.looks_like(start)), None)


class _Text(NamedTuple):
    """A text: the lines before the profile in it, the first piece of the profile, and all pieces."""

    before: bytes
    start: bytes
    pieces: Iterator[bytes]


def _opened(data: Buffer, name: str) -> _Text:
    pieces = _text_of(data, name)
    start = next(pieces, b"").removeprefix(codecs.BOM_UTF8)
    place = 0 if _format_of(start) is not None else _place_in(start)
    return _Text(start[:place], start[place:], chain((start[place:],), pieces))


def _place_in(text: bytes) -> int:
    """Return where a profile begins behind empty lines, or behind the log of a program; 0 where none does."""
    place = 0
    for _ in range(_MOST_LINES_BEFORE):
        place = text.find(b"\n", place) + 1
        if not place:
            return 0
        if any(form.looks_like(text[place : place + _START_BYTES]) for form in _BEHIND_TEXT):
            return place
    return 0


def _text_of(data: Buffer, name: str) -> Iterator[bytes]:
    """Decompress a profile in pieces, and replace the ends of lines that a terminal wrote (`kubectl exec -t`)."""
    pieces = pieces_of(data, name)
    start = next(pieces, b"")
    pieces = chain((start,), pieces)
    first_line, end, _ = start.partition(b"\n")
    is_from_terminal = first_line.endswith(b"\r") and end and b"\0" not in first_line
    return _without_returns(pieces) if is_from_terminal else iter(pieces)


def _without_returns(pieces: Iterable[bytes]) -> Iterator[bytes]:
    carry = b""
    for piece in pieces:
        text = carry + piece
        carry = b"\r" if text.endswith(b"\r") else b""
        yield text.removesuffix(b"\r").replace(b"\r\n", b"\n")
    yield carry
