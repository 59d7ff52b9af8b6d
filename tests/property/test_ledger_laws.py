"""Laws of the ledger: whatever a text says, and whatever its files hold, the rows add up and come in one order."""

from collections.abc import Iterable
from collections.abc import Mapping as Dict
from functools import cache
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.page_maps import Presence, not_looked_at
from footprint.attribution.process_audit import audit_snapshot, owner_rows
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import Image, read_image
from footprint.model.audit import Audit
from footprint.model.costs import MappingCost
from footprint.model.row import MemoryKind, Row
from footprint.process.mappings import Counters, FileKey, Mapping, MemoryMap
from footprint.process.memory_files import memory_files
from footprint.process.pages import PageRange
from footprint.process.snapshot import read_texts
from tests.elfwriter import ET_DYN, ET_EXEC, PT_GNU_RELRO, RW, RX, SHT_NOBITS, At, ElfFile, Section, Sym, write

PAGE = 4096
BASE = 0x400000  # where a fixed program stands, and here everything else, too: what can meet shall meet

Process = tuple[MemoryMap, dict[FileKey, Image]]

# --- random processes -------------------------------------------------------------------------------------------------

KEYS = [FileKey("08:01", 10 + number, name) for number, name in enumerate(["/bin/program", "/lib/a.so", "/lib/b.so"])]
NAMES = [
    *("", "", "", "[heap]", "[stack]", "[vdso]", "[anon:name]", "/SYSV00000000 (deleted)", "/memfd:m (deleted)"),
    *("[stack:7]", "anon_inode:[x]", "/dev/zero (deleted)", "/etc/data", "/lib/unread.so"),
]
PERMISSIONS = ["r--p", "rw-p", "r-xp", "---p", "rwxp", "rw-s", "r--s"]
SMAPS = ["Rss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Anonymous", "Swap", "SwapPss"]
KEY_SETS = [
    SMAPS,
    SMAPS[:5],  # before 2.6.37
    ["Rss", "Anonymous", "Swap", "Private_Hugetlb"],  # pmap -X
    ["Rss", "Dirty"],  # pmap -x
    ["Pss", "Private_Dirty", "Swap"],  # toybox
    [],
]
FLAGS = st.sampled_from([None, "rd wr mr mw me ac", "rd wr mr mw me ac nh"])


@st.composite
def counters(draw: st.DrawFn, keys: list[str], pages: int) -> Counters:
    """Return counters as a kernel counts: the parts of Rss add up, nothing is larger than the mapping."""
    anonymous, of_file, swapped = draw(st.integers(0, pages)), draw(st.integers(0, pages)), draw(st.integers(0, pages))
    of_file = min(of_file, pages - anonymous)
    swapped = min(swapped, pages - anonymous - of_file)
    resident = anonymous + of_file
    shared = draw(st.integers(0, resident))
    dirty_shared, dirty_own = draw(st.integers(0, shared)), draw(st.integers(0, resident - shared))
    counters_kib = {
        "Rss": resident,
        "Pss": resident - shared // 2,
        "Shared_Clean": shared - dirty_shared,
        "Shared_Dirty": dirty_shared,
        "Private_Clean": resident - shared - dirty_own,
        "Private_Dirty": dirty_own,
        "Dirty": dirty_shared + dirty_own,
        "Anonymous": anonymous,
        "Swap": swapped,
        "SwapPss": draw(st.integers(0, swapped)),
        "Private_Hugetlb": 0,
    }
    return Counters({key: place for place, key in enumerate(keys)}, tuple(counters_kib[key] * PAGE for key in keys))


@st.composite
def wild_counters(draw: st.DrawFn, keys: list[str]) -> Counters:
    """Return counters as a damaged or hostile text may: any numbers."""
    values = draw(st.lists(st.integers(0, 8 * PAGE), min_size=len(keys), max_size=len(keys)))
    return Counters({key: place for place, key in enumerate(keys)}, tuple(values))


