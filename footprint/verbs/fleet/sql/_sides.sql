-- The processes that are compared: those of two days, builds or package versions, each at its last moment there.
CREATE TABLE compared_processes AS
WITH named AS (
    SELECT processes.*, files.package_version
    FROM processes LEFT JOIN files ON files.file = processes.build_id
    WHERE getvariable('program') IS NULL OR program GLOB getvariable('program')
),
sides AS (
    SELECT 'old' AS side, getvariable('old_side') AS wanted UNION ALL SELECT 'new', getvariable('new_side')
),
chosen AS (
    SELECT side, named.* FROM named JOIN sides
      ON strftime(day, '%Y-%m-%d') = wanted OR starts_with(build_id, wanted) OR package_version = wanted
)
SELECT side, arg_max(audit, moment) AS audit, arg_max(day, moment) AS day, any_value(process_count) AS process_count, program
FROM chosen GROUP BY side, host, coalesce(pid, audit), program;

-- What they hold, by program, owner and variable.
CREATE TABLE compared_amounts AS
SELECT side, held.program, owner, symbol, sum(private_bytes)::BIGINT AS private_bytes
FROM "rows" AS held JOIN compared_processes AS compared ON held.audit = compared.audit
WHERE kind <> 'kernel' AND held.day IN (SELECT day FROM compared_processes)
GROUP BY ALL;
