"""The ledger: each byte of a process under one owner, section and symbol, adding up to what the kernel counts."""

from collections.abc import Container, Iterable, Sequence
from collections.abc import Mapping as Dict
from typing import Final, Protocol

from footprint.attribution.counters import Held
from footprint.attribution.kernel import KernelCost
from footprint.attribution.layout import LoadedObject, Part
from footprint.attribution.pages import Slice, clip, slices
from footprint.elf import Contents, Image
from footprint.model.evidence import Evidence, weakest
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.process import PageRange, ranges_bytes

__all__ = ("Files", "added_up", "ledger_rows", "merged_rows")


class Files(Protocol):
    """What the ledger asks of the files of a process."""

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        """Give what the writable sections of an object hold, or None where that cannot be read."""

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> Container[int]:
        """Give the numbers of the pages (addr divided by the page size) that relocations of an object write."""


_STRONGEST_FIRST: Final = {by: place for place, by in enumerate(Attribution)}


def ledger_rows(
    parts: Sequence[Part],
    held: Sequence[Held],
    pages: Dict[int, Sequence[PageRange]] | None,
    files: Files,
    page_bytes: int,
    kernel: Iterable[KernelCost],
    *,
    has_untouched: bool = False,
) -> tuple[Row, ...]:
    """Give the rows of a process, the largest first; those of one owner, section and symbol are added up.

    Args:
        parts: The mappings with their owners.
        held: What each mapping holds, in the same order.
        pages: By the start of its mapping, its private pages; where a mapping is missing, its counters decide.
        files: What the files of objects say; asked only for objects that need it.
        page_bytes: The size of a page.
        kernel: What the kernel spends on the process; rows of their own kind.
        has_untouched: Whether variables that lie in no private page have rows of their own.
    """
    accounts = _Accounts()
    touched = _touched(parts, held)
    # Mappings that differ only in place and size, as nearly all of a process that has many: counted, not made rows of.
    alike: dict[tuple[str, MemoryKind, Attribution, str, int], _Alike] = {}
    index = 0
    for one in held:
        part = parts[index]
        mapping = part.mapping
        past = index + 1
        while past < len(parts) and parts[past].mapping is mapping:
            past += 1
        if past == index + 1 and _is_opaque(part):
            key = (part.owner, part.kind, part.attribution, mapping.permissions, id(one))
            same = alike.get(key)
            if same is None:
                same = alike[key] = _Alike(part, one)
            same.count += 1
            same.mapped_bytes += part.end_addr - part.start_addr
        else:
            ranges = pages.get(mapping.start_addr) if pages else None
            if pages and ranges is None and one.private_bytes == 0:
                ranges = ()
            accounts.add(
                _mapping_rows(parts[index:past], one, ranges, files, page_bytes, touched, has_untouched=has_untouched)
            )
        index = past
    accounts.add(same.row(page_bytes) for same in alike.values())
    accounts.add(
        Row(
            owner="[kernel]",
            kind=MemoryKind.KERNEL,
            section=None,
            symbol=None,
            name=cost.name,
            bytes=cost.size_bytes,
            mapped_bytes=0,
            shared_bytes=0,
            pages=None,
            sole_pages=0,
            relocated_bytes=None,
            is_writable=False,
            evidence=cost.evidence,
            attribution=Attribution.NAME,
        )
        for cost in kernel
    )
    return accounts.rows()


def _touched(parts: Sequence[Part], held: Sequence[Held]) -> frozenset[LoadedObject]:
    """Give the objects of which anything is private: only their variables are worth telling apart."""
    found = set()
    each = iter(held)
    previous, private_bytes = None, None
    for part in parts:
        if part.mapping is not previous:
            previous, private_bytes = part.mapping, next(each).private_bytes
        if private_bytes and part.loaded is not None:
            found.add(part.loaded)
    return frozenset(found)


def merged_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Add up the rows of several processes; those of the kernel under one name for all.

    What each shares is left unknown: added up, pages that several of them have would count several times.
    """
    accounts = _Accounts()
    accounts.add(_without_place(row) for row in rows)
    return accounts.rows()


def added_up(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Give rows as a ledger has them: the largest first, those of one owner, section and symbol as one."""
    accounts = _Accounts()
    accounts.add(rows)
    return accounts.rows()


