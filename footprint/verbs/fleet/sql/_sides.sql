-- The processes that are compared: those of two days, builds or package versions, else of the first and the last day; of
-- each host the last day with such, of each process its last moment there.
SET VARIABLE old_side = coalesce(getvariable('old_side'), (SELECT min(day) FROM inputs WHERE process_count > 0)::VARCHAR);
SET VARIABLE new_side = coalesce(getvariable('new_side'), (SELECT max(day) FROM inputs WHERE process_count > 0)::VARCHAR);
CREATE TABLE compared_processes AS
WITH named AS (
    SELECT host, day, moment, audit, input, pid, program, build_id, process_count, package_version
    FROM processes LEFT JOIN known_files ON file = build_id
    WHERE private_bytes IS NOT NULL AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
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
)
SELECT side, audit, day, process_count, program FROM chosen
QUALIFY moment = max(moment) OVER (PARTITION BY side, host, pid, CASE WHEN pid IS NULL THEN input ELSE program END);

-- What they hold, by program, owner and variable.
CREATE TABLE compared_amounts AS
SELECT side, held.program, owner, symbol, sum(private_bytes)::BIGINT AS private_bytes
FROM "rows" AS held JOIN compared_processes AS compared ON held.audit = compared.audit
WHERE kind <> 'kernel' AND held.day IN (SELECT day FROM compared_processes)
GROUP BY ALL;

-- What has another name on the new side. `footprint fleet` fills these tables with the names that `footprint diff` matches.
CREATE TABLE matched_owners (side VARCHAR, program VARCHAR, owner VARCHAR, new_program VARCHAR, new_owner VARCHAR);
CREATE TABLE matched_symbols (symbol VARCHAR, name VARCHAR);
