"""The files that make a process, and their order, are those that the loaders of this machine list themselves.

Nothing is run but the loaders: `ld.so --list` and LD_TRACE_LOADED_OBJECTS given to ld.so, never to a program.
"""

import os
import random
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from footprint.loader.link_map import LinkMap, link
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.sources.programs import ProcessView
from tests.elfwriter import (
    DT_FLAGS_1,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    EM_386,
    EM_AARCH64,
    RO,
    RW,
    Dyn,
    ElfFile,
    Section,
    write,
)

GLIBC = "/lib64/ld-linux-x86-64.so.2"
MUSL = "/lib/ld-musl-x86_64.so.1"
DF_1_NODEFLIB = 0x800
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF
ELF_64 = b"\x7fELF\x02\x01"

needs_glibc = pytest.mark.skipif(not Path(GLIBC).exists(), reason=f"no {GLIBC}")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")


def programs() -> Iterator[str]:
    """Name the 64-bit programs of this machine, each once; the loader takes those of set IDs for others."""
    result = dict.fromkeys(
        os.path.realpath(entry.path)
        for directory in ("/usr/bin", "/usr/sbin")
        if Path(directory).is_dir()
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name)
        if entry.is_file()
    )
    for path in result:
        with open(path, "rb") as file:
            is_elf = file.read(6) == ELF_64
        if is_elf and not os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            yield path


def listed(
    program: str, environment: dict[str, str] | None = None, cwd: str = "/", loader: str = GLIBC
) -> tuple[int, list[str], list[str]]:
    """Ask a loader: its exit code, the paths in order, and the names that are missing."""
    trace = {} if loader == MUSL else {"LD_TRACE_LOADED_OBJECTS": "1"}
    command = [loader, "--list", program] if loader == MUSL else [loader, program]
    done = subprocess.run(
        command, capture_output=True, env={**(environment or {}), **trace}, cwd=cwd, check=False, timeout=60
    )
    paths, missing = [], []
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        match = re.fullmatch(r"\t(?:(.*) => )?(.*?)(?: \(0x[0-9a-f]+\))?", line)
        assert match
        if match[2] == "not found":
            missing.append(match[1])
        elif match[2] != "statically linked" and not match[2].startswith("linux-vdso"):
            paths.append(match[2])
    return done.returncode, paths, missing


def paths_of(link_map: LinkMap) -> list[str]:
    return [each.path for each in link_map.objects[1:]]


@needs_glibc
def test_the_files_of_every_program_are_those_that_the_loader_lists_in_its_order() -> None:
    system, names = System(), list(programs())
    compared = 0
    with ThreadPoolExecutor(2) as pool:
        for path, (code, expected, missing) in zip(names, pool.map(listed, names), strict=True):
            found = link(system, path)
            if found.interpreter_object is None or found.libc != "glibc":
                continue
            assert code == 0, path
            assert paths_of(found) == expected, path
            assert sorted({each.name for each in found.missing}) == sorted(set(missing)), path
            compared += 1
    assert compared or not names


# --- the cases that other tools get wrong, built by a real linker -----------------------------------------------------


def build(root: Path, output: str, *arguments: str) -> Path:
    """Link a library, or the program where it is called so; `{}` in arguments is the root."""
    path = root / output
    path.parent.mkdir(parents=True, exist_ok=True)
    source = root / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    library = root / "library.c"
    library.write_text("int of_library;\n")
    kind = [str(source)] if path.name == "program" else ["-shared", "-fPIC", str(library)]
    options = [argument.replace("{}", str(root)) for argument in arguments]
    # Old tags are RPATH, new ones RUNPATH; what is needed is said by the arguments alone.
    command = ["gcc", "-o", str(path), *kind, "-Wl,--no-as-needed", f"-Wl,-rpath-link,{root}/link", *options]
    subprocess.run(command, check=True, capture_output=True)
    return path


OLD, NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"
MULTIARCH = "lib/x86_64-linux-gnu"

