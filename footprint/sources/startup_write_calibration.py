"""What the C library and the constructors of libraries of this machine write: measured once a build, and kept."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from footprint.attribution.constructor_writes import ConstructorWrites
from footprint.attribution.object_prediction import UNKNOWN_LIBC, LibcStart, ObjectPrediction, predict
from footprint.elf.constructors import own_constructors
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import Image, read_image, starts_like_elf
from footprint.elf.notes import build_id
from footprint.errors import AccessError, FootprintError, Note
from footprint.members import NamedTuple, lazy_pattern, replace
from footprint.process.mappings import Mapping
from footprint.process.maps_text import parse_maps
from footprint.process.pages import PageReader
from footprint.sources.calibration import keep, kept_path, read_kept
from footprint.system.files import open_input

_CONSTRUCTOR_FILE: Final = "constructors.json"
_CONSTRUCTOR_TABLE: Final = "libraries"
_MORE_STARTS: Final = 20
_MOST_HEAP_BYTES: Final = 1 << 30
_LIBC_FILE: Final = "libc.json"
_LIBC_TABLE: Final = "libcs"
_MOST_PAGES: Final = 1 << 10
_NAME: Final = lazy_pattern(r".*/libc(\.so\.6(\.1)?|-2\.[0-9]+\.so)")
# It is on every system.
_PROGRAMS: Final = ("/bin/true", "/usr/bin/true")


def load_libc_start(image: Image) -> LibcStart:
    """Return what a C library writes in itself: as calibrated, else as assumed; damage is a note."""
    identity = build_id(image)
    path = kept_path(_LIBC_FILE)
    try:
        stored = read_kept(path, _LIBC_TABLE).get(identity or "")
        return UNKNOWN_LIBC if stored is None else _libc_start(stored)
    except (OSError, ValueError) as error:
        detail = f"{error}: {UNKNOWN_LIBC.count} pages are assumed; `footprint doctor --calibrate` writes a new file"
        return replace(UNKNOWN_LIBC, notes=(Note("calibration-unreadable", path, detail),))


def _libc_start(stored: object) -> LibcStart:
    page_bytes = stored.get("page_bytes") if isinstance(stored, dict) else None
    pages = stored.get("pages") if isinstance(stored, dict) else None
    if type(page_bytes) is not int or page_bytes not in {1 << shift for shift in range(12, 17)}:
        raise ValueError("its page_bytes is not a page size")
    if not isinstance(pages, list) or len(pages) > _MOST_PAGES or any(type(page) is not int for page in pages):
        raise ValueError("its pages are not numbers")
    return LibcStart(tuple(pages), page_bytes, len(pages), "calibrated for this build")


def idle_program() -> str:
    """Return the path of a program that does nothing, and uses nothing but the C library."""
    return next((path for path in _PROGRAMS if os.path.exists(path)), _PROGRAMS[0])


def own_libc() -> str | None:
    """Return the path of the glibc that this process uses; None if it uses another C library."""
    with suppress(OSError), open("/proc/self/maps", "rb") as file:
        # One that is only read, to be audited, is not ours.
        code = [mapping.name for mapping in parse_maps(file.read(), "maps").mappings if mapping.permissions[2] == "x"]
        return next((name for name in code if _NAME.fullmatch(name)), None)
    return None


def calibrate_libc() -> LibcStart | None:
    """Hold a program that does nothing where its own code begins, and keep which pages its C library has written.

    Other libraries than glibc write only what their files tell: for them there is nothing to keep.

    Raises:
        AccessError: Where no such program can be held and read, or the result cannot be kept.
        InputError: Where its C library is damaged.
    """
    from footprint.process.held_program import folder_at_entry  # noqa: PLC0415 # an audit only loads

    program = idle_program()
    with folder_at_entry(program) as folder:
        try:
            written = _written(folder, program)
        except OSError as error:
            raise AccessError(program, f"its pages cannot be read: {error.strerror}") from error
    if written is None:
        return None
    image, pages, page_bytes = written
    identity = build_id(image)
    if identity is None:
        raise AccessError(image.file, "it has no build-id, so a calibration cannot name it")
    keep(kept_path(_LIBC_FILE), _LIBC_TABLE, {identity: {"pages": pages, "page_bytes": page_bytes}})
    return load_libc_start(image)


def _written(folder: int, program: str) -> tuple[Image, list[int], int] | None:
    """Return the C library of a process, and its pages that are private for no reason in its file."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    with open(os.open("maps", os.O_RDONLY, dir_fd=folder), "rb") as file:
        mappings = parse_maps(file.read(), program).mappings
    path = next((mapping.name for mapping in mappings if _NAME.fullmatch(mapping.name)), None)
    if path is None:
        return None
    image = read_image(open_input(path), path)
    prediction = predict(image, page_bytes, is_program=False)
    return image, pages_beyond(folder, mappings, image, prediction), page_bytes


