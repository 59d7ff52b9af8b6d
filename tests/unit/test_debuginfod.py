"""Debug files from servers: asked only where the user says so, and believed as little as files are."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from footprint.elf.contents import Contents
from footprint.elf.image import read_image
from footprint.elf.notes import DebugSearch
from footprint.errors import Note, UsageError
from footprint.sources import debuginfod
from footprint.sources.debug_files import DebugFiles
from tests.debugpairs import IDENTITY, NAMED_IN_ALL, NAMED_WHEN_STRIPPED, debug, stripped


class Server(ThreadingHTTPServer):
    """Answers every path with one thing, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.code, self.body, self.location, self.claimed_bytes = 200, debug(), "", -1
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(self.server.code)
        if self.server.location:
            self.send_header("Location", self.server.location)
        claimed_bytes = self.server.claimed_bytes
        self.send_header("Content-Length", str(len(self.server.body) if claimed_bytes < 0 else claimed_bytes))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as result:
        thread = threading.Thread(target=result.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("DEBUGINFOD_URLS", result.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield result
        result.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    return tmp_path / "cache"


def asked(*, uses_servers: bool = True, files: DebugFiles | None = None) -> tuple[Contents, list[Note]]:
    files = files or DebugFiles(DebugSearch(uses_servers=uses_servers))
    return files.contents_of(read_image(stripped(), "libdemo.so"), "/no/such/libdemo.so")


def named(contents: Contents) -> dict[str, int]:
    return {variable.name: variable.size_bytes for section in contents.sections for variable in section.variables}


def test_a_server_is_asked_by_build_id_and_what_it_sends_is_kept(server: Server, cache: Path) -> None:
    for _ in range(2):
        contents, notes = asked()
        assert (named(contents), notes) == (NAMED_IN_ALL, [])
        assert contents.debug_file == str(cache / IDENTITY / "debuginfo")
    assert server.asked == [f"/buildid/{IDENTITY}/debuginfo"]


def test_no_server_is_asked_unless_the_user_says_so(server: Server, cache: Path) -> None:
    contents, notes = asked(uses_servers=False)
    assert (named(contents), notes) == (NAMED_WHEN_STRIPPED, [])
    assert server.asked == []
    assert not cache.exists()


def test_what_no_server_knows_is_no_oddity(server: Server, cache: Path) -> None:
    server.code = 404
    contents, notes = asked()
    assert (named(contents), notes) == (NAMED_WHEN_STRIPPED, [])
    assert not list(cache.rglob("*debuginfo*"))


def test_the_next_server_is_asked_where_one_does_not_know(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as second:
        second.code = 404
        thread = threading.Thread(target=second.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("DEBUGINFOD_URLS", f"ima:enforcing {second.url}/ {server.url}/")
        contents, notes = asked()
        second.shutdown()
        thread.join()
    assert (named(contents), notes, len(second.asked), len(server.asked)) == (NAMED_IN_ALL, [], 1, 1)


def test_a_server_that_fails_is_noted_and_not_asked_again(server: Server) -> None:
    server.code = 500
    files = DebugFiles(DebugSearch(uses_servers=True))
    _, (note,) = asked(files=files)
    assert note == Note("debuginfod-failed", server.url, "it answers 500; it was not asked again")
    assert asked(files=files)[1] == []
    assert len(server.asked) == 1


def test_a_server_that_is_not_there_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    _, (note,) = asked()
    assert (note.slug, note.subject) == ("debuginfod-failed", "http://127.0.0.1:1")
    assert "refused" in note.detail


@pytest.mark.parametrize("body", [b"<html>Sign in first</html>", debug()[:50]], ids=["no ELF file", "cut"])
def test_what_is_no_debug_file_is_not_kept(server: Server, cache: Path, body: bytes) -> None:
    server.body = body
    contents, _ = asked()
    assert named(contents) == NAMED_WHEN_STRIPPED
    assert not list(cache.rglob("*debuginfo*"))


def test_the_debug_file_of_another_is_noted_and_not_kept(server: Server, cache: Path) -> None:
    server.body = debug(build_id=b"\x01\x23")
    contents, (note,) = asked()
    assert (named(contents), note.slug) == (NAMED_WHEN_STRIPPED, "debug-file-differs")
    assert not list(cache.rglob("*debuginfo*"))


def test_what_is_cut_on_its_way_is_noted_and_not_kept(server: Server, cache: Path) -> None:
    server.claimed_bytes = len(server.body) + 1
    contents, (note,) = asked()
    assert (named(contents), note.slug) == (NAMED_WHEN_STRIPPED, "debuginfod-failed")
    assert not list(cache.rglob("*debuginfo*"))


def test_what_is_too_much_is_not_kept(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debuginfod, "_MOST_DOWNLOAD_BYTES", len(server.body) - 1)
    _, (note,) = asked()
    assert "sends more than" in note.detail
    assert not list(cache.rglob("*debuginfo*"))


def test_what_takes_too_long_is_not_kept(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debuginfod, "_MOST_SECONDS", -1)
    _, (note,) = asked()
    assert "takes longer than" in note.detail
    assert server.asked
    assert not list(cache.rglob("*debuginfo*"))


def test_a_server_cannot_lead_to_a_file_of_this_machine(server: Server, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "secret").write_bytes(debug())
    server.code, server.location = 302, f"file://{tmp_path}/secret"
    _, (note,) = asked()
    assert note.slug == "debuginfod-failed"
    assert not list(cache.rglob("*debuginfo*"))


@pytest.mark.parametrize("urls", ["", "   ", "file:///srv ftp://host ima:enforcing"])
def test_servers_are_to_be_named(monkeypatch: pytest.MonkeyPatch, urls: str) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", urls)
    with pytest.raises(UsageError, match="DEBUGINFOD_URLS"):
        DebugFiles(DebugSearch(uses_servers=True))
