"""Which libraries and source files are linked in several times: in one file, and in files of one process."""

from collections.abc import Sequence

import pytest

from footprint.elf.image import read_image
from footprint.elf.statics import Statics, read_statics
from footprint.findings.copies import Cost, find_copies
from footprint.findings.linked_twice import LinkedTwice, linked_twice
from footprint.findings.variable_rules.linked_twice import linked_twice_findings
from footprint.model.finding import Confidence
from tests.elfwriter import (
    RO,
    RW,
    SHN_ABS,
    SHT_NOBITS,
    STB_GLOBAL,
    STB_LOCAL,
    STT_FILE,
    STT_FUNC,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    write,
)

# 128 bytes of a table that are the same at 0 and at 128, and two others behind them.
TABLE = bytes(range(1, 129))
BOXES = {"s_box": 0, "p_box": 256}
BSS = Section(".bss", SHT_NOBITS, RW, size=256)
RODATA = Section(".rodata", flags=RO, data=TABLE + TABLE + TABLE[::-1] + TABLE)


def source(name: str) -> Sym:
    return Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)


def built(name: str, size: int = 40, at: int = 0) -> list[Sym]:
    """Return a source file with a function of a size."""
    return [source(name), Sym("decode", At(".rodata", at), size, STT_FUNC, STB_LOCAL)]


def table(name: str, at: int = 0, size: int = 128, binding: int = STB_LOCAL) -> Sym:
    return Sym(name, At(".rodata", at), size, binding=binding)


def file(name: str, *symbols: Sym) -> Statics:
    return read_statics(read_image(write(ElfFile(sections=[RODATA, BSS], symbols=symbols)), name))


def result(*files: Statics) -> Sequence[LinkedTwice]:
    return linked_twice(files, [find_copies(one) for one in files])


def library(name: str) -> Statics:
    """Return a file with 256 bytes of one source file."""
    return file(name, source("crypt.c"), table("s_box", 0), table("p_box", 256))


# --- within one file --------------------------------------------------------------------------------------------------


def test_a_source_file_whose_variables_are_there_twice_is_linked_in_twice() -> None:
    (one,) = result(file("a", *built("crypt.c"), table("s_box"), *built("crypt.c"), table("s_box", 128)))
    assert one == LinkedTwice(("a",), None, ("crypt.c",), ("s_box",), 128, 2, {Cost.SHARED: 128}, is_one_build=False)
    assert one.waste_bytes == 128


def test_a_source_file_that_is_compiled_twice_with_other_macros_is_needed_twice() -> None:
    both = [*built("pixel.c", 40, 100), table("weights"), *built("pixel.c", 48, 200), table("weights", 128)]
    assert result(file("a", *both)) == ()


def test_what_a_header_defines_is_not_linked_in_twice() -> None:
    assert result(file("a", source("x.c"), table("s_box"), source("y.c"), table("s_box", 128))) == ()


def test_a_known_library_is_called_by_its_name() -> None:
    symbols = [
        *(*built("crc32.c"), table("crc_table", 0, 64), *built("trees.c"), table("base_dist", 64, 64)),
        *(*built("crc32.c"), table("crc_table", 128, 64), *built("trees.c"), table("base_dist", 192, 64)),
    ]
    (one,) = result(file("/usr/bin/node", *symbols))
    assert (one.library, one.names, one.size_bytes) == ("zlib", ("base_dist", "crc_table"), 128)
    (finding,) = linked_twice_findings([one])
    # The symbol table does not tell which global functions belong to it: they may differ.
    assert (finding.kind, finding.confidence) == ("within-file", Confidence.MEDIUM)
    assert (
        finding.message
        == "2 copies of zlib, in node: 2 variables of 128 B each time; all but one take 128 B shared only"
    )
    assert finding.remedy == "make sure that one build of it does for all; then link it only once"


