"""Reports of LeakSanitizer, also as a part of AddressSanitizer, from gcc and clang.

Source: lsan_common.cpp and sanitizer_stacktrace_printer.cpp of LLVM 19.
"""

from collections.abc import Iterable
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import WHOLE_FILE, Counted, Frame, Module, Profile, Tally
from footprint.members import lazy_pattern
from footprint.system.decompression import lines_of
from footprint.text.units import counted

_TITLE: Final = b"LeakSanitizer: detected memory leaks"
_MOST_CALLS: Final = 1 << 21
_COLOR: Final = lazy_pattern(rb"\x1b\[[0-9;]{0,16}m")
_PID: Final = lazy_pattern(rb"==([0-9]{1,9})==ERROR: " + _TITLE)
_LEAK: Final = lazy_pattern(rb"(?:Direct|Indirect) leak of ([0-9]{1,18}) byte\(s\) in ([0-9]{1,18}) object\(s\)")
_CALL: Final = lazy_pattern(rb" +#[0-9]{1,4} 0x([0-9a-f]{1,16})(?: in (.*)| *(\(.*))")
_PLACE: Final = lazy_pattern(
    r"(.+) \(([^()]+)\+0x[0-9a-f]{1,16}\)|(.+?) (/.+?|[^ /.]*[/.][^ ]*?)(?::([0-9]{1,9}))?(?::[0-9]{1,9})?"
)
_OBJECT: Final = lazy_pattern(r"\(([^()]+)\+0x([0-9a-f]{1,16})\)")
_BUILD_ID: Final = lazy_pattern(r" \(BuildId: ([0-9a-f]{1,64})\)$")
_SUMMARY: Final = lazy_pattern(rb"SUMMARY: [A-Za-z]{1,32}: ([0-9]{1,18}) byte\(s\) leaked in ([0-9]{1,18}) allocation")


def looks_like_leaksanitizer(start: bytes) -> bool:
    """Return whether the first bytes have such a report; the program's own output may come before it."""
    return _TITLE in start


def read_leaksanitizer(pieces: Iterable[bytes], source: str) -> Profile:
    """Read the leaks from the pieces of a text.

    Raises:
        InputError: Where there are more calls than in any report.
    """
    frames, modules = {Frame(label="leaked memory"): 0}, dict[str, Module]()
    stacks = CallTreeBuilder()
    ends: list[int] = []
    amounts: list[tuple[int, int]] = []
    told_bytes, pid, left, is_open = 0, None, _MOST_CALLS, False
    for line in (_COLOR.sub(b"", raw) for _, some in lines_of(pieces, source) for raw in some):
        if leak := _LEAK.match(line):
            amounts.append((int(leak[1]), int(leak[2])))
            ends.append(0)
            is_open = True
        elif is_open and (call := _CALL.fullmatch(line.rstrip())):
            frame = _frame(int(call[1], 16), (call[2] or call[3]).decode("utf-8", "surrogateescape"), modules)
            ends[-1] = stacks.below(ends[-1], frames.setdefault(frame, len(frames)))
            left -= 1
            if left < 0:
                raise InputError(source, f"its first {counted(len(ends), 'leak')} have more calls than any report")
        elif summary := _SUMMARY.match(line):
            told_bytes += int(summary[1])
        elif title := _PID.search(line):
            pid = int(title[1])
        else:
            is_open = False
    tree = stacks.tree(tuple(frames), ends, [size for size, _ in amounts], [count for _, count in amounts], source)
    notes: tuple[Note, ...] = ()
    if told_bytes != tree.total_bytes:
        detail = (
            f"its leaks add up to {tree.total_bytes:,} bytes, but its last line says {told_bytes:,}: leaks are missing"
        )
        notes = (Note("heap-rows-missing", source, detail),)
    return Profile(
        "leaksanitizer",
        Counted.HEAP,
        pid=pid,
        frames=tuple(frames),
        tallies=(Tally("leaked", tree),),
        modules=tuple(modules.values()),
        notes=notes,
    )


def _frame(addr: int, text: str, modules: dict[str, Module]) -> Frame:
    """Read the function and place of a call. Without a function there is an address of the file."""
    found_id = _BUILD_ID.search(text)
    text = text[: found_id.start()] if found_id else text
    if nameless := _OBJECT.fullmatch(text):
        path = nameless[1]
        modules.setdefault(path, Module(0, WHOLE_FILE, 0, path, found_id[1] if found_id else ""))
        return Frame(int(nameless[2], 16), object=path)
    place = _PLACE.fullmatch(text)
    if place is None:
        return Frame(addr, text)
    if place[2]:
        return Frame(addr, place[1], object=place[2])
    return Frame(addr, place[3], place[4], int(place[5]) if place[5] else None)
