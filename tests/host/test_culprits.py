"""A daemon that starts to need a library with two others, and a table of a header that grows: who names them, where."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import junitparser
import pytest

import footprint
from footprint.cli import main

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler is installed")

DAEMON = """
#include "cache.hpp"
#include <cstdio>
#include <unistd.h>
#ifdef WITH_NET
extern "C" int net();
#else
static int net() { return 0; }
#endif
int main(int count, char **) {
  agent::histogram[count] = net();
  std::puts("ready"); std::fflush(stdout);
  if (count > 1) pause();
}
"""
LIMITS = """baseline = "baseline.json"
[budgets]
library_count = { max_increase = 0 }
private_bytes = { max_increase = "64 KiB" }
"""
LINK = "-lnet -Wl,-Map=agentd.map -Wl,-rpath-link,. '-Wl,--disable-new-dtags,-rpath,$$ORIGIN'"
# Each has a page of its own data, and the first two need the next.
LIBRARIES = {"cipher": (), "tls": ("cipher",), "net": ("tls", "cipher")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that builds the daemon with a table of so many KiB, at more than 4 with the library."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "src").mkdir()
    Path("src/agent.cpp").write_text(DAEMON)
    Path("footprint.toml").write_text(LIMITS)
    for name, needed in LIBRARIES.items():
        calls = " + ".join([f"{one}()" for one in needed] or ["0"])
        declared = "".join(f"int {one}(void);" for one in needed)
        Path(f"{name}.c").write_text(
            f"{declared} static int seed_{name} = 1; int {name}(void) {{ return seed_{name}++ + {calls}; }}"
        )
        links = [f"-l{one}" for one in needed]
        run("gcc", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", f"-Wl,-soname,lib{name}.so", "-L.", *links)

    def build(table_kib: int) -> None:
        Path("src/cache.hpp").write_text(f"namespace agent {{\n\nstatic char histogram[{table_kib} * 1024];\n}}\n")
        links = f"LDLIBS = -L. {LINK if table_kib > 4 else ''}\n"
        Path("Makefile").write_text(links + "agentd: src/agent.cpp\n\tg++ -g $(ARGS) $< -o $@ $(LDLIBS)\n")
        run("make", "-s", "-B", "agentd", f"ARGS={'-DWITH_NET' if table_kib > 4 else ''}")

    return build


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def grown(project: Callable[[int], None]) -> None:
    project(4)
    assert main(["check", "agentd", "--update-baseline", "-q"]) == 0
    project(204)


def test_the_root_of_new_libraries_is_named_and_a_variable_has_its_line(project: Callable[[int], None]) -> None:
    grown(project)
    result = footprint.diff("baseline.json", "agentd")
    (root,) = result.roots
    assert (root.name, [Path(one).name for one in root.needed_by], root.library_count) == ("libnet.so", ["agentd"], 3)
    own = {one.name: one.own_bytes for one in result.new.objects}
    assert root.retained_bytes == own["libnet.so"] + own["libtls.so"] + own["libcipher.so"]
    came = {Path(one.owner).name: one.came_with and Path(one.came_with).name for one in result.owners if one.is_object}
    assert {name: came[name] for name in ("libnet.so", "libtls.so", "libcipher.so")} == {
        "libnet.so": None,
        "libtls.so": "libnet.so",
        "libcipher.so": "libnet.so",
    }
    (table,) = (change for change in result.changes if change.symbol == "_ZN5agentL9histogramE")
    assert table.mapped_delta_bytes == 200 * 1024
    assert table.location == (f"{Path.cwd()}/src/cache.hpp", 3)


def test_a_check_names_the_root_and_the_line_in_every_format(
    project: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    grown(project)
    capsys.readouterr()

    def told(word: str) -> str:
        assert main(["check", "agentd", "--format", word]) == 1
        return capsys.readouterr().out

    for word in ("text", "markdown", "github", "junit", "sarif", "gitlab"):
        assert "libnet.so, which agentd now needs" in " ".join(told(word).split()), word
    answer = json.loads(told("json"))
    assert [(one["name"], one["location"]) for one in answer["roots"]] == [
        ("libnet.so", {"file": "Makefile", "line": 1})
    ]
    lines = {one["name"]: one["location"] for one in answer["grown_variables"]}
    assert lines == {"agent::histogram": {"file": f"{Path.cwd()}/src/cache.hpp", "line": 3}}
    annotations = told("github")
    assert (
        "::warning file=src/cache.hpp,line=3,title=A variable is new or grew%3A agent%3A%3Ahistogram::" in annotations
    )
    assert "::warning file=Makefile,line=1,title=A library is new, with all that it brings in%3A libnet.so" in (
        annotations.replace("%2C", ",")
    )
    entries = {load["check_name"]: load["location"] for load in json.loads(told("gitlab"))}
    assert entries["grown-variable"] == {"path": "src/cache.hpp", "lines": {"begin": 3}}
    assert entries["new-library"] == {"path": "Makefile", "lines": {"begin": 1}}
    results = json.loads(told("sarif"))["runs"][0]["results"]
    for rule, file, line in (("grown-variable", "src/cache.hpp", 3), ("new-library", "Makefile", 1)):
        (place,) = (result["locations"][0]["physicalLocation"] for result in results if result["ruleId"] == rule)
        assert (place["artifactLocation"]["uri"], place["region"]) == (file, {"startLine": line})
        assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    (suite,) = junitparser.JUnitXml.fromstring(told("junit"))
    (case,) = (one for one in suite if one.name == "libnet.so")
    assert (case._elem.get("file"), case._elem.get("line")) == ("Makefile", "1")


def test_without_a_build_file_the_map_of_the_linker_has_the_line(
    project: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    grown(project)
    Path("Makefile").unlink()
    (root,) = footprint.diff("baseline.json", "agentd").roots
    assert (root.location, root.needed_for) == (None, None)
    (root,) = footprint.diff("baseline.json", "agentd", map="agentd.map").roots
    number, line = next(
        (number, line)
        for number, line in enumerate(Path("agentd.map").read_text().splitlines(), 1)
        if line.startswith("LOAD") and "libnet.so" in line
    )
    assert (root.location, line) == (("agentd.map", number), "LOAD ./libnet.so")
    capsys.readouterr()
    assert main(["check", "agentd", "--map", "agentd.map"]) == 1
    assert f"it is linked at agentd.map:{number}" in " ".join(capsys.readouterr().out.split())
    assert main(["check", "agentd", "--map", "footprint.toml"]) == 3
    assert "only GNU ld lists the shared libraries" in capsys.readouterr().err


def test_a_saved_audit_of_another_build_has_no_lines(project: Callable[[int], None]) -> None:
    grown(project)
    assert main(["audit", "agentd", "-q", "-o", "now.json"]) == 0
    project(8)
    (table,) = footprint.diff("baseline.json", "now.json").grown_variables
    assert (table.symbol, table.location) == ("_ZN5agentL9histogramE", None)


def test_a_live_process_names_the_root_too(project: Callable[[int], None]) -> None:
    project(4)
    shutil.copy("agentd", "agentd-before")
    project(204)
    words = [["./agentd-before", "stay"], ["./agentd", "stay"]]
    processes = [subprocess.Popen(word, stdout=subprocess.PIPE) for word in words]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        found = footprint.diff(processes[0].pid, processes[1].pid)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert [(root.name, root.library_count) for root in found.roots] == [("libnet.so", 3)]


@pytest.mark.parametrize("verb", ["audit", "run", "baseline", "tree"])
def test_a_saved_process_names_the_root_without_findings(project: Callable[[int], None], verb: str) -> None:
    for number, table_kib in enumerate((4, 204)):
        project(table_kib)
        saved = ["-o", f"{number}.json", "-q"]
        if verb == "run":
            assert main(["run", "--when-output", "ready", *saved, "--", "./agentd", "stay"]) == 0
            continue
        process = subprocess.Popen(["./agentd", "stay"], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            if verb == "baseline":
                Path("live.toml").write_text(f'baseline = "{number}.json"\n[budgets]\nlibrary_count.max_increase = 0\n')
                assert main(["check", str(process.pid), "--config", "live.toml", "--update-baseline", "-q"]) == 0
            else:
                words = ["--tree"] if verb == "tree" else []
                assert main(["audit", *words, str(process.pid), *saved]) == 0
        finally:
            process.kill()
            process.communicate()
    result = footprint.diff("0.json", "1.json")
    (root,) = result.roots
    assert (root.name, root.library_count, root.location) == ("libnet.so", 3, ("Makefile", 1))
    assert [Path(one).name for one in root.needed_by] == ["agentd"]
    # Nobody searched for more than what is quick: nothing else is new or gone.
    assert {rule.rule for rule in result.new.searched_rules} <= {"free-heap", "relocated-tables"}


def test_each_line_of_copies_of_a_grown_variable_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, declared in (("one", "\nstatic char cache[SIZE];"), ("two", "static char cache[4096];")):
        Path(f"{name}.c").write_text(f"{declared}\nchar *{name}(int at) {{ return cache + at; }}\n")
    Path("main.c").write_text("char *one(int), *two(int); int main(int n, char **v) { return *one(n) + *two(n); }")
    for size in (4096, 16384):
        run("gcc", "-g", "-O1", f"-DSIZE={size}", "main.c", "one.c", "two.c", "-o", f"agentd-{size}")
    (cache,) = footprint.diff("agentd-4096", "agentd-16384").grown_variables
    assert (cache.symbol, cache.mapped_delta_bytes, cache.location) == ("cache", 12288, None)
    assert cache.possible_locations == ((f"{tmp_path}/one.c", 2), (f"{tmp_path}/two.c", 1))
