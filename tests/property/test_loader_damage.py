"""Damaged files give a map or one of our errors, and the same files give the same map."""

import contextlib
import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from footprint.errors import FootprintError
from tests.elfwriter import Dyn
from tests.examples import examples
from tests.sysroot import GLIBC, Sysroot, linked, loader_cache

FILES = {
    "/bin/program": linked(["liba.so", "libb.so", "$ORIGIN/libc.so"], interpreter=GLIBC, rpath="$ORIGIN/../d:/d/$LIB"),
    "/d/liba.so": linked(["libb.so", "libc.so"], soname="liba.so.1", runpath="${ORIGIN}"),
    "/d/libb.so": linked(["liba.so.1"], more=[Dyn(0x7FFFFFFD, "libc.so"), Dyn(0x6FFFFFFB, 0x800)]),
    "/c/libc.so": linked(["libb.so"]),
    "/etc/ld.so.cache": loader_cache([("libc.so", "/c/libc.so", 0x0303), ("libb.so", "/c/libb.so", 0x0803)]),
    "/etc/ld.so.conf": b"include /etc/*.conf\n/c\n/d/../c/\n",
    GLIBC: linked(soname="ld-linux-x86-64.so.2", texts=b"\0/lib/\0/usr/lib/\0release version 2.36."),
}
DAMAGE = st.lists(
    st.tuples(st.sampled_from(sorted(FILES)), st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8
)


@examples(150)
@given(DAMAGE, st.text(max_size=20), st.text(max_size=20))
def test_damaged_files_give_a_map_or_one_of_our_errors(
    damage: list[tuple[str, int, int]], library_path: str, preload: str
) -> None:
    files = {path: bytearray(data) for path, data in FILES.items()}
    for path, place, byte in damage:
        files[path][place % len(files[path])] = byte
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FootprintError):
        sysroot = Sysroot(Path(folder))
        for path, data in files.items():
            sysroot.file(path, bytes(data))
        wishes = {"library_path": library_path, "preload": preload}
        result = sysroot.link(**wishes)  # type: ignore[arg-type] # both are text
        again = sysroot.link(**wishes)  # type: ignore[arg-type] # both are text
        assert [each.path for each in result.objects] == [each.path for each in again.objects]
        assert result.missing == again.missing
        assert result.objects[0].path == "/bin/program"
        for linked_object in result.objects:
            assert os.path.commonpath([linked_object.library.real_path, sysroot.root]) == os.path.realpath(folder)
            assert all(place is None or place < len(result.objects) for _, place in linked_object.dependencies)
