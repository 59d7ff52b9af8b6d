-- What does each program cost?
-- {program} costs most: {total_bytes} in {process_count} processes on {host_count} hosts.
SELECT sum(cost_bytes) AS total_bytes,
       sum(private_bytes) AS private_bytes,
       sum(kernel_bytes) AS kernel_bytes,
       median(cost_bytes / process_count)::BIGINT AS median_bytes,
       max(cost_bytes // process_count) AS largest_bytes,
       sum(process_count) AS process_count,
       count(DISTINCT host) AS host_count,
       program
FROM current_processes
GROUP BY program
ORDER BY total_bytes DESC NULLS LAST, program;
