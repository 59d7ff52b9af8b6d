"""How long a mangled name becomes at most, told before it is demangled: names of 200 bytes can become 38 MB of text.

Both manglings refer back to what was said before, and a reference to a reference doubles. A Rust name is read, each
part once, and a reference costs what its target came to. A C++ name is not: its references are counted by target.

Source: Rust RFC 2603 (Symbol name mangling v0); Itanium C++ ABI, section 5.1.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ("is_tame",)

# Of 190,000 names of node and rustc none becomes longer than 11 KB; it counts for up to 20 times as much here.
_MOST_RUST_BYTES: Final = 1 << 18
# What is told from the numbers of references may be too much by far.
_MOST_CPP_BITS: Final = 23
_MOST_CPP_BYTES: Final = 1 << _MOST_CPP_BITS


def is_tame(name: str) -> bool:
    """Tell whether a mangled name, C++ or Rust v0, can be demangled within bounds."""
    # Each reference of C++ ends with "_", and copies at most what there is already; only packs copy more. Most names
    # have so few that nothing needs to be read.
    if (
        len(name).bit_length() + name.count("_") <= _MOST_CPP_BITS
        and name.startswith("_Z")
        and not ("Dp" in name or "sp" in name or "fl" in name or "fr" in name or "fL" in name or "fR" in name)
    ):
        return True
    return _RustLength(name).is_tame() if name.startswith("_R") else _cpp_bytes(name) <= _MOST_CPP_BYTES


# --- C++ --------------------------------------------------------------------------------------------------------------

_CAPITALS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PACK: Final = re.compile(r"Dp|sp|f[lrLR]")


def _cpp_bytes(name: str) -> int:
    """Give a bound of what a C++ name can be expanded to.

    A substitution has a number and refers only to lower ones: whatever is expanded follows a chain of references, down
    from number to number, with one of so many references of each.
    """
    targets: Counter[str] = Counter()
    doubling_count = parameter_count = 0
    # Every reference ends with "_"; where its number begins is certain only if a single letter can begin it.
    for run in name.split("_")[:-1]:
        tail = run[len(run.rstrip(_CAPITALS)) :]
        parameter_count += "T" in tail
        start_count = tail.count("S") + tail.count("T")
        if start_count == 1 and "S" in tail:
            number = tail.partition("S")[2]
            # `S_`, `S0_` and `S00_`: the last two are the same.
            targets[number.lstrip("0") or number[:1]] += 1
        elif start_count:
            doubling_count += 1
    # A pack is expanded where a template parameter stands in it.
    pack_count = min(len(_PACK.findall(name)), parameter_count, 8)
    bound: int = len(name) ** (pack_count + 1) << min(doubling_count, 64)
    for count in targets.values():
        bound *= count + 1
    return bound


# --- Rust -------------------------------------------------------------------------------------------------------------

_DIGITS: Final = {
    digit: value for value, digit in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
_MOST_DIGITS: Final = 16
# What one part adds beside its names: `{closure#4294967295}`, ` as `, `extern "..." `.
_PART_BYTES: Final = 32
_LIFETIME_BYTES: Final = 8
# A letter of the encoding may take four bytes when it is decoded.
_LETTER_BYTES: Final = 4

# What follows the letter of each path and type, as names of the methods that read it.
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
    "F": ("_binder", "_unsafe", "_abi", "_items", "_item"),
    "D": ("_binder", "_traits", "_lifetime"),
    "B": ("_reference",),
}


class _UnreadableError(Exception):
    """The name is not what the grammar has: no demangler should see it."""


class _RustLength:
    """Reads a Rust v0 name. Each method reads one part from `_at` on, and gives how many bytes it shows at most."""

    def __init__(self, name: str) -> None:
        self._text = name[2:]
        self._at = 0
        # By where they begin, items and what they refer to: where they end, and how long they are; None while read.
        self._known: dict[tuple[str, int], tuple[int, int] | None] = {}

    def is_tame(self) -> bool:
        # A name of few references and without lifetimes need not be read: at worst, each doubles the whole.
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
        """Step over a letter if it is there."""
        is_there = self._text.startswith(letter, self._at)
        self._at += is_there
        return is_there

    def _number(self) -> int:
        """Read a number in base 62, of which `_` is the first and `0_` the second."""
        end = self._text.find("_", self._at, self._at + _MOST_DIGITS + 1)
        if end < 0:
            raise _UnreadableError
        digits = self._text[self._at : end]
        self._at = end + 1
        number = 0
        for digit in digits:
            if digit not in _DIGITS:
                raise _UnreadableError
            number = number * 62 + _DIGITS[digit]
        return number + 1 if digits else 0

    def _once(self, kind: str, read: Callable[[], int]) -> int:
        """Read what stands here, unless that was done before."""
        key = kind, self._at
        if key in self._known:
            known = self._known[key]
            if known is None:
                raise _UnreadableError
            self._at, size_bytes = known
            return size_bytes
        self._known[key] = None
        # More than the cap is as good as the cap: numbers stay small.
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
        start = self._at
        end = self._text.find("_", start)
        if not letter.islower() or end < 0:
            raise _UnreadableError
        self._at = end + 1
        return _PART_BYTES + _LETTER_BYTES * (end - start)

    def _fields(self) -> int:
        """Read the fields of a constant: none, those of a tuple, or those with names."""
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

    def _unsafe(self) -> int:
        return int(self._takes("U"))

    def _abi(self) -> int:
        if not self._takes("K"):
            return 0
        return 1 if self._takes("C") else self._identifier()
