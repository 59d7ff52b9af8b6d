"""`footprint libraries` as a user runs it, on a small system whose files are built in view."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.cli import main
from footprint.loader import start_cost
from footprint.loader.system import System
from footprint.system.roots import stat_path
from tests.elfwriter import (
    DT_NEEDED,
    DT_RUNPATH,
    DT_SONAME,
    ET_EXEC,
    RO,
    RW,
    SHT_NOBITS,
    SHT_RELA,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)
from tests.jsonschemas import WRITTEN
from tests.sysroot import GLIBC, Sysroot, loader_cache
from tests.workcount import work_of

JUMP_SLOT = 7
PAGE = 4096

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]


def made(soname: str | None, *needed: str, offers: str = "", asks: str = "", data_bytes: int = 16) -> bytes:
    """Return a program, or a library where it has a name, that offers and asks for functions of one letter."""
    functions = [Sym(name, At(".data"), 8, STT_FUNC) for name in offers] + [Sym(name, type=STT_FUNC) for name in asks]
    slots = [Rel(At(".data", 8 * place), JUMP_SLOT, name, 0) for place, name in enumerate(asks)]
    sections = [
        Section(".data", flags=RW, data=bytes(max(data_bytes, 8 * len(asks)))),
        Section(".bss", SHT_NOBITS, RW, size=2 * PAGE),
        *([Section(".rela.plt", SHT_RELA, RO, slots)] if slots else []),
        *([Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")] if soname is None else []),
    ]
    dynamic = [Dyn(DT_NEEDED, name) for name in needed] + ([Dyn(DT_SONAME, soname)] if soname else [])
    return write(ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=functions))


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Return a system with a program that uses one library of two, which in turn uses a third."""
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    system.file("/bin/program", made(None, "libused.so", "libidle.so", asks="ab"))
    system.file("/lib/libused.so", made("libused.so", "libdeep.so", offers="ab", asks="c"))
    system.file("/lib/libidle.so", made("libidle.so", "libbelow.so", asks="d"))
    system.file("/lib/libdeep.so", made("libdeep.so", offers="c"))
    system.file("/lib/libbelow.so", made("libbelow.so", offers="d", data_bytes=3 * PAGE))
    return str(tmp_path)


@pytest.fixture(autouse=True)
def plain_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search in no subfolders for the processor of this machine."""
    monkeypatch.setattr(System, "machine", "none")


def answer(captured: Captured, *words: str, code: int = 0) -> str:
    assert main(["libraries", *words]) == code
    out, error = captured.readouterr()
    assert error == ""
    return out


# --- text -------------------------------------------------------------------------------------------------------------

GOLDEN = """\
/bin/program: 6 objects, glibc; 24 KiB a process, 8 KiB unused
  startup min   mapped  retained  users  symbols  object
        4 KiB   16 KiB                -        -  program
        4 KiB   16 KiB     8 KiB      1        2  libused.so
        4 KiB   16 KiB     8 KiB      -        -  libidle.so  [unused]
        4 KiB   16 KiB     4 KiB      1        1  libdeep.so
        4 KiB   28 KiB     4 KiB      1        1  libbelow.so
        4 KiB    8 KiB                -        -  ld-linux-x86-64.so.2
                                                    [the loader]
       24 KiB  100 KiB                            [total]
  What to do first (libidle.so: 8 KiB): drop -lidle from the link of program, or
    write -Wl,--as-needed before it there.

Findings
  unused-library (high): libidle.so is needed by program, and nothing is used of
    it; libbelow.so would leave with it. It saves 8 KiB a process. Why high: no
    object of the process binds to what would leave. Remedy: drop -lidle from
    the link of program, or write -Wl,--as-needed before it there.
  --sort start shows the time of each at start, and what would save some of it.

