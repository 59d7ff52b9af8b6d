"""Objects that a process opened itself stand behind those that it started with, and know each other by name."""

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.loader.dependencies import needs, roots
from footprint.loader.link_map import Dependency, Linked, LinkMap, with_opened
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import Library
from footprint.loader.target import Libc
from tests.elfwriter import DT_NEEDED, DT_SONAME, Dyn, ElfFile, write


def made(path: str, *needed: str, soname: str | None = None) -> Library:
    dynamic = [*(Dyn(DT_NEEDED, name) for name in needed), *([Dyn(DT_SONAME, soname)] if soname else [])]
    image = read_image(write(ElfFile(dynamic=dynamic or [Dyn(DT_NEEDED, "libc.so.6")])), path)
    return Library(path, image, read_linkage(image), 0o755, None, lambda *_: image)  # type: ignore[arg-type] # it never changes


def started() -> LinkMap:
    program, libc = made("/bin/program", "libc.so.6"), made("/lib/libc.so.6", soname="libc.so.6")
    objects = (
        Linked("/bin/program", program, FoundBy.PROGRAM, None, (Dependency("libc.so.6", 1),)),
        Linked("/lib/libc.so.6", libc, FoundBy.DEFAULT, 0, ()),
    )
    return LinkMap(objects, (), None, None, Libc.GLIBC, None, ())


def opened(*paths: tuple[str, Library]) -> LinkMap:
    return with_opened(started(), paths)


def test_without_any_the_map_is_the_one_it_was() -> None:
    assert [one.path for one in opened().objects] == ["/bin/program", "/lib/libc.so.6"]
    assert [one.loader for one in opened().objects] == [None, 0]


def test_what_is_opened_comes_last_and_brings_in_what_it_needs() -> None:
    result = opened(
        ("/plugins/one.so", made("/plugins/one.so", "libtwo.so.1", "libc.so.6", "libgone.so")),
        ("/lib/libtwo.so.1.0", made("/lib/libtwo.so.1.0", "libc.so.6", soname="libtwo.so.1")),
    )
    assert [one.path for one in result.objects[2:]] == ["/plugins/one.so", "/lib/libtwo.so.1.0"]
    assert {one.found_by for one in result.objects[2:]} == {FoundBy.OPENED}
    assert result.objects[2].dependencies == (("libtwo.so.1", 3), ("libc.so.6", 1), ("libgone.so", None))
    assert [one.loader for one in result.objects] == [None, 0, None, 2]
    assert roots(result) == (0, 2)
    assert needs(result) == ((1,), (), (3, 1), (1,))


def test_a_library_that_is_needed_by_its_path_is_found_by_it() -> None:
    found = opened(("/p/one.so", made("/p/one.so", "/q/two.so")), ("/q/two.so", made("/q/two.so", "libc.so.6")))
    assert found.objects[2].dependencies == (("/q/two.so", 3),)


def test_two_that_need_each_other_are_brought_in_by_the_first() -> None:
    found = opened(
        ("/p/one.so", made("/p/one.so", "two.so", soname="one.so")),
        ("/p/two.so", made("/p/two.so", "one.so", soname="two.so")),
    )
    assert [one.loader for one in found.objects[2:]] == [None, 2]
    assert roots(found) == (0, 2)


def test_an_object_that_needs_itself_is_brought_in_by_nobody() -> None:
    found = opened(("/p/one.so", made("/p/one.so", "one.so")))
    assert found.objects[2].loader is None
    assert needs(found)[2] == ()


def test_two_paths_whose_last_parts_are_alike_are_told_apart_where_the_whole_path_is_needed() -> None:
    found = opened(
        ("/a/plugin.so", made("/a/plugin.so", "libc.so.6")),
        ("/b/plugin.so", made("/b/plugin.so", "libc.so.6")),
        ("/p/one.so", made("/p/one.so", "/b/plugin.so")),
    )
    assert found.objects[4].dependencies == (("/b/plugin.so", 3),)
