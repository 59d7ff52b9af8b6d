"""Rule `relocated-tables`: variables full of pointers, which the loader writes in every process at its start.

A table of pointers is constant to the program, but each of its words is moved by the load address: its pages are
private in each process from the start. Most of what is written at start is written for that.
"""

from operator import attrgetter
from typing import Final

from footprint.elf.names import shown_name
from footprint.findings.registry import Fact, LedgerFacts, Rule
from footprint.model.finding import Confidence, Finding
from footprint.model.row import MemoryKind, Row
from footprint.text.units import format_bytes

_REMEDY: Final = (
    "hold offsets or indexes instead of pointers, or build the tables when they are first needed; a program that is"
    " linked with -no-pie needs no such writes, but its address is not randomised"
)
# Memory that a symbol would name; memory that never has a name, such as padding, only shares these pages.
_NAMELESS: Final = "[no symbol"
# Tables that the linker made for its references, not the program.
_RELOCATED_BYTES: Final = attrgetter("relocated_bytes")
_OF_LINKER: Final = (".got", ".plt", ".dynamic", ".init_array", ".fini_array", ".preinit_array")


def relocated_tables(ledger: LedgerFacts) -> tuple[Finding, ...]:
    """Find the variables that alone make pages private by their relocations, and objects without symbols for them."""
    page_bytes = ledger.page_bytes
    findings: list[Finding] = []
    nameless: dict[str, int] = {}
    # Few of the rows have any; of many processes each has hundreds.
    for row in filter(_RELOCATED_BYTES, ledger.rows):
        relocated_bytes = row.relocated_bytes or 0
        is_alone = row.symbol is None or row.sole_pages
        if not is_alone or row.section is None or row.section.startswith(_OF_LINKER):
            continue
        if row.symbol is None:
            if (row.name or "").startswith(_NAMELESS):
                nameless[row.owner] = nameless.get(row.owner, 0) + relocated_bytes
        else:
            page_count = min(row.sole_pages, relocated_bytes // page_bytes)
            if page_count and (alone_count := ledger.pages_relocated_alone(row)) is not None:
                # The global offset table may share the page of a variable that the loader does not write.
                page_count = min(page_count, alone_count)
            if page_count:
                findings.append(_of_symbol(row, page_count * page_bytes))
    findings += [
        _of_object(owner, size_bytes // page_bytes * page_bytes)
        for owner, size_bytes in nameless.items()
        if size_bytes >= page_bytes
    ]
    return tuple(sorted(findings, key=lambda finding: (-finding.saving_bytes, finding.subject)))


RULE: Final = Rule(
    "relocated-tables", "A table of addresses that the loader writes at each start", (Fact.LEDGER,), relocated_tables
)


def _of_symbol(row: Row, saving_bytes: int) -> Finding:
    owner = row.owner.rsplit("/", 1)[-1]
    name = shown_name(row.symbol or "")
    message = f"{name} ({row.section} of {owner}, {format_bytes(row.mapped_bytes)}) is written at start"
    reasons = ["nothing else named lies in these pages"]
    if row.kind is MemoryKind.RELRO:
        confidence = Confidence.HIGH
        reasons.append("it is sealed (RELRO), so nothing else writes them")
    else:
        confidence = Confidence.MEDIUM
        reasons.append("the program can write them, too, and then nothing is saved")
    return Finding(
        RULE.name, "symbol", name, message, saving_bytes, confidence, tuple(reasons), _REMEDY, object=row.owner
    )


def _of_object(owner: str, saving_bytes: int) -> Finding:
    name = owner.rsplit("/", 1)[-1]
    message = f"tables of {name} are written at start, and no symbol names them"
    reason = "its symbols would tell which variables they are"
    confidence = Confidence.MEDIUM
    return Finding(RULE.name, "object", name, message, saving_bytes, confidence, (reason,), _REMEDY, object=owner)
