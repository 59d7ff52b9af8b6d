"""Names of D come out readable where c++filt is installed."""

import shutil
from pathlib import Path

import pytest

import footprint
from footprint.elf.names import shown_name
from tests.elfwriter import RW, At, ElfFile, Section, Sym, write

NAMES = ["_D3app5cachei", "_D3app5tablei"]


@pytest.fixture(autouse=True)
def nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.names._learned", {})


def test_symbols_shows_names_of_d_where_a_tool_reads_them(tmp_path: Path) -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    file = ElfFile(
        sections=[Section(".data", flags=RW, data=bytes(64))],
        symbols=[Sym(NAMES[0], At(".data"), 8), Sym("_D3std5stdio12__ModuleInfoZ", At(".data", 8), 8)],
    )
    (tmp_path / "libdemo.so").write_bytes(write(file))
    (contents,) = footprint.symbols(str(tmp_path / "libdemo.so")).files
    shown = [shown_name(variable.name) for section in contents.sections for variable in section.variables]
    assert shown == ["app.cache", "ModuleInfo for std.stdio"]


def test_findings_on_variables_of_d_have_the_names_that_a_tool_reads(tmp_path: Path) -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    file = ElfFile(
        sections=[Section(".data", flags=RW, data=b"\1" * 4096)],
        symbols=[Sym(NAMES[0], At(".data"), 4096)],
    )
    (tmp_path / "libdemo.so").write_bytes(write(file))
    (finding,) = footprint.duplicates(str(tmp_path / "libdemo.so")).findings
    assert finding.subject == "app.cache"