def pages_beyond(folder: int, mappings: Sequence[Mapping], image: Image, prediction: ObjectPrediction) -> list[int]:
    """Return the pages of an object that are private in a process, beyond those that were predicted.

    Its .bss may be the beginning of a longer mapping. `image.file` is the name of its mappings.
    """
    beyond: set[int] = set()
    page_bytes, pages = prediction.page_bytes, prediction.startup_max
    first_addr = min(m.start_addr for m in mappings if m.name == image.file)
    bias = first_addr // page_bytes - min(load.vaddr for load in image.loads) // page_bytes
    with PageReader(folder, page_bytes) as reader:
        for mapping in mappings:
            for run in pages if mapping.permissions.endswith("p") else ():
                addrs = range((run.start + bias) * page_bytes, (run.stop + bias) * page_bytes)
                if mapping.start_addr < addrs.stop and addrs.start < mapping.end_addr:
                    for part in reader.read(mapping):
                        first, past = max(part.start_addr, addrs.start), min(part.end_addr, addrs.stop)
                        beyond |= {addr // page_bytes - bias for addr in range(first, past, page_bytes)}
    return sorted(beyond.difference(*prediction.startup_min))


def load_constructors() -> tuple[dict[str, ConstructorWrites], tuple[Note, ...]]:
    """Return what the constructors of libraries write, by build-id, as calibrated; damage is a note."""
    path = kept_path(_CONSTRUCTOR_FILE)
    try:
        return {
            identity: _constructor_writes(stored) for identity, stored in read_kept(path, _CONSTRUCTOR_TABLE).items()
        }, ()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        detail = f"{error}: constructors are taken to write nothing; `footprint doctor --calibrate` writes a new file"
        return {}, (Note("calibration-unreadable", path, detail),)


def _constructor_writes(stored: Any) -> ConstructorWrites:  # noqa: ANN401 # JSON
    pages = {str(identity): tuple(numbers) for identity, numbers in stored["pages"].items()}
    writes = ConstructorWrites(
        stored["page_bytes"], pages, stored["heap_bytes"], stored["untouched_pages"], stored["heap_head_bytes"]
    )
    if writes.page_bytes not in {1 << shift for shift in range(12, 17)}:
        raise ValueError("a page_bytes is not a page size")
    if not all(type(page) is int and page >= 0 for numbers in pages.values() for page in numbers):
        raise ValueError("its pages are not numbers")
    if not all(type(size) is int and 0 <= size <= _MOST_HEAP_BYTES for size in writes[2:]):
        raise ValueError("its sizes of the heap are not sizes")
    return writes


class _Started(NamedTuple):
    """A program that does nothing, with one more library and what that needs, where its own code begins.

    Attributes:
        identities: The build-ids of the objects.
        pages: The pages that constructors have written, by the build-id of the object.
        heap_bytes: The length of the heap up to its last word that is not zero.
        untouched_pages: The pages of these that nothing has written.
        heap_head_bytes: The first block of the heap: malloc's own.
    """

    identities: frozenset[str]
    pages: dict[str, list[int]]
    heap_bytes: int
    untouched_pages: int
    heap_head_bytes: int


def calibrate_constructors() -> int:
    """Measure what the constructors of each library beside the C library write, and keep it; return how many there are.

    A program that does nothing is started with each of these libraries (LD_PRELOAD), and ended where its own code
    begins. A library without constructors of its own, or without a build-id, is not started; nor is an allocator, which
    writes what depends on addresses, so on chance: no number of starts shows which pages are sure.

    Raises:
        AccessError: Where the result cannot be kept.
    """
    libc = own_libc()
    started: dict[str, _Started] = {}
    for path in _libraries(os.path.dirname(os.path.realpath(libc))) if libc else ():
        with suppress(FootprintError, OSError):
            image = read_image(open_input(path), path)
            identity = build_id(image)
            if not identity or not own_constructors(image) or "malloc" in read_dynamic_symbols(image).defined:
                continue
            if identity in (start := _surely(path)).identities:
                started[identity] = start
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    kept: dict[str, ConstructorWrites] = {}
    # What a library needs comes before it: fewer objects.
    for identity, alone in sorted(started.items(), key=lambda item: len(item[1].identities)):
        needed = [kept[other] for other in alone.identities if other in kept]
        kept[identity] = ConstructorWrites(
            page_bytes,
            {other: tuple(pages) for other, pages in alone.pages.items()},
            max(0, alone.heap_bytes - alone.heap_head_bytes - sum(other.heap_bytes for other in needed)),
            max(0, alone.untouched_pages - sum(other.untouched_pages for other in needed)),
            alone.heap_head_bytes,
        )
    keep(
        kept_path(_CONSTRUCTOR_FILE),
        _CONSTRUCTOR_TABLE,
        {identity: w._asdict() for identity, w in kept.items() if any(w[1:3])},
    )
    return len(kept)


def _libraries(folder: str) -> Iterator[str]:
    """Return the ELF files of a folder that are called libraries, once each."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        # The loader separates names by spaces and colons.
        if ".so" in entry.name and entry.is_file(follow_symlinks=False) and not set(entry.path) & {" ", ":"}:
            with suppress(OSError), open(entry.path, "rb") as file:
                if starts_like_elf(file.read(4)):
                    yield entry.path


def _surely(library: str) -> _Started:
    """Return what constructors write in every start: some write what depends on addresses, so on chance."""
    starts = [_start(library) for _ in range(2)]
    if starts[0] != starts[1]:
        starts += [_start(library) for _ in range(_MORE_STARTS)]
    least, *others = sorted(starts, key=lambda s: s.heap_bytes - s.untouched_pages * os.sysconf("SC_PAGE_SIZE"))
    pages = {
        identity: sorted(set(pages).intersection(*(other.pages.get(identity, ()) for other in others)))
        for identity, pages in least.pages.items()
    }
    return least._replace(pages=pages)


def _start(library: str) -> _Started:
    """Start a program that does nothing with a library, and read what constructors have written."""
    from footprint.process.held_program import folder_at_entry  # noqa: PLC0415 # an audit only loads

    program = idle_program()
    with folder_at_entry(program, {"LD_PRELOAD": library}) as folder:
        return _read(folder, os.path.realpath(program))


def _read(folder: int, program: str) -> _Started:
    with open(os.open("maps", os.O_RDONLY, dir_fd=folder), "rb") as file:
        mappings = parse_maps(file.read(), program).mappings
    names = {m.name for m in mappings if m.permissions[2] == "x" and m.name.startswith("/")} - {program}
    identities: set[str] = set()
    pages: dict[str, list[int]] = {}
    for name in sorted(names):
        image, prediction = _object(name)
        identity = build_id(image)
        if identity:
            identities.add(identity)
            if written := pages_beyond(folder, mappings, image, prediction):
                pages[identity] = written
    heap = next((mapping for mapping in mappings if mapping.name == "[heap]"), None)
    return _Started(frozenset(identities), pages, *(_heap(folder, heap) if heap else (0, 0, 0)))


@cache
def _object(path: str) -> tuple[Image, ObjectPrediction]:
    """Return a library and its prediction; many programs have it."""
    image = read_image(open_input(path), path)
    start = load_libc_start(image) if path == own_libc() else None
    return image, predict(image, os.sysconf("SC_PAGE_SIZE"), is_program=False, libc_start=start)


def _heap(folder: int, heap: Mapping) -> tuple[int, int, int]:
    """Return the length of a heap, the pages in it that nothing has written, and the length of its first block."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    with PageReader(folder, page_bytes) as reader:
        touched = [range(part.start_addr, part.end_addr) for part in reader.read(heap)]
    with open(os.open("mem", os.O_RDONLY, dir_fd=folder), "rb") as file:
        file.seek(heap.start_addr)
        data = file.read(min(heap.end_addr - heap.start_addr, _MOST_HEAP_BYTES))
    length_bytes = len(data.rstrip(b"\0"))
    page_count = -(-length_bytes // page_bytes)
    word_bytes = 8
    # The size of a block of glibc stands in its second word, with flags.
    head_bytes = int.from_bytes(data[word_bytes : 2 * word_bytes], "little") & ~7
    return length_bytes, max(0, page_count - sum(map(len, touched)) // page_bytes), min(head_bytes, length_bytes)
