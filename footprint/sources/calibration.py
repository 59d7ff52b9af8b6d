"""What this kernel spends on its objects: as `kernel_calibration` measured it, kept in a file, read by every audit.

The sizes of kernel objects, as the slab caches have them; root may read them, and on old kernels everybody.

Source: mm/slub.c (`/sys/kernel/slab`) and mm/slab_common.c (`/proc/slabinfo`) of Linux 2.6.22 to 6.18.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from footprint.attribution.kernel import KernelConstants, ObjectSizes, built_in_constants
from footprint.errors import AccessError, Note
from footprint.model.row import Evidence
from footprint.text.units import decimal

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
    usual = uncalibrated(kernel, machine, page_bytes)
    path = kept_path(_FILE)
    try:
        stored = read_kept(path, _TABLE).get(f"{kernel} {machine}")
        return usual if stored is None else _from_fields(usual, stored)
    except (OSError, ValueError) as error:
        detail = f"{error}: the built-in constants are used; `footprint doctor --calibrate` writes a new file"
        return usual._replace(notes=(Note("calibration-unreadable", path, detail),))


def uncalibrated(kernel: str, machine: str, page_bytes: int = 4096) -> KernelConstants:
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


def _from_fields(usual: KernelConstants, stored: object) -> KernelConstants:
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
    return usual._replace(
        **sizes, evidence=Evidence.DERIVED, origin="calibrated on this kernel", open_file_bytes=open_files
    )


def keep_constants(kernel: str, machine: str, sizes: Mapping[str, Any]) -> KernelConstants:
    """Keep what a kernel spends on its objects, as measured, and return it as it is loaded from now on.

    Raises:
        AccessError: Where it cannot be kept.
    """
    keep(kept_path(_FILE), _TABLE, {f"{kernel} {machine}": dict(sizes)})
    return load_constants(kernel, machine)
