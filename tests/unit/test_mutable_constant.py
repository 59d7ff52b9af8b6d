"""Rule `mutable-constant`: which variables could be `const`, and which are left alone."""

from typing import Any

import pytest

from footprint.elf.image import read_image
from footprint.elf.statics import Statics, read_statics
from footprint.findings.variable_rules.mutable_constant import constant_tables, mutable_constants
from footprint.model.finding import Confidence, Finding
from tests.elfwriter import (
    DT_SONAME,
    ET_DYN,
    RO,
    RW,
    RX,
    SHT_RELA,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)

# mov table(%rip), %eax; and mov %eax, table(%rip)
READ, WRITE = b"\x8b\x05", b"\x89\x05"
LEA_RDI_AND_CALL = b"\x48\x8d\x3d"
RET = b"\xc3"


def read(
    opcode: bytes,
    name: str = "table",
    *,
    data: bytes = b"\1" * 128,
    after: bytes = RET,
    **fields: Any,  # noqa: ANN401 # of ElfFile
) -> Statics:
    """Return a file with one variable, and a function that refers to it by an instruction."""

    def file(code: bytes) -> bytes:
        sections = [
            Section(".text", flags=RX, data=code),
            Section(".data", flags=RW, data=data),
            *fields.get("sections", ()),
        ]
        symbols = [Sym("f", At(".text"), len(code), STT_FUNC), Sym(name, At(".data"), len(data))]
        others = {key: value for key, value in fields.items() if key != "sections"}
        return write(ElfFile(sections=sections, symbols=symbols, **others))

    code = opcode + bytes(4) + after
    vaddrs = {section.name: section.vaddr for section in read_image(file(code), "x").sections}
    distance = vaddrs[".data"] - vaddrs[".text"] - len(opcode) - 4
    code = opcode + distance.to_bytes(4, "little", signed=True) + after
    return read_statics(read_image(file(code), "/opt/bin/program"))


def only(result: tuple[Finding, ...]) -> Finding:
    (one,) = result
    return one


def test_a_table_that_code_only_reads_could_be_const() -> None:
    found = only(mutable_constants(read(READ)))
    assert (found.rule, found.kind, found.subject) == ("mutable-constant", "read-only", "table")
    assert found.message == "table takes 128 B of .data of program, and nothing writes it"
    assert (found.confidence, found.size_bytes, found.saving_bytes) == (Confidence.HIGH, 128, 0)
    assert found.reasons == ("all code that refers to it only reads it",)


RUST = "declare it `static` without `mut`, `Cell` and atomics"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("table", "declare and define it `const`"),
        ("__tables_MOD_big", "give it the attribute `parameter`"),
        ("_ZN1r3BIG17h3e5c48d880263398E", RUST),
        ("_ZN4core3$LT$T$GT$3BIG17h3e5c48d880263398E.llvm.17", RUST),
        ("_RNvCs6GmmlP4bgsG_1r3BIG", RUST),
        ("_ZN5space5tableE", "declare and define it `const`"),
    ],
)
def test_the_remedy_is_in_the_words_of_the_language(name: str, remedy: str) -> None:
    shared = "it then lies in .rodata, which all processes share"
    assert only(mutable_constants(read(READ, name))).remedy == f"{remedy}: {shared}"


def test_one_that_code_writes_is_left_alone() -> None:
    assert mutable_constants(read(WRITE)) == ()
    assert mutable_constants(read(WRITE, "kTable"), private_of=lambda _: 0) == ()


@pytest.mark.parametrize(
    ("name", "private_bytes", "confidence"),
    [
        ("table", None, None),
        ("table", 4096, None),
        ("kTable", None, Confidence.LOW),
        ("TABLE_OF_THINGS", None, Confidence.LOW),
        ("_ZN2ns6kTableE", None, Confidence.LOW),
        ("table", 0, Confidence.MEDIUM),
        ("kTable", 0, Confidence.MEDIUM),
    ],
)
def test_where_its_address_is_passed_on_only_a_process_or_its_name_speaks_for_it(
    name: str, private_bytes: int | None, confidence: Confidence | None
) -> None:
    statics = read(LEA_RDI_AND_CALL, name, after=b"\xff\xd0" + RET)  # call *%rax
    found = mutable_constants(statics, private_of=None if private_bytes is None else lambda _: private_bytes)
    assert [one.confidence for one in found] == ([] if confidence is None else [confidence])


def test_what_is_private_of_it_now_is_what_const_saves() -> None:
    found = only(mutable_constants(read(READ), private_of=lambda _: 128))
    assert (found.saving_bytes, found.private_bytes) == (128, 128)
    assert found.message.endswith("and nothing writes it; 128 B of it is private now")


def test_tables_of_pointers_zeros_small_variables_and_those_that_others_bind_to_are_left_out() -> None:
    relocations = Section(".rela.dyn", SHT_RELA, RO, [Rel(At(".data", 8), 8, 0, 0x1000)])
    of_pointers = read(READ, sections=[relocations], dynamic=[Dyn(DT_SONAME, "x")], type=ET_DYN)
    assert constant_tables(of_pointers) == []
    assert constant_tables(read(READ, data=bytes(128))) == []
    assert constant_tables(read(READ, data=b"\1" * 63)) == []
    exported = [Sym("table", At(".data"), 128)]
    assert mutable_constants(read(READ, dynamic_symbols=exported)) == ()


def test_other_machines_are_not_searched() -> None:
    assert mutable_constants(read(READ, machine=183)) == ()


@pytest.mark.parametrize(("section", "names"), [(".data", ["table"]), (".data.cfg", ["table"]), ("things", [])])
def test_a_section_that_the_source_names_holds_what_code_may_go_through(section: str, names: list[str]) -> None:
    data = Section(section, flags=RW, data=b"\1" * 128)
    file = ElfFile(sections=[data], symbols=[Sym("table", At(section), 128)], type=ET_DYN)
    assert [one.name for one in constant_tables(read_statics(read_image(write(file), "program")))] == names
