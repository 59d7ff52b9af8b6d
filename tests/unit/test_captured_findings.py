"""Findings in a capture: a fleet of captures answers what can be saved, without a scan of the programs."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.cli import main
from footprint.errors import InputError
from footprint.json.codec import encode
from footprint.model.finding import Confidence, Finding
from footprint.process.capture import read_capture, read_findings_of_capture
from tests.fleets import scan_in_one_process
from tests.property.test_capture_damage import sound

UNUSED = Finding("unused-library", "unused", "libz.so.1", "nothing uses it", 28 << 10, Confidence.HIGH, (), "drop it")
COPIES = Finding("duplicate-static", "header", "table", "2 copies", 4 << 10, Confidence.PROOF, (), "define it once")


def with_findings(findings: object) -> bytes:
    """Return a sound capture whose processes were searched."""
    written = io.BytesIO(sound())
    with zipfile.ZipFile(written, "a") as archive:
        archive.writestr("findings.json", findings if isinstance(findings, bytes) else json.dumps(findings))
    return written.getvalue()


def group(*findings: Finding) -> list[dict[str, Any]]:
    pids = [snapshot.pid for snapshot in read_capture(sound(), "a.capture")]
    return [{"pids": pids, "findings": [encode(finding) for finding in findings]}]


def save(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_what_was_found_is_read_for_each_process() -> None:
    pids = [snapshot.pid for snapshot in read_capture(sound(), "a.capture")]
    assert read_findings_of_capture(with_findings(group(UNUSED, COPIES)), "a.capture") == dict.fromkeys(
        pids, (UNUSED, COPIES)
    )
    assert read_findings_of_capture(sound(), "a.capture") == {}


def test_captures_alone_say_what_a_fleet_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan_in_one_process(monkeypatch)
    for host in ("a", "b"):
        save(tmp_path / "captures" / host / "x.capture", with_findings(group(UNUSED, COPIES)))
    footprint.scan(tmp_path / "captures" / "a", output=tmp_path / "fleet", host="a", worker_count=1)
    footprint.scan(tmp_path / "captures" / "b", output=tmp_path / "fleet", host="b", worker_count=1)
    for question, finding in (("unused", UNUSED), ("duplicates", COPIES)):
        answer = footprint.fleet(tmp_path / "fleet", question)
        (row,) = [dict(zip(answer.result.columns, row, strict=True)) for row in answer.result.rows]
        answered = [row[name] for name in ("subject", "saving_bytes", "process_count", "host_count")]
        assert answered == [finding.subject, 2 * finding.saving_bytes, 2, 2]
        assert answer.notes == ()


def test_a_process_in_which_nothing_was_found_counts_as_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan_in_one_process(monkeypatch)
    source = save(tmp_path / "captures" / "x.capture", with_findings(group()))
    footprint.scan(source, output=tmp_path / "fleet", worker_count=1)
    answer = footprint.fleet(tmp_path / "fleet", "savings")
    assert (answer.result.rows, answer.notes) == ((), ())
    bare = save(tmp_path / "captures" / "y.capture", sound())
    footprint.scan(bare, output=tmp_path / "bare", worker_count=1)
    assert [note.slug for note in footprint.fleet(tmp_path / "bare", "savings").notes] == ["fleet-findings-unknown"]


@pytest.mark.parametrize(
    "findings",
    [
        b"{",
        b"[1]",
        {"pids": []},
        [{"pids": ["1"], "findings": []}],
        [{"pids": [1], "findings": [{"rule": "x"}]}],
        [{"pids": [1], "findings": [{**dict(encode(UNUSED)), "saving_bytes": "many"}]}],
    ],
)
def test_damaged_findings_are_an_error(findings: object) -> None:
    with pytest.raises(InputError, match="findings"):
        read_findings_of_capture(with_findings(findings), "a.capture")


def test_a_script_searches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--script", "--findings"]) == 2
    assert "captures nothing now" in capsys.readouterr().err
