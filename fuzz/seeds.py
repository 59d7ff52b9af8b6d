"""The inputs that each target begins with: real files of the tests, what their writers write, and `fuzz/seeds`."""

import gzip
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import footprint
from footprint.formats.audit_json import audit_json
from footprint.release.budget import propose
from footprint.series.records import AuditKept, line_of, packed
from fuzz.targets import TARGETS
from tests.debugpairs import debug, mini, stripped
from tests.elfkinds import KINDS
from tests.elfwriter import archive
from tests.glibcwriter import Chunk, HeapWriter
from tests.property.test_capture_damage import SMAPS, sound
from tests.property.test_dwarf_damage import FILES as DWARF_FILES
from tests.property.test_elf_damage import small
from tests.sysroot import loader_cache, old_loader_cache
from tests.unit.test_images import ELF, docker_save, layer
from tests.unit.test_package_files import SOUND as PACKAGES
from tests.unit.test_series import EVERY

__all__ = ("LARGEST_BYTES", "seeds", "write_seeds")

LARGEST_BYTES: Final = 64 << 10
"""No input is larger: a small one is damaged, read and understood sooner."""
_TEXT_BYTES: Final = (8 << 10, 1 << 10)
"""Each text is cut to these sizes: also what is cut is an input, and the shorter is read sooner."""
_ROOT: Final = Path(__file__).resolve().parent.parent
_CORPUS: Final = "tests/corpus"
_SAMPLES: Final = (
    *("sample_binaries/*/*.so", "sample_binaries/*/*.o", "sample_binaries/condor_shadow/base*"),
    *("sample_binaries/unused_library/shadow", "sample_binaries/heap_by_function/heap"),
)
_HEAP: Final = f"{_CORPUS}/heap"

_PATTERNS: Final = {
    "elf": _SAMPLES,
    "program": _SAMPLES,
    "dwarf": ("sample_binaries/declared_in_header/*.so", "sample_binaries/declared_in_header/*.o"),
    "archive": ("sample_binaries/*/*.a",),
    "linker_map": (f"{_CORPUS}/linker_maps/*.map",),
    "loader_configuration": ("fuzz/files/system/etc/ld.so.conf",),
    "maps": (f"{_CORPUS}/maps-*",),
    "smaps": (f"{_CORPUS}/smaps-*", f"{_CORPUS}/smaps_rollup-*", "tests/cases/damaged/*.smaps"),
    "pmap": (f"{_CORPUS}/pmap-*", "tests/cases/condor_shadow/pmap*"),
    "kernel_texts": (f"{_CORPUS}/status-*",),
    "heap_massif": (f"{_HEAP}/massif-*",),
    "heap_dhat": (f"{_HEAP}/dhat-*",),
    "heap_heaptrack": (f"{_HEAP}/heaptrack-*",),
    "heap_go": (f"{_HEAP}/heapprofile-go*",),
    "heap_gperftools": (f"{_HEAP}/heapprofile-gperftools*",),
    "heap_jemalloc": (f"{_HEAP}/heapprofile-jemalloc*",),
    "heap_pprof": (f"{_HEAP}/pprof-*",),
    "heap_v8": (f"{_HEAP}/v8-*",),
    "heap_mtrace": (f"{_HEAP}/mtrace-*",),
    "heap_malloc_info": (f"{_HEAP}/malloc_info-*",),
    "heap_nmt": (f"{_HEAP}/nmt-*",),
    "heap_leaksanitizer": (f"{_HEAP}/leaksanitizer-*",),
}
_NAMES: Final = b"""_ZN4node6Buffer3NewEPN2v87IsolateEm
_ZZ4mainE5calls.constprop.0
_ZGVZN3foo3barEvE1x
_ZNSt6vectorIiSaIiEE9push_backERKi@@GLIBCXX_3.4
_RNvCs1234_7mycrate3foo
_D3std5stdio4File6__ctorMFNcNeAyaxAaZSQBkQBjQBg
$s4main3fooyyF
table.lto_priv.3.llvm.1234"""
_KERNEL: Final = (
    b"4711 (a (b) c) S 1 4711 4711 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 12345 1000 10 18446744073709551615\n",
    b"28 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n35 28 0:30 / /x rw - cgroup cgroup rw,memory\n",
    b"0::/user.slice/session-1.scope\n4:memory:/docker/0123456789ab\n",
    b"pos:\t0\nflags:\t02\ninotify wd:1 ino:2 sdev:3\ntfd: 5 events: 1 data: 5\nSqMask: 0x7f\nCqMask: 0xff\n",
)


