"""Which variables of a file are copies of one thing, how sure that is, what they cost, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from footprint.dwarf.description import Declaration, LanguageStandard
from footprint.elf.image import read_image
from footprint.elf.initial import Initials
from footprint.elf.statics import Statics, read_statics
from footprint.findings.copies import (
    CopiedVariable,
    CopyOrigin,
    Cost,
    Declared,
    Lines,
    Scope,
    SearchedFile,
    _scope,
    find_copies,
    with_private_bytes,
)
from footprint.findings.merging import VARIES, Merging, Objection
from footprint.findings.variable_rules.duplicate_static import duplicate_findings
from footprint.formats.document import Paragraph, Table
from footprint.formats.finding_blocks import finding_blocks
from footprint.formats.issues import finding_issue
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.verbs.duplicates.answer import duplicates_document
from footprint.verbs.duplicates.call import Duplicates, declared_by_name
from tests.elfwriter import (
    DT_INIT,
    EM_RISCV,
    EM_X86_64,
    ET_DYN,
    RO,
    RW,
    SHN_ABS,
    SHT_NOBITS,
    SHT_RELA,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_FUNC,
    STT_OBJECT,
    STT_TLS,
    STV_HIDDEN,
    TLS,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)

# A page of .data whose every 32 bytes are the same, and one of .rodata; .bss has none.
ALIKE = bytes(range(1, 33)) * 8
SECTIONS = [
    Section(".rodata", flags=RO, data=ALIKE),
    Section(".tdata", flags=TLS, data=ALIKE),
    Section(".tbss", SHT_NOBITS, TLS, size=256),
    Section(".data.rel.ro", flags=RW, data=ALIKE),
    Section(".data.rel", flags=RW, data=ALIKE),
    Section(".data", flags=RW, data=ALIKE),
    Section(".bss", SHT_NOBITS, RW, size=256),
]
EMPTY: Lines = {}
# Behind the remedies for what the program can write.
ASK_COMPILER = "compile with -g: the lines that declare them tell whether they are one"
SHARED = "; all then share one: check that no source file relies on a copy that the others do not write"
R_X86_64_RELATIVE = 8


def source(name: str) -> Sym:
    return Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)


def static(name: str, number: int, section: str = ".data", size: int = 32, **what: Any) -> Sym:  # noqa: ANN401 # of Sym
    type_ = STT_TLS if section.startswith(".t") else STT_OBJECT
    return Sym(name, At(section, 32 * number), size, **{"type": type_, "binding": STB_LOCAL, **what})


def in_files(*names: str, files: Sequence[str] = ("a.c", "b.c", "c.c", "d.c"), **what: Any) -> list[Sym]:  # noqa: ANN401 # of static
    """Return each source file a variable, one after the other; `files` repeat where there are more names."""
    symbols = []
    for number, name in enumerate(names):
        symbols += [source(files[number % len(files)]), static(name, number, **what)]
    return symbols


def read(symbols: Sequence[Sym], sections: Sequence[Section] = tuple(SECTIONS), machine: int = EM_X86_64) -> Statics:
    file = ElfFile(sections=sections, symbols=symbols, machine=machine, relro=[".tdata", ".tbss", ".data.rel.ro"])
    return read_statics(read_image(write(file), "/opt/bin/program"))


def copies(symbols: Sequence[Sym], declared: Lines = EMPTY) -> list[CopiedVariable]:
    return list(find_copies(read(symbols), declared))


def only(symbols: Sequence[Sym], declared: Lines = EMPTY) -> CopiedVariable:
    (found,) = copies(symbols, declared)
    return found


# --- what is one thing ------------------------------------------------------------------------------------------------


def test_variables_of_one_name_with_the_same_contents_from_several_source_files_are_copies() -> None:
    found = only(in_files("table", "table", "table"))
    assert (found.name, found.size_bytes, len(found.copies), found.waste_bytes) == ("table", 32, 3, 64)
    assert (found.units, found.origin) == (("a.c", "b.c", "c.c"), CopyOrigin.HEADER)


def test_a_variable_of_which_there_is_one_is_no_copy() -> None:
    assert copies(in_files("one", "two")) == []


def test_several_names_at_one_address_are_no_copies() -> None:
    folded = [source("a.c"), static("table", 0), source("b.c"), static("table", 0)]
    assert copies(folded) == []
    assert only([*folded, source("c.c"), static("table", 1)]).waste_bytes == 32


def test_other_contents_are_other_things() -> None:
    other = [source("c.c"), static("table", 0, size=16), source("d.c"), Sym("table", At(".data", 40), 16, 1, STB_LOCAL)]
    assert copies(other) == []


@pytest.mark.parametrize(
    "symbols",
    [
        pytest.param(
            [source("a.c"), static("table", 0), source("b.c"), static("table", 1, ".rodata")],
            id="another section is another thing",
        ),
        pytest.param(
            [source("a.c"), static("table", 0, size=32), source("b.c"), static("table", 1, size=16)],
            id="another size is another thing",
        ),
    ],
)
def test_what_differs_in_section_or_size_is_another_thing(symbols: list[Sym]) -> None:
    assert copies(symbols) == []


def test_what_other_files_can_see_is_there_once_whatever_its_name() -> None:
    assert copies([static("table", at, binding=STB_GLOBAL) for at in range(2)]) == []
    assert copies([static("table", at, binding=STB_WEAK) for at in range(2)]) == []


@pytest.mark.parametrize(
    "names",
    [
        ("table.lto_priv.0", "table.lto_priv.1", "table"),
        ("table.llvm.1234567890", "table.llvm.9876543210"),
        ("table.0", "table.17"),
        ("table.3.lto_priv.0", "table.3.lto_priv.1"),
    ],
)
def test_what_compilers_add_to_tell_copies_apart_is_no_part_of_the_name(names: tuple[str, ...]) -> None:
    assert only(in_files(*names)).name == "table"


ORDERED = "colours", "sizes", "weights"
OF_ORDER = "the same name and contents beside two more constants, in one order in three or more source files"


@pytest.mark.parametrize(
    ("files", "orders", "is_sure"),
    [
        # The header defines three constants, and three source files include it.
        (("a.c", "b.c", "c.c"), (ORDERED, ORDERED, ORDERED), True),
        (("a.c", "b.c"), (ORDERED, ORDERED), False),
        # Two constants are often the same by chance, and so are some in another order.
        (("a.c", "b.c", "c.c"), (ORDERED[:2], ORDERED[:2], ORDERED[:2]), False),
        (("a.c", "b.c", "c.c"), (ORDERED, ORDERED, ORDERED[::-1]), False),
        # One source file that is linked twice is not two that include a header.
        (("a.c", "b.c", "b.c"), (ORDERED, ORDERED, ORDERED), False),
        (("a.c", "b.c", "c.c", "d.c"), (ORDERED, ORDERED, ORDERED, ORDERED[:1]), True),
        # The fourth has it too, but computed with it: its macros may give it other contents.
        (("a.c", "b.c", "c.c", "d.c"), (ORDERED, ORDERED, ORDERED, ORDERED[1:]), False),
    ],
)
@pytest.mark.parametrize("name", ["{}", "_ZL{length}{}"])
def test_without_lines_three_constants_in_one_order_speak_for_a_header(
    name: str, files: Sequence[str], orders: Sequence[Sequence[str]], *, is_sure: bool
) -> None:
    symbols, contents = [], b""
    for file, order in zip(files, orders, strict=True):
        symbols.append(source(file))
        for one in order:
            symbols.append(static(name.format(one, length=len(one)), len(contents) // 32, ".rodata"))
            contents += one.encode().ljust(32, b"!")
    sections = [Section(".rodata", flags=RO, data=contents) if one.name == ".rodata" else one for one in SECTIONS]
    (colours,) = [copied for copied in find_copies(read(symbols, sections)) if copied.shown_name == "colours"]
    assert colours.confidence is (Confidence.HIGH if is_sure else Confidence.LOW)
    assert (OF_ORDER in colours.reasons) == is_sure


@pytest.mark.parametrize("form", ["{}.3", "f.{}"])
def test_one_order_of_three_constants_of_functions_speaks_for_no_header(form: str) -> None:
    symbols, contents = [], b""
    for file in ("a.c", "b.c", "c.c"):
        symbols.append(source(file))
        for one in ORDERED:
            symbols.append(static(form.format(one), len(contents) // 32, ".rodata"))
            contents += one.encode().ljust(32, b"!")
    sections = [Section(".rodata", flags=RO, data=contents) if one.name == ".rodata" else one for one in SECTIONS]
    for copied in find_copies(read(symbols, sections)):
        assert copied.confidence is Confidence.LOW
        assert OF_ORDER not in copied.reasons


def test_a_hidden_global_that_link_time_optimisation_made_of_a_static_is_a_copy() -> None:
    hidden: dict[str, Any] = {"binding": STB_GLOBAL, "visibility": STV_HIDDEN}
    found = only([static(f"table.lto_priv.{at}", at, **hidden) for at in range(3)])
    assert (len(found.copies), found.confidence) == (3, Confidence.LOW)


@pytest.mark.parametrize(
    "name",
    [
        "CSWTCH.12",
        "__elf_set___libc_subfreeres_element_free_mem__",
        "C.4",
        "__const.main.x",
        "__compound_literal.0",
        "switch.table.f",
        "reltable.f",
        "__func__.1",
        "__FUNCTION__.1",
        "__PRETTY_FUNCTION__.f",
        "_ZZL3foovE8__func__",
        "_ZZN1a3fooEvE19__PRETTY_FUNCTION__",
        ".LC0",
        ".L.str.1",
        "DW.ref.__gxx_personality_v0",
        "completed.0",
        "__TMC_END__",
        "__frame_dummy_init_array_entry",
        "__do_global_dtors_aux_fini_array_entry",
    ],
)
def test_what_compilers_make_for_themselves_is_left_out(name: str) -> None:
    assert copies(in_files(name, name)) == []


@pytest.mark.parametrize("name", ["C", "constants", "__function_table", "completed_jobs", "_ZL8__func__x"])
def test_what_only_looks_like_it_is_not(name: str) -> None:
    assert only(in_files(name, name)).name == name


def test_the_largest_waste_comes_first() -> None:
    small = [source("a.c"), static("small", 0, size=16), source("b.c"), static("small", 1, size=16)]
    large = [source("a.c"), static("large", 2), source("b.c"), static("large", 3)]
    assert [copy.name for copy in copies([*small, *large])] == ["large", "small"]


# --- how sure it is ---------------------------------------------------------------------------------------------------


def test_contents_and_a_name_of_c_leave_doubt_and_nothing_to_advise() -> None:
    found = only(in_files("table", "table"))
    assert found.confidence is Confidence.LOW
    assert [duplicate_finding.remedy for duplicate_finding in duplicate_findings([found])] == [ASK_COMPILER]


def of_header(*names: str, files: Sequence[str] = ("a.cc", "b.cc", "c.cc")) -> list[Sym]:
    """Return constants that each of the source files has, in one order."""
    symbols = []
    for at, file in enumerate(files):
        symbols += [source(file), *(static(name, len(names) * at + n, ".rodata") for n, name in enumerate(names))]
    return symbols


def told(symbols: Sequence[Sym], *sections: bytes) -> dict[str, Confidence]:
    """Return the confidence in each name; each of the constants has 32 bytes of the section."""
    data = b"".join(sections) or ALIKE * 2
    statics = read(symbols, [Section(".rodata", flags=RO, data=data), *SECTIONS[1:]])
    return {copied.name: copied.confidence for copied in find_copies(statics)}


def test_two_constants_of_a_namespace_that_source_files_have_in_common_are_sure() -> None:
    table, names = "_ZN2nsL5tableE", "_ZN2nsL5namesE"
    assert told(of_header(table, names)) == {table: Confidence.HIGH, names: Confidence.HIGH}
    # One alone may be in each of the source files without a header, as may what only its source file knows.
    assert told(of_header(table)) == {table: Confidence.LOW}
    assert told(of_header("_ZL5table", "_ZL5names")) == {"_ZL5table": Confidence.LOW, "_ZL5names": Confidence.LOW}
    assert told(of_header(table, names, files=["a.cc"] * 3)) == {table: Confidence.LOW, names: Confidence.LOW}


def test_constants_beside_others_of_one_name_that_differ_only_resemble_each_other() -> None:
    # Two processors of LLVM have tables of the same names, of which some are the same by chance: none has a header,
    # those beside one that differs no more than those far from it.
    model, two, three = "_ZN4llvmL5ModelE", "_ZN4llvmL9ResourcesE", "_ZN4llvmL7ClassesE"
    same, other = bytes(range(1, 33)), bytes(range(32, 0, -1))
    symbols = of_header(model, two, three, files=["arm.cc", "aarch64.cc"])
    found = told(symbols, same, same, same, same, same, other)
    assert found == {model: Confidence.LOW, two: Confidence.LOW}
    found = told(symbols, same, same, other, same, other, same)
    assert found == {model: Confidence.LOW}


def test_a_constant_beside_a_variable_of_one_name_that_differs_only_resembles_the_others() -> None:
    # What compilers make for themselves does not count as what stands beside.
    table, names, symbols = "_ZN2nsL5tableE", "_ZN2nsL5namesE", list[Sym]()
    for at, (file, size) in enumerate([("a.cc", 4), ("b.cc", 4), ("c.cc", 8)]):
        symbols += [source(file), static(table, 3 * at, ".rodata"), static(names, 3 * at + 1, ".rodata")]
        symbols += [static("CSWTCH.1", 3 * at + 2, ".rodata"), static("state", at, size=size)]
    found = told(symbols)
    assert (found[table], found[names]) == (Confidence.HIGH, Confidence.LOW)


@pytest.mark.parametrize(
    ("section_align", "second_at", "alignment_bytes"),
    # Compilers align tables to 32 bytes by themselves; a variable is aligned no more than its section and its place.
    [(32, 64, None), (64, 64, 64), (64, 32, 64), (256, 64, 256), (4096, 128, 256)],
)
def test_the_alignment_of_copies_is_the_largest_that_one_may_have_above_that_of_compilers(
    section_align: int, second_at: int, alignment_bytes: int | None
) -> None:
    first_at = 256
    data = Section(".data", flags=RW, data=ALIKE * 2, addr=0x405000, align=section_align)
    symbols = [source("a.c"), static("table", first_at // 32), source("b.c"), static("table", second_at // 32)]
    (found,) = find_copies(read(symbols, [data if one.name == ".data" else one for one in SECTIONS]))
    assert found.alignment_bytes == alignment_bytes


@pytest.mark.parametrize(("offset", "before_bytes"), [(0, 0), (8, 8), (32, 16)])
def test_what_code_states_before_a_variable_means_it_up_to_16_bytes_and_to_the_start_of_its_section(
    offset: int, before_bytes: int
) -> None:
    statics = read([Sym("table", At(".data", offset), 32, STT_OBJECT, STB_LOCAL)])
    (table,) = statics.statics
    place = Merging(statics, Initials(statics), [table])._place(table, [table.vaddr])
    assert (place.start_vaddr, place.before_bytes, place.after_bytes) == (table.vaddr, before_bytes, 1)


def test_a_few_bytes_are_the_same_by_chance() -> None:
    assert only(in_files("_ZN2nsL5tableE", "_ZN2nsL5tableE", size=15)).confidence is Confidence.LOW


def test_without_source_files_the_same_contents_prove_little() -> None:
    assert only([static("table", 0), static("table", 1)]).confidence is Confidence.LOW


def test_zeros_leave_only_the_name_to_speak_for_it() -> None:
    found = only(in_files("buffer", "buffer", section=".bss"))
    assert (found.confidence, found.waste_bytes) == (Confidence.LOW, 32)
    in_namespace = only(in_files("_ZN7classadL12NULL_XACTIONE", "_ZN7classadL12NULL_XACTIONE", section=".bss"))
    assert in_namespace.confidence is Confidence.LOW
    at_top = only(in_files("_ZL9_instance", "_ZL9_instance", section=".bss"))
    assert at_top.confidence is Confidence.LOW


def test_zeros_of_unknown_source_files_are_no_copies() -> None:
    assert copies([static("buffer", 0, ".bss"), static("buffer", 1, ".bss")]) == []


def test_zeros_of_a_namespace_are_copies_where_three_source_files_have_them_and_nothing_refers_to_any() -> None:
    names = ["_ZN7classadL12NULL_XACTIONE"] * 3
    assert only(in_files(*names, section=".bss")).confidence is Confidence.HIGH
    used = read(in_files(*names, section=".bss"), machine=EM_RISCV)
    assert [copied.confidence for copied in find_copies(used)] == [Confidence.LOW]
    untold = [static(f"{name}.lto_priv.{at}", at, ".bss") for at, name in enumerate(names)]
    assert only(untold).confidence is Confidence.LOW


def test_statics_of_functions_in_one_source_file_are_no_copies() -> None:
    assert copies([source("a.c"), static("x.1", 0), static("x.2", 1)]) == []


def test_zeros_in_functions_of_several_source_files_may_be_different_things() -> None:
    assert copies(in_files("x.3", "x.3", "x.1", section=".bss")) == []
    assert copies(in_files("x.3.lto_priv.0", "x.3.lto_priv.1", section=".bss")) == []


@pytest.mark.parametrize(
    ("sizes", "confidence"),
    [((), Confidence.LOW), ((40, 40), Confidence.HIGH), ((40, 48), Confidence.LOW)],
)
def test_several_source_files_of_one_name_are_one_that_is_linked_in_twice_where_their_functions_are_the_same(
    sizes: tuple[int, ...], confidence: Confidence
) -> None:
    symbols = in_files("crc_table", "crc_table", files=["crc32.c"])
    for at, size in enumerate(sizes):
        symbols.insert(3 * at + 1, Sym("byte_swap", At(".rodata", 64 * at), size, STT_FUNC, STB_LOCAL))
    found = only(symbols)
    assert (found.origin, found.units, found.confidence) == (CopyOrigin.SOURCE, ("crc32.c",), confidence)
    (finding,) = duplicate_findings([found])
    # Global functions may differ: the symbol table names no source file of them.
    declared = "define it in a source file that is compiled once, and declare it `extern` in this one"
    assert finding.remedy == (declared if confidence is Confidence.HIGH else ASK_COMPILER)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("table", Scope.UNKNOWN),
        ("_ZL9_instance", Scope.GLOBAL),
        ("_ZN7classadL12NULL_XACTIONE", Scope.NAMESPACE),
        ("_ZN1a1bL1xE", Scope.NAMESPACE),
        ("_ZN12_GLOBAL__N_11xE", Scope.GLOBAL),
        ("_ZN2ns12_GLOBAL__N_11xE", Scope.NAMESPACE),
        ("_ZTVN12_GLOBAL__N_13FooE", Scope.GLOBAL),
        ("_ZZL10initializevE1x", Scope.GLOBAL),
        ("_ZZN2nsL10initializeEvE1x_0", Scope.NAMESPACE),
        ("_ZNSt3tr1L6ignoreE", Scope.NAMESPACE),
        # A name that ends with L, and is hidden: the linker made it local, and there is one.
        ("_ZN4BALL5tableE", Scope.UNKNOWN),
        ("_ZN2ns5tableE", Scope.UNKNOWN),
        ("_Z", Scope.UNKNOWN),
        ("_ZN99999L1x", Scope.UNKNOWN),
    ],
)
def test_a_name_tells_the_scope_that_it_is_known_in(name: str, scope: Scope) -> None:
    assert _scope(name) is scope


# --- what is something else -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "confidence"), [("_ZGVZN2nsL6globalEvE1x", Confidence.LOW), ("_ZGVZL6globalvE1x", Confidence.LOW)]
)
def test_guards_are_what_they_are_and_as_sure_as_what_they_guard(name: str, confidence: Confidence) -> None:
    found = only(in_files(name, name, section=".bss", size=8))
    assert (found.origin, found.confidence, found.waste_bytes) == (CopyOrigin.GUARD, confidence, 8)
    guarded = only(in_files(*[name.replace("GV", "")] * 2, section=".bss", size=8))
    assert guarded.confidence is confidence


def test_the_guard_of_thread_locals_says_nothing_about_headers() -> None:
    found = only(in_files("__tls_guard", "__tls_guard", section=".tbss", size=1))
    assert (found.origin, found.confidence) == (CopyOrigin.GUARD, Confidence.LOW)


def test_the_initialiser_of_iostream_is_counted_and_no_finding() -> None:
    found = copies(in_files(*["_ZStL8__ioinit"] * 3, section=".bss", size=1))
    assert [(one.origin, len(one.copies)) for one in found] == [(CopyOrigin.STREAM_INIT, 3)]
    assert duplicate_findings(found) == ()


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "cost", "saving_bytes"),
    [
        (".rodata", Cost.SHARED, 0),
        (".data", Cost.WHEN_TOUCHED, 0),
        (".bss", Cost.WHEN_TOUCHED, 0),
        (".data.rel.ro", Cost.AT_START, 64),
        (".data.rel", Cost.AT_START, 64),
        (".tdata", Cost.PER_THREAD, 64),
        (".tbss", Cost.PER_THREAD, 64),
    ],
)
def test_the_section_tells_when_copies_cost_private_memory(section: str, cost: Cost, saving_bytes: int) -> None:
    found = only(in_files(*["_ZN2nsL5tableE"] * 3, section=section))
    assert (found.section, found.cost, found.waste_bytes) == (section, cost, 64)
    (finding,) = duplicate_findings([found])
    assert finding.saving_bytes == saving_bytes


@pytest.mark.parametrize(
    ("name", "section", "remedy"),
    [
        (
            "table",
            ".rodata",
            "declare it `extern const` in the header, and define it in one source file that has a copy",
        ),
        (
            "table",
            ".data",
            f"declare it `extern` in the header, and define it in one source file that has a copy{SHARED}",
        ),
        ("_ZN2nsL5tableE", ".rodata", "declare it `inline` (C++17), without `static`"),
        ("_ZN2nsL5tableE", ".data", f"declare it `inline` (C++17), without `static`{SHARED}"),
        (
            "_ZN12_GLOBAL__N_15tableE",
            ".data",
            f"take it out of the unnamed namespace, and declare it `inline` (C++17){SHARED}",
        ),
        (
            "_ZZL1fvE5table",
            ".data",
            f"make the function that holds it `inline`, without `static`, and all share one{SHARED}",
        ),
        (
            "_ZZL1fvE5table",
            ".rodata",
            "move it out of the function that holds it, give it a name of its own, and declare it `inline` (C++17)",
        ),
        (
            "_ZZN12_GLOBAL__N_11fEvE5table",
            ".data",
            f"take the function that holds it out of the unnamed namespace, and make it `inline`{SHARED}",
        ),
    ],
)
def test_the_remedy_is_that_of_the_language_and_of_constants(name: str, section: str, remedy: str) -> None:
    symbols = in_files(name, name, section=section)
    # The code of this processor is not read: it may write all that is writable, and compare all addresses.
    (found,) = find_copies(read(symbols, machine=EM_RISCV), declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7)))
    assert found.confidence is Confidence.MEDIUM
    (finding,) = duplicate_findings([found])
    check = "make sure that nothing compares its address; then " if section == ".rodata" else ""
    assert finding.remedy == check + remedy


C11, CXX14, CXX17, CXX = (
    LanguageStandard(is_cxx=False, year=2011),
    LanguageStandard(is_cxx=True, year=2014),
    LanguageStandard(is_cxx=True, year=2017),
    LanguageStandard(is_cxx=True, year=None),
)
INLINE = "declare it `inline` (C++17), without `static`"
EXTERN = "declare it `extern const` in the header, and define it in one source file that has a copy"
MEMBER = "make it a static member of a class template of its own in the header, and define it behind the class"


@pytest.mark.parametrize(
    ("standards", "remedy"),
    [
        ((CXX17, CXX17), INLINE),
        ((CXX, CXX17), INLINE),
        ((CXX14, CXX14), f"{MEMBER} (C++14 has no inline variables)"),
        # The header must suit the oldest of the source files that include it.
        ((CXX17, CXX14), f"{MEMBER} (C++14 has no inline variables)"),
        ((CXX17, C11), EXTERN.replace("header,", 'header, within `extern "C"` for C++,')),
        ((C11, C11), EXTERN),
        ((None, None), INLINE),
    ],
)
def test_the_remedy_is_one_that_the_oldest_language_standard_has(
    standards: tuple[LanguageStandard | None, ...], remedy: str
) -> None:
    symbols = in_files("_ZN2nsL5tableE", "_ZN2nsL5tableE", section=".rodata")
    places = declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7))
    lines = {
        place: at._replace(standard=standard) for (place, at), standard in zip(places.items(), standards, strict=True)
    }
    found = only(symbols, lines)
    (finding,) = duplicate_findings([found])
    assert finding.remedy == remedy


def test_a_finding_says_how_many_there_are_of_what_and_where() -> None:
    (finding,) = duplicate_findings(copies(in_files(*["_ZN2nsL5tableE"] * 3)))
    assert (finding.rule, finding.kind, finding.subject) == ("duplicate-static", "header", "ns::table")
    assert finding.message == (
        "3 copies of ns::table, 32 B each, in .data of program: 64 B more than one takes, private when touched"
    )


# --- what the debug information says ----------------------------------------------------------------------------------


def declared_at(symbols: Sequence[Sym], *places: tuple[str, int] | None, is_in_header: bool = True) -> Lines:
    """Declare each variable at its place, in the order of the table."""
    found = read(symbols).statics
    return {
        (one.is_tls, one.vaddr): Declared(*place, is_in_header)
        for one, place in zip(found, places, strict=True)
        if place is not None
    }


def test_one_line_of_a_header_that_declares_them_all_is_proof() -> None:
    symbols = in_files("buffer", "buffer", section=".bss")
    found = only(symbols, declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7)))
    assert (found.confidence, found.location) == (Confidence.PROOF, SourceLocation("/src/x.h", 7))
    assert (found.origin, found.reasons) == (CopyOrigin.HEADER, ("one line of a header declares them all",))


def test_copies_of_one_line_in_several_sections_are_one_thing_and_each_is_priced_where_it_lies() -> None:
    # One source file writes `table`, and two only read it: the compiler puts theirs among the constants.
    symbols = [
        *in_files("table", section=".data"),
        *[source("b.c"), static("table", 0, ".rodata"), source("c.c"), static("table", 1, ".rodata")],
    ]
    sections = [Section(".rodata", flags=RO, data=ALIKE[:32] * 2), *SECTIONS[1:]]
    statics = read(symbols, sections)
    assert [copied.section for copied in find_copies(statics)] == [".rodata"]
    lines = {(one.is_tls, one.vaddr): Declared("/src/x.h", 7, is_in_header=True) for one in statics.statics}
    (found,) = find_copies(statics, lines)
    assert (found.section, found.copy_count, found.size_bytes) == (".data+.rodata", 3, 32)
    # The one in .data stays: a source file writes it.
    assert (found.waste, found.cost, found.waste_bytes) == ({Cost.SHARED: 64}, Cost.SHARED, 64)
    assert found.confidence is Confidence.MEDIUM
    assert found.reasons[-1].startswith("some source files write their copy, and some only read theirs")


def test_tables_of_pointers_that_are_sealed_in_one_source_file_and_writable_in_another_are_copies() -> None:
    symbols = [source("a.c"), static("names", 0, ".data"), source("b.c"), static("names", 0, ".data.rel.ro")]
    found = only(symbols, declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7)))
    assert (found.section, found.waste) == (".data+.data.rel.ro", {Cost.WHEN_TOUCHED: 32})


def test_zeros_in_the_file_and_zeros_in_bss_are_copies_of_one_line() -> None:
    symbols = [source("a.c"), static("seen", 0, ".data"), source("b.c"), static("seen", 0, ".bss")]
    statics = read(symbols, [*SECTIONS[:-2], Section(".data", flags=RW, data=bytes(64)), SECTIONS[-1]])
    lines = {(one.is_tls, one.vaddr): Declared("/src/x.h", 7, is_in_header=True) for one in statics.statics}
    (found,) = find_copies(statics, lines)
    assert (found.section, found.waste) == (".data+.bss", {Cost.WHEN_TOUCHED: 32})


@pytest.mark.parametrize(
    ("names", "binding"),
    [
        # base64::decode<char const*> and base64::decode<char*>; two namespaces that include one file.
        (("_ZZN6base646decodeIPKcEEiT_E5TABLE", "_ZZN6base646decodeIPcEEiT_E5TABLE"), STB_WEAK),
        (("_ZN3oneL5TABLEE", "_ZN3twoL5TABLEE"), STB_LOCAL),
    ],
)
def test_constants_of_one_line_are_copies_whatever_their_scope_and_template_arguments(
    names: tuple[str, str], binding: int
) -> None:
    symbols = in_files(*names, section=".rodata", binding=binding)
    places = declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7))
    functions = [name.replace("ZZ", "Z").removesuffix("E5TABLE") if binding == STB_WEAK else None for name in names]
    lines = {
        place: at._replace(function=function) for (place, at), function in zip(places.items(), functions, strict=True)
    }
    found = only(symbols, lines)
    assert (found.name, found.copy_count, found.waste) == (names[0], 2, {Cost.SHARED: 32})
    (finding,) = duplicate_findings([found])
    where = "take it out of the template" if binding == STB_WEAK else "move it to one namespace that all of them use"
    assert finding.remedy.startswith(f"{where}, and declare it `inline` (C++17)")
    assert copies(symbols) == []
    # What an instance writes is its own.
    written = in_files(*names, section=".data", binding=binding)
    of_data = dict(zip(declared_at(written, ("/src/x.h", 7), ("/src/x.h", 7)), lines.values(), strict=True))
    assert [copy.copy_count for copy in copies(written, of_data)] == ([] if binding == STB_WEAK else [2])


@pytest.mark.parametrize(
    ("type_name", "bounds"),
    [("const char [2][4]", "[2][4]"), ("int (*const [4])(int)", "[4]"), ("int (*)[2]", ""), ("int", ""), (None, "")],
)
def test_the_message_names_the_bounds_of_an_array_and_the_remedy_asks_for_them(
    type_name: str | None, bounds: str
) -> None:
    symbols = in_files("table", "table", section=".rodata")
    lines = declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7))
    (finding,) = duplicate_findings(
        [only(symbols, {place: at._replace(type_name=type_name, standard=C11) for place, at in lines.items()})]
    )
    assert finding.message.startswith(f"2 copies of table{bounds}, 32 B each, ")
    assert finding.remedy.startswith(f"declare it `extern const`{' with its bound' if bounds else ''} in the header")


def test_arrays_of_one_line_with_other_bounds_are_doubtful_copies_where_one_begins_like_the_other() -> None:
    symbols = [source("a.c"), static("pool", 0, ".bss", 64), source("b.c"), static("pool", 2, ".bss", 32)]
    statics = read(symbols)
    lines = {
        (one.is_tls, one.vaddr): Declared("/src/x.h", 7, is_in_header=True, type_name=f"char [{one.size_bytes}]")
        for one in statics.statics
    }
    (found,) = find_copies(statics, lines)
    assert (found.size_bytes, found.waste_bytes, found.confidence) == (64, 32, Confidence.LOW)
    other = [source("a.c"), static("pool", 0, size=24), source("b.c"), Sym("pool", At(".data", 40), 32, 1, STB_LOCAL)]
    lines = {(one.is_tls, one.vaddr): lines[False, statics.statics[0].vaddr] for one in read(other).statics}
    assert copies(other, lines) == []


def test_two_lines_are_two_things_even_with_the_same_contents() -> None:
    symbols = in_files("table", "table")
    assert copies(symbols, declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 8))) == []
    assert copies(symbols, declared_at(symbols, ("/src/x.h", 7), ("/src/y.h", 7))) == []


def test_one_line_of_a_source_file_is_a_source_file_linked_in_twice() -> None:
    symbols = in_files("crc_table", "crc_table")
    lines = declared_at(symbols, ("/src/crc32.c", 9), ("/src/crc32.c", 9), is_in_header=False)
    assert only(symbols, lines).origin is CopyOrigin.SOURCE


def test_statics_of_two_functions_are_two_things_even_where_one_line_of_a_macro_declares_them() -> None:
    symbols = in_files("calls.0", "calls.1")
    statics = read(symbols).statics
    places = [(one.is_tls, one.vaddr) for one in statics]
    of_two = [Declared("/src/x.h", 7, is_in_header=True, function=function) for function in ("f", "g")]
    assert copies(symbols, dict(zip(places, of_two, strict=True))) == []
    found = only(symbols, dict.fromkeys(places, of_two[0]))
    assert (found.confidence, found.function) == (Confidence.PROOF, "f")
    (finding,) = duplicate_findings([found])
    assert finding.message.startswith("2 copies of calls in f, 32 B each")
    # In C a function that is inline may hold no static that is written to.
    said = "define the function that holds it in one source file, and only declare it in the header"
    assert finding.remedy == said


def test_a_source_file_that_is_compiled_twice_may_name_the_functions_of_its_statics_by_macros() -> None:
    # x264 compiles its sources for 8 and for 10 bits, and calls the functions `x264_8_f` and `x264_10_f`.
    symbols = in_files("table.0", "table.0", files=("f.c",), section=".rodata")
    places = [(one.is_tls, one.vaddr) for one in read(symbols).statics]
    of_two = [Declared("/src/f.c", 7, is_in_header=False, function=name) for name in ("x264_8_f", "x264_10_f")]
    found = only(symbols, dict(zip(places, of_two, strict=True)))
    assert (found.origin, found.confidence, len(found.copies)) == (CopyOrigin.SOURCE, Confidence.PROOF, 2)


def test_what_one_line_declares_twice_in_one_source_file_is_not_one_thing() -> None:
    # A macro: `PAIR(x)` makes two things of one name, in two blocks of a function.
    twice = [source("a.c"), static("part.0", 0), static("part.1", 1)]
    assert copies(twice, declared_at(twice, *[("/src/a.c", 7)] * 2, is_in_header=False)) == []
    # In a header each source file has both: two copies of the one, and two of the other.
    symbols = [*twice, source("b.c"), static("part.0", 2), static("part.1", 3)]
    found = copies(symbols, declared_at(symbols, *[("/src/x.h", 7)] * 4))
    assert [[copy.vaddr % 256 // 32 for copy in one.copies] for one in found] in ([[0, 2], [1, 3]], [[1, 3], [0, 2]])


def test_what_one_line_declares_with_other_contents_is_another_thing() -> None:
    # `static const char name[] = STRING(NAME);` in a header that is included with another NAME each time.
    data = b"".join(text.ljust(32) for text in (b"first", b"other", b"first"))
    sections = [Section(".rodata", flags=RO, data=data), *SECTIONS[1:]]
    statics = read(in_files("name", "name", "name", section=".rodata"), sections)
    lines = {(one.is_tls, one.vaddr): Declared("/src/x.h", 7, is_in_header=True) for one in statics.statics}
    (found,) = find_copies(statics, lines)
    assert found.copies == (statics.statics[0], statics.statics[2])
    # One definition for both would be that of the third source file, too.
    assert (found.confidence, found.objection) == (Confidence.MEDIUM, VARIES)


def test_a_source_file_that_others_include_is_a_template_and_no_proof() -> None:
    symbols = in_files("buffer", "buffer")
    found = only(symbols, declared_at(symbols, ("/src/getXXbyYY.c", 7), ("/src/getXXbyYY.c", 7)))
    assert (found.confidence, found.location) == (Confidence.LOW, SourceLocation("/src/getXXbyYY.c", 7))


def test_guards_are_copies_where_one_line_declares_what_they_guard() -> None:
    # `x` and its guard, of a static function `f` in a header.
    names = [f"_Z{mark}ZL1fvE1x" for _ in range(2) for mark in ("", "GV")]
    both = in_files(*names, section=".bss", size=8, files=["a.cc", "a.cc", "b.cc", "b.cc"])
    symbols = [both[0], both[1], both[3], both[4], both[5], both[7]]
    found = copies(symbols, declared_at(symbols, ("/src/x.h", 7), None, ("/src/x.h", 7), None))
    told = [(one.name, one.origin, one.confidence, one.location) for one in found]
    at = SourceLocation("/src/x.h", 7)
    assert told == [
        ("_ZGVZL1fvE1x", CopyOrigin.GUARD, Confidence.PROOF, at),
        ("_ZZL1fvE1x", CopyOrigin.HEADER, Confidence.PROOF, at),
    ]
    # Two functions of one name, each in its own source file.
    assert copies(symbols, declared_at(symbols, ("/src/a.cc", 7), None, ("/src/b.cc", 7), None)) == []


@pytest.mark.parametrize(
    ("types", "is_one"),
    [
        (("int[8]", "float[8]"), False),
        (("int *", "float *"), False),
        (("int[8]", "int[8]"), True),
        # gcc and clang; and what dwz put into a file that is absent.
        (("const long unsigned int[4]", "const unsigned long[4]"), True),
        (("long int", "long"), True),
        (("unsigned int", "unsigned"), True),
        (("long int", "int"), False),
        (("long long int", "long int"), False),
        (("unsigned int *", "unsigned *"), True),
        (("long_table", "table"), False),
        (("int[8]", None), True),
        ((None, "int[8]"), True),
    ],
)
def test_what_one_line_declares_with_another_type_is_another_thing(
    types: tuple[str | None, str | None], *, is_one: bool
) -> None:
    # `static T buffer[8];` in a header that is included with another T each time.
    symbols = in_files("buffer", "buffer", section=".bss")
    lines = {
        (one.is_tls, one.vaddr): Declared("/src/x.h", 7, is_in_header=True, type_name=type_name)
        for one, type_name in zip(read(symbols).statics, types, strict=True)
    }
    assert [copy.confidence for copy in copies(symbols, lines)] == [Confidence.PROOF] * is_one


def test_copies_of_source_files_without_debug_information_are_compared_with_one_that_has() -> None:
    symbols = in_files("_ZL5table", "_ZL5table", "_ZL5table", "_ZL5table")
    place = "/src/x.h", 7
    result = copies(symbols, declared_at(symbols, place, place, place, None))
    assert [(one.confidence, one.units) for one in result] == [
        (Confidence.PROOF, ("a.c", "b.c", "c.c")),
        (Confidence.HIGH, ("a.c", "d.c")),
    ]
    # Four of them take three more than one.
    assert sum(one.waste_bytes for one in result) == 3 * 32
    assert result[1].location == SourceLocation(*place)
    assert result[1].reasons[-1] == "a header declares one of them, and the others have no debug information"
    # What a source file declares is its own.
    assert copies(symbols[:4], declared_at(symbols[:4], ("/src/a.c", 7), None, is_in_header=False)) == []


# --- constants without an address -------------------------------------------------------------------------------------


def constant(unit: str, line: int = 2, size: int = 32, file: str = "/src/x.h") -> Declaration:
    place = file, line, file, line, unit
    return Declaration("table", "table", *place, "const int[8]", size, True, False)  # noqa: FBT003 # its fields


def told_by_name(symbols: Sequence[Sym], *result: Declaration, compiled: Sequence[str]) -> list[int | None]:
    """Return the line of each variable that is told by name, in the order of the table."""
    statics = read(symbols)
    lines = declared_by_name(statics, statics.statics, {"table": result}, compiled)
    places = [lines.get((one.is_tls, one.vaddr)) for one in statics.statics]
    return [None if place is None else place.line for place in places]


A, B = "/src/a.c", "/src/b.c"


@pytest.mark.parametrize("name", ["table", "_ZL5table", "_ZN2nsL5tableE"])
def test_a_constant_is_told_by_its_name_source_file_and_size(name: str) -> None:
    symbols = in_files(name, name, section=".rodata")
    assert told_by_name(symbols, constant(A), constant(B), compiled=[A, B]) == [2, 2]


def test_a_constant_of_which_two_lines_could_be_meant_is_not_told() -> None:
    symbols = in_files("table", "table", section=".rodata")
    assert told_by_name(symbols, constant(A), constant(B), constant(B, 9), compiled=[A, B]) == [2, None]


def test_a_constant_of_another_size_or_source_file_is_not_told() -> None:
    symbols = in_files("table", "table", section=".rodata")
    assert told_by_name(symbols, constant(A, size=16), constant("/src/z.c"), compiled=[A, B, "/src/z.c"]) == [None] * 2


def test_where_a_source_file_of_that_name_has_no_debug_information_none_is_told() -> None:
    # /src/a.c and /other/a.c, of which one was compiled without -g: it could be the other's.
    symbols = in_files("table", "table", files=("a.c", "a.c"), section=".rodata")
    assert told_by_name(symbols, constant(A), compiled=[A]) == [None, None]
    # Both have some, but only one declares it.
    assert told_by_name(symbols, constant(A), compiled=[A, "/other/a.c"]) == [None, None]
    assert told_by_name(symbols, constant(A), constant("/other/a.c"), compiled=[A, "/other/a.c"]) == [2, 2]


def test_two_constants_of_one_source_file_are_not_told() -> None:
    symbols = [source("a.c"), static("table.0", 0, ".rodata"), static("table.1", 1, ".rodata")]
    assert told_by_name(symbols, constant(A), compiled=[A]) == [None, None]


def test_a_constant_of_no_known_source_file_is_not_told() -> None:
    assert told_by_name([static("table", 0, ".rodata")], constant(A), compiled=[A]) == [None]


# --- both together ----------------------------------------------------------------------------------------------------


def test_those_without_debug_information_are_told_by_their_contents() -> None:
    symbols = in_files(*["_ZN2nsL5tableE"] * 4)
    found = copies(symbols, declared_at(symbols, ("/x.h", 7), ("/x.h", 7), None, None))
    assert {(one.confidence, one.units) for one in found} == {
        (Confidence.PROOF, ("a.c", "b.c")),
        (Confidence.HIGH, ("a.c", "c.c", "d.c")),
    }


def test_thread_locals_are_looked_up_by_their_offsets() -> None:
    symbols = in_files("errors", "errors", section=".tbss")
    lines = declared_at(symbols, ("/x.h", 3), ("/x.h", 3))
    assert set(lines) == {(True, 256), (True, 288)}
    # Any code may write to them: nothing searches for that.
    assert only(symbols, lines).confidence is Confidence.MEDIUM


def test_what_relocations_write_is_private_at_start_wherever_it_stands() -> None:
    # Each copy in .data begins with a word that the loader relocates (R_X86_64_RELATIVE).
    symbols = in_files("table", "table", "other", "other")
    relocations = [Rel(At(".data", 32 * number), R_X86_64_RELATIVE, addend=0) for number in range(2)]
    file = ElfFile(sections=[*SECTIONS, Section(".rela.dyn", SHT_RELA, RO, relocations)], symbols=symbols, type=ET_DYN)
    file = replace(file, dynamic=[Dyn(DT_INIT)])
    found = find_copies(read_statics(read_image(write(file), "/opt/bin/program")))
    assert {one.name: one.cost for one in found} == {"table": Cost.AT_START, "other": Cost.WHEN_TOUCHED}
    findings = duplicate_findings(found)
    assert {finding.subject: finding.saving_bytes for finding in findings} == {"table": 32, "other": 0}
    assert {finding.remedy for finding in findings} == {ASK_COMPILER}


def test_a_kind_of_copies_is_a_word_that_the_schema_knows() -> None:
    found = only(in_files("_ZL5table", "_ZL5table", files=["a.c"]))
    assert [duplicate_finding.kind for duplicate_finding in duplicate_findings([found])] == ["same-source"]


def test_what_each_thread_is_spared_is_said_a_thread() -> None:
    (finding,) = duplicate_findings([only(in_files(*["_ZN2nsL5tableE"] * 3, section=".tbss"))])
    assert finding.saving_per == "thread"
    finding = replace(finding, confidence=Confidence.HIGH)
    text = " ".join(one.text for one in finding_blocks([finding], 10) if isinstance(one, Paragraph))
    assert "It saves 64 B a thread, 640 B in 10 processes of one thread." in text


def test_what_needs_a_check_first_promises_no_saving() -> None:
    (finding,) = duplicate_findings(copies(in_files("_ZL5table", "_ZL5table")))
    sure, doubtful = (
        replace(finding, saving_bytes=64, confidence=each) for each in (Confidence.HIGH, Confidence.MEDIUM)
    )
    texts = [
        block.text
        for block in finding_blocks([sure, replace(doubtful, remedy="check it")], 1)
        if isinstance(block, Paragraph)
    ]
    assert ["It saves 64 B a process." in texts[0], "It saves up to 64 B a process." in texts[1]] == [True, True]
    assert "It saves up to 64 B a process." in finding_issue(doubtful, "", 1, fails=False).message


def test_a_remedy_of_several_findings_is_written_once() -> None:
    (finding,) = duplicate_findings(copies(in_files("_ZL5table", "_ZL5table")))
    findings = [replace(finding, saving_bytes=64, remedy=remedy) for remedy in ("one", "other", "one", "last")]
    text = [block.text for block in finding_blocks(findings, 1) if isinstance(block, Paragraph)]
    assert [text[0], sum("Remedy: one." in each for each in text)] == ["Remedy: one.", 1]


def test_private_bytes_are_those_of_all_copies_and_of_thread_locals_none() -> None:
    spans_asked: list[list[tuple[int, int]]] = []

    def private_of(spans: Iterable[tuple[int, int]]) -> int:
        spans_asked.append(list(spans))
        return 48

    found = copies([*in_files("_ZL5table", "_ZL5table"), *in_files("_ZL5local", "_ZL5local", section=".tbss")])
    local, table = sorted(with_private_bytes(found, private_of), key=lambda one: one.name)
    assert (table.private_bytes, local.private_bytes) == (48, None)
    assert spans_asked == [[(copy.vaddr, copy.vaddr + 32) for copy in table.copies]]
    (finding,) = duplicate_findings([table])
    assert finding.private_bytes == 48
    assert finding.message.endswith("private when touched; 48 B of all of them is private now")


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        ("duplicate-static", Confidence.HIGH),
        ("mutable-constant", Confidence.HIGH),
        ("unused-library", Confidence.MEDIUM),
    ],
)
def test_sums_of_a_fleet_count_copies_and_constants_only_where_they_are_sure(rule: str, least: Confidence) -> None:
    order = [Confidence.PROOF, Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW]
    counted = [one for one in order if Finding(rule, "", "", "", 0, one, (), "").is_counted]
    assert counted == order[: order.index(least) + 1]


def test_the_list_names_the_function_that_may_tell_copies_apart() -> None:
    symbols = in_files("table", "table", section=".rodata")
    found = only(symbols, declared_at(symbols, ("/src/x.h", 7), ("/src/x.h", 7)))
    found = found._replace(objection=Objection("in reader, code compares its address", "", "reader"))
    files = (SearchedFile("program", 2, 2, (found,)),)
    document = duplicates_document(Duplicates(("program",), None, files, (), (), ()))
    (table,) = [one for one in document if isinstance(one, Table)]
    assert table.rows[0][-1] == "table  x.h:7  address used in: reader"


@pytest.mark.parametrize(("names", "begin"), [(("a",), "a: "), (("a", "b"), "each of a, b: ")])
def test_a_remedy_of_several_variables_is_for_each(names: tuple[str, ...], begin: str) -> None:
    findings = [Finding("mutable-constant", "read-only", name, "", 0, Confidence.HIGH, (), "move it") for name in names]
    files = (SearchedFile("program", 2, 2, ()),)
    document = duplicates_document(Duplicates(("program",), None, files, (), tuple(findings), ()))
    assert f"{begin}move it." in [block.text for block in document if isinstance(block, Paragraph)]
