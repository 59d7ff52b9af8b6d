"""Programs that gcc links are run with a library and without it: what is saved, what differs, what is refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from jsonschema import Draft202012Validator

import footprint
from footprint.errors import AccessError, FootprintError, UsageError
from footprint.verbs.whatif import call
from footprint.verbs.whatif.call import whatif
from footprint.verbs.whatif.result import Agreement, WhatIf
from tests.liveprocesses import is_ptrace_allowed, wait_until

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_binaries" / "unused_library"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
NOT_UTF8 = os.fsdecode(b"not utf-8 \xff")


pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here"),
    pytest.mark.skipif(not is_ptrace_allowed(), reason="ptrace is not allowed here"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the sample is for x86-64"),
]


@pytest.fixture(autouse=True)
def private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder for the copies, in which nothing may be left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


class Builder:
    """Builds small libraries and programs in a folder, where they find each other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def library(self, name: str, source: str, *options: str) -> str:
        path = self.folder / f"lib{name}.so"
        return self._build(path, source, "-shared", "-fPIC", f"-Wl,-soname,{path.name}", *options)

    def program(self, source: str, *options: str) -> str:
        return self._build(self.folder / "program", source, *options)

    def _build(self, path: Path, source: str, *options: str) -> str:
        text = path.with_suffix(".c")
        text.write_text(source)
        beside = [f"-L{self.folder}", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
        linked = [option for option in options if option.startswith("-l")]
        others = [option for option in options if not option.startswith("-l")]
        command = ["gcc", "-w", "-O1", "-o", str(path), *others, str(text), *beside, *linked]
        subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(self.folder)})
        return str(path)


@pytest.fixture
def built(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "built")


def seen(result: WhatIf) -> dict[str, Agreement]:
    return {one.name: one.verdict for one in result.behaviour}


def equal() -> dict[str, Agreement]:
    return dict.fromkeys(("stdout", "stderr", "ending"), Agreement.EQUAL)


def left(result: WhatIf) -> list[str]:
    return [Path(one.path).name for one in result.leaving]


def assert_measured_as_predicted(result: WhatIf) -> None:
    assert result.private is not None
    # Where the stack begins in a page is left to chance at each start.
    saved = {one.owner: one.before_bytes - one.after_bytes for one in result.changes if one.owner != "[stack]"}
    assert abs(sum(saved.values()) - result.predicted_bytes) <= PAGE_BYTES * len(result.leaving)
    leaving = {one.path for one in result.leaving}
    changes = [change for change in result.changes if change.owner in leaving]
    assert {one.owner: one.before_bytes for one in changes} == {one.path: one.predicted_bytes for one in result.leaving}
    assert all(change.after_bytes == 0 for change in changes)
    # Every byte that is saved has its owner.
    assert sum(change.before_bytes - change.after_bytes for change in result.changes) == result.private.bytes


# --- what is saved ----------------------------------------------------------------------------------------------------


def test_the_sample_saves_what_its_readme_says() -> None:
    before = [path.read_bytes() for path in sorted(SAMPLE.iterdir())]
    found = whatif([str(SAMPLE / "shadow")], drop=["libcrypt_like.so"], count=10)
    assert left(found) == ["libcrypt_like.so", "libfreebl_like.so"]
    assert found.predicted_bytes == 20 * 1024
    assert_measured_as_predicted(found)
    assert (seen(found), found.is_alike, found.notes) == (equal(), True, ())
    assert [one.size_bytes for one in found.behaviour] == [6, 0, None]
    assert [path.read_bytes() for path in sorted(SAMPLE.iterdir())] == before


def tables(name: str) -> str:
    """Return a function and 50 KiB of pointers, which the loader writes."""
    table = f'static const char *const {name}s[6400] = {{[0 ... 6399] = "word"}};'
    return f"{table} int {name}(int key) {{ return *{name}s[key]; }}"


