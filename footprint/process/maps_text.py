"""The texts of `/proc/PID/maps`, `smaps` and `smaps_rollup`, of every kernel since 2.6.14.

Keys, flags and lines that are unknown today are kept. Nothing here opens a file.

Source: fs/proc/task_mmu.c of Linux 2.6.14 to 6.18; Documentation/filesystems/proc.rst.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from footprint.errors import InputError, Note
from footprint.members import lazy_pattern
from footprint.process.mappings import Counters, Mapping, MemoryMap

_HEADER: Final = (
    rb"([0-9a-f]{8,16})-([0-9a-f]{8,16}) ([r-][w-][x-][ps]) ([0-9a-f]{1,16}) "
    rb"([0-9a-f]{1,8}:[0-9a-f]{1,8}) ([0-9]{1,20})((?: [^\n]*)?)\n"
)
# Kernels of Android print the name of anonymous memory in a line of its own.
_NAME: Final = rb"(?:Name:[ \t]+([^\n]*)\n)?"
_HEADER_LINES: Final = re.compile(_HEADER + _NAME)
_KEY_LINE: Final = re.compile(rb"([A-Za-z_][A-Za-z0-9_()]{0,63}):[ \t]+([0-9]{1,20}(?: kB)?)[ \t]*\n")
_ROLLUP_HEADER: Final = lazy_pattern(rb"[0-9a-f]{8,16}-[0-9a-f]{8,16} ---p 0+ 00:00 0 +\[rollup\][ \t\r]*")
_ROLLUP_LINE: Final = lazy_pattern(rb"[A-Z][A-Za-z_]{0,63}:[ \t]+[0-9]{1,20} kB[ \t\r]*")
# What shell loops print between texts: a path of /proc, `PID 4711`, `== 4711 ==`, a number alone.
_PID_BETWEEN: Final = lazy_pattern(rb"/proc/([0-9]{1,10})\b|(?i:\bpid)\W{0,3}([0-9]{1,10})\b|^\W*([0-9]{1,10})\b")
_FLAGS_LINE: Final = re.compile(rb"VmFlags:([^\n]*)\n")
# A block ends where the next header begins.
_BLOCK_END: Final = rb"(?=[0-9a-f]{8,16}-|\Z)"
# A block in three parts: the addresses, the rest of the header, and the lines below it.
_BLOCK: Final = re.compile(rb"([0-9a-f]{8,16})-([0-9a-f]{8,16}) ([^\n]*+)\n((?:[A-Z][^\n]*+\n){0,512})" + _BLOCK_END)
# Each kernel prints one or two sets of keys. A text with more sets is read line by line.
_MOST_SHAPES: Final = 16
_MOST_SHARED: Final = 4096
_MOST_UNKNOWN_LINES: Final = 1 << 16
_MOST_UNKNOWN_OF_EACH: Final = 16  # a future kernel may print lines of a new form in each of very many mappings
_MOST_KEYS: Final = 256
_MOST_DIGITS: Final = 20
_CHUNK_BYTES: Final = 1 << 20
_MOST_BLOCK_BYTES: Final = 4 << 20  # a header and its counters are less than 10 KiB


def looks_like_maps(text: bytes) -> bool:
    """Return whether a text is maps or smaps: one of its first lines is a header."""
    return any(_HEADER_LINES.match(line + b"\n") for line in text[:4096].split(b"\n")[:5])


def parse_maps(text: bytes | Iterable[bytes], source: str, cache: "BlockCache | None" = None) -> MemoryMap:
    """Read `maps` or `smaps`; also `smaps_rollup`, as one mapping.

    Args:
        text: The text, or its pieces: a large text need not be in memory as a whole.
        source: The name of the text, for messages.
        cache: The blocks of the texts of similar processes, to which those of this text are added.

    Returns:
        The mappings; none for an empty text, which is that of kernel threads and zombies.

    Raises:
        InputError: Where the text is not empty, but no line is a mapping.
    """
    reader = _Reader(source, cache or BlockCache())
    for blocks in _whole_blocks(_chunks(text)):
        reader.read(blocks)
    return reader.finish()


def parse_rollup(text: bytes, source: str) -> Counters | None:
    """Read `smaps_rollup`, the sums over all mappings; return None where the process has no memory.

    Raises:
        InputError: Where the text has another form.
    """
    mappings = parse_maps(text, source).mappings
    if not mappings:
        return None
    if len(mappings) > 1 or mappings[0].name != "[rollup]":
        raise InputError(source, "not smaps_rollup: that has one header, with the name [rollup]", 0)
    return mappings[0].counters


def split_rollups(text: bytes) -> list[tuple[int | None, bytes]]:
    """Cut the texts of `smaps_rollup` of several processes that stand one after the other, as a shell loop prints them.

    Returns:
        The PID that a line before each text names, or None, and the text without such lines; nothing where the text
        is not at least two of them.
    """
    if text.count(b"[rollup]") < 2:
        return []
    texts: list[tuple[int | None, list[bytes]]] = []
    pid: int | None = None
    for line in text.split(b"\n"):
        if _ROLLUP_HEADER.fullmatch(line):
            texts.append((pid, [line]))
            pid = None
        elif texts and _ROLLUP_LINE.fullmatch(line):
            texts[-1][1].append(line)
        elif _HEADER_LINES.match(line + b"\n"):
            return []  # whole mappings, too
        elif match := _PID_BETWEEN.search(line):
            pid = int(next(filter(None, match.groups())))
    return [(number, b"\n".join(lines) + b"\n") for number, lines in texts]


def saved_rollup(text: bytes | None, source: str) -> Counters | None:
    """Read a saved `smaps_rollup`, which is a cross-check; return None where there is none, or it is damaged."""
    try:
        return None if text is None else parse_rollup(text, source)
    except InputError:
        return None


def _chunks(text: bytes | Iterable[bytes]) -> Iterator[bytes]:
    if not isinstance(text, bytes):
        yield from text
        return
    for start in range(0, len(text), _CHUNK_BYTES):
        yield text[start : start + _CHUNK_BYTES]


def _whole_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the text between blocks: each part ends where a header line begins."""
    carry: list[bytes] = []
    carried_bytes = 0
    behind = iter(chunks)
    following = next(behind, b"")
    for chunk in behind:
        part, following = following, chunk
        cut = _last_header(part)
        if not cut and carried_bytes + len(part) > _MOST_BLOCK_BYTES:
            # No kernel prints such a block, or small chunks have cut the headers.
            part = b"".join([*carry, part])
            carry = []
            cut = _last_header(part) or part.rfind(b"\n") + 1 or len(part)
        if cut:
            yield b"".join([*carry, part[:cut]])
            carry, carried_bytes = [part[cut:]], len(part) - cut
        else:
            carry.append(part)
            carried_bytes += len(part)
    # Nothing follows the last chunk: it is whole, and most texts have no other.
    yield b"".join([*carry, following])


