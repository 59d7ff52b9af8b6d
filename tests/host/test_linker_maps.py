"""Maps that the linkers of this machine write, against objects whose variables are named after them, and `nm`."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import footprint
from footprint.elf.origins import ByteOrigin, Origins

MODULES = ("alpha", "beta", "gamma", "delta")
SOURCE = """
int NAME_data[SIZE] = {{1}}, NAME_zero[SIZE], NAME_common[SIZE * 3];
static volatile char NAME_local[SIZE + 1] = {{1}};
static volatile short NAME_local_zero[SIZE];
__attribute__((aligned(64))) int NAME_aligned[SIZE] = {{1}};
__thread int NAME_thread[SIZE] = {{1}}, NAME_thread_zero[SIZE];
extern int NAME_data[];
int *const NAME_table[] = {{NAME_data, NAME_zero}};
int NAME_unused_with_a_name_that_is_longer_than_any_column[SIZE] = {{1}};
int NAME_use(int n) {{
    return NAME_data[n] + NAME_zero[n] + NAME_common[n] + NAME_local[n] + NAME_local_zero[n] + NAME_aligned[n]
        + NAME_thread[n] + NAME_thread_zero[n] + *NAME_table[n] {CALLS};
}}
"""
MAIN = "int alpha_use(int); int main(int n, char **v) { return alpha_use(n); }"
LINKERS = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sources: alpha and beta are linked as objects, gamma and delta come of an archive."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    folder = tmp_path_factory.mktemp("link")
    (folder / "main.c").write_text(MAIN)
    for number, module in enumerate(MODULES):
        following = MODULES[number + 1 : number + 2]
        calls = "".join(f"+ {name}_use(n)" for name in following)
        source = SOURCE.format(CALLS=calls).replace("NAME", module).replace("SIZE", str(3 + 4 * number))
        declared = "".join(f"int {name}_use(int);\n" for name in following)
        (folder / f"{module}.c").write_text(declared + source)
    return folder


def build(folder: Path, name: str, linker: str, *, compile_: str = "", link: str = "", archive: str = "rcD") -> None:
    """Compile, archive and link as told; skip where a tool is missing or refuses."""
    if shutil.which(LINKERS[linker]) is None:
        pytest.skip(f"there is no {LINKERS[linker]}")
    commands = [f"gcc -O1 -fPIC -fcommon {compile_} -c {module}.c -o {name}.{module}.o" for module in MODULES]
    ar = "gcc-ar" if "lto" in compile_ else "ar"
    objects, members = ([f"{name}.{one}.o" for one in names] for names in (("main", *MODULES[:2]), MODULES[2:]))
    commands.append(f"gcc -O1 -fPIC {compile_} -c main.c -o {name}.main.o")
    commands.append(f"rm -f lib{name}.a && {ar} {archive} lib{name}.a {' '.join(members)}")
    inputs = f"{' '.join(objects)} lib{name}.a"
    commands.append(f"gcc -fuse-ld={linker} {compile_} {link} -Wl,-Map={name}.map {inputs} -o {name}")
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode:
        pytest.skip(f"{linker} refuses: {done.stderr[:200]}")


def mapped(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Origins:
    """Read a file by its map, checked to add up."""
    monkeypatch.chdir(folder)
    (found,) = footprint.symbols(name, map=f"{name}.map").origins
    for section in found.sections:
        assert sum(share.size_bytes for share in found.shares(section).values()) == section.contents.size_bytes
    return found


def by_name(result: Origins) -> dict[str, ByteOrigin]:
    """Return the origins of the variables of our modules, by linker name."""
    return {
        re.sub(r"\.(lto_priv\.)?[0-9]+$", "", variable.name): result.of(section, variable)
        for section in result.sections
        for variable in section.contents.variables
        if variable.size_bytes and variable.name.split("_")[0] in MODULES
    }


def written_by_nm(path: Path) -> set[str]:
    """Return the names of our variables in writable sections, as nm has them."""
    done = subprocess.run(["nm", "-S", str(path)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[3] for row in rows if len(row) == 4 and row[2] in "dDbB" and row[3].split("_")[0] in MODULES}


def expected(module: str, name: str) -> tuple[str, str | None]:
    return (f"lib{name}.a", f"{name}.{module}.o") if module in MODULES[2:] else (f"{name}.{module}.o", None)


CASES = {
    "plain": {},
    "own-sections": {"compile_": "-fdata-sections -ffunction-sections"},
    "collected": {"compile_": "-fdata-sections -ffunction-sections", "link": "-Wl,--gc-sections"},
    "no-common": {"compile_": "-fno-common"},
    "static": {"link": "-static"},
    "not-pie": {"compile_": "-fno-pic -fno-pie", "link": "-no-pie"},
    "thin": {"archive": "rcT"},
}


@pytest.mark.parametrize("linker", list(LINKERS))
@pytest.mark.parametrize("case", list(CASES))
def test_every_variable_comes_from_the_object_that_it_is_named_after(
    folder: Path, monkeypatch: pytest.MonkeyPatch, linker: str, case: str
) -> None:
    name = f"{case}-{linker}"
    build(folder, name, linker, **CASES[case])
    result = mapped(folder, name, monkeypatch)
    origins = by_name(result)
    # Tables of pointers are read-only once relocated; in a program at a fixed address they are constants.
    assert {symbol for symbol in written_by_nm(folder / name) if not symbol.endswith("table")} <= set(origins)
    assert len(origins) >= 4 * 8
    for symbol, origin in origins.items():
        module = symbol.split("_")[0]
        file, member = expected(module, name)
        if case == "thin" and linker == "bfd" and member:
            file, member = member, None  # GNU ld names the file that a thin archive leads to
        assert (symbol, origin.object, origin.member) == (symbol, file, member)
        assert origin.unit in {None, f"{module}.c"}
        assert origin.unit or "local" not in symbol
    unused = [symbol for symbol in origins if "unused" in symbol]
    assert len(unused) == (0 if case == "collected" else 4)
    assert [note.slug for note in result.notes()] == []


@pytest.mark.parametrize("linker", list(LINKERS))
def test_the_sums_of_objects_are_the_sizes_that_size_tells(
    folder: Path, monkeypatch: pytest.MonkeyPatch, linker: str
) -> None:
    name = f"sums-{linker}"
    build(folder, name, linker, compile_="-fno-common")
    found = mapped(folder, name, monkeypatch)
    sums: Counter[str] = Counter()
    for section in found.sections:
        for origin, share in found.shares(section).items():
            sums[origin.label] += share.size_bytes
    for module in MODULES:
        done = subprocess.run(
            ["size", "-A", f"{name}.{module}.o"], cwd=folder, capture_output=True, text=True, check=True
        )
        sizes = dict(re.findall(r"^\.([\w.]+) +([0-9]+)", done.stdout, re.MULTILINE))
        own_bytes = sum(
            int(sizes[one])
            for one in ("data", "bss", "tdata", "tbss", "data.rel.ro.local", "data.rel.ro")
            if one in sizes
        )
        assert sums[ByteOrigin(*expected(module, name)).label] == own_bytes


@pytest.mark.parametrize("linker", ["bfd", "gold", "mold"])
def test_objects_of_link_time_optimisation_are_told_as_such(
    folder: Path, monkeypatch: pytest.MonkeyPatch, linker: str
) -> None:
    name = f"lto-{linker}"
    build(folder, name, linker, compile_="-flto")
    found = mapped(folder, name, monkeypatch)
    assert {origin.object is None or ".ltrans" in origin.object for origin in by_name(found).values()} == {True}
    assert [note.slug for note in found.notes()] == ["linker-map-lto"]


@pytest.mark.parametrize("linker", ["bfd", "lld", "mold"])
def test_an_object_that_is_linked_again_has_a_map_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, linker: str
) -> None:
    name = f"again-{linker}"
    build(folder, name, linker, compile_="-fno-common")
    command = [LINKERS[linker], "-r", f"-Map={name}.o.map", f"{name}.alpha.o", f"{name}.beta.o", "-o", f"{name}.o"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    monkeypatch.chdir(folder)
    (found,) = footprint.symbols(f"{name}.o", map=f"{name}.o.map").origins
    for symbol, origin in by_name(found).items():
        assert origin.object == f"{name}.{symbol.split('_')[0]}.o"


def test_members_of_an_archive_are_their_own_origin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(folder, "members", "bfd")
    monkeypatch.chdir(folder)
    found = footprint.symbols("libmembers.a")
    assert len(found.origins) == 2
    for one in found.origins:
        for symbol, origin in by_name(one).items():
            module = symbol.split("_")[0]
            assert origin == ByteOrigin("libmembers.a", f"members.{module}.o", f"{module}.c")
