"""Saved texts as people save them: compressed, or through a terminal that ends lines with CR LF."""

import bz2
import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

import footprint
from footprint.errors import InputError, LimitError
from footprint.system import decompression
from footprint.system.limits import Limits, limited

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
SMAPS = (CORPUS / "smaps-sleep.txt").read_bytes()
PMAP = (CORPUS / "pmap-4.0.2-x-sleep.txt").read_bytes()


def private_bytes(text: bytes, path: Path) -> int | None:
    path.write_bytes(text)
    return footprint.audit(path).totals.private.bytes


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_text_is_read_as_the_text(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    expected = private_bytes(SMAPS, tmp_path / "smaps")
    assert expected
    assert private_bytes(compress(SMAPS), tmp_path / "smaps.packed") == expected


def test_a_text_compressed_with_zstd_is_read_as_the_text(tmp_path: Path) -> None:
    packed = decompression.zstd_module().compress(SMAPS)
    assert private_bytes(packed, tmp_path / "smaps.zst") == private_bytes(SMAPS, tmp_path / "smaps")


@pytest.mark.parametrize("text", [SMAPS, PMAP], ids=["smaps", "pmap -x"])
def test_the_line_ends_of_a_terminal_change_no_figure(text: bytes, tmp_path: Path) -> None:
    plain, terminal = tmp_path / "plain", tmp_path / "terminal"
    plain.write_bytes(text)
    terminal.write_bytes(text.replace(b"\n", b"\r\n"))
    assert footprint.audit(terminal).totals == footprint.audit(plain).totals
    assert [one.owner for one in footprint.audit(terminal).ledger] == [
        one.owner for one in footprint.audit(plain).ledger
    ]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_text_that_was_cut_is_refused(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the compressed data is damaged"):
        private_bytes(compress(SMAPS)[:-40], tmp_path / "cut")


@pytest.mark.parametrize("options", [{}, {"checksum_flag": 1}, {"content_size_flag": 0}])
@pytest.mark.parametrize("cut_bytes", [1, 3, 40, 1000])
def test_a_text_of_zstd_that_was_cut_is_refused(options: dict[str, int], cut_bytes: int, tmp_path: Path) -> None:
    zstd = decompression.zstd_module()
    parameters = {zstd.CompressionParameter[name]: value for name, value in options.items()}
    # Random names: several blocks, of which a reader returns the first ones. The file ends after a small frame.
    lines = [f"{sha256(bytes([at % 251, at >> 8])).hexdigest()}\n".encode() for at in range(5000)]
    packed = b"".join(zstd.compress(one, options=parameters) for one in (SMAPS + b"".join(lines), SMAPS))
    path = tmp_path / "text.zst"
    path.write_bytes(packed)
    assert b"".join(decompression.pieces_of(packed, "x")) == SMAPS + b"".join(lines) + SMAPS
    with pytest.raises(InputError, match="the compressed data is damaged: it is cut"):
        private_bytes(packed[:-cut_bytes], path)


def test_each_stream_of_xz_is_read() -> None:
    packed = lzma.compress(SMAPS)
    for padding in (b"", bytes(4)):
        assert b"".join(decompression.pieces_of(packed + padding + packed + padding, "x")) == SMAPS + SMAPS
    with pytest.raises(InputError, match="the compressed data is damaged"):
        b"".join(decompression.pieces_of(packed + b"no stream", "x"))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_text_that_decompresses_to_more_than_any_text_is_refused(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    with (
        limited(Limits(size_bytes=1 << 20)),
        pytest.raises(LimitError, match=r"spent 1.25 MiB of 1 MiB for .* of comp"),
    ):
        private_bytes(compress(bytes(2 << 20)), tmp_path / "bomb")


def test_a_saved_audit_may_be_compressed(tmp_path: Path) -> None:
    saved = tmp_path / "audit.json"
    (tmp_path / "smaps").write_bytes(SMAPS)
    command = [sys.executable, "-m", "footprint", "audit", str(tmp_path / "smaps"), "-o", str(saved), "--json"]
    subprocess.run(command, check=True)
    packed = tmp_path / "audit.json.gz"
    packed.write_bytes(gzip.compress(saved.read_bytes()))
    assert footprint.audit(packed).totals == footprint.audit(saved).totals
