-- How many more processes of each program fit on each host?
-- {fit_count} more of {program} fit on {host}: no other host has room for fewer.
WITH each AS (
    SELECT host, program, median(cost_bytes / process_count) AS each_bytes, sum(process_count) AS process_count
    FROM current_processes WHERE cost_bytes > 0 GROUP BY host, program
)
SELECT floor(greatest(available_bytes, 0) / each_bytes)::HUGEINT AS fit_count,
       process_count,
       each_bytes::BIGINT AS each_bytes,
       available_bytes,
       host,
       program
FROM each JOIN current_hosts USING (host)
WHERE available_bytes IS NOT NULL
ORDER BY fit_count, host, program;
