"""Where glibc finds a library: each rule of its search by the smallest system that shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint.errors import AccessError, InputError, LimitError
from footprint.loader.configuration import Configuration
from footprint.loader.link_map import LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc
from footprint.system.limits import Limits, limited
from tests.elfwriter import (
    DT_FLAGS_1,
    EM_386,
    EM_AARCH64,
    EM_ARM,
    EM_S390,
    ET_EXEC,
    ET_REL,
    Dyn,
    patch,
)
from tests.sysroot import GLIBC, MULTIARCH, Kind, Sysroot, linked, loader_cache

NODEFLIB = Dyn(DT_FLAGS_1, 0x800)
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF
X86_64 = 0x0303


@pytest.fixture
def sysroot(tmp_path: Path) -> Sysroot:
    """Return a system with nothing but a loader."""
    made = Sysroot(tmp_path)
    made.loader()
    return made


@pytest.mark.parametrize("before", [b"\0", b"\xe5\xff\xff", b"\x80\x01", b"/", b"//"])
def test_the_directories_of_a_loader_may_follow_its_code_without_a_null_byte(tmp_path: Path, before: bytes) -> None:
    # The loader of Debian's armhf has 98 e5 ff ff, the end of code, before its first directory.
    sysroot = Sysroot(tmp_path)
    armhf = "/lib/arm-linux-gnueabihf/"
    path = "/lib/ld-linux-armhf.so.3"
    sysroot.loader((armhf, f"/usr{armhf}", "/lib/", "/usr/lib/"), path=path, before=before, bits=32, machine=EM_ARM)
    sysroot.program("liba.so", "$LIB/libb.so", interpreter=path, bits=32, machine=EM_ARM)
    sysroot.library(f"{armhf}liba.so", bits=32, machine=EM_ARM)
    sysroot.library(f"{armhf}libb.so", bits=32, machine=EM_ARM)
    assert sysroot.link(cwd="/").objects[1].path == f"{armhf}liba.so"
    assert sysroot.link(cwd="/").objects[2].path == "lib/arm-linux-gnueabihf/libb.so"


def test_bytes_of_code_that_look_like_a_path_are_no_part_of_the_first_directory(tmp_path: Path) -> None:
    # glibc contains the list twice, and only one copy follows the code.
    sysroot = Sysroot(tmp_path)
    directories = "".join(f"{each}\0" for each in MULTIARCH).encode()
    sysroot.loader(before=b"\0" + directories + b"text\0/w0")
    sysroot.program("liba.so")
    assert sysroot.link().missing[0].looked_in == MULTIARCH


# --- paths in the files


def test_the_rpath_of_a_program_reaches_what_its_libraries_need(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/d")
    sysroot.library("/d/liba.so", "libb.so")
    sysroot.library("/d/libb.so")
    found = sysroot.link()
    assert [each.path for each in found.objects] == ["/bin/program", "/d/liba.so", "/d/libb.so"]
    assert [each.found_by for each in found.objects] == [FoundBy.PROGRAM, FoundBy.RPATH, FoundBy.RPATH]
    assert [each.loader for each in found.objects] == [None, 0, 1]
    assert found.objects[1].dependencies == (("libb.so", 2),)


def test_a_runpath_takes_away_the_rpath_of_all_loaders(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/d")
    sysroot.library("/d/liba.so", "libb.so", runpath="/none")
    sysroot.library("/d/libb.so")
    result = sysroot.link()
    assert [each.path for each in result.objects[1:]] == ["/d/liba.so"]
    cause = (
        "it is not found: the RPATH of program leads to /d/libb.so, but does not count beside the RUNPATH of liba.so"
    )
    assert [(each.name, each.requester, each.cause) for each in result.missing] == [("libb.so", 1, cause)]
    assert result.missing[0].looked_in == ("/none/", *MULTIARCH)
    assert result.objects[1].dependencies == (("libb.so", None),)


def test_a_runpath_is_not_for_what_libraries_need(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d")
    sysroot.library("/d/liba.so", "libb.so")
    sysroot.library("/d/libb.so")
    (missing,) = sysroot.link().missing
    told = "the RUNPATH of program leads to /d/libb.so, but is searched only for what program itself needs"
    more = "an RPATH is searched for what its libraries need, too"
    assert (missing.name, missing.cause) == ("libb.so", f"it is not found: {told}; {more}")


def test_what_no_search_path_leads_to_is_missing_without_more(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d")
    sysroot.library("/d/liba.so", "libb.so", "/d/libc.so", runpath="/none")
    sysroot.library("/elsewhere/libb.so")
    assert [each.cause for each in sysroot.link().missing] == ["it is not found"] * 2


def test_an_rpath_that_does_not_count_beside_a_runpath_of_its_own_is_told(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/old", runpath="/new")
    sysroot.library("/old/liba.so")
    told = (
        "it is not found: the RPATH of program leads to /old/liba.so, but does not count beside the RUNPATH of program"
    )
    assert [each.cause for each in sysroot.link().missing] == [told]


def test_beside_a_runpath_an_rpath_is_nothing(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/old", runpath="/new")
    sysroot.library("/old/liba.so")
    sysroot.library("/new/liba.so")
    assert sysroot.paths() == ["/new/liba.so"]


def test_the_first_file_of_a_soname_is_the_one_for_all(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", runpath="/d1")
    sysroot.library("/d1/liba.so", "libx.so", runpath="/d1")
    sysroot.library("/d1/libb.so", "libx.so.1", runpath="/d2")
    sysroot.library("/d1/libx.so", soname="libx.so.1")
    sysroot.library("/d2/libx.so.1")
    assert sysroot.paths() == ["/d1/liba.so", "/d1/libb.so", "/d1/libx.so"]


def test_what_is_for_another_class_or_machine_is_passed_over(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d1:/d2:/d3")
    sysroot.library("/d1/liba.so", bits=32, machine=EM_386)
    sysroot.library("/d2/liba.so", machine=EM_AARCH64)
    sysroot.library("/d3/liba.so")
    assert sysroot.paths() == ["/d3/liba.so"]


def test_a_library_that_is_there_for_another_machine_alone_is_missing_for_that_reason(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d")
    sysroot.library("/d/liba.so", machine=EM_AARCH64)
    assert sysroot.link().missing[0].cause == "it exists, but for another class or machine"


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "the file is empty"),
        (b"/* GNU ld script */", "not an ELF file"),
        (linked(machine=EM_S390, order="big"), "byte order"),
        (linked(type=ET_REL), "neither a program nor a library"),
        (patch(linked(), "ei_osabi", 9), "another system"),
        (patch(linked(), "ei_abiversion", 1), "another system"),
        (linked()[:200], "beyond the end"),
    ],
)
def test_a_file_that_is_no_library_ends_the_search_and_the_process(sysroot: Sysroot, data: bytes, cause: str) -> None:
    sysroot.program("liba.so", runpath="/d1:/d2")
    sysroot.file("/d1/liba.so", data)
    sysroot.library("/d2/liba.so")
    found = sysroot.link()
    assert [each.path for each in found.objects] == ["/bin/program"]
    assert found.missing[0].cause.startswith("/d1/liba.so: ")
    assert cause in found.missing[0].cause


def test_a_directory_in_place_of_a_library_ends_the_process(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d1")
    (sysroot.root / "d1" / "liba.so").mkdir(parents=True)
    assert sysroot.link().missing[0].cause == "/d1/liba.so: it is a directory"


def test_a_library_whose_section_headers_are_damaged_is_loaded_all_the_same(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d")
    sysroot.file("/d/liba.so", patch(linked(soname="liba.so"), "e_shoff", 1 << 40))
    found = sysroot.link()
    assert found.objects[1].library.linkage.soname == "liba.so"
    assert found.objects[1].library.image.sections == ()


# --- tokens


def test_lib_is_the_directory_that_the_loader_was_built_for(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d/$LIB")
    sysroot.library("/d/lib64/liba.so")
    sysroot.library("/d/lib/x86_64-linux-gnu/liba.so")
    assert sysroot.paths() == ["/d/lib/x86_64-linux-gnu/liba.so"]
    sysroot.loader(["/lib64/", "/usr/lib64/"])
    assert sysroot.paths() == ["/d/lib64/liba.so"]


@pytest.mark.parametrize("element", ["/d/$PLATFORM", "/d/${PLATFORM}/", "/d/$PLATFORM//"])
def test_a_token_may_stand_in_braces(sysroot: Sysroot, element: str) -> None:
    sysroot.program("liba.so", runpath=element)
    sysroot.library("/d/x86_64/liba.so")
    assert sysroot.paths() == ["/d/x86_64/liba.so"]


@pytest.mark.parametrize("element", ["/d/$FOO", "/d/$LIBX", "/d/$LIB_1", "/d/${LIB", "/d/$"])
def test_what_is_no_token_stays_as_it_is(sysroot: Sysroot, element: str) -> None:
    sysroot.program("liba.so", runpath=element)
    sysroot.library(f"{element}/liba.so")
    assert sysroot.paths() == [f"{element}/liba.so"]


def test_the_origin_of_a_library_is_where_its_link_is(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/link")
    sysroot.library("/real/liba.so", "libb.so", runpath="$ORIGIN")
    sysroot.symlink("/link/liba.so", "../real/liba.so")
    sysroot.library("/real/libb.so")
    sysroot.library("/link/libb.so")
    assert sysroot.paths() == ["/link/liba.so", "/link/libb.so"]


def test_the_origin_of_a_program_is_where_it_really_is(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", path="/opt/app/bin/program", runpath="$ORIGIN/../lib")
    sysroot.symlink("/bin/program", "/opt/app/bin/program")
    sysroot.library("/opt/app/lib/liba.so")
    assert sysroot.paths() == ["/opt/app/bin/../lib/liba.so"]


def test_a_needed_name_with_a_slash_is_opened_where_it_says(sysroot: Sysroot) -> None:
    sysroot.program("$ORIGIN/liba.so", "d/libb.so", "/none/libc.so", rpath="/d")
    sysroot.library("/bin/liba.so")
    sysroot.library("/work/d/libb.so")
    sysroot.library("/d/libc.so")
    found = sysroot.link(cwd="/work")
    assert [each.path for each in found.objects[1:]] == ["/bin/liba.so", "d/libb.so"]
    assert [each.name for each in found.missing] == ["/none/libc.so"]


# --- the caller


def test_the_path_of_the_caller_stands_before_the_runpath_and_behind_the_rpath(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", runpath="/d")
    for path in ("/d/liba.so", "/d/libb.so", "/mine/liba.so"):
        sysroot.library(path)
    assert sysroot.paths(library_path="/none;/mine") == ["/mine/liba.so", "/d/libb.so"]
    sysroot.program("liba.so", "libb.so", rpath="/d")
    assert sysroot.paths(library_path="/none:/mine") == ["/d/liba.so", "/d/libb.so"]


def test_the_path_of_the_caller_reaches_what_libraries_need(sysroot: Sysroot) -> None:
    sysroot.program("liba.so")
    sysroot.library("/mine/liba.so", "libb.so")
    sysroot.library("/mine/libb.so")
    assert sysroot.paths(library_path="/mine") == ["/mine/liba.so", "/mine/libb.so"]


def test_an_empty_element_is_the_working_directory_and_an_empty_list_is_none(sysroot: Sysroot) -> None:
    sysroot.program("liba.so")
    sysroot.library("/work/liba.so")
    assert sysroot.paths(library_path=":", cwd="/work") == ["liba.so"]
    assert sysroot.paths(library_path="", cwd="/work") == []


def test_what_is_preloaded_stands_before_all_libraries(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/d")
    for path in ("/d/liba.so", "/d/libb.so", "/mine.so", "/systems.so"):
        sysroot.library(path)
    sysroot.file("/etc/ld.so.preload", b"/systems.so # for all\n# /d/libb.so\n")
    found = sysroot.link(preload="libb.so:/mine.so libb.so /none.so")
    assert [each.path for each in found.objects[1:]] == ["/d/libb.so", "/mine.so", "/systems.so", "/d/liba.so"]
    assert [each.found_by for each in found.objects[1:4]] == [FoundBy.PRELOAD] * 3
    assert [each.loader for each in found.objects] == [None, None, None, None, 0]
    assert [(note.slug, note.subject) for note in found.notes if note.slug != "loader-cache"] == [
        ("not-preloaded", "/none.so")
    ]


def test_a_caller_who_is_not_trusted_decides_nothing(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", "libx.so", runpath="$ORIGIN:/d/$ORIGIN:$ORIGIN/../lib")
    for path in ("/bin/liba.so", "/mine/liba.so", "/lib/libb.so", "/mine.so", "/lib/libx.so", "/lib/liby.so"):
        sysroot.library(path)
    (sysroot.root / "lib" / "libx.so").chmod(0o4644)
    preload = "/mine.so libx.so liby.so"
    assert sysroot.paths(library_path="/mine", preload=preload)[:4] == [
        "/mine.so",
        "/bin/../lib/libx.so",
        "/bin/../lib/liby.so",
        "/mine/liba.so",
    ]
    found = sysroot.link(library_path="/mine", preload=preload, is_secure=True)
    assert [each.path for each in found.objects[1:]] == ["/lib/libx.so", "/bin/../lib/libb.so"]
    assert [each.name for each in found.missing] == ["liba.so"]


def test_the_set_user_id_bit_tells_that_the_caller_is_not_trusted(sysroot: Sysroot) -> None:
    sysroot.program("liba.so")
    sysroot.library("/mine/liba.so")
    assert sysroot.paths(library_path="/mine") == ["/mine/liba.so"]
    (sysroot.root / "bin" / "program").chmod(0o4755)
    assert sysroot.paths(library_path="/mine") == []
    found = sysroot.link(library_path="/mine")
    told = "LD_LIBRARY_PATH leads to /mine/liba.so, but is ignored: the program is set-user-ID or set-group-ID"
    assert [each.cause for each in found.missing] == [f"it is not found: {told}"]
    assert ("set-user-id", "it is set-user-ID or set-group-ID: the loader ignores LD_LIBRARY_PATH") in slugs(found)


def slugs(result: LinkMap) -> list[tuple[str, str]]:
    return [(note.slug, note.detail) for note in result.notes]


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_who_owns_a_program_decides_for_it_whatever_its_bits(sysroot: Sysroot, mode: int) -> None:
    """The kernel compares the user and group: nothing changes for root and a program of root."""
    sysroot.program("liba.so")
    sysroot.library("/mine/liba.so")
    program = sysroot.root / "bin" / "program"
    program.chmod(mode)
    user, group = program.stat().st_uid, program.stat().st_gid
    assert sysroot.paths(library_path="/mine", caller=(user + 1, group + 1)) == []
    found = sysroot.link(library_path="/mine", caller=(user, group))
    assert [each.path for each in found.objects[1:]] == ["/mine/liba.so"]
    told = "LD_LIBRARY_PATH counts, since its owner runs it; for others the loader ignores it"
    assert ("set-user-id", f"it is set-user-ID or set-group-ID: {told}") in slugs(found)


def test_a_group_bit_without_the_right_to_execute_is_no_set_group_id(sysroot: Sysroot) -> None:
    sysroot.program("liba.so")
    sysroot.library("/mine/liba.so")
    (sysroot.root / "bin" / "program").chmod(0o2745)
    assert sysroot.paths(library_path="/mine") == ["/mine/liba.so"]


# --- the processor


def test_a_copy_for_the_processor_stands_before_the_plain_one_of_its_directory(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", runpath="/d1:/d2")
    for path in ("/d1/liba.so", "/d1/glibc-hwcaps/x86-64-v3/liba.so", "/d1/glibc-hwcaps/x86-64-v2/liba.so"):
        sysroot.library(path)
    sysroot.library("/d1/libb.so")
    sysroot.library("/d2/glibc-hwcaps/x86-64-v2/libb.so")
    assert sysroot.paths(hwcaps="x86-64-v4") == ["/d1/glibc-hwcaps/x86-64-v3/liba.so", "/d1/libb.so"]
    assert sysroot.paths(hwcaps="x86-64-v2") == ["/d1/glibc-hwcaps/x86-64-v2/liba.so", "/d1/libb.so"]
    assert sysroot.paths(hwcaps="baseline") == ["/d1/liba.so", "/d1/libb.so"]


def test_the_old_subdirectories_are_gone_with_glibc_2_37(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", runpath="/d")
    for path in ("/d/liba.so", "/d/tls/liba.so", "/d/tls/x86_64/x86_64/liba.so", "/d/libb.so", "/d/x86_64/libb.so"):
        sysroot.library(path)
    sysroot.loader(release="2.37")
    assert sysroot.paths() == ["/d/liba.so", "/d/libb.so"]
    sysroot.loader(release="2.36")
    assert sysroot.paths() == ["/d/tls/x86_64/x86_64/liba.so", "/d/x86_64/libb.so"]


# --- the cache and the directories of the system


def test_the_cache_stands_behind_the_runpath_and_before_the_directories_of_the_system(sysroot: Sysroot) -> None:
    sysroot.file(
        "/etc/ld.so.cache", loader_cache([("liba.so", "/c/liba.so", X86_64), ("libb.so", "/c/libb.so", X86_64)])
    )
    sysroot.program("liba.so", "libb.so", "libc.so", runpath="/d")
    for path in ("/d/libb.so", "/c/liba.so", "/c/libb.so", "/lib/liba.so", "/usr/lib/libc.so", "/lib64/libc.so"):
        sysroot.library(path)
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/c/liba.so", "/d/libb.so", "/usr/lib/libc.so"]
    assert [each.found_by for each in found.objects[1:]] == [FoundBy.CACHE, FoundBy.RUNPATH, FoundBy.DEFAULT]
    assert sysroot.paths(uses_cache=False) == ["/lib/liba.so", "/d/libb.so", "/usr/lib/libc.so"]


def test_a_cached_file_that_is_gone_is_looked_for_in_the_directories_of_the_system(sysroot: Sysroot) -> None:
    sysroot.file("/etc/ld.so.cache", loader_cache([("liba.so", "/gone/liba.so", X86_64)]))
    sysroot.program("liba.so")
    sysroot.library("/lib/liba.so")
    assert sysroot.paths() == ["/lib/liba.so"]


def test_a_library_may_forbid_the_directories_of_the_system(sysroot: Sysroot) -> None:
    entries = [("liba.so", "/c/liba.so", X86_64), ("libb.so", "/lib/libb.so", X86_64)]
    sysroot.file("/etc/ld.so.cache", loader_cache(entries))
    sysroot.program("liba.so", "libb.so", "libc.so", more=[NODEFLIB])
    for path in ("/c/liba.so", "/lib/libb.so", "/lib/libc.so"):
        sysroot.library(path)
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/c/liba.so"]
    assert [each.name for each in found.missing] == ["libb.so", "libc.so"]


def test_without_a_cache_a_root_is_searched_as_ldconfig_would(sysroot: Sysroot) -> None:
    sysroot.file("/etc/ld.so.conf", b"# first\ninclude ld.so.conf.d/*.conf\nhwcap 1 nosegneg\n/c2/=libc6 # last\n")
    sysroot.file("/etc/ld.so.conf.d/b.conf", b"/c1\ninclude /etc/ld.so.conf\n")
    sysroot.file("/etc/ld.so.conf.d/.hidden.conf", b"/c0\n")
    sysroot.program("liba.so", "libb.so.1", "plugin.so", "libc.so")
    for path in ("/c0/liba.so", "/c2/liba.so", "/c1/liba.so", "/c2/plugin.so", "/lib/libc.so"):
        sysroot.library(path)
    sysroot.library("/c2/libb-1.0.so", soname="libb.so.1")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/c1/liba.so", "/c2/libb-1.0.so", "/lib/libc.so"]
    assert found.objects[1].found_by is FoundBy.CONFIGURATION
    assert [each.name for each in found.missing] == ["plugin.so"]
    assert [note.slug for note in found.notes] == ["loader-cache"]


def test_files_that_include_one_another_are_matched_and_read_once(
    sysroot: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 20
    sysroot.file("/etc/ld.so.conf", b"include /d/*.conf\n/last\n")
    for number in range(count):
        sysroot.file(f"/d/{number:02}.conf", f"/c{number:02}\n".encode() + b"include /d/*.conf\n" * count)
    sysroot.library(f"/c{count - 1}/liba.so")
    sysroot.program("liba.so")
    reads: list[str] = []
    read = Configuration._read

    def counted(self: Configuration, path: str, seen: set[str], depth: int) -> Iterator[str]:
        reads.append(path)
        return read(self, path, seen, depth)

    monkeypatch.setattr(Configuration, "_read", counted)
    # One list of the folder, and the lines of its files: not a list for each of 400 includes.
    with limited(Limits(entry_count=count + count * (count + 3) + 100)):
        assert sysroot.paths() == [f"/c{count - 1}/liba.so"]
    assert len(reads) == 1 + count


def test_a_library_that_was_added_after_the_cache_was_made_is_missing_with_a_note(sysroot: Sysroot) -> None:
    sysroot.file("/etc/ld.so.cache", loader_cache([("liba.so", "/c/liba.so", X86_64)]))
    sysroot.file("/etc/ld.so.conf", b"/c\n")
    sysroot.program("liba.so", "libb.so")
    sysroot.library("/c/liba.so")
    sysroot.library("/c/libb.so")
    found = sysroot.link()
    assert [each.name for each in found.missing] == ["libb.so"]
    assert [note.slug for note in found.notes] == ["loader-cache-stale"]


@pytest.mark.parametrize(
    ("flags", "path", "kind"),
    [
        (0x0303, GLIBC, {}),
        (0x0003, "/lib/ld-linux.so.2", {"bits": 32, "machine": EM_386}),
        (0x0A03, "/lib/ld-linux-aarch64.so.1", {"machine": EM_AARCH64}),
        (0x0403, "/lib/ld64.so.1", {"machine": EM_S390, "order": "big"}),
    ],
)
def test_one_soname_is_in_the_cache_once_for_each_kind_of_programs(
    tmp_path: Path, flags: int, path: str, kind: Kind
) -> None:
    sysroot = Sysroot(tmp_path)
    entries = [("liba.so", f"/c/{each:x}/liba.so", each) for each in (0x0803, 0x0A03, 0x0403, 0x0303, 0x0003)]
    sysroot.file("/etc/ld.so.cache", loader_cache(entries, order=">" if "order" in kind else "<"))
    sysroot.loader(path=path, **kind)
    sysroot.program("liba.so", interpreter=path, **kind)
    sysroot.library(f"/c/{flags:x}/liba.so", **kind)
    assert sysroot.paths() == [f"/c/{flags:x}/liba.so"]


def test_without_a_loader_the_directories_are_those_of_its_kind_of_system(tmp_path: Path) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.program("liba.so")
    sysroot.library("/lib64/liba.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/lib64/liba.so"]
    assert [each.name for each in found.missing] == [GLIBC]
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    sysroot.library("/lib/liba.so")
    assert sysroot.paths() == ["/lib/liba.so"]


# --- the map


def test_the_loader_has_its_place_where_something_needs_it(sysroot: Sysroot) -> None:
    sysroot.program("libb.so", "liba.so", runpath="/d")
    sysroot.library("/d/liba.so", "ld-linux-x86-64.so.2", "libb.so")
    sysroot.library("/d/libb.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/d/libb.so", "/d/liba.so", GLIBC]
    assert (found.interpreter, found.libc) == (3, Libc.GLIBC)
    assert found.interpreter_object is not None
    assert (found.objects[3].loader, found.objects[3].found_by) == (2, FoundBy.INTERPRETER)


def test_the_loader_is_in_the_process_where_nothing_needs_it(sysroot: Sysroot) -> None:
    sysroot.program()
    found = sysroot.link()
    assert found.interpreter is None
    assert found.interpreter_object is not None
    assert found.interpreter_object.path == GLIBC


def test_libraries_that_need_one_another_are_loaded_once(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/d")
    sysroot.library("/d/liba.so", "libb.so", "liba.so")
    sysroot.library("/d/libb.so", "liba.so")
    assert sysroot.paths() == ["/d/liba.so", "/d/libb.so"]


def test_one_file_by_two_names_is_one_object(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", "libc.so", rpath="/d")
    sysroot.library("/d/liba.so")
    sysroot.symlink("/d/libb.so", "liba.so")
    (sysroot.root / "d" / "libc.so").hardlink_to(sysroot.root / "d" / "liba.so")
    found = sysroot.link()
    assert [each.path for each in found.objects[1:]] == ["/d/liba.so"]
    assert [dependency.place for dependency in found.objects[0].dependencies] == [1, 1, 1]


@pytest.mark.parametrize("tag", [DT_AUXILIARY, DT_FILTER])
def test_what_stands_in_for_a_library_comes_before_it(sysroot: Sysroot, tag: int) -> None:
    sysroot.program("libfront.so", "libback.so", "libz.so", rpath="/d")
    sysroot.library("/d/libfront.so", more=[Dyn(tag, "libnew.so"), Dyn(tag, "libback.so")])
    sysroot.library("/d/libnew.so", "libdeep.so")
    for name in ("libback.so", "libz.so", "libdeep.so"):
        sysroot.library(f"/d/{name}")
    found = sysroot.link()
    names = [each.path.removeprefix("/d/") for each in found.objects[1:]]
    assert names == ["libnew.so", "libback.so", "libfront.so", "libz.so", "libdeep.so"]
    assert [dependency.place for dependency in found.objects[0].dependencies] == [3, 2, 4]


def test_of_what_stands_in_only_a_filter_must_exist(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/d")
    sysroot.library("/d/liba.so", more=[Dyn(DT_AUXILIARY, "libnone.so"), Dyn(DT_FILTER, "libmust.so")])
    assert [each.name for each in sysroot.link().missing] == ["libmust.so"]


def test_a_static_program_is_alone(sysroot: Sysroot) -> None:
    sysroot.file("/bin/program", linked(type=ET_EXEC))
    sysroot.file("/bin/pie", linked(more=[Dyn(DT_FLAGS_1, 0x08000000)]))
    for path in ("/bin/program", "/bin/pie"):
        found = sysroot.link(path)
        assert (len(found.objects), found.missing, found.interpreter_object) == (1, (), None)


def test_a_library_alone_is_loaded_by_the_loader_of_its_kind(sysroot: Sysroot) -> None:
    sysroot.library("/d/liba.so", "libb.so", "ld-linux-x86-64.so.2", runpath="$ORIGIN")
    sysroot.library("/d/libb.so")
    assert sysroot.paths("/d/liba.so") == ["/d/libb.so", GLIBC]


@pytest.mark.parametrize(
    ("path", "error"),
    [("/bin/script", InputError), ("/bin/none", AccessError), ("/bin", InputError), ("/o", InputError)],
)
def test_what_is_no_program_is_refused_by_name(sysroot: Sysroot, path: str, error: type[Exception]) -> None:
    sysroot.file("/bin/script", b"#!/bin/sh\n")
    sysroot.file("/o", linked(type=ET_REL))
    with pytest.raises(error, match=f"^{path}: "):
        sysroot.link(path)


def test_names_that_are_no_utf_8_are_kept(sysroot: Sysroot) -> None:
    name = "lib\udcff.so"
    sysroot.program(name, runpath="/d\udcfe")
    sysroot.library(f"/d\udcfe/{name}")
    assert sysroot.paths() == [f"/d\udcfe/{name}"]


def test_ten_thousand_needed_libraries_cost_no_more_than_their_number(sysroot: Sysroot) -> None:
    names = [f"lib{number}.so" for number in range(10_000)]
    sysroot.program(*names, rpath="/d")
    sysroot.library("/d/lib7.so", *names)
    found = sysroot.link()
    assert (len(found.objects), len(found.missing)) == (2, 2 * 9_999)


def test_names_and_directories_that_multiply_beyond_reason_are_refused(sysroot: Sysroot) -> None:
    names = [f"lib{number}.so" for number in range(10_000)]
    sysroot.program(*names, rpath=":".join(f"/d{number}" for number in range(10_000)))
    spent = r"^/bin/program: spent 1,050,001 of 1,048,576 entries; raise it with --limits entries=2097152$"
    with limited(), pytest.raises(LimitError, match=spent):
        sysroot.link()
