-- The processes that are compared: those of two days, builds or package versions; of each host the last day with such,
-- of each process its last moment there.
CREATE TABLE compared_processes AS
WITH named AS (
    SELECT processes.*, package_version
    FROM processes LEFT JOIN known_files ON file = build_id
    WHERE private_bytes IS NOT NULL AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
),
sides AS (
    SELECT 'old' AS side, getvariable('old_side') AS wanted UNION ALL SELECT 'new', getvariable('new_side')
),
chosen AS (
    SELECT side, named.* FROM named JOIN sides
      ON strftime(day, '%Y-%m-%d') = wanted OR starts_with(build_id, wanted) OR package_version = wanted
    QUALIFY day = max(day) OVER (PARTITION BY side, host)
)
SELECT side, audit, day, process_count, program FROM chosen
QUALIFY moment = max(moment) OVER (PARTITION BY side, host, pid, CASE WHEN pid IS NULL THEN input ELSE program END);

-- What they hold, by program, owner and variable.
CREATE TABLE compared_amounts AS
SELECT side, held.program, owner, symbol, sum(private_bytes)::BIGINT AS private_bytes
FROM "rows" AS held JOIN compared_processes AS compared ON held.audit = compared.audit
WHERE kind <> 'kernel' AND held.day IN (SELECT day FROM compared_processes)
GROUP BY ALL;