@st.composite
def files(draw: st.DrawFn) -> ElfFile:
    """Return a small program or library: sections of random sizes, with variables at random places, some on others."""
    relro_bytes = draw(st.sampled_from([0, 40, 4096]))
    places = st.tuples(st.sampled_from([".data", ".bss", ".data.rel.ro"]), st.integers(0, 9000), st.integers(0, 6000))
    variables = draw(st.lists(places, max_size=4))
    return ElfFile(
        type=draw(st.sampled_from([ET_DYN, ET_EXEC])),
        relro=[".data.rel.ro"] if relro_bytes else [],
        sections=[
            Section(".text", flags=RX, data=bytes(draw(st.sampled_from([1, 4000, 6000])))),
            Section(".data.rel.ro", flags=RW, data=b"r" * relro_bytes),
            Section(".data", flags=RW, data=b"d" * draw(st.integers(0, 9000)), align=32),
            Section(".bss", SHT_NOBITS, RW, size=draw(st.integers(0, 20_000)), align=64),
        ],
        symbols=[Sym(f"v{n}", At(section, offset), size) for n, (section, offset, size) in enumerate(variables)],
    )


Place = tuple[int, int, str, int]  # start, end, permissions, offset


def loaded(image: Image, after_addr: int) -> tuple[list[Place], tuple[int, int]]:
    """Return where the loader maps a file behind an address, and the pages of its .bss, which may be none."""
    at_least = min(segment.vaddr for segment in image.loads) // PAGE * PAGE
    bias_addr = 0 if image.type == ET_EXEC else max(0, after_addr - at_least)
    relro = image.segment(PT_GNU_RELRO)
    places, bss = [], (0, 0)
    for segment in image.loads:
        start_addr = bias_addr + segment.vaddr // PAGE * PAGE
        file_end_addr = -(-(bias_addr + segment.vaddr + segment.file_bytes) // PAGE) * PAGE
        end_addr = -(-(bias_addr + segment.vaddr + segment.memory_bytes) // PAGE) * PAGE
        offset = segment.offset // PAGE * PAGE
        if relro and segment.is_writable:
            locked_addr = min(file_end_addr, (bias_addr + relro.vaddr + relro.memory_bytes) // PAGE * PAGE)
            if start_addr < locked_addr:
                places.append((start_addr, locked_addr, "r--p", offset))
            start_addr, offset = max(start_addr, locked_addr), offset + max(0, locked_addr - start_addr)
        if start_addr < file_end_addr:
            places.append((start_addr, file_end_addr, "rw-p" if segment.is_writable else "r-xp", offset))
        if file_end_addr < end_addr:
            bss = (file_end_addr, end_addr)
    return places, bss


@st.composite
def processes(draw: st.DrawFn, *, is_wild: bool = False, key_sets: list[list[str]] = KEY_SETS) -> Process:
    """Draw loaded files and other mappings, often side by side; a wild text has empty, overlapping and descending ones.

    A .bss is nameless or part of the heap, merged with what follows it or not.
    """
    images = {key: read_image(write(file), key.name) for key in KEYS if (file := draw(st.none() | files()))}
    keys = draw(st.sampled_from(key_sets))
    mappings: list[Mapping] = []

    def add(place: Place, key: FileKey | None, name: str = "") -> None:
        start_addr, end_addr, permissions, offset = place
        pages = (end_addr - start_addr) // PAGE
        found = draw(wild_counters(keys) if is_wild else counters(keys, pages))
        device, inode, name = key or ("00:00", 99 if name.startswith("/") else 0, name)
        mappings.append(Mapping(start_addr, end_addr, permissions, offset, device, inode, name, found, draw(FLAGS)))

    for _ in range(draw(st.integers(1, 5))):
        at = mappings[-1].end_addr if mappings else BASE
        at += PAGE * draw(st.sampled_from([0, 0, 1, 3] + ([-2] if is_wild else [])))
        key = draw(st.sampled_from([None, *KEYS]))
        places, bss = loaded(images[key], at) if key in images else ([], (0, 0))
        if key is None or not places or places[0][0] < at:
            pages = draw(st.integers(0 if is_wild else 1, 6))
            offset = PAGE * draw(st.integers(0, 4)) if key else 0
            place = (at, at + pages * PAGE, draw(st.sampled_from(PERMISSIONS)), offset)
            add(place, key, draw(st.sampled_from(NAMES)))
            continue
        for place in places:
            add(place, key)
        start_addr, end_addr = bss
        if start_addr < end_addr and draw(st.integers(0, 4)):
            if is_wild:
                add((start_addr, start_addr, "rw-p", 0), None)
                add((start_addr + PAGE, start_addr + PAGE, "rw-p", 0), None)
            merged_addr = end_addr + PAGE * draw(st.sampled_from([0, 0, 2]))
            add((start_addr, merged_addr, "rw-p", 0), None, draw(st.sampled_from(["", "", "[heap]"])))
    dialect = {0: "pmap -d", 2: "pmap -x"}.get(len(keys), "smaps")
    return MemoryMap(dialect, tuple(mappings), command=draw(st.sampled_from([None, "program --wait"]))), images


class Files:
    """What the files say beside their headers."""

    @staticmethod
    @cache
    def contents_of(loaded: LoadedObject) -> Contents | None:
        return read_contents(loaded.image) if loaded.image else None

    @staticmethod
    def relocated_pages_of(loaded: LoadedObject, page_bytes: int) -> PageNumbers:
        return PageNumbers(((loaded.bias_addr + 0x2000) // page_bytes,))


def audit_of(
    memory: MemoryMap,
    images: Dict[FileKey, Image],
    pages: dict[int, tuple[PageRange, ...]] | None = None,
    presence: Presence | None = None,
) -> Audit:
    text, *_ = read_texts(b"00001000-00002000 rw-p 00000000 00:00 0 \n", "text")
    snapshot = text._replace(memory=memory, pages=pages, page_bytes=PAGE, notes=())
    return audit_snapshot(snapshot, images, Files(), target="text", presence=presence)


# --- the laws ---------------------------------------------------------------------------------------------------------

SOME = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@SOME
@given(processes())
def test_rows_add_up_to_the_totals(process: Process) -> None:
    memory, images = process
    audit = audit_of(memory, images)  # its constructor refuses rows that do not add up
    totals = audit.totals
    mapped_bytes = sum(mapping.size_bytes for mapping in memory.mappings)
    assert totals.mapped.bytes == mapped_bytes == sum(row.mapped_bytes for row in audit.ledger)
    if totals.private.bytes is not None:
        assert totals.private.bytes == sum(row.bytes or 0 for row in audit.ledger) <= mapped_bytes


@SOME
@given(processes(key_sets=[SMAPS]))
def test_private_memory_and_that_of_relatives_is_what_the_kernel_counts_as_anonymous(process: Process) -> None:
    memory, images = process
    audit = audit_of(memory, images)
    totals = audit.totals
    swapped_bytes = sum(mapping.counters.get("SwapPss") or 0 for mapping in memory.mappings if not mapping.is_shared)
    ours = (totals.private.bytes or 0) + (totals.cow_shared.bytes or 0)
    assert ours == memory.sum("Anonymous") + swapped_bytes
    # A file in memory counts once, with all that it holds: that its mappings show is in `memory_files`.
    in_memory = {id(mapping) for file in memory_files(memory.mappings, {}) for mapping in file.mappings}
    resident = [mapping for mapping in memory.mappings if id(mapping) not in in_memory]
    file_bytes = sum((one.counters.get("Rss") or 0) - (one.counters.get("Anonymous") or 0) for one in resident)
    assert totals.shared_once.bytes == file_bytes + sum(file.shared_bytes for file in audit.memory_files)


@SOME
@given(processes(is_wild=True))
def test_any_text_gives_an_audit_whose_rows_add_up(process: Process) -> None:
    memory, images = process
    audit = audit_of(memory, images)
    assert sum(row.mapped_bytes for row in audit.ledger) == sum(mapping.size_bytes for mapping in memory.mappings)


@SOME
@given(processes(is_wild=True))
def test_no_figure_is_negative(process: Process) -> None:
    memory, _ = process
    for row in audit_of(memory, {}).ledger:
        assert min(row.mapped_bytes, row.bytes or 0, row.shared_bytes or 0, row.pages or 0) >= 0, row


def private_pages(memory: MemoryMap, random: Random) -> dict[int, tuple[PageRange, ...]]:
    """Return some pages of each mapping that is asked for them: one that has anonymous memory."""
    return {
        mapping.start_addr: tuple(
            PageRange(at, at + PAGE)
            for at in range(mapping.start_addr, mapping.end_addr, PAGE)
            if random.random() < 0.5
        )
        for mapping in memory.mappings
        if mapping.counters.get("Anonymous") or mapping.counters.get("Swap")
    }


def bytes_by_owner(rows: Iterable[MappingCost | Row]) -> dict[str, tuple[int, int]]:
    """Return the private and the mapped bytes of each owner."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        private_bytes, mapped_bytes = found.get(row.owner, (0, 0))
        found[row.owner] = private_bytes + (row.bytes or 0), mapped_bytes + row.mapped_bytes
    return found


@SOME
@given(processes(key_sets=[SMAPS]), st.randoms(use_true_random=False))
def test_rows_add_up_to_the_private_pages_where_these_are_known(process: Process, random: Random) -> None:
    memory, images = process
    pages = private_pages(memory, random)
    audit = audit_of(memory, images, pages)
    # Of swapped pages that others have, too, the counters say the share, and no page bits which these are.
    shares = [mapping.counters.swap_share_bytes() or 0 for mapping in memory.mappings if not mapping.is_shared]
    assert audit.totals.private.bytes == PAGE * sum(map(len, pages.values())) + sum(shares)
    assert not any(row.owner.startswith("[merged: ") for row in audit.ledger)


@SOME
@given(processes(key_sets=[SMAPS]), st.booleans(), st.randoms())
def test_without_symbols_each_owner_holds_the_same(process: Process, has_pages: bool, random: Random) -> None:  # noqa: FBT001 # drawn
    memory, images = process
    starts = [mapping.start_addr for mapping in memory.mappings]
    pages = private_pages(memory, random) if has_pages and len(starts) == len(set(starts)) else None
    text, *_ = read_texts(b"00001000-00002000 rw-p 00000000 00:00 0 \n", "text")
    rows = owner_rows(text._replace(memory=memory, pages=pages, page_bytes=PAGE, notes=()), images)
    ledger = audit_of(memory, images, pages).ledger
    assert bytes_by_owner(rows) == bytes_by_owner([row for row in ledger if row.kind is not MemoryKind.KERNEL])


@SOME
@given(
    st.booleans().flatmap(lambda is_wild: processes(is_wild=is_wild)), st.booleans(), st.randoms(use_true_random=False)
)
def test_the_mappings_of_each_owner_add_up_to_its_rows(process: Process, has_pages: bool, random: Random) -> None:  # noqa: FBT001 # drawn
    memory, images = process
    starts = [mapping.start_addr for mapping in memory.mappings]
    # Mappings of one address have no pages of their own.
    pages = private_pages(memory, random) if has_pages and len(starts) == len(set(starts)) else None
    audit = audit_of(memory, images, pages, not_looked_at)
    assert bool(audit.mappings) == any(row.bytes is not None for row in audit.ledger)
    if audit.mappings:
        assert bytes_by_owner(audit.mappings) == bytes_by_owner(audit.ledger)
    sizes = [mapping.bytes or 0 for mapping in audit.mappings if mapping.start_addr is not None]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 not in sizes


@SOME
@given(processes(key_sets=[SMAPS[:5]]), st.randoms(use_true_random=False))
def test_rows_add_up_on_a_kernel_that_has_page_bits_and_does_not_count_anonymous_memory(
    process: Process, random: Random
) -> None:
    memory, images = process  # Linux before 2.6.37
    audit = audit_of(memory, images, private_pages(memory, random))
    assert audit.totals.private.bytes == sum(row.bytes or 0 for row in audit.ledger)


@SOME
@given(processes())
def test_every_mapping_is_covered_by_its_parts_in_order(process: Process) -> None:
    memory, images = process
    parts = lay_out(memory, images, PAGE)
    covered = [at for part in parts for at in range(part.start_addr, part.end_addr, PAGE)]
    mapped = [at for mapping in memory.mappings for at in range(mapping.start_addr, mapping.end_addr, PAGE)]
    assert covered == mapped
    for part in parts:
        assert part.mapping.start_addr <= part.start_addr < part.end_addr <= part.mapping.end_addr


@SOME
@given(processes(), st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_known_is_irrelevant(process: Process, random: Random) -> None:
    memory, images = process
    shuffled = list(images.items())
    random.shuffle(shuffled)
    assert audit_of(memory, dict(shuffled)) == audit_of(memory, images)


@SOME
@given(processes())
def test_rows_come_in_one_order_the_largest_first(process: Process) -> None:
    memory, images = process
    rows = audit_of(memory, images).ledger
    assert rows == audit_of(memory, images).ledger
    sizes = [row.mapped_bytes if row.bytes is None else row.bytes for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    keys = [(row.owner, row.kind, row.section, row.symbol, row.name, row.is_writable) for row in rows]
    assert len(keys) == len(set(keys))


@SOME
@given(processes())
def test_knowing_the_files_moves_bytes_and_changes_no_total(process: Process) -> None:
    memory, images = process
    assert audit_of(memory, images).totals == audit_of(memory, {}).totals
