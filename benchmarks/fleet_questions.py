"""Time the questions of `footprint fleet` on a made dataset of any size, beside a loop over saved audits with jq.

    python benchmarks/fleet_questions.py DIR --processes 100000 --rows 200
    python benchmarks/fleet_questions.py DIR --processes 200 --loop tests/corpus/smaps-sleep.txt

The dataset has 50 programs on hosts with 50 processes each, and one day, or two with half of the rows each. It is made
once, and used again while it is there.
"""

import argparse
import os
import resource
import subprocess
import sys
from typing import NamedTuple

import duckdb

from footprint.store.tables import PARTITION_COLUMN, TABLES
from footprint.verbs.fleet.questions import question_names

_PROGRAMS = 50
_OWNERS = 30

_PROCESSES = """
CREATE TABLE made AS SELECT
  printf('host-%05d', i % {hosts}) AS host,
  DATE '2026-11-01' + (i // {hosts} % {days})::INTEGER AS day,
  (DATE '2026-11-01' + (i // {hosts} % {days})::INTEGER)::TIMESTAMP + INTERVAL 9 HOUR AS moment,
  i + 1 AS audit, 'processes' AS input, 100 + i // {hosts} AS pid,
  '/usr/bin/program-' || (i // {hosts} % {programs}) AS program,
  printf('%040x', i // {hosts} % {programs}) AS build_id, NULL AS command,
  1000000 + (hash(i) % 1000000)::BIGINT AS private_bytes, 20480 AS kernel_bytes,
  1000000 + (hash(i) % 1000000)::BIGINT + 20480 AS per_process_bytes, 5000000 AS shared_once_bytes,
  2000000 AS mapped_writable_bytes, 9000000 AS mapped_bytes, 0 AS swapped_bytes, 0 AS own_shared_bytes,
  150 AS mapping_count, NULL AS unit, NULL AS container, NULL AS pod, NULL AS image, false AS is_searched,
  1 AS process_count, 'measured' AS evidence, 'smaps' AS source
FROM range({processes}) t(i)"""

_ROWS = """
SELECT host, day, audit, program,
  CASE WHEN r % {owners} = 0 THEN '[heap]' ELSE '/usr/lib/lib' || (r % {owners}) || '.so.1' END AS owner,
  CASE WHEN r % {owners} = 0 THEN 'heap' ELSE 'data' END AS kind, '.data' AS section,
  CASE WHEN r % {owners} = 0 THEN NULL ELSE 'symbol_' || r || '_' || (audit % 10) END AS symbol,
  'name_' || r AS name, (hash(audit, r) % 8192)::BIGINT AS private_bytes, 8192 AS mapped_bytes, 0 AS shared_bytes,
  1 AS page_count, 0 AS sole_page_count, true AS is_writable, 'measured' AS evidence
FROM made, range({rows}) t(r)"""

_HELD = f"""
SELECT host, day, audit, program, owner, sum(private_bytes) AS private_bytes, 0 AS kernel_bytes
FROM ({_ROWS}) GROUP BY ALL"""  # noqa: S608 # made here

_LIBRARIES = """
SELECT host, day, audit, true AS is_process, program, '/usr/lib/lib' || o || '.so.1' AS path,
  'lib' || o || '.so.1' AS name, printf('%040x', 1000 + o) AS build_id, 100000 AS private_bytes,
  300000 AS mapped_bytes, 8192 AS startup_min_bytes, 16384 AS startup_max_bytes, 8192 AS retained_bytes,
  [program] AS needed_by
FROM made, range(1, {owners}) t(o)
UNION ALL
SELECT 'host-00000', DATE '2026-11-01', 1000000000 + p, false, '/usr/bin/program-' || p,
  '/usr/lib/lib' || o || '.so.1', 'lib' || o || '.so.1', printf('%040x', 1000 + o), NULL, NULL, 8192, 16384, 8192, []
FROM range({programs}) s(p), range(1, {owners}) t(o)"""

# One host scanned its programs: what was found holds for all hosts.
_SCANNED = """
SELECT 'host-00000' AS host, DATE '2026-11-01' AS day, TIMESTAMP '2026-11-01 09:00:00' AS moment,
  1000000000 + p AS audit, '/usr/bin/program-' || p AS path, printf('%040x', p) AS file, {owners} AS object_count,
  100000 AS startup_min_bytes, 200000 AS startup_max_bytes, 20000 AS start_bytes, 0 AS unused_bytes,
  0 AS doubtful_bytes, true AS is_complete
FROM range({programs}) s(p)"""

_FINDINGS = """
SELECT host, day, audit, false AS is_process, path AS program, 'unused-library' AS rule, 'unused' AS kind,
  'lib' || o || '.so.1' AS subject, '' AS object_path, 4096 * o AS saving_bytes, NULL AS private_bytes,
  NULL AS size_bytes, 'high' AS confidence, true AS is_counted, 'unused' AS message, 'link without it' AS remedy,
  [] AS leaves, NULL AS file
FROM ({scanned}), range(1, 6) t(o)"""

_HOSTS = """
SELECT host, max(day) AS day, max(moment) AS moment, 'host' AS kind, '6.18' AS kernel, 'x86_64' AS machine,
  16 AS processor_count, 64000000000 AS memory_bytes, 20000000000 AS available_bytes
FROM made GROUP BY host"""

