"""The memory map of one process, as the kernel's texts tell it: maps, smaps and smaps_rollup.

Bytes in, frozen facts out; nothing here opens a file. Every kernel since 2.6.14 is read, and keys, flags and lines that
no kernel had when this was written are kept.

Source: fs/proc/task_mmu.c of Linux 2.6.14 to 6.18; Documentation/filesystems/proc.rst.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as AbstractMapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.errors import InputError, Note

__all__ = ("Counters", "Mapping", "MemoryMap", "looks_like_maps", "parse_maps", "parse_rollup")


class Counters(NamedTuple):
    """The counters of one mapping, in bytes, under the kernel's own names (`Rss`, `Private_Dirty`, ...).

    All mappings of a text share one `keys`, so that a counter costs one slot. A counter that the text does not have is
    None, never 0.

    Attributes:
        keys: The place of each counter in `values`, in the order of the text.
        values: Bytes; for a key without unit (`THPeligible`, `ProtectionKey`) the bare number.
    """

    keys: dict[str, int]
    values: tuple[int, ...]

    def get(self, key: str) -> int | None:
        """Give one counter, or None where the text does not have it."""
        place = self.keys.get(key)
        return None if place is None else self.values[place]


NO_COUNTERS = Counters({}, ())


class Mapping(NamedTuple):
    """One mapping (VMA) of a process. The address range is half-open.

    Attributes:
        start_addr: First address of the mapping.
        end_addr: First address behind it.
        permissions: Four letters as in maps: `rw-p`; `s` in the last place where it is shared.
        offset: Where in the file the mapping starts, in bytes; None where the text does not tell.
        device: `major:minor` in hex as printed; None where the text does not tell.
        inode: Inode number; 0 for anonymous memory, None where the text does not tell.
        name: The name column verbatim (bytes that are not UTF-8 as surrogates), "" for a nameless mapping.
        counters: What the kernel counted in it.
        vm_flags: The two-letter codes of `VmFlags`, separated by spaces; None where the text has none.
        unknown_lines: Lines of the block in no known shape, as they stand.
    """

    start_addr: int
    end_addr: int
    permissions: str
    offset: int | None = None
    device: str | None = None
    inode: int | None = None
    name: str = ""
    counters: Counters = NO_COUNTERS
    vm_flags: str | None = None
    unknown_lines: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Give the virtual size."""
        return self.end_addr - self.start_addr

    @property
    def is_shared(self) -> bool:
        """Tell whether writes to it are seen by others (MAP_SHARED)."""
        return self.permissions[3] == "s"

    @property
    def is_mapped_writable(self) -> bool:
        """Tell whether it counts into pmap's `writeable/private`: writable now, and private."""
        return self.permissions[1] == "w" and self.permissions[3] == "p"


class MemoryMap(NamedTuple):
    """All mappings of one process at one moment, from one text.

    Attributes:
        dialect: Which text it was: `maps`, `smaps`, `pmap`, `pmap -d`, `pmap -x`, `pmap -X`, `toybox pmap`, ...
        mappings: In the order of the text, which is the order of addresses.
        pid: The process, where the text tells.
        command: Its command line or name as the text shows it.
        footer: What the text itself says at its end, in bytes, under the names of its columns; else empty.
        has_full_names: Whether names are whole paths; pmap prints only their last part.
        notes: What was odd about the text.
    """

    dialect: str
    mappings: tuple[Mapping, ...]
    pid: int | None = None
    command: str | None = None
    footer: AbstractMapping[str, int] = MappingProxyType({})
    has_full_names: bool = True
    notes: tuple[Note, ...] = ()

    def sum(self, key: str) -> int:
        """Add up one counter over all mappings that have it."""
        total = 0
        for counters in [mapping.counters for mapping in self.mappings]:
            place = counters.keys.get(key)
            if place is not None:
                total += counters.values[place]
        return total


