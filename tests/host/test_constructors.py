"""What programs hold where their own code begins: predicted with constructors that were measured, and read there."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import pytest

from footprint.attribution.start_memory import start_memory
from footprint.elf.constructors import own_constructors
from footprint.errors import AccessError
from footprint.process.held_program import AT_ENTRY, held_at_start
from footprint.process.pages import has_exclusive_bit
from footprint.sources.programs import Programs
from footprint.sources.startup_write_calibration import calibrate_constructors, calibrate_libc, load_constructors
from tests.atstart import PAGE, Seen, image_of, is_elf, look, numbers, vaddr_of

KNOWN = (
    *("git", "gdb", "node", "perl", "python3", "bash", "curl", "apt", "ls", "cmake", "sqlite3", "ssh", "gpg", "gcc"),
    *("tar", "sed", "awk", "make", "find", "journalctl", "dbus-daemon", "vim", "openssl", "less", "grep", "cat", "ps"),
)
OTHER_COUNT = 60
# Where the stack begins is chance, and with it how many pages it has: the middle one of several starts counts.
START_COUNT = 5

pytestmark = [
    pytest.mark.skipif(not has_exclusive_bit(), reason="the page bits of this host do not tell what is mapped once"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the figures are those of x86-64"),
]


@pytest.fixture(scope="module", autouse=True)
def _calibrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        try:
            if calibrate_libc() is None:
                pytest.skip("programs here do not use glibc")
        except (AccessError, OSError):
            pytest.skip("no program can be held at its start here")
        calibrate_constructors()
        yield
        programs_of_host.cache_clear()


@cache
def programs_of_host() -> Programs:
    return Programs()


class Compared(NamedTuple):
    """A program where its own code begins: its private bytes, predicted and read, and pages predicted in vain."""

    predicted_bytes: int
    private_bytes: int
    over_predicted: Sequence[str]


def private_pages(seen: Seen) -> int:
    """Count the private pages of a program; what our own stops have written is text."""
    texts = [mapping for mapping in seen.mappings if mapping.permissions[2] == "x" and mapping.name.startswith("/")]
    of_texts = {page for text in texts for page in range(text.start_addr // PAGE, text.end_addr // PAGE)}
    return len(seen.private - of_texts)


def compared(path: str, function: str = "") -> Compared:
    """Compare a program where its own code begins, or at the beginning of one of its functions."""
    graph = programs_of_host().graph(path)
    predicted_bytes = sum(one.startup_min_bytes for one in graph.predictions if one) + sum(start_memory(graph))
    result: list[int] = []
    over: set[str] = set()
    for _ in range(START_COUNT):
        with held_at_start(path) as program:
            program.run_to(program.auxiliary(AT_ENTRY))
            if function:
                start, wanted = vaddr_of(path, "_start"), vaddr_of(path, function)
                assert start is not None
                assert wanted is not None
                program.run_to(program.auxiliary(AT_ENTRY) - start + wanted)
            seen = look(program)
        result.append(private_pages(seen))
        objects = seen.objects()
        for linked, one in zip(graph.objects, graph.predictions, strict=True):
            name = os.path.realpath(linked.path)
            if one is not None and name in objects:
                over |= {f"{name}: {page:#x}" for page in numbers(one.startup_min) - seen.written(name, one)}
    return Compared(predicted_bytes, int(median(result)) * PAGE, sorted(over))


def known_programs() -> list[str]:
    found = [str(Path(path).resolve()) for name in KNOWN if (path := shutil.which(name))]
    return list(dict.fromkeys(path for path in found if is_elf(Path(path))))


def other_programs() -> list[str]:
    """Name programs of the whole alphabet, whose loader is that of glibc."""
    result = []
    for path in sorted(Path("/usr/bin").iterdir()):
        if not path.is_symlink() and os.access(path, os.X_OK) and is_elf(path):
            with path.open("rb") as file:
                if re.search(rb"/ld-linux[^\0]*", file.read(PAGE)):
                    result.append(str(path))
    return result[:: max(1, len(result) // OTHER_COUNT)]


@pytest.mark.parametrize("names", [known_programs, other_programs], ids=["known", "others"])
def test_programs_are_predicted_to_three_percent_and_no_page_in_vain(names: Callable[[], list[str]]) -> None:
    errors = {}
    for path in names():
        one = compared(path)
        assert not one.over_predicted, path
        errors[path] = abs(one.predicted_bytes - one.private_bytes) / one.private_bytes
    if len(errors) < 20:
        pytest.skip("too few programs to tell")
    assert mean(errors.values()) <= 0.03, errors


def test_what_constructors_write_is_known_of_the_libraries_that_have_them() -> None:
    libstdcxx = next((path for path in Path("/usr/lib").glob("*/libstdc++.so.6")), None)
    if libstdcxx is None or not own_constructors(image_of(str(libstdcxx))):
        pytest.skip("no libstdc++ here")
    known, notes = load_constructors()
    assert known
    assert not notes


C = "#include <stdio.h>\nint main(int count, char **words) { if (count > 1) puts(words[1]); return 0; }\n"


@pytest.mark.parametrize(
    "command",
    [["gcc", "-static"], ["gcc", "-static-pie"], ["musl-gcc", "-static"], ["musl-gcc"]],
    ids=["glibc", "glibc, moved", "musl", "musl, dynamic"],
)
def test_static_programs_and_those_of_musl_hold_what_is_predicted_when_main_begins(
    command: list[str], tmp_path: Path
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / "program.c").write_text(C, encoding="ascii")
    program = str(tmp_path / "program")
    built = subprocess.run([*command, "-O1", "-o", program, f"{program}.c"], capture_output=True, check=False)
    if built.returncode:
        pytest.skip(f"{' '.join(command)} does not work here")
    one = compared(program, "main")
    assert not one.over_predicted
    assert abs(one.predicted_bytes - one.private_bytes) <= PAGE


CXX = "#include <iostream>\nint main(int count, char **words) { if (count > 1) std::cout << words[1]; return 0; }\n"


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_a_static_cxx_program_has_its_streams_and_nothing_that_is_not_written(option: str, tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "program.cc").write_text(CXX, encoding="ascii")
    program = str(tmp_path / "program")
    built = subprocess.run(["g++", option, "-O1", "-o", program, f"{program}.cc"], capture_output=True, check=False)
    if built.returncode:
        pytest.skip(f"g++ {option} does not work here")
    one = compared(program, "main")
    assert not one.over_predicted
    # The heap of libstdc++ is in no figure.
    assert -PAGE <= one.private_bytes - one.predicted_bytes <= 4 * PAGE
