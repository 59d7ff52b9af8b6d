"""The calls that are timed inside a fresh interpreter: `python calls.py READER FILE...`.

Each reader is imported and then asked about the files; both times are printed as JSON, in seconds. `unstripped` is no
reader: it prints which of the files is the largest with a `.symtab`.
"""

import json
import sys
from collections.abc import Callable
from time import perf_counter


def _footprint() -> Callable[[list[str]], object]:
    import footprint  # noqa: PLC0415 # what is timed

    symbols = footprint.symbols
    return lambda paths: symbols(*paths)


def _pyelftools() -> Callable[[list[str]], object]:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 # what is timed
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    def count(path: str) -> int:
        with open(path, "rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            return sum(1 for _ in table.iter_symbols()) if isinstance(table, SymbolTableSection) else 0

    return lambda paths: [count(path) for path in paths]


def _lief() -> Callable[[list[str]], object]:
    import lief  # noqa: PLC0415 # what is timed

    return lambda paths: [lief.ELF.parse(path) for path in paths]


_READERS = {"footprint": _footprint, "pyelftools": _pyelftools, "LIEF": _lief}


def _unstripped(paths: list[str]) -> str:
    from footprint.elf.image import read_image  # noqa: PLC0415 # not always asked
    from footprint.errors import FootprintError  # noqa: PLC0415
    from footprint.system.files import open_input  # noqa: PLC0415

    for path in paths:
        try:
            if any(section.name == ".symtab" for section in read_image(open_input(path), path).sections):
                return path
        except FootprintError:
            continue
    return ""


def _time(reader: str, paths: list[str]) -> dict[str, float]:
    start = perf_counter()
    read = _READERS[reader]()
    imported = perf_counter()
    read(paths)
    return {"import": imported - start, "call": perf_counter() - imported}


if __name__ == "__main__":
    if sys.argv[1] == "unstripped":
        print(_unstripped(sys.argv[2:]))
    else:
        print(json.dumps(_time(sys.argv[1], sys.argv[2:])))
