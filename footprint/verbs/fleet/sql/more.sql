-- What would N more processes of each program cost, and where do they fit (-n)?
-- {count} more of {program} on {host}: {more_bytes}.
WITH each AS (
    SELECT host, program, median(cost_bytes / process_count) AS each_bytes
    FROM current_processes WHERE cost_bytes IS NOT NULL GROUP BY host, program
)
SELECT (each_bytes * getvariable('count'))::HUGEINT AS more_bytes,
       each_bytes::BIGINT AS each_bytes,
       available_bytes,
       (available_bytes - each_bytes * getvariable('count'))::HUGEINT AS left_bytes,
       getvariable('count') AS count,
       available_bytes >= each_bytes * getvariable('count') AS is_fitting,
       host,
       program
FROM each LEFT JOIN current_hosts USING (host)
ORDER BY more_bytes DESC, left_bytes DESC NULLS LAST, host, program;
