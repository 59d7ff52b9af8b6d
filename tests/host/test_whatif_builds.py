"""Two builds of a program that gcc makes are run in turn: what a remedy saves, and what it breaks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

import footprint
from footprint.errors import AccessError, InputError, UsageError
from footprint.verbs.whatif.call import compare_builds, whatif
from footprint.verbs.whatif.result import Agreement, BuildComparison
from tests.jsonschemas import WRITTEN
from tests.liveprocesses import is_ptrace_allowed

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_binaries"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here"),
    pytest.mark.skipif(not is_ptrace_allowed(), reason="ptrace is not allowed here"),
]

HELLO = '#include <stdio.h>\nint main(int n, char **words) { printf("%s %s\\n", words[0], n > 1 ? words[1] : ""); }'


class Builds:
    """Builds several variants of a program in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, name: str, sources: str | dict[str, str], *options: str, compiler: str = "gcc") -> str:
        texts = {f"{name}.c": sources} if isinstance(sources, str) else sources
        for file, text in texts.items():
            (self.folder / file).write_text(text)
        units = [file for file in texts if not file.endswith(".h")]
        before, linked = [[option for option in options if option.startswith("-l") is it] for it in (False, True)]
        line = [compiler, "-w", "-O1", "-o", name, *before, *units, "-L.", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
        subprocess.run([*line, *linked], check=True, cwd=self.folder)
        return str(self.folder / name)


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


def seen(builds: BuildComparison) -> dict[str, Agreement]:
    return {one.name: one.verdict for one in builds.behaviour}


def equal() -> dict[str, Agreement]:
    return dict.fromkeys(("stdout", "stderr", "ending"), Agreement.EQUAL)


def saved_by_owner(builds: BuildComparison) -> dict[str, int]:
    """Return what each owner saves beyond the spread of its starts, by its file name."""
    return {Path(one.owner).name: -one.delta_bytes for one in builds.sure_changes if one.owner != "[kernel]"}


# --- remedies ---------------------------------------------------------------------------------------------------------

TABLE = """
static const char *const words[20000] = {[0 ... 19999] = "word"};
const char *const *volatile table = words;
int main(void) { return !table[19999]; }
"""


def test_a_program_without_pie_saves_what_the_finding_on_its_tables_says(builds: Builds) -> None:
    pie = builds.build("pie", TABLE, "-fPIE", "-pie")
    no_pie = builds.build("no_pie", TABLE, "-fno-pie", "-no-pie")
    (finding,) = [one for one in footprint.audit(pie).findings if one.rule == "relocated-tables"]
    found = compare_builds([pie], no_pie)
    # 20,000 pointers of 8 bytes lie in 40 pages: the loader writes .init_array in the first and .got in the last, too.
    assert finding.saving_bytes == 38 * PAGE_BYTES
    assert abs(saved_by_owner(found)["no_pie"] - finding.saving_bytes) <= PAGE_BYTES
    assert (found.is_noise, seen(found), found.notes) == (False, equal(), ())
    removed = next(change for change in found.comparison.changes if change.symbol == "words")
    assert (removed.status.value, removed.delta_bytes) == ("removed", -160_000)


def units(header: str) -> dict[str, str]:
    """Return a program of eight source files that each write to what a header defines."""
    sources = {f"unit_{one}.cpp": f'#include "table.h"\nvoid write_{one}() {{ table[0] = {one}; }}' for one in range(8)}
    calls = "".join(f"void write_{one}();" for one in range(8)), "".join(f"write_{one}();" for one in range(8))
    return {"table.h": header, **sources, "main.cpp": f"{calls[0]} int main() {{ {calls[1]} }}"}


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_a_static_of_a_header_that_becomes_inline_saves_what_its_copies_cost(builds: Builds) -> None:
    copied = builds.build("copied", units("static volatile char table[4 * 4096];"), "-g", compiler="g++")
    inline = builds.build("inline", units("inline volatile char table[4 * 4096];"), "-g", "-std=c++17", compiler="g++")
    (finding,) = [one for one in footprint.duplicates(copied).findings if one.rule == "duplicate-static"]
    assert finding.size_bytes == 7 * 4 * 4096
    found = compare_builds([copied], inline)
    # Of each copy one page is written, and the other three are never touched.
    assert abs(saved_by_owner(found)["inline"] - 7 * PAGE_BYTES) <= PAGE_BYTES
    changes = [change for change in found.comparison.changes if change.symbol and "table" in change.symbol]
    assert sum(change.mapped_delta_bytes for change in changes) == -finding.size_bytes
    assert seen(found) == equal()


def test_a_library_that_is_no_longer_linked_saves_what_dropping_it_saves(builds: Builds) -> None:
    pytest.importorskip("lief")
    table = 'static const char *const names[6400] = {[0 ... 6399] = "x"}; const char *name(int n) { return names[n]; }'
    builds.build("libnames.so", table, "-shared", "-fPIC", "-Wl,-soname,libnames.so")
    linked = builds.build("linked", HELLO, "-lnames")
    relinked = builds.build("relinked", HELLO)
    result, dropped = compare_builds([linked], relinked), whatif([linked], drop=["libnames.so"])
    own_bytes = {Path(one.owner).name: one.before_bytes - one.after_bytes for one in dropped.changes}["libnames.so"]
    assert own_bytes == dropped.predicted_bytes >= 50 * 1024
    assert saved_by_owner(result)["libnames.so"] == own_bytes
    # Where the stack begins in a page is left to chance at each start.
    stack_bytes = [
        sum(change.before_bytes - change.after_bytes for change in dropped.changes if change.owner == "[stack]"),
        -sum(owner.delta_bytes for owner in result.comparison.owners if owner.owner == "[stack]"),
    ]
    assert result.private is not None
    assert dropped.private is not None
    saved = dropped.private.bytes - stack_bytes[0], result.private.bytes - stack_bytes[1]
    assert abs(saved[0] - saved[1]) <= PAGE_BYTES
    (gone,) = [owner for owner in result.comparison.owners if owner.is_gone]
    assert Path(gone.owner).name == "libnames.so"


def test_two_equal_builds_differ_within_the_spread_of_their_starts(builds: Builds) -> None:
    one, same = builds.build("one", HELLO), builds.build("same", HELLO)
    found = compare_builds([one], same, starts=7)
    assert found.is_noise
    assert found.private is not None
    assert found.private.least_bytes <= 0 <= found.private.most_bytes
    assert saved_by_owner(found) == {}
    assert (seen(found), found.failures, found.notes) == (equal(), ((), ()), ())


# --- how both are started ---------------------------------------------------------------------------------------------


def test_both_get_the_same_words_and_the_name_of_the_program(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    builds.build("one", HELLO)
    builds.build("other", HELLO)
    monkeypatch.chdir(builds.folder)
    found = compare_builds(["./one", "a b"], "./other", starts=1)
    assert found.behaviour[0].size_bytes == len("./one a b\n")
    assert seen(found) == equal()
    monkeypatch.setenv("PATH", f"{builds.folder}:{os.environ['PATH']}")
    assert seen(compare_builds(["one"], "other", starts=1)) == equal()


def test_both_read_a_file_from_its_beginning(builds: Builds, tmp_path: Path) -> None:
    source = "#include <stdio.h>\nint main(void) { putchar(getchar()); return 0; }"
    one, other = builds.build("one", source), builds.build("other", source)
    (tmp_path / "input").write_text("AB")
    with open(tmp_path / "input", "rb") as file:
        done = command("--with", other, "--json", "--", one, stdin=file)
    assert done.returncode == 0
    assert (
        json.loads(done.stdout)["behaviour"][0] | {"size_bytes": 1, "verdict": "equal"}
        == (json.loads(done.stdout)["behaviour"][0])
    )


# --- builds that behave differently, or fail --------------------------------------------------------------------------


def test_another_output_is_shown_with_its_first_line_and_exit_code_1(builds: Builds) -> None:
    one = builds.build("one", '#include <stdio.h>\nint main(void) { puts("first\\nsecond"); }')
    other = builds.build("other", '#include <stdio.h>\nint main(void) { puts("first\\nlast"); }')
    found = compare_builds([one], other)
    assert found.behaviour[0] == ("stdout", Agreement.DIFFERENT, True, 13, 2, "second", "last")
    assert not found.is_alike
    done = command("--with", other, "--starts", "1", "--", one)
    assert done.returncode == 1
    assert b"standard output, line 2, now: last" in done.stdout
    assert done.stdout.rstrip().endswith(b"It does not behave as before.")


def test_output_that_differs_at_each_start_says_nothing_also_by_one_start_of_each(builds: Builds) -> None:
    source = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", getpid()); }'
    found = compare_builds([builds.build("one", source)], builds.build("other", source), starts=1)
    assert seen(found) == equal() | {"stdout": Agreement.VARYING}
    assert found.is_alike


CRASH = "int main(void) { return *(volatile int *)0; }"


@pytest.mark.parametrize(("place", "name"), [(0, "broken"), (1, "broken.new")])
def test_a_crash_of_either_build_is_named_and_exit_code_5(builds: Builds, place: int, name: str) -> None:
    paths = [
        builds.build(each, CRASH if number == place else HELLO) for number, each in enumerate(("broken", "broken.new"))
    ]
    done = command("--with", paths[1], "--starts", "2", "--", paths[0])
    told = f"{name} failed: SIGSEGV ended it (2 starts)"
    assert (done.returncode, done.stderr) == (5, b"")
    assert done.stdout.decode().endswith(f"\n\n{told}.\n")
    # An answer in a file is not seen.
    done = command("--with", paths[1], "--starts", "2", "-o", str(builds.folder / "answer.json"), "--", paths[0])
    assert (done.returncode, done.stderr.decode()) == (5, f"footprint: {told}\n")


def test_an_exit_code_is_a_failure_unless_it_is_expected_or_allowed(builds: Builds) -> None:
    build, other = (builds.build(name, "int main(void) { return 3; }") for name in ("one", "other"))
    words = ["--with", other, "--starts", "1"]
    done = command(*words, "--", build)
    assert done.returncode == 5
    assert b"one failed: it exited with 3, not with 0; other failed: it exited with 3, not" in done.stdout
    assert command(*words, "--expect-exit", "3", "--", build).returncode == 0
    assert command(*words, "--allow", "exit", "--", build).returncode == 0


def test_a_build_whose_library_is_missing_fails_with_the_words_of_the_loader(builds: Builds) -> None:
    builds.build("libgone.so", "int gone(void) { return 0; }", "-shared", "-fPIC")
    other = builds.build("other", HELLO, "-lgone")
    (builds.folder / "libgone.so").unlink()
    found = compare_builds([builds.build("one", HELLO)], other, starts=1)
    assert [one.detail for one in found.failures[1]] == ["it exited with 127, not with 0"]
    errors = found.behaviour[1]
    assert (errors.line, errors.before) == (1, None)
    assert "libgone.so" in (errors.after or "")


@pytest.mark.parametrize("name", [os.fsdecode(b"not utf-8 \xff"), "with \x1b[1m and\nline"])
def test_the_name_of_a_build_may_be_any_bytes(builds: Builds, name: str) -> None:
    one = builds.build("one", HELLO)
    other = os.path.join(builds.folder, name)
    shutil.copy(one, other)
    for format_ in ("text", "json", "markdown", "csv"):
        done = command("--with", other, "--format", format_, "--", one)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_no_program_is_refused_with_its_name_and_the_cause(builds: Builds, tmp_path: Path) -> None:
    hello = builds.build("one", HELLO)
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o644)

    def cause(build: str, kind: type[Exception] = AccessError) -> str:
        with pytest.raises(kind) as error:
            compare_builds([hello], build, starts=1)
        return str(error.value)

    assert cause(f"{hello}.new") == f"{hello}.new: there is no such program"
    assert cause(str(tmp_path)) == f"{tmp_path}: it is not a file"
    assert cause(str(text)) == f"{text}: it is not executable"
    text.chmod(0o755)
    assert cause(str(text), InputError).startswith(f"{text}: ")
    text.write_text("#!/bin/sh\n")
    assert cause(str(text), UsageError).startswith(f"{text} is a script: run the program in its first line")


def test_a_program_in_this_folder_is_not_searched_in_path(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    builds.build("one.new", HELLO)
    monkeypatch.chdir(builds.folder)
    with pytest.raises(AccessError, match=r"one\.new: it is not in PATH: write \./one\.new"):
        compare_builds([builds.build("one", HELLO)], "one.new")


def test_a_build_for_another_machine_is_named_and_exit_code_3(builds: Builds) -> None:
    build = builds.build("one", HELLO)
    other = builds.folder / "other"
    data = bytearray(Path(build).read_bytes())
    data[18:20] = (75).to_bytes(2, sys.byteorder)  # e_machine: EM_VAX, which nothing emulates
    other.write_bytes(data)
    other.chmod(0o755)
    done = command("--with", str(other), "--", build)
    told = f"{other}: it cannot be started: Exec format error; it is for another machine than {build}"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (3, b"", f"footprint: {told}\n")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "say what to compare the program with: --drop LIB, or --with BINARY"),
        (["--drop", "libm.so.6", "--with", "true"], "say what to compare the program with: --drop LIB, or --with"),
        (["--with", "true", "--force"], "--force goes with --drop"),
        (["--drop", "libm.so.6", "--expect-exit", "3"], "--expect-exit and --allow go with --with"),
        (["--with", "true", "--allow", "crash"], "'crash' is not a failure that can be allowed"),
        (["--with", "true", "--when", "peak"], "'peak' is not a moment"),
    ],
)
def test_options_that_do_not_go_together_are_exit_code_2(words: list[str], cause: str) -> None:
    done = command(*words, "--", "true")
    assert (done.returncode, done.stdout) == (2, b"")
    assert cause in done.stderr.decode()


