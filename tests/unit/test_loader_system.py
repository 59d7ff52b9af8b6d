"""Files as the programs of a root see them: links end inside of it, and a file is read once."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from footprint.errors import AccessError
from footprint.loader.link_map import link
from footprint.loader.system import Library, Refusal, System
from tests.sysroot import Sysroot, linked


@pytest.fixture
def sysroot(tmp_path: Path) -> Sysroot:
    made = Sysroot(tmp_path / "root")
    made.library("/usr/lib/liba.so")
    (tmp_path / "outside.so").write_bytes(linked())
    return made


def opened(sysroot: Sysroot, path: str) -> str | None:
    found = System(str(sysroot.root)).file(path)
    return os.path.relpath(found.real_path, sysroot.root) if isinstance(found, Library) else None


@pytest.mark.parametrize(
    ("link_path", "target", "path"),
    [
        ("/lib", "usr/lib", "/lib/liba.so"),
        ("/lib", "/usr/lib", "/lib/liba.so"),
        ("/lib", "../../../usr/./lib/", "/lib//liba.so"),
        ("/opt/lib/liba.so", "../../usr/lib/liba.so", "/opt/lib/liba.so"),
        ("/opt/lib", "/etc/alternatives/../../usr/lib", "/opt/../../../opt/lib/liba.so"),
    ],
)
def test_links_are_followed_as_if_the_root_were_all(sysroot: Sysroot, link_path: str, target: str, path: str) -> None:
    sysroot.file("/etc/alternatives/README", b"")
    sysroot.symlink(link_path, target)
    assert opened(sysroot, path) == "usr/lib/liba.so"


@pytest.mark.parametrize("target", ["/../outside.so", "../../outside.so", "../../../../../../outside.so"])
def test_nothing_leads_out_of_the_root(sysroot: Sysroot, target: str) -> None:
    sysroot.symlink("/lib/libx.so", target)
    sysroot.symlink("/lib/up", "../../..")
    assert opened(sysroot, "/lib/libx.so") is None
    assert opened(sysroot, "/lib/up/outside.so") is None
    assert opened(sysroot, "/../outside.so") is None
    assert opened(sysroot, "/lib/up/usr/lib/liba.so") == "usr/lib/liba.so"


@given(st.lists(st.sampled_from(["..", ".", "", "lib", "usr", "up", "away", "home", "loop"]), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_whatever_leads_out_of_the_root(sysroot: Sysroot, names: list[str]) -> None:
    for name, target in (("up", ".."), ("away", "/../../"), ("home", f"{sysroot.root}/.."), ("loop", "loop")):
        if not os.path.lexists(sysroot.root / name):
            sysroot.symlink(f"/{name}", target)
    assert opened(sysroot, "/" + "/".join([*names, "outside.so"])) is None


def test_links_that_go_round_in_circles_lead_nowhere(sysroot: Sysroot) -> None:
    sysroot.symlink("/a", "b")
    sysroot.symlink("/b", "a")
    sysroot.symlink("/long", "long/long")
    assert opened(sysroot, "/a") is None
    assert opened(sysroot, "/a/liba.so") is None
    assert opened(sysroot, "/long") is None


def test_a_file_is_one_library_by_whatever_path(sysroot: Sysroot) -> None:
    sysroot.symlink("/lib", "usr/lib")
    system = System(str(sysroot.root))
    assert system.file("/lib/liba.so") is system.file("/usr/lib/../lib/liba.so")


def test_what_is_no_file_is_never_waited_for(sysroot: Sysroot) -> None:
    os.mkfifo(sysroot.root / "lib.so")
    found = System(str(sysroot.root)).file("/lib.so")
    assert found == Refusal("it is not a regular file")


@pytest.mark.parametrize("path", ["/none", "/usr/lib/liba.so/deeper", "/nul\0", "/" + "long" * 2_000])
def test_what_cannot_be_opened_is_not_there(sysroot: Sysroot, path: str) -> None:
    assert System(str(sysroot.root)).file(path) is None
    assert System().file(path) is None


def test_an_image_is_mapped_when_it_is_asked_for_and_refused_when_the_file_was_replaced(sysroot: Sysroot) -> None:
    library = System(str(sysroot.root)).file("/usr/lib/liba.so")
    assert isinstance(library, Library)
    assert library.image is library.image
    other = System(str(sysroot.root)).file("/usr/lib/liba.so")
    assert isinstance(other, Library)
    (sysroot.root / "usr/lib/liba.so").write_bytes(linked(soname="another.so"))
    with pytest.raises(AccessError, match="replaced"):
        _ = other.image


def test_more_files_than_a_process_may_hold_open_can_be_looked_at(sysroot: Sysroot) -> None:
    for number in range(400):
        sysroot.library(f"/many/lib{number}.so")
    system = System(str(sysroot.root))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(400):
        library = system.file(f"/many/lib{number}.so")
        assert isinstance(library, Library)
        assert library.image.sections
    assert len(os.listdir("/proc/self/fd")) - before <= 256


def test_the_same_system_is_searched_the_same_way_each_time(sysroot: Sysroot) -> None:
    sysroot.loader()
    sysroot.program("liba.so", "libb.so", rpath="/none:/usr/lib")
    system = System(str(sysroot.root))
    first = link(system, "/bin/program")
    again = link(system, "/bin/program")
    assert first == again
    assert first.objects[1].library is again.objects[1].library
