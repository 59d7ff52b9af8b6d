"""What `footprint maps` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.maps.result import OwnedMap

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("MapsAnswer",)


@dataclass(frozen=True)
class MapsAnswer:
    """The mappings of a process.

    Attributes:
        found: The mappings.
        name: What was asked.
        has_whole_names: Whether paths are shown whole.
    """

    verb: ClassVar = "maps"
    table: ClassVar = "mappings"
    found: OwnedMap
    name: str
    has_whole_names: bool

    def document(self) -> "Document":
        from footprint.verbs.maps.text import maps_report

        return maps_report(self.found, has_whole_names=self.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.maps.json import maps_members

        return maps_members(self.found, __version__)
