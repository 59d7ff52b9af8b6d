"""Errors: what they say, also in another process than the one that raised them."""

import pickle

import pytest

from footprint.errors import AccessError, FootprintError, InputError, LimitError, UsageError


@pytest.mark.parametrize(
    "error",
    [
        AccessError("folder", "No space left on device"),
        InputError("file", "it is cut", 16),
        LimitError("file", "spent 2 of 1 entries", "entries", "2"),
        UsageError("name one"),
    ],
)
def test_an_error_of_a_process_of_a_pool_arrives_as_it_was(error: FootprintError) -> None:
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 # our own
    assert type(arrived) is type(error)
    assert (str(arrived), arrived.detail, vars(arrived)) == (str(error), error.detail, vars(error))