def _without_place(row: Row) -> Row:
    is_stacks = row.kind is MemoryKind.KERNEL and (row.name or "").startswith("[kernel stacks")
    return row._replace(name="[kernel stacks]" if is_stacks else row.name, shared_bytes=None)


class _Alike:
    """Mappings of one part that differ in nothing but their place and size."""

    __slots__ = ("_held", "_part", "count", "mapped_bytes")

    def __init__(self, part: Part, held: Held) -> None:
        self._part = part
        self._held = held
        self.count = 0
        self.mapped_bytes = 0

    def row(self, page_bytes: int) -> Row:
        """Give them as one row."""
        part, held = self._part, self._held
        row = _row(part, None, None, held.private_bytes, held.shared_bytes, page_bytes, _evidence(part, held))
        return row._replace(
            bytes=_times(row.bytes, self.count),
            mapped_bytes=self.mapped_bytes,
            shared_bytes=_times(row.shared_bytes, self.count),
            pages=_times(row.pages, self.count),
        )


def _times(one: int | None, count: int) -> int | None:
    return None if one is None else one * count


_AccountKey = tuple[tuple[object, ...], bool]


class _Accounts:
    """Adds up rows of one owner, kind, section and name."""

    def __init__(self) -> None:
        self._first: dict[_AccountKey, Row] = {}
        # Most accounts have one row: a list is made only for those that have several.
        self._several: dict[_AccountKey, list[Row]] = {}

    def add(self, rows: Iterable[Row]) -> None:
        first_rows, several = self._first, self._several
        for row in rows:
            # Owner, kind, section, symbol and name at once: one by one they would take longer than all else here.
            key = (row[:5], row.is_writable)
            first = first_rows.setdefault(key, row)
            if first is not row:
                several.setdefault(key, [first]).append(row)

    def rows(self) -> tuple[Row, ...]:
        def order(row: Row) -> tuple[object, ...]:
            owner, kind, section, symbol, name = row[:5]
            private_bytes, mapped_bytes = row[5:7]
            own_bytes = mapped_bytes if private_bytes is None else private_bytes
            return (-own_bytes, -mapped_bytes, owner, kind, section or "", symbol or "", name or "")

        whole = self._first | {key: _together(rows) for key, rows in self._several.items()}
        return tuple(sorted(whole.values(), key=order))


