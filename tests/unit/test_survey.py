"""The programs of folders: which files are taken for programs, each once; how they are ranked and shown."""

import builtins
import json
import os
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.cli import main
from footprint.errors import Note, UsageError
from footprint.formats.document import Table, Verdict
from footprint.verbs.audit.survey_answer import Survey, SurveyedProgram, survey_document
from tests.elfwriter import (
    DT_NEEDED,
    DT_SONAME,
    RO,
    RW,
    SHT_NOBITS,
    TLS,
    Dyn,
    ElfFile,
    Section,
    write,
)
from tests.jsonschemas import WRITTEN
from tests.sysroot import GLIBC, Sysroot

K = 1024
INTERPRETER = Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")


def program(*needed: str, data_bytes: int = 64) -> bytes:
    sections = [INTERPRETER, Section(".data", flags=RW, data=bytes(data_bytes))]
    return write(ElfFile(sections=sections, dynamic=[Dyn(DT_NEEDED, name) for name in needed] or [Dyn(DT_SONAME, "p")]))


@pytest.fixture(autouse=True)
def _no_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def root(tmp_path: Path) -> Sysroot:
    """Make a system with a large and a small program, a library that nobody uses, and much that is no program."""
    root = Sysroot(tmp_path / "root")
    root.loader()
    root.library("/usr/lib/libidle.so", soname="libidle.so")
    root.file("/bin/large", program("libidle.so", data_bytes=5 * 4 * K))
    root.file("/bin/small", program())
    root.file("/bin/script", b"#!/bin/sh\nexit 0\n")
    root.library("/bin/libplugin.so", soname="libplugin.so")
    root.file("/bin/deeper/partial", program("libgone.so"))
    root.file("/bin/not-executable", program())
    root.file("/bin/damaged", program()[:200])
    root.file("/bin/empty", b"")
    root.symlink("/bin/link", "small")
    root.symlink("/bin/deeper/loop", "..")
    root.symlink("/bin/away", "/usr/lib")
    os.link(root.root / "bin/small", root.root / "bin/twin")
    for path in (root.root / "bin").rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != "not-executable":
            path.chmod(0o755)
    os.mkfifo(root.root / "bin/pipe")
    return root


def surveyed(root: Sysroot, **more: Any) -> Survey:  # noqa: ANN401 # arguments of survey
    return footprint.survey(str(root.root / "bin"), root=str(root.root), page_bytes=4 * K, **more)


def names(result: Survey) -> list[str]:
    return [one.path.rpartition("/")[2] for one in result.programs]


def test_programs_are_found_each_once_the_costliest_first(root: Sysroot) -> None:
    # A loader of one page, a stack of three, and what the loader allocates: 4,700 bytes and 1,500 for each object. The
    # library of `large` makes these three pages instead of two. That of `partial` is missing.
    found = surveyed(root)
    assert names(found) == ["large", "partial", "small"]
    assert [one.object_count for one in found.programs] == [3, 2, 2]
    assert [one.startup_min_bytes for one in found.programs] == [12 * K, 8 * K, 8 * K]
    assert [one.start_bytes for one in found.programs] == [(3 + 3) * 4 * K, (3 + 2) * 4 * K, (3 + 2) * 4 * K]


def test_the_ceiling_is_all_that_is_writable(root: Sysroot) -> None:
    # .data of 20 KiB and .dynamic behind it are six pages; the library and the loader have one each.
    assert surveyed(root).programs[0].startup_max_bytes == 8 * 4 * K


def test_what_a_program_could_do_without_is_told(root: Sysroot) -> None:
    large, partial, small = surveyed(root).programs
    assert (large.unused, large.unused_bytes) == (("libidle.so",), 4 * K)
    assert (partial.unused, small.unused) == ((), ())


def test_damaged_files_and_missing_libraries_are_notes(root: Sysroot) -> None:
    found = surveyed(root)
    assert [one.is_complete for one in found.programs] == [True, False, True]
    notes = [(note.slug, note.subject.rpartition("/")[2]) for note in found.notes]
    assert ("file-unreadable", "damaged") in notes
    assert ("library-missing", "libgone.so") in notes
    assert len(notes) == 2


