"""Remedies for slow starts, really applied: what was predicted, and what the loader and the kernel count.

    python benchmarks/start_remedies.py [--turns 101] [--only WORD]

Each program is built twice, without and with the remedy of a finding. Lookups, files tried and relative relocations are
those of the loader under LD_DEBUG; page faults and processor time up to the entry point are those of the kernel, of
starts in turns. The time is the median of the differences of neighbouring starts, with the middle half of them in
brackets; it is compared with the saving that the finding names. It needs gcc and glibc; a library that is not there is
left out. The prices are those of `doctor --calibrate`, where it ran.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).parents[1]))

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import rule_named
from footprint.loader.target import Environment
from footprint.process.held_program import start_once
from footprint.sources.programs import Programs
from tests.loader_counts import counted_by_loader, predicted

_LIBRARIES: Final = Path("/usr/lib/x86_64-linux-gnu")


class Build(Protocol):
    """Builds a program in a folder, with a remedy or without it."""

    def __call__(self, folder: Path, *, is_applied: bool) -> str:
        """Return the path of the program."""


class Remedy(NamedTuple):
    """A remedy for a program that is made for it.

    Attributes:
        name: What is done.
        rule: The rule whose finding asks for it.
        build: Builds the program in a folder, with the remedy or without it, and returns its path.
    """

    name: str
    rule: str
    build: Build


def link(folder: Path, output: str, source: str, *options: str) -> str:
    """Compile a library, or what is called `program`, in a folder; it searches its libraries there last."""
    (folder / f"{output}.c").write_text(source)
    kind = [] if output == "program" else ["-shared", "-fPIC", f"-Wl,-soname,{output}"]
    command = ["gcc", "-w", "-o", output, *kind, "-Wl,--no-as-needed", f"{output}.c", *options, f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return str(folder / output)


def functions(count: int) -> str:
    """Return the source of some functions, and of a table with their addresses."""
    table = ", ".join(f"f{n}" for n in range(count))
    return (
        "\n".join(f"int f{n}(void) {{ return {n}; }}" for n in range(count)) + f"\nint (*table[])(void) = {{{table}}};"
    )


def bound_lazily(count: int) -> Build:
    """Return what builds a program with so many calls through the PLT."""

    def build(folder: Path, *, is_applied: bool) -> str:
        link(folder, "liba.so", functions(count))
        calls = " + ".join(f"f{n}()" for n in range(count))
        declared = " ".join(f"int f{n}(void);" for n in range(count))
        source = f"{declared} int main(int count, char **words) {{ return count > 1 ? {calls} : 0; }}"
        return link(folder, "program", source, "liba.so", "-Wl,-z,lazy" if is_applied else "-Wl,-z,now")

    return build


def own_names(count: int, library_count: int, option: str) -> Build:
    """Return what builds a program with a library that looks up its own names behind others."""

    def build(folder: Path, *, is_applied: bool) -> str:
        (folder / "map").write_text("{ global: a; local: *; };")
        others = [link(folder, f"lib{n}.so", f"int other{n};") for n in range(library_count)]
        exported = '__attribute__((visibility("default"))) int a(void) { return table[0](); }'
        link(folder, "liba.so", f"{functions(count)}\n{exported}", *([option] if is_applied else []))
        source = "int a(void); int main(void) { return a(); }"
        return link(folder, "program", source, *map(os.path.basename, others), "liba.so")

    return build


def filtered(count: int, library_count: int) -> Build:
    """Return what builds a program whose lookups are asked of libraries with one or the other table of names."""

    def build(folder: Path, *, is_applied: bool) -> str:
        style = f"-Wl,--hash-style={'gnu' if is_applied else 'sysv'}"
        others = [
            link(folder, f"lib{n}.so", "\n".join(f"int other_{n}_{m};" for m in range(200)), style)
            for n in range(library_count)
        ]
        link(folder, "liba.so", functions(count), "-Wl,--hash-style=gnu,-Bsymbolic")
        declared = " ".join(f"int f{n}(void);" for n in range(count))
        source = f"{declared} int (*table[])(void) = {{{', '.join(f'f{n}' for n in range(count))}}};"
        names = [*map(os.path.basename, others), "liba.so"]
        return link(folder, "program", f"{source}\nint main(void) {{ return table[0](); }}", *names)

    return build


def searched(folder_count: int, library_count: int) -> Build:
    """Return what builds a program that searches its libraries in folders without any first."""

    def build(folder: Path, *, is_applied: bool) -> str:
        empty = [folder / f"empty{n}" for n in range(folder_count)]
        for path in empty:
            path.mkdir()
        names = [os.path.basename(link(folder, f"lib{n}.so", f"int other{n};")) for n in range(library_count)]
        paths = [] if is_applied else [f"-Wl,--disable-new-dtags,-rpath,{path}" for path in empty]
        return link(folder, "program", "int main(void) { return 0; }", *paths, *names)

    return build


def packed(count: int) -> Build:
    """Return what builds a program with a table of addresses."""

    def build(folder: Path, *, is_applied: bool) -> str:
        source = (
            f"static int a[9]; void *table[{count}] = {{{'a + 4,' * count}}}; int main(void) {{ return !table[7]; }}"
        )
        return link(folder, "program", source, *["-Wl,-z,pack-relative-relocs"] * is_applied)

    return build


def opened(library: str, function: str, option: str = "-fplt") -> Build:
    """Return what builds a program that calls one function of a library of the machine."""

    def build(folder: Path, *, is_applied: bool) -> str:
        source = f"void *{function}(); int main(int count, char **words) {{ return count > 1 && {function}() != 0; }}"
        if not is_applied:
            return link(folder, "program", source, option, str(_LIBRARIES / library))
        source = f"""#include <dlfcn.h>