def test_one_mark_of_a_library_is_no_library() -> None:
    (one,) = result(file("a", *built("crc32.c"), table("sums"), *built("crc32.c"), table("sums", 128)))
    assert one.library is None


def test_its_zeros_count_as_well_where_they_come_of_the_same_source_files() -> None:
    # Two of crypt.c, each with a table and a buffer of 64 bytes; and two of other.c, with nothing but a buffer.
    symbols = []
    for at in range(2):
        symbols += [*built("crypt.c"), table("s_box", 128 * at), Sym("buffer", At(".bss", 64 * at), 64, 1, STB_LOCAL)]
        symbols += [source("other.c"), Sym("other", At(".bss", 128 + 64 * at), 64, 1, STB_LOCAL)]
    (one,) = result(file("a", *symbols))
    assert one == LinkedTwice(
        *(("a",), None, ("crypt.c",), ("s_box", "buffer"), 192, 2, {Cost.WHEN_TOUCHED: 64, Cost.SHARED: 128}),
        is_one_build=False,
    )


# --- across files -----------------------------------------------------------------------------------------------------


def test_variables_that_two_files_hold_are_one_thing_linked_into_both() -> None:
    (one,) = result(library("/bin/app"), library("/lib/libb.so"))
    waste = {Cost.SHARED: 256}
    paths = ("/bin/app", "/lib/libb.so")
    assert one == LinkedTwice(paths, None, ("crypt.c",), ("p_box", "s_box"), 256, 2, waste, is_one_build=False)
    (finding,) = linked_twice_findings([one])
    assert (finding.kind, finding.subject, finding.confidence) == ("across-files", "crypt.c", Confidence.MEDIUM)
    told = "2 copies of crypt.c, in app, libb.so: 2 variables of 256 B each time; all but one take 256 B shared only"
    assert (finding.message, finding.saving_bytes) == (told, 0)
    check = "make sure that one build of it does for all"
    assert finding.remedy == f"{check}; then link it once, as a shared library that all of them need"


def test_what_comes_from_other_source_files_is_not_said_to_be_of_one() -> None:
    # A header defines it, which each of the two includes.
    held = [file(f"{name}.so", source(f"{name}.c"), table("of_header", size=256)) for name in ("a", "b")]
    (one,) = result(*held)
    assert (one.units, one.names) == ((), ("of_header",))
    (finding,) = linked_twice_findings([one])
    assert finding.message.startswith("2 copies of of_header, in a.so, b.so: ")
    check = "make sure that one build of it does for all"
    assert finding.remedy == f"{check}; then let one of the files hold it, and the others use it from there"


def test_a_source_file_is_told_by_the_one_that_tells_it() -> None:
    exported = file("b.so", Sym("s_box", At(".rodata"), 256))
    (one,) = result(file("a.so", source("crypt.c"), table("s_box", size=256)), exported)
    assert one.units == ("crypt.c",)


def test_zeros_of_the_same_source_file_count_across_files_and_others_do_not() -> None:
    def with_zeros(name: str, unit: str) -> Statics:
        buffers = [
            Sym("buffer", At(".bss"), 64, binding=STB_LOCAL),
            source(unit),
            Sym("x", At(".bss", 64), 64, 1, STB_LOCAL),
        ]
        return file(name, source("crypt.c"), table("s_box", 0), table("p_box", 256), *buffers)

    (one,) = result(with_zeros("a", "x.c"), with_zeros("b", "y.c"))
    assert (one.names, one.size_bytes) == (("p_box", "s_box", "buffer"), 320)
    assert one.waste == {Cost.WHEN_TOUCHED: 64, Cost.SHARED: 256}