CASES: dict[str, list[tuple[str, ...]]] = {
    "the RPATH of a program reaches what its libraries need": [
        ("d/libb.so", "-Wl,-soname,libb.so"),
        ("d/liba.so", "-Wl,-soname,liba.so", "{}/d/libb.so"),
        ("program", OLD, "-Wl,-rpath,{}/d", "{}/d/liba.so"),
    ],
    "the RUNPATH of a library takes the RPATH of the program away from it": [
        ("d/libb.so", "-Wl,-soname,libb.so"),
        ("d/liba.so", "-Wl,-soname,liba.so", NEW, "-Wl,-rpath,{}/none", "{}/d/libb.so"),
        ("program", OLD, "-Wl,-rpath,{}/d", "{}/d/liba.so", "-Wl,--unresolved-symbols=ignore-all"),
    ],
    "the RUNPATH of a program is not for what its libraries need": [
        ("d/libb.so", "-Wl,-soname,libb.so"),
        ("d/liba.so", "-Wl,-soname,liba.so", "{}/d/libb.so"),
        ("program", NEW, "-Wl,-rpath,{}/d", "{}/d/liba.so"),
    ],
    "the first file of a SONAME is the one for all": [
        ("d1/libx.so", "-Wl,-soname,libx.so"),
        ("d2/libx.so", "-Wl,-soname,libx.so"),
        ("d1/liba.so", "-Wl,-soname,liba.so", NEW, "-Wl,-rpath,{}/d1", "{}/d1/libx.so"),
        ("d1/libb.so", "-Wl,-soname,libb.so", NEW, "-Wl,-rpath,{}/d2", "{}/d2/libx.so"),
        ("program", NEW, "-Wl,-rpath,{}/d1", "{}/d1/liba.so", "{}/d1/libb.so"),
    ],
    "a better copy for the processor stands below glibc-hwcaps": [
        ("d/libx.so", "-Wl,-soname,libx.so"),
        ("d/glibc-hwcaps/x86-64-v3/libx.so", "-Wl,-soname,libx.so"),
        ("d/glibc-hwcaps/x86-64-v2/libx.so", "-Wl,-soname,libx.so"),
        ("program", NEW, "-Wl,-rpath,{}/d", "{}/d/libx.so"),
    ],
    "$LIB is the directory of this system": [
        (f"d/{MULTIARCH}/libx.so", "-Wl,-soname,libx.so"),
        ("d/lib64/libx.so", "-Wl,-soname,libx.so"),
        ("program", NEW, "-Wl,-rpath,{}/d/$LIB", "{}/d/lib64/libx.so"),
    ],
    "the origin of a library is where its link is": [
        ("real/libb.so", "-Wl,-soname,libb.so"),
        ("link/libb.so", "-Wl,-soname,libb.so"),
        ("real/liba.so", "-Wl,-soname,liba.so", NEW, "-Wl,-rpath,$ORIGIN", "{}/real/libb.so"),
        ("program", NEW, "-Wl,-rpath,{}/link", "{}/real/liba.so"),
    ],
    "a library that forbids the directories of the system finds nothing there": [
        ("d/liba.so", "-Wl,-soname,liba.so", "-Wl,-z,nodefaultlib"),
        ("program", NEW, "-Wl,-rpath,{}/d", "{}/d/liba.so"),
    ],
}


@needs_glibc
@needs_gcc
@pytest.mark.parametrize("case", CASES)
def test_a_case_is_settled_as_the_loader_settles_it(case: str, tmp_path: Path) -> None:
    for output, *arguments in CASES[case]:
        build(tmp_path, output, *arguments)
    if (tmp_path / "real").is_dir():
        (tmp_path / "link" / "liba.so").symlink_to(tmp_path / "real" / "liba.so")
    program = str(tmp_path / "program")
    _, expected, missing = listed(program)
    found = link(System(), program)
    assert paths_of(found) == expected
    assert [each.name for each in found.missing] == missing


@needs_glibc
@needs_gcc
def test_the_path_of_the_caller_reaches_what_libraries_need(tmp_path: Path) -> None:
    build(tmp_path, "d/libb.so", "-Wl,-soname,libb.so")
    build(tmp_path, "d/liba.so", "-Wl,-soname,liba.so", "{}/d/libb.so")
    program = str(build(tmp_path, "program", "{}/d/liba.so"))
    variables = {"LD_LIBRARY_PATH": f"/none;{tmp_path}/d"}
    found = link(System(), program, Environment(library_path=variables["LD_LIBRARY_PATH"]))
    assert paths_of(found) == listed(program, variables)[1]
    assert not found.missing


