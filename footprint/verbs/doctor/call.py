"""`footprint.doctor`: what this host lets us read, and what the kernel spends on a process; its JSON and report."""

import errno
import fcntl
import os
import re
import struct
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from footprint.attribution.kernel import KernelConstants
from footprint.attribution.start_time import CALIBRATED
from footprint.elf.image import read_image
from footprint.errors import AccessError, FootprintError, Note
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.loader.target import Environment
from footprint.members import dataclass
from footprint.model.row import Evidence
from footprint.process.pages import has_exclusive_bit
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_FOLDER
from footprint.sources.demanglers import TOOLS, find_tool
from footprint.sources.programs import Programs
from footprint.sources.startup_write_calibration import load_constructors, load_libc_start, own_libc
from footprint.system.files import open_input
from footprint.text.units import counted, format_bytes

_AS_ROOT: Final = "be root, or have CAP_SYS_PTRACE"
_PAGEMAP_SCAN: Final = 0xC0606610  # _IOWR('f', 16, struct pm_scan_arg)
_CAP_SYS_PTRACE: Final = 19
_MOST_TRIES: Final = 2000
_PEERS: Final = (("pmap", "to compare with"), ("valgrind", "to make heap profiles"), ("gdb", "to look further"))
# The checks that decide what can be known, the most important first.
_DECISIVE: Final = ("page bits", "CAP_SYS_PTRACE", "memory cgroup", "calibration", "constructors", "debug files")


class State(StrEnum):
    """How a check went."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """One thing that decides what footprint can answer here.

    Attributes:
        name: What was looked at.
        state: How it is.
        meaning: What that means for the answers.
        cure: What to do about it; None where nothing needs to be done.
    """

    name: str
    state: State
    meaning: str
    cure: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What this host lets us read.

    Attributes:
        host: Kernel and machine.
        checks: What was looked at.
        constants: What a process costs the kernel here.
        notes: What was odd about looking.
    """

    host: dict[str, str]
    checks: tuple[Check, ...]
    constants: KernelConstants
    notes: tuple[Note, ...]


def doctor() -> Diagnosis:
    """Check what footprint can read on this host."""
    system = os.uname()
    constants = load_constants(system.release, system.machine)
    checks = (
        _page_bits(),
        _page_scan(),
        _rollup(),
        _map_files(),
        _capability(),
        _other_users(),
        _ptrace_scope(),
        _cgroup(),
        _huge_pages(),
        _same_page_merging(),
        _swap(),
        _calibration(constants),
        *_libc_calibration(),
        *_start_prices(),
        _debug_files(),
        *_demanglers(),
        *(_peer(name, purpose) for name, purpose in _PEERS),
    )
    return Diagnosis({"kernel": system.release, "machine": system.machine}, checks, constants, constants.notes)


# --- what can be read -------------------------------------------------------------------------------------------------


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _page_bits() -> Check:
    if has_exclusive_bit():
        return Check("page bits", State.OK, "private memory is known by page and by symbol")
    meaning = "private memory is known by mapping only, from smaps: not by symbol, and not exactly after a fork"
    cure = "a kernel from 4.2 with CONFIG_PROC_PAGE_MONITOR; in a sandbox, let it read /proc/PID/pagemap"
    return Check("page bits", State.MISSING, meaning, cure)


def _page_scan() -> Check:
    try:
        with open("/proc/self/pagemap", "rb") as file:
            fcntl.ioctl(file, _PAGEMAP_SCAN, struct.pack("12Q", 96, *[0] * 11))
    except OSError as error:
        if error.errno in {errno.ENOTTY, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.ENOENT}:
            meaning = "reading page bits takes the longer the larger the mappings are, touched or not"
            return Check("PAGEMAP_SCAN", State.LIMITED, meaning, "Linux 6.7")
    return Check("PAGEMAP_SCAN", State.OK, "reading page bits takes time for pages that are there only")


def _rollup() -> Check:
    if _text("/proc/self/smaps_rollup") is not None:
        return Check("smaps_rollup", State.OK, "sums are checked against the kernel's own")
    return Check("smaps_rollup", State.MISSING, "changes while a process is read go unnoticed", "Linux 4.14")


