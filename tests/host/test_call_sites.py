"""The calls of a function of another file, and their lines, in what several compilers make of one source."""

import shutil
import subprocess
from pathlib import Path

import pytest

from footprint.dwarf.code_lines import code_lines
from footprint.elf.call_sites import call_sites
from footprint.elf.image import Image, read_image
from footprint.model.finding import SourceLocation
from footprint.system.files import open_input

SOURCE = """\
int wanted(int), other(int);
static __attribute__((noinline)) int second(int n) {
    if (n > 3)
        return 2 * wanted(n) + other(n);
    return n;
}
__attribute__((noinline)) int third(int n) {
    return wanted(n + 1); /* a jump with -O2 */
}
int main(int argc, char **argv) {
    (void)argv;
    return second(argc) +
           third(other(argc));
}
"""
COMPILERS = ("gcc", "clang", "aarch64-linux-gnu-gcc")
OPTIONS = {
    "lazy": ("-O0", "-fPIE", "-pie", "-Wl,-z,lazy"),
    "now": ("-O2", "-fPIE", "-pie", "-Wl,-z,now"),
    "fixed": ("-O2", "-fno-pic", "-no-pie"),
    "old": ("-O1", "-gdwarf-4", "-gz"),
}
BUILDS = [(compiler, *OPTIONS[name]) for compiler in COMPILERS for name in OPTIONS]
BUILDS += [(compiler, "-O2", "-fuse-ld=lld", "-fcf-protection=full") for compiler in ("gcc", "clang")]
BUILDS += [(compiler, "-fno-plt", level) for compiler in COMPILERS for level in ("-O0", "-O2")]
BUILDS += [("gcc", "-O2", "-fcf-protection=full"), ("gcc", "-O1", "-flto", "-fno-inline")]


def build(compiler: str, folder: Path, *options: str, source: str = SOURCE) -> Image:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    (folder / "a.c").write_text("int wanted(int n) { return n; } int other(int n) { return n; }")
    (folder / "program.c").write_text(source)
    commands = (["-shared", "-fPIC", "-o", "liba.so", "a.c"], ["-o", "program", "program.c", "liba.so", *options])
    for command in commands:
        subprocess.run([compiler, *command], check=True, capture_output=True, cwd=folder)
    path = str(folder / "program")
    return read_image(open_input(path), path)


@pytest.mark.parametrize("options", BUILDS, ids=" ".join)
def test_each_call_is_found_with_its_function_and_line(options: tuple[str, ...], tmp_path: Path) -> None:
    compiler, *others = options
    program = build(compiler, tmp_path, "-g", *others)
    sites = call_sites(program, "wanted")
    lines = code_lines(program, [site.vaddr for site in sites])
    # `third` may be copied into `main`.
    assert {site.function for site in sites} - {"main"} == {"second", "third"}
    path = str(tmp_path / "program.c")
    assert set(lines.values()) == {SourceLocation(path, 4), SourceLocation(path, 8)}
    assert len(lines) == len(sites)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_calls_by_a_register_that_has_the_address_are_found(compiler: str, tmp_path: Path) -> None:
    source = """
int wanted(int);
int main(int count, char **words) {
    int sum = 0;
    for (int n = 0; words[n]; n++)
        sum += wanted(n);
    if (count > 3)
        sum += 2 * wanted(sum);
    return sum;
}"""
    program = build(compiler, tmp_path, "-g", "-O2", "-fno-plt", source=source)
    sites = call_sites(program, "wanted")
    assert {site.function for site in sites} == {"main"}
    assert {line.line for line in code_lines(program, [site.vaddr for site in sites]).values()} == {6, 8}


TAKEN = """
int wanted(int), (*taken)(int)IN_DATA;
int main(int count, char **words) {
    IN_CODE;
    return wanted(count);
}"""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("option", ["-fplt", "-fno-plt"])
@pytest.mark.parametrize(("in_data", "in_code"), [("", "taken = wanted"), (" = wanted", "")])
def test_where_the_address_is_taken_too_not_all_calls_are_known(
    compiler: str, option: str, in_data: str, in_code: str, tmp_path: Path
) -> None:
    source = TAKEN.replace("IN_DATA", in_data).replace("IN_CODE", in_code)
    assert call_sites(build(compiler, tmp_path, "-O2", "-fPIE", option, source=source), "wanted") == ()


@pytest.mark.parametrize(
    ("compiler", "option"),
    [*[(compiler, "-fplt") for compiler in COMPILERS], ("gcc", "-fno-plt"), ("clang", "-fno-plt")],
)
def test_calls_of_a_stripped_program_have_addresses(compiler: str, option: str, tmp_path: Path) -> None:
    named = call_sites(build(compiler, tmp_path, "-O2", option), "wanted")
    stripped = call_sites(build(compiler, tmp_path, "-O2", option, "-s"), "wanted")
    assert [site.vaddr for site in named] == [site.vaddr for site in stripped]
    assert {site.function for site in stripped} == {""}


def test_what_nobody_calls_has_no_calls(tmp_path: Path) -> None:
    assert call_sites(build("gcc", tmp_path), "none") == ()
