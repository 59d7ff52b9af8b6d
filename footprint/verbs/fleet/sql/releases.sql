-- How did the cost of a process change from build to build of each program?
-- {program} changed most: {change_bytes} a process with {build}.
WITH seen AS (
    SELECT program, build_id, min(day) AS first_day, max(day) AS last_day,
           arg_max(process_count, moment) AS process_count, arg_max(private_bytes, moment) AS private_bytes,
           arg_max(per_process_bytes, moment) AS per_process_bytes, bool_and(per_process_bytes IS NOT NULL) AS is_whole
    FROM processes
    WHERE build_id IS NOT NULL AND private_bytes IS NOT NULL AND day <= getvariable('day')
      AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
    GROUP BY program, build_id, host, coalesce(pid::VARCHAR, input)
),
-- Where a text tells the private memory of a build alone, that is compared of all builds of the program.
costs AS (
    SELECT *, CASE WHEN bool_and(is_whole) OVER (PARTITION BY program) THEN per_process_bytes ELSE private_bytes END AS cost_bytes
    FROM seen
),
builds AS (
    SELECT program, build_id, min(first_day) AS first_day, max(last_day) AS last_day,
           sum(process_count) AS process_count, median(cost_bytes / process_count) AS median_bytes
    FROM costs GROUP BY program, build_id
),
changed AS (
    SELECT *, median_bytes - lag(median_bytes) OVER (PARTITION BY program ORDER BY first_day, last_day, build_id) AS change_bytes
    FROM builds
)
SELECT change_bytes::BIGINT AS change_bytes,
       median_bytes::BIGINT AS median_bytes,
       process_count,
       first_day,
       last_day,
       coalesce(package_version, left(build_id, 12)) AS build,
       program
FROM changed LEFT JOIN known_files ON file = build_id
WHERE change_bytes IS NOT NULL
ORDER BY abs(change_bytes) DESC, program, first_day;