_FILES = """
SELECT printf('%040x', 1000 + o) AS file, '/usr/lib/lib' || o || '.so.1' AS path, 'lib' || o || '.so.1' AS name,
  false AS is_program, 62 AS machine, 100000 AS size_bytes, 50000 AS text_bytes, 1000 AS data_bytes,
  1000 AS relro_bytes, 1000 AS bss_bytes, 0 AS tls_bytes, 'package-' || (o // 3) AS package,
  '1.0' AS package_version, DATE '2026-11-01' AS day
FROM range(1, {owners}) t(o)"""

_INPUTS = """
SELECT host, day, max(moment) AS moment, 'processes' AS input, 'processes' AS kind, '' AS identity,
  '' AS state, printf('made-%05d0', substr(host, 6)::INTEGER // 4 * 4) AS part,
  [] AS depends_on, count(*) AS process_count, count(*) * {rows} AS row_count,
  sum(private_bytes) AS private_bytes, sum(kernel_bytes) AS kernel_bytes,
  sum(per_process_bytes) AS per_process_bytes, 0 AS note_count
FROM made GROUP BY host, day"""


def make(folder: str, process_count: int, row_count: int, day_count: int) -> None:
    """Write a dataset."""
    given: dict[str, int | str] = {
        "hosts": max(1, process_count // 50),
        "processes": process_count,
        "rows": row_count,
        "days": day_count,
        "programs": _PROGRAMS,
        "owners": _OWNERS,
    }
    given["scanned"] = _SCANNED.format(**given)
    # Two threads would write two files of a part.
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(_PROCESSES.format(**given))
    made = {
        "processes": "SELECT * FROM made",
        "rows": _ROWS,
        "owners": _HELD,
        "libraries": _LIBRARIES,
        "programs": _SCANNED,
        "findings": _FINDINGS,
        "hosts": _HOSTS,
        "files": _FILES,
        "inputs": _INPUTS,
    }
    for name, selection in made.items():
        table = TABLES[name]
        columns = ", ".join(f'"{column.name}"::{column.sql_type} AS "{column.name}"' for column in table.columns)
        sql = f"SELECT {columns} FROM ({selection.format(**given)})"  # noqa: S608 # made here
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        # As many processes a part as those of a scan. DuckDB appends the number of the file to the pattern.
        for start in range(0, 1 if name == "files" else max(1, process_count // 50), 4):
            part = f"made-{start:05}"
            some = sql if name == "files" else f"{sql} WHERE host BETWEEN 'host-{start:05}' AND 'host-{start + 3:05}'"
            target, options = f"{place}/{part}0.parquet", "FORMAT parquet"
            if table.is_partitioned:
                options += f", PARTITION_BY ({PARTITION_COLUMN}), OVERWRITE_OR_IGNORE, FILENAME_PATTERN '{part}'"
                target = place
            connection.execute(f"COPY ({some}) TO '{target}' ({options})")


class Timed(NamedTuple):
    """The time of a command.

    Attributes:
        user: Its processor time in seconds.
        wall: How long it took.
        megabytes: The most memory that it had.
    """

    user: float
    wall: float
    megabytes: int


def timed(words: list[str]) -> Timed:
    """Run a command, and time it."""
    code = "import resource, subprocess, sys, time; t = time.time(); code = subprocess.call(sys.argv[1:], stdout=-3); "
    code += "u = resource.getrusage(resource.RUSAGE_CHILDREN); "
    code += "print(u.ru_utime + u.ru_stime, time.time() - t, u.ru_maxrss // 1024); sys.exit(code)"
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout
    user, wall, megabytes = found.split()
    return Timed(float(user), float(wall), int(megabytes))


_LOOP = """
for file in "$1"/*/*; do "$2" -m footprint audit "$file" --json; done |
jq -n 'reduce (inputs.ledger[] | select(.bytes)) as $row ({}; .[$row.owner] += $row.bytes)'
"""


def beside_a_loop(folder: str, text: str, count: int) -> None:
    """Time the question `owners` over copies of a text of smaps: by a loop with jq, and by a scan and a question."""
    with open(text, "rb") as file:
        content = file.read()
    for number in range(count):
        place = os.path.join(folder, "texts", f"host-{number // 50}")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"{number}.smaps"), "wb") as file:
            # Scans leave out what they have read before.
            file.write(content + b"\n" * number)
    dataset = os.path.join(folder, "fleet")
    command = [sys.executable, "-m", "footprint"]
    contenders = {
        "loop and jq": ["sh", "-c", _LOOP, "sh", os.path.join(folder, "texts"), sys.executable],
        "scan": [*command, "scan", os.path.join(folder, "texts"), "-o", dataset],
        "fleet owners": [*command, "fleet", dataset, "owners", "--json"],
    }
    for name, words in contenders.items():
        found = timed(words)
        print(f"{name:12} {found.user:6.2f} s of processor  {found.wall:6.2f} s  for {count} processes")


def main() -> None:
    """Make the dataset if it is not there, and ask each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--processes", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--loop", metavar="SMAPS", help="time a loop of audits beside it, over copies of this text")
    given = parser.parse_args()
    if given.loop:
        beside_a_loop(given.folder, given.loop, given.processes)
        return
    if not os.path.isdir(given.folder):
        make(given.folder, given.processes, given.rows, given.days)
    for name in question_names():
        words = [sys.executable, "-m", "footprint", "fleet", given.folder, name, "--json"]
        found = timed(words)
        print(f"{name:12} {found.user:6.2f} s of processor  {found.wall:6.2f} s  {found.megabytes:6} MB")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main()
