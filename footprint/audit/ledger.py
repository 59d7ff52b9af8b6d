"""The ledger: each byte of a process under one owner, section and symbol, adding up to what the kernel counts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from footprint.audit.kernel import KernelCost
from footprint.audit.layout import Attribution, Kind, LoadedObject, Part
from footprint.audit.measured import Held
from footprint.elf import Contents, Image, Residue, Variable
from footprint.evidence import Evidence, weakest
from footprint.partition import Claim, Gap, Piece, partition

__all__ = ("Row", "ledger_rows")

ContentsOf = Callable[[LoadedObject], Contents | None]
_STRONGEST_FIRST: Final = {by: place for place, by in enumerate(Attribution)}


class Row(NamedTuple):
    """One line of the ledger.

    Attributes:
        owner: The object's path as the kernel names it, or a name in brackets for what no file owns.
        kind: What the memory is for.
        section: The section, several joined by `+` where they cannot be told apart, or None.
        symbol: The linker name, or None where no symbol owns the bytes.
        name: What to show for the symbol, or why there is none.
        bytes: Private bytes; None where only virtual sizes are known.
        mapped_bytes: Virtual size; 0 for what is no part of the address space.
        shared_bytes: Resident bytes that are paid once per machine; None where unknown.
        pages: How many pages the bytes lie in: for a symbol all that it reaches into, shared with others or not.
        is_writable: Whether the range counts into `mapped_writable_bytes`.
        evidence: How `bytes` is known (for the virtual ones: `mapped_bytes`).
        attribution: How the owner is known.
    """

    owner: str
    kind: Kind
    section: str | None
    symbol: str | None
    name: str | None
    bytes: int | None
    mapped_bytes: int
    shared_bytes: int | None
    pages: int | None
    is_writable: bool
    evidence: Evidence
    attribution: Attribution


def ledger_rows(
    parts: Sequence[Part],
    held: Sequence[Held],
    contents_of: ContentsOf,
    page_bytes: int,
    kernel: Iterable[KernelCost],
) -> tuple[Row, ...]:
    """Give the rows of a process, the largest first; those of one owner, section and symbol are added up.

    Args:
        parts: The mappings with their owners.
        held: What each mapping holds, in the same order.
        contents_of: What the writable sections of an object hold; asked only for objects that need it.
        page_bytes: The size of a page.
        kernel: What the kernel spends on the process; rows of their own kind.
    """
    accounts = _Accounts()
    index = 0
    for one in held:
        past = index + 1
        while past < len(parts) and parts[past].mapping is parts[index].mapping:
            past += 1
        for row in _mapping_rows(parts[index:past], one, contents_of, page_bytes):
            accounts.add(row)
        index = past
    for cost in kernel:
        accounts.add(
            Row(
                owner="[kernel]",
                kind=Kind.KERNEL,
                section=None,
                symbol=None,
                name=cost.name,
                bytes=cost.size_bytes,
                mapped_bytes=0,
                shared_bytes=0,
                pages=None,
                is_writable=False,
                evidence=cost.evidence,
                attribution=Attribution.NAME,
            )
        )
    return accounts.rows()


class _Accounts:
    """Adds up rows of one owner, kind, section and name."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], Row] = {}

    def add(self, row: Row) -> None:
        key = (row.owner, row.kind, row.section, row.symbol, row.name, row.is_writable)
        there = self._rows.get(key)
        self._rows[key] = row if there is None else _together(there, row)

    def rows(self) -> tuple[Row, ...]:
        def order(row: Row) -> tuple[object, ...]:
            own = row.mapped_bytes if row.bytes is None else row.bytes
            return (-own, -row.mapped_bytes, row.owner, row.kind, row.section or "", row.symbol or "", row.name or "")

        return tuple(sorted(self._rows.values(), key=order))


