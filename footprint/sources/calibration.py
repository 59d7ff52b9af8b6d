"""What this kernel spends on its objects: measured once, kept in a file, and read by every audit.

The sizes of kernel objects, as the slab caches have them; root may read them, and on old kernels everybody.

Source: mm/slub.c (`/sys/kernel/slab`) and mm/slab_common.c (`/proc/slabinfo`) of Linux 2.6.22 to 6.18.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from footprint.attribution.kernel import KernelConstants, ObjectSizes, built_in_constants, count_objects
from footprint.errors import AccessError, Note
from footprint.members import NamedTuple
from footprint.model.row import Evidence
from footprint.process.snapshot import read_process
from footprint.text.units import decimal

if TYPE_CHECKING:
    from footprint.process.cgroup import Launcher, MemoryGroup

MOST_BYTES: Final = 1 << 20
_FORMAT: Final = 1


def kept_path(name: str) -> str:
    """Return the path of a kept file, by the XDG Base Directory Specification."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "footprint", name)


def read_kept(path: str, table: str) -> dict[str, Any]:
    """Read the entries of a file; none where there is no file.

    Raises:
        OSError: Where the file cannot be read.
        ValueError: Where it is not what we write.
    """
    if not os.path.exists(path):
        return {}
    import json  # noqa: PLC0415 # most hosts are not calibrated

    with open(path, "rb") as file:
        text = file.read(MOST_BYTES)
    try:
        entries = json.loads(text)[table]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError("it is not a calibration of footprint") from error
    if not isinstance(entries, dict):
        raise ValueError("it is not a calibration of footprint")  # noqa: TRY004 # the file's fault, not a caller's
    return entries


def keep(path: str, table: str, added: Mapping[str, dict[str, Any]]) -> None:
    """Keep entries by their keys, beside those of other keys; the file is there whole or not at all.

    Raises:
        AccessError: Where it cannot be written.
    """
    import json  # noqa: PLC0415 # only calibrating needs it

    try:
        entries = read_kept(path, table)
    except (OSError, ValueError):
        entries = {}
    entries.update(added)
    text = json.dumps({"format": _FORMAT, table: entries}, indent=2, sort_keys=True) + "\n"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        from footprint.system.whole_file import whole_file  # noqa: PLC0415 # most read what was measured before

        with whole_file(path, mode=0o600) as file:
            file.write(text.encode("ascii"))
    except OSError as error:
        raise AccessError(path, f"the calibration cannot be stored: {error.strerror}") from error


_MOST_TEXT_BYTES = 1 << 20


def read_slab_sizes(names: Sequence[str], root: str = "/") -> dict[str, int]:
    """Read what an object of each cache takes, with its alignment; nothing for caches that are not there.

    A cache that was merged with another is still in /sys under its own name; /proc/slabinfo has only one of the names.
    """
    sizes: dict[str, int] = {}
    for name in names:
        with suppress(OSError), open(os.path.join(root, "sys/kernel/slab", name, "slab_size"), "rb") as file:
            sizes[name] = decimal(file.read(32).strip()) or 0
    if not sizes:
        with suppress(OSError), open(os.path.join(root, "proc/slabinfo"), "rb") as file:
            rows = [line.split() for line in file.read(_MOST_TEXT_BYTES).split(b"\n")]
            listed = {os.fsdecode(row[0]): decimal(row[3]) or 0 for row in rows if len(row) > 3}
            sizes = {name: listed.get(name, 0) for name in names}
    return {name: size_bytes for name, size_bytes in sizes.items() if size_bytes}


_FILE: Final = "kernel.json"
_TABLE: Final = "kernels"
_MOST_KINDS: Final = 100
_CPU_TEXT_BYTES: Final = 4096
_OLD_CREDENTIALS: Final = "cred_jar"  # until Linux 6.7
_FIELDS: Final = ("stack_bytes", "process_bytes", "thread_bytes", "mapping_bytes", "written_bytes", "file_bytes")


# --- the file ---------------------------------------------------------------------------------------------------------


def load_constants(kernel: str, machine: str, page_bytes: int = 4096) -> KernelConstants:
    """Return what a kernel spends on its objects: as calibrated, else as built in; damage is a note."""
    built_in = _built_in(kernel, machine, page_bytes)
    path = kept_path(_FILE)
    try:
        stored = read_kept(path, _TABLE).get(f"{kernel} {machine}")
        return built_in if stored is None else _from_fields(built_in, stored)
    except (OSError, ValueError) as error:
        detail = f"{error}: the built-in constants are used; `footprint doctor --calibrate` writes a new file"
        return built_in._replace(notes=(Note("calibration-unreadable", path, detail),))


