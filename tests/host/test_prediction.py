"""What a program was predicted to cost, and what it costs where it stands at its start; and the rules, measured."""

import os
import re
import shutil
import stat
import subprocess
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest

import footprint
from footprint.elf.constructors import own_constructors
from footprint.errors import AccessError
from footprint.model.audit import Audit
from footprint.process.held_program import AT_ENTRY, held_at_start
from footprint.process.pages import has_exclusive_bit
from footprint.sources.startup_write_calibration import calibrate_libc
from tests.atstart import PAGE, Seen, image_of, is_elf, look, run_to_constructors, step
from tests.liveprocesses import states, wait_until

KNOWN = (
    *("git", "gdb", "node", "perl", "python3", "bash", "curl", "apt", "ls", "cmake", "sqlite3", "ssh", "gpg", "gcc"),
    *("tar", "sed", "awk", "make", "find", "journalctl", "dbus-daemon", "vim", "openssl", "less", "grep", "cat", "ps"),
)
KIB = 1024

is_page_bits_denied = not has_exclusive_bit() or os.uname().machine != "x86_64"
needs_page_bits = pytest.mark.skipif(is_page_bits_denied, reason="no page bits, or no loader of x86-64 to hold")


@pytest.fixture(scope="module", autouse=True)
def _calibrated(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        if not is_page_bits_denied and can_be_held():
            calibrate_libc()
            for path in programs():
                predicted(path)


@cache
def can_be_held() -> bool:
    try:
        with held_at_start("/bin/true") as held:
            held.run_to(held.auxiliary(AT_ENTRY))
    except (AccessError, OSError):
        return False
    return True


@cache
def programs() -> tuple[str, ...]:
    found = [str(Path(path).resolve()) for name in KNOWN if (path := shutil.which(name))]
    return tuple(dict.fromkeys(path for path in found if is_elf(Path(path))))


each_program = pytest.mark.parametrize("path", programs(), ids=os.path.basename)


@cache
def predicted(path: str) -> Audit:
    return footprint.audit(path)


class Stand(NamedTuple):
    """A program that stood where its constructors are about to run, then where its own code begins."""

    linked: Seen
    entered: Seen
    linked_table_bytes: int
    entered_table_bytes: int


def table_bytes(pid: int) -> int:
    match = re.search(r"VmPTE:\s+([0-9]+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert match is not None
    return int(match[1]) * KIB


@cache
def stand(path: str) -> Stand:
    if not can_be_held():
        pytest.skip("no program can be held at its start here")
    try:
        with held_at_start(path) as held:
            run_to_constructors(held, path)
            linked, linked_table_bytes = look(held), table_bytes(held.pid)
            step(held)
            held.run_to(held.auxiliary(AT_ENTRY))
            return Stand(linked, look(held), linked_table_bytes, table_bytes(held.pid))
    except LookupError as error:
        pytest.skip(str(error))


def private_bytes(seen: Seen) -> int:
    """Return what a program holds; what our own stops have written is text."""
    texts = [mapping for mapping in seen.mappings if mapping.permissions[2] == "x" and mapping.name.startswith("/")]
    pages_of_texts = {page for text in texts for page in range(text.start_addr // PAGE, text.end_addr // PAGE)}
    return len(seen.private - pages_of_texts) * PAGE


def with_constructors(seen: Seen) -> list[str]:
    """Return the objects with constructors of their own."""
    return [
        name for name in seen.objects() if not re.search(r"/(libc|ld)[.-]", name) and own_constructors(image_of(name))
    ]


# --- the whole process ------------------------------------------------------------------------------------------------


@needs_page_bits
@each_program
def test_the_private_memory_of_a_process_is_as_predicted(path: str) -> None:
    assert abs((predicted(path).totals.private.bytes or 0) - private_bytes(stand(path).linked)) <= 16 * KIB


@needs_page_bits
@each_program
def test_each_object_holds_what_its_rows_say(path: str) -> None:
    rows: dict[str, int] = {}
    for row in predicted(path).ledger:
        rows[os.path.realpath(row.owner)] = rows.get(os.path.realpath(row.owner), 0) + (row.bytes or 0)
    seen = stand(path).linked
    for name, bias in seen.objects().items():
        image = image_of(name)
        first = image.loads[0].vaddr // PAGE
        past = -(-(image.loads[-1].vaddr + image.loads[-1].memory_bytes) // PAGE)
        texts = [mapping for mapping in seen.mappings if mapping.permissions[2] == "x" and mapping.name == name]
        of_text = {page for text in texts for page in range(text.start_addr // PAGE, text.end_addr // PAGE)}
        held = {page for page in range(first + bias, past + bias) if page in seen.private} - of_text
        assert rows[os.path.realpath(name)] == len(held) * PAGE, name


@needs_page_bits
@each_program
def test_where_nothing_has_constructors_its_own_code_begins_with_what_was_predicted(path: str) -> None:
    entered = stand(path).entered
    grown_bytes = private_bytes(entered) - (predicted(path).totals.private.bytes or 0)
    assert grown_bytes >= -16 * KIB
    if not with_constructors(entered):
        assert grown_bytes <= 16 * KIB


@needs_page_bits
@each_program
def test_it_has_the_mappings_that_were_counted_but_few(path: str) -> None:
    # The page of old system calls, the heap, what constructors map; neighbours that are one by chance, or are not.
    foreseen = predicted(path).mapping_count
    assert 0 <= len(stand(path).entered.mappings) - foreseen <= 8 + foreseen // 20


@needs_page_bits
@each_program
def test_page_tables_are_near_the_estimate(path: str) -> None:
    estimate = next(row.bytes or 0 for row in predicted(path).ledger if row.name == "[page tables]")
    # What constructors write is not foreseen: those of libnode take half as many tables again.
    seen = stand(path)
    measured = seen.linked_table_bytes if with_constructors(seen.entered) else seen.entered_table_bytes
    # Where libraries come to stand is random, and so is how many tables they need.
    assert abs(measured - estimate) <= max(20 * KIB, estimate // 5)


@needs_page_bits
def test_the_estimate_of_page_tables_is_right_on_average() -> None:
    errors = []
    for path in programs():
        estimate = next(row.bytes or 0 for row in predicted(path).ledger if row.name == "[page tables]")
        errors.append(stand(path).entered_table_bytes - estimate)
    if len(errors) < 10:
        pytest.skip("too few programs to tell")
    assert abs(mean(errors)) <= 6 * KIB


# --- the survey -------------------------------------------------------------------------------------------------------


def test_every_dynamic_program_of_a_folder_is_found_and_has_the_figures_of_its_audit() -> None:
    folder = Path("/usr/bin")
    result = {program.path: program for program in footprint.survey(str(folder)).programs}
    expected: dict[tuple[int, int], str] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        if not (stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o111 and is_elf(path)):
            continue
        with path.open("rb") as file:
            # The name of its loader stands behind its headers.
            if b"\0/lib" in file.read(4096):
                expected.setdefault((facts.st_dev, facts.st_ino), str(path))
    assert expected
    assert set(expected.values()) <= set(result)
    for name in list(result)[:: max(1, len(result) // 12)]:
        audit, one = footprint.audit(name), result[name]
        assert audit.totals.private.bytes == one.startup_min_bytes + one.start_bytes
        assert (audit.totals.startup_min.bytes, audit.totals.startup_max.bytes) == (
            one.startup_min_bytes,
            one.startup_max_bytes,
        )


# --- the rules, measured ----------------------------------------------------------------------------------------------

THREADS = 20
LIBRARY = "__thread char block[1 << 20]; int unused(void) { return block[5]; }"
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *sleeping(void *none) { (void)none; pause(); return 0; }
int main(int count, char **words) {
    pthread_t thread;
    for (int i = 0; i < %d && count > 1; i++) pthread_create(&thread, 0, sleeping, 0);
    puts("ready"); fflush(stdout); pause(); return words == 0;
}
"""


def compile_c(path: Path, source: str, *options: str, compiler: str = "gcc") -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    suffix = "cc" if compiler == "g++" else "c"
    path.with_suffix(f".{suffix}").write_text(source, encoding="ascii")
    command = [compiler, "-O1", "-o", str(path), str(path.with_suffix(f".{suffix}")), *options]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"{compiler} {' '.join(options)} does not work here")
    return path


def measured(program: Path, *words: str) -> Audit:
    with subprocess.Popen([str(program), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        try:
            child.stdout.readline()
            # A thread that has not run yet is runnable, and has touched nothing.
            wait_until(lambda: states(child.pid) == {"S"}, "all threads to sleep")
            return footprint.audit(child.pid)
        finally:
            child.kill()


def measured_private_bytes(program: Path, *words: str) -> int:
    return measured(program, *words).totals.private.bytes or 0


def own_private_bytes(program: Path, *words: str) -> int:
    """Return what a live program itself holds: not its stack, whose place in a page is left to chance."""
    ledger = measured(program, *words).ledger
    return sum(row.bytes or 0 for row in ledger if row.owner == str(program))


def test_each_thread_pays_for_the_block_of_a_library_that_nobody_uses(tmp_path: Path) -> None:
    if os.confstr("CS_GNU_LIBC_VERSION") is None:
        pytest.skip("programs here do not use glibc")
    library = compile_c(tmp_path / "libblock.so", LIBRARY, "-shared", "-fPIC", "-Wl,-soname,libblock.so")
    options = ["-pthread", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{tmp_path}"]
    program = compile_c(tmp_path / "program", PROGRAM % THREADS, *options)
    finding = next(one for one in footprint.audit(str(program)).findings if one.rule == "thread-locals")
    assert (finding.subject, finding.kind, finding.saving_bytes) == ("libblock.so", "at-thread-start", 1 << 20)
    assert "block 1 MiB" in finding.message
    each = (measured_private_bytes(program, "threads") - measured_private_bytes(program)) // THREADS
    # And a little of its stack.
    assert 0 <= each - finding.saving_bytes <= 32 * KIB
    # The first thread has it, too, which is in the prediction.
    predicted_bytes = footprint.audit(str(program)).totals.private.bytes or 0
    assert 0 <= measured_private_bytes(program) - predicted_bytes <= 128 * KIB


TABLE = """
struct Base {{ virtual ~Base() {{}} virtual int one() {{ return 1; }} }};
extern const char *const names[4096];
const char *const names[4096] = {{ {} }};
#include <cstdio>
int main(int count, char **) {{ if (count == 2) {{ puts("ready"); fflush(stdout); getchar(); }}
return names[count] == nullptr || Base().one() == 2; }}
""".format('"name",' * 4096)


@pytest.mark.parametrize(
    ("options", "result"),
    [
        (["-pie", "-fPIE", "-Wl,-z,relro"], [("symbol", "names", "high")]),
        (["-pie", "-fPIE", "-Wl,-z,norelro"], [("symbol", "names", "medium")]),
        (["-pie", "-fPIE", "-Wl,-z,relro", "-s"], [("object", "program", "medium")]),
        (["-pie", "-fPIE", "-Wl,-z,relro", "-Wl,-z,pack-relative-relocs"], [("symbol", "names", "high")]),
        (["-no-pie", "-fno-pie", "-Wl,-z,relro"], []),
    ],
    ids=["sealed", "not sealed", "stripped", "packed", "not moved"],
)
def test_a_table_of_pointers_is_found_where_it_is_moved(
    tmp_path: Path, options: list[str], result: list[tuple[str, str, str]]
) -> None:
    program = compile_c(tmp_path / "program", TABLE, *options, compiler="g++")
    audit = footprint.audit(str(program))
    mine = [one for one in audit.findings if one.rule == "relocated-tables" and one.subject in {"names", "program"}]
    assert [(one.kind, one.subject, one.confidence.value) for one in mine] == result
    # 4,096 pointers are eight pages; they may begin within one.
    assert all(7 * PAGE <= one.saving_bytes <= 9 * PAGE for one in mine)


@pytest.mark.parametrize("options", [[], ["-Wl,-z,pack-relative-relocs"]], ids=["plain", "packed"])
def test_a_program_at_a_fixed_place_saves_its_tables_and_packed_relocations_save_none(
    tmp_path: Path, options: list[str]
) -> None:
    moved = compile_c(tmp_path / "moved", TABLE, "-pie", "-fPIE", *options, compiler="g++")
    fixed = compile_c(tmp_path / "fixed", TABLE, "-no-pie", "-fno-pie", compiler="g++")
    mine = [finding for finding in footprint.audit(str(moved)).findings if finding.subject == "names"]
    assert len(mine) == 1
    saved_bytes = own_private_bytes(moved, "wait") - own_private_bytes(fixed, "wait")
    # The relocations of the other tables of a C++ program share a page or two.
    assert mine[0].saving_bytes <= saved_bytes <= mine[0].saving_bytes + 2 * PAGE
