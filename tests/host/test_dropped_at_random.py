"""Small systems of libraries at random: without a need their loader does what was computed, and `high` is safe.

The libraries define the same functions, lie in several folders, find each other by RPATH or RUNPATH, and some act at
start or exit. Each need without use is removed by patchelf in a copy, which is listed by the loader, and run.
"""

import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from footprint.findings.graph_rules.unused_library import unused_libraries, unused_needs
from footprint.loader.target import Environment
from footprint.model.finding import Confidence
from footprint.sources.programs import Programs

LOADER = "/lib64/ld-linux-x86-64.so.2"
TOOLS = ("gcc", "patchelf")
pytestmark = [
    pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"not all of {', '.join(TOOLS)} are here"),
    pytest.mark.skipif(not Path(LOADER).exists(), reason="the loader is not glibc's for x86-64"),
]

FOLDERS = (".", "one", "two")
SHARED = range(4)


def gcc(folder: Path, output: str, source: str, *options: str) -> None:
    (folder / "source.c").write_text(source)
    command = ["gcc", "-w", "-O1", "-o", output, "source.c", "-Wl,--no-as-needed", "-Lstub", *options]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)


def search_path(draw: random.Random, place: str) -> list[str]:
    up = "$ORIGIN" if place == "." else "$ORIGIN/.."
    found = [f"{up}/{one}" for one in draw.sample(FOLDERS, draw.choice([0, 1, 2, 2, 3]))]
    tags = draw.choice(["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"])
    return ["-Wl,-rpath," + ":".join(found), tags] if found else []


def build(folder: Path, draw: random.Random) -> None:
    """Link some libraries, and a program that uses half of those that it needs."""
    for name in (*FOLDERS[1:], "stub"):
        (folder / name).mkdir(parents=True)
    count = draw.randint(4, 7)
    whole = "".join(f"int f{n}(void) {{ return {100 + n}; }}\n" for n in SHARED)
    # To link against, each library is there at once; the last one defines what no other does.
    for number in range(count):
        gcc(folder, f"stub/libl{number}.so", f"int g{number}(void) {{ return 0; }}", *shared(f"libl{number}.so"))
    for place in ("stub", "."):
        gcc(folder, f"{place}/liblast.so", whole, *shared("liblast.so"))
    for number in range(count):
        name = f"libl{number}.so"
        defined, called = (draw.sample(SHARED, draw.choice([0, 1, 1, 2])) for _ in range(2))
        later = range(number + 1, count)
        needs = [f"-ll{one}" for one in draw.sample(later, min(len(later), draw.choice([0, 1, 2, 3])))]
        act = draw.choice([""] * 12 + ["constructor", "destructor"])
        for place in draw.sample(FOLDERS, draw.choice([1, 1, 1, 2])):
            tag = f"{number}{place}"
            source = "int printf(const char *, ...);\n" + "".join(f"int f{one}(void);\n" for one in SHARED)
            source += "".join(f'int f{one}(void) {{ printf("f{tag} "); return 0; }}\n' for one in defined)
            calls = "".join(f"f{one}();" for one in called)
            source += f'int g{number}(void) {{ printf("g{tag} "); {calls} return 0; }}\n'
            source += f'__attribute__(({act})) static void act(void) {{ printf("{act}{tag} "); }}' if act else ""
            gcc(folder, f"{place}/{name}", source, *shared(name), *needs, *search_path(draw, place))
    needed = draw.sample(range(count), draw.randint(2, count - 1))
    used = draw.sample(needed, len(needed) // 2)
    source = "".join(f"int g{one}(void);\n" for one in used)
    source += "int main(void) {" + "".join(f"g{one}();" for one in used) + "return 0; }"
    path = "-Wl,-rpath,$ORIGIN/.:$ORIGIN/" + draw.choice(FOLDERS[1:])
    options = [*(f"-ll{one}" for one in needed), "-llast", path, "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    gcc(folder, "program", source, *options, draw.choice(["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"]))


def shared(name: str) -> Sequence[str]:
    return "-shared", "-fPIC", f"-Wl,-soname,{name}"


def run(folder: Path) -> tuple[int, str]:
    done = subprocess.run([folder / "program"], check=False, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout


def listed(folder: Path) -> list[str]:
    done = subprocess.run([LOADER, "--list", folder / "program"], check=False, capture_output=True, text=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return [word[2] if len(word) > 2 and word[1] == "=>" else word[0] for word in words if "vdso" not in word[0]]


@pytest.mark.parametrize("seed", range(8))
def test_without_a_need_the_loader_does_what_was_computed_and_what_is_sure_changes_nothing(
    tmp_path: Path, seed: int
) -> None:
    folder, copy = tmp_path / "whole", tmp_path / "copy"
    folder.mkdir()
    build(folder, random.Random(seed))  # noqa: S311 # the same systems each time
    graph = Programs(environment=Environment(cwd=str(folder))).graph(str(folder / "program"))
    whole = run(folder)
    fails = bool(graph.link_map.missing) or any(one.slug == "does-not-start" for one in graph.start_failures)
    assert fails == (whole[0] == 127)
    for finding in unused_libraries(graph):
        needs = [one for one in unused_needs(graph) if graph.name(one.provider) in finding.subject.split(" and ")]
        if finding.kind == "soft" or any(graph.name(need.provider).startswith("ld-") for need in needs):
            continue
        shutil.copytree(folder, copy)
        for user, provider in needs:
            path = Path(graph.objects[user].library.real_path).resolve().relative_to(folder.resolve())
            names = {dependency.name for dependency in graph.objects[user].dependencies if dependency.place == provider}
            for name in names:
                subprocess.run(["patchelf", "--remove-needed", name, copy / path], check=True)
        without = graph.without(needs)
        if not without.link_map.missing:
            expected = [one.path.replace(str(folder), str(copy)) for one in without.link_map.objects[1:]]
            assert listed(copy) == expected, finding
        assert finding.confidence is not Confidence.HIGH or run(copy) == whole, finding
        shutil.rmtree(copy)