def test_relocated_tables_of_50_kib_and_what_only_they_need_are_saved(built: Builder) -> None:
    built.library("deep", tables("deep"))
    built.library(
        "tables", f"int deep(int key); {tables('word')} int both(int key) {{ return deep(key) + word(key); }}", "-ldeep"
    )
    built.library("used", "int used(void) { return 3; }")
    path = built.program("int used(void); int main(void) { return used(); }", "-ltables", "-lused")
    found = whatif([path], drop=["libtables.so"])
    assert left(found) == ["libtables.so", "libdeep.so"]
    assert found.predicted_bytes >= 100 * 1024
    assert_measured_as_predicted(found)
    assert seen(found) == equal()
    assert found.after.start.exit_code == 3


THREADS = """
#include <pthread.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *body(void *p) { pthread_barrier_wait(&all); pause(); return p; }
int main(void) { pthread_t one; pthread_barrier_init(&all, 0, 20);
for (int i = 0; i < 19; i++) pthread_create(&one, 0, body, 0);
pthread_barrier_wait(&all); write(1, "ready\\n", 6); pause(); return 0; }
"""


def test_thread_local_variables_of_what_leaves_are_saved_in_each_thread(built: Builder) -> None:
    built.library("blocks", "static __thread char block[1 << 20]; char *blocks(int at) { return block + at; }")
    path = built.program(THREADS, "-lblocks", "-pthread")
    (finding,) = [one for one in footprint.libraries(path).findings if one.rule == "unused-library"]
    result = whatif([path], drop=["libblocks.so"], when_output="ready")
    own_bytes = result.leaving[0].predicted_bytes
    assert (finding.saving_bytes, finding.thread_bytes) == (own_bytes + (1 << 20), 1 << 20)
    assert result.predicted_bytes == own_bytes + (20 << 20)
    before_bytes, after_bytes = (
        sum(row.bytes or 0 for row in ran.audit.ledger if row.owner not in {"[stack]", "[kernel]"})
        for ran in (result.before, result.after)
    )
    # Each thread saves the rest of a page, too. The first stack begins at a random place of its page.
    assert 0 <= before_bytes - after_bytes - result.predicted_bytes <= 2 * 20 * PAGE_BYTES


def test_a_library_that_needs_another_for_nothing_is_copied_too(built: Builder) -> None:
    pytest.importorskip("lief")
    built.library("nothing", tables("nothing"))
    built.library("used", "int used(void) { return 4; }", "-lnothing")
    path = built.program("int used(void); int main(void) { return used(); }", "-lused")
    result = whatif([path], drop=[str(built.folder / "libnothing.so")])
    assert (result.users, left(result)) == (("libused.so",), ["libnothing.so"])
    assert_measured_as_predicted(result)
    assert seen(result) == equal()
    # To be written anew costs a copy no private memory.
    held = result.original.audit.totals.private.bytes
    assert held is not None
    assert result.before.private is not None
    assert abs(held - result.before.private.median) <= 2 * PAGE_BYTES