def test_the_copy_that_costs_most_is_the_one_that_stays() -> None:
    sections = [Section(".data.rel.ro", flags=RW, data=TABLE + TABLE + TABLE[::-1] + TABLE)]
    symbols = [source("crypt.c"), *(Sym(name, At(".data.rel.ro", at), 128, 1, STB_LOCAL) for name, at in BOXES.items())]
    relocated = [
        read_statics(read_image(write(ElfFile(sections=sections, symbols=symbols)), name)) for name in ("b", "c")
    ]
    (one,) = result(library("a"), *relocated)
    # Of three copies one is shared; of the two that the loader writes, one stays.
    assert one.waste == {Cost.AT_START: 256, Cost.SHARED: 256}
    (finding,) = linked_twice_findings([one])
    assert finding.saving_bytes == 256
    assert finding.message.endswith("; all but one take 256 B private at start, 256 B shared only")


def test_what_threads_have_twice_is_saved_a_thread() -> None:
    sections = [Section(".tdata", flags=TLS, data=TABLE + TABLE + TABLE[::-1] + TABLE)]
    symbols = [source("crypt.c"), *(Sym(name, At(".tdata", at), 128, STT_TLS, STB_LOCAL) for name, at in BOXES.items())]
    files = [read_statics(read_image(write(ElfFile(sections=sections, symbols=symbols)), name)) for name in ("b", "c")]
    (one,) = result(*files)
    assert one.waste == {Cost.PER_THREAD: 256}
    (finding,) = linked_twice_findings([one])
    assert (finding.saving_bytes, finding.saving_per) == (256, "thread")


def test_what_stands_in_the_same_files_is_one_finding_and_in_others_another() -> None:
    more = file("c", table("s_box", 0), table("p_box", 256), table("other", 384), table("last", 0, 64))
    two = file("d", table("other", 384), table("another", 256))
    three = file("e", table("other", 384), table("another", 256))
    both = result(library("a"), library("b"), more, two, three)
    assert [(one.files, one.copy_count, one.waste_bytes) for one in both] == [(("a", "b", "c"), 3, 512)]


def test_other_contents_are_something_else() -> None:
    one = file("a", table("s_box", 0), table("p_box", 256))
    other = file("b", table("s_box", 256), table("p_box", 0))
    assert result(one, other) == ()


def test_little_together_is_no_library() -> None:
    assert result(file("a", table("s_box")), file("b", table("s_box"))) == ()


def test_small_variables_prove_nothing() -> None:
    symbols = [table(f"word_{at}", 8 * at, 8) for at in range(64)]
    assert result(file("a", *symbols), file("b", *symbols)) == ()
    symbols = [table(f"row_{at}", 16 * at, 16) for at in range(16)]
    (one,) = result(file("a", *symbols), file("b", *symbols))
    assert one.size_bytes == 256


def test_exported_tables_count_as_well() -> None:
    symbols = [table("s_box", binding=STB_GLOBAL), table("p_box", 256, binding=STB_GLOBAL)]
    assert [one.names for one in result(file("a", *symbols), file("b", *symbols))] == [("p_box", "s_box")]


@pytest.mark.parametrize("prefix", ["_ZTV", "_ZTI", "_ZTS", "_ZTT"])
def test_the_types_of_classes_that_headers_define_are_nobodys_mistake(prefix: str) -> None:
    symbols = [table(f"{prefix}3Foo", 0), table(f"{prefix}3Bar", 256)]
    assert result(file("a", *symbols), file("b", *symbols)) == ()


def test_the_largest_waste_comes_first() -> None:
    large = [table("s_box"), table("p_box", 256), table("q_box", 384)]
    files = [file("a", *large), file("b", *large), library("c"), library("d")]
    wastes = [one.waste_bytes for one in result(*files)]
    assert wastes == sorted(wastes, reverse=True)


def test_a_long_name_is_cut_in_the_message_and_only_there() -> None:
    name = "a" * 80
    symbols = [table(name), table("p_box", 256)]
    (one,) = result(file("a", *symbols), file("b", *symbols))
    assert name in one.names
    (finding,) = linked_twice_findings([one])
    assert finding.subject == f"{'a' * 57}..., p_box"