# --- systems made by chance, of files that no linker would make -------------------------------------------------------

DIRECTORIES = ("d0", "d1", "d2", f"d3/{MULTIARCH}", "d3/haswell")
SUBDIRECTORIES = ("", "", "", "glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/", "tls/", "haswell/x86_64/")
NAMES = tuple(f"lib{number}.so" for number in range(7))


class Chance:
    """A small system below a directory: libraries that need one another in all ways, and a program."""

    def __init__(self, seed: int, root: Path) -> None:
        self.random = random.Random(seed)  # noqa: S311 # nothing secret: the same systems each time
        self.root = root
        for directory in (*DIRECTORIES, "bin"):
            (root / directory).mkdir(parents=True)
        made: list[Path] = []
        for number, name in enumerate(NAMES):
            for _ in range(self.random.choice([0, 1, 1, 2, 3])):
                path = root / self.random.choice(DIRECTORIES) / (self.random.choice(SUBDIRECTORIES) + name)
                path.parent.mkdir(parents=True, exist_ok=True)
                if os.path.lexists(path):
                    continue
                if made and self.random.random() < 0.15:
                    path.symlink_to(self.random.choice(made))
                    continue
                path.write_bytes(self.library(number))
                made.append(path)
        self.program = str(root / "bin" / "program")
        Path(self.program).write_bytes(self.file([*self.needed(1), *self.paths()], interpreter=GLIBC))

    def library(self, number: int) -> bytes:
        dynamic = [*self.needed(0), *self.paths()]
        if self.random.random() < 0.6:
            dynamic.append(Dyn(DT_SONAME, self.random.choice([NAMES[number], self.random.choice(NAMES)])))
        if self.random.random() < 0.1:
            dynamic.append(Dyn(DT_FLAGS_1, DF_1_NODEFLIB))
        # Libraries that stand in for one another in a circle have no order that could be foretold.
        if self.random.random() < 0.2 and number + 1 < len(NAMES):
            tag = self.random.choice([DT_AUXILIARY, DT_AUXILIARY, DT_FILTER])
            dynamic.append(Dyn(tag, self.random.choice(NAMES[number + 1 :])))
        kind = self.random.random()
        if kind < 0.02:
            return b"no library at all".ljust(100, b".")
        if kind < 0.08:
            return write(ElfFile(machine=EM_AARCH64, dynamic=dynamic))
        if kind < 0.14:
            return write(ElfFile(bits=32, machine=EM_386, dynamic=dynamic))
        return self.file(dynamic)

    def file(self, dynamic: list[Dyn], interpreter: str = "") -> bytes:
        sections = [Section(".data", flags=RW, data=bytes(16))]
        if interpreter:
            sections.append(Section(".interp", flags=RO, data=interpreter.encode() + b"\0"))
        return write(ElfFile(sections=sections, dynamic=dynamic or [Dyn(DT_FLAGS_1, 0)]))

    def needed(self, least: int) -> list[Dyn]:
        names = self.random.sample(NAMES, self.random.randint(least, 3))
        odd = [f"{self.root}/d0/{names[0]}", f"$ORIGIN/{names[0]}", f"../d1/{names[0]}"] if names else []
        odd += [GLIBC.rpartition("/")[2], "libc.so.6"]
        return [Dyn(DT_NEEDED, self.random.choice(odd) if self.random.random() < 0.3 else name) for name in names]

    def paths(self) -> list[Dyn]:
        tags = [tag for tag, share in ((DT_RPATH, 0.3), (DT_RUNPATH, 0.25)) if self.random.random() < share]
        return [Dyn(tag, self.path_list(":")) for tag in tags]

    def path_list(self, separators: str) -> str:
        def element() -> str:
            root, directory = self.root, self.random.choice(DIRECTORIES)
            plain = [f"{root}/{directory}", directory, f"$ORIGIN/../{directory}", f"${{ORIGIN}}/../{directory}//"]
            tokens = [f"{root}/d3/$LIB", f"{root}/d3/${{PLATFORM}}/", f"{root}/$FOO", f"{root}/d1/$LIBX", ""]
            return self.random.choice([*plain, *tokens, f"{root}/d1/$ORIGIN", "$ORIGIN"])

        return self.random.choice(separators).join(element() for _ in range(self.random.randint(1, 3)))

    def variables(self) -> dict[str, str]:
        result = {}
        if self.random.random() < 0.4:
            result["LD_LIBRARY_PATH"] = self.path_list(":;")
        if self.random.random() < 0.2:
            names = self.random.choices([*NAMES, *(f"{self.root}/d1/{name}" for name in NAMES)], k=2)
            result["LD_PRELOAD"] = self.random.choice([" ", ":"]).join(names)
        return result


