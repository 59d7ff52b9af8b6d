"""Saved audits as targets: read back, and projected anew."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from footprint import __version__
from footprint.model.row import Row
from footprint.model.spread import ONE_START, Spreads
from footprint.sources.demanglers import learn_told_names
from footprint.sources.target import AuditFile
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("AuditedTarget", "read_saved")

_Found_co = TypeVar("_Found_co", covariant=True)


class AuditedTarget(NamedTuple, Generic[_Found_co]):
    """An audit, and how it came about.

    Attributes:
        audit: The audit of a process, or the group; of a saved `run` that of the median start.
        spreads: How far the starts of a saved `run` differ.
        tool_version: The footprint that made it.
    """

    audit: _Found_co
    spreads: Spreads = ONE_START
    tool_version: str = __version__


def read_saved(target: AuditFile, asked: AuditRequest) -> "AuditedTarget[Audited]":
    """Read a saved audit, of one process or of a group, and project it as is asked.

    Raises:
        InputError: If it is damaged.
        UsageError: If another model is asked for than the saved one.
    """
    from footprint.formats.saved_audit import parsed_answer, reprojected, saved_audit  # noqa: PLC0415 # json

    whole = parsed_answer(target.data, target.name)
    if "group" in whole:
        from footprint.formats.saved_group import regrouped, saved_group  # noqa: PLC0415 # few are of groups
        from footprint.model.group import GroupQuestion  # noqa: PLC0415 # the same

        group, version = saved_group(whole, target.name)
        _learn_names(group.ledger)
        many = regrouped(group, GroupQuestion(asked.question.count)) if asked.has_question else group
        return AuditedTarget(replace(many, over_time=target.over_time), tool_version=version)
    saved = saved_audit(whole, target.name, has_page_maps=asked.has_page_maps)
    _learn_names(saved.audit.ledger)
    found = reprojected(saved.audit, asked.question) if asked.has_question else saved.audit
    if target.over_time is not None:
        found = replace(found, peak_bytes=target.over_time.peak_bytes, over_time=target.over_time)
    return AuditedTarget(found, saved.spreads, saved.tool_version)


def _learn_names(ledger: Iterable[Row]) -> None:
    """Learn the names to show for the symbols of a saved ledger."""
    named = map(attrgetter("symbol", "name"), ledger)
    learn_told_names({symbol: name for symbol, name in named if symbol and name and symbol != name})
