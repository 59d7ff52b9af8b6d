"""Set for all tests how many examples properties are tried with, and which tests may be skipped."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

HOST = Path(__file__).resolve().parent / "host"

# Why a host test may be skipped also where `.ci/run` has installed its tools (`CI=true`): words of the skip, and what
# no package provides. Everywhere else, each reason is fine.
ALLOWED_IN_CI = {
    "x86-64": "the committed programs, and the constants of one kernel, are for one processor",
    "Linux before": "the kernel is older",
    "this kernel": "the kernel is older, or built without it",
    "no PAGEMAP_SCAN": "the kernel is older",
    "page bits": "the kernel or its sandbox tells no page bits",
    "told to root only": "a sandbox hides the numbers of physical pages",
    "ptrace is not allowed": "a sandbox forbids ptrace",
    "no program can be held": "a sandbox forbids ptrace",
    "map_files": "a sandbox takes the capability away",
    "/proc/PID/syscall": "a sandbox hides it",
    "no sysfs": "a sandbox hides it",
    "no kernel thread": "a sandbox has a PID namespace of its own",
    "namespaces or mounting are forbidden": "a sandbox forbids them",
    "root may not become another user": "a sandbox forbids it",
    "cgroup": "a container may make no memory cgroup",
    "transparent huge pages are switched off": "a setting of the machine",
    "were not merged in time": "the kernel merges pages when it wants to",
    "mappings here": "a setting of the machine",
    "allows fewer mappings": "a setting of the machine",
    "32-bit programs do not run": "the kernel may be built without them",
    "the heap touches": "the kernel chooses addresses at random",
    "merged its .bss with nothing": "the kernel chooses addresses at random",
    "keeps footprint from adopting": "the worker process of the tests may have threads",
    "this node": "each distribution builds its own node",
    "stops for debuggers": "a static program has no loader",
    "Too few files for multifile optimization": "dwz leaves the DWARF 5 of clang as it is",
    "it does not end": "the dwp of gold hangs on DWARF 5",
    "only root": "CI need not run as root",
    "takes root": "CI need not run as root",
    "owns process 1": "CI need not run as root",
}

# `make test` tries the same examples each time, so that it passes or fails for everybody; the profile `ci` tries more,
# and others each time. No example has a deadline: how long it takes depends on the machine.
settings.register_profile("ci", deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, derandomize=True, max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell that runs the suite in the background makes it ignore interrupts, and nohup makes it ignore hang-ups; its
# children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if "PYTEST_XDIST_WORKER" in os.environ:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection() -> None:
    """Keep the garbage collector from looking at what is collected, which stays until the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through 15,000 collected tests again and again: a fifth of all work."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def may_be_skipped(path: Path, reason: str) -> bool:
    """Return whether a test may be skipped: no hermetic test, and in CI no host test without a reason of the list."""
    if HOST not in path.parents:
        return False
    return os.environ.get("CI") != "true" or any(words in reason for words in ALLOWED_IN_CI)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped where it may not be."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not may_be_skipped(item.path, reason):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} may not be skipped here. {reason}"
    return report