_HEADER: Final = (
    rb"([0-9a-f]{8,16})-([0-9a-f]{8,16}) ([r-][w-][x-][ps]) ([0-9a-f]{1,16}) "
    rb"([0-9a-f]{1,8}:[0-9a-f]{1,8}) ([0-9]{1,20})((?: [^\n]*)?)\n"
)
# Android's kernels name anonymous memory in a line of its own.
_NAME: Final = rb"(?:Name:[ \t]+([^\n]*)\n)?"
_HEADER_LINES: Final = re.compile(_HEADER + _NAME)
_KEY_LINE: Final = re.compile(rb"([A-Za-z_][A-Za-z0-9_()]{0,63}):[ \t]+([0-9]{1,20}(?: kB)?)[ \t]*\n")
_FLAGS_LINE: Final = re.compile(rb"VmFlags:([^\n]*)\n")
# A block ends where the next header begins.
_BLOCK_END: Final = rb"(?=[0-9a-f]{8,16}-|\Z)"
# A block in three: the addresses, what else the header says, and the lines below it. The mappings of a large process
# differ in little but their addresses: the other two are looked up whole before anything reads them.
_BLOCK: Final = re.compile(rb"([0-9a-f]{8,16})-([0-9a-f]{8,16}) ([^\n]*+)\n((?:[A-Z][^\n]*+\n){0,512})" + _BLOCK_END)
# Each kernel prints one or two sets of keys; a text with more of them is read line by line.
_MOST_SHAPES: Final = 16
_MOST_SHARED: Final = 4096
_MOST_UNKNOWN_LINES: Final = 1 << 16
_MOST_UNKNOWN_OF_EACH: Final = 16  # a kernel to come may print lines of a new shape with each of very many mappings
_MOST_KEYS: Final = 256
_CHUNK_BYTES: Final = 1 << 20
_MOST_BLOCK_BYTES: Final = 4 << 20  # a header and its counters take less than 10 KiB


def looks_like_maps(text: bytes) -> bool:
    """Tell whether a text is maps or smaps, by the first header line within its first lines."""
    return any(_HEADER_LINES.match(line + b"\n") for line in text[:4096].split(b"\n")[:5])


def parse_maps(text: bytes | Iterable[bytes], source: str) -> MemoryMap:
    """Read `maps` or `smaps`, of any kernel since 2.6.14; also `smaps_rollup`, as its one mapping.

    Args:
        text: The text, or the pieces in which it was read: a large one need not stand in memory at once.
        source: The name to use in messages.

    Returns:
        Its mappings; none for an empty text, which is what kernel threads and zombies have.

    Raises:
        InputError: Where no line is a mapping, though there is text.
    """
    reader = _Reader(source)
    for block in _whole_blocks(_chunks(text)):
        reader.read(block)
    return reader.finish()


def parse_rollup(text: bytes, source: str) -> Counters | None:
    """Read `smaps_rollup`: the sums of all mappings; None where the process has no memory.

    Raises:
        InputError: Where it is some other text.
    """
    mappings = parse_maps(text, source).mappings
    if not mappings:
        return None
    if len(mappings) > 1 or mappings[0].name != "[rollup]":
        raise InputError(source, "not smaps_rollup: its one header is called [rollup]", 0)
    return mappings[0].counters


def _chunks(text: bytes | Iterable[bytes]) -> Iterator[bytes]:
    if not isinstance(text, bytes):
        yield from text
        return
    for start in range(0, len(text), _CHUNK_BYTES):
        yield text[start : start + _CHUNK_BYTES]