def _built_in(kernel: str, machine: str, page_bytes: int = 4096) -> KernelConstants:
    """Return constants without a measurement; of the running kernel they are those of its caches and processors."""
    system = os.uname()
    if (kernel, machine) != (system.release, system.machine):
        return built_in_constants(kernel, machine, page_bytes=page_bytes)
    is_isolated = "PTI" in _text("/sys/devices/system/cpu/vulnerabilities/meltdown")
    last_cpu = re.search(r"(\d+)\s*$", _text("/sys/devices/system/cpu/possible"))
    cpu_count = int(last_cpu.group(1)) + 1 if last_cpu else os.cpu_count()
    sizes = _object_sizes()
    # The first processor stands for all.
    flags = "" if sizes else _text("/proc/cpuinfo", _CPU_TEXT_BYTES)
    return built_in_constants(
        kernel,
        machine,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        cpu_count=cpu_count,
        is_isolated=is_isolated,
        has_avx512=" avx512f" in flags or " avx " not in flags,
        sizes=sizes,
    )


@cache
def _object_sizes() -> ObjectSizes | None:
    """Read the sizes of the objects of the running kernel; None where it does not tell all of them."""
    sizes = read_slab_sizes((*ObjectSizes._fields, _OLD_CREDENTIALS))
    if _OLD_CREDENTIALS in sizes:
        sizes["cred"] = sizes.pop(_OLD_CREDENTIALS)
    try:
        return ObjectSizes(**sizes)
    except TypeError:
        return None


def _text(path: str, most_chars: int = -1) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(most_chars)
    except OSError:
        return ""


def _from_fields(built_in: KernelConstants, stored: object) -> KernelConstants:
    sizes: dict[str, Any] = {}
    for field in _FIELDS:
        size = stored.get(field) if isinstance(stored, dict) else None
        if type(size) is not int or not 0 < size < MOST_BYTES:
            raise ValueError(f"its {field} is not a size")
        sizes[field] = size
    open_files = stored.get("open_file_bytes", {}) if isinstance(stored, dict) else {}
    if not isinstance(open_files, dict) or len(open_files) > _MOST_KINDS:
        raise ValueError("its open_file_bytes is no table")  # the file's fault, not a caller's
    for kind, size in open_files.items():
        if type(size) is not int or not 0 < size < MOST_BYTES:
            raise ValueError(f"its open_file_bytes of {kind!r} is no size")
    return built_in._replace(
        **sizes, evidence=Evidence.DERIVED, origin="calibrated on this kernel", open_file_bytes=open_files
    )


def _with_sizes(constants: KernelConstants, sizes: dict[str, Any]) -> KernelConstants:
    return constants._replace(**sizes)


# --- the measurement --------------------------------------------------------------------------------------------------

_PATIENCE_SECONDS: Final = 60.0
# A measured size is of the order of the one that is known, and children cost the same in the end as at first.
_MOST_FACTOR: Final = 2.0
_SAME: Final = 0.03
# A child with threads, mappings (every other one writable, and written where asked) and open files; then it blocks a
# signal, which `await_ready` waits for. It ends by itself.
_CHILD: Final = """
import _thread, mmap, os, sys, time
threads, mappings, is_written, files = map(int, sys.argv[1:])
_thread.stack_size(65536)
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(files)]
for number in range(mappings):
    access = mmap.PROT_READ if number % 2 else mmap.PROT_READ | mmap.PROT_WRITE
    kept.append(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, access))
    if is_written and not number % 2:
        kept[-1][0] = 1
for _ in range(threads):
    _thread.start_new_thread(time.sleep, (1200,))
import _signal
_signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGUSR2})
time.sleep(1200)
"""
# Few enough that the table of open files, of 64 entries at first, need not grow.
_FILES: Final = 50


class _Mean(NamedTuple):
    """What children of one kind are made of on average, and what kernel memory beside page tables they cost."""

    objects_bytes: float
    threads: float
    mappings: float
    written: float
    files: float


