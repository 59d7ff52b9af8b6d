"""What the loader does at start is predicted as the loader counts it: LD_DEBUG of programs held at their entry."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from operator import mul
from pathlib import Path

import pytest

import footprint
from benchmarks.libraries import FOLDERS, programs
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.start_time import start_system
from footprint.elf.relocations import pack_relative
from footprint.errors import AccessError
from footprint.findings.registry import rule_named
from footprint.formats.document import Heading, Paragraph, Table
from footprint.loader.target import Environment
from footprint.model.costs import Spread, StartMeasurement
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.process import start_counters
from footprint.process.held_program import AT_ENTRY, held_at_start, measure_starts, start_once
from footprint.sources.programs import Programs
from footprint.sources.start_calibration import choose_samples, measure_samples
from footprint.verbs.run.text import start_cost_blocks
from tests.loader_counts import counted_by_loader, fault_count, predicted

GLIBC = "/lib64/ld-linux-x86-64.so.2"
# Lazy and not, with copies, with packed relocations, with RUNPATH, of C++; 3 to 60 objects.
PROGRAMS = ("true", "git", "apt", "bash", "curl", "gdb", "gpg", "ls", "node", "openssl", "python3", "ssh", "systemctl")

pytestmark = pytest.mark.skipif(not Path(GLIBC).exists(), reason=f"no {GLIBC}")

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")


def build(folder: Path, output: str, source: str, *options: str) -> str:
    (folder / f"{output}.c").write_text(source)
    kind = [] if output == "program" else ["-shared", "-fPIC"]
    command = ["gcc", "-o", output, *kind, "-Wl,--no-as-needed", f"-Wl,-rpath,{folder}", f"{output}.c", *options]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return str(folder / output)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_loader_does_what_was_predicted(name: str, tmp_path: Path) -> None:
    path = shutil.which(name, path="/usr/bin")
    if path is None:
        pytest.skip(f"{name} is missing")
    graph = Programs(environment=Environment()).graph(os.path.realpath(path))
    assert predicted(graph) == counted_by_loader(os.path.realpath(path), tmp_path)


def test_the_loader_does_what_was_predicted_in_a_sample_of_programs(tmp_path: Path) -> None:
    everything = Programs(environment=Environment())
    # The C library of musl can be run, and counts nothing.
    paths = [path for path in programs(FOLDERS) if path != os.path.realpath(GLIBC) and "-musl/" not in path]
    different = {}
    for path in paths[:: -(-len(paths) // 25)]:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            pair = predicted(everything.graph(path)), counted_by_loader(path, Path(folder))
        if len(set(pair)) > 1:
            different[path] = pair
    assert not different


def test_page_faults_up_to_the_entry_point_are_on_average_within_5_percent() -> None:
    everything = Programs(environment=Environment())
    # The C library of musl can be run, and counts nothing.
    paths = [path for path in programs(FOLDERS) if path != os.path.realpath(GLIBC) and "-musl/" not in path]
    errors = []
    for path in paths[:: max(1, len(paths) // 100)]:
        estimate = sum(everything.graph(path).start_page_faults)
        # The graph has read the files: they are in the page cache.
        errors.append(abs(estimate / fault_count(path) - 1))
    assert sum(errors) / len(errors) < 0.05


@needs_gcc
def test_folders_of_a_library_path_that_do_not_exist_are_tried_once(tmp_path: Path) -> None:
    build(tmp_path, "liba.so", "int a(void) { return 1; }")
    build(tmp_path, "libb.so", "int b(void) { return 2; }")
    (tmp_path / "empty").mkdir()
    path = build(
        tmp_path, "program", "int a(void); int b(void); int main(void) { return a() + b(); }", "liba.so", "libb.so"
    )
    folders = f"{tmp_path}/none:{tmp_path}/empty"
    graph = Programs(environment=Environment(library_path=folders)).graph(path)
    found = predicted(graph)
    assert found == counted_by_loader(path, tmp_path, LD_LIBRARY_PATH=folders)
    failed = [{one.folder: one.file_count for one in cost.failed_opens} for cost in graph.start_costs if cost]
    assert failed[1][f"{tmp_path}/none/"] == failed[1][f"{tmp_path}/empty/"] == 1
    assert failed[2] == {f"{tmp_path}/empty/": 1}


@pytest.mark.parametrize(
    ("preload", "unlisted_count"), [("libm.so.6", 0), ("libm.so.6 libm.so.6", 0), ("/none/liba.so", 1), ("liba.so", 0)]
)
def test_preloaded_libraries_are_searched_as_the_loader_does(preload: str, unlisted_count: int, tmp_path: Path) -> None:
    path = os.path.realpath("/usr/bin/true")
    found = predicted(Programs(environment=Environment(preload=preload)).graph(path))
    counted = counted_by_loader(path, tmp_path, LD_PRELOAD=preload)
    # The loader opens a name with a slash without listing it.
    assert found == counted._replace(tried_count=counted.tried_count + unlisted_count)


@needs_gcc
@pytest.mark.parametrize(
    "options", [["-fPIC", "-Wl,-z,now"], ["-fPIC", "-Wl,-z,lazy"], ["-fno-pic", "-no-pie", "-Wl,-z,now"]]
)
def test_calls_are_bound_at_start_where_the_linker_was_told_so(options: list[str], tmp_path: Path) -> None:
    build(tmp_path, "liba.so", "int data = 1; int a(void) { return 1; }", "-Wl,-Bsymbolic")
    source = "extern int data; int a(void); int main(void) { return a() + data; }"
    path = build(tmp_path, "program", source, "liba.so", *options)
    graph = Programs(environment=Environment()).graph(path)
    assert predicted(graph) == counted_by_loader(path, tmp_path)
    cost = graph.start_costs[0]
    assert cost
    assert bool(cost.lazy_count) == ("-Wl,-z,lazy" in options)
    assert cost.copy_count == ("-no-pie" in options)


@pytest.mark.parametrize("value", ["1", ""])
def test_a_caller_that_wants_calls_bound_at_start_is_followed(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_BIND_NOW", value)
    path = os.path.realpath("/usr/bin/python3")
    found = predicted(Programs().graph(path))
    assert found == counted_by_loader(path, tmp_path, LD_BIND_NOW=value)


ALLOCATOR = """
#include <stddef.h>
void *malloc(size_t n) { return NULL; } void *calloc(size_t n, size_t m) { return NULL; }
void *realloc(void *p, size_t n) { return NULL; } void free(void *p) {}
int a(void) { return 1; }"""


@needs_gcc
def test_an_allocator_of_another_version_is_not_that_of_the_loader(tmp_path: Path) -> None:
    (tmp_path / "map").write_text("FOO { global: malloc; calloc; realloc; free; a; };")
    build(tmp_path, "liba.so", ALLOCATOR, "-Wl,--version-script=map", "-fno-builtin")
    path = build(tmp_path, "program", "int a(void); int main(void) { return a(); }", "liba.so")
    assert predicted(Programs(environment=Environment()).graph(path)) == counted_by_loader(path, tmp_path)


@needs_gcc
def test_a_program_without_the_c_library_has_the_allocator_of_the_loader_left_alone(tmp_path: Path) -> None:
    source = "void _start(void) { __builtin_trap(); }"
    path = build(tmp_path, "program", source, "-nostartfiles", "-nostdlib", "-pie", "-fPIE")
    assert predicted(Programs(environment=Environment()).graph(path)) == counted_by_loader(path, tmp_path)


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is missing")
def test_of_musl_relocations_are_counted_and_no_time_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int data = 1; int *own = &data; int a(void) { return *own; }")
    (tmp_path / "program.c").write_text(
        "int a(void); int (*table[])(void) = {a}; int main(void) { return table[0](); }"
    )
    for output, source, *options in (("liba.so", "a.c", "-shared"), ("program", "program.c", "-pie", "./liba.so")):
        command = ["musl-gcc", "-fPIC", "-o", output, source, *options]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    path = str(tmp_path / "program")
    answer = json.loads(
        subprocess.run(
            [sys.executable, "-m", "footprint", "libraries", "--json", path],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout
    )
    for row in answer["libraries"]:
        listed = subprocess.run(
            ["readelf", "-rW", tmp_path / row["path"]], check=True, capture_output=True, text=True
        ).stdout
        start = row["start"]
        assert start["relative_count"] == len(re.findall("R_X86_64_RELATIVE", listed))
        assert start["symbolic_count"] == len(re.findall("R_X86_64_(?:64|GLOB_DAT|JUMP_SLO)", listed))
        # Its loader binds all calls at start, and caches no lookup: it was not compared.
        assert start["lazy_count"] == 0
        assert start["lookup_count"] is start["tried_count"] is row["start_us"] is row["start_page_faults"] is None
    text = subprocess.run(
        [sys.executable, "-m", "footprint", "libraries", "-v", path], check=True, capture_output=True, cwd=tmp_path
    ).stdout
    assert b"start us" not in text


# --- remedies ---------------------------------------------------------------------------------------------------------


def found_by(rule: str, graph: DependencyGraph, subject: str) -> Finding:
    (found,) = [one for one in rule_named(rule).find(graph) if one.subject == subject]
    return found


@needs_gcc
@pytest.mark.parametrize("remedy", ["-Wl,-Bsymbolic", "-fvisibility=hidden"])
def test_names_that_are_bound_when_the_library_is_linked_need_no_lookup(tmp_path: Path, remedy: str) -> None:
    count = 2500
    functions = "\n".join(f"int f{n}(void) {{ return {n}; }}" for n in range(count))
    table = ", ".join(f"f{n}" for n in range(count))
    exported = '__attribute__((visibility("default")))'
    source = f"{functions}\nint (*table[])(void) = {{{table}}};\n{exported} int a(void) {{ return table[0](); }}"
    build(tmp_path, "liba.so", source, "-Wl,-soname,liba.so")
    path = build(tmp_path, "program", "int a(void); int main(void) { return a(); }", "liba.so")
    graph = Programs(environment=Environment()).graph(path)
    before, cost = counted_by_loader(path, tmp_path), graph.start_costs[1]
    assert predicted(graph) == before
    assert found_by("own-lookups", graph, "liba.so").confidence is Confidence.MEDIUM
    build(tmp_path, "liba.so", source, "-Wl,-soname,liba.so", remedy)
    after = counted_by_loader(path, tmp_path)
    assert cost
    assert before.lookup_count - after.lookup_count == cost.own_lookup_count == count + 1
    assert predicted(Programs(environment=Environment()).graph(path)) == after


@needs_gcc
@pytest.mark.parametrize(
    ("shared", "name"),
    [
        ("extern int variable; int main(void) { variable = 5; return get() != 5; }", "variable"),
        ("int hook(void) { return 7; } int main(void) { return call() != 7; }", "hook"),
        ("int main(void) { return address() != (void *)hook; }", "hook"),
    ],
)
def test_names_that_a_program_has_instead_of_the_library_may_not_be_bound_when_it_is_linked(
    tmp_path: Path, shared: str, name: str
) -> None:
    functions = "".join(f"int f{n}(void) {{ return {n}; }}\n" for n in range(2500))
    functions += f"int sum(void) {{ return {' + '.join(f'f{n}()' for n in range(2500))}; }}\n"
    functions += "int variable = 1; int get(void) { return variable; } int hook(void) { return 1; }"
    functions += " int call(void) { return hook(); } void *address(void) { return hook; }"
    build(tmp_path, "libmine.so", functions, "-Wl,-z,now")
    source = f"int get(void); int call(void); void *address(void); int hook(void);\n{shared}"
    path = build(tmp_path, "program", source, "libmine.so", "-fno-pic", "-no-pie")
    assert subprocess.run([path], check=False).returncode == 0
    finding = found_by("own-lookups", Programs(environment=Environment()).graph(path), "libmine.so")
    assert finding.confidence is Confidence.LOW
    assert f"libmine.so defines {name} and uses what program has instead, which must stay so" in finding.reasons
    assert "-Bsymbolic" not in finding.remedy
    build(tmp_path, "libmine.so", functions, "-Wl,-z,now,-Bsymbolic")
    assert subprocess.run([path], check=False).returncode == 1


@needs_gcc
def test_a_library_with_a_filter_is_asked_as_often_and_found_no_more(tmp_path: Path) -> None:
    count = 2500
    functions = "\n".join(f"int f{n}(void) {{ return {n}; }}" for n in range(count))
    build(tmp_path, "libb.so", functions, "-Wl,-soname,libb.so", "-Wl,--hash-style=gnu")
    other = "int other(void) { return 1; }"
    build(tmp_path, "liba.so", other, "-Wl,-soname,liba.so", "-Wl,--hash-style=sysv")
    declared = " ".join(f"int f{n}(void);" for n in range(count))
    source = f"{declared}\nint (*table[])(void) = {{{', '.join(f'f{n}' for n in range(count))}}};"
    path = build(tmp_path, "program", f"{source}\nint main(void) {{ return table[7](); }}", "liba.so", "libb.so")
    graph = Programs(environment=Environment()).graph(path)
    before = counted_by_loader(path, tmp_path)
    assert predicted(graph) == before
    finding = found_by("sysv-hash", graph, "liba.so")
    assert f"{dict(before.searched)[str(tmp_path / 'liba.so')]:,} lookups" in finding.message
    assert finding.remedy.split()[-1] == "-Wl,--hash-style=gnu"
    build(tmp_path, "liba.so", other, "-Wl,-soname,liba.so", finding.remedy.split()[-1])
    assert subprocess.run([path], check=False).returncode == 7
    graph = Programs(environment=Environment()).graph(path)
    assert predicted(graph) == counted_by_loader(path, tmp_path) == before
    assert [cost.hash_style for cost in graph.start_costs[:3] if cost] == ["gnu", "gnu", "gnu"]
    assert rule_named("sysv-hash").find(graph) == ()


@needs_gcc
def test_relocations_that_are_packed_take_what_was_predicted(tmp_path: Path) -> None:
    source = f"static int a[9]; void *table[50000] = {{{'a + 4,' * 50_000}}}; int f(void) {{ return table[7] != a; }}"
    name = "-Wl,-soname,liba.so"
    before_bytes = Path(build(tmp_path, "liba.so", source, name)).stat().st_size
    path = build(tmp_path, "program", "int f(void); int main(void) { return f(); }", "liba.so")
    graph = Programs(environment=Environment()).graph(path)
    finding = found_by("unpacked-relocations", graph, "liba.so")
    count, packed_bytes = pack_relative(graph.objects[1].library.image)
    before = counted_by_loader(path, tmp_path)
    library = build(tmp_path, "liba.so", source, name, finding.remedy.split()[-1])
    listed = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
    assert f"(RELRSZ)             {packed_bytes} (bytes)" in listed
    saved_bytes = 24 * count - packed_bytes
    # Segments begin at pages.
    assert abs(before_bytes - Path(library).stat().st_size - saved_bytes) < 2 * 4096
    assert subprocess.run([path], check=False).returncode == 1
    graph = Programs(environment=Environment()).graph(path)
    assert before.relative_count - counted_by_loader(path, tmp_path).relative_count == count >= 50_000
    assert rule_named("unpacked-relocations").find(graph) == ()


@needs_gcc
def test_a_program_without_an_empty_folder_tries_fewer_files(tmp_path: Path) -> None:
    build(tmp_path, "liba.so", "int a(void) { return 1; }", "-Wl,-soname,liba.so")
    source = "int a(void); int main(void) { return a(); }"
    path = build(tmp_path, "program", source, "liba.so", f"-Wl,-rpath,{tmp_path}/none")
    graph = Programs(environment=Environment()).graph(path)
    before = counted_by_loader(path, tmp_path)
    finding = found_by("empty-search-path", graph, "program")
    assert finding.confidence is Confidence.HIGH
    failed_count = sum(one.file_count for cost in graph.start_costs if cost for one in cost.failed_opens)
    # Both folders fail, since the linker was told the one with the library first.
    build(tmp_path, "program", source, "liba.so")
    after = counted_by_loader(path, tmp_path)
    left = Programs(environment=Environment()).graph(path).start_costs
    left_count = sum(one.file_count for cost in left if cost for one in cost.failed_opens)
    assert before.tried_count - after.tried_count == failed_count - left_count > 0


@needs_gcc
@pytest.mark.skipif(shutil.which("patchelf") is None, reason="patchelf is missing")
def test_a_program_without_an_empty_folder_in_its_rpath_finds_what_its_libraries_need(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    b, a = "int b(void) { return 3; }", "int b(void); int a(void) { return b(); }"
    for name, source, *more in (("b", b), ("a", a, "libb.so")):
        command = ["gcc", "-shared", "-fPIC", "-o", f"lib{name}.so", "-x", "c", "-", "-x", "none", *more]
        subprocess.run(command, input=source.encode(), check=True, cwd=tmp_path / "sub")
    source = "int a(void); int main(void) { return a() - 3; }"
    rpath = "-Wl,--disable-new-dtags,-rpath,/opt/none:$ORIGIN/sub,-rpath-link,sub"
    command = ["gcc", "-o", "program", "-x", "c", "-", "-x", "none", "-Lsub", "-la", rpath]
    subprocess.run(command, input=source.encode(), check=True, cwd=tmp_path)
    path = str(tmp_path / "program")
    finding = found_by("empty-search-path", Programs(environment=Environment()).graph(path), "program")
    assert finding.message.startswith("/opt/none/ in the RPATH of program")
    remedy = re.search("patchelf .*--set-rpath", finding.remedy)
    assert remedy
    subprocess.run([*remedy[0].split(), "$ORIGIN/sub", path], check=True)
    assert subprocess.run([path], check=False).returncode == 0
    assert rule_named("empty-search-path").find(Programs(environment=Environment()).graph(path)) == ()


@needs_gcc
def test_calls_that_are_left_until_they_are_made_are_not_looked_up(tmp_path: Path) -> None:
    count = 600
    build(tmp_path, "liba.so", "\n".join(f"int f{n}(void) {{ return {n}; }}" for n in range(count)))
    calls = " + ".join(f"f{n}()" for n in range(count))
    source = f"{' '.join(f'int f{n}(void);' for n in range(count))} int main(void) {{ return {calls}; }}"
    path = build(tmp_path, "program", source, "liba.so", "-Wl,-z,now")
    graph = Programs(environment=Environment()).graph(path)
    before, cost = counted_by_loader(path, tmp_path), graph.start_costs[0]
    assert found_by("bound-at-start", graph, "program").confidence is Confidence.LOW
    build(tmp_path, "program", source, "liba.so", "-Wl,-z,lazy")
    after = counted_by_loader(path, tmp_path)
    assert cost
    assert before.lookup_count - after.lookup_count == cost.bound_now_count == count


@needs_gcc
@pytest.mark.parametrize("way", ["-fplt", "-fno-plt"])
def test_a_library_that_is_opened_at_its_call_is_not_there_at_start(way: str, tmp_path: Path) -> None:
    needed = [build(tmp_path, f"lib{n}.so", f"int f{n}(void) {{ return {n}; }}") for n in range(6)]
    build(tmp_path, "liba.so", "int a(void) { return 1; }", *[Path(one).name for one in needed])
    source = """int a(void);
