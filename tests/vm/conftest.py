"""Fixtures of the tests in the guest."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vm.guest import Group, new_group

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def group() -> Iterator[Group]:
    with new_group() as made:
        yield made


@pytest.fixture(scope="session")
def build() -> Iterator[Callable[..., str]]:
    """Compile a program of the folder `programs` with the guest's own compiler, once; every user may run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield _builder(folder)


def _builder(folder: Path) -> Callable[..., str]:
    def built(name: str, *options: str) -> str:
        path = folder / f"{name}{len(options) or ''}"
        if not path.exists():
            subprocess.run(["gcc", "-O1", "-g", "-pthread", *options, PROGRAMS / f"{name}.c", "-o", path], check=True)
        return str(path)

    return built


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str, float, float], float]:
    """Record a figure of footprint beside that of the oracle, and return by which share it differs."""

    def recorded(name: str, size_bytes: float, true_bytes: float) -> float:
        deviation = size_bytes / true_bytes - 1
        record_property(name, f"{size_bytes / 1024:.1f} {true_bytes / 1024:.1f} {100 * deviation:+.2f}")
        return deviation

    return recorded
