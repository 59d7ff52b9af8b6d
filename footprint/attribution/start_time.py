"""The processor time that an object takes at start, estimated from what the loader does for it.

The built-in prices were fitted to the processor time from execve(2) to the entry point of 240 programs of Debian 12
(x86-64, glibc 2.36, 3 to 60 objects, 0.4 to 13 ms, Linux 6.18 in a virtual machine on an EPYC): they explain 97 % of
its variance. Another machine has other prices: `doctor --calibrate` fits them.
"""

import re
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Annotated, Final

from footprint.attribution.object_prediction import ObjectPrediction, count_pages
from footprint.loader.target import Libc
from footprint.members import NamedTuple, Pattern, json_members

if TYPE_CHECKING:
    from footprint.loader.link_map import LinkMap
    from footprint.loader.start_cost import StartCost


@json_members("loader_ns object_ns page_ns relocation_ns lookup_ns asked_ns failed_open_ns origin system is_compared")
class StartPrices(NamedTuple):
    """What the loader and the kernel need at start, in nanoseconds.

    Attributes:
        loader_ns: For the process and the loader itself.
        object_ns: For each object: to open its file and to map it.
        page_ns: For each page that is written.
        relocation_ns: For each relocation without a lookup.
        lookup_ns: For each lookup of a symbol.
        asked_ns: For each object that a lookup asks.
        failed_open_ns: For each file that is tried and not there.
        origin: Where they are from: `built in`, or `calibrated on this machine`.
        system: The processor and the C library of the programs that they were fitted to.
        is_compared: Whether the program is of that system: else nobody compared what they say of it.
    """

    loader_ns: int
    object_ns: int
    page_ns: int
    relocation_ns: int
    lookup_ns: int
    asked_ns: int
    failed_open_ns: int
    origin: Annotated[str, Pattern("^(built in|calibrated on this machine)$")]
    system: str
    is_compared: bool = True

    @property
    def each_ns(self) -> tuple[int, ...]:
        """Return the prices alone, in the order of `start_work`."""
        loader, file, page, relocation, lookup, asked, failed_open, *_ = self
        return loader, file, page, relocation, lookup, asked, failed_open


PRICE_COUNT: Final = 7
CALIBRATED: Final = "calibrated on this machine"
_BUILT_IN: Final = StartPrices(230_000, 38_000, 1_430, 10, 89, 15, 2_000, "built in", "x86-64, glibc 2.36")
# In hundredths: fitted to 573 programs of Debian 12 and 14 (Linux 6.18), each started three times.
_LOADER_FAULTS: Final = 1_335
_OBJECT_FAULTS: Final = 218
_PAGE_FAULTS: Final = 99
_WINDOW_FAULTS: Final = 133
_CONSTRUCTOR_FAULTS: Final = 333
# For each 4 KiB of the code of constructors: it is read, and writes as much as it is long, or more.
_CODE_FAULTS: Final = 540
_CODE_BYTES: Final = 1 << 12
# Where a page of a file is read, the kernel maps those around it that are in the page cache: of 16 pages that begin at
# any place (fault_around_bytes). It places files at random.
_WINDOW_PAGES: Final = 16
# Of the compiler's start-up files.
_USUAL_INITIALISERS: Final = 2
_MACHINES: Final = {3: "i386", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86-64", 183: "arm64", 243: "riscv64"}
# As the C library prints it where it is run by itself.
_RELEASE: Final = re.compile(rb"stable release version ([0-9]{1,4}\.[0-9]{1,4})")


def built_in_prices(system: str) -> StartPrices:
    """Return the built-in prices for programs of a system, as `start_system` names it."""
    return _BUILT_IN._replace(is_compared=system == _BUILT_IN.system)


def calibrated_prices(each_ns: Sequence[int], system: str) -> StartPrices:
    """Return the prices that were fitted to programs of a system on this machine, in the order of `start_work`."""
    loader, file, page, relocation, lookup, asked, failed_open = each_ns
    return StartPrices(loader, file, page, relocation, lookup, asked, failed_open, CALIBRATED, system)


def start_system(link_map: "LinkMap") -> str:
    """Return the processor and the C library of a program, such as `x86-64, glibc 2.36`."""
    objects = [linked.library for linked in link_map.objects]
    machine = objects[0].kind.machine
    name = _MACHINES.get(machine, f"machine {machine}")
    if link_map.libc is not Libc.GLIBC:
        return f"{name}, {link_map.libc.value}"
    libc = next((library.image for library in objects if (library.linkage.soname or "").startswith("libc.so.")), None)
    version = libc and _RELEASE.search(libc.data)
    return f"{name}, glibc {version[1].decode()}" if version else f"{name}, glibc"


def start_work(cost: "StartCost | None", prediction: ObjectPrediction | None) -> tuple[int, ...]:
    """Count for one object what has a price, in the order of `StartPrices`; all 0 for what is not there."""
    if cost is None or prediction is None:
        return (0,) * PRICE_COUNT
    return (
        int(cost.is_loader),
        int(not cost.is_loader),
        count_pages(prediction.startup_min) + prediction.assumed_pages,
        cost.relocation_count + (cost.repeated_count or 0),
        cost.lookup_count or 0,
        cost.asked_count or 0,
        sum([failed_open.file_count for failed_open in cost.failed_opens]),
    )


def start_us(work: tuple[int, ...], prices: StartPrices) -> int:
    """Estimate the processor time that work takes at start, in microseconds."""
    total_ns: int = sum(map(mul, work, prices.each_ns))
    return total_ns // 1000


def start_page_faults(cost: "StartCost | None", prediction: ObjectPrediction | None) -> int:
    """Estimate the page faults for one object up to the entry point; 0 for what is not there.

    Written pages, tables that are read, code, what constructors write, and for the loader the stack and its heap.
    """
    if cost is None or prediction is None:
        return 0
    pages = count_pages(prediction.startup_min) + prediction.assumed_pages
    table_pages = cost.table_page_count or 0
    windows = (table_pages + _WINDOW_PAGES - 1) * _WINDOW_FAULTS // _WINDOW_PAGES
    return (
        _LOADER_FAULTS * cost.is_loader
        + _OBJECT_FAULTS
        + _PAGE_FAULTS * pages
        + windows * bool(table_pages)
        + _CONSTRUCTOR_FAULTS * ((cost.initialiser_count or 0) > _USUAL_INITIALISERS)
        + _CODE_FAULTS * (cost.initialiser_bytes or 0) // _CODE_BYTES
        + 50
    ) // 100
