"""The page maps of a live process add up to its ledger."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.model.page_map import PageState
from footprint.model.row import Attribution, MemoryKind

STAGE = Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow" / "base"


MASSIF = STAGE.parents[1] / "heap_by_function" / "massif.out"


PRIVATE = {PageState.PRIVATE, PageState.RELOCATED, PageState.SWAPPED}


def bytes_of_maps(audit: Audit) -> dict[str, int]:
    found: dict[str, int] = {}
    for page_map in audit.page_maps:
        count = sum(count for part in page_map.parts for state, count in part.runs if state in PRIVATE)
        found[page_map.owner] = found.get(page_map.owner, 0) + count * audit.page_bytes
    return found


def bytes_of_rows(audit: Audit) -> dict[str, int]:
    """Return the private bytes of owners, without what is assumed of pages that are not known.

    Thread-local variables are left out: they lie in stacks and in the heap.
    """
    found: dict[str, int] = {}
    for row in (row for row in audit.ledger if row.attribution is not Attribution.THREAD_VECTOR):
        found[row.owner] = found.get(row.owner, 0) + (row.bytes or 0 if row.mapped_bytes else 0)
    return found


def sums(rows: Iterable[tuple[str, int | None, int]]) -> dict[str, tuple[int, int]]:
    """Add up the private and the mapped bytes of each owner."""
    found: dict[str, tuple[int, int]] = {}
    for owner, private_bytes, mapped_bytes in rows:
        own, mapped = found.get(owner, (0, 0))
        found[owner] = own + (private_bytes or 0), mapped + mapped_bytes
    return found


@pytest.fixture
def sleeping_pid() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"], stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize("has_findings", [False, True])
def test_the_private_pages_of_a_process_add_up_to_its_ledger(sleeping_pid: int, *, has_findings: bool) -> None:
    audit = footprint.audit(sleeping_pid, has_page_maps=True, has_findings=has_findings)
    if any(note.slug == "page-bits-denied" for note in audit.notes):
        pytest.skip("page bits may not be read here")
    maps, rows = bytes_of_maps(audit), bytes_of_rows(audit)
    assert any("libc" in owner for owner in maps)
    assert maps == {owner: rows[owner] for owner in maps}
    of_owners = [(row.owner, row.bytes, row.mapped_bytes) for row in audit.ledger if row.kind is not MemoryKind.KERNEL]
    assert sums([(mapping.owner, mapping.bytes, mapping.mapped_bytes) for mapping in audit.mappings]) == sums(of_owners)
    states = {state for page_map in audit.page_maps for part in page_map.parts for state, _ in part.runs}
    assert {PageState.PRIVATE, PageState.RELOCATED, PageState.SHARED, PageState.UNTOUCHED} <= states


def test_the_pages_are_the_same_where_the_heap_is_split(sleeping_pid: int) -> None:
    plain = footprint.audit(sleeping_pid, has_page_maps=True)
    split = footprint.audit(sleeping_pid, has_page_maps=True, heap=str(MASSIF))
    assert split.heap is not None
    assert [page_map.owner for page_map in split.page_maps] == [page_map.owner for page_map in plain.page_maps] != []
