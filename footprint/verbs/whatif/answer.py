"""What `footprint whatif` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.output import ViewOptions
from footprint.verbs.whatif.result import WhatIf

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("WhatIfAnswer",)


@dataclass(frozen=True)
class WhatIfAnswer:
    """A program with some of its libraries and without them.

    Attributes:
        found: What both cost, and how they differ.
        view: How the text looks.
    """

    verb: ClassVar = "whatif"
    table: ClassVar = "changes"
    found: WhatIf
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"whatif {self.found.command[0]}"

    def document(self) -> "Document":
        from footprint.verbs.whatif.text import whatif_report

        return whatif_report(self.found, top=self.view.top, has_whole_names=self.view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.whatif.json import whatif_members

        return whatif_members(self.found, __version__)