# --- the command ------------------------------------------------------------------------------------------------------


def command(*words: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "footprint", "whatif", *words]
    return subprocess.run(line, env=environment, stdin=stdin, capture_output=True, check=False, timeout=60)


def test_the_report_fits_80_columns_and_ends_with_the_saving(builds: Builds) -> None:
    pie, no_pie = builds.build("pie", TABLE, "-fPIE", "-pie"), builds.build("no_pie", TABLE, "-fno-pie", "-no-pie")
    done = command("--with", no_pie, "-n", "10000", "--", pie)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    # The first line has the whole paths; a remark at the end of a row is longer.
    long = [line for line in lines[1:] if len(line) > 80]
    assert [line for line in long if not line.endswith("; within the spread of the starts")] == []
    last = " ".join(done.stdout.decode().rpartition("\n\n")[2].split())
    assert last.startswith("A process of no_pie costs 1")
    assert " than one of pie, beyond the spread of the starts; 10,000 of them 1." in last
    assert last.endswith(" It behaves as before.")


def test_the_json_is_what_the_schema_says_and_adds_up() -> None:
    shadow = SAMPLES / "condor_shadow"
    done = command("--with", str(shadow / "sans_crypt"), "-n", "7", "--json", "--", str(shadow / "base"))
    result = json.loads(done.stdout)
    WRITTEN.validate(result)
    figures = {one["name"]: one for one in result["figures"]}
    whole_bytes = figures["private_bytes"]["delta_bytes"] + figures["kernel_bytes"]["delta_bytes"]
    assert figures["per_process_bytes"]["delta_bytes"] == whole_bytes
    assert figures["per_process_bytes"]["delta_at_count_bytes"] == 7 * whole_bytes
    assert sum(one["delta_bytes"] for one in result["changes"]) == whole_bytes
    assert sum(one["delta_bytes"] for one in result["diff"]) == whole_bytes
    # As the README of the sample says: two buffers of a page of the program, and both libraries.
    gone = {Path(one["owner"]).name for one in result["changes"] if one["is_gone"]}
    assert gone == {"libunused.so", "libunused_dep.so"}
    assert (result["whatif"]["starts"], result["whatif"]["is_alike"], result["whatif"]["failures"]) == (3, True, [])


def test_an_interrupt_ends_the_build_that_runs(builds: Builds) -> None:
    nap = 7000 + os.getpid() % 1000
    one = builds.build("napping", f"#include <unistd.h>\nint main(void) {{ sleep({nap}); }}")
    line = [sys.executable, "-m", "footprint", "whatif", "--with", one, "--when", "60s", "--", one]
    with subprocess.Popen(line, env=os.environ | {"PYTHONPATH": str(ROOT)}) as running:
        while not (napping := _processes_of(one)) and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
    assert [pid for pid in napping if Path(f"/proc/{pid}").exists()] == []


def _processes_of(path: str) -> list[int]:
    result = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(each / "exe") == path:
                result.append(int(each.name))
        except OSError:
            continue
    return result
