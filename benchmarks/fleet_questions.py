"""Time the questions of `footprint fleet` on a made dataset of any size, beside plain DuckDB, or a loop with jq.

    python benchmarks/fleet_questions.py DIR --processes 100000 --rows 200 --days 2
    python benchmarks/fleet_questions.py DIR --processes 10000 --lines
    python benchmarks/fleet_questions.py DIR --processes 200 --loop tests/corpus/smaps-sleep.txt

The dataset has 50 programs on hosts with 50 processes each, and one day, or two with half of the rows each. It is made
once, and used again while it is there. With `--lines` the same processes are lines of JSON, too, as `footprint audit
--json` writes them with host and moment, of which plain DuckDB asks what they can tell; its answers are compared.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
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
  [program] AS needed_by, NULL AS start_us
FROM made, range(1, {owners}) t(o)
UNION ALL
SELECT 'host-00000', DATE '2026-11-01', 1000000000 + p, false, '/usr/bin/program-' || p,
  '/usr/lib/lib' || o || '.so.1', 'lib' || o || '.so.1', printf('%040x', 1000 + o), NULL, NULL, 8192, 16384, 8192, [],
  40 * o
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

_LINES = f"""
SELECT moment, struct_pack(name := host, kernel := '6.18', machine := 'x86_64') AS host,
  struct_pack(name := program, pid := pid, source := source, mapping_count := mapping_count) AS target,
  struct_pack(private_bytes := private_bytes, kernel_bytes := kernel_bytes, per_process_bytes := per_process_bytes,
    shared_once_bytes := shared_once_bytes, mapped_writable_bytes := mapped_writable_bytes) AS totals, ledger, findings
FROM made JOIN (
  SELECT audit, list(struct_pack(owner := owner, kind := kind, section := section, symbol := symbol, name := name,
    bytes := private_bytes, mapped_bytes := mapped_bytes, shared_bytes := shared_bytes, pages := page_count,
    sole_pages := sole_page_count, is_writable := is_writable, evidence := evidence)) AS ledger
  FROM ({_ROWS}) GROUP BY audit
) USING (audit), (
  SELECT list(struct_pack(rule := 'unused-library', subject := 'lib' || o || '.so.1', saving_bytes := 4096 * o,
    confidence := 'high', message := 'unused', remedy := 'link without it')) AS findings FROM range(1, 6) t(o)
)"""  # noqa: S608 # made here

_OF_LINES = {
    "programs": """
SELECT sum(totals.per_process_bytes) AS total_bytes, target.name AS program
FROM last_day GROUP BY ALL ORDER BY total_bytes DESC""",
    "hosts": """
SELECT sum(totals.per_process_bytes) AS total_bytes, host.name AS host
FROM last_day GROUP BY ALL ORDER BY total_bytes DESC""",
    "owners": """
SELECT sum(held.bytes) AS private_bytes, held.owner AS owner
FROM (SELECT unnest(ledger) AS held FROM last_day) GROUP BY ALL ORDER BY private_bytes DESC""",
    "variables": """
SELECT sum(held.bytes) AS private_bytes, held.symbol AS symbol, held.owner AS owner
FROM (SELECT unnest(ledger) AS held FROM last_day) WHERE held.kind <> 'heap' GROUP BY ALL ORDER BY private_bytes DESC
LIMIT 10000""",
    "unused": """
SELECT sum(lacking.saving_bytes) AS saving_bytes, lacking.subject AS subject
FROM (SELECT unnest(findings) AS lacking FROM last_day) WHERE lacking.rule = 'unused-library'
GROUP BY ALL ORDER BY saving_bytes DESC""",
}
"""What plain DuckDB finds in the lines: the figure of the first row is that of the question."""


_COLUMNS = {
    "moment": "TIMESTAMP",
    "host": "STRUCT(name VARCHAR)",
    "target": "STRUCT(name VARCHAR)",
    "totals": "STRUCT(per_process_bytes BIGINT)",
    "ledger": "STRUCT(owner VARCHAR, kind VARCHAR, symbol VARCHAR, bytes BIGINT)[]",
    "findings": "STRUCT(rule VARCHAR, subject VARCHAR, saving_bytes BIGINT)[]",
}
"""What DuckDB is told to read of each line: it takes twice as long to find out itself."""


def make(folder: str, process_count: int, row_count: int, day_count: int, *, has_lines: bool) -> None:
    """Write a dataset, and the same as lines of JSON."""
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
    if has_lines:
        os.makedirs(f"{folder}/lines", exist_ok=True)
        for start in range(0, max(1, process_count // 50), 20):
            some = f"WHERE host BETWEEN 'host-{start:05}' AND 'host-{start + 19:05}'"
            selected = f"FROM (SELECT * FROM made {some}) AS made"  # noqa: S608 # made here
            lines = _LINES.format(**given).replace("FROM made", selected)
            connection.execute(f"COPY ({lines}) TO '{folder}/lines/{start:05}.json' (FORMAT json)")
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


def timed(words: list[str]) -> tuple[Timed, bytes]:
    """Run a command; return its time, and what it wrote."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryFile() as output:
        # A process of its own tells the most memory of this command alone.
        code = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
        code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr); sys.exit(code)"
        done = subprocess.run(
            [sys.executable, "-S", "-c", code, *words], stdout=output, stderr=subprocess.PIPE, check=True
        )
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        written = output.read()
    user = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(user, wall, int(done.stderr.split()[-1])), written


def cost_line(name: str, cost: Timed) -> str:
    """Return a line of the table."""
    return f"{name:21} {cost.user:7.2f} s of processor  {cost.wall:7.2f} s  {cost.megabytes:6} MB"


def beside_lines(folder: str, day_count: int) -> None:
    """Ask plain DuckDB the same of the lines, and compare the first figures."""
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in _COLUMNS.items())
    lines = f"FROM read_json('{folder}/lines/*.json', columns = {{{columns}}})"
    view = f"CREATE VIEW last_day AS {lines} WHERE moment >= '2026-11-{day_count:02}'"
    code = (
        f"import duckdb, sys; duckdb.sql('SET enable_progress_bar = false'); duckdb.sql({view!r}); "
        "print(duckdb.sql(sys.argv[1]).fetchall()[0][0])"
    )
    for name, sql in _OF_LINES.items():
        cost, written = timed([sys.executable, "-c", code, sql])
        words = [sys.executable, "-m", "footprint", "fleet", folder, name, "--json"]
        first = next(iter(json.loads(timed(words)[1])["rows"][0].values()))
        print(
            cost_line(f"{name} of lines", cost), "" if int(written) == first else f" DIFFERENT from {first}", flush=True
        )


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
        print(cost_line(name, timed(words)[0]), f"for {count} processes")


def main() -> None:
    """Make the dataset if it is not there, and ask each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--processes", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--lines", action="store_true", help="ask DuckDB about lines of JSON, too")
    parser.add_argument("--loop", metavar="SMAPS", help="time a loop of audits beside it, over copies of this text")
    given = parser.parse_args()
    if given.loop:
        beside_a_loop(given.folder, given.loop, given.processes)
        return
    if not os.path.isdir(given.folder):
        make(given.folder, given.processes, given.rows, given.days, has_lines=given.lines)
    for name in question_names():
        words = [sys.executable, "-m", "footprint", "fleet", given.folder, name, "--json"]
        print(cost_line(name, timed(words)[0]), flush=True)
    if given.lines:
        beside_lines(given.folder, given.days)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main()