def _map_files() -> Check:
    folder = "/proc/self/map_files"
    try:
        os.stat(os.path.join(folder, os.listdir(folder)[0]))
    except (OSError, IndexError):
        meaning = "no symbol is known of files that were replaced or deleted since a process was started"
        return Check("map_files", State.LIMITED, meaning, "be root, or have CAP_CHECKPOINT_RESTORE")
    return Check("map_files", State.OK, "files that were replaced or deleted since are read, too")


def _has_ptrace_capability() -> bool:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _text("/proc/self/status") or "", re.MULTILINE)
    return bool(match and int(match.group(1), 16) >> _CAP_SYS_PTRACE & 1)


def _capability() -> Check:
    if _has_ptrace_capability():
        return Check("CAP_SYS_PTRACE", State.OK, "processes of all users may be read")
    return Check("CAP_SYS_PTRACE", State.LIMITED, "only processes of this user may be read", _AS_ROOT)


def _other_users() -> Check:
    """Try the first processes of others that have memory."""
    name = "other users' processes"
    refused = None
    for pid in _pids_of_others():
        folder = f"/proc/{pid}"
        try:
            with open(f"{folder}/smaps", "rb") as smaps:
                if not smaps.read(1):
                    continue
            with open(f"{folder}/pagemap", "rb"):
                return Check(name, State.OK, f"process {pid} can be read, for one")
        except PermissionError:
            refused = pid
        except OSError:
            continue
    if refused is not None:
        return Check(name, State.LIMITED, f"process {refused}, for one, may not be read", f"{_AS_ROOT}; or be its user")
    return Check(name, State.OK, "there is none to try")


def _pids_of_others() -> Iterator[int]:
    user = os.geteuid()
    try:
        entries = os.listdir("/proc")
    except OSError:
        return
    for entry in [entry for entry in entries if entry.isdigit()][:_MOST_TRIES]:
        try:
            is_own = os.stat(f"/proc/{entry}").st_uid == user
        except OSError:
            continue
        if not is_own:
            yield int(entry)


def _ptrace_scope() -> Check:
    scope = (_text("/proc/sys/kernel/yama/ptrace_scope") or "0").strip()
    may = scope in {"0", "1"} or (scope == "2" and _has_ptrace_capability())
    if may:
        return Check("ptrace", State.OK, f"programs that `run` starts can be taken at their end (scope {scope})")
    cure = "be root" if scope == "2" else "none until the next boot"
    meaning = f"`run --when exit` cannot work (scope {scope}); `--when settled` and times can"
    return Check("ptrace", State.LIMITED, meaning, f"{cure}: /proc/sys/kernel/yama/ptrace_scope")


def _cgroup() -> Check:
    from footprint.process.cgroup import CURE, make_group, read_memory_controller  # noqa: PLC0415 # for this check only

    controller = read_memory_controller()
    if controller is None:
        meaning = "the constants of the kernel cannot be calibrated"
        return Check("memory cgroup", State.MISSING, meaning, "boot with cgroup_enable=memory, or mount /sys/fs/cgroup")
    try:
        with make_group():
            return Check("memory cgroup", State.OK, f"v{controller.version}: the kernel's constants can be calibrated")
    except AccessError:
        meaning = f"v{controller.version}, but no group can be made: no calibration"
        return Check("memory cgroup", State.LIMITED, meaning, CURE)


# --- what changes figures ---------------------------------------------------------------------------------------------


def _huge_pages() -> Check:
    name = "transparent huge pages"
    match = re.search(r"\[(\w+)\]", _text("/sys/kernel/mm/transparent_hugepage/enabled") or "[never]")
    setting = match.group(1) if match else "never"
    if setting != "always":
        return Check(name, State.OK, f"{setting}: no page grows unasked")
    meaning = "always: touching a byte may cost 2 MiB, and pages are merged later: starts differ more"
    cure = "to compare builds, measure with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled"
    return Check(name, State.LIMITED, meaning, cure)


