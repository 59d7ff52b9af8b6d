"""Saved audits as targets."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from footprint.model.audit import AuditRecord
from footprint.model.row import Row
from footprint.sources.demanglers import learn_saved_names
from footprint.sources.target import AuditFile


def read_saved(target: AuditFile, *, has_page_maps: bool = False) -> AuditRecord:
    """Read a saved audit, of one process or of a group.

    Raises:
        InputError: If it is damaged.
    """
    from footprint.formats.saved_audit import read_audit  # noqa: PLC0415 # json

    saved = read_audit(target.data, target.name, has_page_maps=has_page_maps)
    _learn_names(saved.audit.ledger)
    if target.over_time is None:
        return saved
    return saved._replace(
        audit=replace(saved.audit, peak_bytes=target.over_time.peak_bytes, over_time=target.over_time)
    )


def _learn_names(ledger: Iterable[Row]) -> None:
    """Learn the names to show for the symbols of a saved ledger."""
    named = map(attrgetter("symbol", "name"), ledger)
    learn_saved_names({symbol: name for symbol, name in named if symbol and name and symbol != name})
