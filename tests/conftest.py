"""Set for all tests how many examples properties are tried with, and which tests may be skipped."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

HOST = Path(__file__).resolve().parent / "host"

# The reasons with which a host test may be skipped on a machine that has all that `.ci/run` installs (`CI=true`): what
# no package provides. Everywhere else, each reason is fine.
ALLOWED_IN_CI: tuple[str, ...] = ()

# `make test` tries the same examples each time, so that it passes or fails for everybody; the profile `ci` tries more,
# and others each time. No example has a deadline: how long it takes depends on the machine.
settings.register_profile("ci", deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, derandomize=True, max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell that runs the suite in the background makes it ignore interrupts, and its children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def may_be_skipped(path: Path, reason: str) -> bool:
    """Return whether a test may be skipped: no hermetic test, and in CI no host test without a reason of the list."""
    if HOST not in path.parents:
        return False
    return os.environ.get("CI") != "true" or any(allowed in reason for allowed in ALLOWED_IN_CI)


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
