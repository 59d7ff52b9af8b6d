-- The processes that are compared: those of two days, builds or package versions, else of the first and the last day that
-- the dataset still has; of each host the last day with such, of each process its last moment there. Where both sides are
-- days, the list of these leaves out the files of all others.
SET VARIABLE side_days = (
    SELECT [getvariable('old_side'), getvariable('new_side')]
    WHERE getvariable('old_side') LIKE '____-__-__' AND getvariable('new_side') LIKE '____-__-__'
      AND NOT EXISTS (FROM files WHERE package_version IN (getvariable('old_side'), getvariable('new_side')))
);
CREATE TABLE compared_processes AS
WITH named AS (
    SELECT host, day, moment, audit, pid, CASE WHEN pid IS NULL THEN input ELSE program END AS what, program, build_id,
           process_count, package_version
    FROM processes LEFT JOIN known_files ON file = build_id
    WHERE private_bytes IS NOT NULL AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
      AND coalesce(list_contains(getvariable('side_days'), day::VARCHAR), true)
),
sides AS (
    SELECT side, wanted, TRY_CAST(wanted AS DATE) AS wanted_day
    FROM (VALUES ('old', getvariable('old_side')), ('new', getvariable('new_side'))) AS named_sides (side, wanted)
    WHERE getvariable('old_side') <> getvariable('new_side')
),
chosen AS (
    SELECT side, named.* FROM named JOIN sides
      ON day = wanted_day OR starts_with(build_id, wanted) OR package_version = wanted
    QUALIFY day = max(day) OVER (PARTITION BY side, host)
),
numbers AS (
    SELECT side, program, row_number() OVER (ORDER BY side, program) AS number
    FROM (SELECT DISTINCT side, program FROM chosen)
)
SELECT side, audit, day, process_count, program, number FROM chosen JOIN numbers USING (side, program)
QUALIFY moment = max(moment) OVER (PARTITION BY side, host, pid, what);

-- What they hold, by program, owner and variable. Millions of rows are added up: by the number of side and program, since
-- each column of texts takes as long again. The days are a list, by which whole files are left out.
SET VARIABLE compared_days = (SELECT list(DISTINCT day) FROM compared_processes);
CREATE TABLE compared_amounts AS
WITH held AS (
    SELECT number, owner, symbol, sum(private_bytes) AS private_bytes
    FROM "rows" JOIN (SELECT audit, number FROM compared_processes) USING (audit)
    WHERE kind <> 'kernel' AND list_contains(getvariable('compared_days'), day)
    GROUP BY ALL
)
SELECT side, program, owner, symbol, private_bytes
FROM held JOIN (SELECT DISTINCT number, side, program FROM compared_processes) USING (number);

-- What has another name on the new side. `footprint fleet` fills these tables with the names that `footprint diff` matches.
CREATE TABLE matched_owners (side VARCHAR, program VARCHAR, owner VARCHAR, new_program VARCHAR, new_owner VARCHAR);
CREATE TABLE matched_symbols (symbol VARCHAR, name VARCHAR);
