"""Linker names for people to read: demangled, suffixes of compilers kept apart. And names to compare copies by.

Keys are linker names everywhere; what this module makes is only ever shown. C++ and Rust have one printer (LLVM's). D
and Swift are read by tools, which this module does not run: it shows what it was told of their names.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from footprint.elf.expansion import is_tame

__all__ = (
    "Language",
    "SplitName",
    "foreign_names",
    "lacks_function",
    "learn_names",
    "normalised",
    "shown_name",
    "split_suffixes",
)

_LONGEST_NAME: Final = 8192
_LONGEST_SHOWN: Final = 8192


class Language(StrEnum):
    """The languages whose names only tools can read."""

    D = "D"
    SWIFT = "Swift"


class SplitName(NamedTuple):
    """A linker name in its parts, which put together again are the whole.

    Attributes:
        stem: What the source calls it.
        suffixes: What compilers and linkers have put behind it, each with the "." or "@" that it begins with.
    """

    stem: str
    suffixes: tuple[str, ...]


_VERSION: Final = re.compile(r"(?<=.)@.*", re.DOTALL)
_SUFFIX: Final = r"""
    \.(?: (?: constprop | isra | part | lto_priv | llvm | __uniq | clone ) \.[0-9]+
        | (?: cold | hot | localalias | warm ) (?: \.[0-9]+ )?
        | [0-9]+ )
    \Z"""
# A mangled name has no words behind a dot, so any that stand there were put there.
_ANY_SUFFIX: Final = r"\.(?:[a-z_]{1,32}(?:\.[0-9]{1,20})?|[0-9]{1,20})\Z"
_LONGEST_SUFFIX: Final = 64


@cache
def _suffix(*, is_mangled: bool) -> re.Pattern[str]:
    # Compiled when the first name asks: most answers need one of them at most.
    return re.compile(_ANY_SUFFIX, re.ASCII) if is_mangled else re.compile(_SUFFIX, re.VERBOSE | re.ASCII)


def split_suffixes(name: str) -> SplitName:
    """Split off what was put behind a name: `.constprop.0`, `.llvm.123`, the `.0` of a static, `VERSION`.

    What clang calls the static `x` of a C function `f`, `f.x`, is a name and stays whole.
    """
    version = _VERSION.search(name)
    stem = name[: version.start()] if version else name
    suffixes = [version.group()] if version else []
    pattern = _suffix(is_mangled=stem.startswith(("_Z", "_R")))
    while True:
        found = pattern.search(stem, max(1, len(stem) - _LONGEST_SUFFIX))
        # Paths of old Rust names hold `..`, which is no suffix.
        if found is None or stem[found.start() - 1] == ".":
            return SplitName(stem, tuple(suffixes[::-1]))
        suffixes.append(found.group())
        stem = stem[: found.start()]


def normalised(name: str) -> str:
    """Give the name that all copies of one variable have, whatever compilers have put behind it."""
    return split_suffixes(name).stem


def lacks_function(name: str, function: str) -> bool:
    """Tell whether the name of a static does not say in which function it is, as it does in C++, and clang's `f.x`."""
    return not name.startswith(("_Z", "_R", f"{function}."))


# --- to be shown ------------------------------------------------------------------------------------------------------

_RUST_HASH: Final = r"17h([0-9a-f]{16})E\Z"
_RUST_ESCAPE: Final = r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\."
_RUST_ESCAPES: Final = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}

# By what its names are told: bytes that all of them have, and what they are made of.
_FOREIGN: Final = {
    Language.D: (("\n_D",), r"^_D[0-9][\w.]+$"),
    Language.SWIFT: (("$s", "$S", "$e", "\n_T0"), r"^(?:_?\$[sSe]|_T0)[\w$.]+$"),
}
_learned: dict[str, str] = {}


def shown_name(name: str) -> str:
    """Give what to show for a linker name: demangled where it is mangled, else as it is.

    Only `_Z` and `_R` names are demangled: the C variable `i` would become `int`. Others are what was learned of them.
    """
    if not name.startswith(("_Z", "_R")):
        return _learned.get(name, name)
    if len(name) > _LONGEST_NAME or not name.isascii():
        return name
    # Most names have no suffix, and what makes one is looked for faster than the suffix.
    stem = split_suffixes(name).stem if "." in name or "@" in name else name
    if not is_tame(stem):
        return name
    try:
        demangled = _demangler(stem[1])(stem)
    except ValueError:
        return name
    if not demangled or len(demangled) > _LONGEST_SHOWN:
        return name
    return _without_rust_hash(stem, demangled) + name[len(stem) :]


@cache
def _demangler(letter: str) -> Callable[[str], str | None]:
    """Give the demangler of the names that begin with `_Z` or `_R`."""
    import pycxxfilt  # noqa: PLC0415 # only a name that needs it pays for it

    demangle: Callable[[str], str | None] = pycxxfilt.itanium_demangle if letter == "Z" else pycxxfilt.rust_demangle
    return demangle


def _without_rust_hash(stem: str, demangled: str) -> str:
    """Clean the name of a compiler of Rust before 1.95, which is one of C++ with a hash and escapes in it."""
    found = re.search(_RUST_HASH, stem) if "17h" in stem else None
    # A hash has most of the digits; a name of C++ that looks like one hardly has.
    if found is None or len(set(found.group(1))) < 5 or not demangled.endswith(f"::h{found.group(1)}"):
        return demangled
    parts = demangled.removesuffix(f"::h{found.group(1)}").split("::")
    # Before an escape at the start of a part stands a "_", as names of C++ begin with no "$".
    return "::".join([re.sub(_RUST_ESCAPE, _unescaped, part[part.startswith("_$") :]) for part in parts])


def _unescaped(found: re.Match[str]) -> str:
    word, code = found.groups()
    if word is not None:
        return _RUST_ESCAPES[word]
    if code is None:
        return "::"
    letter = chr(int(code, 16)) if int(code, 16) < 0x110000 else ""
    return letter if letter.isprintable() and letter else found.group()


def foreign_names(names: Iterable[str]) -> dict[Language, list[str]]:
    """Give the names among some that a tool must read, by language; those that were learned are left out."""
    # One search passes over thousands of names in the time that a loop takes for a few.
    text = "\n".join(["", *names])
    found = {}
    for language, (marks, pattern) in _FOREIGN.items():
        if any(mark in text for mark in marks):
            names_found = dict.fromkeys(re.findall(pattern, text, re.MULTILINE | re.ASCII))
            found[language] = [name for name in names_found if name not in _learned]
    return {language: unknown for language, unknown in found.items() if unknown}


def learn_names(shown: Mapping[str, str]) -> None:
    """Remember what to show for names that a tool has read."""
    for name, text in shown.items():
        _learned[name] = text if len(text) <= _LONGEST_SHOWN else name