The 6 objects take 24 KiB private memory a process (predicted); without unused
libraries it would save 8 KiB.
"""


def test_the_objects_are_told_in_load_order_with_cost_use_and_what_leaves(capfd: Captured, root: str) -> None:
    # Each object writes the page of its .data and .dynamic; libbelow.so has three pages more, which nobody writes.
    assert answer(capfd, "--root", root, "--page-size", "4KiB", "/bin/program") == GOLDEN


@pytest.mark.parametrize("words", [("--sort", "start"), ("-v",), ("--fail-on", "stub-library")])
def test_the_time_at_start_is_shown_where_it_is_asked(capfd: Captured, root: str, words: tuple[str, ...]) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", *words, "/bin/program")
    assert "startup min   mapped  retained  start us  users" in text
    # 230 us for the loader and 1.43 for a page; it looks 5 functions of the vDSO up, for 89 and 15 ns each.
    assert " 231  " in text
    assert "--sort start shows" not in text


def test_a_long_time_at_start_has_separators(capfd: Captured, tmp_path: Path) -> None:
    names = [f"lib{number}.so" for number in range(30)]
    system = Sysroot(tmp_path)
    system.loader()
    system.program(*names)
    for name in names:
        system.library(f"/lib/{name}")
    text = answer(capfd, "--root", str(tmp_path), "--sort", "start", "/bin/program")
    # 230 us for the loader, and 38 us and more for each of 31 objects.
    assert re.search(r" 1,4\d\d +\[total\]", text)


@pytest.mark.parametrize(
    ("words", "computed"),
    [
        ((), []),
        (("--tree",), []),
        (("--sort", "start"), ["start_costs"]),
        (("--json",), ["_table_page_count", "initialisers", "start_costs"]),
    ],
)
def test_of_the_start_an_answer_computes_what_it_shows(
    capfd: Captured, root: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], computed: list[str]
) -> None:
    calls: set[str] = set()

    def recorded(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*values: object) -> object:
            calls.add(name)
            return original(*values)

        return call

    for name in ("start_costs", "initialisers", "_table_page_count"):
        monkeypatch.setattr(start_cost, name, recorded(name, getattr(start_cost, name)))
    answer(capfd, "--root", root, *words, "/bin/program")
    assert sorted(calls) == computed


def test_the_tree_tells_who_brings_whom_in(capfd: Captured, root: str) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "--tree", "/bin/program")
    assert (
        text.split("\n  What to do first")[0]
        == """\
/bin/program: 6 objects, glibc; 24 KiB a process, 8 KiB unused
  startup min  mapped  retained  symbols  object
        4 KiB  16 KiB                     program
        4 KiB  16 KiB     8 KiB        2    libused.so
        4 KiB  16 KiB     4 KiB        1      libdeep.so
        4 KiB  16 KiB     8 KiB        -    libidle.so
        4 KiB  28 KiB     4 KiB        1      libbelow.so
        4 KiB   8 KiB                     ld-linux-x86-64.so.2"""
    )


def test_starts_a_day_are_hours_of_a_processor_and_no_processes(capfd: Captured, root: str) -> None:
    options = "--root", root, "--page-size", "4KiB", "-n", "3600", "--per", "hour", "/bin/program"
    text = answer(capfd, *options)
    # 430 us, 86,400 times.
    assert "Processor hours of 86,400 starts a day up to its own code (estimated)" in text
    assert "   0.0103  [total]" in text
    assert "0.00197  libused.so and 1 more that leave with it" in text
    found = json.loads(answer(capfd, *options, "--json"))
    assert found["daily"]["start_count"] == 86_400
    assert found["daily"]["entry_hours"] == pytest.approx(sum(one["start_us"] for one in found["libraries"]) * 0.000024)
    assert found["count"] == 1


def test_the_hours_of_a_static_program_are_not_known(capfd: Captured, tmp_path: Path) -> None:
    program = ElfFile(type=ET_EXEC, sections=[Section(".data", flags=RW, data=bytes(16))])
    Sysroot(tmp_path).file("/bin/program", write(program))
    options = "--root", str(tmp_path), "--page-size", "4KiB", "-n", "1", "--per", "day", "/bin/program"
    text = answer(capfd, *options)
    assert "Times at start are not known: a static program relocates itself." in text
    assert "Processor hours" not in text
    assert json.loads(answer(capfd, *options, "--json"))["daily"]["entry_hours"] is None


def test_the_hours_without_a_missing_library_are_a_lower_bound(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/bin/program", made(None, "libnone.so"))
    options = "--root", str(tmp_path), "--page-size", "4KiB", "-n", "1", "--per", "day", "/bin/program"
    text = answer(capfd, *options)
    assert "It is more: libraries are missing or cannot be read." in text
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(answer(capfd, *options, "--json"))["daily"]["is_lower_bound"] is True


def test_in_the_tree_what_two_need_has_its_cost_once_and_a_circle_ends(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/bin/program", made(None, "liba.so", "libb.so", asks="a"))
    system.file("/lib/liba.so", made("liba.so", "libb.so", offers="a", asks="b"))
    system.file("/lib/libb.so", made("libb.so", "liba.so", offers="b"))
    text = answer(capfd, "--root", str(tmp_path), "--page-size", "4KiB", "--tree", "/bin/program")
    lines = text.split("\n\nFindings\n  2 save nothing", maxsplit=1)[0].splitlines()[2:]
    assert lines[1].endswith("  1    liba.so  [and libb.so]")
    assert lines[2].endswith("  -    libb.so  [and liba.so]")
    assert len(lines) == 4


@pytest.mark.parametrize("name", ["libbelow.so", "/lib/libbelow.so", "libbelow"])
def test_the_chains_to_a_library_tell_what_is_used_at_their_ends(capfd: Captured, root: str, name: str) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "--why", name, "/bin/program")
    assert (
        text
        == """\
