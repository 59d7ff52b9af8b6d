"""Each mapping with private bytes is listed with what the kernel tells of it, and the others are added up by owner.

A text with six mappings:

    1000-3000  ---p  a guard of 8 KiB below a stack of 32 KiB with 12 private, 8 of them swapped out
    10000      rw-p  16 KiB, wholly private
    20000      rw-p  named by prctl, 16 KiB with 4 private
    30000      r--p  a file of 64 KiB, without private bytes
    40000      ---p  64 MiB that are reserved, beside 4 KiB that are private
"""

from pathlib import Path

import pytest

import footprint
from footprint.attribution import mapping_costs as module
from footprint.formats.audit_json import audit_json
from footprint.formats.saved_audit import read_audit
from footprint.model.audit import Audit
from footprint.model.costs import MappingCost

KIB = 1024
ROOT = Path(__file__).resolve().parents[2]


def block(start: int, end: int, permissions: str, name: str = "", private: int = 0, swapped: int = 0) -> str:
    """Return the text of a mapping with these KiB of anonymous memory."""
    inode = 7 if name.startswith("/") else 0
    return (
        f"{start:08x}-{end:08x} {permissions} 00000000 00:00 {inode} {name}\n"
        f"Rss: {private} kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: {private} kB\n"
        f"Anonymous: {private} kB\nSwap: {swapped} kB\nSwapPss: {swapped} kB\n"
    )


BLOCKS = [
    block(0x1000, 0x3000, "---p"),
    block(0x3000, 0xB000, "rw-p", private=4, swapped=8),
    block(0x10000, 0x14000, "rw-p", private=16),
    block(0x20000, 0x24000, "rw-p", "[anon:a pool]", private=4),
    block(0x30000, 0x40000, "r--p", "/data/file"),
    block(0x40000, 0x4040000, "---p"),
    block(0x4040000, 0x4041000, "rw-p", private=4),
]


def audit_of(tmp_path: Path, text: str) -> Audit:
    path = tmp_path / "smaps.txt"
    path.write_text(text, encoding="ascii")
    return footprint.audit(str(path), has_page_maps=True)


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return audit_of(tmp_path, "".join(BLOCKS))


def listed(audit: Audit) -> list[MappingCost]:
    return [mapping for mapping in audit.mappings if mapping.start_addr is not None]


def test_mappings_with_private_bytes_come_the_largest_first(audit: Audit) -> None:
    assert [(one.owner, one.start_addr, one.end_addr, one.permissions, one.bytes) for one in listed(audit)] == [
        ("[anonymous]", 0x10000, 0x14000, "rw-p", 16 * KIB),
        ("[anonymous]", 0x3000, 0xB000, "rw-p", 12 * KIB),
        ("[anon:a pool]", 0x20000, 0x24000, "rw-p", 4 * KIB),
        ("[anonymous]", 0x4040000, 0x4041000, "rw-p", 4 * KIB),
    ]


def test_a_guard_beside_a_mapping_is_told_and_a_large_reservation_is_none(audit: Audit) -> None:
    assert [one.start_addr for one in listed(audit) if one.has_guard] == [0x3000]


def test_a_mapping_has_the_name_that_the_kernel_gives_and_what_is_swapped_out_of_it(audit: Audit) -> None:
    assert {one.start_addr: (one.name, one.swapped_bytes) for one in listed(audit)} == {
        0x10000: (None, 0),
        0x3000: (None, 8 * KIB),
        0x20000: ("[anon:a pool]", 0),
        0x4040000: (None, 0),
    }


def test_mappings_that_are_not_listed_are_added_up_by_owner_and_kind(
    audit: Audit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rest = {mapping.owner: mapping for mapping in audit.mappings if mapping.start_addr is None}
    assert {owner: (one.mapping_count, one.bytes, one.mapped_bytes) for owner, one in rest.items()} == {
        "[anonymous]": (2, 0, (8 + 64 * KIB) * KIB),
        "/data/file": (1, 0, 64 * KIB),
    }
    monkeypatch.setattr(module, "MOST_MAPPINGS", 1)
    cut = audit_of(tmp_path, "".join(BLOCKS)).mappings
    assert [(one.owner, one.mapping_count, one.bytes, one.swapped_bytes) for one in cut] == [
        ("[anonymous]", 1, 16 * KIB, 0),
        ("/data/file", 1, 0, 0),
        ("[anon:a pool]", 1, 4 * KIB, 0),
        ("[anonymous]", 4, 16 * KIB, 8 * KIB),
    ]


def test_mappings_are_saved_and_read_back_byte_for_byte_where_they_are_asked_for(audit: Audit) -> None:
    text = audit_json(audit, "1.0").encode()
    found = read_audit(text, "audit.json", has_page_maps=True).audit
    assert found.mappings == audit.mappings
    assert audit_json(found, "1.0").encode() == text
    assert read_audit(text, "audit.json").audit.mappings == ()


def test_no_mapping_is_listed_of_a_program_where_nobody_asked_and_where_private_bytes_are_not_known() -> None:
    smaps, maps = (str(ROOT / "tests" / "corpus" / f"{name}-sleep.txt") for name in ("smaps", "maps"))
    program = str(ROOT / "sample_binaries" / "condor_shadow" / "base")
    assert footprint.audit(smaps, has_page_maps=True).mappings != ()
    for audit in (footprint.audit(smaps), footprint.audit(maps, has_page_maps=True)):
        assert audit.mappings == ()
        assert '"mappings"' not in audit_json(audit, "1.0")
    assert footprint.audit(program, has_page_maps=True).mappings == ()