def _whole_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the stream so that no block of a mapping is torn: each part ends where a header line begins."""
    carry: list[bytes] = []
    carried_bytes = 0
    for chunk in chunks:
        part = chunk
        cut = _last_header(part)
        if not cut and carried_bytes + len(part) > _MOST_BLOCK_BYTES:
            # No kernel prints this; or headers were torn by small chunks.
            part = b"".join([*carry, part])
            carry = []
            cut = _last_header(part) or part.rfind(b"\n") + 1 or len(part)
        if cut:
            yield b"".join([*carry, part[:cut]])
            carry, carried_bytes = [part[cut:]], len(part) - cut
        else:
            carry.append(part)
            carried_bytes += len(part)
    yield b"".join(carry)


def _last_header(chunk: bytes) -> int:
    """Find where the last header line that is surely one begins, or 0."""
    # Half a block is below 1 KiB; names may be long, and a missed header only makes the part larger.
    start = max(0, len(chunk) - 16384)
    at = chunk.rfind(b"\n", start)
    while at >= 0:
        if _HEADER_LINES.match(chunk, at + 1):
            return at + 1
        at = chunk.rfind(b"\n", start, at)
    # Compiled where it is needed, which takes as long as reading a dozen blocks.
    return max((found.end() for found in re.finditer(rb"\n(?=" + _HEADER + rb")", chunk)), default=0)


class _Shape:
    """The keys of a block in their order, and the pattern that reads such a block at once."""

    def __init__(self, keys: tuple[bytes, ...], *, has_flags: bool) -> None:
        self.keys = {key.decode("ascii"): place for place, key in enumerate(keys)}
        lines = [re.escape(key) + rb":[ \t]+([0-9]{1,20}(?: kB)?)\n" for key in keys]
        flags = rb"VmFlags:([^\n]*)\n" if has_flags else b""
        self.has_flags = has_flags
        self.seen: dict[tuple[int, ...], Counters] = {}
        self._pattern = _HEADER + _NAME + b"".join(lines) + flags + _BLOCK_END

    @cached_property
    def match(self) -> Callable[..., re.Match[bytes] | None]:
        # Compiled for the second block, and not for the one of smaps_rollup: it takes longer than reading a block.
        return re.compile(self._pattern).match


class _Amounts(dict[bytes, int]):
    """Bytes of each amount as printed. Most amounts of a text are alike: each is read once, and kept once."""

    def __missing__(self, text: bytes) -> int:
        amount = int(text[:-3]) * 1024 if text.endswith(b" kB") else int(text)
        if len(self) < 1 << 16:
            self[text] = amount
        return amount


class _Texts(dict[bytes, str]):
    """Texts of names, devices, permissions and flags, each kept once."""

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = raw.decode("utf-8", "surrogateescape")
        return text


class _Reader:
    """Reads whole blocks, one after the other, and keeps what it learned of their shape."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._mappings: list[Mapping] = []
        self._notes: list[Note] = []
        self._stray_lines: list[bytes] = []
        self._unknown_count = 0
        self._shapes: list[_Shape] = []
        self._amounts = _Amounts()
        self._texts = _Texts()
        self._heads: dict[bytes, tuple[str, int | None, str | None, int | None, str]] = {}
        self._bodies: dict[bytes, tuple[Counters, str | None]] = {}
        self._descends_at: int | None = None
        self._is_cut = False

    def read(self, text: bytes) -> None:
        torn = b""
        if text and not text.endswith(b"\n"):
            # Only the last part can end so. A name may have lost its end, an amount without its unit some digits.
            self._is_cut = True
            start = text.rfind(b"\n") + 1
            torn = text[start:] + b"\n"
            if torn.endswith(b" kB\n") or _FLAGS_LINE.match(torn) or _HEADER_LINES.match(torn):
                text, torn = text + b"\n", b""
            else:
                text = text[:start]
        position = 0
        shape = self._shapes[-1] if self._shapes else None
        while position < len(text):
            position, new = self._read_known(text, position)
            if position == len(text):
                break
            block = shape.match(text, position) if shape else None
            if shape is None or block is None:
                shape = next((s for s in self._shapes if s.match(text, position)), None)
                if shape is None:
                    position = self._read_slowly(text, position)
                    shape = self._shapes[-1] if self._shapes else None
                continue
            fields = block.groups()
            counters = self._shared(shape, tuple(map(self._amounts.__getitem__, fields[8 : 8 + len(shape.keys)])))
            flags = self._texts[fields[-1].strip()] if shape.has_flags else None
            self._add(fields, counters, flags, ())
            self._learn(new)
            position = block.end()
        if torn and self._mappings:
            last = self._mappings[-1]
            lost = torn[:-1].decode("utf-8", "surrogateescape")
            self._mappings[-1] = last._replace(unknown_lines=(*last.unknown_lines, lost))
        elif torn:
            self._stray_lines.append(torn[:-1])

    def _read_known(self, text: bytes, position: int) -> tuple[int, re.Match[bytes] | None]:
        """Read the blocks that are like one before but for their addresses; give where the first other one begins."""
        heads, bodies, mappings, match = self._heads, self._bodies, self._mappings, _BLOCK.match
        at = mappings[-1].end_addr if mappings else 0
        while block := match(text, position):
            start, end, head, body = block.groups()
            facts, counted = heads.get(head), bodies.get(body)
            start_addr, end_addr = int(start, 16), int(end, 16)
            if facts is None or counted is None or not at <= start_addr <= end_addr:
                break
            mappings.append(Mapping(start_addr, end_addr, *facts, *counted))
            at, position = end_addr, block.end()
        return position, block

    def _learn(self, block: re.Match[bytes] | None) -> None:
        """Keep what the mapping that was just read from a block may have in common with others."""
        last = self._mappings[-1] if self._mappings else None
        if block and last and int(block[1], 16) == last.start_addr and not block[4].startswith(b"Name:"):
            if len(self._heads) < _MOST_SHARED:
                self._heads[block[3]] = last[2:7]
            if len(self._bodies) < _MOST_SHARED:
                self._bodies[block[4]] = (last.counters, last.vm_flags)

    def _shared(self, shape: _Shape, values: tuple[int, ...]) -> Counters:
        """Give the counters of a mapping: one object for all mappings that are alike, as most of a large map are."""
        counters = shape.seen.get(values)
        if counters is None:
            counters = Counters(shape.keys, values)
            if len(shape.seen) < _MOST_SHARED:
                shape.seen[values] = counters
        return counters

    def _read_slowly(self, text: bytes, position: int) -> int:
        """Read one block, or one line that belongs to none, in whatever shape it is; give where the next begins."""
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
                amounts[key_line[1]] = self._amounts[key_line[2]]
            elif flags_line and flags is None:
                flags = self._texts[flags_line[1].strip()]
            else:
                unknown.append(text[position : end - 1])
                self._count_unknown()
            position = end
        if not unknown and len(self._shapes) < _MOST_SHAPES:
            self._shapes.append(_Shape(tuple(amounts), has_flags=flags is not None))
        keys = {key.decode("ascii"): place for place, key in enumerate(amounts)}
        lines = tuple(line.decode("utf-8", "surrogateescape") for line in unknown)
        self._add(header.groups(), Counters(keys, tuple(amounts.values())), flags, lines)
        return position

    def _count_unknown(self) -> None:
        self._unknown_count += 1
        if self._unknown_count > _MOST_UNKNOWN_LINES + _MOST_UNKNOWN_OF_EACH * len(self._mappings):
            raise InputError(self._source, "more lines have no known shape than any kernel prints")

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
        # Names never begin with a space, so the pad in front of them may be of any width; their end is kept as it is.
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
        source = self._source
        if not self._mappings and self._stray_lines:
            raise InputError(source, "no line is a mapping as /proc/PID/maps or smaps prints it", 0)
        has_counters = any(mapping.counters.keys for mapping in self._mappings)
        if self._stray_lines:
            first = self._stray_lines[0].decode("utf-8", "surrogateescape")
            detail = (
                f"{len(self._stray_lines)} lines before or between mappings have no known shape, kept out: {first!r}"
            )
            self._notes.append(Note("maps-unknown-lines", source, detail))
        unknown = [line for mapping in self._mappings for line in mapping.unknown_lines]
        if unknown:
            detail = f"{len(unknown)} lines of mappings have no known shape, kept as they are: {unknown[0]!r}"
            self._notes.append(Note("maps-unknown-lines", source, detail))
        if self._is_cut or (has_counters and self._last_is_short()):
            detail = "the text does not end with a whole mapping: the last one may be cut, and others may be missing"
            self._notes.append(Note("maps-text-truncated", source, detail))
        if self._descends_at is not None:
            detail = f"addresses go back at {self._descends_at:#x}: the texts of several processes, or a damaged one"
            self._notes.append(Note("maps-not-ascending", source, detail))
        if has_counters and self._locked_equals_pss():
            detail = "`Locked` equals `Pss` in mappings that are not locked (Linux 4.14 to 4.17): ignored"
            self._notes.append(Note("locked-unreliable", source, detail))
        dialect = "smaps" if has_counters else "maps"
        return MemoryMap(dialect, tuple(self._mappings), notes=tuple(self._notes))

    def _last_is_short(self) -> bool:
        """Tell whether the last mapping lacks counters or flags that every other has."""
        *others, last = self._mappings
        if not others:
            return False
        has_fewer = all(len(mapping.counters.keys) > len(last.counters.keys) for mapping in others)
        return has_fewer or (last.vm_flags is None and all(mapping.vm_flags is not None for mapping in others))

    def _locked_equals_pss(self) -> bool:
        """Tell whether this is the kernel bug that copies Pss into Locked: never so where VmFlags shows no lock."""
        is_seen = False
        for mapping in self._mappings:
            pss = mapping.counters.get("Pss")
            if pss and mapping.vm_flags is not None and " lo" not in f" {mapping.vm_flags}":
                if mapping.counters.get("Locked") != pss:
                    return False
                is_seen = True
        return is_seen
