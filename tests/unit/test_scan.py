"""`footprint scan`: what it takes, what it leaves out, and that nothing is lost or there twice."""

import copyreg
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.cli import main
from footprint.errors import AccessError, InputError, UsageError
from footprint.formats.text import plain
from footprint.json.codec import encode
from footprint.model.finding import Confidence, Finding
from footprint.process.origin import placement_in, read_memory
from footprint.store.audits import _without_small_symbols
from footprint.store.parquet import check_parts, commit_part, open_dataset, prune, write_part
from footprint.store.tables import TABLES
from footprint.verbs.scan import runners
from footprint.verbs.scan.answer import scan_document
from footprint.verbs.scan.inputs import Lister
from footprint.verbs.scan.tasks import Item, Settings, Task
from footprint.verbs.scan.work import identify, run_shard
from tests.fleets import BUILD_IDS, SMAPS, asked, capture_of, contents, scan_in_one_process, text_of, write
from tests.liveprocesses import resting

ROOT = Path(__file__).resolve().parents[2]
MOMENT = datetime(2026, 11, 23, 12)  # noqa: DTZ001 # UTC, as in the dataset


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    scan_in_one_process(monkeypatch)


here = pytest.mark.usefixtures("one_process")


def capture_of_sleep(path: Path) -> None:
    """Capture a small process of this host."""
    with subprocess.Popen(["sleep", "600"]) as child:
        footprint.capture(resting(child.pid), output=path)
        child.kill()


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the processes of three hosts, with damaged and foreign files between them."""
    folder = tmp_path_factory.mktemp("captures")
    for number in range(6):
        write(folder / f"web-{number % 2}" / f"{number}.smaps", text_of(number))
    write(folder / "web-0" / "meminfo", b"MemTotal:       8388608 kB\nMemAvailable:   4194304 kB\n")
    write(folder / "web-1" / "damaged.capture", b"PK\x03\x04 and then nothing")
    write(folder / "web-1" / "README.txt", b"no process\n")
    write(folder / "db.json", b"")
    footprint.save(footprint.audit(ROOT / "tests/cases/condor_shadow/pmap-d.base.txt"), folder / "db.json")
    os.utime(folder / "db.json", (1_763_900_000, 1_763_900_000))
    return folder


@pytest.fixture(scope="module")
def dataset(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset") / "fleet"
    footprint.scan(captures, output=folder, worker_count=1, moment=MOMENT)
    return folder


def test_each_process_is_of_the_host_that_its_folder_is_named_after(dataset: Path) -> None:
    found = asked(dataset, "SELECT host, count(*) FROM processes GROUP BY host ORDER BY host")
    assert found == [("db", 1), ("web-0", 3), ("web-1", 3)]
    memory = "SELECT DISTINCT memory_bytes, available_bytes FROM hosts WHERE host = 'web-0'"
    assert asked(dataset, memory) == [(8 << 30, 4 << 30)]


def test_totals_are_those_of_a_plain_loop_of_audits(captures: Path, dataset: Path) -> None:
    audits = [footprint.audit(path) for path in [*captures.rglob("*.smaps"), captures / "db.json"]]
    names = ("private", "kernel", "per_process", "mapped")
    columns = ", ".join(f"coalesce(sum({name}_bytes), 0)" for name in names)
    expected = tuple(sum(getattr(audit.totals, name).bytes or 0 for audit in audits) for name in names)
    assert asked(dataset, f"SELECT {columns} FROM processes") == [expected]
    assert asked(dataset, "SELECT sum(private_bytes) FROM rows WHERE kind <> 'kernel'") == [expected[:1]]


def test_damaged_inputs_are_notes_and_the_others_are_there(dataset: Path) -> None:
    found = asked(dataset, "SELECT host, input FROM notes WHERE slug = 'input-unreadable' ORDER BY input")
    assert [(host, os.path.basename(name)) for host, name in found] == [
        ("web-1", "README.txt"),
        ("web-1", "damaged.capture"),
    ]
    assert asked(dataset, "SELECT count(*) FROM inputs") == [(9,)]


@here
def test_a_second_scan_adds_only_what_is_new(captures: Path, dataset: Path, tmp_path: Path) -> None:
    before = contents(dataset)
    again = footprint.scan(captures, output=dataset, worker_count=1)
    assert (again.input_count, again.known_count) == (0, 9)
    # The same contents in another place, of the same host.
    write(tmp_path / "web-0" / "copy.smaps", text_of(0))
    assert footprint.scan(tmp_path, output=dataset, worker_count=1).input_count == 0
    assert contents(dataset) == before


@here
def test_an_idle_process_with_the_same_text_on_two_days_is_there_on_both(tmp_path: Path) -> None:
    first, second = (write(tmp_path / "in" / "web-1" / f"{day}" / "1.smaps", SMAPS) for day in (1, 2))
    os.utime(second, (1_763_900_000 + 86_400,) * 2)
    for input_count in (2, 0):
        assert footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1).input_count == input_count
        found = asked(tmp_path / "fleet", "SELECT input FROM processes ORDER BY day")
        assert found == [(str(first),), (str(second),)]


def test_a_part_ends_with_the_input_that_fills_it(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings("one", str(tmp_path), MOMENT, has_commands=False)
    found = next(Lister(MOMENT, host=None, root=None, is_anonymous=False).list([str(captures / "web-0")]))
    _, ((identity,),) = identify(Task(settings, "0", (found,)))
    items = tuple(Item(found, identity._replace(key=str(number))) for number in range(5))
    (whole,) = run_shard(Task(settings, "0", items))
    monkeypatch.setattr("footprint.verbs.scan.work._ROWS_OF_PART", whole.row_count // 5 + 1)
    done = run_shard(Task(settings, "1", items))
    assert [(one.part, one.input_count) for one in done] == [("1", 2), ("1-1", 2), ("1-2", 1)]
    assert sum(one.row_count for one in done) == whole.row_count


@here
def test_a_scan_removes_no_parquet_files_but_those_of_scans(tmp_path: Path) -> None:
    own = write(tmp_path / "fleet" / "files" / "mine.parquet", b"mine")
    half = write(tmp_path / "fleet" / "rows" / "day=2026-11-23" / "0123456789ab-000001a-2.parquet", b"half")
    footprint.scan(write(tmp_path / "1.smaps", SMAPS), output=tmp_path / "fleet", worker_count=1)
    assert (own.exists(), half.exists()) == (True, False)


@here
def test_names_of_hosts_and_files_may_be_no_text_too_long_for_a_folder_or_paths(tmp_path: Path) -> None:
    names = [b"\xff=", "\N{GRINNING FACE}".encode() * 60, b"x" * 255, b"..."]
    for number, name in enumerate(names):
        write(tmp_path / "in" / os.fsdecode(name) / "1.smaps", text_of(number))
    program = ROOT / "sample_binaries" / "unused_library" / "shadow"
    (tmp_path / os.fsdecode(b"shadow\xff")).write_bytes(program.read_bytes())
    (tmp_path / os.fsdecode(b"shadow\xff")).chmod(0o755)
    fleet = tmp_path / "fleet"
    sources = (tmp_path / "in", tmp_path / os.fsdecode(b"shadow\xff"))
    done = footprint.scan(*sources, output=fleet, worker_count=1)
    assert (done.process_count, done.program_count) == (4, 1)
    assert asked(fleet, "SELECT count(DISTINCT host) FROM processes") == [(4,)]
    assert footprint.scan(*sources, output=fleet, worker_count=1).input_count == 0
    assert footprint.scan(tmp_path / "in", output=fleet, host="../../up", worker_count=1).process_count == 4
    assert {path.name for path in tmp_path.iterdir()} == {"in", "fleet", os.fsdecode(b"shadow\xff")}


@here
def test_command_lines_and_names_of_hosts_are_kept_only_if_asked_for(tmp_path: Path) -> None:
    capture = write(tmp_path / "secret-host" / "p.pmap", b"4711:   server --password=hunter2 secret-host\n")
    with capture.open("ab") as file:
        file.write((ROOT / "tests/cases/condor_shadow/pmap-d.base.txt").read_bytes())
    fleet = tmp_path / "fleet"
    footprint.scan(tmp_path / "secret-host", output=fleet, host="secret-host", anonymous=True, worker_count=1)
    assert asked(fleet, "SELECT command FROM processes") == [(None,)]
    # Neither in what could not be listed, nor in what a program of a root file system depends on.
    (tmp_path / "secret-host" / "gone.smaps").symlink_to("/secret/absent")
    for name in ("shadow", "libcrypt_like.so", "libfreebl_like.so"):
        data = (ROOT / "sample_binaries" / "unused_library" / name).read_bytes()
        write(tmp_path / "secret-host-root" / "usr" / name, data).chmod(0o755)
    sources = (tmp_path / "secret-host", tmp_path / "secret-host-root")
    done = footprint.scan(*sources, output=fleet, anonymous=True, worker_count=1)
    assert (done.program_count, asked(fleet, "SELECT count(*) FROM notes WHERE slug = 'file-unreadable'")) == (
        1,
        [(1,)],
    )
    assert footprint.scan(sources[1], output=fleet, anonymous=True, worker_count=1).input_count == 0
    for path in fleet.rglob("*.parquet"):
        assert b"hunter2" not in path.read_bytes()
        assert b"secret-host" not in path.read_bytes()
        assert "secret-host" not in str(path.relative_to(fleet))


@here
def test_programs_have_their_libraries_findings_and_variables(tmp_path: Path) -> None:
    folder = ROOT / "sample_binaries" / "unused_library"
    done = footprint.scan(folder, output=tmp_path, worker_count=1)
    surveyed = footprint.survey(folder).programs
    columns = "path, object_count, startup_min_bytes, startup_max_bytes, start_bytes, unused_bytes"
    found = asked(tmp_path, f"SELECT {columns} FROM programs ORDER BY path")
    fields = ("path", "object_count", "startup_min_bytes", "startup_max_bytes", "start_bytes", "unused_bytes")
    assert found == sorted(tuple(getattr(one, name) for name in fields) for one in surveyed)
    assert done.program_count == len(surveyed) > 0
    # Each byte of the writable and thread-local sections of a file is in one row.
    sizes = "SELECT file, data_bytes + relro_bytes + bss_bytes + tls_bytes FROM files ORDER BY file"
    sums = "SELECT file, sum(size_bytes)::BIGINT FROM variables GROUP BY file ORDER BY file"
    assert [one for one in asked(tmp_path, sizes) if one[1]] == asked(tmp_path, sums)
    assert footprint.scan(folder, output=tmp_path, worker_count=1).input_count == 0


@here
def test_each_file_that_a_program_or_a_captured_process_maps_is_one_row_of_files(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        footprint.capture(child.pid, output=tmp_path / "python.capture")
        footprint.save(footprint.audit(child.pid, has_findings=True), tmp_path / "audit.json")
        child.communicate(b"\n")
    shadow = ROOT / "sample_binaries" / "unused_library" / "shadow"
    fleet = tmp_path / "fleet"
    for _ in range(2):
        footprint.scan(shadow, tmp_path / "python.capture", output=fleet, worker_count=1)
        mapped = asked(fleet, "SELECT DISTINCT build_id FROM libraries WHERE build_id IS NOT NULL ORDER BY build_id")
        files = asked(fleet, "SELECT file FROM files WHERE file NOT LIKE 'blake2b:%' ORDER BY file")
        assert files == mapped
    # What is only mapped does not count as a program of this machine.
    assert asked(fleet, "SELECT path FROM programs") == [(str(shadow),)]
    # A saved audit has the build-ids itself.
    footprint.scan(tmp_path / "audit.json", output=tmp_path / "other", worker_count=1)
    of_process = "SELECT path, build_id FROM libraries WHERE is_process ORDER BY path"
    assert asked(tmp_path / "other", of_process) == asked(fleet, of_process) != []
    of_program = "SELECT program, build_id FROM processes"
    assert asked(tmp_path / "other", of_program) == asked(fleet, of_program)


@here
def test_of_two_copies_of_a_file_the_second_is_in_files_where_the_first_is_damaged(tmp_path: Path) -> None:
    data = (ROOT / "sample_binaries" / "unused_library" / "libcrypt_like.so").read_bytes()
    # The table of sections is at the end of the file; the build-id is found without it.
    for name, contents_of_it in (("1.so", data[:-100]), ("2.so", data)):
        write(tmp_path / "in" / name, contents_of_it)
    fleet = tmp_path / "fleet"
    for unreadable_count in (1, 0):
        done = footprint.scan(tmp_path / "in", output=fleet, worker_count=1)
        assert done.unreadable_count == unreadable_count
        assert asked(fleet, "SELECT path FROM files") == [(str(tmp_path / "in" / "2.so"),)]


@here
def test_a_link_to_a_folder_outside_of_the_sources_is_one_note(tmp_path: Path) -> None:
    text = write(tmp_path / "elsewhere" / "1.smaps", text_of(1))
    write(tmp_path / "in" / "web-1" / "2.smaps", text_of(2))
    (tmp_path / "in" / "web-2").symlink_to("web-1")
    (tmp_path / "in" / "loop").symlink_to(".")
    (tmp_path / "in" / "web-3").symlink_to(text.parent)
    fleet, link = tmp_path / "fleet", str(tmp_path / "in" / "web-3")
    for input_count in (1, 0):
        done = footprint.scan(tmp_path / "in", output=fleet, worker_count=1)
        assert (done.input_count, done.notes[-1][:2]) == (input_count, ("link-not-followed", link))
        assert asked(fleet, "SELECT subject FROM notes WHERE slug = 'link-not-followed'") == [(link,)]
    # Named itself, it is looked at.
    again = footprint.scan(tmp_path / "in", text.parent, output=fleet, worker_count=1)
    assert (again.input_count, [note for note in again.notes if note.slug == "link-not-followed"]) == (1, [])


@here
def test_a_program_is_read_again_when_one_of_its_libraries_has_changed(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    subprocess.run(["cp", "-r", ROOT / "sample_binaries" / "unused_library", folder], check=True)
    fleet = tmp_path / "fleet"
    first = footprint.scan(folder, output=fleet, worker_count=1)
    depends = asked(fleet, "SELECT input, depends_on FROM inputs WHERE kind = 'program'")
    own = [path for _, paths in depends for path in paths if path.startswith(str(folder)) and ".so" in path]
    assert own
    os.utime(own[0])
    again = footprint.scan(folder, output=fleet, worker_count=1)
    assert 0 < again.program_count <= first.program_count
    assert again.file_count == 0


@pytest.mark.parametrize("name", ["shadow", "1.smaps"])
def test_an_input_that_is_replaced_while_the_scan_runs_is_a_note_and_read_by_the_next_one(
    name: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "in" / name, SMAPS)
    if name == "shadow":
        path.write_bytes((ROOT / "sample_binaries" / "unused_library" / "shadow").read_bytes())
        path.chmod(0o755)
    settings = Settings("one", str(tmp_path / "stage"), MOMENT, has_commands=False)
    (candidate,) = Lister(MOMENT, host=None, root=None, is_anonymous=False).list([str(tmp_path / "in")])
    _, ((identity,),) = identify(Task(settings, "0", (candidate,)))
    replace_file = tmp_path / "other"
    replace_file.write_bytes(path.read_bytes() + b"\n")
    replace_file.chmod(0o755)
    replace_file.rename(path)
    (done,) = run_shard(Task(settings, "1", (Item(candidate, identity, has_new_file=True),)))
    (note,) = done.notes
    assert (note.slug, note.detail) == ("input-unreadable", "it was changed while the scan ran: the next scan reads it")
    assert (done.process_count, done.program_count, done.file_count, done.row_count) == (0, 0, 0, 0)
    (tmp_path / "fleet").mkdir()
    commit_part(settings.folder, str(tmp_path / "fleet"), done.part)
    again = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (again.process_count + again.program_count, again.unreadable_count) == (1, 0)


@here
def test_captures_need_not_be_below_the_folder_that_has_their_files(captures: Path, tmp_path: Path) -> None:
    done = footprint.scan(captures, output=tmp_path / "fleet", root=tmp_path, worker_count=1)
    assert (done.process_count, done.program_count) == (7, 0)
    with pytest.raises(UsageError, match="is not below"):
        footprint.scan(ROOT / "sample_binaries/unused_library/shadow", output=tmp_path / "fleet", root=tmp_path)


@here
def test_a_series_is_one_input_for_each_of_its_audits(tmp_path: Path) -> None:
    series = ROOT / "docs" / "examples" / "leak.fps"
    done = footprint.scan(series, output=tmp_path, worker_count=1)
    kept_count = series.read_bytes().count(b'{"taken":')
    assert done.input_count == kept_count > 1
    assert asked(tmp_path, "SELECT count(DISTINCT moment), count(*) FROM processes") == [(kept_count, kept_count)]
    assert footprint.scan(series, output=tmp_path, worker_count=1).input_count == 0


@here
def test_an_image_has_the_rows_of_its_tree_unpacked(tmp_path: Path) -> None:
    tree, image = tmp_path / "tree", tmp_path / "image.tar"
    subprocess.run(["mkdir", "-p", tree / "usr"], check=True)
    subprocess.run(["cp", "-r", ROOT / "sample_binaries" / "unused_library", tree / "usr" / "bin"], check=True)
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(tree / "usr", "usr")
    manifest = [{"Config": "config.json", "RepoTags": ["app:1"], "Layers": ["layer.tar"]}]
    members = {"config.json": b"{}", "layer.tar": layer.getvalue(), "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(image, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    result = []
    for source in (tree, image):
        fleet = tmp_path / f"fleet-{source.name}"
        done = footprint.scan(source, output=fleet, host="app", worker_count=1, moment=MOMENT)
        assert footprint.scan(source, output=fleet, host="app", worker_count=1).input_count == 0
        columns = {"programs": "audit", "libraries": "audit", "findings": "audit", "files": "", "variables": ""}
        assert done.unreadable_count == 0
        assert done.program_count > 0
        result.append(
            {
                name: sorted(asked(fleet, f"SELECT * {f'EXCLUDE ({key})' if key else ''} FROM {name}"))
                for name, key in columns.items()
            }
        )
    assert result[0] == result[1]


@here
def test_the_library_that_most_hosts_hold_for_nothing_is_found_first(tmp_path: Path) -> None:
    audit = footprint.audit(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
    texts = {}
    # Each shadow has a use for what the others save with libz, and 60 % of the hosts none for libcrypt.
    for subject, saving_bytes in (("libcrypt.so.1", 160 << 10), ("libz.so.1", 8 << 10)):
        message = f"nothing uses {subject}"
        found = Finding("unused-library", "unused", subject, message, saving_bytes, Confidence.HIGH, (), "drop it")
        saved = tmp_path / f"{subject}.json"
        footprint.save(replace(audit, findings=(found,)), saved)
        texts[subject] = saved.read_bytes()
    for number in range(20):
        subject = "libcrypt.so.1" if number // 2 < 6 else "libz.so.1"
        write(tmp_path / "audits" / f"host-{number // 2}" / f"{number}.json", texts[subject] + b" " * number)
    footprint.scan(tmp_path / "audits", output=tmp_path / "fleet", worker_count=1)
    first = footprint.fleet(tmp_path / "fleet", "unused").result
    row = dict(zip(first.columns, first.rows[0], strict=True))
    assert (row["subject"], row["saving_bytes"], row["host_count"]) == ("libcrypt.so.1", 12 * (160 << 10), 6)


UNUSED = ROOT / "sample_binaries" / "unused_library"


@here
def test_findings_of_a_program_reach_the_captures_of_all_hosts_that_run_its_build(tmp_path: Path) -> None:
    for host in ("a", "b", "c"):
        capture_of(tmp_path / "captures" / host / "1.capture", BUILD_IDS)
    # Another build of the program, and the same one with another build of the library, prove nothing.
    capture_of(tmp_path / "captures" / "d" / "1.capture", BUILD_IDS | {"shadow": "00" * 20})
    capture_of(tmp_path / "captures" / "e" / "1.capture", BUILD_IDS | {"libcrypt_like.so": "11" * 20})
    fleet = tmp_path / "fleet"
    footprint.scan(tmp_path / "captures", output=fleet, worker_count=1)
    (unknown,) = [note for note in footprint.fleet(fleet, "unused").notes if note.slug == "fleet-findings-unknown"]
    assert (unknown.subject, unknown.detail.count("/opt/app/shadow")) == ("0 of 2 programs", 1)
    footprint.scan(UNUSED, host="image", output=fleet, worker_count=1)
    answer = footprint.fleet(fleet, "unused")
    (row,) = [dict(zip(answer.result.columns, row, strict=True)) for row in answer.result.rows]
    # As the README of the sample derives: 3 pages of the library and 2 of what only it needs, in each of 3 processes.
    assert (row["subject"], row["saving_bytes"], row["each_bytes"]) == ("libcrypt_like.so", 3 * (20 << 10), 20 << 10)
    assert (row["process_count"], row["host_count"], row["program"]) == (3, 3, "/opt/app/shadow")
    assert [note.subject for note in answer.notes if note.slug == "fleet-findings-unknown"] == ["1 of 2 programs"]


@here
def test_a_note_that_many_hosts_have_is_shown_once(tmp_path: Path) -> None:
    for host in ("a", "b", "c"):
        capture_of(tmp_path / "captures" / host / "1.capture", BUILD_IDS)
    done = footprint.scan(tmp_path / "captures", output=tmp_path / "fleet", worker_count=1)
    lines = plain(scan_document(done), width=400).splitlines()
    assert len([line for line in lines if "/opt/app/shadow: its file is not available" in line]) == 1
    # Of the 5 notes of each host, 3 are about files, and are the same; 2 are about its capture.
    assert (done.note_count, len(done.notes)) == (15, 3 + 3 * 2)
    assert "  [15 in all: the table `notes` of the dataset has each with its host]" in lines


@here
def test_findings_of_a_file_reach_each_process_that_maps_its_build(tmp_path: Path) -> None:
    library = ROOT / "sample_binaries" / "declared_in_header" / "gcc_dwarf_5.so"
    footprint.scan(library, host="image", output=tmp_path / "fleet", worker_count=1)
    ((build_id,),) = asked(tmp_path / "fleet", "SELECT file FROM files")
    for host in ("a", "b"):
        capture_of(tmp_path / "captures" / host / "1.capture", BUILD_IDS | {"header.so": build_id})
    footprint.scan(tmp_path / "captures", output=tmp_path / "fleet", worker_count=1)
    found = footprint.fleet(tmp_path / "fleet", "duplicates").result
    # Two copies of `header_names`, four pointers each, of which one is enough: 32 bytes in each process.
    names = [
        dict(zip(found.columns, row, strict=True)) for row in found.rows if str(row[-1]).startswith("header_names")
    ]
    assert [(row["saving_bytes"], row["process_count"], row["host_count"]) for row in names] == [(64, 2, 2)]


@here
def test_a_dataset_of_programs_alone_answers_by_program(tmp_path: Path) -> None:
    footprint.scan(UNUSED, host="image", output=tmp_path / "fleet", worker_count=1)

    def first(question: str, count: int = 1) -> dict[str, Any]:
        answer = footprint.fleet(tmp_path / "fleet", question, count=count)
        assert [note.slug for note in answer.notes] == ["fleet-programs-alone"]
        return dict(zip(answer.result.columns, answer.result.rows[0], strict=True))

    (program,) = footprint.survey(UNUSED).programs
    start_bytes = program.startup_min_bytes + program.start_bytes
    assert (first("programs")["least_bytes"], first("programs")["unused_bytes"]) == (start_bytes, 20 << 10)
    assert (first("unused")["subject"], first("savings")["saving_bytes"]) == ("libcrypt_like.so", 20 << 10)
    libraries = footprint.fleet(tmp_path / "fleet", "libraries").result.rows  # the loader of this machine beside them
    assert {row[-1]: row[0] for row in libraries}["libcrypt_like.so"] == 12 << 10
    assert first("more", count=3)["more_bytes"] == 3 * start_bytes
    assert first("packages")["package"] == "[no package]"
    assert footprint.fleet(tmp_path / "fleet", "owners").result.rows == ()


@here
def test_a_scan_in_which_nothing_can_be_read_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        write(tmp_path / "in" / f"{number}.capture", b"PK\x03\x04 and then nothing")
    words = ["scan", str(tmp_path / "in"), "-o", str(tmp_path / "fleet")]
    assert main(words) == 3
    assert "Nothing could be read: 3 inputs left a note each" in capsys.readouterr().out
    write(tmp_path / "in" / "4.smaps", SMAPS)
    assert main(words) == 0


@here
def test_a_capture_of_several_processes_without_the_maps_of_one_has_the_others(tmp_path: Path) -> None:
    path = capture_of(tmp_path / "in" / "1.capture", BUILD_IDS)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["footprint-capture.json"])
    manifest["processes"] += [{**manifest["processes"][0], "pid": 8}]
    members["footprint-capture.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.process_count, done.notes[0][:2]) == (1, ("process-not-read", "pid 8"))
    assert not done.is_nothing_read


@here
@pytest.mark.parametrize("table", ["rows", "processes", "owners", "hosts", "inputs"])
def test_a_scan_reads_a_part_again_that_misses_a_file(
    table: str, captures: Path, dataset: Path, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet"
    shutil.copytree(dataset, fleet)
    before = contents(fleet)
    next((fleet / table).rglob("*.parquet")).unlink()
    done = footprint.scan(captures, output=fleet, worker_count=1, moment=MOMENT)
    after = contents(fleet)
    assert [note.slug for note in done.notes if note.slug == "part-removed"] == ["part-removed"] * (table != "inputs")
    for name in ("rows", "processes", "owners"):
        assert after[name] == before[name]
    assert footprint.scan(captures, output=fleet, worker_count=1).input_count == 0


@here
def test_an_address_of_a_store_that_is_unknown_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "1.smaps", SMAPS)
    with pytest.raises(UsageError, match="there is no store ftp://"):
        footprint.scan(tmp_path / "1.smaps", output="ftp://bucket/fleet")
    with pytest.raises(UsageError, match="there is no store ftp://"):
        footprint.fleet("ftp://bucket/fleet")
    assert [path.name for path in tmp_path.iterdir()] == ["1.smaps"]


def test_the_engine_writes_no_bar_of_progress_in_a_worker() -> None:
    code = "from footprint.store.parquet import engine; setting = 'enable_progress_bar'\n"
    code += "print(engine().execute('SELECT current_setting(?)', [setting]).fetchone())"
    # A worker is a program without a file, in which DuckDB prints one after two seconds.
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    assert done.stdout == "(False,)\n"


@here
def test_a_program_that_an_update_replaced_is_the_same_program(tmp_path: Path) -> None:
    capture_of(tmp_path / "in" / "a" / "1.capture", {f"{name} (deleted)": one for name, one in BUILD_IDS.items()})
    footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    found = asked(tmp_path / "fleet", "SELECT program, build_id FROM processes")
    assert found == [("/opt/app/shadow", BUILD_IDS["shadow"])]
    owners = asked(tmp_path / "fleet", "SELECT DISTINCT owner FROM rows WHERE owner LIKE '/%' ORDER BY owner")
    assert [owner for (owner,) in owners] == sorted(f"/opt/app/{name}" for name in BUILD_IDS)
    libraries = asked(tmp_path / "fleet", "SELECT path, build_id FROM libraries ORDER BY path")
    assert libraries == sorted((f"/opt/app/{name}", build_id) for name, build_id in BUILD_IDS.items())


@here
def test_a_capture_says_itself_of_which_host_and_moment_it_is(tmp_path: Path) -> None:
    path = capture_of(tmp_path / "in" / "elsewhere" / "1.capture", BUILD_IDS)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["footprint-capture.json"])
    captured_at = {"captured_at": "2026-11-20T10:00:00Z", "name": "web-1", "memory_bytes": 8 << 30}
    manifest["capture_host"] = captured_at | {"available_bytes": 4 << 30, "processor_count": 4}
    manifest["processes"][0]["placement"] = {"unit": "web.service", "image": "example.org/web:1"}
    members["footprint-capture.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    text = b"footprint-text-capture/1 TOKEN\nkernel 6.1\nmachine x86_64\nname db-1\ncaptured_at 2026-11-21T09:00:00Z\n"
    text += b"MemTotal 1024\nMemAvailable 512\n\nTOKEN 9 status\nName:\tdb\nThreads:\t1\n\nTOKEN 9 smaps\n" + SMAPS
    write(tmp_path / "in" / "elsewhere" / "2.txt.gz", gzip.compress(text + b"\nTOKEN end\n"))
    fleet = tmp_path / "fleet"
    for input_count in (2, 0):
        assert footprint.scan(tmp_path / "in", output=fleet, worker_count=1).input_count == input_count
    found = asked(fleet, "SELECT host, moment, unit, image FROM processes ORDER BY host")
    web = ("web-1", datetime(2026, 11, 20, 10), "web.service", "example.org/web:1")  # noqa: DTZ001 # UTC
    assert found == [("db-1", datetime(2026, 11, 21, 9), None, None), web]  # noqa: DTZ001 # the same
    memory = asked(fleet, "SELECT host, memory_bytes, available_bytes FROM hosts ORDER BY host")
    assert memory == [("db-1", 1 << 20, 1 << 19), ("web-1", 8 << 30, 4 << 30)]
    # A host that is named is that of all inputs, and names may be hidden.
    footprint.scan(tmp_path / "in", host="lab", output=tmp_path / "named", worker_count=1)
    assert asked(tmp_path / "named", "SELECT DISTINCT host FROM processes") == [("lab",)]
    footprint.scan(tmp_path / "in", anonymous=True, output=tmp_path / "hidden", worker_count=1)
    hidden = asked(tmp_path / "hidden", "SELECT host, input FROM inputs")
    assert not any(name in str(hidden) for name in ("web-1", "db-1", "elsewhere"))


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("0::/system.slice/web.service\n", ("web.service", None, None)),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n", ("a.scope", None, None)),
        (
            f"0::/kubepods.slice/kubepods-pod{'1' * 8}_2222_3333_4444_{'5' * 12}.slice/cri-{'a' * 64}.scope\n",
            (f"cri-{'a' * 64}.scope", "a" * 64, f"{'1' * 8}-2222-3333-4444-{'5' * 12}"),
        ),
        (f"4:memory:/docker/{'b' * 64}\n", (None, "b" * 64, None)),
        ("0::/\n", (None, None, None)),
    ],
)
def test_the_cgroup_of_a_process_names_its_unit_container_and_pod(
    cgroup: str, expected: tuple[str | None, ...]
) -> None:
    assert placement_in(cgroup)[:3] == expected


@here
def test_old_days_are_pruned_and_their_captures_are_not_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = tmp_path / "fleet"
    for number, days in enumerate((0, 91, 200)):
        path = write(tmp_path / "in" / "web" / f"{number}.smaps", text_of(number))
        os.utime(path, (1_763_900_000 - 86_400 * days,) * 2)
        footprint.scan(path, host="web", output=fleet, worker_count=1)
    footprint.scan(UNUSED, host="web", output=fleet, worker_count=1)
    programs = contents(fleet)["programs"]
    assert main(["fleet", str(fleet), "prune", "--keep", "90d"]) == 0
    assert "The processes of 2 inputs before 2025-08-25 are gone" in capsys.readouterr().out
    for table in ("processes", "rows", "owners"):
        assert len(list((fleet / table).rglob("*.parquet"))) == 1
    assert contents(fleet)["programs"] == programs
    assert footprint.fleet(fleet, "owners").process_count == 1
    again = footprint.scan(tmp_path / "in", host="web", output=fleet, worker_count=1)
    assert (again.input_count, again.known_count) == (0, 3)
    assert main(["fleet", str(fleet), "prune"]) == 2


def of_days(folder: Path, *days: int) -> Path:
    """Scan one process for each day before 2025-11-23."""
    for number, before in enumerate(days):
        path = write(folder / "in" / "web" / f"{number}.smaps", text_of(number))
        os.utime(path, (1_763_900_000 - 86_400 * before,) * 2)
        footprint.scan(path, host="web", output=folder / "fleet", worker_count=1)
    return folder / "fleet"


@here
def test_a_figure_that_no_table_can_have_is_a_note_and_the_other_inputs_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "in" / "web" / "1.smaps", text_of(1))
    huge = re.sub(rb"(?m)^(Size|Rss|Private_Dirty): .*", rb"\1: 9999999999999999 kB", text_of(2))
    write(tmp_path / "in" / "web" / "2.smaps", huge)
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.process_count, done.unreadable_count) == (1, 1)
    assert [note.detail for note in done.notes if note.slug == "input-unreadable"] == [
        "a size or count in it has more than 50 bits"
    ]


SAVED: Any = encode(
    Finding("unused-library", "unused", "libx.so", "nothing uses it", 4096, Confidence.HIGH, (), "drop it")
)


def searched(path: Path, findings: list[Any], *pids: int) -> None:
    with zipfile.ZipFile(capture_of(path, BUILD_IDS), "a") as archive:
        archive.writestr("findings.json", json.dumps([{"pids": [7, *pids], "findings": findings}]))


@here
def test_captures_that_lie_of_what_they_save_take_no_answer_from_the_others(tmp_path: Path) -> None:
    for host, saving_bytes in (("a", 4096), ("b", 1 << 62), ("c", 1 << 62)):
        searched(tmp_path / "in" / host / "1.capture", [SAVED | {"saving_bytes": saving_bytes}])
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.process_count, done.unreadable_count) == (1, 2)
    answer = footprint.fleet(tmp_path / "fleet", "unused").result
    assert dict(zip(answer.columns, answer.rows[0], strict=True))["saving_bytes"] == 4096


@here
def test_findings_that_cannot_be_read_leave_the_processes_of_their_capture(tmp_path: Path) -> None:
    searched(tmp_path / "in" / "a" / "1.capture", [SAVED | {"confidence": "sure"}])
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert (done.process_count, done.unreadable_count) == (1, 0)
    (note,) = [note for note in done.notes if note.slug == "process-not-searched"]
    assert note.detail.endswith("'sure', which this footprint does not know: its processes are read without findings")
    assert footprint.fleet(tmp_path / "fleet", "unused").result.rows == ()


@here
@pytest.mark.parametrize("findings", [[SAVED] * 9000, [SAVED | {"message": "x" * (8 << 20)}]])
def test_findings_that_many_processes_have_come_from_the_budget(tmp_path: Path, findings: list[Any]) -> None:
    searched(tmp_path / "in" / "a" / "1.capture", findings, *range(200))
    done = footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    assert done.process_count == 1
    assert ("process-not-searched", True) in {(note.slug, "of 1 GiB" in note.detail) for note in done.notes}
    assert asked(tmp_path / "fleet", "SELECT count(*) FROM findings") == [(0,)]


@here
def test_the_memory_of_a_host_that_captures_claim_has_at_most_63_bits(tmp_path: Path) -> None:
    capture_of_sleep(tmp_path / "real.capture")
    with zipfile.ZipFile(tmp_path / "real.capture") as real, zipfile.ZipFile(tmp_path / "huge.capture", "w") as huge:
        for name in real.namelist():
            text = re.sub(rb'"memory_bytes": [0-9]+', b'"memory_bytes": 18446744073709551615', real.read(name))
            huge.writestr(name, text)
    paths = tmp_path / "real.capture", tmp_path / "huge.capture"
    done = footprint.scan(*paths, output=tmp_path / "fleet", worker_count=1)
    assert done.process_count == 1
    assert any("memory_bytes" in note.detail for note in done.notes if note.slug == "input-unreadable")


@here
def test_a_clock_that_is_ahead_costs_no_days(tmp_path: Path) -> None:
    fleet = of_days(tmp_path, 0, -36_500)
    assert prune(str(fleet), 99_999)[1] == 0
    assert prune(str(fleet), (datetime.now(UTC).date() - date(2025, 11, 23)).days + 1)[1] == 0
    assert len(list((fleet / "rows").rglob("*.parquet"))) == 2


@here
def test_rows_that_a_killed_pruning_left_go_the_next_time(tmp_path: Path) -> None:
    fleet = of_days(tmp_path, 0, 91)
    (old,) = (fleet / "rows").rglob("day=2025-08-24/*.parquet")
    rows = old.read_bytes()
    assert prune(str(fleet), 90)[1] == 1
    old.write_bytes(rows)
    assert prune(str(fleet), 90)[1] == 0
    assert not old.exists()


@here
def test_pruning_changes_no_file_of_another_dataset(tmp_path: Path) -> None:
    import duckdb  # of an extra

    other, fleet = of_days(tmp_path / "a", 0, 91), of_days(tmp_path / "b", 0, 91)
    (_, victim) = sorted((other / "inputs").rglob("*.parquet"), key=os.path.getmtime)
    (_, hostile) = sorted((fleet / "inputs").rglob("*.parquet"), key=os.path.getmtime)
    before = victim.read_bytes()
    part = os.path.relpath(victim.with_suffix(""), fleet / "inputs")
    text = f"COPY (SELECT * REPLACE ('{part}' AS part) FROM read_parquet('{hostile}')) TO '{hostile}.new'"
    duckdb.sql(f"{text} (FORMAT parquet)")
    os.replace(f"{hostile}.new", hostile)
    assert prune(str(fleet), 90)[1] == 0
    assert victim.read_bytes() == before


def test_a_pipe_in_place_of_a_file_of_the_container_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meminfo")
    assert read_memory(str(tmp_path / "meminfo")) == (None, None)


def test_of_a_process_with_thousands_of_symbols_the_largest_are_rows_and_the_sums_are_kept() -> None:
    audit = footprint.audit(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
    # 3,000 variables of 64 to 16,384 bytes: 666 have 8,192 or more, and 333 have 16,384.
    row = next(row for row in audit.ledger if row.kind == "data")
    sizes = [64 << number % 9 for number in range(3_000)]
    rows = [row._replace(section=".data", symbol=f"v{at}", name=f"v{at}", bytes=size) for at, size in enumerate(sizes)]
    kept = list(_without_small_symbols(rows))
    assert [one.bytes for one in kept if one.symbol] == [16_384] * 333
    assert [one.name for one in kept if not one.symbol] == ["[2667 of less than 16384 bytes]"]
    assert sum(one.bytes or 0 for one in kept) == sum(sizes)


@here
def test_hosts_whose_memory_is_not_known_are_told_where_it_is_asked_how_many_fit(dataset: Path, tmp_path: Path) -> None:
    (note,) = [note for note in footprint.fleet(dataset, "fit").notes if note.slug == "fleet-memory-unknown"]
    assert note.subject == "2 hosts"  # db and web-1: web-0 has a copy of meminfo
    os.utime(capture_of(tmp_path / "in" / "a" / "1.capture", BUILD_IDS))
    capture_of_sleep(tmp_path / "in" / "real.capture")
    footprint.scan(tmp_path / "in", output=tmp_path / "fleet", worker_count=1)
    answer = footprint.fleet(tmp_path / "fleet", "fit")
    assert [note.subject for note in answer.notes if note.slug == "fleet-memory-unknown"] == ["1 host"]
    assert [row[-2] for row in answer.result.rows] == [os.uname().nodename]


@here
def test_a_saved_prediction_is_no_process(tmp_path: Path) -> None:
    program = ROOT / "sample_binaries" / "unused_library" / "shadow"
    footprint.save(footprint.audit(program), tmp_path / "shadow.json")
    done = footprint.scan(tmp_path / "shadow.json", output=tmp_path / "fleet", worker_count=1)
    assert (done.process_count, done.unreadable_count) == (0, 1)


@here
def test_nothing_that_is_named_or_no_dataset_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a folder"):
        footprint.scan(output=tmp_path)
    with pytest.raises(AccessError, match="no such file"):
        footprint.scan(tmp_path / "absent", output=tmp_path / "fleet", worker_count=1)
    with pytest.raises(AccessError, match="no dataset"):
        open_dataset(str(tmp_path))


@here
@pytest.mark.parametrize("name", ["a[1]", "st*r", "what?", "host=a"])
def test_no_dataset_is_begun_in_a_folder_that_nobody_could_ask(name: str, captures: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"which stands for .*: move it"):
        footprint.scan(captures, output=tmp_path / name, worker_count=1)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(("module", "options"), [("duckdb", {}), ("distributed", {"scheduler": "tcp://127.0.0.1:1"})])
def test_an_extra_that_is_not_installed_is_one_line_with_the_command(
    module: str, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"pip install 'footprint-audit\[(fleet|cluster)\]'"):
        footprint.scan(ROOT / "sample_binaries", output=tmp_path, worker_count=1, **options)  # type: ignore[arg-type]


def test_names_that_are_not_text_and_values_of_another_day_come_back(tmp_path: Path) -> None:
    row = TABLES["rows"].row
    values: dict[str, Any] = dict.fromkeys(column.name for column in TABLES["rows"].columns)
    values |= {
        "host": "a b/../c%=",
        "day": MOMENT.date(),
        "audit": (1 << 63) - 1,
        "program": "p\udcff",
        "owner": "o\0'\n",
    }
    values |= {"kind": "bss", "mapped_bytes": 1, "sole_page_count": 0, "is_writable": True, "evidence": "measured"}
    write_part(str(tmp_path), "one", {"rows": [row(*values.values())]})
    (tmp_path / "inputs").mkdir()
    assert asked(tmp_path, "SELECT host, audit, program, owner, symbol FROM rows") == [
        ("a b/../c%=", (1 << 63) - 1, "p\\udcff", "o\0'\n", None)
    ]


@here
def test_tables_that_do_not_add_up_are_an_error(captures: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    footprint.scan(captures, output=fleet, worker_count=1)
    parts = {name: [str(path) for path in (fleet / name).rglob("*.parquet")] for name in TABLES}
    check_parts(str(fleet), [parts])
    with pytest.raises(InputError, match="the tables do not agree on the number of rows"):
        check_parts(str(fleet), [parts | {"rows": parts["rows"][1:]}])


def test_a_dataset_of_another_version_or_a_damaged_one_is_an_error(
    captures: Path, dataset: Path, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet"
    subprocess.run(["cp", "-r", dataset, fleet], check=True)
    for path in (fleet / "processes").rglob("*.parquet"):
        without = f"SELECT * EXCLUDE (source, host, day) FROM '{path}'"
        with open_dataset(str(dataset)) as connection:
            connection.execute(f"COPY ({without}) TO '{path}' (FORMAT parquet)")
    with pytest.raises(InputError, match="a column of processes is missing, so it is of another version"):
        footprint.scan(captures, output=fleet, worker_count=1)
    for path in (fleet / "hosts").iterdir():
        path.write_bytes(b"no table")
    with pytest.raises(InputError, match="it cannot be read"):
        footprint.scan(captures, output=fleet, worker_count=1)


@here
def test_half_of_a_part_is_removed_and_read_again(captures: Path, dataset: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    subprocess.run(["cp", "-r", dataset, fleet], check=True)
    for path in (fleet / "inputs").iterdir():
        path.unlink()
    done = footprint.scan(captures, output=fleet, worker_count=1, moment=MOMENT)
    assert done.input_count == 9
    assert contents(fleet) == contents(dataset)


class AwkwardError(Exception):
    """An error that a pickle cannot make again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def test_an_error_that_no_pipe_can_carry_arrives_as_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # Dask registers a way to pickle each class of errors that there is when it is imported.
    monkeypatch.delitem(copyreg.dispatch_table, AwkwardError, raising=False)
    unpicklable = ValueError("with", lambda: None)
    assert str(runners._sendable(AwkwardError("no", "way"))) == "AwkwardError: no way"
    assert str(runners._sendable(unpicklable)) == f"ValueError: {unpicklable}"
    plain = InputError("a", "it is damaged", 7)
    assert runners._sendable(plain) is plain


def test_ctrl_c_never_reaches_the_workers_of_a_scan() -> None:
    # Python would answer it by a traceback while it starts.
    with closing(runners._Pool(1)) as pool:
        pool._start(1)
        status = Path(f"/proc/{pool._servers[0].pid}/status").read_text()
    blocked = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:"))
    assert int(blocked, 16) >> signal.SIGINT - 1 & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_interpreter_that_cannot_be_started_is_an_error_of_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with closing(runners._Pool(1)) as pool, pytest.raises(AccessError, match="no worker can be started: No such file"):
        pool._start(1)


# --- on a cluster -----------------------------------------------------------------------------------------------------


def test_an_address_without_a_scheduler_is_an_error(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint.verbs.scan.cluster._CONNECT_SECONDS", 1)
    with pytest.raises(AccessError, match="no scheduler answers"):
        footprint.scan(captures, output=tmp_path / "fleet", scheduler="tcp://127.0.0.1:1")
