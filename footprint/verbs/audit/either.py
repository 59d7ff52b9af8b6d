"""An audit as it is written, whether it is of one process or of a group."""

from typing import TYPE_CHECKING, cast

from footprint.formats.document import Document
from footprint.model.audit import Audit

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf
    from footprint.formats.json import Json
    from footprint.model.audited import Audited
    from footprint.model.group import Group

__all__ = ("audited_columns", "audited_document", "audited_members")


def audited_document(
    found: "Audited",
    *,
    by: str = "owner",
    top: int = 20,
    has_whole_names: bool = False,
    source_of: "SourceOf | None" = None,
) -> Document:
    """Write where the memory goes; `top` rows a table, 0 for all."""
    if isinstance(found, Audit):
        from footprint.verbs.audit.text import audit_document  # noqa: PLC0415 # JSON needs no text

        return audit_document(found, by=by, top=top, has_whole_names=has_whole_names, source_of=source_of)
    from footprint.verbs.audit.group_text import group_document  # noqa: PLC0415 # few audits are of groups

    return group_document(cast("Group", found), by=by, top=top, has_whole_names=has_whole_names, source_of=source_of)


def audited_columns(found: "Audited", version: str) -> "Json":
    """Return the same for the report: the tables by columns."""
    if isinstance(found, Audit):
        from footprint.formats.audit_json import audit_columns  # noqa: PLC0415 # text needs no JSON

        return audit_columns(found, version)
    from footprint.formats.group_json import group_columns  # noqa: PLC0415 # few audits are of groups

    return group_columns(cast("Group", found), version)


def audited_members(found: "Audited", version: str, source_of: "SourceOf | None" = None) -> "Json":
    """Return the members of the JSON."""
    if isinstance(found, Audit):
        from footprint.formats.audit_json import audit_members  # noqa: PLC0415 # text needs no JSON

        return audit_members(found, version, source_of)
    from footprint.formats.group_json import group_members  # noqa: PLC0415 # few audits are of groups

    return group_members(cast("Group", found), version, source_of)
