"""Where and when processes were captured: what a host says of itself, and the cgroup of a process of who started it."""

import os
import re
import stat
import time
from contextlib import suppress
from typing import Annotated, Final

from footprint.members import LATER, NamedTuple
from footprint.system.roots import open_path

_MEMORY: Final = re.compile(r"^(MemTotal|MemAvailable):? +(\d{1,15})(?: kB)?$", re.MULTILINE)
_MOST_MEMINFO_BYTES: Final = 1 << 16
_UNIT: Final = re.compile(r"/([^/\n]+\.(?:service|scope))(?=/|$)", re.MULTILINE)
_CONTAINER: Final = re.compile(r"[0-9a-f]{64}")
_POD: Final = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
# Podman writes it into each container.
_IMAGE: Final = re.compile(r'^image="([^"\n]+)"$', re.MULTILINE)
_MOST_TEXT_BYTES: Final = 1 << 16
_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"


class CaptureHost(NamedTuple):
    """The host of a capture at its moment.

    Attributes:
        captured_at: When, in UTC: 2026-11-27T19:40:00Z.
        name: Its name; None with `--anonymous`.
        booted_at: When it was started, in UTC.
        memory_bytes: All of its memory (MemTotal).
        available_bytes: What further processes could have (MemAvailable).
        processor_count: The number of its processors.
    """

    captured_at: Annotated[str | None, LATER] = None
    name: Annotated[str | None, LATER] = None
    booted_at: Annotated[str | None, LATER] = None
    memory_bytes: Annotated[int | None, LATER] = None
    available_bytes: Annotated[int | None, LATER] = None
    processor_count: Annotated[int | None, LATER] = None


class Placement(NamedTuple):
    """Who runs a process, as far as its cgroup and its container tell.

    Attributes:
        unit: Its unit of systemd.
        container: The ID of its container.
        pod: The UID of its pod of Kubernetes.
        image: The name of the image of its container, where podman started it.
    """

    unit: Annotated[str | None, LATER] = None
    container: Annotated[str | None, LATER] = None
    pod: Annotated[str | None, LATER] = None
    image: Annotated[str | None, LATER] = None


def read_capture_host(*, is_anonymous: bool) -> CaptureHost:
    """Read what this machine says of itself now."""
    memory, available = read_memory("/proc/meminfo")
    booted_at = time.strftime(_FORM, time.gmtime(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)))
    name = None if is_anonymous else os.uname().nodename
    return CaptureHost(time.strftime(_FORM, time.gmtime()), name, booted_at, memory, available, os.cpu_count())


def read_memory(path: str) -> tuple[int | None, int | None]:
    """Read MemTotal and MemAvailable of a file as /proc/meminfo, in bytes; None where it has none."""
    return memory_in(_read(path, _MOST_MEMINFO_BYTES))


def memory_in(text: str) -> tuple[int | None, int | None]:
    """Find MemTotal and MemAvailable in a text as /proc/meminfo, in bytes; None where it has none."""
    sizes = {name: int(number) << 10 for name, number in _MEMORY.findall(text)}
    return sizes.get("MemTotal"), sizes.get("MemAvailable")


def read_placement(pid: int) -> Placement:
    """Read who runs a live process; nothing is known of one that has ended."""
    placement = placement_in(_read(f"/proc/{pid}/cgroup", _MOST_TEXT_BYTES))
    image = _IMAGE.search(_read(f"/proc/{pid}/root/run/.containerenv", _MOST_TEXT_BYTES))
    return placement._replace(image=image[1] if image else None)


def placement_in(cgroups: str) -> Placement:
    """Find who runs a process in the text of /proc/PID/cgroup: names of systemd, container runtimes and Kubernetes."""
    units = _UNIT.findall(cgroups)
    container, pod = _CONTAINER.search(cgroups), _POD.search(cgroups)
    return Placement(units[-1] if units else None, container and container[0], pod and pod[1].replace("_", "-"))


def _read(path: str, most_bytes: int) -> str:
    # In a container anything may stand there: a link may lead out of its root, and a pipe would wait for its writer.
    with suppress(OSError), open(path, "rb", opener=_without_waiting) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read(most_bytes).decode("utf-8", "replace")
    return ""


def _without_waiting(path: str, flags: int) -> int:
    return open_path(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