def _last_header(chunk: bytes) -> int:
    """Return where the last header line begins, or 0."""
    # Half a block is below 1 KiB. A name may be long; a header that is missed only makes the part larger.
    start = max(0, len(chunk) - 16384)
    at = chunk.rfind(b"\n", start)
    while at >= 0:
        if _HEADER_LINES.match(chunk, at + 1):
            return at + 1
        at = chunk.rfind(b"\n", start, at)
    # Compiled only here: compiling takes as long as reading a dozen blocks.
    return max((match.end() for match in re.finditer(rb"\n(?=" + _HEADER + rb")", chunk)), default=0)


class BlockCache:
    """Reads blocks that differ from an earlier block only in their addresses.

    The mappings of a large process differ in little else, nor do those of processes of one program, so the rest of the
    header and the lines below it are looked up as whole strings. `benchmarks/smaps.py` shows the gain.
    """

    def __init__(self) -> None:
        self._headers: dict[bytes, tuple[str, int | None, str | None, int | None, str]] = {}
        self._bodies: dict[bytes, tuple[Counters, str | None]] = {}
        self._next: re.Match[bytes] | None = None

    def read(self, text: bytes, position: int, mappings: list[Mapping]) -> int:
        """Append the mappings of known blocks; return where the first unknown block begins."""
        headers, bodies, match = self._headers, self._bodies, _BLOCK.match
        least_addr = mappings[-1].end_addr if mappings else 0
        while block := match(text, position):
            start, end, header, body = block.groups()
            facts, counted = headers.get(header), bodies.get(body)
            start_addr, end_addr = int(start, 16), int(end, 16)
            if facts is None or counted is None or not least_addr <= start_addr <= end_addr:
                break
            mappings.append(Mapping(start_addr, end_addr, *facts, *counted))
            least_addr, position = end_addr, block.end()
        self._next = block
        return position

    def learn(self, mapping: Mapping) -> None:
        """Remember the mapping that was read from the block at which `read` stopped."""
        block = self._next
        if block and int(block[1], 16) == mapping.start_addr and not block[4].startswith(b"Name:"):
            if len(self._headers) < _MOST_SHARED:
                self._headers[block[3]] = mapping[2:7]
            if len(self._bodies) < _MOST_SHARED:
                self._bodies[block[4]] = (mapping.counters, mapping.vm_flags)


