"""Linker names in readable form: demangled, with the suffixes of compilers kept. And names that all copies share.

Keys are linker names everywhere; a demangled name is only shown. The demangler of LLVM prints names of C++ and Rust.
Names of D and Swift need tools, which this module does not run: `learn_names` takes their answers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from itertools import islice
from typing import Final, NamedTuple

from footprint.elf.expansion import is_tame

__all__ = (
    "Language",
    "SplitName",
    "foreign_names",
    "function_of_static",
    "lacks_function",
    "learn_names",
    "may_be_in_function",
    "normalised",
    "shown_name",
    "source_name",
    "split_suffixes",
)

_LONGEST_NAME: Final = 8192
_LONGEST_SHOWN: Final = 8192


class Language(StrEnum):
    """The languages whose names only tools can demangle."""

    D = "D"
    SWIFT = "Swift"


class SplitName(NamedTuple):
    """A linker name in its parts; joined they are the name again.

    Attributes:
        stem: The name without suffixes.
        suffixes: The suffixes that compilers and linkers added, each with its leading "." or "@".
    """

    stem: str
    suffixes: tuple[str, ...]


_VERSION: Final = re.compile(r"(?<=.)@.*", re.DOTALL)
_SUFFIX: Final = r"""
    \.(?: (?: constprop | isra | part | lto_priv | llvm | __uniq | clone ) \.[0-9]+
        | (?: cold | hot | localalias | warm ) (?: \.[0-9]+ )?
        | [0-9]+ )
    \Z"""
# A mangled name itself has no words after a dot: such words are suffixes.
_ANY_SUFFIX: Final = r"\.(?:[a-z_]{1,32}(?:\.[0-9]{1,20})?|[0-9]{1,20})\Z"
_LONGEST_SUFFIX: Final = 64


@cache
def _suffix(*, is_mangled: bool) -> re.Pattern[str]:
    # Compiled on first use: most answers need at most one of them.
    return re.compile(_ANY_SUFFIX, re.ASCII) if is_mangled else re.compile(_SUFFIX, re.VERBOSE | re.ASCII)


def split_suffixes(name: str) -> SplitName:
    """Split the suffixes from a name: `.constprop.0`, `.llvm.123`, the `.0` of a static, `@@VERSION`.

    clang names the static `x` of a C function `f` `f.x`: that is a name without a suffix.
    """
    version = _VERSION.search(name)
    stem = name[: version.start()] if version else name
    suffixes = [version.group()] if version else []
    pattern = _suffix(is_mangled=stem.startswith(("_Z", "_R")))
    while True:
        found = pattern.search(stem, max(1, len(stem) - _LONGEST_SUFFIX))
        # Paths in old Rust names contain `..`, which is not a suffix.
        if found is None or stem[found.start() - 1] == ".":
            return SplitName(stem, tuple(suffixes[::-1]))
        suffixes.append(found.group())
        stem = stem[: found.start()]


def normalised(name: str) -> str:
    """Return the name without suffixes, which all copies of one variable have."""
    # Most names have neither a suffix nor a version.
    return split_suffixes(name).stem if "." in name or "@" in name else name


@lru_cache(1 << 16)
def source_name(name: str) -> str:
    """Return the name of a variable or function in the source, without scopes, template arguments and parameters."""
    name = normalised(name)
    if not name.startswith("_Z"):
        return name
    # The name of the function of a static need not have balanced brackets, as `operator<` has none.
    if (split := _split_static(f"_Z{name.removeprefix('_ZGV')}" if name.startswith("_ZGVZ") else name)) is not None:
        return split[1]
    if (plain := _last_part(name)) is not None:
        return plain
    shown, kept, depth = shown_name(name), [], 0
    for part in re.split("([<>()])", shown) if "<" in shown or "(" in shown else [shown]:
        depth += (part in {"<", "("}) - (part in {">", ")"})
        if depth <= 0 and part not in {">", ")"}:
            kept.append(part)
    return "".join(kept).rpartition("::")[2]


# A part of a linker name that is a plain name, by its length. Of internal linkage, it has an L before it.
_PLAIN_PART: Final = re.compile(r"L?([1-9]\d{0,3})(?=[A-Za-z_])", re.ASCII)


def _last_part(name: str) -> str | None:
    """Return the last part of a C++ name of plain parts, which needs no demangler: `_ZL5table`, `_ZN2nsL5tableE`.

    None for all other names, such as those of templates, functions and Rust.
    """
    is_nested = name.startswith("_ZN")
    at, part = 2 + is_nested, ""
    while (found := _PLAIN_PART.match(name, at)) is not None and (is_nested or not part):
        at = found.end() + int(found[1])
        part = name[found.end() : at]
    is_whole = len(name) == at + is_nested and name.endswith("E" if is_nested else part) and name.isascii()
    # The last part of a name of Rust may be a hash, and an unnamed namespace is shown by other words.
    return part if is_whole and part and "17h" not in name and not part.startswith("_GLOBAL__N") else None


# The end of the name of a static in a function: its length and itself, with tags and a number of its own.
_STATIC_OF_FUNCTION: Final = re.compile(r"E(?=([1-9]\d{0,3})([A-Za-z_]))", re.ASCII)
_BEHIND_STATIC: Final = re.compile(r"(?:B\d+\w+?)*(?:_\d|__\d+_)?", re.ASCII)
_PLAIN_FUNCTION: Final = re.compile(r"\d+([A-Za-z_]\w*)", re.ASCII)


def _split_static(name: str) -> tuple[str, str] | None:
    """Split the linker name of a static of a function of C++ into that of the function and its own."""
    if not name.startswith("_ZZ"):
        return None
    for found in _STATIC_OF_FUNCTION.finditer(name):
        start = found.end() + len(found[1])
        end = start + int(found[1])
        if end <= len(name) and _BEHIND_STATIC.fullmatch(name, end):
            return name[3 : found.start()], name[start:end]
    return None


def function_of_static(name: str) -> str | None:
    """Return the linker name of the function that a static of C++ belongs to, by its own; None for other names."""
    split = _split_static(normalised(name))
    if split is None:
        return None
    inner = split[0]
    plain = _PLAIN_FUNCTION.fullmatch(inner)
    # `main` and functions of C have no parameters in their names.
    is_plain = plain is not None and inner == f"{len(plain[1])}{plain[1]}"
    return plain[1] if plain is not None and is_plain else f"_Z{inner}"


def may_be_in_function(name: str) -> bool:
    """Return whether a variable may be a static of a function that only debug information names: `x.0`, `f.x` in C."""
    return "." in name and not name.startswith("_Z")


def lacks_function(name: str, function: str) -> bool:
    """Return whether the name of a static does not contain its function; names of C++ and of clang (`f.x`) do."""
    return not name.startswith(("_Z", "_R", f"{function}."))


# --- shown names ------------------------------------------------------------------------------------------------------

_RUST_HASH: Final = r"17h([0-9a-f]{16})E\Z"
_DEMANGLED_RUST_HASH: Final = r"::h([0-9a-f]{16})\Z"
_RUST_ESCAPE: Final = r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\."
_RUST_ESCAPES: Final = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}

# By language: marks of which each name has one, and the pattern of the names.
_FOREIGN: Final = {
    Language.D: (("\n_D",), r"^_D[0-9][\w.]+$"),
    Language.SWIFT: (("$s", "$S", "$e", "\n_T0"), r"^(?:_?\$[sSe]|_T0)[\w$.]+$"),
}
_JOINED_COUNT: Final = 1 << 16
_learned: dict[str, str] = {}


def shown_name(name: str) -> str:
    """Return the text to show for a linker name: demangled where it is mangled, else unchanged.

    Only `_Z` and `_R` names are demangled: the C variable `i` would become `int`. For others it is the learned text.
    Profilers demangle names of Rust as if they were C++: their hash and escapes are removed.
    """
    if not name.startswith(("_Z", "_R")):
        found = re.search(_DEMANGLED_RUST_HASH, name) if name[-19:-16] == "::h" else None
        return _learned.get(name, name) if found is None else _without_rust_hash(found[1], name)
    return _demangled(name)


@lru_cache(1 << 17)
def _demangled(name: str) -> str:
    # An answer shows the variables of its ledger again in their pages.
    if len(name) > _LONGEST_NAME or not name.isascii():
        return name
    # Most names have no suffix, and the search for its first character is faster than that for the suffix.
    stem = split_suffixes(name).stem if "." in name or "@" in name else name
    if not is_tame(stem):
        return name
    try:
        demangled = _demangler(stem[1])(stem)
    except ValueError:
        return name
    if not demangled or len(demangled) > _LONGEST_SHOWN:
        return name
    found = re.search(_RUST_HASH, stem) if "17h" in stem else None
    return (demangled if found is None else _without_rust_hash(found[1], demangled)) + name[len(stem) :]


@cache
def _demangler(letter: str) -> Callable[[str], str | None]:
    """Return the demangler of names that begin with `_Z` or `_R`."""
    try:
        import pycxxfilt  # noqa: PLC0415 # only a mangled name needs it
    except ImportError:  # it is compiled, and a zipapp has none: names stay as the linker has them
        return str

    demangle: Callable[[str], str | None] = pycxxfilt.itanium_demangle if letter == "Z" else pycxxfilt.rust_demangle
    return demangle


def _without_rust_hash(hash_digits: str, demangled: str) -> str:
    """Remove the hash and the escapes from a name of Rust before 1.95, which is mangled like C++."""
    # A hash has many different digits; a C++ name that looks like a hash rarely has.
    if len(set(hash_digits)) < 5 or not demangled.endswith(f"::h{hash_digits}"):
        return demangled
    parts = demangled.removesuffix(f"::h{hash_digits}").split("::")
    # An escape at the start of a part has a "_" before it, because a C++ name cannot begin with "$".
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
    """Return by language the names that a tool must demangle, without those that were learned."""
    # One search over joined names is much faster than a loop over thousands of them.
    waiting = iter(names)
    found: dict[Language, dict[str, None]] = {}
    while some := list(islice(waiting, _JOINED_COUNT)):
        text = "\n".join(["", *some])
        for language, (marks, pattern) in _FOREIGN.items():
            if any(mark in text for mark in marks):
                names_found = re.findall(pattern, text, re.MULTILINE | re.ASCII)
                found.setdefault(language, {}).update(dict.fromkeys(names_found))
    unknown = {language: [name for name in names if name not in _learned] for language, names in found.items()}
    return {language: names for language, names in unknown.items() if names}


def learn_names(shown: Mapping[str, str]) -> None:
    """Remember the text to show for names that a tool has demangled."""
    for name, text in shown.items():
        _learned[name] = text if len(text) <= _LONGEST_SHOWN else name