@pytest.mark.parametrize("tags", ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"])
def test_runpath_and_rpath_lead_where_they_did(built: Builder, tags: str) -> None:
    pytest.importorskip("lief")
    built.library("nothing", "int nothing(void) { return 0; }", tags)
    built.library("inner", "int inner(void) { return 2; }", "-lnothing", tags)
    built.library("outer", "int inner(void); int outer(void) { return inner(); }", "-linner", tags)
    path = built.program("int outer(void); int main(void) { return outer(); }", "-louter", "-lnothing", tags)
    found = whatif([path], drop=["libnothing.so"], starts=1)
    assert (found.users, left(found)) == (("program", "libinner.so"), ["libnothing.so"])
    assert seen(found) == equal()


@pytest.mark.parametrize("name", ["with spaces and $dollars", NOT_UTF8])
def test_a_path_may_be_any_bytes(tmp_path: Path, name: str) -> None:
    pytest.importorskip("lief")
    shutil.copytree(SAMPLE, tmp_path / name)
    found = whatif([str(tmp_path / name / "shadow")], drop=["libcrypt_like.so"], starts=1)
    assert (found.predicted_bytes, seen(found)) == (20 * 1024, equal())


def test_a_program_keeps_its_name_and_its_arguments(built: Builder) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    source = '#include <stdio.h>\nint main(int n, char **words) { printf("%s %s %s\\n", *words, words[1], words[2]); }'
    path = built.program(source, "-lnothing")
    found = whatif([path, "a b", NOT_UTF8], drop=["libnothing.so"], starts=1)
    assert (seen(found), found.notes) == (equal(), ())


# --- what is seen to differ -------------------------------------------------------------------------------------------


def test_a_constructor_that_sets_a_variable_is_missed(built: Builder) -> None:
    source = '#include <stdlib.h>\n__attribute__((constructor)) static void set(void) { setenv("MODE", "fast", 1); }'
    built.library("sets", source)
    source = (
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(void) { char *mode = getenv("MODE"); puts("mode"); puts(mode ? mode : "slow"); }'
    )
    found = whatif([built.program(source, "-lsets")], drop=["libsets.so"])
    output = found.behaviour[0]
    assert output == ("stdout", Agreement.DIFFERENT, True, 10, 2, "fast", "slow")
    assert not found.is_alike
    assert found.doubts == ("libsets.so has 1 constructor of its own, which would not run",)


def test_output_that_differs_anyway_says_nothing(built: Builder) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    source = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", getpid()); }'
    found = whatif([built.program(source, "-lnothing")], drop=["libnothing.so"])
    assert seen(found) == equal() | {"stdout": Agreement.VARYING}
    assert found.is_alike


def test_a_program_that_shows_where_it_lies_is_noted(built: Builder) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    source = (
        "#include <stdio.h>\n#include <unistd.h>\nchar path[999];\n"
        'int main(void) { readlink("/proc/self/exe", path, 998); puts(path); }'
    )
    found = whatif([built.program(source, "-lnothing")], drop=["libnothing.so"])
    assert seen(found) == equal()
    assert [note.slug for note in found.notes] == ["copy-differs"]


def test_a_file_as_input_is_read_from_its_beginning_by_each(built: Builder, tmp_path: Path) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    path = built.program("#include <stdio.h>\nint main(void) { return getchar(); }", "-lnothing")
    (tmp_path / "input").write_text("A")
    with open(tmp_path / "input", "rb") as file:
        done = command("--drop", "libnothing.so", "--json", "--", path, stdin=file)
    assert (done.returncode, json.loads(done.stdout)["behaviour"][2]["before"]) == (0, "exit code 65")


def test_a_library_that_is_opened_by_name_is_noted(built: Builder) -> None:
    library = built.library("nothing", "int nothing(void) { return 0; }")
    source = f'#include <dlfcn.h>\nint main(void) {{ return !dlopen("{library}", RTLD_NOW); }}'
    found = whatif([built.program(source, "-lnothing")], drop=["libnothing.so"], starts=1)
    assert [(note.slug, note.subject) for note in found.notes] == [("still-loaded", library)]
    assert "program may load objects or look up symbols by name" in found.doubts


# --- what is refused --------------------------------------------------------------------------------------------------


def refusal(path: str, *names: str, force: bool = False) -> str:
    with pytest.raises(UsageError) as error:
        whatif([path], drop=names, starts=1, force=force)
    return str(error.value)


def test_a_version_that_is_checked_blocks_it_even_by_force(built: Builder) -> None:
    script = built.folder / "versions"
    script.write_text("V1 { global: *; };")
    versions = f"-Wl,--version-script={script}"
    built.library("first", "int other(void) { return 0; }")
    built.library("second", "int asked(void) { return 0; }", versions)
    path = built.program("int asked(void); int main(void) { return asked(); }", "-lfirst", "-lsecond")
    built.library("first", "int asked(void) { return 1; }", versions)
    for is_forced in (False, True):
        assert "program checks at start that libsecond.so has V1: relink it" in refusal(
            path, "libsecond.so", force=is_forced
        )


def test_a_use_of_what_only_it_brings_in_blocks_it_but_for_force(built: Builder) -> None:
    built.library("deep", "int deep(void) { return 0; }")
    built.library("middle", "int deep(void) { return 0; }")
    path = built.program("int deep(void); int main(void) { return deep(); }", "-lmiddle")
    built.library("middle", "int middle(void) { return 0; }", "-ldeep")
    text = refusal(path, "libmiddle.so")
    assert "program binds to libdeep.so without needing it by name (deep); --force" in text
    found = whatif([path], drop=["libmiddle.so"], starts=1, force=True)
    assert seen(found) == equal() | {"stderr": Agreement.DIFFERENT, "ending": Agreement.DIFFERENT}
    assert found.behaviour[2][-2:] == ("exit code 0", "exit code 127")


def test_a_search_path_that_another_needs_blocks_it_even_by_force(built: Builder) -> None:
    deep = built.folder / "deep"
    built.library("deep", "int deep(void) { return 5; }")
    built.library("idle", "int idle;", "-ldeep", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/deep")
    built.library("used", "int deep(void); int used(void) { return deep(); }", "-ldeep")
    path = built.program("int used(void); int main(void) { return used(); }", "-lidle", "-lused")
    deep.mkdir()
    (built.folder / "libdeep.so").rename(deep / "libdeep.so")
    for is_forced in (False, True):
        text = refusal(path, "libidle.so", force=is_forced)
        assert text.endswith("libused.so would not find libdeep.so, which is found now by the RUNPATH of libidle.so")


def test_a_symbol_that_would_come_from_another_library_blocks_it_but_for_force(built: Builder) -> None:
    built.library("one", "int foo(void) { return 1; }")
    built.library("two", "int foo(void) { return 2; }")
    built.library("idle", "int idle;", "-ltwo")
    built.library("used", "int foo(void); int used(void) { return foo(); }", "-lone", "-ltwo")
    path = built.program("int used(void); int main(void) { return used(); }", "-lidle", "-lused")
    text = refusal(path, "libidle.so")
    assert "libused.so would get foo from libone.so instead of libtwo.so; --force tries it anyway" in text
    found = whatif([path], drop=["libidle.so"], starts=1, force=True)
    assert found.behaviour[2][-2:] == ("exit code 2", "exit code 1")
    assert [note.slug for note in found.notes] == ["load-order-differs"]


def test_a_library_that_another_uses_stays_and_saves_nothing(built: Builder) -> None:
    built.library("both", "int both(void) { return 0; }")
    built.library("used", "int both(void); int used(void) { return both(); }", "-lboth")
    path = built.program("int used(void); int main(void) { return used(); }", "-lused", "-lboth")
    text = refusal(path, "libboth.so")
    assert "libused.so binds to libboth.so (both)" in text
    assert "program needs it without using it, but it stays loaded, and nothing is saved" in text


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("libc.so.6", "no program runs without the C library and the loader"),
        ("ld-linux-x86-64.so.2", "no program runs without the C library and the loader"),
        ("libother.so", "is none of the"),
        ("program", "is the program itself"),
    ],
)
def test_what_cannot_be_dropped_at_all_is_refused(built: Builder, name: str, cause: str) -> None:
    assert cause in refusal(built.program("int main(void) { return 0; }"), name)


