"""The rules `thread-locals` and `relocated-tables`: what they find, how sure they are, and what they leave alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.elf.relocations import pages_relocated_alone
from footprint.findings.graph_rules.thread_locals import thread_locals
from footprint.findings.ledger_rules.relocated_tables import relocated_tables
from footprint.findings.registry import LedgerFacts
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Environment
from footprint.model.finding import Confidence, Finding
from footprint.model.row import Attribution, Evidence, MemoryKind, Row
from footprint.sources.programs import Programs
from tests.elfwriter import (
    DT_NEEDED,
    DT_SONAME,
    RO,
    RW,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_RELA,
    STT_FUNC,
    STT_TLS,
    TLS,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)
from tests.sysroot import GLIBC, Sysroot

K = 1024
PAGE = 4 * K
GLOB_DAT = 6  # on x86-64
MUSL = "/lib/ld-musl-x86_64.so.1"


# --- thread-locals ----------------------------------------------------------------------------------------------------


def with_block(*variables: int, used: bool = False, name: str = "variable") -> bytes:
    """Return a library with thread-local variables of some sizes, and a function that the program may use."""
    size = sum(variables)
    offsets = [sum(variables[:number]) for number in range(len(variables))]
    symbols = [
        Sym(f"{name}{number}", At(".tbss", offset), variable, STT_TLS)
        for number, (offset, variable) in enumerate(zip(offsets, variables, strict=True))
    ]
    exported = [Sym("used", At(".text"), 8, STT_FUNC)] if used else []
    return write(
        ElfFile(
            sections=[
                Section(".text", flags=RO, data=bytes(64)),
                Section(".tbss", SHT_NOBITS, TLS, size=size, align=16),
                Section(".data", SHT_PROGBITS, RW, bytes(64)),
            ],
            symbols=symbols,
            dynamic_symbols=exported,
            dynamic=[Dyn(DT_SONAME, "libblock.so")],
        )
    )


def found_in(
    folder: Path, library: bytes, *, interpreter: str = GLIBC, uses: bool = False, preload: str = ""
) -> tuple[Finding, ...]:
    root = Sysroot(folder)
    root.loader(path=interpreter)
    root.file("/usr/lib/libblock.so", library)
    needed = [] if preload else [Dyn(DT_NEEDED, "libblock.so")]
    sections = [
        Section(".interp", flags=RO, data=interpreter.encode() + b"\0"),
        Section(".data", flags=RW, data=bytes(8)),
    ]
    if uses:
        sections.append(Section(".rela.dyn", SHT_RELA, RO, [Rel(At(".data"), GLOB_DAT, "used", 0)]))
    program = ElfFile(
        sections=sections,
        dynamic_symbols=[Sym("used", 0, 0, STT_FUNC)] if uses else [],
        dynamic=needed or [Dyn(DT_SONAME, "program")],
    )
    root.file("/bin/program", write(program))
    programs = Programs(str(folder), Environment(preload=preload, hwcaps="baseline"), page_bytes=PAGE)
    return thread_locals(programs.graph("/bin/program"))


def test_a_block_of_an_unused_library_costs_each_thread_its_size(tmp_path: Path) -> None:
    (result,) = found_in(tmp_path, with_block(1 << 20))
    assert (result.rule, result.kind, result.subject) == ("thread-locals", "at-thread-start", "libblock.so")
    assert (result.saving_bytes, result.confidence) == (1 << 20, Confidence.HIGH)
    assert result.message == (
        "libblock.so has 1 MiB of thread-local variables (variable0 1 MiB): each thread pays all of it at its start"
    )
    assert "unused-library" in result.remedy


def test_the_names_of_thread_locals_are_shown_as_in_the_source_and_are_not_too_long(tmp_path: Path) -> None:
    namespaces = "5outer" + "21a_namespace_of_length" * 3
    (result,) = found_in(tmp_path, with_block(8 * K, name=f"_ZN{namespaces}5blockE."))
    assert "(outer::...::a_namespace_of_length::block" in result.message


def test_a_block_of_a_library_that_is_used_may_be_needed(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, with_block(8 * K, used=True), uses=True)
    assert (found.saving_bytes, found.confidence) == (8 * K, Confidence.MEDIUM)
    assert "libblock.so is used" in found.reasons[0]
    assert "pointer" in found.remedy


def test_the_three_largest_variables_are_named(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, with_block(16, 4 * K, 48, 2 * K))
    assert "(variable1 4 KiB, variable3 2 KiB, variable2 48 B)" in found.message


def test_without_symbols_none_is_named(tmp_path: Path) -> None:
    block = Section(".tbss", SHT_NOBITS, TLS, size=PAGE, align=16)
    stripped = ElfFile(sections=[block, Section(".data", flags=RW, data=b"1")], dynamic=[Dyn(DT_SONAME, "libblock.so")])
    (found,) = found_in(tmp_path, write(stripped))
    assert "4 KiB of thread-local variables: each thread" in found.message


@pytest.mark.parametrize(("size_bytes", "count"), [(PAGE - 17, 0), (PAGE - 15, 1), (PAGE, 1)])
def test_less_than_a_page_is_not_worth_a_word(tmp_path: Path, size_bytes: int, count: int) -> None:
    # The block is a multiple of 16 bytes.
    assert len(found_in(tmp_path, with_block(size_bytes))) == count


def test_with_musl_a_thread_pays_for_what_it_touches(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, with_block(1 << 20), interpreter=MUSL)
    assert (found.kind, found.saving_bytes) == ("when-touched", 0)
    assert "each thread pays what it touches of it" in found.message


def test_with_musl_the_first_thread_has_not_written_what_is_zero(tmp_path: Path) -> None:
    found_in(tmp_path, with_block(1 << 20), interpreter=MUSL)
    audit = footprint.audit("/bin/program", root=str(tmp_path), page_bytes=PAGE)
    assert sum(row.bytes or 0 for row in audit.ledger if row.owner == "[loader and thread block]") < 64 * K


def test_of_a_library_that_was_opened_later_a_thread_pays_what_it_touches(tmp_path: Path) -> None:
    root = Sysroot(tmp_path)
    root.loader()
    root.file("/usr/lib/libblock.so", with_block(1 << 20))
    root.program("libblock.so")
    programs = Programs(str(tmp_path), Environment(hwcaps="baseline"), page_bytes=PAGE)
    whole = programs.graph("/bin/program")
    objects = tuple(
        replace(one, found_by=FoundBy.OPENED) if one.path.endswith("libblock.so") else one for one in whole.objects
    )
    (found,) = thread_locals(replace(whole, objects=objects))
    assert (found.kind, found.saving_bytes) == ("when-touched", 0)


def test_a_library_that_was_preloaded_is_not_dropped_for_being_unused(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, with_block(1 << 20), preload="/usr/lib/libblock.so")
    assert found.confidence is Confidence.MEDIUM


# --- relocated-tables -------------------------------------------------------------------------------------------------


def table(**fields: Any) -> Row:  # noqa: ANN401 # fields of Row
    """Return the row of a table of four pages in .data.rel.ro."""
    row = Row(
        owner="/usr/lib/libone.so",
        kind=MemoryKind.RELRO,
        section=".data.rel.ro",
        symbol="table",
        name="table",
        bytes=4 * PAGE,
        mapped_bytes=4 * PAGE,
        shared_bytes=0,
        pages=4,
        sole_pages=4,
        relocated_bytes=4 * PAGE,
        is_writable=False,
        evidence=Evidence.PREDICTED,
        attribution=Attribution.PROGRAM_HEADERS,
    )
    return row._replace(**fields)


def nameless(**fields: Any) -> Row:  # noqa: ANN401 # fields of Row
    return table(**{"symbol": None, "name": "[no symbol: stripped]", "sole_pages": 0, **fields})


def test_a_sealed_table_alone_in_its_pages_is_a_sure_find() -> None:
    (found,) = relocated_tables(LedgerFacts((table(),), PAGE))
    assert (found.kind, found.subject, found.saving_bytes) == ("symbol", "table", 4 * PAGE)
    assert found.confidence is Confidence.HIGH
    assert found.message == "table (.data.rel.ro of libone.so, 16 KiB) is written at start"


def test_one_that_the_program_may_write_is_less_sure() -> None:
    (found,) = relocated_tables(LedgerFacts((table(kind=MemoryKind.DATA, section=".data", is_writable=True),), PAGE))
    assert found.confidence is Confidence.MEDIUM
    assert "the program can write them, too" in found.reasons[1]


@pytest.mark.parametrize(
    ("sole_pages", "relocated_bytes", "saving_bytes"),
    [
        (3, 4 * PAGE, 3 * PAGE),  # something else lies in the fourth
        (4, 2 * PAGE + 100, 2 * PAGE),  # the others are written for something else
        (1, PAGE - 8, 0),
        (0, 4 * PAGE, 0),
        (4, 0, 0),
        (4, None, 0),
    ],
)
def test_only_whole_pages_that_go_with_it_are_saved(
    sole_pages: int, relocated_bytes: int | None, saving_bytes: int
) -> None:
    found = relocated_tables(LedgerFacts((table(sole_pages=sole_pages, relocated_bytes=relocated_bytes),), PAGE))
    assert [one.saving_bytes for one in found] == ([saving_bytes] if saving_bytes else [])


def test_a_variable_that_shares_its_page_with_relocations_of_others_is_no_table(tmp_path: Path) -> None:
    # .data begins with a word that the loader writes, as .got.plt may before it; then come numbers up to the middle of
    # the second page, pointers up to the middle of the fourth, and numbers.
    half = PAGE // 2
    words = [0, *range(PAGE + half, 3 * PAGE + half, 8)]
    file = ElfFile(
        sections=[
            Section(".interp", flags=RO, data=GLIBC.encode() + b"\0"),
            Section(".data", flags=RW, data=bytes(4 * PAGE), align=PAGE),
            Section(".rela.dyn", SHT_RELA, RO, [Rel(At(".data", word), 8, 0, 0x4000) for word in words]),
        ],
        symbols=[
            Sym("numbers", At(".data", 8), PAGE + half - 8),
            Sym("names", At(".data", PAGE + half), 2 * PAGE),
            Sym("others", At(".data", 3 * PAGE + half), half),
        ],
        dynamic=[Dyn(DT_SONAME, "program")],
    )
    root = Sysroot(tmp_path)
    root.loader()
    root.file("/bin/program", write(file))
    audit = footprint.audit("/bin/program", root=str(tmp_path))
    tables = [finding for finding in audit.findings if finding.rule == "relocated-tables"]
    assert [(one.subject, one.saving_bytes) for one in tables] == [("names", PAGE)]


def test_pages_are_relocated_for_a_variable_alone_where_no_other_relocation_is_in_them() -> None:
    vaddrs = [0, *range(PAGE, 2 * PAGE, 8), 3 * PAGE - 8, 3 * PAGE]
    ranges = ((0, PAGE), (8, PAGE), (PAGE, 2 * PAGE), (PAGE + 8, 2 * PAGE), (8, 3 * PAGE), (8, 4 * PAGE))
    assert [pages_relocated_alone(vaddrs, *span, PAGE) for span in ranges] == [1, 0, 1, 0, 2, 3]


def test_what_no_symbol_names_is_told_for_the_object_as_one() -> None:
    rows = [nameless(relocated_bytes=3000), nameless(section=".data", relocated_bytes=6000)]
    (found,) = relocated_tables(LedgerFacts(tuple(rows), PAGE))
    assert (found.kind, found.subject, found.saving_bytes) == ("object", "libone.so", 2 * PAGE)
    assert found.confidence is Confidence.MEDIUM
    assert relocated_tables(LedgerFacts(tuple(rows[:1]), PAGE)) == ()


@pytest.mark.parametrize("name", ["[padding]", "[linker table]", "[page shared with the section before]"])
def test_what_is_no_variable_is_no_table(name: str) -> None:
    assert relocated_tables(LedgerFacts((nameless(name=name),), PAGE)) == ()


@pytest.mark.parametrize("section", [".got", ".got.plt", ".dynamic", ".init_array", ".fini_array"])
def test_the_tables_of_the_linker_are_not_counted(section: str) -> None:
    assert relocated_tables(LedgerFacts((table(section=section), nameless(section=section)), PAGE)) == ()


def test_the_largest_come_first_and_the_order_of_rows_does_not_matter() -> None:
    rows = [
        table(symbol="b", sole_pages=1),
        table(symbol="c"),
        nameless(owner="/usr/lib/libtwo.so", relocated_bytes=2 * PAGE),
        table(symbol="a", sole_pages=1),
    ]
    subjects = [relocated_table.subject for relocated_table in relocated_tables(LedgerFacts(tuple(rows), PAGE))]
    assert subjects == ["c", "libtwo.so", "a", "b"]
    assert subjects == [one.subject for one in relocated_tables(LedgerFacts(tuple(rows[::-1]), PAGE))]


def test_names_are_shown_as_people_write_them() -> None:
    (found,) = relocated_tables(LedgerFacts((table(symbol="_ZN3one5tableE"),), PAGE))
    assert found.subject == "one::table"
