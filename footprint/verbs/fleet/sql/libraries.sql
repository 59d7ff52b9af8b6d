-- What does each library cost, in all versions of it?
-- {library} costs most: {private_bytes} in {process_count} processes on {host_count} hosts.
SELECT sum(private_bytes)::BIGINT AS private_bytes,
       avg(private_bytes)::BIGINT AS mean_bytes,
       max(retained_bytes) AS retained_bytes,
       count(*) AS process_count,
       count(DISTINCT host) AS host_count,
       count(DISTINCT build_id) AS build_count,
       name AS library
FROM libraries SEMI JOIN current_processes USING (audit)
WHERE is_process AND path <> program AND day BETWEEN getvariable('first_day') AND getvariable('day')
GROUP BY name
ORDER BY private_bytes DESC NULLS LAST, library;
