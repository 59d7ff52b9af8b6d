"""The selection of variables for an answer: by kind, by binding, by size and by name."""

import re
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.contents import Contents, SectionContents, SectionKind
from footprint.elf.names import shown_name
from footprint.elf.symbols import Symbol
from footprint.errors import UsageError

_LONGEST_PATTERN: Final = 4096
# A regular expression can take time that grows with the square of the length of a name, or worse, and the file chooses
# the names. The caller limits the time.
_LONGEST_SEARCHED: Final = 4096


class Selection(NamedTuple):
    """The variables that are selected; the defaults select all.

    Attributes:
        kinds: The kinds of memory.
        is_local: True selects local variables, False all others; None selects both.
        least_bytes: The smallest size.
        pattern: A pattern to find in the linker name, in the shown name, or in one of the aliases.
    """

    kinds: frozenset[SectionKind] = frozenset(SectionKind)
    is_local: bool | None = None
    least_bytes: int = 0
    pattern: re.Pattern[str] | None = None

    @property
    def is_of_variables(self) -> bool:
        """Whether it can select some variables of a section and not others."""
        return self.is_local is not None or self.least_bytes > 0 or self.pattern is not None

    def of(self, contents: Contents) -> Contents:
        """Return the selected sections and variables; each section keeps its sums."""
        sections = [section for section in contents.sections if section.kind in self.kinds]
        if self.is_of_variables:
            sections = [section._replace(variables=self._variables(section)) for section in sections]
        return contents._replace(sections=tuple(sections))

    def _variables(self, section: SectionContents) -> tuple[Symbol, ...]:
        return tuple(
            variable
            for variable in section.variables
            if variable.size_bytes >= self.least_bytes
            and (self.is_local is None or (variable.binding == abi.STB_LOCAL) is self.is_local)
            and (self.pattern is None or _has_name(variable, self.pattern))
        )


EVERYTHING: Final = Selection()


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern for names.

    Raises:
        UsageError: Where it is not a regular expression, or too long.
    """
    if len(text) > _LONGEST_PATTERN:
        raise UsageError(f"a pattern of {len(text):,} characters is too long")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from error


def _has_name(variable: Symbol, pattern: re.Pattern[str]) -> bool:
    names = dict.fromkeys((variable.name, *variable.aliases))
    names |= dict.fromkeys(map(shown_name, names))
    return any(pattern.search(name, 0, _LONGEST_SEARCHED) for name in names)
