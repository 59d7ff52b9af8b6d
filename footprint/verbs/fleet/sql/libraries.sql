-- What does each library cost, in all versions of it?
-- {library} costs most: {private_bytes} in {process_count} processes on {host_count} hosts.
WITH held AS (
    SELECT audit, name AS library, sum(private_bytes) AS private_bytes, max(retained_bytes) AS retained_bytes,
           list(build_id) AS builds
    FROM libraries SEMI JOIN current_processes USING (audit)
    WHERE is_process AND path <> program AND day BETWEEN getvariable('first_day') AND getvariable('day')
    GROUP BY audit, name
)
SELECT sum(held.private_bytes)::BIGINT AS private_bytes,
       (sum(held.private_bytes) / sum(process_count))::BIGINT AS mean_bytes,
       max(retained_bytes // process_count) AS retained_bytes,
       sum(process_count)::BIGINT AS process_count,
       count(DISTINCT host) AS host_count,
       len(list_distinct(flatten(list(builds)))) AS build_count,
       library
FROM held JOIN current_processes USING (audit)
GROUP BY library
ORDER BY private_bytes DESC NULLS LAST, library;