def _together(rows: Sequence[Row]) -> Row:
    """Add up rows of the same account; the sum is as weak as the weakest."""
    first = rows[0]
    return Row(
        first.owner,
        first.kind,
        first.section,
        first.symbol,
        first.name,
        _sum([row.bytes for row in rows]),
        sum([row.mapped_bytes for row in rows]),
        _sum([row.shared_bytes for row in rows]),
        _sum([row.pages for row in rows]),
        sum([row.sole_pages for row in rows]),
        _sum([row.relocated_bytes for row in rows]),
        first.is_writable,
        weakest({row.evidence for row in rows}),
        max({row.attribution for row in rows}, key=_STRONGEST_FIRST.__getitem__),
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    """Add up figures; what is unknown makes the sum unknown."""
    known = [one for one in figures if one is not None]
    return sum(known) if len(known) == len(figures) else None


def _is_opaque(part: Part) -> bool:
    """Tell whether nothing can be said of what lies in a part."""
    return part.loaded is None or part.loaded.image is None or part.kind is MemoryKind.SHARED


def _evidence(part: Part, held: Held) -> Evidence:
    """Tell how the bytes of a part are known: they are the kernel's; that they are this object's may be assumed."""
    is_guess = part.kind is MemoryKind.BSS and part.attribution.is_assumed
    return weakest((held.evidence, Evidence.ESTIMATED)) if is_guess else held.evidence


def _mapping_rows(
    parts: Sequence[Part],
    held: Held,
    ranges: Sequence[PageRange] | None,
    files: Files,
    page_bytes: int,
    touched: Container[LoadedObject],
    *,
    has_untouched: bool,
) -> Iterable[Row]:
    """Give the rows of one mapping, which is one part or several."""
    mapping = parts[0].mapping
    private_bytes = held.private_bytes
    if ranges is None and private_bytes == mapping.size_bytes:
        # Every page is private: no page bits are needed to say which.
        ranges = (PageRange(mapping.start_addr, mapping.end_addr),)
    elif ranges is None and len(parts) > 1 and private_bytes:
        yield _merged(parts, held, page_bytes)
        return
    for place, part in enumerate(parts):
        # File pages are only in the first part: the others are memory without a file.
        shared_bytes = held.shared_bytes if place == 0 or held.shared_bytes is None else 0
        evidence = _evidence(part, held)
        own = None if ranges is None else clip(ranges, part.start_addr, part.end_addr)
        share_bytes = private_bytes if own is None else ranges_bytes(own)
        loaded = part.loaded
        if loaded is None or loaded.image is None or part.kind is MemoryKind.SHARED:
            yield _row(part, None, None, share_bytes, shared_bytes, page_bytes, evidence)
        elif (
            own is not None
            and (own or (loaded in touched and part.kind is not MemoryKind.TEXT))
            and (contents := files.contents_of(loaded)) is not None
        ):
            relocated_pages = files.relocated_pages_of(loaded, page_bytes)
            found = slices(part, loaded, contents, own, page_bytes, relocated_pages, has_untouched=has_untouched)
            yield from _slice_rows(part, found, shared_bytes, weakest((evidence, Evidence.DERIVED)))
        elif part.kind is MemoryKind.TEXT:
            yield _row(part, None, None, share_bytes, shared_bytes, page_bytes, evidence)
        else:
            label = _sections_label(part, loaded.image)
            name = None
            if share_bytes and label and "+" in label:
                name = f"[{share_bytes // page_bytes} of {part.size_bytes // page_bytes} pages private]"
            yield _row(part, label, name, share_bytes, shared_bytes, page_bytes, evidence)


def _slice_rows(part: Part, found: Sequence[Slice], shared_bytes: int | None, evidence: Evidence) -> Iterable[Row]:
    """Give the rows of a part that is split to the symbol; the pages that it shares are a row of their own."""
    new = tuple.__new__  # makes a named tuple in half the time that its own constructor takes
    owner, is_writable, attribution = part.owner, part.mapping.is_mapped_writable, part.attribution
    for section, symbol, name, kind, mapped_bytes, private_bytes, pages, sole_pages, relocated_bytes in found:
        yield new(
            Row,
            (
                owner,
                kind or part.kind,
                section,
                symbol,
                name,
                private_bytes,
                mapped_bytes,
                0,
                pages,
                sole_pages,
                relocated_bytes,
                is_writable,
                evidence,
                attribution,
            ),
        )
    if shared_bytes:
        yield _row(part, None, "[shared pages]", 0, shared_bytes, 1, evidence)._replace(mapped_bytes=0)


def _row(
    part: Part,
    section: str | None,
    name: str | None,
    private_bytes: int | None,
    shared_bytes: int | None,
    page_bytes: int,
    evidence: Evidence,
) -> Row:
    return Row(
        part.owner,
        part.kind,
        section,
        None,
        name,
        private_bytes,
        part.size_bytes,
        shared_bytes,
        None if private_bytes is None else -(-private_bytes // page_bytes),
        0,
        None,
        part.mapping.is_mapped_writable,
        evidence,
        part.attribution,
    )


def _merged(parts: Sequence[Part], held: Held, page_bytes: int) -> Row:
    """Give the row of a mapping in which the kernel merged neighbours and only some pages are private."""
    mapping = parts[0].mapping
    owners = " + ".join(dict.fromkeys(part.owner.rsplit("/", 1)[-1] for part in parts))
    whole = Part(
        mapping, mapping.start_addr, mapping.end_addr, f"[merged: {owners}]", MemoryKind.ANONYMOUS, parts[0].attribution
    )
    name = "[one mapping of several owners, partly private: page bits would tell whose]"
    return _row(whole, None, name, held.private_bytes, held.shared_bytes, page_bytes, held.evidence)


def _sections_label(part: Part, image: Image) -> str | None:
    """Name the sections that a part holds, in the order of their addresses."""
    if part.loaded is None:
        return None
    start, end = part.start_addr - part.loaded.bias_addr, part.end_addr - part.loaded.bias_addr
    names = [
        section.name
        for section in image.sections
        if section.is_in_memory
        and not (section.is_tls and not section.has_file_bytes)
        and section.size_bytes
        and section.vaddr < end
        and start < section.vaddr + section.size_bytes
    ]
    if len(names) > 4:
        names = [*names[:2], "...", names[-1]]
    return "+".join(names) or None