def test_a_file_that_may_not_be_read_is_a_note(root: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs the tests may read everything.
    real_open = builtins.open

    def refusing(file: Any, *rest: Any, **more: Any) -> Any:  # noqa: ANN401 # those of open
        if str(file).endswith("bin/large"):
            raise PermissionError(13, "Permission denied", file)
        return real_open(file, *rest, **more)

    monkeypatch.setattr(builtins, "open", refusing)
    found = surveyed(root)
    assert names(found) == ["partial", "small"]
    assert any(note.subject.endswith("/large") and "Permission denied" in note.detail for note in found.notes)


def test_folders_within_one_another_count_their_programs_once(root: Sysroot) -> None:
    folders = [str(root.root / "bin"), str(root.root / "bin/deeper"), str(root.root / "bin")]
    found = footprint.survey(*folders, root=str(root.root), page_bytes=4 * K)
    assert names(found) == names(surveyed(root))


def test_larger_pages_make_larger_figures(root: Sysroot) -> None:
    found = footprint.survey(str(root.root / "bin"), root=str(root.root), page_bytes=64 * K)
    assert {one.startup_min_bytes for one in found.programs if one.object_count == 2} == {2 * 64 * K}


def test_thread_local_variables_count_at_the_start(root: Sysroot) -> None:
    block = Section(".tbss", SHT_NOBITS, TLS, size=64 * K)
    sections = [INTERPRETER, block, Section(".data", flags=RW, data=bytes(64))]
    root.file("/bin/small", write(ElfFile(sections=sections, dynamic=[Dyn(DT_SONAME, "p")])))
    found = {one.path.rpartition("/")[2]: one for one in surveyed(root).programs}
    assert found["small"].start_bytes - found["partial"].start_bytes == 64 * K


@pytest.mark.parametrize("folders", [[], ["/nowhere"], ["/etc/passwd"]])
def test_without_a_folder_the_question_is_wrong(folders: list[str]) -> None:
    with pytest.raises(UsageError):
        footprint.survey(*folders)


def test_a_folder_that_is_not_below_the_root_is_refused(root: Sysroot, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    outside = tmp_path / "other" / "program"
    outside.write_bytes(program())
    outside.chmod(0o755)
    with pytest.raises(UsageError, match="is not below"):
        footprint.survey(str(tmp_path / "other"), root=str(root.root))


# --- as it is shown ---------------------------------------------------------------------------------------------------


def rank(count: int = 1, unused_bytes: int = 0, doubtful_bytes: int = 0) -> Survey:
    programs = tuple(
        SurveyedProgram(
            path=f"/bin/program{number}",
            object_count=3,
            startup_min_bytes=(30 - number) * 4 * K,
            startup_max_bytes=200 * K,
            start_bytes=28 * K,
            unused_bytes=unused_bytes,
            unused=("libm.so.6",),
            doubtful_bytes=doubtful_bytes,
            is_complete=True,
        )
        for number in range(25)
    )
    return Survey(("/bin",), count, programs, ())


def verdict(result: Survey) -> str:
    last = survey_document(result)[-1]
    assert isinstance(last, Verdict)
    return last.text


def test_the_last_line_says_which_costs_most_and_what_could_be_saved() -> None:
    costs = "/bin/program0 costs most, 148 KiB at its start (estimated)"
    assert verdict(rank()) == f"{costs}."
    assert verdict(rank(1, 8 * K)) == f"{costs}; one of each would save 200 KiB without unused libraries."
    assert verdict(rank(1000, 8 * K)) == f"{costs}; 1,000 of each would save 195.3 MiB without unused libraries."
    low = "one of each would save 200 KiB without unused libraries, and 100 KiB more with low confidence"
    assert verdict(rank(1, 8 * K, 4 * K)) == f"{costs}; {low}."
    low = "1,000 of each would save 97.7 MiB without unused libraries, with low confidence"
    assert verdict(rank(1000, 0, 4 * K)) == f"{costs}; {low}."
    assert verdict(Survey(("/bin",), 1, (), ())) == "There is no program."


@pytest.mark.parametrize(("top", "rows"), [(20, 20), (3, 3), (0, 25), (25, 25)])
def test_so_many_rows_are_shown_and_the_rest_is_counted(top: int, rows: int) -> None:
    tables = [block for block in survey_document(rank(1, 8 * K), top=top) if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [rows, rows]
    rest = [] if rows == 25 else [f"[{25 - rows} more: --top 0 shows all]"] * 2
    assert [footer[-1] for table in tables for footer in table.footer] == rest


def test_of_many_notes_the_first_are_shown() -> None:
    notes = tuple(Note("library-missing", f"lib{number}.so", "p needs it") for number in range(12))
    texts = [str(block) for block in survey_document(Survey(("/bin",), 1, (), notes))]
    assert sum("library-missing" in text for text in texts) == 10
    assert any("[2 more: --json has all]" in text for text in texts)


# --- as a user runs it ------------------------------------------------------------------------------------------------


def answer(captured: pytest.CaptureFixture[bytes], root: Sysroot, *words: str) -> tuple[int, str, str]:
    code = main(["audit", "--all", str(root.root / "bin"), "--root", str(root.root), "--page-size", "4KiB", *words])
    out, error = captured.readouterr()
    return code, out.decode(), error.decode()


SHOWN = """\
3 programs in bin
  Private memory of one process, predicted from files. At start: when its own
    code begins; the part of its objects is the startup minimum; if every
    variable is written, the startup maximum. Unused: of libraries that nobody
    uses.
  at start  startup min  startup max  objects  unused  program
    36 KiB       12 KiB       32 KiB        3   4 KiB  bin/large
    28 KiB        8 KiB        8 KiB        2       -  bin/deeper/partial
                                                         [libraries missing]
    28 KiB        8 KiB        8 KiB        2       -  bin/small

Libraries that nobody uses
  saves  program    libraries
  4 KiB  bin/large  libidle.so
"""


def test_the_text_has_the_programs_and_their_idle_libraries(
    root: Sysroot, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(root.root)
    assert main(["audit", "--all", "bin", "--root", ".", "--page-size", "4KiB"]) == 0
    out, error = capfdbinary.readouterr()
    shown, _, end = out.decode().partition("\nNotes\n")
    assert (shown, error) == (SHOWN, b"")
    saved = "one of each would save 4 KiB without unused libraries."
    assert " ".join(end.split()).endswith(f" bin/large costs most, 36 KiB at its start (estimated); {saved}")


def test_the_json_is_valid_and_has_every_program(root: Sysroot, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    code, out, _ = answer(capfdbinary, root, "--json", "-n", "7", "--top", "1")
    assert code == 0
    result = json.loads(out)
    WRITTEN.validate(result)
    assert (result["count"], [one["unused_bytes"] for one in result["programs"]]) == (7, [4 * K, 0, 0])
    for member in result["programs"][0]:
        less = {**result, "programs": [{key: value for key, value in result["programs"][0].items() if key != member}]}
        assert not WRITTEN.is_valid(less), member
    assert not WRITTEN.is_valid({**result, "programs": [{**result["programs"][0], "another": 1}]})


@pytest.mark.parametrize(
    "words",
    [
        ["--all"],
        ["--all", "/etc/passwd"],
        ["--all", "/nowhere"],
        ["--all", "/etc", "--pid", "3"],
        ["--all", "/etc", "--tree", "1"],
        ["--all", "/etc", "--name", "bash"],
        ["1", "--page-size", "16KiB"],
        ["1", "2", "--page-size", "16KiB"],
        ["/bin/sh", "--page-size", "5"],
        ["/bin/sh", "--page-size", "much"],
    ],
)
def test_a_wrong_question_is_one_line_and_exit_code_2(
    capfdbinary: pytest.CaptureFixture[bytes], words: list[str]
) -> None:
    assert main(["audit", *words]) == 2
    out, error = capfdbinary.readouterr()
    assert out == b""
    assert error.startswith(b"footprint: ")
    assert error.count(b"\n") == 1


def test_a_partial_answer_is_one_under_strict(root: Sysroot, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert answer(capfdbinary, root, "--strict")[0] == 4
