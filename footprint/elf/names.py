"""Linker names in readable form: demangled, with the suffixes of compilers kept. And names that all copies share.

Keys are linker names everywhere; a demangled name is only shown. The demangler of LLVM prints names of C++ and Rust.
Names of D and Swift need tools, which this module does not run: `learn_names` takes their answers.

A bound of the length of a demangled name, computed before demangling: a name of 200 bytes can become 38 MB of text.

Both manglings refer back to earlier parts of the name, and a reference to a reference doubles the text. A Rust name is
parsed, each part once, and a reference costs the length of its target. A C++ name is not parsed: its references are
counted by target.

Source: Rust RFC 2603 (Symbol name mangling v0); Itanium C++ ABI, section 5.1.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from itertools import islice
from typing import Final

from footprint.members import lazy_pattern

# None of 190,000 names of node and rustc becomes longer than 11 KB; the bound here is up to 20 times the true length.
_MOST_RUST_BYTES: Final = 1 << 18
# The bound from the numbers of references can be far above the true length.
_MOST_CPP_BITS: Final = 23
_MOST_CPP_BYTES: Final = 1 << _MOST_CPP_BITS


def is_tame(name: str) -> bool:
    """Return whether a mangled name, C++ or Rust v0, can be demangled within the bounds."""
    if _is_short(name) and name.startswith("_Z"):
        return True
    return _RustLength(name).is_tame() if name.startswith("_R") else _cpp_bytes(name) <= _MOST_CPP_BYTES


# --- C++ --------------------------------------------------------------------------------------------------------------


def _is_short(name: str) -> bool:
    """Return whether a C++ name has so few references that nothing more needs to be computed, as most have."""
    # Each reference of C++ ends with "_", and copies at most the text before it; only packs copy more.
    return len(name).bit_length() + name.count("_") <= _MOST_CPP_BITS and not (
        # A pack copies a template parameter: `T_`.
        "T" in name and ("Dp" in name or "sp" in name or "fl" in name or "fr" in name or "fL" in name or "fR" in name)
    )


_CAPITALS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PACK: Final = lazy_pattern(r"Dp|sp|f[lrLR]")


def _cpp_bytes(name: str) -> int:
    """Return a bound of the demangled length of a C++ name.

    A substitution has a number and refers only to lower numbers. An expansion follows chains of references down these
    numbers, so the product of the counts of references to each number bounds it.
    """
    targets: Counter[str] = Counter()
    doubling_count = parameter_count = 0
    # Every reference ends with "_". Its start is certain only if exactly one letter can begin it.
    for run in name.split("_")[:-1]:
        tail = run[len(run.rstrip(_CAPITALS)) :]
        parameter_count += "T" in tail
        start_count = tail.count("S") + tail.count("T")
        if start_count == 1 and "S" in tail:
            number = tail.partition("S")[2]
            # `S0_` and `S00_` are the same reference, `S_` is another.
            targets[number.lstrip("0") or number[:1]] += 1
        elif start_count:
            doubling_count += 1
    # A pack is expanded only where it contains a template parameter.
    pack_count = min(len(_PACK.findall(name)), parameter_count, 8)
    bound: int = len(name) ** (pack_count + 1) << min(doubling_count, 64)
    for count in targets.values():
        bound *= count + 1
    return bound


# --- Rust -------------------------------------------------------------------------------------------------------------

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The text that one part adds to its names: `{closure#4294967295}`, ` as `, `extern "..." `.
_PART_BYTES: Final = 32
_LIFETIME_BYTES: Final = 8
# A letter of the encoding takes up to four bytes when it is decoded.
_LETTER_BYTES: Final = 4

# By the letter of each path and type, the names of the methods that read what follows it.
_PARTS: Final = {
    "C": ("_identifier",),
    "M": ("_disambiguator", "_item", "_item"),
    "X": ("_disambiguator", "_item", "_item", "_item"),
    "Y": ("_item", "_item"),
    "N": ("_letter", "_item", "_identifier"),
    "I": ("_item", "_arguments"),
    "A": ("_item", "_constant"),
    "S": ("_item",),
    "P": ("_item",),
    "O": ("_item",),
    "R": ("_lifetime", "_item"),
    "Q": ("_lifetime", "_item"),
    "T": ("_items",),
    "F": ("_binder", "_abi", "_items", "_item"),
    "D": ("_binder", "_traits", "_lifetime"),
    "B": ("_reference",),
}


class _UnreadableError(Exception):
    """The name does not follow the grammar: no demangler should get it."""


class _RustLength:
    """Reads a Rust v0 name. Each method reads one part from `_at` on, and returns a bound of the text of this part."""

    def __init__(self, name: str) -> None:
        self._text = name[2:]
        self._at = 0
        # By kind and start of each part that was read: its end and the bound of its text; None while it is being read.
        self._sizes: dict[tuple[str, int], tuple[int, int] | None] = {}

    def is_tame(self) -> bool:
        # A name with few references and without lifetimes need not be read: each reference at most doubles the text.
        if "G" not in self._text and len(self._text) * _PART_BYTES << self._text.count("B") <= _MOST_RUST_BYTES:
            return True
        try:
            return self._item() <= _MOST_RUST_BYTES
        except (_UnreadableError, RecursionError):
            return False

    def _next(self) -> str:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        return letter

    def _takes(self, letter: str) -> bool:
        """Skip a letter if it is next, and return whether it was."""
        is_there = self._text.startswith(letter, self._at)
        self._at += is_there
        return is_there

    def _number(self) -> int:
        """Read a number in base 62: `_` is 0, and `0_` is 1."""
        match = re.compile(r"([0-9a-zA-Z]{0,16})_").match(self._text, self._at)
        if match is None:
            raise _UnreadableError
        self._at = match.end()
        number = 0
        for digit in match[1]:
            number = number * 62 + _DIGITS.index(digit)
        return number + 1 if match[1] else 0

    def _once(self, kind: str, read: Callable[[], int]) -> int:
        """Read the part that begins here, or return the known bound of it."""
        key = kind, self._at
        if key in self._sizes:
            read_before = self._sizes[key]
            if read_before is None:
                raise _UnreadableError
            self._at, size_bytes = read_before
            return size_bytes
        self._sizes[key] = None
        # A number above the limit is set to just above it, so that numbers stay small.
        size_bytes = min(read(), _MOST_RUST_BYTES + 1)
        self._sizes[key] = self._at, size_bytes
        return size_bytes

    def _item(self) -> int:
        return self._once("item", self._read_item)

    def _read_item(self) -> int:
        letter = self._next()
        if letter.islower():
            return _PART_BYTES
        if letter not in _PARTS:
            raise _UnreadableError
        parts_bytes: int = sum([getattr(self, part)() for part in _PARTS[letter]])
        return _PART_BYTES + parts_bytes

    def _reference(self, read: Callable[[], int] | None = None) -> int:
        here = self._at
        target = self._number()
        if target >= here - 1:
            raise _UnreadableError
        end, self._at = self._at, target
        size_bytes = (read or self._item)()
        self._at = end
        return size_bytes

    def _constant(self) -> int:
        return self._once("constant", self._read_constant)

    def _read_constant(self) -> int:
        letter = self._next()
        if letter == "B":
            return self._reference(self._constant)
        if letter in {"R", "Q"}:
            return _PART_BYTES + self._constant()
        if letter in {"A", "T"}:
            return self._until_end(self._constant)
        if letter == "V":
            return self._item() + self._fields()
        if letter == "p":
            return _PART_BYTES
        start, self._at = self._at, self._text.find("_", self._at) + 1
        if not letter.islower() or not self._at:
            raise _UnreadableError
        return _PART_BYTES + _LETTER_BYTES * (self._at - start)

    def _fields(self) -> int:
        """Read the fields of a constant: no fields, fields of a tuple, or named fields."""
        letter = self._next()
        if letter == "T":
            return self._until_end(self._constant)
        if letter == "S":
            return self._until_end(lambda: self._identifier() + self._constant())
        if letter == "U":
            return 0
        raise _UnreadableError

    def _until_end(self, read: Callable[[], int]) -> int:
        size_bytes = _PART_BYTES
        while not self._takes("E"):
            size_bytes += read() + _PART_BYTES
        return size_bytes

    def _items(self) -> int:
        return self._until_end(self._item)

    def _arguments(self) -> int:
        return self._until_end(self._argument)

    def _argument(self) -> int:
        if self._takes("K"):
            return self._constant()
        return self._lifetime() or self._item()

    def _traits(self) -> int:
        return self._until_end(self._trait)

    def _trait(self) -> int:
        size_bytes = self._item()
        while self._takes("p"):
            size_bytes += self._identifier() + self._argument()
        return size_bytes

    def _identifier(self) -> int:
        self._disambiguator()
        letter_bytes = _LETTER_BYTES if self._takes("u") else 1
        digits = re.compile(r"0|[1-9][0-9]{0,5}").match(self._text, self._at)
        if digits is None:
            raise _UnreadableError
        self._at = digits.end()
        self._takes("_")
        self._at += int(digits.group())
        if self._at > len(self._text):
            raise _UnreadableError
        return _PART_BYTES + letter_bytes * int(digits.group())

    def _disambiguator(self) -> int:
        if self._takes("s"):
            self._number()
        return 0

    def _lifetime(self) -> int:
        if self._takes("L"):
            self._number()
            return _LIFETIME_BYTES
        return 0

    def _binder(self) -> int:
        return _LIFETIME_BYTES * (self._number() + 1) if self._takes("G") else 0

    def _letter(self) -> int:
        self._at += 1
        return 0

    def _abi(self) -> int:
        """Read `unsafe` and `extern "..."`, each of which a function may have."""
        self._takes("U")
        return self._identifier() if self._takes("K") and not self._takes("C") else 0


_LONGEST_NAME: Final = 8192
_LONGEST_SHOWN: Final = 8192


class Language(StrEnum):
    """The languages whose names only tools can demangle."""

    D = "D"
    SWIFT = "Swift"


_VERSION: Final = lazy_pattern(r"(?<=.)@.*", re.DOTALL)
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


def split_suffixes(name: str) -> tuple[str, tuple[str, ...]]:
    """Split the suffixes from a name: `.constprop.0`, `.llvm.123`, the `.0` of a static, `@@VERSION`.

    Each suffix begins with its "." or "@"; joined with the first text, they are the name again.

    clang names the static `x` of a C function `f` `f.x`: that is a name without a suffix.
    """
    version = _VERSION.search(name)
    stem = name[: version.start()] if version else name
    suffixes = [version.group()] if version else []
    pattern = _suffix(is_mangled=stem.startswith(("_Z", "_R")))
    while True:
        match = pattern.search(stem, max(1, len(stem) - _LONGEST_SUFFIX))
        # Paths in old Rust names contain `..`, which is not a suffix.
        if match is None or stem[match.start() - 1] == ".":
            return stem, tuple(suffixes[::-1])
        suffixes.append(match.group())
        stem = stem[: match.start()]


def normalised(name: str) -> str:
    """Return the name without suffixes, which all copies of one variable have."""
    # Most names have neither a suffix nor a version.
    return split_suffixes(name)[0] if "." in name or "@" in name else name


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
_PLAIN_PART: Final = lazy_pattern(r"L?([1-9]\d{0,3})(?=[A-Za-z_])", re.ASCII)


def _last_part(name: str) -> str | None:
    """Return the last part of a C++ name of plain parts, which needs no demangler: `_ZL5table`, `_ZN2nsL5tableE`.

    None for all other names, such as those of templates, functions and Rust.
    """
    is_nested = name.startswith("_ZN")
    at, part = 2 + is_nested, ""
    while (match := _PLAIN_PART.match(name, at)) is not None and (is_nested or not part):
        at = match.end() + int(match[1])
        part = name[match.end() : at]
    is_whole = len(name) == at + is_nested and name.endswith("E" if is_nested else part) and name.isascii()
    # The last part of a name of Rust may be a hash, and an unnamed namespace is shown by other words.
    return part if is_whole and part and "17h" not in name and not part.startswith("_GLOBAL__N") else None


# The end of the name of a static in a function: its length and itself, with tags and a number of its own.
_STATIC_OF_FUNCTION: Final = lazy_pattern(r"E(?=([1-9]\d{0,3})([A-Za-z_]))", re.ASCII)
_BEHIND_STATIC: Final = lazy_pattern(r"(?:B\d+\w+?)*(?:_\d|__\d+_)?", re.ASCII)
_PLAIN_FUNCTION: Final = lazy_pattern(r"\d+([A-Za-z_]\w*)", re.ASCII)


def _split_static(name: str) -> tuple[str, str] | None:
    """Split the linker name of a static of a function of C++ into that of the function and its own."""
    if not name.startswith("_ZZ"):
        return None
    for match in _STATIC_OF_FUNCTION.finditer(name):
        start = match.end() + len(match[1])
        end = start + int(match[1])
        if end <= len(name) and _BEHIND_STATIC.fullmatch(name, end):
            return name[3 : match.start()], name[start:end]
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
        hash_match = re.search(_DEMANGLED_RUST_HASH, name) if name[-19:-16] == "::h" else None
        return _learned.get(name, name) if hash_match is None else _without_rust_hash(hash_match[1], name)
    return _demangled(name)


def shown_names(names: Iterable[str]) -> list[str]:
    """Return what `shown_name` does of many names: an ordinary one of C++ takes half of the time so."""
    demangle: Callable[[str], str | None] | None = None
    shown = []
    for name in names:
        # It begins with `_Z`, and has no suffix and no hash of Rust.
        is_ordinary = "_Z" <= name < "_[" and not ("." in name or "@" in name or "17h" in name)
        if is_ordinary and _is_short(name) and len(name) <= _LONGEST_NAME and name.isascii():
            demangle = demangle or _demangler("Z")
            try:
                text = demangle(name)
            except ValueError:
                text = name
            shown.append(text if text and len(text) <= _LONGEST_SHOWN else name)
        else:
            shown.append(shown_name(name))
    return shown


@lru_cache(1 << 17)
def _demangled(name: str) -> str:
    # An answer shows the variables of its ledger again in their pages.
    if len(name) > _LONGEST_NAME or not name.isascii():
        return name
    # Most names have no suffix, and the search for its first character is faster than that for the suffix.
    stem = split_suffixes(name)[0] if "." in name or "@" in name else name
    if not is_tame(stem):
        return name
    try:
        demangled = _demangler(stem[1])(stem)
    except ValueError:
        return name
    if not demangled or len(demangled) > _LONGEST_SHOWN:
        return name
    hash_match = re.search(_RUST_HASH, stem) if "17h" in stem else None
    return (demangled if hash_match is None else _without_rust_hash(hash_match[1], demangled)) + name[len(stem) :]


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


def _unescaped(match: re.Match[str]) -> str:
    word, code = match.groups()
    if word is not None:
        return _RUST_ESCAPES[word]
    if code is None:
        return "::"
    letter = chr(int(code, 16)) if int(code, 16) < 0x110000 else ""
    return letter if letter.isprintable() and letter else match.group()


def foreign_names(names: Iterable[str]) -> dict[Language, list[str]]:
    """Return by language the names that a tool must demangle, without those that were learned."""
    # One search over joined names is much faster than a loop over thousands of them.
    waiting = iter(names)
    marked: dict[Language, dict[str, None]] = {}
    while some := list(islice(waiting, _JOINED_COUNT)):
        text = "\n".join(["", *some])
        for language, (marks, pattern) in _FOREIGN.items():
            # One letter is searched for many times as quickly as two.
            if any(mark[0] in text and mark in text for mark in marks):
                names_found = re.findall(pattern, text, re.MULTILINE | re.ASCII)
                marked.setdefault(language, {}).update(dict.fromkeys(names_found))
    unknown = {language: [name for name in names if name not in _learned] for language, names in marked.items()}
    return {language: names for language, names in unknown.items() if names}


def learn_names(shown: Mapping[str, str]) -> None:
    """Remember the text to show for names that a tool has demangled."""
    for name, text in shown.items():
        _learned[name] = text if len(text) <= _LONGEST_SHOWN else name