/bin/program: why libbelow.so is there
  symbols  chain
        1  program -> libidle.so -> libbelow.so

How each file was found
  object            found by
  /bin/program      the program
  /lib/libidle.so   a system directory of the loader
  /lib/libbelow.so  a system directory of the loader

libbelow.so costs 4 KiB a process; with it nothing else would leave: 4 KiB in
all (predicted).
"""
    )


def test_a_chain_names_the_object_whose_paths_lead_to_a_file(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.program("liba.so", rpath="/a:/b")
    system.library("/a/liba.so", "libb.so")
    system.library("/b/libb.so", "libc1.so", runpath="/c")
    system.library("/c/libc1.so")
    text = answer(capfd, "--root", str(tmp_path), "--why", "libc1.so", "/bin/program")
    assert (
        """\
  /bin/program  the program
  /a/liba.so    RPATH of program
  /b/libb.so    RPATH of program
  /c/libc1.so   RUNPATH of libb.so
"""
        in text
    )


def test_the_table_is_sorted_and_cut_in_its_order(capfd: Captured, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")

    def objects(*words: str) -> list[str]:
        text = answer(capfd, "--root", root, "--page-size", "4KiB", *words, "/bin/program")
        table = re.split(r"\n  (?:start us: |What to do first)", text)[0]
        return [line.split("  ")[-1].strip() for line in table.splitlines()[2:]]

    by_name = ["ld-linux-x86-64.so.2  [the loader]", "libbelow.so", "libdeep.so", "libidle.so  [unused]"]
    assert objects("--sort", "name")[:4] == [one.split("  ")[-1] for one in by_name]
    # libused.so and libidle.so retain 8 KiB each: they stay in load order.
    assert objects("--sort", "retained", "--top", "2") == [
        "libused.so",
        "[unused]",
        "[4 more: --top 0 shows all]",
        "[total]",
    ]
    assert objects("--sort", "users", "--top", "1")[0] == "libused.so"


def test_a_tree_of_some_levels_counts_what_is_below(capfd: Captured, root: str) -> None:
    text = answer(capfd, "--root", root, "--tree", "--depth", "1", "/bin/program").split("\n\n")[0]
    assert "    libused.so  [1 object below]\n" in text
    assert "    libidle.so  [1 object below]\n" in text
    assert "libdeep" not in text


@pytest.mark.parametrize(
    "words", [["--depth", "1"], ["--tree", "--sort", "name"], ["--why", "libidle.so", "--top", "1"]]
)
def test_an_option_that_does_not_fit_is_wrong_use(capfd: Captured, root: str, words: list[str]) -> None:
    assert main(["libraries", "--root", root, *words, "/bin/program"]) == 2
    assert " is for --tree" in (error := capfd.readouterr().err) or " are for the table" in error


def test_a_graph_for_graphviz_has_each_object_and_each_need(capfd: Captured, root: str) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "--format", "dot", "/bin/program")
    assert '  n2 [label="libidle.so\\n4 KiB\\nretained 8 KiB", style=filled, fillcolor=gold];\n' in text
    assert '  n0 -> n1 [label="2"];\n  n0 -> n2 [label="", style=dashed];\n' in text


def test_the_chain_to_an_unused_library_uses_none_of_it(capfd: Captured, root: str) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "--why", "libidle.so", "/bin/program")
    assert "     none  program -> libidle.so\n" in text
    assert "with it 1 more would leave: 8 KiB in all\n(predicted).\n" in text


def test_the_saving_is_told_of_as_many_processes_as_asked_for(capfd: Captured, root: str) -> None:
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "-n", "1000", "/bin/program")
    # 8 KiB * 1000 = 8,192,000 bytes
    assert "It saves 8 KiB a process, 7.81 MiB in\n    1,000." in text
    assert text.endswith("(predicted); without unused\nlibraries 1,000 processes would save 7.81 MiB.\n")


def test_top_is_how_many_objects_are_listed_and_the_total_is_of_all(
    capfd: Captured, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = answer(capfd, "--root", root, "--page-size", "4KiB", "--top", "2", "/bin/program")
    assert "libused.so\n                                                  [4 more: --top 0 shows all]\n" in text
    assert "       24 KiB  100 KiB                            [total]\n" in text


def test_quiet_is_the_last_paragraph_and_verbose_has_whole_paths(
    capfd: Captured, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--root", root, "--page-size", "4KiB", "/bin/program"]
    assert answer(capfd, "-q", *words) == GOLDEN.rsplit("\n\n", maxsplit=1)[-1]
    monkeypatch.setenv("COLUMNS", "120")
    assert "  /lib/libidle.so  [unused]\n" in answer(capfd, "-v", *words)


def test_a_larger_page_is_the_least_that_each_object_writes(capfd: Captured, root: str) -> None:
    found = asked(capfd, "--root", root, "--page-size", "64KiB", "/bin/program")
    assert {row["floor_bytes"] for row in found["libraries"]} == {65536}
    assert {note["slug"] for note in found["notes"]} == {"page-size-assumed"}


# --- JSON -------------------------------------------------------------------------------------------------------------


def asked(captured: Captured, *words: str) -> Json:
    text = answer(captured, *words, "--json")
    assert text.isascii()
    found: Json = json.loads(text)
    assert [f"{error.instance_path}: {error.message}" for error in WRITTEN.iter_errors(found)] == []
    return found


def test_the_json_has_every_relation_by_the_numbers_of_the_objects(capfd: Captured, root: str) -> None:
    result = asked(capfd, "--root", root, "--page-size", "4KiB", "-n", "10", "/bin/program")
    assert result["target"] == {
        "name": "/bin/program",
        "pid": None,
        "libc": "glibc",
        "page_bytes": 4096,
        "evidence": "predicted",
    }
    rows = result["libraries"]
    assert [row["number"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["soname"] for row in rows] == [
        None,
        "libused.so",
        "libidle.so",
        "libdeep.so",
        "libbelow.so",
        "ld-linux-x86-64.so.2",
    ]
    assert [row["loader"] for row in rows] == [None, 0, 0, 1, 2, None]
    assert [row["found_by"] for row in rows] == ["program", *["default"] * 4, "interpreter"]
    assert rows[0]["needed"] == [
        {"name": "libused.so", "number": 1, "symbol_count": 2},
        {"name": "libidle.so", "number": 2, "symbol_count": 0},
    ]
    assert [row["users"] for row in rows] == [[], [0], [], [1], [2], []]
    assert [row["retained"] for row in rows] == [[1, 2, 3, 4], [3], [4], [], [], []]
    assert rows[2]["retained_bytes"] == rows[2]["floor_bytes"] + rows[4]["floor_bytes"] == 2 * PAGE
    assert {row["private_bytes"] for row in rows} == {None}
    assert (result["missing"], result["notes"], result["count"]) == ([], [], 10)
    (finding,) = result["findings"]
    assert (finding["rule"], finding["kind"], finding["subject"]) == ("unused-library", "whole-process", "libidle.so")
    assert (finding["saving_bytes"], finding["saving_at_count_bytes"]) == (2 * PAGE, 20 * PAGE)
    assert finding["leaves"] == ["/lib/libidle.so", "/lib/libbelow.so"]


def test_a_library_that_is_missing_is_a_note_and_a_row(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    system.file("/bin/program", made(None, "libnone.so"))
    words = ["--root", str(tmp_path), "/bin/program"]
    found = asked(capfd, *words)
    assert found["missing"] == [{"name": "libnone.so", "requester": 0, "cause": "it is not found"}]
    assert found["libraries"][0]["needed"] == [{"name": "libnone.so", "number": None, "symbol_count": None}]
    assert "library-missing" in {note["slug"] for note in found["notes"]}
    assert "library-missing: libnone.so: program needs it: it is not found" in answer(capfd, *words)
    assert "libnone.so" in answer(capfd, *words, "--strict", code=4)


@pytest.mark.parametrize("verb", ["libraries"])
def test_the_schema_misses_every_member_that_is_left_out_and_refuses_any_other(
    capfd: Captured, root: str, verb: str
) -> None:
    result = asked(capfd, "--root", root, "/bin/program")
    assert verb in result
    for table in ("libraries", "findings"):
        for member in result[table][0]:
            less = result | {table: [{key: value for key, value in result[table][0].items() if key != member}]}
            assert not WRITTEN.is_valid(less), member
        assert not WRITTEN.is_valid(result | {table: [result[table][0] | {"other": 1}]})
    for member in result:
        assert not WRITTEN.is_valid({key: value for key, value in result.items() if key != member}), member


def test_the_call_gives_what_the_command_shows(capfd: Captured, root: str) -> None:
    found = footprint.libraries("/bin/program", root=root, page_bytes=PAGE)
    rows = asked(capfd, "--root", root, "--page-size", "4KiB", "/bin/program")["libraries"]
    graph = found.graph
    assert [one.path for one in graph.objects] == [row["path"] for row in rows]
    assert [one.startup_min_bytes for one in graph.predictions if one] == [row["floor_bytes"] for row in rows]
    assert [finding.subject for finding in found.findings] == ["libidle.so"]


# --- errors -----------------------------------------------------------------------------------------------------------


def refused(captured: Captured, *words: str) -> tuple[int, str]:
    code = main(["libraries", *words])
    out, error = captured.readouterr()
    assert out == ""
    assert error.startswith("footprint: ")
    assert error.count("\n") == 1
    return code, error


def test_a_file_that_is_not_there_or_is_no_program_is_one_line(capfd: Captured, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("exit 1\n")
    empty = tmp_path / "empty"
    empty.touch()
    compiled = tmp_path / "object.o"
    compiled.write_bytes(write(ElfFile(type=1, sections=[Section(".data", flags=RW, data=bytes(8))])))
    for path, cause in (
        (tmp_path / "none", "there is no such file, or it cannot be read"),
        (text, "not an ELF file: it does not start with 7f 45 4c 46"),
        (empty, ""),
        (compiled, "it is neither a program nor a shared library"),
        (tmp_path, "it is a directory"),
    ):
        code, error = refused(capfd, str(path))
        assert code == 3, error
        assert str(path) in error
        assert cause in error


def test_a_question_that_does_not_fit_is_wrong_use(capfd: Captured, root: str) -> None:
    code, error = refused(capfd, "--root", root, "--why", "libm.so.6", "/bin/program")
    assert (code, error) == (2, "footprint: libm.so.6 is none of the 6 objects of /bin/program\n")
    assert refused(capfd, "--root", root, str(os.getpid()))[0] == 2
    assert refused(capfd, "--root", root, "--why", "libused.so", "--json", "/bin/program")[0] == 2
    assert refused(capfd, "--page-size", "4KiB", str(os.getpid()))[0] == 2


@pytest.mark.parametrize("size", ["0KiB", "3KiB", "2KiB", "2MiB"])
def test_a_page_that_no_machine_has_is_wrong_use(capfd: Captured, root: str, size: str) -> None:
    code, error = refused(capfd, "--root", root, "--page-size", size, "/bin/program")
    assert code == 2
    assert "footprint: no machine has pages of " in error


# --- hostile names ----------------------------------------------------------------------------------------------------

HOSTILE = "lib\x1b[2J\x1b]0;title\x07\u202egnp.\u2028\x9b31m\x7f\r\udcff\udcfe.so"
SHOWN = r"lib\x1b[2J\x1b]0;title\x07\u202egnp.\u2028\x9b31m\x7f\x0d\xff\xfe.so"


@pytest.fixture
def hostile_root(tmp_path: Path) -> str:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/bin/program", made(None, HOSTILE, "libnone\x1b[1m.so"))
    system.file(f"/lib/{HOSTILE}", made(HOSTILE, offers="a"))
    return str(tmp_path)


@pytest.mark.parametrize("words", [[], ["-v"], ["--tree"], ["--why", HOSTILE], ["-q"], ["--color", "never", "-n", "9"]])
def test_hostile_names_come_out_escaped(capfd: Captured, hostile_root: str, words: list[str]) -> None:
    text = answer(capfd, "--root", hostile_root, *words, "/bin/program")
    assert all(character == "\n" or character.isprintable() for character in text)
    assert (SHOWN in "".join(text.split("\n"))) == (words != ["-q"])


def test_hostile_names_are_text_in_json(capfd: Captured, hostile_root: str) -> None:
    found = asked(capfd, "--root", hostile_root, "/bin/program")
    named = HOSTILE.replace("\udcff", r"\xff").replace("\udcfe", r"\xfe")
    assert found["libraries"][1]["soname"] == named
    assert found["libraries"][1]["path"] == f"/lib/{named}"
    assert found["missing"][0]["name"] == "libnone\x1b[1m.so"
    assert found["findings"][0]["subject"] == named


def test_a_hostile_library_that_is_none_of_them_is_escaped_in_the_error(capfd: Captured, root: str) -> None:
    code, error = refused(capfd, "--root", root, "--why", "\x1b[2J", "/bin/program")
    assert code == 2
    assert r"\x1b[2J is none of the 6 objects" in error


def test_a_command_leaves_the_roots_that_it_enters(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path / "root")
    system.loader()
    system.program("liba.so")
    (tmp_path / "file").write_text("outside")
    os.symlink("../file", tmp_path / "root/out")
    assert main(["libraries", "--root", str(tmp_path / "root"), "/bin/program"]) == 0
    # Below a root that is entered this link leads nowhere.
    assert stat_path(str(tmp_path / "root/out")).st_size == len("outside")
    capfd.readouterr()


def test_a_chain_of_300_libraries_that_nobody_uses_costs_some_lines_for_each_pair(
    capfd: Captured, tmp_path: Path
) -> None:
    count = 300
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/bin/program", made(None, "lib0.so"))
    for number in range(count):
        system.file(f"/lib/lib{number}.so", made(f"lib{number}.so", f"lib{(number + 1) % count}.so"))
    # What a first call imports and compiles is not counted.
    assert main(["libraries", "--json", "--root", str(tmp_path), "/lib/lib0.so"]) == 0
    # With each library all behind it leave.
    work = work_of(lambda: main(["libraries", "--json", "--root", str(tmp_path), "/bin/program"]))
    assert work.line_count < 10_000 * count + 10 * count * count
    capfd.readouterr()
    found = asked(capfd, "--root", str(tmp_path), "/bin/program")
    assert [(one["subject"], len(one["leaves"])) for one in found["findings"]] == [("lib0.so", count)]


# --- a live process ---------------------------------------------------------------------------------------------------


def test_a_static_program_is_called_so(capfd: Captured, tmp_path: Path) -> None:
    path = tmp_path / "static"
    path.write_bytes(write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(64))], type=ET_EXEC)))
    assert answer(capfd, str(path)).startswith(f"{path}: 1 object, statically linked; 0 B a process\n")


def test_why_a_library_is_missing_tells_who_needs_it_and_where_it_is_searched(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    system.program("liba.so", runpath="/d:/e")
    system.library("/d/liba.so", "libb.so", runpath="/own")
    system.library("/e/libb.so")
    assert main(["libraries", "--root", str(tmp_path), "--why", "libb.so", "/bin/program"]) == 0
    assert capfd.readouterr().out == (
        "/bin/program: why libb.so is missing\n"
        "  chain\n"
        "  program -> liba.so -> libb.so [missing]\n"
        "\n"
        "Where it is searched for liba.so\n"
        "  place\n"
        "  /own/\n"
        "  /etc/ld.so.cache\n"
        "  /lib/x86_64-linux-gnu/\n"
        "  /usr/lib/x86_64-linux-gnu/\n"
        "  /lib/\n"
        "  /usr/lib/\n"
        "\n"
        "liba.so needs libb.so: it is not found: the RUNPATH of program leads to\n"
        "/e/libb.so, but is searched only for what program itself needs; an RPATH is\n"
        "searched for what its libraries need, too.\n"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [("libusd.so", "; did you mean libused.so?"), ("use", "; did you mean libused.so?"), ("qqq", "")],
)
def test_a_library_that_is_none_of_them_may_be_one_of_a_near_name(
    capfd: Captured, root: str, name: str, hint: str
) -> None:
    code, error = refused(capfd, "--root", root, "--why", name, "/bin/program")
    assert (code, error) == (2, f"footprint: {name} is none of the 6 objects of /bin/program{hint}\n")


def test_many_missing_libraries_are_counted_in_one_note(capfd: Captured, tmp_path: Path) -> None:
    system = Sysroot(tmp_path)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    system.file("/bin/program", made(None, *(f"libnone{number}.so" for number in range(40))))
    found = asked(capfd, "--root", str(tmp_path), "/bin/program")
    assert len(found["missing"]) == 40
    subjects = [note["subject"] for note in found["notes"] if note["slug"] == "library-missing"]
    assert subjects == [*(f"libnone{number}.so" for number in range(9)), "31 more libraries"]


def test_a_tree_and_a_chain_exclude_each_other(capfd: Captured) -> None:
    assert main(["libraries", "/bin/ls", "--tree", "--why", "libc.so.6"]) == 2
    assert "choose one of --tree and --why" in capfd.readouterr().err


def test_a_process_that_is_not_there_is_one_line(capfd: Captured) -> None:
    code, error = refused(capfd, "4194303")
    assert code == 3
    assert "4194303" in error


# --- a library alone, and a runpath -----------------------------------------------------------------------------------


def test_what_a_program_of_go_takes_is_at_least_what_its_file_shows(capfd: Captured, tmp_path: Path) -> None:
    sections = [Section(".go.buildinfo", flags=RW, data=bytes(PAGE))]
    Sysroot(tmp_path).file("/bin/program", write(ElfFile(type=ET_EXEC, sections=sections)))
    assert main(["libraries", "/bin/program", "--root", str(tmp_path)]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "go-heap-unknown: the runtime of Go maps its own heap before main runs" in out
    assert "It takes at least " in out


def test_a_library_alone_is_taken_for_a_program(capfd: Captured, root: str) -> None:
    found = asked(capfd, "--root", root, "/lib/libused.so")
    assert [row["path"] for row in found["libraries"]][:2] == ["/lib/libused.so", "/lib/libdeep.so"]
    assert found["libraries"][0]["needed"][0]["symbol_count"] == 1
    assert [note["slug"] for note in found["notes"]] == ["no-program"]


def test_the_working_directory_is_where_a_name_without_a_slash_is_looked_for(
    capfd: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program").write_bytes(made(None, "libhere.so", asks="a"))
    image = write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], dynamic=[Dyn(DT_RUNPATH, "$ORIGIN")]))
    assert image
    (tmp_path / "libhere.so").write_bytes(made("libhere.so", offers="a"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = asked(capfd, "program")
    assert [row["found_by"] for row in found["libraries"]][:2] == ["program", "environment"]