int main(int count, char **words) {{
    void *(*called)() = count > 1 ? dlsym(dlopen("{library}", RTLD_LAZY), "{function}") : 0;
    return called && called() != 0;
}}"""
        return link(folder, "program", source, option)

    return build


REMEDIES: Final = (
    Remedy("`-z lazy`, 3,000 calls", "bound-at-start", bound_lazily(3_000)),
    Remedy("`-z lazy`, 600 calls", "bound-at-start", bound_lazily(600)),
    Remedy("`-fvisibility=hidden`, 10,000 own names", "own-lookups", own_names(10_000, 0, "-fvisibility=hidden")),
    Remedy("`-Bsymbolic`, 10,000 own names", "own-lookups", own_names(10_000, 0, "-Wl,-Bsymbolic")),
    Remedy("version script, 2,500 own names", "own-lookups", own_names(2_500, 0, "-Wl,--version-script=map")),
    Remedy(
        "`-fvisibility=hidden`, 1,000 own names behind 20 libraries",
        "own-lookups",
        own_names(1_000, 20, "-fvisibility=hidden"),
    ),
    Remedy("`--hash-style=gnu`, 3,000 lookups in 1 library", "sysv-hash", filtered(3_000, 1)),
    Remedy("`--hash-style=gnu`, 3,000 lookups in 10 libraries", "sysv-hash", filtered(3_000, 10)),
    Remedy("RPATH without 20 empty folders, 40 libraries", "empty-search-path", searched(20, 40)),
    Remedy("RPATH without 5 empty folders, 20 libraries", "empty-search-path", searched(5, 20)),
    Remedy("`-z pack-relative-relocs`, 100,000 addresses", "unpacked-relocations", packed(100_000)),
    Remedy("dlopen of libcurl at its call", "one-function", opened("libcurl.so.4", "curl_version")),
    Remedy("dlopen of libxml2", "one-function", opened("libxml2.so.2", "xmlNewParserCtxt")),
    Remedy("dlopen of libcrypto", "one-function", opened("libcrypto.so.3", "OPENSSL_init")),
    Remedy("dlopen of libgd, `-fno-plt`", "one-function", opened("libgd.so.3", "gdVersionString", "-fno-plt")),
)


def saving_us(graph: DependencyGraph, rule: str) -> int:
    """Add up what the findings of a rule in the files that were built would save."""
    return sum(finding.saving_us for finding in rule_named(rule).find(graph))


def measured(remedy: Remedy, folder: Path, turn_count: int) -> Iterator[str]:
    """Build the program both ways, and return the cells of its row."""
    paths = []
    for is_applied in (False, True):
        (folder / str(is_applied)).mkdir()
        paths.append(remedy.build(folder / str(is_applied), is_applied=is_applied))
    graphs = [Programs(environment=Environment()).graph(path) for path in paths]
    expected = [predicted(graph) for graph in graphs]
    counted = [counted_by_loader(path, folder) for path in paths]
    yield remedy.name
    cells = []
    for figure, word in (
        ("lookup_count", "lookups"),
        ("tried_count", "files tried"),
        ("relative_count", "relative relocations"),
    ):
        less = [getattr(before, figure) - getattr(after, figure) for before, after in (expected, counted)]
        mark = "" if less[0] == less[1] else f" (counted {less[1]:,})"
        cells += [f"{less[0]:,} {word}{mark}"] if max(less) > 0 else []
    yield ", ".join(cells) or "-"
    starts = [[start_once(path) for path in paths] for _ in range(turn_count)]
    faults = [sum(graph.start_page_faults) for graph in graphs]
    yield f"{faults[0] - faults[1]:,}"
    yield f"{median([before.minor_faults - after.minor_faults for before, after in starts]):,.0f}"
    yield f"{saving_us(graphs[0], remedy.rule) - saving_us(graphs[1], remedy.rule):,}"
    low, middle, high = quantiles([before.processor_us - after.processor_us for before, after in starts])
    yield f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--turns", type=int, default=101, metavar="N")
    options.add_argument("--only", default="", metavar="WORD", help="only what has this in its name")
    chosen = options.parse_args()
    prices = Programs(environment=Environment()).graph("/usr/bin/env").start_prices
    machine = f"Linux {os.uname().release}, {prices.system}, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, prices {prices.origin}, {chosen.turns} turns\n")
    print("| what was done | less at each start | page faults less, predicted | measured", end="")
    print(" | us less, predicted | measured |\n|---|---|---|---|---|---|")
    for remedy in REMEDIES:
        if chosen.only in remedy.name:
            with TemporaryDirectory() as folder:
                try:
                    print("|", " | ".join(measured(remedy, Path(folder), chosen.turns)), "|", flush=True)
                except subprocess.CalledProcessError as error:
                    print(f"{remedy.name}: {error.stderr.decode(errors='replace')}", file=sys.stderr)


if __name__ == "__main__":
    main()
