"""Limits of growth between runs with several starts, of a small program that is built here."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from footprint.cli import main

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")


def test_growth_beyond_the_spread_of_the_starts_fails_and_chance_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "static char table[300000]; int main(int c, char **v) { for (int i = 0; c > 1 && i < 300000; i++) "
    Path("agentd.c").write_text(source + "((volatile char *)table)[i] = 1; return 0; }")
    subprocess.run(["gcc", "-o", "agentd", "agentd.c"], check=True)
    Path("footprint.toml").write_text(
        'baseline = "base.json"\n[budgets]\nper_process_bytes = { max_increase = "5 % or 100 KiB" }\n'
        'peak_bytes = "64 MiB"\n'
    )
    for name, words in (("base", []), ("same", []), ("grown", ["x"])):
        assert main(["run", "--starts", "5", "-o", f"{name}.json", "--", "./agentd", *words]) == 0
    capsys.readouterr()
    assert main(["check", "same.json", "--config", "footprint.toml"]) == 0
    capsys.readouterr()
    assert main(["check", "grown.json", "--config", "footprint.toml", "--json"]) == 1
    (failed, _) = json.loads(capsys.readouterr().out)["budgets"]
    assert (failed["key"], failed["is_noise"]) == ("per_process_bytes", False)
    assert failed["remark"] == "beyond the spread of the starts, with 99.6 % confidence"
    assert failed["contributors"][0]["name"] == "table (agentd)"
