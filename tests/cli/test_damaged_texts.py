"""Inputs that were cut or changed: what is left of them is audited, and no input ends in a traceback."""

import json
import shutil
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.errors import InputError, UnbalancedError

DAMAGED = Path(__file__).resolve().parents[1] / "cases" / "damaged"
CORPUS = Path(__file__).resolve().parents[1] / "corpus"


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


@pytest.mark.parametrize("text", ["smaps-sleep.txt", "smaps_rollup-python3.txt"])
def test_a_text_that_is_cut_after_any_line_is_audited_or_refused(text: str, tmp_path: Path) -> None:
    lines = (CORPUS / text).read_bytes().splitlines(keepends=True)
    # Four mappings have a line of each kind.
    cuts = [b"".join(lines[:count]) for count in range(1, min(len(lines), 100))]
    cuts.append(b"".join([line for line in lines if b" 0 kB" not in line]))
    path = tmp_path / "smaps"
    for cut in cuts:
        path.write_bytes(cut)
        codes = {
            main([*words, str(path)])
            for words in (["audit"], ["audit", "--color", "always"], ["audit", "--by", "mapping"])
        }
        assert codes in ({0}, {0, 3}, {3})


@pytest.mark.parametrize("counters", ["", "Rss: 1068 kB\n", "Rss: 1068 kB\nPss:"])
@pytest.mark.parametrize("verb", ["audit", "audit -n 2", "check", "diff"])
def test_sums_without_private_memory_are_refused_where_a_cost_is_asked_for(
    verb: str, counters: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("footprint.toml").write_text('[budgets]\nprivate_bytes = { max = "1 MiB" }\n', "utf-8")
    Path("sums").write_text(f"00400000-7ffebd131000 ---p 00000000 00:00 0        [rollup]\n{counters}", "ascii")
    more = {"diff": ["sums"]}.get(verb, [])
    assert main([*verb.split(), "sums", *more]) == 3
    assert capsys.readouterr().err == "footprint: sums: it has no counter that says what the process costs\n"


def test_a_library_whose_segments_do_not_ascend_is_left_out_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("audit", "libraries"):
        assert main([verb, "--root", str(DAMAGED / "root"), "/usr/bin/p", "--json"]) == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert {
            "slug": "file-unreadable",
            "subject": "/opt/l/libb.so.1",
            "detail": "its loadable segments overlap, or their addresses do not ascend: its cost is not known",
        } in notes


def test_a_program_whose_segments_do_not_ascend_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shutil.copy(DAMAGED / "root" / "opt" / "l" / "libb.so.1", tmp_path / "libb.so.1")
    assert main(["audit", str(path)]) == 3
    assert capsys.readouterr().err.startswith(f"footprint: {path}: its loadable segments overlap, or their addresses")


@pytest.mark.parametrize("file", sorted(path.name for path in DAMAGED.iterdir() if path.is_file()))
@pytest.mark.parametrize(
    "words",
    [
        "audit",
        "audit --findings",
        "audit --json",
        "audit --html -",
        "capture",
        "check",
        "diff {0}",
        "duplicates",
        "heap",
        "heap --binary {0}",
        "libraries",
        "libraries --tree",
        "audit --by mapping",
        "audit -n 2",
        "trend --add --version 1 --history history",
        "symbols",
        "symbols --source",
        "symbols --map {0}",
        "trend --history",
    ],
)
def test_no_damaged_input_ends_a_verb_without_an_answer_or_an_error(
    words: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("footprint.toml").write_text('[budgets]\nprivate_bytes = { max = "1 GiB" }\n', "utf-8")
    damaged = str(DAMAGED / file)
    assert main([*words.format(damaged).split(), damaged]) in {0, 2, 3}
