"""Pages that are predicted to be written at start are private in programs that stand there, and no others are."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from footprint.attribution.object_prediction import LibcStart, ObjectPrediction, count_pages, predict, with_written
from footprint.attribution.start_memory import start_memory
from footprint.attribution.startup_writes import WriteCause, bss_pages
from footprint.elf.constructors import own_constructors
from footprint.elf.relocations import relocated_pages
from footprint.errors import AccessError
from footprint.loader.target import Libc
from footprint.process.held_program import AT_ENTRY, held_at_start
from footprint.process.pages import has_exclusive_bit
from footprint.sources.programs import Programs
from footprint.sources.startup_write_calibration import calibrate_libc, load_libc_start
from tests.atstart import PAGE, Seen, at_start, image_of, is_elf, look, numbers, vaddr_of

PROGRAM_COUNT = 40
KNOWN = ("git", "gdb", "node", "cmake", "sqlite3", "ssh", "curl", "gpg", "python3.11", "perl", "bash", "apt", "ls")

pytestmark = [
    pytest.mark.skipif(not has_exclusive_bit(), reason="the page bits of this host do not tell what is mapped once"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the loader's stops are those of x86-64"),
]


@cache
def can_be_held() -> bool:
    try:
        with held_at_start("/bin/true") as held:
            held.run_to(held.auxiliary(AT_ENTRY))
    except (AccessError, OSError):
        return False
    return True


@pytest.fixture(autouse=True)
def _needs_ptrace(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    if not can_be_held():
        pytest.skip("no program can be held at its start here")


@cache
def programs() -> tuple[str, ...]:
    """Name programs of all kinds: those that everybody knows, and some of the whole alphabet."""
    known = [str(Path(path).resolve()) for name in KNOWN if (path := shutil.which(name))]
    found = [str(path) for path in sorted(Path("/usr/bin").iterdir()) if not path.is_symlink() and is_elf(path)]
    step = max(1, len(found) // PROGRAM_COUNT)
    return tuple(
        path for path in dict.fromkeys([*known, *found[::step]]) if os.access(path, os.X_OK) and is_elf(Path(path))
    )


@cache
def libc_start() -> LibcStart | None:
    return calibrate_libc()


@cache
def predicted(path: str, *, is_program: bool, libc: Libc = Libc.GLIBC) -> ObjectPrediction:
    start = libc_start() if re.search(r"/libc\.so\.6$", path) else None
    prediction = predict(image_of(path), PAGE, is_program=is_program, libc=libc, libc_start=start)
    if re.search(r"/ld-linux[^/]*$", path):
        # As `Programs` does for the loader.
        return with_written(prediction, WriteCause.LIBC_START, bss_pages(image_of(path), PAGE))
    return prediction


@cache
def seen(path: str) -> tuple[Seen, Seen]:
    try:
        return at_start(path)
    except LookupError as error:
        pytest.skip(str(error))


# --- programs of this machine -----------------------------------------------------------------------------------------

each_program = pytest.mark.parametrize("path", programs(), ids=os.path.basename)


@each_program
def test_before_constructors_the_private_pages_are_those_predicted(path: str) -> None:
    linked, _ = seen(path)
    for name in linked.objects():
        prediction = predicted(name, is_program=name == path)
        assert not prediction.notes
        assert linked.written(name, prediction) == numbers(prediction.startup_min), name


@each_program
def test_at_the_entry_only_constructors_and_the_libraries_that_they_use_have_written_more(path: str) -> None:
    linked, entered = seen(path)
    names = entered.objects()
    own = sum(own_constructors(image_of(name)) for name in names if "/libc.so" not in name and "/ld-" not in name)
    for name in names:
        prediction = predicted(name, is_program=name == path)
        written = entered.written(name, prediction)
        assert written >= numbers(prediction.startup_min)
        if not own:
            assert written == linked.written(name, prediction)


@each_program
def test_an_object_makes_as_many_mappings_as_predicted(path: str) -> None:
    _, entered = seen(path)
    for name in entered.objects():
        assert entered.count_mappings(name) == predicted(name, is_program=name == path).mapping_count, name


@each_program
def test_what_is_no_object_s_is_near_the_estimate(path: str) -> None:
    linked, _ = seen(path)
    objects = linked.objects()
    predictions = {name: predicted(name, is_program=name == path) for name in objects}
    of_objects = sum(len(linked.written(name, prediction)) for name, prediction in predictions.items())
    # What our own stops have written is text.
    texts = [mapping for mapping in linked.mappings if mapping.permissions[2] == "x" and mapping.name.startswith("/")]
    pages_of_texts = {page for text in texts for page in range(text.start_addr // PAGE, text.end_addr // PAGE)}
    other_bytes = (len(linked.private - pages_of_texts) - of_objects) * PAGE
    graph = Programs().graph(path)
    assert len(graph.objects) == len(objects)
    assert abs(other_bytes - sum(start_memory(graph))) <= 4 * PAGE


# --- programs made here -----------------------------------------------------------------------------------------------

SOURCE = """
#include <stdio.h>
int zero[5000];
int one = 1;
void *table[3] = {&one, &zero, (void *)puts};
int main(void) { return table[1] == 0; }
"""
KINDS = {
    "lazy": ["-Wl,-z,lazy"],
    "now": ["-Wl,-z,now"],
    "relr": ["-Wl,-z,pack-relative-relocs"],
    "norelro": ["-Wl,-z,norelro"],
    "no-pie": ["-no-pie", "-fno-pie"],
}


def build(folder: Path, source: str, *options: str, compiler: str = "gcc") -> str:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "program.c").write_text(source, encoding="ascii")
    command = [compiler, "-O1", "-o", str(folder / "program"), str(folder / "program.c"), *options]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"{compiler} {' '.join(options)} does not work here")
    return str(folder / "program")


@pytest.mark.parametrize("kind", KINDS)
def test_however_a_program_is_linked_its_pages_are_those_predicted(kind: str, tmp_path: Path) -> None:
    path = build(tmp_path, SOURCE, *KINDS[kind])
    linked, entered = seen(path)
    prediction = predicted(path, is_program=True)
    assert linked.written(path, prediction) == entered.written(path, prediction) == numbers(prediction.startup_min)
    assert entered.count_mappings(path) == prediction.mapping_count


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_a_static_program_relocates_itself_before_main(option: str, tmp_path: Path) -> None:
    path = build(tmp_path, SOURCE, option)
    prediction = predicted(path, is_program=True)
    with held_at_start(path) as program:
        program.run_to(program.auxiliary(AT_ENTRY))
        at_entry = look(program).written(path, prediction)
        start, main = vaddr_of(path, "_start"), vaddr_of(path, "main")
        assert start is not None
        assert main is not None
        program.run_to(program.auxiliary(AT_ENTRY) - start + main)
        at_main = look(program).written(path, prediction)
    assert at_entry < numbers(prediction.startup_min) <= at_main


@pytest.mark.parametrize("option", ["-no-pie", "-pie"])
def test_musl_gives_the_rest_of_the_last_page_to_malloc(option: str, tmp_path: Path) -> None:
    path = build(tmp_path, SOURCE, option, compiler="musl-gcc")
    with held_at_start(path) as held:
        held.run_to(held.auxiliary(AT_ENTRY))
        found = look(held)
    assert len(found.objects()) == 2
    for name in found.objects():
        prediction = predicted(name, is_program=name == path, libc=Libc.MUSL)
        assert found.written(name, prediction) == numbers(prediction.startup_min)


@pytest.mark.parametrize("kib", [64, 1024])
def test_thread_local_variables_are_written_whether_used_or_not(kib: int, tmp_path: Path) -> None:
    source = "__thread char block[%d]; int main(void) { return block[5]; }"
    (tmp_path / "small").mkdir()
    paths = [build(tmp_path / "small", source % 8), build(tmp_path, source % (kib << 10))]
    for path in paths:
        seen(path)
    # Where the stack begins is chance, and with it how many pages it has: the middle one of several starts counts.
    held = [median(len(at_start(path)[0].private) for _ in range(7)) * PAGE for path in paths]
    grown = [size - predicted(path, is_program=True).tls_bytes for size, path in zip(held, paths, strict=True)]
    assert predicted(paths[1], is_program=True).tls_bytes == kib << 10
    assert abs(grown[1] - grown[0]) <= 2 * PAGE


# --- all libraries ----------------------------------------------------------------------------------------------------


@cache
def libraries() -> tuple[str, ...]:
    """Name the libraries of this machine, and those for others that cross compilers have brought."""
    folders = [*Path("/usr").glob("*-linux-gnu*/lib"), *Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64")]
    found = [path for folder in folders for path in sorted(folder.glob("*.so*")) if not path.is_symlink()]
    return tuple(str(path) for path in found if is_elf(path))


def test_few_libraries_have_constructors_of_their_own() -> None:
    counts = [own_constructors(image_of(path)) for path in libraries()]
    if len(counts) < 100:
        pytest.skip("too few libraries to tell")
    assert 0.03 < sum(count > 0 for count in counts) / len(counts) < 0.25


def test_what_relocations_write_has_a_cause_on_every_machine() -> None:
    others = {WriteCause.DYNAMIC, WriteCause.GOT, WriteCause.PARTIAL_BSS, WriteCause.DEBUG}
    for path in libraries():
        prediction = predict(image_of(path), PAGE, is_program=False)
        by_relocations = {
            page for cause in prediction.causes.keys() - others for page in numbers(prediction.causes[cause])
        }
        assert by_relocations == set(relocated_pages(image_of(path), PAGE)), path


@pytest.mark.parametrize("page_bytes", [0x1000, 0x4000, 0x10000])
def test_larger_pages_are_fewer_and_more_memory(page_bytes: int) -> None:
    for path in [*programs(), *libraries()[::8]]:
        small = predict(image_of(path), 0x1000, is_program=True)
        large = predict(image_of(path), page_bytes, is_program=True)
        assert count_pages(large.startup_min) <= count_pages(small.startup_min)
        assert large.startup_min_bytes >= small.startup_min_bytes
        # A page in which .bss begins may be none of the smaller ones.
        assert numbers(large.startup_min) >= {page * 0x1000 // page_bytes for page in numbers(small.startup_min)}
        assert numbers(large.startup_min) <= numbers(large.startup_max)


# --- the C library ----------------------------------------------------------------------------------------------------


def test_calibrating_gives_the_same_each_time_and_is_kept() -> None:
    first, again = calibrate_libc(), calibrate_libc()
    if first is None:
        pytest.skip("programs here do not use glibc")
    assert first == again
    assert not first.is_assumed
    assert 1 <= first.count <= 12
    path = next(name for name in seen(programs()[0])[0].objects() if name.endswith("/libc.so.6"))
    assert load_libc_start(image_of(path)) == first