def seeds(name: str) -> Iterator[bytes]:
    """Return the inputs that a target begins with, none of them large."""
    places = (*_PATTERNS.get(name, ()), f"fuzz/seeds/{name}/*", f"fuzz/regressions/{name}/*")
    paths = (path for pattern in places for path in sorted(_ROOT.glob(pattern)) if path.is_file())
    found = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in paths)
    for data in (*found, *_WRITERS.get(name, lambda: ())()):
        is_text = b"\0" not in data[:4096]
        if is_text and not data.startswith((b"{", b"[")):
            yield from dict.fromkeys(data[:most_bytes] for most_bytes in _TEXT_BYTES)
        elif len(data) <= LARGEST_BYTES:
            yield data


def write_seeds(name: str, folder: Path) -> None:
    """Write the inputs that a target begins with to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(data)


def _elf() -> Iterator[bytes]:
    for kind in KINDS:
        yield small(kind)
    yield stripped(mini(debug()))


def _archives() -> Iterator[bytes]:
    members = [
        ("a.o", small(next(iter(KINDS)))),
        ("a name that is longer than sixteen.o", b"\x7fELF"),
        ("b.o", b"text"),
    ]
    yield archive(members)
    yield archive(members, bsd=True)
    yield archive(members, thin=True)


def _caches() -> Iterator[bytes]:
    new = loader_cache([("libc.so", "/c/libc.so", 0x0303), ("libb.so", "/c/libb.so", 0x0803, 1 << 62)], ["x86-64-v3"])
    yield new
    yield loader_cache([("libc.so", "/c/libc.so", 0x0303)], order=">")
    yield old_loader_cache([("libb.so", "/c/libb.so", 0x0303)], new)


def _process_heaps() -> Iterator[bytes]:
    """Write the pages of a process, each behind its address, that of libc's data first."""
    for word in (8, 4):
        written = HeapWriter(word)
        chunks = [Chunk(64), Chunk(48, "binned"), Chunk(32), Chunk(96, "fast"), Chunk(64, "cached")]
        arena = written.thread_heaps(chunks, [Chunk(64), Chunk(32)])
        written.main_heap(*chunks, Chunk(32), next_addr=arena)
        libc = written.data_addr >> 12
        numbers = sorted(written.memory.pages, key=lambda number: (number != libc, number))
        yield b"".join((number << 12).to_bytes(8, "little") + written.memory.pages[number] for number in numbers)


def _audits() -> Iterator[bytes]:
    program = str(_ROOT / "sample_binaries/two_symbols_at_one_address/two_symbols_at_one_address.so")
    yield audit_json(footprint.audit(program, has_findings=True, is_reproducible=True), "1.0").encode()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "smaps"
        text.write_bytes(SMAPS)
        yield audit_json(footprint.audit(text), "1.0").encode()


def _series() -> Iterator[bytes]:
    audits = list(_audits())
    kept = [one._replace(packed=packed(audits[-1].decode())) if isinstance(one, AuditKept) else one for one in EVERY]
    yield b"".join(map(line_of, kept))


def _budgets() -> Iterator[bytes]:
    yield propose(footprint.audit(str(_ROOT / "sample_binaries/unused_library/shadow"))).encode()


def _histories() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        found = footprint.audit(str(_ROOT / "sample_binaries/unused_library/shadow"))
        for version in ("1.0", "1.1"):
            footprint.record(found, path, version=version)
        yield path.read_bytes()


def _container_images() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        layers = layer(("lib/a.so", ELF), ("b", "-> lib")), layer(("lib/.wh.a.so", b""), ("c", ELF), ("d", "= c"))
        yield docker_save(Path(folder) / "image.tar", *layers).read_bytes()


_WRITERS: Final[dict[str, Callable[[], Iterator[bytes]]]] = {
    "elf": _elf,
    "program": _elf,
    "dwarf": lambda: iter(DWARF_FILES.values()),
    "debug_file": lambda: iter([debug()]),
    "archive": _archives,
    "loader_cache": _caches,
    "capture": lambda: iter([sound()]),
    "container_image": _container_images,
    "package": lambda: iter(PACKAGES.values()),
    "kernel_texts": lambda: iter(_KERNEL),
    "process_heap": _process_heaps,
    "saved_audit": _audits,
    "series": _series,
    "budgets": _budgets,
    "history": _histories,
    "names": lambda: iter([_NAMES]),
}
"""The seeds that a target has besides those of files."""

if __name__ == "__main__":
    for target in TARGETS:
        write_seeds(target, Path(sys.argv[1]) / target)
