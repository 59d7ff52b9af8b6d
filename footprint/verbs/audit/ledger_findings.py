"""The findings that the ledger of a process shows by itself: they need no symbols but those of its largest tables."""

from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from footprint.elf.image import Image
from footprint.elf.relocations import pages_relocated_alone, relocated_vaddrs
from footprint.errors import FootprintError
from footprint.findings.registry import Fact, LedgerFacts, find_all, rules_reading
from footprint.model.audit import Audit
from footprint.model.finding import SearchedRule
from footprint.model.row import Row
from footprint.sources.files import ElfFiles

_Places = Mapping[tuple[str | None, str | None], tuple[int, int]]


class RelocatedVariables:
    """Counts the pages that only the relocations of a variable write; a file is read when it is first asked about.

    Args:
        files: Reads the symbols of files.
        image_of: Returns the file of an owner, or None.
        page_bytes: The size of a page.
    """

    def __init__(self, files: ElfFiles, image_of: Callable[[str], Image | None], page_bytes: int) -> None:
        self._files = files
        self._image_of = image_of
        self._page_bytes = page_bytes
        self._relocated: dict[str, tuple[array[int], _Places]] = {}

    def page_count(self, row: Row) -> int | None:
        """Count the pages for the variable of a row; None where it cannot be read."""
        if row.owner not in self._relocated:
            self._relocated[row.owner] = array("Q"), {}
            with suppress(FootprintError):
                self._relocated[row.owner] = self._read(row.owner)
        vaddrs, places = self._relocated[row.owner]
        place = places.get((row.section, row.symbol))
        return None if place is None else pages_relocated_alone(vaddrs, *place, self._page_bytes)

    def _read(self, owner: str) -> tuple["array[int]", _Places]:
        image = self._image_of(owner)
        if image is None:
            return array("Q"), {}
        contents, _ = self._files.debug_files.contents_of(image, owner)
        places: _Places = {
            (section.section.name, variable.name): (
                section.section.vaddr + variable.offset,
                section.section.vaddr + variable.offset + variable.size_bytes,
            )
            for section in contents.sections
            for variable in section.variables
        }
        return array("Q", sorted(relocated_vaddrs(image))), places


def with_quick_findings(audit: Audit, files: ElfFiles, images: Mapping[str, Image]) -> Audit:
    """Add what the rules find that read nothing but the ledger; `images` has the files of its owners."""
    variables = RelocatedVariables(files, images.get, audit.page_bytes)
    facts = {Fact.LEDGER: LedgerFacts(audit.ledger, audit.page_bytes, audit.allocator, variables.page_count)}
    return replace(
        audit,
        findings=tuple(sorted(find_all(facts), key=lambda finding: -finding.saving_bytes)),
        searched_rules=tuple(SearchedRule(rule.name) for rule in rules_reading(facts)),
    )