_Block = tuple[Sequence[bytes], tuple[int, ...], bytes, int]
"""The fields of a header, the bytes of each key, the flags, and where the block ends."""


class _Shape:
    """The keys of a block in their order, with a pattern that reads the lines of such a block at once."""

    def __init__(self, keys: tuple[bytes, ...], *, has_flags: bool) -> None:
        self.keys = {key.decode("ascii"): place for place, key in enumerate(keys)}
        # To compile the form of an amount for each line costs more than the pattern: `_Amounts` checks it.
        lines = [re.escape(key) + rb":(.+)\n" for key in keys]
        flags = rb"VmFlags:([^\n]*)\n" if has_flags else b""
        self.has_flags = has_flags
        self._pattern = b"".join(lines) + flags + _BLOCK_END

    @cached_property
    def _match(self) -> Callable[..., re.Match[bytes] | None]:
        # Compiled for the second block only: compiling takes longer than reading the one block of smaps_rollup.
        return re.compile(self._pattern).match

    def block_at(self, text: bytes, position: int, amounts: "_Amounts") -> _Block | None:
        """Read the block that begins at a position; None where it has another shape."""
        header = _HEADER_LINES.match(text, position)
        lines = self._match(text, header.end()) if header else None
        if header is None or lines is None:
            return None
        values = lines.groups()
        try:
            counted = tuple(map(amounts.__getitem__, values[: len(self.keys)]))
        except ValueError:
            return None
        return header.groups(), counted, values[-1] if self.has_flags else b"", lines.end()


class _SeenCounters(dict[tuple[int, ...], Counters]):
    """The counters of one shape by their values: one object for all mappings of a text with equal values."""

    def __init__(self, shape: _Shape) -> None:
        self._keys = shape.keys

    def __missing__(self, values: tuple[int, ...]) -> Counters:
        counters = Counters(self._keys, values)
        if len(self) < _MOST_SHARED:
            self[values] = counters
        return counters


# One kernel prints the mappings of all processes with the same keys. Nothing of the figures in a text is kept here.
_recent_shapes: deque[_Shape] = deque(maxlen=4)


class _Amounts(dict[bytes, int]):
    """The bytes of each printed amount behind its blanks. Amounts repeat often: each one is parsed and stored once."""

    def __missing__(self, text: bytes) -> int:
        number = text.lstrip(b" \t").removesuffix(b" kB")
        if not (text.startswith((b" ", b"\t")) and number.isdigit() and len(number) <= _MOST_DIGITS):
            raise ValueError(text)
        amount = int(number) * 1024 if text.endswith(b" kB") else int(number)
        # A hostile text has any number of blanks there.
        if len(self) < 1 << 16 and len(text) <= 4 * _MOST_DIGITS:
            self[text] = amount
        return amount