int main(void) {
    return a();
}"""
    path = build(tmp_path, "program", source, "liba.so", "-g", way)
    graph = Programs(environment=Environment()).graph(path)
    finding = found_by("one-function", graph, "liba.so")
    assert len(finding.leaves) == 6
    assert finding.message.startswith("program calls a of liba.so in main,")
    assert finding.location == SourceLocation(f"{tmp_path}/program.c", 3)
    before = counted_by_loader(path, tmp_path)
    source = f"""
#include <dlfcn.h>
int main(void) {{ int (*a)(void) = dlsym(dlopen("{tmp_path}/liba.so", RTLD_NOW), "a"); return a(); }}"""
    build(tmp_path, "program", source)
    assert subprocess.run([path], check=False).returncode == 1
    after = Programs(environment=Environment()).graph(path)
    assert len(graph.objects) - len(after.objects) == 1 + len(finding.leaves)
    assert before.mapped_count - counted_by_loader(path, tmp_path).mapped_count == 1 + len(finding.leaves)
    # The first library that is searched also tries the folders for the processor: now that is the C library.
    tried_us = sum(2 * one.file_count for cost in graph.start_costs[1:2] if cost for one in cost.failed_opens)
    # Nanoseconds: each object's microseconds are rounded down. The program looks up two functions in place of one.
    before_ns, after_ns = (
        [sum(map(mul, work, one.start_prices.each_ns)) for work in one.start_work] for one in (graph, after)
    )
    added_ns = after_ns[0] - before_ns[0]
    assert sum(before_ns) - sum(after_ns) + added_ns >= 1000 * (finding.saving_us - tried_us)


# --- prices -----------------------------------------------------------------------------------------------------------


def test_programs_of_a_calibration_differ_and_are_searched_in_vain_on_request(tmp_path: Path) -> None:
    system, samples = choose_samples(iter([f"/usr/bin/{name}" for name in PROGRAMS]), str(tmp_path), 6, 600)
    assert system == start_system(Programs(environment=Environment()).graph("/usr/bin/true").link_map)
    plain = [sample for sample in samples if not sample.variables]
    again = {sample.path: sample.work for sample in samples if sample.variables}
    assert len({sample.path for sample in plain}) == len(plain) <= 6
    assert again
    for path, objects, failed in [(sample.path, sample.work[1], sample.work[-1]) for sample in plain]:
        if path in again:
            assert again[path][-1] - failed >= 20 * objects
    times_us, left_out = measure_samples(samples, 1, 0)
    assert all(times_us)
    assert left_out == []


@needs_gcc
def test_a_program_whose_library_others_may_write_is_not_started(tmp_path: Path) -> None:
    library = build(tmp_path, "libtaken.so", "int taken;")
    program = build(tmp_path, "program", "int main(void) { return 0; }", library)
    for mode, count in ((0o755, 1), (0o777, 0), (0o775, 0)):
        Path(library).chmod(mode)
        (tmp_path / f"empty {mode}").mkdir()
        _, samples = choose_samples(iter([program]), str(tmp_path / f"empty {mode}"), 1, 600)
        assert len({sample.path for sample in samples}) == count, oct(mode)


# --- measured ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
def test_system_calls_of_the_loader_are_those_that_strace_lists() -> None:
    (measured,) = measure_starts([lambda: "/usr/bin/true"], 1)
    done = subprocess.run(["strace", "/usr/bin/true"], capture_output=True, text=True, check=False)
    # The loader unmaps its cache last; the constructors of the C library ask for random bytes or the like only then.
    names = [line.partition("(")[0] for line in done.stderr.splitlines()]
    last = names.index("munmap")
    # execve itself is not counted.
    assert measured.system_call_count == last
    assert measured.processor_us.min > 0


def test_a_counter_of_the_kernel_counts_from_the_first_instruction_to_the_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Virtual machines count no instructions; every kernel counts the nanoseconds of a task (PERF_COUNT_SW_TASK_CLOCK).
    monkeypatch.setattr(start_counters, "_COUNTED", (1, 1))
    counters = start_once("/usr/bin/true")
    assert counters.instructions
    # The clock of the process is another one, and also has the ends of what the kernel does for the tracer.
    assert abs(counters.instructions / 1000 / counters.processor_us - 1) < 0.5


def test_where_the_kernel_counts_no_such_event_there_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_counters, "_COUNTED", (1, 1 << 40))
    assert start_once("/usr/bin/true").instructions is None


@needs_gcc
def test_another_build_with_more_libraries_is_measured_in_turns(tmp_path: Path) -> None:
    for number in range(30):
        build(tmp_path, f"lib{number}.so", f"int f{number}(void) {{ return {number}; }}")
    source = "int main(void) { return 0; }"
    small = build(tmp_path, "program", source)
    shutil.copy(small, tmp_path / "small")
    large = build(tmp_path, "program", source, *[f"lib{number}.so" for number in range(30)])
    compared = footprint.compare_builds([large], str(tmp_path / "small"), starts=1, has_start_cost=True)
    before, after = compared.before.start_cost, compared.after.start_cost
    assert before
    assert after
    # Each library is opened, read, mapped and closed.
    assert before.system_call_count - after.system_call_count >= 30 * 8
    assert before.minor_faults.min - after.minor_faults.max >= 30 * 3


MAIN = """
static char pages[400 * 4096] __attribute__((aligned(4096)));
__attribute__((constructor)) void fill(void) { for (int n = 0; n < 200; n++) pages[n * 4096] = 1; }
int main(void) { for (int n = 200; n < 400; n++) pages[n * 4096] = 1; return 0; }
"""


@needs_gcc
@pytest.mark.parametrize("options", [[], ["-no-pie", "-fno-pic"], ["-static"], ["-static-pie"], ["-O2", "-Wl,-z,now"]])
def test_main_is_what_the_c_library_is_told_to_call(tmp_path: Path, options: list[str]) -> None:
    path = build(tmp_path, "program", MAIN, *options)
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    addrs = {line.split()[2]: int(line.split()[0], 16) for line in lines if len(line.split()) == 3}
    subprocess.run(["strip", path], check=True)
    with held_at_start(path) as process:
        entry_addr = process.auxiliary(AT_ENTRY)
        process.run_to(entry_addr)
        main_addr = process.find_main()
        assert main_addr is not None
        assert main_addr - entry_addr == addrs["main"] - addrs["_start"]


@needs_gcc
def test_constructors_are_part_of_what_comes_before_main_and_main_of_what_comes_before_the_exit(tmp_path: Path) -> None:
    cost = footprint.run([build(tmp_path, "program", MAIN)], has_start_cost=True).start_cost
    assert cost
    assert cost.main
    assert cost.moment
    # Of each start: the smallest of main is that of a start with at least the smallest at its entry point.
    assert cost.main.minor_faults.min - cost.minor_faults.min >= 200
    assert cost.moment.minor_faults.median - cost.main.minor_faults.median >= 180
    assert cost.main.processor_us.min >= cost.processor_us.min > 0
    assert (cost.main.start_count, cost.moment.start_count) == (11, 1)


# A library that tries an instruction which its processor may lack, and catches the signal, as some of cryptography do.
TRIES = """
#include <setjmp.h>
#include <signal.h>
static sigjmp_buf before;
static void caught(int number) { siglongjmp(before, number); }
char pages[200 * 4096];
__attribute__((constructor)) void try(void) {
    signal(%s, caught);
    if (!sigsetjmp(before, 1)) %s;
    for (int n = 0; n < 200; n++) pages[n * 4096] = 1;
}
"""


@needs_gcc
@pytest.mark.parametrize(("number", "does"), [("SIGILL", "raise(SIGILL)"), ("SIGUSR1", "raise(SIGUSR1)")])
def test_a_signal_that_a_constructor_catches_is_not_the_entry_point(tmp_path: Path, number: str, does: str) -> None:
    build(tmp_path, "libtries.so", TRIES % (number, does))
    path = build(tmp_path, "program", "int main(void) { return 0; }", "-L.", "-ltries")
    (cost,) = measure_starts([lambda: path], 3)
    assert cost.minor_faults.min > 200
    assert cost.main


@needs_gcc
def test_a_program_that_crashes_in_a_constructor_has_no_entry_point(tmp_path: Path) -> None:
    build(tmp_path, "libtries.so", "__attribute__((constructor)) void crash(void) { *(volatile int *)0 = 1; }")
    path = build(tmp_path, "program", "int main(void) { return 0; }", "-L.", "-ltries")
    with pytest.raises(AccessError, match="it ended before it reached its own code"):
        measure_starts([lambda: path], 1)


@needs_gcc
def test_a_run_whose_starts_end_in_a_constructor_has_its_audit_and_a_note(tmp_path: Path) -> None:
    build(tmp_path, "libends.so", "void _exit(int); __attribute__((constructor)) void leave(void) { _exit(3); }")
    path = build(tmp_path, "program", "int main(void) { return 0; }", "-L.", "-lends")
    ran = footprint.run([path], expect_exit=3, has_start_cost=True)
    assert ran.audit.totals.per_process.bytes
    assert (ran.start_cost, ran.audit.run_failures) == (None, ())
    assert [note.detail for note in ran.notes if note.slug == "start-not-measured"] == [
        "what its starts cost is not known: it ended before it reached its own code"
    ]


@needs_gcc
def test_a_program_of_32_bits_is_held_at_its_entry_point(tmp_path: Path) -> None:
    options = ["-m32", "-static", "-nostdlib", "-Wl,-e,begin"]
    try:
        path = build(tmp_path, "program", 'void begin(void) { __asm__("int3"); }', *options)
        (measured,) = measure_starts([lambda: path], 1)
    except (subprocess.CalledProcessError, AccessError):
        pytest.skip("no program of 32 bits can be built and started here")
    assert (measured.start_count, measured.system_call_count, measured.main) == (1, 0, None)


@needs_gcc
def test_a_program_without_a_main_has_no_time_up_to_it(tmp_path: Path) -> None:
    source = "void _start(void) { __builtin_trap(); }"
    path = build(tmp_path, "program", source, "-nostartfiles", "-nostdlib", "-static")
    (measured,) = measure_starts([lambda: path], 1)
    assert measured.main is None


def test_a_static_build_is_said_to_relocate_itself_behind_its_entry_point() -> None:
    spans = Spread(1, 2, 3), Spread(11, 12, 13)
    before, after = (StartMeasurement(2, span, span, span, calls) for span, calls in zip(spans, (30, 0), strict=True))
    ran = footprint.run(["/usr/bin/true"])
    runs = [ran.with_start_cost(measured, 1) for measured in (before, after)]
    texts = [block.text for block in start_cost_blocks(runs) if isinstance(block, Paragraph)]
    assert "A static program relocates itself behind its entry point: compare up to main." in texts
    assert "not sure: too few starts for a difference; --starts 5 measures enough." in texts
    headings = [block.text for block in start_cost_blocks(runs) if isinstance(block, Heading)]
    assert "Processor hours a day, of 1 start a day" in headings
    assert not [text for text in map(str, start_cost_blocks(runs[:1])) if "relocates itself" in text]


def test_starts_a_day_take_the_hours_of_so_many_medians() -> None:
    ran = footprint.run(["/usr/bin/true"], has_start_cost=True, starts_a_day=7200)
    assert ran.start_cost
    assert ran.daily
    assert ran.daily.entry_hours == pytest.approx(2 * ran.start_cost.processor_us.median / 1e6)
    assert ran.daily.start_count == 7200


def test_a_run_to_its_peak_measures_its_starts_too() -> None:
    ran = footprint.run(["/usr/bin/true"], when="peak", has_start_cost=True, starts_a_day=7200)
    assert ran.start_cost
    assert ran.daily


def test_the_text_counts_the_starts_and_has_a_spread_where_there_are_several() -> None:
    ran = footprint.run(["/usr/bin/true"], has_start_cost=True)
    blocks = start_cost_blocks([ran])
    assert [block.text for block in blocks if isinstance(block, Heading)] == [
        "From execve to the entry point, 11 starts",
        "From execve to main, 11 starts",
        "From execve to the moment, at its exit, 1 start",
    ]
    tables = [block.rows for block in blocks if isinstance(block, Table)]
    assert [{bool(spread) for _, spread, _ in rows} for rows in tables] == [{True}, {True}, {False}]


def test_a_saved_run_has_the_time_that_a_budget_limits(tmp_path: Path) -> None:
    ran = footprint.run(["/usr/bin/true"], has_start_cost=True)
    saved = tmp_path / "run.json"
    footprint.save(ran, saved)
    budget_file = tmp_path / "budgets.toml"
    budget_file.write_text("[budgets]\nstart_cpu_seconds = {max = 1000, max_increase = 1000}\n")
    budget_file.write_text(f'baseline = "{saved}"\n{budget_file.read_text()}')
    done = footprint.check(str(saved), footprint.load_budgets(budget_file))
    values = {(result.value, result.limit) for result in done.limits}
    assert ran.start_cost
    median_us = ran.start_cost.processor_us.median
    assert values == {(median_us, 10**9), (median_us, median_us + 10**9)}