def _same_page_merging() -> Check:
    if (_text("/sys/kernel/mm/ksm/run") or "0").strip() != "1":
        return Check("same-page merging (KSM)", State.OK, "off: no page is shared behind a process's back")
    meaning = "on: merged pages count as shared until they are written"
    return Check(
        "same-page merging (KSM)", State.LIMITED, meaning, "to compare builds, write 0 to /sys/kernel/mm/ksm/run"
    )


def _swap() -> Check:
    if len((_text("/proc/swaps") or "").splitlines()) > 1:
        return Check("swap", State.OK, "present: swapped memory counts as private")
    return Check("swap", State.OK, "none: all private memory is resident")


def _calibration(constants: KernelConstants) -> Check:
    if constants.evidence is not Evidence.ESTIMATED:
        return Check("calibration", State.OK, f"kernel objects are priced as {constants.origin}")
    meaning = f"kernel objects are priced by estimated figures, {constants.origin}"
    return Check("calibration", State.LIMITED, meaning, "footprint doctor --calibrate")


def _libc_calibration() -> Iterator[Check]:
    """Check whether glibc is calibrated; musl needs no calibration, because its file says all that it writes."""
    path = own_libc()
    if path is None:
        return
    try:
        start = load_libc_start(read_image(open_input(path), path))
    except FootprintError:
        return
    if start.is_assumed:
        meaning = (
            f"before a program runs, its C library is taken to write {start.count} pages in itself, {start.origin}"
        )
        yield Check("C library", State.LIMITED, meaning, "footprint doctor --calibrate")
    else:
        meaning = f"before a program runs, it writes {start.count} pages in itself, {start.origin}"
        yield Check("C library", State.OK, meaning)
    count = len(load_constructors()[0])
    meaning = f"what they write before a program runs is known of {counted(count, 'library')}"
    if count:
        yield Check("constructors", State.OK, meaning)
    else:
        yield Check("constructors", State.LIMITED, meaning, "footprint doctor --calibrate")


def _start_prices() -> Iterator[Check]:
    """Check whether the prices of a start are calibrated, for programs of the C library that is here."""
    # This interpreter is at hand; any program of its C library would do.
    name, program = "prices of a start", os.path.realpath("/proc/self/exe")
    try:
        prices = Programs(environment=Environment()).graph(program).start_prices
    except FootprintError:
        return
    if prices.origin == CALIBRATED:
        yield Check(name, State.OK, f"times at start are estimated as {CALIBRATED} ({prices.system})")
        return
    compared = "" if prices.is_compared else ", not compared with programs here"
    meaning = f"times at start are estimated by built-in prices ({prices.system}){compared}"
    yield Check(name, State.LIMITED, meaning, "footprint doctor --calibrate")


def _debug_files() -> Check:
    if os.path.isdir(STANDARD_FOLDER):
        return Check(
            "debug files", State.OK, f"names of stripped files are read from {STANDARD_FOLDER}, where they are"
        )
    meaning = "of stripped files, only the names of exported variables are known"
    cure = "install debug packages (-dbg, -dbgsym, -debuginfo), or ask for them with --debuginfod"
    return Check("debug files", State.LIMITED, meaning, cure)


def _demanglers() -> Iterator[Check]:
    """Check which tools read the names of each language."""
    try:
        import pycxxfilt  # noqa: PLC0415 # only a name that needs it pays for it

        yield Check("names of C++ and Rust", State.OK, f"read by LLVM {pycxxfilt.LLVM_VERSION} (pycxxfilt)")
    except ImportError:
        meaning = "a zipapp has no pycxxfilt: they are shown as the linker has them"
        yield Check("names of C++ and Rust", State.MISSING, meaning)
    for language, (program, *_) in TOOLS.items():
        if find_tool(program):
            yield Check(f"names of {language}", State.OK, f"read by {program}")
        else:
            meaning = f"{program} is not installed, or anybody may replace it: they are shown as the linker has them"
            yield Check(f"names of {language}", State.MISSING, meaning)


