"""What this kernel spends on its objects: measured once, kept in a file, and read by every audit."""

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from footprint.attribution.kernel import KernelConstants, built_in_constants, count_objects
from footprint.errors import AccessError, Note
from footprint.model.evidence import Evidence
from footprint.process import read_process
from footprint.sources.measurement_cache import MOST_BYTES, keep, kept_path, read_kept

if TYPE_CHECKING:
    from footprint.process.cgroup import Launcher, MemoryGroup

__all__ = ("calibrate", "load_constants")

_FILE: Final = "kernel.json"
_TABLE: Final = "kernels"
_MOST_KINDS: Final = 100
_FIELDS: Final = ("stack_bytes", "process_bytes", "thread_bytes", "mapping_bytes", "written_bytes", "file_bytes")


# --- the file ---------------------------------------------------------------------------------------------------------


def load_constants(kernel: str, machine: str) -> KernelConstants:
    """Return what a kernel spends on its objects: as calibrated, else as built in; damage is a note."""
    built_in = _built_in(kernel, machine)
    path = kept_path(_FILE)
    try:
        stored = read_kept(path, _TABLE).get(f"{kernel} {machine}")
        return built_in if stored is None else _from_fields(built_in, stored)
    except (OSError, ValueError) as error:
        detail = f"{error}: the built-in constants are used; `footprint doctor --calibrate` writes a new file"
        return built_in._replace(notes=(Note("calibration-unreadable", path, detail),))


def _built_in(kernel: str, machine: str) -> KernelConstants:
    """Return the built-in constants; those that depend on CPUs are known for the running kernel only."""
    system = os.uname()
    if (kernel, machine) != (system.release, system.machine):
        return built_in_constants(kernel, machine)
    is_isolated = "PTI" in _text("/sys/devices/system/cpu/vulnerabilities/meltdown")
    last_cpu = re.search(r"(\d+)\s*$", _text("/sys/devices/system/cpu/possible"))
    cpu_count = int(last_cpu.group(1)) + 1 if last_cpu else os.cpu_count()
    return built_in_constants(kernel, machine, cpu_count=cpu_count, is_isolated=is_isolated)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
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

_PATIENCE_SECONDS: Final = 10.0
# A child with threads, mappings (every other one writable, and written where asked) and open files; it ends by itself.
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
    _thread.start_new_thread(time.sleep, (120,))
time.sleep(120)
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
        sizes = _solve(
            mean(48),
            mean(24, threads=1),
            mean(8, threads=17),
            mean(12, mappings=400),
            mean(12, mappings=400, is_written=True),
            mean(24, files=_FILES),
            stack_bytes=_built_in(system.release, system.machine).stack_bytes,
        )
        measured = _with_sizes(_built_in(system.release, system.machine), sizes)
        open_files = measure_open_files(group, launcher, measured) if all(size > 0 for size in sizes.values()) else {}
    if not all(0 < size < MOST_BYTES for size in sizes.values()):
        cause = "kernel memory is not accounted in it (cgroup.memory=nokmem, or Linux before 4.5)"
        raise AccessError("memory cgroup", cause)
    entry = {**sizes, "open_file_bytes": open_files}
    keep(kept_path(_FILE), _TABLE, {f"{system.release} {system.machine}": entry})
    return load_constants(system.release, system.machine)


def _mean(group: "MemoryGroup", launcher: "Launcher", command: Sequence[str], count: int) -> _Mean:
    """Start children of a kind, and see what they are made of, and what the group grew by."""
    from statistics import fmean  # noqa: PLC0415 # an audit only loads

    before = group.usage()
    pids = launcher.start(command, count)
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
        fmean(one.mapping_count for one in objects),
        fmean(one.written_count for one in objects),
        fmean(one.file_count for one in objects) + descriptors,
    )


def _solve(
    plain: _Mean, one: _Mean, many: _Mean, mapped: _Mean, written: _Mean, opened: _Mean, *, stack_bytes: int
) -> dict[str, int]:
    """Find the size of each thing, one after the other, each from two kinds of children that differ by little else."""
    mapping = (mapped.objects_bytes - plain.objects_bytes) / (mapped.mappings - plain.mappings)

    def more(kind: _Mean, than: _Mean) -> float:
        """Return by how much one kind costs more than another, without their mappings."""
        return kind.objects_bytes - than.objects_bytes - mapping * (kind.mappings - than.mappings)

    reverse_map = more(written, plain) / (written.written - plain.written)
    file = more(opened, plain) / (opened.files - plain.files)
    # The first thread that is started costs something once: the C library looks around in /proc.
    thread = (more(many, one) - reverse_map * (many.written - one.written)) / (many.threads - one.threads)
    rest = thread * plain.threads + mapping * plain.mappings + reverse_map * plain.written + file * plain.files
    return {
        "stack_bytes": stack_bytes,
        "process_bytes": round(plain.objects_bytes - rest),
        "thread_bytes": round(thread) - stack_bytes,
        "mapping_bytes": round(mapping),
        "written_bytes": round(reverse_map),
        "file_bytes": round(file),
    }
