"""The report of `footprint audit` without options: what it costs, who holds it, what to do, on one screen."""

import re
from typing import TYPE_CHECKING, Final

from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Fold,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    note_lines,
)
from footprint.model.audit import Audit, program_name, program_path
from footprint.model.row import MemoryKind
from footprint.text.escape import shortened
from footprint.text.units import counted, first_of, format_bytes, plural
from footprint.verbs.audit.text import (
    cost_at_count,
    cost_heading,
    group_totals,
    ledger_heading,
    ledger_table,
    members_table,
    origin,
    title,
    totals_facts,
    verdict,
)

if TYPE_CHECKING:
    from footprint.model.finding import Advice, Remedy

_MOST_OWNERS: Final = 8
_MOST_MEMBERS: Final = 2
_MOST_SUBJECTS: Final = 3
# A saving below this share of the cost is none of the first.
_LEAST_SHARE: Final = 0.001
_MOST_NOTES: Final = 3
_LONGEST_NOTE: Final = 140
_LONGEST_REMEDY: Final = 134
_LONGEST_SUBJECTS: Final = 60
# A remedy goes on with a condition or an explanation, which -v shows.
_FIRST_STEP: Final = re.compile(r"[;:] (?!`)")
# Memory that the program maps itself is named only where its shape proves whose it is.
_LEAST_ANONYMOUS: Final = 5  # a fifth of the private memory
_PROFILERS: Final = (
    ("libpython", "memray shows what Python code asked for"),
    ("python", "memray shows what Python code asked for"),
    ("libruby", "ObjectSpace.dump_all shows its objects"),
    ("beam", "erlang:memory() shows its parts"),
    ("libcoreclr", "dotnet-gcdump shows its objects"),
    ("libjvm", "jcmd PID VM.native_memory shows its parts"),
)
# This rule is a slow one: where it was run, all were.
_SLOW_RULE: Final = "unused-library"


def summary_document(audit: Audit) -> Document:
    """Show what an audit costs, the dearest owners, and what to do about it, in some forty lines."""
    names = Names({row.owner for row in audit.ledger}, is_whole=False)
    is_group = audit.is_group
    table = ledger_table(
        audit.ledger,
        "owner",
        _MOST_OWNERS,
        names,
        is_virtual=audit.totals.private.bytes is None,
        has_shared=not is_group and audit.source != "prediction",
    )
    return (
        Heading(
            f"footprint audit: {counted(len(audit.members), 'process')}  {audit.target}" if is_group else title(audit)
        ),
        Paragraph(origin(audit)),
        *(_group_costs(audit) if is_group else _costs(audit)),
        Heading("Where the private memory of all is, by owner" if is_group else ledger_heading(audit, "owner")),
        table._replace(fold=Fold.ONE_LINE),
        *advice_blocks(audit),
        *_beside(audit),
        *_notes(audit),
        _verdict(audit, names),
    )


def _costs(audit: Audit) -> tuple[Block, ...]:
    projection = audit.projection
    # The last line has what one more costs.
    is_asked = projection.count > 1 or projection.limits or projection.points
    return (
        Heading(cost_heading(audit)),
        totals_facts(audit, has_parts=False),
        *(cost_at_count(audit, has_terms=False) if is_asked else ()),
    )


def _group_costs(audit: Audit) -> tuple[Block, ...]:
    from footprint.verbs.audit.family_text import family_blocks  # noqa: PLC0415 # few audits are of groups

    return (
        Heading("Together they cost"),
        group_totals(audit, has_parts=False),
        *family_blocks(audit, is_brief=True),
        Heading("Each process by itself"),
        members_table(audit, _MOST_MEMBERS),
    )


def _verdict(audit: Audit, names: Names) -> Block:
    if not audit.is_group:
        return verdict(audit, names)
    from footprint.verbs.audit.family_text import family_verdict  # noqa: PLC0415 # the same

    return Verdict(family_verdict(audit))


def advice_blocks(audit: Audit, detail: str = "-v") -> list[Block]:
    """Show the largest savings in what the user builds or starts, and what searches for more; `detail` shows all."""
    searched = {searched_rule.rule for searched_rule in audit.searched_rules}
    if not searched and not audit.findings:
        return []
    advice = advice_about(audit)
    blocks: list[Block] = [Heading("What to do")]
    if advice.savings or advice.rest_count:
        blocks.append(_savings(advice, audit.count, detail))
    elif advice.packaged_count:
        size, files = format_bytes(advice.packaged_bytes), counted(advice.packaged_count, "file")
        blocks.append(
            Paragraph(
                f"Nothing was found in its own files. Rebuilding {files} of packages saves {size}: {detail} shows how."
            )
        )
    else:
        blocks.append(Paragraph("Nothing was found that saves memory."))
    if _SLOW_RULE not in searched and audit.is_live and audit.saved_in is None:
        blocks.append(Paragraph(f"Not searched: unused libraries, copies (footprint audit --findings {audit.target})"))
    return blocks


