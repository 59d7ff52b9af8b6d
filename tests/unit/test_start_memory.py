"""What a process has at its start beside its objects: figures by hand."""

from pathlib import Path

import pytest

from footprint.attribution.start_memory import _unique_tables_bytes, start_memory
from footprint.loader.target import Environment
from footprint.sources.programs import Programs
from tests.elfwriter import DT_NEEDED, RO, RW, SHT_NOBITS, STT_TLS, TLS, Dyn, ElfFile, Section, Sym, write
from tests.sysroot import GLIBC, Sysroot

PAGE = 4096


def start_of(folder: Path, library_count: int, *, tls_bytes: int = 0, page_bytes: int = PAGE) -> tuple[int, int]:
    """Return the estimate for a program that needs some libraries with short paths, and uses no versions."""
    root = Sysroot(folder)
    root.loader(path=GLIBC)
    names = [f"lib{number:03}.so" for number in range(library_count)]
    for name in names:
        root.file(f"/lib/{name}", write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], dynamic=[])))
    sections = [Section(".interp", flags=RO, data=GLIBC.encode() + b"\0"), Section(".data", flags=RW, data=bytes(8))]
    if tls_bytes:
        sections.append(Section(".tbss", SHT_NOBITS, TLS, size=tls_bytes, align=16))
    symbols = [Sym("block", 0, tls_bytes, STT_TLS)] if tls_bytes else []
    program = ElfFile(sections=sections, symbols=symbols, dynamic=[Dyn(DT_NEEDED, name) for name in names])
    root.file("/bin/program", write(program))
    programs = Programs(str(folder), Environment(hwcaps="baseline"), page_bytes=page_bytes)
    start = start_memory(programs.graph("/bin/program"))
    assert start.heap_bytes == 0
    return start.stack_bytes, start.loader_bytes


def test_the_loader_has_its_own_and_a_block_for_each_object(tmp_path: Path) -> None:
    # Two objects, whose paths have 12 and 27 bytes and are kept twice: 2 * 1,340 + 2 * 39 = 2,758, and 6 % lost: 2,923.
    # With the 4,700 of the loader these are two pages.
    assert start_of(tmp_path, 0) == (3 * PAGE, 2 * PAGE)


def test_a_hundred_libraries_are_a_hundred_blocks(tmp_path: Path) -> None:
    # Each has a path of 14 bytes, and the program needs it with 16: 1,384. With the two objects above 141,158, and 6 %
    # lost: 149,627. With the 4,700 of the loader these are 37.7 pages.
    assert start_of(tmp_path, 100) == (3 * PAGE, 38 * PAGE)


def test_thread_local_variables_are_written_at_start(tmp_path: Path) -> None:
    assert start_of(tmp_path, 0, tls_bytes=1 << 20) == (3 * PAGE, (1 << 20) + 2 * PAGE)


@pytest.mark.parametrize(("tls_bytes", "page_count"), [(128, 0), (129, 1), (3896, 1), (3897, 2)])
def test_a_static_program_without_the_start_up_code_of_glibc_has_its_thread_locals_in_a_block_beyond_128_bytes(
    tls_bytes: int, page_count: int, tmp_path: Path
) -> None:
    # musl's block has 200 bytes beside them: 200 + 3,896 are a page.
    sections = [Section(".data", flags=RW, data=bytes(8)), Section(".tdata", flags=TLS, data=b"x" * tls_bytes)]
    Sysroot(tmp_path).file("/bin/program", write(ElfFile(sections=sections, symbols=[])))
    start = start_memory(Programs(str(tmp_path), page_bytes=PAGE).graph("/bin/program"))
    assert (start.stack_bytes, start.loader_bytes) == (2 * PAGE, page_count * PAGE)


def test_larger_pages_are_filled(tmp_path: Path) -> None:
    assert start_of(tmp_path, 0, page_bytes=0x10000) == (0x10000, 0x10000)


@pytest.mark.parametrize(
    ("count", "entries"),
    [(0, 0), (1, 31), (23, 31), (24, 31 + 61), (82, 31 + 61 + 127), (100, 31 + 61 + 127 + 251)],
)
def test_the_table_of_unique_symbols_grows_when_it_is_three_quarters_full_and_keeps_the_smaller_ones(
    count: int, entries: int
) -> None:
    # libstdc++.so.6 of Debian 12 looks up 82, gdb with its libraries 100.
    assert _unique_tables_bytes(count) == entries * 32