def _peer(name: str, purpose: str) -> Check:
    if find_tool(name):
        return Check(name, State.OK, f"installed, {purpose}")
    return Check(
        name,
        State.MISSING,
        f"not installed, or anybody may replace it; footprint needs it for nothing, it is {purpose}",
    )


def doctor_document(diagnosis: Diagnosis) -> Document:
    """Show what can be read on this host, what that means, and what would help."""
    kernel, machine = diagnosis.host.get("kernel", ""), diagnosis.host.get("machine", "")
    rows = tuple((check.name, check.state.value, check.meaning) for check in diagnosis.checks)
    return (
        Heading(f"footprint doctor: Linux {kernel} {machine}".rstrip()),
        Table(("what", "state", "what it means"), rows, frozenset({0, 1})),
        Paragraph(_count(diagnosis)),
        *_cures(diagnosis),
        Heading(f"What the kernel spends on a process, {diagnosis.constants.origin}"),
        _constants(diagnosis.constants),
        *note_blocks(diagnosis.notes),
        Verdict(_verdict(diagnosis)),
    )


def _cures(diagnosis: Diagnosis) -> list[Block]:
    lines = [Paragraph(f"{check.name}: {check.cure}") for check in diagnosis.checks if check.cure is not None]
    return [Heading("What would help"), *lines] if lines else []


def _constants(constants: KernelConstants) -> Facts:
    evidence = constants.evidence.value
    figures = (
        ("process", constants.process_bytes),
        ("thread", constants.thread_bytes),
        ("stack of a thread", constants.stack_bytes),
        ("mapping", constants.mapping_bytes),
        ("written mapping, besides", constants.written_bytes),
        ("mapped file", constants.file_bytes),
    )
    opened = ((f"open: {kind}", size_bytes) for kind, size_bytes in constants.open_file_bytes.items())
    return Facts(tuple((name, format_bytes(size_bytes), evidence) for name, size_bytes in (*figures, *opened)))


def _count(diagnosis: Diagnosis) -> str:
    short = [check.name for check in diagnosis.checks if check.state is not State.OK]
    count = len(diagnosis.checks)
    rest = f"; not {', '.join(short)}" if short else ""
    return f"{count - len(short)} of {count} checks are fine{rest}."


def _verdict(diagnosis: Diagnosis) -> str:
    """Return in one line what footprint can know here, and how to get more."""
    lacking = {check.name: check for check in diagnosis.checks if check.state is not State.OK}
    if not lacking:
        return f"All {len(diagnosis.checks)} checks are fine: figures are as exact as footprint can make them."
    whose = "your own processes" if "CAP_SYS_PTRACE" in lacking else "every process"
    depth = "by mapping" if "page bits" in lacking else "to the page and the variable"
    kernel = diagnosis.constants.evidence.value
    cures = dict.fromkeys(lacking[name].cure for name in _DECISIVE if name in lacking)
    more = "; ".join(cure for cure in cures if cure is not None)
    return f"Here footprint reads {whose} {depth}; kernel memory is {kernel}.{f' For more: {more}.' if more else ''}"


class HostTarget(NamedTuple):
    """The host that was looked at.

    Attributes:
        name: Always `host`.
    """

    name: Literal["host"] = "host"


@dataclass(frozen=True, kw_only=True)
class DoctorJson(Envelope):
    """What this host lets footprint read, and what the kernel spends on its objects.

    Attributes:
        target: The host.
        checks: The conditions that decide what footprint can answer.
        constants: The sizes of kernel objects.
        notes: What was odd.
    """

    verb: Literal["doctor"] = "doctor"
    target: HostTarget
    checks: tuple[Check, ...]
    constants: KernelConstants
    notes: tuple[Note, ...]


def doctor_members(diagnosis: Diagnosis, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        DoctorJson(
            tool=Tool("footprint", version),
            host=diagnosis.host,
            target=HostTarget(),
            checks=diagnosis.checks,
            constants=diagnosis.constants,
            notes=diagnosis.notes,
        )
    )