@needs_glibc
def test_systems_made_by_chance_are_searched_as_the_loader_searches_them(tmp_path: Path) -> None:
    compared = 0
    alone = tmp_path / "alone"
    alone.write_bytes(Chance(0, tmp_path).file([Dyn(DT_NEEDED, "libnone.so")], interpreter=GLIBC))
    lists_itself = listed(str(alone))[1] == [GLIBC]
    for seed in range(150):
        chance = Chance(seed, tmp_path / str(seed))
        variables, cwd = chance.variables(), str(chance.root / "d2")
        try:
            code, expected, missing = listed(chance.program, variables, cwd)
        except subprocess.TimeoutExpired:
            # Libraries that stand in for others can send the loader itself round in circles, until it crashes.
            continue
        if code < 0:
            continue
        result = link(
            System(),
            chance.program,
            Environment(variables.get("LD_LIBRARY_PATH", ""), variables.get("LD_PRELOAD", ""), cwd),
        )
        # A file that cannot be loaded; of what is not found, the colon is before the folder that leads to it.
        is_fatal = any(": " in each.cause.removeprefix("it is not found: ") for each in result.missing)
        assert is_fatal == (code != 0), seed
        if is_fatal:
            continue
        ours = paths_of(result)
        # That of glibc 2.43 lists itself at the end, where nothing needs it, but for a program that needs nothing.
        lists_more = lists_itself and GLIBC not in ours and result.objects[0].library.linkage.needed
        assert expected == ([*ours, GLIBC] if lists_more else ours), seed
        # What only stands in for another is listed as missing though nothing comes of it, and paths are written out.
        needed = {name for each in result.objects for name in each.library.linkage.needed if "/" not in name}
        assert {each.name for each in result.missing} & needed == set(missing) & needed, seed
        compared += 1
    assert compared > 100


# --- musl -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("musl-gcc") is None or not Path(MUSL).exists(), reason="musl is missing")
@pytest.mark.parametrize("tag", [OLD, NEW], ids=["RPATH", "RUNPATH"])
def test_a_program_of_musl_has_the_files_that_its_loader_lists(tag: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "library.c").write_text("int of_library;\n")
    common = ["musl-gcc", "-Wl,--no-as-needed", f"-Wl,-rpath-link,{tmp_path}"]

    def built(output: str, *arguments: str) -> None:
        kind = ["main.c"] if output == "program" else ["-shared", "-fPIC", "library.c", f"-Wl,-soname,{output}"]
        command = [*common, *kind, "-o", output, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)

    built("libb.so")
    built("liba.so", "libb.so")
    built("libm.musl.so")
    built("program", "liba.so", "libm.musl.so", "-lpthread", tag, "-Wl,-rpath,$ORIGIN")
    program = str(tmp_path / "program")
    result = link(System(), program)
    assert result.libc == "musl"
    # Musl says first which loader it is, and then each library when it is found.
    _, (loader, *expected), _ = listed(program, loader=MUSL)
    assert loader == MUSL
    assert paths_of(result) == list(dict.fromkeys(expected))
    assert not result.missing


# --- other machines

