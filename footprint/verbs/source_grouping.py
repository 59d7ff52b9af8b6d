"""The options that group memory by source files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.errors import UsageError
from footprint.system.files import open_input
from footprint.verbs.options import OF_SOURCES

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceGroups


_LARGEST_FILE_BYTES = 1 << 20


def source_groups(by: str, prefix_map: Sequence[str], components: str | None) -> "SourceGroups | None":
    """Return the groups that the options ask for; None where `by` is none of source files.

    Raises:
        AccessError: If the file of components cannot be opened.
        UsageError: If an option is not valid, or goes with another grouping.
    """
    if by not in OF_SOURCES:
        if prefix_map or components is not None:
            raise UsageError("--prefix-map and --components go with --by file, dir or component")
        return None
    if (by == "component") is (components is None):
        raise UsageError(
            "--by component and --components FILE go together; a line of FILE says who owns a folder, "
            'below the line [components]: "src/net" = "network"'
        )
    from footprint.attribution.source_groups import (  # noqa: PLC0415 # few answers are grouped so
        SourceGroups,
        parse_components,
        parse_prefix_map,
    )

    rules = {}
    if components is not None:
        from footprint.release.toml_lines import read_toml  # noqa: PLC0415 # few answers have components

        data = open_input(components)
        if len(data) > _LARGEST_FILE_BYTES:
            raise UsageError(f"{components}: larger than any file of rules")
        rules = parse_components(read_toml(bytes(data), components)[0], components)
    return SourceGroups(by, parse_prefix_map(prefix_map), rules)
