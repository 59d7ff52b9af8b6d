"""Regular expressions that most answers do not need.

An audit of gdb does not need 68 of those in the modules that it imports; to compile them takes 44 million instructions.
One that every answer needs is an ordinary `re.compile`: each of its calls takes less time.
"""

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """A regular expression that is compiled when one of its methods is first used."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 # as the attribute
        attribute = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, attribute)
        return attribute


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when one of its methods is first used.

    Type checkers see what it compiles, but the functions of `re` do not take it: call its methods. A wrong text is
    refused at the first call; tests/unit/test_patterns.py compiles each pattern of a module.
    """
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))
