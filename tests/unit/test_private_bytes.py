"""How much of a variable is private in a live process: by its page bits, where they say, else by the counters."""

from collections.abc import Sequence

import pytest

from footprint.elf.image import Image, read_image
from footprint.process.mappings import FileKey, file_key
from footprint.process.pages import PageRange
from footprint.process.snapshot import Snapshot, read_texts
from footprint.sources.process_files import PrivateBytes
from tests.elfwriter import RW, SHT_NOBITS, ElfFile, Section, write

PAGE = 4096
BIAS = 0x7F0000000000
# .data from 0x10000 on with two pages, .bss behind it with two more.
SECTIONS = [
    Section(".data", flags=RW, data=bytes(2 * PAGE), addr=0x10000),
    Section(".bss", SHT_NOBITS, RW, size=2 * PAGE, addr=0x12000),
]


@pytest.fixture
def image() -> Image:
    return read_image(write(ElfFile(sections=SECTIONS)), "/lib/x.so")


def smaps(image: Image, *private_kib: int) -> Snapshot:
    """Return a process that has .data and .bss in two mappings, with so much private memory."""
    (load,) = [one for one in image.loads if one.vaddr <= 0x10000 < one.vaddr + one.memory_bytes]
    first = BIAS + load.vaddr // PAGE * PAGE
    offset = load.offset // PAGE * PAGE
    data, bss = private_kib
    text = (
        f"{first:x}-{BIAS + 0x12000:x} rw-p {offset:08x} 08:01 77 /lib/x.so\n{counters(BIAS + 0x12000 - first, data)}"
        f"{BIAS + 0x12000:x}-{BIAS + 0x14000:x} rw-p 00000000 00:00 0\n{counters(2 * PAGE, bss)}"
    )
    (snapshot,) = read_texts(text.encode(), "smaps")
    return snapshot


def counters(size_bytes: int, private_kib: int) -> str:
    fields = {"Size": size_bytes // 1024, "Rss": private_kib, "Private_Dirty": private_kib, "Anonymous": private_kib}
    return "".join(f"{name}: {value} kB\n" for name, value in fields.items())


def counted(snapshot: Snapshot, image: Image, *spans: tuple[int, int], pages: Sequence[PageRange] = ()) -> int | None:
    by_mapping: dict[int, list[PageRange]] = {}
    for one in pages:
        (start,) = [m.start_addr for m in snapshot.memory.mappings if m.start_addr <= one.start_addr < m.end_addr]
        by_mapping.setdefault(start, []).append(one)
    if pages:
        snapshot = snapshot._replace(pages={start: tuple(ranges) for start, ranges in by_mapping.items()})
    images: dict[FileKey, Image] = {}
    for mapping in snapshot.memory.mappings:
        if mapping.name == "/lib/x.so" and (key := file_key(mapping)):
            images[key] = image
    return PrivateBytes(snapshot, images).of(image, spans)


def page(vaddr: int, count: int = 1) -> PageRange:
    return PageRange(BIAS + vaddr, BIAS + vaddr + count * PAGE)


def test_page_bits_tell_how_much_of_a_variable_is_private(image: Image) -> None:
    snapshot = smaps(image, 4, 4)
    bits = [page(0x11000), page(0x12000)]
    assert counted(snapshot, image, (0x10000, 0x10010), pages=bits) == 0
    assert counted(snapshot, image, (0x11000, 0x11010), pages=bits) == 16
    # From the last 8 bytes of one page that is not private, over two that are, into one that is not.
    assert counted(snapshot, image, (0x10FF8, 0x13008), pages=bits) == 2 * PAGE


def test_copies_are_added_up(image: Image) -> None:
    bits = [page(0x11000)]
    assert (
        counted(smaps(image, 4, 0), image, (0x10FF0, 0x10FF8), (0x11000, 0x11008), (0x11100, 0x11104), pages=bits) == 12
    )


def test_without_page_bits_all_or_nothing_is_known_and_in_between_it_is_not(image: Image) -> None:
    nothing, some = smaps(image, 0, 0), smaps(image, 0, 4)
    assert counted(nothing, image, (0x10000, 0x10010)) == 0
    assert counted(some, image, (0x12000, 0x12010)) is None
    assert counted(smaps(image, 0, 8), image, (0x12000, 0x12010)) == 16


def test_of_a_file_that_is_not_loaded_nothing_is_known(image: Image) -> None:
    other = read_image(write(ElfFile(sections=SECTIONS)), "/lib/other.so")
    assert PrivateBytes(smaps(image, 0, 0), {}).of(other, [(0x10000, 0x10010)]) is None
    assert counted(smaps(image, 0, 0), image, (0x20000, 0x20010)) is None
