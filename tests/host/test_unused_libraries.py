"""Libraries that nobody uses, built by a real linker: the verdict on each, and what really happens without it."""

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import footprint
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.cli import main
from footprint.elf.abi import PT_DYNAMIC
from footprint.elf.dynamic import read_linkage
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import read_image
from footprint.findings.graph_rules.stub_library import stub_libraries
from footprint.findings.graph_rules.underlinked import underlinked
from footprint.findings.graph_rules.unused_library import UnusedNeed, unused_libraries, unused_needs
from footprint.findings.registry import Fact, find_all
from footprint.loader.target import Environment
from footprint.model.finding import Confidence, Finding
from footprint.sources.programs import Programs
from footprint.text.units import format_bytes
from tests.elfwriter import DT_NEEDED, peek

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing"),
    pytest.mark.skipif(not Path("/lib64/ld-linux-x86-64.so.2").exists(), reason="the loader is not glibc's for x86-64"),
]

IGNORED_TAG = 0x60000000
FAILED_TO_START = 127


@dataclass(frozen=True)
class Workshop:
    """A folder of libraries and programs; each is named by its file."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def library(self, name: str, source: str, *options: str) -> None:
        self._link(name, source, "-shared", "-fPIC", f"-Wl,-soname,{name}", *options)

    def program(self, name: str, source: str, *options: str) -> None:
        self._link(name, source, *options)

    def _link(self, name: str, source: str, *options: str) -> None:
        code = self.folder / f"{name}.c"
        code.write_text(source)
        paths = ["-L.", f"-Wl,-rpath,{self.folder}", f"-Wl,-rpath-link,{self.folder}"]
        command = ["gcc", "-O1", "-o", name, code.name, "-Wl,--no-as-needed", *paths, *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def graph(self, name: str, **wishes: str) -> DependencyGraph:
        return Programs(environment=Environment(cwd=str(self.folder), **wishes)).graph(self.path(name))  # type: ignore[arg-type] # all of them are text

    def findings(self, name: str) -> tuple[Finding, ...]:
        return unused_libraries(self.graph(name))

    def runs(self, name: str) -> int:
        """Return the exit code of a program."""
        return subprocess.run([self.path(name)], check=False, capture_output=True, cwd=self.folder).returncode

    def runs_without(self, name: str, library: str) -> int:
        """Return the exit code of a copy of a program that does not need a library by name any more."""
        image = bytearray((self.folder / name).read_bytes())
        read = read_image(bytes(image), name)
        dynamic = read.segment(PT_DYNAMIC)
        assert dynamic is not None
        needs = [at for at in range(dynamic.offset, dynamic.offset + dynamic.file_bytes, 16) if image[at] == DT_NEEDED]
        struct.pack_into("<Q", image, needs[read_linkage(read).needed.index(library)], IGNORED_TAG)
        copy = self.folder / f"{name}.without"
        copy.write_bytes(image)
        copy.chmod(0o755)
        return self.runs(copy.name)


MANY = "\n".join(f"int shown_{number}(void) {{ return {number}; }}" for number in range(40))
MALLOC = """
#include <stddef.h>
static char room[1 << 20]; static size_t used; int calls;
void *malloc(size_t n) { calls++; char *p = room + used; used += (n + 31) & ~(size_t)15; return p; }
void free(void *p) { (void)p; } void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { char *q = malloc(n); for (size_t i = 0; p && i < n; i++) q[i] = ((char *)p)[i];
return q; }
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Build all cases."""
    made = Workshop(tmp_path_factory.mktemp("unused"))
    made.library("libplain.so", "static int data = 5; int *plain(void) { return &data; }")
    made.program("plain", "int main(void) { return 0; }", "-lplain")

    setting = '#include <stdlib.h>\n__attribute__((constructor)) static void set(void) { setenv("SET", "1", 1); }'
    made.library("libctor.so", setting)
    made.program("ctor", '#include <stdlib.h>\nint main(void) { return getenv("SET") ? 5 : 6; }', "-lctor")

    made.library("libsought.so", "int secret_function(void) { return 5; }")
    seeking = "#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void) { int (*f)(void) = "
    seeking += 'dlsym(RTLD_DEFAULT, "secret_function"); return f ? f() : 6; }'
    made.program("seeking", seeking, "-lsought")
    made.program("seeker", seeking.replace("secret_function", "another"), "-lsought")

    made.library("libweak.so", "int optional(void) { return 5; }")
    optional = "__attribute__((weak)) int optional(void); int main(void) { return optional ? optional() : 6; }"
    made.program("weak", optional, "-lweak")

    made.library("libmymalloc.so", MALLOC)
    made.program("interposed", '#include <string.h>\nint main(void) { return strdup("a") == 0; }', "-lmymalloc")

    made.library("libver.so", "int f(void) { return 5; }", f"-Wl,--version-script={_script(made, 'V1 { f; };')}")
    made.program("version", "int f(void); int main(void) { return f(); }", "-lver")
    # The function has moved, and the version stayed, as those of libpthread did in glibc 2.34.
    made.library("libmoved.so", "int f(void) { return 5; }", f"-Wl,--version-script={_script(made, 'V1 { f; };')}")
    made.program("version", "int f(void); int main(void) { return f(); }", "-lver", "-lmoved")
    made.library("libver.so", "int stub(void) { return 6; }", f"-Wl,--version-script={_script(made, 'V1 { stub; };')}")

    made.library("libb.so", "int b(void) { return 5; }")
    made.library("libunder.so", "int b(void); int under(void) { return b(); }")
    made.program("under", "int under(void); int main(void) { return under(); }", "-lunder", "-lb")

    plugins = f'{MANY}\n#include <dlfcn.h>\nint main(void) {{ return dlopen("libnone.so", 1) != 0; }}'
    made.program("host", plugins, "-lplain", "-rdynamic")

    made.library("libasan.so", "int asan(void) { return 5; }")
    made.program("sanitized", "int main(void) { return 0; }", "-lasan")

    made.library("libneeding.so", "int needing(void) { return 5; }", "-lplain")
    made.program("indirect", "int needing(void); int main(void) { return needing(); }", "-lneeding")

    made.library("libz1.so", "int z(void) { return 5; }")
    for name in ("x", "y"):
        made.library(f"lib{name}1.so", f"int z(void); int {name}(void) {{ return z(); }}", "-lz1")
    made.program("two", "int main(void) { return 0; }", "-lx1", "-ly1")

    made.library("libusing.so", "int b(void); int using(void) { return b(); }", "-lb")
    made.program("residue", "int using(void); int main(void) { return using(); }", "-lusing", "-lb")
    made.program("loader", "int main(void) { return 0; }", "/lib64/ld-linux-x86-64.so.2")

    made.library("libouter.so", "int outer(void) { return 5; }", "-lplain")
    made.program("nested", "int main(void) { return 0; }", "-louter")

    made.library("libtls.so", "_Thread_local char block[1 << 20]; char *tls(void) { return block; }")
    made.program("threads", "int main(void) { return 0; }", "-ltls")

    for kind in ("auxiliary", "filter"):
        made.library(f"libfiltee_{kind}.so", "int who(void) { return 5; }")
        code = "int who(void) { return 6; } int only(void) { return 0; }"
        made.library(f"lib{kind}.so", code, f"-Wl,--{kind},libfiltee_{kind}.so")
        source = "int who(void); int only(void); int main(void) { return who() + only(); }"
        made.program(kind, source, f"-l{kind}")
    return made


def _script(shop: Workshop, text: str) -> Path:
    path = shop.folder / "versions.map"
    path.write_text(text)
    return path


def only(findings: Sequence[Finding]) -> Finding:
    (found,) = findings
    return found


def startup_min_bytes(graph: DependencyGraph, *names: str) -> int:
    """Return what some libraries surely write at start."""
    numbers = [number for number in range(len(graph.objects)) if graph.name(number) in names]
    assert len(numbers) == len(names)
    return sum(prediction.startup_min_bytes for number in numbers if (prediction := graph.predictions[number]))


# --- what can go


def test_a_library_that_nobody_uses_can_go_with_all_that_it_wrote(shop: Workshop) -> None:
    found = only(shop.findings("plain"))
    saving_bytes = startup_min_bytes(shop.graph("plain"), "libplain.so")
    assert saving_bytes >= 4096
    assert found == Finding(
        "unused-library",
        "whole-process",
        "libplain.so",
        "libplain.so is needed by plain, and nothing is used of it",
        saving_bytes,
        Confidence.HIGH,
        ("no object of the process binds to what would leave",),
        "drop -lplain from the link of plain, or write -Wl,--as-needed before it there",
        (shop.path("libplain.so"),),
        object=shop.path("plain"),
    )
    assert (shop.runs("plain"), shop.runs_without("plain", "libplain.so")) == (0, 0)


def test_what_a_library_needs_for_nothing_is_said_of_that_library(shop: Workshop) -> None:
    found = only(shop.findings("indirect"))
    assert (found.kind, found.confidence, found.subject) == ("whole-process", Confidence.HIGH, "libplain.so")
    assert found.message == "libplain.so is needed by libneeding.so, and nothing is used of it"
    assert found.remedy == "relink libneeding.so, which needs libplain.so for nothing, with -Wl,--as-needed"
    assert unused_needs(shop.graph("indirect")) == {UnusedNeed(1, 3)}


def test_two_libraries_that_share_a_third_are_dropped_together(shop: Workshop) -> None:
    result = only(shop.findings("two"))
    graph = shop.graph("two")
    assert (result.kind, result.confidence, result.subject) == (
        "droppable-set",
        Confidence.HIGH,
        "libx1.so and liby1.so",
    )
    assert result.saving_bytes == startup_min_bytes(graph, "libx1.so", "liby1.so", "libz1.so")
    assert result.leaves == tuple(shop.path(name) for name in ("libx1.so", "liby1.so", "libz1.so"))
    assert result.remedy == "drop -lx1 -ly1 from the link of two, or write -Wl,--as-needed before them there"
    assert result.message == (
        "libx1.so and liby1.so are needed by two, and nothing is used of them; libz1.so would leave with them"
    )


def test_what_leaves_with_an_unused_library_is_not_counted_twice(shop: Workshop) -> None:
    graph = shop.graph("nested")
    found = only(unused_libraries(graph))
    assert found.subject == "libouter.so"
    assert found.saving_bytes == startup_min_bytes(graph, "libouter.so", "libplain.so")
    assert found.leaves == (shop.path("libouter.so"), shop.path("libplain.so"))


def test_what_an_unused_library_needs_for_nothing_counts_where_that_one_cannot_go(shop: Workshop) -> None:
    shop.library("libkept.so", "int kept(void) { return 5; }", "-lplain")
    shop.library("libuser.so", "int kept(void); int user(void) { return kept(); }")
    shop.program("kept", "int user(void); int main(void) { return user(); }", "-luser", "-lkept")
    found = {finding.subject: finding for finding in shop.findings("kept")}
    assert found.keys() == {"libkept.so", "libplain.so"}
    assert found["libkept.so"].confidence == Confidence.BLOCKED
    assert found["libplain.so"].confidence == Confidence.HIGH
    assert found["libplain.so"].saving_bytes == startup_min_bytes(shop.graph("kept"), "libplain.so")


def test_the_thread_locals_of_an_unused_library_are_in_what_a_process_and_each_thread_saves(shop: Workshop) -> None:
    graph = shop.graph("threads")
    result = {one.rule: one for one in find_all({Fact.GRAPH: graph})}
    unused = result["unused-library"]
    assert (unused.kind, unused.confidence) == ("whole-process", Confidence.HIGH)
    # The first thread has its block, too.
    assert unused.saving_bytes == startup_min_bytes(graph, "libtls.so") + (1 << 20)
    assert unused.thread_bytes == 1 << 20
    assert result["thread-locals"].saving_bytes == 1 << 20
    assert [one.tls_bytes for one in graph.predictions if one and one.tls_bytes >= 1 << 20] == [1 << 20]


def test_what_could_be_spared_is_a_part_of_what_the_objects_take(
    shop: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    graph = shop.graph("threads")
    cost = format_bytes(graph.cost_bytes(range(len(graph.objects))))
    saved = format_bytes(startup_min_bytes(graph, "libtls.so") + (1 << 20))
    assert main(["libraries", shop.path("threads")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"; {cost} a process and 1 MiB for threads, {saved} unused")
    # The column is there, since an object has whole pages of them.
    assert lines[1].split()[2:4] == ["in", "threads"]
    (own,) = [line.split() for line in lines if "libtls.so  " in line]
    assert own[2:4] == ["1", "MiB"]
    (other,) = [line.split() for line in lines if line.endswith("libc.so.6")]
    assert other[2] == "-"
    verdict = " ".join(lines[-3:])
    assert (
        f"(predicted) and 1 MiB of thread-local variables; without unused libraries it would save {saved}." in verdict
    )


# --- what may not be as unused as it looks


def test_a_library_with_a_constructor_of_its_own_does_something_by_being_there(shop: Workshop) -> None:
    found = only(shop.findings("ctor"))
    assert (found.kind, found.confidence) == ("whole-process", Confidence.MEDIUM)
    assert found.reasons == ("libctor.so has 1 constructor of its own, which would not run",)
    assert (shop.runs("ctor"), shop.runs_without("ctor", "libctor.so")) == (5, 6)


def test_a_library_whose_symbol_the_program_holds_as_a_text_may_be_reached_by_it(shop: Workshop) -> None:
    found = only(shop.findings("seeking"))
    assert (found.kind, found.confidence) == ("whole-process", Confidence.LOW)
    assert found.reasons == ("seeking looks up symbols by name, and holds secret_function",)
    assert (shop.runs("seeking"), shop.runs_without("seeking", "libsought.so")) == (5, 6)


def test_the_last_line_tells_low_savings_apart(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    saving = format_bytes(only(shop.findings("seeking")).saving_bytes)
    assert main(["libraries", shop.path("seeking"), "-q"]) == 0
    last = " ".join(capsys.readouterr().out.split())
    assert last.endswith(f"; without unused libraries it may save {saving} (low confidence).")


def test_a_program_that_looks_for_other_names_leaves_a_doubt(shop: Workshop) -> None:
    found = only(shop.findings("seeker"))
    assert found.confidence == Confidence.MEDIUM
    assert found.reasons == ("seeker may load objects or look up symbols by name",)
    assert (shop.runs("seeker"), shop.runs_without("seeker", "libsought.so")) == (6, 6)


def test_a_program_that_shows_its_symbols_to_plugins_may_have_some_that_use_the_library(shop: Workshop) -> None:
    found = only(shop.findings("host"))
    assert (found.subject, found.confidence) == ("libplain.so", Confidence.LOW)
    assert found.reasons == ("host loads plugins, which may bind to it",)


# --- what cannot go as it is


def test_a_library_that_replaces_functions_of_others_is_used_by_those(shop: Workshop) -> None:
    found = only(shop.findings("interposed"))
    assert (found.kind, found.confidence, found.subject) == ("direct", Confidence.BLOCKED, "libmymalloc.so")
    assert "libc.so.6 binds to libmymalloc.so although others define the same" in found.reasons[0]
    assert found.remedy.endswith(", once what blocks it is settled")
    assert shop.runs("interposed") == shop.runs_without("interposed", "libmymalloc.so") == 0


def test_a_library_that_is_needed_for_its_version_alone_cannot_just_be_dropped(shop: Workshop) -> None:
    found = only(shop.findings("version"))
    assert (found.kind, found.confidence, found.subject) == ("whole-process", Confidence.BLOCKED, "libver.so")
    assert found.reasons == ("version checks at start that libver.so has V1: relink it, no patch will do",)
    assert (shop.runs("version"), shop.runs_without("version", "libver.so")) == (5, FAILED_TO_START)


def test_a_library_that_another_uses_without_needing_it_is_kept_by_the_one_that_does_not_use_it(shop: Workshop) -> None:
    found = only(shop.findings("under"))
    assert (found.kind, found.confidence, found.subject) == ("direct", Confidence.BLOCKED, "libb.so")
    assert found.reasons == ("libunder.so binds to libb.so without needing it by name (b)",)
    assert shop.runs("under") == 5
    assert shop.runs_without("under", "libb.so") == FAILED_TO_START


def test_who_uses_a_library_without_needing_it_is_told_to_need_it(shop: Workshop) -> None:
    assert underlinked(shop.graph("under")) == (
        Finding(
            "underlinked",
            "missing-need",
            "libunder.so",
            "libunder.so uses b of libb.so without needing it by name",
            0,
            Confidence.HIGH,
            ("it works because under needs it",),
            "link libunder.so with -lb",
            object=shop.path("libunder.so"),
        ),
    )


@pytest.mark.parametrize("name", ["residue", "interposed", "weak", "auxiliary", "filter", "plain", "nested"])
def test_who_needs_what_it_uses_or_could_do_without_it_is_not_underlinked(shop: Workshop, name: str) -> None:
    assert underlinked(shop.graph(name)) == ()


def test_what_a_library_calls_in_its_program_is_no_need_of_a_library(shop: Workshop) -> None:
    shop.library("libback.so", "int given(void); int back(void) { return given(); }")
    shop.program("back", "int back(void); int given(void) { return 5; } int main(void) { return back(); }", "-lback")
    assert underlinked(shop.graph("back")) == ()


def test_a_module_need_not_name_the_library_that_opened_it_but_all_others(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.library("libb.so", "int b(void) { return 2; }")
    opening = """
    #include <dlfcn.h>
    int served(void) { return 3; }
    int run(const char *module) { return ((int (*)(void))dlsym(dlopen(module, RTLD_NOW), "f"))(); }
    """
    shop.library("libhost.so", opening)
    shop.library("module.so", "int served(void); int b(void); int f(void) { return served() + b(); }")
    running = """
    #include <stdio.h>
    int run(const char *); int b(void);
    int main(void) { putchar(run("./module.so") + b() == 7 ? '=' : '!'); fflush(stdout); return getchar(); }
    """
    shop.program("running", running, "-lhost", "-lb")
    command, pipe = [shop.path("running")], subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"="
        (finding,) = underlinked(footprint.libraries(child.pid).graph)
        child.communicate(b"x")
    assert finding.message == "module.so uses b of libb.so without needing it by name"


# --- the empty libraries of glibc

GLIBC_HOME = Path("/lib/x86_64-linux-gnu")
OLD = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libanl.so.1")


def test_all_empty_libraries_of_glibc_are_one_finding_whose_remedy_removes_them(shop: Workshop) -> None:
    source = "#include <dlfcn.h>\nint main(void) { return dlopen(0, RTLD_NOW) ? 5 : 1; }"
    # Built as on an older glibc, whose linker found these files behind -ldl and the others.
    shop.program("old", source, *(str(GLIBC_HOME / name) for name in OLD))
    graph = shop.graph("old")
    finding = only(stub_libraries(graph))
    assert (finding.subject, finding.confidence) == (
        "libdl.so.2, libpthread.so.0, librt.so.1 and 2 more",
        Confidence.HIGH,
    )
    assert finding.message == f"{finding.subject} are empty since glibc 2.34; old still needs them"
    assert finding.remedy == "build old against glibc 2.34 or later, without -lanl"
    assert unused_libraries(graph) == ()
    # All verbs count it.
    alone = shop.folder / "alone"
    alone.mkdir()
    shutil.copy(shop.folder / "old", alone)
    (row,) = footprint.survey(alone).programs
    assert (row.unused_bytes, row.unused) == (finding.saving_bytes, (finding.subject,))
    # The remedy: the same program, built here with the same options.
    shop.program("rebuilt", source, "-ldl", "-lpthread", "-lrt", "-lutil")
    rebuilt = shop.graph("rebuilt")
    assert stub_libraries(rebuilt) == ()
    assert (shop.runs("old"), shop.runs("rebuilt")) == (5, 5)
    every = [range(len(one.objects)) for one in (graph, rebuilt)]
    assert graph.cost_bytes(every[0]) - rebuilt.cost_bytes(every[1]) == finding.saving_bytes == 5 * 2 * 4096


def test_a_library_that_only_bears_the_name_of_an_empty_one_is_none(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.library("libdl.so.2", "int mine(void) { return 5; }")
    shop.program("named", "int main(void) { return 0; }", "-l:libdl.so.2")
    graph = shop.graph("named")
    assert stub_libraries(graph) == ()
    assert only(unused_libraries(graph)).subject == "libdl.so.2"


# --- what saves nothing


def test_a_weak_reference_is_a_use_that_could_be_spared(shop: Workshop) -> None:
    found = only(shop.findings("weak"))
    assert (found.kind, found.confidence, found.saving_bytes) == ("soft", Confidence.LOW, 0)
    assert found.message.startswith("weak gets only optional of libweak.so, all optional, and present; it costs ")
    assert found.leaves == (shop.path("libweak.so"),)
    assert shop.graph("weak").spared_bytes([found]) == (0, 0)
    assert found.remedy == "if it is optional, open it with dlopen where it is wanted"
    assert (shop.runs("weak"), shop.runs_without("weak", "libweak.so")) == (5, 6)


def test_a_library_that_another_needs_and_uses_stays_whoever_drops_it(shop: Workshop) -> None:
    result = only(shop.findings("residue"))
    assert (result.kind, result.confidence, result.saving_bytes, result.leaves) == (
        "linker-residue",
        Confidence.HIGH,
        0,
        (),
    )
    assert result.message == "residue needs libb.so without using it, but it stays loaded through libusing.so"
    assert (shop.runs("residue"), shop.runs_without("residue", "libb.so")) == (5, 5)


def test_a_need_of_the_loader_costs_nothing(shop: Workshop) -> None:
    found = only(shop.findings("loader"))
    assert (found.kind, found.saving_bytes, found.subject) == ("linker-residue", 0, "ld-linux-x86-64.so.2")
    assert found.message == "loader needs the loader itself (ld-linux-x86-64.so.2), which is there anyway"


# --- what is none


def test_the_runtime_of_a_sanitizer_is_linked_to_be_there(shop: Workshop) -> None:
    assert shop.findings("sanitized") == ()
    assert len(unused_needs(shop.graph("sanitized"))) == 1


def test_two_needs_that_are_one_file_are_one_need(shop: Workshop) -> None:
    (shop.folder / "other").mkdir()
    for folder in (".", "other"):
        options = ["-shared", "-fPIC", "-o", f"{folder}/libpath.so", "libplain.so.c"]
        subprocess.run(["gcc", *options], check=True, capture_output=True, cwd=shop.folder)
    shop.program("twice", "int main(void) { return 0; }", "./libpath.so", "other/libpath.so")
    (shop.folder / "other" / "libpath.so").unlink()
    (shop.folder / "other" / "libpath.so").symlink_to("../libpath.so")
    graph = shop.graph("twice")
    assert [dependency.name for dependency in graph.objects[0].dependencies] == [
        "./libpath.so",
        "other/libpath.so",
        "libc.so.6",
    ]
    found = only(unused_libraries(graph))
    assert (found.subject, found.kind) == ("libpath.so", "whole-process")
    assert found.saving_bytes == startup_min_bytes(graph, "libpath.so")


def test_what_is_preloaded_is_nobodys_need(shop: Workshop) -> None:
    graph = shop.graph("residue", preload=shop.path("libplain.so"))
    assert [graph.name(number) for number in graph.roots[:2]] == ["residue", "libplain.so"]
    assert [unused_library.subject for unused_library in unused_libraries(graph)] == ["libb.so"]


@pytest.mark.parametrize("name", ["auxiliary", "filter"])
def test_what_stands_in_for_a_library_came_with_it_and_is_used(shop: Workshop, name: str) -> None:
    graph = shop.graph(name)
    assert [graph.name(number) for number in range(4)] == [
        name,
        f"libfiltee_{name}.so",
        f"lib{name}.so",
        "libc.so.6",
    ]
    assert unused_libraries(graph) == ()
    assert graph.remaining(lambda _, __: False) == frozenset(range(len(graph.objects)))
    assert graph.retained[2] == {1, 2}
    assert shop.runs(name) == 5


# --- whoever linked them


LINKERS = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}


@pytest.mark.parametrize("linker", LINKERS)
def test_a_library_that_offers_nothing_has_all_its_symbols_whoever_linked_it(shop: Workshop, linker: str) -> None:
    if shutil.which(LINKERS[linker]) is None:
        pytest.skip(f"{LINKERS[linker]} is missing")
    name = f"libnothing_{linker}.so"
    source = '#include <stdio.h>\n__attribute__((constructor)) static void hello(void) { puts(""); fflush(stdout); }'
    nothing = f"-Wl,--version-script={_script(shop, '{ local: *; };')}"
    shop.library(name, source, f"-fuse-ld={linker}", "-Wl,--hash-style=gnu", nothing)
    raw = (shop.folder / name).read_bytes()
    dynamic_symbols = read_dynamic_symbols(read_image(raw, name))
    assert dynamic_symbols.defined == {}
    assert dynamic_symbols.count == peek(raw, "sh_size", ".dynsym") // 24
    assert {"puts", "fflush"} <= {reference.name for reference in dynamic_symbols.references}
    # Without section headers, the relocations tell.
    bare = bytearray(raw)
    bare[0x28:0x30] = bytes(8)
    bare[0x3C:0x40] = bytes(4)
    assert read_dynamic_symbols(read_image(bytes(bare), name)).references == dynamic_symbols.references


# --- the programs of this machine


def is_program(path: Path) -> bool:
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return file.read(5) == b"\x7fELF\x02"


def test_the_savings_of_a_program_are_what_all_that_leaves_costs() -> None:
    reader = Programs(environment=Environment())
    compared = 0
    for path in [path for path in sorted(Path("/usr/bin").iterdir()) if is_program(path)][::5]:
        graph = reader.graph(str(path))
        free = [one for one in unused_libraries(graph) if one.confidence is not Confidence.BLOCKED]
        leaving = {name for one in free if one.saving_bytes for name in one.leaves}
        numbers = [number for number, linked in enumerate(graph.objects) if linked.path in leaving]
        assert sum(one.saving_bytes for one in free) == graph.cost_bytes(numbers), path
        compared += bool(numbers)
    if not compared:
        pytest.skip("no program of this machine has an unused library")


def test_a_budget_fails_on_unused_libraries_that_cost_something_and_not_on_one_that_saves_nothing(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    # Like libm: it is needed without use, and another library keeps it. Like libsqlite3: it has a constructor. Like
    # libxml2: the program looks up a name of it.
    shop.library("libkept.so", "int kept(void) { return 1; }")
    shop.library("libuser.so", "int kept(void); int user(void) { return kept(); }", "-lkept")
    constructor = "static char table[40960] = {1}; __attribute__((constructor)) void set(void) { table[7] = 2; }"
    shop.library("libmedium.so", constructor)
    shop.library("libsought.so", "char data[8192] = {1}; int sought_by_name(void) { return data[1]; }")
    program = """
        #include <dlfcn.h>
        int user(void);
        int main(void) { return user() - 1 + (dlsym(RTLD_DEFAULT, "sought_by_name") == 0); }
    """
    shop.program("agentd", program, "-lkept", "-luser", "-lmedium", "-lsought", "-ldl")
    budget = shop.folder / "footprint.toml"
    budget.write_text("[budgets.findings]\nunused-library = 0\n")
    findings = {finding.subject: finding for finding in shop.findings("agentd")}
    assert findings["libkept.so"].saving_bytes == 0
    assert (findings["libmedium.so"].confidence, findings["libsought.so"].confidence) == ("medium", "low")
    assert main(["check", shop.path("agentd"), "--config", str(budget), "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["budgets"]
    assert result["value"] == 2
    assert {one["name"] for one in result["contributors"]} == {"libmedium.so", "libsought.so"}


LIBRARIES = ("libm.so.6", "libxml2.so.2", "libsqlite3.so.0")


@pytest.mark.skipif(
    not all(Path("/usr/lib/x86_64-linux-gnu", name).exists() for name in LIBRARIES),
    reason=f"not all of {', '.join(LIBRARIES)} are here",
)
def test_a_budget_fails_on_libraries_of_the_system_that_a_program_does_not_use(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    libraries = [f"-l:{name}" for name in LIBRARIES]
    shop.program("agentd", "int main(void) { return 0; }", *libraries)
    budget = shop.folder / "footprint.toml"
    budget.write_text("[budgets.findings]\nunused-library = 0\n")
    assert main(["check", shop.path("agentd"), "--config", str(budget), "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["budgets"]
    # Both need libm, so all three leave together.
    assert [one["name"] for one in result["contributors"]] == ["libm.so.6, libxml2.so.2 and libsqlite3.so.0"]

    source = '#include <dlfcn.h>\nint main(void) { return dlsym(RTLD_DEFAULT, "xmlInitParser") == 0; }'
    shop.program("agentd", f"double cos(double);\n{source}", *libraries)
    assert main(["check", shop.path("agentd"), "--config", str(budget), "--json"]) == 1
