-- Which libraries cost the fleet most at the start of its processes?
-- {library} costs most: {start_us} us of processor time, estimated, if each of {process_count} processes starts once.
WITH running AS (
    SELECT host, build_id AS file, sum(process_count) AS process_count
    FROM current_processes WHERE build_id IS NOT NULL GROUP BY ALL
),
scans AS (
    SELECT file, audit FROM programs
    QUALIFY row_number() OVER (PARTITION BY file ORDER BY moment DESC, audit) = 1
),
started AS (
    SELECT audit, host AS running_host, process_count FROM running JOIN scans USING (file)
)
SELECT sum(start_us * process_count) AS start_us,
       max(start_us) AS each_us,
       sum(process_count) AS process_count,
       count(DISTINCT running_host) AS host_count,
       name AS library
FROM libraries JOIN started USING (audit)
WHERE NOT is_process AND path <> libraries.program AND start_us IS NOT NULL
GROUP BY name
ORDER BY start_us DESC, library;
