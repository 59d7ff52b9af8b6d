"""How many processors this process may use: its affinity, and the quotas of its cgroups."""

import os
from pathlib import Path

import pytest

from footprint.process.two_processors import usable_processor_count


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, 8),
        ({"": "max 100000", "/a": "max 100000"}, 8),
        ({"/a/b": "250000 100000"}, 3),
        ({"/a": "200000 100000", "/a/b": "400000 100000"}, 2),
        ({"/a/b": "1000 100000"}, 1),
        ({"/a/b": "", "/a": "damaged 0"}, 8),
        ({"/other": "100000 100000"}, 8),
    ],
)
def test_the_smallest_quota_of_the_cgroup_and_those_around_it_counts(
    quotas: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for group, text in quotas.items():
        (tmp_path / f"mount{group}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"mount{group}/cpu.max").write_text(f"{text}\n")
    membership = tmp_path / "cgroup"
    membership.write_text("1:name=systemd:/x\n0::/a/b\n")
    assert usable_processor_count(str(tmp_path / "mount"), str(membership)) == expected