OTHERS = {
    "aarch64": "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
    "arm": "/usr/arm-linux-gnueabihf/lib/ld-linux-armhf.so.3",
    "i386": "/usr/i686-linux-gnu/lib/ld-linux.so.2",
    "mips64el": "/usr/mips64el-linux-gnuabi64/lib64/ld.so.1",
    "ppc64le": "/usr/powerpc64le-linux-gnu/lib/ld64.so.2",
    "riscv64": "/usr/riscv64-linux-gnu/lib/ld-linux-riscv64-lp64d.so.1",
    "s390x": "/usr/s390x-linux-gnu/lib/ld64.so.1",
}


@pytest.mark.parametrize("machine", OTHERS)
def test_the_directories_of_each_machine_of_debian_are_those_that_its_loader_names(
    machine: str, tmp_path: Path
) -> None:
    qemu, there = shutil.which(f"qemu-{machine}"), Path(OTHERS[machine])
    if qemu is None or not there.exists():
        pytest.skip(f"no qemu-{machine}, or no {there}")
    told = subprocess.run([qemu, there, "--help"], capture_output=True, text=True, check=True).stdout
    directories = re.findall(r"^  (/\S+) \(system search path\)", told, re.MULTILINE)
    assert len(directories) == 4
    # A root directory as Debian has it: the C library in the first directory, the loader where programs name it.
    home = tmp_path / directories[0][1:]
    home.mkdir(parents=True)
    shutil.copy(there, home)
    for name in ("libc.so.6", "libm.so.6"):
        shutil.copy(there.parent.parent / "lib" / name, home)
    interpreter = tmp_path / ("lib64" if machine in {"mips64el", "ppc64le"} else "lib") / there.name
    interpreter.parent.mkdir(exist_ok=True)
    interpreter.symlink_to(f"{directories[0]}/{there.name}")
    result = link(System(str(tmp_path)), f"{directories[0]}/libm.so.6", Environment())
    assert result.missing == ()
    # s390x and ppc64le need the loader, too.
    assert result.objects[1].path == f"{directories[0]}/libc.so.6"
    assert result.target is not None
    assert result.target.system_directories == tuple(f"{directory}/" for directory in directories)
    assert result.target.lib == directories[0][1:]


NOBODY = 65534


@needs_glibc
@needs_gcc
@pytest.mark.parametrize("mode", [0o755, 0o4755, 0o2755, 0o2745])
def test_ld_library_path_counts_for_a_program_of_set_ids_where_the_kernel_says_so(mode: int) -> None:
    """Who owns the program runs it, and where that is root, another user does, too."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        for where, number in (("usual", 5), ("mine", 6)):
            (place / where).mkdir()
            _compile(place, f"{where}/libx.so", f"int x(void) {{ return {number}; }}", "-shared", "-fPIC")
        source = '#include <stdio.h>\nint x(void); int main(void) { printf("%d\\n", x()); fflush(stdout); getchar(); }'
        _compile(place, "program", source, "-Lusual", "-lx", "-Wl,-rpath," + str(place / "usual"))
        program = place / "program"
        program.chmod(mode)
        owner = program.stat()
        callers = [(owner.st_uid, owner.st_gid), *([(NOBODY, NOBODY)] if os.geteuid() == 0 else [])]
        for caller in callers:
            if mode == 0o2745 and caller[0] == NOBODY:
                continue  # It may not even run it.
            variables = {"LD_LIBRARY_PATH": str(place / "mine")}
            user, group = caller if os.geteuid() == 0 else (None, None)
            with subprocess.Popen(
                [program],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                user=user,
                group=group,
                extra_groups=None if user is None else [],
            ) as process:
                assert process.stdout is not None
                printed = process.stdout.readline().strip()
                live = ProcessView.of(process.pid).environment
            environment = Environment(library_path=str(place / "mine"), caller=caller)
            used = {"5": "usual", "6": "mine"}[printed]
            for known in (environment, live):
                assert link(System(), str(program), known).objects[1].path == str(place / used / "libx.so"), caller


def _compile(folder: Path, output: str, source: str, *options: str) -> None:
    command = ["gcc", "-x", "c", "-", "-o", output, "-x", "none", *options]
    subprocess.run(command, input=source, text=True, check=True, cwd=folder)
