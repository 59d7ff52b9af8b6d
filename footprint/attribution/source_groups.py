"""Groups of source files: the files themselves, their folders, or the components that rules map folders to.

Paths of debug information are those of the machine that compiled. A prefix map replaces their beginnings, so that the
same sources have the same paths wherever they were built.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from footprint.errors import UsageError
from footprint.members import NamedTuple
from footprint.model.row import Row, is_file

if TYPE_CHECKING:
    from footprint.elf.origins import ByteOrigin


NO_COMPONENT: Final = "[no component: no rule fits its folder]"
_TABLE: Final = "components"
_MOST_RULES: Final = 10_000


SourceOf = Callable[[Row], str | None]
"""Returns the group of source files that a row belongs to; None where it is not known."""


def key_of_source(row: Row, source_of: SourceOf) -> tuple[str, str]:
    """Return no owner and the group of source files of a row; the owner and the cause where the group is not known."""
    label = source_of(row)
    if label is not None:
        return "", label
    is_named = row.symbol is not None and is_file(row.owner)
    # What no symbol names stands by its owner and cause.
    return row.owner, "[no source file]" if is_named else row.name or f"[{row.kind.value}]"


class SourceGroups(NamedTuple):
    """How source files are grouped.

    Attributes:
        by: `file`, `dir` or `component`.
        prefix_map: Beginnings of paths, each with its replacement; the first that fits counts.
        components: By folder the component that it belongs to; the longest folder that fits counts.
    """

    by: str
    prefix_map: tuple[tuple[str, str], ...] = ()
    components: Mapping[str, str] = MappingProxyType({})

    def of(self, origin: "ByteOrigin") -> str | None:
        """Return the group of the origin of bytes; None where neither its source file nor its object is known."""
        if origin.object is not None:
            return origin.label if self.by == "file" else self.label(origin.object)
        return None if origin.unit is None else self.label(origin.unit)

    def label(self, path: str) -> str:
        """Return the group of a source file."""
        for old, new in self.prefix_map:
            if path == old or path.startswith(f"{old.rstrip('/')}/"):
                path = new + path[len(old) :] if new else path[len(old) :].lstrip("/")
                break
        path = posixpath.normpath(path)
        if self.by == "file":
            return path
        if self.by == "dir":
            return posixpath.dirname(path) or "."
        # A folder fits at the start of a path, and one without a slash before it also within.
        whole = f"/{path.lstrip('/')}"
        fitting = [
            folder for folder in self.components if f"{whole}/".startswith(f"{folder}/") or f"/{folder}/" in f"{whole}/"
        ]
        return self.components[max(fitting, key=len)] if fitting else NO_COMPONENT


def parse_prefix_map(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Parse `OLD=NEW`; NEW may be empty.

    Raises:
        UsageError: If a word has no `=`, or nothing before it.
    """
    pairs = []
    for word in words:
        old, mark, new = word.partition("=")
        if not mark or not old:
            raise UsageError(f"--prefix-map: {word!r} is not OLD=NEW, such as /build/app=")
        pairs.append((old, new))
    return tuple(pairs)


def parse_components(tables: Mapping[str, Any], file: str) -> dict[str, str]:
    """Make rules from a file that `tomllib` has read: the table `components`, with a component for each folder.

    Raises:
        UsageError: If it says anything else.
    """
    rules = tables.get(_TABLE)
    if not isinstance(rules, dict) or not rules or set(tables) != {_TABLE}:
        raise UsageError(
            f'{file}: it needs the table [{_TABLE}], and nothing else, with lines such as "src/net" = "net"'
        )
    if len(rules) > _MOST_RULES:
        raise UsageError(f"{file}: more than {_MOST_RULES:,} rules are more than any program needs")
    wrong = [folder for folder, name in rules.items() if not folder.strip("/") or not isinstance(name, str) or not name]
    if wrong:
        raise UsageError(f"{file}: {wrong[0]!r}: a rule is a folder and the name of a component")
    return {folder.rstrip("/"): name for folder, name in rules.items()}
