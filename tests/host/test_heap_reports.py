"""What is read from leak reports, traces and totals is what the programs, the C library, node and the JVM count."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from footprint.heap.formats import read_profile
from footprint.heap.profile import Profile
from tests.calltrees import amounts_by_function

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"


def run(*words: str | Path, cwd: Path, **environment: str) -> tuple[str, str]:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is missing")
    done = subprocess.run(words, cwd=cwd, env=os.environ | environment, capture_output=True, check=False, timeout=120)
    return done.stdout.decode(), done.stderr.decode()


def built(folder: Path, *options: str, compiler: str = "gcc") -> Path:
    run(compiler, "-g", "-O1", *options, CORPUS / "leaks.c", "-o", "leaks", cwd=folder)
    if not (folder / "leaks").exists():
        pytest.skip(f"{compiler} {' '.join(options)} fails here")
    return folder / "leaks"


def read(path: Path) -> Profile:
    return read_profile(path.read_bytes(), path.name)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("sanitizer", ["leak", "address"])
def test_leaksanitizer_of_a_program(compiler: str, sanitizer: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    program = built(tmp_path, f"-fsanitize={sanitizer}", compiler=compiler)
    _, report = run(program, cwd=tmp_path)
    if "LeakSanitizer: detected" not in report:
        pytest.skip("LeakSanitizer does not run here")
    profile = read_profile(report.encode(), "a report")
    found = amounts_by_function(profile.tallies[0].tree)
    # The stacks may end early, since the program has no frame pointers: what `make` asked for may lack its caller.
    assert found["main"][0] in {305_000, profile.tallies[0].tree.total_bytes}
    # 24 of 1,000 bytes and 10 of 100. The stack may have still a pointer to one of them: that one is not leaked.
    assert 24_000 <= found["make"][0] <= 25_000
    assert profile.notes == ()


def test_mtrace_of_a_program(tmp_path: Path) -> None:
    library = next(Path("/usr/lib").glob("*/libc_malloc_debug.so.0"), None)
    if library is None:
        pytest.skip("libc_malloc_debug.so.0 is missing")
    program = built(tmp_path)
    run(program, cwd=tmp_path, MALLOC_TRACE="trace", LD_PRELOAD=str(library))
    profile = read(tmp_path / "trace")
    assert [(one.live_bytes, one.is_peak) for one in profile.snapshots] == [(330_000, True), (330_000, False)]
    # 50 of 1,000 bytes, 10 of 100, and two more; what realloc moved counts twice.
    assert (profile.tallies[0].tree.total_bytes, profile.tallies[0].tree.total_blocks) == (356_000, 62)


def test_malloc_info_of_a_program_is_what_mallinfo_counts(tmp_path: Path) -> None:
    counters, _ = run(built(tmp_path), "info.xml", cwd=tmp_path)
    profile = read(tmp_path / "info.xml")
    # malloc_info adds the flags of a free chunk to its size: up to five bytes a chunk.
    assert abs(profile.snapshots[0].live_bytes - sum(map(int, counters.split()))) <= 64


def test_the_heap_of_node_is_what_it_says_that_it_uses(tmp_path: Path) -> None:
    options = ["--expose-gc", "--heap-prof", "--heap-prof-interval=16384", "--heap-prof-name=a.heapprofile"]
    used, _ = run("node", *options, CORPUS / "kept.js", cwd=tmp_path)
    profile = read(tmp_path / "a.heapprofile")
    # Node itself uses some MB that were there before the profiler.
    assert 0.85 < profile.snapshots[0].live_bytes / int(used) < 1.05


def test_native_memory_of_a_jvm_is_its_total(tmp_path: Path) -> None:
    if shutil.which("jcmd") is None:
        pytest.skip("jcmd is missing")
    source = tmp_path / "Waits.java"
    source.write_text("class Waits { public static void main(String[] a) throws Exception { System.in.read(); } }")
    words = ["java", "-XX:NativeMemoryTracking=summary", str(source)]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        try:
            report = ""
            for _ in range(100):
                report, _ = run("jcmd", str(process.pid), "VM.native_memory", "summary", "scale=b", cwd=tmp_path)
                if "malloc: " in report:
                    break
                time.sleep(0.2)
        finally:
            process.kill()
    told_bytes = int(report.partition("malloc: ")[2].partition(" ")[0])
    profile = read_profile(report.encode(), "a report")
    # The categories are counted one after the other, and the JVM goes on.
    assert abs(profile.snapshots[0].live_bytes - told_bytes) < 64 * 1024
