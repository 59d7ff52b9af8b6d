"""A bound of the length of a demangled name, computed before demangling: a name of 200 bytes can become 38 MB of text.

Both manglings refer back to earlier parts of the name, and a reference to a reference doubles the text. A Rust name is
parsed, each part once, and a reference costs the length of its target. A C++ name is not parsed: its references are
counted by target.

Source: Rust RFC 2603 (Symbol name mangling v0); Itanium C++ ABI, section 5.1.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ("is_tame",)

# None of 190,000 names of node and rustc becomes longer than 11 KB; the bound here is up to 20 times the true length.
_MOST_RUST_BYTES: Final = 1 << 18
# The bound from the numbers of references can be far above the true length.
_MOST_CPP_BITS: Final = 23
_MOST_CPP_BYTES: Final = 1 << _MOST_CPP_BITS


def is_tame(name: str) -> bool:
    """Return whether a mangled name, C++ or Rust v0, can be demangled within the bounds."""
    # Each reference of C++ ends with "_", and copies at most the text before it; only packs copy more. Most names have
    # so few references that nothing more needs to be computed.
    if (
        len(name).bit_length() + name.count("_") <= _MOST_CPP_BITS
        and name.startswith("_Z")
        # A pack copies a template parameter: `T_`.
        and not (
            "T" in name
            and ("Dp" in name or "sp" in name or "fl" in name or "fr" in name or "fL" in name or "fR" in name)
        )
    ):
        return True
    return _RustLength(name).is_tame() if name.startswith("_R") else _cpp_bytes(name) <= _MOST_CPP_BYTES


# --- C++ --------------------------------------------------------------------------------------------------------------

_CAPITALS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PACK: Final = re.compile(r"Dp|sp|f[lrLR]")


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
        self._known: dict[tuple[str, int], tuple[int, int] | None] = {}

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
        found = re.compile(r"([0-9a-zA-Z]{0,16})_").match(self._text, self._at)
        if found is None:
            raise _UnreadableError
        self._at = found.end()
        number = 0
        for digit in found[1]:
            number = number * 62 + _DIGITS.index(digit)
        return number + 1 if found[1] else 0

    def _once(self, kind: str, read: Callable[[], int]) -> int:
        """Read the part that begins here, or return the known bound of it."""
        key = kind, self._at
        if key in self._known:
            known = self._known[key]
            if known is None:
                raise _UnreadableError
            self._at, size_bytes = known
            return size_bytes
        self._known[key] = None
        # A number above the limit is set to just above it, so that numbers stay small.
        size_bytes = min(read(), _MOST_RUST_BYTES + 1)
        self._known[key] = self._at, size_bytes
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
