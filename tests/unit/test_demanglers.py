"""Tools for names of D and Swift: run for such names only, one of them for all names, and never trusted."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from footprint.elf.names import Language, shown_name
from footprint.sources import demanglers
from footprint.sources.demanglers import learn_foreign_names
from tests.liveprocesses import wait_until

NAMES = ["_D3app5cachei", "_D3app5tablei"]
# A tool that needs no program but the shell.
SHORTEN = 'while read -r name; do echo "app.${name#_D3app5}"; done'


@pytest.fixture(autouse=True)
def nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.names._learned", {})


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a tool of our own, which the names of D are read by."""
    monkeypatch.setitem(demanglers.TOOLS, Language.D, (str(tmp_path / "tool"), "--flag"))
    return tmp_path / "tool"


def shown_by(tool: Path, script: str, *names: str) -> list[str]:
    """Return what is shown of names where the tool is this script of the shell."""
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    learn_foreign_names(names or NAMES)
    return [shown_name(name) for name in names or NAMES]


def test_all_names_go_to_the_tool_at_once(tool: Path) -> None:
    log = tool.parent / "log"
    assert shown_by(tool, f'echo "$@" >> {log}; {SHORTEN}') == ["app.cachei", "app.tablei"]
    learn_foreign_names(NAMES)
    assert log.read_text() == "--flag\n"


def test_no_tool_is_run_where_no_name_needs_it(tool: Path) -> None:
    names = ["counter", "_ZN3app5cacheE", "_RNvC1a1b", "_DYNAMIC", "$d"]
    shown_by(tool, f"touch {tool.parent}/was_run; cat", *names)
    assert not (tool.parent / "was_run").exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo one line",
        "cat; echo one more",
        "cat; exit 1",
        "kill -9 $$",
        "exit 0",
        "exec sleep 60",
        "yes",
        "exec tail -c +1 /dev/zero",
        r"while read -r name; do printf '%s\377\n' $name; done; kill -11 $$",
    ],
)
def test_a_tool_that_fails_changes_nothing(tool: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(demanglers, "_MOST_SECONDS", 1)
    monkeypatch.setattr(demanglers, "_MOST_SHOWN_BYTES", 1 << 20)
    assert shown_by(tool, script) == NAMES


def test_what_a_tool_started_ends_with_it_and_writes_as_little(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demanglers, "_MOST_SECONDS", 1)
    monkeypatch.setattr(demanglers, "_MOST_SHOWN_BYTES", 1 << 20)
    wrote = tool.parent / "wrote"
    assert shown_by(tool, f"yes {wrote} > {wrote} & sleep 3600.{os.getpid()} & exec sleep 60") == NAMES
    assert wrote.stat().st_size <= 1 << 20

    def is_there() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if f"3600.{os.getpid()}".encode() in path.read_bytes():
                    return True
        return False

    wait_until(lambda: not is_there(), "what the tool started to end")


def test_what_cannot_be_run_changes_nothing(tool: Path) -> None:
    tool.write_bytes(b"\x7fELF, but no program")
    tool.chmod(0o755)
    learn_foreign_names(NAMES)
    assert [shown_name(name) for name in NAMES] == NAMES


def test_a_tool_gets_only_so_many_names(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demanglers, "_MOST_NAMES_BYTES", len(NAMES[0]) + 1)
    assert shown_by(tool, SHORTEN) == ["app.cachei", NAMES[1]]