def test_programs_whose_copies_would_be_others_are_refused(built: Builder, tmp_path: Path) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    path = built.program("int main(void) { return 0; }", "-lnothing")
    os.chmod(path, 0o4700)
    assert "set-user-ID" in refusal(path, "libnothing.so")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert "is a script" in refusal(str(script), "libnothing.so")
    static = built.program("int main(void) { return 0; }", "-static")
    assert "is a static program" in refusal(static, "libnothing.so")


def test_without_lief_a_need_of_the_program_itself_can_be_dropped(
    built: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lief", None)
    assert "pip install 'footprint-audit[whatif]'" in refusal(str(SAMPLE / "shadow"), "libcrypt_like.so")
    built.library("nothing", "int nothing(void) { return 0; }")
    path = built.program("int main(void) { return 0; }", f"-Wl,-rpath,{built.folder}", "-lnothing")
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(data.replace(b":$ORIGIN\0", b"\0" * 9))
    assert left(whatif([path], drop=["libnothing.so"], starts=1)) == ["libnothing.so"]


# --- nothing is left behind -------------------------------------------------------------------------------------------


def command(*words: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "footprint", "whatif", *words]
    return subprocess.run(line, env=environment, stdin=stdin, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(built: Builder, private_tmp: Path, number: signal.Signals) -> None:
    built.library("nothing", "int nothing(void) { return 0; }")
    nap = 7000 + os.getpid() % 1000
    path = built.program(f"#include <unistd.h>\nint main(void) {{ sleep({nap}); }}", "-lnothing")
    line = [sys.executable, "-m", "footprint", "whatif", "--drop", "libnothing.so", "--when", "60s", "--", path]
    with subprocess.Popen(line, env=os.environ | {"PYTHONPATH": str(ROOT)}) as running:
        patience_end = time.monotonic() + 60
        while not list(private_tmp.glob("*/bin/program")) and time.monotonic() < patience_end:
            time.sleep(0.05)
        # The copy is there, and the program itself is the first to start.
        wait_until(lambda: any(starts_below(built.folder, pid) for pid in os.listdir("/proc")), "the program")
        running.send_signal(number)
        assert running.wait(timeout=60) == (130 if number is signal.SIGINT else -number)
    assert list(private_tmp.iterdir()) == []


def starts_below(folder: Path, pid: str) -> bool:
    """Return whether a process runs a program of a folder."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe").startswith(f"{folder}/")
    return False


def test_a_start_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AccessError("shadow", "it cannot be started")

    monkeypatch.setattr(call, "start", fail)
    with pytest.raises(FootprintError, match="cannot be started"):
        whatif([str(SAMPLE / "shadow")], drop=["libcrypt_like.so"])


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_report_fits_80_columns_and_ends_with_the_saving() -> None:
    done = command("--drop", "libcrypt_like.so", "-n", "1000", "--", str(SAMPLE / "shadow"))
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    # The first line has the whole path.
    assert [line for line in lines[1:] if len(line) > 80] == []
    last = " ".join(lines[-3:])
    assert "(predicted: 20 KiB)" in last
    assert last.endswith("It behaves as before.")


def test_the_json_is_what_the_schema_says_and_adds_up() -> None:
    done = command("--drop", "libcrypt_like.so", "-n", "7", "--json", "--", str(SAMPLE / "shadow"))
    found = json.loads(done.stdout)
    schema = json.loads((ROOT / "footprint" / "json" / "footprint-1.schema.json").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(found)] == []
    saving = found["saving"]
    assert sum(row["before_bytes"] - row["after_bytes"] for row in found["changes"]) == saving["private_bytes"]
    assert sum(row["predicted_bytes"] or 0 for row in found["changes"]) == saving["predicted_bytes"] == 20 * 1024
    assert saving["per_process_bytes"] == saving["private_bytes"] + saving["kernel_bytes"]
    assert saving["total_bytes"] == 7 * saving["per_process_bytes"]


def test_other_behaviour_is_exit_code_1_and_a_refusal_2(built: Builder) -> None:
    built.library(
        "prints", '#include <stdio.h>\n__attribute__((constructor)) static void say(void) { puts("\\33[1m"); }'
    )
    path = built.program("int main(void) { return 0; }", "-lprints")
    done = command("--drop", "libprints.so", "--", path)
    assert done.returncode == 1
    assert b"\\x1b[1m" in done.stdout
    assert b"\33" not in done.stdout
    refused = command("--drop", "libc.so.6", "--", path)
    assert (refused.returncode, refused.stdout) == (2, b"")