class _Texts(dict[bytes, str]):
    """The decoded names, devices, permissions and flags, each one stored once."""

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = raw.decode("utf-8", "surrogateescape")
        return text


class _Reader:
    """Reads parts of a text that begin and end between blocks."""

    def __init__(self, source: str, cache: BlockCache) -> None:
        self._source = source
        self._mappings: list[Mapping] = []
        self._stray_lines: list[bytes] = []
        self._unknown_count = 0
        self._cache = cache
        self._shapes = list(_recent_shapes)
        self._seen: dict[_Shape, _SeenCounters] = {}
        self._amounts = _Amounts()
        self._texts = _Texts()
        self._descends_at: int | None = None
        self._is_cut = False

    def read(self, text: bytes) -> None:
        torn = b""
        if text and not text.endswith(b"\n"):
            self._is_cut = True
            text, torn = _without_torn_line(text)
        position = 0
        shape = self._shapes[-1] if self._shapes else None
        while position < len(text):
            position = self._cache.read(text, position, self._mappings)
            if position == len(text):
                break
            block = shape.block_at(text, position, self._amounts) if shape else None
            if shape is None or block is None:
                shape = next((form for form in self._shapes if form.block_at(text, position, self._amounts)), None)
                if shape is None:
                    position = self._read_by_line(text, position)
                    shape = self._shapes[-1] if self._shapes else None
                continue
            fields, counted, flags_text, position = block
            seen = self._seen.get(shape) or self._seen.setdefault(shape, _SeenCounters(shape))
            counters = seen[counted]
            flags = self._texts[flags_text.strip()] if shape.has_flags else None
            self._add(fields, counters, flags, ())
            if self._mappings:
                self._cache.learn(self._mappings[-1])
        if torn and self._mappings:
            last = self._mappings[-1]
            line = torn.decode("utf-8", "surrogateescape")
            self._mappings[-1] = last._replace(unknown_lines=(*last.unknown_lines, line))
        elif torn:
            self._stray_lines.append(torn)

    def _read_by_line(self, text: bytes, position: int) -> int:
        """Read one block of any form, or one line outside of all blocks; return where it ends."""
        header = _HEADER_LINES.match(text, position)
        if header is None:
            end = text.index(b"\n", position) + 1
            self._stray_lines.append(text[position : end - 1])
            self._count_unknown()
            return end
        position = header.end()
        amounts: dict[bytes, int] = {}
        flags = None
        unknown: list[bytes] = []
        while position < len(text) and not _HEADER_LINES.match(text, position):
            key_line = _KEY_LINE.match(text, position)
            flags_line = _FLAGS_LINE.match(text, position)
            end = text.index(b"\n", position) + 1
            if key_line and key_line[1] not in amounts and len(amounts) < _MOST_KEYS:
                amounts[key_line[1]] = self._amounts[b" " + key_line[2]]
            elif flags_line and flags is None:
                flags = self._texts[flags_line[1].strip()]
            else:
                unknown.append(text[position : end - 1])
                self._count_unknown()
            position = end
        if not unknown and len(self._shapes) < _MOST_SHAPES:
            self._shapes.append(_Shape(tuple(amounts), has_flags=flags is not None))
            _recent_shapes.append(self._shapes[-1])
        keys = {key.decode("ascii"): place for place, key in enumerate(amounts)}
        lines = tuple(line.decode("utf-8", "surrogateescape") for line in unknown)
        self._add(header.groups(), Counters(keys, tuple(amounts.values())), flags, lines)
        return position

    def _count_unknown(self) -> None:
        self._unknown_count += 1
        if self._unknown_count > _MOST_UNKNOWN_LINES + _MOST_UNKNOWN_OF_EACH * len(self._mappings):
            raise InputError(self._source, "more lines of unknown form than any kernel prints")

    def _add(
        self, fields: Sequence[bytes], counters: Counters, flags: str | None, unknown_lines: tuple[str, ...]
    ) -> None:
        start_addr, end_addr = int(fields[0], 16), int(fields[1], 16)
        if end_addr < start_addr:
            self._stray_lines.append(b"%s-%s %s" % (fields[0], fields[1], fields[2]))
            return
        if self._descends_at is None and self._mappings and start_addr < self._mappings[-1].end_addr:
            self._descends_at = start_addr
        texts = self._texts
        # A name never begins with a space, so the padding in front of it has any width. Spaces at its end belong to it.
        name = texts[fields[6].lstrip(b" ") or fields[7] or b""]
        self._mappings.append(
            Mapping(
                start_addr,
                end_addr,
                texts[fields[2]],
                int(fields[3], 16),
                texts[fields[4]],
                int(fields[5]),
                name,
                counters,
                flags,
                unknown_lines,
            )
        )

    def finish(self) -> MemoryMap:
        if not self._mappings and self._stray_lines:
            raise InputError(self._source, "no line is a mapping as in /proc/PID/maps or smaps", 0)
        has_counters = any(mapping.counters.keys for mapping in self._mappings)
        notes = tuple(self._notes(has_counters=has_counters))
        return MemoryMap("smaps" if has_counters else "maps", tuple(self._mappings), notes=notes)

    def _notes(self, *, has_counters: bool) -> Iterator[Note]:
        source = self._source
        if self._stray_lines:
            first = self._stray_lines[0].decode("utf-8", "surrogateescape")
            count = len(self._stray_lines)
            detail = f"{count} lines before or between mappings have no known form and are left out: {first!r}"
            yield Note("maps-unknown-lines", source, detail)
        unknown = [line for mapping in self._mappings for line in mapping.unknown_lines]
        if unknown:
            detail = f"{len(unknown)} lines of mappings have no known form and are kept as printed: {unknown[0]!r}"
            yield Note("maps-unknown-lines", source, detail)
        if self._is_cut or (has_counters and _is_last_short(self._mappings)):
            detail = "the text does not end with a whole mapping: the last one may be cut, and more may be missing"
            yield Note("maps-text-truncated", source, detail)
        if self._descends_at is not None:
            detail = f"addresses descend at {self._descends_at:#x}: the text is damaged, or of several processes"
            yield Note("maps-not-ascending", source, detail)
        if has_counters and _is_locked_wrong(self._mappings):
            detail = "`Locked` equals `Pss` in mappings that are not locked (Linux 4.14 to 4.17): ignored"
            yield Note("locked-unreliable", source, detail)


