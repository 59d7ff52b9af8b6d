"""Fixtures of the tests of this machine."""

from collections.abc import Iterator

import pytest

from footprint.errors import AccessError
from footprint.process.cgroup import MemoryGroup, make_group


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """A control group of its own; without the right to make one the test is skipped."""
    try:
        with make_group() as made:
            yield made
    except AccessError as error:
        pytest.skip(str(error))
