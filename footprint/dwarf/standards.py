"""The language standard that a unit was compiled for, as far as its debug information names it.

gcc names it in the producer: `GNU C++14 12.2.0 -O2`. clang has only the language, which is C++14 for every later one.

Source: DWARF 5, section 7.12 (Source Languages), and the language codes that were assigned since.
"""

import re
from typing import Final, NamedTuple

from footprint.dwarf import dw
from footprint.dwarf.units import Unit

__all__ = ("LanguageStandard", "standard_of")


class LanguageStandard(NamedTuple):
    """A standard of C or C++; they are ordered by what a header that several units include may use.

    Attributes:
        is_cxx: Whether the language is C++.
        year: The year of the standard; None where it is not known.
    """

    is_cxx: bool
    year: int | None

    @property
    def label(self) -> str:
        """The name of the standard: `C++17`, `C11`, `C++`."""
        return f"{'C++' if self.is_cxx else 'C'}{'' if self.year is None else f'{self.year % 100:02}'}"

    @property
    def lacks_inline_variables(self) -> bool:
        """Whether it surely has no inline variables, which came with C++17."""
        return not self.is_cxx or (self.year is not None and self.year < 2017)


_OF_C: Final = {0x01: 1989, 0x02: None, 0x0C: 1999, 0x1D: 2011, 0x2C: 2017, 0x3E: 2023}
_OF_CXX: Final = {0x04: None, 0x19: 2003, 0x1A: 2011, 0x21: None, 0x2A: 2017, 0x2B: 2020, 0x3A: 2023}
_PRODUCER: Final = re.compile(r"(?:GNU C| -std=(?:c|gnu|iso9899:))(\+\+)?(\d[\da-z])(?![\da-z])")
# What compilers called a standard before it was one.
_BEFORE_ITS_YEAR: Final = {"0x": 11, "1x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2x": 23, "2c": 26}


def standard_of(unit: Unit) -> LanguageStandard | None:
    """Return the standard that a unit was compiled for; None for other languages than C and C++.

    Raises:
        InputError: Where the root of the unit is damaged.
    """
    language = unit.number(unit.root, dw.AT_LANGUAGE)
    is_cxx = language in _OF_CXX
    if language is None or not (is_cxx or language in _OF_C):
        return None
    for cxx, digits in reversed(_PRODUCER.findall(unit.text(unit.root, dw.AT_PRODUCER) or "")):
        year = _BEFORE_ITS_YEAR.get(digits) or (int(digits) if digits.isdecimal() else None)
        if year is not None and bool(cxx) == is_cxx:
            return LanguageStandard(is_cxx, year + (1900 if year > 80 else 2000))
    return LanguageStandard(is_cxx, (_OF_CXX if is_cxx else _OF_C)[language])
