"""Texts that were cut or changed: what is left of them is audited, and no input ends in a traceback."""

import json
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.errors import InputError, UnbalancedError

DAMAGED = Path(__file__).resolve().parents[1] / "cases" / "damaged"


def test_of_a_text_cut_within_a_mapping_the_shared_bytes_before_the_cut_are_in_the_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The first mapping has 4 KiB of a file (Rss 4 kB, Anonymous 0), the second ends before its counters.
    code = main(["audit", str(DAMAGED / "rows-do-not-add-up.smaps"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert answer["totals"]["shared_once_bytes"] == 4096
    assert [(row["bytes"], row["mapped_bytes"], row["shared_bytes"]) for row in answer["ledger"]] == [
        (None, 8192, None),
        (0, 4096, 4096),
    ]


def test_a_capture_with_changed_addresses_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["audit", str(DAMAGED / "rows-do-not-add-up.capture"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert sum(row["shared_bytes"] or 0 for row in answer["ledger"]) == answer["totals"]["shared_once_bytes"] == 1736704


def test_rows_that_do_not_add_up_are_one_error_of_their_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint.attribution.process_audit.ledger_rows", lambda *_, **__: ())
    text = str(DAMAGED / "rows-do-not-add-up.smaps")
    assert main(["audit", text, "--json"]) == 3
    assert capsys.readouterr().err == f"footprint: {text}: the rows hold 0 mapped bytes, the total is 12288\n"
    assert issubclass(UnbalancedError, InputError)