def _without_torn_line(text: bytes) -> tuple[bytes, bytes]:
    """Split off a last line without a line end, unless it is surely whole.

    A name may have lost its end, and an amount without its unit may have lost digits.
    """
    start = text.rfind(b"\n") + 1
    line = text[start:] + b"\n"
    if line.endswith(b" kB\n") or _FLAGS_LINE.match(line) or _HEADER_LINES.match(line):
        return text + b"\n", b""
    return text[:start], text[start:]


def _is_last_short(mappings: Sequence[Mapping]) -> bool:
    """Return whether the last mapping lacks counters or flags that all others have."""
    *others, last = mappings
    if not others:
        return False
    has_fewer = all(len(mapping.counters.keys) > len(last.counters.keys) for mapping in others)
    return has_fewer or (last.vm_flags is None and all(mapping.vm_flags is not None for mapping in others))


def _is_locked_wrong(mappings: Iterable[Mapping]) -> bool:
    """Return whether the kernel has copied Pss into Locked: the two are equal although VmFlags shows no lock."""
    is_seen = False
    for mapping in mappings:
        pss = mapping.counters.get("Pss")
        if pss and mapping.vm_flags is not None and " lo" not in f" {mapping.vm_flags}":
            if mapping.counters.get("Locked") != pss:
                return False
            is_seen = True
    return is_seen
