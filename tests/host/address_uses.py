"""Programs that do something with the address of a constant of a header, a kind each: some of it tells copies apart.

The kinds are in `address_uses.txt`. `benchmarks/remedies.py` tries all of them with all compilers and options.
"""

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Final

from tests.host.random_headers import Item, Program

_OF_C, _, _OF_CXX = (Path(__file__).parent / "address_uses.txt").read_text().partition("\nC++\n")
_OF_C, _, _ALONE = _OF_C.partition("\nALONE\n")
KINDS: Final = {False: _OF_C.split("\n\n")[1:], True: _OF_CXX.strip("\n").split("\n\n")}
"""The kinds by whether only C++ has them: a use, and what stands before the variable."""
ALONE: Final = _ALONE.strip("\n").split("\n\n")
"""Those of which each has a program of its own."""
# Those of x86-64 alone.
_ASSEMBLY: Final = re.compile(r'__asm__ volatile\("(?!")')
# Those of clang alone.
_CONVENTIONS: Final = re.compile(r"regcall|preserve_most")
# A function that returns the address beside a number has to follow the variable.
_AFTER: Final = "// after "
# Another type and contents than those of the eight numbers.
_DECLARED: Final = "// declares "
_LEVELS: Final = ("-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -flto", "-O2 -march=haswell", "-O2 -fno-inline")
_PLACES: Final = ("-fPIC", "-fno-pie -no-pie", "")
WAYS: Final = tuple(f"{level} {place}".strip() for level, place in product(_LEVELS, _PLACES))


def kinds_for(compiler: str, *, is_cxx: bool) -> list[str]:
    """Return the kinds that a compiler can build."""
    kinds = [one for one in KINDS[is_cxx] if "arm64" not in compiler or _ASSEMBLY.search(one) is None]
    return [one for one in kinds if compiler == "clang" or _CONVENTIONS.search(one) is None]


def _item(number: int, kind: str, *, is_cxx: bool) -> Item:
    text = kind.strip("\n").replace("NAME", f"t{number}").replace("_ID", f"_{number}")
    use, _, before = text.partition("\n")
    lines = before.splitlines()
    after = "".join(f"\n{line.removeprefix(_AFTER)}" for line in lines if line.startswith(_AFTER))
    before = "".join(f"{line}\n" for line in lines if not line.startswith((_AFTER, _DECLARED)))
    declared, contents = f"const int t{number}[8]", f"{{{0x21212121 + number}, 0x636261, 3, 4, 5}}"
    for line in lines:
        if line.startswith(_DECLARED):
            declared, _, contents = line.removeprefix(_DECLARED).partition(" = ")
    defined = f"{declared} = {contents};"
    remedied = f"inline {defined}" if is_cxx else f"extern {declared};"
    return Item(f"t{number}", f"static {defined}{after}", remedied + after, "" if is_cxx else defined, use, before)


def program_of_uses(compiler: str, options: str, first: int, count: int, *, is_cxx: bool = False) -> Program:
    """Return a program of three source files that all have some kinds of uses: `count` of them from `first` on."""
    return program_of_kinds(compiler, options, kinds_for(compiler, is_cxx=is_cxx)[first : first + count], is_cxx=is_cxx)


def program_of_kinds(compiler: str, options: str, kinds: Iterable[str], *, is_cxx: bool = False) -> Program:
    """Return a program of three source files that all have some kinds of uses."""
    if "arm64" in compiler:
        options = options.replace("haswell", "armv8.2-a")
    items = [_item(number, kind, is_cxx=is_cxx) for number, kind in enumerate(kinds)]
    return Program(
        compiler, is_cxx, options, items, [f"#define U {unit}\n" for unit in range(3)], [range(len(items))] * 3
    )
