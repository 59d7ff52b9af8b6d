"""Where the files of a process were loaded, by the addresses in its heap profile, and the functions at addresses.

Most functions of a file allow one bias or none, because a bias is a number of whole pages. So the functions that the
profile names find the bias of their file. A stripped file without such functions is placed by its calls: the addresses
of a stack follow call instructions, and at another bias they do not.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from typing import Final

from footprint.elf.abi import EM_386, EM_X86_64, ET_EXEC
from footprint.elf.functions import Functions, FunctionStarts
from footprint.elf.image import Image
from footprint.elf.names import shown_name
from footprint.errors import InputError, Note
from footprint.heap.profile import Frame
from footprint.members import NamedTuple
from footprint.text.units import first_of

STARTS_AT: Final = "[function at "
"""The beginning of the name of a function that no symbol covers: the vaddr of its first instruction follows."""

_PAGE_BYTES: Final = 4096
_PF_X: Final = 1
# No function is longer than this, and no more votes are needed to find a bias.
_MOST_PAGES: Final = 256
_MOST_VOTES: Final = 1 << 18
# Of any other bias so many times as many addresses do not fit: some do not fit at the true one, since a function that
# was inlined there has a copy elsewhere.
_MISSES: Final = 2
# A file that nobody named must have so many of its functions at the addresses of the profile.
_LEAST_FIT_PERCENT: Final = 80
# Among 30 addresses of code one follows a call: so many are enough to find one page among thousands.
_LEAST_CALLS: Final = 4
_MOST_CALLS: Final = 64
# The distances of the first byte of an indirect call from the next instruction.
_INDIRECT_CALLS: Final = (2, 3, 4, 6, 7)


class Origin(StrEnum):
    """How a file is known to be of the process."""

    NAMED = "named"
    """The user named it, or the process maps it."""
    COMMAND = "command"
    """It is the program of the command in the profile."""
    PROFILE = "profile"
    """It is at a path in the profile."""


class Binary(NamedTuple):
    """One file with code.

    Attributes:
        path: Its path, by which its bytes are charged.
        image: The file.
        functions: Its functions, from its debug file where it has one.
        starts: Its functions by its unwind tables, for those without a symbol.
        origin: How it is known to be of the process. If nobody named it, nearly all of its functions must have the
            addresses of the profile.
    """

    path: str
    image: Image
    functions: Functions
    starts: FunctionStarts | None = None
    origin: Origin = Origin.NAMED

    def name_at(self, vaddr: int) -> str | None:
        """Return the name of the function at an address; where no symbol covers it, the place where it starts."""
        try:
            function = self.functions.at(vaddr)
        except InputError:
            return None
        if function is not None:
            return function.name
        span = self.starts.at(vaddr) if self.starts else None
        return None if span is None else f"{STARTS_AT}{span[0]:#x}]"


class Placed(NamedTuple):
    """A file, and where its code was loaded; the range is half-open."""

    start_addr: int
    end_addr: int
    bias_addr: int
    binary: Binary

    def name_at(self, addr: int) -> str | None:
        """Return the name of the function at an address of the process."""
        return self.binary.name_at(addr - self.bias_addr)


def place_files(frames: Sequence[Frame], binaries: Sequence[Binary], name: str, notes: list[Note]) -> list[Placed]:
    """Find where files were loaded; `name` is the name of the profile in notes."""
    named: dict[str | None, dict[str, set[int]]] = {}
    unnamed: dict[str | None, set[int]] = {}
    for frame in frames:
        if frame.addr is not None and frame.function is not None:
            wanted = named.setdefault(frame.object, {})
            wanted.setdefault(_plain(frame.function), set()).add(frame.addr)
        elif frame.addr is not None:
            unnamed.setdefault(frame.object, set()).add(frame.addr)
    placed = []
    for binary in binaries:
        # A frame with a source line has no object, although others of the same file have one.
        wanted = {**named.get(None, {}), **named.get(binary.path, {})}
        bias_addr = _bias(binary, wanted)
        if bias_addr is None:
            bias_addr = _bias_by_calls(binary, unnamed.get(binary.path, ()))
        if bias_addr is not None:
            placed += [
                Placed(bias_addr + load.vaddr, bias_addr + load.vaddr + load.memory_bytes, bias_addr, binary)
                for load in binary.image.loads
                if load.flags & _PF_X
            ]
    notes += _notes(binaries, placed, name, {addr for addrs in named.get(None, {}).values() for addr in addrs})
    return placed


def _notes(binaries: Sequence[Binary], placed: Sequence[Placed], name: str, addrs: set[int]) -> Iterator[Note]:
    """Yield whether files tell the objects of functions without one, which are at these addresses."""
    first = binaries[0]
    if not addrs or first.origin is Origin.PROFILE:
        return
    is_of_command = first.origin is Origin.COMMAND
    which = ", the program of its command" if is_of_command else ""
    if not placed:
        files = first_of([binary.path for binary in binaries if binary.origin is first.origin], 1)
        cause = "it is of another build or process, or they fit at several places, of which no call tells the right one"
        yield Note("heap-binary-misfit", name, f"its functions have no certain address in {files}{which}: {cause}")
    elif is_of_command and any(
        p.binary is first and p.start_addr <= addr < p.end_addr for p in placed for addr in addrs
    ):
        detail = f"{first.path}{which}, tells the objects of its functions: they have their addresses there"
        yield Note("heap-binary-taken", name, detail)


# --- by the functions that the profile names --------------------------------------------------------------------------


def _bias(binary: Binary, wanted: dict[str, set[int]]) -> int | None:
    """Return the bias at which most functions of a file have their addresses; None if it does not fit."""
    for is_demangled in (False, True):
        # Names of C++ are many, and are demangled only where others find nothing.
        if is_demangled and not any("::" in name or "(" in name for name in wanted):
            continue
        functions = _named(binary, wanted, is_demangled=is_demangled)
        bias_addr = _voted(binary, wanted, functions)
        if bias_addr is not None:
            return bias_addr if binary.origin is Origin.NAMED or _has_fit(wanted, functions, bias_addr) else None
    return None


def _voted(binary: Binary, wanted: dict[str, set[int]], functions: "Sequence[_Function]") -> int | None:
    """Return the bias that fits the addresses best; None where another fits nearly as well.

    A long function fits at the biases of several pages. Only at the true one do all addresses fit, so what decides is
    how many do not.
    """
    votes = set(islice(_votes(wanted, functions), _MOST_VOTES))
    fits = Counter(bias_addr for _, bias_addr in votes)
    if binary.image.type == ET_EXEC:
        return 0 if fits[0] else None
    best = fits.most_common(2)
    if not best:
        return None
    (bias_addr, most), second = best[0], best[1][1] if len(best) == 2 else 0
    addrs = {addr for addr, _ in votes}
    count = len(addrs)
    if most == second == count:
        return _alone_behind_calls(binary, addrs, [bias_addr for bias_addr, fit in fits.items() if fit == count])
    is_unlike = second * 2 <= most or count - second > _MISSES * (count - most)
    return bias_addr if is_unlike else None


def _votes(wanted: dict[str, set[int]], functions: "Iterable[_Function]") -> Iterator[tuple[int, int]]:
    """Yield the addresses of the profile, each with the biases at which a function of the file has it."""
    for function, vaddr, size_bytes in functions:
        for addr in wanted[function]:
            nearest = (addr - vaddr) // _PAGE_BYTES * _PAGE_BYTES
            for step in range(min(size_bytes // _PAGE_BYTES, _MOST_PAGES) + 1):
                bias_addr = nearest - step * _PAGE_BYTES
                if bias_addr + vaddr <= addr < bias_addr + vaddr + size_bytes:
                    yield addr, bias_addr


def _has_fit(wanted: dict[str, set[int]], functions: "Iterable[_Function]", bias_addr: int) -> bool:
    """Return whether nearly all addresses of functions that a file has lie in these functions."""
    addrs: set[int] = set()
    fitting: set[int] = set()
    for function, vaddr, size_bytes in functions:
        for addr in wanted[function]:
            addrs.add(addr)
            if bias_addr + vaddr <= addr < bias_addr + vaddr + size_bytes:
                fitting.add(addr)
    return len(fitting) * 100 >= len(addrs) * _LEAST_FIT_PERCENT


_Function = tuple[str, int, int]
"""The name of a function as profiles write it, its vaddr, and its size."""


def _named(binary: Binary, wanted: Collection[str], *, is_demangled: bool) -> list[_Function]:
    """Return the functions of a file that a profile names.

    Most programs have functions of C, and few are enough. So names of C++, which are many, are rarely demangled.
    """
    functions = []
    with suppress(InputError):
        # Most names of a file are of no call.
        for name, vaddr, size_bytes in binary.functions.extents(None if is_demangled else wanted):
            if not is_demangled and name not in wanted and "@" not in name:
                continue
            if name.startswith(("_Z", "_R")) == is_demangled:
                plain = _plain(shown_name(name)) if is_demangled else name.partition("@")[0]
                if plain in wanted and size_bytes:
                    functions.append((plain, vaddr, size_bytes))
    return functions


def _plain(name: str) -> str:
    """Remove the spaces of a name: demanglers differ in where they put them."""
    return name.replace(" ", "")


# --- by its calls -----------------------------------------------------------------------------------------------------


def _bias_by_calls(binary: Binary, addrs: Iterable[int]) -> int | None:
    """Return the only bias at which all addresses of a file follow calls; None where there is none, or several."""
    image = binary.image
    if image.machine not in {EM_386, EM_X86_64} or not binary.starts:
        return None
    wanted = sorted(addrs)[:_MOST_CALLS]
    if image.type == ET_EXEC:
        return 0 if wanted and _follow_calls(binary, wanted, 0) else None
    if len(wanted) < _LEAST_CALLS:
        return None
    biases = []
    for load in image.loads:
        if load.flags & _PF_X:
            first = (wanted[0] - load.vaddr) // _PAGE_BYTES * _PAGE_BYTES
            pages = range(load.file_bytes // _PAGE_BYTES + 1)
            biases += [bias for page in pages if _follow_calls(binary, wanted, bias := first - page * _PAGE_BYTES)]
    return biases[0] if len(set(biases)) == 1 else None


def _alone_behind_calls(binary: Binary, addrs: Iterable[int], biases: Sequence[int]) -> int | None:
    """Return the only one of some biases at which all addresses follow calls; None where there is none, or several."""
    if binary.image.machine not in {EM_386, EM_X86_64} or not binary.starts:
        return None
    wanted = sorted(addrs)[:_MOST_CALLS]
    biases_that_fit = [bias_addr for bias_addr in biases[: 2 * _MOST_PAGES] if _follow_calls(binary, wanted, bias_addr)]
    return biases_that_fit[0] if len(biases_that_fit) == 1 else None


def _follow_calls(binary: Binary, addrs: Sequence[int], bias_addr: int) -> bool:
    """Return whether all addresses follow a call, or are the last byte of one, as Valgrind writes them."""
    return any(all(_follows_call(binary, addr - bias_addr + last) for addr in addrs) for last in (0, 1))


def _follows_call(binary: Binary, vaddr: int) -> bool:
    """Return whether a call ends at an address: to a place, which must be in a function, or to what a word holds."""
    image, starts = binary.image, binary.starts
    load = next((load for load in image.loads if load.vaddr <= vaddr - 7 < vaddr <= load.vaddr + load.file_bytes), None)
    if load is None or starts is None or starts.at(vaddr - 1) is None:
        return False
    end = vaddr - load.vaddr + load.offset
    code = bytes(image.data[end - 7 : end])
    if len(code) == 7 and code[-5] == 0xE8:
        distance = int.from_bytes(code[-4:], "little", signed=True)
        if starts.at(vaddr + distance) is not None:
            return True
    # The middle bits of the second byte tell a call from a jump.
    return len(code) == 7 and any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 for size in _INDIRECT_CALLS)
