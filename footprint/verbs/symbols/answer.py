"""What `footprint symbols` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.options import Sort, SymbolsBy
from footprint.verbs.symbols.call import FileSymbols

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.stacks import Stacks

__all__ = ("SymbolsAnswer",)


@dataclass(frozen=True)
class SymbolsAnswer:
    """The variables of some files.

    Attributes:
        found: The variables.
        name: What was asked.
        by: What they are added up by in the text.
        order: Their order in the text.
        top: How many rows a table has; 0 for all.
        has_whole_names: Whether linker names, paths and types are shown whole.
    """

    verb: ClassVar = "symbols"
    table: ClassVar = "symbols"
    found: FileSymbols
    name: str
    by: SymbolsBy
    order: Sort
    top: int
    has_whole_names: bool

    def document(self) -> "Document":
        from footprint.verbs.symbols.selections import tables
        from footprint.verbs.symbols.text import symbols_report

        found = self.found
        namers = "Symbols and debug information" if any(one.named for one in found.sources or ()) else "Symbols"
        return symbols_report(
            found.files,
            found.notes,
            top=self.top,
            has_linker_names=self.has_whole_names,
            kinds=found.selection.kinds,
            tables=tables(found, self.by, self.order, is_whole=self.has_whole_names),
            is_selected=found.selection.is_of_variables,
            namers=namers,
        )

    def members(self) -> "Json":
        from footprint.verbs.symbols.json import symbols_members

        return symbols_members(self.found.origins, self.found.notes, __version__, self.found.sources)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.symbols.metrics import symbols_metrics

        return symbols_metrics(self.found.origins)

    def stacks(self) -> "Stacks":
        from footprint.formats.stacks import symbol_stacks

        return symbol_stacks(self.found.files)
