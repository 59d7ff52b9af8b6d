"""What runs at start, as text: source files with the same row are one."""

from footprint.elf.initialisers import SourceInitialiser
from footprint.findings.copies import SearchedFile
from footprint.formats.document import Table
from footprint.verbs.duplicates.answer import duplicates_document
from footprint.verbs.duplicates.call import Duplicates


def initialiser(unit: str, *variables: str, heap_bytes: int = 0) -> SourceInitialiser:
    return SourceInitialiser(f"_GLOBAL__sub_I_{unit}", unit, 24, variables, 8 * len(variables), heap_bytes)


def shown(*initialisers: SourceInitialiser, has_linker_names: bool = False) -> list[tuple[str, ...]]:
    file = SearchedFile("program", 3, 3, (), source_initialisers=initialisers)
    found = Duplicates(("program",), None, (file,), (), (), ())
    document = duplicates_document(found, top=0, has_linker_names=has_linker_names)
    (table,) = [one for one in document if isinstance(one, Table) and "source file: variables" in one.columns]
    return list(table.rows)


def test_source_files_that_a_header_makes_do_the_same_are_one_row() -> None:
    rows = shown(initialiser("a.cc", "_ZL5table"), initialiser("b.cc", "_ZL5table"), initialiser("c.cc", "_ZL5other"))
    assert rows == [
        ("24 B", "8 B", "-", "a.cc and 1 more, each: table"),
        ("24 B", "8 B", "-", "c.cc: other"),
    ]


def test_with_another_heap_they_are_rows_of_their_own_and_whole_names_list_all() -> None:
    several = [initialiser("a.cc", "_ZL5table", heap_bytes=64), initialiser("b.cc", "_ZL5table")]
    assert shown(*several) == [("24 B", "8 B", "at least 64 B", "a.cc: table"), ("24 B", "8 B", "-", "b.cc: table")]
    same = [initialiser("a.cc", "_ZL5table"), initialiser("b.cc", "_ZL5table")]
    assert shown(*same, has_linker_names=True) == [("24 B", "8 B", "-", "a.cc, b.cc, each: _ZL5table")]
