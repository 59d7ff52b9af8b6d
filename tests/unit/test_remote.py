"""Object stores: a dataset and captures in a bucket of a small S3 server on loopback."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

import footprint
from footprint.errors import AccessError, InputError, LimitError, UsageError
from footprint.store.remote import fetch, put, upload
from footprint.store.tables import TABLES
from footprint.system.limits import Limits, limited
from footprint.verbs.fleet.call import prune_dataset
from tests.fleets import BUILD_IDS, capture_of, scan_in_one_process, write
from tests.liveprocesses import resting

ROOT = Path(__file__).resolve().parents[2]
SMAPS = (ROOT / "tests" / "corpus" / "smaps-sleep.txt").read_bytes()
UNUSED = ROOT / "sample_binaries" / "unused_library"


class Bucket(BaseHTTPRequestHandler):
    """What of S3 a store needs: list, get, put (also if absent) and delete; the objects are those of the class."""

    objects: dict[str, tuple[bytes, float]] = {}  # noqa: RUF012 # one bucket a test
    puts: list[str] = []  # noqa: RUF012 # the same
    refused = ""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/bucket").lstrip("/")

    def do_GET(self) -> None:  # as http.server calls it
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            prefix = query.get("prefix", [""])[0]
            form = "%Y-%m-%dT%H:%M:%S.000Z"
            rows = "".join(
                f'<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size><ETag>"{blake2b(data).hexdigest()}"</ETag>'
                f"<LastModified>{time.strftime(form, time.gmtime(moment))}</LastModified></Contents>"
                for key, (data, moment) in sorted(self.objects.items())
                if key.startswith(prefix)
            )
            text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
            return self._answer(200, text.encode(), Content_Type="application/xml")
        found = self.objects.get(self._key())
        if found is None:
            return self._answer(404)
        data, moment = found
        tag = blake2b(data).hexdigest()
        return self._answer(200, data, ETag=f'"{tag}"', Last_Modified=formatdate(moment, usegmt=True))

    do_HEAD = do_GET  # noqa: N815 # the same

    def do_PUT(self) -> None:  # the same
        data, key = self.rfile.read(int(self.headers["Content-Length"])), self._key()
        if self.refused and self.refused in key:
            return self._answer(403)
        if self.headers.get("If-None-Match") == "*" and key in self.objects:
            return self._answer(412)
        self.objects[key] = data, time.time()
        self.puts.append(key)
        return self._answer(200, ETag=f'"{blake2b(data).hexdigest()}"')

    def do_DELETE(self) -> None:  # the same
        self.objects.pop(self._key(), None)
        self._answer(204)

    def do_POST(self) -> None:  # the same: several are deleted at once
        keys = re.findall("<Key>([^<]*)</Key>", self.rfile.read(int(self.headers["Content-Length"])).decode())
        for key in keys:
            self.objects.pop(key, None)
        rows = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{rows}</DeleteResult>".encode(), Content_Type="application/xml")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Bucket]]:
    handler = type("OneBucket", (Bucket,), {"objects": {}, "puts": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {"ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "REGION": "us-east-1"}
    for name, value in {**settings, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    scan_in_one_process(monkeypatch)


here = pytest.mark.usefixtures("one_process")


def rows(dataset: str, question: str) -> list[dict[str, Any]]:
    answer = footprint.fleet(dataset, question).result
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


@here
def test_a_dataset_in_a_store_is_that_of_a_folder(bucket: type[Bucket], tmp_path: Path) -> None:
    for host in ("a", "b", "c"):
        path = tmp_path / "in" / host / "1.smaps"
        path.parent.mkdir(parents=True)
        path.write_bytes(SMAPS)
    address = "s3://bucket/fleets/one"
    assert footprint.scan(tmp_path / "in", UNUSED, output=address, worker_count=1).folder == address
    # The file of inputs, which makes a part whole, comes last.
    last = [at for at, key in enumerate(bucket.puts) if "/inputs/" in key]
    assert last
    assert all("/inputs/" in key or key.endswith("scan.lock") for key in bucket.puts[last[0] :])
    assert "fleets/one/scan.lock" not in bucket.objects
    footprint.scan(tmp_path / "in", UNUSED, output=tmp_path / "fleet", worker_count=1)
    assert rows(address, "owners") == rows(str(tmp_path / "fleet"), "owners") != []
    # Another machine, without the copy, has the same, and reads nothing twice.
    shutil.rmtree(tmp_path / "cache")
    put_count = len(bucket.puts)
    again = footprint.scan(tmp_path / "in", UNUSED, output=address, worker_count=1)
    assert (again.input_count, [key for key in bucket.puts[put_count:] if "lock" not in key]) == (0, [])
    assert "of 0 inputs" in prune_dataset(address, "prune", "0d")
    assert footprint.fleet(address, "owners").process_count == 3


def test_captures_go_to_a_store_and_are_scanned_from_there(bucket: type[Bucket], tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        footprint.capture(resting(child.pid), output="s3://bucket/captures/web/1.capture")
        child.kill()
    assert list(bucket.objects) == ["captures/web/1.capture"]
    bucket.objects["captures/web/2.capture"] = b"PK", 1e9
    done = footprint.scan("s3://bucket/captures", output="s3://bucket/fleet", worker_count=1)
    assert (done.process_count, done.unreadable_count) == (1, 1)
    # The copy in the cache is nobody's business.
    assert "s3://bucket/captures/web/2.capture" in [note.subject for note in done.notes]
    assert str(tmp_path) not in str(done)
    told = footprint.fleet("s3://bucket/fleet", query="SELECT input, subject, detail FROM notes").result.rows
    assert ("s3://bucket/captures/web/2.capture",) * 2 in [note[:2] for note in told]
    inputs = footprint.fleet(
        "s3://bucket/fleet", query="SELECT input FROM inputs WHERE kind = 'record' ORDER BY 1"
    ).result.rows
    assert inputs == tuple([(f"s3://bucket/captures/web/{number}.capture",) for number in (1, 2)])
    each = " UNION ALL ".join(f'SELECT kept::VARCHAR FROM "{name}" AS kept' for name in TABLES)
    tables = footprint.fleet("s3://bucket/fleet", query=each).result.rows
    assert "s3://bucket/captures/web/1.capture" in str(tables)
    assert str(tmp_path) not in str(tables)
    answer = footprint.fleet("s3://bucket/fleet", "programs")
    assert answer.dataset == "s3://bucket/fleet"
    assert str(tmp_path) not in str(answer)


@here
def test_errors_about_a_dataset_in_a_store_name_its_address(bucket: type[Bucket], tmp_path: Path) -> None:
    address = "s3://bucket/fleet"
    footprint.scan(write(tmp_path / "1.smaps", SMAPS), output=address, worker_count=1)
    (name,) = [key for key in bucket.objects if "/owners/" in key]
    bucket.objects[name] = b"PAR1", 2e9
    causes = []
    for ask in (footprint.fleet, lambda folder, _: prune_dataset(folder, "prune", "1d")):
        with pytest.raises(InputError, match=rf"s3://bucket/{name}' too small") as caught:
            ask(address, "owners")
        causes.append(f"{caught.value} {caught.value.file} {caught.value.detail}")
    assert str(tmp_path) not in str(causes)


@here
def test_a_root_file_system_in_a_store_is_a_host_of_the_name_that_it_has_there(
    bucket: type[Bucket], tmp_path: Path
) -> None:
    bucket.objects["roots/web-1/usr/lib/libfreebl_like.so"] = (UNUSED / "libfreebl_like.so").read_bytes(), 1e9
    footprint.scan("s3://bucket/roots/web-1/", output=tmp_path / "fleet", worker_count=1)
    inputs = footprint.fleet(tmp_path / "fleet", query="SELECT host, input FROM inputs").result.rows
    assert inputs == (("web-1", "/usr/lib/libfreebl_like.so"),)


def test_a_store_that_another_scan_writes_to_or_that_is_not_there_is_an_error(
    bucket: type[Bucket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.smaps").write_bytes(SMAPS)
    bucket.objects["fleet/scan.lock"] = b"other", 1e9
    with pytest.raises(AccessError, match=r"another scan writes to it; if that was killed, delete"):
        footprint.scan(tmp_path / "1.smaps", output="s3://bucket/fleet")
    with pytest.raises(AccessError, match=r"\As3://bucket/nothing: it is no dataset"):
        footprint.fleet("s3://bucket/nothing")
    with pytest.raises(AccessError, match=r"\As3://bucket/nothing: there is nothing below it: name the folder"):
        footprint.scan("s3://bucket/nothing", output=tmp_path / "fleet")
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(UsageError, match=r"pip install 'footprint-audit\[stores\]'"):
        footprint.fleet("s3://bucket/fleet")


def test_a_question_leaves_alone_what_a_scan_is_about_to_upload(bucket: type[Bucket]) -> None:
    address = "s3://bucket/fleet"
    written = Path(fetch(address, is_written=True))
    (written / "inputs").mkdir()
    (written / "inputs" / "new.parquet").write_bytes(b"new")
    fetch(address)
    upload(address, str(written))
    assert bucket.objects["fleet/inputs/new.parquet"][0] == b"new"


@here
def test_a_library_that_three_hosts_hold_for_nothing_is_found_through_a_store(
    bucket: type[Bucket], tmp_path: Path
) -> None:
    for host in ("a", "b", "c"):
        path = capture_of(tmp_path / f"{host}.capture", BUILD_IDS)
        put(f"s3://bucket/captures/{host}/1.capture", path.read_bytes())
    footprint.scan("s3://bucket/captures", output="s3://bucket/fleet", worker_count=1)
    footprint.scan(UNUSED, host="image", output="s3://bucket/fleet", worker_count=1)
    shutil.rmtree(tmp_path / "cache")
    (row,) = rows("s3://bucket/fleet", "unused")
    # As the README of the sample derives: 3 pages of the library and 2 of what only it needs, in each of 3 processes.
    assert (row["subject"], row["saving_bytes"]) == ("libcrypt_like.so", 3 * (20 << 10))
    assert (row["process_count"], row["host_count"]) == (3, 3)
    assert bucket.objects.keys() >= {f"captures/{host}/1.capture" for host in "abc"}


@here
def test_a_scan_that_ends_in_the_middle_of_its_upload_shows_no_half_and_is_done_again(
    bucket: type[Bucket], tmp_path: Path
) -> None:
    for host in ("a", "b"):
        write(tmp_path / "in" / host / "1.smaps", SMAPS)
    address = "s3://bucket/fleet"
    footprint.scan(tmp_path / "in" / "a", host="a", output=address, worker_count=1)
    bucket.refused = "/inputs/"
    with pytest.raises(AccessError, match=r"the store cannot be used: .*403"):
        footprint.scan(tmp_path / "in" / "b", host="b", output=address, worker_count=1)
    assert len([key for key in bucket.objects if "/processes/" in key]) == 2
    assert footprint.fleet(address, "programs").process_count == 1
    bucket.refused = ""
    # One that was killed leaves its lock.
    bucket.objects["fleet/scan.lock"] = b"other", 1e9
    with pytest.raises(AccessError, match=r"delete the object scan\.lock there"):
        footprint.scan(tmp_path / "in" / "b", host="b", output=address, worker_count=1)
    del bucket.objects["fleet/scan.lock"]
    assert footprint.scan(tmp_path / "in" / "b", host="b", output=address, worker_count=1).input_count == 1
    assert footprint.fleet(address, "programs").process_count == 2
    assert len([key for key in bucket.objects if "/processes/" in key]) == 2


def test_of_two_scans_of_a_store_at_once_one_is_refused_and_the_other_is_whole(
    bucket: type[Bucket], tmp_path: Path
) -> None:
    for host in ("a", "b"):
        write(tmp_path / host / "1.smaps", SMAPS)
    begun = threading.Barrier(2)

    def scan(host: str) -> str:
        begun.wait()
        try:
            footprint.scan(tmp_path / host, host=host, output="s3://bucket/fleet", worker_count=1)
        except AccessError as error:
            return str(error)
        return "done"

    with ThreadPoolExecutor(2) as pool:
        outcomes = set(pool.map(scan, ("a", "b")))
    refusals = outcomes - {"done"}
    assert "done" in outcomes
    assert "fleet/scan.lock" not in bucket.objects
    assert all("another scan writes to it" in refusal for refusal in refusals)
    assert footprint.fleet("s3://bucket/fleet", "programs").process_count == 2 - len(refusals)


@here
def test_pruned_days_leave_a_store(bucket: type[Bucket], tmp_path: Path) -> None:
    for host, seconds in (("a", 1_763_900_000), ("b", 1_763_900_000 - 100 * 86_400)):
        os.utime(write(tmp_path / "in" / host / "1.smaps", SMAPS), (seconds, seconds))
        footprint.scan(tmp_path / "in", output="s3://bucket/fleet", worker_count=1)
    assert "of 1 input" in prune_dataset("s3://bucket/fleet", "prune", "90d")
    days = {key.split("/")[2] for key in bucket.objects if "/processes/" in key}
    assert days == {"day=2025-11-23"}
    shutil.rmtree(tmp_path / "cache")
    assert footprint.scan(tmp_path / "in", output="s3://bucket/fleet", worker_count=1).input_count == 0


class Google(Bucket):
    """The same as Google has it: another header for what must not be there yet."""

    def do_PUT(self) -> None:  # as http.server calls it
        self.headers["If-None-Match"] = "*" if self.headers["x-goog-if-generation-match"] == "0" else ""
        super().do_PUT()


class Azure(Bucket):
    """The same as Azure has it: another list, and an account before the container."""

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/devstoreaccount1/bucket").lstrip("/")

    def do_GET(self) -> None:  # as http.server calls it
        query = parse_qs(urlsplit(self.path).query)
        if query.get("comp") != ["list"]:
            return super().do_GET()
        rows = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Etag>e</Etag><Content-Type>a/b</Content-Type>"
            f"<Last-Modified>{formatdate(moment, usegmt=True)}</Last-Modified>"
            f"<Content-Length>{len(data)}</Content-Length></Properties></Blob>"
            for key, (data, moment) in sorted(self.objects.items())
            if key.startswith(query.get("prefix", [""])[0])
        )
        text = f"<EnumerationResults><Blobs>{rows}</Blobs><NextMarker/></EnumerationResults>"
        return self._answer(200, text.encode(), Content_Type="application/xml")

    do_HEAD = do_GET  # noqa: N815 # the same

    def do_PUT(self) -> None:  # as http.server calls it
        if self.headers.get("If-None-Match") == "*" and self._key() in self.objects:
            self.rfile.read(int(self.headers["Content-Length"]))
            return self._answer(409, x_ms_error_code="BlobAlreadyExists")
        self.objects[self._key()] = self.rfile.read(int(self.headers["Content-Length"])), time.time()
        return self._answer(201, ETag="e", Last_Modified=formatdate(time.time(), usegmt=True))

    def do_POST(self) -> None:  # the same: several are deleted at once
        batch = self.rfile.read(int(self.headers["Content-Length"])).decode()
        paths = re.findall(r"(?m)^DELETE /devstoreaccount1/bucket/(\S+) HTTP", batch)
        for path in paths:
            self.objects.pop(unquote(path.partition("?")[0]), None)
        part = "--b\r\nContent-Type: application/http\r\nContent-ID: {}\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n\r\n"
        text = "".join(map(part.format, range(len(paths)))) + "--b--\r\n"
        self._answer(202, text.encode(), Content_Type="multipart/mixed; boundary=b")


@here
@pytest.mark.parametrize(("scheme", "handler"), [("gs", Google), ("az", Azure)])
def test_the_stores_of_google_and_azure_hold_a_dataset_and_captures(
    scheme: str, handler: type[Bucket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(handler, "objects", {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        key = {
            "gcs_base_url": endpoint,
            "disable_oauth": True,
            "private_key": "",
            "private_key_id": "",
            "client_email": "",
        }
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(key))
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", endpoint)
        put(f"{scheme}://bucket/captures/web/1.smaps", SMAPS)
        fleet = f"{scheme}://bucket/fleet"
        assert footprint.scan(f"{scheme}://bucket/captures", output=fleet, worker_count=1).process_count == 1
        shutil.rmtree(tmp_path / "cache")
        assert footprint.fleet(fleet, "programs").process_count == 1
        assert sorted({name.split("/")[0] for name in handler.objects}) == ["captures", "fleet"]
        handler.objects["fleet/scan.lock"] = b"other", 1e9
        with pytest.raises(AccessError, match="another scan writes to it"):
            footprint.scan(UNUSED, output=fleet, worker_count=1)
        server.shutdown()


class Silent(Bucket):
    """A server that refuses whatever it is asked, as the service that gives machines their credentials may."""

    def do_PUT(self) -> None:  # as http.server calls it
        self._answer(403)

    do_GET = do_HEAD = do_PUT  # noqa: N815 # the same


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("s3://bucket/fleet", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("az://bucket/fleet", "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_a_store_without_credentials_is_one_error_that_says_what_to_set(
    address: str, cause: str, bucket: type[Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    del bucket
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(AccessError) as raised:
            footprint.fleet(address)
        server.shutdown()
    assert f"it needs credentials, and there are none: {cause}" in str(raised.value)
    assert "\n" not in str(raised.value)


class Endless(Bucket):
    """A store whose list has a page after each page."""

    names: tuple[str, ...] = ()

    def do_GET(self) -> None:  # as http.server calls it
        row = "<Contents><Key>{}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        rows = "<NextContinuationToken>next</NextContinuationToken>" + "".join(map(row.format, self.names))
        text = f"<ListBucketResult><IsTruncated>true</IsTruncated>{rows}</ListBucketResult>"
        self._answer(200, text.encode(), Content_Type="application/xml")


@pytest.mark.parametrize(
    ("names", "error", "cause"),
    [
        (("a", "b"), LimitError, r"spent 1,0\d\d of 1,000 entries"),
        ((), AccessError, "its list of objects did not go on for 0.5 seconds"),
    ],
)
def test_a_store_that_lists_without_end_is_given_up_on(
    names: tuple[str, ...],
    error: type[Exception],
    cause: str,
    bucket: type[Bucket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket, "do_GET", Endless.do_GET)
    monkeypatch.setattr(bucket, "names", names, raising=False)
    if not names:
        monkeypatch.setattr("footprint.store.remote._PAGE_SECONDS", 0.5)
    with limited(Limits(entry_count=1000)), pytest.raises(error, match=cause):
        footprint.fleet("s3://bucket/fleet")


def test_an_object_that_is_larger_than_was_listed_is_an_error(
    bucket: type[Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.objects["fleet/inputs/p.parquet"] = b"1234", 1e9
    whole = Bucket.do_GET

    def grow(self: Bucket) -> None:
        if "list-type" not in self.path:
            self.objects["fleet/inputs/p.parquet"] = b"12345", 1e9
        whole(self)

    monkeypatch.setattr(bucket, "do_GET", grow)
    with pytest.raises(AccessError, match="another size than was listed"):
        footprint.fleet("s3://bucket/fleet")


def test_errors_of_a_store_tell_no_secrets(bucket: type[Bucket], monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket
    endpoint = os.environ["AWS_ENDPOINT_URL"].replace("//", "//user:pass-word@")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{endpoint}/elsewhere")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")
    monkeypatch.setattr(Bucket, "do_GET", Silent.do_PUT)
    with pytest.raises(AccessError, match=r"the store cannot be used: .*//user:") as raised:
        footprint.fleet("s3://bucket/fleet")
    assert "pass-word" not in str(raised.value)
    assert "secret-key" not in str(raised.value)


def test_a_server_that_never_answers_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("footprint.store.remote._OF_SMALL", {"read_timeout": "100ms"})
    monkeypatch.setattr("footprint.store.remote._RETRIES", {"max_retries": 0})
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = {"ENDPOINT_URL": f"http://127.0.0.1:{server.getsockname()[1]}", "REGION": "us-east-1"}
        for name, value in {**settings, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        with pytest.raises(AccessError, match="the store cannot be used"):
            footprint.fleet("s3://bucket/fleet")
