"""Where musl finds a library: its own rules, each by the smallest system that shows it."""

from pathlib import Path
from typing import Unpack

import pytest

from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc
from tests.elfwriter import DT_FLAGS_1, EM_AARCH64, Dyn
from tests.sysroot import Facts, Sysroot

MUSL = "/lib/ld-musl-x86_64.so.1"


class MuslRoot(Sysroot):
    """A system of musl."""

    def musl_program(self, *needed: str, **facts: Unpack[Facts]) -> None:
        self.program(*needed, interpreter=MUSL, **facts)


@pytest.fixture
def sysroot(tmp_path: Path) -> MuslRoot:
    made = MuslRoot(tmp_path)
    made.library(MUSL, soname="libc.so")
    return made


@pytest.mark.parametrize("name", ["libc.so", "libc.musl-x86_64.so.1", "libpthread.so.0", "libm.so", "libc.so.6", MUSL])
def test_the_names_of_the_c_library_are_the_loader(sysroot: MuslRoot, name: str) -> None:
    sysroot.musl_program(name, "libcrypt.so")
    sysroot.library(f"/lib/{name.removeprefix('/lib/')}x")
    sysroot.library("/lib/libcrypt.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == [MUSL, "/lib/libcrypt.so"]
    assert (found.libc, found.interpreter) == (Libc.MUSL, 1)


def test_rpath_and_runpath_are_one_list_and_both_reach_what_libraries_need(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", rpath="/d1", runpath="/d2")
    sysroot.library("/d1/liba.so")
    sysroot.library("/d2/liba.so", "libb.so", runpath="/none")
    sysroot.library("/d2/libb.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/d2/liba.so", "/d2/libb.so"]
    assert found.objects[2].found_by is FoundBy.RUNPATH


def test_the_path_of_the_caller_stands_before_all(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", rpath="/d")
    sysroot.library("/d/liba.so")
    sysroot.library("/mine/liba.so")
    assert sysroot.paths(library_path=":/mine") == ["/mine/liba.so"]
    assert sysroot.paths(library_path="/mine", is_secure=True) == ["/d/liba.so"]


def test_the_directories_stand_in_a_file_beside_the_loader(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", "libb.so", "libd.so")
    for path in ("/lib/liba.so", "/usr/local/lib/libb.so", "/usr/lib/libb.so", "/c/libd.so"):
        sysroot.library(path)
    assert sysroot.paths() == ["/lib/liba.so", "/usr/local/lib/libb.so"]
    sysroot.file("/etc/ld-musl-x86_64.path", b"/c\n\n/usr/lib:/lib\n")
    assert sysroot.paths() == ["/lib/liba.so", "/usr/lib/libb.so", "/c/libd.so"]


def test_a_library_is_known_by_the_name_of_its_file_and_not_by_its_soname(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", "libold.so")
    sysroot.library("/lib/liba.so", soname="libold.so")
    sysroot.library("/lib/libold.so")
    assert sysroot.paths() == ["/lib/liba.so", "/lib/libold.so"]


def test_one_file_by_two_names_is_one_object(sysroot: MuslRoot) -> None:
    sysroot.musl_program("/lib/liba.so", "liba.so", "libb.so")
    sysroot.library("/lib/liba.so")
    sysroot.symlink("/lib/libb.so", "liba.so")
    assert sysroot.paths() == ["/lib/liba.so"]


def test_the_first_file_that_opens_is_the_one_be_it_for_another_machine(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", rpath="/d1:/d2")
    sysroot.library("/d1/liba.so", machine=EM_AARCH64)
    sysroot.library("/d2/liba.so")
    missing = [(each.name, each.cause) for each in sysroot.link().missing]
    assert missing == [("liba.so", "/d1/liba.so: it is for another class or machine, or not a library")]


def test_origin_is_the_only_token_and_any_other_disables_the_list(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", rpath="$ORIGIN/../d")
    sysroot.library("/d/liba.so")
    assert sysroot.paths() == ["/bin/../d/liba.so"]
    sysroot.musl_program("liba.so", rpath="$ORIGIN/../d:/$LIB:/d")
    assert sysroot.paths() == []


def test_an_empty_element_is_not_the_working_directory(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", rpath=":/d:")
    sysroot.library("/work/liba.so")
    sysroot.library("/d/liba.so")
    assert sysroot.paths(cwd="/work") == ["/d/liba.so"]


def test_there_are_no_copies_for_processors_no_substitutes_and_no_cache(sysroot: MuslRoot) -> None:
    sysroot.musl_program("liba.so", more=[Dyn(DT_FLAGS_1, 0x800)])
    sysroot.library("/lib/liba.so", more=[Dyn(0x7FFFFFFF, "libnone.so")])
    sysroot.library("/lib/glibc-hwcaps/x86-64-v3/liba.so")
    found = sysroot.link(hwcaps="x86-64-v4")
    assert [each.path for each in found.objects[1:]] == ["/lib/liba.so"]
    assert not found.missing
    assert not found.notes


def test_the_c_library_of_glibc_by_its_path_is_the_loader_all_the_same(sysroot: MuslRoot) -> None:
    sysroot.musl_program("/gnu/libc.so.6")
    sysroot.library("/gnu/libc.so.6", soname="libc.so.6")
    assert sysroot.paths() == [MUSL]


def test_a_library_alone_that_needs_musl_is_loaded_by_musl(sysroot: MuslRoot) -> None:
    sysroot.loader()
    sysroot.library("/d/liba.so", "libc.musl-x86_64.so.1")
    found = sysroot.link("/d/liba.so")
    assert found.libc is Libc.MUSL
    assert [each.path for each in found.objects[1:]] == [MUSL]