def calibrate() -> KernelConstants:
    """Measure what this kernel spends on its objects, with small children in a memory cgroup, and keep it.

    It takes some 30 seconds, and 600 MB meanwhile.

    Raises:
        AccessError: Where no group can be made, kernel memory is not accounted, or the result cannot be kept.
    """
    from footprint.process.cgroup import Launcher, make_group  # noqa: PLC0415 # an audit only loads
    from footprint.sources.open_file_calibration import measure_open_files  # noqa: PLC0415 # the same

    system = os.uname()
    with make_group() as group, Launcher(group) as launcher:

        def mean(count: int, threads: int = 0, mappings: int = 0, files: int = 0, *, is_written: bool = False) -> _Mean:
            words = [str(number) for number in (threads, mappings, int(is_written), files)]
            return _mean(group, launcher, [sys.executable, "-ISc", _CHILD, *words], count)

        mean(2)  # what comes first is charged with files, too
        first = mean(48)
        sizes = _solve(
            first,
            mean(24, threads=1),
            mean(8, threads=17),
            mean(12, mappings=400),
            mean(12, mappings=400, is_written=True),
            mean(24, files=_FILES),
            stack_bytes=_built_in(system.release, system.machine).stack_bytes,
        )
        constants = _built_in(system.release, system.machine)
        _check(sizes, constants, first, mean(24))
        open_files = measure_open_files(group, launcher, _with_sizes(constants, sizes))
    entry = {**sizes, "open_file_bytes": open_files}
    keep(kept_path(_FILE), _TABLE, {f"{system.release} {system.machine}": entry})
    return load_constants(system.release, system.machine)


def _check(sizes: dict[str, int], constants: KernelConstants, first: _Mean, last: _Mean) -> None:
    """Check measured sizes against those that are known, and the last children against the first.

    Raises:
        AccessError: Where one does not hold: then none does.
    """
    if first.objects_bytes <= 0:
        cause = "kernel memory is not accounted in it (cgroup.memory=nokmem, or Linux before 4.5)"
        raise AccessError("memory cgroup", cause)
    odd = [
        f"{name} {size:,} where about {getattr(constants, name):,} is usual"
        for name, size in sizes.items()
        if not getattr(constants, name) / _MOST_FACTOR <= size <= getattr(constants, name) * _MOST_FACTOR
    ]
    if abs(last.objects_bytes - first.objects_bytes) > _SAME * first.objects_bytes:
        odd.append(f"a process {first.objects_bytes:,.0f} at first and {last.objects_bytes:,.0f} in the end")
    if odd:
        cause = f"the measurement does not hold ({'; '.join(odd)} B): nothing is kept; try again when less runs"
        raise AccessError("memory cgroup", cause)


def _mean(group: "MemoryGroup", launcher: "Launcher", command: Sequence[str], count: int) -> _Mean:
    """Start children of a kind, and see what they are made of, and what the group grew by."""
    from statistics import fmean  # noqa: PLC0415 # an audit only loads

    from footprint.process.cgroup import await_ready  # noqa: PLC0415 # the same

    before = group.usage()
    pids = launcher.start(command, count)
    await_ready(pids)
    # What matters here is a counter in version 1, and one of the sums that come late in version 2.
    after = group.settled(_PATIENCE_SECONDS, still_seconds=0.5 if group.version == 1 else 2.2)
    snapshots = [read_process(pid) for pid in pids]
    objects = [count_objects(snapshot.memory.mappings) for snapshot in snapshots]
    statuses = [snapshot.status for snapshot in snapshots if snapshot.status is not None]
    page_table_bytes = fmean(status.page_table_bytes or 0 for status in statuses)
    descriptors = fmean(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids) - 3  # those it was given are the launcher's
    return _Mean(
        (after.kernel_bytes - before.kernel_bytes) / count - page_table_bytes,
        fmean(status.thread_count or 1 for status in statuses),
        fmean(mean.mapping_count for mean in objects),
        fmean(mean.written_count for mean in objects),
        fmean(mean.file_count for mean in objects) + descriptors,
    )


def _solve(
    plain: _Mean, two: _Mean, many: _Mean, mapped: _Mean, written: _Mean, opened: _Mean, *, stack_bytes: int
) -> dict[str, int]:
    """Find the size of each thing, one after the other, each from two kinds of children that differ by little else."""
    mapping = (mapped.objects_bytes - plain.objects_bytes) / (mapped.mappings - plain.mappings)

    def more(kind: _Mean, than: _Mean) -> float:
        """Return by how much one kind costs more than another, without their mappings."""
        return kind.objects_bytes - than.objects_bytes - mapping * (kind.mappings - than.mappings)

    reverse_map = more(written, plain) / (written.written - plain.written)
    file = more(opened, plain) / (opened.files - plain.files)
    # The first thread that is started costs something once: the C library looks around in /proc.
    thread = (more(many, two) - reverse_map * (many.written - two.written)) / (many.threads - two.threads)
    rest = thread * plain.threads + mapping * plain.mappings + reverse_map * plain.written + file * plain.files
    return {
        "stack_bytes": stack_bytes,
        "process_bytes": round(plain.objects_bytes - rest),
        "thread_bytes": round(thread) - stack_bytes,
        "mapping_bytes": round(mapping),
        "written_bytes": round(reverse_map),
        "file_bytes": round(file),
    }