def _together(one: Row, other: Row) -> Row:
    """Add up two rows of the same account; the sum is as weak as the weaker."""
    is_alike = one.attribution is other.attribution
    return Row(
        one.owner,
        one.kind,
        one.section,
        one.symbol,
        one.name,
        _sum(one.bytes, other.bytes),
        one.mapped_bytes + other.mapped_bytes,
        _sum(one.shared_bytes, other.shared_bytes),
        _sum(one.pages, other.pages),
        one.is_writable,
        one.evidence if one.evidence is other.evidence else weakest((one.evidence, other.evidence)),
        one.attribution if is_alike else max(one.attribution, other.attribution, key=_STRONGEST_FIRST.__getitem__),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    """Add two figures; what is unknown makes the sum unknown."""
    return None if one is None or other is None else one + other


def _mapping_rows(parts: Sequence[Part], held: Held, contents_of: ContentsOf, page_bytes: int) -> Iterable[Row]:
    """Give the rows of one mapping, which is one part or several."""
    mapping = parts[0].mapping
    private_bytes = held.private_bytes
    if len(parts) > 1 and private_bytes and private_bytes != mapping.size_bytes:
        yield _merged(parts, held, page_bytes)
        return
    for place, part in enumerate(parts):
        is_whole = private_bytes == mapping.size_bytes
        share_bytes = part.size_bytes if is_whole else private_bytes
        shared_bytes = held.shared_bytes if place == 0 or held.shared_bytes is None else 0
        evidence = held.evidence if len(parts) == 1 else weakest((held.evidence, Evidence.DERIVED))
        if part.attribution.is_assumed and part.kind is Kind.BSS:
            # The bytes are the kernel's; that they are this object's is an assumption.
            evidence = weakest((evidence, Evidence.ESTIMATED))
        if part.loaded is None or part.loaded.image is None or part.kind in {Kind.TEXT, Kind.SHARED}:
            yield _row(part, None, None, share_bytes, shared_bytes, page_bytes, evidence)
        elif is_whole and (contents := contents_of(part.loaded)) is not None:
            yield from _symbol_rows(part, contents, page_bytes, weakest((evidence, Evidence.DERIVED)))
        else:
            label = _sections_label(part, part.loaded.image)
            name = None
            if share_bytes and label and "+" in label:
                name = f"[{share_bytes // page_bytes} of {part.size_bytes // page_bytes} pages private]"
            yield _row(part, label, name, share_bytes, shared_bytes, page_bytes, evidence)


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
        part.mapping.is_mapped_writable,
        evidence,
        part.attribution,
    )


def _merged(parts: Sequence[Part], held: Held, page_bytes: int) -> Row:
    """Give the row of a mapping in which the kernel merged neighbours and only some pages are private."""
    mapping = parts[0].mapping
    owners = " + ".join(dict.fromkeys(part.owner.rsplit("/", 1)[-1] for part in parts))
    whole = Part(
        mapping, mapping.start_addr, mapping.end_addr, f"[merged: {owners}]", Kind.ANONYMOUS, parts[0].attribution
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


def _symbol_rows(part: Part, contents: Contents, page_bytes: int, evidence: Evidence) -> Iterable[Row]:
    """Split a part whose pages are all private among the sections and symbols that lie in it."""
    if part.loaded is None:
        return
    bias_addr = part.loaded.bias_addr
    start, end = part.start_addr - bias_addr, part.end_addr - bias_addr
    claims = _section_claims(contents, part.loaded, start, end)
    for piece in partition(start, end, claims, _between_sections).pieces:
        section, owner, kind = piece.owner
        if isinstance(owner, Variable):
            symbol, name = owner.name, owner.name
        else:
            symbol, name = None, owner.label if isinstance(owner, Residue) else owner
        size_bytes = piece.end - piece.start
        pages = (piece.end + bias_addr - 1) // page_bytes - (piece.start + bias_addr) // page_bytes + 1
        yield Row(
            part.owner,
            kind or part.kind,
            section,
            symbol,
            name,
            size_bytes,
            size_bytes,
            0,
            pages,
            part.mapping.is_mapped_writable,
            evidence,
            part.attribution,
        )


_Owner = tuple[str | None, Variable | Residue | str, Kind | None]


def _section_claims(contents: Contents, loaded: LoadedObject, start: int, end: int) -> list[Claim[_Owner]]:
    """Give what the sections between two vaddrs hold: variables, remainders, and read-only sections as a whole."""
    claims: list[Claim[_Owner]] = []
    read: set[int] = set()
    for one in contents.sections:
        section = one.section
        read.add(section.index)
        # .tbss has no addresses of its own: those it claims are those of what follows it.
        is_elsewhere = section.is_tls and not section.has_file_bytes
        if is_elsewhere or section.vaddr >= end or section.vaddr + section.size_bytes <= start:
            continue
        kind = Kind(one.kind.value)
        for piece in one.ranges.pieces:
            owner: _Owner = (section.name, piece.owner, kind)
            claims.append(Claim(section.vaddr + piece.start, section.vaddr + piece.end, owner))
    for section in loaded.image.sections if loaded.image else ():
        is_read_only = section.is_in_memory and section.index not in read and not section.is_tls
        if is_read_only and section.vaddr < end and start < section.vaddr + section.size_bytes:
            owner = (section.name, "[read-only section in a private page]", None)
            claims.append(Claim(section.vaddr, section.vaddr + section.size_bytes, owner, rank=1))
    return claims


def _between_sections(gap: Gap[_Owner]) -> list[Piece[_Owner]]:
    if gap.after is None:
        owner: _Owner = (gap.before[0] if gap.before else None, "[rest of the last page]", None)
    elif gap.before is None:
        owner = (gap.after[0], "[page shared with the section before]", None)
    else:
        owner = (gap.before[0], "[padding between sections]", gap.before[2])
    return [Piece(gap.start, gap.end, owner)]