def advice_about(audit: Audit) -> "Advice":
    """Return the savings of an audit; its program counts as the user's."""
    from footprint.model.finding import advice_of  # noqa: PLC0415 # few texts have findings

    name = program_name(audit)
    owners = (row.owner for row in audit.ledger if name and row.owner.rsplit("/", 1)[-1] == name)
    least_bytes = audit.projection.per_process_bytes * _LEAST_SHARE
    return advice_of(audit.findings, program_path(audit) or next(owners, ""), least_bytes)


def _savings(advice: "Advice", count: int, detail: str) -> Table:
    def cells(saving_bytes: int, text: str) -> tuple[str, ...]:
        at_count = (format_bytes(saving_bytes * count),) if count > 1 else ()
        return (format_bytes(saving_bytes), *at_count, text)

    footer = []
    if advice.rest_count:
        footer.append(cells(advice.rest_bytes, f"[{advice.rest_count} more: {detail} shows all]"))
    if advice.packaged_count:
        files = counted(advice.packaged_count, "file")
        footer.append(cells(advice.packaged_bytes, f"[by rebuilding {files} of packages: {detail} shows all]"))
    columns = ("saves", *((f"in {count:,}",) if count > 1 else ()), "remedy")
    rows = tuple(cells(saving.saving_bytes, _text(saving)) for saving in advice.savings)
    return Table(columns, rows, frozenset(), tuple(footer), Fold.TEXT)


def _text(remedy: "Remedy") -> str:
    step = _FIRST_STEP.split(remedy.step, maxsplit=1)[0]
    # What to do is worth more than all names.
    for most in (_MOST_SUBJECTS, 1):
        subjects = shortened(first_of(remedy.subjects, most), _LONGEST_SUBJECTS)
        why = f" ({remedy.rule}, {remedy.confidence}: {subjects})"
        if len(step) + len(why) <= _LONGEST_REMEDY:
            break
    return shortened(step, _LONGEST_REMEDY - len(why)) + why


def _beside(audit: Audit) -> list[Block]:
    """Show one line for the heap and one for the variables, with what shows them."""
    rows = []
    account = audit.allocator
    if account is not None and account.held_bytes:
        free = format_bytes(account.free_private_bytes)
        used = f"{format_bytes(account.live_bytes)} in use, {free} free: -v shows it"
        rows.append(("heap", format_bytes(account.held_bytes), used))
    anonymous_bytes = sum(row.bytes or 0 for row in audit.ledger if row.owner == "[anonymous]")
    if anonymous_bytes * _LEAST_ANONYMOUS > (audit.totals.private.bytes or 0) and not audit.is_group:
        files = {row.owner.rsplit("/", 1)[-1] for row in audit.ledger}
        profilers = [text for name, text in _PROFILERS if any(file.startswith(name) for file in files)]
        rows.append(("anonymous", format_bytes(anonymous_bytes), [*profilers, "what it maps past its allocator"][0]))
    heap = MemoryKind.HEAP
    named = [row.bytes for row in audit.ledger if row.symbol is not None and row.bytes and row.kind is not heap]
    if named:
        pages = "in pages that will be private" if audit.source == "prediction" else "in private pages"
        rows.append(("variables", format_bytes(sum(named)), f"{len(named):,} {pages}: --by symbol shows them"))
    heading = [] if audit.searched_rules or audit.findings else [Heading("In detail")]
    return [*heading, Facts(tuple(rows))] if rows else []


def _notes(audit: Audit) -> list[Block]:
    """Show the only note if it is short, else the names of the notes."""
    lines = note_lines(audit.notes, audit.target)
    if len(lines) == 1 and len(lines[0]) < _LONGEST_NOTE:
        return [Paragraph(lines[0])]
    names = first_of(list(dict.fromkeys(line.partition(":")[0] for line in lines)), _MOST_NOTES)
    shows = "shows it" if len(lines) == 1 else "shows them"
    return [Paragraph(f"{plural('Note') if len(lines) > 1 else 'Note'} {names}: -v {shows}.")] if lines else []
