"""Needs are switched off and on in their place, in files of each class and byte order."""

from typing import Any

import pytest

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.verbs.whatif.copies import need_switches, with_search_path
from tests.elfkinds import KINDS, in_all_classes_and_orders
from tests.elfwriter import DT_NEEDED, DT_RUNPATH, DT_SONAME, Dyn, ElfFile, write

NAMES = ("libfirst.so", "libsecond.so", "libthird.so", "libsecond.so")


def a_file(kind: dict[str, Any]) -> bytes:
    entries = [Dyn(DT_SONAME, "libself.so"), *(Dyn(DT_NEEDED, name) for name in NAMES), Dyn(DT_RUNPATH, "/opt")]
    return write(ElfFile(**kind, dynamic=entries))


def needed(data: bytes) -> tuple[str, ...]:
    return read_linkage(read_image(data, "file")).needed


@in_all_classes_and_orders
def test_a_need_is_switched_off_and_on_and_all_else_stays(kind: dict[str, Any]) -> None:
    whole = a_file(kind)
    switches = need_switches(read_image(whole, "file"), frozenset({"libsecond.so", "libother.so"}))
    assert len(switches) == 2
    changed = bytearray(whole)
    for switch in switches:
        assert whole[switch.offset :].startswith(switch.on)
        changed[switch.offset : switch.offset + len(switch.off)] = switch.off
    assert needed(bytes(changed)) == ("libfirst.so", "libthird.so")
    before, after = [read_linkage(read_image(data, "file")) for data in (whole, bytes(changed))]
    assert (after.soname, after.runpath) == (before.soname, before.runpath)
    for switch in switches:
        changed[switch.offset : switch.offset + len(switch.on)] = switch.on
    assert bytes(changed) == whole


def test_a_file_without_a_dynamic_section_has_nothing_to_switch() -> None:
    assert need_switches(read_image(write(ElfFile()), "file"), frozenset(NAMES)) == ()


@pytest.mark.parametrize("is_runpath", [True, False])
@pytest.mark.parametrize("directories", [b"/a/directory/with/a/long/name:/opt", b"/not utf-8 \xff/and:/more"])
def test_other_directories_may_be_any_bytes_and_the_needs_stay(directories: bytes, is_runpath: bool) -> None:  # noqa: FBT001 # a parameter of the test
    pytest.importorskip("lief")
    changed = with_search_path(a_file(KINDS["64-bit-little-endian"]), "file", directories, is_runpath=is_runpath)
    found = read_linkage(read_image(changed, "file"))
    text = directories.decode("utf-8", "surrogateescape")
    assert (found.runpath, found.rpath) == ((text, None) if is_runpath else ("/opt", text))
    assert (found.soname, found.needed) == ("libself.so", NAMES)
